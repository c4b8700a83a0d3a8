/* contract.c — sums of products over axes of a view, block by block: contract.h. */
#include "stdlib/linalg/contract.h"
#include "stdlib/kernels/strips.h"
#include "stdlib/stdlib.h"

#include <string.h>

enum {
  PANEL_BYTES = 1 << 18, /* of a copy of the view's block: terms by columns; it stays in the second cache */
  TILE_BYTES = 1 << 19,  /* of the sums of a block: rows by columns, */
  LEAST_COLUMNS = 64,    /* but so many columns at least, */
  MOST_COLUMNS = 4096,   /* and no more */
  TOGETHER = 64,         /* columns of a block are a multiple of these, where there are more */
  TILE_ROWS = 128,       /* that go by a copy in one call: their terms stay in the nearest cache */
  MOST_ROWS = 1024,      /* of a block: the copy is made anew for the others */
  LONG_RUN = 8,          /* columns that lie together, from which they are copied at once */
  SHARED = 1 << 19,      /* multiplications from which the pool's threads share the blocks */
  ROUND = 1 << 27,       /* multiplications of one thread between two looks at the clock */
};

enum { BATCH, ROWS, TERMS, COLUMNS };

/* Columns whose elements lie evenly, in the view and in the result. */
typedef struct Run {
  i64 y, c, count;
} Run;

typedef struct Blocks {
  const Contraction *k;
  StripMatrix matrix;
  ContractAxis axes[4][ARRAY_MAX_RANK]; /* neighbours that are one axis joined */
  u32 ranks[4];
  i64 sizes[4];
  i64 each, across;      /* columns of a block, blocks side by side */
  i64 tall, down;        /* rows of a block, blocks one below another */
  i64 bytes, steps[2];   /* of an element; from column to column of a run, in the view and in the result */
  i64 first, end, parts; /* blocks of this round */
  char *room;            /* of all parts */
  size_t room_each;
} Blocks;

/* The axes of one kind, without those of one element, neighbours joined where both arrays go on evenly. */
static void join_axes(Blocks *b, u32 kind, const ContractAxis *from, u32 rank) {
  ContractAxis *to = b->axes[kind];
  u32 n = 0;
  b->sizes[kind] = 1;
  for (u32 d = 0; d < rank; d++) {
    b->sizes[kind] *= from[d].dim;
    if (from[d].dim == 1) continue;
    if (n && to[n - 1].y == from[d].y * from[d].dim && to[n - 1].c == from[d].c * from[d].dim)
      to[n - 1] = (ContractAxis){to[n - 1].dim * from[d].dim, from[d].y, from[d].c};
    else to[n++] = from[d];
  }
  b->ranks[kind] = n;
}

/* Where the elements from number `at` on lie: as many runs along the last axis as `count` elements take. */
static i64 runs_from(const Blocks *b, u32 kind, i64 at, i64 count, Run *runs) {
  const ContractAxis *axes = b->axes[kind];
  const u32 rank = b->ranks[kind];
  i64 index[ARRAY_MAX_RANK], n = 0, left = count;
  Run now = {0, 0, 0};
  for (u32 d = rank; d-- > 0; at /= axes[d].dim) {
    index[d] = at % axes[d].dim;
    now.y += index[d] * axes[d].y;
    now.c += index[d] * axes[d].c;
  }
  while (left > 0) {
    const i64 more = rank ? axes[rank - 1].dim - index[rank - 1] : 1;
    now.count = more < left ? more : left;
    runs[n++] = now;
    left -= now.count;
    if (!left) break;
    now.y -= index[rank - 1] * axes[rank - 1].y;
    now.c -= index[rank - 1] * axes[rank - 1].c;
    index[rank - 1] = 0;
    for (u32 d = rank - 1; d-- > 0;) {
      now.y += axes[d].y;
      now.c += axes[d].c;
      if (++index[d] < axes[d].dim) break;
      now.y -= axes[d].dim * axes[d].y;
      now.c -= axes[d].dim * axes[d].c;
      index[d] = 0;
    }
  }
  return n;
}

/* A run, which is short: chunks of fixed size, the last of which begins where it ends with the run. */
static void copy_run(char *to, const char *from, i64 size) {
  enum { CHUNK = 32, LONG = 1024 };
  if (size < CHUNK || size >= LONG) {
    memcpy(to, from, (size_t)size);
    return;
  }
  for (i64 at = 0; at < size - CHUNK; at += CHUNK) memcpy(to + at, from + at, CHUNK);
  memcpy(to + size - CHUNK, from + size - CHUNK, CHUNK);
}

/* One row of the copy: the elements of the runs, or those at `places`. */
static void copy_runs(char *to, const char *from, const Run *runs, i64 n, i64 bytes) {
  for (i64 r = 0; r < n; to += runs[r++].count * bytes) copy_run(to, from + runs[r].y * bytes, runs[r].count * bytes);
}

#define COPY_PLACES(T)                                                                                  \
  static void copy_places_##T(void *restrict out, const void *from, const i64 *restrict places, i64 n) { \
    T *restrict to = out;                                                                               \
    for (i64 j = 0; j < n; j++) to[j] = ((const T *)from)[places[j]];                                   \
  }
COPY_PLACES(u32)
COPY_PLACES(u64)

#define PUT_RUN(T)                                                              \
  static void put_run_##T(void *out, const void *from, i64 n, i64 step) {       \
    for (i64 j = 0; j < n; j++) ((T *)out)[j * step] = ((const T *)from)[j];    \
  }
PUT_RUN(u32)
PUT_RUN(u64)

/* The room of one part, in this order. */
typedef struct Room {
  char *tile, *panel;
  Run *runs, *terms, *rows;
  i64 *places;
} Room;

static size_t room_of(const Blocks *b, char *at, Room *r) {
  const i64 terms = b->sizes[TERMS] < STRIP_MATRIX_K ? b->sizes[TERMS] : STRIP_MATRIX_K;
  const size_t start = (size_t)at;
  r->tile = at, at += b->tall * b->each * b->bytes;
  r->panel = at, at += terms * b->each * b->bytes;
  r->runs = (Run *)at, at += b->each * (i64)sizeof(Run);
  r->terms = (Run *)at, at += terms * (i64)sizeof(Run);
  r->rows = (Run *)at, at += b->tall * (i64)sizeof(Run);
  r->places = (i64 *)at, at += b->each * (i64)sizeof(i64);
  return ((size_t)at - start + 63) & ~(size_t)63;
}

/* Each element of the runs as a run of its own, in place: there is room for them. */
static void single_runs(const Blocks *b, u32 kind, Run *runs, i64 n, i64 count) {
  if (n == count) return;
  const ContractAxis *last = &b->axes[kind][b->ranks[kind] - 1];
  for (i64 r = n; r-- > 0;) {
    const Run run = runs[r];
    for (i64 i = run.count; i-- > 0;) runs[--count] = (Run){run.y + i * last->y, run.c + i * last->c, 1};
  }
}

static void block(const Blocks *b, i64 number, const Room *room) {
  const Contraction *k = b->k;
  const i64 column = number % b->across * b->each, row = number / b->across % b->down * b->tall,
            batch = number / b->across / b->down, bytes = b->bytes, terms = b->sizes[TERMS],
            rows = b->sizes[ROWS] - row < b->tall ? b->sizes[ROWS] - row : b->tall,
            count = b->sizes[COLUMNS] - column < b->each ? b->sizes[COLUMNS] - column : b->each;
  const i64 wide = (count + 15) & ~(i64)15; /* whole vectors: zeros behind the columns */
  const bool together = b->steps[0] == 1 && b->axes[COLUMNS][b->ranks[COLUMNS] - 1].dim >= LONG_RUN;
  Run at;
  (void)runs_from(b, BATCH, batch, 1, &at);
  const i64 n = runs_from(b, COLUMNS, column, count, room->runs);
  if (!together)
    for (i64 r = 0, j = 0; r < n; r++)
      for (i64 i = 0; i < room->runs[r].count; i++) room->places[j++] = room->runs[r].y + i * b->steps[0];
  for (i64 q = 0; q < terms; q += STRIP_MATRIX_K) {
    const i64 some = terms - q < STRIP_MATRIX_K ? terms - q : STRIP_MATRIX_K;
    single_runs(b, TERMS, room->terms, runs_from(b, TERMS, q, some, room->terms), some);
    for (i64 p = 0; p < some; p++) {
      char *to = room->panel + p * wide * bytes;
      const char *from = k->y + (at.y + room->terms[p].y) * bytes;
      if (together) copy_runs(to, from, room->runs, n, bytes);
      else if (bytes == 4) copy_places_u32(to, from, room->places, count);
      else copy_places_u64(to, from, room->places, count);
      memset(to + count * bytes, 0, (size_t)((wide - count) * bytes));
    }
    for (i64 i = 0; i < rows; i += TILE_ROWS)
      b->matrix(room->tile + i * wide * bytes, k->x + (batch * k->stack + (row + i) * k->row + q * k->along) * bytes,
                room->panel, rows - i < TILE_ROWS ? rows - i : TILE_ROWS, wide, some, k->row, k->along, wide, q > 0);
  }
  single_runs(b, ROWS, room->rows, runs_from(b, ROWS, row, rows, room->rows), rows);
  for (i64 i = 0; i < rows; i++) {
    const char *from = room->tile + i * wide * bytes;
    char *to = k->c + (at.c + room->rows[i].c) * bytes;
    for (i64 r = 0; r < n; from += room->runs[r++].count * bytes) {
      char *run = to + room->runs[r].c * bytes;
      if (b->steps[1] == 1) copy_run(run, from, room->runs[r].count * bytes);
      else if (bytes == 4) put_run_u32(run, from, room->runs[r].count, b->steps[1]);
      else put_run_u64(run, from, room->runs[r].count, b->steps[1]);
    }
  }
}

static void part_of_round(void *ctx, i64 part) {
  const Blocks *b = ctx;
  const i64 blocks = b->end - b->first;
  Room room;
  (void)room_of(b, b->room + (size_t)part * b->room_each, &room);
  for (i64 i = b->first + blocks * part / b->parts; i < b->first + blocks * (part + 1) / b->parts; i++)
    block(b, i, &room);
}

WeftStatus contract_blocks(Vm *vm, const Contraction *k) {
  Blocks b = {.k = k, .matrix = stdlib_of(vm)->strips->matrix[k->dtype], .bytes = dtype_bytes(k->dtype)};
  for (u32 kind = BATCH, at = 0; kind <= COLUMNS; at += k->ranks[kind++])
    join_axes(&b, kind, k->axes + at, k->ranks[kind]);
  const i64 rows = b.sizes[ROWS], terms = b.sizes[TERMS], columns = b.sizes[COLUMNS],
            some = terms < STRIP_MATRIX_K ? terms : STRIP_MATRIX_K;
  if (!b.ranks[COLUMNS]) b.axes[COLUMNS][b.ranks[COLUMNS]++] = (ContractAxis){1, 1, 1};
  b.steps[0] = b.axes[COLUMNS][b.ranks[COLUMNS] - 1].y;
  b.steps[1] = b.axes[COLUMNS][b.ranks[COLUMNS] - 1].c;
  b.down = (rows + MOST_ROWS - 1) / MOST_ROWS;
  b.tall = (rows + b.down - 1) / b.down;
  b.each = PANEL_BYTES / (some * b.bytes);
  if (b.each > TILE_BYTES / (b.tall * b.bytes)) b.each = TILE_BYTES / (b.tall * b.bytes);
  if (b.each > MOST_COLUMNS) b.each = MOST_COLUMNS;
  if (b.each < LEAST_COLUMNS) b.each = LEAST_COLUMNS;
  b.each &= ~(i64)(TOGETHER - 1);
  b.across = (columns + b.each - 1) / b.each;
  b.each = ((columns + b.across - 1) / b.across + 15) & ~(i64)15; /* blocks of about one size */
  b.across = (columns + b.each - 1) / b.each;
  const i64 blocks = b.sizes[BATCH] * b.down * b.across, work = b.tall * terms * b.each;
  b.parts = work * blocks >= SHARED ? pool_threads(vm) : 1;
  if (b.parts > blocks) b.parts = blocks;
  Room room;
  b.room_each = room_of(&b, NULL, &room);
  const i64 half = b.sizes[BATCH] * terms * columns * b.bytes / 2; /* many threads need no more than that of the view */
  while (b.parts > 1 && (i64)b.room_each * b.parts > half) b.parts--;
  const size_t all = b.room_each * (size_t)b.parts;
  if (!(b.room = mem_alloc(&vm->alloc, all))) return vm_error_memory(vm);
  const i64 round = b.parts * (ROUND / work > 1 ? ROUND / work : 1);
  WeftStatus status = WEFT_OK;
  for (; b.first < blocks && status == WEFT_OK; b.first = b.end) {
    b.end = blocks - b.first < round ? blocks : b.first + round;
    if (b.first) status = vm_poll(vm, 0);
    if (status != WEFT_OK) break;
    if (b.parts > 1) (void)!pool_run(vm, b.parts, true, part_of_round, &b); /* nothing is polled */
    else part_of_round(&b, 0);
  }
  mem_free(&vm->alloc, b.room, all);
  return status;
}
