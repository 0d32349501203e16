// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* One object, so that all programs share one ring buffer and one tree. */
#include "block.bpf.c"
#include "calls.bpf.c"
#include "faults.bpf.c"
#include "filemap.bpf.c"
#include "sched.bpf.c"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
