/* machine.c — runs PTX (see machine.h). */
#include "tests/support/cuda/code.h"
#include "tests/support/cuda/tally.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 200000000 };

typedef struct CallFrame {
  const MachineFn *f;
  unsigned pc;
  uint64_t *regs;
  unsigned char *known;
  uint64_t params[4], args[4], result;
} CallFrame;

/* A copy to shared memory that goes on by itself: it has happened for sure when its group was waited for, and not a
 * moment earlier here. */
typedef struct Copy {
  unsigned to, bytes, group;
  uint64_t from;
} Copy;
enum { COPIES = 128, COPY_BYTES = 16 };

typedef struct Thread {
  CallFrame frames[2];
  int depth;
  unsigned number; /* in its block */
  bool done, waits, meets; /* waits: for its warp; meets: for its block */
  Copy *copies; /* COPIES places; NULL: there were none */
  unsigned copy_count, group; /* of the next copy */
} Thread;

/* Who touched a byte of shared memory since the threads of the block last met; numbers of threads + 1. */
typedef struct Touched {
  unsigned met;
  unsigned short writer, reader; /* reader: MANY when several */
} Touched;
enum { MANY = 0xFFFF };

typedef struct Run {
  const Machine *m;
  const MachineFn *f;
  const uint64_t *params;
  unsigned block, blocks, threads, shared_bytes;
  MachineMemory memory;
  uint64_t steps, limit;
  uint64_t slice; /* a thread's turn, in instructions; 0: it ends where it must wait for its warp or block */
  char *shared; /* of the block at work */
  Touched *touched;
  unsigned met; /* how often its threads met */
  Tally *tally; /* NULL: nothing is counted */
  char *why;
  size_t size;
  bool failed;
} Run;

__attribute__((format(printf, 3, 4))) static void trap(Run *r, const CallFrame *c, const char *fmt, ...) {
  if (r->failed) return;
  r->failed = true;
  int n = snprintf(r->why, r->size, "%s, line %u: ", c->f->name, c->pc < c->f->count ? c->f->code[c->pc].line : 0);
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(r->why + n, r->size - (size_t)n, fmt, ap);
  va_end(ap);
}

static float f32(uint64_t b) { uint32_t l = (uint32_t)b; float v; memcpy(&v, &l, 4); return v; }
static double f64(uint64_t b) { double v; memcpy(&v, &b, 8); return v; }
static uint64_t of32(float v) { uint32_t b; memcpy(&b, &v, 4); return b; }
static uint64_t of64(double v) { uint64_t b; memcpy(&b, &v, 8); return b; }

/* A value as the type reads it: extended to 64 bits. */
static uint64_t as(Type t, uint64_t v) {
  switch (type_bytes[t]) {
    case 1: return t == T_PRED ? v & 1 : v & 0xFF;
    case 2: return v & 0xFFFF;
    case 4: return t == T_S32 ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
    default: return v;
  }
}

static uint64_t get_other(Run *r, Thread *t, CallFrame *c, const Insn *in, int i) {
  const Operand *o = &in->v[i];
  if (i >= in->count) { trap(r, c, "an operand is missing"); return 0; }
  if (o->is_special)
    return o->reg == SP_CTAID ? r->block : o->reg == SP_NTID ? r->threads : o->reg == SP_TID ? t->number : r->blocks;
  if (!o->is_reg) return o->bits;
  if (!c->known[o->reg]) trap(r, c, "a register is read before it is written (operand %d)", i);
  return c->regs[o->reg];
}

/* The value of operand i. */
static inline uint64_t get(Run *r, Thread *t, CallFrame *c, const Insn *in, int i) {
  const Operand *o = &in->v[i];
  return i < in->count && o->is_reg && c->known[o->reg] ? c->regs[o->reg] : get_other(r, t, c, in, i);
}

static inline void set(CallFrame *c, const Operand *o, uint64_t v) {
  c->regs[o->reg] = v;
  c->known[o->reg] = 1;
}

static bool is_float(Type t) { return t == T_F32 || t == T_F64; }
static bool is_signed(Type t) { return t == T_S32 || t == T_S64; }

static uint64_t float_op(Op op, Type t, uint64_t a, uint64_t b, uint64_t c) {
  double x = t == T_F32 ? (double)f32(a) : f64(a), y = t == T_F32 ? (double)f32(b) : f64(b), v;
  if (t == T_F32) {
    float p = f32(a), q = f32(b);
    switch (op) {
      case ADD: return of32(p + q);
      case SUB: return of32(p - q);
      case MUL: return of32(p * q);
      case DIV: return of32(p / q);
      case FMA: return of32(fmaf(p, q, f32(c)));
      case SQRT: return of32(sqrtf(p));
      default: break;
    }
  }
  switch (op) {
    case ADD: v = x + y; break;
    case SUB: v = x - y; break;
    case MUL: v = x * y; break;
    case DIV: v = x / y; break;
    case FMA: v = fma(x, y, f64(c)); break;
    case SQRT: v = sqrt(x); break;
    case NEG: v = -x; break;
    case ABS: v = fabs(x); break;
    case COPYSIGN: v = copysign(y, x); break;
    case MIN: v = isnan(x) ? y : isnan(y) || x < y || (x == y && !signbit(x)) ? x : y; break; /* of zeros: +0 */
    default: v = isnan(x) ? y : isnan(y) || x > y || (x == y && signbit(x)) ? x : y; break;  /* of zeros: -0 */
  }
  return t == T_F32 ? of32((float)v) : of64(v);
}

static uint64_t int_op(Op op, Type t, uint64_t a, uint64_t b, uint64_t c) {
  unsigned width = type_bytes[t] * 8;
  bool sign = is_signed(t);
  a = as(t, a);
  b = op == SHL || op == SHR ? (uint32_t)b : as(t, b);
  switch (op) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case MAD: return a * b + c;
    case MULHI:
      return width == 32 ? (sign ? (uint64_t)((int64_t)a * (int64_t)b >> 32) : a * b >> 32)
                         : sign ? (uint64_t)((__int128)(int64_t)a * (int64_t)b >> 64)
                         : (uint64_t)((unsigned __int128)a * b >> 64);
    case DIV:
    case REM:
      if (b == 0) return 0xDEADBEEFDEADBEEF;
      if (sign && (int64_t)b == -1) return 0xDEADBEEFDEADBEEF;
      if (sign) return (uint64_t)(op == DIV ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
      return op == DIV ? a / b : a % b;
    case MIN: return sign ? ((int64_t)a < (int64_t)b ? a : b) : a < b ? a : b;
    case MAX: return sign ? ((int64_t)a > (int64_t)b ? a : b) : a > b ? a : b;
    case NEG: return 0 - a;
    case AND: return a & b;
    case OR: return a | b;
    case XOR: return a ^ b;
    case NOT: return t == T_PRED ? !a : ~a;
    case SHL: return b >= width ? 0 : a << b;
    default: return sign ? (uint64_t)((int64_t)a >> (b >= width ? width - 1 : b)) : b >= width ? 0 : a >> b;
  }
}

static uint64_t to_int(Type t, double v) {
  if (isnan(v)) return type_bytes[t] == 8 ? (uint64_t)1 << 63 : 0;
  switch (t) {
    case T_S32: return (uint64_t)(int64_t)(v <= -2147483648.0 ? INT32_MIN : v >= 2147483647.0 ? INT32_MAX : (int32_t)v);
    case T_U32: return v <= 0 ? 0 : v >= 4294967295.0 ? UINT32_MAX : (uint32_t)v;
    case T_S64: return (uint64_t)(v <= -0x1p63 ? INT64_MIN : v >= 0x1p63 ? INT64_MAX : (int64_t)v);
    default: return v <= 0 ? 0 : v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
  }
}

/* IEEE binary16: 1 sign, 5 exponent and 10 fraction bits. */
static float half_to_float(uint16_t h) {
  int exponent = h >> 10 & 31, fraction = h & 1023;
  double v = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
             : exponent     ? ldexp(1024 + fraction, exponent - 25)
                            : ldexp(fraction, -24);
  return (float)(h >> 15 ? -v : v);
}

/* Rounded to nearest, ties to even. */
static uint16_t half_of_float(float x) {
  uint16_t sign = signbit(x) ? 0x8000 : 0;
  double v = fabs((double)x);
  if (isnan(x)) return sign | 0x7e00;
  if (v >= 65520.0) return sign | 0x7c00;
  int exponent = 0;
  (void)frexp(v, &exponent);               /* v is in [2^(exponent-1), 2^exponent) */
  int unit = exponent < -13 ? -24 : exponent - 11; /* of the last fraction bit */
  long n = lrint(ldexp(v, -unit));         /* 1024 … 2048 of them, fewer below 2^-14 */
  if (n == 2048) n = 1024, unit++;
  return sign | (uint16_t)(n < 1024 ? n : ((unit + 25) << 10) + (n - 1024));
}

static float half_of_bits(bool brain, uint16_t h) { return brain ? f32((uint32_t)h << 16) : half_to_float(h); }

static uint16_t half_of(bool brain, float x) {
  if (!brain) return half_of_float(x);
  uint32_t b = (uint32_t)of32(x);
  return isnan(x) ? 0x7fff : (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

static uint64_t convert(Run *r, CallFrame *c, const Insn *in, uint64_t a) {
  Type from = (Type)in->from, to = (Type)in->type;
  if (from == T_F16) {
    return of32(half_to_float((uint16_t)a));
  }
  if (to == T_F16) {
    return half_of_float(f32(a));
  }
  if (is_float(from)) {
    double v = from == T_F32 ? (double)f32(a) : f64(a);
    if (is_float(to)) {
      v = in->how == RMI ? floor(v) : in->how == RPI ? ceil(v) : in->how == RZI ? trunc(v)
                         : in->how == RNI ? rint(v) : v;
      if (from == T_F64 && to == T_F32 && in->how != RN) trap(r, c, "a conversion without rounding");
      return to == T_F32 ? of32((float)v) : of64(v);
    }
    if (in->how != RZI) trap(r, c, "a conversion to an integer without rounding");
    return to_int(to, v);
  }
  a = as(from, a);
  if (to == T_F32) return is_signed(from) ? of32((float)(int64_t)a) : of32((float)a);
  if (to == T_F64) return is_signed(from) ? of64((double)(int64_t)a) : of64((double)a);
  return as(to == T_S32 ? T_U32 : to, a);
}

static bool compare(const Insn *in, uint64_t a, uint64_t b) {
  Type t = (Type)in->type;
  if (is_float(t)) {
    double x = t == T_F32 ? (double)f32(a) : f64(a), y = t == T_F32 ? (double)f32(b) : f64(b);
    switch (in->how) {
      case EQ: return x == y;
      case NE: return x < y || x > y;
      case LT: return x < y;
      case LE: return x <= y;
      case GT: return x > y;
      case GE: return x >= y;
      case NEU: return !(x == y);
      default: return isnan(x) || isnan(y);
    }
  }
  a = as(t, a);
  b = as(t, b);
  bool less = is_signed(t) ? (int64_t)a < (int64_t)b : a < b;
  switch (in->how) {
    case EQ: return a == b;
    case NE: return a != b;
    case LT: return less;
    case LE: return less || a == b;
    case GT: return !less && a != b;
    default: return !less;
  }
}

/* Where `count` elements lie in memory of the device. */
static void *memory_at(Run *r, Thread *t, CallFrame *c, uint64_t at, Type ty, unsigned count, TallyAccess kind) {
  unsigned bytes = type_bytes[ty] * count;
  void *place = NULL;
  if (at % bytes) trap(r, c, "the address %llx is not aligned to %u", (unsigned long long)at, bytes);
  else if (!(place = r->memory(at, bytes)))
    trap(r, c, "the address %llx lies in no memory of the device", (unsigned long long)at);
  if (r->failed) return NULL;
  if (r->tally) tally_access(r->tally, t->number % WARP, at, bytes, kind);
  return place;
}

/* A place in shared memory. Between two meetings of the block no thread may read what another wrote, nor write what
 * another read or wrote. */
static void *shared_place(Run *r, Thread *t, CallFrame *c, uint64_t at, Type ty, unsigned count, bool writes) {
  unsigned bytes = type_bytes[ty] * count;
  unsigned short me = (unsigned short)(t->number + 1);
  at = (uint32_t)at;
  if (at % bytes || at + bytes > r->shared_bytes) {
    trap(r, c, "the shared address %llu is misaligned or outside", (unsigned long long)at);
    return NULL;
  }
  for (unsigned i = 0; i < bytes; i++) {
    Touched *p = &r->touched[at + i];
    if (p->met != r->met) *p = (Touched){.met = r->met};
    bool clash = (p->writer && p->writer != me) || (writes && p->reader && p->reader != me);
    if (clash && !r->tally) trap(r, c, "two threads use a place in shared memory between meetings");
    if (writes) p->writer = me;
    else p->reader = p->reader && p->reader != me ? MANY : me;
  }
  return r->shared + at;
}

/* The same, counted as an access of the warp. */
static void *shared_at(Run *r, Thread *t, CallFrame *c, uint64_t at, Type ty, unsigned count, bool writes) {
  void *p = shared_place(r, t, c, at, ty, count, writes);
  if (p && r->tally)
    tally_access(r->tally, t->number % WARP, (uint32_t)at, type_bytes[ty] * count,
                 writes ? TALLY_SHARED_STORE : TALLY_SHARED_LOAD);
  return p;
}

/* A copy begins: its place in shared memory is no longer what it was. */
static void copy_begins(Run *r, Thread *t, CallFrame *c, const Insn *in) {
  Copy copy = {.to = (uint32_t)(get(r, t, c, in, 0) + in->offset), .bytes = (uint32_t)get(r, t, c, in, 3),
               .from = get(r, t, c, in, 1), .group = t->group};
  if (r->failed) return;
  if (copy.bytes > COPY_BYTES || copy.from % COPY_BYTES) {
    trap(r, c, "a copy that is misaligned or too long");
    return;
  }
  if (copy.bytes && !r->memory(copy.from, copy.bytes)) {
    trap(r, c, "the address %llx lies in no memory of the device", (unsigned long long)copy.from);
    return;
  }
  if (r->tally) tally_copy(r->tally, copy.from, copy.to, copy.bytes);
  if (!shared_place(r, t, c, copy.to, T_B32, COPY_BYTES / 4, true)) return;
  if (!t->copies) t->copies = need(malloc(COPIES * sizeof *t->copies));
  if (t->copy_count == COPIES) trap(r, c, "too many copies are under way");
  else t->copies[t->copy_count++] = copy;
}

/* All copies but those of the last `left` groups are there. */
static void copies_end(Run *r, Thread *t, CallFrame *c, unsigned left) {
  unsigned kept = 0;
  for (unsigned i = 0; i < t->copy_count && !r->failed; i++) {
    Copy copy = t->copies[i];
    if (copy.group + left >= t->group) {
      t->copies[kept++] = copy;
      continue;
    }
    char *to = shared_place(r, t, c, copy.to, T_B32, COPY_BYTES / 4, true);
    if (!to) return;
    memset(to, 0, COPY_BYTES);
    if (copy.bytes) memcpy(to, r->memory(copy.from, copy.bytes), copy.bytes);
  }
  t->copy_count = kept;
}

/* One instruction of a thread; those that all threads of a warp meet at are done in run_warp. */
static inline __attribute__((always_inline)) void step_once(Run *r, Thread *t) {
  CallFrame *c = &t->frames[t->depth];
  if (c->pc >= c->f->count) { trap(r, c, "the end of the function is passed"); return; }
  const Insn *in = &c->f->code[c->pc];
  if (++r->steps > r->limit) { trap(r, c, "it does not end"); return; }
  if (in->guarded) {
    if (!c->known[in->guard]) trap(r, c, "the guard was never written");
    if ((c->regs[in->guard] & 1) == in->inverted) {
      c->pc++;
      return;
    }
  }
  if (in->op == SHFL || in->op == BAR_WARP || in->op == LDMATRIX || in->op == MMA) {
    t->waits = true;
    return;
  }
  if (in->op == BAR_SYNC) {
    if (t->depth) trap(r, c, "a function lets the block meet");
    c->pc++;
    t->meets = true;
    return;
  }
  c->pc++;
  Type ty = (Type)in->type;
  uint64_t a, b, v = 0;
  void *p;
  switch ((Op)in->op) {
    case BRA: c->pc = in->target; return;
    case RET:
      if (t->depth == 0) {
        t->done = true;
        return;
      }
      v = c->result;
      free(c->regs);
      free(c->known);
      t->depth--;
      t->frames[t->depth].result = v;
      return;
    case CALL: {
      if (t->depth == 1) { trap(r, c, "calls nest"); return; }
      CallFrame *to = &t->frames[++t->depth];
      const MachineFn *f = r->m->fns[in->target];
      *to = (CallFrame){.f = f, .regs = need(calloc(f->regs + 1, 8)), .known = need(calloc(f->regs + 1, 1))};
      memcpy(to->params, c->args, sizeof c->args);
      return;
    }
    case LD_PARAM:
      if (in->v[1].where == W_PARAM) v = t->depth ? c->params[in->v[1].bits & 3] : r->params[in->v[1].bits];
      else if (in->v[1].where == W_CALLED) v = c->result;
      else trap(r, c, "it reads what is no parameter");
      set(c, &in->v[0], as(ty, v));
      return;
    case ST_PARAM:
      v = get(r, t, c, in, 1);
      if (in->v[0].where == W_ARGUMENT) c->args[in->v[0].bits] = v;
      else if (in->v[0].where == W_RESULT) c->result = v;
      else trap(r, c, "it writes what is no parameter");
      return;
    case LD_CONST: /* tables lie in memory of the host */
      p = (void *)(uintptr_t)get(r, t, c, in, 1);
      memcpy(&v, p, type_bytes[ty]);
      set(c, &in->v[0], v);
      return;
    case LD_GLOBAL:
      p = memory_at(r, t, c, get(r, t, c, in, in->how) + in->offset, ty, in->how, TALLY_LOAD);
      for (unsigned i = 0; i < in->how; i++, v = 0) {
        if (p) memcpy(&v, (char *)p + i * type_bytes[ty], type_bytes[ty]);
        if (r->tally && in->waits) v |= 1; /* of a sample the other block may never run */
        set(c, &in->v[i], v);
      }
      return;
    case ST_GLOBAL:
      p = memory_at(r, t, c, get(r, t, c, in, 0) + in->offset, ty, in->how, TALLY_STORE);
      for (unsigned i = 0; i < in->how; i++) {
        v = get(r, t, c, in, 1 + (int)i);
        if (p) memcpy((char *)p + i * type_bytes[ty], &v, type_bytes[ty]);
      }
      return;
    case LD_SHARED:
      p = shared_at(r, t, c, get(r, t, c, in, in->how) + in->offset, ty, in->how, false);
      for (unsigned i = 0; i < in->how; i++, v = 0) {
        if (p) memcpy(&v, (char *)p + i * type_bytes[ty], type_bytes[ty]);
        set(c, &in->v[i], v);
      }
      return;
    case ST_SHARED:
      v = get(r, t, c, in, 1);
      p = shared_at(r, t, c, get(r, t, c, in, 0) + in->offset, ty, 1, true);
      if (p) memcpy(p, &v, type_bytes[ty]);
      return;
    case RED_MIN:
      v = get(r, t, c, in, 1);
      p = memory_at(r, t, c, get(r, t, c, in, 0), ty, 1, TALLY_STORE);
      if (p && v < *(uint64_t *)p) *(uint64_t *)p = v;
      return;
    case ATOM_ADD: { /* what was there */
      uint32_t old = 0, sum;
      v = get(r, t, c, in, 2);
      p = memory_at(r, t, c, get(r, t, c, in, 1), ty, 1, TALLY_LOAD);
      if (ty != T_U32) trap(r, c, "an atomic sum of another type than u32");
      if (p) memcpy(&old, p, sizeof old);
      sum = old + (uint32_t)v;
      if (p) memcpy(p, &sum, sizeof sum);
      set(c, &in->v[0], old);
      return;
    }
    case CP_ASYNC: copy_begins(r, t, c, in); return;
    case CP_COMMIT: t->group++; return;
    case CP_WAIT: copies_end(r, t, c, in->target); return;
    case CVT_PAIR: /* upper, lower */
      a = get(r, t, c, in, 1);
      b = get(r, t, c, in, 2);
      set(c, &in->v[0], (uint64_t)half_of(in->how, f32(a)) << 16 | half_of(in->how, f32(b)));
      return;
    case UNPACK: /* {low, high}, wide */
      a = get(r, t, c, in, 2);
      set(c, &in->v[0], (uint32_t)a);
      set(c, &in->v[1], a >> 32);
      return;
    case PACK:
      a = get(r, t, c, in, 1);
      b = get(r, t, c, in, 2);
      set(c, &in->v[0], (uint32_t)a | b << 32);
      return;
    case MOV: v = get(r, t, c, in, 1); break;
    case CVT: v = convert(r, c, in, get(r, t, c, in, 1)); ty = ty == T_F16 ? T_B16 : ty; break;
    case SETP:
      a = get(r, t, c, in, 1);
      b = get(r, t, c, in, 2);
      set(c, &in->v[0], compare(in, a, b));
      return;
    case SELP: { /* reads both, as the machine does */
      a = get(r, t, c, in, 1);
      b = get(r, t, c, in, 2);
      v = get(r, t, c, in, 3) & 1 ? a : b;
      break;
    }
    case WIDE:
    case MADWIDE:
      v = (uint64_t)(uint32_t)get(r, t, c, in, 1) * (uint32_t)get(r, t, c, in, 2);
      if (in->op == MADWIDE) v += get(r, t, c, in, 3);
      set(c, &in->v[0], v);
      return;
    default: {
      uint64_t x = get(r, t, c, in, 1), y = in->count > 2 ? get(r, t, c, in, 2) : 0,
          z = in->count > 3 ? get(r, t, c, in, 3) : 0;
      v = is_float(ty) ? float_op((Op)in->op, ty, x, y, z) : int_op((Op)in->op, ty, x, y, z);
    }
  }
  set(c, &in->v[0], ty == T_S32 ? (uint32_t)v : as(ty, v));
}

static void step(Run *r, Thread *t) { step_once(r, t); }

static bool runs(const Thread *t) { return !t->done && !t->waits && !t->meets; }

/* What most instructions are, done without a look at what else there is. `pc` and what it needs stay in registers of
 * the machine that runs this; whatever is unusual (an operand that is no register or number, a register that was never
 * written, memory, calls, meetings) goes to step_once, which starts anew. */
#define TAKE(x, i)                                  \
  do {                                              \
    const Operand *o = &in->v[i];                   \
    if (o->is_reg && known[o->reg]) x = regs[o->reg]; \
    else if (o->is_reg || o->is_special) goto other; \
    else x = o->bits;                               \
  } while (0)
static void steps_until(Run *r, Thread *t, uint64_t end) {
  while (runs(t) && r->steps < end && !r->failed) {
    CallFrame *c = &t->frames[t->depth];
    const MachineFn *f = c->f;
    const Insn *const code = f->code;
    uint64_t *const regs = c->regs, steps = r->steps;
    unsigned char *const known = c->known;
    const unsigned count = f->count;
    const uint64_t last = end < r->limit ? end : r->limit;
    unsigned pc = c->pc;
    for (; pc < count && steps < last; pc++, steps++) {
      const Insn *in = &code[pc];
      uint64_t x, y, z, v;
      if (in->guarded) {
        if (!known[in->guard]) goto other;
        if ((regs[in->guard] & 1) == in->inverted) continue;
      }
      switch (in->usual) {
        case USUAL_BRA: pc = in->target - 1; continue;
        case USUAL_MOVE: TAKE(v, 1); break;
        case USUAL_ADD: TAKE(x, 1); TAKE(y, 2); v = x + y; break;
        case USUAL_SUB: TAKE(x, 1); TAKE(y, 2); v = x - y; break;
        case USUAL_MUL: TAKE(x, 1); TAKE(y, 2); v = x * y; break;
        case USUAL_MAD: TAKE(x, 1); TAKE(y, 2); TAKE(z, 3); v = x * y + z; break;
        case USUAL_AND: TAKE(x, 1); TAKE(y, 2); v = x & y; break;
        case USUAL_OR: TAKE(x, 1); TAKE(y, 2); v = x | y; break;
        case USUAL_XOR: TAKE(x, 1); TAKE(y, 2); v = x ^ y; break;
        case USUAL_WIDE: TAKE(x, 1); TAKE(y, 2); v = (uint64_t)(uint32_t)x * (uint32_t)y; break;
        case USUAL_MADWIDE: TAKE(x, 1); TAKE(y, 2); TAKE(z, 3); v = (uint64_t)(uint32_t)x * (uint32_t)y + z; break;
        case USUAL_ADD_F32: TAKE(x, 1); TAKE(y, 2); v = of32(f32(x) + f32(y)); break;
        case USUAL_SUB_F32: TAKE(x, 1); TAKE(y, 2); v = of32(f32(x) - f32(y)); break;
        case USUAL_MUL_F32: TAKE(x, 1); TAKE(y, 2); v = of32(f32(x) * f32(y)); break;
        case USUAL_FMA_F32: TAKE(x, 1); TAKE(y, 2); TAKE(z, 3); v = of32(fmaf(f32(x), f32(y), f32(z))); break;
        case USUAL_ADD_F64: TAKE(x, 1); TAKE(y, 2); v = of64(f64(x) + f64(y)); break;
        case USUAL_SUB_F64: TAKE(x, 1); TAKE(y, 2); v = of64(f64(x) - f64(y)); break;
        case USUAL_MUL_F64: TAKE(x, 1); TAKE(y, 2); v = of64(f64(x) * f64(y)); break;
        case USUAL_FMA_F64: TAKE(x, 1); TAKE(y, 2); TAKE(z, 3); v = of64(fma(f64(x), f64(y), f64(z))); break;
        case USUAL_SETP: TAKE(x, 1); TAKE(y, 2); v = compare(in, x, y); break;
        case USUAL_SELP: TAKE(x, 1); TAKE(y, 2); TAKE(z, 3); v = z & 1 ? x : y; break;
        default: goto other;
      }
      regs[in->v[0].reg] = v & in->mask;
      known[in->v[0].reg] = 1;
    }
  other:
    c->pc = pc;
    r->steps = steps;
    if (steps < end) step_once(r, t);
  }
}

/* ldmatrix.x4: thread i names row i % 8 of matrix i / 8; of each matrix a thread gets two elements of a row, or of a
 * column when it turns. */
static void load_matrices(Run *r, Thread *t, const Insn *in) {
  uint16_t m[4][8][8];
  for (unsigned i = 0; i < WARP; i++) {
    CallFrame *c = &t[i].frames[t[i].depth];
    char *row = shared_at(r, &t[i], c, get(r, &t[i], c, in, 4) + in->offset, T_B32, 4, false);
    if (!row || r->failed) return;
    memcpy(m[i / 8][i % 8], row, sizeof m[0][0]);
  }
  for (unsigned i = 0; i < WARP; i++)
    for (unsigned k = 0; k < 4; k++) {
      unsigned a = i / 4, b = 2 * (i % 4);
      uint32_t low = in->how ? m[k][b][a] : m[k][a][b], high = in->how ? m[k][b + 1][a] : m[k][a][b + 1];
      set(&t[i].frames[t[i].depth], &in->v[k], high << 16 | low);
    }
}

/* Rounded towards zero: the manual leaves open how a tensor core rounds, and some do so. */
static float cut(double v) {
  float f = (float)v;
  return isfinite(f) && fabs((double)f) > fabs(v) ? nextafterf(f, 0) : f;
}

/* mma.m16n8k16: fragments of a (rows, inner axis), b (inner axis, columns) and the sums. */
static void multiply_matrices(Run *r, Thread *t, const Insn *in) {
  float a[16][16], b[16][8];
  uint64_t sums[WARP][4];
  for (unsigned i = 0; i < WARP; i++) {
    CallFrame *c = &t[i].frames[t[i].depth];
    unsigned row = i / 4, pair = 2 * (i % 4);
    for (unsigned k = 0; k < 10; k++) {
      uint64_t v = get(r, &t[i], c, in, 4 + (int)k);
      for (unsigned e = 0; e < 2 && k < 6; e++) {
        float x = half_of_bits(in->how, (uint16_t)(v >> 16 * e));
        if (k < 4) a[row + 8 * (k % 2)][pair + 8 * (k / 2) + e] = x;
        else b[pair + 8 * (k - 4) + e][row] = x;
      }
      if (k >= 6) sums[i][k - 6] = v;
    }
  }
  for (unsigned i = 0; i < WARP && !r->failed; i++)
    for (unsigned k = 0; k < 4; k++) {
      unsigned row = i / 4 + 8 * (k / 2), column = 2 * (i % 4) + k % 2;
      double sum = (double)f32(sums[i][k]);
      for (unsigned e = 0; e < 16; e++) sum += (double)a[row][e] * (double)b[e][column];
      set(&t[i].frames[t[i].depth], &in->v[k], of32(cut(sum)));
    }
}

/* All live threads stand at the same instruction: they do it together. */
static void together(Run *r, Thread *t) {
  const Insn *in = NULL;
  uint64_t given[WARP] = {0};
  for (unsigned i = 0; i < WARP; i++) {
    CallFrame *c = &t[i].frames[t[i].depth];
    if (t[i].done) { trap(r, &t[i].frames[0], "a thread of the warp has ended before the others meet"); return; }
    const Insn *own = &c->f->code[c->pc];
    if (in && own != in) { trap(r, c, "the threads of a warp meet at different instructions"); return; }
    in = own;
    if (in->op == SHFL) given[i] = get(r, &t[i], c, in, 1);
  }
  if (in->op == LDMATRIX) load_matrices(r, t, in);
  if (in->op == MMA && !r->tally) multiply_matrices(r, t, in);
  for (unsigned i = 0; i < WARP && !r->failed; i++) {
    CallFrame *c = &t[i].frames[t[i].depth];
    for (int k = 0; k < 4 && in->op == MMA && r->tally; k++) set(c, &in->v[k], get(r, &t[i], c, in, 10 + k));
    if (in->op == SHFL) set(c, &in->v[0], (uint32_t)given[i ^ in->v[2].bits]);
    c->pc++;
    t[i].waits = false;
  }
}

/* ---- warps and blocks -------------------------------------------------------------------------------------- */

typedef struct Warp {
  Thread t[WARP];
} Warp;

static void warp_begin(Run *r, Warp *w, unsigned first) {
  memset(w, 0, sizeof *w);
  for (unsigned i = 0; i < WARP; i++) {
    w->t[i].number = first + i;
    w->t[i].frames[0] = (CallFrame){.f = r->f, .regs = need(calloc(r->f->regs + 1, 8)),
                                    .known = need(calloc(r->f->regs + 1, 1))};
  }
}

static void warp_end(Warp *w) {
  for (unsigned i = 0; i < WARP; i++) free(w->t[i].copies);
  for (unsigned i = 0; i < WARP; i++)
    for (int d = 0; d <= w->t[i].depth; d++) {
      free(w->t[i].frames[d].regs);
      free(w->t[i].frames[d].known);
    }
}


/* Up to its end, or to where the block meets, or until the turn of each thread is over; its threads run one after the
 * other. True: some live. */
static bool warp_run(Run *r, Warp *w, unsigned order) {
  bool lives = false;
  for (bool moves = true; moves && !r->failed;) {
    bool waiting = false, more = false;
    lives = moves = false;
    for (unsigned k = 0; k < WARP && !r->failed; k++) {
      Thread *one = &w->t[(order & 1 ? WARP - 1 - k : k) ^ (order >> 1 & 31)];
      uint64_t end = r->slice ? r->steps + r->slice : UINT64_MAX;
      steps_until(r, one, end);
      waiting |= one->waits;
      lives |= !one->done;
      more |= runs(one);
    }
    if (more) return true;
    if (waiting && !r->failed) together(r, w->t), moves = true;
  }
  return lives;
}

/* The same in step, as a card does it: of the threads that have not ended, those at the lowest instruction (of the
 * innermost function) do it together, so that the ways of a branch join behind it. */
static bool warp_run_counted(Run *r, Warp *w) {
  for (;;) {
    int depth = -1;
    unsigned at = 0, mask = 0, live = 0;
    for (unsigned i = 0; i < WARP; i++) {
      const Thread *t = &w->t[i];
      unsigned pc = t->frames[t->depth].pc;
      live |= (unsigned)!t->done << i;
      if (t->done || t->meets) continue;
      if (t->depth > depth || (t->depth == depth && pc < at)) depth = t->depth, at = pc, mask = 0;
      if (t->depth == depth && pc == at) mask |= 1u << i;
    }
    if (!mask || r->failed) return live != 0;
    const CallFrame *c = &w->t[__builtin_ctz(mask)].frames[depth];
    const Insn *in = &c->f->code[c->pc];
    tally_begin(r->tally, c->f, in, depth, mask);
    for (unsigned i = 0; i < WARP; i++)
      if (mask >> i & 1) step(r, &w->t[i]);
    if (w->t[__builtin_ctz(mask)].waits && !r->failed) together(r, w->t);
    unsigned jumped = 0;
    if (in->op == BRA)
      for (unsigned i = 0; i < WARP; i++) jumped |= (unsigned)(w->t[i].frames[depth].pc == in->target) << i;
    tally_end(r->tally, jumped);
  }
}

static bool advance(Run *r, Warp *w, unsigned order) {
  return r->tally ? warp_run_counted(r, w) : warp_run(r, w, order);
}

/* One warp of a block whose warps never meet. */
static void run_warp(Run *r, unsigned first, unsigned order) {
  Warp *w = need(malloc(sizeof *w));
  warp_begin(r, w, first);
  if (r->tally) tally_warp(r->tally, 0, true);
  (void)advance(r, w, order);
  warp_end(w);
  free(w);
}

/* A block whose warps run side by side. */
typedef struct Resident {
  Warp *w;
  unsigned block, met;
  char *shared;
  Touched *touched;
} Resident;

static void block_begin(Run *r, Resident *b, unsigned block) {
  unsigned count = r->threads / WARP;
  *b = (Resident){.block = block, .met = 1, .w = need(malloc(count * sizeof *b->w)),
                  .shared = need(malloc(r->shared_bytes + 1)),
                  .touched = need(calloc(r->shared_bytes + 1, sizeof *b->touched))};
  memset(b->shared, 0xA5, r->shared_bytes); /* never clean */
  for (unsigned i = 0; i < count; i++) warp_begin(r, &b->w[i], i * WARP);
}

/* Up to where its threads meet, or until their turns are over. False: all have ended. */
static bool block_turn(Run *r, Resident *b, unsigned order) {
  unsigned count = r->threads / WARP;
  bool live = false;
  r->block = b->block;
  r->shared = b->shared;
  r->touched = b->touched;
  r->met = b->met;
  for (unsigned i = 0; i < count && !r->failed; i++) {
    if (r->tally) tally_warp(r->tally, i, r->met == 1);
    live |= advance(r, &b->w[order & 2 ? count - 1 - i : i], order);
  }
  for (unsigned i = 0; i < count * WARP && live; i++)
    if (runs(&b->w[i / WARP].t[i % WARP])) return true;
  for (unsigned i = 0; i < count * WARP && live && !r->failed; i++) {
    Thread *t = &b->w[i / WARP].t[i % WARP];
    if (!t->meets) trap(r, &t->frames[0], "a thread of the block has ended before the others meet");
    t->meets = false;
  }
  if (r->tally) tally_meet(r->tally, count);
  b->met++;
  return live;
}

static void block_end(Run *r, Resident *b) {
  for (unsigned i = 0; i < r->threads / WARP; i++) warp_end(&b->w[i]);
  free(b->shared);
  free(b->touched);
  free(b->w);
}

static void run_block(Run *r, unsigned block, unsigned order) {
  Resident b;
  block_begin(r, &b, block);
  while (!r->failed && block_turn(r, &b, order)) continue;
  block_end(r, &b);
}

/* Blocks that wait for one another: a few at a time, whose threads take turns of any length in any order. */
static void run_together(Run *r, unsigned seed) {
  enum { RESIDENT = 5, LONGEST = 200 };
  Resident held[RESIDENT];
  unsigned count = 0, next = 0;
  uint64_t random = seed * 0x9E3779B97F4A7C15u + 1;
  while (!r->failed && (count || next < r->blocks)) {
    while (count < RESIDENT && next < r->blocks) {
      block_begin(r, &held[count++], seed & 1 ? r->blocks - 1 - next : next);
      next++;
    }
    random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth's generator of the MMIX */
    unsigned k = (unsigned)(random >> 33) % count;
    r->slice = 1 + (random >> 45) % LONGEST;
    if (block_turn(r, &held[k], (unsigned)(random >> 54))) continue;
    block_end(r, &held[k]);
    held[k] = held[--count];
  }
  while (count) block_end(r, &held[--count]);
}

static uint64_t step_limit(void) {
  const char *limit = getenv("WEFT_MOCK_STEPS");
  return limit ? strtoull(limit, NULL, 10) : STEPS;
}

bool machine_run(const MachineFn *f, unsigned blocks, unsigned threads, unsigned shared, const uint64_t *params,
                 MachineMemory memory, unsigned seed, char *why, size_t size) {
  Run r = {.m = f->m, .f = f, .params = params, .blocks = blocks, .threads = threads, .memory = memory, .why = why,
           .shared_bytes = shared ? ((f->shared + 15) & ~15u) + shared : f->shared,
           .size = size, .limit = step_limit()};
  unsigned order = seed * 2654435761u >> 20;
  if (f->waits) run_together(&r, seed);
  for (unsigned b = 0; b < blocks && !r.failed && !f->waits; b++) {
    r.block = seed & 1 ? blocks - 1 - b : b;
    if (f->meets) run_block(&r, r.block, order);
    else
      for (unsigned first = 0; first < threads && !r.failed; first += WARP) run_warp(&r, first, order);
  }
  return !r.failed;
}

/* The first blocks, each up to where its threads have met a few times: which of the sectors that they move others have
 * moved, too. */
static void count_shares(Run *r, unsigned at_once) {
  enum { MEETINGS = 4 };
  Tally *all = r->tally;
  r->tally = tally_beside(all);
  for (unsigned i = 0; i < at_once && i < r->blocks && !r->failed; i++) {
    Resident b;
    r->steps = 0;
    block_begin(r, &b, i);
    while (!r->failed && b.met <= MEETINGS && block_turn(r, &b, 0)) continue;
    block_end(r, &b);
  }
  tally_shares(all, r->tally);
  tally_free(r->tally);
  r->tally = all;
}

bool machine_count(const MachineFn *f, unsigned blocks, unsigned threads, unsigned shared, const uint64_t *params,
                   MachineMemory memory, unsigned at_once, Tally *tally, char *why, size_t size) {
  enum { UNITS = 12, ENOUGH = 1500000 /* instructions of warps */, LONG = 2000 /* … of each, of a long block */ };
  Run r = {.m = f->m, .f = f, .params = params, .blocks = blocks, .threads = threads, .memory = memory, .why = why,
           .shared_bytes = shared ? ((f->shared + 15) & ~15u) + shared : f->shared,
           .size = size, .tally = tally, .limit = STEPS};
  unsigned warps = threads / WARP;
  uint64_t units = f->meets ? blocks : (uint64_t)blocks * warps, most = units < UNITS ? units : UNITS;
  for (uint64_t i = 0; i < most && !r.failed && (!i || tally_steps(tally) < ENOUGH); i++) {
    uint64_t u = most > 1 ? i * (units - 1) / (most - 1) : 0;
    r.steps = 0;
    r.block = (unsigned)(f->meets ? u : u / warps);
    if (f->meets) run_block(&r, r.block, 0);
    else run_warp(&r, (unsigned)(u % warps) * WARP, 0);
  }
  if (!r.failed && f->meets && tally_steps(tally) / most / warps > LONG) count_shares(&r, at_once);
  return !r.failed;
}
