//! Raw events as the BPF programs write them (`bpf/events.h`), decoded without trusting a byte.
//!
//! A stream is records one behind the other; [`records`] walks it. Nothing here knows what an event
//! means for a recording.

use cold_model::Dev;

mod decode;
mod event;

pub use event::*;

#[cfg(test)]
mod tests;

/// Bytes of a record's header, the least a record can have.
pub const HEADER_BYTES: usize = 24;
/// Most folios of one run of fills (`COLD_RUN`).
pub const RUN: u32 = 64;

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
/// [`FileEvent::state`]: told only as the root directory of a task, which is not the recorder's.
pub const FILE_ROOT: u32 = 64;

/// [`Pages::state`], [`PageFault::state`]: the fault happened in kernel mode.
pub const FAULT_IN_KERNEL: u32 = 1;
/// [`Part::state`]: not the page cache's memory.
pub const PART_ANON: u32 = 1;
/// [`Stall::state`]: the kernel counted it as waiting for storage (`in_iowait`).
pub const STALL_IOWAIT: u32 = 1;
/// [`Stall::state`]: [`Stall::woken`] holds.
pub const STALL_WOKEN: u32 = 2;
/// [`Off::state`]: it could have gone on.
pub const OFF_RUNNABLE: u32 = 4;

/// [`Area::prot`]: what is written there goes to the file.
pub const AREA_SHARED: u32 = 8;
/// [`Area::state`]: what is mapped there has this protection from now on.
pub const AREA_PROTECTED: u32 = 1;
/// [`Area::state`]: the first of an exec's new image; nothing else is mapped.
pub const AREA_IMAGE: u32 = 2;

/// [`ReadaheadEvent::kind`]: the reader waits for it.
pub const READAHEAD_SYNC: u32 = 1;
/// [`ReadaheadEvent::kind`]: the reader goes on meanwhile.
pub const READAHEAD_ASYNC: u32 = 2;
/// [`ReadaheadEvent::kind`]: in folios of an order.
pub const READAHEAD_ORDER: u32 = 3;

/// Names of the classes of lost events, in the order of `enum cold_loss`.
pub const LOSSES: [&str; 14] = [
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
    "mappings",
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
        /// Its kind, as in `enum cold_kind`.
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
    /// Process (thread group) of the task; with [`BORROWED`] of whichever task was interrupted.
    pub pid: u32,
    /// Thread of that process; equal to `pid` for its first one.
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

/// What names an inode while it exists; all zeros where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Id {
    /// Device of its superblock.
    pub dev: Dev,
    /// Inode number (`i_ino`).
    pub inode: u64,
    /// `i_generation`: tells apart files that bear one number one after the other.
    pub generation: u32,
}

impl Id {
    /// There is one: the kernel writes zeros where it has none.
    pub fn known(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// What a record says, by its kind (`enum cold_kind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A file, when it is first seen and when its full path becomes known.
    File(FileEvent<'a>),
    /// A fork; the header is the parent's.
    Fork(Task<'a>),
    /// A successful exec; the header is the process that called it.
    Exec(Exec<'a>),
    /// The end of a thread.
    Exit(Exit),
    /// A thread named itself.
    Comm(Task<'a>),
    /// `mm_filemap_fault`, retries left out.
    Fault(Pages),
    /// `mm_filemap_map_pages`: mapped around a fault.
    Map(Pages),
    /// `mm_filemap_get_pages`: a read took these pages from the cache, filled first where they were missing.
    Get(Pages),
    /// Folios entered the page cache.
    Add(Add),
    /// A folio left the page cache.
    Delete(Delete),
    /// The kernel decided what to read ahead.
    Readahead(ReadaheadEvent),
    /// A read request.
    Request(Request<'a>),
    /// A read request, or only its first bytes, was completed.
    Done(Done),
    /// A task waited (for storage or uninterruptibly) and runs again.
    Stall(Stall),
    /// A task was off the CPU for another reason and runs again.
    Off(Off),
    /// The task of the header woke the recorder, which waited for its output.
    Heard,
    /// A mapping, or a new protection of one.
    Area(Area),
    /// A system call.
    Call(Call<'a>),
    /// A fault by address.
    PageFault(PageFault),
    /// A user stack, unwound by frame pointers in the kernel.
    Stack(StackEvent<'a>),
    /// A stack to be unwound.
    StackCopy(StackCopy<'a>),
    /// Where the kernel waits: its own stack, of the stall that began at `context`.
    Wait(StackEvent<'a>),
    /// A kind that this version does not know.
    Unknown,
}

/// A record with its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// When, whose and of which kind.
    pub head: Header,
    /// What follows the header, decoded by its kind.
    pub event: Event<'a>,
}

/// Walks a stream. After an error it ends.
pub fn records(stream: &[u8]) -> Records<'_> {
    Records { stream, at: 0 }
}

/// Iterator over the records of a stream, made by [`records`]; what it yields borrows from the stream.
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
    type Item = Result<RawRecord<'a>, Error>;

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
