//! Unwinding a copied stack: registers and stack bytes in, addresses out.
//!
//! By the unwind tables that every file on x86-64 and aarch64 carries (`.eh_frame`), so programs built
//! without frame pointers give whole stacks. Tables are read when an unwind first needs them and kept
//! once per file, for all processes.

mod tables;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder as _};

use tables::{Part, Tables};

/// Most frames of one stack.
pub const MAX_FRAMES: usize = 256;

/// Registers of a thread at the moment its stack was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registers {
    /// Of a thread on x86-64.
    X86_64 {
        /// Instruction pointer (rip).
        ip: u64,
        /// Stack pointer (rsp): address of the first byte of the copied stack.
        sp: u64,
        /// rbp: the frame pointer in code that keeps one, else any value.
        bp: u64,
    },
    /// Of a thread on arm64.
    Aarch64 {
        /// Program counter (pc).
        pc: u64,
        /// Stack pointer (sp): address of the first byte of the copied stack.
        sp: u64,
        /// x29: the frame pointer in code that keeps one, else any value.
        fp: u64,
        /// x30, the link register: return address of a function that calls no other.
        lr: u64,
    },
}

/// A stack, unwound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unwound {
    /// Innermost first. The first is the instruction pointer, the others are return addresses, which
    /// point behind the call.
    pub addresses: Vec<u64>,
    /// It goes on beyond the last one: the copy ends, no table covers the code, or [`MAX_FRAMES`].
    pub truncated: bool,
}

/// Unwinds stacks of many processes.
#[derive(Default)]
pub struct Unwinder {
    processes: HashMap<u32, Process>,
    files: HashMap<PathBuf, Option<Arc<Tables>>>,
    x86_64: Option<CacheX86_64>,
    aarch64: Option<CacheAarch64>,
}

/// One executable mapping.
#[derive(Clone)]
struct Mapped {
    first: u64,
    end: u64,
    offset: u64,
    path: PathBuf,
}

impl Mapped {
    fn holds(&self, address: u64) -> bool {
        self.first <= address && address < self.end
    }
}

#[derive(Clone, Default)]
struct Process {
    mapped: Vec<Mapped>,
    /// Made of `mapped` when a stack of this process is first unwound after a change.
    ready: Option<Ready>,
}

#[derive(Clone)]
enum Ready {
    X86_64(UnwinderX86_64<Part>),
    Aarch64(UnwinderAarch64<Part>),
}

impl Unwinder {
    /// Without any process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Process `pid` maps `bytes` of the file at `path` from `offset` on at `address`, executable. Replaces
    /// what lay there.
    pub fn map(&mut self, pid: u32, address: u64, bytes: u64, offset: u64, path: &Path) {
        let end = address.saturating_add(bytes);
        let process = self.processes.entry(pid).or_default();
        process.ready = None;
        cut(&mut process.mapped, address, end);
        process.mapped.push(Mapped { first: address, end, offset, path: path.to_owned() });
    }

    /// Process `child` begins as a copy of `parent`.
    pub fn fork(&mut self, parent: u32, child: u32) {
        if let Some(process) = self.processes.get(&parent) {
            let copy = process.clone();
            self.processes.insert(child, copy);
        }
    }

    /// Process `pid` executed another program, or ended: its mappings are gone.
    pub fn clear(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// Unwinds a stack of process `pid`; `stack` holds the bytes from the stack pointer on.
    pub fn unwind(&mut self, pid: u32, registers: &Registers, stack: &[u8]) -> Unwound {
        let Some(process) = self.processes.get_mut(&pid) else {
            return Unwound { addresses: vec![registers.ip()], truncated: true };
        };
        let (mapped, files) = (&process.mapped, &mut self.files);
        let sp = registers.sp();
        let mut read = |address: u64| {
            let at = address.checked_sub(sp).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
            let word = stack.get(at..).and_then(<[u8]>::first_chunk::<8>).ok_or(())?;
            Ok(u64::from_le_bytes(*word))
        };
        let mut found = match *registers {
            Registers::X86_64 { ip, sp, bp } => {
                if !matches!(process.ready, Some(Ready::X86_64(_))) {
                    let mut unwinder = UnwinderX86_64::new();
                    modules(mapped, files).for_each(|m| unwinder.add_module(m));
                    process.ready = Some(Ready::X86_64(unwinder));
                }
                let Some(Ready::X86_64(unwinder)) = &process.ready else { return Unwound::default() };
                let cache = self.x86_64.get_or_insert_default();
                let mut frames =
                    unwinder.iter_frames(ip, UnwindRegsX86_64::new(ip, sp, bp), cache, &mut read);
                collect(mapped, || frames.next().map_err(drop))
            }
            Registers::Aarch64 { pc, sp, fp, lr } => {
                if !matches!(process.ready, Some(Ready::Aarch64(_))) {
                    let mut unwinder = UnwinderAarch64::new();
                    modules(mapped, files).for_each(|m| unwinder.add_module(m));
                    process.ready = Some(Ready::Aarch64(unwinder));
                }
                let Some(Ready::Aarch64(unwinder)) = &process.ready else { return Unwound::default() };
                let cache = self.aarch64.get_or_insert_default();
                // Linux gives user space 48 bits of address at most by default; the bits above may sign it.
                let mask = framehop::aarch64::PtrAuthMask::from_max_known_address((1 << 48) - 1);
                let registers = UnwindRegsAarch64::new_with_ptr_auth_mask(mask, lr, sp, fp);
                let mut frames = unwinder.iter_frames(pc, registers, cache, &mut read);
                collect(mapped, || frames.next().map_err(drop))
            }
        };
        // Code without tables is unwound by frame pointers, whose end may be any register that is 0.
        let covered = |m: &Mapped| files.get(&m.path).is_some_and(|t| t.as_ref().is_some_and(|t| t.any()));
        let last = found.addresses.last().copied().unwrap_or_default();
        found.truncated |= !mapped.iter().any(|m| m.holds(last.saturating_sub(1)) && covered(m));
        found
    }
}

impl Registers {
    fn ip(&self) -> u64 {
        match *self {
            Self::X86_64 { ip, .. } => ip,
            Self::Aarch64 { pc, .. } => pc,
        }
    }

    fn sp(&self) -> u64 {
        match *self {
            Self::X86_64 { sp, .. } | Self::Aarch64 { sp, .. } => sp,
        }
    }
}

/// Takes frames until the stack ends. An address outside all files is where guessing by frame pointers
/// went astray, or generated code, which has no tables.
fn collect(mapped: &[Mapped], mut next: impl FnMut() -> Result<Option<FrameAddress>, ()>) -> Unwound {
    let known = |address| mapped.iter().any(|m| m.holds(address));
    let mut addresses = Vec::new();
    loop {
        match next() {
            Ok(Some(frame)) if addresses.is_empty() || known(frame.address_for_lookup()) => {
                addresses.push(frame.address());
            }
            Ok(None) => return Unwound { addresses, truncated: false },
            Ok(Some(_)) | Err(()) => return Unwound { addresses, truncated: true },
        }
        if addresses.len() == MAX_FRAMES {
            return Unwound { addresses, truncated: true };
        }
    }
}

/// Takes `first..end` out of the mappings.
fn cut(mapped: &mut Vec<Mapped>, first: u64, end: u64) {
    let mut tails = Vec::new();
    mapped.retain_mut(|m| {
        if m.end <= first || end <= m.first {
            return true;
        }
        if end < m.end {
            tails.push(Mapped { first: end, offset: m.offset.saturating_add(end - m.first), ..m.clone() });
        }
        m.end = first;
        m.first < first
    });
    mapped.extend(tails);
}

/// What framehop is to know of the mappings whose files have tables.
fn modules<'a>(
    mapped: &'a [Mapped],
    files: &'a mut HashMap<PathBuf, Option<Arc<Tables>>>,
) -> impl Iterator<Item = Module<Part>> + 'a {
    mapped.iter().filter_map(|m| {
        let tables = match files.get(&m.path) {
            Some(known) => known.clone(),
            None => files.entry(m.path.clone()).or_insert(Tables::open(&m.path).map(Arc::new)).clone(),
        }?;
        tables.module(m.first..m.end, m.offset)
    })
}

#[cfg(test)]
pub(crate) mod tests;
