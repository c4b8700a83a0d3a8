/* vector_math.c — `math NAME` expanded from its definition in lang/math.loops (vector_emitter.h).
 *
 * The first arm of an `if` is the rare one: it is left out, its condition joined to a mask; lanes where the mask is set
 * take their result from the function's strip kernel, called from code behind the function's end. */
#include <string.h>

#include "jit/loops/define_math.h"
#include "jit/vector/vector_emitter.h"

enum { NESTED_MOST = 8 };

static const LoopFn *definition(VecFn *f, const char *name, LoopType type) {
  LoopModule *m = f->level->defs;
  const LoopFn *fn = loop_module_find_math(m, name, type);
  if (fn) return fn;
  if (define_math(m, name, type, NULL) != WEFT_OK) return refuse(f, "a function without definition"), NULL;
  return loop_module_find_math(m, name, type);
}

static const char *name_in(const LoopFn *fn, const LoopNode *n) { return name_text(&fn->module->names, (Name)n->imm); }

static u32 widest_of(VecFn *f, const LoopFn *fn, u32 depth) {
  u32 most = 4;
  if (!fn || depth > NESTED_MOST) return 8;
  for (u32 i = 1; i < fn->nodes.count; i++) {
    const LoopNode *n = loop_node(fn, i);
    if (n->type != LT_VOID && n->type != LT_PTR && element_bytes((LoopType)n->type) == 8) return 8;
    if (n->op == LOOP_MATH && widest_of(f, definition(f, name_in(fn, n), (LoopType)n->type), depth + 1) == 8) return 8;
  }
  return most;
}

u32 math_widest(VecFn *f, const LoopNode *n) {
  return widest_of(f, definition(f, name_in(f->fn, n), (LoopType)n->type), 0);
}

static VReg expand(VecFn *f, const LoopFn *fn, const VReg *args);

static VReg nested(VecFn *f, const LoopFn *fn, const LoopNode *n, const VReg *args) {
  const LoopFn *callee = definition(f, name_in(fn, n), (LoopType)n->type);
  if (!callee) return 0;
  if (f->math_depth++ > NESTED_MOST) refuse(f, "functions that nest too deeply");
  VReg r = f->failed ? 0 : expand(f, callee, args);
  f->math_depth--;
  return r;
}

static VReg value_of(VecFn *f, const LoopFn *fn, const VReg *map, u32 id) {
  const LoopNode *n = loop_node(fn, id);
  return !id ? 0 : n->op == LOOP_CONST ? lower_constant(f, (LoopType)n->type, n->imm) : map[id];
}

/* What the node is made of, when it is that operation, by that constant if there is one; 0: it is not. */
static u32 under(const LoopFn *fn, u32 id, LoopOp op, u64 by) {
  const LoopNode *n = loop_node(fn, id), *b = loop_node(fn, n->b);
  return n->op == op && (!n->b || (b->op == LOOP_CONST && b->imm == by)) ? n->a : 0;
}

/* AVX-512: p 2^k as lang/math.loops writes it, (p 2^h) 2^(k - h), where k is the low bits of its sum with 1.5 2^23
 * or 2^52 and h their half, by one instruction that takes k as the float it was before that sum. The first product
 * there is exact: both round once. */
static VReg scaled(VecFn *f, const LoopFn *fn, const VReg *map, u32 id, LoopType t) {
  bool wide = t == LT_F64;
  u64 digits = wide ? 52 : 23, bias = wide ? 1023 : 127, one_half = wide ? 0x4338000000000000u : 0x4B400000;
  const LoopNode *n = loop_node(fn, id), *p = loop_node(fn, n->a);
  if (!f->evex || n->op != LOOP_MUL || p->op != LOOP_MUL) return 0;
  u32 half = under(fn, under(fn, under(fn, p->b, LOOP_BITCAST, 0), LOOP_SHL, digits), LOOP_ADD, bias),
      bits = under(fn, half, LOOP_SHR, 1);
  u32 rest = under(fn, under(fn, under(fn, n->b, LOOP_BITCAST, 0), LOOP_SHL, digits), LOOP_ADD, bias);
  const LoopNode *r = loop_node(fn, rest);
  if (!bits || r->op != LOOP_SUB || r->a != bits || r->b != half) return 0;
  u32 more = under(fn, bits, LOOP_SUB, 1), sum = under(fn, more ? more : bits, LOOP_BITCAST, 0), k = 1;
  while (k < id && under(fn, k, LOOP_SUB, one_half) != sum) k++;
  if (!sum || k == id) return 0;
  VReg by = map[k];
  if (more) by = lower_op(f, LOOP_SUB, t, by, lower_constant(f, t, bias << digits), 0);
  return v_rvm(f, by_width(t, V_SCALEFPS), vlength(f, t), value_of(f, fn, map, p->a), by);
}

/* One statement of a definition; gives what a `return` returns. */
static VReg expand_statement(VecFn *f, const LoopFn *fn, VReg *map, u32 id) {
  const LoopNode *n = loop_node(fn, id);
  LoopType type = (LoopType)n->type;
  VReg a = n->a && n->op != LOOP_YIELD && n->op != LOOP_RETURN ? value_of(f, fn, map, n->a) : 0;
  switch (loop_op_form((LoopOp)n->op)) {
    case LOOP_FORM_UNARY:
    case LOOP_FORM_BINARY:
    case LOOP_FORM_TERNARY:
      if ((map[id] = scaled(f, fn, map, id, type))) return 0;
      map[id] = lower_op(f, (LoopOp)n->op, type, a, value_of(f, fn, map, n->b), value_of(f, fn, map, n->c)); return 0;
    case LOOP_FORM_COMPARE:
      map[id] = lower_compare(f, (LoopOp)n->op, loop_type_of(fn, n->a), a, value_of(f, fn, map, n->b));
      return 0;
    case LOOP_FORM_SELECT:
      map[id] = lower_select(f, type, a, value_of(f, fn, map, n->b), value_of(f, fn, map, n->c));
      return 0;
    case LOOP_FORM_CONVERT:
      map[id] = n->op == LOOP_BITCAST ? a : lower_convert(f, type, loop_type_of(fn, n->a), a);
      return 0;
    case LOOP_FORM_MATH: {
      VReg args[3] = {a, value_of(f, fn, map, n->b), value_of(f, fn, map, n->c)};
      map[id] = nested(f, fn, n, args);
      return 0;
    }
    case LOOP_FORM_TERM:
      if (n->op == LOOP_RETURN) return value_of(f, fn, map, loop_list(fn, n)[0]);
      for (u32 i = 0; i < n->count; i++) map[loop_result_of(fn, n->a, i)] = value_of(f, fn, map, loop_list(fn, n)[i]);
      return 0;
    default: refuse(f, "a function with loops or tables"); return 0;
  }
}

static void join_rare(VecFn *f, VReg cond) { f->rare = f->rare ? lower_logic(f, LOOP_OR, f->rare, cond) : cond; }

static VReg expand(VecFn *f, const LoopFn *fn, const VReg *args) {
  size_t bytes = sizeof(VReg) * fn->nodes.count;
  VReg *map = mem_alloc_zero(f->alloc, bytes), result = 0;
  if (!map) return refuse(f, "out of memory"), 0;
  for (u32 i = 0; i < fn->params.count; i++) map[fn->params.data[i]] = args[i];
  u32 skip = 0; /* heads open inside the arm that is left out */
  for (u32 pos = 0; pos < fn->body.count && !f->failed; pos++) {
    u32 id = fn->body.data[pos];
    const LoopNode *n = loop_node(fn, id);
    if (skip) {
      if (loop_is_head(n)) skip++;
      else if (n->op == LOOP_END || (n->op == LOOP_ELSE && skip == 1)) skip--;
      continue;
    }
    if (n->op == LOOP_IF) {
      join_rare(f, value_of(f, fn, map, loop_cond_of(fn, id)));
      skip = 1;
    } else if (n->op != LOOP_END) {
      VReg r = expand_statement(f, fn, map, id);
      if (r) result = r;
    }
  }
  mem_free(f->alloc, map, bytes);
  return result;
}

static u32 call_of(VecFn *f, u64 address) {
  for (u32 i = 0; i < f->calls.count; i++)
    if (f->calls.data[i] == address) return i;
  if (!vec_push(f->alloc, &f->calls, address)) refuse(f, "out of memory");
  return f->calls.count - 1;
}

VReg lower_math(VecFn *f, const LoopFn *caller, const LoopNode *n, const VReg *args) {
  LoopType type = (LoopType)n->type;
  f->rare = 0;
  VReg usual = nested(f, caller, n, args);
  if (f->failed || !f->rare) return usual;
  const LoopMath *m = loop_module_math(caller->module, name_in(caller, n), type);
  if (!m || !m->strip || n->c) return refuse(f, "a function with rare branches and no strip kernel"), 0;
  u64 address = (u64)(uintptr_t)m->strip;
  if (!f->scratch_x) {
    f->scratch_x = (u32)frame_room(f, 64, 64);
    f->scratch_y = (u32)frame_room(f, 64, 64);
    f->scratch_out = (u32)frame_room(f, 64, 64);
  }
  VReg mask = !f->evex && element_bytes(type) == 8 ? flags_to_wide(f, f->rare) : f->rare, d = new_vec(f);
  put(f, (VIns){.op = P_RARE, .length = vlength(f, type), .dst = d, .a = args[0], .b = n->b ? args[1] : 0, .c = usual,
                .mask = mask,
    .imm = (u8)element_bytes(type), .flags = VI_TIED | VI_EARLY, .x = (u64)call_of(f, address) << 8 | f->lanes});
  f->rare = 0;
  return d;
}

/* ---- divisors that do not change --------------------------------------------------------------- */

/* x / s of a loop in which s does not change: with r = 1 / s rounded, q = x * r, and then q - (q * s - x) * r is x
 * / s rounded, where nothing under- or overflows (Markstein, IBM Journal of Research and Development 34, 1990:
 * where q is one of the two next to x / s; f64: by the same step before. Of f32 all quotients near the middle of
 * two numbers were tried), and of zeros as well, for s above 0. Other x, and all where s is not of the usual size,
 * are divided. */
static const struct {
  u64 one, divisor, divisors, least, span; /* bits: of 1; of the least s, what the greatest lie above it; of x */
} usual[2] = {{127 << 23, (127 - 24) << 23, 50 << 23, (127 - 98) << 23, 198 << 23},
              {1023ull << 52, (1023 - 100ull) << 52, 200ull << 52, (1023 - 900ull) << 52, 1800ull << 52}};

static VReg above(VecFn *f, LoopType bits, VReg x, u64 least, VReg span, LoopOp op) {
  return lower_compare(f, op, bits, lower_op(f, LOOP_SUB, bits, x, new_const(f, least, element_bytes(bits)), 0), span);
}

static VDivisor *divisor_of(VecFn *f, u32 id) {
  for (u32 k = 0; k < f->divisors; k++)
    if (f->divisor[k].id == id) return &f->divisor[k];
  return NULL;
}

void begin_divisors(VecFn *f) {
  for (u32 pos = f->inside_first; f->evex && pos <= f->inside_last; pos++) {
    const LoopNode *n = vnode(f, f->fn->body.data[pos]);
    LoopType t = (LoopType)n->type;
    u32 bytes = element_bytes(t);
    bool wide = bytes == 8;
    if (n->op != LOOP_DIV || !loop_is_float(t) || !(f->spread[n->b] || vnode(f, n->b)->op == LOOP_CONST) ||
        f->divisors == COUNT_OF(f->divisor) || divisor_of(f, n->b))
      continue;
    VReg s = operand(f, n->b);
    VReg fits = above(f, wide ? LT_U64 : LT_U32, s, usual[wide].divisor, new_const(f, usual[wide].divisors, bytes),
                      LOOP_LT), none = new_const(f, 0, bytes);
    VDivisor *d = &f->divisor[f->divisors++];
    d->id = n->b;
    d->inverse = lower_op(f, LOOP_DIV, t, new_const(f, usual[wide].one, bytes), s, 0);
    d->span = lower_select(f, t, fits, new_const(f, usual[wide].span, bytes), none);
    d->zero = lower_select(f, t, fits, none, new_const(f, ~(u64)0, bytes));
  }
}

VReg lower_quotient(VecFn *f, const LoopNode *n) {
  LoopType t = (LoopType)n->type;
  u32 bytes = element_bytes(t);
  bool wide = bytes == 8;
  VReg x = operand(f, n->a), s = operand(f, n->b);
  const VDivisor *by = divisor_of(f, n->b);
  if (!by) return lower_op(f, LOOP_DIV, t, x, s, 0);
  VReg q = lower_op(f, LOOP_MUL, t, x, by->inverse, 0), d = new_vec(f);
  for (u32 step = 0; step <= wide; step++)
    q = lower_op(f, LOOP_FMA, t,
                 lower_op(f, LOOP_NEG, t, lower_op(f, LOOP_FMA, t, q, s, lower_op(f, LOOP_NEG, t, x, 0, 0)), 0, 0),
                 by->inverse, q);
  VReg rare = above(f, wide ? LT_U64 : LT_U32, lower_op(f, LOOP_ABS, t, x, 0, 0), usual[wide].least, by->span, LOOP_GE);
  rare = lower_logic(f, LOOP_AND, rare, lower_compare(f, LOOP_NE, t, x, by->zero));
  put(f, (VIns){.op = P_RARE, .length = vlength(f, t), .dst = d, .a = x, .b = s, .c = q, .mask = rare, .imm = (u8)bytes,
                .flags = VI_TIED | VI_EARLY, .x = (u64)RARE_DIVIDED << 8 | f->lanes});
  return d;
}
