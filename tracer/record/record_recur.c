/* record_recur.c — functions of numbers that call themselves: the body stands in the graph once, as a node that
 * calls itself, instead of calls inlined into each other.
 *
 * The body is pure: it writes no variable, makes no array and gives one number. Or it gives one of its parameters, an
 * array of which elements were changed: all calls inside change the same one, and where the code is left it is as it
 * was. So whatever fails inside, however deep, leaves by the exit before the outermost call, and the interpreter does
 * that call again: errors, traces and the limit of depth are its own. What the calls inside give is of the type that
 * the body gives: guessed first, then recorded again with what came out, or with another guess where its arms do not
 * agree.
 * Arguments that are no numbers must be the same in every call; lists and texts of which items are asked for by
 * computed positions are packed once, before the outermost call. A call in tail position nests like any other here:
 * what nests deeper than compiled code may is the interpreter's, which does not. */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_recur.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/tracer.h"

#include <string.h>

/* not a threshold: room; a function of more is inlined as any other is */
enum { PARAMS_MOST = 16, TRIES = 6, NESTED_MOST = 2 };

typedef struct RecRecur RecRecur;
struct RecRecur {
  struct RecRecur *outer;
  Code *code;
  Av fn;
  u32 nparams, no_exits;
  Av args[PARAMS_MOST];     /* as the body sees them */
  TypeId types[PARAMS_MOST]; /* 0: the same in every call */
  u32 state;                 /* 1 + the parameter that is the array which each call changes and gives; 0: none */
  TypeId result;
  bool flagged;             /* a second result says whether the first is weak */
};

static bool same_fn(const Recorder *r, Av a, Av b) {
  const AbsVal *x = av_at(r, a), *y = av_at(r, b);
  if (a == b) return true;
  if (!kind_is_closure(x->kind) || !kind_is_closure(y->kind) || x->code != y->code) return false;
  if (!x->code->proto->ncaptures) return true;
  return x->env == y->env && (x->env == ENV_ITEMS ? x->first == y->first : x->env_source == y->env_source);
}

static bool same_static(Recorder *r, Av a, Av b) {
  a = av_force(r, a);
  b = av_force(r, b);
  if (!a || !b || a == b) return a && b;
  const AbsVal *x = av_at(r, a), *y = av_at(r, b);
  if (x->kind != y->kind) return false;
  if (kind_is_value(x->kind)) return x->value == y->value;
  if (kind_is_constant(x->kind))
    return x->konst.kind == y->konst.kind && x->konst.dtype == y->konst.dtype && x->konst.bits == y->konst.bits;
  return kind_is_hole(x->kind) || same_fn(r, a, b);
}

/* The number of rank 0 that an argument is; 0: something else. */
static ValueId number(Recorder *r, Av a) {
  a = av_force(r, a);
  if (!a || !av_is_number(r, a)) return 0;
  ValueId v = av_value(r, a);
  return v && value_type(r->g, v)->rank == 0 && !value_type(r->g, v)->device ? v : 0;
}

/* What a call gives for a parameter: a number, or the array that all calls change; 0: something else. */
static ValueId operand_of(Recorder *r, const RecRecur *e, u32 i, Av a) {
  if (e->state != i + 1) return number(r, a);
  a = av_force(r, a);
  ValueId v = a && av_is_number(r, a) ? av_value(r, a) : 0;
  return v && value_type(r->g, v)->rank && !value_type(r->g, v)->device ? v : 0;
}

static bool recur_fits(Recorder *r, const RecRecur *e, Av fn, const Code *code, const Av *params) {
  if (e->code != code || !same_fn(r, e->fn, fn)) return false;
  for (u32 i = 0; i < e->nparams; i++) {
    ValueId v = e->types[i] ? operand_of(r, e, i, params[i]) : 0;
    if (e->types[i] ? !v || r->g->values.data[v].type != e->types[i] ||
        rec_weak_flag(r, v) : !same_static(r, e->args[i], params[i]))
      return false;
  }
  return true;
}

static Outcome result_of(Recorder *r, NodeId n, bool flagged, Av *out) {
  if (!n) return OUT_FAIL;
  ValueId v = node_result(r->g, n, 0);
  if (flagged && !rec_weak_note(r, v, node_result(r->g, n, 1))) return OUT_FAIL;
  *out = av_num(r, v);
  return *out ? OUT_GO : OUT_FAIL;
}

static Outcome call_again(Recorder *r, const RecRecur *e, const Av *params, Av *out) {
  ValueId xs[PARAMS_MOST];
  u32 count = 0;
  for (u32 i = 0; i < e->nparams; i++)
    if (e->types[i]) xs[count++] = operand_of(r, e, i, params[i]);
  TypeId types[2] = {e->result, e->flagged ? graph_scalar_type(r->g, DT_bool, false) : 0};
  return result_of(r, graph_node(r->g, NODE_self, 0, xs, count, NULL, 0, types, e->flagged ? 2 : 1), e->flagged, out);
}

/* What the function gives as the body's results. *again: it is of another type than was taken for granted. */
static Outcome settle(Recorder *r, RecRecur *e, Av ret, ValueId *out, bool *again) {
  Graph *g = r->g;
  *again = false;
  if (e->state) {
    out[0] = operand_of(r, e, e->state - 1, ret);
    if (r->failed || g->failed) return OUT_FAIL;
    if (out[0] && g->values.data[out[0]].type == e->result) return OUT_GO;
    return rec_stuck(r, REASON_recursion, "a function that calls itself gives %s", av_kind_text(r, ret));
  }
  ValueId v = number(r, ret), flag = v ? rec_weak_flag(r, v) : 0;
  if (r->failed || g->failed) return OUT_FAIL;
  if (!v) return rec_stuck(r, REASON_recursion, "a function that calls itself gives %s", av_kind_text(r, ret));
  const ArrayType *t = value_type(g, v), *want = type_of(g, e->result);
  if (e->flagged && t->dtype == want->dtype) {
    out[1] = flag ? flag : graph_const(g, value_bool(t->weak));
    out[0] = graph_convert(g, v, t->dtype);
    return out[0] && out[1] ? OUT_GO : OUT_FAIL;
  }
  out[0] = v;
  if (!flag && g->values.data[v].type == e->result) return OUT_GO;
  *again = true;
  bool mixed = flag || (t->dtype == want->dtype && t->weak && !want->weak);
  e->flagged = mixed && t->dtype == want->dtype && !want->weak; /* that it was taken as weak may be why */
  e->result = graph_scalar_type(g, t->dtype, t->weak && !mixed);
  return e->result ? OUT_GO : OUT_FAIL;
}

/* Numbers, loops and branches alone, and elements of arrays that are only read; with a `state`, its elements are
 * written. */
static bool is_plain(const Graph *g, BlockId body, bool state) {
  for (GraphWalk w = walk_begin(g, body); walk_next(&w);) {
    const GraphNode *x = &g->nodes.data[w.node];
    bool known = x->kind == NODE_op || x->kind == NODE_index || x->kind == NODE_check || x->kind == NODE_cond ||
                 x->kind == NODE_while || x->kind == NODE_self || x->kind == NODE_recur ||
                 (state && x->kind == NODE_update);
    bool gives = state && (x->kind == NODE_update || x->kind == NODE_cond || x->kind == NODE_while ||
                           x->kind == NODE_self);
    if (!known || node_is_effect(g, w.node)) return false;
    for (u32 i = 0; i < x->result_count && !gives; i++)
      if (value_type(g, x->result_first + i)->rank) return false;
    if (x->kind == NODE_update && value_type(g, node_operand(g, w.node, x->operand_count - 1u))->rank) return false;
    for (u32 i = 0; x->kind == NODE_op && i < x->operand_count; i++)
      if (value_type(g, node_operand(g, w.node, i))->rank) return false;
  }
  return true;
}

/* Records the body into a block of its own, left open. */
static Outcome record_body(Recorder *r, RecRecur *e, BlockId *body, Av *ret) {
  Graph *g = r->g;
  *body = graph_open(g);
  if (!*body) return g->failed ? OUT_FAIL : rec_stuck(r, REASON_graph_size, "blocks nested too deep");
  for (u32 i = 0; i < e->nparams; i++)
    if (e->types[i] && !(e->args[i] = av_num(r, graph_param(g, *body, e->types[i])))) return OUT_FAIL;
  RecLoop *loop = r->loop;
  u64 effects = r->effects;
  u32 cells = r->cells.count;
  r->loop = NULL;
  r->nest++;
  r->repeats++; /* lists that it is given are packed before the outermost call */
  r->no_exits++;
  e->no_exits = r->no_exits;
  e->outer = r->recur;
  r->recur = e;
  Outcome o = rec_push(r, e->code, e->fn, 0) ? OUT_GO : OUT_FAIL;
  if (o == OUT_GO) {
    mem_copy(rec_top(r)->regs, e->args, sizeof *e->args * e->nparams);
    Scope s = {.depth = rec_depth(r), .end = UINT32_MAX, .cond_exit = UINT32_MAX};
    o = rec_run(r, &s);
    if (o == OUT_RETURN) {
      *ret = r->ret;
      rec_pop(r);
      o = OUT_GO;
    } else if (o != OUT_FAIL && o != OUT_STUCK) {
      o = rec_stuck(r, REASON_recursion, "a function that does not return");
    }
  }
  r->recur = e->outer;
  r->no_exits--;
  r->repeats--;
  r->nest--;
  r->loop = loop;
  bool writes = r->effects != effects;
  for (u32 i = cells; i < r->cells.count; i++) writes |= !r->cells.data[i].source;
  return o == OUT_GO && writes ? rec_stuck(r, REASON_recursion, "a function that writes variables calls itself") : o;
}

/* One try. *again: the result's type was another one, it stands in e. */
static Outcome recur_once(Recorder *r, RecRecur *e, const ValueId *xs, u32 count, u32 exit, bool *again, Av *out) {
  Graph *g = r->g;
  BlockId body;
  Av ret = 0;
  ValueId results[2];
  Outcome o = record_body(r, e, &body, &ret);
  bool flagged = e->flagged;
  if (o == OUT_GO) o = settle(r, e, ret, results, again);
  if (o != OUT_GO || *again) return o;
  if (!graph_close(g, TERM_yield, results, flagged ? 2 : 1, 0)) return OUT_FAIL;
  if (!is_plain(g, body, e->state != 0))
    return rec_stuck(r, REASON_recursion, "a function that calls itself works on arrays");
  NodeId n = graph_recur(g, xs, count, body);
  if (n) g->nodes.data[n].exit = exit;
  return result_of(r, n, flagged, out);
}

/* What the function may give when a whole number does not go with the rest of it: what it is given, or a boolean. 0: no
 * more. */
static TypeId next_guess(Recorder *r, const RecRecur *e, u32 *guess) {
  while (*guess < e->nparams) {
    u32 i = (*guess)++;
    bool seen = !e->types[i] || type_of(r->g, e->types[i])->dtype == DT_i64;
    for (u32 k = 0; k < i; k++) seen |= e->types[k] == e->types[i];
    if (!seen) return e->types[i];
  }
  return (*guess)++ == e->nparams ? graph_scalar_type(r->g, DT_bool, false) : 0;
}

static Outcome record_recur(Recorder *r, RecRecur *e, const Av *params, Av *out, bool *done) {
  ValueId xs[PARAMS_MOST];
  u32 count = 0, guess = 0, exit = rec_present_exit(r);
  Outcome o = OUT_GO;
  for (u32 i = 0; i < e->nparams; i++) {
    ValueId v = operand_of(r, e, i, params[i]);
    e->args[i] = params[i];
    if (!v) continue;
    if (e->state != i + 1 && rec_weak_flag(r, v)) return OUT_GO;
    xs[count++] = v;
    e->types[i] = r->g->values.data[v].type;
  }
  if (r->failed || r->g->failed) return OUT_FAIL;
  if (!count || exit == UINT32_MAX) return OUT_GO;
  e->result = e->state ? e->types[e->state - 1] : graph_scalar_type(r->g, DT_i64, true);
  for (u32 try = 0; try < (e->state ? 1u : TRIES) && !*done; try++) {
    RecMark mark = rec_mark(r);
    RecState state;
    bool again = false;
    if (!rec_save(r, &state)) return OUT_FAIL;
    u32 safe = r->safe_exit;
    r->safe_exit = exit;
    o = recur_once(r, e, xs, count, exit, &again, out);
    r->safe_exit = safe;
    const ArrayType result = e->state ? (ArrayType){0} : *type_of(r->g, e->result);
    *done = o == OUT_GO && !again;
    rec_end_try(r, &mark, &state, again && o == OUT_GO ? OUT_STUCK : o);
    if (o == OUT_STUCK && !e->state && r->reason == REASON_branch_merge && (e->result = next_guess(r, e, &guess))) {
      e->flagged = false;
      continue;
    }
    if (o != OUT_GO) break;
    /* types made in the try are gone */
    if (!*done && !e->state) e->result = graph_scalar_type(r->g, result.dtype, result.weak);
  }
  return o == OUT_STUCK ? OUT_GO : o;
}

Outcome rec_recur(Recorder *r, Av fn, Code *code, const Av *params, Av *out, bool *done) {
  u32 n = code->proto->nparams, nested = 0;
  *done = false;
  if (r->abstract || r->differentiating || r->tracer->restarted || (r->g->ambient & AMBIENT_TAPE) || n > PARAMS_MOST ||
      r->no_exits != (r->recur ? r->recur->no_exits : 0) || r->safe_exit == UINT32_MAX)
    return OUT_GO;
  for (const RecRecur *e = r->recur; e; e = e->outer) nested++;
  if (r->recur && r->recur->code == code) {
    if (recur_fits(r, r->recur, fn, code, params)) {
      *done = true;
      return call_again(r, r->recur, params, out);
    }
  }
  if (nested == NESTED_MOST) return OUT_GO;
  for (u32 i = 0; i < r->no_recur.count; i++)
    if (r->no_recur.data[i] == code) return OUT_GO;
  RecRecur e = {.code = code, .fn = fn, .nparams = n};
  Outcome o = record_recur(r, &e, params, out, done);
  /* or one that changes an array, which it gives: the next call's, or the caller's */
  for (u32 i = 0; i < n && o == OUT_GO && !*done && MECHANISM(r->vm, recursive_arrays); i++) {
    e = (RecRecur){.code = code, .fn = fn, .nparams = n, .state = i + 1};
    if (operand_of(r, &e, i, params[i])) o = record_recur(r, &e, params, out, done);
  }
  if (o == OUT_GO && !*done && !vec_push(&r->vm->alloc, &r->no_recur, code)) return OUT_FAIL;
  return o;
}

/* Does the code say so itself, by a variable of its module? */
static bool names_itself(const Code *code) {
  const Proto *p = code->proto;
  for (u32 pc = 0; pc < p->ncode; pc++) {
    if (ins_op(p->code[pc]) != BC_getmod) continue;
    Value v = code->module->slots[ins_x(p->code[pc])].value;
    if (v.kind == V_FN && v.fn->kind == FN_CLOSURE && v.fn->code == code) return true;
  }
  return false;
}

/* The function that the trace begins with: where it is one that this file records, its body need not stand in the
 * graph besides, nor once for each of the calls in it. */
Outcome rec_recur_whole(Recorder *r, bool *done) {
  RecFrame *f = rec_top(r);
  Code *code = f->code;
  Av params[PARAMS_MOST], out = 0;
  u32 n = code->proto->nparams;
  *done = false;
  if (n > PARAMS_MOST || code->proto->ncaptures || r->force.kind || r->tracer->demand.marks.count ||
      !names_itself(code))
    return OUT_GO;
  for (u32 i = 0; i < n; i++)
    if (!(params[i] = f->regs[i])) return OUT_GO;
  Av fn = av_closure(r, code);
  if (!fn) return OUT_FAIL;
  Outcome o = rec_recur(r, fn, code, params, &out, done);
  if (o != OUT_GO || !*done) {
    r->no_recur.count = 0; /* in its own calls it may be one: what they are given may be of other types */
    return o;
  }
  r->ret = out;
  return OUT_GO;
}
