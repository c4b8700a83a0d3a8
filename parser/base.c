/* base.c — arenas, buffers and names (see base.h). */
#include "parser/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <sys/random.h>
#endif

/* ---- memory ------------------------------------------------------------------------------- */

static void *system_resize(Allocator *self, void *p, size_t old_size, size_t new_size) {
  (void)self;
  (void)old_size;
  if (new_size == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, new_size);
}

Allocator *allocator_system(void) {
  static const Allocator system = {system_resize}; /* holds nothing that could change */
  return (Allocator *)(uintptr_t)&system;
}

void *mem_alloc_zero(Allocator *a, size_t n) {
  void *p = mem_alloc(a, n);
  if (p) memset(p, 0, n);
  return p;
}

bool vec_reserve(Allocator *a, void **data, u32 *cap, u32 need, size_t size) {
  if (need <= *cap) return true;
  u64 want = *cap ? (u64)*cap * 2 : 8;
  if (want < need) want = need;
  if (want > UINT32_MAX) {
    if (need == UINT32_MAX) return false;
    want = need;
  }
  void *p = mem_resize(a, *data, *cap * size, (size_t)want * size);
  if (!p) return false;
  *data = p;
  *cap = (u32)want;
  return true;
}

struct ArenaChunk {
  ArenaChunk *older;
  size_t size; /* bytes of payload */
  size_t older_used;
  size_t pad;
};
_Static_assert(sizeof(ArenaChunk) % 16 == 0, "chunk payload must stay 16-aligned");

/* Bytes of the first chunk with its head, and of what those that follow hold at most: most arenas hold little, and
 * every region has several. */
enum { ARENA_LEAST = 1024, ARENA_GROWS = 4, ARENA_CHUNK = 16 * 1024 };

void arena_init(Arena *a, Allocator *alloc) { *a = (Arena){.alloc = alloc}; }

void *arena_room(Arena *a, size_t n) {
  if (n > SIZE_MAX / 4) return NULL;
  n = (n + 15) & ~(size_t)15;
  if (!a->chunk || a->chunk->size - a->used < n) {
    size_t size = a->chunk ? ARENA_GROWS * a->chunk->size : ARENA_LEAST - sizeof(ArenaChunk);
    if (size > ARENA_CHUNK) size = ARENA_CHUNK;
    if (size < n) size = n;
    ArenaChunk *c = mem_alloc(a->alloc, sizeof *c + size);
    if (!c) return NULL;
    c->older = a->chunk;
    c->older_used = a->used;
    c->size = size;
    a->chunk = c;
    a->used = 0;
    a->total += sizeof *c + size;
  }
  char *p = (char *)(a->chunk + 1) + a->used;
  a->used += n;
  return p;
}

void *arena_alloc(Arena *a, size_t n) {
  void *p = arena_room(a, n);
  if (p) memset(p, 0, n);
  return p;
}

void name_numbered(char out[NUMBERED_MAX], const char *before, u32 n) {
  char digits[10];
  u32 count = 0;
  do digits[count++] = (char)('0' + n % 10);
  while (n /= 10);
  while (*before) *out++ = *before++;
  while (count) *out++ = digits[--count];
  *out = 0;
}

char *arena_copy(Arena *a, const char *s, size_t n) {
  return arena_copy_long(a, s, n, NULL);
}

char *arena_copy_long(Arena *a, const char *s, size_t n, Toil *t) {
  char *p = n < SIZE_MAX ? arena_room(a, n + 1) : NULL;
  if (!p) return NULL;
  for (size_t done = 0; done < n; done += TOIL_BYTES) {
    memcpy(p + done, s + done, n - done < TOIL_BYTES ? n - done : TOIL_BYTES);
    if (n - done > TOIL_BYTES && !toil(t, TOIL_BYTE_STEPS)) return NULL;
  }
  p[n] = 0;
  return p;
}

char *arena_printf(Arena *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  if (n < 0) return NULL;
  char *p = arena_alloc(a, (size_t)n + 1);
  if (!p) return NULL;
  va_start(ap, fmt);
  vsnprintf(p, (size_t)n + 1, fmt, ap);
  va_end(ap);
  return p;
}

ArenaMark arena_mark(const Arena *a) { return (ArenaMark){a->chunk, a->used}; }

void arena_rewind(Arena *a, ArenaMark m) {
  while (a->chunk != m.chunk) {
    ArenaChunk *c = a->chunk;
    a->chunk = c->older;
    a->used = c->older_used;
    a->total -= sizeof *c + c->size;
    mem_free(a->alloc, c, sizeof *c + c->size);
  }
  a->used = m.used;
}

void arena_free(Arena *a) { arena_rewind(a, (ArenaMark){NULL, 0}); }

/* ---- what a compilation may cost ------------------------------------------------------------ */

enum { TOIL_EACH = 4096 }; /* steps between two looks at the limits: some 0.1 ms */

static void look_next(Toil *t) {
  u64 left = t->most > t->used ? t->most - t->used : 0;
  t->look = t->used + (left < TOIL_EACH ? left : TOIL_EACH) + 1;
}

void toil_begin(Toil *t, u64 most, ToilEnd (*limits)(void *context), void *context) {
  *t = (Toil){.most = most, .limits = limits, .context = context, .endless = t->endless, .forced = t->forced};
  t->look = 1; /* at once: many short compilations may follow each other */
}

void toil_allow(Toil *t, u64 more) {
  if (!t || t->end || t->most == UINT64_MAX) return;
  t->most = t->used + more;
  look_next(t);
}

void toil_rest(Toil *t) {
  *t = (Toil){.look = UINT64_MAX, .most = UINT64_MAX, .endless = t->endless, .forced = t->forced};
}

bool toil_look(Toil *t) {
  if (t->end) return false;
  if (t->most == UINT64_MAX) return true;
  t->end = (u8)(t->limits ? t->limits(t->context) : TOIL_goes_on);
  if (!t->end && t->used > t->most) t->end = TOIL_used_up;
  if (t->end) t->look = 0;
  else look_next(t);
  return !t->end;
}

bool toil_pass(Toil *t) {
  if (!t || t->most == UINT64_MAX || ++t->passes != t->endless) return false;
  t->forced++;
  return true;
}

void toil_forever(Toil *t) {
  while (toil(t, TOIL_EACH)) {}
}

/* ---- text buffers ------------------------------------------------------------------------- */

void buf_init(Buf *b, Allocator *alloc) { *b = (Buf){.alloc = alloc}; }
void buf_init_like(Buf *b, const Buf *other) {
  *b = (Buf){.alloc = other->alloc, .ends = other->ends, .ctx = other->ctx};
}

void buf_free(Buf *b) {
  mem_free(b->alloc, b->data, b->room);
  buf_init_like(b, b);
}

static bool buf_grow(Buf *b, size_t extra) {
  size_t want = b->room ? b->room * 2 : 64;
  while (want - b->len <= extra) want *= 2;
  char *p = mem_resize(b->alloc, b->data, b->room, want);
  if (!p) return false;
  b->data = p;
  b->room = want;
  return true;
}

static bool buf_reserve(Buf *b, size_t extra) {
  enum { ASKS = 1 << 16 };
  if (b->failed) return false;
  if (extra < b->cap - b->len && b->data) return true;
  const bool fits = b->data && extra < b->room - b->len;
  b->failed = (b->ends && b->len >= ASKS && b->ends(b->ctx)) || (!fits && !buf_grow(b, extra));
  if (b->failed) return false;
  b->cap = b->ends && b->room - b->len - extra > ASKS ? b->len + extra + ASKS : b->room;
  return true;
}

/* Is there room for n bytes, and nobody to be asked? */
static inline bool buf_has(const Buf *b, size_t n) { return LIKELY(b->data && n < b->cap - b->len && !b->failed); }

static __attribute__((noinline)) void buf_put_slow(Buf *b, const char *s, size_t n) {
  enum { PART = 1 << 20 }; /* a longer text is copied in such parts, and who is asked is asked between them */
  if (!buf_reserve(b, n)) return;
  for (; UNLIKELY(n > PART) && b->ends; s += PART, n -= PART) {
    memcpy(b->data + b->len, s, PART);
    b->len += PART;
    if (!b->ends(b->ctx)) continue;
    b->failed = true;
    n = 0;
    break;
  }
  if (n) memcpy(b->data + b->len, s, n);
  b->len += n;
  b->data[b->len] = 0;
}

void buf_put(Buf *b, const char *s, size_t n) {
  enum { AT_ONCE = 1 << 16 };
  if (UNLIKELY(!buf_has(b, n) || n > AT_ONCE)) {
    buf_put_slow(b, s, n);
    return;
  }
  char *to = b->data + b->len;
  if (n) memcpy(to, s, n);
  to[n] = 0;
  b->len += n;
}

void buf_puts(Buf *b, const char *s) { buf_put(b, s, strlen(s)); }

void buf_putc(Buf *b, char c) {
  if (UNLIKELY(!buf_has(b, 1))) {
    buf_put_slow(b, &c, 1);
    return;
  }
  b->data[b->len++] = c;
  b->data[b->len] = 0;
}

void buf_vprintf(Buf *b, const char *fmt, va_list ap) {
  enum { SHORT = 32 }; /* most are: they are written at once */
  if (!buf_reserve(b, SHORT)) return;
  va_list again;
  va_copy(again, ap);
  size_t room = b->cap - b->len;
  int n = vsnprintf(b->data + b->len, room, fmt, ap);
  bool fits = n >= 0 && (size_t)n < room;
  if (!fits) b->data[b->len] = 0;
  if (!fits && n >= 0 && buf_reserve(b, (size_t)n)) fits = vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again) == n;
  if (fits) b->len += (size_t)n;
  va_end(again);
}

void buf_printf(Buf *b, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  buf_vprintf(b, fmt, ap);
  va_end(ap);
}

const char *buf_text(const Buf *b) { return b->data ? b->data : ""; }

/* ---- interned names ----------------------------------------------------------------------- */

/* SipHash-1-3 of Aumasson and Bernstein, 32 bits of it. */
#define SIP_ROUND                                                                  \
  do {                                                                             \
    a += b, b = b << 13 | b >> 51, b ^= a, a = a << 32 | a >> 32;                  \
    c += d, d = d << 16 | d >> 48, d ^= c;                                         \
    a += d, d = d << 21 | d >> 43, d ^= a;                                         \
    c += b, b = b << 17 | b >> 47, b ^= c, c = c << 32 | c >> 32;                  \
  } while (0)

enum { HASHED = 1 << 18 }; /* bytes: a multiple of 8 */

static u32 hash_text(const Names *n, const char *s, size_t len) {
  u64 a = n->seed[0] ^ 0x736f6d6570736575u, b = n->seed[1] ^ 0x646f72616e646f6du, c = n->seed[0] ^ 0x6c7967656e657261u,
      d = n->seed[1] ^ 0x7465646279746573u, m;
  const size_t whole = len & ~(size_t)7;
  for (size_t i = 0; i < whole; i += 8) {
    if (UNLIKELY(i == HASHED) && whole > 2 * HASHED) i = whole - HASHED; /* of a long text both ends */
    memcpy(&m, s + i, 8);
    d ^= m;
    SIP_ROUND;
    a ^= m;
  }
  m = (u64)len << 56;
  for (size_t i = whole; i < len; i++) m |= (u64)(u8)s[i] << 8 * (i - whole);
  d ^= m;
  SIP_ROUND;
  a ^= m;
  c ^= 0xff;
  SIP_ROUND;
  SIP_ROUND;
  SIP_ROUND;
  m = a ^ b ^ c ^ d;
  return (u32)(m ^ m >> 32);
}

enum { NAMES_LEAST = 32 }; /* a module of loops has no more */

WeftStatus names_init(Names *n, Allocator *alloc) {
  *n = (Names){.alloc = alloc};
  arena_init(&n->arena, alloc);
  if (!vec_reserve(alloc, (void **)&n->entries, &n->cap, NAMES_LEAST, sizeof *n->entries)) return WEFT_ERROR;
  n->entries[0] = (NameEntry){.text = "", .count = NAME_STAYS};
  n->count = 1;
  n->slot_count = 2 * NAMES_LEAST;
  n->slots = mem_alloc_zero(alloc, sizeof *n->slots * n->slot_count);
  if (!n->slots) {
    names_free(n);
    return WEFT_ERROR;
  }
  return WEFT_OK;
}

/* From the system; where that gives none, from the clock and from where things lie. */
void names_seed(Names *n) {
#ifdef __linux__
  if (getrandom(n->seed, sizeof n->seed, GRND_NONBLOCK) == sizeof n->seed) return;
#endif
  struct timespec now = {0};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  n->seed[0] = ((u64)now.tv_sec << 30 ^ (u64)now.tv_nsec) * 0x9E3779B97F4A7C15u;
  n->seed[1] = ((u64)(uintptr_t)n ^ (u64)(uintptr_t)n->entries << 20 ^ n->seed[0] >> 7) * 0xBF58476D1CE4E5B9u;
}

static void free_text(Names *n, const NameEntry *e) {
  if (e->own) mem_free(n->alloc, (char *)(uintptr_t)e->text, (size_t)e->len + 1);
}

void names_free(Names *n) {
  for (u32 id = 1; id < n->count; id++)
    if (n->entries[id].text) free_text(n, &n->entries[id]);
  mem_free(n->alloc, n->slots, sizeof *n->slots * n->slot_count);
  mem_free(n->alloc, n->entries, sizeof *n->entries * n->cap);
  arena_free(&n->arena);
  *n = (Names){0};
}

static u32 *name_slot(const Names *n, const char *s, size_t len, u32 hash) {
  u32 mask = n->slot_count - 1;
  for (u32 i = hash & mask;; i = (i + 1) & mask) {
    u32 id = n->slots[i];
    if (!id) return &n->slots[i];
    const NameEntry *e = &n->entries[id];
    if (e->hash == hash && e->len == len && memcmp(e->text, s, len) == 0) return &n->slots[i];
  }
}

Name name_find(const Names *n, const char *s, size_t len) {
  return len ? *name_slot(n, s, len, hash_text(n, s, len)) : 0;
}

static bool names_resize(Names *n, u32 count) {
  u32 *slots = mem_alloc_zero(n->alloc, sizeof *slots * count);
  if (!slots) return false;
  for (u32 id = 1; id < n->count; id++) {
    if (!n->entries[id].text) continue;
    u32 i = n->entries[id].hash & (count - 1);
    while (slots[i]) i = (i + 1) & (count - 1);
    slots[i] = id;
  }
  mem_free(n->alloc, n->slots, sizeof *n->slots * n->slot_count);
  n->slots = slots;
  n->slot_count = count;
  return true;
}

/* The name of a text, found or made. `own`: one that may be freed. */
static Name name_made(Names *n, const char *s, size_t len, bool own) {
  if (!len || len >= UINT32_MAX) return 0;
  u32 hash = hash_text(n, s, len);
  u32 *slot = name_slot(n, s, len, hash);
  if (*slot) return *slot;
  if (n->used * 2 >= n->slot_count) {
    if (n->slot_count > UINT32_MAX / 4 || !names_resize(n, n->slot_count * 2)) return 0;
    slot = name_slot(n, s, len, hash);
  }
  Name id = n->free ? n->free : n->count;
  if (id == n->count && !vec_reserve(n->alloc, (void **)&n->entries, &n->cap, n->count + 1, sizeof *n->entries))
    return 0;
  char *text = own ? mem_alloc(n->alloc, len + 1) : arena_copy(&n->arena, s, len);
  if (!text) return 0;
  if (own) {
    memcpy(text, s, len);
    text[len] = 0;
  }
  if (id == n->count) n->count++;
  else n->free = n->entries[id].hash;
  n->used++;
  n->entries[id] = (NameEntry){text, (u32)len, hash, own ? 0 : NAME_STAYS, own};
  return *slot = id;
}

Name name_intern(Names *n, const char *s, size_t len) {
  Name id = name_made(n, s, len, false);
  if (id) name_stay(n, id);
  return id;
}

Name name_counted(Names *n, const char *s, size_t len) {
  Name id = name_made(n, s, len, true);
  if (id) name_keep(n, id);
  return id;
}

/* Out of the table: those behind it in its run move up. */
static void base_take_out(Names *n, Name id) {
  u32 mask = n->slot_count - 1, i = n->entries[id].hash & mask;
  while (n->slots[i] != id) i = (i + 1) & mask;
  for (u32 j = (i + 1) & mask; n->slots[j]; j = (j + 1) & mask) {
    u32 home = n->entries[n->slots[j]].hash & mask;
    if (((j - home) & mask) < ((j - i) & mask)) continue;
    n->slots[i] = n->slots[j];
    i = j;
  }
  n->slots[i] = 0;
}

void name_free(Names *n, Name id) {
  NameEntry *e = &n->entries[id];
  base_take_out(n, id);
  free_text(n, e);
  *e = (NameEntry){.hash = n->free};
  n->free = id;
  n->used--;
}

Name name_cstr(Names *n, const char *s) { return name_intern(n, s, strlen(s)); }

u32 name_distance(const char *a, size_t alen, const char *b, size_t blen, u32 cap) {
  enum { MAX = 48 };
  if (alen > MAX || blen > MAX) return cap;
  u32 rows[3][MAX + 1];
  u32 *before = rows[0], *prev = rows[1], *cur = rows[2];
  for (u32 j = 0; j <= blen; j++) prev[j] = j;
  for (u32 i = 1; i <= alen; i++) {
    cur[0] = i;
    for (u32 j = 1; j <= blen; j++) {
      u32 best = prev[j - 1] + (a[i - 1] != b[j - 1]);
      if (prev[j] + 1 < best) best = prev[j] + 1;
      if (cur[j - 1] + 1 < best) best = cur[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
        best = before[j - 2] + 1;
      cur[j] = best;
    }
    u32 *t = before;
    before = prev;
    prev = cur;
    cur = t;
  }
  return prev[blen] < cap ? prev[blen] : cap;
}
