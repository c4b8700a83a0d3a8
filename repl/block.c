/* block.c — an input of several lines as one block (see block.h). readline keeps the text and the keys; what is on the
 * screen is ours: each change is drawn whole, from the row where the prompt stands. */
#define _GNU_SOURCE /* wcwidth */
#include "repl/block.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include <readline/readline.h>
#include <readline/tilde.h>

#include "repl/colours.h"
#include "repl/line.h"

static struct {
  WeftVM *vm;
  const char *prompt;
  bool used, coloured, lone, given_up;
  bool stale; /* a change was not drawn, since more keys waited */
  int row; /* of the block where the cursor stands */
} block;

static const char more[] = "... ";

/* ---- what is written ------------------------------------------------------------------------------------ */

static struct {
  char *data;
  size_t len, cap;
  size_t *rows; /* where each row begins */
  int row_count, row_cap;
} out;

static void put(const char *s, size_t n) {
  if (out.len + n > out.cap) {
    size_t cap = 2 * out.cap + n + 256;
    char *data = realloc(out.data, cap);
    if (!data) return;
    out.data = data;
    out.cap = cap;
  }
  memcpy(out.data + out.len, s, n);
  out.len += n;
}

static void puts_out(const char *s) { put(s, strlen(s)); }

static void begin_row(void) {
  if (out.row_count == out.row_cap) {
    int cap = 2 * out.row_cap + 16;
    size_t *rows = realloc(out.rows, sizeof *rows * (size_t)cap);
    if (!rows) return;
    out.rows = rows;
    out.row_cap = cap;
  }
  out.rows[out.row_count++] = out.len;
}

/* ---- layout ----------------------------------------------------------------------------------------------- */

typedef struct Place {
  int row, column;
} Place;

typedef struct Layout {
  int width;
  Place at;
  int colour; /* what was put last; rows begin without one */
} Layout;

static void colour(Layout *l, int c) {
  if (!block.coloured || c == l->colour) return;
  puts_out(colour_code(c));
  l->colour = c;
}

static void next_row(Layout *l) {
  if (l->colour != COLOUR_NONE) colour(l, COLOUR_NONE);
  l->at.row++;
  l->at.column = 0;
  begin_row();
}

/* `columns` of the screen, which stay together. */
static void put_cells(Layout *l, const char *s, size_t n, int columns, int c) {
  if (l->at.column + columns > l->width) next_row(l);
  colour(l, c);
  put(s, n);
  l->at.column += columns;
}

/* One character of s, n bytes left: how many it has. */
static size_t put_character(Layout *l, const char *s, size_t n, int c) {
  enum { TAB_STOP = 8 };
  unsigned char first = (unsigned char)*s;
  if (first == '\t') {
    int columns = TAB_STOP - l->at.column % TAB_STOP;
    for (int i = 0; i < columns; i++) put_cells(l, " ", 1, 1, c);
    return 1;
  }
  if (first < ' ' || first == 127) {
    char shown[2] = {'^', (char)(first ^ 64)};
    put_cells(l, shown, 2, 2, c);
    return 1;
  }
  wchar_t wide;
  mbstate_t state = {0};
  size_t len = first < 0x80 ? 1 : mbrtowc(&wide, s, n, &state);
  if (first >= 0x80 && (len == 0 || len > n)) {
    put_cells(l, "?", 1, 1, c);
    return 1;
  }
  int columns = first < 0x80 ? 1 : wcwidth(wide);
  put_cells(l, s, len, columns < 0 ? 1 : columns, c);
  return len;
}

/* The bracket at the cursor or in front of it, and its partner; -1: there is none. */
static void find_partner(const char *s, const unsigned char *paint, int len, int point, int *one, int *other) {
  static const char opens[] = "([{", closes[] = ")]}";
  *one = *other = -1;
  for (int at = point; at >= point - 1; at--) {
    if (at < 0 || at >= len || paint[at] != WEFT_PAINT_BRACKET) continue;
    bool forward = strchr(opens, s[at]) != NULL;
    int depth = 0;
    for (int i = at; i >= 0 && i < len; i += forward ? 1 : -1) {
      if (paint[i] != WEFT_PAINT_BRACKET) continue;
      bool deeper = strchr(forward ? opens : closes, s[i]) != NULL;
      depth += deeper ? 1 : -1;
      if (depth) continue;
      *one = at;
      *other = i;
      return;
    }
  }
}

/* Fills `out`; gives the end. *cursor: where byte `point` stands. */
static Place lay_out(const char *prompt, const char *text, int point, bool matched, Place *cursor) {
  int height, width, len = (int)strlen(text), one = -1, other = -1;
  rl_get_screen_size(&height, &width);
  Layout l = {.width = width < 8 ? 8 : width, .colour = COLOUR_NONE};
  unsigned char *paint = malloc((size_t)len + 1);
  if (paint) (void)weft_paint(text, (size_t)len, paint);
  if (paint && matched) find_partner(text, paint, len, point, &one, &other);
  out.len = 0;
  out.row_count = 0;
  begin_row();
  for (const char *p = prompt; *p;) {
    if (*p == RL_PROMPT_START_IGNORE || *p == RL_PROMPT_END_IGNORE) p++;
    else p += put_character(&l, p, strlen(p), COLOUR_PROMPT);
  }
  *cursor = l.at;
  for (int i = 0; i < len;) {
    if (i == point) *cursor = l.at;
    if (text[i] == '\n') {
      next_row(&l);
      for (const char *m = more; *m; m++) put_cells(&l, m, 1, 1, COLOUR_PROMPT);
      i++;
      continue;
    }
    int c = i == one || i == other ? COLOUR_MATCH : COLOUR_PAINT + (paint ? paint[i] : WEFT_PAINT_PLAIN);
    if (c == COLOUR_PAINT + WEFT_PAINT_PLAIN || c == COLOUR_PAINT + WEFT_PAINT_BRACKET) c = COLOUR_NONE;
    i += (int)put_character(&l, text + i, (size_t)(len - i), c);
  }
  free(paint);
  if (l.at.column >= l.width) next_row(&l);
  else colour(&l, COLOUR_NONE);
  if (point >= len) *cursor = l.at;
  if (cursor->column >= l.width) *cursor = (Place){cursor->row + 1, 0};
  return l.at;
}

/* ---- the screen -------------------------------------------------------------------------------------------- */

static void move_up(FILE *to, int rows) {
  if (rows > 0) fprintf(to, "\033[%dA", rows);
}

/* `edited`: as high as the window at most, around the cursor; else all of it, as it stays above what follows. */
static void draw(const char *text, int point, bool edited) {
  block.stale = false;
  int height, width;
  Place cursor;
  rl_get_screen_size(&height, &width);
  Place end = lay_out(rl_display_prompt && *rl_display_prompt ? rl_display_prompt : block.prompt, text, point, edited,
                      &cursor);
  int rows = out.row_count, top = 0;
  if (edited && rows > height && height > 1) {
    top = cursor.row - height / 2;
    if (top > rows - height) top = rows - height;
    if (top < 0) top = 0;
    rows = height;
  }
  FILE *to = rl_outstream;
  move_up(to, block.row);
  for (int i = 0; i < rows; i++) {
    size_t from = out.rows[top + i], till = top + i + 1 < out.row_count ? out.rows[top + i + 1] : out.len;
    fputs(i ? "\r\n\033[K" : "\r\033[K", to);
    fwrite(out.data + from, 1, till - from, to);
  }
  if (top + rows == out.row_count && end.column < width) fputs("\033[J", to);
  move_up(to, top + rows - 1 - cursor.row);
  fputc('\r', to);
  if (cursor.column > 0) fprintf(to, "\033[%dC", cursor.column);
  fflush(to);
  block.row = cursor.row - top;
}

/* readline's redisplay. While more keys wait, the last of them draws. */
static void redisplay(void) {
  block.stale = line_keys_wait();
  if (!block.stale) draw(rl_line_buffer, rl_point, true);
}

void block_catch_up(void) {
  if (block.stale && !line_keys_wait()) redisplay();
}

void block_open(const char *prompt, bool lone) {
  block.prompt = prompt;
  block.lone = lone;
  block.row = 0;
  block.given_up = false;
}

static void end_row(void) {
  fputs("\r\n", rl_outstream);
  fflush(rl_outstream);
  block.row = 0;
}

void block_close(const char *text) {
  draw(text, (int)strlen(text), false);
  end_row();
}

void block_drop(void) {
  draw(rl_line_buffer, rl_end, false);
  fputs("^C", rl_outstream);
  end_row();
}

void block_moved(void) { block.row = 0; }

void block_resized(void) {
  Place cursor;
  rl_reset_screen_size();
  (void)lay_out(block.prompt, rl_line_buffer, rl_point, false, &cursor);
  block.row = cursor.row;
}

bool block_given_up(void) {
  bool up = block.given_up;
  block.given_up = false;
  return up;
}

bool block_used(void) { return block.used; }
void block_in(WeftVM *vm) { block.vm = vm; }

/* ---- lines of the block -------------------------------------------------------------------------------------- */

static int line_start(int at) {
  while (at > 0 && rl_line_buffer[at - 1] != '\n') at--;
  return at;
}

static int line_end(int at) {
  while (at < rl_end && rl_line_buffer[at] != '\n') at++;
  return at;
}

static int blanks_at(int at) {
  int n = 0;
  while (at + n < rl_end && rl_line_buffer[at + n] == ' ') n++;
  return n;
}

static bool is_blank_line(int from, int to) {
  while (from < to && (rl_line_buffer[from] == ' ' || rl_line_buffer[from] == '\t')) from++;
  return from == to;
}

static bool is_unfinished(void) {
  return block.vm && weft_input(block.vm, rl_line_buffer) == WEFT_INPUT_UNFINISHED;
}

/* How far the line behind `point` is indented: two more than the line of the bracket that is open there, as `weft fmt`
 * has it. -1: a text goes on, whose blanks count. */
static int wanted_indent(int point) {
  enum { DEEPEST = 256, STEP = 2 };
  int open[DEEPEST], depth = 0;
  unsigned char *paint = malloc((size_t)point + 1);
  if (!paint) return 0;
  bool inside = weft_paint(rl_line_buffer, (size_t)point, paint);
  for (int i = 0; i < point; i++) {
    if (paint[i] != WEFT_PAINT_BRACKET) continue;
    bool opens = strchr("([{", rl_line_buffer[i]) != NULL;
    if (opens && depth < DEEPEST) open[depth++] = i;
    else if (!opens && depth) depth--;
  }
  free(paint);
  if (inside) return -1;
  int from = line_start(depth ? open[depth - 1] : point);
  return blanks_at(from) + (depth || is_unfinished() ? STEP : 0);
}

static void insert_line(void) {
  char blanks[256];
  int from = line_start(rl_point), indent = wanted_indent(rl_point);
  rl_begin_undo_group();
  if (indent >= 0 && is_blank_line(from, rl_point) && rl_point == line_end(rl_point)) {
    rl_delete_text(from, rl_point); /* an empty line keeps no blanks */
    rl_point = from;
  }
  rl_insert_text("\n");
  if (indent > (int)sizeof blanks - 1) indent = (int)sizeof blanks - 1;
  if (indent > 0) {
    memset(blanks, ' ', (size_t)indent);
    blanks[indent] = 0;
    rl_insert_text(blanks);
  }
  rl_end_undo_group();
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

/* Runs what is whole. Pasted lines go one by one: they may be meant for the program. */
static int on_enter(int count, int key) {
  if (block.lone && !line_keys_wait() && is_unfinished()) {
    rl_point = line_end(rl_point);
    return insert_line(), 0;
  }
  return rl_newline(count, key);
}

static int on_new_line(int count, int key) {
  (void)count, (void)key;
  return insert_line(), 0;
}

static bool walking;   /* the last key went through the history */
static bool searching; /* it looks for what begins as the line did when the walk began */

static int on_up(int count, int key);
static int on_down(int count, int key);

static bool still_walking(void) { return walking && (rl_last_func == on_up || rl_last_func == on_down); }

static void move_to_line(int from, int column) {
  int end = line_end(from);
  rl_point = from;
  while (column-- > 0 && rl_point < end) {
    rl_point++;
    while (rl_point < end && ((unsigned char)rl_line_buffer[rl_point] & 0xC0) == 0x80) rl_point++;
  }
}

static int column_of_point(void) {
  int n = 0;
  for (int i = line_start(rl_point); i < rl_point; i++) n += ((unsigned char)rl_line_buffer[i] & 0xC0) != 0x80;
  return n;
}

/* readline goes on with a search as long as its own functions follow each other. */
static int search_history(int count, int key, bool again, bool back) {
  if (again) rl_last_func = rl_history_search_backward;
  int result = back ? rl_history_search_backward(count, key) : rl_history_search_forward(count, key);
  rl_point = rl_end;
  return result;
}

static int on_up(int count, int key) {
  int from = line_start(rl_point);
  bool again = still_walking();
  walking = again || from == 0;
  if (!again) searching = walking && rl_point == rl_end && rl_end > 0;
  if (walking && searching) return search_history(count, key, again, true);
  if (walking) return rl_get_previous_history(count, key);
  int column = column_of_point();
  move_to_line(line_start(from - 1), column);
  return 0;
}

static int on_down(int count, int key) {
  int end = line_end(rl_point);
  bool again = still_walking();
  walking = again || end == rl_end;
  if (walking && again && searching) return search_history(count, key, true, false);
  if (walking) return rl_get_next_history(count, key);
  int column = column_of_point();
  move_to_line(end + 1, column);
  return 0;
}

static int on_kill_back(int count, int key) {
  (void)count, (void)key;
  int from = line_start(rl_point);
  if (from == rl_point && from > 0) from--; /* at its beginning: the end of the line above */
  rl_kill_text(from, rl_point);
  return rl_point = from, 0;
}

static int on_kill(int count, int key) {
  (void)count, (void)key;
  int end = line_end(rl_point);
  rl_kill_text(rl_point, end == rl_point && end < rl_end ? end + 1 : end);
  return 0;
}

static int on_home(int count, int key) {
  (void)count, (void)key;
  return rl_point = line_start(rl_point), 0;
}

static int on_end(int count, int key) {
  (void)count, (void)key;
  return rl_point = line_end(rl_point), 0;
}

/* At the end of an input of several lines: drops it. */
static int on_delete(int count, int key) {
  int from = line_start(rl_point);
  if (rl_point < rl_end || from == 0) return rl_delete(count, key);
  block.given_up = true;
  return rl_newline(count, key);
}

/* A bracket that closes stands two blanks less deep when it begins its line. */
static int on_close(int count, int key) {
  enum { STEP = 2 };
  int from = line_start(rl_point);
  if (from > 0 && rl_point - from >= STEP && is_blank_line(from, rl_point)) {
    rl_delete_text(rl_point - STEP, rl_point);
    rl_point -= STEP;
  }
  return rl_insert(count, key);
}

static int on_clear(int count, int key) {
  (void)count, (void)key;
  fputs("\033[H\033[2J", rl_outstream);
  block.row = 0;
  return 0;
}

/* ---- the tab key ----------------------------------------------------------------------------------------------- */

static void replace_word(size_t from, const char *word, size_t len, const char *behind) {
  char *text = malloc(len + strlen(behind) + 1);
  if (!text) return;
  memcpy(text, word, len);
  strcpy(text + len, behind);
  rl_begin_undo_group();
  rl_delete_text((int)from, rl_point);
  rl_point = (int)from;
  rl_insert_text(text);
  rl_end_undo_group();
  free(text);
}

static size_t same_start(const char *a, size_t len, const char *b) {
  size_t n = 0;
  while (n < len && a[n] == b[n]) n++;
  while (n && ((unsigned char)a[n] & 0xC0) == 0x80) n--;
  return n;
}

/* Bytes of s that take at most `room` columns. */
static size_t fitting(const char *s, int room, int *columns) {
  size_t at = 0, n = strcspn(s, "\n");
  *columns = 0;
  while (at < n) {
    wchar_t wide;
    mbstate_t state = {0};
    size_t len = mbrtowc(&wide, s + at, n - at, &state);
    int w = len && len <= n - at ? wcwidth(wide) : -1;
    if (w < 0 || *columns + w > room) break;
    *columns += w;
    at += len;
  }
  return at;
}

/* Words with their notes, a line each; files with none. */
static void show_words(const char *const *words, const char *const *notes, size_t count) {
  enum { NAME_MOST = 28, LEAST = 6 };
  int height, width, widest = 0, have;
  Place cursor;
  rl_get_screen_size(&height, &width);
  Place end = lay_out(block.prompt, rl_line_buffer, rl_point, false, &cursor);
  size_t most = height > 2 * LEAST ? (size_t)height / 2 : LEAST;
  FILE *to = rl_outstream;
  for (size_t i = 0; i < count && i < most; i++) {
    (void)fitting(words[i], width - 3, &have);
    if (have > widest && have <= NAME_MOST) widest = have;
  }
  for (int i = cursor.row; i < end.row; i++) fputs("\r\n", to);
  fputs("\r\n\033[J", to);
  for (size_t i = 0; i < count && i < most; i++) {
    size_t n = fitting(words[i], width - 3, &have);
    fprintf(to, "  %.*s", (int)n, words[i]);
    int room = width - 1 - 2 - 2 - (have > widest ? have : widest);
    if (notes && *notes[i] && room > 0) {
      int columns;
      size_t m = fitting(notes[i], room, &columns);
      fprintf(to, "%*s%s%.*s%s", 2 + (widest > have ? widest - have : 0), "",
              block.coloured ? colour_code(COLOUR_DIM) : "", (int)m, notes[i],
              block.coloured ? colour_code(COLOUR_NONE) : "");
    }
    fputs("\r\n", to);
  }
  if (count > most) fprintf(to, "  … %zu more\r\n", count - most);
  fflush(to);
  block.row = 0;
  draw(rl_line_buffer, rl_point, true);
}

static void complete_file(size_t from, bool quoted) {
  char *word = strndup(rl_line_buffer + from, (size_t)rl_point - from);
  char **found = word ? rl_completion_matches(word, rl_filename_completion_function) : NULL;
  if (found) {
    size_t count = 0, len = strlen(found[0]);
    while (found[count + 1]) count++;
    bool one = count == 0;
    char *expanded = one ? tilde_expand(found[0]) : NULL;
    struct stat about;
    bool folder = expanded && stat(expanded, &about) == 0 && S_ISDIR(about.st_mode);
    if (one || len > strlen(word))
      replace_word(from, expanded ? expanded : found[0], strlen(expanded ? expanded : found[0]),
                   !one ? "" : folder ? "/" : quoted ? "\"" : "");
    else show_words((const char *const *)found + 1, NULL, count);
    free(expanded);
    for (size_t i = 0; found[i]; i++) free(found[i]);
    free(found);
  } else {
    rl_ding();
  }
  free(word);
}

void block_complete(void) {
  WeftCompletion offers = {.size = sizeof offers};
  (void)weft_complete(block.vm, rl_line_buffer, (size_t)rl_point, &offers);
  if (offers.files) {
    bool quoted = offers.from > 0 && rl_line_buffer[offers.from - 1] == '"';
    return complete_file(offers.from, quoted);
  }
  if (!offers.count) return (void)rl_ding();
  size_t typed = (size_t)rl_point - offers.from, len = strlen(offers.words[0]);
  for (size_t i = 1; i < offers.count; i++) len = same_start(offers.words[0], len, offers.words[i]);
  if (len > typed || (offers.count == 1 && offers.blank))
    replace_word(offers.from, offers.words[0], len, offers.count == 1 && offers.blank ? " " : "");
  else show_words(offers.words, offers.notes, offers.count);
}

/* ---- */

bool block_begin(void) {
  static const struct {
    const char *keys;
    rl_command_func_t *run;
  } sequences[] = {{"\\e[A", on_up}, {"\\eOA", on_up}, {"\\e[B", on_down}, {"\\eOB", on_down}, {"\\e[H", on_home},
                   {"\\eOH", on_home}, {"\\e[F", on_end}, {"\\eOF", on_end}, {"\\e\\r", on_new_line},
                   {"\\e\\n", on_new_line}};
  static const struct {
    int key;
    rl_command_func_t *run;
  } keys[] = {{'\r', on_enter}, {'\n', on_enter}, {1, on_home}, {5, on_end}, {4, on_delete}, {12, on_clear},
              {16, on_up}, {14, on_down}, {21, on_kill_back}, {11, on_kill}, {')', on_close},
              {']', on_close}, {'}', on_close}};
  const char *term = getenv("TERM");
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || strcmp(term, "dumb") == 0) return false;
  rl_reset_terminal(NULL);
  const char *up = rl_get_termcap("up");
  if (!up || up[0] != '\033' || up[1] != '[') return false;
  rl_variable_bind("bind-tty-special-chars", "off"); /* Ctrl-U among them */
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) rl_bind_key(keys[i].key, keys[i].run);
  for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
    rl_bind_keyseq(sequences[i].keys, sequences[i].run);
  block.used = true;
  block.coloured = colours_on(STDOUT_FILENO);
  return true;
}

void block_start(void) {
  if (block.used) rl_redisplay_function = redisplay;
}
