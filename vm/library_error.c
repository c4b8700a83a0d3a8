/* library_error.c — whom an error inside of a function of the library speaks of: the function that the program called,
 * and its argument, however it was handed on (see library.h). */
#include "vm/library.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct Part { /* of a text */
  const char *s;
  size_t len;
} Part;

static bool is_word(Part p, const char *s) { return strlen(s) == p.len && memcmp(s, p.s, p.len) == 0; }

static Part trimmed(Part p) {
  while (p.len && isspace((u8)*p.s)) p.s++, p.len--;
  while (p.len && isspace((u8)p.s[p.len - 1])) p.len--;
  return p;
}

static size_t name_length(Part p) {
  size_t n = 0;
  while (n < p.len && (isalnum((u8)p.s[n]) || p.s[n] == '_')) n++;
  return n;
}

static i32 param_at(const OpInfo *info, Part name) {
  for (u32 i = 0; i < info->nparams; i++)
    if (info->params[i].len == name.len && memcmp(info->params[i].name, name.s, name.len) == 0) return (i32)i;
  return -1;
}

/* The argument that begins at *at, behind which *at then stands. False: there is none. */
static bool next_argument(Part call, size_t *at, Part *out) {
  int depth = 0;
  size_t from = *at, i = from;
  if (from >= call.len) return false;
  for (; i < call.len && depth >= 0; i++) {
    char c = call.s[i];
    if (c == '"') {
      while (++i < call.len && call.s[i] != '"') i += call.s[i] == '\\';
    } else if (c == '(' || c == '[' || c == '{') {
      depth++;
    } else if (c == ')' || c == ']' || c == '}') {
      depth--;
    } else if (c == ',' && depth == 0) {
      break;
    }
  }
  size_t end = i < call.len ? i : call.len;
  bool last = depth < 0; /* behind the parenthesis that ends the call */
  *out = trimmed((Part){call.s + from, end - last - from});
  *at = last ? call.len : end + 1;
  return out->len > 0;
}

/* What stands in the text of a call of `callee` as its argument number `index`, of that name. */
static bool argument_in(Part call, const char *callee, u32 index, Part name, Part *out) {
  const char *dot = strrchr(callee, '.');
  const char *last = dot ? dot + 1 : callee;
  size_t open = 0, n = strlen(last);
  while (open < call.len && call.s[open] != '(') open++;
  Part head = trimmed((Part){call.s, open});
  if (open == call.len || head.len < n || memcmp(head.s + head.len - n, last, n) != 0) return false;
  bool method = !is_word(head, callee) && !is_word(head, last);
  if (method) {
    if (head.len <= n + 1 || head.s[head.len - n - 1] != '.') return false;
    *out = (Part){head.s, head.len - n - 1};
    if (index == 0) return true;
  }
  Part arg;
  size_t at = open + 1;
  for (u32 i = method; next_argument(call, &at, &arg); i++) {
    size_t word = name_length(arg);
    Part rest = trimmed((Part){arg.s + word, arg.len - word});
    bool named = word && rest.len > 1 && rest.s[0] == '=' && rest.s[1] != '=';
    if (arg.s[0] == '.') return false; /* a spread */
    if (named && !(word == name.len && memcmp(arg.s, name.s, word) == 0)) continue;
    if (!named && i != index) continue;
    *out = named ? trimmed((Part){rest.s + 1, rest.len - 1}) : arg;
    return true;
  }
  return false;
}

static Part text_of_call(const Vm *vm, const Frame *f) {
  const Proto *p = f->code->proto;
  Span at = f->pc < p->ncode ? p->spans[f->pc] : p->span;
  const SourceFile *file = sources_get(&vm->sources, at.file);
  if (!file || at.start > file->len || at.len > file->len - at.start) return (Part){"", 0};
  return (Part){file->text + at.start, at.len};
}

static i32 param_of_proto(const Vm *vm, const Proto *p, Part name) {
  for (u32 i = 0; i < p->nparams; i++)
    if (is_word(name, name_text(&vm->names, p->params[i].name))) return (i32)i;
  return -1;
}

/* From frame n - 1 down to that of `outer`: its parameter that argument `index` of `callee` came from. */
static const OpParam *handed_on(const Vm *vm, u32 n, u32 outer, const char *callee, u32 index, Part name) {
  for (; n; n--) {
    const Proto *p = vm->frames[n - 1].code->proto;
    Part from;
    i32 at;
    if (!p->library || !argument_in(text_of_call(vm, &vm->frames[n - 1]), callee, index, name, &from) ||
        (at = param_of_proto(vm, p, from)) < 0)
      return NULL;
    if (p->op == outer) return &op_info(outer)->params[at];
    if (!p->name) return NULL;
    callee = name_text(&vm->names, p->name);
    index = (u32)at;
    name = from;
  }
  return NULL;
}

/* The parameter of `outer` that this word of the innermost frame stands for. Tail calls leave no frames behind, and a
 * closure keeps variables of what has returned: the parameter of that name then. */
static const OpParam *param_of_word(const Vm *vm, u32 outer, Part word) {
  const Proto *p = vm->frames[vm->frame_count - 1].code->proto;
  if (!p->library || !word.len) return NULL;
  const i32 at = param_of_proto(vm, p, word), alike = param_at(op_info(outer), word);
  if (at >= 0 && p->op == outer) return &op_info(outer)->params[at];
  const OpParam *own = at >= 0 && p->name ? handed_on(vm, vm->frame_count - 1, outer, name_text(&vm->names, p->name),
                                                      (u32)at, word)
                                          : NULL;
  return own || alike < 0 ? own : &op_info(outer)->params[alike];
}

/* The word that ends a text, or begins it. */
static Part last_word(Part t) {
  size_t n = 0;
  while (n < t.len && (isalnum((u8)t.s[t.len - 1 - n]) || t.s[t.len - 1 - n] == '_')) n++;
  return (Part){t.s + t.len - n, n};
}

static bool said_of(const OpParam *own, LibrarySaid *out, const char *must, int len, const char *got) {
  out->param = own->name;
  out->param_len = own->len;
  snprintf(out->made, sizeof out->made, " must be %s, got %.*s", must, len, got);
  out->rest = out->made;
  return true;
}

/* What an operator or a condition of the library's text says: of a parameter where it stands there as it is, as
 * `correction` in `free - correction` and `lower` in `if lower`. False: it does not, or another thing is wrong. */
static bool said_by_syntax(const Vm *vm, u32 outer, const char *s, LibrarySaid *out) {
  static const char condition[] = "a condition is ", takes[] = ": cannot take ", both[] = " and ";
  const Part text = trimmed(text_of_call(vm, &vm->frames[vm->frame_count - 1]));
  const char *got = strstr(s, ", got "), *kinds = strstr(s, takes), *second = kinds ? strstr(kinds, both) : NULL;
  if (strncmp(s, condition, sizeof condition - 1) == 0 && got) {
    const OpParam *own = param_of_word(vm, outer, last_word(text));
    const bool alone = last_word(text).len == text.len || strncmp(text.s, "not ", 4) == 0;
    const char *is = s + sizeof condition - 1; /* the advice behind it is for who wrote the condition */
    if (!own || !alone) return false;
    snprintf(out->made, sizeof out->made, " must be %.*s", (int)strcspn(is, ":"), is);
    out->param = own->name;
    out->param_len = own->len;
    out->rest = out->made;
    return true;
  }
  if (!second) return false;
  const size_t sign = (size_t)(kinds - s);
  const char *left = kinds + sizeof takes - 1, *right = second + sizeof both - 1;
  const Part first = {text.s, name_length(text)}, last = last_word(text);
  const Part before = trimmed((Part){text.s, text.len - last.len}),
             behind = trimmed((Part){text.s + first.len, text.len - first.len});
  const bool ends = before.len > sign && memcmp(before.s + before.len - sign, s, sign) == 0,
             begins = behind.len > sign && memcmp(behind.s, s, sign) == 0;
  const OpParam *own = ends ? param_of_word(vm, outer, last) : NULL;
  const size_t right_len = strcspn(right, ";"), left_len = (size_t)(second - left);
  if (own && strncmp(right, "number", right_len) != 0 && strncmp(right, "array", right_len) != 0)
    return said_of(own, out, "an array", (int)right_len, right);
  own = begins ? param_of_word(vm, outer, first) : NULL;
  if (own && strncmp(left, "number", left_len) != 0 && strncmp(left, "array", left_len) != 0)
    return said_of(own, out, "an array", (int)left_len, left);
  return false;
}

/* The operation that the program called and whose function of the library now fails; 0: none. */
static u32 failing(const Vm *vm) {
  u32 op = 0;
  for (u32 n = vm->frame_count; n; n--) {
    const Proto *p = vm->frames[n - 1].code->proto;
    if (!p->library && !p->hidden) break;
    if (p->owner) op = p->owner;
  }
  return op;
}

u32 library_op(const Vm *vm) {
  return vm->frame_count && vm->frames[vm->frame_count - 1].code->proto->library ? failing(vm) : 0;
}

i32 library_param(const Vm *vm, u32 op, u32 param) {
  u32 outer = library_op(vm);
  const OpParam *p = &op_info(op)->params[param];
  const OpParam *own = outer ? handed_on(vm, vm->frame_count, outer, op_name(op), param, (Part){p->name, p->len})
                             : NULL;
  return own ? (i32)(own - op_info(outer)->params) : -1;
}

bool library_said(const Vm *vm, ErrorKind kind, const char *s, LibrarySaid *out) {
  const char *colon = strstr(s, ": ");
  u32 outer = failing(vm), op = colon ? op_by_name(s, (size_t)(colon - s)) : OP_none;
  if (!outer || op == outer) return false;
  *out = (LibrarySaid){.op = outer, .param = "", .rest = s};
  if (!op && kind == EK_type && said_by_syntax(vm, outer, s, out)) return true;
  if (!op) return kind != EK_limit && kind != EK_interrupt; /* limits of the program are not the function's */
  Part rest = {colon + 2, strlen(colon + 2)}, word = {rest.s, name_length(rest)};
  i32 param = param_at(op_info(op), word);
  if (param < 0) {
    out->rest = rest.s;
    return true;
  }
  const OpParam *own = handed_on(vm, vm->frame_count, outer, op_name(op), (u32)param, word);
  if (!own) return true; /* it speaks of a parameter of the operation inside */
  out->param = own->name;
  out->param_len = own->len;
  out->rest = rest.s + word.len;
  return true;
}
