/* record_exit.c — exits of a trace: recipes of abstract values, the journal, frames with what is live. */
#include "tracer/record/absval_use.h"
#include "tracer/record/record_exit.h"
#include "tracer/record/record_run.h"

#include <string.h>

/* A recipe for a value that stands in a register; 0 when it cannot be rebuilt. */
RecipeId rec_recipe(Recorder *r, Av a) {
  const Repr *p = av_repr(r, a);
  return p->recipe ? p->recipe(r, a) : 0;
}

static bool journal_of(Recorder *r, JournalId *out) {
  JournalId at = 0;
  for (u32 i = 0; i < r->cells.count; i++) {
    const RecCell *c = &r->cells.data[i];
    if (!c->dirty || !c->source) continue;
    RecipeId value = rec_recipe(r, c->value);
    if (!value) return false;
    at = journal_write(&r->g->exits, at, c->source, 0, value);
    if (!at) return false;
  }
  *out = at;
  return true;
}

typedef struct RegRecipe {
  u32 reg;
  RecipeId recipe;
} RegRecipe;

static const Liveness *liveness_of(Recorder *r, const Proto *p) {
  Allocator *alloc = &r->vm->alloc;
  for (u32 i = r->live.count; i-- > 0;)
    if (r->live.data[i].proto == p) return r->live.data[i].live;
  Liveness *l = liveness_new(p, alloc);
  if (!l || vec_push(alloc, &r->live, (RecLive){p, l})) return l;
  liveness_free(l);
  return NULL;
}

bool rec_live(Recorder *r, const Proto *p, u32 pc, u64 *bits) {
  const Liveness *l = liveness_of(r, p);
  if (l) liveness_at(l, pc, bits);
  return l;
}

/* Registers of frame `depth` that are live: in the top frame before its pc, else while the call at its pc runs. */
static bool frame_regs(Recorder *r, u32 depth, RegRecipe *out, u32 *count) {
  RecFrame *f = &r->frames.data[depth];
  const Proto *p = f->code->proto;
  u32 words = (p->nregs + 63) / 64;
  u64 small[8] = {0}, *bits = small;
  Allocator *alloc = &r->vm->alloc;
  if (words > COUNT_OF(small) && !(bits = mem_alloc_zero(alloc, words * 8))) return false;
  const Liveness *l = liveness_of(r, p);
  bool ok = l;
  if (ok && depth == rec_depth(r)) liveness_at(l, f->pc, bits);
  else if (ok) liveness_behind(l, f->pc, ins_a(p->code[f->pc]), bits);
  *count = 0;
  for (u32 i = 0; i < p->nregs && ok; i++) {
    if (!(bits[i / 64] >> (i % 64) & 1)) continue;
    Av a = f->regs[i];
    if (!a) continue; /* not yet assigned on this path: empty */
    RecipeId recipe = rec_recipe(r, a);
    if (!recipe) {
      ok = false;
      break;
    }
    out[(*count)++] = (RegRecipe){i, recipe};
  }
  if (bits != small) mem_free(alloc, bits, words * 8);
  return ok;
}

static bool in_tail_call(const RecFrame *f) {
  u32 op = ins_op(f->code->proto->code[f->pc]);
  return op == BC_tail || op == BC_tailx;
}

static u32 make_exit(Recorder *r, ExitKind kind, u32 reason, Span span, Av result) {
  ExitTable *t = &r->g->exits;
  JournalId journal = 0;
  r->exit_number++;
  if (!journal_of(r, &journal)) return UINT32_MAX;
  u32 depth = rec_depth(r), top_count = 0, total = 0;
  RegRecipe *regs = NULL;
  u32 *counts = NULL;
  Allocator *alloc = &r->vm->alloc;
  u32 cap = 1;
  for (u32 d = 0; d <= depth; d++) cap += r->frames.data[d].code->proto->nregs;
  u32 exit = UINT32_MAX;
  RecipeId selves[64];
  if (depth >= COUNT_OF(selves)) return UINT32_MAX;
  regs = mem_alloc(alloc, cap * sizeof *regs);
  counts = mem_alloc(alloc, (depth + 1) * sizeof *counts);
  if (!regs || !counts) {
    r->failed = true;
    goto done;
  }
  RecipeId result_recipe = 0;
  if (result && !(result_recipe = rec_recipe(r, result))) goto done;
  for (u32 d = 0; d <= depth && !result; d++) {
    RecFrame *f = &r->frames.data[d];
    selves[d] = 0;
    counts[d] = 0;
    bool top = d == depth;
    if (!top && in_tail_call(f)) continue; /* its callee stands in its place */
    if (d && f->fn && !(selves[d] = rec_recipe(r, f->fn))) goto done;
    if (!frame_regs(r, d, regs + total, &top_count)) goto done;
    counts[d] = top_count;
    total += top_count;
  }
  exit = exit_begin(t, kind, reason, journal, span);
  if (exit == UINT32_MAX) goto done;
  if (result) { /* only frame 0 returns out of a region */
    bool ok = exit_frame(t, exit, r->frames.data[0].graph_frame, r->frames.data[0].pc, 0, 0,
                         r->frames.data[0].tail_calls, 0) && exit_reg(t, exit, REG_RESULT, result_recipe);
    if (!ok) exit = UINT32_MAX;
    goto done;
  }
  u32 at = 0, elided = 0;
  u16 result_reg = 0;
  for (u32 d = 0; d <= depth; d++) {
    RecFrame *f = &r->frames.data[d];
    if (!elided) result_reg = f->result; /* a callee in tail position answers its caller's caller */
    if (d < depth && in_tail_call(f)) {
      elided += f->tail_calls + 1;
      continue;
    }
    if (!exit_frame(t, exit, f->graph_frame, f->pc, result_reg, 0, f->tail_calls + elided, selves[d]))
      exit = UINT32_MAX;
    elided = 0;
    for (u32 i = 0; i < counts[d] && exit != UINT32_MAX; i++, at++)
      if (!exit_reg(t, exit, (u16)regs[at].reg, regs[at].recipe)) exit = UINT32_MAX;
    if (exit == UINT32_MAX) break;
  }
done:
  if (regs) mem_free(alloc, regs, cap * sizeof *regs);
  if (counts) mem_free(alloc, counts, (depth + 1) * sizeof *counts);
  r->failed |= t->failed;
  return exit;
}

u32 rec_exit(Recorder *r, ExitKind kind, u32 reason, Span span) { return make_exit(r, kind, reason, span, 0); }

u32 rec_exit_return(Recorder *r, Av value) { return make_exit(r, EXIT_return, 0, (Span){0}, value); }

u32 rec_safe_exit(Recorder *r) { return r->safe_exit; }

/* Behind an update a failed check leaves before its own instruction: leaving further back would need the array as
 * it was, so each trip of a loop would copy it. Not in the midst of an instruction that has written a cell or
 * called a function. */
static u32 check_exit(Recorder *r) {
  if (!r->updated || r->no_exits || r->abstract || r->ins_depth != rec_depth(r) || r->ins_effects != r->effects)
    return r->safe_exit;
  RecFrame *f = rec_top(r);
  u32 exit = rec_exit(r, EXIT_check, CHECK_none, f->code->proto->spans[f->pc]);
  r->updated = false;
  if (exit != UINT32_MAX) r->safe_exit = exit;
  return r->safe_exit;
}

/* A cond changed an array in one of its arms: the instruction that begins where they meet is the next one. */
void rec_was_written(Recorder *r, NodeId cond) {
  r->written = cond;
  r->ins_depth = rec_depth(r);
  r->ins_effects = r->effects;
}

static bool holds(const Recorder *r, Av a, ValueId v) {
  const AbsVal *x = a ? av_at(r, a) : NULL;
  if (!x || kind_is_value(x->kind)) return x && x->value == v;
  bool found = false;
  for (u32 i = 0; (kind_is_open(x->kind)) && i < x->count && !found; i++)
    found = holds(r, av_item(r, a, i), v);
  return found;
}

/* In `q = put(q, x)` the variable q keeps the old array until the call is over. */
static bool is_held(const Recorder *r, NodeId n) {
  for (u32 i = 0; i < graph_node_at(r->g, n)->operand_count; i++) {
    ValueId v = node_operand(r->g, n, i);
    if (!v || value_is_token(r->g, v) || !value_type(r->g, v)->rank) continue;
    for (u32 c = 0; c < r->cells.count; c++)
      if (holds(r, r->cells.data[c].value, v)) return true;
  }
  return false;
}

/* The update, or the cond around it, itself names the exit behind it: what comes later and
 * has no exit of its own (memory, a limit, code that is not compiled) leaves by that one, and the array is changed
 * in place. Not among effects, which have settles; nor as long as a variable of the module holds the array as it
 * was, which an exit here would need beside the new one: the next check has one. */
void rec_behind_update(Recorder *r) {
  NodeId n = r->written;
  r->written = 0;
  if (!n || r->tokens || r->pulls || r->no_exits || r->abstract || r->ins_depth != rec_depth(r) ||
      n + 1 != r->g->nodes.count)
    return;
  const GraphNode *node = graph_node_at(r->g, n);
  /* in front of the loop: its body has made no node yet */
  if (node->exit != NO_EXIT || node->block != r->g->at || is_held(r, n)) return;
  RecFrame *f = rec_top(r);
  u32 exit = rec_exit(r, EXIT_check, CHECK_none, f->code->proto->spans[f->pc]);
  if (exit == UINT32_MAX) return;
  r->g->nodes.data[n].exit = exit;
  r->safe_exit = exit;
  r->updated = false;
}

u32 rec_present_exit(Recorder *r) { return r->safe_exit == UINT32_MAX ? UINT32_MAX : check_exit(r); }

Outcome rec_place(Recorder *r, ValueId *v) {
  if (value_type(r->g, *v)->dtype != DT_u64) return OUT_GO;
  if (!(*v = graph_convert(r->g, *v, DT_i64))) return OUT_FAIL;
  return rec_check(r, CHECK_nonneg, v, 1);
}

Outcome rec_check(Recorder *r, CheckKind kind, const ValueId *operands, u32 count) {
  ValueId place = operands[0];
  if (r->safe_exit == UINT32_MAX) return rec_stuck(r, REASON_construct_body, "a check inside the body of a construct");
  Outcome o = kind == CHECK_index ? rec_place(r, &place) : OUT_GO;
  if (o != OUT_GO) return o;
  return graph_check(r->g, kind, operands, count, check_exit(r)) ? OUT_GO : OUT_FAIL;
}
