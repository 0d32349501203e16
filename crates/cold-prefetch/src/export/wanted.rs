//! Files, and the pieces of them in the order in which a start needs them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cold_analyze::Window;
use cold_model::pages::LiveRuns;
use cold_model::recording::{FileKind, Recording};
use cold_plan::Plan;
use cold_plan::plan::FileKind as PlanKind;

/// A page of plans.
const PLAN_PAGE: u64 = 4096;

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedFile {
    /// Absolute, in the image.
    pub path: PathBuf,
    /// Its size in bytes, where known.
    pub size: Option<u64>,
}

/// Bytes that are needed, page by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its file, as an index.
    pub file: usize,
    /// First byte in the file.
    pub offset: u64,
    /// Number of bytes; the last page of a file counts as far as the file goes.
    pub bytes: u64,
    /// First need, nanoseconds from the start.
    pub need_ns: u64,
}

/// What a start needs, each page once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PagesWanted {
    /// The files in the order of their first need.
    pub files: Vec<WantedFile>,
    /// The pieces in the order of need.
    pub pieces: Vec<Piece>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Files that are not below the root of the image.
    pub outside: u64,
    /// Files whose name is not known, or that are gone.
    pub nameless: u64,
}

impl PagesWanted {
    /// The regular files of a plan.
    pub fn of_plan(plan: &Plan) -> Self {
        let mut ranges: Vec<_> = plan.ranges.iter().collect();
        ranges.sort_by_key(|r| r.need_ns);
        let mut maker = Maker::new(PLAN_PAGE);
        for r in ranges {
            let file = plan.files.get(r.file as usize).filter(|f| f.kind == PlanKind::Regular);
            if let Some(f) = file {
                let named = || Some((f.path.clone(), Some(f.identity.size)));
                maker.add(r.file, named, r.first_page, r.pages.into(), r.need_ns);
            }
        }
        maker.made
    }

    /// The regular files of a recorded start, up to ready; pages that were only mapped around a fault are in it.
    pub fn of_recording(recording: &Recording) -> Self {
        let window = Window::of(recording);
        let mut maker = Maker::new(recording.page_bytes());
        for t in recording.touches.iter().flatten().filter(|t| window.holds(t.at)) {
            let file = recording.files.get(t.file as usize);
            if let Some(f) = file.filter(|f| matches!(f.kind, FileKind::Regular | FileKind::Memory)) {
                let named = || f.place().filter(|_| !f.deleted).map(|path| (path, f.size));
                maker.add(t.file, named, t.first_page, t.pages.into(), window.since_start(t.at).0);
            }
        }
        maker.made
    }

    /// The same below a directory, with the names that files have there; what lies elsewhere is counted.
    #[must_use]
    pub fn below(self, root: &Path) -> Self {
        let inside = |f: &WantedFile| {
            f.path
                .strip_prefix(root)
                .ok()
                .filter(|p| !p.as_os_str().is_empty())
                .map(|p| WantedFile { path: Path::new("/").join(p), size: f.size })
        };
        self.mapped(inside, true)
    }

    /// Only the files with this text in their path.
    #[must_use]
    pub fn only(self, text: &str) -> Self {
        self.mapped(|f| f.path.to_string_lossy().contains(text).then(|| f.clone()), false)
    }

    fn mapped(self, change: impl Fn(&WantedFile) -> Option<WantedFile>, count: bool) -> Self {
        let mut places = Vec::with_capacity(self.files.len());
        let (mut files, mut outside) = (Vec::new(), self.outside);
        for f in &self.files {
            let changed = change(f);
            places.push(changed.as_ref().map(|_| files.len()));
            outside += u64::from(count && changed.is_none());
            files.extend(changed);
        }
        let place = |p: &Piece| places.get(p.file).copied().flatten().map(|file| Piece { file, ..*p });
        let pieces = self.pieces.iter().filter_map(place).collect();
        Self { files, pieces, outside, ..self }
    }

    /// Of each file its needed pages as ranges of bytes (offset, length), ascending and merged.
    pub fn ranges_by_file(&self) -> Vec<Vec<(u64, u64)>> {
        let mut out: Vec<Vec<(u64, u64)>> = vec![Vec::new(); self.files.len()];
        for p in &self.pieces {
            if let Some(list) = out.get_mut(p.file) {
                list.push((p.offset, p.bytes));
            }
        }
        for list in &mut out {
            list.sort_unstable();
            list.dedup_by(|next, last| {
                let joins = last.0 + last.1 == next.0;
                if joins {
                    last.1 += next.1;
                }
                joins
            });
        }
        out
    }
}

/// Adds pages in order of need, each once.
struct Maker {
    made: PagesWanted,
    /// By row in the source: index in `made.files`; `None`: it has no name.
    rows: HashMap<u32, Option<usize>>,
    seen: HashMap<usize, LiveRuns>,
}

impl Maker {
    fn new(page_bytes: u64) -> Self {
        let made = PagesWanted { page_bytes, ..PagesWanted::default() };
        Self { made, rows: HashMap::new(), seen: HashMap::new() }
    }

    fn add(
        &mut self,
        row: u32,
        named: impl Fn() -> Option<(PathBuf, Option<u64>)>,
        first: u64,
        pages: u64,
        need_ns: u64,
    ) {
        let made = &mut self.made;
        let index = *self.rows.entry(row).or_insert_with(|| {
            let named = named().filter(|(path, _)| path.is_absolute());
            made.nameless += u64::from(named.is_none());
            named.map(|(path, size)| {
                made.files.push(WantedFile { path, size });
                made.files.len() - 1
            })
        });
        let Some(file) = index else { return };
        let page = made.page_bytes;
        let size = made.files.get(file).and_then(|f| f.size).unwrap_or(u64::MAX);
        let asked = first..first.saturating_add(pages);
        let seen = self.seen.entry(file).or_default();
        for run in seen.holes(&asked) {
            let offset = run.start.saturating_mul(page);
            let end = run.end.saturating_mul(page).min(size);
            if offset < end {
                made.pieces.push(Piece { file, offset, bytes: end - offset, need_ns });
            }
        }
        seen.insert(&asked);
    }
}
