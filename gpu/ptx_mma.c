/* ptx_mma.c — products of matrices of f16 or bf16 as PTX, on tensor cores: `mma.sync` with sums in f32 (sm_80 and up).
 *
 * A block of threads makes a tile of the result. It goes along the inner axis by MMA_STEP elements: the parts of both
 * operands that the tile needs are copied to shared memory without a way through registers (`cp.async`), MMA_STAGES - 1
 * parts ahead of the one that is multiplied. Warps make 64 times 64 elements each of a large tile, 32 times 32 of a
 * small one; `ldmatrix` gives them the fragments that `mma.sync.m16n8k16` takes.
 *
 * An operand lies along the inner axis, or across it (transposed): its rows of 16-byte pieces go to shared memory as
 * they are, and `ldmatrix.trans` turns what lies across. Rows of shared memory are 16 bytes longer than what they hold,
 * so that eight of them begin in different banks. What lies outside of an operand is filled with zeros.
 * The result goes by way of shared memory, so that warps store whole lines of it.
 *
 * The order of the sums is the tensor core's; it does not depend on the grid. Each sum is rounded once more, to the
 * dtype of the result. */
#include "gpu/matmul.h"
#include "gpu/ptx_writer.h"

#include <stdio.h>

enum { STEP = MMA_STEP, STAGES = MMA_STAGES, PAD = 16, PIECE = 8 /* elements of 16 bytes */, LOADS = 4, MOST = 8 };

typedef struct Tile {
  u32 side[2], warps[2]; /* rows, columns */
} Tile;

static const Tile tiles[] = {[MMA_LARGE] = {{128, 256}, {2, 4}}, [MMA_SMALL] = {{64, 64}, {2, 2}}};

/* One operand; `across` is its axis that the result has, too. */
typedef struct Side {
  u32 row, bytes;    /* of a row of shared memory, of a part */
  u32 per, loads;    /* rows from one of the thread's pieces to the next; how many pieces */
  Opnd at, next;     /* u64: the address of its first piece; bytes to the next */
  Opnd ahead;        /* u64: … from part to part */
  Opnd put, get;     /* u32: where its first piece, and its first fragment, lie in a part */
  Opnd place;        /* u32: along the inner axis, from the part's first element */
  Opnd most[LOADS];  /* u32: bytes of each piece that lie in the operand, as far as the other axis goes */
} Side;

typedef struct Mma {
  PtxWriter *w;
  MmaKind kind;
  const Tile *t;
  u32 threads, stage; /* of the block; bytes of a stage */
  u32 across[2];      /* of a warp: rows, columns */
  Opnd thread, lane, count[3], first[2], warp[2], batch, home;
  Opnd begin, fill, use; /* the part that is copied next; where it goes, and where the one at work lies */
  Side s[2];
  Opnd sum[MOST][MOST][4];
} Mma;

static Opnd put2(PtxWriter *w, const char *ins, Opnd a, Opnd b) {
  Opnd v = ptx_new(w, REG_R);
  INS(w, ins, v, a, b);
  return v;
}

static Opnd times_add(PtxWriter *w, Opnd a, u32 b, Opnd c) {
  Opnd v = ptx_new(w, REG_R);
  INS(w, "mad.lo.u32", v, a, ptx_u32(b), c);
  return v;
}

static Opnd wide_of(PtxWriter *w, Opnd v) {
  Opnd r = ptx_new(w, REG_RD);
  INS(w, "cvt.u64.u32", r, v);
  return r;
}

static u32 log_of(u32 v) { return 31 - (u32)__builtin_clz(v); }

/* Bytes of 0 … 8 elements, as many as `left` (s32) says. */
static Opnd bytes_of(PtxWriter *w, Opnd left) {
  Opnd v = put2(w, "max.s32", left, ptx_u32(0));
  v = put2(w, "min.s32", v, ptx_u32(PIECE));
  return put2(w, "shl.b32", v, ptx_u32(1));
}

/* Where the thread's fragments begin: the row that it names to ldmatrix, and the piece in that. */
static void mma_fragments(Mma *p, u32 which) {
  PtxWriter *w = p->w;
  Side *s = &p->s[which];
  bool across = p->kind.across[which];
  Opnd row, piece;
  if (across != (which == 1)) { /* matrices one below the other go first along the pieces */
    row = put2(w, "add.u32", ptx_bits(w, p->lane, 0, 7), put2(w, "shl.b32", ptx_bits(w, p->lane, 4, 1), ptx_u32(3)));
    piece = ptx_bits(w, p->lane, 3, 1);
  } else {
    row = ptx_bits(w, p->lane, 0, 15);
    piece = ptx_bits(w, p->lane, 4, 1);
  }
  s->get = times_add(w, piece, 16, which ? put2(w, "add.u32", p->home, ptx_u32(p->s[0].bytes)) : p->home);
  if (across) s->get = times_add(w, p->warp[which], 2, s->get);
  else row = put2(w, "add.u32", row, p->warp[which]);
  s->get = times_add(w, row, s->row, s->get);
}

/* The row that a thread copies where rows have four pieces: eight threads one after the other have rows r and r + 4,
 * which lie half of 128 bytes apart in shared memory and so in different banks. */
static Opnd row_of(Mma *p) {
  PtxWriter *w = p->w;
  _Static_assert(STEP / PIECE == 4 && 4 * (2 * STEP + PAD) % 128 == 64, "rows of four pieces");
  Opnd low = ptx_bits(w, p->thread, 3, 3), middle = ptx_bits(w, p->thread, 2, 1), high = ptx_bits(w, p->thread, 5, 7);
  return times_add(w, high, 8, times_add(w, middle, 4, low));
}

/* Operand `which`: the thread's pieces, in memory and in a part. */
static void mma_side(Mma *p, u32 which) {
  PtxWriter *w = p->w;
  Side *s = &p->s[which];
  bool across = p->kind.across[which];
  u32 side = p->t->side[which], pieces = (across ? side : STEP) / PIECE;
  s->per = p->threads / pieces;
  s->loads = side * STEP / PIECE / p->threads;
  Opnd base = ptx_parameter(w, "u64", which, REG_RD), lead = ptx_parameter(w, "u64", 6 + 2 * which + across, REG_RD),
       apart = ptx_parameter(w, "u64", 10 + which, REG_RD);
  Opnd row = ptx_bits(w, p->thread, log_of(pieces), p->threads / pieces - 1),
       piece = ptx_bits(w, p->thread, 0, pieces - 1);
  if (!across) row = row_of(p);
  Opnd element = put2(w, "shl.b32", piece, ptx_u32(3)), offset = ptx_new(w, REG_RD);
  INS(w, "cvta.to.global.u64", base, base);
  INS(w, "mul.lo.u64", apart, apart, wide_of(w, p->batch));
  s->at = ptx_new(w, REG_RD);
  s->next = ptx_new(w, REG_RD);
  s->ahead = ptx_number(2 * STEP);
  INS(w, "mad.lo.u64", offset, wide_of(w, across ? row : put2(w, "add.u32", p->first[which], row)), lead, apart);
  INS(w, "add.s64", offset, offset, wide_of(w, across ? put2(w, "add.u32", p->first[which], element) : element));
  INS(w, "mad.lo.u64", s->at, offset, ptx_number(2), base);
  INS(w, "mul.lo.u64", s->next, lead, ptx_number(2 * s->per));
  if (across) {
    s->ahead = ptx_new(w, REG_RD);
    INS(w, "mul.lo.u64", s->ahead, lead, ptx_number(2 * STEP));
  }
  s->put = times_add(w, piece, 16, which ? put2(w, "add.u32", p->home, ptx_u32(p->s[0].bytes)) : p->home);
  s->put = times_add(w, row, s->row, s->put);
  s->place = across ? row : element;
  Opnd start = across ? put2(w, "add.u32", p->first[which], element) : put2(w, "add.u32", p->first[which], row);
  for (u32 r = 0; r < s->loads; r++) {
    if (across) {
      s->most[r] = r ? s->most[0] : bytes_of(w, put2(w, "sub.s32", p->count[which], start));
      continue;
    }
    Opnd in = ptx_new(w, REG_P);
    INS(w, "setp.lt.u32", in, put2(w, "add.u32", start, ptx_u32(r * s->per)), p->count[which]);
    s->most[r] = ptx_new(w, REG_R);
    INS(w, "selp.u32", s->most[r], ptx_u32(16), ptx_u32(0), in);
  }
  mma_fragments(p, which);
}

/* Copies the part at p->begin to p->fill; behind the inner axis' end nothing but the group is left. */
static void mma_copies(Mma *p, const char *label) {
  PtxWriter *w = p->w;
  Opnd more = ptx_new(w, REG_P);
  INS(w, "setp.lt.u32", more, p->begin, p->count[2]);
  ptx_line(w, "@!%s bra %s;", ptx_text(more).s, label);
  for (u32 which = 0; which < 2; which++) {
    Side *s = &p->s[which];
    Opnd to = put2(w, "add.u32", s->put, p->fill), at = s->at, left = ptx_new(w, REG_R);
    INS(w, "sub.s32", left, p->count[2], put2(w, "add.u32", p->begin, s->place));
    Opnd bytes = p->kind.across[which] ? left : bytes_of(w, left);
    for (u32 r = 0; r < s->loads; r++) {
      Opnd own = ptx_new(w, REG_R);
      if (p->kind.across[which]) {
        Opnd in = ptx_new(w, REG_P);
        INS(w, "setp.gt.s32", in, left, ptx_u32(r * s->per));
        INS(w, "selp.u32", own, s->most[r], ptx_u32(0), in);
      } else {
        INS(w, "min.u32", own, bytes, s->most[r]);
      }
      if (r) {
        Opnd next = ptx_new(w, REG_RD);
        INS(w, "add.s64", next, at, s->next);
        at = next;
      }
      ptx_line(w, "cp.async.cg.shared.global [%s+%u], [%s], 16, %s;", ptx_text(to).s, r * s->per * s->row,
               ptx_text(at).s, ptx_text(own).s);
    }
    INS(w, "add.s64", s->at, s->at, s->ahead);
  }
  ptx_label(w, "%s", label);
  ptx_line(w, "cp.async.commit_group;");
  INS(w, "add.u32", p->begin, p->begin, ptx_u32(STEP));
}

/* The next stage of the ring. */
static void put_turn(Mma *p, Opnd stage) {
  PtxWriter *w = p->w;
  Opnd last = ptx_new(w, REG_P);
  INS(w, "setp.eq.u32", last, stage, ptx_u32((STAGES - 1) * p->stage));
  INS(w, "add.u32", stage, stage, ptx_u32(p->stage));
  INS(w, "selp.u32", stage, ptx_in_register(w, ptx_u32(0)), stage, last);
}

/* Four matrices of 8 times 8: rows or columns 16 * group … of the warp, inner elements 16 * half …. */
static void get_fragment(Mma *p, u32 which, Opnd at, u32 group, u32 half, const Opnd *v) {
  const Side *s = &p->s[which];
  bool across = p->kind.across[which];
  u32 offset = across ? group * 32 + half * 16 * s->row : group * 16 * s->row + half * 32;
  ptx_line(p->w, "ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 {%s, %s, %s, %s}, [%s+%u];", across ? ".trans" : "",
           ptx_text(v[0]).s, ptx_text(v[1]).s, ptx_text(v[2]).s, ptx_text(v[3]).s, ptx_text(at).s, offset);
}

static void mma_sums(Mma *p) {
  PtxWriter *w = p->w;
  const char *type = p->kind.brain ? "bf16" : "f16";
  Opnd at[2] = {put2(w, "add.u32", p->s[0].get, p->use), put2(w, "add.u32", p->s[1].get, p->use)};
  u32 rows = p->across[0] / 16, pairs = p->across[1] / 16;
  for (u32 half = 0; half < STEP / 16; half++) {
    Opnd a[MOST][4], b[4];
    for (u32 i = 0; i < rows; i++) {
      for (u32 e = 0; e < 4; e++) a[i][e] = ptx_new(w, REG_R);
      get_fragment(p, 0, at[0], i, half, a[i]);
    }
    for (u32 j = 0; j < pairs; j++) {
      for (u32 e = 0; e < 4; e++) b[e] = ptx_new(w, REG_R);
      get_fragment(p, 1, at[1], j, half, b);
      for (u32 i = 0; i < rows; i++)
        for (u32 k = 0; k < 2; k++) {
          const Opnd *c = p->sum[i][2 * j + k];
          char sums[160];
          snprintf(sums, sizeof sums, "{%s, %s, %s, %s}", ptx_text(c[0]).s, ptx_text(c[1]).s, ptx_text(c[2]).s,
                   ptx_text(c[3]).s);
          ptx_line(w, "mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 %s, {%s, %s, %s, %s}, {%s, %s}, %s;", type, type,
                   sums, ptx_text(a[i][0]).s, ptx_text(a[i][1]).s, ptx_text(a[i][2]).s, ptx_text(a[i][3]).s,
                   ptx_text(b[2 * k]).s, ptx_text(b[2 * k + 1]).s, sums);
        }
    }
  }
}

/* The warp's part of the result goes to shared memory, rounded: a row of that begins in another bank than the seven
 * before it. *at: where the thread's first piece of 16 bytes lies. */
static void mma_rounded(Mma *p, Opnd *at) {
  PtxWriter *w = p->w;
  u32 row = 2 * p->across[1] + PAD, pieces = p->across[1] / PIECE;
  Opnd own = times_add(w, ptx_bits(w, p->thread, 5, p->threads / 32 - 1), p->across[0] * row, p->home);
  Opnd to = times_add(w, ptx_bits(w, p->lane, 2, 7), row, times_add(w, ptx_bits(w, p->lane, 0, 3), 4, own));
  *at = times_add(w, ptx_bits(w, p->lane, log_of(pieces), 32 / pieces - 1), row,
                  times_add(w, ptx_bits(w, p->lane, 0, pieces - 1), 16, own));
  ptx_line(w, "bar.sync 0;"); /* all are done with the last part */
  for (u32 i = 0; i < p->across[0] / 8; i++)
    for (u32 j = 0; j < p->across[1] / 8; j++) {
      const Opnd *c = &p->sum[i / 2][j][2 * (i % 2)];
      Opnd v = ptx_new(w, REG_R);
      INS(w, p->kind.brain ? "cvt.rn.bf16x2.f32" : "cvt.rn.f16x2.f32", v, c[1], c[0]); /* the upper half comes first */
      ptx_line(w, "st.shared.u32 [%s+%u], %s;", ptx_text(to).s, i * 8 * row + j * 16, ptx_text(v).s);
    }
  ptx_line(w, "bar.sync 0;");
}

/* Rows of the result, in pieces of 16 bytes; element by element where rows do not begin at a multiple of that. */
static void mma_results(Mma *p, Opnd from, bool pieces) {
  PtxWriter *w = p->w;
  u32 row = 2 * p->across[1] + PAD, count = p->across[1] / PIECE, step = 32 / count;
  Opnd to = ptx_parameter(w, "u64", 2, REG_RD), n = wide_of(w, p->count[1]), m = wide_of(w, p->count[0]),
       all = wide_of(w, p->batch), in[PIECE];
  Opnd column = times_add(w, ptx_bits(w, p->lane, 0, count - 1), PIECE, put2(w, "add.u32", p->first[1], p->warp[1]));
  Opnd first = put2(w, "add.u32", ptx_bits(w, p->lane, log_of(count), step - 1),
                    put2(w, "add.u32", p->first[0], p->warp[0]));
  INS(w, "cvta.to.global.u64", to, to);
  INS(w, "mul.lo.u64", all, all, m);
  for (u32 e = 0; e < (pieces ? 1 : PIECE); e++) {
    in[e] = ptx_new(w, REG_P);
    INS(w, "setp.lt.u32", in[e], put2(w, "add.u32", column, ptx_u32(e)), p->count[1]);
  }
  Opnd behind = wide_of(w, column);
  for (u32 i = 0; i < p->across[0]; i += step) {
    Opnd own = put2(w, "add.u32", first, ptx_u32(i)), at = wide_of(w, own), inside = ptx_new(w, REG_P), v[4];
    for (u32 e = 0; e < 4; e++) v[e] = ptx_new(w, REG_R);
    ptx_line(w, "ld.shared.v4.u32 {%s, %s, %s, %s}, [%s+%u];", ptx_text(v[0]).s, ptx_text(v[1]).s, ptx_text(v[2]).s,
             ptx_text(v[3]).s, ptx_text(from).s, i * row);
    INS(w, "setp.lt.u32", inside, own, p->count[0]);
    INS(w, "add.u64", at, at, all);
    INS(w, "mad.lo.u64", at, at, n, behind);
    INS(w, "mad.lo.u64", at, at, ptx_number(2), to);
    for (u32 e = 0; e < (pieces ? 1 : PIECE); e++) {
      Opnd both = ptx_new(w, REG_P), half = e % 2 ? put2(w, "shr.u32", v[e / 2], ptx_u32(16)) : v[e / 2];
      INS(w, "and.pred", both, inside, in[e]);
      if (pieces)
        ptx_line(w, "@%s st.global.v4.u32 [%s], {%s, %s, %s, %s};", ptx_text(both).s, ptx_text(at).s, ptx_text(v[0]).s,
                 ptx_text(v[1]).s, ptx_text(v[2]).s, ptx_text(v[3]).s);
      else
        ptx_line(w, "@%s st.global.u16 [%s+%u], %s;", ptx_text(both).s, ptx_text(at).s, 2 * e, ptx_text(half).s);
    }
  }
  ptx_line(w, "ret;");
}

/* Rows of the result in pieces of 16 bytes, as above, handed on to the kernel behind the product (ptx_epilogue.c). */
static void mma_handed_on(Mma *p, Opnd from) {
  PtxWriter *w = p->w;
  u32 row = 2 * p->across[1] + PAD, count = p->across[1] / PIECE, step = 32 / count;
  Opnd all = wide_of(w, p->batch), m = wide_of(w, p->count[0]), in = ptx_new(w, REG_P), inside = ptx_new(w, REG_P),
       more = ptx_new(w, REG_P), at = ptx_new(w, REG_R), number = ptx_new(w, REG_R), end = ptx_new(w, REG_R);
  Opnd column = times_add(w, ptx_bits(w, p->lane, 0, count - 1), PIECE, put2(w, "add.u32", p->first[1], p->warp[1]));
  INS(w, "add.u32", number, ptx_bits(w, p->lane, log_of(count), step - 1),
      put2(w, "add.u32", p->first[0], p->warp[0]));
  INS(w, "add.u32", end, number, ptx_u32(p->across[0]));
  INS(w, "mov.u32", at, from);
  INS(w, "mul.lo.u64", all, all, m);
  INS(w, "setp.lt.u32", in, column, p->count[1]);
  column = put2(w, "min.u32", column, put2(w, "sub.u32", p->count[1], ptx_u32(PIECE)));
  PtxElements x = {.width = wide_of(w, p->count[1]), .count = PIECE, .group = 4};
  for (u32 e = 0; e < PIECE; e++) x.columns[e] = wide_of(w, put2(w, "add.u32", column, ptx_u32(e)));
  ptx_put_params(w);
  ptx_label(w, "L_row");
  INS(w, "setp.lt.u32", inside, number, p->count[0]);
  x.row = ptx_new(w, REG_RD);
  INS(w, "add.u64", x.row, wide_of(w, put2(w, "min.u32", number, put2(w, "sub.u32", p->count[0], ptx_u32(1)))), all);
  x.guards[0] = ptx_new(w, REG_P);
  INS(w, "and.pred", x.guards[0], inside, in);
  for (u32 e = 0; e < PIECE; e++) {
    x.guards[e] = x.guards[0];
    x.sums[e] = ptx_new(w, REG_F);
    ptx_half_from_shared(w, p->kind.brain, at, 2 * e, x.sums[e]);
  }
  ptx_put_epilogue(w, &x);
  INS(w, "add.u32", at, at, ptx_u32(step * row));
  INS(w, "add.u32", number, number, ptx_u32(step));
  INS(w, "setp.lt.u32", more, number, end);
  ptx_line(w, "@%s bra L_row;", ptx_text(more).s);
}

/* Which tile the block makes, its operands, the sums at zero. */
static void mma_beginning(Mma *p) {
  PtxWriter *w = p->w;
  Opnd block = ptx_new(w, REG_R), tile[2];
  p->thread = ptx_new(w, REG_R);
  p->home = ptx_new(w, REG_R);
  ptx_line(w, "mov.u32 %s, %%tid.x;", ptx_text(p->thread).s);
  ptx_line(w, "mov.u32 %s, %%ctaid.x;", ptx_text(block).s);
  ptx_line(w, "mov.u32 %s, rows;", ptx_text(p->home).s);
  for (u32 i = 0; i < 3; i++) p->count[i] = ptx_parameter(w, "u32", 3 + i, REG_R);
  p->lane = ptx_bits(w, p->thread, 0, 31);
  Opnd along = put2(w, "div.u32", put2(w, "add.u32", p->count[1], ptx_u32(p->t->side[1] - 1)),
                    ptx_u32(p->t->side[1]));
  Opnd down = put2(w, "div.u32", put2(w, "add.u32", p->count[0], ptx_u32(p->t->side[0] - 1)), ptx_u32(p->t->side[0]));
  Opnd each = put2(w, "mul.lo.u32", along, down);
  p->batch = put2(w, "div.u32", block, each);
  block = put2(w, "rem.u32", block, each);
  tile[0] = put2(w, "div.u32", block, along);
  tile[1] = put2(w, "rem.u32", block, along);
  u32 log = log_of(p->t->warps[1]);
  for (u32 which = 0; which < 2; which++) {
    Side *s = &p->s[which];
    p->first[which] = put2(w, "mul.lo.u32", tile[which], ptx_u32(p->t->side[which]));
    p->across[which] = p->t->side[which] / p->t->warps[which];
    p->warp[which] = put2(w, "mul.lo.u32", ptx_bits(w, p->thread, which ? 5 : 5 + log, p->t->warps[which] - 1),
                          ptx_u32(p->across[which]));
    s->row = 2 * (p->kind.across[which] ? p->t->side[which] : STEP) + PAD;
    s->bytes = s->row * (p->kind.across[which] ? STEP : p->t->side[which]);
  }
  p->stage = p->s[0].bytes + p->s[1].bytes;
  mma_side(p, 0);
  mma_side(p, 1);
  for (u32 i = 0; i < p->across[0] / 16; i++)
    for (u32 j = 0; j < p->across[1] / 8; j++)
      for (u32 e = 0; e < 4; e++) {
        p->sum[i][j][e] = ptx_new(w, REG_F);
        ptx_move(w, LT_F32, p->sum[i][j][e], ptx_const(LT_F32, 0));
      }
  p->begin = ptx_in_register(w, ptx_u32(0));
  p->fill = ptx_in_register(w, ptx_u32(0));
  p->use = ptx_in_register(w, ptx_u32(0));
}

static void mma_product(Mma *p) {
  PtxWriter *w = p->w;
  Opnd done = ptx_in_register(w, ptx_u32(0)), more = ptx_new(w, REG_P), odd = ptx_new(w, REG_P), rounded;
  mma_beginning(p);
  for (u32 i = 0; i < STAGES - 1; i++) {
    char label[16];
    snprintf(label, sizeof label, "L_first%u", i);
    mma_copies(p, label);
    put_turn(p, p->fill);
  }
  ptx_label(w, "L_part");
  INS(w, "setp.lt.u32", more, done, p->count[2]);
  ptx_line(w, "@!%s bra L_end;", ptx_text(more).s);
  ptx_line(w, "cp.async.wait_group %u;", STAGES - 2); /* the part at work is there; all are done with the one before */
  ptx_line(w, "bar.sync 0;");
  mma_copies(p, "L_next");
  put_turn(p, p->fill);
  mma_sums(p);
  put_turn(p, p->use);
  INS(w, "add.u32", done, done, ptx_u32(STEP));
  ptx_line(w, "bra.uni L_part;");
  ptx_label(w, "L_end");
  mma_rounded(p, &rounded);
  if (w->epilogue) {
    mma_handed_on(p, rounded);
    return;
  }
  INS(w, "setp.ne.u32", odd, ptx_bits(w, p->count[1], 0, PIECE - 1), ptx_u32(0));
  ptx_line(w, "@%s bra L_odd;", ptx_text(odd).s);
  mma_results(p, rounded, true);
  ptx_label(w, "L_odd");
  mma_results(p, rounded, false);
}

u32 mma_threads(u32 tile) { return 32 * tiles[tile].warps[0] * tiles[tile].warps[1]; }
void mma_sides(u32 tile, u64 *rows, u64 *columns) { *rows = tiles[tile].side[0], *columns = tiles[tile].side[1]; }

u32 mma_shared(MmaKind kind) {
  u32 bytes = 0;
  for (u32 which = 0; which < 2; which++) {
    u32 side = tiles[kind.tile].side[which];
    bytes += kind.across[which] ? (2 * side + PAD) * STEP : (2 * STEP + PAD) * side;
  }
  u32 result = tiles[kind.tile].side[0] * (2 * tiles[kind.tile].side[1] + PAD * tiles[kind.tile].warps[1]);
  return bytes * STAGES > result ? bytes * STAGES : result;
}

void ptx_put_mma(PtxWriter *w, u32 number) {
  MmaKind kind = mma_kind(number);
  Mma p = {.w = w, .kind = kind, .t = &tiles[kind.tile], .threads = mma_threads(kind.tile)};
  mma_product(&p);
}

WeftStatus mma_ptx(MmaKind kind, Buf *out) {
  PtxWriter w = {.alloc = out->alloc, .out = out, .tensor = true};
  buf_init(&w.body, out->alloc);
  ptx_put_mma(&w, mma_number(kind));
  return ptx_one_entry(&w, "each tile is made by a block of threads, on tensor cores", "mma", MATMUL_PARAMS, 0, out);
}

/* Rows of 16-bit elements with any strides, one behind the other, each filled up with zeros to `lead` elements. */
WeftStatus mma_pack_ptx(Buf *out) {
  PtxWriter writer = {.alloc = out->alloc, .out = out}, *w = &writer;
  buf_init(&w->body, out->alloc);
  Opnd from = ptx_parameter(w, "u64", 0, REG_RD), to = ptx_parameter(w, "u64", 1, REG_RD),
       total = ptx_parameter(w, "u32", 2, REG_R), rows = ptx_parameter(w, "u32", 3, REG_R),
       inner = ptx_parameter(w, "u32", 4, REG_R), lead = ptx_parameter(w, "u32", 5, REG_R), stride[3],
       at[3], e = ptx_new(w, REG_R), step = ptx_new(w, REG_R), thread = ptx_new(w, REG_R),
       value = ptx_new(w, REG_R), there = ptx_new(w, REG_P), more = ptx_new(w, REG_P), source = ptx_new(w, REG_RD),
       target = ptx_new(w, REG_RD);
  for (u32 i = 0; i < 3; i++) stride[i] = ptx_parameter(w, "u64", 6 + i, REG_RD);
  INS(w, "cvta.to.global.u64", from, from);
  INS(w, "cvta.to.global.u64", to, to);
  ptx_line(w, "mov.u32 %s, %%tid.x;", ptx_text(thread).s);
  ptx_line(w, "mov.u32 %s, %%ctaid.x;", ptx_text(e).s);
  ptx_line(w, "mov.u32 %s, %%nctaid.x;", ptx_text(step).s);
  INS(w, "mad.lo.u32", e, e, ptx_u32(DEVICE_BLOCK), thread);
  INS(w, "mul.lo.u32", step, step, ptx_u32(DEVICE_BLOCK));
  ptx_label(w, "L_next");
  INS(w, "setp.lt.u32", more, e, total);
  ptx_line(w, "@!%s bra L_end;", ptx_text(more).s);
  at[0] = put2(w, "rem.u32", e, lead);
  at[1] = put2(w, "div.u32", e, lead);
  at[2] = put2(w, "div.u32", at[1], rows);
  at[1] = put2(w, "rem.u32", at[1], rows);
  INS(w, "setp.lt.u32", there, at[0], inner);
  INS(w, "mul.lo.u64", source, wide_of(w, at[0]), stride[0]);
  INS(w, "mad.lo.u64", source, wide_of(w, at[1]), stride[1], source);
  INS(w, "mad.lo.u64", source, wide_of(w, at[2]), stride[2], source);
  INS(w, "mad.lo.u64", source, source, ptx_number(2), from);
  INS(w, "mad.lo.u64", target, wide_of(w, e), ptx_number(2), to);
  INS(w, "mov.u32", value, ptx_u32(0));
  ptx_line(w, "@%s ld.global.u16 %s, [%s];", ptx_text(there).s, ptx_text(value).s, ptx_text(source).s);
  ptx_line(w, "st.global.u16 [%s], %s;", ptx_text(target).s, ptx_text(value).s);
  INS(w, "add.u32", e, e, step);
  ptx_line(w, "bra.uni L_next;");
  ptx_label(w, "L_end");
  ptx_line(w, "ret;");
  return ptx_one_entry(w, "rows of halves, each filled up with zeros", "mma_pack", MMA_PACK_PARAMS, 0, out);
}
