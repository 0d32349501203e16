//! Libraries of the profile, and frames as addresses in them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cold_model::hash::of_hexadecimal;
use cold_model::layout::{FileLayout, Layouts};
use cold_model::recording::{FileIdx, Frame, Recording};
use fxprof_processed_profile::debugid::{CodeId, DebugId};
use fxprof_processed_profile::{
    CategoryHandle, FrameFlags, FrameInfo, LibraryHandle, LibraryInfo, Profile, Symbol, SymbolTable,
};

use crate::wording;

/// Libraries by their file.
pub(super) struct Libraries(HashMap<FileIdx, LibraryHandle>);

impl Libraries {
    /// Adds those that frames lie in, with the names of these frames as their symbols.
    pub(super) fn add(profile: &mut Profile, recording: &Recording, layouts: &Layouts) -> Self {
        let mut symbols: BTreeMap<FileIdx, Vec<Symbol>> = BTreeMap::new();
        for frame in recording.stacks.iter().flatten().flat_map(|s| &s.frames) {
            if let Some(file) = frame.file {
                symbols.entry(file).or_default();
            }
        }
        for (frame, names) in &layouts.frames {
            let Some((file, layout)) = frame.file.and_then(|f| Some((f, layouts.files.get(&f)?))) else {
                continue;
            };
            let function = layout.symbols.partition_point(|s| s.offset <= frame.offset).checked_sub(1);
            let Some(outer) = names.last() else { continue };
            // A function known from debug information only begins, for all that is known, at the frame.
            let (offset, bytes) = function
                .and_then(|n| layout.symbols.get(n))
                .filter(|s| s.name == outer.function && frame.offset - s.offset <= s.bytes)
                .map_or((frame.offset.saturating_sub(1), 2), |s| (s.offset, s.bytes));
            let (Some(address), Ok(size)) = (relative(layout, offset), u32::try_from(bytes)) else {
                continue;
            };
            symbols.entry(file).or_default().push(Symbol {
                address,
                size: Some(size),
                name: outer.function.clone(),
            });
        }
        let handle = |(file, symbols): (FileIdx, Vec<Symbol>)| {
            let handle = profile.add_lib(info(recording, file));
            if !symbols.is_empty() {
                profile.set_lib_symbol_table(handle, Arc::new(SymbolTable::new(symbols)));
            }
            (file, handle)
        };
        Self(symbols.into_iter().map(handle).collect())
    }

    /// A frame, outermost function first: its address, then one label per inlined function.
    pub(super) fn frames(
        &self,
        profile: &mut Profile,
        recording: &Recording,
        layouts: &Layouts,
        frame: &Frame,
        innermost: bool,
        category: CategoryHandle,
    ) -> Vec<FrameInfo> {
        use fxprof_processed_profile::Frame as F;
        let names = layouts.frames.get(frame).map_or(&[][..], Vec::as_slice);
        let library = frame
            .file
            .and_then(|f| Some((*self.0.get(&f)?, relative(layouts.files.get(&f)?, frame.offset)?)));
        let outer = match library {
            Some((library, address)) if innermost => {
                F::RelativeAddressFromInstructionPointer(library, address)
            }
            Some((library, address)) => F::RelativeAddressFromReturnAddress(library, address),
            None => {
                let name = wording::functions(recording, layouts, frame).pop().unwrap_or_default();
                F::Label(profile.intern_string(&name))
            }
        };
        let inlined = names.iter().rev().skip(1).map(|n| F::Label(profile.intern_string(&n.function)));
        let inlined: Vec<F> = inlined.collect();
        let info = |frame| FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() };
        std::iter::once(outer).chain(inlined).map(info).collect()
    }
}

/// Address of a byte of the file, from the first loaded one.
fn relative(layout: &FileLayout, offset: u64) -> Option<u32> {
    let base = layout.segments.iter().map(|s| s.address).min()?;
    let inside = |s: &&cold_model::layout::Segment| offset >= s.offset && offset - s.offset < s.bytes;
    let code = layout.segments.iter().filter(|s| s.access.ends_with('x')).find(inside);
    let segment = code.or_else(|| layout.segments.iter().find(inside))?;
    let address = segment.address.checked_add(offset - segment.offset)?;
    u32::try_from(address.checked_sub(base)?).ok()
}

fn info(recording: &Recording, file: FileIdx) -> LibraryInfo {
    let path = wording::path(recording, file);
    let name = wording::base(&path).to_owned();
    let id = recording.files.get(file as usize).and_then(|f| f.build_id.clone());
    LibraryInfo {
        debug_name: name.clone(),
        name,
        debug_path: path.clone(),
        path,
        debug_id: id.as_deref().and_then(debug_id).unwrap_or_default(),
        code_id: id.map(|id| CodeId::new(id).to_string()),
        arch: (!recording.manifest.machine.architecture.is_empty())
            .then(|| recording.manifest.machine.architecture.clone()),
        symbol_table: None,
    }
}

/// Breakpad's form of a build-id: its first 16 bytes as a GUID, whose numbers are little-endian.
fn debug_id(build_id: &str) -> Option<DebugId> {
    let mut bytes = [0_u8; 16];
    // A shorter id is filled up with zeroes.
    for (slot, byte) in bytes.iter_mut().zip(of_hexadecimal(build_id)?) {
        *slot = byte;
    }
    DebugId::from_guid_age(&bytes, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pair that Breakpad's `dump_syms` and Mozilla's symbol server use.
    #[test]
    fn a_build_id_becomes_the_id_that_symbol_servers_know() {
        let id = debug_id("be4e976c325246ee9d6b7847a670b2a9ffffffff").unwrap();
        assert_eq!(id.breakpad().to_string(), "6C974EBE5232EE469D6B7847A670B2A90");
        assert_eq!(debug_id("xy"), None);
        assert!(debug_id("be4e").is_some());
    }
}
