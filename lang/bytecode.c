/* bytecode.c — instruction table, module scopes and small readers of compiled functions (see bytecode.h). */
#include "lang/bytecode.h"

#include <string.h>

const BcInfo bc_info[BC_COUNT] = {
#define BC(name, form, effects, meaning) {#name, form, effects, meaning},
#include "lang/bytecode.def"
#undef BC
};

static u32 scope_slot(const ModuleScope *s, Name name) {
  u32 mask = s->index_count - 1;
  u32 i = (name * 2654435761u) & mask;
  while (s->index[i] && s->slots.data[s->index[i] - 1] != name) i = (i + 1) & mask;
  return i;
}

bool scope_find(const ModuleScope *s, Name name, u32 *slot) {
  if (!s->index_count) return false;
  u32 found = s->index[scope_slot(s, name)];
  if (!found) return false;
  *slot = found - 1;
  return true;
}

static bool scope_grow(ModuleScope *s) {
  u32 count = s->index_count ? s->index_count * 2 : 64;
  u32 *index = mem_alloc_zero(s->alloc, sizeof *index * count);
  if (!index) return false;
  mem_free(s->alloc, s->index, sizeof *index * s->index_count);
  s->index = index;
  s->index_count = count;
  for (u32 i = 0; i < s->slots.count; i++) s->index[scope_slot(s, s->slots.data[i])] = i + 1;
  return true;
}

bool scope_add(ModuleScope *s, Name name, u32 *slot) {
  if (scope_find(s, name, slot)) return true;
  if (s->slots.count * 2 >= s->index_count && !scope_grow(s)) return false;
  if (!vec_push(s->alloc, &s->flags, 0)) return false;
  if (!vec_push(s->alloc, &s->slots, name)) {
    s->flags.count--;
    return false;
  }
  *slot = s->slots.count - 1;
  s->index[scope_slot(s, name)] = s->slots.count;
  return true;
}

void scope_free(ModuleScope *s) {
  mem_free(s->alloc, s->index, sizeof *s->index * s->index_count);
  vec_free(s->alloc, &s->slots);
  vec_free(s->alloc, &s->flags);
}

u32 proto_extent_at(const Proto *p, u32 pc) {
  u32 best = 0;
  for (u32 i = 1; i < p->nextents; i++) /* children stand behind their parents */
    if (p->extents[i].begin <= pc && pc < p->extents[i].end) best = i;
  return best;
}

const Site *proto_site_at(const Proto *p, u32 pc) {
  u32 lo = 1, hi = p->nsites;
  while (lo < hi) {
    u32 mid = lo + (hi - lo) / 2;
    if (p->sites[mid].pc < pc) lo = mid + 1;
    else hi = mid;
  }
  return lo < p->nsites && p->sites[lo].pc == pc ? &p->sites[lo] : NULL;
}

/* ---- sites ---------------------------------------------------------------------------------------- */

int site_kind(const Proto *p, u32 pc) {
  Ins ins = p->code[pc];
  switch (ins_op(ins)) {
  case BC_loop: return SITE_LOOP;
  case BC_jif: case BC_jnot: return SITE_BRANCH;
  case BC_call: case BC_callx: case BC_tail: case BC_tailx: return SITE_CALL;
  case BC_getmod: case BC_setmod: return SITE_MODULE;
  case BC_setpath: return p->descs[ins_c(ins)].root == ROOT_MODULE ? SITE_MODULE : -1;
  default: return -1;
  }
}

bool proto_sites(Proto *p) {
  u32 n = 1;
  for (u32 pc = 0; pc < p->ncode; pc++) n += site_kind(p, pc) >= 0;
  p->sites = arena_alloc(&p->arena, sizeof *p->sites * n);
  if (!p->sites) return false;
  p->sites[0] = (Site){SITE_ENTRY, 0};
  p->nsites = 1;
  for (u32 pc = 0; pc < p->ncode; pc++) {
    int kind = site_kind(p, pc);
    if (kind >= 0) p->sites[p->nsites++] = (Site){(u8)kind, pc};
  }
  return true;
}

Name proto_local(const Proto *p, u32 r, u32 pc) {
  Name found = r < p->nparams ? p->params[r].name : 0;
  u32 at = pc < p->ncode ? p->spans[pc].start : 0;
  for (u32 i = 0; i < p->nlocals; i++)
    if (p->locals[i].reg == r && p->locals[i].at <= at) found = p->locals[i].name;
  return found;
}
