/* repr_columns.h — lists that a loop grows or indexes, and texts: columns with room, and how many of their elements
 * count. */
#ifndef WEFT_TRACER_REPR_COLUMNS_H
#define WEFT_TRACER_REPR_COLUMNS_H

#include "tracer/record/record.h"

Av rec_new_rows(Recorder *r, Av columns, Av count, Value kind); /* kind: kept by the recorder */
bool rec_is_text(Recorder *r, Av a);
Outcome rec_columns_contain(Recorder *r, Av rows, Av a, Av *out); /* a number or text among its items */
/* cells of tables */
bool rec_number_layout(Recorder *r, Av a, u32 depth, Value *out);
bool rec_name_layout(Recorder *r, Av a, u32 depth, Value *out); /* of a text that may have a number */
bool rec_tree_layout(Recorder *r, Av a, u32 depth, Value *out);
bool rec_into_columns(Recorder *r, RecLoop *l, RecLoc *loc, Av before, Av now);
bool rec_columns_widen(Recorder *r, RecLoop *l, RecLoc *loc, Av before, Av now);
Outcome rec_columns_take_back(Recorder *r, Av a, bool empty, Av *now);
bool rec_columns_same(Recorder *r, Av a, Av b); /* of one kind, and alike part by part */
bool rec_leaves_few(Value kind); /* of what items look like: numbers and short texts all through, not too many */
Av rec_columns_new(Recorder *r, Value kind, Dim room); /* zeros */
bool rec_kind_of(Recorder *r, Av a, Value *out); /* what a value looks like, kept by the recorder; false: not so */
bool rec_items_kind(Recorder *r, Av list, Value *kind); /* of a list: what all its items look like */
bool rec_is_column(Value kind); /* a leaf of what items look like: a number, array or text */
ArrayType rec_column_type(Value kind, Dim room);
bool rec_item_fits(Recorder *r, Av a, Value kind); /* not of a text */
enum { ROWS_CHARACTERS = 1 }; /* `op` of a list in columns: its texts are single characters */
Outcome rec_columns_text(Recorder *r, Av rows, Av *out); /* of such a list: the text that they make */
Outcome rec_rows_of_text(Recorder *r, SourceId s, Value text, Av *out);
Outcome rec_text_stacked(Recorder *r, Av text, Av *out);
Outcome rec_rows_of(Recorder *r, Av list, const Value *want, Av *out);
/* The list that `loc` held at the head of loop l is another one now: l is lifted again with rows there. False: no
 * rows. */
bool rec_want_names(Recorder *r, RecLoop *l, RecLoc *loc); /* other texts stand there from trip to trip: lifted again */
bool rec_item_mixed(Recorder *r, Av a, Value kind); /* an item that fits, but for a number in it that may be weak */
bool rec_rows_meet(Recorder *r, Av a, Av b, Value *kind); /* two lists of different kinds: of one that both can have */
/* an item goes in that is weak where others are not, or the other way round; *rows: with a column for that, else its
 * loop is lifted again */
bool rec_want_wider(Recorder *r, Av *rows, Av item);
bool rec_want_rows(Recorder *r, RecLoop *l, RecLoc *loc, Av now);
bool rec_merge_rows(Recorder *r, Av base, Av a, Av b); /* two arms made two lists of base */
/* a text from outside that a loop carries: that is lifted again with rows there */
bool rec_text_grows(Recorder *r, Av a);
bool rec_is_list_source(const AbsVal *v); /* a list from outside, as it was */
bool rec_rows_suit(const Recorder *r, Av list);
bool rec_lists_suit(const Recorder *r, Av list); /* a list of lists from outside */
/* for a computed position; stuck when its loop is to be lifted again */
Outcome rec_rows_here(Recorder *r, Av list, Av *out);
bool rec_is_carried(Recorder *r, Av list); /* by a loop around */
Outcome rec_make_rows(Recorder *r, RecLoop *l); /* those that it was found to need, before it */
/* what stands there in a loop is to be rows of that kind, NULL: none; false: in no loop, or it was tried */
bool rec_rows_ask(Recorder *r, Av now, const Value *kind);

#endif
