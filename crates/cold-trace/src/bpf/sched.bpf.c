// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The tree of processes, and when its tasks wait. */
#include "call.h"
#include "stacks.h"

#define SIGNAL_GROUP_EXIT 4u

static __always_inline void task_event(struct cold_task *event, u16 kind, struct task_struct *task)
{
	event->pid = BPF_CORE_READ(task, tgid);
	event->tid = BPF_CORE_READ(task, pid);
	event->parent = BPF_CORE_READ(task, real_parent, tgid);
	event->pad = 0;
	bpf_core_read(event->comm, sizeof(event->comm), &task->comm);
	head_of(&event->head, kind, sizeof(*event));
}

PROGRAM(sched_process_fork, process_fork)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	u32 from = BPF_CORE_READ(parent, tgid), pid = BPF_CORE_READ(child, tgid), one = 1;
	u32 *member = bpf_map_lookup_elem(&tree, &from);
	struct cold_task *event;

	if (!member && !followed(from))
		return;
	/* The supervisor's threads are no children. */
	if (member && *member != 1 && pid == from)
		return;
	if (pid != from && bpf_map_update_elem(&tree, &pid, &one, BPF_ANY))
		lose(COLD_LOST_PROCESSES);
	event = RESERVE(cold_task, COLD_LOST_PROCESSES);
	if (!event)
		return;
	task_event(event, COLD_FORK, child);
	event->parent = from;
	event->head.flags |= COLD_IN_TREE;
	SUBMIT(event);
}

PROGRAM(task_rename, process_rename)
{
	struct task_struct *task = (void *)ctx[0];
	struct cold_task *event;

	if (!followed(BPF_CORE_READ(task, tgid)))
		return;
	event = RESERVE(cold_task, COLD_LOST_PROCESSES);
	if (!event)
		return;
	task_event(event, COLD_COMM_SET, task);
	/* The tracepoint comes before the change. */
	bpf_probe_read_kernel_str(event->comm, sizeof(event->comm), (void *)ctx[1]);
	event->head.pid = event->pid;
	event->head.tid = event->tid;
	event->head.flags = COLD_IN_TREE;
	SUBMIT(event);
}

PROGRAM(sched_process_exit, process_exit)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 id = bpf_get_current_pid_tgid();
	u32 pid = id >> 32, tid = id, last;
	struct task_state *state;
	struct cold_exit *event;

	(void)ctx;
	if (!followed(pid))
		return;
	/* `live` was counted down before this tracepoint: 0 says that nobody is left. */
	last = BPF_CORE_READ(task, signal, live.counter) == 0;
	event = RESERVE(cold_exit, COLD_LOST_PROCESSES);
	if (event) {
		head_of(&event->head, COLD_EXIT, sizeof(*event));
		event->status = BPF_CORE_READ(task, exit_code);
		if (last && BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT)
			event->status = BPF_CORE_READ(task, signal, group_exit_code);
		else if (last)
			event->status = BPF_CORE_READ(task, group_leader, exit_code);
		event->last = last;
		SUBMIT(event);
	}
	tell_adds();
	state = bpf_map_lookup_elem(&tasks, &tid);
	if (state)
		not_noticed(state);
	bpf_map_delete_elem(&tasks, &tid);
	if (last)
		bpf_map_delete_elem(&tree, &pid);
}

static __always_inline bool waits(struct task_struct *prev, u32 state)
{
	return (state & TASK_UNINTERRUPTIBLE && !(state & TASK_NOLOAD)) ||
	       BPF_CORE_READ_BITFIELD(prev, in_iowait);
}

static __always_inline u32 state_of_task(struct task_struct *task)
{
	struct task_struct___old *old = (void *)task;

	return bpf_core_field_exists(old->state) ? old->state : task->__state;
}

static __always_inline void runs_again(struct task_state *task, u32 tid)
{
	struct cold_stall *event = RESERVE(cold_stall, COLD_LOST_STALLS);

	if (event) {
		event->head.at = bpf_ktime_get_ns();
		event->head.pid = task->pid;
		event->head.tid = tid;
		event->head.kind = COLD_STALL;
		event->head.bytes = sizeof(*event);
		event->head.flags = COLD_IN_TREE;
		event->context = task->stalled;
		event->began = task->began;
		event->woken = task->woken;
		event->address = task->stalled.kind == COLD_CTX_FAULT ? task->address : 0;
		event->ip = task->ip;
		event->task_state = task->task_state;
		event->state = task->stall_state | (task->woken ? COLD_S_WOKEN : 0);
		event->waker = task->waker;
		event->pad = 0;
		SUBMIT(event);
	}
	task->began = 0;
}

PROGRAM(sched_switch, task_switch)
{
	bool preempted = ctx[0];
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u32 tid = next->pid;
	struct task_state *task = bpf_map_lookup_elem(&tasks, &tid);

	if (task && task->began)
		runs_again(task, tid);
	/* The current task's. At most what runs on the CPUs at the end of a recording is not told. */
	tell_adds();
	u32 state = knobs.prev_state ? (u32)ARG(3) : state_of_task(prev);
	if (preempted || !state || !waits(prev, state))
		return;
	/* The current task is still the one that leaves. */
	task = my_state();
	if (!task)
		return;
	/* First of all: it may be woken while the rest of this runs. */
	task->woken = 0;
	task->waker = 0;
	task->began = bpf_ktime_get_ns();
	task->stall_state = BPF_CORE_READ_BITFIELD(prev, in_iowait) ? COLD_S_IOWAIT : 0;
	task->task_state = state;
	notice_call(task);
	resolve_call(task);
	tell_stack(ctx, task, true);
	/* A fault's storage wait has its page. */
	if (task->context.kind != COLD_CTX_FAULT || !task->stall_state)
		tell_wait(ctx, task);
	task->stalled = task->context;
}

PROGRAM(sched_waking, task_waking)
{
	struct task_struct *sleeper = (void *)ctx[0];
	u32 tid = sleeper->pid;
	struct task_state *task = bpf_map_lookup_elem(&tasks, &tid);

	if (task && task->began && !task->woken) {
		task->woken = bpf_ktime_get_ns();
		task->waker = (u32)bpf_get_current_pid_tgid();
	}
}
