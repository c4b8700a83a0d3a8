/* scope.c — what a name means: a register, a captured value, a function of the own group, or a module variable. */
#include "lang/compiler.h"
#include "lang/ops.h"
#include "parser/parser.h"

#include <string.h>

enum { MODVAR_EXPECTED = 4 }; /* declared further down the text: functions may name it already */

/* ---- errors ----------------------------------------------------------------------------------- */

static void raise(Compiler *c, bool limit, u32 kind, Span at, const char *fmt, va_list ap) {
  if (c->failed) return;
  Buf b;
  buf_init(&b, c->o->alloc);
  buf_vprintf(&b, fmt, ap);
  char *text = b.failed ? NULL : arena_copy(c->o->diag_arena, buf_text(&b), b.len);
  buf_free(&b);
  Diag diag = text ? (Diag){at, (u8)kind, text} : (Diag){at, EK_limit, "memory limit reached while compiling"};
  c->failed = limit || !text || !c->o->hook;
  if (!c->faulty) *c->diag = diag;
  if (!c->o->hook) return;
  c->faulty = true;
  c->o->hook->problem(c->o->hook->context, &diag);
}

void compile_error(Compiler *c, u32 kind, Span at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  raise(c, false, kind, at, fmt, ap);
  va_end(ap);
}

void compile_limit(Compiler *c, u32 kind, Span at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  raise(c, true, kind, at, fmt, ap);
  va_end(ap);
}

void compile_refused(Compiler *c) {
  if (c->failed) return;
  c->failed = true;
  *c->diag = (Diag){{0}, EK_limit, "memory limit reached while compiling"};
}

/* ---- module variables --------------------------------------------------------------------------- */

static void set_flags(Compiler *c, u32 slot, u8 flags) {
  u8 *now = &c->o->scope->flags.data[slot];
  if (*now == flags) return;
  if (vec_push(c->o->alloc, &c->undo, (SlotFlags){slot, *now})) *now = flags;
  else compile_refused(c);
}

static bool add_slot(Compiler *c, Name name, u32 *slot) {
  if (scope_add(c->o->scope, name, slot)) return true;
  compile_refused(c);
  return false;
}

static bool is_builtin(const Compiler *c, Name name) {
  const Names *n = c->o->names;
  return builtin_find(name_text(n, name), name_len(n, name)).kind != BUILTIN_NONE;
}

static void mark(FnState *fs, Name name, u8 flag, u32 *slot) {
  Compiler *c = fs->c;
  if (!add_slot(c, name, slot)) return;
  u8 flags = c->o->scope->flags.data[*slot];
  if (!flags && is_builtin(c, name)) flags |= MODVAR_BUILTIN;
  set_flags(c, *slot, (flags & (u8)~MODVAR_GIVEN) | flag);
}

u32 scope_declare(FnState *fs, Name name, Span at) {
  u32 slot = 0;
  const ScopeHook *hook = fs->c->o->hook;
  mark(fs, name, MODVAR_DECLARED, &slot);
  if (hook && !fs->c->failed) hook->module(hook->context, slot, name, at);
  return slot;
}

void scope_expect(FnState *fs, Name name) {
  u32 slot;
  mark(fs, name, MODVAR_EXPECTED, &slot);
}

void scope_settle(Compiler *c) {
  u8 *flags = c->o->scope->flags.data;
  while (c->undo.count) {
    SlotFlags u = c->undo.data[--c->undo.count];
    if (c->failed) flags[u.slot] = u.flags | (flags[u.slot] & MODVAR_BUILTIN);
    else flags[u.slot] &= (u8)~MODVAR_EXPECTED;
  }
  vec_free(c->o->alloc, &c->undo);
}

static NameRef module_ref(FnState *fs, Name name) {
  Compiler *c = fs->c;
  ModuleScope *s = c->o->scope;
  u32 slot;
  bool found = scope_find(s, name, &slot);
  u8 usable = fs->parent ? MODVAR_DECLARED | MODVAR_BUILTIN | MODVAR_EXPECTED : MODVAR_DECLARED | MODVAR_BUILTIN;
  if (found && (s->flags.data[slot] & usable)) return (NameRef){REF_MODULE, slot};
  if (!is_builtin(c, name)) { /* at the prompt functions are written before what they call */
    bool later = c->o->repl && fs->parent && add_slot(c, name, &slot);
    return later ? (NameRef){REF_MODULE, slot} : (NameRef){0};
  }
  if (!add_slot(c, name, &slot)) return (NameRef){0};
  set_flags(c, slot, s->flags.data[slot] | MODVAR_BUILTIN);
  return (NameRef){REF_MODULE, slot};
}

/* ---- locals and captures -------------------------------------------------------------------------- */

u32 scope_new_id(FnState *fs, Name name, Span at) {
  const ScopeHook *hook = fs->c->o->hook;
  if (!hook || fs->c->failed) return 0;
  hook->local(hook->context, ++fs->c->locals, name, at);
  return fs->c->locals;
}

static void add_local(FnState *fs, Name name, u32 reg, u32 id) {
  u32 from = fs->spans.count ? fs->spans.data[fs->spans.count - 1].start : 0;
  Local local = {name, reg, fs->local_names.count, id};
  LocalName entry = {name, reg, from, here(fs), UINT32_MAX};
  if (!vec_push(fs->c->o->alloc, &fs->local_names, entry) || !vec_push(fs->c->o->alloc, &fs->locals, local))
    compile_refused(fs->c);
}

void scope_local(FnState *fs, Name name, u32 reg, Span at) { add_local(fs, name, reg, scope_new_id(fs, name, at)); }

void scope_member(FnState *fs, const FnGroup *group, u32 i, u32 reg) {
  add_local(fs, group->names[i], reg, group->ids ? group->ids[i] : 0);
}

void scope_kill(FnState *fs, u32 locals, Span at) {
  for (u32 i = fs->locals.count; i-- > locals;) emit_kill(fs, fs->locals.data[i].reg, at);
}

void scope_forget(FnState *fs, u32 locals, Span of) {
  const ScopeHook *hook = fs->c->o->hook;
  for (u32 i = fs->locals.count; hook && i-- > locals;)
    if (fs->locals.data[i].id) hook->end(hook->context, fs->locals.data[i].id, of);
  for (u32 i = locals; i < fs->locals.count; i++) fs->local_names.data[fs->locals.data[i].entry].until = here(fs);
  if (locals < fs->locals.count) fs->locals.count = locals;
}

void scope_close(FnState *fs, u32 locals, Span at) {
  scope_kill(fs, locals, at);
  scope_forget(fs, locals, at);
}

static bool own_ref(const FnState *fs, Name name, NameRef *out) {
  enum { STEP_NAMES = 16 }; /* names, of many, that are looked at in a step */
  const u32 steps = fs->locals.count / STEP_NAMES;
  if (UNLIKELY(steps) && !toil(fs->c->o->toil, steps)) {
    compile_refused(fs->c);
    return false;
  }
  for (u32 i = fs->locals.count; i-- > 0;)
    if (fs->locals.data[i].name == name) {
      *out = (NameRef){REF_LOCAL, fs->locals.data[i].reg};
      return true;
    }
  for (u32 i = 0; fs->group && i < fs->group->count; i++)
    if (fs->group->names[i] == name) {
      *out = (NameRef){REF_GROUP, i};
      return true;
    }
  return false;
}

static u32 add_capture(FnState *fs, Name name, NameRef from) {
  static const u8 kinds[] = {[REF_LOCAL] = CAP_REGISTER, [REF_CAPTURE] = CAP_CAPTURE, [REF_GROUP] = CAP_GROUP};
  FnGroup *g = fs->group;
  Capture cap = {kinds[from.kind], (u16)from.index, name};
  for (u32 i = 0; i < g->captures.count; i++) {
    const Capture *have = &g->captures.data[i];
    if (have->kind == cap.kind && have->index == cap.index && have->name == cap.name) return i;
  }
  if (!vec_push(fs->c->o->alloc, &g->captures, cap)) compile_refused(fs->c);
  return g->captures.count - 1;
}

/* The function that has `name` as its own, from `fs` outwards; NULL: none. */
static FnState *find_owner(FnState *fs, Name name, NameRef *out) {
  while (fs && !own_ref(fs, name, out)) fs = fs->parent;
  return fs;
}

/* Captures pass through every function between owner and reader. At most AST_MAX_DEPTH functions nest. */
static NameRef capture_through(FnState *fs, FnState *owner, Name name, NameRef own) {
  if (fs == owner || fs->c->failed) return own;
  NameRef outer = capture_through(fs->parent, owner, name, own);
  return (NameRef){REF_CAPTURE, add_capture(fs, name, outer)};
}

NameRef scope_read(FnState *fs, Name name) {
  NameRef own;
  FnState *owner = find_owner(fs, name, &own);
  if (!owner) return module_ref(fs, name);
  return capture_through(fs, owner, name, own);
}

static u32 local_id(const FnState *owner, Name name) {
  for (u32 i = owner->locals.count; i-- > 0;)
    if (owner->locals.data[i].name == name) return owner->locals.data[i].id;
  for (u32 i = 0; owner->group && owner->group->ids && i < owner->group->count; i++)
    if (owner->group->names[i] == name) return owner->group->ids[i];
  return 0;
}

void scope_mention(FnState *fs, Name name, Span at, ScopeUse use) {
  const ScopeHook *hook = fs->c->o->hook;
  if (!hook || fs->c->failed) return;
  NameRef own;
  const FnState *owner = find_owner(fs, name, &own);
  u32 slot, id = owner ? local_id(owner, name) : 0;
  if (id) hook->use(hook->context, id, name, at, use);
  if (owner || !scope_find(fs->c->o->scope, name, &slot)) return;
  u8 flags = fs->c->o->scope->flags.data[slot];
  bool declared = flags & (MODVAR_DECLARED | MODVAR_EXPECTED);
  if (declared || (flags & MODVAR_BUILTIN)) hook->use_module(hook->context, slot, name, !declared, at, use);
}

NameRef scope_assign(FnState *fs, Name name) {
  NameRef own;
  FnState *owner = find_owner(fs, name, &own);
  if (owner == fs) return own;
  if (owner) return (NameRef){REF_CAPTURE, 0};
  u32 slot;
  u8 usable = fs->parent ? MODVAR_DECLARED | MODVAR_EXPECTED : MODVAR_DECLARED;
  if (scope_find(fs->c->o->scope, name, &slot) && (fs->c->o->scope->flags.data[slot] & usable))
    return (NameRef){REF_MODULE, slot};
  return (NameRef){0};
}

/* ---- names that mean nothing ------------------------------------------------------------------------ */

typedef struct Nearest {
  const char *name;
  size_t len;
  u32 limit; /* only nearer ones count */
  const char *best;
} Nearest;

static void consider(Nearest *n, const char *s, size_t len) {
  if (!n->limit || (len == n->len && memcmp(s, n->name, len) == 0)) return;
  u32 d = name_distance(n->name, n->len, s, len, n->limit);
  if (d < n->limit) {
    n->limit = d;
    n->best = s;
  }
}

static void consider_module(Nearest *n, const ModuleScope *s, const Names *names, bool builtins) {
  for (u32 i = 0; i < s->slots.count; i++)
    if (s->flags.data[i] & (MODVAR_DECLARED | MODVAR_EXPECTED))
      consider(n, name_text(names, s->slots.data[i]), name_len(names, s->slots.data[i]));
  for (u32 i = 0; builtins && i < builtin_count(); i++) {
    Builtin b = builtin_at(i);
    if (b.kind) consider(n, b.name, strlen(b.name));
  }
}

const char *scope_nearest(const ModuleScope *s, const Names *names, Name name) {
  Nearest n = {.name = name_text(names, name), .len = name_len(names, name), .limit = name_near(name_len(names, name))};
  consider_module(&n, s, names, true);
  return n.best;
}

const char *scope_in_module(const char *name, size_t len) {
  for (u32 op = 1; op < OP_COUNT; op++) {
    const char *shown = op_name(op), *point = strchr(shown, '.');
    if (point && strlen(point + 1) == len && memcmp(point + 1, name, len) == 0) return shown;
  }
  return NULL;
}

static const char *nearest_name(FnState *fs, Name name, bool assigning) {
  const Names *names = fs->c->o->names;
  Nearest n = {.name = name_text(names, name), .len = name_len(names, name)};
  n.limit = n.len == 2 && assigning ? 2 : name_near(n.len);
  for (FnState *f = fs; f; f = f->parent) {
    for (u32 i = f->locals.count; i-- > 0;) {
      Name local = f->locals.data[i].name;
      if (f == fs || !assigning) consider(&n, name_text(names, local), name_len(names, local));
    }
  }
  consider_module(&n, fs->c->o->scope, names, !assigning);
  return n.best;
}

void scope_not_declared(FnState *fs, Name name, Span at, bool assigning) {
  Compiler *c = fs->c;
  if (c->failed) return;
  const char *text = name_text(c->o->names, name);
  const char *foreign = parser_foreign_word(text, name_len(c->o->names, name));
  const char *near = nearest_name(fs, name, assigning), *inside = scope_in_module(text, name_len(c->o->names, name));
  u32 slot;
  if (scope_find(c->o->scope, name, &slot) && (c->o->scope->flags.data[slot] & MODVAR_EXPECTED))
    compile_error(c, EK_name, at, "%s is not declared yet: its declaration stands further down", text);
  else if (assigning && near)
    compile_error(c, EK_name, at, "%s is not declared; write 'let %s = …', or did you mean %s?", text, text, near);
  else if (assigning)
    compile_error(c, EK_name, at, "%s is not declared; write 'let %s = …'", text, text);
  else if (parser_foreign_prefix(text, name_len(c->o->names, name)))
    compile_error(c, EK_name, at, "%s is not declared; built-in functions stand without it: sum(x), not %s.sum(x)",
                  text, text);
  else if (foreign)
    compile_error(c, EK_name, at, "%s is not declared; write '%s'", text, foreign);
  else if (inside)
    compile_error(c, EK_name, at, "%s is not declared; write '%s'", text, inside);
  else if (near)
    compile_error(c, EK_name, at, "%s is not declared; did you mean %s?", text, near);
  else
    compile_error(c, EK_name, at, "%s is not declared", text);
}

void scope_captured(FnState *fs, Name name, Span at) {
  const char *text = name_text(fs->c->o->names, name);
  compile_error(fs->c, EK_name, at,
                "%s cannot be assigned here: a closure captures the value of an outer variable; "
                "to share a variable write 'let %s = ref(…)' and assign %s.value",
                text, text, text);
}
