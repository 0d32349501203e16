// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The page cache: faults, mapped and read ranges, fills, evictions, decisions to read ahead. */
#include "context.h"
#include "folio.h"
#include "names.h"
#include "stacks.h"

static __always_inline void pages_event(struct cold_pages *event, struct task_state *task, u16 kind,
					struct cold_id id, u64 first, u64 last)
{
	head_with(&event->head, kind, sizeof(*event), COLD_IN_TREE);
	event->context = task->context;
	event->file = id;
	event->first = first;
	event->last = last;
	event->address = event->ip = 0;
	event->state = event->pad = 0;
	if (task->context.kind == COLD_CTX_FAULT) {
		event->address = task->address;
		event->ip = task->ip;
		event->state = task->fault_state;
	}
}

/*
 * The file behind a mapping, told. Mostly it is the one before: the inode's number shows that the mapping
 * was not freed and given to another.
 */
static __always_inline struct cold_id file_behind(struct task_state *task, struct address_space *mapping, u64 ino)
{
	if (task->known_mapping == (u64)mapping && task->known.ino == ino)
		return task->known;
	struct inode *inode = BPF_CORE_READ(mapping, host);
	task->known = id_of(inode);
	task->known_mapping = tell_file((u64)inode, 0, SCRATCH_TASK) ? (u64)mapping : 0;
	return task->known;
}

SEC("tp_btf/mm_filemap_fault")
int filemap_fault(u64 *ctx)
{
	struct address_space *mapping = (void *)ctx[0];
	u64 index = ctx[1];
	struct task_state *task = my_state();
	struct cold_pages *event;

	if (!task)
		return 0;
	/* Where page faults are not traced themselves, the fault begins here. */
	if (task->context.kind != COLD_CTX_FAULT)
		context_fault(task, 0, task->context.kind == COLD_CTX_CALL);
	/* The second pass of a fault that had to wait is the same need. */
	if (task->last_mapping == (u64)mapping && task->last_index == index &&
	    task->last_context == task->context.at)
		return 0;
	task->last_mapping = (u64)mapping;
	task->last_index = index;
	task->last_context = task->context.at;
	task->context.file = file_behind(task, mapping, mapping->host->i_ino);
	task->context.index = index;
	event = RESERVE(cold_pages, COLD_LOST_TOUCHES);
	if (!event)
		return 0;
	pages_event(event, task, COLD_FAULT, task->context.file, index, index);
	SUBMIT(event);
	return 0;
}

SEC("tp_btf/mm_filemap_map_pages")
int filemap_map_pages(u64 *ctx)
{
	struct address_space *mapping = (void *)ctx[0];
	struct task_state *task = my_state();
	struct cold_pages *event;

	if (!task)
		return 0;
	struct cold_id id = file_behind(task, mapping, mapping->host->i_ino);
	event = RESERVE(cold_pages, COLD_LOST_TOUCHES);
	if (!event)
		return 0;
	pages_event(event, task, COLD_MAP, id, ctx[1], ctx[2]);
	SUBMIT(event);
	return 0;
}

SEC("tp_btf/mm_filemap_get_pages")
int filemap_get_pages(u64 *ctx)
{
	struct address_space *mapping = (void *)ctx[0];
	struct task_state *task = my_state();
	struct cold_pages *event;

	if (!task)
		return 0;
	/* A read that goes on: a fault on its buffer is over. */
	if (task->context.kind == COLD_CTX_FAULT && task->call_at)
		context_call(task);
	struct cold_id id = file_behind(task, mapping, mapping->host->i_ino);
	event = RESERVE(cold_pages, COLD_LOST_TOUCHES);
	if (event) {
		pages_event(event, task, COLD_GET, id, ctx[1], ctx[2]);
		SUBMIT(event);
	}
	/* What it waits for next lies behind this. */
	task->resolved = 1;
	task->call_file = id;
	task->position = (s64)((ctx[2] + 1) << knobs.page_shift);
	if (task->context.kind == COLD_CTX_CALL)
		context_call(task);
	return 0;
}

/* Of a task that is not followed: each folio as it comes. */
static __always_inline void add_of_others(struct inode *inode, u64 index, u32 order)
{
	struct cold_id id = id_of(inode);
	struct cold_add *event;

	tell_inode(inode, SCRATCH_TASK);
	event = RESERVE(cold_add, COLD_LOST_FILLS);
	if (!event)
		return;
	head_with(&event->head, COLD_ADD, sizeof(*event), is_kthread() ? COLD_KTHREAD : 0);
	__builtin_memset(&event->context, 0, sizeof(event->context));
	event->context.syscall = -1;
	event->file = id;
	event->index = index;
	event->order = order;
	event->more = 0;
	SUBMIT(event);
}

/*
 * Folios of the tree are told by runs: a cold start of Firefox adds 80,000 of them, 32 and more at a time,
 * and an event each was a third of all that recording cost.
 */
SEC("tp_btf/mm_filemap_add_to_page_cache")
int filemap_add(u64 *ctx)
{
	struct folio *folio = (void *)ctx[0];
	struct address_space *mapping = mapping_of(folio);
	struct task_state *task = my_state();
	u64 index;
	u32 order;

	if (!mapping || is_self())
		return 0;
	index = index_of(folio);
	order = folio_order(folio);
	struct inode *inode = BPF_CORE_READ(mapping, host);
	if (!task) {
		add_of_others(inode, index, order);
		return 0;
	}
	struct cold_add *run = &task->adds;
	if (run->head.at && run->more < COLD_RUN - 1 && task->adds_mapping == (u64)mapping && task->adds_next == index && run->order == order &&
	    run->context.at == task->context.at && run->context.index == task->context.index) {
		run->more += 1;
		task->adds_next = index + (1ull << (order & 31));
		return 0;
	}
	tell_adds(task);
	struct cold_id id = file_behind(task, mapping, BPF_CORE_READ(inode, i_ino));
	context_adds(task, id);
	resolve_call(task);
	tell_stack(ctx, task, false);
	head_with(&run->head, COLD_ADD, sizeof(*run), COLD_IN_TREE);
	run->context = task->context;
	run->file = id;
	run->index = index;
	run->order = order;
	run->more = 0;
	task->adds_mapping = (u64)mapping;
	task->adds_next = index + (1ull << (order & 31));
	return 0;
}

/* Of files that were seen: whether a page that had been read was thrown away before its use. */
SEC("tp_btf/mm_filemap_delete_from_page_cache")
int filemap_delete(u64 *ctx)
{
	struct folio *folio = (void *)ctx[0];
	struct address_space *mapping = mapping_of(folio);
	struct cold_delete *event;

	if (!mapping)
		return 0;
	struct cold_id id = id_of(BPF_CORE_READ(mapping, host));
	if (!bpf_map_lookup_elem(&seen, &id))
		return 0;
	event = RESERVE(cold_delete, COLD_LOST_EVICTIONS);
	if (!event)
		return 0;
	head_of(&event->head, COLD_DELETE, sizeof(*event));
	event->file = id;
	event->index = index_of(folio);
	event->order = folio_order(folio);
	event->pad = 0;
	SUBMIT(event);
	return 0;
}

static __always_inline int readahead(u64 *ctx, struct file_ra_state *ra, u64 asked, u32 kind, u64 tail)
{
	struct cold_readahead *event;
	struct inode *inode = NULL;
	u64 index = ctx[1];

	if (is_self())
		return 0;
	struct task_state *task = my_state();
	/* As a number: a typed pointer cannot be handed to a function that the verifier looks at once. */
	bpf_probe_read_kernel(&inode, sizeof(inode), ctx);
	if (task) {
		context_adds(task, id_of(inode));
		resolve_call(task);
	}
	tell_inode(inode, SCRATCH_TASK);
	event = RESERVE(cold_readahead, COLD_LOST_READAHEAD);
	if (!event)
		return 0;
	__builtin_memset(event, 0, sizeof(*event));
	head_of(&event->head, COLD_READAHEAD, sizeof(*event));
	event->context = task ? task->context.at : 0;
	event->file = id_of(inode);
	event->index = index;
	event->asked = asked;
	event->ra_kind = kind;
	if (kind == COLD_RA_UNBOUNDED) {
		event->start = index;
		event->size = asked;
		event->async_size = tail;
		event->asked = 0;
	} else {
		struct file_ra_state___order *new = (void *)ra;

		event->start = BPF_CORE_READ(ra, start);
		event->size = BPF_CORE_READ(ra, size);
		event->async_size = BPF_CORE_READ(ra, async_size);
		event->ra_pages = BPF_CORE_READ(ra, ra_pages);
		if (bpf_core_field_exists(new->order)) {
			event->ra_order = BPF_CORE_READ(new, order);
			event->mmap_miss = BPF_CORE_READ(new, mmap_miss);
		} else {
			event->mmap_miss = BPF_CORE_READ(ra, mmap_miss);
		}
	}
	SUBMIT(event);
	return 0;
}

SEC("tp_btf/page_cache_ra_unbounded")
int ra_unbounded(u64 *ctx)
{
	return readahead(ctx, NULL, ctx[2], COLD_RA_UNBOUNDED, ctx[3]);
}

SEC("tp_btf/page_cache_ra_order")
int ra_order(u64 *ctx)
{
	return readahead(ctx, (void *)ctx[2], 0, COLD_RA_ORDER, 0);
}

SEC("tp_btf/page_cache_sync_ra")
int ra_sync(u64 *ctx)
{
	return readahead(ctx, (void *)ctx[2], ctx[3], COLD_RA_SYNC, 0);
}

SEC("tp_btf/page_cache_async_ra")
int ra_async(u64 *ctx)
{
	return readahead(ctx, (void *)ctx[2], ctx[3], COLD_RA_ASYNC, 0);
}
