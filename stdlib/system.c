/* system.c — output and input, time, arguments, errors on purpose, documentation. */
#include "parser/parser.h"
#include "stdlib/args.h"
#include "stdlib/text/format.h"
#include "stdlib/stdlib.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A record of these keys. */
bool is_drawing(Vm *vm, Value v) {
  static const char *const keys[] = {"plot", "series", "title", "xlabel", "ylabel", "xscale", "yscale"};
  if (v.kind != V_RECORD || v.record->shape->count != COUNT_OF(keys)) return false;
  for (u32 i = 0; i < COUNT_OF(keys); i++)
    if (strcmp(name_text(&vm->names, v.record->shape->keys[i]), keys[i]) != 0) return false;
  return true;
}

/* A drawing as plot.text gives it, on lines of its own; as any record where it cannot be drawn. */
static WeftStatus print_drawing(Vm *vm, Value v, Buf *out) {
  Value fn, text, args[1] = {value_keep(v)};
  if (!fn_builtin(vm, OP_plot_text, &fn)) {
    value_drop(vm, args[0]);
    return WEFT_ERROR;
  }
  WeftStatus status = vm_call(vm, fn, args, 1, &text);
  value_drop(vm, fn);
  if (status != WEFT_OK) {
    if (vm->error.kind == EK_limit || vm->error.kind == EK_interrupt) return status;
    vm_error_clear(vm);
    format_value(vm, v, true, out);
    return WEFT_OK;
  }
  u32 len = text.kind == V_TEXT ? text.text->len : 0;
  if (len && text.text->data[len - 1] == '\n') len--; /* print ends the line */
  if (len) buf_put(out, text.text->data, len);
  value_drop(vm, text);
  return WEFT_OK;
}

WeftStatus eager_print(Vm *vm, Value *args, Value *out) {
  const char *end = "\n", *sep = " ";
  u32 end_len = 1, sep_len = 1;
  *out = value_nil();
  if (vm->unseen) {
    vm->unseen--;
    return WEFT_OK;
  }
  if (args_given(args[1])) {
    if (args[1].kind != V_TEXT) return args_error(vm, OP_print, 1, args[1], "a text");
    end = args[1].text->data;
    end_len = args[1].text->len;
  }
  if (args_given(args[2])) {
    if (args[2].kind != V_TEXT) return args_error(vm, OP_print, 2, args[2], "a text");
    sep = args[2].text->data;
    sep_len = args[2].text->len;
  }
  bool flush = false;
  TRY(args_bool(vm, OP_print, 3, args[3], &flush));
  Buf b;
  vm_buf_init(vm, &b);
  const List *xs = args[0].list;
  WeftStatus status = WEFT_OK;
  for (u32 i = 0; i < xs->count && status == WEFT_OK; i++) {
    const bool drawn = is_drawing(vm, xs->items[i]), lines = drawn || (i && is_drawing(vm, xs->items[i - 1]));
    if (i) buf_put(&b, lines ? "\n" : sep, lines ? 1 : sep_len);
    if (drawn) status = print_drawing(vm, xs->items[i], &b);
    else format_value(vm, xs->items[i], true, &b);
  }
  buf_put(&b, end, end_len);
  if (status == WEFT_OK) status = b.failed ? vm_error_buf(vm) : vm_write(vm, buf_text(&b), b.len);
  buf_free(&b);
  return status == WEFT_OK && flush ? vm_flush(vm) : status;
}

WeftStatus eager_flush(Vm *vm, Value *args, Value *out) {
  (void)args;
  *out = value_nil();
  return vm_flush(vm);
}

WeftStatus eager_type(Vm *vm, Value *args, Value *out) {
  const char *s = value_type_name(args[0]);
  if (!text_new(vm, s, strlen(s), out)) return WEFT_ERROR;
  Value *once = args[0].kind < COUNT_OF(vm->types) ? &vm->types[args[0].kind] : NULL;
  if (once && !once->kind) *once = value_keep(*out);
  return WEFT_OK;
}

/* Words one after the other, in lines that a terminal of 80 columns holds. */
static void put_word(Buf *b, u32 *column, const char *word) {
  enum { WIDTH = 78, INDENT = 2 };
  u32 len = text_columns(word, (u32)strlen(word));
  if (*column && *column + 1 + len > WIDTH) {
    buf_putc(b, '\n');
    *column = 0;
  }
  buf_printf(b, "%s%s", *column ? " " : "  ", word);
  *column += *column ? 1 + len : INDENT + len;
}

/* Texts stand in single quotes in lang/ops.def; they are shown as they must be written. The quote of `a record's` is
 * none: a letter stands before it. */
static void put_with_texts(Buf *b, const char *s) {
  bool inside = false;
  for (char before = ' '; *s; before = *s++) {
    bool letter = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z');
    bool quote = *s == '\'' && (inside || !letter);
    if (quote) inside = !inside;
    buf_putc(b, quote ? '"' : *s);
  }
}

static void describe_op(u32 op, Buf *b) {
  const OpInfo *info = op_info(op);
  buf_puts(b, info->name);
  put_with_texts(b, info->signature);
  buf_puts(b, "\n  ");
  put_with_texts(b, info->doc);
  buf_putc(b, '\n');
}

/* What is called so: a function, a reserved word, a counter of trace.stats(), a threshold. Several may be. */
static void describe_name(const char *s, u32 len, Buf *b) {
  OpId op = op_by_name(s, len);
  int stat = stat_by_name(s, len);
  const TunableInfo *t = tunable_by_name(s, len);
  bool reserved = false;
  for (const char *const *w = parser_reserved_words(); *w; w++) reserved |= strcmp(*w, s) == 0;
  if (op) describe_op(op, b);
  if (reserved) buf_printf(b, "%s: a reserved word of the language (docs/language.md, section 3)\n", s);
  if (stat >= 0)
    buf_printf(b, "%s: a counter of trace.stats(), %s\n  %s\n", s,
               strcmp(stat_unit((u32)stat), "count") == 0 ? "a number" : stat_unit((u32)stat), stat_doc((u32)stat));
  if (t)
    buf_printf(b, "%s: a threshold, %lld %s%s%s%s\n  %s\n", t->name, (long long)t->value, t->unit,
               *t->environment ? " (" : "", t->environment, *t->environment ? " sets it)" : "", t->why);
  if (!op && !reserved && stat < 0 && !t) buf_printf(b, "no built-in function is called \"%s\"\n", s);
}

static void describe_closure(Vm *vm, const Proto *p, Buf *b) {
  buf_printf(b, "%s(", p->name ? name_text(&vm->names, p->name) : "fn");
  for (u32 i = 0; i < p->nparams; i++) {
    const char *initial = !p->params[i].has_default ? "" : p->params[i].initial ? p->params[i].initial : "…";
    buf_printf(b, "%s%s%s%s%s", i ? ", " : "", (i32)i == p->rest_index ? "..." : "",
               p->params[i].name ? name_text(&vm->names, p->params[i].name) : "_",
               p->params[i].has_default ? "=" : "", initial);
  }
  buf_puts(b, ")\n");
  if (!p->doc) return;
  buf_puts(b, "  ");
  for (const char *s = p->doc; *s; s++) {
    buf_putc(b, *s);
    if (*s == '\n' && s[1]) buf_puts(b, "  ");
  }
  buf_putc(b, '\n');
}

static void describe_module(Vm *vm, const Module *m, Buf *b) {
  u32 column = 0;
  buf_printf(b, "module %s:\n", name_text(&vm->names, m->name));
  for (u32 i = 0; i < m->scope.slots.count; i++)
    if (m->slots[i].value.kind != V_HOLE && !(m->scope.flags.data[i] & MODVAR_BUILTIN))
      put_word(b, &column, name_text(&vm->names, m->scope.slots.data[i]));
  buf_putc(b, '\n');
}

/* The text of a function that is written in Weft. */
static void show_source(Vm *vm, Value v, Buf *b) {
  const Proto *p = v.kind == V_FN && v.fn->kind == FN_CLOSURE ? v.fn->code->proto : NULL;
  const SourceFile *f = p ? sources_get(&vm->sources, p->span.file) : NULL;
  if (f && p->span.start + p->span.len <= f->len) {
    buf_put(b, f->text + p->span.start, p->span.len);
    buf_putc(b, '\n');
  } else {
    buf_printf(b, v.kind == V_FN ? "%s is not written in Weft\n" : "a value of type %s has no source\n",
               v.kind != V_FN ? value_type_name(v) : v.fn->kind == FN_BUILTIN ? op_name(v.fn->op) : "this function");
  }
}

WeftStatus eager_help(Vm *vm, Value *args, Value *out) {
  Buf b;
  Value v = args[0];
  bool source = false;
  TRY(args_bool(vm, OP_help, 1, args[1], &source));
  vm_buf_init(vm, &b);
  if (!args_given(v)) {
    buf_puts(&b, "help(f) shows what a function does. Built-in functions:\n");
    u32 column = 0;
    for (u32 i = 1; i < OP_COUNT; i++) put_word(&b, &column, op_name(i));
    buf_putc(&b, '\n');
  } else if (source) {
    show_source(vm, v, &b);
  } else if (v.kind == V_FN && v.fn->kind == FN_BUILTIN) {
    describe_op(v.fn->op, &b);
  } else if (v.kind == V_TEXT) {
    describe_name(v.text->data, v.text->len, &b);
  } else if (v.kind == V_FN && v.fn->kind == FN_CLOSURE) {
    const Proto *p = v.fn->code->proto;
    if (p->op) describe_op(p->op, &b);
    else describe_closure(vm, p, &b);
  } else if (v.kind == V_DTYPE) {
    buf_printf(&b, "%s: %s; %s(x) converts\n", dtype_name(v.dtype), dtype_info[v.dtype].doc, dtype_name(v.dtype));
  } else if (v.kind == V_MODULE) {
    describe_module(vm, v.module, &b);
  } else {
    buf_printf(&b, "a value of type %s\n", value_type_name(v));
  }
  WeftStatus status = b.failed ? vm_error_buf(vm) : vm_write(vm, buf_text(&b), b.len);
  buf_free(&b);
  *out = value_nil();
  return status;
}

WeftStatus eager_time(Vm *vm, Value *args, Value *out) {
  (void)vm;
  (void)args;
  *out = value_f64(vm_clock());
  return WEFT_OK;
}

WeftStatus eager_now(Vm *vm, Value *args, Value *out) {
  struct timespec t;
  (void)args;
  if (clock_gettime(CLOCK_REALTIME, &t) != 0) return vm_error(vm, EK_io, "now: the clock cannot be read");
  *out = value_f64((f64)t.tv_sec + (f64)t.tv_nsec / 1e9);
  return WEFT_OK;
}

WeftStatus eager_assert(Vm *vm, Value *args, Value *out) {
  bool ok;
  const Value c = value_untracked(args[0]);
  if (c.kind != V_NUM && c.kind != V_ARRAY) return args_error(vm, OP_assert, 0, c, "a number or bool of rank 0");
  TRY(vm_truth(vm, args[0], &ok));
  *out = value_nil();
  if (ok) return WEFT_OK;
  if (!args_given(args[1])) return vm_error(vm, EK_assert, "assertion failed");
  Buf b;
  vm_buf_init(vm, &b);
  format_value(vm, args[1], true, &b);
  Value message;
  WeftStatus status = b.failed ? vm_error_buf(vm)
                               : text_new(vm, buf_text(&b), b.len, &message) ? vm_raise(vm, EK_assert, message)
                               : WEFT_ERROR;
  buf_free(&b);
  return status;
}

/* Messages of the library are one line, whatever values they show: of a matrix its rows stand side by side, and the
 * middle of what is long is left out. */
static void one_line(Buf *b) {
  enum { MOST = 400, HEAD = 300 };
  size_t n = 0;
  char *s = b->data;
  for (size_t i = 0; i < b->len; i++)
    if (s[i] != '\n') s[n++] = s[i];
  b->len = n;
  if (n <= MOST) return;
  size_t head = HEAD, tail = n - (MOST - HEAD - 5);
  while (head && ((u8)s[head] & 0xC0) == 0x80) head--;
  while (tail < n && ((u8)s[tail] & 0xC0) == 0x80) tail++;
  memcpy(s + head, " … ", 5);
  memmove(s + head + 5, s + tail, n - tail);
  b->len = head + 5 + n - tail;
}

WeftStatus eager_error(Vm *vm, Value *args, Value *out) {
  (void)out;
  if (args[0].kind == V_RECORD) return vm_raise_again(vm, args[0]);
  int kind = EK_user;
  if (args_given(args[1])) {
    if (args[1].kind != V_TEXT) return args_error(vm, OP_error, 1, args[1], "a text");
    kind = error_kind_by_name(args[1].text->data, args[1].text->len);
    if (kind < 0) return vm_error(vm, EK_value, "error: no kind of error is called \"%s\"", args[1].text->data);
  }
  Buf b;
  vm_buf_init(vm, &b);
  format_value(vm, args[0], true, &b);
  if (library_op(vm) && !b.failed) one_line(&b);
  Value message;
  WeftStatus status = b.failed ? vm_error_buf(vm)
                               : text_new(vm, buf_text(&b), b.len, &message) ? vm_raise(vm, (ErrorKind)kind, message)
                               : WEFT_ERROR;
  buf_free(&b);
  return status;
}

/* What comes from outside need not be UTF-8. */
static WeftStatus outer_text(Vm *vm, ErrorKind kind, const char *what, const char *s, size_t n, Value *out) {
  if (!utf8_valid(s, n)) return vm_error(vm, kind, "%s is not UTF-8", what);
  return text_new(vm, s, n, out) ? WEFT_OK : WEFT_ERROR;
}

WeftStatus eager_args(Vm *vm, Value *args, Value *out) {
  (void)args;
  if (!list_new(vm, (u32)vm->argc, out)) return WEFT_ERROR;
  for (int i = 0; i < vm->argc; i++) {
    Value t;
    if (outer_text(vm, EK_value, "args: an argument", vm->argv[i], strlen(vm->argv[i]), &t) != WEFT_OK ||
        !list_push(vm, out, t)) {
      value_drop(vm, *out);
      return WEFT_ERROR;
    }
  }
  return WEFT_OK;
}

WeftStatus eager_env(Vm *vm, Value *args, Value *out) {
  if (args[0].kind != V_TEXT) return args_error(vm, OP_env, 0, args[0], "a text");
  if (!vm->limits.allow_env) return vm_limit(vm, LIMIT_env, "env: the host does not allow reading the environment");
  const char *s = getenv(args[0].text->data);
  if (s) return outer_text(vm, EK_value, "env: the variable", s, strlen(s), out);
  *out = args[1].kind == V_HOLE ? value_nil() : value_keep(args[1]);
  return WEFT_OK;
}

WeftStatus eager_exit(Vm *vm, Value *args, Value *out) {
  (void)out;
  i64 code = 0;
  TRY(args_int(vm, OP_exit, 0, args[0], &code));
  if (code < 0 || code > 255)
    return vm_error(vm, EK_value, "exit: the code must be 0 to 255, got %lld", (long long)code);
  return vm_exit(vm, (i32)code);
}

static WeftStatus may_read(Vm *vm) {
  if (vm->limits.allow_files) return WEFT_OK;
  return vm_limit(vm, LIMIT_input, "read_line: the host does not allow reading input");
}

/* What the host has of a line; *over: it ends there, or the input does. */
static WeftStatus line_of_host(Vm *vm, Buf *line, bool *any, bool *over) {
  char part[256];
  for (i64 n; vm->input && !*over;) {
    if ((n = vm->input(vm->input_ctx, part, sizeof part)) < 0) break;
    TRY(vm_poll(vm, 0));
    if (vm->error.raised) return WEFT_ERROR;
    *any |= n > 0;
    buf_put(line, part, (size_t)n);
    *over = !n || part[n - 1] == '\n';
  }
  return WEFT_OK;
}

/* A line without its end into *line; false: there is none. A signal in the middle of it ends nothing, and the end of
 * input of a terminal is not its last. */
static WeftStatus next_line(Vm *vm, Buf *line, bool *any) {
  char *part = NULL;
  size_t cap = 0;
  bool over = false;
  *any = false;
  WeftStatus status = line_of_host(vm, line, any, &over);
  if (over || status != WEFT_OK) return status;
  TRY(may_read(vm));
  for (;;) {
    clearerr(stdin);
    /* the program weft leaves nothing of a terminal in stdio's buffer */
    if (isatty(STDIN_FILENO) && vm_wait_data(vm, STDIN_FILENO) < 0) {
      status = WEFT_ERROR;
      break;
    }
    ssize_t n = getline(&part, &cap, stdin);
    bool again = n <= 0 || part[n - 1] != '\n' ? ferror(stdin) && errno == EINTR : false;
    if (n > 0) {
      *any = true;
      buf_put(line, part, (size_t)n);
    }
    if (!again) break;
    status = vm_poll(vm, 0);
    if (status != WEFT_OK) break;
  }
  clearerr(stdin);
  free(part);
  return status;
}

WeftStatus eager_read_line(Vm *vm, Value *args, Value *out) {
  (void)args;
  if (!vm->input) TRY(may_read(vm));
  TRY(vm_flush(vm));
  Buf line;
  bool any;
  vm_buf_init(vm, &line);
  WeftStatus status = next_line(vm, &line, &any);
  size_t n = line.len;
  if (n && line.data[n - 1] == '\n') n--;
  if (n && line.data[n - 1] == '\r') n--;
  if (status == WEFT_OK && line.failed) status = vm_error_buf(vm);
  if (status == WEFT_OK && any) status = outer_text(vm, EK_io, "read_line: the line", buf_text(&line), n, out);
  else if (status == WEFT_OK) *out = value_nil();
  buf_free(&line);
  return status;
}
