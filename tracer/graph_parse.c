/* graph_parse.c — reads the text form of a graph (see graph.h for the form). Blanks and newlines are alike; `;` begins
 * a comment. Values are names behind % or !; a name belongs to its block, but exits may name any. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/reasons.h"
#include "tracer/graph.h"

typedef struct Bound {
  const char *name;
  u32 len;
  ValueId value;
  bool closed; /* its block has ended */
} Bound;

typedef struct Fixup { /* an unbacked symbol whose value comes later */
  u32 sym;
  const char *name;
  u32 len;
} Fixup;

typedef struct Parser {
  Graph *g;
  Names *names;
  const char *text, *at, *end;
  char *err;
  size_t err_cap;
  bool bad;
  VEC(Bound) bound;
  VEC(Fixup) fixups;
  Arena temp;
} Parser;

/* ---- scanning -------------------------------------------------------------------------------------- */

static bool fail(Parser *p, const char *what) {
  if (p->bad) return false;
  p->bad = true;
  u32 line = 1;
  for (const char *c = p->text; c < p->at && c < p->end; c++) line += *c == '\n';
  if (p->err && !p->g->failed) snprintf(p->err, p->err_cap, "line %u: %s", line, what);
  return false;
}

static void skip(Parser *p) {
  while (p->at < p->end) {
    if (*p->at == ';')
      while (p->at < p->end && *p->at != '\n') p->at++;
    else if (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') p->at++;
    else return;
  }
}

static char peek(Parser *p) {
  skip(p);
  return p->at < p->end ? *p->at : 0;
}

static bool take(Parser *p, const char *s) {
  size_t n = strlen(s);
  skip(p);
  if ((size_t)(p->end - p->at) < n || memcmp(p->at, s, n) != 0) return false;
  p->at += n;
  return true;
}

static bool expect(Parser *p, const char *s) {
  char text[64];
  if (p->bad) return false;
  if (take(p, s)) return true;
  snprintf(text, sizeof text, "expected '%s'", s);
  return fail(p, text);
}

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool digit(char c) { return c >= '0' && c <= '9'; }
static bool wordish(char c) { return letter(c) || digit(c); }

/* The word at the cursor without taking it; 0 when there is none. */
static u32 word_at(Parser *p, const char **start) {
  skip(p);
  const char *c = *start = p->at;
  if (c < p->end && letter(*c))
    while (c < p->end && wordish(*c)) c++;
  return (u32)(c - *start);
}

static bool is(const char *s, u32 len, const char *word) { return strlen(word) == len && memcmp(s, word, len) == 0; }

static bool take_word(Parser *p, const char *word) {
  const char *s;
  u32 n = word_at(p, &s);
  if (!n || !is(s, n, word)) return false;
  p->at = s + n;
  return true;
}

static u32 any_word(Parser *p, const char **start) {
  u32 n = word_at(p, start);
  if (!n) fail(p, "expected a word");
  p->at = *start + n;
  return n;
}

static i64 integer(Parser *p) {
  skip(p);
  char text[32], *end;
  u32 n = 0;
  const char *c = p->at;
  if (c < p->end && *c == '-') text[n++] = *c++;
  while (c < p->end && digit(*c) && n < sizeof text - 1) text[n++] = *c++;
  text[n] = 0;
  long long v = strtoll(text, &end, 10);
  if (n == 0 || *end || end == text) {
    fail(p, "expected an integer");
    return 0;
  }
  p->at = c;
  return v;
}

static u32 number(Parser *p) {
  i64 v = integer(p);
  if (v < 0 || v > UINT32_MAX) fail(p, "number out of range");
  return (u32)v;
}

/* A quoted text, unescaped into the parser's temporary memory. */
static char *quoted(Parser *p, u32 *len) {
  *len = 0;
  if (!expect(p, "\"")) return NULL;
  char *out = arena_alloc(&p->temp, (size_t)(p->end - p->at) + 1);
  if (!out) {
    p->g->failed = true;
    fail(p, "out of memory");
    return NULL;
  }
  while (p->at < p->end && *p->at != '"') {
    char c = *p->at++;
    if (c == '\\' && p->at < p->end) {
      c = *p->at++;
      if (c == 'n') c = '\n';
      else if (c == 'x' && p->end - p->at >= 2) {
        char hex[3] = {p->at[0], p->at[1], 0};
        c = (char)strtoul(hex, NULL, 16);
        p->at += 2;
      }
    }
    out[(*len)++] = c;
  }
  out[*len] = 0;
  expect(p, "\"");
  return out;
}

static char *temp_copy(Parser *p, const char *s, u32 n) {
  char *t = arena_copy(&p->temp, s, n);
  if (!t) {
    p->g->failed = true;
    fail(p, "out of memory");
  }
  return t;
}

static bool checked(Parser *p, bool ok, const char *what) {
  if (ok && !p->g->failed && !p->g->exits.failed && !p->g->guards.failed && !p->g->sizes.failed) return true;
  if (!ok) return fail(p, what);
  p->g->failed = true;
  return fail(p, "out of memory");
}

/* ---- sizes, types, values --------------------------------------------------------------------------- */

static Dim size(Parser *p, char close) {
  Dim d = DIM_NONE;
  const char *stop = p->at;
  while (stop < p->end && *stop != '\n' && *stop != close) stop++;
  const char *after = p->bad ? NULL : size_parse(&p->g->sizes, p->at, stop, &d);
  if (!after) {
    fail(p, "expected a size expression");
    return 0;
  }
  p->at = after;
  return d;
}

static bool symbol_at(Parser *p, Dim *out) {
  const char *s;
  u32 n = word_at(p, &s);
  for (u32 i = 0; n && i < p->g->sizes.syms.count; i++)
    if (is(s, n, p->g->sizes.syms.data[i].name)) {
      *out = p->g->sizes.syms.data[i].dim;
      p->at = s + n;
      return true;
    }
  return false;
}

static Dim dim(Parser *p) {
  Dim d = 0;
  if (take(p, "<")) {
    d = size(p, '>');
    expect(p, ">");
  } else if (!symbol_at(p, &d)) {
    d = size_const(&p->g->sizes, integer(p));
  }
  if (d == DIM_NONE) fail(p, "the size expression is too large");
  return d;
}

static u32 dtype_at(Parser *p) {
  const char *s;
  u32 n = word_at(p, &s), d = n ? dtype_by_name(s, n) : DT_NONE;
  if (d != DT_NONE) p->at = s + n;
  return d;
}

static bool type_starts(Parser *p) {
  const char *s;
  char c = peek(p);
  u32 n = word_at(p, &s);
  if (c == '!') return p->end - p->at < 2 || !wordish(p->at[1]);
  return n && (is(s, n, "weak") || dtype_by_name(s, n) != DT_NONE);
}

static TypeId type(Parser *p) {
  if (take(p, "!")) return TYPE_TOKEN;
  ArrayType t = {0};
  t.weak = take_word(p, "weak");
  t.dtype = (u8)dtype_at(p);
  if (!t.dtype) fail(p, "expected a type");
  expect(p, "[");
  while (!p->bad && !take(p, "]")) {
    if (t.rank == TYPE_MAX_RANK) {
      fail(p, "the rank is too large");
      break;
    }
    if (t.rank) expect(p, ",");
    t.dims[t.rank++] = dim(p);
  }
  if (take_word(p, "on")) t.device = (u8)number(p);
  TypeId id = p->bad ? 0 : graph_type(p->g, &t);
  if (!p->bad && !id) checked(p, true, "");
  return id;
}

static ValueId lookup(Parser *p, const char *name, u32 len, bool any) {
  for (u32 pass = 0; pass < (any ? 2u : 1u); pass++)
    for (u32 i = p->bound.count; i-- > 0;) {
      const Bound *b = &p->bound.data[i];
      if ((pass || !b->closed) && b->len == len && memcmp(b->name, name, len) == 0) return b->value;
    }
  return 0;
}

static void bind(Parser *p, const char *name, u32 len, ValueId v) {
  if (!vec_push(p->g->alloc, &p->bound, (Bound){name, len, v, false})) {
    p->g->failed = true;
    fail(p, "out of memory");
  }
}

/* %name or !name: its text. */
static u32 value_name(Parser *p, const char **name) {
  char c = peek(p);
  if (c != '%' && c != '!') {
    fail(p, "expected a value");
    return 0;
  }
  const char *s = ++p->at;
  while (p->at < p->end && wordish(*p->at)) p->at++;
  *name = s;
  if (p->at == s) fail(p, "expected a name");
  return (u32)(p->at - s);
}

static bool literal_type(Parser *p, u32 *dtype, bool *weak) {
  *weak = true;
  if (!take(p, ":")) return true;
  *weak = take_word(p, "weak");
  *dtype = dtype_at(p);
  return *dtype != DT_NONE || fail(p, "expected a data type");
}

static Value literal(Parser *p) {
  Value v = {.kind = V_NUM, .dtype = DT_i64};
  u32 dtype = DT_i64;
  bool weak, real = false, negative = false;
  f64 x = 0;
  i64 i = 0;
  u64 u = 0;
  skip(p);
  if (take_word(p, "true") || take_word(p, "false")) {
    dtype = DT_bool;
    i = p->at[-2] == 'u';
  } else {
    const char *c = p->at;
    negative = c < p->end && *c == '-';
    if (negative) c++;
    if (p->end - c >= 3 && (memcmp(c, "inf", 3) == 0 || memcmp(c, "nan", 3) == 0)) {
      x = *c == 'i' ? (negative ? -INFINITY : INFINITY) : NAN;
      real = true;
      dtype = DT_f64;
      p->at = c + 3;
    } else {
      char text[64], *end;
      u32 n = 0;
      const char *d = p->at;
      while (d < p->end && n < sizeof text - 1 && (wordish(*d) || *d == '.' || ((*d == '-' || *d == '+') && (n == 0 || text[n - 1] == 'e'))))
        text[n++] = *d++;
      text[n] = 0;
      real = memchr(text, '.', n) || (memchr(text, 'e', n) && text[1] != 'x');
      if (real) {
        x = strtod(text, &end);
        dtype = DT_f64;
      } else {
        i = (i64)strtoll(text, &end, 0);
        u = strtoull(text, NULL, 0);
      }
      if (n == 0 || *end) {
        fail(p, "expected a number");
        return v;
      }
      p->at = d;
    }
  }
  u32 natural = dtype;
  if (!literal_type(p, &dtype, &weak)) return v;
  if (dtype != natural && (natural == DT_bool || (real && dtype_kind(dtype) == DK_INT))) fail(p, "the literal does not have this type");
  v.dtype = (u8)dtype;
  v.flags = weak ? VF_WEAK : 0;
  switch (dtype) {
    case DT_f64: v.f = real ? x : (f64)i; break;
    case DT_f32: v.bits = 0; v.s = real ? (f32)x : (f32)i; break;
    case DT_f16:
    case DT_bf16:
    case DT_c64:
    case DT_u64: v.u = u; break;
    case DT_c128: fail(p, "c128 has no literals"); break;
    default: v.i = i; break;
  }
  return v;
}

/* Does an operand begin here? Names of symbols count, other words do not. */
static bool operand_starts(Parser *p) {
  char c = peek(p);
  const char *s;
  u32 n;
  if (c == '%' || c == '<' || digit(c)) return true;
  if (c == '!') return p->end - p->at > 1 && wordish(p->at[1]);
  if (c == '-') return p->end - p->at > 1 && p->at[1] != '>';
  if (!(n = word_at(p, &s))) return false;
  if (is(s, n, "true") || is(s, n, "false") || is(s, n, "nan") || is(s, n, "inf")) return true;
  for (u32 i = 0; i < p->g->sizes.syms.count; i++)
    if (is(s, n, p->g->sizes.syms.data[i].name)) return true;
  return false;
}

static ValueId value(Parser *p, bool any) {
  char c = peek(p);
  Dim d;
  ValueId v = 0;
  if (c == '%' || c == '!') {
    const char *name;
    u32 n = value_name(p, &name);
    v = p->bad ? 0 : lookup(p, name, n, any);
    if (!v) fail(p, "no such value");
    return v;
  }
  if (c == '<') {
    u32 dtype = DT_i64;
    bool weak;
    d = dim(p);
    if (literal_type(p, &dtype, &weak) && !p->bad) v = graph_size_typed(p->g, d, dtype, weak);
  } else if (symbol_at(p, &d)) {
    v = graph_size(p->g, d);
  } else {
    Value num = literal(p);
    if (!p->bad) v = graph_const(p->g, num);
  }
  if (!v) checked(p, !p->bad, "expected an operand");
  return v;
}

typedef VEC(u32) Ids;

static void push_id(Parser *p, Ids *l, u32 id) {
  if (vec_push(&p->g->alloc[0], l, id)) return;
  p->g->failed = true;
  fail(p, "out of memory");
}

static void values(Parser *p, Ids *out) {
  while (!p->bad && operand_starts(p)) push_id(p, out, value(p, false));
}

static void group(Parser *p, Ids *out) {
  expect(p, "(");
  values(p, out);
  expect(p, ")");
}

/* ---- attributes ------------------------------------------------------------------------------------ */

static GraphAttr attribute(Parser *p, u32 param) {
  Graph *g = p->g;
  char c = peek(p);
  const char *s;
  u32 n;
  if (c == '_') {
    p->at++;
    return attr_hole(param);
  }
  if (c == '"') {
    char *text = quoted(p, &n);
    return text ? attr_text(g, param, text, n) : attr_hole(param);
  }
  if (c == '*') {
    p->at++;
    return attr_list(param, number(p));
  }
  if (c == '<') {
    Dim d = dim(p);
    return attr_dim(param, d);
  }
  if (c == '[' || c == '(') {
    VEC(i64) list = {0};
    bool pairs = false, sizes = c == '(';
    p->at++;
    while (!p->bad && !take(p, sizes ? ")" : "]")) {
      if (list.count) expect(p, ",");
      if (!sizes && take(p, "(")) pairs = true;
      i64 v;
      if (sizes && peek(p) == '-') {
        v = integer(p) == -1 ? DIM_INFER : 0;
      } else {
        v = sizes ? dim(p) : integer(p);
      }
      if (!vec_push(g->alloc, &list, v)) g->failed = p->bad = true;
      if (pairs && list.count % 2 == 0) expect(p, ")");
    }
    GraphAttr a = sizes ? attr_dims(g, param, list.data, list.count) : attr_ints(g, param, list.data, list.count, pairs);
    vec_free(g->alloc, &list);
    return a;
  }
  n = word_at(p, &s);
  if (n && !is(s, n, "inf") && !is(s, n, "nan")) {
    if (take_word(p, "nil")) return attr_nil(param);
    if (take_word(p, "true")) return attr_bool(param, true);
    if (take_word(p, "false")) return attr_bool(param, false);
    u32 d = dtype_at(p);
    if (d == DT_NONE) fail(p, "expected an attribute");
    return attr_dtype(param, d);
  }
  Value v = literal(p);
  return v.dtype == DT_f64 ? attr_float(param, v.f) : attr_int(param, v.i);
}

static void part(Parser *p, IndexItem *it, u32 i, Ids *operands) {
  char c = peek(p);
  if (c == '%') {
    it->part[i] = PART_operand;
    it->at[i] = operands->count;
    push_id(p, operands, value(p, false));
  } else {
    it->part[i] = PART_dim;
    it->at[i] = dim(p);
  }
}

static GraphAttr index_items(Parser *p, Ids *operands) {
  IndexItem items[2 * TYPE_MAX_RANK];
  u32 n = 0;
  expect(p, "[");
  while (!p->bad && !take(p, "]")) {
    IndexItem it = {.kind = INDEX_int};
    if (n == COUNT_OF(items)) fail(p, "too many indices");
    if (p->bad) break;
    if (n) expect(p, ",");
    if (take(p, "...")) it.kind = INDEX_ellipsis;
    else if (take_word(p, "nil")) it.kind = INDEX_newaxis;
    else if (take(p, "@") || take(p, "?")) {
      it.kind = p->at[-1] == '@' ? INDEX_array : INDEX_mask;
      part(p, &it, 0, operands);
    } else {
      if (peek(p) != ':') part(p, &it, 0, operands);
      if (take(p, ":")) {
        it.kind = INDEX_slice;
        char c = peek(p);
        if (c != ':' && c != ',' && c != ']') part(p, &it, 1, operands);
        if (take(p, ":")) part(p, &it, 2, operands);
      }
    }
    items[n++] = it;
  }
  return attr_index(p->g, items, n);
}

/* ---- nodes ----------------------------------------------------------------------------------------- */

static void block_body(Parser *p);

/* `name (params) { … }` inside a control node; captures are the first `caps`. Depth is bounded by graph_open. */
static BlockId sub_block(Parser *p, const char *name, const Ids *caps) {
  Graph *g = p->g;
  u32 mark = p->bound.count;
  if (!take_word(p, name)) {
    fail(p, "expected another block");
    return 0;
  }
  BlockId b = graph_open(g);
  if (!b) {
    checked(p, false, "blocks are nested too deeply");
    return 0;
  }
  expect(p, "(");
  for (u32 i = 0; !p->bad && !take(p, ")"); i++) {
    const char *s;
    if (i) expect(p, ",");
    bool token = peek(p) == '!';
    u32 n = value_name(p, &s);
    TypeId t = TYPE_TOKEN;
    if (!token && expect(p, ":")) t = type(p);
    if (p->bad) break;
    ValueId v = i < caps->count ? graph_lift(g, b, caps->data[i]) : graph_param(g, b, t);
    if (!v) checked(p, false, "a capture is out of scope");
    else if (i < caps->count && !type_same(g, g->values.data[v].type, t)) fail(p, "a capture has another type");
    else bind(p, s, n, v);
  }
  expect(p, "{");
  block_body(p);
  expect(p, "}");
  for (u32 i = mark; i < p->bound.count; i++) p->bound.data[i].closed = true;
  return b;
}

typedef struct Head { /* what a statement names before its `=` */
  const char *name[64];
  u32 len[64];
  u32 count;
} Head;

static void finish(Parser *p, NodeId n, const Head *h, const TypeId *types, u32 ntypes) {
  Graph *g = p->g;
  if (!n) {
    checked(p, !p->bad && g->failed, "the node cannot be made");
    return;
  }
  const GraphNode *x = &g->nodes.data[n];
  if (x->result_count != h->count || ntypes != h->count) {
    fail(p, "the number of results is wrong");
    return;
  }
  for (u32 i = 0; i < h->count; i++) {
    if (!type_same(g, g->values.data[x->result_first + i].type, types[i])) {
      fail(p, "a result has another type");
      return;
    }
    bind(p, h->name[i], h->len[i], g->nodes.data[n].result_first + i);
  }
}

/* `-> exit`, `: types`, `@line:column` behind a node. */
static void tail(Parser *p, u32 *exit, TypeId *types, u32 *ntypes, u32 cap) {
  *exit = NO_EXIT;
  *ntypes = 0;
  if (take(p, "->")) *exit = number(p);
  if (take(p, ":"))
    while (!p->bad && type_starts(p)) {
      if (*ntypes == cap) fail(p, "too many results");
      else types[(*ntypes)++] = type(p);
    }
  p->g->origin = 0;
  if (peek(p) == '@' && p->end - p->at > 1 && digit(p->at[1])) {
    p->at++;
    u32 line = number(p);
    expect(p, ":");
    u32 col = number(p);
    graph_origin(p->g, (Span){0, line, col}, 0, 0);
  }
}

static void control(Parser *p, NodeKind kind, const Head *h) {
  Graph *g = p->g;
  Ids lead = {0}, xs = {0}, caps = {0};
  BlockId sub[3] = {0};
  TypeId types[64];
  u32 ntypes, exit;
  Dim length = 0;
  bool index = false, reverse = false;
  NodeId n = 0;
  if (kind == NODE_cond) push_id(p, &lead, value(p, false));
  else group(p, &lead);
  if (kind == NODE_scan) group(p, &xs);
  group(p, &caps);
  if (kind == NODE_scan) {
    if (!take_word(p, "length")) fail(p, "expected 'length'");
    length = dim(p);
    index = take_word(p, "index");
  }
  reverse = take_word(p, "reverse");
  expect(p, "{");
  static const char *const names[NODE_COUNT][3] = {
      [NODE_cond] = {"then", "else"},  [NODE_while] = {"cond", "body"},     [NODE_scan] = {"body"},
      [NODE_ascan] = {"body"},         [NODE_custom] = {"f", "fwd", "bwd"}, [NODE_checkpoint] = {"body"},
  };
  for (u32 i = 0; i < 3 && names[kind][i] && !p->bad; i++) sub[i] = sub_block(p, names[kind][i], &caps);
  expect(p, "}");
  tail(p, &exit, types, &ntypes, COUNT_OF(types));
  if (!p->bad) switch (kind) {
      case NODE_cond: n = graph_cond(g, lead.data[0], sub[0], sub[1]); break;
      case NODE_while: n = graph_while(g, lead.data, lead.count, sub[0], sub[1]); break;
      case NODE_scan: n = graph_scan(g, lead.data, lead.count, xs.data, xs.count, length, reverse, index, sub[0]); break;
      case NODE_ascan: n = graph_ascan(g, lead.data, lead.count, reverse, sub[0]); break;
      case NODE_custom: n = graph_custom(g, lead.data, lead.count, sub[0], sub[1], sub[2]); break;
      default: n = graph_checkpoint(g, lead.data, lead.count, sub[0]); break;
    }
  if (n) g->nodes.data[n].exit = exit;
  finish(p, n, h, types, ntypes);
  vec_free(g->alloc, &lead);
  vec_free(g->alloc, &xs);
  vec_free(g->alloc, &caps);
}

static void plain(Parser *p, const char *word, u32 len, const Head *h) {
  Graph *g = p->g;
  Ids operands = {0};
  GraphAttr attrs[OP_MAX_PARAMS];
  u32 nattrs = 0, ntypes, exit, op = 0, host = 0, check = 0;
  TypeId types[64];
  NodeKind kind = NODE_op;
  NodeId n = 0;
  BlockId shared = 0;
  if (is(word, len, "check")) {
    const char *s;
    kind = NODE_check;
    u32 k = any_word(p, &s);
    int id = p->bad ? -1 : check_by_name(s, k);
    if (id < 0) fail(p, "no such check");
    else check = (u32)id;
    values(p, &operands);
  } else if (is(word, len, "index") || is(word, len, "update")) {
    kind = *word == 'i' ? NODE_index : NODE_update;
    push_id(p, &operands, value(p, false));
    attrs[nattrs++] = index_items(p, &operands);
    if (kind == NODE_update) {
      const char *s;
      u32 k = any_word(p, &s);
      op = is(s, k, "set") ? OP_none : op_by_name(s, k);
      if (!is(s, k, "set") && !op) fail(p, "no such operation");
      push_id(p, &operands, value(p, false));
    }
  } else if (is(word, len, "host") || is(word, len, "hook")) {
    kind = word[2] == 's' ? NODE_host : NODE_hook;
    u32 k;
    char *name = quoted(p, &k);
    for (u32 i = 1; name && i < g->hosts.count && !host; i++)
      if (strcmp(g->hosts.data[i].name, name) == 0) host = i;
    if (name && !host) host = graph_host_add(g, name, 0);
    values(p, &operands);
  } else if (is(word, len, "call")) {
    const char *s;
    kind = NODE_call;
    expect(p, "@");
    u32 k = any_word(p, &s);
    for (u32 i = 1; i < g->blocks.count; i++)
      if (g->blocks.data[i].shared && is(s, k, g->blocks.data[i].name)) shared = i;
    if (!shared) fail(p, "no such shared block");
    group(p, &operands);
  } else {
    op = op_by_name(word, len);
    while (op == OP_none && take(p, ".")) { /* linalg.eigh */
      const char *s;
      u32 k = any_word(p, &s);
      len = (u32)(s - word) + k;
      op = op_by_name(word, len);
    }
    if (op == OP_none) fail(p, "no such operation");
    values(p, &operands);
    if (!p->bad && take(p, "{"))
      while (!p->bad && !take(p, "}")) {
        const char *s;
        if (nattrs) expect(p, ",");
        u32 k = any_word(p, &s);
        char *name = temp_copy(p, s, k);
        u32 param = name ? op_param(op, name) : UINT32_MAX;
        expect(p, "=");
        if (param == UINT32_MAX || nattrs == OP_MAX_PARAMS) fail(p, "no such parameter");
        if (!p->bad) attrs[nattrs++] = attribute(p, param);
      }
  }
  tail(p, &exit, types, &ntypes, COUNT_OF(types));
  if (!p->bad) {
    if (kind == NODE_call) n = graph_call(g, shared, operands.data, operands.count);
    else n = graph_node(g, kind, kind == NODE_check ? check : op, operands.data, operands.count, attrs, nattrs, types, ntypes);
    if (n) {
      g->nodes.data[n].exit = exit;
      g->nodes.data[n].host = host;
    }
  }
  finish(p, n, h, types, ntypes);
  vec_free(g->alloc, &operands);
}

static void statement(Parser *p) {
  Head h = {.count = 0};
  const char *s;
  while (!p->bad && (peek(p) == '%' || peek(p) == '!')) {
    if (h.count == COUNT_OF(h.name)) {
      fail(p, "too many results");
      return;
    }
    h.len[h.count] = value_name(p, &h.name[h.count]);
    h.count++;
  }
  if (h.count) expect(p, "=");
  if (p->bad) return;
  u32 n = any_word(p, &s);
  if (p->bad) return;
  static const struct {
    const char *name;
    NodeKind kind;
  } controls[] = {{"cond", NODE_cond}, {"while", NODE_while},   {"scan", NODE_scan},
                  {"ascan", NODE_ascan}, {"custom", NODE_custom}, {"checkpoint", NODE_checkpoint}};
  for (u32 i = 0; i < COUNT_OF(controls); i++)
    if (is(s, n, controls[i].name)) {
      control(p, controls[i].kind, &h);
      return;
    }
  plain(p, s, n, &h);
}

/* Statements and the terminator of the cursor's block. */
static void block_body(Parser *p) {
  Graph *g = p->g;
  while (!p->bad) {
    const char *s;
    u32 n = word_at(p, &s);
    TermKind term = TERM_none;
    if (n && is(s, n, "yield")) term = TERM_yield;
    else if (n && is(s, n, "next")) term = TERM_next;
    else if (n && is(s, n, "break")) term = TERM_break;
    else if (n && is(s, n, "exit")) term = TERM_exit;
    else if (n && is(s, n, "out")) term = TERM_exit;
    if (term == TERM_none) {
      if (peek(p) == '}' || peek(p) == 0) {
        fail(p, "the block does not end");
        return;
      }
      statement(p);
      continue;
    }
    p->at = s + n;
    Ids list = {0};
    u32 exit = NO_EXIT;
    if (*s == 'o') { /* out: its values are those of the exit's recipes */
      values(p, &list);
      expect(p, "->");
      list.count = 0;
    }
    if (term == TERM_exit) exit = number(p);
    else values(p, &list);
    if (!p->bad) checked(p, graph_close(g, term, list.data, list.count, exit), "a value is out of scope");
    vec_free(g->alloc, &list);
    return;
  }
}

/* ---- sources, symbols, inputs ----------------------------------------------------------------------- */

static SourceId source(Parser *p) {
  Graph *g = p->g;
  GuardSet *set = &g->guards;
  static const struct {
    const char *name;
    SourceKind kind;
    bool indexed;
  } steps[] = {{"size", SRC_size, true},   {"capture", SRC_capture, true}, {"len", SRC_len, false},
               {"value", SRC_value, false}, {"start", SRC_start, false},    {"stop", SRC_stop, false},
               {"step", SRC_step, false},  {"inner", SRC_inner, false},    {"settings", SRC_settings, false}};
  static const struct {
    const char *name;
    SourceKind kind;
  } roots[] = {{"arg", SRC_arg}, {"reg", SRC_reg}, {"capture", SRC_capture0}, {"host", SRC_host}};
  enum { DEPTH = 64 };
  u32 open[DEPTH], nopen = 0;
  SourceId at = 0;
  while (!p->bad && !at) {
    const char *s;
    u32 n = any_word(p, &s), letters = 0;
    bool step = false;
    for (u32 i = 0; i < COUNT_OF(steps) && !p->bad && !step; i++)
      if (is(s, n, steps[i].name) && peek(p) == '(') {
        if (nopen == DEPTH) fail(p, "the source is too deep");
        else open[nopen++] = i;
        p->at++;
        step = true;
      }
    if (step || p->bad) continue;
    if (is(s, n, "ambient")) at = source_root(set, SRC_ambient, 0);
    else if (is(s, n, "global")) {
      u32 len, slot = 0;
      char *name = quoted(p, &len), label[96];
      if (!name) return 0;
      snprintf(label, sizeof label, "global \"%.72s\"", name);
      for (u32 i = 1; i < set->sources.items.count; i++) {
        const Source *o = &set->sources.items.data[i];
        if (o->kind != SRC_global) continue;
        if (strcmp(o->label, label) == 0) at = i;
        slot++;
      }
      if (!at) at = source_global(set, NULL, slot, name);
    } else {
      while (letters < n && !digit(s[letters])) letters++;
      for (u32 i = 0; i < COUNT_OF(roots); i++)
        if (is(s, letters, roots[i].name) && letters < n) at = source_root(set, roots[i].kind, (u32)strtoul(s + letters, NULL, 10));
    }
    if (!at) fail(p, "expected a source");
  }
  for (;;) {
    const char *s;
    u32 n;
    if (p->bad || !at) return 0;
    /* steps follow without a blank, so that `]` of a journal is not taken for one */
    if (p->at < p->end && *p->at == '.') {
      p->at++;
      n = any_word(p, &s);
      char *name = temp_copy(p, s, n);
      if (!name || !p->names) {
        fail(p, "fields need a table of names");
        return 0;
      }
      at = source_step(set, at, SRC_field, name_intern(p->names, s, n), name);
    } else if (p->at < p->end && *p->at == '[') {
      p->at++;
      if (peek(p) == '"') {
        char *name = quoted(p, &n);
        if (!name || !p->names) {
          fail(p, "fields need a table of names");
          return 0;
        }
        at = source_step(set, at, SRC_field, name_intern(p->names, name, n), name);
      } else {
        at = source_step(set, at, SRC_item, number(p), NULL);
      }
      expect(p, "]");
    } else if (nopen) {
      u32 i = open[--nopen], index = 0;
      if (steps[i].indexed && expect(p, ",")) index = number(p);
      expect(p, ")");
      if (!p->bad) at = source_step(set, at, steps[i].kind, index, NULL);
    } else {
      return at;
    }
    if (!at) checked(p, false, "out of memory");
  }
}

static void symbol(Parser *p) {
  Graph *g = p->g;
  const char *s, *v = NULL;
  u32 n = any_word(p, &s), vn = 0;
  i64 lo = INT64_MIN, hi = INT64_MAX;
  SourceId from = 0;
  bool unbacked = false;
  char *name = p->bad ? NULL : temp_copy(p, s, n);
  if (take(p, "=")) {
    if (peek(p) == '%') {
      unbacked = true;
      vn = value_name(p, &v);
    } else if (peek(p) == '?') {
      unbacked = true;
      p->at++;
    } else {
      from = source(p);
    }
  }
  if (take_word(p, "in")) {
    expect(p, "[");
    if (!take_word(p, "min")) lo = integer(p);
    expect(p, ",");
    if (!take_word(p, "max")) {
      hi = integer(p);
      if (hi == 2 && take(p, "^62)")) hi = SIZE_LIMIT - 1;
      else expect(p, "]");
    } else {
      expect(p, "]");
    }
  }
  if (p->bad || !name) return;
  i64 hint = lo > 2 ? lo : hi < 2 ? hi : 2;
  Dim d = unbacked ? size_unbacked(&g->sizes, name, 0, lo, hi) : size_sym(&g->sizes, name, from, lo, hi, hint);
  if (!checked(p, d != DIM_NONE, "out of memory")) return;
  u32 sym = g->sizes.syms.count - 1;
  if (v && !vec_push(g->alloc, &p->fixups, (Fixup){sym, v, vn})) checked(p, false, "out of memory");
  if (take_word(p, "same")) checked(p, size_assume(&g->sizes, REL_eq, d, dim(p)), "the sizes cannot be the same");
}

static void input(Parser *p) {
  Graph *g = p->g;
  const char *s;
  bool token = peek(p) == '!';
  u32 n = value_name(p, &s), index = UINT32_MAX;
  TypeId t = TYPE_TOKEN;
  if (!token && expect(p, ":")) t = type(p);
  if (take(p, "=")) {
    SourceId from = source(p);
    if (p->bad) return;
    const ArrayType *at = type_of(g, t);
    index = guard_input(&g->guards, from, at && at->rank == 0 && !at->device ? IN_scalar : IN_array);
    if (!checked(p, index != UINT32_MAX, "out of memory")) return;
  }
  ValueId v = p->bad ? 0 : graph_input(g, t, index);
  if (!v) {
    checked(p, false, "out of memory");
    return;
  }
  g->inputs.data[g->inputs.count - 1].explicit_arg = take_word(p, "explicit");
  bind(p, s, n, v);
}

static void shared_fn(Parser *p) {
  Graph *g = p->g;
  const char *s;
  u32 mark = p->bound.count;
  expect(p, "@");
  u32 n = any_word(p, &s);
  char *name = p->bad ? NULL : temp_copy(p, s, n);
  BlockId b = name ? graph_open_shared(g, name) : 0;
  if (!b) {
    checked(p, false, "out of memory");
    return;
  }
  expect(p, "(");
  for (u32 i = 0; !p->bad && !take(p, ")"); i++) {
    if (i) expect(p, ",");
    u32 len = value_name(p, &s);
    expect(p, ":");
    TypeId t = type(p);
    ValueId v = p->bad ? 0 : graph_param(g, b, t);
    if (v) bind(p, s, len, v);
  }
  expect(p, "{");
  block_body(p);
  expect(p, "}");
  for (u32 i = mark; i < p->bound.count; i++) p->bound.data[i].closed = true;
}

/* ---- exits ----------------------------------------------------------------------------------------- */

static RecipeId recipe(Parser *p, u32 depth);

static RecipeId recipe_list_of(Parser *p, u32 depth, u8 kind, u32 a, u32 b) {
  ExitTable *t = &p->g->exits;
  Ids items = {0};
  VEC(Name) keys = {0};
  RecipeId r = 0;
  expect(p, "(");
  while (!p->bad && !take(p, ")")) {
    if (items.count) expect(p, ",");
    if (kind == RCP_record) {
      u32 n;
      const char *s = NULL;
      if (peek(p) == '"') s = quoted(p, &n);
      else n = any_word(p, &s);
      if (p->bad || !p->names) {
        fail(p, "keys need a table of names");
        break;
      }
      if (!vec_push(p->g->alloc, &keys, name_intern(p->names, s, n))) p->g->failed = p->bad = true;
      expect(p, ":");
    }
    push_id(p, &items, recipe(p, depth + 1));
  }
  if (!p->bad) switch (kind) {
      case RCP_list: r = recipe_list(t, items.data, items.count); break;
      case RCP_record: r = recipe_record(t, keys.data, items.data, items.count); break;
      case RCP_range: r = items.count == 3 ? recipe_range(t, items.data[0], items.data[1], items.data[2]) : 0; break;
      case RCP_ref: r = items.count == 1 ? recipe_ref(t, items.data[0]) : 0; break;
      case RCP_fn: r = a ? recipe_group_fn(t, NULL, b, items.data, items.count) : recipe_fn(t, NULL, items.data, items.count); break;
      default: r = items.count == 2 ? recipe_transform(t, a, items.data[0], items.data[1]) : 0; break;
    }
  vec_free(p->g->alloc, &items);
  vec_free(p->g->alloc, &keys);
  if (!r) checked(p, !p->bad && t->failed, "the recipe cannot be made");
  return r;
}

static RecipeId recipe(Parser *p, u32 depth) {
  ExitTable *t = &p->g->exits;
  RecipeId r = 0;
  char c = peek(p);
  if (depth > RECIPE_MAX_DEPTH + 1) {
    fail(p, "the recipe is too deep");
    return 0;
  }
  if (c == '=') {
    p->at++;
    r = recipe_source(t, source(p));
  } else if (c == '%' || c == '!') {
    r = recipe_value(t, value(p, true));
  } else if (c == '<') {
    Dim d = dim(p);
    r = p->bad ? 0 : recipe_size(t, d);
  } else if (c == '"') {
    u32 n;
    char *s = quoted(p, &n);
    if (s) r = recipe_exit_const(t, (ExitConst){.kind = V_TEXT, .len = n, .text = s});
  } else if (c == '_') {
    p->at++;
    r = recipe_exit_const(t, (ExitConst){.kind = V_HOLE});
  } else if (take_word(p, "nil")) {
    r = recipe_exit_const(t, (ExitConst){.kind = V_NIL});
  } else if (take_word(p, "list")) {
    return recipe_list_of(p, depth, RCP_list, 0, 0);
  } else if (take_word(p, "record")) {
    return recipe_list_of(p, depth, RCP_record, 0, 0);
  } else if (take_word(p, "range")) {
    return recipe_list_of(p, depth, RCP_range, 0, 0);
  } else if (take_word(p, "ref")) {
    return recipe_list_of(p, depth, RCP_ref, 0, 0);
  } else if (take_word(p, "fn")) {
    return recipe_list_of(p, depth, RCP_fn, 0, 0);
  } else if (take_word(p, "group")) {
    u32 member = number(p);
    return recipe_list_of(p, depth, RCP_fn, 1, member);
  } else if (take_word(p, "transform")) {
    static const char *const names[TF_COUNT] = {
        [TF_grad] = "grad",     [TF_value_and_grad] = "value_and_grad", [TF_vmap] = "vmap",
        [TF_jit] = "jit",       [TF_eager] = "eager",                   [TF_checkpoint] = "checkpoint",
        [TF_custom_vjp] = "custom_vjp", [TF_pullback] = "pullback",     [TF_jacfwd] = "jacfwd",
        [TF_jacrev] = "jacrev", [TF_hessian] = "hessian",
    };
    u32 k = 0;
    while (k < TF_COUNT && !(names[k] && take_word(p, names[k]))) k++;
    if (k == TF_COUNT) fail(p, "no such transform");
    return p->bad ? 0 : recipe_list_of(p, depth, RCP_transform, k, 0);
  } else if (take_word(p, "dtype")) {
    r = recipe_exit_const(t, (ExitConst){.kind = V_DTYPE, .dtype = (u8)dtype_at(p)});
  } else if (take_word(p, "builtin")) {
    const char *s;
    u32 n = any_word(p, &s);
    while (!p->bad && p->at < p->end && *p->at == '.') {
      const char *more;
      p->at++;
      n = (u32)(p->at - s) + word_at(p, &more);
      p->at = s + n;
    }
    u32 op = p->bad ? 0 : op_by_name(s, n);
    if (!op) fail(p, "no such operation");
    else r = recipe_exit_const(t, (ExitConst){.kind = V_FN, .bits = op});
  } else if (take_word(p, "items")) {
    ValueId v = value(p, true);
    RecipeId before = take_word(p, "after") ? recipe(p, depth + 1) : 0;
    r = p->bad ? 0 : recipe_items(t, v, before);
  } else {
    Value v = literal(p);
    if (!p->bad) r = recipe_const(t, v);
  }
  if (!r) checked(p, !p->bad && t->failed, "expected a recipe");
  return r;
}

static void exit_frames(Parser *p, u32 e, ExitKind kind) {
  Graph *g = p->g;
  expect(p, "{");
  for (u32 i = 0; !p->bad && !take(p, "}"); i++) {
    const char *s = p->at;
    u32 frame = 0, pc = 0, result = 0, flags = 0, tail_calls = 0;
    RecipeId self = 0;
    if (i) expect(p, "|");
    skip(p);
    s = p->at;
    while (p->at < p->end && *p->at != ':' && *p->at != '/' && *p->at != ' ' && *p->at != '\n') p->at++;
    if (p->at == s) fail(p, "expected a frame");
    if (p->at < p->end && *p->at == '/') {
      p->at++;
      frame = number(p);
    }
    if (kind != EXIT_return && take_word(p, "pc")) pc = number(p);
    if (take(p, "->") && expect(p, "r")) result = number(p);
    if (take_word(p, "flags")) flags = number(p);
    if (take_word(p, "tail")) tail_calls = number(p);
    if (take_word(p, "self")) self = recipe(p, 0);
    expect(p, ":");
    if (p->bad) return;
    if (frame >= g->frames.count) {
      fail(p, "no such frame");
      return;
    }
    if (!exit_frame(&g->exits, e, frame, pc, (u16)result, (u16)flags, tail_calls, self)) checked(p, false, "out of memory");
    for (u32 k = 0; !p->bad && peek(p) != '}' && peek(p) != '|'; k++) {
      u32 reg = REG_RESULT;
      if (k) expect(p, ",");
      if (!take_word(p, "ret")) {
        expect(p, "r");
        reg = number(p);
      }
      expect(p, "=");
      RecipeId r = p->bad ? 0 : recipe(p, 0);
      if (r && !exit_reg(&g->exits, e, (u16)reg, r)) checked(p, false, "out of memory");
    }
  }
}

static void exit_line(Parser *p) {
  static const char *const kinds[EXIT_KIND_COUNT] = {"return", "break", "check", "cold", "limit"};
  Graph *g = p->g;
  const char *s;
  u32 e = number(p), k = 0, why = 0;
  if (e != g->exits.exits.count) fail(p, "exits are numbered from 0");
  while (k < EXIT_KIND_COUNT && !take_word(p, kinds[k])) k++;
  if (k == EXIT_KIND_COUNT) fail(p, "expected the kind of the exit");
  u32 n = p->bad ? 0 : word_at(p, &s);
  if (n) {
    int id = k == EXIT_check ? check_by_name(s, n) : reason_by_name(s, n);
    if (id < 0) fail(p, "no such reason");
    else why = (u32)id;
    p->at = s + n;
  }
  if (p->bad) return;
  if (exit_begin(&g->exits, (ExitKind)k, why, 0, (Span){0}) == NO_EXIT) checked(p, false, "out of memory");
  exit_frames(p, e, (ExitKind)k);
  if (!take_word(p, "write")) return;
  expect(p, "[");
  JournalId journal = 0;
  for (u32 i = 0; !p->bad && !take(p, "]"); i++) {
    if (i) expect(p, ",");
    SourceId target = 0;
    RecipeId ref = 0;
    if (take(p, "=")) target = source(p);
    else ref = recipe(p, 0);
    expect(p, ":");
    RecipeId v = p->bad ? 0 : recipe(p, 0);
    if (!p->bad && !(journal = journal_write(&g->exits, journal, target, ref, v))) checked(p, false, "out of memory");
  }
  g->exits.exits.data[e].journal = journal;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static void whole(Parser *p) {
  Graph *g = p->g;
  if (take_word(p, "file")) g->file = number(p);
  if (take_word(p, "ambient")) g->ambient = (u64)integer(p);
  for (;;) {
    if (p->bad) return;
    if (take_word(p, "frame")) {
      u32 i = number(p);
      skip(p);
      const char *s = p->at;
      while (p->at < p->end && *p->at != '\n' && *p->at != ' ') p->at++;
      char *name = temp_copy(p, s, (u32)(p->at - s));
      if (i != g->frames.count) fail(p, "frames are numbered from 0");
      if (name && !p->bad) checked(p, graph_frame(g, NULL, name, 0) != UINT32_MAX, "out of memory");
    } else if (take_word(p, "sym")) symbol(p);
    else if (take_word(p, "in")) input(p);
    else if (take_word(p, "fn")) shared_fn(p);
    else break;
  }
  block_body(p);
  while (!p->bad && take_word(p, "exit")) exit_line(p);
  if (!p->bad && take_word(p, "entry") && expect(p, "->")) g->entry_exit = number(p);
  if (!p->bad && peek(p)) fail(p, "expected an exit");
  for (u32 i = 0; i < p->fixups.count && !p->bad; i++) {
    const Fixup *f = &p->fixups.data[i];
    ValueId v = lookup(p, f->name, f->len, true);
    if (!v) fail(p, "an unbacked size names no value");
    g->sizes.syms.data[f->sym].source = v;
  }
}

Graph *graph_parse(Allocator *alloc, Names *names, const char *text, size_t len, char *err, size_t err_cap) {
  Parser p = {.names = names, .text = text, .at = text, .end = text + len, .err = err, .err_cap = err_cap};
  if (err && err_cap) *err = 0;
  arena_init(&p.temp, alloc);
  Graph *g = p.g = graph_new(alloc, "");
  if (!g) return NULL;
  g->names = names;
  if (take_word(&p, "graph")) {
    skip(&p);
    const char *s = p.at;
    while (p.at < p.end && *p.at != ' ' && *p.at != '\n') p.at++;
    g->name = arena_copy(&g->arena, s, (size_t)(p.at - s));
    if (!g->name) g->failed = p.bad = true;
    if (!p.bad) whole(&p);
  } else {
    fail(&p, "expected 'graph'");
  }
  bool ok = !p.bad && !g->failed && !g->exits.failed && !g->guards.failed && !g->sizes.failed;
  vec_free(alloc, &p.bound);
  vec_free(alloc, &p.fixups);
  arena_free(&p.temp);
  if (ok) return g;
  graph_free(g);
  return NULL;
}
