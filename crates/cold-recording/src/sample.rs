//! Made-up recordings with the shape of real ones, for tests and budgets. Not part of a release.
//!
//! A little machine is simulated: a page cache, a disk that serves one request at a time, threads with
//! clocks of their own. What it says is therefore consistent: every needed page was read before or had
//! been cached, every fill of a read has its transfer, every wait ends with a request. The same call gives
//! the same recording everywhere.

use std::collections::BTreeMap;

use cold_model::Dev;
use cold_model::recording::manifest::{
    Cost, Device, DiskCounter, FileSystem, ProgramCost, RecordedMachine, StackMethod, StartState, Subject,
    Tier,
};
use cold_model::recording::tables::{Began, Process, Thread};
use cold_model::recording::{Manifest, Recording, manifest};
use cold_model::{Bytes, Known, Nanos};

mod sim;

use sim::{Act, FileSpec, Sim};

/// `CLOCK_MONOTONIC` at which every sample starts.
pub const START: Nanos = Nanos(1_000_000_000_000);
/// Bytes per page.
pub const PAGE: u32 = 4096;
/// The first command's process.
pub const MAIN: u32 = 4242;
/// A process it starts.
pub const CHILD: u32 = 4250;
/// A process that has nothing to do with it.
pub const BYSTANDER: u32 = 901;

/// `python3 -c 'import json'`, as it starts on a slow disk: about 300 events.
pub fn small() -> Recording {
    let lib = "/usr/lib/x86_64-linux-gnu";
    let mut files = vec![
        FileSpec::binary("/usr/bin/python3.11", 1600),
        FileSpec::binary(&format!("{lib}/ld-linux-x86-64.so.2"), 52),
        FileSpec::binary(&format!("{lib}/libc.so.6"), 470).warm(),
        FileSpec::binary(&format!("{lib}/libm.so.6"), 220),
        FileSpec::binary(&format!("{lib}/libz.so.1.2.13"), 30),
        FileSpec::data("/etc/ld.so.cache", 7),
    ];
    for module in ["encodings/__init__", "codecs", "os", "site", "json/__init__", "json/decoder"] {
        files.push(FileSpec::data(&format!("/usr/lib/python3.11/__pycache__/{module}.cpython-311.pyc"), 9));
    }
    let mut sim = Sim::new(0xc01d, files);
    sim.act(&Act::Script, 260);
    finish(sim, &["/usr/bin/python3.11", "-c", "import json"])
}

/// Something of Firefox's shape with about `events` rows in its event tables: one library of hundreds of
/// megabytes, a hundred more, three hundred small files, two processes and four threads.
pub fn firefox_like(events: usize, seed: u64) -> Recording {
    // Pages per event, so that reading and touching keep their proportion at every size.
    let scale = (events as u64 / 40_000).max(1);
    let mut files = vec![
        FileSpec::binary("/usr/lib/firefox-esr/firefox-esr", 160),
        FileSpec::binary("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", 52),
        FileSpec::binary("/usr/lib/x86_64-linux-gnu/libc.so.6", 470).warm(),
        FileSpec::binary("/usr/lib/firefox-esr/libxul.so", 9_000 * scale),
        FileSpec::data("/usr/lib/firefox-esr/omni.ja", 2_600 * scale),
        FileSpec::data("/usr/lib/firefox-esr/browser/omni.ja", 3_000 * scale),
    ];
    for n in 0..100 {
        files.push(FileSpec::binary(&format!("/usr/lib/x86_64-linux-gnu/libsample{n}.so.0"), 20 + n * scale));
    }
    for n in 0..300 {
        files.push(FileSpec::data(&format!("/usr/share/fonts/sample/face-{n}.ttf"), 4 + n % 60 * scale));
    }
    let mut sim = Sim::new(seed, files);
    sim.act(&Act::Browser, events);
    finish(sim, &["/usr/lib/firefox-esr/firefox-esr", "--headless"])
}

fn finish(sim: Sim, command: &[&str]) -> Recording {
    let end = sim.now();
    let mut r = sim.tables();
    r.processes = processes(end, command);
    r.threads = threads(end);
    r.manifest = manifest(&r, end, command);
    r
}

fn processes(end: Nanos, command: &[&str]) -> Vec<Process> {
    let row = |began, how, pid, parent, name: &str| Process {
        began: Nanos(began),
        how,
        pid,
        parent,
        name: name.to_owned(),
        executable: None,
        arguments: None,
        in_tree: pid != BYSTANDER,
        ended: None,
        status: None,
    };
    let name = command[0].rsplit('/').next().unwrap_or_default();
    let arguments = Some(command.iter().map(|s| (*s).to_owned()).collect());
    let exec = START.0 + 400_000;
    let child = START.0 + 2_000_000;
    vec![
        row(START.0 - 5_000_000_000, Began::Existing, BYSTANDER, 1, "systemd-journal"),
        Process { ended: Some(Nanos(exec)), ..row(START.0, Began::Fork, MAIN, 4241, "cold") },
        Process {
            executable: Some(0),
            arguments,
            ended: Some(end),
            status: Some(0),
            ..row(exec, Began::Exec, MAIN, 4241, name)
        },
        Process {
            executable: Some(0),
            ended: Some(Nanos(end.0 - 1000)),
            status: Some(0),
            ..row(child, Began::Fork, CHILD, MAIN, name)
        },
    ]
}

fn threads(end: Nanos) -> Vec<Thread> {
    let row = |began, tid, pid, name: &str| Thread {
        began: Nanos(began),
        tid,
        pid,
        name: name.to_owned(),
        in_tree: pid != BYSTANDER,
        ended: Some(end).filter(|_| pid != BYSTANDER),
    };
    vec![
        row(START.0 - 5_000_000_000, BYSTANDER, BYSTANDER, "systemd-journal"),
        row(START.0, MAIN, MAIN, "main"),
        row(START.0 + 1_000_000, MAIN + 1, MAIN, "worker 1"),
        row(START.0 + 1_500_000, MAIN + 2, MAIN, "worker 2"),
        row(START.0 + 2_000_000, CHILD, CHILD, "content"),
    ]
}

fn manifest(r: &Recording, end: Nanos, command: &[&str]) -> Manifest {
    let reads = r.device_reads.iter().flatten();
    let read: u64 = reads.clone().map(|d| u64::from(d.bytes)).sum();
    let requests = reads.count() as u64;
    let events: usize = r.counts().iter().skip(3).map(|(_, n)| n).sum();
    let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
    Manifest {
        format: manifest::FORMAT.to_owned(),
        version: manifest::VERSION,
        tool: "cold sample".to_owned(),
        complete: true,
        page_bytes: PAGE,
        tier: Tier::A,
        subject: Subject::Command,
        command: command.iter().map(Into::into).collect(),
        directory: "/home/sample".into(),
        environment: "9f86d081884c7d65".to_owned(),
        search_paths: BTreeMap::from([("PATH".to_owned(), path)]),
        started_at: "2026-11-21T10:00:00Z".to_owned(),
        start: START,
        ready: Some(Known::Value(Nanos(end.0 - 1_000_000))),
        serving: None,
        ready_means: "exit of the tree".to_owned(),
        end: Nanos(end.0 + 50_000_000),
        ending: Some(cold_model::bench::Ending::Code(0)),
        ended_by: None,
        load: None,
        state: StartState {
            wanted: "cold".into(),
            method: "caches dropped and mapped pages reclaimed".to_owned(),
            checked: Bytes(64 << 20),
            residual: None,
        },
        machine: RecordedMachine {
            kernel: "6.12.0-sample".to_owned(),
            architecture: "x86_64".to_owned(),
            cpu: "Sample CPU".to_owned(),
            cpus: 4,
            memory: Bytes(8 << 30),
            os: "Debian GNU/Linux 13".to_owned(),
        },
        devices: vec![device()],
        file_systems: vec![file_system()],
        exact_need: false,
        mapped_huge: Some(0),
        only_file: None,
        reached_by: None,
        fault_around: Known::Value(Bytes(65536)),
        stacks: StackMethod::FramePointers,
        lost: BTreeMap::from([("filemap".to_owned(), 0), ("block".to_owned(), 0)]),
        cost: Cost {
            programs: vec![ProgramCost {
                name: "on_fault".to_owned(),
                runs: events as u64,
                time: Nanos(events as u64 * 300),
            }],
            recorder_cpu: Nanos(events as u64 * 100),
            events: events as u64,
            bytes: Bytes(events as u64 * 64),
            buffers: Bytes(16 << 20),
        },
        disk_counters: vec![DiskCounter { dev: sim::DISK, requests, bytes: Bytes(read) }],
        notes: vec!["This recording is made up.".to_owned()],
        taints: Vec::new(),
        disqualified_by: Vec::new(),
    }
}

fn device() -> Device {
    Device {
        dev: sim::DISK,
        name: "vda".to_owned(),
        model: Some("Sample Disk".to_owned()),
        rotational: Known::Value(false),
        read_ahead: Known::Value(Bytes(128 << 10)),
        usual_read_ahead: None,
        max_request: Known::Value(Bytes(256 << 10)),
        max_segments: Known::Value(64),
        scheduler: Known::Value("none".to_owned()),
        size: Known::Value(Bytes(64 << 30)),
        partition_of: None,
    }
}

fn file_system() -> FileSystem {
    FileSystem {
        dev: Dev::new(254, 1),
        kind: "ext4".to_owned(),
        mounted_at: "/".to_owned(),
        source: "/dev/vda1".to_owned(),
        options: "rw,relatime".to_owned(),
        read_ahead: Known::Value(Bytes(128 << 10)),
        blind: None,
    }
}

#[cfg(test)]
mod tests;
