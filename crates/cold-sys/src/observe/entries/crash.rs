//! Processes that die of what breakpoints do to code that reads, copies or checks itself.

use std::io;

use cold_model::Shown as _;
use cold_model::order::{Crash, Function, TracedFile};

use super::arch;
use super::space::Space;

/// Bytes after the breakpoint by which a copy of code is recognised: no two functions agree in so many but when they
/// are the same.
const TAIL: usize = 24;

/// A signal that a fault of the program's own code raised, remembered until the process dies of it.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) signal: i32,
    place: String,
    copied: Option<(String, String)>,
}

impl Fault {
    /// Looks at a thread that is about to get `signal`; `None` when no fault raised it.
    pub(super) fn look(
        tid: i32,
        signal: i32,
        space: &mut Space,
        files: &[TracedFile],
    ) -> io::Result<Option<Self>> {
        let is_fault = matches!(signal, libc::SIGSEGV | libc::SIGILL | libc::SIGBUS | libc::SIGTRAP)
            && arch::code(tid)? > 0;
        // A program that finds itself changed gives up by abort().
        if !is_fault && signal != libc::SIGABRT {
            return Ok(None);
        }
        let pc = arch::pc(tid)?;
        let place = match space.place_of(pc) {
            Some((file, offset)) => files.get(file as usize).map(|f| told(f, offset)),
            None => None,
        };
        let copied = (signal == libc::SIGTRAP).then(|| copied(tid, pc, space, files)).flatten();
        let place = place.unwrap_or_else(|| "outside of all traced files".to_owned());
        Ok(Some(Self { signal, place, copied }))
    }

    /// The process died of it.
    pub(super) fn crash(self, pid: i32) -> Crash {
        let (copied, exclude) = self.copied.unzip();
        Crash { pid: pid.cast_unsigned(), signal: self.signal, place: self.place, copied, exclude }
    }
}

/// A place in a file in words.
fn told(file: &TracedFile, offset: u64) -> String {
    let function = file.function_at(offset).and_then(|n| file.functions.get(n));
    let name = function.map_or_else(|| format!("offset {offset:#x}"), called);
    format!("{name} in {}", file.path.shown())
}

/// Name and range of a function.
fn called(f: &Function) -> String {
    let range = format!("{:#x}-{:#x}", f.address, f.address.saturating_add(f.bytes.max(1)));
    f.name().map_or_else(|| range.clone(), |name| format!("{} ({range})", name.shown()))
}

/// The function whose copy is executed, and what excludes it.
fn copied(tid: i32, pc: u64, space: &mut Space, files: &[TracedFile]) -> Option<(String, String)> {
    let at = pc.wrapping_sub(arch::ADVANCE).wrapping_add(arch::BREAKPOINT.len() as u64);
    let mut tail = [0; TAIL];
    space.read(tid, at, &mut tail).ok()?;
    let (file, function) = space.copied_from(tid, &tail)?;
    let file = files.get(file as usize)?;
    let function = file.functions.get(function as usize)?;
    let name = file.path.file_name().unwrap_or(file.path.as_os_str());
    let end = function.address.saturating_add(function.bytes.max(1));
    let code = format!("{:#x}-{end:#x}", function.address);
    let code = function.name().map_or(code, str::to_owned);
    let exclude = format!("{}:{code}", cold_model::path_text::encode(name));
    Some((format!("{} in {}", called(function), file.path.shown()), exclude))
}
