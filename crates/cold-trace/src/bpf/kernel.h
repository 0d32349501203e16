/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel's types as far as they are used here. Offsets are corrected when the programs are loaded
 * (CO-RE), so only names and kinds matter. `___x` flavours are the same type in another kernel.
 */
#ifndef COLD_KERNEL_H
#define COLD_KERNEL_H

#include <cold/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0

/*
 * Reading kernel memory. What a tracepoint passes, and what it points to in turn, the verifier knows by
 * its type: such pointers are read directly, in a nanosecond. Others take a helper's call for each step
 * before Linux 6.2 (BPF_CORE_READ), 20 to 50 ns; since then they can be called what they are, which
 * promises nothing: where a pointer leads nowhere, 0 is read. Words that are more than a pointer (flags in
 * its lowest bits) are still read by a helper, because of a pointer the verifier allows no arithmetic.
 */
#ifdef COLD_OLD
#define READ(pointer, ...) BPF_CORE_READ(pointer, ##__VA_ARGS__)
#define CURRENT(field) READ((struct task_struct *)bpf_get_current_task(), field)
#else
#define READ(pointer, ...)                                                                            \
	({                                                                                            \
		___type((pointer), ##__VA_ARGS__) __read;                                             \
		if (bpf_ksym_exists(bpf_rdonly_cast))                                                 \
			__read = ___arrow(bpf_core_cast(pointer, typeof(*(pointer))), ##__VA_ARGS__); \
		else                                                                                  \
			__read = BPF_CORE_READ(pointer, ##__VA_ARGS__);                               \
		__read;                                                                               \
	})
#define CURRENT(field) (bpf_get_current_task_btf()->field)
#endif

/*
 * A function that programs share: a global one, which the verifier looks at once in each program instead of on each path
 * that leads to it, so that a recording begins sooner. What is handed to it as a pointer is memory of ours; a kernel's
 * pointer is handed over as a number. Older kernels allow no pointers there (5.12).
 */
#ifdef COLD_OLD
#define SHARED static __always_inline
#else
#define SHARED __noinline
#endif

#define NULL ((void *)0)
#define PF_KTHREAD 0x00200000u
#define TASK_UNINTERRUPTIBLE 2u
#define TASK_NOLOAD 0x400u
#define TASK_DEAD 0x80u
#define SERVING_INTERRUPT 0xff0100u /* preempt_count: NMI, hard interrupts, a soft interrupt being served */
#define THREAD_SIZE (16u << 10) /* x86, without KASAN */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_node {
	struct hlist_node *next;
};
struct hlist_head {
	struct hlist_node *first;
};
struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};
struct qstr {
	const unsigned char *name;
};
struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
};

struct file_system_type {
	const char *name;
};
struct super_block {
	u32 s_dev;
	struct file_system_type *s_type;
	struct dentry *s_root;
};
struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	struct super_block *d_sb;
	union {
		struct hlist_node d_alias;
	} d_u;
};
struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	unsigned int i_nlink;
	u32 i_rdev;
	s64 i_size;
	u32 i_generation;
	struct hlist_head i_dentry;
	s64 i_mtime_sec; /* 6.11 */
	u32 i_mtime_nsec;
};
struct inode___67 {
	struct timespec64 __i_mtime;
};
struct inode___old {
	struct timespec64 i_mtime;
};
struct address_space {
	struct inode *host;
};
struct vfsmount {
	struct dentry *mnt_root;
};
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};
struct file {
	struct address_space *f_mapping;
	void *private_data;
	struct inode *f_inode;
	struct path f_path;
	s64 f_pos;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct fs_struct {
	struct path root;
	struct path pwd;
};
struct file_ra_state {
	unsigned long start;
	unsigned int size;
	unsigned int async_size;
	unsigned int ra_pages;
	unsigned int mmap_miss;
};
/* 6.16: order came, mmap_miss shrank to 16 bits. */
struct file_ra_state___order {
	unsigned short order;
	unsigned short mmap_miss;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};
struct mm_struct {
	unsigned long arg_start;
	unsigned long arg_end;
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
	unsigned int flags;
	int group_exit_code;
};
struct thread_info {
	unsigned long flags;
	u32 status;        /* x86 */
	u64 preempt_count; /* arm64; its upper half is something else */
};
struct task_struct {
	struct thread_info thread_info;
	void *stack;
	unsigned int __state;
	unsigned int flags;
	s32 pid;
	s32 tgid;
	int exit_code;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	char comm[16];
	int pagefault_disabled;
	unsigned in_iowait : 1;
};
/* Before 5.14. */
struct task_struct___old {
	long state;
};
struct linux_binprm {
	struct file *file;
	const char *filename;
};

struct page {
	struct address_space *mapping;
	unsigned long compound_head;
	unsigned long flags;
};
struct page___index {
	unsigned long index;
};
struct page___order {
	unsigned char compound_order;
};
/* 7.0. */
struct page___info {
	unsigned long compound_info;
};
typedef struct {
	unsigned long f;
} memdesc_flags_t;
struct folio {
	struct address_space *mapping;
	unsigned long index;
};
struct folio___flags {
	unsigned long flags;
};
struct folio___memdesc {
	memdesc_flags_t flags;
};
struct folio___66 {
	unsigned long _flags_1;
};
struct folio___61 {
	unsigned char _folio_order;
};
enum pageflags {
	PG_head = 6,
};

struct gendisk {
	int major;
	int first_minor;
};
struct request_queue {
	struct gendisk *disk;
};
struct bvec_iter {
	unsigned int bi_size;
	unsigned int bi_idx;
	unsigned int bi_bvec_done;
};
struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
};
struct bio {
	struct bio *bi_next;
	u32 bi_opf;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
};
struct request {
	struct request_queue *q;
	u32 cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
};
/* Before 5.17. */
struct request___old {
	struct gendisk *rq_disk;
};
enum req_flag_bits {
	__REQ_META = 12,
	__REQ_RAHEAD = 19,
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
};
#define REGS_CALL(regs) ((s32)(regs)->orig_ax)
#define REGS_IP_OF(regs) ((regs)->ip)
#define REGS_IP(regs) READ(regs, ip)
#define REGS_SP(regs) READ(regs, sp)
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 orig_x0;
	s32 syscallno;
};
#define REGS_CALL(regs) ((regs)->syscallno)
#define REGS_IP_OF(regs) ((regs)->pc)
#define REGS_IP(regs) READ(regs, pc)
#define REGS_SP(regs) READ(regs, sp)
#else
#error "unknown architecture"
#endif

#pragma clang attribute pop

/* The address in a pointer whose type the verifier knows: as such it cannot be handed to a function of ours. */
static __always_inline unsigned long long number_of(const void *pointer)
{
	unsigned long long number = 0;
#ifndef COLD_OLD
	if (bpf_ksym_exists(bpf_rdonly_cast)) {
		/* The difference of two pointers is a number; one of them is 0. */
		const unsigned type = bpf_core_type_id_kernel(struct task_struct);
		void *zero = bpf_rdonly_cast(NULL, type);

		number = (unsigned long long)bpf_rdonly_cast(pointer, type);
		asm volatile("%0 -= %1" : "+r"(number) : "r"(zero));
		return number;
	}
#endif
	bpf_probe_read_kernel(&number, sizeof(number), &pointer);
	return number;
}

#endif
