//! Compiles a plan for the device its files lie on, which is measured first where nobody has.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_model::recording::Recording;
use cold_model::{Dev, DeviceModel, Extent};
use cold_plan::Plan;
use cold_plan::plan::{FileKind, Knobs};
use cold_prefetch::{DevicePart, Ground};
use cold_probe::device::DeviceEffort;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;

use crate::progress::Line;
use crate::ui::Ui;

/// Recorded starts that a plan is compiled by.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Of<'a> {
    /// A cold one, with exact needs if possible.
    pub(super) cold: Option<&'a Recording>,
    /// A warm one: it tells what the program computes.
    pub(super) warm: Option<&'a Recording>,
}

/// Makes the plan's steps with the knobs that fit the device, and its bound. Without a measured device careful knobs are
/// used, and that is said. Measurements are kept in `state`.
/// `starts`: recorded ones, to choose the gap by where needs are exact, and for the bound.
pub(super) fn compile(plan: &mut Plan, starts: Of<'_>, state: &Path, line: &mut Line<'_>, ui: &Ui) {
    let device = model(plan, state, line, ui);
    let Of { cold, warm } = starts;
    let by_start = |start| cold_prefetch::knobs_by(start, warm, plan, device.as_ref(), &extents).ok();
    let knobs = cold.filter(|_| plan.learnt.exact).and_then(by_start);
    let knobs = knobs.unwrap_or_else(|| cold_prefetch::knobs_for(plan, device.as_ref()));
    steps(plan, &knobs, device.as_ref());
    let latest = cold.and_then(|cold| cold_prefetch::Latest::of(cold, warm));
    plan.bound = cold_prefetch::bound(plan, GROUND, latest.as_ref());
}

/// Makes the steps for a device that is known.
pub(crate) fn steps(plan: &mut Plan, knobs: &Knobs, device: Option<&DeviceModel>) {
    cold_prefetch::compile(plan, knobs, device, &extents);
}

/// Where a file lies on its device, as far as its file system tells.
pub(crate) fn extents(path: &Path) -> Option<Vec<Extent>> {
    let (file, _) = cold_sys::open::regular(path, true).ok()?;
    cold_sys::extents::extents(&file).ok().flatten()
}

/// The whole disk that a file lies on.
fn disk(path: &Path) -> Option<Dev> {
    Some(cold_probe::device::find(path, &ProcFs::default(), &SysFs::default()).ok()?.dev)
}

/// Files as they lie on this machine.
pub(crate) const GROUND: Ground<'static> = Ground { extents: &extents, disk: &disk };

/// A file of the plan on each device that may decide how long it takes.
fn places(plan: &Plan) -> impl Iterator<Item = (DevicePart, &Path)> {
    let of = |part: DevicePart| {
        let of_ranges = plan.ranges.iter().filter_map(|r| plan.files.get(r.file as usize));
        let mut there = of_ranges.filter(move |f| f.kind == FileKind::Regular && f.identity.dev == part.dev);
        Some((part, there.next()?.path.as_path()))
    };
    cold_prefetch::parts(plan).into_iter().filter_map(of)
}

/// Of devices that were measured the one that takes longest for its part: the others have read theirs by then.
fn slowest(measured: impl Iterator<Item = (DevicePart, DeviceModel)>) -> Option<DeviceModel> {
    let times = measured.map(|(part, model)| (part.time_on(&model), model));
    times.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, model)| model)
}

/// The measurement kept for the device of this file, or a new one: with a temporary file where this user may
/// make one on the device, else with the largest file at hand there.
pub(crate) fn near(
    path: &Path,
    largest: Option<PathBuf>,
    state: &Path,
) -> Result<DeviceModel, cold_probe::device::Error> {
    let dev = |p: &Path| p.metadata().ok().map(|m| m.dev());
    let here = dev(path);
    let directories = [path.parent(), Some(state), Some(Path::new("/var/tmp")), Some(Path::new("/tmp"))];
    let directories = directories.into_iter().flatten().map(Path::to_owned);
    for place in directories.chain(largest).filter(|p| dev(p) == here) {
        if let Ok(model) = cold_probe::device::load_or_measure(&place, state, DeviceEffort::Usual) {
            return Ok(model);
        }
    }
    cold_probe::device::load_or_measure(path, state, DeviceEffort::Usual)
}

/// The plan's largest file on the device of this one.
fn largest(plan: &Plan, path: &Path) -> Option<PathBuf> {
    let dev = |p: &Path| p.metadata().ok().map(|m| m.dev());
    let here = dev(path);
    let there = plan.files.iter().filter(|f| f.kind == FileKind::Regular && dev(&f.path) == here);
    there.max_by_key(|f| f.identity.size).map(|f| f.path.clone())
}

/// The kept measurement of the device that decides how long the plan takes, as far as they are kept: nothing is measured.
pub(crate) fn kept(plan: &Plan, state: &Path) -> Option<DeviceModel> {
    let of = |(part, path): (DevicePart, &Path)| {
        let found = cold_probe::device::find(path, &ProcFs::default(), &SysFs::default()).ok()?;
        Some((part, cold_probe::device::load(state, &found)?))
    };
    slowest(places(plan).filter_map(of))
}

/// What the reads of the device cost that decides how long the plan takes; `None` when that could not be measured.
pub(super) fn model(plan: &Plan, state: &Path, line: &mut Line<'_>, ui: &Ui) -> Option<DeviceModel> {
    let measure = |(part, path): (DevicePart, &Path)| {
        line.step(&format!("measuring what reads from the device of {} cost", path.shown()));
        match near(path, largest(plan, path), state) {
            Ok(model) => Some((part, model)),
            Err(why) => {
                ui.note(format!("the device of {} was not measured: {why}", path.shown()));
                None
            }
        }
    };
    slowest(places(plan).filter_map(measure))
}
