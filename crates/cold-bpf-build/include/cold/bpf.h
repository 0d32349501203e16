/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every BPF program begins with: the integers that libbpf's headers ask for, and these headers. */
#ifndef COLD_BPF_H
#define COLD_BPF_H

typedef unsigned char __u8;
typedef signed short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* From the kernel's enum bpf_map_type and the flags of its helpers. */
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_F_USER_STACK = 256,
	BPF_RB_NO_WAKEUP = 1,
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#endif
