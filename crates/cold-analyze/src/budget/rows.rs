//! What a quantity consists of, by name, and what of it is more than in another recording.

use std::collections::{BTreeMap, HashMap};

use cold_gate::{Culprit, Culprits, Unit};
use cold_model::recording::{FileIdx, LookupKind, TouchKind};

use super::asked::Askers;
use super::quantity::{Quantity, execs, is_mapped_library};
use crate::context::Context;
use crate::model::{Analysis, FileUse};

/// An analysis with its context.
type Side<'a> = (&'a Analysis, &'a Context<'a>);

/// Amount by name, and the file where it is one.
type Rows = BTreeMap<String, (u64, Option<FileIdx>)>;

/// What a failed budget is about; `None`: nothing can be named.
pub(super) fn culprits(quantity: Quantity, own: Side<'_>, before: Option<Side<'_>>) -> Option<Culprits> {
    let rows = rows(quantity, own);
    let reference = before.map(|side| self::rows(quantity, side));
    let askers = Askers::of(own.1);
    let (of, unit) = kind(quantity);
    let all: Vec<Culprit> = rows
        .into_iter()
        .map(|(name, (amount, file))| {
            let before = reference.as_ref().and_then(|r| r.get(&name)).map(|(n, _)| *n);
            (Culprit { name, amount, before, asked: None }, file)
        })
        .filter(|(c, _)| reference.is_none() || c.before.is_none() || c.growth() > 0)
        .map(|(mut c, file)| {
            c.asked = match file {
                Some(file) => askers.of_file(own.1, file),
                None => askers.of_directory(own.1, &c.name),
            };
            c
        })
        .collect();
    let why = if reference.is_some() { "new or grown" } else { "the largest first" };
    Culprits::of(of, why, unit, all)
}

/// What the rows are, and what their amounts are measured in: files of a count of files by what was needed of them.
fn kind(quantity: Quantity) -> (&'static str, Unit) {
    match quantity {
        Quantity::Files | Quantity::FilesNeeded => ("files", Unit::Bytes),
        Quantity::Libraries => ("libraries", Unit::Bytes),
        Quantity::Needed | Quantity::Read | Quantity::Unused | Quantity::Metadata | Quantity::Direct => {
            ("files", Unit::Bytes)
        }
        Quantity::Requests | Quantity::Faults => ("files", Unit::Count),
        Quantity::Lookups | Quantity::LookupsMissed => ("directories", Unit::Count),
        Quantity::Processes | Quantity::Execs | Quantity::Threads => ("programs", Unit::Count),
    }
}

fn rows(quantity: Quantity, (analysis, cx): Side<'_>) -> Rows {
    let page = |f: &FileUse| f.needed.0;
    match quantity {
        // The same files as the headline counts, and the reference's rows tell which of them are new.
        Quantity::Files => {
            let used = crate::files::used(cx).0;
            files(analysis, |f| used.contains(&f.file), page)
        }
        Quantity::FilesNeeded => {
            let used = crate::files::used(cx).0;
            files(analysis, |f| used.contains(&f.file) && f.needed.0 > 0, page)
        }
        Quantity::Libraries => files(analysis, is_mapped_library, page),
        Quantity::Needed => files(analysis, |f| f.needed.0 > 0, page),
        Quantity::Read => files(analysis, |f| f.read.0 > 0, |f| f.read.0),
        Quantity::Unused => files(analysis, |f| f.unused.0 > 0, |f| f.unused.0),
        Quantity::Direct => files(analysis, |f| f.direct.0 > 0, |f| f.direct.0),
        Quantity::Requests => files(analysis, |f| f.requests > 0, |f| f.requests),
        Quantity::Metadata => {
            let metadata =
                |f: &FileUse| cx.usage.get(f.file as usize).map_or(0, |u| cx.bytes(u.metadata.pages()).0);
            files(analysis, |f| metadata(f) > 0, metadata)
        }
        Quantity::Faults => {
            let mut faults: HashMap<FileIdx, u64> = HashMap::new();
            let touches = cx.recording.touches.iter().flatten();
            for t in touches.filter(|t| t.kind == TouchKind::Fault && cx.window.holds(t.at)) {
                *faults.entry(t.file).or_default() += 1;
            }
            let of = |f: &FileUse| faults.get(&f.file).copied().unwrap_or(0);
            files(analysis, |f| of(f) > 0, of)
        }
        Quantity::LookupsMissed => {
            let mut out = Rows::new();
            for m in &analysis.misses {
                out.entry(m.directory.clone()).or_default().0 += m.misses;
            }
            out
        }
        Quantity::Lookups => {
            let all = cx.lookups().filter(|(_, l)| l.kind != LookupKind::List);
            counted(all.map(|(_, l)| crate::misses::directory(l)))
        }
        Quantity::Processes | Quantity::Execs => counted(execs(cx).map(|p| program(cx, p))),
        Quantity::Threads => {
            let threads = cx.recording.threads.iter();
            counted(threads.filter(|t| t.in_tree && t.began <= cx.window.until).map(|t| t.name.clone()))
        }
    }
}

fn files(analysis: &Analysis, wanted: impl Fn(&FileUse) -> bool, amount: impl Fn(&FileUse) -> u64) -> Rows {
    let mut out = Rows::new();
    for f in analysis.files.iter().filter(|f| wanted(f)) {
        // Two files of one name (one of them deleted) are one row, so that both sides have the same.
        let row = out.entry(f.path.clone()).or_insert((0, Some(f.file)));
        row.0 += amount(f);
    }
    out
}

fn counted(names: impl Iterator<Item = String>) -> Rows {
    let mut out = Rows::new();
    for name in names {
        out.entry(name).or_default().0 += 1;
    }
    out
}

/// The executed file; its name in the kernel where that is unknown.
fn program(cx: &Context<'_>, p: &cold_model::recording::Process) -> String {
    p.executable.map_or_else(|| p.name.clone(), |file| cx.path(file))
}
