//! What this machine could do otherwise for the start, by the models there are: another disk, arranged blocks, the
//! service. Nothing is measured or changed for it.

use std::collections::BTreeMap;
use std::path::Path;

use cold_analyze::model::Analysis;
use cold_model::file_system::Origin;
use cold_model::recording::{FileKind, Recording};
use cold_model::{Bytes, Dev, DeviceModel, path_text};
use cold_plan::Plan;
use cold_prefetch::rehearse::Rehearsal;
use cold_report::diagnosis::Offer;
use cold_service::learning::Look;
use cold_sys::procfs::{Mount, ProcFs};
use cold_sys::sysfs::SysFs;

use crate::commands::layout::disk;

/// What is known of the start.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) plan: &'a Plan,
    /// The recording that the model starts from.
    pub(super) cold: Option<&'a Recording>,
    /// A warm one, which tells what the program computes.
    pub(super) warm: Option<&'a Recording>,
    /// A cold start as starts usually are, analysed.
    pub(super) usual: Option<(&'a Recording, &'a Analysis)>,
}

/// All offers; `state`: where measurements of disks are kept.
pub(super) fn of(known: Known<'_>, state: &Path) -> Vec<Offer> {
    let mut out: Vec<Offer> = known.cold.map_or(Vec::new(), |cold| disks(known, cold, state));
    // Where the blocks cannot be looked at there is nothing to offer: `cold layout disk` tells why.
    if let Ok(Some(reading)) = disk::forecast(known.plan) {
        out.push(Offer::Arranged { reading });
    }
    let read = known.usual.and_then(|(_, a)| a.headline.read.value().copied());
    if read.is_some_and(|read| Look { read_bytes: read.0, major_faults: 0 }.is_cold()) {
        out.push(Offer::Service);
    }
    out
}

/// The start on each other disk that was measured and can be written to.
fn disks(known: Known<'_>, cold: &Recording, state: &Path) -> Vec<Offer> {
    let Some(rehearsal) = Rehearsal::at_most(cold, Some(known.plan), known.plan.device.as_ref()).ok() else {
        return Vec::new();
    };
    let rehearsal = rehearsal.computing_as_in(known.warm, None);
    let (proc, sys) = (ProcFs::default(), SysFs::default());
    let own = own_disk(cold);
    let mut found: Vec<(String, DeviceModel)> = Vec::new();
    // Only disks of this machine: to look at a server that is gone may take for ever, and at an automount mounts it.
    let local = |m: &Mount| matches!(Origin::of(&m.fs_type), Origin::Device | Origin::Volume);
    for mount in proc.mounts().unwrap_or_default().into_iter().filter(local) {
        let writable = mount.options.split(',').any(|option| option == "rw");
        let Ok(device) = cold_probe::device::find(&mount.mount_point, &proc, &sys) else { continue };
        let seen = own == Some(device.dev) || found.iter().any(|(_, model)| model.dev == device.dev);
        if let Some(model) = cold_probe::device::load(state, &device).filter(|_| writable && !seen) {
            found.push((path_text::encode(&mount.mount_point), model));
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let Ok(today) = rehearsal.without() else { return Vec::new() };
    let files = files(known);
    let offer = |(mounted, model): (String, DeviceModel)| {
        let there = rehearsal.without_on(&model).ok()?;
        Some(Offer::Disk { mounted, name: model.name, files: files.clone(), predicted: [today, there] })
    };
    found.into_iter().filter_map(offer).collect()
}

/// The whole disk from which the start itself read most; `None`: it read from none.
fn own_disk(cold: &Recording) -> Option<Dev> {
    let whole = |dev: Dev| cold.whole_disk(dev).unwrap_or(dev);
    let mut read: BTreeMap<Dev, u64> = BTreeMap::new();
    for r in cold.device_reads.iter().flatten().filter(|r| r.in_tree) {
        *read.entry(whole(r.dev)).or_default() += u64::from(r.bytes);
    }
    read.into_iter().max_by_key(|(dev, bytes)| (*bytes, *dev)).map(|(dev, _)| dev)
}

/// The files that a usual cold start reads, the most first.
fn files(known: Known<'_>) -> Vec<(String, Bytes)> {
    let Some((recording, analysis)) = known.usual else { return Vec::new() };
    let regular = |file: u32| recording.files.get(file as usize).is_some_and(|f| f.kind == FileKind::Regular);
    let read = analysis.files.iter().filter(|f| f.read.0 > 0 && regular(f.file));
    let mut files: Vec<_> = read.map(|f| (f.path.clone(), f.read)).collect();
    files.sort_by_key(|(path, bytes)| (std::cmp::Reverse(*bytes), path.clone()));
    files
}
