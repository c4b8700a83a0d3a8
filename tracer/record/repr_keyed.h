/* repr_keyed.h — records of numbers whose keys are single characters, which a loop counts up or looks up by
 * computed keys. */
#ifndef WEFT_TRACER_REPR_KEYED_H
#define WEFT_TRACER_REPR_KEYED_H

#include "tracer/record/record.h"

/* Records of numbers by character (repr_keyed.c). */
bool rec_is_keyed(const Recorder *r, Av a);
Outcome rec_keyed_of(Recorder *r, Av record, Value kind, Av *out);
/* stuck: its loop is to be lifted again with such a record; value: a new one, or 0 */
Outcome rec_keyed_store(Recorder *r, Av record, Av key, Av value);
Outcome rec_keyed_read(Recorder *r, Av record, Av key, Av *out); /* likewise; *out: the record as such, or 0 */
Outcome rec_keyed_in(Recorder *r, Av rows, Av key, Av *out);
Outcome rec_keyed_get(Recorder *r, Av rows, Av key, Av *out);
Outcome rec_keyed_set(Recorder *r, Av rows, Av key, Av item, bool known, Av *out); /* known: the key is there */
Outcome rec_keyed_item(Recorder *r, Av rows, ValueId at, Av *out);

#endif
