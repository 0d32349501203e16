//! How many files the start used, and of how many it needed pages.

use std::collections::BTreeSet;

use cold_model::file_system::is_made_up;
use cold_model::recording::{File, FileIdx, FileKind, LookupKind};
use cold_model::{Bytes, Known};

use super::Reaching;
use crate::context::Context;
use crate::model::FileUse;

/// Files that the tree executed, mapped or opened (an inherited one counts when it was read), and those of them
/// of which pages were needed. The first is the file set that `cold bench` observes: see
/// [`cold_model::observed::ObservedStart::files`].
pub(crate) fn counts(cx: &Context<'_>, files: &[FileUse]) -> (Known<u64>, Known<u64>) {
    let reached = Reaching::of(cx);
    let mut used: BTreeSet<FileIdx> = &(&reached.executed | &reached.mapped) | &reached.read;
    let mut unknown = 0_u64;
    for (_, l) in cx.lookups().filter(|(_, l)| l.kind == LookupKind::Open && l.result >= 0) {
        match l.file {
            Some(file) => used.extend([file]),
            None => unknown += 1,
        }
    }
    used.retain(|f| cx.recording.files.get(*f as usize).is_some_and(has_contents));
    let needed = files.iter().filter(|f| used.contains(&f.file) && f.needed > Bytes(0)).count() as u64;
    let all = match unknown {
        0 => Known::Value(used.len() as u64),
        n => Known::unknown(format!("which file was opened is not known of {n} opens")),
    };
    let all = if cx.recording.lookups.is_some() { all } else { Known::unknown(cx.absent("lookups")) };
    let needed = cx.if_reads_seen(cx.if_table("touches", cx.recording.touches.as_ref(), needed));
    (cx.unless_lost("lookups", all), needed)
}

/// A regular file that is not made up by the kernel; memory with a name, too (tmpfs): a memfd has none.
fn has_contents(file: &File) -> bool {
    let named = || file.path.as_ref().is_some_and(|p| p.starts_with('/'));
    match file.kind {
        FileKind::Regular => !is_made_up(&file.file_system),
        FileKind::Memory => named(),
        _ => false,
    }
}
