/* mir_patch.c — machine instructions that MIR lacks, put in after linking.
 *
 * The emitter stores a magic word to the frame, does a stand-in, and stores another: the stand-in is a subtraction
 * with the operands wanted (for fma: a product and a sum). Here the pairs are found in the code, what lies between
 * is decoded, and the bytes replaced: no-ops, the loads that the register allocator put there, the instruction. What
 * does not decode as expected fails, and the group is compiled again with calls. */
#include <string.h>

#include "jit/scalar/mir_emitter.h"

bool mir_can_mark(MirMark kind) {
  switch (kind) {
    case MARK_FLOOR:
    case MARK_CEIL:
    case MARK_TRUNC:
    case MARK_RINT: return cpu_has(CPU_SSE41);
    case MARK_FMA: return cpu_has(CPU_FMA);
    default: return true;
  }
}

/* ---- decoding ------------------------------------------------------------------------------ */

/* An SSE instruction: prefix, REX, 0F, opcode, ModRM and what belongs to it. */
typedef struct Sse {
  u8 prefix, rex, opcode, modrm;
  u8 reg, rm;       /* with REX's bits; rm is meaningful for registers */
  const u8 *tail;   /* SIB and displacement */
  size_t tail_length, length;
  bool memory, relative; /* relative to the instruction pointer */
} Sse;

/* Bytes behind ModRM: SIB and displacement. */
static size_t address_length(const u8 *modrm, size_t left) {
  u8 mod = *modrm >> 6, rm = *modrm & 7;
  size_t n = 0;
  if (mod == 3) return 0;
  if (rm == 4) {
    if (left < 2) return 0;
    n = 1;
    if (mod == 0 && (modrm[1] & 7) == 5) n += 4;
  }
  if (mod == 0 && rm == 5) n += 4;
  return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static bool decode(const u8 *p, const u8 *end, Sse *s) {
  const u8 *start = p;
  *s = (Sse){0};
  if (p < end && (*p == 0xF2 || *p == 0xF3 || *p == 0x66)) s->prefix = *p++;
  if (p < end && (*p & 0xF0) == 0x40) s->rex = *p++;
  if (end - p < 3 || *p != 0x0F) return false;
  s->opcode = p[1];
  p += 2;
  s->modrm = *p;
  s->reg = (u8)((s->modrm >> 3 & 7) | (s->rex & 4) << 1);
  s->rm = (u8)((s->modrm & 7) | (s->rex & 1) << 3);
  s->memory = s->modrm >> 6 != 3;
  s->relative = (s->modrm & 0xC7) == 5;
  s->tail = p + 1;
  s->tail_length = address_length(p, (size_t)(end - p));
  p += 1 + s->tail_length;
  if (p > end) return false;
  s->length = (size_t)(p - start);
  return true;
}

/* A move into a float register, as the register allocator puts in. */
static bool is_float_load(const Sse *s) {
  bool scalar = s->opcode == 0x10 && (s->prefix == 0xF2 || s->prefix == 0xF3);
  bool whole = s->opcode == 0x28 && (s->prefix == 0x66 || s->prefix == 0);
  return scalar || whole;
}

/* ---- marks --------------------------------------------------------------------------------- */

typedef struct Mark {
  size_t at, length; /* of the store */
  MirMark kind;
  u32 number;
} Mark;

/* Where the next one may begin. */
static size_t next_store(const u8 *code, size_t at, size_t limit) {
  const u8 *p = memchr(code + at, 0xC7, limit - at);
  return p ? (size_t)(p - code) : limit;
}

/* mov dword [base + disp], MIR_MARK | kind << 12 | number */
static bool find_mark(const u8 *code, size_t at, size_t limit, Mark *m) {
  if (limit - at < 10 || code[at] != 0xC7 || code[at + 1] >> 6 == 3 || (code[at + 1] >> 3 & 7) != 0) return false;
  size_t length = 2 + address_length(code + at + 1, limit - at - 1);
  u32 word;
  if (limit - at < length + 4) return false;
  memcpy(&word, code + at + length, 4);
  if ((word & 0xFFFF0000u) != MIR_MARK || (word >> 12 & 15) >= MARK_COUNT) return false;
  *m = (Mark){at, length + 4, (MirMark)(word >> 12 & 15), word & 0xFFF};
  return true;
}

size_t mir_code_end(const u8 *code, size_t limit, u32 number) {
  Mark m;
  for (size_t at = 0; at < limit && (at = next_store(code, at, limit)) + 16 < limit; at++) {
    if (!find_mark(code, at, limit, &m)) continue;
    at += m.length - 1;
    if (m.kind == MARK_END && m.number == (number & 0xFFF)) return at + 1;
  }
  return 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

typedef struct Out {
  u8 bytes[64];
  size_t length;
  bool failed;
} Out;

static void out_bytes(Out *o, const u8 *bytes, size_t n) {
  if (o->length + n > sizeof o->bytes) {
    o->failed = true;
    return;
  }
  memcpy(o->bytes + o->length, bytes, n);
  o->length += n;
}

static void out_byte(Out *o, u8 b) { out_bytes(o, &b, 1); }

/* prefix REX 0F opcode… ModRM with the register field `reg`, and the operand of `s` in the other. */
static void out_sse(Out *o, u8 prefix, const char *opcode, size_t opcode_length, u8 reg, const Sse *s) {
  u8 rex = (u8)((s->rex & 3) | (reg >> 3 & 1) << 2);
  out_byte(o, prefix);
  if (rex) out_byte(o, (u8)(0x40 | rex));
  out_byte(o, 0x0F);
  out_bytes(o, (const u8 *)opcode, opcode_length);
  out_byte(o, (u8)((s->modrm & 0xC7) | (reg & 7) << 3));
  out_bytes(o, s->tail, s->tail_length);
}

/* Loads the memory operand of a stand-in into a register that the allocator keeps for such, and makes it the
 * operand. */
static void out_load(Out *o, Sse *s) {
  u8 scratch = s->reg == 9 ? 8 : 9;
  if (!s->memory) return;
  out_sse(o, s->prefix, "\x10", 1, scratch, s);
  s->memory = false;
  s->rm = scratch;
  s->modrm = (u8)(0xC0 | (s->modrm & 0x38) | (scratch & 7));
  s->rex = (u8)((s->rex & 4) | 1);
  s->tail_length = 0;
}

/* The byte before may be a REX prefix that belonged to the mark: it must not meet 90 (xchg) or a VEX prefix. One
 * byte is a segment prefix of what follows, without effect. */
static void out_no_ops(u8 *to, size_t n) {
  static const u8 forms[9][9] = {{0x3E}, {0x66, 0x90}, {0x0F, 0x1F, 0x00}, {0x0F, 0x1F, 0x40, 0},
                                 {0x0F, 0x1F, 0x44, 0, 0},
    {0x66, 0x0F, 0x1F, 0x44, 0, 0}, {0x0F, 0x1F, 0x80, 0, 0, 0, 0}, {0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0},
    {0x66, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0}};
  while (n) {
    size_t k = n < 10 ? n : n == 10 ? 5 : 9;
    memcpy(to, forms[k - 1], k);
    to += k;
    n -= k;
  }
}

/* vfmadd213: a = b * a + c. */
static void out_fma(Out *o, const Sse *mul, const Sse *add) {
  bool d = mul->prefix == 0xF2;
  out_byte(o, 0xC4);
  out_byte(o, (u8)((mul->reg & 8 ? 0 : 0x80) | (add->rex & 2 ? 0 : 0x40) | (add->rex & 1 ? 0 : 0x20) | 2));
  out_byte(o, (u8)((d ? 0x80 : 0) | (~mul->rm & 15) << 3 | 1));
  out_byte(o, 0xA9);
  out_byte(o, (u8)((add->modrm & 0xC7) | (mul->reg & 7) << 3));
  out_bytes(o, add->tail, add->tail_length);
}

/* Copies the loads at *p to `o`; they must not touch `busy` (16: none). */
static bool skip_loads(const u8 **p, const u8 *end, Out *o, u8 busy, u8 busy_too) {
  Sse s;
  while (decode(*p, end, &s) && is_float_load(&s)) {
    if (s.relative || s.reg == busy || s.reg == busy_too) return false;
    out_bytes(o, *p, s.length);
    *p += s.length;
  }
  return !o->failed;
}

static bool is_stand_in(const u8 *p, const u8 *end, u8 opcode, Sse *s) {
  return decode(p, end, s) && s->opcode == opcode && (s->prefix == 0xF2 || s->prefix == 0xF3) && !s->relative;
}

typedef struct Place {
  u8 *code; /* the copy */
  size_t length;
  const u8 *address; /* where it will lie */
  const MirThunks *thunks;
} Place;

static bool replace_by_call(const Place *place, const Mark *m) {
  size_t end = m->at + m->length;
  const u8 *thunk = m->kind == MARK_CALL ? place->thunks->call : place->thunks->poll;
  i64 distance = (i64)((u64)(uintptr_t)thunk - (u64)(uintptr_t)(place->address + end));
  i32 near = (i32)distance;
  if (!thunk || near != distance) return false;
  out_no_ops(place->code + m->at, m->length - 5);
  place->code[end - 5] = 0xE8;
  memcpy(place->code + end - 4, &near, 4);
  return true;
}

/* A move of a float register to memory or another one, as the register allocator puts in behind. */
static bool is_float_move(const Sse *s) {
  return is_float_load(s) || (s->opcode == 0x11 && (s->prefix == 0xF2 || s->prefix == 0xF3));
}

typedef struct Bytes {
  size_t at, length;
} Bytes;

/* Is it the store of a stand-in's result to where `m` was stored? */
static bool is_result_store(const Place *place, const Mark *m, const Sse *s) {
  const u8 *mark = place->code + m->at;
  bool extended = m->at && (mark[-1] & 0xF1) == 0x41; /* base register 8 … 15 */
  return s->opcode == 0x11 && s->memory && (s->modrm & 0xC7) == mark[1] && (s->rex & 3) == (extended ? 1 : 0) &&
         s->tail_length == m->length - 6 && memcmp(s->tail, mark + 2, s->tail_length) == 0;
}

/* The closing mark of `m` at p or behind moves; NULL when something else comes first. */
static const u8 *find_close(const Place *place, const u8 *p, const Mark *m, Mark *close, Bytes *store) {
  const u8 *end = place->code + place->length;
  Sse s;
  for (;;) {
    size_t at = (size_t)(p - place->code);
    for (u32 rex = 0; rex < 2; rex++) { /* the mark's own prefix may come first */
      if (rex && (p >= end || (*p & 0xF0) != 0x40)) break;
      if (at + rex < place->length && find_mark(place->code, at + rex, place->length, close))
        return close->kind == MARK_CLOSE && close->number == m->number ? p : NULL;
    }
    if (decode(p, end, &s) && is_float_move(&s)) {
      if (is_result_store(place, m, &s)) *store = (Bytes){at, s.length};
      p += s.length;
      continue;
    }
    /* The address of the frame, from memory: mov r10 or r11, [rbp + disp]. */
    if (end - p > 8 && p[0] == 0x4C && p[1] == 0x8B && (p[2] & 7) == 5 && (p[2] >> 6 == 1 || p[2] >> 6 == 2)) {
      p += p[2] >> 6 == 1 ? 4 : 7;
      continue;
    }
    return NULL;
  }
}

/* Writes the instruction that a stand-in at *p stands for behind what `o` holds; *p goes behind the stand-in. */
static bool write_instruction(const Place *place, const Mark *m, const u8 **p, Out *o) {
  static const u8 rounding[MARK_COUNT] = {[MARK_FLOOR] = 9, [MARK_CEIL] = 10, [MARK_TRUNC] = 11, [MARK_RINT] = 8};
  const u8 *end = place->code + place->length;
  Sse s, add;
  if (!is_stand_in(*p, end, m->kind == MARK_FMA ? 0x59 : 0x5C, &s)) return false;
  *p += s.length;
  switch (m->kind) {
    case MARK_SQRT: out_sse(o, s.prefix, "\x51", 1, s.reg, &s); return true;
    case MARK_MIN: out_sse(o, s.prefix, "\x5D", 1, s.reg, &s); return true;
    case MARK_MAX: out_sse(o, s.prefix, "\x5F", 1, s.reg, &s); return true;
    case MARK_OR:
    case MARK_AND: /* 128 bits wide: never on memory */
      out_load(o, &s);
      out_sse(o, 0x66, m->kind == MARK_OR ? "\x56" : "\x54", 1, s.reg, &s);
      return true;
    case MARK_FMA:
      out_load(o, &s);
      if (!skip_loads(p, end, o, s.reg, s.rm) || !is_stand_in(*p, end, 0x58, &add) || add.reg != s.reg ||
          add.prefix != s.prefix)
        return false;
      *p += add.length;
      if (!add.memory && add.rm == s.reg) return false;
      out_fma(o, &s, &add);
      return true;
    case MARK_FLOOR:
    case MARK_CEIL:
    case MARK_TRUNC:
    case MARK_RINT:
      out_sse(o, 0x66, s.prefix == 0xF2 ? "\x3A\x0B" : "\x3A\x0A", 2, s.reg, &s);
      out_byte(o, rounding[m->kind]);
      return true;
    default: return false;
  }
}

/* Replaces what is between two marks; gives the offset behind the second, 0 when it cannot, which includes that
 * there is nothing. */
static size_t replace(const Place *place, const Mark *m, u64 *patched) {
  u8 *code = place->code;
  const u8 *end = code + place->length, *p = code + m->at + m->length;
  Out o = {.length = 0};
  Mark close;
  Bytes store = {0, 0};
  if (!skip_loads(&p, end, &o, 16, 16) || !write_instruction(place, m, &p, &o) ||
      !find_close(place, p, m, &close, &store))
    return 0;
  size_t room = (size_t)(p - (code + m->at));
  if (o.failed || o.length > room || (m->kind == MARK_FMA && room - o.length < 2)) return 0;
  out_no_ops(code + m->at, room - o.length);
  memcpy(code + m->at + room - o.length, o.bytes, o.length);
  out_no_ops(code + store.at, store.length);
  out_no_ops(code + close.at, close.length);
  ++*patched;
  return close.at + close.length;
}

bool mir_patch(u8 *bytes, size_t length, const u8 *address, const MirThunks *thunks, u64 *patched) {
  Place place = {bytes, length, address, thunks};
  Mark m;
  for (size_t at = 0; (at = next_store(bytes, at, length)) < length;) {
    if (!find_mark(bytes, at, length, &m)) {
      at++;
      continue;
    }
    at += m.length;
    if (m.kind == MARK_END) {
      out_no_ops(bytes + m.at, m.length);
    } else if (m.kind == MARK_CALL || m.kind == MARK_POLL) {
      if (!replace_by_call(&place, &m)) return false;
      ++*patched;
    } else if (m.kind == MARK_CLOSE || !(at = replace(&place, &m, patched))) {
      return false;
    }
  }
  return true;
}

/* ---- the thunk ----------------------------------------------------------------------------- */

/* With rbp at the saved rbp, the frame begins behind that and the return address. */
enum { THUNK_FRAME = 16, THUNK_ROOM = 208 };

/* Moves between a register and [rbp + disp], 64 bits. */
static u8 *move_general(u8 *p, u8 opcode, u8 reg, i8 disp) {
  *p++ = (u8)(0x48 | (reg & 8 ? 4 : 0));
  *p++ = opcode;
  *p++ = (u8)(0x45 | (reg & 7) << 3);
  *p++ = (u8)disp;
  return p;
}

static u8 *move_float(u8 *p, u8 opcode, u8 reg, i32 disp) {
  *p++ = 0xF2;
  if (reg & 8) *p++ = 0x44;
  *p++ = 0x0F;
  *p++ = opcode;
  *p++ = (u8)(0x85 | (reg & 7) << 3);
  memcpy(p, &disp, 4);
  return p + 4;
}

size_t mir_thunk(u8 *code, u64 (*poll)(LoopCtx *)) {
  /* rax rcx rdx rsi rdi r8 … r11: the others the callee keeps */
  static const u8 kept[] = {0, 1, 2, 6, 7, 8, 9, 10, 11};
  static const u8 enter[] = {0x55, 0x48, 0x89, 0xE5, 0x48, 0x81, 0xEC, THUNK_ROOM, 0, 0, 0, 0x48, 0x83, 0xE4, 0xF0};
  static const u8 leave[] = {0x48, 0x89, 0xEC, 0x5D, 0xC3};
  enum { STORE = 0x89, LOAD = 0x8B, STORE_SD = 0x11, LOAD_SD = 0x10, RAX = 0, RSI = 6, RDI = 7 };
  u8 *p = code;
  memcpy(p, enter, sizeof enter);
  p += sizeof enter;
  for (u32 i = 0; i < COUNT_OF(kept); i++) p = move_general(p, STORE, kept[i], (i8)(-8 * ((i32)i + 1)));
  for (u8 i = 0; i < 16; i++) p = move_float(p, STORE_SD, i, -80 - 8 * i);
  if (poll) {
    p = move_general(p, LOAD, RDI, THUNK_FRAME + FRAME_CTX);
    *p++ = 0x48; /* mov rax, poll; call rax */
    *p++ = 0xB8;
    memcpy(p, &poll, 8);
    p += 8;
    *p++ = 0xFF;
    *p++ = 0xD0;
  } else {
    p = move_general(p, LOAD, RDI, THUNK_FRAME + FRAME_ARG);
    p = move_general(p, LOAD, RSI, THUNK_FRAME + FRAME_ARG2);
    *p++ = 0xFF; /* call [rbp + …] */
    *p++ = 0x55;
    *p++ = THUNK_FRAME + FRAME_CALL;
  }
  p = move_general(p, STORE, RAX, THUNK_FRAME + FRAME_ANSWER);
  for (u32 i = 0; i < COUNT_OF(kept); i++) p = move_general(p, LOAD, kept[i], (i8)(-8 * ((i32)i + 1)));
  for (u8 i = 0; i < 16; i++) p = move_float(p, LOAD_SD, i, -80 - 8 * i);
  memcpy(p, leave, sizeof leave);
  return (size_t)(p + sizeof leave - code);
}
