//! A directory that looks like a machine.

use std::os::unix::fs::symlink;

use cold_doctor::{Config, Finding, Probes, Report, Roots, Status};
use cold_model::recording::manifest::Tier;
use cold_sys::clock::LocalTime;
use cold_sys::probe::Mincore;
use cold_trace::Survey;

/// 2026-11-20 06:20 UTC, a Friday.
pub(crate) const NOW: u64 = 1_795_155_600;

pub(crate) struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    /// A quiet machine: x86, one ext4 disk, cgroup2, root, nothing running but an init.
    pub(crate) fn new() -> Self {
        let tree = Self { dir: tempfile::tempdir().expect("temporary directory") };
        tree.status(0, u64::MAX >> 23, 0);
        tree.namespaces("4026531837", "4026531836", "4026531835");
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "6.12.0-test\n"),
            ("proc/sys/kernel/task_delayacct", "1\n"),
            ("proc/sys/kernel/perf_event_paranoid", "2\n"),
            ("proc/sys/vm/drop_caches", "0\n"),
            ("proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
            ("proc/loadavg", "0.10 0.10 0.10 1/100 999\n"),
            ("proc/stat", "cpu  100 0 100 800 0 0 0 0\n"),
            ("proc/vmstat", "drop_pagecache 0\ndrop_slab 0\npgsteal_kswapd 0\n"),
            ("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 14000000 kB\nDirty: 0 kB\n"),
            ("proc/filesystems", "nodev\tdebugfs\n\text4\n"),
            ("proc/diskstats", " 8 0 sda 100 0 2048 0 0 0 0 0 0 0 0\n"),
            ("proc/swaps", "Filename Type Size Used Priority\n"),
            ("proc/locks", ""),
            ("proc/cpuinfo", "flags : fpu vme sse\n"),
            ("proc/self/cgroup", "0::/\n"),
            (
                "proc/self/mountinfo",
                "20 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
                 30 20 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/cgroup.controllers", "io memory pids\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("usr/bin/bash", "ELF, pretended"),
        ] {
            tree.file(path, text);
        }
        tree.disk(
            "sda",
            &[("read_ahead_kb", "128"), ("scheduler", "none [mq-deadline]"), ("rotational", "0")],
        );
        tree.process(1, "init", &["/sbin/init"]);
        tree
    }

    pub(crate) fn file(&self, rel: &str, text: &str) {
        let path = self.dir.path().join(rel);
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("makes directories");
        std::fs::write(path, text).expect("writes");
    }

    pub(crate) fn link(&self, rel: &str, target: &str) {
        let path = self.dir.path().join(rel);
        std::fs::create_dir_all(path.parent().expect("has a parent")).expect("makes directories");
        let _ = std::fs::remove_file(&path);
        symlink(target, path).expect("links");
    }

    pub(crate) fn path(&self, rel: &str) -> std::path::PathBuf {
        self.dir.path().join(rel)
    }

    pub(crate) fn remove(&self, rel: &str) {
        let path = self.dir.path().join(rel);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
            .expect("removes");
    }

    pub(crate) fn executable(&self, rel: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        self.file(rel, text);
        let path = self.dir.path().join(rel);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    }

    /// `/proc/self/status` with these ids, capabilities and seccomp mode.
    pub(crate) fn status(&self, uid: u32, caps: u64, seccomp: u8) {
        let ids = format!("{uid}\t{uid}\t{uid}\t{uid}");
        self.file(
            "proc/self/status",
            &format!("Name:\tcold\nUid:\t{ids}\nCapEff:\t{caps:016x}\nNoNewPrivs:\t0\nSeccomp:\t{seccomp}\n"),
        );
    }

    pub(crate) fn namespaces(&self, user: &str, pid: &str, cgroup: &str) {
        for (name, inode) in
            [("user", user), ("pid", pid), ("cgroup", cgroup), ("uts", "4026531838"), ("ipc", "4026531839")]
        {
            self.link(&format!("proc/self/ns/{name}"), &format!("{name}:[{inode}]"));
        }
    }

    /// A whole disk with one partition; `dev` is 8:0 and 8:1.
    pub(crate) fn disk(&self, name: &str, queue: &[(&str, &str)]) {
        let dir = format!("sys/devices/pci/block/{name}");
        for (attribute, value) in queue {
            self.file(&format!("{dir}/queue/{attribute}"), &format!("{value}\n"));
        }
        self.file(&format!("{dir}/{name}1/partition"), "1\n");
        self.link("sys/dev/block/8:0", &format!("../../devices/pci/block/{name}"));
        self.link("sys/dev/block/8:1", &format!("../../devices/pci/block/{name}/{name}1"));
        self.link(&format!("sys/class/block/{name}"), &format!("../../devices/pci/block/{name}"));
        self.link(&format!("sys/class/block/{name}1"), &format!("../../devices/pci/block/{name}/{name}1"));
    }

    /// A process that maps nothing and has no descriptors.
    pub(crate) fn process(&self, pid: i32, comm: &str, args: &[&str]) {
        let comm: String = comm.chars().take(15).collect();
        let zeros = "0 ".repeat(30);
        self.file(&format!("proc/{pid}/stat"), &format!("{pid} ({comm}) S 1 1 1 0 -1 0 {zeros}\n"));
        self.file(&format!("proc/{pid}/cmdline"), &(args.join("\0") + "\0"));
        self.file(&format!("proc/{pid}/maps"), "");
        std::fs::create_dir_all(self.dir.path().join(format!("proc/{pid}/fd"))).expect("makes a directory");
        self.link(&format!("proc/{pid}/exe"), args.first().copied().unwrap_or("/sbin/init"));
    }

    pub(crate) fn report(&self) -> Report {
        self.report_with(probes(), config())
    }

    pub(crate) fn report_with(&self, probes: Probes, config: Config) -> Report {
        cold_doctor::examine(Roots::new(self.dir.path()), probes, config).expect("examines")
    }
}

/// Nothing to watch for, a fixed time.
pub(crate) fn config() -> Config {
    Config {
        window: std::time::Duration::ZERO,
        now: std::time::Duration::from_secs(NOW),
        search_path: "/usr/bin".to_owned(),
        ..Config::new()
    }
}

/// A kernel that allows everything.
pub(crate) fn probes() -> Probes {
    Probes {
        writable: |_| Ok(true),
        recording: || Survey { tier: Tier::A, refused: Vec::new() },
        perf_own: || Ok(()),
        ptrace: || Ok(()),
        cachestat: |_| Ok(Ok(())),
        mincore: |_| Ok(Mincore { pages: 10, resident: 4 }),
        local_time: friday_morning,
    }
}

/// A kernel that refuses everything.
pub(crate) fn refusing() -> Probes {
    fn refuse() -> std::io::Result<()> {
        Err(std::io::Error::from_raw_os_error(libc::EPERM))
    }
    Probes {
        writable: |_| Ok(false),
        recording: || {
            let why = |tier| (tier, format!("tier {tier} needs root"));
            Survey { tier: Tier::D, refused: [Tier::A, Tier::B, Tier::C].map(why).into() }
        },
        perf_own: refuse,
        ptrace: refuse,
        cachestat: |_| Ok(refuse()),
        mincore: |_| Ok(Mincore { pages: 10, resident: 10 }),
        local_time: friday_morning,
    }
}

/// Local time on the day of [`NOW`], as in UTC.
#[expect(clippy::unnecessary_wraps)] // the signature of the real clock
fn friday_morning(unix: i64) -> Option<LocalTime> {
    let minutes = (unix - NOW.cast_signed()) / 60 + 6 * 60 + 20;
    let (hour, minute) = ((minutes / 60) as u32, (minutes % 60) as u32);
    Some(LocalTime { year: 2026, month: 11, day: 20, hour, minute, weekday: 5 })
}

/// The findings with this id.
pub(crate) fn findings<'a>(report: &'a Report, id: &str) -> Vec<&'a Finding> {
    report.findings.iter().filter(|f| f.id == id).collect()
}

/// The only finding with this id.
#[track_caller]
pub(crate) fn finding<'a>(report: &'a Report, id: &str) -> &'a Finding {
    let found = findings(report, id);
    assert_eq!(found.len(), 1, "findings {id}: {found:?}");
    found[0]
}

/// Ids of all findings with this status.
pub(crate) fn with_status(report: &Report, status: Status) -> Vec<&str> {
    report.findings.iter().filter(|f| f.status == status).map(|f| f.id.as_str()).collect()
}

/// Tries until it works, for at most 10 s. A program just written cannot be started (ETXTBSY) while a process
/// that another test forks at that moment has inherited the descriptor it was written through.
pub(crate) fn patiently<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        assert!(std::time::Instant::now() < deadline, "does not work");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// The description of the JSON document.
const FORMAT: &str = include_str!("../../../../docs/formats/doctor-json.md");

/// What must hold of every report.
#[track_caller]
pub(crate) fn check_form(report: &Report) {
    for f in &report.findings {
        assert!(!f.fact.is_empty() && !f.fact.ends_with('.'), "{f:?}");
        assert!(!f.consequence.is_empty(), "no consequence: {f:?}");
        assert!(f.status != Status::Disturbs || f.remedy.is_some(), "disturbs without a remedy: {f:?}");
        assert!(FORMAT.contains(&format!("`{}`", f.id)), "not in the description of the format: {}", f.id);
        let check = cold_doctor::checks::CHECKS
            .iter()
            .find(|c| f.id == c.id || f.id.starts_with(&format!("{}.", c.id)));
        assert_eq!(check.map(|c| c.area), Some(f.area), "id and area belong to no check: {f:?}");
    }
    let count = |s| report.findings.iter().filter(|f| f.status == s).count();
    assert_eq!(report.summary.disturbing, count(Status::Disturbs));
    assert_eq!(report.summary.unknown, count(Status::Unknown));
}
