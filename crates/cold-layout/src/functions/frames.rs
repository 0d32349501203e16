//! Functions that the FDEs of `.eh_frame` describe: in every program whose stacks can be unwound, stripped or not.

use std::collections::HashMap;

use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EndianSlice, RunTimeEndian, UnwindSection as _,
};
use object::{Object as _, ObjectSection as _, ReadRef};

use super::merge::Found;

type Slice<'d> = EndianSlice<'d, RunTimeEndian>;

/// Adds the beginnings of all FDEs up to the first damage.
pub(super) fn read<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, found: &mut Found<'d>) {
    let Some(section) = file.section_by_name(".eh_frame") else { return };
    let Ok(bytes) = section.data() else { return };
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut frames = EhFrame::new(bytes, endian);
    frames.set_address_size(if file.is_64() { 8 } else { 4 });
    let address = |name| file.section_by_name(name).map(|s| s.address());
    let mut bases = BaseAddresses::default().set_eh_frame(section.address());
    if let Some(text) = address(".text") {
        bases = bases.set_text(text);
    }
    if let Some(got) = address(".got") {
        bases = bases.set_got(got);
    }
    // Thousands of FDEs share a CIE.
    let mut known: HashMap<usize, CommonInformationEntry<Slice<'d>>> = HashMap::new();
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let parsed = partial.parse(|section, bases, offset| {
            if let Some(cie) = known.get(&offset.0) {
                return Ok(cie.clone());
            }
            let cie = section.cie_from_offset(bases, offset)?;
            known.insert(offset.0, cie.clone());
            Ok(cie)
        });
        let Ok(fde) = parsed else { continue };
        if fde.len() > 0 && !fde.cie().is_signal_trampoline() {
            found.frame(fde.initial_address(), fde.len());
        }
    }
}
