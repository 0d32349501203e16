//! What every part of the analysis needs, computed once.

use std::collections::{HashMap, HashSet};

use cold_model::layout::Layouts;
use cold_model::recording::manifest::Tier;
use cold_model::recording::{DeviceRead, File, FileIdx, FileKind, Lookup, Recording};
use cold_model::{Bytes, Known, Nanos};

use crate::join::stall_requests;
use crate::usage::{Usage, Window, fills_have_times, replay};
use crate::waits::{Wait, storage_waits};
use cold_model::pages::{Range, Runs};

/// The kernel's "no such file" and "a part of the path is no directory": nothing is there.
const NOT_THERE: [i64; 2] = [-2, -20];

pub(crate) struct Context<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) layouts: &'a Layouts,
    pub(crate) window: Window,
    /// Per row of `files`.
    pub(crate) usage: Vec<Usage>,
    pub(crate) waits: Vec<Wait<'a>>,
    /// Bytes per page.
    pub(crate) page: u64,
    /// Files that were mapped as code.
    code: HashSet<FileIdx>,
    /// Per row of `files`: pages that requests of the tree brought past the cache.
    pub(crate) direct: Vec<Runs>,
    /// Where requests tell their files but not always their places in them (imported): per row of `files`, bytes that
    /// the tree's requests read for it.
    pub(crate) asked: Option<Vec<Bytes>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(recording: &'a Recording, layouts: &'a Layouts) -> Self {
        let window = Window::of(recording);
        let waits = storage_waits(recording, window, &stall_requests(recording));
        let page = recording.page_bytes();
        let mappings = recording.mappings.iter().flatten();
        let code = mappings.filter(|m| m.executable).map(|m| m.file).collect();
        let direct = direct(recording, window);
        let asked = asked(recording, window);
        Self { recording, layouts, window, usage: replay(recording), waits, page, code, direct, asked }
    }

    pub(crate) fn bytes(&self, pages: u64) -> Bytes {
        Bytes(pages.saturating_mul(self.page))
    }

    /// A table's absence in words.
    pub(crate) fn absent(&self, table: &str) -> String {
        match self.recording.manifest.tier {
            Tier::Imported => format!("the imported file tells of no {table}"),
            tier => format!("tier {tier} has no table of {table}"),
        }
    }

    /// `value`, if the table is there.
    pub(crate) fn if_table<T, V>(&self, name: &str, table: Option<&T>, value: V) -> Known<V> {
        if table.is_some() { Known::Value(value) } else { Known::unknown(self.absent(name)) }
    }

    /// Requests of the tree in the window, with their index.
    pub(crate) fn requests(&self) -> impl Iterator<Item = (usize, &'a DeviceRead)> {
        let window = self.window;
        self.recording
            .device_reads
            .iter()
            .flatten()
            .enumerate()
            .filter(move |(_, r)| r.in_tree && window.holds(r.queued))
    }

    /// Lookups in the window, with their index, listings of open directories included.
    pub(crate) fn lookups(&self) -> impl Iterator<Item = (usize, &'a Lookup)> {
        let window = self.window;
        self.recording.lookups.iter().flatten().enumerate().filter(move |(_, l)| window.holds(l.at))
    }

    /// Per file: the requests of the tree that carried pages of it.
    pub(crate) fn requests_of_files(&self) -> HashMap<FileIdx, u64> {
        let counted: HashSet<u32> = self.requests().map(|(i, _)| i as u32).collect();
        let mut seen: Vec<(FileIdx, u32)> = self
            .recording
            .transfers
            .iter()
            .flatten()
            .filter(|t| counted.contains(&t.request))
            .filter_map(|t| Some((t.file?, t.request)))
            .chain(self.requests().filter_map(|(i, r)| Some((r.file?, i as u32))))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        let mut out = HashMap::new();
        for (file, _) in seen {
            *out.entry(file).or_default() += 1;
        }
        out
    }

    /// Whether every use of a page is seen: tiers C and D do not see which pages a read copied.
    pub(crate) fn reads_seen(&self) -> bool {
        let r = self.recording;
        // A prefetch file tells what was used and nothing else, a trace only what was read.
        r.manifest.tier.sees_all() || r.tells_only_pages()
    }

    /// `value`, where reads are seen.
    pub(crate) fn if_reads_seen<T>(&self, value: Known<T>) -> Known<T> {
        if self.reads_seen() || value.value().is_none() {
            return value;
        }
        Known::unknown(match self.recording.manifest.tier {
            Tier::Imported => "the imported trace tells only what was read".to_owned(),
            tier => format!("tier {tier} does not see which pages buffered reads copied"),
        })
    }

    /// `value`, unless events of this class of losses were lost, which it depends on.
    pub(crate) fn unless_lost<T>(&self, class: &str, value: Known<T>) -> Known<T> {
        match self.recording.manifest.lost.get(class) {
            Some(n) if *n > 0 => Known::unknown(format!("{n} of {class} were lost")),
            _ => value,
        }
    }

    /// `value`, where each fill has its time and its task.
    pub(crate) fn if_fills_have_readers<T>(&self, value: Known<T>) -> Known<T> {
        if fills_have_times(self.recording) || value.value().is_none() {
            return value;
        }
        let tier = self.recording.manifest.tier;
        Known::unknown(format!("tier {tier} sees what came into the cache, not who read it"))
    }

    /// A file's path, or what is known of it.
    pub(crate) fn path(&self, file: FileIdx) -> String {
        let Some(f) = self.recording.files.get(file as usize) else { return format!("unknown file {file}") };
        match &f.path {
            Some(device) if f.kind == FileKind::BlockDevice => self.metadata_of(f, device),
            Some(path) if f.deleted => format!("{path} (deleted)"),
            Some(path) => path.clone(),
            None => f.without_path(),
        }
    }

    /// The file was mapped as code.
    pub(crate) fn executable(&self, file: FileIdx) -> bool {
        self.code.contains(&file)
    }

    /// Pages of a device's own mapping: of a mounted file system they are its metadata.
    fn metadata_of(&self, device: &File, path: &str) -> String {
        let on_it =
            |f: &&File| f.dev == device.dev && f.kind == FileKind::Regular && !f.file_system.is_empty();
        match self.recording.files.iter().find(on_it) {
            Some(f) => format!("metadata of {} on {path}", f.file_system),
            None => path.to_string(),
        }
    }

    /// First moment of each file: touch, mapping or lookup by the tree.
    pub(crate) fn first_uses(&self) -> HashMap<FileIdx, Nanos> {
        let mut out: HashMap<FileIdx, Nanos> = HashMap::new();
        let mut note = |file: FileIdx, at: Nanos| {
            if self.window.holds(at) {
                out.entry(file).and_modify(|t| *t = at.min(*t)).or_insert(at);
            }
        };
        for (i, u) in self.usage.iter().enumerate() {
            if let Some(at) = u.first_touch {
                note(i as FileIdx, at);
            }
        }
        for (_, l) in self.lookups() {
            if let Some(file) = l.file {
                note(file, l.at);
            }
        }
        for m in self.recording.mappings.iter().flatten() {
            note(m.file, m.at);
        }
        out
    }
}

/// The lookup found that nothing is there. Refusals and "not a symbolic link" are no misses.
pub(crate) fn is_miss(l: &Lookup) -> bool {
    NOT_THERE.contains(&l.result)
}

fn asked(recording: &Recording, window: Window) -> Option<Vec<Bytes>> {
    let reads = recording.device_reads.as_ref().filter(|_| recording.tells_only_reads())?;
    let mut out = vec![Bytes(0); recording.files.len()];
    for read in reads.iter().filter(|r| r.in_tree && window.holds(r.queued)) {
        if let Some(sum) = read.file.and_then(|file| out.get_mut(file as usize)) {
            *sum += Bytes(read.bytes.into());
        }
    }
    Some(out)
}

/// Pages of regular files that the tree's requests brought and that never entered the cache (`O_DIRECT`).
fn direct(recording: &Recording, window: Window) -> Vec<Runs> {
    if recording.manifest.tier == Tier::Imported {
        // What went past the cache is not told apart.
        return Vec::new();
    }
    let mut brought: Vec<Vec<Range>> = vec![Vec::new(); recording.files.len()];
    let mut filled = brought.clone();
    let reads = recording.device_reads.as_deref().unwrap_or_default();
    for t in recording.transfers.iter().flatten() {
        let counts = reads.get(t.request as usize).is_some_and(|r| r.in_tree && window.holds(r.queued));
        if let Some(list) = t.file.filter(|_| counts).and_then(|file| brought.get_mut(file as usize)) {
            list.push(t.first_page..t.first_page.saturating_add(t.pages.into()));
        }
    }
    for f in recording.fills.iter().flatten() {
        if let Some(list) = filled.get_mut(f.file as usize) {
            list.push(f.first_page..f.first_page.saturating_add(f.pages.into()));
        }
    }
    let of = |((file, brought), filled): ((&File, Vec<Range>), Vec<Range>)| match file.kind {
        FileKind::Regular if !brought.is_empty() => Runs::of(brought).minus(&Runs::of(filled)),
        _ => Runs::default(),
    };
    recording.files.iter().zip(brought).zip(filled).map(of).collect()
}
