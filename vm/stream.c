/* stream.c — stores that pass the caches by (see stream.h). */
#include "vm/stream.h"

#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

/* SHARED_CACHE: a last cache that is larger is one of many processors, with others' data in it (of 105 MiB announced,
 * one found 24 again). */
enum { LINE = 64, SMALLEST_STREAM = 8 << 20, SHARED_CACHE = 32 << 20 };

#ifdef __x86_64__
/* What one processor finds in its last cache: sysconf adds up all of a package. */
static i64 last_cache(void) {
  u32 a, b, c, d;
  bool amd = __get_cpuid_count(0x8000001D, 3, &a, &b, &c, &d) && a & 31;
  if (!amd && !(__get_cpuid_count(4, 3, &a, &b, &c, &d) && a & 31)) return SHARED_CACHE;
  i64 all = (i64)((b & 0xFFF) + 1) * ((b >> 12 & 0x3FF) + 1) * ((b >> 22) + 1) * ((i64)c + 1);
  return all < SHARED_CACHE ? all : SHARED_CACHE;
}
#endif

bool stream_worth(i64 bytes, bool in_order) {
#ifdef __x86_64__
  return bytes >= SMALLEST_STREAM && bytes >= last_cache() / 8 * (in_order ? 6 : 3);
#else
  (void)bytes, (void)in_order;
  return false;
#endif
}

#ifdef __x86_64__
/* Whole lines: a fifth faster than by quarters. */
__attribute__((target("avx512f"))) static void stream_lines(char *d, const char *s, i64 bytes,
                                                            uintptr_t next, u32 each) {
  const bool pages = cpu_has(CPU_PAGES);
  u32 stored = 0;
  for (i64 i = 0; i < bytes; i += LINE) {
    if (each && ++stored == each) {
      __builtin_prefetch((const void *)(pages ? page_ahead(next - PAGES_AHEAD) : next));
      stored = 0, next += LINE;
    }
    _mm512_stream_si512((void *)(d + i), _mm512_loadu_si512(s + i));
  }
}

__attribute__((target("avx"))) static void stream_halves(char *d, const char *s, i64 bytes) {
  for (i64 i = 0; i < bytes; i += LINE)
    for (i64 k = i; k < i + LINE; k += LINE / 2)
      _mm256_stream_si256((__m256i *)(d + k), _mm256_loadu_si256((const __m256i *)(s + k)));
}
#endif

void stream_copy_ahead(void *to, const void *from, i64 bytes, uintptr_t next, u32 each) {
#ifdef __x86_64__
  char *d = to;
  const char *s = from;
  i64 head = (i64)(-(uintptr_t)d & (LINE - 1));
  if (head > bytes) head = bytes;
  if (head) memcpy(d, s, (size_t)head);
  d += head, s += head, bytes -= head;
  i64 whole = bytes / LINE * LINE;
  if (!cpu_has(CPU_FETCH)) each = 0;
  if (cpu_has(CPU_AVX512)) stream_lines(d, s, whole, next, each);
  else if (!each && cpu_has(CPU_AVX2)) stream_halves(d, s, whole);
  else
    for (i64 i = 0; i < whole; i += LINE) {
      if (each && i / LINE % each == 0) __builtin_prefetch((const void *)next), next += LINE;
      for (i64 k = i; k < i + LINE; k += 16)
        _mm_stream_si128((__m128i *)(d + k), _mm_loadu_si128((const __m128i *)(s + k)));
    }
  if (bytes > whole) memcpy(d + whole, s + whole, (size_t)(bytes - whole));
#else
  (void)next, (void)each;
  memcpy(to, from, (size_t)bytes);
#endif
}

void stream_copy(void *to, const void *from, i64 bytes) { stream_copy_ahead(to, from, bytes, (uintptr_t)from, 0); }

void stream_done(void) {
#ifdef __x86_64__
  _mm_sfence();
#endif
}
