/* line.c — readline's callback interface, so that signals are ours while it waits (see line.h): Ctrl-C drops the
 * line in every state of readline, and whatever stops or ends the program first gives the terminal back as it was. */
#include "repl/line.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <readline/readline.h>

#include "repl/block.h"
#include "repl/complete.h"
#include "repl/output.h"

/* ---- signals ---------------------------------------------------------------------------------- */

/* While a line is read, beside the interrupt, which the program has its own handler for. */
static const int watched[] = {SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGHUP, SIGQUIT};
enum { WATCHED = sizeof watched / sizeof watched[0] };
static struct sigaction before[WATCHED];
static volatile sig_atomic_t resized, resumed, leaving; /* leaving: the signal that stops or ends the program */

static void on_signal(int number) {
  if (number == SIGWINCH) resized = 1;
  else if (number == SIGCONT) resumed = 1;
  else leaving = number;
}

static void watch(void) {
  struct sigaction act = {.sa_handler = on_signal};
  for (int i = 0; i < WATCHED; i++) {
    sigaction(watched[i], NULL, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(watched[i], &act, NULL); /* nohup */
  }
}

static void unwatch(void) {
  for (int i = 0; i < WATCHED; i++) sigaction(watched[i], &before[i], NULL);
}

/* Ctrl-C takes away the keys that wait. A read that was to give them must not wait for others: it gives nothing.
 * Enter arrives as the end of a line: what is typed ahead may be read by the program, whose lines end so. */
static void prepare(int meta) {
  struct termios t;
  int fd = fileno(rl_instream);
  rl_prep_terminal(meta);
  if (tcgetattr(fd, &t) != 0) return;
  t.c_cc[VMIN] = t.c_cc[VTIME] = 0;
  t.c_iflag |= ICRNL;
  tcsetattr(fd, TCSADRAIN, &t);
}

/* readline ends the row itself after Ctrl-D where pastes are marked, and then of every further line; who leaves does it
 * everywhere. */
static void give_back(void) {
  rl_eof_found = 0;
  rl_deprep_terminal();
}

static void prepare_terminal(void) {
  if (rl_prep_term_function) (*rl_prep_term_function)(1);
}

static void restore_terminal(void) {
  if (rl_deprep_term_function) (*rl_deprep_term_function)();
}

static void heed_signals(void) {
  if (leaving) {
    int number = leaving;
    leaving = 0;
    restore_terminal();
    unwatch();
    raise(number); /* comes back from a stop, or where the program has a handler */
    watch();
    resumed = 1;
  }
  if (resumed) { /* the shell had the terminal meanwhile */
    resumed = 0;
    prepare_terminal();
    rl_reset_screen_size();
    block_moved();
    rl_forced_update_display();
  }
  if (resized) {
    resized = 0;
    if (block_used()) block_resized();
    rl_resize_terminal();
  }
}

/* ---- characters ------------------------------------------------------------------------------- */

enum { NO_KEY = -2 };
static int ahead = NO_KEY; /* read, but not yet asked for; may be EOF */

static char peeked[256]; /* behind the end of the last line: read, to see how the next one begins */
static size_t peeked_count, peeked_at;

static bool may_be_empty; /* a read that gives nothing is no end: it is a terminal, and it is there */

static bool key_waits(int ms) {
  struct pollfd p = {.fd = fileno(rl_instream), .events = POLLIN};
  if (ahead != NO_KEY || peeked_at < peeked_count) return true;
  int n = poll(&p, 1, ms);
  if (n > 0) may_be_empty = !(p.revents & (POLLHUP | POLLERR | POLLNVAL)) && isatty(p.fd);
  return n > 0 || (n < 0 && errno != EINTR);
}

int line_width(void) {
  enum { USUAL = 80 };
  int height, width = 0;
  rl_get_screen_size(&height, &width);
  return width > 0 ? width : USUAL;
}

bool line_keys_wait(void) { return key_waits(0); }

static bool wait_for_key(void) {
  enum { LOOK_MS = 500 }; /* a signal may come between the look at it and the wait */
  return key_waits(LOOK_MS);
}

/* One that waits; NO_KEY: a signal came, or it was none. */
static int read_key(void) {
  unsigned char c;
  ssize_t n = read(fileno(rl_instream), &c, 1);
  if (n == 1) return c;
  if (n == 0) return may_be_empty ? NO_KEY : EOF;
  return errno == EINTR || errno == EAGAIN ? NO_KEY : EOF;
}

static int take_key(void) { return peeked_at < peeked_count ? (unsigned char)peeked[peeked_at++] : read_key(); }

enum { SEARCH_ENDS = 30 }; /* Ctrl-^ */

/* readline 8.2 crashes when what ends a search is the beginning of a sequence that is bound to nothing, as an
 * unknown function key. So a search is ended first, and the sequence then read outside of it. */
static int key_of_search(int c) {
  enum { ESCAPE = 27, BLANK = 32, MORE_MS = 100 };
  bool begins = c >= 0 && c < BLANK && rl_get_keymap()[c].type == ISKMAP;
  if (!begins || !RL_ISSTATE(RL_STATE_ISEARCH)) return c;
  if (c != ESCAPE || key_waits(MORE_MS)) ahead = c;
  return SEARCH_ENDS;
}

static bool left; /* this interrupt was answered with the character that leaves a question or a search */

/* A marked paste that an interrupt or the end of the input cuts off is given its end mark all the same: without one
 * readline 8.2 takes its text without an end. */
static const char paste_end[] = "\033[201~";
static size_t paste_ended; /* so many characters of the mark were given */

static int next_of_paste_end(void) { return paste_end[paste_ended] ? paste_end[paste_ended++] : EOF; }

static bool in_paste(void) { return rl_executing_keyseq && strcmp(rl_executing_keyseq, "\033[200~") == 0; }

/* What readline asks for inside a question, a search or a marked paste. An interrupt is answered with the character
 * that leaves the first two; who goes on asking is in a paste. */
static int next_char(FILE *in) {
  (void)in;
  for (;;) {
    heed_signals();
    if (interrupt_pending()) {
      int answer = left ? next_of_paste_end() : '\a';
      left = true;
      return answer;
    }
    if (block_used()) block_catch_up();
    if (!wait_for_key()) continue;
    int c = ahead != NO_KEY ? ahead : take_key();
    ahead = NO_KEY;
    if (c == EOF && in_paste() && paste_end[paste_ended]) {
      ahead = EOF;
      return next_of_paste_end();
    }
    if (c != NO_KEY) return key_of_search(c);
  }
}

/* ---- the tab key ------------------------------------------------------------------------------ */

/* In front of a line it indents; else names are completed, and a second press shows what is possible. A tab with other
 * keys right behind it comes from a paste, and is a tab. */
static int on_tab(int count, int key) {
  int at = rl_point;
  while (at > 0 && (rl_line_buffer[at - 1] == ' ' || rl_line_buffer[at - 1] == '\t')) at--;
  bool in_front = at == 0 || rl_line_buffer[at - 1] == '\n';
  if (ahead == NO_KEY && key_waits(0)) ahead = take_key();
  bool pasted = ahead != NO_KEY && ahead != EOF && (in_front || ahead != '\t');
  if (pasted) return rl_insert(count, '\t');
  if (in_front) return rl_insert_text("  "), 0;
  if (block_used()) return block_complete(), 0;
  if (rl_last_func == on_tab) rl_last_func = rl_complete;
  return rl_complete(count, key);
}

/* ---- lines that go on with the one above ------------------------------------------------------------ */

/* Character number *at of what waits, as in a paste; false: there are no more, or there is no room. It stays for the
 * next line. */
static bool peek(size_t *at, char *c) {
  enum { PASTED_MS = 10 };
  if (*at < peeked_count) return *c = peeked[(*at)++], true;
  if (ahead != NO_KEY || peeked_count == sizeof peeked || interrupt_pending()) return false;
  struct pollfd p = {.fd = fileno(rl_instream), .events = POLLIN};
  if (poll(&p, 1, PASTED_MS) <= 0 || !(p.revents & POLLIN)) return false;
  int key = read_key();
  if (key == EOF && !isatty(p.fd)) ahead = EOF;
  if (key < 0) return false;
  *c = peeked[peeked_count++] = (char)key;
  *at = peeked_count;
  return true;
}

static char next_word[8]; /* the line that waits begins with it, and no statement does; "": there is none such */

/* Blanks, empty lines and comments lie between. */
static void look_at_next(void) {
  static const char *const words[] = {"else", "catch", "and", "or", "in", "by"}, operators[] = "|.*/%@=!<>&^";
  char c, word[sizeof next_word];
  size_t n = 0, at = 0;
  next_word[0] = 0;
  memmove(peeked, peeked + peeked_at, peeked_count - peeked_at);
  peeked_count -= peeked_at;
  peeked_at = 0;
  bool any = peek(&at, &c);
  while (any && (c == '#' || strchr(" \t\r\n", c))) {
    if (c == '#')
      while ((any = peek(&at, &c)) && c != '\n' && c != '\r') continue;
    if (any) any = peek(&at, &c);
  }
  for (; any && c && strchr(operators, c) && n < 2; any = peek(&at, &c)) word[n++] = c;
  if (n) {
    word[n] = 0;
    strcpy(next_word, word);
    return;
  }
  while (any && c >= 'a' && c <= 'z' && n + 1 < sizeof word) {
    word[n++] = c;
    any = peek(&at, &c);
  }
  if (any && ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
              (unsigned char)c >= 0x80))
    return;
  word[n] = 0;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(word, words[i]) == 0) strcpy(next_word, word);
}

const char *line_next_word(void) { return next_word; }

static int typed(void) {
  if (ahead >= 0) {
    int c = ahead;
    ahead = NO_KEY;
    return c;
  }
  return peeked_at < peeked_count ? (unsigned char)peeked[peeked_at++] : -1;
}

ptrdiff_t line_input(void *context, char *to, size_t room) {
  size_t n = 0;
  (void)context;
  for (int c = 0; n < room && c != '\n' && (c = typed()) >= 0;) to[n++] = (char)c;
  return n ? (ptrdiff_t)n : -1;
}

/* ---- lines ------------------------------------------------------------------------------------ */

static char *taken;
static bool done;

static void on_line(char *line) {
  taken = line;
  done = true;
  if (line && block_used()) block_close(line);
  look_at_next();
  rl_callback_handler_remove();
}

/* Texts are UTF-8 whatever the environment says; numbers keep their point. */
static void choose_locale(void) {
  if (setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0) return;
  if (!setlocale(LC_CTYPE, "C.UTF-8")) (void)setlocale(LC_CTYPE, "en_US.UTF-8");
}

/* The end of a marked paste whose beginning was dropped by Ctrl-C. */
static int on_paste_end(int count, int key) { return (void)count, (void)key, 0; }

void line_begin(void) {
  choose_locale();
  rl_readline_name = "weft";
  rl_catch_signals = 0;
  rl_catch_sigwinch = 0;
  rl_getc_function = next_char;
  rl_prep_term_function = prepare;
  rl_deprep_term_function = give_back;
  rl_add_defun("weft-tab", on_tab, '\t');
  rl_variable_bind("isearch-terminators", "\036"); /* SEARCH_ENDS; not the end of a line, which runs what was found */
  complete_begin();
  (void)block_begin();
  rl_initialize();
  block_start();
  rl_bind_keyseq_if_unbound("\\e[201~", on_paste_end);
}

static void drop(void) {
  ahead = NO_KEY;
  peeked_count = peeked_at = 0;
  rl_free_line_state();
  rl_callback_sigcleanup();
  rl_point = rl_end;
  if (block_used()) {
    block_drop();
  } else {
    rl_redisplay();
    fputs("^C", rl_outstream);
    rl_crlf();
    fflush(rl_outstream);
  }
  rl_callback_handler_remove();
  rl_replace_line("", 1);
}

LineEnd line_read(const char *prompt, bool lone, char **line) {
  *line = NULL;
  taken = NULL;
  done = false;
  bool dropped = false;
  left = false;
  paste_ended = 0;
  out_fresh_line();
  out_flush();
  watch();
  rl_reset_screen_size();
  block_open(prompt, lone);
  rl_callback_handler_install(prompt, on_line);
  while (!done && !dropped) {
    heed_signals();
    if (!interrupt_pending() && wait_for_key()) rl_callback_read_char();
    dropped = !done && interrupt_pending();
  }
  if (dropped) drop();
  unwatch();
  *line = taken;
  return dropped ? LINE_DROPPED : !taken ? LINE_OVER : block_given_up() ? LINE_GIVEN_UP : LINE_WHOLE;
}
