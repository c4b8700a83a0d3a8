/* repr_ragged.h — lists of lists of any length: adjacency lists, matrices, tables with rows of their own lengths. */
#ifndef WEFT_TRACER_REPR_RAGGED_H
#define WEFT_TRACER_REPR_RAGGED_H

#include "tracer/record/record.h"

/* Lists of any length (repr_ragged.c). */
/* `at` is in bounds, and what the program has asked for */
Outcome rec_row_of(Recorder *r, Av rows, ValueId at, Av asked, Av *out);
Outcome rec_row_item(Recorder *r, Av row, Av at, Av *out); /* likewise */
Outcome rec_row_get(Recorder *r, Av row, Av at, Av *out);
/* checked: where among the items of all lists, and what is there */
Outcome rec_row_place(Recorder *r, Av row, Av at, ValueId *place, Av *item);
Outcome rec_row_put(Recorder *r, Av rows, ValueId place, Av old, Av item, Av *out);
Outcome rec_row_swap(Recorder *r, Av rows, Av at, Av item, Av *out); /* a list takes another one's place */

#endif
