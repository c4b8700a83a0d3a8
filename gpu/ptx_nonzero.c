/* ptx_nonzero.c — the numbers of the true elements of a mask as PTX: one pass, pieces of 4,096 elements.
 *
 * A block takes a piece, each of its 256 threads 16 elements that lie together. What the threads count is scanned in
 * shared memory, by 16 threads and then by one; what lies before the piece comes from other blocks (ptx_chain.c). Each
 * thread leaves the numbers of its true elements in shared memory, where they are in order and without gaps, and the
 * block writes them out side by side. */
#include "gpu/nonzero.h"
#include "gpu/ptx_writer.h"

enum { THREADS = 256, EACH = NONZERO_PIECE / THREADS, WORDS = EACH / 4, GROUPS = 16 };
/* In bytes of shared memory: numbers of true elements in the piece; counts of threads, 17 words for each group; of
 * groups; where the piece begins in the result; the number of the piece; the places of ptx_chain.c. */
enum { COUNTS_AT = 4 * NONZERO_PIECE, GROUPS_AT = COUNTS_AT + 4 * GROUPS * (GROUPS + 1),
       BASE_AT = GROUPS_AT + 4 * GROUPS, TICKET_AT = BASE_AT + 8, KEEP_AT = TICKET_AT + 8,
       SHARED = KEEP_AT + 8 * PTX_CHAIN_LEVELS };
_Static_assert(EACH == GROUPS && GROUPS * GROUPS == (int)THREADS, "16 threads scan the counts of 16 each");

typedef struct Places {
  PtxWriter *w;
  PtxBlock b;
  Opnd mask, out, n, counter, scratch; /* the parameters */
  Opnd tile;                           /* u32: where shared memory begins */
  Opnd piece, pieces;                  /* u32 */
  Opnd start, left;                    /* u64: the thread's first element; u32: how many it has, up to 16 */
  Opnd word[WORDS];                    /* its elements, a byte each */
  Opnd count, before, total;           /* u32: its true elements; those before it in the piece; of the piece */
} Places;

static Opnd n32(u32 v) { return ptx_u32(v); }

static Opnd shared_place(Places *p, u32 first, Opnd number, u32 bytes) {
  Opnd at = ptx_new(p->w, REG_R);
  INS(p->w, "mad.lo.u32", at, number, n32(bytes), p->tile);
  if (first) INS(p->w, "add.u32", at, at, n32(first));
  return at;
}

static void put_parameters(Places *p) {
  PtxWriter *w = p->w;
  Opnd *const words[NONZERO_PARAMS] = {&p->mask, &p->out, &p->n, &p->counter, &p->scratch, &w->blocks};
  for (u32 i = 0; i < NONZERO_PARAMS; i++) {
    *words[i] = ptx_new(w, REG_RD);
    ptx_line(w, "ld.param.u64 %s, [a%u];", ptx_text(*words[i]).s, i);
    if (words[i] != &p->n && words[i] != &w->blocks) INS(w, "cvta.to.global.u64", *words[i], *words[i]);
  }
  p->b.thread = ptx_new(w, REG_R);
  p->tile = ptx_new(w, REG_R);
  p->pieces = ptx_new(w, REG_R);
  ptx_line(w, "mov.u32 %s, %%tid.x;", ptx_text(p->b.thread).s);
  ptx_line(w, "mov.u32 %s, tile;", ptx_text(p->tile).s);
  INS(w, "cvt.u32.u64", p->pieces, w->blocks);
}

/* The thread's elements: in one access where there are 16 that begin at a multiple of 16 bytes, else one by one. */
static void read_elements(Places *p) {
  PtxWriter *w = p->w;
  Opnd wide = ptx_new(w, REG_RD), at = ptx_new(w, REG_RD), low = ptx_new(w, REG_RD), few = ptx_new(w, REG_P),
       odd = ptx_new(w, REG_P);
  p->start = ptx_new(w, REG_RD);
  p->left = ptx_new(w, REG_R);
  INS(w, "mul.wide.u32", wide, p->b.thread, n32(EACH));
  INS(w, "mul.wide.u32", p->start, p->piece, n32(NONZERO_PIECE));
  INS(w, "add.u64", p->start, p->start, wide);
  INS(w, "max.u64", wide, p->n, p->start);
  INS(w, "sub.u64", wide, wide, p->start);
  INS(w, "min.u64", wide, wide, ptx_number(EACH));
  INS(w, "cvt.u32.u64", p->left, wide);
  INS(w, "add.u64", at, p->mask, p->start);
  for (u32 k = 0; k < WORDS; k++) {
    p->word[k] = ptx_new(w, REG_R);
    INS(w, "mov.u32", p->word[k], n32(0));
  }
  INS(w, "and.b64", low, at, ptx_number(15));
  INS(w, "setp.ne.u64", odd, low, ptx_number(0));
  INS(w, "setp.lt.u32", few, p->left, n32(EACH));
  INS(w, "or.pred", odd, odd, few);
  ptx_line(w, "@%s bra L_bytes;", ptx_text(odd).s);
  ptx_line(w, "ld.global.v4.u32 {%s, %s, %s, %s}, [%s];", ptx_text(p->word[0]).s, ptx_text(p->word[1]).s,
           ptx_text(p->word[2]).s, ptx_text(p->word[3]).s, ptx_text(at).s);
  ptx_line(w, "bra L_read;");
  ptx_label(w, "L_bytes");
  for (u32 k = 0; k < EACH; k++) {
    Opnd has = ptx_new(w, REG_P), byte = ptx_new(w, REG_R);
    INS(w, "setp.gt.u32", has, p->left, n32(k));
    INS(w, "mov.u32", byte, n32(0));
    ptx_line(w, "@%s ld.global.u8 %s, [%s+%u];", ptx_text(has).s, ptx_text(byte).s, ptx_text(at).s, k);
    if (k % 4) INS(w, "shl.b32", byte, byte, n32(k % 4 * 8));
    INS(w, "or.b32", p->word[k / 4], p->word[k / 4], byte);
  }
  ptx_label(w, "L_read");
  /* bytes are 0 or 1: their sum is in the highest byte of the product */
  p->count = ptx_new(w, REG_R);
  INS(w, "mov.u32", p->count, n32(0));
  for (u32 k = 0; k < WORDS; k++) {
    Opnd sum = ptx_new(w, REG_R);
    INS(w, "mul.lo.u32", sum, p->word[k], n32(0x01010101));
    INS(w, "shr.u32", sum, sum, n32(24));
    INS(w, "add.u32", p->count, p->count, sum);
  }
}

/* The 16 words from `at` on become sums of those before each; the sum of all. */
static Opnd scan_words(PtxWriter *w, Opnd at) {
  Opnd words[GROUPS], sum = ptx_new(w, REG_R);
  for (u32 k = 0; k < GROUPS; k++) {
    words[k] = ptx_new(w, REG_R);
    ptx_line(w, "ld.shared.u32 %s, [%s+%u];", ptx_text(words[k]).s, ptx_text(at).s, 4 * k);
  }
  INS(w, "mov.u32", sum, n32(0));
  for (u32 k = 0; k < GROUPS; k++) {
    Opnd here = ptx_new(w, REG_R);
    INS(w, "add.u32", here, at, n32(4 * k));
    ptx_shared_store(w, LT_U32, here, sum);
    INS(w, "add.u32", sum, sum, words[k]);
  }
  return sum;
}

/* By one thread: where the piece begins, from the totals of pieces. */
static void put_base(Places *p, Opnd total) {
  PtxWriter *w = p->w;
  PtxChain c = {.op = LOOP_ADD, .type = LT_I64, .base = p->scratch, .slots = PTX_CHAIN_COLUMN_SLOTS, .lanes = 1,
                .piece = p->piece, .blocks = p->pieces, .keep_step = 8};
  Opnd wide = ptx_new(w, REG_RD), base = ptx_new(w, REG_RD);
  c.keep = shared_place(p, KEEP_AT, n32(0), 8);
  INS(w, "cvt.u64.u32", wide, total);
  INS(w, "sub.u64", base, ptx_chain_scan(w, &c, wide), wide);
  ptx_shared_store(w, LT_U64, shared_place(p, BASE_AT, n32(0), 8), base);
}

static void put_counts(Places *p) {
  PtxWriter *w = p->w;
  Opnd group = ptx_new(w, REG_R), padded = ptx_new(w, REG_R), out = ptx_new(w, REG_P), row = ptx_new(w, REG_R),
       before = ptx_new(w, REG_R);
  INS(w, "shr.u32", group, p->b.thread, n32(4));
  INS(w, "add.u32", padded, p->b.thread, group);
  Opnd own = shared_place(p, COUNTS_AT, padded, 4), of_group = shared_place(p, GROUPS_AT, group, 4);
  ptx_shared_store(w, LT_U32, own, p->count);
  ptx_line(w, "bar.sync 0;");
  INS(w, "setp.ge.u32", out, p->b.thread, n32(GROUPS));
  ptx_line(w, "@%s bra L_groups;", ptx_text(out).s);
  INS(w, "mul.lo.u32", row, p->b.thread, n32(GROUPS + 1));
  Opnd sum = scan_words(w, shared_place(p, COUNTS_AT, row, 4));
  ptx_shared_store(w, LT_U32, shared_place(p, GROUPS_AT, p->b.thread, 4), sum);
  ptx_label(w, "L_groups");
  ptx_line(w, "bar.sync 0;");
  INS(w, "setp.ne.u32", out, p->b.thread, n32(0));
  ptx_line(w, "@%s bra L_all;", ptx_text(out).s);
  Opnd all = scan_words(w, shared_place(p, GROUPS_AT, n32(0), 4)), at = shared_place(p, TICKET_AT, n32(0), 4);
  ptx_shared_store(w, LT_U32, at, all); /* the number was read by all */
  put_base(p, all);
  ptx_label(w, "L_all");
  ptx_line(w, "bar.sync 0;");
  p->before = ptx_new(w, REG_R);
  p->total = ptx_new(w, REG_R);
  ptx_shared_load(w, LT_U32, p->before, own);
  ptx_shared_load(w, LT_U32, before, of_group);
  ptx_shared_load(w, LT_U32, p->total, shared_place(p, TICKET_AT, n32(0), 4));
  INS(w, "add.u32", p->before, p->before, before);
}

static void put_places(Places *p) {
  PtxWriter *w = p->w;
  Opnd number = ptx_new(w, REG_R), at = shared_place(p, 0, p->before, 4);
  INS(w, "mul.lo.u32", number, p->b.thread, n32(EACH));
  for (u32 k = 0; k < EACH; k++) {
    Opnd bit = ptx_new(w, REG_R), has = ptx_new(w, REG_P);
    if (k % 4) INS(w, "shr.u32", bit, p->word[k / 4], n32(k % 4 * 8));
    INS(w, "and.b32", bit, k % 4 ? bit : p->word[k / 4], n32(1));
    INS(w, "setp.ne.u32", has, bit, n32(0));
    ptx_shared_store_where(w, has, LT_U32, at, number);
    INS(w, "mad.lo.u32", at, bit, n32(4), at);
    INS(w, "add.u32", number, number, n32(1));
  }
  ptx_line(w, "bar.sync 0;");
}

static void put_writes(Places *p) {
  PtxWriter *w = p->w;
  Opnd k = ptx_new(w, REG_R), done = ptx_new(w, REG_P), base = ptx_new(w, REG_RD), to = ptx_new(w, REG_RD),
       number = ptx_new(w, REG_R), place = ptx_new(w, REG_RD), first = ptx_new(w, REG_RD);
  ptx_shared_load(w, LT_U64, base, shared_place(p, BASE_AT, n32(0), 8));
  INS(w, "mad.lo.u64", base, base, ptx_number(8), p->out);
  INS(w, "mul.wide.u32", first, p->piece, n32(NONZERO_PIECE));
  INS(w, "mov.u32", k, p->b.thread);
  ptx_label(w, "L_write");
  INS(w, "setp.ge.u32", done, k, p->total);
  ptx_line(w, "@%s bra L_written;", ptx_text(done).s);
  INS(w, "mad.wide.u32", to, k, n32(8), base);
  ptx_shared_load(w, LT_U32, number, shared_place(p, 0, k, 4));
  INS(w, "cvt.u64.u32", place, number);
  INS(w, "add.u64", place, place, first);
  ptx_line(w, "st.global.u64 [%s], %s;", ptx_text(to).s, ptx_text(place).s);
  INS(w, "add.u32", k, k, n32(THREADS));
  ptx_line(w, "bra L_write;");
  ptx_label(w, "L_written");
}

WeftStatus nonzero_ptx(Buf *out) {
  PtxWriter w = {.alloc = out->alloc, .out = out};
  Places p = {.w = &w};
  buf_init(&w.body, out->alloc);
  put_parameters(&p);
  p.piece = ptx_chain_ticket(&w, &p.b, p.counter, shared_place(&p, TICKET_AT, n32(0), 4));
  read_elements(&p);
  put_counts(&p);
  put_places(&p);
  put_writes(&p);
  ptx_line(&w, "ret;");
  return ptx_one_entry(&w, "each piece is done by a block of threads", "nonzero", NONZERO_PARAMS, SHARED, out);
}
