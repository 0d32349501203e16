//! Every reader of untrusted bytes as a function that must neither panic nor run away.
//!
//! For tests only. `tests/replay.rs` feeds them the corpus and some thousands of its mutations on a
//! stable compiler; `fuzz/` hands the same functions to libFuzzer. Start reading at [`TARGETS`].
#![allow(clippy::expect_used, clippy::missing_panics_doc)] // a panic is how a target reports

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use cold_bench::gate::Gate;
use cold_bench::params::{Parameters, Scan};
use cold_sys::procfs::{ProcFs, parse_maps};

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// All of them, by the name of their corpus directory.
pub const TARGETS: &[(&str, Target)] = &[
    ("baseline", baseline),
    ("crontab", crontab),
    ("elf", elf),
    ("etl", etl),
    ("gate", gate),
    ("journal", cold_journal::fuzzing::journal),
    ("loader_cache", cold_doctor::fuzzing::loader_cache),
    ("lz77", lz77),
    ("observe", cold_sys::fuzzing::observe),
    ("order", cold_recording::fuzzing::order),
    ("params", params),
    ("pf", pf),
    ("plan", cold_plan::fuzzing::plan),
    ("plan_history", cold_plan::fuzzing::history),
    ("plan_json", cold_plan::fuzzing::portable),
    ("proc", proc),
    ("raw_log", raw_log),
    ("ready", ready),
    ("recording_log", recording_log),
    ("recording_manifest", cold_recording::fuzzing::manifest),
    ("recording_table", recording_table),
    ("snapshot", cold_cache::fuzzing::snapshot),
    ("supervise", cold_sys::fuzzing::supervise),
    ("symbols", symbols),
    ("windows_text", windows_text),
    ("xpress", xpress),
];

/// Runs the target of this name; for the fuzzers, which are one program each.
///
/// # Panics
/// Without such a target, and where the target panics.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(n, _)| *n == name).expect("a target");
    target(bytes);
}

/// A baseline, judged against itself by a gate.
fn baseline(bytes: &[u8]) {
    let Ok(report) = cold_bench::baseline::parse(&String::from_utf8_lossy(bytes)) else { return };
    let _ = cold_bench::summary::analyze(&report, 0.05);
    if let Ok(gate) = Gate::parse("warm.median > 250ms") {
        let _ = gate.evaluate(&report, Some(&report));
    }
}

fn crontab(bytes: &[u8]) {
    cold_doctor::fuzzing::crontab(&String::from_utf8_lossy(bytes));
}

/// A program file.
fn elf(bytes: &[u8]) {
    let _ = cold_symbols::needs(&in_memory(bytes));
}

fn in_memory(bytes: &[u8]) -> File {
    let fd = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
    let mut file = File::from(fd);
    file.write_all(bytes).expect("memory");
    file
}

/// A log of raw events.
fn recording_log(bytes: &[u8]) {
    cold_recording::fuzzing::log(rewound(bytes), bytes.len() as u64);
}

/// A table of a recording.
fn recording_table(bytes: &[u8]) {
    let _ = cold_recording::fuzzing::table(&rewound(bytes));
}

/// A file to be read from its start.
fn rewound(bytes: &[u8]) -> File {
    let mut file = in_memory(bytes);
    file.rewind().expect("memory");
    file
}

/// A program file with symbols, debug information and unwind tables.
fn symbols(bytes: &[u8]) {
    let file = in_memory(bytes);
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    cold_symbols::fuzzing::program(Path::new(&path));
}

/// An event trace of Windows: every event of it, and what it says.
fn etl(bytes: &[u8]) {
    let Ok(trace) = cold_windows::etl::Trace::open(bytes) else { return };
    let pointer = trace.header().pointer;
    let _ = trace.events(|_, event| drop(cold_windows::etl::record(event, pointer)));
    let Ok(Ok(read)) = cold_windows::etl::Trace::open(bytes).map(cold_windows::etl::gather) else { return };
    if let Ok(tree) = cold_windows::evidence::Tree::choose(&read.evidence, None) {
        let _ = cold_windows::recording(&read.evidence, &tree, "", "");
    }
}

/// Compressed data, by both codecs; what the first expands comes back from its compressor.
fn lz77(bytes: &[u8]) {
    for size in [300, 4096, 70_000] {
        if let Ok(data) = cold_windows::lz77::expand(bytes, size) {
            let again = cold_windows::lz77::compress(&data);
            assert_eq!(cold_windows::lz77::expand(&again, size).as_ref(), Ok(&data));
        }
        let _ = cold_windows::lznt1::expand(bytes, size);
    }
}

/// A prefetch file of Windows, what is worked out of it, and the recording of its latest start.
fn pf(bytes: &[u8]) {
    let Ok(p) = cold_windows::pf::Prefetch::read(bytes) else { return };
    let _ = (p.needs(), p.hash_check());
    let _ = cold_windows::start_of(&p, "", "");
}

/// Compressed data of a prefetch file.
fn xpress(bytes: &[u8]) {
    for size in [300, 4096, 70_000] {
        if let Ok(data) = cold_windows::xpress::expand(bytes, size) {
            assert_eq!(data.len(), size);
        }
    }
}

/// A trace of Windows in text, and the recording of its start.
fn windows_text(bytes: &[u8]) {
    let _ = cold_windows::text::layout_ini(bytes);
    let Ok(read) = cold_windows::text::gather(bytes, &cold_windows::text::Map::default()) else { return };
    if let Ok(tree) = cold_windows::evidence::Tree::choose(&read.evidence, None) {
        let _ = cold_windows::recording(&read.evidence, &tree, "", "");
    }
}

/// A gate; what parses must be checked and evaluated without a report of that shape.
fn gate(bytes: &[u8]) {
    if let Ok(gate) = Gate::parse(&String::from_utf8_lossy(bytes)) {
        let _ = gate.check(&["a".to_owned()], &[], true);
    }
}

/// The raw log of a recording: blocks of a kind (1 byte), a length (2 bytes, little endian) and bytes.
fn raw_log(mut bytes: &[u8]) {
    let blocks = std::iter::from_fn(move || {
        let (&[kind, low, high], rest) = bytes.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (block, rest) = rest.split_at(length);
        bytes = rest;
        Some((u16::from(kind), block.to_vec()))
    });
    let mut unwinder = cold_trace::unwind::InnermostOnly;
    let _ = cold_trace::assemble(blocks, &mut unwinder, &mut cold_trace::machine::Elsewhere);
}

/// A readiness criterion.
fn ready(bytes: &[u8]) {
    let _ = cold_bench::ready::Ready::parse(&String::from_utf8_lossy(bytes));
}

/// Lines: a command, a list's name and values, a scan's name, least, most and step.
fn params(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    let line = |n: usize| lines.get(n).copied().unwrap_or_default();
    let list = [(line(1).to_owned(), line(2).to_owned())];
    let scan = Scan { name: line(3), min: line(4), max: line(5) };
    let read = [Parameters::new(&list, None, None), Parameters::new(&[], Some(scan), lines.get(6).copied())];
    for parameters in read.into_iter().flatten() {
        let _ = parameters.expand(&[line(0).to_owned()], &[]);
    }
}

/// Every file of `/proc` that is read, with these bytes in it.
fn proc(bytes: &[u8]) {
    let _ = parse_maps(bytes);
    let dir = tempfile::tempdir().expect("a directory");
    let put = |rel: &str| {
        let path = dir.path().join(rel);
        std::fs::create_dir_all(path.parent().expect("has one")).expect("writable");
        std::fs::write(path, bytes).expect("writable");
    };
    for rel in [
        "7/cgroup",
        "7/cmdline",
        "7/comm",
        "7/io",
        "7/stat",
        "diskstats",
        "loadavg",
        "locks",
        "meminfo",
        "net/tcp",
        "net/tcp6",
        "net/unix",
        "pressure/io",
        "self/mountinfo",
        "self/status",
        "stat",
        "swaps",
        "vmstat",
    ] {
        put(rel);
    }
    let proc = ProcFs::new(dir.path());
    let _ = (proc.cgroups(7), proc.cmdline(7), proc.comm(7), proc.stat(7));
    let _ = proc.process_field(7, "io", "read_bytes");
    let _ = (proc.diskstats(), proc.loadavg(), proc.locks(), proc.meminfo());
    let _ = (proc.tcp_listens(80), proc.unix_listens(Path::new("/run/x")));
    let _ = (proc.pressure("io"), proc.mounts(), proc.mount_of(Path::new("/")), proc.own_credentials());
    let _ = (proc.cpu_times(), proc.swaps(), proc.vmstat());
}
