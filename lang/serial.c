/* serial.c — compiled functions as bytes: magic, version, names, module slots, then each function's tables in order.
 *
 * Numbers take as many bytes as they need: seven bits in each, the lowest first, and the top bit says that another one
 * follows (LEB128). Signed ones are folded first: 0 -1 1 -2 … are 0 1 2 3 … Names and slots are numbered as they first
 * occur. Sites and the writes of extents are not stored: the code says them. Names of local variables and texts of
 * defaults, which messages and debuggers show, are stored where they are asked for. Nothing that is read is trusted:
 * counts are compared with the bytes left, and the result is verified. */
#include "lang/compile.h"
#include "lang/dtypes.h"
#include "lang/ops.h"

#include <string.h>

static const char magic[4] = {'W', 'F', 'B', 'C'};
enum { FORMAT_VERSION = 3 };

/* ---- writing -------------------------------------------------------------------------------------------- */

typedef struct Writer {
  const Names *names;
  const ModuleScope *scope;
  Buf body;
  u32 *name_ids, *slot_ids; /* + 1; 0: not seen yet */
  VEC(u32) used_names;
  VEC(u32) used_slots;
  u32 place; /* of the source, where the last span began */
  bool shown; /* with what messages and debuggers show */
  bool failed;
} Writer;

static void put_bytes(Buf *b, u64 n, u32 bytes) {
  char text[8];
  for (u32 i = 0; i < bytes; i++) text[i] = (char)(n >> (8 * i));
  buf_put(b, text, bytes);
}

static void put_number(Buf *b, u64 n) {
  char text[10];
  u32 bytes = 0;
  for (; n >= 0x80; n >>= 7) text[bytes++] = (char)(n | 0x80);
  text[bytes++] = (char)n;
  buf_put(b, text, bytes);
}
static u64 folded(i64 n) { return (u64)n << 1 ^ (n < 0 ? UINT64_MAX : 0); }
static i64 unfolded(u64 n) { return (i64)(n >> 1 ^ (n & 1 ? UINT64_MAX : 0)); }

static void put8(Writer *w, u32 n) { put_bytes(&w->body, n, 1); }
static void put32(Writer *w, u32 n) { put_number(&w->body, n); }
static void put_signed(Writer *w, i64 n) { put_number(&w->body, folded(n)); }

static u32 name_id(Writer *w, Name name) {
  if (w->name_ids[name]) return w->name_ids[name] - 1;
  if (!vec_push(w->body.alloc, &w->used_names, name)) {
    w->failed = true;
    return 0;
  }
  return (w->name_ids[name] = w->used_names.count) - 1;
}

static u32 slot_id(Writer *w, u32 slot) {
  if (w->slot_ids[slot]) return w->slot_ids[slot] - 1;
  if (!vec_push(w->body.alloc, &w->used_slots, slot)) {
    w->failed = true;
    return 0;
  }
  return (w->slot_ids[slot] = w->used_slots.count) - 1;
}

static void put_name(Writer *w, Name name) { put32(w, name_id(w, name)); }

/* Spans that follow each other lie close together: each is written by its distance from the one before. */
static void serial_put_span(Writer *w, Span at) {
  put_signed(w, (i64)at.start - (i64)w->place);
  put32(w, at.len);
  w->place = at.start;
}

static void put_text(Buf *b, const char *s, u32 len) {
  put_number(b, len);
  buf_put(b, s, len);
}

static void serial_put_const(Writer *w, const Const *k) {
  put8(w, k->kind);
  if (k->kind == CK_TEXT) put_text(&w->body, k->text, k->len);
  else if (k->kind == CK_FLOAT || k->kind == CK_IMAG) put_bytes(&w->body, (u64)k->i, 8);
  else put_signed(w, k->i);
}

static void serial_put_desc(Writer *w, const Desc *d) {
  put8(w, d->kind);
  switch (d->kind) {
  case DESC_NAME: put_name(w, d->name); break;
  case DESC_KEYS: case DESC_UNPACK:
    put32(w, d->name_count);
    for (u32 i = 0; i < d->name_count; i++) put_name(w, d->names[i]);
    put32(w, d->before);
    put32(w, d->after);
    put8(w, d->has_rest);
    break;
  case DESC_CALL:
    put32(w, d->argc);
    for (u32 i = 0; i < d->argc; i++) {
      put_name(w, d->names[i]);
      put8(w, d->spread[i]);
    }
    break;
  case DESC_INDEX: case DESC_PATH:
    put32(w, d->item_count);
    buf_put(&w->body, (const char *)d->items, d->item_count);
    put32(w, d->step_count);
    for (u32 i = 0; i < d->step_count; i++) {
      put8(w, d->steps[i].kind);
      put_name(w, d->steps[i].field);
      put32(w, d->steps[i].item_count);
    }
    put8(w, d->op);
    put8(w, d->root);
    put32(w, d->root == ROOT_MODULE ? slot_id(w, d->root_slot) : 0);
    break;
  default:
    put_name(w, d->type_name);
    put_name(w, d->param);
    put8(w, d->dtype);
    put8(w, d->has_dims);
    put32(w, d->rank);
    for (u32 i = 0; i < d->rank; i++) {
      put_signed(w, d->dim_consts[i]);
      put_name(w, d->dim_names[i]);
      put32(w, d->dim_regs[i]);
      put8(w, d->dim_binds[i]);
    }
  }
}

/* The top bit of an operand, which tells constants from registers, becomes the lowest one. */
static u32 turned(u32 operand) { return (operand << 1 | operand >> 15) & 0xffff; }
static u32 turned_back(u32 operand) { return (operand >> 1 | operand << 15) & 0xffff; }

enum { INS_FLAGGED = 0x80 }; /* with the operation: a byte of flags follows */

static void put_ins(Writer *w, Ins ins) {
  u32 op = ins_op(ins), flags = ins_flags(ins);
  if (op == BC_getmod || op == BC_setmod) ins = ins_make_x(op, flags, ins_a(ins), slot_id(w, ins_x(ins)));
  put8(w, op | (flags ? INS_FLAGGED : 0));
  if (flags) put8(w, flags);
  put32(w, turned(ins_a(ins)));
  put32(w, turned(ins_b(ins)));
  put32(w, turned(ins_c(ins)));
}
_Static_assert((u32)BC_COUNT <= INS_FLAGGED, "an operation and a mark share a byte");

static void put_extent(Writer *w, const Extent *e) {
  put8(w, e->kind);
  u32 fields[] = {e->begin, e->head, e->els, e->end, e->parent};
  for (u32 i = 0; i < COUNT_OF(fields); i++) put32(w, fields[i]);
}

static void put_local(Writer *w, const LocalName *v) {
  put_name(w, v->name);
  put32(w, v->reg);
  put_signed(w, (i64)v->at - (i64)w->place);
  put32(w, v->from);
  put32(w, v->until + 1); /* 0: to the end */
}

enum { DEFAULT_NONE, DEFAULT_HIDDEN, DEFAULT_SHOWN }; /* of a parameter; SHOWN: its text follows */

static void put_proto(Writer *w, const Proto *p) {
  put_name(w, p->name);
  serial_put_span(w, p->span);
  put8(w, p->doc != NULL);
  if (p->doc) put_text(&w->body, p->doc, (u32)strlen(p->doc));
  u32 heads[] = {p->npositional, (u32)p->rest_index, p->nregs, p->group_index, p->group_size};
  for (u32 i = 0; i < COUNT_OF(heads); i++) put32(w, heads[i]);
  put32(w, p->nparams);
  for (u32 i = 0; i < p->nparams; i++) {
    put_name(w, p->params[i].name);
    const char *initial = w->shown ? p->params[i].initial : NULL;
    put8(w, initial ? DEFAULT_SHOWN : p->params[i].has_default);
    if (initial) put_text(&w->body, initial, (u32)strlen(initial));
    put8(w, p->params[i].keyword_only);
  }
  put32(w, p->ncode);
  for (u32 i = 0; i < p->ncode; i++) put_ins(w, p->code[i]);
  for (u32 i = 0; i < p->ncode; i++) serial_put_span(w, p->spans[i]);
  put32(w, p->nconsts);
  for (u32 i = 0; i < p->nconsts; i++) serial_put_const(w, &p->consts[i]);
  put32(w, p->ndescs);
  for (u32 i = 0; i < p->ndescs; i++) serial_put_desc(w, &p->descs[i]);
  put32(w, p->nextents);
  for (u32 i = 0; i < p->nextents; i++) put_extent(w, &p->extents[i]);
  put32(w, p->ncaptures);
  for (u32 i = 0; i < p->ncaptures; i++) {
    put8(w, p->captures[i].kind);
    put32(w, p->captures[i].index);
    put_name(w, p->captures[i].name);
  }
  put32(w, w->shown ? p->nlocals : 0);
  for (u32 i = 0; w->shown && i < p->nlocals; i++) put_local(w, &p->locals[i]);
  put32(w, p->nprotos);
  for (u32 i = 0; i < p->nprotos; i++) put_proto(w, p->protos[i]);
}

/* Flags of a module variable in the file. */
enum { SLOT_NAMED, SLOT_DECLARED, SLOT_GIVEN };
static u32 slot_kind(u8 flags) {
  return !(flags & MODVAR_DECLARED) ? SLOT_NAMED : flags & MODVAR_GIVEN ? SLOT_GIVEN : SLOT_DECLARED;
}

void proto_save(const Proto *p, const Names *names, const ModuleScope *scope, bool shown, Buf *out) {
  Writer w = {.names = names, .scope = scope, .shown = shown};
  buf_init(&w.body, out->alloc);
  size_t name_bytes = sizeof(u32) * names->count, slot_bytes = sizeof(u32) * (scope->slots.count + (size_t)1);
  w.name_ids = mem_alloc_zero(out->alloc, name_bytes);
  w.slot_ids = mem_alloc_zero(out->alloc, slot_bytes);
  w.failed = !w.name_ids || !w.slot_ids;
  if (!w.failed) put_proto(&w, p);
  for (u32 i = 0; !w.failed && i < w.used_slots.count; i++) (void)name_id(&w, scope->slots.data[w.used_slots.data[i]]);
  if (!w.failed) {
    buf_put(out, magic, sizeof magic);
    put_bytes(out, FORMAT_VERSION, 4);
    put_number(out, w.used_names.count);
    for (u32 i = 0; i < w.used_names.count; i++)
      put_text(out, name_text(names, w.used_names.data[i]), name_len(names, w.used_names.data[i]));
    put_number(out, w.used_slots.count);
    for (u32 i = 0; i < w.used_slots.count; i++) {
      put_number(out, name_id(&w, scope->slots.data[w.used_slots.data[i]]));
      put_bytes(out, slot_kind(scope->flags.data[w.used_slots.data[i]]), 1);
    }
    buf_put(out, w.body.data, w.body.len);
  }
  out->failed |= w.failed || w.body.failed;
  mem_free(out->alloc, w.name_ids, name_bytes);
  mem_free(out->alloc, w.slot_ids, slot_bytes);
  vec_free(out->alloc, &w.used_names);
  vec_free(out->alloc, &w.used_slots);
  buf_free(&w.body);
}

/* ---- reading --------------------------------------------------------------------------------------------- */

typedef struct Reader {
  const char *at, *end;
  u32 file;
  Allocator *alloc;
  Names *names;
  ModuleScope *scope;
  Arena tables;  /* of the two below */
  Name *name_of; /* as numbered in the file */
  u32 name_count;
  u32 *slot_of;
  u8 *slot_flags;
  u32 slot_count;
  Arena *arena; /* of the function that is being read */
  u32 depth;
  u32 place; /* of the source, where the last span began */
  const char *wrong; /* what is malformed; NULL: memory was refused, or it is to end */
  bool failed;
  Toil *toil;
} Reader;

static void malformed(Reader *r, const char *what) {
  if (!r->failed) r->wrong = what;
  r->failed = true;
}

static void refused(Reader *r) { r->failed = true; }

static u64 get_bytes(Reader *r, u32 bytes) {
  if (r->failed || (size_t)(r->end - r->at) < bytes) {
    malformed(r, "the bytes end early");
    return 0;
  }
  u64 n = 0;
  for (u32 i = 0; i < bytes; i++) n |= (u64)(u8)r->at[i] << (8 * i);
  r->at += bytes;
  return n;
}

static u64 get_number(Reader *r) {
  u64 n = 0;
  if (!toil(r->toil, 1)) refused(r);
  for (u32 shift = 0;; shift += 7) {
    const u64 part = get_bytes(r, 1);
    if (shift == 63 && part > 1) malformed(r, "a number is too long");
    if (r->failed) return 0;
    n |= (part & 0x7f) << shift;
    if (part < 0x80) return n;
  }
}
static u8 get8(Reader *r) { return (u8)get_bytes(r, 1); }
static u32 get32(Reader *r) {
  const u64 n = get_number(r);
  if (n > UINT32_MAX) malformed(r, "a number is too large");
  return r->failed ? 0 : (u32)n;
}
static i64 get_signed(Reader *r) { return unfolded(get_number(r)); }

static bool get_bool(Reader *r) {
  u8 b = get8(r);
  if (b > 1) malformed(r, "a truth value is neither 0 nor 1");
  return b == 1;
}

/* A count of things that take at least `bytes` each. */
static u32 get_count(Reader *r, u32 bytes) {
  u32 n = get32(r);
  if (!r->failed && n > (size_t)(r->end - r->at) / bytes) malformed(r, "a count is larger than the bytes that follow");
  return r->failed ? 0 : n;
}

static void *room(Reader *r, size_t size, u32 count) {
  if (r->failed || !count) return NULL;
  void *p = arena_alloc(r->arena, size * count);
  if (!p) refused(r);
  return p;
}

static const char *get_text(Reader *r, u32 *len) {
  *len = get_count(r, 1);
  const char *s = r->failed ? NULL : arena_copy_long(r->arena, r->at, *len, r->toil);
  if (!r->failed && !s) refused(r);
  if (!r->failed && !bytes_are_utf8_long(s, *len, r->toil)) {
    if (toil_ended(r->toil)) refused(r);
    else malformed(r, "a text is no UTF-8");
  }
  if (!r->failed) r->at += *len;
  return s;
}

static Name get_name(Reader *r) {
  u32 id = get32(r);
  if (!r->failed && id >= r->name_count) malformed(r, "a name is out of bounds");
  return r->failed ? 0 : r->name_of[id];
}

static u32 map_slot(Reader *r, u32 id) {
  if (!r->failed && id >= r->slot_count) malformed(r, "a module slot is out of bounds");
  return r->failed ? 0 : r->slot_of[id];
}

static Span get_span(Reader *r) {
  Span at = {.file = r->file};
  const u64 start = (u64)r->place + (u64)get_signed(r); /* below 0 it is a huge one */
  if (start > UINT32_MAX) malformed(r, "a span lies outside of its source");
  at.start = r->place = r->failed ? 0 : (u32)start;
  at.len = get32(r);
  if (at.len > UINT32_MAX - at.start) malformed(r, "a span is too long");
  return at;
}

static Const get_const(Reader *r) {
  Const k = {.kind = get8(r)};
  if (k.kind == CK_TEXT) k.text = get_text(r, &k.len);
  else if (k.kind == CK_FLOAT || k.kind == CK_IMAG) k.i = (i64)get_bytes(r, 8);
  else k.i = get_signed(r);
  return k;
}

static void get_path(Reader *r, Desc *d) {
  d->item_count = get_count(r, 1);
  u8 *items = room(r, 1, d->item_count);
  for (u32 i = 0; !r->failed && i < d->item_count; i++) items[i] = get8(r);
  d->items = items;
  d->step_count = get_count(r, 3);
  PathStep *steps = room(r, sizeof *steps, d->step_count);
  u32 item = 0;
  for (u32 i = 0; !r->failed && i < d->step_count; i++) {
    steps[i].kind = get8(r);
    steps[i].field = get_name(r);
    steps[i].item_first = item;
    steps[i].item_count = get32(r);
    item += steps[i].item_count; /* the verifier compares */
  }
  d->steps = steps;
  d->op = get8(r);
  d->root = get8(r);
  u32 slot = get32(r);
  if (d->root == ROOT_MODULE) d->root_slot = map_slot(r, slot);
}

static void get_annotation(Reader *r, Desc *d) {
  d->type_name = get_name(r);
  d->param = get_name(r);
  d->dtype = get8(r);
  d->has_dims = get_bool(r);
  d->rank = get_count(r, 4);
  i64 *consts = room(r, sizeof *consts, d->rank);
  Name *names = room(r, sizeof *names, d->rank);
  u16 *regs = room(r, sizeof *regs, d->rank);
  u8 *binds = room(r, 1, d->rank);
  for (u32 i = 0; !r->failed && i < d->rank; i++) {
    consts[i] = get_signed(r);
    names[i] = get_name(r);
    u32 reg = get32(r);
    if (reg > 0xffff) malformed(r, "a register is out of bounds");
    regs[i] = (u16)reg;
    binds[i] = get8(r);
  }
  d->dim_consts = consts;
  d->dim_names = names;
  d->dim_regs = regs;
  d->dim_binds = binds;
}

static Desc get_desc(Reader *r) {
  Desc d = {.kind = get8(r)};
  switch (d.kind) {
  case DESC_NAME: d.name = get_name(r); break;
  case DESC_KEYS: case DESC_UNPACK: {
    d.name_count = get_count(r, 1);
    Name *names = room(r, sizeof *names, d.name_count);
    for (u32 i = 0; !r->failed && i < d.name_count; i++) names[i] = get_name(r);
    d.names = names;
    d.before = get32(r);
    d.after = get32(r);
    d.has_rest = get_bool(r);
    break;
  }
  case DESC_CALL: {
    d.argc = d.name_count = get_count(r, 2);
    Name *names = room(r, sizeof *names, d.argc);
    u8 *spread = room(r, 1, d.argc);
    for (u32 i = 0; !r->failed && i < d.argc; i++) {
      names[i] = get_name(r);
      spread[i] = get8(r);
    }
    d.names = names;
    d.spread = spread;
    break;
  }
  case DESC_INDEX: case DESC_PATH: get_path(r, &d); break;
  case DESC_ANNOT: get_annotation(r, &d); break;
  default: malformed(r, "there is no such descriptor");
  }
  return d;
}

static Ins get_ins(Reader *r) {
  const u32 first = get8(r), op = first & (INS_FLAGGED - 1);
  const u32 flags = first & INS_FLAGGED ? get8(r) : 0;
  u32 operands[3];
  for (u32 i = 0; i < 3; i++) {
    const u32 operand = get32(r);
    if (operand > 0xffff) malformed(r, "an operand is out of bounds");
    operands[i] = turned_back(operand);
  }
  Ins ins = ins_make(op, flags, operands[0], operands[1], operands[2]);
  if (op == BC_getmod || op == BC_setmod) ins = ins_make_x(op, ins_flags(ins), ins_a(ins), map_slot(r, ins_x(ins)));
  return ins;
}

static Extent get_extent(Reader *r) {
  Extent e = {.kind = get8(r)};
  u32 *fields[] = {&e.begin, &e.head, &e.els, &e.end, &e.parent};
  for (u32 i = 0; i < COUNT_OF(fields); i++) *fields[i] = get32(r);
  return e;
}

static LocalName get_local(Reader *r) {
  LocalName v = {.name = get_name(r), .reg = get32(r)};
  const u64 at = (u64)r->place + (u64)get_signed(r); /* below 0 it is a huge one */
  if (at > UINT32_MAX) malformed(r, "a variable lies outside of its source");
  v.at = r->failed ? 0 : (u32)at;
  v.from = get32(r);
  v.until = get32(r) - 1;
  return v;
}

static void get_head(Reader *r, Proto *p) {
  p->name = get_name(r);
  p->span = get_span(r);
  u32 len;
  if (get_bool(r)) p->doc = get_text(r, &len);
  p->npositional = get32(r);
  p->rest_index = (i32)get32(r);
  p->nregs = get32(r);
  p->group_index = get32(r);
  p->group_size = get32(r);
  p->nparams = get_count(r, 3);
  p->params = room(r, sizeof *p->params, p->nparams);
  for (u32 i = 0; !r->failed && i < p->nparams; i++) {
    p->params[i].name = get_name(r);
    const u8 initial = get8(r);
    if (initial > DEFAULT_SHOWN) malformed(r, "there is no such kind of default");
    p->params[i].has_default = initial != DEFAULT_NONE;
    if (initial == DEFAULT_SHOWN) p->params[i].initial = get_text(r, &len);
    p->params[i].keyword_only = get_bool(r);
  }
}

static void get_tables(Reader *r, Proto *p) {
  p->ncode = get_count(r, 6);
  p->code = room(r, sizeof *p->code, p->ncode);
  p->spans = room(r, sizeof *p->spans, p->ncode);
  for (u32 i = 0; !r->failed && i < p->ncode; i++) p->code[i] = get_ins(r);
  for (u32 i = 0; !r->failed && i < p->ncode; i++) p->spans[i] = get_span(r);
  p->nconsts = get_count(r, 2);
  p->consts = room(r, sizeof *p->consts, p->nconsts);
  for (u32 i = 0; !r->failed && i < p->nconsts; i++) p->consts[i] = get_const(r);
  p->ndescs = get_count(r, 2);
  p->descs = room(r, sizeof *p->descs, p->ndescs);
  for (u32 i = 0; !r->failed && i < p->ndescs; i++) p->descs[i] = get_desc(r);
  p->nextents = get_count(r, 6);
  p->extents = room(r, sizeof *p->extents, p->nextents);
  for (u32 i = 0; !r->failed && i < p->nextents; i++) p->extents[i] = get_extent(r);
  p->ncaptures = get_count(r, 3);
  p->captures = room(r, sizeof *p->captures, p->ncaptures);
  for (u32 i = 0; !r->failed && i < p->ncaptures; i++) {
    p->captures[i].kind = get8(r);
    u32 index = get32(r);
    if (index > 0xffff) malformed(r, "a capture is out of bounds");
    p->captures[i].index = (u16)index;
    p->captures[i].name = get_name(r);
  }
  p->nlocals = get_count(r, 5);
  p->locals = room(r, sizeof *p->locals, p->nlocals);
  for (u32 i = 0; !r->failed && i < p->nlocals; i++) p->locals[i] = get_local(r);
}

static Proto *get_proto(Reader *r);

static void get_children(Reader *r, Proto *p) {
  u32 n = get_count(r, 16);
  p->protos = room(r, sizeof *p->protos, n);
  for (u32 i = 0; !r->failed && i < n; i++) {
    p->protos[i] = get_proto(r);
    p->nprotos += p->protos[i] != NULL;
  }
  for (u32 i = 0; !r->failed && i < n; i++) {
    Proto *k = p->protos[i];
    if (k->group_index > i || k->group_size > n - (i - k->group_index)) {
      malformed(r, "a function is not in its group");
      break;
    }
    k->group = arena_alloc(&k->arena, sizeof *k->group * (k->group_size + (size_t)1));
    if (!k->group) refused(r);
    else memcpy(k->group, p->protos + (i - k->group_index), sizeof *k->group * k->group_size);
  }
}

static Proto *get_proto(Reader *r) {
  if (r->failed) return NULL;
  if (++r->depth > AST_MAX_DEPTH) malformed(r, "functions nest too deep");
  Proto *p = mem_alloc_zero(r->alloc, sizeof *p);
  if (!p) refused(r);
  if (r->failed) {
    mem_free(r->alloc, p, sizeof *p);
    return NULL;
  }
  Arena *outer = r->arena;
  arena_init(&p->arena, r->alloc);
  r->arena = &p->arena;
  p->refs = 1;
  p->file = r->file;
  get_head(r, p);
  get_tables(r, p);
  get_children(r, p);
  for (u32 pc = 0; !r->failed && pc < p->ncode; pc++) /* sites read the table of instructions */
    if (ins_op(p->code[pc]) >= BC_COUNT || (ins_op(p->code[pc]) == BC_setpath && ins_c(p->code[pc]) >= p->ndescs))
      malformed(r, "there is no such instruction");
  if (!r->failed && !proto_sites(p)) refused(r);
  r->arena = outer;
  r->depth--;
  return p;
}

static void get_names(Reader *r) {
  r->name_count = get_count(r, 1);
  r->name_of = room(r, sizeof *r->name_of, r->name_count);
  for (u32 i = 0; !r->failed && i < r->name_count; i++) {
    u32 len;
    const char *s = get_text(r, &len);
    if (r->failed) return;
    r->name_of[i] = name_intern(r->names, s, len);
    if (len && !r->name_of[i]) refused(r);
  }
}

static void get_slots(Reader *r) {
  r->slot_count = get_count(r, 2);
  r->slot_of = room(r, sizeof *r->slot_of, r->slot_count);
  r->slot_flags = room(r, 1, r->slot_count);
  for (u32 i = 0; !r->failed && i < r->slot_count; i++) {
    Name name = get_name(r);
    const u8 kind = get8(r);
    if (kind > SLOT_GIVEN) malformed(r, "there is no such kind of module slot");
    r->slot_flags[i] = kind == SLOT_DECLARED ? MODVAR_DECLARED : kind == SLOT_GIVEN ? MODVAR_GIVEN : 0;
    if (!r->failed && !name) malformed(r, "a module slot has no name");
    if (!r->failed && !scope_add(r->scope, name, &r->slot_of[i])) refused(r);
  }
}

static bool is_builtin_slot(const Reader *r, u32 slot) {
  const Name name = r->scope->slots.data[slot];
  return builtin_find(name_text(r->names, name), name_len(r->names, name)).kind != BUILTIN_NONE;
}

/* What others declared where the program was compiled must be there now; 0, or the name of what is not. */
static Name find_missing(const Reader *r) {
  for (u32 i = 0; i < r->slot_count; i++) {
    const u32 slot = r->slot_of[i];
    const bool given = r->slot_flags[i] & MODVAR_GIVEN;
    if (given && !(r->scope->flags.data[slot] & MODVAR_DECLARED) && !is_builtin_slot(r, slot))
      return r->scope->slots.data[slot];
  }
  return 0;
}

/* Names that mean something are declared when all is proved. */
static void declare_slots(Reader *r) {
  for (u32 i = 0; i < r->slot_count; i++) {
    u32 slot = r->slot_of[i];
    u8 flags = r->scope->flags.data[slot];
    if (!flags && is_builtin_slot(r, slot)) flags = MODVAR_BUILTIN;
    r->scope->flags.data[slot] = flags | (r->slot_flags[i] & MODVAR_DECLARED);
  }
}

static bool all_writes(Proto *p, Allocator *alloc) {
  for (u32 i = 0; i < p->nprotos; i++)
    if (!all_writes(p->protos[i], alloc)) return false;
  return proto_writes(p, alloc);
}

WeftStatus proto_load(const char *bytes, size_t len, bool trusted, u32 file, Allocator *alloc, Names *names,
                      ModuleScope *scope, Proto **out, Name *missing, Buf *why, Toil *t) {
  Reader r = {.at = bytes, .end = bytes + len, .file = file, .alloc = alloc, .names = names, .scope = scope,
              .toil = t};
  *out = NULL;
  *missing = 0;
  arena_init(&r.tables, alloc);
  r.arena = &r.tables;
  bool known = len >= 8 && memcmp(bytes, magic, sizeof magic) == 0;
  if (!known) malformed(&r, "these bytes are no compiled Weft code");
  else r.at += sizeof magic;
  if (known && get_bytes(&r, 4) != FORMAT_VERSION) malformed(&r, "compiled by another version");
  get_names(&r);
  get_slots(&r);
  Proto *p = get_proto(&r);
  if (!r.failed && r.at != r.end) malformed(&r, "there are bytes behind the code");
  bool ok = !r.failed && (trusted || proto_verify(p, scope->slots.count, names->count, alloc, why, t));
  if (r.failed && r.wrong) buf_puts(why, r.wrong);
  if (ok) ok = all_writes(p, alloc);
  if (ok) ok = !(*missing = find_missing(&r));
  if (ok) declare_slots(&r);
  arena_free(&r.tables);
  if (ok) *out = p;
  else proto_drop(p);
  return ok ? WEFT_OK : WEFT_ERROR;
}

/* ---- which tables ------------------------------------------------------------------------------------- */

/* FNV-1a of 64 bits (Fowler, Noll, Vo: draft-eastlake-fnv). The NUL counts, so that names do not run together. */
static u64 mix(u64 h, const char *s) {
  do h = (h ^ (u8)*s) * 0x100000001b3u;
  while (*s++);
  return h;
}

u64 proto_tables(void) {
  u64 h = 0xcbf29ce484222325u;
  for (u32 i = 0; i < BC_COUNT; i++) h = mix(mix(mix(h, bc_info[i].name), bc_info[i].form), bc_info[i].effects);
  for (u32 i = 1; i < OP_COUNT; i++) h = mix(h, op_name(i));
  for (u32 i = 1; i < DT_COUNT; i++) h = mix(h, dtype_name(i));
  for (u32 i = 0; i < OP_MODULE_COUNT; i++) h = mix(h, op_modules[i]);
  return h;
}
