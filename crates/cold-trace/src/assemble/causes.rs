//! Why a folio was filled, and what a task waited for. Pure rules.

use cold_model::recording::{FileIdx, FileKind, FillCause, LookupKind, StallCause};

use super::index::AskedPages;
use crate::raw::Doing;
use crate::syscalls::{Class, class};
use crate::waiting::Waiting;

/// What is known when a folio enters the cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filling<'a> {
    /// File, first page, number of pages.
    pub(super) file: FileIdx,
    pub(super) first: u64,
    pub(super) pages: u32,
    /// What that file is.
    pub(super) kind: FileKind,
    /// A kernel thread did it, or nobody knows who.
    pub(super) foreign: bool,
    /// What the task was doing.
    pub(super) doing: Doing,
    /// System call in progress; negative: none.
    pub(super) syscall: i32,
    /// File and page of the fault, or of the position of the read, where known.
    pub(super) wanted: Option<(FileIdx, u64)>,
    /// Ranges that the call in progress asked for: file, first, last page.
    pub(super) asked: &'a [AskedPages],
}

impl Filling<'_> {
    fn holds(&self, page: u64) -> bool {
        page >= self.first && page - self.first < u64::from(self.pages)
    }

    /// In order of certainty: what the file is, who did it, what that task was doing.
    pub(super) fn cause(&self) -> FillCause {
        match self.kind {
            FileKind::BlockDevice | FileKind::Directory => return FillCause::Metadata,
            _ if self.foreign => return FillCause::Other,
            _ => {}
        }
        match self.doing {
            Doing::Fault if populates(self.syscall) => FillCause::Advice,
            Doing::Fault => match self.wanted {
                Some((file, page)) if file == self.file && self.holds(page) => FillCause::DemandFault,
                Some((file, _)) if file == self.file => FillCause::ReadAround,
                _ => FillCause::Other,
            },
            Doing::Call => match class(self.syscall) {
                Class::Advice => FillCause::Advice,
                Class::Write => FillCause::Write,
                Class::Read | Class::Lookup(LookupKind::Exec) => self.read(),
                Class::Lookup(_) | Class::Directory if self.kind == FileKind::Symlink => FillCause::Metadata,
                // Others read too: io_uring, a module, a swap file. Only what was asked for is certain.
                _ if self.asked.iter().any(|a| a.file == self.file) => self.read(),
                _ => FillCause::Other,
            },
            Doing::Nothing | Doing::Other(_) => FillCause::Other,
        }
    }

    fn read(&self) -> FillCause {
        let last = self.first.saturating_add(u64::from(self.pages).saturating_sub(1));
        let mut ranges = self.asked.iter().filter(|a| a.file == self.file).peekable();
        let asked = if ranges.peek().is_some() {
            ranges.any(|a| a.first <= last && a.last >= self.first)
        } else {
            // The call has not come to an end yet, or its end was lost: its position is all there is.
            self.wanted.is_none_or(|(file, page)| file == self.file && self.holds(page))
        };
        if asked { FillCause::BufferedRead } else { FillCause::ReadAhead }
    }
}

/// Whether the kernel faults for this call because the program asked for the pages (`MAP_POPULATE`, mlock,
/// `MADV_POPULATE_READ`), not because it touched them.
pub(super) fn populates(syscall: i32) -> bool {
    class(syscall) == Class::Advice
}

/// Why a task did not run. `None`: not because of storage or a lock (a parent in vfork). `waiting`: what the
/// kernel's own stack told.
pub(super) fn stall(
    doing: Doing,
    syscall: i32,
    iowait: bool,
    waiting: Option<Waiting>,
) -> Option<StallCause> {
    match waiting {
        Some(Waiting::Journal) => return Some(StallCause::Journal),
        Some(Waiting::Write) => return Some(StallCause::Write),
        Some(Waiting::Lock) if !iowait => return Some(StallCause::Lock),
        _ => {}
    }
    if !iowait {
        let waits_for_child = doing == Doing::Call && class(syscall) == Class::Clone;
        return (!waits_for_child).then_some(StallCause::Other);
    }
    Some(match doing {
        Doing::Fault => StallCause::Fault,
        Doing::Call => match class(syscall) {
            Class::Read => StallCause::Read,
            Class::Lookup(LookupKind::Exec) => StallCause::Exec,
            Class::Lookup(_) | Class::Directory => StallCause::Lookup,
            Class::Write => StallCause::Write,
            Class::Advice | Class::Clone | Class::Other => StallCause::OtherStorage,
        },
        Doing::Nothing | Doing::Other(_) => StallCause::OtherStorage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filling() -> Filling<'static> {
        Filling {
            file: 1,
            first: 8,
            pages: 4,
            kind: FileKind::Regular,
            foreign: false,
            doing: Doing::Fault,
            syscall: -1,
            wanted: Some((1, 9)),
            asked: &[],
        }
    }

    #[test]
    fn a_fault_and_what_is_read_around_it() {
        assert_eq!(filling().cause(), FillCause::DemandFault);
        assert_eq!(Filling { wanted: Some((1, 12)), ..filling() }.cause(), FillCause::ReadAround);
        assert_eq!(Filling { wanted: Some((1, 7)), ..filling() }.cause(), FillCause::ReadAround);
        // Copying to user memory during a read faults on another file: what is filled is not around it.
        assert_eq!(Filling { wanted: Some((2, 9)), ..filling() }.cause(), FillCause::Other);
        assert_eq!(Filling { wanted: None, ..filling() }.cause(), FillCause::Other);
        assert_eq!(Filling { foreign: true, ..filling() }.cause(), FillCause::Other);
        for kind in [FileKind::BlockDevice, FileKind::Directory] {
            assert_eq!(Filling { kind, foreign: true, ..filling() }.cause(), FillCause::Metadata);
        }
    }

    #[test]
    fn a_read_and_what_is_read_ahead_of_it() {
        let call = |nr: libc::c_long| Filling { doing: Doing::Call, syscall: nr as i32, ..filling() };
        let of = |file, first, last| AskedPages { file, first, last };
        let asked = [of(1, 6, 8), of(2, 100, 200)];
        let read = Filling { asked: &asked, ..call(libc::SYS_pread64) };
        assert_eq!(read.cause(), FillCause::BufferedRead);
        assert_eq!(Filling { first: 9, ..read }.cause(), FillCause::ReadAhead);
        assert_eq!(Filling { first: 100, ..read }.cause(), FillCause::ReadAhead, "another file's range");
        // Without a range the position decides.
        let blind = call(libc::SYS_read);
        assert_eq!(blind.cause(), FillCause::BufferedRead);
        assert_eq!(Filling { first: 10, ..blind }.cause(), FillCause::ReadAhead);
        let exec = Filling { asked: &asked, ..call(libc::SYS_execve) };
        assert_eq!(exec.cause(), FillCause::BufferedRead);
    }

    #[test]
    fn calls_that_ask_write_or_look_up() {
        let call = |nr: libc::c_long| Filling { doing: Doing::Call, syscall: nr as i32, ..filling() };
        let populate = Filling { doing: Doing::Fault, ..call(libc::SYS_mmap) };
        assert_eq!(populate.cause(), FillCause::Advice);
        for nr in [libc::SYS_readahead, libc::SYS_fadvise64, libc::SYS_madvise, libc::SYS_mmap] {
            assert_eq!(call(nr).cause(), FillCause::Advice);
        }
        assert_eq!(call(libc::SYS_write).cause(), FillCause::Write);
        assert_eq!(call(libc::SYS_openat).cause(), FillCause::Other);
        let link = Filling { kind: FileKind::Symlink, ..call(libc::SYS_readlinkat) };
        assert_eq!(link.cause(), FillCause::Metadata);
        let ring =
            Filling { asked: &[AskedPages { file: 1, first: 8, last: 8 }], ..call(libc::SYS_io_uring_enter) };
        assert_eq!(ring.cause(), FillCause::BufferedRead);
        assert_eq!(Filling { doing: Doing::Nothing, ..filling() }.cause(), FillCause::Other);
    }

    #[test]
    fn what_a_task_waited_for() {
        let call = |nr: libc::c_long, iowait| stall(Doing::Call, nr as i32, iowait, None);
        assert_eq!(stall(Doing::Fault, -1, true, None), Some(StallCause::Fault));
        assert_eq!(stall(Doing::Fault, libc::SYS_read as i32, true, None), Some(StallCause::Fault));
        assert_eq!(call(libc::SYS_read, true), Some(StallCause::Read));
        assert_eq!(call(libc::SYS_newfstatat, true), Some(StallCause::Lookup));
        assert_eq!(call(libc::SYS_execve, true), Some(StallCause::Exec));
        assert_eq!(call(libc::SYS_fsync, true), Some(StallCause::Write));
        assert_eq!(call(libc::SYS_io_uring_enter, true), Some(StallCause::OtherStorage));
        assert_eq!(stall(Doing::Fault, -1, false, None), Some(StallCause::Other));
        assert_eq!(call(libc::SYS_clone, false), None, "vfork waits for its child");
        assert_eq!(call(libc::SYS_renameat, true), Some(StallCause::Lookup));
        assert_eq!(call(libc::SYS_connect, true), Some(StallCause::Lookup), "a socket's path");
    }

    #[test]
    fn what_the_kernel_itself_waited_for() {
        let call = |nr: libc::c_long, iowait, what| stall(Doing::Call, nr as i32, iowait, Some(what));
        for iowait in [true, false] {
            assert_eq!(call(libc::SYS_renameat, iowait, Waiting::Journal), Some(StallCause::Journal));
            assert_eq!(call(libc::SYS_fsync, iowait, Waiting::Journal), Some(StallCause::Journal));
        }
        assert_eq!(
            call(libc::SYS_renameat, true, Waiting::Write),
            Some(StallCause::Write),
            "it discards blocks"
        );
        assert_eq!(call(libc::SYS_munmap, false, Waiting::Lock), Some(StallCause::Lock));
        assert_eq!(call(libc::SYS_clone, false, Waiting::Lock), Some(StallCause::Lock));
        assert_eq!(
            call(libc::SYS_openat, true, Waiting::Lock),
            Some(StallCause::Lookup),
            "storage, below a lock"
        );
        assert_eq!(stall(Doing::Fault, -1, false, Some(Waiting::Lock)), Some(StallCause::Lock));
    }
}
