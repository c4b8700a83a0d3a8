/* ptx_chain.c — pieces of a scan that blocks of threads do at the same time, each of which needs the scan up to it.
 *
 * Decoupled look-back (Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016) in the
 * order of the language (ir.md section 10), so that the bits do not depend on which block is faster. Totals of pieces
 * are scanned in segments of 16, whose totals are scanned by the same rule. So there is a tree of totals: level 0 has
 * the pieces, and element i of level k + 1 is the total of the elements 16·i … 16·i + 15 of level k. A block
 *
 *   up     publishes its piece's total, reads those before it in the segment, and has the scan inside the segment. Was
 *          it the segment's last one, that is the total of an element of the next level, and it does the same there
 *   down   from its highest level to the lowest: reads the scan of the level above up to the segment before, puts it
 *          in front of its own, and publishes the scan
 *
 * Nothing on the way up waits for a scan, so no chain is longer than twice the number of levels. A block takes its
 * number from a counter: those that it waits for were taken before, by blocks that run.
 *
 * A published value is one or two words of 64 bits, each 32 bits of the value and the flag that it is there: a word is
 * read and written whole, so no fence is needed. Scratch memory is zero before the launch. */
#include "gpu/ptx_writer.h"

enum { SEGMENT = LOOP_SCAN_SEGMENT, SIBLINGS = SEGMENT - 1, SEGMENT_BITS = 4 };
_Static_assert(1 << SEGMENT_BITS == SEGMENT, "numbers of segments are shifted");

static u32 words_of(const PtxChain *c) { return loop_type_bytes(c->type) == 8 ? 2 : 1; }

/* Where an element's values begin. */
static Opnd words_at(PtxWriter *w, const PtxChain *c, Opnd element) {
  Opnd at = ptx_new(w, REG_RD);
  INS(w, "mad.wide.u32", at, element, ptx_u32(c->slots * ptx_chain_step(c->type, c->lanes)), c->base);
  return at;
}

/* … and how far behind that one of its values lies, or one of an element `ahead` of it. */
static u32 offset_of(const PtxChain *c, u32 ahead, u32 which) {
  return (ahead * c->slots + which) * ptx_chain_step(c->type, c->lanes);
}

void ptx_chain_put(PtxWriter *w, const PtxChain *c, Opnd element, u32 which, Opnd v) {
  Opnd at = words_at(w, c, element), flag = ptx_new(w, REG_R), half[] = {ptx_new(w, REG_R), ptx_new(w, REG_R)};
  INS(w, "mov.u32", flag, ptx_u32(1));
  v = ptx_in_register(w, v);
  if (words_of(c) == 1) INS(w, "mov.b32", half[0], v);
  else ptx_line(w, "mov.b64 {%s, %s}, %s;", ptx_text(half[0]).s, ptx_text(half[1]).s, ptx_text(v).s);
  for (u32 k = 0; k < words_of(c); k++) {
    Opnd word = ptx_new(w, REG_RD);
    ptx_line(w, "mov.b64 %s, {%s, %s};", ptx_text(word).s, ptx_text(flag).s, ptx_text(half[k]).s);
    ptx_line(w, "st.relaxed.gpu.global.u64 [%s+%u], %s;", ptx_text(at).s, offset_of(c, 0, which) + 8 * k,
             ptx_text(word).s);
  }
}

void ptx_chain_get(PtxWriter *w, const PtxChain *c, u32 count, const PtxChainWord *from, Opnd *values) {
  Opnd at[PTX_CHAIN_READS], word[PTX_CHAIN_READS][2], all = ptx_new(w, REG_R), none = ptx_new(w, REG_P);
  u32 label = ++w->labels;
  for (u32 i = 0; i < count; i++)
    at[i] = i && from[i].element.n == from[i - 1].element.n ? at[i - 1] : words_at(w, c, from[i].element);
  ptx_label(w, "L%u_wait", label);
  w->depth++;
  for (u32 i = 0; i < count; i++)
    for (u32 k = 0; k < words_of(c); k++) {
      word[i][k] = ptx_new(w, REG_RD);
      INS(w, "mov.u64", word[i][k], ptx_number(1)); /* there, and 0, when it is not read */
      ptx_line(w, "@%s ld.relaxed.gpu.global.u64 %s, [%s+%u];", ptx_text(from[i].has).s, ptx_text(word[i][k]).s,
               ptx_text(at[i]).s, offset_of(c, from[i].ahead, from[i].which) + 8 * k);
    }
  INS(w, "mov.u32", all, ptx_u32(1));
  for (u32 i = 0; i < count; i++) {
    Opnd half[2];
    for (u32 k = 0; k < words_of(c); k++) {
      Opnd flag = ptx_new(w, REG_R);
      half[k] = ptx_new(w, REG_R);
      ptx_line(w, "mov.b64 {%s, %s}, %s;", ptx_text(flag).s, ptx_text(half[k]).s, ptx_text(word[i][k]).s);
      INS(w, "and.b32", all, all, flag);
    }
    values[i] = ptx_new_for(w, c->type);
    if (words_of(c) == 1) INS(w, "mov.b32", values[i], half[0]);
    else
      ptx_line(w, "mov.b64 %s, {%s, %s};", ptx_text(values[i]).s, ptx_text(half[0]).s, ptx_text(half[1]).s);
  }
  INS(w, "setp.eq.u32", none, all, ptx_u32(0));
  w->depth--;
  ptx_line(w, "@%s bra L%u_wait;", ptx_text(none).s, label);
}

Opnd ptx_chain_before(PtxWriter *w, const PtxChain *c, Opnd has, Opnd first, Opnd v) {
  Opnd sum = ptx_operation(w, c->op, c->type, first, v, (Opnd){0}), r = ptx_new_for(w, c->type);
  ptx_select(w, c->type, r, has, sum, v);
  return r;
}

/* The scan inside the segment up to element first + count, whose value is `own`: a few elements at a time, for which
 * there are registers. */
static Opnd scan_siblings(PtxWriter *w, const PtxChain *c, Opnd first, Opnd count, Opnd own) {
  Opnd sum = {0}, has_first = {0};
  for (u32 from = 0; from < SIBLINGS; from += PTX_CHAIN_READS) {
    PtxChainWord words[PTX_CHAIN_READS];
    Opnd values[PTX_CHAIN_READS];
    u32 n = SIBLINGS - from < PTX_CHAIN_READS ? SIBLINGS - from : PTX_CHAIN_READS;
    for (u32 k = 0; k < n; k++) {
      words[k] = (PtxChainWord){first, ptx_new(w, REG_P), PTX_CHAIN_TOTAL, from + k};
      INS(w, "setp.gt.u32", words[k].has, count, ptx_u32(from + k));
    }
    ptx_chain_get(w, c, n, words, values);
    for (u32 k = 0; k < n; k++) {
      if (!from && !k) {
        sum = values[0];
        has_first = words[0].has;
        continue;
      }
      Opnd more = ptx_operation(w, c->op, c->type, sum, values[k], (Opnd){0}), next = ptx_new_for(w, c->type);
      ptx_select(w, c->type, next, words[k].has, more, sum);
      sum = next;
    }
  }
  return ptx_chain_before(w, c, has_first, sum, own);
}

Opnd ptx_chain_scan(PtxWriter *w, const PtxChain *c, Opnd total) {
  LoopType t = c->type;
  u32 label = ++w->labels;
  Opnd element = ptx_new(w, REG_R), level = ptx_new(w, REG_R), shift = ptx_new(w, REG_R), keep = ptx_new(w, REG_R),
       own = ptx_new_for(w, t), at = ptx_new(w, REG_R), count = ptx_new(w, REG_R), first = ptx_new(w, REG_R),
       out = ptx_new(w, REG_P), length = ptx_new(w, REG_R), scan = ptx_new_for(w, t), inner = ptx_new_for(w, t);
  /* `level`: where the level's elements begin; it has blocks >> shift of them that are whole */
  INS(w, "mov.u32", element, c->piece);
  INS(w, "mov.u32", level, ptx_u32(0));
  INS(w, "mov.u32", shift, ptx_u32(0));
  INS(w, "mov.u32", keep, c->keep);
  ptx_move(w, t, own, total);
  ptx_label(w, "L%u_up", label);
  INS(w, "add.u32", at, level, element);
  ptx_chain_put(w, c, at, PTX_CHAIN_TOTAL, own);
  INS(w, "and.b32", count, element, ptx_u32(SEGMENT - 1));
  INS(w, "sub.u32", first, at, count);
  ptx_move(w, t, own, scan_siblings(w, c, first, count, own));
  ptx_shared_store(w, t, keep, own);
  INS(w, "setp.ne.u32", out, count, ptx_u32(SEGMENT - 1));
  ptx_line(w, "@%s bra L%u_down;", ptx_text(out).s, label);
  INS(w, "shr.u32", length, c->blocks, shift);
  INS(w, "add.u32", level, level, length);
  INS(w, "add.u32", shift, shift, ptx_u32(SEGMENT_BITS));
  INS(w, "shr.u32", element, element, ptx_u32(SEGMENT_BITS));
  INS(w, "add.u32", keep, keep, ptx_u32(c->keep_step));
  ptx_line(w, "bra L%u_up;", label);
  ptx_label(w, "L%u_down", label);
  PtxChainWord above = {ptx_new(w, REG_R), ptx_new(w, REG_P), PTX_CHAIN_SCAN, 0};
  Opnd value;
  ptx_shared_load(w, t, inner, keep);
  INS(w, "shr.u32", element, c->piece, shift);
  INS(w, "shr.u32", count, element, ptx_u32(SEGMENT_BITS)); /* segments before this one */
  INS(w, "setp.gt.u32", above.has, count, ptx_u32(0));
  INS(w, "shr.u32", length, c->blocks, shift);
  INS(w, "add.u32", above.element, level, length);
  INS(w, "add.u32", above.element, above.element, count);
  INS(w, "sub.u32", above.element, above.element, ptx_u32(1));
  ptx_chain_get(w, c, 1, &above, &value);
  ptx_move(w, t, scan, ptx_chain_before(w, c, above.has, value, inner));
  INS(w, "add.u32", at, level, element);
  ptx_chain_put(w, c, at, PTX_CHAIN_SCAN, scan);
  INS(w, "setp.eq.u32", out, shift, ptx_u32(0));
  ptx_line(w, "@%s bra L%u_scanned;", ptx_text(out).s, label);
  INS(w, "sub.u32", shift, shift, ptx_u32(SEGMENT_BITS));
  INS(w, "shr.u32", length, c->blocks, shift);
  INS(w, "sub.u32", level, level, length);
  INS(w, "sub.u32", keep, keep, ptx_u32(c->keep_step));
  ptx_line(w, "bra L%u_down;", label);
  ptx_label(w, "L%u_scanned", label);
  return scan;
}

Opnd ptx_chain_ticket(PtxWriter *w, const PtxBlock *b, Opnd counter, Opnd place) {
  u32 label = ++w->labels;
  Opnd number = ptx_new(w, REG_R), out = ptx_new(w, REG_P), all = ptx_new(w, REG_R);
  INS(w, "setp.ne.u32", out, b->thread, ptx_u32(0));
  ptx_line(w, "@%s bra L%u_taken;", ptx_text(out).s, label);
  ptx_line(w, "atom.global.add.u32 %s, [%s], 1;", ptx_text(number).s, ptx_text(counter).s);
  ptx_shared_store(w, LT_U32, place, number);
  ptx_label(w, "L%u_taken", label);
  ptx_line(w, "bar.sync 0;");
  ptx_shared_load(w, LT_U32, all, place);
  return all;
}
