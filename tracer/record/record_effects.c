/* record_effects.c — what a trace does and cannot take back: output inside explicit constructs, calls of host
 * functions.
 *
 * Each is a node that takes the effect token and gives the next. The token is cell 0 of the trace, so that loops,
 * arms and bodies of constructs carry it like any variable that they write. A trace begins without it, and anew when
 * it is met.
 *
 * Exits. Where the recorder may leave at any instruction, a new safe exit is made behind an effect (`settle`), so
 * that no failed check does it again. The bodies of constructs have no exits: a check in one leaves in front of the
 * construct, and what was printed since is printed once more, unseen (Vm.unseen). That holds for output alone, which
 * gives nothing back. */
#include "lang/mechanisms.h"
#include "tracer/record/absval_use.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_effects.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_run.h"
#include "tracer/record/record_sizes.h"
#include "tracer/record/record_weak.h"

/* ---- the token ---------------------------------------------------------------------------------------- */

bool rec_tokens_begin(Recorder *r) {
  Av a = av_num(r, graph_input(r->g, TYPE_TOKEN, UINT32_MAX));
  if (!a || !vec_push(&r->vm->alloc, &r->cells, (RecCell){.value = a, .first = a, .dirty = true}))
    return !(r->failed = true);
  r->tokens = true;
  r->settled = a;
  return true;
}

static Outcome need_tokens(Recorder *r) {
  if (r->tokens) return OUT_GO;
  r->wants_tokens = true;
  return OUT_FAIL;
}

static Outcome effect_node(Recorder *r, u32 host, const ValueId *args, u32 count, const TypeId *results, u32 nresults,
                           u32 exit, NodeId *out) {
  NodeId n = host ? graph_host(r->g, host, av_at(r, r->cells.data[0].value)->value, args, count, results, nresults) : 0;
  Av after = n ? av_num(r, node_result(r->g, n, 0)) : 0;
  if (!after) return OUT_FAIL;
  r->g->nodes.data[n].exit = exit;
  *out = n;
  return rec_cell_write(r, 0, after);
}

Outcome rec_past_effects(Recorder *r) {
  if (!r->tokens || r->no_exits || r->abstract || r->cells.data[0].value == r->settled) return OUT_GO;
  const RecFrame *f = rec_top(r);
  NodeId n;
  u32 exit = rec_exit(r, EXIT_check, CHECK_none, f->code->proto->spans[f->pc]);
  if (exit == UINT32_MAX)
    return r->failed ? OUT_FAIL : rec_stuck(r, REASON_construct_body, "what stands behind an effect cannot be rebuilt");
  Outcome o = effect_node(r, graph_host_add(r->g, HOST_settle, "settle", 0, 0), NULL, 0, NULL, 0, exit, &n);
  if (o != OUT_GO) return o;
  r->safe_exit = exit;
  r->settled = r->cells.data[0].value;
  r->updated = false;
  for (u32 i = 0; i < r->unanchored_count && o == OUT_GO; i++) o = rec_anchor(r, r->unanchored[i]);
  r->unanchored_count = 0;
  return o;
}

/* ---- what is handed out -------------------------------------------------------------------------------- */

static RecipeId effect_operand(Handing *t, ValueId v) {
  u32 at = 0;
  while (at < t->count && t->operands[at] != v) at++;
  if (at == t->cap) {
    u32 cap = t->cap ? 2 * t->cap : 16;
    ValueId *more = arena_alloc(&t->r->g->arena, sizeof *more * cap);
    if (!more) return t->r->failed = true, 0;
    mem_copy(more, t->operands, sizeof *more * t->count);
    t->operands = more;
    t->cap = cap;
  }
  t->operands[at] = v;
  if (at == t->count) t->count++;
  return recipe_arg(&t->r->g->exits, at);
}

RecipeId rec_hand_number(Handing *h, ValueId v) {
  ValueId flag = h->r->weaks.count ? rec_weak_flag(h->r, v) : 0;
  RecipeId number = effect_operand(h, v);
  return flag && number ? recipe_weak(&h->r->g->exits, number, effect_operand(h, flag)) : number;
}

enum { HAND_DEPTH = 16 }; /* not a threshold: levels of a value that a host function is handed */

/* A recipe of operands; 0: it cannot be handed out. */
RecipeId rec_hand(Handing *h, Av a, u32 depth) {
  if (depth > HAND_DEPTH || !a || !(a = av_force(h->r, a))) return 0;
  const Repr *p = av_repr(h->r, a);
  return p->hand ? p->hand(h, a, depth) : 0;
}

/* ---- output ----------------------------------------------------------------------------------------------- */

Outcome rec_print(Recorder *r, const Av *params, Av *out) {
  if (!r->prints || !r->no_exits || r->differentiating || !MECHANISM(r->vm, output_in_bodies))
    return rec_stuck(r, REASON_effect_output, "print");
  if (params[3] && !av_is_hole(r, params[3]))
    return rec_stuck(r, REASON_effect_output, "print with flush=");
  Handing t = {.r = r};
  Av hole = av_hole(r);
  RecipeId parts[4];
  Outcome o = need_tokens(r);
  if (o != OUT_GO) return o;
  for (u32 i = 0; i < COUNT_OF(parts); i++) {
    parts[i] = rec_hand(&t, params[i] ? params[i] : hole, 0);
    if (!parts[i])
      return r->failed ||
             r->g->failed ? OUT_FAIL : rec_stuck(r, REASON_effect_output, "print of what only the program can show");
  }
  NodeId n;
  RecipeId args = recipe_list(&r->g->exits, parts, 4);
  if (!args) return r->g->exits.failed ? OUT_FAIL : rec_stuck(r, REASON_effect_output, "print of very much");
  o = effect_node(r, graph_host_add(r->g, HOST_print, "print", 0, args), t.operands, t.count, NULL, 0, NO_EXIT, &n);
  if (o != OUT_GO) return o;
  *out = av_const(r, value_nil());
  return *out && !r->failed ? OUT_GO : OUT_FAIL;
}

/* ---- host functions ------------------------------------------------------------------------------------------ */

typedef struct Gives { /* what the call is relied on to give */
  bool known, value;
  ArrayType type;
  i64 dims[TYPE_MAX_RANK]; /* -1: any */
} Gives;

/* What the type of the object in front promises, else what the function gave so far. */
static Gives gives_of(Recorder *r, const HostFn *host, Av first) {
  Gives g = {0};
  const AbsVal *v = first ? av_at(r, av_force(r, first)) : NULL;
  HandlePromise p = {0};
  const Handle *h = v && kind_is_handle(v->kind) ? v->konst.handle : NULL;
  for (u32 d = 0; d < TYPE_MAX_RANK; d++) g.dims[d] = -1;
  if (h && h->type->abstract && h->type->abstract(h->object, host->name, &p)) {
    g.known = p.dtype >= 0 && p.dtype < DT_COUNT && p.rank >= 0 && p.rank <= TYPE_MAX_RANK;
    g.value = p.dtype != 0;
    g.type.dtype = (u8)p.dtype;
    g.type.rank = (u8)p.rank;
    for (u32 d = 0; g.known && d < g.type.rank; d++) g.dims[d] = p.shape[d];
  } else if (host->gives && host->gives != HOST_GIVES_VARIES) {
    u64 w = host->gives;
    u32 kind = (u32)(w & 0xff) - 1;
    g.known = (kind == V_NIL || kind == V_NUM || kind == V_ARRAY) && w >> 32 == 0;
    g.value = kind != V_NIL;
    g.type = (ArrayType){.dtype = (u8)(w >> 8), .weak = w >> 16 & 1, .rank = (u8)(w >> 24)};
  }
  g.known &= !g.value || (dtype_kind(g.type.dtype) <= DK_FLOAT && (g.type.rank || g.type.dtype != DT_c128));
  return g;
}

/* Does nobody read what the call gives? */
static bool result_is_dead(Recorder *r) {
  const RecFrame *f = rec_top(r);
  const Proto *p = f->code->proto;
  Ins i = p->code[f->pc];
  u32 op = ins_op(i), words = (p->nregs + 63) / 64;
  u64 bits[64] = {0};
  if ((op != BC_call && op != BC_callx) || words > COUNT_OF(bits) || !rec_live(r, p, f->pc + 1, bits)) return false;
  return !(bits[ins_a(i) / 64] >> (ins_a(i) % 64) & 1);
}

static TypeId type_given(Recorder *r, Gives *g) {
  r->unanchored_count = 0;
  for (u32 d = 0; d < g->type.rank; d++) {
    g->type.dims[d] = g->dims[d];
    if (g->dims[d] >= 0) continue;
    if (r->unanchored_count == COUNT_OF(r->unanchored)) return 0;
    g->type.dims[d] = size_unbacked(&r->g->sizes, NULL, 0, 0, SIZE_LIMIT - 1);
    if (g->type.dims[d] == DIM_NONE) return 0;
    r->unanchored[r->unanchored_count++] = g->type.dims[d];
  }
  return graph_type(r->g, &g->type);
}

/* A node that calls it where the program stands, when it may be left in front of the call and what it gives is
 * known. */
Outcome rec_host(Recorder *r, Av fn, const Av *args, const Name *names, u32 nargs, Av *out) {
  const AbsVal v = *av_at(r, fn);
  const HostFn *host = v.konst.fn->host;
  if (host->suspends) return rec_stuck(r, REASON_effect_host, "%s, for which the program may wait", host->name);
  if (!host->catches_up || r->no_exits || r->abstract || r->differentiating || names || !v.source ||
      !MECHANISM(r->vm, host_calls_are_nodes))
    return rec_stuck(r, REASON_effect_host, "a host function");
  Handing t = {.r = r, .host = true};
  RecipeId *parts = arena_alloc(&r->g->arena, sizeof *parts * (nargs + 1));
  if (!parts) return OUT_FAIL;
  Gives gives = gives_of(r, host, nargs ? args[0] : 0);
  bool dead = result_is_dead(r);
  if (!gives.known && !dead)
    return rec_stuck(r, host->gives ? REASON_effect_host : REASON_host_unknown, "%s", host->name);
  Outcome o = need_tokens(r);
  if (o != OUT_GO) return o;
  for (u32 i = 0; i < nargs; i++)
    if (!(parts[i] = rec_hand(&t, args[i], 0)))
      return r->failed || r->g->failed ? OUT_FAIL : rec_stuck(r, REASON_effect_host,
                                                              "%s is given what only the program can make", host->name);
  RecipeId callee = recipe_source(&r->g->exits, v.source), with = recipe_list(&r->g->exits, parts, nargs);
  const RecFrame *f = rec_top(r);
  u32 exit = callee && with ? rec_exit(r, EXIT_limit, REASON_effect_host, f->code->proto->spans[f->pc]) : NO_EXIT;
  if (exit == NO_EXIT)
    return r->failed || r->g->exits.failed ? OUT_FAIL : rec_stuck(r, REASON_effect_host,
                                                                  "%s where the program cannot be left", host->name);
  u32 id = graph_host_add(r->g, HOST_function, host->name, callee, with);
  bool value = gives.known && gives.value && !dead;
  TypeId type = value ? type_given(r, &gives) : 0;
  if (!id || (value && !type)) return OUT_FAIL;
  r->g->hosts.data[id].is_nil = !value && !dead;
  NodeId n;
  if ((o = effect_node(r, id, t.operands, t.count, &type, value, exit, &n)) != OUT_GO) return o;
  if (!value) {
    *out = av_const(r, value_nil());
    return *out ? OUT_GO : OUT_FAIL;
  }
  ValueId result = node_result(r->g, n, 1);
  for (u32 d = 0; d < gives.type.rank; d++) rec_carry(r, gives.type.dims[d], result, d);
  *out = av_num(r, result);
  return *out ? OUT_GO : OUT_FAIL;
}
