/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Raw events, as the BPF programs write them and `raw.rs` reads them. Little endian, every field
 * naturally aligned, every record a multiple of 8 bytes. Appending records yields a stream: the header
 * says how long each is. Times are CLOCK_MONOTONIC in nanoseconds, pids those of the initial namespace,
 * devices the kernel's own dev_t (20 bits of minor), indices count pages.
 */
#ifndef COLD_EVENTS_H
#define COLD_EVENTS_H

#define COLD_COMM 16       /* bytes of a comm, with its NUL */
#define COLD_NAME_BYTES 4096 /* most bytes of a path, all its NULs included */
#define COLD_ARGS_BYTES 1024 /* most bytes of a command line */
#define COLD_PARTS 16      /* most bios of a request that are told apart */
#define COLD_RUN 64        /* most folios of a run; a bound to what a damaged log can claim, too */
#define COLD_FRAMES 64     /* most frames of a stack */
#define COLD_WAIT_FRAMES 24 /* most kernel frames of a wait */
#define COLD_STACK_BYTES 16384 /* most bytes of a copied stack */

enum cold_kind {
	COLD_FILE = 1,       /* struct cold_file_event, then names */
	COLD_FORK = 2,       /* struct cold_task */
	COLD_EXEC = 3,       /* struct cold_exec, then the command line */
	COLD_EXIT = 4,       /* struct cold_exit */
	COLD_COMM_SET = 5,   /* struct cold_task */
	COLD_FAULT = 7,      /* struct cold_pages: mm_filemap_fault, retries left out */
	COLD_MAP = 8,        /* struct cold_pages: mm_filemap_map_pages */
	COLD_GET = 9,        /* struct cold_pages: mm_filemap_get_pages */
	COLD_ADD = 10,       /* struct cold_add */
	COLD_DELETE = 11,    /* struct cold_delete */
	COLD_READAHEAD = 12, /* struct cold_readahead */
	COLD_REQUEST = 13,   /* struct cold_request, then its parts; when the driver gets it */
	COLD_DONE = 14,      /* struct cold_done */
	COLD_STALL = 15,     /* struct cold_stall; when the task runs again */
	COLD_CALL = 16,      /* struct cold_call, then the path of a lookup; when it returns */
	COLD_PAGE_FAULT = 17,/* struct cold_page_fault: tier B only */
	COLD_STACK = 18,     /* struct cold_stack, then frames */
	COLD_STACK_COPY = 19,/* struct cold_stack_copy, then the bytes of the stack */
	COLD_WAIT = 20,      /* struct cold_stack, then frames of the kernel: where a stall waits */
	COLD_OFF = 21,       /* struct cold_off */
	COLD_HEARD = 22,     /* struct cold_heard */
	COLD_AREA = 23,      /* struct cold_area */
};

/* cold_header.flags */
#define COLD_IN_TREE 1u      /* the task (pid, tid) belongs to the tree that is followed */
#define COLD_KTHREAD 2u      /* it is a kernel thread */
#define COLD_BORROWED 4u     /* pid and tid are whoever was interrupted: they did not cause the event */

struct cold_header {
	__u64 at;
	__u32 pid;
	__u32 tid;
	__u16 kind;
	__u16 bytes; /* of the whole record, this header included */
	__u32 flags;
};
_Static_assert(sizeof(struct cold_header) == 24, "header");

/* An inode: i_sb->s_dev, i_ino, i_generation. All 0 where there is none. */
struct cold_id {
	__u64 ino;
	__u32 dev;
	__u32 gen;
};
_Static_assert(sizeof(struct cold_id) == 16, "id");

/*
 * What a task was doing. `at` names it: with the tid it is unique, and every event that happened
 * within carries it, the stack too. Nested: a kernel-mode fault within a call shows as the fault,
 * with the call's number in `syscall`.
 */
enum cold_context_kind {
	COLD_CTX_NONE = 0,  /* neither: a kernel thread, or before the first event of the task */
	COLD_CTX_FAULT = 1, /* a page fault; file and index where the fault is a file's */
	COLD_CTX_CALL = 2,  /* a system call; file and index (page of the position) in the read family */
};
#define COLD_NO_PAGE (~0ull) /* index: the call has no position, or it is not known */
struct cold_context {
	__u64 at;           /* when it began; 0: not seen */
	struct cold_id file;
	__u64 index;
	__s32 syscall;      /* number; -1: none */
	__u32 kind;         /* enum cold_context_kind */
};
_Static_assert(sizeof(struct cold_context) == 40, "context");

/* cold_file_event.state */
#define COLD_F_FULL 1u      /* the names lead to the root of all mounts: an absolute path */
#define COLD_F_FS_ROOT 2u   /* the names lead to the root of its file system only */
#define COLD_F_DELETED 4u   /* unlinked (i_nlink 0, or its name is unhashed) */
#define COLD_F_CUT 8u       /* there are more names than were walked */
#define COLD_F_BDEV 16u     /* a block device's own cache: `bdev` says which */
#define COLD_F_SHMEM 32u    /* tmpfs, memfd, shared memory */
#define COLD_F_ROOT 64u     /* told only as the root of a task, which is not the recorder's */

/*
 * A file, the first time it is seen, and again when a full path became known. Names follow, from the
 * file up to the root, each ended by NUL ("libc.so.6\0lib\0usr\0"): path_bytes of them, padded to 8.
 * The root itself has no name. Memory files have theirs as the kernel gives it ("memfd:x").
 */
struct cold_file_event {
	struct cold_header head;
	struct cold_id file;
	__u64 size;
	__s64 mtime_sec;
	__u32 mtime_nsec;
	__u32 mode;
	__u32 nlink;
	__u32 bdev;
	__u32 state;
	__u16 path_bytes;
	__u16 names;
	char fs[16];
	/* What an overlay or another stacked file system shows for it: the inode that stat() tells. */
	struct cold_id shown;
};
_Static_assert(sizeof(struct cold_file_event) == 112, "file");

/* Fork: the child, head is the parent. Comm: head and task are the same. */
struct cold_task {
	struct cold_header head;
	__u32 pid;
	__u32 tid;
	__u32 parent; /* pid of the parent process */
	__u32 pad;
	char comm[COLD_COMM];
};
_Static_assert(sizeof(struct cold_task) == 56, "task");

/* A successful exec. The command line follows: arg_bytes of NUL-ended strings, padded to 8. */
struct cold_exec {
	struct cold_header head;
	struct cold_id file;
	__u32 old_tid;
	__u32 arg_bytes; /* at most COLD_ARGS_BYTES: cut when arg_total is more */
	__u32 arg_total;
	__u32 pad;
	char comm[COLD_COMM];
};
_Static_assert(sizeof(struct cold_exec) == 72, "exec");

struct cold_exit {
	struct cold_header head;
	__s32 status;   /* as wait() tells it; of the process when `last` */
	__u32 last;     /* 1: the last thread of its process */
};
_Static_assert(sizeof(struct cold_exit) == 32, "exit");

/* cold_pages.state */
#define COLD_P_KERNEL 1u /* the fault happened in kernel mode */

/* Fault: first == last. Map, get: the range, both inclusive. */
struct cold_pages {
	struct cold_header head;
	struct cold_context context; /* of a fault: file and index are those of the fault */
	struct cold_id file;
	__u64 first;
	__u64 last;
	__u64 address; /* faulting address; of a get, the call's position and its third argument added; 0: not known */
	__u64 ip;      /* user instruction; 0: not known */
	__u32 state;
	__u32 pad;
};
_Static_assert(sizeof(struct cold_pages) == 120, "pages");

/* A run of folios of one order that were added one after another by one task: read-around adds 32 at once. */
struct cold_add {
	struct cold_header head; /* at: of the first */
	struct cold_context context;
	struct cold_id file;
	__u64 index; /* of the first */
	__u32 order; /* 1 << order pages each */
	__u32 more;  /* folios that follow directly behind the first: less than COLD_RUN */
};
_Static_assert(sizeof(struct cold_add) == 96, "add");

struct cold_delete {
	struct cold_header head;
	struct cold_id file;
	__u64 index;
	__u32 order;
	__u32 pad;
};
_Static_assert(sizeof(struct cold_delete) == 56, "delete");

enum cold_readahead_kind {
	COLD_RA_SYNC = 1,
	COLD_RA_ASYNC = 2,
	COLD_RA_ORDER = 3,
	COLD_RA_UNBOUNDED = 4, /* no file_ra_state: start = index, size = asked, async = its tail */
};
struct cold_readahead {
	struct cold_header head;
	__u64 context; /* cold_context.at */
	struct cold_id file;
	__u64 index;
	__u64 start;
	__u64 asked;     /* pages the reader asked for; 0: the event does not say */
	__u32 size;
	__u32 async_size;
	__u32 ra_pages;
	__u32 mmap_miss;
	__u32 ra_order;
	__u32 ra_kind;   /* enum cold_readahead_kind */
};
_Static_assert(sizeof(struct cold_readahead) == 96, "readahead");

/* cold_part.state */
#define COLD_PART_ANON 1u  /* not the page cache's memory: direct I/O, buffers of a file system */

struct cold_part {
	struct cold_id file;
	__u64 index;
	__u32 bytes;
	__u32 state;
};
_Static_assert(sizeof(struct cold_part) == 32, "part");

/*
 * A read request when the driver gets it; head is the task that submitted it (COLD_BORROWED when the
 * submitter was not seen). `rq` names it until its COLD_DONE with left == 0. Parts follow.
 */
struct cold_request {
	struct cold_header head;
	__u64 rq;
	__u64 started;  /* when it was made; 0: not seen */
	__u64 inserted; /* when it entered the scheduler; 0: it did not */
	__u64 context;  /* cold_context.at of the submitter; 0: none */
	__u64 sector;   /* of 512 bytes, on the whole device */
	__u32 dev;
	__u32 bytes;
	__u32 op;       /* cmd_flags: lowest 8 bits operation, REQ_* above */
	__u16 parts;    /* that follow */
	__u16 bios;     /* more than parts: the rest was not told apart (counted up to 65535) */
	__u32 meta;     /* 1: REQ_META */
	__u32 ahead;    /* 1: REQ_RAHEAD */
};
_Static_assert(sizeof(struct cold_request) == 88, "request");

struct cold_done {
	struct cold_header head;
	__u64 rq;
	__u32 bytes; /* completed now */
	__u32 left;  /* still to come */
	__s32 error;
	__u32 pad;
};
_Static_assert(sizeof(struct cold_done) == 48, "done");

/* cold_stall.state */
#define COLD_S_IOWAIT 1u  /* in_iowait */
#define COLD_S_WOKEN 2u   /* `woken` was seen */
#define COLD_S_RUNNABLE 4u /* it could have gone on: preempted, or it gave the CPU to another */

struct cold_stall {
	struct cold_header head; /* at: it ran again */
	struct cold_context context;
	__u64 began;
	__u64 woken;
	__u64 address; /* of a fault */
	__u64 ip;
	__u32 task_state; /* prev_state as sched_switch tells it */
	__u32 state;
	__u32 waker;      /* tid of the task that woke it; 0: not known, or an interrupt did */
	__u32 pad;
};
_Static_assert(sizeof(struct cold_stall) == 112, "stall");

/* A task was off the CPU without waiting uninterruptibly. */
struct cold_off {
	struct cold_header head; /* at: it ran again */
	__u64 began;
	__u64 woken;
	__s32 syscall; /* in progress; -1: none */
	__u32 state;   /* COLD_S_* */
	__u32 waker;   /* as in cold_stall */
	__u32 pad;
};
_Static_assert(sizeof(struct cold_off) == 56, "off");

/* A task of the tree woke the recorder, which waited for its output. */
struct cold_heard {
	struct cold_header head;
};
_Static_assert(sizeof(struct cold_heard) == 24, "heard");

/* cold_area.prot, beside PROT_*; as in vm_flags */
#define COLD_A_SHARED 8u

/* cold_area.state */
#define COLD_A_PROTECTED 1u /* what is mapped there has this protection from now on; else it is mapped anew */
#define COLD_A_IMAGE 2u     /* the first of an exec's new image: nothing else is mapped */

/*
 * Memory that a process of the tree maps, or whose protection it changes; of a new image what the kernel mapped of the
 * executable and its interpreter. `at`: when the call was seen to begin, else when it returned; of an image when the
 * task got its new name, which is before anything is mapped.
 */
struct cold_area {
	struct cold_header head;
	struct cold_id file; /* zeros: memory that is no file's */
	__u64 address;
	__u64 bytes;         /* as the call has it: not of whole pages */
	__u64 offset;        /* bytes, of the address in the file */
	__u32 prot;          /* PROT_*, COLD_A_SHARED */
	__u32 state;         /* COLD_A_* */
};
_Static_assert(sizeof(struct cold_area) == 72, "area");

/*
 * A system call of the tree: path calls with their path (relative ones with the directory they are
 * relative to in `base`; a rename or link that worked is told twice, with its old path and then its
 * new one), getdents, advice (readahead, fadvise, madvise, mmap with MAP_POPULATE), and in tier B the
 * read family. Path: path_bytes with its NUL, padded to 8; 0: it could not be read.
 */
struct cold_call {
	struct cold_header head; /* at: it returned */
	__u64 began;             /* also names it: cold_context.at */
	__s64 result;
	__u64 args[6];
	struct cold_id file;     /* opened, executed, or behind the descriptor */
	struct cold_id base;     /* where a relative path starts; of an absolute one the root, where it is not the recorder's */
	__u64 position;          /* file position before, of calls that use it; else ~0 */
	__s32 syscall;
	__u32 open_flags;        /* of the open family, openat2 included */
	__u16 path_bytes;
	__u16 path_cut;          /* 1: longer than COLD_NAME_BYTES */
	__u32 pad;
};
_Static_assert(sizeof(struct cold_call) == 144, "call");

struct cold_page_fault {
	struct cold_header head; /* at names the context */
	__u64 address;
	__u64 ip;                /* of user space, in a kernel-mode fault too; 0: not known */
	__u32 error;             /* the architecture's error code */
	__u32 state;             /* COLD_P_KERNEL */
};
_Static_assert(sizeof(struct cold_page_fault) == 48, "page fault");

/*
 * User stack of the context `context` of this tid: frames of 8 bytes, innermost first. COLD_WAIT: kernel
 * stack of the stall that began at `context`, where something on it may tell what the wait is for.
 */
struct cold_stack {
	struct cold_header head;
	__u64 context;
	__u32 frames;
	__u32 full; /* 1: COLD_FRAMES were filled, there may be more */
};
_Static_assert(sizeof(struct cold_stack) == 40, "stack");

/*
 * User registers and stack bytes from sp up, padded to 8, for unwinding later. Registers by DWARF
 * number: x86-64 0..16 (rax rdx rcx rbx rsi rdi rbp rsp r8..r15 rip); arm64 0..31 (x0..x30, sp), 32 pc.
 */
struct cold_stack_copy {
	struct cold_header head;
	__u64 context;
	__u64 regs[33];
	__u32 regs_valid; /* how many of regs hold */
	__u32 stack_bytes;
};
_Static_assert(sizeof(struct cold_stack_copy) == 304, "stack copy");

/* Classes of lost events: one counter each, per CPU. Order as in raw.rs. */
enum cold_loss {
	COLD_LOST_FILES,
	COLD_LOST_PROCESSES,
	COLD_LOST_TOUCHES,
	COLD_LOST_FILLS,
	COLD_LOST_EVICTIONS,
	COLD_LOST_READAHEAD,
	COLD_LOST_REQUESTS,
	COLD_LOST_STALLS,
	COLD_LOST_CALLS,
	COLD_LOST_STACKS,
	COLD_LOST_TASK_STATE,    /* the table of tasks was full: its contexts and stalls are missing */
	COLD_LOST_REQUEST_STATE, /* the table of requests was full: submitters are missing */
	COLD_LOST_COMPAT,        /* 32-bit system calls, not decoded */
	COLD_LOST_MAPPINGS,
	COLD_LOSSES,
};

#endif
