/* model.c — counts of a launch to microseconds (see model.h; docs/gpu-model.md says how and how well). */
#include "tests/support/cuda/model.h"

#include <string.h>
#include <unistd.h>

#define CARD(name, ...) {#name, __VA_ARGS__},
static const Card cards[] = {
#include "tests/support/cuda/cards.def"
};
#undef CARD

const Card *card_find(const char *name) {
  for (unsigned i = 0; i < sizeof cards / sizeof *cards; i++)
    if (strcmp(cards[i].name, name) == 0) return &cards[i];
  return NULL;
}

/* ---- registers -------------------------------------------------------------------------------------------------- */

enum { TOLD = 512, FILE_REGS = 65536 };
static struct {
  char name[64];
  unsigned regs;
} told[TOLD];
static unsigned told_count;

void model_read_registers(const char *ptxas, const Card *card, const char *ptx) {
  char path[] = "/tmp/weft-model-XXXXXX", command[1024], line[512];
  int fd = mkstemp(path);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
  if (!f) return;
  fputs(ptx, f);
  fclose(f);
  snprintf(command, sizeof command, "'%s' -v -O3 -arch=%s -o /dev/null '%s' 2>&1", ptxas, card->arch, path);
  FILE *log = popen(command, "r");
  while (log && fgets(line, sizeof line, log)) {
    char name[64];
    const char *used = strstr(line, "Used ");
    if (sscanf(line, "ptxas info : Compiling entry function '%63[^']", name) == 1 && told_count < TOLD)
      snprintf(told[told_count++].name, sizeof told->name, "%s", name);
    else if (used && told_count) told[told_count - 1].regs = (unsigned)strtoul(used + 5, NULL, 10);
  }
  if (log) pclose(log);
  unlink(path);
}

/* The most registers that are live at once, each from its first mention to its last, or to the end of a loop that it
 * was made in front of; and ten for addresses and the like. */
static unsigned estimate(const MachineFn *f) {
  unsigned *first = need(calloc(f->regs + 1, sizeof *first)), *last = need(calloc(f->regs + 1, sizeof *last));
  unsigned most = 0;
  for (unsigned pc = 0; pc < f->count; pc++)
    for (int i = -1; i < f->code[pc].count; i++) {
      const Insn *in = &f->code[pc];
      if (i < 0 ? !in->guarded : !in->v[i].is_reg) continue;
      unsigned r = i < 0 ? in->guard : in->v[i].reg;
      if (!first[r]) first[r] = pc + 1;
      last[r] = pc + 1;
    }
  for (int again = 0; again < 3; again++)
    for (unsigned pc = 0; pc < f->count; pc++)
      for (unsigned r = 0; f->code[pc].op == BRA && f->code[pc].target <= pc && r < f->regs; r++)
        if (first[r] && first[r] <= f->code[pc].target && last[r] > f->code[pc].target && last[r] <= pc)
          last[r] = pc + 1;
  for (unsigned pc = 1; pc <= f->count; pc++) {
    unsigned live = 0;
    for (unsigned r = f->base[1]; r < f->regs; r++) { /* predicates have registers of their own */
      bool wide = (r >= f->base[3] && r < f->base[4]) || r >= f->base[5];
      if (first[r] && first[r] <= pc && last[r] > pc) live += wide ? 2 : 1;
    }
    if (live > most) most = live;
  }
  free(first);
  free(last);
  return most + 10 > 255 ? 255 : most + 10;
}

static unsigned registers(const MachineFn *f, bool *known) {
  *known = false;
  for (unsigned i = told_count; i-- > 0;)
    if (told[i].regs && strcmp(told[i].name, f->name) == 0) {
      *known = true;
      return told[i].regs;
    }
  return estimate(f);
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }
static unsigned parts(unsigned a, unsigned b) { return (a + b - 1) / b; }

/* Blocks that a multiprocessor holds at once. Registers are given to warps by 256, shared memory with 1 KB more. */
static unsigned resident_blocks(const Card *c, const MachineFn *f, unsigned warps, unsigned regs,
                                unsigned shared) {
  unsigned per_warp = parts(regs * WARP, 256) * 256, n = least(c->blocks, c->warps / warps);
  n = least(n, FILE_REGS / (per_warp * warps));
  shared += f->shared;
  if (shared) n = least(n, c->shared_kb * 1024 / (shared + 1024));
  return n ? n : 1;
}

void model_print(FILE *out, const Card *c, const MachineFn *f, unsigned blocks, unsigned threads, unsigned shared,
                 const TallySums *s) {
  enum { SCHEDULERS = 4, SPECIAL_LANES = 16, MULTIPLY_LANES = 64 };
  bool known;
  unsigned regs = registers(f, &known), warps = threads / WARP, held = resident_blocks(c, f, warps, regs, shared);
  unsigned busiest = parts(blocks, c->sms); /* blocks of the multiprocessor that has most */
  double n = (double)s->warps, on_one = (double)busiest * warps, all = (double)blocks * warps, scale = all / n;
  double slots = 0, mhz = c->mhz;
  for (unsigned k = 0; k < TK_KINDS; k++) slots += s->slots[k] / n;
  double sectors = (double)s->private_sectors * scale + (double)s->shared_sectors;
  /* What warps on the card at once touch in all; where the cache does not hold it, what is read again comes from memory
   * again. */
  double at_once = (double)least(busiest, held) * warps * c->sms,
         touched = sectors * SECTOR * (at_once < all ? at_once / all : 1);
  if (touched > c->cache_mb * 1e6) sectors = (double)s->moved * scale * (s->fresh > 0 ? s->fresh : 1);
  double alone = s->cycles / n * parts(busiest, held);
  const struct { const char *name; double us; } limits[] = {
    {"latency", (alone > s->longest ? alone : s->longest) / mhz},
    {"issue", on_one * slots / (on_one < SCHEDULERS ? on_one : SCHEDULERS) / mhz},
    {"load-unit", on_one * (double)s->wavefronts / n / mhz},
    {"f64", on_one * s->f64 / n * WARP / c->f64 / mhz},
    {"multiplications", on_one * s->multiplied / n * WARP / MULTIPLY_LANES / mhz},
    {"tensor", on_one * (double)s->fmas / n / c->tensor / mhz},
    {"conversions", on_one * s->special / n * WARP / SPECIAL_LANES / mhz},
    {"cache", (double)s->moved * scale * SECTOR / c->cache / 1e3},
    {"memory", sectors * SECTOR / c->copy / 1e3},
  };
  unsigned bound = 0;
  for (unsigned i = 1; i < sizeof limits / sizeof *limits; i++)
    if (limits[i].us > limits[bound].us) bound = i;
  double live = (double)least(busiest, held) * warps;
  fprintf(out, "launch %s us=%.2f bound=%s blocks=%u sms=%u regs=%u%s shared=%u warps_per_sm=%.0f", f->name,
          limits[bound].us, limits[bound].name, blocks, least(blocks, c->sms), regs, known ? "" : "(estimate)",
          f->shared + shared, live);
  fprintf(out, " in_flight=%.0f", s->cycles > 0 ? s->under_way / s->cycles * live : 0);
  static const char *const kinds[TK_KINDS] = {"int", "f32", "f64", "special", "memory", "control", "tensor"};
  for (unsigned k = 0; k < TK_KINDS; k++) fprintf(out, " %s=%.0f", kinds[k], s->slots[k] * scale);
  fprintf(out, " lanes=%.1f asked=%.0f moved=%.0f conflicts=%.0f branches=%.0f divergent=%.0f chain=%.0f",
          s->steps ? (double)s->threads / (double)s->steps : 0, (double)s->asked * scale, (double)s->moved * scale,
          (double)s->conflicts * scale, (double)s->branches * scale, (double)s->divergent * scale, s->longest);
  for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++)
    fprintf(out, " us_%s=%.2f", limits[i].name, limits[i].us);
  fprintf(out, "\n");
}
