//! Stall time by stack.

use std::collections::BTreeMap;

use cold_model::layout::Layouts;
use cold_model::recording::{Frame, Recording, StackIdx, Stall, StallCause};
use cold_model::{Nanos, path_text};

use crate::context::Context;
use crate::model::StackWait;

/// Waits for storage by stack, longest first; those without a stack are one row.
pub(crate) fn stacks(cx: &Context<'_>) -> Vec<StackWait> {
    let mut by_stack: BTreeMap<(bool, Option<StackIdx>), StackWait> = BTreeMap::new();
    for w in &cx.waits {
        // The old program is gone and the new one has not begun: the kernel itself waits.
        let exec = in_exec(cx, w.stall);
        let stack = if exec { None } else { w.stall.stack };
        let row = by_stack.entry((exec, stack)).or_insert_with(|| StackWait {
            stack,
            frames: if exec { vec!["exec (kernel)".to_string()] } else { frames(cx, stack) },
            stalls: 0,
            stall: Nanos(0),
            causes: BTreeMap::new(),
        });
        row.stalls += 1;
        row.stall += w.length();
        *row.causes.entry(w.stall.cause).or_insert(Nanos(0)) += w.length();
    }
    let mut out: Vec<_> = by_stack.into_values().collect();
    out.sort_by(|a, b| b.stall.cmp(&a.stall).then_with(|| a.frames.cmp(&b.frames)));
    out
}

/// Within execve or execveat, faults of the kernel on the new program's memory included.
fn in_exec(cx: &Context<'_>, stall: &Stall) -> bool {
    let call = || match cx.recording.manifest.machine.architecture.as_str() {
        "x86_64" => [59, 322],
        _ => [221, 281], // the numbers of all newer architectures
    };
    stall.cause == StallCause::Exec || stall.system_call.is_some_and(|nr| call().contains(&nr))
}

/// The frames of a stack in words, outermost first.
pub fn stack_in_words(recording: &Recording, layouts: &Layouts, stack: StackIdx) -> Vec<String> {
    frames(&Context::new(recording, layouts), Some(stack))
}

/// Frames in words, outermost first.
pub(crate) fn frames(cx: &Context<'_>, stack: Option<StackIdx>) -> Vec<String> {
    let stacks = cx.recording.stacks.as_deref().unwrap_or_default();
    let Some(stack) = stack.and_then(|s| stacks.get(s as usize)) else { return Vec::new() };
    // Code without frame pointers leads the walk astray: what it met outside of any code is no caller.
    let code = |f: &Frame| {
        f.generated || f.file.is_some_and(|file| cx.executable(file) || cx.layouts.frames.contains_key(f))
    };
    let end = stack.frames.iter().rposition(code).map_or(0, |last| last + 1);
    // Where nothing is known to be code (no table of mappings) all is shown as it is.
    let shown = if end == 0 { &stack.frames[..] } else { &stack.frames[..end] };
    let mut out: Vec<String> = shown.iter().flat_map(|f| frame(cx, f)).collect();
    if stack.truncated && shown.len() == stack.frames.len() {
        out.push("…".to_string());
    }
    out.reverse();
    out
}

/// One frame in words, innermost inlined function first: ``libc.so.6`fopen``, `libc.so.6+0x1234`,
/// `[JIT]`, `0x7f… (in no file)`.
fn frame(cx: &Context<'_>, f: &Frame) -> Vec<String> {
    let module = f.file.map(|file| {
        let path = cx.path(file);
        path_text::base(&path).to_owned()
    });
    match (cx.layouts.frames.get(f), module) {
        (Some(names), Some(module)) if !names.is_empty() => {
            names.iter().map(|n| format!("{module}`{}", n.function)).collect()
        }
        (Some(names), None) if !names.is_empty() => names.iter().map(|n| n.function.clone()).collect(),
        (_, Some(module)) => vec![format!("{module}+{:#x}", f.offset)],
        (_, None) if f.generated => vec![Frame::GENERATED.to_owned()],
        // Where guessing by frame pointers went astray, or the kernel's own page of calls.
        (_, None) => vec![format!("{:#x} (in no file)", f.address)],
    }
}
