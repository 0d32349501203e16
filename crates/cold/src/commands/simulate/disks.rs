//! Disks by name.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use cold_analyze::cost::{DeviceCost, bounds};
use cold_analyze::simulate::Recorded;
use cold_model::file::mtime_ns;
use cold_model::recording::{File, FileKind, Recording};
use cold_model::{Dev, path_text};
use cold_sim::disk::Model;

use super::args::{Args, Behind, Place};
use crate::commands::prefetch::{device, plans::StorePlace};
use crate::exit::Failure;
use crate::progress::Line;

/// A disk, and where its figures come from.
pub(super) struct NamedDisk {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) model: Model,
    /// It is the disk of the recording.
    pub(super) is_recorded: bool,
}

/// Those that were asked for; the recorded one where none was.
pub(super) fn all(
    args: &Args,
    recording: &Recording,
    start: &Recorded,
    line: &mut Line<'_>,
) -> Result<Vec<NamedDisk>, Failure> {
    // A measured disk is known at all sizes and depths, a recorded one at those that came up.
    let place = if here(recording, start).is_some() { Place::Measured } else { Place::Recorded };
    let default = [Behind { place, way_ns: 0, way_ns_per_mib: 0 }];
    let disks = if args.disk.is_empty() { default.as_slice() } else { &args.disk };
    let mut each = |Behind { place, way_ns, way_ns_per_mib }| {
        let disk = one(place, recording, start, line)?;
        let ms = |ns: u64| ns as f64 / 1e6;
        let (name, way) = match (way_ns, way_ns_per_mib) {
            (0, 0) => return Ok(disk),
            (each, 0) => (format!("+{}", ms(each)), format!("{} ms", ms(each))),
            (each, per_mib) => (
                format!("+{}+{}", ms(each), ms(per_mib)),
                format!("{} ms, and {} ms for each MiB", ms(each), ms(per_mib)),
            ),
        };
        Ok(NamedDisk {
            name: format!("{}{name}", disk.name),
            source: format!("{}; behind a way of {way}", disk.source),
            model: disk.model.behind(way_ns, way_ns_per_mib),
            is_recorded: false,
        })
    };
    disks.iter().map(|disk| each(*disk)).collect()
}

fn one(
    place: Place,
    recording: &Recording,
    start: &Recorded,
    line: &mut Line<'_>,
) -> Result<NamedDisk, Failure> {
    match place {
        Place::Recorded => {
            let cost = DeviceCost::of(recording).filter(DeviceCost::knows_sizes).ok_or_else(|| {
                let why = "the requests of this recording are too few or too much alike to tell what its disk costs";
                Failure::usage(why).hint("name a disk: --disk measured, or --disk sata-ssd")
            })?;
            Ok(NamedDisk {
                name: "recorded".to_owned(),
                source: "a line through the requests of this recording".to_owned(),
                model: cost.disk(bounds(recording)),
                is_recorded: true,
            })
        }
        Place::Measured => measured(recording, start, line),
        Place::Preset(preset) => Ok(NamedDisk {
            name: preset.name().to_owned(),
            source: preset.source().to_owned(),
            model: preset.model(),
            is_recorded: false,
        }),
    }
}

/// The file that the start needs most of, where that is a regular one.
fn most_needed<'a>(recording: &'a Recording, start: &Recorded) -> Option<&'a File> {
    let file = recording.files.get(start.most_needed()? as usize)?;
    (file.kind == FileKind::Regular).then_some(file)
}

/// That file's path, where this machine has the very file that was recorded.
fn here(recording: &Recording, start: &Recorded) -> Option<PathBuf> {
    let file = most_needed(recording, start)?;
    let path = path_text::decode(file.path.as_deref()?);
    let meta = path.metadata().ok()?;
    let same = Dev::of_number(meta.dev()) == file.dev && Some(meta.size()) == file.size;
    (same && Some(mtime_ns(&meta)) == file.mtime_ns).then_some(path)
}

/// The disk of this machine that has the file that the start needs most of.
fn measured(recording: &Recording, start: &Recorded, line: &mut Line<'_>) -> Result<NamedDisk, Failure> {
    let same = here(recording, start);
    let is_recorded = same.is_some();
    let named = || Some(path_text::decode(most_needed(recording, start)?.path.as_deref()?));
    let Some(path) = same.or_else(named).filter(|path| path.is_file()) else {
        let why = "the file that was needed most is not on this machine, so its disk is not known";
        return Err(Failure::usage(why).hint("name a disk: --disk recorded, or --disk sata-ssd"));
    };
    line.step("measuring the disk");
    let state = StorePlace::default().state()?;
    let model = device::near(&path, Some(path.clone()), &state)?;
    Ok(NamedDisk {
        name: "measured".to_owned(),
        source: format!("{} of this machine, as `cold probe device` measures it", model.name),
        model: Model { request: bounds(recording), ..Model::measured(&model) },
        is_recorded,
    })
}
