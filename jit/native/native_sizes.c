/* native_sizes.c — sizes and bounds of slices that change from trip to trip, as numbers of a native function (see
 * native.h). */
#include "jit/native/native.h"

typedef struct OwnSymbol {
  Native *n;
  bool found;
} OwnSymbol;

static void look_own(void *ctx, u32 sym) {
  OwnSymbol *o = ctx;
  const SizeSym *s = &o->n->g->sizes.syms.data[sym];
  o->found |= s->unbacked && s->source && !native_outside(o->n, s->source);
}

bool native_size_own(Native *n, Dim d) {
  OwnSymbol o = {n, false};
  if (size_is_unbacked(&n->g->sizes, d)) size_symbols(&n->g->sizes, d, look_own, &o);
  return o.found;
}

static u32 sizes_binary(Native *n, LoopOp op, u32 a, u32 b) {
  return a && b ? loop_emit(n->fn, op, LT_VOID, a, b, 0) : 0;
}

static u32 refuse(Native *n) {
  native_bail(n, "a size that depends on the trip");
  return 0;
}

/* Sums and products wrap, as loops do: right, as long as what comes out lies in i64. */
u32 native_size_ir(Native *n, Dim d) {
  SizePool *p = &n->g->sizes;
  if (d == DIM_NONE) return refuse(n);
  if (!native_size_own(n, d)) return native_dim_ir(n, d);
  if (!size_range(p, d).fits) return refuse(n);
  const SizeNode x = p->nodes.data[-d];
  u32 v = 0;
  switch ((SizeKind)x.kind) {
    case SK_sym: {
      ValueId source = p->syms.data[x.value].source;
      if (value_type(n->g, source)->rank) return refuse(n);
      return element_convert(n->fn, native_number(n, source), native_type(n, source), LT_I64);
    }
    case SK_add:
      v = loop_const_i(n->fn, LT_I64, x.value);
      for (u32 i = 0; i < x.count && v; i++) {
        const SizeTerm t = p->terms.data[x.first + i];
        u32 part = native_size_ir(n, t.of);
        if (t.coef != 1) part = sizes_binary(n, LOOP_MUL, part, loop_const_i(n->fn, LT_I64, t.coef));
        v = i == 0 && x.value == 0 ? part : sizes_binary(n, LOOP_ADD, v, part);
      }
      break;
    case SK_mul:
    case SK_min:
    case SK_max:
      for (u32 i = 0; i < x.count; i++) {
        u32 part = native_size_ir(n, p->terms.data[x.first + i].of);
        v = i == 0 ? part
                   : sizes_binary(n, x.kind == SK_mul ? LOOP_MUL : x.kind == SK_min ? LOOP_MIN : LOOP_MAX, v, part);
      }
      break;
    default: return refuse(n);
  }
  return v ? v : refuse(n);
}
