/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* COLD_FILE events: an inode and its names, read while the file is there. */
#ifndef COLD_NAMES_H
#define COLD_NAMES_H

#include "state.h"

#define NAMES_MOST 64       /* components that are walked */
#define NAME_BYTES 256      /* a component and its NUL */
#define S_IFMT 0170000u
#define S_IFBLK 0060000u
#define S_IFREG 0100000u

struct file_scratch {
	struct cold_file_event event;
	char names[COLD_NAME_BYTES];
};

/*
 * The first bytes of a name as one number, NUL where it is shorter. One comparison instead of one for each byte, all of
 * whose ends the verifier would look at.
 */
static __always_inline u64 word_of(const char *name, int bytes)
{
	u64 word = 0;

	for (int i = 0; i < bytes && i < 8; i++)
		word |= (u64)(u8)name[i] << 8 * i;
	return word;
}
#define WORD(name) word_of(name, sizeof(name) - 1)

static __always_inline void fill_times(struct cold_file_event *event, struct inode *inode)
{
	if (bpf_core_field_exists(inode->i_mtime_sec)) {
		event->mtime_sec = READ(inode, i_mtime_sec);
		event->mtime_nsec = READ(inode, i_mtime_nsec);
		return;
	}
	struct inode___67 *six = (void *)inode;
	if (bpf_core_field_exists(six->__i_mtime)) {
		event->mtime_sec = READ(six, __i_mtime.tv_sec);
		event->mtime_nsec = READ(six, __i_mtime.tv_nsec);
		return;
	}
	struct inode___old *old = (void *)inode;
	event->mtime_sec = READ(old, i_mtime.tv_sec);
	event->mtime_nsec = READ(old, i_mtime.tv_nsec);
}

struct walk {
	struct file_scratch *out;
	struct dentry *dentry;
	struct dentry *root;
	struct mount *mount; /* NULL: only to the root of its own file system */
	u32 state;
};

/* One step from a name to its parent, or from a mount to where it is mounted; 1: arrived. */
static __always_inline long walk_step(struct walk *walk)
{
	/*
	 * The counts are kept in the map, not in registers: what is read from there is unknown to the
	 * verifier, so that it finds all turns alike instead of looking at each.
	 */
	volatile struct cold_file_event *event = &walk->out->event;
	struct dentry *dentry = walk->dentry;

	if (dentry == walk->root) {
		struct mount *mount = walk->mount;
		struct mount *above = mount ? READ(mount, mnt_parent) : NULL;

		if (!mount || !above || above == mount) {
			walk->state = mount ? COLD_F_FULL : COLD_F_FS_ROOT;
			return 1;
		}
		walk->dentry = READ(mount, mnt_mountpoint);
		walk->mount = above;
		walk->root = READ(above, mnt.mnt_root);
		return 0;
	}
	u32 used = event->path_bytes;
	if (used >= COLD_NAME_BYTES - NAME_BYTES)
		return 1;
	long n = bpf_probe_read_kernel_str(&walk->out->names[used], NAME_BYTES, READ(dentry, d_name.name));
	if (n <= 0)
		return 1;
	event->path_bytes = used + n;
	event->names += 1;
	struct dentry *parent = READ(dentry, d_parent);
	if (parent == dentry || !parent) { /* memfd and other names without a tree */
		walk->state = 0;
		return 1;
	}
	walk->dentry = parent;
	return 0;
}

#ifdef COLD_OLD
static __always_inline void walk_all(struct walk *walk)
{
	for (int i = 0; i < NAMES_MOST; i++)
		if (walk_step(walk))
			break;
}
#else
static long walk_turn(u32 turn, void *walk)
{
	(void)turn;
	return walk_step(walk);
}

/* bpf_loop (5.17): the verifier looks at one turn instead of 64, which saves it seconds. */
static __always_inline void walk_all(struct walk *walk)
{
	bpf_loop(NAMES_MOST, walk_turn, walk, 0);
}
#endif

static __always_inline void walk_names(struct file_scratch *out, struct dentry *dentry, struct vfsmount *vfsmount)
{
	struct walk walk = {.out = out, .dentry = dentry, .state = COLD_F_CUT};

	if (vfsmount) {
		walk.mount = (void *)vfsmount - bpf_core_field_offset(struct mount, mnt);
		walk.root = READ(vfsmount, mnt_root);
	} else {
		walk.root = READ(dentry, d_sb, s_root);
	}
	walk_all(&walk);
	out->event.state |= walk.state;
}

static __always_inline struct dentry *alias_of(struct inode *inode)
{
	struct hlist_node *first = READ(inode, i_dentry.first);

	return first ? (void *)first - bpf_core_field_offset(struct dentry, d_u.d_alias) : NULL;
}

/*
 * Of an overlay's open file the file below it, whose pages and faults the kernel shows: private_data
 * is that file, or since 6.13 a struct that begins with it. Believed only where it proves to be one.
 */
static __always_inline struct inode *inode_below(struct file *file)
{
	struct file *below = READ(file, private_data);

	for (int i = 0; i < 2 && below; i++) {
		struct inode *inode = READ(below, f_inode);
		struct address_space *mapping = READ(below, f_mapping);

		if (inode && mapping && READ(inode, i_mapping) == mapping &&
		    READ(mapping, host) == inode)
			return inode;
		if (bpf_probe_read_kernel(&below, sizeof(below), below))
			break;
	}
	return NULL;
}

/* The inode that holds an open file's pages. */
static __always_inline struct inode *inode_of(struct file *file)
{
	struct inode *inode = READ(file, f_mapping, host);
	const char *type = READ(file, f_inode, i_sb, s_type, name);
	u64 name = 0;

	bpf_probe_read_kernel_str(&name, sizeof(name), type);
	if (name == WORD("overlay")) {
		struct inode *below = inode_below(file);

		return below ? below : inode;
	}
	return inode;
}

/*
 * Writes COLD_FILE unless as good a one was written; 0: it is lost. `path` is the one it was opened by;
 * may be 0: names then come from any of the inode's own. Global, so that the verifier looks at it once:
 * hence the plain numbers instead of pointers.
 */
__noinline int tell_file(u64 inode_address, u64 path_address, u32 slot)
{
	struct inode *inode = (void *)inode_address;
	struct path *path = (void *)path_address;
	struct cold_id id = id_of(inode);
	struct file_scratch *out;
	u32 *before, best;
	struct dentry *dentry;

	if (is_none(&id))
		return 0;
	before = bpf_map_lookup_elem(&seen, &id);
	if (before && (!path || (*before & COLD_F_FULL)))
		return 1;
	if (slot > SCRATCH_BLOCK)
		return 0;
	out = bpf_map_lookup_elem(&scratches, &slot);
	if (!out)
		return 0;
	__builtin_memset(&out->event, 0, sizeof(out->event));
	/* Kept in the map until the head is written, and no pointer is: the verifier looks at what follows once. */
	out->event.head.flags = before ? *before : 0;
	out->event.file = id;
	out->event.size = READ(inode, i_size);
	out->event.mode = READ(inode, i_mode);
	out->event.nlink = READ(inode, i_nlink);
	fill_times(&out->event, inode);
	bpf_probe_read_kernel_str(out->event.fs, sizeof(out->event.fs), READ(inode, i_sb, s_type, name));
	if (!out->event.nlink)
		out->event.state |= COLD_F_DELETED;
	u64 fs, rest;
	__builtin_memcpy(&fs, out->event.fs, sizeof(fs));
	__builtin_memcpy(&rest, out->event.fs + sizeof(fs), sizeof(rest));
	if (fs == WORD("bdev")) {
		out->event.state |= COLD_F_BDEV;
		out->event.bdev = READ(inode, i_rdev);
	}
	if (fs == WORD("tmpfs") || fs == WORD("ramfs") || (fs == WORD("devtmpfs") && !rest))
		out->event.state |= COLD_F_SHMEM;
	dentry = path ? READ(path, dentry) : alias_of(inode);
	if (dentry) {
		if (!READ(dentry, d_hash.pprev) && READ(dentry, d_parent) != dentry)
			out->event.state |= COLD_F_DELETED;
		walk_names(out, dentry, path ? READ(path, mnt) : NULL);
	}
	if (path && dentry) {
		struct inode *shown = READ(dentry, d_inode);

		if (shown != inode)
			out->event.shown = id_of(shown);
	}
	best = out->event.state | out->event.head.flags;
	u32 bytes = (sizeof(out->event) + out->event.path_bytes + 7) & ~7u;
	head_of(&out->event.head, COLD_FILE, bytes);
	if (!output(out, bytes, sizeof(*out), COLD_LOST_FILES))
		return 0;
	bpf_map_update_elem(&seen, &id, &best, BPF_ANY);
	return 1;
}

/*
 * The dentry of the recorder's root, once a task was found below it: the recorder keeps it, so that no other gets its
 * address. One comparison for most absolute paths instead of a look at the inode.
 */
u64 recorders_root;

#define ROOT_MARK (1u << 31) /* in the device of a key of `seen`: told as a root */

/*
 * The root directory of this task, where it is not the recorder's. It is told by its names below the root of its file
 * system: what tasks call it who are below it, or in another mount namespace, says nothing to the recorder.
 */
SHARED int tell_other_root(struct cold_id *told)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fs_struct *fs = knobs.root_dev ? READ(task, fs) : NULL;
	u32 slot = SCRATCH_TASK, state = COLD_F_ROOT;
	struct file_scratch *out;
	struct inode *inode;
	struct dentry *root;

	if (!fs || !told)
		return 0;
	root = READ(fs, root.dentry);
	if (number_of(root) == *(volatile u64 *)&recorders_root)
		return 0;
	inode = READ(root, d_inode);
	struct cold_id id = id_of(inode);
	if (is_none(&id))
		return 0;
	if (id.dev == knobs.root_dev && id.ino == ((u64)knobs.root_ino_high << 32 | knobs.root_ino_low)) {
		recorders_root = number_of(root);
		return 0;
	}
	*told = id;
	struct cold_id as_root = id;
	as_root.dev |= ROOT_MARK;
	out = bpf_map_lookup_elem(&scratches, &slot);
	if (!out || bpf_map_lookup_elem(&seen, &as_root))
		return 0;
	__builtin_memset(&out->event, 0, sizeof(out->event));
	out->event.file = id;
	out->event.state = state;
	walk_names(out, root, NULL);
	u32 bytes = (sizeof(out->event) + out->event.path_bytes + 7) & ~7u;
	head_of(&out->event.head, COLD_FILE, bytes);
	if (output(out, bytes, sizeof(*out), COLD_LOST_FILES))
		bpf_map_update_elem(&seen, &as_root, &state, BPF_ANY);
	return 0;
}

static __always_inline void tell_inode(struct inode *inode, u32 slot)
{
	tell_file(number_of(inode), 0, slot);
}

static __always_inline struct cold_id tell_open(struct file *file)
{
	struct cold_id id = {};

	if (file) {
		struct inode *inode = inode_of(file);

		id = id_of(inode);
		tell_file(number_of(inode), number_of(file) + bpf_core_field_offset(struct file, f_path), SCRATCH_TASK);
	}
	return id;
}

#endif
