/* marks.c — sizes that a program fixes (trace.mark_static) or forbids to be fixed (trace.mark_dynamic). */
#include <stdio.h>

#include "lang/mechanisms.h"
#include "tracer/record/record.h"
#include "tracer/tier/tier.h"
#include "tracer/record/absval_use.h"

static const char *param_text(Vm *vm, const Code *code, u32 arg, char *buf, size_t room) {
  Name n = code->proto->params[arg].name;
  if (n) snprintf(buf, room, "%s", name_text(&vm->names, n));
  else snprintf(buf, room, "argument %u", arg);
  return buf;
}

/* The size that a mark names, of a value that stands in its parameter. */
static bool marked_size(Recorder *r, const SizeMarkRow *m, Av value, Dim *out) {
  Av a = value ? av_force(r, value) : 0;
  ValueId v = a ? av_value(r, a) : 0;
  if (!v) return false;
  const ArrayType *type = value_type(r->g, v);
  if (!type) return false;
  if (type->rank == 0) return dtype_kind(type->dtype) == DK_INT && value_dim(r->g, v, out) && *out != DIM_NONE;
  i64 axis = m->axis < 0 ? m->axis + (i64)type->rank : m->axis;
  if (axis < 0 || axis >= (i64)type->rank) return false;
  *out = type->dims[axis];
  return true;
}

bool marks_apply(Recorder *r, const Code *code, const Av *regs) {
  const Demand *d = &r->tracer->demand;
  for (u32 i = 0; i < d->marks.count && MECHANISM(r->vm, marks_count); i++) {
    const SizeMarkRow *m = &d->marks.data[i];
    Dim size;
    i64 known;
    if (m->code != code->id || !marked_size(r, m, regs[m->arg], &size)) continue;
    if (m->dynamic) {
      if (size_is_unbacked(&r->g->sizes, size)) continue;
      if (!vec_push(&r->vm->alloc, &r->dynamic, (RecDynamic){size, i})) return false;
    } else if (!size_is_const(&r->g->sizes, size_resolve(&r->g->sizes, size), &known) &&
               !size_is_unbacked(&r->g->sizes, size) && size_hint(&r->g->sizes, size, &known)) {
      if (!guard_relation(&r->g->guards, &r->g->sizes, REL_eq, size, size_const(&r->g->sizes, known),
                          "trace.mark_static", m->at))
        return false;
    }
  }
  return !r->failed && !r->g->failed;
}

typedef struct Mentions {
  u32 sym;
  bool yes;
} Mentions;

static void mention(void *ctx, u32 sym) {
  Mentions *m = ctx;
  m->yes |= m->sym == sym;
}

/* The first guard that says what the symbols of a size are. */
static const Guard *culprit(const Graph *g, Dim size) {
  Mentions m = {UINT32_MAX, false};
  if (!size_is_sym(&g->sizes, size, &m.sym)) return NULL;
  for (u32 i = 0; i < g->guards.guards.count; i++) {
    const Guard *x = &g->guards.guards.data[i];
    if (x->kind != GUARD_size || x->rel != REL_eq) continue;
    size_symbols(&g->sizes, x->a, mention, &m);
    size_symbols(&g->sizes, x->b, mention, &m);
    if (m.yes) return x;
  }
  return NULL;
}

bool marks_broken(Recorder *r) {
  Vm *vm = r->vm;
  for (u32 i = 0; i < r->dynamic.count; i++) {
    const SizeMarkRow *m = &r->tracer->demand.marks.data[r->dynamic.data[i].mark];
    i64 fixed;
    if (!size_is_const(&r->g->sizes, size_resolve(&r->g->sizes, r->dynamic.data[i].size), &fixed)) continue;
    const Guard *x = culprit(r->g, r->dynamic.data[i].size);
    const Code *code = NULL;
    for (u32 k = 0; k < r->g->frames.count && !code; k++)
      if (r->g->frames.data[k].code && r->g->frames.data[k].code->id == m->code) code = r->g->frames.data[k].code;
    char name[80] = "an argument";
    if (code) param_text(vm, code, m->arg, name, sizeof name);
    char text[128] = "";
    if (x && x->what) snprintf(text, sizeof text, ", because of %.100s", x->what);
    vm_error_at(vm, EK_shape, x && x->because.file ? x->because : m->at,
                "trace.mark_dynamic: axis %d of %s is fixed to %lld%s", m->axis, name, (long long)fixed, text);
    return true;
  }
  return false;
}

/* ---- marking --------------------------------------------------------------------------------- */

WeftStatus tracer_mark(Vm *vm, const Fn *fn, u32 arg, i32 axis, bool dynamic) {
  Tracer *t = tracer_of(vm);
  Code *code = fn->code;
  SizeMarkRow row = {code->id, arg, axis, dynamic, code->proto->span};
  u32 i = 0;
  while (i < t->demand.marks.count && !(t->demand.marks.data[i].code == code->id &&
                                        t->demand.marks.data[i].arg == arg && t->demand.marks.data[i].axis == axis))
    i++;
  if (i < t->demand.marks.count) t->demand.marks.data[i] = row;
  else if (!vec_push(&vm->alloc, &t->demand.marks, row)) return vm_error_memory(vm);
  places_forget(vm, t, code); /* what was compiled without the mark */
  if (code->proto->nsites) {
    code->sites[0].count = UINT32_MAX; /* captured at the next call */
    code->sites[0].flags &= (u16)~SITE_COLD;
  }
  return WEFT_OK;
}

void marks_code_freed(Tracer *t, const Code *code) {
  u32 n = 0;
  for (u32 i = 0; i < t->demand.marks.count; i++)
    if (t->demand.marks.data[i].code != code->id) t->demand.marks.data[n++] = t->demand.marks.data[i];
  t->demand.marks.count = n;
}
