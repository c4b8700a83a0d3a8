/* ptx_emit.c — registers, operands and lines of PTX (see ptx_writer.h). */
#include "gpu/ptx_writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The prefix of a register never makes a special register's name: a number follows it. */
static const char *const reg_prefix[REG_KINDS] = {"", "p", "h", "r", "rd", "f", "d"};

RegKind ptx_kind_of(LoopType t) {
  switch (t) {
    case LT_I1: return REG_P;
    case LT_U8:
    case LT_I32:
    case LT_U32: return REG_R;
    case LT_F32: return REG_F;
    case LT_F64: return REG_D;
    default: return REG_RD;
  }
}

const char *ptx_type(LoopType t) {
  switch (t) {
    case LT_I1: return "pred";
    case LT_I32: return "s32";
    case LT_U8:
    case LT_U32: return "u32";
    case LT_I64: return "s64";
    case LT_F32: return "f32";
    case LT_F64: return "f64";
    default: return "u64";
  }
}

Opnd ptx_new(PtxWriter *w, RegKind kind) { return (Opnd){.kind = (u8)kind, .n = ++w->regs[kind]}; }
Opnd ptx_new_for(PtxWriter *w, LoopType t) { return ptx_new(w, ptx_kind_of(t)); }
Opnd ptx_const(LoopType t, u64 bits) { return (Opnd){.type = (u8)t, .bits = bits}; }

OpndText ptx_text(Opnd v) {
  OpndText t;
  if (v.kind != REG_NONE) snprintf(t.s, sizeof t.s, "%%%s%u", reg_prefix[v.kind], v.n);
  else if (v.type == LT_F64) snprintf(t.s, sizeof t.s, "0d%016llX", (unsigned long long)v.bits);
  else if (v.type == LT_F32) snprintf(t.s, sizeof t.s, "0f%08X", (u32)v.bits);
  else if (v.type == LT_U64) snprintf(t.s, sizeof t.s, "0x%llX", (unsigned long long)v.bits);
  else if (v.type == LT_I64 && v.bits == (u64)INT64_MIN) snprintf(t.s, sizeof t.s, "0x8000000000000000");
  else snprintf(t.s, sizeof t.s, "%lld", (long long)v.bits);
  return t;
}

static void indent(PtxWriter *w) {
  for (u32 i = 0; i <= w->depth; i++) buf_puts(&w->body, "  ");
}

void ptx_line(PtxWriter *w, const char *fmt, ...) {
  va_list ap;
  indent(w);
  va_start(ap, fmt);
  buf_vprintf(&w->body, fmt, ap);
  va_end(ap);
  buf_putc(&w->body, '\n');
}

void ptx_label(PtxWriter *w, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  buf_vprintf(&w->body, fmt, ap);
  va_end(ap);
  buf_puts(&w->body, ":\n");
}

void ptx_refuse(PtxWriter *w, const char *fmt, ...) {
  if (w->refused) return;
  w->refused = true;
  if (!w->why) return;
  va_list ap;
  buf_printf(w->why, "kernel %s: not supported on a GPU: ", w->name);
  va_start(ap, fmt);
  buf_vprintf(w->why, fmt, ap);
  va_end(ap);
}

void ptx_ins(PtxWriter *w, const char *name, const Opnd *ops, u32 count) {
  indent(w);
  buf_puts(&w->body, name);
  for (u32 i = 0; i < count; i++) buf_printf(&w->body, "%s %s", i ? "," : "", ptx_text(ops[i]).s);
  buf_puts(&w->body, ";\n");
}

void ptx_ins_of(PtxWriter *w, const char *name, LoopType t, const Opnd *ops, u32 count) {
  char text[48];
  snprintf(text, sizeof text, "%s.%s", name, ptx_type(t));
  ptx_ins(w, text, ops, count);
}

Opnd ptx_in_register(PtxWriter *w, Opnd v) {
  if (v.kind != REG_NONE) return v;
  Opnd r = ptx_new_for(w, (LoopType)v.type);
  ptx_move(w, (LoopType)v.type, r, v);
  return r;
}

void ptx_move(PtxWriter *w, LoopType t, Opnd to, Opnd from) {
  if (t == LT_I1 && from.kind == REG_NONE) {
    ptx_line(w, "setp.ne.u32 %s, %u, 0;", ptx_text(to).s, (u32)(from.bits & 1)); /* predicates have no literals */
    return;
  }
  INS_T(w, "mov", t, to, from);
}

void ptx_shared_load(PtxWriter *w, LoopType t, Opnd to, Opnd at) {
  ptx_line(w, "ld.shared.%s %s, [%s];", ptx_type(t), ptx_text(to).s, ptx_text(at).s);
}

Opnd ptx_shared_word(PtxWriter *w, LoopType t, Opnd at) {
  Opnd v = ptx_new_for(w, t);
  ptx_shared_load(w, t, v, at);
  return v;
}

void ptx_shared_store(PtxWriter *w, LoopType t, Opnd at, Opnd v) {
  ptx_line(w, "st.shared.%s [%s], %s;", ptx_type(t), ptx_text(at).s, ptx_text(v).s);
}

void ptx_shared_store_where(PtxWriter *w, Opnd p, LoopType t, Opnd at, Opnd v) {
  ptx_line(w, "@%s st.shared.%s [%s], %s;", ptx_text(p).s, ptx_type(t), ptx_text(at).s, ptx_text(v).s);
}

Opnd ptx_parameter(PtxWriter *w, const char *type, u32 number, RegKind kind) {
  Opnd v = ptx_new(w, kind);
  ptx_line(w, "ld.param.%s %s, [a%u];", type, ptx_text(v).s, w->first_param + number);
  return v;
}

Opnd ptx_bits(PtxWriter *w, Opnd v, u32 shift, u32 mask) {
  Opnd r = ptx_new(w, REG_R);
  if (shift) INS(w, "shr.u32", r, v, ptx_u32(shift));
  INS(w, "and.b32", r, shift ? r : v, ptx_u32(mask));
  return r;
}

Opnd ptx_value(PtxWriter *w, u32 id) {
  const LoopNode *n = ptx_node(w, id);
  if (n->op == LOOP_CONST) {
    Opnd c = ptx_const((LoopType)n->type, n->imm);
    return n->type == LT_I1 ? ptx_in_register(w, c) : c;
  }
  Opnd v = w->f->values[id];
  if (v.kind == REG_NONE && v.type == LT_VOID) ptx_refuse(w, "a value that has none (%s)", loop_op_text((LoopOp)n->op));
  return v;
}

Opnd ptx_define(PtxWriter *w, u32 id) {
  Opnd *v = &w->f->values[id];
  if (v->kind == REG_NONE) *v = ptx_new_for(w, loop_type_of(w->f->fn, id));
  return *v;
}

bool ptx_copies_begin(PtxWriter *w, u32 count, Opnd **values) {
  size_t bytes = sizeof(Opnd) * (w->f->fn->nodes.count + 1);
  memset(values, 0, sizeof *values * count);
  for (u32 c = 0; c < count && !w->failed; c++) {
    if (!(values[c] = mem_alloc(w->alloc, bytes))) w->failed = true;
    else memcpy(values[c], w->f->values, bytes);
  }
  return !w->failed;
}

void ptx_copies_end(PtxWriter *w, u32 count, Opnd *const *values, Opnd *own) {
  w->f->values = own;
  for (u32 c = 0; c < count; c++) mem_free(w->alloc, values[c], sizeof(Opnd) * (w->f->fn->nodes.count + 1));
}

/* ---- functions of the module ------------------------------------------------------------------------------------ */

void ptx_put_registers(const PtxWriter *w, Buf *out) {
  static const char *const declared[REG_KINDS] = {"", ".pred  %p", ".b16   %h", ".b32   %r", ".b64   %rd", ".f32   %f",
                                                  ".f64   %d"};
  for (u32 k = REG_P; k < REG_KINDS; k++)
    if (w->regs[k]) buf_printf(out, "  .reg %s<%u>;\n", declared[k], w->regs[k] + 1);
}

bool ptx_function_begin(PtxWriter *w, PtxAside *a, u64 key, LoopType t, u32 params) {
  for (u32 i = 0; i < w->called.count; i++)
    if (w->called.data[i] == key) return false;
  if (!vec_push(w->alloc, &w->called, key)) w->failed = true;
  *a = (PtxAside){.body = w->body, .labels = w->labels, .depth = w->depth};
  memcpy(a->regs, w->regs, sizeof a->regs);
  memset(w->regs, 0, sizeof w->regs);
  buf_init(&w->body, w->alloc);
  w->labels = w->depth = 0;
  for (u32 i = 0; i < params && i < COUNT_OF(a->params); i++) {
    a->params[i] = ptx_new_for(w, t);
    ptx_line(w, "ld.param.%s %s, [a%u];", ptx_type(t), ptx_text(a->params[i]).s, i);
  }
  return true;
}

void ptx_function_end(PtxWriter *w, PtxAside *a, const char *name, LoopType t, u32 params, Opnd result) {
  Buf *out = &w->functions;
  const char *type = ptx_type(t);
  ptx_line(w, "st.param.%s [result], %s;", type, ptx_text(result).s);
  ptx_line(w, "ret;");
  buf_printf(out, "\n.func (.param .%s result) %s (", type, name);
  for (u32 i = 0; i < params; i++) buf_printf(out, "%s.param .%s a%u", i ? ", " : "", type, i);
  buf_puts(out, ") {\n");
  ptx_put_registers(w, out);
  buf_put(out, w->body.data, w->body.len);
  buf_puts(out, "}\n");
  w->failed |= w->body.failed;
  buf_free(&w->body);
  w->body = a->body;
  memcpy(w->regs, a->regs, sizeof w->regs);
  w->labels = a->labels;
  w->depth = a->depth;
}

void ptx_call(PtxWriter *w, const char *name, LoopType t, const Opnd *params, u32 count, Opnd result) {
  const char *type = ptx_type(t);
  ptx_line(w, "{");
  w->depth++;
  ptx_line(w, ".param .%s y;", type);
  for (u32 i = 0; i < count; i++) {
    ptx_line(w, ".param .%s x%u;", type, i);
    ptx_line(w, "st.param.%s [x%u], %s;", type, i, ptx_text(params[i]).s);
  }
  ptx_line(w, "call (y), %s, (%s);", name, count == 1 ? "x0" : count == 2 ? "x0, x1" : "x0, x1, x2");
  ptx_line(w, "ld.param.%s %s, [y];", type, ptx_text(result).s);
  w->depth--;
  ptx_line(w, "}");
}

WeftStatus ptx_one_entry(PtxWriter *w, const char *comment, const char *entry, u32 params, u32 shared, Buf *out) {
  buf_puts(out, w->tensor ? ".version 7.0\n.target sm_80\n" : ".version 6.4\n.target sm_70\n");
  buf_puts(out, shared ? ".address_size 64\n" : ".address_size 64\n.extern .shared .align 16 .b8 rows[];\n");
  buf_printf(out, "\n// %s\n.visible .entry %s (\n", comment, entry);
  for (u32 i = 0; i < params; i++) buf_printf(out, "  .param .u64 a%u%s\n", i, i + 1 < params ? "," : "");
  buf_puts(out, ") {\n");
  ptx_put_registers(w, out);
  if (shared) buf_printf(out, "  .shared .align 16 .b8 tile[%u];\n", shared);
  buf_put(out, w->body.data, w->body.len);
  buf_puts(out, "}\n");
  bool ok = !w->failed && !w->body.failed && !out->failed;
  buf_free(&w->body);
  return ok ? WEFT_OK : WEFT_ERROR;
}
