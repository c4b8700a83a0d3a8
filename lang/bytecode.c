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
