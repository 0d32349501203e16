//! Measured devices, one JSON file each, in the directory of the state.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cold_model::DeviceModel;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;
use serde::{Deserialize, Serialize};

use super::{DeviceEffort, Error, FoundDevice, find, measure_found};

/// A measurement is good for so long.
const GOOD_FOR: u64 = 30 * 24 * 3600;
/// No honest file is larger.
const LARGEST: u64 = 64 << 10;

/// What is kept: the measurement, and of which device it is.
#[derive(Serialize, Deserialize)]
struct Kept<M> {
    identity: String,
    model: M,
}

/// `devices/MAJOR:MINOR-NAME.json`; what cannot stand in a file's name becomes `_`.
pub fn file_name(found: &FoundDevice) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = found.name.chars().map(plain).take(100).collect();
    PathBuf::from(format!("devices/{}-{name}.json", found.dev))
}

/// The measurement kept for this device in `state`; `None` when there is none, it is older than 30 days, of
/// another device under the same number, or cannot be right.
pub fn load(state: &Path, found: &FoundDevice) -> Option<DeviceModel> {
    let (file, _) = cold_sys::open::regular(&state.join(file_name(found)), false).ok()?;
    let text = cold_sys::open::content(&file, LARGEST).ok()??;
    // Without an identity it is of an earlier version, and nobody knows which device that was.
    let Kept { identity, model } = serde_json::from_slice::<Kept<DeviceModel>>(&text).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    let same = model.dev == found.dev && model.name == found.name && identity == found.identity;
    let fresh = model.measured_at <= now && now - model.measured_at <= GOOD_FOR;
    (same && fresh && plausible(&model)).then_some(model)
}

fn plausible(m: &DeviceModel) -> bool {
    let good = |x: f64| x.is_finite() && x >= 0.0;
    good(m.latency_ns)
        && good(m.ns_per_byte)
        && m.ns_per_byte > 0.0
        && m.ns_per_byte_alone.map_or(m.rotational, good)
        && m.readahead_cap >= 4096
        && m.depths.first().is_some_and(|d| d.depth == 1)
        && m.depths.is_sorted_by(|a, b| a.depth < b.depth)
        && m.depths.iter().all(|d| good(d.iops) && d.iops > 0.0)
}

/// Keeps a measurement.
pub fn save(state: &Path, found: &FoundDevice, model: &DeviceModel) -> Result<(), Error> {
    let path = state.join(file_name(found));
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    };
    let directory = state.join("devices");
    std::fs::create_dir_all(&directory).map_err(io("create", &directory))?;
    let kept = Kept { identity: found.identity.clone(), model };
    let text = serde_json::to_string_pretty(&kept).map_err(|e| Error::Io {
        action: "encode",
        path: path.clone(),
        source: e.into(),
    })?;
    // For everybody: what a device can do is no secret, and users look into root's directory, too.
    cold_sys::whole::write(&path, cold_sys::whole::Ownership::Own(0o644), text.as_bytes())
        .map_err(io("write", &path))
}

/// The kept measurement of the device behind `place`, or a new one, which is then kept. A directory that
/// cannot be written only means that the next call measures again.
pub fn load_or_measure(place: &Path, state: &Path, effort: DeviceEffort) -> Result<DeviceModel, Error> {
    let found = find(place, &ProcFs::default(), &SysFs::default())?;
    if let Some(model) = load(state, &found) {
        return Ok(model);
    }
    let model = measure_found(place, &found, effort)?;
    let _ = save(state, &found, &model);
    Ok(model)
}

#[cfg(test)]
mod tests;
