/* record_flow.c — native control flow in the trace: while and for become a loop of the graph (if: record_branch.c).
 *
 * Conditions and bodies are recorded into blocks of their own. A loop carries what its extent writes and is live at its
 * head, as leaves (record_carry.c); when a leaf's type changes in the first trip, that trip is recorded before the
 * loop; when the body breaks, the loop is recorded trip by trip until it does. */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_branch.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_flow.h"
#include "tracer/record/record_ops.h"
#include "tracer/record/record_prior.h"
#include "tracer/record/record_return.h"
#include "tracer/record/repr_columns_room.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/repr_columns.h"
#include "tracer/tracer.h"

#include <string.h>

/* ---- for -------------------------------------------------------------------------------------------------------- */

Outcome rec_begin_for(Recorder *r, Av seq, u32 a) {
  RecFrame *f = rec_top(r);
  Av count = 0, zero = av_const(r, value_weak_i64(0));
  Outcome o = seq && zero ? rec_walk(r, seq, &seq) : OUT_FAIL;
  if (o == OUT_GO) o = rec_length(r, seq, &count);
  if (o != OUT_GO) return o;
  f->regs[a] = seq;
  f->regs[a + 1] = zero;
  f->regs[a + 2] = count;
  f->pc++;
  return OUT_GO;
}

Outcome rec_next_item(Recorder *r, u32 a) {
  RecFrame *f = rec_top(r);
  Av seq = av_force(r, f->regs[a]), pos = f->regs[a + 1], item, next, one = av_const(r, value_weak_i64(1));
  if (!seq || !one) return OUT_FAIL;
  Outcome o = rec_at(r, seq, pos, &item);
  if (o == OUT_GO) o = item ? rec_binary(r, BC_add, pos, one, &next) : OUT_FAIL;
  if (o != OUT_GO) return o;
  f = rec_top(r);
  f->regs[a + 1] = next;
  f->regs[a + 3] = item;
  f->pc++;
  return OUT_GO;
}

/* ---- loops ------------------------------------------------------------------------------------------------------ */

static RecStraight *straight_at(Recorder *r, u32 depth, u32 extent) {
  for (u32 i = 0; i < r->straight.count; i++)
    if (r->straight.data[i].depth == depth && r->straight.data[i].extent == extent) return &r->straight.data[i];
  return NULL;
}

static Outcome anchor_sizes(Recorder *r, DimVec *sizes) {
  Outcome o = OUT_GO;
  for (u32 i = 0; i < sizes->count && o == OUT_GO; i++) o = rec_anchor(r, sizes->data[i]);
  sizes->count = 0;
  return o;
}

/* Do the trips change an array? What is checked in the condition leaves as the last one left it, then. */
static bool changes_arrays(const Recorder *r, const RecLoop *l) {
  for (u32 i = 0; i < l->types.count; i++)
    if (type_of(r->g, l->types.data[i])->rank) return true;
  return false;
}

/* Has a register that the loop carries another value than before? */
static bool changes_carried(Recorder *r, const RecLoop *l, const RecState *before) {
  bool changed = false;
  for (u32 i = 0; i < l->locs.count; i++) {
    u32 at = l->locs.data[i].index;
    changed |= !l->locs.data[i].cell && rec_top(r)->regs[at] != before->regs[at];
  }
  return changed;
}

/* How many items the loop walks over, where that is a number known before it; in the body there is one. */
static Dim position_bound(Recorder *r, const Extent *e, const Proto *p) {
  Dim n;
  if (e->kind != EXT_FOR) return DIM_NONE;
  Av count = rec_top(r)->regs[ins_a(p->code[e->head]) + 2];
  ValueId v = count ? av_value(r, count) : 0;
  if (!v || !value_dim(r->g, v, &n) || n == DIM_NONE) return DIM_NONE;
  return size_above_zero(&r->g->sizes, n);
}

/* One attempt to lift a loop: what the condition leaves for the body. */
typedef struct Lift {
  RecLoop *loop;
  const Extent *e;
  const Proto *p;
  u32 position; /* register of a `for` loop's position; UINT32_MAX: none */
  u32 body_pc;
  u32 *stale, nstale, stale_cap; /* registers that the condition wrote: what the body sees of them is nothing */
  DimVec sizes;
} Lift;

/* While: the condition recorded into the cursor's block, r->cond what it gives. */
static Outcome lift_test(Recorder *r, Lift *x) {
  RecLoop *l = x->loop, *outer = r->loop;
  RecState before = {0};
  u64 effects = r->effects;
  Scope s = {.depth = rec_depth(r), .end = x->e->head, .cond_exit = x->e->end};
  Outcome o = OUT_GO;
  r->loop = l;
  r->updated |= changes_arrays(r, l); /* by the trips before this one */
  if (!rec_save(r, &before)) o = OUT_FAIL;
  if (o == OUT_GO) o = rec_run(r, &s);
  r->loop = outer;
  if (o == OUT_END) o = OUT_GO;
  else if (o != OUT_FAIL && o != OUT_STUCK) o = rec_stuck(r, REASON_loop_body, "the loop's condition");
  if (o == OUT_GO && (r->effects != effects || changes_carried(r, l, &before))) o = rec_want_test_inside(r, l);
  if (o == OUT_GO) {
    const RecFrame *f = rec_top(r);
    x->body_pc = f->pc;
    x->stale_cap = before.nregs + 1;
    x->stale = mem_alloc(&r->vm->alloc, sizeof *x->stale * x->stale_cap);
    if (!x->stale) o = OUT_FAIL;
    for (u32 i = 0; x->stale && i < before.nregs; i++)
      if (f->regs[i] != before.regs[i]) x->stale[x->nstale++] = i;
  }
  rec_state_free(r, &before);
  return o;
}

static Outcome lift_cond(Recorder *r, Lift *x, BlockId *cond) {
  if (!(*cond = graph_open(r->g)) || !rec_place_params(r, x->loop, *cond, x->position, DIM_NONE, &x->sizes))
    return OUT_FAIL;
  Outcome o = anchor_sizes(r, &x->sizes);
  x->body_pc = x->e->head;
  if (o == OUT_GO && x->e->kind == EXT_FOR) {
    const RecFrame *f = rec_top(r);
    u32 a = ins_a(x->p->code[x->e->head]);
    Av more;
    o = rec_binary(r, BC_lt, f->regs[a + 1], f->regs[a + 2], &more);
    r->cond = o == OUT_GO ? av_value(r, more) : 0;
  } else if (o == OUT_GO && x->loop->test_inside) {
    r->cond = av_value(r, av_const(r, value_bool(true)));
  } else if (o == OUT_GO) {
    o = lift_test(r, x);
  }
  Value known;
  x->loop->endless = o == OUT_GO && value_const(r->g, r->cond, &known) && known.dtype == DT_bool && known.bits;
  if (o == OUT_GO && !graph_close(r->g, TERM_yield, &r->cond, 1, 0)) o = OUT_FAIL;
  return o;
}

/* Records the body's instructions and closes its block. */
static Outcome run_body(Recorder *r, RecLoop *l) {
  Graph *g = r->g;
  Scope s = {.depth = rec_depth(r), .end = UINT32_MAX, .cond_exit = UINT32_MAX};
  Outcome o = rec_run(r, &s);
  if (o == OUT_NEXT || o == OUT_LEAVE) return rec_close_loop_block(r, l, o == OUT_NEXT ? TERM_next : TERM_break, 0);
  if (o == OUT_ENDED)
    return graph_close(g, TERM_exit, NULL, 0,
                       r->safe_exit != UINT32_MAX ? r->safe_exit : g->entry_exit) ? OUT_GO : OUT_FAIL;
  if (o == OUT_RETURN && rec_depth(r) == 0 && !r->no_exits) {
    u32 exit = rec_exit_return(r, r->ret);
    return exit != UINT32_MAX && graph_close(g, TERM_exit, NULL, 0, exit) ? OUT_GO : OUT_FAIL;
  }
  if (o == OUT_RETURN) {
    o = rec_return_ask(r, l, r->ret);
    return o == OUT_GO ? rec_close_loop_block(r, l, TERM_break, r->ret) : o;
  }
  return o == OUT_FAIL ||
         o == OUT_STUCK ? o : rec_stuck(r, REASON_loop_body, "the loop's body ends in another function");
}

/* *head_exit: by which the loop leaves at its head. */
static Outcome lift_body(Recorder *r, Lift *x, u32 *head_exit) {
  RecLoop *l = x->loop;
  const Proto *p = x->p;
  u32 head = x->e->head;
  Outcome o = OUT_GO;
  if (!(l->body = graph_open(r->g)) ||
      !rec_place_params(r, l, l->body, x->position, position_bound(r, x->e, p), &x->sizes))
    return OUT_FAIL;
  RecFrame *f = rec_top(r);
  f->pc = head;
  if (!r->no_exits) {
    u32 exit = rec_exit(r, EXIT_check, CHECK_none, p->spans[head]);
    /* a pullback cannot leave: the loop leaves by where it was entered */
    bool stays = exit == UINT32_MAX && r->pulls && !r->failed;
    if (exit != UINT32_MAX) r->safe_exit = *head_exit = exit;
    else if (!stays)
      o = r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_types, "a variable of the loop cannot be rebuilt");
    r->updated = false;
    if (r->tokens) r->settled = r->cells.data[0].value;
  }
  if (o == OUT_GO) o = anchor_sizes(r, &x->sizes);
  for (u32 i = 0; i < x->nstale; i++) {
    bool carried = false;
    for (u32 k = 0; k < l->locs.count; k++) carried |= !l->locs.data[k].cell && l->locs.data[k].index == x->stale[i];
    if (!carried) f->regs[x->stale[i]] = 0;
  }
  f->pc = x->body_pc;
  l->outer = r->loop;
  l->made_before = r->cells.count;
  r->loop = l;
  r->back_edge = false;
  if (o == OUT_GO && x->e->kind == EXT_FOR) o = rec_next_item(r, ins_a(p->code[head]));
  if (o == OUT_GO) o = run_body(r, l);
  r->loop = l->outer;
  return o;
}

static Outcome lift_once(Recorder *r, RecLoop *l, const Extent *e, const RecState *base, NodeId *made) {
  Graph *g = r->g;
  const Proto *p = rec_top(r)->code->proto;
  Lift x = {.loop = l, .e = e, .p = p, .position = e->kind == EXT_FOR ? ins_a(p->code[e->head]) + 1u : UINT32_MAX};
  ValueVec init = {0};
  BlockId cond = 0;
  NodeId node = 0;
  u32 head_exit = NO_EXIT;
  l->body = 0;
  Outcome o = rec_carry_in(r, l, &init);
  if (o == OUT_GO) o = lift_cond(r, &x, &cond);
  if (o == OUT_GO) {
    rec_restore(r, base);
    o = lift_body(r, &x, &head_exit);
  }
  if (o == OUT_GO && !(node = graph_while(g, init.data, init.count, cond, l->body))) o = OUT_FAIL;
  if (o == OUT_GO) {
    g->nodes.data[node].exit = head_exit; /* polls */
    rec_restore(r, base);
    o = rec_carry_out(r, l, node);
    rec_top(r)->pc = e->end;
    *made = node;
    r->lifted_loops++;
    if (r->failed) o = OUT_FAIL;
  }
  if (x.stale) mem_free(&r->vm->alloc, x.stale, sizeof *x.stale * x.stale_cap);
  vec_free(&r->vm->alloc, &init);
  vec_free(&r->vm->alloc, &x.sizes);
  return o;
}

/* Behind a loop that may have returned: the function returns too, or goes on. */
static Outcome return_behind(Recorder *r, const Scope *s, const RecLoop *l, NodeId loop) {
  ValueId flag;
  Av ret = rec_return_result(r, l, loop, &flag);
  const u32 pc[2] = {l->end, l->end};
  RecState base;
  if (!ret) return OUT_FAIL;
  if (l->endless) return rec_do_return(r, s, ret);
  if (!rec_save(r, &base)) return OUT_FAIL;
  RecMark start = rec_mark(r);
  Outcome o = rec_branch_once(r, s, flag, pc, l->end, -1, &base, ret);
  if (o == OUT_STUCK && r->reason == REASON_branch_merge && !r->no_exits && !r->lacks && !r->widens &&
      !r->noted_types) {
    rec_rollback(r, &start);
    rec_restore(r, &base);
    o = rec_branch_once(r, s, flag, pc, l->end, 1, &base, ret);
  }
  rec_state_free(r, &base);
  return o;
}

enum { LOOK_AFTER = 16 }; /* not a threshold: steps of a body until the rest of it is looked over */

/* A loop over few items, however many the recording is in: what it has left is known. */
static u32 few_trips(Recorder *r, const RecFrame *f, const Extent *e) {
  u32 at = ins_a(f->code->proto->code[e->head]);
  i64 position, count;
  bool known = e->kind == EXT_FOR && av_known_int(r, f->regs[at + 1], &position) &&
               av_known_int(r, f->regs[at + 2], &count);
  return known && count <= 2 * (i64)r->vm->tunables.unroll_trips ? 1 + (u32)count : 0;
}

static Outcome lift_loop(Recorder *r, const Scope *s, u32 extent, bool peeled) {
  const Extent *e = &rec_top(r)->code->proto->extents[extent];
  RecLoop l = {.depth = rec_depth(r), .extent = extent, .els = e->els, .end = e->end, .peeled = peeled,
               .look = LOOK_AFTER, .few = few_trips(r, rec_top(r), e)};
  if (r->nest > (u32)r->vm->tunables.trace_nest) return rec_over(r, trace_nest, REASON_graph_size, "loops");
  if (!MECHANISM(r->vm, loops_are_lifted)) return rec_stuck(r, REASON_loop_body, "a loop");
  Outcome o = rec_collect_locs(r, &l, e);
  if (o == OUT_GO) o = rec_prior_use(r, &l);
  r->nest++;
  for (i64 try = 0; o == OUT_GO && try < r->vm->tunables.loop_tries; try++) {
    RecMark mark = rec_mark(r);
    RecState base, inside = {0};
    u32 safe = r->safe_exit;
    Av settled = r->settled;
    if (!rec_save(r, &base)) {
      o = OUT_FAIL;
      break;
    }
    r->noted_types = false;
    r->lacks = NULL;
    r->widens = NULL;
    r->lacks_rows = NULL;
    NodeId made = 0;
    r->vm->counters.at[STAT_loop_tries]++;
    o = rec_make_rows(r, &l);
    if (o == OUT_GO) o = rec_room_make(r, &l);
    if (!l.ret.asked) l.sizes_before = r->g->sizes.nodes.count;
    if (o == OUT_GO && !rec_save(r, &inside)) o = OUT_FAIL;
    if (o == OUT_GO) o = lift_once(r, &l, e, &inside, &made);
    rec_state_free(r, &inside);
    r->safe_exit = safe;
    r->settled = settled;
    bool room = false;
    if (o == OUT_GO) o = rec_room_ask(r, &l, made, &room);
    if (o == OUT_GO && room) {
      rec_restore(r, &base);
      rec_state_free(r, &base);
      continue;
    }
    if (o == OUT_GO) o = rec_room_tell(r, &l);
    if (o == OUT_GO && l.ret.asked) o = return_behind(r, s, &l, made);
    if (o == OUT_STUCK) {
      bool more = (r->lacks == &l || r->widens == &l) && try + 1 < r->vm->tunables.loop_tries, widens = r->widens == &l;
      if (widens) r->widens = NULL;
      u16 reason = r->reason;
      Span span = r->why_span;
      rec_rollback(r, &mark);
      rec_restore(r, &base);
      r->reason = reason;
      r->why_span = span;
      if (more && r->lacks_rows) {
        r->lacks_rows->rows = r->lacks_rows->rows ? 2 : 1;
        r->lacks_rows = NULL;
        r->lacks = NULL;
        o = OUT_GO;
        rec_state_free(r, &base);
        continue;
      }
      if (more && widens) {
        o = OUT_GO;
        rec_state_free(r, &base);
        continue;
      }
      if (more) {
        u32 cell;
        r->lacks = NULL;
        rec_state_free(r, &base);
        if (r->lacks_return) {
          r->lacks_return = false;
          o = OUT_GO;
          continue;
        }
        o = rec_cell_again(r, &r->lacks_cell, &cell);
        if (o == OUT_GO && !rec_add_loc(r, &l, true, cell)) o = OUT_FAIL;
        continue;
      }
    }
    rec_state_free(r, &base);
    break;
  }
  if (o == OUT_GO && !rec_prior_note(r, &l)) o = OUT_FAIL;
  r->nest--;
  vec_free(&r->vm->alloc, &l.locs);
  vec_free(&r->vm->alloc, &l.types);
  vec_free(&r->vm->alloc, &l.free);
  vec_free(&r->vm->alloc, &l.weak);
  vec_free(&r->vm->alloc, &l.was);
  vec_free(&r->vm->alloc, &l.entry);
  return o;
}

Outcome rec_flow(Recorder *r, const Scope *s) {
  RecFrame *f = rec_top(r);
  const Proto *p = f->code->proto;
  u32 depth = rec_depth(r);
  if (r->loop && r->loop->depth == depth) {
    if (f->pc == r->loop->els) return OUT_NEXT;
    if (f->pc == r->loop->end) return OUT_LEAVE;
    if (r->loop->look && !--r->loop->look) {
      Outcome o = rec_look_ahead(r, r->loop);
      if (o != OUT_GO) return o;
    }
  }
  /* the condition being recorded */
  if (s->cond_exit != UINT32_MAX && depth == s->depth && f->pc == s->end) return OUT_END;
  u32 extent = rec_loop_extent(p, f->pc);
  if (!extent || (r->loop && r->loop->depth == depth && r->loop->extent == extent)) return OUT_END;
  const Extent *e = &p->extents[extent];
  bool back = r->back_edge;
  RecStraight *st = straight_at(r, depth, extent);
  if (st && !back) { /* entered anew */
    *st = r->straight.data[--r->straight.count];
    st = NULL;
  }
  if (e->kind == EXT_FOR) { /* over a list: trip by trip, all of them */
    u32 at = ins_a(p->code[e->head]);
    Av seq;
    Outcome packed = rec_walk(r, f->regs[at], &seq);
    if (packed != OUT_GO) return packed;
    f->regs[at] = seq;
    if (av_is_open(r, seq)) {
      if (av_at(r, seq)->count > 2 * (u32)r->vm->tunables.unroll_trips)
        return rec_stuck(r, REASON_loop_sequence, "a loop over a list of %u items", av_at(r, seq)->count);
      return OUT_END;
    }
  }
  if (st && st->unrolled) return OUT_END;
  if (st && st->hopeless) {
    memcpy(r->why, st->why, sizeof r->why);
    r->reason = REASON_loop_body;
    r->why_span = p->spans[f->pc];
    return OUT_STUCK;
  }
  Outcome o = lift_loop(r, s, extent, st != NULL);
  if (o != OUT_STUCK) return o;
  if (r->lacks || r->widens) return o; /* an outer loop has to carry more first, or otherwise */
  bool types = r->noted_types;
  r->noted_types = false;
  /* a list of arrays grows, or the loop's variable is an axis or another setting that must be known: trip by trip, all
   * of them */
  bool setting = r->reason == REASON_literal_needed || r->reason == REASON_no_rule;
  bool unrolls = (r->reason == REASON_loop_list || setting) && few_trips(r, rec_top(r), e);
  if (st && unrolls) {
    straight_at(r, depth, extent)->unrolled = true;
    return OUT_END;
  }
  if (st) { /* the first trip was taken out already */
    if (types && r->reason != REASON_loop_list) r->reason = REASON_loop_types;
    return o;
  }
  /* trip by trip, each trip would be another graph */
  if ((r->no_exits || r->reason == REASON_loop_list) && !types && !unrolls) return o;
  RecStraight entry = {.depth = depth, .extent = extent, .peeled = true, .hopeless = !types,
                       .unrolled = unrolls && !types};
  memcpy(entry.why, r->why, sizeof entry.why);
  if (!vec_push(&r->vm->alloc, &r->straight, entry)) return OUT_FAIL;
  return OUT_END;
}
