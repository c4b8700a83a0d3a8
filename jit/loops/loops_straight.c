/* loops_straight.c — math functions without their rare branches (see loops_straight.h).
 *
 * One walk over the body copies it, leaving out every first arm; the conditions met on the way are joined to what
 * NAME_rare gives. Both new functions hold the whole copy: what one of them does not need is dead code to whoever
 * compiles it. */
#include "jit/loops/loops_straight.h"

#include <string.h>

typedef struct Copy {
  const LoopFn *from;
  LoopFn *to;
  u32 *map;  /* node of `from` → node of `to` */
  u32 rare;  /* i1 in `to`; 0: nothing rare met so far */
  u32 skip;  /* heads open inside the arm that is left out; 0: copying */
  bool loops;
} Copy;

static const char *callee_text(const LoopFn *fn, const LoopNode *n) {
  return name_text(&fn->module->names, (Name)n->imm);
}

static LoopFn *find_with(LoopModule *m, const char *name, const char *tail, LoopType type) {
  char text[128];
  size_t a = strlen(name), b = strlen(tail);
  if (a + b >= sizeof text) return NULL;
  memcpy(text, name, a);
  memcpy(text + a, tail, b + 1);
  return loop_module_find_math(m, text, type);
}

bool loop_math_is_straight(const LoopFn *fn) {
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (loop_is_head(n)) return false;
    /* callees stand before their callers, so a caller of one with branches finds its copy */
    if (n->op == LOOP_MATH && find_with(fn->module, callee_text(fn, n), "_usual", (LoopType)n->type)) return false;
  }
  return true;
}

static u32 straight_mapped(Copy *c, u32 id) {
  if (!id) return 0;
  if (c->map[id]) return c->map[id];
  const LoopNode *n = loop_node(c->from, id);
  if (n->op == LOOP_CONST) c->map[id] = loop_const(c->to, (LoopType)n->type, n->imm);
  if (n->op == LOOP_TABLE) c->map[id] = loop_table_ref(c->to, n->a);
  return c->map[id];
}

static void join_rare(Copy *c, u32 cond) {
  c->rare = c->rare ? loop_emit(c->to, LOOP_OR, LT_I1, c->rare, cond, 0) : cond;
}

static u32 copy_math(Copy *c, const LoopNode *n) {
  LoopType type = (LoopType)n->type;
  const char *name = callee_text(c->from, n);
  u32 a = straight_mapped(c, n->a), b = straight_mapped(c, n->b), d = straight_mapped(c, n->c);
  LoopFn *usual = find_with(c->from->module, name, "_usual", type),
      *rare = find_with(c->from->module, name, "_rare", type);
  if (!usual || !rare) {
    LoopFn *callee = loop_module_find_math(c->from->module, name, type);
    if (callee && !loop_math_is_straight(callee)) c->loops = true;
    return loop_math(c->to, name, a, b, d);
  }
  u32 flag = loop_math(c->to, name_text(&rare->module->names, rare->name), a, b, d);
  join_rare(c, loop_emit(c->to, LOOP_NE, LT_I1, flag, loop_const_f(c->to, type, 0), 0));
  return loop_math(c->to, name_text(&usual->module->names, usual->name), a, b, d);
}

static u32 copy_load(Copy *c, const LoopNode *n) {
  LoopTerm terms[8];
  if (n->count > COUNT_OF(terms)) {
    c->loops = true;
    return 0;
  }
  for (u32 i = 0; i < n->count; i++) {
    const LoopTerm *t = &loop_terms(c->from, n)[i];
    terms[i] = (LoopTerm){.coef = t->coef,
                          .stride = {straight_mapped(c, t->stride[0]), straight_mapped(c, t->stride[1])},
                          .var = straight_mapped(c, t->var)};
  }
  return loop_load(c->to, straight_mapped(c, n->a), (i64)n->imm, terms, n->count);
}

/* Copies one statement; for the function's `return`, gives the id of what it returns. */
static u32 straight_copy_statement(Copy *c, u32 id) {
  const LoopNode *n = loop_node(c->from, id);
  if (c->skip) {
    if (loop_is_head(n)) c->skip++;
    else if (n->op == LOOP_END || (n->op == LOOP_ELSE && c->skip == 1)) c->skip--;
    return 0;
  }
  switch (n->op) {
    case LOOP_IF:
      join_rare(c, straight_mapped(c, loop_cond_of(c->from, id)));
      c->skip = 1;
      return 0;
    case LOOP_END: return 0;
    case LOOP_YIELD:
      for (u32 i = 0; i < n->count; i++)
        c->map[loop_result_of(c->from, n->a, i)] = straight_mapped(c, loop_list(c->from, n)[i]);
      return 0;
    case LOOP_RETURN: return straight_mapped(c, loop_list(c->from, n)[0]);
    case LOOP_MATH: c->map[id] = copy_math(c, n); return 0;
    case LOOP_LOAD: c->map[id] = copy_load(c, n); return 0;
    default: break;
  }
  if (loop_is_head(n) || loop_is_terminator(n)) {
    c->loops = true;
    return 0;
  }
  c->map[id] = loop_emit(c->to, (LoopOp)n->op, (LoopType)n->type, straight_mapped(c, n->a), straight_mapped(c, n->b),
                         straight_mapped(c, n->c));
  return 0;
}

static bool holds_loop(const LoopFn *fn) {
  u32 arms = 0; /* heads open inside a first arm, which is left out */
  for (u32 i = 0; i < fn->body.count; i++) {
    const LoopNode *n = loop_node(fn, fn->body.data[i]);
    if (arms) {
      if (loop_is_head(n)) arms++;
      else if (n->op == LOOP_END || (n->op == LOOP_ELSE && arms == 1)) arms--;
    } else if (n->op == LOOP_IF) {
      arms = 1;
    } else if (loop_is_head(n)) {
      return true;
    }
  }
  return false;
}

static WeftStatus copy_function(LoopModule *m, const LoopFn *fn, const char *tail, bool rare, u32 *map, Buf *why) {
  LoopType type = fn->math_type;
  const char *name = name_text(&m->names, fn->name);
  char text[128];
  size_t a = strlen(name), b = strlen(tail);
  if (a + b >= sizeof text) {
    if (why) buf_printf(why, "the name %s is too long", name);
    return WEFT_ERROR;
  }
  memcpy(text, name, a);
  memcpy(text + a, tail, b + 1);
  memset(map, 0, fn->nodes.count * sizeof *map);
  Copy c = {.from = fn, .to = loop_math_new(m, text, type), .map = map};
  if (!c.to) {
    if (why) buf_puts(why, "out of memory");
    return WEFT_ERROR;
  }
  for (u32 i = 0; i < fn->params.count; i++) {
    u32 id = fn->params.data[i];
    map[id] = loop_param(c.to, name_text(&m->names, (Name)loop_node(fn, id)->list), (LoopType)loop_node(fn, id)->type);
  }
  u32 value = 0;
  for (u32 i = 0; i < fn->body.count; i++) {
    u32 v = straight_copy_statement(&c, fn->body.data[i]);
    if (v) value = v;
  }
  if (rare)
    value = loop_emit(c.to, LOOP_SELECT, type, c.rare, loop_const_f(c.to, type, 1), loop_const_f(c.to, type, 0));
  loop_return(c.to, 1, &value);
  if (c.loops) {
    if (why) buf_printf(why, "%s has a loop outside its rare branches", name);
    return WEFT_ERROR;
  }
  if (loop_fn_finish(c.to, why) != WEFT_OK) return WEFT_ERROR;
  return loops_verify(c.to, why);
}

WeftStatus loops_straighten(LoopModule *m, const LoopFn *fn, bool *made, Buf *why) {
  *made = false;
  if (loop_math_is_straight(fn) || holds_loop(fn)) return WEFT_OK;
  size_t bytes = fn->nodes.count * sizeof(u32);
  u32 *map = mem_alloc(m->alloc, bytes);
  if (!map) {
    if (why) buf_puts(why, "out of memory");
    return WEFT_ERROR;
  }
  WeftStatus status = copy_function(m, fn, "_usual", false, map, why);
  if (status == WEFT_OK) status = copy_function(m, fn, "_rare", true, map, why);
  mem_free(m->alloc, map, bytes);
  *made = status == WEFT_OK;
  return status;
}
