/* record_call.c — calls in the trace: closures are inlined, built-ins become nodes, lists or constructs. */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_data.h"
#include "tracer/record/record_effects.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_recur.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns_use.h"
#include "tracer/record/repr_known.h"
#include "tracer/record/repr_names.h"
#include "tracer/record/repr_option.h"
#include "tracer/record/repr_range.h"
#include "tracer/record/repr_slice.h"
#include "tracer/tracer.h"

#include <string.h>

/* ---- frames -------------------------------------------------------------------------------------------- */

bool rec_push(Recorder *r, Code *code, Av fn, u16 result) {
  Proto *p = code->proto;
  Allocator *alloc = &r->vm->alloc;
  OriginId call = 0;
  if (r->frames.count) {
    RecFrame *f = rec_top(r);
    call = graph_origin(r->g, f->code->proto->spans[f->pc], f->graph_frame, f->pc);
  }
  const char *name = p->name ? name_text(&r->vm->names, p->name) : r->frames.count ? "fn" : "main";
  u32 graph = graph_frame(r->g, code, name, call);
  Av *regs = mem_alloc_zero(alloc, sizeof *regs * (p->nregs ? p->nregs : 1));
  if (!regs || r->g->failed || !vec_push(alloc, &r->frames, (RecFrame){.code = code, .graph_frame = graph,
                                                                       .result = result, .fn = fn, .regs = regs})) {
    mem_free(alloc, regs, sizeof *regs * (p->nregs ? p->nregs : 1));
    r->failed = true;
    return false;
  }
  return true;
}

void rec_pop(Recorder *r) {
  RecFrame *f = rec_top(r);
  u32 n = f->code->proto->nregs;
  mem_free(&r->vm->alloc, f->regs, sizeof *f->regs * (n ? n : 1));
  r->frames.count--;
}

Av rec_capture(Recorder *r, Av fn, u32 i) {
  const AbsVal *v = av_at(r, fn);
  if (fn && v->env == ENV_ITEMS) return av_item(r, fn, i);
  Env *env = fn && v->env == ENV_SOURCE ? v->konst.fn->env : r->origin->fn ? r->origin->fn->env : NULL;
  if (!env || i >= env->count) return 0;
  SourceId s = fn && v->env == ENV_SOURCE ? source_step(&r->g->guards, v->env_source, SRC_capture, i, NULL)
                                          : source_root(&r->g->guards, SRC_capture0, i);
  return av_lazy(r, s, env->slots[i]);
}

/* ---- binding ------------------------------------------------------------------------------------------- */

static Outcome bind_closure(Recorder *r, const Proto *p, const Av *args, const Name *names, u32 nargs, Av *regs) {
  Av few[16], *rest = nargs <= COUNT_OF(few) ? few : rec_avs(r, nargs);
  u32 nrest = 0, at = 0;
  if (!rest) return OUT_FAIL;
  Av hole = av_hole(r);
  if (!hole) return OUT_FAIL;
  for (u32 i = 0; i < p->nparams; i++) regs[i] = 0;
  for (u32 i = 0; i < nargs; i++) {
    if (names && names[i]) {
      u32 k = 0;
      while (k < p->nparams && (p->params[k].name != names[i] || (i32)k == p->rest_index)) k++;
      if (k == p->nparams || regs[k]) return rec_stuck(r, REASON_raises, "a call with a wrong argument name");
      regs[k] = args[i];
    } else if (at < p->npositional) {
      regs[at++] = args[i];
    } else if (p->rest_index >= 0) {
      rest[nrest++] = args[i];
    } else {
      return rec_stuck(r, REASON_raises, "a call with too many arguments");
    }
  }
  for (u32 i = 0; i < p->nparams; i++) {
    if ((i32)i == p->rest_index) {
      regs[i] = av_list(r, rest, nrest);
      if (!regs[i]) return OUT_FAIL;
    } else if (!regs[i]) {
      if (!p->params[i].has_default) return rec_stuck(r, REASON_raises, "a call with too few arguments");
      regs[i] = hole;
    }
  }
  return OUT_GO;
}

static Outcome bind_builtin(Recorder *r, u32 op, const Av *args, const Name *names, u32 nargs, Av *params) {
  const OpInfo *info = op_info(op);
  Av few[16], *rest = nargs <= COUNT_OF(few) ? few : rec_avs(r, nargs);
  u32 nrest = 0, at = 0;
  if (!rest) return OUT_FAIL;
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) params[i] = 0;
  for (u32 i = 0; i < nargs; i++) {
    if (names && names[i]) {
      const char *s = name_text(&r->vm->names, names[i]);
      u32 k = op_param(op, s);
      if (k == UINT32_MAX || params[k] || info->params[k].rest)
        return rec_stuck(r, REASON_raises, "%s: a wrong argument name", info->name);
      params[k] = args[i];
    } else if (at < info->nparams && !info->params[at].rest && !info->params[at].keyword_only) {
      params[at++] = args[i];
    } else if (at < info->nparams && info->params[at].rest) {
      rest[nrest++] = args[i];
    } else {
      return rec_stuck(r, REASON_raises, "%s: too many arguments", info->name);
    }
  }
  for (u32 i = 0; i < info->nparams; i++) {
    if (info->params[i].rest) {
      if (!(params[i] = av_list(r, rest, nrest))) return OUT_FAIL;
    } else if (!params[i] && !info->params[i].has_default) {
      return rec_stuck(r, REASON_raises, "%s: too few arguments", info->name);
    }
  }
  return OUT_GO;
}

/* ---- built-ins on lists, records and sizes ---------------------------------------------------------------- */

static Outcome of_map(Recorder *r, Av f, Av xs, Av *out) {
  AvVec items = {0};
  xs = av_force(r, xs);
  if (!xs) return OUT_FAIL;
  if (av_is_number(r, xs) && r->tracer->transforms[TF_vmap]) { /* over an array it is the batched function */
    Av zero = av_const(r, value_weak_i64(0)), axes[2] = {zero, zero}, y;
    Av fn = zero ? av_transform(r, TF_vmap, f, av_list(r, axes, 2)) : 0;
    if (!fn) return OUT_FAIL;
    r->prints = 0; /* all lanes at once */
    Outcome mapped = r->tracer->transforms[TF_vmap](r, fn, &xs, 1, &y);
    if (mapped == OUT_GO && !av_is_number(r, y))
      return rec_stuck(r, REASON_no_rule, "map of a function that gives %s", av_kind_text(r, y));
    if (mapped == OUT_GO) *out = y;
    return mapped;
  }
  Outcome o = rec_items(r, xs, &items);
  bool unrolls = o == OUT_GO || !r->tracer->constructs[OP_map];
  if (o == OUT_STUCK && !unrolls) o = r->tracer->constructs[OP_map](r, OP_map, (const Av[]){f, xs}, out);
  for (u32 i = 0; unrolls && i < items.count && o == OUT_GO; i++) {
    Av y;
    o = rec_call(r, f, &items.data[i], NULL, 1, &y);
    if (o == OUT_GO) items.data[i] = y;
  }
  if (o == OUT_GO && unrolls) o = rec_made(r, av_list(r, items.data, items.count), out);
  vec_free(&r->vm->alloc, &items);
  return o;
}

/* Lists of one item of each of them, with its number in front when they are `numbered`. Long ones stay in columns. */
static Outcome of_zip(Recorder *r, const Av *given, u32 n, bool numbered, Av *out) {
  u32 least = UINT32_MAX;
  AvVec all = {0}, rows = {0};
  Av *seqs = rec_avs(r, n), *row = rec_avs(r, n + 1);
  u32 *firsts = arena_alloc(&r->g->arena, sizeof *firsts * 2 * (n + 1)), *counts = firsts + n;
  if (!seqs || !row || !firsts) return OUT_FAIL;
  for (u32 i = 0; i < n; i++) seqs[i] = given[i]; /* which may move */
  Outcome o = OUT_GO;
  for (u32 i = 0; i < n && o == OUT_GO; i++) {
    firsts[i] = all.count;
    o = rec_items(r, seqs[i], &all);
    counts[i] = all.count - firsts[i];
    if (counts[i] < least) least = counts[i];
  }
  for (u32 k = 0; k < least && n && o == OUT_GO; k++) {
    u32 at = 0;
    if (numbered) row[at++] = av_const(r, value_weak_i64(k));
    for (u32 i = 0; i < n; i++) row[at++] = all.data[firsts[i] + k];
    Av item = av_list(r, row, at);
    if (!item || !vec_push(&r->vm->alloc, &rows, item)) o = OUT_FAIL;
  }
  if (o == OUT_GO) o = rec_made(r, av_list(r, rows.data, rows.count), out);
  else if (o == OUT_STUCK) o = rec_rows_zip(r, seqs, n, numbered, out);
  vec_free(&r->vm->alloc, &all);
  vec_free(&r->vm->alloc, &rows);
  return o;
}

/* `leaf`: items of a list are numbers on their way into `dtype`, and integers must fit it. */
Outcome rec_array(Recorder *r, Av x, Av dtype, bool leaf, Av *out) {
  x = av_force(r, x);
  if (!x) return OUT_FAIL;
  Av got = x;
  const bool number = av_is_number(r, x);
  const u32 own = number ? value_type(r->g, av_value(r, x))->dtype : DT_i64;
  if (!op_takes(OP_array, own))
    return rec_stuck(r, REASON_no_rule, "an array of %s", dtype_name(own));
  if (!number) {
    const Repr *p = av_repr(r, x);
    Outcome o = p->array ? p->array(r, x, dtype, leaf, &got) : repr_no(r, x, ROP_array);
    if (o != OUT_GO) return o;
  }
  if (leaf && number && dtype) {
    const ArrayType *t = value_type(r->g, av_value(r, got));
    if (!t->weak || dtype_kind(t->dtype) != DK_INT) dtype = 0; /* with the whole */
  }
  if (dtype && (number || !leaf)) {
    Av params[OP_MAX_PARAMS] = {got, dtype};
    return rec_op(r, OP_astype, params, out);
  }
  ValueId v = number && !leaf ? av_value(r, got) : 0; /* alone it is strong from here on */
  if (v) got = av_num(r, rec_strengthen(r, v, value_type(r->g, v)->dtype));
  return rec_made(r, got, out);
}

static Outcome of_assert(Recorder *r, Av c, Av *out) {
  Av t;
  Outcome o = rec_truth(r, c, &t);
  if (o != OUT_GO) return o;
  Value v;
  if (av_const_value(r, t, &v)) {
    if (!v.i) return rec_stuck(r, REASON_raises, "an assertion fails");
  } else {
    ValueId operand = av_value(r, t);
    if ((o = rec_check(r, CHECK_assertion, &operand, 1)) != OUT_GO) return o;
  }
  return rec_made(r, av_const(r, value_nil()), out);
}

static u32 reason_of_effect(u32 op) {
  switch ((OpEffect)op_info(op)->effect) {
    case EFF_output: return REASON_effect_output;
    case EFF_input: return REASON_effect_input;
    case EFF_clock:
    case EFF_process: return REASON_effect_time;
    case EFF_file: return REASON_effect_file;
    case EFF_ends: return REASON_raises;
    default: return REASON_no_rule;
  }
}

/* Does it make an array on a device? That is the interpreter's. */
static bool made_elsewhere(Recorder *r, u32 op, const Av *params) {
  u32 at = op_device_param(r->vm, op);
  if (op == OP_to || (op_info(op)->family == FAM_random && device_default(r->vm) != DEV_CPU)) return true;
  Value name;
  if (at == UINT32_MAX) return false;
  bool given = params[at] && !av_is_hole(r, params[at]);
  if (given && av_const_value(r, params[at], &name) && name.kind == V_NIL) given = false;
  if (!given) return device_default(r->vm) != DEV_CPU && !op_follows(op);
  return op_follows(op) || !av_const_value(r, params[at], &name) || name.kind != V_TEXT ||
         strcmp(name.text->data, r->vm->device_names[DEV_CPU]) != 0;
}

static Outcome builtin(Recorder *r, u32 op, const Av *params, Av *out) {
  ConstructFn construct = r->tracer->constructs[op];
  if (construct && op != OP_map) return construct(r, op, params, out);
  if (r->abstract && op == OP_print) return rec_made(r, av_const(r, value_nil()), out);
  Outcome of_character;
  if (rec_on_character(r, op, params, out, &of_character) || rec_number_of_text(r, op, params, out, &of_character) ||
      rec_of_known(r, op, params, out, &of_character))
    return of_character;
  switch (op) {
    case OP_len: return rec_length(r, params[0], out);
    case OP_map: return of_map(r, params[0], params[1], out);
    case OP_zip: return of_zip(r, &r->items.data[av_at(r, params[0])->first], av_at(r, params[0])->count, false, out);
    case OP_enumerate: return of_zip(r, params, 1, true, out);
    case OP_array: return rec_array(r, params[0], params[1], false, out);
    case OP_seed:
    case OP_rand:
    case OP_randn:
      if (op != OP_seed && made_elsewhere(r, op, params)) break;
      return rec_random(r, op, params, out);
    case OP_assert: return of_assert(r, params[0], out);
    case OP_print: return rec_print(r, params, out);
    case OP_str: return rec_text(r, params[0], av_const(r, value_nil()), out);
    case OP_range: {
      return rec_make_range(r, params[1] ? params[0] : av_const(r, value_weak_i64(0)),
                            params[1] ? params[1] : params[0],
                            params[2] ? params[2] : av_const(r, value_weak_i64(1)), out);
    }
    case OP_list: {
      AvVec items = {0};
      Outcome o = rec_items(r, params[0], &items);
      if (o == OUT_GO) o = rec_made(r, av_list(r, items.data, items.count), out);
      vec_free(&r->vm->alloc, &items);
      return o;
    }
    case OP_values: {
      Av x = av_force(r, params[0]);
      if (!x || !av_is_record(r, x)) break;
      return rec_made(r, av_list_of(r, av_at(r, x)->first, av_at(r, x)->count), out);
    }
    case OP_ref: {
      RecCell cell = {.value = params[0]};
      if (!vec_push(&r->vm->alloc, &r->cells, cell)) return OUT_FAIL;
      return rec_made(r, av_ref(r, r->cells.count - 1), out);
    }
    case OP_type: {
      Value text;
      if (!text_printf(r->vm, &text, "%s", av_kind_text(r, params[0]))) return OUT_FAIL;
      Av c = av_const(r, text);
      value_drop(r->vm, text);
      return rec_made(r, c, out);
    }
    default: break;
  }
  if (made_elsewhere(r, op, params)) return rec_stuck(r, REASON_device_mix, "%s: an array on a device", op_name(op));
  if (op_acts(op)) return rec_stuck(r, reason_of_effect(op), "%s", op_name(op));
  return rec_op(r, op, params, out);
}

/* A built-in or transform that calls functions: one that gets stuck inside, or gives a value that is too large, leaves
 * nothing behind, since the interpreter runs all of it again. */
static Outcome or_nothing(Recorder *r, const RecMark *mark, RecState *state, Outcome o, const Av *out) {
  if (o == OUT_GO) o = rec_fits(r, *out);
  if (o == OUT_STUCK) {
    rec_rollback(r, mark);
    rec_restore(r, state);
  }
  rec_state_free(r, state);
  return o;
}

static Outcome calling_builtin(Recorder *r, u32 op, const Av *params, Av *out) {
  if (!r->tracer->constructs[op] && op != OP_map) return builtin(r, op, params, out);
  RecMark mark = rec_mark(r);
  RecState state;
  u32 prints = r->prints;
  if (!rec_save(r, &state)) return OUT_FAIL;
  r->prints = op_info(op)->calls == CALLS_in_order ? prints + 1 : 0;
  Outcome o = builtin(r, op, params, out);
  r->prints = prints;
  return or_nothing(r, &mark, &state, o, out);
}

/* ---- calls ---------------------------------------------------------------------------------------------- */

Outcome rec_call_builtin(Recorder *r, Av fn, const CallArgs *a, Av *out, bool *pushed) {
  Av params[OP_MAX_PARAMS];
  const u32 op = av_at(r, fn)->konst.fn->op;
  (void)pushed;
  Outcome o = bind_builtin(r, op, a->args, a->names, a->count, params);
  return o == OUT_GO ? calling_builtin(r, op, params, out) : o;
}

/* A conversion. */
Outcome rec_call_dtype(Recorder *r, Av fn, const CallArgs *a, Av *out, bool *pushed) {
  (void)pushed;
  if (av_at(r, fn)->konst.kind != V_DTYPE) return rec_stuck(r, REASON_raises, "%s is called", av_kind_text(r, fn));
  if (a->count != 1 || (a->names && a->names[0])) return rec_stuck(r, REASON_raises, "a conversion takes one value");
  return rec_array(r, a->args[0], fn, false, out);
}

Outcome rec_call_transform(Recorder *r, Av fn, const CallArgs *a, Av *out, bool *pushed) {
  TraceTransformFn transform = r->tracer->transforms[av_at(r, fn)->op];
  (void)pushed;
  if (!transform || a->names) return rec_stuck(r, REASON_no_rule, "a transformed function");
  RecMark mark = rec_mark(r);
  RecState state;
  u32 prints = r->prints;
  if (!rec_save(r, &state)) return OUT_FAIL;
  r->prints = 0;
  Outcome o = transform(r, fn, a->args, a->count, out);
  r->prints = prints;
  return or_nothing(r, &mark, &state, o, out);
}

/* Of the host: by the rule that it gave, else as it is. */
Outcome rec_call_function(Recorder *r, Av fn, const CallArgs *a, Av *out, bool *pushed) {
  const AbsVal v = *av_at(r, fn);
  const bool host = !v.op && v.konst.fn->kind == FN_HOST;
  const Value rule = host ? v.konst.fn->host->rule : value_nil();
  /* what the host says it does */
  if (rule.kind == V_FN && rule.fn->kind == FN_CLOSURE && (!rule.fn->env || !rule.fn->env->count)) {
    fn = av_closure(r, rule.fn->code);
    return fn ? rec_call_closure(r, fn, a, out, pushed) : OUT_FAIL;
  }
  return host ? rec_host(r, fn, a->args, a->names, a->count, out)
              : rec_stuck(r, REASON_dynamic_call, "it is another function again and again");
}

/* A tail call is inlined like any other: its frame stands only while tracing. */
Outcome rec_call_closure(Recorder *r, Av fn, const CallArgs *a, Av *out, bool *pushed) {
  Code *code = av_at(r, fn)->code;
  if (!MECHANISM(r->vm, inlining)) return rec_stuck(r, REASON_dynamic_call, "a function");
  u32 same = 0;
  for (u32 i = 0; i < r->frames.count; i++) same += r->frames.data[i].code == code;
  Proto *p = code->proto;
  Av regs_small[64], *regs = p->nparams <= COUNT_OF(regs_small) ? regs_small : rec_avs(r, p->nparams);
  if (!regs) return OUT_FAIL;
  Outcome o = bind_closure(r, p, a->args, a->names, a->count, regs);
  if (o != OUT_GO) return o;
  bool done;
  o = same ? rec_recur(r, fn, code, regs, out, &done) : rec_recur_first(r, fn, code, regs, out, &done);
  if (o != OUT_GO || done) return o;
  if (same > (u32)(r->nest ? r->vm->tunables.inline_recursion : r->vm->tunables.inline_straight))
    return rec_stuck(r, REASON_recursion, "recursion");
  if (r->frames.count > (u32)r->vm->tunables.inline_depth)
    return rec_stuck(r, REASON_recursion, "calls nested too deep");
  if (!rec_push(r, code, fn, a->result)) return OUT_FAIL;
  for (u32 i = 0; i < p->nparams; i++) rec_top(r)->regs[i] = regs[i];
  if (r->tracer->demand.marks.count && !marks_apply(r, code, rec_top(r)->regs)) return OUT_FAIL;
  *pushed = true;
  return OUT_GO;
}

Outcome rec_begin_call(Recorder *r, Av fn, const Av *args, const Name *names, u32 nargs, u16 result, Av *out,
                       bool *pushed) {
  *pushed = false;
  Outcome there = rec_there(r, &fn);
  if (there != OUT_GO) return there;
  fn = av_force(r, fn);
  if (!fn) return OUT_FAIL;
  Av sure[OP_MAX_PARAMS];
  if (r->options && !av_is_closure(r, fn)) { /* what is not written in Weft takes no value that may be nil */
    for (u32 i = 0; i < nargs; i++) {
      if (!rec_has_option(r, args[i])) continue;
      if (nargs > COUNT_OF(sure)) return rec_stuck(r, REASON_no_rule, "many arguments, and one that may be nil");
      if (args != sure) args = memcpy(sure, args, nargs * sizeof *args);
      if ((there = rec_there(r, &sure[i])) != OUT_GO) return there;
      if (rec_has_option(r, sure[i])) return rec_stuck(r, REASON_no_rule, "a part of an argument may be nil");
    }
  }
  const Repr *p = av_repr(r, fn);
  const CallArgs a = {args, names, nargs, result};
  return p->call ? p->call(r, fn, &a, out, pushed) : repr_no(r, fn, ROP_call);
}

/* What a call wrote, told to the loops around it: they carry it, or the trace of them begins anew. */
static Outcome tell_writes(Recorder *r, const RecState *before) {
  Outcome o = OUT_GO;
  for (u32 i = 0; r->loop && i < r->cells.count && o == OUT_GO; i++) {
    const RecCell *c = &r->cells.data[i];
    bool known = i < before->ncells, wrote = c->dirty && (known ? !before->cells[i].dirty : c->source != 0);
    if (wrote || (known && c->value != before->cells[i].value)) o = rec_cell_write(r, i, c->value);
  }
  return o;
}

Outcome rec_call(Recorder *r, Av fn, const Av *args, const Name *names, u32 nargs, Av *out) {
  if (r->nest > (u32)r->vm->tunables.trace_calls) return rec_over(r, trace_calls, REASON_graph_size, "calls");
  RecMark mark = rec_mark(r);
  RecState state;
  bool pushed;
  if (!rec_save(r, &state)) return OUT_FAIL;
  r->nest++;
  r->no_exits++;
  RecLoop *loop = r->loop;
  r->loop = NULL;
  Outcome o = rec_begin_call(r, fn, args, names, nargs, 0, out, &pushed);
  if (o == OUT_GO && pushed) {
    Scope s = {.depth = rec_depth(r), .end = UINT32_MAX, .cond_exit = UINT32_MAX};
    o = rec_run(r, &s);
    if (o == OUT_RETURN) {
      *out = r->ret;
      rec_pop(r);
      o = OUT_GO;
    } else if (o != OUT_FAIL && o != OUT_STUCK) {
      o = rec_stuck(r, REASON_construct_body, "a function that does not return");
    }
  }
  r->loop = loop;
  if (o == OUT_GO && r->options && rec_has_option(r, av_force(r, *out)))
    o = rec_stuck(r, REASON_construct_body, "a function that gives nil on one way only");
  if (o == OUT_GO) o = tell_writes(r, &state);
  r->no_exits--;
  r->nest--;
  if (o != OUT_GO) {
    rec_rollback(r, &mark);
    rec_restore(r, &state);
    if (!MECHANISM(r->vm, breaks_blame_bodies)) r->why_span = rec_here(r);
  }
  rec_state_free(r, &state);
  return o;
}
