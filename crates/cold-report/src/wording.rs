//! Words for files, frames and causes, the same in every exported format.

use cold_model::layout::Layouts;
use cold_model::recording::{FileIdx, Frame, LookupKind, Recording, Stack, StallCause};

/// The file's path, or what is known of it.
pub(crate) fn path(recording: &Recording, file: FileIdx) -> String {
    match recording.files.get(file as usize) {
        Some(f) => f
            .path
            .clone()
            .unwrap_or_else(|| format!("unknown file {}:{} inode {}", f.dev.major, f.dev.minor, f.inode)),
        None => format!("file {file}, which the recording does not list"),
    }
}

/// The last component of a path.
pub(crate) fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().filter(|b| !b.is_empty()).unwrap_or(path)
}

/// The functions of a frame, innermost first; a frame without a name as file and offset.
pub(crate) fn functions(recording: &Recording, layouts: &Layouts, frame: &Frame) -> Vec<String> {
    if let Some(names) = layouts.frames.get(frame) {
        return names.iter().map(|n| n.function.clone()).collect();
    }
    vec![match frame.file {
        Some(file) => format!("{}+{:#x}", base(&path(recording, file)), frame.offset),
        None => format!("{:#x}", frame.address),
    }]
}

/// A stack as lines, innermost first.
pub(crate) fn stack(recording: &Recording, layouts: &Layouts, stack: &Stack) -> String {
    let mut lines: Vec<String> =
        stack.frames.iter().flat_map(|frame| functions(recording, layouts, frame)).collect();
    if stack.truncated {
        lines.push("…".to_owned());
    }
    lines.join("\n")
}

/// What a task waited for, in a word.
pub(crate) fn cause(cause: StallCause) -> &'static str {
    match cause {
        StallCause::Fault => "fault",
        StallCause::Read => "read",
        StallCause::Lookup => "lookup",
        StallCause::Exec => "exec",
        StallCause::Write => "write",
        StallCause::OtherStorage => "other storage",
        StallCause::Lock => "lock",
    }
}

/// The family of a call.
pub(crate) fn lookup(kind: LookupKind) -> &'static str {
    match kind {
        LookupKind::Open => "open",
        LookupKind::Stat => "stat",
        LookupKind::Access => "access",
        LookupKind::Readlink => "readlink",
        LookupKind::Exec => "exec",
        LookupKind::List => "list",
    }
}
