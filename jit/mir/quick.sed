# quick.sed — what jit/mir/build.sh changes in the copy of MIR that it compiles: the same code comes out of it, sooner, but for conversions, shifts, which values lie in registers and where short loops lie.
# a conversion keeps the upper half of its result: it need not wait for what was there before (xorps first)
s/^  {MIR_I2\([FD]\), "r \([rm0-9]*\)", "\(F[23] X 0F 2A r0 [Rm]1\)", 0},/  {MIR_I2\1, "r \2", "Y 0F 57 r0 R0; \3", 0},/
# shifts by a register: where the processor has them, those that take any register and leave the flags alone (shlx, sarx, shrx)
/^static MIR_insn_code_t get_ext_code (/i\
#include <cpuid.h>\
static int bmi2_p (void) { /* asked once: the question is slow */\
  static int known;\
  unsigned a, b, c, d;\
  int has = __atomic_load_n (&known, __ATOMIC_RELAXED);\
  if (!has) __atomic_store_n (&known, has = __get_cpuid_count (7, 0, &a, &b, &c, &d) && b & bit_BMI2 ? 1 : -1, __ATOMIC_RELAXED);\
  return has > 0;\
}\

s/^      \/\* We can access only cl as shift register: \*\/$/      if (insn->code != MIR_LSHS \&\& insn->code != MIR_RSHS \&\& insn->code != MIR_URSHS \&\& insn->ops[2].mode == MIR_OP_VAR \&\& bmi2_p ()) break;/
/^static int pattern_match_p (/,/^}/s/^    case 'r':$/    case 'b':\
      if (!bmi2_p ()) return FALSE; \/* fall through *\/\
&/
/^static int get_max_insn_size (/,/^}/s/^      case 'X':$/      case 'x':\
        ++p;\
        size += 3;\
        opcode0_p = modrm_p = TRUE;\
        break;\
&/
/^static void out_insn (/,/^}/s/^      case 'X':$/      case 'x': {\
        int to = insn->ops[0].u.var, from = insn->ops[1].u.var, by = insn->ops[2].u.var;\
        put_byte (gen_ctx, 0xC4);\
        put_byte (gen_ctx, (to < 8 ? 0x80 : 0) | 0x40 | (from < 8 ? 0x20 : 0) | 2);\
        put_byte (gen_ctx, 0x80 | (~by \& 15) << 3 | (*++p - '0'));\
        opcode0 = 0xF7;\
        setup_reg (NULL, \&reg, to \& 7);\
        setup_rm (NULL, \&rm, from \& 7);\
        setup_mod (\&mod, 3);\
        break;\
      }\
&/
s/^  SHOP (MIR_LSH, .*$/  {MIR_LSH, "r r b", "x1", 0},  \/* shlx r0,r1,r2 *\/\
  {MIR_RSH, "r r b", "x2", 0},  \/* sarx r0,r1,r2 *\/\
  {MIR_URSH, "r r b", "x3", 0}, \/* shrx r0,r1,r2 *\/\
&/
# Weft takes remainders from quotients: mod and umod become the high half of a product, signed and unsigned (imul, mul)
s/^\(  {MIR_MOD, "h2 h0 [rm3]*", "\)X 99; X F7 \/7 /\1X F7 \/5 /
s/^\(  {MIR_UMOD, "h2 h0 [rm3]*", "\)31 D2; X F7 \/6 /\1X F7 \/4 /
# level 1 is the only one that is used: what only level 2 does goes
s/^#define optimize_level gen_ctx->optimize_level$/#define optimize_level 1/
s/^  optimize_level = .*;$/  ;/
# no code is made block by block as it is reached
s/^  bb_wrapper = .*;$/  ;/
# registers stand in the order of their numbers: no table tells which has a number or a name, and names are asked of arguments alone
/^static void func_regs_\(init\|finish\) (/,/^}/{
/^  HTAB_\(CREATE\|DESTROY\) (size_t, func_regs->/d
}
/^static MIR_reg_t create_func_reg (/i\
static char *keep_name (MIR_context_t ctx, const char *name) {\
  enum { AT_ONCE = 1024 };\
  size_t len = strlen (name) + 1;\
  if (ctx->names_left < len) {\
    size_t size = len < AT_ONCE ? AT_ONCE : len;\
    char *block = malloc (sizeof (void *) + size);\
    if (block == NULL) MIR_get_error_func (ctx) (MIR_alloc_error, "Not enough memory for names");\
    *(void **) block = ctx->insn_blocks;\
    ctx->insn_blocks = block;\
    ctx->names = block + sizeof (void *);\
    ctx->names_left = size;\
  }\
  char *res = memcpy (ctx->names, name, len);\
  ctx->names += len;\
  ctx->names_left -= len;\
  return res;\
}\

/^static MIR_reg_t create_func_reg (/,/^}/c\
static MIR_reg_t create_func_reg (MIR_context_t ctx, MIR_func_t func, const char *name, const char *hard_reg_name,\
                                  MIR_reg_t reg, MIR_type_t type, int any_p, char **name_ptr) {\
  func_regs_t func_regs = func->internal;\
  reg_desc_t rd = {type, reg, keep_name (ctx, name), NULL};\
  if (VARR_LENGTH (reg_desc_t, func_regs->reg_descs) != reg)\
    MIR_get_error_func (ctx) (MIR_repeated_decl_error, "reg %s out of its order", name);\
  VARR_PUSH (reg_desc_t, func_regs->reg_descs, rd);\
  *name_ptr = rd.name;\
  return reg;\
}
/^static reg_desc_t \*find_rd_by_name (/,/^}/c\
static reg_desc_t *find_rd_by_name (MIR_context_t ctx, const char *name, MIR_func_t func) {\
  reg_desc_t *rds = VARR_ADDR (reg_desc_t, ((func_regs_t) func->internal)->reg_descs);\
  for (size_t i = 1; i <= func->nargs; i++)\
    if (strcmp (rds[i].name, name) == 0) return \&rds[i];\
  return NULL;\
}
/^static reg_desc_t \*find_rd_by_reg (/,/^}/c\
static reg_desc_t *find_rd_by_reg (MIR_context_t ctx, MIR_reg_t reg, MIR_func_t func) {\
  func_regs_t func_regs = func->internal;\
  if (reg >= VARR_LENGTH (reg_desc_t, func_regs->reg_descs))\
    MIR_get_error_func (ctx) (MIR_undeclared_func_reg_error, "undeclared reg %u of func %s", reg, func->name);\
  return \&VARR_ADDR (reg_desc_t, func_regs->reg_descs)[reg];\
}
/^static MIR_reg_t new_temp_reg (/,/^}/{
s/^    sprintf (reg_name, .*$/    char *at = reg_name + sizeof (reg_name) - 1;\
    *at = '\\0';\
    for (unsigned n = func->last_temp_num; n != 0; n \/= 10) *--at = '0' + n % 10;\
    *--at = TEMP_REG_NAME_PREFIX[0];/
/^    if (find_rd_by_name (/d
s/MIR_new_func_reg (ctx, func, type, reg_name)/MIR_new_func_reg (ctx, func, type, at)/
}
/^void _MIR_restore_func_insns (/,/^}/{
/^    reg_desc_t \*rd;$/d
/^    int res_p = TRUE;$/d
/^    size_t rdn, tab_rdn;$/d
/^    rd = find_rd_by_name (/d
/^    mir_assert (rd != NULL);$/d
/^    rdn = rd - /d
/^    res_p &= HTAB_DO (size_t, func_regs->name2rdn_tab, /d
/^    mir_assert (res_p);$/d
s/^    MIR_var_t var = VARR_POP (MIR_var_t, func->vars);$/    VARR_POP (MIR_var_t, func->vars);/
s/^    res_p &= HTAB_DO (size_t, func_regs->reg2rdn_tab, .*$/    VARR_POP (reg_desc_t, func_regs->reg_descs);/
/^  func->insns = func->original_insns;$/d
/^  DLIST_INIT (MIR_insn_t, func->original_insns);$/d
/^  for (MIR_lref_data_t lref = /,/^  }$/d
}
# code is made of a function once: of its instructions, not of copies of them, which then stay for ever
/^void _MIR_duplicate_func_insns (/,/^}/{
/^  MIR_insn_t insn, new_insn;$/d
/^  VARR (MIR_insn_t) \* labels, /d
/^  func->original_insns = func->insns;$/,/^  VARR_DESTROY (MIR_insn_t, branch_insns);$/d
}
/^static void output_vars (/,/^}/s/ = MIR_reg (ctx, var\.name, func);$/ = i + start + 1;/
/^static void rename_regs (/,/^}/s/^    old_reg = MIR_reg (ctx, var\.name, called_func);$/    old_reg = i + 1;/
s/^    update_max_var (gen_ctx, MIR_reg (ctx, mir_var\.name, func) + MAX_HARD_REG);$/    update_max_var (gen_ctx, i + 1 + MAX_HARD_REG);/
# only the first operand is a result, except of calls, and whether it is stands in a table
/^struct gen_ctx {$/a\
  unsigned char first_out[MIR_INSN_BOUND];\
  struct bb *idle_bbs;\
  struct bb_insn *idle_bb_insns;\
  struct edge *idle_edges;\
  int combine_again;
/^void MIR_gen_init (/,/^}/s/^  gen_ctx->ctx = ctx;$/&\
  gen_ctx->idle_bbs = NULL;\
  gen_ctx->idle_bb_insns = NULL;\
  gen_ctx->idle_edges = NULL;\
  for (int code = 0; code < MIR_INSN_BOUND; code++) gen_ctx->first_out[code] = first_out (ctx, code);/
/^void MIR_gen_init (/i\
static int first_out (MIR_context_t ctx, int code) {\
  struct MIR_insn insn = {.code = code, .nops = 1};\
  int out_p = FALSE;\
  if (MIR_call_code_p (code) || code == MIR_UNSPEC) return OUTS_VARY;\
  if (code == MIR_LABEL) return FALSE;\
  MIR_insn_op_mode (ctx, \&insn, 0, \&out_p);\
  return out_p;\
}\

/^static inline int input_insn_var_iterator_next (/i\
enum { OUTS_VARY = 2 };\
\
static inline int operand_out_p (MIR_context_t ctx, MIR_insn_t insn, size_t nop) {\
  int out_p = (*gen_ctx_loc (ctx))->first_out[insn->code];\
  if (__builtin_expect (out_p == OUTS_VARY, 0)) MIR_insn_op_mode (ctx, insn, nop, \&out_p);\
  else if (nop != 0) out_p = FALSE;\
  return out_p;\
}
/^static inline int input_insn_var_iterator_next (/,$s/^\( *\)MIR_insn_op_mode (\([a-z>_-]*\), \([a-z>_-]*\), \([a-z>_-]*\), &out_p);$/\1out_p = operand_out_p (\2, \3, \4);/
# blocks and instructions of the generator are used again
/^static bb_insn_t create_bb_insn (/i\
static bb_insn_t idle_bb_insn (gen_ctx_t gen_ctx) {\
  enum { AT_ONCE = 64 };\
  bb_insn_t new_ones, res = gen_ctx->idle_bb_insns;\
  if (res == NULL) {\
    new_ones = gen_malloc_and_mark_to_free (gen_ctx, AT_ONCE * sizeof (struct bb_insn));\
    for (int i = 0; i < AT_ONCE; i++) new_ones[i].bb_insn_link.next = res, res = \&new_ones[i];\
  }\
  gen_ctx->idle_bb_insns = res->bb_insn_link.next;\
  return res;\
}\

/^static bb_insn_t create_bb_insn (/,/^}/s/gen_malloc (gen_ctx, sizeof (struct bb_insn))/idle_bb_insn (gen_ctx)/
/^static void delete_bb_insn (/,/^}/s/^  free (bb_insn);$/  bb_insn->bb_insn_link.next = gen_ctx->idle_bb_insns;\
  gen_ctx->idle_bb_insns = bb_insn;/
/^static bb_t create_bb (/,/^}/{
s/^  bb_t bb = .*$/  bb_t bb = gen_ctx->idle_bbs;\
  int new_p = bb == NULL;\
  if (new_p) bb = gen_malloc (gen_ctx, sizeof (struct bb));\
  else gen_ctx->idle_bbs = bb->bb_link.next;/
s/^  \(bb->dom_[a-z]*\) = .*$/  \1 = NULL;/
s/^  \(bb->[a-z]*\) = \(bitmap_create2 (.*);\)$/  if (new_p) \1 = \2\
  else bitmap_clear (\1);/
}
/^static void delete_bb (/,/^}/{
/^  bitmap_destroy (.*);$/d
s/^  free (bb);$/  bb->bb_link.next = gen_ctx->idle_bbs;\
  gen_ctx->idle_bbs = bb;/
}
/void MIR_gen_finish (/,/^}/s/^  finish_data_flow (gen_ctx);$/  for (bb_t bb; (bb = gen_ctx->idle_bbs) != NULL; free (bb)) {\
    gen_ctx->idle_bbs = bb->bb_link.next;\
    bitmap_destroy (bb->in);\
    bitmap_destroy (bb->out);\
    bitmap_destroy (bb->gen);\
    bitmap_destroy (bb->kill);\
  }\
&/
# nobody asks for the pressure of registers
/^static MIR_insn_t initiate_bb_live_info (/,/^}/{
s/&& optimize_level != 0)$/\&\& optimize_level > 1)/
s/if (optimize_level != 0) \([({]\)/if (optimize_level > 1) \1/
}
s/^  if (optimize_level != 0) update_bb_pressure (gen_ctx);$//
# where no operand can be replaced none is kept
/^static int combine_substitute (/,/^}/{
/^  VARR_TRUNC (MIR_op_t, last_right_ops, 0);$/d
/^  for (i = 0; i < nops; i++) VARR_PUSH (MIR_op_t, last_right_ops, insn->ops\[i\]);$/d
s/^  if (move_code_p (insn->code) && insn->ops\[1\]\.mode == MIR_OP_VAR$/  VARR_TRUNC (MIR_op_t, last_right_ops, 0);\
  if (VARR_LENGTH (MIR_reg_t, insn_vars) == 0) return FALSE;\
&/
}
# patterns of instructions that an operand's kind rules out are not read
/^struct pattern {$/,/^};/{
s/^  int max_insn_size;$/  unsigned short max_insn_size;\
  unsigned short unfit; \/* kinds of the first operands that do not fit *\//
}
/^static void patterns_init (gen_ctx_t gen_ctx) {$/i\
enum { KIND_VAR = 1, KIND_MEM = 2, KIND_CONST = 4, KIND_OTHER = 8, KIND_BITS = 4, KINDS = 3, KINDS_KNOWN = 1 << KIND_BITS * KINDS };\
\
static inline unsigned op_kind (const MIR_op_t *op) {\
  switch (op->mode) {\
  case MIR_OP_VAR: return KIND_VAR;\
  case MIR_OP_VAR_MEM: return KIND_MEM;\
  case MIR_OP_INT:\
  case MIR_OP_UINT:\
  case MIR_OP_REF: return KIND_CONST;\
  default: return KIND_OTHER;\
  }\
}\
\
static __attribute__ ((noinline)) void pattern_kinds (struct pattern *pat) {\
  const char *p = pat->pattern;\
  unsigned unfit = KINDS_KNOWN;\
  for (int i = 0; i < KINDS; i++) {\
    unsigned fit = 0;\
    while (*p == ' ' || *p == '\\t') p++;\
    if (*p == '\\0' || *p == '$') break;\
    if (*p == 'r' || *p == 't' || *p == 'h' || *p == 'b') fit = KIND_VAR;\
    if (*p == 'i' || *p == 'z' || *p == 's' || *p == 'c') fit = KIND_CONST;\
    if (*p == 'm' && p[1] != 'l') fit = KIND_MEM;\
    if (fit != 0) unfit |= (15 ^ fit) << KIND_BITS * i;\
    while (*p != '\\0' && *p != ' ' && *p != '\\t') p++;\
  }\
  pat->unfit = unfit;\
}\

/^static int find_insn_pattern (/,/^}/{
s/^  const struct pattern \*pat;$/&\
  unsigned kinds = 0;/
s/^  for (i = 0; i < info.num; i++) {$/  for (i = 0; i < KINDS \&\& i < (int) insn->nops; i++) kinds |= op_kind (\&insn->ops[i]) << KIND_BITS * i;\
&/
s/^    if (pattern_match_p (.*$/    if (pat->unfit == 0) pattern_kinds (\&patterns[ind]);\
    if ((pat->unfit \& kinds) != 0) continue;\
    if (pat->max_insn_size == 0) patterns[ind].max_insn_size = get_max_insn_size (gen_ctx, pat->replacement);\
&/
}
# what only level 2 uses is not made
/void MIR_gen_\(init\|finish\) (/,/^}/s/^  \(init\|finish\)_\(ssa\|gvn\|coalesce\) (gen_ctx);$//
# patterns are put in order by counting, and how long they are is asked of those that are used
/^static void patterns_init (/,/^}/{
/^    patterns\[i\]\.max_insn_size = /d
s/^  qsort (VARR_ADDR (int, pattern_indexes), n, .*$/  int at[MIR_INSN_BOUND + 1] = {0};\
  for (i = 0; i < n; i++) at[patterns[i].code + 1]++;\
  for (i = 0; i < MIR_INSN_BOUND; i++) at[i + 1] += at[i];\
  for (i = 0; i < n; i++) VARR_SET (int, pattern_indexes, at[patterns[i].code]++, i);/
}
# instructions are used again
/^struct MIR_context {$/,/^};/s/^  struct machine_code_ctx \*machine_code_ctx;$/&\
  MIR_insn_t idle_insns[8]; \/* by their operands *\/\
  void *insn_blocks;\
  char *names;\
  size_t names_left;/
/^static MIR_insn_t create_insn (/i\
static MIR_insn_t idle_insn (MIR_context_t ctx, size_t nops) {\
  enum { AT_ONCE = 32 };\
  size_t size = sizeof (struct MIR_insn) + sizeof (MIR_op_t) * (nops - 1);\
  if (nops >= sizeof (ctx->idle_insns) / sizeof (ctx->idle_insns[0])) return malloc (size);\
  if (ctx->idle_insns[nops] == NULL) {\
    char *block = malloc (AT_ONCE * size + sizeof (MIR_op_t));\
    if (block == NULL) return NULL;\
    *(void **) block = ctx->insn_blocks;\
    ctx->insn_blocks = block;\
    for (int i = 0; i < AT_ONCE; i++) {\
      MIR_insn_t insn = (MIR_insn_t) (block + sizeof (MIR_op_t) + i * size);\
      insn->data = ctx->idle_insns[nops];\
      ctx->idle_insns[nops] = insn;\
    }\
  }\
  MIR_insn_t insn = ctx->idle_insns[nops];\
  ctx->idle_insns[nops] = insn->data;\
  return insn;\
}\

/^static MIR_insn_t create_insn (/,/^}/s/^  insn = malloc (.*$/  insn = idle_insn (ctx, nops);/
/^MIR_insn_t MIR_copy_insn (/,/^}/s/ = malloc (size);$/ = idle_insn (ctx, insn->nops == 0 ? 1 : insn->nops);/
/^static void remove_insn (/i\
static void lay_down_insn (MIR_context_t ctx, MIR_insn_t insn) {\
  size_t nops = insn->nops == 0 ? 1 : insn->nops;\
  if (nops >= sizeof (ctx->idle_insns) / sizeof (ctx->idle_insns[0])) {\
    free (insn);\
    return;\
  }\
  insn->data = ctx->idle_insns[nops];\
  ctx->idle_insns[nops] = insn;\
}\

/^static void remove_insn (/,/^}/s/^  free (insn);$/  lay_down_insn (ctx, insn);/
/^void _MIR_free_insn (/s/free (insn);/lay_down_insn (ctx, insn);/
s/^        free (ret_insn);$/        lay_down_insn (ctx, ret_insn);/
/^MIR_context_t _MIR_init (/,/^}/s/^  ctx->interp_ctx = NULL;$/&\
  ctx->insn_blocks = NULL;\
  ctx->names_left = 0;\
  memset (ctx->idle_insns, 0, sizeof (ctx->idle_insns));/
/^void MIR_finish (/,/^}/s/^  free (ctx);$/  for (void *block; (block = ctx->insn_blocks) != NULL; free (block)) ctx->insn_blocks = *(void **) block;\
&/
# sets of bits: the next one is found at once, and they grow out of line, as vectors do
s/^static inline void bitmap_expand (/static __attribute__ ((noinline, unused)) void bitmap_expand (/
/^static inline int bitmap_set_bit_p (/,/^}/s/^  bitmap_expand (bm, nb + 1);$/  if (__builtin_expect (nb >= BITMAP_WORD_BITS * VARR_LENGTH (bitmap_el_t, bm), 0)) bitmap_expand (bm, nb + 1);/
s/^  \(bitmap_expand (dst, len \* BITMAP_WORD_BITS);\)$/  if (__builtin_expect (VARR_LENGTH (bitmap_el_t, dst) < len, 0)) \1/
/^static inline int bitmap_iterator_next (/,/^}/{
s/^      for (el >>= iter->nbit % el_bits_num; .*$/      if ((el >>= iter->nbit % el_bits_num) != 0) {/
s/^        if (el & 1) {$/        iter->nbit += __builtin_ctzll (el);/
}
/^#define VARR_DEFAULT_SIZE 64$/a\
\
typedef struct __attribute__ ((may_alias)) {\
  size_t els_num, size;\
  void *varr;\
} varr_any;\
\
static __attribute__ ((noinline, unused)) void varr_grow (void *any, size_t size, size_t el_size) {\
  varr_any *varr = any;\
  size += size / 2;\
  varr->varr = realloc (varr->varr, el_size * size);\
  varr->size = size;\
}
/^  static inline int VARR_OP_DEF (T, expand) (/,/^  }/{
s/if (varr->size < size) { */if (__builtin_expect (varr->size < size, 0)) { /
/^      size += size/d
/^      varr->size = size;/d
s/^      varr->varr = (T \*) realloc (.*$/      varr_grow (varr, size, sizeof (T)); \\/
}
# live ranges come many at a time, and where they collide is asked of every point that they hold
/^static live_range_t create_live_range (/,/^}/s/^    lr = gen_malloc (gen_ctx, sizeof (struct live_range));$/    enum { AT_ONCE = 64 };\
    lr = gen_malloc_and_mark_to_free (gen_ctx, AT_ONCE * sizeof (struct live_range));\
    for (int i = 1; i < AT_ONCE; i++) lr[i].next = free_lr_list, free_lr_list = \&lr[i];/
/^static lr_bb_t create_lr_bb (/,/^}/s/^    lr_bb = gen_malloc (gen_ctx, sizeof (struct lr_bb));$/    enum { AT_ONCE = 64 };\
    lr_bb = gen_malloc_and_mark_to_free (gen_ctx, AT_ONCE * sizeof (struct lr_bb));\
    for (int i = 1; i < AT_ONCE; i++) lr_bb[i].next = free_lr_bb_list, free_lr_bb_list = \&lr_bb[i];/
/^static void finish_lr_bbs (/,/^}/{
s/^  for (lr_bb_t lr_bb = .*$/  {/
s/lr_bb->next/NULL/
/^    free (lr_bb);$/d
}
/^static void finish_lrs (/,/^}/{
s/^  for (live_range_t lr = .*$/  {/
s/lr->next/NULL/
/^    free (lr);$/d
}
/^static void assign (/i\
static inline void join_locs (bitmap_t to, bitmap_t from) {\
  size_t length = VARR_LENGTH (bitmap_el_t, from);\
  if (length > VARR_LENGTH (bitmap_el_t, to)) {\
    bitmap_ior (to, to, from);\
    return;\
  }\
  bitmap_el_t *to_addr = VARR_ADDR (bitmap_el_t, to), *from_addr = VARR_ADDR (bitmap_el_t, from);\
  for (size_t i = 0; i < length; i++) to_addr[i] |= from_addr[i];\
}\

/^static void assign (/,/^}/s/bitmap_ior (conflict_locs, conflict_locs, used_locs_addr\[j\]);/join_locs (conflict_locs, used_locs_addr[j]);/
/^static void assign (/,/^}/s/      bitmap_clear (VARR_GET (bitmap_t, used_locs, n));$/      bitmap_zero (VARR_GET (bitmap_t, used_locs, n));/
/^static void assign (/,/^}/s/^    bitmap_clear (conflict_locs);$/    bitmap_zero (conflict_locs);/
/^static inline int bitmap_empty_p (/i\
/* The same with its first word in place. */\
static inline void bitmap_zero (bitmap_t bm) {\
  VARR_TRUNC (bitmap_el_t, bm, 0);\
  VARR_PUSH (bitmap_el_t, bm, 0);\
}\

# most instructions write no register besides
/^static void target_get_early_clobbered_hard_regs (/,/^}/s/^  \*hr1 = \*hr2 = MIR_NON_VAR;$/&\
  _Static_assert (MIR_UDIV > MIR_DIV \&\& MIR_FEQ > MIR_DIV \&\& MIR_LDGE < MIR_JMP \&\& MIR_UMULOS < MIR_JMP, "those that do lie between");\
  if (code < MIR_DIV || code >= MIR_JMP) return;/
# the kind of an operand is asked of those that are replaced
s/^      data_mode = MIR_insn_op_mode (ctx, insn, i, &out_p);$/      out_p = operand_out_p (ctx, insn, i);/
s/^              && mode2type (data_mode) == MIR_T_I64)$/              \&\& mode2type (MIR_insn_op_mode (ctx, insn, i, \&out_p)) == MIR_T_I64)/
s/^    data_mode = MIR_insn_op_mode (ctx, insn, i, &out_p);$/    if (op->mode == MIR_OP_VAR \&\& op->u.var > MAX_HARD_REG) {\
      MIR_reg_t at = VARR_GET (MIR_reg_t, reg_renumber, op->u.var);\
      if (at <= MAX_HARD_REG) {\
        op->u.var = at;\
        continue;\
      }\
      data_mode = MIR_insn_op_mode (ctx, insn, i, \&out_p);\
    }/
# what stays between compilations comes many at a time
# edges and dead variables come many at a time
/^static edge_t create_edge (/,/^}/s/^  edge_t e = gen_malloc (gen_ctx, sizeof (struct edge));$/  enum { AT_ONCE = 64 };\
  edge_t e = gen_ctx->idle_edges;\
  if (e == NULL) {\
    e = gen_malloc_and_mark_to_free (gen_ctx, AT_ONCE * sizeof (struct edge));\
    for (int i = 1; i < AT_ONCE; i++) e[i].in_link.next = gen_ctx->idle_edges, gen_ctx->idle_edges = \&e[i];\
  } else {\
    gen_ctx->idle_edges = e->in_link.next;\
  }/
s/^static void delete_edge (edge_t e) {$/static void delete_edge (gen_ctx_t gen_ctx, edge_t e) {/
/^static void delete_edge (/,/^}/s/^  free (e);$/  e->in_link.next = gen_ctx->idle_edges;\
  gen_ctx->idle_edges = e;/
s/^\( .*\)delete_edge (\(e\|edge\));$/\1delete_edge (gen_ctx, \2);/
/^static dead_var_t get_dead_var (/,/^}/{
s/^  if ((dv = DLIST_HEAD (dead_var_t, free_dead_vars)) == NULL)$/  if ((dv = DLIST_HEAD (dead_var_t, free_dead_vars)) == NULL) {\
    enum { AT_ONCE = 64 };/
s/^    return gen_malloc (gen_ctx, sizeof (struct dead_var));$/    dv = gen_malloc_and_mark_to_free (gen_ctx, AT_ONCE * sizeof (struct dead_var));\
    for (int i = 1; i < AT_ONCE; i++) free_dead_var (gen_ctx, \&dv[i]);\
    return dv;\
  }/
}
/^static void finish_dead_vars (/,/^}/{
/^  dead_var_t dv;$/d
s/^  while ((dv = .*$/  DLIST_INIT (dead_var_t, free_dead_vars);/
/^    DLIST_REMOVE/d
/^    free (dv);$/d
/^  }$/d
}
# blocks are nearly in order where they are put in order
/^static void solve_dataflow (/i\
static void sort_bbs (bb_t *bbs, size_t n, int forward_p) {\
  size_t left = 8 * n, at;\
  for (size_t i = 1; i < n && left >= n; i++) {\
    bb_t bb = bbs[i];\
    for (at = i; at > 0 && (forward_p ? bbs[at - 1]->rpost > bb->rpost : bbs[at - 1]->rpost < bb->rpost); at--, left -= left > 0) bbs[at] = bbs[at - 1];\
    bbs[at] = bb;\
  }\
  if (left < n) qsort (bbs, n, sizeof (bb_t), forward_p ? rpost_cmp : post_cmp);\
}\

/^static void solve_dataflow (/,/^}/{
s/^    qsort (addr, .*$/    sort_bbs (addr, VARR_LENGTH (bb_t, worklist), forward_p);/
s/^  for (bb = DLIST_HEAD (bb_t, curr_cfg->bbs); .*$/  for (bb = forward_p ? DLIST_HEAD (bb_t, curr_cfg->bbs) : DLIST_TAIL (bb_t, curr_cfg->bbs); bb != NULL; bb = forward_p ? DLIST_NEXT (bb_t, bb) : DLIST_PREV (bb_t, bb))/
}
/^static void build_live_ranges (/,/^}/{
s/^    for (bb = DLIST_HEAD (bb_t, curr_cfg->bbs); .*$/    for (bb = DLIST_TAIL (bb_t, curr_cfg->bbs); bb != NULL; bb = DLIST_PREV (bb_t, bb))/
s/^      qsort (VARR_ADDR (bb_t, worklist), .*$/      sort_bbs (VARR_ADDR (bb_t, worklist), VARR_LENGTH (bb_t, worklist), FALSE);/
}
# tables begin empty
s/^    for (i = 0; i < 2 \* size; i++) VARR_PUSH (htab_ind_t, ht->entries, HTAB_EMPTY_IND);  *\\$/    VARR_TAILOR (htab_ind_t, ht->entries, 2 * size); \\\
    memset (VARR_ADDR (htab_ind_t, ht->entries), 255, 2 * size * sizeof (htab_ind_t)); \\/
s/^\( *\)for (i = 0; i < size; i++) addr\[i\] = HTAB_EMPTY_IND;  *\\$/\1memset (addr, 255, size * sizeof (htab_ind_t)); \\/
# an instruction without memory has nothing that could go to a register, whether it fits or not
/^static void make_io_dup_op_insns (/,/^}/s/^    if (target_insn_ok_p (gen_ctx, insn)) continue;$/    for (i = 0; i < insn->nops \&\& insn->ops[i].mode != MIR_OP_VAR_MEM; i++);\
    if (i == insn->nops) continue;\
&/
# what combining asks of hard registers alone lies in one word
/^static int combine_substitute (/,/^}/s/^  bitmap_clear (vars_bitmap);$/  bitmap_zero (vars_bitmap);/
# where no operand can be replaced none can in another order
/^static void combine (/,/^}/s/^          } else if (!change_p$/          } else if (VARR_LENGTH (MIR_op_t, last_right_ops) != 0/
# few texts, few values: their tables begin small
s/^  HTAB_CREATE (string_t, \*str_tab, 1000, /  HTAB_CREATE (string_t, *str_tab, 64, /
# no register is tied to one of the processor's
/^static void simplify_op (MIR_context_t ctx, MIR_item_t func_item, MIR_insn_t insn, int nop,$/i\
#define MIR_reg_hard_reg_name(ctx, reg, func) NULL
/^static inline gen_ctx_t \*gen_ctx_loc (/i\
#define MIR_reg_hard_reg_name(ctx, reg, func) NULL
# what an instruction reads: a register asks whether it is a result where it may be one
/^static inline int input_insn_var_iterator_next (/,/^}/{
/^  MIR_op_t \*op_ref;$/,/^  return FALSE;$/c\
  MIR_insn_t insn = iter->insn;\
  int out_p;\
\
  for (; iter->op_num < iter->nops; iter->op_num++, iter->op_part_num = 0) {\
    MIR_op_t *op = \&insn->ops[iter->op_num];\
    if (op->mode == MIR_OP_VAR_MEM) {\
      while (iter->op_part_num < 2) {\
        *var = iter->op_part_num++ == 0 ? op->u.var_mem.base : op->u.var_mem.index;\
        if (*var != MIR_NON_VAR) return TRUE;\
      }\
    } else if (op->mode == MIR_OP_VAR) {\
      out_p = gen_ctx->first_out[insn->code];\
      if (__builtin_expect (out_p == OUTS_VARY, 0)) MIR_insn_op_mode (gen_ctx->ctx, insn, iter->op_num, \&out_p);\
      else if (iter->op_num != 0) out_p = FALSE;\
      if (out_p) continue;\
      *var = op->u.var;\
      iter->op_num++;\
      return TRUE;\
    }\
  }\
  return FALSE;
}
# the first operand alone is looked at for results where no other can be one
/^static void combine (/,/^}/{
/^        for (iter = 0; iter < 2; iter++) { /{
i\
        size_t outs = gen_ctx->first_out[insn->code] == OUTS_VARY ? nops : nops != 0;
n
s/i < nops;/i < (iter == 0 ? nops : outs);/
}
}
/^static int rewrite_insn (/,/^}/{
/^  for (int niter = 0; niter <= 1; niter++) {/{
i\
  size_t outs = gen_ctx->first_out[insn->code] == OUTS_VARY ? nops : nops != 0;
n
s/i < nops;/i < (niter == 1 ? nops : outs);/
}
}
# operands are kept when one of them is replaced
/^static int combine_substitute (/,/^}/s/^    insn_var_change_p = FALSE;$/    if (VARR_LENGTH (MIR_op_t, last_right_ops) == 0)\
      for (i = 0; i < nops; i++) VARR_PUSH (MIR_op_t, last_right_ops, insn->ops[i]);\
&/
# a block is gone through again where that may find more: a new operand dies, what stood in the way may be gone, one of two did not fit
/^static int combine_substitute (/,/^}/{
/^        || MIR_call_code_p (def_insn->code))$/{
n
s/return FALSE;/return gen_ctx->combine_again = TRUE, FALSE;/
}
s/^\(    if ((def_insn = get_uptodate_def_insn (gen_ctx, var)) == NULL)\) continue;$/\1 {\
      if (move_code_p (var_refs_addr[var].insn->code)) gen_ctx->combine_again = TRUE;\
      continue;\
    }/
s/^  insn_change_p = FALSE;$/  int misfit_p = FALSE;\
&/
s/^          insn->ops\[i\] = VARR_GET (MIR_op_t, last_right_ops, i); .*$/          misfit_p = TRUE, &/
s/^  return insn_change_p;$/  if (insn_change_p \&\& misfit_p) gen_ctx->combine_again = TRUE;\
&/
s/^      gen_move_insn_before (gen_ctx, insn, def_insn);$/&\
      gen_ctx->combine_again = TRUE;/
s/^        if (combine_delete_insn (.*$/&\
        if (insn->ops[i].mode == MIR_OP_VAR \&\& find_bb_insn_dead_var (bb_insn, insn->ops[i].u.var)) gen_ctx->combine_again = TRUE;/
}
/^static void combine (/,/^}/{
s/^      block_change_p = FALSE;$/      block_change_p = gen_ctx->combine_again = FALSE;/
s/^          block_change_p = TRUE;$/          block_change_p = gen_ctx->combine_again = TRUE;/
s/^    } while (block_change_p);$/    } while (block_change_p \&\& gen_ctx->combine_again);/
}
# nothing is better than a register that calls do not keep
/^static MIR_reg_t get_hard_reg (/,/^}/{
s/^  for (n = 0; n <= MAX_HARD_REG; n++) {$/  for (n = MIR_int_type_p (type) ? 0 : XMM0_HARD_REG; n <= MAX_HARD_REG; n++) {/
s/^      best_saved_p = !bitmap_bit_p (.*$/&\
      if (!best_saved_p) break;/
}
# registers are simple, and what most instructions expect stands in the table
/^static void simplify_insn (/,/^}/s/^    MIR_insn_op_mode (ctx, insn, i, &out_p);$/    if (insn->ops[i].mode == MIR_OP_REG) continue;\
&/
s/^        expected_mode = MIR_insn_op_mode (ctx, insn, i, &out_p);$/        unsigned listed = code < MIR_CALL \&\& (code < MIR_ADDR || code > MIR_ADDR32) ? insn_descs[code].op_modes[i] : MIR_OP_BOUND;\
        if (listed == MIR_OP_BOUND) expected_mode = MIR_insn_op_mode (ctx, insn, i, \&out_p);\
        else out_p = (listed \& OUT_FLAG) != 0, expected_mode = listed \& ~OUT_FLAG;/
# how many operands there are stands in the instruction
/^size_t MIR_insn_nops (/,/^}/s/^}$/&\
#define MIR_insn_nops(ctx, insn) ((size_t) (insn)->nops)/
/^static inline gen_ctx_t \*gen_ctx_loc (/i\
#define MIR_insn_nops(ctx, insn) ((size_t) (insn)->nops)
# operands behind the first are results of those instructions alone of which that varies
/^static inline int output_insn_var_iterator_next (/,/^}/s/^  while (iter->op_num < iter->nops) {$/&\
    if (iter->op_num != 0 \&\& gen_ctx->first_out[iter->insn->code] != OUTS_VARY) break;/
# operands are copied at once
/^MIR_insn_t MIR_new_insn_arr (/,/^}/s/^  for (i = 0; i < nops; i++) insn->ops\[i\] = ops\[i\];$/  if (nops != 0) memcpy (insn->ops, ops, nops * sizeof (MIR_op_t));/
# what is seldom run (a label marked by `mark_rare` and all behind it) belongs to no loop, wherever it leads back to: it makes no
# second entry of one, and registers are not for it
s/^      label->ops\[0\] = MIR_new_int_op (ctx, new_label_num++);$/      label->ops[0].u.i = new_label_num++;/
s/^  uint32_t curr_bb_index, curr_loop_node_index;$/&\
  size_t rare_index;\
  int rare_points; \/* of live ranges: those before *\//
/^static int build_loop_tree (/,/^}/{
s/^  curr_loop_node_index = 0;$/  MIR_insn_t rare = DLIST_HEAD (MIR_insn_t, curr_func_item->u.func->insns);\
  while (rare != NULL \&\& (rare->code != MIR_LABEL || rare->ops[0].data == NULL)) rare = DLIST_NEXT (MIR_insn_t, rare);\
  gen_ctx->rare_index = rare == NULL ? SIZE_MAX : get_insn_bb (gen_ctx, rare)->index;\
&/
s/^      if (e->back_edge_p) {$/      if (e->back_edge_p \&\& e->src->index < gen_ctx->rare_index) {/
}
/static int process_loop (/,/^}/{
s/^    if (e->back_edge_p && e->src != entry_bb) {$/    if (e->back_edge_p \&\& e->src != entry_bb \&\& e->src->index < gen_ctx->rare_index) {/
s/^      if (e->src != entry_bb) {$/      if (e->src != entry_bb \&\& e->src->index < gen_ctx->rare_index) {/
}
s/^  if (optimize_level != 0 && freq_p)$/  if (optimize_level != 0 \&\& freq_p \&\& bb->index < gen_ctx->rare_index)/
# nor does the time count that a value lives there: its points come first
/^static void build_live_ranges (/,/^}/{
s/^    for (i = 0; i < VARR_LENGTH (bb_t, worklist); i++) {$/    size_t n = VARR_LENGTH (bb_t, worklist);\
    for (i = 0; i < 2 * n; i++) {\
      if (i == n) gen_ctx->rare_points = curr_point;/
s/^      bb = VARR_GET (bb_t, worklist, i);$/      bb = VARR_GET (bb_t, worklist, i % n);\
      if ((bb->index < gen_ctx->rare_index) != (i >= n)) continue;/
}
/^static void shrink_live_ranges (/,/^}/{
s/^  prev_dead_p = TRUE;$/&\
  int rare_points = 0;/
s/^    prev_dead_p = dead_p;$/&\
    if ((int) p < gen_ctx->rare_points) rare_points = pn + 1;/
s/^  pn++;$/&\
  gen_ctx->rare_points = rare_points;/
}
s/^      length += lr->finish - lr->start + 1;$/      if (lr->finish >= gen_ctx->rare_points) length += lr->finish - (lr->start > gen_ctx->rare_points ? lr->start : gen_ctx->rare_points) + 1;/
# what is used most for the time that it lives has a register first: else what is short-lived lies in memory, and others wait for it
s/^    curr_reg_infos\[reg\].live_length = length;$/    curr_reg_infos[reg].live_length = length;\n    curr_reg_infos[reg].freq = (unsigned long) curr_reg_infos[reg].freq * 64 \/ (length + (int_var_type_p (gen_ctx, reg) ? 64 : 16));/
# a jump over a jump: the opposite condition leads where the second one does, for floats too, whose comparisons have no opposite before this
/^static uint8_t \*target_translate (/i\
static int turned_p (MIR_insn_t insn) {\
  MIR_insn_t jump = DLIST_NEXT (MIR_insn_t, insn), label;\
  MIR_insn_code_t code = insn->code;\
  int once_p = MIR_int_branch_code_p (code) || (MIR_FP_branch_code_p (code) \&\& code != MIR_FBEQ \&\& code != MIR_DBEQ \&\& code != MIR_LDBEQ \&\& code != MIR_FBNE \&\& code != MIR_DBNE \&\& code != MIR_LDBNE);\
  if (!once_p || jump == NULL || jump->code != MIR_JMP) return FALSE;\
  for (label = DLIST_NEXT (MIR_insn_t, jump); label != NULL \&\& label->code == MIR_LABEL; label = DLIST_NEXT (MIR_insn_t, label)) {\
    if (label != insn->ops[0].u.label) continue;\
    insn->ops[0] = jump->ops[0];\
    return TRUE;\
  }\
  return FALSE;\
}\

# a jump over a move from one register to another: a move on the opposite condition, which nothing need foresee
/^static uint8_t \*target_translate (/i\
static int chosen_p (MIR_insn_t insn) {\
  MIR_insn_t move = DLIST_NEXT (MIR_insn_t, insn);\
  if (!MIR_int_branch_code_p (insn->code) || move == NULL || move->code != MIR_MOV || DLIST_NEXT (MIR_insn_t, move) != insn->ops[0].u.label) return FALSE;\
  return move->ops[0].mode == MIR_OP_VAR \&\& move->ops[0].u.var <= R15_HARD_REG \&\& move->ops[1].mode == MIR_OP_VAR \&\& move->ops[1].u.var <= R15_HARD_REG;\
}\

/^static uint8_t \*target_translate (/,/^}/{
s/^      if (MIR_branch_code_p (insn->code)) \/\* possible replacement change \*\/$/      int over_p = turned_p (insn), move_p = chosen_p (insn);\
&/
s/^      out_insn (gen_ctx, insn, patterns\[ind\].replacement, NULL);$/&\
      if (over_p) {\
        VARR_ADDR (uint8_t, result_code)[VARR_LAST (label_ref_t, label_refs).label_val_disp - 1] ^= 1;\
        insn = DLIST_NEXT (MIR_insn_t, insn);\
        n++;\
      } else if (move_p) {\
        label_ref_t lr = VARR_POP (label_ref_t, label_refs);\
        int cond = VARR_GET (uint8_t, result_code, lr.label_val_disp - 1) \& 15;\
        insn = DLIST_NEXT (MIR_insn_t, insn);\
        n++;\
        VARR_TRUNC (uint8_t, result_code, lr.label_val_disp - (lr.short_p ? 1 : 2));\
        put_byte (gen_ctx, 0x48 | (insn->ops[0].u.var \& 8) >> 1 | (insn->ops[1].u.var \& 8) >> 3);\
        put_byte (gen_ctx, 0x0f);\
        put_byte (gen_ctx, 0x40 | (cond ^ 1));\
        put_byte (gen_ctx, 0xc0 | (insn->ops[0].u.var \& 7) << 3 | (insn->ops[1].u.var \& 7));\
      }/
}
# where short loops lie
/^static uint8_t \*target_translate (/,/^}/s/^  return translate_finish (gen_ctx, len);$/  align_loops (gen_ctx, DLIST_HEAD (MIR_insn_t, curr_func_item->u.func->insns));\
&/
/^static uint8_t \*target_translate (/i\
/* Short loops lie in as few lines as can be, and the comparison and the jump back, which the processor takes as one, in one: no operations come before loops. */\
enum { LINE = 64, LOOPS = 64, LOOP_MOST = 256, FUSED = 4 };\
typedef struct {\
  size_t start, end, fused, pad; /* in the code as it is; where the pair begins */\
} short_loop_t;\
\
static int loops_in (gen_ctx_t gen_ctx, short_loop_t *loops) {\
  uint8_t *code = VARR_ADDR (uint8_t, result_code);\
  label_ref_t *refs = VARR_ADDR (label_ref_t, label_refs);\
  int n = 0, at;\
  for (size_t i = 0; i < VARR_LENGTH (label_ref_t, label_refs) && n < LOOPS; i++) {\
    if (refs[i].abs_addr_p) return 0;\
    size_t start = get_label_disp (gen_ctx, refs[i].u.label), end = refs[i].next_insn_disp, to;\
    int op = code[refs[i].label_val_disp - 1] & 0xf0, leaves_p = FALSE;\
    if (start >= end || end - start > LOOP_MOST || op != (refs[i].short_p ? 0x70 : 0x80)) continue;\
    for (size_t k = i; k-- > 0 && refs[k].label_val_disp > start && !leaves_p;) { /* it goes on elsewhere: what leads back is seldom run */\
      int last = code[refs[k].label_val_disp - 1];\
      to = get_label_disp (gen_ctx, refs[k].u.label);\
      leaves_p = (last == 0xe9 || last == 0xeb) && (to < start || to > end);\
    }\
    for (at = n; at > 0 && loops[at - 1].start > start; at--) continue;\
    if (leaves_p || (at > 0 && loops[at - 1].start == start)) continue;\
    memmove (loops + at + 1, loops + at, (n++ - at) * sizeof (short_loop_t));\
    loops[at] = (short_loop_t){start, end, refs[i].label_val_disp - (refs[i].short_p ? 1 : 2) - FUSED, 0};\
  }\
  return n;\
}\
\
static size_t moved (const short_loop_t *loops, int n, size_t at) {\
  size_t by = 0;\
  for (int i = 0; i < n && loops[i].start <= at; i++) by += loops[i].pad;\
  return at + by;\
}\
\
static int choose_pads (gen_ctx_t gen_ctx, short_loop_t *loops, int n) {\
  size_t by = 0;\
  for (short_loop_t *l = loops; l < loops + n; l++) {\
    size_t least = SIZE_MAX, first = l->start + by, last = l->end - 1 + by, fused = l->fused + by;\
    for (size_t pad = 0, bad; pad < LINE && least != 0; pad++) {\
      bad = (last + pad) / LINE - (first + pad) / LINE - (last - first) / LINE + 3 * ((last + pad) / LINE != (fused + pad) / LINE);\
      if (bad < least) least = bad, l->pad = pad;\
    }\
    by += l->pad;\
  }\
  for (size_t i = 0; i < VARR_LENGTH (label_ref_t, label_refs) && by != 0; i++) { /* short jumps stay so */\
    label_ref_t lr = VARR_GET (label_ref_t, label_refs, i);\
    size_t from = lr.next_insn_disp, to = get_label_disp (gen_ctx, lr.u.label), low = from < to ? from : to + 1, high = from < to ? to : from;\
    int64_t disp = (int64_t) moved (loops, n, to) - (int64_t) (moved (loops, n, lr.label_val_disp) + from - lr.label_val_disp);\
    if (!lr.short_p || (-128 <= disp && disp < 128)) continue;\
    for (int k = 0; k < n; k++)\
      if (loops[k].start >= low && loops[k].start <= high) by -= loops[k].pad, loops[k].pad = 0;\
    i = (size_t) -1;\
  }\
  return by;\
}\
\
static void align_loops (gen_ctx_t gen_ctx, MIR_insn_t insn) {\
  short_loop_t loops[LOOPS];\
  int n = loops_in (gen_ctx, loops), by = choose_pads (gen_ctx, loops, n);\
  size_t end = VARR_LENGTH (uint8_t, result_code);\
  if (by == 0) return;\
  for (int i = 0; i < by; i++) VARR_PUSH (uint8_t, result_code, 0);\
  uint8_t *code = VARR_ADDR (uint8_t, result_code);\
  for (; insn != NULL; insn = DLIST_NEXT (MIR_insn_t, insn))\
    if (insn->code == MIR_LABEL) set_label_disp (gen_ctx, insn, moved (loops, n, get_label_disp (gen_ctx, insn)));\
  for (size_t i = 0; i < VARR_LENGTH (label_ref_t, label_refs); i++) {\
    label_ref_t *lr = &VARR_ADDR (label_ref_t, label_refs)[i];\
    size_t to = moved (loops, n, lr->label_val_disp);\
    lr->next_insn_disp += to - lr->label_val_disp;\
    lr->label_val_disp = to;\
  }\
  for (size_t i = 0; i < VARR_LENGTH (const_ref_t, const_refs); i++) {\
    const_ref_t *cr = &VARR_ADDR (const_ref_t, const_refs)[i];\
    size_t to = moved (loops, n, cr->pc);\
    cr->next_insn_disp += to - cr->pc;\
    cr->pc = to;\
  }\
  for (; n-- > 0; end = loops[n].start) {\
    memmove (code + loops[n].start + by, code + loops[n].start, end - loops[n].start);\
    by -= loops[n].pad;\
    for (size_t some, left = loops[n].pad; left != 0; left -= some) {\
      some = left < 7 ? left : 7;\
      memcpy (code + loops[n].start + by + left - some, nop_pats[some], some);\
    }\
  }\
}\

