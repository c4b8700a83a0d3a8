/* plan_print.c — a plan as text, and the rules it obeys (see plan.h). */
#include <string.h>

#include "jit/plan/plan_inner.h"

/* ---- text ------------------------------------------------------------------------------------------- */

typedef struct Printer {
  const Plan *p;
  const u32 *number; /* of values, as graph_print gives them; may be NULL */
  Buf *out;
} Printer;

static void put_arg(const Printer *w, const PlanArg *a) {
  switch (a->kind) {
    case PA_const: buf_printf(w->out, "%lld", (long long)a->imm); return;
    case PA_dim: buf_printf(w->out, "dim(s%u, %u)", a->slot, a->axis); return;
    case PA_stride: buf_printf(w->out, "stride(s%u, %u)", a->slot, a->axis); return;
    case PA_size: buf_printf(w->out, "size(s%u)", a->slot); return;
    case PA_list: buf_printf(w->out, "*%lld", (long long)a->imm); return;
    case PA_attr: buf_printf(w->out, "attr %lld", (long long)a->imm); return;
    case PA_hole: buf_putc(w->out, '_'); return;
    case PA_out: buf_printf(w->out, "-> s%u", a->slot); return;
    default: buf_printf(w->out, "s%u", a->slot);
  }
}

static void put_args(const Printer *w, const PlanStep *s, u32 from) {
  for (u32 i = from; i < s->nargs; i++) {
    if (i > from) buf_puts(w->out, ", ");
    put_arg(w, &w->p->args.data[s->arg + i]);
  }
}

static void put_nodes(const Printer *w, u32 first, u32 count) {
  const Graph *g = w->p->graph;
  bool any = false;
  for (u32 i = 0; i < count; i++) {
    NodeId n = w->p->nodes.data[first + i];
    if (!n || n >= g->nodes.count || !g->nodes.data[n].result_count) continue;
    ValueId v = g->nodes.data[n].result_first;
    buf_printf(w->out, "%s%%%u", any ? " " : "   ; ", w->number ? w->number[v] : v);
    any = true;
  }
}

static void put_number(Buf *out, u32 dtype, u64 bits) {
  Value v = {.dtype = (u8)dtype, .bits = bits};
  if (dtype_kind(dtype) == DK_FLOAT) buf_printf(out, "%.*g", dtype_bytes(dtype) == 8 ? 17 : 9, num_as_f64(v));
  else if (dtype == DT_bool) buf_puts(out, v.i ? "true" : "false");
  else buf_printf(out, "%lld", (long long)v.i);
}

static void put_exit(const Printer *w, u32 exit) {
  if (exit != NO_EXIT) buf_printf(w->out, " -> exit %u", exit);
}

static void put_step(const Printer *w, const PlanStep *s) {
  const Plan *p = w->p;
  Buf *out = w->out;
  buf_puts(out, plan_step_name(s->op));
  switch (s->op) {
    case STEP_size: buf_printf(out, " s%u = %s", s->dst, p->code_text.data[s->index]); break;
    case STEP_const:
      buf_printf(out, " s%u = ", s->dst);
      put_number(out, p->slots.data[s->dst].dtype, s->bits);
      break;
    case STEP_alloc:
    case STEP_reuse:
    case STEP_donate:
      buf_printf(out, " s%u %s [", s->dst, dtype_name(s->dtype));
      put_args(w, s, 0);
      buf_putc(out, ']');
      if (s->op != STEP_alloc) buf_printf(out, " s%u", s->src);
      break;
    case STEP_free:
    case STEP_zero:
    case STEP_unique: buf_printf(out, " s%u", s->dst); break;
    case STEP_view:
      buf_printf(out, " s%u = s%u[", s->dst, s->src);
      put_args(w, s, 0);
      buf_putc(out, ']');
      break;
    case STEP_dim: buf_printf(out, " s%u = s%u.dim%u", s->dst, s->src, s->aux); break;
    case STEP_load:
    case STEP_store:
      if (s->op == STEP_load) buf_printf(out, " s%u = s%u[", s->dst, s->src);
      else buf_printf(out, " s%u[", s->dst);
      put_args(w, s, 0);
      buf_putc(out, ']');
      if (s->op == STEP_store) buf_printf(out, " = s%u", s->src);
      break;
    case STEP_kernel: {
      const PlanKernel *k = &p->kernels.data[s->index];
      buf_printf(out, " %s (", k->name);
      put_args(w, s, 2);
      buf_puts(out, ") ");
      put_arg(w, &p->args.data[s->arg]);
      buf_puts(out, "..");
      put_arg(w, &p->args.data[s->arg + 1]);
      if (k->flags & PK_INPLACE) buf_puts(out, " in place");
      for (u32 i = 0; i < s->nlist; i++)
        buf_printf(out, "%s check %u -> exit %u", i ? "," : "", p->checks.data[s->list + i].number,
                   p->checks.data[s->list + i].exit);
      put_exit(w, s->exit);
      put_nodes(w, k->nodes_first, k->nodes_count);
      return;
    }
    case STEP_native: {
      const PlanNative *n = &p->natives.data[s->index];
      buf_printf(out, " %s (", n->name);
      put_args(w, s, 0);
      buf_puts(out, " ->");
      for (u32 i = 0; i < s->nlist; i++) buf_printf(out, " s%u", p->ids.data[s->list + i]);
      buf_putc(out, ')');
      for (u32 i = 0; i < n->undo_count; i++) buf_printf(out, " undoes s%u", p->undos.data[n->undo_first + i].array);
      for (u32 i = 0; i < n->exit_count; i++) {
        const PlanNativeExit *e = &p->native_exits.data[n->exit_first + i];
        buf_printf(out, "%s %u", i ? "," : " exits", e->exit);
        if (e->plan_exit != NO_EXIT) buf_printf(out, " -> %u", e->plan_exit);
      }
      put_exit(w, s->exit);
      put_nodes(w, n->nodes_first, n->nodes_count);
      return;
    }
    case STEP_number:
      buf_printf(out, " s%u = %s ", s->dst, op_name(s->aux));
      put_args(w, s, 0);
      break;
    case STEP_extern:
      if (s->nlist == 0) buf_printf(out, " s%u", s->dst);
      for (u32 i = 0; i < s->nlist; i++) buf_printf(out, " s%u", p->ids.data[s->list + i]);
      buf_printf(out, " = %s (", op_name(s->aux));
      put_args(w, s, 0);
      buf_putc(out, ')');
      break;
    case STEP_index:
    case STEP_update:
      buf_printf(out, " s%u = s%u attr %u", s->dst, s->src, s->index);
      if (s->op == STEP_update) buf_printf(out, " %s", s->aux ? op_name(s->aux) : "set");
      buf_puts(out, " (");
      put_args(w, s, 0);
      buf_putc(out, ')');
      break;
    case STEP_effect:
      buf_printf(out, " s%u = %s (", s->dst, p->graph->hosts.data[s->index].name);
      put_args(w, s, 0);
      buf_putc(out, ')');
      break;
    case STEP_check:
      buf_printf(out, " %s ", check_name(s->aux));
      put_args(w, s, 0);
      break;
    case STEP_if:
    case STEP_while:
    case STEP_until: buf_printf(out, " s%u", s->src); break;
    case STEP_exit: buf_printf(out, " %u", s->exit); return;
    default:
      if (plan_step_has(s->op, 'd')) buf_printf(out, " s%u", s->dst);
      if (plan_step_has(s->op, 's')) buf_printf(out, " = s%u", s->src);
  }
  if (plan_step_has(s->op, 'x')) put_exit(w, s->exit);
}

void plan_print(const Plan *p, Buf *out) {
  u32 *number = NULL, indent = 1;
  if (!graph_numbers(p->graph, p->alloc, &number)) number = NULL;
  Printer w = {p, number, out};
  buf_printf(out, "plan %s  slots %u  inputs %u", p->graph->name, p->slots.count, p->inputs);
  if (p->peak) buf_printf(out, "  peak %s", p->peak);
  buf_putc(out, '\n');
  for (u32 i = 0; i < p->steps.count; i++) {
    const PlanStep *s = &p->steps.data[i];
    if ((s->op == STEP_end || s->op == STEP_else) && indent > 1) indent--;
    for (u32 k = 0; k < indent; k++) buf_puts(out, "  ");
    put_step(&w, s);
    buf_putc(out, '\n');
    if (s->op == STEP_if || s->op == STEP_else || s->op == STEP_loop) indent++;
  }
  if (number) mem_free(p->alloc, number, sizeof *number * p->graph->values.count);
}

/* ---- rules ------------------------------------------------------------------------------------------ */

typedef struct Checker {
  const Plan *p;
  Buf *out;
  u8 *filled; /* by slot: an input, or written by an earlier step */
  u32 at, errors;
} Checker;

static void wrong(Checker *c, const char *what, u32 number) {
  if (c->errors++ >= 30) return;
  const PlanStep *s = &c->p->steps.data[c->at];
  buf_printf(c->out, "step %u (%s): %s %u\n", c->at, plan_step_name(s->op), what, number);
}

enum { NUMBER = 1, ARRAY = 2 };

static bool slot_ok(Checker *c, u32 slot, u32 kinds) {
  if (slot >= c->p->slots.count) {
    wrong(c, "no slot", slot);
    return false;
  }
  if (!(kinds & (c->p->slots.data[slot].array ? ARRAY : NUMBER))) {
    wrong(c, kinds == ARRAY ? "needs an array, is a number: slot" : "needs a number, is an array: slot", slot);
    return false;
  }
  return true;
}

static void reads(Checker *c, u32 slot, u32 kinds) {
  if (slot_ok(c, slot, kinds) && !c->filled[slot]) wrong(c, "reads what nothing wrote: slot", slot);
}

static void writes(Checker *c, u32 slot, u32 kinds) {
  if (!slot_ok(c, slot, kinds)) return;
  if (slot < c->p->inputs && !c->p->graph->guards.inputs.data[slot].donate && c->p->slots.data[slot].array)
    wrong(c, "writes a borrowed input: slot", slot);
  c->filled[slot] = 1;
}

static void arg_ok(Checker *c, const PlanArg *a) {
  const Plan *p = c->p;
  switch (a->kind) {
    case PA_slot: reads(c, a->slot, NUMBER); return;
    case PA_data:
    case PA_value: reads(c, a->slot, NUMBER | ARRAY); return;
    case PA_out: writes(c, a->slot, NUMBER); return;
    case PA_dim:
    case PA_stride:
      reads(c, a->slot, ARRAY);
      if (a->slot < p->slots.count && a->axis >= p->slots.data[a->slot].rank) wrong(c, "no axis", a->axis);
      return;
    case PA_size: reads(c, a->slot, ARRAY); return;
    case PA_attr:
      if (a->imm < 0 || a->imm >= p->graph->attrs.count) wrong(c, "no attribute", (u32)a->imm);
      return;
    case PA_const:
    case PA_list:
    case PA_hole: return;
    default: wrong(c, "an argument of no kind", a->kind);
  }
}

static void exit_ok(Checker *c, u32 exit) {
  if (exit >= c->p->graph->exits.exits.count) wrong(c, "no exit", exit);
}

static void ids_ok(Checker *c, const PlanStep *s) {
  if (s->list + s->nlist > c->p->ids.count) {
    wrong(c, "results beyond the list", s->list);
    return;
  }
  for (u32 i = 0; i < s->nlist; i++) writes(c, c->p->ids.data[s->list + i], NUMBER | ARRAY);
}

static void step_ok(Checker *c, const PlanStep *s) {
  const Plan *p = c->p;
  if (s->op == STEP_none || s->op >= STEP_COUNT) {
    wrong(c, "no such step", s->op);
    return;
  }
  if (s->arg + s->nargs > p->args.count) {
    wrong(c, "arguments beyond the list", s->arg);
    return;
  }
  if (plan_step_has(s->op, 's'))
    reads(c, s->src, s->op == STEP_copy || s->op == STEP_store || s->op == STEP_box || s->op == STEP_if || s->op ==
                     STEP_while || s->op == STEP_until ? NUMBER : s->op == STEP_index ? NUMBER | ARRAY : ARRAY);
  for (u32 i = 0; i < s->nargs; i++) arg_ok(c, &p->args.data[s->arg + i]);
  if (plan_step_has(s->op, 'x')) exit_ok(c, s->exit);
  switch (s->op) {
    case STEP_size:
      if (s->index >= p->codes.count) wrong(c, "no size code", s->index);
      writes(c, s->dst, NUMBER);
      return;
    case STEP_const:
    case STEP_copy:
    case STEP_unbox: writes(c, s->dst, NUMBER); return;
    case STEP_number:
      if (!plan_number_op(s->aux) || s->nargs != 2 || p->args.data[s->arg].kind > PA_const ||
          p->args.data[s->arg + 1].kind > PA_const)
        wrong(c, "not an operation on two integers", s->aux);
      writes(c, s->dst, NUMBER);
      return;
    case STEP_dim:
      if (s->src < p->slots.count && s->aux >= p->slots.data[s->src].rank) wrong(c, "no axis", s->aux);
      writes(c, s->dst, NUMBER);
      return;
    case STEP_load:
      if (s->src < p->slots.count && s->nargs != p->slots.data[s->src].rank)
        wrong(c, "indices for another rank", s->nargs);
      writes(c, s->dst, NUMBER);
      return;
    case STEP_store:
    case STEP_zero: reads(c, s->dst, ARRAY); return;
    case STEP_alloc:
    case STEP_reuse:
    case STEP_donate:
      if (!s->dtype || s->dtype >= DT_COUNT || s->nargs > ARRAY_MAX_RANK) wrong(c, "no such type: rank", s->nargs);
      if (slot_ok(c, s->dst, ARRAY) &&
          (p->slots.data[s->dst].dtype != s->dtype || p->slots.data[s->dst].rank != s->nargs))
        wrong(c, "not the slot's type: slot", s->dst);
      writes(c, s->dst, ARRAY);
      return;
    case STEP_view:
      if (s->nargs != 2u * s->aux + 1) wrong(c, "not an offset, dimensions and strides", s->nargs);
      writes(c, s->dst, ARRAY);
      return;
    case STEP_free: slot_ok(c, s->dst, ARRAY); return;
    case STEP_unique:
      reads(c, s->dst, ARRAY);
      writes(c, s->dst, ARRAY);
      return;
    case STEP_keep:
    case STEP_move:
    case STEP_dense:
    case STEP_box: writes(c, s->dst, ARRAY); return;
    case STEP_kernel:
      if (s->index >= p->kernels.count) wrong(c, "no kernel", s->index);
      else if (!p->kernels.data[s->index].fn && !p->kernels.data[s->index].call)
        wrong(c, "no code for kernel", s->index);
      if (s->nargs < 2) wrong(c, "a kernel without a range", s->nargs);
      if (s->list + s->nlist > p->checks.count) wrong(c, "checks beyond the list", s->list);
      else
        for (u32 i = 0; i < s->nlist; i++) exit_ok(c, p->checks.data[s->list + i].exit);
      return;
    case STEP_native: {
      if (s->index >= p->natives.count) {
        wrong(c, "no native function", s->index);
        return;
      }
      const PlanNative *n = &p->natives.data[s->index];
      if (!n->call) wrong(c, "no code for native function", s->index);
      if (s->nlist != n->nresults) wrong(c, "another number of results", s->nlist);
      for (u32 i = 0; i < n->exit_count; i++) {
        const PlanNativeExit *e = &p->native_exits.data[n->exit_first + i];
        if (e->plan_exit != NO_EXIT) exit_ok(c, e->plan_exit);
        for (u32 k = 0; k < e->slot_count; k++) {
          u32 id = p->ids.data[e->slot_first + k];
          writes(c, id & ~PLAN_ELEMENT, id & PLAN_ELEMENT ? ARRAY : NUMBER);
        }
      }
      ids_ok(c, s);
      return;
    }
    case STEP_extern:
      if (s->aux == OP_none || s->aux >= OP_COUNT) wrong(c, "no operation", s->aux);
      if (s->nlist) ids_ok(c, s);
      else writes(c, s->dst, NUMBER | ARRAY);
      return;
    case STEP_index:
    case STEP_update:
      if (s->index >= p->graph->attrs.count || p->graph->attrs.data[s->index].kind != ATTR_index)
        wrong(c, "no index attribute", s->index);
      writes(c, s->dst, NUMBER | ARRAY);
      return;
    case STEP_effect:
      if (s->index == 0 || s->index >= p->graph->hosts.count) wrong(c, "calls nothing", s->index);
      if (s->node && p->graph->nodes.data[s->node].result_count > 1) writes(c, s->dst, NUMBER | ARRAY);
      return;
    case STEP_check:
      if (s->aux == CHECK_none || s->aux >= CHECK_COUNT || s->nargs == 0) wrong(c, "no such check", s->aux);
      return;
    default: return;
  }
}

bool plan_verify(const Plan *p, Buf *out) {
  Checker c = {.p = p, .out = out, .filled = mem_alloc_zero(p->alloc, p->slots.count + 1)};
  if (!c.filled) {
    buf_puts(out, "memory was refused\n");
    return false;
  }
  for (u32 i = 0; i < p->inputs; i++) c.filled[i] = 1;
  for (c.at = 0; c.at < p->steps.count; c.at++) step_ok(&c, &p->steps.data[c.at]);
  if (p->steps.count == 0 || (p->steps.data[p->steps.count - 1].op != STEP_exit && p->entry_exit == NO_EXIT)) {
    buf_puts(out, "the plan does not end by an exit\n");
    c.errors++;
  }
  mem_free(p->alloc, c.filled, p->slots.count + 1);
  return c.errors == 0;
}
