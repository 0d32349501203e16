/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When a system call is looked at. Of 69,400 calls of a cold start of Firefox 13,500 leave something to tell.
 * These are looked at when they begin and when they end. The others are passed over, and only if something
 * happens in one (a wait, a page that comes, a fault of the kernel's) it is noticed then: its number, its
 * arguments and its file's position are still those that it began with.
 */
#ifndef COLD_CALL_H
#define COLD_CALL_H

#include "context.h"

#define MAP_POPULATE 0x8000u
#define MAP_ANONYMOUS 0x20u
/* NORMAL to DONTNEED (0 to 4), HUGEPAGE, NOHUGEPAGE (14, 15), COLD to POPULATE_WRITE (20 to 23). */
#define MADVICE_TOLD 0x00f0c01fu
#define TS_COMPAT 2u
#define TIF_32BIT_ARM64 22
/* Threads of io_uring: their registers are those of the call that made them. */
#define PF_IO_WORKER 0x10u
#define PF_USER_WORKER 0x4000u /* 6.4 */

static __always_inline bool is_compat(void)
{
#if defined(__TARGET_ARCH_x86)
	return CURRENT(thread_info.status) & TS_COMPAT;
#else
	return CURRENT(thread_info.flags) >> TIF_32BIT_ARM64 & 1;
#endif
}

static __always_inline void read_args(u64 *args, struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	args[0] = regs->di;
	args[1] = regs->si;
	args[2] = regs->dx;
	args[3] = regs->r10;
	args[4] = regs->r8;
	args[5] = regs->r9;
#else
	bpf_core_read(args, 48, &regs->regs);
	args[0] = regs->orig_x0;
#endif
}

static __always_inline u32 class_of(u64 number)
{
	if (number >= CALL_NUMBERS)
		return CALL_OTHER;
	/* 6.1's verifier loses the bound when the number is spilled: again, where the compiler cannot see it. */
	barrier_var(number);
	return knobs.calls[number & (CALL_NUMBERS - 1)];
}

/* What this call is to us, by its number and its arguments. */
static __always_inline u32 class_in(struct pt_regs *regs, u64 number)
{
	u32 class = class_of(number);
	u64 args[6];

	if (class == CALL_PROTECT)
		return CALL_OTHER;
	if (class != CALL_MMAP && class != CALL_ADVICE)
		return class;
	read_args(args, regs);
	/* Other mappings read nothing yet. */
	if (class == CALL_MMAP && (!(args[3] & MAP_POPULATE) || args[3] & MAP_ANONYMOUS))
		return CALL_OTHER;
	/* madvise: what may be about a file's pages. Whether it is, mappings tell later: a cold Firefox says 70 of these. */
	if (class == CALL_ADVICE && !(args[2] < 32 && MADVICE_TOLD >> args[2] & 1))
		return CALL_OTHER;
	return class;
}

/*
 * Whether what a call of this class returns tells how much it read. Where page cache events tell of reads, that of
 * sendfile, splice and copy_file_range is still needed: a pipe with room for 16 pages takes 16 parts of pages, the
 * event tells of the 17 that were looked up.
 */
static __always_inline bool returns_bytes(u32 class)
{
	return class <= CALL_COPY && class >= (knobs.tier_b ? CALL_READ : CALL_SENDFILE);
}

/* Whether a call of this class leaves something to tell when it ends. */
static __always_inline bool is_recorded(u32 class)
{
	if (class >= CALL_READ && class <= CALL_COPY)
		return returns_bytes(class);
	return class != CALL_OTHER && class != CALL_FD;
}

/*
 * Calls that are not told are passed over. Not where each is counted; not where faults are not told, because
 * then only a call's end ends the context of a fault within; and not by kernels that do not give registers to
 * programs (before 5.15).
 */
static __always_inline bool passes_over(void)
{
#ifdef COLD_OLD
	return false;
#else
	return knobs.page_faults && !knobs.count_calls;
#endif
}

static __always_inline void call_begins(struct task_state *task, struct pt_regs *regs, u64 number)
{
	context_none(task);
	task->resolved = 0;
	task->position = task->first_position = -1;
	__builtin_memset(&task->call_file, 0, sizeof(task->call_file));
	task->call_at = bpf_ktime_get_ns();
	task->regs = (u64)regs;
	task->ip = REGS_IP_OF(regs);
	if (is_compat()) {
		context_call(task);
		return;
	}
	task->call = number;
	context_call(task);
	task->class = class_in(regs, number);
	if (task->class == CALL_OTHER)
		return;
	read_args(task->args, regs);
	/* The position moves while it reads. */
	if (knobs.tier_b ? task->class != CALL_FD : returns_bytes(task->class))
		resolve_call(task);
}

#ifndef COLD_OLD
/* The call that the current task is in was passed over when it began. */
SHARED int begin_late(struct task_state *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

	if (!task)
		return 0;
	call_begins(task, regs, (u32)REGS_CALL(regs));
	task->noticed = 1;
	__sync_fetch_and_add(&calls_noticed, 1);
	return 1;
}
#endif

/* Something happens in the current task: in a call that was passed over when it began, perhaps. */
static __always_inline void notice_call(struct task_state *task)
{
#ifdef COLD_OLD
	(void)task;
#else
	struct task_struct *me;
	s32 number;

	if (!passes_over())
		return;
	me = bpf_get_current_task_btf();
	/* Negative in faults of user space: they are told when they begin. */
	number = REGS_CALL((struct pt_regs *)bpf_task_pt_regs(me));
	if (number < 0 || me->flags & (PF_IO_WORKER | PF_USER_WORKER))
		return;
	/* A call of -1: a 32-bit one, which is always looked at. */
	if (task->call_at && (task->call == number || task->call < 0))
		return;
	begin_late(task);
#endif
}

/* As my_state(), and its context is what the task does now. */
static __always_inline struct task_state *my_context(void)
{
	struct task_state *task = my_state();

	if (task)
		notice_call(task);
	return task;
}

#endif
