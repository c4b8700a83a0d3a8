/* record_carry.c — what a loop that is lifted carries from trip to trip: the variables that its extent writes, as
 * leaves.
 *
 * Leaves stand in RecLoop.types in the order of RecLoop.locs; behind them the flags of those that are weak on one
 * way only, then what rec_return_carry adds. The same order holds for the loop's first values, the parameters of
 * both its blocks, what its next and break give, and its results. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_inner.h"
#include "tracer/record/record_prior.h"
#include "tracer/record/record_return.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/record_weak.h"
#include "tracer/record/repr_stacked.h"
#include "tracer/record/repr_columns.h"
#include "tracer/record/repr_names.h"
#include "tracer/record/repr_option.h"

#include <string.h>


Av *rec_loc_at(Recorder *r, const RecLoc *l) {
  return l->cell ? &r->cells.data[l->index].value : &rec_top(r)->regs[l->index];
}

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

static u8 carries(const RecLoop *l, u32 leaf) { return leaf < l->weak.count ? l->weak.data[leaf] : (u8)CARRY_plain; }
static bool carries_flag(const RecLoop *l, u32 leaf) { return carries(l, leaf) == CARRY_flag; }

static u32 flag_index(const RecLoop *l, u32 leaf) {
  u32 n = 0;
  for (u32 i = 0; i < leaf; i++) n += carries_flag(l, i);
  return n;
}

static bool set_carry(Recorder *r, RecLoop *l, u32 leaf, u8 how) {
  while (l->weak.count <= leaf)
    if (!vec_push(&r->vm->alloc, &l->weak, CARRY_plain)) return false;
  l->weak.data[leaf] = how;
  return true;
}

static bool want_flag(Recorder *r, RecLoop *l, u32 leaf) { return set_carry(r, l, leaf, CARRY_flag); }

static ValueId as_strong(Recorder *r, ValueId v) {
  const ArrayType *t = value_type(r->g, v);
  Value c;
  if (!t->weak) return v;
  if (!value_const(r->g, v, &c)) return graph_convert(r->g, v, t->dtype);
  c.flags &= (u8)~VF_WEAK;
  return graph_const(r->g, c);
}

/* A number for a leaf that carries a flag: strong, and its flag. */
static bool with_flag(Recorder *r, ValueId *v, ValueVec *flags) {
  ValueId flag = rec_weak_flag(r, *v);
  if (!flag) flag = graph_const(r->g, value_bool(value_type(r->g, *v)->weak));
  *v = as_strong(r, *v);
  return *v && flag && vec_push(&r->vm->alloc, flags, flag);
}

/* ---- numbers that are weak in the first trip alone -------------------------------------------------------------- */

/* Has a loop that was not recorded yet a first trip for certain, and does its position tell which one it is? */
static bool first_trip_told(Recorder *r, const RecLoop *l) {
  const RecFrame *f = rec_top(r);
  const Proto *p = f->code->proto;
  const Extent *e = &p->extents[l->extent];
  i64 k, hint;
  Dim n;
  if (e->kind != EXT_FOR || l->peeled || r->abstract || r->no_exits) return false;
  u32 a = ins_a(p->code[e->head]);
  if (!av_known_int(r, f->regs[a + 1], &k) || k != 0) return false;
  if (av_known_int(r, f->regs[a + 2], &k)) return k > 0;
  ValueId count = av_value(r, f->regs[a + 2]);
  if (!count || !value_dim(r->g, count, &n) || n == DIM_NONE || size_is_unbacked(&r->g->sizes, n) ||
      !size_hint(&r->g->sizes, n, &hint) || hint < 1)
    return false;
  return guard_relation(&r->g->guards, &r->g->sizes, REL_le, 1, n, "trips of a loop", p->spans[e->head]);
}

/* A weak number, or one that is weak in the first trip of a loop around this one, for the leaf `at`. */
static Outcome first_value(Recorder *r, RecLoop *l, u32 at, ValueId *v) {
  const ArrayType *t = value_type(r->g, *v);
  ValueId flag = rec_weak_flag(r, *v);
  u8 how = carries(l, at);
  while (l->was.count <= at)
    if (!vec_push(&r->vm->alloc, &l->was, 0)) return OUT_FAIL;
  l->was.data[at] = 0;
  /* another leaf stood here */
  if (how == CARRY_first && (t->rank || (!t->weak && !flag))) l->weak.data[at] = CARRY_plain;
  if (carries(l, at) != CARRY_first && !(flag && how == CARRY_plain)) return OUT_GO;
  if (!first_trip_told(r, l)) return how != CARRY_first || set_carry(r, l, at, CARRY_not_first) ? OUT_GO : OUT_FAIL;
  l->was.data[at] = flag;
  return set_carry(r, l, at, CARRY_first) && (*v = as_strong(r, *v)) != 0 ? OUT_GO : OUT_FAIL;
}

/* The parameters of the body: whether they are weak. */
static bool note_first(Recorder *r, RecLoop *l, const AvVec *leaves, ValueId position) {
  for (u32 i = 0; i < l->weak.count && i < l->was.count; i++)
    if (l->weak.data[i] == CARRY_first &&
        (!position || !rec_weak_first(r, l, av_value(r, leaves->data[i]), position, l->was.data[i])))
      return false;
  return true;
}

/* Which of `values`, the leaves and what follows them, are weak on one way only. */
static bool note_flags(Recorder *r, const RecLoop *l, const AvVec *values) {
  for (u32 i = 0, n = 0; i < l->weak.count; i++)
    if (carries_flag(l, i) &&
        !rec_weak_note(r, av_value(r, values->data[i]), av_value(r, values->data[l->flag_at + n++])))
      return false;
  return true;
}

/* A strong number becomes a weak one of its dtype, or a weak one a strong one. Where the region is the loop, which
 * then makes a trip, that goes before it and settles this; elsewhere there may be none. */
static bool changes_weakness(const Recorder *r, const RecLoop *l, TypeId before, TypeId now) {
  const ArrayType *a = type_of(r->g, before), *b = type_of(r->g, now);
  bool trips = r->stop_after_loop && !l->depth && l->extent == r->root_extent;
  return !a->rank && !b->rank && a->dtype == b->dtype && a->weak != b->weak && (b->weak || !trips) && !r->abstract;
}

/* Where the loop has rows and a short list or text took their place: into the columns of the head. */
static Outcome back_in_rows(Recorder *r, const RecLoop *l, const RecLoc *loc, Av *now) {
  bool inside = false;
  const Repr *p = loc->before ? av_repr(r, loc->before) : NULL;
  for (u32 i = 0; i < l->inner_count; i++)
    inside |= l->inner[i].rows == 1 && l->inner[i].cell == loc->cell && l->inner[i].index == loc->index;
  if (!p || !*now || !p->take_back || (av_has(r, loc->before, IS_TREE) && !inside)) return OUT_GO;
  if (!(*now = av_force(r, *now))) return OUT_FAIL;
  if (!inside && av_repr(r, *now) == p) return OUT_GO;
  AvVec leaves = {0};
  u32 next = 0;
  Outcome o = OUT_GO;
  for (u32 k = 0; k < loc->count && o == OUT_GO; k++)
    if (!vec_push(&r->vm->alloc, &leaves, av_num(r, r->g->blocks.data[l->body].params.data[loc->first + k])))
      o = OUT_FAIL;
  Av head = o == OUT_GO ? carry_rebuild(r, loc->before, leaves.data, &next) : 0;
  vec_free(&r->vm->alloc, &leaves);
  if (!head) return OUT_FAIL;
  o = p->take_back(r, head, false, now);
  return o == OUT_STUCK ? OUT_GO : o; /* said below */
}

/* What a loop that returns carries out of it in registers, which nobody reads any more: numbers as they were at the
 * head; arrays as they are now, so that none that was updated since has to be kept as it was. */
static Outcome values_left(Recorder *r, const RecLoop *l, const RecLoc *loc, AvVec *leaves, ValueVec *flags,
                           ValueVec *out) {
  Av now = *rec_loc_at(r, loc);
  leaves->count = 0;
  if (now && carry_same(r, loc->before, now) && !carry_leaves(r, now, leaves)) return OUT_FAIL;
  for (u32 i = 0; i < loc->count; i++) {
    const u32 *params = r->g->blocks.data[l->body].params.data;
    u32 k = loc->first + i;
    ValueId v = leaves->count == loc->count ? av_value(r, leaves->data[i]) : 0;
    if (!v || r->g->values.data[v].type != l->types.data[k] || !type_of(r->g, l->types.data[k])->rank) v = params[k];
    if (!vec_push(&r->vm->alloc, out, v)) return OUT_FAIL;
    if (carries_flag(l, k) && !vec_push(&r->vm->alloc, flags, params[l->flag_at + flag_index(l, k)])) return OUT_FAIL;
  }
  return OUT_GO;
}

/* The carried leaves as they are now, in order; false: a tree or type is another one than at the head. `returning`:
 * nobody reads the registers any more. */
static Outcome carried_values(Recorder *r, RecLoop *l, bool returning, ValueVec *out) {
  AvVec leaves = {0};
  ValueVec flags = {0};
  Outcome o = OUT_GO;
  bool again = false;
  for (u32 i = 0; i < l->locs.count && o == OUT_GO; i++) {
    RecLoc *loc = &l->locs.data[i];
    if (returning && !loc->cell) {
      o = values_left(r, l, loc, &leaves, &flags, out);
      continue;
    }
    Av now = *rec_loc_at(r, loc);
    leaves.count = 0;
    if ((o = back_in_rows(r, l, loc, &now)) != OUT_GO || (o = rec_into_option(r, loc->before, &now)) != OUT_GO) break;
    Av open = loc->before;
    bool alike = carry_same(r, open, now), texts = !alike && rec_names_meet(r, &open, &now);
    if (texts && !(alike = carry_same(r, loc->before, open)) && rec_want_names(r, l, loc)) {
      o = rec_stuck(r, REASON_loop_types, "a text of the loop changes");
      break;
    }
    if (!alike) {
      if (rec_want_option(r, l, loc, now)) {
        o = rec_stuck(r, REASON_loop_types, "a variable of the loop is nil on one way only");
        break;
      }
      if (rec_want_rows(r, l, loc, av_force(r, now)) || rec_want_inner(r, l, loc, now)) {
        o = rec_stuck(r, REASON_loop_list, "a list whose items are not numbers of one kind");
        break;
      }
      bool lists = strcmp(av_kind_text(r, loc->before), "list") == 0 && strcmp(av_kind_text(r, now), "list") == 0;
      /* one from outside has another length at every entry */
      r->noted_types = !lists || !av_at(r, av_force(r, loc->before))->source;
      o = lists ? rec_stuck(r, REASON_loop_list,
                            "a list of the loop changes its length, and does not hold numbers of one kind")
                : rec_stuck(r, REASON_loop_types, "a variable of the loop changes from %s to %s",
                            av_kind_text(r, loc->before), av_kind_text(r, now));
      break;
    }
    if (!carry_leaves(r, now, &leaves) || leaves.count != loc->count) {
      o = OUT_FAIL;
      break;
    }
    for (u32 k_leaf = 0; k_leaf < leaves.count; k_leaf++) {
      ValueId v = av_value(r, leaves.data[k_leaf]);
      TypeId want = l->types.data[loc->first + k_leaf], have = r->g->values.data[v].type;
      const ArrayType *was = type_of(r->g, want), *is = type_of(r->g, have);
      u8 how = carries(l, loc->first + k_leaf);
      bool weak = rec_weak_flag(r, v) || is->weak;
      if (how == CARRY_first ? weak && !is->rank : how == CARRY_plain && was->weak && !weak && !is->rank &&
          was->dtype == is->dtype && !l->peeled) {
        again = true; /* with what the others turn out to be */
        if (!set_carry(r, l, loc->first + k_leaf, how == CARRY_first ? CARRY_not_first : CARRY_first)) o = OUT_FAIL;
        have = want;
      } else if (carries_flag(l, loc->first + k_leaf)) {
        if (type_of(r->g, have)->rank == 0 && !with_flag(r, &v, &flags)) o = OUT_FAIL;
        have = r->g->values.data[v].type;
      } else if (rec_weak_flag(r, v) || changes_weakness(r, l, want, have)) {
        r->widens = l;
        o = want_flag(r, l, loc->first + k_leaf) ? rec_stuck(r, REASON_loop_types,
                                                             "a number of the loop is weak on one way only") : OUT_FAIL;
      }
      if (o != OUT_GO) break;
      if (want != have) {
        const ArrayType *w = type_of(r->g, want), *h = type_of(r->g, have);
        bool same = w->dtype == h->dtype && w->weak == h->weak && w->rank == h->rank && w->device == h->device,
            fits = same;
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
                        "a variable of the loop changes from %s%s%s to %s%s%s", w->weak ? "weak " : "",
                        dtype_name(w->dtype), w->rank ? a : "", h->weak ? "weak " : "", dtype_name(h->dtype),
                        h->rank ? b : "");
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
  if (o == OUT_GO && again) {
    r->widens = l;
    o = rec_stuck(r, REASON_loop_types, "a number of the loop is weak in its first trip alone");
  }
  return o;
}

/* May a variable hold a literal when the trip ends? */
static bool set_plainly(const RecFrame *f, const RecLoop *l, u32 reg) {
  const Proto *p = f->code->proto;
  for (u32 pc = f->pc; pc < l->els; pc++) {
    u32 op = ins_op(p->code[pc]);
    if ((op == BC_loadk || op == BC_move) && ins_a(p->code[pc]) == reg) return true;
  }
  return false;
}

/* In the midst of a body's first recording: numbers that are strong by now, and at the end too by all appearances,
 * are found weak in the first trip alone before the rest is recorded for nothing. */
Outcome rec_look_ahead(Recorder *r, RecLoop *l) {
  const RecFrame *f = rec_top(r);
  bool again = false;
  if (l->peeled || r->g->at != l->body) return OUT_GO;
  for (u32 i = 0; i < l->locs.count; i++) {
    const RecLoc *loc = &l->locs.data[i];
    if (loc->cell || loc->count != 1 || carries(l, loc->first) != CARRY_plain) continue;
    const Av now = f->regs[loc->index];
    const ValueId v = now && av_is_value(r, now) ? av_at(r, now)->value : 0;
    const ArrayType *was = type_of(r->g, l->types.data[loc->first]), *is = v ? value_type(r->g, v) : was;
    if (!was->weak || is->weak || is->rank || was->dtype != is->dtype || rec_weak_flag(r, v) ||
        set_plainly(f, l, loc->index))
      continue;
    if (!set_carry(r, l, loc->first, CARRY_first)) return OUT_FAIL;
    again = true;
  }
  if (!again) return OUT_GO;
  r->widens = l;
  return rec_stuck(r, REASON_loop_types, "a number of the loop is weak in its first trip alone");
}

Outcome rec_want_test_inside(Recorder *r, RecLoop *l) {
  l->test_inside = true;
  r->widens = l;
  return rec_stuck(r, REASON_loop_body, "the loop's condition writes or leaves the loop");
}

Outcome rec_close_loop_block(Recorder *r, RecLoop *l, TermKind term, Av ret) {
  ValueVec values = {0};
  if (!l->body) return rec_want_test_inside(r, l);
  l->endless &= term == TERM_next || ret;
  Outcome o = term == TERM_next ? rec_stack_trim(r, l) : OUT_GO;
  if (o == OUT_GO) o = carried_values(r, l, ret != 0, &values);
  if (o == OUT_GO) o = rec_return_values(r, l, ret, &values);
  if (o == OUT_GO && !graph_close(r->g, term, values.data, values.count, 0)) o = OUT_FAIL;
  vec_free(&r->vm->alloc, &values);
  return o;
}

bool rec_add_loc(Recorder *r, RecLoop *l, bool cell, u32 index) {
  for (u32 i = 0; i < l->locs.count; i++)
    if (l->locs.data[i].cell == cell && l->locs.data[i].index == index) return true;
  RecLoc loc = {.cell = cell, .index = index};
  const AbsVal *v = av_at(r, *rec_loc_at(r, &loc));
  loc.entered = (u16)(v->kind << 8 | v->konst.kind);
  return vec_push(&r->vm->alloc, &l->locs, loc);
}

/* A loop entered in its midst: its position came from a register, and is never negative. */
static bool pin_position(Recorder *r, Av position, Span because) {
  Av a = av_force(r, position);
  ValueId v = a ? av_value(r, a) : 0;
  Dim d;
  i64 hint;
  if (!v || !value_dim(r->g, v, &d) || d == DIM_NONE || size_is_unbacked(&r->g->sizes, d) ||
      !size_hint(&r->g->sizes, d, &hint) || hint < 0)
    return a != 0;
  return guard_relation(&r->g->guards, &r->g->sizes, REL_le, 0, d, "position of a loop", because);
}

Outcome rec_collect_locs(Recorder *r, RecLoop *l, const Extent *e) {
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
      ok = rec_add_loc(r, l, true, cell);
    } else if (e->kind == EXT_FOR && (w == ins_a(p->code[e->head]) || w == ins_a(p->code[e->head]) + 2)) {
      continue; /* the sequence and its count stay until the loop is over */
    } else if (live[w / 64] >> (w % 64) & 1 && f->regs[w]) {
      ok = rec_add_loc(r, l, false, w);
    }
  }
  if (ok && e->kind == EXT_FOR) {
    u32 at = ins_a(p->code[e->head]) + 1;
    ok = rec_add_loc(r, l, false, at) && pin_position(r, f->regs[at], p->spans[e->head]);
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
    if ((fresh[d] = size_unbacked(&g->sizes, NULL, 0, 0, SIZE_LIMIT - 1)) == DIM_NONE ||
        !vec_push(&r->vm->alloc, sizes, fresh[d]))
      return 0;
    t.dims[d] = fresh[d];
  }
  ValueId p = graph_param(g, b, l->free.data[i] ? graph_type(g, &t) : l->types.data[i]);
  for (u32 d = 0; p && d < t.rank; d++)
    if (fresh[d]) rec_carry(r, fresh[d], p, d);
  return p;
}

bool rec_place_params(Recorder *r, RecLoop *l, BlockId b, u32 position, Dim bound, DimVec *sizes) {
  AvVec leaves = {0};
  bool ok = true;
  for (u32 i = 0; i < l->types.count && ok; i++) {
    Av a = av_num(r, leaf_param(r, l, b, i, sizes));
    ok = a && vec_push(&r->vm->alloc, &leaves, a);
  }
  u32 next = 0;
  ValueId at = 0;
  for (u32 i = 0; i < l->locs.count && ok; i++) {
    RecLoc *loc = &l->locs.data[i];
    Av a = carry_rebuild(r, loc->before, leaves.data, &next);
    *rec_loc_at(r, loc) = loc->head = a;
    if (a && !loc->cell && loc->index == position) at = av_value(r, a);
    if (a && !loc->cell && loc->index == position)
      ok = vec_push(&r->vm->alloc, &r->positions, (RecPosition){av_value(r, a), bound});
    if (loc->cell) r->cells.data[loc->index].dirty = true; /* an exit inside the loop writes it back */
    ok &= a || !loc->before;
  }
  ok = ok && note_flags(r, l, &leaves) && (b != l->body || note_first(r, l, &leaves, at));
  vec_free(&r->vm->alloc, &leaves);
  return ok;
}

/* The next leaf of a loop that is tried for the first time at this place. */
static Outcome carry_as_before(Recorder *r, RecLoop *l, ValueId v) {
  const ArrayType *t = value_type(r->g, v);
  u32 at = l->types.count;
  u8 entry = (u8)(t->dtype << 2 | (t->rank > 0) << 1 | (t->weak || rec_weak_flag(r, v))),
      how = rec_prior_leaf(l, at, entry);
  if (!vec_push(&r->vm->alloc, &l->entry, entry)) return OUT_FAIL;
  return how == CARRY_plain || set_carry(r, l, at, how) ? OUT_GO : OUT_FAIL;
}

Outcome rec_carry_in(Recorder *r, RecLoop *l, ValueVec *init) {
  Graph *g = r->g;
  bool first_time = !l->entry.count;
  Allocator *alloc = &r->vm->alloc;
  ValueVec flags = {0};
  AvVec leaves = {0};
  Outcome o = OUT_GO;
  l->types.count = 0;
  for (u32 i = 0; i < l->locs.count && o == OUT_GO; i++) {
    RecLoc *loc = &l->locs.data[i];
    leaves.count = 0;
    loc->before = *rec_loc_at(r, loc);
    /* a tree of records: its sources alone take long */
    const u32 many = 2 * (u32)r->vm->tunables.loop_values;
    if (av_parts(r, loc->before, many) == many) {
      if (!loc->rows && rec_lists_suit(r, loc->before)) {
        loc->kind_known = false;
        r->lacks = l;
        r->lacks_rows = loc;
      }
      o = rec_stuck(r, REASON_graph_size, "a loop with many variables");
      break;
    }
    if (loc->before && !(av_is_lazy(r, loc->before) && av_at(r, loc->before)->konst.kind == V_TEXT))
      loc->before = av_force(r, loc->before);
    if (!carry_leaves(r, loc->before, &leaves)) o = OUT_FAIL;
    loc->first = l->types.count;
    loc->count = leaves.count;
    for (u32 k = 0; k < leaves.count && o == OUT_GO; k++) {
      ValueId v = av_value(r, leaves.data[k]), flag;
      if (first_time) o = carry_as_before(r, l, v);
      if (o != OUT_GO || (o = first_value(r, l, l->types.count, &v)) != OUT_GO) break;
      flag = carries(l, l->types.count) == CARRY_first ? 0 : rec_weak_flag(r, v);
      if (flag && carries(l, l->types.count) != CARRY_flag && rec_weak_peel(r, flag)) {
        o = rec_stuck(r, REASON_loop_types, "a number is weak in the first trip alone");
        break;
      }
      if (flag && !want_flag(r, l, l->types.count)) o = OUT_FAIL;
      /* another leaf stood here */
      if (carries_flag(l, l->types.count) && value_type(g, v)->rank) l->weak.data[l->types.count] = 0;
      if (carries_flag(l, l->types.count) && !with_flag(r, &v, &flags)) o = OUT_FAIL;
      if (!vec_push(alloc, init, v) || !vec_push(alloc, &l->types, g->values.data[v].type)) o = OUT_FAIL;
    }
  }
  l->flag_at = l->types.count;
  if (l->weak.count > l->flag_at) l->weak.count = l->flag_at;
  for (u32 i = 0; i < flags.count && o == OUT_GO; i++)
    if (!vec_push(alloc, init, flags.data[i]) || !vec_push(alloc, &l->types, g->values.data[flags.data[i]].type))
      o = OUT_FAIL;
  if (o == OUT_GO && l->ret.asked) o = rec_return_carry(r, l, init);
  while (o == OUT_GO && l->free.count < l->types.count)
    if (!vec_push(alloc, &l->free, 0)) o = OUT_FAIL;
  if (o == OUT_GO && l->types.count > (u32)r->vm->tunables.loop_values)
    o = rec_over(r, loop_values, REASON_graph_size, "a loop");
  vec_free(alloc, &leaves);
  vec_free(alloc, &flags);
  return o;
}

Outcome rec_carry_out(Recorder *r, RecLoop *l, NodeId loop) {
  AvVec leaves = {0};
  Outcome o = OUT_GO;
  for (u32 i = 0; i < l->types.count && o == OUT_GO; i++)
    o = rec_escape(r, node_result(r->g, loop, i), l->free.data[i]);
  for (u32 i = 0; i < l->types.count && o == OUT_GO; i++) {
    Av a = av_num(r, node_result(r->g, loop, i));
    if (!a || !vec_push(&r->vm->alloc, &leaves, a)) o = OUT_FAIL;
    else r->updated |= value_type(r->g, av_value(r, a))->rank > 0;
  }
  if (o == OUT_GO && !note_flags(r, l, &leaves)) o = OUT_FAIL;
  u32 next = 0;
  for (u32 i = 0; i < l->locs.count && o == OUT_GO; i++) {
    RecLoc *loc = &l->locs.data[i];
    *rec_loc_at(r, loc) = carry_rebuild(r, loc->before, leaves.data, &next);
    if (loc->cell) r->cells.data[loc->index].dirty = true;
  }
  vec_free(&r->vm->alloc, &leaves);
  return o;
}
