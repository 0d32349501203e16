//! Compiles a plan for the device its files lie on, which is measured first where nobody has.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cold_model::recording::tables::Dev;
use cold_model::{DeviceModel, Extent};
use cold_plan::Plan;
use cold_plan::plan::{FileKind, Knobs};
use cold_probe::device::Effort;

use crate::progress::Line;
use crate::ui::Ui;

/// Makes the plan's steps with the knobs that fit the device. Without a measured device careful knobs are
/// used, and that is said. Measurements are kept in `state`.
pub(super) fn compile(plan: &mut Plan, state: &Path, line: &mut Line<'_>, ui: &Ui) {
    let device = model(plan, state, line, ui);
    let knobs = cold_prefetch::default_knobs(device.as_ref());
    steps(plan, &knobs, device.as_ref());
}

/// Makes the steps for a device that is known.
pub(super) fn steps(plan: &mut Plan, knobs: &Knobs, device: Option<&DeviceModel>) {
    cold_prefetch::compile(plan, knobs, device, &extents);
}

/// Where a file lies on its device, as far as its file system tells.
fn extents(path: &Path) -> Option<Vec<Extent>> {
    let (file, _) = cold_sys::open::regular(path, true).ok()?;
    cold_sys::extents::extents(&file).ok().flatten()
}

/// A file on the device that most of the plan's bytes are read from.
fn busiest(plan: &Plan) -> Option<&Path> {
    let mut bytes: HashMap<Dev, (u64, &Path)> = HashMap::new();
    for range in &plan.ranges {
        let file = plan.files.get(range.file as usize).filter(|f| f.kind == FileKind::Regular);
        if let Some(file) = file {
            let entry = bytes.entry(file.identity.dev).or_insert((0, &file.path));
            entry.0 += u64::from(range.pages);
        }
    }
    bytes.into_iter().max_by_key(|(_, (pages, _))| *pages).map(|(_, (_, path))| path)
}

/// The measurement kept for the device of this file, or a new one: with a temporary file where this user may
/// make one on the device, else with the largest file of the plan there.
fn measured(plan: &Plan, path: &Path, state: &Path) -> Result<DeviceModel, cold_probe::device::Error> {
    let dev = |p: &Path| p.metadata().ok().map(|m| m.dev());
    let here = dev(path);
    let directories = [path.parent(), Some(state), Some(Path::new("/var/tmp")), Some(Path::new("/tmp"))];
    let directories = directories.into_iter().flatten().map(Path::to_owned);
    let largest = plan.files.iter().filter(|f| f.kind == FileKind::Regular && dev(&f.path) == here);
    let largest = largest.max_by_key(|f| f.identity.size).map(|f| f.path.clone());
    for place in directories.chain(largest).filter(|p| dev(p) == here) {
        if let Ok(model) = cold_probe::device::load_or_measure(&place, state, Effort::Usual) {
            return Ok(model);
        }
    }
    cold_probe::device::load_or_measure(path, state, Effort::Usual)
}

/// What its reads cost; `None` when that could not be measured.
fn model(plan: &Plan, state: &Path, line: &mut Line<'_>, ui: &Ui) -> Option<DeviceModel> {
    let path = busiest(plan)?;
    line.step(&format!("measuring what reads from the device of {} cost", path.display()));
    match measured(plan, path, state) {
        Ok(model) => Some(model),
        Err(why) => {
            ui.note(format!("the device of {} was not measured: {why}", path.display()));
            None
        }
    }
}
