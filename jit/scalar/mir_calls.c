/* mir_calls.c — calls of one function by another, and functions that others of their group call.
 *
 * These have two entries. `inner` takes and gives back the budget in a register, takes the depth in one, and gives
 * its result in one; an exit comes back in place of the budget, negative, and the budget lies in LoopCtx then. The
 * other is what loops.h says. */
#include <stdio.h>
#include <string.h>

#include "jit/scalar/mir_emitter.h"

MIR_type_t mir_argument_type(LoopType t) { return t == LT_PTR ? MIR_T_P : mir_memory_type(t); }

/* The types of what an inner function gives: the budget, its result. Returns their number. */
u32 mir_inner_types(const LoopFn *fn, MIR_type_t types[2]) {
  types[0] = MIR_T_I64;
  if (!fn->results.count) return 1;
  LoopType t = (LoopType)fn->results.data[0];
  types[1] = loop_is_float(t) ? mir_memory_type(t) : MIR_T_I64;
  return 2;
}

/* NULL: memory refused. */
static MIR_item_t prototype(MirGroup *g, const LoopFn *fn, const char *name, bool inner) {
  u32 first = inner ? 3 : 1, results = 1;
  MIR_type_t types[2] = {MIR_T_U32};
  MIR_var_t *vars = mem_alloc(g->alloc, sizeof *vars * (fn->params.count + first)), always[3] = {
      {.type = MIR_T_P, .name = "ctx"}, {.type = MIR_T_I64, .name = "left"}, {.type = MIR_T_I64, .name = "depth"}};
  if (!vars) return NULL;
  if (inner) results = mir_inner_types(fn, types);
  memcpy(vars, always, sizeof *vars * first);
  for (u32 i = 0; i < fn->params.count; i++)
    vars[i + first] = (MIR_var_t){.type = mir_argument_type(loop_type_of(fn, fn->params.data[i])), .name = "a"};
  MIR_item_t item = MIR_new_proto_arr(g->ctx, name, results, types, fn->params.count + first, vars);
  mem_free(g->alloc, vars, sizeof *vars * (fn->params.count + first));
  return item;
}

static MirUnit *unit_of(const Emitter *e, const LoopFn *fn) {
  for (u32 i = 0; i < e->group->count; i++)
    if (e->group->units[i].source == fn) return &e->group->units[i];
  return NULL;
}

static void call_kernel(Emitter *e, u32 id, u32 at, const LoopNode *n, MIR_op_t callee) {
  const u32 *list = loop_list(e->fn, n);
  u32 words = n->a - 2, room = mir_words_room(e);
  MIR_reg_t args = mir_temp(e, LT_I64), key = mir_temp(e, LT_I64);
  for (u32 i = 0; i < words; i++) mir_store_word(e, mir_frame(e), room + i * 8, list[i]);
  rri(e, MIR_ADD, args, mir_frame(e), room);
  MIR_op_t ops[6] = {MIR_new_ref_op(e->ctx, mir_prototype(e->group, PROTO_KERNEL)), callee, R(e, key), R(e, args),
                     mir_op(e, list[words]), mir_op(e, list[words + 1])};
  put(e, MIR_new_insn_arr(e->ctx, MIR_CALL, 6, ops));
  if (!n->c) {
    ins3(e, MIR_EQ, R(e, mir_reg(e, loop_result_of(e->fn, id, 0))), R(e, key), I(e, -1));
    return;
  }
  Cold *c = mir_cold(e, COLD_LEAVE, id, at);
  bri(e, MIR_BNE, c->label, key, -1);
}

/* Budget and depth go along in registers, and the budget comes back with the result; below 0 it is the exit. */
static void call_inner(Emitter *e, u32 id, u32 at, const LoopNode *n, const LoopFn *fn, MIR_op_t proto,
                       MIR_op_t callee) {
  MIR_reg_t depth = mir_temp(e, LT_I64);
  MIR_op_t *ops = mem_alloc(e->alloc, sizeof *ops * (n->a + 7));
  u32 count = 0;
  if (!ops) {
    e->failed = true;
    return;
  }
  if (!e->depth) mir_load(e, depth, e->native_ctx, CTX_DEPTH);
  rri(e, MIR_SUB, depth, e->depth ? e->depth : depth, 1);
  ops[count++] = proto;
  ops[count++] = callee;
  ops[count++] = R(e, e->left);
  if (fn->results.count)
    ops[count++] = R(e, n->b ? mir_reg(e, loop_result_of(e->fn, id, 0)) : mir_temp(e, (LoopType)fn->results.data[0]));
  ops[count++] = R(e, e->native_ctx);
  ops[count++] = R(e, e->left);
  ops[count++] = R(e, depth);
  for (u32 i = 0; i < n->a; i++) ops[count++] = mir_op(e, loop_list(e->fn, n)[i]);
  put(e, MIR_new_insn_arr(e->ctx, MIR_CALL, count, ops));
  mem_free(e->alloc, ops, sizeof *ops * (n->a + 7));
  Cold *c = mir_cold(e, COLD_LEAVE, id, at);
  c->code = mir_temp(e, LT_I64);
  c->inner = true;
  bri(e, MIR_BLT, c->label, e->left, 0);
}

static void calls_emit_native(Emitter *e, u32 id, u32 at, const LoopNode *n, const LoopFn *fn, MIR_op_t proto,
                              MIR_op_t callee) {
  MIR_label_t room = new_label(e);
  MIR_reg_t depth = mir_temp(e, LT_I64), code = mir_temp(e, LT_I64), results = mir_temp(e, LT_I64);
  MIR_op_t *ops = mem_alloc(e->alloc, sizeof *ops * (n->a + 4));
  if (!ops) {
    e->failed = true;
    return;
  }
  mir_store(e, e->native_ctx, CTX_BUDGET, e->left);
  if (e->depth) rr(e, MIR_MOV, depth, e->depth);
  else mir_load(e, depth, e->native_ctx, CTX_DEPTH);
  rri(e, MIR_SUB, depth, depth, 1);
  mir_store(e, e->native_ctx, CTX_DEPTH, depth);
  bri(e, MIR_BGE, room, depth, 0);
  ins2(e, MIR_MOV, mir_ctx_word(e, CTX_BUDGET), I(e, 0)); /* the callee's first poll asks the VM */
  put_label(e, room);
  ops[0] = proto;
  ops[1] = callee;
  ops[2] = R(e, code);
  ops[3] = R(e, e->native_ctx);
  for (u32 i = 0; i < n->a; i++) ops[4 + i] = mir_op(e, loop_list(e->fn, n)[i]);
  put(e, MIR_new_insn_arr(e->ctx, MIR_CALL, n->a + 4, ops));
  mem_free(e->alloc, ops, sizeof *ops * (n->a + 4));
  mir_load(e, depth, e->native_ctx, CTX_DEPTH);
  rri(e, MIR_ADD, depth, depth, 1);
  mir_store(e, e->native_ctx, CTX_DEPTH, depth);
  mir_load(e, e->left, e->native_ctx, CTX_BUDGET);
  Cold *c = mir_cold(e, COLD_LEAVE, id, at);
  c->code = code;
  bri(e, MIR_BNE, c->label, code, 0);
  if (n->b) mir_load(e, results, e->native_ctx, CTX_RESULTS);
  for (u32 i = 0; i < n->b; i++) {
    u32 r = loop_result_of(e->fn, id, i);
    LoopType t = (LoopType)fn->results.data[i];
    ins2(e, move_code(t), R(e, mir_reg(e, r)), M(e, loop_is_float(t) ? mir_memory_type(t) : MIR_T_I64, results, i * 8));
  }
}

void mir_put_call(Emitter *e, u32 id, u32 at) {
  const LoopNode *n = en(e, id);
  const char *name = name_text(&e->fn->module->names, (Name)n->imm);
  const LoopFn *fn = loop_module_find(e->fn->module, name);
  MirUnit *unit = unit_of(e, fn);
  if (!unit && !fn->address) {
    mir_missing(e, "no definition of", name);
    return;
  }
  /* In a register, or MIR would put small functions in line: marks and frames are by function. */
  MIR_op_t callee = R(e, mir_temp(e, LT_I64));
  bool by_address = fn->address && fn->kind == LOOP_KERNEL; /* what counts its runs, then */
  ins2(e, MIR_MOV, callee, unit && !by_address ? MIR_new_ref_op(e->ctx, unit->inner ? unit->inner : unit->item)
                                               : MIR_new_uint_op(e->ctx, (u64)(uintptr_t)fn->address));
  if (fn->kind == LOOP_KERNEL) {
    call_kernel(e, id, at, n, callee);
    return;
  }
  char proto[40];
  snprintf(proto, sizeof proto, "call_%llu_%u_%u", (unsigned long long)e->group->serial,
           (u32)(e->unit - e->group->units), ++e->temps);
  bool inner = unit && unit->inner;
  MIR_item_t item = prototype(e->group, fn, proto, inner);
  if (!item) e->failed = true;
  else if (inner) call_inner(e, id, at, n, fn, MIR_new_ref_op(e->ctx, item), callee);
  else calls_emit_native(e, id, at, n, fn, MIR_new_ref_op(e->ctx, item), callee);
}

/* ---- functions that others call ------------------------------------------------------------ */

/* A function of one result at most, that others of its group call: its code is `inner`. */
void mir_find_inner(MirGroup *g) {
  for (u32 i = 0; i < g->count; i++) {
    const LoopFn *f = g->units[i].fn;
    for (u32 k = 0; k < f->body.count && toil(f->module->toil, 1); k++) {
      const LoopNode *n = loop_node(f, f->body.data[k]);
      if (n->op != LOOP_CALL) continue;
      const LoopFn *callee = loop_module_find(f->module, name_text(&f->module->names, (Name)n->imm));
      (void)toil(f->module->toil, g->count / 8);
      for (u32 u = 0; u < g->count; u++)
        if (g->units[u].source == callee && callee->kind == LOOP_NATIVE && callee->results.count <= 1)
          g->units[u].is_inner = true;
    }
  }
}

/* The function by the convention of loops.h: calls the inner one. */
void mir_outer(MirGroup *g, u32 number) {
  MirUnit *unit = &g->units[number];
  Emitter e = {.group = g, .unit = unit, .fn = unit->fn, .alloc = g->alloc, .ctx = g->ctx};
  u32 count = e.fn->params.count, nops = 0;
  char name[40];
  snprintf(name, sizeof name, "outer_%llu_%u", (unsigned long long)g->serial, number);
  MIR_item_t proto = prototype(g, e.fn, name, true);
  MIR_var_t *vars = mem_alloc(g->alloc, sizeof *vars * (count + 1));
  char *names = mem_alloc(g->alloc, 16 * (size_t)(count + 1));
  MIR_op_t *ops = mem_alloc(g->alloc, sizeof *ops * (count + 7));
  bool ok = proto && vars && names && ops;
  unit->broken = !ok;
  MIR_var_t ctx = {.type = MIR_T_P, .name = "ctx"};
  MIR_type_t code_type = MIR_T_U32;
  for (u32 i = 0; ok && i < count; i++) {
    snprintf(names + 16 * i, 16, "v%u", i);
    vars[i + 1] = (MIR_var_t){.type = mir_argument_type(et(&e, e.fn->params.data[i])), .name = names + 16 * i};
  }
  if (ok) vars[0] = ctx;
  snprintf(name, sizeof name, "fn_%llu_%u", (unsigned long long)g->serial, number);
  unit->item = e.item = MIR_new_func_arr(g->ctx, name, 1, &code_type, ok ? count + 1 : 1, ok ? vars : &ctx);
  MIR_func_t func = e.item->u.func;
  e.native_ctx = MIR_reg(g->ctx, "ctx", func);
  MIR_reg_t left = mir_temp(&e, LT_I64), depth = mir_temp(&e, LT_I64), callee = mir_temp(&e, LT_I64),
      results = mir_temp(&e, LT_I64), value = 0;
  if (ok) {
    MIR_label_t failed = MIR_new_label(g->ctx);
    ins2(&e, MIR_MOV, R(&e, callee), MIR_new_ref_op(g->ctx, unit->inner));
    mir_load(&e, left, e.native_ctx, CTX_BUDGET);
    mir_load(&e, depth, e.native_ctx, CTX_DEPTH);
    ops[nops++] = MIR_new_ref_op(g->ctx, proto);
    ops[nops++] = R(&e, callee);
    ops[nops++] = R(&e, left);
    LoopType t = e.fn->results.count ? (LoopType)e.fn->results.data[0] : LT_VOID;
    if (t != LT_VOID) ops[nops++] = R(&e, value = mir_temp(&e, t));
    ops[nops++] = R(&e, e.native_ctx);
    ops[nops++] = R(&e, left);
    ops[nops++] = R(&e, depth);
    for (u32 i = 0; i < count; i++) ops[nops++] = R(&e, MIR_reg(g->ctx, names + 16 * i, func));
    put(&e, MIR_new_insn_arr(g->ctx, MIR_CALL, nops, ops));
    mir_store(&e, e.native_ctx, CTX_DEPTH, depth);
    ins3(&e, MIR_BLT, L(&e, failed), R(&e, left), I(&e, 0));
    mir_store(&e, e.native_ctx, CTX_BUDGET, left);
    if (value) {
      mir_load(&e, results, e.native_ctx, CTX_RESULTS);
      if (t == LT_F32) ins2(&e, MIR_MOV, M(&e, MIR_T_I64, results, 0), I(&e, 0));
      ins2(&e, move_code(t), M(&e, loop_is_float(t) ? mir_memory_type(t) : MIR_T_I64, results, 0), R(&e, value));
    }
    put(&e, MIR_new_ret_insn(g->ctx, 1, I(&e, 0)));
    put(&e, failed);
    mir_negate(&e, LT_I64, left, R(&e, left));
    put(&e, MIR_new_ret_insn(g->ctx, 1, R(&e, left)));
  } else {
    put(&e, MIR_new_ret_insn(g->ctx, 1, I(&e, 0)));
  }
  mem_free(g->alloc, ops, sizeof *ops * (count + 7));
  mem_free(g->alloc, names, 16 * (size_t)(count + 1));
  mem_free(g->alloc, vars, sizeof *vars * (count + 1));
  MIR_finish_func(g->ctx);
}
