/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a task of the tree is doing: which fault, which call, on which file. */
#ifndef COLD_CONTEXT_H
#define COLD_CONTEXT_H

#include "names.h"
#include "tasks.h"

static __always_inline void context_call(struct task_state *task)
{
	tell_adds();
	task->context.at = task->call_at;
	task->context.file = task->call_file;
	task->context.index = task->position >= 0 ? (u64)task->position >> knobs.page_shift : COLD_NO_PAGE;
	task->context.syscall = task->call;
	task->context.kind = COLD_CTX_CALL;
}

static __always_inline void context_none(struct task_state *task)
{
	tell_adds();
	__builtin_memset(&task->context, 0, sizeof(task->context));
	task->context.syscall = -1;
	not_noticed(task);
	task->call_at = 0;
	task->call = -1;
	task->class = CALL_OTHER;
}

/* A page fault begins; within a call it was the kernel that touched user memory. */
static __always_inline void context_fault(struct task_state *task, u64 address, bool kernel)
{
	tell_adds();
	__builtin_memset(&task->context, 0, sizeof(task->context));
	task->context.at = bpf_ktime_get_ns();
	task->context.syscall = kernel ? task->call : -1;
	task->context.kind = COLD_CTX_FAULT;
	task->address = address;
	task->fault_state = kernel ? COLD_P_KERNEL : 0;
}

/*
 * A page of `id` is added or read ahead. Nothing says when a fault ends: one that the kernel took on a
 * buffer within a call, and which is on no page of this file, is over, and the call goes on. (Where the
 * page cache tells nothing of faults, their files are unknown, and this too.)
 */
static __always_inline void context_adds(struct task_state *task, struct cold_id id)
{
	if (knobs.tier_b || task->context.kind != COLD_CTX_FAULT || !task->call_at ||
	    !(task->fault_state & COLD_P_KERNEL))
		return;
	if (task->context.file.ino != id.ino || task->context.file.dev != id.dev)
		context_call(task);
}

/*
 * The task waits for storage. Where the page cache tells of faults, one of the kernel that is on no file's page (the
 * buffer of a read, on its first use) is over: what is waited for is the call's. (Memory that was swapped out is waited
 * for in such a fault; it counts as the call's, too.)
 */
static __always_inline void context_waits(struct task_state *task)
{
	if (knobs.tier_b || task->context.kind != COLD_CTX_FAULT || !task->call_at ||
	    !(task->fault_state & COLD_P_KERNEL) || task->context.file.ino)
		return;
	context_call(task);
}

/* Where a read begins: sendfile, splice and copy_file_range may be given the place of an offset. -1: not known. */
static __always_inline s64 position_of(struct task_state *task, struct file *file)
{
	u64 place = 0;
	s64 position = -1;

	if (task->class == CALL_SENDFILE)
		place = task->args[2];
	else if (task->class == CALL_COPY)
		place = task->args[1];
	if (!place)
		return READ(file, f_pos);
	if (bpf_probe_read_user(&position, sizeof(position), (void *)place))
		return -1;
	return position;
}

/* The file and position of a call of the read family, looked for when they are first needed. */
SHARED int find_call_file(struct task_state *task)
{
	struct file *file;
	u32 class, fd;

	if (!task)
		return 0;
	class = task->class;
	fd = task->args[class == CALL_SENDFILE ? 1 : 0];
	task->resolved = 1;
	file = file_of_fd(fd);
	if (!file)
		return 0;
	task->call_file = tell_open(file);
	if (class == CALL_PREAD)
		task->position = task->args[3];
	else if (class != CALL_FD)
		task->position = position_of(task, file);
	task->first_position = task->position;
	if (task->context.kind == COLD_CTX_CALL)
		context_call(task);
	return 1;
}

static __always_inline void resolve_call(struct task_state *task)
{
	if (!task->resolved && task->class >= CALL_LIST && task->class <= CALL_FD)
		find_call_file(task);
}

#endif
