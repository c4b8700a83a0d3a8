/* session.c — the inputs of a session, and the commands on them (see session.h). */
#define _GNU_SOURCE /* asprintf, mkostemps */
#include "repl/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "repl/history.h"
#include "repl/output.h"
#include "repl/program.h"

void session_enter(Session *s) {
  free(s->last);
  s->last = strdup(s->text);
}

static void keep(Session *s, const char *text, size_t n) {
  char *kept = realloc(s->kept, s->kept_len + n + 1);
  if (!kept) return;
  memcpy(kept + s->kept_len, text, n);
  s->kept = kept;
  s->kept_len += n;
  s->kept[s->kept_len] = 0;
}

static size_t name_at(const char *s) {
  size_t n = 0;
  while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z') || s[n] == '_' || (unsigned char)s[n] >= 0x80 ||
         (n && s[n] >= '0' && s[n] <= '9'))
    n++;
  return n;
}

/* Was the name declared by what is kept: by `let`, also in a pattern, `fn` or `as`, at the beginning of a line? */
static bool is_declared(const Session *s, const char *name, size_t n) {
  for (const char *line = s->kept; line && *line;) {
    size_t end = strcspn(line, "\n");
    bool fn = strncmp(line, "fn ", 3) == 0, import = strncmp(line, "import ", 7) == 0;
    size_t until = fn ? 3 + name_at(line + 3) : import ? end : strcspn(line, "=\n");
    if (fn || import || strncmp(line, "let ", 4) == 0) {
      for (size_t at = fn ? 3 : import ? 7 : 4; at < until;) {
        size_t m = name_at(line + at);
        if (m == n && strncmp(line + at, name, n) == 0) return true;
        at += m ? m : 1;
      }
    }
    line += end + (line[end] == '\n');
  }
  return false;
}

/* The prompt declares by `x = e`, a program by `let x = e`: each statement of the input gets its line; inside of
 * brackets all stays as it is. */
void session_keep(Session *s) {
  const char *text = s->text;
  size_t len = strlen(text), begin = 0;
  unsigned char *paint = malloc(len + 1);
  if (!paint) return;
  (void)weft_paint(text, len, paint);
  int depth = 0;
  for (size_t i = 0; i <= len; i++) {
    bool bracket = i < len && paint[i] == WEFT_PAINT_BRACKET;
    if (bracket) depth += strchr("([{", text[i]) ? 1 : -1;
    bool plain = i < len && paint[i] == WEFT_PAINT_PLAIN;
    if (i < len && !(depth == 0 && plain && (text[i] == ';' || text[i] == '\n'))) continue;
    while (begin < i && (text[begin] == ' ' || text[begin] == '\t')) begin++;
    size_t n = name_at(text + begin), behind = begin + n + strspn(text + begin + n, " \t");
    bool assigns = n && paint[begin] == WEFT_PAINT_PLAIN && text[behind] == '=' && text[behind + 1] != '=' &&
                   text[behind + 1] != '>';
    if (assigns && !is_declared(s, text + begin, n)) keep(s, "let ", 4);
    keep(s, text + begin, i - begin);
    if (i > begin) keep(s, "\n", 1);
    begin = i + 1;
  }
  free(paint);
}

void session_end(Session *s) {
  free(s->last);
  free(s->kept);
  s->last = s->kept = NULL;
}

/* ---- :save -------------------------------------------------------------------------------------------- */

/* A file that is there stays as it is, unless `over`. */
static void save(const Session *s, const char *path, bool over) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (over ? O_TRUNC : O_EXCL), 0666);
  if (fd < 0 && errno == EEXIST) {
    out_printf("\"%s\" is there already; :save! %s replaces it\n", path, path);
    return;
  }
  bool ok = fd >= 0;
  for (size_t at = 0; ok && at < s->kept_len;) {
    ssize_t n = write(fd, s->kept + at, s->kept_len - at);
    if (n < 0 && errno == EINTR) continue;
    ok = n >= 0;
    if (ok) at += (size_t)n;
  }
  int why = errno;
  if (fd >= 0 && close(fd) != 0 && ok) ok = false, why = errno;
  if (!ok) out_printf("cannot write \"%s\": %s\n", path, strerror(why));
}

/* ---- :edit -------------------------------------------------------------------------------------------- */

/* The editor is a program of the user's, by the shell: its name may have arguments. 0: it ended well. */
static int run_editor(const char *path) {
  out_flush();
  pid_t pid = fork();
  if (pid == 0) {
    execl("/bin/sh", "sh", "-c", "exec ${VISUAL:-${EDITOR:-vi}} \"$1\"", "sh", path, (char *)NULL);
    _exit(127);
  }
  int status = -1;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The text as it is when the editor ends, to be freed; NULL, said: there is none. */
static char *edited(const char *text) {
  char path[] = "/tmp/weft-XXXXXX.weft";
  int fd = mkostemps(path, 5, O_CLOEXEC);
  Program p = {0};
  size_t n = strlen(text);
  if (fd < 0 || write(fd, text, n) != (ssize_t)n) {
    out_printf("cannot write \"%s\": %s\n", path, strerror(errno));
  } else if (run_editor(path) != 0) {
    out_puts("the editor failed, nothing is run; VISUAL or EDITOR names it\n");
  } else {
    int again = open(path, O_RDONLY | O_CLOEXEC);
    int code = read_program(again, &p);
    if (code) out_printf("cannot read \"%s\": %s\n", path, strerror(code));
    if (again >= 0) close(again);
  }
  if (fd >= 0) close(fd), unlink(path);
  return p.text;
}

static SessionEnd edit(Session *s, const char *name) {
  WeftValue *f = NULL;
  const char *source = NULL;
  if (*name) {
    if (weft_eval(s->vm, name, "<:edit>", &f) != WEFT_OK) {
      out_puts(weft_error_text(s->vm));
      return SESSION_DONE;
    }
    source = weft_dump(s->vm, f, "source");
    if (!source) out_printf("%s has no source here\n", name);
  } else {
    source = s->last ? s->last : "";
  }
  char *text = source ? edited(source) : NULL;
  weft_release(s->vm, f);
  if (!text) return SESSION_DONE;
  if (!text[strspn(text, " \t\r\n")]) {
    free(text);
    return SESSION_DONE;
  }
  out_puts(text);
  out_fresh_line();
  free(s->text);
  s->text = text;
  return SESSION_RUN;
}

/* ---- :show -------------------------------------------------------------------------------------------- */

/* By the shell, so that a browser that does not end is not waited for. The file stays: the browser reads it when it
 * likes. */
static void show_in_browser(const char *path) {
  static const char script[] = "b=${BROWSER:-xdg-open}; command -v \"${b%% *}\" >/dev/null || exit 127\n"
                               "$b \"$1\" </dev/null >/dev/null 2>&1 &";
  out_flush();
  pid_t pid = fork();
  if (pid == 0) {
    setsid(); /* Ctrl-C at the prompt does not end it */
    execl("/bin/sh", "sh", "-c", script, "sh", path, (char *)NULL);
    _exit(127);
  }
  int status = -1;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  bool ran = pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  out_printf(ran ? "shown: %s\n" : "there is no browser (BROWSER names one); the drawing is in %s\n", path);
}

static void show_drawing(const Session *s, const char *code) {
  char *call = NULL, path[] = "/tmp/weft-XXXXXX.svg";
  const char *text;
  size_t n;
  WeftValue *v = NULL;
  if (asprintf(&call, "plot.svg(%s)", code) < 0) return out_puts("weft: out of memory\n");
  if (weft_eval(s->vm, call, "<:show>", &v) != WEFT_OK || weft_as_text(s->vm, v, &text, &n) != WEFT_OK) {
    out_puts(weft_error_text(s->vm));
  } else {
    int fd = mkostemps(path, 4, O_CLOEXEC);
    bool ok = fd >= 0;
    for (size_t at = 0; ok && at < n;) {
      ssize_t done = write(fd, text + at, n - at);
      if (done < 0 && errno == EINTR) continue;
      ok = done >= 0;
      if (ok) at += (size_t)done;
    }
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && ok) ok = false, why = errno;
    if (ok) show_in_browser(path);
    else out_printf("cannot write \"%s\": %s\n", path, strerror(why));
  }
  weft_release(s->vm, v);
  free(call);
}

/* ---- */

/* What stands behind the command `name` of the line; NULL: it is another one. */
static char *argument(const char *line, const char *name) {
  line += strspn(line, " \t");
  size_t n = strlen(name);
  if (*line != ':' || strncmp(line + 1, name, n) != 0) return NULL;
  line += 1 + n;
  if (*line && !strchr(" \t\r\n", *line)) return NULL;
  line += strspn(line, " \t\r\n");
  size_t len = strlen(line);
  while (len && strchr(" \t\r\n", line[len - 1])) len--;
  bool quoted = len >= 2 && line[0] == '"' && line[len - 1] == '"' && strncmp(name, "save", 4) == 0;
  if (quoted) line++, len -= 2;
  return strndup(line, len);
}

SessionEnd session_command(Session *s, const char *line) {
  static const char *const names[] = {"save", "save!", "edit", "history", "reset", "show"};
  enum { SAVE, SAVE_OVER, EDIT, HISTORY, RESET, SHOW, COUNT };
  char *rest = NULL;
  int which = 0;
  while (which < COUNT && !(rest = argument(line, names[which]))) which++;
  SessionEnd end = SESSION_DONE;
  if (which == COUNT) end = SESSION_NONE;
  else if (which == EDIT) end = edit(s, rest);
  else if (which == HISTORY) prompt_history_tell(*rest ? rest : NULL);
  else if (which == RESET) end = SESSION_RESET;
  else if (which == SHOW && *rest) show_drawing(s, rest);
  else if (which == SHOW) out_puts(":show needs a drawing, as plot.line gives one\n");
  else if (!*rest) out_puts(":save needs the name of a file\n");
  else save(s, rest, which == SAVE_OVER);
  free(rest);
  return end;
}
