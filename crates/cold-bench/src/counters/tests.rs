use super::*;

fn tree(dir: &std::path::Path, drops: u64, reads: u64, read_bytes: u64) -> ProcFs {
    std::fs::create_dir_all(dir.join("77")).unwrap();
    std::fs::write(dir.join("vmstat"), format!("drop_pagecache {drops}\npgsteal_file 5\n")).unwrap();
    std::fs::write(dir.join("stat"), format!("cpu  {drops} 0 0 10 0 0 0 4\n")).unwrap();
    let line = format!("8 0 sda {reads} 0 {} 0 0 0 0 0 0 0 0\n8 1 sdb 9 0 9 0 0 0 0 0 0 0 0\n", reads * 8);
    std::fs::write(dir.join("diskstats"), line).unwrap();
    std::fs::write(dir.join("77/io"), format!("rchar: 1\nread_bytes: {read_bytes}\n")).unwrap();
    let stat = "77 (indexer) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0";
    std::fs::write(dir.join("77/stat"), stat).unwrap();
    ProcFs::new(dir)
}

#[test]
fn differences_name_the_reader_and_leave_unknowns_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let devices = BTreeSet::from([Dev::new(8, 0)]);
    let before = Reading::take(&tree(dir.path(), 1, 10, 4096), &devices, None);
    let after = Reading::take(&tree(dir.path(), 3, 25, 12288), &devices, None);
    let a = after.since(&before);
    assert_eq!(a.page_cache_drops, Some(2));
    assert_eq!(a.slab_drops, None, "this kernel does not count them");
    assert_eq!((a.device_reads, a.device_read_bytes), (Some(15), Some(15 * 8 * 512)));
    assert_eq!(a.other_readers, vec![("indexer[77]".to_owned(), 8192)]);
    assert_eq!(a.io_stall_us, None);
    let earlier = CpuTimes { total: 16, idle: 10, steal: 5 };
    let until = |cpu| after.clone().with_cpu(cpu).since(&before).cpu;
    assert_eq!((until(Some(earlier)), until(None)), (Some(CpuTimes { total: 1, idle: 0, steal: 1 }), None));
}

/// A reading by hand: devices with (reads, bytes), readers as (pid, start time, name, bytes).
fn reading(disks: &[(Dev, u64, u64)], readers: &[(i32, u64, &str, u64)]) -> Reading {
    Reading {
        disks: disks
            .iter()
            .map(|(dev, reads, bytes)| (*dev, Disk { reads: *reads, bytes: *bytes }))
            .collect(),
        readers: readers
            .iter()
            .map(|(pid, started, comm, bytes)| {
                ((*pid, *started), CounterReader { comm: (*comm).to_owned(), bytes: *bytes })
            })
            .collect(),
        ..Reading::default()
    }
}

#[test]
fn a_number_that_another_process_took_is_another_reader() {
    let before = reading(&[], &[(50, 1, "old", 900), (51, 1, "idle", 5)]);
    let after = reading(&[], &[(50, 2, "new", 100), (51, 1, "idle", 5), (52, 3, "most", 4096)]);
    let readers = after.since(&before).other_readers;
    assert_eq!(readers, [("most[52]".to_owned(), 4096), ("new[50]".to_owned(), 100)]);
}

#[test]
fn what_cold_reads_itself_is_not_others() {
    let own = i32::try_from(std::process::id()).unwrap();
    let before = reading(&[], &[(own, 1, "cold", 1000)]);
    let a = reading(&[], &[(own, 1, "cold", 1500)]).since(&before);
    assert_eq!((a.own_read_bytes, a.other_readers), (500, vec![]));
}

#[test]
fn reads_of_several_devices_are_summed_and_a_counter_that_went_back_is_no_huge_number() {
    let (a, b) = (Dev::new(8, 0), Dev::new(259, 0));
    let activity =
        reading(&[(a, 12, 5000), (b, 1, 100)], &[]).since(&reading(&[(a, 10, 1000), (b, 7, 900)], &[]));
    assert_eq!((activity.device_reads, activity.device_read_bytes), (Some(2), Some(4000)));
}

#[test]
fn a_device_without_an_earlier_reading_leaves_its_reads_unknown() {
    let (a, b) = (Dev::new(8, 0), Dev::new(259, 0));
    let after = reading(&[(a, 12, 5000), (b, 7, 900)], &[]);
    for before in [reading(&[], &[]), reading(&[(a, 12, 5000)], &[])] {
        let activity = after.since(&before);
        assert_eq!((activity.device_reads, activity.device_read_bytes), (None, None));
    }
}

#[test]
fn a_machine_that_tells_nothing_leaves_everything_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let take = || Reading::take(&ProcFs::new(dir.path()), &BTreeSet::from([Dev::new(8, 0)]), None);
    assert_eq!(take().since(&take()), Activity::default());
}

#[test]
fn a_start_that_read_and_waited_for_nothing_is_one_whose_waiting_the_kernel_forgot() {
    let of = |io_stall_us| Activity { io_stall_us, ..Activity::default() };
    assert_eq!(of(None).stall(true, "no group"), Known::unknown("no group"));
    assert_eq!(of(Some(0)).stall(false, ""), Known::Value(Nanos(0)));
    assert_eq!(of(Some(0)).stall(true, "").value(), None);
    assert_eq!(of(Some(7)).stall(true, ""), Known::Value(Nanos(7000)));
}
