/* repr_queue.h — lists of a loop that are cut off at their head: `queue = queue[1:]`. */
#ifndef WEFT_TRACER_REPR_QUEUE_H
#define WEFT_TRACER_REPR_QUEUE_H

#include "tracer/record/record.h"

bool rec_is_queue(const Recorder *r, Av a);
Av rec_queue_count(const Recorder *r, Av queue);
Outcome rec_queue_rows(Recorder *r, Av queue, Av *out); /* in columns of its own */
Outcome rec_queue_get(Recorder *r, Av queue, Av at, Av *out);
bool rec_queue_asks(Recorder *r, const Av *parts); /* list[k:], k known */
bool rec_queue_cuts(Recorder *r, Av list, const Av *parts); /* does that slice make a queue? */
Outcome rec_queue_cut(Recorder *r, Av list, const Av *parts, Av *out);
Outcome rec_queue_join(Recorder *r, Av queue, Av more, Av *out);
/* How many items in front of `start` go so that k more have room, and the others moved there; *gone 0: never any. */
Outcome rec_queue_gone(Recorder *r, Av columns, Av n, Av start, u32 k, Av *gone);
Outcome rec_queue_move(Recorder *r, Av *columns, Av *n, Av *start, Av gone);
Outcome rec_queue_new(Recorder *r, Av rows, Av *out);
Outcome rec_queue_like(Recorder *r, Av queue, bool empty, Av *now); /* stuck: it cannot be */

#endif
