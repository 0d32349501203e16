//! `cold doctor` on machines made of directories.

mod tree;

use std::cell::RefCell;
use std::path::PathBuf;

use cold_doctor::{Area, Config, Eviction, Leftover, Probes, Roots, Status};
use cold_model::recording::manifest::Tier;
use cold_trace::Survey;
use tree::{Tree, check_form, config, finding, findings, probes, refusing, with_status};

#[test]
fn a_quiet_machine_has_nothing_to_complain_about() {
    let report = Tree::new().report();
    check_form(&report);
    assert_eq!(with_status(&report, Status::Disturbs), Vec::<&str>::new());
    assert_eq!(with_status(&report, Status::Missing), Vec::<&str>::new());
    assert_eq!(with_status(&report, Status::Unknown), Vec::<&str>::new());
    assert_eq!((report.summary.tier, report.summary.eviction), (Tier::A, Eviction::All));
    assert!(findings(&report, "leftover").is_empty(), "no journal was looked at, so nothing is said of it");
}

#[test]
fn a_laptop_with_a_powersave_governor_a_working_tracker_and_timers_due() {
    let tree = Tree::new();
    for cpu in 0..4 {
        let dir = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq");
        tree.file(&format!("{dir}/scaling_governor"), "powersave\n");
        tree.file(&format!("{dir}/scaling_driver"), "intel_pstate\n");
    }
    tree.file("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    tree.process(1, "systemd", &["/sbin/init"]);
    tree.process(500, "tracker-miner-f", &["/usr/libexec/tracker-miner-fs-3"]);
    tree.process(501, "preload", &["/usr/sbin/preload"]);
    tree.process(502, "cron", &["/usr/sbin/cron", "-f"]);
    tree.file("etc/crontab", "25 6 * * * root run-parts /etc/cron.daily\n17 * * * * root hourly\n");
    tree.file("etc/cron.d/backup.dpkg-old", "21 6 * * * root never read\n");
    let soon = (tree::NOW + 600) * 1_000_000;
    tree.executable(
        "usr/bin/systemctl",
        &format!("#!/bin/sh\necho '[{{\"next\":{soon},\"unit\":\"apt-daily.timer\"}}]'\n"),
    );
    tree.link("etc/systemd/system/multi-user.target.wants/ureadahead.service", "/lib/none");

    let report = tree::patiently(|| {
        let report = tree.report();
        (finding(&report, "timers").status != Status::Unknown).then_some(report)
    });
    check_form(&report);
    let governor = finding(&report, "frequency");
    assert_eq!(governor.status, Status::Disturbs);
    assert_eq!(governor.fact, "governor powersave (intel_pstate)");
    assert_eq!(finding(&report, "frequency.turbo").status, Status::Note);
    let tracker = finding(&report, "program");
    assert_eq!((tracker.status, tracker.pids.as_slice()), (Status::Note, &[500][..]), "idle");
    assert_eq!(finding(&report, "program.prefetcher").pids, [501]);
    let timer = finding(&report, "timers");
    assert_eq!((timer.status, timer.fact.as_str()), (Status::Disturbs, "apt-daily.timer starts in 10 min"));
    let cron = findings(&report, "cron");
    assert_eq!(cron.len(), 2, "{cron:?}");
    assert_eq!(cron[0].fact, "run-parts /etc/cron.daily (/etc/crontab) starts in 5 min");
    assert_eq!(cron[1].fact, "due within the hour: hourly (/etc/crontab) in 57 min");
    assert_eq!(finding(&report, "installed").subject.as_deref(), Some("ureadahead"));
}

#[test]
fn a_running_service_is_named_and_other_commands_are_not() {
    let tree = Tree::new();
    tree.process(500, "cold", &["/usr/local/bin/cold", "service", "status"]);
    tree.process(501, "cold", &["cold", "bench", "--", "service-run"]);
    tree.process(502, "cron", &["/usr/sbin/cron", "service", "run"]);
    assert!(findings(&tree.report(), "program.service").is_empty());
    tree.process(
        503,
        "cold",
        &["/usr/local/bin/cold", "--quiet", "service", "--state", "/s", "run", "--no-learn"],
    );
    let report = tree.report();
    check_form(&report);
    let service = finding(&report, "program.service");
    assert_eq!((service.status, service.pids.as_slice()), (Status::Disturbs, &[503][..]));
    assert!(service.remedy.as_deref().is_some_and(|r| r.contains("cold service pause")), "{service:?}");
}

#[test]
fn an_unprivileged_container() {
    let tree = Tree::new();
    tree.status(1000, 0, 2);
    tree.namespaces("4026532281", "4026532284", "4026532290");
    tree.file(".dockerenv", "");
    tree.remove("sys/fs/cgroup/cgroup.controllers");
    tree.file(
        "proc/self/mountinfo",
        "20 1 0:44 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u\n",
    );
    let report = tree.report_with(refusing(), config());
    check_form(&report);
    assert_eq!((report.summary.tier, report.summary.eviction), (Tier::D, Eviction::Files));
    for id in [
        "user",
        "sandbox.container",
        "sandbox.user_namespace",
        "sandbox.pid_namespace",
        "tier",
        "ptrace",
        "drop_caches",
        "cachestat",
        "mincore",
        "cgroup",
    ] {
        assert_eq!(finding(&report, id).status, Status::Missing, "{id}");
    }
    assert!(finding(&report, "storage.filesystem").fact.contains("layers"));
    assert_eq!(finding(&report, "sandbox.seccomp").status, Status::Note);
}

#[test]
fn a_machine_installed_from_a_container_image_is_no_container() {
    let tree = Tree::new();
    tree.file(".dockerenv", "");
    assert_eq!(finding(&tree.report(), "sandbox.container").status, Status::Ok);
    tree.namespaces("4026531837", "4026531836", "4026532290");
    assert_eq!(finding(&tree.report(), "sandbox.container").status, Status::Missing);
}

#[test]
fn a_virtual_machine_with_hybrid_cgroups_damon_and_a_large_read_ahead() {
    let tree = Tree::new();
    tree.disk("vda", &[("read_ahead_kb", "8192"), ("max_sectors_kb", "4096"), ("rotational", "1")]);
    tree.file("proc/cpuinfo", "flags : fpu hypervisor\n");
    tree.file("sys/class/dmi/id/sys_vendor", "QEMU\n");
    tree.file("proc/stat", "cpu  100 0 100 800 0 0 0 7\n");
    tree.file("proc/sys/kernel/task_delayacct", "0\n");
    tree.file("proc/self/cgroup", "7:blkio:/\n4:memory:/\n8:pids:/\n0::/\n");
    tree.file(
        "proc/self/mountinfo",
        "20 1 8:1 / / rw,relatime - ext4 /dev/vda1 rw,discard\n\
         31 20 0:31 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
         32 20 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         33 20 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
         34 20 0:34 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
    );
    tree.file("sys/fs/cgroup/memory/memory.force_empty", "");
    tree.file("sys/fs/cgroup/unified/cgroup.controllers", "\n");
    let damon = "sys/kernel/mm/damon/admin/kdamonds/0";
    for (file, text) in [
        ("state", "on"),
        ("pid", "76"),
        ("contexts/0/monitoring_attrs/intervals/aggr_us", "5000000"),
        ("contexts/0/schemes/0/action", "pageout"),
        ("contexts/0/schemes/0/access_pattern/age/min", "12"),
        ("contexts/0/schemes/1/action", "stat"),
    ] {
        tree.file(&format!("{damon}/{file}"), text);
    }
    let report = tree.report();
    check_form(&report);
    assert_eq!(finding(&report, "cgroup").fact, "cgroup v1 beside v2: blkio (v1), memory (v1), pids (v1)");
    assert_eq!(finding(&report, "cgroup.reclaim").fact, "memory.force_empty is there");
    let damon = finding(&report, "damon");
    assert_eq!((damon.status, damon.pids.as_slice()), (Status::Disturbs, &[76][..]));
    assert_eq!(damon.fact, "DAMON applies pageout on regions unused for 60 s");
    assert_eq!(finding(&report, "storage.read_ahead").subject.as_deref(), Some("vda"));
    assert_eq!(finding(&report, "storage.virtual").fact, "vda is a virtual disk and says it rotates");
    assert_eq!(finding(&report, "virtualisation").fact, "a virtual machine (QEMU)");
    assert_eq!(finding(&report, "steal").status, Status::Note);
    assert_eq!(finding(&report, "delay_accounting").status, Status::Missing);
    assert_eq!(finding(&report, "storage.discard").status, Status::Note);
}

#[test]
fn encrypted_volumes_loops_and_file_systems_without_a_device() {
    let tree = Tree::new();
    for (dev, name, attribute, value) in [
        ("253:0", "dm-0", "dm/name", "root"),
        ("253:0", "dm-0", "dm/uuid", "CRYPT-LUKS2-0123456789abcdef0123456789abcdef-root"),
        ("7:0", "loop0", "loop/backing_file", "/var/disk.img"),
        ("7:0", "loop0", "loop/dio", "0"),
    ] {
        let dir = format!("sys/devices/virtual/block/{name}");
        tree.file(&format!("{dir}/{attribute}"), value);
        tree.file(&format!("{dir}/queue/read_ahead_kb"), "128");
        tree.link(&format!("sys/dev/block/{dev}"), &format!("../../devices/virtual/block/{name}"));
    }
    tree.link("sys/devices/virtual/block/dm-0/slaves/sda1", "/none");
    tree.file(
        "proc/self/mountinfo",
        "20 1 253:0 / / rw,relatime - ext4 /dev/mapper/root rw\n\
         21 20 7:0 / /img rw,noatime - xfs /dev/loop0 rw\n\
         22 20 0:40 / /net rw,relatime - nfs4 server:/x rw\n\
         23 20 0:41 / /tmp rw - tmpfs tmpfs rw\n\
         24 20 0:42 / /sub rw,relatime - btrfs /dev/sda1 rw\n\
         25 20 0:43 / /odd rw,relatime - zfs pool/x rw\n",
    );
    let paths: Vec<PathBuf> =
        ["/", "/img", "/net", "/tmp", "/sub", "/odd"].iter().map(PathBuf::from).collect();
    for path in &paths[1..] {
        tree.file(&format!("{}/file", path.strip_prefix("/").expect("absolute").display()), "");
    }
    let report = tree.report_with(probes(), Config { paths, ..config() });
    check_form(&report);
    let file_systems: Vec<_> = findings(&report, "storage.filesystem")
        .iter()
        .map(|f| (f.subject.clone().expect("names its mount"), f.status))
        .collect();
    let expected = [
        ("/", Status::Ok),
        ("/img", Status::Ok),
        ("/net", Status::Disturbs),
        ("/tmp", Status::Missing),
        ("/sub", Status::Ok),
        ("/odd", Status::Disturbs),
    ];
    assert_eq!(file_systems, expected.map(|(path, status)| (path.to_owned(), status)));
    let devices: Vec<_> = findings(&report, "storage.device").iter().map(|f| f.fact.clone()).collect();
    assert!(devices[0].starts_with("dm-0 (device mapper CRYPT-LUKS2 root, over sda1)"), "{devices:?}");
    assert!(devices.iter().any(|d| d.starts_with("sda (")), "the disk below is shown: {devices:?}");
    assert_eq!(finding(&report, "storage.loop").status, Status::Disturbs);

    let report = tree.report_with(probes(), Config { paths: vec![PathBuf::from("/img")], ..config() });
    let devices: Vec<_> =
        findings(&report, "storage.device").iter().filter_map(|f| f.subject.clone()).collect();
    assert_eq!(devices, ["loop0", "dm-0", "sda"], "down to the disk that holds the loop's file");
}

#[test]
fn what_cannot_be_read_is_unknown_and_never_ok() {
    let tree = Tree::new();
    for file in ["vmstat", "stat", "diskstats", "meminfo", "cpuinfo", "locks"] {
        tree.remove(&format!("proc/{file}"));
    }
    tree.file("proc/self/mountinfo", "20 1 8:99 / / rw,relatime - ext4 /dev/gone rw\n");
    tree.remove("sys/devices/system/cpu/online");
    let report = tree.report();
    check_form(&report);
    for id in [
        "caches_dropped",
        "reclaim",
        "steal",
        "load",
        "disk_activity",
        "memory",
        "cpus",
        "virtualisation",
        "package_lock",
    ] {
        assert_eq!(finding(&report, id).status, Status::Unknown, "{id}");
    }
    assert_eq!(finding(&report, "storage.filesystem").status, Status::Unknown);
}

#[test]
fn a_package_manager_holds_its_lock_and_a_scanner_decides_about_opens() {
    use std::os::unix::fs::MetadataExt;
    let tree = Tree::new();
    tree.file("var/lib/dpkg/lock", "");
    tree.process(700, "dpkg", &["/usr/bin/dpkg", "-i", "x.deb"]);
    tree.process(701, "scand", &["/opt/scand"]);
    tree.link("proc/701/fd/5", "anon_inode:[fanotify]");
    tree.file("proc/701/fdinfo/5", "fanotify mnt_id:1b mflags:0 mask:10000 ignored_mask:0\n");
    tree.report_with(probes(), config()); // without the lock: must not fail
    let lock = tree.path("var/lib/dpkg/lock").metadata().expect("exists");
    let cold_model::Dev { major, minor } = cold_model::Dev::of_number(lock.dev());
    tree.file(
        "proc/locks",
        &format!("1: POSIX  ADVISORY  WRITE 700 {major:02x}:{minor:02x}:{} 0 EOF\n", lock.ino()),
    );
    let report = tree.report();
    check_form(&report);
    let lock = finding(&report, "package_lock");
    assert_eq!((lock.status, lock.pids.as_slice()), (Status::Disturbs, &[700][..]));
    assert_eq!(finding(&report, "program.job").pids, [700]);
    assert_eq!(finding(&report, "watcher.permission").pids, [701]);
}

#[test]
fn another_instance_its_helper_and_users_of_its_libraries() {
    let tree = Tree::new();
    tree.executable("opt/browser/browser", "#!/usr/bin/runner\n");
    tree.executable("usr/bin/runner", "pretended");
    tree.link("usr/bin/browser", "../../opt/browser/browser");
    let map = |path: &str| format!("1000-2000 r-xp 00000000 08:01 77 {path}\n");
    tree.process(800, "runner", &["/usr/bin/runner", "/opt/browser/browser"]);
    tree.file("proc/800/maps", &(map("/usr/bin/runner") + &map("/opt/browser/lib.so")));
    tree.process(801, "helper", &["/opt/other/helper"]);
    tree.file("proc/801/maps", &map("/opt/browser/lib.so"));
    tree.process(802, "runner", &["/usr/bin/runner", "/opt/unrelated"]);
    tree.file("proc/802/maps", &map("/usr/bin/runner"));
    tree.process(803, "idle", &["/usr/bin/idle"]);
    let command = vec!["browser".to_owned()];
    let report = tree.report_with(probes(), Config { command: command.clone(), ..config() });
    check_form(&report);
    let instance = finding(&report, "holder.instance");
    assert_eq!((instance.status, instance.pids.as_slice()), (Status::Disturbs, &[800][..]));
    assert_eq!(instance.remedy.as_deref(), Some("end it: kill 800"));
    assert!(finding(&report, "holder.own_files").pids.contains(&801));
    assert!(finding(&report, "holder.shared").pids.contains(&802));

    // The same as somebody who may not look into other processes.
    for pid in 800..=803 {
        tree.remove(&format!("proc/{pid}/maps"));
        tree.file(&format!("proc/{pid}/maps/closed"), ""); // reading a directory fails, as a refusal does
    }
    tree.status(1000, 0, 0);
    let report = tree.report_with(probes(), Config { command, ..config() });
    assert_eq!(finding(&report, "holder.hidden").status, Status::Unknown);
    assert_eq!(finding(&report, "holder.instance").pids, [800]);
}

#[test]
fn leftovers_are_told_with_their_age() {
    let leftover = Leftover {
        description: "read_ahead_kb of sda is 0".to_owned(),
        age: std::time::Duration::from_mins(3),
    };
    let report = Tree::new().report_with(probes(), Config { leftovers: Some(vec![leftover]), ..config() });
    check_form(&report);
    let told = finding(&report, "leftover");
    assert_eq!((told.status, told.area), (Status::Disturbs, Area::Leftovers));
    assert_eq!(told.fact, "read_ahead_kb of sda is 0 (left behind 3 min ago)");
    let report = Tree::new().report_with(probes(), Config { leftovers: Some(Vec::new()), ..config() });
    assert_eq!(finding(&report, "leftover").status, Status::Ok);
}

#[test]
fn the_document_is_named_and_its_statuses_are_words() {
    let tree = Tree::new();
    let text = serde_json::to_string(&tree.report()).expect("serialises");
    let document: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
    assert_eq!(document["schema"], "coldstart.doctor/1");
    assert_eq!(document["summary"]["tier"], "A");
    assert_eq!(document["summary"]["eviction"], "all");
    assert_eq!(document["findings"][0]["status"], "ok");
    assert_eq!(document["findings"][0]["area"], "privileges");
}

#[test]
fn this_machine_as_it_is() {
    let config =
        Config { command: vec!["cat".to_owned()], search_path: "/usr/bin:/bin".to_owned(), ..Config::new() };
    let report = cold_doctor::examine(Roots::new("/"), Probes::live(), config).expect("examines");
    check_form(&report);
    assert!(!findings(&report, "storage.filesystem").is_empty());
}

#[test]
fn a_program_that_really_runs_is_named_and_one_that_ended_is_not() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let program = dir.path().join("napper");
    std::fs::copy("/bin/sleep", &program).expect("copies");
    let examine = || {
        let command = vec![program.display().to_string()];
        let config = Config { command, window: std::time::Duration::ZERO, ..Config::new() };
        cold_doctor::examine(Roots::new("/"), Probes::live(), config).expect("examines")
    };
    let mut child = tree::patiently(|| std::process::Command::new(&program).arg("600").spawn().ok());
    let report = examine();
    child.kill().expect("kills");
    child.wait().expect("waits");
    let pid = i32::try_from(child.id()).expect("fits");
    assert_eq!(finding(&report, "holder.instance").pids, [pid]);
    assert!(findings(&examine(), "holder.instance").is_empty());
}

#[test]
fn a_path_that_does_not_exist_is_an_error() {
    let config = Config { paths: vec![PathBuf::from("/no/such/path")], ..config() };
    let error = cold_doctor::examine(Roots::new("/"), probes(), config).expect_err("is refused");
    assert!(error.to_string().starts_with("cannot examine /no/such/path: No such file"), "{error}");
}

#[test]
fn exactness_is_told() {
    assert_eq!(finding(&Tree::new().report(), "exact_need").status, Status::Ok);
}

#[test]
fn the_tier_and_its_reason_are_those_of_the_recorder() {
    let tree = Tree::new();
    for (tier, refused, status) in [
        (Tier::A, [].as_slice(), Status::Ok),
        (Tier::B, &[Tier::A], Status::Note),
        (Tier::C, &[Tier::A, Tier::B], Status::Missing),
        (Tier::D, &[Tier::A, Tier::B, Tier::C], Status::Missing),
    ] {
        let recording = || SURVEY.with_borrow(|survey| survey.clone().expect("set"));
        let why = refused.iter().map(|refused| (*refused, format!("because of {refused}"))).collect();
        SURVEY.set(Some(Survey { tier, refused: why }));
        let report = tree.report_with(Probes { recording, ..probes() }, config());
        let told = finding(&report, "tier");
        assert_eq!((report.summary.tier, told.status), (tier, status));
        if status == Status::Missing {
            assert_eq!(told.remedy.as_deref(), Some("because of B"));
        }
        assert_eq!(findings(&report, "tier.perf").len(), usize::from(refused.contains(&Tier::C)));
    }
}

thread_local! {
    static SURVEY: RefCell<Option<Survey>> = const { RefCell::new(None) };
}
