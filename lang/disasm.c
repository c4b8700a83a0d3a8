/* disasm.c — prints compiled functions: `0004  mul  r2 r0* k1(2.5)   ; 3:12-17`. */
#include "lang/compile.h"

#include "lang/ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Printer {
  const Proto *p;
  const Names *names;
  const Sources *sources;
  const ModuleScope *scope;
  Buf *out;
} Printer;

/* ---- operands ----------------------------------------------------------------------------------------- */

static void put_quoted(Buf *out, const char *s, u32 len) {
  buf_putc(out, '"');
  for (u32 i = 0; i < len; i++) {
    u8 c = (u8)s[i];
    if (c == '"' || c == '\\') buf_printf(out, "\\%c", c);
    else if (c == '\n') buf_puts(out, "\\n");
    else if (c < 32 || c == 127) buf_printf(out, "\\x%02x", c);
    else buf_putc(out, (char)c);
  }
  buf_putc(out, '"');
}

/* The shortest digits that read back, always with a point or an exponent. */
static void put_float(Buf *out, f64 f) {
  char text[40];
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, f);
    if (strtod(text, NULL) == f) break; /* in the same locale */
  }
  number_point(text);
  buf_puts(out, text);
  if (isfinite(f) && !strpbrk(text, ".e")) buf_puts(out, ".0");
}

static void disasm_put_const(Buf *out, const Const *k) {
  switch (k->kind) {
  case CK_NIL: buf_puts(out, "nil"); break;
  case CK_BOOL: buf_puts(out, k->i ? "true" : "false"); break;
  case CK_INT: buf_printf(out, "%lld", (long long)k->i); break;
  case CK_U64: buf_printf(out, "%llu", (unsigned long long)k->i); break;
  case CK_FLOAT: put_float(out, k->f); break;
  case CK_IMAG:
    put_float(out, k->f);
    buf_putc(out, 'j');
    break;
  case CK_TEXT: put_quoted(out, k->text, k->len); break;
  case CK_BUILTIN: buf_puts(out, op_name((u32)k->i)); break;
  case CK_DTYPE: buf_puts(out, dtype_name((u32)k->i)); break;
  case CK_MODULE: buf_puts(out, op_modules[k->i]); break;
  default: buf_puts(out, "hole");
  }
}

static void put_constant(const Printer *pr, u32 id) {
  buf_printf(pr->out, "k%u(", id);
  if (id < pr->p->nconsts) disasm_put_const(pr->out, &pr->p->consts[id]);
  buf_putc(pr->out, ')');
}

static void put_operand(const Printer *pr, u32 r, bool dies) {
  if (r & INS_CONST) put_constant(pr, r & ~(u32)INS_CONST);
  else buf_printf(pr->out, "r%u%s", r, dies ? "*" : "");
}

static void put_registers(const Printer *pr, u32 first, u32 count, const char *mark) {
  if (count == 1) buf_printf(pr->out, " r%u%s", first, mark);
  else if (count) buf_printf(pr->out, " r%u..r%u%s", first, first + count - 1, mark);
}

static const char *disasm_text_of(const Printer *pr, Name name) { return name_text(pr->names, name); }

static void put_slot(const Printer *pr, u32 slot) {
  if (pr->scope && slot < pr->scope->slots.count) buf_puts(pr->out, disasm_text_of(pr, pr->scope->slots.data[slot]));
  else buf_printf(pr->out, "m%u", slot);
}

/* ---- descriptors ---------------------------------------------------------------------------------------- */

static void put_items(const Printer *pr, const u8 *items, u32 count) {
  static const char *const marks[] = {"_", "_:_:_", "nil", "..."};
  buf_putc(pr->out, '[');
  for (u32 i = 0; i < count; i++) buf_printf(pr->out, "%s%s", i ? ", " : "", marks[items[i]]);
  buf_putc(pr->out, ']');
}

static void put_path(const Printer *pr, const Desc *d) {
  Buf *out = pr->out;
  for (u32 i = 0; i < d->step_count; i++) {
    const PathStep *s = &d->steps[i];
    if (s->kind == STEP_FIELD) buf_printf(out, ".%s", disasm_text_of(pr, s->field));
    else put_items(pr, d->items + s->item_first, s->item_count);
  }
  if (d->op != BC_move) buf_printf(out, " %s=", bc_info[d->op].name);
}

static void put_annotation(const Printer *pr, const Desc *d) {
  Buf *out = pr->out;
  buf_printf(out, "%s: %s", d->param ? disasm_text_of(pr, d->param) : "_", disasm_text_of(pr, d->type_name));
  if (!d->has_dims) return;
  buf_putc(out, '[');
  for (u32 i = 0; i < d->rank; i++) {
    if (i) buf_puts(out, ", ");
    if (d->dim_consts[i] >= 0) buf_printf(out, "%lld", (long long)d->dim_consts[i]);
    else if (d->dim_consts[i] == -2) buf_putc(out, '_');
    else buf_printf(out, "%s%sr%u", disasm_text_of(pr, d->dim_names[i]), d->dim_binds[i] ? "->" : "==", d->dim_regs[i]);
  }
  buf_putc(out, ']');
}

static void disasm_put_desc(const Printer *pr, const Desc *d) {
  Buf *out = pr->out;
  buf_putc(out, ' ');
  switch (d->kind) {
  case DESC_NAME: buf_printf(out, ".%s", disasm_text_of(pr, d->name)); break;
  case DESC_KEYS:
    buf_putc(out, '{');
    for (u32 i = 0; i < d->name_count; i++) buf_printf(out, "%s%s", i ? ", " : "", disasm_text_of(pr, d->names[i]));
    buf_putc(out, '}');
    break;
  case DESC_CALL:
    buf_putc(out, '(');
    for (u32 i = 0; i < d->argc; i++) {
      if (i) buf_puts(out, ", ");
      if (d->names[i]) buf_printf(out, "%s=", disasm_text_of(pr, d->names[i]));
      buf_puts(out, d->spread[i] ? "..._" : "_");
    }
    buf_putc(out, ')');
    break;
  case DESC_INDEX: put_items(pr, d->items, d->item_count); break;
  case DESC_PATH: put_path(pr, d); break;
  case DESC_UNPACK:
    if (d->names || d->name_count) {
      buf_putc(out, '{');
      for (u32 i = 0; i < d->name_count; i++) buf_printf(out, "%s%s", i ? ", " : "", disasm_text_of(pr, d->names[i]));
      buf_puts(out, d->has_rest ? ", ...}" : "}");
    } else {
      buf_printf(out, d->has_rest ? "(%u, ..., %u)" : "(%u)", d->before, d->after);
    }
    break;
  default: put_annotation(pr, d);
  }
}

/* ---- instructions ---------------------------------------------------------------------------------------- */

static void disasm_put_span(const Printer *pr, Span at, size_t line_start) {
  if (!pr->sources || !sources_get(pr->sources, at.file)) return;
  u32 line, col, end_line, end_col;
  sources_locate(pr->sources, at, &line, &col);
  sources_locate(pr->sources, (Span){at.file, at.start + at.len, 0}, &end_line, &end_col);
  while (pr->out->len - line_start < 40) buf_putc(pr->out, ' ');
  if (line == end_line) buf_printf(pr->out, " ; %u:%u-%u", line, col, end_col);
  else buf_printf(pr->out, " ; %u:%u-%u:%u", line, col, end_line, end_col);
}

/* Runs and what the forms do not say. True: nothing is left to print. */
static bool put_special(const Printer *pr, u32 pc, Ins ins) {
  const Proto *p = pr->p;
  u32 op = ins_op(ins), a = ins_a(ins), c = ins_c(ins);
  InsUse u;
  ins_uses(p, pc, &u);
  switch (op) {
  case BC_getmod: case BC_setmod:
    buf_putc(pr->out, ' ');
    put_operand(pr, a, ins_flags(ins) & INS_A_DIES);
    buf_putc(pr->out, ' ');
    put_slot(pr, ins_x(ins));
    return true;
  case BC_loadk:
    buf_printf(pr->out, " r%u ", a);
    put_constant(pr, ins_x(ins));
    return true;
  case BC_setpath:
    if (p->descs[c].root != ROOT_MODULE) {
      buf_printf(pr->out, " r%u", a);
    } else {
      buf_putc(pr->out, ' ');
      put_slot(pr, p->descs[c].root_slot);
    }
    if (p->descs[c].root == ROOT_FIXED) buf_puts(pr->out, " fixed");
    put_path(pr, &p->descs[c]);
    put_registers(pr, u.run, u.run_count, "*");
    return true;
  case BC_closure: case BC_group:
    put_registers(pr, u.write, u.write_count, "");
    for (u32 i = 0; i < u.write_count; i++) {
      Name name = p->protos[ins_b(ins) + i]->name;
      buf_printf(pr->out, " f%u(%s)", ins_b(ins) + i, name ? disasm_text_of(pr, name) : "");
    }
    return true;
  case BC_unpack: case BC_unpackrec:
    put_registers(pr, u.write, u.write_count, "");
    buf_putc(pr->out, ' ');
    put_operand(pr, ins_b(ins), ins_flags(ins) & INS_B_DIES);
    disasm_put_desc(pr, &p->descs[c]);
    return true;
  case BC_checkarg:
    put_registers(pr, u.write, u.write_count, "");
    buf_printf(pr->out, " r%u", ins_b(ins));
    disasm_put_desc(pr, &p->descs[c]);
    return true;
  case BC_array: case BC_list: case BC_range: case BC_join: case BC_record: case BC_indexn:
  case BC_call: case BC_callx: case BC_tail: case BC_tailx:
    put_registers(pr, u.write, u.write_count, "");
    put_registers(pr, u.run, u.run_count, "*");
    if (strchr(bc_info[op].form, 'd')) disasm_put_desc(pr, &p->descs[c]);
    if (ins_flags(ins) & INS_METHOD) buf_puts(pr->out, " method");
    return true;
  default: return false;
  }
}

static void put_instruction(const Printer *pr, u32 pc) {
  const Proto *p = pr->p;
  Ins ins = p->code[pc];
  const char *form = bc_info[ins_op(ins)].form;
  size_t start = pr->out->len;
  buf_printf(pr->out, "%04u  %-8s", pc, bc_info[ins_op(ins)].name);
  if (!put_special(pr, pc, ins)) {
    u32 operands[3] = {ins_a(ins), ins_b(ins), ins_c(ins)};
    static const u8 dies[3] = {INS_A_DIES, INS_B_DIES, INS_C_DIES};
    for (u32 i = 0; form[i]; i++) {
      if (form[i] == 'r' || form[i] == 'k') {
        buf_putc(pr->out, ' ');
        put_operand(pr, operands[i], ins_flags(ins) & dies[i]);
      }
      if (form[i] == 'n') buf_printf(pr->out, " %u", operands[i]);
      if (form[i] == 'd') disasm_put_desc(pr, &p->descs[operands[i]]);
      if (form[i] == 'j') buf_printf(pr->out, " -> %04u", ins_x(ins));
    }
  }
  disasm_put_span(pr, p->spans[pc], start);
  buf_putc(pr->out, '\n');
}

/* ---- functions --------------------------------------------------------------------------------------------- */

static void put_header(const Printer *pr) {
  const Proto *p = pr->p;
  Buf *out = pr->out;
  buf_printf(out, "fn %s(", p->name ? disasm_text_of(pr, p->name) : "");
  for (u32 i = 0; i < p->nparams; i++) {
    const Param *q = &p->params[i];
    buf_printf(out, "%s%s%s%s", i ? ", " : "", (i32)i == p->rest_index ? "..." : "",
               q->name ? disasm_text_of(pr, q->name) : "_", q->has_default ? "=" : "");
  }
  buf_printf(out, ")  registers %u", p->nregs);
  if (p->group_size > 1) buf_printf(out, "  group %u of %u", p->group_index, p->group_size);
  static const char *const kinds[] = {"r", "c", "g"};
  for (u32 i = 0; i < p->ncaptures; i++)
    buf_printf(out, "%s%s=%s%u", i ? " " : "  captures ", disasm_text_of(pr, p->captures[i].name),
               kinds[p->captures[i].kind], p->captures[i].index);
  buf_putc(out, '\n');
}

static void put_extents(const Printer *pr) {
  static const char *const kinds[] = {"fn", "if", "while", "for", "try"};
  const Proto *p = pr->p;
  for (u32 i = 1; i < p->nextents; i++) {
    const Extent *e = &p->extents[i];
    buf_printf(pr->out, "  %s %u..%u head %u else %u", kinds[e->kind], e->begin, e->end, e->head, e->els);
    if (e->parent) buf_printf(pr->out, " in %u", e->parent);
    if (e->write_count) buf_puts(pr->out, " writes");
    for (u32 w = 0; w < e->write_count; w++) {
      u32 what = p->writes[e->write_first + w];
      buf_putc(pr->out, ' ');
      if (what & WRITE_MODULE) put_slot(pr, what & ~WRITE_MODULE);
      else buf_printf(pr->out, "r%u", what);
    }
    buf_putc(pr->out, '\n');
  }
}

void proto_print(const Proto *p, const Names *names, const Sources *sources, const ModuleScope *scope, Buf *out) {
  Printer pr = {p, names, sources, scope, out};
  put_header(&pr);
  for (u32 pc = 0; pc < p->ncode; pc++) put_instruction(&pr, pc);
  put_extents(&pr);
  for (u32 i = 0; i < p->nprotos; i++) {
    buf_printf(out, "f%u: ", i);
    proto_print(p->protos[i], names, sources, scope, out);
  }
}
