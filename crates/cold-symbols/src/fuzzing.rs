//! The readers of ELF files for arbitrary bytes.

use std::path::Path;

use crate::layout::{Options, read_file};
use crate::occurs::Occurs;
use crate::unwind::{Registers, Unwinder};

/// Reads the file at `path` in every way there is: its functions, layout with all symbols, names of some frames from
/// DWARF, and the unwinding of a stack full of return addresses into it.
pub fn program(path: &Path) {
    let _ = crate::build_id(path);
    if let Ok((file, meta)) = cold_sys::open::regular(path, true) {
        let _ = crate::functions(file, meta, path, &Options { debug_directories: Vec::new() });
    }
    let Ok(image) = crate::elf::Image::open(path) else { return };
    let Ok(object) = image.parse() else { return };
    let options = Options { debug_directories: Vec::new() };
    let _ = read_file(&object, path, &Occurs::everything(image.meta.len()), &options);
    let base = 0x7f00_0000_0000_u64;
    let mut unwinder = Unwinder::new();
    unwinder.map(1, base, image.meta.len(), 0, path);
    let stack: Vec<u8> = (0..512).flat_map(|n| (base + 97 * n).to_le_bytes()).collect();
    for at in (0..image.meta.len()).step_by(61) {
        let (ip, sp) = (base + at, 0x7fff_0000_0000);
        let _ = unwinder.unwind(1, &Registers::X86_64 { ip, sp, bp: sp + 64 }, &stack);
        let _ = unwinder.unwind(1, &Registers::Aarch64 { pc: ip, sp, fp: sp + 64, lr: ip + 4 }, &stack);
    }
}
