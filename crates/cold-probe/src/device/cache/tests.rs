use cold_model::Dev;
use cold_model::io_model::AtDepth;

use super::*;

fn device(name: &str) -> FoundDevice {
    FoundDevice {
        dev: Dev::new(8, 0),
        name: name.to_owned(),
        identity: "diskseq=1".to_owned(),
        rotational: false,
        stated_cap: 1 << 17,
    }
}

fn model(found: &FoundDevice) -> DeviceModel {
    let at = |depth| AtDepth { depth, iops: 100.0 };
    DeviceModel {
        dev: found.dev,
        name: found.name.clone(),
        rotational: false,
        latency_ns: 1e5,
        ns_per_byte: 0.5,
        ns_per_byte_alone: Some(0.75),
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
    let changes: [(Change, bool); 15] = [
        (|_| {}, true),
        (|m| m.latency_ns = 0.0, true),
        (|m| m.latency_ns = -1.0, false),
        (|m| m.latency_ns = f64::NAN, false),
        (|m| m.ns_per_byte = f64::INFINITY, false),
        (|m| m.ns_per_byte_alone = Some(-1.0), false),
        // Kept by an earlier version.
        (|m| m.ns_per_byte_alone = None, false),
        (|m| (m.rotational, m.ns_per_byte_alone) = (true, None), true),
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
    for (measured_at, good) in [(now - GOOD_FOR + 60, true), (now - GOOD_FOR - 1, false), (now + 3600, false)]
    {
        save(state.path(), &found, &DeviceModel { measured_at, ..model(&found) }).unwrap();
        assert_eq!(load(state.path(), &found).is_some(), good, "{measured_at}, and now it is {now}");
    }
}
