/* halves.h — numbers of 16 bits: f16 and bf16 from and to f32, by integers alone, so that all tiers and processors
 * give the same bits. To nearest, ties to even; what is too large becomes infinite; every NaN the same one. */
#ifndef WEFT_LANG_HALVES_H
#define WEFT_LANG_HALVES_H

#include "lang/dtypes.h"

#include <string.h>

static inline u32 half_bits(f32 v) {
  u32 bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}
static inline f32 half_number(u32 bits) {
  f32 v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static inline f32 f16_to_f32(u16 h) {
  u32 sign = (u32)(h & 0x8000) << 16, rest = h & 0x7FFF;
  /* normal numbers: another bias. What overflows by it was infinite or NaN. Subnormal ones: as a difference. */
  u32 normal = (rest << 13) + (112u << 23), special = (rest << 13) | 0x7F800000;
  u32 tiny = half_bits(half_number((113u << 23) + (rest << 13)) - half_number(113u << 23));
  return half_number(sign | (rest >= 0x7C00 ? special : rest < 0x400 ? tiny : normal));
}

static inline u16 f32_to_f16(f32 v) {
  u32 bits = half_bits(v), sign = bits >> 16 & 0x8000, a = bits & 0x7FFFFFFF;
  u32 normal = (a + 0xFFF + (a >> 13 & 1) - (112u << 23)) >> 13;
  /* below the least normal number: the sum with 0.5 rounds where f16 does, and its last bits are the result */
  u32 tiny = half_bits(half_number(a < 0x38800000 ? a : 0) + 0.5f) - 0x3F000000;
  u32 r = a < 0x38800000 ? tiny : normal;
  if (a >= 0x477FF000) r = 0x7C00;
  if (a > 0x7F800000) r = 0x7E00, sign = 0;
  return (u16)(sign | r);
}

static inline f32 bf16_to_f32(u16 h) { return half_number((u32)h << 16); }

static inline u16 f32_to_bf16(f32 v) {
  u32 a = half_bits(v);
  return (a & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : (u16)((a + 0x7FFF + (a >> 16 & 1)) >> 16);
}

/* The number beside x is as many times as far from it as the f32 beside it, at least by the least number; beside an
 * infinity lies the largest number. */
static inline f32 half_steps(u32 dtype) { return dtype == DT_f16 ? 0x1p13f : 0x1p16f; }
static inline f32 half_least(u32 dtype) { return dtype == DT_f16 ? 0x1p-24f : 0x1p-133f; }
static inline f32 half_largest(u32 dtype) { return dtype == DT_f16 ? 65504.0f : 0x1.fep127f; }

/* The f32 beside x that is odd, or x itself: what is rounded once more from it is rounded as from x. */
static inline f32 f32_odd(f64 x) {
  f32 near = (f32)x;
  u32 bits = half_bits(near);
  if ((f64)near == x || x != x || bits & 1) return near;
  f64 a = x < 0 ? -x : x, b = near < 0 ? -(f64)near : (f64)near;
  return half_number(b > a ? bits - 1 : bits + 1);
}

/* A number as f64, from which f32_odd makes what an i64 or u64 would give: its last bits stand for those behind. */
static inline f64 f64_odd_i64(i64 v) {
  return (f64)(v >= -((i64)1 << 53) && v <= (i64)1 << 53 ? v : (i64)(((u64)v >> 11 | ((v & 0x7FF) != 0)) << 11));
}
static inline f64 f64_odd_u64(u64 v) { return (f64)(v <= (u64)1 << 53 ? v : (v >> 11 | ((v & 0x7FF) != 0)) << 11); }

/* An element of a dtype that computes in f32. */
static inline f32 half_load(u32 dtype, u16 h) { return dtype == DT_f16 ? f16_to_f32(h) : bf16_to_f32(h); }
static inline u16 half_store(u32 dtype, f32 v) { return dtype == DT_f16 ? f32_to_f16(v) : f32_to_bf16(v); }
/* The number of that dtype nearest to v. */
static inline f32 half_round(u32 dtype, f32 v) { return half_load(dtype, half_store(dtype, v)); }

#endif
