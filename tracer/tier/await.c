/* await.c — what stands behind a call, where the region that would lead there is not compiled.
 *
 * A region that breaks at a call goes on behind it, in a continuation. Where that region is not worth its while, as
 * there is little before the call, or loses against the interpreter, nobody would ask for the continuation: a
 * function that halves its argument, calls itself twice and puts the results together does its work behind its
 * calls. So the call sites in the frames of such a break are marked; frames of their code ask the tier when a call
 * returns, and what follows is a place like any other, sampled, compiled, weighed and demoted. A site whose place is
 * demoted for good is not asked any more, and a code without such sites makes frames as it did before. */
#include "lang/mechanisms.h"
#include "tracer/tier/await.h"
#include "tracer/tier/places.h"

static void await_call(Tracer *t, Code *code, u32 pc) {
  Ins ins = code->proto->code[pc];
  u32 site = code->site_of_pc[pc];
  if ((ins_op(ins) != BC_call && ins_op(ins) != BC_callx) || !site) return;
  SiteState *s = &code->sites[site - 1];
  if (s->flags & (SITE_AWAITED | SITE_COLD)) return;
  s->flags |= SITE_AWAITED;
  if (code->awaited++) return;
  for (u32 i = 0; i < t->vm->frame_count; i++)
    if (t->vm->frames[i].code == code) t->vm->frames[i].flags |= FRAME_AWAITS;
}

void await_breaks(Tracer *t, const Graph *g) {
  const ExitTable *x = &g->exits;
  if (t->forced || t->private_places || t->force.kind || !MECHANISM(t->vm, breaks_are_awaited)) return;
  for (u32 i = 0; i < x->exits.count; i++) {
    const Exit *e = &x->exits.data[i];
    for (u32 k = 0; e->kind == EXIT_break && k < e->frame_count; k++) {
      const ExitFrame *f = &x->frames.data[e->frame_first + k];
      if (g->frames.data[f->frame].code) await_call(t, g->frames.data[f->frame].code, f->pc);
    }
  }
}

bool await_here(Tracer *t, Frame *f) {
  Code *code = f->code;
  u32 site = code->awaited ? code->site_of_pc[f->pc - 1] : 0;
  if (!code->awaited) f->flags &= (u16)~FRAME_AWAITS;
  if (!site || t->private_places || t->demand.strict || t->demand.whole) return false;
  SiteState *s = &code->sites[site - 1];
  if (!(s->flags & SITE_AWAITED)) return false;
  Place *p = s->entry ? s->entry : place_get(t->vm, &t->places, code, f->pc, RECORD_RESUME);
  s->entry = p;
  if (!p || !p->eager || p->wakes || p->cache.entries.count) return p;
  s->flags = (u16)((s->flags & ~SITE_AWAITED) | SITE_COLD);
  code->awaited--;
  return false;
}
