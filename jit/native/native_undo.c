/* native_undo.c — arrays that calls inside change, and that are as they were where the code is left: each element that
 * is written is noted, with what it was (see native.h).
 *
 * A function that calls itself leaves from any depth by the exit in front of its outermost call, where the array has
 * to be what that call was given. A copy of the array for each outermost call would take longer than a call that
 * changes a few elements of a large one. So a store notes the place and the old element first; once there are as many
 * notes as the array has elements, the array as it was is made of them, and nothing is noted any more. The plan puts
 * back what was changed (PlanUndo of jit/plan/plan.h). */
#include <stdio.h>

#include "jit/native/native.h"

Dim native_elements(Native *n, const ArrayType *t) {
  Dim all = 1;
  for (u32 d = 0; d < t->rank; d++) all = size_mul(&n->g->sizes, all, t->dims[d]);
  if (all == DIM_NONE) native_bail(n, "a size expression that gets too large");
  return all;
}

static LoopType type_of_log(const NBuffer *b, NLog which) {
  return which == NLOG_old || which == NLOG_whole ? b->elem : loop_memory_of_dtype(DT_i64);
}

static bool add_log(Native *n, u32 buffer, const NBuffer *log, NLog which) {
  if (!vec_push(n->c->alloc, &n->buffers, *log)) return native_no_memory(n);
  if (which == NLOG_places) n->buffers.data[buffer].log = n->buffers.count;
  return true;
}

bool native_log_params(Native *n, u32 buffer) {
  for (u32 i = 0; i < NLOGS; i++) {
    char name[24];
    NBuffer log = {.slot = NO_SLOT, .elem = type_of_log(&n->buffers.data[buffer], i)};
    snprintf(name, sizeof name, "u%u", n->fn->params.count);
    log.ir = loop_param_buffer(n->fn, name, log.elem, LOOP_INOUT);
    if (!add_log(n, buffer, &log, i)) return false;
  }
  return true;
}

/* For how many elements there is room in the notes of an array by value. */
static Dim room_of(Native *n, const ArrayType *t) {
  enum { EACH = 8 };
  SizePool *p = &n->g->sizes;
  Dim all = native_elements(n, t), room = size_mul(p, all, size_const(p, EACH));
  if (room != DIM_NONE) room = size_add(p, room, size_const(p, n->c->vm->tunables.undo_notes));
  if (room == DIM_NONE) native_bail(n, "a size expression that gets too large");
  return room;
}

bool native_log_make(Native *n, u32 buffer, bool by_value) {
  if (n->buffers.data[buffer].log)
    return n->buffers.data[buffer].by_value == by_value ||
           native_bail(n, "an array that is given by value and that is changed by calls");
  n->buffers.data[buffer].by_value = by_value;
  Dim all = by_value ? room_of(n, &n->buffers.data[buffer].type)
                     : native_elements(n, &n->buffers.data[buffer].type);
  for (u32 i = 0; i < NLOGS && !n->why; i++) {
    const bool one = i == NLOG_count || (by_value && i == NLOG_whole);
    const NBuffer b = n->buffers.data[buffer];
    const u8 dtype = i == NLOG_old || i == NLOG_whole ? b.type.dtype : DT_i64;
    NBuffer log = {.temp = true, .elem = type_of_log(&b, i),
                   .type = {.dtype = dtype, .rank = 1, .dims = {one ? 1 : all}}};
    log.slot = plan_slot(n->c->plan, &(PlanSlot){.array = true, .dtype = dtype, .rank = 1});
    log.ir = native_buffer_param(n, log.elem, LOOP_INOUT);
    if (!add_log(n, buffer, &log, i)) return false;
  }
  return !n->why;
}

static u32 log_ir(const Native *n, u32 buffer, NLog which) {
  return n->buffers.data[n->buffers.data[buffer].log - 1 + which].ir;
}

void native_log_forget(Native *n, u32 buffer) {
  loop_store(n->fn, log_ir(n, buffer, NLOG_count), 0, NULL, 0, loop_const_i(n->fn, LT_I64, 0));
}

/* The function that makes the array as it was, once there are as many notes as it has elements: of the present array,
 * on which the notes are undone, the last one first. */
static LoopFn *saving(Native *n, u32 buffer) {
  const NBuffer b = n->buffers.data[buffer];
  const LoopType places = loop_memory_of_dtype(DT_i64);
  char name[24];
  if (b.saving) return b.saving;
  snprintf(name, sizeof name, "u%u", ++n->c->names);
  LoopFn *f = loop_fn_new(&n->c->code->module, LOOP_NATIVE, name);
  if (!f || !vec_push(n->c->alloc, &n->callees, f)) return native_no_memory(n), NULL;
  f->tag = n->c->names;
  u32 array = loop_param_buffer(f, "x", b.elem, LOOP_IN), at = loop_param_buffer(f, "at", places, LOOP_IN),
      old = loop_param_buffer(f, "old", b.elem, LOOP_IN), whole = loop_param_buffer(f, "whole", b.elem, LOOP_INOUT),
      count = loop_param_buffer(f, "count", places, LOOP_INOUT), all = loop_param(f, "all", LT_I64);
  u32 one = loop_const_i(f, LT_I64, 1), noted = loop_load(f, count, 0, NULL, 0),
      full = loop_emit(f, LOOP_EQ, LT_VOID, noted, all, 0);
  loop_begin_if(f, full, 0, NULL);
  u32 copy = loop_begin_for(f, NULL, all, 0, NULL), i = loop_index_of(copy, 0);
  loop_store_at(f, whole, i, loop_load_at(f, array, i));
  loop_next(f, 0, NULL);
  loop_end(f);
  u32 undo = loop_begin_for(f, NULL, all, 0, NULL), last = loop_emit(f, LOOP_SUB, LT_VOID, all, one, 0);
  u32 k = loop_emit(f, LOOP_SUB, LT_VOID, last, loop_index_of(undo, 0), 0);
  loop_store_at(f, whole, loop_load_at(f, at, k), loop_load_at(f, old, k));
  loop_next(f, 0, NULL);
  loop_end(f);
  loop_store(f, count, 0, NULL, 0, loop_emit(f, LOOP_ADD, LT_VOID, all, one, 0));
  loop_end(f);
  loop_return(f, 0, NULL);
  Buf why;
  buf_init(&why, n->c->alloc);
  bool ok = loop_fn_finish(f, &why) == WEFT_OK && loops_verify(f, &why) == WEFT_OK;
  if (!ok) native_bail(n, why.len ? arena_copy(&n->c->arena, why.data, why.len) : "a malformed function");
  buf_free(&why);
  return ok ? n->buffers.data[buffer].saving = f : NULL;
}

static u32 place_ir(Native *n, i64 constant, const LoopTerm *terms, u32 count) {
  u32 at = loop_const_i(n->fn, LT_I64, constant);
  for (u32 i = 0; i < count; i++) {
    const LoopTerm t = terms[i];
    u32 x = t.coef == 1 ? t.var
                        : loop_emit(n->fn, LOOP_MUL, LT_VOID, t.var, loop_const_i(n->fn, LT_I64, t.coef), 0);
    for (u32 k = 0; k < COUNT_OF(t.stride); k++)
      if (t.stride[k]) x = loop_emit(n->fn, LOOP_MUL, LT_VOID, x, t.stride[k], 0);
    at = loop_emit(n->fn, LOOP_ADD, LT_VOID, at, x, 0);
  }
  return at;
}

/* ---- arrays by value ---------------------------------------------------------------------------------- */

bool native_mark(Native *n, u32 buffer, u32 noted) {
  NMark *m = arena_alloc(&n->c->arena, sizeof *m);
  if (!m) return native_no_memory(n);
  if (!noted) noted = loop_load(n->fn, log_ir(n, buffer, NLOG_count), 0, NULL, 0);
  *m = (NMark){n->buffers.data[buffer].mark, n->buffers.data[buffer].version, noted};
  n->buffers.data[buffer].mark = m;
  return true;
}

const NMark *native_marks_meet(const NMark *a, const NMark *b) {
  u32 ahead = 0, behind = 0;
  for (const NMark *m = a; m; m = m->older) ahead++;
  for (const NMark *m = b; m; m = m->older) behind++;
  for (; ahead > behind; ahead--) a = a->older;
  for (; behind > ahead; behind--) b = b->older;
  for (; a != b; a = a->older) b = b->older;
  return a;
}

bool native_go_back(Native *n, u32 buffer, u32 version) {
  const NBuffer b = n->buffers.data[buffer];
  const NMark *to = b.mark;
  LoopFn *fn = n->fn;
  while (to && to->version != version) to = to->older;
  if (!to) return false;
  if (to == b.mark) return true;
  const u32 count = log_ir(n, buffer, NLOG_count), noted = loop_load(fn, count, 0, NULL, 0),
            last = loop_emit(fn, LOOP_SUB, LT_VOID, noted, loop_const_i(fn, LT_I64, 1), 0);
  const u32 undo = loop_begin_for(fn, NULL, loop_emit(fn, LOOP_SUB, LT_VOID, noted, to->noted, 0), 0, NULL);
  if (!undo) return native_bail(n, fn->failed ? fn->failed : "a malformed loop");
  const u32 k = loop_emit(fn, LOOP_SUB, LT_VOID, last, loop_index_of(undo, 0), 0);
  loop_store_at(fn, b.ir, loop_load_at(fn, log_ir(n, buffer, NLOG_places), k),
                loop_load_at(fn, log_ir(n, buffer, NLOG_old), k));
  loop_next(fn, 0, NULL);
  loop_end(fn);
  loop_store(fn, count, 0, NULL, 0, to->noted);
  n->buffers.data[buffer].mark = to;
  n->buffers.data[buffer].version = version;
  return !fn->failed || native_bail(n, fn->failed);
}

/* Where there is no room for another note the outermost call leaves. */
static bool note_by_value(Native *n, u32 buffer, i64 constant, const LoopTerm *terms, u32 count) {
  LoopFn *fn = n->fn;
  const NBuffer b = n->buffers.data[buffer];
  Dim room = room_of(n, &b.type);
  u32 *values, nvalues, number = n->why ? 0 : native_exit(n, NO_EXIT, &values, &nvalues);
  if (!number) return false;
  u32 noted = log_ir(n, buffer, NLOG_count), at = place_ir(n, constant, terms, count),
      k = loop_load(fn, noted, 0, NULL, 0);
  loop_check(fn, LOOP_CHECK_INDEX, number, k, native_dim_ir(n, room), nvalues, values);
  loop_store_at(fn, log_ir(n, buffer, NLOG_places), k, at);
  loop_store_at(fn, log_ir(n, buffer, NLOG_old), k, loop_load(fn, b.ir, constant, terms, count));
  u32 more = loop_emit(fn, LOOP_ADD, LT_VOID, k, loop_const_i(fn, LT_I64, 1), 0);
  loop_store(fn, noted, 0, NULL, 0, more);
  n->buffers.data[buffer].noted = more;
  return !n->why && (!fn->failed || native_bail(n, fn->failed));
}

/* ---- notes ----------------------------------------------------------------------------------------------- */

bool native_log(Native *n, u32 buffer, i64 constant, const LoopTerm *terms, u32 count) {
  if (n->buffers.data[buffer].by_value) return note_by_value(n, buffer, constant, terms, count);
  LoopFn *save = saving(n, buffer), *fn = n->fn;
  if (!save) return false;
  const NBuffer b = n->buffers.data[buffer];
  Dim elements = native_elements(n, &b.type);
  if (n->why) return false;
  u32 all = native_dim_ir(n, elements), noted = log_ir(n, buffer, NLOG_count), at = place_ir(n, constant, terms, count),
      k = loop_load(fn, noted, 0, NULL, 0), room = loop_emit(fn, LOOP_LT, LT_VOID, k, all, 0);
  if (!loop_begin_if(fn, room, 0, NULL)) return native_bail(n, "a malformed if");
  loop_store_at(fn, log_ir(n, buffer, NLOG_places), k, at);
  loop_store_at(fn, log_ir(n, buffer, NLOG_old), k, loop_load(fn, b.ir, constant, terms, count));
  loop_store(fn, noted, 0, NULL, 0, loop_emit(fn, LOOP_ADD, LT_VOID, k, loop_const_i(fn, LT_I64, 1), 0));
  loop_else(fn);
  u32 args[6] = {b.ir, log_ir(n, buffer, NLOG_places), log_ir(n, buffer, NLOG_old), log_ir(n, buffer, NLOG_whole),
                 noted, all};
  if (!loop_call(fn, save, COUNT_OF(args), args, 1, 0, NULL)) return native_bail(n, "a malformed call");
  loop_end(fn);
  return !fn->failed || native_bail(n, fn->failed);
}
