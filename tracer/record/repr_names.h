/* repr_names.h — short texts as numbers: a text that is one of many is, in a graph, the number that it has in the
 * VM (text_number of guards/rows.c), so that texts compare, are chosen, carried by loops and lie in columns as
 * integers do. */
#ifndef WEFT_TRACER_REPR_NAMES_H
#define WEFT_TRACER_REPR_NAMES_H

#include "tracer/record/record.h"

/* Short texts as numbers (repr_names.c). */
bool rec_is_name(Value kind); /* in a tree of what items look like: a text */
Av rec_name(Recorder *r, ValueId number); /* the text of that number */
Av rec_name_of(Recorder *r, Av a); /* the number of a text, or 0 */
bool rec_has_name(Recorder *r, Av a);
bool rec_is_one(Recorder *r, Av a); /* a text of one character */
bool rec_names_meet(Recorder *r, Av *a, Av *b); /* two trees alike but for texts: these become numbers in both */
Av rec_names_open(Recorder *r, Av a, u32 depth);
/* find, codes, text, join; false: not so */
bool rec_on_character(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o);
bool rec_key_computed(Recorder *r, Av record, Av key);
Outcome rec_key_get(Recorder *r, Av record, Av key, Av *out);
Outcome rec_key_set(Recorder *r, Av record, Av key, Av got, Av item, Av *out); /* got: what rec_key_get gave, or 0 */

#endif
