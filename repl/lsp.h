/* lsp.h — inside the language server (`weft lsp`): its state, and what its files offer each other.
 *
 * One thread. lsp.c reads messages and answers them in turn; texts of programs lie in documents (lsp_text.c), each
 * with the outline that weft_outline makes of it. JSON is read by json.parse of a VM that runs nothing else
 * (lsp_json.c), and written as text. Specification: https://microsoft.github.io/language-server-protocol/ (3.17). */
#ifndef WEFT_REPL_LSP_H
#define WEFT_REPL_LSP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "api/weft.h"

/* ---- text that grows (lsp_json.c) ---------------------------------------------------------------- */

typedef struct Out {
  char *text; /* ends in a NUL once something was put */
  size_t len, cap;
} Out;

void put_bytes(Out *o, const char *s, size_t n); /* ends the program when there is no memory, as all of lsp_* do */
void put_text(Out *o, const char *s);
void put_format(Out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_json(Out *o, const char *s, size_t n); /* as a JSON text, in quotes; bytes that are no UTF-8 as U+FFFD */
void put_json_text(Out *o, const char *s);
void out_clear(Out *o);
void out_free(Out *o);
void *grow(void *p, size_t bytes);
char *copy_bytes(const char *s, size_t n);

/* ---- documents (lsp_text.c) ---------------------------------------------------------------------- */

typedef struct Doc {
  char *uri;
  char *path; /* of a file, else NULL */
  char *text;
  size_t len;
  long long version;
  bool open;  /* the editor has it; else it was read from its file */
  bool told;  /* of its problems, since it changed last */
  bool used;  /* in this request, where it is not open */
  struct timespec changed; /* the file, when it was read */
  size_t *lines; /* where each begins */
  size_t line_count;
  WeftOutline *outline;
  WeftProblem *problems;
  WeftSymbol *symbols;
  WeftMention *mentions;
  size_t problem_count, symbol_count, mention_count;
  unsigned char *paint; /* of each byte, WeftPaint; NULL: not yet */
  char **notes; /* of variables when the program ran last: name, what it was, … */
  size_t note_count;
} Doc;

/* ---- the server ------------------------------------------------------------------------------------ */

typedef struct Message {
  WeftValue *value; /* NULL: the text was no JSON, or its frame was broken */
  char *why;        /* then */
  bool cancelled;
} Message;

typedef struct Run { /* of a program, in a process of its own */
  pid_t process;     /* 0: none runs */
  int pipe;
  char *id, *uri;    /* of the request, as JSON; of the document */
  Out said;          /* what the process wrote */
  bool cancelled;
} Run;

typedef struct Lsp {
  WeftVM *vm;
  WeftValue *parse;
  WeftValue **held; /* that are released after each message */
  size_t held_count, held_cap;
  Doc **docs;
  size_t doc_count;
  Message *queue;
  size_t queue_count;
  Out input;        /* bytes of messages that are not whole */
  size_t skip;      /* bytes of a body that is too large */
  bool eof, started, stopped, ended;
  bool utf8;        /* columns are bytes, else UTF-16 code units */
  bool tree;        /* documentSymbol may give trees */
  bool sources;     /* definitions of the library may be weft:/NAME.weft */
  char *root;       /* folder of the project, or NULL */
  WeftBuiltin *builtins;
  size_t builtin_count;
  Run run;
} Lsp;

int lsp_main(int argc, char **argv); /* `weft lsp`; the exit status */

/* Answers and notifications; `id` is JSON. */
void lsp_send(const Out *body);
void lsp_answer(const char *id, const char *result);
void lsp_refuse(const char *id, int code, const char *message);
void lsp_log(int type, const char *message); /* 1 error, 2 warning, 3 information */

enum {
  LSP_PARSE_ERROR = -32700, LSP_INVALID_REQUEST = -32600, LSP_NO_METHOD = -32601, LSP_INVALID_PARAMS = -32602,
  LSP_NOT_STARTED = -32002, LSP_CANCELLED = -32800, LSP_FAILED = -32803
};

/* What a request gives: JSON in `result`, or an error. */
typedef struct Reply {
  Out result;
  int code; /* 0: `result` */
  char message[400];
} Reply;
void reply_error(Reply *r, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* JSON that was read. All is borrowed: it lives until the message is done. NULL gives NULL. */
WeftValue *json_read(Lsp *s, const char *text, size_t len); /* owned; NULL: it is none, weft_error_message says why */
WeftValue *json_get(Lsp *s, WeftValue *v, const char *key);
WeftValue *json_at(Lsp *s, WeftValue *v, size_t i); /* of a list; NULL behind its end */
bool json_is(Lsp *s, WeftValue *v, const char *type); /* "text" "record" "list" "nil" */
const char *json_text(Lsp *s, WeftValue *v, size_t *len); /* NULL: it is no text. len may be NULL */
bool json_int(Lsp *s, WeftValue *v, int64_t *out);
bool json_true(Lsp *s, WeftValue *v);
void json_release(Lsp *s);

/* Documents. */
Doc *doc_find(Lsp *s, const char *uri);
Doc *doc_of_path(Lsp *s, const char *path); /* open, or read from the file; NULL: there is none */
Doc *doc_new(Lsp *s, const char *uri);
void doc_close(Lsp *s, Doc *d);
void doc_set(Lsp *s, Doc *d, const char *text, size_t len);
void doc_splice(Doc *d, size_t from, size_t to, const char *text, size_t len); /* doc_read is due */
void doc_read(Lsp *s, Doc *d); /* makes its outline */
void doc_drop_unused(Lsp *s); /* those that are not open and were not asked for lately */
const unsigned char *doc_paint(Doc *d);
size_t doc_offset(const Lsp *s, const Doc *d, size_t line, size_t character); /* beyond a line: its end */
void put_position(const Lsp *s, const Doc *d, Out *o, size_t at);
void put_range(const Lsp *s, const Doc *d, Out *o, size_t from, size_t to);
size_t doc_line(const Doc *d, size_t at); /* from 0 */
char *path_of_uri(const char *uri); /* NULL: it is none of a file */
char *uri_of_path(const char *path);
char *path_beside(const char *file, const char *path); /* of an import */

/* What names mean (lsp_names.c). */
typedef struct Target { /* what is under the cursor */
  Doc *doc;          /* where it is declared; NULL: a built-in, or nothing */
  int symbol;
  const WeftBuiltin *builtin;
  const WeftMention *mention; /* in the document that was asked about */
} Target;
bool is_name(const char *s);
bool is_name_start(char c);
const WeftMention *mention_under(const Doc *d, size_t at);
Target find_target(Lsp *s, Doc *d, size_t at);
int symbol_named(const Doc *d, const char *name, size_t len, size_t at); /* that can be named there */
int global_named(const Doc *d, const char *name);
Doc *doc_imported(Lsp *s, const Doc *d, int symbol);
const WeftBuiltin *builtin_named(const Lsp *s, const char *name, size_t len);
void lsp_definition(Lsp *s, Doc *d, size_t at, Reply *r);
void lsp_references(Lsp *s, Doc *d, size_t at, bool declaration, Reply *r);
void lsp_highlight(Lsp *s, Doc *d, size_t at, Reply *r);
void lsp_prepare_rename(Lsp *s, Doc *d, size_t at, Reply *r);
void lsp_rename(Lsp *s, Doc *d, size_t at, const char *name, Reply *r);
void lsp_symbols(Lsp *s, Doc *d, Reply *r);
void lsp_folds(Lsp *s, Doc *d, Reply *r);

/* Help (lsp_help.c). */
void lsp_hover(Lsp *s, Doc *d, size_t at, Reply *r);
void lsp_complete(Lsp *s, Doc *d, size_t at, Reply *r);
void lsp_signature(Lsp *s, Doc *d, size_t at, Reply *r);
bool builtin_source(Lsp *s, const char *name, Out *to); /* false: it is not written in Weft */

/* Programs that run because the client asked (lsp_run.c). */
void lsp_run(Lsp *s, Doc *d, const char *id);
void lsp_run_read(Lsp *s); /* its pipe can be read */
void lsp_run_stop(Lsp *s);

#endif
