/* machine.c — reads and runs PTX (see machine.h). */
#include "tests/support/cuda/machine.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum Op {
  MOV, PACK, UNPACK, ADD, SUB, MUL, MULHI, WIDE, MAD, MADWIDE, DIV, REM, MIN, MAX, NEG, ABS, AND, OR, XOR, NOT, SHL,
  SHR, FMA, SQRT, COPYSIGN,
  CVT, SETP, SELP, LD_PARAM, LD_GLOBAL, LD_CONST, ST_PARAM, ST_GLOBAL, RED_MIN, BRA, RET, CALL, SHFL, BAR_WARP,
} Op;
typedef enum Type { T_NONE, T_PRED, T_U8, T_U16, T_B16, T_F16, T_S32, T_U32, T_B32, T_F32, T_S64, T_U64, T_B64,
                    T_F64 } Type;
static const char *const type_names[] = {"", "pred", "u8", "u16", "b16", "f16", "s32", "u32", "b32", "f32", "s64",
                                         "u64", "b64", "f64"};
static const unsigned type_bytes[] = {0, 1, 1, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8};

typedef enum Special { SP_NONE, SP_CTAID, SP_NTID, SP_TID, SP_NCTAID } Special;

/* Where a named operand lies: a parameter of this function, an argument or the result of a call, the result of this
 * function. */
typedef enum Where { W_NONE, W_PARAM, W_ARGUMENT, W_CALLED, W_RESULT } Where;

typedef struct Operand {
  bool is_reg, is_special;
  unsigned char where;
  unsigned reg;
  uint64_t bits;
} Operand;

typedef struct Insn {
  unsigned char op, type, from, how; /* how: comparison or rounding */
  bool guarded, inverted;
  unsigned guard, target; /* register; instruction or function */
  Operand v[6];
  int count;
  unsigned line;
} Insn;

struct MachineFn {
  char name[64];
  bool entry;
  const Machine *m;
  unsigned params;
  char param_names[600][16];
  unsigned base[6], regs; /* p h r rd f d */
  Insn *code;
  unsigned count, cap;
};

typedef struct Table {
  char name[64];
  uint64_t *values;
  size_t count;
} Table;

struct Machine {
  MachineFn *fns[256];
  unsigned fn_count;
  Table tables[32];
  unsigned table_count;
};

/* ---- reading --------------------------------------------------------------------------------------------- */

typedef struct Label {
  char name[40];
  unsigned at;
} Label;

typedef struct Reader {
  Machine *m;
  MachineFn *f;
  Label labels[8192];
  unsigned label_count;
  struct Fix { unsigned insn; char label[40]; } fixes[16384];
  unsigned fix_count;
  unsigned line;
  char *why;
  size_t size;
  bool failed;
} Reader;

__attribute__((format(printf, 2, 3))) static void wrong(Reader *r, const char *fmt, ...) {
  if (r->failed) return;
  r->failed = true;
  int n = snprintf(r->why, r->size, "line %u: ", r->line);
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(r->why + n, r->size - (size_t)n, fmt, ap);
  va_end(ap);
}

static void *need(void *p) {
  if (!p) abort();
  return p;
}

static Type type_of(const char *s, size_t n) {
  for (unsigned t = 1; t < sizeof type_names / sizeof *type_names; t++)
    if (strlen(type_names[t]) == n && strncmp(type_names[t], s, n) == 0) return (Type)t;
  return T_NONE;
}

static int bank_of(const char **s) {
  static const char *const banks[] = {"rd", "p", "h", "r", "f", "d"};
  static const int number[] = {3, 0, 1, 2, 4, 5};
  for (int i = 0; i < 6; i++) {
    size_t n = strlen(banks[i]);
    if (strncmp(*s, banks[i], n) == 0 && isdigit((unsigned char)(*s)[n])) {
      *s += n;
      return number[i];
    }
  }
  return -1;
}

static Operand operand(Reader *r, char *s) {
  Operand o = {0};
  while (*s == ' ' || *s == '[' || *s == '{') s++;
  if (*s == '%') {
    static const char *const specials[] = {"%ctaid.x", "%ntid.x", "%tid.x", "%nctaid.x"};
    for (unsigned i = 0; i < 4; i++)
      if (strncmp(s, specials[i], strlen(specials[i])) == 0) return (Operand){.is_special = true, .reg = SP_CTAID + i};
    const char *at = s + 1;
    int bank = bank_of(&at);
    if (bank < 0) wrong(r, "what register is %s", s);
    else o = (Operand){.is_reg = true, .reg = r->f->base[bank] + (unsigned)strtoul(at, NULL, 10)};
    if (o.reg >= r->f->regs) wrong(r, "register %s is not declared", s);
    return o;
  }
  if (s[0] == '0' && (s[1] == 'd' || s[1] == 'f')) o.bits = strtoull(s + 2, NULL, 16);
  else if (isdigit((unsigned char)*s)) o.bits = strtoull(s, NULL, 0);
  else if (*s == '-') o.bits = (uint64_t)strtoll(s, NULL, 10);
  else { /* a parameter, or a table */
    size_t n = strcspn(s, "] ,;");
    for (unsigned i = 0; i < r->f->params; i++)
      if (strlen(r->f->param_names[i]) == n && strncmp(r->f->param_names[i], s, n) == 0)
        return (Operand){.where = W_PARAM, .bits = i};
    if (s[0] == 'x' && n == 2) return (Operand){.where = W_ARGUMENT, .bits = (uint64_t)(s[1] - '0') & 3};
    if (n == 1 && *s == 'y') return (Operand){.where = W_CALLED};
    if (n == 6 && strncmp(s, "result", 6) == 0) return (Operand){.where = W_RESULT};
    for (unsigned i = 0; i < r->m->table_count; i++)
      if (strlen(r->m->tables[i].name) == n && strncmp(r->m->tables[i].name, s, n) == 0)
        return (Operand){.bits = (uint64_t)(uintptr_t)r->m->tables[i].values};
    wrong(r, "what is %.*s", (int)n, s);
  }
  return o;
}

enum { EQ, NE, LT, LE, GT, GE, NEU, UNORDERED };
enum { EXACT, RN, RZI, RNI, RMI, RPI };

static void instruction(Reader *r, char *s) {
  static const struct { const char *name; unsigned char op; } plain[] = {
    {"mov", MOV}, {"add", ADD}, {"sub", SUB}, {"add.rn", ADD}, {"sub.rn", SUB}, {"mul.rn", MUL}, {"mul.lo", MUL},
    {"mul.hi", MULHI}, {"mul.wide", WIDE},
    {"mad.lo", MAD}, {"mad.wide", MADWIDE}, {"div", DIV}, {"div.rn", DIV}, {"rem", REM}, {"min", MIN}, {"max", MAX},
    {"neg", NEG}, {"abs", ABS},
    {"and", AND}, {"or", OR}, {"xor", XOR}, {"not", NOT}, {"shl", SHL}, {"shr", SHR}, {"fma.rn", FMA},
    {"sqrt.rn", SQRT}, {"copysign", COPYSIGN},
    {"selp", SELP}, {"ld.param", LD_PARAM}, {"ld.global", LD_GLOBAL}, {"ld.const", LD_CONST}, {"st.param", ST_PARAM},
    {"st.global", ST_GLOBAL},
    {"red.global.min", RED_MIN}, {"cvta.to.global", MOV}, {"shfl.sync.bfly", SHFL}};
  static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge", "neu", "nan"};
  static const char *const rounds[] = {"", "rn", "rzi", "rni", "rmi", "rpi"};
  MachineFn *f = r->f;
  Insn in = {.line = r->line};
  if (*s == '@') {
    in.guarded = true;
    in.inverted = s[1] == '!';
    Operand g = operand(r, s + 1 + in.inverted);
    in.guard = g.reg;
    s = strchr(s, ' ');
    while (*s == ' ') s++;
  }
  char *end = strrchr(s, ';');
  if (!end) { wrong(r, "no semicolon: %s", s); return; }
  *end = 0;
  char *args = strchr(s, ' ');
  if (args) *args++ = 0;
  else args = end;
  if (strcmp(s, "ret") == 0) in.op = RET;
  else if (strcmp(s, "bra") == 0 || strcmp(s, "bra.uni") == 0) {
    in.op = BRA;
    if (r->fix_count == 16384) { wrong(r, "too many branches"); return; }
    r->fixes[r->fix_count].insn = f->count;
    snprintf(r->fixes[r->fix_count++].label, 40, "%s", args);
  } else if (strcmp(s, "call") == 0) {
    char name[64];
    in.op = CALL;
    if (sscanf(args, "(y), %63[A-Za-z0-9_$]", name) != 1) wrong(r, "call %s", args);
    for (in.target = 0; in.target < r->m->fn_count && strcmp(r->m->fns[in.target]->name, name) != 0; in.target++)
      continue;
    if (in.target == r->m->fn_count) wrong(r, "no function %s", name);
  } else if (strcmp(s, "bar.warp.sync") == 0) in.op = BAR_WARP;
  else {
    char *dot = strrchr(s, '.');
    if (!dot) { wrong(r, "instruction %s", s); return; }
    *dot = 0;
    in.type = (unsigned char)type_of(dot + 1, strlen(dot + 1));
    if (!in.type) wrong(r, "type %s", dot + 1);
    bool known = false;
    for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++)
      if (strcmp(plain[i].name, s) == 0) in.op = plain[i].op, known = true;
    if (strncmp(s, "setp.", 5) == 0) {
      in.op = SETP;
      for (unsigned i = 0; i < 8; i++)
        if (strcmp(compares[i], s + 5) == 0) in.how = (unsigned char)i, known = true;
    } else if (strncmp(s, "cvt.", 4) == 0) {
      in.op = CVT;
      char *to = strrchr(s, '.') + 1;
      in.from = in.type;
      in.type = (unsigned char)type_of(to, strlen(to));
      *(to - 1) = 0;
      const char *round = strlen(s) > 4 ? s + 4 : "";
      for (unsigned i = 0; i < 6; i++)
        if (strcmp(rounds[i], round) == 0) in.how = (unsigned char)i, known = in.type != T_NONE;
    }
    if (!known) wrong(r, "instruction %s", s);
    bool integer = in.type >= T_S32 && in.type != T_F32 && in.type != T_F64;
    if (strstr(s, ".rn") && integer && in.op != CVT) wrong(r, "rounding of integers");
    if (in.op == MOV && args[0] == '{') in.op = UNPACK;
    if (in.op == MOV && strchr(args, '{')) in.op = PACK;
    for (char *a = args; a && !r->failed;) {
      char *comma = strchr(a, ',');
      if (comma) *comma = 0;
      if (in.count == 6) { wrong(r, "too many operands"); break; }
      in.v[in.count++] = operand(r, a);
      a = comma ? comma + 1 : NULL;
    }
  }
  if (f->count == f->cap) f->code = need(realloc(f->code, (f->cap = f->cap ? f->cap * 2 : 256) * sizeof *f->code));
  f->code[f->count++] = in;
}

static MachineFn *begin_fn(Reader *r, bool entry, const char *name) {
  Machine *m = r->m;
  if (m->fn_count == 256) { wrong(r, "too many functions"); return NULL; }
  MachineFn *f = need(calloc(1, sizeof *f));
  m->fns[m->fn_count++] = r->f = f;
  f->entry = entry;
  f->m = m;
  snprintf(f->name, sizeof f->name, "%s", name);
  r->label_count = r->fix_count = 0;
  return f;
}

static void add_params(Reader *r, const char *s) {
  for (const char *p = strstr(s, ".param"); p && !r->failed; p = strstr(p + 1, ".param")) {
    char type[16], name[16];
    if (sscanf(p, ".param .%15s %15[a-z0-9]", type, name) != 2) continue;
    if (r->f->params == 600) wrong(r, "too many parameters");
    else snprintf(r->f->param_names[r->f->params++], 16, "%s", name);
  }
}

static void end_fn(Reader *r) {
  for (unsigned i = 0; i < r->fix_count; i++) {
    unsigned k = 0;
    while (k < r->label_count && strcmp(r->labels[k].name, r->fixes[i].label) != 0) k++;
    if (k == r->label_count) { wrong(r, "no label %s", r->fixes[i].label); return; }
    r->f->code[r->fixes[i].insn].target = r->labels[k].at;
  }
  r->f = NULL;
}

static void declare(Reader *r, const char *s) {
  char prefix[8];
  unsigned n;
  static const char *const banks[] = {"p", "h", "r", "rd", "f", "d"};
  if (sscanf(s, ".reg .%*s %%%7[a-z]<%u>", prefix, &n) != 2) { wrong(r, "declaration %s", s); return; }
  for (int i = 0; i < 6; i++)
    if (strcmp(banks[i], prefix) == 0) {
      r->f->base[i] = r->f->regs;
      r->f->regs += n;
    }
}

static void read_table(Reader *r, char **text) {
  Machine *m = r->m;
  Table *t = &m->tables[m->table_count];
  unsigned n;
  if (m->table_count == 32 || sscanf(*text, ".const .align 8 .%*[a-z0-9] %63[a-zA-Z0-9_][%u]", t->name, &n) != 2) {
    wrong(r, "a table");
    return;
  }
  t->values = need(calloc(n, sizeof *t->values));
  char *s = strchr(*text, '{') + 1;
  for (; t->count < n; t->count++) {
    while (*s == ' ' || *s == ',' || *s == '\n') s++;
    t->values[t->count] = s[0] == '0' && s[1] == 'd' ? strtoull(s + 2, &s, 16) : strtoull(s, &s, 0);
  }
  m->table_count++;
  *text = strstr(s, "};") + 2;
}

Machine *machine_load(const char *ptx, char *why, size_t size) {
  char *copy = need(strdup(ptx)), *next = copy;
  Reader *r = need(calloc(1, sizeof *r));
  r->m = need(calloc(1, sizeof *r->m));
  r->why = why;
  r->size = size;
  bool header = false; /* between the name of an entry and its body */
  while (next && *next && !r->failed) {
    char *s = next;
    r->line++;
    while (*s == ' ') s++;
    if (strncmp(s, ".const", 6) == 0) {
      next = s;
      read_table(r, &next);
      continue;
    }
    next = strchr(s, '\n');
    if (next) *next++ = 0;
    char *comment = strstr(s, "//");
    if (comment) *comment = 0;
    for (char *e = s + strlen(s); e > s && e[-1] == ' ';) *--e = 0;
    char name[64];
    size_t n = strlen(s);
    if (!*s || strncmp(s, ".version", 8) == 0 || strncmp(s, ".target", 7) == 0 || strncmp(s, ".address_size", 13) == 0)
      continue;
    if (sscanf(s, ".visible .entry %63[A-Za-z0-9_$]", name) == 1) {
      begin_fn(r, true, name);
      header = true;
    } else if (sscanf(s, ".func (.param .%*s result) %63[A-Za-z0-9_$] (", name) == 1) {
      if (begin_fn(r, false, name)) add_params(r, strchr(s + 6, ')'));
    } else if (header) {
      if (strcmp(s, ") {") == 0) header = false;
      else add_params(r, s);
    } else if (!r->f) wrong(r, "outside of functions: %s", s);
    else if (strncmp(s, ".reg", 4) == 0) declare(r, s);
    else if (s[n - 1] == ':') {
      if (r->label_count == 8192) { wrong(r, "too many labels"); break; }
      snprintf(r->labels[r->label_count].name, 40, "%.*s", (int)(n - 1), s);
      r->labels[r->label_count++].at = r->f->count;
    } else if (strcmp(s, "{") == 0 || strncmp(s, ".param", 6) == 0) continue;
    else if (strcmp(s, "}") == 0) {
      if (s == copy || s[-1] == '\n' || s[-1] == 0) end_fn(r); /* at the line's beginning */
    } else instruction(r, s);
  }
  if (!r->failed && r->f) wrong(r, "the text ends inside of a function");
  Machine *m = r->m;
  if (r->failed) {
    machine_free(m);
    m = NULL;
  }
  free(r);
  free(copy);
  return m;
}

void machine_free(Machine *m) {
  if (!m) return;
  for (unsigned i = 0; i < m->fn_count; i++) {
    free(m->fns[i]->code);
    free(m->fns[i]);
  }
  for (unsigned i = 0; i < m->table_count; i++) free(m->tables[i].values);
  free(m);
}

const MachineFn *machine_find(const Machine *m, const char *entry) {
  for (unsigned i = 0; i < m->fn_count; i++)
    if (m->fns[i]->entry && strcmp(m->fns[i]->name, entry) == 0) return m->fns[i];
  return NULL;
}

unsigned machine_params(const MachineFn *f) { return f->params; }

/* ---- running ------------------------------------------------------------------------------------------------ */

enum { WARP = 32, STEPS = 200000000 };

typedef struct CallFrame {
  const MachineFn *f;
  unsigned pc;
  uint64_t *regs;
  unsigned char *known;
  uint64_t params[4], args[4], result;
} CallFrame;

typedef struct Thread {
  CallFrame frames[2];
  int depth;
  unsigned number; /* in its block */
  bool done, waits;
} Thread;

typedef struct Run {
  const Machine *m;
  const MachineFn *f;
  const uint64_t *params;
  unsigned block, blocks, threads;
  MachineMemory memory;
  uint64_t steps;
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

static uint64_t get(Run *r, Thread *t, CallFrame *c, const Insn *in, int i) {
  const Operand *o = &in->v[i];
  if (i >= in->count) { trap(r, c, "an operand is missing"); return 0; }
  if (o->is_special)
    return o->reg == SP_CTAID ? r->block : o->reg == SP_NTID ? r->threads : o->reg == SP_TID ? t->number : r->blocks;
  if (!o->is_reg) return o->bits;
  if (!c->known[o->reg]) trap(r, c, "a register is read before it is written (operand %d)", i);
  return c->regs[o->reg];
}

static void set(CallFrame *c, const Operand *o, uint64_t v) {
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

static void *memory_at(Run *r, CallFrame *c, uint64_t at, Type t) {
  unsigned bytes = type_bytes[t];
  if (at % bytes) trap(r, c, "the address %llx is not aligned to %u", (unsigned long long)at, bytes);
  else if (!r->memory(at, bytes))
    trap(r, c, "the address %llx lies in no memory of the device", (unsigned long long)at);
  return r->failed ? NULL : (void *)(uintptr_t)at;
}

/* One instruction of a thread; those that all threads of a warp meet at are done in run_warp. */
static void step(Run *r, Thread *t) {
  CallFrame *c = &t->frames[t->depth];
  if (c->pc >= c->f->count) { trap(r, c, "the end of the function is passed"); return; }
  const Insn *in = &c->f->code[c->pc];
  if (++r->steps > STEPS) { trap(r, c, "it does not end"); return; }
  if (in->guarded) {
    if (!c->known[in->guard]) trap(r, c, "the guard was never written");
    if ((c->regs[in->guard] & 1) == in->inverted) {
      c->pc++;
      return;
    }
  }
  if (in->op == SHFL || in->op == BAR_WARP) {
    t->waits = true;
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
      p = memory_at(r, c, get(r, t, c, in, 1), ty);
      if (p) memcpy(&v, p, type_bytes[ty]);
      set(c, &in->v[0], v);
      return;
    case ST_GLOBAL:
      v = get(r, t, c, in, 1);
      p = memory_at(r, c, get(r, t, c, in, 0), ty);
      if (p) memcpy(p, &v, type_bytes[ty]);
      return;
    case RED_MIN:
      v = get(r, t, c, in, 1);
      p = memory_at(r, c, get(r, t, c, in, 0), ty);
      if (p && v < *(uint64_t *)p) *(uint64_t *)p = v;
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
  for (unsigned i = 0; i < WARP && !r->failed; i++) {
    CallFrame *c = &t[i].frames[t[i].depth];
    if (in->op == SHFL) set(c, &in->v[0], (uint32_t)given[i ^ in->v[2].bits]);
    c->pc++;
    t[i].waits = false;
  }
}

static void run_warp(Run *r, unsigned first, unsigned order) {
  Thread *t = need(calloc(WARP, sizeof *t));
  for (unsigned i = 0; i < WARP; i++) {
    t[i].number = first + i;
    t[i].frames[0] = (CallFrame){.f = r->f, .regs = need(calloc(r->f->regs + 1, 8)),
                                 .known = need(calloc(r->f->regs + 1, 1))};
  }
  for (bool live = true; live && !r->failed;) {
    bool waiting = false;
    live = false;
    for (unsigned k = 0; k < WARP && !r->failed; k++) {
      Thread *one = &t[(order & 1 ? WARP - 1 - k : k) ^ (order >> 1 & 31)];
      while (!one->done && !one->waits && !r->failed) step(r, one);
      waiting |= one->waits;
      live |= !one->done;
    }
    if (waiting && !r->failed) together(r, t);
  }
  for (unsigned i = 0; i < WARP; i++)
    for (int d = 0; d <= t[i].depth; d++) {
      free(t[i].frames[d].regs);
      free(t[i].frames[d].known);
    }
  free(t);
}

bool machine_run(const MachineFn *f, unsigned blocks, unsigned threads, const uint64_t *params, MachineMemory memory,
                 unsigned seed, char *why, size_t size) {
  Run r = {.m = f->m, .f = f, .params = params, .blocks = blocks, .threads = threads, .memory = memory, .why = why,
           .size = size};
  for (unsigned b = 0; b < blocks && !r.failed; b++) {
    r.block = seed & 1 ? blocks - 1 - b : b;
    for (unsigned first = 0; first < threads && !r.failed; first += WARP) run_warp(&r, first, seed * 2654435761u >> 20);
  }
  return !r.failed;
}
