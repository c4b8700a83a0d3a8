/* compile.c — guards as a flat program: ordering reads and checks, saying what missed (see guards.h; running them:
 * run.c). */
#include "lang/mechanisms.h"
#include "guards/guards_inner.h"

#include <stdio.h>
#include <string.h>

/* ---- compiling ------------------------------------------------------------------------------------ */

typedef struct Compiler {
  GuardProg *p;
  const GuardSet *g;      /* what was collected */
  const SizePool *sizes;
  u32 *place;             /* source -> place in scratch + 1; 0: not read yet */
  bool *done;             /* guards emitted */
  u32 *slot_of_sym;       /* word of scratch that holds the symbol's value */
  u32 cap;
  SourceId bad;
  bool failed;
} Compiler;

static Walk *step(Compiler *c, WalkOp op) {
  c->p->walk[c->p->nwalk] = (Walk){.op = (u8)op};
  return &c->p->walk[c->p->nwalk++];
}

static bool emit_guard(Compiler *c, u32 index);

/* Does this guard, once passed, make the step from its source to a part safe? */
static bool makes_safe(const Guard *x, const Source *part) {
  switch (part->kind) {
    case SRC_field:
      if (x->kind != GUARD_shape) return false;
      for (u32 i = 0; i < x->key_count; i++)
        if (x->keys[i] == part->index) return true;
      return false;
    case SRC_column: return x->kind == GUARD_rows && (x->text || x->value_kind == V_RECORD);
    case SRC_item: return x->kind == GUARD_len && x->word > part->index;
    case SRC_total: return x->kind == GUARD_rows && x->text && x->word == ROW_RAGGED;
    case SRC_len:
      return x->kind == GUARD_len || x->kind == GUARD_rows ||
             (x->kind == GUARD_tag && (x->value_kind == V_LIST || x->value_kind == V_TEXT));
    case SRC_size: return x->kind == GUARD_tag && x->value_kind == V_ARRAY && (u8)(x->word >> 16) > part->index;
    case SRC_value: return x->kind == GUARD_tag && x->value_kind == V_REF;
    case SRC_start:
    case SRC_stop:
    case SRC_step: return x->kind == GUARD_tag && x->value_kind == V_RANGE;
    case SRC_capture: return x->kind == GUARD_code && x->value_kind == FN_CLOSURE;
    case SRC_inner:
    case SRC_settings: return x->kind == GUARD_code && x->value_kind == FN_TRANSFORM;
    default: return false;
  }
}

/* Guards on the source itself that need no part of it. */
static bool is_type_guard(u32 kind) {
  return kind == GUARD_tag || kind == GUARD_len || kind == GUARD_shape || kind == GUARD_code || kind == GUARD_rows;
}

/* Emits the reads from the root down to s, each behind the guards that make it safe. */
static bool need(Compiler *c, SourceId s) {
  const Source *items = c->g->sources.items.data;
  if (!s || s >= c->g->sources.items.count) {
    c->bad = s;
    return false;
  }
  while (!c->place[s]) {
    SourceId next = s; /* the outermost one that is not read */
    while (items[next].parent && !c->place[items[next].parent]) next = items[next].parent;
    const Source *x = &items[next];
    u32 from = 0;
    if (x->parent) {
      bool safe = false;
      for (u32 i = 0; i < c->g->guards.count; i++) {
        const Guard *y = &c->g->guards.data[i];
        if (y->source != x->parent || !is_type_guard(y->kind)) continue;
        if (!c->done[i] && !emit_guard(c, i)) return false;
        safe |= makes_safe(y, x);
      }
      if (!safe) {
        c->bad = next;
        return false;
      }
      from = c->place[x->parent] - 1;
    } else if (x->kind == SRC_host && !c->g->host_read) {
      c->bad = next;
      return false;
    }
    Walk *w = step(c, WALK_READ);
    w->kind = x->kind;
    w->index = x->index;
    w->from = from;
    w->to = c->p->scratch;
    w->guard = 0;
    if (x->kind == SRC_global) w->pointer = c->g->sources.modules.data[x->module];
    c->place[next] = ++c->p->scratch;
  }
  return true;
}

typedef struct NeedSyms {
  Compiler *c;
  bool ok;
} NeedSyms;

static void need_sym(void *ctx, u32 sym) {
  NeedSyms *n = ctx;
  Compiler *c = n->c;
  const SizeSym *s = &c->sizes->syms.data[sym];
  if (!n->ok) return;
  n->ok = !s->unbacked && need(c, s->source);
  if (n->ok) c->slot_of_sym[sym] = (c->place[s->source] - 1) * 2 + 1; /* the payload word of that Value */
}

/* A source that a size is made of, for the guard's subject. */
typedef struct FirstSource {
  const Compiler *c;
  u32 *source;
} FirstSource;

static void first_source(void *ctx, u32 sym) {
  const FirstSource *f = ctx;
  if (!*f->source) *f->source = f->c->sizes->syms.data[sym].source;
}

static bool emit_size(Compiler *c, const Guard *x, Walk *w) {
  u32 a, b;
  i64 k;
  w->kind = x->rel;
  if (size_is_sym(c->sizes, x->a, &a)) {
    if (size_is_sym(c->sizes, x->b, &b)) {
      w->op = WALK_SIZE;
      w->from = c->slot_of_sym[a];
      w->second = c->slot_of_sym[b];
      return true;
    }
    if (size_is_const(c->sizes, x->b, &k)) {
      w->op = WALK_SIZE_CONST;
      w->index = x->rel == REL_eq ? c->sizes->syms.data[a].source : 0; /* for the guard's subject */
      w->from = c->slot_of_sym[a];
      w->word = (u64)k;
      return true;
    }
  }
  w->op = WALK_SIZE_CODE;
  if (x->rel == REL_eq && size_is_const(c->sizes, x->b, &k))
    size_symbols(c->sizes, x->a, first_source, &(FirstSource){c, &w->index});
  return true;
}

/* The type of a number of which the value is checked, with its type. */
static bool is_implied(const GuardSet *g, const Guard *x) {
  if (x->kind != GUARD_tag || x->value_kind != V_NUM) return false;
  for (u32 i = g->sources.items.data[x->source].guards; i; i = g->guards.data[i - 1].next)
    if (g->guards.data[i - 1].kind == GUARD_const) return true;
  return false;
}

static bool emit_guard(Compiler *c, u32 index) {
  const Guard *x = &c->g->guards.data[index];
  GuardProg *p = c->p;
  Walk w = {0};
  c->done[index] = true; /* before its reads: a tag guard is asked for by the reads of its own parts only */
  if (is_implied(c->g, x)) return true;
  if (x->kind == GUARD_size) {
    NeedSyms n = {c, true};
    size_symbols(c->sizes, x->a, need_sym, &n);
    size_symbols(c->sizes, x->b, need_sym, &n);
    if (!n.ok) return false;
    emit_size(c, x, &w);
  } else if (x->kind == GUARD_cell) {
    const Source *s = &c->g->sources.items.data[x->source];
    w.op = WALK_CELL;
    w.pointer = c->g->sources.modules.data[s->module];
    w.index = s->index;
    w.word = x->word;
  } else if (x->kind == GUARD_ambient) {
    w.op = WALK_AMBIENT;
    w.word = x->word;
  } else {
    if (!need(c, x->source) || (x->second && !need(c, x->second))) return false;
    w.from = c->place[x->source] - 1;
    w.word = x->word;
    w.mask = x->mask;
    switch (x->kind) {
      case GUARD_tag: w.op = x->value_kind == V_ARRAY ? WALK_TAG_ARRAY : WALK_TAG; break;
      case GUARD_const: w.op = x->value_kind == V_TEXT ? WALK_TEXT : WALK_CONST; break;
      case GUARD_code:
        w.op = WALK_CODE;
        w.kind = x->value_kind;
        w.pointer = x->pointer;
        break;
      case GUARD_len:
        w.op = WALK_LEN;
        w.kind = x->rel;
        break;
      case GUARD_rows: w.op = WALK_ROWS; break;
      case GUARD_shape: w.op = x->rel ? WALK_SHAPE : WALK_KEY; break;
      case GUARD_ident:
        w.op = WALK_IDENT;
        w.kind = x->rel;
        w.second = c->place[x->second] - 1;
        break;
      default: w.op = WALK_HOST; break;
    }
  }
  /* the program keeps its guards in the order of checking */
  u32 at = p->set.guards.count++;
  p->set.guards.data[at] = *x;
  Guard *own = &p->set.guards.data[at];
  if (own->text && !(own->text = arena_copy(&p->arena, x->text, x->text_len))) c->failed = true;
  if (own->keys) {
    Name *keys = arena_alloc(&p->arena, sizeof *keys * (x->key_count + 1));
    if (keys) memcpy(keys, x->keys, sizeof *keys * x->key_count);
    else c->failed = true;
    own->keys = keys;
  }
  own->subject = w.op == WALK_SIZE_CONST || w.op == WALK_SIZE_CODE ? w.index : x->kind == GUARD_code ||
                 x->kind == GUARD_len || x->kind == GUARD_shape ? x->source : 0;
  if (x->kind == GUARD_const && x->value_kind == V_TEXT) own->subject = x->source;
  if (own->shape) own->shape->head.refs++;
  if (w.op == WALK_SIZE_CODE) {
    for (u32 side = 0; side < 2; side++)
      if (!size_compile(c->sizes, side ? x->b : x->a, c->slot_of_sym, &p->arena, &p->codes[2 * at + side]))
        c->failed = true;
    w.word = 2 * at;
  }
  if (w.op == WALK_TEXT) w.pointer = (void *)(uintptr_t)own->text;
  if (w.op == WALK_SHAPE || w.op == WALK_KEY) {
    w.pointer = (void *)(uintptr_t)own->keys;
    w.index = own->keys ? own->keys[0] : 0;
    w.word = (u64)(uintptr_t)own->shape;
  }
  Buf text;
  buf_init(&text, c->g->alloc);
  guard_describe(c->g, c->sizes, x, p->vm ? &p->vm->names : NULL, &text);
  p->texts[at] = text.failed ? NULL : arena_copy(&p->arena, buf_text(&text), text.len);
  buf_free(&text);
  if (!p->texts[at]) c->failed = true;
  w.guard = at + 1;
  *step(c, (WalkOp)w.op) = w;
  return !c->failed;
}

/* Sources without their labels' arena: labels are copied into the program's. */
static bool copy_sources(GuardProg *p, const GuardSet *g) {
  Allocator *a = g->alloc;
  guards_init(&p->set, a);
  p->set.switches = g->switches;
  p->set.host_read = g->host_read;
  p->set.code = g->code;
  p->set.names = g->names;
  p->set.pc = g->pc;
  for (u32 i = 0; i < g->sources.items.count; i++) {
    Source s = g->sources.items.data[i];
    if (s.label && !(s.label = arena_copy(&p->arena, s.label, strlen(s.label)))) return false;
    if (!vec_push(a, &p->set.sources.items, s)) return false;
  }
  for (u32 i = 0; i < g->sources.modules.count; i++)
    if (!vec_push(a, &p->set.sources.modules, g->sources.modules.data[i])) return false;
  for (u32 i = 0; i < g->inputs.count; i++)
    if (!vec_push(a, &p->set.inputs, g->inputs.data[i])) return false;
  return g->guards.count == 0 ||
         vec_reserve(a, (void **)&p->set.guards.data, &p->set.guards.cap, g->guards.count, sizeof(Guard));
}

/* The fill in the making packs a list, of which kind its guard says, a column of one, or a text. */
static bool fill_rows(GuardProg *p, const GuardSet *g, SourceId s) {
  Fill *f = &p->fills[p->nfills];
  const Source *from = &g->sources.items.data[s];
  bool column = from->kind == SRC_column;
  for (u32 i = 0; i < g->guards.count && !f->rows; i++) {
    const Guard *x = &g->guards.data[i];
    if (x->source != (column ? from->parent : s) || (x->kind != GUARD_rows && x->value_kind != V_TEXT)) continue;
    if (column && x->value_kind == V_RECORD) {
      f->rows = true;
      f->part = (u8)(ROW_KEY_ORDER + from->index);
      f->tag = x->word;
      break;
    }
    f->rows = column ? x->text && x->kind == GUARD_rows && rows_column(x->text, from->index, f) : true;
    if (!column) f->tag = x->word;
  }
  p->nrows += f->rows;
  return f->rows;
}

GuardProg *guard_compile(Vm *vm, const GuardSet *g, const SizePool *sizes, SourceId *bad) {
  Allocator *a = g->alloc;
  if (bad) *bad = 0;
  GuardProg *p = mem_alloc_zero(a, sizeof *p);
  if (!p) return NULL;
  p->vm = vm;
  arena_init(&p->arena, a);
  u32 nsources = g->sources.items.count + 1, nguards = g->guards.count;
  Compiler c = {.p = p, .g = g, .sizes = sizes};
  Arena temp;
  arena_init(&temp, a);
  c.place = arena_alloc(&temp, sizeof *c.place * nsources);
  c.done = arena_alloc(&temp, nguards + 1);
  c.slot_of_sym = arena_alloc(&temp, sizeof *c.slot_of_sym * (sizes->syms.count + 1));
  u32 *by_rank = arena_alloc(&temp, sizeof *by_rank * (nguards + 1));
  p->walk = arena_alloc(&p->arena, sizeof *p->walk * (nsources + nguards + 1));
  p->fills = arena_alloc(&p->arena, sizeof *p->fills * (g->inputs.count + 1));
  p->codes = arena_alloc(&p->arena, sizeof *p->codes * (2 * (size_t)nguards + 1));
  p->texts = arena_alloc(&p->arena, sizeof *p->texts * (nguards + 1));
  p->packed = arena_alloc(&p->arena, sizeof *p->packed);
  bool ok = p->packed && copy_sources(p, g) && c.place && c.done && c.slot_of_sym && by_rank && p->walk && p->fills &&
            p->codes && p->texts;
  if (ok) {
    memset(c.slot_of_sym, 0xff, sizeof *c.slot_of_sym * (sizes->syms.count + 1));
    for (u32 i = 0; i < nguards; i++) { /* those that failed most often first, then the cheapest */
      u32 k = i;
      const Guard *x = &g->guards.data[i];
      for (; k > 0; k--) {
        const Guard *y = &g->guards.data[by_rank[k - 1]];
        if (!MECHANISM(g, guards_in_order) || y->failures > x->failures ||
            (y->failures == x->failures && guard_cost(y->kind) <= guard_cost(x->kind)))
          break;
        by_rank[k] = by_rank[k - 1];
      }
      by_rank[k] = i;
    }
    for (u32 i = 0; i < nguards && ok; i++)
      if (!c.done[by_rank[i]]) ok = emit_guard(&c, by_rank[i]);
    for (u32 i = 0; i < g->inputs.count && ok; i++) {
      const GuardInput *in = &g->inputs.data[i];
      ok = need(&c, in->source);
      if (!ok) break;
      const Source *s = &g->sources.items.data[in->source];
      bool donate = in->donate && in->form != IN_rows && (s->kind == SRC_arg || s->kind == SRC_reg);
      p->fills[p->nfills] = (Fill){.from = c.place[in->source] - 1, .donate = donate, .reg = s->index};
      p->ndonated += donate;
      if (in->form == IN_rows) ok = fill_rows(p, g, in->source);
      p->nfills++;
    }
    ok = ok && !c.failed && guard_fuse(p, &temp);
  }
  arena_free(&temp);
  if (ok && !c.failed) return p;
  if (bad) *bad = c.bad;
  guard_prog_free(vm, p);
  return NULL;
}

void guard_prog_free(Vm *vm, GuardProg *p) {
  if (!p) return;
  Allocator *a = p->arena.alloc;
  for (u32 i = 0; i < p->set.guards.count; i++) {
    Shape *s = p->set.guards.data[i].shape;
    if (s) shape_drop(vm, s);
  }
  guards_free(&p->set);
  arena_free(&p->arena);
  mem_free(a, p, sizeof *p);
}

u32 guard_prog_scratch(const GuardProg *p) { return p->scratch; }
u32 guard_prog_count(const GuardProg *p) { return p->set.guards.count; }

bool guard_prog_names_code(const GuardProg *p, u64 code_id) {
  for (u32 i = 0; i < p->set.guards.count; i++) {
    const Guard *x = &p->set.guards.data[i];
    if (x->kind == GUARD_code && x->value_kind == FN_CLOSURE && x->word == code_id) return true;
  }
  return false;
}

/* ---- text and misses ------------------------------------------------------------------------------ */

void guard_print(const GuardProg *p, u32 index, Buf *out) { buf_puts(out, p->texts[index]); }

void guard_prog_print(const GuardProg *p, const Sources *sources, Buf *out) {
  static const char *const forms[] = {"array", "scalar", "size", "object", "rows"};
  for (u32 i = 0; i < p->set.guards.count; i++) {
    const Guard *x = &p->set.guards.data[i];
    buf_puts(out, p->texts[i]);
    guard_because(x->because, x->what, sources, out);
    if (x->failures) buf_printf(out, "   missed %u", x->failures);
    buf_putc(out, '\n');
  }
  for (u32 i = 0; i < p->set.inputs.count; i++) {
    buf_printf(out, "input s%u = ", i);
    source_say(&p->set, p->set.inputs.data[i].source, out);
    buf_printf(out, " %s%s\n", forms[p->set.inputs.data[i].form],
               p->fills[i].donate || p->fills[i].rows ? " owned" : "");
  }
}

static void describe_tag(u8 kind, u64 word, u64 mask, Buf *out) {
  static const char *const layouts[] = {"", " rows", " strided", " broadcast"};
  if (kind == V_ARRAY) {
    buf_printf(out, "%s of rank %u", dtype_name((u8)(word >> 8)), (u32)(u8)(word >> 16));
    if ((u8)(word >> 24)) buf_printf(out, " on device %u", (u32)(u8)(word >> 24));
    if ((u8)(mask >> 32)) buf_puts(out, layouts[(word >> 32) & 3]);
    return;
  }
  Value v = {0};
  memcpy(&v, &word, 8);
  if (kind == V_NUM) buf_printf(out, "%s%s", v.flags & VF_WEAK ? "weak " : "", dtype_name(v.dtype));
  else if (kind == V_HOLE) buf_puts(out, "nothing");
  else buf_puts(out, value_type_name(v));
}

static void describe_ambient(const Vm *vm, u64 word, Buf *out) {
  u32 device = (u32)(word >> AMBIENT_DEVICE) & 0xff, tapes = (u32)(word & AMBIENT_TAPE);
  buf_printf(out, "device %s", device < DEVICE_MAX && vm->device_names[device] ? vm->device_names[device] : "?");
  if (tapes) buf_printf(out, " under %u tape%s", tapes, tapes == 1 ? "" : "s");
}

static void describe_num(Value v, Buf *out) {
  switch (dtype_kind(v.dtype)) {
    case DK_BOOL: buf_puts(out, v.i ? "true" : "false"); return;
    case DK_FLOAT: {
      char text[40];
      snprintf(text, sizeof text, "%.17g", num_as_f64(v));
      number_point(text);
      buf_puts(out, text);
      if (!strpbrk(text, ".en")) buf_puts(out, ".0");
      return;
    }
    default: buf_printf(out, "%lld", (long long)v.i);
  }
}

static void describe_value(Value v, Buf *out) {
  if (v.kind == V_NUM) describe_num(v, out);
  else if (v.kind == V_ARRAY) describe_tag(V_ARRAY, v.array->tag, UINT64_MAX, out);
  else if (v.kind == V_TEXT) buf_printf(out, "\"%.60s\"", v.text->data);
  else if (v.kind == V_DTYPE) buf_puts(out, dtype_name(v.dtype));
  else describe_tag(v.kind, value_tag(v), UINT64_MAX, out);
}

static void describe_code(Vm *vm, u8 kind, const Code *code, u64 word, Buf *out) {
  if (kind == FN_CLOSURE) {
    const char *name = code && code->proto->name ? name_text(&vm->names, code->proto->name) : "function";
    buf_printf(out, "%s #%llu", name, (unsigned long long)word);
  } else if (kind == FN_BUILTIN) {
    buf_puts(out, op_name((u32)word));
  } else {
    buf_puts(out, kind == FN_TRANSFORM ? "a transform" : "a host function");
  }
}

static const Code *code_by_id(const Vm *vm, u64 id) {
  for (const Code *c = vm->codes; c; c = c->next)
    if (c->id == id) return c;
  return NULL;
}

typedef struct SymReader {
  Vm *vm;
  const GuardProg *p;
  const Frame *f;
} SymReader;

/* Runs the walk up to a guard again for the numbers of a size guard; scratch is allocated, since this is rare. */
static bool numbers(Vm *vm, const GuardProg *p, const Frame *f, u32 index, i64 *a, i64 *b) {
  Value *scratch = mem_alloc_zero(&vm->alloc, sizeof *scratch * (p->scratch + 1));
  bool ok = false;
  for (u32 i = 0; scratch && i < p->nwalk; i++) {
    const Walk *w = &p->walk[i];
    const Value *from = &scratch[w->from]; /* a forced miss comes by without what the guards before it say */
    if (w->op == WALK_READ && w->kind == SRC_size && (from->kind != V_ARRAY || w->index >= array_rank(from->array)))
      break;
    if (w->op == WALK_READ && !walk_read(vm, p, f, w, scratch)) break;
    if (w->guard != index + 1) continue;
    const u64 *words = (const u64 *)(const void *)scratch;
    *a = (i64)words[w->op == WALK_SIZE_CODE ? 0 : w->from];
    *b = w->op == WALK_SIZE ? (i64)words[w->second] : (i64)w->word;
    ok = w->op != WALK_SIZE_CODE ||
         (size_run(&p->codes[w->word], words, a) && size_run(&p->codes[w->word + 1], words, b));
    break;
  }
  mem_free(&vm->alloc, scratch, sizeof *scratch * (p->scratch + 1));
  return ok;
}

bool guard_miss_make(Vm *vm, const Frame *f, const GuardProg *p, u32 index, GuardMiss *out) {
  *out = (GuardMiss){.guard = index};
  if (index >= p->set.guards.count) return false;
  const Guard *x = &p->set.guards.data[index];
  out->kind = x->kind;
  out->because = x->because;
  out->what = x->what;
  Buf want, got;
  buf_init(&want, &vm->alloc);
  buf_init(&got, &vm->alloc);
  Value v = value_hole();
  bool there = x->source && source_read(vm, &p->set, f, x->source, &v);
  i64 a, b;
  switch (x->kind) {
    case GUARD_size:
      if (numbers(vm, p, f, index, &a, &b)) {
        if (x->rel == REL_ne) buf_puts(&want, "not ");
        if (x->rel == REL_le) buf_puts(&want, "at most ");
        if (x->rel == REL_lt) buf_puts(&want, "less than ");
        buf_printf(&want, "%lld", (long long)b);
        buf_printf(&got, "%lld", (long long)a);
      } else {
        buf_puts(&want, "a value");
        buf_puts(&got, "none");
      }
      break;
    case GUARD_tag: describe_tag(x->value_kind, x->word, x->mask, &want); break;
    case GUARD_const:
      if (x->value_kind == V_TEXT) buf_printf(&want, "\"%.60s\"", x->text);
      else {
        Value w = {0};
        memcpy(&w, &x->mask, 8);
        w.bits = x->word;
        describe_value(w, &want);
      }
      break;
    case GUARD_code:
      describe_code(vm, x->value_kind, x->value_kind == FN_CLOSURE ? code_by_id(vm, x->word) : NULL, x->word, &want);
      if (there && v.kind == V_FN) {
        const Fn *fn = v.fn;
        u64 word = fn->kind == FN_CLOSURE ? fn->code->id : fn->kind == FN_BUILTIN ? fn->op : fn->transform;
        describe_code(vm, fn->kind, fn->kind == FN_CLOSURE ? fn->code : NULL, word, &got);
        there = false;
      }
      break;
    case GUARD_len:
      buf_printf(&want, x->rel == REL_eq ? "%llu" : "at least %llu", (unsigned long long)x->word);
      if (there && v.kind == V_LIST) {
        buf_printf(&got, "%u", v.list->count);
        there = false;
      }
      break;
    case GUARD_rows:
      if (x->value_kind == V_TEXT) {
        buf_puts(&want, "a text of ASCII alone");
        break;
      }
      if (x->value_kind == V_RECORD) {
        buf_puts(&want, "a record of numbers of one kind by character");
        break;
      }
      buf_puts(&want, "a list of ");
      if ((u8)x->word == V_HOLE) buf_puts(&want, "short texts");
      else if (rows_mixed((Value){.kind = (u8)x->word, .aux = (u32)(x->word >> 32)}))
        buf_puts(&want, "numbers of one dtype");
      else if (x->text)
        buf_puts(&want, x->word == ROW_RAGGED ? "lists whose items are of one kind"
                                              : (u8)x->word == V_LIST ? "lists of one kind"
                                              : (u8)x->word == V_ARRAY ? "arrays of one shape" : "records of one kind");
      else describe_tag(V_NUM, x->word, UINT64_MAX, &want);
      if (there && v.kind == V_LIST) {
        buf_puts(&got, "a list with other items");
        there = false;
      }
      break;
    case GUARD_shape:
      if (!x->rel) buf_puts(&want, "the key");
      for (u32 i = 0; x->rel && i < x->key_count; i++)
        buf_printf(&want, i ? ", %s" : "(%s", name_text(&vm->names, x->keys[i]));
      if (x->rel) buf_puts(&want, x->key_count ? ")" : "()");
      if (there && v.kind == V_RECORD) {
        buf_putc(&got, '(');
        for (u32 i = 0; i < v.record->shape->count; i++)
          buf_printf(&got, i ? ", %s" : "%s", name_text(&vm->names, v.record->shape->keys[i]));
        buf_putc(&got, ')');
        there = false;
      }
      break;
    case GUARD_cell:
      buf_puts(&want, "the value it had");
      buf_puts(&got, "another");
      there = false;
      break;
    case GUARD_ambient:
      describe_ambient(vm, x->word, &want);
      describe_ambient(vm, vm->ambient, &got);
      break;
    case GUARD_ident:
      buf_puts(&want, x->rel == REL_eq ? "one object" : "two objects");
      buf_puts(&got, x->rel == REL_eq ? "two" : "one");
      there = false;
      break;
    default:
      buf_puts(&want, "the host's agreement");
      break;
  }
  if (!got.len) {
    if (there && x->kind == GUARD_tag && v.kind == V_NUM) describe_tag(V_NUM, value_tag(v), UINT64_MAX, &got);
    else if (there) describe_value(v, &got);
    else buf_puts(&got, "nothing there");
  }
  const char *text = p->texts[index];
  out->text = mem_alloc(&vm->alloc, strlen(text) + 1);
  if (out->text) memcpy(out->text, text, strlen(text) + 1);
  out->expected = mem_alloc(&vm->alloc, want.len + 1);
  if (out->expected) memcpy(out->expected, buf_text(&want), want.len + 1);
  out->got = mem_alloc(&vm->alloc, got.len + 1);
  if (out->got) memcpy(out->got, buf_text(&got), got.len + 1);
  bool ok = out->text && out->expected && out->got && !want.failed && !got.failed;
  if (ok && x->subject) {
    Buf subject;
    buf_init(&subject, &vm->alloc);
    source_print(&p->set, x->subject, &subject);
    out->subject = subject.failed ? NULL : mem_alloc(&vm->alloc, subject.len + 1);
    if (out->subject) memcpy(out->subject, buf_text(&subject), subject.len + 1);
    ok = out->subject;
    buf_free(&subject);
  }
  buf_free(&want);
  buf_free(&got);
  if (!ok) guard_miss_free(vm, out);
  return ok;
}

void guard_miss_print(const GuardMiss *m, const Sources *sources, Buf *out) {
  buf_printf(out, "%s   wanted %s, got %s", m->text, m->expected, m->got);
  guard_because(m->because, m->what, sources, out);
}

void guard_miss_free(Vm *vm, GuardMiss *m) {
  if (m->text) mem_free(&vm->alloc, m->text, strlen(m->text) + 1);
  if (m->expected) mem_free(&vm->alloc, m->expected, strlen(m->expected) + 1);
  if (m->got) mem_free(&vm->alloc, m->got, strlen(m->got) + 1);
  if (m->subject) mem_free(&vm->alloc, m->subject, strlen(m->subject) + 1);
  *m = (GuardMiss){0};
}
