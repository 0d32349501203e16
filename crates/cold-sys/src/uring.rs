//! `io_uring(7)`: file operations that wait for no thread of ours. Containers and `kernel.io_uring_disabled`
//! refuse it (`EPERM`), kernels before 5.6 lack parts of it (`EINVAL`, `ENOSYS`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};

/// `POSIX_FADV_WILLNEED` for `offset..offset+len`, carried out by the kernel's own threads; returns when it has
/// been, which is not when the pages have come.
pub fn will_need(file: &File, offset: u64, len: u64) -> io::Result<()> {
    // The ring's field has 32 bits.
    let len = u32::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let fd = types::Fd(file.as_raw_fd());
    let entry =
        opcode::Fadvise::new(fd, len.into(), libc::POSIX_FADV_WILLNEED).offset(offset).build().user_data(0);
    let mut ring = IoUring::new(1)?;
    // SAFETY: no memory of ours is named; the descriptor stays open until the answer has come.
    unsafe { push(&mut ring, &entry)? };
    answers(&mut ring).map(drop)
}

/// Reads `len` bytes from `offset` on, `piece` bytes at a time with `depth` of them under way, and throws
/// them away. Returns how many came: fewer at the file's end; what a short read left out is not read again.
pub fn read_through(file: &File, offset: u64, len: u64, piece: u32, depth: u32) -> io::Result<u64> {
    let mut ring = IoUring::new(depth)?;
    let mut buffers = vec![vec![0_u8; piece as usize]; depth as usize];
    let read = pump(&mut ring, &mut buffers, file, offset..offset.saturating_add(len));
    if read.is_err() {
        // The kernel may still be writing there.
        std::mem::forget(buffers);
    }
    read
}

fn pump(
    ring: &mut IoUring,
    buffers: &mut [Vec<u8>],
    file: &File,
    range: std::ops::Range<u64>,
) -> io::Result<u64> {
    let fd = types::Fd(file.as_raw_fd());
    let mut idle: Vec<usize> = (0..buffers.len()).collect();
    let (mut next, mut came) = (range.start, 0);
    loop {
        while next < range.end
            && let Some(slot) = idle.pop()
        {
            let buffer = &mut buffers[slot];
            let n = (buffer.len() as u64).min(range.end - next) as u32;
            let read = opcode::Read::new(fd, buffer.as_mut_ptr(), n).offset(next);
            // SAFETY: the buffer has room for `n` bytes, is used by no other request until this one is
            // answered (its slot is not idle), and outlives it: the caller leaks it if we leave early.
            unsafe { push(ring, &read.build().user_data(slot as u64))? };
            next += u64::from(n);
        }
        if idle.len() == buffers.len() {
            return Ok(came);
        }
        for (slot, n) in answers(ring)? {
            idle.push(slot as usize);
            came += u64::from(n);
        }
    }
}

/// # Safety
/// What the entry names has to stay valid until it is answered.
unsafe fn push(ring: &mut IoUring, entry: &Entry) -> io::Result<()> {
    // SAFETY: the caller's promise.
    unsafe { ring.submission().push(entry) }.map_err(io::Error::other)
}

/// Hands in what was pushed and waits for at least one answer: each entry's mark and result.
fn answers(ring: &mut IoUring) -> io::Result<Vec<(u64, u32)>> {
    loop {
        match ring.submit_and_wait(1) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
            Ok(_) => break,
        }
    }
    let result = |n: i32| u32::try_from(n).map_err(|_| io::Error::from_raw_os_error(-n));
    ring.completion().map(|c| Ok((c.user_data(), result(c.result())?))).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::evict::advise_dontneed;
    use crate::residency::cachestat;

    #[test]
    fn all_is_read_whatever_the_pieces() {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all(&vec![7; 300_001]).unwrap();
        file.sync_all().unwrap();
        if let Err(e) = IoUring::new(1) {
            eprintln!("SKIPPED (io_uring is refused: {e})");
            return;
        }
        let read = |offset, len, piece, depth| read_through(&file, offset, len, piece, depth).unwrap();
        assert_eq!(read(0, 300_001, 4096, 8), 300_001);
        assert_eq!(read(1, 300_000, 1 << 20, 4), 300_000);
        assert_eq!(read(299_000, 50_000, 512, 2), 1001);
        assert_eq!(read(0, 0, 512, 1), 0);
        // Strangers may evict what came: one of many attempts has to be undisturbed.
        let came = (0..50).any(|_| {
            advise_dontneed(&file).unwrap();
            will_need(&file, 0, 300_001).unwrap();
            cachestat(&file, 0, 0).unwrap().is_none_or(|s| s.cached == 74)
        });
        assert!(came);
        assert_eq!(will_need(&file, 0, 1 << 33).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let directory = File::open("/var/tmp").unwrap();
        assert!(read_through(&directory, 0, 4096, 512, 4).is_err());
    }
}
