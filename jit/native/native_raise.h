/* native_raise.h — inside native_raise.c, native_inner.c and native_fold.c: a loop whose trips become kernels. */
#ifndef WEFT_JIT_NATIVE_RAISE_H
#define WEFT_JIT_NATIVE_RAISE_H

#include "jit/lower/code.h"
#include "jit/native/native.h"

enum {
  TRIPS_LEAST = 32,   /* that are worth a call */
  FOLD_LEAST = 128,   /* that are worth the calls of a loop that only reduces */
  TRIPS_MOST = 8192,  /* between two polls */
  RAISE_TERMS = 6, RAISE_OUT = 2 * RAISE_TERMS + 2 /* terms of an access in the kernel */,
  RAISE_PLACES = 32, RAISE_PAIRS = 4, RAISE_WORDS = 48, RAISE_DEPTH = 6, RAISE_IFS = 4,
  RAISE_RANGES = 8, RAISE_STEPS = 64,
  RAISE_ARMS = 64,    /* statements in arms at most: both are computed */
  COEF_MOST = 4,      /* elements from trip to trip */
  RAISE_MADE = 32,
  RAISE_FOLDS = 6,    /* numbers that a loop carries */
  RAISE_REDUCED = 4,  /* kernels that reduce */
  INNER_MOST = 3,     /* loops inside of a loop whose trips run side by side */
  INNER_CARRIED = 5,  /* numbers and places that one of them carries */
  INNER_CALL = 512,   /* outer trips of a call that has such loops, */
  INNER_FOR = 16384,  /* of fewer trips than that; */
  INNER_TRIPS = 4096  /* of one whose trips are not known: a lane that takes as many has given up */
};

typedef struct Affine { /* coef * i + constant + terms */
  i64 coef, constant;
  LoopTerm terms[RAISE_TERMS];
  u32 count;
} Affine;

typedef struct Spot { /* a place that a trip looks at */
  u32 buffer;
  Affine at;
  u32 now;          /* its value, in the kernel */
  bool load, store;
  u32 stores_before; /* bits of the places that were stored to when it was loaded */
} Spot;

typedef struct Pair { /* two places that are the same, or lie some trips apart */
  u8 a, b;
  bool same; /* they may be the same */
} Pair;

typedef struct Within { /* an index that lies below a size in all trips, where it does in the first and the last */
  Affine at;
  u32 size;
} Within;

typedef struct Made { /* a kernel, and the numbers and buffers that it takes */
  LoopFn *fn;
  u32 own[RAISE_WORDS], there[RAISE_WORDS], words; /* in the function, in the kernel */
  bool reduces; /* the carried number `fold`, */
  u32 fold, to, best; /* into `to`, going by the number `best` where that is not 0: parameters of the kernel */
} Made;

typedef enum FoldKind {
  FOLD_NONE,
  FOLD_CHAIN,  /* carry `op` value; as it came in where there is no value */
  FOLD_BEATS,  /* is value `by` carry, and `also`: a condition */
  FOLD_LATCH,  /* `node` of the last trip in which value `by` rival (the first one that is best), and `also` */
  FOLD_FOLLOWS /* of what is carried: it follows from the index */
} FoldKind;

typedef struct Folded { /* what a value of the body is to a number that the loop carries */
  u8 kind, op, by;  /* FoldKind, LoopOps */
  bool picked;      /* CHAIN: by a comparison, `value by carry ? value : carry` */
  u32 carry, value; /* the latter: of the kernel */
  u32 also;         /* of the kernel: what must hold besides; 0: nothing */
  u32 rival;        /* LATCH: the carried number that is compared, + 1; 0: none */
  u32 node;         /* LATCH: of the function */
} Folded;

typedef struct Arms { /* an open `if` */
  u32 head, cond;
  Folded beats; /* instead of cond: a comparison with what is carried, or a truth value that is carried */
  u32 before[RAISE_PLACES], yes[RAISE_PLACES]; /* the places' values */
  u32 gives, other; /* its yield nodes */
  bool is_other;
} Arms;

typedef struct Inner { /* a loop inside of the loop */
  u32 loop, guard, head;  /* 0: none is open; of a `while` the `if` that goes on; in the kernel */
  u32 leave, trips;       /* of a `for` the `if` that leaves it; its trips, in the kernel */
  bool skips;             /* what that `if` computes, which comes behind the loop */
  u32 number[INNER_CARRIED], numbers; /* which of what it carries */
  u8 place[INNER_CARRIED];            /* spots that it stores to, */
  u32 places, counts;     /* so many; 1: its trips are counted behind these */
} Inner;

typedef enum InnerStep { INNER_OTHER, INNER_DONE, INNER_REFUSED } InnerStep;

typedef struct Raise {
  Native *n;
  LoopFn *fn, *kernel; /* kernel: the one in the making */
  Made work, ask, *made_of; /* what computes and stores; what checks alone; the one in the making */
  bool level64;     /* integers of 64 bits are divided */
  u32 *where, *end; /* per node: position in the body; of heads: of their END */
  u32 *map;         /* per node of fn: what it is in the kernel; 0: nothing yet */
  u32 nodes;        /* as long as these */
  const u32 *body;  /* as it was */
  u32 loop, poll, index; /* index: of the kernel */
  u32 made[RAISE_MADE], made_count; /* what was computed in front of the loop */
  Spot spots[RAISE_PLACES];
  u32 count;
  Pair pairs[RAISE_PAIRS];
  u32 pair_count;
  Arms arms[RAISE_IFS];
  Within ranges[RAISE_RANGES];
  u32 range_count, checks; /* the latter: by `ask` */
  u32 depth, in_arms;
  Folded *folded;             /* per node of fn */
  Folded folds[RAISE_FOLDS];  /* what the loop carries, once its NEXT was seen */
  u32 now[RAISE_FOLDS], next[RAISE_FOLDS]; /* what that is in front of a call, and behind it; 0: it follows */
  u32 beats[RAISE_FOLDS];     /* of those that are picked: another one is */
  Made reduced[RAISE_REDUCED];
  u32 carried, folding, reduced_count; /* folding: of the carried numbers, those that do not follow from the index */
  u32 one;                    /* a constant that is to be a parameter; 0 */
  u32 base;                   /* in a kernel that reduces: its first trip; else 0 */
  bool carries, loads;        /* raise_follows: what is carried, and elements that stay, are known as well */
  u64 most; /* trips that a call may take */
  Inner inner;
  u32 inners, inner_trips[INNER_MOST]; /* of a `for`: in front of the loop */
  bool lanes;       /* affine_add: an index is taken apart into what goes by the inner loop as well */
  bool gives_up;    /* a call of the kernel may have to be done again by the loop */
} Raise;

/* native_raise.c */
static inline const LoopNode *raise_node(const Raise *r, u32 id) { return loop_node(r->fn, id); }
/* Follows from what is known before the loop, and `counted`, from the index. */
bool raise_follows(const Raise *r, u32 id, bool counted, u32 depth);
u32 raise_value(Raise *r, u32 id, u32 index); /* what such a value is with this index, computed now */
u32 raise_operand(Raise *r, u32 id);          /* a value in the kernel; 0: it is none there */
bool raise_stores(const Raise *r, u32 buffer); /* does the loop? */
u32 raise_op(Raise *r, LoopOp op, u32 a, u32 b); /* in the function */
u32 raise_known(Raise *r, u32 id);             /* what the loop does not change, computed in front of it, once */
u32 raise_word(Raise *r, u32 id, LoopDir dir); /* the same in the kernel; of a buffer: as it is read, or written; 0 */
bool affine_of(Raise *r, const LoopNode *access, Affine *a);
u32 raise_terms(Raise *r, const Affine *a, LoopTerm *out); /* how many; UINT32_MAX: too much */
Spot *raise_spot(Raise *r, const LoopNode *access); /* the place of an access; NULL: it cannot be told */
bool raise_statement(Raise *r, u32 id);
bool raise_counts(Raise *r, const LoopNode *check); /* its index counts, and is asked about in front of the loop */
bool raise_look(Raise *r, Spot *s);            /* loads what lies there as the trip begins */
bool raise_gather(Raise *r, u32 id);           /* loads an element whose place the trip computes, and has checked */

/* native_inner.c: loops inside */
bool inner_wanted(const Raise *r, u32 loop);
InnerStep inner_statement(Raise *r, u32 id);
bool inner_may_repeat(const Raise *r);
u32 inner_few(Raise *r); /* in front of the loop: a condition of calls; 0: none */

/* native_fold.c: numbers that are carried and can be reduced in any order */
void fold_begin(Raise *r);                 /* a kernel in the making: its values are to be found */
const Folded *fold_of(const Raise *r, u32 id); /* NULL: it has nothing to do with what is carried */
bool fold_is_carry(const Folded *f);       /* as it came in; of NULL: false */
bool fold_statement(Raise *r, u32 id);     /* an operation on such values */
/* `cond ? yes : no`, of which one is such a value; `beats`: the condition, where cond is 0 */
bool fold_select(Raise *r, u32 out, u32 cond, const Folded *beats, u32 yes, u32 no);
bool fold_next(Raise *r, const LoopNode *next); /* what is carried to the next trip */
u32 fold_head(Raise *r, Made *made);       /* opens a kernel that reduces: its loop; 0: it cannot be */
bool fold_end(Raise *r, Made *made, u32 loop);
bool fold_plan(Raise *r);                  /* which kernels reduce; false: too many */
/* Calls of these kernels for trips from .. to - 1, in the function: r->now becomes r->next. First of chains: a
 * condition is given under which the calls cannot tell, or 0; then of latches. */
u32 fold_chains(Raise *r, u32 from, u32 to);
void fold_latches(Raise *r, u32 from, u32 to);

#endif
