//! Where a recording's files lie, as its requests show.

use std::collections::{BTreeMap, HashMap};

use cold_model::Dev;
use cold_model::io_model::Extent;
use cold_model::recording::manifest::Device;
use cold_model::recording::{FileIdx, FileKind, Recording};

use cold_sim::disk::Layout;

/// Bytes in a sector, the unit of the block layer.
const SECTOR: u64 = 512;

/// The device of this number, whole or partition.
pub(super) fn device(recording: &Recording, dev: Dev) -> Option<&Device> {
    recording.manifest.devices.iter().find(|d| d.dev == dev)
}

/// Size of each file, or as far as pages of it were seen where nobody knows it.
pub(super) fn bytes(recording: &Recording, names: &[FileIdx], page_bytes: u64) -> Vec<u64> {
    let touches = recording.touches.iter().flatten().map(|t| (t.file, t.first_page, t.pages));
    let fills = recording.fills.iter().flatten().map(|f| (f.file, f.first_page, f.pages));
    let mut ends: HashMap<FileIdx, u64> = HashMap::new();
    for (file, first, pages) in touches.chain(fills) {
        let end = ends.entry(file).or_default();
        *end = first.saturating_add(u64::from(pages)).max(*end);
    }
    let of = |index: &FileIdx| {
        let file = recording.files.get(*index as usize).filter(|f| f.kind != FileKind::BlockDevice);
        let known = file.and_then(|f| f.size).filter(|size| *size > 0);
        known.unwrap_or_else(|| ends.get(index).copied().unwrap_or(0).saturating_mul(page_bytes))
    };
    names.iter().map(of).collect()
}

/// All files, each whole disk a disk of its own, numbered as they come; and which disk each number is.
pub(super) fn of(
    recording: &Recording,
    names: &[FileIdx],
    bytes: &[u64],
    page_bytes: u64,
) -> (Layout, Vec<Option<Dev>>) {
    let mut layout = Layout::new(page_bytes);
    let mut seen = seen(recording, page_bytes);
    let mut disks: Vec<Option<Dev>> = Vec::new();
    for (file, bytes) in names.iter().zip(bytes.iter().copied()) {
        let dev = recording.files.get(*file as usize).and_then(|f| recording.whole_disk(f.dev));
        let disk = disks.iter().position(|d| *d == dev).unwrap_or_else(|| {
            disks.push(dev);
            disks.len() - 1
        });
        let extents = seen
            .remove(file)
            .map(|runs| filled_up(&runs, bytes.div_ceil(page_bytes).saturating_mul(page_bytes)));
        layout.add(disk, bytes, extents.as_deref());
    }
    (layout, disks)
}

/// Runs of each file that a request brought: logical to physical bytes.
fn seen(recording: &Recording, page_bytes: u64) -> HashMap<FileIdx, BTreeMap<u64, Extent>> {
    let mut out: HashMap<FileIdx, BTreeMap<u64, Extent>> = HashMap::new();
    let reads = recording.device_reads.as_deref().unwrap_or_default();
    let mut within: (u32, u64) = (u32::MAX, 0);
    for t in recording.transfers.iter().flatten() {
        if within.0 != t.request {
            within = (t.request, 0);
        }
        let bytes = u64::from(t.pages).saturating_mul(page_bytes);
        if let (Some(file), Some(read)) = (t.file, reads.get(t.request as usize)) {
            let logical = t.first_page.saturating_mul(page_bytes);
            let physical = read.sector.saturating_mul(SECTOR).saturating_add(within.1);
            out.entry(file).or_default().insert(logical, Extent { logical, physical, bytes });
        }
        within.1 = within.1.saturating_add(bytes);
    }
    out
}

/// What lies between two runs that were seen lies behind the first; before the first one, before it.
fn filled_up(seen: &BTreeMap<u64, Extent>, bytes: u64) -> Vec<Extent> {
    let mut out: Vec<Extent> = Vec::new();
    for e in seen.values() {
        match out.last_mut() {
            None => {
                let before = e.logical.min(e.physical);
                let first = Extent {
                    logical: e.logical - before,
                    physical: e.physical - before,
                    bytes: e.bytes.saturating_add(before),
                };
                out.push(first);
            }
            Some(last) => {
                last.bytes = e.logical.saturating_sub(last.logical);
                let goes_on = last.physical.saturating_add(last.bytes) == e.physical;
                if goes_on {
                    last.bytes = last.bytes.saturating_add(e.bytes);
                } else {
                    out.push(*e);
                }
            }
        }
    }
    if let Some(last) = out.last_mut() {
        last.bytes = last.bytes.max(bytes.saturating_sub(last.logical));
    }
    out
}
