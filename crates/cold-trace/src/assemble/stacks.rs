//! Stacks: each distinct one once, its addresses as places in files. Pure but for the unwinder.

use std::collections::HashMap;

use cold_model::recording::{Frame, Stack, StackIdx};

use super::space::{Space, Spaces};
use crate::perf::record::PerfFault;
use crate::raw::StackCopy;
use crate::unwind::{CopiedStack, StackOrigin, Unwinder, Unwound};

/// Most frames that are kept of a stack.
const MAX_FRAMES: usize = 256;

/// The table of stacks.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    pub(super) rows: Vec<Stack>,
    known: HashMap<Stack, StackIdx>,
    nothing: Space,
}

impl Stacks {
    /// The index of a stack of these addresses in this process now; `None` when it is empty.
    pub(super) fn add(&mut self, pid: u32, unwound: Unwound, spaces: &Spaces) -> Option<StackIdx> {
        let Unwound { mut addresses, mut truncated } = unwound;
        if addresses.len() > MAX_FRAMES {
            addresses.truncate(MAX_FRAMES);
            truncated = true;
        }
        if addresses.is_empty() {
            return None;
        }
        let frame = |address: u64| {
            // A return address may lie just behind the last instruction of a mapping: never looked up there.
            let found = spaces.find(pid, address);
            let generated = found.is_none() && spaces.generated(pid, address);
            Frame { address, file: found.map(|f| f.0), offset: found.map_or(0, |f| f.1), generated }
        };
        let stack = Stack { frames: addresses.into_iter().map(frame).collect(), truncated };
        if let Some(index) = self.known.get(&stack) {
            return Some(*index);
        }
        let index = StackIdx::try_from(self.rows.len()).ok()?;
        self.rows.push(stack.clone());
        self.known.insert(stack, index);
        Some(index)
    }

    /// Unwinds a copied stack and adds it.
    pub(super) fn unwind(
        &mut self,
        pid: u32,
        copy: &CopiedStack<'_>,
        spaces: &Spaces,
        files: &[cold_model::recording::File],
        unwinder: &mut dyn Unwinder,
    ) -> Option<StackIdx> {
        let place = StackOrigin { pid, space: spaces.of(pid).unwrap_or(&self.nothing), files };
        let unwound = unwinder.unwind(copy, &place);
        self.add(pid, unwound, spaces)
    }
}

/// The registers of a BPF record, which numbers them as DWARF does.
pub(super) fn of_bpf<'a>(copy: &StackCopy<'a>) -> Option<CopiedStack<'a>> {
    let r = |n: usize| if n < copy.valid as usize { copy.registers.get(n).copied() } else { None };
    Some(if cfg!(target_arch = "aarch64") {
        CopiedStack { ip: r(32)?, sp: r(31)?, fp: r(29)?, lr: r(30), bytes: copy.stack }
    } else {
        CopiedStack { ip: r(16)?, sp: r(7)?, fp: r(6)?, lr: None, bytes: copy.stack }
    })
}

/// The registers of a perf sample, in the order of `cold_sys::perf_event::UNWIND_REGISTERS`.
pub(super) fn of_perf<'a>(fault: &PerfFault<'a>) -> Option<CopiedStack<'a>> {
    let mut words =
        fault.registers.chunks_exact(8).filter_map(|b| Some(u64::from_le_bytes(b.try_into().ok()?)));
    let mut next = || words.next();
    Some(if cfg!(target_arch = "aarch64") {
        let (fp, lr, sp, ip) = (next()?, next()?, next()?, next()?);
        CopiedStack { ip, sp, fp, lr: Some(lr), bytes: fault.stack }
    } else {
        let (fp, sp, ip) = (next()?, next()?, next()?);
        CopiedStack { ip, sp, fp, lr: None, bytes: fault.stack }
    })
}
