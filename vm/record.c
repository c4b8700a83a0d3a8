/* record.c — records and their shapes.
 *
 * Up to SHAPE_SHARED_MAX keys, shapes are interned: all records with these keys in this order share one,
 * found by a running hash of the keys. Beyond, a record owns its shape (dictionary mode): its key vector and
 * hash index grow by doubling and change in place. Finding a key takes constant time in both. Shapes count the names
 * of their keys, and so does a text that was a key: a computed key is forgotten with the last record that has it and
 * the last text that was asked for it.
 *
 * Keys and items lie in order, one behind the other. A key that is removed is closed up from the side that is
 * shorter, so that taking keys from either end takes constant time, and the index keeps numbers that do not change
 * by it. */
#include <string.h>

#include "vm/alloc.h"

enum { LINEAR_MAX = 8 }; /* shapes up to this many keys are searched one by one */

static u64 hash_more(u64 hash, Name key) {
  hash = (hash ^ (key + 1)) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}
static u32 hash_key(Name key) { return (u32)(((u64)key * 0x9E3779B97F4A7C15u) >> 32); }

/* ---- shapes ----------------------------------------------------------------------------------- */

/* How many keys with numbers below n are gone. */
static u32 gone_before(const Shape *s, u32 n) {
  u32 sum = 0;
  for (; n; n &= n - 1) sum += s->gone[n - 1];
  return sum;
}

static inline u32 place_of(const Shape *s, u32 number) { return s->gone ? number - gone_before(s, number) : number; }

i64 shape_find(const Shape *s, Name key) {
  if (!s->slots) {
    for (u32 i = 0; i < s->count; i++)
      if (s->keys[i] == key) return i;
    return -1;
  }
  u32 mask = s->slot_count - 1;
  for (u32 i = hash_key(key) & mask; s->slots[i]; i = (i + 1) & mask) {
    u32 at = place_of(s, s->slots[i] - 1);
    if (s->keys[at] == key) return at;
  }
  return -1;
}

static void put_in(u32 *slots, u32 mask, Name key, u32 number) {
  u32 i = hash_key(key) & mask;
  while (slots[i]) i = (i + 1) & mask;
  slots[i] = number + 1;
}

static void put_slot(Shape *s, Name key, u32 number) { put_in(s->slots, s->slot_count - 1, key, number); }

/* All keys into the empty slots, numbered by their places. */
static void number_again(Vm *vm, Shape *s) {
  if (s->gone) mem_free(&vm->alloc, s->gone, sizeof *s->gone * s->slot_count);
  s->gone = NULL;
  for (u32 i = 0; i < s->count; i++) put_slot(s, s->keys[i], i);
  s->next_number = s->count;
}

static bool build_slots(Vm *vm, Shape *s, u32 slot_count) {
  u32 *slots = mem_alloc_zero(&vm->alloc, sizeof *slots * slot_count);
  if (!slots) return (void)vm_error_memory(vm), false;
  for (u32 i = 0; i < s->count; i++) {
    put_in(slots, slot_count - 1, s->keys[i], i);
    if (vm_item(vm, i)) continue;
    mem_free(&vm->alloc, slots, sizeof *slots * slot_count);
    return false;
  }
  if (s->gone) mem_free(&vm->alloc, s->gone, sizeof *s->gone * s->slot_count);
  s->gone = NULL;
  mem_free(&vm->alloc, s->slots, sizeof *s->slots * s->slot_count);
  s->slots = slots;
  s->slot_count = slot_count;
  s->next_number = s->count;
  return true;
}

static void free_shape(Vm *vm, Shape *s) {
  for (u32 i = 0; i < s->count; i++) name_drop(&vm->names, s->keys[i]);
  if (s->gone) mem_free(&vm->alloc, s->gone, sizeof *s->gone * s->slot_count);
  mem_free(&vm->alloc, s->slots, sizeof *s->slots * s->slot_count);
  if (s->keys) mem_free(&vm->alloc, s->keys - s->front, sizeof *s->keys * (s->cap + s->front));
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
  *s = (Shape){.head = {1, 0}, .cap = cap, .keys = copy, .next_number = count};
  if (count) memcpy(copy, keys, sizeof *keys * count);
  while (s->count < count) {
    name_keep(&vm->names, keys[s->count]);
    if (vm_item(vm, s->count++)) continue;
    free_shape(vm, s);
    return NULL;
  }
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
  *r = (Record){.head = {1, 0}, .cap = shape->count, .shape = shape, .items = items};
  *out = value_obj(V_RECORD, r);
  return true;
}

/* One for another record: a shape that a record owns changes in place, so that it takes a copy. NULL: refused (error
 * raised). */
static Shape *shape_for(Vm *vm, Shape *s) {
  if (!s->shared) return own_copy(vm, s, 0);
  s->head.refs++;
  return s;
}

bool record_new_shape(Vm *vm, Shape *shape, Value *out) { return record_of_shape(vm, shape_for(vm, shape), out); }
bool record_new_keys(Vm *vm, const Name *keys, u32 count, Value *out) {
  return record_of_shape(vm, shape_of_keys(vm, keys, count), out);
}
bool record_new(Vm *vm, Value *out) { return record_new_keys(vm, NULL, 0, out); }

Value *record_find(const Record *r, Name key) {
  i64 at = shape_find(r->shape, key);
  return at < 0 ? NULL : &r->items[at];
}

Value *record_at(Vm *vm, const Record *r, Text *key) {
  Name name = key->head.flags;
  if (!name) {
    vm_worked(vm, key->len);
    if (!name_known(&vm->names, key->data, key->len, &name)) return NULL;
    name_keep(&vm->names, name);
    key->head.flags = name;
  }
  return record_find(r, name);
}

bool text_name_of(Vm *vm, Text *t, Name *out) {
  if (!t->head.flags) vm_worked(vm, t->len);
  if (!t->head.flags) t->head.flags = name_counted(&vm->names, t->data, t->len);
  *out = t->head.flags;
  return *out || !t->len || ((void)vm_error_memory(vm), false);
}

bool record_unique(Vm *vm, Value *rec) {
  Record *r = rec->record;
  if (r->head.refs == 1) return true;
  Value copy;
  if (!record_new_shape(vm, r->shape, &copy)) return false;
  for (u32 i = 0; i < r->shape->count; i++) {
    copy.record->items[i] = value_keep(r->items[i]);
    if (vm_item(vm, i)) continue;
    value_drop(vm, copy);
    return false;
  }
  r->head.refs--;
  *rec = copy;
  return true;
}

/* Is the room in front enough to move what lies behind it there, now and then? */
static bool slides(u32 front, u32 cap) { return front > 0 && front >= cap / 3; }

static bool reserve_items(Vm *vm, Record *r, u32 need) {
  if (need <= r->cap) return true;
  if (slides(r->front, r->cap)) {
    memmove(r->items - r->front, r->items, sizeof *r->items * r->shape->count);
    r->items -= r->front;
    r->cap += r->front;
    r->front = 0;
    if (need <= r->cap) return true;
  }
  u32 cap = r->cap * 2 > 4 ? r->cap * 2 : 4;
  if (cap < need) cap = need;
  Value *items = items_resize(vm, r->items ? r->items - r->front : NULL, r->cap + r->front, cap + r->front);
  if (!items) return (void)vm_error_memory(vm), false;
  r->items = items + r->front;
  r->cap = cap;
  return true;
}

/* Adds a key to a shape the record owns. */
static bool add_own_key(Vm *vm, Shape *s, Name key) {
  if (s->count == s->cap && slides(s->front, s->cap)) {
    memmove(s->keys - s->front, s->keys, sizeof *s->keys * s->count);
    s->keys -= s->front;
    s->cap += s->front;
    s->front = 0;
  }
  if (s->count == s->cap) {
    if (s->cap > UINT32_MAX / 8)
      return (void)vm_error(vm, EK_limit, "a record of %u keys is too large", s->count), false;
    u32 more = s->cap + s->front, room = more * 2;
    Name *keys = mem_resize(&vm->alloc, s->keys - s->front, sizeof *keys * more, sizeof *keys * room);
    if (!keys) return (void)vm_error_memory(vm), false;
    s->keys = keys + s->front;
    s->cap = room - s->front;
  }
  if ((s->count + 1) * 2 > s->slot_count && !build_slots(vm, s, s->slot_count ? s->slot_count * 2 : 64)) return false;
  if (s->gone && s->next_number == s->slot_count) {
    memset(s->slots, 0, sizeof *s->slots * s->slot_count);
    number_again(vm, s);
  }
  put_slot(s, key, s->next_number++);
  name_keep(&vm->names, key);
  s->keys[s->count++] = key;
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

/* Element `at` of `count` taken out, closed up from the shorter side: true if that is the front. */
static bool closes_front(u32 at, u32 count) { return at < count / 2; }

/* Takes key `at` out of a shape the record owns. */
static void remove_own_key(Vm *vm, Shape *s, u32 at) {
  Name key = s->keys[at];
  u32 number = at;
  if (s->slots) {
    u32 mask = s->slot_count - 1, i = hash_key(key) & mask;
    while (place_of(s, s->slots[i] - 1) != at) i = (i + 1) & mask;
    number = s->slots[i] - 1;
    for (u32 j = (i + 1) & mask; s->slots[j]; j = (j + 1) & mask) { /* closes the gap in the probe chain */
      u32 home = hash_key(s->keys[place_of(s, s->slots[j] - 1)]) & mask;
      if (((j - home) & mask) < ((j - i) & mask)) continue;
      s->slots[i] = s->slots[j];
      i = j;
    }
    s->slots[i] = 0;
  }
  if (closes_front(at, s->count)) {
    memmove(s->keys + 1, s->keys, sizeof *s->keys * at);
    s->keys++;
    s->front++;
    s->cap--;
  } else {
    memmove(s->keys + at, s->keys + at + 1, sizeof *s->keys * (s->count - at - 1));
  }
  s->count--;
  if (!s->slots) return;
  if (number + 1 == s->next_number) {
    s->next_number--;
    return;
  }
  if (!s->gone) s->gone = mem_alloc_zero(&vm->alloc, sizeof *s->gone * s->slot_count);
  if (!s->gone) { /* refused: numbers go by places again */
    memset(s->slots, 0, sizeof *s->slots * s->slot_count);
    number_again(vm, s);
    return;
  }
  for (u32 n = number + 1; n <= s->slot_count; n += n & -n) s->gone[n - 1]++;
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
    remove_own_key(vm, s, at);
    name_drop(&vm->names, key);
  }
  Value gone = r->items[at];
  if (closes_front(at, count)) {
    memmove(r->items + 1, r->items, sizeof(Value) * at);
    r->items++;
    r->front++;
    r->cap--;
  } else {
    memmove(r->items + at, r->items + at + 1, sizeof(Value) * (count - at - 1));
  }
  value_drop(vm, gone);
  return true;
}
