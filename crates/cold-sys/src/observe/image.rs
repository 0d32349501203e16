//! What an exec brought in: the program, its scripts, its interpreter, and whether it lost privileges.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_model::observed::How;

use super::collect::Collector;
use super::place::{self, PathArgument};
use crate::procfs::ProcFs;
use crate::search;

/// The kernel follows at most this many interpreters of interpreters (fs/exec.c, `exec_binprm`).
const MAX_SCRIPT_DEPTH: usize = 5;

/// The file an exec names, held before the exec replaces the memory that names it.
#[derive(Debug)]
pub(super) struct Target {
    /// Its path for people.
    pub(super) shown: PathBuf,
    reach: PathBuf,
    /// What the path led to; `None` if nothing.
    meta: Option<Metadata>,
    /// The file, if it may be read: only scripts need it, and scripts must be readable to run.
    file: Option<File>,
}

impl Target {
    pub(super) fn new(place: &PathArgument) -> Self {
        let (file, meta) = match crate::open::regular(&place.reach, true) {
            Ok((file, meta)) => (Some(file), Some(meta)),
            Err(_) => (None, std::fs::metadata(&place.reach).ok()),
        };
        Self { shown: place.shown.clone(), reach: place.reach.clone(), meta, file }
    }
}

/// Adds everything that the exec of process `pid` needed.
pub(super) fn executed(set: &mut Collector, pid: i32, target: Option<Target>) {
    let executed = How { executed: true, ..How::default() };
    let exe = PathBuf::from(format!("/proc/{pid}/exe"));
    set.file_at_link(&exe, executed);
    set.maps(pid);
    let Ok(exe_meta) = std::fs::metadata(&exe) else { return };
    note_lost_privileges(set, pid, &exe, &exe_meta);
    // Where the program is not the file that was named, that file is a script (or runs by binfmt_misc),
    // and its interpreter may be one again.
    let mut next = target;
    for _ in 0..MAX_SCRIPT_DEPTH {
        let Some(Target { shown, reach, meta: Some(meta), file }) = next.take() else { return };
        if (meta.dev(), meta.ino()) == (exe_meta.dev(), exe_meta.ino()) {
            return;
        }
        // The path may lead over symbolic links: the kernel's name of the file is the one to keep.
        let canonical = || Some(std::fs::canonicalize(&shown).unwrap_or_else(|_| shown.clone()));
        set.file(&meta, executed, canonical, &reach);
        next =
            file.and_then(interpreter).map(|path| Target::new(&place::resolve(pid, libc::AT_FDCWD, &path)));
    }
}

/// The path after `#!`.
fn interpreter(script: File) -> Option<PathBuf> {
    let mut head = Vec::new();
    script.take(search::SHEBANG_BYTES as u64).read_to_end(&mut head).ok()?;
    search::shebang(&head).map(|(interpreter, _)| interpreter.into())
}

/// Under observation without root the kernel ignores set-user-ID bits and file capabilities: the
/// program runs, but as the caller, and mostly gives up early.
fn note_lost_privileges(set: &mut Collector, pid: i32, exe: &Path, meta: &Metadata) {
    let procfs = ProcFs::default();
    let effective = |key: &str| {
        let text = procfs.read(format!("{pid}/status")).ok()?;
        let line = text.lines().find_map(|l| l.strip_prefix(key))?.to_owned();
        line.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let mode = meta.mode();
    let setuid = mode & libc::S_ISUID != 0 && effective("Uid:").is_some_and(|uid| uid != meta.uid());
    let setgid = mode & (libc::S_ISGID | libc::S_IXGRP) == libc::S_ISGID | libc::S_IXGRP
        && effective("Gid:").is_some_and(|gid| gid != meta.gid());
    let capable = !setuid && !setgid && has_capabilities(exe) && {
        let status = procfs.read(format!("{pid}/status")).unwrap_or_default();
        status.lines().any(|l| l.strip_prefix("CapPrm:").is_some_and(|v| v.trim().bytes().all(|b| b == b'0')))
    };
    if setuid || setgid || capable {
        let kind = if setuid {
            "setuid program"
        } else if setgid {
            "setgid program"
        } else {
            "program with file capabilities"
        };
        let path = std::fs::read_link(exe).unwrap_or_else(|_| exe.to_owned());
        set.note(format!(
            "{kind} {} ran without its privileges, because it was observed without root: what it would have \
             opened with them is missing from the file set; observe as root to follow it",
            path.shown()
        ));
    }
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both strings end with NUL; with size 0 nothing is written, only the length is returned.
    let n =
        unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    n > 0
}
