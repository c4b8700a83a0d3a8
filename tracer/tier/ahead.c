/* ahead.c — code that works on large arrays, and that runs for the first time: is it to be compiled before it does?
 *
 * The interpreter tells of each large_units * 1024 elements that its operations made (TierHooks.large). What follows
 * in the frame may then be a region that begins at the next instruction, wherever that is, the body of a module
 * included. Nothing is measured: what compiling saves is told in two steps,
 *   by the bytecode   operations up to the first output, those of functions that are called and of loops among them,
 *                     times the elements of the largest array at hand, and items of the range that map is about to
 *                     walk: worth a recording?
 *   by the graph      its operations, by the elements of each and the trips of the loops around them: worth compiling?
 * What stands in loops and functions that were compiled before counts for nothing. Either must be twice of what
 * compiling takes. What was recorded for nothing may come to little of the program's time. */
#include "lang/mechanisms.h"
#include "tracer/tier/ahead.h"
#include "tracer/tier/places.h"
#include "tracer/tier/sample.h"

/* More trips, or nanoseconds, decide nothing. */
enum { TRIPS_MOST = 1 << 20, GAIN_MOST = 1 << 30 };

static u64 least(u64 a, u64 b) { return a < b ? a : b; }

/* Nanoseconds that compiled code saves on so many elements. */
static u64 saved(const Tunables *tun, u64 elements) {
  u64 each = (u64)tun->large_save_ps;
  return elements && each > (u64)GAIN_MOST * PS_PER_NS / elements ? GAIN_MOST : elements * each / PS_PER_NS;
}

static bool ahead_is_compiled(const Place *p) { return p && p->cache.entries.count && !p->eager; }

static bool loop_is_compiled(const Tracer *t, const Code *code, u32 head) {
  return ahead_is_compiled(place_find(&t->places, code, head, RECORD_LOOP)) && MECHANISM(t->vm, large_at_once);
}

/* ---- by the bytecode -------------------------------------------------------------------------------------- */

typedef struct Scan {
  const Tracer *t;
  u64 elements; /* of the largest array */
  u64 ops;      /* that stand there */
  u64 work;     /* the same by the trips of the loops around them */
  u32 left;     /* instructions that may be looked at */
} Scan;

static void meet(Scan *s, Value v) {
  if (v.kind == V_ARRAY && array_device(v.array) == DEV_CPU && (u64)v.array->size > s->elements)
    s->elements = (u64)v.array->size;
}

/* Trips of a loop from here on: of one that the frame stands in those that are left. */
static u64 trips_of(const Tunables *tun, const Proto *p, const Extent *x, const Frame *f) {
  Ins ins = p->code[x->head];
  if (!f || x->kind != EXT_FOR || x->begin >= f->pc || ins_op(ins) != BC_fornext) return (u64)tun->large_trips;
  u64 at = f->base[ins_a(ins) + 1].u, count = f->base[ins_a(ins) + 2].u;
  return count > at ? least(count - at, TRIPS_MOST) : 1;
}

/* The product of what the loops around pc say, and the pc from which on there are other loops or conditions around.
 * In loops that are compiled nothing is left to do. */
static u64 weight_at(const Scan *s, const Code *code, u32 pc, const Frame *f, u32 *until, bool *certain) {
  const Proto *p = code->proto;
  u64 weight = 1;
  *until = p->ncode;
  *certain = true;
  for (u32 i = 1; i < p->nextents; i++) {
    const Extent *x = &p->extents[i];
    if (x->begin > pc && x->begin < *until) *until = x->begin;
    if (x->begin > pc || x->end <= pc) continue;
    if (x->end < *until) *until = x->end;
    if (is_loop(x) && loop_is_compiled(s->t, code, x->head)) weight = 0;
    else if (is_loop(x))
      weight = least(weight * trips_of(&s->t->vm->tunables, p, x, f), TRIPS_MOST);
    else if (x->kind != EXT_IF || !f || x->begin >= f->pc) *certain = false;
  }
  return weight;
}

static bool does_io(Value v) {
  return v.kind == V_FN && v.fn->kind == FN_BUILTIN && op_acts(v.fn->op);
}

/* False: the graph would end there. */
static bool scan(Scan *s, const Code *code, const Frame *f, u32 pc, u64 around, u32 depth) {
  const Proto *p = code->proto;
  u32 until = pc, ends = UINT32_MAX;
  u64 weight = 1;
  bool certain = true;
  for (; pc < p->ncode && s->left; pc++, s->left--) {
    Ins ins = p->code[pc];
    u32 op = ins_op(ins);
    if (pc >= until) weight = least(around * weight_at(s, code, pc, f, &until, &certain), TRIPS_MOST);
    switch (op) {
      case BC_getmod: {
        Value v = code->module->slots[ins_x(ins)].value;
        meet(s, v);
        if (does_io(v) && certain) ends = ins_a(ins);
        if (v.kind == V_FN && v.fn->kind == FN_CLOSURE && depth < s->t->vm->tunables.large_calls &&
            !scan(s, v.fn->code, NULL, 0, weight, depth + 1))
          return false;
        break;
      }
      case BC_call:
      case BC_callx:
        if (ins_b(ins) == ends) return false;
        break;
      case BC_import: return false;
      default: break;
    }
    if ((op < BC_add || op > BC_bnot || op == BC_in) && op != BC_call && op != BC_callx && op != BC_tail &&
        op != BC_tailx)
      continue;
    s->ops++;
    s->work += weight;
  }
  return true;
}

AheadSum ahead_look(const Tracer *t, const Frame *f) {
  const Tunables *tun = &t->vm->tunables;
  Scan s = {.t = t, .left = (u32)tun->large_scan};
  for (u32 i = 0; i < f->code->proto->nregs; i++) meet(&s, f->base[i]);
  (void)scan(&s, f->code, f, f->pc, 1, 0);
  u64 items = least(vm_maps(f->base, f->code->proto->code[f->pc]), GAIN_MOST),
      gain = saved(tun, s.elements) * least(s.work, GAIN_MOST) + items * (u64)tun->map_item_ns;
  return (AheadSum){.gain = least(gain, GAIN_MOST) / (u64)tun->large_sure, .ops = s.ops,
                    .elements = s.elements > items ? s.elements : items};
}

/* Recordings for nothing are not to slow a program down that gains nothing from any. What did not pay from one
 * instruction on does not pay from a later one either, up to where its graph ended, but on larger arrays. */
bool ahead_affords(const Tracer *t, const Frame *f, u64 elements) {
  const Tunables *tun = &t->vm->tunables;
  for (u32 i = 0; i < LARGE_REFUSED; i++) {
    const LargeRefused *r = &t->large_refused[i];
    bool here = r->code == f->code->id && r->from <= f->pc && f->pc < r->until;
    if (here && elements <= (u64)tun->large_again * r->elements) return false;
  }
  return tun->large_units < 0 ||
         t->large_lost_ns <= (u64)tun->large_lost_ns + percent_of(tracer_now(t) - t->began, tun->large_lost_percent);
}

void ahead_refuse(Tracer *t, const Place *p, u64 elements) {
  u32 until = t->large_until > p->pc ? t->large_until : p->pc + (u32)t->vm->tunables.large_failed;
  t->large_refused[t->large_next++ % LARGE_REFUSED] = (LargeRefused){.code = p->code->id, .from = p->pc, .until = until,
                                                                     .elements = elements};
}

/* ---- by the graph ------------------------------------------------------------------------------------------- */

typedef struct Gain {
  const Tracer *t;
  const Graph *g;
  u64 usual; /* elements of what nobody knows the size of */
} Gain;

static u64 elements_of(const Gain *x, ValueId v) {
  const ArrayType *type = value_type(x->g, v);
  u64 n = 1;
  for (u32 d = 0; type && d < type->rank; d++) {
    i64 size;
    if (!size_hint(&x->g->sizes, type->dims[d], &size)) return x->usual;
    n = size > 0 ? least(n * least((u64)size, GAIN_MOST), GAIN_MOST) : 0;
  }
  return n;
}

/* Is each axis that an update names indexed by a number? Then it writes as many elements as its value has. */
static bool writes_value(const Graph *g, NodeId id) {
  const GraphNode *n = graph_node_at(g, id);
  for (u32 i = 0; i < n->attr_count; i++) {
    const GraphAttr *a = node_attr(g, id, i);
    for (u32 k = 0; a->kind == ATTR_index && k < a->count; k++)
      if (a->items[k].kind != INDEX_int) return false;
  }
  return true;
}

static u64 op_gain(const Gain *x, NodeId id) {
  const GraphNode *n = graph_node_at(x->g, id);
  const Tunables *tun = &x->t->vm->tunables;
  u64 made = 0, read = 0;
  u32 family = n->kind == NODE_op && n->op != OP_none ? op_info(n->op)->family : FAM_index;
  bool writes = n->kind == NODE_update && writes_value(x->g, id);
  if (writes) made = elements_of(x, node_operand(x->g, id, n->operand_count - 1u));
  for (u32 i = 0; i < n->result_count && !writes; i++)
    if (!value_is_token(x->g, node_result(x->g, id, i))) made += elements_of(x, node_result(x->g, id, i));
  for (u32 i = 0; i < n->operand_count && family == FAM_reduce; i++) read += elements_of(x, node_operand(x->g, id, i));
  if (made <= 1 && read <= 1) return (u64)tun->scalar_op_ns;
  switch (family) {
    case FAM_elementwise:
    case FAM_reduce: return saved(tun, made + read);
    case FAM_index:
    case FAM_make: return saved(tun, made) / 2;
    default: return (u64)tun->array_op_ns;
  }
}

/* Of a loop that counts the last comparison of its condition says how far. */
static u64 while_trips(const Gain *x, BlockId cond) {
  const Graph *g = x->g;
  for (NodeId id = g->blocks.data[cond].last; id; id = graph_node_at(g, id)->prev) {
    const GraphNode *n = graph_node_at(g, id);
    i64 trips;
    if (n->kind != NODE_op || n->op != OP_less) continue;
    const GraphValue *v = &g->values.data[node_operand(g, id, 1)];
    if (v->origin == GV_size && size_hint(&g->sizes, v->dim, &trips))
      return trips > 1 ? least((u64)trips, TRIPS_MOST) : 1;
    if (v->origin == GV_const && (i64)v->bits > 0) return least(v->bits, TRIPS_MOST);
  }
  return (u64)x->t->vm->tunables.large_trips;
}

static u64 block_gain(const Gain *x, BlockId b) {
  u64 sum = 0;
  for (NodeId id = x->g->blocks.data[b].first; id; id = graph_node_at(x->g, id)->next) {
    const GraphNode *n = graph_node_at(x->g, id);
    u64 trips = 1, each = 0;
    i64 length;
    switch (n->kind) {
      case NODE_op:
      case NODE_index:
      case NODE_update: each = op_gain(x, id); break;
      case NODE_while: trips = while_trips(x, n->sub[0]); break;
      case NODE_scan:
        trips = size_hint(&x->g->sizes, n->length, &length) && length > 0 ? least((u64)length, TRIPS_MOST)
                                                                       : (u64)x->t->vm->tunables.large_trips;
        break;
      default: break;
    }
    const GraphOrigin *o = &x->g->origins.data[n->origin];
    if (n->kind == NODE_while && loop_is_compiled(x->t, x->g->frames.data[o->frame].code, o->pc)) continue;
    if (n->kind == NODE_while || n->kind == NODE_scan) each = (u64)x->t->vm->tunables.map_item_ns;
    for (u32 k = 0; k < COUNT_OF(n->sub); k++)
      if (n->sub[k]) each += block_gain(x, n->sub[k]);
    sum = least(sum + least(each, GAIN_MOST) * trips, GAIN_MOST);
  }
  return sum;
}

/* Where the graph leaves its own frame. */
static u32 ends_at(const Graph *g) {
  u32 end = g->frames.data[0].code ? g->frames.data[0].code->proto->ncode : 0;
  for (u32 i = 0; i < g->exits.exits.count; i++) {
    const Exit *e = &g->exits.exits.data[i];
    if (e->kind == EXIT_break && e->frame_count && g->exits.frames.data[e->frame_first].pc < end)
      end = g->exits.frames.data[e->frame_first].pc;
  }
  return end;
}

u64 ahead_gain(Tracer *t, const Graph *g) {
  t->large_until = ends_at(g);
  Gain x = {.t = t, .g = g};
  for (u32 i = 0; i < g->inputs.count; i++) {
    ValueId v = g->inputs.data[i].value;
    u64 n = value_is_token(g, v) ? 0 : elements_of(&x, v);
    if (n / 2 > x.usual) x.usual = n / 2;
  }
  return block_gain(&x, 1) / (u64)t->vm->tunables.large_sure;
}
