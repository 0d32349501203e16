//! Lookups and advice from system calls. Pure.

use cold_model::Nanos;
use cold_model::recording::{Advice, FileIdx, Lookup, LookupKind};

use super::files::{Files, escape};
use super::space::Spaces;
use crate::raw::{Call, Header};

/// `MADV_*` that are about a file's pages (the programs tell no others), and `POSIX_FADV_*`, by number.
const MADVICE: [(u64, &str); 11] = [
    (0, "NORMAL"),
    (1, "RANDOM"),
    (2, "SEQUENTIAL"),
    (3, "WILLNEED"),
    (4, "DONTNEED"),
    (14, "HUGEPAGE"),
    (15, "NOHUGEPAGE"),
    (20, "COLD"),
    (21, "PAGEOUT"),
    (22, "POPULATE_READ"),
    (23, "POPULATE_WRITE"),
];
const FADVICE: [(u64, &str); 6] =
    [(0, "NORMAL"), (1, "RANDOM"), (2, "SEQUENTIAL"), (3, "WILLNEED"), (4, "DONTNEED"), (5, "NOREUSE")];

fn named(call: &str, value: u64, names: &[(u64, &str)]) -> String {
    match names.iter().find(|(n, _)| *n == value) {
        Some((_, name)) => format!("{call}:{name}"),
        None => format!("{call}:{value}"),
    }
}

/// Of stat and its like by descriptor alone (`fstat`, `AT_EMPTY_PATH`): no path was resolved.
pub(super) fn by_descriptor(call: &Call<'_>, kind: LookupKind) -> bool {
    let empty = call.path.is_some_and(<[u8]>::is_empty);
    empty && kind != LookupKind::Exec && call.result != -i64::from(libc::ENOENT)
}

/// The row of a path call or of getdents.
pub(super) fn lookup(head: &Header, call: &Call<'_>, kind: LookupKind, files: &mut Files) -> Lookup {
    let file = files.index(call.file);
    let absolute = call.path.is_some_and(|path| path.starts_with(b"/"));
    let base = if absolute { None } else { files.index(call.base) };
    let root = absolute.then(|| files.root(call.base)).flatten();
    Lookup {
        at: Nanos(call.began),
        ended: Nanos(head.at.max(call.began)),
        pid: head.pid,
        tid: head.tid,
        kind,
        path: path(call, kind, file, base, files),
        result: call.result,
        flags: if kind == LookupKind::Open { call.open_flags } else { 0 },
        file,
        root,
        stack: None,
    }
}

fn path(
    call: &Call<'_>,
    kind: LookupKind,
    file: Option<FileIdx>,
    base: Option<FileIdx>,
    files: &Files,
) -> Option<String> {
    let name = |index: Option<FileIdx>| files.row(index?)?.path.clone();
    match call.path {
        // The path of a list is the directory's, that of an empty one (`AT_EMPTY_PATH`) the descriptor's.
        None if kind == LookupKind::List => name(file).or_else(|| name(base)),
        None => None,
        // The empty name was asked for, and there is none: `open("")`.
        Some([]) if call.result == -i64::from(libc::ENOENT) => Some(String::new()),
        Some([]) => name(file).or_else(|| name(base)).or(Some(String::new())),
        Some(path) => {
            let mut text = escape(path);
            if call.path_cut {
                text.push('…');
            }
            match name(base) {
                Some(base) if !path.starts_with(b"/") => {
                    Some(format!("{}/{text}", base.trim_end_matches('/')))
                }
                _ => Some(text),
            }
        }
    }
}

/// The rows of a call that asks for pages, gives them up, or tells how they will be used; one for each mapping that it is
/// about, none where it concerns no file's pages.
pub(super) fn advice(head: &Header, call: &Call<'_>, files: &mut Files, spaces: &Spaces) -> Vec<Advice> {
    let [a0, a1, a2, a3, _, a5] = call.args;
    let number = libc::c_long::from(call.syscall);
    let (text, offset, bytes) = match number {
        libc::SYS_readahead => ("readahead".to_owned(), a1, a2),
        libc::SYS_fadvise64 => (named("fadvise", a3, &FADVICE), a1, a2),
        libc::SYS_madvise => (named("madvise", a2, &MADVICE), 0, a1),
        libc::SYS_mmap => ("mmap:POPULATE".to_owned(), a5, a1),
        other => (format!("system call {other}"), 0, 0),
    };
    let row = Advice {
        at: Nanos(call.began),
        ended: Nanos(head.at.max(call.began)),
        pid: head.pid,
        tid: head.tid,
        call: text,
        file: files.index(call.file),
        offset,
        bytes,
        address: u64::try_from(call.result).ok().filter(|_| number == libc::SYS_mmap),
        result: call.result,
    };
    if number != libc::SYS_madvise {
        return vec![row];
    }
    // Memory that is no file's is given back by the thousand; that is no matter of a start.
    let areas = spaces.of(head.pid).into_iter().flat_map(|space| space.within(a0, a0.saturating_add(a1)));
    areas
        .filter_map(|area| {
            let (offset, bytes, address) = (area.offset, area.end - area.start, Some(area.start));
            Some(Advice { file: Some(area.file?), offset, bytes, address, ..row.clone() })
        })
        .collect()
}
