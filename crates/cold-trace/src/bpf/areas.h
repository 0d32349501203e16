/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is mapped where. Perf events tell it, too, but look for the path of each of the 3,600 mappings and changes of a
 * start of Firefox: a loop of mmap and munmap takes 1.4 µs longer for each with them, 0.8 µs with this. They are the only
 * ones before Linux 6.7, where no program can walk an exec's new image (`knobs.areas`).
 */
#ifndef COLD_AREAS_H
#define COLD_AREAS_H

#include "call.h"

/* Of 32-bit programs; i386 and 32-bit ARM number these alike. */
#define COMPAT_MPROTECT 125u
#define COMPAT_MMAP2 192u
#define COMPAT_UNIT_SHIFT 12 /* mmap2's offset counts 4096 bytes, whatever a page is */

#define PROT_BITS 7u /* PROT_READ, PROT_WRITE, PROT_EXEC; those of vm_flags are the same */
#define MAP_SHARED_BIT 1u /* of mmap's flags; also MAP_SHARED_VALIDATE has it */
#define MAX_ERRNO 4095

/* CALL_MMAP or CALL_PROTECT where this call is one, else CALL_OTHER. */
static __always_inline u32 area_class(u32 number, bool compat)
{
	u32 class = CALL_OTHER;

	if (!knobs.areas)
		return CALL_OTHER;
	if (!compat)
		class = class_of(number);
	else if (number == COMPAT_MMAP2)
		class = CALL_MMAP;
	else if (number == COMPAT_MPROTECT)
		class = CALL_PROTECT;
	return class == CALL_MMAP || class == CALL_PROTECT ? class : CALL_OTHER;
}

/* The arguments of the call that returns: registers still hold them. */
static __always_inline void area_args(struct task_state *task, struct pt_regs *regs, bool compat)
{
	read_args(task->args, regs);
	if (!compat)
		return;
#if defined(__TARGET_ARCH_x86)
	task->args[0] = regs->bx;
	task->args[1] = regs->cx;
	task->args[2] = regs->dx;
	task->args[3] = regs->si;
	task->args[4] = regs->di;
	task->args[5] = regs->bp;
#endif
	task->args[5] = (u64)(u32)task->args[5] << COMPAT_UNIT_SHIFT;
}

static __always_inline struct cold_area *new_area(struct task_state *task, struct cold_id file)
{
	struct cold_area *event = RESERVE(cold_area, COLD_LOST_MAPPINGS);

	if (event) {
		head_of_task(&event->head, task, COLD_AREA, sizeof(*event));
		event->file = file;
	}
	return event;
}

/* A call of `class` returns `result`; its arguments are in `task->args`. */
SHARED int tell_area(struct task_state *task, u32 class, s64 result)
{
	struct cold_area *event;
	struct cold_id file = {};
	bool maps = class == CALL_MMAP;

	if (!task || (maps ? result < 0 && result >= -MAX_ERRNO : result != 0))
		return 0;
	if (maps && !(task->args[3] & MAP_ANONYMOUS)) {
		file = tell_open(file_of_fd(task->args[4]));
		/* Another thread has closed the descriptor meanwhile. */
		if (is_none(&file)) {
			lose(COLD_LOST_MAPPINGS);
			return 0;
		}
	}
	event = new_area(task, file);
	if (!event)
		return 0;
	/* With MAP_POPULATE pages were touched before the call returned; such a call is seen to begin. */
	if (task->call_at)
		event->head.at = task->call_at;
	event->address = maps ? (u64)result : task->args[0];
	event->bytes = task->args[1];
	event->offset = maps && !is_none(&file) ? task->args[5] : 0;
	event->prot = task->args[2] & PROT_BITS;
	if (maps && task->args[3] & MAP_SHARED_BIT)
		event->prot |= COLD_A_SHARED;
	event->state = maps ? 0 : COLD_A_PROTECTED;
	SUBMIT(event);
	return 0;
}

#ifdef COLD_OLD
static __always_inline void tell_image(struct task_state *task)
{
	(void)task;
}
#else
struct bpf_iter_task_vma {
	u64 opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task, u64 address) __ksym __weak;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym __weak;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym __weak;

/* What the kernel mapped of files for the image that was just executed. */
static __always_inline void tell_image(struct task_state *task)
{
	u32 state = COLD_A_IMAGE;
	struct bpf_iter_task_vma areas;
	struct vm_area_struct *vma;

	if (!knobs.areas || !bpf_ksym_exists(bpf_iter_task_vma_new))
		return;
	if (bpf_iter_task_vma_new(&areas, bpf_get_current_task_btf(), 0))
		lose(COLD_LOST_MAPPINGS);
	while ((vma = bpf_iter_task_vma_next(&areas))) {
		struct file *file = READ(vma, vm_file);
		struct cold_area *event;

		if (!file)
			continue;
		event = new_area(task, tell_open(file));
		if (!event)
			continue;
		if (task->renamed)
			event->head.at = task->renamed;
		event->address = READ(vma, vm_start);
		event->bytes = READ(vma, vm_end) - event->address;
		event->offset = READ(vma, vm_pgoff) << knobs.page_shift;
		event->prot = READ(vma, vm_flags) & (PROT_BITS | COLD_A_SHARED);
		event->state = state;
		state = 0;
		SUBMIT(event);
	}
	bpf_iter_task_vma_destroy(&areas);
}
#endif

#endif
