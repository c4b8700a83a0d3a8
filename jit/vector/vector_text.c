/* vector_text.c — vector code as text, by Zydis where it is installed (see vector.h).
 *
 * The disassembler is opened when it is first asked for: a program that never prints code does not load it. */
#include "jit/vector/vector_emitter.h"

#if __has_include(<Zydis/Zydis.h>)
#include <Zydis/Zydis.h>
#include <dlfcn.h>

typedef ZyanStatus (*Disassemble)(ZydisMachineMode mode, ZyanU64 address, const void *buffer, ZyanUSize length,
                                  ZydisDisassembledInstruction *out);

static bool by_zydis(const u8 *code, u32 count, u64 address, Buf *out) {
  static const char *const names[] = {"libZydis.so.4.0", "libZydis.so.4", "libZydis.so"};
  void *lib = NULL;
  for (u32 i = 0; !lib && i < COUNT_OF(names); i++) lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!lib) return false;
  void *symbol = dlsym(lib, "ZydisDisassembleIntel");
  Disassemble disassemble;
  __builtin_memcpy(&disassemble, &symbol, sizeof disassemble);
  ZydisDisassembledInstruction i;
  for (u32 at = 0; symbol && at < count;) {
    if (!ZYAN_SUCCESS(disassemble(ZYDIS_MACHINE_MODE_LONG_64, address + at, code + at, count - at, &i))) break;
    buf_printf(out, "  %5x  %s\n", at, i.text);
    at += i.info.length;
  }
  dlclose(lib);
  return symbol != NULL;
}
#else
static bool by_zydis(const u8 *code, u32 count, u64 address, Buf *out) {
  return (void)code, (void)count, (void)address, (void)out, false;
}
#endif

void vec_text(const u8 *code, u32 count, const char *name, Buf *out) {
  buf_printf(out, "%s: %u bytes\n", name, count);
  if (by_zydis(code, count, (u64)(uintptr_t)code, out)) return;
  for (u32 i = 0; i < count; i++)
    buf_printf(out, "%s%02x%s", i % 16 ? " " : "  ", code[i], i % 16 == 15 || i + 1 == count ? "\n" : "");
}
