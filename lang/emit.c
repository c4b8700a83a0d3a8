/* emit.c — writing code: instructions, constants, descriptors, jumps and extents of one function. */
#include "lang/compiler.h"

#include <string.h>

/* ---- functions ---------------------------------------------------------------------------------- */

void fn_open(FnState *fs, Compiler *c, FnState *parent, FnGroup *group, Name name, Span span) {
  *fs = (FnState){.c = c, .parent = parent, .group = group};
  fs->proto = mem_alloc_zero(c->o->alloc, sizeof *fs->proto);
  if (!fs->proto) {
    compile_refused(c);
    return;
  }
  Proto *p = fs->proto;
  arena_init(&p->arena, c->o->alloc);
  p->refs = 1;
  p->name = name;
  p->span = span;
  p->file = c->ast->file;
  p->rest_index = -1;
  p->group_size = 1;
  if (!vec_push(c->o->alloc, &fs->extents, (Extent){.kind = EXT_FN, .parent = UINT32_MAX})) compile_refused(c);
}

static void free_state(FnState *fs) {
  Allocator *a = fs->c->o->alloc;
  vec_free(a, &fs->locals);
  vec_free(a, &fs->code);
  vec_free(a, &fs->spans);
  vec_free(a, &fs->consts);
  vec_free(a, &fs->descs);
  vec_free(a, &fs->extents);
  vec_free(a, &fs->protos);
  vec_free(a, &fs->local_names);
  mem_free(a, fs->const_ids.slots, sizeof(u32) * fs->const_ids.count);
  mem_free(a, fs->name_ids.slots, sizeof(u32) * fs->name_ids.count);
}

Proto *fn_close(FnState *fs) {
  Compiler *c = fs->c;
  Proto *p = fs->proto;
  if (p) scope_forget(fs, 0, p->span);
  if (!c->failed && !proto_finish(fs)) compile_refused(c);
  if (c->failed && p) {
    for (u32 i = 0; i < fs->protos.count; i++) proto_drop(fs->protos.data[i]);
    p->nprotos = 0;
    proto_drop(p);
    p = NULL;
  }
  free_state(fs);
  return p;
}

void proto_drop(Proto *p) {
  if (!p || --p->refs) return;
  for (u32 i = 0; i < p->nprotos; i++) proto_drop(p->protos[i]); /* functions nest at most AST_MAX_DEPTH deep */
  Allocator *alloc = p->arena.alloc;
  arena_free(&p->arena);
  mem_free(alloc, p, sizeof *p);
}

void *proto_room(FnState *fs, size_t n) {
  if (fs->c->failed || !n) return NULL;
  void *p = arena_alloc(&fs->proto->arena, n);
  if (!p) compile_refused(fs->c);
  return p;
}

void *proto_copy(FnState *fs, const void *data, size_t n) {
  void *p = proto_room(fs, n);
  return p ? memcpy(p, data, n) : NULL;
}

/* ---- instructions ------------------------------------------------------------------------------- */

u32 emit(FnState *fs, Ins ins, Span at) {
  Compiler *c = fs->c;
  if (c->failed) return 0;
  if (!toil(c->o->toil, 1)) compile_refused(c);
  else if (!vec_push(c->o->alloc, &fs->code, ins)) compile_refused(c);
  else if (!vec_push(c->o->alloc, &fs->spans, at)) compile_refused(c);
  return fs->code.count - 1;
}

u32 reg_take(FnState *fs, u32 count) {
  if (count > MAX_REGISTERS || fs->top + count > MAX_REGISTERS) {
    compile_limit(fs->c, EK_syntax, fs->proto ? fs->proto->span : (Span){0},
                  "this function is too large: it needs more than %d registers", MAX_REGISTERS);
    return 0;
  }
  u32 first = fs->top;
  fs->top += count;
  if (fs->proto && fs->top > fs->proto->nregs) fs->proto->nregs = fs->top;
  return first;
}

/* ---- constants and descriptors ------------------------------------------------------------------- */

static u32 hash_const(const Const *k) {
  u64 h = k->kind * 0x9E3779B97F4A7C15u;
  if (k->kind == CK_TEXT) {
    for (u32 i = 0; i < k->len; i++) h = (h ^ (u8)k->text[i]) * 1099511628211u;
  } else {
    h = (h ^ (u64)k->i) * 0x9E3779B97F4A7C15u;
  }
  return (u32)(h >> 32) ^ (u32)h;
}

static bool same_const(const Const *a, const Const *b) { /* floats by their bits */
  if (a->kind != b->kind) return false;
  if (a->kind == CK_TEXT) return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
  return a->i == b->i;
}

static u32 hash_id(const FnState *fs, const IdTable *t, u32 id) {
  return t == &fs->const_ids ? hash_const(&fs->consts.data[id]) : fs->descs.data[id].name * 2654435761u;
}

/* Room for one more entry. */
static bool ids_reserve(FnState *fs, IdTable *t) {
  if (t->used * 2 < t->count) return true;
  u32 count = t->count ? t->count * 2 : 16;
  u32 *slots = mem_alloc_zero(fs->c->o->alloc, sizeof *slots * count);
  if (!slots) return false;
  for (u32 i = 0; i < t->count; i++) {
    if (!t->slots[i]) continue;
    u32 at = hash_id(fs, t, t->slots[i] - 1) & (count - 1);
    while (slots[at]) at = (at + 1) & (count - 1);
    slots[at] = t->slots[i];
  }
  mem_free(fs->c->o->alloc, t->slots, sizeof *slots * t->count);
  t->slots = slots;
  t->count = count;
  return true;
}

static u32 const_add(FnState *fs, Const k) {
  Compiler *c = fs->c;
  if (c->failed) return 0;
  IdTable *t = &fs->const_ids;
  if (!ids_reserve(fs, t)) {
    compile_refused(c);
    return 0;
  }
  u32 at = hash_const(&k) & (t->count - 1);
  for (; t->slots[at]; at = (at + 1) & (t->count - 1))
    if (same_const(&fs->consts.data[t->slots[at] - 1], &k)) return t->slots[at] - 1;
  if (k.kind == CK_TEXT) k.text = arena_copy_long(&fs->proto->arena, k.text, k.len, c->o->toil);
  if ((k.kind == CK_TEXT && !k.text) || !vec_push(c->o->alloc, &fs->consts, k)) {
    compile_refused(c);
    return 0;
  }
  t->used++;
  return (t->slots[at] = fs->consts.count) - 1;
}

void emit_const(FnState *fs, u32 reg, Const k, Span at) {
  u32 id = const_add(fs, k);
  if (id < INS_CONST) emit(fs, ins_make(BC_move, 0, reg, id | INS_CONST, 0), at);
  else emit(fs, ins_make_x(BC_loadk, 0, reg, id), at);
}

u32 const_operand(FnState *fs, Const k, Span at) {
  u32 id = const_add(fs, k);
  if (id < INS_CONST) return id | INS_CONST;
  u32 reg = reg_take(fs, 1);
  emit(fs, ins_make_x(BC_loadk, 0, reg, id), at);
  return reg;
}

void emit_move(FnState *fs, u32 reg, u32 operand, Span at) {
  if (reg != operand) emit(fs, ins_make(BC_move, 0, reg, operand, 0), at);
}

void emit_nil(FnState *fs, u32 reg, Span at) { emit_const(fs, reg, const_nil(), at); }

void emit_kill(FnState *fs, u32 reg, Span at) {
  u32 nil = const_add(fs, const_nil());
  at.len = 0; /* no place where a program stands */
  if (nil < INS_CONST) emit(fs, ins_make(BC_move, INS_KILL, reg, nil | INS_CONST, 0), at);
}

u32 desc_add(FnState *fs, Desc d) {
  Compiler *c = fs->c;
  if (c->failed) return 0;
  if (fs->descs.count > 0xffff)
    compile_limit(c, EK_syntax, fs->proto->span, "this function is too large: more than 65536 descriptors");
  else if (!vec_push(c->o->alloc, &fs->descs, d))
    compile_refused(c);
  return fs->descs.count - 1;
}

u32 desc_name(FnState *fs, Name name) {
  Compiler *c = fs->c;
  if (c->failed) return 0;
  IdTable *t = &fs->name_ids;
  if (!ids_reserve(fs, t)) {
    compile_refused(c);
    return 0;
  }
  u32 at = (name * 2654435761u) & (t->count - 1);
  for (; t->slots[at]; at = (at + 1) & (t->count - 1))
    if (fs->descs.data[t->slots[at] - 1].name == name) return t->slots[at] - 1;
  u32 id = desc_add(fs, (Desc){.kind = DESC_NAME, .name = name});
  if (c->failed) return 0;
  t->used++;
  t->slots[at] = id + 1;
  return id;
}

/* ---- jumps and extents ---------------------------------------------------------------------------- */

u32 emit_jump(FnState *fs, u32 op, u32 flags, u32 a, u32 chain, Span at) {
  return emit(fs, ins_make_x(op, flags, a, chain), at);
}

void patch(FnState *fs, u32 chain, u32 target) {
  while (!fs->c->failed && chain != NO_JUMP) {
    Ins *ins = &fs->code.data[chain];
    chain = ins_x(*ins);
    *ins = ins_make_x(ins_op(*ins), ins_flags(*ins), ins_a(*ins), target);
  }
}

u32 extent_open(FnState *fs, u32 kind) {
  if (fs->c->failed) return 0;
  Extent e = {.kind = (u8)kind, .begin = here(fs), .head = here(fs), .parent = fs->extent};
  if (!vec_push(fs->c->o->alloc, &fs->extents, e)) compile_refused(fs->c);
  return fs->extent = fs->extents.count - 1;
}

void extent_close(FnState *fs, u32 extent) {
  if (fs->c->failed) return;
  Extent *e = &fs->extents.data[extent];
  e->end = here(fs);
  if (e->els == 0) e->els = e->end;
  fs->extent = e->parent;
}
