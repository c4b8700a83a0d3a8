/* record.c — records and their shapes.
 *
 * Up to SHAPE_SHARED_MAX keys, shapes are interned: all records with these keys in this order share one,
 * found by a running hash of the keys. Beyond, a record owns its shape (dictionary mode): its key vector and
 * hash index grow by doubling and change in place. Finding a key takes constant time in both. */
#include <string.h>

#include "vm/alloc.h"

enum { LINEAR_MAX = 8 }; /* shapes up to this many keys are searched one by one */

static u64 hash_more(u64 hash, Name key) {
  hash = (hash ^ (key + 1)) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}
static u32 hash_key(Name key) { return (u32)(((u64)key * 0x9E3779B97F4A7C15u) >> 32); }

/* ---- shapes ----------------------------------------------------------------------------------- */

i64 shape_find(const Shape *s, Name key) {
  if (!s->slots) {
    for (u32 i = 0; i < s->count; i++)
      if (s->keys[i] == key) return i;
    return -1;
  }
  u32 mask = s->slot_count - 1;
  for (u32 i = hash_key(key) & mask; s->slots[i]; i = (i + 1) & mask)
    if (s->keys[s->slots[i] - 1] == key) return s->slots[i] - 1;
  return -1;
}

static void put_slot(Shape *s, u32 index) {
  u32 mask = s->slot_count - 1, i = hash_key(s->keys[index]) & mask;
  while (s->slots[i]) i = (i + 1) & mask;
  s->slots[i] = index + 1;
}

static bool build_slots(Vm *vm, Shape *s, u32 slot_count) {
  u32 *slots = mem_alloc_zero(&vm->alloc, sizeof *slots * slot_count);
  if (!slots) return (void)vm_error_memory(vm), false;
  mem_free(&vm->alloc, s->slots, sizeof *s->slots * s->slot_count);
  s->slots = slots;
  s->slot_count = slot_count;
  for (u32 i = 0; i < s->count; i++) put_slot(s, i);
  return true;
}

static void free_shape(Vm *vm, Shape *s) {
  mem_free(&vm->alloc, s->slots, sizeof *s->slots * s->slot_count);
  mem_free(&vm->alloc, s->keys, sizeof *s->keys * s->cap);
  obj_free(vm, s, sizeof *s);
}

void shape_drop(Vm *vm, Shape *s) {
  if (--s->head.refs) return;
  if (s->shared) {
    Shape **at = &vm->shapes[s->hash & (vm->shape_slots - 1)];
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    vm->shape_count--;
  }
  free_shape(vm, s);
}

static Shape *new_shape(Vm *vm, const Name *keys, u32 count, u32 cap) {
  Shape *s = obj_alloc(vm, sizeof *s);
  Name *copy = s ? mem_alloc(&vm->alloc, sizeof *copy * cap) : NULL;
  if (!copy && cap) {
    if (s) obj_free(vm, s, sizeof *s);
    (void)vm_error_memory(vm);
    return NULL;
  }
  if (!s) {
    (void)vm_error_memory(vm);
    return NULL;
  }
  *s = (Shape){.head = {1, 0}, .count = count, .cap = cap, .keys = copy};
  if (count) memcpy(copy, keys, sizeof *keys * count);
  if (count > LINEAR_MAX) {
    u32 slots = 32;
    while (slots < count * 2) slots *= 2;
    if (!build_slots(vm, s, slots)) {
      free_shape(vm, s);
      return NULL;
    }
  }
  return s;
}

static bool grow_table(Vm *vm) {
  u32 slots = vm->shape_slots ? vm->shape_slots * 2 : 64;
  Shape **table = mem_alloc_zero(&vm->alloc, sizeof *table * slots);
  if (!table) return (void)vm_error_memory(vm), false;
  for (u32 i = 0; i < vm->shape_slots; i++) {
    for (Shape *s = vm->shapes[i], *next; s; s = next) {
      next = s->next;
      s->next = table[s->hash & (slots - 1)];
      table[s->hash & (slots - 1)] = s;
    }
  }
  mem_free(&vm->alloc, vm->shapes, sizeof *vm->shapes * vm->shape_slots);
  vm->shapes = table;
  vm->shape_slots = slots;
  return true;
}

/* The interned shape of keys[0 … count-1], and *extra when there is one, whose hash is known. */
static Shape *intern(Vm *vm, const Name *keys, u32 count, const Name *extra, u64 hash) {
  u32 total = count + (extra != NULL);
  if (vm->shape_slots) {
    for (Shape *s = vm->shapes[hash & (vm->shape_slots - 1)]; s; s = s->next) {
      if (s->hash != hash || s->count != total || (count && memcmp(s->keys, keys, sizeof *keys * count) != 0)) continue;
      if (extra && s->keys[count] != *extra) continue;
      s->head.refs++;
      return s;
    }
  }
  if (vm->shape_count >= vm->shape_slots && !grow_table(vm)) return NULL;
  Name all[SHAPE_SHARED_MAX];
  if (count) memcpy(all, keys, sizeof *keys * count);
  if (extra) all[count] = *extra;
  Shape *s = new_shape(vm, all, total, total);
  if (!s) return NULL;
  s->shared = true;
  s->hash = hash;
  s->next = vm->shapes[hash & (vm->shape_slots - 1)];
  vm->shapes[hash & (vm->shape_slots - 1)] = s;
  vm->shape_count++;
  return s;
}

Shape *shape_of_keys(Vm *vm, const Name *keys, u32 count) {
  if (count > SHAPE_SHARED_MAX) return new_shape(vm, keys, count, count);
  u64 hash = 0;
  for (u32 i = 0; i < count; i++) hash = hash_more(hash, keys[i]);
  return intern(vm, keys, count, NULL, hash);
}

/* A shape of its own with the same keys and room for more. */
static Shape *own_copy(Vm *vm, const Shape *s, u32 room) {
  u32 cap = s->count + room > s->count * 2 ? s->count + room : s->count * 2;
  if (cap < 4) cap = 4;
  return new_shape(vm, s->keys, s->count, cap);
}

/* ---- records ---------------------------------------------------------------------------------- */

/* Consumes the shape, which is shared or nobody else's; NULL: it was refused. */
static bool record_of_shape(Vm *vm, Shape *shape, Value *out) {
  Record *r = shape ? obj_alloc(vm, sizeof *r) : NULL;
  Value *items = r && shape->count ? items_resize(vm, NULL, 0, shape->count) : NULL;
  if (!r || (shape->count && !items)) {
    if (r) obj_free(vm, r, sizeof *r);
    if (!shape) return false;
    shape_drop(vm, shape);
    return (void)vm_error_memory(vm), false;
  }
  if (items) memset(items, 0, sizeof *items * shape->count);
  *r = (Record){{1, 0}, shape->count, shape, items};
  *out = value_obj(V_RECORD, r);
  return true;
}

/* One for another record: a shape that a record owns changes in place, so that it takes a copy. NULL: refused (error raised). */
static Shape *shape_for(Vm *vm, Shape *s) {
  if (!s->shared) return own_copy(vm, s, 0);
  s->head.refs++;
  return s;
}

bool record_new_shape(Vm *vm, Shape *shape, Value *out) { return record_of_shape(vm, shape_for(vm, shape), out); }
bool record_new_keys(Vm *vm, const Name *keys, u32 count, Value *out) { return record_of_shape(vm, shape_of_keys(vm, keys, count), out); }
bool record_new(Vm *vm, Value *out) { return record_new_keys(vm, NULL, 0, out); }

Value *record_find(const Record *r, Name key) {
  i64 at = shape_find(r->shape, key);
  return at < 0 ? NULL : &r->items[at];
}

Value *record_at(Vm *vm, const Record *r, Text *key) {
  Name name = key->head.flags;
  if (!name && !name_known(&vm->names, key->data, key->len, &name)) return NULL;
  key->head.flags = name;
  return record_find(r, name);
}

bool text_name_of(Vm *vm, Text *t, Name *out) {
  if (!t->head.flags) t->head.flags = name_intern(&vm->names, t->data, t->len);
  *out = t->head.flags;
  return *out || !t->len || ((void)vm_error_memory(vm), false);
}

bool record_unique(Vm *vm, Value *rec) {
  Record *r = rec->record;
  if (r->head.refs == 1) return true;
  Value copy;
  if (!record_new_shape(vm, r->shape, &copy)) return false;
  for (u32 i = 0; i < r->shape->count; i++) copy.record->items[i] = value_keep(r->items[i]);
  r->head.refs--;
  *rec = copy;
  return true;
}

static bool reserve_items(Vm *vm, Record *r, u32 need) {
  if (need <= r->cap) return true;
  u32 cap = r->cap * 2 > 4 ? r->cap * 2 : 4;
  if (cap < need) cap = need;
  Value *items = items_resize(vm, r->items, r->cap, cap);
  if (!items) return (void)vm_error_memory(vm), false;
  r->items = items;
  r->cap = cap;
  return true;
}

/* Adds a key to a shape the record owns. */
static bool add_own_key(Vm *vm, Shape *s, Name key) {
  if (s->count == s->cap) {
    if (s->cap > UINT32_MAX / 4) return (void)vm_error(vm, EK_limit, "a record of %u keys is too large", s->count), false;
    Name *keys = mem_resize(&vm->alloc, s->keys, sizeof *keys * s->cap, sizeof *keys * s->cap * 2);
    if (!keys) return (void)vm_error_memory(vm), false;
    s->keys = keys;
    s->cap *= 2;
  }
  if ((s->count + 1) * 2 > s->slot_count && !build_slots(vm, s, s->slot_count ? s->slot_count * 2 : 64)) return false;
  s->keys[s->count++] = key;
  put_slot(s, s->count - 1);
  return true;
}

static bool add_key(Vm *vm, Record *r, Name key) {
  Shape *s = r->shape;
  if (!reserve_items(vm, r, s->count + 1)) return false;
  if (!s->shared) return add_own_key(vm, s, key);
  Shape *next;
  if (s->count < SHAPE_SHARED_MAX) {
    next = intern(vm, s->keys, s->count, &key, hash_more(s->hash, key));
    if (!next) return false;
  } else {
    next = own_copy(vm, s, 1);
    if (!next) return false;
    if (!add_own_key(vm, next, key)) {
      shape_drop(vm, next);
      return false;
    }
  }
  shape_drop(vm, s);
  r->shape = next;
  return true;
}

bool record_set(Vm *vm, Value *rec, Name key, Value item) {
  if (!record_unique(vm, rec)) goto fail;
  Record *r = rec->record;
  Value *at = record_find(r, key);
  if (at) {
    Value old = *at;
    *at = item;
    value_drop(vm, old);
    return true;
  }
  if (!add_key(vm, r, key)) goto fail;
  r->items[r->shape->count - 1] = item;
  return true;
fail:
  value_drop(vm, item);
  return false;
}

/* Takes key `at` out of a shape the record owns; positions behind it move down. */
static void remove_own_key(Shape *s, u32 at) {
  if (s->slots) {
    u32 mask = s->slot_count - 1, i = hash_key(s->keys[at]) & mask;
    while (s->slots[i] != at + 1) i = (i + 1) & mask;
    for (u32 j = (i + 1) & mask; s->slots[j]; j = (j + 1) & mask) { /* closes the gap in the probe chain */
      u32 home = hash_key(s->keys[s->slots[j] - 1]) & mask;
      if (((j - home) & mask) < ((j - i) & mask)) continue;
      s->slots[i] = s->slots[j];
      i = j;
    }
    s->slots[i] = 0;
    if (at + 1 < s->count)
      for (u32 k = 0; k <= mask; k++) s->slots[k] -= s->slots[k] > at + 1;
  }
  memmove(s->keys + at, s->keys + at + 1, sizeof *s->keys * (s->count - at - 1));
  s->count--;
}

bool record_remove(Vm *vm, Value *rec, Name key, bool *found) {
  *found = shape_find(rec->record->shape, key) >= 0;
  if (!*found) return true;
  if (!record_unique(vm, rec)) return false;
  Record *r = rec->record;
  Shape *s = r->shape;
  u32 at = (u32)shape_find(s, key), count = s->count;
  if (s->shared) {
    Name keys[SHAPE_SHARED_MAX];
    memcpy(keys, s->keys, sizeof *keys * at);
    memcpy(keys + at, s->keys + at + 1, sizeof *keys * (count - at - 1));
    Shape *less = shape_of_keys(vm, keys, count - 1);
    if (!less) return false;
    shape_drop(vm, s);
    r->shape = less;
  } else {
    remove_own_key(s, at);
  }
  Value gone = r->items[at];
  memmove(r->items + at, r->items + at + 1, sizeof(Value) * (count - at - 1));
  value_drop(vm, gone);
  return true;
}
