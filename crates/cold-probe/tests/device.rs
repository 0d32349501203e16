//! The device measurement against disks whose speed is known, and its cache.

use std::path::Path;

use cold_probe::device::{DeviceEffort, Error, find, load, load_or_measure, measure, save};
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;

fn found(place: &Path) -> cold_probe::device::FoundDevice {
    find(place, &ProcFs::default(), &SysFs::default()).expect("a device")
}

#[test]
fn what_lies_on_no_device_is_refused_with_its_reason() {
    for (place, word) in [("/proc", "proc"), ("/sys", "sysfs")] {
        match measure(Path::new(place), DeviceEffort::Quick) {
            Err(Error::NoDevice { why, .. }) => assert!(why.contains(word), "{why}"),
            other => panic!("{place}: {other:?}"),
        }
    }
    assert!(matches!(measure(Path::new("/nowhere"), DeviceEffort::Quick), Err(Error::Io { .. })));
}

#[test]
fn a_measurement_is_kept_per_device_and_refused_when_it_is_old_or_anothers() {
    let state = tempfile::tempdir().expect("a directory");
    let place = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Ok(mut device) = find(place, &ProcFs::default(), &SysFs::default()) else {
        eprintln!("the sources lie on no block device");
        return;
    };
    assert_eq!(load(state.path(), &device), None);
    let model = match load_or_measure(place, state.path(), DeviceEffort::Quick) {
        Ok(model) => model,
        Err(e) => panic!("{e}"),
    };
    assert!(
        model.latency_ns > 0.0 && model.ns_per_byte > 0.0 && model.readahead_cap >= 128 << 10,
        "{model:?}"
    );
    assert_eq!(model.depths.iter().map(|d| d.depth).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32]);
    assert_eq!(load(state.path(), &device), Some(model.clone()));
    assert_eq!(load_or_measure(place, state.path(), DeviceEffort::Quick).expect("kept"), model);
    let with = |change: &dyn Fn(&mut cold_model::DeviceModel)| {
        let mut other = model.clone();
        change(&mut other);
        save(state.path(), &device, &other).expect("saved");
        load(state.path(), &device)
    };
    assert_eq!(with(&|m| m.measured_at -= 31 * 24 * 3600), None);
    assert_eq!(with(&|m| m.measured_at += 3600), None);
    assert_eq!(with(&|m| m.dev.minor += 1), None);
    assert_eq!(with(&|m| m.ns_per_byte = 0.0), None);
    assert_eq!(with(&|m| m.depths.clear()), None);
    assert!(with(&|_| {}).is_some());
    device.identity = "diskseq=4711".to_owned();
    assert_eq!(load(state.path(), &device), None, "another disk took the number");
    device.name = "another/disk".to_owned();
    assert_eq!(load(state.path(), &device), None);
}

mod root {
    use std::sync::Mutex;

    use cold_model::Bytes;
    use cold_testbed::disk::{Op, Preset};
    use cold_testbed::{SlowDisk, needs_root};

    use super::*;

    /// The median of what the disk itself says that its first reads of this size took: those one at a time.
    fn median_of_log(disk: &SlowDisk, len: u64, pick: fn(&cold_testbed::disk::Request) -> u64) -> f64 {
        let log = disk.log().expect("log");
        let mut all: Vec<u64> =
            log.iter().filter(|r| r.op == Op::Read && r.len == Bytes(len)).take(100).map(pick).collect();
        all.sort_unstable();
        assert!(all.len() >= 12, "{} reads of {len} bytes", all.len());
        all[all.len() / 2] as f64
    }

    /// One disk at a time: three at once would measure each other.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Latency and bandwidth within 15% of the disk's figures. What its server adds to the model's time of a
    /// page is the disk's own as far as anybody can see: it is taken from the log.
    fn is_measured(preset: Preset, ns_per_byte: f64) {
        needs_root!();
        let _alone = ALONE.lock();
        let (mut good, mut last) = (false, String::new());
        // Others use this machine: one attempt of five has to be undisturbed.
        for _ in 0..5 {
            let disk = SlowDisk::create(preset, Bytes(256 << 20)).expect("a test disk");
            let device = found(disk.mount_point());
            assert_eq!(device.name, disk.device_name());
            assert_eq!(device.rotational, preset.model().rotational);
            disk.reset_log().expect("reset");
            let began = std::time::Instant::now();
            let m = measure(disk.mount_point(), DeviceEffort::Usual).expect("measured");
            let took = began.elapsed();
            // With one head, requests of the trials at depth wait for each other: what they take alone counts.
            let served = median_of_log(
                &disk,
                4096,
                if preset.model().rotational { |r| r.model.0 } else { |r| r.done.0 - r.arrival.0 },
            );
            let latency = m.latency_ns + 4096.0 * m.ns_per_byte;
            // FUSE and the loop device come on top of the server's own time.
            let close = |is: f64, want: f64, more: f64| is >= 0.85 * want && is <= 1.15 * want + more;
            last = format!("{took:?}, the disk says {served} ns for a page, found {m:?}");
            good = close(latency, served, 200_000.0)
                && close(m.ns_per_byte, ns_per_byte, 0.0)
                && m.readahead_cap == 512 << 10;
            if good {
                break;
            }
        }
        assert!(good, "{preset:?}: {last}");
    }

    #[test]
    fn a_loop_device_with_the_number_of_another_is_measured_again() {
        needs_root!();
        let state = tempfile::tempdir().expect("a directory");
        let first = SlowDisk::create(Preset::Cloud, Bytes(256 << 20)).expect("a test disk");
        let was = found(first.mount_point());
        let kept = load_or_measure(first.mount_point(), state.path(), DeviceEffort::Quick).expect("measured");
        assert_eq!(load(state.path(), &was), Some(kept));
        drop(first);
        // Numbers are given again, the lowest free one first; whichever this one gets, it is another disk.
        let second = SlowDisk::create(Preset::Fast, Bytes(256 << 20)).expect("a test disk");
        let is = found(second.mount_point());
        assert_ne!(was.identity, is.identity);
        let same_number = cold_probe::device::FoundDevice { dev: was.dev, name: was.name.clone(), ..is };
        assert_eq!(load(state.path(), &same_number), None);
    }

    #[test]
    fn a_rotating_disk_is_measured() {
        is_measured(Preset::Hdd, 10.0);
    }

    #[test]
    fn a_sata_ssd_is_measured() {
        is_measured(Preset::SataSsd, 2.0);
    }

    #[test]
    fn a_cloud_volume_is_measured() {
        is_measured(Preset::Cloud, 1e9 / f64::from(125 << 20));
    }
}
