/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When the kernel gave each read to one disk, and when it had the answer: CLOCK_MONOTONIC in nanoseconds, by the
 * read's first sector. The kernel's types are given as far as they are used; offsets are corrected when this is
 * loaded (CO-RE).
 */
#include <cold/bpf.h>

#define REQ_OP_MASK 0xffu
#define REQ_OP_READ 0u

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct gendisk {
	int major;
	int first_minor;
};
struct request_queue {
	struct gendisk *disk;
};
struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	__u64 __sector;
};
#pragma clang attribute pop

/* The disk; filled in before this is loaded. */
const volatile struct {
	__u32 major, minor;
} device;

/* The server takes out what it has read; where it does not (a read that failed), the oldest makes room. */
struct times {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, __u64);
};
struct times issued SEC(".maps");
struct times completed SEC(".maps");

static __always_inline int note(void *times, struct request *rq)
{
	struct gendisk *disk = rq->q->disk;

	if ((rq->cmd_flags & REQ_OP_MASK) != REQ_OP_READ || !disk)
		return 0;
	if ((__u32)disk->major != device.major || (__u32)disk->first_minor != device.minor)
		return 0;
	__u64 sector = rq->__sector, now = bpf_ktime_get_ns();
	bpf_map_update_elem(times, &sector, &now, BPF_ANY);
	return 0;
}

/* The request is the only argument since Linux 5.11. */
SEC("tp_btf/block_rq_issue")
int issue(__u64 *ctx)
{
	return note(&issued, (struct request *)ctx[0]);
}

/* Told before the pages are unlocked. */
SEC("tp_btf/block_rq_complete")
int complete(__u64 *ctx)
{
	return note(&completed, (struct request *)ctx[0]);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
