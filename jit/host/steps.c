/* steps.c — build tool: math functions as bytes for the interpreter of jit/loops/math_steps.h, which says what they mean. */
#include "jit/host/steps.h"

#include "jit/loops/math_steps.h"

#include <string.h>

enum { MOST_STEPS = 256, MOST_CODE = 1 << 16, MOST_CONSTS = (256 - WM_CONST) << 8, MOST_NODES = 4096, MOST_OPEN = 8 };

typedef struct Open { /* a head that is not closed yet */
  u32 head, start, next; /* where its body begins; the slot that is next behind it */
  u32 to_else, to_end[MOST_OPEN], ends; /* places to fill in */
} Open;

typedef struct Steps {
  const LoopModule *m;
  const LoopFn *fn;
  u32 count; /* functions */
  WmStep steps[MOST_STEPS];
  u8 code[MOST_CODE];
  u64 consts[MOST_CONSTS];
  u32 step_count, len, const_count, next;
  u32 slots[MOST_NODES]; /* of a node */
  u32 tables[64];        /* first constant of each table */
  Open open[MOST_OPEN];
  u32 depth;
  const char *failed;
} Steps;

static void put(Steps *s, u32 byte) {
  if (s->len >= MOST_CODE || byte > 255) s->failed = "does not fit";
  else s->code[s->len++] = (u8)byte;
}

static void put_place(Steps *s, u32 at) {
  put(s, at & 255);
  put(s, at >> 8);
}

static void fill_place(Steps *s, u32 at) {
  s->code[at] = (u8)s->len;
  s->code[at + 1] = (u8)(s->len >> 8);
}

static void put_step(Steps *s, u32 op, u32 type, u32 from, u32 reads) {
  const WmStep step = {(u8)op, (u8)type, (u8)from, (u8)reads};
  u32 i = 0;
  while (i < s->step_count && memcmp(&s->steps[i], &step, sizeof step) != 0) i++;
  if (i == MOST_STEPS) s->failed = "too many kinds of steps";
  else s->steps[i] = step;
  if (i == s->step_count) s->step_count++;
  put(s, i);
}

static u32 new_slot(Steps *s, u32 id) {
  if (s->next >= WM_SLOTS || id >= MOST_NODES) s->failed = "too many values";
  else s->slots[id] = s->next;
  return s->next++;
}

static u32 constant(Steps *s, u64 bits) {
  u32 i = 0;
  while (i < s->const_count && s->consts[i] != bits) i++;
  if (i == MOST_CONSTS) s->failed = "too many constants";
  else if (i == s->const_count) s->consts[s->const_count++] = bits;
  return i;
}

static void put_operand(Steps *s, u32 id) {
  const LoopNode *n = loop_node(s->fn, id);
  if (n->op != LOOP_CONST) {
    put(s, s->slots[id]);
    return;
  }
  u32 i = constant(s, n->imm);
  put(s, WM_CONST + (i >> 8));
  put(s, i & 255);
}

static void put_move(Steps *s, u32 slot, u32 id) {
  put_step(s, LOOP_YIELD, LT_VOID, LT_VOID, 1);
  put(s, slot);
  put_operand(s, id);
}

static void put_next_slot(Steps *s, u32 slot) {
  put_step(s, LOOP_END, LT_VOID, LT_VOID, 0);
  put(s, slot);
  s->next = slot;
}

/* A jump whose place is filled in where the head ends. */
static void put_leave(Steps *s, Open *o) {
  put_step(s, LOOP_NEXT, LT_VOID, LT_VOID, 0);
  if (o->ends == MOST_OPEN) s->failed = "too many ways out";
  else o->to_end[o->ends++] = s->len;
  put_place(s, 0);
}

static void put_head(Steps *s, u32 id, const LoopNode *n) {
  if (s->depth == MOST_OPEN || (n->op != LOOP_IF && n->op != LOOP_WHILE)) {
    s->failed = "this nesting has no step";
    return;
  }
  Open *o = &s->open[s->depth++];
  *o = (Open){.head = id};
  if (n->op == LOOP_IF) {
    put_step(s, LOOP_IF, LT_VOID, LT_VOID, 1);
    put_operand(s, loop_cond_of(s->fn, id));
    o->to_else = s->len;
    put_place(s, 0);
  }
  for (u32 i = 0; i < n->b; i++) put_move(s, new_slot(s, loop_carry_of(s->fn, id, i)), loop_init_of(s->fn, id, i));
  for (u32 i = 0; i < n->c; i++) new_slot(s, loop_result_of(s->fn, id, i));
  o->next = s->next;
  o->start = s->len;
  put_next_slot(s, s->next);
}

static void put_mark(Steps *s, const LoopNode *n) {
  Open *o = &s->open[s->depth - 1];
  if (n->op == LOOP_ELSE) {
    put_leave(s, o);
    fill_place(s, o->to_else);
    o->to_else = 0;
  } else {
    if (o->to_else) fill_place(s, o->to_else);
    for (u32 i = 0; i < o->ends; i++) fill_place(s, o->to_end[i]);
    s->depth--;
  }
  put_next_slot(s, o->next);
}

static void put_terminator(Steps *s, const LoopNode *n) {
  const u32 *values = loop_list(s->fn, n);
  if (n->op == LOOP_RETURN) {
    put_step(s, LOOP_RETURN, LT_VOID, LT_VOID, 1);
    put_operand(s, values[0]);
    return;
  }
  u32 d = s->depth;
  while (d > 0 && s->open[d - 1].head != n->a) d--;
  if (!d || n->count > 1) { /* several would have to be read before the first is written */
    s->failed = "these values have no step";
    return;
  }
  Open *o = &s->open[d - 1];
  bool again = n->op == LOOP_NEXT;
  for (u32 i = 0; i < n->count; i++) put_move(s, s->slots[again ? loop_carry_of(s->fn, n->a, i) : loop_result_of(s->fn, n->a, i)], values[i]);
  if (n->op == LOOP_BREAK) put_leave(s, o);
  if (!again) return;
  put_step(s, LOOP_NEXT, LT_VOID, LT_VOID, 0);
  put_place(s, o->start);
}

static void put_node(Steps *s, u32 id) {
  const LoopNode *n = loop_node(s->fn, id);
  const u32 operands[] = {n->a, n->b, n->c};
  u32 reads = 0;
  switch (loop_op_form((LoopOp)n->op)) {
    case LOOP_FORM_HEAD: put_head(s, id, n); return;
    case LOOP_FORM_MARK: put_mark(s, n); return;
    case LOOP_FORM_TERM: put_terminator(s, n); return;
    case LOOP_FORM_ACCESS: {
      const LoopTerm *t = loop_terms(s->fn, n);
      if (n->op != LOOP_LOAD || loop_node(s->fn, n->a)->op != LOOP_TABLE || n->count != 1 || t->coef != 1 || t->stride[0]) s->failed = "this access has no step";
      if (s->failed) return;
      put_step(s, LOOP_LOAD, LT_VOID, LT_VOID, 1);
      put_place(s, s->tables[loop_node(s->fn, n->a)->a] + (u32)n->imm);
      put_operand(s, t->var);
      break;
    }
    case LOOP_FORM_MATH: {
      const LoopFn *callee = loop_module_find_math(s->m, name_text(&s->m->names, (Name)n->imm), (LoopType)n->type);
      u32 i = 0;
      while (i < s->count && s->m->fns.data[i] != callee) i++;
      while (reads < 3 && operands[reads]) reads++;
      put_step(s, LOOP_MATH, LT_VOID, LT_VOID, reads);
      put(s, i < s->count ? i : 256);
      for (u32 k = 0; k < reads; k++) put_operand(s, operands[k]);
      break;
    }
    default:
      while (reads < 3 && operands[reads]) reads++;
      put_step(s, n->op, n->type, loop_type_of(s->fn, n->a), reads);
      for (u32 k = 0; k < reads; k++) put_operand(s, operands[k]);
  }
  new_slot(s, id);
}

const char *steps_write(const LoopModule *m, u32 count, Buf *out) {
  static Steps all; /* large; a tool writes once */
  Steps *s = &all;
  s->m = m;
  s->count = count;
  if (m->tables.count > COUNT_OF(s->tables)) return "too many tables";
  for (u32 t = 0; t < m->tables.count; t++) { /* elements of a table stand side by side */
    const LoopTable *table = &m->tables.data[t];
    s->tables[t] = s->const_count;
    if (s->const_count + table->count > MOST_CONSTS) return "too many constants";
    for (u32 i = 0; i < table->count; i++) s->consts[s->const_count++] = table->bits[i];
  }
  buf_puts(out, "const u16 wm_starts[] = {");
  for (u32 f = 0; f < count; f++) {
    s->fn = m->fns.data[f];
    s->next = s->depth = 0;
    buf_printf(out, "%u, ", s->len);
    put(s, s->fn->params.count);
    for (u32 i = 0; i < s->fn->params.count; i++) new_slot(s, s->fn->params.data[i]);
    for (u32 i = 0; i < s->fn->body.count && !s->failed; i++) put_node(s, s->fn->body.data[i]);
    if (s->failed) return s->failed;
  }
  buf_puts(out, "};\nconst WmStep wm_steps[] = {");
  for (u32 i = 0; i < s->step_count; i++) buf_printf(out, "{%u, %u, %u, %u}, ", s->steps[i].op, s->steps[i].type, s->steps[i].from, s->steps[i].reads);
  buf_puts(out, "};\nconst u8 wm_code[] = {");
  for (u32 i = 0; i < s->len; i++) buf_printf(out, "%u,%s", s->code[i], i % 32 == 31 ? "\n" : "");
  buf_puts(out, "};\nconst u64 wm_consts[] = {");
  for (u32 i = 0; i < s->const_count; i++) buf_printf(out, "0x%llx,%s", (unsigned long long)s->consts[i], i % 8 == 7 ? "\n" : "");
  buf_puts(out, "};\n");
  return NULL;
}
