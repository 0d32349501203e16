//! Words for files, frames and causes, the same in every exported format.

use cold_model::layout::Layouts;
use cold_model::recording::{FileIdx, Frame, Recording, Stack};

/// The file's path, or what is known of it.
pub(crate) fn path(recording: &Recording, file: FileIdx) -> String {
    match recording.files.get(file as usize) {
        Some(f) => f.path.clone().unwrap_or_else(|| f.without_path()),
        None => format!("file {file}, which the recording does not list"),
    }
}

/// The last component of a path.
pub(crate) fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().filter(|b| !b.is_empty()).unwrap_or(path)
}

/// The functions of a frame, innermost first; a frame without a name as file and offset, generated code as such.
pub(crate) fn functions(recording: &Recording, layouts: &Layouts, frame: &Frame) -> Vec<String> {
    if let Some(names) = layouts.frames.get(frame) {
        return names.iter().map(|n| n.function.clone()).collect();
    }
    vec![match frame.file {
        Some(file) => format!("{}+{:#x}", base(&path(recording, file)), frame.offset),
        None if frame.generated => Frame::GENERATED.to_owned(),
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
