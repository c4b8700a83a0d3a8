/* lexer.c — source text to tokens (see lexer.h). */
#include "parser/lexer.h"

#include <stdio.h>
#include <string.h>

/* ---- tables ------------------------------------------------------------------------------- */

enum { CLASS_special, CLASS_word, CLASS_mark, CLASS_assign, CLASS_infix };

static const struct {
  const char *text;
  u8 len;
  u8 class;
} tokens[TOK_COUNT] = {
#define TOKEN(name, text, class, power, op) {text, sizeof text - 1, CLASS_##class},
#include "parser/tokens.def"
#undef TOKEN
};

enum { FIRST_WORD = TOK_LET, LAST_WORD = TOK_NIL, FIRST_MARK = TOK_ELLIPSIS };
_Static_assert(TOK_NIL + 1 == TOK_ELLIPSIS, "words stand together, marks follow to the end");

const char *token_text(u32 kind) { return kind < TOK_COUNT ? tokens[kind].text : "?"; }
bool token_is_word(u32 kind) { return kind >= FIRST_WORD && kind <= LAST_WORD; }

/* ---- characters --------------------------------------------------------------------------- */

u32 utf8_decode(const char *s, u32 len, u32 at, u32 *code) {
  const u8 *p = (const u8 *)s + at;
  u32 left = len - at;
  if (left == 0) return 0;
  if (p[0] < 0x80) return *code = p[0], 1;
  u32 n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
  if (p[0] < 0xC2 || p[0] > 0xF4 || left < n) return 0;
  u32 c = p[0] & (0xFFu >> (n + 1));
  for (u32 i = 1; i < n; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
    c = c << 6 | (p[i] & 0x3Fu);
  }
  if (n == 3 && (c < 0x800 || (c >= 0xD800 && c <= 0xDFFF))) return 0;
  if (n == 4 && (c < 0x10000 || c > 0x10FFFF)) return 0;
  *code = c;
  return n;
}

u32 utf8_encode(u32 c, char *out) {
  if (c < 0x80) return out[0] = (char)c, 1;
  if (c < 0x800) {
    out[0] = (char)(0xC0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3F));
    return 2;
  }
  if (c < 0x10000) {
    out[0] = (char)(0xE0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 0x3F));
    out[2] = (char)(0x80 | (c & 0x3F));
    return 3;
  }
  out[0] = (char)(0xF0 | c >> 18);
  out[1] = (char)(0x80 | (c >> 12 & 0x3F));
  out[2] = (char)(0x80 | (c >> 6 & 0x3F));
  out[3] = (char)(0x80 | (c & 0x3F));
  return 4;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/* Letters beyond ASCII may stand in names: every code point but blanks, punctuation and symbols. */
static bool is_wide_letter(u32 c) {
  if (c < 0xC0) return c == 0xAA || c == 0xB5 || c == 0xBA;
  if (c == 0xD7 || c == 0xF7) return false;
  if (c >= 0x2000 && c <= 0x206F) return false; /* blanks, dashes, quotes */
  if (c >= 0x20A0 && c <= 0x20CF) return false; /* currencies */
  if (c >= 0x2190 && c <= 0x2BFF) return false; /* arrows, mathematical operators, boxes, dingbats */
  if (c >= 0x2E00 && c <= 0x2E7F) return false;
  if (c >= 0x3000 && c <= 0x3020) return false;
  if (c >= 0xD800 && c <= 0xF8FF) return false;
  if (c >= 0xFE00 && c <= 0xFE6F) return false;
  if (c >= 0xFF00 && c <= 0xFF20) return false;
  return c != 0xFEFF && c < 0x1F000;
}

/* Characters that editors and word processors put in place of ASCII, with what to write. */
static const char *lookalike(u32 c) {
  switch (c) {
  case 0x201C: case 0x201D: case 0x201E: case 0xAB: case 0xBB: case 0x2018: case 0x2019: return "\"";
  case 0x2212: case 0x2013: case 0x2014: return "-";
  case 0xD7: case 0xB7: case 0x22C5: return "*";
  case 0xF7: return "/";
  case 0x2264: return "<=";
  case 0x2265: return ">=";
  case 0x2260: return "!=";
  case 0x2192: case 0x21D2: return "=>";
  case 0x2026: return "...";
  case 0x2208: return "in";
  case 0x221E: return "inf";
  case 0xA0: case 0x2009: case 0x202F: case 0x3000: return " ";
  default: return NULL;
  }
}

/* ---- helpers ------------------------------------------------------------------------------ */

enum { FRAME_STRING, FRAME_EXPR, FRAME_SPEC };

void lexer_init(Lexer *l, const char *text, u32 len) {
  *l = (Lexer){.text = text, .len = len};
  if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) l->pos = 3;
}

/* One piece of text can be as long as the whole: each loop over bytes asks whether it goes on. */
static bool look(Lexer *l) {
  if (!toil(l->toil, TOIL_BYTE_STEPS)) l->pos = l->len;
  l->look = l->len - l->pos > TOIL_BYTES ? l->pos + TOIL_BYTES : UINT32_MAX;
  return l->pos < l->len;
}
static inline bool has_more(Lexer *l) { return l->pos < l->look ? l->pos < l->len : look(l); }

static char peek(const Lexer *l, u32 ahead) { return l->pos + ahead < l->len ? l->text[l->pos + ahead] : 0; }

static LexFrame *top(Lexer *l) { return l->frame_count ? &l->frames[l->frame_count - 1] : NULL; }

static u32 lexer_line_of(const Lexer *l, u32 offset) {
  u32 line = 1;
  for (u32 i = 0; i < offset; i++) {
    line += l->text[i] == '\n';
    if (i % TOIL_BYTES == TOIL_BYTES - 1 && !toil(l->toil, TOIL_BYTE_STEPS)) break;
  }
  return line;
}

/* Ends the token begun at t->start as an error. */
static void PRINTF_LIKE(3, 4) broken(Lexer *l, Token *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(l->message, sizeof l->message, fmt, ap);
  va_end(ap);
  t->kind = TOK_ERROR;
  t->len = l->pos - t->start;
}

static void finish(Lexer *l, Token *t, u32 kind) {
  t->kind = (u8)kind;
  t->len = l->pos - t->start;
}

static bool push_frame(Lexer *l, Token *t, u32 kind, bool triple, u32 start) {
  if (l->frame_count == LEX_MAX_FRAMES) {
    l->frame_count = 0;
    broken(l, t, "f-strings are nested too deeply");
    return false;
  }
  l->frames[l->frame_count++] = (LexFrame){.kind = (u8)kind, .triple = triple, .start = start};
  return true;
}

/* Drops frames down to and including the innermost string. */
static void drop_string(Lexer *l) {
  while (l->frame_count && l->frames[--l->frame_count].kind != FRAME_STRING) {}
}

static void skip_line(Lexer *l) {
  while (has_more(l)) {
    const u32 n = l->len - l->pos < TOIL_BYTES ? l->len - l->pos : TOIL_BYTES;
    const char *end = memchr(l->text + l->pos, '\n', n);
    l->pos = end ? (u32)(end - l->text) : l->pos + n;
    if (end) break;
  }
}

/* Advances over letters and digits of a name, ASCII or not. */
static void skip_name(Lexer *l) {
  while (has_more(l)) {
    char c = l->text[l->pos];
    u32 code, n;
    if (is_letter(c) || is_digit(c)) l->pos++;
    else if ((u8)c >= 0x80 && (n = utf8_decode(l->text, l->len, l->pos, &code)) && is_wide_letter(code)) l->pos += n;
    else break;
  }
}

/* ---- blanks and comments ------------------------------------------------------------------ */

/* Skips to the next token; true when it stopped at a comment that is to be given. Documentation is a run of
 * lines that begin with exactly two #; it counts when the token stands on the very next line. */
static bool skip_blanks(Lexer *l, Token *t) {
  u32 from = l->pos, doc = 0, lines = 0; /* lines: newlines since the last documentation line */
  bool line_start = true;
  for (u32 i = l->pos; i > 0 && l->text[i - 1] != '\n'; i--)
    if (l->text[i - 1] != ' ' && l->text[i - 1] != '\t') {
      line_start = false;
      break;
    }
  bool comment = false;
  while (has_more(l)) {
    char c = l->text[l->pos];
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      l->pos++;
    } else if (c == '\n') {
      l->pos++;
      t->flags |= TOKEN_NEWLINE;
      line_start = true;
      if (++lines > 1) doc = 0;
    } else if (c == '#') {
      if (l->comments) {
        comment = true;
        break;
      }
      if (line_start && peek(l, 1) == '#' && peek(l, 2) != '#') {
        if (!doc) doc = l->pos + 1;
        lines = 0;
      } else {
        doc = 0;
      }
      skip_line(l);
    } else {
      break;
    }
  }
  if (l->pos > from) t->flags |= TOKEN_SPACED;
  t->doc = doc;
  return comment;
}

/* ---- numbers ------------------------------------------------------------------------------ */

static bool is_base_digit(char c, u32 base) {
  if (base == 2) return c == '0' || c == '1';
  if (base == 10) return is_digit(c);
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Digits with single underscores between them. */
static bool lex_digits(Lexer *l, Token *t, u32 base) {
  while (has_more(l) && (is_base_digit(peek(l, 0), base) || peek(l, 0) == '_')) {
    if (peek(l, 0) == '_' && (!is_base_digit(peek(l, 1), base) || !is_base_digit(l->text[l->pos - 1], base))) {
      skip_name(l);
      broken(l, t, "'_' in a number must stand between two digits");
      return false;
    }
    l->pos++;
  }
  return true;
}

/* Called behind a number: a letter or a second point there is an error. */
static void end_number(Lexer *l, Token *t, u32 kind) {
  u32 code;
  char c = peek(l, 0);
  bool wide = (u8)c >= 0x80 && utf8_decode(l->text, l->len, l->pos, &code) && is_wide_letter(code);
  if (!is_letter(c) && !is_digit(c) && !wide) {
    finish(l, t, kind);
    return;
  }
  if (c == 'j' && !is_letter(peek(l, 1)) && !is_digit(peek(l, 1)) && (u8)peek(l, 1) < 0x80) {
    l->pos++;
    finish(l, t, TOK_FLOAT); /* an imaginary number */
    return;
  }
  u32 at = l->pos;
  skip_name(l);
  int n = (int)(at - t->start), m = (int)(l->pos - at);
  const char *number = l->text + t->start, *tail = l->text + at;
  if (n > 40) n = 40;
  if (m > 40) m = 40;
  if (l->pos - at <= 2 && (tail[0] == 'i' || tail[0] == 'J') && (m == 1 || tail[1] == 'm'))
    broken(l, t, "an imaginary number is written %.*sj", n, number);
  else if (m == 1 && strchr("fFlLuUdD", tail[0]))
    broken(l, t, "numbers have no suffix '%c'; a dtype is given by a call such as f32(%.*s)", tail[0], n, number);
  else if (m == 1 && (tail[0] == 'e' || tail[0] == 'E'))
    broken(l, t, "the exponent of %.*s%c has no digits", n, number, tail[0]);
  else
    broken(l, t, "a number cannot be followed by a letter; to multiply write %.*s * %.*s", n, number, m, tail);
}

static void lex_number(Lexer *l, Token *t) {
  char c = peek(l, 1);
  if (peek(l, 0) == '0' && (c == 'x' || c == 'X' || c == 'b' || c == 'B' || c == 'o' || c == 'O')) {
    u32 base = c == 'x' || c == 'X' ? 16 : 2;
    l->pos += 2;
    if (c == 'o' || c == 'O') {
      skip_name(l);
      broken(l, t, "there are no octal numbers; write it in hexadecimal (0x) or binary (0b)");
      return;
    }
    if (!is_base_digit(peek(l, 0), base)) {
      skip_name(l);
      broken(l, t, "expected a %s digit after '0%c'", base == 16 ? "hexadecimal" : "binary", c);
      return;
    }
    if (!lex_digits(l, t, base)) return;
    if (is_letter(peek(l, 0)) || is_digit(peek(l, 0))) {
      char bad = peek(l, 0);
      skip_name(l);
      broken(l, t, "'%c' is no %s digit", bad, base == 16 ? "hexadecimal" : "binary");
      return;
    }
    finish(l, t, TOK_INT);
    return;
  }
  u32 kind = TOK_INT;
  if (!lex_digits(l, t, 10)) return;
  int n = (int)(l->pos - t->start < 40 ? l->pos - t->start : 40);
  if (peek(l, 0) == '.' && is_digit(peek(l, 1))) {
    kind = TOK_FLOAT;
    l->pos++;
    if (!lex_digits(l, t, 10)) return;
  } else if (peek(l, 0) == '.') {
    char next = peek(l, 1);
    bool exponent = (next == 'e' || next == 'E') &&
                    (is_digit(peek(l, 2)) || ((peek(l, 2) == '-' || peek(l, 2) == '+') && is_digit(peek(l, 3))));
    bool member = next == '.' || is_letter(next) || (u8)next >= 0x80;
    bool operator = next && strchr("*/^%@+-", next);
    if (exponent || !member) {
      l->pos++;
      if (exponent) {
        u32 at = l->pos;
        l->pos += 2;
        skip_name(l);
        broken(l, t, "a number has a digit on both sides of its point: write %.*s.0%.*s", n, l->text + t->start,
               (int)(l->pos - at), l->text + at);
      } else {
        broken(l, t, "a number has a digit on both sides of its point: write %.*s.0%s", n, l->text + t->start,
               operator ? " (operators work by element, without a point)" : "");
      }
      return;
    }
  }
  char e = peek(l, 0), s = peek(l, 1);
  if (e == 'e' || e == 'E') {
    if (is_digit(s) || ((s == '+' || s == '-') && is_digit(peek(l, 2)))) {
      kind = TOK_FLOAT;
      l->pos += 2;
      if (!lex_digits(l, t, 10)) return;
    }
  }
  if (kind == TOK_FLOAT && peek(l, 0) == '.' && is_digit(peek(l, 1))) {
    while (has_more(l) && (is_digit(peek(l, 0)) || (peek(l, 0) == '.' && is_digit(peek(l, 1))))) l->pos++;
    broken(l, t, "a number has one point at most");
    return;
  }
  end_number(l, t, kind);
}

/* ---- text --------------------------------------------------------------------------------- */

static bool at_triple(const Lexer *l) { return peek(l, 0) == '"' && peek(l, 1) == '"' && peek(l, 2) == '"'; }

/* Inside the braces of an f-string a text that does not end on its line is rather the quote that was meant to
 * close the f-string. */
static void unclosed_text(Lexer *l, Token *t) {
  LexFrame *f = top(l);
  if (f && f->kind == FRAME_EXPR && !f->triple) {
    u32 line = lexer_line_of(l, f->start);
    drop_string(l);
    broken(l, t, "a '{' of the f-string in line %u is not closed by '}' (a brace itself is written '{{')", line);
  } else {
    broken(l, t, "this text is not closed by '\"' on its line (text of several lines stands between \"\"\")");
  }
}

static void lex_text(Lexer *l, Token *t) {
  if (at_triple(l)) {
    l->pos += 3;
    while (has_more(l) && !at_triple(l)) l->pos += l->text[l->pos] == '\\' && l->pos + 1 < l->len ? 2 : 1;
    if (l->pos >= l->len) {
      l->pos = l->len;
      l->incomplete = true;
      broken(l, t, "the text that begins in line %u is not closed by \"\"\"", lexer_line_of(l, t->start));
      return;
    }
    l->pos += 3;
    finish(l, t, TOK_TEXT);
    return;
  }
  l->pos++;
  for (;;) {
    const bool more = has_more(l);
    char c = peek(l, 0);
    if (!more || c == '\n') {
      unclosed_text(l, t);
      return;
    }
    if (c == '\\' && peek(l, 1) != '\n') l->pos++;
    if (l->pos < l->len) l->pos++;
    if (c == '"') break;
  }
  finish(l, t, TOK_TEXT);
}

static void open_fstring(Lexer *l, Token *t) {
  l->pos++;
  bool triple = at_triple(l);
  l->pos += triple ? 3 : 1;
  if (push_frame(l, t, FRAME_STRING, triple, t->start)) finish(l, t, TOK_FSTR_OPEN);
}

/* Text of an f-string or of a spec: up to a brace or the closing quote, or that token itself. */
static void lex_fstring(Lexer *l, Token *t, LexFrame *f) {
  bool spec = f->kind == FRAME_SPEC, triple = f->triple;
  u32 start = f->start;
  for (;;) {
    bool at_end = !has_more(l), nothing = l->pos == t->start;
    char c = peek(l, 0);
    if (at_end || (c == '\n' && !triple)) {
      if (!nothing) break;
      drop_string(l);
      l->incomplete = at_end && triple;
      broken(l, t, "the f-string that begins in line %u is not closed by %s", lexer_line_of(l, start),
             triple ? "\"\"\"" : "'\"'");
      return;
    }
    if (triple ? at_triple(l) : c == '"') {
      if (!nothing) break;
      l->pos += triple ? 3 : 1;
      drop_string(l);
      if (spec) broken(l, t, "a '{' of this f-string is not closed by '}'");
      else finish(l, t, TOK_FSTR_CLOSE);
      return;
    }
    if (c == '{') {
      if (!spec && peek(l, 1) == '{') {
        l->pos += 2;
        continue;
      }
      if (!nothing) break;
      l->pos++;
      if (push_frame(l, t, FRAME_EXPR, triple, start)) finish(l, t, TOK_FSTR_LBRACE);
      return;
    }
    if (c == '}') {
      if (!spec && peek(l, 1) == '}') {
        l->pos += 2;
        continue;
      }
      if (!nothing) break;
      l->pos++;
      if (spec) {
        l->frame_count -= 2; /* the spec and its expression */
        finish(l, t, TOK_FSTR_RBRACE);
      } else {
        broken(l, t, "a '}' by itself in an f-string is written '}}'");
      }
      return;
    }
    u32 escape = 0; /* length of \u{…}, whose braces are its own */
    if (c == '\\' && peek(l, 1) == 'u' && peek(l, 2) == '{')
      for (u32 i = 3; i < 12 && !escape && peek(l, i) != '"' && peek(l, i) != '\n'; i++)
        if (peek(l, i) == '}') escape = i + 1;
    l->pos += escape ? escape : c == '\\' && l->pos + 1 < l->len && peek(l, 1) != '\n' ? 2 : 1;
  }
  finish(l, t, TOK_FSTR_TEXT);
}

/* ---- names and marks ---------------------------------------------------------------------- */

static void lex_name(Lexer *l, Token *t) {
  skip_name(l);
  const char *s = l->text + t->start;
  u32 n = l->pos - t->start;
  finish(l, t, TOK_NAME);
  if (n < 2 || n > 8) return;
  for (u32 k = FIRST_WORD; k <= LAST_WORD; k++)
    if (tokens[k].len == n && memcmp(tokens[k].text, s, n) == 0) {
      t->kind = (u8)k;
      return;
    }
}

/* Operators of other languages, with what to write instead. Longest first. */
static const struct {
  const char *mark, *message;
} foreign_marks[] = {
    {"===", "'===' is written '=='"},
    {"!==", "'!==' is written '!='"},
    {"<>", "'<>' is written '!='"},
    {"~=", "'~=' is written '!='"},
    {"&&", "'&&' is written 'and'"},
    {"||", "'||' is written 'or'"},
    {":=", "':=' is no operator; a variable is declared by 'let x = …'"},
    {"->", "'->' is no operator; a function is written 'x => …' or 'fn f(x) { … }'"},
    {".*", "operators work by element: '.*' is written '*'"},
    {".+", "operators work by element: '.+' is written '+'"},
    {".-", "operators work by element: '.-' is written '-'"},
    {"./", "operators work by element: './' is written '/'"},
    {".^", "operators work by element: '.^' is written '**'"},
    {"/*", "'/*' begins no comment; every line of a comment begins with '#'"},
    {"?", "'?' is no operator; a choice is written 'if c { a } else { b }'"},
    {"\\", "'\\' is not needed: a line goes on after an operator or a comma, and inside ( ) and [ ]"},
    {"`", "'`' has no meaning; text is written \"…\""},
    {"$", "'$' has no meaning; a value is put into text by f\"… {x} …\""},
    {"!", "'!' is no operator; it is written 'not x'"},
};

static bool starts_with(const Lexer *l, const char *s) {
  if (l->pos == l->len || l->text[l->pos] != *s) return false;
  size_t n = strlen(s);
  return l->len - l->pos >= n && memcmp(l->text + l->pos, s, n) == 0;
}

static void lex_quote(Lexer *l, Token *t) {
  char before = t->start ? l->text[t->start - 1] : 0;
  char before2 = t->start > 1 ? l->text[t->start - 2] : 0;
  bool prefix = before && strchr("fFrRbB", before) && !is_letter(before2) && !is_digit(before2);
  bool postfix = !prefix && (is_letter(before) || is_digit(before) || before == ')' || before == ']');
  const u32 from = l->pos++;
  while (has_more(l) && l->text[l->pos] != '\n' && l->text[l->pos] != '\'') l->pos++;
  bool closed = peek(l, 0) == '\'';
  l->pos = closed ? l->pos + 1 : from + 1;
  int n = (int)(l->pos - t->start) - 2;
  if (closed && !postfix && n <= 40 && !memchr(l->text + t->start, '"', l->pos - t->start))
    broken(l, t, "text stands in double quotes: write \"%.*s\"", n, l->text + t->start + 1);
  else
    broken(l, t, postfix ? "text stands in double quotes; a transpose is written x.T"
                         : "text stands in double quotes: write \" instead of '");
}

static void lex_mark(Lexer *l, Token *t) {
  char c = peek(l, 0);
  if (c == '\'') {
    lex_quote(l, t);
    return;
  }
  LexFrame *f = top(l);
  if (f) { /* inside the braces of an f-string */
    if (c == '!' && strchr("rsa", peek(l, 1)) && (peek(l, 2) == '}' || peek(l, 2) == ':')) {
      l->pos += 2;
      broken(l, t, "f-strings have no '!%c'", l->text[l->pos - 1]);
      return;
    }
    if (c == '(' || c == '[' || c == '{') {
      f->depth++;
    } else if (f->depth > 0 && (c == ')' || c == ']' || c == '}')) {
      f->depth--;
    } else if (c == '}') {
      l->pos++;
      l->frame_count--;
      finish(l, t, TOK_FSTR_RBRACE);
      return;
    } else if (f->depth == 0 && c == ':') {
      l->pos++;
      if (push_frame(l, t, FRAME_SPEC, f->triple, f->start)) finish(l, t, TOK_FSTR_COLON);
      return;
    }
  }
  bool dots = c == '.' && peek(l, 1) == '.';
  if (c == '.' && is_digit(peek(l, 1))) {
    l->pos++;
    while (has_more(l) && is_digit(peek(l, 0))) l->pos++;
    int n = (int)(l->pos - t->start - 1);
    char before = t->start ? l->text[t->start - 1] : 0;
    if (is_letter(before) || is_digit(before) || before == ')' || before == ']')
      broken(l, t, "a name follows '.'; an item is written [%.*s]", n > 40 ? 40 : n, l->text + t->start + 1);
    else
      broken(l, t, "a number has a digit on both sides of its point: write 0.%.*s", n > 40 ? 40 : n,
             l->text + t->start + 1);
    return;
  }
  if (!dots && !starts_with(l, "!=="))
    for (u32 i = 0; i < COUNT_OF(foreign_marks); i++)
      if (starts_with(l, foreign_marks[i].mark) && !(c == '!' && foreign_marks[i].mark[1] == 0 && peek(l, 1) == '=')) {
        l->pos += (u32)strlen(foreign_marks[i].mark);
        broken(l, t, "%s", foreign_marks[i].message);
        return;
      }
  if (starts_with(l, "!==")) {
    l->pos += 3;
    broken(l, t, "'!==' is written '!='");
    return;
  }
  for (u32 k = FIRST_MARK; k < TOK_COUNT; k++)
    if (tokens[k].text[0] == c && starts_with(l, tokens[k].text)) {
      l->pos += tokens[k].len;
      finish(l, t, k);
      return;
    }
  u32 code = 0, n = utf8_decode(l->text, l->len, l->pos, &code);
  l->pos += n ? n : 1;
  const char *ascii = n ? lookalike(code) : NULL;
  if (!n) broken(l, t, "byte 0x%02x is not UTF-8", (u8)c);
  else if (ascii && *ascii == ' ') broken(l, t, "U+%04X is no ordinary blank; write ' '", code);
  else if (ascii)
    broken(l, t, "'%.*s' is written %s%s%s", (int)n, l->text + t->start, *ascii == '"' ? "" : "'", ascii,
           *ascii == '"' ? "" : "'");
  else if (code < 32 || code == 127) broken(l, t, "control character U+%04X", code);
  else broken(l, t, "'%.*s' (U+%04X) has no meaning here", (int)n, l->text + t->start, code);
}

/* ---- the next token ----------------------------------------------------------------------- */

void lexer_next(Lexer *l, Token *t) {
  *t = (Token){0};
  LexFrame *f = top(l);
  if (f && f->kind != FRAME_EXPR) {
    t->start = l->pos;
    lex_fstring(l, t, f);
    return;
  }
  bool comment = skip_blanks(l, t);
  t->start = l->pos;
  if (comment) {
    skip_line(l);
    finish(l, t, TOK_COMMENT);
    return;
  }
  if (l->pos >= l->len) {
    finish(l, t, TOK_EOF);
    return;
  }
  char c = peek(l, 0);
  u32 code;
  if (c == 'f' && peek(l, 1) == '"') open_fstring(l, t);
  else if (is_letter(c)) lex_name(l, t);
  else if (is_digit(c)) lex_number(l, t);
  else if (c == '"') lex_text(l, t);
  else if ((u8)c >= 0x80 && utf8_decode(l->text, l->len, l->pos, &code) && is_wide_letter(code)) lex_name(l, t);
  else lex_mark(l, t);
}
