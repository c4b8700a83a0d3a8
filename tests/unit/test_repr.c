/* test_repr.c — the representations of the recorder: no cell of a table is empty without a reason, and the matrix of
 * representations and operations is the one that docs/representations.md shows (WEFT_WRITE=1 writes it there). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lang/reasons.h"
#include "tracer/record/repr.h"

static const char *const ids[AV_COUNT] = {
#define REPR(name, traits) [AV_##name] = #name,
#include "tracer/record/repr.def"
#undef REPR
};

static const char *const ops[ROP_COUNT] = {
#define REPR_OP(name, result, parameters, text) [ROP_##name] = #name,
#include "tracer/record/repr_ops.def"
#undef REPR_OP
};

static bool filled(const Repr *p, u32 op) {
  switch (op) {
#define REPR_OP(name, result, parameters, text)                                                                     \
  case ROP_##name: return p->name != NULL;
#include "tracer/record/repr_ops.def"
#undef REPR_OP
    default: return false;
  }
}

static void no_hole(void **state) {
  u32 holes = 0;
  (void)state;
  for (u32 i = 0; i < AV_COUNT; i++)
    for (u32 op = 0; op < ROP_COUNT; op++) {
      const ReprGap *gap = &reprs[i]->gap[op];
      bool said = gap->why && *gap->why;
      if (filled(reprs[i], op) != said) continue;
      printf("# %s: %s %s\n", ids[i], ops[op], said ? "has a function, and a reason why not" : "has no reason");
      holes++;
    }
  assert_int_equal(holes, 0);
}

static void rows_agree(void **state) {
  (void)state;
  for (u32 i = 0; i < AV_COUNT; i++) {
    assert_string_equal(reprs[i]->name, ids[i]);
    for (u32 op = 0; op < ROP_COUNT; op++)
      if (reprs[i]->gap[op].why) assert_in_range(reprs[i]->gap[op].reason, 0, REASON_COUNT - 1);
    /* what has parts is compared by them, and what is opened can be */
    if (repr_traits[i] & HAS_PARTS) assert_non_null(reprs[i]->same);
    if (repr_traits[i] & IS_COLUMNS) assert_true(repr_traits[i] & HAS_PARTS);
    if (repr_traits[i] & (IS_NUMBER | IS_COLUMNS)) assert_non_null(reprs[i]->recipe);
    if (repr_traits[i] & IS_TEXT && reprs[i]->type) assert_string_equal(reprs[i]->type, "text");
  }
}

/* ---- the page --------------------------------------------------------------------------------------------------- */

enum { PAGE = 1 << 17 };
static char made[PAGE], page[PAGE];
static size_t length;

static void put(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  length += (size_t)vsnprintf(made + length, PAGE - length, fmt, ap);
  va_end(ap);
  assert_true(length < PAGE);
}

/* Words of a list item, wrapped. */
static u32 column;
static void word(const char *text) {
  for (const char *end; *text; text = end) {
    while (*text == ' ') text++;
    end = text;
    while (*end && *end != ' ') end++;
    const u32 n = (u32)(end - text);
    if (n && column + 1 + n > 118) put("\n "), column = 1;
    if (n) put(" %.*s", (int)n, text), column += 1 + n;
  }
}

static void gaps_of(const Repr *p) {
  bool told[ROP_COUNT] = {false};
  for (u32 op = 0; op < ROP_COUNT; op++) {
    if (!p->gap[op].why || told[op]) continue;
    char names[600] = "";
    for (u32 k = op; k < ROP_COUNT; k++) {
      const ReprGap *x = &p->gap[op], *y = &p->gap[k];
      if (!y->why || strcmp(x->why, y->why) != 0 || x->reason != y->reason) continue;
      told[k] = true;
      snprintf(names + strlen(names), sizeof names - strlen(names), "%s`%s`", *names ? ", " : "", ops[k]);
    }
    put("-"), column = 1;
    word(names);
    word("—"), word(p->gap[op].why);
    char reason[80];
    snprintf(reason, sizeof reason, "(%s)", reason_name(p->gap[op].reason));
    word(reason);
    put("\n");
  }
}

static void make_page(void) {
  length = 0;
  put("## The matrix\n\n```\n%-13s", "");
  for (u32 op = 0; op < ROP_COUNT; op++) put(" %2u", op + 1);
  for (u32 i = 0; i < AV_COUNT; i++) {
    put("\n%-13s", ids[i]);
    for (u32 op = 0; op < ROP_COUNT; op++) put("  %c", filled(reprs[i], op) ? 'x' : '.');
  }
  put("\n```\n\n");
  column = 0;
  for (u32 op = 0; op < ROP_COUNT; op++) {
    char text[60];
    snprintf(text, sizeof text, "%s%u `%s`%s", op && column > 1 ? " " : "", op + 1, ops[op],
             op + 1 < ROP_COUNT ? "," : ".");
    if (column + strlen(text) > 116) put("\n"), column = 0;
    put("%s", text + (column == 0 && *text == ' '));
    column += (u32)strlen(text);
  }
  put("\n\n## Why a cell is empty\n");
  for (u32 i = 0; i < AV_COUNT; i++) {
    put("\n### `%s`\n\n", ids[i]);
    gaps_of(reprs[i]);
  }
}

static void page_agrees(void **state) {
  static const char name[] = "docs/representations.md", mark[] = "## The matrix\n";
  (void)state;
  FILE *f = fopen(name, "r");
  assert_non_null(f);
  page[fread(page, 1, PAGE - 1, f)] = 0;
  fclose(f);
  make_page();
  char *from = strstr(page, mark);
  assert_non_null(from);
  if (getenv("WEFT_WRITE")) {
    *from = 0;
    assert_non_null(f = fopen(name, "w"));
    fprintf(f, "%s%s", page, made);
    fclose(f);
    return;
  }
  assert_string_equal(from, made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_hole),
      cmocka_unit_test(rows_agree),
      cmocka_unit_test(page_agrees),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
