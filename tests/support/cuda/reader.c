/* reader.c — text of PTX to instructions (see machine.h). */
#include "tests/support/cuda/code.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[] = {"", "pred", "u8", "u16", "b16", "f16", "s32", "u32", "b32", "f32", "s64",
                                         "u64", "b64", "f64"};

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
  MachinePlant plant;
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
    for (unsigned i = 0; i < r->f->shared_count; i++)
      if (strlen(r->f->shared_names[i]) == n && strncmp(r->f->shared_names[i], s, n) == 0)
        return (Operand){.bits = r->f->shared_at[i]};
    if (r->m->dynamic && n == 4 && strncmp(s, "rows", 4) == 0) { /* behind what the function declares */
      r->f->meets = true;
      return (Operand){.bits = (r->f->shared + 15) & ~15u};
    }
    for (unsigned i = 0; i < r->m->table_count; i++)
      if (strlen(r->m->tables[i].name) == n && strncmp(r->m->tables[i].name, s, n) == 0)
        return (Operand){.bits = (uint64_t)(uintptr_t)r->m->tables[i].values};
    wrong(r, "what is %.*s", (int)n, s);
  }
  return o;
}

/* What kind of usual instruction it is; USUAL_NOT: none. Integer operations here give the same bits whether operands
 * are cut to their width before or the result after. */
static Usual usual_of(const Insn *in) {
  static const unsigned char by_op[] = {
    [ADD] = USUAL_ADD, [SUB] = USUAL_SUB, [MUL] = USUAL_MUL, [MAD] = USUAL_MAD, [AND] = USUAL_AND, [OR] = USUAL_OR,
    [XOR] = USUAL_XOR, [WIDE] = USUAL_WIDE, [MADWIDE] = USUAL_MADWIDE, [SETP] = USUAL_SETP, [SELP] = USUAL_SELP,
    [MOV] = USUAL_MOVE};
  static const unsigned char of_f32[] = {
    [ADD] = USUAL_ADD_F32, [SUB] = USUAL_SUB_F32, [MUL] = USUAL_MUL_F32, [FMA] = USUAL_FMA_F32};
  static const unsigned char of_f64[] = {
    [ADD] = USUAL_ADD_F64, [SUB] = USUAL_SUB_F64, [MUL] = USUAL_MUL_F64, [FMA] = USUAL_FMA_F64};
  const int needs[] = {[USUAL_MOVE] = 2, [USUAL_MAD] = 4, [USUAL_MADWIDE] = 4, [USUAL_FMA_F32] = 4,
                       [USUAL_FMA_F64] = 4, [USUAL_SELP] = 4};
  if (in->op == BRA) return USUAL_BRA;
  unsigned u = 0;
  const bool apart = in->op == SETP || in->op == SELP || in->op == MOV;
  if ((in->type == T_F32 || in->type == T_F64) && !apart) {
    if (in->op < sizeof of_f32) u = in->type == T_F32 ? of_f32[in->op] : of_f64[in->op];
  } else if (in->op < sizeof by_op) {
    u = by_op[in->op];
  }
  const int least = u < sizeof needs / sizeof *needs && needs[u] ? needs[u] : 3;
  return in->count == least && in->v[0].is_reg ? (Usual)u : USUAL_NOT;
}

static void instruction(Reader *r, char *s) {
  static const struct { const char *name; unsigned char op; } plain[] = {
    {"mov", MOV}, {"add", ADD}, {"sub", SUB}, {"add.rn", ADD}, {"sub.rn", SUB}, {"mul.rn", MUL}, {"mul.lo", MUL},
    {"mul.hi", MULHI}, {"mul.wide", WIDE},
    {"mad.lo", MAD}, {"mad.wide", MADWIDE}, {"div", DIV}, {"div.rn", DIV}, {"rem", REM}, {"min", MIN}, {"max", MAX},
    {"neg", NEG}, {"abs", ABS},
    {"and", AND}, {"or", OR}, {"xor", XOR}, {"not", NOT}, {"shl", SHL}, {"shr", SHR}, {"fma.rn", FMA},
    {"sqrt.rn", SQRT}, {"copysign", COPYSIGN},
    {"selp", SELP}, {"ld.param", LD_PARAM}, {"ld.global", LD_GLOBAL}, {"ld.const", LD_CONST}, {"st.param", ST_PARAM},
    {"st.global", ST_GLOBAL}, {"ld.global.v2", LD_GLOBAL}, {"ld.global.v4", LD_GLOBAL}, {"st.global.v2", ST_GLOBAL},
    {"st.global.v4", ST_GLOBAL}, {"ld.shared", LD_SHARED}, {"ld.shared.v2", LD_SHARED}, {"ld.shared.v4", LD_SHARED},
    {"st.shared", ST_SHARED},
    {"ld.relaxed.gpu.global", LD_GLOBAL}, {"st.relaxed.gpu.global", ST_GLOBAL}, {"atom.global.add", ATOM_ADD},
    {"red.global.min", RED_MIN}, {"cvta.to.global", MOV}, {"shfl.sync.bfly", SHFL},
    {"ldmatrix.sync.aligned.m8n8.x4.shared", LDMATRIX}, {"ldmatrix.sync.aligned.m8n8.x4.trans.shared", LDMATRIX},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16", MMA}, {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16", MMA},
    {"cp.async.cg.shared", CP_ASYNC}};
  static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge", "neu", "nan"};
  static const char *const rounds[] = {"", "rn", "rzi", "rni", "rmi", "rpi"};
  MachineFn *f = r->f;
  Operand given[OPERANDS] = {0};
  Insn in = {.line = r->line, .v = given};
  bool publishes = false;
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
  else if (strcmp(s, "cp.async.commit_group") == 0) in.op = CP_COMMIT;
  else if (strcmp(s, "cp.async.wait_group") == 0) {
    in.op = CP_WAIT;
    in.target = (unsigned)strtoul(args, NULL, 10);
  }
  else if (strcmp(s, "bar.sync") == 0) {
    in.op = BAR_SYNC;
    f->meets = true;
    if (strcmp(args, "0") != 0 || in.guarded) wrong(r, "bar.sync %s", args);
  }
  else {
    char *dot = strrchr(s, '.');
    if (!dot) { wrong(r, "instruction %s", s); return; }
    *dot = 0;
    in.type = (unsigned char)type_of(dot + 1, strlen(dot + 1));
    if (strcmp(s, "cp.async.cg.shared") == 0 && strcmp(dot + 1, "global") == 0) in.type = T_B32;
    if (!in.type) wrong(r, "type %s", dot + 1);
    bool known = false;
    for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++)
      if (strcmp(plain[i].name, s) == 0) in.op = plain[i].op, known = true;
    if (strncmp(s, "setp.", 5) == 0) {
      in.op = SETP;
      for (unsigned i = 0; i < 8; i++)
        if (strcmp(compares[i], s + 5) == 0) in.how = (unsigned char)i, known = true;
    } else if (strcmp(s, "cvt.rn.f16x2") == 0 || strcmp(s, "cvt.rn.bf16x2") == 0) {
      in.op = CVT_PAIR;
      in.how = s[7] == 'b';
      known = in.type == T_F32;
      in.type = T_B32;
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
    if (strstr(s, ".rn") && integer && in.op != CVT && in.op != CVT_PAIR) wrong(r, "rounding of integers");
    if (in.op == ATOM_ADD) f->waits = true;
    publishes = in.op == ST_GLOBAL && strstr(s, ".relaxed");
    in.waits = in.op == LD_GLOBAL && strstr(s, ".relaxed");
    bool several = in.op == LD_GLOBAL || in.op == ST_GLOBAL || in.op == LD_SHARED;
    if (several) in.how = strstr(s, ".v4") ? 4 : strstr(s, ".v2") ? 2 : 1;
    if (in.op == MOV && args[0] == '{') in.op = UNPACK;
    if (in.op == MOV && strchr(args, '{')) in.op = PACK;
    for (char *a = args; a && !r->failed;) {
      char *comma = strchr(a, ',');
      if (comma) *comma = 0;
      if (in.count == OPERANDS) { wrong(r, "too many operands"); break; }
      const char *plus = a[0] && strchr(a, '[') ? strchr(a, '+') : NULL; /* [%rd1+64] */
      if (plus) in.offset = (unsigned)strtoul(plus + 1, NULL, 10);
      in.v[in.count++] = operand(r, a);
      a = comma ? comma + 1 : NULL;
    }
    if (in.op == LDMATRIX) in.how = strstr(s, ".trans") && r->plant != PLANT_FRAGMENT;
    if (in.op == MMA) in.how = strstr(s, ".bf16") != NULL;
    static const int counts[] = {[LDMATRIX] = 5, [MMA] = 14, [CP_ASYNC] = 4, [CVT_PAIR] = 3, [CP_WAIT] = 0};
    if (in.op < sizeof counts / sizeof *counts && counts[in.op] && in.count != counts[in.op])
      wrong(r, "%d operands of %s", in.count, s);
    if ((in.op == LDMATRIX || in.op == MMA) && in.guarded) wrong(r, "a guard of %s", s);
    if (in.op == LDMATRIX && in.type != T_B16) wrong(r, "elements of %s", s);
    if (in.op == CP_ASYNC && (in.v[2].is_reg || in.v[2].bits != 16)) wrong(r, "bytes of %s", s);
    bool displaced = several || in.op == LDMATRIX || in.op == CP_ASYNC || in.op == ST_SHARED;
    if (in.offset && !displaced) wrong(r, "an offset of %s", s);
    if (several && in.count != in.how + 1)
      wrong(r, "%d operands of %s", in.count, s);
  }
  if (in.op == MAD && in.type == T_U32 && !in.v[2].is_reg && in.v[2].bits == 33 && r->plant == PLANT_UNPADDED)
    in.v[2].bits = 32;
  if (r->plant == PLANT_NO_MEETING && in.op == BAR_SYNC) return;
  if (r->plant == PLANT_SILENT && in.op == ST_GLOBAL && publishes) return;
  if (r->plant == PLANT_TIE && in.op == SETP && in.how == GT && (in.type == T_F32 || in.type == T_F64)) in.how = GE;
  if (r->plant == PLANT_FORGET && in.op == MAD && in.type == T_U32 && in.v[1].is_reg && in.v[2].is_reg &&
      in.v[3].is_reg && in.v[3].reg == in.v[0].reg) {
    in.op = MUL;
    in.count = 3;
  }
  bool global = in.op == LD_GLOBAL || in.op == ST_GLOBAL;
  unsigned parts = global && r->plant == PLANT_SCALAR ? in.how : 1;
  for (unsigned i = 0; i < parts && !r->failed; i++) {
    Insn one = in;
    const int own = in.count > OWN_OPERANDS ? in.count : OWN_OPERANDS;
    one.v = need(malloc((size_t)own * sizeof *one.v));
    memcpy(one.v, given, (size_t)own * sizeof *one.v);
    if (parts > 1) {
      one.how = 1;
      one.count = 2;
      one.offset += i * type_bytes[in.type];
      one.v[0] = in.op == LD_GLOBAL ? in.v[i] : in.v[0];
      one.v[1] = in.op == LD_GLOBAL ? in.v[in.how] : in.v[1 + i];
    }
    one.usual = (unsigned char)usual_of(&one);
    const bool whole = one.op == WIDE || one.op == MADWIDE || one.op == SETP;
    const unsigned bits = one.type == T_PRED ? 1 : type_bytes[one.type] * 8;
    one.mask = whole || bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
    if (f->count == f->cap) f->code = need(realloc(f->code, (f->cap = f->cap ? f->cap * 2 : 256) * sizeof *f->code));
    f->code[f->count++] = one;
  }
}

static MachineFn *begin_fn(Reader *r, bool entry, const char *name) {
  Machine *m = r->m;
  if (m->fn_count == 256) { wrong(r, "too many functions"); return NULL; }
  MachineFn *f = need(calloc(1, sizeof *f));
  m->fns[m->fn_count++] = r->f = f;
  f->entry = entry;
  f->m = m;
  f->allowed = 48 * 1024;
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

/* .shared .align 4 .b8 tile[4224]; */
static void declare_shared(Reader *r, const char *s) {
  MachineFn *f = r->f;
  unsigned align, bytes;
  if (f->shared_count == 4 ||
      sscanf(s, ".shared .align %u .b8 %15[a-z0-9_][%u];", &align, f->shared_names[f->shared_count], &bytes) != 3 ||
      !align || (align & (align - 1)) || align > 16) {
    wrong(r, "declaration %s", s);
    return;
  }
  f->shared = (f->shared + align - 1) & ~(align - 1);
  f->shared_at[f->shared_count++] = f->shared;
  f->shared += bytes;
  f->meets = true;
  if (f->shared > 48 * 1024) wrong(r, "more than 48 KB of shared memory");
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

Machine *machine_load(const char *ptx, MachinePlant plant, char *why, size_t size) {
  char *copy = need(strdup(ptx)), *next = copy;
  Reader *r = need(calloc(1, sizeof *r));
  r->m = need(calloc(1, sizeof *r->m));
  r->why = why;
  r->plant = plant;
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
    if (strcmp(s, ".extern .shared .align 16 .b8 rows[];") == 0) {
      r->m->dynamic = true;
      continue;
    }
    if (sscanf(s, ".visible .entry %63[A-Za-z0-9_$]", name) == 1) {
      begin_fn(r, true, name);
      header = true;
    } else if (sscanf(s, ".func (.param .%*s result) %63[A-Za-z0-9_$] (", name) == 1) {
      if (begin_fn(r, false, name)) add_params(r, strchr(s + 6, ')'));
    } else if (header) {
      if (strcmp(s, ") {") == 0 || strcmp(s, "{") == 0) header = false;
      else add_params(r, s);
    } else if (!r->f) wrong(r, "outside of functions: %s", s);
    else if (strncmp(s, ".reg", 4) == 0) declare(r, s);
    else if (strncmp(s, ".shared", 7) == 0) declare_shared(r, s);
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
    for (unsigned k = 0; k < m->fns[i]->count; k++) free(m->fns[i]->code[k].v);
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
void machine_allow(MachineFn *f, unsigned shared) { f->allowed = shared; }
unsigned machine_allowed(const MachineFn *f) { return f->allowed; }
