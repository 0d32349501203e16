//! Files on a real disk, mappings, and the rule for tests that need root.
#![allow(dead_code, unused_imports)] // each test binary uses its part
#![allow(clippy::panic)] // the lint knows only functions marked as tests

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use cold_sys::page::page_size;

pub(crate) use cold_testbed::{need, needs_root};

/// A directory on the disk of the build directory (`/tmp` may be a tmpfs), removed at the end.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory"))
    }
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    /// A file of `pages` distinct pages, written just now (so cached and dirty).
    pub(crate) fn file(&self, name: &str, pages: u64) -> PathBuf {
        let path = self.path(name);
        let words = pages * page_size() / 8;
        let bytes: Vec<u8> = (0..words).flat_map(|w| (w ^ 0x5bd1_e995).to_le_bytes()).collect();
        std::fs::write(&path, bytes).expect("write");
        path
    }
}

/// Pages of `path` in the cache.
pub(crate) fn cached(path: &Path) -> u64 {
    let (file, meta) = cold_sys::open::regular(path, false).expect("open");
    cold_sys::residency::cached_pages(&file, &meta).expect("residency").expect("an own file is told")
}

/// Makes a FIFO; opening it for reading would block for ever.
pub(crate) fn mkfifo(path: &Path) {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
    // SAFETY: a NUL-terminated path that lives across the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

/// Tries until `f` succeeds, at most 10 s.
pub(crate) fn retry<T>(mut f: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1000 {
        if let Some(value) = f() {
            return value;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("did not succeed within 10 s");
}

/// A shared read-only mapping of a whole file.
pub(crate) struct Mapping {
    addr: *mut libc::c_void,
    len: usize,
}

impl Mapping {
    pub(crate) fn new(path: &Path) -> Self {
        let file = std::fs::File::open(path).expect("open");
        let len = file.metadata().expect("stat").len() as usize;
        let (prot, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let addr = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, file.as_raw_fd(), 0) };
        assert_ne!(addr, libc::MAP_FAILED);
        Self { addr, len }
    }
    pub(crate) fn touch(&self, page: u64) {
        let offset = (page * page_size()) as usize;
        assert!(offset < self.len);
        // SAFETY: inside the mapping, whose file nobody truncates during the test.
        unsafe { std::ptr::read_volatile(self.addr.cast::<u8>().add(offset)) };
    }
    pub(crate) fn lock(&self) -> bool {
        // SAFETY: exactly the mapping.
        unsafe { libc::mlock(self.addr, self.len) == 0 }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `new` mapped; no reference into it exists.
        unsafe { libc::munmap(self.addr, self.len) };
    }
}
