use std::path::Path;

use super::*;

fn write(root: &Path, rel: &str, text: &str) {
    let path = root.join(rel);
    std::fs::create_dir_all(path.parent().expect("has a parent")).expect("makes directories");
    std::fs::write(path, text).expect("writes");
}

fn stat_line(pid: i32, utime: u64, starttime: u64) -> String {
    format!(
        "{pid} (worker) R 1 1 1 0 -1 0 0 0 0 0 {utime} 0 0 0 20 0 1 0 {starttime} 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

#[test]
fn what_moves_between_two_samples_is_seen_and_a_reused_pid_is_not_charged() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (proc_dir, sys_dir) = (dir.path().join("proc"), dir.path().join("sys"));
    let (proc, sys) = (ProcFs::new(&proc_dir), SysFs::new(&sys_dir));
    let throttle = "devices/system/cpu/cpu0/thermal_throttle/core_throttle_count";
    write(&proc_dir, "vmstat", "drop_pagecache 4\ndrop_slab 2\n");
    write(&proc_dir, "stat", "cpu  100 0 100 800 0 0 0 10\n");
    write(&proc_dir, "diskstats", " 254 0 vda 100 0 2048 0 0 0 0 0 0 0 0\n");
    write(&proc_dir, "20/stat", &stat_line(20, 5, 77));
    write(&proc_dir, "21/stat", &stat_line(21, 0, 78));
    write(&proc_dir, "20/io", "rchar: 1\nread_bytes: 4096\n");
    write(&sys_dir, throttle, "3\n");
    let first = Sample::take(&proc, &sys);
    write(&proc_dir, "vmstat", "drop_pagecache 6\ndrop_slab 2\n");
    write(&proc_dir, "stat", "cpu  150 0 100 820 0 0 0 40\n");
    write(&proc_dir, "diskstats", " 254 0 vda 130 0 4096 0 0 0 0 0 0 0 0\n");
    write(&proc_dir, "20/stat", &stat_line(20, 45, 77));
    write(&proc_dir, "21/stat", &stat_line(21, 500, 99));
    write(&proc_dir, "20/io", "rchar: 1\nread_bytes: 12288\n");
    write(&sys_dir, throttle, "5\n");
    let second = Sample::take(&proc, &sys);

    let seen = Observation::between(&first, &second);
    assert_eq!(seen.vmstat("drop_pagecache"), Ok(Some((6, 2))));
    assert_eq!(seen.vmstat("drop_slab"), Ok(Some((2, 0))));
    assert_eq!(seen.vmstat("no_such_counter"), Ok(None));
    assert_eq!(seen.cpu().expect("cpu").1, CpuTimes { total: 100, idle: 20, steal: 30 });
    assert_eq!(
        seen.disks().expect("disks"),
        [DiskMoved { name: "vda", reads: 30, read: 2048 * 512, written: 0 }]
    );
    assert_eq!(seen.throttles(), Some((5, 2)));
    let busy = seen.busy();
    assert_eq!(busy.iter().map(|b| b.pid).collect::<Vec<_>>(), [20], "pid 21 is another process now");
    assert_eq!(busy[0].read_bytes, Some(8192));
    assert!(busy[0].cpu_percent > 0.0);
}

#[test]
fn an_unreadable_counter_file_is_a_reason_not_a_zero() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (proc, sys) = (ProcFs::new(dir.path()), SysFs::new(dir.path()));
    let (a, b) = (Sample::take(&proc, &sys), Sample::take(&proc, &sys));
    let seen = Observation::between(&a, &b);
    assert!(seen.vmstat("drop_slab").is_err_and(|why| why.contains("vmstat")));
    assert!(seen.cpu().is_err() && seen.disks().is_err());
    assert_eq!(seen.throttles(), None);
}
