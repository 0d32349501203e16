//! Scripts that start a program through the launcher: two that start each other end in the program.
//!
//! A wrapper names what comes next, and that may be another wrapper: of the same program in another directory of
//! PATH, which names the first. Each start of one is right by itself; only who has been here before knows that
//! it goes round. Exec keeps the process id, so a variable that names it and the wrappers passed tells that to
//! the next launcher of the same process, and to no other. Only wrappers see it: whoever starts something else
//! takes it away again.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cold_sys::search;

/// `PID:DEVICE.INODE,…` of the wrappers that this process has been.
const PASSED: &str = "COLD_LAUNCH_WRAPPERS";
/// Wrappers are short. A longer file is not even opened: every launch asks this.
const LONGEST: u64 = 4096;
/// More wrappers in one start go round, even if each of them is new.
const MOST: usize = 16;

/// A start that never comes to a program.
#[derive(Debug, thiserror::Error)]
#[error("there are only wrappers that start each other, and no program of this name behind them in PATH")]
pub(crate) struct Endless;

/// The command to be started instead of this one, which begins with a wrapper that this process has been already.
pub(crate) fn instead(command: &[OsString]) -> Result<Option<Vec<OsString>>, Endless> {
    let passed = std::env::var(PASSED).ok();
    let wrapper = command.first().and_then(|word| find(word)).filter(|path| is_wrapper(path));
    let Some((wrapper, id)) = wrapper.and_then(|path| identity(&path).map(|id| (path, id))) else {
        forget(passed.is_some());
        return Ok(None);
    };
    let pid = std::process::id();
    let own = passed.as_deref().and_then(|text| text.strip_prefix(&format!("{pid}:")));
    let before: Vec<&str> = own.map(|list| list.split(',').collect()).unwrap_or_default();
    if before.contains(&id.as_str()) || before.len() >= MOST {
        forget(true);
        let program = behind(&wrapper).ok_or(Endless)?;
        let rest = command.iter().skip(1).cloned();
        return Ok(Some(std::iter::once(program.into_os_string()).chain(rest).collect()));
    }
    let list: Vec<&str> = before.into_iter().chain([id.as_str()]).collect();
    // Where it cannot be noted, this start is as good as one without a launcher.
    cold_sys::exec::set_variable(PASSED, Some(&format!("{pid}:{}", list.join(","))));
    Ok(None)
}

/// What is started next is no wrapper, and must find the environment as it was.
fn forget(is_set: bool) {
    if is_set {
        cold_sys::exec::set_variable(PASSED, None);
    }
}

/// The file that exec takes for this word.
fn find(word: &OsStr) -> Option<PathBuf> {
    if word.as_bytes().contains(&b'/') {
        return Some(word.into());
    }
    let path = std::env::var_os("PATH");
    search::candidates(word, path.as_deref()).find(|file| is_executable(file))
}

/// The first program in PATH of the wrapper's name that is none itself.
fn behind(wrapper: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH");
    let all = search::candidates(wrapper.file_name()?, path.as_deref());
    all.into_iter().find(|file| is_executable(file) && !is_wrapper(file))
}

/// By its mode alone, one call instead of the two of [`search::may_execute`]: every launch asks this, and a file
/// that others only may execute costs no more than a look at whether it is a wrapper.
fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Which file it is, however it is called.
fn identity(path: &Path) -> Option<String> {
    let meta = path.metadata().ok()?;
    Some(format!("{}.{}", meta.dev(), meta.ino()))
}

/// A short script that mentions the launcher, not only one that `cold prefetch install` wrote. A script that does
/// so without being a wrapper loses nothing: only one that is met a second time is passed over.
fn is_wrapper(path: &Path) -> bool {
    if !path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= LONGEST) {
        return false;
    }
    let Ok((file, _)) = cold_sys::open::regular(path, true) else { return false };
    let mut text = Vec::with_capacity(LONGEST as usize);
    let read = file.take(LONGEST).read_to_end(&mut text);
    let names = [b"cold-launch", b"cold launch"];
    read.is_ok()
        && text.starts_with(b"#!")
        && names.iter().any(|name| text.windows(name.len()).any(|w| w == *name))
}
