//! Every table with its columns, in the documented order.

use cold_model::recording::tables::{
    Advice, DeviceRead, Eviction, File, Fill, Frame, Lookup, Mapping, OffCpu, Process, Readahead, Resident,
    Stack, Stall, Thread, Touch, Transfer,
};

use super::{About, Cell, Column, ColumnKind, Field, Table};
use crate::{Error, Result};

/// A stack without its frames.
pub(crate) struct StackRow {
    frames: u32,
    truncated: bool,
}

/// A frame with its place.
pub(crate) struct FrameRow {
    stack: u32,
    depth: u32,
    address: u64,
    file: Option<u32>,
    offset: u64,
    generated: bool,
}

/// `field: [ColumnKind] unit, documentation`, in the order of the row type. `Id` before the fields is the row's
/// number.
macro_rules! table {
    (
        $(#[$about:meta])* $name:ident: $row:ident = $file:literal, $tiers:literal, $doc:literal;
        $(id $id:ident: $id_doc:literal;)?
        check $check:expr;
        $($field:ident $(as $kind:expr)?, $unit:literal, $column_doc:literal;)*
    ) => {
        $(#[$about])*
        pub(crate) const $name: Table<$row> = Table {
            name: $file,
            tiers: $tiers,
            doc: $doc,
            columns: &[
                $(Column {
                    about: About {
                        name: stringify!($id), kind: ColumnKind::Id, optional: false, unit: "", doc: $id_doc,
                        dictionary: false,
                    },
                    cell: |_, n| Cell::Int(i64::try_from(n).unwrap_or(i64::MAX)),
                },)?
                $(column!($row, $field, [$($kind)?], $unit, $column_doc),)*
            ],
            row: |values| {
                $(let _: u64 = {
                    let _ = stringify!($id);
                    values.take()?
                };)?
                Ok($row { $($field: values.take()?),* })
            },
            check: $check,
        };
    };
}

macro_rules! column {
    ($row:ident, $field:ident, [], $unit:literal, $doc:literal) => {
        column!($row, $field, [kind_of(|r: &$row| &r.$field)], $unit, $doc)
    };
    ($row:ident, $field:ident, [$kind:expr], $unit:literal, $doc:literal) => {
        Column {
            about: About {
                name: stringify!($field),
                kind: $kind,
                optional: optional_of(|r: &$row| &r.$field),
                unit: $unit,
                doc: $doc,
                dictionary: dictionary_of(|r: &$row| &r.$field),
            },
            cell: |row, _| row.$field.cell(),
        }
    };
}

const fn kind_of<R, F: Field>(_: fn(&R) -> &F) -> ColumnKind {
    F::KIND
}
const fn optional_of<R, F: Field>(_: fn(&R) -> &F) -> bool {
    F::OPTIONAL
}
const fn dictionary_of<R, F: Field>(_: fn(&R) -> &F) -> bool {
    F::DICTIONARY
}

pub(crate) mod fleet;
pub(crate) mod order;

const FILE: ColumnKind = ColumnKind::Ref("files");
const STACK: ColumnKind = ColumnKind::Ref("stacks");

/// The last byte of a page range must be a file offset, which the kernel keeps in a signed 64-bit integer.
fn range(first: u64, pages: u32, page_bytes: u64) -> Option<&'static str> {
    if pages == 0 {
        return Some("a range of no pages");
    }
    let end = first.checked_add(pages.into()).and_then(|end| end.checked_mul(page_bytes));
    // One page more than the largest offset, which ends inside the last page.
    end.is_none_or(|end| end > (1 << 63)).then_some("a page beyond the largest file")
}

table! {
    PROCESSES: Process = "processes", "A B C D",
        "Process images: one row per fork and per exec, to the next exec or the exit.";
    check |_, _| None;
    began, "ns", "When the image began.";
    how, "", "What began it: `existing` (it already ran when the recording began), `fork`, `exec`.";
    pid, "", "Process id (thread group id): of the initial pid namespace in tiers A and B, of the recorder's in C and D.";
    parent, "", "Parent's process id at that time; 0 when not known.";
    name, "", "The kernel's `comm`, at most 15 bytes.";
    executable as FILE, "", "The executed file. Null: not known.";
    arguments, "", "Command line. Null: it could not be read.";
    in_tree, "", "It belongs to the start's own tree.";
    ended, "ns", "When the image ended. Null: it ran on after the recording.";
    status, "", "Status as `wait` reports it. Null: it did not end by exit, or it is not known.";
}

table! {
    THREADS: Thread = "threads", "A B C D", "Threads, each process' first included.";
    check |_, _| None;
    began, "ns", "When it began, or was first seen.";
    tid, "", "Thread id.";
    pid, "", "Its process.";
    name, "", "Last `comm` seen.";
    in_tree, "", "It belongs to the start's own tree.";
    ended, "ns", "When it ended. Null: it ran on after the recording.";
}

table! {
    FILES: File = "files", "A B C D", "Every file that another table names. Identity: device, inode, generation.";
    id file: "Number of the file, to which the columns `file` and `executable` of other tables refer.";
    check |_, _| None;
    dev, "", "Device of its superblock (`s_dev`; on btrfs and overlayfs `st_dev` differs), `MAJOR:MINOR`.";
    inode as ColumnKind::Unsigned, "", "Inode number.";
    generation, "", "Inode generation; 0 where the tier does not tell.";
    kind, "", "What it is. `block_device`: a device's own page cache, metadata of the file system on it. `memory`: \
        memfd, System V or anonymous shared memory, tmpfs.";
    path, "", "Absolute path as the recorder sees it, as a text that can be turned back ([paths](paths.md)): \
        `\\xNN` stands for bytes that are not UTF-8. Null: not known.";
    path_from, "", "How the path was learnt: from an open file of the tree (mounts included), from a mapping's record, \
        from one of the inode's names plus a mount of its file system, or not at all.";
    deleted, "", "When the recording was made it had no name any more where it had been used: it was deleted, or \
        replaced by another. A file that was renamed in its directory, or over another file of the recording, has \
        its new name in `path`.";
    file_system, "", "File system type (`ext4`).";
    size, "bytes", "Size. Null: not known.";
    mtime_ns, "ns since 1970", "Modification time. Null: not known.";
    build_id, "", "GNU build-id in hexadecimal. Null: no ELF file, or it has none.";
}

table! {
    TOUCHES: Touch = "touches", "A B C D", "Pages the start needed: faults and buffered reads of its own tree.";
    check |r, page| range(r.first_page, r.pages, page);
    at, "ns", "When: of a fault its beginning, of a read its success.";
    pid, "", "Process.";
    tid, "", "Thread.";
    file as FILE, "", "File.";
    first_page, "pages", "First page, counted from the start of the file.";
    pages, "pages", "Number of pages, at least 1.";
    kind, "", "`fault`: a fault on exactly this page, retries included. `fault_around`: mapped around a fault because \
        it was cached, an upper bound of what was needed. `read`: copied by a buffered read.";
    major, "", "The kernel booked it as a major fault, which says nothing about waiting. Null: not told.";
    ip as ColumnKind::Unsigned, "", "Address of the user instruction that faulted. Null: not known.";
    stack as STACK, "", "User stack. Null: none was taken.";
    call, "ns", "Of a read: when its system call began; the pieces of one call share it. Null: not told, as in recordings \
        of earlier versions.";
    end as ColumnKind::Unsigned, "bytes", "Of a read: one past the last byte of the file that its call asked for, cut at the \
        file's end; the pieces of one call share it. Null: not told, as in recordings of earlier versions.";
}

table! {
    FILLS: Fill = "fills", "A B", "Folios that entered the page cache, by anybody.";
    check |r, page| range(r.first_page, r.pages, page);
    at, "ns", "When it was added; its data arrives later.";
    pid, "", "Process in whose context it was added.";
    tid, "", "Thread.";
    in_tree, "", "That process belongs to the start's tree.";
    file as FILE, "", "File.";
    first_page, "pages", "First page.";
    pages, "pages", "Number of pages, a power of two; in imported recordings a cluster, of any size.";
    cause, "", "`demand_fault`, `buffered_read`: it holds a page that was waited for. `read_around`, `read_ahead`: it \
        was read because of a neighbour. `advice`: asked for by readahead, fadvise, madvise or MAP_POPULATE. \
        `metadata`: of the file system. `write`: written, not read. `other`.";
}

table! {
    EVICTIONS: Eviction = "evictions", "A B", "Folios that left the page cache.";
    check |r, page| range(r.first_page, r.pages, page);
    at, "ns", "When.";
    file as FILE, "", "File.";
    first_page, "pages", "First page.";
    pages, "pages", "Number of pages.";
}

table! {
    RESIDENCY: Resident = "residency", "A B C D", "What was in the page cache already when the recording began, of the \
        files that the start used: by a look before it or, in tiers A and B, by one after it and by all that came and \
        went meanwhile. A file without rows had no such page, or nobody could look at it. Sorted by file and page.";
    check |r, page| range(r.first_page, r.pages, page);
    file as FILE, "", "File.";
    first_page, "pages", "First page.";
    pages, "pages", "Number of pages.";
}

table! {
    READAHEAD: Readahead = "readahead", "A B", "The kernel's decisions to read ahead or around.";
    check |_, _| None;
    at, "ns", "When.";
    pid, "", "Process.";
    tid, "", "Thread.";
    in_tree, "", "That process belongs to the start's tree.";
    file as FILE, "", "File.";
    kind, "", "`sync`: a read missed. `async`: a read reached the marker page. `order`: a window with large folios, \
        mapped read-around included. `unbounded`: a plain window.";
    index, "pages", "Page at which it was decided.";
    window_first, "pages", "First page of the window.";
    window_pages, "pages", "The window.";
    async_pages, "pages", "Its asynchronous tail.";
    asked_pages, "pages", "What the reader asked for; 0 where the event does not say.";
    limit_pages, "pages", "Limit of the file (`ra_pages`).";
    mmap_miss, "", "The kernel's count of mapped misses of the file.";
}

table! {
    ADVICE: Advice = "advice", "A B", "Calls by which the tree asked for pages, gave them up, or told how it will use \
        them. One about several mappings has a row for each.";
    check |_, _| None;
    at, "ns", "When the call began.";
    ended, "ns", "When it returned.";
    pid, "", "Process.";
    tid, "", "Thread.";
    call, "", "`readahead`, `fadvise:WILLNEED`, `madvise:RANDOM`, `madvise:POPULATE_READ`, `mmap:POPULATE`, …";
    file as FILE, "", "File. Null: not known.";
    offset as ColumnKind::Unsigned, "bytes", "First byte in the file, as the program gave it.";
    bytes as ColumnKind::Unsigned, "bytes", "Length as the program gave it; 0 for \"to the end\" where the call means that.";
    address as ColumnKind::Unsigned, "", "Of a call about a mapping, the address that belongs to `offset`. Null: it is about an open \
        file, or not told (earlier versions).";
    result, "", "What the call returned; negative: errno.";
}

table! {
    DEVICE_READS: DeviceRead = "device_reads", "A B", "Read requests to block devices, by anybody.";
    id request: "Number of the request, to which `transfers.request` refers.";
    check |r, _| (r.sector > 1 << 54).then_some("a sector beyond the largest device");
    queued, "ns", "When it was made for the device's queue.";
    issued, "ns", "When the driver got it. Null: not seen.";
    completed, "ns", "When it was completed. Null: it was in flight at the end.";
    dev, "", "The whole device, `MAJOR:MINOR`.";
    sector, "512 bytes", "First sector on the whole device.";
    bytes, "bytes", "Size.";
    pid, "", "Process that made it.";
    tid, "", "Thread.";
    in_tree, "", "That process belongs to the start's tree.";
    metadata, "", "The file system flagged it as metadata (`REQ_META`).";
    readahead, "", "Flagged as read-ahead (`REQ_RAHEAD`).";
    file as FILE, "", "In imported recordings the file that it was made for. Null: not told, or `transfers` tell it.";
}

table! {
    TRANSFERS: Transfer = "transfers", "A B",
        "What each request brought: one row per run of consecutive pages of one file. Sorted by request.";
    check |r, page| range(r.first_page, r.pages, page);
    request as ColumnKind::Ref("device_reads"), "", "The request.";
    file as FILE, "", "File. Null: memory that is no file's (direct I/O).";
    first_page, "pages", "First page in the file.";
    pages, "pages", "Number of pages.";
}

table! {
    STALLS: Stall = "stalls", "A B",
        "Intervals in which a task of the tree did not run because it waited uninterruptibly.";
    check |_, _| None;
    began, "ns", "When the task left the CPU.";
    woken, "ns", "When it was woken: the wait is `woken - began`. Null: not seen.";
    ended, "ns", "When it ran again. Null: it never did.";
    pid, "", "Process.";
    tid, "", "Thread.";
    cause, "", "`fault`: a mapped page. `read`: a buffered or direct read. `lookup`: directories and inodes. `exec`: \
        loading a program. `write`: writing, syncing, discarding. `other_storage`: storage, not known which. `journal`: \
        the file system's journal. `lock`: a lock of the kernel, most likely held by a task that waits for storage. \
        `other`: not known.";
    file as FILE, "", "File. Null: not known.";
    page, "pages", "Page in that file. Null: not known.";
    system_call, "", "Number of the system call in progress. Null: a fault from user mode.";
    lookup as ColumnKind::Ref("lookups"), "", "The lookup in progress. Null: none.";
    stack as STACK, "", "User stack. Null: none was taken.";
}

table! {
    OFF_CPU: OffCpu = "off_cpu", "A B",
        "Intervals in which a task of the tree was off the CPU and came back: those of `stalls`, and all others. Not where \
        every process is recorded.";
    check |r, _| (r.ended < r.began).then_some("an interval that ends before it begins");
    began, "ns", "When the task left the CPU.";
    woken, "ns", "When it was woken; from then on it waited for a CPU. Null: not seen, or it was runnable all the time.";
    ended, "ns", "When it ran again.";
    pid, "", "Process.";
    tid, "", "Thread.";
    reason, "", "`storage`. `lock`: of the kernel. `event`: in a system call, for what another task, a timer or a network \
        does (pipe, socket, futex, poll, a child's end). `sleep`: it asked for it. `runnable`: for nothing but a CPU. `other`: \
        none of these, or not known.";
    system_call, "", "Number of the system call in progress. Null: none was, or it is not known.";
    waker, "", "Thread that woke it, or made it: a new task's first interval lasts until it first runs. Null: an interrupt did (a timer, a device), or it is not known.";
}

table! {
    LOOKUPS: Lookup = "lookups", "A B", "Path resolutions of the tree with their results.";
    id lookup: "Number of the lookup, to which `stalls.lookup` refers.";
    check |_, _| None;
    at, "ns", "When the call began.";
    ended, "ns", "When it returned.";
    pid, "", "Process.";
    tid, "", "Thread.";
    kind, "", "Family of the call; `list` is getdents64, `change` mkdir, unlink, rename, bind and the like: a rename that worked \
        has two rows, of its old and its new path.";
    path, "", "The path the program gave, made absolute where its base is known. Null: it could not be read.";
    result, "", "Result; negative: errno (-2: there is no such file).";
    flags, "", "Flags of an open.";
    file as FILE, "", "The file found. Null: none, or not known.";
    root, "", "The directory that an absolute path begins at, as the recorder sees it, where that is not the recorder's root: \
        of a process in a chroot or a container. Empty: the recorder does not see it. Null: the recorder's, or not told (recordings of earlier versions, other systems).";
    stack as STACK, "", "User stack. Null: none was taken.";
}

table! {
    MAPPINGS: Mapping = "mappings", "A B C D", "File mappings of the tree's processes.";
    check |r, _| (r.address.checked_add(r.bytes).is_none() || r.offset.checked_add(r.bytes).is_none())
        .then_some("a mapping beyond the address space");
    at, "ns", "When.";
    pid, "", "Process.";
    address as ColumnKind::Unsigned, "", "First address. 0 where it was imported from a prefetch file, which does not tell it.";
    bytes, "bytes", "Length.";
    offset, "bytes", "Offset in the file.";
    file as FILE, "", "File.";
    executable, "", "May be executed.";
}

table! {
    STACKS: StackRow = "stacks", "A B C D, unless switched off", "User stacks, each distinct one once.";
    id stack: "Number of the stack, to which the columns `stack` of other tables refer.";
    check |_, _| None;
    frames, "", "Number of its rows in `stack_frames`.";
    truncated, "", "It goes on beyond the last frame.";
}

table! {
    STACK_FRAMES: FrameRow = "stack_frames", "as stacks", "Frames of the stacks, sorted by stack and depth.";
    check |_, _| None;
    stack as STACK, "", "Stack.";
    depth, "", "0 is the innermost frame.";
    address as ColumnKind::Unsigned, "", "Address in the process. Return addresses point behind the call.";
    file as FILE, "", "File mapped there. Null: not known.";
    offset as ColumnKind::Unsigned, "bytes", "Offset in that file.";
    generated, "", "Generated code: executable memory that is no file's, as that of a JIT compiler.";
}

/// Stacks as two flat tables.
pub(crate) fn flat(stacks: &[Stack]) -> (Vec<StackRow>, Vec<FrameRow>) {
    let rows = stacks.iter().map(|s| StackRow { frames: s.frames.len() as u32, truncated: s.truncated });
    let frames = stacks.iter().zip(0u32..).flat_map(|(stack, n)| {
        stack.frames.iter().zip(0u32..).map(move |(frame, depth)| {
            let Frame { address, file, offset, generated } = *frame;
            FrameRow { stack: n, depth, address, file, offset, generated }
        })
    });
    (rows.collect(), frames.collect())
}

/// The reverse of [`flat`]; refuses frames that are out of order, missing or too many.
pub(crate) fn nested(
    stacks: Option<Vec<StackRow>>,
    frames: Option<Vec<FrameRow>>,
) -> Result<Option<Vec<Stack>>> {
    let wrong = |why: &str| Error::Inconsistent { why: format!("stack_frames: {why}") };
    let (stacks, frames) = match (stacks, frames) {
        (Some(stacks), Some(frames)) => (stacks, frames),
        (None, None) => return Ok(None),
        _ => return Err(wrong("it has to be there exactly when stacks is")),
    };
    let mut left = frames.into_iter().peekable();
    let mut made = Vec::with_capacity(stacks.len());
    for (row, n) in stacks.into_iter().zip(0u32..) {
        let mut frames = Vec::new();
        while let Some(f) = left.next_if(|f| f.stack == n && f.depth as usize == frames.len()) {
            frames.push(Frame { address: f.address, file: f.file, offset: f.offset, generated: f.generated });
        }
        if frames.len() != row.frames as usize {
            return Err(wrong("a stack has another number of frames than it says"));
        }
        made.push(Stack { frames, truncated: row.truncated });
    }
    if left.next().is_some() {
        return Err(wrong("there are frames out of order or of no stack"));
    }
    Ok(Some(made))
}
