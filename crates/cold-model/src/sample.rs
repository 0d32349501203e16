//! Recordings built by hand, row by row, for tests of the crates that read them. Not part of a release.
//!
//! [`empty`] makes one, the methods this module gives [`Recording`] fill its tables. Times are in milliseconds
//! from the start, pages have 4 KiB, everything is done by process 10 on one disk; each method gives the row
//! it added, to be changed where a test wants it otherwise: `r.touch(5, file, 0..1, kind).tid = 11`.

use std::ops::Range;

use crate::Dev;
use crate::bench::Ending;
use crate::observed::{ObservedFile, ObservedStart};
use crate::recording::manifest::{Device, FileSystem, Tier, WantedState};
use crate::recording::tables::Began;
use crate::recording::{
    DeviceRead, Eviction, File, FileIdx, FileKind, Fill, FillCause, Lookup, LookupKind, OffCpu, OffCpuReason,
    PathFrom, Process, Recording, RequestIdx, Stall, StallCause, Touch, TouchKind, Transfer,
};
use crate::{Bytes, Known, Nanos};

/// The disk, and the file system on it.
pub const DISK: Dev = Dev::new(8, 0);
/// Bytes per page.
pub const PAGE: u64 = 4096;
const START: u64 = 1_000_000_000;

/// A point in time.
pub fn ms(at: u64) -> Nanos {
    Nanos(START + at * 1_000_000)
}

/// A length of so many milliseconds; [`ms`] is a point in time.
pub fn long(ms: u64) -> Nanos {
    Nanos(ms * 1_000_000)
}

/// So many KiB, in bytes.
pub fn kib(n: u64) -> Bytes {
    Bytes(n << 10)
}

/// An observed start that used these files, of one process that ended well, with nothing else in it.
pub fn observed(files: Vec<ObservedFile>) -> ObservedStart {
    ObservedStart {
        files,
        directories: vec![],
        kernel_file_opens: 0,
        unidentified: 0,
        lookups: 0,
        misses: 0,
        misses_by_dir: vec![],
        misses_elsewhere: 0,
        processes: 1,
        threads: 0,
        duration: Nanos(1),
        ending: Ending::Code(0),
        killed_by_force: 0,
        notes: vec![],
    }
}

/// A complete tier A recording of `prog`, pid 10, ready after 1 s, ended after 2 s; all tables empty.
pub fn empty() -> Recording {
    let mut r = Recording {
        touches: Some(vec![]),
        fills: Some(vec![]),
        evictions: Some(vec![]),
        residency: Some(vec![]),
        readahead: Some(vec![]),
        advice: Some(vec![]),
        device_reads: Some(vec![]),
        transfers: Some(vec![]),
        stalls: Some(vec![]),
        off_cpu: Some(vec![]),
        lookups: Some(vec![]),
        mappings: Some(vec![]),
        stacks: Some(vec![]),
        ..Recording::default()
    };
    let m = &mut r.manifest;
    m.complete = true;
    m.page_bytes = 4096;
    m.tier = Tier::A;
    m.command = vec!["prog".into(), "two words".into()];
    m.start = ms(0);
    m.ready = Some(Known::Value(ms(1000)));
    m.end = ms(2000);
    m.state.wanted = WantedState::Cold;
    m.machine.kernel = "6.12.1".to_string();
    m.devices = vec![Device {
        dev: DISK,
        name: "sda".to_string(),
        model: None,
        rotational: Known::Value(false),
        read_ahead: Known::Value(kib(128)),
        usual_read_ahead: None,
        max_request: Known::Value(kib(1280)),
        max_segments: Known::Value(168),
        scheduler: Known::Value("none".to_string()),
        size: Known::Value(Bytes(1 << 30)),
        partition_of: None,
    }];
    m.file_systems = vec![FileSystem {
        dev: DISK,
        kind: "ext4".to_string(),
        mounted_at: "/".to_string(),
        source: "/dev/sda".to_string(),
        options: String::new(),
        read_ahead: Known::Value(kib(128)),
        blind: None,
    }];
    r.processes.push(process(10, "prog", None));
    r
}

/// A process of the start that was there from its beginning.
pub fn process(pid: u32, name: &str, executable: Option<FileIdx>) -> Process {
    Process {
        began: ms(0),
        how: Began::Fork,
        pid,
        parent: 1,
        name: name.to_string(),
        executable,
        arguments: None,
        in_tree: true,
        ended: None,
        status: None,
    }
}

fn put<T>(table: &mut Option<Vec<T>>, row: T) -> &mut T {
    let rows = table.get_or_insert_default();
    rows.push(row);
    let last = rows.len() - 1;
    &mut rows[last]
}

impl Recording {
    /// A regular file of `size` bytes on [`DISK`].
    pub fn file(&mut self, path: &str, size: u64) -> FileIdx {
        self.files.push(File {
            dev: DISK,
            inode: self.files.len() as u64 + 100,
            generation: 0,
            kind: FileKind::Regular,
            path: Some(path.to_string()),
            path_from: PathFrom::OpenFile,
            deleted: false,
            file_system: "ext4".to_string(),
            size: Some(size),
            mtime_ns: None,
            build_id: None,
        });
        self.files.len() as FileIdx - 1
    }

    /// Pages that the main thread touched.
    pub fn touch(&mut self, at: u64, file: FileIdx, p: Range<u64>, kind: TouchKind) -> &mut Touch {
        let row = Touch {
            at: ms(at),
            pid: 10,
            tid: 10,
            file,
            first_page: p.start,
            pages: (p.end - p.start) as u32,
            kind,
            major: None,
            ip: None,
            stack: None,
            call: None,
            end: None,
        };
        put(&mut self.touches, row)
    }

    /// Pages that came into the cache, by the start's own doing.
    pub fn fill(&mut self, at: u64, file: FileIdx, p: Range<u64>, cause: FillCause) -> &mut Fill {
        let row = Fill {
            at: ms(at),
            pid: 10,
            tid: 10,
            in_tree: true,
            file,
            first_page: p.start,
            pages: (p.end - p.start) as u32,
            cause,
        };
        put(&mut self.fills, row)
    }

    /// Pages that left the cache.
    pub fn evict(&mut self, at: u64, file: FileIdx, p: Range<u64>) {
        let row = Eviction { at: ms(at), file, first_page: p.start, pages: (p.end - p.start) as u32 };
        put(&mut self.evictions, row);
    }

    /// A read of the disk, queued and issued at once, which took so long and filled these pages.
    pub fn request(&mut self, at: u64, took: u64, file: FileIdx, p: Range<u64>) -> &mut DeviceRead {
        let pages = (p.end - p.start) as u32;
        let request = self.device_reads.as_ref().map_or(0, Vec::len) as RequestIdx;
        put(&mut self.transfers, Transfer { request, file: Some(file), first_page: p.start, pages });
        let row = DeviceRead {
            queued: ms(at),
            issued: Some(ms(at)),
            completed: Some(ms(at + took)),
            dev: DISK,
            sector: u64::from(file) * 1_000_000 + p.start * 8,
            bytes: pages * 4096,
            pid: 10,
            tid: 10,
            in_tree: true,
            metadata: false,
            readahead: false,
            file: None,
        };
        put(&mut self.device_reads, row)
    }

    /// The main thread waited so long.
    pub fn stall(&mut self, at: u64, took: u64, cause: StallCause) -> &mut Stall {
        let row = Stall {
            began: ms(at),
            woken: Some(ms(at + took)),
            ended: Some(ms(at + took)),
            pid: 10,
            tid: 10,
            cause,
            file: None,
            page: None,
            system_call: None,
            lookup: None,
            stack: None,
        };
        put(&mut self.stalls, row)
    }

    /// Task `tid` of process 10 had no CPU for so long.
    pub fn off_cpu(&mut self, at: u64, took: u64, tid: u32, reason: OffCpuReason) -> &mut OffCpu {
        let row = OffCpu {
            began: ms(at),
            woken: (reason != OffCpuReason::Runnable).then_some(ms(at + took)),
            ended: ms(at + took),
            pid: 10,
            tid,
            reason,
            system_call: None,
            waker: None,
        };
        put(&mut self.off_cpu, row)
    }

    /// A lookup of 1 ms, which gave `result` (negative: the error's number).
    pub fn lookup(&mut self, at: u64, kind: LookupKind, path: &str, result: i64) -> &mut Lookup {
        let row = Lookup {
            at: ms(at),
            ended: ms(at + 1),
            pid: 10,
            tid: 10,
            kind,
            path: Some(path.to_string()),
            result,
            flags: 0,
            file: None,
            root: None,
            stack: None,
        };
        put(&mut self.lookups, row)
    }

    /// A fault on one page that reads a window: touch, fills, request and stall.
    pub fn fault(&mut self, at: u64, took: u64, file: FileIdx, page: u64, window: Range<u64>) {
        self.touch(at, file, page..page + 1, TouchKind::Fault);
        for p in window.clone() {
            let cause = if p == page { FillCause::DemandFault } else { FillCause::ReadAround };
            self.fill(at, file, p..p + 1, cause);
        }
        self.request(at, took, file, window);
        let stall = self.stall(at, took, StallCause::Fault);
        (stall.file, stall.page) = (Some(file), Some(page));
    }
}
