/* rows.c — which loops the kernels of rows.h stand for. */
#include "jit/plan/rows.h"
#include "jit/plan/plan_inner.h"

#include <string.h>

/* Walks over the body of a function. */
typedef struct Form {
  const LoopFn *fn;
  u32 at;
  bool other; /* it has another form */
} Form;

static const LoopNode *next(Form *f, LoopOp op, u32 *id) {
  static const LoopNode none;
  *id = f->at < f->fn->body.count ? f->fn->body.data[f->at++] : 0;
  const LoopNode *n = *id ? loop_node(f->fn, *id) : &none;
  f->other |= n->op != op;
  return f->other ? &none : n;
}

static void ask(Form *f, bool holds) { f->other |= !holds; }

static u32 param(const LoopFn *fn, u32 i) { return i < fn->params.count ? fn->params.data[i] : 0; }

/* b[row * stride + column] */
static bool is_cell(const LoopFn *fn, const LoopNode *n, u32 buffer, u32 row, u32 stride, u32 column) {
  if (n->a != buffer || n->count != 2 || n->imm) return false;
  const LoopTerm *t = loop_terms(fn, n);
  return t[0].coef == 1 && t[0].var == row && t[0].stride[0] == stride && !t[0].stride[1] && t[1].coef == 1 &&
         t[1].var == column && !t[1].stride[0] && !t[1].stride[1];
}

/* par i in 0..n0 { for j in 0..n1 { %r = reduce add k in 0..n2 { (x[i*n2 + k] - c[j*n2 + k]) squared } store y[i*n1 +
 * j] %r } } */
static bool is_distances(const LoopFn *fn, LoopType *type) {
  Form f = {.fn = fn};
  u32 par, loop, reduce, x, c, sub, mul, id, n1 = param(fn, 1), n2 = param(fn, 2);
  const LoopNode *n = next(&f, LOOP_PAR, &par);
  ask(&f, fn->params.count == 6);
  if (f.other || loop_trips_of(fn, par, 0) != param(fn, 0)) return false;
  n = next(&f, LOOP_FOR, &loop);
  ask(&f, n->b == 0 && n->a == 1);
  n = next(&f, LOOP_REDUCE, &reduce);
  ask(&f, n->a == 1 && n->aux == LOOP_REDUCE_ADD && n->mem == LOOP_ORDER_LANES);
  if (f.other || loop_trips_of(fn, loop, 0) != n1 || loop_trips_of(fn, reduce, 0) != n2) return false;
  u32 i = loop_index_of(par, 0), j = loop_index_of(loop, 0), k = loop_index_of(reduce, 0);
  n = next(&f, LOOP_LOAD, &x);
  *type = (LoopType)n->type;
  ask(&f, n->mem == n->type && is_cell(fn, n, param(fn, 3), i, n2, k));
  n = next(&f, LOOP_LOAD, &c);
  ask(&f, n->mem == n->type && is_cell(fn, n, param(fn, 4), j, n2, k));
  n = next(&f, LOOP_SUB, &sub);
  ask(&f, (n->a == x && n->b == c) || (n->a == c && n->b == x));
  n = next(&f, LOOP_MUL, &mul);
  ask(&f, n->a == sub && n->b == sub);
  n = next(&f, LOOP_YIELD, &id);
  ask(&f, n->count == 1 && loop_list(fn, n)[0] == mul);
  (void)next(&f, LOOP_END, &id);
  n = next(&f, LOOP_STORE, &id);
  ask(&f, n->mem == *type && n->b == loop_result_of(fn, reduce, 0) && is_cell(fn, n, param(fn, 5), i, n1, j));
  (void)next(&f, LOOP_END, &id);
  (void)next(&f, LOOP_END, &id);
  return !f.other && f.at == fn->body.count && loop_is_float(*type);
}

static bool is_binary(const LoopNode *n, u32 a, u32 b) { return n->a == a && n->b == b; }

static bool is_number(const LoopFn *fn, u32 id, i64 v) {
  const LoopNode *n = loop_node(fn, id);
  return n->op == LOOP_CONST && n->type == LT_I64 && (i64)n->imm == v;
}

/* par i in 0..n0 { %1 %2 = for j in 0..n1 (best = ±inf, at = 0) { takes x[i*n1 + j] when it is before the best, or the
 * first NaN } store y[i] %2 } */
static bool is_extreme(const LoopFn *fn, LoopType *type, bool *least) {
  Form f = {.fn = fn};
  u32 par, loop, x, id, before, nan, sound, breaks, take, value, where;
  const LoopNode *n = next(&f, LOOP_PAR, &par);
  ask(&f, fn->params.count == 4);
  if (f.other || loop_trips_of(fn, par, 0) != param(fn, 0)) return false;
  n = next(&f, LOOP_FOR, &loop);
  ask(&f, n->a == 1 && n->b == 2);
  if (f.other || loop_trips_of(fn, loop, 0) != param(fn, 1) || !is_number(fn, loop_init_of(fn, loop, 1), 0))
    return false;
  u32 i = loop_index_of(par, 0), j = loop_index_of(loop, 0), best = loop_carry_of(fn, loop, 0),
      at = loop_carry_of(fn, loop, 1);
  n = next(&f, LOOP_LOAD, &x);
  *type = (LoopType)n->type;
  ask(&f, n->mem == n->type && is_cell(fn, n, param(fn, 2), i, param(fn, 1), j));
  before = f.at < fn->body.count ? fn->body.data[f.at] : 0;
  *least = before && loop_node(fn, before)->op == LOOP_LT;
  const LoopNode *start = loop_node(fn, loop_init_of(fn, loop, 0));
  ask(&f,
      start->op == LOOP_CONST && start->imm == loop_reduce_identity(*least ? LOOP_REDUCE_MIN : LOOP_REDUCE_MAX, *type));
  ask(&f, is_binary(next(&f, *least ? LOOP_LT : LOOP_GT, &before), x, best));
  ask(&f, is_binary(next(&f, LOOP_NE, &nan), x, x));
  ask(&f, is_binary(next(&f, LOOP_EQ, &sound), best, best));
  ask(&f, is_binary(next(&f, LOOP_AND, &breaks), nan, sound));
  ask(&f, is_binary(next(&f, LOOP_OR, &take), before, breaks));
  n = next(&f, LOOP_SELECT, &value);
  ask(&f, n->a == take && n->b == x && n->c == best);
  n = next(&f, LOOP_SELECT, &where);
  ask(&f, n->a == take && n->b == j && n->c == at);
  n = next(&f, LOOP_NEXT, &id);
  ask(&f, n->count == 2 && loop_list(fn, n)[0] == value && loop_list(fn, n)[1] == where);
  (void)next(&f, LOOP_END, &id);
  n = next(&f, LOOP_STORE, &id);
  ask(&f, n->mem == LT_I64 && n->a == param(fn, 3) && n->b == loop_result_of(fn, loop, 1) && n->count == 1 && !n->imm);
  if (f.other) return false;
  const LoopTerm *t = loop_terms(fn, n);
  ask(&f, t->coef == 1 && t->var == i && !t->stride[0] && !t->stride[1]);
  (void)next(&f, LOOP_END, &id);
  return !f.other && f.at == fn->body.count && loop_is_float(*type);
}

LoopKernelFn rows_kernel(const LoopFn *fn, VecLevel level) {
#ifdef __x86_64__
  LoopType type = LT_VOID;
  bool least = false;
  if (level < VEC_AVX2) return NULL;
  if (is_distances(fn, &type)) return type == LT_F32 ? rows_distances_f32_avx2 : rows_distances_f64_avx2;
  if (is_extreme(fn, &type, &least))
    return type == LT_F32 ? (least ? rows_argmin_f32_avx2 : rows_argmax_f32_avx2) : least ? rows_argmin_f64_avx2
                          : rows_argmax_f64_avx2;
#else
  (void)fn, (void)level;
#endif
  return NULL;
}

/* ---- distances that are only compared ---------------------------------------------------------------- */

static bool same_arg(const PlanArg *a, const PlanArg *b) {
  return a->kind == b->kind && a->slot == b->slot && a->axis == b->axis && a->imm == b->imm;
}

typedef struct Wanted {
  u32 value;
  bool found;
} Wanted;

static void look_for(void *ctx, u32 value) {
  Wanted *w = ctx;
  w->found |= w->value == value;
}

/* The step behind `first` that reads what it wrote to `slot`, when nothing else does and nothing happens between them;
 * 0: there is none. */
static u32 only_reader(const Plan *p, u32 first, u32 slot, u32 *made) {
  u32 reader = 0;
  *made = 0;
  Wanted wanted = {.value = p->slots.data[slot].value};
  for (u32 i = 0; i < p->checks.count; i++) graph_exit_values(p->graph, p->checks.data[i].exit, look_for, &wanted);
  for (u32 i = 0; i < p->native_exits.count; i++)
    if (p->native_exits.data[i].plan_exit != NO_EXIT)
      graph_exit_values(p->graph, p->native_exits.data[i].plan_exit, look_for, &wanted);
  for (u32 i = 0; i < p->steps.count; i++) {
    const PlanStep *s = &p->steps.data[i];
    if (s->exit != NO_EXIT) graph_exit_values(p->graph, s->exit, look_for, &wanted);
    if (i > first && !reader && s->op == STEP_kernel) {
      reader = i;
      continue;
    }
    if (i > first && !reader && s->op != STEP_alloc && s->op != STEP_size) return 0;
    if (i == first || !plan_names_slot(p, s, slot)) continue;
    if (s->op == STEP_alloc && i < first) *made = i;
    else if (s->op != STEP_free || !reader) return 0;
  }
  return *made && !wanted.found ? reader : 0;
}

static void remove_step(Plan *p, u32 at) {
  memmove(p->steps.data + at, p->steps.data + at + 1, sizeof *p->steps.data * (p->steps.count - at - 1));
  p->steps.count--;
}

/* lo hi n0 n1 d x c y and lo hi n0 n1 y z become lo hi n0 n1 d x c z. */
static bool join(Plan *p, u32 first, LoopType type) {
  const PlanStep *s = &p->steps.data[first];
  PlanArg args[8];
  u32 made, reader, users = 0;
  LoopType its;
  bool least;
  memcpy(args, p->args.data + s->arg, sizeof args);
  if (args[7].kind != PA_data || p->slots.data[args[7].slot].device != DEV_CPU) return true;
  reader = only_reader(p, first, args[7].slot, &made);
  if (!reader) return true;
  PlanStep *r = &p->steps.data[reader];
  PlanKernel *k = &p->kernels.data[r->index];
  for (u32 i = 0; i < p->steps.count; i++)
    users += p->steps.data[i].op == STEP_kernel && p->steps.data[i].index == r->index;
  if (users != 1 || !k->fn || r->nargs != 6 || !is_extreme(k->self, &its, &least) || !least || its != type) return true;
  const PlanArg *b = p->args.data + r->arg;
  for (u32 i = 0; i < 4; i++)
    if (!same_arg(&args[i], &b[i])) return true;
  if (b[4].kind != PA_data || b[4].slot != args[7].slot) return true;
  args[7] = b[5];
  r->arg = plan_args(p, args, 8);
  r->nargs = 8;
#ifdef __x86_64__
  k->fn = type == LT_F32 ? rows_nearest_f32_avx2 : rows_nearest_f64_avx2;
#endif
  remove_step(p, first);
  remove_step(p, made);
  return !p->failed;
}

bool rows_join(Plan *p) {
  for (u32 i = 0; i < p->steps.count; i++) {
    const PlanStep *s = &p->steps.data[i];
    LoopType type;
    if (s->op == STEP_kernel && s->nargs == 8 && p->kernels.data[s->index].fn &&
        is_distances(p->kernels.data[s->index].self, &type) && !join(p, i, type))
      return false;
  }
  return true;
}
