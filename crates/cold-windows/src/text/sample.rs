//! Writes evidence as the text that Windows' tools write, for tests and the fuzzers' corpus. Not part of a release.

use crate::evidence::Evidence;

/// Rows of `xperf -a dumper`, with the CPU column of versions since 2018 or without.
pub fn dumper(e: &Evidence, cpu: bool) -> String {
    let cpu_title = if cpu { " CPU," } else { "" };
    let mut out = format!(
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
    );
    let mut rows: Vec<(i64, String)> = Vec::new();
    let us = |ns: i64| ns / 1000;
    let name = |pid: Option<u32>, at: i64| {
        let row = pid.and_then(|pid| e.process_at(pid, at));
        let process = row.and_then(|row| e.processes.get(row));
        process.map_or_else(String::new, |p| format!("{} ({:4})", p.image, p.pid))
    };
    for p in &e.processes {
        let who = format!("{} ({})", p.image, p.pid);
        let rest = format!("{who:>24}, {:10}, {{}}, 0x1, {}, <none>", p.parent.unwrap_or(0), p.command);
        let (kind, at) = p.began.map_or(("P-DCStart", 0), |at| ("P-Start", at));
        rows.push((at, format!("{kind}, {:10}, {}", us(at), rest.replace("{}", "1"))));
        if let Some(at) = p.ended {
            rows.push((
                at,
                format!("P-End, {:10}, {}", us(at), rest.replace("{}", &p.status.unwrap_or(0).to_string())),
            ));
        }
    }
    for t in &e.threads {
        let (kind, at) = t.began.map_or(("T-DCStart", 0), |at| ("T-Start", at));
        rows.push((at, format!("{kind}, {:10}, {:>24}, {:8}", us(at), name(Some(t.pid), at), t.tid)));
    }
    for i in e.images.iter().filter(|i| i.at.is_some()) {
        let at = i.at.unwrap_or(0);
        let (end, file) = (i.base + i.size, back(e.name(i.file)));
        rows.push((
            at,
            format!("I-Start, {:10}, {}, {:#x}, {end:#x}, \"{file}\"", us(at), name(Some(i.pid), at), i.base),
        ));
    }
    for r in &e.reads {
        let cpu = if cpu { " 1," } else { "" };
        let took = us(r.completed - r.began.unwrap_or(r.completed));
        let file = r.file.map_or_else(|| "Unknown".to_owned(), |f| back(e.name(f)));
        let text = format!(
            "DiskRead, {:10}, {:>24}, {:8},{cpu} 0xffff1, {:#012x}, {:#010x}, {took:10}, {:6}, 0x060043, {took:8}, 3, \
             Original, 0xffff2, \"{file}\"",
            us(r.completed),
            name(r.pid, r.completed),
            r.tid.unwrap_or(0),
            r.offset.unwrap_or(0),
            r.bytes,
            r.disk,
        );
        rows.push((r.completed, text));
    }
    for f in &e.faults {
        let file = f.file.map_or_else(|| "Unknown".to_owned(), |file| back(e.name(file)));
        let text = format!(
            "HardFault, {:10}, {:>24}, {:8}, {:#018x}, {:#012x}, {:#010x}, {:8}, 0xffff2, \"{file}\", N/A",
            us(f.ended),
            name(f.pid, f.ended),
            f.tid,
            f.address.unwrap_or(0),
            f.offset,
            f.bytes,
            us(f.ended - f.began),
        );
        rows.push((f.ended, text));
    }
    rows.sort_by_key(|(at, _)| *at);
    for (_, row) in rows {
        out.push_str(&row);
        out.push_str("\r\n");
    }
    out
}

fn back(name: &str) -> String {
    name.replace('/', "\\")
}

/// A text in UTF-16 with its mark.
pub fn utf16(text: &str) -> Vec<u8> {
    [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}
