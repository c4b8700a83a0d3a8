/* plan.c — building a plan: slots, steps, arguments, what is set when it is finished (see plan.h). */
#include "jit/plan/plan.h"

#include <string.h>

#include "jit/plan/plan_inner.h"

static const char *const forms[STEP_COUNT] = {
#define STEP(name, form, meaning) form,
#include "jit/plan/plan.def"
};
static const char *const names[STEP_COUNT] = {
#define STEP(name, form, meaning) #name,
#include "jit/plan/plan.def"
};

const char *plan_step_name(u32 op) { return names[op < STEP_COUNT ? op : 0]; }
bool plan_step_has(u32 op, char field) { return strchr(forms[op], field) != NULL; }

static bool is_array(const ArrayType *t) { return !type_is_number(t); }

static PlanSlot slot_of_type(const ArrayType *t, ValueId v) {
  return (PlanSlot){.array = is_array(t), .dtype = t->dtype, .rank = t->rank, .device = t->device, .weak = t->weak,
                    .value = v};
}

Plan *plan_new(Vm *vm, const Graph *g) {
  Plan *p = mem_alloc_zero(&vm->alloc, sizeof *p);
  if (!p) return NULL;
  p->alloc = &vm->alloc;
  arena_init(&p->arena, p->alloc);
  p->graph = g;
  p->inputs = g->guards.inputs.count;
  p->entry_exit = g->entry_exit;
  for (u32 i = 0; i < p->inputs; i++) {
    const GuardInput *in = &g->guards.inputs.data[i];
    PlanSlot s = {.array = in->form == IN_array, .dtype = DT_i64, .weak = true};
    for (u32 k = 0; k < g->inputs.count; k++)
      if (g->inputs.data[k].input == i && !value_is_token(g, g->inputs.data[k].value))
        s = slot_of_type(value_type(g, g->inputs.data[k].value), g->inputs.data[k].value);
    plan_slot(p, &s);
    if (in->form == IN_size && in->sym < g->sizes.syms.count) plan_symbol(p, in->sym, i);
  }
  if (p->failed) {
    plan_free(vm, p);
    return NULL;
  }
  return p;
}

void plan_free(Vm *vm, Plan *p) {
  if (!p) return;
  if (p->code && p->code_free) p->code_free(vm, p->code);
  vec_free(p->alloc, &p->slots);
  vec_free(p->alloc, &p->steps);
  vec_free(p->alloc, &p->args);
  vec_free(p->alloc, &p->codes);
  vec_free(p->alloc, &p->code_text);
  vec_free(p->alloc, &p->kernels);
  vec_free(p->alloc, &p->natives);
  vec_free(p->alloc, &p->undos);
  vec_free(p->alloc, &p->native_exits);
  vec_free(p->alloc, &p->checks);
  vec_free(p->alloc, &p->ids);
  vec_free(p->alloc, &p->nodes);
  vec_free(p->alloc, &p->owned);
  vec_free(p->alloc, &p->attr_sizes);
  vec_free(p->alloc, &p->sym_slot);
  arena_free(&p->arena);
  mem_free(p->alloc, p, sizeof *p);
}

static u32 refused(Plan *p) {
  p->failed = true;
  return 0;
}

/* ---- building --------------------------------------------------------------------------------------- */

u32 plan_slot(Plan *p, const PlanSlot *s) {
  if (!vec_push(p->alloc, &p->slots, *s)) return refused(p);
  return p->slots.count - 1;
}

u32 plan_slot_for(Plan *p, ValueId v) {
  PlanSlot s = slot_of_type(value_type(p->graph, v), v);
  return plan_slot(p, &s);
}

PlanStep *plan_step(Plan *p, PlanOp op) {
  if (!vec_push(p->alloc, &p->steps, (PlanStep){.op = (u8)op, .exit = NO_EXIT})) {
    p->failed = true;
    p->dummy = (PlanStep){.exit = NO_EXIT};
    return &p->dummy;
  }
  return &p->steps.data[p->steps.count - 1];
}

u32 plan_args(Plan *p, const PlanArg *args, u32 count) {
  u32 first = p->args.count;
  if (count && !vec_reserve(p->alloc, (void **)&p->args.data, &p->args.cap, first + count, sizeof *args))
    return refused(p);
  mem_copy(p->args.data + first, args, sizeof *args * count);
  p->args.count += count;
  return first;
}

u32 plan_ids(Plan *p, const u32 *ids, u32 count) {
  u32 first = p->ids.count;
  if (count && !vec_reserve(p->alloc, (void **)&p->ids.data, &p->ids.cap, first + count, sizeof *ids))
    return refused(p);
  mem_copy(p->ids.data + first, ids, sizeof *ids * count);
  p->ids.count += count;
  return first;
}

void plan_symbol(Plan *p, u32 sym, u32 slot) {
  while (p->sym_slot.count <= sym)
    if (!vec_push(p->alloc, &p->sym_slot, UINT32_MAX)) {
      p->failed = true;
      return;
    }
  p->sym_slot.data[sym] = slot;
}

static u32 add_code(Plan *p, Dim d, const u32 *slot_of_sym) {
  SizeCode code;
  Buf text;
  if (!size_compile(&p->graph->sizes, d, slot_of_sym, &p->arena, &code)) return UINT32_MAX;
  buf_init(&text, p->alloc);
  size_print(&p->graph->sizes, d, &text);
  const char *kept = arena_copy(&p->arena, buf_text(&text), text.len);
  buf_free(&text);
  if (!kept || !vec_push(p->alloc, &p->codes, code) || !vec_push(p->alloc, &p->code_text, kept)) {
    p->failed = true;
    return UINT32_MAX;
  }
  return p->codes.count - 1;
}

u32 plan_code(Plan *p, Dim d, const u32 *slot_of_sym) {
  for (u32 i = 0; i < p->graph->sizes.syms.count; i++)
    if (slot_of_sym[i] != UINT32_MAX) plan_symbol(p, i, slot_of_sym[i]);
  return add_code(p, d, slot_of_sym);
}

static u32 add_nodes(Plan *p, const NodeId *nodes, u32 count) {
  u32 first = p->nodes.count;
  for (u32 i = 0; i < count; i++)
    if (!vec_push(p->alloc, &p->nodes, nodes[i])) return refused(p);
  return first;
}

static const char *keep_name(Plan *p, const char *name) {
  const char *kept = arena_copy(&p->arena, name ? name : "", name ? strlen(name) : 0);
  if (!kept) p->failed = true;
  return kept;
}

static u32 operations_of(const LoopFn *f) {
  u32 n = 0;
  for (u32 i = 1; i < f->nodes.count; i++) {
    u32 op = f->nodes.data[i].op;
    LoopForm form = loop_op_form(op);
    n += (form >= LOOP_FORM_UNARY && form <= LOOP_FORM_MATH && form != LOOP_FORM_CONVERT) || op == LOOP_REDUCE ||
         op == LOOP_SCAN;
  }
  return n;
}

u32 plan_kernel(Plan *p, const PlanKernel *k, const NodeId *nodes, u32 count) {
  PlanKernel x = *k;
  if (k->self) x.operations = operations_of(k->self);
  x.name = keep_name(p, k->name);
  x.nodes_first = add_nodes(p, nodes, count);
  x.nodes_count = count;
  if (!vec_push(p->alloc, &p->kernels, x)) return refused(p);
  return p->kernels.count - 1;
}

u32 plan_native(Plan *p, const PlanNative *n, const PlanNativeExit *exits, u32 nexits, const NodeId *nodes, u32 count) {
  PlanNative x = *n;
  x.name = keep_name(p, n->name);
  x.nodes_first = add_nodes(p, nodes, count);
  x.nodes_count = count;
  x.exit_first = p->native_exits.count;
  x.exit_count = nexits;
  for (u32 i = 0; i < nexits; i++)
    if (!vec_push(p->alloc, &p->native_exits, exits[i])) return refused(p);
  if (!vec_push(p->alloc, &p->natives, x)) return refused(p);
  return p->natives.count - 1;
}

void plan_undo(Plan *p, u32 native, const PlanUndo *u) {
  if (native >= p->natives.count) return; /* memory was refused */
  PlanNative *n = &p->natives.data[native];
  if (!n->undo_count) n->undo_first = p->undos.count;
  if (vec_push(p->alloc, &p->undos, *u)) n->undo_count++;
  else (void)refused(p);
}

PlanArg plan_arg_slot(u32 slot) { return (PlanArg){.kind = PA_slot, .slot = slot}; }
PlanArg plan_arg_const(i64 imm) { return (PlanArg){.kind = PA_const, .imm = imm}; }
PlanArg plan_arg(PlanArgKind kind, u32 slot, u32 axis) {
  return (PlanArg){.kind = (u8)kind, .slot = slot, .axis = (u16)axis};
}

/* ---- steps that stand for those behind them ---------------------------------------------------------- */

bool plan_given_up(const Plan *p, u32 at, u32 slot) {
  for (u32 i = at + 1; i < p->steps.count; i++) {
    const PlanStep *s = &p->steps.data[i];
    if (s->op == STEP_free && s->dst == slot) return true;
    if (s->op != STEP_free && s->op != STEP_const && (s->op != STEP_dim || s->src == slot)) return false;
  }
  return false;
}

bool plan_put_before(Plan *p, u32 at, PlanOp op) {
  u32 exit = p->steps.data[at].exit;
  plan_step(p, op);
  if (p->failed) return false;
  PlanStep *s = &p->steps.data[at], put = p->steps.data[p->steps.count - 1];
  memmove(s + 1, s, sizeof *s * (p->steps.count - 1 - at));
  put.exit = exit;
  *s = put;
  return true;
}

/* ---- finishing -------------------------------------------------------------------------------------- */

/* Compiles the sizes of one attribute that are no constants. */
static bool attr_sizes(Plan *p, u32 attr, u32 *first, u32 *count, Buf *why) {
  const Graph *g = p->graph;
  const GraphAttr *a = &g->attrs.data[attr];
  u32 n = a->kind == ATTR_dim ? 1 : a->kind == ATTR_dims ? a->count : a->kind == ATTR_index ? 3 * a->count : 0;
  *first = p->attr_sizes.count;
  for (u32 i = 0; i < n; i++) {
    Dim d = a->kind == ATTR_dim ? a->dim : a->kind == ATTR_dims ? a->ints[i] : a->items[i / 3].at[i % 3];
    i64 c;
    if (a->kind == ATTR_index && a->items[i / 3].part[i % 3] != PART_dim) continue;
    if (d == DIM_INFER || size_is_const(&g->sizes, d, &c)) continue;
    while (p->sym_slot.count < g->sizes.syms.count && !p->failed) plan_symbol(p, p->sym_slot.count, UINT32_MAX);
    u32 code = p->failed ? UINT32_MAX : add_code(p, d, p->sym_slot.data);
    if (code == UINT32_MAX) {
      if (!p->failed) buf_puts(why, "a size in an attribute has no slot\n");
      return false;
    }
    if (!vec_push(p->alloc, &p->attr_sizes, (PlanAttrSize){i, code})) return refused(p);
  }
  *count = p->attr_sizes.count - *first;
  return true;
}

/* Where the else or end of the construct that begins at `at` stands; `elses`: stop at its else. */
static u32 find_end(const Plan *p, u32 at, bool elses) {
  u32 depth = 0;
  for (u32 i = at + 1; i < p->steps.count; i++) {
    u32 op = p->steps.data[i].op;
    if (op == STEP_if || op == STEP_loop) depth++;
    else if (op == STEP_end && depth-- == 0) return i;
    else if (op == STEP_else && depth == 0 && elses) return i;
  }
  return UINT32_MAX;
}

static bool set_jumps(Plan *p, Buf *why) {
  enum { DEPTH = 4 * GRAPH_MAX_DEPTH };
  u32 open[DEPTH], n = 0; /* steps that begin a construct */
  for (u32 i = 0; i < p->steps.count; i++) {
    PlanStep *s = &p->steps.data[i];
    switch (s->op) {
      case STEP_if:
      case STEP_loop: {
        u32 end = find_end(p, i, s->op == STEP_if);
        if (end == UINT32_MAX || n == DEPTH) {
          buf_printf(why, "step %u: the construct does not end\n", i);
          return false;
        }
        s->jump = end;
        open[n++] = i;
        break;
      }
      case STEP_else: {
        u32 end = find_end(p, i, false);
        if (n == 0 || p->steps.data[open[n - 1]].op != STEP_if || end == UINT32_MAX) {
          buf_printf(why, "step %u: else without if\n", i);
          return false;
        }
        s->jump = end;
        break;
      }
      case STEP_end:
        if (n-- == 0) {
          buf_printf(why, "step %u: end of nothing\n", i);
          return false;
        }
        break;
      case STEP_while:
      case STEP_until:
      case STEP_again: {
        u32 k = n;
        while (k > 0 && p->steps.data[open[k - 1]].op != STEP_loop) k--;
        if (k == 0) {
          buf_printf(why, "step %u: %s outside a loop\n", i, names[s->op]);
          return false;
        }
        s->jump = s->op == STEP_again ? open[k - 1] : p->steps.data[open[k - 1]].jump;
        break;
      }
      default: break;
    }
  }
  if (n) buf_puts(why, "a construct does not end\n");
  return n == 0;
}

/* Sizes of the inputs stand before the outermost loop, not in it. */
static void hoist_sizes(Plan *p) {
  u32 depth = 0, loop = UINT32_MAX;
  for (u32 i = 0; i < p->steps.count; i++) {
    PlanStep *s = &p->steps.data[i], put = *s;
    if (s->op == STEP_loop || s->op == STEP_if) {
      if (depth++ == 0) loop = s->op == STEP_loop ? i : UINT32_MAX;
    } else if (s->op == STEP_end) {
      depth--;
    } else if (s->op == STEP_size && depth && loop != UINT32_MAX && p->codes.data[s->index].slots <= p->inputs) {
      put.exit = p->steps.data[loop].exit;
      memmove(&p->steps.data[loop + 1], &p->steps.data[loop], sizeof put * (i - loop));
      p->steps.data[loop++] = put;
    }
  }
}

bool plan_finish(Plan *p, Buf *why) {
  if (p->failed) return false;
  hoist_sizes(p);
  if (!set_jumps(p, why)) return false;
  p->owned.count = 0;
  for (u32 i = 0; i < p->slots.count; i++) {
    PlanSlot *s = &p->slots.data[i];
    s->borrowed = i < p->inputs && !p->graph->guards.inputs.data[i].donate;
    if (s->array && !s->borrowed && !vec_push(p->alloc, &p->owned, i)) return refused(p);
  }
  for (u32 i = 0; i < p->steps.count; i++) {
    PlanStep *s = &p->steps.data[i];
    if (s->exit == NO_EXIT && plan_step_has(s->op, 'x')) s->exit = p->entry_exit;
    if (s->nargs > p->max_args) p->max_args = s->nargs;
    if (s->op == STEP_index || s->op == STEP_update) {
      u32 first, count;
      if (s->index >= p->graph->attrs.count || !attr_sizes(p, s->index, &first, &count, why)) return false;
      p->steps.data[i].list = first;
      p->steps.data[i].nlist = count;
    }
    for (u32 k = 0; s->op == STEP_extern && k < s->nargs; k++) {
      PlanArg *a = &p->args.data[s->arg + k];
      u32 first, count;
      if (a->kind != PA_attr) continue;
      if ((u64)a->imm >= p->graph->attrs.count || !attr_sizes(p, (u32)a->imm, &first, &count, why)) return false;
      a->slot = first;
      a->axis = (u16)count;
    }
  }
  for (u32 i = 0; i < p->natives.count; i++)
    if (p->natives.data[i].nresults > p->max_results) p->max_results = p->natives.data[i].nresults;
  if (p->max_args > PLAN_MAX_WORDS || p->max_results > PLAN_MAX_WORDS) {
    buf_puts(why, "a step has too many arguments\n");
    return false;
  }
  return plan_verify(p, why) && !p->failed;
}

static WeftStatus run_region(Vm *vm, Region *r, u64 *slots, u32 *exit) { return plan_run(vm, r, r->code, slots, exit); }
static void print_region(const Region *r, Buf *out) { plan_print(r->code, out); }
static void free_region(Vm *vm, Region *r) { plan_free(vm, r->code); }

const Plan *plan_of(const Region *r) { return r->run == run_region ? r->code : NULL; }

static bool kernel_profile(const Region *r, u32 index, KernelProfile *out) {
  const Plan *p = r->code;
  if (index >= p->kernels.count - p->hidden) return false;
  const PlanKernel *k = &p->kernels.data[index];
  *out = (KernelProfile){.name = k->name, .runs = k->runs, .trips = k->trips, .bytes = k->bytes, .flops = k->flops,
                         .written = k->written, .ns = k->ns, .nodes = k->operations};
  if (k->nodes_count) out->node = p->nodes.data[k->nodes_first];
  return true;
}

/* Which kernels may go the short way (plan_run.c). */
static void find_plain(Plan *p) {
  for (u32 i = 0; i < p->kernels.count; i++) {
    PlanKernel *k = &p->kernels.data[i];
    u64 most = (PLAIN_UNITS - 1) / (k->bytes_per_trip / 8 + 1);
    /* each trip of the others may be long */
    k->plain_trips = !k->fn || k->launch || k->reductions ? -1 : k->grain > 1 || most < 1 ? (i64)most : 1;
  }
  for (u32 i = 0; i < p->steps.count; i++) {
    PlanStep *s = &p->steps.data[i];
    const PlanArg *a = &p->args.data[s->arg];
    p->products |= s->op == STEP_extern && s->aux == OP_matmul;
    if (s->op != STEP_kernel) continue;
    s->plain = s->nargs <= PLAIN_WORDS + 2 && a[0].kind == PA_const && a[0].imm == 0;
    for (u32 k = 1; k < s->nargs; k++) {
      bool direct = a[k].kind == PA_slot || a[k].kind == PA_const;
      s->plain &= direct ||
                  (k > 1 && (a[k].kind == PA_out || (a[k].kind == PA_data && p->slots.data[a[k].slot].array)));
    }
  }
}

bool plan_names_slot(const Plan *p, const PlanStep *s, u32 slot) {
  if (plan_step_has(s->op, 'd') && s->dst == slot) return true;
  if (plan_step_has(s->op, 's') && s->src == slot) return true;
  for (u32 i = 0; i < s->nargs; i++)
    if (p->args.data[s->arg + i].kind != PA_const && p->args.data[s->arg + i].slot == slot) return true;
  for (u32 i = 0; (s->op == STEP_native || s->op == STEP_extern) && i < s->nlist; i++)
    if (p->ids.data[s->list + i] == slot) return true;
  return false;
}

/* The word of a kernel's arguments that is this array; 0: there is none, or several. */
static u32 word_of(const Plan *p, const PlanStep *s, u32 slot) {
  u32 word = 0, found = 0;
  for (u32 k = 2; k < s->nargs; k++) {
    const PlanArg *a = &p->args.data[s->arg + k];
    if (a->kind == PA_data && a->slot == slot) word = k, found++;
    else if (a->kind != PA_const && a->slot == slot) found += 2;
  }
  return found == 1 ? word : 0;
}

/* The kernel that takes what a product gives (step `at`), and after which nothing reads it; steps between them only
 * make room and sizes. */
static PlanStep *taker_of(Plan *p, u32 at, u32 *word) {
  u32 slot = p->steps.data[at].dst;
  PlanStep *taker = NULL;
  for (u32 i = at + 1; i < p->steps.count; i++) {
    PlanStep *s = &p->steps.data[i];
    bool named = plan_names_slot(p, s, slot);
    switch (s->op) {
      case STEP_size: case STEP_const: case STEP_copy: case STEP_number: case STEP_dim: case STEP_alloc:
        if (named) return NULL;
        break;
      case STEP_dense:
        if (named && (s->dst != s->src || taker)) return NULL;
        break;
      case STEP_donate:
        if (named && (s->dst == slot || taker || word_of(p, s, slot))) return NULL;
        break;
      case STEP_free:
        if (named) return taker;
        break;
      case STEP_kernel:
        if (!taker) {
          if (!(*word = word_of(p, s, slot))) return NULL;
          taker = s;
        } else if (named) {
          return NULL;
        }
        break;
      default: return NULL;
    }
  }
  return NULL;
}

/* Products that a device may make together with the kernel behind them. */
static void find_handed_on(Plan *p) {
  for (u32 i = 0; i < p->steps.count; i++) {
    PlanStep *s = &p->steps.data[i], *taker;
    u32 word = 0;
    if (s->op != STEP_extern || s->aux != OP_matmul || s->nlist || !(taker = taker_of(p, i, &word))) continue;
    s->handed_on = true;
    p->kernels.data[taker->index].product = word - 1;
  }
}

void plan_install(Region *r, Plan *p) {
  find_plain(p);
  if (p->products) find_handed_on(p);
  r->code = p;
  r->nslots = p->slots.count;
  r->run = run_region;
  r->print = print_region;
  r->destroy = free_region;
  r->kernel = kernel_profile;
  r->bytes = p->code_bytes + p->arena.total;
  r->kernels = p->kernels.count - p->hidden;
  r->natives = p->natives.count;
  r->externs = 0;
  for (u32 i = 0; i < p->steps.count; i++) {
    u8 op = p->steps.data[i].op;
    r->externs += op == STEP_extern || op == STEP_index || op == STEP_update;
  }
}
