# quick.sed — what jit/mir/build.sh changes in the copy of MIR that it compiles: the same code comes out of it, sooner.
# level 1 is the only one that is used: what only level 2 does goes
s/^#define optimize_level gen_ctx->optimize_level$/#define optimize_level 1/
s/^  optimize_level = .*;$/  ;/
# no code is made block by block as it is reached
s/^  bb_wrapper = .*;$/  ;/
# registers stand in the order of their numbers
/^static reg_desc_t \*find_rd_by_reg/,/^}/s/^  rd\.reg = reg;$/  if (reg < VARR_LENGTH (reg_desc_t, func_regs->reg_descs) \&\& VARR_ADDR (reg_desc_t, func_regs->reg_descs)[reg].reg == reg)\n    return \&VARR_ADDR (reg_desc_t, func_regs->reg_descs)[reg];\n&/
# only the first operand is a result, except of calls
/^static inline int input_insn_var_iterator_next (/i\
static inline int operand_out_p (MIR_context_t ctx, MIR_insn_t insn, size_t nop) {\
  int out_p = FALSE;\
  if (nop == 0 || MIR_call_code_p (insn->code) || insn->code == MIR_UNSPEC) MIR_insn_op_mode (ctx, insn, nop, &out_p);\
  return out_p;\
}
/^static inline int input_insn_var_iterator_next (/,$s/^\( *\)MIR_insn_op_mode (\([a-z>_-]*\), \([a-z>_-]*\), \([a-z>_-]*\), &out_p);$/\1out_p = operand_out_p (\2, \3, \4);/
# what is rarely run is small
s/^static void \(target_machinize\|machinize_call\|destroy_loop_tree\|add_inout_reloads\) (.*[{,]$/__attribute__((cold)) &/
s/^void MIR_gen_\(init\|finish\) (.*{$/__attribute__((cold)) &/
s/^static int \(process_loop\|live_con_func_n\|get_spill_mem_loc\) (.*{$/__attribute__((cold)) &/
