/* loops.c — loop IR: its tables read, modules, the builder (see loops.h). */
#include "jit/loops/loops.h"

#include <string.h>

/* ---- tables -------------------------------------------------------------------------------- */

static const char *const type_rows[LT_COUNT] = {
#define LOOP_TYPE(NAME, text, bytes, cls) text,
#include "jit/loops/loops.def"
};

const u8 loop_type_sizes[LT_COUNT] = {
#define LOOP_TYPE(NAME, text, bytes, cls) bytes,
#include "jit/loops/loops.def"
};

typedef struct OpRow {
  const char *text;
  const char *doc;
} OpRow;

static const OpRow op_rows[LOOP_OP_COUNT] = {
#define LOOP_OP(NAME, text, form, types, doc) {text, doc},
#include "jit/loops/loops.def"
};

const u8 loop_op_forms[LOOP_OP_COUNT] = {
#define LOOP_OP(NAME, text, form, types, doc) LOOP_FORM_##form,
#include "jit/loops/loops.def"
};

typedef struct CheckRow {
  const char *text;
  u8 args;
} CheckRow;

static const CheckRow check_rows[LOOP_CHECK_COUNT] = {
#define LOOP_CHECK(NAME, text, args, doc) {text, args},
#include "jit/loops/loops.def"
};

static const char *const reduce_rows[LOOP_REDUCE_COUNT] = {
#define LOOP_REDUCE(NAME, text, types, doc) text,
#include "jit/loops/loops.def"
};

/* Ranges of LoopType and LoopOp that the inline readers in loops.h rely on. */
_Static_assert(LT_U8 + 4 == LT_U64 && LT_U64 + 1 == LT_F32 && LT_F32 + 1 == LT_F64, "order of types");
_Static_assert(LOOP_PAR + 5 == LOOP_SCAN && LOOP_YIELD + 4 == LOOP_EXIT && LOOP_EXIT + 1 == LOOP_OP_COUNT,
               "order of operations");

const char *loop_type_text(LoopType t) { return t < LT_COUNT ? type_rows[t] : "?"; }

LoopType loop_type_find(const char *s, size_t n) {
  for (u32 t = 1; t < LT_COUNT; t++)
    if (strlen(type_rows[t]) == n && memcmp(type_rows[t], s, n) == 0) return (LoopType)t;
  return LT_VOID;
}

const char *loop_op_text(LoopOp op) { return op < LOOP_OP_COUNT ? op_rows[op].text : "?"; }
const char *loop_op_doc(LoopOp op) { return op_rows[op].doc; }
const char *loop_check_text(LoopCheck k) { return k < LOOP_CHECK_COUNT ? check_rows[k].text : "?"; }
u32 loop_check_args(LoopCheck k) { return check_rows[k].args; }
const char *loop_reduce_text(LoopReduce r) { return r < LOOP_REDUCE_COUNT ? reduce_rows[r] : "?"; }

/* ---- modules ------------------------------------------------------------------------------- */

WeftStatus loop_module_init(LoopModule *m, Allocator *alloc) {
  *m = (LoopModule){.alloc = alloc};
  arena_init(&m->arena, alloc);
  return names_init(&m->names, alloc);
}

static void fn_free(LoopModule *m, LoopFn *fn) {
  vec_free(m->alloc, &fn->nodes);
  vec_free(m->alloc, &fn->body);
  vec_free(m->alloc, &fn->list);
  vec_free(m->alloc, &fn->terms);
  vec_free(m->alloc, &fn->params);
  vec_free(m->alloc, &fn->results);
  vec_free(m->alloc, &fn->open);
  mem_free(m->alloc, fn->const_slots, sizeof(u32) * fn->const_slot_count);
  mem_free(m->alloc, fn, sizeof *fn);
}

void loop_fn_free(LoopFn *fn) { fn_free(fn->module, fn); }

void loop_module_truncate(LoopModule *m, u32 fns, u32 tables) {
  while (m->fns.count > fns) fn_free(m, m->fns.data[--m->fns.count]);
  m->tables.count = tables;
}

void loop_module_free(LoopModule *m) {
  if (!m->alloc) return;
  loop_module_truncate(m, 0, 0);
  vec_free(m->alloc, &m->fns);
  vec_free(m->alloc, &m->tables);
  arena_free(&m->arena);
  names_free(&m->names);
  *m = (LoopModule){0};
}

LoopFn *loop_module_find(const LoopModule *m, const char *name) {
  Name id = name_find(&m->names, name, strlen(name));
  LoopFn *declared = NULL;
  for (u32 i = id ? m->fns.count : 0; i-- > 0;) { /* mathematics stand in front */
    LoopFn *fn = m->fns.data[i];
    if (fn->name != id || fn->kind == LOOP_MATH_FN) continue;
    if (!fn->is_extern) return fn;
    if (!declared) declared = fn;
  }
  return declared;
}

LoopFn *loop_module_find_math(const LoopModule *m, const char *name, LoopType t) {
  Name id = name_find(&m->names, name, strlen(name));
  for (u32 i = 0; id && i < m->fns.count; i++) {
    LoopFn *fn = m->fns.data[i];
    if (fn->name == id && fn->kind == LOOP_MATH_FN && fn->math_type == t) return fn;
  }
  return NULL;
}

const LoopMath *loop_module_math(const LoopModule *m, const char *name, LoopType t) {
  for (u32 i = 0; i < m->math_count; i++)
    if (m->math[i].type == t && strcmp(m->math[i].name, name) == 0) return &m->math[i];
  return NULL;
}

u32 loop_table_new(LoopModule *m, const char *name, LoopType type, u32 count, const u64 *bits) {
  Name id = name_cstr(&m->names, name);
  u64 *copy = arena_alloc(&m->arena, sizeof(u64) * (count ? count : 1));
  if (!id || !copy) return 0;
  for (u32 i = 0; i < count; i++) copy[i] = loop_normal(type, bits[i]);
  if (m->tables.count == 0 && !vec_push(m->alloc, &m->tables, (LoopTable){0})) return 0; /* id 0 is none */
  return vec_push(m->alloc, &m->tables, (LoopTable){id, type, count, copy}) ? m->tables.count - 1 : 0;
}

/* ---- builder: storage ---------------------------------------------------------------------- */

LoopFn *loop_fn_new(LoopModule *m, LoopKind kind, const char *name) {
  LoopFn *fn = mem_alloc_zero(m->alloc, sizeof *fn);
  if (!fn) return NULL;
  fn->module = m;
  fn->kind = kind;
  fn->name = name_cstr(&m->names, name);
  if (!fn->name || !vec_push(m->alloc, &fn->nodes, (LoopNode){0}) || !vec_push(m->alloc, &m->fns, fn)) {
    fn_free(m, fn);
    return NULL;
  }
  return fn;
}

LoopFn *loop_math_new(LoopModule *m, const char *name, LoopType type) {
  LoopFn *fn = loop_fn_new(m, LOOP_MATH_FN, name);
  if (!fn) return NULL;
  fn->math_type = type;
  loop_result(fn, type);
  return fn;
}

static u32 fail(LoopFn *fn, const char *why) {
  if (!fn->failed) fn->failed = why;
  return 0;
}

static u32 add_node(LoopFn *fn, LoopNode n) {
  if (fn->failed) return 0;
  if (!toil(fn->module->toil, 1) || !vec_push(fn->module->alloc, &fn->nodes, n)) return fail(fn, "out of memory");
  return fn->nodes.count - 1;
}

static u32 add_body(LoopFn *fn, LoopNode n) {
  u32 id = add_node(fn, n);
  if (id && !vec_push(fn->module->alloc, &fn->body, id)) return fail(fn, "out of memory");
  return id;
}

static bool is_value(const LoopFn *fn, u32 id) { return id && id < fn->nodes.count && loop_type_of(fn, id) != LT_VOID; }

/* Appends ids to fn->list; false after a failure. `at` gets the start of the run. */
static bool add_list(LoopFn *fn, u32 count, const u32 *ids, u32 *at) {
  if (fn->failed) return false;
  *at = fn->list.count;
  for (u32 i = 0; i < count; i++) {
    if (!is_value(fn, ids[i])) return fail(fn, "an operand is no value"), false;
    if (!vec_push(fn->module->alloc, &fn->list, ids[i])) return fail(fn, "out of memory"), false;
  }
  return true;
}

WeftStatus loop_fn_finish(LoopFn *fn, Buf *why) {
  if (!fn->failed && fn->open.count) fail(fn, "a head is not closed");
  if (!fn->failed) return WEFT_OK;
  if (why) buf_printf(why, "%s", fn->failed);
  return WEFT_ERROR;
}

/* ---- builder: leaves ----------------------------------------------------------------------- */

static u32 add_param(LoopFn *fn, const char *name, LoopNode n) {
  n.op = LOOP_PARAM;
  n.list = name_cstr(&fn->module->names, name);
  if (!n.list) return fail(fn, "out of memory");
  u32 id = add_node(fn, n);
  if (id && !vec_push(fn->module->alloc, &fn->params, id)) return fail(fn, "out of memory");
  return id;
}

u32 loop_param_buffer(LoopFn *fn, const char *name, LoopType elem, LoopDir dir) {
  return add_param(fn, name, (LoopNode){.type = LT_PTR, .mem = (u8)elem, .aux = (u8)dir});
}

u32 loop_param(LoopFn *fn, const char *name, LoopType type) {
  return add_param(fn, name, (LoopNode){.type = (u8)type});
}

void loop_result(LoopFn *fn, LoopType type) {
  if (!vec_push(fn->module->alloc, &fn->results, (u8)type)) fail(fn, "out of memory");
}

u32 loop_table_ref(LoopFn *fn, u32 table) {
  if (!table || table >= fn->module->tables.count) return fail(fn, "no such table");
  for (u32 id = 1; id < fn->nodes.count; id++) {
    const LoopNode *n = loop_node(fn, id);
    if (n->op == LOOP_TABLE && n->a == table) return id;
  }
  return add_node(fn, (LoopNode){.op = LOOP_TABLE, .type = LT_PTR, .mem = (u8)fn->module->tables.data[table].type,
                                 .a = table});
}

static u32 const_hash(LoopType type, u64 bits) {
  u64 h = (bits ^ (u64)type << 56) * 0x9E3779B97F4A7C15u;
  return (u32)(h >> 32);
}

static u32 *const_slot(LoopFn *fn, LoopType type, u64 bits) {
  u32 mask = fn->const_slot_count - 1;
  for (u32 i = const_hash(type, bits) & mask;; i = (i + 1) & mask) {
    u32 *slot = &fn->const_slots[i];
    if (!*slot) return slot;
    const LoopNode *n = loop_node(fn, *slot);
    if (n->type == type && n->imm == bits) return slot;
  }
}

static bool const_grow(LoopFn *fn) {
  u32 old = fn->const_slot_count, count = old ? old * 2 : 16;
  u32 *was = fn->const_slots, *slots = mem_alloc_zero(fn->module->alloc, sizeof *slots * count);
  if (!slots) return false;
  fn->const_slots = slots;
  fn->const_slot_count = count;
  for (u32 i = 0; i < old; i++)
    if (was[i]) *const_slot(fn, loop_type_of(fn, was[i]), loop_node(fn, was[i])->imm) = was[i];
  mem_free(fn->module->alloc, was, sizeof *was * old);
  return true;
}

u32 loop_const(LoopFn *fn, LoopType type, u64 bits) {
  if (fn->failed) return 0;
  if (type == LT_VOID || type >= LT_PTR) return fail(fn, "no constants of this type");
  if (fn->const_count * 2 >= fn->const_slot_count && !const_grow(fn)) return fail(fn, "out of memory");
  bits = loop_normal(type, bits);
  u32 *slot = const_slot(fn, type, bits);
  if (*slot) return *slot;
  u32 id = add_node(fn, (LoopNode){.op = LOOP_CONST, .type = (u8)type, .imm = bits});
  if (id) *slot = id, fn->const_count++;
  return id;
}

static u64 bits_of_f32(f32 v) {
  u32 b;
  memcpy(&b, &v, 4);
  return b;
}

static u64 bits_of_f64(f64 v) {
  u64 b;
  memcpy(&b, &v, 8);
  return b;
}

u32 loop_const_i(LoopFn *fn, LoopType type, i64 v) {
  if (type == LT_F32) return loop_const(fn, type, bits_of_f32((f32)v));
  if (type == LT_F64) return loop_const(fn, type, bits_of_f64((f64)v));
  if (type == LT_I1) return loop_const(fn, type, v != 0);
  return loop_const(fn, type, (u64)v);
}

u32 loop_const_f(LoopFn *fn, LoopType type, f64 v) {
  if (type == LT_F32) return loop_const(fn, type, bits_of_f32((f32)v));
  if (type == LT_F64) return loop_const(fn, type, bits_of_f64(v));
  return fail(fn, "a float constant of a type that is not float");
}

/* ---- builder: values ----------------------------------------------------------------------- */

u32 loop_emit(LoopFn *fn, LoopOp op, LoopType type, u32 a, u32 b, u32 c) {
  if (fn->failed) return 0;
  LoopNode n = {.op = (u8)op, .a = a, .b = b, .c = c};
  u32 operands = 1;
  if (!is_value(fn, a)) return fail(fn, "an operand is no value");
  switch (loop_op_form(op)) {
    case LOOP_FORM_UNARY:
    case LOOP_FORM_PREFIX: n.type = (u8)loop_type_of(fn, a); break;
    case LOOP_FORM_BINARY: operands = 2, n.type = (u8)loop_type_of(fn, a); break;
    case LOOP_FORM_TERNARY: operands = 3, n.type = (u8)loop_type_of(fn, a); break;
    case LOOP_FORM_COMPARE: operands = 2, n.type = LT_I1; break;
    case LOOP_FORM_CONVERT: n.type = (u8)type; break;
    case LOOP_FORM_SELECT:
      operands = 3;
      if (is_value(fn, b)) n.type = (u8)loop_type_of(fn, b);
      break;
    default: return fail(fn, "not an operation of loop_emit");
  }
  if ((operands > 1) != (b != 0) || (operands > 2) != (c != 0)) return fail(fn, "wrong number of operands");
  if ((b && !is_value(fn, b)) || (c && !is_value(fn, c))) return fail(fn, "an operand is no value");
  return add_body(fn, n);
}

u32 loop_math(LoopFn *fn, const char *name, u32 a, u32 b, u32 c) {
  if (fn->failed) return 0;
  if (!is_value(fn, a) || (b && !is_value(fn, b)) || (c && (!b || !is_value(fn, c))))
    return fail(fn, "an operand is no value");
  Name id = name_cstr(&fn->module->names, name);
  if (!id) return fail(fn, "out of memory");
  return add_body(fn, (LoopNode){.op = LOOP_MATH, .type = (u8)loop_type_of(fn, a), .a = a, .b = b, .c = c, .imm = id});
}

static u32 access_node(LoopFn *fn, LoopOp op, u32 buffer, i64 constant, const LoopTerm *terms, u32 count, u32 value) {
  if (fn->failed) return 0;
  if (!is_value(fn, buffer) || loop_type_of(fn, buffer) != LT_PTR) return fail(fn, "access to what is no buffer");
  if (op == LOOP_STORE && !is_value(fn, value)) return fail(fn, "an operand is no value");
  u8 mem = loop_node(fn, buffer)->mem;
  LoopNode n = {.op = (u8)op, .mem = mem, .a = buffer, .b = value, .list = fn->terms.count, .imm = (u64)constant};
  n.type = (u8)(op == LOOP_LOAD ? loop_value_type((LoopType)mem) : LT_VOID);
  for (u32 i = 0; i < count; i++) {
    LoopTerm t = terms[i];
    if (t.coef == 0) continue;
    if (!t.stride[0]) t.stride[0] = t.stride[1], t.stride[1] = 0;
    u32 ids[3] = {t.stride[0], t.stride[1], t.var};
    bool constant_only = !t.stride[0];
    for (u32 k = 0; k < 3; k++)
      if (ids[k] && !is_value(fn, ids[k])) return fail(fn, "an index term is no value");
    if (constant_only && t.var && loop_node(fn, t.var)->op == LOOP_CONST) {
      n.imm += (u64)t.coef * loop_node(fn, t.var)->imm;
      continue;
    }
    if (constant_only && !t.var) {
      n.imm += (u64)t.coef;
      continue;
    }
    if (!vec_push(fn->module->alloc, &fn->terms, t)) return fail(fn, "out of memory");
    n.count++;
  }
  return add_body(fn, n);
}

u32 loop_load(LoopFn *fn, u32 buffer, i64 constant, const LoopTerm *terms, u32 count) {
  return access_node(fn, LOOP_LOAD, buffer, constant, terms, count, 0);
}

u32 loop_store(LoopFn *fn, u32 buffer, i64 constant, const LoopTerm *terms, u32 count, u32 value) {
  return access_node(fn, LOOP_STORE, buffer, constant, terms, count, value);
}

u32 loop_load_at(LoopFn *fn, u32 buffer, u32 index) {
  return access_node(fn, LOOP_LOAD, buffer, 0, &(LoopTerm){.coef = 1, .var = index}, 1, 0);
}

u32 loop_store_at(LoopFn *fn, u32 buffer, u32 index, u32 value) {
  return access_node(fn, LOOP_STORE, buffer, 0, &(LoopTerm){.coef = 1, .var = index}, 1, value);
}

/* ---- builder: statements ------------------------------------------------------------------- */

u32 loop_check(LoopFn *fn, LoopCheck kind, u32 number, u32 a, u32 b, u32 count, const u32 *values) {
  if (fn->failed) return 0;
  if (!is_value(fn, a) || (loop_check_args(kind) == 2 ? !is_value(fn, b) : b != 0))
    return fail(fn, "a check with wrong operands");
  LoopNode n = {.op = LOOP_CHECK, .aux = (u8)kind, .a = a, .b = b, .count = count, .imm = number};
  return add_list(fn, count, values, &n.list) ? add_body(fn, n) : 0;
}

static u32 exit_node(LoopFn *fn, LoopOp op, u32 number, u32 count, const u32 *values) {
  LoopNode n = {.op = (u8)op, .count = count, .imm = number};
  return add_list(fn, count, values, &n.list) ? add_body(fn, n) : 0;
}

u32 loop_poll(LoopFn *fn, u32 number, u32 count, const u32 *values) {
  return exit_node(fn, LOOP_POLL, number, count, values);
}
void loop_exit(LoopFn *fn, u32 number, u32 count, const u32 *values) {
  (void)exit_node(fn, LOOP_EXIT, number, count, values);
}

u32 loop_call(LoopFn *fn, LoopFn *callee, u32 argc, const u32 *args, u32 exit, u32 count, const u32 *values) {
  u32 at, rest;
  if (callee->module != fn->module) return fail(fn, "a callee of another module");
  if (!add_list(fn, argc, args, &at) || !add_list(fn, count, values, &rest)) return 0;
  bool asks = callee->kind == LOOP_KERNEL && exit == 0;
  u32 results = callee->kind == LOOP_NATIVE ? callee->results.count : asks;
  u32 id = add_body(fn, (LoopNode){.op = LOOP_CALL, .a = argc, .b = results, .c = exit, .list = at,
                                   .count = argc + count, .imm = callee->name});
  for (u32 i = 0; id && i < results; i++)
    if (!add_node(fn, (LoopNode){.op = LOOP_RESULT, .type = asks ? LT_I1 : callee->results.data[i], .a = id, .b = i}))
      return 0;
  return id;
}

typedef struct Head {
  LoopNode node;
  const u32 *trips; /* or the condition */
  const u32 *init;
  const LoopType *results;
  const char *index;
} Head;

/* The head, then its indices, carried values and results, then opens its body. */
static u32 open_head(LoopFn *fn, Head h) {
  LoopNode n = h.node;
  u32 first = n.op == LOOP_IF ? 1 : n.a, rest;
  if (!add_list(fn, first, h.trips, &n.list) || !add_list(fn, n.b, h.init, &rest)) return 0;
  n.count = first + n.b;
  u32 id = add_body(fn, n);
  bool ok = id != 0;
  for (u32 i = 0; ok && i < n.a; i++) {
    Name index = i == 0 && h.index ? name_cstr(&fn->module->names, h.index)
                                   : name_intern(&fn->module->names, &"ijkl"[(fn->open.count + i) & 3], 1);
    ok = index && add_node(fn, (LoopNode){.op = LOOP_INDEX, .type = LT_I64, .a = id, .b = i, .list = index});
  }
  for (u32 i = 0; ok && i < n.b; i++)
    ok = add_node(fn, (LoopNode){.op = LOOP_CARRY, .type = (u8)loop_type_of(fn, h.init[i]), .a = id, .b = i});
  for (u32 i = 0; ok && i < n.c; i++)
    ok = add_node(fn, (LoopNode){.op = LOOP_RESULT, .type = (u8)h.results[i], .a = id, .b = i});
  if (!ok) return fail(fn, "out of memory");
  return vec_push(fn->module->alloc, &fn->open, id) ? id : fail(fn, "out of memory");
}

u32 loop_begin_par(LoopFn *fn, const char *index, u32 trips, u64 grain) {
  return open_head(fn, (Head){{.op = LOOP_PAR, .a = 1, .imm = grain}, &trips, NULL, NULL, index});
}

static u32 carried_head(LoopFn *fn, LoopNode n, const char *index, const u32 *trips, const u32 *init) {
  LoopType few[16], *types = few;
  u32 count = n.b;
  Allocator *alloc = fn->module->alloc;
  if (fn->failed) return 0;
  if (count > COUNT_OF(few) && !(types = mem_alloc(alloc, sizeof *types * count))) return fail(fn, "out of memory");
  bool ok = true;
  for (u32 i = 0; ok && i < count; i++) {
    ok = is_value(fn, init[i]);
    types[i] = ok ? loop_type_of(fn, init[i]) : LT_VOID;
  }
  u32 id = ok ? open_head(fn, (Head){n, trips, init, types, index}) : fail(fn, "an operand is no value");
  if (types != few) mem_free(alloc, types, sizeof *types * count);
  return id;
}

u32 loop_begin_for(LoopFn *fn, const char *index, u32 trips, u32 carried, const u32 *init) {
  return carried_head(fn, (LoopNode){.op = LOOP_FOR, .a = 1, .b = carried, .c = carried}, index, &trips, init);
}

u32 loop_begin_while(LoopFn *fn, u32 carried, const u32 *init) {
  return carried_head(fn, (LoopNode){.op = LOOP_WHILE, .b = carried, .c = carried}, NULL, NULL, init);
}

u32 loop_begin_if(LoopFn *fn, u32 cond, u32 results, const LoopType *types) {
  return open_head(fn, (Head){{.op = LOOP_IF, .c = results}, &cond, NULL, types, NULL});
}

u32 loop_begin_reduce(LoopFn *fn, LoopReduce op, LoopType type, LoopOrder order, u32 axes, const u32 *trips) {
  LoopNode n = {.op = LOOP_REDUCE, .mem = (u8)order, .aux = (u8)op, .a = axes, .c = 1};
  return open_head(fn, (Head){n, trips, NULL, &type, NULL});
}

u32 loop_begin_scan(LoopFn *fn, LoopReduce op, LoopType type, u32 axes, const u32 *trips) {
  return open_head(fn, (Head){{.op = LOOP_SCAN, .aux = (u8)op, .a = axes, .c = 1}, trips, NULL, &type, NULL});
}

static u32 innermost(LoopFn *fn) { return fn->open.count ? fn->open.data[fn->open.count - 1] : 0; }

void loop_else(LoopFn *fn) {
  u32 head = innermost(fn);
  if (fn->failed) return;
  if (!head || loop_node(fn, head)->op != LOOP_IF) fail(fn, "else without if");
  else add_body(fn, (LoopNode){.op = LOOP_ELSE, .a = head});
}

void loop_end(LoopFn *fn) {
  u32 head = innermost(fn);
  if (fn->failed) return;
  if (!head) {
    fail(fn, "end without a head");
    return;
  }
  add_body(fn, (LoopNode){.op = LOOP_END, .a = head});
  fn->open.count--;
}

static void terminator(LoopFn *fn, LoopOp op, u32 head, u32 count, const u32 *values) {
  LoopNode n = {.op = (u8)op, .a = head, .count = count};
  if (add_list(fn, count, values, &n.list)) add_body(fn, n);
}

void loop_yield(LoopFn *fn, u32 count, const u32 *values) {
  if (!innermost(fn)) fail(fn, "yield outside an if or reduce");
  terminator(fn, LOOP_YIELD, innermost(fn), count, values);
}

/* The `for` or `while` that a `next` or `break` here belongs to: only `if`s lie between. 0 when there is none. */
static u32 nearest_loop(const LoopFn *fn) {
  for (u32 i = fn->open.count; i-- > 0;) {
    u8 op = loop_node(fn, fn->open.data[i])->op;
    if (op == LOOP_FOR || op == LOOP_WHILE) return fn->open.data[i];
    if (op != LOOP_IF) return 0;
  }
  return 0;
}

void loop_next(LoopFn *fn, u32 count, const u32 *values) {
  if (!nearest_loop(fn)) fail(fn, "next outside a for or while");
  terminator(fn, LOOP_NEXT, nearest_loop(fn), count, values);
}

void loop_break(LoopFn *fn, u32 count, const u32 *values) {
  if (!nearest_loop(fn)) fail(fn, "break outside a for or while");
  terminator(fn, LOOP_BREAK, nearest_loop(fn), count, values);
}

void loop_return(LoopFn *fn, u32 count, const u32 *values) { terminator(fn, LOOP_RETURN, 0, count, values); }

/* ---- reader -------------------------------------------------------------------------------- */

bool loop_access_is_affine(const LoopFn *fn, const LoopNode *access) {
  const LoopTerm *t = loop_terms(fn, access);
  for (u32 i = 0; i < access->count; i++) {
    if (!t[i].var) continue;
    u8 op = loop_node(fn, t[i].var)->op;
    if (op != LOOP_INDEX && op != LOOP_PARAM) return false;
  }
  return true;
}

void loop_each_operand(const LoopFn *fn, const LoopNode *n, void (*visit)(void *ctx, u32 id), void *ctx) {
  switch (loop_op_form((LoopOp)n->op)) {
    case LOOP_FORM_LEAF:
    case LOOP_FORM_MARK: return;
    case LOOP_FORM_ACCESS: {
      visit(ctx, n->a);
      const LoopTerm *t = loop_terms(fn, n);
      for (u32 i = 0; i < n->count; i++) {
        if (t[i].stride[0]) visit(ctx, t[i].stride[0]);
        if (t[i].stride[1]) visit(ctx, t[i].stride[1]);
        if (t[i].var) visit(ctx, t[i].var);
      }
      if (n->b) visit(ctx, n->b);
      return;
    }
    case LOOP_FORM_HEAD:
    case LOOP_FORM_CALL:
    case LOOP_FORM_EXIT:
    case LOOP_FORM_TERM: break;
    default:
      if (n->a) visit(ctx, n->a);
      if (n->b) visit(ctx, n->b);
      if (n->c) visit(ctx, n->c);
  }
  if (loop_op_form((LoopOp)n->op) < LOOP_FORM_CHECK) return; /* values have no list */
  for (u32 i = 0; i < n->count; i++) visit(ctx, loop_list(fn, n)[i]);
}
