/* repr_columns_room.h — lists that grow in a loop where nothing can be left for more room: what they grow by is told
 * before the loop. */
#ifndef WEFT_TRACER_REPR_COLUMNS_ROOM_H
#define WEFT_TRACER_REPR_COLUMNS_ROOM_H

#include "tracer/record/record.h"

/* What is asked of a loop of the graph: by how much some of its results, which count items of lists, grow. */
typedef struct ListRoom {
  NodeId loop;        /* it was recorded to be asked, and is taken out of the graph again */
  ValueVec counts;    /* among the carried values: which ones */
  u8 *items;          /* of each carried value: it holds items of such a list, and must not tell how many there are */
  VEC(Dim) grows;     /* the answer, for each count */
  VEC(u8) always;     /* and whether it grows by the same in each trip: by so much and no other number */
} ListRoom;

/* Items are put behind a list in columns: *columns has room for k more, and a loop that makes it longer knows. `last`:
 * where the last one goes. */
Outcome rec_room_take(Recorder *r, Av rows, Av *columns, u32 k, Av last);
/* The loop was lifted as `made`. *again: lists grow in it for which nobody made room; it is known by now. */
Outcome rec_room_ask(Recorder *r, RecLoop *l, NodeId made, bool *again);
Outcome rec_room_make(Recorder *r, RecLoop *l); /* before it is lifted */
Outcome rec_room_tell(Recorder *r, RecLoop *l); /* behind it: how many items lists have */

#endif
