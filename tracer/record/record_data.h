/* record_data.h — parts of values in the trace: fields, indices, update paths, unpacking, cells. */
#ifndef WEFT_TRACER_RECORD_DATA_H
#define WEFT_TRACER_RECORD_DATA_H

#include "tracer/record/record.h"

Outcome rec_index(Recorder *r, Av obj, const u8 *items, u32 count, const Av *regs, Av *out);
Outcome rec_index_array(Recorder *r, Av obj, const u8 *items, u32 count, const Av *regs, Av *out);
bool rec_list_position(Recorder *r, Av list, Av at, u32 *out); /* of an item that is known; false: not known */
Outcome rec_update_array(Recorder *r, Av obj, const u8 *kinds, u32 count, const Av *regs, u32 op, Av value, Av *out);
Outcome rec_field(Recorder *r, Av obj, Name name, Av *out, bool *found); /* found NULL: a miss is stuck */
Outcome rec_path(Recorder *r, const Desc *d, Av root, const Av *regs, Av *out);
/* An integer where a rule needs a literal: known while tracing, or a size whose present value a guard then pins. */
bool rec_literal(Recorder *r, Av a, const char *what, i64 *out);
bool rec_pin(Recorder *r, Dim d, const char *what, i64 *out); /* the same of a size */
Outcome rec_text(Recorder *r, Av v, Av spec, Av *out); /* spec: text or nil */
Outcome rec_join(Recorder *r, const Av *parts, u32 count, Av *out); /* of texts */
/* does a loop around the region write the register that a source comes from? */
bool rec_written_around(const Recorder *r, SourceId s);
Av rec_text_part(Recorder *r, Av a); /* read, but a text that another trip changes is not looked at */
Outcome rec_unpack(Recorder *r, Av v, const Desc *d, Av *out);

#endif
