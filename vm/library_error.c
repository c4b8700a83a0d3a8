/* library_error.c — whom an error inside of a function of the library speaks of: the function that the program called,
 * and its argument, however it was handed on (see library.h). */
#include "vm/library.h"

#include <ctype.h>
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

/* From the innermost frame to that of `outer`: its parameter that argument `index` of `callee` came from. */
static const OpParam *handed_on(const Vm *vm, u32 outer, const char *callee, u32 index, Part name) {
  for (u32 n = vm->frame_count; n; n--) {
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
  const OpParam *own = outer ? handed_on(vm, outer, op_name(op), param, (Part){p->name, p->len}) : NULL;
  return own ? (i32)(own - op_info(outer)->params) : -1;
}

bool library_said(const Vm *vm, ErrorKind kind, const char *s, LibrarySaid *out) {
  const char *colon = strstr(s, ": ");
  u32 outer = failing(vm), op = colon ? op_by_name(s, (size_t)(colon - s)) : OP_none;
  if (!outer || op == outer) return false;
  *out = (LibrarySaid){.op = outer, .param = "", .rest = s};
  if (!op) return kind != EK_limit && kind != EK_interrupt; /* limits of the program are not the function's */
  Part rest = {colon + 2, strlen(colon + 2)}, word = {rest.s, name_length(rest)};
  i32 param = param_at(op_info(op), word);
  if (param < 0) {
    out->rest = rest.s;
    return true;
  }
  const OpParam *own = handed_on(vm, outer, op_name(op), (u32)param, word);
  if (!own) return true; /* it speaks of a parameter of the operation inside */
  out->param = own->name;
  out->param_len = own->len;
  out->rest = rest.s + word.len;
  return true;
}
