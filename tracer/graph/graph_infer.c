/* graph_infer.c — result types of operation nodes (see graph.h): by the shape rule that the operation's row names
 * (graph_infer.h). Where that refuses, the recorder breaks, and the operation runs eagerly. */
#include "tracer/graph/graph_infer.h"

#include <string.h>

static bool (*const rules[OP_COUNT])(Infer *) = {
    infer_none,
#define OP(name, signature, family, dtype, shape, ...) infer_##shape,
#include "lang/ops.def"
#undef OP
};

bool graph_has_rule(u32 op) { return rules[op] != infer_none && rules[op] != infer_parts; }
bool graph_has_parts(u32 op) { return rules[op] == infer_parts; }

void graph_infer_anew(Graph *g) { memset(g->inferred, 0, sizeof g->inferred); }

/* Where the result for operands of these types is noted. */
static Inferred *inferred_at(Graph *g, u32 op, const ValueId *operands, u32 count, Inferred *key) {
  *key = (Inferred){.op = (u16)op, .count = (u8)count};
  u32 hash = op;
  for (u32 i = 0; i < count; i++) hash = hash * 31 + (key->types[i] = g->values.data[operands[i]].type);
  return &g->inferred[hash * 0x9E3779B1u / (UINT32_MAX / INFERRED_PLACES + 1)];
}

static bool is_same(const Inferred *a, const Inferred *b) {
  return a->op == b->op && a->count == b->count && memcmp(a->types, b->types, sizeof a->types) == 0;
}

/* Notes it if sizes were not compared for it: nothing was assumed on the way. */
static void note_inferred(Graph *g, Inferred *to, Inferred key, const ArrayType *result) {
  key.shaped = key.count;
  for (u32 i = 0; i < key.count; i++) {
    const ArrayType *t = type_of(g, key.types[i]);
    if (!t->rank) continue;
    if (t->rank != result->rank || memcmp(t->dims, result->dims, sizeof *t->dims * t->rank) != 0) return;
    key.shaped = (u8)i;
  }
  if (key.shaped == key.count && result->rank) return;
  key.dtype = result->dtype;
  key.device = result->device;
  key.weak = result->weak;
  *to = key;
}

/* Known sizes that no array has: nobody may read it, but to make it is an error. */
static bool never_fits(Graph *g, const ArrayType *t) {
  i64 dims[TYPE_MAX_RANK];
  for (u32 d = 0; d < t->rank; d++)
    if (t->dims[d] == DIM_FRESH || !size_is_const(&g->sizes, t->dims[d], &dims[d])) return false;
  return dims_size(t->rank, dims) < 0;
}

bool graph_infer(Graph *g, DimCtx *dims, u32 op, const ValueId *operands, u32 count, const GraphAttr *attrs, u32 nattrs,
                 ArrayType *results, u32 *nresults, RuleError *err) {
  RuleError own;
  Infer c;
  c.g = g;
  c.dims = dims;
  c.op = op;
  c.out = results;
  c.capacity = *nresults;
  c.count = 1;
  c.err = err ? err : &own;
  c.more = NULL;
  if (*nresults == 0) return false;
  c.err->text[0] = 0;
  Inferred key, *seen = !op || nattrs || count > INFERRED_OPERANDS ? NULL : inferred_at(g, op, operands, count, &key);
  if (seen && is_same(seen, &key)) {
    if (seen->shaped < count) *results = *type_of(g, key.types[seen->shaped]);
    else *results = (ArrayType){0};
    results->dtype = seen->dtype;
    results->device = seen->device;
    results->weak = seen->weak;
    *nresults = 1;
    return true;
  }
  *results = (ArrayType){0}; /* others are written as a whole */
  bind_args(op, operands, count, attrs, nattrs, c.args);
  if (!inf_flags_fit(&c)) return inf_no_rule(&c);
  bool inferred = rules[op](&c);
  mem_free(g->alloc, c.more, sizeof *c.more * c.nmore);
  if (!inferred) return false;
  for (u32 i = 0; i < c.count; i++)
    if (results[i].rank == 0) results[i].device = 0; /* numbers live with the processor */
  for (u32 i = 0; i < c.count; i++)
    for (u32 d = 0; d < results[i].rank; d++)
      if (results[i].dims[d] == DIM_NONE) return inf_fail(&c, EK_unsupported, "a size expression got too large");
  for (u32 i = 0; i < c.count; i++)
    if (never_fits(g, &results[i])) return inf_fail(&c, EK_value, "an array has fewer than 2 ** 62 elements");
  *nresults = c.count;
  if (seen && op_info(op)->family == FAM_elementwise && c.count == 1) note_inferred(g, seen, key, results);
  return true;
}

/* ---- indexing -------------------------------------------------------------------------------------- */

/* A slice's length from an axis of size n: NumPy's clamping. Parts are known or symbolic; the step is known. */
static bool slice_length(Graph *g, const IndexItem *it, Dim n, Dim *out) {
  SizePool *p = &g->sizes;
  i64 step = 1;
  if (it->part[2] == PART_dim && !size_is_const(p, it->at[2], &step)) return false;
  if (it->part[2] == PART_operand || step == 0 || step == INT64_MIN) return false;
  if (it->part[0] == PART_operand || it->part[1] == PART_operand) return false;
  Dim ends[2];
  for (u32 i = 0; i < 2; i++) {
    /* the default, or the part with negative ones counted from the end, then clamped to 0 … n (-1 … n-1 backwards) */
    Dim least = step > 0 ? 0 : size_const(p, -1), most = step > 0 ? n : size_sub(p, n, 1);
    if (it->part[i] == PART_none) {
      ends[i] = (i == 0) == (step > 0) ? least : most;
      continue;
    }
    Dim d = it->at[i];
    SizeTruth negative = size_prove(p, REL_lt, d, 0);
    if (negative == TRUTH_unknown) return false;
    if (negative == TRUTH_always) d = size_add(p, d, n);
    ends[i] = size_min(p, size_max(p, d, least), most);
  }
  Dim span = step > 0 ? size_sub(p, ends[1], ends[0]) : size_sub(p, ends[0], ends[1]);
  *out = size_max(p, size_ceildiv(p, span, step > 0 ? step : -step), 0);
  return *out != DIM_NONE;
}

bool graph_infer_index(Graph *g, DimCtx *dims, ValueId x, const ValueId *operands, u32 count, const IndexItem *items,
                       u32 nitems, ArrayType *result, RuleError *err) {
  RuleError own;
  Infer c = {.g = g, .dims = dims, .op = OP_none, .out = result, .err = err ? err : &own};
  ArrayType from = *value_type(g, x);
  const ArrayType *arrays[TYPE_MAX_RANK];
  ArrayType joint;
  u32 used = 0, narrays = 0, first = UINT32_MAX, last = 0, n = 0;
  bool apart = false, ellipsis = false;
  Dim out[TYPE_MAX_RANK + 1];
  for (u32 i = 0; i < nitems; i++) {
    if (items[i].kind == INDEX_mask) return inf_fail(&c, EK_unsupported, "the length is known only at run time");
    used += items[i].kind == INDEX_int || items[i].kind == INDEX_slice || items[i].kind == INDEX_array;
    if (items[i].kind == INDEX_ellipsis && ellipsis) return inf_fail(&c, EK_index, "an index holds … twice");
    ellipsis |= items[i].kind == INDEX_ellipsis;
  }
  if (used > from.rank) return inf_fail(&c, EK_index, "too many indices");
  u32 axis = 0;
  bool advanced = false;
  for (u32 i = 0; i < nitems; i++) advanced |= items[i].kind == INDEX_array;
  for (u32 i = 0; i < nitems; i++) {
    const IndexItem *it = &items[i];
    if (n > TYPE_MAX_RANK) return inf_fail(&c, EK_shape, "the rank of the result is too large");
    switch (it->kind) {
      case INDEX_int:
      case INDEX_array:
        if (it->kind == INDEX_array || advanced) { /* an integer beside arrays takes part in their broadcasting */
          static const ArrayType scalar = {.dtype = DT_i64};
          if (it->kind == INDEX_array && (it->at[0] < 1 || it->at[0] > count)) return inf_no_rule(&c);
          arrays[narrays++] = it->kind == INDEX_array ? value_type(g, operands[it->at[0] - 1]) : &scalar;
          if (first == UINT32_MAX) first = n;
          else apart |= last != i;
          last = i + 1;
        }
        axis++;
        break;
      case INDEX_slice:
        if (!slice_length(g, it, from.dims[axis], &out[n]))
          return inf_fail(&c, EK_unsupported, "the length is known only at run time");
        n++;
        axis++;
        break;
      case INDEX_newaxis: out[n++] = 1; break;
      default:
        for (u32 left = from.rank - used; left > 0 && n <= TYPE_MAX_RANK; left--) out[n++] = from.dims[axis++];
        break;
    }
  }
  if (!ellipsis)
    while (axis < from.rank && n <= TYPE_MAX_RANK) out[n++] = from.dims[axis++];
  u32 rank = 0;
  if (narrays) {
    if (!rule_broadcast(dims, narrays, arrays, &joint, c.err)) return false;
    u32 at = apart ? 0 : first;
    if (n + joint.rank > TYPE_MAX_RANK) return inf_fail(&c, EK_shape, "the rank of the result is too large");
    memmove(out + at + joint.rank, out + at, sizeof *out * (n - at));
    memcpy(out + at, joint.dims, sizeof *out * joint.rank);
    rank = joint.rank;
  }
  rank += n;
  if (rank > TYPE_MAX_RANK) return inf_fail(&c, EK_shape, "the rank of the result is too large");
  *result = (ArrayType){.dtype = from.dtype, .rank = (u8)rank, .device = rank ? from.device : 0};
  memcpy(result->dims, out, sizeof *out * rank);
  return true;
}
