/* repr_digits.h — the text of an integer, `str(n)` or `f"{n}"`, as what it is read for: how many characters it
 * has, and which one stands at a place, both computed from the number. */
#ifndef WEFT_TRACER_REPR_DIGITS_H
#define WEFT_TRACER_REPR_DIGITS_H

#include "tracer/record/record.h"

/* The text of an integer (repr_digits.c). */
bool rec_is_digits(Recorder *r, Av a);
ValueId rec_digits_number(Recorder *r, Av text);
Outcome rec_digits_of(Recorder *r, Av text, Av *out); /* with what is computed once for all its digits */
Outcome rec_digits_count(Recorder *r, Av text, Av *out);
Outcome rec_digits_at(Recorder *r, Av text, Av place, Av *out);
Outcome rec_digits_same(Recorder *r, Av text, Av other, Av *out);

#endif
