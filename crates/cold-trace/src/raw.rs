//! Raw events as the BPF programs write them (`bpf/events.h`), decoded without trusting a byte.
//!
//! A stream is records one behind the other; [`records`] walks it. Nothing here knows what an event
//! means for a recording.

use cold_model::recording::tables::Dev;

mod decode;

#[cfg(test)]
mod tests;

/// Bytes of a record's header, the least a record can have.
pub const HEADER_BYTES: usize = 24;

/// [`Header::flags`]: the task belongs to the tree that is followed.
pub const IN_TREE: u32 = 1;
/// [`Header::flags`]: the task is a kernel thread.
pub const KTHREAD: u32 = 2;
/// [`Header::flags`]: pid and tid are whoever was interrupted; they did not cause the event.
pub const BORROWED: u32 = 4;

/// [`FileEvent::state`]: the names lead to the root of all mounts.
pub const FILE_FULL: u32 = 1;
/// [`FileEvent::state`]: the names lead to the root of the file's own file system only.
pub const FILE_FS_ROOT: u32 = 2;
/// [`FileEvent::state`]: unlinked.
pub const FILE_DELETED: u32 = 4;
/// [`FileEvent::state`]: there are more names than were walked.
pub const FILE_CUT: u32 = 8;
/// [`FileEvent::state`]: a block device's own cache.
pub const FILE_BDEV: u32 = 16;
/// [`FileEvent::state`]: tmpfs, memfd, shared memory.
pub const FILE_SHMEM: u32 = 32;

/// [`Pages::state`], [`PageFault::state`]: the fault happened in kernel mode.
pub const FAULT_IN_KERNEL: u32 = 1;
/// [`Part::state`]: not the page cache's memory.
pub const PART_ANON: u32 = 1;
/// [`Stall::state`]: the kernel counted it as waiting for storage (`in_iowait`).
pub const STALL_IOWAIT: u32 = 1;
/// [`Stall::state`]: [`Stall::woken`] holds.
pub const STALL_WOKEN: u32 = 2;

/// Names of the classes of lost events, in the order of `enum cold_loss`.
pub const LOSSES: [&str; 13] = [
    "files",
    "processes",
    "touches",
    "fills",
    "evictions",
    "readahead",
    "device_reads",
    "stalls",
    "lookups",
    "stacks",
    "task_state",
    "request_state",
    "calls_of_32_bit_programs",
];

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Fewer bytes are left than the record says it has: the recorder was killed, or the file is damaged.
    #[error("the raw events end inside a record at byte {at}")]
    Truncated {
        /// Byte of the record's beginning.
        at: usize,
    },
    /// A length that no record can have.
    #[error("the raw events are damaged at byte {at}: a record of kind {kind} cannot have {bytes} bytes")]
    Damaged {
        /// Byte of the record's beginning.
        at: usize,
        /// Its kind.
        kind: u16,
        /// Its length, as its header says.
        bytes: u16,
    },
}

/// What every record begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub at: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Kind, as in `enum cold_kind`.
    pub kind: u16,
    /// Bytes of the record.
    pub bytes: u16,
    /// [`IN_TREE`], [`KTHREAD`], [`BORROWED`].
    pub flags: u32,
}

impl Header {
    /// The task belongs to the tree that is followed.
    pub fn in_tree(&self) -> bool {
        self.flags & IN_TREE != 0
    }
}

/// An inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Id {
    /// Device of its superblock.
    pub dev: Dev,
    /// Number.
    pub inode: u64,
    /// Generation.
    pub generation: u32,
}

impl Id {
    /// There is one: the kernel writes zeros where it has none.
    pub fn known(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// What a task was doing when the event happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Doing {
    /// Not known, or nothing: a kernel thread.
    #[default]
    Nothing,
    /// A page fault.
    Fault,
    /// A system call.
    Call,
    /// A number of a newer recorder.
    Other(u32),
}

/// A fault or a call in progress; `(tid, at)` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// When it began; 0: not seen.
    pub at: u64,
    /// The fault's file, or that of a call of the read family; zeros where there is none.
    pub file: Id,
    /// Page of the fault, or of the position of the read.
    pub index: u64,
    /// System call; -1: none.
    pub syscall: i32,
    /// Fault or call.
    pub doing: Doing,
}

/// A file, when it is first seen, and again when its full path became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEvent<'a> {
    /// Inode.
    pub file: Id,
    /// Bytes.
    pub size: u64,
    /// Modification time, seconds since 1970.
    pub mtime_sec: i64,
    /// And nanoseconds.
    pub mtime_nsec: u32,
    /// `st_mode`.
    pub mode: u32,
    /// Links.
    pub nlink: u32,
    /// Of a block device's cache: the device.
    pub bdev: Dev,
    /// `FILE_*` flags.
    pub state: u32,
    /// Names from the file up to the root, each ended by NUL.
    pub names: &'a [u8],
    /// File system type.
    pub fs: &'a [u8],
    /// What `stat()` tells where a stacked file system shows the file; zeros elsewhere.
    pub shown: Id,
}

impl FileEvent<'_> {
    /// The names from the root down, joined: `/usr/lib/libc.so.6`; empty where there are none.
    pub fn path(&self) -> Vec<u8> {
        let mut path = Vec::with_capacity(self.names.len() + 1);
        for name in self.names.split(|b| *b == 0).rev().filter(|name| !name.is_empty()) {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        path
    }
}

/// A task: the child of a fork, a new name, or one that existed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Parent process.
    pub parent: u32,
    /// `comm`.
    pub comm: &'a [u8],
}

/// A successful exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exec<'a> {
    /// The executed file (of a script: its interpreter).
    pub file: Id,
    /// Thread that called exec, when it was not the first.
    pub old_tid: u32,
    /// Command line, arguments ended by NUL.
    pub arguments: &'a [u8],
    /// Bytes of the whole command line.
    pub argument_bytes: u32,
    /// `comm`.
    pub comm: &'a [u8],
}

/// The end of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// `wait` status.
    pub status: i32,
    /// It was the last of its process.
    pub last: bool,
}

/// Pages of a file: the page of a fault, or a range mapped or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    /// The fault or call it happened in.
    pub context: Context,
    /// File.
    pub file: Id,
    /// First page.
    pub first: u64,
    /// Last page, inclusive.
    pub last: u64,
    /// Faulting address; 0: not known.
    pub address: u64,
    /// User instruction; 0: not known.
    pub ip: u64,
    /// [`FAULT_IN_KERNEL`].
    pub state: u32,
}

/// A folio that entered the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Add {
    /// The fault or call it happened in.
    pub context: Context,
    /// File.
    pub file: Id,
    /// First page.
    pub index: u64,
    /// `1 << order` pages.
    pub order: u32,
}

/// A folio that left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delete {
    /// File.
    pub file: Id,
    /// First page.
    pub index: u64,
    /// `1 << order` pages.
    pub order: u32,
}

/// A decision to read ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadaheadEvent {
    /// Fault or call.
    pub context: u64,
    /// File.
    pub file: Id,
    /// Page.
    pub index: u64,
    /// First page of the window.
    pub start: u64,
    /// Pages asked for; 0: not told.
    pub asked: u64,
    /// Pages of the window.
    pub size: u32,
    /// Pages of its asynchronous tail.
    pub async_size: u32,
    /// The file's limit.
    pub ra_pages: u32,
    /// Mapped misses.
    pub mmap_miss: u32,
    /// Order of folios.
    pub order: u32,
    /// As in `enum cold_readahead_kind`: 1 sync, 2 async, 3 order, 4 unbounded.
    pub kind: u32,
}

/// Part of a request: what one bio brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// File; zeros where the memory is no file's.
    pub file: Id,
    /// First page.
    pub index: u64,
    /// Bytes.
    pub bytes: u32,
    /// [`PART_ANON`].
    pub state: u32,
}

/// A read request when its driver gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// Names it until its completion.
    pub rq: u64,
    /// When it was made; 0: not seen.
    pub started: u64,
    /// When it entered the scheduler; 0: it did not.
    pub inserted: u64,
    /// The submitter's fault or call; 0: none.
    pub context: u64,
    /// First sector of 512 bytes on the whole device.
    pub sector: u64,
    /// Device.
    pub dev: Dev,
    /// Bytes.
    pub bytes: u32,
    /// Operation and flags.
    pub op: u32,
    /// Bios in the request; more than parts: the rest was not told apart.
    pub bios: u16,
    /// `REQ_META`.
    pub metadata: bool,
    /// `REQ_RAHEAD`.
    pub readahead: bool,
    parts: &'a [u8],
}

/// A completion of a request or of its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The request.
    pub rq: u64,
    /// Bytes completed now.
    pub bytes: u32,
    /// Bytes still to come.
    pub left: u32,
    /// `blk_status_t` or errno; 0: no error.
    pub error: i32,
}

/// A wait that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// The fault or call it happened in.
    pub context: Context,
    /// The task left the CPU. It ran again at the header's time.
    pub began: u64,
    /// It was woken, with [`STALL_WOKEN`].
    pub woken: u64,
    /// Address of a fault.
    pub address: u64,
    /// User instruction of a fault.
    pub ip: u64,
    /// Task state, as `sched_switch` tells it.
    pub task_state: u32,
    /// `STALL_*` flags.
    pub state: u32,
    /// Thread in whose context it was woken; 0: not seen.
    pub waker: u32,
}

/// A system call that returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// When it began; with the tid this names it.
    pub began: u64,
    /// Result, negative errno.
    pub result: i64,
    /// Arguments.
    pub args: [u64; 6],
    /// Opened, executed, or behind the descriptor.
    pub file: Id,
    /// Directory a relative path starts from.
    pub base: Id,
    /// File position before, where the call uses it.
    pub position: Option<u64>,
    /// Number.
    pub syscall: i32,
    /// Flags of the open family.
    pub open_flags: u32,
    /// The path as the program gave it; `None`: there is none, or it could not be read.
    pub path: Option<&'a [u8]>,
    /// The path is longer than what is here.
    pub path_cut: bool,
}

/// A page fault by address (tier B).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFault {
    /// Address.
    pub address: u64,
    /// User instruction; 0: not known.
    pub ip: u64,
    /// The architecture's error code.
    pub error: u32,
    /// [`FAULT_IN_KERNEL`].
    pub state: u32,
}

/// A user stack, unwound by frame pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackEvent<'a> {
    /// The fault or call of this thread that it belongs to.
    pub context: u64,
    /// There may be more frames.
    pub full: bool,
    frames: &'a [u8],
}

/// Registers and a copy of the stack, to be unwound later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackCopy<'a> {
    /// The fault or call of this thread that it belongs to.
    pub context: u64,
    /// By DWARF number: x86-64 0..=16, arm64 0..=32.
    pub registers: [u64; 33],
    /// How many of them hold.
    pub valid: u32,
    /// Bytes from the stack pointer up.
    pub stack: &'a [u8],
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A file.
    File(FileEvent<'a>),
    /// A fork; the header is the parent's.
    Fork(Task<'a>),
    /// An exec.
    Exec(Exec<'a>),
    /// The end of a thread.
    Exit(Exit),
    /// A thread named itself.
    Comm(Task<'a>),
    /// A task that existed when the recording began.
    Existing(Task<'a>),
    /// `mm_filemap_fault`, retries left out.
    Fault(Pages),
    /// `mm_filemap_map_pages`: mapped around a fault.
    Map(Pages),
    /// `mm_filemap_get_pages`: read.
    Get(Pages),
    /// A fill.
    Add(Add),
    /// An eviction.
    Delete(Delete),
    /// Read-ahead.
    Readahead(ReadaheadEvent),
    /// A read request.
    Request(Request<'a>),
    /// Its completion.
    Done(Done),
    /// A wait.
    Stall(Stall),
    /// A system call.
    Call(Call<'a>),
    /// A fault by address.
    PageFault(PageFault),
    /// A stack.
    Stack(StackEvent<'a>),
    /// A stack to be unwound.
    StackCopy(StackCopy<'a>),
    /// A kind that this version does not know.
    Unknown,
}

/// A record with its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Header.
    pub head: Header,
    /// The rest.
    pub event: Event<'a>,
}

/// Walks a stream. After an error it ends.
pub fn records(stream: &[u8]) -> Records<'_> {
    Records { stream, at: 0 }
}

/// See [`records`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    stream: &'a [u8],
    at: usize,
}

impl Records<'_> {
    /// Bytes of whole records so far: where a damaged stream is still good.
    pub fn position(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.stream.get(self.at..).filter(|rest| !rest.is_empty())?;
        match decode::record(rest, self.at) {
            Ok(record) => {
                self.at += usize::from(record.head.bytes);
                Some(Ok(record))
            }
            Err(error) => {
                self.stream = &[];
                Some(Err(error))
            }
        }
    }
}
