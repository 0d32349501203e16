//! The simulated machine behind the samples.

use std::collections::HashSet;

use cold_model::Dev;
use cold_model::Nanos;
use cold_model::recording::tables::{
    Advice, Eviction, File, FileKind, FillCause, Frame, Lookup, LookupKind, Mapping, OffCpu, OffCpuReason,
    PathFrom, Stack, Stall, StallCause,
};
use cold_model::recording::{FileIdx, Recording, Resident};
use cold_stats::Pcg;

use super::{BYSTANDER, CHILD, MAIN, PAGE, START};

mod disk;
mod pages;

/// The disk; its first partition holds the file system.
pub(super) const DISK: Dev = Dev::new(254, 0);
const PARTITION: Dev = Dev::new(254, 1);
/// Read-around and read-ahead window in pages (128 KiB).
const WINDOW: u64 = 32;
/// `-ENOENT`, as a lookup of a missing name returns it.
const NO_ENTRY: i64 = -2;
/// Where libraries are mapped; each file gets room of its own.
const BASE: u64 = 0x7f00_0000_0000;
const ROOM: u64 = 1 << 32;

/// What kind of program it is.
pub(super) enum Act {
    /// One thread, many small modules.
    Script,
    /// Two processes, four threads, one huge library.
    Browser,
}

/// A file of the simulated file system.
pub(super) struct FileSpec {
    path: String,
    pages: u64,
    mapped: bool,
    warm: bool,
}

impl FileSpec {
    /// A program or library, which is mapped.
    pub(super) fn binary(path: &str, pages: u64) -> Self {
        Self { path: path.to_owned(), pages, mapped: true, warm: false }
    }
    /// A file that is read.
    pub(super) fn data(path: &str, pages: u64) -> Self {
        Self { mapped: false, ..Self::binary(path, pages) }
    }
    /// Its pages are cached already.
    pub(super) fn warm(self) -> Self {
        Self { warm: true, ..self }
    }
}

struct Random(Pcg);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// Below `n`, which is not 0.
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Clone, Copy)]
struct SampleTask {
    pid: u32,
    tid: u32,
    clock: u64,
    file: usize,
    page: u64,
}

/// Who asks for pages, and how.
#[derive(Clone, Copy)]
struct Ask {
    task: SampleTask,
    demand: FillCause,
    around: FillCause,
}

pub(super) struct Sim {
    r: Random,
    out: Recording,
    specs: Vec<FileSpec>,
    /// Per file and page: when its data is there; 0 is not cached, 1 always was.
    ready: Vec<Vec<u64>>,
    /// Pages mapped, by process: file << 40 | page.
    mapped: HashSet<(u32, u64)>,
    opened: HashSet<(u32, usize)>,
    disk_free: u64,
    tasks: Vec<SampleTask>,
    /// Percentage of steps that search in vain.
    misses: u64,
    events: usize,
}

impl Sim {
    pub(super) fn new(seed: u64, mut specs: Vec<FileSpec>) -> Self {
        // The last file is the partition itself: metadata.
        specs.push(FileSpec::data("/dev/vda1", 4096));
        let ready = specs.iter().map(|s| vec![u64::from(s.warm); s.pages as usize]).collect();
        let mut sim = Self {
            r: Random(Pcg::new(seed, 1)),
            out: crate::schema::every_table(),
            specs,
            ready,
            mapped: HashSet::new(),
            opened: HashSet::new(),
            disk_free: START.0,
            tasks: Vec::new(),
            misses: 8,
            events: 0,
        };
        for n in 0..sim.specs.len() {
            let file = sim.file(n);
            sim.out.files.push(file);
            let spec = &sim.specs[n];
            if spec.warm {
                let row = Resident { file: n as FileIdx, first_page: 0, pages: spec.pages as u32 };
                sim.out.residency.get_or_insert_default().push(row);
            }
        }
        sim.stacks();
        sim
    }

    fn metadata(&self) -> usize {
        self.specs.len() - 1
    }

    fn file(&mut self, n: usize) -> File {
        let device = n == self.metadata();
        let spec = &self.specs[n];
        File {
            dev: PARTITION,
            inode: 1000 + n as u64,
            generation: 7 * n as u32,
            kind: if device { FileKind::BlockDevice } else { FileKind::Regular },
            path: Some(spec.path.clone()),
            path_from: if spec.mapped { PathFrom::Mapping } else { PathFrom::OpenFile },
            deleted: false,
            file_system: if device { "bdev" } else { "ext4" }.to_owned(),
            size: Some(spec.pages * u64::from(PAGE) - if device { 0 } else { self.r.below(4000) }),
            mtime_ns: Some(1_760_000_000_000_000_000 + i64::from(n as u32)).filter(|_| !device),
            build_id: spec.mapped.then(|| format!("{:016x}{n:024x}", 0xb1d_u64)),
        }
    }

    /// A few hundred stacks through the mapped files.
    fn stacks(&mut self) {
        let mapped: Vec<usize> = (0..self.specs.len()).filter(|n| self.specs[*n].mapped).collect();
        for n in 0..200u64 {
            let frames = (0..3 + self.r.below(12))
                .map(|_| {
                    let file = mapped[self.r.below(mapped.len() as u64) as usize];
                    let offset = self.r.below(self.specs[file].pages * u64::from(PAGE));
                    Frame {
                        address: address(file, offset),
                        file: Some(file as FileIdx),
                        offset,
                        generated: false,
                    }
                })
                .collect();
            self.out.stacks.get_or_insert_default().push(Stack { frames, truncated: n % 10 == 0 });
        }
    }

    pub(super) fn act(&mut self, act: &Act, events: usize) {
        let t = START.0 + 500_000;
        let task = |pid, tid, clock| SampleTask { pid, tid, clock, file: 0, page: 0 };
        self.tasks = vec![task(MAIN, MAIN, t)];
        match act {
            Act::Script => {
                self.misses = 20;
                self.tasks.push(task(CHILD, CHILD, START.0 + 2_100_000));
            }
            Act::Browser => self.tasks.extend([
                task(MAIN, MAIN + 1, START.0 + 1_000_000),
                task(MAIN, MAIN + 2, START.0 + 1_500_000),
                task(CHILD, CHILD, START.0 + 2_100_000),
            ]),
        }
        while self.events < events {
            // The task that is behind acts next, so that all see one order of time.
            let n = (0..self.tasks.len()).min_by_key(|n| self.tasks[*n].clock).unwrap_or(0);
            let mut task = self.tasks[n];
            self.step(&mut task);
            self.tasks[n] = task;
        }
    }

    pub(super) fn now(&self) -> Nanos {
        let last = self.tasks.iter().map(|t| t.clock).max().unwrap_or(START.0);
        Nanos(last.max(self.disk_free) + 1_000_000)
    }

    fn step(&mut self, task: &mut SampleTask) {
        task.clock += 4_000 + self.r.below(60_000);
        match self.r.below(100) {
            n if n < self.misses => self.miss(task),
            98 => self.bystander(task.clock),
            99 if task.pid == MAIN => self.advice(task),
            _ => {
                if self.r.chance(12) {
                    self.elsewhere(task);
                }
                if self.specs[task.file].mapped { self.fault(task) } else { self.read(task) }
            }
        }
    }

    /// Goes on in another file, larger ones more often.
    fn elsewhere(&mut self, task: &mut SampleTask) {
        let files = self.metadata() as u64;
        let tried = [self.r.below(files), self.r.below(files), self.r.below(6)];
        let one = tried[self.r.below(3) as usize] as usize;
        task.file = one;
        task.page = self.r.below(self.specs[one].pages);
        if self.opened.insert((task.pid, one)) {
            self.open(task);
        }
    }

    fn lookup(&mut self, task: &SampleTask, kind: LookupKind, path: String, file: Option<usize>, took: u64) {
        let stack = Some(self.r.below(200) as u32).filter(|_| file.is_some());
        self.out.lookups.get_or_insert_default().push(Lookup {
            at: Nanos(task.clock),
            ended: Nanos(task.clock + took),
            pid: task.pid,
            tid: task.tid,
            kind,
            path: Some(path),
            result: if file.is_some() { 3 } else { NO_ENTRY },
            flags: if kind == LookupKind::Open { 0o2_000_000 } else { 0 },
            file: file.map(|f| f as FileIdx),
            root: None,
            stack,
        });
        self.events += 1;
    }

    /// A search that fails in a few directories, as `sys.path`, `PATH` and the loader's do.
    fn miss(&mut self, task: &mut SampleTask) {
        const DIRS: [(&str, LookupKind); 3] = [
            ("/usr/lib/python3.11", LookupKind::Stat),
            ("/usr/local/bin", LookupKind::Access),
            ("/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3", LookupKind::Open),
        ];
        let (dir, kind) = DIRS[self.r.below(3) as usize];
        let name = self.r.below(500);
        for ending in
            ["cpython-311-x86_64-linux-gnu.so", "abi3.so", "so"].iter().take(self.r.below(3) as usize + 1)
        {
            self.lookup(task, kind, format!("{dir}/module{name}.{ending}"), None, 2_500);
            task.clock += 3_000;
        }
    }

    /// The first open of a file by a process; its inode may have to be read.
    fn open(&mut self, task: &mut SampleTask) {
        let file = task.file;
        let cold = self.r.chance(30);
        let block = self.r.below(self.specs[self.metadata()].pages);
        let began = task.clock;
        let mut at = *task;
        at.clock += 2_000;
        let index = self.out.lookups.as_ref().map_or(0, Vec::len) as u32;
        if cold {
            let ask = Ask { task: at, demand: FillCause::Metadata, around: FillCause::Metadata };
            self.bring(ask, self.metadata(), block, 1);
            let until = self.ready[self.metadata()][block as usize];
            self.wait(&mut at, until, StallCause::Lookup, self.metadata(), block, Some(index));
        }
        self.lookup(
            task,
            LookupKind::Open,
            self.specs[file].path.clone(),
            Some(file),
            at.clock - began + 1_000,
        );
        task.clock = at.clock + 2_000;
        if self.specs[file].mapped {
            self.out.mappings.get_or_insert_default().push(Mapping {
                at: Nanos(task.clock),
                pid: task.pid,
                address: address(file, 0),
                bytes: self.specs[file].pages * u64::from(PAGE),
                offset: 0,
                file: file as FileIdx,
                executable: true,
            });
            self.events += 1;
        }
    }

    fn advice(&mut self, task: &mut SampleTask) {
        let (file, pages) = (task.file, self.specs[task.file].pages);
        let first = self.r.below(pages);
        let n = 16.min(pages - first);
        self.out.advice.get_or_insert_default().push(Advice {
            at: Nanos(task.clock),
            ended: Nanos(task.clock + 9_000),
            pid: task.pid,
            tid: task.tid,
            call: "fadvise:WILLNEED".to_owned(),
            file: Some(file as FileIdx),
            offset: first * u64::from(PAGE),
            bytes: n * u64::from(PAGE),
            address: None,
            result: 0,
        });
        self.events += 1;
        let ask = Ask { task: *task, demand: FillCause::Advice, around: FillCause::Advice };
        self.bring(ask, file, first, n);
        task.clock += 10_000;
    }

    /// Another program reads something, and memory pressure takes a page that nobody ever touched.
    fn bystander(&mut self, at: u64) {
        let task = SampleTask { pid: BYSTANDER, tid: BYSTANDER, clock: at, file: 0, page: 0 };
        let file = self.r.below(self.metadata() as u64) as usize;
        let page = self.r.below(self.specs[file].pages);
        let cause = FillCause::BufferedRead;
        self.bring(Ask { task, demand: cause, around: cause }, file, page, 1);
        let block = self.metadata();
        let page = self.r.below(self.specs[block].pages);
        if (1..at).contains(&self.ready[block][page as usize]) {
            self.ready[block][page as usize] = 0;
            let (file, first_page) = (block as FileIdx, page);
            let row = Eviction { at: Nanos(at), file, first_page, pages: 1 };
            self.out.evictions.get_or_insert_default().push(row);
            self.events += 1;
        }
    }

    /// The task sleeps until the data is there.
    fn wait(
        &mut self,
        task: &mut SampleTask,
        until: u64,
        cause: StallCause,
        file: usize,
        page: u64,
        lookup: Option<u32>,
    ) {
        if until <= task.clock + 1_000 {
            return;
        }
        let ended = until + 3_000 + self.r.below(30_000);
        let fault = cause == StallCause::Fault;
        let system_call = (!fault).then_some(if cause == StallCause::Lookup { 257 } else { 0 });
        self.out.stalls.get_or_insert_default().push(Stall {
            began: Nanos(task.clock + 900),
            woken: Some(Nanos(until)),
            ended: Some(Nanos(ended)),
            pid: task.pid,
            tid: task.tid,
            cause,
            file: Some(file as FileIdx),
            page: Some(page),
            system_call,
            lookup,
            stack: Some(self.r.below(200) as u32),
        });
        self.out.off_cpu.get_or_insert_default().push(OffCpu {
            began: Nanos(task.clock + 900),
            woken: Some(Nanos(until)),
            ended: Nanos(ended),
            pid: task.pid,
            tid: task.tid,
            reason: OffCpuReason::Storage,
            system_call,
            waker: None,
        });
        self.events += 1;
        task.clock = ended;
    }

    /// The tables in the order of time; requests and lookups are renumbered.
    pub(super) fn tables(self) -> Recording {
        let mut out = self.out;
        let requests = sorted(&mut out.device_reads, |d| d.queued);
        for row in out.transfers.iter_mut().flatten() {
            row.request = requests[row.request as usize];
        }
        let lookups = sorted(&mut out.lookups, |l| l.at);
        for row in out.stalls.iter_mut().flatten() {
            row.lookup = row.lookup.map(|l| lookups[l as usize]);
        }
        sorted(&mut out.touches, |t| t.at);
        sorted(&mut out.fills, |t| t.at);
        sorted(&mut out.evictions, |t| t.at);
        sorted(&mut out.readahead, |t| t.at);
        sorted(&mut out.advice, |t| t.at);
        sorted(&mut out.stalls, |t| t.began);
        sorted(&mut out.off_cpu, |t| t.began);
        sorted(&mut out.mappings, |t| t.at);
        out.transfers.iter_mut().for_each(|t| t.sort_by_key(|t| t.request));
        out
    }
}

fn address(file: usize, offset: u64) -> u64 {
    BASE + file as u64 * ROOM + offset
}

/// Sorts a table; says where each row went.
fn sorted<T>(table: &mut Option<Vec<T>>, at: impl Fn(&T) -> Nanos) -> Vec<u32> {
    let mut rows: Vec<(usize, T)> = table.take().into_iter().flatten().enumerate().collect();
    rows.sort_by_key(|(_, row)| at(row));
    let mut went = vec![0; rows.len()];
    for (new, (old, _)) in rows.iter().enumerate() {
        went[*old] = new as u32;
    }
    *table = Some(rows.into_iter().map(|(_, row)| row).collect());
    went
}
