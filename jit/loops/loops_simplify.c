/* loops_simplify.c — loop IR to loop IR, before scalar code: folding, common values, invariants out of loops, dead
 * code.
 *
 * One pass over the body builds a new function. Each operation is folded or replaced where an identity of its type
 * is exact; else looked up among the values that are visible; else placed as far out as its operands allow: every
 * pure operation is total, so it may run where it would not have. Loads are shared when nothing was stored between
 * them and never moved. Then what nothing needs is dropped (loops_dead.c). Bits are preserved; the pass ends because
 * it reads the body once. Where a trip loads what the one before stored or loaded (loops_forward.c), a second pass
 * has the loop carry it. */
#include "jit/loops/loops_forward.h"

#include <string.h>

typedef struct Place { /* where a value of the new function stands */
  u32 block;  /* serial number of its block */
  u32 depth;  /* number of open loops there */
} Place;

typedef struct Frame { /* an open head of the old function */
  u32 head;   /* in the new function */
  u32 block;  /* of the body or arm being read */
  u32 outer;  /* block that the head stands in */
  /* link: the entry that new invariants of this loop go behind; in an arm of an `if`, what is ready when it begins */
  u32 before;
  u32 joins_at; /* old position of the yield behind which the next `if` goes on in here, and of the END; 0: none */
  u32 joins_end;
  const Forward *forward; /* of a loop: the first of what it carries besides, */
  u32 forwards;           /* so many; 0 once its `next` is written */
  bool loop;
  bool otherwise; /* the second arm of an `if` is being read */
} Frame;

typedef struct Link {
  u32 node;
  u32 next; /* link; 0 ends */
} Link;

typedef struct Entry { /* of the table of known values */
  LoopNode key;
  u32 epoch; /* loads: memory's version */
  u32 id;
} Entry;

typedef struct Pass {
  const LoopFn *old;
  LoopFn *fn;
  Allocator *alloc;
  u32 *map;       /* old node to new */
  u32 *uses;      /* per old node: how often it is read */
  VEC(Place) place; /* per new node */
  VEC(Link) links;  /* the new body; link 0 is its head */
  u32 last;         /* link: end of what is written */
  VEC(Frame) frames;
  VEC(u8) closed;   /* per block: its names are gone */
  VEC(u32) loops;   /* indices into frames of the open loops */
  Entry *table;
  u32 table_size;
  u32 epoch;
  Forward forwards[FORWARDS];
  u32 forward_count;
  bool failed;
} Pass;

/* ---- storage ------------------------------------------------------------------------------- */

static void refuse(Pass *p) { p->failed = true; }

static u32 new_node(Pass *p, LoopNode n, Place at) {
  if (p->failed) return 0;
  if (!toil(p->old->module->toil, 1) || !vec_push(p->alloc, &p->fn->nodes, n) || !vec_push(p->alloc, &p->place, at))
    return refuse(p), 0;
  return p->fn->nodes.count - 1;
}

static u32 current_block(const Pass *p) { return p->frames.count ? p->frames.data[p->frames.count - 1].block : 0; }
static Place here(const Pass *p) { return (Place){current_block(p), p->loops.count}; }

static u32 new_block(Pass *p) {
  if (!vec_push(p->alloc, &p->closed, 0)) return refuse(p), 0;
  return p->closed.count - 1;
}

/* Puts a node behind link `at`; gives its link. */
static u32 link_behind(Pass *p, u32 at, u32 node) {
  if (p->failed) return 0;
  Link l = {node, p->links.data[at].next};
  if (!vec_push(p->alloc, &p->links, l)) return refuse(p), 0;
  p->links.data[at].next = p->links.count - 1;
  return p->links.count - 1;
}

static void append(Pass *p, u32 node) {
  u32 link = link_behind(p, p->last, node);
  if (link) p->last = link;
}

static u32 simplify_mapped(const Pass *p, u32 id) { return id ? p->map[id] : 0; }
static const LoopNode *simplify_node(const Pass *p, u32 id) { return loop_node(p->fn, id); }
static const LoopNode *statement(const LoopFn *fn, u32 pos) { return loop_node(fn, fn->body.data[pos]); }
static bool simplify_is_const(const Pass *p, u32 id) { return id && simplify_node(p, id)->op == LOOP_CONST; }

static u32 constant(Pass *p, LoopType type, u64 bits) {
  u32 was = p->fn->nodes.count, id = loop_const(p->fn, type, bits);
  if (!id) return refuse(p), 0;
  if (p->fn->nodes.count > was && !vec_push(p->alloc, &p->place, (Place){0, 0})) refuse(p);
  return id;
}

/* ---- table of known values ----------------------------------------------------------------- */

static u64 hash_node(const LoopNode *n, u32 epoch) {
  u64 words[4] = {(u64)n->op | (u64)n->type << 8 | (u64)n->mem << 16 | (u64)n->aux << 24 | (u64)n->a << 32,
                  (u64)n->b | (u64)n->c << 32, n->imm, epoch};
  u64 h = 0;
  for (u32 i = 0; i < 4; i++) h = (h ^ words[i]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
  return h;
}

static bool same_terms(const Pass *p, const LoopNode *x, const LoopNode *y) {
  bool same = x->count == y->count;
  for (u32 i = 0; same && i < x->count; i++)
    same = loop_terms_equal(&loop_terms(p->fn, x)[i], &loop_terms(p->fn, y)[i]);
  return same;
}

static bool same_value(const Pass *p, const LoopNode *x, const LoopNode *y) {
  if (x->op != y->op || x->type != y->type || x->mem != y->mem || x->aux != y->aux || x->a != y->a || x->b != y->b ||
      x->c != y->c || x->imm != y->imm)
    return false;
  return x->op != LOOP_LOAD || same_terms(p, x, y);
}

static bool grow_table(Pass *p) {
  u32 old = p->table_size, size = old ? old * 2 : 64;
  while (!old && size < p->old->nodes.count) size *= 2;
  Entry *was = p->table, *table = mem_alloc_zero(p->alloc, sizeof *table * size);
  if (!table) return false;
  for (u32 i = 0; i < old; i++) {
    if (!was[i].id) continue;
    u32 at = (u32)hash_node(&was[i].key, was[i].epoch) & (size - 1);
    while (table[at].id) at = (at + 1) & (size - 1);
    table[at] = was[i];
  }
  mem_free(p->alloc, was, sizeof *was * old);
  p->table = table;
  p->table_size = size;
  return true;
}

/* The slot of an equal value, visible or not, or the empty one where it belongs. */
static Entry *find_entry(Pass *p, const LoopNode *key, u32 epoch) {
  for (u32 at = (u32)hash_node(key, epoch) & (p->table_size - 1);; at = (at + 1) & (p->table_size - 1)) {
    Entry *e = &p->table[at];
    if (!e->id || (e->epoch == epoch && same_value(p, &e->key, key))) return e;
  }
}

static bool visible(const Pass *p, u32 id) { return !p->closed.data[p->place.data[id].block]; }

/* ---- placing ------------------------------------------------------------------------------- */

/* In an arm, a float made of one that stands before it alone: comes first in the arm, as it would wait behind what
 * waits for others. */
static bool ready(const Pass *p, const LoopNode *n) {
  return p->frames.count && !p->frames.data[p->frames.count - 1].loop && loop_is_float((LoopType)n->type) &&
         n->op == LOOP_ADD && n->a == n->b && p->place.data[n->a].block != current_block(p);
}

/* A pure operation: found, or new and as far out as its operands allow. */
static u32 place_value(Pass *p, LoopNode n, u32 *known) {
  bool load = n.op == LOOP_LOAD;
  u32 epoch = load ? p->epoch : 0, depth = 0;
  if (p->failed || (*known * 2 >= p->table_size && !grow_table(p))) return refuse(p), 0;
  Entry *e = find_entry(p, &n, epoch);
  if (e->id && visible(p, e->id)) return e->id;
  u32 operands[3] = {n.a, n.b, n.c};
  for (u32 i = 0; !load && i < 3; i++)
    if (operands[i] && p->place.data[operands[i]].depth > depth) depth = p->place.data[operands[i]].depth;
  bool move = !load && n.op != LOOP_PREFIX && depth < p->loops.count;
  u32 frame = move ? p->loops.data[depth] : p->frames.count - 1; /* the outermost loop that does not change it */
  Place at = move ? (Place){p->frames.data[frame].outer, depth} : here(p);
  u32 id = new_node(p, n, at);
  if (!id) return 0;
  if (move || ready(p, &n)) {
    u32 was = p->frames.data[frame].before, link = link_behind(p, was, id);
    p->frames.data[frame].before = link;
    if (p->last == was) p->last = link;
  } else {
    append(p, id);
  }
  if (!e->id) (*known)++;
  *e = (Entry){n, epoch, id};
  return id;
}

/* ---- identities ---------------------------------------------------------------------------- */

static bool all_ones(LoopType t, u64 bits) { return bits == loop_normal(t, UINT64_MAX); }

static u32 power_of_two(LoopType t, u64 bits) { /* log2, or 64 */
  if (bits == 0 || (loop_is_signed(t) && (i64)bits < 0) || (bits & (bits - 1))) return 64;
  return (u32)__builtin_ctzll(bits);
}

static u32 make(Pass *p, LoopOp op, LoopType type, u32 a, u32 b, u32 *known) {
  return place_value(p, (LoopNode){.op = (u8)op, .type = (u8)type, .a = a, .b = b}, known);
}

/* A float that is never -0: a square, what was an integer, an absolute value, and a sum of which one of them is a
 * part. */
static bool not_minus_zero(const Pass *p, u32 id) {
  const LoopNode *n = simplify_node(p, id);
  for (u32 step = 0; n->op == LOOP_ADD && step < 8; step++) n = simplify_node(p, n->b);
  return n->op == LOOP_ABS || (n->op == LOOP_MUL && n->a == n->b) ||
         (n->op == LOOP_CONVERT && loop_is_int(loop_type_of(p->fn, n->a)));
}

/* Exact, NaN and zeros included: times 1; times 2 is a sum, sooner done; by a power of two is times its reciprocal. */
static u32 with_float(Pass *p, const LoopNode *n, u64 bits, u32 *known) {
  LoopType t = (LoopType)n->type;
  bool wide = t == LT_F64, by = n->op == LOOP_DIV;
  u64 fraction = wide ? bits << 12 : bits << 41, biased = wide ? bits >> 52 : bits >> 23, bias = wide ? 1023 : 127;
  if (n->op == LOOP_ADD && bits == 0 && loop_is_float(t) && not_minus_zero(p, n->a)) return n->a;
  if (!loop_is_float(t) || (n->op != LOOP_MUL && !by) || fraction) return 0;
  if (biased == bias) return n->a;
  if (biased == (by ? bias - 1 : bias + 1)) return make(p, LOOP_ADD, t, n->a, n->a, known);
  if (!by || biased == 0 || biased >= 2 * bias) return 0; /* its reciprocal is normal, too */
  return make(p, LOOP_MUL, t, n->a, constant(p, t, (2 * bias - biased) << (wide ? 52 : 23)), known);
}

typedef struct Range { /* of an i64 value; what reaches 2^62 either way may be anything */
  i64 least, most;
} Range;
enum { RANGE_DEPTH = 5 };
static const i64 far = (i64)1 << 62; /* no loop comes near it */

/* Of what is converted from a narrower type, masked, or a remainder by a constant. */
static Range narrow_range(const Pass *p, const LoopNode *n) {
  const Range any = {INT64_MIN, INT64_MAX};
  u64 by = n->b && simplify_is_const(p, n->b) ? simplify_node(p, n->b)->imm : 0;
  if (n->type != LT_I64) return any;
  if (n->op == LOOP_AND && by && (i64)by >= 0) return (Range){0, (i64)by};
  if (n->op == LOOP_MOD && (i64)by > 0) return (Range){0, (i64)by - 1};
  if (n->op != LOOP_CONVERT) return any;
  switch (loop_type_of(p->fn, n->a)) {
    case LT_I1: return (Range){0, 1};
    case LT_U8: return (Range){0, UINT8_MAX};
    case LT_I32: return (Range){INT32_MIN, INT32_MAX};
    case LT_U32: return (Range){0, UINT32_MAX};
    default: return any;
  }
}

static Range range_of(const Pass *p, u32 id, u32 depth) {
  const LoopNode *n = simplify_node(p, id);
  const Range any = {INT64_MIN, INT64_MAX};
  Range r = any, a, b;
  if (n->op == LOOP_CONST) r = (Range){(i64)n->imm, (i64)n->imm};
  if (n->op == LOOP_INDEX) {
    u32 trips = loop_trips_of(p->fn, n->a, n->b);
    bool few = simplify_is_const(p, trips) && simplify_node(p, trips)->imm - 1 < (u64)far;
    r = (Range){0, few ? (i64)simplify_node(p, trips)->imm - 1 : far - 1};
  }
  bool both = n->op == LOOP_ADD || n->op == LOOP_SUB || n->op == LOOP_MAX || n->op == LOOP_MIN;
  if (n->op == LOOP_CONVERT || n->op == LOOP_AND || n->op == LOOP_MOD) return narrow_range(p, n);
  if (!both || n->type != LT_I64 || depth == 0) return r;
  a = range_of(p, n->a, depth - 1);
  b = range_of(p, n->b, depth - 1);
  if (n->op == LOOP_MAX) return (Range){a.least > b.least ? a.least : b.least, a.most > b.most ? a.most : b.most};
  if (n->op == LOOP_MIN) return (Range){a.least < b.least ? a.least : b.least, a.most < b.most ? a.most : b.most};
  if (a.least <= -far || a.most >= far || b.least <= -far || b.most >= far) return any;
  return n->op == LOOP_ADD ? (Range){a.least + b.least, a.most + b.most} : (Range){a.least - b.most, a.most - b.least};
}

/* What follows from the ranges of both: a comparison, the greater, the less. */
static u32 by_range(Pass *p, const LoopNode *n) {
  if (n->op == LOOP_SELECT) { /* 0 < x ? x : 0 */
    const LoopNode *cond = simplify_node(p, n->a);
    bool above = cond->op == LOOP_LT && cond->b == n->b && simplify_is_const(p, cond->a) &&
                 simplify_node(p, cond->a)->imm == 0 && simplify_is_const(p, n->c) && simplify_node(p, n->c)->imm == 0;
    return above && n->type == LT_I64 && range_of(p, n->b, RANGE_DEPTH).least >= 0 ? n->b : 0;
  }
  bool most = n->op == LOOP_MAX || n->op == LOOP_MIN;
  if ((!most && (n->op < LOOP_EQ || n->op > LOOP_GE)) || loop_type_of(p->fn, n->a) != LT_I64) return 0;
  Range a = range_of(p, n->a, RANGE_DEPTH), b = range_of(p, n->b, RANGE_DEPTH);
  bool less = a.most < b.least, more = a.least > b.most, not_more = a.most <= b.least, not_less = a.least >= b.most;
  switch (n->op) {
    case LOOP_MAX: return not_less ? n->a : not_more ? n->b : 0;
    case LOOP_MIN: return not_more ? n->a : not_less ? n->b : 0;
    case LOOP_LT: return less || not_less ? constant(p, LT_I1, less) : 0;
    case LOOP_LE: return not_more || more ? constant(p, LT_I1, not_more) : 0;
    case LOOP_GT: return more || not_more ? constant(p, LT_I1, more) : 0;
    case LOOP_GE: return not_less || less ? constant(p, LT_I1, not_less) : 0;
    case LOOP_EQ:
    case LOOP_NE: return less || more ? constant(p, LT_I1, n->op == LOOP_NE) : 0;
    default: return 0;
  }
}

/* An index that cannot be elsewhere: of u8 in a table of 256. */
static bool always_holds(const Pass *p, const LoopNode *check) {
  if (check->aux != LOOP_CHECK_INDEX) return false;
  Range a = range_of(p, check->a, RANGE_DEPTH), b = range_of(p, check->b, RANGE_DEPTH);
  return a.least >= 0 && a.most < b.least;
}

/* (x + c) + d and its like: x and one constant. */
static u32 sum_with_constant(Pass *p, const LoopNode *n, u64 bits, u32 *known) {
  LoopType t = (LoopType)n->type;
  const LoopNode x = *simplify_node(p, n->a);
  if ((x.op != LOOP_ADD && x.op != LOOP_SUB) || !simplify_is_const(p, x.b)) return 0;
  u64 first = simplify_node(p, x.b)->imm,
      sum = loop_normal(t, (x.op == LOOP_ADD ? first : 0 - first) + (n->op == LOOP_ADD ? bits : 0 - bits));
  return sum ? make(p, LOOP_ADD, t, x.a, constant(p, t, sum), known) : x.a;
}

/* b is a constant. The value that `a op b` is, or 0. */
static u32 with_constant(Pass *p, const LoopNode *n, u32 *known) {
  LoopType t = (LoopType)n->type;
  u64 bits = simplify_node(p, n->b)->imm;
  if (!loop_is_int(t)) return with_float(p, n, bits, known);
  u32 shift = power_of_two(t, bits);
  switch (n->op) {
    case LOOP_ADD:
    case LOOP_SUB: return bits == 0 ? n->a : sum_with_constant(p, n, bits, known);
    case LOOP_OR:
    case LOOP_XOR:
    case LOOP_SHL:
    case LOOP_SHR: return bits == 0 ? n->a : 0;
    case LOOP_AND: return all_ones(t, bits) ? n->a : bits == 0 ? n->b : 0;
    case LOOP_MUL:
      if (bits == 0) return n->b;
      if (shift == 0) return n->a;
      return shift < 64 ? make(p, LOOP_SHL, t, n->a, constant(p, t, shift), known) : 0;
    case LOOP_FLOORDIV:
    case LOOP_DIV:
      if (shift == 0) return n->a;
      if (shift == 64) return 0;
      if (n->op == LOOP_DIV && loop_is_signed(t)) { /* toward zero: add 2^k - 1 when negative */
        u32 sign = make(p, LOOP_SHR, t, n->a, constant(p, t, loop_type_bytes(t) * 8 - 1), known);
        u32 bias = make(p, LOOP_AND, t, sign, constant(p, t, bits - 1), known);
        return make(p, LOOP_SHR, t, make(p, LOOP_ADD, t, n->a, bias, known), constant(p, t, shift), known);
      }
      return make(p, LOOP_SHR, t, n->a, constant(p, t, shift), known);
    case LOOP_MOD:
    case LOOP_REM:
      if (shift == 64) return 0;
      if (n->op == LOOP_REM && loop_is_signed(t)) {
        LoopNode quotient = {.op = LOOP_DIV, .type = (u8)t, .a = n->a, .b = n->b};
        u32 q = with_constant(p, &quotient, known);
        return make(p, LOOP_SUB, t, n->a, make(p, LOOP_MUL, t, q, n->b, known), known);
      }
      return make(p, LOOP_AND, t, n->a, constant(p, t, bits - 1), known);
    default: return 0;
  }
}

static bool commutes(const LoopNode *n) {
  switch (n->op) {
    case LOOP_ADD:
    case LOOP_MUL:
    case LOOP_MULHI:
    case LOOP_AND:
    case LOOP_OR:
    case LOOP_XOR:
    case LOOP_EQ:
    case LOOP_NE:
    case LOOP_MIN:
    case LOOP_MAX: return true;
    default: return false;
  }
}

/* Both are 0, one is not: one comparison of what has the bits of both, for one branch. */
static u32 join_zero_tests(Pass *p, const LoopNode *n, u32 *known) {
  const LoopNode a = *simplify_node(p, n->a), b = *simplify_node(p, n->b);
  LoopOp test = n->op == LOOP_AND ? LOOP_EQ : LOOP_NE;
  bool zeros = p->fn->kind == LOOP_NATIVE && n->type == LT_I1 && a.op == test && b.op == test &&
               simplify_is_const(p, a.b) && simplify_is_const(p, b.b) && simplify_node(p, a.b)->imm == 0 &&
               simplify_node(p, b.b)->imm == 0;
  LoopType t = zeros ? loop_type_of(p->fn, a.a) : LT_VOID;
  if (!loop_is_int(t) || t != loop_type_of(p->fn, b.a)) return 0;
  return make(p, test, LT_I1, make(p, LOOP_OR, t, a.a, b.a, known), a.b, known);
}

/* The i-th value that an open loop carries besides. */
static u32 carried(const Pass *p, const Frame *f, u32 i) {
  return loop_carry_of(p->fn, f->head, simplify_node(p, f->head)->b - f->forwards + i);
}

/* What the trip before stored, or what is made of it at once: it comes later than the rest. */
static bool is_late(const Pass *p, u32 id) {
  const Frame *f = p->loops.count ? &p->frames.data[p->loops.data[p->loops.count - 1]] : NULL;
  const LoopNode *n = simplify_node(p, id);
  bool late = false;
  for (u32 i = 0; f && i < f->forwards; i++) {
    u32 c = carried(p, f, i);
    late |= f->forward[i].store && (id == c || n->a == c || n->b == c);
  }
  return late;
}

static u32 pure_value(Pass *p, LoopNode n, u32 *known);

typedef struct Maker {
  Pass *p;
  u32 *known;
} Maker;
static u32 make_node(void *ctx, LoopNode n) { return pure_value(((Maker *)ctx)->p, n, ((Maker *)ctx)->known); }
static u32 make_number(void *ctx, LoopType t, f64 v) {
  u64 bits = 0;
  f32 narrow = (f32)v;
  if (t == LT_F64) memcpy(&bits, &v, sizeof v);
  else memcpy(&bits, &narrow, sizeof narrow);
  return constant(((Maker *)ctx)->p, t, bits);
}

/* A power whose exponent is a constant now, as that of a loop's trip which was written out. */
static u32 known_power(Pass *p, const LoopNode *n, u32 *known) {
  LoopModule *m = p->fn->module;
  if (n->op != LOOP_MATH || !n->b || n->c || m->powers_stay || !simplify_is_const(p, n->b) ||
      strcmp(name_text(&m->names, (Name)n->imm), "pow") != 0)
    return 0;
  const LoopNode exponent = *simplify_node(p, n->b);
  u32 same = loop_known_power(&(LoopMaker){&(Maker){p, known}, make_node, make_number}, (LoopType)n->type, n->a,
                              &exponent);
  m->powers += same != 0;
  return same;
}

static u32 pure_value(Pass *p, LoopNode n, u32 *known) {
  LoopType from = loop_type_of(p->fn, n.a);
  bool constants = simplify_is_const(p, n.a) && (!n.b || simplify_is_const(p, n.b)) &&
                   (!n.c || simplify_is_const(p, n.c));
  u64 bits;
  if (constants && n.op != LOOP_MATH &&
      loop_eval((LoopOp)n.op, (LoopType)n.type, from, simplify_node(p, n.a)->imm, n.b ? simplify_node(p, n.b)->imm : 0,
                n.c ? simplify_node(p, n.c)->imm : 0, &bits))
    return constant(p, (LoopType)n.type, bits);
  if (n.b && !n.c && commutes(&n) && (simplify_is_const(p, n.a) || (!simplify_is_const(p, n.b) && n.a > n.b))) {
    u32 a = n.a;
    n.a = n.b;
    n.b = a;
  }
  u32 same = n.op == LOOP_MATH ? known_power(p, &n, known) : by_range(p, &n);
  if (same) return same;
  /* min(min(late, x), y) */
  for (u32 side = 0; side < 2 && (n.op == LOOP_MIN || n.op == LOOP_MAX) && loop_is_int((LoopType)n.type); side++) {
    const LoopNode inner = *simplify_node(p, side ? n.b : n.a);
    u32 y = side ? n.a : n.b;
    if (inner.op != n.op || is_late(p, y) || is_late(p, inner.a) == is_late(p, inner.b)) continue;
    bool first = is_late(p, inner.a);
    n.b = make(p, (LoopOp)n.op, (LoopType)n.type, first ? inner.b : inner.a, y, known);
    n.a = first ? inner.a : inner.b;
    break;
  }
  /* and, or */
  if (n.op == LOOP_SELECT && n.type == LT_I1 && (simplify_is_const(p, n.b) || simplify_is_const(p, n.c))) {
    bool first = simplify_is_const(p, n.b), yes = simplify_node(p, first ? n.b : n.c)->imm != 0;
    u32 other = first ? n.c : n.b, cond = n.a;
    if (n.b == n.c) return n.b;
    if (simplify_is_const(p, other) && yes == first) return cond;
    if (first != yes) cond = pure_value(p, (LoopNode){.op = LOOP_NOT, .type = LT_I1, .a = cond}, known);
    if (simplify_is_const(p, other)) return cond;
    return pure_value(p, (LoopNode){.op = yes ? LOOP_OR : LOOP_AND, .type = LT_I1, .a = cond, .b = other}, known);
  }
  if (n.op == LOOP_SELECT) {
    if (simplify_is_const(p, n.a)) same = simplify_node(p, n.a)->imm ? n.b : n.c;
    else if (n.b == n.c) same = n.b;
    /* 1 and 0 */
    else if (loop_is_int((LoopType)n.type) && simplify_is_const(p, n.b) && simplify_is_const(p, n.c) &&
             simplify_node(p, n.b)->imm + simplify_node(p, n.c)->imm == 1 && simplify_node(p, n.b)->imm < 2) {
      u32 cond = simplify_node(p, n.b)->imm ? n.a
                                            : pure_value(p, (LoopNode){.op = LOOP_NOT, .type = LT_I1, .a = n.a}, known);
      same = make(p, LOOP_CONVERT, (LoopType)n.type, cond, 0, known);
    }
  } else if (n.op == LOOP_NOT && n.type == LT_I1 &&
             (simplify_node(p, n.a)->op == LOOP_EQ || simplify_node(p, n.a)->op == LOOP_NE)) {
    same = make(p, simplify_node(p, n.a)->op == LOOP_EQ ? LOOP_NE : LOOP_EQ, LT_I1, simplify_node(p, n.a)->a,
                simplify_node(p, n.a)->b, known);
  } else if ((n.op == LOOP_CONVERT || n.op == LOOP_BITCAST) && n.type == from) {
    same = n.a;
  } else if (n.b && simplify_is_const(p, n.b) && loop_op_form((LoopOp)n.op) == LOOP_FORM_BINARY) {
    same = with_constant(p, &n, known);
  } else if (n.op == LOOP_AND || n.op == LOOP_OR) {
    same = n.a == n.b ? n.a : join_zero_tests(p, &n, known);
  }
  return same ? same : place_value(p, n, known);
}

/* ---- copying ------------------------------------------------------------------------------- */

static bool copy_list(Pass *p, const LoopNode *from, LoopNode *to) {
  to->list = p->fn->list.count;
  for (u32 i = 0; i < from->count; i++)
    if (!vec_push(p->alloc, &p->fn->list, simplify_mapped(p, loop_list(p->old, from)[i]))) return refuse(p), false;
  return true;
}

static bool copy_terms(Pass *p, const LoopNode *from, LoopNode *to) {
  to->list = p->fn->terms.count;
  to->count = 0;
  for (u32 i = 0; i < from->count; i++) {
    LoopTerm t = loop_terms(p->old, from)[i];
    for (u32 k = 0; k < 2; k++) t.stride[k] = simplify_mapped(p, t.stride[k]);
    t.var = simplify_mapped(p, t.var);
    if (!t.stride[0] && simplify_is_const(p, t.var)) {
      to->imm += (u64)t.coef * simplify_node(p, t.var)->imm;
      continue;
    }
    if (!vec_push(p->alloc, &p->fn->terms, t)) return refuse(p), false;
    to->count++;
  }
  return true;
}

/* One value more at the end of the list just made. */
static void one_more(Pass *p, LoopNode *n, u32 value) {
  if (!vec_push(p->alloc, &p->fn->list, value)) refuse(p);
  n->count++;
}

/* What such a load gives in the first trip, before the loop, if it has trips. */
static u32 first_load(Pass *p, const Forward *f) {
  LoopType t = loop_type_of(p->old, f->load);
  u32 trips = simplify_mapped(p, loop_trips_of(p->old, f->head, 0)), zero = constant(p, t, 0),
      some = new_node(p, (LoopNode){.op = LOOP_NE, .type = LT_I1, .a = trips, .b = constant(p, LT_I64, 0)}, here(p));
  LoopNode n = {.op = LOOP_IF, .c = 1, .list = p->fn->list.count}, load = *loop_node(p->old, f->load);
  append(p, some);
  one_more(p, &n, some);
  u32 head = new_node(p, n, here(p)),
      result = new_node(p, (LoopNode){.op = LOOP_RESULT, .type = (u8)t, .a = head}, here(p));
  append(p, head);
  for (u32 arm = 0; arm < 2; arm++) {
    Place inside = {new_block(p), p->loops.count};
    n = (LoopNode){.op = LOOP_YIELD, .a = head, .list = p->fn->list.count};
    load.a = simplify_mapped(p, loop_node(p->old, f->load)->a);
    load.imm = (u64)f->constant;
    load.list = p->fn->terms.count;
    load.count = f->count;
    for (u32 i = 0; i < f->count && !arm; i++) {
      LoopTerm term = f->terms[i];
      for (u32 k = 0; k < 2; k++) term.stride[k] = simplify_mapped(p, term.stride[k]);
      term.var = simplify_mapped(p, term.var);
      if (!vec_push(p->alloc, &p->fn->terms, term)) refuse(p);
    }
    u32 value = arm ? zero : new_node(p, load, inside);
    if (!arm) append(p, value);
    one_more(p, &n, value);
    append(p, new_node(p, n, inside));
    append(p, new_node(p, (LoopNode){.op = arm ? LOOP_END : LOOP_ELSE, .a = head}, inside));
    if (!p->failed) p->closed.data[inside.block] = 1;
  }
  return result;
}

static void copy_head(Pass *p, u32 id, const LoopNode *from) {
  LoopNode n = *from;
  const Forward *forward = p->forwards;
  u32 first[FORWARDS], more = 0;
  while (forward < p->forwards + p->forward_count && forward->head != id) forward++;
  for (; forward + more < p->forwards + p->forward_count && forward[more].head == id; more++)
    first[more] = first_load(p, &forward[more]);
  if (!copy_list(p, from, &n)) return;
  bool loop = n.op != LOOP_IF;
  Frame f = {.outer = current_block(p), .before = p->last, .loop = loop, .block = new_block(p), .forward = forward,
             .forwards = more};
  for (u32 i = 0; i < more; i++) one_more(p, &n, first[i]);
  n.b += more;
  n.c += more;
  Place outside = here(p), inside = {f.block, p->loops.count + loop};
  u32 head = f.head = new_node(p, n, outside);
  append(p, head);
  if (!loop) f.before = p->last;
  u32 leaves = from->a + from->b + from->c, old_leaf = id + 1;
  for (u32 i = 0; i < leaves + 2 * more; i++) {
    u32 carry = i - from->a - from->b, result = i - leaves - more; /* number of one more, when it is small */
    bool one = carry < more || (i >= leaves + more);
    LoopNode leaf = *loop_node(p->old, one ? forward[carry < more ? carry : result].load : old_leaf);
    if (one)
      leaf = (LoopNode){.op = carry < more ? LOOP_CARRY : LOOP_RESULT, .type = leaf.type,
                        .b = carry < more ? from->b + carry : from->c + result};
    leaf.a = head;
    u32 made = new_node(p, leaf, leaf.op == LOOP_RESULT ? outside : inside);
    if (!one) p->map[old_leaf++] = made;
  }
  p->map[id] = head;
  p->epoch += loop;
  if (loop && !vec_push(p->alloc, &p->loops, p->frames.count)) refuse(p);
  if (!vec_push(p->alloc, &p->frames, f)) refuse(p);
}

/* What the open loop carries besides, at the end of the list of a `next`. */
static void carry_on(Pass *p, LoopNode *next) {
  Frame *f = &p->frames.data[p->frames.count - 1];
  for (u32 i = 0; f->head == next->a && i < f->forwards; i++) {
    u32 store = f->forward[i].store;
    one_more(p, next, store ? simplify_mapped(p, loop_node(p->old, store)->b) : carried(p, f, i));
  }
  if (f->head == next->a) f->forwards = 0;
}

static void copy_mark(Pass *p, const LoopNode *from) {
  Frame *f = &p->frames.data[p->frames.count - 1];
  if (f->forwards) {
    LoopNode next = {.op = LOOP_NEXT, .a = f->head, .list = p->fn->list.count};
    carry_on(p, &next);
    append(p, new_node(p, next, here(p)));
  }
  append(p, new_node(p, (LoopNode){.op = from->op, .a = f->head}, here(p)));
  p->closed.data[f->block] = 1;
  p->epoch++;
  if (from->op == LOOP_ELSE) {
    f->otherwise = true;
    f->block = new_block(p);
    f->before = p->last;
    return;
  }
  if (f->loop) p->loops.count--;
  p->frames.count--;
  if (p->frames.count && p->frames.data[p->frames.count - 1].joins_end == UINT32_MAX) copy_mark(p, from);
}

/* The same check stands where this one is only reached past it: leaving, by whatever exit, it would have left there. If
 * not, it is noted. */
static bool checked_before(Pass *p, const LoopNode *n, u32 *known) {
  LoopNode key = {.op = n->op, .aux = n->aux, .a = n->a, .b = n->b};
  if (*known * 2 >= p->table_size && !grow_table(p)) return refuse(p), false;
  Entry *e = find_entry(p, &key, 0);
  if (e->id && visible(p, e->id)) return true;
  if (!e->id) (*known)++;
  *e = (Entry){key, 0, p->fn->nodes.count}; /* the node that comes next */
  return false;
}

/* An arm that gives the condition it stands under gives a constant. */
static void yield_condition(Pass *p, const LoopNode *yield) {
  const LoopNode *head = simplify_node(p, yield->a);
  if (head->op != LOOP_IF) return;
  u32 cond = loop_cond_of(p->fn, yield->a);
  bool otherwise = p->frames.data[p->frames.count - 1].otherwise;
  for (u32 i = 0; i < yield->count; i++) {
    if (p->fn->list.data[yield->list + i] != cond) continue;
    u32 value = constant(p, LT_I1, !otherwise);
    p->fn->list.data[yield->list + i] = value;
  }
}

/* x - i + y, of which only i changes in the loop: (x + y) - i. `sum` is of the new function, `from` the old one's. */
static void lead_with_invariants(Pass *p, LoopNode *sum, const LoopNode *from, u32 *known) {
  for (u32 side = 0; side < 2 && p->uses && sum->op == LOOP_ADD && loop_is_int((LoopType)sum->type); side++) {
    u32 first = side ? sum->b : sum->a, y = side ? sum->a : sum->b;
    const LoopNode x = *simplify_node(p, first);
    u32 depth = x.op == LOOP_SUB && p->uses[side ? from->b : from->a] == 1 ? p->place.data[x.b].depth : 0;
    if (depth <= p->place.data[x.a].depth || depth <= p->place.data[y].depth) continue;
    sum->op = LOOP_SUB;
    sum->a = make(p, LOOP_ADD, (LoopType)sum->type, x.a, y, known);
    sum->b = x.b;
  }
}

static void simplify_copy_statement(Pass *p, u32 id, u32 *known) {
  const LoopNode *from = loop_node(p->old, id);
  LoopForm form = loop_op_form((LoopOp)from->op);
  LoopNode n = *from;
  switch (form) {
    case LOOP_FORM_HEAD: copy_head(p, id, from); return;
    case LOOP_FORM_MARK: copy_mark(p, from); return;
    case LOOP_FORM_ACCESS:
      n.a = simplify_mapped(p, n.a);
      n.b = simplify_mapped(p, n.b);
      if (!copy_terms(p, from, &n)) return;
      if (n.op == LOOP_LOAD) {
        const Frame *f = p->loops.count ? &p->frames.data[p->loops.data[p->loops.count - 1]] : NULL;
        u32 i = 0;
        while (f && i < f->forwards && f->forward[i].load != id) i++;
        p->map[id] = f && i < f->forwards ? carried(p, f, i) : place_value(p, n, known);
        return;
      }
      append(p, new_node(p, n, here(p)));
      p->epoch++;
      return;
    case LOOP_FORM_TERM:
    case LOOP_FORM_EXIT:
    case LOOP_FORM_CALL:
    case LOOP_FORM_CHECK:
      if (!copy_list(p, from, &n)) return;
      if (form == LOOP_FORM_TERM) n.a = simplify_mapped(p, n.a);
      if (n.op == LOOP_YIELD) yield_condition(p, &n);
      if (n.op == LOOP_NEXT) carry_on(p, &n);
      if (form == LOOP_FORM_CHECK) n.a = simplify_mapped(p, n.a), n.b = simplify_mapped(p, n.b);
      if (form == LOOP_FORM_CHECK && always_holds(p, &n)) return;
      if (form == LOOP_FORM_CHECK && p->fn->kind == LOOP_NATIVE && checked_before(p, &n, known)) return;
      p->map[id] = new_node(p, n, here(p));
      append(p, p->map[id]);
      if (form != LOOP_FORM_CALL) return;
      p->epoch++;
      for (u32 i = 0; i < n.b; i++) {
        LoopNode leaf = *loop_node(p->old, id + 1 + i);
        leaf.a = p->map[id];
        p->map[id + 1 + i] = new_node(p, leaf, here(p));
      }
      return;
    default: break;
  }
  n.a = simplify_mapped(p, n.a);
  n.b = simplify_mapped(p, n.b);
  n.c = simplify_mapped(p, n.c);
  lead_with_invariants(p, &n, from, known);
  if (n.op == LOOP_PREFIX) {
    p->map[id] = new_node(p, n, here(p));
    append(p, p->map[id]);
  } else {
    p->map[id] = pure_value(p, n, known);
  }
}

/* ---- conditions joined by `and` ------------------------------------------------------------ */

static void count_use(void *ctx, u32 id) { ((u32 *)ctx)[id]++; }

/* An `if` that gives a truth value, false in its second arm, which nothing but the `if` behind it asks for: that
 * one stands in its first arm then, and sees what was computed there. Not where it gives values itself, unless it
 * is one more of these. */
static bool joins(const Pass *p, u32 at, u32 *yield_at, u32 *end_at) {
  const LoopFn *old = p->old;
  u32 id = old->body.data[at], depth = 0, other = 0, end = at + 1;
  const LoopNode *n = loop_node(old, id);
  if (n->op != LOOP_IF || !n->c || !p->uses) return false;
  for (u32 i = 0; i < n->c; i++)
    if (p->uses[loop_result_of(old, id, i)] != (i == 0)) return false;
  for (;; end++) {
    const LoopNode *x = statement(old, end);
    if (loop_is_head(x)) depth++;
    else if (x->op == LOOP_ELSE && !depth) other = end;
    else if (x->op == LOOP_END && depth-- == 0) break;
  }
  if (end != other + 2 || end + 1 >= old->body.count) return false;
  const LoopNode *yes = statement(old, other - 1), *no = statement(old, other + 1);
  u32 asks = old->body.data[end + 1], given = no->op == LOOP_YIELD ? loop_list(old, no)[0] : 0;
  if (yes->op != LOOP_YIELD || !given || loop_node(old, asks)->op != LOOP_IF ||
      loop_cond_of(old, asks) != loop_result_of(old, id, 0))
    return false;
  if (given != loop_cond_of(old, id) && (loop_node(old, given)->op != LOOP_CONST || loop_node(old, given)->imm))
    return false;
  *yield_at = other - 1;
  *end_at = end;
  u32 ignored[2];
  for (u32 pos = end + 2, open = 0; !loop_node(old, asks)->c; pos++) { /* has it a second arm? */
    const LoopNode *x = statement(old, pos);
    if (x->op == LOOP_ELSE && !open) return false;
    if (loop_is_head(x)) open++;
    else if (x->op == LOOP_END && open-- == 0) return true;
  }
  return joins(p, end + 1, ignored, ignored + 1);
}

static bool open_joined(Pass *p, u32 at) {
  u32 yield_at, end_at;
  if (!joins(p, at, &yield_at, &end_at)) return false;
  LoopNode bare = *statement(p->old, at);
  bare.c = 0;
  copy_head(p, p->old->body.data[at], &bare);
  if (p->failed) return true;
  Frame *f = &p->frames.data[p->frames.count - 1];
  f->joins_at = yield_at;
  f->joins_end = end_at;
  return true;
}

/* At the yield of such an `if`: the position to go on behind; else 0. */
static u32 go_on_inside(Pass *p, u32 at) {
  Frame *f = p->frames.count ? &p->frames.data[p->frames.count - 1] : NULL;
  if (!f || !f->joins_at || f->joins_at != at) return 0;
  const LoopNode *yield = statement(p->old, at);
  u32 end = f->joins_end;
  p->map[loop_result_of(p->old, yield->a, 0)] = simplify_mapped(p, loop_list(p->old, yield)[0]);
  f->joins_at = 0;
  f->joins_end = UINT32_MAX; /* it ends when the next one has */
  return end;
}

/* ---- arms that only choose ----------------------------------------------------------------- */

/* Is `cond ? a : b` the lesser or greater of two floats as minsd and maxsd have it? */
static bool is_extreme(const Pass *p, u32 cond, u32 a, u32 b) {
  const LoopNode *c = simplify_node(p, cond);
  return (c->op == LOOP_LT || c->op == LOOP_GT) && ((c->a == a && c->b == b) || (c->a == b && c->b == a));
}

/* x + v where a condition holds, else x, or the other way round: x plus v or 0, or the condition itself where v is
 * 1. */
static u32 sum_or_not(Pass *p, const LoopNode *n, u32 *known) {
  for (u32 side = 0; side < 2; side++) {
    u32 x = side ? n->b : n->c, bit = n->a;
    const LoopNode sum = *simplify_node(p, side ? n->c : n->b);
    if (sum.op != LOOP_ADD || sum.type != LT_I64 || (sum.a != x && sum.b != x)) continue;
    u32 v = sum.a == x ? sum.b : sum.a;
    if (side) bit = make(p, LOOP_NOT, LT_I1, bit, 0, known);
    bit = make(p, LOOP_CONVERT, LT_I64, bit, 0, known);
    if (!simplify_is_const(p, v) || simplify_node(p, v)->imm != 1)
      bit = make(p, LOOP_AND, LT_I64, make(p, LOOP_NEG, LT_I64, bit, 0, known), v, known);
    return make(p, LOOP_ADD, LT_I64, x, bit, known);
  }
  return 0;
}

/* An `if` whose arms compute nothing, of results that are chosen without a branch: as selects. So is one that goes
 * on to the next trip, before the trip ends, with a sum of integers or two on either way. The position of its END,
 * of the trip's; 0: it is none. */
static u32 choose(Pass *p, u32 at, u32 *known) {
  const LoopFn *old = p->old;
  u32 id = old->body.data[at], values[2][4], masks = 0, ends[2], begins[2] = {at + 1, 0};
  const LoopNode *n = loop_node(old, id), *lists[2];
  bool trip = !n->c;
  if (old->kind != LOOP_NATIVE || n->op != LOOP_IF) return 0;
  for (u32 arm = 0; arm < 2; arm++) {
    u32 pos = begins[arm], most = trip ? pos + 2 : pos;
    while (pos < most && statement(old, pos)->op == LOOP_ADD) pos++;
    const LoopNode *end = lists[arm] = statement(old, pos);
    if (end->op != (trip ? LOOP_NEXT : LOOP_YIELD) || end->count > 4 || end->a != lists[0]->a) return 0;
    ends[arm] = pos++;
    if (arm) break;
    u32 op;
    do op = statement(old, pos++)->op;
    while (op == LOOP_ELSE || (trip && op == LOOP_YIELD)); /* to the END, or past the first of what the second arm is */
    if (trip && op != LOOP_END) return 0;
    begins[1] = pos - !trip;
  }
  u32 cond = simplify_mapped(p, loop_cond_of(old, id));
  for (u32 arm = 0; arm < 2; arm++) {
    for (u32 pos = begins[arm]; pos < ends[arm]; pos++) simplify_copy_statement(p, old->body.data[pos], known);
    for (u32 i = 0; i < lists[0]->count; i++) {
      values[arm][i] = simplify_mapped(p, loop_list(old, lists[arm])[i]);
      if (values[arm][i] == cond) values[arm][i] = constant(p, LT_I1, !arm);
    }
  }
  LoopNode next = *lists[0];
  for (u32 i = 0; i < next.count; i++) {
    u32 a = values[0][i], b = values[1][i];
    LoopType t = loop_type_of(old, loop_list(old, &next)[i]);
    if (a == b) continue;
    if (loop_is_float(t) ? !is_extreme(p, cond, a, b) : (t != LT_I64 && t != LT_I1)) return 0;
    masks += t == LT_I64;
  }
  if (masks > 2) return 0;
  for (u32 i = 0; i < next.count; i++) {
    LoopNode select = {.op = LOOP_SELECT, .type = (u8)loop_type_of(old, loop_list(old, lists[0])[i]), .a = cond,
                       .b = values[0][i], .c = values[1][i]};
    u32 sum = trip ? sum_or_not(p, &select, known) : 0;
    values[0][i] = sum ? sum : pure_value(p, select, known);
    if (!trip) p->map[loop_result_of(old, id, i)] = values[0][i];
  }
  if (!trip) return ends[1] + 1;
  next.a = simplify_mapped(p, next.a);
  if (!copy_list(p, lists[1], &next)) return 0;
  for (u32 i = 0; i < next.count; i++) p->fn->list.data[next.list + i] = values[0][i];
  append(p, new_node(p, next, here(p)));
  return ends[1];
}

/* ---- short loops --------------------------------------------------------------------------- */

enum { UNROLL_TRIPS = 8, UNROLL_STATEMENTS = 100, UNROLL_CARRIED = 16, UNROLL_STORES = 4 };

/* The position of the END of a loop of a few trips, known in number, and a short body that holds no loop and only
 * its end goes on to the next trip; 0: it is no such loop. Polls in it are not needed. Many stores stay a loop: a
 * load elsewhere that finds what now this one, now that one of them wrote waits for the wrong one, since processors
 * foresee that by addresses of instructions. */
static u32 short_loop(const Pass *p, u32 at, u64 *trips) {
  const LoopFn *old = p->old;
  u32 id = old->body.data[at], depth = 0, stores = 0;
  const LoopNode *n = loop_node(old, id);
  if (old->kind != LOOP_NATIVE || n->op != LOOP_FOR || n->a != 1 || n->b > UNROLL_CARRIED) return 0;
  u32 count = simplify_mapped(p, loop_trips_of(old, id, 0));
  if (!simplify_is_const(p, count) || simplify_node(p, count)->imm > UNROLL_TRIPS) return 0;
  *trips = simplify_node(p, count)->imm;
  for (u32 pos = at + 1; (pos - at) * *trips <= UNROLL_STATEMENTS + *trips; pos++) {
    const LoopNode *x = statement(old, pos);
    if (loop_is_head(x)) {
      if (x->op != LOOP_IF) return 0;
      depth++;
    } else if (x->op == LOOP_END) {
      if (depth-- == 0) return pos;
    } else if ((x->op == LOOP_NEXT || x->op == LOOP_BREAK) && (depth || x->op == LOOP_BREAK)) {
      return 0;
    } else if (x->op == LOOP_CALL || x->op == LOOP_EXIT || x->op == LOOP_RETURN ||
               (x->op == LOOP_STORE && ++stores * *trips > UNROLL_STORES)) {
      return 0;
    }
  }
  return 0;
}

static void unroll(Pass *p, u32 at, u32 end, u64 trips, u32 *known) {
  const LoopFn *old = p->old;
  u32 id = old->body.data[at], values[UNROLL_CARRIED];
  const LoopNode *n = loop_node(old, id);
  for (u32 i = 0; i < n->b; i++) values[i] = simplify_mapped(p, loop_init_of(old, id, i));
  for (u64 trip = 0; trip < trips && !p->failed; trip++) {
    p->map[loop_index_of(id, 0)] = constant(p, LT_I64, trip);
    for (u32 i = 0; i < n->b; i++) p->map[loop_carry_of(old, id, i)] = values[i];
    for (u32 pos = at + 1; pos < end && !p->failed; pos++) {
      u32 statement = old->body.data[pos], chosen = choose(p, pos, known);
      const LoopNode *x = loop_node(old, statement);
      if (chosen) {
        pos = chosen;
        continue;
      }
      if (x->op == LOOP_POLL) continue;
      if (x->op != LOOP_NEXT) simplify_copy_statement(p, statement, known);
      else
        for (u32 i = 0; i < n->b; i++) values[i] = simplify_mapped(p, loop_list(old, x)[i]);
    }
  }
  for (u32 i = 0; i < n->b; i++) p->map[loop_result_of(old, id, i)] = values[i];
}

/* ---- driver -------------------------------------------------------------------------------- */

static void copy_leaves(Pass *p) {
  for (u32 id = 1; id < p->old->nodes.count; id++) {
    const LoopNode *n = loop_node(p->old, id);
    if (n->op == LOOP_CONST) p->map[id] = constant(p, (LoopType)n->type, n->imm);
    if (n->op == LOOP_PARAM || n->op == LOOP_TABLE) p->map[id] = new_node(p, *n, (Place){0, 0});
  }
  for (u32 i = 0; !p->failed && i < p->old->params.count; i++)
    if (!vec_push(p->alloc, &p->fn->params, p->map[p->old->params.data[i]])) refuse(p);
  for (u32 i = 0; !p->failed && i < p->old->results.count; i++)
    if (!vec_push(p->alloc, &p->fn->results, p->old->results.data[i])) refuse(p);
}

static LoopFn *simplify(const LoopFn *old, const Forward *forwards, u32 forward_count) {
  Pass p = {.old = old, .alloc = old->module->alloc, .forward_count = forward_count};
  for (u32 i = 0; i < forward_count; i++) p.forwards[i] = forwards[i];
  u32 known = 0;
  p.fn = mem_alloc_zero(p.alloc, sizeof *p.fn);
  p.map = mem_alloc_zero(p.alloc, sizeof(u32) * old->nodes.count);
  if (old->kind == LOOP_NATIVE) p.uses = mem_alloc_zero(p.alloc, sizeof(u32) * old->nodes.count);
  for (u32 i = 0; p.uses && i < old->body.count; i++) loop_each_operand(old, statement(old, i), count_use, p.uses);
  if (p.fn) {
    p.fn->module = old->module;
    p.fn->kind = old->kind;
    p.fn->name = old->name;
    p.fn->math_type = old->math_type;
    p.fn->tag = old->tag;
  }
  if (!p.fn || !p.map) refuse(&p);
  (void)new_node(&p, (LoopNode){0}, (Place){0, 0});
  (void)new_block(&p);
  if (!p.failed && !vec_push(p.alloc, &p.links, (Link){0, 0})) refuse(&p);
  if (!p.failed) copy_leaves(&p);
  for (u32 i = 0; !p.failed && i < old->body.count; i++) {
    u64 trips = 0;
    if (!toil(old->module->toil, 1 + p.frames.count)) refuse(&p);
    /* this `if` ends another, too */
    bool joined = p.frames.count && p.frames.data[p.frames.count - 1].joins_end == UINT32_MAX;
    u32 chosen = joined ? 0 : choose(&p, i, &known), end = chosen ? 0 : short_loop(&p, i, &trips);
    if (!chosen) chosen = go_on_inside(&p, i);
    if (chosen) {
      i = chosen;
      continue;
    }
    if (!end && open_joined(&p, i)) continue;
    if (!end) {
      simplify_copy_statement(&p, old->body.data[i], &known);
      continue;
    }
    unroll(&p, i, end, trips, &known);
    i = end;
  }
  for (u32 l = p.failed ? 0 : p.links.data[0].next; l; l = p.links.data[l].next)
    if (!p.failed && !vec_push(p.alloc, &p.fn->body, p.links.data[l].node)) refuse(&p);
  if (!p.failed && !loops_drop_dead(p.fn)) refuse(&p);
  mem_free(p.alloc, p.map, sizeof(u32) * old->nodes.count);
  mem_free(p.alloc, p.uses, sizeof(u32) * old->nodes.count);
  mem_free(p.alloc, p.table, sizeof *p.table * p.table_size);
  vec_free(p.alloc, &p.place);
  vec_free(p.alloc, &p.links);
  vec_free(p.alloc, &p.frames);
  vec_free(p.alloc, &p.closed);
  vec_free(p.alloc, &p.loops);
  if (!p.failed) return p.fn;
  if (p.fn) loop_fn_free(p.fn);
  return NULL;
}

LoopFn *loops_simplify(const LoopFn *old) {
  if (toil_pass(old->module->toil)) toil_forever(old->module->toil);
  LoopFn *fn = simplify(old, NULL, 0), *carrying = fn;
  Forward forwards[FORWARDS];
  u32 count = fn && fn->kind == LOOP_NATIVE && !old->module->loads_stay ? loops_forwards(fn, forwards) : 0;
  if (!count) return fn;
  old->module->carried += count;
  carrying = simplify(fn, forwards, count);
  loop_fn_free(fn);
  return carrying;
}
