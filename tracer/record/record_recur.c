/* record_recur.c — functions of numbers that call themselves: the body stands in the graph once, as a node that
 * calls itself, instead of calls inlined into each other.
 *
 * The body makes no array, and gives a number, a constant, or a list or record of numbers. Or it gives one of its
 * parameters, an array of which elements were changed: all calls inside change the same one. Variables that it writes
 * (of the module, and contents of refs) are given to each call behind the parameters and come back behind the result:
 * numbers as numbers, of arrays all calls change the same one. Where the code is left all of these are as they were.
 * So whatever fails inside, however deep, leaves by the exit before the outermost call, and the interpreter does
 * that call again: errors, traces and the limit of depth are its own. What the calls inside give is of the type that
 * the body gives: guessed first, then recorded again with what came out, or with another guess where its arms do not
 * agree. Which variables it writes is known when it was recorded, too.
 * An array of which elements were changed may also be given to a call alone: it is by value, the caller's stays as it
 * is. These stand behind everything else that a call is given. A part of an array that is only read is numbers, which
 * say where it lies in the array of the outermost call (repr_window.c).
 * Other arguments that are no numbers, nor lists or records of numbers, must be the same in every call; lists and
 * texts of which items are asked for by computed positions are packed once, before the outermost call. A call in tail
 * position nests like any other here: what nests deeper than compiled code may is the interpreter's, which does not.
 */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_recur.h"
#include "tracer/record/record_return.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_stacked.h"
#include "tracer/record/repr_window.h"
#include "tracer/tracer.h"

#include <string.h>

/* not a threshold: room; a function of more is inlined as any other is */
enum { PARAMS_MOST = 16, PARTS_MOST = 16, GIVES_MOST = COUNT_OF(((RecReturn *)0)->types), LEAVES_MOST = 8, TRIES = 8,
       NESTED_MOST = 2 };

typedef struct RecGives { /* what every call gives */
  RecReturn form;
  u8 flagged; /* these of its numbers are strong, and a bool beside each says whether it is weak */
} RecGives;

typedef struct RecRecur RecRecur;
struct RecRecur {
  struct RecRecur *outer;
  Code *code;
  Av fn;
  u32 nparams, no_exits;
  Av args[PARAMS_MOST];     /* as the body sees them */
  TypeId types[PARAMS_MOST]; /* 0: the same in every call, or one of `tree` */
  u8 elements[PARAMS_MOST];  /* dtypes of those that are arrays; DT_NONE */
  u32 tree;                  /* bits: parameters that are lists or records of numbers, which each call gives */
  u32 lists;                 /* bits, of tree too: lists of any length, which lie in the stack of the calls */
  Value list_kind;           /* of their items, kept by the recorder */
  u32 stack, stack_at;       /* the cell of the stack; 1 + its place in `cells`, 0: there is none */
  TypeId part_types[PARTS_MOST]; /* of these numbers */
  u32 state;                 /* 1 + the parameter that is the array which each call changes and gives; 0: none */
  u32 windows;               /* bits, of tree too: parts of an array that calls hand on parts of */
  u32 weak;                  /* bits: numbers that are strong, and a bool beside each says whether it is weak */
  u32 by_value;              /* bits: parameters that are arrays which calls are given changed */
  RecGives gives;            /* without a state */
  RecCellSet cells;          /* variables that the body writes */
  Av trees[CELL_SET_MAX];    /* each as it is before the outermost call */
  u32 leaves[CELL_SET_MAX], all_leaves; /* how many numbers and arrays each is made of */
  TypeId leaf_types[LEAVES_MOST];
  bool leaf_flagged[LEAVES_MOST]; /* as RecGives.flagged */
  bool again;                     /* something else is known now: the body is recorded once more */
  bool called, plain;             /* its body calls it; the whole body was recorded without that */
  NodeId node;                    /* made of it */
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
  if (a && av_is_lazy(r, a) && av_at(r, a)->konst.kind == V_LIST) return 0; /* how long it is need not be relied on */
  a = av_force(r, a);
  if (!a || !av_is_number(r, a)) return 0;
  ValueId v = av_value(r, a);
  return v && value_type(r->g, v)->rank == 0 && !value_type(r->g, v)->device ? v : 0;
}

/* What a call gives for a parameter: a number, or the array that all calls change; 0: something else. */
static ValueId operand_of(Recorder *r, const RecRecur *e, u32 i, Av a) {
  if (e->state != i + 1 && !(e->by_value >> i & 1)) return number(r, a);
  a = av_force(r, a);
  ValueId v = a && av_is_number(r, a) ? av_value(r, a) : 0;
  return v && value_type(r->g, v)->rank && !value_type(r->g, v)->device ? v : 0;
}

/* The numbers of the parameters that are trees, behind other operands. first: in front of the outermost call. */
static Outcome tree_values(Recorder *r, RecRecur *e, const Av *params, bool first, ValueId *out, u32 *count) {
  AvVec leaves = {0};
  Outcome o = OUT_GO;
  for (u32 i = 0, at = 0; i < e->nparams && o == OUT_GO; i++) {
    if (!(e->tree >> i & 1)) continue;
    leaves.count = 0;
    Av a = av_force(r, params[i]);
    if (!a || !carry_leaves(r, a, &leaves)) o = OUT_FAIL;
    bool fits = o == OUT_GO && at + leaves.count <= PARTS_MOST && (first || carry_same(r, e->args[i], a));
    for (u32 k = 0; k < leaves.count && fits; k++, at++) {
      ValueId v = number(r, leaves.data[k]);
      fits = v && !rec_weak_flag(r, v) && (first || r->g->values.data[v].type == e->part_types[at]);
      if (!fits) break;
      e->part_types[at] = r->g->values.data[v].type;
      out[(*count)++] = v;
    }
    if (o == OUT_GO && !fits) o = rec_stuck(r, REASON_recursion, "a function that calls itself with another tree");
  }
  vec_free(&r->vm->alloc, &leaves);
  return r->failed || r->g->failed ? OUT_FAIL : o;
}

/* As a strong number, and the flag beside it. */
static bool strong_and_flag(Recorder *r, ValueId v, ValueId *strong, ValueId *flag) {
  *flag = rec_weak_flag(r, v);
  if (!*flag) *flag = graph_const(r->g, value_bool(value_type(r->g, v)->weak));
  *strong = graph_convert(r->g, v, value_type(r->g, v)->dtype);
  return *strong && *flag;
}

/* What a call gives for its parameters: the numbers and the array that it gives back, or the arrays by value. */
static bool operands_of(Recorder *r, const RecRecur *e, const Av *params, bool by_value, ValueId *out, u32 *count) {
  for (u32 i = 0; i < e->nparams; i++) {
    if (!e->types[i] || (e->by_value >> i & 1) != by_value) continue;
    const ValueId v = operand_of(r, e, i, params[i]);
    if (!v) return false;
    if (!(e->weak >> i & 1)) out[(*count)++] = v;
    else if (!strong_and_flag(r, v, &out[*count], &out[*count + 1])) return false;
    else *count += 2;
  }
  return true;
}

enum { VALUES_MOST = 3 * PARAMS_MOST + PARTS_MOST + 2 * GIVES_MOST + 2 * LEAVES_MOST };

/* A list or record that was taken for the same in every call, and is of other numbers: e->again. */
static bool is_other_tree(Recorder *r, const RecRecur *e, u32 i, Av a) {
  Av was = av_force(r, e->args[i]);
  a = av_force(r, a);
  return was && a && av_has(r, was, IS_TREE) && carry_same(r, was, a) && MECHANISM(r->vm, recursive_results);
}

/* An array that was taken for the same in every call, and is another of the same type: elements of it were changed. */
static bool is_other_array(Recorder *r, const RecRecur *e, u32 i, Av a) {
  if (!MECHANISM(r->vm, recursive_copies)) return false;
  Av was = av_force(r, e->args[i]);
  a = av_force(r, a);
  if (!was || !a || !av_is_number(r, was) || !av_is_number(r, a)) return false;
  const ValueId x = av_value(r, was), y = av_value(r, a);
  return x && y && value_type(r->g, x)->rank && !value_type(r->g, x)->device &&
         r->g->values.data[x].type == r->g->values.data[y].type;
}

/* An array that was taken for the same in every call, and is one of another length. */
static bool is_other_part(Recorder *r, const RecRecur *e, u32 i, Av a) {
  if (!MECHANISM(r->vm, recursive_parts)) return false;
  if (!rec_is_window_base(r, e->args[i]) || !rec_is_window_base(r, a)) return false;
  const ArrayType *was = value_type(r->g, av_value(r, av_force(r, e->args[i]))),
                  *now = value_type(r->g, av_value(r, av_force(r, a)));
  return was->dtype == now->dtype && was->dims[0] != now->dims[0];
}

static bool goes_on_stack(const RecRecur *e, Value kind) {
  return kind.kind != V_TEXT && !rows_ragged(kind) && !rows_keyed(kind) && rec_leaves_few(kind) &&
         (!e->lists || rows_alike(e->list_kind, kind));
}

/* A list that was taken for the same in every call, or for one of so many numbers, and is of another length. */
static bool is_other_list(Recorder *r, RecRecur *e, u32 i, Av a) {
  Av was = av_force(r, e->args[i]);
  Value kind;
  a = av_force(r, a);
  if (!was || !a || !av_is_list(r, was) || !(av_is_list(r, a) || av_is_stacked(r, a)) ||
      av_at(r, was)->count == av_at(r, a)->count || !MECHANISM(r->vm, recursive_lists))
    return false;
  if (!rec_items_kind(r, a, &kind) && !rec_items_kind(r, was, &kind)) return false;
  if (!goes_on_stack(e, kind)) return false;
  e->list_kind = kind;
  return true;
}

static bool may_be_list(Recorder *r, Av a) {
  return av_has(r, a, IS_LIST) || (av_is_lazy(r, a) && av_at(r, a)->konst.kind == V_LIST);
}

/* All lists that are given: items are asked for by computed positions, or written. False: there are none. */
static bool take_all_lists(Recorder *r, RecRecur *e, const Av *params) {
  RecMark mark = rec_mark(r); /* what a list looks like is not relied on */
  const u32 before = e->lists;
  Value kind;
  for (u32 i = 0; i < e->nparams && !r->failed && MECHANISM(r->vm, recursive_lists); i++) {
    Av a = e->types[i] || e->lists >> i & 1 ? 0 : params[i], rows = 0;
    if (!a || !may_be_list(r, a) || rec_rows_of(r, a, NULL, &rows) != OUT_GO) continue;
    if (!rec_is_plain_columns(r, rows)) continue;
    kind = av_at(r, rows)->konst;
    if (!goes_on_stack(e, kind)) continue;
    e->list_kind = kind;
    e->lists |= 1u << i;
    e->tree |= 1u << i;
  }
  rec_rollback(r, &mark);
  return e->lists != before;
}

/* Lists that a call gives come into the stack. e->again: they were not known to be such. */
static Outcome give_lists(Recorder *r, RecRecur *e, const Av *params, Av *given) {
  Outcome o = OUT_GO;
  for (u32 i = 0; i < e->nparams && o == OUT_GO; i++) {
    given[i] = params[i];
    if (e->lists >> i & 1) o = rec_stack_take(r, e->stack, e->list_kind, params[i], &given[i]);
    if (e->types[i] || e->lists >> i & 1 || !is_other_list(r, e, i, params[i])) continue;
    e->lists |= 1u << i;
    e->tree |= 1u << i;
    e->again = true;
  }
  return r->failed || r->g->failed ? OUT_FAIL : o;
}

/* Is it what the parameter is taken to be? e->again: a number that is weak in some calls alone. Where the calls hand on
 * numbers alone, the first one is inlined instead, and the next is a recursion of its own. */
static bool is_of_type(Recorder *r, RecRecur *e, u32 i, ValueId v) {
  const ArrayType *t = value_type(r->g, v), *was = type_of(r->g, e->types[i]);
  const bool number_again = !t->rank && !was->rank && t->dtype == was->dtype;
  if (e->weak >> i & 1) return number_again;
  if (r->g->values.data[v].type == e->types[i] && !rec_weak_flag(r, v)) return true;
  if (!number_again || !(e->windows | e->lists | e->by_value) || !MECHANISM(r->vm, recursive_weakness)) return false;
  e->weak |= 1u << i;
  e->again = true;
  return false;
}

static bool recur_fits(Recorder *r, RecRecur *e, Av fn, const Code *code, const Av *params) {
  ValueId xs[VALUES_MOST];
  u32 count = 0;
  if (e->code != code || !same_fn(r, e->fn, fn)) return false;
  for (u32 i = 0; i < e->nparams; i++) {
    if (e->types[i] || e->tree >> i & 1 || same_static(r, e->args[i], params[i])) continue;
    if (is_other_tree(r, e, i, params[i])) {
      e->tree |= 1u << i;
      e->again = true;
    } else if (is_other_part(r, e, i, params[i])) {
      e->tree |= 1u << i;
      e->windows |= 1u << i;
      e->again = true;
    } else if (is_other_array(r, e, i, params[i])) {
      e->by_value |= 1u << i;
      e->again = true;
    }
    return false;
  }
  for (u32 i = 0; i < e->nparams; i++) {
    ValueId v = e->types[i] ? operand_of(r, e, i, params[i]) : 0;
    if (e->types[i] && (!v || !is_of_type(r, e, i, v))) return false;
  }
  return tree_values(r, e, params, false, xs, &count) == OUT_GO;
}

/* ---- numbers that may be weak -------------------------------------------------------------------------- */

static bool push_value(ValueId *out, u32 *count, ValueId v) {
  out[(*count)++] = v;
  return v != 0;
}

/* A value for a leaf of a variable: it, or it and its flag. OUT_STUCK: of another type; `again` where a flag helps. */
static Outcome leaf_values(Recorder *r, RecRecur *e, u32 leaf, ValueId v, ValueId *out, u32 *count) {
  const TypeId want = e->leaf_types[leaf];
  const ArrayType *t = value_type(r->g, v), *w = type_of(r->g, want);
  ValueId strong, flag;
  if (e->leaf_flagged[leaf] && !t->rank && t->dtype == w->dtype)
    return strong_and_flag(r, v, &strong, &flag) && push_value(out, count, strong) && push_value(out, count, flag)
               ? OUT_GO
               : OUT_FAIL;
  if (r->g->values.data[v].type == want && !rec_weak_flag(r, v)) return push_value(out, count, v) ? OUT_GO : OUT_FAIL;
  e->again = e->leaf_flagged[leaf] = !t->rank && !w->rank && t->dtype == w->dtype && !e->leaf_flagged[leaf];
  return rec_stuck(r, REASON_recursion, "a variable that a function which calls itself writes changes its type");
}

/* ---- variables that the body writes --------------------------------------------------------------------- */

/* What the variables are made of now, behind the other operands or results. */
static Outcome cell_values(Recorder *r, RecRecur *e, ValueId *out, u32 *count) {
  AvVec leaves = {0};
  Outcome o = OUT_GO;
  for (u32 i = 0, at = 0; i < e->cells.count && o == OUT_GO; at += e->leaves[i++]) {
    Av now = r->cells.data[e->cells.cells[i]].value;
    leaves.count = 0;
    if (!carry_same(r, e->trees[i], now))
      o = rec_stuck(r, REASON_recursion, "a variable that a function which calls itself writes becomes %s",
                    av_kind_text(r, now));
    else if (!carry_leaves(r, now, &leaves) || leaves.count != e->leaves[i]) o = OUT_FAIL;
    for (u32 k = 0; k < leaves.count && o == OUT_GO; k++)
      o = leaf_values(r, e, at + k, av_value(r, leaves.data[k]), out, count);
  }
  vec_free(&r->vm->alloc, &leaves);
  if (r->failed || r->g->failed) o = OUT_FAIL;
  return o;
}

/* Which numbers and arrays the variables are made of in front of the outermost call. */
static Outcome open_cells(Recorder *r, RecRecur *e) {
  AvVec leaves = {0};
  Outcome o = rec_cells_find(r, &e->cells);
  e->all_leaves = 0;
  for (u32 i = 0; i < e->cells.count && o == OUT_GO; i++) {
    e->trees[i] = av_force(r, r->cells.data[e->cells.cells[i]].value);
    leaves.count = 0;
    if (!e->trees[i] || !carry_leaves(r, e->trees[i], &leaves)) o = OUT_FAIL;
    else if (!leaves.count || e->all_leaves + leaves.count > LEAVES_MOST ||
             !(av_is_number(r, e->trees[i]) || av_has(r, e->trees[i], IS_TREE)))
      o = rec_stuck(r, REASON_recursion, "a function that writes a variable which is %s calls itself",
                    av_kind_text(r, e->trees[i]));
    e->leaves[i] = leaves.count;
    for (u32 k = 0; k < leaves.count && o == OUT_GO; k++) {
      ValueId v = av_value(r, leaves.data[k]);
      if (!v || value_is_token(r->g, v) || value_type(r->g, v)->device)
        o = r->failed || r->g->failed ? OUT_FAIL : rec_stuck(r, REASON_recursion, "printing, and calling itself");
      if (o != OUT_GO) break;
      const ArrayType *t = value_type(r->g, v);
      bool flagged = !t->rank && (e->leaf_flagged[e->all_leaves] || rec_weak_flag(r, v));
      e->leaf_flagged[e->all_leaves] = flagged;
      e->leaf_types[e->all_leaves++] = flagged ? graph_scalar_type(r->g, t->dtype, false) : r->g->values.data[v].type;
    }
  }
  vec_free(&r->vm->alloc, &leaves);
  return o;
}

/* The variables made of these values: parameters of the body, or results of a call. *next: the first of them. */
static Outcome set_cells(Recorder *r, RecRecur *e, ValueId first, u32 *next, bool inside) {
  const TypeId flag = graph_scalar_type(r->g, DT_bool, false);
  Av leaves[LEAVES_MOST];
  for (u32 i = 0, leaf = 0; i < e->cells.count; i++) {
    u32 at = 0;
    for (u32 k = 0; k < e->leaves[i]; k++, leaf++) {
      ValueId v = inside ? graph_param(r->g, r->g->at, e->leaf_types[leaf]) : first + (*next)++;
      if (!v || !(leaves[k] = av_num(r, v))) return OUT_FAIL;
      if (!e->leaf_flagged[leaf]) continue;
      ValueId weak = inside ? graph_param(r->g, r->g->at, flag) : first + (*next)++;
      if (!weak || !rec_weak_note(r, v, weak)) return OUT_FAIL;
    }
    Av tree = carry_rebuild(r, e->trees[i], leaves, &at);
    const u32 cell = e->cells.cells[i];
    if (!tree) return OUT_FAIL;
    if (inside) {
      r->cells.data[cell].value = tree;
      r->cells.data[cell].dirty = true;
      continue;
    }
    Outcome o = rec_cell_write(r, cell, tree);
    if (o != OUT_GO) return o;
    for (u32 k = 0; k < e->leaves[i]; k++) r->updated |= value_type(r->g, av_value(r, leaves[k]))->rank > 0;
  }
  return OUT_GO;
}

/* ---- what a call gives ---------------------------------------------------------------------------------- */

static u32 result_types(Recorder *r, const RecRecur *e, TypeId *out) {
  const TypeId flag = graph_scalar_type(r->g, DT_bool, false);
  u32 n = 0;
  if (e->state) out[n++] = e->types[e->state - 1];
  for (u32 i = 0; i < e->gives.form.count; i++) {
    const ArrayType *t = &e->gives.form.types[i];
    out[n++] = graph_scalar_type(r->g, t->dtype, t->weak);
    if (e->gives.flagged >> i & 1) out[n++] = flag;
  }
  for (u32 i = 0; i < e->all_leaves; i++) {
    out[n++] = e->leaf_types[i];
    if (e->leaf_flagged[i]) out[n++] = flag;
  }
  return n;
}

/* The results of a node, as what the program gets and what its variables are now. */
static Outcome result_of(Recorder *r, RecRecur *e, NodeId n, Av *out) {
  Av items[GIVES_MOST];
  u32 at = 0;
  if (!n) return OUT_FAIL;
  const ValueId first = r->g->nodes.data[n].result_first;
  for (u32 i = 0; i < e->gives.form.count; i++) {
    ValueId v = first + at++;
    if (e->gives.flagged >> i & 1 && !rec_weak_note(r, v, first + at++)) return OUT_FAIL;
    if (!(items[i] = av_num(r, v))) return OUT_FAIL;
  }
  *out = e->state ? av_num(r, first + at++) : rec_form_make(r, &e->gives.form, items);
  return *out ? set_cells(r, e, first, &at, false) : OUT_FAIL;
}

static Outcome call_again(Recorder *r, RecRecur *e, const Av *params, Av *out) {
  ValueId xs[VALUES_MOST];
  TypeId types[VALUES_MOST];
  u32 count = 0;
  const Av top = e->lists ? rec_stack_top(r, e->stack) : 0;
  if (!operands_of(r, e, params, false, xs, &count)) return OUT_FAIL;
  Outcome o = tree_values(r, e, params, false, xs, &count);
  if (o == OUT_GO) o = cell_values(r, e, xs, &count);
  if (o == OUT_GO && !operands_of(r, e, params, true, xs, &count)) o = OUT_FAIL;
  if (o != OUT_GO) return o;
  u32 results = result_types(r, e, types);
  o = result_of(r, e, graph_node(r->g, NODE_self, 0, xs, count, NULL, 0, types, results), out);
  return o == OUT_GO && e->lists ? rec_stack_cut(r, e->stack, top) : o; /* what the call made is gone */
}

/* Has what is given the form that every call is taken to give? Else that is noted, and the body is recorded again.
 * What is neither a number nor anything else may be nil beside the number that a call was taken to give. */
static Outcome settle_form(Recorder *r, RecRecur *e, Av ret) {
  RecGives *g = &e->gives;
  RecReturn form = {.count = 0};
  bool known = rec_form_of(r, ret, &form);
  for (u32 i = 0; i < form.count && known; i++) known = number(r, rec_form_item(r, &form, ret, i)) != 0;
  if (r->failed || r->g->failed) return OUT_FAIL;
  if (form.kind && form.count && !MECHANISM(r->vm, recursive_results)) known = false;
  if (!known && (av_is_number(r, ret) || g->form.kind || !rec_form_of(r, av_const(r, value_nil()), &form)))
    return rec_stuck(r, REASON_recursion, "a function that calls itself gives %s", av_kind_text(r, ret));
  if (known && rec_form_same(r, &g->form, &form)) return OUT_GO;
  *g = (RecGives){.form = form, .flagged = 0};
  for (u32 i = 0; i < form.count; i++) {
    if (!rec_weak_flag(r, number(r, rec_form_item(r, &form, ret, i)))) continue;
    g->form.types[i].weak = false;
    g->flagged |= (u8)(1u << i);
  }
  e->again = true;
  return OUT_GO;
}

/* A number that is given, of the type that every call is taken to give it; else that is noted, and once more. */
static Outcome settle_number(Recorder *r, RecRecur *e, u32 i, ValueId v, ValueId *out, u32 *count) {
  ArrayType *x = &e->gives.form.types[i];
  const u8 bit = (u8)(1u << i);
  const ArrayType *t = value_type(r->g, v);
  ValueId strong, weak, flag = rec_weak_flag(r, v);
  if (e->gives.flagged & bit && t->dtype == x->dtype)
    return strong_and_flag(r, v, &strong, &weak) && push_value(out, count, strong) && push_value(out, count, weak)
               ? OUT_GO
               : OUT_FAIL;
  if (!flag && t->dtype == x->dtype && t->weak == x->weak) return push_value(out, count, v) ? OUT_GO : OUT_FAIL;
  bool mixed = flag || (t->dtype == x->dtype && t->weak && !x->weak);
  e->gives.flagged &= (u8)~bit; /* that it was taken as weak may be why it is weak on one way only */
  if (mixed && t->dtype == x->dtype && !x->weak) e->gives.flagged |= bit;
  x->dtype = t->dtype;
  x->weak = t->weak && !mixed;
  e->again = true;
  return OUT_GO;
}

/* What the function gives as the body's results. e->again: it is of another type than was taken for granted. */
static Outcome settle(Recorder *r, RecRecur *e, Av ret, ValueId *out, u32 *count) {
  Graph *g = r->g;
  *count = 0;
  if (!(ret = av_force(r, ret))) return OUT_FAIL;
  if (e->state) {
    out[0] = operand_of(r, e, e->state - 1, ret);
    if (r->failed || g->failed) return OUT_FAIL;
    if (!out[0] || g->values.data[out[0]].type != e->types[e->state - 1])
      return rec_stuck(r, REASON_recursion, "a function that calls itself gives %s", av_kind_text(r, ret));
    *count = 1;
    return cell_values(r, e, out, count);
  }
  Outcome o = settle_form(r, e, ret);
  if (o != OUT_GO || e->again) return o;
  for (u32 i = 0; i < e->gives.form.count && o == OUT_GO; i++)
    o = settle_number(r, e, i, number(r, rec_form_item(r, &e->gives.form, ret, i)), out, count);
  return o != OUT_GO || e->again ? o : cell_values(r, e, out, count);
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

static bool parameters(Recorder *r, RecRecur *e, BlockId body, bool by_value) {
  for (u32 i = 0; i < e->nparams; i++) {
    if (!e->types[i] || (e->by_value >> i & 1) != by_value) continue;
    ValueId v = graph_param(r->g, body, e->types[i]), weak = 0;
    if (!v || !(e->args[i] = av_num(r, v))) return false;
    if (!(e->weak >> i & 1)) continue;
    weak = graph_param(r->g, body, graph_scalar_type(r->g, DT_bool, false));
    if (!weak || !rec_weak_note(r, v, weak)) return false;
  }
  return true;
}

/* Records the body into a block of its own, left open. e->again: it writes variables that were not known. */
static Outcome record_body(Recorder *r, RecRecur *e, u32 trees, BlockId *body, Av *ret) {
  Graph *g = r->g;
  *body = graph_open(g);
  if (!*body) return g->failed ? OUT_FAIL : rec_stuck(r, REASON_graph_size, "blocks nested too deep");
  if (!parameters(r, e, *body, false)) return OUT_FAIL;
  Av parts[PARTS_MOST];
  u32 at = 0, next = 0;
  for (u32 i = 0; i < trees; i++)
    if (!(parts[i] = av_num(r, graph_param(g, *body, e->part_types[i])))) return OUT_FAIL;
  for (u32 i = 0; i < e->nparams; i++)
    if (e->tree >> i & 1 && !(e->args[i] = carry_rebuild(r, e->args[i], parts, &next))) return OUT_FAIL;
  if (set_cells(r, e, 0, &at, true) != OUT_GO || !rec_cells_save(r, &e->cells)) return OUT_FAIL;
  if (!parameters(r, e, *body, true)) return OUT_FAIL;
  RecLoop *loop = r->loop;
  const RecLists stack = r->stack;
  u32 cells = r->cells.count;
  r->stack = (RecLists){.cell = e->stack, .base = e->lists ? rec_stack_top(r, e->stack) : 0};
  for (u32 i = 0; i < e->nparams; i++)
    if (e->lists >> i & 1) r->stack.given[r->stack.given_count++] = e->args[i];
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
  r->stack = stack;
  r->no_exits--;
  r->repeats--;
  r->nest--;
  r->loop = loop;
  for (u32 i = cells; i < r->cells.count && o == OUT_GO; i++)
    if (!r->cells.data[i].source) o = rec_stuck(r, REASON_recursion, "a function that makes a ref calls itself");
  if (o == OUT_GO) o = rec_cells_grow(r, &e->cells, &e->again);
  if (o == OUT_GO && e->again && !MECHANISM(r->vm, recursive_variables))
    o = rec_stuck(r, REASON_recursion, "a function that writes variables calls itself"), e->again = false;
  return o;
}

/* The stack of the calls, among the variables that they write. */
static Outcome open_stack(Recorder *r, RecRecur *e) {
  Outcome o = rec_stack_new(r, e->list_kind, &e->stack);
  if (o != OUT_GO) return o;
  if (!e->stack_at && e->cells.count == CELL_SET_MAX)
    return rec_stuck(r, REASON_construct_body, "a body that writes many variables");
  if (!e->stack_at) e->stack_at = ++e->cells.count;
  e->cells.paths[e->stack_at - 1] = (RecCellPath){.cell = e->stack};
  e->cells.cells[e->stack_at - 1] = e->stack;
  return OUT_GO;
}

/* One try. e->again: the result's type was another one, or variables are written; it stands in e. */
static Outcome recur_once(Recorder *r, RecRecur *e, const Av *params, u32 exit) {
  Graph *g = r->g;
  BlockId body;
  Av ret = 0;
  ValueId results[VALUES_MOST], xs[VALUES_MOST];
  u32 given = 0, count = 0;
  bool changes = e->state != 0 || e->by_value;
  Av lists[PARAMS_MOST];
  Outcome o = e->lists ? open_stack(r, e) : OUT_GO;
  for (u32 i = 0; i < e->nparams; i++) { /* what types[i] names may be of the try before, which is gone */
    if (!(e->weak >> i & 1)) continue;
    const ValueId v = operand_of(r, e, i, params[i]);
    if (!v) return OUT_FAIL;
    e->types[i] = graph_scalar_type(g, value_type(g, v)->dtype, false);
  }
  if (o == OUT_GO && !operands_of(r, e, params, false, xs, &count)) o = OUT_FAIL;
  const u32 plain = count;
  for (u32 i = 0; i < e->nparams && o == OUT_GO; i++) {
    lists[i] = params[i];
    if (e->lists >> i & 1) o = rec_stack_enter(r, e->stack, e->list_kind, params[i], &lists[i]);
    if (e->windows >> i & 1) o = rec_window_of(r, params[i], &lists[i]);
    if (o == OUT_GO && e->tree >> i & 1 && !(e->args[i] = av_force(r, lists[i]))) return OUT_FAIL;
  }
  if (o == OUT_GO) o = tree_values(r, e, lists, true, xs, &count);
  const u32 trees = count - plain;
  if (o == OUT_GO) o = open_cells(r, e);
  if (o == OUT_GO) o = cell_values(r, e, xs, &count);
  for (u32 i = 0; i < e->nparams && o == OUT_GO; i++) /* known since the last try */
    if (e->by_value >> i & 1) e->types[i] = r->g->values.data[operand_of(r, e, i, params[i])].type;
  if (o == OUT_GO && !operands_of(r, e, params, true, xs, &count)) o = OUT_FAIL;
  for (u32 i = 0; i < e->all_leaves && o == OUT_GO; i++) changes |= type_of(g, e->leaf_types[i])->rank > 0;
  if (o == OUT_GO) o = record_body(r, e, trees, &body, &ret);
  if (o == OUT_GO && !e->called) { /* of such arguments: it is inlined as any other */
    e->plain = true;
    return rec_stuck(r, REASON_recursion, "a function that does not call itself");
  }
  if (o == OUT_GO && !e->again) o = settle(r, e, ret, results, &given);
  if (o != OUT_GO || e->again) return o;
  rec_cells_undo(r, &e->cells);
  if (!graph_close(g, TERM_yield, results, given, 0)) return OUT_FAIL;
  if (!is_plain(g, body, changes))
    return rec_stuck(r, REASON_recursion, "a function that calls itself works on arrays");
  NodeId n = graph_recur(g, xs, count, body);
  if (n) g->nodes.data[n].exit = exit;
  e->node = n;
  return n ? OUT_GO : OUT_FAIL;
}

/* What the function may give when a whole number does not go with the rest of it: what it is given, an element of an
 * array, or a boolean. 0: no more. */
static TypeId next_guess(Recorder *r, const RecRecur *e, u32 *guess) {
  while (*guess < e->nparams) {
    u32 i = (*guess)++;
    bool seen = !e->types[i] || type_of(r->g, e->types[i])->dtype == DT_i64;
    for (u32 k = 0; k < i; k++) seen |= e->types[k] == e->types[i];
    if (!seen) return e->types[i];
  }
  while (*guess < 2 * e->nparams) {
    const u8 dtype = e->elements[(*guess)++ - e->nparams];
    if (dtype != DT_NONE && dtype != DT_i64) return graph_scalar_type(r->g, dtype, false);
  }
  return (*guess)++ == 2 * e->nparams ? graph_scalar_type(r->g, DT_bool, false) : 0;
}

/* A type for the whole number that calls were taken to give; false: none is left. */
static bool guess_again(Recorder *r, RecRecur *e, u32 *guess) {
  if (e->state || e->gives.form.kind || r->reason != REASON_branch_merge) return false;
  TypeId t = next_guess(r, e, guess);
  if (t) e->gives = (RecGives){.form = {.count = 1, .types = {*type_of(r->g, t)}}};
  return t != 0;
}

/* The instruction that is the last one before pc, of some kinds, to write a register; NULL: there is none. */
static const Ins *writer_of(const Proto *p, u32 pc, u32 reg, u32 op, u32 other) {
  while (pc-- > 0)
    if (ins_a(p->code[pc]) == reg && (ins_op(p->code[pc]) == op || ins_op(p->code[pc]) == other)) return &p->code[pc];
  return NULL;
}

/* What the function may give, by its code: a list or record where it returns one that is written out, else a whole
 * number. */
static bool first_guess(Recorder *r, RecRecur *e) {
  const Proto *p = e->code->proto;
  const Ins *made = NULL;
  const ArrayType whole = {.dtype = DT_i64, .weak = true};
  Av items[GIVES_MOST];
  e->gives = (RecGives){.form = {.count = 1, .types = {whole}}};
  for (u32 pc = 0; pc < p->ncode && !made; pc++)
    if (ins_op(p->code[pc]) == BC_ret && !(ins_a(p->code[pc]) & INS_CONST))
      made = writer_of(p, pc, ins_a(p->code[pc]), BC_list, BC_record);
  if (!made || !MECHANISM(r->vm, recursive_results)) return true;
  const bool list = ins_op(*made) == BC_list;
  const Desc *d = list ? NULL : &p->descs[ins_c(*made)];
  const u32 count = list ? ins_c(*made) : d->name_count;
  if (!count || count > GIVES_MOST) return true;
  for (u32 i = 0; i < count; i++) {
    for (u32 k = 0; k < i && !list; k++)
      if (d->names[i] == d->names[k]) return true;
    const Ins *x = writer_of(p, (u32)(made - p->code), ins_b(*made) + i, BC_loadk, BC_move);
    const u32 at = !x ? 0 : ins_op(*x) == BC_loadk ? ins_x(*x) : ins_b(*x) & INS_CONST ? ins_b(*x) & ~(u32)INS_CONST
                                                                                      : UINT32_MAX;
    const Value v = x && at != UINT32_MAX ? e->code->consts[at] : value_weak_i64(0);
    if (!(items[i] = av_const(r, v.kind == V_NUM ? v : value_weak_i64(0)))) return false;
  }
  Av tree = list ? av_list(r, items, count) : av_record(r, d->names, items, count);
  return tree && (rec_form_of(r, tree, &e->gives.form) || !r->failed);
}

static u8 elements_of(Recorder *r, Av a) {
  if (!a || may_be_list(r, a) || !(a = av_force(r, a)) || !av_is_number(r, a)) return DT_NONE;
  const ValueId v = av_value(r, a);
  return v && value_type(r->g, v)->rank ? value_type(r->g, v)->dtype : DT_NONE;
}

static Outcome record_recur(Recorder *r, RecRecur *e, const Av *params, Av *out, bool *done) {
  u32 count = 0, guess = 0, exit = rec_present_exit(r);
  RecLoop *lacks = r->lacks;
  Outcome o = OUT_GO;
  for (u32 i = 0; i < e->nparams; i++) {
    ValueId v = operand_of(r, e, i, params[i]);
    e->args[i] = params[i];
    e->elements[i] = v ? DT_NONE : elements_of(r, params[i]);
    if (!v) continue;
    if (e->state != i + 1 && rec_weak_flag(r, v)) return OUT_GO;
    count++;
    e->types[i] = r->g->values.data[v].type;
  }
  if (r->failed || r->g->failed) return OUT_FAIL;
  bool trees = false; /* what is a number in none of its calls may be one that a tree has */
  for (u32 i = 0; i < e->nparams && !count; i++)
    trees |= params[i] && (may_be_list(r, params[i]) || av_has(r, av_force(r, params[i]), IS_TREE) ||
                           av_is_number(r, av_force(r, params[i])));
  if ((!count && e->nparams && !trees) || exit == UINT32_MAX) return OUT_GO;
  if (!e->state && !first_guess(r, e)) return OUT_FAIL;
  for (u32 try = 0; try < TRIES && !*done; try++) {
    RecMark mark = rec_mark(r);
    RecState state;
    if (!rec_save(r, &state)) {
      o = OUT_FAIL;
      break;
    }
    u32 safe = r->safe_exit;
    r->safe_exit = exit;
    e->again = false;
    o = recur_once(r, e, params, exit);
    r->safe_exit = safe;
    *done = o == OUT_GO && !e->again;
    rec_end_try(r, &mark, &state, e->again && o == OUT_GO ? OUT_STUCK : o);
    r->lacks = lacks; /* a loop of the body is gone */
    if (*done || o == OUT_FAIL) break;
    if (!e->again && !guess_again(r, e, &guess) && (e->plain || e->lists || !take_all_lists(r, e, params))) break;
    o = OUT_STUCK;
  }
  rec_cells_free(r, &e->cells);
  if (*done) return result_of(r, e, e->node, out);
  return o == OUT_STUCK ? OUT_GO : o;
}

Outcome rec_recur(Recorder *r, Av fn, Code *code, const Av *params, Av *out, bool *done) {
  u32 n = code->proto->nparams, nested = 0;
  *done = false;
  for (RecRecur *e = r->recur; e; e = e->outer) e->called |= e->code == code;
  if (r->abstract || r->differentiating || r->tracer->restarted || (r->g->ambient & AMBIENT_TAPE) || n > PARAMS_MOST ||
      r->no_exits != (r->recur ? r->recur->no_exits : 0) || r->safe_exit == UINT32_MAX)
    return OUT_GO;
  for (const RecRecur *e = r->recur; e; e = e->outer) nested++;
  if (r->recur && r->recur->code == code && same_fn(r, r->recur->fn, fn)) {
    Av given[PARAMS_MOST];
    Outcome o = r->recur->again ? OUT_GO : give_lists(r, r->recur, params, given); /* no stack may be there */
    if (r->recur->again && o == OUT_GO)
      return rec_stuck(r, REASON_recursion, "a function that calls itself with another list");
    if (o != OUT_GO) return o;
    if (recur_fits(r, r->recur, fn, code, given)) {
      *done = true;
      return call_again(r, r->recur, given, out);
    }
    if (r->recur->again) return rec_stuck(r, REASON_recursion, "a function that calls itself with another tree");
  }
  if (nested == NESTED_MOST) return OUT_GO;
  for (u32 i = 0; i < r->no_recur.count; i++)
    if (r->no_recur.data[i] == code) return OUT_GO;
  RecRecur e = {.code = code, .fn = fn, .nparams = n};
  Outcome o = record_recur(r, &e, params, out, done);
  /* or one that changes an array, which it gives: the next call's, or the caller's */
  for (u32 i = 0; i < n && o == OUT_GO && !*done && !e.plain && MECHANISM(r->vm, recursive_arrays); i++) {
    e = (RecRecur){.code = code, .fn = fn, .nparams = n, .state = i + 1};
    if (operand_of(r, &e, i, params[i])) o = record_recur(r, &e, params, out, done);
  }
  if (o == OUT_GO && !*done && !vec_push(&r->vm->alloc, &r->no_recur, code)) return OUT_FAIL;
  return o;
}

/* Does the code say so itself, by a variable of its module, or as one of the functions declared beside it? */
static bool names_itself(Code *code) {
  const Proto *p = code->proto;
  for (u32 pc = 0; pc < p->ncode; pc++) {
    if (ins_op(p->code[pc]) == BC_groupfn && code_sibling(code, ins_b(p->code[pc])) == code) return true;
    if (ins_op(p->code[pc]) != BC_getmod) continue;
    Value v = code->module->slots[ins_x(p->code[pc])].value;
    if (v.kind == V_FN && v.fn->kind == FN_CLOSURE && v.fn->code == code) return true;
  }
  return false;
}

Outcome rec_recur_first(Recorder *r, Av fn, Code *code, const Av *params, Av *out, bool *done) {
  const u32 tried = r->no_recur.count;
  *done = false;
  if (!MECHANISM(r->vm, recursions_from_outside) || !names_itself(code)) return OUT_GO;
  Outcome o = rec_recur(r, fn, code, params, out, done);
  if (o == OUT_GO && !*done) r->no_recur.count = tried; /* what its own calls are given may be of other types */
  return o;
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
