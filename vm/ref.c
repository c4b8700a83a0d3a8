/* ref.c — cells, and the collector of cycles through them.
 *
 * Values cannot form cycles but through cells, so everything that may be garbage in spite of its count hangs
 * below some cell. The collector walks all that is reachable from the cells and counts, for each container, the
 * references from inside this set. A container that has more references is held from outside; what it reaches
 * lives. Cells that are not reached are emptied, and counts do the rest. */
#include "vm/ref.h"

#include <string.h>

#include "vm/alloc.h"

enum { FIRST_THRESHOLD = 10000 };
enum { NODE_ENV = 64 }; /* kinds of nodes: V_LIST V_RECORD V_FN V_REF, and this */

/* Few cells may hold much: under a limit the collector also runs when half of what was left, a sixteenth of the limit
 * at least, is used up. */
static u64 next_bytes(const Vm *vm) {
  u64 most = vm->limits.bytes, now = vm->stats.bytes_now, half = most > now ? (most - now) / 2 : 0;
  return now + (half > most / 16 ? half : most / 16);
}

bool ref_new(Vm *vm, Value inner, Value *out) {
  if (!vm->ref_threshold) {
    vm->ref_threshold = FIRST_THRESHOLD;
    vm->ref_bytes = next_bytes(vm);
  }
  if (vm->ref_count >= vm->ref_threshold || (vm->limits.bytes && vm->stats.bytes_now >= vm->ref_bytes)) {
    ref_collect(vm);
    vm->ref_threshold = vm->ref_count * 2 > FIRST_THRESHOLD ? vm->ref_count * 2 : FIRST_THRESHOLD;
    vm->ref_bytes = next_bytes(vm);
  }
  Ref *r = obj_alloc(vm, sizeof *r);
  if (!r) {
    value_drop(vm, inner);
    return (void)vm_error_memory(vm), false;
  }
  *r = (Ref){.head = {1, 0}, .value = inner, .next = vm->refs};
  if (vm->refs) vm->refs->prev = r;
  vm->refs = r;
  vm->ref_count++;
  *out = value_obj(V_REF, r);
  return true;
}

void ref_unlink(Vm *vm, Ref *r) {
  if (r->prev) r->prev->next = r->next;
  else vm->refs = r->next;
  if (r->next) r->next->prev = r->prev;
  vm->ref_count--;
}

void ref_clear_all(Vm *vm) {
  for (Ref *r = vm->refs, *next; r; r = next) {
    Value self = value_keep(value_obj(V_REF, r)), old = r->value;
    r->value = value_nil();
    value_drop(vm, old);
    next = r->next;
    value_drop(vm, self);
  }
}

/* ---- the collector ---------------------------------------------------------------------------- */

typedef struct Node {
  Obj *obj;
  u32 inside; /* references from other nodes */
  u8 kind;
  bool live;
} Node;

typedef struct Collector {
  Vm *vm;
  VEC(Node) nodes;
  u32 *index; /* open addressing: node + 1 */
  u32 index_count;
  u32 *work; /* nodes found live whose children are still to be marked */
  u32 work_count;
  bool failed;
} Collector;

static u32 *find_node(Collector *c, const Obj *obj) {
  u32 mask = c->index_count - 1;
  u32 i = (u32)(((u64)(uintptr_t)obj >> 4) * 0x9E3779B97F4A7C15u >> 33) & mask;
  while (c->index[i] && c->nodes.data[c->index[i] - 1].obj != obj) i = (i + 1) & mask;
  return &c->index[i];
}

static bool grow_index(Collector *c) {
  u32 count = c->index_count ? c->index_count * 2 : 1024;
  u32 *index = mem_alloc_zero(&c->vm->alloc, sizeof *index * count);
  if (!index) return false;
  mem_free(&c->vm->alloc, c->index, sizeof *c->index * c->index_count);
  c->index = index;
  c->index_count = count;
  for (u32 i = 0; i < c->nodes.count; i++) *find_node(c, c->nodes.data[i].obj) = i + 1;
  return true;
}

static Node *add_node(Collector *c, u32 kind, Obj *obj) {
  if (c->nodes.count * 2 >= c->index_count && !grow_index(c)) return NULL;
  u32 *at = find_node(c, obj);
  if (!*at) {
    if (!vec_push(&c->vm->alloc, &c->nodes, (Node){.obj = obj, .kind = (u8)kind})) return NULL;
    *at = c->nodes.count;
  }
  return &c->nodes.data[*at - 1];
}

typedef void (*Visit)(Collector *c, u32 kind, Obj *obj);

static void visit_value(Collector *c, Visit visit, Value v) {
  if (v.kind == V_LIST || v.kind == V_RECORD || v.kind == V_FN || v.kind == V_REF) visit(c, v.kind, v.obj);
}

static void visit_children(Collector *c, Visit visit, u32 kind, Obj *obj) {
  switch (kind) {
    case V_LIST:
      for (u32 i = 0; !list_is_packed((List *)obj) && i < ((List *)obj)->count; i++)
        visit_value(c, visit, ((List *)obj)->items[i]);
      break;
    case V_RECORD:
      for (u32 i = 0; i < ((Record *)obj)->shape->count; i++) visit_value(c, visit, ((Record *)obj)->items[i]);
      break;
    case V_REF: visit_value(c, visit, ((Ref *)obj)->value); break;
    case V_FN: {
      Fn *f = (Fn *)obj;
      if (f->kind == FN_CLOSURE && f->env) visit(c, NODE_ENV, &f->env->head);
      visit_value(c, visit, f->inner);
      visit_value(c, visit, f->settings);
      break;
    }
    default:
      for (u32 i = 0; i < ((Env *)obj)->count; i++) visit_value(c, visit, ((Env *)obj)->slots[i]);
      break;
  }
}

static void count_inside(Collector *c, u32 kind, Obj *obj) {
  Node *n = add_node(c, kind, obj);
  if (n) n->inside++;
  else c->failed = true;
}

static void mark_node(Collector *c, u32 node) {
  if (c->nodes.data[node].live) return;
  c->nodes.data[node].live = true;
  c->work[c->work_count++] = node;
}

static void mark_live(Collector *c, u32 kind, Obj *obj) {
  (void)kind;
  mark_node(c, *find_node(c, obj) - 1);
}

static void spread_live(Collector *c) {
  for (u32 i = 0; i < c->nodes.count; i++)
    if (c->nodes.data[i].obj->refs > c->nodes.data[i].inside) mark_node(c, i);
  while (c->work_count) {
    Node *n = &c->nodes.data[c->work[--c->work_count]];
    visit_children(c, mark_live, n->kind, n->obj);
  }
}

u64 ref_collect(Vm *vm) {
  Collector c = {.vm = vm};
  u64 freed = 0, overdraft = vm->overdraft;
  vm->overdraft = UINT64_MAX; /* a part of what cells hold, for a moment: it may be what makes room below the limit */
  for (Ref *r = vm->refs; r && !c.failed; r = r->next) c.failed = !add_node(&c, V_REF, &r->head);
  for (u32 i = 0; i < c.nodes.count && !c.failed; i++)
    visit_children(&c, count_inside, c.nodes.data[i].kind, c.nodes.data[i].obj);
  u32 count = c.nodes.count, garbage = 0;
  c.work = c.failed || !count ? NULL : mem_alloc(&vm->alloc, sizeof *c.work * count);
  if (c.work) {
    spread_live(&c);
    for (u32 i = 0; i < count; i++) /* hold the dead cells while they are emptied */
      if (!c.nodes.data[i].live && c.nodes.data[i].kind == V_REF) c.nodes.data[garbage++].obj = c.nodes.data[i].obj;
    for (u32 i = 0; i < garbage; i++) c.nodes.data[i].obj->refs++;
    for (u32 i = 0; i < garbage; i++) {
      Ref *r = (Ref *)c.nodes.data[i].obj;
      Value old = r->value;
      r->value = value_nil();
      value_drop(vm, old);
    }
    for (u32 i = 0; i < garbage; i++) value_drop(vm, value_obj(V_REF, c.nodes.data[i].obj));
    freed = garbage;
    mem_free(&vm->alloc, c.work, sizeof *c.work * count);
  }
  mem_free(&vm->alloc, c.index, sizeof *c.index * c.index_count);
  vec_free(&vm->alloc, &c.nodes);
  vm->overdraft = overdraft;
  return freed;
}
