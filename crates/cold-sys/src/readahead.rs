//! Asking for pages ahead of need, seeing that they have come, and asking whether they are there.
//!
//! `readahead(2)` reads at most the device's largest request and says nothing when it cuts
//! (mm/readahead.c, `force_page_cache_ra`), so callers hand it chunks. Its return says that the requests
//! were made, not that the pages have come.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Starts reading the pages of `offset..offset+len` into the cache. Pages that are there are skipped;
/// beyond the end of the file nothing happens. May wait for the file's extents to be read, or for room
/// in a full queue.
pub fn read_ahead(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let Ok(offset) = i64::try_from(offset) else { return Ok(()) };
    // SAFETY: no pointers; the descriptor is open.
    match unsafe { libc::readahead(file.as_raw_fd(), offset, len as usize) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits until the page at `offset` has come: reads one byte of it. Works for everyone who may read the
/// file, unlike mincore, which tells strangers that all is there. On a descriptor with
/// [`crate::evict::advise_random`] a page that nobody is reading costs one page, not a window.
pub fn await_page(file: &File, offset: u64) -> io::Result<()> {
    let mut byte = [0_u8];
    loop {
        match std::os::unix::fs::FileExt::read_at(file, &mut byte, offset) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map(drop),
        }
    }
}

/// Whether the page at `offset` is in the cache and ready, for everyone who may read the file; `None`
/// where the file system cannot say.
///
/// Asks with `RWF_NOWAIT`, which starts the read of a page that is absent
/// (mm/filemap.c, `filemap_get_pages`): for askers who want the page anyway.
pub fn page_is_ready(file: &File, offset: u64) -> Option<bool> {
    let mut byte = [0_u8];
    let vector = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let offset = i64::try_from(offset).ok()?;
    // SAFETY: the one vector describes `byte`, which lives across the call.
    let n = unsafe { libc::preadv2(file.as_raw_fd(), &raw const vector, 1, offset, libc::RWF_NOWAIT) };
    if n >= 0 {
        return Some(true);
    }
    (io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)).then_some(false)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Of two pages and a byte, changed and not written, so that nobody can evict them.
    fn file() -> (File, u64) {
        let page = crate::page::page_size();
        let mut file = tempfile::tempfile_in("/var/tmp").expect("a file");
        file.write_all(&vec![7; 2 * page as usize + 1]).expect("written");
        (file, page)
    }

    #[test]
    fn pages_that_are_there_are_ready_and_behind_the_end_nothing_is_waited_for() {
        let (file, page) = file();
        for offset in [0, page, 2 * page, 3 * page, 1 << 40] {
            // Where the file system cannot say it is unknown, and never "not yet".
            assert_ne!(page_is_ready(&file, offset), Some(false), "{offset}");
            await_page(&file, offset).expect("no error");
        }
    }

    #[test]
    fn no_file_reaches_beyond_the_largest_offset() {
        let (file, _) = file();
        assert_eq!(page_is_ready(&file, u64::MAX), None);
        read_ahead(&file, u64::MAX, 4096).expect("nothing to do");
    }

    #[test]
    fn what_has_no_pages_is_an_error_and_never_ready() {
        let directory = File::open("/var/tmp").expect("opens");
        assert_eq!(page_is_ready(&directory, 0), None);
        assert_eq!(await_page(&directory, 0).expect_err("a directory").raw_os_error(), Some(libc::EISDIR));
        let (pipe, _other) = io::pipe().expect("a pipe");
        let pipe = File::from(std::os::fd::OwnedFd::from(pipe));
        assert_eq!(read_ahead(&pipe, 0, 4096).expect_err("a pipe").raw_os_error(), Some(libc::EINVAL));
    }
}
