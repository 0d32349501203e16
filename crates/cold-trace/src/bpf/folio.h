/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Folios, and the pages they were before 5.16. */
#ifndef COLD_FOLIO_H
#define COLD_FOLIO_H

#include "state.h"

static __always_inline bool large_folio(struct folio *folio)
{
	struct folio___memdesc *new = (void *)folio;
	struct folio___flags *old = (void *)folio;
	unsigned long flags;

	if (bpf_core_field_exists(new->flags.f))
		flags = READ(new, flags.f);
	else
		flags = READ(old, flags);
	return flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1;
}

static __always_inline u32 folio_order(struct folio *folio)
{
	struct folio___66 *new = (void *)folio;
	struct folio___61 *mid = (void *)folio;
	struct page *tail = (void *)folio + bpf_core_type_size(struct page);

	if (!knobs.has_folio) {
		struct page *page = (void *)folio;

		if (!(READ(page, flags) >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
			return 0;
	} else {
		if (!large_folio(folio))
			return 0;
		if (bpf_core_field_exists(mid->_folio_order))
			return READ(mid, _folio_order);
		if (bpf_core_field_exists(new->_flags_1))
			return READ(new, _flags_1) & 0xff;
	}
	struct page___order *second = (void *)tail;
	if (bpf_core_field_exists(second->compound_order))
		return READ(second, compound_order);
	return 0;
}

/* Of a tracepoint's argument: its type is known, which saves a helper's call for each step. */
static __always_inline u64 flags_of_typed(struct folio *folio)
{
	struct folio___memdesc *new = (void *)folio;
	struct folio___flags *old = (void *)folio;

	return bpf_core_field_exists(new->flags.f) ? new->flags.f : old->flags;
}

static __always_inline u32 order_of_typed(struct folio *folio)
{
	struct folio___66 *new = (void *)folio;
	struct folio___61 *mid = (void *)folio;

	if (!knobs.has_folio)
		return folio_order(folio);
	if (!(flags_of_typed(folio) >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 0;
	if (bpf_core_field_exists(mid->_folio_order))
		return mid->_folio_order;
	if (bpf_core_field_exists(new->_flags_1))
		return new->_flags_1 & 0xff;
	return folio_order(folio);
}

static __always_inline struct address_space *mapping_of(struct folio *folio)
{
	if (knobs.has_folio)
		return BPF_CORE_READ(folio, mapping);
	return BPF_CORE_READ((struct page *)folio, mapping);
}

static __always_inline u64 index_of(struct folio *folio)
{
	if (knobs.has_folio)
		return READ(folio, index);
	struct page___index *page = (void *)folio;
	if (bpf_core_field_exists(page->index))
		return READ(page, index);
	return 0;
}

#define MAPPING_OF_TYPED(ctx)                                                                         \
	(knobs.has_folio ? ((struct folio *)(ctx)[0])->mapping : ((struct page *)(ctx)[0])->mapping)
#define INDEX_OF_TYPED(ctx)                                                                           \
	(knobs.has_folio ? ((struct folio *)(ctx)[0])->index : index_of((void *)(ctx)[0]))

#endif
