/* stream.h — stores that pass the caches by: for results of which no cache could hold what is read next. */
#ifndef WEFT_VM_STREAM_H
#define WEFT_VM_STREAM_H

#include "parser/base.h"

/* Would a result of so many bytes, and as much that is read for it, fill most of the last cache? in_order: it is
 * made in one go from what is read in order; then it alone has to. */
bool stream_worth(i64 bytes, bool in_order);
/* memcpy by such stores; `stream_done` comes before anybody reads what was written. */
void stream_copy(void *to, const void *from, i64 bytes);
/* The same; meanwhile what is read next is fetched: a line for each so many that are stored, from `next` on, which
 * may be any number; none for 0, and where that does not pay (CPU_FETCH). With CPU_PAGES `next` is PAGES_AHEAD
 * behind what is read now, and what page_ahead says is fetched. */
void stream_copy_ahead(void *to, const void *from, i64 bytes, uintptr_t next, u32 each);
void stream_done(void);

#endif
