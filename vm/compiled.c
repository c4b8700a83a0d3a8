/* compiled.c — programs as bytes: what vm_compile writes and vm_run_compiled reads (see vm.h).
 *
 *   magic of 4 bytes, of which the first begins no UTF-8 · version of this frame, 4 bytes · number of the tables that
 *   bytecode refers to (proto_tables), 8 · sum of what follows, 8 · path · kind of text · text · bytecode (proto_save)
 *
 * Path and text begin with their length in 4 bytes, the lowest first. A text that was left out is stored as the widths
 * of its characters, so that places have the same lines and columns. The sum finds what was damaged on the way; who
 * means harm can make it fit, so everything behind it is proved as well. */
#include "lang/compile.h"
#include "vm/module.h"

#include <string.h>

static const char magic[4] = {'\x89', 'W', 'F', 'T'};
enum { FRAME_VERSION = 1, HEAD = 24 /* bytes before what is summed */ };
enum { TEXT_WHOLE, TEXT_WIDTHS }; /* kinds of text */
enum { WIDTHS_MOST = 16 << 20 };  /* bytes of a text that is stored by widths: a few of these make many of those */

static void put(Buf *b, u64 n, u32 bytes) {
  char text[8];
  for (u32 i = 0; i < bytes; i++) text[i] = (char)(n >> (8 * i));
  buf_put(b, text, bytes);
}

static u64 get(const char *s, u32 bytes) {
  u64 n = 0;
  for (u32 i = 0; i < bytes; i++) n |= (u64)(u8)s[i] << (8 * i);
  return n;
}

/* FNV-1a of 64 bits (draft-eastlake-fnv): each step can be undone, so a change of one byte changes the sum. */
static u64 sum_of(const char *s, size_t len, Toil *t) {
  u64 h = 0xcbf29ce484222325u;
  for (size_t i = 0, stop; i < len; i = stop) {
    stop = len - i < TOIL_BYTES ? len : i + TOIL_BYTES;
    if (!toil(t, 4 * TOIL_BYTE_STEPS)) break;
    for (size_t k = i; k < stop; k++) h = (h ^ (u8)s[k]) * 0x100000001b3u;
  }
  return h;
}

/* ---- texts that were left out ----------------------------------------------------------------- */

/* A blank of as many bytes as a character has: U+0020, U+00A0, U+2007, and U+E0020, which is shown as nothing. */
static const char *const blanks[] = {"\n", " ", "\xC2\xA0", "\xE2\x80\x87", "\xF3\xA0\x80\xA0"};

/* Runs of characters of one width: the width, 0 for the end of a line, and how many, 4 bytes. */
static void put_widths(Buf *out, const char *text, u32 len) {
  u32 run = 0, width = 0;
  for (u32 at = 0; at < len;) {
    u32 step = 1;
    while (step < 4 && at + step < len && ((u8)text[at + step] & 0xC0) == 0x80) step++; /* as columns are counted */
    const u32 next = text[at] == '\n' ? 0 : step;
    if (run && next != width) {
      put(out, width, 1);
      put(out, run, 4);
      run = 0;
    }
    width = next;
    run++;
    at += step;
  }
  if (run) {
    put(out, width, 1);
    put(out, run, 4);
  }
}

static bool get_widths(const char *s, size_t len, Buf *out) {
  if (len % 5) return false;
  for (size_t i = 0; i < len && !out->failed; i += 5) {
    const u32 width = (u8)s[i];
    const u64 run = get(s + i + 1, 4), step = width ? width : 1;
    if (width > 4 || run * step > WIDTHS_MOST - out->len) return false;
    for (u64 k = 0; k < run; k++) buf_put(out, blanks[width], step);
  }
  return true;
}

/* ---- writing ---------------------------------------------------------------------------------- */

/* The names that the module declares now, as given. */
static bool copy_scope(Vm *vm, const Module *m, ModuleScope *out) {
  *out = (ModuleScope){.alloc = &vm->alloc};
  for (u32 i = 0, slot; i < m->scope.slots.count; i++) {
    if (!(m->scope.flags.data[i] & MODVAR_DECLARED)) continue;
    if (!scope_add(out, m->scope.slots.data[i], &slot)) return false;
    out->flags.data[slot] = MODVAR_DECLARED | MODVAR_GIVEN;
  }
  return true;
}

static void write_program(Vm *vm, const Proto *p, const ModuleScope *scope, bool strip, Buf *out) {
  const SourceFile *f = sources_get(&vm->sources, p->file);
  const size_t begin = out->len;
  buf_put(out, magic, sizeof magic);
  put(out, FRAME_VERSION, 4);
  put(out, proto_tables(), 8);
  put(out, 0, 8);
  put(out, strlen(f->path), 4);
  buf_puts(out, f->path);
  put(out, strip ? TEXT_WIDTHS : TEXT_WHOLE, 1);
  const size_t length_at = out->len;
  put(out, f->len, 4);
  if (strip) put_widths(out, f->text, f->len);
  else buf_put(out, f->text, f->len);
  const u64 text_bytes = out->len - length_at - 4;
  proto_save(p, &vm->names, scope, !strip, out);
  if (out->failed) return;
  for (u32 i = 0; i < 4; i++) out->data[length_at + i] = (char)(text_bytes >> (8 * i));
  const u64 sum = sum_of(out->data + begin + HEAD, out->len - begin - HEAD, NULL);
  for (u32 i = 0; i < 8; i++) out->data[begin + HEAD - 8 + i] = (char)(sum >> (8 * i));
}

WeftStatus vm_compile(Vm *vm, Module *m, const char *path, const char *text, size_t len, bool strip, Buf *out) {
  if (len > SOURCE_MOST) return vm_error(vm, EK_limit, "%s: a source text has at most 2 ** 30 bytes", path);
  if (strip && len > WIDTHS_MOST)
    return vm_error(vm, EK_limit, "%s: a text that is left out has at most 2 ** 24 bytes", path);
  const u32 file = vm_add_source(vm, path, text, len);
  if (!file) return WEFT_ERROR;
  Arena arena;
  Proto *p = NULL;
  ModuleScope scope;
  arena_init(&arena, &vm->alloc);
  WeftStatus status = copy_scope(vm, m, &scope) ? module_compile(vm, &scope, &arena, file, false, &p)
                                                : vm_error_memory(vm);
  arena_free(&arena);
  if (status == WEFT_OK) write_program(vm, p, &scope, strip, out);
  if (status == WEFT_OK && out->failed) status = vm_error_memory(vm);
  proto_drop(p);
  scope_free(&scope);
  sources_drop(&vm->sources, file);
  return status;
}

/* ---- reading ---------------------------------------------------------------------------------- */

typedef struct Parts {
  const char *path, *text, *code;
  u32 path_len, text_len;
  size_t code_len;
  u8 kind; /* of text */
} Parts;

static bool is_path(const char *s, u32 len) {
  for (u32 i = 0; i < len; i++)
    if ((u8)s[i] < 32 || s[i] == 127) return false;
  return bytes_are_utf8(s, len);
}

/* A length and so many bytes from *at on; false: they end early. */
static bool take(const char **at, const char *end, const char **out, u32 *len) {
  if (end - *at < 4) return false;
  *len = (u32)get(*at, 4);
  *at += 4;
  if ((size_t)(end - *at) < *len) return false;
  *out = *at;
  *at += *len;
  return true;
}

/* NULL, or what is wrong. */
static const char *take_apart(const char *bytes, size_t len, Parts *out, Toil *t) {
  const char *at = bytes + HEAD, *end = bytes + len;
  if (len < HEAD) return "the bytes end early";
  if (get(bytes + HEAD - 8, 8) != sum_of(at, len - HEAD, t)) return "it was cut or changed since it was compiled";
  if (!take(&at, end, &out->path, &out->path_len)) return "the bytes end early";
  if (!is_path(out->path, out->path_len)) return "its path is none";
  if (at == end) return "the bytes end early";
  out->kind = (u8)*at++;
  if (out->kind > TEXT_WIDTHS) return "there is no such kind of text";
  if (!take(&at, end, &out->text, &out->text_len)) return "the bytes end early";
  out->code = at;
  out->code_len = (size_t)(end - at);
  return NULL;
}

static u32 add_source(Vm *vm, const Parts *parts, const char **wrong, Toil *t) {
  Buf path, text;
  u32 file = 0;
  buf_init(&path, &vm->alloc);
  buf_init(&text, &vm->alloc);
  buf_put(&path, parts->path, parts->path_len);
  const bool hidden = parts->kind == TEXT_WIDTHS;
  if (hidden && !get_widths(parts->text, parts->text_len, &text)) *wrong = "its text is malformed";
  else if (!path.failed && !text.failed && parts->text_len <= SOURCE_MOST)
    file = sources_add_long(&vm->sources, path.len ? buf_text(&path) : "", hidden ? buf_text(&text) : parts->text,
                            hidden ? text.len : parts->text_len, t);
  if (hidden) sources_hide(&vm->sources, file);
  buf_free(&path);
  buf_free(&text);
  return file;
}

/* Messages show the text at these places. */
static bool is_within(const Proto *p, u32 len) {
  bool ok = p->span.len <= len && p->span.start <= len - p->span.len;
  for (u32 i = 0; ok && i < p->ncode; i++) ok = p->spans[i].len <= len && p->spans[i].start <= len - p->spans[i].len;
  for (u32 i = 0; ok && i < p->nprotos; i++) ok = is_within(p->protos[i], len);
  return ok;
}

static WeftStatus refuse_program(Vm *vm, ErrorKind kind, const char *path, const char *why) {
  return vm_error_at(vm, kind, (Span){0}, "cannot load \"%s\": %s", path, why);
}

static WeftStatus load_code(Vm *vm, Module *m, const char *path, const Parts *parts, u32 file, Proto **out, Toil *t) {
  Buf why;
  Name missing;
  buf_init(&why, &vm->alloc);
  WeftStatus status = proto_load(parts->code, parts->code_len, false, file, &vm->alloc, &vm->names, &m->scope, out,
                                 &missing, &why, t);
  if (status == WEFT_OK && !is_within(*out, sources_get(&vm->sources, file)->len)) {
    proto_drop(*out);
    status = refuse_program(vm, EK_syntax, path, "a span lies outside of its source");
  } else if (status != WEFT_OK && missing) {
    status = vm_error_at(vm, EK_name, (Span){0}, "cannot load \"%s\": %s is not declared here, and was where it was "
                         "compiled", path, name_text(&vm->names, missing));
  } else if (status != WEFT_OK) {
    status = why.len ? refuse_program(vm, EK_syntax, path, buf_text(&why)) : vm_error_buf(vm);
  }
  buf_free(&why);
  return status;
}

bool vm_is_compiled(const char *bytes, size_t len) {
  return len >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

WeftStatus vm_run_compiled(Vm *vm, Module *m, const char *path, const char *bytes, size_t len, Value *out) {
  Parts parts;
  if (!vm_is_compiled(bytes, len)) return refuse_program(vm, EK_syntax, path, "these bytes are no compiled program");
  if (len >= HEAD && (get(bytes + 4, 4) != FRAME_VERSION || get(bytes + 8, 8) != proto_tables()))
    return refuse_program(vm, EK_unsupported, path, "it was compiled by another version of Weft: compile it again");
  Toil work;
  vm_toil_begin(vm, &work);
  const char *wrong = take_apart(bytes, len, &parts, &work);
  if (toil_ended(&work)) return vm_error_buf(vm);
  if (wrong) return refuse_program(vm, EK_syntax, path, wrong);
  vm_sweep_sources(vm);
  const u32 file = add_source(vm, &parts, &wrong, &work);
  if (!file) return wrong ? refuse_program(vm, EK_syntax, path, wrong) : vm_error_buf(vm);
  Proto *p = NULL;
  WeftStatus status = load_code(vm, m, path, &parts, file, &p, &work);
  if (status == WEFT_OK) {
    status = module_run(vm, m, p, out);
    proto_drop(p);
  }
  sources_drop(&vm->sources, file);
  return status;
}
