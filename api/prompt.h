/* prompt.h — commands of a prompt as completion sees them. */
#ifndef WEFT_API_PROMPT_H
#define WEFT_API_PROMPT_H

#include "api/inner.h"

typedef enum CommandArg { ARG_NONE, ARG_FUNCTION, ARG_CODE, ARG_FILE } CommandArg;
typedef struct Command {
  const char *name;
  CommandArg arg;
  bool needed; /* the argument */
} Command;
extern const Command prompt_commands[]; /* the last has no name (prompt.c) */

bool module_has_variable(const struct Module *m, u32 slot); /* is it declared, with a value? */

#endif
