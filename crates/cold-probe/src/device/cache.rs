//! Measured devices, one JSON file each, in the directory of the state.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cold_model::DeviceModel;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;
use serde::{Deserialize, Serialize};

use super::{Effort, Error, Found, find, measure_found};

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
pub fn file_name(found: &Found) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = found.name.chars().map(plain).take(100).collect();
    PathBuf::from(format!("devices/{}-{name}.json", found.dev))
}

/// The measurement kept for this device in `state`; `None` when there is none, it is older than 30 days, of
/// another device under the same number, or cannot be right.
pub fn load(state: &Path, found: &Found) -> Option<DeviceModel> {
    let (file, _) = cold_sys::open::regular(&state.join(file_name(found)), false).ok()?;
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).ok()?;
    // Without an identity it is of an earlier version, and nobody knows which device that was.
    let Kept { identity, model } = serde_json::from_str::<Kept<DeviceModel>>(&text).ok()?;
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
        && m.readahead_cap >= 4096
        && m.depths.first().is_some_and(|d| d.depth == 1)
        && m.depths.is_sorted_by(|a, b| a.depth < b.depth)
        && m.depths.iter().all(|d| good(d.iops) && d.iops > 0.0)
}

/// Keeps a measurement.
pub fn save(state: &Path, found: &Found, model: &DeviceModel) -> Result<(), Error> {
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
pub fn load_or_measure(place: &Path, state: &Path, effort: Effort) -> Result<DeviceModel, Error> {
    let found = find(place, &ProcFs::default(), &SysFs::default())?;
    if let Some(model) = load(state, &found) {
        return Ok(model);
    }
    let model = measure_found(place, &found, effort)?;
    let _ = save(state, &found, &model);
    Ok(model)
}

#[cfg(test)]
mod tests {
    use cold_model::Dev;
    use cold_model::io_model::AtDepth;

    use super::*;

    fn device(name: &str) -> Found {
        Found {
            dev: Dev::new(8, 0),
            name: name.to_owned(),
            identity: "diskseq=1".to_owned(),
            rotational: false,
            stated_cap: 1 << 17,
        }
    }

    fn model(found: &Found) -> DeviceModel {
        let at = |depth| AtDepth { depth, iops: 100.0 };
        DeviceModel {
            dev: found.dev,
            name: found.name.clone(),
            rotational: false,
            latency_ns: 1e5,
            ns_per_byte: 0.5,
            depths: vec![at(1), at(2)],
            readahead_cap: 1 << 17,
            measured_at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() - 60,
        }
    }

    #[test]
    fn no_name_of_a_device_leads_out_of_the_directory() {
        let name = |name: &str| file_name(&device(name)).to_str().unwrap().to_owned();
        assert_eq!(name("sda (SSD 860)"), "devices/8:0-sda__SSD_860_.json");
        assert_eq!(name("../../etc/passwd"), "devices/8:0-.._.._etc_passwd.json");
        assert_eq!(name("ä\0\n"), "devices/8:0-___.json");
        assert_eq!(name(&"x".repeat(300)).len(), "devices/8:0-.json".len() + 100);
    }

    #[test]
    fn what_is_damaged_foreign_or_too_large_is_no_measurement() {
        let state = tempfile::tempdir().unwrap();
        let found = device("sda");
        save(state.path(), &found, &model(&found)).unwrap();
        assert!(load(state.path(), &found).is_some());
        let path = state.path().join(file_name(&found));
        let good = std::fs::read_to_string(&path).unwrap();
        let loads = |text: &str| {
            std::fs::write(&path, text).unwrap();
            load(state.path(), &found).is_some()
        };
        assert!(!loads("") && !loads("{}") && !loads(&good[..good.len() - 2]));
        assert!(!loads(&good.replace("identity", "identities")), "of an earlier version");
        assert!(!loads(&format!("{}{good}", " ".repeat(LARGEST as usize))), "no honest file is as large");
        assert!(loads(&good));
        let elsewhere = state.path().join("elsewhere");
        std::fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert_eq!(load(state.path(), &found), None, "a link is not followed");
    }

    #[test]
    fn figures_that_no_device_has_are_not_believed() {
        type Change = fn(&mut DeviceModel);
        let found = device("sda");
        let changes: [(Change, bool); 12] = [
            (|_| {}, true),
            (|m| m.latency_ns = 0.0, true),
            (|m| m.latency_ns = -1.0, false),
            (|m| m.latency_ns = f64::NAN, false),
            (|m| m.ns_per_byte = f64::INFINITY, false),
            (|m| m.readahead_cap = 4096, true),
            (|m| m.readahead_cap = 4095, false),
            (|m| m.depths.reverse(), false),
            (|m| m.depths[1].depth = 1, false),
            (|m| m.depths[1].iops = 0.0, false),
            (|m| m.depths.truncate(0), false),
            (|m| m.depths[0].depth = 2, false),
        ];
        for (n, (change, good)) in changes.into_iter().enumerate() {
            let mut m = model(&found);
            change(&mut m);
            assert_eq!(plausible(&m), good, "change {n}: {m:?}");
        }
    }

    #[test]
    fn a_measurement_is_good_for_thirty_days_and_not_of_tomorrow() {
        let state = tempfile::tempdir().unwrap();
        let found = device("sda");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        for (measured_at, good) in
            [(now - GOOD_FOR + 60, true), (now - GOOD_FOR - 1, false), (now + 3600, false)]
        {
            save(state.path(), &found, &DeviceModel { measured_at, ..model(&found) }).unwrap();
            assert_eq!(load(state.path(), &found).is_some(), good, "{measured_at}, and now it is {now}");
        }
    }
}
