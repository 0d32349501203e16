/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the programs themselves cost. The kernel can count that (BPF_ENABLE_STATS), but reads the clock
 * twice for every run of every program on the machine. Here every run is counted and only some are timed:
 * a program's first ones on a CPU, which find the caches cold, and then one in COST_EVERY.
 */
#ifndef COLD_COSTS_H
#define COLD_COSTS_H

#include "kernel.h"

#define COST_FIRST 16u
#define COST_EVERY 64u

/* Names and order as in support.rs. */
enum cold_program {
	COST_filemap_fault,
	COST_filemap_map_pages,
	COST_filemap_get_pages,
	COST_filemap_add,
	COST_filemap_delete,
	COST_ra_unbounded,
	COST_ra_order,
	COST_ra_sync,
	COST_ra_async,
	COST_fault_user,
	COST_fault_kernel,
	COST_io_start,
	COST_bio_queue,
	COST_rq_insert,
	COST_rq_issue,
	COST_rq_complete,
	COST_process_fork,
	COST_process_exec,
	COST_process_exit,
	COST_process_rename,
	COST_task_switch,
	COST_task_waking,
	COST_call_enter,
	COST_call_exit,
	COSTS,
};

/* Same layout as in recorder.rs. */
struct cold_cost {
	u64 runs;
	u64 time; /* ns; a timed run stands for those that were not */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COSTS);
	__type(key, u32);
	__type(value, struct cold_cost);
} costs SEC(".maps");

/*
 * Counts a run; if it is to be timed, when it began, else 0. Looking at the clock takes as long as half a
 * program, and one look falls into the time: as much as between two looks is added to the beginning.
 */
static __always_inline u64 cost_begins(u32 program)
{
	struct cold_cost *cost = bpf_map_lookup_elem(&costs, &program);

	if (!cost)
		return 0;
	cost->runs += 1;
	if (cost->runs > COST_FIRST && cost->runs % COST_EVERY)
		return 0;
	u64 first = bpf_ktime_get_ns(), second = bpf_ktime_get_ns();
	return second + (second - first);
}

static __always_inline void cost_ends(u32 program, u64 began)
{
	struct cold_cost *cost;

	if (!began)
		return;
	s64 took = bpf_ktime_get_ns() - began;
	cost = bpf_map_lookup_elem(&costs, &program);
	if (cost && took > 0)
		cost->time += took * (cost->runs <= COST_FIRST ? 1 : COST_EVERY);
}

/* Head of a program: its body follows. */
#define PROGRAM(tracepoint, name)                                                                     \
	static __always_inline void name##_body(u64 *ctx);                                            \
	SEC("tp_btf/" #tracepoint)                                                                    \
	int name(u64 *ctx)                                                                            \
	{                                                                                             \
		u64 began = cost_begins(COST_##name);                                                 \
                                                                                                      \
		name##_body(ctx);                                                                     \
		cost_ends(COST_##name, began);                                                        \
		return 0;                                                                             \
	}                                                                                             \
	static __always_inline void name##_body(u64 *ctx)

#endif
