//! Prefetch files for people, and as JSON.

use cold_model::figures::percent_of;
use cold_model::{Bytes, Shown as _};
use cold_windows::filetime::{nanos_since_1970, plain, rfc3339};
use cold_windows::pf::{File, HashCheck, LAUNCHES, Needs, PAGE, Prefetch, WINDOWS};
use serde::Serialize;

use super::files::Found;
use crate::table::{self, Table};
use crate::words::{count, plural};

fn pages_of(n: u64) -> String {
    Bytes(n.saturating_mul(PAGE)).to_string()
}

/// What one file says.
pub(super) fn one(f: &Found) -> Vec<String> {
    let (p, needs) = (&f.prefetch, f.prefetch.needs());
    let mut lines = vec![format!("{}  hash {:08X}: {}", p.executable.text(), p.hash, hashed(p))];
    lines.push(format!("  version {}, {}", p.version.number(), f.path.shown()));
    let last = p.run_times.first().copied().flatten();
    let last = last.map_or_else(|| "unknown".to_owned(), |t| format!("{} UTC", plain(t)));
    lines.push(format!("  ran {}, the last time {last}", plural(p.run_count.into(), "time")));
    lines.push(format!(
        "  Windows would prefetch {} ({} pages of {}): those that at least {} of the last {LAUNCHES} launches used,",
        pages_of(needs.needed),
        count(needs.needed),
        plural(p.files.len() as u64, "file"),
        p.threshold
    ));
    lines.push(format!(
        "  of {} ({} pages) that any of them used",
        pages_of(needs.known),
        count(needs.known)
    ));
    lines.extend(figures(&needs));
    for v in &p.volumes {
        let directories = match v.directories.len() {
            1 => "1 directory".to_owned(),
            n => format!("{} directories", count(n as u64)),
        };
        lines.push(format!("  volume {}, serial {:08X}, {directories}", v.device.text(), v.serial));
    }
    lines
}

/// The figures of what is needed.
fn figures(needs: &Needs) -> Vec<String> {
    let mut lines = vec![format!(
        "  of the needed pages {} are of images, {} data; {} were used at every launch that is known",
        percent_of(needs.image, needs.needed),
        percent_of(needs.data, needs.needed),
        percent_of(needs.stable, needs.needed),
    )];
    if let Some(mean) = needs.mean_run_bytes() {
        lines.push(format!("  in {} runs of {} on average", count(needs.runs), Bytes(mean)));
    }
    let requests = WINDOWS.iter().zip(needs.requests).map(|(w, n)| format!("{} of {}", count(n), Bytes(*w)));
    lines.push(format!("  aligned requests that fetch them: {}", requests.collect::<Vec<_>>().join(", ")));
    lines
}

fn hashed(p: &Prefetch) -> String {
    match p.hash_check() {
        HashCheck::Reproduced { input, number: 0 } => format!("of {}", input.text()),
        HashCheck::Reproduced { input, number } => format!("of {} with /prefetch:{number}", input.text()),
        HashCheck::Boot => "of the boot".to_owned(),
        HashCheck::Hosting => "not reproduced: its command line was hashed as well".to_owned(),
        HashCheck::Packaged => "not reproduced: a packaged app, whose formula is not public".to_owned(),
        HashCheck::NotReproduced => "not reproduced".to_owned(),
    }
}

/// A row per program, those that need most first, and the sums.
pub(super) fn all(found: &[Found]) -> Vec<String> {
    let mut rows: Vec<(Needs, &Found)> = found.iter().map(|f| (f.prefetch.needs(), f)).collect();
    rows.sort_by(|a, b| b.0.needed.cmp(&a.0.needed).then_with(|| a.1.path.cmp(&b.1.path)));
    let mut sum = Needs::default();
    let mut out = Table::new(&[
        "RUNS",
        "LAST RUN (UTC)",
        "NEEDED",
        "KNOWN",
        "STABLE",
        "RUN",
        "16 KiB",
        "2 MiB",
        "PROGRAM",
    ]);
    for (needs, f) in &rows {
        sum.add(needs);
        let p = &f.prefetch;
        let last = p.run_times.first().copied().flatten().map_or_else(|| "–".to_owned(), plain);
        let run = needs.mean_run_bytes().map_or_else(|| "–".to_owned(), |b| Bytes(b).to_string());
        out.row(
            vec![
                count(p.run_count.into()),
                last,
                pages_of(needs.needed),
                pages_of(needs.known),
                percent_of(needs.stable, needs.needed),
                run,
                count(needs.requests[0]),
                count(needs.requests[3]),
                format!("{}-{:08X}", p.executable.text(), p.hash),
            ],
            Vec::new(),
        );
    }
    let mut lines = out.lines(table::width());
    lines.push(String::new());
    lines.push(format!(
        "{}: they need {} of the {} that their launches used",
        plural(rows.len() as u64, "prefetch file"),
        pages_of(sum.needed),
        pages_of(sum.known)
    ));
    lines.extend(figures(&sum));
    lines
}

/// A row per file of the start: what is known of its pages, and the share of them that each launch used.
pub(super) fn pages(f: &Found, unicode: bool) -> Vec<String> {
    let p = &f.prefetch;
    let mut out = Table::new(&["KNOWN", "NEEDED", "IMAGE", "DATA", "LATEST ← LAUNCHES", "FILE"]);
    for file in p.files.iter().filter(|file| !file.pages.is_empty()) {
        let is = |is: fn(&cold_windows::pf::Page) -> bool| {
            file.pages.iter().filter(|page| is(page)).count() as u64
        };
        out.row(
            vec![
                count(file.pages.len() as u64),
                count(is(|page| !page.ignored())),
                count(is(cold_windows::pf::Page::image)),
                count(is(cold_windows::pf::Page::data)),
                launches(file, p.run_count, unicode),
                file.name.text(),
            ],
            Vec::new(),
        );
    }
    let mut lines = out.lines(table::width());
    let (all, none) = if unicode { ('█', '·') } else { ('9', '.') };
    let said = format!(
        "launches: {all} used all pages that are known of the file, {none} none, blank: there was none"
    );
    lines.push(said);
    lines
}

/// One mark for each of the last eight launches, the latest first.
fn launches(file: &File, run_count: u32, unicode: bool) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mark = |launch: u32| {
        if launch >= run_count {
            return ' ';
        }
        let used = file.pages.iter().filter(|page| page.used >> launch & 1 == 1).count();
        match (used * 8).div_ceil(file.pages.len().max(1)) {
            0 if unicode => '·',
            0 => '.',
            eighths if unicode => BLOCKS[eighths - 1],
            eighths => char::from(b'1' + eighths as u8),
        }
    };
    (0..LAUNCHES).map(mark).collect()
}

/// Everything of one file. Its pages are columns: a start has thousands, and objects would say their names each time.
#[derive(Serialize)]
pub(super) struct Document {
    source: String,
    version: u32,
    executable: String,
    hash: String,
    hashed: Hashed,
    hash_string: Option<String>,
    boot: bool,
    /// Bytes of the expanded file, by its header.
    size: u32,
    run_count: u32,
    /// UTC, the latest first; null: an empty slot.
    run_times: Vec<Option<String>>,
    threshold: u32,
    pages: Sums,
    volumes: Vec<Volume>,
    files: Vec<FilePages>,
}

#[derive(Serialize)]
struct Hashed {
    input: Option<String>,
    /// N of `/prefetch:N`; 0 without.
    prefetch_number: Option<u32>,
    how: String,
}

#[derive(Serialize)]
struct Sums {
    known: u64,
    needed: u64,
    image: u64,
    data: u64,
    stable: u64,
    runs: u64,
    requests: Vec<Requests>,
}

/// Aligned windows of so many bytes that hold the needed pages.
#[derive(Serialize)]
struct Requests {
    window: u64,
    requests: u64,
}

#[derive(Serialize)]
struct Volume {
    device: String,
    created: Option<String>,
    serial: String,
    directories: Vec<String>,
    references: Vec<u64>,
}

/// A file's pages: one element per page in each column.
#[derive(Serialize)]
struct FilePages {
    name: String,
    reference: Option<u64>,
    flags: u32,
    /// First byte in the file.
    offset: Vec<u64>,
    /// Flags of the format: 1 not needed, 2 image, 4 data, 8 always needed, 16 used later in a launch.
    page_flags: Vec<u8>,
    /// Bit 0: the latest launch used it.
    used: Vec<u8>,
    prefetched: Option<Vec<u8>>,
    phases: Option<Vec<u32>>,
}

/// What `--json` prints of a file.
pub(super) fn document(f: &Found) -> Document {
    let (p, needs) = (&f.prefetch, f.prefetch.needs());
    let (input, prefetch_number) = match p.hash_check() {
        HashCheck::Reproduced { input, number } => (Some(input.text()), Some(number)),
        _ => (None, None),
    };
    let utc = |t: u64| nanos_since_1970(t).and_then(rfc3339);
    let volume = |v: &cold_windows::pf::Volume| Volume {
        device: v.device.text(),
        created: utc(v.created),
        serial: format!("{:08X}", v.serial),
        directories: v.directories.iter().map(cold_windows::pf::Name::text).collect(),
        references: v.references.clone(),
    };
    let file = |file: &File| FilePages {
        name: file.name.text(),
        reference: file.reference,
        flags: file.flags,
        offset: file.pages.iter().map(|page| page.offset).collect(),
        page_flags: file.pages.iter().map(|page| page.flags).collect(),
        used: file.pages.iter().map(|page| page.used).collect(),
        prefetched: file.pages.iter().map(|page| page.prefetched).collect(),
        phases: file.pages.iter().map(|page| page.phases).collect(),
    };
    let requests = WINDOWS.iter().zip(needs.requests);
    Document {
        source: f.path.shown().to_string(),
        version: p.version.number(),
        executable: p.executable.text(),
        hash: format!("{:08X}", p.hash),
        hashed: Hashed { input, prefetch_number, how: hashed(p) },
        hash_string: p.hash_string.as_ref().map(cold_windows::pf::Name::text),
        boot: p.boot,
        size: p.size,
        run_count: p.run_count,
        run_times: p.run_times.iter().map(|t| t.and_then(utc)).collect(),
        threshold: p.threshold,
        pages: Sums {
            known: needs.known,
            needed: needs.needed,
            image: needs.image,
            data: needs.data,
            stable: needs.stable,
            runs: needs.runs,
            requests: requests.map(|(window, requests)| Requests { window: *window, requests }).collect(),
        },
        volumes: p.volumes.iter().map(volume).collect(),
        files: p.files.iter().map(file).collect(),
    }
}
