//! Public traces against what others read in them: Microsoft's own decode (`*.baseline.txt`) and counts of an
//! independent reader (`EXPECTED.json`). The samples are no part of the project.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // the lints know only functions marked as tests; SKIPPED is said

mod support;

use std::collections::{BTreeMap, HashMap};

use cold_windows::etl::{Clock, Disk, DiskKind, HardFault, LogHeader, Losses, Record, Trace, record};

use support::samples;

/// What a test asks of one trace.
struct Read {
    header: LogHeader,
    buffers: (u64, u64),
    hooks: BTreeMap<u16, u64>,
    without_hook: u64,
    first: Option<i64>,
    disk: Vec<(i64, Disk)>,
    faults: Vec<(i64, HardFault)>,
    names: HashMap<u64, String>,
    processes: HashMap<u32, String>,
    threads: HashMap<u32, u32>,
    losses: Losses,
}

fn read(bytes: &[u8]) -> Read {
    let trace = Trace::open(bytes).unwrap();
    let header = trace.header().clone();
    let pointer = header.pointer;
    let mut r = Read {
        header,
        buffers: trace.buffers(),
        hooks: BTreeMap::new(),
        without_hook: 0,
        first: None,
        disk: Vec::new(),
        faults: Vec::new(),
        names: HashMap::new(),
        processes: HashMap::new(),
        threads: HashMap::new(),
        losses: Losses::default(),
    };
    let losses = trace
        .events(|time, event| {
            r.first.get_or_insert(time);
            match event.hook {
                Some(hook) => *r.hooks.entry(hook).or_default() += 1,
                None => r.without_hook += 1,
            }
            match record(event, pointer).unwrap() {
                Some(Record::Disk(d)) => r.disk.push((time, d)),
                Some(Record::HardFault(f)) => r.faults.push((time, f)),
                Some(Record::FileName(n)) => drop(r.names.insert(n.object, n.name)),
                Some(Record::Process(p)) => drop(r.processes.insert(p.pid, p.image)),
                Some(Record::Thread(t)) => drop(r.threads.insert(t.tid, t.pid)),
                _ => {}
            }
        })
        .unwrap();
    r.losses = losses;
    r
}

/// `name=1,234;` or `name=0x12;` of a decoded event.
fn field(line: &str, name: &str) -> Option<u64> {
    let text = line.split_once(&format!(" {name}="))?.1.split(';').next()?;
    let text = text.replace(',', "");
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Of a number with three decimals, in thousandths.
fn thousandths(text: &str) -> u64 {
    text.replace([',', '.'], "").parse().unwrap()
}

fn agrees_with_microsoft(name: &str) {
    let Some(dir) = samples("etl") else { return };
    let r = read(&std::fs::read(dir.join(format!("{name}.etl"))).unwrap());
    let baseline = std::fs::read_to_string(dir.join(format!("{name}.baseline.txt"))).unwrap();
    let counts: HashMap<&str, u64> = baseline
        .lines()
        .filter_map(|l| l.strip_prefix("COUNT Windows Kernel/")?.rsplit_once(':'))
        .map(|(class, n)| (class, n.trim().replace(',', "").parse().unwrap()))
        .collect();
    let classes = [
        ("DiskIO/Read", 0x010a),
        ("DiskIO/Write", 0x010b),
        ("DiskIO/ReadInit", 0x010c),
        ("DiskIO/WriteInit", 0x010d),
        ("Memory/HardFault", 0x0220),
        ("Process/Start", 0x0301),
        ("Process/Stop", 0x0302),
        ("Process/DCStart", 0x0303),
        ("Process/DCStop", 0x0304),
        ("Process/Defunct", 0x0327),
        ("Thread/Start", 0x0501),
        ("Thread/Stop", 0x0502),
        ("Image/Load", 0x030a),
        ("Image/Unload", 0x1402),
        ("Image/DCStart", 0x1403),
        ("Image/DCStop", 0x1404),
    ];
    for (class, hook) in classes {
        assert_eq!(r.hooks.get(&hook), counts.get(class), "{class}");
        assert!(counts.contains_key(class), "{class}");
    }
    assert_eq!(same_fields(&r, &baseline), 15, "five events of each class are in the baseline");
    for (_, d) in &r.disk {
        assert!(r.names.contains_key(&d.file), "{d:?} has no name");
    }
    for (_, f) in &r.faults {
        assert!(r.names.contains_key(&f.file), "{f:?} has no name");
        assert!(r.processes.contains_key(r.threads.get(&f.tid).unwrap()), "{f:?} has no process");
    }
    let h = &r.header;
    assert_eq!((h.build, h.processors, h.pointer, h.counter_hz, h.cpu_mhz), (9200, 8, 8, 10_000_000, 3592));
    assert_eq!((h.clock, h.events_lost, h.logger.as_str()), (Clock::Counter, 0, "Relogger"));
    assert_eq!((r.losses.damaged, r.losses.cut_at), (0, None), "{:?}", r.losses);
}

/// Compares each field of the disk reads, writes and hard faults that are in `baseline`; how many there are.
fn same_fields(r: &Read, baseline: &str) -> u32 {
    let us = |ticks: i64| (r.header.nanos(ticks).cast_unsigned() + 500) / 1000;
    let close = |ours: u64, theirs: &str, line: &str| {
        assert!(ours.abs_diff(thousandths(theirs)) <= 1, "{ours} {line}");
    };
    let first = r.first.unwrap();
    let events = |class: &str| {
        let mark = format!("Windows Kernel/{class} ");
        baseline
            .lines()
            .filter(|l| l.starts_with("EVENT") && l.contains(&mark))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let at = |line: &str| line["EVENT ".len()..].split(':').next().unwrap().to_owned();
    let elapsed =
        |line: &str| line.split_once("ElapsedTimeMSec=").unwrap().1.split(';').next().unwrap().to_owned();
    let mut compared = 0;
    for (class, kind) in [("DiskIO/Read", DiskKind::Read), ("DiskIO/Write", DiskKind::Write)] {
        let ours = r.disk.iter().filter(|(_, d)| d.kind == kind);
        for (line, (time, d)) in events(class).iter().zip(ours) {
            close(us(time - first), &at(line), line);
            close(us(d.response.cast_signed()), &elapsed(line), line);
            assert_eq!(field(line, "TransferSize"), Some(d.bytes.into()), "{line}");
            assert_eq!(field(line, "ByteOffset"), Some(d.offset), "{line}");
            assert_eq!(field(line, "Irp"), Some(d.irp), "{line}");
            assert_eq!(field(line, "FileKey"), Some(d.file), "{line}");
            assert_eq!(field(line, "TID"), d.tid.map(u64::from), "{line}");
            compared += 1;
        }
    }
    for (line, (time, f)) in events("Memory/HardFault").iter().zip(&r.faults) {
        close(us(time - first), &at(line), line);
        close(us(time - f.began), &elapsed(line), line);
        assert_eq!(field(line, "ReadOffset"), Some(f.offset), "{line}");
        assert_eq!(field(line, "ByteCount"), Some(f.bytes.into()), "{line}");
        assert_eq!(field(line, "VirtualAddress"), Some(f.address), "{line}");
        assert_eq!(field(line, "FileKey"), Some(f.file), "{line}");
        assert_eq!(field(line, "TID"), Some(f.tid.into()), "{line}");
        compared += 1;
    }
    compared
}

#[test]
fn the_64_bit_start_is_what_microsoft_reads() {
    agrees_with_microsoft("net.4.5.2.x64");
}

#[test]
fn the_32_bit_start_is_what_microsoft_reads() {
    agrees_with_microsoft("net.4.5.2.x86");
}

#[test]
fn the_hard_faults_of_a_net_start_are_in_its_runtime() {
    let Some(dir) = samples("etl") else { return };
    let r = read(&std::fs::read(dir.join("net.4.5.2.x64.etl")).unwrap());
    let of = |f: &HardFault| r.processes[&r.threads[&f.tid]].as_str();
    let own: Vec<_> = r.faults.iter().filter(|(_, f)| of(f) == "Test.x64.exe").collect();
    assert_eq!(own.len(), 101);
    let clr = own.iter().filter(|(_, f)| r.names[&f.file].ends_with("\\clr.dll")).count();
    assert_eq!(clr, 74);
    let bytes: u64 = r.faults.iter().map(|(_, f)| u64::from(f.bytes)).sum();
    assert_eq!(bytes, 2_722_816);
    let read: u64 =
        r.disk.iter().filter(|(_, d)| d.kind == DiskKind::Read).map(|(_, d)| u64::from(d.bytes)).sum();
    assert_eq!(read, 19_564_544);
}

#[test]
fn every_sample_has_the_buffers_and_events_that_another_reader_counts() {
    let Some(dir) = samples("etl") else { return };
    let expected = std::fs::read(dir.join("EXPECTED.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    let files = expected.as_object().unwrap();
    assert_eq!(files.len(), 10);
    for (name, wanted) in files {
        let r = read(&std::fs::read(dir.join(name)).unwrap());
        assert_eq!(Some(r.buffers.0), wanted["buffers"].as_u64(), "{name}");
        assert_eq!(Some(r.buffers.1), wanted["compressed"].as_u64(), "{name}");
        let mut without = 0;
        let mut hooks = BTreeMap::new();
        for (class, n) in wanted["events"].as_object().unwrap() {
            match class.strip_prefix("hook_") {
                Some(hook) => drop(hooks.insert(u16::from_str_radix(hook, 16).unwrap(), n.as_u64().unwrap())),
                None => without += n.as_u64().unwrap(),
            }
        }
        assert_eq!((&r.hooks, r.without_hook), (&hooks, without), "{name}");
        assert_eq!((r.losses.damaged, r.losses.cut_at), (0, None), "{name}: {:?}", r.losses);
    }
}

/// Small changes to a file from a fixed seed: xorshift64*.
fn damaged(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let mut out = bytes.to_vec();
    for _ in 0..=next() % 6 {
        let at = (next() % out.len() as u64) as usize;
        out[at] ^= 1 << (next() % 8);
    }
    out
}

/// Reads a trace to its end, whatever it is.
fn read_all(bytes: &[u8]) {
    let Ok(trace) = Trace::open(bytes) else { return };
    let read = cold_windows::etl::gather(trace).unwrap();
    if let Ok(tree) = cold_windows::evidence::Tree::choose(&read.evidence, None) {
        let _ = cold_windows::recording(&read.evidence, &tree, "", "");
    }
}

#[test]
fn no_cut_and_no_flipped_bit_of_a_real_trace_panics() {
    let Some(dir) = samples("etl") else { return };
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "etl") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        // Of the large ones the first buffers; every byte of the small ones, and of the others some.
        let part = &bytes[..bytes.len().min(200_000)];
        for end in (0..part.len()).step_by((part.len() / 600).max(1)).chain(0..part.len().min(700)) {
            read_all(&part[..end]);
        }
        for seed in 0..150 {
            read_all(&damaged(part, seed));
        }
    }
}

#[test]
fn the_start_of_the_net_program_is_found_with_all_its_names() {
    let Some(dir) = samples("etl") else { return };
    let bytes = std::fs::read(dir.join("net.4.5.2.x64.etl")).unwrap();
    let e = cold_windows::etl::gather(Trace::open(bytes.as_slice()).unwrap()).unwrap().evidence;
    assert_eq!((e.reads.len(), e.faults.len()), (1208, 153));
    assert!(
        e.reads.iter().all(|r| r.file.is_some())
            && e.faults.iter().all(|f| f.file.is_some() && f.pid.is_some())
    );
    let tree = cold_windows::evidence::Tree::choose(&e, None).unwrap();
    assert_eq!(e.processes[tree.root].image, "Test.x64.exe");
    let r = cold_windows::recording(&e, &tree, "1", "a.etl");
    let path = |file: u32| r.files[file as usize].path.clone().unwrap();
    let touches = r.touches.as_ref().unwrap();
    let clr = "C:/Windows/Microsoft.NET/Framework64/v4.0.30319/clr.dll";
    assert_eq!((touches.len(), touches.iter().filter(|t| path(t.file) == clr).count()), (101, 74));
    // All but the faults on a file of the network have the requests that they waited for.
    let reads = r.device_reads.as_ref().unwrap();
    let own = r.transfers.iter().flatten().filter(|t| reads[t.request as usize].in_tree).count();
    assert_eq!((own, reads.iter().filter(|d| d.in_tree).count()), (100, 100));
}
