/* tally.c — issue slots, latencies, sectors and banks (see tally.h; docs/gpu-model.md names the sources). */
#include "tests/support/cuda/tally.h"

#include <string.h>

typedef struct Cost {
  unsigned char kind;
  double slots, f64, special;
  double latency;
} Cost;

/* Warps of a block at most, and depths of functions. */
enum { WARPS = 32, DEPTHS = 2 };

/* Copies to shared memory: when those that no group has yet are there, and, of the groups, all up to each. */
enum { GROUPS = 8 };

typedef struct Board {
  double clock;
  double copied, groups[GROUPS];
  unsigned group_count;
  double *ready[DEPTHS]; /* by register */
  unsigned regs[DEPTHS];
} Board;

struct Tally {
  TallySums sums;
  TallyLatency latency;
  Board boards[WARPS];
  unsigned warp, number; /* at work; of the sample, from 1 */
  /* the instruction at work */
  const Insn *in;
  int depth;
  unsigned mask;
  Cost cost;
  uint64_t at[WARP], to[WARP];
  unsigned bytes[WARP], accesses;
  TallyAccess access;
  /* sectors that were touched: open addressing; address / SECTOR + 1, and who was first (0: several) */
  uint64_t *sectors;
  unsigned *owners;
  size_t sector_count, sector_cap;
};

Tally *tally_new(TallyLatency latency) {
  Tally *t = need(calloc(1, sizeof *t));
  t->latency = latency;
  return t;
}

Tally *tally_beside(const Tally *t) { return tally_new(t->latency); }

void tally_shares(Tally *t, const Tally *blocks) {
  const TallySums *s = &blocks->sums;
  if (s->moved) t->sums.fresh = (double)(s->private_sectors + s->shared_sectors) / (double)s->moved;
}

void tally_free(Tally *t) {
  for (unsigned i = 0; i < WARPS; i++)
    for (unsigned d = 0; d < DEPTHS; d++) free(t->boards[i].ready[d]);
  free(t->sectors);
  free(t->owners);
  free(t);
}

const TallySums *tally_sums(const Tally *t) { return &t->sums; }
uint64_t tally_steps(const Tally *t) { return t->sums.steps; }

/* ---- what an instruction costs ---------------------------------------------------------------------------- */

static bool is_power(const Operand *o) {
  return !o->is_reg && !o->is_special && o->bits && !(o->bits & (o->bits - 1));
}

static Cost arithmetic(const Insn *in) {
  bool wide = type_bytes[in->type] == 8, real = in->type == T_F32 || in->type == T_F64;
  unsigned last = in->count ? (unsigned)in->count - 1 : 0;
  if (in->type == T_F64)
    switch (in->op) {
      case DIV:
      case SQRT: return (Cost){TK_F64, 14, 10, 1, 120};
      case MIN:
      case MAX: return (Cost){TK_F64, 4, 2, 0, 16};
      case NEG:
      case ABS:
      case COPYSIGN: return (Cost){TK_INTEGER, 1, 0, 0, 4};
      default: return (Cost){TK_F64, 1, 1, 0, 8};
    }
  if (real)
    switch (in->op) {
      case DIV:
      case SQRT: return (Cost){TK_F32, 10, 0, 1, 50};
      case NEG:
      case ABS: return (Cost){TK_F32, 0, 0, 0, 0}; /* part of the instruction that reads it */
      default: return (Cost){TK_F32, 1, 0, 0, 4};
    }
  switch (in->op) {
    case MUL: return (Cost){TK_INTEGER, !wide ? 1 : is_power(&in->v[last]) ? 2 : 4, 0, 0, wide ? 10 : 4};
    case MAD: return (Cost){TK_INTEGER, !wide ? 1 : is_power(&in->v[2]) ? 2 : 4, 0, 0, wide ? 10 : 4};
    case MULHI: return (Cost){TK_INTEGER, wide ? 10 : 2, 0, 0, wide ? 30 : 6};
    case WIDE:
    case MADWIDE: return (Cost){TK_INTEGER, 1, 0, 0, 5};
    case DIV:
    case REM: /* 64 bits: a call; its short way is for operands of 32 bits */
      if (is_power(&in->v[last])) return (Cost){TK_INTEGER, wide ? 2 : 1, 0, 0, 4};
      return (Cost){TK_INTEGER, wide ? 40 : 16, 0, wide ? 2 : 2, wide ? 160 : 60};
    case MIN:
    case MAX: return (Cost){TK_INTEGER, wide ? 4 : 1, 0, 0, wide ? 10 : 4};
    default: return (Cost){TK_INTEGER, wide && in->type != T_PRED ? 2 : 1, 0, 0, wide ? 6 : 4};
  }
}

/* Multiplications of 32 bits that an instruction is made of; by powers of two it shifts. */
static unsigned multiplications(const Insn *in) {
  bool wide = in->type < sizeof type_bytes && type_bytes[in->type] == 8;
  if (in->type == T_F32 || in->type == T_F64) return 0;
  switch ((Op)in->op) {
    case MUL:
    case MAD:
    case WIDE:
    case MADWIDE: return is_power(&in->v[2]) ? 0 : wide && (in->op == MUL || in->op == MAD) ? 3 : 1;
    case MULHI: return wide ? 4 : 1;
    default: return 0;
  }
}

static Cost cost_of(const Insn *in) {
  switch ((Op)in->op) {
    case MOV: return (Cost){TK_INTEGER, in->v[1].is_special, 0, 0, in->v[1].is_special ? 20 : 0};
    case PACK:
    case UNPACK: return (Cost){TK_INTEGER, 0, 0, 0, 0};
    case CVT: {
      bool real = in->type == T_F32 || in->type == T_F64 || in->type == T_F16 || in->from == T_F32 ||
                  in->from == T_F64 || in->from == T_F16;
      if (!real) return (Cost){TK_INTEGER, type_bytes[in->type] == 8, 0, 0, 4};
      return (Cost){TK_SPECIAL, 1, in->type == T_F64 || in->from == T_F64, 1, 16};
    }
    case SETP: return (Cost){in->type == T_F64 ? TK_F64 : in->type == T_F32 ? TK_F32 : TK_INTEGER,
                             type_bytes[in->type] == 8 && in->type != T_F64 ? 2 : 1, in->type == T_F64, 0, 8};
    case SELP: return (Cost){TK_INTEGER, type_bytes[in->type] == 8 ? 2 : 1, 0, 0, 4};
    case LD_PARAM: return (Cost){TK_MEMORY, 1, 0, 0, 20};
    case LD_CONST: return (Cost){TK_MEMORY, 1, 0, 0, 40};
    case ST_PARAM: return (Cost){TK_INTEGER, 0, 0, 0, 0};
    case LD_GLOBAL:
    case ST_GLOBAL:
    case LD_SHARED:
    case ST_SHARED:
    case ATOM_ADD:
    case RED_MIN: return (Cost){TK_MEMORY, 1, 0, 0, 0};
    case BRA: return (Cost){TK_CONTROL, 1, 0, 0, 0};
    case RET: return (Cost){TK_CONTROL, 2, 0, 0, 0};
    case CALL: return (Cost){TK_CONTROL, 4, 0, 0, 0};
    case SHFL: return (Cost){TK_SPECIAL, 1, 0, 1, 24};
    case LDMATRIX:
    case CP_ASYNC: return (Cost){TK_MEMORY, 1, 0, 0, 0};
    case MMA: return (Cost){TK_TENSOR, 1, 0, 0, 33};
    case CVT_PAIR: return (Cost){TK_SPECIAL, 1, 0, 1, 16};
    case CP_COMMIT:
    case CP_WAIT: return (Cost){TK_CONTROL, 1, 0, 0, 0};
    case BAR_WARP:
    case BAR_SYNC: return (Cost){TK_CONTROL, 2, 0, 0, 0};
    default: return arithmetic(in);
  }
}

/* ---- the clock of a warp ------------------------------------------------------------------------------------ */

void tally_warp(Tally *t, unsigned warp, bool fresh) {
  t->warp = warp % WARPS;
  Board *b = &t->boards[t->warp];
  if (!fresh) return;
  t->number++;
  t->sums.warps++;
  b->clock = b->copied = 0;
  b->group_count = 0;
  for (unsigned d = 0; d < DEPTHS; d++)
    if (b->ready[d]) memset(b->ready[d], 0, b->regs[d] * sizeof *b->ready[d]);
}

static double *ready_of(Tally *t, const Operand *o) { return &t->boards[t->warp].ready[t->depth][o->reg]; }

static bool writes_first(const Insn *in) {
  return in->op != CP_ASYNC && in->op != ST_GLOBAL && in->op != ST_SHARED && in->op != ST_PARAM &&
         in->op != RED_MIN && in->op != BRA;
}

/* How many operands, from the first on, it writes. */
static int written(const Insn *in) {
  if (!writes_first(in) || !in->count) return 0;
  return in->op == LD_GLOBAL || in->op == LD_SHARED ? in->how
         : in->op == LDMATRIX || in->op == MMA        ? 4
         : in->op == UNPACK                           ? 2
                                                      : 1;
}

void tally_begin(Tally *t, const MachineFn *f, const Insn *in, int depth, unsigned mask) {
  Board *b = &t->boards[t->warp];
  t->in = in;
  t->depth = depth;
  t->mask = mask;
  t->accesses = 0;
  t->cost = cost_of(in);
  if (b->regs[depth] < f->regs + 1) {
    b->ready[depth] = need(realloc(b->ready[depth], (f->regs + 1) * sizeof **b->ready));
    memset(b->ready[depth] + b->regs[depth], 0, (f->regs + 1 - b->regs[depth]) * sizeof **b->ready);
    b->regs[depth] = f->regs + 1;
  }
  double start = b->clock;
  bool copies = t->cost.slots == 0 && t->cost.latency == 0; /* no instruction: its operand is what it gives */
  if (in->guarded && b->ready[depth][in->guard] > start) start = b->ready[depth][in->guard];
  for (int i = written(in); i < in->count; i++)
    if (in->v[i].is_reg && *ready_of(t, &in->v[i]) > start) start = *ready_of(t, &in->v[i]);
  if (!copies) b->clock = start + t->cost.slots;
  t->sums.steps++;
  t->sums.threads += (unsigned)__builtin_popcount(mask);
  t->sums.slots[t->cost.kind] += t->cost.slots;
  t->sums.f64 += t->cost.f64;
  t->sums.special += t->cost.special;
  t->sums.multiplied += multiplications(in);
  for (int i = 0; i < written(in); i++)
    if (in->v[i].is_reg) *ready_of(t, &in->v[i]) = start + t->cost.latency;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

void tally_access(Tally *t, unsigned lane, uint64_t at, unsigned bytes, TallyAccess kind) {
  (void)lane;
  t->access = kind;
  t->at[t->accesses] = at;
  t->bytes[t->accesses++] = bytes;
}

static void grow_sectors(Tally *t) {
  size_t cap = t->sector_cap ? t->sector_cap * 2 : 4096;
  uint64_t *keys = need(calloc(cap, sizeof *keys));
  unsigned *owners = need(calloc(cap, sizeof *owners));
  for (size_t i = 0; i < t->sector_cap; i++) {
    if (!t->sectors[i]) continue;
    size_t k = (t->sectors[i] * 0x9E3779B97F4A7C15u >> 20) & (cap - 1);
    while (keys[k]) k = (k + 1) & (cap - 1);
    keys[k] = t->sectors[i];
    owners[k] = t->owners[i];
  }
  free(t->sectors);
  free(t->owners);
  t->sectors = keys;
  t->owners = owners;
  t->sector_cap = cap;
}

/* True: it was touched before. */
static bool touch(Tally *t, uint64_t sector) {
  if (t->sector_count * 2 >= t->sector_cap) grow_sectors(t);
  uint64_t key = sector + 1;
  size_t k = (key * 0x9E3779B97F4A7C15u >> 20) & (t->sector_cap - 1);
  while (t->sectors[k] && t->sectors[k] != key) k = (k + 1) & (t->sector_cap - 1);
  if (!t->sectors[k]) {
    t->sectors[k] = key;
    t->owners[k] = t->number;
    t->sector_count++;
    t->sums.private_sectors++;
    return false;
  }
  if (t->owners[k] && t->owners[k] != t->number) {
    t->owners[k] = 0;
    t->sums.private_sectors--;
    t->sums.shared_sectors++;
  }
  return true;
}

static bool add_once(uint64_t *set, unsigned *count, uint64_t v) {
  for (unsigned i = 0; i < *count; i++)
    if (set[i] == v) return false;
  set[(*count)++] = v;
  return true;
}

/* Cycles for the load unit: one for each line, and one for each 128 bytes. */
static double global_access(Tally *t) {
  uint64_t sectors[WARP * 2], lines[WARP * 2], bytes = 0;
  unsigned sector_count = 0, line_count = 0;
  bool fresh = false;
  for (unsigned i = 0; i < t->accesses; i++) {
    bytes += t->bytes[i];
    add_once(lines, &line_count, t->at[i] / LINE);
    if (add_once(sectors, &sector_count, t->at[i] / SECTOR)) fresh |= !touch(t, t->at[i] / SECTOR);
  }
  if (!t->accesses) return 0;
  uint64_t data = (bytes + LINE - 1) / LINE, cycles = line_count > data ? line_count : data;
  t->sums.requests++;
  t->sums.wavefronts += cycles;
  t->sums.moved += sector_count;
  uint64_t ideal = (bytes + SECTOR - 1) / SECTOR; /* fewer where threads read the same place */
  t->sums.asked += ideal < sector_count ? ideal : sector_count;
  double latency = (double)(fresh ? t->latency.memory : t->latency.cache) + (double)cycles;
  if (t->access == TALLY_LOAD) t->sums.under_way += (double)sector_count * SECTOR * latency;
  return latency;
}

/* Cycles of accesses from .. end: as often as the bank that has the most different words. */
static unsigned bank_cycles(const Tally *t, unsigned from, unsigned end, unsigned *least) {
  uint64_t words[WARP * 2];
  unsigned count = 0, most = 1, in_bank[BANKS] = {0};
  for (unsigned i = from; i < end; i++)
    for (unsigned b = 0; b < t->bytes[i]; b += 4)
      if (add_once(words, &count, (t->at[i] + b) / 4)) in_bank[(t->at[i] + b) / 4 % BANKS]++;
  for (unsigned i = 0; i < BANKS; i++)
    if (in_bank[i] > most) most = in_bank[i];
  *least = (count + BANKS - 1) / BANKS; /* of 8-byte elements: two */
  if (!*least) *least = 1;
  return most;
}

/* Of shared memory. Accesses of 16 bytes are done for eight threads at a time. */
static double shared_access(Tally *t) {
  unsigned at_once = t->bytes[0] > 8 ? WARP / 4 : WARP, cycles = 0;
  for (unsigned from = 0; from < t->accesses; from += at_once) {
    unsigned end = from + at_once < t->accesses ? from + at_once : t->accesses, least;
    unsigned most = bank_cycles(t, from, end, &least);
    t->sums.conflicts += most - least;
    cycles += most;
  }
  t->sums.wavefronts += cycles;
  return (double)t->latency.shared + cycles;
}

void tally_copy(Tally *t, uint64_t from, uint64_t to, unsigned bytes) {
  if (!bytes) return;
  t->to[t->accesses] = to;
  tally_access(t, 0, from, bytes, TALLY_LOAD);
}

/* Both accesses of a copy: the threads do not wait for it. */
static void end_copy(Tally *t, Board *b) {
  double there = b->clock + global_access(t);
  memcpy(t->at, t->to, sizeof t->at);
  (void)shared_access(t);
  if (there > b->copied) b->copied = there;
}

/* The warp waits for all groups of copies but the last `left`. */
static void wait_copies(Board *b, unsigned left) {
  if (b->group_count <= left || left >= GROUPS) return;
  double there = b->groups[(b->group_count - left - 1) % GROUPS];
  if (there > b->clock) b->clock = there;
}

void tally_end(Tally *t, unsigned jumped) {
  const Insn *in = t->in;
  Board *b = &t->boards[t->warp];
  if (in->op == MMA) t->sums.fmas += 16 * 8 * 16;
  if (in->op == CP_COMMIT) b->groups[b->group_count++ % GROUPS] = b->copied;
  if (in->op == CP_WAIT) wait_copies(b, in->target);
  if (in->op == CP_ASYNC) {
    if (t->accesses) end_copy(t, b);
    return;
  }
  if (in->op == BRA) {
    t->sums.branches++;
    t->sums.divergent += (jumped & t->mask) && (jumped & t->mask) != t->mask;
  }
  if (t->accesses) {
    bool shared = t->access == TALLY_SHARED_LOAD || t->access == TALLY_SHARED_STORE;
    double start = b->clock - t->cost.slots, latency = shared ? shared_access(t) : global_access(t);
    for (int i = 0; i < written(in); i++)
      if (in->v[i].is_reg) *ready_of(t, &in->v[i]) = start + latency;
  }
  if (in->op == RET && t->depth == 0) { /* of some threads, or of all */
    double longest = b->clock;
    for (unsigned r = 0; r < b->regs[0]; r++) longest = b->ready[0][r] > longest ? b->ready[0][r] : longest;
    t->sums.cycles += longest * __builtin_popcount(t->mask) / WARP;
    if (longest > t->sums.longest) t->sums.longest = longest;
  }
}

void tally_meet(Tally *t, unsigned warps) {
  double last = 0;
  for (unsigned i = 0; i < warps && i < WARPS; i++) last = t->boards[i].clock > last ? t->boards[i].clock : last;
  for (unsigned i = 0; i < warps && i < WARPS; i++) t->boards[i].clock = last;
}
