/* symmetric.c — see symmetric.h. */
#include "hop/symmetric.h"

#include "hop/tree.h"

/* The order of axes that exchanges the last `b` with the `a` before them. Gives how many there are. */
static u32 exchanged(u32 rank, u32 a, u32 b, u32 *perm) {
  u32 n = 0;
  for (u32 i = 0; i < rank - a - b; i++) perm[n++] = i;
  for (u32 i = 0; i < b; i++) perm[n++] = rank - b + i;
  for (u32 i = 0; i < a; i++) perm[n++] = rank - a - b + i;
  return n;
}

/* ---- values of the VM -------------------------------------------------------------------------- */

static WeftStatus op_of(Vm *vm, u32 op, Value x, Value second, Value third, Value *out) {
  Value args[OP_MAX_PARAMS];
  for (u32 i = 0; i < OP_MAX_PARAMS; i++) args[i] = value_hole();
  args[0] = value_keep(x);
  args[1] = value_keep(second);
  args[2] = value_keep(third);
  WeftStatus status = vm_op(vm, op, args, out);
  for (u32 i = 0; i < 3; i++) value_drop(vm, args[i]); /* an operation may have taken one: then it is empty */
  if (status != WEFT_OK) *out = value_hole(); /* what a failed operation left there is no value */
  return status;
}

/* x with a list of whole numbers: a shape, an order of axes. */
static WeftStatus op_of_numbers(Vm *vm, u32 op, Value x, const i64 *numbers, u32 count, Value *out) {
  Value items[ARRAY_MAX_RANK], list;
  for (u32 i = 0; i < count; i++) items[i] = value_weak_i64(numbers[i]);
  if (!list_from(vm, items, count, &list)) return WEFT_ERROR;
  WeftStatus status = op_of(vm, op, x, list, value_hole(), out);
  value_drop(vm, list);
  return status;
}

static WeftStatus exchange(Vm *vm, Value x, u32 a, u32 b, Value *out) {
  ArrayType t;
  u32 perm[ARRAY_MAX_RANK];
  i64 axes[ARRAY_MAX_RANK];
  tree_leaf_type(x, &t);
  u32 n = exchanged(t.rank, a, b, perm);
  for (u32 i = 0; i < n; i++) axes[i] = perm[i];
  return op_of_numbers(vm, OP_transpose, x, axes, n, out);
}

/* x with what lies above the diagonal of the last two times `rank` axes also below it: in the square that they are,
 * what is chosen above the diagonal is the square, below it the square transposed. */
static WeftStatus mirror(Vm *vm, Value x, u32 rank, Value *out) {
  ArrayType t;
  i64 flat[ARRAY_MAX_RANK], n = 1;
  Value square = value_hole(), turned = value_hole(), all = value_hole(), upper = value_hole(), made = value_hole();
  tree_leaf_type(x, &t);
  u32 before = t.rank - 2 * rank;
  for (u32 i = 0; i < before; i++) flat[i] = t.dims[i];
  for (u32 i = 0; i < rank; i++) n *= t.dims[before + i];
  flat[before] = flat[before + 1] = n;
  WeftStatus status = op_of_numbers(vm, OP_reshape, x, flat, before + 2, &square);
  if (status == WEFT_OK) status = exchange(vm, square, 1, 1, &turned);
  if (status == WEFT_OK) status = op_of(vm, OP_full_like, square, value_bool(true), value_dtype(DT_bool), &all);
  if (status == WEFT_OK) status = op_of(vm, OP_triu, all, value_hole(), value_hole(), &upper);
  if (status == WEFT_OK) status = op_of(vm, OP_where, upper, square, turned, &made);
  if (status == WEFT_OK) status = op_of_numbers(vm, OP_reshape, made, t.dims, t.rank, out);
  value_drop(vm, square);
  value_drop(vm, turned);
  value_drop(vm, all);
  value_drop(vm, upper);
  value_drop(vm, made);
  return status;
}

WeftStatus symmetric_cells(Vm *vm, Value *cells, u32 count, const u32 *ranks) {
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < count && status == WEFT_OK; i++)
    for (u32 j = 0; j <= i && status == WEFT_OK; j++) {
      Value made;
      if (i == j && !ranks[i]) continue;
      status = i == j ? mirror(vm, cells[i * count + i], ranks[i], &made)
                      : exchange(vm, cells[j * count + i], ranks[j], ranks[i], &made);
      if (status != WEFT_OK) break;
      value_drop(vm, cells[i * count + j]);
      cells[i * count + j] = made;
    }
  return status;
}

/* ---- values of a graph ------------------------------------------------------------------------- */

static ValueId exchange_in(Graph *g, ValueId x, u32 a, u32 b) {
  u32 perm[TYPE_MAX_RANK];
  exchanged(value_type(g, x)->rank, a, b, perm);
  return graph_transpose(g, x, perm);
}

static ValueId mirror_in(Graph *g, ValueId x, u32 rank) {
  ArrayType t = *value_type(g, x), flat = {.dtype = DT_bool, .rank = 2, .device = t.device};
  Dim dims[TYPE_MAX_RANK], n = 1;
  u32 before = t.rank - 2 * rank;
  for (u32 i = 0; i < before; i++) dims[i] = t.dims[i];
  for (u32 i = 0; i < rank; i++) n = size_mul(&g->sizes, n, t.dims[before + i]);
  dims[before] = dims[before + 1] = flat.dims[0] = flat.dims[1] = n;
  ValueId square = graph_reshape(g, x, before + 2, dims);
  ValueId turned = square ? exchange_in(g, square, 1, 1) : 0;
  ValueId upper = turned ? graph_op1(g, OP_triu, graph_full_as(g, &flat, 1)) : 0;
  ValueId made = upper ? graph_op(g, OP_where, (ValueId[]){upper, square, turned}, 3, NULL, 0, NULL) : 0;
  return made ? graph_reshape(g, made, t.rank, t.dims) : 0;
}

bool symmetric_values(Graph *g, ValueId *cells, u32 count, const u32 *ranks) {
  for (u32 i = 0; i < count; i++)
    for (u32 j = 0; j <= i; j++) {
      if (i == j && !ranks[i]) continue;
      ValueId v = i == j ? mirror_in(g, cells[i * count + i], ranks[i])
                         : exchange_in(g, cells[j * count + i], ranks[j], ranks[i]);
      if (!v) return false;
      cells[i * count + j] = v;
    }
  return true;
}
