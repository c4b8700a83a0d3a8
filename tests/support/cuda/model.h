/* model.h — a time for a launch on a card that is not there, from what tally.h counted. */
#ifndef WEFT_TESTS_SUPPORT_CUDA_MODEL_H
#define WEFT_TESTS_SUPPORT_CUDA_MODEL_H

#include "tests/support/cuda/tally.h"

#include <stdio.h>

typedef struct Card {
  const char *name;
  unsigned sms, mhz, copy, cache, warps, blocks, shared_kb, f64, from_memory, from_cache, from_shared;
  double call_us, launch_us, link, cache_mb;
  unsigned tensor;
  const char *arch;
} Card;

const Card *card_find(const char *name); /* NULL: not known */
/* Registers of each entry of the text, as `ptxas` tells them; what it does not tell is estimated. */
void model_read_registers(const char *ptxas, const Card *card, const char *ptx);
/* The line of one launch, `launch NAME key=value …` (tests/tools/gpu-model.sh reads it). */
void model_print(FILE *out, const Card *card, const MachineFn *f, unsigned blocks, unsigned threads, unsigned shared,
                 const TallySums *sums);

#endif
