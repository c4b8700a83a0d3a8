/* guards.c — sources, and the set of guards and inputs that a trace collects (see guards.h). */
#include "guards/guards_inner.h"
#include "lang/mechanisms.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  u8 cost;
} kinds[GUARD_COUNT] = {
#define GUARD(name, cost, meaning) {#name, cost},
#include "guards/guards.def"
};

void guards_init(GuardSet *g, Allocator *alloc) {
  *g = (GuardSet){.alloc = alloc, .sources = {.alloc = alloc}};
  arena_init(&g->sources.arena, alloc);
}

void guards_free(GuardSet *g) {
  if (!g->alloc) return;
  vec_free(g->alloc, &g->sources.items);
  vec_free(g->alloc, &g->sources.modules);
  vec_free(g->alloc, &g->guards);
  vec_free(g->alloc, &g->inputs);
  arena_free(&g->sources.arena);
  guards_init(g, g->alloc);
}

GuardMark guards_mark(const GuardSet *g) {
  return (GuardMark){g->sources.items.count, g->sources.modules.count, g->guards.count, g->inputs.count};
}

void guards_rollback(GuardSet *g, GuardMark m) {
  Source *items = g->sources.items.data;
  /* with its source */
  bool stays = !MECHANISM(g, guards_roll_back) && g->guards.count > m.guards &&
               g->guards.data[m.guards].kind == GUARD_tag;
  g->inputs.count = m.inputs;
  for (; g->guards.count > m.guards + stays; g->guards.count--) {
    const Guard *x = &g->guards.data[g->guards.count - 1];
    items[x->source].guards = x->next;
  }
  if (stays) return;
  for (; g->sources.items.count > m.sources && g->sources.items.count > 1; g->sources.items.count--) {
    const Source *s = &items[g->sources.items.count - 1];
    items[s->parent].part = s->next;
  }
  g->sources.modules.count = m.modules;
}

static bool guards_refused(GuardSet *g) {
  g->failed = true;
  return false;
}

/* ---- sources -------------------------------------------------------------------------------------- */

static bool has_none(GuardSet *g) {
  return g->sources.items.count || vec_push(g->alloc, &g->sources.items, (Source){0}) || guards_refused(g);
}

enum { SAID_MOST = 72 }; /* letters of a name */

static void say_name(char *out, const char *before, const char *name, const char *behind) {
  if (!name) name = "?";
  size_t first = strlen(before), len = strnlen(name, SAID_MOST);
  memcpy(out, before, first);
  memcpy(out + first, name, len);
  strcpy(out + first + len, behind);
}

static SourceId add_source(GuardSet *g, Source s, const char *name) {
  SourceTree *t = &g->sources;
  if (!has_none(g)) return 0;
  for (SourceId i = t->items.data[s.parent].part; i; i = t->items.data[i].next) {
    const Source *o = &t->items.data[i];
    if (o->kind == s.kind && o->index == s.index && o->module == s.module) return i;
  }
  char text[96];
  switch (s.kind) {
    case SRC_arg: name_numbered(text, "arg", s.index); break;
    case SRC_reg: name_numbered(text, "reg", s.index); break;
    case SRC_capture0: name_numbered(text, "capture", s.index); break;
    case SRC_global: say_name(text, "global \"", name, "\""); break;
    case SRC_ambient: memcpy(text, "ambient", 8); break;
    case SRC_host: name_numbered(text, "host", s.index); break;
    case SRC_field: {
      bool plain = name && *name && !(*name >= '0' && *name <= '9');
      for (const char *c = name; plain && *c; c++)
        plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_';
      say_name(text, plain ? "." : "[\"", name, plain ? "" : "\"]");
      break;
    }
    case SRC_item: snprintf(text, sizeof text, "[%u]", s.index); break;
    case SRC_capture:
    case SRC_column:
    case SRC_size: name_numbered(text, "", s.index); break;
    default: text[0] = 0; break;
  }
  s.label = arena_copy(&t->arena, text, strlen(text));
  s.next = t->items.data[s.parent].part;
  if (!s.label || !vec_push(g->alloc, &t->items, s)) return guards_refused(g);
  return t->items.data[s.parent].part = t->items.count - 1;
}

SourceId source_root(GuardSet *g, SourceKind kind, u32 index) {
  return add_source(g, (Source){.kind = (u8)kind, .index = index}, NULL);
}

SourceId source_global(GuardSet *g, struct Module *m, u32 slot, const char *name) {
  SourceTree *t = &g->sources;
  u32 module = 0;
  while (module < t->modules.count && t->modules.data[module] != m) module++;
  if (module == t->modules.count && !vec_push(g->alloc, &t->modules, m)) return guards_refused(g);
  return add_source(g, (Source){.kind = SRC_global, .index = slot, .module = module}, name);
}

SourceId source_step(GuardSet *g, SourceId parent, SourceKind kind, u32 index, const char *name) {
  if (!parent) return 0;
  return add_source(g, (Source){.kind = (u8)kind, .parent = parent, .index = index}, name);
}

static const char *const step_names[SRC_COUNT] = {
#define SOURCE(name, form, meaning) #name,
#include "guards/guards.def"
};

enum { SOURCE_PRINT_DEPTH = 64 };

/* What a `for` keeps in hidden registers. */
static const char *loop_part(const Proto *p, u32 reg, u32 pc) {
  static const char *const parts[] = {"loop items", "loop position", "loop count"};
  for (u32 i = 1; i < p->nextents; i++) {
    const Extent *e = &p->extents[i];
    if (e->kind != EXT_FOR || pc < e->begin || pc >= e->end || e->head >= p->ncode ||
        ins_op(p->code[e->head]) != BC_fornext)
      continue;
    u32 first = ins_a(p->code[e->head]);
    if (reg >= first && reg < first + COUNT_OF(parts)) return parts[reg - first];
  }
  return NULL;
}

/* The name that the program has for a root; NULL: none. */
static const char *root_name(const GuardSet *g, const Source *s) {
  const Proto *p = g->code ? g->code->proto : NULL;
  Name name = 0;
  if (s->kind == SRC_global && g->code) {
    const Module *m = s->module < g->sources.modules.count ? g->sources.modules.data[s->module] : NULL;
    name = m && s->index < m->scope.slots.count ? m->scope.slots.data[s->index] : 0;
  } else if (p && s->kind == SRC_arg && s->index < p->nparams) {
    name = p->params[s->index].name;
  } else if (p && s->kind == SRC_reg) {
    const char *part = loop_part(p, s->index, g->pc);
    if (part) return part;
    name = proto_local(p, s->index, g->pc);
  } else if (p && s->kind == SRC_capture0 && s->index < p->ncaptures) {
    name = p->captures[s->index].name;
  }
  return name ? name_text(g->names, name) : NULL;
}

static void print_source(const GuardSet *g, SourceId s, bool say, Buf *out) {
  const Source *items = g->sources.items.data;
  u32 path[SOURCE_PRINT_DEPTH], n = 0;
  for (SourceId i = s; i; i = items[i].parent) {
    if (n == SOURCE_PRINT_DEPTH) {
      buf_puts(out, "...");
      return;
    }
    path[n++] = i;
  }
  if (n > 1 && !MECHANISM(g, sources_are_paths)) path[0] = path[n - 1], n = 1;
  if (n == 0) {
    buf_puts(out, "none");
    return;
  }
  /* steps written as functions open outermost first */
  for (u32 i = 0; i < n; i++) {
    u8 k = items[path[i]].kind;
    if (items[path[i]].parent && k != SRC_field && k != SRC_item) buf_printf(out, "%s(", step_names[k]);
  }
  for (u32 i = n; i-- > 0;) {
    const Source *x = &items[path[i]];
    const char *name = say && !x->parent ? root_name(g, x) : NULL;
    if (name) buf_puts(out, name);
    else if (!x->parent || x->kind == SRC_field || x->kind == SRC_item) buf_puts(out, x->label);
    else if (x->label[0]) buf_printf(out, ", %s)", x->label);
    else buf_putc(out, ')');
  }
}

void source_print(const GuardSet *g, SourceId s, Buf *out) { print_source(g, s, false, out); }
void source_say(const GuardSet *g, SourceId s, Buf *out) { print_source(g, s, true, out); }

bool root_read(Vm *vm, const GuardSet *g, const Source *s, const Frame *f, Value *out) {
  switch (s->kind) {
    case SRC_arg:
    case SRC_reg: *out = f->base[s->index]; return true;
    case SRC_capture0:
      if (!f->fn || !f->fn->env || s->index >= f->fn->env->count) return false;
      *out = f->fn->env->slots[s->index];
      return true;
    case SRC_global: {
      const Module *m = g->sources.modules.data[s->module];
      if (!m || s->index >= m->slot_cap) return false;
      *out = m->slots[s->index].value;
      return true;
    }
    case SRC_ambient: *out = value_i64((i64)vm->ambient); return true;
    case SRC_host: return g->host_read && g->host_read(vm, s->index, out);
    default: return false;
  }
}

bool looked_into(Vm *vm, List *l) {
  bool raised = vm->error.raised;
  if (list_boxed(vm, l)) return true;
  if (!raised) vm_error_clear(vm);
  return false;
}

bool part_read(Vm *vm, SourceKind kind, u32 index, Value of, Value *out) {
  switch (kind) {
    case SRC_field: {
      const Value *v = value_field(of, index);
      if (v) *out = *v;
      return v;
    }
    case SRC_item:
      if (of.kind != V_LIST || index >= of.list->count || !looked_into(vm, of.list)) return false;
      *out = of.list->items[index];
      return true;
    case SRC_capture:
      if (of.kind != V_FN || of.fn->kind != FN_CLOSURE || !of.fn->env || index >= of.fn->env->count) return false;
      *out = of.fn->env->slots[index];
      return true;
    case SRC_size:
      if (of.kind != V_ARRAY || index >= array_rank(of.array)) return false;
      *out = value_weak_i64(of.array->geometry[index]);
      return true;
    case SRC_column: /* of the whole list or record: told apart when it is packed */
      *out = of;
      return of.kind == V_LIST || of.kind == V_RECORD;
    case SRC_len:
      if (of.kind == V_LIST) *out = value_weak_i64(of.list->count);
      else if (of.kind == V_TEXT) *out = value_weak_i64(of.text->count);
      else if (of.kind == V_RECORD) *out = value_weak_i64(of.record->shape->count);
      else return false;
      return true;
    case SRC_total: {
      u64 total;
      if (of.kind != V_LIST || !looked_into(vm, of.list)) return false;
      const Packed *given = rows_given(of.list, true);
      if (given) total = given->reads;
      else if (!rows_total(of.list->items, of.list->count, &total)) return false;
      *out = value_weak_i64((i64)total);
      return true;
    }
    case SRC_value:
      if (of.kind != V_REF) return false;
      *out = of.ref->value;
      return true;
    case SRC_start:
    case SRC_stop:
    case SRC_step:
      if (of.kind != V_RANGE) return false;
      *out = value_weak_i64(kind == SRC_start ? of.range->start : kind == SRC_stop ? of.range->stop : of.range->step);
      return true;
    case SRC_inner:
    case SRC_settings:
      if (of.kind != V_FN || of.fn->kind != FN_TRANSFORM) return false;
      *out = kind == SRC_inner ? of.fn->inner : of.fn->settings;
      return true;
    default: return false;
  }
}

bool source_read(Vm *vm, const GuardSet *g, const Frame *f, SourceId s, Value *out) {
  const Source *items = g->sources.items.data;
  /* from the root down: the path is found again for each step, since sources are seldom deep */
  u32 depth = 0;
  if (!s) return false;
  for (SourceId i = s; items[i].parent; i = items[i].parent) depth++;
  for (u32 left = depth;; left--) {
    SourceId i = s;
    for (u32 k = 0; k < left; k++) i = items[i].parent;
    Value v;
    if (left == depth ? !root_read(vm, g, &items[i], f, &v) : !part_read(vm, items[i].kind, items[i].index, *out, &v))
      return false;
    *out = v;
    if (left == 0) return true;
  }
}

/* Relies on the sign of a range's step: where it is 1 on that. */
bool range_step_sign(GuardSet *g, SizePool *p, Dim step, i64 now, Span because) {
  if (now == 1) return guard_relation(g, p, REL_eq, step, 1, "range step", because);
  if (now > 0) return guard_relation(g, p, REL_lt, 0, step, "range step", because);
  return guard_relation(g, p, REL_lt, step, 0, "range step", because) &&
         guard_relation(g, p, REL_lt, size_const(p, -SIZE_LIMIT), step, "range step", because);
}

/* ---- inputs --------------------------------------------------------------------------------------- */

u32 guard_input(GuardSet *g, SourceId s, InputForm form) {
  for (u32 i = 0; i < g->inputs.count && MECHANISM(g, input_dedup); i++)
    if (g->inputs.data[i].source == s && g->inputs.data[i].form == form) return i;
  if (!s || !vec_push(g->alloc, &g->inputs, (GuardInput){.source = s, .form = (u8)form, .sym = UINT32_MAX})) {
    g->failed = true;
    return UINT32_MAX;
  }
  return g->inputs.count - 1;
}

/* ---- guards --------------------------------------------------------------------------------------- */

static bool same_guard(const Guard *a, const Guard *b) {
  if (a->kind != b->kind || a->source != b->source || a->second != b->second || a->rel != b->rel ||
      a->value_kind != b->value_kind || a->a != b->a || a->b != b->b || a->word != b->word || a->mask != b->mask ||
      a->text_len != b->text_len || a->key_count != b->key_count || a->shape != b->shape ||
      a->pointer != b->pointer || a->host != b->host || a->host_ctx != b->host_ctx)
    return false;
  if (a->text_len && memcmp(a->text, b->text, a->text_len) != 0) return false;
  return a->key_count == 0 || memcmp(a->keys, b->keys, sizeof *a->keys * a->key_count) == 0;
}

/* Copies what the guard points to into the set's arena. */
static bool add_guard(GuardSet *g, Guard x) {
  if (g->failed || (x.kind != GUARD_ambient && x.kind != GUARD_size && !x.source)) return false;
  if (!has_none(g)) return false;
  for (u32 i = g->sources.items.data[x.source].guards; i; i = g->guards.data[i - 1].next)
    if (same_guard(&g->guards.data[i - 1], &x)) return true;
  if (x.text && !(x.text = arena_copy(&g->sources.arena, x.text, x.text_len))) return guards_refused(g);
  if (x.keys) {
    Name *keys = arena_alloc(&g->sources.arena, sizeof *keys * (x.key_count + 1));
    if (!keys) return guards_refused(g);
    memcpy(keys, x.keys, sizeof *keys * x.key_count);
    x.keys = keys;
  }
  u32 *last = &g->sources.items.data[x.source].guards;
  x.next = *last;
  if (!vec_push(g->alloc, &g->guards, x)) return guards_refused(g);
  *last = g->guards.count;
  return true;
}

bool guard_tag(GuardSet *g, SourceId s, Value v, bool layout, Span because) {
  Guard x = {.kind = GUARD_tag, .source = s, .value_kind = v.kind, .because = because};
  if (v.kind == V_ARRAY && value_is_scalar(v)) { /* whether it is weak stands in the value */
    Guard word = {.kind = GUARD_tag, .source = s, .value_kind = V_NUM, .because = because, .word = value_tag(v),
                  .mask = UINT64_MAX};
    if (!add_guard(g, word)) return false;
  }
  if (v.kind == V_ARRAY) {
    x.word = v.array->tag;
    x.mask = layout ? UINT64_MAX : ~((u64)0xff << 32);
  } else {
    x.word = value_tag(v);
    x.mask = UINT64_MAX;
  }
  x.word &= x.mask;
  return add_guard(g, x);
}

bool guard_const(GuardSet *g, SourceId s, Value v, Span because) {
  Guard x = {.kind = GUARD_const, .source = s, .value_kind = v.kind, .mask = value_tag(v), .because = because};
  switch (v.kind) {
    case V_NIL:
    case V_HOLE:
    case V_DTYPE: break;
    case V_NUM: x.word = v.bits; break;
    case V_MODULE: x.word = v.bits; break;
    case V_TEXT:
      x.text = v.text->data;
      x.text_len = v.text->len;
      break;
    case V_FN:
      if (v.fn->kind == FN_BUILTIN) return guard_code(g, s, v.fn, because);
      return false;
    default: return false;
  }
  return !MECHANISM(g, constants_are_guarded) || add_guard(g, x);
}

bool guard_code(GuardSet *g, SourceId s, const Fn *fn, Span because) {
  Guard x = {.kind = GUARD_code, .source = s, .value_kind = fn->kind, .because = because};
  switch (fn->kind) {
    case FN_CLOSURE: x.word = fn->code->id; break;
    case FN_BUILTIN: x.word = fn->op; break;
    case FN_TRANSFORM: x.word = fn->transform; break;
    default: x.pointer = fn->host; break;
  }
  return !MECHANISM(g, functions_are_guarded) || add_guard(g, x);
}

bool guard_len(GuardSet *g, SourceId s, SizeRel rel, u64 n, Span because) {
  return add_guard(g, (Guard){.kind = GUARD_len, .source = s, .rel = (u8)rel, .word = n, .because = because});
}

/* The keys of records in a layout: nobody counts them there. Depth is bounded: rows_layout took it. */
static void keys_stay(Names *names, Value item) {
  const u32 n = item.kind == V_LIST ? item.list->count : item.kind == V_RECORD ? item.record->shape->count : 0;
  const Value *items = item.kind == V_LIST ? item.list->items : item.kind == V_RECORD ? item.record->items : NULL;
  for (u32 i = 0; i < n; i++) {
    if (item.kind == V_RECORD) name_stay(names, item.record->shape->keys[i]);
    keys_stay(names, items[i]);
  }
}

bool guard_rows(GuardSet *g, SourceId s, Value item, Span because) {
  Guard x = {.kind = GUARD_rows,
             .source = s,
             .value_kind = item.kind == V_TEXT ? V_TEXT : rows_keyed(item) ? V_RECORD : V_LIST,
             .word = value_tag(item),
             .because = because};
  RowLayout l;
  if (item.kind == V_LIST || item.kind == V_RECORD || item.kind == V_ARRAY || rows_mixed(item)) {
    if (!rows_layout(item, &l)) return false;
    if (g->names) keys_stay(g->names, item);
    x.word = l.words[0];
    x.text = (const char *)l.words;
    x.text_len = l.count * (u32)sizeof *l.words;
  }
  return add_guard(g, x);
}

bool guard_shape(GuardSet *g, SourceId s, const Record *r, bool all, Name key, Span because) {
  return add_guard(g, (Guard){.kind = GUARD_shape,
                              .source = s,
                              .rel = all,
                              .keys = all ? r->shape->keys : &key,
                              .key_count = all ? r->shape->count : 1,
                              .shape = all && r->shape->shared ? r->shape : NULL,
                              .because = because});
}

bool guard_cell(GuardSet *g, SourceId global, Span because) {
  if (!global) return false;
  const Source *s = &g->sources.items.data[global];
  const Module *m = s->kind == SRC_global ? g->sources.modules.data[s->module] : NULL;
  if (!m) return false;
  return add_guard(g, (Guard){.kind = GUARD_cell, .source = global, .word = m->slots[s->index].version,
                              .because = because});
}

bool guard_ambient(GuardSet *g, u64 word, Span because) {
  return !MECHANISM(g, ambient_guarded) ||
         add_guard(g, (Guard){.kind = GUARD_ambient, .word = word, .because = because});
}

bool guard_ident(GuardSet *g, SourceId a, SourceId b, bool same, Span because) {
  if (a == b) return same;
  return add_guard(g, (Guard){.kind = GUARD_ident,
                              .source = a < b ? a : b,
                              .second = a < b ? b : a,
                              .rel = same ? REL_eq : REL_ne,
                              .because = because});
}

bool guard_host(GuardSet *g, SourceId s, GuardHostFn fn, void *ctx, u64 data, Span because) {
  return add_guard(g, (Guard){.kind = GUARD_host, .source = s, .host = fn, .host_ctx = ctx, .word = data,
                              .because = because});
}

bool guard_relation(GuardSet *g, SizePool *p, SizeRel rel, Dim a, Dim b, const char *what, Span because) {
  SizeTruth t = size_prove(p, rel, a, b);
  if (t != TRUTH_unknown) return t == TRUTH_always;
  if (!add_guard(g, (Guard){.kind = GUARD_size, .rel = (u8)rel, .a = a, .b = b, .what = what, .because = because}))
    return false;
  if (size_assume(p, rel, a, b)) return true;
  g->failed |= p->failed;
  return false;
}

/* ---- sizes while tracing --------------------------------------------------------------------------- */

/* May a == b hold beside what is known? Two arms may need different things of one size: a check that can never hold,
 * since others stand before it, would leave the region in each run. */
static bool may_hold(SizePool *p, Dim a, Dim b) {
  SizeMark m = size_mark(p);
  bool may = size_assume(p, REL_eq, a, b);
  size_rollback(p, m);
  return may;
}

/* Answers by hint and makes the answer hold; `needed`: only a yes has to be made certain. */
static bool decide(GuardDims *d, SizeRel rel, Dim a, Dim b) {
  SizeTruth t = size_prove(d->sizes, rel, a, b);
  if (t != TRUTH_unknown) return t == TRUTH_always;
  if (!d->set) return false;
  a = size_resolve(d->sizes, a);
  b = size_resolve(d->sizes, b);
  bool late = size_is_unbacked(d->sizes, a) || size_is_unbacked(d->sizes, b);
  Dim rest = late ? size_sub(d->sizes, a, b) : DIM_NONE;
  /* on entry it is asked of the rest of both */
  if (rest != DIM_NONE && !size_is_unbacked(d->sizes, rest)) a = rest, b = 0, late = false;
  if (late) {
    if (a == 0 || b == 0 || a == 1 || b == 1) { /* a size that is not known is taken for neither */
      d->unknown |= d->exact;
      return false;
    }
    if (!d->emit_check || rel != REL_eq || !may_hold(d->sizes, a, b) || !d->emit_check(d->check_ctx, a, b))
      return false;
    return size_assume(d->sizes, rel, a, b);
  }
  i64 x, y;
  if (!size_hint(d->sizes, a, &x) || !size_hint(d->sizes, b, &y)) {
    d->failed = true;
    return false;
  }
  bool yes = rel_holds(rel, x, y);
  if (!yes && !d->exact) return false;
  if (!guard_relation(d->set, d->sizes, yes ? rel : REL_ne, a, b, d->what, d->because)) {
    d->failed = true;
    return false;
  }
  return yes;
}

static bool dims_equal(DimCtx *c, Dim a, Dim b) { return decide((GuardDims *)c, REL_eq, a, b); }
static bool dims_is_one(DimCtx *c, Dim a) { return decide((GuardDims *)c, REL_eq, a, 1); }

static Dim dims_binary(DimCtx *c, char op, Dim a, Dim b) {
  GuardDims *d = (GuardDims *)c;
  SizePool *p = d->sizes;
  if (op == '/' || op == '%') {
    SizeTruth zero = size_prove(p, REL_eq, b, 0);
    if (zero == TRUTH_always) return 0;
    if (zero == TRUTH_unknown) {
      i64 hint;
      if (!d->set || size_is_unbacked(p, b) || !size_hint(p, b, &hint)) {
        d->unknown = size_is_unbacked(p, b);
        d->failed |= !d->unknown;
        return 0;
      }
      if (!guard_relation(d->set, p, hint ? REL_ne : REL_eq, b, 0, d->what, d->because)) {
        d->failed = true;
        return 0;
      }
      if (!hint) return 0;
    }
  }
  Dim r = size_binary(p, op, a, b);
  if (op == '-') r = size_max(p, r, 0); /* a size: eager rules stop at 0 */
  if (r == DIM_NONE) {
    d->failed = true;
    return 0;
  }
  return r;
}

void guard_dims_init(GuardDims *d, GuardSet *set, SizePool *sizes, const char *what, Span because) {
  *d = (GuardDims){.base = {dims_equal, dims_is_one, dims_binary}, .set = set, .sizes = sizes, .what = what,
                   .because = because};
}

/* ---- text ----------------------------------------------------------------------------------------- */

typedef struct Namer {
  const GuardSet *g;
  const SizePool *p;
} Namer;

static void by_source(void *ctx, u32 sym, Buf *out) {
  const Namer *n = ctx;
  const SizeSym *s = &n->p->syms.data[sym];
  if (s->unbacked || !s->source || s->source >= n->g->sources.items.count) buf_puts(out, s->name);
  else source_say(n->g, s->source, out);
}

/* What messages to the program's writer call a kind; NULL: as it is called here. */
static const char *const said[GUARD_COUNT] = {[GUARD_tag] = "type", [GUARD_const] = "value", [GUARD_code] = "function",
                                              [GUARD_cell] = "binding"};

void guard_describe(const GuardSet *g, const SizePool *p, const Guard *x, const Names *names, Buf *out) {
  Namer n = {g, p};
  switch (x->kind) {
    case GUARD_size:
      size_print_named(p, x->a, by_source, &n, out);
      buf_putc(out, ' ');
      buf_puts(out, rel_text(x->rel));
      buf_putc(out, ' ');
      size_print_named(p, x->b, by_source, &n, out);
      return;
    case GUARD_ambient: buf_puts(out, "ambient"); return;
    case GUARD_ident:
      source_say(g, x->source, out);
      buf_puts(out, x->rel == REL_eq ? " is " : " is not ");
      source_say(g, x->second, out);
      return;
    case GUARD_len:
      buf_puts(out, "len(");
      source_say(g, x->source, out);
      buf_printf(out, x->rel == REL_eq ? ") == %llu" : ") >= %llu", (unsigned long long)x->word);
      return;
    case GUARD_shape:
      buf_puts(out, x->rel ? "keys(" : "key ");
      if (!x->rel && names) buf_printf(out, "\"%s\" in ", name_text(names, x->keys[0]));
      source_say(g, x->source, out);
      if (x->rel) {
        buf_puts(out, ") == (");
        for (u32 i = 0; i < x->key_count; i++)
          buf_printf(out, i ? ", %s" : "%s", names ? name_text(names, x->keys[i]) : "?");
        buf_putc(out, ')');
      }
      return;
    default:
      buf_puts(out, g->code && said[x->kind] ? said[x->kind] : kinds[x->kind].name);
      buf_putc(out, '(');
      source_say(g, x->source, out);
      buf_puts(out, ")");
  }
}

u32 guard_cost(u32 kind) { return kinds[kind].cost; }
const char *guard_kind_name(u32 kind) { return kinds[kind].name; }

void guard_because(Span at, const char *what, const Sources *sources, Buf *out) {
  u32 line, col;
  if (!what && !(sources && sources_get(sources, at.file))) return;
  buf_puts(out, "   because");
  if (what) buf_printf(out, " %s", what);
  if (sources && sources_get(sources, at.file)) {
    sources_locate(sources, at, &line, &col);
    buf_printf(out, " @%u:%u", line, col);
  }
}

void guard_set_print(const GuardSet *g, const SizePool *p, const Sources *sources, Buf *out) {
  for (u32 i = 0; i < g->guards.count; i++) {
    guard_describe(g, p, &g->guards.data[i], NULL, out);
    guard_because(g->guards.data[i].because, g->guards.data[i].what, sources, out);
    buf_putc(out, '\n');
  }
}
