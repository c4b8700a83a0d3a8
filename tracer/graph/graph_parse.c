/* graph_parse.c — reads the text form of a graph (see graph.h for the form). Blanks and newlines are alike; `;` begins
 * a comment. Values are names behind % or !; a name belongs to its block, but exits may name any. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lang/reasons.h"
#include "tracer/graph/graph_parse.h"

/* ---- values ------------------------------------------------------------------------------------------- */

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
    read_fail(p, "out of memory");
  }
}

/* %name or !name: its text. */
static u32 value_name(Parser *p, const char **name) {
  char c = read_peek(p);
  if (c != '%' && c != '!') {
    read_fail(p, "expected a value");
    return 0;
  }
  const char *s = ++p->at;
  while (p->at < p->end && read_wordish(*p->at)) p->at++;
  *name = s;
  if (p->at == s) read_fail(p, "expected a name");
  return (u32)(p->at - s);
}

static bool literal_type(Parser *p, u32 *dtype, bool *weak) {
  *weak = true;
  /* no blank before it */
  if (p->at >= p->end || *p->at != ':' || p->end - p->at < 2 || !read_letter(p->at[1])) return true;
  p->at++;
  *weak = read_take_word(p, "weak");
  *dtype = read_dtype_at(p);
  return *dtype != DT_NONE || read_fail(p, "expected a data type");
}

Value read_literal(Parser *p) {
  Value v = {.kind = V_NUM, .dtype = DT_i64};
  u32 dtype = DT_i64;
  bool weak, real = false, negative = false;
  f64 x = 0;
  i64 i = 0;
  u64 u = 0;
  read_skip(p);
  if (read_take_word(p, "true") || read_take_word(p, "false")) {
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
      while (d < p->end && n < sizeof text - 1 &&
             (read_wordish(*d) || *d == '.' || ((*d == '-' || *d == '+') && (n == 0 || text[n - 1] == 'e'))))
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
        read_fail(p, "expected a number");
        return v;
      }
      p->at = d;
    }
  }
  u32 natural = dtype;
  if (!literal_type(p, &dtype, &weak)) return v;
  if (dtype != natural && (natural == DT_bool || (real && dtype_kind(dtype) == DK_INT)))
    read_fail(p, "the literal does not have this type");
  v.dtype = (u8)dtype;
  v.flags = weak ? VF_WEAK : 0;
  if (dtype_kind(dtype) == DK_COMPLEX) read_fail(p, "complex numbers have no literals");
  if (dtype_kind(dtype) == DK_FLOAT) {
    Value made = num_convert_unchecked(real ? value_f64(x) : value_i64(i), dtype);
    made.flags = v.flags;
    return made;
  }
  v.u = dtype_kind(dtype) == DK_BOOL || dtype_is_signed(dtype) ? (u64)i : u;
  return v;
}

/* Does an operand begin here? Names of symbols count, other words do not. */
static bool operand_starts(Parser *p) {
  char c = read_peek(p);
  const char *s;
  u32 n;
  if (c == '%' || c == '<' || read_digit(c)) return true;
  if (c == '!') return p->end - p->at > 1 && read_wordish(p->at[1]);
  if (c == '-') return p->end - p->at > 1 && p->at[1] != '>';
  if (!(n = read_word_at(p, &s))) return false;
  if (read_is(s, n, "true") || read_is(s, n, "false") || read_is(s, n, "nan") || read_is(s, n, "inf")) return true;
  for (u32 i = 0; i < p->g->sizes.syms.count; i++)
    if (read_is(s, n, p->g->sizes.syms.data[i].name)) return true;
  return false;
}

ValueId read_value(Parser *p, bool any) {
  char c = read_peek(p);
  Dim d;
  ValueId v = 0;
  if (c == '%' || c == '!') {
    const char *name;
    u32 n = value_name(p, &name);
    v = p->bad ? 0 : lookup(p, name, n, any);
    if (!v) read_fail(p, "no such value");
    return v;
  }
  if (c == '<') {
    u32 dtype = DT_i64;
    bool weak;
    d = read_dim(p);
    if (literal_type(p, &dtype, &weak) && !p->bad) v = graph_size_typed(p->g, d, dtype, weak);
  } else if (read_symbol(p, &d)) {
    v = graph_size(p->g, d);
  } else {
    Value num = read_literal(p);
    if (!p->bad) v = graph_const(p->g, num);
  }
  if (!v) read_checked(p, !p->bad, "expected an operand");
  return v;
}

void read_push_id(Parser *p, Ids *l, u32 id) {
  if (vec_push(&p->g->alloc[0], l, id)) return;
  p->g->failed = true;
  read_fail(p, "out of memory");
}

static void values(Parser *p, Ids *out) {
  while (!p->bad && operand_starts(p)) read_push_id(p, out, read_value(p, false));
}

static void group(Parser *p, Ids *out) {
  read_expect(p, "(");
  values(p, out);
  read_expect(p, ")");
}

/* ---- attributes ------------------------------------------------------------------------------------ */

static GraphAttr attribute(Parser *p, u32 param) {
  Graph *g = p->g;
  char c = read_peek(p);
  const char *s;
  u32 n;
  if (c == '_') {
    p->at++;
    return attr_hole(param);
  }
  if (c == '"') {
    char *text = read_quoted(p, &n);
    return text ? attr_text(g, param, text, n) : attr_hole(param);
  }
  if (c == '*') {
    p->at++;
    return attr_list(param, read_number(p));
  }
  if (c == '<') {
    Dim d = read_dim(p);
    return attr_dim(param, d);
  }
  if (c == '[' || c == '(') {
    VEC(i64) list = {0};
    bool pairs = false, sizes = c == '(';
    p->at++;
    while (!p->bad && !read_take(p, sizes ? ")" : "]")) {
      if (list.count) read_expect(p, ",");
      if (!sizes && read_take(p, "(")) pairs = true;
      i64 v;
      if (sizes && read_peek(p) == '-') {
        v = read_integer(p) == -1 ? DIM_INFER : 0;
      } else {
        v = sizes ? read_dim(p) : read_integer(p);
      }
      if (!vec_push(g->alloc, &list, v)) g->failed = p->bad = true;
      if (pairs && list.count % 2 == 0) read_expect(p, ")");
    }
    GraphAttr a = sizes ? attr_dims(g, param, list.data, list.count)
                        : attr_ints(g, param, list.data, list.count, pairs);
    vec_free(g->alloc, &list);
    return a;
  }
  n = read_word_at(p, &s);
  if (n && !read_is(s, n, "inf") && !read_is(s, n, "nan")) {
    if (read_take_word(p, "nil")) return attr_nil(param);
    if (read_take_word(p, "true")) return attr_bool(param, true);
    if (read_take_word(p, "false")) return attr_bool(param, false);
    u32 d = read_dtype_at(p);
    if (d == DT_NONE) read_fail(p, "expected an attribute");
    return attr_dtype(param, d);
  }
  Value v = read_literal(p);
  return v.dtype == DT_f64 ? attr_float(param, v.f) : attr_int(param, v.i);
}

static void part(Parser *p, IndexItem *it, u32 i, Ids *operands) {
  char c = read_peek(p);
  if (c == '%') {
    it->part[i] = PART_operand;
    it->at[i] = operands->count;
    read_push_id(p, operands, read_value(p, false));
  } else {
    it->part[i] = PART_dim;
    it->at[i] = read_dim(p);
  }
}

static GraphAttr index_items(Parser *p, Ids *operands) {
  IndexItem items[2 * TYPE_MAX_RANK];
  u32 n = 0;
  read_expect(p, "[");
  while (!p->bad && !read_take(p, "]")) {
    IndexItem it = {.kind = INDEX_int};
    if (n == COUNT_OF(items)) read_fail(p, "too many indices");
    if (p->bad) break;
    if (n) read_expect(p, ",");
    if (read_take(p, "...")) it.kind = INDEX_ellipsis;
    else if (read_take_word(p, "nil")) it.kind = INDEX_newaxis;
    else if (read_take(p, "@") || read_take(p, "?")) {
      it.kind = p->at[-1] == '@' ? INDEX_array : INDEX_mask;
      part(p, &it, 0, operands);
    } else {
      if (read_peek(p) != ':') part(p, &it, 0, operands);
      if (read_take(p, ":")) {
        it.kind = INDEX_slice;
        char c = read_peek(p);
        if (c != ':' && c != ',' && c != ']') part(p, &it, 1, operands);
        if (read_take(p, ":")) part(p, &it, 2, operands);
      }
    }
    items[n++] = it;
  }
  return attr_items(p->g, items, n);
}

/* ---- nodes ----------------------------------------------------------------------------------------- */

static void block_body(Parser *p);

/* `name (params) { … }` inside a control node; captures are the first `caps`. Depth is bounded by graph_open. */
static BlockId sub_block(Parser *p, const char *name, const Ids *caps) {
  Graph *g = p->g;
  u32 mark = p->bound.count;
  if (!read_take_word(p, name)) {
    read_fail(p, "expected another block");
    return 0;
  }
  BlockId b = graph_open(g);
  if (!b) {
    read_checked(p, false, "blocks are nested too deeply");
    return 0;
  }
  read_expect(p, "(");
  for (u32 i = 0; !p->bad && !read_take(p, ")"); i++) {
    const char *s;
    if (i) read_expect(p, ",");
    bool token = read_peek(p) == '!';
    u32 n = value_name(p, &s);
    TypeId t = TYPE_TOKEN;
    if (!token && read_expect(p, ":")) t = read_type(p);
    if (p->bad) break;
    ValueId v = i < caps->count ? graph_lift(g, b, caps->data[i]) : graph_param(g, b, t);
    if (!v) read_checked(p, false, "a capture is out of scope");
    else if (i < caps->count && !type_same(g, g->values.data[v].type, t)) read_fail(p, "a capture has another type");
    else bind(p, s, n, v);
  }
  read_expect(p, "{");
  block_body(p);
  read_expect(p, "}");
  for (u32 i = mark; i < p->bound.count; i++) p->bound.data[i].closed = true;
  return b;
}

typedef struct HeadName {
  const char *name;
  u32 len;
} HeadName;
typedef VEC(HeadName) Head; /* what a statement names before its `=` */
typedef VEC(TypeId) Types;

static void finish(Parser *p, NodeId n, const Head *h, const TypeId *types, u32 ntypes) {
  Graph *g = p->g;
  if (!n) {
    read_checked(p, !p->bad && g->failed, "the node cannot be made");
    return;
  }
  const GraphNode *x = &g->nodes.data[n];
  if (x->result_count != h->count || ntypes != h->count) {
    read_fail(p, "the number of results is wrong");
    return;
  }
  for (u32 i = 0; i < h->count; i++) {
    if (!type_same(g, g->values.data[x->result_first + i].type, types[i])) {
      read_fail(p, "a result has another type");
      return;
    }
    bind(p, h->data[i].name, h->data[i].len, g->nodes.data[n].result_first + i);
  }
}

/* `-> exit`, `: types`, `@line:column` behind a node. */
static void tail(Parser *p, u32 *exit, Types *types) {
  *exit = NO_EXIT;
  if (read_take(p, "->")) *exit = read_number(p);
  if (read_take(p, ":"))
    while (!p->bad && read_type_starts(p)) {
      TypeId t = read_type(p);
      if (!vec_push(p->g->alloc, types, t)) read_fail(p, "out of memory");
    }
  p->g->origin = 0;
  if (read_peek(p) == '@' && p->end - p->at > 1 && read_digit(p->at[1])) {
    p->at++;
    u32 line = read_number(p);
    read_expect(p, ":");
    u32 col = read_number(p);
    graph_origin(p->g, (Span){0, line, col}, 0, 0);
  }
}

static void parse_control(Parser *p, NodeKind kind, const Head *h) {
  Graph *g = p->g;
  Ids lead = {0}, xs = {0}, caps = {0};
  BlockId sub[3] = {0};
  Types types = {0};
  u32 exit;
  Dim length = 0;
  bool index = false, reverse = false;
  NodeId n = 0;
  if (kind == NODE_cond) read_push_id(p, &lead, read_value(p, false));
  else group(p, &lead);
  if (kind == NODE_scan) group(p, &xs);
  group(p, &caps);
  if (kind == NODE_scan) {
    if (!read_take_word(p, "length")) read_fail(p, "expected 'length'");
    length = read_dim(p);
    index = read_take_word(p, "index");
  }
  reverse = read_take_word(p, "reverse");
  read_expect(p, "{");
  static const char *const names[NODE_COUNT][3] = {
      [NODE_cond] = {"then", "else"},  [NODE_while] = {"cond", "body"},     [NODE_scan] = {"body"},
      [NODE_ascan] = {"body"},         [NODE_custom] = {"f", "fwd", "bwd"}, [NODE_checkpoint] = {"body"},
      [NODE_recur] = {"body"},
  };
  for (u32 i = 0; i < 3 && names[kind][i] && !p->bad; i++) sub[i] = sub_block(p, names[kind][i], &caps);
  read_expect(p, "}");
  tail(p, &exit, &types);
  if (!p->bad) switch (kind) {
      case NODE_cond: n = graph_cond(g, lead.data[0], sub[0], sub[1]); break;
      case NODE_while: n = graph_while(g, lead.data, lead.count, sub[0], sub[1]); break;
      case NODE_scan:
        n = graph_scan(g, lead.data, lead.count, xs.data, xs.count, length, reverse, index, sub[0]);
        break;
      case NODE_ascan: n = graph_ascan(g, lead.data, lead.count, reverse, sub[0]); break;
      case NODE_custom: n = graph_custom(g, lead.data, lead.count, sub[0], sub[1], sub[2]); break;
      case NODE_recur: n = graph_recur(g, lead.data, lead.count, sub[0]); break;
      default: n = graph_checkpoint(g, lead.data, lead.count, sub[0]); break;
    }
  if (n) g->nodes.data[n].exit = exit;
  finish(p, n, h, types.data, types.count);
  vec_free(g->alloc, &types);
  vec_free(g->alloc, &lead);
  vec_free(g->alloc, &xs);
  vec_free(g->alloc, &caps);
}

static void plain(Parser *p, const char *word, u32 len, const Head *h) {
  Graph *g = p->g;
  Ids operands = {0};
  GraphAttr attrs[OP_MAX_PARAMS];
  u32 nattrs = 0, exit, op = 0, host = 0, check = 0;
  Types types = {0};
  NodeKind kind = NODE_op;
  NodeId n = 0;
  BlockId shared = 0;
  if (read_is(word, len, "check")) {
    const char *s;
    kind = NODE_check;
    u32 k = read_any_word(p, &s);
    int id = p->bad ? -1 : check_by_name(s, k);
    if (id < 0) read_fail(p, "no such check");
    else check = (u32)id;
    values(p, &operands);
  } else if (read_is(word, len, "index") || read_is(word, len, "update")) {
    kind = *word == 'i' ? NODE_index : NODE_update;
    read_push_id(p, &operands, read_value(p, false));
    attrs[nattrs++] = index_items(p, &operands);
    if (kind == NODE_update) {
      const char *s;
      u32 k = read_any_word(p, &s);
      op = read_is(s, k, "set") ? OP_none : op_by_name(s, k);
      if (!read_is(s, k, "set") && !op) read_fail(p, "no such operation");
      read_push_id(p, &operands, read_value(p, false));
    }
  } else if (read_is(word, len, "host") || read_is(word, len, "hook")) {
    kind = word[2] == 's' ? NODE_host : NODE_hook;
    u32 k;
    char *name = read_quoted(p, &k);
    HostKind does = read_take_word(p, "print") ? HOST_print : read_take_word(p, "settle") ? HOST_settle : HOST_function;
    RecipeId fn = read_take_word(p, "calls") ? read_recipe(p) : 0,
        with = read_take_word(p, "with") ? read_recipe(p) : 0;
    if (name && !p->bad) host = graph_host_add(g, does, name, fn, with);
    values(p, &operands);
  } else if (read_is(word, len, "self")) {
    kind = NODE_self;
    values(p, &operands);
  } else if (read_is(word, len, "call")) {
    const char *s;
    kind = NODE_call;
    read_expect(p, "@");
    u32 k = read_any_word(p, &s);
    for (u32 i = 1; i < g->blocks.count; i++)
      if (g->blocks.data[i].shared && read_is(s, k, g->blocks.data[i].name)) shared = i;
    if (!shared) read_fail(p, "no such shared block");
    group(p, &operands);
  } else {
    op = op_by_name(word, len);
    while (op == OP_none && read_take(p, ".")) { /* linalg.eigh */
      const char *s;
      u32 k = read_any_word(p, &s);
      len = (u32)(s - word) + k;
      op = op_by_name(word, len);
    }
    if (op == OP_none) read_fail(p, "no such operation");
    values(p, &operands);
    if (!p->bad && read_take(p, "{"))
      while (!p->bad && !read_take(p, "}")) {
        const char *s;
        if (nattrs) read_expect(p, ",");
        u32 k = read_any_word(p, &s);
        char *name = read_temp_copy(p, s, k);
        u32 param = name ? op_param(op, name) : UINT32_MAX;
        read_expect(p, "=");
        if (param == UINT32_MAX || nattrs == OP_MAX_PARAMS) read_fail(p, "no such parameter");
        if (!p->bad) attrs[nattrs++] = attribute(p, param);
      }
  }
  tail(p, &exit, &types);
  if (!p->bad) {
    if (kind == NODE_call) n = graph_call(g, shared, operands.data, operands.count);
    else
      n = graph_node(g, kind, kind == NODE_check ? check : op, operands.data, operands.count, attrs, nattrs, types.data,
                     types.count);
    if (n) {
      g->nodes.data[n].exit = exit;
      g->nodes.data[n].host = host;
    }
  }
  finish(p, n, h, types.data, types.count);
  vec_free(g->alloc, &types);
  vec_free(g->alloc, &operands);
}

static void node(Parser *p, const Head *h) {
  const char *s;
  u32 n = read_any_word(p, &s);
  if (p->bad) return;
  static const struct {
    const char *name;
    NodeKind kind;
  } controls[] = {{"cond", NODE_cond}, {"while", NODE_while},   {"scan", NODE_scan},
                  {"ascan", NODE_ascan}, {"custom", NODE_custom}, {"checkpoint", NODE_checkpoint},
                  {"recur", NODE_recur}};
  for (u32 i = 0; i < COUNT_OF(controls); i++)
    if (read_is(s, n, controls[i].name)) {
      parse_control(p, controls[i].kind, h);
      return;
    }
  plain(p, s, n, h);
}

static void statement(Parser *p) {
  Head h = {0};
  while (!p->bad && (read_peek(p) == '%' || read_peek(p) == '!')) {
    HeadName one = {0};
    one.len = value_name(p, &one.name);
    if (!vec_push(p->g->alloc, &h, one)) read_fail(p, "out of memory");
  }
  if (h.count && !p->bad) read_expect(p, "=");
  if (!p->bad) node(p, &h);
  vec_free(p->g->alloc, &h);
}

/* Statements and the terminator of the cursor's block. */
static void block_body(Parser *p) {
  Graph *g = p->g;
  while (!p->bad) {
    const char *s;
    u32 n = read_word_at(p, &s);
    TermKind term = TERM_none;
    if (n && read_is(s, n, "yield")) term = TERM_yield;
    else if (n && read_is(s, n, "next")) term = TERM_next;
    else if (n && read_is(s, n, "break")) term = TERM_break;
    else if (n && read_is(s, n, "exit")) term = TERM_exit;
    else if (n && read_is(s, n, "out")) term = TERM_exit;
    if (term == TERM_none) {
      if (read_peek(p) == '}' || read_peek(p) == 0) {
        read_fail(p, "the block does not end");
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
      read_expect(p, "->");
      list.count = 0;
    }
    if (term == TERM_exit) exit = read_number(p);
    else values(p, &list);
    if (!p->bad) read_checked(p, graph_close(g, term, list.data, list.count, exit), "a value is out of scope");
    vec_free(g->alloc, &list);
    return;
  }
}

/* ---- symbols, inputs, shared blocks ------------------------------------------------------------------ */

static void symbol(Parser *p) {
  Graph *g = p->g;
  const char *s, *v = NULL;
  u32 n = read_any_word(p, &s), vn = 0, axis = 0;
  i64 lo = INT64_MIN, hi = INT64_MAX;
  SourceId from = 0;
  bool unbacked = false;
  char *name = p->bad ? NULL : read_temp_copy(p, s, n);
  if (read_take(p, "=")) {
    read_skip(p);
    if (p->end - p->at > 6 && memcmp(p->at, "size(%", 6) == 0) {
      p->at += 5;
      unbacked = true;
      vn = value_name(p, &v);
      read_expect(p, ",");
      axis = read_number(p);
      read_expect(p, ")");
    } else if (read_peek(p) == '%') {
      unbacked = true;
      vn = value_name(p, &v);
    } else if (read_peek(p) == '?') {
      unbacked = true;
      p->at++;
    } else {
      from = read_source(p);
    }
  }
  if (read_take_word(p, "in")) {
    read_expect(p, "[");
    if (!read_take_word(p, "min")) lo = read_integer(p);
    read_expect(p, ",");
    if (!read_take_word(p, "max")) {
      hi = read_integer(p);
      if (hi == 2 && read_take(p, "^62)")) hi = SIZE_LIMIT - 1;
      else read_expect(p, "]");
    } else {
      read_expect(p, "]");
    }
  }
  if (p->bad || !name) return;
  i64 hint = lo > 2 ? lo : hi < 2 ? hi : 2;
  Dim d = unbacked ? size_unbacked(&g->sizes, name, 0, lo, hi) : size_sym(&g->sizes, name, from, lo, hi, hint);
  if (!read_checked(p, d != DIM_NONE, "out of memory")) return;
  u32 sym = g->sizes.syms.count - 1;
  g->sizes.syms.data[sym].axis = (u8)axis;
  if (v && !vec_push(g->alloc, &p->fixups, (Fixup){sym, v, vn})) read_checked(p, false, "out of memory");
  if (read_take_word(p, "same"))
    read_checked(p, size_assume(&g->sizes, REL_eq, d, read_dim(p)), "the sizes cannot be the same");
}

static void input(Parser *p) {
  Graph *g = p->g;
  const char *s;
  bool token = read_peek(p) == '!';
  u32 n = value_name(p, &s), index = UINT32_MAX;
  TypeId t = TYPE_TOKEN;
  if (!token && read_expect(p, ":")) t = read_type(p);
  if (read_take(p, "=")) {
    SourceId from = read_source(p);
    if (p->bad) return;
    const ArrayType *at = type_of(g, t);
    index = guard_input(&g->guards, from, at && at->rank == 0 && !at->device ? IN_scalar : IN_array);
    if (!read_checked(p, index != UINT32_MAX, "out of memory")) return;
  }
  ValueId v = p->bad ? 0 : graph_input(g, t, index);
  if (!v) {
    read_checked(p, false, "out of memory");
    return;
  }
  g->inputs.data[g->inputs.count - 1].explicit_arg = read_take_word(p, "explicit");
  bind(p, s, n, v);
}

static void shared_fn(Parser *p) {
  Graph *g = p->g;
  const char *s;
  u32 mark = p->bound.count;
  read_expect(p, "@");
  u32 n = read_any_word(p, &s);
  char *name = p->bad ? NULL : read_temp_copy(p, s, n);
  BlockId b = name ? graph_open_shared(g, name) : 0;
  if (!b) {
    read_checked(p, false, "out of memory");
    return;
  }
  read_expect(p, "(");
  for (u32 i = 0; !p->bad && !read_take(p, ")"); i++) {
    if (i) read_expect(p, ",");
    u32 len = value_name(p, &s);
    read_expect(p, ":");
    TypeId t = read_type(p);
    ValueId v = p->bad ? 0 : graph_param(g, b, t);
    if (v) bind(p, s, len, v);
  }
  read_expect(p, "{");
  block_body(p);
  read_expect(p, "}");
  for (u32 i = mark; i < p->bound.count; i++) p->bound.data[i].closed = true;
}

/* ---- the whole ------------------------------------------------------------------------------------- */

static void whole(Parser *p) {
  Graph *g = p->g;
  if (read_take_word(p, "file")) g->file = read_number(p);
  if (read_take_word(p, "ambient")) g->ambient = (u64)read_integer(p);
  for (;;) {
    if (p->bad) return;
    if (read_take_word(p, "frame")) {
      u32 i = read_number(p);
      read_skip(p);
      const char *s = p->at;
      while (p->at < p->end && *p->at != '\n' && *p->at != ' ') p->at++;
      char *name = read_temp_copy(p, s, (u32)(p->at - s));
      if (i != g->frames.count) read_fail(p, "frames are numbered from 0");
      if (name && !p->bad) read_checked(p, graph_frame(g, NULL, name, 0) != UINT32_MAX, "out of memory");
    } else if (read_take_word(p, "sym")) symbol(p);
    else if (read_take_word(p, "in")) input(p);
    else if (read_take_word(p, "fn")) shared_fn(p);
    else break;
  }
  block_body(p);
  while (!p->bad && read_take_word(p, "exit")) read_exit(p);
  if (!p->bad && read_take_word(p, "entry") && read_expect(p, "->")) g->entry_exit = read_number(p);
  if (!p->bad && read_peek(p)) read_fail(p, "expected an exit");
  for (u32 i = 0; i < p->fixups.count && !p->bad; i++) {
    const Fixup *f = &p->fixups.data[i];
    ValueId v = lookup(p, f->name, f->len, true);
    if (!v) read_fail(p, "an unbacked size names no value");
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
  if (read_take_word(&p, "graph")) {
    read_skip(&p);
    const char *s = p.at;
    while (p.at < p.end && *p.at != ' ' && *p.at != '\n') p.at++;
    g->name = arena_copy(&g->arena, s, (size_t)(p.at - s));
    if (!g->name) g->failed = p.bad = true;
    if (!p.bad) whole(&p);
  } else {
    read_fail(&p, "expected 'graph'");
  }
  bool ok = !p.bad && !g->failed && !g->exits.failed && !g->guards.failed && !g->sizes.failed;
  vec_free(alloc, &p.bound);
  vec_free(alloc, &p.fixups);
  arena_free(&p.temp);
  if (ok) return g;
  graph_free(g);
  return NULL;
}
