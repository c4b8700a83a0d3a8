/* repr_slice.h — texts that are read character by character without being made: the text of an integer
 * (repr_digits.c); a part of such a text or of one that is packed, `text[i:j]`, whose items
 * are the text, where the part begins and how many characters it has; one from its end, `text[::-1]`, of op 6. Their
 * length, characters, `==`, `in`, and the number that they say. */
#ifndef WEFT_TRACER_REPR_SLICE_H
#define WEFT_TRACER_REPR_SLICE_H

#include "tracer/record/record.h"

/* What is done at each place below `count`: the states, numbers and columns, are changed. A number alone is a bool:
 * whether to go on. */
enum { RECORD_STATES = 4 }; /* not a threshold: what a number is read in */
typedef Outcome (*RecStep)(Recorder *r, const Av *with, Av at, Av *state);

/* Texts that are read and not made (repr_slice.c). */
bool rec_is_read(Recorder *r, Av a);
bool rec_is_of_digits(Recorder *r, Av a); /* of which all is the text of an integer, so ASCII */
Outcome rec_text_slice(Recorder *r, Av rows, const Av *parts, Av *out); /* parts: start, stop, step */
Outcome rec_read_count(Recorder *r, Av text, Av *out);
Outcome rec_read_at(Recorder *r, Av text, Av at, Av *out); /* in bounds */
Outcome rec_read_get(Recorder *r, Av text, Av at, Av *out);
Outcome rec_read_same(Recorder *r, Av a, Av b, Av *out); /* one of them is such a text */
Outcome rec_read_has(Recorder *r, Av text, Av point, Av *out);
/* can it be put into a column, and counted? Short ones alone: of digits, of known characters, and joined of such */
bool rec_text_parts(Recorder *r, Av text);
Outcome rec_text_length(Recorder *r, Av a, Av *out); /* len of a text that is made */
Outcome rec_text_count(Recorder *r, Av text, Av *out);
/* from *at on, which is moved behind it; there is room */
Outcome rec_text_put(Recorder *r, Av text, Av *column, Av *at);
Outcome rec_text_move(Recorder *r, Av count, Av by, Av *column); /* so many of its characters, further back */
/* parse_int, parse_float of a slice or a character; false: not so */
bool rec_number_of_text(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o);
Outcome rec_each(Recorder *r, Av count, const Av *with, Av *state, u32 n, RecStep step);

#endif
