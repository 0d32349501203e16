//! What assembling needs from somebody who can unwind a copied stack.

use cold_model::recording::File;

pub use crate::assemble::{Area, Space};

/// Registers and stack bytes at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedStack<'a> {
    /// Instruction pointer: where the thread ran, not a return address.
    pub ip: u64,
    /// Stack pointer: the address of the first byte of `bytes`.
    pub sp: u64,
    /// Frame pointer: rbp, on arm64 x29. In code built without frame pointers it may hold anything.
    pub fp: u64,
    /// Link register, where the architecture has one.
    pub lr: Option<u64>,
    /// The stack from its pointer up.
    pub bytes: &'a [u8],
}

/// Where the stack was taken.
#[derive(Debug, Clone, Copy)]
pub struct StackOrigin<'a> {
    /// Process (thread group) of the thread whose stack it is.
    pub pid: u32,
    /// Its mappings at that time. Spaces of equal [`Space::revision`] are equal.
    pub space: &'a Space,
    /// The files that mappings name, by index.
    pub files: &'a [File],
}

/// A stack's addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unwound {
    /// Innermost first; all but the first are return addresses.
    pub addresses: Vec<u64>,
    /// It goes on beyond the last.
    pub truncated: bool,
}

/// Unwinds copied stacks. It reads the mapped files, so it is called after the start only.
pub trait Unwinder {
    /// The addresses of one stack; at least the instruction pointer.
    fn unwind(&mut self, stack: &CopiedStack<'_>, place: &StackOrigin<'_>) -> Unwound;
}

/// Knows the innermost frame only.
#[derive(Debug, Clone, Copy, Default)]
pub struct InnermostOnly;

impl Unwinder for InnermostOnly {
    fn unwind(&mut self, stack: &CopiedStack<'_>, _: &StackOrigin<'_>) -> Unwound {
        Unwound { addresses: vec![stack.ip], truncated: true }
    }
}
