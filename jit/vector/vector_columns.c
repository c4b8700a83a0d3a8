/* vector_columns.c — loops over rows inside a loop over columns: each lane goes down a column of its own
 * (vector_emitter.h). A `while` goes on until no lane has more to do.
 *
 * `par i { reduce rows j { … x[i + j * n] … } store y[i] }`: a few vectors of columns at a time, row by row. A
 * reduction, a loop that carries values and a scan are all in the order of rows then, lane by lane, as ir.md section
 * 10 asks for: sums and products of floats in blocks of 64 rows, scans in segments of 16; what is above the first
 * block lies in the frame (VecRows).
 *
 * Many columns of many rows go by strips instead: some rows of all columns of a strip, its accumulators in the
 * frame, then the next rows, so that memory is read nearly in its order. A strip takes a pass for each loop over
 * rows, and one behind them that stores; what stands before a loop is computed again in each pass that needs it. */
#include <string.h>

#include "jit/vector/vector_emitter.h"

enum {
  COPIES = 4,
  FEWER = 2,             /* copies of longer bodies, of `while` and of places with strides */
  BODY_SHORT = 24,       /* statements */
  CARRIED_MOST = 6,
  STRIP_LOOPS = 4,       /* most loops over rows in one */
  STRIP_COLUMNS = 128,   /* fewer columns, or fewer rows, go a few vectors at a time */
  STRIP_ROWS = 32,
  STRIP_ROOM = 40 << 10, /* bytes of the frame */
  STRIP_TURN = 8,        /* rows of a strip's columns at a time; divides LOOP_ROW_BLOCK */
  STRIP_AHEAD = 512,     /* bytes of each row: every row's part is a page of its own, where nobody fetches ahead yet */
};

typedef struct RowLoop {
  u32 head, first, last; /* positions of its body, without the terminator */
  LoopOp op;             /* of a reduction or a scan */
  LoopReduce reduce;
  LoopType type;         /* of the accumulator: i1 is kept as 0 and 1 in i32 */
  bool flags, ordered;
  u32 axes;              /* of a reduction: the last one is the innermost */
  u32 carried;           /* accumulators */
  u32 state_at, rest;    /* frame: VecRows; rows that are left */
  u32 line, turn;        /* several axes: rows that are left of the innermost one; of the block at hand, later */
  VReg acc[ABREAST_MOST][CARRIED_MOST], before[ABREAST_MOST];
} RowLoop;

/* ---- which loops ------------------------------------------------------------------------------- */

typedef struct Sought {
  u32 id;
  bool found;
} Sought;

static void seek(void *ctx, u32 id) {
  Sought *s = ctx;
  s->found |= id == s->id;
}

static bool is_used(const VecFn *f, u32 id) {
  Sought s = {.id = id};
  for (u32 pos = 0; pos < f->fn->body.count; pos++) loop_each_operand(f->fn, vnode(f, body_node(f, pos)), seek, &s);
  return s.found;
}

/* Of a `while`: where its only `if` stands, which goes on to the next trip; behind it the loop ends with what it
 * carries. 0: it is another one. */
static u32 guard_of(const VecFn *f, u32 pos) {
  u32 id = body_node(f, pos), at = pos + 1, last = f->end[pos] - 1;
  const LoopNode *out = vnode(f, body_node(f, last));
  while (at < last && vnode(f, body_node(f, at))->op != LOOP_IF) at++;
  if (at == last || out->op != LOOP_BREAK || f->end[at] + 1 != last || vnode(f, body_node(f, at))->c) return 0;
  for (u32 i = 0; i < out->count; i++)
    if (loop_list(f->fn, out)[i] != loop_carry_of(f->fn, id, i) && is_used(f, loop_result_of(f->fn, id, i))) return 0;
  return vnode(f, body_node(f, f->end[at] - 1))->op == LOOP_NEXT ? at : 0;
}

static bool is_row_loop(const VecFn *f, u32 pos) {
  const LoopNode *h = vnode(f, body_node(f, pos));
  if (h->a != 1 && h->op != LOOP_WHILE && (h->op != LOOP_REDUCE || h->a > ROW_AXES)) return false;
  switch (h->op) {
    case LOOP_WHILE:
      if (!f->evex || !guard_of(f, pos)) return false;
      /* fallthrough */
    case LOOP_FOR:
      for (u32 i = 0; i < h->b && i < CARRIED_MOST; i++)
        if (loop_type_of(f->fn, loop_carry_of(f->fn, body_node(f, pos), i)) == LT_I1) return false;
      return h->b && h->b <= CARRIED_MOST;
    case LOOP_REDUCE: {
      LoopType t = loop_type_of(f->fn, loop_result_of(f->fn, body_node(f, pos), 0));
      LoopOp op = loop_reduce_op((LoopReduce)h->aux);
      return h->mem == LOOP_ORDER_ROWS || !loop_is_float(t) || (op != LOOP_ADD && op != LOOP_MUL);
    }
    case LOOP_SCAN: return loop_type_of(f->fn, loop_result_of(f->fn, body_node(f, pos), 0)) != LT_I1;
    default: return false;
  }
}

/* Of the access: an element for each column, or one for all; with AVX-512 at places with strides, or computed ones. */
static bool goes_along(const VecFn *f, u32 head, u32 first, u32 last, const LoopNode *n, bool *unit) {
  if (n->op != LOOP_LOAD && n->op != LOOP_STORE) return true;
  VAccess kind = access_kind(f, n, head, first, last);
  *unit |= kind != VA_SAME;
  if (kind == VA_UNIT) return true;
  if (n->op != LOOP_LOAD || kind == VA_BACK) return false;
  return kind == VA_SAME || (f->evex && loop_type_bytes((LoopType)n->mem) >= 4);
}

typedef struct OfColumn {
  const VecFn *f;
  u32 head, first, last, row; /* positions of the body; of the loop over rows */
  bool found;
} OfColumn;

static void of_column(void *ctx, u32 id) {
  OfColumn *o = ctx;
  const LoopNode *n = vnode(o->f, id);
  bool leaf = n->op == LOOP_INDEX || n->op == LOOP_RESULT || n->op == LOOP_CARRY;
  if (n->op == LOOP_PARAM || n->op == LOOP_CONST || n->op == LOOP_TABLE) return;
  u32 at = o->f->where[leaf ? n->a : id];
  o->found |= at >= o->first - 1 && at < o->row;
}

/* Does a loop over rows go by the column: else it is the same for all. */
static bool goes_by_column(const VecFn *f, u32 pos, u32 first, u32 last) {
  OfColumn o = {.f = f, .first = first, .last = last, .row = pos};
  for (u32 at = pos; at < f->end[pos]; at++) {
    const LoopNode *n = vnode(f, body_node(f, at));
    loop_each_operand(f->fn, n, of_column, &o);
  }
  return o.found;
}

/* Has the loop over rows the same trips in every column? Of a `while` lanes end one by one. */
static bool has_common_trips(const VecFn *f, u32 pos) {
  const LoopNode *h = vnode(f, body_node(f, pos));
  if (h->op == LOOP_WHILE) return true;
  for (u32 axis = 0; axis < h->a; axis++) {
    const LoopNode *t = vnode(f, loop_trips_of(f->fn, body_node(f, pos), axis));
    if (t->op != LOOP_PARAM && t->op != LOOP_CONST) return false;
  }
  return true;
}

bool is_columns(const VecFn *f, u32 pos) {
  u32 head = body_node(f, pos), first = pos + 1, last = f->end[pos] - 1, loops = 0;
  bool unit = false;
  const LoopNode *h = vnode(f, head);
  if ((h->op != LOOP_PAR && h->op != LOOP_FOR) || h->a != 1 || h->b || f->end[pos] <= first) return false;
  for (u32 at = first; at <= last; at++) {
    const LoopNode *n = vnode(f, body_node(f, at));
    bool of_row = false;
    if (loop_is_head(n)) {
      if (!is_row_loop(f, at) || !has_common_trips(f, at)) return false;
      loops++;
      u32 guard = n->op == LOOP_WHILE ? guard_of(f, at) : 0, begin = at;
      for (u32 end = f->end[at]; ++at < end;) {
        n = vnode(f, body_node(f, at));
        LoopForm form = loop_op_form((LoopOp)n->op);
        if (guard && (at == guard || at == f->end[guard] || at == f->end[guard] - 1)) continue;
        if (form == LOOP_FORM_HEAD || form == LOOP_FORM_CALL || form == LOOP_FORM_CHECK || form == LOOP_FORM_MARK ||
            ((form == LOOP_FORM_EXIT || form == LOOP_FORM_TERM) && at + 1 != end))
          return false;
        if (form != LOOP_FORM_EXIT && !goes_along(f, head, first, last, n, &of_row)) return false;
      }
      if (!of_row && !goes_by_column(f, begin, first, last)) return false;
      continue;
    }
    LoopForm form = loop_op_form((LoopOp)n->op);
    if (form == LOOP_FORM_MARK || form == LOOP_FORM_CALL || form == LOOP_FORM_EXIT || form == LOOP_FORM_PREFIX ||
        (form == LOOP_FORM_CHECK && !f->evex))
      return false;
    if (!goes_along(f, head, first, last, n, &unit)) return false;
  }
  return loops > 0;
}

/* ---- a loop over rows --------------------------------------------------------------------------- */

static void move_to(VecFn *f, VReg to, VReg from) { put(f, (VIns){.op = P_COPY, .dst = to, .a = from}); }

static void columns_use_copy(VecFn *f, u32 copy) {
  f->copy = copy;
  f->value = f->values[copy];
}

static VReg start_of(VecFn *f, const RowLoop *r, u32 i) {
  const LoopNode *h = vnode(f, body_node(f, r->head));
  if (h->op == LOOP_FOR || h->op == LOOP_WHILE) return operand(f, loop_init_of(f->fn, body_node(f, r->head), i));
  return lower_constant(f, r->type, r->flags ? r->reduce == LOOP_REDUCE_AND : loop_reduce_identity(r->reduce, r->type));
}

static void begin_rows(VecFn *f, RowLoop *r, u32 copies) {
  for (u32 k = 0; k < copies; k++)
    for (u32 i = 0; i < r->carried; i++) {
      columns_use_copy(f, k);
      if (!r->acc[k][i]) r->acc[k][i] = new_vec(f);
      move_to(f, r->acc[k][i], start_of(f, r, i));
    }
}

/* What the trip carries on: all of it is known before any is written. */
static void carry_on(VecFn *f, RowLoop *r, u32 copy) {
  const LoopNode *next = vnode(f, body_node(f, r->last + 1));
  VReg to[CARRIED_MOST];
  for (u32 i = 0; i < r->carried && !f->failed; i++) {
    VReg v = operand(f, loop_list(f->fn, next)[i]);
    for (u32 k = 0; k < r->carried; k++)
      if (k != i && v == r->acc[copy][k]) move_to(f, to[i] = new_vec(f), v), v = 0;
    if (v) to[i] = v;
  }
  for (u32 i = 0; i < r->carried && !f->failed; i++)
    if (to[i] != r->acc[copy][i]) move_to(f, r->acc[copy][i], to[i]);
}

static void fold(VecFn *f, RowLoop *r, u32 copy, u32 value) {
  VReg v = operand(f, value);
  if (r->flags) v = numbers_of_flags(f, v);
  if (!f->failed) move_to(f, r->acc[copy][0], lower_op(f, r->op, r->type, r->acc[copy][0], v, 0));
}

static void one_row(VecFn *f, RowLoop *r, u32 copy) {
  u32 head = body_node(f, r->head);
  const LoopNode *h = vnode(f, head);
  columns_use_copy(f, copy);
  for (u32 axis = 0; axis < r->axes; axis++) f->value[loop_index_of(head, axis)] = 0;
  for (u32 i = 0; h->op == LOOP_FOR && i < r->carried; i++) f->value[loop_carry_of(f->fn, head, i)] = r->acc[copy][i];
  for (u32 pos = r->first; pos <= r->last && !f->failed; pos++) {
    u32 id = body_node(f, pos);
    if (vnode(f, id)->op != LOOP_PREFIX) {
      statement(f, id);
      continue;
    }
    fold(f, r, copy, vnode(f, id)->a);
    f->value[id] = new_vec(f);
    move_to(f, f->value[id],
            r->ordered ? lower_op(f, r->op, r->type, r->before[copy], r->acc[copy][0], 0) : r->acc[copy][0]);
  }
  if (f->failed) return;
  if (h->op == LOOP_FOR) carry_on(f, r, copy);
  else if (h->op == LOOP_REDUCE) fold(f, r, copy, loop_list(f->fn, vnode(f, body_node(f, r->last + 1)))[0]);
}

/* ---- a `while`: lanes that are done keep what they have --------------------------------------------- */

/* The lanes that the columns at hand have. */
static VReg all_lanes(VecFn *f) {
  VReg m = new_mask(f);
  if (f->tail) {
    g_load(f, RCX, RSP, (i32)f->limit_slot);
    g_alu(f, ALU_SUB, RCX, R15);
  }
  g_imm(f, RAX, ((u64)1 << f->lanes) - 1);
  if (f->tail) put(f, (VIns){.op = G_LOW});
  put(f, (VIns){.op = M_FIRST + K_KFROM, .dst = m, .x = RAX});
  return m;
}

static void while_copy(VecFn *f, const RowLoop *r, u32 copy, VReg going) {
  columns_use_copy(f, copy);
  f->going = going;
  for (u32 i = 0; i < r->carried; i++)
    f->value[loop_carry_of(f->fn, body_node(f, r->head), i)] = r->acc[copy][i];
}

static void while_next(VecFn *f, RowLoop *r, u32 copy, const LoopNode *next) {
  VReg to[CARRIED_MOST];
  u32 head = body_node(f, r->head);
  for (u32 i = 0; i < r->carried && !f->failed; i++) {
    VReg v = operand(f, loop_list(f->fn, next)[i]), was = r->acc[copy][i];
    to[i] = v == was ? was : lower_select(f, loop_type_of(f->fn, loop_carry_of(f->fn, head, i)), f->going, v, was);
  }
  for (u32 i = 0; i < r->carried && !f->failed; i++)
    if (to[i] != r->acc[copy][i]) move_to(f, r->acc[copy][i], to[i]);
}

static void while_rows(VecFn *f, RowLoop *r, u32 copies) {
  u32 guard = guard_of(f, r->head), last = f->end[guard] - 1, top = g_label(f), done = g_label(f), begin;
  VReg going[ABREAST_MOST];
  for (u32 k = 0; k < copies; k++) going[k] = all_lanes(f);
  begin = f->ins.count;
  g_put(f, top);
  for (u32 k = 0; k < copies && !f->failed; k++) {
    while_copy(f, r, k, going[k]);
    for (u32 pos = r->first; pos < guard && !f->failed; pos++) statement(f, body_node(f, pos));
    VReg holds = operand(f, loop_cond_of(f->fn, body_node(f, guard)));
    put(f, (VIns){.op = M_FIRST + K_KAND, .dst = going[k], .a = going[k], .b = holds});
  }
  for (u32 k = 0; k < copies; k++) {
    if (k) g_mov(f, RCX, RAX);
    put(f, (VIns){.op = M_FIRST + K_KTO, .a = going[k], .x = RAX});
    if (k) g_alu(f, ALU_OR, RAX, RCX);
  }
  g_alu_imm(f, ALU_CMP, RAX, 0);
  g_jcc(f, CC_E, done);
  for (u32 k = 0; k < copies && !f->failed; k++) {
    while_copy(f, r, k, going[k]);
    for (u32 pos = guard + 1; pos < last && !f->failed; pos++) statement(f, body_node(f, pos));
    while_next(f, r, k, vnode(f, body_node(f, last)));
  }
  f->going = 0;
  g_jump(f, top);
  end_span(f, begin);
  g_put(f, done);
}

/* R14 rows, at least one. */
static void rows(VecFn *f, RowLoop *r, u32 copies) {
  u32 head = body_node(f, r->head), index = loop_index_of(head, r->axes - 1), top = g_label(f), begin = f->ins.count;
  bool used = false;
  g_put(f, top);
  for (u32 k = 0; k < copies && !f->failed; k++) one_row(f, r, k), used |= f->value[index] != 0;
  step_rows(f, head, r->axes - 1);
  if (used) {
    g_load(f, RAX, RSP, (i32)f->index_slot[index]);
    g_alu_imm(f, ALU_ADD, RAX, 1);
    g_save(f, RSP, (i32)f->index_slot[index], RAX);
  }
  g_alu_imm(f, ALU_SUB, R14, 1);
  g_jcc(f, CC_NE, top);
  end_span(f, begin);
}

/* The innermost axis begins anew: the ones around it go on. */
static void next_line(VecFn *f, const RowLoop *r) {
  u32 head = body_node(f, r->head), done = g_label(f);
  word_to(f, RAX, loop_trips_of(f->fn, head, r->axes - 1));
  g_save(f, RSP, (i32)r->line, RAX);
  for (u32 axis = r->axes - 1; axis > 0; axis--) {
    u32 outer = f->index_slot[loop_index_of(head, axis - 1)];
    step_rows(f, head, axis - 1);
    g_imm(f, RAX, 0);
    g_save(f, RSP, (i32)f->index_slot[loop_index_of(head, axis)], RAX);
    g_load(f, RAX, RSP, (i32)outer);
    g_alu_imm(f, ALU_ADD, RAX, 1);
    g_save(f, RSP, (i32)outer, RAX);
    if (axis == 1) break;
    word_to(f, RCX, loop_trips_of(f->fn, head, axis - 1));
    g_alu(f, ALU_CMP, RAX, RCX);
    g_jcc(f, CC_L, done);
  }
  g_put(f, done);
}

/* The same over several axes: as many rows as the innermost one still has, then its next line. */
static void lines(VecFn *f, RowLoop *r, u32 copies) {
  u32 top = g_label(f), same = g_label(f), begin;
  if (r->axes == 1) {
    rows(f, r, copies);
    return;
  }
  g_save(f, RSP, (i32)r->turn, R14);
  begin = f->ins.count;
  g_put(f, top);
  g_load(f, RCX, RSP, (i32)r->line);
  g_load(f, R14, RSP, (i32)r->turn);
  g_alu(f, ALU_CMP, R14, RCX);
  put(f, (VIns){.op = G_CMOV, .imm = CC_G, .dst = R14, .a = RCX});
  g_alu(f, ALU_SUB, RCX, R14);
  g_save(f, RSP, (i32)r->line, RCX);
  g_load(f, RCX, RSP, (i32)r->turn);
  g_alu(f, ALU_SUB, RCX, R14);
  g_save(f, RSP, (i32)r->turn, RCX);
  rows(f, r, copies);
  g_load(f, RAX, RSP, (i32)r->line);
  g_alu_imm(f, ALU_CMP, RAX, 0);
  g_jcc(f, CC_NE, same);
  next_line(f, r);
  g_put(f, same);
  g_load(f, RAX, RSP, (i32)r->turn);
  g_alu_imm(f, ALU_CMP, RAX, 0);
  g_jcc(f, CC_NE, top);
  end_span(f, begin);
}

static void accumulators(VecFn *f, RowLoop *r, u32 copies, bool back) {
  u32 bytes = element_bytes(r->type);
  u8 length = length_of(bytes, f->lanes);
  for (u32 k = 0; k < copies; k++) {
    VecMem m = mem_at(RSP, (i32)(r->state_at + offsetof(VecRows, value) + k * f->lanes * bytes));
    VReg v = vnode(f, body_node(f, r->head))->op == LOOP_SCAN && back ? r->before[k] : r->acc[k][0];
    bool one = f->lanes == 1;
    if (back)
      put(f, (VIns){.op = one ? (bytes == 8 ? V_MOVSD_FROM : V_MOVSS_FROM) : V_MOVUPS, .length = one ? L128 : length,
                    .dst = v, .mem = m});
    else v_save(f, one ? (bytes == 8 ? V_MOVSD_TO : V_MOVSS_TO) : V_MOVUPS_TO, one ? L128 : length, m, v);
  }
}

/* Sums and products of floats: block by block. R14: all rows. */
static void ordered_rows(VecFn *f, RowLoop *r, u32 copies) {
  bool scan = vnode(f, body_node(f, r->head))->op == LOOP_SCAN;
  u32 block = g_label(f), push = g_label(f), done = g_label(f), begin,
      block_rows = scan ? LOOP_SCAN_SEGMENT : LOOP_ROW_BLOCK;
  g_save(f, RSP, (i32)r->rest, R14);
  g_imm(f, RAX, 0);
  g_save(f, RSP, (i32)(r->state_at + offsetof(VecRows, used)), RAX);
  g_imm(f, RAX, copies * f->lanes);
  g_save(f, RSP, (i32)(r->state_at + offsetof(VecRows, n)), RAX);
  for (u32 k = 0; scan && k < copies; k++) move_to(f, r->before[k] = new_vec(f), start_of(f, r, 0));
  begin = f->ins.count;
  g_put(f, block);
  begin_rows(f, r, copies);
  g_load(f, RAX, RSP, (i32)r->rest);
  g_imm(f, R14, block_rows);
  g_alu(f, ALU_CMP, R14, RAX);
  put(f, (VIns){.op = G_CMOV, .imm = CC_G, .dst = R14, .a = RAX});
  g_alu(f, ALU_SUB, RAX, R14);
  g_save(f, RSP, (i32)r->rest, RAX);
  lines(f, r, copies);
  g_load(f, RAX, RSP, (i32)r->rest);
  g_alu_imm(f, ALU_CMP, RAX, 0);
  if (scan) {
    g_jcc(f, CC_E, done);
  } else {
    g_jcc(f, CC_NE, push);
    g_load(f, RAX, RSP, (i32)(r->state_at + offsetof(VecRows, used)));
    g_alu_imm(f, ALU_CMP, RAX, 0);
    g_jcc(f, CC_E, done);
    g_put(f, push);
  }
  accumulators(f, r, copies, false);
  call_words(f, (u64)(uintptr_t)(scan ? vec_scan_push : vec_rows_push), r->state_at, r->op, r->type);
  if (scan) accumulators(f, r, copies, true);
  g_load(f, RAX, RSP, (i32)r->rest);
  g_alu_imm(f, ALU_CMP, RAX, 0);
  g_jcc(f, CC_NE, block);
  end_span(f, begin);
  if (!scan) {
    call_words(f, (u64)(uintptr_t)vec_rows_end, r->state_at, r->op, r->type);
    accumulators(f, r, copies, true);
  }
  g_put(f, done);
}

static RowLoop row_loop_at(const VecFn *f, u32 pos) {
  const LoopNode *h = vnode(f, body_node(f, pos));
  bool carries = h->op == LOOP_FOR || h->op == LOOP_WHILE;
  RowLoop r = {.head = pos, .first = pos + 1, .last = f->end[pos] - 1, .carried = carries ? h->b : 1,
               .axes = h->op == LOOP_WHILE ? 0 : h->a};
  if (h->op != LOOP_SCAN) r.last--; /* its terminator */
  if (carries) return r;
  r.reduce = (LoopReduce)h->aux;
  r.op = loop_reduce_op(r.reduce);
  r.type = loop_type_of(f->fn, loop_result_of(f->fn, body_node(f, pos), 0));
  r.flags = r.type == LT_I1;
  if (r.flags) r.type = LT_I32;
  r.ordered = loop_is_float(r.type) && (r.op == LOOP_ADD || r.op == LOOP_MUL);
  return r;
}

static void row_results(VecFn *f, const RowLoop *r, u32 copy) {
  columns_use_copy(f, copy);
  for (u32 i = 0; i < r->carried; i++)
    f->value[loop_result_of(f->fn, body_node(f, r->head), i)] = r->flags ? flags_of_numbers(f, r->acc[copy][i])
                                                                         : r->acc[copy][i];
}

static void row_loop(VecFn *f, u32 pos, u32 copies) {
  u32 head = body_node(f, pos), none = g_label(f), done = g_label(f);
  const LoopNode *h = vnode(f, head);
  u32 column = loop_index_of(f->vector_head, 0);
  VReg known[ABREAST_MOST]; /* what a loop that may have no trips computes is nothing behind it */
  for (u32 k = 0; k < copies; k++) known[k] = f->values[k][column];
  RowLoop r = row_loop_at(f, pos);
  if (r.ordered) r.state_at = (u32)frame_room(f, sizeof(VecRows), 64), r.rest = (u32)frame_room(f, 8, 8);
  begin_rows(f, &r, copies);
  if (h->op == LOOP_WHILE) {
    while_rows(f, &r, copies);
    for (u32 k = 0; k < copies && !f->failed; k++) row_results(f, &r, k);
    return;
  }
  if (r.axes > 1) r.line = (u32)frame_room(f, 8, 8), r.turn = (u32)frame_room(f, 8, 8);
  word_to(f, R14, loop_trips_of(f->fn, head, r.axes - 1));
  if (r.axes > 1) g_save(f, RSP, (i32)r.line, R14);
  for (u32 axis = 0; axis + 1 < r.axes; axis++) {
    word_to(f, RAX, loop_trips_of(f->fn, head, axis));
    put(f, (VIns){.op = G_IMUL, .dst = R14, .a = RAX});
  }
  g_alu_imm(f, ALU_CMP, R14, 0);
  g_jcc(f, CC_LE, none);
  if (r.ordered) ordered_rows(f, &r, copies);
  else lines(f, &r, copies);
  g_jump(f, done);
  g_put(f, none);
  for (u32 k = 0; h->op == LOOP_REDUCE && !r.flags && k < copies; k++)
    move_to(f, r.acc[k][0], lower_constant(f, r.type, loop_reduce_empty(r.reduce, r.type)));
  g_put(f, done);
  for (u32 k = 0; k < copies && !f->failed; k++) {
    row_results(f, &r, k);
    f->value[column] = known[k];
  }
}

/* ---- strips -------------------------------------------------------------------------------------- */

typedef enum StripPass { SP_BEGIN, SP_ROWS, SP_END } StripPass;

typedef struct Strips {
  u32 count, columns, wide;    /* loops over rows; most columns of a strip; words of an accumulator in the frame */
  u32 heads[STRIP_LOOPS], at[STRIP_LOOPS][CARRIED_MOST]; /* positions; frame: their accumulators */
  u32 state_at[STRIP_LOOPS];   /* frame: VecStrip of sums and products of floats, whose accumulators are its `value` */
  /* frame: columns of the strip; the first row, rows that are left, rows of this turn */
  u32 low, high, row, left, turn;
  StripPass pass;
  u32 loop;                    /* the pass is of this loop */
} Strips;

static LoopType carried_type(const VecFn *f, const RowLoop *r, u32 i) {
  u32 head = body_node(f, r->head);
  return vnode(f, head)->op == LOOP_FOR ? loop_type_of(f->fn, loop_carry_of(f->fn, head, i)) : r->type;
}

static bool loads_from(const VecFn *f, const VLoop *l, u32 buffer) {
  for (u32 pos = l->first; pos <= l->last; pos++)
    if (vnode(f, body_node(f, pos))->op == LOOP_LOAD && vnode(f, body_node(f, pos))->a == buffer) return true;
  return false;
}

/* Is each row of it read in order? */
static bool reads_rows(const VecFn *f, const VLoop *l, const LoopNode *n) {
  bool of_row = false;
  if (n->op != LOOP_LOAD || access_kind(f, n, l->head, l->first, l->last) != VA_UNIT) return false;
  for (u32 i = 0; i < n->count; i++) {
    const LoopNode *v = vnode(f, loop_terms(f->fn, n)[i].var);
    of_row |= loop_terms(f->fn, n)[i].var && v->op == LOOP_INDEX && v->a != l->head;
  }
  return of_row;
}

/* Loops without stores, of trips that are known outside; nothing that is stored is read. */
static bool goes_by_strips(const VecFn *f, const VLoop *l, u32 widest, Strips *s) {
  u32 room = 0, wide = 0;
  bool in_order = false;
  for (u32 pos = l->first; pos <= l->last; pos++) in_order |= reads_rows(f, l, vnode(f, body_node(f, pos)));
  if (!in_order) return false;
  for (u32 pos = l->first; pos <= l->last; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    if ((n->op == LOOP_STORE && loads_from(f, l, n->a)) || n->op == LOOP_CHECK || n->op == LOOP_WHILE) return false;
    if (n->op == LOOP_LOAD && access_kind(f, n, l->head, l->first, l->last) > VA_SAME) return false;
    if (!loop_is_head(n)) continue;
    const LoopNode *t = vnode(f, loop_trips_of(f->fn, body_node(f, pos), 0));
    if (n->a > 1 || n->op == LOOP_SCAN || s->count == STRIP_LOOPS || (t->op != LOOP_PARAM && t->op != LOOP_CONST) ||
        (t->op == LOOP_CONST && (i64)t->imm < STRIP_ROWS))
      return false;
    for (u32 k = pos + 1; k < f->end[pos]; k++) {
      const LoopNode *x = vnode(f, body_node(f, k));
      if (x->op == LOOP_STORE) return false;
      if (x->op == LOOP_LOAD && access_kind(f, x, l->head, l->first, l->last) > VA_SAME) return false;
    }
    RowLoop r = row_loop_at(f, pos);
    room += r.ordered ? (u32)sizeof(VecStrip) : r.carried * VEC_STRIP_WORDS * 8;
    wide += r.ordered ? 2 : r.carried;
    s->heads[s->count++] = pos;
    pos = f->end[pos];
  }
  s->wide = VEC_STRIP_WORDS << (wide == 1); /* the longer the parts of rows are, the nearer to memory's order */
  s->columns = f->level->strip ? f->level->strip : s->wide * 8 / widest;
  return room <= STRIP_ROOM;
}

static void strip_room(VecFn *f, Strips *s) {
  u32 *slots[] = {&s->low, &s->high, &s->row, &s->left, &s->turn};
  for (u32 i = 0; i < COUNT_OF(slots); i++) *slots[i] = (u32)frame_room(f, 8, 8);
  for (u32 p = 0; p < s->count; p++) {
    RowLoop r = row_loop_at(f, s->heads[p]);
    if (r.ordered) {
      s->state_at[p] = (u32)frame_room(f, sizeof(VecStrip), 64);
      s->at[p][0] = s->state_at[p] + (u32)offsetof(VecStrip, value);
    } else {
      for (u32 i = 0; i < r.carried; i++) s->at[p][i] = (u32)frame_room(f, s->wide * 8, 64);
    }
  }
}

/* Accumulators of the columns from R15 on, to the frame or from it. */
static void strip_values(VecFn *f, const Strips *s, u32 p, RowLoop *r, u32 copies, bool load) {
  for (u32 i = 0; i < r->carried; i++) {
    u32 bytes = element_bytes(carried_type(f, r, i));
    u8 length = f->lanes == 1 ? (u8)L128 : length_of(bytes, f->lanes);
    g_mov(f, RAX, R15);
    g_alu_load(f, ALU_SUB, RAX, RSP, (i32)s->low);
    put(f, (VIns){.op = G_LEA, .dst = RAX, .mem = {.used = true, .base = RSP, .index = RAX, .scale = bytes == 8 ? 3 : 2,
                                                   .disp = (i32)s->at[p][i]}});
    for (u32 k = 0; k < copies; k++) {
      VecMem m = mem_at(RAX, (i32)(k * f->lanes * bytes));
      if (load) r->acc[k][i] = v_load(f, f->lanes > 1 ? V_MOVUPS : bytes == 8 ? V_MOVSD_FROM : V_MOVSS_FROM, length, m);
      else v_save(f, f->lanes > 1 ? V_MOVUPS_TO : bytes == 8 ? V_MOVSD_TO : V_MOVSS_TO, length, m, r->acc[k][i]);
    }
  }
}

static void strip_block(VecFn *f, const VLoop *l, const Strips *s, u32 copies) {
  u32 of = s->pass == SP_END ? s->count : s->loop, last = s->pass == SP_END ? l->last : s->heads[of];
  for (u32 p = 0; p < s->count; p++) { /* streams begin at the strip's row */
    if (!p) g_load(f, RAX, RSP, (i32)s->row);
    g_save(f, RSP, (i32)f->index_slot[loop_index_of(body_node(f, s->heads[p]), 0)], RAX);
  }
  begin_streams(f, 8, false);
  for (u32 k = 0; k < copies; k++) columns_use_copy(f, k), f->value[loop_index_of(l->head, 0)] = 0;
  for (u32 pos = l->first, p = 0; pos <= last && !f->failed; pos++) {
    u32 id = body_node(f, pos);
    const LoopNode *n = vnode(f, id);
    if (!loop_is_head(n)) {
      for (u32 k = 0; k < copies && !f->failed && (n->op != LOOP_STORE || s->pass == SP_END); k++)
        columns_use_copy(f, k), statement(f, id);
      continue;
    }
    RowLoop r = row_loop_at(f, pos);
    if (p < of) { /* known */
      strip_values(f, s, p++, &r, copies, true);
      for (u32 k = 0; k < copies; k++) row_results(f, &r, k);
      pos = f->end[pos];
      continue;
    }
    if (s->pass == SP_BEGIN) {
      begin_rows(f, &r, copies);
    } else {
      strip_values(f, s, p, &r, copies, true);
      g_load(f, R14, RSP, (i32)s->turn);
      f->ahead = STRIP_AHEAD;
      rows(f, &r, copies);
      f->ahead = 0;
    }
    strip_values(f, s, p, &r, copies, false);
  }
  columns_use_copy(f, 0);
}

/* ---- columns ------------------------------------------------------------------------------------- */

/* The columns from R15 on, `copies` vectors of them. */
static void block(VecFn *f, const VLoop *l, u32 copies) {
  for (u32 pos = l->first; pos <= l->last; pos++)
    if (loop_is_head(vnode(f, body_node(f, pos)))) { /* streams begin at row 0 */
      g_imm(f, RAX, 0);
      for (u32 axis = 0; axis < row_loop_at(f, pos).axes; axis++)
        g_save(f, RSP, (i32)f->index_slot[loop_index_of(body_node(f, pos), axis)], RAX);
    }
  begin_streams(f, 8, false);
  for (u32 k = 0; k < copies; k++) columns_use_copy(f, k), f->value[loop_index_of(l->head, 0)] = 0;
  for (u32 pos = l->first; pos <= l->last && !f->failed; pos++) {
    if (loop_is_head(vnode(f, body_node(f, pos)))) {
      row_loop(f, pos, copies);
      pos = f->end[pos];
      continue;
    }
    if (vnode(f, body_node(f, pos))->op == LOOP_CHECK) g_load(f, R14, RSP, (i32)f->limit_slot);
    for (u32 k = 0; k < copies && !f->failed; k++) columns_use_copy(f, k), statement(f, body_node(f, pos));
  }
  columns_use_copy(f, 0);
}

/* Vectors of columns side by side. */
static u32 copies_of(const VecFn *f, const VLoop *l) {
  u32 statements = 0;
  bool few = !f->evex;
  for (u32 pos = l->first; pos <= l->last; pos++) {
    const LoopNode *n = vnode(f, body_node(f, pos));
    statements += n->op == LOOP_MATH ? BODY_SHORT : 1;
    few |= n->op == LOOP_WHILE ||
           (n->op == LOOP_LOAD && access_kind(f, n, l->head, l->first, l->last) > VA_SAME);
  }
  return few || statements > BODY_SHORT ? FEWER : COPIES;
}

/* Blocks as long as they are whole; masked, one more at the end. */
static void stage(VecFn *f, const VLoop *l, const Strips *s, u32 limit, u32 lanes, u32 copies, bool masked) {
  u32 top = g_label(f), done = g_label(f), step = masked ? 1 : lanes * copies, begin = f->ins.count;
  f->lanes = lanes;
  f->tail = masked;
  g_put(f, top);
  g_load(f, RCX, RSP, (i32)limit);
  g_alu(f, ALU_SUB, RCX, R15);
  g_alu_imm(f, ALU_CMP, RCX, step);
  g_jcc(f, CC_L, done);
  if (masked) put(f, (VIns){.op = G_TAIL});
  if (s) strip_block(f, l, s, copies);
  else block(f, l, copies);
  g_alu_imm(f, ALU_ADD, R15, lanes * copies);
  g_jump(f, top);
  end_span(f, begin);
  g_put(f, done);
}

/* The columns from R15 on; s: those of a strip, for its pass. */
static void stages(VecFn *f, const VLoop *l, const Strips *s, u32 limit, u32 lanes) {
  if (s) g_load(f, R15, RSP, (i32)s->low);
  stage(f, l, s, limit, lanes, copies_of(f, l), false);
  if (!f->evex) stage(f, l, s, limit, lanes, 1, false);
  stage(f, l, s, limit, f->evex ? lanes : 1, 1, f->evex);
}

/* All rows of a strip, for one of its loops. */
static void strip_rows(VecFn *f, const VLoop *l, Strips *s, u32 lanes) {
  RowLoop r = row_loop_at(f, s->heads[s->loop]);
  u32 state = s->state_at[s->loop], top = g_label(f), next = g_label(f), done = g_label(f), begin;
  g_imm(f, RAX, 0);
  g_save(f, RSP, (i32)s->row, RAX);
  s->pass = SP_BEGIN;
  stages(f, l, s, s->high, lanes);
  s->pass = SP_ROWS;
  word_to(f, RAX, loop_trips_of(f->fn, body_node(f, r.head), 0));
  g_save(f, RSP, (i32)s->left, RAX);
  if (r.ordered) {
    g_imm(f, RAX, 0);
    g_save(f, RSP, (i32)(state + offsetof(VecStrip, used)), RAX);
    g_load(f, RAX, RSP, (i32)s->high);
    g_alu_load(f, ALU_SUB, RAX, RSP, (i32)s->low);
    g_save(f, RSP, (i32)(state + offsetof(VecStrip, n)), RAX);
  }
  begin = f->ins.count;
  g_put(f, top);
  g_load(f, RAX, RSP, (i32)s->left);
  g_imm(f, RCX, STRIP_TURN);
  g_alu(f, ALU_CMP, RCX, RAX);
  put(f, (VIns){.op = G_CMOV, .imm = CC_G, .dst = RCX, .a = RAX});
  g_save(f, RSP, (i32)s->turn, RCX);
  g_alu(f, ALU_SUB, RAX, RCX);
  g_save(f, RSP, (i32)s->left, RAX);
  stages(f, l, s, s->high, lanes);
  g_load(f, RCX, RSP, (i32)s->row);
  g_alu_load(f, ALU_ADD, RCX, RSP, (i32)s->turn);
  g_save(f, RSP, (i32)s->row, RCX);
  if (r.ordered) { /* a block of rows is full, or the last one */
    g_load(f, RAX, RSP, (i32)s->left);
    g_alu_imm(f, ALU_CMP, RAX, 0);
    g_jcc(f, CC_E, done);
    g_alu_imm(f, ALU_AND, RCX, LOOP_ROW_BLOCK - 1);
    g_alu_imm(f, ALU_CMP, RCX, 0);
    g_jcc(f, CC_NE, next);
    call_words(f, (u64)(uintptr_t)vec_strip_push, state, r.op, r.type);
    g_put(f, next);
  }
  g_load(f, RAX, RSP, (i32)s->left);
  g_alu_imm(f, ALU_CMP, RAX, 0);
  g_jcc(f, CC_NE, top);
  end_span(f, begin);
  g_put(f, done);
  if (r.ordered) call_words(f, (u64)(uintptr_t)vec_strip_end, state, r.op, r.type);
}

static void by_strips(VecFn *f, const VLoop *l, Strips *s, u32 limit, u32 lanes) {
  u32 plain = g_label(f), top = g_label(f), begin;
  g_load(f, RAX, RSP, (i32)limit);
  g_alu(f, ALU_SUB, RAX, R15);
  g_alu_imm(f, ALU_CMP, RAX, STRIP_COLUMNS);
  g_jcc(f, CC_L, plain);
  for (u32 p = 0; p < s->count; p++) {
    word_to(f, RAX, loop_trips_of(f->fn, body_node(f, s->heads[p]), 0));
    g_alu_imm(f, ALU_CMP, RAX, STRIP_ROWS);
    g_jcc(f, CC_L, plain);
    g_alu_imm(f, ALU_CMP, RAX, VEC_STRIP_ROWS);
    g_jcc(f, CC_GE, plain);
  }
  strip_room(f, s);
  begin = f->ins.count;
  g_put(f, top);
  g_save(f, RSP, (i32)s->low, R15);
  g_alu_imm(f, ALU_ADD, R15, s->columns);
  g_load(f, RAX, RSP, (i32)limit);
  g_alu(f, ALU_CMP, R15, RAX);
  put(f, (VIns){.op = G_CMOV, .imm = CC_G, .dst = R15, .a = RAX});
  g_save(f, RSP, (i32)s->high, R15);
  for (s->loop = 0; s->loop < s->count && !f->failed; s->loop++) strip_rows(f, l, s, lanes);
  s->pass = SP_END;
  stages(f, l, s, s->high, lanes);
  g_load(f, R15, RSP, (i32)s->high);
  g_alu_load(f, ALU_CMP, R15, RSP, (i32)limit);
  g_jcc(f, CC_L, top);
  end_span(f, begin);
  g_put(f, plain); /* there: no column is left */
}

void columns_loop(VecFn *f, VLoop *l) {
  u32 strided = 0, limit = (u32)frame_room(f, 8, 8);
  bool narrow = false;
  u32 widest = loop_widest(f, l, &strided, &narrow, false), lanes = (f->evex ? 64 : 32) / widest;
  Strips s = {0};
  f->near = 0;
  loop_bounds(f, l);
  g_save(f, RSP, (i32)limit, R14);
  f->columns = true;
  f->limit_slot = limit;
  f->vector_head = l->head;
  f->inside_first = l->first;
  f->inside_last = l->last;
  for (u32 pos = l->first; pos <= l->last; pos++)
    for (u32 axis = 0; loop_is_head(vnode(f, body_node(f, pos))) && axis < row_loop_at(f, pos).axes; axis++)
      f->index_slot[loop_index_of(body_node(f, pos), axis)] = (u32)frame_room(f, 8, 8);
  if (goes_by_strips(f, l, widest, &s)) by_strips(f, l, &s, limit, lanes);
  stages(f, l, NULL, limit, lanes);
  f->columns = false;
  loop_leave(f);
}
