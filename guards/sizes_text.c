/* sizes_text.c — size expressions as text, by hint, by value, and as postfix code (see sizes.h). */
#include "guards/sizes_inner.h"

#include <stdlib.h>
#include <string.h>

typedef __int128 wide;

void size_symbols(const SizePool *p, Dim d, void (*each)(void *ctx, u32 sym), void *ctx) {
  if (d >= 0 || d == DIM_NONE) return;
  const SizeNode x = *node_of(p, d); /* `each` may make symbols */
  if (x.kind == SK_sym) each(ctx, (u32)x.value);
  for (u32 i = 0; i < x.count; i++) size_symbols(p, p->terms.data[x.first + i].of, each, ctx);
}

/* ---- values --------------------------------------------------------------------------------------- */

static bool divide(i64 a, i64 b, i64 *q, i64 *r) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  *q = floor_div(a, b);
  *r = floor_mod(a, b);
  return true;
}

typedef bool (*SymValue)(const SizePool *p, u32 sym, const i64 *syms, i64 *out);

/* `wraps`: as integers of the program do, which these were; else leaving i64 is a failure. */
static bool eval(const SizePool *p, Dim d, SymValue value, const i64 *syms, bool wraps, i64 *out) {
  if (d == DIM_NONE) return false;
  if (size_is_const(p, d, out)) return true;
  const SizeNode *x = node_of(p, d);
  const SizeTerm *t = &p->terms.data[x->first];
  if (x->kind == SK_sym) return value(p, (u32)x->value, syms, out);
  if (x->kind == SK_add) {
    wide sum = x->value;
    for (u32 i = 0; i < x->count; i++) {
      i64 v;
      if (!eval(p, t[i].of, value, syms, wraps, &v)) return false;
      if (__builtin_add_overflow(sum, (wide)v * t[i].coef, &sum) && !wraps) return false;
    }
    *out = (i64)sum; /* 128 bits hold a few terms; more of them wrap there first, which is the same modulo 2^64 */
    return wraps || (sum >= INT64_MIN && sum <= INT64_MAX);
  }
  i64 acc, v, q, r;
  if (!eval(p, t[0].of, value, syms, wraps, &acc)) return false;
  for (u32 i = 1; i < x->count; i++) {
    if (!eval(p, t[i].of, value, syms, wraps, &v)) return false;
    switch (x->kind) {
      case SK_mul:
        if (__builtin_mul_overflow(acc, v, &acc) && !wraps) return false;
        break;
      case SK_floordiv:
      case SK_mod:
        if (!divide(acc, v, &q, &r)) return false;
        acc = x->kind == SK_mod ? r : q;
        break;
      case SK_min: acc = v < acc ? v : acc; break;
      default: acc = v > acc ? v : acc; break;
    }
  }
  *out = acc;
  return true;
}

static bool by_hint(const SizePool *p, u32 sym, const i64 *syms, i64 *out) {
  (void)syms;
  const SizeSym *s = &p->syms.data[sym];
  *out = s->hint;
  if (!s->unbacked) return true;
  return s->same_as != DIM_NONE && !size_is_unbacked(p, s->same_as) && size_hint(p, s->same_as, out);
}

static bool by_table(const SizePool *p, u32 sym, const i64 *syms, i64 *out) {
  (void)p;
  *out = syms[sym];
  return true;
}

bool size_hint(const SizePool *p, Dim d, i64 *out) { return eval(p, d, by_hint, NULL, false, out); }
bool size_eval(const SizePool *p, Dim d, const i64 *syms, i64 *out) { return eval(p, d, by_table, syms, false, out); }
bool size_eval_wrapped(const SizePool *p, Dim d, const i64 *syms, i64 *out) {
  return eval(p, d, by_table, syms, true, out);
}

/* ---- printing ------------------------------------------------------------------------------------- */

enum { LOOSE, SUM, TERM, FACTOR }; /* what stands around: decides about parentheses */

typedef struct Writer {
  const SizePool *p;
  void (*name)(void *ctx, u32 sym, Buf *out);
  void *ctx;
  Buf *out;
} Writer;

static void print(const Writer *w, Dim d, u32 around) {
  const SizePool *p = w->p;
  Buf *out = w->out;
  i64 c;
  if (d == DIM_NONE) {
    buf_puts(out, "?");
    return;
  }
  if (size_is_const(p, d, &c)) {
    buf_printf(out, c < 0 && around > SUM ? "(%lld)" : "%lld", (long long)c);
    return;
  }
  const SizeNode *x = node_of(p, d);
  const SizeTerm *t = &p->terms.data[x->first];
  switch (x->kind) {
    case SK_sym: w->name(w->ctx, (u32)x->value, out); return;
    case SK_mul:
      if (around == FACTOR) buf_putc(out, '(');
      for (u32 i = 0; i < x->count; i++) {
        if (i) buf_putc(out, '*');
        print(w, t[i].of, FACTOR);
      }
      if (around == FACTOR) buf_putc(out, ')');
      return;
    case SK_add:
      if (around > LOOSE) buf_putc(out, '(');
      for (u32 i = 0; i < x->count; i++) {
        i64 k = t[i].coef;
        if (i) buf_puts(out, k < 0 ? " - " : " + ");
        else if (k < 0) buf_putc(out, '-');
        u64 size = k < 0 ? 0 - (u64)k : (u64)k;
        if (size != 1) buf_printf(out, "%llu*", (unsigned long long)size);
        print(w, t[i].of, size != 1 || (k < 0 && i == 0) ? FACTOR : TERM);
      }
      if (x->value)
        buf_printf(out, x->value < 0 ? " - %llu" : " + %llu",
                   (unsigned long long)(x->value < 0 ? 0 - (u64)x->value : (u64)x->value));
      if (around > LOOSE) buf_putc(out, ')');
      return;
    case SK_floordiv:
    case SK_mod:
      if (around == FACTOR) buf_putc(out, '(');
      print(w, t[0].of, FACTOR);
      buf_puts(out, x->kind == SK_mod ? " % " : " // ");
      print(w, t[1].of, FACTOR);
      if (around == FACTOR) buf_putc(out, ')');
      return;
    default:
      buf_puts(out, x->kind == SK_min ? "min(" : "max(");
      for (u32 i = 0; i < x->count; i++) {
        if (i) buf_puts(out, ", ");
        print(w, t[i].of, LOOSE);
      }
      buf_putc(out, ')');
  }
}

void size_print_named(const SizePool *p, Dim d, void (*name)(void *ctx, u32 sym, Buf *out), void *ctx, Buf *out) {
  Writer w = {p, name, ctx, out};
  print(&w, d, LOOSE);
}

static void own_name(void *ctx, u32 sym, Buf *out) { buf_puts(out, ((const SizePool *)ctx)->syms.data[sym].name); }

void size_print(const SizePool *p, Dim d, Buf *out) { size_print_named(p, d, own_name, (void *)(uintptr_t)p, out); }

/* ---- parsing -------------------------------------------------------------------------------------- */

typedef struct Reader {
  SizePool *p;
  const char *at, *end;
  u32 depth;
  bool bad;
} Reader;

static bool blank(char c) { return c == ' ' || c == '\t'; }
static bool word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
static void skip(Reader *r) {
  while (r->at < r->end && blank(*r->at)) r->at++;
}
static bool take(Reader *r, char c) {
  skip(r);
  if (r->at >= r->end || *r->at != c) return false;
  r->at++;
  return true;
}
static Dim bad(Reader *r) {
  r->bad = true;
  return DIM_NONE;
}

static Dim read_sum(Reader *r);

static Dim read_factor(Reader *r) {
  skip(r);
  if (r->at >= r->end || r->bad || ++r->depth > 2 * SIZE_MAX_DEPTH) return bad(r);
  Dim d = DIM_NONE;
  char c = *r->at;
  if (c >= '0' && c <= '9') {
    u64 v = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
      if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (u64)(*r->at - '0'), &v)) return bad(r);
    if (v > INT64_MAX) return bad(r);
    d = (Dim)v;
  } else if (c == '-') {
    r->at++;
    Dim of = read_factor(r);
    d = of == DIM_NONE ? DIM_NONE : size_sub(r->p, 0, of);
  } else if (c == '(') {
    r->at++;
    d = read_sum(r);
    if (!take(r, ')')) return bad(r);
  } else if (word(c)) {
    const char *start = r->at;
    while (r->at < r->end && word(*r->at)) r->at++;
    size_t n = (size_t)(r->at - start);
    bool least = n == 3 && memcmp(start, "min", 3) == 0, most = n == 3 && memcmp(start, "max", 3) == 0;
    if ((least || most) && take(r, '(')) {
      d = read_sum(r);
      while (take(r, ',')) {
        Dim next = read_sum(r);
        d = least ? size_min(r->p, d, next) : size_max(r->p, d, next);
      }
      if (!take(r, ')')) return bad(r);
    } else {
      for (u32 i = 0; i < r->p->syms.count && d == DIM_NONE; i++)
        if (strlen(r->p->syms.data[i].name) == n && memcmp(r->p->syms.data[i].name, start, n) == 0)
          d = r->p->syms.data[i].dim;
      if (d == DIM_NONE) return bad(r);
    }
  } else {
    return bad(r);
  }
  r->depth--;
  return d == DIM_NONE ? bad(r) : d;
}

static Dim read_term(Reader *r) {
  Dim d = read_factor(r);
  while (!r->bad) {
    skip(r);
    if (r->at < r->end && *r->at == '*') {
      r->at++;
      d = size_mul(r->p, d, read_factor(r));
    } else if (r->end - r->at > 1 && r->at[0] == '/' && r->at[1] == '/') {
      r->at += 2;
      d = size_floordiv(r->p, d, read_factor(r));
    } else if (r->end - r->at > 1 && r->at[0] == '%' && blank(r->at[1])) { /* %1 is a value of the graph */
      r->at++;
      d = size_mod(r->p, d, read_factor(r));
    } else {
      break;
    }
    if (d == DIM_NONE) return bad(r);
  }
  return d;
}

static Dim read_sum(Reader *r) {
  Dim d = read_term(r);
  while (!r->bad) {
    if (take(r, '+')) d = size_add(r->p, d, read_term(r));
    else if (take(r, '-')) d = size_sub(r->p, d, read_term(r));
    else break;
    if (d == DIM_NONE) return bad(r);
  }
  return d;
}

const char *size_parse(SizePool *p, const char *text, const char *end, Dim *out) {
  Reader r = {p, text, end, 0, false};
  *out = read_sum(&r);
  while (r.at > text && blank(r.at[-1])) r.at--;
  return r.bad ? NULL : r.at;
}

/* ---- postfix code --------------------------------------------------------------------------------- */

enum { CODE_SLOT, CODE_CONST, CODE_SUM, CODE_MUL, CODE_DIV, CODE_MOD, CODE_MIN, CODE_MAX };

typedef struct Emit {
  const SizePool *p;
  const u32 *slot_of;
  i64 *words; /* NULL while counting */
  u32 count, stack, most, slots;
  bool missing;
} Emit;

static void put(Emit *e, i64 word) {
  if (e->words) e->words[e->count] = word;
  e->count++;
}
static void push(Emit *e) {
  if (++e->stack > e->most) e->most = e->stack;
}

static void emit(Emit *e, Dim d) {
  const SizePool *p = e->p;
  i64 c;
  if (size_is_const(p, d, &c)) {
    put(e, CODE_CONST);
    put(e, c);
    push(e);
    return;
  }
  const SizeNode *x = node_of(p, d);
  const SizeTerm *t = &p->terms.data[x->first];
  if (x->kind == SK_sym) {
    u32 slot = e->slot_of[x->value];
    e->missing |= slot == UINT32_MAX;
    if (slot >= e->slots) e->slots = slot + 1;
    put(e, CODE_SLOT | (i64)slot << 8);
    push(e);
    return;
  }
  if (x->kind == SK_add) {
    for (u32 i = 0; i < x->count; i++) emit(e, t[i].of);
    put(e, CODE_SUM | (i64)x->count << 8);
    put(e, x->value);
    for (u32 i = 0; i < x->count; i++) put(e, t[i].coef);
    e->stack -= x->count - 1;
    return;
  }
  static const u8 code[SK_COUNT] = {[SK_mul] = CODE_MUL, [SK_floordiv] = CODE_DIV, [SK_mod] = CODE_MOD,
                                    [SK_min] = CODE_MIN, [SK_max] = CODE_MAX};
  emit(e, t[0].of);
  for (u32 i = 1; i < x->count; i++) {
    emit(e, t[i].of);
    put(e, code[x->kind]);
    e->stack--;
  }
}

bool size_compile(const SizePool *p, Dim d, const u32 *slot_of, Arena *arena, SizeCode *out) {
  *out = (SizeCode){0};
  if (d == DIM_NONE) return false;
  Emit e = {.p = p, .slot_of = slot_of};
  emit(&e, d);
  if (e.missing || e.most > SIZE_STACK) return false;
  i64 *words = arena_alloc(arena, sizeof *words * e.count);
  if (!words) return false;
  e = (Emit){.p = p, .slot_of = slot_of, .words = words};
  emit(&e, d);
  *out = (SizeCode){words, e.count, e.slots};
  return true;
}

bool size_run(const SizeCode *code, const u64 *slots, i64 *out) {
  i64 stack[SIZE_STACK], q, r;
  u32 n = 0;
  for (u32 at = 0; at < code->count;) {
    i64 w = code->words[at++];
    switch (w & 0xff) {
      case CODE_SLOT: stack[n++] = (i64)slots[w >> 8]; break;
      case CODE_CONST: stack[n++] = code->words[at++]; break;
      case CODE_SUM: {
        u32 count = (u32)(w >> 8);
        wide sum = code->words[at++];
        n -= count;
        for (u32 i = 0; i < count; i++)
          if (__builtin_add_overflow(sum, (wide)stack[n + i] * code->words[at++], &sum)) return false;
        if (sum < INT64_MIN || sum > INT64_MAX) return false;
        stack[n++] = (i64)sum;
        break;
      }
      case CODE_MUL:
        n--;
        if (__builtin_mul_overflow(stack[n - 1], stack[n], &stack[n - 1])) return false;
        break;
      case CODE_DIV:
      case CODE_MOD:
        n--;
        if (!divide(stack[n - 1], stack[n], &q, &r)) return false;
        stack[n - 1] = (w & 0xff) == CODE_MOD ? r : q;
        break;
      case CODE_MIN:
        n--;
        if (stack[n] < stack[n - 1]) stack[n - 1] = stack[n];
        break;
      default:
        n--;
        if (stack[n] > stack[n - 1]) stack[n - 1] = stack[n];
        break;
    }
  }
  *out = stack[0];
  return true;
}
