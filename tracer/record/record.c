/* record.c — the recorder's loop: one step per instruction, speculation, and whole traces (see record.h). */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/force.h"
#include "tracer/record/record_branch.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_effects.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_flow.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_prior.h"
#include "tracer/record/record_recur.h"
#include "tracer/record/record_run.h"
#include "tracer/record/repr_range.h"
#include "tracer/tracer.h"

#include <stdio.h>
#include <string.h>

Outcome rec_stuck(Recorder *r, u32 reason, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(r->why, sizeof r->why, fmt, ap);
  va_end(ap);
  r->reason = (u16)reason;
  if (r->frames.count) {
    RecFrame *f = rec_top(r);
    r->why_span = f->code->proto->spans[f->pc < f->code->proto->ncode ? f->pc : 0];
  }
  return r->failed || r->g->failed ? OUT_FAIL : OUT_STUCK;
}

Outcome rec_over_row(Recorder *r, const char *row, i64 limit, u32 reason, const char *what) {
  const TunableInfo *info = tunable_by_name(row, strlen(row));
  return rec_stuck(r, reason, "%s: more than %lld %s (%s)", what, (long long)limit, info ? info->unit : "", row);
}

/* ---- speculation ------------------------------------------------------------------------------------- */

RecMark rec_mark(Recorder *r) {
  return (RecMark){.graph = graph_mark(r->g), .avs = r->avs.count, .items = r->items.count,
                   .sources = r->source_av.count,
                   .trail = r->trail.count, .cells = r->cells.count, .straight = r->straight.count,
                   .masks = r->masks.count, .anchored = r->anchored.count,
                   .positions = r->positions.count, .weaks = r->weaks.count, .dynamic = r->dynamic.count,
                   .facts = r->facts.count, .frames = r->frames.count,
                   .safe_exit = r->safe_exit, .settled = r->settled, .lifted_loops = r->lifted_loops,
                   .lifted_ifs = r->lifted_ifs,
                   .cold_exits = r->cold_exits, .left_often = r->left_often, .left_early = r->left_early,
                   .batched = r->batched, .written = r->written, .loop = r->loop};
}

void rec_rollback(Recorder *r, const RecMark *m) {
  r->unanchored_count = 0;
  while (r->trail.count > m->trail) r->source_av.data[r->trail.data[--r->trail.count]] = 0;
  if (r->source_av.count > m->sources) r->source_av.count = m->sources;
  r->avs.count = m->avs;
  r->items.count = m->items;
  if (r->cells.count > m->cells) r->cells.count = m->cells;
  if (r->straight.count > m->straight) r->straight.count = m->straight;
  if (r->masks.count > m->masks) r->masks.count = m->masks;
  if (r->anchored.count > m->anchored) r->anchored.count = m->anchored;
  if (r->weaks.count > m->weaks) r->weaks.count = m->weaks;
  if (r->positions.count > m->positions) r->positions.count = m->positions;
  if (r->dynamic.count > m->dynamic) r->dynamic.count = m->dynamic;
  if (r->facts.count > m->facts) r->facts.count = m->facts;
  while (r->frames.count > m->frames) rec_pop(r);
  r->safe_exit = m->safe_exit;
  r->settled = m->settled;
  r->lifted_loops = m->lifted_loops;
  r->lifted_ifs = m->lifted_ifs;
  r->cold_exits = m->cold_exits;
  r->left_often = m->left_often;
  r->left_early = m->left_early;
  r->batched = m->batched;
  r->loop = m->loop;
  r->written = m->written;
  graph_rollback(r->g, m->graph);
}

bool rec_save(Recorder *r, RecState *s) {
  Allocator *alloc = &r->vm->alloc;
  RecFrame *f = rec_top(r);
  *s = (RecState){.depth = rec_depth(r), .pc = f->pc, .tail_calls = f->tail_calls, .nregs = f->code->proto->nregs,
                  .ncells = r->cells.count,
                  .safe_exit = r->safe_exit, .settled = r->settled, .updated = r->updated};
  s->regs = mem_alloc(alloc, sizeof(Av) * (s->nregs + 1));
  s->cells = mem_alloc(alloc, sizeof(RecCell) * (s->ncells + 1));
  if (!s->regs || !s->cells) {
    rec_state_free(r, s);
    r->failed = true;
    return false;
  }
  if (s->nregs) memcpy(s->regs, f->regs, sizeof(Av) * s->nregs);
  if (s->ncells) memcpy(s->cells, r->cells.data, sizeof(RecCell) * s->ncells);
  return true;
}

void rec_restore(Recorder *r, const RecState *s) {
  while (rec_depth(r) > s->depth) rec_pop(r);
  if (rec_depth(r) != s->depth) { /* its frame has gone */
    r->failed = true;
    return;
  }
  RecFrame *f = rec_top(r);
  f->pc = s->pc;
  f->tail_calls = s->tail_calls;
  r->safe_exit = s->safe_exit;
  r->settled = s->settled;
  r->updated = s->updated;
  if (s->nregs) memcpy(f->regs, s->regs, sizeof(Av) * s->nregs);
  /* cells read since keep what they were read as: nothing wrote them before */
  for (u32 i = 0; i < r->cells.count; i++) {
    RecCell *c = &r->cells.data[i];
    if (i < s->ncells && !MECHANISM(r->vm, writes_roll_back))
      c->dirty |= s->cells[i].dirty, c->value = s->cells[i].value;
    else if (i < s->ncells) *c = s->cells[i];
    else if (c->dirty && c->source) {
      c->value = rec_cell_clean(r, i);
      c->dirty = false;
    }
  }
}

void rec_state_free(Recorder *r, RecState *s) {
  Allocator *alloc = &r->vm->alloc;
  if (s->regs) mem_free(alloc, s->regs, sizeof(Av) * (s->nregs + 1));
  if (s->cells) mem_free(alloc, s->cells, sizeof(RecCell) * (s->ncells + 1));
  s->regs = NULL;
  s->cells = NULL;
}

void rec_end_try(Recorder *r, const RecMark *m, RecState *s, Outcome o) {
  if (o != OUT_GO && o != OUT_FAIL) {
    u16 reason = r->reason;
    rec_rollback(r, m);
    rec_restore(r, s);
    r->reason = reason;
  }
  rec_state_free(r, s);
}

/* ---- operands ------------------------------------------------------------------------------------------ */

static Value const_value(const Code *code, u32 i) { return code->consts[i]; }

static Av operand(Recorder *r, u32 rk) {
  RecFrame *f = rec_top(r);
  if (rk & INS_CONST) return av_const(r, const_value(f->code, rk & ~(u32)INS_CONST));
  return f->regs[rk];
}

Outcome rec_fits(Recorder *r, Av a) {
  if (!a || r->failed) return OUT_FAIL;
  if (av_at(r, a)->parts <= (u32)r->vm->tunables.value_parts) return OUT_GO;
  return rec_over(r, value_parts, REASON_graph_size, "a value");
}

static Outcome set(Recorder *r, u32 reg, Av a) {
  Outcome o = rec_fits(r, a);
  if (o != OUT_GO) return o;
  RecFrame *f = rec_top(r);
  f->regs[reg] = a;
  f->pc++;
  return OUT_GO;
}

/* ---- instructions ---------------------------------------------------------------------------------------- */

/* Function `index` of the group that the running function belongs to. */
static Av sibling(Recorder *r, const RecFrame *f, u32 index) {
  return av_sibling(r, f->fn, code_sibling(f->code, index), index);
}

static Outcome step_closure(Recorder *r, Ins i) {
  RecFrame *f = rec_top(r);
  const Proto *outer = f->code->proto;
  u32 first = ins_b(i), n = ins_op(i) == BC_group ? ins_c(i) : 1;
  const Proto *p = outer->protos[first];
  Av *captures = rec_avs(r, p->ncaptures);
  if (!captures) return OUT_FAIL;
  for (u32 k = 0; k < p->ncaptures; k++) {
    const Capture *c = &p->captures[k];
    captures[k] = c->kind == CAP_REGISTER ? f->regs[c->index] : c->kind == CAP_GROUP ? sibling(r, f, c->index)
                                          : rec_capture(r, f->fn, c->index);
    if (!captures[k]) return rec_stuck(r, REASON_no_rule, "a closure");
  }
  Av items = av_list(r, captures, p->ncaptures);
  if (!items) return OUT_FAIL;
  for (u32 k = 0; k < n; k++) {
    Code *code = code_child(r->vm, f->code, first + k);
    if (!code) {
      vm_error_forget(r->vm);
      return OUT_FAIL;
    }
    Av a = av_closure_of(r, code, items, ins_op(i) == BC_group ? k + 1 : 0);
    if (!a) return OUT_FAIL;
    f->regs[ins_a(i) + k] = a;
  }
  f->pc++;
  return OUT_GO;
}

static Outcome step_list(Recorder *r, Ins i) {
  RecFrame *f = rec_top(r);
  Av list = av_list(r, &f->regs[ins_b(i)], ins_c(i));
  if (!list) return OUT_FAIL;
  if (ins_op(i) == BC_list) return set(r, ins_a(i), list);
  Av out;
  Av params[OP_MAX_PARAMS] = {list};
  if (ins_c(i) == 0) return rec_stuck(r, REASON_no_rule, "an empty array");
  for (u32 k = 0; k < ins_c(i); k++)
    if (!av_is_number(r, f->regs[ins_b(i) + k]))
      return rec_stuck(r, REASON_raises, "an array literal of %s", av_kind_text(r, f->regs[ins_b(i) + k]));
  Outcome o = rec_op(r, OP_stack, params, &out);
  return o == OUT_GO ? set(r, ins_a(i), out) : o;
}

static Outcome step_grow(Recorder *r, Ins i) {
  RecFrame *f = rec_top(r);
  Av list = av_force(r, f->regs[ins_a(i)]), more = av_force(r, operand(r, ins_b(i)));
  if (!list || !more) return OUT_FAIL;
  bool spread = ins_op(i) == BC_extend;
  if (!av_is_list(r, list) || (spread && !av_is_list(r, more)))
    return rec_stuck(r, REASON_no_rule, "%s spread into a list", av_kind_text(r, more));
  u32 n = av_at(r, list)->count, m = spread ? av_at(r, more)->count : 1, first = r->items.count;
  if (n + m > (u32)r->vm->tunables.literal_items) return rec_over(r, literal_items, REASON_graph_size, "a list");
  for (u32 k = 0; k < n + m; k++) {
    Av item = k < n ? av_item(r, list, k) : spread ? av_item(r, more, k - n) : more;
    if (!vec_push(&r->vm->alloc, &r->items, item)) return OUT_FAIL;
  }
  return set(r, ins_a(i), av_list_of(r, first, n + m));
}

enum { FEW_KEYS = 16 }; /* not a threshold: records of more take memory for them */

/* Room for n keys: `few` where they fit. NULL: memory was refused. */
static Name *keys_for(Recorder *r, u32 n, Name *few) {
  return n <= FEW_KEYS ? few : arena_alloc(&r->g->arena, sizeof(Name) * n);
}

static Outcome step_record(Recorder *r, Ins i) {
  RecFrame *f = rec_top(r);
  const Desc *d = &f->code->proto->descs[ins_c(i)];
  u32 n = 0;
  if (d->name_count > (u32)r->vm->tunables.record_keys) return rec_over(r, record_keys, REASON_graph_size, "a record");
  Name few_keys[FEW_KEYS], *keys = keys_for(r, d->name_count, few_keys);
  Av few[FEW_KEYS], *items = d->name_count <= FEW_KEYS ? few : rec_avs(r, d->name_count);
  if (!keys || !items) return OUT_FAIL;
  for (u32 k = 0; k < d->name_count; k++) { /* a repeated key: the last wins */
    u32 at = 0;
    while (at < n && keys[at] != d->names[k]) at++;
    keys[at] = d->names[k];
    items[at] = f->regs[ins_b(i) + k];
    if (at == n) n++;
  }
  return set(r, ins_a(i), av_record(r, keys, items, n));
}

static Outcome step_recput(Recorder *r, Ins i) {
  RecFrame *f = rec_top(r);
  Av rec = av_force(r, f->regs[ins_a(i)]), v = operand(r, ins_b(i));
  if (!rec || !v || !av_is_record(r, rec)) return rec_stuck(r, REASON_no_rule, "a record literal");
  u32 n = av_at(r, rec)->count;
  Av from = ins_op(i) == BC_recspread ? av_force(r, v) : 0;
  Value key;
  if (from && !av_is_record(r, from))
    return rec_stuck(r, REASON_no_rule, "%s spread into a record", av_kind_text(r, from));
  u32 m = from ? av_at(r, from)->count : 1;
  if (n + m > (u32)r->vm->tunables.record_keys) return rec_over(r, record_keys, REASON_graph_size, "a record");
  Name few_keys[FEW_KEYS], *keys = keys_for(r, n + m, few_keys);
  Av few[FEW_KEYS], *items = n + m <= FEW_KEYS ? few : rec_avs(r, n + m);
  if (!keys || !items) return OUT_FAIL;
  for (u32 k = 0; k < n; k++) keys[k] = av_at(r, rec)->shape->keys[k], items[k] = av_item(r, rec, k);
  for (u32 k = 0; k < m; k++) {
    Name name;
    if (from) name = av_at(r, from)->shape->keys[k];
    else if (av_const_value(r, operand(r, ins_c(i)), &key) && key.kind == V_TEXT)
      name = name_intern(&r->vm->names, key.text->data, key.text->len);
    else return rec_stuck(r, REASON_data_dependent_value, "a key that is not known");
    u32 at = 0;
    while (at < n && keys[at] != name) at++;
    keys[at] = name;
    items[at] = from ? av_item(r, from, k) : v;
    if (at == n) n++;
  }
  return set(r, ins_a(i), av_record(r, keys, items, n));
}

/* A branch whose condition is known, or a jump: where it goes may be the end of the loop being lifted. */
static Outcome go_to(Recorder *r, const Scope *s, u32 target);

enum { FEW_ARGS = 32 }; /* not a threshold: calls with more take memory for them */

static Outcome step_call(Recorder *r, const Scope *s, Ins i) {
  RecFrame *f = rec_top(r);
  u32 op = ins_op(i), base = ins_b(i);
  bool tail = op == BC_tail || op == BC_tailx;
  const Desc *d = op == BC_callx || op == BC_tailx ? &f->code->proto->descs[ins_c(i)] : NULL;
  u32 argc = d ? d->argc : ins_c(i);
  Av few[FEW_ARGS], *args = few;
  Name few_names[FEW_ARGS], *names = few_names;
  u32 n = 0, most = argc;
  bool any_name = false;
  for (u32 k = 0; k < argc && d && d->spread; k++) {
    if (!d->spread[k]) continue;
    Av a = av_force(r, f->regs[base + 1 + k]);
    if (!a) return OUT_FAIL; /* asked again it may be there, with more than was counted */
    if (av_is_open(r, a)) most += av_at(r, a)->count;
  }
  if (most > FEW_ARGS) {
    args = rec_avs(r, most);
    names = arena_alloc(&r->g->arena, sizeof *names * most);
    if (!args || !names) return OUT_FAIL;
  }
  for (u32 k = 0; k < argc; k++) {
    Av a = f->regs[base + 1 + k];
    if (k == 0 && (ins_flags(i) & INS_METHOD)) { /* nothing there: what is called was a field */
      a = av_force(r, a);
      if (!a) return OUT_FAIL;
      if (av_is_hole(r, a)) continue;
    }
    if (d && d->spread && d->spread[k]) {
      a = av_force(r, a);
      if (!a) return OUT_FAIL;
      bool record = av_is_record(r, a);
      if (!av_is_list(r, a) && !record)
        return rec_stuck(r, REASON_no_rule, "%s spread into a call", av_kind_text(r, a));
      for (u32 j = 0; j < av_at(r, a)->count; j++) {
        names[n] = record ? av_at(r, a)->shape->keys[j] : 0;
        any_name |= record;
        args[n++] = av_item(r, a, j);
      }
      continue;
    }
    names[n] = d && d->names ? d->names[k] : 0;
    any_name |= names[n] != 0;
    args[n++] = a;
  }
  Av out;
  bool pushed;
  Outcome o = rec_begin_call(r, f->regs[base], args, any_name ? names : NULL, n, tail ? 0 : (u16)ins_a(i), &out,
                             &pushed);
  if (o != OUT_GO || pushed) return o;
  if (tail) return rec_do_return(r, s, out);
  return set(r, ins_a(i), out);
}

Outcome rec_do_return(Recorder *r, const Scope *s, Av v) {
  if (!v) return OUT_FAIL;
  if (rec_depth(r) == s->depth) {
    r->ret = v;
    return OUT_RETURN;
  }
  /* an inlined frame returns; frames that called it in tail position return as well */
  for (;;) {
    u16 result = rec_top(r)->result;
    rec_pop(r);
    RecFrame *f = rec_top(r);
    u32 op = ins_op(f->code->proto->code[f->pc]);
    if (op != BC_tail && op != BC_tailx) return set(r, result, v);
    if (rec_depth(r) == s->depth) {
      r->ret = v;
      return OUT_RETURN;
    }
  }
}

static Outcome step_checkarg(Recorder *r, Ins i) {
  RecFrame *f = rec_top(r);
  const Desc *d = &f->code->proto->descs[ins_c(i)];
  Av a = av_force(r, f->regs[ins_b(i)]);
  if (!a) return OUT_FAIL;
  if (d->dtype == DT_NONE && !d->has_dims) {
    const char *want = d->type_name ? name_text(&r->vm->names, d->type_name) : "";
    if (*want && strcmp(want, av_kind_text(r, a)) != 0)
      return rec_stuck(r, REASON_raises, "an annotation does not hold");
    f->pc++;
    return OUT_GO;
  }
  ValueId v = av_value(r, a);
  if (!v) return rec_stuck(r, REASON_raises, "an annotation does not hold");
  ArrayType t = *value_type(r->g, v);
  bool weak_fits = t.weak && dtype_kind(t.dtype) <= dtype_kind(d->dtype);
  u32 rank = d->has_dims ? d->rank : 0;
  if ((t.dtype != d->dtype && !weak_fits) || t.rank != rank)
    return rec_stuck(r, REASON_raises, "an annotation does not hold");
  u32 bound = 0;
  for (u32 k = 0; k < rank; k++) {
    if (d->dim_consts[k] == -2) continue;
    if (d->dim_consts[k] < 0 && d->dim_binds[k]) {
      Av n = av_num(r, graph_size(r->g, t.dims[k]));
      if (!n) return OUT_FAIL;
      f->regs[ins_a(i) + bound++] = n;
      continue;
    }
    Dim want = d->dim_consts[k];
    if (want < 0 && !av_dim(r, f->regs[d->dim_regs[k]], &want))
      return r->failed || r->g->failed ? OUT_FAIL : rec_stuck(r, REASON_raises, "an annotated size is no integer");
    i64 x, y;
    if (!size_hint(&r->g->sizes, want, &x) || !size_hint(&r->g->sizes, t.dims[k], &y) || x != y ||
        size_is_unbacked(&r->g->sizes, want) || size_is_unbacked(&r->g->sizes, t.dims[k]))
      return rec_stuck(r, REASON_raises, "an annotated size does not hold");
    if (!guard_relation(&r->g->guards, &r->g->sizes, REL_eq, want, t.dims[k], "annotation",
                        f->code->proto->spans[f->pc]))
      return OUT_FAIL;
  }
  f->pc++;
  return OUT_GO;
}

static Outcome step_fornext(Recorder *r, const Scope *s, Ins i) {
  RecFrame *f = rec_top(r);
  u32 a = ins_a(i);
  Av more;
  Outcome o = rec_binary(r, BC_lt, f->regs[a + 1], f->regs[a + 2], &more);
  if (o != OUT_GO) return o;
  Value v;
  if (av_const_value(r, more, &v)) return v.i ? rec_next_item(r, a) : go_to(r, s, ins_x(i));
  /* trip by trip: a further trip is relied on, else the interpreter ends the loop */
  u32 safe = r->safe_exit;
  u32 exit = r->no_exits ? safe : rec_exit(r, EXIT_check, CHECK_truth, f->code->proto->spans[f->pc]);
  if (exit == UINT32_MAX) return rec_stuck(r, REASON_loop_body, "a loop that is not lifted");
  ValueId operand_value = av_value(r, more);
  if (!graph_check(r->g, CHECK_assertion, &operand_value, 1, exit)) return OUT_FAIL;
  return rec_next_item(r, a);
}

static Outcome go_to(Recorder *r, const Scope *s, u32 target) {
  (void)s;
  rec_top(r)->pc = target;
  return OUT_GO;
}

static u32 loop_extent_at(const Proto *p, u32 head) {
  for (u32 i = 1; i < p->nextents; i++)
    if ((p->extents[i].kind == EXT_FOR || p->extents[i].kind == EXT_WHILE) && p->extents[i].head == head) return i;
  return 0;
}

static Outcome step(Recorder *r, const Scope *s) {
  RecFrame *f = rec_top(r);
  const Proto *p = f->code->proto;
  Ins i = p->code[f->pc];
  u32 op = ins_op(i);
  Av out;
  Outcome o;
  if (MECHANISM(r->vm, nodes_have_spans)) graph_origin(r->g, p->spans[f->pc], f->graph_frame, f->pc);
  switch (op) {
    case BC_move: return set(r, ins_a(i), operand(r, ins_b(i)));
    case BC_loadk: return set(r, ins_a(i), av_const(r, const_value(f->code, ins_x(i))));
    case BC_getmod: {
      u32 cell;
      Value now = f->code->module->slots[ins_x(i)].value;
      o = rec_cell_global(r, f->code->module, ins_x(i), &cell);
      if (o != OUT_GO) return o;
      Av v = r->cells.data[cell].value;
      /* a loop that assigns it on some way may have carried it */
      if (now.kind == V_HOLE && !(v = av_force(r, v))) return OUT_FAIL;
      if (now.kind == V_HOLE && av_is_hole(r, v)) {
        if (!(ins_flags(i) & INS_METHOD)) return rec_stuck(r, REASON_raises, "a variable without a value");
        v = av_const(r, value_nil());
      }
      return set(r, ins_a(i), v);
    }
    case BC_setmod: {
      u32 cell;
      Av v = av_force(r, operand(r, ins_a(i)));
      if (!v) return OUT_FAIL;
      if (av_has(r, v, IS_FUNCTION | IS_OUTER))
        return rec_stuck(r, REASON_module_write, "a function is bound to a module variable");
      o = rec_cell_global(r, f->code->module, ins_x(i), &cell);
      if (o != OUT_GO) return o;
      if ((o = rec_cell_write(r, cell, v)) != OUT_GO) return o;
      f->pc++;
      return OUT_GO;
    }
    case BC_getcap: {
      Av v = rec_capture(r, f->fn, ins_b(i));
      return set(r, ins_a(i), v);
    }
    case BC_groupfn: return set(r, ins_a(i), sibling(r, f, ins_b(i)));
    case BC_closure:
    case BC_group: return step_closure(r, i);
    case BC_array:
    case BC_list: return step_list(r, i);
    case BC_append:
    case BC_extend: return step_grow(r, i);
    case BC_toarray: {
      Av params[OP_MAX_PARAMS] = {f->regs[ins_a(i)]};
      if (av_at(r, av_force(r, params[0]))->count == 0) return rec_stuck(r, REASON_no_rule, "an empty array");
      o = rec_op(r, OP_stack, params, &out);
      return o == OUT_GO ? set(r, ins_a(i), out) : o;
    }
    case BC_record: return step_record(r, i);
    case BC_recput:
    case BC_recspread: return step_recput(r, i);
    case BC_range: {
      Av one = av_const(r, value_weak_i64(1));
      o = rec_make_range(r, f->regs[ins_b(i)], f->regs[ins_b(i) + 1],
                         ins_c(i) == 3 ? f->regs[ins_b(i) + 2] : one, &out);
      return o == OUT_GO ? set(r, ins_a(i), out) : o;
    }
    case BC_fmt:
      o = rec_text(r, operand(r, ins_b(i)), operand(r, ins_c(i)), &out);
      return o == OUT_GO ? set(r, ins_a(i), out) : o;
    case BC_join:
      o = rec_join(r, &f->regs[ins_b(i)], ins_c(i), &out);
      return o == OUT_GO ? set(r, ins_a(i), out) : o;
    case BC_index: {
      const u8 kind = IX_VALUE;
      Av at = operand(r, ins_c(i));
      o = rec_index(r, operand(r, ins_b(i)), &kind, 1, &at, &out);
      return o == OUT_GO ? set(r, ins_a(i), out) : o;
    }
    case BC_indexn: {
      const Desc *d = &p->descs[ins_c(i)];
      o = rec_index(r, f->regs[ins_b(i)], d->items, d->item_count, &f->regs[ins_b(i) + 1], &out);
      return o == OUT_GO ? set(r, ins_a(i), out) : o;
    }
    case BC_field:
      o = rec_field(r, operand(r, ins_b(i)), p->descs[ins_c(i)].name, &out, NULL);
      return o == OUT_GO ? set(r, ins_a(i), out) : o;
    case BC_method: {
      bool found;
      u32 a = ins_a(i);
      o = rec_field(r, f->regs[a + 1], p->descs[ins_b(i)].name, &out, &found);
      if (o != OUT_GO) return o;
      if (found) {
        f->regs[a] = out;
        f->regs[a + 1] = av_hole(r);
      } else {
        Value v;
        if (!f->regs[a] || (av_const_value(r, f->regs[a], &v) && v.kind == V_NIL))
          return rec_stuck(r, REASON_raises, "no such method");
      }
      f->pc++;
      return OUT_GO;
    }
    case BC_unpack:
    case BC_unpackrec: {
      const Desc *d = &p->descs[ins_c(i)];
      u32 n = (op == BC_unpack ? d->before + d->after : d->name_count) + d->has_rest;
      Av *parts = rec_avs(r, n);
      if (!parts) return OUT_FAIL;
      o = rec_unpack(r, operand(r, ins_b(i)), d, parts);
      if (o != OUT_GO) return o;
      for (u32 k = 0; k < n; k++) f->regs[ins_a(i) + k] = parts[k];
      f->pc++;
      return OUT_GO;
    }
    case BC_setpath: {
      const Desc *d = &p->descs[ins_c(i)];
      u32 cell = 0;
      Av root = 0;
      if (d->root == ROOT_MODULE) {
        o = rec_cell_global(r, f->code->module, d->root_slot, &cell);
        if (o != OUT_GO) return o;
        root = r->cells.data[cell].value;
      } else {
        root = f->regs[ins_a(i)];
      }
      root = av_force(r, root);
      if (!root) return OUT_FAIL;
      o = rec_path(r, d, root, &f->regs[ins_b(i)], &out);
      if (o != OUT_GO) return o;
      bool ref = av_has(r, root, IS_OBJECT); /* it stays what it is: what is written is its content */
      if (d->root == ROOT_MODULE && !ref) {
        if ((o = rec_cell_write(r, cell, out)) != OUT_GO) return o;
      } else if (d->root == ROOT_REGISTER) {
        if (!ref && (o = rec_fits(r, out)) != OUT_GO) return o;
        f->regs[ins_a(i)] = out;
      } else if (d->root == ROOT_FIXED && !ref) {
        return rec_stuck(r, REASON_raises, "a captured variable is assigned");
      }
      f->pc++;
      return OUT_GO;
    }
    case BC_call:
    case BC_callx:
    case BC_tail:
    case BC_tailx: return step_call(r, s, i);
    case BC_ret: return rec_do_return(r, s, operand(r, ins_a(i)));
    case BC_jump: return go_to(r, s, ins_x(i));
    case BC_jif:
    case BC_jnot: {
      o = rec_truth(r, operand(r, ins_a(i)), &out);
      if (o != OUT_GO) return o;
      Value v;
      bool on = op == BC_jif;
      u32 target = ins_x(i);
      bool leaves = s->cond_exit == target && rec_depth(r) == s->depth; /* the condition of the loop being lifted */
      if (leaves) {
        if (on) {
          Av params[1] = {out};
          o = av_const_value(r, out, &v) ? OUT_GO : rec_op(r, OP_logical_not, params, &out);
          if (o != OUT_GO) return o;
          if (av_const_value(r, out, &v)) out = av_const(r, value_bool(!v.i));
        }
        r->cond = av_value(r, out);
        f->pc++;
        return r->cond ? OUT_END : OUT_FAIL;
      }
      if (av_const_value(r, out, &v)) {
        if ((v.i != 0) == on) return go_to(r, s, target);
        f->pc++;
        return OUT_GO;
      }
      u32 fall = f->pc + 1, join = UINT32_MAX;
      for (u32 e = 1; e < p->nextents; e++)
        if (p->extents[e].kind == EXT_IF && p->extents[e].begin == f->pc) join = p->extents[e].end;
      /* the recorder's arms: [0] condition true */
      return rec_branch(r, s, out, on ? target : fall, on ? fall : target, join);
    }
    case BC_jgiven: {
      Av v = f->regs[ins_a(i)]; /* 0: nothing was ever in it */
      if (v && !(v = av_force(r, v))) return OUT_FAIL;
      bool hole = v && av_is_hole(r, v);
      if (hole) f->pc++;
      else f->pc = ins_x(i);
      return OUT_GO;
    }
    case BC_loop: return go_to(r, s, ins_x(i));
    case BC_forprep: return rec_begin_for(r, operand(r, ins_b(i)), ins_a(i));
    case BC_fornext: return step_fornext(r, s, i);
    case BC_import: return rec_stuck(r, REASON_effect_import, "import");
    case BC_checkarg: return step_checkarg(r, i);
    case BC_catch: return rec_stuck(r, REASON_try_block, "an error handler");
    default: break;
  }
  if (op >= BC_add && op <= BC_in) {
    o = rec_binary(r, op, operand(r, ins_b(i)), operand(r, ins_c(i)), &out);
    return o == OUT_GO ? set(r, ins_a(i), out) : o;
  }
  if (op == BC_neg || op == BC_pos || op == BC_bnot || op == BC_not || op == BC_truth) {
    o = rec_unary(r, op, operand(r, ins_b(i)), &out);
    return o == OUT_GO ? set(r, ins_a(i), out) : o;
  }
  return rec_stuck(r, REASON_no_rule, "%s", bc_info[op].name);
}

static Outcome once(Recorder *r, const Scope *s) {
  Outcome o = rec_past_effects(r);
  if (o != OUT_GO) return o;
  o = rec_flow(r, s);
  if (o != OUT_END) return o;
  const RecFrame *f = rec_top(r); /* no loop begins or ends here */
  bool back = ins_op(f->code->proto->code[f->pc]) == BC_loop;
  rec_behind_update(r);
  r->ins_depth = rec_depth(r);
  r->ins_effects = r->effects;
  o = step(r, s);
  r->back_edge = back;
  return o;
}

enum { STEPS_TIMED = 64 }; /* not a threshold: the clock is looked at once in so many steps */

bool rec_is_late(Recorder *r) {
  if (r->abstract || !tracer_late(r->tracer)) return false;
  (void)rec_stuck(r, REASON_too_long, "recording took longer than it may");
  r->failed = true;
  return true;
}

Outcome rec_run(Recorder *r, const Scope *s) {
  for (;;) {
    RecFrame *f = rec_top(r);
    bool mine = rec_depth(r) == s->depth;
    if (mine && f->pc == s->end && s->cond_exit == UINT32_MAX) return OUT_END;
    if (++r->steps > (u32)r->vm->tunables.trace_steps) {
      (void)rec_over(r, trace_steps, REASON_graph_size, "the trace");
      return OUT_FAIL;
    }
    if (r->g->nodes.count > (u32)r->vm->tunables.graph_nodes) {
      (void)rec_over(r, graph_nodes, REASON_graph_size, "the trace");
      return OUT_FAIL;
    }
    if (r->failed || r->g->failed) return OUT_FAIL;
    if (!toil(r->g->toil, 1) || (r->steps % STEPS_TIMED == 0 && rec_is_late(r))) return OUT_FAIL;
    Outcome o = r->force.kind ? force_step(r, s, once) : OUT_GO;
    if (o == OUT_GO) o = once(r, s);
    if (o != OUT_GO) return o;
  }
}

u32 rec_loop_extent(const Proto *p, u32 head) { return loop_extent_at(p, head); }

/* ---- whole traces -------------------------------------------------------------------------------------- */

static bool frame_inputs(Recorder *r, Frame *frame, RecordStart start) {
  RecFrame *f = rec_top(r);
  const Proto *p = f->code->proto;
  f->pc = frame->pc;
  SourceKind root = start == RECORD_ENTRY ? SRC_arg : SRC_reg;
  u32 n = start == RECORD_ENTRY ? p->nparams : p->nregs;
  u32 words = (p->nregs + 63) / 64;
  Allocator *alloc = &r->vm->alloc;
  u64 *bits = mem_alloc_zero(alloc, words * 8 + 8);
  if (!bits) return false;
  bool ok = rec_live(r, p, f->pc, bits);
  for (u32 i = 0; i < n && ok; i++) {
    if (!(bits[i / 64] >> (i % 64) & 1)) continue;
    SourceId s = source_root(&r->g->guards, root, i);
    ok = s && (f->regs[i] = av_lazy(r, s, frame->base[i]));
  }
  mem_free(alloc, bits, words * 8 + 8);
  return ok;
}

void recorder_free(Recorder *r) {
  Allocator *alloc = &r->vm->alloc;
  while (r->frames.count) rec_pop(r);
  for (u32 i = 0; i < r->kept.count; i++) value_drop(r->vm, r->kept.data[i]);
  vec_free(alloc, &r->kept);
  vec_free(alloc, &r->avs);
  vec_free(alloc, &r->items);
  vec_free(alloc, &r->source_av);
  vec_free(alloc, &r->trail);
  vec_free(alloc, &r->frames);
  vec_free(alloc, &r->cells);
  vec_free(alloc, &r->straight);
  rec_priors_free(r);
  vec_free(alloc, &r->masks);
  vec_free(alloc, &r->facts);
  for (u32 i = 0; i < r->live.count; i++) liveness_free(r->live.data[i].live);
  vec_free(alloc, &r->live);
  vec_free(alloc, &r->anchored);
  vec_free(alloc, &r->positions);
  vec_free(alloc, &r->weaks);
  vec_free(alloc, &r->dynamic);
  vec_free(alloc, &r->no_recur);
}

/* Guards, sources and recipes name keys by numbers, and are not asked when those who count them give them up: these
 * names stay. */
static void names_stay(Vm *vm, const Graph *g) {
  const GuardSet *set = &g->guards;
  for (u32 i = 0; i < set->guards.count; i++)
    for (u32 k = 0; k < set->guards.data[i].key_count; k++) name_stay(&vm->names, set->guards.data[i].keys[k]);
  for (u32 i = 1; i < set->sources.items.count; i++)
    if (set->sources.items.data[i].kind == SRC_field) name_stay(&vm->names, set->sources.items.data[i].index);
  for (u32 i = 0; i < g->exits.names.count; i++) name_stay(&vm->names, g->exits.names.data[i]);
}

static WeftStatus record_once(Vm *vm, Frame *frame, RecordStart start, const char *name, bool *pulls, bool *tokens,
                              RecordResult *out) {
  *out = (RecordResult){0};
  Recorder rec = {.vm = vm, .origin = frame, .tracer = tracer_of(vm),
                  .safe_exit = UINT32_MAX, .no_pulls = !*pulls};
  rec.force = rec.tracer->force;
  Recorder *r = &rec;
  r->g = graph_new(&vm->alloc, name);
  if (!r->g) {
    out->failed = true;
    return WEFT_ERROR;
  }
  r->g->toil = &vm->toil;
  r->g->names = &vm->names;
  r->g->file = frame->code->proto->file;
  r->g->ambient = vm->ambient;
  r->g->guards.switches = vm->switches;
  r->g->guards.code = frame->code;
  r->g->guards.names = &vm->names;
  r->g->guards.pc = frame->pc;
  Outcome o = OUT_FAIL;
  Span at = frame->code->proto->spans[frame->pc];
  if (!av_new(r, (AbsVal){0}) && r->failed) goto done;
  if (!guard_ambient(&r->g->guards, vm->ambient, at)) goto done;
  if (!rec_push(r, frame->code, 0, 0)) goto done;
  if (!frame_inputs(r, frame, start) || (*tokens && !rec_tokens_begin(r))) goto done;
  if (start == RECORD_ENTRY && r->tracer->demand.marks.count && !marks_apply(r, frame->code, rec_top(r)->regs))
    goto done;
  /* exit 0 is the end; its contents are known last, so the entry's own exit comes behind it */
  if (exit_begin(&r->g->exits, EXIT_return, 0, 0, at) != 0) goto done;
  r->g->entry_exit = rec_exit(r, EXIT_check, CHECK_none, at);
  if (r->g->entry_exit == UINT32_MAX) goto done;
  r->safe_exit = r->g->entry_exit;
  r->stop_after_loop = start == RECORD_LOOP;
  if (r->stop_after_loop) r->root_extent = loop_extent_at(frame->code->proto, frame->pc);
  Scope s = {.depth = 0, .end = r->stop_after_loop && r->root_extent ? frame->code->proto->extents[r->root_extent].end
                                                                     : UINT32_MAX, .cond_exit = UINT32_MAX};
  bool whole = false;
  o = start == RECORD_ENTRY ? rec_recur_whole(r, &whole) : OUT_GO;
  if (o == OUT_GO) o = whole ? OUT_RETURN : rec_run(r, &s);
  u32 exit = UINT32_MAX;
  switch (o) {
    case OUT_RETURN: exit = rec_exit_return(r, r->ret); break;
    case OUT_END: exit = rec_exit(r, EXIT_return, 0, at); break;
    case OUT_STUCK:
      out->broke = true;
      out->reason = r->reason;
      out->span = r->why_span;
      memcpy(out->why, r->why, sizeof out->why);
      exit = rec_exit(r, EXIT_break, r->reason, r->why_span);
      break;
    case OUT_ENDED: exit = r->g->entry_exit; break; /* every way out was taken: never reached */
    default: break;
  }
  if (exit == UINT32_MAX || !graph_close(r->g, TERM_exit, NULL, 0, exit)) o = OUT_FAIL;
  else if ((r->tracer->whole && !r->tracer->whole(r)) || !graph_cut(r->g)) o = OUT_FAIL;
done:
  if (r->dynamic.count && !r->failed && !r->g->failed) out->raised = marks_broken(r);
  if (out->raised || o == OUT_FAIL || r->failed || r->g->failed) {
    out->failed = true;
    if (!out->why[0]) memcpy(out->why, r->why, sizeof out->why);
    out->reason = r->reason ? r->reason : REASON_trace_failed;
    out->span = r->why_span.file ? r->why_span : at;
    graph_free(r->g);
    r->g = NULL;
  }
  if (r->g) names_stay(vm, r->g);
  if (r->g) r->g->batched = r->batched > 0 && MECHANISM(vm, lanes_are_many);
  out->graph = r->g;
  out->lifted_loops = r->lifted_loops;
  out->cold_exits = r->cold_exits;
  out->left_often = r->left_often;
  out->left_early = r->left_early;
  *pulls = r->pulls && !r->failed && o == OUT_FAIL;
  *tokens = r->wants_tokens && !r->failed && o == OUT_FAIL;
  recorder_free(r);
  return out->graph ? WEFT_OK : WEFT_ERROR;
}

WeftStatus record_trace(Vm *vm, Frame *frame, RecordStart start, const char *name, RecordResult *out) {
  if (toil_pass(&vm->toil)) toil_forever(&vm->toil);
  bool pulls = true, tokens = false;
  for (;;) { /* three times at most: each time one thing more is known */
    bool pulled = pulls, wanted = tokens;
    WeftStatus status = record_once(vm, frame, start, name, &pulled, &wanted, out);
    if (status == WEFT_OK || !(pulled || wanted)) return status;
    if (wanted) tokens = true;
    else pulls = false; /* a pullback stood where the trace had to be left */
  }
}
