//! Writes evidence as the text that Windows' tools write, for tests and the fuzzers' corpus. Not part of a release.

use crate::evidence::{Evidence, FileId};

/// Rows of `xperf -a dumper`, with the CPU column of versions since 2018 or without.
pub fn dumper(e: &Evidence, cpu: bool) -> String {
    let mut rows = lives(e);
    rows.extend(reads(e, cpu));
    rows.extend(faults(e));
    rows.sort_by_key(|(at, _)| *at);
    rows.iter().fold(header(e, cpu), |out, (_, row)| out + row + "\r\n")
}

/// What stands before the rows.
fn header(e: &Evidence, cpu: bool) -> String {
    let cpu_title = if cpu { " CPU," } else { "" };
    format!(
        "BeginHeader\r\n\
         P-Start,  TimeStamp,     Process Name ( PID),  ParentPID,  SessionID, UniqueKey, Command Line, PackageFullName\r\n\
         P-DCStart,  TimeStamp,     Process Name ( PID),  ParentPID,  SessionID, UniqueKey, Command Line, PackageFullName\r\n\
         P-End,  TimeStamp,     Process Name ( PID),  ParentPID,  Status, UniqueKey, Command Line, PackageFullName\r\n\
         T-Start,  TimeStamp,     Process Name ( PID),   ThreadID\r\n\
         T-DCStart,  TimeStamp,     Process Name ( PID),   ThreadID\r\n\
         I-Start,  TimeStamp,     Process Name ( PID),   BaseAddr,   EndAddr, FileName\r\n\
         DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID,{cpu_title}             IrpPtr,   ByteOffset,     \
         IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName\r\n\
         HardFault,  TimeStamp,     Process Name ( PID),   ThreadID,        VirtualAddr,   ByteOffset,     IOSize, \
         ElapsedTime,         FileObject, FileName, Hardfaulted Address Information\r\n\
         EndHeader\r\n\
         OS Version: 10.0.{}, Trace Size: 1KB, Events Lost: 0, Buffers lost: 0, Trace Start: {}, Trace Length: 2 sec, \
         PointerSize: 8, Trace Name: a.etl\r\n\
         FirstReliableEventTimeStamp, 0\r\n",
        e.system.build.unwrap_or(0),
        e.system.started.unwrap_or(0),
    )
}

/// A row with its time, ns.
type Row = (i64, String);

const fn us(ns: i64) -> i64 {
    ns / 1000
}

/// `app.exe (  77)`
fn process(e: &Evidence, pid: Option<u32>, at: i64) -> String {
    let row = pid.and_then(|pid| e.process_at(pid, at));
    let process = row.and_then(|row| e.processes.get(row));
    process.map_or_else(String::new, |p| format!("{} ({:4})", p.image, p.pid))
}

fn file(e: &Evidence, file: Option<FileId>) -> String {
    file.map_or_else(|| "Unknown".to_owned(), |file| e.name(file).replace('/', "\\"))
}

/// Processes, threads and images.
fn lives(e: &Evidence) -> Vec<Row> {
    let mut rows = Vec::new();
    for p in &e.processes {
        let who = format!("{} ({})", p.image, p.pid);
        let row = |kind: &str, at: i64, status: i32| {
            let parent = p.parent.unwrap_or(0);
            (
                at,
                format!(
                    "{kind}, {:10}, {who:>24}, {parent:10}, {status}, 0x1, {}, <none>",
                    us(at),
                    p.command
                ),
            )
        };
        rows.push(p.began.map_or_else(|| row("P-DCStart", 0, 1), |at| row("P-Start", at, 1)));
        rows.extend(p.ended.map(|at| row("P-End", at, p.status.unwrap_or(0))));
    }
    for t in &e.threads {
        let (kind, at) = t.began.map_or(("T-DCStart", 0), |at| ("T-Start", at));
        rows.push((at, format!("{kind}, {:10}, {:>24}, {:8}", us(at), process(e, Some(t.pid), at), t.tid)));
    }
    for (at, i) in e.images.iter().filter_map(|i| Some((i.at?, i))) {
        let (who, end) = (process(e, Some(i.pid), at), i.base + i.size);
        let name = file(e, Some(i.file));
        rows.push((at, format!("I-Start, {:10}, {who}, {:#x}, {end:#x}, \"{name}\"", us(at), i.base)));
    }
    rows
}

fn reads(e: &Evidence, cpu: bool) -> impl Iterator<Item = Row> {
    let cpu = if cpu { " 1," } else { "" };
    e.reads.iter().map(move |r| {
        let took = us(r.completed - r.began.unwrap_or(r.completed));
        let text = format!(
            "DiskRead, {:10}, {:>24}, {:8},{cpu} 0xffff1, {:#012x}, {:#010x}, {took:10}, {:6}, 0x060043, {took:8}, 3, \
             Original, 0xffff2, \"{}\"",
            us(r.completed),
            process(e, r.pid, r.completed),
            r.tid.unwrap_or(0),
            r.offset.unwrap_or(0),
            r.bytes,
            r.disk,
            file(e, r.file),
        );
        (r.completed, text)
    })
}

fn faults(e: &Evidence) -> impl Iterator<Item = Row> {
    e.faults.iter().map(|f| {
        let text = format!(
            "HardFault, {:10}, {:>24}, {:8}, 0x0000000000401234, {:#012x}, {:#010x}, {:8}, 0xffff2, \"{}\", N/A",
            us(f.ended),
            process(e, f.pid, f.ended),
            f.tid,
            f.offset,
            f.bytes,
            us(f.ended - f.began),
            file(e, f.file),
        );
        (f.ended, text)
    })
}

/// A text in UTF-16 with its mark.
pub fn utf16(text: &str) -> Vec<u8> {
    [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}
