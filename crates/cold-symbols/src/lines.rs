//! Functions, inlined functions and source lines of addresses, from DWARF.

use std::borrow::Cow;
use std::collections::HashMap;

use addr2line::Context;
use cold_model::layout::FrameName;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian};
use object::{Object as _, ObjectSection as _};

use crate::demangle::demangle;
use crate::elf::{Object, section_bytes};

/// Most debug information of one file that is read, unpacked. libxul's (1.6 GiB) would take longer than
/// the report may; its functions are still named by their symbols.
const MAX_DWARF: u64 = 256 << 20;
/// Most functions inlined into one another that are listed.
const MAX_INLINED: usize = 64;

type Sections<'a> = DwarfSections<Cow<'a, [u8]>>;

/// Names for those of `addresses` (virtual, in the file's own numbering) that DWARF knows; innermost
/// first. `shared` is the file that `object` shares debug information with, if any.
pub(crate) fn names(
    object: &Object<'_>,
    shared: Option<&Object<'_>>,
    addresses: &[u64],
) -> HashMap<u64, Vec<FrameName>> {
    let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let Some(sections) = load(object) else { return HashMap::new() };
    let shared = shared.and_then(load);
    let dwarf = sections.borrow_with_sup(shared.as_ref(), |bytes| EndianSlice::new(bytes.as_ref(), endian));
    let Ok(context) = Context::from_dwarf(dwarf) else { return HashMap::new() };
    addresses.iter().filter_map(|a| Some((*a, at(&context, *a)?))).collect()
}

fn at(context: &Context<EndianSlice<'_, RunTimeEndian>>, address: u64) -> Option<Vec<FrameName>> {
    let mut frames = context.find_frames(address).skip_all_loads().ok()?;
    let mut names = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let Some(function) = frame.function else { break };
        let Ok(raw) = function.raw_name() else { break };
        let location = frame.location.as_ref();
        names.push(FrameName {
            function: demangle(raw.as_bytes()),
            source: location.and_then(|l| l.file).map(str::to_owned),
            line: location.and_then(|l| l.line).filter(|line| *line > 0),
            inlined: true,
        });
        if names.len() == MAX_INLINED {
            break;
        }
    }
    names.last_mut()?.inlined = false;
    Some(names)
}

/// Loads the sections; `None` where there is no debug information or too much.
fn load<'a>(object: &Object<'a>) -> Option<Sections<'a>> {
    let total: u64 = object
        .sections()
        .filter(|s| s.name().is_ok_and(|n| n.starts_with(".debug_")))
        .filter_map(|s| s.compressed_file_range().ok())
        .map(|range| range.uncompressed_size)
        .fold(0, u64::saturating_add);
    if total == 0 || total > MAX_DWARF {
        return None;
    }
    DwarfSections::load(|id| {
        Ok::<_, std::convert::Infallible>(section_bytes(object, id.name(), MAX_DWARF).unwrap_or_default())
    })
    .ok()
}
