/* record_prior.c — loops that this trace lifted before: a loop comes again where its function is called at several
 * places, and each time that a loop around it is tried with other variables. What its variables turned out to need
 * then is asked for from the start; where they are of other kinds now, or it does not do, the loop finds out for
 * itself as it did the first time. */
#include "lang/mechanisms.h"
#include "tracer/record/record_carry.h"
#include "tracer/record/record_cells.h"
#include "tracer/record/record_inner.h"
#include "tracer/record/record_prior.h"

typedef struct PriorLoc {
  RecLoc loc;
  struct Module *module; /* of a cell: a module variable */
  u32 slot;
} PriorLoc;

struct RecPrior {
  struct RecPrior *next;
  const Proto *proto;
  u32 extent;
  bool peeled, test_inside;
  u32 nlocs, nleaves;
  u8 *how;   /* for each leaf, CARRY_* … */
  u8 *entry; /* … where it was of this kind on entry */
  PriorLoc locs[];
};

static size_t size_of(u32 nlocs, u32 nleaves) {
  return sizeof(RecPrior) + nlocs * sizeof(PriorLoc) + 2 * (size_t)nleaves;
}

void rec_priors_free(Recorder *r) {
  for (RecPrior *p = r->priors, *next; p; p = next) {
    next = p->next;
    mem_free(&r->vm->alloc, p, size_of(p->nlocs, p->nleaves));
  }
}

static RecPrior *find(const Recorder *r, const RecLoop *l) {
  const Proto *proto = r->frames.data[l->depth].code->proto;
  for (RecPrior *p = r->priors; p; p = p->next)
    if (p->proto == proto && p->extent == l->extent && p->peeled == l->peeled) return p;
  return NULL;
}

static RecLoc *same_loc(Recorder *r, RecLoop *l, const PriorLoc *p) {
  for (u32 i = 0; i < l->locs.count; i++) {
    RecLoc *loc = &l->locs.data[i];
    if (loc->cell != p->loc.cell) continue;
    const RecCell *c = loc->cell ? &r->cells.data[loc->index] : NULL;
    if (c ? c->module == p->module && c->slot == p->slot : loc->index == p->loc.index) return loc;
  }
  return NULL;
}

Outcome rec_prior_use(Recorder *r, RecLoop *l) {
  const RecPrior *p = MECHANISM(r->vm, loops_are_remembered) ? find(r, l) : NULL;
  l->prior = p;
  l->test_inside |= p && p->test_inside;
  for (u32 i = 0; p && i < p->nlocs; i++) {
    const PriorLoc *x = &p->locs[i];
    RecLoc *loc = same_loc(r, l, x);
    if (!loc && x->loc.cell && x->module) {
      u32 cell;
      Outcome o = rec_cell_global(r, x->module, x->slot, &cell);
      if (o != OUT_GO) return o;
      if (!rec_add_loc(r, l, true, cell)) return OUT_FAIL;
      loc = &l->locs.data[l->locs.count - 1];
    }
    if (!loc || loc->entered != x->loc.entered) continue;
    if (x->loc.depth) {
      rec_inner_note(l, loc, &x->loc);
      continue;
    }
    loc->rows = x->loc.rows;
    loc->option = x->loc.option;
    loc->names = x->loc.names;
    loc->queue = x->loc.queue;
    loc->kind_known = x->loc.kind_known;
    loc->kind = x->loc.kind;
  }
  return OUT_GO;
}

u8 rec_prior_leaf(const RecLoop *l, u32 leaf, u8 entry) {
  const RecPrior *p = l->prior;
  return p && leaf < p->nleaves && p->entry[leaf] == entry ? p->how[leaf] : (u8)CARRY_plain;
}

bool rec_prior_note(Recorder *r, const RecLoop *l) {
  if (!MECHANISM(r->vm, loops_are_remembered) || find(r, l)) return true;
  u32 nleaves = l->entry.count;
  u32 nlocs = l->locs.count + l->inner_count;
  RecPrior *p = mem_alloc_zero(&r->vm->alloc, size_of(nlocs, nleaves));
  if (!p) return false;
  *p = (RecPrior){.next = r->priors, .proto = r->frames.data[l->depth].code->proto, .extent = l->extent,
                  .peeled = l->peeled,
                  .test_inside = l->test_inside, .nlocs = nlocs, .nleaves = nleaves};
  p->how = (u8 *)(p->locs + p->nlocs);
  p->entry = p->how + nleaves;
  for (u32 i = 0; i < nleaves; i++) {
    p->how[i] = i < l->weak.count ? l->weak.data[i] : (u8)CARRY_plain;
    p->entry[i] = l->entry.data[i];
  }
  for (u32 i = 0; i < p->nlocs; i++) {
    const RecLoc *loc = i < l->locs.count ? &l->locs.data[i] : &l->inner[i - l->locs.count];
    const RecCell *c = loc->cell ? &r->cells.data[loc->index] : NULL;
    p->locs[i] = (PriorLoc){.loc = *loc, .module = c ? c->module : NULL, .slot = c ? c->slot : 0};
  }
  r->priors = p;
  return true;
}
