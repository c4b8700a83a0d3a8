/* machine.h — an interpreter of the PTX that gpu/ writes, for tests on machines without a card.
 *
 * It follows the manual of the instruction set, not the renderer: values that were never written, addresses outside
 * of live memory or misaligned, warps that do not meet at a `.sync` instruction and endless loops are errors.
 * Threads of a warp run one after the other between such instructions, in an order that changes with each launch.
 * Blocks run one after the other, unless they count with one another (`atom`): then some run at once, in turns.
 * What the manual leaves open (the sign of zero in min and max, quotients by zero) comes out in the way that hurts. */
#ifndef WEFT_TESTS_SUPPORT_CUDA_MACHINE_H
#define WEFT_TESTS_SUPPORT_CUDA_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Machine Machine;   /* a module */
typedef struct MachineFn MachineFn;

/* Faults that tests plant: accesses of several elements become one for each; rows of 33 words become rows of 32; blocks
 * never meet; nothing is published for other blocks; what is equal counts as greater; matrices are not turned when they
 * are loaded for tensor cores; a sum of products of 32-bit integers is the last product alone. */
typedef enum MachinePlant {
  PLANT_NONE, PLANT_SCALAR, PLANT_UNPADDED, PLANT_NO_MEETING, PLANT_SILENT, PLANT_TIE, PLANT_FRAGMENT, PLANT_FORGET
} MachinePlant;

/* NULL, and a line in `why`, when the text is not understood. */
Machine *machine_load(const char *ptx, MachinePlant plant, char *why, size_t size);
void machine_free(Machine *m);
const MachineFn *machine_find(const Machine *m, const char *entry); /* NULL */
unsigned machine_params(const MachineFn *f);
void machine_allow(MachineFn *f, unsigned shared); /* bytes that a launch may give; 48 KB unless told */
unsigned machine_allowed(const MachineFn *f);

/* Where the host has the `bytes` at `at` of the device; NULL: they lie in no live memory of it. */
typedef void *(*MachineMemory)(uint64_t at, size_t bytes);
/* False with a line in `why` when a thread does what it must not. `shared`: bytes of shared memory beside what the
 * function declares. */
bool machine_run(const MachineFn *f, unsigned blocks, unsigned threads, unsigned shared, const uint64_t *params,
                 MachineMemory memory, unsigned seed, char *why, size_t size);

/* The same for a sample of the warps, spread over the grid, with what they do counted (tally.h); the rest of the
 * results is not computed. Of blocks that run long, the first `at_once` begin, and what they load is counted too: how
 * much of it several of them share. */
typedef struct Tally Tally;
bool machine_count(const MachineFn *f, unsigned blocks, unsigned threads, unsigned shared, const uint64_t *params,
                   MachineMemory memory, unsigned at_once, Tally *tally, char *why, size_t size);

#endif
