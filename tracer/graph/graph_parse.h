/* graph_parse.h — what the three files of the graph's parser share: the reader's state, scanning, values. */
#ifndef WEFT_TRACER_GRAPH_PARSE_H
#define WEFT_TRACER_GRAPH_PARSE_H

#include "tracer/graph/graph.h"

typedef VEC(u32) Ids;

typedef struct Bound {
  const char *name;
  u32 len;
  ValueId value;
  bool closed; /* its block has ended */
} Bound;

typedef struct Fixup { /* an unbacked symbol whose value comes later */
  u32 sym;
  const char *name;
  u32 len;
} Fixup;

typedef struct Parser {
  Graph *g;
  Names *names;
  const char *text, *at, *end;
  char *err;
  size_t err_cap;
  bool bad;
  VEC(Bound) bound;
  VEC(Fixup) fixups;
  Arena temp;
} Parser;

/* graph_parse_text.c. After a failure (`bad`) everything does nothing and gives 0. */
bool read_fail(Parser *p, const char *what);
void read_skip(Parser *p);
char read_peek(Parser *p);
bool read_take(Parser *p, const char *s);
bool read_expect(Parser *p, const char *s);
bool read_letter(char c);
bool read_digit(char c);
bool read_wordish(char c);
u32 read_word_at(Parser *p, const char **start);
bool read_is(const char *s, u32 len, const char *word);
bool read_take_word(Parser *p, const char *word);
u32 read_any_word(Parser *p, const char **start);
i64 read_integer(Parser *p);
u32 read_number(Parser *p);
char *read_quoted(Parser *p, u32 *len);
char *read_temp_copy(Parser *p, const char *s, u32 n);
bool read_checked(Parser *p, bool ok, const char *what);
Dim read_dim(Parser *p);
bool read_symbol(Parser *p, Dim *out); /* false: there is none, and nothing is read */
bool read_symbol_at(Parser *p); /* stands the name of a symbol here? Nothing is read */
u32 read_dtype_at(Parser *p);
bool read_type_starts(Parser *p);
TypeId read_type(Parser *p);
/* graph_parse.c */
Value read_literal(Parser *p);
ValueId read_value(Parser *p, bool any);
void read_push_id(Parser *p, Ids *l, u32 id);

/* graph_parse_exit.c */
SourceId read_source(Parser *p); /* arg0.w[2], size(arg0, 1), global "k" */
RecipeId read_recipe(Parser *p);
void read_exit(Parser *p);       /* a line of an exit behind its word */

#endif
