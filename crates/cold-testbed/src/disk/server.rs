//! The process behind the disk: one file, served by FUSE, with the model's delays.
//!
//! A process of its own, because the process that mounts the disk sleeps in the kernel until the
//! server answers: killed then, a single process could never die, and its mount never end.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use cold_model::{Bytes, Nanos};
use cold_sys::procfs::ProcFs;
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Session, WriteFlags,
};

use super::answers::{Answer, Completer, Waiting, now};
use super::log::{Log, Op, Request, to_csv};
use super::model::{Model, Scheduler, Service};
use super::punctual::Punctual;
use super::times;
use super::writes::Kept;

/// The file's name in the mounted directory.
pub(crate) const FILE_NAME: &str = "disk";
/// The source of the mount in `mountinfo`.
pub(crate) const MOUNT_SOURCE: &str = "cold-testdisk";
const FILE: INodeNo = INodeNo(2);
/// Attributes never change, and a dead server must not be asked for them.
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// What the server is to do.
#[derive(Debug)]
pub struct Serve {
    /// Directory to mount on.
    pub mount: PathBuf,
    /// File that holds the bytes.
    pub backing: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// By how much answers are delayed.
    pub model: Model,
    /// Path of the control socket.
    pub control: PathBuf,
    /// The process it must not outlive.
    pub parent: i32,
}

impl Serve {
    /// Waits for a line on `input`, mounts, says `ready` on `output`, and serves until it is unmounted.
    /// Dies with its parent (`PR_SET_PDEATHSIG`), which ends all waiting requests with an error.
    pub fn run(self, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        if rustix::process::getppid().map(rustix::process::Pid::as_raw_pid) != Some(self.parent) {
            return Err(io::Error::other("the process that started the server has ended"));
        }
        // The machine must not kill it to gain memory: everything on the disk would wait for it first.
        let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
        // Nor may its own allocations wait for the disk it serves (needs CAP_SYS_RESOURCE).
        let _ = rustix::process::configure_io_flusher_behavior(true);
        leave_memory_limit();
        if input.lines().next().transpose()?.is_none() {
            return Ok(());
        }
        let backing = File::options().read(true).write(true).open(&self.backing)?;
        let log = Arc::new(Log::default());
        let kept = Arc::new(Mutex::new(None));
        let keeper = Keeper { backing: backing.try_clone()?, size: self.size, kept: Arc::clone(&kept) };
        let punctual = Arc::new(OnceLock::new());
        let told = Told { log: Arc::clone(&log), keeper, punctual: Arc::clone(&punctual) };
        serve_control(UnixListener::bind(&self.control)?, told)?;
        // No disk waits for a processor that programs use. Without the right it does.
        if cold_sys::realtime::goes_first().is_ok() {
            stay_on_one_processor();
        }
        let completer = Completer::start(log, Arc::clone(&punctual))?;
        let scheduler = Mutex::new(Scheduler::new(self.model, self.size));
        let disk = Disk { backing, size: self.size, scheduler, completer, kept, punctual };
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName(MOUNT_SOURCE.to_owned()), MountOption::NoDev, MountOption::NoSuid];
        // One thread, because two would swap neighbouring requests, and the disk would seek between them
        // (63 instead of 95 MB/s of sequential reading). None sleeps here, so one is enough.
        config.n_threads = Some(1);
        let session = Session::new(disk, &self.mount, &config)?;
        // The supervisor unmounts; `run` ends when it has.
        writeln!(output, "ready")?;
        output.flush()?;
        session.run()
    }
}

/// Moves this process to the top of its memory hierarchy. Below a limit that programs on the disk have
/// used up, its own allocations would wait for their dirty pages to be written, which it has to write
/// (seen on Linux 6.18, cgroup v1, in `folio_wait_writeback`). Without the right to move it stays.
fn leave_memory_limit() {
    let Ok(mounts) = ProcFs::default().mounts() else { return };
    for m in mounts.iter().filter(|m| m.fs_type == "cgroup2" || m.mount_point.ends_with("memory")) {
        if m.fs_type.starts_with("cgroup") {
            let _ = std::fs::write(m.mount_point.join("cgroup.procs"), std::process::id().to_string());
        }
    }
}

/// Binds the calling thread, and those that it starts from now on, to the last processor that it may use. A thread that goes
/// first pushes away whatever runs where it wakes, and is woken where it ran last: on both of two processors it pushed
/// the programs that it serves now from this one, now from that. Where it cannot be bound it is not.
fn stay_on_one_processor() {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return };
    let Some(last) = (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)) else {
        return;
    };
    let mut one = rustix::thread::CpuSet::new();
    one.set(last);
    let _ = rustix::thread::sched_setaffinity(None, &one);
}

/// Begins and ends keeping writes.
struct Keeper {
    backing: File,
    size: u64,
    kept: Arc<Mutex<Option<Kept>>>,
}

impl Keeper {
    /// In this directory, which is there; no longer where none is named.
    fn keep(&self, dir: Option<&Path>) -> io::Result<()> {
        // Held while the disk is copied: its writes wait.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = kept.take() {
            before.end()?;
        }
        *kept = dir.map(|dir| Kept::begin(&self.backing, self.size, dir)).transpose()?;
        Ok(())
    }
}

/// What the control socket tells and changes.
struct Told {
    log: Arc<Log>,
    keeper: Keeper,
    punctual: Arc<OnceLock<Punctual>>,
}

impl Told {
    /// Answers `log` (CSV), `reset`, `keep DIRECTORY` or `keep nothing`, and `punctual N` (on `/dev/loopN`).
    fn answer(&self, command: &str) -> String {
        let done = match command.split_once(' ').unwrap_or((command, "")) {
            ("log", "") => return to_csv(&self.log.requests()),
            ("reset", "") => {
                self.log.reset();
                Ok(())
            }
            ("keep", dir) => self
                .keeper
                .keep((dir != "nothing").then(|| Path::new(dir)))
                .map_err(|e| format!("cannot keep writes: {e}")),
            ("punctual", number) => self.be_punctual(number),
            _ => Err(format!("unknown command {command:?}; known: log, reset, keep, punctual")),
        };
        done.map_or_else(|why| why + "\n", |()| "ok\n".to_owned())
    }

    fn be_punctual(&self, number: &str) -> Result<(), String> {
        let number = number.parse().map_err(|_| format!("{number:?} is no number of a loop device"))?;
        let times = times::of_loop_device(number).map_err(|e| {
            format!("the kernel's times of requests are not to be had (BPF with BTF, as root): {e}")
        })?;
        self.punctual.set(Punctual::new(times)).map_err(|_| "it is punctual already".to_owned())
    }
}

/// Serves the control socket: one command for each connection.
fn serve_control(listener: UnixListener, told: Told) -> io::Result<()> {
    let answer = move |stream: UnixStream| -> io::Result<()> {
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        (&stream).write_all(told.answer(line.trim()).as_bytes())
    };
    let serve = move || {
        for stream in listener.incoming().flatten() {
            // The other side may have gone; the next one is served anyway.
            let _ = answer(stream);
        }
    };
    std::thread::Builder::new().name("control".to_owned()).spawn(serve).map(drop)
}

struct Disk {
    backing: File,
    size: u64,
    scheduler: Mutex<Scheduler>,
    completer: Arc<Completer>,
    kept: Arc<Mutex<Option<Kept>>>,
    punctual: Arc<OnceLock<Punctual>>,
}

impl Disk {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let directory = ino == INodeNo::ROOT;
        let time = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino,
            size: if directory { 0 } else { self.size },
            blocks: if directory { 0 } else { self.size / 512 },
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind: if directory { FileType::Directory } else { FileType::RegularFile },
            perm: if directory { 0o700 } else { 0o600 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn finish(&self, op: Op, offset: u64, len: u64, arrival: u64, answer: Answer) {
        let punctual = if op == Op::Read { self.punctual.get() } else { None };
        let issued = punctual.and_then(|punctual| punctual.issued(offset, arrival));
        let came = issued.unwrap_or(arrival);
        let mut scheduler = self.scheduler.lock().unwrap_or_else(PoisonError::into_inner);
        let Service { due_ns, alone_ns } = match op {
            Op::Flush => scheduler.flush(came),
            Op::Read | Op::Write => scheduler.transfer(came, offset, len),
        };
        drop(scheduler);
        let request = Request {
            op,
            offset,
            len: Bytes(len),
            issued: issued.map(Nanos),
            arrival: Nanos(arrival),
            due: Nanos(due_ns),
            done: Nanos(0),
            model: Nanos(alone_ns),
        };
        let send_at = punctual.map_or(due_ns, |punctual| punctual.send_at(len, due_ns));
        self.completer.add(Waiting { send_at, request, answer });
    }
}

impl Filesystem for Disk {
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it the loop device's requests come one at a time.
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(|_| {
            io::Error::other("this kernel's FUSE has no asynchronous direct I/O (Linux 3.10)")
        })?;
        // The default of 12 would be the queue depth of every disk.
        let _ = config.set_max_background(512);
        let _ = config.set_congestion_threshold(512);
        Ok(())
    }

    fn lookup(&self, _: &fuser::Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == FILE_NAME {
            reply.entry(&FOREVER, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &fuser::Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(ino));
    }

    fn open(&self, _: &fuser::Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // Past the page cache, else the disk's content would be cached a second time.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(1), flags);
    }

    fn read(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let arrival = now();
        let len = u64::from(size).min(self.size.saturating_sub(offset));
        let mut buffer = self.completer.buffers.take(len as usize);
        let read = buffer.get_mut(..len as usize).map(|data| self.backing.read_exact_at(data, offset));
        match read.unwrap_or_else(|| Err(io::ErrorKind::InvalidInput.into())) {
            Ok(()) => {
                self.finish(Op::Read, offset, len, arrival, Answer::Data(reply, buffer, len as usize));
            }
            Err(e) => reply.error(e.into()),
        }
    }

    fn write(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let arrival = now();
        if offset.saturating_add(data.len() as u64) > self.size {
            reply.error(Errno::ENOSPC);
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.backing.write_all_at(data, offset);
        let written = written.and_then(|()| kept.as_mut().map_or(Ok(()), |kept| kept.add(offset, data)));
        drop(kept);
        match written {
            Ok(()) => {
                let answer = Answer::Written(reply, data.len() as u32);
                self.finish(Op::Write, offset, data.len() as u64, arrival, answer);
            }
            Err(e) => reply.error(e.into()),
        }
    }

    fn fsync(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.finish(Op::Flush, 0, 0, now(), Answer::Empty(reply));
    }

    fn flush(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing the file is no flush of the disk.
        reply.ok();
    }
}
