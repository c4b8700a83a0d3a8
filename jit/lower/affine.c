/* affine.c — indices of kernels (see affine.h). */
#include "jit/lower/affine.h"

#include <string.h>

static u32 hash_word(u32 h, u64 x) {
  u64 m = (h ^ x) * 0x9E3779B97F4A7C15u;
  return (u32)(m >> 32) ^ (u32)m;
}

static u32 hash_aff(const Affines *a, const Aff *x) {
  u32 h = hash_word(x->count, (u64)x->c);
  for (u32 i = 0; i < x->count; i++) {
    h = hash_word(h, a->terms.data[x->first + i].var);
    h = hash_word(h, (u64)a->terms.data[x->first + i].factor);
  }
  return h;
}

static bool same_terms(const Affines *a, u32 x, u32 y, u32 count) {
  for (u32 i = 0; i < count; i++)
    if (a->terms.data[x + i].var != a->terms.data[y + i].var ||
        a->terms.data[x + i].factor != a->terms.data[y + i].factor)
      return false;
  return true;
}

static u32 hash_ix(const Affines *a, const Ix *x) {
  u32 h = hash_word(x->linear, x->count);
  for (u32 i = 0; i < x->count; i++) h = hash_word(h, a->items.data[x->first + i]);
  return h;
}

bool affines_init(Affines *a, Allocator *alloc, SizePool *sizes) {
  *a = (Affines){.alloc = alloc, .sizes = sizes, .aff_slots = 64, .ix_slots = 64};
  a->aff_table = mem_alloc(alloc, sizeof *a->aff_table * a->aff_slots);
  a->ix_table = mem_alloc(alloc, sizeof *a->ix_table * a->ix_slots);
  if (!a->aff_table || !a->ix_table) a->failed = true;
  affines_clear(a);
  return !a->failed;
}

void affines_free(Affines *a) {
  vec_free(a->alloc, &a->affs);
  vec_free(a->alloc, &a->terms);
  vec_free(a->alloc, &a->ixs);
  vec_free(a->alloc, &a->items);
  if (a->aff_table) mem_free(a->alloc, a->aff_table, sizeof *a->aff_table * a->aff_slots);
  if (a->ix_table) mem_free(a->alloc, a->ix_table, sizeof *a->ix_table * a->ix_slots);
}

/* Puts id into a table of ids; `hash` of it is known. Grows the table at three quarters. */
static bool table_put(Affines *a, u32 **table, u32 *slots, u32 count, u32 id, u32 hash,
                      u32 (*rehash)(const Affines *, u32)) {
  if (4 * count >= 3 * *slots) {
    u32 n = *slots * 2, *bigger = mem_alloc_zero(a->alloc, sizeof *bigger * n);
    if (!bigger) return false;
    for (u32 i = 0; i < *slots; i++) {
      u32 old = (*table)[i];
      if (!old) continue;
      u32 at = rehash(a, old - 1) & (n - 1);
      while (bigger[at]) at = (at + 1) & (n - 1);
      bigger[at] = old;
    }
    mem_free(a->alloc, *table, sizeof **table * *slots);
    *table = bigger;
    *slots = n;
  }
  u32 at = hash & (*slots - 1);
  while ((*table)[at]) at = (at + 1) & (*slots - 1);
  (*table)[at] = id + 1;
  return true;
}

static u32 rehash_aff(const Affines *a, u32 id) { return hash_aff(a, &a->affs.data[id]); }
static u32 rehash_ix(const Affines *a, u32 id) { return hash_ix(a, &a->ixs.data[id]); }

/* The aff whose terms were pushed last; gives them back when it exists already. */
static u32 intern_aff(Affines *a, Aff x) {
  if (a->failed) return 0;
  if (x.c == DIM_NONE) a->too_big = true;
  u32 h = hash_aff(a, &x);
  for (u32 at = h & (a->aff_slots - 1); a->aff_table[at]; at = (at + 1) & (a->aff_slots - 1)) {
    u32 id = a->aff_table[at] - 1;
    const Aff *y = &a->affs.data[id];
    if (y->c == x.c && y->count == x.count && same_terms(a, y->first, x.first, x.count)) {
      a->terms.count = x.first;
      return id;
    }
  }
  u32 id = a->affs.count;
  if (!vec_push(a->alloc, &a->affs, x) || !table_put(a, &a->aff_table, &a->aff_slots, id, id, h, rehash_aff)) {
    a->failed = true;
    return 0;
  }
  return id;
}

static void push_term(Affines *a, u32 var, Dim factor) {
  if (factor == 0) return;
  if (factor == DIM_NONE) a->too_big = true;
  if (!vec_push(a->alloc, &a->terms, (AffTerm){var, factor})) a->failed = true;
}

void affines_clear(Affines *a) {
  a->affs.count = a->terms.count = a->ixs.count = a->items.count = 0;
  a->too_big = false;
  if (a->failed) return;
  memset(a->aff_table, 0, sizeof *a->aff_table * a->aff_slots);
  memset(a->ix_table, 0, sizeof *a->ix_table * a->ix_slots);
  (void)intern_aff(a, (Aff){0});
  (void)ix_make(a, 0, NULL);
}

u32 aff_const(Affines *a, Dim c) { return intern_aff(a, (Aff){.c = c, .first = a->terms.count}); }

u32 aff_var(Affines *a, u32 var) {
  u32 first = a->terms.count;
  push_term(a, var, 1);
  return intern_aff(a, (Aff){.first = first, .count = a->terms.count - first});
}

u32 aff_add(Affines *a, u32 x, u32 y) {
  if (a->failed || x == 0) return y;
  if (y == 0) return x;
  Aff p = a->affs.data[x], q = a->affs.data[y];
  u32 first = a->terms.count, i = 0, k = 0;
  while (i < p.count || k < q.count) {
    AffTerm s = i < p.count ? a->terms.data[p.first + i] : (AffTerm){.var = UINT32_MAX};
    AffTerm t = k < q.count ? a->terms.data[q.first + k] : (AffTerm){.var = UINT32_MAX};
    if (s.var < t.var) push_term(a, s.var, s.factor), i++;
    else if (t.var < s.var) push_term(a, t.var, t.factor), k++;
    else push_term(a, s.var, size_add(a->sizes, s.factor, t.factor)), i++, k++;
  }
  Dim c = size_add(a->sizes, p.c, q.c);
  return intern_aff(a, (Aff){.c = c, .first = first, .count = a->terms.count - first});
}

u32 aff_scale(Affines *a, u32 x, Dim by) {
  if (a->failed || by == 1 || x == 0) return x;
  Aff p = a->affs.data[x];
  u32 first = a->terms.count;
  for (u32 i = 0; i < p.count; i++) {
    AffTerm s = a->terms.data[p.first + i];
    push_term(a, s.var, size_mul(a->sizes, s.factor, by));
  }
  Dim c = size_mul(a->sizes, p.c, by);
  return intern_aff(a, (Aff){.c = c, .first = first, .count = a->terms.count - first});
}

static u32 intern_ix(Affines *a, bool linear, u32 count, const u32 *affs) {
  if (a->failed) return 0;
  u32 first = a->items.count;
  for (u32 i = 0; i < count; i++)
    if (!vec_push(a->alloc, &a->items, affs[i])) a->failed = true;
  if (a->failed) return 0;
  Ix x = {.linear = linear, .count = (u8)count, .first = first};
  u32 h = hash_ix(a, &x);
  for (u32 at = h & (a->ix_slots - 1); a->ix_table[at]; at = (at + 1) & (a->ix_slots - 1)) {
    u32 id = a->ix_table[at] - 1;
    const Ix *y = &a->ixs.data[id];
    if (y->linear == linear && y->count == count &&
        (count == 0 || memcmp(a->items.data + y->first, a->items.data + first, count * sizeof(u32)) == 0)) {
      a->items.count = first;
      return id;
    }
  }
  u32 id = a->ixs.count;
  if (!vec_push(a->alloc, &a->ixs, x) || !table_put(a, &a->ix_table, &a->ix_slots, id, id, h, rehash_ix)) {
    a->failed = true;
    return 0;
  }
  return id;
}

u32 ix_make(Affines *a, u32 count, const u32 *affs) { return intern_ix(a, false, count, affs); }
u32 ix_linear(Affines *a, u32 aff) { return intern_ix(a, true, 1, &aff); }

u32 ix_offset(Affines *a, u32 ix, const Dim *strides) {
  u32 sum = 0;
  for (u32 i = 0; i < ix_at(a, ix)->count; i++) sum = aff_add(a, sum, aff_scale(a, ix_item(a, ix, i), strides[i]));
  return sum;
}
