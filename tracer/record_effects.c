/* record_effects.c — what a trace does and cannot take back: output inside explicit constructs, calls of host functions.
 *
 * Each is a node that takes the effect token and gives the next. The token is cell 0 of the trace, so that loops, arms and
 * bodies of constructs carry it like any variable that they write. A trace begins without it, and anew when it is met.
 *
 * Exits. Where the recorder may leave at any instruction, a new safe exit is made behind an effect (`settle`), so that no
 * failed check does it again. The bodies of constructs have no exits: a check in one leaves in front of the construct, and
 * what was printed since is printed once more, unseen (Vm.unseen). That holds for output alone, which gives nothing back. */
#include "lang/mechanisms.h"
#include "tracer/record.h"

enum { OPERANDS_MOST = 64 };

typedef struct Template {
  Recorder *r;
  ValueId operands[OPERANDS_MOST];
  u32 count;
  bool host; /* for a host function: objects may go there as well */
} Template;

/* ---- the token ---------------------------------------------------------------------------------------- */

bool rec_tokens_begin(Recorder *r) {
  Av a = av_num(r, graph_input(r->g, TYPE_TOKEN, UINT32_MAX));
  if (!a || !vec_push(&r->vm->alloc, &r->cells, (RecCell){.value = a, .first = a, .dirty = true})) return !(r->failed = true);
  r->tokens = true;
  r->settled = a;
  return true;
}

static Outcome need_tokens(Recorder *r) {
  if (r->tokens) return OUT_GO;
  r->wants_tokens = true;
  return OUT_FAIL;
}

static Outcome effect_node(Recorder *r, u32 host, const ValueId *args, u32 count, const TypeId *results, u32 nresults, u32 exit, NodeId *out) {
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
  if (exit == UINT32_MAX) return r->failed ? OUT_FAIL : rec_stuck(r, REASON_construct_body, "what stands behind an effect cannot be rebuilt");
  Outcome o = effect_node(r, graph_host_add(r->g, HOST_settle, "settle", 0, 0), NULL, 0, NULL, 0, exit, &n);
  if (o != OUT_GO) return o;
  r->safe_exit = exit;
  r->settled = r->cells.data[0].value;
  r->updated = false;
  return OUT_GO;
}

/* ---- what is handed out -------------------------------------------------------------------------------- */

static RecipeId operand(Template *t, ValueId v) {
  u32 at = 0;
  while (at < t->count && t->operands[at] != v) at++;
  if (at == OPERANDS_MOST) return 0;
  t->operands[at] = v;
  if (at == t->count) t->count++;
  return recipe_arg(&t->r->g->exits, at);
}

static RecipeId template_of(Template *t, Av a, u32 depth);

static RecipeId number_of(Template *t, ValueId v) {
  ExitTable *x = &t->r->g->exits;
  ValueId flag = t->r->weaks.count ? rec_weak_flag(t->r, v) : 0;
  RecipeId number = operand(t, v);
  return flag && number ? recipe_weak(x, number, operand(t, flag)) : number;
}

static RecipeId tree_of(Template *t, Av a, u32 depth) {
  Recorder *r = t->r;
  ExitTable *x = &r->g->exits;
  const AbsVal v = *av_at(r, a);
  RecipeId few[16], *ids = v.count <= COUNT_OF(few) ? few : arena_alloc(&r->g->arena, sizeof *ids * v.count);
  if (!ids) return 0;
  for (u32 i = 0; i < v.count; i++)
    if (!(ids[i] = template_of(t, av_item(r, a, i), depth + 1))) return 0;
  switch (v.kind) {
    case AV_LIST: return recipe_list(x, ids, v.count);
    case AV_RECORD: return recipe_record(x, v.shape->keys, ids, v.count);
    case AV_TEXT: return recipe_text(x, v.op, ids, v.count);
    case AV_RANGE: return recipe_range(x, ids[0], ids[1], ids[2]);
    default: return recipe_fn(x, v.code, ids, v.count);
  }
}

/* A recipe of operands; 0: it cannot be handed out. Refs stay here: what they hold may not have been written yet. */
static RecipeId template_of(Template *t, Av a, u32 depth) {
  Recorder *r = t->r;
  if (depth > 16 || !a || !(a = av_force(r, a))) return 0;
  const AbsVal *v = av_at(r, a);
  switch (v->kind) {
    case AV_NUM: return number_of(t, v->value);
    case AV_HOLE: return recipe_const(&r->g->exits, value_hole());
    case AV_CONST: {
      RecipeId c = recipe_const(&r->g->exits, v->konst);
      return c || !v->source ? c : recipe_source(&r->g->exits, v->source);
    }
    case AV_LIST:
    case AV_RECORD:
    case AV_TEXT:
    case AV_RANGE: return tree_of(t, a, depth);
    case AV_CLOSURE:
      if (!t->host) return 0;
      if (v->source) return recipe_source(&r->g->exits, v->source);
      return v->env == ENV_ITEMS && !v->op ? tree_of(t, a, depth) : 0;
    case AV_OBJECT: return t->host && v->source && v->konst.kind != V_REF ? recipe_source(&r->g->exits, v->source) : 0;
    default: return 0;
  }
}

/* ---- output ----------------------------------------------------------------------------------------------- */

Outcome rec_print(Recorder *r, const Av *params, Av *out) {
  if (!r->prints || !r->no_exits || r->differentiating || !MECHANISM(r->vm, output_in_bodies)) return rec_stuck(r, REASON_effect_output, "print");
  Template t = {.r = r};
  Av hole = av_new(r, (AbsVal){.kind = AV_HOLE});
  RecipeId parts[3];
  Outcome o = need_tokens(r);
  if (o != OUT_GO) return o;
  for (u32 i = 0; i < 3; i++) {
    parts[i] = template_of(&t, params[i] ? params[i] : hole, 0);
    if (!parts[i]) return r->failed || r->g->failed ? OUT_FAIL : rec_stuck(r, REASON_effect_output, "print of what only the program can show");
  }
  NodeId n;
  RecipeId args = recipe_list(&r->g->exits, parts, 3);
  if (!args) return r->g->exits.failed ? OUT_FAIL : rec_stuck(r, REASON_effect_output, "print of very much");
  o = effect_node(r, graph_host_add(r->g, HOST_print, "print", 0, args), t.operands, t.count, NULL, 0, NO_EXIT, &n);
  if (o != OUT_GO) return o;
  *out = av_const(r, value_nil());
  return *out && !r->failed ? OUT_GO : OUT_FAIL;
}
