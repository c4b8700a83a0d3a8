/* loops_parse.c — loop IR from text, through the builder (the form is described in loops.h).
 *
 * One pass, no recursion: open blocks are a stack, and a name is forgotten where its block ends. A literal keeps its
 * text until the type it is read as is known. */
#include "jit/loops/loops.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum TokenKind { T_END, T_NAME, T_VALUE, T_NUMBER, T_PUNCT } TokenKind;

typedef struct Token {
  TokenKind kind;
  const char *at;
  u32 len;
} Token;

typedef struct Binding {
  const char *at;
  u32 len;
  u32 id;
} Binding;

/* An operand as written: a value, or a literal whose type is not settled. */
typedef struct Operand {
  u32 id;        /* 0: literal */
  LoopType type; /* of the value, or the literal's suffix; VOID when open */
  const char *at;
  u32 len;
} Operand;

typedef struct Block {
  u32 head;
  u32 bindings; /* visible names when it was opened */
  u32 names;    /* where its results' names start in `pending` */
} Block;

typedef struct Parser {
  LoopModule *m;
  const char *text, *at, *end;
  Token tok;
  LoopFn *fn;
  VEC(Binding) bindings;
  VEC(Binding) pending; /* names of results, bound when their head closes */
  VEC(Block) blocks;
  VEC(u32) ids;
  Buf *why;
  bool failed;
} Parser;

/* ---- errors and tokens --------------------------------------------------------------------- */

static bool error_at(Parser *p, const char *at, const char *what, const char *word, u32 len) {
  if (p->failed) return false;
  p->failed = true;
  if (!p->why) return false;
  u32 line = 1, col = 1;
  for (const char *c = p->text; c < at; c++) {
    if (*c == '\n') line++, col = 1;
    else col++;
  }
  buf_printf(p->why, "%u:%u: %s", line, col, what);
  if (word) buf_printf(p->why, " `%.*s`", (int)len, word);
  return false;
}

static bool error_here(Parser *p, const char *what) {
  return error_at(p, p->tok.at, what, p->tok.kind == T_END ? NULL : p->tok.at, p->tok.len);
}

static bool no_memory(Parser *p) { return error_at(p, p->tok.at, "out of memory", NULL, 0); }

static bool word_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void skip_blanks(Parser *p) {
  while (p->at < p->end) {
    if (*p->at == ';') {
      while (p->at < p->end && *p->at != '\n') p->at++;
    } else if (isspace((unsigned char)*p->at)) {
      p->at++;
    } else {
      return;
    }
  }
}

/* Decimal, hexadecimal, with fraction and exponent; the first dot of `..` is no fraction. */
static const char *number_end(const char *s, const char *end) {
  bool hex = end - s > 1 && s[0] == '0' && (s[1] | 32) == 'x';
  if (hex) s += 2;
  for (; s < end; s++) {
    if (*s == '.' && (s + 1 >= end || s[1] != '.')) continue;
    if ((*s == '+' || *s == '-') && (s[-1] | 32) == (hex ? 'p' : 'e')) continue;
    if (!word_char(*s)) break;
  }
  return s;
}

static void advance(Parser *p) {
  skip_blanks(p);
  const char *s = p->at;
  Token t = {T_END, s, 0};
  if (s < p->end) {
    if (*s == '%') {
      t.kind = T_VALUE;
      for (s++; s < p->end && word_char(*s);) s++;
    } else if (isdigit((unsigned char)*s)) {
      t.kind = T_NUMBER;
      s = number_end(s, p->end);
    } else if (word_char(*s)) {
      t.kind = T_NAME;
      while (s < p->end && word_char(*s)) s++;
    } else {
      t.kind = T_PUNCT;
      bool two = p->end - s > 1 && ((s[0] == '-' && s[1] == '>') || (s[0] == '.' && s[1] == '.'));
      s += two ? 2 : 1;
    }
  }
  t.len = (u32)(s - t.at);
  p->at = s;
  p->tok = t;
}

static bool is_word(const Token *t, const char *word) {
  return t->len == strlen(word) && memcmp(t->at, word, t->len) == 0;
}
static bool is(const Parser *p, const char *word) { return p->tok.kind != T_END && is_word(&p->tok, word); }

static bool accept(Parser *p, const char *word) {
  if (!is(p, word)) return false;
  advance(p);
  return true;
}

static bool expect(Parser *p, const char *word) {
  if (accept(p, word)) return true;
  char what[64] = "expected `";
  strncat(what, word, 20);
  strcat(what, p->tok.kind == T_END ? "` before the end" : "`, not");
  return error_here(p, what);
}

static bool take_name(Parser *p, Token *name) {
  if (p->tok.kind != T_NAME) return error_here(p, "expected a name");
  *name = p->tok;
  advance(p);
  return true;
}

static bool take_type(Parser *p, LoopType *type) {
  *type = p->tok.kind == T_NAME ? loop_type_find(p->tok.at, p->tok.len) : LT_VOID;
  if (*type == LT_VOID) return error_here(p, "expected a type");
  advance(p);
  return true;
}

static bool take_u64(Parser *p, u64 *v) {
  char buf[32];
  if (p->tok.kind != T_NUMBER || p->tok.len >= sizeof buf) return error_here(p, "expected a whole number");
  memcpy(buf, p->tok.at, p->tok.len);
  buf[p->tok.len] = 0;
  char *stop;
  errno = 0;
  *v = strtoull(buf, &stop, 0);
  if (*stop || errno) return error_here(p, "expected a whole number");
  advance(p);
  return true;
}

static bool take_number(Parser *p, u32 *v) { /* #n */
  u64 wide;
  if (!expect(p, "#") || !take_u64(p, &wide)) return false;
  *v = (u32)wide;
  return wide <= UINT32_MAX || error_here(p, "number too large before");
}

/* A name for the builder, NUL-terminated. NULL when refused. */
static const char *text_of(Parser *p, const Token *t) {
  Name id = name_intern(&p->m->names, t->at, t->len);
  return id ? name_text(&p->m->names, id) : (no_memory(p), NULL);
}

/* ---- names --------------------------------------------------------------------------------- */

static u32 lookup(const Parser *p, const char *at, u32 len) {
  for (u32 i = p->bindings.count; i-- > 0;) {
    const Binding *b = &p->bindings.data[i];
    if (b->len == len && memcmp(b->at, at, len) == 0) return b->id;
  }
  return 0;
}

static bool bind(Parser *p, const Token *name, u32 id) {
  if (lookup(p, name->at, name->len)) return error_at(p, name->at, "defined twice:", name->at, name->len);
  return vec_push(p->m->alloc, &p->bindings, (Binding){name->at, name->len, id}) || no_memory(p);
}

/* ---- operands ------------------------------------------------------------------------------ */

static bool take_operand(Parser *p, Operand *o) {
  *o = (Operand){.at = p->tok.at};
  bool negative = p->tok.kind == T_PUNCT && accept(p, "-");
  bool word = p->tok.kind == T_NAME && (is(p, "inf") || is(p, "nan") || is(p, "true") || is(p, "false"));
  if (!negative && !word && (p->tok.kind == T_VALUE || p->tok.kind == T_NAME)) {
    o->id = lookup(p, p->tok.at, p->tok.len);
    if (!o->id && p->tok.kind == T_NAME) { /* a table */
      Name name = name_find(&p->m->names, p->tok.at, p->tok.len);
      for (u32 i = 1; name && i < p->m->tables.count; i++)
        if (p->m->tables.data[i].name == name) o->id = loop_table_ref(p->fn, i);
    }
    if (!o->id) return error_here(p, "not defined here:");
    o->type = loop_type_of(p->fn, o->id);
    o->len = p->tok.len;
    advance(p);
    return true;
  }
  if (!word && p->tok.kind != T_NUMBER) return error_here(p, "expected an operand");
  o->len = (u32)(p->tok.at + p->tok.len - o->at);
  advance(p);
  return accept(p, ":") ? take_type(p, &o->type) : true;
}

/* The literal's bits as `type`. */
static bool literal_bits(Parser *p, const char *at, u32 len, LoopType type, u64 *bits) {
  char buf[64];
  u32 n = 0;
  for (u32 i = 0; i < len && n + 1 < sizeof buf; i++)
    if (!isspace((unsigned char)at[i])) buf[n++] = at[i];
  buf[n] = 0;
  bool hex = strncmp(buf, "0x", 2) == 0 || strncmp(buf, "-0x", 3) == 0;
  bool fraction = strpbrk(buf, hex ? ".pP" : ".eEni") != NULL; /* inf and nan too */
  char *stop = buf;
  errno = 0;
  if (strcmp(buf, "true") == 0 || strcmp(buf, "false") == 0) {
    *bits = buf[0] == 't';
    return type == LT_I1 || error_at(p, at, "not a literal of this type:", at, len);
  }
  if (type == LT_F64) {
    f64 v = strtod(buf, &stop);
    memcpy(bits, &v, 8);
  } else if (type == LT_F32) {
    f32 v = strtof(buf, &stop);
    *bits = 0;
    memcpy(bits, &v, 4);
  } else if (loop_is_int(type) && !fraction) {
    bool negative = buf[0] == '-';
    *bits = strtoull(buf + negative, &stop, 0);
    if (negative) *bits = 0 - *bits;
    bool fits = !errno && loop_normal(type, *bits) == *bits;
    if (negative) fits = fits && loop_is_signed(type) && (i64)*bits <= 0;
    else if (loop_is_signed(type)) fits = fits && (i64)*bits >= 0;
    if (!fits) return error_at(p, at, "does not fit its type:", at, len);
  }
  return (stop != buf && !*stop) || error_at(p, at, "not a literal of this type:", at, len);
}

static LoopType literal_default(const Operand *o) {
  if (o->type != LT_VOID) return o->type;
  if (o->at[0] == 't' || (o->at[0] == 'f' && o->len == 5)) return LT_I1;
  bool hex = o->len > 2 && (memcmp(o->at, "0x", 2) == 0 || memcmp(o->at, "-0x", 3) == 0);
  for (u32 i = 0; i < o->len; i++)
    if (o->at[i] == '.' || strchr(hex ? "pP" : "eEni", o->at[i])) return LT_F64;
  return LT_I64;
}

/* The node of an operand; an open literal becomes `context`, or its default type when that is VOID. 0 after an
 * error. */
static u32 settle(Parser *p, const Operand *o, LoopType context) {
  u64 bits;
  if (o->id) return o->id;
  LoopType type = o->type != LT_VOID ? o->type : context != LT_VOID ? context : literal_default(o);
  if (!literal_bits(p, o->at, o->len, type, &bits)) return 0;
  return loop_const(p->fn, type, bits);
}

static u32 take_settled(Parser *p, LoopType context) {
  Operand o;
  return take_operand(p, &o) ? settle(p, &o, context) : 0;
}

/* `count` operands that share a type. */
static bool take_group(Parser *p, u32 count, u32 *ids) {
  Operand o[3];
  LoopType known = LT_VOID;
  for (u32 i = 0; i < count; i++) {
    if (!take_operand(p, &o[i])) return false;
    if (o[i].type != LT_VOID && (known == LT_VOID || o[i].id)) known = o[i].type;
  }
  for (u32 i = 0; i < count && known == LT_VOID; i++)
    if (literal_default(&o[i]) != LT_I64) known = literal_default(&o[i]);
  for (u32 i = 0; i < count; i++)
    if (!(ids[i] = settle(p, &o[i], known))) return false;
  return true;
}

/* `( a, b )` or nothing; ids from p->ids[*first]. */
static bool take_exit_values(Parser *p, u32 *first) {
  *first = p->ids.count;
  if (!accept(p, "(")) return true;
  while (!is(p, ")")) {
    u32 id = take_settled(p, LT_VOID);
    if (!id) return false;
    if (!vec_push(p->m->alloc, &p->ids, id)) return no_memory(p);
    if (!accept(p, ",")) break;
  }
  return expect(p, ")");
}

/* `b[e]`: terms are gathered in `terms`. */
typedef struct Access {
  u32 buffer;
  i64 constant;
  VEC(LoopTerm) terms;
} Access;

static bool take_term(Parser *p, Access *a, bool negative) {
  LoopTerm t = {.coef = negative ? -1 : 1};
  do {
    if (p->tok.kind == T_NUMBER) {
      u64 v;
      if (!take_u64(p, &v)) return false;
      t.coef = (i64)((u64)t.coef * v);
      continue;
    }
    Operand o;
    if (!take_operand(p, &o)) return false;
    u32 id = settle(p, &o, LT_I64);
    if (!id) return false;
    bool param = loop_node(p->fn, id)->op == LOOP_PARAM;
    if (!t.var) t.var = id;
    else if (!param && loop_node(p->fn, t.var)->op != LOOP_PARAM)
      return error_at(p, o.at, "a second variable in an index term:", o.at, o.len);
    else {
      u32 stride = id;
      if (!param) stride = t.var, t.var = id;
      if (t.stride[1]) return error_at(p, o.at, "too many strides in an index term at", o.at, o.len);
      t.stride[t.stride[0] ? 1 : 0] = stride;
    }
  } while (accept(p, "*"));
  if (!t.var) {
    a->constant = (i64)((u64)a->constant + (u64)t.coef);
    return true;
  }
  return vec_push(p->m->alloc, &a->terms, t) || no_memory(p);
}

static bool take_access(Parser *p, Access *a) {
  if (!(a->buffer = take_settled(p, LT_VOID)) || !expect(p, "[")) return false;
  bool negative = accept(p, "-");
  for (;;) {
    if (!take_term(p, a, negative)) return false;
    negative = is(p, "-");
    if (!accept(p, "+") && !accept(p, "-")) return expect(p, "]");
  }
}

/* ---- statements ---------------------------------------------------------------------------- */

static bool parse_load(Parser *p, u32 *id) {
  Access a = {0};
  LoopType type;
  const char *at = p->tok.at;
  bool ok = take_access(p, &a) && take_type(p, &type);
  if (ok) *id = loop_load(p->fn, a.buffer, a.constant, a.terms.data, a.terms.count);
  if (ok && *id && loop_node(p->fn, *id)->mem != type)
    ok = error_at(p, at, "load of another type than the buffer's", NULL, 0);
  vec_free(p->m->alloc, &a.terms);
  return ok;
}

static bool parse_store(Parser *p) {
  Access a = {0};
  u32 value = 0;
  bool ok = take_access(p, &a) &&
            (value = take_settled(p, loop_value_type((LoopType)loop_node(p->fn, a.buffer)->mem))) != 0;
  if (ok) loop_store(p->fn, a.buffer, a.constant, a.terms.data, a.terms.count, value);
  vec_free(p->m->alloc, &a.terms);
  return ok;
}

static bool parse_check(Parser *p) {
  u32 kind = 0, ids[2] = {0}, number, first;
  for (; kind < LOOP_CHECK_COUNT; kind++)
    if (is(p, loop_check_text((LoopCheck)kind))) break;
  if (kind == LOOP_CHECK_COUNT) return error_here(p, "expected a kind of check");
  advance(p);
  if (!take_group(p, loop_check_args((LoopCheck)kind), ids) || !take_number(p, &number) || !take_exit_values(p, &first))
    return false;
  loop_check(p->fn, (LoopCheck)kind, number, ids[0], ids[1], p->ids.count - first, p->ids.data + first);
  p->ids.count = first;
  return true;
}

static bool parse_exit(Parser *p, bool poll) {
  u32 number, first;
  if (!take_number(p, &number) || !take_exit_values(p, &first)) return false;
  if (poll) loop_poll(p->fn, number, p->ids.count - first, p->ids.data + first);
  else loop_exit(p->fn, number, p->ids.count - first, p->ids.data + first);
  p->ids.count = first;
  return true;
}

/* Names written before `=`, from p->pending[first]. Bound now to consecutive ids. */
static bool bind_pending(Parser *p, u32 first, u32 id, u32 results, const char *at) {
  u32 count = p->pending.count - first;
  if (count != results) return error_at(p, at, "wrong number of names for the results", NULL, 0);
  for (u32 i = 0; i < count; i++) {
    Binding *b = &p->pending.data[first + i];
    if (!bind(p, &(Token){T_VALUE, b->at, b->len}, id + i)) return false;
  }
  p->pending.count = first;
  return true;
}

static bool parse_call(Parser *p, u32 names, const char *at) {
  Token name;
  u32 first = p->ids.count, exit, values;
  if (!take_name(p, &name)) return false;
  const char *text = text_of(p, &name);
  LoopFn *callee = text ? loop_module_find(p->m, text) : NULL;
  if (!callee) return error_at(p, name.at, "not a function of this module:", name.at, name.len);
  if (!expect(p, "(")) return false;
  while (!is(p, ")")) {
    u32 i = p->ids.count - first;
    LoopType type = i < callee->params.count ? loop_type_of(callee, callee->params.data[i]) : LT_I64;
    u32 id = take_settled(p, type);
    if (!id) return false;
    if (!vec_push(p->m->alloc, &p->ids, id)) return no_memory(p);
    if (!accept(p, ",")) break;
  }
  if (!expect(p, ")") || !take_number(p, &exit) || !take_exit_values(p, &values)) return false;
  u32 call = loop_call(p->fn, callee, values - first, p->ids.data + first, exit, p->ids.count - values,
                       p->ids.data + values);
  p->ids.count = first;
  if (!call) return true;
  return bind_pending(p, names, loop_result_of(p->fn, call, 0), loop_node(p->fn, call)->b, at);
}

/* ---- heads --------------------------------------------------------------------------------- */

typedef struct HeadText {
  Token names[8]; /* of the axes */
  u32 trips[8];
  u32 axes;
} HeadText;

static bool take_axes(Parser *p, HeadText *h, u32 most) {
  do {
    if (h->axes == most) return error_here(p, "too many axes at");
    Token *name = &h->names[h->axes];
    if (!take_name(p, name) || !expect(p, "in") || !expect(p, "0") || !expect(p, "..")) return false;
    if (!(h->trips[h->axes++] = take_settled(p, LT_VOID))) return false;
  } while (accept(p, ","));
  return true;
}

/* `(%a: f64 = 0.0, …)`: names to `carried`, initial values to p->ids. */
static bool take_carried(Parser *p, u32 *first_name, u32 *first_init) {
  *first_name = p->pending.count;
  *first_init = p->ids.count;
  if (!accept(p, "(")) return true;
  do {
    Token name = p->tok;
    LoopType type;
    if (name.kind != T_VALUE) return error_here(p, "expected a %name");
    advance(p);
    if (!expect(p, ":") || !take_type(p, &type) || !expect(p, "=")) return false;
    u32 id = take_settled(p, type);
    if (!id) return false;
    if (loop_type_of(p->fn, id) != type)
      return error_at(p, name.at, "initial value of another type:", name.at, name.len);
    if (!vec_push(p->m->alloc, &p->ids, id) || !vec_push(p->m->alloc, &p->pending, (Binding){name.at, name.len, 0}))
      return no_memory(p);
  } while (accept(p, ","));
  return expect(p, ")");
}

static bool open_block(Parser *p, u32 head, u32 names, const char *at) {
  if (!head) return true; /* the builder failed: said by loop_fn_finish */
  u32 count = p->pending.count - names;
  if (count != loop_node(p->fn, head)->c) return error_at(p, at, "wrong number of names for the results", NULL, 0);
  if (!expect(p, "{")) return false;
  return vec_push(p->m->alloc, &p->blocks, (Block){head, p->bindings.count, names}) || no_memory(p);
}

/* Result names stay in p->pending until the block closes; names of axes and carried values are bound in its scope. */
static bool parse_head(Parser *p, LoopOp op, u32 names, const char *at) {
  HeadText h = {0};
  u32 carried_name = p->pending.count, init = p->ids.count, head = 0;
  u64 grain = 0;
  LoopType type = LT_VOID;
  LoopReduce reduce = LOOP_REDUCE_ADD;
  LoopOrder order = LOOP_ORDER_LANES;
  switch (op) {
    case LOOP_PAR:
      if (!take_axes(p, &h, 1) || (accept(p, "grain") && !take_u64(p, &grain))) return false;
      head = loop_begin_par(p->fn, NULL, h.trips[0], grain);
      break;
    case LOOP_FOR:
    case LOOP_WHILE:
      if ((op == LOOP_FOR && !take_axes(p, &h, 1)) || !take_carried(p, &carried_name, &init)) return false;
      if (op == LOOP_FOR) head = loop_begin_for(p->fn, NULL, h.trips[0], p->ids.count - init, p->ids.data + init);
      else head = loop_begin_while(p->fn, p->ids.count - init, p->ids.data + init);
      p->ids.count = init;
      break;
    default:
      for (reduce = 0; reduce < LOOP_REDUCE_COUNT && !is(p, loop_reduce_text(reduce));) reduce++;
      if (reduce == LOOP_REDUCE_COUNT) return error_here(p, "expected a reduction");
      advance(p);
      if (!take_type(p, &type)) return false;
      if (op == LOOP_REDUCE && accept(p, "rows")) order = LOOP_ORDER_ROWS;
      if (!take_axes(p, &h, 8)) return false;
      if (op == LOOP_REDUCE) head = loop_begin_reduce(p->fn, reduce, type, order, h.axes, h.trips);
      else head = loop_begin_scan(p->fn, reduce, type, h.axes, h.trips);
  }
  u32 carried = p->pending.count - carried_name;
  p->pending.count = carried_name; /* still in memory: nothing is pushed before they are bound */
  if (!open_block(p, head, names, at)) return false;
  for (u32 i = 0; head && i < h.axes; i++) {
    u32 index = loop_index_of(head, i);
    Name name = name_intern(&p->m->names, h.names[i].at, h.names[i].len);
    if (!name) return no_memory(p);
    p->fn->nodes.data[index].list = name;
    if (!bind(p, &h.names[i], index)) return false;
  }
  for (u32 i = 0; head && i < carried; i++) {
    Binding b = p->pending.data[carried_name + i];
    if (!bind(p, &(Token){T_VALUE, b.at, b.len}, loop_carry_of(p->fn, head, i))) return false;
  }
  return true;
}

static bool parse_if(Parser *p, u32 names, const char *at) {
  LoopType types[64];
  u32 count = 0, cond = take_settled(p, LT_I1);
  if (!cond) return false;
  if (accept(p, "->")) {
    if (!expect(p, "(")) return false;
    do {
      if (count == COUNT_OF(types)) return error_here(p, "too many results at");
      if (!take_type(p, &types[count++])) return false;
    } while (accept(p, ","));
    if (!expect(p, ")")) return false;
  }
  return open_block(p, loop_begin_if(p->fn, cond, count, types), names, at);
}

static bool close_block(Parser *p) {
  if (!p->blocks.count) return error_here(p, "nothing to close at");
  Block b = p->blocks.data[p->blocks.count - 1];
  p->bindings.count = b.bindings;
  advance(p);
  if (accept(p, "else")) {
    loop_else(p->fn);
    return expect(p, "{");
  }
  loop_end(p->fn);
  p->blocks.count--;
  return bind_pending(p, b.names, loop_result_of(p->fn, b.head, 0), loop_node(p->fn, b.head)->c, p->tok.at);
}

/* ---- terminators, values ------------------------------------------------------------------- */

/* Type that value i of a terminator is read as. */
static LoopType terminator_type(const Parser *p, LoopOp op, u32 i) {
  const LoopFn *fn = p->fn;
  if (op == LOOP_RETURN) return i < fn->results.count ? (LoopType)fn->results.data[i] : LT_VOID;
  for (u32 d = fn->open.count; d-- > 0;) {
    u32 head = fn->open.data[d];
    const LoopNode *n = loop_node(fn, head);
    if (op != LOOP_YIELD && n->op == LOOP_IF) continue;
    return i < n->c ? loop_type_of(fn, loop_result_of(fn, head, i)) : LT_VOID;
  }
  return LT_VOID;
}

/* Operands up to what cannot be one: a `}`. Statements never follow a terminator. */
static bool parse_terminator(Parser *p, LoopOp op) {
  u32 first = p->ids.count, i = 0;
  while (!is(p, "}")) {
    u32 id = take_settled(p, terminator_type(p, op, i++));
    if (!id) return false;
    if (!vec_push(p->m->alloc, &p->ids, id)) return no_memory(p);
  }
  u32 count = p->ids.count - first;
  const u32 *ids = p->ids.data + first;
  if (op == LOOP_YIELD) loop_yield(p->fn, count, ids);
  else if (op == LOOP_NEXT) loop_next(p->fn, count, ids);
  else if (op == LOOP_BREAK) loop_break(p->fn, count, ids);
  else loop_return(p->fn, count, ids);
  p->ids.count = first;
  return true;
}

/* For `math`, whose number of operands its name tells only later: its first operand, and those that follow it on the
 * same line and do not begin the next statement (`%a = …`, `%a %b = …`). */
static bool operand_follows(const Parser *p, bool first) {
  if (!first) {
    const char *s = p->tok.at;
    while (isspace((unsigned char)s[-1]) && s[-1] != '\n') s--;
    if (s[-1] == '\n') return false;
  }
  if (p->tok.kind == T_VALUE) {
    const char *s = p->tok.at + p->tok.len;
    for (;;) {
      while (s < p->end && *s != '\n' && isspace((unsigned char)*s)) s++;
      if (s < p->end && *s == '=') return false;
      if (first || s >= p->end || *s != '%') return true;
      for (s++; s < p->end && word_char(*s);) s++;
    }
  }
  if (p->tok.kind == T_NUMBER || is(p, "-") || is(p, "inf") || is(p, "nan")) return true;
  return p->tok.kind == T_NAME && lookup(p, p->tok.at, p->tok.len);
}

static bool parse_math(Parser *p, u32 *id) {
  Token name;
  Operand o[3];
  u32 ids[3] = {0}, count = 0;
  LoopType known = LT_VOID;
  if (!take_name(p, &name)) return false;
  while (count < 3 && operand_follows(p, count == 0)) {
    if (!take_operand(p, &o[count])) return false;
    if (o[count].type != LT_VOID) known = o[count].type;
    count++;
  }
  for (u32 i = 0; i < count; i++)
    if (!(ids[i] = settle(p, &o[i], known == LT_VOID ? LT_F64 : known))) return false;
  const char *text = text_of(p, &name);
  if (text) *id = loop_math(p->fn, text, ids[0], ids[1], ids[2]);
  return text != NULL;
}

static bool parse_value(Parser *p, LoopOp op, u32 *id) {
  u32 ids[3] = {0};
  LoopType type = LT_VOID;
  switch (loop_op_form(op)) {
    case LOOP_FORM_UNARY:
    case LOOP_FORM_PREFIX:
      if (!take_group(p, 1, ids)) return false;
      break;
    case LOOP_FORM_BINARY:
    case LOOP_FORM_COMPARE:
      if (!take_group(p, 2, ids)) return false;
      break;
    case LOOP_FORM_TERNARY:
      if (!take_group(p, 3, ids)) return false;
      break;
    case LOOP_FORM_SELECT:
      if (!(ids[0] = take_settled(p, LT_I1)) || !take_group(p, 2, ids + 1)) return false;
      break;
    case LOOP_FORM_CONVERT:
      if (!take_type(p, &type) || !take_group(p, 1, ids)) return false;
      break;
    case LOOP_FORM_MATH: return parse_math(p, id);
    default: return parse_load(p, id);
  }
  *id = loop_emit(p->fn, op, type, ids[0], ids[1], ids[2]);
  return true;
}

static bool parse_statement(Parser *p) {
  const char *at = p->tok.at;
  u32 names = p->pending.count, id = 0;
  while (p->tok.kind == T_VALUE) {
    if (!vec_push(p->m->alloc, &p->pending, (Binding){p->tok.at, p->tok.len, 0})) return no_memory(p);
    advance(p);
  }
  bool named = p->pending.count > names;
  if (named && !expect(p, "=")) return false;
  if (is(p, "}")) return named ? error_here(p, "expected an operation, not") : close_block(p);
  u32 op = LOOP_OP_COUNT;
  for (u32 i = LOOP_ADD; p->tok.kind == T_NAME && i < LOOP_OP_COUNT && op == LOOP_OP_COUNT; i++)
    if (*loop_op_text((LoopOp)i) == *p->tok.at && is(p, loop_op_text((LoopOp)i))) op = i;
  if (op == LOOP_OP_COUNT || op == LOOP_ELSE || op == LOOP_END) return error_here(p, "not an operation:");
  advance(p);
  if (op >= LOOP_PAR && op <= LOOP_SCAN)
    return op == LOOP_IF ? parse_if(p, names, at) : parse_head(p, (LoopOp)op, names, at);
  if (op == LOOP_CALL) return parse_call(p, names, at);
  if (op <= LOOP_PREFIX) {
    if (!parse_value(p, (LoopOp)op, &id)) return false;
    return id ? bind_pending(p, names, id, 1, at) : true;
  }
  if (named) return error_at(p, at, "a statement without a result is named", NULL, 0);
  switch (op) {
    case LOOP_STORE: return parse_store(p);
    case LOOP_CHECK: return parse_check(p);
    case LOOP_POLL: return parse_exit(p, true);
    case LOOP_EXIT: return parse_exit(p, false);
    default: return parse_terminator(p, (LoopOp)op);
  }
}

/* ---- functions and tables ------------------------------------------------------------------ */

static bool parse_param(Parser *p) {
  Token name = {T_END, NULL, 0};
  LoopType type;
  static const char unnamed[] = "abcdefghijklmnop";
  Token first = p->tok;
  /* extern declarations may give types only */
  bool typed_only = p->fn->is_extern && first.kind == T_NAME &&
                    (is(p, "in") || is(p, "out") || is(p, "inout") || loop_type_find(first.at, first.len));
  if (!typed_only && (!take_name(p, &name) || !expect(p, ":"))) return false;
  if (typed_only) {
    if (p->fn->params.count >= sizeof unnamed - 1) return error_here(p, "name the parameters before");
    name = (Token){T_NAME, &unnamed[p->fn->params.count], 1};
  }
  LoopDir dir = accept(p, "in") ? LOOP_IN : accept(p, "out") ? LOOP_OUT : accept(p, "inout") ? LOOP_INOUT : 0;
  if (!take_type(p, &type)) return false;
  const char *text = text_of(p, &name);
  if (!text) return false;
  u32 id = dir ? loop_param_buffer(p->fn, text, type, dir) : loop_param(p->fn, text, type);
  return bind(p, &name, id);
}

static bool parse_results(Parser *p) {
  LoopType type;
  if (p->fn->kind == LOOP_MATH_FN) {
    if (!expect(p, "->") || !take_type(p, &type)) return false;
    return type == p->fn->math_type || error_here(p, "a math function's result has another type before");
  }
  if (!accept(p, "->")) return true;
  if (!expect(p, "(")) return false;
  do {
    if (!take_type(p, &type)) return false;
    loop_result(p->fn, type);
  } while (accept(p, ","));
  return expect(p, ")");
}

static bool parse_body(Parser *p) {
  if (!expect(p, "{")) return false;
  while (p->blocks.count || !is(p, "}")) {
    if (p->tok.kind == T_END) return error_here(p, "expected `}` before the end");
    if (!parse_statement(p)) return false;
    if (p->fn->failed) return error_at(p, p->tok.at, p->fn->failed, NULL, 0);
  }
  advance(p);
  return true;
}

static bool parse_function(Parser *p, LoopKind kind, bool is_extern) {
  Token name;
  LoopType type = LT_VOID;
  const char *at = p->tok.at;
  if (!take_name(p, &name) || (kind == LOOP_MATH_FN && !take_type(p, &type))) return false;
  const char *text = text_of(p, &name);
  if (!text) return false;
  LoopFn *was = kind == LOOP_MATH_FN ? loop_module_find_math(p->m, text, type) : loop_module_find(p->m, text);
  if (was && !was->is_extern) return error_at(p, at, "defined twice:", name.at, name.len);
  p->fn = kind == LOOP_MATH_FN ? loop_math_new(p->m, text, type) : loop_fn_new(p->m, kind, text);
  if (!p->fn) return no_memory(p);
  p->fn->is_extern = is_extern;
  p->bindings.count = 0;
  if (!expect(p, "(")) return false;
  while (!is(p, ")")) {
    if (!parse_param(p)) return false;
    if (!accept(p, ",")) break;
  }
  if (!expect(p, ")") || !parse_results(p)) return false;
  if (!is_extern && !parse_body(p)) return false;
  Buf reason;
  buf_init(&reason, p->m->alloc);
  bool ok = loop_fn_finish(p->fn, &reason) == WEFT_OK && loops_verify(p->fn, &reason) == WEFT_OK;
  if (!ok) error_at(p, at, buf_text(&reason), NULL, 0);
  buf_free(&reason);
  return ok;
}

static bool parse_table(Parser *p) {
  Token name;
  LoopType type;
  VEC(u64) bits = {0};
  if (!take_name(p, &name) || !take_type(p, &type) || !expect(p, "[")) return false;
  bool ok = type < LT_PTR || error_here(p, "no tables of this type before");
  while (ok && !is(p, "]")) {
    u64 v;
    const char *at = p->tok.at;
    accept(p, "-");
    u32 len = (u32)(p->tok.at + p->tok.len - at);
    ok = p->tok.kind == T_NUMBER ||
         p->tok.kind == T_NAME ? literal_bits(p, at, len, type, &v) : error_here(p, "expected a literal");
    if (ok && !vec_push(p->m->alloc, &bits, v)) ok = no_memory(p);
    advance(p);
    if (!accept(p, ",")) break;
  }
  ok = ok && expect(p, "]");
  const char *text = ok ? text_of(p, &name) : NULL;
  if (text && !loop_table_new(p->m, text, type, bits.count, bits.data)) ok = no_memory(p);
  vec_free(p->m->alloc, &bits);
  return ok && text;
}

WeftStatus loops_parse(LoopModule *m, const char *text, size_t len, Buf *why) {
  Parser p = {.m = m, .text = text, .at = text, .end = text + len, .why = why};
  u32 fns = m->fns.count, tables = m->tables.count;
  advance(&p);
  while (!p.failed && p.tok.kind != T_END) {
    bool is_extern = accept(&p, "extern");
    bool ok = accept(&p, "kernel") ? parse_function(&p, LOOP_KERNEL, is_extern)
                                   : accept(&p, "native") ? parse_function(&p, LOOP_NATIVE, is_extern)
                                   : !is_extern && accept(&p, "math") ? parse_function(&p, LOOP_MATH_FN, false)
                                   : !is_extern && accept(&p, "table") ? parse_table(&p)
                                   : error_here(&p, "expected kernel, native, math, table or extern, not");
    /* what the builder refused */
    if (!ok) error_at(&p, p.tok.at, p.fn && p.fn->failed ? p.fn->failed : "malformed text", NULL, 0);
  }
  if (p.failed) loop_module_truncate(m, fns, tables);
  vec_free(m->alloc, &p.bindings);
  vec_free(m->alloc, &p.pending);
  vec_free(m->alloc, &p.blocks);
  vec_free(m->alloc, &p.ids);
  return p.failed ? WEFT_ERROR : WEFT_OK;
}
