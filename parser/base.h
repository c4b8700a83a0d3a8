/* base.h — what every folder may include: integer types, status, spans, source files,
 * interned names, arenas, text buffers and the allocator interface.
 *
 * Nothing here knows a VM. Memory comes from an `Allocator` that is passed in, is told old sizes,
 * and may refuse; every function that allocates reports failure to its caller. */
#ifndef WEFT_PARSER_BASE_H
#define WEFT_PARSER_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

/* Status of every fallible call. `WEFT_ERROR`: an error object stands in the VM (or a Diag was filled).
 * The public header declares the same enumerators; a test pins that they agree. */
#ifndef WEFT_STATUS_DEFINED
#define WEFT_STATUS_DEFINED
typedef enum WeftStatus {
  WEFT_OK = 0,
  WEFT_ERROR = 1,      /* an error was raised; its text, kind, span and trace can be read */
  WEFT_INCOMPLETE = 2, /* source text ended inside a construct (the REPL asks for another line) */
  WEFT_MISUSE = 3,     /* the host broke a rule of the API; nothing was changed */
  WEFT_SUSPENDED = 4   /* a host function lets its program wait; to the host: the program waits */
} WeftStatus;
#endif

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

enum { NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000, PS_PER_NS = 1000 };
#define PRAGMA(text) _Pragma(#text)
/* In front of a loop. UNROLL(n): its body is written out n times. INDEPENDENT: no trip reads what another one
 * writes. */
#ifdef __clang__
#define UNROLL(n) PRAGMA(clang loop unroll_count(n))
#define INDEPENDENT PRAGMA(clang loop vectorize(assume_safety))
#else
#define UNROLL(n) PRAGMA(GCC unroll n)
#define INDEPENDENT PRAGMA(GCC ivdep)
#endif
/* A function of which the compiler makes no copies for known arguments. */
#if __has_attribute(noclone)
#define NOCLONE __attribute__((noclone))
#else
#define NOCLONE
#endif

/* ---- memory ------------------------------------------------------------------------------- */

/* One allocator interface for all rooms. `resize(a, NULL, 0, n)` allocates, `resize(a, p, n, 0)`
 * frees and returns NULL, else it behaves as realloc. NULL for n > 0 means "refused"; p is then intact.
 * Alignment is 16. */
typedef struct Allocator Allocator;
struct Allocator {
  void *(*resize)(Allocator *self, void *p, size_t old_size, size_t new_size);
};

/* The C library's heap, without a limit (tools and tests). */
Allocator *allocator_system(void);

static inline void *mem_alloc(Allocator *a, size_t n) { return a->resize(a, NULL, 0, n); }
static inline void *mem_resize(Allocator *a, void *p, size_t old, size_t n) { return a->resize(a, p, old, n); }
static inline void mem_free(Allocator *a, void *p, size_t n) {
  if (p) (void)a->resize(a, p, n, 0);
}
void *mem_alloc_zero(Allocator *a, size_t n); /* NULL when refused */
static inline void mem_copy(void *to, const void *from, size_t n) { /* memcpy that takes NULL when n is 0 */
  if (n) __builtin_memcpy(to, from, n);
}

/* Grow `*data` (elements of `size` bytes) to hold at least `need`; doubles. False when refused. */
bool vec_reserve(Allocator *a, void **data, u32 *cap, u32 need, size_t size) MUST_USE;

/* Growable array: VEC(T) v; vec_push(alloc, &v, item) is false when memory was refused. */
#define VEC(T)  \
  struct {      \
    T *data;    \
    u32 count;  \
    u32 cap;    \
  }
#define vec_push(alloc, v, ...)                                                                        \
  (((v)->count < (v)->cap ||                                                                           \
    vec_reserve((alloc), (void **)&(v)->data, &(v)->cap, (v)->count + 1, sizeof *(v)->data))           \
       ? ((v)->data[(v)->count++] = (__VA_ARGS__), true)                                               \
       : false)
#define vec_free(alloc, v)                                                              \
  (mem_free((alloc), (v)->data, sizeof *(v)->data * (v)->cap), (v)->data = NULL, (v)->count = (v)->cap = 0)

/* Arena: memory that is freed as a whole. Blocks are 16-aligned and zeroed. */
typedef struct ArenaChunk ArenaChunk;
typedef struct Arena {
  Allocator *alloc;
  ArenaChunk *chunk; /* newest first */
  size_t used;       /* bytes used in the newest chunk */
  size_t total;      /* bytes taken from the allocator */
} Arena;
typedef struct ArenaMark {
  ArenaChunk *chunk;
  size_t used;
} ArenaMark;

void arena_init(Arena *a, Allocator *alloc);
void *arena_alloc(Arena *a, size_t n);               /* zeroed; NULL when refused */
void *arena_room(Arena *a, size_t n);                /* the same, not zeroed */
char *arena_copy(Arena *a, const char *s, size_t n); /* NUL-terminated copy; NULL when refused */
struct Toil;
/* The same, however long; NULL also when the compilation is to end. `t` as in toil() below. */
char *arena_copy_long(Arena *a, const char *s, size_t n, struct Toil *t);

enum { NUMBERED_MAX = 24 };
/* at most 12 bytes, then n in decimal; compiling names hundreds */
void name_numbered(char out[NUMBERED_MAX], const char *before, u32 n);
char *arena_printf(Arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
ArenaMark arena_mark(const Arena *a);
void arena_rewind(Arena *a, ArenaMark m); /* frees what came after the mark */
void arena_free(Arena *a);

/* ---- what a compilation may cost ------------------------------------------------------------ */

/* Compiler passes count steps: a node, an instruction, two values compared. Now and then that is compared with what
 * is allowed, and who began the compilation is asked about its limits. Whoever is told to stop gives up; so do all
 * that ask after it, until the next compilation begins. */
typedef enum ToilEnd {
  TOIL_goes_on,
  TOIL_used_up, /* its steps */
  TOIL_late,    /* its time */
  TOIL_limit,   /* the program is to stop: its deadline has passed, or it was interrupted */
} ToilEnd;
typedef struct Toil {
  u64 used, most; /* steps; most UINT64_MAX: nothing is being compiled */
  u64 look;       /* used, at the next look at the limits; 0: it ended */
  ToilEnd (*limits)(void *context);
  void *context;
  u8 end;         /* ToilEnd */
  u32 passes;     /* begun so far */
  u32 endless;    /* for tests: the pass of this number never ends by itself; 0: none */
  u64 forced;     /* how often one did not */
} Toil;

bool toil_look(Toil *t);
/* May the compilation go on, so many steps later? Each loop of a pass asks. NULL: there is no limit. */
enum { TOIL_BYTES = 1 << 16, TOIL_BYTE_STEPS = TOIL_BYTES / 16 }; /* bytes of a text between two questions, and steps */
static inline bool toil(Toil *t, u64 steps) { return !t || LIKELY((t->used += steps) < t->look) || toil_look(t); }
static inline bool toil_ended(const Toil *t) { return t && t->end; }
void toil_begin(Toil *t, u64 most, ToilEnd (*limits)(void *context), void *context);
void toil_allow(Toil *t, u64 more); /* that many steps from here on */
void toil_rest(Toil *t);            /* nothing is being compiled */
/* A pass begins. True: a test asks for one that never ends; the driver of passes then takes it that something
 * changed, for ever, and any other pass calls toil_forever. */
bool toil_pass(Toil *t);
void toil_forever(Toil *t); /* until it is told to stop */

/* ---- text buffers ------------------------------------------------------------------------- */

/* Growable text. A refused growth sets `failed` and later writes do nothing: check once at the end. */
typedef struct Buf {
  Allocator *alloc;
  char *data; /* NUL-terminated when non-NULL */
  size_t len, cap; /* cap: of what it has, what may be written before it grows, or asks */
  size_t room;     /* what it has */
  bool (*ends)(void *ctx); /* asked every 64 KiB, or so: true, and it has failed. NULL: nobody is asked */
  void *ctx;
  bool failed;
} Buf;

void buf_init(Buf *b, Allocator *alloc);
void buf_init_like(Buf *b, const Buf *other); /* empty; of the same memory, and who is asked is the same */
void buf_free(Buf *b);
void buf_put(Buf *b, const char *s, size_t n);
void buf_puts(Buf *b, const char *s);
void buf_putc(Buf *b, char c);
void buf_printf(Buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(Buf *b, const char *fmt, va_list ap);
const char *buf_text(const Buf *b); /* never NULL */

/* ---- numbers in text ---------------------------------------------------------------------- */

/* Reads all of [+-]digits[.digits][e[+-]digits] (digits on one side of the point suffice), rounded correctly
 * to nearest even whatever the locale and rounding mode. Too large gives infinity. False: not of this form. */
bool number_parse_f64(const char *s, size_t len, f64 *out) MUST_USE;
/* The same of the number that the text from s to end begins with: where it stops. *whole: it has neither point nor
 * exponent, and *i is its value; else *x. NULL: there is none, or one of more than 18 characters that is whole. */
const char *number_read(const char *s, const char *end, bool *whole, i64 *i, f64 *x) MUST_USE;

/* Text of one number as printf made it: the point of the program's locale, whatever bytes it has, becomes '.'. In
 * place. */
void number_point(char *text);

/* ---- interned names ----------------------------------------------------------------------- */

/* A name is a number that stands for a text: equal texts have one number. Names of code stay as long as their
 * table. Those that a program computes, as the keys of its records are, are counted: the last who gives one up
 * frees it, and its number may be another text's from then on. */
typedef u32 Name; /* 0 is no name; equal text gives an equal id within one Names table */

enum { NAME_STAYS = 0xffffffff };

typedef struct NameEntry {
  const char *text; /* NUL-terminated; NULL: the number is free, and `hash` the next free one */
  u32 len;
  u32 hash;
  u32 count;        /* NAME_STAYS: it is not counted */
  bool own;         /* its text is an allocation of its own; else it lies in the arena */
} NameEntry;

typedef struct Names {
  Allocator *alloc;
  Arena arena;
  NameEntry *entries; /* index = Name; entry 0 is "" */
  u32 count, cap;
  u32 *slots; /* open addressing, power of two */
  u32 slot_count, used; /* used: names that are there */
  u32 free;   /* first number that is free; 0: none */
  u64 seed[2];
} Names;

WeftStatus names_init(Names *n, Allocator *alloc) MUST_USE;
/* Texts that are chosen by somebody else must not fall into one place of the table: where they fall depends on two
 * numbers that nobody knows. Nothing else does. To be called before anything is named. */
void names_seed(Names *n);
void names_free(Names *n);
Name name_intern(Names *n, const char *s, size_t len); /* stays; 0 when refused (or len == 0) */
Name name_cstr(Names *n, const char *s);
Name name_counted(Names *n, const char *s, size_t len); /* the same, counted once more unless it stays */
Name name_find(const Names *n, const char *s, size_t len); /* 0 when absent; never allocates */
/* Whether a text has a name; that of "" is 0. */
static inline bool name_known(const Names *n, const char *s, size_t len, Name *out) {
  return *out = name_find(n, s, len), *out || !len;
}
void name_free(Names *n, Name id); /* nobody counts it any more */
static inline void name_keep(Names *n, Name id) { n->entries[id].count += n->entries[id].count != NAME_STAYS; }
static inline void name_drop(Names *n, Name id) {
  if (n->entries[id].count != NAME_STAYS && --n->entries[id].count == 0) name_free(n, id);
}
static inline void name_stay(Names *n, Name id) { n->entries[id].count = NAME_STAYS; }
static inline const char *name_text(const Names *n, Name id) { return n->entries[id].text; }
static inline u32 name_len(const Names *n, Name id) { return n->entries[id].len; }

/* Levenshtein distance with adjacent transpositions, capped at `cap` (for "did you mean"). */
u32 name_distance(const char *a, size_t alen, const char *b, size_t blen, u32 cap);
/* A name of `len` bytes may be a slip for one whose distance is less than this. Every short name is near every other:
 * 0. */
static inline u32 name_near(size_t len) { return len < 3 ? 0 : len < 6 ? 2 : 3; }

/* ---- sources and spans -------------------------------------------------------------------- */

/* A piece of source text. file 0 means "nowhere". Offsets and lengths are bytes. */
typedef struct Span {
  u32 file;
  u32 start;
  u32 len;
} Span;

typedef struct SourceFile {
  const char *path; /* as shown to users: "train.weft", "<stdin>", "<repl:3>" */
  const char *text; /* NUL-terminated copy, may hold NULs inside */
  u32 len;
  u32 *line_starts; /* byte offset of each line */
  u32 line_count;
  u32 id;
  u32 holders;  /* code made from it, and who is making some */
  bool hidden;  /* its characters are not there, their places are: messages show no line of it */
  bool pointed; /* messages point into it: it stays at the next sweep (sources_point) */
} SourceFile;

/* A text lives as long as code that was made from it, and errors and logs that point into it. No id is used again
 * while any other is free: a span that outlives its text points nowhere. */
typedef struct Sources {
  Allocator *alloc;
  SourceFile **slots; /* by id, open addressing; NULL: free */
  u32 slot_count;     /* a power of 2, or 0 */
  u32 count;
  u32 last_id;
  u32 idle;            /* without holders */
  size_t idle_bytes;
  u32 sweep_idle;      /* a sweep is due above so many, */
  size_t sweep_bytes;  /* or so many bytes */
} Sources;

WeftStatus sources_init(Sources *s, Allocator *alloc) MUST_USE;
void sources_free(Sources *s);
/* Copies path and text; the caller holds it. Returns the file id, 0 when refused or len > 1 GiB. */
u32 sources_add(Sources *s, const char *path, const char *text, size_t len);
u32 sources_add_long(Sources *s, const char *path, const char *text, size_t len, Toil *t); /* 0 also when `t` ended */
void sources_hide(Sources *s, u32 file); /* what stands there are blanks for its characters */
void sources_keep(Sources *s, u32 file); /* one holder more. File 0 or unknown: nothing happens, here and below */
void sources_drop(Sources *s, u32 file); /* one less; the text stays until a sweep */
/* A sweep frees texts without holders that nobody pointed at since the last one. `due`: there are enough of them. */
bool sources_sweep_due(const Sources *s);
void sources_point(Sources *s, u32 file);
void sources_sweep(Sources *s);
const SourceFile *sources_get(const Sources *s, u32 file); /* NULL for 0 or unknown; valid while it is held */
/* 1-based line and column (column counts code points). */
void sources_locate(const Sources *s, Span at, u32 *line, u32 *col);
u32 text_columns(const char *s, u32 n); /* of a terminal that UTF-8 text takes */
/* Appends the `  --> path:l:c` block with the line and its caret, as language.md section 6 shows. */
void sources_show(const Sources *s, Span at, Buf *out);

static inline Span span_join(Span a, Span b) {
  u32 end_a = a.start + a.len, end_b = b.start + b.len;
  u32 start = a.start < b.start ? a.start : b.start;
  u32 end = end_a > end_b ? end_a : end_b;
  return (Span){a.file, start, end - start};
}

/* ---- the processor ------------------------------------------------------------------------ */

/* AVX-512 here is F, DQ, BW and VL together. What needs wide registers counts only where the system keeps them.
 * FETCH: long runs gain by instructions that prefetch; Zen 4 fetches by itself, and such instructions stand in
 * the way. PAGES: more by those that fetch several pages side by side: by itself a processor begins with each page
 * anew, when it is read (Intel's, Zen 3). BESIDE: kernels of non-temporal stores gain by prefetching, too. */
enum { CPU_ASKED = 1, CPU_SSE41 = 2, CPU_FMA = 4, CPU_AVX2 = 8, CPU_BMI2 = 16, CPU_AVX512 = 32, CPU_FETCH = 64,
       CPU_PAGES = 128, CPU_BESIDE = 256, CPU_F16C = 512 };
bool cpu_has(u32 features); /* all of them; false where processors are not of the x86-64 kind */
enum { FETCH_AHEAD = 4096 /* bytes that long runs prefetch: by itself a processor stops at the end of a page */ };
u32 cpu_ahead(void); /* FETCH_AHEAD, or 0 where it does not pay */

/* CPU_PAGES: what to fetch where the line at `now` is read. Eight pages are fetched side by side, of the next one
 * its last eighth, of the one behind that its eighth before, and so on, a line of each in turn: every line once. */
enum { PAGE_BYTES = 4096, PAGES_SHIFT = 3, PAGES_ABREAST = 1 << PAGES_SHIFT, PAGE_LINE = 64,
       PAGE_TURN = PAGES_ABREAST * PAGE_LINE, PAGE_PART = PAGE_BYTES / PAGES_ABREAST };
enum { PAGE_FIRST = 2 * PAGE_BYTES - PAGE_PART /* from the page's beginning, of a turn's first line */,
       PAGE_NEXT = PAGE_BYTES - PAGE_PART /* of each line more */ };
enum { PAGES_AHEAD = 4 * PAGE_BYTES /* less is not worth it */ };
static inline __attribute__((always_inline)) uintptr_t page_ahead(uintptr_t now) {
  uintptr_t in_page = now & (PAGE_BYTES - 1), line = now & (PAGE_TURN - PAGE_LINE);
  return now - in_page + PAGE_FIRST + in_page / PAGES_ABREAST + line * (PAGE_NEXT / PAGE_LINE);
}
/* Of so many lines, 1, 2, 4 or 8, from where they lie beside each other as so many do; of whole turns. */
static inline __attribute__((always_inline)) void fetch_lines(const void *now, u32 lines) {
  uintptr_t first = page_ahead((uintptr_t)now & ~(uintptr_t)(lines * PAGE_LINE - 1));
  UNROLL(8) for (u32 k = 0; k < lines; k++) __builtin_prefetch((const void *)(first + k * PAGE_NEXT));
}
static inline __attribute__((always_inline)) void fetch_pages(const void *now, i64 bytes) {
  for (i64 k = 0; k < bytes; k += PAGE_TURN) fetch_lines((const char *)now + k, PAGES_ABREAST);
}

/* ---- the C stack ----------------------------------------------------------------------------------
 * What recurses in C asks how much of the stack of this thread is left (cstack.c). The room that asks first is the
 * API: it says where the stack ends each time that the host calls. Where nobody said, there is no end. */
typedef struct CStack { /* addresses: calls go down to low; the host called below high */
  uintptr_t low, high;
  size_t bytes; /* as it was given */
} CStack;
/* The host calls: it leaves so many bytes from here on, 0: as many as the system says. What it gives goes to
 * cstack_leave. */
CStack cstack_enter(size_t bytes);
void cstack_leave(CStack before);
CStack cstack_now(void);
size_t cstack_left(void); /* bytes; SIZE_MAX: nobody knows */
/* Calls fn in a thread of its own with so much stack, and waits for it. False: there was none to be had, nothing was
 * called. */
bool cstack_run(size_t bytes, void (*fn)(void *ctx), void *ctx) MUST_USE;
static inline bool cstack_has(size_t bytes) { return cstack_left() >= bytes; }
/* CALL: for all that does not ask: kernels, libraries, printing of numbers. DEEP: for what recurses to some depth
 * by itself, such as compiling to machine code. Instrumented code needs several times as much. */
#ifdef __SANITIZE_ADDRESS__
enum { CSTACK_CALL = 256 << 10, CSTACK_DEEP = 1 << 20 };
#else
enum { CSTACK_CALL = 64 << 10, CSTACK_DEEP = 192 << 10 };
#endif

/* An error found before a program runs: parser, scope resolution, compiler. */
typedef struct Diag {
  Span span;
  u8 kind;             /* ErrorKind of lang/errors.def: syntax, name, or limit when memory was refused */
  const char *message; /* in the arena given to the parser or compiler, or static */
} Diag;

/* The kinds that a parser needs, numbered as in lang/errors.def (lang/errors.c pins it). */
enum { DIAG_SYNTAX = 2, DIAG_NAME = 3, DIAG_LIMIT = 12 };

#endif
