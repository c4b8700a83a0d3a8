# quick.sed — what jit/mir/build.sh changes in the copy of MIR that it compiles: the same code comes out of it, sooner, but for conversions and shifts.
# a conversion keeps the upper half of its result: it need not wait for what was there before (xorps first)
s/^  {MIR_I2\([FD]\), "r \([rm0-9]*\)", "\(F[23] X 0F 2A r0 [Rm]1\)", 0},/  {MIR_I2\1, "r \2", "Y 0F 57 r0 R0; \3", 0},/
# shifts by a register: where the processor has them, those that take any register and leave the flags alone (shlx, sarx, shrx)
/^static MIR_insn_code_t get_ext_code (/i\
static int bmi2_p (void) { return __builtin_cpu_supports ("bmi2") != 0; }\

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
# level 1 is the only one that is used: what only level 2 does goes
s/^#define optimize_level gen_ctx->optimize_level$/#define optimize_level 1/
s/^  optimize_level = .*;$/  ;/
# no code is made block by block as it is reached
s/^  bb_wrapper = .*;$/  ;/
# registers stand in the order of their numbers
/^static reg_desc_t \*find_rd_by_reg/,/^}/s/^  rd\.reg = reg;$/  if (reg < VARR_LENGTH (reg_desc_t, func_regs->reg_descs) \&\& VARR_ADDR (reg_desc_t, func_regs->reg_descs)[reg].reg == reg)\n    return \&VARR_ADDR (reg_desc_t, func_regs->reg_descs)[reg];\n&/
# only the first operand is a result, except of calls, and whether it is stands in a table
/^struct gen_ctx {$/a\
  unsigned char first_out[MIR_INSN_BOUND];\
  struct bb *idle_bbs;\
  struct bb_insn *idle_bb_insns;
/^void MIR_gen_init (/,/^}/s/^  gen_ctx->ctx = ctx;$/&\
  gen_ctx->idle_bbs = NULL;\
  gen_ctx->idle_bb_insns = NULL;\
  for (int code = 0; code < MIR_INSN_BOUND; code++) gen_ctx->first_out[code] = first_out_p (ctx, code);/
/^void MIR_gen_init (/i\
static int first_out_p (MIR_context_t ctx, int code) {\
  struct MIR_insn insn = {.code = code, .nops = 1};\
  int out_p = FALSE;\
  if (MIR_call_code_p (code) || code == MIR_UNSPEC || code == MIR_LABEL) return FALSE;\
  MIR_insn_op_mode (ctx, \&insn, 0, \&out_p);\
  return out_p;\
}\

/^static inline int input_insn_var_iterator_next (/i\
static inline int operand_out_p (MIR_context_t ctx, MIR_insn_t insn, size_t nop) {\
  int out_p = FALSE;\
  if (MIR_call_code_p (insn->code) || insn->code == MIR_UNSPEC) MIR_insn_op_mode (ctx, insn, nop, &out_p);\
  else if (nop == 0) out_p = (*gen_ctx_loc (ctx))->first_out[insn->code];\
  return out_p;\
}
/^static inline int input_insn_var_iterator_next (/,$s/^\( *\)MIR_insn_op_mode (\([a-z>_-]*\), \([a-z>_-]*\), \([a-z>_-]*\), &out_p);$/\1out_p = operand_out_p (\2, \3, \4);/
# what is rarely run is small
s/^static void \(target_machinize\|machinize_call\|destroy_loop_tree\|add_inout_reloads\) (.*[{,]$/__attribute__((cold)) &/
s/^void MIR_gen_\(init\|finish\) (.*{$/__attribute__((cold)) &/
s/^static int \(process_loop\|live_con_func_n\|get_spill_mem_loc\) (.*{$/__attribute__((cold)) &/
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
s/^  if (move_code_p (insn->code) && insn->ops\[1\]\.mode == MIR_OP_VAR$/  if (VARR_LENGTH (MIR_reg_t, insn_vars) == 0) return FALSE;\
  VARR_TRUNC (MIR_op_t, last_right_ops, 0);\
  for (i = 0; i < nops; i++) VARR_PUSH (MIR_op_t, last_right_ops, insn->ops[i]);\
&/
}
# patterns of instructions that an operand's kind rules out are not read
/^struct pattern {$/,/^};/s/^  int max_insn_size;$/&\
  unsigned char kinds[3]; \/* of the first operands, that fit; 0: any *\//
/^static void patterns_init (gen_ctx_t gen_ctx) {$/i\
enum { KIND_VAR = 1, KIND_MEM = 2, KIND_CONST = 4, KIND_OTHER = 8, KINDS = 3 };\
\
static inline int op_kind (const MIR_op_t *op) {\
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
static void pattern_kinds (struct pattern *pat) {\
  const char *p = pat->pattern;\
  for (int i = 0; i < KINDS; i++) {\
    while (*p == ' ' || *p == '\\t') p++;\
    if (*p == '\\0' || *p == '$') return;\
    if (*p == 'r' || *p == 't' || *p == 'h' || *p == 'b') pat->kinds[i] = KIND_VAR;\
    if (*p == 'i' || *p == 'z' || *p == 's' || *p == 'c') pat->kinds[i] = KIND_CONST;\
    if (*p == 'm' && p[1] != 'l') pat->kinds[i] = KIND_MEM;\
    while (*p != '\\0' && *p != ' ' && *p != '\\t') p++;\
  }\
}\

/^static void patterns_init (/,/^}/s/^    VARR_PUSH (int, pattern_indexes, i);$/    pattern_kinds (\&patterns[i]);\
&/
/^static int find_insn_pattern (/,/^}/{
s/^  const struct pattern \*pat;$/&\
  int kinds[KINDS], n = insn->nops < KINDS ? (int) insn->nops : KINDS, k;/
s/^  for (i = 0; i < info.num; i++) {$/  for (k = 0; k < n; k++) kinds[k] = op_kind (\&insn->ops[k]);\
&/
s/^    if (pattern_match_p (.*$/    for (k = 0; k < n; k++)\
      if (pat->kinds[k] != 0 \&\& pat->kinds[k] != kinds[k]) break;\
    if (k < n) continue;\
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
  void *insn_blocks;/
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
  memset (ctx->idle_insns, 0, sizeof (ctx->idle_insns));/
/^void MIR_finish (/,/^}/s/^  free (ctx);$/  for (void *block; (block = ctx->insn_blocks) != NULL; free (block)) ctx->insn_blocks = *(void **) block;\
&/
