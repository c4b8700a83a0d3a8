/* export.c — trace.export: captures a function whole, reading nothing but its arguments, and gives the graph as text
 * and as a function that runs it and nothing else. */
#include "tracer/report/export.h"

#include <string.h>

#include "tracer/report/explain.h"
#include "tracer/tier/tier.h"

static void type_line(const Graph *g, ValueId v, Buf *out) {
  const ArrayType *t = value_type(g, v);
  buf_printf(out, "%s[", dtype_name(t->dtype));
  for (u32 d = 0; d < t->rank; d++) {
    if (d) buf_puts(out, ", ");
    size_print(&g->sizes, t->dims[d], out);
  }
  buf_puts(out, t->weak ? "] weak\n" : "]\n");
}

typedef struct OutputLines {
  const Graph *g;
  Buf *out;
} OutputLines;

static void output_line(void *ctx, u32 value) {
  OutputLines *o = ctx;
  if (!value_is_token(o->g, value)) type_line(o->g, value, o->out);
}

void export_seen(Exported *x, const Graph *g) {
  x->text.len = x->inputs.len = x->outputs.len = 0;
  graph_print(g, NULL, &x->text);
  for (u32 i = 0; i < g->inputs.count; i++) {
    const GraphInput *in = &g->inputs.data[i];
    if (in->input == UINT32_MAX) continue;
    source_print(&g->guards, g->guards.inputs.data[in->input].source, &x->inputs);
    buf_puts(&x->inputs, ": ");
    type_line(g, in->value, &x->inputs);
  }
  OutputLines o = {g, &x->outputs};
  graph_exit_values(g, g->blocks.data[1].exit, output_line, &o);
}

/* ---- running --------------------------------------------------------------------------------- */

static WeftStatus run(Vm *vm, void *ctx, const Value *args, u32 nargs, Value *out) {
  Exported *x = ctx;
  Tracer *t = tracer_of(vm);
  PlaceTable *places = t->private_places;
  bool pinned = t->demand.pinned;
  t->private_places = &x->places;
  t->demand.pinned = true;
  WeftStatus status = demand_call(t, "trace.export", x->fn, args, NULL, nargs, out);
  t->demand.pinned = pinned;
  t->private_places = places;
  return status;
}

static void released(void *ctx) {
  Exported *x = ctx;
  Vm *vm = x->vm;
  Tracer *t = tracer_of(vm);
  if (x->next) x->next->prev = x->prev;
  if (x->prev) x->prev->next = x->next;
  else if (t) t->exports = x->next;
  places_free(vm, &x->places);
  buf_free(&x->text);
  buf_free(&x->inputs);
  buf_free(&x->outputs);
  buf_free(&x->guards);
  value_drop(vm, x->fn);
  mem_free(&vm->alloc, x, sizeof *x);
}

/* ---- the record ------------------------------------------------------------------------------ */

static bool export_put(Vm *vm, Value *rec, const char *key, Value v) { /* consumes v */
  Name name = name_cstr(&vm->names, key);
  if (name) return record_set(vm, rec, name, v);
  value_drop(vm, v);
  return false;
}

static bool put_lines(Vm *vm, Value *rec, const char *key, Buf *lines) {
  Value list = value_nil(), line;
  if (lines->failed || !list_new(vm, 4, &list)) return false;
  const char *at = buf_text(lines), *end = at + lines->len;
  while (at < end) {
    const char *nl = memchr(at, '\n', (size_t)(end - at));
    if (!text_new(vm, at, (size_t)(nl - at), &line)) {
      value_drop(vm, list);
      return false;
    }
    if (!list_push(vm, &list, line)) return false;
    at = nl + 1;
  }
  return export_put(vm, rec, key, list);
}

static void guard_lines(void *ctx, Place *p) {
  Exported *x = ctx;
  for (u32 i = 0; i < p->cache.entries.count; i++)
    for (u32 k = 0; k < guard_prog_count(p->cache.entries.data[i]->prog); k++) {
      guard_print(p->cache.entries.data[i]->prog, k, &x->guards);
      buf_putc(&x->guards, '\n');
    }
}

static WeftStatus record_of(Vm *vm, Exported *x, Value run_fn, Value *out) {
  Value text;
  *out = value_nil();
  places_each(&x->places, guard_lines, x);
  bool ok = !x->text.failed && record_new(vm, out) && text_new(vm, buf_text(&x->text), x->text.len, &text) &&
            export_put(vm, out, "text", text) && put_lines(vm, out, "inputs", &x->inputs) &&
            put_lines(vm, out, "outputs", &x->outputs) && put_lines(vm, out, "guards", &x->guards) &&
            export_put(vm, out, "run", value_keep(run_fn));
  if (ok) return WEFT_OK;
  value_drop(vm, *out);
  *out = value_nil();
  return vm->error.raised ? WEFT_ERROR : vm_error_memory(vm);
}

WeftStatus tracer_export(Vm *vm, Value fn, const Value *args, u32 nargs, Value *out) {
  Tracer *t = tracer_of(vm);
  if (!t->backend) return vm_error(vm, EK_unsupported, "trace.export: nothing is captured: the backend is eager");
  if (vm->ambient & AMBIENT_TAPE)
    return vm_error(vm, EK_unsupported, "trace.export: is not supported under a derivative");
  if (t->explain || t->demand.exported)
    return vm_error(vm, EK_unsupported, "trace.export: is not supported inside trace.explain or itself");
  if (fn.kind != V_FN || fn.fn->kind == FN_BUILTIN || fn.fn->kind == FN_HOST)
    return vm_error(vm, EK_type, "trace.export: needs a function written in Weft: write x => f(x)");
  Exported *x = mem_alloc_zero(&vm->alloc, sizeof *x);
  if (!x) return vm_error_memory(vm);
  x->vm = vm;
  x->fn = value_keep(fn);
  buf_init(&x->text, &vm->alloc);
  buf_init(&x->inputs, &vm->alloc);
  buf_init(&x->outputs, &vm->alloc);
  buf_init(&x->guards, &vm->alloc);
  x->next = t->exports;
  if (x->next) x->next->prev = x;
  t->exports = x;
  PlaceTable *places = t->private_places;
  Value result, run_fn;
  t->private_places = &x->places;
  t->demand.exported = x;
  WeftStatus status = demand_call(t, "trace.export", fn, args, NULL, nargs, &result);
  t->demand.exported = NULL;
  t->private_places = places;
  if (status == WEFT_OK) value_drop(vm, result);
  HostFn host = {.name = "run", .call = run, .ctx = x, .release = released};
  if (status == WEFT_OK && !x->text.len && !x->text.failed)
    status = vm_error(vm, EK_unsupported, "trace.export: nothing was captured here");
  if (status != WEFT_OK || !fn_host(vm, &host, &run_fn)) {
    released(x);
    return WEFT_ERROR;
  }
  status = record_of(vm, x, run_fn, out);
  value_drop(vm, run_fn);
  return status;
}
