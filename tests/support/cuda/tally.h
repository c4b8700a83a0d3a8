/* tally.h — counts what the warps of a launch cost on a card, while machine.c runs a sample of them in step.
 *
 * An instruction of PTX takes so many issue slots of machine code, and its result is there so many cycles later
 * (tally.c has the table). A warp issues in order: an instruction waits for its operands, and for nothing else; so two
 * loads that do not need one another are under way together. What comes out is how long a warp takes that is alone, and
 * what it asks of each part of a multiprocessor; model.c makes a time of both. */
#ifndef WEFT_TESTS_SUPPORT_CUDA_TALLY_H
#define WEFT_TESTS_SUPPORT_CUDA_TALLY_H

#include "tests/support/cuda/code.h"

enum { WARP = 32, SECTOR = 32, LINE = 128, BANKS = 32 }; /* threads; bytes; bytes; of 4 bytes */

typedef enum TallyKind { TK_INTEGER, TK_F32, TK_F64, TK_SPECIAL, TK_MEMORY, TK_CONTROL, TK_TENSOR, TK_KINDS } TallyKind;
typedef enum TallyAccess { TALLY_LOAD, TALLY_STORE, TALLY_SHARED_LOAD, TALLY_SHARED_STORE } TallyAccess;

/* Cycles until a load has its value: from memory, from the cache that all multiprocessors share, from shared memory. */
typedef struct TallyLatency {
  unsigned memory, cache, shared;
} TallyLatency;

/* Sums over the warps that ran. */
typedef struct TallySums {
  uint64_t warps, steps;          /* steps: instructions of PTX, of warps */
  double slots[TK_KINDS];         /* issue slots by kind */
  double f64, special;            /* instructions of warps in the units for f64, and for conversions */
  double multiplied;              /* multiplications of 32-bit integers, of warps */
  uint64_t threads;               /* steps times threads that take part */
  uint64_t requests, wavefronts;  /* accesses of warps to global memory; cycles that the load unit takes for them */
  uint64_t asked, moved;          /* sectors that their bytes would fill, sectors they touch */
  uint64_t private_sectors, shared_sectors; /* touched for the first time: by one warp alone, by several */
  double fresh;                   /* share of what is moved that no other block at work moves, too; 0: not known */
  uint64_t conflicts;             /* further cycles of shared memory, because of banks */
  uint64_t branches, divergent;
  uint64_t fmas;                  /* of tensor cores, for all threads together */
  double cycles, longest;         /* of a warp that is alone */
  double under_way;               /* bytes of loads times the cycles they take */
} TallySums;

Tally *tally_new(TallyLatency latency);
Tally *tally_beside(const Tally *t); /* an empty one of the same card */
void tally_shares(Tally *t, const Tally *blocks); /* t->fresh of what was counted of blocks that run at once */
void tally_free(Tally *t);
const TallySums *tally_sums(const Tally *t);
uint64_t tally_steps(const Tally *t);

/* What follows is of warp number `warp` of its block; a fresh one: its clock begins at 0. */
void tally_warp(Tally *t, unsigned warp, bool fresh);
/* One instruction of the threads in mask; accesses and ready registers are told in between. */
void tally_begin(Tally *t, const MachineFn *f, const Insn *in, int depth, unsigned mask);
void tally_access(Tally *t, unsigned lane, uint64_t at, unsigned bytes, TallyAccess kind);
/* A copy to shared memory that goes on by itself. */
void tally_copy(Tally *t, uint64_t from, uint64_t to, unsigned bytes);
void tally_end(Tally *t, unsigned jumped);
/* The warps of a block have met: each goes on when the last one has come. */
void tally_meet(Tally *t, unsigned warps);

#endif
