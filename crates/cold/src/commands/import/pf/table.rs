//! Prefetch files as CSV: the columns of `PECmd`, whose users have scripts, and behind them what those leave out.

use std::path::PathBuf;
use std::time::SystemTime;

use cold_model::{Shown as _, csv};
use cold_windows::filetime::{plain, plain_nanos};
use cold_windows::pf::{HashCheck, Prefetch, Version};

use super::files::Found;

/// Those of `PECmd`, in its order. Empty slots of run times stay empty here, where it moves the later ones up.
const COLUMNS: [&str; 27] = [
    "Note",
    "SourceFilename",
    "SourceCreated",
    "SourceModified",
    "SourceAccessed",
    "ExecutableName",
    "Hash",
    "Size",
    "Version",
    "RunCount",
    "LastRun",
    "PreviousRun0",
    "PreviousRun1",
    "PreviousRun2",
    "PreviousRun3",
    "PreviousRun4",
    "PreviousRun5",
    "PreviousRun6",
    "Volume0Name",
    "Volume0Serial",
    "Volume0Created",
    "Volume1Name",
    "Volume1Serial",
    "Volume1Created",
    "Directories",
    "FilesLoaded",
    "ParsingError",
];

/// Behind them: all volumes, and what the page map says.
const MORE: [&str; 14] = [
    "VersionNumber",
    "Volumes",
    "DirectoriesByVolume",
    "HashInput",
    "PrefetchNumber",
    "Threshold",
    "PagesKnown",
    "PagesNeeded",
    "PagesStable",
    "Runs",
    "Requests16K",
    "Requests32K",
    "Requests128K",
    "Requests2M",
];

fn row(cells: &[String], out: &mut String) {
    for (n, cell) in cells.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        out.push_str(&csv::text(cell));
    }
    out.push_str("\r\n");
}

fn names(cells: &[&str], out: &mut String) {
    row(&cells.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>(), out);
}

/// One row per file; a file that could not be read has its name and the reason.
pub(super) fn csv(found: &[Found], failed: &[(PathBuf, String)]) -> String {
    let mut out = String::new();
    names(&[COLUMNS.as_slice(), MORE.as_slice()].concat(), &mut out);
    for f in found {
        let mut cells = pecmd(f);
        cells.extend(more(&f.prefetch));
        row(&cells, &mut out);
    }
    for (path, why) in failed {
        let mut cells = vec![String::new(); COLUMNS.len() + MORE.len()];
        cells[0].clone_from(why);
        cells[1] = path.shown().to_string();
        "True".clone_into(&mut cells[COLUMNS.len() - 1]);
        row(&cells, &mut out);
    }
    out
}

/// Every run that is told, the latest first.
pub(super) fn timeline(found: &[Found]) -> String {
    let mut runs: Vec<(u64, String)> = found
        .iter()
        .flat_map(|f| f.prefetch.run_times.iter().flatten().map(|t| (*t, f.prefetch.executable.text())))
        .collect();
    runs.sort_by(|a, b| b.cmp(a));
    let mut out = String::new();
    names(&["RunTime", "ExecutableName"], &mut out);
    for (time, name) in runs {
        row(&[plain(time), name], &mut out);
    }
    out
}

fn of_system(time: std::io::Result<SystemTime>) -> String {
    let since = time.ok().and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or_else(String::new, |since| plain_nanos(since.as_nanos().cast_signed()))
}

/// The words of `PECmd` for a version.
const fn system(version: Version) -> &'static str {
    match version {
        Version::V17 => "Windows XP or Windows Server 2003",
        Version::V23 => "Windows Vista or Windows 7",
        Version::V26 => "Windows 8.0, Windows 8.1, or Windows Server 2012(R2)",
        Version::V30First | Version::V30 => "Windows 10 or Windows 11",
        Version::V31 => "Windows 11",
    }
}

fn pecmd(f: &Found) -> Vec<String> {
    let p = &f.prefetch;
    let mut cells = vec![
        String::new(),
        f.path.shown().to_string(),
        of_system(f.meta.created()),
        of_system(f.meta.modified()),
        of_system(f.meta.accessed()),
        p.executable.text(),
        format!("{:08X}", p.hash),
        p.size.to_string(),
        system(p.version).to_owned(),
        p.run_count.to_string(),
    ];
    cells.extend((0..8).map(|n| p.run_times.get(n).copied().flatten().map_or_else(String::new, plain)));
    for n in 0..2 {
        let volume = p.volumes.get(n);
        cells.push(volume.map_or_else(String::new, |v| v.device.text()));
        cells.push(volume.map_or_else(String::new, |v| format!("{:08X}", v.serial)));
        cells.push(volume.map_or_else(String::new, |v| plain(v.created)));
    }
    let directories = p.volumes.iter().flat_map(|v| &v.directories).map(cold_windows::pf::Name::text);
    cells.push(directories.collect::<Vec<_>>().join(", "));
    cells.push(p.files.iter().map(|f| f.name.text()).collect::<Vec<_>>().join(", "));
    cells.push("False".to_owned());
    cells
}

fn more(p: &Prefetch) -> Vec<String> {
    let needs = p.needs();
    let volume =
        |v: &cold_windows::pf::Volume| format!("{} {:08X} {}", v.device.text(), v.serial, plain(v.created));
    let directories = |v: &cold_windows::pf::Volume| {
        v.directories.iter().map(cold_windows::pf::Name::text).collect::<Vec<_>>().join(", ")
    };
    let (input, number) = match p.hash_check() {
        HashCheck::Reproduced { input, number } => (input.text(), number.to_string()),
        _ => (String::new(), String::new()),
    };
    let mut cells = vec![
        p.version.number().to_string(),
        p.volumes.iter().map(volume).collect::<Vec<_>>().join("; "),
        p.volumes.iter().map(directories).collect::<Vec<_>>().join("; "),
        input,
        number,
    ];
    let numbers = [p.threshold.into(), needs.known, needs.needed, needs.stable, needs.runs];
    cells.extend(numbers.into_iter().chain(needs.requests).map(|n| n.to_string()));
    cells
}
