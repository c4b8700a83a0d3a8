/* loops_c.c — loop IR as C text: for scalar math functions, ahead-of-time export, and as a test oracle.
 *
 * Every value is a C variable v<id>; heads become C loops, so `next` and `break` are `continue` and `break` (only
 * ifs lie between). The prelude holds what C has no operator for; reductions and scans are instances of its LW_FOLD. */
#include "jit/loops/loops.h"

#include <math.h>
#include <string.h>

static const char prelude[] =
    "#include <stdint.h>\n"
    "#include <string.h>\n"
    "#ifndef LW_PRELUDE\n#define LW_PRELUDE\n"
    "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
    "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n"
    "#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n"
    "#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
    "typedef uint8_t lw_i1;\ntypedef uint8_t lw_u8;\ntypedef int32_t lw_i32;\ntypedef uint32_t lw_u32;\n"
    "typedef int64_t lw_i64;\ntypedef uint64_t lw_u64;\ntypedef float lw_f32;\ntypedef double lw_f64;\n"
    "typedef struct { uint16_t bits; } lw_f16;\ntypedef struct { uint16_t bits; } lw_bf16;\n"
    "typedef struct lw_ctx lw_ctx;\n"
    "struct lw_ctx {\n"
    "  uint64_t *results; int64_t budget, depth;\n"
    "  uint32_t (*poll)(lw_ctx *);\n"
    "  void (*frame)(lw_ctx *, uint64_t tag, uint32_t exit, const uint64_t *values, uint32_t count);\n"
    "  void *owner;\n};\n"
    "#define LW_BITS(NAME, TO, FROM) static inline TO NAME(FROM v) { TO r = 0; memcpy(&r, "
    "&v, sizeof v < sizeof r ? sizeof v : sizeof r); return r; }\n"
    "LW_BITS(lw_f64_bits, uint64_t, double) LW_BITS(lw_bits_f64, double, uint64_t)\n"
    "LW_BITS(lw_f32_bits, uint32_t, float) LW_BITS(lw_bits_f32, float, uint32_t)\n"
    "#define LW_WORD_I(T) static inline uint64_t lw_word_##T(lw_##T v) { return (uint64_t)v; "
    "} static inline lw_##T lw_of_##T(uint64_t w) { return (lw_##T)w; }\n"
    "LW_WORD_I(i1) LW_WORD_I(u8) LW_WORD_I(i32) LW_WORD_I(u32) LW_WORD_I(i64) LW_WORD_I(u64)\n"
    "static inline uint64_t lw_word_f32(float v) { return lw_f32_bits(v); }\n"
    "static inline float lw_of_f32(uint64_t w) { return lw_bits_f32((uint32_t)w); }\n"
    "static inline uint64_t lw_word_f64(double v) { return lw_f64_bits(v); }\n"
    "static inline double lw_of_f64(uint64_t w) { return lw_bits_f64(w); }\n"
    "/* integers: U is the unsigned twin, W the width */\n"
    "#define LW_INT(T, U, WIDE, W) \\\n"
    "static inline lw_##T lw_add_##T(lw_##T a, lw_##T b) { return (lw_##T)((U)a + (U)b); } \\\n"
    "static inline lw_##T lw_sub_##T(lw_##T a, lw_##T b) { return (lw_##T)((U)a - (U)b); } \\\n"
    "static inline lw_##T lw_mul_##T(lw_##T a, lw_##T b) { return (lw_##T)((U)a * (U)b); } \\\n"
    "static inline lw_##T lw_mulhi_##T(lw_##T a, lw_##T b) { return (lw_##T)(((WIDE)a * (WIDE)b) >> W); } \\\n"
    "static inline lw_##T lw_min_##T(lw_##T a, lw_##T b) { return b < a ? b : a; } \\\n"
    "static inline lw_##T lw_max_##T(lw_##T a, lw_##T b) { return a < b ? b : a; } \\\n"
    "static inline lw_##T lw_and_##T(lw_##T a, lw_##T b) { return (lw_##T)(a & b); } \\\n"
    "static inline lw_##T lw_or_##T(lw_##T a, lw_##T b) { return (lw_##T)(a | b); } \\\n"
    "static inline lw_##T lw_xor_##T(lw_##T a, lw_##T b) { return (lw_##T)(a ^ b); } \\\n"
    "static inline lw_##T lw_not_##T(lw_##T a) { return (lw_##T)~a; } \\\n"
    "static inline lw_##T lw_neg_##T(lw_##T a) { return (lw_##T)(0 - (U)a); } \\\n"
    "static inline lw_##T lw_shl_##T(lw_##T a, lw_##T b) { return (U)b < W ? (lw_##T)((U)a << (U)b) : 0; }\n"
    "LW_INT(u8, uint8_t, unsigned, 8) LW_INT(u32, uint32_t, uint64_t, 32) LW_INT(u64, "
    "uint64_t, unsigned __int128, 64)\n"
    "LW_INT(i32, uint32_t, int64_t, 32) LW_INT(i64, uint64_t, __int128, 64)\n"
    "#define LW_SIGNED(T, W) \\\n"
    "static inline lw_##T lw_div_##T(lw_##T a, lw_##T b) { return b == 0 ? 0 : b == -1 ? lw_neg_##T(a) : a / b; } \\\n"
    "static inline lw_##T lw_rem_##T(lw_##T a, lw_##T b) { return b == 0 ? a : b == -1 ? 0 : a % b; } \\\n"
    "static inline lw_##T lw_floordiv_##T(lw_##T a, lw_##T b) { lw_##T r = lw_rem_##T(a, b); "
    "return lw_div_##T(a, b) - (b != 0 && r != 0 && (r < 0) != (b < 0)); } \\\n"
    "static inline lw_##T lw_mod_##T(lw_##T a, lw_##T b) { lw_##T r = lw_rem_##T(a, "
    "b); return b != 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r; } \\\n"
    "static inline lw_##T lw_abs_##T(lw_##T a) { return a < 0 ? lw_neg_##T(a) : a; } \\\n"
    "static inline lw_##T lw_shr_##T(lw_##T a, lw_##T b) { return a >> ((u##T##_t)b < W ? b : W - 1); }\n"
    "typedef uint32_t ui32_t;\ntypedef uint64_t ui64_t;\n"
    "LW_SIGNED(i32, 32) LW_SIGNED(i64, 64)\n"
    "#define LW_UNSIGNED(T, W) \\\n"
    "static inline lw_##T lw_div_##T(lw_##T a, lw_##T b) { return (lw_##T)(b == 0 ? 0 : a / b); } \\\n"
    "static inline lw_##T lw_rem_##T(lw_##T a, lw_##T b) { return (lw_##T)(b == 0 ? a : a % b); } \\\n"
    "static inline lw_##T lw_floordiv_##T(lw_##T a, lw_##T b) { return lw_div_##T(a, b); } \\\n"
    "static inline lw_##T lw_mod_##T(lw_##T a, lw_##T b) { return lw_rem_##T(a, b); } \\\n"
    "static inline lw_##T lw_abs_##T(lw_##T a) { return a; } \\\n"
    "static inline lw_##T lw_shr_##T(lw_##T a, lw_##T b) { return (lw_##T)(b < W ? a >> b : 0); }\n"
    "LW_UNSIGNED(u8, 8) LW_UNSIGNED(u32, 32) LW_UNSIGNED(u64, 64)\n"
    "static inline lw_i1 lw_and_i1(lw_i1 a, lw_i1 b) { return (lw_i1)(a & b); }\n"
    "static inline lw_i1 lw_or_i1(lw_i1 a, lw_i1 b) { return (lw_i1)(a | b); }\n"
    "static inline lw_i1 lw_xor_i1(lw_i1 a, lw_i1 b) { return (lw_i1)(a ^ b); }\n"
    "static inline lw_i1 lw_not_i1(lw_i1 a) { return (lw_i1)!a; }\n"
    "#define LW_FLOAT(T, C, S) \\\n"
    "static inline C lw_add_##T(C a, C b) { return a + b; } \\\n"
    "static inline C lw_sub_##T(C a, C b) { return a - b; } \\\n"
    "static inline C lw_mul_##T(C a, C b) { return a * b; } \\\n"
    "static inline C lw_div_##T(C a, C b) { return a / b; } \\\n"
    "static inline C lw_neg_##T(C a) { return -a; } \\\n"
    "static inline C lw_fma_##T(C a, C b, C c) { return __builtin_fma##S(a, b, c); } \\\n"
    "static inline C lw_sqrt_##T(C a) { return __builtin_sqrt##S(a); } \\\n"
    "static inline C lw_abs_##T(C a) { return __builtin_fabs##S(a); } \\\n"
    "static inline C lw_floor_##T(C a) { return __builtin_floor##S(a); } \\\n"
    "static inline C lw_ceil_##T(C a) { return __builtin_ceil##S(a); } \\\n"
    "static inline C lw_trunc_##T(C a) { return __builtin_trunc##S(a); } \\\n"
    "static inline C lw_rint_##T(C a) { return __builtin_rint##S(a); } \\\n"
    "static inline C lw_copysign_##T(C a, C b) { return __builtin_copysign##S(a, b); } \\\n"
    "static inline C lw_min_##T(C a, C b) { return a < b ? a : b < a ? b : a == b ? (__builtin_signbit(a) ? a : "
    "b) : a + b; } \\\n"
    "static inline C lw_max_##T(C a, C b) { return a > b ? a : b > a ? b : a == b ? (__builtin_signbit(a) ? b : "
    "a) : a + b; }\n"
    "LW_FLOAT(f32, float, f) LW_FLOAT(f64, double, )\n"
    "#define LW_FIT(T, ABOVE, BELOW, LOW, HIGH) \\\n"
    "static inline int lw_fit_##T(double v) { return v > (ABOVE) && v < (BELOW); } \\\n"
    "static inline lw_##T lw_to_##T(double v) { return lw_fit_##T(v) ? (lw_##T)v : "
    "v <= (ABOVE) ? (LOW) : v >= (BELOW) ? (HIGH) : 0; }\n"
    "LW_FIT(u8, -1.0, 256.0, 0, 255) LW_FIT(i32, -2147483649.0, 2147483648.0, INT32_MIN, INT32_MAX) LW_FIT(u32, "
    "-1.0, 4294967296.0, 0, UINT32_MAX)\n"
    "LW_FIT(i64, -0x1.0000000000001p63, 0x1p63, INT64_MIN, INT64_MAX) LW_FIT(u64, -1.0, 0x1p64, 0, UINT64_MAX)\n"
    "static inline float lw_half_in(lw_f16 h) {\n"
    "  uint32_t s = (uint32_t)(h.bits & 0x8000) << 16, e = h.bits >> 10 & 31, f = h.bits & 0x3FF;\n"
    "  if (e == 0) return __builtin_copysignf((float)f * 0x1p-24f, s ? -1.0f : 1.0f);\n"
    "  return lw_bits_f32(s | (e == 31 ? 0x7F800000u : (e + 112) << 23) | f << 13);\n}\n"
    "static inline lw_f16 lw_half_out(float v) {\n"
    "  uint32_t s = lw_f32_bits(v) >> 16 & 0x8000, m = lw_f32_bits(v) & 0x7FFFFFFF;\n"
    "  if (v != v) return (lw_f16){0x7E00};\n"
    "  if (m >= 0x477FF000) return (lw_f16){(uint16_t)(s | 0x7C00)};\n"
    "  if (m < 0x38800000) return (lw_f16){(uint16_t)(s | (uint32_t)__builtin_rintf(lw_bits_f32(m) * 0x1p24f))};\n"
    "  m += 0xFFF + (m >> 13 & 1);\n"
    "  return (lw_f16){(uint16_t)(s | ((m >> 13) - (112u << 10)))};\n}\n"
    "static inline float lw_brain_in(lw_bf16 h) { return lw_bits_f32((uint32_t)h.bits << 16); }\n"
    "static inline lw_bf16 lw_brain_out(float v) {\n"
    "  uint32_t m = lw_f32_bits(v);\n"
    "  return (lw_bf16){(uint16_t)(v != v ? 0x7FC0 : (m + 0x7FFF + (m >> 16 & 1)) >> 16)};\n}\n"
    "static inline float lw_round_f16_f32(float v) { return lw_half_in(lw_half_out(v)); }\n"
    "static inline float lw_round_bf16_f32(float v) { return lw_brain_in(lw_brain_out(v)); }\n"
    "static inline uint64_t lw_key(uint64_t n, "
    "uint64_t e) { return n << 48 | (e < 0xFFFFFFFFFFFF ? e : 0xFFFFFFFFFFFF); }\n"
    "/* reductions and scans, block by block: LANES accumulators, blocks of BLOCK elements, levels upward */\n"
    "#define LW_FOLD(NAME, T, OP, IDENTITY, LANES, BLOCK) \\\n"
    "typedef struct { T lane[16][LANES], before[16]; uint64_t count[16]; uint8_t used, any, has[16]; "
    "T total; } NAME; \\\n"
    "static void NAME##_open(NAME *f, int l) { \\\n"
    "  if (f->used <= l) f->used = (uint8_t)(l + 1), f->count[l] = 0, f->has[l] = 0; \\\n"
    "  if (f->count[l] == 0) for (int i = 0; i < LANES; i++) f->lane[l][i] = IDENTITY; } \\\n"
    "static T NAME##_block(NAME *f, int l) { \\\n"
    "  for (int h = LANES / 2; h; h /= 2) for (int i = 0; i < h; "
    "i++) f->lane[l][i] = OP(f->lane[l][i], f->lane[l][i + h]); \\\n"
    "  return f->lane[l][0]; } \\\n"
    "static void NAME##_push(NAME *f, T v) { \\\n"
    "  f->any = 1; \\\n"
    "  for (int l = 0;; l++) { \\\n"
    "    NAME##_open(f, l); \\\n"
    "    T *lane = &f->lane[l][f->count[l] % LANES]; \\\n"
    "    *lane = OP(*lane, v); \\\n"
    "    if (++f->count[l] < BLOCK) return; \\\n"
    "    v = NAME##_block(f, l); f->count[l] = 0; } } \\\n"
    "static T NAME##_result(NAME *f, T empty) { \\\n"
    "  int top = 0; \\\n"
    "  if (!f->any) return empty; \\\n"
    "  for (int l = 0; l < f->used; l++) if (f->count[l]) top = l; \\\n"
    "  for (int l = 0; l < top; l++) if (f->count[l]) { \\\n"
    "    T v = NAME##_block(f, l); f->count[l] = 0; \\\n"
    "    NAME##_open(f, l + 1); \\\n"
    "    T *lane = &f->lane[l + 1][f->count[l + 1]++ % LANES]; *lane = OP(*lane, v); } \\\n"
    "  return NAME##_block(f, top); } \\\n"
    "static T NAME##_prefix(NAME *f, T v) { \\\n"
    "  T local[16]; int l = 0; \\\n"
    "  f->any = 1; \\\n"
    "  for (;; l++) { \\\n"
    "    NAME##_open(f, l); \\\n"
    "    v = local[l] = f->lane[l][0] = OP(f->lane[l][0], v); \\\n"
    "    if (++f->count[l] < BLOCK) break; \\\n"
    "    f->count[l] = 0; } \\\n"
    "  T scanned = v; \\\n"
    "  for (int k = l; k >= 0; k--) { \\\n"
    "    T out = f->has[k] ? OP(f->before[k], local[k]) : local[k]; \\\n"
    "    if (k < l) f->before[k] = scanned, f->has[k] = 1; \\\n"
    "    scanned = out; } \\\n"
    "  return f->total = scanned; }\n"
    "#endif\n";

void loops_c_prelude(Buf *out) { buf_puts(out, prelude); }

typedef struct Writer {
  const LoopFn *fn;
  Buf *out;
  u32 depth;
  VEC(u32) open;
  bool failed;
} Writer;

static const LoopNode *c_node(const Writer *w, u32 id) { return loop_node(w->fn, id); }
static const char *type_text(const Writer *w, u32 id) { return loop_type_text(loop_type_of(w->fn, id)); }

static void put_constant(Buf *out, LoopType type, u64 bits) {
  f64 v;
  if (type == LT_F32) {
    u32 low = (u32)bits;
    f32 v32;
    memcpy(&v32, &low, 4);
    v = (f64)v32;
  } else {
    memcpy(&v, &bits, 8);
  }
  switch (type) {
    case LT_F32:
    case LT_F64:
      if (isnan(v)) buf_puts(out, type == LT_F64 ? "__builtin_nan(\"\")" : "__builtin_nanf(\"\")");
      else if (isinf(v)) buf_printf(out, "%s__builtin_inf%s()", v < 0 ? "-" : "", type == LT_F64 ? "" : "f");
      else buf_printf(out, "%a%s", v, type == LT_F64 ? "" : "f");
      return;
    case LT_I32: buf_printf(out, "((lw_i32)%lld)", (long long)bits); return;
    case LT_I64:
      if (bits == (u64)INT64_MIN) buf_puts(out, "INT64_MIN");
      else buf_printf(out, "INT64_C(%lld)", (long long)bits);
      return;
    default: buf_printf(out, "((lw_%s)%lluu)", loop_type_text(type), (unsigned long long)bits);
  }
}

void loops_c_tables(const LoopModule *m, Buf *out) {
  for (u32 i = 1; i < m->tables.count; i++) {
    const LoopTable *t = &m->tables.data[i];
    buf_printf(out, "static const lw_%s lw_table_%s[%u] = {", loop_type_text(t->type), name_text(&m->names, t->name),
               t->count ? t->count : 1);
    for (u32 k = 0; k < t->count; k++) {
      buf_puts(out, k % 4 ? ", " : k ? ",\n  " : "\n  ");
      put_constant(out, t->type, t->bits[k]);
    }
    buf_puts(out, "};\n");
  }
}

static void line(Writer *w) {
  for (u32 i = 0; i <= w->depth; i++) buf_puts(w->out, "  ");
}

static void c_put(Writer *w, u32 id) {
  const LoopNode *n = c_node(w, id);
  if (n->op == LOOP_CONST) put_constant(w->out, (LoopType)n->type, n->imm);
  else if (n->op == LOOP_TABLE)
    buf_printf(w->out, "lw_table_%s", name_text(&w->fn->module->names, w->fn->module->tables.data[n->a].name));
  else buf_printf(w->out, "v%u", id);
}

static void put_word(Writer *w, u32 id) {
  if (loop_type_of(w->fn, id) == LT_PTR) {
    buf_puts(w->out, "(uint64_t)(uintptr_t)");
    c_put(w, id);
    return;
  }
  buf_printf(w->out, "lw_word_%s(", type_text(w, id));
  c_put(w, id);
  buf_putc(w->out, ')');
}

static void put_index(Writer *w, const LoopNode *n) {
  const LoopTerm *t = loop_terms(w->fn, n);
  buf_printf(w->out, "[(lw_i64)((uint64_t)INT64_C(%lld)", (long long)n->imm);
  for (u32 i = 0; i < n->count; i++) {
    buf_printf(w->out, " + (uint64_t)INT64_C(%lld)", (long long)t[i].coef);
    u32 ids[3] = {t[i].var, t[i].stride[0], t[i].stride[1]};
    for (u32 k = 0; k < 3; k++) {
      if (!ids[k]) continue;
      buf_puts(w->out, " * (uint64_t)");
      c_put(w, ids[k]);
    }
  }
  buf_puts(w->out, ")]");
}

/* ---- reductions ---------------------------------------------------------------------------- */

static void fold_name(Writer *w, u32 head) {
  const LoopNode *n = c_node(w, head);
  const char *order = n->op == LOOP_SCAN ? "scan" : n->mem == LOOP_ORDER_ROWS ? "rows" : "lanes";
  buf_printf(w->out, "lw_%s_%s_%s", order, loop_reduce_text((LoopReduce)n->aux),
             type_text(w, loop_result_of(w->fn, head, 0)));
}

/* The instance of LW_FOLD that a head needs, guarded so that it stands in a file once. */
static void put_fold(Writer *w, u32 head) {
  const LoopNode *n = c_node(w, head);
  LoopType type = loop_type_of(w->fn, loop_result_of(w->fn, head, 0));
  LoopReduce op = (LoopReduce)n->aux;
  bool lanes = n->op == LOOP_REDUCE && n->mem == LOOP_ORDER_LANES;
  u32 width = lanes ? loop_lanes(type) : 1;
  u32 block = lanes ? width * LOOP_BLOCK_TRIPS : n->op == LOOP_SCAN ? LOOP_SCAN_SEGMENT : LOOP_ROW_BLOCK;
  buf_puts(w->out, "#ifndef have_");
  fold_name(w, head);
  buf_puts(w->out, "\n#define have_");
  fold_name(w, head);
  buf_puts(w->out, "\nLW_FOLD(");
  fold_name(w, head);
  buf_printf(w->out, ", lw_%s, lw_%s_%s, ", loop_type_text(type), loop_reduce_text(op), loop_type_text(type));
  put_constant(w->out, type, loop_reduce_identity(op, type));
  buf_printf(w->out, ", %u, %u)\n#endif\n", width, block);
}

/* ---- loops --------------------------------------------------------------------------------- */

static void c_assign(Writer *w, const u32 *from, u32 first, u32 count) { /* reads all before it writes any */
  if (!count) return;
  line(w);
  buf_puts(w->out, "{");
  for (u32 i = 0; i < count; i++) {
    buf_printf(w->out, " const lw_%s t%u = ", type_text(w, first + i), i);
    c_put(w, from[i]);
    buf_puts(w->out, ";");
  }
  for (u32 i = 0; i < count; i++) buf_printf(w->out, " v%u = t%u;", first + i, i);
  buf_puts(w->out, " }\n");
}

static void c_results_from_carried(Writer *w, u32 head) {
  u32 count = c_node(w, head)->b;
  for (u32 i = 0; i < count; i++) {
    line(w);
    buf_printf(w->out, "v%u = v%u;\n", loop_result_of(w->fn, head, i), loop_carry_of(w->fn, head, i));
  }
}

static void c_put_head(Writer *w, u32 id) {
  const LoopFn *fn = w->fn;
  const LoopNode *n = c_node(w, id);
  for (u32 i = 0; i < n->c; i++) {
    line(w);
    u32 r = loop_result_of(fn, id, i);
    buf_printf(w->out, "lw_%s v%u%s;\n", type_text(w, r), r, n->op == LOOP_IF ? " = 0" : "");
  }
  for (u32 i = 0; i < n->b; i++) {
    u32 c = loop_carry_of(fn, id, i);
    line(w);
    buf_printf(w->out, "lw_%s v%u = ", type_text(w, c), c);
    c_put(w, loop_init_of(fn, id, i));
    buf_puts(w->out, ";\n");
  }
  if (n->op == LOOP_REDUCE || n->op == LOOP_SCAN) {
    line(w);
    fold_name(w, id);
    buf_printf(w->out, " f%u;\n", id);
    line(w);
    buf_printf(w->out, "f%u.any = f%u.used = 0;\n", id, id);
  }
  if (n->op == LOOP_IF) {
    line(w);
    buf_puts(w->out, "if (");
    c_put(w, loop_cond_of(fn, id));
    buf_puts(w->out, ") {\n");
  } else if (n->op == LOOP_WHILE) {
    line(w);
    buf_puts(w->out, "for (;;) {\n");
  } else if (fn->kind == LOOP_KERNEL && !w->open.count) {
    line(w);
    buf_printf(w->out, "for (lw_i64 v%u = lo; v%u < hi; v%u++) {\n", id + 1, id + 1, id + 1);
  } else {
    for (u32 axis = 0; axis < n->a; axis++) {
      u32 index = loop_index_of(id, axis);
      line(w);
      buf_printf(w->out, "for (lw_i64 v%u = 0; (uint64_t)v%u < (uint64_t)", index, index);
      c_put(w, loop_trips_of(fn, id, axis));
      buf_printf(w->out, "; v%u++) {\n", index);
    }
  }
  if (!vec_push(fn->module->alloc, &w->open, id)) w->failed = true;
  w->depth++;
}

static void put_end(Writer *w, u32 head) {
  const LoopNode *n = c_node(w, head);
  w->depth--;
  line(w);
  for (u32 i = 0; i < (n->a ? n->a : 1); i++) buf_puts(w->out, "}");
  buf_puts(w->out, "\n");
  w->open.count--;
  u32 r = n->c ? loop_result_of(w->fn, head, 0) : 0;
  c_results_from_carried(w, head); /* `break` has set the carried ones */
  if (n->op != LOOP_REDUCE && n->op != LOOP_SCAN) return;
  line(w);
  LoopType type = loop_type_of(w->fn, r);
  if (n->op == LOOP_REDUCE) {
    buf_printf(w->out, "v%u = ", r);
    fold_name(w, head);
    buf_printf(w->out, "_result(&f%u, ", head);
  } else {
    buf_printf(w->out, "v%u = f%u.any ? f%u.total : (", r, head, head);
  }
  put_constant(w->out, type, loop_reduce_empty((LoopReduce)n->aux, type));
  buf_puts(w->out, ");\n");
}


/* Tells the host the frame and returns: its own exit number, or what the callee gave, in `code`. */
static void c_leave(Writer *w, u32 exit, const char *code, const u32 *ids, u32 count) {
  buf_puts(w->out, "{ const uint64_t words[] = {");
  for (u32 i = 0; i < count; i++) {
    put_word(w, ids[i]);
    buf_puts(w->out, ", ");
  }
  buf_printf(w->out, "0}; if (ctx->frame) ctx->frame(ctx, UINT64_C(%llu), %uu, words, %u); return ",
             (unsigned long long)w->fn->tag, exit, count);
  if (code) buf_printf(w->out, "%s; }\n", code);
  else buf_printf(w->out, "%uu; }\n", exit);
}

/* `e`, the row-major number of the element that is worked on. */
static void put_element(Writer *w) {
  buf_puts(w->out, "uint64_t e = 0; ");
  for (u32 i = 0; i < w->open.count; i++) {
    u32 head = w->open.data[i];
    const LoopNode *n = c_node(w, head);
    for (u32 axis = 0; axis < n->a; axis++) {
      buf_puts(w->out, "e = e * (uint64_t)");
      if (i == 0) buf_puts(w->out, "1");
      else c_put(w, loop_trips_of(w->fn, head, axis));
      buf_printf(w->out, " + (uint64_t)v%u; ", loop_index_of(head, axis));
    }
  }
}

static void put_check(Writer *w, const LoopNode *n) {
  line(w);
  buf_puts(w->out, "if (!(");
  switch (n->aux) {
    case LOOP_CHECK_INDEX:
      buf_puts(w->out, "(uint64_t)");
      c_put(w, n->a);
      buf_puts(w->out, " < (uint64_t)");
      c_put(w, n->b);
      break;
    case LOOP_CHECK_ZERO_DIV:
    case LOOP_CHECK_ASSERT:
      c_put(w, n->a);
      buf_puts(w->out, " != 0");
      break;
    default:
      buf_printf(w->out, "lw_%s((double)", loop_check_text((LoopCheck)n->aux));
      c_put(w, n->a);
      buf_puts(w->out, ")");
  }
  buf_puts(w->out, ")) ");
  if (w->fn->kind == LOOP_NATIVE) {
    c_leave(w, (u32)n->imm, NULL, loop_list(w->fn, n), n->count);
    return;
  }
  u32 depth = w->open.count;
  while (c_node(w, w->open.data[--depth])->op == LOOP_IF) continue;
  buf_puts(w->out, "{ ");
  put_element(w);
  buf_printf(w->out, "uint64_t k = lw_key(%lluu, e); if (k < key) key = k; %s; }\n", (unsigned long long)n->imm,
    c_node(w, w->open.data[depth])->op == LOOP_WHILE ? "break" : "continue");
}

/* ---- statements ---------------------------------------------------------------------------- */

static void put_callee(Writer *w, const LoopFn *f) {
  buf_printf(w->out, "lw_%s", name_text(&w->fn->module->names, f->name));
}

static const LoopFn *callee_of(const Writer *w, const LoopNode *n) {
  return loop_module_find(w->fn->module, name_text(&w->fn->module->names, (Name)n->imm));
}

static void c_put_call(Writer *w, u32 id, const LoopNode *n) {
  const LoopFn *f = callee_of(w, n);
  const u32 *list = loop_list(w->fn, n);
  bool kernel = f->kind == LOOP_KERNEL;
  u32 words = n->a - (kernel ? 2 : 0);
  for (u32 i = 0; i < n->b; i++) {
    u32 r = loop_result_of(w->fn, id, i);
    line(w);
    buf_printf(w->out, "lw_%s v%u;\n", type_text(w, r), r);
  }
  line(w);
  if (kernel) {
    buf_puts(w->out, "{ const uint64_t args[] = {");
    for (u32 i = 0; i < words; i++) {
      put_word(w, list[i]);
      buf_puts(w->out, ", ");
    }
    if (n->c) buf_puts(w->out, "0}; if (");
    else buf_printf(w->out, "0}; v%u = !(", loop_result_of(w->fn, id, 0));
    put_callee(w, f);
    buf_puts(w->out, "(args, ");
    c_put(w, list[words]);
    buf_puts(w->out, ", ");
    c_put(w, list[words + 1]);
    buf_puts(w->out, n->c ? ") != UINT64_MAX) " : ") != UINT64_MAX);");
    if (n->c) c_leave(w, n->c, NULL, list + n->a, n->count - n->a);
  } else {
    buf_puts(w->out, "{ if (--ctx->depth < 0) ctx->budget = 0; const uint32_t code = ");
    put_callee(w, f);
    buf_puts(w->out, "(ctx");
    for (u32 i = 0; i < words; i++) {
      buf_puts(w->out, ", ");
      c_put(w, list[i]);
    }
    buf_puts(w->out, "); ctx->depth++; if (code) ");
    c_leave(w, n->c, "code", list + n->a, n->count - n->a);
    for (u32 i = 0; i < n->b; i++) {
      u32 r = loop_result_of(w->fn, id, i);
      line(w);
      buf_printf(w->out, "v%u = lw_of_%s(ctx->results[%u]);\n", r, type_text(w, r), i);
    }
  }
  line(w);
  buf_puts(w->out, "}\n");
}

static void put_convert(Writer *w, const LoopNode *n) {
  LoopType from = loop_type_of(w->fn, n->a), to = (LoopType)n->type;
  if (n->op == LOOP_BITCAST) {
    if (loop_type_bytes(to) == 1) c_put(w, n->a);
    else {
      buf_printf(w->out, "lw_of_%s(lw_word_%s(", loop_type_text(to), loop_type_text(from));
      c_put(w, n->a);
      buf_puts(w->out, "))");
    }
    return;
  }
  if (loop_is_float(from) && loop_is_int(to)) buf_printf(w->out, "lw_to_%s((double)", loop_type_text(to));
  else buf_printf(w->out, "((lw_%s)", loop_type_text(to));
  c_put(w, n->a);
  buf_puts(w->out, ")");
}

static void put_memory(Writer *w, const LoopNode *n) {
  const char *in = n->mem == LT_F16 ? "lw_half_in(" : n->mem == LT_BF16 ? "lw_brain_in(" : "";
  if (n->op == LOOP_LOAD) {
    buf_puts(w->out, in);
    c_put(w, n->a);
    put_index(w, n);
    buf_puts(w->out, *in ? ")" : "");
    return;
  }
  c_put(w, n->a);
  put_index(w, n);
  buf_puts(w->out, n->mem == LT_F16 ? " = lw_half_out(" : n->mem == LT_BF16 ? " = lw_brain_out(" : " = (");
  c_put(w, n->b);
  buf_puts(w->out, ")");
}

static void put_expression(Writer *w, const LoopNode *n) {
  static const char *const compare[] = {" == ", " != ", " < ", " <= ", " > ", " >= "};
  u32 operands[3] = {n->a, n->b, n->c};
  switch (loop_op_form((LoopOp)n->op)) {
    case LOOP_FORM_COMPARE:
      c_put(w, n->a);
      buf_puts(w->out, compare[n->op - LOOP_EQ]);
      c_put(w, n->b);
      return;
    case LOOP_FORM_SELECT:
      c_put(w, n->a);
      buf_puts(w->out, " ? ");
      c_put(w, n->b);
      buf_puts(w->out, " : ");
      c_put(w, n->c);
      return;
    case LOOP_FORM_CONVERT: put_convert(w, n); return;
    case LOOP_FORM_ACCESS: put_memory(w, n); return;
    case LOOP_FORM_MATH:
      buf_printf(w->out, "wm_%s_%s(", name_text(&w->fn->module->names, (Name)n->imm),
                 loop_type_text((LoopType)n->type));
      break;
    case LOOP_FORM_PREFIX: {
      u32 head = w->open.data[w->open.count - 1];
      fold_name(w, head);
      buf_printf(w->out, "_prefix(&f%u, ", head);
      c_put(w, n->a);
      buf_puts(w->out, ")");
      return;
    }
    default: buf_printf(w->out, "lw_%s_%s(", loop_op_text((LoopOp)n->op), loop_type_text((LoopType)n->type));
  }
  for (u32 i = 0; i < 3 && operands[i]; i++) {
    if (i) buf_puts(w->out, ", ");
    c_put(w, operands[i]);
  }
  buf_puts(w->out, ")");
}

static void put_terminator(Writer *w, const LoopNode *n) {
  const u32 *list = loop_list(w->fn, n);
  switch (n->op) {
    case LOOP_YIELD:
      if (c_node(w, n->a)->op == LOOP_IF) {
        c_assign(w, list, loop_result_of(w->fn, n->a, 0), n->count);
        return;
      }
      line(w);
      fold_name(w, n->a);
      buf_printf(w->out, "_push(&f%u, ", n->a);
      c_put(w, list[0]);
      buf_puts(w->out, ");\n");
      return;
    case LOOP_RETURN:
      line(w);
      if (w->fn->kind == LOOP_MATH_FN) {
        buf_puts(w->out, "return ");
        c_put(w, list[0]);
        buf_puts(w->out, ";\n");
        return;
      }
      for (u32 i = 0; i < n->count; i++) {
        buf_printf(w->out, "ctx->results[%u] = ", i);
        put_word(w, list[i]);
        buf_puts(w->out, "; ");
      }
      buf_puts(w->out, "return 0;\n");
      return;
    default:
      c_assign(w, list, loop_carry_of(w->fn, n->a, 0), n->count);
      line(w);
      buf_puts(w->out, n->op == LOOP_NEXT ? "continue;\n" : "break;\n");
  }
}

static void c_put_statement(Writer *w, u32 id) {
  const LoopNode *n = c_node(w, id);
  switch (n->op) {
    case LOOP_ELSE:
      w->depth--;
      line(w);
      buf_puts(w->out, "} else {\n");
      w->depth++;
      return;
    case LOOP_END: put_end(w, n->a); return;
    case LOOP_CHECK: put_check(w, n); return;
    case LOOP_CALL: c_put_call(w, id, n); return;
    case LOOP_POLL:
    case LOOP_EXIT:
      line(w);
      if (n->op == LOOP_POLL) buf_puts(w->out, "if (--ctx->budget < 0 && ctx->poll && ctx->poll(ctx)) ");
      c_leave(w, (u32)n->imm, NULL, loop_list(w->fn, n), n->count);
      return;
    default: break;
  }
  if (loop_is_head(n)) {
    c_put_head(w, id);
    return;
  }
  if (loop_is_terminator(n)) {
    put_terminator(w, n);
    return;
  }
  line(w);
  if (n->op != LOOP_STORE) buf_printf(w->out, "const lw_%s v%u = ", loop_type_text((LoopType)n->type), id);
  put_expression(w, n);
  buf_puts(w->out, ";\n");
}

/* ---- functions ----------------------------------------------------------------------------- */

static void c_put_signature(Writer *w, const LoopFn *f, const char *symbol, const char *linkage) {
  const Names *names = &f->module->names;
  buf_puts(w->out, linkage);
  if (f->kind == LOOP_MATH_FN) {
    buf_printf(w->out, "lw_%s wm_%s_%s(", loop_type_text(f->math_type), name_text(names, f->name),
               loop_type_text(f->math_type));
  } else {
    buf_puts(w->out, f->kind == LOOP_KERNEL ? "uint64_t " : "uint32_t ");
    if (symbol) buf_puts(w->out, symbol);
    else put_callee(w, f);
    buf_puts(w->out, f->kind == LOOP_KERNEL ? "(const uint64_t *args, int64_t lo, int64_t hi)" : "(lw_ctx *ctx");
  }
  if (f->kind == LOOP_KERNEL) return;
  for (u32 i = 0; i < f->params.count; i++) {
    u32 id = f->params.data[i];
    const LoopNode *n = loop_node(f, id);
    if (i || f->kind == LOOP_NATIVE) buf_puts(w->out, ", ");
    if (n->type == LT_PTR)
      buf_printf(w->out, "%slw_%s *v%u", n->aux == LOOP_IN ? "const " : "", loop_type_text((LoopType)n->mem), id);
    else buf_printf(w->out, "lw_%s v%u", loop_type_text((LoopType)n->type), id);
  }
  buf_puts(w->out, ")");
}

static void put_kernel_params(Writer *w) {
  for (u32 i = 0; i < w->fn->params.count; i++) {
    u32 id = w->fn->params.data[i];
    const LoopNode *n = c_node(w, id);
    line(w);
    if (n->type == LT_PTR) {
      const char *c = n->aux == LOOP_IN ? "const " : "", *t = loop_type_text((LoopType)n->mem);
      buf_printf(w->out, "%slw_%s *v%u = (%slw_%s *)(uintptr_t)args[%u];\n", c, t, id, c, t, i);
    } else {
      const char *t = loop_type_text((LoopType)n->type);
      buf_printf(w->out, "const lw_%s v%u = lw_of_%s(args[%u]);\n", t, id, t, i);
    }
  }
}

WeftStatus loops_c(const LoopFn *fn, const char *symbol, const char *linkage, Buf *out) {
  Writer w = {.fn = fn, .out = out};
  for (u32 i = 0; i < fn->body.count; i++) { /* what must stand before the function */
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (n->op == LOOP_REDUCE || n->op == LOOP_SCAN) put_fold(&w, fn->body.data[i]);
    if (n->op == LOOP_CALL && callee_of(&w, n) != fn) {
      c_put_signature(&w, callee_of(&w, n), NULL, linkage);
      buf_puts(out, ";\n");
    }
  }
  c_put_signature(&w, fn, symbol, linkage);
  if (fn->is_extern) {
    buf_puts(out, ";\n");
    return out->failed ? WEFT_ERROR : WEFT_OK;
  }
  buf_puts(out, " {\n");
  if (fn->kind == LOOP_KERNEL) {
    buf_puts(out, "  uint64_t key = UINT64_MAX;\n  if (lo >= hi) return key;\n");
    put_kernel_params(&w);
  }
  for (u32 i = 0; i < fn->body.count && !w.failed; i++) c_put_statement(&w, fn->body.data[i]);
  if (fn->kind == LOOP_KERNEL) buf_puts(out, "  return key;\n");
  if (fn->kind == LOOP_NATIVE && !fn->results.count) buf_puts(out, "  return 0;\n");
  buf_puts(out, "}\n");
  vec_free(fn->module->alloc, &w.open);
  return out->failed || w.failed ? WEFT_ERROR : WEFT_OK;
}
