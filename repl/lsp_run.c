/* lsp_run.c — runs a program because the client asked (`weft.run`), in a process of its own: what it does, and how it
 * ends, leaves the server alone. Its variables' types and shapes are kept for hover. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "repl/lsp.h"

enum { RUN_OUTPUT_MOST = 1 << 20, RUN_SECONDS = 60 };

/* ---- the process: pieces of a kind, a length and bytes go through the pipe ------------------------- */

static int run_pipe = -1;

static void tell_piece(char kind, const char *text, size_t len) {
  unsigned char head[5] = {(unsigned char)kind};
  for (int i = 0; i < 4; i++) head[1 + i] = (unsigned char)(len >> (8 * i));
  const char *parts[] = {(const char *)head, text};
  size_t lens[] = {sizeof head, len};
  for (int i = 0; i < 2; i++)
    for (size_t at = 0; at < lens[i];) {
      ssize_t n = write(run_pipe, parts[i] + at, lens[i] - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) _exit(1);
      at += (size_t)n;
    }
}

static void tell_output(void *context, const char *text, size_t len) {
  (void)context;
  if (len) tell_piece('o', text, len);
}

static void tell_variables(WeftVM *vm) {
  WeftCompletion c = {.size = sizeof c};
  if (weft_complete(vm, "", 0, &c) != WEFT_OK) return;
  for (size_t i = 0; i < c.count; i++) {
    tell_piece('n', c.words[i], strlen(c.words[i]));
    tell_piece('t', c.notes[i], strlen(c.notes[i]));
  }
}

static void run_here(const Doc *d) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  WeftVM *vm;
  char why[300];
  o.output = tell_output;
  o.output_limit = RUN_OUTPUT_MOST;
  o.deadline = RUN_SECONDS;
  o.allow_files = o.allow_env = o.allow_imports = o.allow_gpu = true;
  if (weft_open(&o, &vm, why, sizeof why) != WEFT_OK) {
    tell_piece('e', why, strlen(why));
    _exit(0);
  }
  char *slash = d->path && access(d->path, F_OK) != 0 ? strrchr(d->path, '/') : NULL; /* imports of a new file */
  if (slash) {
    char *folder = copy_bytes(d->path, (size_t)(slash - d->path) + 1);
    if (chdir(folder) != 0) {} /* then the import says that there is no such file */
    free(folder);
  }
  WeftStatus status = weft_load_text(vm, d->text, d->len, d->path ? d->path : d->uri, NULL);
  int code = weft_exit_code(vm);
  if (status != WEFT_OK && code < 0) tell_piece('e', weft_error_text(vm), strlen(weft_error_text(vm)));
  tell_variables(vm);
  tell_piece('k', "", 0);
  _exit(0); /* nothing of the server is flushed or freed here */
}

/* ---- the server ------------------------------------------------------------------------------------ */

void lsp_run(Lsp *s, Doc *d, const char *id) {
  int ends[2];
  if (s->run.process) return lsp_refuse(id, LSP_FAILED, "a program runs already; cancel its request to stop it");
  if (pipe(ends) != 0) return lsp_refuse(id, LSP_FAILED, strerror(errno));
  pid_t process = fork();
  if (process < 0) {
    close(ends[0]);
    close(ends[1]);
    return lsp_refuse(id, LSP_FAILED, strerror(errno));
  }
  if (process == 0) {
    int nothing = open("/dev/null", O_RDWR);
    close(ends[0]);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO); /* of the server alone */
    run_pipe = ends[1];
    run_here(d);
  }
  close(ends[1]);
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  s->run = (Run){.process = process, .pipe = ends[0], .id = copy_bytes(id, strlen(id)),
                 .uri = copy_bytes(d->uri, strlen(d->uri))};
}

static void forget_run(Lsp *s) {
  close(s->run.pipe);
  free(s->run.id);
  free(s->run.uri);
  out_free(&s->run.said);
  s->run = (Run){0};
}

void lsp_run_stop(Lsp *s) {
  if (!s->run.process) return;
  kill(s->run.process, SIGKILL);
  while (waitpid(s->run.process, NULL, 0) < 0 && errno == EINTR) {}
  lsp_refuse(s->run.id, LSP_CANCELLED, "the program was stopped");
  forget_run(s);
}

static void keep_notes(Doc *d, char **notes, size_t count) {
  for (size_t i = 0; i < d->note_count; i++) free(d->notes[i]);
  free(d->notes);
  d->notes = notes;
  d->note_count = count;
}

/* The process has ended: its pieces, put together. */
static void finish_run(Lsp *s) {
  Out output = {0}, error = {0}, result = {0};
  char **notes = NULL;
  size_t count = 0;
  bool whole = false;
  int status = 0;
  const Out *said = &s->run.said;
  while (waitpid(s->run.process, &status, 0) < 0 && errno == EINTR) {}
  for (size_t at = 0; at + 5 <= said->len;) {
    const unsigned char *head = (const unsigned char *)said->text + at;
    size_t len = head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16 | (size_t)head[4] << 24;
    if (len > said->len - at - 5) break;
    const char *text = said->text + at + 5;
    if (head[0] == 'o') put_bytes(&output, text, len);
    if (head[0] == 'e') put_bytes(&error, text, len);
    if (head[0] == 'k') whole = true;
    if (head[0] == 'n' || head[0] == 't') {
      notes = grow(notes, sizeof *notes * (count + 1));
      notes[count++] = copy_bytes(text, len);
    }
    at += 5 + len;
  }
  if (!whole && !error.len) {
    put_text(&error, "the program ended without a result");
    if (WIFSIGNALED(status)) put_format(&error, " (signal %d)", WTERMSIG(status));
  }
  Doc *d = doc_find(s, s->run.uri);
  if (d) keep_notes(d, notes, count);
  for (size_t i = 0; !d && i < count; i++) free(notes[i]);
  if (!d) free(notes);
  put_format(&result, "{\"ok\":%s,\"output\":", error.len ? "false" : "true");
  put_json(&result, output.text ? output.text : "", output.len);
  put_text(&result, ",\"error\":");
  if (error.len) put_json(&result, error.text, error.len);
  else put_text(&result, "null");
  put_text(&result, "}");
  lsp_answer(s->run.id, result.text);
  out_free(&output);
  out_free(&error);
  out_free(&result);
  forget_run(s);
}

void lsp_run_read(Lsp *s) {
  char buffer[1 << 14];
  ssize_t n = read(s->run.pipe, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return;
  if (n > 0) put_bytes(&s->run.said, buffer, (size_t)n);
  else finish_run(s);
}
