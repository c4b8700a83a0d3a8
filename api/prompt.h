/* prompt.h — commands of a prompt as completion sees them, and values as it shows them. */
#ifndef WEFT_API_PROMPT_H
#define WEFT_API_PROMPT_H

#include "api/inner.h"

typedef enum CommandArg { ARG_NONE, ARG_FUNCTION, ARG_CODE, ARG_FILE, ARG_NUMBER, ARG_WORDS } CommandArg;
typedef struct Command {
  const char *name;
  CommandArg arg;
  bool needed; /* the argument */
  const char *doc;
} Command;
extern const Command prompt_commands[]; /* the last has no name (prompt.c) */

enum { DIGITS_USUAL = 6, DIGITS_ALL = 17 };
/* display.c: the lines that are shown of v, without an end of line; boxed lists */
void display_value(WeftVM *w, Value v, Buf *out);
u32 display_width(const WeftVM *w); /* columns of its lines */
/* Columns of the same length as lines, without a heading: Vm.lay_out. */
void display_table(Vm *vm, Record *table, i64 rows, u32 shown, u32 width, Buf *out);

bool module_has_variable(const struct Module *m, u32 slot); /* is it declared, with a value? */

#endif
