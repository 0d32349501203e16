/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where the kernel waits: its own stack, of waits that it may explain. */
#ifndef COLD_WAITS_H
#define COLD_WAITS_H

#include "stacks.h"

/*
 * The functions that tell what a wait is for, as bits: each stands for 16 bytes of code, at every multiple
 * of 32 MiB. Set by the recorder (recorder.rs, same layout).
 */
#define TELLING_WORDS 32768u
struct telling {
	u64 from; /* first address of the first one */
	u64 to;   /* behind the last one; 0: not set */
	u64 bits[TELLING_WORDS];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct telling);
} telling SEC(".maps");

#define LOOKED_AT 512u /* words of a stack: some 150, and up to 128 more where the kernel begins it anywhere */

#if defined(__TARGET_ARCH_x86) && !defined(COLD_OLD)
struct look {
	struct telling *known;
	u64 *words;
	u32 n;
	u32 found;
};

/* Whether the word may be an address in one of the functions, or there is none any more. */
static long look_at(u32 turn, void *ctx)
{
	struct look *look = ctx;

	if (turn >= look->n || turn >= LOOKED_AT)
		return 1;
	u64 word = look->words[turn];

	if (word < look->known->from || word >= look->known->to)
		return 0;
	look->found = look->known->bits[(word >> 10) & (TELLING_WORDS - 1)] >> ((word >> 4) & 63) & 1;
	return look->found;
}
#endif

/*
 * Whether one of these functions may be on the stack of the task that leaves the CPU. To unwind it takes
 * 13 µs; to see that no word on it can be an address in one of them, less than one. Of 530 waits in a cold
 * start of Firefox 280 are ruled out so. Not elsewhere than on x86, which may sign addresses on the stack.
 */
static __always_inline bool may_tell(void *ctx)
{
#if defined(__TARGET_ARCH_x86) && !defined(COLD_OLD)
	u32 slot = 0, scratch = SCRATCH_TASK;
	struct telling *known = bpf_map_lookup_elem(&telling, &slot);
	u64 *words = bpf_map_lookup_elem(&scratches, &scratch);
	u64 sp = number_of(ctx), bytes = number_of(bpf_get_current_task_btf()->stack) + THREAD_SIZE - sp;

	if (!known || !known->to || !words || bytes > LOOKED_AT * 8)
		return true;
	if (bpf_probe_read_kernel(words, bytes, (void *)sp))
		return true;
	struct look look = {.known = known, .words = words, .n = bytes / 8};
	bpf_loop(LOOKED_AT, look_at, &look, 0);
	return look.found;
#else
	(void)ctx;
	return true;
#endif
}

/* Tells a journal from a lock where no page does. */
static __always_inline void tell_wait(void *ctx, struct task_state *task)
{
	u32 slot = SCRATCH_TASK;
	struct stack_scratch *out = bpf_map_lookup_elem(&scratches, &slot);
	long n;

	if (!out || !may_tell(ctx))
		return;
	n = bpf_get_stack(ctx, out->frames, COLD_WAIT_FRAMES * 8, 0);
	if (n < 8 || n > COLD_WAIT_FRAMES * 8)
		return;
	u32 bytes = n & ~7u;
	out->event.context = task->began;
	out->event.frames = bytes / 8;
	out->event.full = bytes == COLD_WAIT_FRAMES * 8;
	head_of_task(&out->event.head, task, COLD_WAIT, sizeof(out->event) + bytes);
	output(out, sizeof(out->event) + bytes, sizeof(*out), COLD_LOST_STACKS);
}

#endif
