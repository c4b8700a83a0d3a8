/* vector.c — compiles a kernel to vector code (see vector.h): what it is chosen by, executable memory, printing. */
#include "jit/vector/vector.h"

#include <string.h>

#include "jit/vector/vector_emitter.h"

enum { FRAME_MOST = 1 << 16 };

static const char *const level_texts[VEC_LEVELS] = {"scalar", "strip", "avx2", "avx512"};

const char *vec_level_text(VecLevel level) { return level_texts[level]; }

bool vec_level_find(const char *text, VecLevel *out) {
  for (u32 i = 0; i < VEC_LEVELS; i++)
    if (strcmp(level_texts[i], text) == 0) return *out = (VecLevel)i, true;
  return false;
}

bool vec_level_runs(VecLevel level) {
#ifdef __x86_64__
  const u32 avx2 = CPU_AVX2 | CPU_FMA | CPU_BMI2;
  if (level == VEC_AVX2) return cpu_has(avx2);
  if (level == VEC_AVX512) return cpu_has(avx2 | CPU_AVX512);
  return true;
#else
  return level <= VEC_STRIP;
#endif
}

VecLevel vec_level_best(void) {
  return vec_level_runs(VEC_AVX512) ? VEC_AVX512 : vec_level_runs(VEC_AVX2) ? VEC_AVX2 : VEC_STRIP;
}

VecEmitter *vec_emitter_new(Allocator *alloc, VecLevel level, CodeMemory *memory) {
  VecEmitter *e = mem_alloc_zero(alloc, sizeof *e);
  LoopModule *defs = mem_alloc_zero(alloc, sizeof *defs);
  CodeMemory *own = memory ? NULL : code_memory_new(alloc);
  if (!e || !defs || (!memory && !own) || loop_module_init(defs, alloc) != WEFT_OK) {
    mem_free(alloc, e, sizeof *e);
    mem_free(alloc, defs, sizeof *defs);
    code_memory_free(own);
    return NULL;
  }
  *e = (VecEmitter){.alloc = alloc, .level = level, .defs = defs, .memory = memory ? memory : own,
                    .own_memory = !memory};
  return e;
}

void vec_emitter_free(VecEmitter *e) {
  if (!e) return;
  loop_module_free(e->defs);
  if (e->own_memory) code_memory_free(e->memory);
  mem_free(e->alloc, e->defs, sizeof *e->defs);
  mem_free(e->alloc, e, sizeof *e);
}

/* ---- executable memory ----------------------------------------------------------------------- */

struct VecCode {
  Allocator *alloc;
  CodeMemory *memory;
  u8 *at;
  size_t held;
  u32 bytes; /* of instructions */
};

static VecCode *publish(const VecFn *f) {
  CodeMemory *m = f->level->memory;
  size_t pool_at = asm_pool_at(&f->as), length = pool_at + f->as.pool.count;
  VecCode *c = mem_alloc_zero(f->alloc, sizeof *c);
  if (!c) return NULL;
  *c = (VecCode){.alloc = f->alloc, .memory = m, .held = length, .bytes = f->as.code.count};
  code_memory_open(m);
  if ((c->at = code_memory_take(m, length))) {
    memcpy(c->at, f->as.code.data, f->as.code.count);
    mem_copy(c->at + pool_at, f->as.pool.data, f->as.pool.count);
  }
  if (code_memory_close(m) && c->at) return c;
  vec_code_free(c);
  return NULL;
}

void vec_code_free(VecCode *c) {
  if (!c) return;
  code_memory_give(c->memory, c->at, c->held);
  mem_free(c->alloc, c, sizeof *c);
}

LoopKernelFn vec_code_kernel(const VecCode *c) {
  LoopKernelFn fn;
  memcpy(&fn, &c->at, sizeof fn);
  return fn;
}

u64 vec_code_bytes(const VecCode *c) { return c->held; }
void vec_code_print(const VecCode *c, const char *name, Buf *out) { vec_text(c->at, c->bytes, name, out); }

/* ---- one kernel -------------------------------------------------------------------------------- */

static bool begin(VecFn *f, u32 nodes, u32 body) {
  f->where = mem_alloc_zero(f->alloc, sizeof(u32) * nodes);
  for (u32 k = 0; k < ABREAST_MOST; k++) f->values[k] = mem_alloc_zero(f->alloc, sizeof(VReg) * nodes);
  f->value = f->values[0];
  f->spread = mem_alloc_zero(f->alloc, sizeof(VReg) * nodes);
  f->spread_4 = mem_alloc_zero(f->alloc, sizeof(VReg) * nodes);
  f->spread_low = mem_alloc_zero(f->alloc, sizeof(VReg) * nodes);
  f->narrowed = mem_alloc_zero(f->alloc, sizeof *f->narrowed * nodes);
  f->index_slot = mem_alloc_zero(f->alloc, sizeof(u32) * nodes);
  f->consts = mem_alloc_zero(f->alloc, sizeof *f->consts * CONST_PLACES);
  f->end = mem_alloc_zero(f->alloc, sizeof(u32) * (body + 1));
  VInfo none = {0};
  return f->where && f->value && f->values[1] && f->values[2] && f->values[3] && f->spread && f->spread_4 &&
         f->spread_low && f->narrowed && f->index_slot && f->end && f->consts && vec_push(f->alloc, &f->regs, none);
}

static void finish(VecFn *f, u32 nodes, u32 body) {
  mem_free(f->alloc, f->where, sizeof(u32) * nodes);
  for (u32 k = 0; k < ABREAST_MOST; k++) mem_free(f->alloc, f->values[k], sizeof(VReg) * nodes);
  mem_free(f->alloc, f->spread, sizeof(VReg) * nodes);
  mem_free(f->alloc, f->spread_4, sizeof(VReg) * nodes);
  mem_free(f->alloc, f->spread_low, sizeof(VReg) * nodes);
  mem_free(f->alloc, f->narrowed, sizeof *f->narrowed * nodes);
  mem_free(f->alloc, f->index_slot, sizeof(u32) * nodes);
  mem_free(f->alloc, f->end, sizeof(u32) * (body + 1));
  mem_free(f->alloc, f->consts, sizeof *f->consts * CONST_PLACES);
  vec_free(f->alloc, &f->ins);
  vec_free(f->alloc, &f->regs);
  vec_free(f->alloc, &f->spans);
  vec_free(f->alloc, &f->cold);
  vec_free(f->alloc, &f->fails);
  vec_free(f->alloc, &f->streams);
  vec_free(f->alloc, &f->calls);
  vec_free(f->alloc, &f->kept);
  asm_free(&f->as);
}

static bool find_ends(VecFn *f) {
  u32 open[16], depth = 0;
  for (u32 i = 0; i < f->fn->params.count; i++) f->where[f->fn->params.data[i]] = i;
  for (u32 pos = 0; pos < f->fn->body.count; pos++) {
    u32 id = f->fn->body.data[pos];
    const LoopNode *n = vnode(f, id);
    f->where[id] = pos;
    if (loop_is_head(n)) {
      if (depth == COUNT_OF(open)) return refuse(f, "loops that nest too deeply"), false;
      open[depth++] = pos;
    } else if (n->op == LOOP_END) {
      f->end[open[--depth]] = pos;
    }
  }
  return true;
}

static void emit(VecFn *f) {
  u32 vectors = f->evex ? 32 * 64 : 16 * 32, end;
  if (!find_ends(f)) return;
  f->call_frame = (u32)frame_room(f, 64 + vectors + 64 + 64, 64);
  f->lo_slot = (u32)frame_room(f, 8, 8);
  f->hi_slot = (u32)frame_room(f, 8, 8);
  f->save_label = g_label(f);
  f->key_slot = (u32)frame_room(f, 8, 8);
  f->done = g_label(f);
  end = g_label(f);
  g_imm(f, RAX, LOOP_KEY_NONE);
  g_save(f, RSP, (i32)f->key_slot, RAX);
  g_save(f, RSP, (i32)f->lo_slot, RSI);
  g_save(f, RSP, (i32)f->hi_slot, RDX);
  g_alu(f, ALU_CMP, RSI, RDX);
  g_jcc(f, CC_GE, f->done);
  emit_body(f, 0, f->fn->body.count - 1);
  g_put(f, f->done);
  g_load(f, RAX, RSP, (i32)f->key_slot);
  if (!f->fails.count) return;
  g_jump(f, end);
  emit_fails(f);
  g_put(f, end);
}

VecCode *vec_compile(VecEmitter *e, const LoopFn *source, const char **why) {
  VecCode *code = NULL;
  LoopFn *fn = source->kind == LOOP_KERNEL && !source->is_extern && source->body.count ? loops_simplify(source) : NULL;
  if (!fn) {
    *why = "not a kernel, or out of memory";
    return NULL;
  }
  VecFn f = {.alloc = e->alloc, .fn = fn, .level = e, .evex = e->level == VEC_AVX512, .lanes = 1, .frame = 64};
  u32 nodes = fn->nodes.count, body = fn->body.count;
  asm_init(&f.as, e->alloc, f.evex);
  if (toil_pass(fn->module->toil)) toil_forever(fn->module->toil);
  if (!begin(&f, nodes, body)) refuse(&f, "out of memory");
  else emit(&f);
  if ((e->past && !f.passes) || (e->ahead && !f.fetches)) refuse(&f, "nothing that is long");
  e->reads = f.reads && (f.folds || !f.may_pass);
  if (!f.failed && f.as.failed) refuse(&f, "out of memory");
  if (!f.failed && give_registers(&f)) {
    if (f.frame >= FRAME_MOST) refuse(&f, "a frame that is too large");
    else if (encode(&f) && !(code = publish(&f))) refuse(&f, "no executable memory");
  }
  *why = code ? "" : f.why;
  finish(&f, nodes, body);
  loop_fn_free(fn);
  return code;
}
