/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* User stacks: one per fault or call, because the user's stack stands still within it. */
#ifndef COLD_STACKS_H
#define COLD_STACKS_H

#include "tasks.h"

#define COPY_CHUNK 1024

struct stack_scratch {
	struct cold_stack event;
	u64 frames[COLD_FRAMES];
};

struct copy_scratch {
	struct cold_stack_copy event;
	u8 bytes[COLD_STACK_BYTES + COPY_CHUNK];
};

static __always_inline void copy_registers(struct cold_stack_copy *event, struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	event->regs[0] = READ(regs, ax);
	event->regs[1] = READ(regs, dx);
	event->regs[2] = READ(regs, cx);
	event->regs[3] = READ(regs, bx);
	event->regs[4] = READ(regs, si);
	event->regs[5] = READ(regs, di);
	event->regs[6] = READ(regs, bp);
	event->regs[7] = READ(regs, sp);
	event->regs[8] = READ(regs, r8);
	event->regs[9] = READ(regs, r9);
	event->regs[10] = READ(regs, r10);
	event->regs[11] = READ(regs, r11);
	event->regs[12] = READ(regs, r12);
	event->regs[13] = READ(regs, r13);
	event->regs[14] = READ(regs, r14);
	event->regs[15] = READ(regs, r15);
	event->regs[16] = READ(regs, ip);
	event->regs_valid = 17;
#else
	bpf_core_read(event->regs, 31 * 8, &regs->regs);
	event->regs[31] = READ(regs, sp);
	event->regs[32] = READ(regs, pc);
	event->regs_valid = 33;
#endif
}

/* Until the first page that is not there. */
static __always_inline void copy_stack(struct task_state *task)
{
	u32 slot = SCRATCH_TASK, used = 0;
	struct copy_scratch *out = bpf_map_lookup_elem(&scratches, &slot);
	struct pt_regs *regs = (void *)task->regs;

	if (!out || !regs)
		return;
	__builtin_memset(&out->event, 0, sizeof(out->event));
	copy_registers(&out->event, regs);
	u64 sp = REGS_SP(regs);
	for (int i = 0; i < COLD_STACK_BYTES / COPY_CHUNK; i++) {
		if (used >= COLD_STACK_BYTES ||
		    bpf_probe_read_user(&out->bytes[used], COPY_CHUNK, (void *)(sp + used)))
			break;
		used += COPY_CHUNK;
	}
	if (used > COLD_STACK_BYTES)
		used = COLD_STACK_BYTES;
	out->event.stack_bytes = used;
	out->event.context = task->context.at;
	head_of_task(&out->event.head, task, COLD_STACK_COPY, sizeof(out->event) + used);
	output(out, sizeof(out->event) + used, sizeof(*out), COLD_LOST_STACKS);
}

/* Must be called in the task's own context. */
static __always_inline void tell_stack(void *ctx, struct task_state *task, bool stalled)
{
	u32 slot = SCRATCH_TASK;
	struct stack_scratch *out;

	if (!knobs.stacks || !task->context.at)
		return;
	if (task->stack_of != task->context.at) {
		task->stack_of = task->context.at;
		out = bpf_map_lookup_elem(&scratches, &slot);
		if (!out)
			return;
		long n = bpf_get_stack(ctx, out->frames, sizeof(out->frames), BPF_F_USER_STACK);
		if (n < 8 || n > (long)sizeof(out->frames))
			n = 0;
		u32 bytes = n & ~7u;
		out->event.context = task->context.at;
		out->event.frames = bytes / 8;
		out->event.full = bytes == sizeof(out->frames);
		head_of_task(&out->event.head, task, COLD_STACK, sizeof(out->event) + bytes);
		output(out, sizeof(out->event) + bytes, sizeof(*out), COLD_LOST_STACKS);
	}
	if (knobs.stacks == 2 && stalled && task->copied_of != task->context.at) {
		task->copied_of = task->context.at;
		copy_stack(task);
	}
}

#endif
