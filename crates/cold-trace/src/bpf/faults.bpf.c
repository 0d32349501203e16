// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Page faults: where a context begins; in tier B also the touches themselves, by address. */
#include "call.h"

static __always_inline bool may_not_fault(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	/* A helper that reads it counts one itself. */
	return BPF_CORE_READ(task, pagefault_disabled) > 1;
}

static __always_inline void page_fault(u64 address, struct pt_regs *regs, u32 error, bool kernel)
{
	struct task_state *task = my_state();
	struct cold_page_fault *event;

	/*
	 * The kernel's own addresses are no touches, nor are accesses that may fail instead of waiting:
	 * those of these very programs (paths, stacks) among them.
	 */
	if (!task || (kernel && ((s64)address < 0 || may_not_fault())))
		return;
	if (kernel)
		notice_call(task);
	context_fault(task, address, kernel);
	if (!kernel) {
		task->ip = REGS_IP_OF(regs);
		task->call_at = 0; /* whose exit was not worth a look */
		task->regs = (u64)regs;
	}
	if (!knobs.tier_b)
		return;
	event = RESERVE(cold_page_fault, COLD_LOST_TOUCHES);
	if (!event)
		return;
	head_of_task(&event->head, task, COLD_PAGE_FAULT, sizeof(*event));
	event->head.at = task->context.at;
	event->address = address;
	event->ip = task->ip;
	event->error = error;
	event->state = task->fault_state;
	SUBMIT(event);
}

PROGRAM(page_fault_user, fault_user)
{
	page_fault(ctx[0], (void *)ctx[1], ctx[2], false);
}

PROGRAM(page_fault_kernel, fault_kernel)
{
	page_fault(ctx[0], (void *)ctx[1], ctx[2], true);
}
