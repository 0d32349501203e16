//! What a system call is called, so that it is found again in another run.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::calls::{About, Call};

/// A system call without what differs between runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The process: `main`, a helper's first argument, or `…'s child` for what was forked and has not executed
    /// anything yet.
    pub who: String,
    /// Name of the call.
    pub call: &'static str,
    /// The path or kind of descriptor it is about; empty for those that are about none. Digits are `N`, random
    /// names are `R`.
    pub about: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}({})", self.who, self.call, self.about)
    }
}

/// Directories and what stands for them in keys.
#[derive(Debug, Clone, Default)]
pub struct Names(pub Vec<(PathBuf, String)>);

impl Names {
    /// The path with the names in it.
    fn of(&self, path: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(path).into_owned();
        for (dir, name) in &self.0 {
            if let Some(rest) = dir.to_str().and_then(|dir| text.strip_prefix(dir)) {
                text = format!("{name}{rest}");
                return general(&text);
            }
        }
        // Thousands of groups and attributes of devices are all the same to us.
        let mut parts: Vec<&str> = text.split('/').collect();
        let far = ["/sys/", "/proc/", "/usr/", "/lib/", "/dev/"].iter().any(|dir| text.starts_with(dir));
        if far && parts.len() > 5 {
            parts.splice(4..parts.len() - 1, ["…"]);
        }
        general(&parts.join("/"))
    }
}

/// Digits and random names replaced.
fn general(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let hex = rest.bytes().take_while(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b)).count();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (taken, shown) = match (hex, digits) {
            (8.., _) => (hex, "R"),
            (_, 1..) => (digits, "N"),
            _ => (c.len_utf8(), ""),
        };
        out.push_str(if shown.is_empty() { &rest[..taken] } else { shown });
        rest = &rest[taken..];
    }
    out
}

/// What a call that is being made is about.
pub(super) fn about(tid: i32, call: &Call, args: &[u64; 6], names: &Names) -> String {
    match call.about {
        About::Path(n) => names.of(&string(tid, args[n])),
        About::At(dir, n) => {
            let path = string(tid, args[n]);
            match (path.first(), args[dir] as i32) {
                (None, dir) => descriptor(tid, dir, names),
                (Some(b'/'), _) | (_, libc::AT_FDCWD) => names.of(&path),
                (_, dir) => format!("{}/{}", descriptor(tid, dir, names), names.of(&path)),
            }
        }
        About::Descriptor(n) => descriptor(tid, args[n] as i32, names),
        About::Mapping if args[3] as i32 & libc::MAP_ANONYMOUS != 0 => "memory".to_owned(),
        About::Mapping => descriptor(tid, args[4] as i32, names),
        About::Nothing => String::new(),
    }
}

fn descriptor(tid: i32, fd: i32, names: &Names) -> String {
    match fd {
        0 => return "stdin".to_owned(),
        1 => return "stdout".to_owned(),
        2 => return "stderr".to_owned(),
        _ => {}
    }
    let link = std::fs::read_link(format!("/proc/{tid}/fd/{fd}"));
    link.map_or_else(|_| "?".to_owned(), |path| names.of(path.as_os_str().as_bytes()))
}

/// A string in the memory of a stopped thread.
fn string(tid: i32, at: u64) -> Vec<u8> {
    let mut text = Vec::new();
    let Ok(memory) = File::open(format!("/proc/{tid}/mem")) else { return text };
    let mut at = at;
    while text.len() < libc::PATH_MAX as usize {
        // Up to the end of the page: the next one may not be there.
        let mut part = [0_u8; 256];
        let room = (4096 - at % 4096).min(part.len() as u64) as usize;
        let Ok(n @ 1..) = memory.read_at(&mut part[..room], at) else { break };
        if let Some(end) = part[..n].iter().position(|b| *b == 0) {
            text.extend_from_slice(&part[..end]);
            break;
        }
        text.extend_from_slice(&part[..n]);
        at += n as u64;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_nothing_that_differs_between_runs() {
        let names = Names(vec![("/tmp/world-1".into(), "W".into())]);
        for (path, key) in [
            ("/tmp/world-1/tmp/cold-0123456789abcdef/log", "W/tmp/cold-R/log"),
            ("/proc/123/task/4/stat", "/proc/N/task/…/stat"),
            ("/sys/fs/cgroup/a/b/c/memory.stat", "/sys/fs/cgroup/…/memory.stat"),
            ("pipe:[12345]", "pipe:[N]"),
            ("/etc/passwd", "/etc/passwd"),
        ] {
            assert_eq!(names.of(path.as_bytes()), key);
        }
    }
}
