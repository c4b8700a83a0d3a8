/* mir_divide.c — division of integers: by constants through products, and one division where both its quotient and its
 * remainder are asked for. */
#include <weft_mir_abi.h>

#include "jit/scalar/mir_emitter.h"

#define SCAN 256 /* statements that are looked back over */

typedef bool Holds(const Emitter *e, const LoopNode *n, bool in_then, const u32 *what);

/* Does what stands in front of `at` hold there, statement by statement, up to where `holds` says so. `in_then`: the
 * statement is an `if`, and `at` stands in its first arm. */
static bool stood_before(const Emitter *e, u32 at, Holds *holds, const u32 *what) {
  u32 depth = 0, left = SCAN;
  for (u32 pos = at; pos-- > 0 && left-- > 0;) {
    const LoopNode *n = en(e, e->fn->body.data[pos]);
    if (n->op == LOOP_END) {
      depth++;
    } else if (loop_is_head(n)) {
      if (depth == 0 && n->op == LOOP_IF && holds(e, n, true, what)) return true;
      depth -= depth > 0;
    } else if (n->op == LOOP_ELSE && depth == 0) { /* the other arm of an open if: skip to its head, and past it */
      pos = e->lives.where[n->a];
    } else if (depth == 0 && holds(e, n, false, what)) {
      return true;
    }
  }
  return false;
}

static bool is_check(const Emitter *e, const LoopNode *n, bool in_then, const u32 *what) {
  (void)e;
  return !in_then && n->op == LOOP_CHECK && n->aux == what[1] && n->a == what[0];
}

bool mir_checked(const Emitter *e, LoopCheck kind, u32 value, u32 at) {
  const u32 what[2] = {value, kind};
  return stood_before(e, at, is_check, what);
}

static bool const_of(const Emitter *e, u32 id, i64 *v) {
  const LoopNode *n = en(e, id);
  if (n->op != LOOP_CONST) return false;
  *v = (i64)n->imm;
  return true;
}

/* An `if` whose first arm is reached with what[0] at 0 or above. */
static bool tells_sign(const Emitter *e, const LoopNode *n, bool in_then, const u32 *what) {
  if (!in_then) return false;
  const LoopNode *c = en(e, loop_list(e->fn, n)[0]);
  i64 v;
  switch (c->op) {
    case LOOP_GT: return c->a == what[0] && const_of(e, c->b, &v) && v >= -1;
    case LOOP_GE: return c->a == what[0] && const_of(e, c->b, &v) && v >= 0;
    case LOOP_LT: return c->b == what[0] && const_of(e, c->a, &v) && v >= -1;
    case LOOP_LE: return c->b == what[0] && const_of(e, c->a, &v) && v >= 0;
    default: return false;
  }
}

/* Certainly not negative, as a number of 64 bits. */
static bool not_negative(const Emitter *e, u32 id, u32 at, u32 depth) {
  const LoopNode *n = en(e, id);
  i64 v;
  if (et(e, id) == LT_U8 || et(e, id) == LT_U32) return true;
  if (et(e, id) == LT_U64 || depth > 4) return false;
  switch (n->op) {
    case LOOP_CONST: return (i64)n->imm >= 0;
    case LOOP_INDEX: return true;
    case LOOP_AND:
    case LOOP_MAX: if (not_negative(e, n->a, at, depth + 1) || not_negative(e, n->b, at, depth + 1)) return true; break;
    case LOOP_SHR:
    case LOOP_FLOORDIV:
      if (not_negative(e, n->a, at, depth + 1) && not_negative(e, n->b, at, depth + 1)) return true;
      break;
    case LOOP_MOD: if (const_of(e, n->b, &v) && v > 0) return true; break;
    case LOOP_CONVERT:
      if (et(e, id) == LT_I64 && loop_is_int(et(e, n->a)) && not_negative(e, n->a, at, depth + 1)) return true;
      break;
    default: break;
  }
  return stood_before(e, at, tells_sign, &id);
}

static bool floors(const LoopNode *n) {
  return loop_is_signed((LoopType)n->type) && (n->op == LOOP_FLOORDIV || n->op == LOOP_MOD);
}

/* What was divided before in this block, as long as addresses are known there. */
static MirDivision *same_division(Emitter *e, const LoopNode *n) {
  for (u32 i = 0; i < e->divisions; i++)
    if (e->division[i].a == n->a && e->division[i].b == n->b && e->division[i].floors == floors(n))
      return &e->division[i];
  return NULL;
}

static bool wants_quotient(const LoopNode *n) { return n->op == LOOP_DIV || n->op == LOOP_FLOORDIV; }

/* The quotient rounded down, by a product: floor(x / d) = floor(x m / 2^(63+l)) for 0 <= x < 2^63, where l is the
 * least with 2^l >= d and m = floor(2^(63+l) / d) + 1 (Granlund and Montgomery, 1994, theorem 4.2). Of x < 0 it is
 * what ~x gives, inverted. */
static MIR_reg_t by_product(Emitter *e, u32 dividend, MIR_reg_t a, u64 d, u32 at) {
  u32 l = 64 - (u32)__builtin_clzll(d - 1);
  u64 m = (u64)(((unsigned __int128)1 << (63 + l)) / d) + 1;
  bool plain = not_negative(e, dividend, at, 0);
  MIR_reg_t q = mir_temp(e, LT_I64), x = a, sign = 0, factor = mir_temp(e, LT_I64);
  if (!plain) {
    sign = mir_temp(e, LT_I64);
    x = mir_temp(e, LT_I64);
    rri(e, MIR_RSH, sign, a, 63);
    rrr(e, MIR_XOR, x, a, sign);
  }
  ins2(e, MIR_MOV, R(e, factor), I(e, (i64)m));
  ins3(e, MIR_UMOD, R(e, q), R(e, x), R(e, factor)); /* the high half of the product: jit/mir/quick.sed */
  if (l > 1) rri(e, MIR_URSH, q, q, l - 1);
  if (!plain) rrr(e, MIR_XOR, q, q, sign);
  return q;
}

/* Quotient and remainder of the processor, by any divisor. */
static void by_division(Emitter *e, const LoopNode *n, MirDivision *into, MIR_op_t a, MIR_op_t b, u32 at) {
  LoopType t = (LoopType)n->type;
  const LoopNode *divisor = en(e, n->b);
  MIR_label_t done = new_label(e), zero = new_label(e), minus = new_label(e);
  MIR_reg_t q = mir_temp(e, t), rest = mir_temp(e, t);
  bool known = divisor->op == LOOP_CONST && divisor->imm != 0 && divisor->imm != UINT64_MAX;
  bool is_signed = loop_is_signed(t);
  if (!known) {
    if (!mir_checked(e, LOOP_CHECK_ZERO_DIV, n->b, at)) ins3(e, MIR_BEQ, L(e, zero), b, I(e, 0));
    if (is_signed) ins3(e, MIR_BEQ, L(e, minus), b, I(e, -1));
  }
  ins3(e, is_signed ? MIR_DIV : MIR_UDIV, R(e, q), a, b);
  ins3(e, MIR_MUL, R(e, rest), R(e, q), b);
  ins3(e, MIR_SUB, R(e, rest), a, R(e, rest));
  if (into->floors) { /* one less when the rest is not 0 and of the other sign; most numbers have one sign */
    MIR_reg_t sign = mir_temp(e, t);
    ins3(e, MIR_XOR, R(e, sign), R(e, rest), b);
    bri(e, MIR_BGE, done, sign, 0);
    bri(e, MIR_BEQ, done, rest, 0);
    rri(e, MIR_SUB, q, q, 1);
    ins3(e, MIR_ADD, R(e, rest), R(e, rest), b);
  }
  if (!known) {
    jump(e, done);
    put_label(e, zero);
    ins2(e, MIR_MOV, R(e, q), I(e, 0));
    mir_move(e, t, rest, a);
    jump(e, done);
    put_label(e, minus);
    mir_negate(e, t, q, a);
    ins2(e, MIR_MOV, R(e, rest), I(e, 0));
  }
  put_label(e, done);
  mir_extend(e, t, q);
  mir_extend(e, t, rest);
  into->quotient = q;
  into->rest = rest;
}

void mir_divide(Emitter *e, u32 id, const LoopNode *n) {
  LoopType t = (LoopType)n->type;
  MirDivision now = {.a = n->a, .b = n->b, .floors = floors(n)}, *d = same_division(e, n);
  MIR_op_t a = R(e, mir_in_reg(e, t, mir_op(e, n->a)));
  i64 by = 0;
  bool product = WEFT_MIR_MULHI && !e->fn->module->divisions_stay && t != LT_U64 &&
                 (now.floors || !loop_is_signed(t)) && const_of(e, n->b, &by) && by > 1;
  if (!d) {
    u32 at = e->lives.where[id];
    e->fn->module->products += product;
    if (product) now.quotient = by_product(e, n->a, a.u.reg, (u64)by, at);
    else by_division(e, n, &now, a, R(e, mir_in_reg(e, t, mir_op(e, n->b))), at);
    d = &e->division[e->divisions % COUNT_OF(e->division)];
    if (e->divisions < COUNT_OF(e->division)) e->divisions++;
    *d = now;
  }
  if (!wants_quotient(n) && !d->rest) {
    d->rest = mir_temp(e, t);
    MIR_reg_t factor = mir_in_reg(e, t, I(e, by));
    ins3(e, MIR_MUL, R(e, d->rest), R(e, d->quotient), R(e, factor));
    ins3(e, MIR_SUB, R(e, d->rest), a, R(e, d->rest));
  }
  mir_move(e, t, mir_reg(e, id), R(e, wants_quotient(n) ? d->quotient : d->rest));
}

void mir_mulhi(Emitter *e, u32 id, const LoopNode *n) {
  LoopType t = (LoopType)n->type;
  MIR_op_t a = mir_op(e, n->a), b = mir_op(e, n->b);
  if (loop_type_bytes(t) == 8) {
    if (!WEFT_MIR_MULHI) {
      MIR_op_t args[2] = {a, b};
      mir_call_op(e, LOOP_MULHI, t, mir_reg(e, id), 2, args);
      return;
    }
    MIR_reg_t r = mir_own(e, id);
    ins3(e, loop_is_signed(t) ? MIR_MOD : MIR_UMOD, R(e, r), R(e, mir_in_reg(e, t, a)), R(e, mir_in_reg(e, t, b)));
    mir_finish(e, id, r);
    return;
  }
  MIR_reg_t r = mir_temp(e, t);
  ins3(e, MIR_MUL, R(e, r), a, b);
  ins3(e, loop_is_signed(t) ? MIR_RSH : MIR_URSH, R(e, r), R(e, r), I(e, loop_type_bytes(t) * 8));
  mir_finish(e, id, r);
}
