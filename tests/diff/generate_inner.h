/* generate_inner.h — what the files of the generator share: the state, variables in sight, expressions by type. */
#ifndef WEFT_TESTS_GENERATE_INNER_H
#define WEFT_TESTS_GENERATE_INNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Type {
  INT,
  FLOAT,
  BOOL,
  FLOATS, /* of n elements, as all arrays but matrices (n, 3) */
  INTS,
  MASK,
  MATRIX,
  RECORD, /* {w: FLOATS, b: FLOAT, k: INT} */
  LIST,   /* of FLOATs, at least two */
  TEXT,
  CLOSURE, /* FLOAT to FLOAT */
  CELL,    /* a ref of FLOAT */
  TYPES    /* also: a variable that may not be read yet */
} Type;

enum { VARS = 48 };

typedef struct Var {
  char name[8];
  Type type;
  bool fixed; /* a loop's counter: read only */
} Var;

typedef struct Gen {
  uint64_t state;
  char *text;
  size_t length, cap;
  int indent;
  Var vars[VARS];
  int var_count, next_name;
  int loop_depth;
  int statements; /* how many more may be made */
  int functions;  /* already written: h0 … */
  int lambdas;    /* open bodies of functions inside an expression: nothing outside is assigned there */
  bool module;    /* there are variables of the module */
  bool in_for;    /* `i` of the innermost for loop may index */
  bool returns;   /* a `return` may stand here: in the function that gives a list */
  bool bare;      /* inside a function that is differentiated or batched: numbers only */
} Gen;

int gen_below(Gen *g, int n);
bool gen_chance(Gen *g, int percent);
__attribute__((format(printf, 2, 3))) void gen_put(Gen *g, const char *format, ...);
void gen_line(Gen *g);
const Var *gen_pick_var(Gen *g, Type type, bool writable);
Var *gen_new_var(Gen *g, Type type, char letter); /* NULL: no room */

/* generate_expr.c */
void gen_expr(Gen *g, Type type, int depth);
void gen_leaf(Gen *g, Type type);

/* generate_more.c */
void gen_pattern(Gen *g); /* a statement or a few */

/* generate_lists.c */
void gen_arms(Gen *g); /* loops that update arrays in arms */
void gen_zips(Gen *g); /* enumerate and zip */
void gen_bodies(Gen *g); /* records that hold arrays, searched for one that may not be there */
void gen_links(Gen *g);  /* lists of lists of several lengths */

/* generate_rows.c */
void gen_rows(Gen *g); /* loops over rows and slices */

/* generate_kits.c */
void gen_kit(Gen *g); /* queues, memos, functions in lists, rows that grow, walks over texts, ends, computed sizes */

/* generate_sizes.c */
void gen_sizes(Gen *g); /* a whole program: functions of numbers that become sizes */

/* generate_raised.c */
void gen_raised(Gen *g); /* a whole program: loops whose trips may be done at once */

/* generate_trees.c */
void gen_trees(Gen *g); /* a whole program: trees of all makes under all that walks over them */

/* generate_flow.c */
void gen_flow(Gen *g); /* a whole program: control flow under transforms */
/* generate_probes.c */
void gen_probe(Gen *g); /* a whole program: loops under transforms, operations with settings, many parts, trees */

#endif
