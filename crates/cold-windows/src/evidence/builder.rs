//! Joins events in the order of time into [`Evidence`].

use std::collections::{BTreeMap, HashMap};

use super::lives::Threads;
use super::names::Names;
use super::{Evidence, Fault as Faulted, FileId, FileRead, Image, Process, Read as Done, System};
use crate::etl::{self, Phase};

/// Which file an event means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named<'a> {
    /// A file object, whose name other events tell.
    Object(u64),
    /// Its path, by device or by drive, with `\`.
    Path(&'a str),
    /// The event does not tell.
    Unknown,
}

/// A disk read as an event tells it. Times in ns from the trace's beginning.
#[derive(Debug, Clone, Copy)]
pub struct ReadEvent<'a> {
    /// When the disk began. `None`: not told.
    pub began: Option<i64>,
    /// When it was complete.
    pub completed: i64,
    /// Number of the disk.
    pub disk: u32,
    /// First byte on the disk. `None`: not told.
    pub offset: Option<u64>,
    /// Bytes read.
    pub bytes: u32,
    /// For which file.
    pub file: Named<'a>,
    /// Thread that asked, if told.
    pub tid: Option<u32>,
    /// Its process, where the event itself tells it; else it is found by the thread.
    pub pid: Option<u32>,
}

/// A hard fault as an event tells it.
#[derive(Debug, Clone, Copy)]
pub struct FaultEvent<'a> {
    /// When it began.
    pub began: i64,
    /// When it was over.
    pub ended: i64,
    /// First byte in the file that was read.
    pub offset: u64,
    /// Bytes that were read.
    pub bytes: u32,
    /// The file that was faulted on.
    pub file: Named<'a>,
    /// Thread that faulted.
    pub tid: u32,
    /// Its process, where the event itself tells it.
    pub pid: Option<u32>,
}

/// A file that may get its name later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Later {
    File(FileId),
    Object(u64),
    Unknown,
}

/// Collects what a trace tells. Memory: about 100 bytes for each read, fault, thread, process, image and name.
#[derive(Debug, Default)]
pub struct Builder {
    names: Names,
    /// Names of each file object with the time when they were told: objects are used again.
    objects: HashMap<u64, Vec<(i64, FileId)>>,
    /// Paths by device and by drive, with their last `\`.
    drives: Vec<(String, String)>,
    processes: Vec<Process>,
    /// Last process of each id.
    by_pid: HashMap<u32, usize>,
    threads: Threads,
    images: Vec<Image>,
    reads: Vec<(Done, Later)>,
    faults: Vec<(Faulted, Later)>,
    file_reads: Vec<(FileRead, Later)>,
    /// Last read by a call of each thread: its file, offset and bytes.
    last_read: HashMap<u32, (Later, u64, u32)>,
}

impl Builder {
    /// Takes an event of a trace; `ns` turns its clock into ns from the trace's beginning.
    pub fn record(&mut self, time: i64, record: &etl::Record, ns: impl Fn(i64) -> i64) {
        let at = ns(time);
        match record {
            etl::Record::Process(process) => self.process(at, process),
            etl::Record::Thread(thread) => self.thread(at, thread),
            etl::Record::Image(image) => self.image(at, image),
            etl::Record::Disk(d) if d.kind == etl::DiskKind::Read => self.read(ReadEvent {
                began: Some(ns(time.saturating_sub(i64::try_from(d.response).unwrap_or(i64::MAX)))),
                completed: at,
                disk: d.disk,
                offset: Some(d.offset),
                bytes: d.bytes,
                file: Named::Object(d.file),
                tid: d.tid,
                pid: None,
            }),
            etl::Record::HardFault(f) => self.fault(FaultEvent {
                began: ns(f.began),
                ended: at,
                offset: f.offset,
                bytes: f.bytes,
                file: Named::Object(f.file),
                tid: f.tid,
                pid: None,
            }),
            etl::Record::FileName(name) => self.name(at, name.object, &name.name),
            etl::Record::Volume(volume) => self.volume(&volume.device, &volume.drive),
            etl::Record::Disk(_) | etl::Record::Stack(_) => {}
        }
    }

    /// A process begins, ends, or is told to be there.
    pub fn process(&mut self, at: i64, told: &etl::ProcessPayload) {
        if told.phase == Phase::Defunct {
            return;
        }
        let last = self.by_pid.get(&told.pid).copied();
        let known = last.filter(|row| {
            let open = self.processes.get(*row).is_some_and(|p| p.ended.is_none());
            open && told.phase != Phase::Start
        });
        let row = known.unwrap_or_else(|| {
            self.processes.push(Process {
                pid: told.pid,
                parent: Some(told.parent),
                image: told.image.clone(),
                command: told.command.clone(),
                began: (told.phase == Phase::Start).then_some(at),
                ended: None,
                status: None,
            });
            self.processes.len() - 1
        });
        self.by_pid.insert(told.pid, row);
        if told.phase == Phase::End
            && let Some(process) = self.processes.get_mut(row)
        {
            process.ended = Some(at);
            process.status = Some(told.status);
        }
    }

    /// A thread begins, ends, or is told to be there.
    pub fn thread(&mut self, at: i64, told: &etl::ThreadPayload) {
        match told.phase {
            Phase::Start => self.threads.begin(told.tid, told.pid, Some(at)),
            Phase::End => self.threads.end(told.tid, told.pid, at),
            Phase::Before | Phase::After | Phase::Defunct => self.threads.begin(told.tid, told.pid, None),
        }
    }

    /// An image comes, goes, or is told to be there.
    pub fn image(&mut self, at: i64, told: &etl::ImagePayload) {
        let file = self.names.file(&told.name);
        let at = match told.phase {
            Phase::Start => Some(at),
            Phase::Before => None,
            Phase::End | Phase::After | Phase::Defunct => return,
        };
        self.images.push(Image { at, pid: told.pid, base: told.base, size: told.size, file });
    }

    /// A file object has this path.
    pub fn name(&mut self, at: i64, object: u64, path: &str) {
        let file = self.names.file(path);
        let names = self.objects.entry(object).or_default();
        if names.last().is_none_or(|(_, last)| *last != file) {
            names.push((at, file));
        }
    }

    /// A volume is a drive; both paths with their last `\`. One without a letter, and what is no disk, is left.
    pub fn volume(&mut self, device: &str, drive: &str) {
        if !device.is_empty() && !drive.is_empty() {
            self.drives.push((device.to_owned(), drive.to_owned()));
        }
    }

    /// A disk read is complete.
    pub fn read(&mut self, read: ReadEvent<'_>) {
        let file = self.later(read.file);
        let ReadEvent { began, completed, disk, offset, bytes, tid, pid, .. } = read;
        self.reads.push((Done { began, completed, disk, offset, bytes, file: None, tid, pid }, file));
    }

    /// A hard fault is over.
    pub fn fault(&mut self, fault: FaultEvent<'_>) {
        let file = self.later(fault.file);
        let FaultEvent { began, ended, offset, bytes, tid, pid, .. } = fault;
        self.faults.push((Faulted { began, ended, offset, bytes, file: None, tid, pid }, file));
    }

    /// A program reads a file by a call; `file` of it is not looked at. The same read twice in a row by one thread is
    /// one: where the fast way of a read fails, Windows tells of it and of the read that follows.
    pub fn file_read(&mut self, read: FileRead, file: Named<'_>) {
        let file = self.later(file);
        let told = (file, read.offset, read.bytes);
        if self.last_read.insert(read.tid, told) != Some(told) {
            self.file_reads.push((read, file));
        }
    }

    fn later(&mut self, named: Named<'_>) -> Later {
        match named {
            Named::Object(object) => Later::Object(object),
            Named::Path(path) => Later::File(self.names.file(path)),
            Named::Unknown => Later::Unknown,
        }
    }

    /// All of it, once everything was told. `ended` in ns from the trace's beginning.
    pub fn finish(self, system: System, ended: i64, lost: BTreeMap<String, u64>) -> Evidence {
        let Self {
            names, objects, drives, processes, threads, mut images, reads, faults, file_reads, ..
        } = self;
        let (files, rows) = names.by_drive(&drives);
        let row = |file: FileId| rows.get(file as usize).copied();
        let file = |later: Later, at: i64| match later {
            Later::File(file) => row(file),
            Later::Unknown => None,
            Later::Object(object) => {
                let names = objects.get(&object)?;
                let told = names.iter().rev().find(|(since, _)| *since <= at).or_else(|| names.first());
                row(told?.1)
            }
        };
        for image in &mut images {
            image.file = row(image.file).unwrap_or(image.file);
        }
        let process = |tid: Option<u32>, pid: Option<u32>, at: i64| pid.or_else(|| threads.process(tid?, at));
        let mut reads: Vec<Done> = reads
            .into_iter()
            .map(|(r, later)| Done {
                file: file(later, r.completed),
                pid: process(r.tid, r.pid, r.completed),
                ..r
            })
            .collect();
        reads.sort_by_key(|r| r.completed);
        let mut faults: Vec<Faulted> = faults
            .into_iter()
            .map(|(f, later)| Faulted {
                file: file(later, f.ended),
                pid: process(Some(f.tid), f.pid, f.ended),
                ..f
            })
            .collect();
        faults.sort_by_key(|f| f.ended);
        let called = |(r, later): (FileRead, Later)| FileRead { file: file(later, r.at), ..r };
        let mut file_reads: Vec<FileRead> = file_reads.into_iter().map(called).collect();
        file_reads.sort_by_key(|r| r.at);
        images.sort_by_key(|i| i.at);
        let threads = threads.into_rows();
        let mut by_pid: HashMap<u32, Vec<usize>> = HashMap::new();
        for (row, process) in processes.iter().enumerate() {
            by_pid.entry(process.pid).or_default().push(row);
        }
        let notes = Vec::new();
        Evidence {
            system,
            ended,
            files,
            processes,
            threads,
            images,
            reads,
            faults,
            file_reads,
            lost,
            notes,
            by_pid,
        }
    }
}
