//! A recording against a disk that keeps its own account, and a program whose touches are known.

mod root {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;

    use cold_model::Bytes;
    use cold_model::recording::manifest::Tier;
    use cold_model::recording::{FileIdx, Recording, StallCause, TouchKind};
    use cold_testbed::disk::{Op, Preset, Request};
    use cold_testbed::{SlowDisk, need_root};

    use crate::support::*;
    use crate::trace::recorded;

    /// A test disk with the program under test and data on it.
    struct Disk {
        slow: SlowDisk,
        subject: String,
        data: PathBuf,
    }

    impl Disk {
        fn new(preset: Preset) -> Self {
            let slow = SlowDisk::create(preset, Bytes(128 << 20)).expect("a test disk");
            let subject = slow.mount_point().join("cold-subject");
            fs::copy(cold_testbed::subject(), &subject).unwrap();
            let data = data(slow.mount_point().join("data"), 16 * MIB);
            sync(&subject);
            Self { subject: subject.into_os_string().into_string().unwrap(), data, slow }
        }
    }

    fn row(r: &Recording, path: &std::path::Path) -> FileIdx {
        let found = r.files.iter().position(|f| f.path.as_deref() == path.to_str());
        u32::try_from(found.unwrap_or_else(|| panic!("{} is not in the recording", path.display()))).unwrap()
    }

    fn touched(r: &Recording, file: FileIdx, around: bool) -> BTreeSet<u64> {
        let touches = r.touches.iter().flatten().filter(|t| t.file == file);
        let wanted = touches.filter(|t| around || t.kind != TouchKind::FaultAround);
        wanted.flat_map(|t| t.first_page..t.first_page + u64::from(t.pages)).collect()
    }

    fn filled(r: &Recording, file: FileIdx) -> BTreeSet<u64> {
        let fills = r.fills.iter().flatten().filter(|f| f.file == file);
        let pages = fills.flat_map(|f| f.first_page..f.first_page + u64::from(f.pages));
        pages.filter(|p| *p < (16 * MIB as u64) / PAGE).collect()
    }

    fn quiet(r: &Recording) -> Result<(), String> {
        let m = &r.manifest;
        check(m.lost_events() == 0, || format!("lost: {:?}", m.lost))?;
        check(
            m.taints.iter().all(|t| t.contains("CPU") || t.contains("busy") || t.contains("steal")),
            || format!("tainted: {:?}", m.taints),
        )?;
        let absent = m.state.residual.as_ref().and_then(|k| k.value()).is_some_and(|r| r.bytes == Bytes(0));
        check(absent, || format!("not cold: {:?}", m.state))
    }

    #[test]
    fn touches_fills_requests_and_stalls_equal_what_is_known() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let (place, disk) = (Place::new(), Disk::new(Preset::Hdd));
        let data = disk.data.to_str().unwrap();
        let pages: BTreeSet<u64> = [0, 40, 41, 1000, 1001, 1002, 3000, 4095].into();
        let list: Vec<String> = pages.iter().map(ToString::to_string).collect();
        attempts(|| {
            fs::read(&disk.subject).unwrap();
            fs::read(&disk.data).unwrap();
            let _ = fs::remove_dir_all(place.path("t.cold"));
            let args = ["trace", "--evict", "files", "--exact-need", "--no-stacks", "-o", "t.cold", "--"];
            let program = [&disk.subject, "touch-mapped", data, &list.join(",")];
            disk.slow.reset_log().unwrap();
            place.cold(args.iter().copied().chain(program)).run().expect(0);
            let log: Vec<Request> = disk.slow.log().unwrap();
            let r = recorded(&place, "t.cold");
            if r.manifest.tier > Tier::B {
                return Err(format!("tier {}: nothing to compare", r.manifest.tier));
            }
            quiet(&r)?;
            assert!(r.manifest.exact_need, "{:?}", r.manifest.notes);
            let file = row(&r, &disk.data);
            assert_eq!(touched(&r, file, true), pages, "touches are the pattern, exactly");
            assert_eq!(filled(&r, file), resident(&disk.data), "fills are what is cached now, and was not");
            // Only what the disk was asked between start and end of the recording; the rest is preparation.
            let (start, end) = (r.manifest.start, r.manifest.end);
            let asked: BTreeSet<(u64, u64)> = log
                .iter()
                .filter(|q| q.op == Op::Read && q.arrival >= start && q.arrival <= end)
                .map(|q| (q.offset, q.len.0))
                .collect();
            let number = cold_sys::device::split(disk.data.metadata().unwrap().dev());
            let told: BTreeSet<(u64, u64)> = r
                .device_reads
                .iter()
                .flatten()
                .filter(|d| number == (d.dev.major, d.dev.minor) && d.queued >= start)
                .map(|d| (d.sector * 512, u64::from(d.bytes)))
                .collect();
            assert_eq!(told, asked, "request for request");
            stalls(&r, &log)
        });
    }

    /// One task waits for one request at a time, so its waits are the disk's service times.
    fn stalls(r: &Recording, log: &[Request]) -> Result<(), String> {
        let (start, end) = (r.manifest.start, r.manifest.end);
        let reads = log.iter().filter(|q| q.op == Op::Read && q.arrival >= start && q.arrival <= end);
        let service: u64 = reads.map(|q| q.done.0 - q.arrival.0).sum();
        let mut waits = std::collections::BTreeMap::<_, (u64, u64)>::new();
        for s in r.stalls.iter().flatten() {
            let sum = waits.entry(s.cause).or_default();
            *sum = (sum.0 + 1, sum.1 + s.woken.map_or(0, |w| w.0.saturating_sub(s.began.0)));
        }
        // A lock is no request of its own.
        let waited: u64 =
            waits.iter().filter(|(cause, _)| **cause != StallCause::Lock).map(|(_, (_, t))| t).sum();
        let off = waited.abs_diff(service) as f64 / service.max(1) as f64;
        check(off <= 0.05, || {
            format!("waited {waited} ns {waits:?}, the disk served {service} ns: {:.1} % off", off * 100.0)
        })
    }
}
