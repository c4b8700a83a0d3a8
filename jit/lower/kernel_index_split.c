/* kernel_index_split.c — rolls in a nest: the place that a roll reads is the trip plus a distance, less the axis' size
 * from some trip on. Along the innermost loop that is no place for a vector load: the loop is split where it wraps
 * (see IndexSplit in kernel.h). */
#include "jit/lower/kernel.h"

bool kern_roll_shift(Kern *k, const GraphArg *a, Dim *shift) {
  i64 n;
  if (a->kind == ARG_attr && a->attr->kind == ATTR_dim) return *shift = a->attr->dim, true;
  if (a->kind == ARG_hole || !arg_int(a, 0, &n)) return false;
  *shift = size_const(k->sizes, n);
  return true;
}

/* The form is the innermost loop's trip, plus what does not change. */
static bool is_trip(Kern *k, u32 aff) {
  const Aff *a = aff_at(&k->ax, aff);
  return a->count == 1 && aff_terms(&k->ax, aff)->var == k->split.var && aff_terms(&k->ax, aff)->factor == 1;
}

/* It depends on what a task computes: on another roll, whose own split would divide the parts further, or on a
 * gather. */
static bool is_computed(const Kern *k, u32 aff) {
  for (u32 i = 0; i < aff_at(&k->ax, aff)->count; i++)
    if (k->vars.data[aff_terms(&k->ax, aff)[i].var].scope == UINT32_MAX) return true;
  return false;
}

static void note_split(Kern *k, Dim at, bool early) {
  IndexSplit *t = &k->split;
  for (u32 i = 0; i < t->count; i++)
    if (t->early[i] == early && size_same(k->sizes, t->at[i], at)) return;
  if (t->count == SPLITS_MOST || at == DIM_NONE) {
    t->collect = false;
    return;
  }
  t->at[t->count] = at;
  t->early[t->count++] = early;
}

/* Of the general form there is no division: vector code has none. n - shift mod n is at most n, and does not
 * overflow for any shift, as -shift would. */
u32 kern_rolled(Kern *k, u32 aff, Dim shift, Dim n) {
  IndexSplit *t = &k->split;
  i64 hint;
  bool early = size_hint(k->sizes, shift, &hint) && hint >= 0, trip = is_trip(k, aff);
  if (is_computed(k, aff)) t->collect = false;
  Dim by = size_mod(k->sizes, shift, size_max(k->sizes, n, size_const(k->sizes, 1)));
  if (trip && t->collect) note_split(k, size_sub(k->sizes, by, aff_at(&k->ax, aff)->c), early);
  /* a single split leaves two parts, in which all is known */
  if (trip && (t->part == 2 || (t->part && t->count == 1))) {
    bool behind = t->part == 3 || (t->part == 2 && early);
    Dim away = behind ? by : size_sub(k->sizes, by, n);
    return aff_add(&k->ax, aff, aff_const(&k->ax, size_mul(k->sizes, away, size_const(k->sizes, -1))));
  }
  u32 size = kern_dim(k, n), places = kern_dim(k, size_sub(k->sizes, n, by));
  u32 at = kern_op(k, LOOP_ADD, LT_I64, kern_index(k, aff), places, 0);
  u32 inside = kern_op(k, LOOP_LT, LT_I1, at, size, 0);
  return kern_task_var(k, kern_op(k, LOOP_SELECT, LT_I64, inside, at, kern_op(k, LOOP_SUB, LT_I64, at, size, 0)));
}

bool kern_is_split(const Kern *k) {
  return k->split.collect && k->split.count && !k->checked && k->scopes.count == k->main_scopes;
}

/* Early splits lie before the middle, the others behind it; where they overlap the middle is empty. */
void kern_split_bounds(Kern *k, u32 part, Dim trips, Dim *from, Dim *to) {
  SizePool *s = k->sizes;
  Dim lo = 0, hi = trips;
  for (u32 i = 0; i < k->split.count; i++) {
    if (k->split.early[i]) lo = size_max(s, lo, k->split.at[i]);
    else hi = size_min(s, hi, k->split.at[i]);
  }
  lo = size_min(s, lo, trips);
  hi = size_max(s, hi, lo);
  *from = part == 1 ? 0 : part == 2 ? lo : hi;
  *to = part == 1 ? lo : part == 2 ? hi : trips;
  if (lo == DIM_NONE || hi == DIM_NONE) k->ax.too_big = true;
}
