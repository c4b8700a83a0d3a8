"""Tests of the stand-in for the CUDA driver: kernels with a fault planted in each, which it must refuse, and one good.
Usage: python3 tests/tools/gpu_machine.py [LIBRARY]      (build/tests/libcuda.so)"""
import ctypes
import os
import re
import struct
import sys
import tempfile

HEAD = ".version 6.4\n.target sm_70\n.address_size 64\n"
# Each thread writes a word of shared memory, the block meets, and it reads its neighbour's; four words leave at once.
GOOD = """.visible .entry k (
  .param .u64 a0
) {
  .reg .pred  %p<3>;
  .reg .b32   %r<9>;
  .reg .b64   %rd<6>;
  .shared .align 8 .b8 tile[256];
  ld.param.u64 %rd1, [a0];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mad.lo.u32 %r3, %r1, 4, %r2;
  st.shared.u32 [%r3], %r1;
  bar.sync 0;
  xor.b32 %r4, %r1, 33;
  mad.lo.u32 %r4, %r4, 4, %r2;
  ld.shared.u32 %r5, [%r4];
  cvt.u64.u32 %rd2, %r1;
  mad.lo.s64 %rd3, %rd2, 16, %rd1;
  st.global.v4.u32 [%rd3], {%r5, %r5, %r5, %r5};
  ret;
}
"""
# Each block takes a number, waits for a word of the block with the number before it, and leaves one for the next.
WAITING = """.visible .entry k (
  .param .u64 a0
) {
  .reg .pred  %p<5>;
  .reg .b32   %r<9>;
  .reg .b64   %rd<9>;
  .shared .align 8 .b8 tile[8];
  ld.param.u64 %rd1, [a0];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra taken;
  atom.global.add.u32 %r3, [%rd1], 1;
  st.shared.u32 [%r2], %r3;
taken:
  bar.sync 0;
  ld.shared.u32 %r3, [%r2];
  mul.wide.u32 %rd2, %r3, 8;
  add.u64 %rd2, %rd2, %rd1;
  mov.u64 %rd3, 0;
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra first;
wait:
  ld.relaxed.gpu.global.u64 %rd3, [%rd2];
  setp.eq.u64 %p3, %rd3, 0;
  @%p3 bra wait;
first:
  bar.sync 0;
  add.u64 %rd3, %rd3, 3;
  @%p1 bra end;
  st.relaxed.gpu.global.u64 [%rd2+8], %rd3;
end:
  ret;
}
"""
WAITING_FAULTS = [
    ("waits-for-itself", "%rd3, [%rd2];", "%rd3, [%rd2+8];", "does not end"),
    ("number-by-place", "  ld.shared.u32 %r3, [%r2];\n", "  ld.shared.u32 %r3, [%r2];\n  mov.u32 %r3, %ctaid.x;\n",
     "does not end"),
    ("never-published", "[%rd2+8], %rd3;", "[%rd2+80], %rd3;", "does not end"),
    ("published-across", "[%rd2+8], %rd3;", "[%rd2+4], %rd3;", "not aligned to 8"),
]
# A warp multiplies 16 times 16 halves by 16 times 8: both are copied to shared memory (rows of 48 bytes, so that eight
# of them begin in different banks), loaded as fragments, multiplied, and two sums of each thread are stored.
PRODUCT = """.visible .entry k (
  .param .u64 a0
) {
  .reg .pred  %p<3>;
  .reg .b32   %r<30>;
  .reg .b64   %rd<9>;
  .reg .f32   %f<5>;
  .shared .align 16 .b8 tile[1536];
  ld.param.u64 %rd1, [a0];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mul.wide.u32 %rd2, %r1, 16;
  add.u64 %rd2, %rd2, %rd1;
  shr.u32 %r3, %r1, 1;
  and.b32 %r4, %r1, 1;
  mad.lo.u32 %r5, %r3, 48, %r2;
  mad.lo.u32 %r5, %r4, 16, %r5;
  cp.async.cg.shared.global [%r5], [%rd2], 16, 16;
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.sync 0;
  and.b32 %r6, %r1, 15;
  shr.u32 %r7, %r1, 4;
  and.b32 %r7, %r7, 1;
  mad.lo.u32 %r8, %r6, 48, %r2;
  mad.lo.u32 %r8, %r7, 16, %r8;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r8];
  ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r14, %r15, %r16, %r17}, [%r8+768];
  mov.f32 %f1, 0f00000000;
  mov.f32 %f2, 0f00000000;
  mov.f32 %f3, 0f00000000;
  mov.f32 %f4, 0f00000000;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, """ \
    """{%f1, %f2, %f3, %f4};
  bar.sync 0;
  cvt.rn.f16x2.f32 %r18, %f2, %f1;
  cvt.u64.u32 %rd3, %r1;
  mad.lo.s64 %rd4, %rd3, 4, %rd1;
  st.global.u32 [%rd4], %r18;
  ret;
}
"""
PRODUCT_FAULTS = [ # None: another result
    ("product-no-meeting", "  bar.sync 0;\n  and", "  and", "between meetings"),
    ("product-not-waited", "wait_group 0", "wait_group 1", None),
    ("product-no-group", "  cp.async.commit_group;\n", "", None),
    ("product-not-turned", ".x4.trans.", ".x4.", None),
    ("product-fragments-swapped", "{%r10, %r11, %r12, %r13}, {%r14", "{%r10, %r12, %r11, %r13}, {%r14", None),
    ("product-half-of-k", "{%r14, %r15}", "{%r14, %r16}", None),
    ("product-upper-first", "%r18, %f2, %f1", "%r18, %f1, %f2", None),
    ("product-copy-misaligned", "mul.wide.u32 %rd2, %r1, 16", "mul.wide.u32 %rd2, %r1, 8", "misaligned"),
    ("product-copy-outside", "[%rd2], 16, 16;", "[%rd1+4096], 16, 16;", None),
    ("product-short-of-operands", "{%r14, %r15}", "{%r14}", "not loaded"),
]
BLOCKS = 9
# name, what is replaced, by what, part of the message
FAULTS = [
    ("no-meeting", "  bar.sync 0;\n", "", "between meetings"),
    ("shared-outside", "tile[256]", "tile[128]", "misaligned or outside"),
    ("shared-misaligned", "%r1, 4, %r2;\n  st", "%r1, 2, %r2;\n  st", "misaligned or outside"),
    ("one-ends-early", "  bar.sync 0;\n", "  setp.gt.u32 %p1, %r1, 40;\n  @%p1 bra end;\n  bar.sync 0;\n",
     "ended before the others meet"),
    ("vector-misaligned", "%rd2, 16, %rd1", "%rd2, 8, %rd1", "not aligned to 16"),
    ("vector-outside", "%rd2, 16, %rd1", "%rd2, 32, %rd1", "in no memory"),
    ("vector-short", "{%r5, %r5, %r5, %r5}", "{%r5, %r5, %r5}", None),
    ("shared-vector-misaligned", "ld.shared.u32 %r5, [%r4]", "ld.shared.v2.u32 {%r5, %r6}, [%r4]", "misaligned"),
    ("shared-offset-outside", "ld.shared.u32 %r5, [%r4]", "ld.shared.u32 %r5, [%r4+256]", "misaligned or outside"),
    ("never-written", "{%r5, %r5, %r5, %r5}", "{%r5, %r5, %r5, %r8}", "before it is written"),
]


class Driver:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)

    def __call__(self, name, *arguments):
        fn = ctypes.c_void_p()
        if self.lib.cuGetProcAddress_v2(name.encode(), ctypes.byref(fn), 12000, ctypes.c_ulonglong(0), None):
            raise SystemExit(f"no {name}")
        return ctypes.CFUNCTYPE(ctypes.c_int)(fn.value)(*arguments)


def launch(cu, text, blocks=1, given=None):
    """What came of it, for blocks of 64 threads: the words that were written, or a message. given: words before."""
    module, fn, at = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_ulonglong()
    said = ctypes.c_char_p()
    if cu("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(text.encode()), 0, None, None):
        return "not loaded"
    cu("cuModuleGetFunction", ctypes.byref(fn), module, b"k")
    cu("cuMemAlloc", ctypes.byref(at), ctypes.c_size_t(1024))
    params = (ctypes.c_void_p * 1)(ctypes.addressof(at))
    cu("cuMemsetD8", at, 0, ctypes.c_size_t(1024))
    if given:
        cu("cuMemcpyHtoD", at, given, ctypes.c_size_t(1024))
    error = cu("cuLaunchKernel", fn, blocks, 1, 1, 64, 1, 1, 0, None, params, None)
    cu("cuGetErrorString", error, ctypes.byref(said))
    words = (ctypes.c_uint32 * 256)()
    if not error:
        cu("cuMemcpyDtoH", words, at, ctypes.c_size_t(1024))
    cu("cuMemFree", at)
    cu("cuModuleUnload", module)
    return said.value.decode() if error else list(words)


def test_product(cu):
    """Small integers without a pattern; 8 of 16 columns of the second matrix count."""
    a = [[(3 * i * i + 5 * k + i * k) % 7 for k in range(16)] for i in range(16)]
    b = [[(k * k * k + 2 * j * k + j) % 5 for j in range(16)] for k in range(16)]
    halves = [x for row in a + b for x in row]
    given = (ctypes.c_uint32 * 256).from_buffer_copy(struct.pack("<512e", *halves))
    product = [[sum(a[i][k] * b[k][j] for k in range(16)) for j in range(8)] for i in range(8)]
    want = list(struct.unpack("<32I", struct.pack("<64e", *[x for row in product for x in row])))
    head = ".version 7.0\n.target sm_80\n.address_size 64\n"
    words = launch(cu, head + PRODUCT, 1, given)
    right = isinstance(words, list) and words[:32] == want
    print("ok gpu-machine/product" if right else f"not ok gpu-machine/product: {words}")
    bad = not right
    for name, old, new, part in PRODUCT_FAULTS:
        assert old in PRODUCT, name
        said = launch(cu, head + PRODUCT.replace(old, new), 1, given)
        other = not isinstance(said, list) or said[:32] != want
        seen = other if part is None else isinstance(said, str) and part in said
        print(f"ok gpu-machine/{name}" if seen else f"not ok gpu-machine/{name}: {said}")
        bad += not seen
    return bad


def begin(path):
    cu, context = Driver(path), ctypes.c_void_p()
    cu("cuInit", 0)
    cu("cuDevicePrimaryCtxRetain", ctypes.byref(context), 7)
    cu("cuCtxPushCurrent", context)
    return cu


def conflicts(path, text):
    """Bank conflicts that the model counts, in a process of its own: the stand-in is a model from its beginning."""
    with tempfile.NamedTemporaryFile("r") as log:
        child = os.fork()
        if not child:
            os.environ["WEFT_MOCK_MODEL"] = log.name
            launch(begin(path), text)
            os._exit(0)
        os.waitpid(child, 0)
        return int(re.search(r"conflicts=(\d+)", log.read()).group(1))


def test_padding(path):
    text = ".version 7.0\n.target sm_80\n.address_size 64\n" + PRODUCT
    counts = conflicts(path, text), conflicts(path, text.replace(", 48, ", ", 32, ").replace("+768", "+512"))
    right = counts[0] < counts[1] # copies have some with either
    print("ok gpu-machine/product-unpadded" if right else f"not ok gpu-machine/product-unpadded: {counts}")
    return not right


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "build/tests/libcuda.so"
    bad = test_padding(path)
    cu = begin(path)
    good = launch(cu, HEAD + GOOD)
    right = good == [t // 4 ^ 33 for t in range(256)]
    print("ok gpu-machine/good" if right else f"not ok gpu-machine/good: {good}")
    bad += not right
    for name, old, new, part in FAULTS:
        text = (HEAD + GOOD).replace(old, new).replace("  ret;", "end:\n  ret;")
        said = launch(cu, text)
        seen = said == "not loaded" if part is None else isinstance(said, str) and part in said
        print(f"ok gpu-machine/{name}" if seen else f"not ok gpu-machine/{name}: {said}")
        bad += not seen
    bad += test_product(cu)
    # Launches differ in the order of blocks and in who runs when.
    good = [launch(cu, HEAD + WAITING, BLOCKS) for _ in range(8)]
    right = all(isinstance(words, list) and words[2:2 * BLOCKS + 2:2] == [3 * n + 3 for n in range(BLOCKS)]
                for words in good)
    print("ok gpu-machine/waiting" if right else f"not ok gpu-machine/waiting: {good}")
    bad += not right
    os.environ["WEFT_MOCK_STEPS"] = "200000"
    for name, old, new, part in WAITING_FAULTS:
        said = [launch(cu, (HEAD + WAITING).replace(old, new), BLOCKS) for _ in range(2)]
        seen = any(isinstance(s, str) and part in s for s in said)
        print(f"ok gpu-machine/{name}" if seen else f"not ok gpu-machine/{name}: {said}")
        bad += not seen
    return bad != 0


sys.exit(main())
