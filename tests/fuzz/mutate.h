/* mutate.h — random changes of an input, and the words that each format is made of. */
#ifndef WEFT_TESTS_MUTATE_H
#define WEFT_TESTS_MUTATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct Random {
  uint64_t state;
} Random;
uint64_t random_next(Random *r);
uint64_t random_below(Random *r, uint64_t n); /* 0 … n-1; 0 for n = 0 */

/* Writes a changed copy of `from` (pieces of `other` and of `words` may go in) and returns its length ≤ cap. */
size_t mutate(Random *r, char *out, size_t cap, const char *from, size_t from_length, const char *other,
              size_t other_length, const char *const *words);

extern const char *const mutate_source_words[], *const mutate_npy_words[], *const mutate_csv_words[],
    *const mutate_npz_words[], *const mutate_image_words[], *const mutate_json_words[], *const mutate_regex_words[];

#endif
