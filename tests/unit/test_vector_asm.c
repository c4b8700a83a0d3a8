/* test_vector_asm.c — every encoding of jit/vector/vector.def, read back by Zydis: mnemonic, registers, mask, memory,
 * length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "jit/vector/vector_asm.h"

#if __has_include(<Zydis/Zydis.h>)
#include <Zydis/Zydis.h>

typedef struct Read {
  ZydisDecodedInstruction i;
  ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
} Read;

static bool read_one(const Asm *a, u32 at, Read *r) {
  ZydisDecoder d;
  ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, a->code.data + at, a->code.count - at, &r->i, r->o));
}

/* Number within its class; -1: no register there. */
static int number(ZydisRegister r) { return r == ZYDIS_REGISTER_NONE ? -1 : ZydisRegisterGetId(r); }

#define EXPECT(cond, ...)             \
  do {                                \
    if (!(cond)) fail_msg(__VA_ARGS__); \
  } while (0)

static void check_memory(const char *text, const ZydisDecodedOperand *o, const VecMem *m) {
  EXPECT(o->type == ZYDIS_OPERAND_TYPE_MEMORY, "%s: no memory operand", text);
  if (m->pool) {
    EXPECT(o->mem.base == ZYDIS_REGISTER_RIP, "%s: not relative to the instruction", text);
    return;
  }
  EXPECT(number(o->mem.base) == m->base, "%s: base %d, not %d", text, number(o->mem.base), m->base);
  EXPECT((o->mem.disp.has_displacement ? o->mem.disp.value : 0) == m->disp, "%s: displacement %d", text,
         (int)o->mem.disp.value);
  if (m->index == NO_INDEX) EXPECT(o->mem.index == ZYDIS_REGISTER_NONE, "%s: an index", text);
  else
    EXPECT(number(o->mem.index) == m->index && o->mem.scale == 1u << m->scale, "%s: index %d scale %d, not %d %d", text,
           number(o->mem.index), o->mem.scale, m->index, 1 << m->scale);
}

static void check_vec(Asm *a, const VecIns *v) {
  const VecOpInfo *o = &vec_op_info[v->op];
  u32 from = a->code.count;
  Read r;
  asm_vec(a, v);
  EXPECT(read_one(a, from, &r), "%s: cannot be read (form %d length %d dst %d a %d b %d)", o->text, o->form, v->length,
         v->dst, v->a, v->b);
  EXPECT(r.i.length == a->code.count - from, "%s: %d bytes of %d", o->text, r.i.length, a->code.count - from);
  const char *name = ZydisMnemonicGetString(r.i.mnemonic);
  EXPECT(strcmp(name, o->text) == 0, "%s is read as %s", o->text, name);
  bool wide = r.i.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
  EXPECT(wide == (o->enc == VE_E || (o->enc == VE_B && a->evex)), "%s: the wrong encoding", o->text);
  ZydisDecodedOperand ops[6]; /* without the mask */
  u32 n = 0;
  for (u32 k = 0; k < r.i.operand_count_visible; k++) {
    if (wide && k == 1 && r.o[k].type == ZYDIS_OPERAND_TYPE_REGISTER && r.o[k].reg.value >= ZYDIS_REGISTER_K0 &&
        r.o[k].reg.value <= ZYDIS_REGISTER_K7 && o->form != VF_RK)
      continue;
    ops[n++] = r.o[k];
  }
  if (wide)
    EXPECT(number(r.i.avx.mask.reg) == v->mask || (!v->mask && number(r.i.avx.mask.reg) <= 0), "%s: mask %d", o->text,
           number(r.i.avx.mask.reg));
  bool saves = o->form == VF_MR || o->form == VF_MRI || o->form == VF_SCATTER;
  u8 want[4];
  u32 count = 0;
  want[count++] = v->dst;
  if (o->form == VF_RVM || o->form == VF_RVMI || o->form == VF_RVMR || o->form == VF_KRVM || o->form == VF_KRVMI)
    want[count++] = v->a, want[count++] = v->b;
  else want[count++] = v->a;
  if (o->form == VF_RVMR) want[count++] = v->c;
  u32 rm = saves ? 0 : o->form == VF_RVMR ? 2 : count - 1;
  if ((v->op == V_MOVSS_FROM || v->op == V_MOVSS_TO || v->op == V_MOVSD_FROM || v->op == V_MOVSD_TO) && !v->mem.used)
    return;
  EXPECT(n >= count, "%s: %d operands", o->text, n);
  for (u32 k = 0; k < count; k++) {
    if (k == rm && v->mem.used) {
      check_memory(o->text, &ops[k], &v->mem);
      EXPECT(!wide || r.i.avx.broadcast.mode == ZYDIS_BROADCAST_MODE_INVALID || v->mem.broadcast ||
             r.i.avx.broadcast.is_static, "%s: broadcast", o->text);
    } else {
      EXPECT(ops[k].type == ZYDIS_OPERAND_TYPE_REGISTER && number(ops[k].reg.value) == want[k],
             "%s: operand %d is register %d, not %d", o->text, k, number(ops[k].reg.value), want[k]);
    }
  }
  if (v->mem.used && v->mem.broadcast)
    EXPECT(r.i.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID, "%s: not broadcast", o->text);
  if (v->mask && o->form != VF_KRVM && o->form != VF_KRVMI)
    EXPECT((r.i.avx.mask.mode == ZYDIS_MASK_MODE_ZEROING ||
            r.i.avx.mask.mode == ZYDIS_MASK_MODE_CONTROL_ZEROING) == v->zero, "%s: zeroing", o->text);
}

static bool is_half(u32 op) { /* its general register or its one lane: only 128 bits */
  return op == V_MOVSS_FROM || op == V_MOVSS_TO || op == V_MOVSD_FROM || op == V_MOVSD_TO || op == V_MOVD_GPR ||
         op == V_MOVD_TO_GPR || op == V_MOVQ_GPR || op == V_MOVQ_TO_GPR;
}

static bool goes(u32 op, u32 length, bool evex) {
  if (length == L512 && (!evex || vec_op_info[op].enc == VE_V)) return false;
  if (is_half(op)) return length == L128;
  if (op == V_EXTRACT4X64) return length == L512;
  /* there is no shorter form */
  if (op == V_EXTRACT4X32 || op == V_EXTRACT128 || op == V_INSERT4X32 || op == V_INSERT128 || op == V_PERMQ_I ||
      op == V_PERMQ || op == V_PERMD)
    return length != L128;
  return true;
}

static void all_rows(bool evex) {
  Asm a;
  asm_init(&a, allocator_system(), evex);
  for (u32 op = 1; op < V_COUNT; op++) {
    const VecOpInfo *o = &vec_op_info[op];
    if (!evex && o->enc == VE_E) continue;
    bool wide = evex && o->enc != VE_V;
    u32 most = wide ? 32 : 16;
    bool to_mask = o->form == VF_KRVM || o->form == VF_KRVMI,
        special = o->form == VF_GATHER || o->form == VF_SCATTER || o->form == VF_RK;
    bool signs = op == V_MOVMSKPS || op == V_MOVMSKPD || op == V_PMOVMSKB;
    bool gpr = op == V_MOVD_GPR || op == V_MOVD_TO_GPR || op == V_MOVQ_GPR || op == V_MOVQ_TO_GPR || signs;
    for (u32 length = L128; length <= L512; length++) {
      if (!goes(op, length, evex)) continue;
      for (u32 k = 0; k < 200 && !special; k++) {
        u32 h = (k * 2654435761u + op * 40503u) >> 7;
        VecIns v = {.op = (u16)op, .length = (u8)length, .dst = (u8)(h % most), .a = (u8)(h / 37 % most),
                    .b = (u8)(h / 1009 % most), .c = (u8)(h / 211 % 16)};
        if (to_mask) v.dst = (u8)(h % 8);
        if (op == V_MOVD_GPR || op == V_MOVQ_GPR) v.a = (u8)(v.a % 16);
        if (gpr && (op == V_MOVD_TO_GPR || op == V_MOVQ_TO_GPR || signs))
          v.dst = (u8)(v.dst % 16);
        if (wide && k % 3 == 0 && !is_half(op))
          v.mask = (u8)(1 + h % 7), v.zero = !to_mask && o->form != VF_MR && o->form != VF_MRI && k % 2;
        bool stored_non_temporal = op == V_MOVNTPS_TO || op == V_MOVNTPD_TO;
        if (stored_non_temporal) v.mask = 0, v.zero = false;
        bool can_mem = o->form != VF_VMI && !signs;
        if (stored_non_temporal || (k % 2 && can_mem)) {
          v.mem = (VecMem){.used = true, .base = (u8)(h / 7 % 16),
                           .index = k % 4 == 1 ? (u8)NO_INDEX : (u8)(h / 3 % 16), .scale = (u8)(h % 4),
                           .disp = k % 5 == 1 ? 0 : (i32)(h % 100000) - 5000};
          if (v.mem.index == RSP) v.mem.index = NO_INDEX;
          if (v.mem.index == NO_INDEX) v.mem.scale = 0;
          if (k % 7 == 1) v.mem = (VecMem){.used = true, .pool = true, .disp = 64};
          if (wide && o->element && k % 8 == 3) v.mem.broadcast = true;
          if (o->form == VF_MR || o->form == VF_MRI) v.zero = false;
        }
        check_vec(&a, &v);
      }
      if (o->form == VF_RK) check_vec(&a, &(VecIns){.op = (u16)op, .length = (u8)length, .dst = 19, .a = 5});
      for (u32 k = 0; k < 16 && (o->form == VF_GATHER || o->form == VF_SCATTER); k++) {
        VecIns v = {.op = (u16)op, .length = (u8)length, .mask = (u8)(1 + k % 7),
          .mem = {.used = true, .vector_index = true, .base = (u8)k, .index = (u8)(2 * k), .scale = (u8)(k % 4),
                  .disp = k % 3 ? (i32)k * 100 : 0}};
        *(o->form == VF_GATHER ? &v.dst : &v.a) = (u8)(31 - 2 * (k % 15));
        check_vec(&a, &v);
      }
    }
    a.code.count = 0;
    a.fixes.count = 0;
  }
  assert_false(a.failed);
  asm_free(&a);
}

static void every_vex_encoding_reads_back(void **state) {
  (void)state;
  all_rows(false);
}
static void every_evex_encoding_reads_back(void **state) {
  (void)state;
  all_rows(true);
}

static void mask_encodings_read_back(void **state) {
  (void)state;
  Asm a;
  asm_init(&a, allocator_system(), true);
  for (u32 op = 0; op < K_COUNT; op++)
    for (u32 k = 0; k < 16; k++) {
      const MaskOpInfo *o = &mask_op_info[op];
      u32 from = a.code.count, x = k % 8, y = (k * 5 + 3) % 8, z = (k * 3 + 1) % 8;
      Read r;
      if (o->form == KF_FROM) y = k;
      u32 dst = o->form == KF_TO ? k : x;
      if (o->form == KF_LOAD || o->form == KF_SAVE) asm_mask_mem(&a, (MaskOp)op, x, k, (i32)k * 1000);
      else asm_mask(&a, (MaskOp)op, dst, y, z);
      assert_true(read_one(&a, from, &r));
      assert_int_equal(r.i.length, a.code.count - from);
      EXPECT(strcmp(ZydisMnemonicGetString(r.i.mnemonic), o->text) == 0, "%s is read as %s", o->text,
             ZydisMnemonicGetString(r.i.mnemonic));
      if (o->form == KF_SAVE) {
        assert_int_equal(number(r.o[1].reg.value), x);
        assert_int_equal(number(r.o[0].mem.base), k);
        continue;
      }
      assert_int_equal(number(r.o[0].reg.value), dst);
      if (o->form == KF_LOAD) {
        assert_int_equal(number(r.o[1].mem.base), k);
        assert_int_equal(r.o[1].mem.disp.value, k * 1000);
      } else {
        assert_int_equal(number(r.o[1].reg.value), y);
        if (o->form == KF_RVR) assert_int_equal(number(r.o[2].reg.value), z);
      }
    }
  asm_free(&a);
}

/* Mnemonic and the formatted operands. */
static void expect_text(Asm *a, const char *text) {
  Read r;
  char line[128];
  ZydisFormatter f;
  assert_true(read_one(a, 0, &r));
  assert_int_equal(r.i.length, a->code.count);
  ZydisFormatterInit(&f, ZYDIS_FORMATTER_STYLE_INTEL);
  ZydisFormatterFormatInstruction(&f, &r.i, r.o, r.i.operand_count_visible, line, sizeof line,
                                  ZYDIS_RUNTIME_ADDRESS_NONE, NULL);
  assert_string_equal(line, text);
  a->code.count = 0;
}

static void general_encodings_read_back(void **state) {
  (void)state;
  Asm a;
  asm_init(&a, allocator_system(), true);
#define LINE(call, text) call, expect_text(&a, text)
  LINE(asm_mov(&a, R9, RSI), "mov r9, rsi");
  LINE(asm_mov_imm(&a, R12, 0x1234567890ABCDEF), "mov r12, 0x1234567890ABCDEF");
  LINE(asm_mov_imm(&a, RCX, 77), "mov ecx, 0x4D");
  LINE(asm_load(&a, RAX, RBX, 24), "mov rax, [rbx+0x18]");
  LINE(asm_load(&a, R13, RSP, 0), "mov r13, [rsp]");
  LINE(asm_load(&a, R13, R13, 0), "mov r13, [r13]");
  LINE(asm_save(&a, R12, -8, R15), "mov [r12-0x08], r15");
  LINE(asm_lea(&a, RDX, R8, R10, 3, 64), "lea rdx, [r8+r10*8+0x40]");
  LINE(asm_lea(&a, R14, RBP, NO_INDEX, 0, 5), "lea r14, [rbp+0x05]");
  LINE(asm_alu(&a, ALU_ADD, R8, RDI), "add r8, rdi");
  LINE(asm_alu(&a, ALU_CMP, RDI, R15), "cmp rdi, r15");
  LINE(asm_alu_imm(&a, ALU_SUB, R11, 100), "sub r11, 0x64");
  LINE(asm_alu_imm(&a, ALU_AND, RSP, -64), "and rsp, 0xFFFFFFFFFFFFFFC0");
  LINE(asm_alu_imm(&a, ALU_CMP, RAX, 100000), "cmp rax, 0x186A0");
  LINE(asm_alu_load(&a, ALU_SUB, RCX, RSP, 16), "sub rcx, [rsp+0x10]");
  LINE(asm_alu_mem_imm(&a, ALU_ADD, RSP, 16, 1), "add qword ptr [rsp+0x10], 0x01");
  LINE(asm_imul(&a, R9, RAX), "imul r9, rax");
  LINE(asm_imul_imm(&a, RAX, R9, 24), "imul rax, r9, 0x18");
  LINE(asm_imul_load(&a, RAX, RBX, 8), "imul rax, [rbx+0x08]");
  LINE(asm_shift(&a, true, R10, 3), "shl r10, 0x03");
  LINE(asm_shift(&a, false, RDX, 2), "shr rdx, 0x02");
  LINE(asm_cmov(&a, CC_G, RAX, R12), "cmovnle rax, r12");
  LINE(asm_bzhi(&a, RAX, R9, RCX), "bzhi rax, r9, rcx");
  LINE(asm_zero_extend_byte(&a, RAX, R8, R15, 0, 3), "movzx rax, byte ptr [r8+r15*1+0x03]");
  LINE(asm_zero_extend_word(&a, R10, R8, R15, 1, 0), "movzx r10, word ptr [r8+r15*2]");
  LINE(asm_load32(&a, R10, RSI, NO_INDEX, 0, 4), "mov r10d, [rsi+0x04]");
  LINE(asm_save8(&a, RDI, R15, 0, 0, RSI), "mov [rdi+r15*1], sil");
  LINE(asm_save16(&a, R9, NO_INDEX, 0, 0, R10), "mov [r9], r10w");
  LINE(asm_save32(&a, RSP, 4, RAX), "mov [rsp+0x04], eax");
  LINE(asm_call(&a, R11), "call r11");
  LINE(asm_push(&a, R12), "push r12");
  LINE(asm_pop(&a, RBX), "pop rbx");
  LINE(asm_ret(&a), "ret");
  LINE(asm_vzeroupper(&a), "vzeroupper");
  LINE(asm_sfence(&a), "sfence");
  LINE(asm_tzcnt(&a, R9, RCX), "tzcnt r9, rcx");
  asm_free(&a);
}

static void labels_and_constants_are_found(void **state) {
  (void)state;
  Asm a;
  Read r;
  u64 one = 0x3FF0000000000000u, two = 0x4000000000000000u;
  asm_init(&a, allocator_system(), true);
  u32 top = asm_label(&a), end = asm_label(&a);
  asm_put(&a, top);
  asm_jcc(&a, CC_GE, end);
  assert_int_equal(asm_append(&a, &one, 4), 0);
  u32 at = asm_append(&a, &two, 8);
  assert_int_equal(at, 8);
  u32 add = a.code.count;
  asm_vec(&a, &(VecIns){.op = V_RANGEPD, .length = L512, .dst = 1, .a = 2, .imm = 4,
                        .mem = {.used = true, .pool = true, .broadcast = true, .disp = (i32)at}});
  u32 back = a.code.count;
  asm_jump(&a, top);
  asm_put(&a, end);
  asm_ret(&a);
  assert_true(asm_finish(&a));
  assert_true(read_one(&a, 0, &r));
  assert_int_equal(r.o[0].imm.value.s + r.i.length, a.code.count - 1);
  assert_true(read_one(&a, back, &r));
  assert_int_equal(back + r.i.length + r.o[0].imm.value.s, 0);
  assert_true(read_one(&a, add, &r));
  assert_int_equal(add + r.i.length + r.o[3].mem.disp.value, asm_pool_at(&a) + at);
  asm_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_vex_encoding_reads_back), cmocka_unit_test(every_evex_encoding_reads_back),
    cmocka_unit_test(mask_encodings_read_back),      cmocka_unit_test(general_encodings_read_back),
    cmocka_unit_test(labels_and_constants_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void skipped(void **state) {
  (void)state;
  print_message("# skipped: there is no disassembler to read with\n");
  skip();
}
int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(skipped)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
