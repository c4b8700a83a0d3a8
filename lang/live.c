/* live.c — what instructions read and write, and liveness: one backward pass to a fixed point over blocks. */
#include "lang/flow.h"

#include <string.h>

/* Of a few letters. */
static bool does(const char *effects, char effect) {
  while (*effects && *effects != effect) effects++;
  return *effects;
}

/* ---- uses ----------------------------------------------------------------------------------- */

static void read_reg(InsUse *u, u32 r) { u->reads[u->nreads++] = r; }
static void read_operand(InsUse *u, u32 k) {
  if (!(k & INS_CONST)) read_reg(u, k);
}
static void set_run(InsUse *u, u32 first, u32 count) {
  u->run = first;
  u->run_count = count;
}

static u32 index_registers(const u8 *items, u32 count) {
  u32 n = 0;
  for (u32 i = 0; i < count; i++) n += items[i] == IX_VALUE ? 1 : items[i] == IX_SLICE ? 3 : 0;
  return n;
}

void ins_uses(const Proto *p, u32 pc, InsUse *u) {
  Ins ins = p->code[pc];
  u32 op = ins_op(ins), a = ins_a(ins), b = ins_b(ins), c = ins_c(ins);
  const char *form = bc_info[op].form, *effects = bc_info[op].effects;
  *u = (InsUse){0};
  if (does(effects, 'A') && !(form[0] == 'k' && (a & INS_CONST))) read_reg(u, a);
  if (does(effects, 'R')) {
    u->write = a;
    u->write_count = 1;
  }
  switch (op) {
  case BC_closure:
    u->captures = p->protos[b]->captures;
    u->ncaptures = p->protos[b]->ncaptures;
    return;
  case BC_group:
    u->write_count = c;
    u->captures = p->protos[b]->captures;
    u->ncaptures = p->protos[b]->ncaptures;
    return;
  case BC_array: case BC_list: case BC_range: case BC_join: set_run(u, b, c); return;
  case BC_record: set_run(u, b, p->descs[c].name_count); return;
  case BC_indexn: set_run(u, b, 1 + index_registers(p->descs[c].items, p->descs[c].item_count)); return;
  case BC_method:
    read_reg(u, a + 1);
    u->write_count = 2;
    return;
  case BC_unpack:
    read_operand(u, b);
    u->write_count = p->descs[c].before + p->descs[c].has_rest + p->descs[c].after;
    return;
  case BC_unpackrec:
    read_operand(u, b);
    u->write_count = p->descs[c].name_count + p->descs[c].has_rest;
    return;
  case BC_setpath: {
    const Desc *d = &p->descs[c];
    if (d->root == ROOT_MODULE) u->nreads = 0;
    if (d->root != ROOT_REGISTER) u->write_count = 0;
    set_run(u, b, index_registers(d->items, d->item_count) + 1);
    return;
  }
  case BC_call: case BC_tail: set_run(u, b, c + 1); return;
  case BC_callx: case BC_tailx: set_run(u, b, p->descs[c].argc + 1); return;
  case BC_forprep:
    read_operand(u, b);
    u->write_count = 3;
    return;
  case BC_fornext: /* the position is updated in place */
    read_reg(u, a + 1);
    read_reg(u, a + 2);
    u->write = a + 1;
    u->write_next = true;
    return;
  case BC_checkarg:
    read_reg(u, b);
    u->dims = &p->descs[c];
    u->write_count = 0;
    for (u32 i = 0; i < u->dims->rank; i++) u->write_count += u->dims->dim_binds[i];
    return;
  default:
    if (form[1] == 'r' || form[1] == 'k') read_operand(u, b);
    if (form[2] == 'r' || form[2] == 'k') read_operand(u, c);
  }
}

bool ins_reads_dim(const InsUse *u, u32 i) {
  const Desc *d = u->dims;
  return d->dim_consts[i] == -1 && !d->dim_binds[i] && (u32)d->dim_regs[i] - u->write >= u->write_count;
}

bool ins_jumps(Ins i, u32 *target) {
  const char *form = bc_info[ins_op(i)].form;
  *target = ins_x(i);
  return form[1] == 'j';
}

/* ---- liveness ------------------------------------------------------------------------------- */

u32 liveness_words(const Liveness *l) { return l->words; }

static void set_bit(u64 *bits, u32 r) { bits[r >> 6] |= (u64)1 << (r & 63); }
static void clear_bit(u64 *bits, u32 r) { bits[r >> 6] &= ~((u64)1 << (r & 63)); }

static void join(u64 *into, const u64 *from, u32 words) {
  for (u32 w = 0; w < words; w++) into[w] |= from[w];
}

/* `bits`: live on the fall-through edge after pc; becomes live before pc. */
static void step_back(const Liveness *l, u32 pc, u64 *bits) {
  const Proto *p = l->p;
  Ins ins = p->code[pc];
  const char *effects = bc_info[ins_op(ins)].effects;
  InsUse u;
  ins_uses(p, pc, &u);
  if (does(effects, 'B')) memset(bits, 0, sizeof *bits * l->words);
  for (u32 i = 0; i < u.write_count; i++) clear_bit(bits, u.write + i);
  if (u.write_next) clear_bit(bits, u.write + 2);
  u32 target;
  if (ins_jumps(ins, &target)) join(bits, l->in + (size_t)l->block_of[target] * l->words, l->words);
  for (u32 i = 0; i < u.nreads; i++) set_bit(bits, u.reads[i]);
  for (u32 i = 0; i < u.run_count; i++) set_bit(bits, u.run + i);
  for (u32 i = 0; i < u.ncaptures; i++)
    if (u.captures[i].kind == CAP_REGISTER) set_bit(bits, u.captures[i].index);
  for (u32 i = 0; u.dims && i < u.dims->rank; i++)
    if (ins_reads_dim(&u, i)) set_bit(bits, u.dims->dim_regs[i]);
  u32 handler = l->handler[l->block_of[pc]];
  if (handler != UINT32_MAX && does(effects, 'E'))
    join(bits, l->in + (size_t)l->block_of[handler] * l->words, l->words);
}

/* The set behind the last pc of a block on its fall-through edge. */
static void load_end(const Liveness *l, u32 block, u64 *bits) {
  if (block + 1 < l->nblocks) memcpy(bits, l->in + (size_t)(block + 1) * l->words, sizeof *bits * l->words);
  else memset(bits, 0, sizeof *bits * l->words);
}

/* A block ends before every jump target and extent boundary, and behind every jump. */
static void find_blocks(Liveness *l, u8 *is_start) {
  const Proto *p = l->p;
  is_start[0] = 1;
  for (u32 pc = 0; pc < p->ncode; pc++) {
    u32 target;
    bool jumps = ins_jumps(p->code[pc], &target);
    if (jumps) is_start[target] = 1;
    if (jumps || does(bc_info[ins_op(p->code[pc])].effects, 'B')) is_start[pc + 1] = 1;
  }
  for (u32 i = 1; i < p->nextents; i++)
    if (p->extents[i].kind == EXT_TRY)
      is_start[p->extents[i].begin] = is_start[p->extents[i].head] = is_start[p->extents[i].end] = 1;
  is_start[p->ncode] = 1;
}

static void find_handlers(Liveness *l) {
  const Proto *p = l->p;
  for (u32 b = 0; b < l->nblocks; b++) l->handler[b] = UINT32_MAX;
  for (u32 i = 1; i < p->nextents; i++) { /* inner extents come later and win */
    const Extent *e = &p->extents[i];
    if (e->kind != EXT_TRY || e->begin == e->head) continue;
    for (u32 b = l->block_of[e->begin]; b < l->nblocks && l->starts[b] < e->head; b++) l->handler[b] = e->head;
  }
}

/* When a block was passed last, and when what is live before it changed last. */
typedef struct Pass {
  u32 done, changed;
} Pass;

static bool is_behind(const Liveness *l, const Pass *passes, u32 b) {
  u32 done = passes[b].done, target, handler = l->handler[b];
  if (!done || (b + 1 < l->nblocks && passes[b + 1].changed > done)) return true;
  if (ins_jumps(l->p->code[l->starts[b + 1] - 1], &target) && passes[l->block_of[target]].changed > done) return true;
  return handler != UINT32_MAX && passes[l->block_of[handler]].changed > done;
}

/* False: it was to end. */
static bool solve(Liveness *l, Pass *passes, Toil *t) {
  u32 now = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (u32 b = l->nblocks; b-- > 0;) {
      if (!toil(t, 1)) return false;
      if (!is_behind(l, passes, b)) continue;
      if (!toil(t, l->starts[b + 1] - l->starts[b])) return false;
      passes[b].done = ++now;
      load_end(l, b, l->work);
      for (u32 pc = l->starts[b + 1]; pc-- > l->starts[b];) step_back(l, pc, l->work);
      u64 *in = l->in + (size_t)b * l->words;
      if (memcmp(in, l->work, sizeof *in * l->words) != 0) {
        memcpy(in, l->work, sizeof *in * l->words);
        passes[b].changed = ++now;
        changed = true;
      }
    }
  }
  return true;
}

Liveness *liveness_new(const Proto *p, Allocator *alloc) { return liveness_within(p, alloc, NULL); }

Liveness *liveness_within(const Proto *p, Allocator *alloc, Toil *t) {
  Liveness *l = mem_alloc_zero(alloc, sizeof *l);
  u8 *is_start = mem_alloc_zero(alloc, (size_t)p->ncode + 1);
  Pass *passes = NULL;
  if (l) *l = (Liveness){.p = p, .alloc = alloc, .ncode = p->ncode, .words = (p->nregs + 63) / 64 + !p->nregs};
  if (!l || !is_start) goto fail;
  find_blocks(l, is_start);
  for (u32 pc = 0; pc < p->ncode; pc++) l->nblocks += is_start[pc];
  l->starts = mem_alloc(alloc, sizeof(u32) * (l->nblocks + 1));
  l->block_of = mem_alloc(alloc, sizeof(u32) * (p->ncode + 1));
  l->handler = mem_alloc(alloc, sizeof(u32) * (l->nblocks + 1));
  l->in = mem_alloc_zero(alloc, sizeof(u64) * l->words * (l->nblocks + (size_t)1));
  l->work = mem_alloc(alloc, sizeof(u64) * l->words);
  passes = mem_alloc_zero(alloc, sizeof *passes * (l->nblocks + 1));
  if (!l->starts || !l->block_of || !l->handler || !l->in || !l->work || !passes) goto fail;
  u32 block = 0;
  for (u32 pc = 0; pc <= p->ncode; pc++) {
    if (is_start[pc]) l->starts[block++] = pc;
    l->block_of[pc] = block - 1;
  }
  find_handlers(l);
  if (!solve(l, passes, t)) goto fail;
  mem_free(alloc, passes, sizeof *passes * (l->nblocks + 1));
  mem_free(alloc, is_start, (size_t)p->ncode + 1);
  return l;
fail:
  if (l) mem_free(alloc, passes, sizeof *passes * (l->nblocks + 1));
  mem_free(alloc, is_start, (size_t)p->ncode + 1);
  liveness_free(l);
  return NULL;
}

void liveness_free(Liveness *l) {
  if (!l) return;
  mem_free(l->alloc, l->starts, sizeof(u32) * (l->nblocks + 1));
  mem_free(l->alloc, l->block_of, sizeof(u32) * (l->ncode + 1));
  mem_free(l->alloc, l->handler, sizeof(u32) * (l->nblocks + 1));
  mem_free(l->alloc, l->in, sizeof(u64) * l->words * (l->nblocks + (size_t)1));
  mem_free(l->alloc, l->work, sizeof(u64) * l->words);
  mem_free(l->alloc, l, sizeof *l);
}

void liveness_at(const Liveness *l, u32 pc, u64 *bits) {
  u32 block = l->block_of[pc];
  if (block < l->nblocks && pc == l->starts[block]) {
    memcpy(bits, l->in + (size_t)block * l->words, sizeof *bits * l->words);
    return;
  }
  load_end(l, block, bits);
  for (u32 at = l->starts[block + 1]; at-- > pc;) step_back(l, at, bits);
}

void liveness_behind(const Liveness *l, u32 pc, u32 result, u64 *bits) {
  u32 handler = l->handler[l->block_of[pc]];
  liveness_at(l, pc + 1, bits);
  clear_bit(bits, result);
  if (handler != UINT32_MAX) join(bits, l->in + (size_t)l->block_of[handler] * l->words, l->words);
}

void liveness_walk(const Liveness *l, LiveWalk *w, u64 *after, u64 *scratch) {
  *w = (LiveWalk){.l = l, .pc = l->p->ncode, .bits = scratch, .after = after};
}

bool liveness_back(LiveWalk *w) {
  const Liveness *l = w->l;
  if (!w->pc) return false;
  u32 pc = --w->pc, target;
  if (l->starts[l->block_of[pc] + 1] == pc + 1) load_end(l, l->block_of[pc], w->bits);
  memcpy(w->after, w->bits, sizeof *w->after * l->words);
  if (does(bc_info[ins_op(l->p->code[pc])].effects, 'B')) memset(w->after, 0, sizeof *w->after * l->words);
  if (ins_jumps(l->p->code[pc], &target))
    join(w->after, l->in + (size_t)l->block_of[target] * l->words, l->words);
  step_back(l, pc, w->bits);
  return true;
}

bool proto_live(const Proto *p, u32 pc, u64 *bits, Allocator *scratch) {
  Liveness *l = liveness_new(p, scratch);
  if (!l) return false;
  liveness_at(l, pc, bits);
  liveness_free(l);
  return true;
}
