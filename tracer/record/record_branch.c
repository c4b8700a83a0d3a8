/* record_branch.c — if becomes cond: both arms are recorded into blocks of their own and merged where they meet.
 *
 * An arm ends at the join, at the loop's back-edge (next), behind the loop (break), or by returning; one that cannot be
 * captured becomes a cold exit at its beginning. Where the arms give what cannot be merged, the rarer one is made
 * cold. */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_branch.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_inner.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_return.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_names.h"
#include "tracer/record/repr_option.h"
#include "tracer/tracer.h"

#include <string.h>

typedef struct Arm {
  BlockId block;
  Outcome how; /* END, RETURN: open; NEXT, LEAVE: open, to be closed for the loop; ENDED: closed */
  RecState state;
  Av ret; /* RETURN; LEAVE: what the loop returns behind it, 0: nothing */
  bool cold;
} Arm;

typedef struct Merge {
  ValueVec yields[2];
  u32 since; /* abstract values from here on are of the arms */
  VEC(u32) free; /* for each, the axes whose sizes the arms do not share */
  VEC(u32) mixed; /* those that are weak in one arm only … */
  ValueVec flags[2]; /* … and whether they are, in each */
  BlockId arms[2];   /* in which each is made */
} Merge;

/* A comparison of sizes that are there on entry. */
typedef struct SizeQuestion {
  SizeRel rel;
  Dim a, b;
} SizeQuestion;

/* *free: the axes of which the sizes may differ. */
static bool same_type(Recorder *r, TypeId x, TypeId y, u32 *free) {
  *free = 0;
  if (x == y) return true;
  const ArrayType *a = type_of(r->g, x), *b = type_of(r->g, y);
  if (a->dtype != b->dtype || a->weak != b->weak || a->rank != b->rank || a->device != b->device) return false;
  for (u32 d = 0; d < a->rank; d++)
    if (!size_same(&r->g->sizes, a->dims[d], b->dims[d])) *free |= 1u << d;
  return true;
}

/* A number that is weak in one arm, or may be: a flag goes with it. */
static Outcome merge_weak(Recorder *r, Merge *m, ValueId v, ValueId w) {
  const ArrayType *s = value_type(r->g, v), *t = w ? value_type(r->g, w) : s;
  const ValueId both[2] = {v, w};
  bool may = rec_weak_flag(r, v) || (w && rec_weak_flag(r, w)), differ = w && s->weak != t->weak;
  if (s->rank || t->rank || s->dtype != t->dtype || (!may && !differ)) return OUT_GO;
  for (u32 k = 0; k < (w ? 2 : 1); k++) {
    ValueId flag = rec_weak_flag(r, both[k]);
    if (!flag) flag = graph_const(r->g, value_bool(value_type(r->g, both[k])->weak));
    if (!flag || !vec_push(&r->vm->alloc, &m->flags[k], flag)) return OUT_FAIL;
  }
  return vec_push(&r->vm->alloc, &m->mixed, m->yields[0].count) ? OUT_GO : OUT_FAIL;
}

/* Rows in one arm and an empty list or text in the other, which takes their columns as they were before. */
static Outcome empty_in_rows(Recorder *r, Av base, Av *a, Av *b) {
  if (!base || !(*a = av_force(r, *a)) || !(*b = av_force(r, *b))) return base ? OUT_FAIL : OUT_GO;
  const Repr *p = av_repr(r, base);
  if (!p->take_back || (av_in_columns(r, base) && av_at(r, *a)->kind == av_at(r, *b)->kind)) return OUT_GO;
  Outcome o = p->take_back(r, base, true, a);
  if (o != OUT_FAIL) o = p->take_back(r, base, true, b);
  return o == OUT_STUCK ? OUT_GO : o;
}

/* Lists of which the numbers of one are weak, or may be, and of the other not: both get flags. */
static Outcome rows_meet(Recorder *r, const Merge *m, Av *first, Av *second) {
  Value kind;
  Av *both[2] = {first, second};
  Outcome o = OUT_GO;
  if (!rec_rows_meet(r, *first, *second, &kind)) return r->failed ? OUT_FAIL : OUT_GO;
  BlockId parent = r->g->at;
  for (u32 k = 0; k < 2 && o == OUT_GO; k++) {
    graph_at_end(r->g, m->arms[k]);
    o = rec_rows_of(r, *both[k], &kind, both[k]);
  }
  graph_at_end(r->g, parent);
  return o == OUT_STUCK ? OUT_GO : o; /* said below */
}

/* A function that the arms made, whose captures are theirs: it is not there behind them. */
static bool has_made(const Recorder *r, Av a, u32 since) {
  const AbsVal *v = av_at(r, a);
  if (kind_has(v->kind, IS_FUNCTION)) return a >= since && !v->source && v->count;
  for (u32 i = 0; i < v->count; i++)
    if (has_made(r, av_item(r, a, i), since)) return true;
  return false;
}

/* Collects the leaves of a value that both arms left in one place (second NULL, or 0: only one arm did). */
static Outcome merge_place(Recorder *r, Merge *m, Av base, Av *first, Av *second) {
  AvVec x = {0}, y = {0};
  Outcome o = second && *second ? empty_in_rows(r, base, first, second) : OUT_GO;
  if (o == OUT_GO && second && *second) o = rows_meet(r, m, first, second);
  if (o != OUT_GO) return o;
  Av a = *first, b = second ? *second : 0;
  if (b && !carry_same(r, a, b) && rec_names_meet(r, first, second)) {
    a = *first;
    b = *second;
  }
  if (b && !carry_same(r, a, b) && rec_option_meet(r, first, second)) {
    a = *first;
    b = *second;
  }
  if ((b && !carry_same(r, a, b)) || has_made(r, a, m->since)) {
    Av was = base, p = a, q = b;
    if (base) (void)rec_inner_part(r, &was, &p, &q);
    (void)rec_merge_rows(r, was, p, q);
    o = rec_stuck(r, REASON_branch_merge, "the arms give %s and %s", av_kind_text(r, a), av_kind_text(r, b));
  } else if (!carry_leaves(r, a, &x) || (b && !carry_leaves(r, b, &y))) {
    o = OUT_FAIL;
  }
  for (u32 i = 0; i < x.count && o == OUT_GO; i++) {
    ValueId v = av_value(r, x.data[i]), w = b ? av_value(r, y.data[i]) : 0;
    u32 free = 0;
    if ((o = merge_weak(r, m, v, w)) != OUT_GO) break;
    if (b && !(m->mixed.count && m->mixed.data[m->mixed.count - 1] == m->yields[0].count) &&
        !same_type(r, r->g->values.data[v].type, r->g->values.data[w].type, &free)) {
      const ArrayType *s = value_type(r->g, v), *t = value_type(r->g, w);
      o = rec_stuck(r, REASON_branch_merge, "the arms give %s%s and %s%s", s->weak ? "weak " : "", dtype_name(s->dtype),
                    t->weak ? "weak " : "", dtype_name(t->dtype));
      break;
    }
    if (!vec_push(&r->vm->alloc, &m->free, free) || !vec_push(&r->vm->alloc, &m->yields[0], v) ||
        (b && !vec_push(&r->vm->alloc, &m->yields[1], w)))
      o = OUT_FAIL;
  }
  vec_free(&r->vm->alloc, &x);
  vec_free(&r->vm->alloc, &y);
  return o;
}

static Av state_cell(Recorder *r, const RecState *s, u32 i) {
  return i < s->ncells ? s->cells[i].value : rec_cell_clean(r, i);
}
static bool state_dirty(const RecState *s, u32 i) { return i < s->ncells && s->cells[i].dirty; }

static void drop_merge(Recorder *r, Merge *m) {
  vec_free(&r->vm->alloc, &m->yields[0]);
  vec_free(&r->vm->alloc, &m->yields[1]);
  vec_free(&r->vm->alloc, &m->free);
  vec_free(&r->vm->alloc, &m->mixed);
  vec_free(&r->vm->alloc, &m->flags[0]);
  vec_free(&r->vm->alloc, &m->flags[1]);
}

/* An arm in the body of a construct raises an error, or makes the text of one: whoever takes it goes back to where the
 * construct began, and the interpreter comes to the error. */
static Outcome leave_body(Recorder *r, const RecState *base, RecMark mark, u32 pc, Arm *arm) {
  if (r->abstract || r->safe_exit == UINT32_MAX || (r->reason != REASON_raises && r->reason != REASON_text_value))
    return OUT_STUCK;
  rec_rollback(r, &mark);
  rec_restore(r, base);
  rec_top(r)->pc = pc;
  arm->block = graph_open(r->g);
  if (!arm->block || !graph_close(r->g, TERM_exit, NULL, 0, r->safe_exit))
    return r->failed || r->g->failed ? OUT_FAIL : OUT_STUCK;
  arm->how = OUT_ENDED;
  return OUT_GO;
}

/* Records one arm into a block of its own, left open unless it ended. */
static Outcome record_arm(Recorder *r, const RecState *base, ValueId cond, bool is, u32 pc, u32 join,
                          bool force_cold, Arm *arm) {
  BlockId parent = r->g->at;
  RecMark mark = rec_mark(r);
  rec_restore(r, base);
  rec_top(r)->pc = pc;
  arm->block = graph_open(r->g);
  if (!arm->block) return OUT_FAIL;
  rec_note_truth(r, cond, is);
  Outcome o;
  if (force_cold) {
    o = OUT_STUCK;
    r->reason = REASON_arm_types;
  } else {
    Scope s = {.depth = rec_depth(r), .end = join, .cond_exit = UINT32_MAX};
    o = rec_run(r, &s);
    if (o == OUT_END) rec_behind_update(r);
  }
  if (o == OUT_STUCK) {
    if (r->lacks || r->widens || r->noted_types || !MECHANISM(r->vm, arms_are_cold)) return OUT_STUCK;
    if (r->no_exits) return leave_body(r, base, mark, pc, arm);
    u32 reason = r->reason == REASON_effect_output ? REASON_arm_output : force_cold ? REASON_arm_types
                                                   : REASON_arm_break;
    Span at = force_cold ? (Span){0} : r->why_span;
    rec_rollback(r, &mark);
    rec_restore(r, base);
    rec_top(r)->pc = pc;
    arm->block = graph_open(r->g);
    u32 exit = arm->block ? rec_exit(r, EXIT_cold, reason, at.file ? at : rec_top(r)->code->proto->spans[pc])
                          : UINT32_MAX;
    if (exit == UINT32_MAX || !graph_close(r->g, TERM_exit, NULL, 0, exit))
      return r->failed || r->g->failed ? OUT_FAIL : OUT_STUCK;
    arm->how = OUT_ENDED;
    arm->cold = true;
    return OUT_GO;
  }
  if (o == OUT_FAIL) return o;
  arm->how = o;
  if (o == OUT_ENDED) {
    u32 exit = r->safe_exit != UINT32_MAX ? r->safe_exit : r->g->entry_exit;
    return graph_close(r->g, TERM_exit, NULL, 0, exit) ? OUT_GO : OUT_FAIL;
  }
  arm->ret = o == OUT_RETURN ? r->ret : 0;
  if (!rec_save(r, &arm->state)) return OUT_FAIL;
  graph_at_end(r->g, parent);
  return OUT_GO;
}

static void go_into(Recorder *r, const Arm *arm) {
  rec_restore(r, &arm->state);
  graph_at_end(r->g, arm->block);
}

/* An arm of the region's own frame returns: it leaves the region. */
static Outcome return_by_exit(Recorder *r, Arm *arm) {
  BlockId parent = r->g->at;
  go_into(r, arm);
  u32 exit = rec_exit_return(r, arm->ret);
  if (exit == UINT32_MAX)
    return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_return, "what is returned cannot be rebuilt");
  if (!graph_close(r->g, TERM_exit, NULL, 0, exit)) return OUT_FAIL;
  graph_at_end(r->g, parent);
  arm->how = OUT_ENDED;
  return OUT_GO;
}

/* What follows an arm raises an error: the arm is left there. */
static Outcome end_cold(Recorder *r, const RecMark *mark, Arm *arm) {
  if (r->reason != REASON_raises || r->no_exits || r->lacks || r->widens || r->noted_types ||
      !MECHANISM(r->vm, arms_are_cold))
    return OUT_STUCK;
  Span at = r->why_span;
  rec_rollback(r, mark);
  go_into(r, arm);
  u32 exit = rec_exit(r, EXIT_cold, REASON_arm_break, at);
  if (exit == UINT32_MAX || !graph_close(r->g, TERM_exit, NULL, 0, exit))
    return r->failed || r->g->failed ? OUT_FAIL : OUT_STUCK;
  arm->how = OUT_ENDED;
  arm->cold = true;
  return OUT_GO;
}

static bool is_open(const Arm *a) { return a->how == OUT_END || a->how == OUT_RETURN; }

static Outcome settle_returns(Recorder *r, Arm *arms) {
  u32 depth = rec_depth(r);
  bool in_loop = r->loop && r->loop->depth == depth;
  for (u32 k = 0; k < 2; k++) {
    Arm *a = &arms[k], *b = &arms[1 - k];
    if (a->how != OUT_RETURN) continue;
    if (depth == 0 && !r->no_exits && (in_loop || b->how != OUT_RETURN)) {
      Outcome o = return_by_exit(r, a);
      if (o != OUT_GO) return o;
      continue;
    }
    if (in_loop) {
      BlockId parent = r->g->at;
      go_into(r, a); /* what the loop carries is as the arm leaves it */
      Outcome o = rec_return_ask(r, r->loop, a->ret);
      graph_at_end(r->g, parent);
      /* of another kind than other arms: the rarer arm is made cold */
      if (o == OUT_STUCK && r->loop->ret.asked && !r->lacks && !r->noted_types) r->reason = REASON_branch_merge;
      if (o != OUT_GO) return o;
      a->how = OUT_LEAVE;
      continue;
    }
    if (b->how == OUT_END) { /* the other arm goes on to the function's end */
      BlockId parent = r->g->at;
      go_into(r, b);
      RecMark mark = rec_mark(r);
      Scope s = {.depth = depth, .end = UINT32_MAX, .cond_exit = UINT32_MAX};
      Outcome o = rec_run(r, &s);
      if (o == OUT_STUCK && (o = end_cold(r, &mark, b)) == OUT_GO) {
        graph_at_end(r->g, parent);
        continue;
      }
      if (o == OUT_FAIL || o == OUT_STUCK) return o;
      b->how = o;
      b->ret = o == OUT_RETURN ? r->ret : 0;
      if (o == OUT_ENDED) {
        if (!graph_close(r->g, TERM_exit, NULL, 0, r->safe_exit != UINT32_MAX ? r->safe_exit : r->g->entry_exit))
          return OUT_FAIL;
      } else {
        rec_state_free(r, &b->state);
        if (!rec_save(r, &b->state)) return OUT_FAIL;
      }
      graph_at_end(r->g, parent);
    }
  }
  return OUT_GO;
}

static Outcome yield_arm(Recorder *r, const Merge *m, u32 k) {
  ValueVec all = {0};
  Allocator *alloc = &r->vm->alloc;
  bool ok = true;
  for (u32 i = 0; i < m->yields[k].count && ok; i++) ok = vec_push(alloc, &all, m->yields[k].data[i]);
  for (u32 i = 0; i < m->mixed.count && ok; i++) {
    ValueId *v = &all.data[m->mixed.data[i]];
    *v = graph_convert(r->g, *v, value_type(r->g, *v)->dtype); /* strong */
    ok = *v && vec_push(alloc, &all, m->flags[k].data[i]);
  }
  ok = ok && graph_close(r->g, TERM_yield, all.data, all.count, 0);
  vec_free(alloc, &all);
  return ok ? OUT_GO : OUT_FAIL;
}

static Outcome close_arms(Recorder *r, Arm *arms, const Merge *m, const u32 *open_index) {
  BlockId parent = r->g->at;
  for (u32 k = 0; k < 2; k++) {
    Arm *a = &arms[k];
    if (a->how == OUT_ENDED) continue;
    go_into(r, a);
    Outcome o = OUT_GO;
    if (a->how == OUT_NEXT || a->how == OUT_LEAVE)
      o = rec_close_loop_block(r, r->loop, a->how == OUT_NEXT ? TERM_next : TERM_break,
                               a->how == OUT_LEAVE ? a->ret : 0);
    else o = yield_arm(r, m, open_index[k]);
    if (o != OUT_GO) return o;
    graph_at_end(r->g, parent);
  }
  return OUT_GO;
}

/* An arm that has nothing to record: it returns. */
static Outcome returning_arm(Recorder *r, const RecState *base, Av ret, Arm *arm) {
  BlockId parent = r->g->at;
  rec_restore(r, base);
  *arm = (Arm){.block = graph_open(r->g), .how = OUT_RETURN, .ret = ret};
  if (!arm->block || !rec_save(r, &arm->state)) return OUT_FAIL;
  graph_at_end(r->g, parent);
  return OUT_GO;
}

/* Two arms that meet: what was there before them and what they leave. */
typedef struct Meeting {
  const RecState *base, *x, *y; /* y: NULL when only one arm goes on */
  const Proto *p;
  u64 *live;   /* registers that are read behind the join */
  Av *merged;  /* per cell: what its merged leaves become, 0 when neither arm changed it */
  u32 ncells;
  bool returns;
  bool tokens; /* an arm that does not go on took the effect token: those that do give it back */
} Meeting;

static bool is_alive(const Meeting *j, u32 reg) { return j->live[reg / 64] >> (reg % 64) & 1; }
static bool is_kept(const Meeting *j, u32 reg) {
  return j->x->regs[reg] == j->base->regs[reg] && (!j->y || j->y->regs[reg] == j->x->regs[reg]);
}
static bool is_lacking(const Meeting *j, u32 reg) { return !j->x->regs[reg] || (j->y && !j->y->regs[reg]); }

/* An arm that leaves by the loop or by an exit: does it take the effect token with it? */
static bool takes_token(const Recorder *r, const Arm *a) {
  if (!r->tokens || is_open(a)) return false;
  for (u32 i = 0; a->how != OUT_ENDED && i < r->loop->locs.count; i++)
    if (r->loop->locs.data[i].cell && r->loop->locs.data[i].index == 0) return true;
  const GraphBlock *b = &r->g->blocks.data[a->block];
  for (u32 i = 0; i < b->captures.count; i++)
    if (value_is_token(r->g, b->captures.data[i].inner)) return true;
  return false;
}

/* Was nothing done since the safe exit that stood in front of the arms? */
static bool is_settled(const Meeting *j) {
  const RecState *arms[2] = {j->x, j->y}, *base = j->base;
  for (u32 k = 0; k < 2 && arms[k]; k++) {
    Av now = arms[k]->cells[0].value;
    if (now != base->cells[0].value && (now != arms[k]->settled || arms[k]->safe_exit != base->safe_exit)) return false;
  }
  return base->settled == base->cells[0].value;
}

/* Collects what the arms changed: registers that are alive, unless they return, then cells. */
static Outcome merge_state(Recorder *r, Meeting *j, Merge *m) {
  const RecState *x = j->x, *y = j->y, *base = j->base;
  Outcome o = OUT_GO;
  for (u32 i = 0; !j->returns && i < j->p->nregs && o == OUT_GO; i++)
    if (is_alive(j, i) && !is_kept(j, i) && !is_lacking(j, i))
      o = merge_place(r, m, base->regs[i], &x->regs[i], y ? &y->regs[i] : NULL);
  if (o != OUT_GO) return o;
  j->ncells = r->cells.count; /* reading lazy values may have made some */
  if (!(j->merged = mem_alloc_zero(&r->vm->alloc, sizeof *j->merged * (j->ncells + 1)))) return OUT_FAIL;
  for (u32 i = 0; i < j->ncells && o == OUT_GO; i++) {
    if (i >= base->ncells && !r->cells.data[i].source) continue; /* a ref that an arm made ends with it */
    Av a = state_cell(r, x, i), b = y ? state_cell(r, y, i) : 0;
    Av was = i < base->ncells ? base->cells[i].value : rec_cell_clean(r, i);
    /* at most: an arm that was the first to do so knows more of it */
    bool read = r->cells.data[i].source && !state_dirty(x, i) && !(y && state_dirty(y, i));
    bool kept = a == was && (!y || b == a) && !(j->tokens && i == 0);
    if (read || kept || !a || (y && !b)) continue;
    o = merge_place(r, m, was, &a, y ? &b : NULL);
    j->merged[i] = a; /* said once: to merge reads lazy values, which look changed after */
  }
  return o;
}

/* Puts the results of the cond where the values were, in the order in which they were collected. *ret: what was
 * returned. */
static Outcome put_results(Recorder *r, const Meeting *j, const Merge *m, NodeId node, Av *ret) {
  const RecState *x = j->x, *y = j->y;
  AvVec leaves = {0};
  Outcome o = OUT_GO;
  u32 next = 0;
  for (u32 i = 0; i < m->mixed.count; i++)
    if (!rec_weak_note(r, node_result(r->g, node, m->mixed.data[i]), node_result(r->g, node, m->yields[0].count + i)))
      return OUT_FAIL;
  for (u32 i = 0; i < m->free.count; i++)
    if ((o = rec_escape(r, node_result(r->g, node, i), m->free.data[i])) != OUT_GO) return o;
  for (u32 i = 0; i < m->yields[0].count && o == OUT_GO; i++) {
    Av a = av_num(r, node_result(r->g, node, i));
    if (!a || !vec_push(&r->vm->alloc, &leaves, a)) o = OUT_FAIL;
  }
  if (j->returns && o == OUT_GO) *ret = carry_rebuild(r, *ret, leaves.data, &next);
  RecFrame *f = rec_top(r);
  for (u32 i = 0; !j->returns && i < j->p->nregs && o == OUT_GO; i++) {
    if (!is_alive(j, i)) f->regs[i] = is_kept(j, i) ? j->base->regs[i] : 0;
    else if (is_kept(j, i)) continue;
    else f->regs[i] = is_lacking(j, i) ? 0 : carry_rebuild(r, x->regs[i], leaves.data, &next);
  }
  for (u32 i = 0; i < j->ncells && o == OUT_GO; i++) {
    bool dirty = state_dirty(x, i) || (y && state_dirty(y, i));
    if (j->merged[i]) r->cells.data[i].value = carry_rebuild(r, j->merged[i], leaves.data, &next);
    if (r->cells.data[i].source) r->cells.data[i].dirty |= dirty;
  }
  if (r->tokens && is_settled(j)) r->settled = r->cells.data[0].value;
  vec_free(&r->vm->alloc, &leaves);
  return r->failed ? OUT_FAIL : o;
}

/* Of the last times that the branch was passed, 15 at most, those on which arm k was taken. */
static u32 times_taken(const Recorder *r, const RecState *base, u32 k, u32 *passed) {
  const Code *code = r->frames.data[base->depth].code;
  u32 site = code->site_of_pc[base->pc], bits = site ? code->sites[site - 1].taken : 1,
      seen = 31u - (u32)__builtin_clz(bits), all = (1u << seen) - 1;
  *passed = seen;
  return (u32)__builtin_popcount((k ? ~bits : bits) & all);
}

/* Inside of a loop that is not the one that the trace is made of. */
static bool is_inside(const Recorder *r) {
  return r->loop && (r->loop->outer || !r->stop_after_loop || r->loop->depth || r->loop->extent != r->root_extent);
}

/* What a condition asks of sizes, as it would have to hold for the arm that is taken now; *is: which one. Not while the
 * size of an axis is 0: what holds of empty arrays mostly ends soon, and says little of the next ones. */
static bool asks_sizes(Recorder *r, ValueId cond, SizeQuestion *q, bool *is) {
  Graph *g = r->g;
  NodeId n = value_node(g, cond);
  const GraphNode *x = n ? graph_node_at(g, n) : NULL;
  bool negated = false;
  Dim d[2];
  i64 now[2];
  u32 axis;
  /* `not`, which takes a strong bool */
  while (x && x->kind == NODE_op && value_type(g, cond)->dtype == DT_bool &&
         (x->op == OP_logical_not || x->op == OP_astype)) {
    negated ^= x->op == OP_logical_not;
    cond = node_operand(g, n, 0);
    n = value_node(g, cond);
    x = n ? graph_node_at(g, n) : NULL;
  }
  if (!x || x->kind != NODE_op || x->operand_count != 2) return false;
  for (u32 i = 0; i < 2; i++) {
    if (!value_dim(g, node_operand(g, n, i), &d[i]) || d[i] == DIM_NONE) return false;
    if (size_is_unbacked(&g->sizes, d[i]) || !size_hint(&g->sizes, d[i], &now[i])) return false;
    if (!now[i] && size_is_sym(&g->sizes, d[i], &axis)) return false;
  }
  switch (x->op) {
    case OP_less: *q = (SizeQuestion){REL_lt, d[0], d[1]}; break;
    case OP_less_equal: *q = (SizeQuestion){REL_le, d[0], d[1]}; break;
    case OP_greater: *q = (SizeQuestion){REL_lt, d[1], d[0]}; break;
    case OP_greater_equal: *q = (SizeQuestion){REL_le, d[1], d[0]}; break;
    case OP_equal: *q = (SizeQuestion){REL_eq, d[0], d[1]}; break;
    case OP_not_equal: *q = (SizeQuestion){REL_ne, d[0], d[1]}; break;
    default: return false;
  }
  const bool turned = q->a == d[1] && q->b == d[0] && d[0] != d[1];
  const bool holds = turned ? rel_holds(q->rel, now[1], now[0]) : rel_holds(q->rel, now[0], now[1]);
  *is = holds != negated;
  if (holds) return true;
  switch (q->rel) {
    case REL_eq: q->rel = REL_ne; break;
    case REL_ne: q->rel = REL_eq; break;
    default: *q = (SizeQuestion){q->rel == REL_lt ? REL_le : REL_lt, q->b, q->a};
  }
  return true;
}

/* The arms of an `if` on sizes give arrays of different sizes, of which nothing would be known behind it. The first
 * trace at a place goes the way that is taken now, and a guard stands for it; later ones, which other sizes ask for,
 * have both arms. */
static bool goes_by_sizes(Recorder *r, const Merge *m, ValueId cond) {
  const Place *place = r->tracer->tracing;
  bool differ = false, is;
  SizeQuestion q;
  for (u32 i = 0; i < m->free.count; i++) differ |= m->free.data[i] != 0;
  return differ && place && !place->compiles && !r->abstract && MECHANISM(r->vm, arms_by_sizes) &&
         asks_sizes(r, cond, &q, &is);
}

static Outcome go_by_sizes(Recorder *r, ValueId cond, const u32 pc[2]) {
  SizeQuestion q;
  bool is;
  if (!asks_sizes(r, cond, &q, &is)) return OUT_FAIL;
  if (!guard_relation(&r->g->guards, &r->g->sizes, q.rel, q.a, q.b, "an if", rec_here(r))) return OUT_FAIL;
  rec_top(r)->pc = pc[is ? 0 : 1];
  return OUT_GO;
}

Outcome rec_branch_once(Recorder *r, const Scope *s, ValueId cond, const u32 pc[2], u32 join, int force_cold,
                        const RecState *base, Av ret) {
  r->by_sizes = false;
  Arm arms[2] = {{0}, {0}};
  Merge merge = {.since = r->avs.count};
  Allocator *alloc = &r->vm->alloc;
  Meeting j = {.base = base, .p = rec_top(r)->code->proto};
  u32 words = (j.p->nregs + 63) / 64 + 1;
  Outcome o = OUT_GO;
  for (u32 k = 0; k < 2 && o == OUT_GO; k++)
    o = k == 0 && ret ? returning_arm(r, base, ret, &arms[k])
                      : record_arm(r, base, cond, k == 0, pc[k], join, force_cold == (int)k, &arms[k]);
  if (o == OUT_GO && arms[0].cold && arms[1].cold) o = rec_stuck(r, REASON_branch_merge, "neither arm can be captured");
  if (o != OUT_GO || (o = settle_returns(r, arms)) != OUT_GO) goto done;
  bool open[2] = {is_open(&arms[0]), is_open(&arms[1])};
  u32 which = open[0] ? 0 : 1;
  bool both = open[0] && open[1], any = open[0] || open[1];
  const u32 open_index[2] = {0, both ? 1 : 0};
  merge.arms[0] = arms[which].block;
  merge.arms[1] = arms[1].block;
  j.x = &arms[which].state;
  j.y = both ? &arms[1].state : NULL;
  j.returns = any && arms[which].how == OUT_RETURN;
  j.tokens = takes_token(r, &arms[0]) || takes_token(r, &arms[1]);
  j.live = mem_alloc_zero(alloc, words * 8);
  if (!j.live || (any && !j.returns && !rec_live(r, j.p, join, j.live))) {
    o = OUT_FAIL;
    goto done;
  }
  if (j.returns) o = merge_place(r, &merge, 0, &arms[which].ret, both ? &arms[1].ret : NULL);
  if (o == OUT_GO && any) o = merge_state(r, &j, &merge);
  if (o == OUT_GO && both && !ret && goes_by_sizes(r, &merge, cond)) {
    r->by_sizes = true;
    o = rec_stuck(r, REASON_branch_merge, "the arms give arrays of different sizes");
  }
  if (o == OUT_GO) o = close_arms(r, arms, &merge, open_index);
  if (o != OUT_GO) goto done;
  NodeId node = graph_cond(r->g, cond, arms[0].block, arms[1].block);
  if (!node) {
    o = OUT_FAIL;
    goto done;
  }
  if (any && !both) rec_note_truth(r, cond, which == 0);
  r->lifted_ifs++;
  r->cold_exits += arms[0].cold + arms[1].cold;
  r->arm_is_cold = arms[0].cold || arms[1].cold;
  for (u32 k = 0; k < 2; k++) {
    u32 passed = 0, times = arms[k].cold ? times_taken(r, base, k, &passed) : 0;
    if (r->left_often < times) r->left_often = times;
    bool early = times > 1 && times * PERCENT >= passed * (u64)r->vm->tunables.early_percent;
    r->left_early |= early && is_inside(r) && !r->lifted_loops;
  }
  rec_restore(r, base);
  bool updated = any && (j.x->updated || j.x->safe_exit != base->safe_exit ||
                         (both && (j.y->updated || j.y->safe_exit != base->safe_exit)));
  r->updated |= updated;
  if (!any) {
    o = OUT_ENDED;
    goto done;
  }
  Av returned = arms[which].ret;
  if ((o = put_results(r, &j, &merge, node, &returned)) != OUT_GO) goto done;
  if (updated && !j.returns) rec_was_written(r, node);
  if (j.returns) o = rec_do_return(r, s, returned);
  else rec_top(r)->pc = join;
done:
  for (u32 k = 0; k < 2; k++) rec_state_free(r, &arms[k].state);
  drop_merge(r, &merge);
  if (j.merged) mem_free(alloc, j.merged, sizeof *j.merged * (j.ncells + 1));
  if (j.live) mem_free(alloc, j.live, words * 8);
  return o;
}

/* Which arm the program took more often of late: 0 when the condition is mostly true. */
static u32 usual_arm(Recorder *r) {
  RecFrame *f = rec_top(r);
  u32 site = f->code->site_of_pc[f->pc];
  /* not a threshold: half of the last 16 times */
  return site && __builtin_popcount(f->code->sites[site - 1].taken) < 8 ? 1 : 0;
}

/* In a trip that is recorded by itself, of a list or in front of a loop: where an arm goes on with the next trip,
 * the arms meet before it, or each would record all trips that follow. Else `join`. */
static u32 meets_at(Recorder *r, u32 join) {
  const RecFrame *f = rec_top(r);
  const Proto *p = f->code->proto;
  u32 depth = rec_depth(r), at = 0, loop;
  for (u32 e = 1; e < p->nextents; e++)
    if (p->extents[e].kind == EXT_IF && p->extents[e].begin == f->pc) at = e;
  for (loop = at; loop && loop != UINT32_MAX && p->extents[loop].kind == EXT_IF;) loop = p->extents[loop].parent;
  if (!loop || loop == UINT32_MAX || (r->loop && r->loop->depth == depth && r->loop->extent == loop)) return join;
  for (u32 i = 0; i < r->straight.count; i++)
    if (r->straight.data[i].depth == depth && r->straight.data[i].extent == loop && r->straight.data[i].hopeless)
      return join;
  for (u32 pc = f->pc; pc < join; pc++)
    if (ins_op(p->code[pc]) == BC_jump && ins_x(p->code[pc]) == p->extents[loop].els) return p->extents[loop].els;
  return join;
}

Outcome rec_branch(Recorder *r, const Scope *s, Av cond, u32 when_true, u32 when_false, u32 join) {
  if (r->nest > (u32)r->vm->tunables.trace_nest) return rec_over(r, trace_nest, REASON_graph_size, "branches");
  RecFrame *f = rec_top(r);
  u32 fall = f->pc + 1;
  ValueId p = av_value(r, cond);
  u32 other = when_true == fall ? when_false : when_true;
  if (join == UINT32_MAX) {
    bool lifted = r->loop && r->loop->depth == rec_depth(r) && other == r->loop->end;
    if (!lifted) { /* trip by trip: staying in the loop is relied on */
      u32 exit = r->no_exits ? r->safe_exit : rec_exit(r, EXIT_check, CHECK_truth, f->code->proto->spans[f->pc]);
      if (exit == UINT32_MAX) return rec_stuck(r, REASON_loop_body, "a loop that is not lifted");
      if (when_false == fall) {
        Av negated;
        Outcome o = rec_op(r, OP_logical_not, &cond, &negated);
        if (o != OUT_GO) return o;
        p = av_value(r, negated);
      }
      if (!graph_check(r->g, CHECK_assertion, &p, 1, exit)) return OUT_FAIL;
      f->pc = fall;
      return OUT_GO;
    }
    join = fall;
  }
  const u32 pc[2] = {when_true, when_false};
  RecMark start = rec_mark(r);
  RecState base;
  if (!rec_save(r, &base)) return OUT_FAIL;
  r->nest++;
  Outcome o = OUT_STUCK;
  u32 meet = meets_at(r, join);
  if (meet != join) { /* an arm that becomes cold only so is recorded to the join */
    o = rec_branch_once(r, s, p, pc, meet, -1, &base, 0);
    bool here = rec_depth(r) == base.depth; /* what has returned from its frame stays as it was recorded */
    bool again = o == OUT_STUCK && !r->by_sizes && !r->lacks && !r->widens && !r->noted_types;
    if ((o == OUT_GO && r->arm_is_cold && here) || again) {
      rec_rollback(r, &start);
      rec_restore(r, &base);
      meet = join;
    }
  }
  if (meet == join) o = rec_branch_once(r, s, p, pc, join, -1, &base, 0);
  if (o == OUT_STUCK && r->by_sizes) {
    r->by_sizes = false;
    rec_rollback(r, &start);
    rec_restore(r, &base);
    o = go_by_sizes(r, p, pc);
  }
  if (o == OUT_STUCK && r->reason == REASON_branch_merge && !r->no_exits && !r->lacks && !r->widens &&
      !r->noted_types) {
    char why[sizeof r->why];
    memcpy(why, r->why, sizeof why);
    rec_rollback(r, &start);
    rec_restore(r, &base);
    o = rec_branch_once(r, s, p, pc, join, 1 - (int)usual_arm(r), &base, 0);
    if (o == OUT_STUCK) memcpy(r->why, why, sizeof why);
  }
  r->nest--;
  if (o == OUT_STUCK) {
    u16 reason = r->reason;
    Span span = r->why_span;
    rec_rollback(r, &start);
    rec_restore(r, &base);
    r->reason = reason;
    r->why_span = span;
  }
  rec_state_free(r, &base);
  return o;
}
