/* cpu.c — what this processor can do, and the system lets programs use (see base.h). The compiler's own test of
 * this brings the names of all processors with it: 5 KB. */
#include "parser/base.h"

#ifdef __x86_64__
#include <cpuid.h>

/* Bits of registers that CPUID and XGETBV answer in. */
enum { ECX1_FMA = 1 << 12, ECX1_SSE41 = 1 << 19, ECX1_OSXSAVE = 1 << 27, ECX1_F16C = 1 << 29 };
enum { EBX7_AVX2 = 1 << 5, EBX7_BMI2 = 1 << 8, EBX7_AVX512F = 1 << 16, EBX7_AVX512DQ = 1 << 17,
       EBX7_AVX512BW = 1 << 30 };
#define EBX7_AVX512VL (1u << 31)
enum { XCR0_YMM = 0x6, XCR0_ZMM = 0xe6 };
enum { VENDOR_AMD = 0x444D4163 /* "cAMD", the last of its name */, VENDOR_INTEL = 0x6C65746E /* "ntel" */,
       FAMILY_ZEN3 = 0x19 /* and Zen 4's, by other models */, FAMILY_ZEN5 = 0x1A };
enum { MODELS_ZEN3 = 0x3D /* bits of their upper halves */ };

/* CPU_FETCH, CPU_PAGES, CPU_BESIDE. Measured on Zen 3, 4 and 5 and Xeons with AVX-512; others are taken to be like Zen
 * 5. `eax`: of question 1. */
static u32 fetches(u32 eax) {
  u32 a, b, c = 0, d, family = (eax >> 8 & 15) + (eax >> 20 & 255);
  if (__get_cpuid(0, &a, &b, &c, &d) && c == VENDOR_AMD && family < FAMILY_ZEN5)
    return family == FAMILY_ZEN3 && MODELS_ZEN3 >> (eax >> 16 & 15) & 1 ? CPU_FETCH | CPU_PAGES : 0;
  return c == VENDOR_INTEL ? CPU_FETCH | CPU_PAGES | CPU_BESIDE : CPU_FETCH | CPU_BESIDE;
}

static u32 ask(void) {
  const u32 wide = EBX7_AVX512F | EBX7_AVX512DQ | EBX7_AVX512BW | EBX7_AVX512VL;
  u32 a, b, c, d, kept = 0, top, has = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  has |= fetches(a);
  if (c & ECX1_SSE41) has |= CPU_SSE41;
  if (c & ECX1_OSXSAVE) __asm__("xgetbv" : "=a"(kept), "=d"(top) : "c"(0));
  bool ymm = (kept & XCR0_YMM) == XCR0_YMM, zmm = (kept & XCR0_ZMM) == XCR0_ZMM;
  if (ymm && c & ECX1_FMA) has |= CPU_FMA;
  if (ymm && c & ECX1_F16C) has |= CPU_F16C;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return has;
  if (b & EBX7_BMI2) has |= CPU_BMI2;
  if (ymm && b & EBX7_AVX2) has |= CPU_AVX2;
  if (zmm && (b & wide) == wide) has |= CPU_AVX512;
  return has;
}
#else
static u32 ask(void) { return CPU_FETCH | CPU_BESIDE; }
#endif

bool cpu_has(u32 features) {
  static u32 known; /* asked once: under a hypervisor the question takes microseconds */
  u32 has = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!has) {
    has = ask() | CPU_ASKED;
    __atomic_store_n(&known, has, __ATOMIC_RELAXED);
  }
  return (has & features) == features;
}

u32 cpu_ahead(void) { return cpu_has(CPU_FETCH) ? FETCH_AHEAD : 0; }
