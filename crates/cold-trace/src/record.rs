//! Recording a start: chooses a tier, attaches, follows, and ends with a whole log.
//!
//! Order of calls: [`Session::start`] (everything is attached, the log has its first facts),
//! [`Session::follow`] with the supervisor's pid, then the caller lets the command go; at its end
//! [`Session::finish`]. The log then holds all that [`crate::assemble()`] needs. Nothing here waits for
//! the command.

pub(crate) mod facts;
mod kernel;
mod tier;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use cold_model::recording::manifest::{DiskCounter, Manifest, StackMethod, Subject, Tier};
use cold_model::recording::{FileKind, Recording};
use cold_model::{Bytes, Nanos};
use cold_sys::perf_event::{UserStacks, Whom};
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;

use crate::blocks::{self, Fact, FileFact, Sink};
use crate::machine::{Elsewhere, Here};
use crate::perf::recorder::{PerfPlan, PerfRecorder, Rings, SharedSink};
use crate::unwind::Unwinder;

pub use kernel::Spare;
pub use tier::{Refusal, Survey, survey};
use tier::{choose, refusal, try_perf};

/// Buffer of each CPU where the user may lock as much as wanted: 32 ms of the storm that the design names
/// (500,000 faults/s of 56 bytes each) fit into 1 MiB; stacks of 8 KiB make 8 of it.
const BUFFER: usize = 1 << 20;
const BUFFER_WITH_STACKS: usize = 8 << 20;
/// What `kernel.perf_event_mlock_kb` allows each user per CPU, less the control page.
const BUFFER_OF_A_USER: usize = 512 << 10;
/// Bytes of a copied stack.
const STACK_BYTES: u32 = 8 << 10;

/// What cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tier that was asked for is not to be had.
    #[error("tier {tier} cannot be used: {reason}")]
    Tier {
        /// The one of [`RecordOptions::tier`] where that is given, else the last that was tried.
        tier: Tier,
        /// What the kernel or missing rights said against it.
        reason: String,
    },
    /// Perf events could not be opened although a trial worked.
    #[error("cannot follow process {pid} with perf events: {source}{}", own_only(source))]
    Follow {
        /// Process that [`Session::follow`] was called with; a thread or child of it may be what was refused.
        pid: u32,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The same, for the whole machine.
    #[error("cannot follow all processes with perf events: {source}")]
    Everybody {
        /// The kernel's answer.
        source: io::Error,
    },
    /// The BPF programs failed while recording.
    #[error("recording by BPF failed: {0}")]
    Bpf(String),
    /// Perf events are refused, and no files were named.
    #[error("nothing can be recorded of this: {reason}, and the files of the start are not known before it")]
    Nothing {
        /// Why there are no events.
        reason: String,
    },
    /// The log could not be written.
    #[error("cannot write the log of events: {0}; the recording ends here")]
    Log(#[from] io::Error),
    /// The log of a broken-off recording cannot be read.
    #[error(transparent)]
    Recording(#[from] cold_recording::Error),
}

/// The kernel says no more than "permission denied".
fn own_only(e: &io::Error) -> &'static str {
    match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => "; an ordinary user may follow own processes only",
        _ => "",
    }
}

/// How to record.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// This tier and no other; `None`: the best that is to be had.
    pub tier: Option<Tier>,
    /// User stacks at faults (with BPF at fills and waits). `None`: by unwind tables where only
    /// stacks of waits are copied (tiers A and B), else by frame pointers.
    pub stacks: Option<StackMethod>,
    /// Bytes of the buffer between kernel and reader (per CPU in tiers C and D); `None`: by the tier.
    pub buffer: Option<usize>,
    /// Files whose cached pages are looked at before and after, for the tiers that see no fills.
    pub files: Vec<PathBuf>,
    /// Tiers A and B: every system call is counted ([`FinishedRecording::calls`]), and lookups have stacks where
    /// those are taken (of each thread the first 256, then one in 64). Not for what is to be timed.
    pub count_calls: bool,
    /// Tiers A and B: recording begins with the first process that is followed, which may be hours later. Until then the
    /// machine is not slowed down and the log stays as it is. What happens in the first milliseconds afterwards is
    /// partly known: [`Session::follow`] tells from when on pages are seen, waits, lookups and advice are later.
    pub armed: bool,
    /// Tiers A and B: whence programs are taken that an earlier recording left loaded, and where this one leaves its own.
    pub spare: Option<Spare>,
}

/// How often one process called one system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCount {
    /// Process (thread group) that called, by its number in the initial pid namespace.
    pub pid: u32,
    /// Number of the call: see [`crate::syscalls::name`].
    pub number: i32,
    /// Calls that returned.
    pub calls: u64,
    /// Bytes read, written, or of directory entries, by the calls that tell them as their result.
    pub bytes: u64,
    /// Wall time within them.
    pub time: Nanos,
}

/// The end of a recording.
#[derive(Debug)]
pub struct FinishedRecording {
    /// The manifest as it was written to the log.
    pub manifest: Manifest,
    /// What was called; empty unless [`RecordOptions::count_calls`] asked for it.
    pub calls: Vec<CallCount>,
}

impl RecordOptions {
    /// How stacks are taken in this tier.
    fn stacks(&self, tier: Tier) -> StackMethod {
        self.stacks.unwrap_or(match tier {
            Tier::A | Tier::B => StackMethod::UnwindTables,
            Tier::C | Tier::D | Tier::Imported => StackMethod::FramePointers,
        })
    }
}

/// A recording that runs.
pub struct Session {
    tier: Tier,
    refused: Vec<Refusal>,
    bpf: Option<kernel::Programs>,
    manifest: Manifest,
    sink: SharedSink,
    proc: ProcFs,
    sys: SysFs,
    files: Vec<PathBuf>,
    counters: Vec<DiskCounter>,
    /// Huge pages of files mapped so far, where the kernel counts them.
    mapped_huge: Option<u64>,
    /// Opened by `follow`, in tiers C and D.
    plan: Option<PerfPlan>,
    recorders: Vec<PerfRecorder>,
    /// It waits for the first process that is followed.
    armed: bool,
    spare: Option<Spare>,
}

impl Sink for cold_recording::log::Writer {
    fn append(&mut self, kind: u16, bytes: &[u8]) -> io::Result<()> {
        Self::append(self, kind, bytes).map_err(io::Error::other)
    }
    fn tick(&mut self) -> io::Result<()> {
        Self::tick(self).map_err(io::Error::other)
    }
}

impl Session {
    /// Chooses a tier and writes the first facts. `manifest` holds what the caller knows; what this crate
    /// knows (tier, machine, devices, file systems) is filled in.
    pub fn start(options: &RecordOptions, manifest: Manifest, sink: SharedSink) -> Result<Self, Error> {
        let (proc, sys) = (ProcFs::default(), SysFs::default());
        let everybody = manifest.subject == Subject::Machine;
        let chosen = choose(options, everybody, &proc, &sink)?;
        let plan = plan(chosen.tier, options).map_err(|e| refusal(&e, &proc));
        if let Err(reason) = &plan
            && options.files.is_empty()
            && manifest.subject == Subject::Command
        {
            return Err(Error::Nothing { reason: reason.clone() });
        }
        let mut session = Self {
            plan: plan.clone().ok().flatten(),
            tier: chosen.tier,
            refused: chosen.refused,
            bpf: chosen.bpf,
            manifest,
            sink,
            files: options.files.clone(),
            // First of all: what this process itself reads in from here on (its own evicted pages) is in both.
            counters: facts::disk_counters(&proc),
            mapped_huge: facts::mapped_huge(&proc),
            recorders: Vec::new(),
            armed: options.armed,
            spare: options.spare.clone(),
            proc,
            sys,
        };
        session.describe(options, plan.err());
        session.manifest.start = cold_sys::time::monotonic();
        session.fact(&Fact::Mounts(facts::mounts(&session.proc)))?;
        session.residency(false)?;
        session.fact(&Fact::Manifest(Box::new(session.manifest.clone())))?;
        if let Some(bpf) = &session.bpf {
            session.fact(&Fact::KernelFunctions(kernel::functions(bpf)))?;
            if kernel::tells_areas(bpf) {
                session.fact(&Fact::AreasByBpf)?;
            } else if !session.armed {
                session.side_band(None);
            }
        }
        if everybody {
            session.machine()?;
        }
        Ok(session)
    }

    /// The tier that is used.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Better tiers that are not used, and why.
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Follows a process and everything that it starts from now on. `itself`: it belongs to the start
    /// (an attached process), as do its descendants; false for the supervisor, of which only what it will
    /// start does. Answers from when on all pages that it touches are seen.
    pub fn follow(&mut self, pid: u32, itself: bool) -> Result<Nanos, Error> {
        let now = cold_sys::time::monotonic();
        let at = now.0;
        if itself {
            self.manifest.start = now; // nothing of it was recorded before
        }
        self.fact(&Fact::Follow { at, pid, itself })?;
        let seen = self.bpf.as_mut().map(|bpf| kernel::follow(bpf, pid, itself)).transpose()?;
        if std::mem::take(&mut self.armed) {
            self.wakes(pid);
        }
        let rings = self.plan.map(|plan| self.open(plan, pid, itself)).transpose()?;
        // Only now: what is mapped from here on is in the events.
        if itself {
            let tree = facts::tree(&self.proc, pid);
            if matches!(self.tier, Tier::C | Tier::D) {
                self.files = facts::files(&self.proc, &tree);
                self.residency(false)?;
            }
            for existing in tree.into_iter().filter_map(|pid| facts::existing(&self.proc, pid, at)) {
                self.fact(&Fact::Follow { at, pid: existing.pid, itself: true })?;
                self.fact(&Fact::Existing(Box::new(existing)))?;
            }
        }
        let read = rings.map_or(Ok(()), |rings| self.read(rings));
        read.map_err(|source| Error::Follow { pid, source })?;
        Ok(seen.unwrap_or(now))
    }

    /// Opens the events of the plan. An attached process may have children and threads already; a supervisor
    /// has neither.
    fn open(&self, plan: PerfPlan, pid: u32, itself: bool) -> Result<Rings, Error> {
        let mut rings = Rings::new(plan, facts::online_cpus(&self.sys));
        let pids = if itself { facts::tree(&self.proc, pid) } else { vec![pid] };
        for tid in pids.iter().flat_map(|p| facts::threads(&self.proc, *p)) {
            match rings.add(Whom::Thread(tid.cast_signed())) {
                // A thread that ended meanwhile has nothing to tell; the others count.
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) && tid != pid => {}
                other => other.map_err(|source| Error::Follow { pid, source })?,
            }
        }
        Ok(rings)
    }

    /// Reads these events from now on.
    fn read(&mut self, rings: Rings) -> io::Result<()> {
        self.manifest.cost.buffers += Bytes(rings.bytes());
        let described = Fact::PerfEvents(rings.described().to_vec());
        blocks::fact(&mut *self.sink.lock().unwrap_or_else(PoisonError::into_inner), &described)?;
        // With BPF, command lines come with the exec itself.
        let arguments = self.plan.is_some();
        self.recorders.push(PerfRecorder::start(
            rings,
            Arc::clone(&self.sink),
            self.proc.clone(),
            arguments,
        )?);
        Ok(())
    }

    /// The start that was waited for: what is counted begins now, and only its mappings are of interest.
    fn wakes(&mut self, pid: u32) {
        self.counters = facts::disk_counters(&self.proc);
        self.mapped_huge = facts::mapped_huge(&self.proc);
        if self.bpf.as_ref().is_some_and(|bpf| !kernel::tells_areas(bpf)) {
            self.side_band(Some(pid));
        }
    }

    /// Mappings of a process and of what it starts, else of everybody, beside BPF programs that do not tell them; without
    /// them addresses have no files.
    fn side_band(&mut self, whom: Option<u32>) {
        let plan = PerfPlan { faults: false, user_only: false, stack: UserStacks::None, buffer: BUFFER };
        let mut rings = Rings::new(plan, facts::online_cpus(&self.sys));
        let threads = whom.map_or_else(Vec::new, |pid| facts::threads(&self.proc, pid));
        let whom = if whom.is_none() {
            vec![Whom::Machine]
        } else {
            threads.into_iter().map(|tid| Whom::Thread(tid.cast_signed())).collect()
        };
        let added = whom.into_iter().try_for_each(|whom| rings.add(whom));
        if let Err(e) = added.and_then(|()| self.read(rings)) {
            let why = refusal(&e, &self.proc);
            self.manifest.notes.push(format!("mappings were not seen, so stacks name no files: {why}"));
        }
    }

    /// Follows everybody but this process.
    fn machine(&mut self) -> Result<(), Error> {
        let at = cold_sys::time::monotonic().0;
        let own = std::process::id();
        self.fact(&Fact::Follow { at, pid: own, itself: false })?;
        if let Some(plan) = self.plan {
            let mut rings = Rings::new(plan, facts::online_cpus(&self.sys));
            let done = rings.add(Whom::Machine).and_then(|()| self.read(rings));
            done.map_err(|source| Error::Everybody { source })?;
        }
        let existing = facts::everybody(&self.proc).into_iter();
        for existing in existing.filter_map(|pid| facts::existing(&self.proc, pid, at)) {
            self.fact(&Fact::Existing(Box::new(existing)))?;
        }
        Ok(())
    }

    /// Ends the recording: drains all buffers, then writes what is known at the end. `complete` adds what
    /// the caller has learnt meanwhile (ready, ending, taints). The log is whole when this returns.
    pub fn finish(mut self, complete: impl FnOnce(&mut Manifest)) -> Result<FinishedRecording, Error> {
        self.manifest.end = cold_sys::time::monotonic();
        self.manifest.disk_counters = facts::difference(&self.counters, &facts::disk_counters(&self.proc));
        let mapped_huge = facts::mapped_huge(&self.proc).zip(self.mapped_huge);
        self.manifest.mapped_huge = mapped_huge.map(|(now, before)| now.saturating_sub(before));
        let bpf = self.bpf.take();
        let calls =
            bpf.map_or(Ok(Vec::new()), |bpf| kernel::finish(bpf, self.spare.as_ref(), &mut self.manifest))?;
        for recorder in std::mem::take(&mut self.recorders) {
            let cpu = recorder.finish()?;
            self.manifest.cost.recorder_cpu += cpu;
        }
        self.residency(true)?;
        // Mounts that the start made itself name its files too.
        self.fact(&Fact::Mounts(facts::mounts(&self.proc)))?;
        self.manifest.complete = true;
        complete(&mut self.manifest);
        self.fact(&Fact::Manifest(Box::new(self.manifest.clone())))?;
        Ok(FinishedRecording { manifest: self.manifest, calls })
    }

    /// What this crate knows of the manifest at the beginning.
    fn describe(&mut self, options: &RecordOptions, no_events: Option<String>) {
        let m = &mut self.manifest;
        m.tier = self.tier;
        m.stacks = options.stacks(self.tier);
        m.page_bytes = cold_sys::page::page_size() as u32;
        m.machine = facts::machine(&self.proc);
        m.devices = facts::devices(&self.proc, &self.sys);
        m.file_systems = facts::file_systems(&self.proc, &self.sys);
        m.notes.extend(self.refused.iter().map(|(tier, why)| format!("tier {tier} was not used: {why}")));
        let none = no_events.is_some();
        if let Some(reason) = no_events {
            m.stacks = StackMethod::None;
            m.notes.push(format!(
                "{reason}. So no page faults were seen, and what was needed is unknown: this recording holds \
                 files, which of their pages came into the cache, and no more"
            ));
        }
        if matches!(self.tier, Tier::C | Tier::D) {
            let what = if self.files.is_empty() && !matches!(m.subject, Subject::Process { .. }) {
                "fills, requests, waits and lookups are not seen by this tier"
            } else {
                "requests, waits and lookups are not seen by this tier; fills are the pages that were cached \
                 at the end and not at the beginning, all booked at the end"
            };
            m.notes.push(what.to_owned());
        }
        if self.tier == Tier::D && !none {
            m.notes.push("faults in kernel mode (within system calls) are not seen by this tier".to_owned());
        }
    }

    /// Which pages of the given files are cached.
    fn residency(&mut self, after: bool) -> Result<(), Error> {
        for path in self.files.clone() {
            let Some((fact, runs)) = look(&self.proc, &path) else { continue };
            let (dev, inode) = (fact.dev, fact.inode);
            if after {
                self.fact(&Fact::File(Box::new(fact)))?;
            }
            self.fact(&Fact::Resident { after, dev, inode, runs })?;
        }
        Ok(())
    }

    fn fact(&self, fact: &Fact) -> Result<(), Error> {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(blocks::fact(&mut *sink, fact)?)
    }
}

fn look(proc: &ProcFs, path: &Path) -> Option<(FileFact, Vec<(u64, u64)>)> {
    let (file, meta) = cold_sys::open::regular(path, false).ok()?;
    let map = cold_sys::residency::PageMap::of(&file, &meta).ok()??;
    let fact = FileFact {
        path: cold_model::path_text::encode(path),
        dev: facts::superblock(proc, path)?,
        inode: std::os::unix::fs::MetadataExt::ino(&meta),
        kind: FileKind::Regular,
        size: meta.len(),
        mtime_ns: cold_model::file::mtime_ns(&meta),
    };
    Some((fact, map.runs().map(|run| (run.first, run.pages)).collect()))
}

/// What perf events are opened for; `None` where BPF programs are used, an error where they are refused.
fn plan(tier: Tier, options: &RecordOptions) -> io::Result<Option<PerfPlan>> {
    let user_only = match tier {
        Tier::A | Tier::B => return Ok(None),
        Tier::C => false,
        Tier::D | Tier::Imported => true,
    };
    try_perf(user_only)?;
    let stack = match options.stacks(tier) {
        StackMethod::None => UserStacks::None,
        StackMethod::FramePointers => UserStacks::FramePointers,
        StackMethod::UnwindTables => UserStacks::Copy(STACK_BYTES),
    };
    let buffer = options.buffer.unwrap_or(match (tier, options.stacks(tier)) {
        (Tier::D, _) => BUFFER_OF_A_USER,
        (_, StackMethod::None) => BUFFER,
        _ => BUFFER_WITH_STACKS,
    });
    Ok(Some(PerfPlan { faults: true, user_only, stack, buffer }))
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("tier", &self.tier)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

/// Makes a recording of a log that is still there: in order after [`Session::finish`], else what was
/// recorded until the recorder died.
pub fn assemble_dir(dir: &Path, unwinder: &mut dyn Unwinder) -> Result<Recording, Error> {
    from_log(dir, unwinder, true)
}

/// Makes a recording of the log of a recorder that died. It is marked as incomplete, and files are taken
/// as the log tells them, because they may have changed since.
pub fn recover(dir: &Path, unwinder: &mut dyn Unwinder) -> Result<Recording, Error> {
    let mut recording = from_log(dir, unwinder, false)?;
    recording.manifest.complete = false;
    Ok(recording)
}

fn from_log(dir: &Path, unwinder: &mut dyn Unwinder, here: bool) -> Result<Recording, Error> {
    let mut log = cold_recording::log::Reader::open(dir)?;
    let blocks = log.by_ref().map(|block| (block.kind, block.payload));
    let mut recording = if here {
        crate::assemble(blocks, unwinder, &mut Here)
    } else {
        crate::assemble(blocks, unwinder, &mut Elsewhere)
    };
    if let Some(path) = recording.manifest.only_file.clone() {
        crate::only::keep(&mut recording, &path);
    }
    let end = log.end();
    if !end.finished {
        let why = end.reason.as_deref().unwrap_or("it has no end");
        let cut = end.unreadable_bytes;
        recording.manifest.complete = false;
        recording
            .manifest
            .notes
            .push(format!("the log of events is not whole ({why}); {cut} bytes of it are lost"));
    }
    Ok(recording)
}

#[cfg(test)]
mod tests;
