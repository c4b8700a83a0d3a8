/* loops_print.c — loop IR as text: what loops_parse reads, with values numbered in program order. */
#include "jit/loops/loops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Printer {
  const LoopFn *fn;
  const Names *names;
  Buf *out;
  u32 *number; /* per node: its %number, 0 = none yet; per index: the suffix of its name */
  u32 next;
} Printer;

/* ---- constants ----------------------------------------------------------------------------- */

static void put_float(Buf *out, bool is64, u64 bits) {
  char text[40];
  f64 v;
  f32 v32 = 0;
  if (is64) {
    memcpy(&v, &bits, 8);
  } else {
    u32 low = (u32)bits;
    memcpy(&v32, &low, 4);
    v = (f64)v32;
  }
  if (isnan(v) || isinf(v)) {
    buf_puts(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) { /* the shortest that reads back */
    snprintf(text, sizeof text, "%.*g", digits, v);
    if (is64 ? strtod(text, NULL) == v : strtof(text, NULL) == v32) break;
  }
  buf_puts(out, text);
  if (!strpbrk(text, ".e")) buf_puts(out, ".0");
}

void loop_print_literal(Buf *out, LoopType type, u64 bits) {
  if (type == LT_I1) buf_puts(out, bits ? "true" : "false");
  else if (loop_is_float(type)) put_float(out, type == LT_F64, bits);
  else if (loop_is_signed(type)) buf_printf(out, "%lld", (long long)bits);
  else buf_printf(out, "%llu", (unsigned long long)bits);
}

static bool print_is_const(const Printer *p, u32 id) { return loop_node(p->fn, id)->op == LOOP_CONST; }

/* ---- names and operands -------------------------------------------------------------------- */

static void put_index_name(Printer *p, u32 id) {
  const LoopNode *n = loop_node(p->fn, id);
  buf_puts(p->out, name_text(p->names, n->list));
  if (p->number[id]) buf_printf(p->out, "_%u", p->number[id]);
}

/* A literal is bare where the reader knows its type: it is `context`, or the one a bare literal has. */
static void print_put(Printer *p, u32 id, LoopType context) {
  const LoopNode *n = loop_node(p->fn, id);
  switch (n->op) {
    case LOOP_CONST:
      loop_print_literal(p->out, (LoopType)n->type, n->imm);
      if (n->type != context && n->type != LT_I1 && (context != LT_VOID || (n->type != LT_I64 && n->type != LT_F64)))
        buf_printf(p->out, ":%s", loop_type_text((LoopType)n->type));
      return;
    case LOOP_PARAM: buf_puts(p->out, name_text(p->names, n->list)); return;
    case LOOP_TABLE: buf_puts(p->out, name_text(p->names, p->fn->module->tables.data[n->a].name)); return;
    case LOOP_INDEX: put_index_name(p, id); return;
    default: buf_printf(p->out, "%%%u", p->number[id]);
  }
}

static void put_list(Printer *p, const u32 *ids, u32 count, const char *sep) {
  for (u32 i = 0; i < count; i++) {
    if (i) buf_puts(p->out, sep);
    print_put(p, ids[i], LT_VOID);
  }
}

/* Operands that share a type: one that is no constant tells it, else the first literal says it. */
static void put_group(Printer *p, const u32 *ids, u32 count) {
  LoopType known = LT_VOID;
  for (u32 i = 0; i < count; i++)
    if (!print_is_const(p, ids[i])) known = loop_type_of(p->fn, ids[i]);
  for (u32 i = 0; i < count; i++) {
    buf_putc(p->out, ' ');
    print_put(p, ids[i], known);
    known = loop_type_of(p->fn, ids[i]);
  }
}

static void put_access(Printer *p, const LoopNode *n) {
  print_put(p, n->a, LT_VOID);
  buf_putc(p->out, '[');
  const LoopTerm *t = loop_terms(p->fn, n);
  bool first = true;
  for (u32 i = 0; i < n->count; i++, first = false) {
    i64 coef = t[i].coef;
    bool negative = coef < 0;
    u64 magnitude = negative ? 0 - (u64)coef : (u64)coef;
    if (first) buf_puts(p->out, negative ? "-" : "");
    else buf_puts(p->out, negative ? " - " : " + ");
    const char *sep = "";
    if (magnitude != 1) buf_printf(p->out, "%llu", (unsigned long long)magnitude), sep = "*";
    u32 ids[3] = {t[i].var, t[i].stride[0], t[i].stride[1]};
    for (u32 k = 0; k < 3; k++) {
      if (!ids[k]) continue;
      buf_puts(p->out, sep);
      print_put(p, ids[k], LT_I64);
      sep = "*";
    }
  }
  i64 constant = (i64)n->imm;
  if (first) buf_printf(p->out, "%lld", (long long)constant);
  else if (constant < 0) buf_printf(p->out, " - %llu", 0 - (unsigned long long)constant);
  else if (constant) buf_printf(p->out, " + %lld", (long long)constant);
  buf_putc(p->out, ']');
}

/* ---- statements ---------------------------------------------------------------------------- */

static void print_define(Printer *p, u32 id) { p->number[id] = p->next++; }

static void put_defined(Printer *p, u32 first, u32 count) {
  for (u32 i = 0; i < count; i++) {
    print_define(p, first + i);
    buf_printf(p->out, "%%%u ", p->number[first + i]);
  }
  if (count) buf_puts(p->out, "= ");
}

static void put_exit_values(Printer *p, const u32 *ids, u32 count) {
  if (!count) return;
  buf_puts(p->out, " (");
  put_list(p, ids, count, ", ");
  buf_putc(p->out, ')');
}

/* Gives an index a name that nothing visible has. Only parameters and indices have plain names. */
static void name_index(Printer *p, u32 id, const u32 *open, u32 depth) {
  const LoopFn *fn = p->fn;
  LoopNode *n = &fn->nodes.data[id];
  const char *base = name_text(p->names, n->list);
  for (u32 suffix = 0;; suffix++) {
    char wanted[300], other[300];
    snprintf(wanted, sizeof wanted, suffix ? "%s_%u" : "%s", base, suffix);
    bool taken = false;
    for (u32 i = 0; i < fn->params.count; i++)
      taken |= strcmp(name_text(p->names, loop_node(fn, fn->params.data[i])->list), wanted) == 0;
    for (u32 i = 0; i < fn->module->tables.count; i++)
      taken |= i && strcmp(name_text(p->names, fn->module->tables.data[i].name), wanted) == 0;
    for (u32 d = 0; d < depth; d++) {
      const LoopNode *h = loop_node(fn, open[d]);
      for (u32 axis = 0; axis < h->a && loop_index_of(open[d], axis) < id; axis++) {
        u32 index = loop_index_of(open[d], axis);
        const LoopNode *x = loop_node(fn, index);
        snprintf(other, sizeof other, p->number[index] ? "%s_%u" : "%s", name_text(p->names, x->list),
                 p->number[index]);
        taken |= strcmp(other, wanted) == 0;
      }
    }
    if (taken) continue;
    p->number[id] = suffix;
    return;
  }
}

static void print_put_head(Printer *p, u32 id, const u32 *open, u32 depth) {
  const LoopFn *fn = p->fn;
  const LoopNode *n = loop_node(fn, id);
  Buf *out = p->out;
  put_defined(p, loop_result_of(fn, id, 0), n->c);
  buf_puts(out, loop_op_text((LoopOp)n->op));
  if (n->op == LOOP_IF) {
    buf_putc(out, ' ');
    print_put(p, loop_cond_of(fn, id), LT_I1);
    for (u32 i = 0; i < n->c; i++)
      buf_printf(out, "%s%s", i ? ", " : " -> (", loop_type_text(loop_type_of(fn, loop_result_of(fn, id, i))));
    buf_puts(out, n->c ? ") {" : " {");
    return;
  }
  if (n->op == LOOP_REDUCE || n->op == LOOP_SCAN) {
    buf_printf(out, " %s %s", loop_reduce_text((LoopReduce)n->aux),
               loop_type_text(loop_type_of(fn, loop_result_of(fn, id, 0))));
    if (n->mem == LOOP_ORDER_ROWS) buf_puts(out, " rows");
  }
  for (u32 axis = 0; axis < n->a; axis++) {
    u32 index = loop_index_of(id, axis);
    name_index(p, index, open, depth);
    buf_puts(out, axis ? ", " : " ");
    put_index_name(p, index);
    buf_puts(out, " in 0..");
    print_put(p, loop_trips_of(fn, id, axis), LT_VOID);
  }
  if (n->op == LOOP_PAR && n->imm) buf_printf(out, " grain %llu", (unsigned long long)n->imm);
  for (u32 i = 0; i < n->b; i++) {
    u32 carry = loop_carry_of(fn, id, i);
    print_define(p, carry);
    buf_printf(out, "%s%%%u: %s = ", i ? ", " : " (", p->number[carry], loop_type_text(loop_type_of(fn, carry)));
    print_put(p, loop_init_of(fn, id, i), loop_type_of(fn, carry));
  }
  buf_puts(out, n->b ? ") {" : " {");
}

static void put_term(Printer *p, const LoopNode *n) {
  const LoopFn *fn = p->fn;
  buf_puts(p->out, loop_op_text((LoopOp)n->op));
  for (u32 i = 0; i < n->count; i++) {
    LoopType t = n->op == LOOP_RETURN ? (i < fn->results.count ? (LoopType)fn->results.data[i] : LT_VOID)
                                      : loop_type_of(fn, loop_result_of(fn, n->a, i));
    buf_putc(p->out, ' ');
    print_put(p, loop_list(fn, n)[i], t);
  }
}

static void print_put_call(Printer *p, u32 id, const LoopNode *n) {
  const LoopFn *fn = p->fn;
  const char *name = name_text(p->names, (Name)n->imm);
  const LoopFn *callee = loop_module_find(fn->module, name);
  put_defined(p, loop_result_of(fn, id, 0), n->b);
  buf_printf(p->out, "call %s (", name);
  for (u32 i = 0; i < n->a; i++) {
    LoopType t = callee && i < callee->params.count ? loop_type_of(callee, callee->params.data[i]) : LT_VOID;
    if (i) buf_puts(p->out, ", ");
    print_put(p, loop_list(fn, n)[i], t);
  }
  buf_printf(p->out, ") #%u", n->c);
  put_exit_values(p, loop_list(fn, n) + n->a, n->count - n->a);
}

static void put_value(Printer *p, u32 id, const LoopNode *n) {
  u32 operands[3] = {n->a, n->b, n->c};
  print_define(p, id);
  buf_printf(p->out, "%%%u = %s", p->number[id], loop_op_text((LoopOp)n->op));
  switch (loop_op_form((LoopOp)n->op)) {
    case LOOP_FORM_SELECT:
      buf_putc(p->out, ' ');
      print_put(p, n->a, LT_I1);
      put_group(p, operands + 1, 2);
      return;
    case LOOP_FORM_CONVERT:
      buf_printf(p->out, " %s", loop_type_text((LoopType)n->type));
      put_group(p, operands, 1);
      return;
    case LOOP_FORM_ACCESS:
      buf_putc(p->out, ' ');
      put_access(p, n);
      buf_printf(p->out, " %s", loop_type_text((LoopType)n->mem));
      return;
    case LOOP_FORM_MATH: buf_printf(p->out, " %s", name_text(p->names, (Name)n->imm)); break;
    default: break;
  }
  put_group(p, operands, n->c ? 3 : n->b ? 2 : 1);
}

static void print_put_statement(Printer *p, u32 id, const u32 *open, u32 depth) {
  const LoopFn *fn = p->fn;
  const LoopNode *n = loop_node(fn, id);
  const u32 *list = fn->list.data + (n->op == LOOP_STORE || n->op == LOOP_LOAD ? 0 : n->list);
  switch (loop_op_form((LoopOp)n->op)) {
    case LOOP_FORM_HEAD: print_put_head(p, id, open, depth); return;
    case LOOP_FORM_TERM: put_term(p, n); return;
    case LOOP_FORM_CALL: print_put_call(p, id, n); return;
    case LOOP_FORM_EXIT:
      buf_printf(p->out, "%s #%u", loop_op_text((LoopOp)n->op), (u32)n->imm);
      put_exit_values(p, list, n->count);
      return;
    case LOOP_FORM_CHECK: {
      u32 operands[2] = {n->a, n->b};
      buf_printf(p->out, "check %s", loop_check_text((LoopCheck)n->aux));
      put_group(p, operands, n->b ? 2 : 1);
      buf_printf(p->out, " #%u", (u32)n->imm);
      put_exit_values(p, list, n->count);
      return;
    }
    case LOOP_FORM_ACCESS:
      if (n->op == LOOP_LOAD) break;
      buf_puts(p->out, "store ");
      put_access(p, n);
      buf_putc(p->out, ' ');
      print_put(p, n->b, loop_value_type((LoopType)n->mem));
      return;
    default: break;
  }
  put_value(p, id, n);
}

static void print_put_signature(Printer *p) {
  static const char *const dirs[] = {"", "in ", "out ", "inout "};
  const LoopFn *fn = p->fn;
  Buf *out = p->out;
  if (fn->is_extern) buf_puts(out, "extern ");
  buf_puts(out, fn->kind == LOOP_KERNEL ? "kernel " : fn->kind == LOOP_NATIVE ? "native " : "math ");
  buf_puts(out, name_text(p->names, fn->name));
  if (fn->kind == LOOP_MATH_FN) buf_printf(out, " %s", loop_type_text(fn->math_type));
  buf_puts(out, " (");
  for (u32 i = 0; i < fn->params.count; i++) {
    const LoopNode *n = loop_node(fn, fn->params.data[i]);
    bool buffer = n->type == LT_PTR;
    buf_printf(out, "%s%s: %s%s", i ? ", " : "", name_text(p->names, n->list), buffer ? dirs[n->aux & 3] : "",
      loop_type_text((LoopType)(buffer ? n->mem : n->type)));
  }
  buf_putc(out, ')');
  if (fn->kind == LOOP_MATH_FN) buf_printf(out, " -> %s", loop_type_text(fn->math_type));
  else if (fn->results.count) {
    for (u32 i = 0; i < fn->results.count; i++)
      buf_printf(out, "%s%s", i ? ", " : " -> (", loop_type_text((LoopType)fn->results.data[i]));
    buf_putc(out, ')');
  }
}

void loops_print(const LoopFn *fn, Buf *out) {
  Allocator *alloc = fn->module->alloc;
  Printer p = {fn, &fn->module->names, out, mem_alloc_zero(alloc, sizeof(u32) * fn->nodes.count), 1};
  VEC(u32) open = {0};
  if (!p.number) goto refused;
  print_put_signature(&p);
  if (fn->is_extern) {
    buf_putc(out, '\n');
    goto done;
  }
  buf_puts(out, " {\n");
  for (u32 at = 0; at < fn->body.count; at++) {
    u32 id = fn->body.data[at];
    const LoopNode *n = loop_node(fn, id);
    if (loop_is_head(n) && !vec_push(alloc, &open, id)) goto refused;
    bool mark = n->op == LOOP_END || n->op == LOOP_ELSE;
    u32 indent = open.count + (mark || loop_is_head(n) ? 0 : 1);
    for (u32 i = 0; i < indent; i++) buf_puts(out, "  ");
    if (n->op == LOOP_END) open.count--;
    if (mark) buf_puts(out, n->op == LOOP_END ? "}" : "} else {");
    else print_put_statement(&p, id, open.data, open.count);
    buf_putc(out, '\n');
  }
  buf_puts(out, "}\n");
  goto done;
refused:
  out->failed = true;
done:
  vec_free(alloc, &open);
  mem_free(alloc, p.number, sizeof(u32) * fn->nodes.count);
}

void loops_print_module(const LoopModule *m, Buf *out) {
  for (u32 i = 1; i < m->tables.count; i++) {
    const LoopTable *t = &m->tables.data[i];
    buf_printf(out, "table %s %s [", name_text(&m->names, t->name), loop_type_text(t->type));
    for (u32 k = 0; k < t->count; k++) {
      if (k) buf_puts(out, k % 8 ? ", " : ",\n  ");
      loop_print_literal(out, t->type, t->bits[k]);
    }
    buf_puts(out, "]\n");
  }
  for (u32 i = 0; i < m->fns.count; i++) loops_print(m->fns.data[i], out);
}
