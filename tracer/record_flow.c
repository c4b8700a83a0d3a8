/* record_flow.c — native control flow in the trace: if becomes cond, while and for become a loop of the graph.
 *
 * Arms and bodies are recorded into blocks of their own. An arm ends at the join, at the loop's back-edge (next),
 * behind the loop (break), or by returning; one that cannot be captured becomes a cold exit at its beginning. A loop
 * carries what its extent writes and is live at its head, as leaves; when a leaf's type changes in the first
 * trip, that trip is recorded before the loop; when the body breaks, the loop is recorded trip by trip
 * until it does. */
#include "lang/mechanisms.h"
#include "tracer/record.h"
#include "tracer/tracer.h"

#include <string.h>

typedef VEC(Dim) DimVec;

/* ---- what a loop carries --------------------------------------------------------------------------------- */

Av *rec_loc_at(Recorder *r, const RecLoc *l) { return l->cell ? &r->cells.data[l->index].value : &rec_top(r)->regs[l->index]; }

Outcome rec_cell_write(Recorder *r, u32 cell, Av value) {
  for (RecLoop *l = r->loop; l; l = l->outer) {
    bool carried = !r->cells.data[cell].source && cell >= l->made_before; /* a ref of one trip */
    for (u32 i = 0; i < l->locs.count && !carried; i++) carried = l->locs.data[i].cell && l->locs.data[i].index == cell;
    if (carried) continue;
    r->lacks = l;
    r->lacks_rows = NULL;
    rec_cell_path(r, cell, &r->lacks_cell);
    return rec_stuck(r, REASON_loop_types, "a loop writes a variable that it did not carry");
  }
  r->cells.data[cell].value = value;
  r->cells.data[cell].dirty = true;
  r->effects++;
  return OUT_GO;
}

static bool carries_flag(const RecLoop *l, u32 leaf) { return leaf < l->weak.count && l->weak.data[leaf]; }

static u32 flag_index(const RecLoop *l, u32 leaf) {
  u32 n = 0;
  for (u32 i = 0; i < leaf; i++) n += carries_flag(l, i);
  return n;
}

static bool want_flag(Recorder *r, RecLoop *l, u32 leaf) {
  while (l->weak.count <= leaf)
    if (!vec_push(&r->vm->alloc, &l->weak, 0)) return false;
  l->weak.data[leaf] = 1;
  return true;
}

/* A number for a leaf that carries a flag: strong, and its flag. */
static bool with_flag(Recorder *r, ValueId *v, ValueVec *flags) {
  const ArrayType t = *value_type(r->g, *v);
  ValueId flag = rec_weak_flag(r, *v);
  if (!flag) flag = graph_const(r->g, value_bool(t.weak));
  if (t.weak) *v = graph_convert(r->g, *v, t.dtype);
  return *v && flag && vec_push(&r->vm->alloc, flags, flag);
}

/* Which of `values`, the leaves and what follows them, are weak on one way only. */
static bool note_flags(Recorder *r, const RecLoop *l, const AvVec *values) {
  for (u32 i = 0, n = 0; i < l->weak.count; i++)
    if (carries_flag(l, i) && !rec_weak_note(r, av_value(r, values->data[i]), av_value(r, values->data[l->flag_at + n++]))) return false;
  return true;
}

/* A strong number becomes a weak one of its dtype. */
static bool becomes_weak(const Recorder *r, TypeId before, TypeId now) {
  const ArrayType *a = type_of(r->g, before), *b = type_of(r->g, now);
  return !a->rank && !b->rank && a->dtype == b->dtype && !a->weak && b->weak && !r->abstract;
}

/* Where the loop has rows and a short list or text took their place: into the columns of the head. */
static Outcome back_in_rows(Recorder *r, const RecLoop *l, const RecLoc *loc, Av *now) {
  if (!loc->before || !*now || av_at(r, loc->before)->kind != AV_ROWS) return OUT_GO;
  if (!(*now = av_force(r, *now))) return OUT_FAIL;
  if (av_at(r, *now)->kind == AV_ROWS) return OUT_GO;
  AvVec leaves = {0};
  u32 next = 0;
  Outcome o = OUT_GO;
  for (u32 k = 0; k < loc->count && o == OUT_GO; k++)
    if (!vec_push(&r->vm->alloc, &leaves, av_num(r, r->g->blocks.data[l->body].params.data[loc->first + k]))) o = OUT_FAIL;
  Av head = o == OUT_GO ? av_rebuild(r, loc->before, leaves.data, &next) : 0;
  vec_free(&r->vm->alloc, &leaves);
  if (!head) return OUT_FAIL;
  o = rec_rows_like(r, head, *now, false, now);
  return o == OUT_STUCK ? OUT_GO : o; /* said below */
}

/* The carried leaves as they are now, in order; false: a tree or type is another one than at the head. `returning`: nobody
 * reads the registers any more, they stay what they were at the head. */
static Outcome carried_values(Recorder *r, RecLoop *l, bool returning, ValueVec *out) {
  AvVec leaves = {0};
  ValueVec flags = {0};
  Outcome o = OUT_GO;
  for (u32 i = 0; i < l->locs.count && o == OUT_GO; i++) {
    RecLoc *loc = &l->locs.data[i];
    if (returning && !loc->cell) {
      for (u32 k = loc->first; k < loc->first + loc->count && o == OUT_GO; k++) {
        const u32 *params = r->g->blocks.data[l->body].params.data;
        if (!vec_push(&r->vm->alloc, out, params[k])) o = OUT_FAIL;
        if (carries_flag(l, k) && !vec_push(&r->vm->alloc, &flags, params[l->flag_at + flag_index(l, k)])) o = OUT_FAIL;
      }
      continue;
    }
    Av now = *rec_loc_at(r, loc);
    leaves.count = 0;
    if ((o = back_in_rows(r, l, loc, &now)) != OUT_GO) break;
    if (!av_same_tree(r, loc->before, now)) {
      if (rec_want_rows(r, l, loc, av_force(r, now))) {
        o = rec_stuck(r, REASON_loop_list, "a list whose items are not numbers of one kind");
        break;
      }
      bool lists = strcmp(av_kind_text(r, loc->before), "list") == 0 && strcmp(av_kind_text(r, now), "list") == 0;
      r->noted_types = !lists || !av_at(r, av_force(r, loc->before))->source; /* one from outside has another length at every entry */
      o = lists ? rec_stuck(r, REASON_loop_list, "a list of the loop changes its length, and does not hold numbers of one kind")
                : rec_stuck(r, REASON_loop_types, "a variable of the loop changes from %s to %s", av_kind_text(r, loc->before), av_kind_text(r, now));
      break;
    }
    if (!av_leaves(r, now, &leaves) || leaves.count != loc->count) {
      o = OUT_FAIL;
      break;
    }
    for (u32 k_leaf = 0; k_leaf < leaves.count; k_leaf++) {
      ValueId v = av_value(r, leaves.data[k_leaf]);
      TypeId want = l->types.data[loc->first + k_leaf], have = r->g->values.data[v].type;
      if (carries_flag(l, loc->first + k_leaf)) {
        if (type_of(r->g, have)->rank == 0 && !with_flag(r, &v, &flags)) o = OUT_FAIL;
        have = r->g->values.data[v].type;
      } else if (rec_weak_flag(r, v) || becomes_weak(r, want, have)) {
        r->widens = l;
        o = want_flag(r, l, loc->first + k_leaf) ? rec_stuck(r, REASON_loop_types, "a number of the loop is weak on one way only") : OUT_FAIL;
      }
      if (o != OUT_GO) break;
      if (want != have) {
        const ArrayType *w = type_of(r->g, want), *h = type_of(r->g, have);
        bool same = w->dtype == h->dtype && w->weak == h->weak && w->rank == h->rank && w->device == h->device, fits = same;
        for (u32 d = 0; d < w->rank && same; d++) {
          i64 k;
          if (l->free.data[loc->first + k_leaf] >> d & 1 || size_same(&r->g->sizes, w->dims[d], h->dims[d])) continue;
          fits = false;
          if (size_is_const(&r->g->sizes, w->dims[d], &k) && !l->peeled) same = false; /* it may change once only */
          else l->free.data[loc->first + k_leaf] |= 1u << d;
        }
        if (!fits) {
          char a[80], b[80];
          rule_shape_text(w, a, sizeof a);
          rule_shape_text(h, b, sizeof b);
          if (same) r->widens = l;
          else r->noted_types = true;
          o = rec_stuck(r, w->dtype == h->dtype && w->weak == h->weak ? REASON_loop_shapes : REASON_loop_types,
                        "a variable of the loop changes from %s%s%s to %s%s%s", w->weak ? "weak " : "", dtype_name(w->dtype), w->rank ? a : "",
                        h->weak ? "weak " : "", dtype_name(h->dtype), h->rank ? b : "");
          break;
        }
      }
      if (!vec_push(&r->vm->alloc, out, v)) o = OUT_FAIL;
    }
  }
  for (u32 i = 0; i < flags.count && o == OUT_GO; i++)
    if (!vec_push(&r->vm->alloc, out, flags.data[i])) o = OUT_FAIL;
  vec_free(&r->vm->alloc, &leaves);
  vec_free(&r->vm->alloc, &flags);
  return o;
}

/* The condition's own block would keep nothing of what it writes and cannot leave: again, as the body's beginning. */
static Outcome want_test_inside(Recorder *r, RecLoop *l) {
  l->test_inside = true;
  r->widens = l;
  return rec_stuck(r, REASON_loop_body, "the loop's condition writes or leaves the loop");
}

/* Ends the cursor's block by the loop's next or break with the present values. ret: break, and return that. */
static Outcome close_loop_block(Recorder *r, RecLoop *l, TermKind term, Av ret) {
  ValueVec values = {0};
  if (!l->body) return want_test_inside(r, l);
  Outcome o = carried_values(r, l, ret != 0, &values);
  if (o == OUT_GO && !rec_return_values(r, l, ret, &values)) o = OUT_FAIL;
  if (o == OUT_GO && !graph_close(r->g, term, values.data, values.count, 0)) o = OUT_FAIL;
  vec_free(&r->vm->alloc, &values);
  return o;
}

/* ---- branches ---------------------------------------------------------------------------------------------- */

typedef struct Arm {
  BlockId block;
  Outcome how; /* END, RETURN: open; NEXT, LEAVE: open, to be closed for the loop; ENDED: closed */
  RecState state;
  Av ret; /* RETURN; LEAVE: what the loop returns behind it, 0: nothing */
  bool cold;
} Arm;

typedef struct Merge {
  ValueVec yields[2];
  VEC(u32) free; /* for each, the axes whose sizes the arms do not share */
  VEC(u32) mixed; /* those that are weak in one arm only … */
  ValueVec flags[2]; /* … and whether they are, in each */
  VEC(u8) unused;
} Merge;

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
  if (!base || av_at(r, base)->kind != AV_ROWS) return OUT_GO;
  if (!(*a = av_force(r, *a)) || !(*b = av_force(r, *b))) return OUT_FAIL;
  Av *other = av_at(r, *a)->kind == AV_ROWS ? b : a;
  if (av_at(r, *a)->kind == av_at(r, *b)->kind) return OUT_GO;
  Outcome o = rec_rows_like(r, base, *other, true, other);
  return o == OUT_STUCK ? OUT_GO : o;
}

/* Collects the leaves of a value that both arms left in one place (second NULL, or 0: only one arm did). */
static Outcome merge_place(Recorder *r, Merge *m, Av base, Av *first, Av *second) {
  AvVec x = {0}, y = {0};
  Outcome o = second && *second ? empty_in_rows(r, base, first, second) : OUT_GO;
  Av a = *first, b = second ? *second : 0;
  if (o != OUT_GO) return o;
  if (b && !av_same_tree(r, a, b)) {
    (void)rec_merge_rows(r, base, a, b);
    o = rec_stuck(r, REASON_branch_merge, "the arms give %s and %s", av_kind_text(r, a), av_kind_text(r, b));
  } else if (!av_leaves(r, a, &x) || (b && !av_leaves(r, b, &y))) {
    o = OUT_FAIL;
  }
  for (u32 i = 0; i < x.count && o == OUT_GO; i++) {
    ValueId v = av_value(r, x.data[i]), w = b ? av_value(r, y.data[i]) : 0;
    u32 free = 0;
    if ((o = merge_weak(r, m, v, w)) != OUT_GO) break;
    if (b && !(m->mixed.count && m->mixed.data[m->mixed.count - 1] == m->yields[0].count) && !same_type(r, r->g->values.data[v].type, r->g->values.data[w].type, &free)) {
      const ArrayType *s = value_type(r->g, v), *t = value_type(r->g, w);
      o = rec_stuck(r, REASON_branch_merge, "the arms give %s%s and %s%s", s->weak ? "weak " : "", dtype_name(s->dtype), t->weak ? "weak " : "", dtype_name(t->dtype));
      break;
    }
    if (!vec_push(&r->vm->alloc, &m->free, free) || !vec_push(&r->vm->alloc, &m->yields[0], v) || (b && !vec_push(&r->vm->alloc, &m->yields[1], w))) o = OUT_FAIL;
  }
  vec_free(&r->vm->alloc, &x);
  vec_free(&r->vm->alloc, &y);
  return o;
}

static Av state_cell(Recorder *r, const RecState *s, u32 i) { return i < s->ncells ? s->cells[i].value : rec_cell_clean(r, i); }
static bool state_dirty(const RecState *s, u32 i) { return i < s->ncells && s->cells[i].dirty; }

static void drop_merge(Recorder *r, Merge *m) {
  vec_free(&r->vm->alloc, &m->yields[0]);
  vec_free(&r->vm->alloc, &m->yields[1]);
  vec_free(&r->vm->alloc, &m->free);
  vec_free(&r->vm->alloc, &m->mixed);
  vec_free(&r->vm->alloc, &m->flags[0]);
  vec_free(&r->vm->alloc, &m->flags[1]);
}

/* Records one arm into a block of its own, left open unless it ended. */
static Outcome record_arm(Recorder *r, const RecState *base, u32 pc, u32 join, bool force_cold, Arm *arm) {
  BlockId parent = r->g->at;
  RecMark mark = rec_mark(r);
  rec_restore(r, base);
  rec_top(r)->pc = pc;
  arm->block = graph_open(r->g);
  if (!arm->block) return OUT_FAIL;
  Outcome o;
  if (force_cold) {
    o = OUT_STUCK;
    r->reason = REASON_arm_types;
  } else {
    Scope s = {.depth = rec_depth(r), .end = join, .cond_exit = UINT32_MAX};
    o = rec_run(r, &s);
  }
  if (o == OUT_STUCK) {
    if (r->no_exits || r->lacks || r->widens || r->noted_types || !MECHANISM(r->vm, arms_are_cold)) return OUT_STUCK;
    u32 reason = r->reason == REASON_effect_output ? REASON_arm_output : force_cold ? REASON_arm_types : REASON_arm_break;
    Span at = force_cold ? (Span){0} : r->why_span;
    rec_rollback(r, &mark);
    rec_restore(r, base);
    rec_top(r)->pc = pc;
    arm->block = graph_open(r->g);
    u32 exit = arm->block ? rec_exit(r, EXIT_cold, reason, at.file ? at : rec_top(r)->code->proto->spans[pc]) : UINT32_MAX;
    if (exit == UINT32_MAX || !graph_close(r->g, TERM_exit, NULL, 0, exit)) return r->failed || r->g->failed ? OUT_FAIL : OUT_STUCK;
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
  if (exit == UINT32_MAX) return r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_return, "what is returned cannot be rebuilt");
  if (!graph_close(r->g, TERM_exit, NULL, 0, exit)) return OUT_FAIL;
  graph_at_end(r->g, parent);
  arm->how = OUT_ENDED;
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
      Outcome o = rec_return_ask(r, r->loop, a->ret);
      if (o != OUT_GO) return o;
      a->how = OUT_LEAVE;
      continue;
    }
    if (b->how == OUT_END) { /* the other arm goes on to the function's end */
      BlockId parent = r->g->at;
      go_into(r, b);
      Scope s = {.depth = depth, .end = UINT32_MAX, .cond_exit = UINT32_MAX};
      Outcome o = rec_run(r, &s);
      if (o == OUT_FAIL || o == OUT_STUCK) return o;
      b->how = o;
      b->ret = o == OUT_RETURN ? r->ret : 0;
      if (o == OUT_ENDED) {
        if (!graph_close(r->g, TERM_exit, NULL, 0, r->safe_exit != UINT32_MAX ? r->safe_exit : r->g->entry_exit)) return OUT_FAIL;
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
    if (a->how == OUT_NEXT || a->how == OUT_LEAVE) o = close_loop_block(r, r->loop, a->how == OUT_NEXT ? TERM_next : TERM_break, a->how == OUT_LEAVE ? a->ret : 0);
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

/* ret: the first arm returns that, else it begins at pc[0]. */
static Outcome branch_once(Recorder *r, const Scope *s, ValueId cond, const u32 pc[2], u32 join, int force_cold, const RecState *base, Av ret_first) {
  Arm arms[2] = {{0}, {0}};
  Merge merge = {0};
  ValueVec results = {0};
  Allocator *alloc = &r->vm->alloc;
  u32 depth = rec_depth(r);
  Av *merged = NULL; /* per cell: what its merged leaves become, 0 when neither arm changed it */
  u32 ncells = 0;
  u64 *live = NULL;
  const Proto *p = rec_top(r)->code->proto;
  u32 words = (p->nregs + 63) / 64 + 1;
  Outcome o = OUT_GO;
  for (u32 k = 0; k < 2 && o == OUT_GO; k++)
    o = k == 0 && ret_first ? returning_arm(r, base, ret_first, &arms[k]) : record_arm(r, base, pc[k], join, force_cold == (int)k, &arms[k]);
  if (o != OUT_GO) goto done;
  if (arms[0].cold && arms[1].cold) {
    o = rec_stuck(r, REASON_branch_merge, "neither arm can be captured");
    goto done;
  }
  if ((o = settle_returns(r, arms)) != OUT_GO) goto done;
  bool open[2] = {is_open(&arms[0]), is_open(&arms[1])};
  u32 which = open[0] ? 0 : 1;
  bool both = open[0] && open[1], any = open[0] || open[1];
  bool returns = any && arms[which].how == OUT_RETURN;
  const u32 open_index[2] = {0, both ? 1 : 0};
  if (!(live = mem_alloc_zero(alloc, words * 8))) {
    o = OUT_FAIL;
    goto done;
  }
  const RecState *x = &arms[which].state, *y = both ? &arms[1].state : NULL;
  if (any && !returns && !rec_live(r, p, join, live)) {
    o = OUT_FAIL;
    goto done;
  }
  /* collect: the returned value, else registers; then cells */
  if (returns) o = merge_place(r, &merge, 0, &arms[which].ret, both ? &arms[1].ret : NULL);
  for (u32 i = 0; any && !returns && i < p->nregs && o == OUT_GO; i++) {
    if (!(live[i / 64] >> (i % 64) & 1) || (x->regs[i] == base->regs[i] && (!y || y->regs[i] == x->regs[i]))) continue;
    if (!x->regs[i] || (y && !y->regs[i])) continue;
    o = merge_place(r, &merge, base->regs[i], &x->regs[i], y ? &y->regs[i] : NULL);
  }
  ncells = r->cells.count;
  if (!(merged = mem_alloc_zero(alloc, sizeof *merged * (ncells + 1)))) {
    o = OUT_FAIL;
    goto done;
  }
  for (u32 i = 0; any && i < ncells && o == OUT_GO; i++) {
    Av a = state_cell(r, x, i), b = y ? state_cell(r, y, i) : 0;
    Av was = i < base->ncells ? base->cells[i].value : rec_cell_clean(r, i);
    if ((a == was && (!y || b == a)) || !a || (y && !b)) continue;
    o = merge_place(r, &merge, was, &a, y ? &b : NULL);
    merged[i] = a; /* said once: to merge reads lazy values, which look changed after */
  }
  if (o != OUT_GO) goto done;
  if ((o = close_arms(r, arms, &merge, open_index)) != OUT_GO) goto done;
  NodeId node = graph_cond(r->g, cond, arms[0].block, arms[1].block);
  if (!node) {
    o = OUT_FAIL;
    goto done;
  }
  r->lifted_ifs++;
  r->cold_exits += arms[0].cold + arms[1].cold;
  rec_restore(r, base);
  r->updated |= any && (x->updated || x->safe_exit != base->safe_exit || (y && (y->updated || y->safe_exit != base->safe_exit)));
  if (!any) {
    o = OUT_ENDED;
    goto done;
  }
  for (u32 i = 0; i < merge.mixed.count; i++)
    if (!rec_weak_note(r, node_result(r->g, node, merge.mixed.data[i]), node_result(r->g, node, merge.yields[0].count + i))) {
      o = OUT_FAIL;
      goto done;
    }
  for (u32 i = 0; i < merge.free.count; i++)
    if ((o = rec_escape(r, node_result(r->g, node, i), merge.free.data[i])) != OUT_GO) goto done;
  /* put the results where the values were, in the same order */
  AvVec leaves = {0};
  for (u32 i = 0; i < merge.yields[0].count && o == OUT_GO; i++) {
    Av a = av_num(r, node_result(r->g, node, i));
    if (!a || !vec_push(alloc, &leaves, a)) o = OUT_FAIL;
  }
  u32 next = 0;
  Av ret = 0;
  if (returns && o == OUT_GO) ret = av_rebuild(r, arms[which].ret, leaves.data, &next);
  RecFrame *f = rec_top(r);
  for (u32 i = 0; !returns && i < p->nregs && o == OUT_GO; i++) {
    bool alive = live[i / 64] >> (i % 64) & 1;
    if (!alive) {
      f->regs[i] = x->regs[i] == base->regs[i] && (!y || y->regs[i] == base->regs[i]) ? base->regs[i] : 0;
      continue;
    }
    if (x->regs[i] == base->regs[i] && (!y || y->regs[i] == x->regs[i])) continue;
    if (!x->regs[i] || (y && !y->regs[i])) {
      f->regs[i] = 0;
      continue;
    }
    f->regs[i] = av_rebuild(r, x->regs[i], leaves.data, &next);
  }
  for (u32 i = 0; i < ncells && o == OUT_GO; i++) {
    bool dirty = state_dirty(x, i) || (y && state_dirty(y, i));
    if (merged[i]) r->cells.data[i].value = av_rebuild(r, merged[i], leaves.data, &next);
    if (r->cells.data[i].source) r->cells.data[i].dirty |= dirty;
  }
  vec_free(alloc, &leaves);
  if (r->failed) o = OUT_FAIL;
  if (o != OUT_GO) goto done;
  if (returns) o = rec_do_return(r, s, ret);
  else rec_top(r)->pc = join;
done:
  (void)depth;
  for (u32 k = 0; k < 2; k++) rec_state_free(r, &arms[k].state);
  drop_merge(r, &merge);
  vec_free(alloc, &results);
  if (merged) mem_free(alloc, merged, sizeof *merged * (ncells + 1));
  if (live) mem_free(alloc, live, words * 8);
  return o;
}

/* Which arm the program took more often of late: 0 when the condition is mostly true. */
static u32 usual_arm(Recorder *r) {
  RecFrame *f = rec_top(r);
  u32 site = f->code->site_of_pc[f->pc];
  return site && __builtin_popcount(f->code->sites[site - 1].taken) < 8 ? 1 : 0;
}

/* pc[0]: where control goes when the condition holds. */
Outcome rec_branch(Recorder *r, const Scope *s, Av cond, u32 when_true, u32 when_false, u32 join) {
  if (r->nest > 60) return rec_stuck(r, REASON_graph_size, "branches nested too deep");
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
  Outcome o = branch_once(r, s, p, pc, join, -1, &base, 0);
  if (o == OUT_STUCK && r->reason == REASON_branch_merge && !r->no_exits && !r->lacks && !r->widens && !r->noted_types) {
    char why[sizeof r->why];
    memcpy(why, r->why, sizeof why);
    rec_rollback(r, &start);
    rec_restore(r, &base);
    o = branch_once(r, s, p, pc, join, 1 - (int)usual_arm(r), &base, 0);
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

/* ---- loops --------------------------------------------------------------------------------------------------- */

static RecStraight *straight_at(Recorder *r, u32 depth, u32 extent) {
  for (u32 i = 0; i < r->straight.count; i++)
    if (r->straight.data[i].depth == depth && r->straight.data[i].extent == extent) return &r->straight.data[i];
  return NULL;
}

static bool add_loc(Recorder *r, RecLoop *l, bool cell, u32 index) {
  for (u32 i = 0; i < l->locs.count; i++)
    if (l->locs.data[i].cell == cell && l->locs.data[i].index == index) return true;
  return vec_push(&r->vm->alloc, &l->locs, (RecLoc){.cell = cell, .index = index});
}

/* A loop entered in its midst: its position came from a register, and is never negative. */
static bool pin_position(Recorder *r, Av position, Span because) {
  Av a = av_force(r, position);
  ValueId v = a ? av_value(r, a) : 0;
  Dim d;
  i64 hint;
  if (!v || !value_dim(r->g, v, &d) || d == DIM_NONE || size_is_unbacked(&r->g->sizes, d) || !size_hint(&r->g->sizes, d, &hint) || hint < 0) return a != 0;
  return guard_relation(&r->g->guards, &r->g->sizes, REL_le, 0, d, "position of a loop", because);
}

static Outcome collect_locs(Recorder *r, RecLoop *l, const Extent *e) {
  RecFrame *f = rec_top(r);
  const Proto *p = f->code->proto;
  Allocator *alloc = &r->vm->alloc;
  u32 words = (p->nregs + 63) / 64 + 1;
  u64 *live = mem_alloc_zero(alloc, words * 8);
  if (!live) return OUT_FAIL;
  bool ok = rec_live(r, p, e->head, live);
  for (u32 i = 0; i < e->write_count && ok; i++) {
    u32 w = p->writes[e->write_first + i];
    if (w & WRITE_MODULE) {
      u32 cell;
      Outcome o = rec_cell_global(r, f->code->module, w & ~WRITE_MODULE, &cell);
      if (o != OUT_GO) {
        mem_free(alloc, live, words * 8);
        return o;
      }
      ok = add_loc(r, l, true, cell);
    } else if (e->kind == EXT_FOR && (w == ins_a(p->code[e->head]) || w == ins_a(p->code[e->head]) + 2)) {
      continue; /* the sequence and its count stay until the loop is over */
    } else if (live[w / 64] >> (w % 64) & 1 && f->regs[w]) {
      ok = add_loc(r, l, false, w);
    }
  }
  if (ok && e->kind == EXT_FOR) {
    u32 at = ins_a(p->code[e->head]) + 1;
    ok = add_loc(r, l, false, at) && pin_position(r, f->regs[at], p->spans[e->head]);
  }
  mem_free(alloc, live, words * 8);
  return ok ? OUT_GO : OUT_FAIL;
}

/* A parameter for a leaf: sizes that change are its own. */
static ValueId leaf_param(Recorder *r, const RecLoop *l, BlockId b, u32 i, DimVec *sizes) {
  Graph *g = r->g;
  ArrayType t = *type_of(g, l->types.data[i]);
  Dim fresh[TYPE_MAX_RANK];
  for (u32 d = 0; d < t.rank; d++) {
    fresh[d] = 0;
    if (!(l->free.data[i] >> d & 1)) continue;
    if ((fresh[d] = size_unbacked(&g->sizes, NULL, 0, 0, SIZE_LIMIT - 1)) == DIM_NONE || !vec_push(&r->vm->alloc, sizes, fresh[d])) return 0;
    t.dims[d] = fresh[d];
  }
  ValueId p = graph_param(g, b, l->free.data[i] ? graph_type(g, &t) : l->types.data[i]);
  for (u32 d = 0; p && d < t.rank; d++)
    if (fresh[d]) rec_carry(r, fresh[d], p, d);
  return p;
}

/* The carried values as parameters of the cursor's block, standing where they belong. *sizes: the new ones. */
static bool place_params(Recorder *r, RecLoop *l, BlockId b, u32 position, Dim bound, DimVec *sizes) {
  AvVec leaves = {0};
  bool ok = true;
  for (u32 i = 0; i < l->types.count && ok; i++) {
    Av a = av_num(r, leaf_param(r, l, b, i, sizes));
    ok = a && vec_push(&r->vm->alloc, &leaves, a);
  }
  u32 next = 0;
  for (u32 i = 0; i < l->locs.count && ok; i++) {
    RecLoc *loc = &l->locs.data[i];
    Av a = av_rebuild(r, loc->before, leaves.data, &next);
    *rec_loc_at(r, loc) = a;
    if (a && !loc->cell && loc->index == position) ok = vec_push(&r->vm->alloc, &r->positions, (RecPosition){av_value(r, a), bound});
    if (loc->cell) r->cells.data[loc->index].dirty = true; /* an exit inside the loop writes it back */
    ok &= a || !loc->before;
  }
  ok = ok && note_flags(r, l, &leaves);
  vec_free(&r->vm->alloc, &leaves);
  return ok;
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

static Outcome lift_once(Recorder *r, RecLoop *l, const Extent *e, const RecState *base, NodeId *made) {
  Graph *g = r->g;
  Allocator *alloc = &r->vm->alloc;
  const Proto *p = rec_top(r)->code->proto;
  ValueVec init = {0}, flags = {0};
  AvVec leaves = {0};
  DimVec sizes = {0};
  Outcome o = OUT_GO;
  l->types.count = 0;
  for (u32 i = 0; i < l->locs.count && o == OUT_GO; i++) {
    RecLoc *loc = &l->locs.data[i];
    leaves.count = 0;
    loc->before = av_force(r, *rec_loc_at(r, loc));
    if (!av_leaves(r, loc->before, &leaves)) o = OUT_FAIL;
    loc->first = l->types.count;
    loc->count = leaves.count;
    for (u32 k = 0; k < leaves.count && o == OUT_GO; k++) {
      ValueId v = av_value(r, leaves.data[k]);
      if (rec_weak_flag(r, v) && !want_flag(r, l, l->types.count)) o = OUT_FAIL;
      if (carries_flag(l, l->types.count) && value_type(g, v)->rank) l->weak.data[l->types.count] = 0; /* another leaf stood here */
      if (carries_flag(l, l->types.count) && !with_flag(r, &v, &flags)) o = OUT_FAIL;
      if (!vec_push(alloc, &init, v) || !vec_push(alloc, &l->types, g->values.data[v].type)) o = OUT_FAIL;
    }
  }
  l->flag_at = l->types.count;
  if (l->weak.count > l->flag_at) l->weak.count = l->flag_at;
  for (u32 i = 0; i < flags.count && o == OUT_GO; i++)
    if (!vec_push(alloc, &init, flags.data[i]) || !vec_push(alloc, &l->types, g->values.data[flags.data[i]].type)) o = OUT_FAIL;
  if (o == OUT_GO && l->ret.asked) o = rec_return_carry(r, l, &init);
  while (o == OUT_GO && l->free.count < l->types.count)
    if (!vec_push(alloc, &l->free, 0)) o = OUT_FAIL;
  if (l->types.count > 512) o = rec_stuck(r, REASON_graph_size, "a loop with many variables");
  u32 body_pc = 0;
  RecFrame *f = rec_top(r);
  u32 *stale = NULL, nstale = 0, head_exit = NO_EXIT, position = e->kind == EXT_FOR ? ins_a(p->code[e->head]) + 1u : UINT32_MAX;
  /* condition */
  BlockId cond = 0, body = 0;
  l->body = 0;
  if (o == OUT_GO && !(cond = graph_open(g))) o = OUT_FAIL;
  if (o == OUT_GO && !place_params(r, l, cond, position, DIM_NONE, &sizes)) o = OUT_FAIL;
  if (o == OUT_GO) o = anchor_sizes(r, &sizes);
  if (o == OUT_GO && e->kind == EXT_FOR) {
    u32 a = ins_a(p->code[e->head]);
    Av more;
    o = rec_binary(r, BC_lt, f->regs[a + 1], f->regs[a + 2], &more);
    r->cond = o == OUT_GO ? av_value(r, more) : 0;
    body_pc = e->head;
  } else if (o == OUT_GO && l->test_inside) {
    r->cond = av_value(r, av_const(r, value_bool(true)));
    body_pc = e->head;
  } else if (o == OUT_GO) {
    RecState before = {0};
    u64 effects = r->effects;
    Scope s = {.depth = rec_depth(r), .end = e->head, .cond_exit = e->end};
    RecLoop *outer = r->loop;
    r->loop = l;
    r->updated |= changes_arrays(r, l); /* by the trips before this one */
    if (!rec_save(r, &before)) o = OUT_FAIL;
    if (o == OUT_GO) o = rec_run(r, &s);
    r->loop = outer;
    if (o == OUT_END) o = OUT_GO;
    else if (o != OUT_FAIL && o != OUT_STUCK) o = rec_stuck(r, REASON_loop_body, "the loop's condition");
    if (o == OUT_GO && (r->effects != effects || changes_carried(r, l, &before))) o = want_test_inside(r, l);
    if (o == OUT_GO) {
      f = rec_top(r);
      body_pc = f->pc;
      stale = mem_alloc(alloc, sizeof *stale * (before.nregs + 1));
      if (!stale) o = OUT_FAIL;
      for (u32 i = 0; stale && i < before.nregs; i++)
        if (f->regs[i] != before.regs[i]) stale[nstale++] = i;
    }
    rec_state_free(r, &before);
  }
  if (o == OUT_GO && !graph_close(g, TERM_yield, &r->cond, 1, 0)) o = OUT_FAIL;
  /* body */
  if (o == OUT_GO) rec_restore(r, base);
  if (o == OUT_GO && !(l->body = body = graph_open(g))) o = OUT_FAIL;
  if (o == OUT_GO && !place_params(r, l, body, position, position_bound(r, e, p), &sizes)) o = OUT_FAIL;
  if (o == OUT_GO) {
    f = rec_top(r);
    f->pc = e->head;
    if (!r->no_exits) {
      u32 exit = rec_exit(r, EXIT_check, CHECK_none, p->spans[e->head]);
      bool stays = exit == UINT32_MAX && r->pulls && !r->failed; /* a pullback cannot leave: the loop leaves by where it was entered */
      if (exit != UINT32_MAX) r->safe_exit = head_exit = exit;
      else if (!stays) o = r->failed ? OUT_FAIL : rec_stuck(r, REASON_loop_types, "a variable of the loop cannot be rebuilt");
      r->updated = false;
      if (r->tokens) r->settled = r->cells.data[0].value;
    }
    if (o == OUT_GO) o = anchor_sizes(r, &sizes);
    for (u32 i = 0; i < nstale; i++) {
      bool carried = false;
      for (u32 k = 0; k < l->locs.count; k++) carried |= !l->locs.data[k].cell && l->locs.data[k].index == stale[i];
      if (!carried) f->regs[stale[i]] = 0;
    }
    f->pc = body_pc;
    l->outer = r->loop;
    l->made_before = r->cells.count;
    r->loop = l;
    r->back_edge = false;
    if (o == OUT_GO && e->kind == EXT_FOR) o = rec_next_item(r, ins_a(p->code[e->head]));
    if (o == OUT_GO) {
      Scope s = {.depth = rec_depth(r), .end = UINT32_MAX, .cond_exit = UINT32_MAX};
      o = rec_run(r, &s);
      if (o == OUT_NEXT || o == OUT_LEAVE) {
        o = close_loop_block(r, l, o == OUT_NEXT ? TERM_next : TERM_break, 0);
      } else if (o == OUT_ENDED) {
        o = graph_close(g, TERM_exit, NULL, 0, r->safe_exit != UINT32_MAX ? r->safe_exit : g->entry_exit) ? OUT_GO : OUT_FAIL;
      } else if (o == OUT_RETURN && rec_depth(r) == 0 && !r->no_exits) {
        u32 exit = rec_exit_return(r, r->ret);
        o = exit != UINT32_MAX && graph_close(g, TERM_exit, NULL, 0, exit) ? OUT_GO : OUT_FAIL;
      } else if (o == OUT_RETURN) {
        o = rec_return_ask(r, l, r->ret);
        if (o == OUT_GO) o = close_loop_block(r, l, TERM_break, r->ret);
      } else if (o != OUT_FAIL && o != OUT_STUCK) {
        o = rec_stuck(r, REASON_loop_body, "the loop's body ends in another function");
      }
    }
    r->loop = l->outer;
  }
  NodeId node = 0;
  if (o == OUT_GO && !(node = graph_while(g, init.data, init.count, cond, body))) o = OUT_FAIL;
  if (o == OUT_GO) {
    g->nodes.data[node].exit = head_exit; /* polls */
    rec_restore(r, base);
    leaves.count = 0;
    for (u32 i = 0; i < l->types.count && o == OUT_GO; i++) o = rec_escape(r, node_result(g, node, i), l->free.data[i]);
    for (u32 i = 0; i < l->types.count && o == OUT_GO; i++) {
      Av a = av_num(r, node_result(g, node, i));
      if (!a || !vec_push(alloc, &leaves, a)) o = OUT_FAIL;
      else r->updated |= value_type(g, av_value(r, a))->rank > 0;
    }
    if (o == OUT_GO && !note_flags(r, l, &leaves)) o = OUT_FAIL;
    u32 next = 0;
    for (u32 i = 0; i < l->locs.count && o == OUT_GO; i++) {
      RecLoc *loc = &l->locs.data[i];
      *rec_loc_at(r, loc) = av_rebuild(r, loc->before, leaves.data, &next);
      if (loc->cell) r->cells.data[loc->index].dirty = true;
    }
    rec_top(r)->pc = e->end;
    *made = node;
    r->lifted_loops++;
    if (r->failed) o = OUT_FAIL;
  }
  if (stale) mem_free(alloc, stale, sizeof *stale * (base->nregs + 1));
  vec_free(alloc, &init);
  vec_free(alloc, &flags);
  vec_free(alloc, &leaves);
  vec_free(alloc, &sizes);
  return o;
}

/* Behind a loop that may have returned: the function returns too, or goes on. */
static Outcome return_behind(Recorder *r, const Scope *s, const RecLoop *l, NodeId loop) {
  ValueId flag;
  Av ret = rec_return_result(r, l, loop, &flag);
  const u32 pc[2] = {l->end, l->end};
  RecState base;
  if (!ret || !rec_save(r, &base)) return OUT_FAIL;
  RecMark start = rec_mark(r);
  Outcome o = branch_once(r, s, flag, pc, l->end, -1, &base, ret);
  if (o == OUT_STUCK && r->reason == REASON_branch_merge && !r->no_exits && !r->lacks && !r->widens && !r->noted_types) {
    rec_rollback(r, &start);
    rec_restore(r, &base);
    o = branch_once(r, s, flag, pc, l->end, 1, &base, ret);
  }
  rec_state_free(r, &base);
  return o;
}

enum { LIFT_TRIES = 14 };

static Outcome lift_loop(Recorder *r, const Scope *s, u32 extent, bool peeled) {
  const Extent *e = &rec_top(r)->code->proto->extents[extent];
  RecLoop l = {.depth = rec_depth(r), .extent = extent, .els = e->els, .end = e->end, .peeled = peeled};
  if (r->nest > 60) return rec_stuck(r, REASON_graph_size, "loops nested too deep");
  if (!MECHANISM(r->vm, loops_are_lifted)) return rec_stuck(r, REASON_loop_body, "a loop");
  Outcome o = collect_locs(r, &l, e);
  r->nest++;
  for (u32 try = 0; o == OUT_GO && try < LIFT_TRIES; try++) {
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
    o = rec_make_rows(r, &l);
    if (!l.ret.asked) l.sizes_before = r->g->sizes.nodes.count;
    if (o == OUT_GO && !rec_save(r, &inside)) o = OUT_FAIL;
    if (o == OUT_GO) o = lift_once(r, &l, e, &inside, &made);
    rec_state_free(r, &inside);
    r->safe_exit = safe;
    r->settled = settled;
    if (o == OUT_GO && l.ret.asked) o = return_behind(r, s, &l, made);
    if (o == OUT_STUCK) {
      bool more = (r->lacks == &l || r->widens == &l) && try + 1 < LIFT_TRIES, widens = r->widens == &l;
      r->widens = NULL;
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
        if (o == OUT_GO && !add_loc(r, &l, true, cell)) o = OUT_FAIL;
        continue;
      }
    }
    rec_state_free(r, &base);
    break;
  }
  r->nest--;
  vec_free(&r->vm->alloc, &l.locs);
  vec_free(&r->vm->alloc, &l.types);
  vec_free(&r->vm->alloc, &l.free);
  vec_free(&r->vm->alloc, &l.weak);
  return o;
}

Outcome rec_flow(Recorder *r, const Scope *s) {
  RecFrame *f = rec_top(r);
  const Proto *p = f->code->proto;
  u32 depth = rec_depth(r);
  if (r->loop && r->loop->depth == depth) {
    if (f->pc == r->loop->els) return OUT_NEXT;
    if (f->pc == r->loop->end) return OUT_LEAVE;
  }
  if (s->cond_exit != UINT32_MAX && depth == s->depth && f->pc == s->end) return OUT_END; /* the condition being recorded */
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
    Outcome packed = rec_rows_walk(r, f->regs[at], &seq);
    if (packed != OUT_GO) return packed;
    f->regs[at] = seq;
    u8 kind = av_at(r, seq)->kind;
    if (kind == AV_LIST || kind == AV_RECORD) {
      if (av_at(r, seq)->count > 2 * (u32)r->vm->tunables.unroll_trips)
        return rec_stuck(r, REASON_loop_sequence, "a loop over a list of %u items", av_at(r, seq)->count);
      return OUT_END;
    }
  }
  if (st && st->hopeless) {
    memcpy(r->why, st->why, sizeof r->why);
    r->reason = REASON_loop_body;
    r->why_span = p->spans[f->pc];
    return OUT_STUCK;
  }
  Outcome o = lift_loop(r, s, extent, st != NULL);
  if (o != OUT_STUCK) return o;
  if (r->lacks) return o; /* an outer loop has to carry more first */
  bool types = r->noted_types;
  r->noted_types = false;
  if (st) { /* the first trip was taken out already */
    if (types && r->reason != REASON_loop_list) r->reason = REASON_loop_types;
    return o;
  }
  if ((r->no_exits || r->reason == REASON_loop_list) && !types) return o; /* trip by trip, each trip would be another graph */
  RecStraight entry = {.depth = depth, .extent = extent, .peeled = true, .hopeless = !types};
  memcpy(entry.why, r->why, sizeof entry.why);
  if (!vec_push(&r->vm->alloc, &r->straight, entry)) return OUT_FAIL;
  return OUT_END;
}
