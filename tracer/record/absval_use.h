/* absval_use.h — abstract values: made, read, taken apart (absval.c; the types stand in absval.h). */
#ifndef WEFT_TRACER_ABSVAL_USE_H
#define WEFT_TRACER_ABSVAL_USE_H

#include "tracer/record/repr.h"

/* Longer lists and records are not taken apart, nor more of them; those that a tree function or a construct opens may
 * be longer. */

Av av_new(Recorder *r, AbsVal v);
Av av_const(Recorder *r, Value v); /* keeps v */
Av av_num(Recorder *r, ValueId v);
Av av_hole(Recorder *r);
Av av_items(Recorder *r, AvKind kind, const Av *items, u32 count);
Av av_list(Recorder *r, const Av *items, u32 count);
Av av_list_of(Recorder *r, u32 first, u32 count); /* of these Recorder.items */
Outcome rec_with_item(Recorder *r, Av obj, u32 i, Av item, Av *out); /* the same list or record, but for one item */
Av av_closure(Recorder *r, Code *code); /* without captures */
/* with those of a list; member: 1 + its place in a group of functions that capture each other, or 0 */
Av av_closure_of(Recorder *r, Code *code, Av captures, u32 member);
/* of the group of fn; 0: the function of the region's frame */
Av av_sibling(Recorder *r, Av fn, Code *code, u32 index);
Av av_transform(Recorder *r, TransformKind kind, Av inner, Av settings);
Av av_range(Recorder *r, Av start, Av stop, Av step);
Av av_ref(Recorder *r, u32 cell);
Av av_formatted(Recorder *r, Av value, Av spec); /* texts */
Av av_joined(Recorder *r, const Av *texts, u32 count);
Av av_character(Recorder *r, Av point);
Av av_numbered(Recorder *r, Av number);
Av *rec_avs(Recorder *r, u32 n); /* room for n of them, zeros, as long as the graph lives. NULL: memory was refused */
Av av_record(Recorder *r, const Name *keys, const Av *items, u32 count);
Av av_lazy(Recorder *r, SourceId s, Value now);
Av av_outer(Recorder *r, SourceId s, Value v, Span why); /* from outside, not looked into */
Av av_force(Recorder *r, Av a); /* reads a lazy one; else a itself */
bool av_is_number(Recorder *r, Av a); /* forced */
bool av_keep(Recorder *r, Value v); /* counted until the trace ends */
Dim av_size_symbol(Recorder *r, SourceId s, i64 lo, i64 hi, i64 hint); /* an integer from outside */
Av av_length(Recorder *r, SourceId list, i64 now); /* the length of the list that a source names, as a size */
Av av_total(Recorder *r, SourceId list, i64 now); /* of the lists in it, all together */
ValueId av_value(Recorder *r, Av a); /* graph value of a number; 0 when it is none */
bool av_dim(Recorder *r, Av a, Dim *out); /* integer number as a size; makes an unbacked symbol if need be */
bool av_value_dim(Recorder *r, ValueId v, Dim *out); /* of a number that is there */
/* the same as a sum of what v was added up from, as far as that cannot wrap */
bool av_sum_dim(Recorder *r, ValueId v, Dim *out);
bool av_known_int(Recorder *r, Av a, i64 *out); /* integer known while tracing */
bool av_const_value(Recorder *r, Av a, Value *out); /* constant number, text, nil …; borrowed */
const char *av_kind_text(Recorder *r, Av a);
i32 av_field(const Recorder *r, Av record, Name key); /* index of the item, -1 */
/* how many parts it has, nothing being read for that; `most` is enough */
u32 av_parts(const Recorder *r, Av a, u32 most);
/* Lists and records of numbers, with static parts in between: what tree functions walk over, and what the operands
 * and results of constructs are. Lists in columns, queues, texts and the like hold numbers of the graph as well,
 * which no program ever sees: these are not leaves. A tree is opened first; then it has lists and records that are
 * known item by item, numbers, and static parts. */
/* so many items, or so many sources so far, that it stays closed */
bool av_is_many(const Recorder *r, SourceId s, AvKind kind, u32 items, const Shape *shape);
Av av_read_list(Recorder *r, SourceId s, Value v, Span why); /* item by item */
Av av_read_record(Recorder *r, SourceId s, Value v, Span why);
bool av_empty_items(Recorder *r, u32 n, u32 *first); /* room for n of Recorder.items */
bool av_is_opaque(const Recorder *r, Av a); /* a list or record from outside that was not taken apart */
/* one of these: what it holds is guarded. Stuck: it is too large, or another one too often */
Outcome av_take_apart(Recorder *r, Av a, Av *out);
bool rec_look_into(Recorder *r, List *l); /* a list that is packed is boxed; false: memory was refused */
/* The numbers of the graph that a value is made of, whatever they mean: of a list in columns these and how many
 * items count, of a computed text its characters. For control flow, which hands values on as they are; for what a
 * program calls a tree: record_tree.c. */
bool carry_leaves(Recorder *r, Av a, AvVec *out); /* in order; false: memory was refused */
Av carry_rebuild(Recorder *r, Av a, const Av *leaves, u32 *next); /* the same value of other numbers, in order */
bool carry_same(Recorder *r, Av a, Av b); /* alike but for the values of these numbers */

#endif
