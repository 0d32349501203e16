//! Files that a start reads from end to end, and how long it is busy with that.

use std::collections::HashMap;

use cold_model::recording::FileIdx;
use cold_model::{Bytes, Nanos};

use crate::context::Context;
use crate::model::{FileUse, Reached, WholeRead};
use crate::steps::{Step, steps};
use crate::waits::union;

/// Smaller files are read whole by everybody.
const LEAST: u64 = 1 << 20;
/// Needed part from which a file counts as read whole.
const WHOLE: f64 = 0.8;

/// The files, the longest first.
pub(crate) fn whole_reads(cx: &Context<'_>, files: &[FileUse]) -> Vec<WholeRead> {
    let whole = |f: &&FileUse| {
        let size = f.size.unwrap_or_default().0;
        f.reached == Reached::Read && size >= LEAST && f.needed.0 as f64 >= WHOLE * size as f64
    };
    let wanted: HashMap<FileIdx, &FileUse> = files.iter().filter(whole).map(|f| (f.file, f)).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut busy = busy(cx, |file| wanted.contains_key(&file));
    let of = |f: &&FileUse| WholeRead {
        file: f.file,
        bytes: f.needed,
        size: f.size.unwrap_or(Bytes(0)),
        elapsed: union(busy.remove(&f.file).unwrap_or_default().into_iter()),
        waited: f.stall,
    };
    let mut out: Vec<WholeRead> = wanted.values().map(of).filter(|w| w.elapsed > Nanos(0)).collect();
    out.sort_by_key(|w| (std::cmp::Reverse((w.elapsed, w.bytes)), w.file));
    out
}

/// Per file, the times in which a thread dealt with it and with no other: from its open to its first read, and from
/// each read to the next.
fn busy(cx: &Context<'_>, wanted: impl Fn(FileIdx) -> bool) -> HashMap<FileIdx, Vec<(Nanos, Nanos)>> {
    let mut last: HashMap<u32, (FileIdx, Nanos)> = HashMap::new();
    let mut out: HashMap<FileIdx, Vec<(Nanos, Nanos)>> = HashMap::new();
    for step in steps(cx) {
        let file = match step {
            Step::Looked(l) => l.file,
            Step::Read(t) => Some(t.file),
        };
        let Some(file) = file.filter(|f| wanted(*f)) else {
            last.remove(&step.tid());
            continue;
        };
        if let (Step::Read(_), Some((_, from))) = (step, last.get(&step.tid()).filter(|(f, _)| *f == file)) {
            out.entry(file).or_default().push((*from, step.ended()));
        }
        last.insert(step.tid(), (file, step.ended()));
    }
    out
}

#[cfg(test)]
mod tests;
