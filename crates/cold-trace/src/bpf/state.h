/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the programs share: knobs set at load, maps, the tree, the context of each task. */
#ifndef COLD_STATE_H
#define COLD_STATE_H

#include "kernel.h"
#include "costs.h"
#include "events.h"

/* What a system call is to us; `knobs.calls` maps numbers to these. Same order as in knobs.rs. */
enum cold_call_class {
	CALL_OTHER,
	CALL_OPEN,      /* path, flags */
	CALL_OPENAT,    /* dirfd, path, flags */
	CALL_OPENAT2,   /* dirfd, path, struct open_how */
	CALL_CREAT,     /* path */
	CALL_PATH,      /* path */
	CALL_PATH_AT,   /* dirfd, path */
	CALL_PATH_2ND,  /* …, path: symlink's own, inotify_add_watch */
	CALL_SYMLINK_AT,/* …, dirfd, path */
	CALL_PATHS,     /* path, new path */
	CALL_PATHS_AT,  /* dirfd, path, dirfd, new path */
	CALL_EXEC,      /* path */
	CALL_EXEC_AT,   /* dirfd, path */
	CALL_LIST,      /* fd */
	CALL_READ,      /* fd; at the file's position */
	CALL_PREAD,     /* fd, …, offset in argument 3 */
	CALL_SENDFILE,  /* …, fd */
	CALL_COPY,      /* fd: splice, copy_file_range */
	CALL_FD,        /* fd: writes and syncs; of interest only where they wait */
	CALL_ADVICE_FD, /* fd */
	CALL_ADVICE,    /* address, bytes, advice */
	CALL_MMAP,      /* fd in argument 4; only with MAP_POPULATE */
	CALL_SOCKET,    /* fd, address, its length: of a path where it is AF_UNIX */
	CALL_PROTECT,   /* address, bytes, protection; told as an area, never as a call */
};

#define CALL_NUMBERS 512
#define CALL_COUNTS 65536

/* Set before loading; the verifier drops what they rule out. Same layout as in knobs.rs. */
struct cold_knobs {
	u32 self;         /* pid of the recorder: not recorded itself */
	u32 all;          /* every process is in the tree */
	u32 tier_b;       /* faults by address, reads as calls */
	u32 stacks;       /* 0 none, 1 frame pointers, 2 and a copy at stalls */
	u32 has_folio;    /* page cache tracepoints pass folios, not pages */
	u32 queue_first;  /* block tracepoints pass the queue before the request */
	u32 prev_state;   /* sched_switch passes the state */
	u32 io_start;     /* block_io_start tells who made a request */
	u32 page_faults;  /* page_fault_user tells where each fault begins */
	u32 page_shift;
	u32 count_calls;  /* every call is counted, and lookups have stacks */
	u32 areas;        /* mappings are told by us, not by perf events */
	u32 root_dev;     /* file system and inode of the recorder's root directory; 0: not known, and no root is told */
	u32 root_ino_low;
	u32 root_ino_high;
	u8 calls[CALL_NUMBERS];
};
const volatile struct cold_knobs knobs SEC(".rodata.knobs") = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COLD_LOSSES);
	__type(key, u32);
	__type(value, u64);
} lost SEC(".maps");

/* Processes of the tree: 1 belongs to it, 2 is only the parent of what will belong to it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, u32);
} tree SEC(".maps");

/*
 * Which processes may be in `tree`, by the last bits of their pid; never taken back. Of what others do nothing is told,
 * and by this it is known without a hash: on a machine that works, most switches of tasks are others'.
 */
#define MEMBERS 8192u
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MEMBERS);
	__type(key, u32);
	__type(value, u8);
} members SEC(".maps");

/* What each process called, where that is counted. Same layout as in recorder.rs. */
struct call_key {
	u32 pid;
	s32 number;
};
struct call_count {
	u64 calls;
	u64 bytes; /* read, written, or of directory entries */
	u64 time;  /* ns */
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CALL_COUNTS);
	__type(key, struct call_key);
	__type(value, struct call_count);
} call_counts SEC(".maps");

/*
 * The run of folios that the task on this CPU is adding; head.at 0: none. It ends when the task leaves the
 * CPU, so that it is always the current task's, and a folio that goes on with it needs no look for the task.
 */
struct add_run {
	struct cold_add add;
	u64 next; /* page behind the run */
	u64 mapping;
	u64 stack; /* no part of it: see by_current_task() */
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct add_run);
} add_runs SEC(".maps");

/* Inodes whose COLD_FILE was written; the value is the best COLD_F_* state so far. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 131072);
	__type(key, struct cold_id);
	__type(value, u32);
} seen SEC(".maps");

/* Read requests until the driver gets them. */
struct request_state {
	u64 started;
	u64 inserted;
	u64 context;
	u32 pid;
	u32 tid;
	u32 flags;
	u32 pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct request_state);
} requests SEC(".maps");

/* Before 6.5: who submitted a bio, until it is issued in a request. */
struct bio_state {
	u64 at;
	u64 context;
	u32 pid;
	u32 tid;
	u32 flags;
	u32 pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct bio_state);
} bios SEC(".maps");

/*
 * Where events of variable length are put together. One for each that can be under way when another
 * begins: the block layer's also in interrupts, a call's while its files are told.
 */
enum { SCRATCH_TASK, SCRATCH_BLOCK, SCRATCH_PARTS, SCRATCH_CALL, SCRATCH_EXEC, SCRATCHES };
struct scratch {
	u8 bytes[20 << 10];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/*
 * Argument of a tracepoint where its number depends on the kernel: in assembly, because the compiler
 * would choose the address instead of the value, which the verifier refuses.
 */
#define ARG(n)                                                                                        \
	({                                                                                            \
		u64 __value;                                                                          \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(__value) : "r"(ctx), "i"((n)*8));        \
		__value;                                                                              \
	})

static __always_inline void lose_many(u32 class, u64 n)
{
	u64 *count = bpf_map_lookup_elem(&lost, &class);

	if (count)
		*count += n;
}

static __always_inline void lose(u32 class)
{
	lose_many(class, 1);
}

static __always_inline bool is_kthread(void)
{
	return CURRENT(flags) & PF_KTHREAD;
}

static __always_inline u8 *member_slot(u32 pid)
{
	u32 slot = pid & (MEMBERS - 1);

	return bpf_map_lookup_elem(&members, &slot);
}

/* Only then it may be followed, and a thread of it may have a state. */
static __always_inline bool may_be_member(u32 pid)
{
	u8 *slot;

	if (knobs.all)
		return true;
	slot = member_slot(pid);
	return slot && *slot;
}

/* `pid` is the current task's process, or a user process in any case. */
static __always_inline bool followed(u32 pid)
{
	u32 *member = may_be_member(pid) ? bpf_map_lookup_elem(&tree, &pid) : NULL;

	if (member)
		return *member == 1;
	return knobs.all && pid && pid != knobs.self && !is_kthread();
}

static __always_inline bool is_self(void)
{
	return bpf_get_current_pid_tgid() >> 32 == knobs.self;
}

static __always_inline void head_with(struct cold_header *head, u16 kind, u16 bytes, u32 flags)
{
	u64 id = bpf_get_current_pid_tgid();

	head->at = bpf_ktime_get_ns();
	head->pid = id >> 32;
	head->tid = (u32)id;
	head->kind = kind;
	head->bytes = bytes;
	head->flags = flags;
}

static __always_inline void head_of(struct cold_header *head, u16 kind, u16 bytes)
{
	u32 pid = bpf_get_current_pid_tgid() >> 32;

	head_with(head, kind, bytes, followed(pid) ? COLD_IN_TREE : is_kthread() ? COLD_KTHREAD : 0);
}

/* An event of fixed size in the ring buffer; NULL and counted when there is no room. */
#define RESERVE(type, class)                                                                          \
	({                                                                                            \
		struct type *__event = bpf_ringbuf_reserve(&events, sizeof(struct type), 0);          \
		if (!__event)                                                                         \
			lose(class);                                                                  \
		__event;                                                                              \
	})
#define SUBMIT(event) bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP)

static __always_inline struct add_run *add_run(void)
{
	u32 slot = 0;

	return bpf_map_lookup_elem(&add_runs, &slot);
}

/* Ends the run of added folios. */
static __always_inline void tell_adds(void)
{
	struct add_run *run = add_run();
	struct cold_add *event;

	if (!run || !run->add.head.at)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (event) {
		__builtin_memcpy(event, &run->add, sizeof(*event));
		SUBMIT(event);
	} else {
		lose_many(COLD_LOST_FILLS, run->add.more + 1);
	}
	run->add.head.at = 0;
}

/* An event put together in a scratch of `room` bytes. The bound is proved where the verifier sees it. */
static __always_inline bool output(void *event, u64 bytes, u64 room, u32 class)
{
	barrier_var(bytes);
	if (bytes > room)
		return false;
	if (!bpf_ringbuf_output(&events, event, bytes, BPF_RB_NO_WAKEUP))
		return true;
	lose(class);
	return false;
}

static __always_inline struct cold_id id_of(struct inode *inode)
{
	struct cold_id id = {};

	if (!inode)
		return id;
	id.ino = READ(inode, i_ino);
	id.dev = READ(inode, i_sb, s_dev);
	id.gen = READ(inode, i_generation);
	return id;
}

/* The same of an inode whose type the verifier knows. */
static __always_inline struct cold_id id_of_typed(struct inode *inode)
{
	struct cold_id id = {.ino = inode->i_ino, .dev = inode->i_sb->s_dev, .gen = inode->i_generation};

	return id;
}

static __always_inline bool is_none(const struct cold_id *id)
{
	return !id->ino && !id->dev;
}

static __always_inline struct file *file_of_fd(u32 fd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = READ(task, files, fdt);
	struct file **slots, *file = NULL;

	if (!table || fd >= READ(table, max_fds))
		return NULL;
	slots = READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	return file;
}

#endif
