/* mir_strips.c — loops with transcendental functions, a strip of trips at a time.
 *
 * A call for every element costs some 5 ns, of which most is waiting; the strip kernels of lang/math.loops give 256
 * elements in the time of 30 such calls, with the same bits. So an innermost loop over straight-line code becomes
 *
 *   for each block of STRIP trips
 *     for its trips: what the first functions are asked of, to buffers in the frame
 *     call their strip kernels
 *     … and so on for functions of their results
 *     for its trips: everything, with the functions' results out of the buffers
 *
 * What stands before the functions is computed again in the last loop: loads and a little arithmetic. Trips of such
 * a loop know nothing of each other (a kernel's buffers are disjoint or read where they are written, and a body that
 * loads from a buffer it stores to is left alone), so reading ahead changes nothing. */
#include <string.h>

#include "jit/scalar/mir_emitter.h"

enum { STRIP = 256, CALLS_MOST = 6, BODY_MOST = 400 };

typedef struct Strip {
  Emitter *e;
  u32 at, end;  /* positions of the head and of its END */
  LoopType type; /* of all functions */
  u32 calls[CALLS_MOST], count;
  u8 level[CALLS_MOST]; /* 1: of what needs no other of them */
  u32 levels;
  u8 need[BODY_MOST]; /* by position: to be emitted in the loop at hand */
} Strip;

static u32 find_call(const Strip *s, u32 id) {
  for (u32 i = 0; i < s->count; i++)
    if (s->calls[i] == id) return i;
  return UINT32_MAX;
}

/* The position of a value that the body computes, 0: it comes from outside. */
static u32 inside(const Strip *s, u32 id) {
  const LoopNode *n = en(s->e, id);
  if (n->op == LOOP_PARAM || n->op == LOOP_CONST || n->op == LOOP_TABLE || n->op == LOOP_INDEX || n->op == LOOP_CARRY ||
      n->op == LOOP_RESULT)
    return 0;
  u32 pos = s->e->lives.where[id];
  return pos > s->at && pos < s->end ? pos : 0;
}

static void need(void *ctx, u32 id) {
  Strip *s = ctx;
  u32 pos = inside(s, id);
  if (pos) s->need[pos - s->at] = 1;
}

/* Closes `need` over operands, from the back; functions stop it: their results lie in buffers. */
static void close_needs(Strip *s) {
  for (u32 pos = s->end; --pos > s->at;) {
    u32 id = s->e->fn->body.data[pos];
    if (s->need[pos - s->at] && find_call(s, id) == UINT32_MAX) loop_each_operand(s->e->fn, en(s->e, id), need, s);
  }
}

static const LoopMath *function_of(const Emitter *e, const LoopNode *n) {
  return loop_module_math(e->fn->module, name_text(&e->fn->module->names, (Name)n->imm), (LoopType)n->type);
}

static bool stores_to(const Strip *s, u32 buffer) {
  for (u32 pos = s->at + 1; pos < s->end; pos++) {
    const LoopNode *n = en(s->e, s->e->fn->body.data[pos]);
    if (n->op == LOOP_STORE && n->a == buffer) return true;
  }
  return false;
}

/* Is the body straight-line code with functions that have strips. */
static bool qualifies(Strip *s) {
  Emitter *e = s->e;
  u32 head = e->fn->body.data[s->at];
  const LoopNode *h = en(e, head);
  if (e->fn->kind != LOOP_KERNEL || (h->op != LOOP_PAR && h->op != LOOP_FOR && h->op != LOOP_REDUCE) ||
      h->a != 1 || h->b)
    return false;
  s->end = e->lives.end[head];
  if (s->end - s->at >= BODY_MOST) return false;
  for (u32 pos = s->at + 1; pos < s->end; pos++) {
    u32 id = e->fn->body.data[pos];
    const LoopNode *n = en(e, id);
    switch (loop_op_form((LoopOp)n->op)) {
      case LOOP_FORM_HEAD:
      case LOOP_FORM_MARK:
      case LOOP_FORM_CHECK:
      case LOOP_FORM_CALL:
      case LOOP_FORM_EXIT:
      case LOOP_FORM_PREFIX: return false;
      case LOOP_FORM_TERM:
        if (n->op != LOOP_YIELD) return false;
        break;
      case LOOP_FORM_ACCESS:
        if (n->op == LOOP_LOAD && stores_to(s, n->a)) return false;
        break;
      case LOOP_FORM_MATH: {
        const LoopMath *m = function_of(e, n);
        if (!m || !m->strip || n->c || (s->count && (LoopType)n->type != s->type)) break; /* a call for each element */
        if (s->count == CALLS_MOST) return false;
        s->type = (LoopType)n->type;
        s->calls[s->count++] = id;
        break;
      }
      default: break;
    }
  }
  return s->count > 0;
}

/* A function's level is one more than that of the functions which its operands need. */
static void find_levels(Strip *s) {
  for (u32 i = 0; i < s->count; i++) { /* in the order of the body: operands come first */
    memset(s->need, 0, s->end - s->at);
    loop_each_operand(s->e->fn, en(s->e, s->calls[i]), need, s);
    close_needs(s);
    s->level[i] = 1;
    for (u32 k = 0; k < i; k++)
      if (s->need[inside(s, s->calls[k]) - s->at] && s->level[k] >= s->level[i]) s->level[i] = (u8)(s->level[k] + 1);
    if (s->level[i] > s->levels) s->levels = s->level[i];
  }
}

/* ---- code ---------------------------------------------------------------------------------- */

static u32 buffer_bytes(const Strip *s) { return STRIP * loop_type_bytes(s->type); }

/* Element of buffer `number` that the trip at hand has. */
static MIR_op_t element(Emitter *e, const Strip *s, u32 number) {
  return M(e, mir_memory_type(s->type), e->strip_pointer, (i64)number * buffer_bytes(s));
}

bool mir_strip_value(Emitter *e, u32 id) {
  u32 call = e->strip ? find_call(e->strip, id) : UINT32_MAX;
  if (call == UINT32_MAX) return false;
  ins2(e, move_code(e->strip->type), R(e, mir_reg(e, id)), element(e, e->strip, 2 * call));
  return true;
}

static void begin_trips(Emitter *e, const Strip *s, u32 index, MIR_reg_t base, u32 room, MIR_label_t top) {
  mir_forget_addresses(e);
  mir_begin_streams(e, index, base);
  rr(e, MIR_MOV, mir_reg(e, index), base);
  rri(e, MIR_ADD, e->strip_pointer, mir_frame(e), room);
  put_label(e, top);
  (void)s;
}

static void end_trips(Emitter *e, const Strip *s, u32 index, MIR_reg_t limit, MIR_label_t top) {
  mir_step_streams(e, index);
  rri(e, MIR_ADD, e->strip_pointer, e->strip_pointer, loop_type_bytes(s->type));
  rri(e, MIR_ADD, mir_reg(e, index), mir_reg(e, index), 1);
  brr(e, MIR_BLT, top, mir_reg(e, index), limit);
  mir_forget_addresses(e);
}

static void put_operand(Emitter *e, const Strip *s, u32 number, u32 id) {
  MIR_op_t v = mir_op(e, id);
  if (v.mode != MIR_OP_REG) {
    MIR_reg_t r = mir_temp(e, s->type);
    ins2(e, move_code(s->type), R(e, r), v);
    v = R(e, r);
  }
  ins2(e, move_code(s->type), element(e, s, number), v);
}

/* Operands of the functions of one level to their buffers, each where the body reads it: later its register may be
 * another's. */
static void put_operands(Emitter *e, Strip *s, u32 level) {
  memset(s->need, 0, s->end - s->at);
  for (u32 i = 0; i < s->count; i++)
    if (s->level[i] == level) loop_each_operand(e->fn, en(e, s->calls[i]), need, s);
  close_needs(s);
  for (u32 pos = s->at + 1; pos < s->end && !e->failed; pos++) {
    u32 id = e->fn->body.data[pos], call = find_call(s, id);
    if (s->need[pos - s->at]) mir_statement(e, pos);
    if (call == UINT32_MAX || s->level[call] != level) continue;
    const LoopNode *n = en(e, id);
    put_operand(e, s, 2 * call, n->a);
    if (n->b) put_operand(e, s, 2 * call + 1, n->b);
  }
}

static void call_strips(Emitter *e, const Strip *s, u32 level, u32 room, MIR_reg_t count) {
  for (u32 i = 0; i < s->count; i++) {
    const LoopNode *n = en(e, s->calls[i]);
    if (s->level[i] != level) continue;
    MIR_reg_t x = mir_temp(e, LT_I64), y = mir_temp(e, LT_I64), answer = mir_temp(e, LT_I64);
    rri(e, MIR_ADD, x, mir_frame(e), (i64)room + 2 * i * buffer_bytes(s));
    rri(e, MIR_ADD, y, x, n->b ? buffer_bytes(s) : 0);
    MIR_op_t ops[5] = {R(e, answer), R(e, x), R(e, x), R(e, y), R(e, count)};
    mir_call(e, PROTO_STRIP, (void (*)(void))function_of(e, n)->strip, 5, ops);
  }
}

/* Opened folds take their elements in the last loop, in the order of the trips. */
static void put_loop(Emitter *e, Strip *s) {
  u32 head = e->fn->body.data[s->at], index = loop_index_of(head, 0);
  bool outermost = e->open.count == 0;
  MIR_op_t trips = mir_op(e, loop_trips_of(e->fn, head, 0));
  MIR_reg_t base = mir_temp(e, LT_I64), count = mir_temp(e, LT_I64), limit = mir_temp(e, LT_I64),
      behind = mir_temp(e, LT_I64);
  MIR_label_t block = new_label(e), short_block = new_label(e);
  mir_forget_addresses(e);
  OpenHead o = {.head = head, .next = new_label(e), .done = new_label(e), .live = true};
  ins2(e, MIR_MOV, R(e, base), outermost ? R(e, e->lo) : I(e, 0));
  ins2(e, MIR_MOV, R(e, behind), outermost ? R(e, e->hi) : trips);
  if (en(e, head)->op == LOOP_REDUCE) mir_open_fold(e, &o, s->at);
  if (!outermost) brr(e, MIR_BGE, o.next, base, behind);
  u32 room = mir_frame_room(e, 2 * s->count * buffer_bytes(s));
  if (!vec_push(e->alloc, &e->open, o)) {
    e->failed = true;
    return;
  }
  u32 depth = e->open.count - 1;
  Strip *around = e->strip;
  MIR_reg_t pointer_around = e->strip_pointer;
  e->strip = s;
  e->strip_pointer = mir_temp(e, LT_I64);
  put_label(e, block);
  rrr(e, MIR_SUB, count, behind, base);
  bri(e, MIR_BLE, short_block, count, STRIP);
  ri(e, MIR_MOV, count, STRIP);
  put_label(e, short_block);
  rrr(e, MIR_ADD, limit, base, count);
  for (u32 level = 1; level <= s->levels && !e->failed; level++) {
    MIR_label_t top = new_label(e);
    begin_trips(e, s, index, base, room, top);
    put_operands(e, s, level);
    end_trips(e, s, index, limit, top);
    call_strips(e, s, level, room, count);
  }
  MIR_label_t top = new_label(e);
  begin_trips(e, s, index, base, room, top);
  for (u32 pos = s->at + 1; pos < s->end && !e->failed; pos++) mir_statement(e, pos);
  end_trips(e, s, index, limit, top);
  rr(e, MIR_MOV, base, limit);
  brr(e, MIR_BLT, block, base, behind);
  e->strip = around;
  e->strip_pointer = pointer_around;
  if (e->failed) return;
  OpenHead *open = &e->open.data[depth];
  put_label(e, open->next);
  if (en(e, head)->op == LOOP_REDUCE) mir_close_fold(e, open, s->end);
  put_label(e, open->done);
  e->open.count--;
}

u32 mir_strip_loop(Emitter *e, u32 at) {
  if (!loop_is_head(en(e, e->fn->body.data[at]))) return 0;
  Strip s = {.e = e, .at = at};
  if (!qualifies(&s)) return 0;
  find_levels(&s);
  put_loop(e, &s);
  return s.end;
}
