/* ptx.c — kernels of the loop IR as PTX: the module, its entries, control flow (see ptx.h).
 *
 * One pass over the body. Heads become labels and branches; carried values are registers that `next` writes. What a
 * branch jumps over holds no instruction that needs all threads of a warp, unless all of them jump: reductions of
 * lanes stand only where every thread of the warp has the same values. */
#include "gpu/matmul.h"
#include "gpu/ptx_writer.h"

#include <stdio.h>
#include <string.h>

PtxSpread ptx_spread(const LoopFn *fn) { return ptx_body_has_lanes(fn, 0) ? PTX_WARPS : PTX_THREADS; }

/* ---- loops --------------------------------------------------------------------------------------------------- */

void ptx_axes_begin(PtxWriter *w, const OpenHead *h) {
  const LoopNode *n = ptx_node(w, h->head);
  for (u32 axis = 0; axis < n->a; axis++) {
    Opnd index = ptx_define(w, loop_index_of(h->head, axis)), out = ptx_new(w, REG_P);
    if (h->lanes) INS(w, "cvt.u64.u32", index, w->lane);
    else INS(w, "mov.u64", index, ptx_number(0));
    ptx_label(w, "L%u_axis%u", h->label, axis);
    INS(w, "setp.ge.u64", out, index, ptx_value(w, loop_trips_of(w->f->fn, h->head, axis)));
    if (axis) ptx_line(w, "@%s bra L%u_step%u;", ptx_text(out).s, h->label, axis - 1);
    else ptx_line(w, "@%s bra L%u_out;", ptx_text(out).s, h->label);
  }
  w->depth++;
}

void ptx_axes_end(PtxWriter *w, const OpenHead *h) {
  const LoopNode *n = ptx_node(w, h->head);
  for (u32 axis = n->a; axis-- > 0;) {
    Opnd index = ptx_define(w, loop_index_of(h->head, axis));
    if (axis + 1 < n->a) ptx_label(w, "L%u_step%u", h->label, axis);
    INS(w, "add.s64", index, index, ptx_number(h->lanes ? 32 : 1));
    ptx_line(w, "bra L%u_axis%u;", h->label, axis);
  }
  w->depth--;
  ptx_label(w, "L%u_out", h->label);
  if (h->lanes) ptx_line(w, "bar.warp.sync 0xFFFFFFFF;"); /* what it wrote can be read by the others */
}

static bool is_outermost(const PtxWriter *w) {
  return w->f->fn->kind == LOOP_KERNEL && w->open.count == w->f->first_open;
}

/* Trips lo + number, + number of all threads (or warps), … */
static void begin_par(PtxWriter *w, OpenHead *h) {
  Opnd index = ptx_define(w, loop_index_of(h->head, 0)), out = ptx_new(w, REG_P);
  if (w->phase == PTX_PART || w->phase == PTX_JOIN) {
    ptx_items_begin(w, h->label);
    INS(w, "add.s64", index, w->lo, w->item_trip);
    return;
  }
  if (w->nest.count && w->phase == PTX_WHOLE) ptx_nest_begin(w, h->label, index);
  else INS(w, "add.s64", index, w->lo, w->index);
  ptx_label(w, "L%u_trip", h->label);
  INS(w, "setp.ge.s64", out, index, w->hi);
  ptx_line(w, "@%s bra L%u_out;", ptx_text(out).s, h->label);
  w->depth++;
  if (w->phase == PTX_WHOLE) return;
  w->item_trip = ptx_new(w, REG_RD);
  INS(w, "sub.s64", w->item_trip, index, w->lo);
}

static void end_par(PtxWriter *w, OpenHead *h) {
  if (w->phase == PTX_PART || w->phase == PTX_JOIN) {
    ptx_items_end(w, h->label);
    return;
  }
  Opnd index = ptx_define(w, loop_index_of(h->head, 0));
  ptx_label(w, "L%u_next", h->label);
  if (w->nest.count && w->phase == PTX_WHOLE) ptx_nest_next(w, index);
  else INS(w, "add.s64", index, index, w->step);
  ptx_line(w, "bra L%u_trip;", h->label);
  w->depth--;
  ptx_label(w, "L%u_out", h->label);
}

static void begin_head(PtxWriter *w, u32 id) {
  const LoopNode *n = ptx_node(w, id);
  const LoopFn *fn = w->f->fn;
  bool outermost = is_outermost(w);
  OpenHead h = {.head = id, .label = ++w->labels};
  for (u32 i = 0; i < n->b; i++) {
    u32 c = loop_carry_of(fn, id, i);
    ptx_move(w, loop_type_of(fn, c), ptx_define(w, c), ptx_value(w, loop_init_of(fn, id, i)));
  }
  switch (n->op) {
    case LOOP_IF:
      h.cond = ptx_value(w, loop_cond_of(fn, id));
      ptx_line(w, "@!%s bra L%u_else;", ptx_text(h.cond).s, h.label);
      w->depth++;
      break;
    case LOOP_WHILE:
      ptx_label(w, "L%u_next", h.label);
      w->depth++;
      break;
    case LOOP_REDUCE:
    case LOOP_SCAN: ptx_fold_begin(w, &h); break;
    default:
      if (outermost) begin_par(w, &h);
      else if (ptx_in_nest(w, id)) w->depth++;
      else {
        h.lanes = ptx_is_lane_loop(w, id);
        if (h.lanes) ptx_line(w, "bar.warp.sync 0xFFFFFFFF;"); /* the others have read what it writes over */
        ptx_axes_begin(w, &h);
        w->spread_depth += h.lanes;
      }
  }
  if (!vec_push(w->alloc, &w->open, h)) w->failed = true;
}

static void end_head(PtxWriter *w) {
  OpenHead h = w->open.data[--w->open.count];
  const LoopNode *n = ptx_node(w, h.head);
  const LoopFn *fn = w->f->fn;
  switch (n->op) {
    case LOOP_IF:
      w->depth--;
      if (!h.has_else) ptx_label(w, "L%u_else", h.label);
      break;
    case LOOP_WHILE:
      w->depth--;
      ptx_label(w, "L%u_out", h.label);
      break;
    case LOOP_REDUCE:
    case LOOP_SCAN: ptx_fold_end(w, &h); return;
    default:
      if (is_outermost(w)) {
        end_par(w, &h);
        return;
      }
      ptx_label(w, "L%u_next", h.label);
      if (ptx_in_nest(w, h.head)) {
        w->depth--;
        return;
      }
      w->spread_depth -= h.lanes;
      ptx_axes_end(w, &h);
  }
  for (u32 i = 0; i < n->b; i++) { /* left at its end, or by a check: what is carried is the result */
    u32 r = loop_result_of(fn, h.head, i);
    ptx_move(w, loop_type_of(fn, r), ptx_define(w, r), ptx_define(w, loop_carry_of(fn, h.head, i)));
  }
  ptx_label(w, "L%u_done", h.label);
}

static OpenHead *open_head(PtxWriter *w, u32 head) {
  for (u32 i = w->open.count; i-- > w->f->first_open;)
    if (w->open.data[i].head == head) return &w->open.data[i];
  return NULL;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

/* All are read before any is written: what is carried itself is copied first. */
static void assign(PtxWriter *w, const u32 *from, u32 first, u32 count) {
  const LoopFn *fn = w->f->fn;
  Opnd *copies = mem_alloc_zero(w->alloc, sizeof *copies * (count + 1));
  if (!copies) {
    w->failed = true;
    return;
  }
  for (u32 i = 0; i < count; i++) {
    copies[i] = ptx_value(w, from[i]);
    if (count == 1 || loop_node(fn, from[i])->op != LOOP_CARRY) continue;
    LoopType t = loop_type_of(fn, first + i);
    Opnd copy = ptx_new_for(w, t);
    ptx_move(w, t, copy, copies[i]);
    copies[i] = copy;
  }
  for (u32 i = 0; i < count; i++) ptx_move(w, loop_type_of(fn, first + i), ptx_define(w, first + i), copies[i]);
  mem_free(w->alloc, copies, sizeof *copies * (count + 1));
}

static void put_terminator(PtxWriter *w, const LoopNode *n) {
  const u32 *list = loop_list(w->f->fn, n);
  if (n->op == LOOP_RETURN) {
    ptx_move(w, w->f->fn->math_type, w->f->result, ptx_value(w, list[0]));
    ptx_line(w, "bra L%u_return;", w->f->end);
    return;
  }
  OpenHead *h = open_head(w, n->a);
  if (!h) {
    ptx_refuse(w, "a jump out of what is not open");
    return;
  }
  u32 op = ptx_node(w, n->a)->op, label = h->label;
  if (n->op == LOOP_YIELD && op != LOOP_IF) {
    ptx_fold_take(w, h, ptx_value(w, list[0]));
    return;
  }
  bool next = n->op == LOOP_NEXT;
  assign(w, list, next ? loop_carry_of(w->f->fn, n->a, 0) : loop_result_of(w->f->fn, n->a, 0), n->count);
  ptx_line(w, "bra L%u_%s;", label, next ? "next" : "done");
}

/* The row-major number of the element that is worked on. */
static Opnd element_number(PtxWriter *w) {
  Opnd e = {0};
  for (u32 i = w->f->first_open; i < w->open.count; i++) {
    u32 head = w->open.data[i].head;
    const LoopNode *n = ptx_node(w, head);
    for (u32 axis = 0; axis < n->a; axis++) {
      Opnd index = ptx_define(w, loop_index_of(head, axis)), r = ptx_new(w, REG_RD);
      if (e.kind == REG_NONE) {
        e = index;
        continue;
      }
      INS(w, "mad.lo.s64", r, e, ptx_in_register(w, ptx_value(w, loop_trips_of(w->f->fn, head, axis))), index);
      e = r;
    }
  }
  return e;
}

/* A failed check: the least key stays; the rest of the innermost loop's trip is left out. */
static void put_check(PtxWriter *w, const LoopNode *n) {
  Opnd a = ptx_value(w, n->a), b = n->b ? ptx_value(w, n->b) : (Opnd){0};
  Opnd holds = ptx_check(w, (LoopCheck)n->aux, loop_type_of(w->f->fn, n->a), a, b);
  u32 depth = w->open.count, label = ++w->labels;
  while (depth > w->f->first_open && ptx_node(w, w->open.data[depth - 1].head)->op == LOOP_IF) depth--;
  if (depth == w->f->first_open || w->f->fn->kind != LOOP_KERNEL) {
    ptx_refuse(w, "a check outside of loops");
    return;
  }
  const OpenHead *h = &w->open.data[depth - 1];
  ptx_line(w, "@%s bra L%u_holds;", ptx_text(holds).s, label);
  w->depth++;
  Opnd e = element_number(w), least = ptx_new(w, REG_RD), key = ptx_new(w, REG_RD);
  INS(w, "min.u64", least, e, ptx_number(((i64)1 << 48) - 1));
  INS(w, "or.b64", key, least, ptx_const(LT_U64, n->imm << 48));
  ptx_line(w, "red.global.min.u64 [%s], %s;", ptx_text(w->key).s, ptx_text(key).s);
  ptx_line(w, "bra L%u_%s;", h->label, ptx_node(w, h->head)->op == LOOP_WHILE ? "out" : "next");
  w->depth--;
  ptx_label(w, "L%u_holds", label);
}

/* ---- functions of lang/math.loops ------------------------------------------------------------ */

static void put_body(PtxWriter *w);

/* Tables lie in constant memory; their address is taken where they are named. */
static Opnd table_address(PtxWriter *w, u32 table) {
  u32 i = 0;
  while (i < w->tables.count && w->tables.data[i] != table) i++;
  if (i == w->tables.count && !vec_push(w->alloc, &w->tables, table)) w->failed = true;
  Opnd r = ptx_new(w, REG_RD);
  ptx_line(w, "mov.u64 %s, table_%s;", ptx_text(r).s, name_text(&w->defs.names, w->defs.tables.data[table].name));
  return r;
}

/* The body of a definition, parameters given. What it uses is expanded in it: definitions use only those before
 * them, so the depth is theirs. */
static void put_definition(PtxWriter *w, const LoopFn *fn, const Opnd *params, Opnd result) {
  PtxFn inner = {.fn = fn, .first_open = w->open.count, .result = result, .end = ++w->labels}, *outer = w->f;
  inner.values = mem_alloc_zero(w->alloc, sizeof *inner.values * (fn->nodes.count + 1));
  if (!inner.values) {
    w->failed = true;
    return;
  }
  for (u32 i = 0; i < fn->params.count; i++) inner.values[fn->params.data[i]] = params[i];
  w->f = &inner;
  for (u32 i = 1; i < fn->nodes.count; i++)
    if (loop_node(fn, i)->op == LOOP_TABLE) inner.values[i] = table_address(w, loop_node(fn, i)->a);
  put_body(w);
  ptx_label(w, "L%u_return", inner.end);
  w->f = outer;
  mem_free(w->alloc, inner.values, sizeof *inner.values * (fn->nodes.count + 1));
}

static void call_definition(PtxWriter *w, const LoopFn *fn, const Opnd *params, Opnd result) {
  PtxAside a;
  char name[96];
  LoopType t = fn->math_type;
  snprintf(name, sizeof name, "%s_%s", name_text(&w->defs.names, fn->name), loop_type_text(t));
  if (ptx_function_begin(w, &a, (u64)(uintptr_t)fn, t, fn->params.count)) {
    Opnd r = ptx_new_for(w, t);
    put_definition(w, fn, a.params, r);
    ptx_function_end(w, &a, name, t, fn->params.count, r);
  }
  ptx_call(w, name, t, params, fn->params.count, result);
}

/* Longer definitions are functions of the module, so that text stays readable. */
enum { EXPANDED_NODES = 48 };

static Opnd put_math(PtxWriter *w, const LoopNode *n) {
  const char *name = name_text(&w->f->fn->module->names, (Name)n->imm);
  LoopType t = (LoopType)n->type;
  const LoopFn *fn = NULL;
  if (define_math(&w->defs, name, t, NULL) == WEFT_OK) fn = loop_module_find_math(&w->defs, name, t);
  if (!fn) {
    ptx_refuse(w, "the function %s of %s", name, loop_type_text(t));
    return (Opnd){0};
  }
  u32 operands[3] = {n->a, n->b, n->c};
  Opnd params[3] = {{0}}, result = ptx_new_for(w, t);
  for (u32 i = 0; i < fn->params.count && i < 3; i++) params[i] = ptx_in_register(w, ptx_value(w, operands[i]));
  bool called = w->f->fn->kind == LOOP_KERNEL && fn->body.count > EXPANDED_NODES;
  if (called && w->epilogue) ptx_refuse(w, "the function %s behind a product", name); /* its sums would be spilled */
  if (called) {
    call_definition(w, fn, params, result);
    return result;
  }
  ptx_line(w, "// %s %s", name, loop_type_text(t));
  w->depth++;
  put_definition(w, fn, params, result);
  w->depth--;
  return result;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void put_value(PtxWriter *w, u32 id, const LoopNode *n) {
  LoopType t = (LoopType)n->type;
  switch (loop_op_form((LoopOp)n->op)) {
    case LOOP_FORM_MATH: w->f->values[id] = put_math(w, n); return;
    case LOOP_FORM_PREFIX:
      w->f->values[id] = ptx_fold_prefix(w, &w->open.data[w->open.count - 1], ptx_value(w, n->a));
      return;
    case LOOP_FORM_ACCESS: ptx_load(w, n, ptx_define(w, id)); return;
    case LOOP_FORM_COMPARE: {
      Opnd a = ptx_value(w, n->a), b = ptx_value(w, n->b);
      ptx_compare(w, (LoopOp)n->op, loop_type_of(w->f->fn, n->a), ptx_define(w, id), a, b);
      return;
    }
    case LOOP_FORM_SELECT: {
      Opnd c = ptx_value(w, n->a), a = ptx_value(w, n->b), b = ptx_value(w, n->c);
      ptx_select(w, t, ptx_define(w, id), c, a, b);
      return;
    }
    case LOOP_FORM_CONVERT: ptx_convert(w, n, ptx_define(w, id), ptx_value(w, n->a)); return;
    case LOOP_FORM_UNARY:
    case LOOP_FORM_BINARY:
    case LOOP_FORM_TERNARY: {
      Opnd a = ptx_value(w, n->a), b = n->b ? ptx_value(w, n->b) : (Opnd){0}, c = n->c ? ptx_value(w, n->c) : (Opnd){0};
      ptx_operation_to(w, (LoopOp)n->op, t, ptx_define(w, id), a, b, c);
      return;
    }
    default: ptx_refuse(w, "%s in a kernel", loop_op_text((LoopOp)n->op));
  }
}

void ptx_put_statement(PtxWriter *w, u32 id) {
  const LoopNode *n = ptx_node(w, id);
  if (loop_is_head(n)) begin_head(w, id);
  else if (n->op == LOOP_END) end_head(w);
  else if (n->op == LOOP_EXIT) ptx_refuse(w, "exit in a kernel");
  else if (loop_is_terminator(n)) put_terminator(w, n);
  else if (n->op == LOOP_CHECK) put_check(w, n);
  else if (n->op == LOOP_STORE) ptx_store(w, n);
  else if (n->op == LOOP_ELSE) {
    OpenHead *h = &w->open.data[w->open.count - 1];
    h->has_else = true;
    ptx_line(w, "bra L%u_done;", h->label);
    ptx_label(w, "L%u_else", h->label);
  } else {
    put_value(w, id, n);
  }
}

/* At body[*i], one of the two reductions of ptx_best.c: both are done at the first one. */
static bool skip_best(PtxWriter *w, u32 *i) {
  u32 id = w->f->fn->body.data[*i];
  if (id != w->split->heads[0] && id != w->split->heads[1]) return false;
  if (id == w->split->heads[0]) ptx_put_best(w);
  *i = ptx_end_of(w->f->fn, *i);
  return true;
}

static void put_body(PtxWriter *w) {
  const LoopFn *fn = w->f->fn;
  for (u32 i = 0; i < fn->body.count && !w->failed && !w->refused; i++) {
    if (w->wide && fn == w->kernel && fn->body.data[i] == w->wide->head) ptx_put_fours(w);
    if (w->split && w->split->best && w->spread == PTX_THREADS && fn == w->kernel && skip_best(w, &i)) continue;
    ptx_put_statement(w, fn->body.data[i]);
  }
}

/* One of the entries of a kernel that is split: part leaves out what comes behind the reductions, join all but them,
 * and only part has their bodies. */
static void put_split_body(PtxWriter *w) {
  const LoopFn *fn = w->f->fn;
  u32 depth = 0;
  for (u32 i = 0; i < fn->body.count && !w->failed && !w->refused; i++) {
    u32 id = fn->body.data[i];
    const LoopNode *n = loop_node(fn, id);
    bool head = loop_is_head(n), end = n->op == LOOP_END;
    bool late = depth == 1 && w->phase == PTX_PART && (w->split->late[id] || n->op == LOOP_STORE);
    if (!head && !end && (late || (depth <= 1 && w->phase == PTX_JOIN))) continue;
    if (w->split->best && skip_best(w, &i)) continue;
    ptx_put_statement(w, id);
    if (head && depth == 1 && w->phase != PTX_PART && !w->failed) {
      OpenHead *h = &w->open.data[w->open.count - 1];
      ptx_fold_take(w, h, ptx_scratch_load(w, h));
      i = ptx_end_of(fn, i);
      ptx_put_statement(w, fn->body.data[i]);
    } else {
      depth += head;
      depth -= end;
    }
  }
}

/* ---- entries --------------------------------------------------------------------------------- */

/* What entries are named in PTX: letters, digits, _ and $. */
static void put_name(Buf *out, const char *s) {
  for (; *s; s++)
    buf_putc(out,
             (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '_' ? *s : '$');
}

void ptx_put_params(PtxWriter *w) {
  const LoopFn *fn = w->kernel;
  for (u32 i = 0; w->phase != PTX_JOIN && i < fn->params.count; i++) {
    u32 id = fn->params.data[i];
    const LoopNode *n = loop_node(fn, id);
    Opnd v = ptx_define(w, id), word;
    switch (n->type) {
      case LT_PTR:
        ptx_line(w, "ld.param.u64 %s, [a%u];", ptx_text(v).s, i);
        INS(w, "cvta.to.global.u64", v, v);
        break;
      case LT_I1:
        word = ptx_new(w, REG_R);
        ptx_line(w, "ld.param.u32 %s, [a%u];", ptx_text(word).s, i);
        INS(w, "setp.ne.u32", v, word, ptx_const(LT_U32, 0));
        break;
      default: ptx_line(w, "ld.param.%s %s, [a%u];", ptx_type((LoopType)n->type), ptx_text(v).s, i);
    }
  }
  w->lo = ptx_new(w, REG_RD);
  w->hi = ptx_new(w, REG_RD);
  w->key = ptx_new(w, REG_RD);
  ptx_line(w, "ld.param.u64 %s, [lo];", ptx_text(w->lo).s);
  ptx_line(w, "ld.param.u64 %s, [hi];", ptx_text(w->hi).s);
  ptx_line(w, "ld.param.u64 %s, [key];", ptx_text(w->key).s);
  INS(w, "cvta.to.global.u64", w->key, w->key);
}

/* The number of this thread or warp, and how many there are. */
static void put_place(PtxWriter *w) {
  Opnd block = ptx_new(w, REG_R), size = ptx_new(w, REG_R), thread = ptx_new(w, REG_R), grid = ptx_new(w, REG_R),
      wide = ptx_new(w, REG_RD);
  w->index = ptx_new(w, REG_RD);
  w->step = ptx_new(w, REG_RD);
  ptx_line(w, "mov.u32 %s, %%ctaid.x;", ptx_text(block).s);
  ptx_line(w, "mov.u32 %s, %%ntid.x;", ptx_text(size).s);
  ptx_line(w, "mov.u32 %s, %%tid.x;", ptx_text(thread).s);
  ptx_line(w, "mov.u32 %s, %%nctaid.x;", ptx_text(grid).s);
  INS(w, "cvt.u64.u32", wide, thread);
  INS(w, "mad.wide.u32", w->index, block, size, wide);
  INS(w, "mul.wide.u32", w->step, grid, size);
  if (w->spread != PTX_WARPS) return;
  w->lane = ptx_new(w, REG_R);
  INS(w, "and.b32", w->lane, thread, ptx_const(LT_U32, 31));
  INS(w, "shr.u64", w->index, w->index, ptx_const(LT_U32, 5));
  INS(w, "shr.u64", w->step, w->step, ptx_const(LT_U32, 5));
}

static const char *const suffixes[PTX_PHASES] = {
  "", "_tile", "_rows", "_long", "_scan", "_product", "_part", "_join", "_rest", "_pieces", "_columns", "_team"};
static const char *const scratch_params[] = {"from", "to", "total", "blocks"};

static void put_scratch_params(PtxWriter *w) {
  Opnd *words[] = {&w->from, &w->to, &w->total, &w->blocks};
  for (u32 i = 0; i < COUNT_OF(words); i++) {
    *words[i] = ptx_new(w, REG_RD);
    ptx_line(w, "ld.param.u64 %s, [%s];", ptx_text(*words[i]).s, scratch_params[i]);
    if (i < 2) INS(w, "cvta.to.global.u64", *words[i], *words[i]);
  }
}

enum { TEAM_VALUES = 400 };

static void put_signature(PtxWriter *w, const LoopFn *fn, Buf *out) {
  buf_printf(out, "\n// each trip is run by %s\n.visible .entry ",
             w->epilogue ? "a thread of the tile of a product"
             : w->rows || w->scan ? "a block of threads"
             : w->spread == PTX_WARPS ? "the 32 threads of a warp"
                                       : "one thread");
  put_name(out, w->name);
  buf_printf(out, "%s (\n", suffixes[w->phase]);
  for (u32 i = 0; w->phase != PTX_JOIN && i < fn->params.count; i++)
    buf_printf(out, "  .param .u64 a%u, // %s\n", i,
               name_text(&fn->module->names, (Name)loop_node(fn, fn->params.data[i])->list));
  buf_puts(out, "  .param .u64 lo,\n  .param .u64 hi,\n  .param .u64 key");
  for (u32 i = 0; w->phase == PTX_PRODUCT && i < MATMUL_PARAMS; i++)
    buf_printf(out, ",\n  .param .u64 a%u", fn->params.count + i);
  for (u32 i = 0; w->phase >= PTX_PART && i < COUNT_OF(scratch_params); i++)
    buf_printf(out, ",\n  .param .u64 %s", scratch_params[i]);
  /* Threads that wait for one another need no more registers than let two blocks run on a multiprocessor; but a body
   * of so many values of f64, such as a function of complex numbers, is bound by its arithmetic and would spill. */
  bool two = w->regs[REG_D] < TEAM_VALUES;
  if (w->phase == PTX_TEAM) buf_printf(out, "\n)\n.maxntid 256\n.minnctapersm %u\n{\n", two ? 2u : 1u);
  else if (w->phase == PTX_PRODUCT && w->epilogue->type == LT_F32) /* as the product by itself */
    buf_puts(out, "\n)\n.maxntid 256\n.minnctapersm 2\n{\n");
  else buf_puts(out, "\n) {\n");
}

static void put_phase(PtxWriter *w, const LoopFn *fn, PtxPhase phase, Buf *out) {
  PtxFn f = {.fn = fn};
  w->f = &f;
  w->phase = phase;
  w->depth = w->labels = w->spread_depth = w->open.count = 0;
  w->body.len = 0;
  memset(w->regs, 0, sizeof w->regs);
  f.values = mem_alloc_zero(w->alloc, sizeof *f.values * (fn->nodes.count + 1));
  if (!f.values) {
    w->failed = true;
    return;
  }
  if (phase != PTX_PRODUCT) ptx_put_params(w); /* its sums come first */
  if (phase >= PTX_PART) put_scratch_params(w);
  if (phase != PTX_PRODUCT) put_place(w);
  if (phase == PTX_WHOLE) put_body(w);
  else if (phase == PTX_TILED) ptx_put_tiles(w);
  else if (phase == PTX_ROWS || phase == PTX_LONG || phase == PTX_TEAM) ptx_put_rows(w);
  else if (phase == PTX_SCAN || phase == PTX_PIECES) ptx_put_scan(w);
  else if (phase == PTX_COLUMNS) ptx_put_columns(w);
  else if (phase == PTX_PRODUCT) ptx_put_product(w);
  else if (phase == PTX_REST && !w->split->rows) ptx_put_rest(w);
  else put_split_body(w);
  ptx_line(w, "ret;");
  put_signature(w, fn, out);
  ptx_put_registers(w, out);
  if (phase == PTX_PRODUCT && !w->tensor)
    buf_printf(out, "  .shared .align 16 .b8 tile[%u];\n", ptx_matmul_shared(w->epilogue->type));
  if (phase == PTX_TILED) buf_printf(out, "  .shared .align 8 .b8 tile[%u];\n", w->tile->bytes);
  buf_put(out, w->body.data, w->body.len);
  buf_puts(out, "}\n");
  mem_free(w->alloc, f.values, sizeof *f.values * (fn->nodes.count + 1));
}

static void put_entry(PtxWriter *w, const LoopFn *fn, const char *name, Buf *out) {
  w->kernel = fn;
  w->name = name;
  w->spread = ptx_spread(fn);
  w->phase = PTX_WHOLE;
  (void)ptx_nest(fn, &w->nest);
  if (fn->kind != LOOP_KERNEL || fn->is_extern) {
    ptx_refuse(w, "a function that is no kernel");
    return;
  }
  if (fn->params.count > PTX_MAX_PARAMS) {
    ptx_refuse(w, "%u parameters", fn->params.count);
    return;
  }
  for (u32 i = 1; i < fn->nodes.count; i++)
    if (loop_node(fn, i)->op == LOOP_TABLE) ptx_refuse(w, "a table");
  PtxWide wide;
  PtxSplit split;
  bool splits = ptx_split(fn, w->alloc, &split);
  if (splits) w->split = &split;
  if (ptx_wide(fn, w->alloc, &wide)) w->wide = &wide;
  put_phase(w, fn, PTX_WHOLE, out);
  if (w->wide) ptx_wide_free(&wide);
  w->wide = NULL;
  w->split = NULL;
  PtxTile tile;
  if (!w->failed && !w->refused && ptx_tile(fn, &tile)) {
    w->tile = &tile;
    put_phase(w, fn, PTX_TILED, out);
    w->tile = NULL;
    w->phase = PTX_WHOLE;
  }
  PtxRows rows;
  if (!w->failed && !w->refused && ptx_rows(fn, w->alloc, &rows)) {
    PtxSpread own = w->spread;
    w->rows = &rows;
    w->spread = PTX_THREADS;
    put_phase(w, fn, PTX_ROWS, out);
    if (!w->failed && !w->refused) put_phase(w, fn, PTX_TEAM, out);
    ptx_rows_from_memory(&rows);
    if (!w->failed && !w->refused) put_phase(w, fn, PTX_LONG, out);
    ptx_rows_free(&rows);
    w->rows = NULL;
    w->spread = own;
    w->phase = PTX_WHOLE;
  }
  PtxScan scan;
  if (!w->failed && !w->refused && ptx_scan(fn, w->alloc, &scan)) {
    w->scan = &scan;
    put_phase(w, fn, scan.across ? PTX_COLUMNS : PTX_SCAN, out);
    if (!scan.across && !w->failed && !w->refused) put_phase(w, fn, PTX_PIECES, out);
    ptx_scan_free(&scan);
    w->scan = NULL;
    w->phase = PTX_WHOLE;
  }
  if (!splits) return;
  w->split = &split;
  for (PtxPhase phase = PTX_PART; phase <= PTX_REST && !w->failed && !w->refused; phase++)
    put_phase(w, fn, phase, out);
  w->split = NULL;
  w->phase = PTX_WHOLE;
  ptx_split_free(&split);
}

static void put_tables(PtxWriter *w, Buf *out) {
  for (u32 i = 0; i < w->tables.count; i++) {
    const LoopTable *t = &w->defs.tables.data[w->tables.data[i]];
    buf_printf(out, ".const .align 8 .%s table_%s[%u] = {", ptx_type(t->type),
               name_text(&w->defs.names, t->name), t->count);
    for (u32 k = 0; k < t->count; k++)
      buf_printf(out, "%s%s", k % 4 ? ", " : k ? ",\n  " : "\n  ", ptx_text(ptx_const(t->type, t->bits[k])).s);
    buf_puts(out, "};\n");
  }
}

/* A module of what `put` writes. */
static WeftStatus make_module(PtxWriter *w, void (*put)(PtxWriter *w, const void *what, Buf *entries),
                              const void *what) {
  Buf entries, *out = w->out;
  if (loop_module_init(&w->defs, out->alloc) != WEFT_OK) return WEFT_ERROR;
  buf_init(&w->body, out->alloc);
  buf_init(&w->functions, out->alloc);
  buf_init(&entries, out->alloc);
  put(w, what, &entries);
  buf_puts(out, w->tensor ? ".version 7.0\n.target sm_80\n" : ".version 6.4\n.target sm_70\n");
  buf_puts(out, ".address_size 64\n.extern .shared .align 16 .b8 rows[];\n");
  put_tables(w, out);
  buf_put(out, w->functions.data, w->functions.len);
  buf_put(out, entries.data, entries.len);
  bool ok = !w->failed && !w->refused && !w->body.failed && !w->functions.failed && !entries.failed && !out->failed;
  buf_free(&w->body);
  buf_free(&entries);
  vec_free(w->alloc, &w->open);
  buf_free(&w->functions);
  vec_free(w->alloc, &w->called);
  vec_free(w->alloc, &w->tables);
  loop_module_free(&w->defs);
  return ok ? WEFT_OK : WEFT_ERROR;
}

typedef struct Entries {
  const LoopFn *const *fns;
  const char *const *names;
  u32 count;
} Entries;

static void put_entries(PtxWriter *w, const void *what, Buf *entries) {
  const Entries *e = what;
  for (u32 i = 0; i < e->count && !w->failed && !w->refused; i++)
    put_entry(w, e->fns[i],
              e->names && e->names[i] ? e->names[i] : name_text(&e->fns[i]->module->names, e->fns[i]->name), entries);
}

WeftStatus ptx_module(const LoopFn *const *fns, const char *const *names, u32 count, Buf *out, Buf *why) {
  PtxWriter w = {.alloc = out->alloc, .out = out, .why = why};
  return make_module(&w, put_entries, &(Entries){fns, names, count});
}

static void put_product_entry(PtxWriter *w, const void *what, Buf *entries) {
  const LoopFn *fn = what;
  w->kernel = fn;
  if (!w->name) w->name = name_text(&fn->module->names, fn->name);
  w->spread = PTX_THREADS;
  w->first_param = fn->params.count;
  if (fn->params.count > PTX_MAX_PARAMS - MATMUL_PARAMS) ptx_refuse(w, "%u parameters", fn->params.count);
  else put_phase(w, fn, PTX_PRODUCT, entries);
}

WeftStatus ptx_product_module(const LoopFn *fn, const char *name, const PtxEpilogue *e, u32 kind, Buf *out,
                              Buf *why) {
  bool halves = e->type == LT_F16 || e->type == LT_BF16;
  PtxWriter w = {.alloc = out->alloc, .out = out, .why = why, .name = name, .epilogue = e, .product = kind,
                 .tensor = halves};
  return make_module(&w, put_product_entry, fn);
}
