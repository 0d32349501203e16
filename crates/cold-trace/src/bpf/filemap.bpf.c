// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The page cache: faults, mapped and read ranges, fills, evictions, decisions to read ahead. */
#include "call.h"
#include "folio.h"
#include "names.h"
#include "stacks.h"

static __always_inline void pages_event(struct cold_pages *event, struct task_state *task, u16 kind,
					struct cold_id id, u64 first, u64 last)
{
	head_of_task(&event->head, task, kind, sizeof(*event));
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
 * The file behind a mapping, told. Mostly it is one of the last ones: the inode's number shows that the mapping
 * was not freed and given to another.
 */
static __always_inline struct cold_id file_behind(struct task_state *task, struct address_space *mapping)
{
	struct inode *inode = mapping->host;
	u64 ino = inode->i_ino;
	struct known_file *known = &task->known[ino & (KNOWN_FILES - 1)];

	if (known->mapping == (u64)mapping && known->id.ino == ino)
		return known->id;
	known->id = id_of_typed(inode);
	known->mapping = (u64)mapping;
	if (!bpf_map_lookup_elem(&seen, &known->id) && !tell_file(number_of(inode), 0, SCRATCH_TASK))
		known->mapping = 0;
	return known->id;
}

PROGRAM(mm_filemap_fault, filemap_fault)
{
	struct address_space *mapping = (void *)ctx[0];
	u64 index = ctx[1];
	struct task_state *task = my_context();
	struct cold_pages *event;

	if (!task)
		return;
	/* Where page faults are not traced themselves, the fault begins here. */
	if (task->context.kind != COLD_CTX_FAULT)
		context_fault(task, 0, task->context.kind == COLD_CTX_CALL);
	/* The second pass of a fault that had to wait is the same need. */
	if (task->last_mapping == (u64)mapping && task->last_index == index &&
	    task->last_context == task->context.at)
		return;
	task->last_mapping = (u64)mapping;
	task->last_index = index;
	task->last_context = task->context.at;
	tell_adds(); /* of another fault, where nothing tells when one begins */
	task->context.file = file_behind(task, mapping);
	task->context.index = index;
	event = RESERVE(cold_pages, COLD_LOST_TOUCHES);
	if (!event)
		return;
	pages_event(event, task, COLD_FAULT, task->context.file, index, index);
	SUBMIT(event);
}

PROGRAM(mm_filemap_map_pages, filemap_map_pages)
{
	struct address_space *mapping = (void *)ctx[0];
	struct task_state *task = my_context();
	struct cold_pages *event;

	if (!task)
		return;
	struct cold_id id = file_behind(task, mapping);
	event = RESERVE(cold_pages, COLD_LOST_TOUCHES);
	if (!event)
		return;
	pages_event(event, task, COLD_MAP, id, ctx[1], ctx[2]);
	SUBMIT(event);
}

PROGRAM(mm_filemap_get_pages, filemap_get_pages)
{
	struct address_space *mapping = (void *)ctx[0];
	struct task_state *task = my_context();
	struct cold_pages *event;

	if (!task)
		return;
	/* A read that goes on: a fault on its buffer is over. */
	if (task->context.kind == COLD_CTX_FAULT && task->call_at)
		context_call(task);
	/* Where the call began: what it copied before this has no event of its own where it waited for what lies behind. */
	resolve_call(task);
	struct cold_id id = file_behind(task, mapping);
	event = RESERVE(cold_pages, COLD_LOST_TOUCHES);
	if (event) {
		pages_event(event, task, COLD_GET, id, ctx[1], ctx[2]);
		/* True in the first event of a call: below, the position moves by pages. */
		if ((task->class == CALL_READ || task->class == CALL_PREAD) && task->position >= 0)
			event->address = task->position + task->args[2];
		SUBMIT(event);
	}
	/* What it waits for next lies behind this. */
	task->resolved = 1;
	task->call_file = id;
	task->position = (s64)((ctx[2] + 1) << knobs.page_shift);
	if (task->context.kind == COLD_CTX_CALL)
		context_call(task);
}

/* What the add of a task that is not followed begins with; false: the recorder's own. */
static __always_inline bool add_of_others(struct cold_add *add, struct inode *inode)
{
	if (is_self())
		return false;
	tell_adds();
	tell_inode(inode, SCRATCH_TASK);
	head_with(&add->head, COLD_ADD, sizeof(*add), is_kthread() ? COLD_KTHREAD : 0);
	__builtin_memset(&add->context, 0, sizeof(add->context));
	add->context.syscall = -1;
	add->file = id_of(inode);
	return true;
}

/* The same of a task that is. */
static __always_inline void add_of_task(struct cold_add *add, struct task_state *task,
					struct address_space *mapping, u64 *ctx)
{
	tell_adds();
	struct cold_id id = file_behind(task, mapping);
	context_adds(task, id);
	resolve_call(task);
	tell_stack(ctx, task, false);
	head_of_task(&add->head, task, COLD_ADD, sizeof(*add));
	add->context = task->context;
	add->file = id;
}

/*
 * Folios are told by runs, whoever adds them: a cold start of Firefox adds 80,000 of them, 32 and more at a time, and an
 * event each was a third of all that recording cost. A run is its task's alone: whoever leaves the CPU tells it.
 */
PROGRAM(mm_filemap_add_to_page_cache, filemap_add)
{
	struct address_space *mapping = MAPPING_OF_TYPED(ctx);
	u64 index = INDEX_OF_TYPED(ctx);
	u32 order = order_of_typed((void *)ctx[0]);
	struct add_run *run = add_run();
	struct task_state *task;

	if (!run || !mapping)
		return;
	if (run->add.head.at && run->next == index && run->mapping == (u64)mapping && run->add.order == order &&
	    run->add.more < COLD_RUN - 1) {
		run->add.more += 1;
		run->next = index + (1ull << (order & 31));
		return;
	}
	task = my_context();
	if (task)
		add_of_task(&run->add, task, mapping, ctx);
	else if (!add_of_others(&run->add, mapping->host))
		return;
	run->add.index = index;
	run->add.order = order;
	run->add.more = 0;
	run->mapping = (u64)mapping;
	run->next = index + (1ull << (order & 31));
}

/* Of files that were seen: whether a page that had been read was thrown away before its use. */
PROGRAM(mm_filemap_delete_from_page_cache, filemap_delete)
{
	struct address_space *mapping = MAPPING_OF_TYPED(ctx);
	struct cold_delete *event;

	if (!mapping)
		return;
	struct cold_id id = id_of_typed(mapping->host);
	if (!bpf_map_lookup_elem(&seen, &id))
		return;
	event = RESERVE(cold_delete, COLD_LOST_EVICTIONS);
	if (!event)
		return;
	head_of(&event->head, COLD_DELETE, sizeof(*event));
	event->file = id;
	event->index = INDEX_OF_TYPED(ctx);
	event->order = order_of_typed((void *)ctx[0]);
	event->pad = 0;
	SUBMIT(event);
}

static __always_inline void readahead(u64 *ctx, struct file_ra_state *ra, u64 asked, u32 kind, u64 tail)
{
	struct cold_readahead *event;
	struct inode *inode = (void *)ctx[0];
	u64 index = ctx[1];

	if (is_self())
		return;
	struct task_state *task = my_context();
	if (task) {
		context_adds(task, id_of(inode));
		resolve_call(task);
	}
	tell_inode(inode, SCRATCH_TASK);
	event = RESERVE(cold_readahead, COLD_LOST_READAHEAD);
	if (!event)
		return;
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

		event->start = READ(ra, start);
		event->size = READ(ra, size);
		event->async_size = READ(ra, async_size);
		event->ra_pages = READ(ra, ra_pages);
		if (bpf_core_field_exists(new->order)) {
			event->ra_order = READ(new, order);
			event->mmap_miss = READ(new, mmap_miss);
		} else {
			event->mmap_miss = READ(ra, mmap_miss);
		}
	}
	SUBMIT(event);
}

PROGRAM(page_cache_ra_unbounded, ra_unbounded)
{
	readahead(ctx, NULL, ctx[2], COLD_RA_UNBOUNDED, ctx[3]);
}

PROGRAM(page_cache_ra_order, ra_order)
{
	readahead(ctx, (void *)ctx[2], 0, COLD_RA_ORDER, 0);
}

PROGRAM(page_cache_sync_ra, ra_sync)
{
	readahead(ctx, (void *)ctx[2], ctx[3], COLD_RA_SYNC, 0);
}

PROGRAM(page_cache_async_ra, ra_async)
{
	readahead(ctx, (void *)ctx[2], ctx[3], COLD_RA_ASYNC, 0);
}
