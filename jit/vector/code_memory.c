/* code_memory.c — mappings for machine code and the free pieces in them (see code_memory.h). */
#define _GNU_SOURCE
#include "jit/vector/code_memory.h"

#include <string.h>
#include <sys/mman.h>

enum { CHUNK = 256 << 10, PAGE = 4096, ALIGN = 64 };

typedef struct Free {
  size_t at, bytes;
} Free;

typedef struct Chunk {
  struct Chunk *next;
  u8 *base;
  size_t bytes, used;
  bool writable;
  VEC(Free) free; /* ascending, none touches the next */
} Chunk;

struct CodeMemory {
  Allocator *alloc;
  Chunk *chunks;
  u32 open;
};

static size_t memory_rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

CodeMemory *code_memory_new(Allocator *alloc) {
  CodeMemory *m = mem_alloc_zero(alloc, sizeof *m);
  if (m) m->alloc = alloc;
  return m;
}

static void free_chunk(CodeMemory *m, Chunk *c) {
  munmap(c->base, c->bytes);
  vec_free(m->alloc, &c->free);
  mem_free(m->alloc, c, sizeof *c);
}

void code_memory_free(CodeMemory *m) {
  if (!m) return;
  for (Chunk *next, *c = m->chunks; c; c = next) {
    next = c->next;
    free_chunk(m, c);
  }
  mem_free(m->alloc, m, sizeof *m);
}

void code_memory_open(CodeMemory *m) { m->open++; }

bool code_memory_close(CodeMemory *m) {
  bool ok = true;
  if (--m->open) return true;
  for (Chunk *c = m->chunks; c; c = c->next) {
    if (!c->writable) continue;
    if (mprotect(c->base, c->bytes, PROT_READ | PROT_EXEC) == 0) c->writable = false;
    else ok = false;
  }
  return ok;
}

static Chunk *new_chunk(CodeMemory *m, size_t bytes) {
  Chunk *c = mem_alloc_zero(m->alloc, sizeof *c);
  if (!c) return NULL;
  c->bytes = bytes > CHUNK ? memory_rounded(bytes, PAGE) : CHUNK;
  Free all = {0, c->bytes};
  if (vec_push(m->alloc, &c->free, all)) {
    c->base = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    c->writable = true;
    if (c->base != MAP_FAILED) {
      c->next = m->chunks;
      return m->chunks = c;
    }
  }
  vec_free(m->alloc, &c->free);
  mem_free(m->alloc, c, sizeof *c);
  return NULL;
}

static bool make_writable(Chunk *c) {
  if (!c->writable) c->writable = mprotect(c->base, c->bytes, PROT_READ | PROT_WRITE) == 0;
  return c->writable;
}

static u8 *take_of(Chunk *c, size_t bytes) {
  for (u32 i = 0; i < c->free.count; i++) {
    Free *f = &c->free.data[i];
    if (f->bytes < bytes) continue;
    if (!make_writable(c)) return NULL;
    u8 *at = c->base + f->at;
    f->at += bytes;
    f->bytes -= bytes;
    c->used += bytes;
    if (!f->bytes) {
      memmove(f, f + 1, sizeof *f * (c->free.count - i - 1));
      c->free.count--;
    }
    return at;
  }
  return NULL;
}

u8 *code_memory_take(CodeMemory *m, size_t bytes) {
  u8 *at = NULL;
  bytes = memory_rounded(bytes, ALIGN);
  for (Chunk *c = m->chunks; c && !at; c = c->next) at = take_of(c, bytes);
  if (at) return at;
  Chunk *c = new_chunk(m, bytes);
  return c ? take_of(c, bytes) : NULL;
}

/* A piece that there is no memory to note stays unused until its mapping is empty. */
static void note_free(CodeMemory *m, Chunk *c, size_t at, size_t bytes) {
  u32 i = 0;
  while (i < c->free.count && c->free.data[i].at < at) i++;
  Free *before = i ? &c->free.data[i - 1] : NULL, *after = i < c->free.count ? &c->free.data[i] : NULL;
  bool joins = after && at + bytes == after->at;
  if (before && before->at + before->bytes == at) {
    before->bytes += bytes + (joins ? after->bytes : 0);
    if (!joins) return;
    memmove(after, after + 1, sizeof *after * (c->free.count - i - 1));
    c->free.count--;
  } else if (joins) {
    after->at = at;
    after->bytes += bytes;
  } else if (vec_reserve(m->alloc, (void **)&c->free.data, &c->free.cap, c->free.count + 1, sizeof *c->free.data)) {
    memmove(c->free.data + i + 1, c->free.data + i, sizeof *c->free.data * (c->free.count - i));
    c->free.data[i] = (Free){at, bytes};
    c->free.count++;
  }
}

static void memory_give(CodeMemory *m, u8 *piece, size_t bytes) {
  for (Chunk **at = &m->chunks; *at; at = &(*at)->next) {
    Chunk *c = *at;
    if (piece < c->base || piece >= c->base + c->bytes) continue;
    c->used -= bytes;
    if (c->used) {
      note_free(m, c, (size_t)(piece - c->base), bytes);
    } else if (m->chunks->next) {
      *at = c->next;
      free_chunk(m, c);
    } else {
      c->free.count = 1; /* there was room for one from the start */
      c->free.data[0] = (Free){0, c->bytes};
    }
    return;
  }
}

void code_memory_give(CodeMemory *m, u8 *piece, size_t bytes) {
  if (piece) memory_give(m, piece, memory_rounded(bytes, ALIGN));
}

void code_memory_trim(CodeMemory *m, u8 *piece, size_t bytes, size_t needed) {
  bytes = memory_rounded(bytes, ALIGN);
  needed = memory_rounded(needed, ALIGN);
  if (needed < bytes) memory_give(m, piece + needed, bytes - needed);
}
