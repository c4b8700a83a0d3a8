/* scanner.c — tokens of Weft for tree-sitter that depend on what follows them.
 *
 * It keeps nothing between two tokens. In each place the grammar says which of these tokens may stand there: a newline
 * ends a statement only where one may end, so that inside (), [] and records newlines are blanks. */
#include "tree_sitter/parser.h"

#include <string.h>

/* In the order of `externals` in grammar.js. RECOVERY is valid only while an error is mended. */
enum { NEWLINE, LAMBDA_OPEN, CATCH_OPEN, RECOVERY };

static void next(TSLexer *l) { l->advance(l, false); }
static void skip(TSLexer *l) { l->advance(l, true); }

static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f'; }

static bool is_word_char(int32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c >= 0x80;
}

static void next_line(TSLexer *l) {
  while (!l->eof(l) && l->lookahead != '\n') next(l);
}

/* ---- newlines ------------------------------------------------------------------------------- */

/* A word that goes on with the statement of the line before. */
static bool at_joining_word(TSLexer *l) {
  static const char *const words[] = {"and", "or", "in", "by", "else", "catch"};
  char word[8] = "";
  for (size_t n = 0; is_word_char(l->lookahead); n++, next(l)) {
    if (n + 1 == sizeof word || l->lookahead >= 0x80) return false;
    word[n] = (char)l->lookahead;
  }
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(word, words[i]) == 0) return true;
  return false;
}

/* The token at the beginning of this line can begin a statement. */
static bool begins_statement(TSLexer *l) {
  int32_t c = l->lookahead;
  if (l->eof(l) || strchr(".*/%@&|^<>=!,:;)]}", c < 0x80 ? (char)c : 'a')) return false;
  if (c == '+' || c == '-') { /* a sign; `+=` and `-=` go on */
    next(l);
    return l->lookahead != '=';
  }
  return !is_word_char(c) || !at_joining_word(l);
}

/* ---- brackets ------------------------------------------------------------------------------- */

enum { DEPTH_MAX = 64 };

/* What is open: a bracket, by the character that closes it; or a text. */
typedef struct Open {
  char close;     /* 0: a text */
  bool formatted; /* a text with {…} inside */
  bool triple;    /* a text between """ */
} Open;

static bool at_quote(TSLexer *l, bool triple) {
  if (l->lookahead != '"') return false;
  next(l);
  if (!triple) return true;
  if (l->lookahead != '"') return false;
  next(l);
  if (l->lookahead != '"') return false;
  next(l);
  return true;
}

/* Reads a character or two of the text on top; false at an error. */
static bool read_text(TSLexer *l, Open *stack, int *depth) {
  Open *top = &stack[*depth - 1];
  int32_t c = l->lookahead;
  if (c == '"') {
    if (at_quote(l, top->triple)) --*depth;
    return true;
  }
  if (c == '\n' && !top->triple) return false;
  next(l);
  if (c == '\\' && !l->eof(l)) next(l);
  if (!top->formatted || (c != '{' && c != '}')) return true;
  if (l->lookahead == c) next(l); /* {{ or }}, a brace */
  else if (c == '{' && *depth < DEPTH_MAX) stack[(*depth)++] = (Open){.close = '}'};
  else return false;
  return true;
}

/* Reads a text's quotes. The empty text "" is read as a whole. */
static bool open_text(TSLexer *l, Open *stack, int *depth, bool formatted) {
  next(l);
  bool triple = false;
  if (l->lookahead == '"') {
    next(l);
    if (l->lookahead != '"') return true;
    next(l);
    triple = true;
  }
  if (*depth == DEPTH_MAX) return false;
  stack[(*depth)++] = (Open){.formatted = formatted, .triple = triple};
  return true;
}

/* Goes behind the bracket that closes the one just read. `plain`: only what a pattern holds stands in between. */
static bool skip_brackets(TSLexer *l, char close, bool plain) {
  Open stack[DEPTH_MAX];
  int depth = 0;
  stack[depth++] = (Open){.close = close};
  while (depth) {
    int32_t c = l->lookahead;
    if (l->eof(l)) return false;
    if (!stack[depth - 1].close) {
      if (!read_text(l, stack, &depth)) return false;
      continue;
    }
    if (is_word_char(c)) {
      int32_t last = c, count = 0;
      for (; is_word_char(l->lookahead); count++, next(l)) last = l->lookahead;
      if (l->lookahead == '"' && !open_text(l, stack, &depth, last == 'f' && count == 1)) return false;
    } else if (c == '#') {
      next_line(l);
    } else if (c == '"') {
      if (!open_text(l, stack, &depth, false)) return false;
    } else if (c == '(' || c == '[' || c == '{') {
      if (depth == DEPTH_MAX) return false;
      stack[depth++] = (Open){.close = c == '(' ? ')' : c == '[' ? ']' : '}'};
      next(l);
    } else if (c == ')' || c == ']' || c == '}') {
      if (c != stack[--depth].close) return false;
      next(l);
    } else if (plain && !is_blank(c) && c != '\n' && c != ',' && c != ':' && c != '.') {
      return false;
    } else {
      next(l);
    }
  }
  return true;
}

/* Goes to the next token; whether it is on a new line. */
static bool skip_blanks(TSLexer *l) {
  bool newline = false;
  for (; is_blank(l->lookahead) || l->lookahead == '\n' || l->lookahead == '#'; next(l)) {
    if (l->lookahead == '#') next_line(l);
    newline |= l->lookahead == '\n';
  }
  return newline;
}

/* ---- what tree-sitter calls ----------------------------------------------------------------- */

void *tree_sitter_weft_external_scanner_create(void) { return NULL; }
void tree_sitter_weft_external_scanner_destroy(void *payload) { (void)payload; }
unsigned tree_sitter_weft_external_scanner_serialize(void *payload, char *buffer) {
  (void)payload, (void)buffer;
  return 0;
}
void tree_sitter_weft_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  (void)payload, (void)buffer, (void)length;
}

bool tree_sitter_weft_external_scanner_scan(void *payload, TSLexer *l, const bool *valid) {
  (void)payload;
  if (valid[RECOVERY]) return false;
  l->mark_end(l); /* the newline is a token without characters */
  bool newline = false;
  for (; is_blank(l->lookahead) || l->lookahead == '\n'; skip(l)) newline |= l->lookahead == '\n';
  if (valid[NEWLINE] && (newline || l->lookahead == '#')) {
    newline |= skip_blanks(l);
    l->result_symbol = NEWLINE;
    return newline && begins_statement(l);
  }
  if (valid[LAMBDA_OPEN] && l->lookahead == '(') {
    next(l);
    l->mark_end(l);
    l->result_symbol = LAMBDA_OPEN;
    if (!skip_brackets(l, ')', false)) return false;
    skip_blanks(l);
    if (l->lookahead != '=') return false;
    next(l);
    return l->lookahead == '>';
  }
  if (valid[CATCH_OPEN] && l->lookahead == '{') {
    next(l);
    l->mark_end(l);
    l->result_symbol = CATCH_OPEN;
    if (!skip_brackets(l, '}', true)) return false;
    return !skip_blanks(l) && l->lookahead == '{';
  }
  return false;
}
