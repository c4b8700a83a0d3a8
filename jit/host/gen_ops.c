/* gen_ops.c — build tool: the texts of lang/ops.def, packed by pairs of bytes.
 *
 *   gen_ops FILE.c
 *
 * writes what lang/ops.c declares: op_pairs, op_texts (all columns but the documentation, which are taken apart at once; OP_END
 * stands between them) and op_docs (one text behind the other, each taken apart when somebody asks for it). */
#include "jit/host/pairs.h"
#include "lang/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char texts[] =
#define OP(name, signature, family, dtype, shape, checks, effect, agree, lower, deriv, batch, flops, doc) \
  #name OP_END signature OP_END #lower OP_END #dtype OP_END #shape OP_END checks OP_END #deriv OP_END #batch OP_END
    OP(none, "()", none, none, none, "", pure, bits, none, none, none, 0, "")
#include "lang/ops.def"
#undef OP
    "\0"
#define OP(name, signature, family, dtype, shape, checks, effect, agree, lower, deriv, batch, flops, doc) doc "\0"
    OP(none, "()", none, none, none, "", pure, bits, none, none, none, 0, "")
#include "lang/ops.def"
#undef OP
    ;

int main(int argc, char **argv) {
  static u8 bytes[sizeof texts];
  u8 pairs[256][2];
  size_t len = sizeof texts - 1, starts[] = {0, strlen(texts) + 1};
  Buf b;
  buf_init(&b, allocator_system());
  memcpy(bytes, texts, sizeof texts);
  pairs_pack(bytes, &len, starts, (u32)COUNT_OF(starts), pairs);
  buf_printf(&b, "/* op_texts.c — made from lang/ops.def by jit/host/gen_ops.c. */\n#include \"lang/ops.h\"\n\nchar op_unpacked[%zu];\n", strlen(texts) + TEXT_UNPACKED_MAX);
  pairs_write(pairs, "op_pairs", &b);
  buf_puts(&b, "const char op_texts[] =\n    \"");
  pairs_write_text(bytes, starts[1] - 1, &b);
  buf_puts(&b, "\";\nconst char op_docs[] =\n    \"");
  pairs_write_text(bytes + starts[1], len - starts[1], &b);
  buf_puts(&b, "\";\n");
  FILE *f = argc == 2 ? fopen(argv[1], "wb") : NULL;
  if (b.failed || !f || fwrite(b.data, 1, b.len, f) != b.len || fclose(f) != 0) {
    fprintf(stderr, "gen_ops: cannot write %s\n", argc == 2 ? argv[1] : "FILE.c");
    return 1;
  }
  buf_free(&b);
  return 0;
}
