/* exits.c — the table of exits: recipes, journal, frames; copying with renamed values (see exits.h). */
#include "tracer/graph/exits.h"

#include <string.h>

void exits_init(ExitTable *t, Allocator *alloc) {
  *t = (ExitTable){.alloc = alloc};
  arena_init(&t->arena, alloc);
}

void exits_free(ExitTable *t) {
  if (!t->alloc) return;
  vec_free(t->alloc, &t->exits);
  vec_free(t->alloc, &t->frames);
  vec_free(t->alloc, &t->regs);
  vec_free(t->alloc, &t->recipes);
  vec_free(t->alloc, &t->journal);
  vec_free(t->alloc, &t->ids);
  vec_free(t->alloc, &t->names);
  vec_free(t->alloc, &t->consts);
  arena_free(&t->arena);
  exits_init(t, t->alloc);
}

ExitMark exits_mark(const ExitTable *t) {
  return (ExitMark){t->exits.count,   t->frames.count, t->regs.count,  t->recipes.count,
                    t->journal.count, t->ids.count,    t->names.count, t->consts.count};
}

void exits_rollback(ExitTable *t, ExitMark m) {
  t->exits.count = m.exits;
  t->frames.count = m.frames;
  t->regs.count = m.regs;
  t->recipes.count = m.recipes;
  t->journal.count = m.journal;
  t->ids.count = m.ids;
  t->names.count = m.names;
  t->consts.count = m.consts;
}

static u32 exits_refused(ExitTable *t) {
  t->failed = true;
  return 0;
}

/* ---- recipes -------------------------------------------------------------------------------------- */

static RecipeId add_recipe(ExitTable *t, Recipe r) {
  bool is_leaf = r.kind == RCP_const || r.kind == RCP_value || r.kind == RCP_complex || r.kind == RCP_size ||
                 r.kind == RCP_source || r.kind == RCP_arg;
  r.memo = is_leaf ? 0 : ++t->memos;
  if (t->recipes.count == 0 && !vec_push(t->alloc, &t->recipes, (Recipe){0})) return exits_refused(t);
  if (!vec_push(t->alloc, &t->recipes, r)) return exits_refused(t);
  return t->recipes.count - 1;
}

/* Leaves are shared: the last one of each slot is remembered, which may have been rolled back. */
static RecipeId leaf(ExitTable *t, Recipe r) {
  u32 *last = &t->leaves[(r.kind * 31u + r.a * 7u + (u32)r.dim * 5u + r.constant * 3u) % EXIT_LEAVES];
  r.weight = 1;
  if (*last && *last < t->recipes.count) {
    const Recipe *o = &t->recipes.data[*last];
    if (o->kind == r.kind && o->a == r.a && o->b == r.b && o->dim == r.dim && o->constant == r.constant) return *last;
  }
  return *last = add_recipe(t, r);
}

static RecipeId with_items(ExitTable *t, Recipe r, const RecipeId *items, u32 count) {
  r.first = t->ids.count;
  r.count = count;
  r.weight = 1;
  for (u32 i = 0; i < count; i++) {
    if (!items[i]) return 0;
    const Recipe *x = &t->recipes.data[items[i]];
    r.weight += x->weight;
    if (x->depth >= r.depth) r.depth = x->depth + 1;
    if (r.weight > RECIPE_MAX_WEIGHT || r.depth > RECIPE_MAX_DEPTH) return 0;
  }
  for (u32 i = 0; i < count; i++)
    if (!vec_push(t->alloc, &t->ids, items[i])) return exits_refused(t);
  return add_recipe(t, r);
}

static u32 add_const(ExitTable *t, ExitConst c) {
  for (u32 i = 0; i < t->consts.count; i++) {
    const ExitConst *o = &t->consts.data[i];
    if (o->kind == c.kind && o->dtype == c.dtype && o->weak == c.weak && o->bits == c.bits && o->len == c.len &&
        (c.len == 0 || memcmp(o->text, c.text, c.len) == 0))
      return i;
  }
  if (c.kind == V_TEXT && !(c.text = arena_copy(&t->arena, c.text, c.len))) {
    t->failed = true;
    return UINT32_MAX;
  }
  if (!vec_push(t->alloc, &t->consts, c)) {
    t->failed = true;
    return UINT32_MAX;
  }
  return t->consts.count - 1;
}

RecipeId recipe_exit_const(ExitTable *t, ExitConst c) {
  u32 i = add_const(t, c);
  return i == UINT32_MAX ? 0 : leaf(t, (Recipe){.kind = RCP_const, .constant = i});
}

RecipeId recipe_const(ExitTable *t, Value v) {
  ExitConst c = {.kind = v.kind};
  switch (v.kind) {
    case V_NIL:
    case V_HOLE: break;
    case V_NUM:
      c.dtype = v.dtype;
      c.weak = v.flags & VF_WEAK;
      c.bits = v.bits;
      break;
    case V_DTYPE: c.dtype = v.dtype; break;
    case V_TEXT:
      c.text = v.text->data;
      c.len = v.text->len;
      break;
    case V_FN:
      if (v.fn->kind != FN_BUILTIN) return 0;
      c.bits = v.fn->op;
      break;
    default: return 0;
  }
  return recipe_exit_const(t, c);
}

RecipeId recipe_value(ExitTable *t, u32 value) { return value ? leaf(t, (Recipe){.kind = RCP_value, .a = value}) : 0; }
RecipeId recipe_complex(ExitTable *t, u32 re, u32 im, bool weak) {
  return re && im ? leaf(t, (Recipe){.kind = RCP_complex, .a = re, .b = im, .constant = weak}) : 0;
}
RecipeId recipe_size(ExitTable *t, Dim d) {
  if (d == DIM_NONE) return 0;
  t->sized = true;
  return leaf(t, (Recipe){.kind = RCP_size, .dim = d});
}
RecipeId recipe_arg(ExitTable *t, u32 number) { return leaf(t, (Recipe){.kind = RCP_arg, .a = number}); }
RecipeId recipe_source(ExitTable *t, SourceId s) { return s ? leaf(t, (Recipe){.kind = RCP_source, .a = s}) : 0; }

RecipeId recipe_list(ExitTable *t, const RecipeId *items, u32 count) {
  return with_items(t, (Recipe){.kind = RCP_list}, items, count);
}

RecipeId recipe_record(ExitTable *t, const Name *keys, const RecipeId *items, u32 count) {
  Recipe r = {.kind = RCP_record, .key_first = t->names.count};
  for (u32 i = 0; i < count; i++)
    if (!vec_push(t->alloc, &t->names, keys[i])) return exits_refused(t);
  return with_items(t, r, items, count);
}

RecipeId recipe_range(ExitTable *t, RecipeId start, RecipeId stop, RecipeId step) {
  return with_items(t, (Recipe){.kind = RCP_range}, (RecipeId[]){start, stop, step}, 3);
}

RecipeId recipe_text(ExitTable *t, TextForm how, const RecipeId *items, u32 count) {
  return with_items(t, (Recipe){.kind = RCP_text, .a = how}, items, count);
}

RecipeId recipe_weak(ExitTable *t, RecipeId number, RecipeId flag) {
  return recipe_weak_all(t, (RecipeId[]){number, flag}, 2);
}

RecipeId recipe_weak_all(ExitTable *t, const RecipeId *ids, u32 count) {
  return with_items(t, (Recipe){.kind = RCP_weak}, ids, count);
}

RecipeId recipe_zip(ExitTable *t, RecipeId tree) { return with_items(t, (Recipe){.kind = RCP_zip}, &tree, 1); }

RecipeId recipe_item(ExitTable *t, RecipeId list, RecipeId at) {
  return with_items(t, (Recipe){.kind = RCP_item}, (RecipeId[]){list, at}, 2);
}

RecipeId recipe_split(ExitTable *t, const RecipeId parts[3]) {
  return with_items(t, (Recipe){.kind = RCP_split}, parts, 3);
}

RecipeId recipe_keyed(ExitTable *t, const RecipeId parts[2]) {
  return with_items(t, (Recipe){.kind = RCP_keyed}, parts, 2);
}

RecipeId recipe_option(ExitTable *t, RecipeId value, RecipeId there) {
  return with_items(t, (Recipe){.kind = RCP_option}, (RecipeId[]){value, there}, 2);
}

RecipeId recipe_fn(ExitTable *t, struct Code *code, const RecipeId *captures, u32 count) {
  return with_items(t, (Recipe){.kind = RCP_fn, .code = code}, captures, count);
}

RecipeId recipe_group_fn(ExitTable *t, struct Code *code, u32 member, const RecipeId *captures, u32 count) {
  return with_items(t, (Recipe){.kind = RCP_fn, .a = 1, .b = member, .code = code}, captures, count);
}

RecipeId recipe_transform(ExitTable *t, u32 transform, RecipeId inner, RecipeId settings) {
  return with_items(t, (Recipe){.kind = RCP_transform, .a = transform}, (RecipeId[]){inner, settings}, 2);
}

RecipeId recipe_items(ExitTable *t, u32 value, RecipeId before, RecipeId count, ItemForm form) {
  const Recipe *x = before ? &t->recipes.data[before] : NULL;
  Recipe r = {.kind = RCP_items, .a = value, .b = before, .constant = form, .first = t->ids.count, .count = count != 0,
              .weight = 1};
  if (x) {
    r.weight += x->weight;
    r.depth = (u8)(x->depth + 1);
  }
  if (count) {
    r.weight += t->recipes.data[count].weight;
    if (t->recipes.data[count].depth >= r.depth) r.depth = (u8)(t->recipes.data[count].depth + 1);
  }
  if (!value || r.weight > RECIPE_MAX_WEIGHT || r.depth > RECIPE_MAX_DEPTH) return 0;
  if (count && !vec_push(t->alloc, &t->ids, count)) return exits_refused(t);
  return add_recipe(t, r);
}

RecipeId recipe_ref(ExitTable *t, RecipeId content) { return with_items(t, (Recipe){.kind = RCP_ref}, &content, 1); }

/* ---- journal -------------------------------------------------------------------------------------- */

JournalId journal_write(ExitTable *t, JournalId parent, SourceId target, RecipeId made_ref, RecipeId value) {
  if (!value || (!target && !made_ref)) return exits_refused(t);
  if (t->journal.count == 0 && !vec_push(t->alloc, &t->journal, (JournalEntry){0})) return exits_refused(t);
  if (!vec_push(t->alloc, &t->journal, (JournalEntry){parent, target, made_ref, value})) return exits_refused(t);
  return t->journal.count - 1;
}

u32 journal_depth(const ExitTable *t, JournalId at) {
  u32 n = 0;
  for (; at; at = t->journal.data[at].parent) n++;
  return n;
}

JournalId journal_last(const ExitTable *t, JournalId at, SourceId target) {
  while (at && t->journal.data[at].target != target) at = t->journal.data[at].parent;
  return at;
}

void journal_path(const ExitTable *t, JournalId at, JournalId *out) {
  u32 n = journal_depth(t, at);
  for (; at; at = t->journal.data[at].parent) out[--n] = at;
}

/* ---- exits ---------------------------------------------------------------------------------------- */

u32 exit_begin(ExitTable *t, ExitKind kind, u32 reason_or_check, JournalId journal, Span span) {
  Exit e = {.kind = (u8)kind, .journal = journal, .frame_first = t->frames.count, .span = span};
  if (kind == EXIT_check) e.check = (u16)reason_or_check;
  else e.reason = (u16)reason_or_check;
  if (!vec_push(t->alloc, &t->exits, e)) {
    t->failed = true;
    return NO_EXIT;
  }
  return t->exits.count - 1;
}

bool exit_frame(ExitTable *t, u32 exit, u32 frame, u32 pc, u16 result, u16 flags, u32 tail_calls, RecipeId self) {
  if (exit + 1 != t->exits.count) return false; /* the frames of an exit stand together */
  ExitFrame f = {frame, pc, result, flags, tail_calls, self, t->regs.count, 0};
  if (!vec_push(t->alloc, &t->frames, f)) {
    t->failed = true;
    return false;
  }
  t->exits.data[exit].frame_count++;
  return true;
}

bool exit_reg(ExitTable *t, u32 exit, u16 reg, RecipeId recipe) {
  if (exit + 1 != t->exits.count || !recipe || !t->exits.data[exit].frame_count) return false;
  const Exit *e = &t->exits.data[exit];
  ExitFrame *f = &t->frames.data[e->frame_first + e->frame_count - 1];
  u32 at = t->regs.count;
  if (!vec_push(t->alloc, &t->regs, (ExitReg){reg, recipe})) {
    t->failed = true;
    return false;
  }
  f->count++;
  for (; at > f->first && t->regs.data[at - 1].reg > reg; at--) t->regs.data[at] = t->regs.data[at - 1];
  t->regs.data[at] = (ExitReg){reg, recipe};
  return true;
}

/* ---- reading -------------------------------------------------------------------------------------- */

typedef struct Visit {
  const ExitTable *t;
  void (*value)(void *ctx, u32 value);
  void (*counted)(void *ctx, u32 value, RecipeId count);
  void (*size)(void *ctx, Dim d);
  void *ctx;
  void (*source)(void *ctx, SourceId source);
} Visit;

/* Depth and weight of recipes are bounded. */
static void visit(const Visit *v, RecipeId r) {
  if (!r) return;
  const Recipe *x = &v->t->recipes.data[r];
  switch (x->kind) {
    case RCP_value:
      if (v->value) v->value(v->ctx, x->a);
      if (v->counted) v->counted(v->ctx, x->a, 0);
      return;
    case RCP_complex:
      for (u32 k = 0; k < 2; k++) {
        if (v->value) v->value(v->ctx, k ? x->b : x->a);
        if (v->counted) v->counted(v->ctx, k ? x->b : x->a, 0);
      }
      return;
    case RCP_size:
      if (v->size) v->size(v->ctx, x->dim);
      return;
    case RCP_source:
      if (v->source) v->source(v->ctx, x->a);
      return;
    case RCP_items:
      if (v->value) v->value(v->ctx, x->a);
      if (v->counted) v->counted(v->ctx, x->a, x->count ? v->t->ids.data[x->first] : 0);
      visit(v, x->b);
      break;
    default: break;
  }
  for (u32 i = 0; i < x->count; i++) visit(v, v->t->ids.data[x->first + i]);
}

/* Most are leaves. */
static inline __attribute__((always_inline)) void visit_any(const Visit *v, RecipeId r) {
  const Recipe *x = &v->t->recipes.data[r];
  if (!r) return;
  if (x->kind == RCP_value) {
    if (v->value) v->value(v->ctx, x->a);
    if (v->counted) v->counted(v->ctx, x->a, 0);
  } else if (x->count || x->kind == RCP_size || x->kind == RCP_items || x->kind == RCP_source ||
             x->kind == RCP_complex) {
    visit(v, r);
  }
}

static void visit_exit(const Visit *v, u32 exit) {
  const ExitTable *t = v->t;
  const Exit *e = &t->exits.data[exit];
  for (u32 i = 0; i < e->frame_count; i++) {
    const ExitFrame *f = &t->frames.data[e->frame_first + i];
    visit_any(v, f->self);
    for (u32 k = 0; k < f->count; k++) visit_any(v, t->regs.data[f->first + k].recipe);
  }
  for (JournalId j = e->journal; j; j = t->journal.data[j].parent) {
    visit_any(v, t->journal.data[j].value);
    visit_any(v, t->journal.data[j].ref);
  }
}

void exit_values(const ExitTable *t, u32 exit, void (*each)(void *ctx, u32 value), void *ctx) {
  Visit v = {.t = t, .value = each, .ctx = ctx};
  visit_exit(&v, exit);
}

void exit_counted(const ExitTable *t, u32 exit, void (*each)(void *ctx, u32 value, RecipeId count), void *ctx) {
  Visit v = {.t = t, .counted = each, .ctx = ctx};
  visit_exit(&v, exit);
}

void exit_sizes(const ExitTable *t, u32 exit, void (*each)(void *ctx, Dim d), void *ctx) {
  Visit v = {.t = t, .size = each, .ctx = ctx};
  if (t->sized) visit_exit(&v, exit);
}

typedef struct Reads {
  SourceId source;
  bool found;
} Reads;

static void find_source(void *ctx, SourceId source) {
  Reads *r = ctx;
  r->found |= source == r->source;
}

bool exits_read(const ExitTable *t, SourceId source) {
  Reads r = {.source = source};
  Visit v = {.t = t, .source = find_source, .ctx = &r};
  for (u32 i = 0; i < t->exits.count && !r.found; i++) visit_exit(&v, i);
  return r.found;
}

/* ---- renaming ------------------------------------------------------------------------------------- */

void exits_remap(ExitTable *t, const u32 *map, u32 count) {
  for (u32 i = 1; i < t->recipes.count; i++) {
    Recipe *r = &t->recipes.data[i];
    if (r->kind != RCP_value && r->kind != RCP_items && r->kind != RCP_complex) continue;
    while (r->a < count && map[r->a] && map[r->a] != r->a) r->a = map[r->a];
    while (r->kind == RCP_complex && r->b < count && map[r->b] && map[r->b] != r->b) r->b = map[r->b];
  }
}

typedef struct Renamer {
  const u32 *map;
  u32 count;
  bool found;
  Dim (*size)(void *ctx, Dim d); /* sizes change as well; NULL: they stay */
  void *ctx;
} Renamer;

static void exits_look(void *ctx, u32 value) {
  Renamer *r = ctx;
  r->found |= value < r->count && r->map[value] && r->map[value] != value;
}

/* Copies of the recipes that change. `to` holds for each old recipe the new one (0: not looked at). Parts are older
 * than what holds them, so one pass up in the order of ids sees parts first. */
static bool rename_recipes(ExitTable *t, const Renamer *m, RecipeId *to, u32 count) {
  Arena temp;
  arena_init(&temp, t->alloc);
  bool ok = true;
  for (u32 i = count; i-- > 1;) { /* what the wanted ones hold is wanted */
    if (!to[i]) continue;
    const Recipe *r = &t->recipes.data[i];
    if (r->kind == RCP_items && r->b) to[r->b] = r->b;
    for (u32 k = 0; k < r->count; k++) to[t->ids.data[r->first + k]] = t->ids.data[r->first + k];
  }
  for (u32 i = 1; i < count && ok; i++) {
    if (!to[i]) continue;
    Recipe r = t->recipes.data[i];
    if (r.kind == RCP_value || r.kind == RCP_items) {
      u32 a = r.a < m->count && m->map[r.a] ? m->map[r.a] : r.a;
      if (r.kind == RCP_value) to[i] = a == r.a ? i : recipe_value(t, a);
      else {
        RecipeId n = r.count ? t->ids.data[r.first] : 0;
        if (a != r.a || (r.b && to[r.b] != r.b) || (n && to[n] != n))
          to[i] = recipe_items(t, a, r.b ? to[r.b] : 0, n ? to[n] : 0, r.constant);
      }
    } else if (r.kind == RCP_complex) {
      u32 parts[2] = {r.a, r.b};
      for (u32 k = 0; k < 2; k++)
        if (parts[k] < m->count && m->map[parts[k]]) parts[k] = m->map[parts[k]];
      to[i] = parts[0] == r.a && parts[1] == r.b ? i : recipe_complex(t, parts[0], parts[1], r.constant);
    } else if (r.kind == RCP_size && m->size) {
      Dim d = m->size(m->ctx, r.dim);
      to[i] = d == r.dim ? i : recipe_size(t, d);
    } else if (r.count) {
      bool changed = false;
      RecipeId *items = arena_alloc(&temp, sizeof *items * r.count);
      if (!items) ok = false;
      for (u32 k = 0; ok && k < r.count; k++) {
        items[k] = to[t->ids.data[r.first + k]];
        changed |= items[k] != t->ids.data[r.first + k];
      }
      if (ok && changed) to[i] = with_items(t, r, items, r.count);
    }
    if (!to[i]) ok = false;
  }
  arena_free(&temp);
  t->failed |= !ok;
  return ok;
}

u32 exit_clone(ExitTable *t, u32 exit, const u32 *map, u32 count) {
  return exit_clone_sized(t, exit, map, count, NULL, NULL);
}

u32 exit_clone_sized(ExitTable *t, u32 exit, const u32 *map, u32 count, Dim (*size)(void *ctx, Dim d), void *ctx) {
  Renamer m = {map, count, false, size, ctx};
  if (exit >= t->exits.count) return exit;
  exit_values(t, exit, exits_look, &m);
  if (!m.found && !size) return exit;
  Exit e = t->exits.data[exit];
  u32 nrecipes = t->recipes.count, made = NO_EXIT;
  RecipeId *to = mem_alloc_zero(t->alloc, sizeof *to * (nrecipes + 1)); /* an exit may write nothing */
  if (!to) goto fail;
  for (u32 i = 0; i < e.frame_count; i++) {
    const ExitFrame *f = &t->frames.data[e.frame_first + i];
    to[f->self] = f->self;
    for (u32 k = 0; k < f->count; k++) to[t->regs.data[f->first + k].recipe] = t->regs.data[f->first + k].recipe;
  }
  u32 depth = journal_depth(t, e.journal);
  for (JournalId j = e.journal; j; j = t->journal.data[j].parent) {
    to[t->journal.data[j].value] = t->journal.data[j].value;
    to[t->journal.data[j].ref] = t->journal.data[j].ref;
  }
  to[0] = 0;
  if (!rename_recipes(t, &m, to, nrecipes)) goto fail;
  JournalId journal = 0;
  for (u32 i = depth; i-- > 0;) { /* from the root on; entries that do not change are shared */
    JournalId j = e.journal;
    for (u32 k = 0; k < i; k++) j = t->journal.data[j].parent;
    JournalEntry x = t->journal.data[j];
    if (x.parent == journal && to[x.ref] == x.ref && to[x.value] == x.value) journal = j;
    else if (!(journal = journal_write(t, journal, x.target, to[x.ref], to[x.value]))) goto fail;
  }
  made = exit_begin(t, (ExitKind)e.kind, e.kind == EXIT_check ? e.check : e.reason, journal, e.span);
  if (made == NO_EXIT) goto fail;
  for (u32 i = 0; i < e.frame_count; i++) {
    ExitFrame f = t->frames.data[e.frame_first + i];
    if (!exit_frame(t, made, f.frame, f.pc, f.result, f.flags, f.tail_calls, to[f.self])) goto fail;
    for (u32 k = 0; k < f.count; k++) {
      ExitReg reg = t->regs.data[f.first + k];
      if (!exit_reg(t, made, reg.reg, to[reg.recipe])) goto fail;
    }
  }
  mem_free(t->alloc, to, sizeof *to * (nrecipes + 1));
  return made;
fail:
  mem_free(t->alloc, to, sizeof *to * (nrecipes + 1));
  t->failed = true;
  return NO_EXIT;
}

static Dim same_size(void *ctx, Dim d) {
  (void)ctx;
  return d;
}

u32 exit_copy(ExitTable *t, u32 exit) {
  u32 made = exit_clone_sized(t, exit, NULL, 0, same_size, NULL);
  if (made != NO_EXIT) t->exits.data[made].copy_of = 1 + exit_original(t, exit);
  return made;
}
