//! What a record can say, kind by kind. Times are `CLOCK_MONOTONIC` in nanoseconds, pages and page numbers
//! are of the machine's page size.

use cold_model::Dev;

use super::Id;

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
    /// Page of the fault, or of the position of the read; [`NO_PAGE`].
    pub index: u64,
    /// System call; -1: none.
    pub syscall: i32,
    /// Fault or call.
    pub doing: Doing,
}

/// In place of a page: the call has no position, or it is not known (`COLD_NO_PAGE` of events.h).
pub const NO_PAGE: u64 = u64::MAX;

impl Context {
    /// Page of the fault, or of the position of the read; `None`: not known.
    pub fn page(&self) -> Option<u64> {
        (self.index != NO_PAGE).then_some(self.index)
    }
}

/// A file, when it is first seen, and again when its full path became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEvent<'a> {
    /// The inode behind the names; on a stacked file system the lower one that holds the pages.
    pub file: Id,
    /// Size in bytes when it was seen.
    pub size: u64,
    /// Modification time, seconds since 1970.
    pub mtime_sec: i64,
    /// Nanoseconds within that second.
    pub mtime_nsec: u32,
    /// Type and permissions, as `st_mode` of stat(2).
    pub mode: u32,
    /// Hard links when it was seen; 0: unlinked.
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
    /// Process (thread group) it is or belongs to.
    pub pid: u32,
    /// The task itself; equal to `pid`: the first thread of its process.
    pub tid: u32,
    /// Process (thread group) of its parent.
    pub parent: u32,
    /// Name (`comm`) without its NUL, at most 15 bytes.
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
    /// Name (`comm`) after the exec, without its NUL.
    pub comm: &'a [u8],
}

/// The end of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// As `wait` tells it: of the thread, or with `last` of the whole process.
    pub status: i32,
    /// It was the last of its process.
    pub last: bool,
}

/// Pages of a file: the page of a fault, or a range mapped or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    /// The fault or call it happened in.
    pub context: Context,
    /// The file that is mapped or read.
    pub file: Id,
    /// First page, from the file's beginning; of a fault the only one.
    pub first: u64,
    /// Last page, inclusive.
    pub last: u64,
    /// Faulting address. In the first event of a read: the call's position and its third argument added, which is where a
    /// call ends that counts bytes there. 0: not known.
    pub address: u64,
    /// User instruction; 0: not known.
    pub ip: u64,
    /// [`FAULT_IN_KERNEL`](super::FAULT_IN_KERNEL).
    pub state: u32,
}

/// Folios of one order that entered the page cache one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Add {
    /// The fault or call it happened in.
    pub context: Context,
    /// File whose cache they entered.
    pub file: Id,
    /// First page of the first.
    pub index: u64,
    /// `1 << order` pages each.
    pub order: u32,
    /// Folios behind the first.
    pub more: u32,
}

/// A folio that left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delete {
    /// File whose cache it left.
    pub file: Id,
    /// Its first page, from the file's beginning.
    pub index: u64,
    /// `1 << order` pages.
    pub order: u32,
}

/// A decision to read ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadaheadEvent {
    /// Fault or call.
    pub context: u64,
    /// File to read ahead in.
    pub file: Id,
    /// Page at which the kernel was called to read ahead.
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
    /// `file_ra_state.mmap_miss`: the kernel's running count of mapped accesses that missed the cache.
    pub mmap_miss: u32,
    /// Order of folios.
    pub order: u32,
    /// [`READAHEAD_SYNC`](super::READAHEAD_SYNC) and its like; anything else knows no bounds of the window.
    pub kind: u32,
}

/// Part of a request: what one bio brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// File; zeros where the memory is no file's.
    pub file: Id,
    /// First page in that file; 0 without one.
    pub index: u64,
    /// Bytes that the bio asks for.
    pub bytes: u32,
    /// [`PART_ANON`](super::PART_ANON).
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
    /// Whole disk, not the partition.
    pub dev: Dev,
    /// Bytes the request asks for in all.
    pub bytes: u32,
    /// Operation and flags.
    pub op: u32,
    /// Bios in the request; more than parts: the rest was not told apart.
    pub bios: u16,
    /// Flagged by the file system as metadata (`REQ_META`).
    pub metadata: bool,
    /// Flagged as read-ahead (`REQ_RAHEAD`).
    pub readahead: bool,
    pub(super) parts: &'a [u8],
}

/// A completion of a request or of its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The request it is of ([`Request::rq`]); free for another one once `left` is 0.
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
    /// It was woken, with [`STALL_WOKEN`](super::STALL_WOKEN).
    pub woken: u64,
    /// Address of a fault.
    pub address: u64,
    /// User instruction of a fault.
    pub ip: u64,
    /// Task state, as `sched_switch` tells it.
    pub task_state: u32,
    /// `STALL_*` flags.
    pub state: u32,
    /// Thread that woke it; 0: not known, or an interrupt did.
    pub waker: u32,
}

/// A task was off the CPU without waiting uninterruptibly; it ran again at the header's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Off {
    /// It left the CPU.
    pub began: u64,
    /// It was woken, with [`STALL_WOKEN`](super::STALL_WOKEN).
    pub woken: u64,
    /// Number of the call in progress; -1: none.
    pub syscall: i32,
    /// [`STALL_WOKEN`](super::STALL_WOKEN), [`OFF_RUNNABLE`](super::OFF_RUNNABLE).
    pub state: u32,
    /// Thread that woke it; 0: not known, or an interrupt did.
    pub waker: u32,
}

/// Memory that was mapped, or whose protection was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// The file; zeros for memory that is no file's, and with [`AREA_PROTECTED`](super::AREA_PROTECTED).
    pub file: Id,
    /// First address.
    pub address: u64,
    /// Length in bytes, as the call gave it: the kernel maps whole pages.
    pub bytes: u64,
    /// Byte in the file at the first address.
    pub offset: u64,
    /// `PROT_READ` (1), `PROT_WRITE` (2), `PROT_EXEC` (4), [`AREA_SHARED`](super::AREA_SHARED).
    pub prot: u32,
    /// [`AREA_PROTECTED`](super::AREA_PROTECTED), [`AREA_IMAGE`](super::AREA_IMAGE).
    pub state: u32,
}

/// A system call that returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// When it began; with the tid this names it.
    pub began: u64,
    /// Result, negative errno.
    pub result: i64,
    /// Argument registers at its beginning; those that the call does not take mean nothing.
    pub args: [u64; 6],
    /// Opened, executed, or behind the descriptor.
    pub file: Id,
    /// Directory a relative path starts from; of an absolute one the root directory, where that is not the recorder's.
    pub base: Id,
    /// File position before, where the call uses it.
    pub position: Option<u64>,
    /// Number in the architecture's table ([`crate::syscalls::name`]).
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
    /// Address whose access faulted.
    pub address: u64,
    /// User instruction; 0: not known.
    pub ip: u64,
    /// The architecture's error code.
    pub error: u32,
    /// [`FAULT_IN_KERNEL`](super::FAULT_IN_KERNEL).
    pub state: u32,
}

/// A user stack, unwound by frame pointers; or the kernel's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackEvent<'a> {
    /// The fault or call of this thread that it belongs to.
    pub context: u64,
    /// There may be more frames.
    pub full: bool,
    pub(super) frames: &'a [u8],
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
