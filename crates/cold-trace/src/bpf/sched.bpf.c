// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The tree of processes, and when its tasks wait. */
#include "call.h"
#include "waits.h"

#define SIGNAL_GROUP_EXIT 4u

static __always_inline void task_event(struct cold_task *event, u16 kind, struct task_struct *task)
{
	event->pid = READ(task, tgid);
	event->tid = READ(task, pid);
	event->parent = READ(task, real_parent, tgid);
	event->pad = 0;
	bpf_core_read(event->comm, sizeof(event->comm), &task->comm);
	head_of(&event->head, kind, sizeof(*event));
}

/* Until it first runs, a new task waits for a CPU: off_cpu tells by this who made it. */
static __always_inline void is_born(struct task_struct *child, u32 pid)
{
	struct task_state *state = state_of(READ(child, pid), pid);

	if (!state)
		return;
	state->woken = state->began = bpf_ktime_get_ns();
	state->waker = (u32)bpf_get_current_pid_tgid();
	state->stalls = 0;
	state->stall_state = COLD_S_RUNNABLE;
	state->off_call = -1;
}

static __always_inline void is_member(u32 pid)
{
	u32 one = 1;
	u8 *slot = member_slot(pid);

	/* First: by the other alone nobody finds it. */
	if (slot)
		*slot = 1;
	if (bpf_map_update_elem(&tree, &pid, &one, BPF_ANY))
		lose(COLD_LOST_PROCESSES);
}

PROGRAM(sched_process_fork, process_fork)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	u32 from = READ(parent, tgid), pid = READ(child, tgid);
	u32 *member = bpf_map_lookup_elem(&tree, &from);
	struct cold_task *event;

	if (!member && !followed(from))
		return;
	/* The supervisor's threads are no children. */
	if (member && *member != 1 && pid == from)
		return;
	if (pid != from)
		is_member(pid);
	if (!knobs.all)
		is_born(child, pid);
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
	struct task_state *state;
	struct cold_task *event;

	if (!followed(READ(task, tgid)))
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
	state = knobs.areas ? task_of(event->tid) : NULL;
	if (state)
		state->renamed = event->head.at;
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
	last = READ(task, signal, live.counter) == 0;
	event = RESERVE(cold_exit, COLD_LOST_PROCESSES);
	if (event) {
		head_of(&event->head, COLD_EXIT, sizeof(*event));
		event->status = READ(task, exit_code);
		if (last && READ(task, signal, flags) & SIGNAL_GROUP_EXIT)
			event->status = READ(task, signal, group_exit_code);
		else if (last)
			event->status = READ(task, group_leader, exit_code);
		event->last = last;
		SUBMIT(event);
	}
	tell_adds();
	state = task_of(tid);
	if (state)
		not_noticed(state);
	forget_task(tid);
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

/*
 * Whether it is the current task's doing that this program runs, and no interrupt's. `preempt_count` would say it, but
 * on x86 that is a variable of the CPU, whose address not every kernel tells (KALLSYMS_ALL). Interrupts that come while
 * the kernel runs have a stack of their own there; those that come while the program runs have not, but then no call
 * is in progress. Where it cannot be known (before 5.17; soft interrupts that a call serves at its end, as for packets
 * to the own machine) nobody's doing is the answer.
 */
static __always_inline bool by_current_task(u64 *ctx)
{
#if defined(COLD_OLD)
	(void)ctx;
	return false;
#elif defined(__TARGET_ARCH_x86)
	struct task_struct *me = bpf_get_current_task_btf();
	struct add_run *run = add_run();

	if (!run)
		return false;
	/* Through memory: of a pointer that it knows as one the verifier allows no arithmetic. */
	*(volatile u64 *)&run->stack = (u64)ctx;
	if (*(volatile u64 *)&run->stack - (u64)me->stack >= THREAD_SIZE)
		return false;
	return me->flags & PF_KTHREAD || REGS_CALL((struct pt_regs *)bpf_task_pt_regs(me)) >= 0;
#else
	(void)ctx;
	return !(CURRENT(thread_info.preempt_count) & SERVING_INTERRUPT);
#endif
}

/* The call that the current task is in, looked at when it began or not. */
static __always_inline s32 current_call(struct task_state *task)
{
#ifdef COLD_OLD
	return task->call_at ? task->call : -1;
#else
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

	(void)task;
	return is_compat() ? -1 : REGS_CALL(regs);
#endif
}

static __always_inline void tell_off(struct task_state *task)
{
	struct cold_off *event = RESERVE(cold_off, COLD_LOST_STALLS);

	if (!event)
		return;
	head_of_task(&event->head, task, COLD_OFF, sizeof(*event));
	event->began = task->began;
	event->woken = task->woken;
	event->syscall = task->off_call;
	event->state = task->stall_state | (task->woken ? COLD_S_WOKEN : 0);
	event->waker = task->waker;
	event->pad = 0;
	SUBMIT(event);
}

static __always_inline void tell_stall(struct task_state *task)
{
	struct cold_stall *event = RESERVE(cold_stall, COLD_LOST_STALLS);

	if (event) {
		head_of_task(&event->head, task, COLD_STALL, sizeof(*event));
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
}

/* It is not the current one yet. */
static __always_inline void runs_again(struct task_state *task)
{
	if (task->stalls)
		tell_stall(task);
	else
		tell_off(task);
	task->began = 0;
}

PROGRAM(sched_switch, task_switch)
{
	bool preempted = ctx[0];
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u32 tid = next->pid;
	struct task_state *task = may_be_member(next->tgid) ? task_of(tid) : NULL;

	if (task && task->began)
		runs_again(task);
	/* The current task's. At most what runs on the CPUs at the end of a recording is not told. */
	tell_adds();
	u32 state = knobs.prev_state ? (u32)ARG(3) : state_of_task(prev);
	bool runnable = preempted || !state, stalls = !runnable && waits(prev, state);

	/* Of every process of the machine only what waits for storage or a lock. */
	if (!prev->pid || state & TASK_DEAD || (knobs.all && !stalls))
		return;
	/* The current task is still the one that leaves. */
	task = my_state();
	if (!task)
		return;
	/* First of all: it may be woken while the rest of this runs. */
	task->woken = 0;
	task->waker = 0;
	task->stalls = stalls;
	task->began = bpf_ktime_get_ns();
	if (!stalls) {
		task->stall_state = runnable ? COLD_S_RUNNABLE : 0;
		task->off_call = current_call(task);
		return;
	}
	task->stall_state = BPF_CORE_READ_BITFIELD(prev, in_iowait) ? COLD_S_IOWAIT : 0;
	task->task_state = state;
	notice_call(task);
	if (task->stall_state)
		context_waits(task);
	resolve_call(task);
	tell_stack(ctx, task, true);
	/* A fault's storage wait has its page. */
	if (task->context.kind != COLD_CTX_FAULT || !task->stall_state)
		tell_wait(ctx, task);
	task->stalled = task->context;
}

/* Who wrote what the recorder waits to read: a line of output may be what says that the start is ready. */
static __always_inline void heard(u64 *ctx)
{
	struct cold_heard *event;

	if (!followed(bpf_get_current_pid_tgid() >> 32) || !by_current_task(ctx))
		return;
	event = RESERVE(cold_heard, COLD_LOST_STALLS);
	if (!event)
		return;
	head_of(&event->head, COLD_HEARD, sizeof(*event));
	SUBMIT(event);
}

PROGRAM(sched_waking, task_waking)
{
	struct task_struct *sleeper = (void *)ctx[0];
	u32 tid = sleeper->pid, pid = sleeper->tgid;
	struct task_state *task = may_be_member(pid) ? task_of(tid) : NULL;

	if (pid == knobs.self)
		heard(ctx);

	if (task && task->began && !task->woken) {
		task->woken = bpf_ktime_get_ns();
		if (by_current_task(ctx))
			task->waker = (u32)bpf_get_current_pid_tgid();
	}
}
