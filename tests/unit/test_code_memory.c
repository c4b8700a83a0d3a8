/* test_code_memory.c — pieces of machine code: taken, run and given back in any order, refused memory, forks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit/vector/code_memory.h"
#include "tests/unit/memory.h"

enum { PIECES = 300, ROUNDS = 4000 };

typedef struct Piece {
  u8 *at;
  size_t bytes;
  u32 number;
} Piece;

static u32 next(u32 *seed) { return *seed = *seed * 1664525u + 1013904223u, *seed >> 8; }

/* mov eax, number; ret — at both ends of the piece. */
static void write_code(const Piece *p) {
  u8 code[6] = {0xB8, [5] = 0xC3};
  memcpy(code + 1, &p->number, 4);
  memcpy(p->at, code, sizeof code);
  memcpy(p->at + p->bytes - sizeof code, code, sizeof code);
}

static u32 run(const u8 *at) {
  u32 (*fn)(void);
  memcpy(&fn, &at, sizeof fn);
  return fn();
}

static void check(const Piece *p) {
  assert_int_equal(run(p->at), p->number);
  assert_int_equal(run(p->at + p->bytes - 6), p->number);
}

static void take(CodeMemory *m, Piece *p, u32 *seed, u32 number) {
  size_t needed = 12 + next(seed) % (next(seed) % 50 ? 3000 : 600000), more = next(seed) % 2 ? 5000 : 0;
  *p = (Piece){.at = code_memory_take(m, needed + more), .bytes = needed, .number = number};
  assert_non_null(p->at);
  assert_int_equal((uintptr_t)p->at % 64, 0);
  if (more) code_memory_trim(m, p->at, needed + more, needed);
  write_code(p);
}

static void never_both(void) {
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) assert_null(strstr(line, " rwx"));
  if (maps) fclose(maps);
}

static void pieces_in_any_order(void **state) {
  (void)state;
  TestMemory f = test_memory(-1);
  CodeMemory *m = code_memory_new(&f.base);
  Piece pieces[PIECES];
  u32 seed = 7;
  memset(pieces, 0, sizeof pieces);
  for (u32 r = 0; r < ROUNDS; r++) {
    code_memory_open(m);
    if (r % 3 == 0) code_memory_open(m);
    for (u32 k = next(&seed) % 4; k; k--) {
      Piece *p = &pieces[next(&seed) % PIECES];
      if (p->at) code_memory_give(m, p->at, p->bytes);
      *p = (Piece){0};
      if (next(&seed) % 3) take(m, p, &seed, r + 1);
    }
    if (r % 3 == 0) assert_true(code_memory_close(m));
    assert_true(code_memory_close(m));
    if (r % 1000 == 0) never_both();
    Piece *p = &pieces[next(&seed) % PIECES];
    if (p->at) check(p);
  }
  for (u32 i = 0; i < PIECES; i++) {
    if (pieces[i].at) check(&pieces[i]);
    code_memory_give(m, pieces[i].at, pieces[i].bytes);
  }
  code_memory_free(m);
  assert_int_equal(f.held, 0);
}

/* What a child compiles does not reach the parent, though both write to the same place. */
static void forks(void **state) {
  (void)state;
  TestMemory f = test_memory(-1);
  CodeMemory *m = code_memory_new(&f.base);
  Piece first, second;
  u32 seed = 1;
  code_memory_open(m);
  take(m, &first, &seed, 42);
  assert_true(code_memory_close(m));
  pid_t child = fork();
  u32 own = child ? 44 : 43;
  code_memory_open(m);
  if (child == 0) code_memory_give(m, first.at, first.bytes);
  take(m, &second, &seed, own);
  bool ok = code_memory_close(m) && run(second.at) == own;
  if (child == 0) _exit(ok ? 0 : 1);
  int status = 1;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_int_equal(status, 0);
  check(&first);
  check(&second);
  code_memory_free(m);
}

static void refused_memory(void **state) {
  (void)state;
  bool done = false;
  for (i64 n = 0; !done; n++) {
    TestMemory f = test_memory(n);
    CodeMemory *m = code_memory_new(&f.base);
    u8 *at[8] = {0};
    done = m != NULL;
    if (!m) continue;
    code_memory_open(m);
    for (u32 i = 0; i < 8; i++) done &= (at[i] = code_memory_take(m, 100 << i * 2)) != NULL;
    for (u32 i = 0; i < 8; i += 2) code_memory_give(m, at[i], 100 << i * 2);
    assert_true(code_memory_close(m));
    code_memory_free(m);
    assert_true(f.held == 0 && n < 100);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_in_any_order), cmocka_unit_test(forks),
                                     cmocka_unit_test(refused_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
