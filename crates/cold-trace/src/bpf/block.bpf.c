// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reads from block devices, from submission to completion, and which pages of which file they bring. */
#include "call.h"
#include "folio.h"
#include "names.h"
#include "state.h"

#define REQ_OP_MASK 0xffu
#define REQ_OP_READ 0u
#define BIOS_COUNTED 256 /* of one request; a request of more is as good as unheard of */

struct request_scratch {
	struct cold_request event;
	struct cold_part parts[COLD_PARTS];
};

static __always_inline struct request *request_arg(u64 *ctx)
{
	return (void *)(knobs.queue_first ? ARG(1) : ARG(0));
}

static __always_inline bool is_read(struct request *rq)
{
	return (READ(rq, cmd_flags) & REQ_OP_MASK) == REQ_OP_READ && READ(rq, __data_len);
}

static __always_inline u32 device_of(struct request *rq)
{
	struct request_queue *q = READ(rq, q);
	struct request___old *old = (void *)rq;
	struct gendisk *disk;

	if (bpf_core_field_exists(old->rq_disk))
		disk = READ(old, rq_disk);
	else
		disk = READ(q, disk);
	return READ(disk, major) << 20 | READ(disk, first_minor);
}

/* Who runs now, and what it is doing. */
static __always_inline struct bio_state who_runs(void)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 tid = id;
	struct bio_state who = {};

	who.at = bpf_ktime_get_ns();
	who.pid = id >> 32;
	who.tid = tid;
	who.flags = is_kthread() ? COLD_KTHREAD : 0;
	struct task_state *task = may_be_member(who.pid) ? task_of(tid) : NULL;
	if (task) {
		notice_call(task);
		who.context = task->context.at;
	}
	if (task || followed(who.pid))
		who.flags |= COLD_IN_TREE;
	return who;
}

/*
 * The submitter is who runs when the request is made. Where that is not told (before 6.5), it is who
 * submitted its first bio; and where that bio was split off and never submitted itself, whoever runs, if
 * it is a program: a kernel thread works for others, and the idle task was interrupted.
 */
static __always_inline struct request_state *submitted(struct request *rq, bool made)
{
	u64 key = (u64)rq, first = (u64)READ(rq, bio);
	struct bio_state *known = made ? NULL : bpf_map_lookup_elem(&bios, &first);
	struct bio_state who = known ? *known : who_runs();
	struct request_state state = {};

	state.started = made || known ? who.at : 0;
	state.context = who.context;
	state.pid = who.pid;
	state.tid = who.tid;
	state.flags = who.flags;
	if (!made && !known && (knobs.io_start || !who.pid || who.flags & COLD_KTHREAD))
		state.flags |= COLD_BORROWED;
	if (known)
		bpf_map_delete_elem(&bios, &first);
	if (bpf_map_update_elem(&requests, &key, &state, BPF_ANY))
		lose(COLD_LOST_REQUEST_STATE);
	return bpf_map_lookup_elem(&requests, &key);
}

/* Loaded only where block_io_start is missing. */
PROGRAM(block_bio_queue, bio_queue)
{
	struct bio *bio = (void *)(knobs.queue_first ? ARG(1) : ARG(0));
	u64 key = (u64)bio;
	struct bio_state who;

	if ((READ(bio, bi_opf) & REQ_OP_MASK) != REQ_OP_READ)
		return;
	who = who_runs();
	bpf_map_update_elem(&bios, &key, &who, BPF_ANY);
}

PROGRAM(block_io_start, io_start)
{
	struct request *rq = (void *)ctx[0];

	if (is_read(rq))
		submitted(rq, true);
}

PROGRAM(block_rq_insert, rq_insert)
{
	struct request *rq = request_arg(ctx);
	u64 key = (u64)rq;
	struct request_state *state;

	if (!is_read(rq))
		return;
	state = bpf_map_lookup_elem(&requests, &key);
	if (!state)
		state = submitted(rq, false);
	if (state && !state->inserted)
		state->inserted = bpf_ktime_get_ns();
}

/* The page cache's owner of a page, and the page's index in it. */
static __always_inline bool owner_of(struct page *page, struct inode **owner, u64 *index)
{
	struct page___info *new = (void *)page;
	unsigned long head = bpf_core_field_exists(new->compound_info) ? BPF_CORE_READ(new, compound_info) :
									 BPF_CORE_READ(page, compound_head);
	struct page *first = head & 1 ? (void *)(head - 1) : page;
	struct address_space *mapping = mapping_of((void *)first);

	/* Lowest bits: anonymous, movable. Slab pages keep other things in this word: hence the proof. */
	if (!mapping || (u64)mapping & 3)
		return false;
	struct inode *inode = READ(mapping, host);
	if (!inode || READ(inode, i_mapping) != mapping)
		return false;
	*owner = inode;
	*index = index_of((void *)first) + ((u64)page - (u64)first) / bpf_core_type_size(struct page);
	return true;
}

static __always_inline void part_of(struct bio *bio, struct cold_part *part)
{
	u32 at = READ(bio, bi_iter.bi_idx);
	struct bio_vec *vec = READ(bio, bi_io_vec);
	struct inode *inode = NULL;
	u64 index = 0;

	__builtin_memset(part, 0, sizeof(*part));
	part->bytes = READ(bio, bi_iter.bi_size);
	part->state = COLD_PART_ANON;
	if (!vec)
		return;
	vec = (void *)vec + (u64)at * bpf_core_type_size(struct bio_vec);
	u32 offset = READ(vec, bv_offset) + READ(bio, bi_iter.bi_bvec_done);
	/* A segment of several pages is one run of struct page. */
	struct page *page = (void *)number_of(READ(vec, bv_page)) +
			    (u64)(offset >> knobs.page_shift) * bpf_core_type_size(struct page);
	if (!owner_of(page, &inode, &index))
		return;
	tell_inode(inode, SCRATCH_BLOCK);
	part->file = id_of(inode);
	part->index = index;
	part->state = 0;
}

/* The bios of a request, one after the other. */
struct bio_walk {
	struct request_scratch *out;
	struct bio *bio;
	u32 parts;
	u32 bios;
};

#ifdef COLD_OLD
static __always_inline void walk_bios(struct bio_walk *walk)
{
	struct bio *bio = walk->bio;
	u32 parts = 0, bios;

	for (int i = 0; i < COLD_PARTS && bio; i++) {
		part_of(bio, &walk->out->parts[i]);
		parts++;
		bio = READ(bio, bi_next);
	}
	bios = parts;
	for (int i = 0; i < BIOS_COUNTED && bio; i++) {
		bios++;
		bio = READ(bio, bi_next);
	}
	walk->parts = parts;
	walk->bios = bios;
}
#else
/* Whether there is nothing more to be seen. `walk` is no type of the kernel's, so READ must not begin with it. */
static __always_inline int part_step(u32 turn, struct bio_walk *walk)
{
	struct bio *bio = walk->bio;

	if (!bio || turn >= COLD_PARTS)
		return 1;
	part_of(bio, &walk->out->parts[turn]);
	walk->parts = walk->bios = turn + 1;
	walk->bio = READ(bio, bi_next);
	return 0;
}

static __always_inline int bio_step(struct bio_walk *walk)
{
	struct bio *bio = walk->bio;

	if (!bio)
		return 1;
	walk->bios++;
	walk->bio = READ(bio, bi_next);
	return 0;
}

static long part_turn(u32 turn, void *walk)
{
	return part_step(turn, walk);
}

static long bio_turn(u32 turn, void *walk)
{
	(void)turn;
	return bio_step(walk);
}

/* As walk_all in names.h: the verifier takes 12 ms for the program below instead of 112. */
static __always_inline void walk_bios(struct bio_walk *walk)
{
	bpf_loop(COLD_PARTS, part_turn, walk, 0);
	bpf_loop(BIOS_COUNTED, bio_turn, walk, 0);
}
#endif

PROGRAM(block_rq_issue, rq_issue)
{
	struct request *rq = request_arg(ctx);
	u64 key = (u64)rq;
	u32 slot = SCRATCH_PARTS, flags;
	struct request_state *state;
	struct request_scratch *out;

	if (!is_read(rq))
		return;
	state = bpf_map_lookup_elem(&requests, &key);
	if (!state)
		state = submitted(rq, false);
	out = bpf_map_lookup_elem(&scratches, &slot);
	if (!state || !out)
		return;
	struct bio_walk walk = {.out = out, .bio = READ(rq, bio)};
	walk_bios(&walk);
	struct cold_request *event = &out->event;
	__builtin_memset(event, 0, sizeof(*event));
	u32 parts = walk.parts;
	if (parts > COLD_PARTS)
		parts = COLD_PARTS;
	u32 bytes = sizeof(*event) + parts * sizeof(struct cold_part);
	event->head.at = bpf_ktime_get_ns();
	event->head.pid = state->pid;
	event->head.tid = state->tid;
	event->head.flags = state->flags;
	event->head.kind = COLD_REQUEST;
	event->head.bytes = bytes;
	event->rq = key;
	event->started = state->started;
	event->inserted = state->inserted;
	event->context = state->context;
	event->sector = READ(rq, __sector);
	event->dev = device_of(rq);
	event->bytes = READ(rq, __data_len);
	flags = READ(rq, cmd_flags);
	event->op = flags;
	event->meta = flags >> bpf_core_enum_value(enum req_flag_bits, __REQ_META) & 1;
	event->ahead = flags >> bpf_core_enum_value(enum req_flag_bits, __REQ_RAHEAD) & 1;
	event->parts = parts;
	event->bios = walk.bios;
	/* Issued again after the driver had no room, it is told again: whoever reads this knows it as the same one. */
	bpf_map_delete_elem(&requests, &key);
	output(out, bytes, sizeof(*out), COLD_LOST_REQUESTS);
}

/*
 * Every read's, whoever made it, and by what the request itself says: this runs in the interrupt that the reader waits
 * for, mostly on a CPU that slept, and a look into `requests` and `tree` made it 2.5 µs of each wait.
 */
PROGRAM(block_rq_complete, rq_complete)
{
	/* Before 5.11 the queue came first here too. */
	struct request *rq = request_arg(ctx);
	s32 error = knobs.queue_first ? (s32)ARG(2) : (s32)(u8)ARG(1);
	u32 bytes = knobs.queue_first ? ARG(3) : ARG(2);
	struct cold_done *event;

	if (!is_read(rq))
		return;
	event = RESERVE(cold_done, COLD_LOST_REQUESTS);
	if (!event)
		return;
	u32 left = READ(rq, __data_len);
	head_with(&event->head, COLD_DONE, sizeof(*event), COLD_BORROWED);
	event->rq = (u64)rq;
	event->bytes = bytes;
	event->left = left > bytes ? left - bytes : 0;
	event->error = error;
	event->pad = 0;
	SUBMIT(event);
}
