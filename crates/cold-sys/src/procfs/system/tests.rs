use super::super::tests::fake;
use super::*;
use crate::Error;

#[test]
fn a_disk_line_of_linux_6() {
    let d = parse_disk(" 254       0 vda 100 5 2048 33 7 0 56 2 1 30 35 0 0 0 0 4 1").expect("parses");
    assert_eq!((d.dev, d.name.as_str()), (Dev::new(254, 0), "vda"));
    assert_eq!((d.reads, d.reads_merged, d.read_bytes, d.read_ms), (100, 5, 2048 * 512, 33));
    assert_eq!((d.writes, d.write_bytes, d.in_flight), (7, 56 * 512, 1));
}

#[test]
fn a_disk_line_needs_nine_figures_and_none_runs_over() {
    assert!(parse_disk("8 1 sda1 1 2 3 4 5 6 7 8 9").is_some());
    assert_eq!(parse_disk("8 1 sda1 1 2 3 4"), None, "a partition before Linux 2.6.25");
    assert_eq!(parse_disk("8 1 sda1 1 2 3 4 5 6 7 8 -9"), None);
    assert_eq!(parse_disk(""), None);
    let d = parse_disk(&format!("8 1 sda1 1 2 {max} 4 5 6 {max} 8 9", max = u64::MAX)).expect("parses");
    assert_eq!((d.read_bytes, d.write_bytes), (u64::MAX, u64::MAX));
}

#[test]
fn memory_is_in_bytes_and_a_count_without_a_unit_is_none() {
    let text = "MemTotal:       16384 kB\nHugePages_Total:       3\nNoise\nBad: x kB\nHuge: 18446744073709551615 kB\n";
    let (_dir, proc) = fake(&[("meminfo", text)]);
    let expected = [("Huge", u64::MAX), ("HugePages_Total", 3), ("MemTotal", 16_777_216)];
    assert_eq!(proc.meminfo().expect("read"), expected.map(|(key, n)| (key.to_owned(), n)).into());
}

#[test]
fn counters_that_cannot_be_read_are_left_out() {
    let (_dir, proc) =
        fake(&[("vmstat", "pgpgin 12\npgmajfault\nnr_dirty -3\npgfault 18446744073709551615\n")]);
    let expected = [("pgfault", u64::MAX), ("pgpgin", 12)];
    assert_eq!(proc.vmstat().expect("read"), expected.map(|(key, n)| (key.to_owned(), n)).into());
}

#[test]
fn the_machines_time_is_that_of_all_processors_without_guests_twice() {
    let times = |text: &str| {
        let (_dir, proc) = fake(&[("stat", text)]);
        proc.cpu_times().expect("read")
    };
    // user nice system idle iowait irq softirq steal guest guest_nice; user has guest in it already.
    let all = times("cpu  1 2 4 8 16 32 64 128 256 512\ncpu0 9 9 9 9 9 9 9 9 9 9\n");
    assert_eq!(all, CpuTimes { total: 255, idle: 24, steal: 128 });
    let old = times("cpu0 9 9 9 9\ncpu  1 2 4 8\n");
    assert_eq!(old, CpuTimes { total: 15, idle: 8, steal: 0 });
    let (_dir, proc) = fake(&[("stat", "cpu0 1 2 3\nintr 5\n")]);
    let Err(Error::Parse { file, .. }) = proc.cpu_times() else { panic!("no such line") };
    assert!(file.ends_with("stat"));
}

#[test]
fn pressure_may_lack_the_line_of_all_tasks_and_no_other() {
    let line = |avg10, total_us| PressureLine { avg10, total_us };
    let some = "some avg10=1.25 avg60=2.00 avg300=3.00 total=77\n";
    let both = format!("{some}full avg10=0.50 avg60=0.00 avg300=0.00 total=9\n");
    let expected = Pressure { some: line(1.25, 77), full: Some(line(0.5, 9)) };
    assert_eq!(Pressure::parse(&both), Some(expected));
    assert_eq!(Pressure::parse(some), Some(Pressure { full: None, ..expected }));
    for text in ["", "full avg10=0.50 total=9\n", "some avg10=1.25\n", "some avg10=x total=77\n"] {
        assert_eq!(Pressure::parse(text), None, "{text:?}");
    }
}

#[test]
fn pressure_that_cannot_be_understood_is_no_pressure_of_zero() {
    let (_dir, proc) = fake(&[("pressure/io", "some\n")]);
    let told = proc.pressure("io").expect_err("another form").to_string();
    assert!(told.contains("pressure/io") && told.contains("expected some avg10"), "{told}");
    assert_eq!(proc.pressure("memory").expect_err("absent").errno(), Some(libc::ENOENT));
}

#[test]
fn a_setting_is_a_path_below_sys() {
    let (_dir, proc) = fake(&[("sys/kernel/yama/ptrace_scope", "1\n")]);
    assert_eq!(proc.sysctl("kernel.yama.ptrace_scope").expect("read"), "1");
    assert_eq!(proc.kernel_release(), "", "where it is not told");
    let uname = std::process::Command::new("uname").arg("-r").output().expect("runs");
    assert_eq!(ProcFs::default().kernel_release(), String::from_utf8_lossy(&uname.stdout).trim());
}
