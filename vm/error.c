/* error.c — the error that stands in a VM: raising, its trace, its text, its record. */
#include <stdio.h>
#include <string.h>

#include "vm/alloc.h"
#include "vm/library.h"
#include "vm/ref.h"

enum { TRACE_SHOWN = 20 }; /* lines of a call trace that are printed; the middle is elided */

static Span span_of(const Frame *f) {
  const Proto *p = f->code->proto;
  return f->pc < p->ncode ? p->spans[f->pc] : p->span;
}

/* Where the program is: functions of the library and what the VM put around a call are looked through. */
Span vm_span(const Vm *vm) {
  u32 n = vm->frame_count;
  while (n && (vm->frames[n - 1].code->proto->library || (n > 1 && vm->frames[n - 1].code->proto->hidden))) n--;
  return n ? span_of(&vm->frames[n - 1]) : (Span){0};
}

/* A message may show the beginning of a text, cut inside a code point: what is left of one becomes question marks. */
static void make_valid(char *s, size_t n) {
  if (text_valid(s, n)) return;
  for (size_t i = 0; i < n;) {
    size_t len = 1;
    while (len < 4 && i + len < n && !text_valid(s + i, len)) len++;
    if (text_valid(s + i, len)) i += len;
    else s[i++] = '?';
  }
}

/* Text made without raising anything. */
static bool make_message(Vm *vm, const char *fmt, va_list ap, Value *out) {
  u64 before = overdraft_begin(vm);
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  Text *t = n < 0 ? NULL : obj_alloc(vm, sizeof *t + (size_t)n + 1);
  overdraft_end(vm, before);
  if (!t) return false;
  t->head = (Obj){1, 0};
  vsnprintf(t->data, (size_t)n + 1, fmt, ap);
  t->len = (u32)n;
  t->count = 0;
  make_valid(t->data, (size_t)n);
  for (int i = 0; i < n; i++) t->count += ((u8)t->data[i] & 0xC0) != 0x80;
  *out = value_obj(V_TEXT, t);
  return true;
}

__attribute__((format(printf, 3, 4))) static bool print_message(Vm *vm, Value *out, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  bool made = make_message(vm, fmt, ap, out);
  va_end(ap);
  return made;
}

static ErrorState *begin(Vm *vm, ErrorKind kind, Span at) {
  vm_error_clear(vm);
  vm->error.raised = true;
  vm->error.kind = (u8)kind;
  vm->error.span = at;
  return &vm->error;
}

/* Caught like any other: who holds too much lets go of it when the handler is looked for. */
static void no_memory(Vm *vm) { vm->error.out_of_memory = vm->refused_by_limit ? 2 : 1; }

static WeftStatus raise_text(Vm *vm, ErrorKind kind, Span at, const char *fmt, va_list ap) {
  Value message; /* made first: an argument may belong to the error that stands */
  bool made = make_message(vm, fmt, ap, &message);
  LibrarySaid said;
  if (made && library_said(vm, kind, message.text->data, &said)) {
    Value own = message;
    made = print_message(vm, &message, "%s: %.*s%s", op_name(said.op), (int)said.param_len, said.param, said.rest);
    value_drop(vm, own);
  }
  ErrorState *e = begin(vm, made ? kind : EK_limit, at);
  if (made) e->message = message;
  else no_memory(vm);
  return WEFT_ERROR;
}

WeftStatus vm_error(Vm *vm, ErrorKind kind, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  raise_text(vm, kind, vm_span(vm), fmt, ap);
  va_end(ap);
  return WEFT_ERROR;
}

WeftStatus vm_limit(Vm *vm, LimitKind limit, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  raise_text(vm, EK_limit, vm_span(vm), fmt, ap);
  va_end(ap);
  vm->error.limit = (u8)limit;
  return WEFT_ERROR;
}

WeftStatus vm_error_at(Vm *vm, ErrorKind kind, Span at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  raise_text(vm, kind, at, fmt, ap);
  va_end(ap);
  return WEFT_ERROR;
}

WeftStatus vm_error_rule(Vm *vm, u32 op, const RuleError *e) {
  return vm_error(vm, (ErrorKind)e->kind, "%s: %s", op_name(op), e->text);
}

WeftStatus vm_error_stack(Vm *vm) {
  return vm_limit(vm, LIMIT_stack, "too deep a recursion: the C stack is used up by calls through built-in functions");
}

WeftStatus vm_error_memory(Vm *vm) {
  begin(vm, EK_limit, vm_span(vm));
  no_memory(vm);
  return WEFT_ERROR;
}

static const char *memory_text(u32 out_of_memory) {
  return out_of_memory == 2 ? "the memory limit is reached" : "out of memory";
}

enum { DIMS_TEXT = ARRAY_MAX_RANK * 22 + 8 };

static void put_bytes(f64 bytes, char *out, size_t cap) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  u32 unit = 0;
  while (bytes >= 1024 && unit + 1 < COUNT_OF(units)) bytes /= 1024, unit++;
  snprintf(out, cap, "%.*f %s", bytes < 10 && bytes != (f64)(i64)bytes ? 1 : 0, bytes, units[unit]);
}

WeftStatus vm_error_array(Vm *vm, u32 dtype, u32 rank, const i64 *dims) {
  bool by_limit = vm->refused_by_limit;
  char shape[DIMS_TEXT], takes[48];
  size_t at = (size_t)snprintf(shape, sizeof shape, "(");
  f64 size = 1;
  for (u32 d = 0; d < rank; d++) {
    at += (size_t)snprintf(shape + at, sizeof shape - at, d ? ", %lld" : "%lld", (long long)dims[d]);
    size *= (f64)dims[d];
  }
  snprintf(shape + at, sizeof shape - at, rank == 1 ? ",)" : ")");
  put_bytes(size * dtype_bytes(dtype), takes, sizeof takes);
  (void)vm_error(vm, EK_limit, "an array of %.0f %s, shape %s, takes %s: %s", size, dtype_name(dtype), shape, takes,
                 memory_text(by_limit ? 2 : 1));
  vm->error.out_of_memory = by_limit ? 2 : 1;
  return WEFT_ERROR;
}

/* Of what is raised far below, where nobody knows the operation: that is memory which was refused. */
/* An operation that is composed of others says what they say: `take_along_axis: index 7 …` becomes
 * `nn.cross_entropy: index 7 …`. Where the text speaks of a parameter of the other, its name stays too. */
static void name_outer(Vm *vm, u32 op) {
  ErrorState *e = &vm->error;
  if (!e->raised || e->out_of_memory || e->final || e->trace.count || e->message.kind != V_TEXT) return;
  const char *s = e->message.text->data, *colon = strstr(s, ": ");
  const u32 inner = colon ? op_by_name(s, (size_t)(colon - s)) : OP_none;
  if (!inner || inner == op || library_op(vm)) return;
  const char *rest = colon + 2;
  for (u32 p = 0; p < op_info(inner)->nparams; p++) {
    const OpParam *param = &op_info(inner)->params[p];
    if (strncmp(rest, param->name, param->len) == 0 && rest[param->len] == ' ') rest = s;
  }
  Value named;
  if (!print_message(vm, &named, "%s: %s", op_name(op), rest)) return;
  value_drop(vm, e->message);
  e->message = named;
}

void vm_error_name_op(Vm *vm, u32 op) {
  ErrorState *e = &vm->error;
  name_outer(vm, op);
  if (!e->raised || !e->out_of_memory || e->message.kind != V_TEXT ||
      strncmp(e->message.text->data, "an array of ", 12) != 0)
    return;
  ErrorState held = *e;
  *e = (ErrorState){0};
  (void)vm_error_at(vm, held.kind, held.span, "%s: %s", op_name(op), held.message.text->data);
  if (!e->out_of_memory) { /* made: it takes the place of the other */
    value_drop(vm, held.message);
    held.message = e->message;
  }
  *e = held;
}

WeftStatus vm_raise(Vm *vm, ErrorKind kind, Value message) {
  begin(vm, kind, vm_span(vm))->message = message;
  return WEFT_ERROR;
}

WeftStatus vm_raise_again(Vm *vm, Value record) {
  Value *message = record_find(record.record, vm->known[KN_message]);
  Value *kind = record_find(record.record, vm->known[KN_kind]);
  if (!message || message->kind != V_TEXT || !kind || kind->kind != V_TEXT)
    return vm_error(vm, EK_type, "error: a record needs the texts 'message' and 'kind'");
  int k = error_kind_by_name(kind->text->data, kind->text->len);
  if (k < 0) return vm_error(vm, EK_value, "error: '%s' is no kind of error", kind->text->data);
  ErrorState *e = begin(vm, (ErrorKind)k, vm_span(vm));
  e->message = value_keep(*message);
  if (vm->caught.kind == V_RECORD && vm->caught.record == record.record) { /* keeps the place where it first arose */
    e->span = vm->caught_span;
    for (u32 i = 0; i < vm->caught_trace.count; i++)
      if (!vec_push(&vm->alloc, &e->trace, vm->caught_trace.data[i])) break;
  }
  return WEFT_ERROR;
}

WeftStatus vm_exit(Vm *vm, i32 code) {
  vm_error(vm, EK_interrupt, "the program has ended itself with the code %d", code);
  ErrorState *e = &vm->error;
  e->kind = EK_interrupt; /* also where there was no memory for the message */
  e->out_of_memory = 0;
  e->final = true;
  e->limit = LIMIT_exit;
  vm->exiting = true;
  vm->exit_code = code;
  return WEFT_ERROR;
}

void vm_error_clear(Vm *vm) {
  ErrorState *e = &vm->error;
  if (!e->raised) return;
  value_drop(vm, e->message);
  vec_free(&vm->alloc, &e->trace);
  *e = (ErrorState){0};
}

void vm_error_forget(Vm *vm) {
  const bool interrupted = vm->error.raised && vm->error.limit == LIMIT_interrupt;
  vm_error_clear(vm);
  if (interrupted) vm->interrupted = 1;
}

bool vm_error_catchable(const Vm *vm) { return !vm->error.final; }
bool vm_error_own(const Vm *vm) { return !vm->error.final && !vm->error.out_of_memory; }

/* ---- trace ------------------------------------------------------------------------------------ */

void vm_error_leave_frame(Vm *vm) {
  const Frame *f = &vm->frames[vm->frame_count - 1];
  TraceLine line = {.function = f->code->proto->name, .tail_calls = f->tail_calls};
  if (f->flags & FRAME_MODULE || f->code->proto->hidden) return;
  if (f->code->proto->library) {
    line.library = true;
    line.span = span_of(f);
  } else if (vm->frame_count >= 2) {
    const Frame *caller = f - 1;
    while (caller > vm->frames && caller->code->proto->hidden) caller--;
    line.span = span_of(caller);
  }
  if (!vec_push(&vm->alloc, &vm->error.trace, line)) return; /* a shorter trace is all that memory allows */
}

static void show_place(const Vm *vm, Span at, Buf *out) {
  u32 line, col;
  const SourceFile *f = sources_get(&vm->sources, at.file);
  if (!f) {
    buf_puts(out, "the host");
    return;
  }
  sources_locate(&vm->sources, at, &line, &col);
  buf_printf(out, "%s:%u:%u", f->path, line, col);
}

static void show_call(const Vm *vm, const TraceLine *t, Buf *out) {
  buf_puts(out, "in ");
  if (t->function) buf_puts(out, name_text(&vm->names, t->function));
  else buf_puts(out, "a function");
  if (t->tail_calls) buf_printf(out, ", … %u tail call%s", t->tail_calls, t->tail_calls == 1 ? "" : "s");
  buf_puts(out, t->library ? ", at " : ", called at ");
  show_place(vm, t->span, out);
}

/* Of the lines from t on, how many are the same, one after the other; of two they are told apart. */
static u32 run_of(const TraceLine *t, u32 count) {
  u32 n = 1;
  while (n < count && t[n].function == t->function && t[n].tail_calls == t->tail_calls &&
         memcmp(&t[n].span, &t->span, sizeof t->span) == 0)
    n++;
  return n > 2 ? n : 1;
}

/* A count with commas between its thousands. */
static void show_more(u32 n, const char *what, Buf *out) {
  if (n >= 1000000) buf_printf(out, "  … %u,%03u,%03u more%s\n", n / 1000000, n / 1000 % 1000, n % 1000, what);
  else if (n >= 1000) buf_printf(out, "  … %u,%03u more%s\n", n / 1000, n % 1000, what);
  else buf_printf(out, "  … %u more%s\n", n, what);
}

static const char *message_of(const ErrorState *e, size_t *len) {
  bool text = e->message.kind == V_TEXT;
  const char *s = text ? e->message.text->data : e->out_of_memory ? memory_text(e->out_of_memory) : "";
  if (len) *len = text ? e->message.text->len : strlen(s);
  return s;
}

const char *vm_error_message(const Vm *vm, size_t *len) { return message_of(&vm->error, len); }

void vm_error_text(Vm *vm, Buf *out) {
  const ErrorState *e = &vm->error;
  size_t len;
  const char *message = vm_error_message(vm, &len);
  buf_puts(out, "error: ");
  buf_put(out, message, len);
  buf_putc(out, '\n');
  sources_show(&vm->sources, e->span, out);
  u32 runs = 0, shown = 0;
  for (u32 i = 0; i < e->trace.count; i += run_of(&e->trace.data[i], e->trace.count - i)) runs++;
  for (u32 i = 0; i < e->trace.count; shown++) {
    u32 n = run_of(&e->trace.data[i], e->trace.count - i), left_out = 0, more = n - 1;
    if (runs > TRACE_SHOWN && shown >= TRACE_SHOWN / 2 && shown < runs - TRACE_SHOWN / 2) {
      while (shown < runs - TRACE_SHOWN / 2) {
        n = run_of(&e->trace.data[i], e->trace.count - i);
        left_out += n;
        i += n;
        shown++;
      }
      shown--;
      show_more(left_out, " calls", out);
      continue;
    }
    buf_puts(out, "  ");
    show_call(vm, &e->trace.data[i], out);
    buf_putc(out, '\n');
    if (more) show_more(more, "", out);
    i += n;
  }
}

/* ---- the record that catch gives -------------------------------------------------------------- */

/* As long as memory allows: what is missing at its end is no reason to fail. `e` is not the VM's error meanwhile. */
static bool trace_list(Vm *vm, const ErrorState *e, Value *out) {
  if (!list_new(vm, 0, out)) {
    *out = value_nil(); /* it lies in the record that is made */
    return false;
  }
  Buf b;
  buf_init(&b, &vm->alloc);
  bool ok = true;
  for (u32 i = 0; ok && i <= e->trace.count; i++) {
    b.len = 0;
    if (i == 0) show_place(vm, e->span, &b);
    else show_call(vm, &e->trace.data[i - 1], &b);
    Value line;
    ok = !b.failed && text_new(vm, buf_text(&b), b.len, &line) && list_push(vm, out, line);
  }
  buf_free(&b);
  vm_error_clear(vm);
  return true;
}

static bool make_record(Vm *vm, ErrorState *e, Value *out);

bool vm_error_record(Vm *vm, Value *out) {
  u64 before = overdraft_begin(vm);
  ErrorState e = vm->error;
  vm->error = (ErrorState){0}; /* making the record may fail as well */
  /* what the program gave up while the handler was looked for goes on holding memory in cycles */
  if (e.out_of_memory && vm->refs) (void)ref_collect(vm);
  bool ok = make_record(vm, &e, out);
  ErrorState refused = vm->error;
  vm->error = e;
  vm_error_clear(vm);
  vm->error = refused;
  overdraft_end(vm, before);
  return ok;
}

/* What is taken out of e goes into the record. */
static bool make_record(Vm *vm, ErrorState *e, Value *out) {
  Span span = e->span;
  Name keys[] = {vm->known[KN_message], vm->known[KN_kind], vm->known[KN_trace]};
  size_t len;
  const char *s = message_of(e, &len), *kind = error_kind_name(e->kind);
  if (!record_new_keys(vm, keys, COUNT_OF(keys), out)) return false;
  Value *items = out->record->items;
  bool ok = text_new(vm, s, len, &items[0]) && text_new(vm, kind, strlen(kind), &items[1]) &&
            trace_list(vm, e, &items[2]);
  if (!ok) {
    value_drop(vm, *out);
    return false;
  }
  value_drop(vm, vm->caught);
  vm->caught = value_keep(*out);
  vm->caught_span = span;
  vec_free(&vm->alloc, &vm->caught_trace);
  vm->caught_trace.data = e->trace.data;
  vm->caught_trace.count = e->trace.count;
  vm->caught_trace.cap = e->trace.cap;
  e->trace.data = NULL;
  e->trace.count = e->trace.cap = 0;
  return true;
}
