/* verify_backend.c — the backend `verify`: a region runs by the graph's interpreter, then compiled, and what the exit
 * needs must be the same to the last bit (see exits.h): a difference is one of the compiler's. Whether the graph
 * says what the program does is another question: rehearse.c compares with the bytecode interpreter. */
#include <string.h>

#include "lang/mechanisms.h"
#include "tracer/record/record.h"
#include "tracer/report/rehearse.h"
#include "tracer/tracer.h"

typedef struct Reads {
  GraphRun *run;
  ValueId value;
  i64 most; /* items of it that the exit reads; -1: none */
} Reads;

static void read_items(void *ctx, u32 value, RecipeId count) {
  Reads *r = ctx;
  const Graph *g = r->run->graph;
  const Recipe *n = &g->exits.recipes.data[count];
  Value v = value_hole(), made;
  i64 items = INT64_MAX;
  if (value != r->value) return;
  if (n->kind == RCP_size && run_size(r->run, n->dim, &items) != WEFT_OK) vm_error_forget(r->run->vm);
  if (n->kind == RCP_value && value_const(g, n->a, &made)) v = made;
  else if (n->kind == RCP_value) v = r->run->values[n->a];
  if (v.kind == V_NUM && (!num_as_index(v, &items) || items < 0)) items = INT64_MAX;
  if (items > r->most) r->most = items;
}

/* How many items of a value the exit reads. An update in place may write behind the items that a list has at the exit
 * (schedule_writes_behind): nobody reads those. What the exit does not name itself is there to make what it names. */
static i64 items_read(GraphRun *run, const Region *region, u32 exit, ValueId value) {
  const RegionExit *e = &region->exits[exit];
  const Graph *g = region->graph;
  Reads r = {run, value, -1};
  exit_counted(&g->exits, exit, read_items, &r);
  for (u32 i = 0; i < e->bind_count && r.most >= 0; i++) { /* operands of what is made of it */
    RegionBind b = region->binds[e->bind_first + i];
    NodeId n = b.slot == BIND_NODE ? value_node(g, b.value) : 0;
    for (u32 k = 0; n && k < graph_node_at(g, n)->operand_count; k++)
      if (node_operand(g, n, k) == value) r.most = -1;
  }
  return r.most < 0 ? INT64_MAX : r.most;
}

/* What the exit binds, in both runs. The error names the first value that differs. */
static WeftStatus compare(Vm *vm, Region *region, GraphRun *run, u32 exit, const u64 *slots) {
  const RegionExit *e = &region->exits[exit];
  for (u32 i = 0; i < e->bind_count; i++) {
    RegionBind b = region->binds[e->bind_first + i];
    if (b.slot == BIND_NODE || run->values[b.value].kind == V_HOLE) continue;
    Value v = value_of_slot(region->graph, b.value, slots[b.slot]);
    if (v.kind != V_NUM && !slots[b.slot]) continue;
    if (!MECHANISM(vm, verify_compares) || values_same(vm, v, run->values[b.value])) continue;
    if (values_same_to(vm, v, run->values[b.value], items_read(run, region, exit, b.value))) continue;
    char compiled[SHOWN], interpreted[SHOWN];
    value_show(vm, v, compiled);
    value_show(vm, run->values[b.value], interpreted);
    return vm_error(vm, EK_assert,
                    "verify: region %s, exit %u: compiled code and the graph give different values of %%%u: %s and %s",
                    region->name, exit, b.value, compiled, interpreted);
  }
  return WEFT_OK;
}

/* Copies of the arrays among the inputs, by their number; holes for the rest. The caller frees them with
 * drop_copies. */
static Value *copy_inputs(Vm *vm, const Graph *g, const u64 *slots) {
  Value *copies = mem_alloc_zero(&vm->alloc, sizeof *copies * (g->inputs.count + 1));
  for (u32 i = 0; i < g->inputs.count && copies; i++) copies[i] = value_hole();
  for (u32 i = 0; i < g->inputs.count && copies; i++) {
    const GraphInput *in = &g->inputs.data[i];
    if (in->input == UINT32_MAX || !slots[in->input]) continue;
    Value v = value_of_slot(g, in->value, slots[in->input]);
    if (v.kind != V_ARRAY || array_device(v.array) != DEV_CPU) continue;
    if (array_copy(vm, v.array, &copies[i]) == WEFT_OK) {
      copies[i].flags |= v.flags & VF_WEAK;
      continue;
    }
    copies[i] = value_hole();
    vm_error_forget(vm); /* not compared */
  }
  return copies;
}

static void drop_copies(Vm *vm, const Graph *g, Value *copies) {
  for (u32 i = 0; i < g->inputs.count && copies; i++) value_drop(vm, copies[i]);
  mem_free(&vm->alloc, copies, sizeof *copies * (g->inputs.count + 1));
}

/* Nobody may have written to an input: the graph's run holds them all, so they are shared. */
static WeftStatus compare_inputs(Vm *vm, const Region *region, const GraphRun *run, const Value *copies) {
  const Graph *g = region->graph;
  for (u32 i = 0; i < g->inputs.count; i++) {
    if (copies[i].kind == V_HOLE || !MECHANISM(vm, verify_inputs) ||
        values_same(vm, copies[i], run->values[g->inputs.data[i].value]))
      continue;
    Buf name;
    buf_init(&name, &vm->alloc);
    source_print(&g->guards, g->guards.inputs.data[g->inputs.data[i].input].source, &name);
    WeftStatus status = vm_error(vm, EK_assert, "verify: region %s: compiled code wrote to its input %s", region->name,
                                 buf_text(&name));
    buf_free(&name);
    return status;
  }
  return WEFT_OK;
}

typedef struct Seen {
  const GraphRun *run;
  bool missing; /* a number that the graph's run does not know */
} Seen;

static void look(void *ctx, u32 sym) {
  Seen *s = ctx;
  s->missing |= !s->run->known[sym];
}

/* Does an expression of the graph leave the integers for these inputs: integers of the program wrap in the graph's
 * run, and compiled code, which computes all of them before anything else, gives the region up where it was
 * entered, or at the head of the loop that stands first. */
static bool some_size_overflows(const GraphRun *run) {
  const Graph *g = run->graph;
  for (u32 i = 1; i < g->values.count; i++) {
    const GraphValue *v = &g->values.data[i];
    Seen s = {.run = run};
    i64 n;
    if (v->origin != GV_size) continue;
    size_symbols(&g->sizes, v->dim, look, &s);
    if (!s.missing && !size_eval(&g->sizes, v->dim, run->syms, &n)) return true;
  }
  return false;
}

/* Inputs that were given to the region, where compiled code did not run: those that the exit does not bind. */
static void drop_given(Vm *vm, const Region *region, u64 *slots, u32 exit) {
  const GuardSet *g = &region->graph->guards;
  const RegionExit *e = &region->exits[exit];
  for (u32 i = 0; i < g->inputs.count; i++) {
    bool bound = !g->inputs.data[i].donate || !slots[i];
    for (u32 k = 0; k < e->bind_count && !bound; k++) bound = region->binds[e->bind_first + k].slot == i;
    if (bound) continue;
    value_drop(vm, value_obj(V_ARRAY, (void *)(uintptr_t)slots[i]));
    slots[i] = 0;
  }
}

static bool takes_from_device(const Graph *g) {
  for (u32 i = 0; i < g->inputs.count; i++)
    if (!value_is_token(g, g->inputs.data[i].value) && value_type(g, g->inputs.data[i].value)->device != DEV_CPU)
      return true;
  return false;
}

static WeftStatus run_both(Vm *vm, Region *region, GraphRun *run, u64 *slots, u32 *exit) {
  u32 expected = region->graph->entry_exit;
  u64 refusals = vm->refusals, full = vm->counters.at[STAT_undo_full];
  WeftStatus status = run_root(run, &expected);
  if (status != WEFT_OK) { /* a limit: nothing to compare, and nothing lies where compiled code would have left it */
    if (*exit == NO_EXIT) *exit = expected;
    drop_given(vm, region, slots, *exit);
    return status;
  }
  Value *copies = copy_inputs(vm, region->graph, slots);
  status = region->checked(vm, region, slots, exit);
  if (status == WEFT_OK && copies) status = compare_inputs(vm, region, run, copies);
  drop_copies(vm, region->graph, copies);
  /* compiled code nests deeper, and needs less memory; there is not always room for what it notes */
  if (run->too_deep || vm->refusals != refusals || vm->counters.at[STAT_undo_full] != full) return status;
  u32 taken = exit_original(&region->graph->exits, *exit);
  if (status == WEFT_OK && taken != expected &&
      (taken == region->graph->entry_exit || region->graph->exits.exits.data[taken].kind == EXIT_check) &&
      some_size_overflows(run))
    return WEFT_OK;
  /* code for the processor that comes upon elements of a device leaves what follows to the interpreter, too */
  if (status == WEFT_OK && taken != expected && region->graph->exits.exits.data[taken].kind == EXIT_check &&
      takes_from_device(region->graph))
    return WEFT_OK;
  bool checks = taken != expected && region->graph->exits.exits.data[taken].kind == EXIT_check &&
                region->graph->exits.exits.data[expected].kind == EXIT_check;
  /* both leave what follows to the interpreter, which says whether the state is one of the program's */
  if (status == WEFT_OK && checks) return WEFT_OK;
  if (status == WEFT_OK && taken != expected)
    status = vm_error(vm, EK_assert, "verify: region %s: compiled code leaves by exit %u, the graph by exit %u",
                      region->name, *exit, expected);
  return status == WEFT_OK ? compare(vm, region, run, *exit, slots) : status;
}

static WeftStatus verify_run(Vm *vm, Region *region, u64 *slots, u32 *exit) {
  if (graph_calls_host(region->graph)) return region->checked(vm, region, slots, exit); /* once */
  GraphRun run;
  *exit = region->graph->entry_exit;
  if (run_init(&run, vm, region->graph) != WEFT_OK) { /* out of memory */
    drop_given(vm, region, slots, *exit);
    return WEFT_ERROR;
  }
  run_inputs(&run, slots);
  run.silent = true;
  WeftStatus status = run_both(vm, region, &run, slots, exit);
  run_free(&run);
  return status;
}

static BackendResult verify_compile(Vm *vm, const Backend *self, Region *r, const CompileLimits *limits, Buf *why) {
  const Backend *b = tracer_of(vm)->verified;
  (void)self;
  if (!b) {
    buf_puts(why, "there is no backend mir to verify");
    return BACKEND_unsupported;
  }
  CompileLimits exact = limits ? *limits : (CompileLimits){0};
  exact.exact = true;
  BackendResult made = b->compile(vm, b, r, &exact, why);
  if (made == BACKEND_ok) {
    r->checked = r->run;
    r->run = verify_run;
  }
  return made;
}

const Backend backend_verify = {.name = "verify", .compile = verify_compile};
