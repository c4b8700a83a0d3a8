/* program.h — programs as text, from files and standard input; `weft fmt`, `weft compile`. */
#ifndef WEFT_REPL_PROGRAM_H
#define WEFT_REPL_PROGRAM_H

#include <stddef.h>

typedef struct Program {
  const char *name; /* in messages, and what imports are looked for beside */
  char *text;
  size_t len;
} Program;

/* Reads all of an open file (one that is not open: errno tells why), so that a pipe can be a program; p->text is to be
 * freed. 0, or an errno. */
int read_program(int fd, Program *p);

/* `weft fmt [--check] FILE…`: lays files out, in place, standard input (-) to standard output. The exit status: 1 when
 * a file cannot be laid out, or --check found one that is not. */
int format_files(int argc, char **argv);

/* `weft compile -c [--strip] FILE [-o OUT]`: writes the program as weft_compile gives it. The exit status. */
int compile_file(int argc, char **argv);

#endif
