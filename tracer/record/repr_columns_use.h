/* repr_columns_use.h — what is done with rows: items read, written, appended, popped; texts as rows of code points
 * (see repr_columns.c). */
#ifndef WEFT_TRACER_REPR_COLUMNS_USE_H
#define WEFT_TRACER_REPR_COLUMNS_USE_H

#include "tracer/record/record.h"

/* The code points of a text of known parts, characters among them: numbers into `out` from *count on (each may be
 * NULL), at most 64 in all. False: not such a text. */
bool rec_points(Recorder *r, Av text, Av *out, u32 *count);
/* A text from outside in a loop, which is indexed by code points that the region gets packed. */
bool rec_text_has(const Recorder *r, Av a);
Outcome rec_text_walk(Recorder *r, Av text, Av *out); /* a text from outside, or a known one, for a loop over it */
Outcome rec_text_get(Recorder *r, Av text, Av at, Av *out);
Outcome rec_text_cut(Recorder *r, Av text, const Av *parts, Av *out); /* a slice of it */
Av rec_with_parts(Recorder *r, Av tree, const Av *parts, u32 n); /* the same tree over other parts; 0: refused */
Outcome rec_text_same(Recorder *r, Av rows, Av text, Av *out); /* rows of a text and one of known parts */
Outcome rec_rows_get(Recorder *r, Av rows, Av at, Av *out);
Outcome rec_rows_item(Recorder *r, Av rows, Av at, Av *out); /* `at` is in bounds */
/* An item into its place in each column; `old` (may be 0): what was read there, of which leaves that are the same
 * stay. */
Outcome rec_rows_put(Recorder *r, Av columns, Value kind, ValueId at, Av item, Av old, Av *out);
Outcome rec_rows_set(Recorder *r, Av rows, Av at, Av old, Av item, Av *out);
Outcome rec_rows_join(Recorder *r, Av rows, Av more, Av *out); /* more: a list known item by item, or a text */
/* start: where they begin, 0: with their first; items in front of that may go */
Outcome rec_rows_append(Recorder *r, Av *rows, Av *start, Av more);
Outcome rec_rows_position(Recorder *r, Av rows, Av n, Av at, ValueId *out); /* checked to be one of n, counted from 0 */
Outcome rec_text_join(Recorder *r, Av rows, Av more, bool front, Av *out);
/* lists of an item of each, and its number */
Outcome rec_rows_zip(Recorder *r, const Av *seqs, u32 n, bool numbered, Av *out);
Outcome rec_rows_slice(Recorder *r, Av rows, const Av *parts, Av *out);
/* `now`, a short list or text (empty: nothing but an empty one), in the columns of `rows`. OUT_STUCK, without a reason:
 * it does not fit. */
Outcome rec_rows_like(Recorder *r, Av rows, Av now, bool empty, Av *out);

#endif
