//! One row type per table of a recording. `docs/formats/recording.md` documents the same columns.

use serde::{Deserialize, Serialize};

pub use super::off_cpu::{OffCpu, OffCpuReason};
use super::{FileIdx, RequestIdx, StackIdx};
use crate::{Dev, Nanos};

/// What began a process image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Began {
    /// It already ran when the recording began.
    Existing,
    /// fork, vfork or clone.
    Fork,
    /// A successful exec; the pid is that of the image before.
    Exec,
}

/// One process image: from a fork or exec to the next exec or the exit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// When it began.
    pub began: Nanos,
    /// What began it; [`Began::Existing`] images may have begun long before `began`.
    pub how: Began,
    /// Process id (thread group id): of the initial pid namespace in tiers A and B, of the recorder's in C and D.
    pub pid: u32,
    /// Parent's process id at that time; 0 when not known.
    pub parent: u32,
    /// The kernel's `comm` (at most 15 bytes).
    pub name: String,
    /// The executed file, where known.
    pub executable: Option<FileIdx>,
    /// Command line, where it could be read.
    pub arguments: Option<Vec<String>>,
    /// Belongs to the start's own tree.
    pub in_tree: bool,
    /// When the image ended; `None` while it ran on after the recording.
    pub ended: Option<Nanos>,
    /// `wait` status of an image that ended by exit, where known.
    pub status: Option<i32>,
}

/// A thread, from its clone or when it was first seen; an exec ends all threads of a process but the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// When it began, or was first seen.
    pub began: Nanos,
    /// Thread id; that of a process' first thread is the process id.
    pub tid: u32,
    /// Process it runs in (thread group id).
    pub pid: u32,
    /// Last `comm` seen.
    pub name: String,
    /// Belongs to the start's own tree.
    pub in_tree: bool,
    /// When it ended; `None` while it ran on after the recording.
    pub ended: Option<Nanos>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory. What is filled of it counts as metadata.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A block device's own page cache: metadata of the file system on it.
    BlockDevice,
    /// Memory with a file's face: memfd, System V or anonymous shared memory, tmpfs.
    Memory,
    /// A FIFO, a socket or a character device; or nothing told what it is.
    Other,
}

/// How a path was learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathFrom {
    /// From the open file of a process of the tree, mounts included: the name the program used.
    OpenFile,
    /// From a memory mapping's record.
    Mapping,
    /// From one of the inode's names below its file system's root, plus a mount of that file system.
    Dentry,
    /// Not at all; the path column is empty.
    Unknown,
}

/// A file, a directory, or a device's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Device of its superblock (the kernel's `s_dev`; `st_dev` differs on btrfs subvolumes and overlayfs).
    pub dev: Dev,
    /// Inode number of the kernel's inode, from which `st_ino` differs on btrfs and overlayfs.
    pub inode: u64,
    /// Inode generation; 0 where the tier does not tell.
    pub generation: u32,
    /// What it is.
    pub kind: FileKind,
    /// Absolute path as seen from the recorder, as [`crate::path_text`] writes it: [`File::place`].
    pub path: Option<String>,
    /// How the path was learnt.
    pub path_from: PathFrom,
    /// It had no name any more when the recording was made: deleted, or replaced by another file.
    pub deleted: bool,
    /// File system type (`ext4`).
    pub file_system: String,
    /// Size in bytes, where known.
    pub size: Option<u64>,
    /// Modification time, nanoseconds since 1970, where known.
    pub mtime_ns: Option<i64>,
    /// GNU build-id in hexadecimal, of ELF files that have one.
    pub build_id: Option<String>,
}

/// How a page was needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TouchKind {
    /// A fault on exactly this page of a mapping. Retries of one fault are one touch.
    Fault,
    /// Mapped around a fault because it was cached: an upper bound of what was needed.
    FaultAround,
    /// Copied by a buffered read.
    Read,
}

/// Pages the start needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// When: for a fault its beginning, for a read its success.
    pub at: Nanos,
    /// Process whose thread touched them, as [`Process::pid`].
    pub pid: u32,
    /// Thread that faulted or read.
    pub tid: u32,
    /// File that holds the pages.
    pub file: FileIdx,
    /// Index of the first page in the file, from 0.
    pub first_page: u64,
    /// Number of pages, at least 1.
    pub pages: u32,
    /// By a fault, around one, or by a read; tells whether it is exact.
    pub kind: TouchKind,
    /// The kernel booked it as a major fault (tiers B to D; says nothing about waiting). `None`: not told.
    pub major: Option<bool>,
    /// User instruction that faulted, as an address.
    pub ip: Option<u64>,
    /// User stack at the fault or in the call; `None` where none was taken.
    pub stack: Option<StackIdx>,
    /// Of a read: when its system call began. A call that waits for its pages one after another gives a row for each
    /// piece; with the thread this tells which belong together. `None`: not told, as in recordings of earlier versions.
    pub call: Option<Nanos>,
    /// Of a read: one past the last byte of the file that its call asked for, cut at the file's end; the same in all its
    /// rows. Pages alone do not tell a read of 10 bytes from one of a page, and kernels remember where a read ended.
    /// `None`: not told (calls that name several buffers, recordings of earlier versions).
    pub end: Option<u64>,
}

/// Why a folio was filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillCause {
    /// It holds the page that a fault waited for.
    DemandFault,
    /// Read around a fault.
    ReadAround,
    /// It holds a page that a buffered read asked for.
    BufferedRead,
    /// Read ahead of a buffered read.
    ReadAhead,
    /// Asked for by readahead, fadvise, madvise or `MAP_POPULATE`.
    Advice,
    /// File system metadata: directories, inodes, extent trees, bitmaps.
    Metadata,
    /// A page that was written, not read.
    Write,
    /// Filled by a kernel thread or in a way that is none of the others.
    Other,
}

/// A folio that entered the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// When it was added (its data arrives later).
    pub at: Nanos,
    /// Process in whose context it was added.
    pub pid: u32,
    /// Thread in whose context it was added.
    pub tid: u32,
    /// That process belongs to the start's tree.
    pub in_tree: bool,
    /// File that it caches a part of.
    pub file: FileIdx,
    /// Index in the file of the folio's first page.
    pub first_page: u64,
    /// Pages: 1 << order.
    pub pages: u32,
    /// Why it was filled, worked out from the events around it when they were assembled.
    pub cause: FillCause,
}

/// A folio that left the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// When the kernel removed it (`mm_filemap_delete_from_page_cache`): reclaimed, evicted or truncated.
    pub at: Nanos,
    /// File that it cached a part of.
    pub file: FileIdx,
    /// Index in the file of the folio's first page.
    pub first_page: u64,
    /// Number of pages in the folio, a power of two.
    pub pages: u32,
}

/// Pages of a file that the start used which were in the page cache when the recording began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// The file.
    pub file: FileIdx,
    /// First of them, counted from the start of the file.
    pub first_page: u64,
    /// Number of pages, at least 1.
    pub pages: u32,
}

/// Which of the kernel's paths decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadaheadKind {
    /// A read missed (`page_cache_sync_ra`).
    Sync,
    /// A read reached the marker page (`page_cache_async_ra`).
    Async,
    /// A window with large folios, mapped read-around included (`page_cache_ra_order`).
    Order,
    /// A plain window (`page_cache_ra_unbounded`).
    Unbounded,
}

/// One decision to read ahead or around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readahead {
    /// When the kernel entered that path.
    pub at: Nanos,
    /// Process in whose context it was decided.
    pub pid: u32,
    /// Thread in whose context it was decided.
    pub tid: u32,
    /// That process belongs to the start's tree.
    pub in_tree: bool,
    /// File that is read.
    pub file: FileIdx,
    /// Path of the decision.
    pub kind: ReadaheadKind,
    /// Page at which it was decided.
    pub index: u64,
    /// First page of the window (`ra->start`).
    pub window_first: u64,
    /// Window in pages (`ra->size`).
    pub window_pages: u32,
    /// Its asynchronous tail in pages (`ra->async_size`).
    pub async_pages: u32,
    /// Pages the reader asked for; 0 where the event does not say.
    pub asked_pages: u32,
    /// Limit of the file (`ra->ra_pages`), in pages.
    pub limit_pages: u32,
    /// The kernel's count of mapped misses (`ra->mmap_miss`).
    pub mmap_miss: u32,
}

/// A call by which the program asked for pages, gave them up, or told how it will use them. One about several mappings
/// has a row for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// When the call began.
    pub at: Nanos,
    /// When it returned.
    pub ended: Nanos,
    /// Process that made the call.
    pub pid: u32,
    /// Thread that made the call.
    pub tid: u32,
    /// `readahead`, `fadvise:WILLNEED`, `madvise:RANDOM`, `madvise:POPULATE_READ`, `mmap:POPULATE`, …
    pub call: String,
    /// File, where known.
    pub file: Option<FileIdx>,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes; 0 for "to the end" where the call means that.
    pub bytes: u64,
    /// Of a call about a mapping, the virtual address that belongs to `offset`. `None`: it is about an open file, or not
    /// told, as in recordings of earlier versions.
    pub address: Option<u64>,
    /// What the call returned (negative errno).
    pub result: i64,
}

/// One read request to a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRead {
    /// When it was made for the device's queue.
    pub queued: Nanos,
    /// When the driver got it; `None` when that was not seen.
    pub issued: Option<Nanos>,
    /// When it was completed; `None` when it was still in flight at the end.
    pub completed: Option<Nanos>,
    /// The whole device.
    pub dev: Dev,
    /// First sector of 512 bytes on the whole device.
    pub sector: u64,
    /// Bytes that the whole request reads, as the driver got it.
    pub bytes: u32,
    /// Process that made it.
    pub pid: u32,
    /// Thread that made it; 0, as `pid`, where the events do not tell who did.
    pub tid: u32,
    /// That process belongs to the start's tree.
    pub in_tree: bool,
    /// Flagged as metadata by the file system (`REQ_META`).
    pub metadata: bool,
    /// Flagged as read-ahead (`REQ_RAHEAD`).
    pub readahead: bool,
    /// File that it was made for, where the source tells it but not always the place in it, as an imported trace does;
    /// else the transfers tell it.
    pub file: Option<FileIdx>,
}

/// Pages that a request brought: one row per contiguous run of pages of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// The request that brought them.
    pub request: RequestIdx,
    /// File; `None` for memory that is no file's. Of direct I/O the file that the call read, where it was waited for:
    /// pages of it without a fill went past the cache.
    pub file: Option<FileIdx>,
    /// First page in the file.
    pub first_page: u64,
    /// Number of pages, at least 1; a part of a page counts whole.
    pub pages: u32,
}

/// What a task waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StallCause {
    /// The page of a mapped fault.
    Fault,
    /// The pages of a buffered (or direct) read.
    Read,
    /// Directory and inode blocks: open, stat, access, readlink, getdents.
    Lookup,
    /// Loading a program.
    Exec,
    /// Writing or syncing; also discarding the blocks of what was removed.
    Write,
    /// Storage, but which kind is not known.
    OtherStorage,
    /// A file system's journal: room in it, a commit, or a block that is just being written to it.
    Journal,
    /// A lock of the kernel, or the same lookup by another task: most likely held by one that waits for
    /// storage.
    Lock,
    /// Uninterruptibly, but not marked as waiting for storage, and what for is not known.
    Other,
}

/// An interval in which a task did not run because it waited uninterruptibly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When the task left the CPU.
    pub began: Nanos,
    /// When it was woken: the wait itself is `woken - began`. `None` when that was not seen.
    pub woken: Option<Nanos>,
    /// When it ran again; `None` when it never did.
    pub ended: Option<Nanos>,
    /// Process of the task that waited.
    pub pid: u32,
    /// Thread id of the task that waited.
    pub tid: u32,
    /// What it waited for, worked out from the fault or call it was in.
    pub cause: StallCause,
    /// File, where known.
    pub file: Option<FileIdx>,
    /// Page in that file, where known.
    pub page: Option<u64>,
    /// System call in progress (its number); `None` in a fault from user mode.
    pub system_call: Option<u32>,
    /// The lookup in progress, as its index in the table of lookups.
    pub lookup: Option<u32>,
    /// User stack as the task waited; `None` where none was taken.
    pub stack: Option<StackIdx>,
}

/// Kinds of path resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LookupKind {
    /// open, openat, openat2, creat.
    Open,
    /// stat, lstat, newfstatat, statx.
    Stat,
    /// access, faccessat, faccessat2.
    Access,
    /// readlink, readlinkat.
    Readlink,
    /// execve, execveat.
    Exec,
    /// getdents64: reads a directory that is open.
    List,
    /// Changes a directory: mkdir, rmdir, mknod, unlink, symlink, bind of a Unix socket; rename and link, which
    /// resolve two paths.
    Change,
    /// Another call with a path: chdir, statfs, chmod, chown, utimensat, truncate, getxattr,
    /// `inotify_add_watch`, connect to a Unix socket.
    Other,
}

/// One path resolution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// When the call began.
    pub at: Nanos,
    /// When it returned.
    pub ended: Nanos,
    /// Process that made the call.
    pub pid: u32,
    /// Thread that made the call.
    pub tid: u32,
    /// Family of the call.
    pub kind: LookupKind,
    /// The path as the program gave it, made absolute where its base is known; `None` when it could
    /// not be read.
    pub path: Option<String>,
    /// Result of the call: negative errno, else not negative.
    pub result: i64,
    /// Flags of an open.
    pub flags: u32,
    /// The file found, where known.
    pub file: Option<FileIdx>,
    /// The directory that an absolute path begins at, as the recorder sees it, where that is not the recorder's root: the
    /// process is in a chroot or a container. Empty: the recorder does not see it. `None`: the recorder's, or not told
    /// (recordings of earlier versions, other systems).
    pub root: Option<String>,
    /// User stack in the call; `None` where none was taken.
    pub stack: Option<StackIdx>,
}

/// A file mapped into a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// When it was mapped; of what was mapped before the recording, when that was found out.
    pub at: Nanos,
    /// Process in whose address space it lies.
    pub pid: u32,
    /// Virtual address of its first byte; 0 where a prefetch file tells of the image, which does not tell it.
    pub address: u64,
    /// Length in bytes of the address range, which may reach beyond the end of the file.
    pub bytes: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// File that is mapped.
    pub file: FileIdx,
    /// May be executed.
    pub executable: bool,
}

/// One frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Address in the process. Return addresses point behind the call.
    pub address: u64,
    /// File mapped there, where known.
    pub file: Option<FileIdx>,
    /// Offset in that file, in bytes.
    pub offset: u64,
    /// Generated code: the memory there is no file's and may be executed, as that of a JIT compiler.
    pub generated: bool,
}

impl Frame {
    /// What generated code is called in reports: its compiler's names for it are not known.
    pub const GENERATED: &str = "[JIT]";
}

/// A user stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stack {
    /// Frames from the innermost (where it was taken) outwards.
    pub frames: Vec<Frame>,
    /// It goes on beyond the last frame (limit reached, or it could not be unwound further).
    pub truncated: bool,
}
