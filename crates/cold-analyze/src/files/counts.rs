//! How many files the start used, and of how many it needed pages.

use std::collections::BTreeSet;

use cold_model::file_system::Origin;
use cold_model::recording::{File, FileIdx, FileKind, LookupKind};
use cold_model::{Bytes, Known};

use super::Reaching;
use crate::context::Context;
use crate::model::FileUse;

/// Files that the tree executed, mapped or opened (an inherited one counts when it was read), and those of them
/// of which pages were needed. The first is the file set that `cold bench` observes: see
/// [`cold_model::observed::ObservedStart::files`].
pub(crate) fn counts(cx: &Context<'_>, files: &[FileUse]) -> (Known<u64>, Known<u64>) {
    let (used, unknown) = used(cx);
    let needed = files.iter().filter(|f| used.contains(&f.file) && f.needed > Bytes(0)).count() as u64;
    let all = match unknown {
        0 => Known::Value(used.len() as u64),
        n => Known::unknown(format!("which file was opened is not known of {n} opens")),
    };
    let all = if cx.recording.lookups.is_some() { all } else { Known::unknown(cx.absent("lookups")) };
    let needed = cx.if_reads_seen(cx.if_table("touches", cx.recording.touches.as_ref(), needed));
    (cx.unless_lost("lookups", all), needed)
}

/// The files that the tree executed, mapped or opened, and the number of opens of which the file is not known.
pub(crate) fn used(cx: &Context<'_>) -> (BTreeSet<FileIdx>, u64) {
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
    (used, unknown)
}

/// A regular file that is not made up by the kernel; memory with a name, too (tmpfs): a memfd has none.
fn has_contents(file: &File) -> bool {
    let named = || file.path.as_ref().is_some_and(|p| p.starts_with('/'));
    match file.kind {
        FileKind::Regular => Origin::of(&file.file_system) != Origin::Kernel,
        FileKind::Memory => named(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use cold_model::layout::Layouts;
    use cold_model::recording::{Recording, TouchKind};
    use cold_model::sample::{PAGE, empty, process};

    use super::*;
    use crate::files::files;

    fn of(r: &Recording) -> (Known<u64>, Known<u64>) {
        let layouts = Layouts::default();
        let cx = Context::new(r, &layouts);
        counts(&cx, &files(&cx))
    }

    #[test]
    fn what_was_opened_counts_even_unread_and_what_is_no_file_does_not() {
        let mut r = empty();
        r.processes.push(process(11, "p", Some(0)));
        let program = r.file("/bin/p", 9 * PAGE);
        let [unread, needed, proc, directory, named, nameless, looked_at, missing] =
            ["/unread", "/needed", "/proc/1/stat", "/dir", "/dev/shm/x", "memfd:x", "/stat", "/theirs"]
                .map(|path| r.file(path, 9 * PAGE));
        r.files[proc as usize].file_system = "proc".into();
        r.files[directory as usize].kind = FileKind::Directory;
        r.files[named as usize].kind = FileKind::Memory;
        r.files[nameless as usize].kind = FileKind::Memory;
        r.touch(2, program, 0..1, TouchKind::Fault);
        r.touch(2, needed, 0..2, TouchKind::Read);
        for file in [unread, needed, proc, directory, named, nameless] {
            r.lookup(1, LookupKind::Open, "/any", 3).file = Some(file);
        }
        r.lookup(1, LookupKind::Stat, "/stat", 0).file = Some(looked_at);
        r.lookup(1, LookupKind::Open, "/refused", -13).file = Some(missing);
        assert_eq!(of(&r), (Known::Value(4), Known::Value(2)), "program, unread, needed, named memory");
        r.lookup(3, LookupKind::Open, "/any", 3);
        let (all, known) = of(&r);
        assert!(all.value().is_none() && known == Known::Value(2), "{all:?}: an open of an unknown file");
        r.lookups = None;
        assert_eq!(of(&r).0.value(), None);
    }
}
