/* ptx_matmul.c — the product of two matrices as PTX: tiles in shared memory, 256 threads a tile.
 *
 * A block of threads makes a tile of the result, SIDE times SIDE. It goes along the inner axis by STEP elements: the
 * parts of both operands that the tile needs lie in shared memory, twice, so that the next part is on its way from
 * memory while this one is multiplied (double buffering: one meeting of the block for each part). A thread makes 8
 * times 8 elements: of rows and of columns groups of 16 bytes, which lie as far apart as 16 threads have such groups
 * between them, so that the threads of a warp read shared memory in whole lines.
 *
 * Operands have any strides. Neighbouring threads read what lies side by side: elements along the inner axis where its
 * stride is 1, else those across it. What lies outside of an operand counts as zeros, and is not stored.
 *
 * The order: each element of the result is one sum, from the first to the last element of the inner axis, with an fma
 * for each. It does not depend on the grid. Integers wrap: theirs is a multiplication and an addition of words of 32
 * or 64 bits. Those of a byte lie in 32 bits in shared memory, and what sums have above a byte is not stored. */
#include "gpu/matmul.h"
#include "gpu/ptx_writer.h"

#include <stdio.h>

enum { STEP = MATMUL_STEP, THREADS = 256, SIDE = MATMUL_SIDE, EACH = SIDE / 16 /* rows of a thread, and columns */,
       LOADS = SIDE * STEP / THREADS };

/* One operand: `across` is its axis that the result has, too; `along` the inner one. */
typedef struct Side {
  Opnd at;                /* u64: the address of the thread's first element */
  Opnd next, ahead;       /* u64: bytes from one of its elements to the next; from part to part */
  Opnd in[LOADS], inner[LOADS]; /* it lies in the operand; its place along the inner axis, u32 */
  Opnd put[LOADS];        /* u32: its place in shared memory */
  Opnd get;               /* u32: where the thread's first V elements lie */
  Opnd value[LOADS];
} Side;

typedef struct Product {
  PtxWriter *w;
  LoopType type;
  u32 bytes, stored;      /* of an element in shared memory; in memory */
  u32 vector, row;        /* elements of 16 bytes; bytes of a row of a part */
  Opnd thread, count[3];               /* m, n, k: u32 */
  Opnd batch;                          /* u64: the number of the product */
  Opnd first[2];                       /* u32: where the tile begins */
  Opnd buffer, begin;                  /* u32: bytes from the first buffer to this one; the part's place, inner axis */
  Side s[2];
  Opnd sum[EACH][EACH];
} Product;

static Opnd c32(u32 v) { return ptx_const(LT_U32, v); }

static Opnd add32(PtxWriter *w, Opnd a, Opnd b) {
  Opnd v = ptx_new(w, REG_R);
  INS(w, "add.u32", v, a, b);
  return v;
}

static Opnd chosen(PtxWriter *w, Opnd first, Opnd a, Opnd b) {
  Opnd v = ptx_new(w, REG_R);
  INS(w, "selp.u32", v, a, b, first);
  return v;
}

/* Operand `which`, whose parameters are its address and three strides. */
static void put_side(Product *p, u32 which) {
  PtxWriter *w = p->w;
  Side *s = &p->s[which];
  u32 log = 31 - (u32)__builtin_clz(SIDE);
  Opnd base = ptx_parameter(p->w, "u64", which, REG_RD), across = ptx_parameter(p->w, "u64", 6 + 2 * which, REG_RD),
       along = ptx_parameter(p->w, "u64", 7 + 2 * which, REG_RD),
       apart = ptx_parameter(p->w, "u64", 10 + which, REG_RD),
       dense = ptx_new(w, REG_P);
  INS(w, "cvta.to.global.u64", base, base);
  INS(w, "mul.lo.u64", apart, apart, p->batch);
  INS(w, "mad.lo.u64", base, apart, ptx_number(p->stored), base);
  INS(w, "setp.eq.s64", dense, along, ptx_number(1));
  /* the thread's first element, and how far the next one is: on either axis */
  Opnd o = chosen(w, dense, ptx_bits(p->w, p->thread, 3, 31), ptx_bits(p->w, p->thread, 0, SIDE - 1)),
       k = chosen(w, dense, ptx_bits(p->w, p->thread, 0, STEP - 1), ptx_bits(p->w, p->thread, log, THREADS / SIDE - 1)),
       over = chosen(w, dense, c32(THREADS / STEP), ptx_in_register(w, c32(0))),
       deep = chosen(w, dense, c32(0), ptx_in_register(w, c32(THREADS / SIDE)));
  Opnd row = ptx_new(w, REG_RD), column = ptx_new(w, REG_RD), more = ptx_new(w, REG_RD), place = ptx_new(w, REG_R),
       far = ptx_new(w, REG_R), home = ptx_new(w, REG_R), wide = ptx_new(w, REG_RD);
  s->at = ptx_new(w, REG_RD);
  s->next = ptx_new(w, REG_RD);
  s->ahead = ptx_new(w, REG_RD);
  INS(w, "mul.lo.u64", across, across, ptx_number(p->stored));
  INS(w, "mul.lo.u64", along, along, ptx_number(p->stored));
  INS(w, "cvt.u64.u32", row, add32(w, p->first[which], o));
  INS(w, "cvt.u64.u32", column, k);
  INS(w, "mad.lo.u64", s->at, row, across, base);
  INS(w, "mad.lo.u64", s->at, column, along, s->at);
  INS(w, "cvt.u64.u32", wide, over);
  INS(w, "cvt.u64.u32", more, deep);
  INS(w, "mul.lo.u64", s->next, wide, across);
  INS(w, "mad.lo.u64", s->next, more, along, s->next);
  INS(w, "mul.lo.u64", s->ahead, along, ptx_number(STEP));
  ptx_line(w, "mov.u32 %s, tile;", ptx_text(home).s);
  if (which) INS(w, "add.u32", home, home, c32(STEP * p->row));
  INS(w, "mad.lo.u32", place, k, c32(p->row), home);
  INS(w, "mad.lo.u32", place, o, c32(p->bytes), place);
  INS(w, "mul.lo.u32", far, deep, c32(p->row));
  INS(w, "mad.lo.u32", far, over, c32(p->bytes), far);
  for (u32 r = 0; r < LOADS; r++) {
    Opnd at = ptx_new(w, REG_R), within = ptx_new(w, REG_R);
    s->in[r] = ptx_new(w, REG_P);
    s->inner[r] = ptx_new(w, REG_R);
    s->put[r] = ptx_new(w, REG_R);
    s->value[r] = ptx_new_for(w, p->type);
    INS(w, "mad.lo.u32", at, over, c32(r), o);
    INS(w, "add.u32", within, at, p->first[which]);
    INS(w, "setp.lt.u32", s->in[r], within, p->count[which]);
    INS(w, "mad.lo.u32", s->inner[r], deep, c32(r), k);
    INS(w, "mad.lo.u32", s->put[r], far, c32(r), place);
  }
  /* a warp has 8 threads along the columns and 4 along the rows */
  Opnd lane = ptx_bits(w, p->thread, which ? 0 : 3, which ? 7 : 3),
       warp = ptx_bits(w, p->thread, which ? 5 : 6, which ? 1 : 3);
  Opnd number = ptx_new(w, REG_R);
  INS(w, "mad.lo.u32", number, warp, c32(which ? 8 : 4), lane);
  s->get = ptx_new(w, REG_R);
  INS(w, "mad.lo.u32", s->get, number, c32(16), home);
}

/* Of an element in memory: "u8", "f64". */
static const char *stored_type(const Product *p) { return p->stored == 1 ? "u8" : ptx_type(p->type); }

/* The thread's elements of the part at p->begin, to registers: zeros where there are none. */
static void put_loads(Product *p) {
  PtxWriter *w = p->w;
  Opnd there[2][LOADS];
  for (u32 which = 0; which < 2; which++)
    for (u32 r = 0; r < LOADS; r++) {
      Opnd number = add32(w, p->begin, p->s[which].inner[r]);
      there[which][r] = ptx_new(w, REG_P);
      INS(w, "setp.lt.u32", there[which][r], number, p->count[2]);
      INS(w, "and.pred", there[which][r], there[which][r], p->s[which].in[r]);
      ptx_move(w, p->type, p->s[which].value[r], ptx_const(p->type, 0));
    }
  for (u32 which = 0; which < 2; which++) {
    Side *s = &p->s[which];
    Opnd at = s->at;
    for (u32 r = 0; r < LOADS; r++) {
      if (r) {
        Opnd next = ptx_new(w, REG_RD);
        INS(w, "add.s64", next, at, s->next);
        at = next;
      }
      ptx_line(w, "@%s ld.global.%s %s, [%s];", ptx_text(there[which][r]).s, stored_type(p),
               ptx_text(s->value[r]).s, ptx_text(at).s);
    }
    INS(w, "add.s64", s->at, s->at, s->ahead);
  }
}

/* … and from there to this buffer in shared memory. */
static void put_part(Product *p) {
  for (u32 which = 0; which < 2; which++)
    for (u32 r = 0; r < LOADS; r++)
      ptx_shared_store(p->w, p->type, add32(p->w, p->s[which].put[r], p->buffer), p->s[which].value[r]);
}

static void get_group(Product *p, Opnd at, u32 offset, const Opnd *v) {
  if (p->vector == 4)
    ptx_line(p->w, "ld.shared.v4.%s {%s, %s, %s, %s}, [%s+%u];", ptx_type(p->type), ptx_text(v[0]).s,
             ptx_text(v[1]).s, ptx_text(v[2]).s, ptx_text(v[3]).s, ptx_text(at).s, offset);
  else
    ptx_line(p->w, "ld.shared.v2.%s {%s, %s}, [%s+%u];", ptx_type(p->type), ptx_text(v[0]).s, ptx_text(v[1]).s,
             ptx_text(at).s, offset);
}

static void put_sums(Product *p) {
  PtxWriter *w = p->w;
  Opnd at[2] = {add32(w, p->s[0].get, p->buffer), add32(w, p->s[1].get, p->buffer)};
  const char *both = p->type == LT_F32 || p->type == LT_F64 ? "fma.rn" : "mad.lo";
  for (u32 k = 0; k < STEP; k++) {
    Opnd v[2][EACH];
    for (u32 which = 0; which < 2; which++) {
      for (u32 i = 0; i < EACH; i++) v[which][i] = ptx_new_for(w, p->type);
      for (u32 g = 0; g < EACH / p->vector; g++)
        get_group(p, at[which], k * p->row + g * 16 * p->vector * p->bytes, v[which] + g * p->vector);
    }
    for (u32 i = 0; i < EACH; i++)
      for (u32 j = 0; j < EACH; j++) INS_T(w, both, p->type, p->sum[i][j], v[0][i], v[1][j], p->sum[i][j]);
  }
}

/* Number i of the thread's rows or columns, behind the tile's first: groups of V. */
static u32 place_of(const Product *p, u32 i) { return i / p->vector * (16 * p->vector) + i % p->vector; }

/* The first row and the first column of the thread's, number u32. */
static void put_own(Product *p, Opnd *own) {
  PtxWriter *w = p->w;
  for (u32 which = 0; which < 2; which++) {
    Opnd lane = ptx_bits(w, p->thread, which ? 0 : 3, which ? 7 : 3),
         warp = ptx_bits(w, p->thread, which ? 5 : 6, which ? 1 : 3), number = ptx_new(w, REG_R);
    own[which] = ptx_new(w, REG_R);
    INS(w, "mad.lo.u32", number, warp, c32(which ? 8 : 4), lane);
    INS(w, "mad.lo.u32", own[which], number, c32(p->vector), p->first[which]);
  }
}

static Opnd wide(PtxWriter *w, Opnd v) {
  Opnd r = ptx_new(w, REG_RD);
  INS(w, "cvt.u64.u32", r, v);
  return r;
}

static Opnd least(PtxWriter *w, Opnd a, Opnd b) {
  Opnd v = ptx_new(w, REG_R);
  INS(w, "min.u32", v, a, b);
  return v;
}

/* Row by row, handed on to the kernel behind the product (ptx_epilogue.c). Single elements are stored: stores of four
 * need sums in registers beside one another, for which the sums' loop would have to give up a block of a multiprocessor
 * (139 registers instead of 127). Rows stand in the code one by one: sums that move through the registers of one row
 * are spilled. */
static void put_handed_on(Product *p) {
  PtxWriter *w = p->w;
  Opnd own[2], in[EACH], all = wide(w, p->count[0]), last = ptx_new(w, REG_R), bottom = ptx_new(w, REG_R);
  PtxElements x = {.width = wide(w, p->count[1]), .count = EACH, .group = 1};
  ptx_put_params(w);
  put_own(p, own);
  INS(w, "mul.lo.u64", all, all, p->batch);
  INS(w, "sub.u32", last, p->count[1], c32(1));
  INS(w, "sub.u32", bottom, p->count[0], c32(1));
  for (u32 j = 0; j < EACH; j++) {
    Opnd column = add32(w, own[1], c32(place_of(p, j)));
    in[j] = ptx_new(w, REG_P);
    INS(w, "setp.lt.u32", in[j], column, p->count[1]);
    x.columns[j] = wide(w, least(w, column, last));
  }
  for (u32 i = 0; i < EACH; i++) {
    Opnd number = add32(w, own[0], c32(place_of(p, i))), inside = ptx_new(w, REG_P);
    INS(w, "setp.lt.u32", inside, number, p->count[0]);
    x.row = ptx_new(w, REG_RD);
    INS(w, "add.u64", x.row, wide(w, least(w, number, bottom)), all);
    for (u32 j = 0; j < EACH; j++) {
      x.guards[j] = ptx_new(w, REG_P);
      INS(w, "and.pred", x.guards[j], inside, in[j]);
      x.sums[j] = p->sum[i][j];
    }
    ptx_put_epilogue(w, &x);
  }
}

static void put_results(Product *p) {
  PtxWriter *w = p->w;
  Opnd to = ptx_parameter(p->w, "u64", 2, REG_RD), own[2], in[EACH], n = ptx_new(w, REG_RD), m = ptx_new(w, REG_RD),
       column = ptx_new(w, REG_RD);
  INS(w, "cvta.to.global.u64", to, to);
  INS(w, "cvt.u64.u32", n, p->count[1]);
  INS(w, "cvt.u64.u32", m, p->count[0]);
  INS(w, "mul.lo.u64", m, m, p->batch);
  put_own(p, own);
  for (u32 j = 0; j < EACH; j++) {
    in[j] = ptx_new(w, REG_P);
    INS(w, "setp.lt.u32", in[j], add32(w, own[1], c32(place_of(p, j))), p->count[1]);
  }
  INS(w, "cvt.u64.u32", column, own[1]);
  for (u32 i = 0; i < EACH; i++) {
    Opnd row = add32(w, own[0], c32(place_of(p, i))), at = ptx_new(w, REG_RD), inside = ptx_new(w, REG_P);
    INS(w, "setp.lt.u32", inside, row, p->count[0]);
    INS(w, "cvt.u64.u32", at, row);
    INS(w, "add.u64", at, at, m);
    INS(w, "mad.lo.u64", at, at, n, column);
    INS(w, "mad.lo.u64", at, at, ptx_number(p->stored), to);
    for (u32 j = 0; j < EACH; j++) {
      Opnd both = ptx_new(w, REG_P);
      INS(w, "and.pred", both, inside, in[j]);
      ptx_line(w, "@%s st.global.%s [%s+%u], %s;", ptx_text(both).s, stored_type(p), ptx_text(at).s,
               place_of(p, j) * p->stored, ptx_text(p->sum[i][j]).s);
    }
  }
}

/* Which tile the block makes, its operands, the sums at zero. */
static void put_beginning(Product *p) {
  PtxWriter *w = p->w;
  Opnd block = ptx_new(w, REG_R), along = ptx_new(w, REG_R), each = ptx_new(w, REG_R),
       tile[2] = {ptx_new(w, REG_R), ptx_new(w, REG_R)};
  p->thread = ptx_new(w, REG_R);
  ptx_line(w, "mov.u32 %s, %%tid.x;", ptx_text(p->thread).s);
  ptx_line(w, "mov.u32 %s, %%ctaid.x;", ptx_text(block).s);
  for (u32 i = 0; i < 3; i++) p->count[i] = ptx_parameter(p->w, "u32", 3 + i, REG_R);
  INS(w, "add.u32", along, p->count[1], c32(SIDE - 1));
  INS(w, "div.u32", along, along, c32(SIDE));
  INS(w, "add.u32", each, p->count[0], c32(SIDE - 1));
  INS(w, "div.u32", each, each, c32(SIDE));
  INS(w, "mul.lo.u32", each, each, along);
  p->batch = ptx_new(w, REG_RD);
  INS(w, "div.u32", tile[0], block, each);
  INS(w, "cvt.u64.u32", p->batch, tile[0]);
  INS(w, "rem.u32", block, block, each);
  INS(w, "div.u32", tile[0], block, along);
  INS(w, "rem.u32", tile[1], block, along);
  for (u32 which = 0; which < 2; which++) {
    p->first[which] = ptx_new(w, REG_R);
    INS(w, "mul.lo.u32", p->first[which], tile[which], c32(SIDE));
  }
  put_side(p, 0);
  put_side(p, 1);
  for (u32 i = 0; i < EACH; i++)
    for (u32 j = 0; j < EACH; j++) {
      p->sum[i][j] = ptx_new_for(w, p->type);
      ptx_move(w, p->type, p->sum[i][j], ptx_const(p->type, 0));
    }
  p->buffer = ptx_new(w, REG_R);
  p->begin = ptx_new(w, REG_R);
  INS(w, "mov.u32", p->buffer, c32(0));
  INS(w, "mov.u32", p->begin, c32(0));
}

static void put_product(Product *p) {
  PtxWriter *w = p->w;
  Opnd more = ptx_new(w, REG_P);
  u32 buffer = 2 * STEP * p->row;
  put_beginning(p);
  put_loads(p);
  put_part(p);
  ptx_line(w, "bar.sync 0;");
  ptx_label(w, "L_part");
  INS(w, "add.u32", p->begin, p->begin, c32(STEP));
  INS(w, "setp.lt.u32", more, p->begin, p->count[2]);
  ptx_line(w, "@!%s bra L_sums;", ptx_text(more).s);
  put_loads(p);
  ptx_label(w, "L_sums");
  put_sums(p);
  ptx_line(w, "@!%s bra L_end;", ptx_text(more).s);
  INS(w, "sub.u32", p->buffer, c32(buffer), p->buffer);
  put_part(p);
  ptx_line(w, "bar.sync 0;");
  ptx_line(w, "bra.uni L_part;");
  ptx_label(w, "L_end");
  if (w->epilogue) put_handed_on(p);
  else put_results(p);
}

static Product product_of(PtxWriter *w, LoopType type) {
  u32 stored = loop_type_bytes(type), bytes = stored == 8 ? 8 : 4;
  Product p = {.w = w, .type = type == LT_U8 ? LT_U32 : type, .bytes = bytes, .stored = stored, .vector = 16 / bytes};
  p.row = SIDE * p.bytes + 16; /* so that rows begin in different banks */
  return p;
}

void ptx_put_matmul(PtxWriter *w, LoopType type) {
  Product p = product_of(w, type);
  put_product(&p);
}

u32 ptx_matmul_shared(LoopType type) { return 4 * STEP * product_of(NULL, type).row; }

const char *matmul_entry(LoopType type) {
  switch (type) {
    case LT_F32: return "matmul_f32";
    case LT_F64: return "matmul_f64";
    case LT_U8: return "matmul_u8";
    case LT_U32: return "matmul_u32";
    default: return "matmul_u64";
  }
}

WeftStatus matmul_ptx(LoopType type, Buf *out) {
  PtxWriter w = {.alloc = out->alloc, .out = out};
  buf_init(&w.body, out->alloc);
  ptx_put_matmul(&w, type);
  ptx_line(&w, "ret;");
  return ptx_one_entry(&w, "each tile is made by a block of threads", matmul_entry(type), MATMUL_PARAMS,
                       ptx_matmul_shared(type), out);
}
