/* repr_columns_whole.h — lists in columns as a whole: the array of one, its items joined, sorted, and parts of it. */
#ifndef WEFT_TRACER_REPR_COLUMNS_WHOLE_H
#define WEFT_TRACER_REPR_COLUMNS_WHOLE_H

#include "tracer/record/record.h"

bool rec_is_listed(const Recorder *r, Av a); /* a list in columns, or from outside */
Outcome rec_rows_array(Recorder *r, Av list, Av dtype, bool leaf, Av *out);
Outcome rec_rows_joined(Recorder *r, u32 op, const Av *params, Av *out); /* stack and concat */
Outcome rec_rows_sorted(Recorder *r, const Av *params, u32 count, Av *out);
Outcome rec_rows_part(Recorder *r, Av rows, const Av *parts, Av *out); /* any slice */
bool rec_is_in_columns(const Recorder *r, Av list);
Outcome rec_list_slice(Recorder *r, Av list, const Av *parts, Av *out);
Outcome rec_rows_concat(Recorder *r, Av a, Av b, Av *out); /* a + b */

#endif
