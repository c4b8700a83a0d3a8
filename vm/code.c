/* code.c — prototypes made runnable: constants as values, side arrays for counters (see code.h). */
#include "vm/code.h"

#include <string.h>

#include "vm/alloc.h"
#include "vm/module.h"

static bool make_const(Vm *vm, const Const *k, Value *out) {
  switch (k->kind) {
    case CK_BOOL: *out = value_bool(k->i); return true;
    case CK_INT: *out = value_weak_i64(k->i); return true;
    case CK_U64: *out = num_convert_unchecked(value_i64(k->i), DT_u64); return true;
    case CK_FLOAT: *out = value_weak_f64(k->f); return true;
    case CK_IMAG: return value_complex(vm, DT_c128, 0, k->f, true, out) == WEFT_OK;
    case CK_TEXT: return text_of_program(vm, k->text, k->len, out);
    case CK_BUILTIN: return fn_builtin(vm, (u32)k->i, out);
    case CK_DTYPE: *out = value_dtype((u32)k->i); return true;
    case CK_MODULE: return builtin_value(vm, builtin_find(op_modules[k->i], strlen(op_modules[k->i])), out);
    case CK_HOLE: *out = value_hole(); return true;
    default: *out = value_nil(); return true;
  }
}

static void free_code(Vm *vm, Code *c) {
  Proto *p = c->proto;
  for (u32 i = 0; c->consts && i < p->nconsts; i++) value_drop(vm, c->consts[i]);
  for (u32 i = 0; c->protos && i < p->nprotos; i++)
    if (c->protos[i]) code_drop(vm, c->protos[i]);
  for (u32 i = 0; c->shapes && i < p->ndescs; i++)
    if (c->shapes[i]) shape_drop(vm, c->shapes[i]);
  liveness_free(c->live);
  mem_free(&vm->alloc, c->consts, sizeof *c->consts * p->nconsts);
  mem_free(&vm->alloc, c->sites, sizeof *c->sites * p->nsites);
  mem_free(&vm->alloc, c->protos, sizeof *c->protos * p->nprotos);
  mem_free(&vm->alloc, c->site_of_pc, sizeof *c->site_of_pc * p->ncode);
  mem_free(&vm->alloc, c->shapes, sizeof *c->shapes * p->ndescs);
  mem_free(&vm->alloc, c, sizeof *c);
  sources_drop(&vm->sources, p->file);
  proto_drop(p);
}

static void unlink_code(Vm *vm, Code *c) {
  if (vm->tier && vm->tier->code_freed) vm->tier->code_freed(vm, c);
  *(c->before ? &c->before->next : &vm->codes) = c->next;
  if (c->next) c->next->before = c->before;
}

void code_drop(Vm *vm, Code *c) { /* recursion is as deep as functions stand inside each other in the source */
  if (!c || --c->leader->head.refs) return;
  Code *leader = c->leader, **members = leader->members;
  if (!members) {
    unlink_code(vm, leader);
    free_code(vm, leader);
    return;
  }
  u32 n = leader->proto->group_size;
  for (u32 i = 0; i < n; i++) {
    unlink_code(vm, members[i]);
    free_code(vm, members[i]);
  }
  mem_free(&vm->alloc, members, sizeof *members * n);
}

static void *zeroed(Vm *vm, size_t n, bool *ok) {
  void *p = n ? mem_alloc_zero(&vm->alloc, n) : NULL;
  if (n && !p) *ok = false;
  return p;
}

Code *code_of(Vm *vm, Proto *p, Module *m) {
  bool ok = true;
  Code *c = zeroed(vm, sizeof *c, &ok);
  if (!c) {
    (void)vm_error_memory(vm);
    return NULL;
  }
  p->refs++;
  sources_keep(&vm->sources, p->file);
  *c = (Code){.head = {1, 0}, .proto = p, .module = m, .id = ++vm->code_ids};
  c->leader = c;
  c->consts = zeroed(vm, sizeof *c->consts * p->nconsts, &ok);
  c->sites = zeroed(vm, sizeof *c->sites * p->nsites, &ok);
  c->protos = zeroed(vm, sizeof *c->protos * p->nprotos, &ok);
  c->site_of_pc = zeroed(vm, sizeof *c->site_of_pc * p->ncode, &ok);
  c->shapes = zeroed(vm, sizeof *c->shapes * p->ndescs, &ok);
  if (!ok) (void)vm_error_memory(vm);
  for (u32 i = 0; ok && i < p->nsites; i++) c->sites[i].taken = 1;
  for (u32 i = 0; ok && i < p->nconsts; i++) ok = make_const(vm, &p->consts[i], &c->consts[i]);
  if (!ok) {
    free_code(vm, c);
    return NULL;
  }
  for (u32 i = 1; i < p->nsites; i++) {
    c->site_of_pc[p->sites[i].pc] = i + 1;
    u32 head = p->sites[i].kind == SITE_LOOP ? ins_x(p->code[p->sites[i].pc]) : 0;
    if (head && ins_op(p->code[head]) == BC_fornext && ins_op(p->code[head - 1]) == BC_forprep)
      c->site_of_pc[head - 1] = i + 1;
  }
  c->next = vm->codes;
  if (c->next) c->next->before = c;
  vm->codes = c;
  return c;
}

/* The codes of a group are made together and live as long as any of them is held. */
static bool make_group(Vm *vm, Code *c, const Proto *p) {
  u32 n = p->group_size, first = 0;
  Code **members = mem_alloc_zero(&vm->alloc, sizeof *members * n);
  if (!members) return (void)vm_error_memory(vm), false;
  while (c->proto->protos[first] != p->group[0]) first++;
  for (u32 i = 0; i < n; i++) {
    members[i] = code_of(vm, p->group[i], c->module);
    if (members[i]) continue;
    while (i-- > 0) code_drop(vm, members[i]);
    mem_free(&vm->alloc, members, sizeof *members * n);
    return false;
  }
  members[0]->members = members;
  members[0]->head.refs = n; /* held n times by c */
  for (u32 i = 0; i < n; i++) {
    members[i]->leader = members[0];
    c->protos[first + i] = members[i];
  }
  return true;
}

Code *code_child(Vm *vm, Code *c, u32 index) {
  if (c->protos[index]) return c->protos[index];
  Proto *p = c->proto->protos[index];
  if (p->group_size > 1) return make_group(vm, c, p) ? c->protos[index] : NULL;
  return c->protos[index] = code_of(vm, p, c->module);
}

Code *code_sibling(Code *c, u32 index) { return c->leader->members ? c->leader->members[index] : c; }

bool code_shape(Vm *vm, Code *c, u32 desc, Shape **out) {
  const Desc *d = &c->proto->descs[desc];
  *out = c->shapes[desc];
  if (*out || d->name_count > SHAPE_SHARED_MAX) return true;
  for (u32 i = 0; i < d->name_count; i++) /* {a: 1, a: 2} has one key */
    for (u32 k = 0; k < i; k++)
      if (d->names[i] == d->names[k]) return true;
  return (*out = c->shapes[desc] = shape_of_keys(vm, d->names, d->name_count)) != NULL;
}

void code_clear_dead(Vm *vm, Code *c, Value *base, u32 pc) {
  if (!c->live) c->live = liveness_new(c->proto, &vm->alloc);
  if (!c->live) return;
  u32 words = liveness_words(c->live);
  u64 small[16], *bits = words <= COUNT_OF(small) ? small : mem_alloc(&vm->alloc, sizeof *bits * words);
  if (!bits) return;
  liveness_at(c->live, pc, bits);
  for (u32 r = 0; r < c->proto->nregs; r++) {
    if (bits[r >> 6] >> (r & 63) & 1) continue;
    Value old = base[r];
    base[r] = value_nil();
    value_drop(vm, old);
  }
  if (bits != small) mem_free(&vm->alloc, bits, sizeof *bits * words);
}
