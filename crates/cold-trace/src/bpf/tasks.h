/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is known of each thread of the tree, and how it is found: 150,000 times in a cold start of Firefox. */
#ifndef COLD_TASKS_H
#define COLD_TASKS_H

#include "state.h"

/*
 * Files of a thread's last faults and reads that were told, each at its place by its inode's number: of two
 * libraries that call each other neither is looked for in `seen` again.
 */
#define KNOWN_FILES 4u /* a power of two */
struct known_file {
	u64 mapping; /* 0: none */
	struct cold_id id;
};

/* One thread of the tree. What every fault and every call needs comes first: two cache lines. */
struct task_state {
	u32 tid;          /* 0: free, where it lies in `slots` */
	u32 pid;
	struct cold_context context;
	u64 call_at;      /* the call in progress; 0: none */
	s32 call;
	u32 class;        /* enum cold_call_class */
	u64 address;      /* of the fault */
	u64 ip;           /* of user space */
	u64 regs;         /* user registers: a kernel address */
	u32 fault_state;
	u32 noticed;      /* the call was passed over, then something happened in it: counted in `calls_noticed` */
	struct known_file known[KNOWN_FILES];
	u64 args[6];
	s64 position;     /* of a call of the read family, moved by what it read; -1: not read yet */
	s64 first_position; /* the one that the call began with; -1: not known */
	struct cold_id call_file;
	u32 resolved;     /* the call's file was looked for */
	u32 looked_up;    /* lookups so far, where each may have a stack */
	u64 last_mapping; /* the last mm_filemap_fault, to know its retries */
	u64 last_index;
	u64 last_context;
	u64 stack_of;     /* the context whose stack was written */
	u64 copied_of;    /* and whose stack was copied */
	u64 began;        /* it is off the CPU since; 0: it runs */
	u64 woken;
	struct cold_context stalled;
	u32 waker;        /* 0: none that is known */
	u32 stall_state;  /* COLD_S_* */
	u32 stalls;       /* it waits uninterruptibly */
	s32 off_call;     /* the call it is in, where it does not; -1: none */
	u32 task_state;
	u32 pad;
	u64 renamed;      /* when it last got a name: in an exec after the old memory is gone, before the new is mapped */
};

/*
 * Where threads lie by the last bits of their tid: one comparison, no hash. A thread whose slot is another's
 * lies in `tasks`, and so do all where the kernel has no atomic exchange (before 5.12).
 */
#define SLOTS 8192u
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct task_state);
} slots SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, struct task_state);
} tasks SEC(".maps");

/* How many lie in `tasks`. */
u32 without_slot;

/* Calls under way whose end must be looked at although they leave nothing to tell: see call.h. */
u32 calls_noticed;

static const struct task_state no_task;

static __always_inline struct task_state *slot_of(u32 tid)
{
	u32 slot = tid & (SLOTS - 1);

	return bpf_map_lookup_elem(&slots, &slot);
}

/* The state of a thread that has one: only threads of the tree have. */
static __always_inline struct task_state *task_of(u32 tid)
{
	struct task_state *slot = slot_of(tid);

	/* The idle tasks' tid, 0, is a free slot's. */
	if (slot && tid && slot->tid == tid)
		return slot;
	return *(volatile u32 *)&without_slot ? bpf_map_lookup_elem(&tasks, &tid) : NULL;
}

static __always_inline bool takes_slot(struct task_state *slot, u32 tid)
{
#ifdef COLD_OLD
	(void)slot;
	(void)tid;
	return false;
#else
	return slot && !__sync_val_compare_and_swap(&slot->tid, 0, tid);
#endif
}

/* Of a task of the tree; NULL when there is no room, which is counted. */
static __always_inline struct task_state *state_of(u32 tid, u32 pid)
{
	struct task_state *state = task_of(tid);

	if (state)
		return state;
	state = slot_of(tid);
	if (!takes_slot(state, tid)) {
		if (!bpf_map_update_elem(&tasks, &tid, &no_task, BPF_NOEXIST))
			__sync_fetch_and_add(&without_slot, 1);
		state = bpf_map_lookup_elem(&tasks, &tid);
		if (!state) {
			lose(COLD_LOST_TASK_STATE);
			return NULL;
		}
		state->tid = tid;
	}
	state->pid = pid;
	state->context.syscall = -1;
	state->call = -1;
	return state;
}

/* Of the current task when it belongs to the tree, else NULL. */
static __always_inline struct task_state *my_state(void)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 tid = id;
	struct task_state *state;

	if (!may_be_member(id >> 32))
		return NULL;
	state = task_of(tid);
	if (state)
		return state;
	return followed(id >> 32) ? state_of(tid, id >> 32) : NULL;
}

/* Head of an event of a thread of the tree, which need not be the one that runs. */
static __always_inline void head_of_task(struct cold_header *head, struct task_state *task, u16 kind, u16 bytes)
{
	head->at = bpf_ktime_get_ns();
	head->pid = task->pid;
	head->tid = task->tid;
	head->kind = kind;
	head->bytes = bytes;
	head->flags = COLD_IN_TREE;
}

static __always_inline void not_noticed(struct task_state *task)
{
	if (!task->noticed)
		return;
	task->noticed = 0;
	__sync_fetch_and_add(&calls_noticed, -1);
}

/* The thread is no more, or has another tid. */
static __always_inline void forget_task(u32 tid)
{
#ifndef COLD_OLD
	struct task_state *slot = slot_of(tid);

	if (slot && slot->tid == tid) {
		/* Free slots are empty. The exchange comes after all that, for every CPU. */
		__builtin_memset((void *)slot + sizeof(slot->tid), 0, sizeof(*slot) - sizeof(slot->tid));
		__sync_lock_test_and_set(&slot->tid, 0);
		return;
	}
#endif
	if (!bpf_map_delete_elem(&tasks, &tid))
		__sync_fetch_and_add(&without_slot, -1);
}

#endif
