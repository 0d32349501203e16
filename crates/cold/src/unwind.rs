//! Copied stacks of a recording, unwound by the tables of the files that were mapped.

use std::collections::HashMap;
use std::path::Path;

use cold_symbols::unwind::Registers;
use cold_trace::unwind::{CopiedStack, StackOrigin, Unwinder, Unwound};

/// Joins what the recorder asks with who can read unwind tables.
#[derive(Default)]
pub(crate) struct Tables {
    unwinder: cold_symbols::unwind::Unwinder,
    /// Per process: the state of its mappings that the unwinder was told.
    told: HashMap<u32, u64>,
}

impl Tables {
    fn tell(&mut self, place: &StackOrigin<'_>) {
        let revision = place.space.revision();
        if self.told.insert(place.pid, revision) == Some(revision) {
            return;
        }
        self.unwinder.clear(place.pid);
        for area in place.space.areas().filter(|a| a.executable()) {
            let file = area.file.and_then(|f| place.files.get(f as usize));
            if let Some(path) = file.and_then(|f| f.path.as_deref()) {
                let (pid, bytes) = (place.pid, area.end.saturating_sub(area.start));
                self.unwinder.map(pid, area.start, bytes, area.offset, Path::new(path));
            }
        }
    }
}

impl Unwinder for Tables {
    fn unwind(&mut self, stack: &CopiedStack<'_>, place: &StackOrigin<'_>) -> Unwound {
        self.tell(place);
        let registers = match stack.lr {
            Some(lr) => Registers::Aarch64 { pc: stack.ip, sp: stack.sp, fp: stack.fp, lr },
            None => Registers::X86_64 { ip: stack.ip, sp: stack.sp, bp: stack.fp },
        };
        let found = self.unwinder.unwind(place.pid, &registers, stack.bytes);
        Unwound { addresses: found.addresses, truncated: found.truncated }
    }
}
