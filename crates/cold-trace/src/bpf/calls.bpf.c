// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* System calls of the tree: lookups with their paths, advice, and what reads are about. */
#include "areas.h"
#include "call.h"
#include "names.h"
#include "stacks.h"

#define AT_FDCWD (-100)
#define ENOENT 2
#define O_CREAT_WRONLY_TRUNC 01101u
#define AF_UNIX 1
#define SUN_PATH 2 /* offset of sockaddr_un.sun_path */
#define STACKS_OF_FIRST 256 /* lookups of a thread whose stacks are told */
#define STACKS_OF_EVERY 64 /* and one in so many of the others */

struct call_scratch {
	struct cold_call event;
	char path[COLD_NAME_BYTES];
};

struct exec_scratch {
	struct cold_exec event;
	u8 arguments[COLD_ARGS_BYTES];
};

struct open_how {
	u64 flags;
};

PROGRAM(sys_enter, call_enter)
{
	struct pt_regs *regs = (void *)ctx[0];
	u64 number = ctx[1];
	bool compat = is_compat();
	struct task_state *task;

	if (passes_over() && !compat && !is_recorded(class_in(regs, number)))
		return;
	task = my_state();
	if (!task)
		return;
	if (compat)
		lose(COLD_LOST_COMPAT);
	call_begins(task, regs, number);
}

static __always_inline struct cold_id directory_of(s32 fd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct cold_id id = {};

	if (fd == AT_FDCWD) {
		struct fs_struct *fs = READ(task, fs);

		if (!fs)
			return id;
		struct inode *inode = READ(fs, pwd.dentry, d_inode);
		tell_file(number_of(inode), number_of(fs) + bpf_core_field_offset(struct fs_struct, pwd), SCRATCH_TASK);
		return id_of(inode);
	}
	return tell_open(file_of_fd(fd));
}

/*
 * What the call is, read anew: else the verifier goes on with a number for each case of a switch, and looks at all that
 * follows for each of them.
 */
static __always_inline u32 class_anew(struct task_state *task)
{
	return *(volatile u32 *)&task->class;
}

static __always_inline u32 open_flags(struct task_state *task)
{
	u64 how = 0;

	switch (class_anew(task)) {
	case CALL_OPEN:
		return task->args[1];
	case CALL_OPENAT:
		return task->args[2];
	case CALL_CREAT:
		return O_CREAT_WRONLY_TRUNC;
	case CALL_OPENAT2:
		bpf_probe_read_user(&how, sizeof(how), (void *)task->args[2]);
		return how;
	}
	return 0;
}

/* The path of a socket's address; 0: it has none, being of a network or abstract. */
static __always_inline u64 socket_path(u64 address)
{
	u16 family = 0;
	char first = 0;

	bpf_probe_read_user(&family, sizeof(family), (void *)address);
	if (family != AF_UNIX)
		return 0;
	bpf_probe_read_user(&first, sizeof(first), (void *)(address + SUN_PATH));
	return first ? address + SUN_PATH : 0;
}

/* Where the program's path is; `second`: the new path of two. 0: the call has none. */
static __always_inline u64 path_address(struct task_state *task, bool second)
{
	switch (class_anew(task)) {
	case CALL_OPEN:
	case CALL_CREAT:
	case CALL_PATH:
	case CALL_EXEC:
		return task->args[0];
	case CALL_OPENAT:
	case CALL_OPENAT2:
	case CALL_PATH_AT:
	case CALL_PATH_2ND:
	case CALL_EXEC_AT:
		return task->args[1];
	case CALL_SYMLINK_AT:
		return task->args[2];
	case CALL_PATHS:
		return second ? task->args[1] : task->args[0];
	case CALL_PATHS_AT:
		return second ? task->args[3] : task->args[1];
	case CALL_SOCKET:
		return socket_path(task->args[1]);
	}
	return 0;
}

/* The descriptor that a relative path starts from. */
static __always_inline s32 path_directory(struct task_state *task, bool second)
{
	switch (class_anew(task)) {
	case CALL_OPENAT:
	case CALL_OPENAT2:
	case CALL_PATH_AT:
	case CALL_EXEC_AT:
		return task->args[0];
	case CALL_SYMLINK_AT:
		return task->args[1];
	case CALL_PATHS_AT:
		return second ? task->args[2] : task->args[0];
	}
	return AT_FDCWD;
}

/* What stat and its like were asked about by descriptor alone is no path that was looked up. */
static __always_inline bool by_descriptor(struct task_state *task, u64 address, u32 used, s64 result)
{
	return class_anew(task) == CALL_PATH_AT && result != -ENOENT && (!address || used == 1);
}

/*
 * Writes the call that ends now. `name`: its path in kernel memory where the program's is gone; `opened`: the file that
 * it found, where its result does not say it. 0: none.
 */
SHARED int tell_call(struct task_state *task, s64 result, u64 name, u64 opened, u32 second)
{
	struct file *found = (void *)opened;
	u32 slot = SCRATCH_CALL, used = 0, class;
	struct call_scratch *out;
	struct cold_call *event;
	u64 address;
	long n = 0;

	if (!task)
		return 0;
	address = path_address(task, second);
	out = bpf_map_lookup_elem(&scratches, &slot);
	if (!out || (class_anew(task) == CALL_SOCKET && !address))
		return 0;
	event = &out->event;
	__builtin_memset(event, 0, sizeof(*event));
	event->began = task->call_at;
	event->result = result;
	__builtin_memcpy(event->args, task->args, sizeof(event->args));
	event->syscall = task->call;
	event->position = task->first_position;
	event->open_flags = open_flags(task);
	if (name)
		n = bpf_probe_read_kernel_str(out->path, sizeof(out->path), (void *)name);
	else if (address)
		n = bpf_probe_read_user_str(out->path, sizeof(out->path), (void *)address);
	if (n > 0)
		used = n;
	/* A socket's path need not end within its address. */
	if (class_anew(task) == CALL_SOCKET && used > (u32)task->args[2] - SUN_PATH + 1) {
		used = (u32)task->args[2] - SUN_PATH + 1;
		out->path[(used - 1) & (COLD_NAME_BYTES - 1)] = 0;
	}
	if (used > COLD_NAME_BYTES)
		used = COLD_NAME_BYTES;
	if (by_descriptor(task, address, used, result))
		return 0;
	event->path_bytes = used;
	event->path_cut = used == COLD_NAME_BYTES;
	if (used && out->path[0] == '/')
		tell_other_root(&event->base);
	else if (used)
		event->base = directory_of(path_directory(task, second));
	class = class_anew(task);
	if (class >= CALL_OPEN && class <= CALL_CREAT && result >= 0)
		found = file_of_fd(result);
	else if (class == CALL_LIST || class == CALL_ADVICE_FD)
		found = file_of_fd(task->args[0]);
	else if (class == CALL_MMAP)
		found = file_of_fd(task->args[4]);
	event->file = found ? tell_open(found) : task->call_file;
	u32 bytes = (sizeof(*event) + used + 7) & ~7u;
	head_of_task(&event->head, task, COLD_CALL, bytes);
	return output(out, bytes, sizeof(*out), COLD_LOST_CALLS);
}

static const struct call_count no_calls;

/* A call that returns. */
static __always_inline void count_call(struct task_state *task, s64 result)
{
	struct call_key key = {.pid = task->pid, .number = task->call};
	u32 class = task->class;
	struct call_count *count;

	if (task->call < 0)
		return; /* a 32-bit one */
	count = bpf_map_lookup_elem(&call_counts, &key);
	if (!count) {
		bpf_map_update_elem(&call_counts, &key, &no_calls, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&call_counts, &key);
	}
	if (!count) {
		lose(COLD_LOST_CALLS);
		return;
	}
	__sync_fetch_and_add(&count->calls, 1);
	__sync_fetch_and_add(&count->time, bpf_ktime_get_ns() - task->call_at);
	if (class >= CALL_LIST && class <= CALL_FD && result > 0)
		__sync_fetch_and_add(&count->bytes, result);
}

/*
 * A lookup's stack is copied. Of many lookups of one thread not every one's: those that look for the same
 * thing have the same caller.
 */
static __always_inline void tell_lookup_stack(void *ctx, struct task_state *task)
{
	u32 n = task->looked_up++;

	if (n >= STACKS_OF_FIRST && n % STACKS_OF_EVERY)
		return;
	/* A fault on the path's memory may have been within. */
	context_call(task);
	tell_stack(ctx, task, true);
}

PROGRAM(sys_exit, call_exit)
{
	struct pt_regs *regs = (void *)ctx[0];
	u32 number = REGS_CALL(regs);
	bool compat = is_compat();
	bool passed = passes_over() && !compat && !is_recorded(class_in(regs, number));
	u32 area = area_class(number, compat);
	struct task_state *task;

	if (passed && area == CALL_OTHER && !calls_noticed)
		return;
	task = my_state();
	if (!task)
		return;
	if (area != CALL_OTHER) {
		area_args(task, regs, compat);
		tell_area(task, area, ctx[1]);
	}
	if (passed && !task->noticed)
		return;
	if (task->call_at && knobs.count_calls)
		count_call(task, ctx[1]);
	if (task->call_at && is_recorded(task->class)) {
		tell_call(task, ctx[1], 0, 0, false);
		/* Of one that failed nobody knows on which. */
		if ((s64)ctx[1] >= 0 && (task->class == CALL_PATHS || task->class == CALL_PATHS_AT))
			tell_call(task, ctx[1], 0, 0, true);
		if (knobs.count_calls && task->class >= CALL_OPEN && task->class <= CALL_LIST)
			tell_lookup_stack(ctx, task);
	}
	context_none(task);
}

/* The exec's own call is told here: its path is the old image's, which is gone. */
PROGRAM(sched_process_exec, process_exec)
{
	struct linux_binprm *binprm = (void *)ctx[2];
	struct task_struct *me = (void *)ctx[0];
	u32 old_tid = ctx[1], slot = SCRATCH_EXEC;
	struct task_state *task, *old;
	struct exec_scratch *out;

	task = my_state();
	if (!task)
		return;
	tell_image(task);
	struct file *file = READ(binprm, file);
	out = bpf_map_lookup_elem(&scratches, &slot);
	if (out) {
		struct cold_exec *event = &out->event;
		u64 from = READ(me, mm, arg_start), to = READ(me, mm, arg_end);
		u32 used = 0;

		__builtin_memset(event, 0, sizeof(*event));
		event->file = tell_open(file);
		event->old_tid = old_tid;
		event->arg_total = to > from ? to - from : 0;
		used = event->arg_total;
		barrier_var(used);
		if (used > COLD_ARGS_BYTES)
			used = COLD_ARGS_BYTES;
		if (bpf_probe_read_user(out->arguments, used, (void *)from))
			used = 0;
		event->arg_bytes = used;
		bpf_core_read(event->comm, sizeof(event->comm), &me->comm);
		u32 bytes = (sizeof(*event) + used + 7) & ~7u;
		head_of(&event->head, COLD_EXEC, bytes);
		output(out, bytes, sizeof(*out), COLD_LOST_PROCESSES);
	}
	/* A thread that execs becomes the first one: its call goes with it. */
	if (old_tid != (u32)bpf_get_current_pid_tgid()) {
		old = task_of(old_tid);
		if (old)
			__builtin_memcpy(&task->pid, &old->pid, sizeof(*task) - __builtin_offsetof(struct task_state, pid));
		forget_task(old_tid);
	}
	if (task->call_at && (task->class == CALL_EXEC || task->class == CALL_EXEC_AT))
		tell_call(task, 0, number_of(READ(binprm, filename)), number_of(file), false);
	/* The rest of the exec is still the same call to whoever waits in it. */
	task->class = CALL_OTHER;
}
