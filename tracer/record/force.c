/* force.c — exits, misses, failing checks and rollbacks that tests ask for (see force.h). */
#include "tracer/record/force.h"
#include "tracer/record/record_call.h"
#include "tracer/record/record_run.h"
#include "tracer/tracer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* not a threshold: how often tests force something, and how often they try */
enum { VARY_EXITS = 11, VARY_CHECKS = 5, TRIALS_MAX = 300 };

bool force_parse(Force *f, const char *text) {
  static const char *const words[] = {"", "exits", "misses", "checks", "rollback", "endless", "wrong"};
  *f = (Force){0};
  if (!text) return true;
  size_t n = strcspn(text, " ");
  for (u32 i = 0; i < COUNT_OF(words); i++)
    if (strlen(words[i]) == n && memcmp(words[i], text, n) == 0) {
      *f = (Force){.kind = (u8)i, .at = text[n] ? (u32)strtoul(text + n, NULL, 10) : 0};
      return true;
    }
  return false;
}

static void reached(Recorder *r) { r->vm->counters.at[STAT_forced]++; }

/* ---- exits ---------------------------------------------------------------------------------------- */

static Outcome exit_here(Recorder *r) {
  const RecFrame *f = rec_top(r);
  u32 after = r->force.at ? r->force.at : 1 + (u32)(r->tracer->region_ids % VARY_EXITS);
  if (!r->force_code && r->steps > after) {
    r->force_code = f->code;
    r->force_pc = f->pc;
    reached(r);
  }
  if (r->force_code == f->code && r->force_pc == f->pc) return rec_stuck(r, REASON_forced_exit, "here");
  return OUT_GO;
}

/* ---- rollback ------------------------------------------------------------------------------------- */

static void dump(const Recorder *r, Buf *out) {
  graph_print(r->g, NULL, out);
  guard_set_print(&r->g->guards, &r->g->sizes, NULL, out);
  /* bodies that are being recorded hang on no node yet: they are not printed */
  for (u32 i = 1; i < r->g->nodes.count; i++) {
    const GraphNode *n = &r->g->nodes.data[i];
    buf_printf(out, "node %u: block %u next %u exit %u operands", i, n->block, n->next, n->exit);
    for (u32 k = 0; k < n->operand_count; k++) buf_printf(out, " %u", r->g->operands.data[n->operand_first + k]);
    buf_putc(out, '\n');
  }
  for (u32 i = 1; i < r->g->blocks.count; i++) {
    const GraphBlock *b = &r->g->blocks.data[i];
    buf_printf(out, "block %u: closed %u last %u parameters %u captures", i, b->closed, b->last, b->params.count);
    for (u32 k = 0; k < b->captures.count; k++) buf_printf(out, " %u", b->captures.data[k].inner);
    buf_putc(out, '\n');
  }
  for (u32 i = 0; i < r->cells.count; i++) {
    const RecCell *c = &r->cells.data[i];
    buf_printf(out, "cell %u: source %u slot %u value %u%s\n", i, c->source, c->slot, c->value,
               c->dirty ? " written" : "");
  }
  for (u32 i = 0; i < r->frames.count; i++) {
    const RecFrame *f = &r->frames.data[i];
    buf_printf(out, "frame %u: pc %u", i, f->pc);
    for (u32 k = 0; k < f->code->proto->nregs; k++) buf_printf(out, " %u", f->regs[k]);
    buf_putc(out, '\n');
  }
  for (u32 i = 0; i < r->source_av.count; i++)
    if (r->source_av.data[i]) buf_printf(out, "source %u read as %u\n", i, r->source_av.data[i]);
}

/* All frames: a step that returns drops its own, which speculation never does. */
typedef struct Frames {
  RecFrame *data;
  u32 count;
} Frames;

static u32 reg_count(const RecFrame *f) { return f->code->proto->nregs ? f->code->proto->nregs : 1; }

static void free_frames(Recorder *r, Frames *s) {
  for (u32 i = 0; i < s->count; i++) mem_free(&r->vm->alloc, s->data[i].regs, sizeof(Av) * reg_count(&s->data[i]));
  mem_free(&r->vm->alloc, s->data, sizeof *s->data * r->frames.count);
}

static bool copy_frames(Recorder *r, Frames *s) {
  *s = (Frames){.data = mem_alloc(&r->vm->alloc, sizeof *s->data * r->frames.count)};
  for (; s->data && s->count < r->frames.count; s->count++) {
    const RecFrame *f = &r->frames.data[s->count];
    s->data[s->count] = *f;
    if (!(s->data[s->count].regs = mem_alloc(&r->vm->alloc, sizeof(Av) * reg_count(f)))) break;
    memcpy(s->data[s->count].regs, f->regs, sizeof(Av) * f->code->proto->nregs);
  }
  if (s->data && s->count == r->frames.count) return true;
  if (s->data) free_frames(r, s);
  r->failed = true;
  return false;
}

/* Consumes the copies; there is room, since there was. */
static void put_back(Recorder *r, Frames *s) {
  while (r->frames.count) rec_pop(r);
  mem_copy(r->frames.data, s->data, sizeof *s->data * s->count);
  r->frames.count = s->count;
  mem_free(&r->vm->alloc, s->data, sizeof *s->data * s->count);
}

static Outcome step_and_back(Recorder *r, const Scope *s, Outcome (*once)(Recorder *r, const Scope *s)) {
  if (r->trials >= TRIALS_MAX) return OUT_GO;
  r->trials++;
  Buf before, after;
  RecState state;
  Frames frames;
  buf_init(&before, &r->vm->alloc);
  buf_init(&after, &r->vm->alloc);
  dump(r, &before);
  RecMark mark = rec_mark(r);
  if (!copy_frames(r, &frames)) goto refused;
  if (!rec_save(r, &state)) {
    free_frames(r, &frames);
    goto refused;
  }
  Recorder held = *r; /* its scalars */
  Outcome o = once(r, s);
  bool lacks = r->lacks != held.lacks;
  rec_rollback(r, &mark);
  put_back(r, &frames);
  rec_restore(r, &state);
  rec_state_free(r, &state);
  if (o != OUT_FAIL && !lacks) {
    r->steps = held.steps;
    r->nest = held.nest;
    r->no_exits = held.no_exits;
    r->ret = held.ret;
    r->cond = held.cond;
    r->reason = held.reason;
    r->back_edge = held.back_edge;
    r->noted_types = held.noted_types;
    dump(r, &after);
    if (!before.failed && !after.failed) {
      reached(r);
      if (before.len != after.len || memcmp(buf_text(&before), buf_text(&after), before.len) != 0) {
        r->vm->counters.at[STAT_unclean]++;
        if (r->tracer->log.words & LOG_graph)
          vm_tell(r->vm, "--- before\n%s--- after\n%s", buf_text(&before), buf_text(&after));
      }
    }
    o = OUT_GO;
  }
  buf_free(&before);
  buf_free(&after);
  return lacks && o != OUT_FAIL ? OUT_STUCK : o;
refused:
  buf_free(&before);
  return OUT_FAIL;
}

Outcome force_step(Recorder *r, const Scope *s, Outcome (*once)(Recorder *r, const Scope *s)) {
  switch (r->force.kind) {
    case FORCE_exits: return exit_here(r);
    case FORCE_rollback: return step_and_back(r, s, once);
    default: return OUT_GO;
  }
}

/* ---- checks --------------------------------------------------------------------------------------- */

void force_checks(struct Tracer *t, Graph *g, u64 region) {
  if (t->force.kind != FORCE_checks) return;
  u32 at = t->force.at ? t->force.at : 1 + (u32)(region % VARY_CHECKS), n = 0;
  ValueId never = graph_const(g, value_bool(false));
  for (GraphWalk w = walk_begin(g, 1); never && walk_next(&w);) {
    GraphNode *x = &g->nodes.data[w.node];
    if (x->kind != NODE_check || !x->operand_count || ++n != at) continue;
    x->op = CHECK_assertion;
    x->operand_count = 1;
    g->operands.data[x->operand_first] = never;
    t->vm->counters.at[STAT_forced]++;
    return;
  }
}

/* ---- passes that never end ------------------------------------------------------------------------- */

enum { VARY_ENDLESS = 19 }; /* not a threshold: a small graph takes some fifteen passes */

u32 force_endless(const struct Tracer *t) {
  if (t->force.kind != FORCE_endless) return 0;
  return t->force.at ? t->force.at : 1 + (u32)(t->region_ids % VARY_ENDLESS);
}

/* ---- graphs that are wrong ------------------------------------------------------------------------ */

static u32 wrong_for(u32 op) {
  switch (op) {
    case OP_add: return OP_subtract;
    case OP_subtract:
    case OP_multiply: return OP_add;
    case OP_minimum: return OP_maximum;
    case OP_maximum: return OP_minimum;
    case OP_less: return OP_greater_equal;
    case OP_less_equal: return OP_greater;
    case OP_greater: return OP_less_equal;
    case OP_greater_equal: return OP_less;
    case OP_equal: return OP_not_equal;
    case OP_sin: return OP_cos;
    case OP_cos: return OP_sin;
    case OP_exp: return OP_sin;
    case OP_max: return OP_min;
    case OP_min: return OP_max;
    default: return OP_none;
  }
}

void force_wrong(const struct Tracer *t, Graph *g) {
  if (t->force.kind != FORCE_wrong) return;
  u32 n = 0, at = t->force.at ? t->force.at : 1;
  for (GraphWalk w = walk_begin(g, 1); walk_next(&w);) {
    GraphNode *x = &g->nodes.data[w.node];
    if (x->kind != NODE_op || !wrong_for(x->op) || ++n != at) continue;
    x->op = (u16)wrong_for(x->op);
    t->vm->counters.at[STAT_forced]++;
    return;
  }
}

/* ---- misses --------------------------------------------------------------------------------------- */

bool force_miss(struct Tracer *t, GuardCache *c, const GuardProg **prog, u32 *guard) {
  if (t->force.kind != FORCE_misses) return false;
  for (u32 i = 0; i < c->entries.count; i++) {
    GuardEntry *e = c->entries.data[i];
    if (e->invalid || e->refused_once || !e->hits) continue;
    u32 n = guard_prog_count(e->prog);
    if (!n || t->force.at > n) continue;
    e->refused_once = true;
    t->vm->counters.at[STAT_forced]++;
    *prog = e->prog;
    *guard = (t->force.at ? t->force.at - 1 : e->id) % n;
    return true;
  }
  return false;
}
