//! A trace's evidence of one start as a recording: the tables that it can fill, and what it lacks in words.
//!
//! A hard fault becomes a stall, a fill of the cluster that it read, and a touch of it: which of its pages was wanted is
//! not told, so they are an upper bound (`fault_around`). A disk read becomes a request; the requests that one thread made for a file
//! while it waited for a fault on it are what the fault read, and their places in the file are known by that.

mod of_prefetch;
mod used;
mod waits;

use cold_model::figures::{UNKNOWN_CPU, plural as counted};
use cold_model::recording::Recording;
use cold_model::recording::manifest::{
    self, Device, EndedBy, Manifest, READY_AT_EXIT, RecordedMachine, StackMethod, StartState, Subject, Tier,
    WantedState,
};
use cold_model::recording::tables::{
    Began, DeviceRead, File, FileKind, Fill, FillCause, Mapping, PathFrom, Process, Stall, StallCause,
    Thread, Touch, TouchKind, Transfer,
};
use cold_model::{Dev, Known, Nanos, path_text};

use crate::evidence::{Evidence, FileRead, Tree};

pub use of_prefetch::start_of;

/// Pages of all Windows systems that trace these events (x86, x64, arm64).
const PAGE: u64 = 4096;
/// Why a figure of the machine is not there.
const NOT_TOLD: &str = "a Windows trace does not tell it";

/// Makes the recording of `tree`. `tool` is the version of the program, `from` names the file for the notes.
pub fn recording(evidence: &Evidence, tree: &Tree, tool: &str, from: &str) -> Recording {
    Maker::new(evidence, tree).make(tool, from)
}

/// The start of a page run and its length.
const fn pages(offset: u64, bytes: u64) -> (u64, u32) {
    let first = offset / PAGE;
    let end = offset.saturating_add(bytes).div_ceil(PAGE);
    (first, end.saturating_sub(first) as u32)
}

/// What every imported recording says of itself. `cpus` is 0 where it is not told.
fn of_windows(tool: &str, os: &str, cpus: u32) -> Manifest {
    Manifest {
        format: manifest::FORMAT.to_owned(),
        version: manifest::VERSION,
        tool: tool.to_owned(),
        complete: true,
        page_bytes: PAGE as u32,
        tier: Tier::Imported,
        state: StartState { wanted: WantedState::AsFound, ..StartState::default() },
        machine: RecordedMachine {
            architecture: "unknown".to_owned(),
            cpu: UNKNOWN_CPU.to_owned(),
            cpus,
            os: os.to_owned(),
            ..RecordedMachine::default()
        },
        fault_around: Known::unknown(NOT_TOLD),
        stacks: StackMethod::None,
        ..Manifest::default()
    }
}

struct Maker<'a> {
    evidence: &'a Evidence,
    tree: &'a Tree,
    /// Earliest time of the evidence, ns from the trace's beginning; not positive. Times of recordings are not
    /// negative.
    zero: i64,
}

impl<'a> Maker<'a> {
    fn new(evidence: &'a Evidence, tree: &'a Tree) -> Self {
        let began = evidence.faults.iter().map(|f| f.began);
        let zero = began.chain(evidence.reads.iter().filter_map(|r| r.began)).min().unwrap_or(0).min(0);
        Self { evidence, tree, zero }
    }

    fn at(&self, ns: i64) -> Nanos {
        Nanos(ns.saturating_sub(self.zero).max(0).cast_unsigned())
    }

    fn make(&self, tool: &str, from: &str) -> Recording {
        let mut out = Recording { manifest: self.manifest(tool, from), ..Recording::default() };
        out.files = self.files();
        out.processes = self.processes();
        out.threads = self.threads();
        out.mappings = Some(self.mappings());
        let (touches, stalls) = self.faults();
        let faulted = touches.iter().filter(|t| t.kind == TouchKind::FaultAround);
        out.fills = Some(faulted.map(fill).collect());
        out.touches = Some(touches);
        out.stalls = Some(stalls);
        let (reads, transfers) = self.reads();
        out.device_reads = Some(reads);
        out.transfers = Some(transfers);
        used::only(&mut out);
        out
    }

    /// Start and end of the tree; the end is `None` where a process of it ran on.
    fn life(&self) -> (Option<i64>, Option<i64>) {
        let rows = || self.tree.rows.iter().filter_map(|row| self.evidence.processes.get(*row));
        let began = self.evidence.processes.get(self.tree.root).and_then(|p| p.began);
        let ended = rows().map(|p| p.ended).try_fold(i64::MIN, |last, end| Some(last.max(end?)));
        (began, ended)
    }

    fn manifest(&self, tool: &str, from: &str) -> Manifest {
        let (e, root) = (self.evidence, self.evidence.processes.get(self.tree.root));
        let (began, ended) = self.life();
        let command = root.map(|p| if p.command.is_empty() { &p.image } else { &p.command });
        let build = e.system.build.map_or_else(String::new, |build| format!("build {build}"));
        let seconds = |filetime: u64| {
            crate::filetime::nanos_since_1970(filetime).map(|ns| ns + i128::from(began.unwrap_or(0)))
        };
        let end = match (began, ended) {
            (None, Some(end)) => end,
            _ => e.ended.max(ended.unwrap_or(e.ended)),
        };
        Manifest {
            subject: match (began, root) {
                (None, Some(p)) => Subject::Process { pid: p.pid },
                _ => Subject::Command,
            },
            command: command.into_iter().map(Into::into).collect(),
            started_at: e
                .system
                .started
                .and_then(seconds)
                .and_then(crate::filetime::rfc3339)
                .unwrap_or_default(),
            start: self.at(began.unwrap_or(0)),
            end: self.at(end),
            ready_means: READY_AT_EXIT.to_owned(),
            ready: began.map(|_| match ended {
                Some(end) => Known::Value(self.at(end)),
                None => Known::unknown("it still ran when the trace ended"),
            }),
            ended_by: (began.is_none()).then_some(if ended.is_some() {
                EndedBy::Exit
            } else {
                EndedBy::Duration
            }),
            devices: self.devices(),
            lost: e.lost.clone(),
            notes: self.notes(from),
            ..of_windows(tool, format!("Windows {build}").trim(), e.system.processors.unwrap_or(0))
        }
    }

    fn notes(&self, from: &str) -> Vec<String> {
        let root = self.evidence.processes.get(self.tree.root);
        let made = match self.tree.rows.len() as u64 - 1 {
            0 => "nothing".to_owned(),
            n => counted(n, "process"),
        };
        let mut notes = vec![format!(
            "Imported from {from}: the start of {}, with what it made ({}).",
            root.map_or_else(String::new, |p| format!("{} (process {})", p.image, p.pid)),
            made,
        )];
        notes.push(
            "A Windows trace tells hard faults and disk reads. It does not tell which pages were needed and already in \
             memory, which page of a cluster a fault wanted, or how long a read through the cache waited."
                .to_owned(),
        );
        let nobody = self.evidence.reads.iter().filter(|r| r.pid.is_none()).count();
        if nobody > 0 {
            let reads = counted(nobody as u64, "disk read");
            notes.push(format!("Of {reads} it is not told who asked (Windows before version 8)."));
        }
        notes.extend(self.evidence.notes.iter().cloned());
        notes
    }

    fn devices(&self) -> Vec<Device> {
        let mut disks: Vec<u32> = self.evidence.reads.iter().map(|r| r.disk).collect();
        disks.sort_unstable();
        disks.dedup();
        let device = |disk: u32| Device {
            dev: dev(disk),
            name: format!("disk {disk}"),
            model: None,
            rotational: Known::unknown(NOT_TOLD),
            read_ahead: Known::unknown(NOT_TOLD),
            usual_read_ahead: None,
            max_request: Known::unknown(NOT_TOLD),
            max_segments: Known::unknown(NOT_TOLD),
            scheduler: Known::unknown(NOT_TOLD),
            size: Known::unknown(NOT_TOLD),
            partition_of: None,
        };
        disks.into_iter().map(device).collect()
    }

    fn files(&self) -> Vec<File> {
        let mut on: Vec<u32> = vec![0; self.evidence.files.len()];
        for read in &self.evidence.reads {
            if let Some(slot) = read.file.and_then(|file| on.get_mut(file as usize)) {
                *slot = read.disk;
            }
        }
        let file =
            |(row, (name, disk)): (usize, (&String, u32))| file(row, dev(disk), path_text::encode(name));
        self.evidence.files.iter().zip(on).enumerate().map(file).collect()
    }

    fn processes(&self) -> Vec<Process> {
        let executable = |pid: u32, image: &str| {
            let images = self.evidence.images.iter().filter(|i| i.pid == pid);
            let base = |file: u32| path_text::base(self.evidence.name(file)).to_owned();
            images.map(|i| i.file).find(|file| base(*file).eq_ignore_ascii_case(image))
        };
        let process = |(row, p): (usize, &crate::evidence::Process)| Process {
            began: self.at(p.began.unwrap_or(self.zero)),
            how: if p.began.is_some() { Began::Fork } else { Began::Existing },
            pid: p.pid,
            parent: p.parent.unwrap_or(0),
            name: p.image.clone(),
            executable: executable(p.pid, &p.image),
            arguments: (!p.command.is_empty()).then(|| vec![p.command.clone()]),
            in_tree: self.tree.rows.contains(&row),
            ended: p.ended.map(|t| self.at(t)),
            // As wait(2) has it; a status of Windows has 32 bits, and most of those do not fit.
            status: p.status.filter(|s| (0..256).contains(s)).map(|s| s << 8),
        };
        let mut out: Vec<Process> = self.evidence.processes.iter().enumerate().map(process).collect();
        out.sort_by_key(|p| p.began);
        out
    }

    fn threads(&self) -> Vec<Thread> {
        let e = self.evidence;
        let thread = |t: &crate::evidence::Thread| {
            let process = e.process_at(t.pid, t.began.unwrap_or(0));
            Thread {
                began: self.at(t.began.unwrap_or(self.zero)),
                tid: t.tid,
                pid: t.pid,
                name: process
                    .and_then(|row| e.processes.get(row))
                    .map_or_else(String::new, |p| p.image.clone()),
                in_tree: process.is_some_and(|row| self.tree.rows.contains(&row)),
                ended: t.ended.map(|t| self.at(t)),
            }
        };
        let mut out: Vec<Thread> = e.threads.iter().map(thread).collect();
        out.sort_by_key(|t| t.began);
        out
    }

    fn mappings(&self) -> Vec<Mapping> {
        let e = self.evidence;
        let own = e.images.iter().filter(|i| self.tree.has(e, Some(i.pid), i.at.unwrap_or(0)));
        let mapping = |i: &crate::evidence::Image| Mapping {
            at: self.at(i.at.unwrap_or(self.zero)),
            pid: i.pid,
            address: i.base,
            // The format's limit; no image is near it.
            bytes: i.size.min(i64::MAX as u64 - i.base.min(i64::MAX as u64)),
            offset: 0,
            file: i.file,
            executable: true,
        };
        let mut out: Vec<Mapping> = own.map(mapping).collect();
        out.sort_by_key(|m| m.at);
        out
    }

    fn faults(&self) -> (Vec<Touch>, Vec<Stall>) {
        let (mut touches, mut stalls) = (Vec::new(), Vec::new());
        for f in &self.evidence.faults {
            let Some(pid) = f.pid.filter(|pid| self.tree.has(self.evidence, Some(*pid), f.ended)) else {
                continue;
            };
            let (first_page, count) = pages(f.offset, f.bytes.into());
            let (began, ended) = (self.at(f.began), Some(self.at(f.ended)));
            let possible = count > 0 && first_page <= MOST_PAGES;
            if let Some(file) = f.file.filter(|_| possible) {
                touches.push(Touch {
                    at: began,
                    pid,
                    tid: f.tid,
                    file,
                    first_page,
                    pages: count,
                    kind: TouchKind::FaultAround,
                    major: Some(true),
                    ip: None,
                    stack: None,
                    call: None,
                    end: None,
                });
            }
            stalls.push(Stall {
                began,
                woken: ended,
                ended,
                pid,
                tid: f.tid,
                cause: StallCause::Fault,
                file: f.file,
                page: (f.file.is_some() && possible).then_some(first_page),
                system_call: None,
                lookup: None,
                stack: None,
            });
        }
        touches.extend(self.file_reads());
        touches.sort_by_key(|t| t.at);
        stalls.sort_by_key(|s| s.began);
        (touches, stalls)
    }

    /// What the tree read by calls, cached or not.
    fn file_reads(&self) -> impl Iterator<Item = Touch> {
        let own = |r: &&FileRead| self.tree.has(self.evidence, Some(r.pid), r.at);
        self.evidence.file_reads.iter().filter(own).filter_map(|r| {
            let (first_page, count) = pages(r.offset, r.bytes.into());
            (count > 0 && first_page <= MOST_PAGES).then_some(())?;
            Some(Touch {
                at: self.at(r.at),
                pid: r.pid,
                tid: r.tid,
                file: r.file?,
                first_page,
                pages: count,
                kind: TouchKind::Read,
                major: None,
                ip: None,
                stack: None,
                call: None,
                end: None,
            })
        })
    }

    fn reads(&self) -> (Vec<DeviceRead>, Vec<Transfer>) {
        let e = self.evidence;
        let places = waits::places(e);
        let mut order: Vec<usize> = (0..e.reads.len()).collect();
        let queued = |row: &usize| e.reads.get(*row).map_or(0, |r| r.began.unwrap_or(r.completed));
        order.sort_by_key(queued);
        let (mut reads, mut transfers) = (Vec::new(), Vec::new());
        for row in order {
            let Some(r) = e.reads.get(row) else { continue };
            let place = places.get(&row);
            if let (Some(file), Some(offset)) = (r.file, place) {
                let (first_page, pages) = pages(*offset, r.bytes.into());
                if pages > 0 && first_page <= MOST_PAGES {
                    transfers.push(Transfer {
                        request: reads.len() as u32,
                        file: Some(file),
                        first_page,
                        pages,
                    });
                }
            }
            let queued = self.at(r.began.unwrap_or(r.completed));
            reads.push(DeviceRead {
                queued,
                // The partition manager's clock begins where the disk's driver gets it.
                issued: r.began.map(|_| queued),
                completed: Some(self.at(r.completed).max(queued)),
                dev: dev(r.disk),
                sector: (r.offset.unwrap_or(0) / 512).min(1 << 54),
                bytes: r.bytes,
                pid: r.pid.unwrap_or(0),
                tid: r.tid.unwrap_or(0),
                in_tree: self.tree.has(e, r.pid, r.completed),
                metadata: r.file.is_some_and(|file| is_metadata(e.name(file))),
                readahead: false,
                file: r.file,
            });
        }
        (reads, transfers)
    }
}

/// The cluster that a fault read holds the page that it waited for.
const fn fill(touch: &Touch) -> Fill {
    Fill {
        at: touch.at,
        pid: touch.pid,
        tid: touch.tid,
        in_tree: true,
        file: touch.file,
        first_page: touch.first_page,
        pages: touch.pages,
        cause: FillCause::DemandFault,
    }
}

/// Pages of the largest file that a recording can hold.
const MOST_PAGES: u64 = (i64::MAX as u64) / PAGE - u32::MAX as u64;

/// Disks have numbers of their own on Windows; no device of Linux has major number 0 and is a disk.
const fn dev(disk: u32) -> Dev {
    Dev { major: 0, minor: disk }
}

/// A file of which only its path is told; its row stands in for its inode number.
fn file(row: usize, dev: Dev, path: String) -> File {
    File {
        dev,
        inode: row as u64,
        generation: 0,
        kind: FileKind::Regular,
        path: Some(path),
        path_from: PathFrom::OpenFile,
        deleted: false,
        file_system: String::new(),
        size: None,
        mtime_ns: None,
        build_id: None,
    }
}

/// NTFS' own files stand in the root and begin with `$`: `C:/$Mft`, `/Device/HarddiskVolume2/$Extend/$UsnJrnl:$J`.
fn is_metadata(name: &str) -> bool {
    let mut parts = name.split('/').filter(|p| !p.is_empty());
    match parts.next() {
        Some(drive) if drive.ends_with(':') => {}
        Some("Device") => drop(parts.next()),
        _ => return false,
    }
    parts.next().is_some_and(|first| first.starts_with('$') && !first.eq_ignore_ascii_case("$Recycle.Bin"))
}

#[cfg(test)]
mod tests;
