/* record.h — the recorder: runs bytecode on abstract values and leaves a graph. Executes nothing, so it can
 * speculate and roll back. What hop/ needs to record the bodies of constructs stands here too.
 *
 *   tier.c: a site is hot ─▶ record_start ─▶ rec_run (record.c: one step per instruction)
 *        operators, array operations  record_ops.c, record_parts.c    comparisons of trees, texts  record_compare.c
 *        fields, indices, unpacking   record_data.c                   ranges                       repr_range.c
 *        if                           record_branch.c while, for record_flow.c, record_carry.c
 *        calls, inlined               record_call.c                   functions that recur         record_recur.c
 *        return out of a loop         record_return.c                 numbers weak on one way      record_weak.c
 *        lists that grow, texts       repr_columns.c, repr_columns_use.c   texts as numbers             repr_names.c
 *        records by character         repr_keyed.c                  parts of texts               repr_slice.c
 *        nil, or a value              repr_option.c what is written record_cells.c, record_effects.c
 *        trees of the program         record_tree.c
 *        exits                        record_exit.c                   calls on types alone         abstract.c
 *        sizes known at run time      record_sizes.c
 *
 * Steps are atomic: one that cannot be captured leaves the state as it was before it (OUT_STUCK). */
#ifndef WEFT_TRACER_RECORD_H
#define WEFT_TRACER_RECORD_H

#include "tracer/record/absval.h"

typedef enum Outcome {
  OUT_GO,     /* the step is done */
  OUT_END,    /* the scope's end was reached */
  OUT_NEXT,   /* back-edge of the loop being lifted */
  OUT_LEAVE,  /* jump to the end of the loop being lifted */
  OUT_RETURN, /* the scope's frame returns `rec->ret`; the frame still stands */
  OUT_ENDED,  /* the current block can go no further: every way out of it was taken */
  OUT_STUCK,  /* the instruction at the top frame's pc cannot be captured: rec->why */
  OUT_FAIL,   /* memory was refused or the budget is used up: give the whole trace up */
} Outcome;

typedef struct RecFrame {
  Code *code;
  u32 pc;
  u32 graph_frame; /* Graph.frames */
  u16 result;      /* register of the frame below that takes the result */
  u32 tail_calls;
  Av fn;           /* the function that runs; 0: a module body or the root */
  Av *regs;        /* code->proto->nregs, heap */
  SourceKind root; /* frame 0: SRC_arg or SRC_reg */
} RecFrame;

/* A module variable or the content of a ref. */
typedef struct RecCell {
  SourceId source;       /* the global, or the content of a ref; 0: a ref that the trace made */
  struct Module *module; /* global */
  u32 slot;
  Av value;
  Av first;   /* as it was on entry, perhaps not read yet */
  bool dirty; /* written by the trace */
  bool open;  /* its recipe is being made */
  RecipeId made; /* for exit number `exit` of the trace */
  u64 exit;
} RecCell;
typedef struct RecPrior RecPrior; /* how a loop was lifted before (record_prior.c) */

/* What a loop carries: a register of its frame, or a cell. */
typedef struct RecLoc {
  bool cell;
  u32 index;      /* register, or Recorder.cells */
  Av before;      /* value at the loop's entry: the tree that must stay */
  Av head;        /* in the body, before its first instruction */
  u32 first, count; /* leaves in RecLoop.types */
  u8 rows;          /* 1: a list that lies in columns in the loop; 2: it was tried, its items are not of one kind */
  bool option;      /* nil or a value in the loop (repr_option.c) */
  bool queue;       /* it is cut off at its head in the loop (repr_queue.c) */
  bool names;       /* its texts are numbers in the loop (repr_names.c) */
  bool kind_known;
  /* a list that grows where nothing can be left (repr_columns_room.c): so; room for `room` more was made before the
   * loop; that many are added whatever happens, so that there are `total` behind it, if that is a size */
  bool grows, sized, always;
  Dim room, total;
  u16 entered;      /* what stood there when it came to the loop's variables: AvKind, and ValueKind */
  u8 depth, path[3]; /* of a list inside of it (record_inner.c): the items on the way */
  Value kind;       /* of its items, kept by the recorder */
} RecLoc;

/* What a loop returns from the function: one number, or a list or record of numbers, or a constant. */
typedef struct RecReturn {
  bool asked; /* the loop returns */
  u8 kind;    /* AvKind: a list or record of numbers, or a constant; 0: a number */
  u32 count;
  ArrayType types[8];
  /* an array that the loop carries anyhow: RecLoop.locs + 1, and which leaf of it; 0: it is carried besides, … */
  u32 loc[8], leaf[8];
  u32 besides;         /* … and stays so: returns did not agree */
  struct Shape *shape;
  Value konst; /* held by r->kept */
} RecReturn;

/* How a cell is found again once it was rolled back: the steps of its source, innermost first; none: made by the
 * trace. */
typedef struct RecCellStep {
  u8 kind; /* SourceKind */
  u32 index;
  struct Module *module; /* global */
} RecCellStep;

typedef struct RecCellPath {
  u32 cell, count;
  RecCellStep steps[8];
} RecCellPath;

/* The stack of lists of the function that calls itself whose body is recorded (repr_stacked.c). */
typedef struct RecLists {
  u32 cell, given_count;
  Av base;      /* where the own part of the present call begins; 0: there is no stack */
  Av given[16]; /* lists that the call was given */
} RecLists;
enum { CELL_SET_MAX = 8 }; /* not a threshold: room in RecCellSet */

/* Cells that the body of a construct writes: carried beside its state. */
typedef struct RecCellSet {
  u32 count;
  u32 cells[CELL_SET_MAX];
  RecCellPath paths[CELL_SET_MAX];
  Av *before; /* contents of all cells before the body, heap */
  u32 before_count;
} RecCellSet;

/* How a loop carries a number: as its type says; strong, with a flag that says whether it is weak; strong, and weak
 * in the first trip alone, which its position tells; as its type says, for that was tried. */
enum { CARRY_plain, CARRY_flag, CARRY_first, CARRY_not_first };

typedef struct RecLoop {
  struct RecLoop *outer;
  u32 depth, extent;
  u32 els, end;   /* pcs of its back-edge and behind it */
  u32 made_before; /* cells that stood before its body */
  VEC(RecLoc) locs;
  RecLoc inner[8];   /* lists inside of these that lie in columns */
  u32 inner_count;
  VEC(TypeId) types; /* of the carried leaves */
  BlockId body;
  u32 sizes_before;  /* size expressions that stood before the loop */
  RecReturn ret;
  u32 ret_at;        /* in types: the flag, behind it what is returned */
  VEC(u8) weak;      /* for each: CARRY_*; the flags of numbers that may be weak or strong stand … */
  u32 flag_at;       /* … from here on in types */
  /* for each that is weak in the first trip alone: whether it is, when that is not certain; else 0 */
  VEC(ValueId) was;
  VEC(u32) free;     /* for each, the axes whose sizes change from trip to trip */
  bool peeled;       /* the first trip stands before it */
  u32 few;           /* 1 + its trips, where they are few and known: it can be recorded trip by trip instead; else 0 */
  bool test_inside;  /* its condition writes: it stands in the body, which breaks */
  /* its condition is the constant true, and nothing breaks: it ends by returning from the function */
  bool endless;
  u32 look;          /* steps of its body until rec_look_ahead; 0: it was, or is not to be */
  /* for each, its dtype, whether it is an array, and whether it may be weak, when it was tried first */
  VEC(u8) entry;
  const RecPrior *prior; /* how it was lifted before; NULL: it comes for the first time */
} RecLoop;

typedef struct Scope {
  u32 depth;  /* frame index that the scope belongs to */
  u32 end;    /* pc in that frame where it ends; UINT32_MAX: only by returning */
  u32 cond_exit; /* while condition: a jump to this pc ends it, the condition is rec->cond; else UINT32_MAX */
} Scope;

typedef struct RecStraight { /* loops that are recorded trip by trip */
  u32 depth;
  u32 extent;
  bool peeled; /* once, because types change after the first trip */
  bool hopeless;
  bool unrolled; /* to its end: its trips are few and known */
  char why[160];
} RecStraight;

/* an unbacked symbol, and the block where it was first spoken of: what is said of it holds there */
typedef struct RecAnchor {
  u32 sym;
  BlockId block;
} RecAnchor;

typedef struct RecMask { /* a mask and its places: results of one node */
  ValueId mask;
  NodeId node;
} RecMask;

typedef struct RecPosition { /* of a loop over what has items: never negative */
  ValueId value;
  Dim bound; /* less than that, in the loop's body; DIM_NONE: not known */
} RecPosition;

typedef struct RecDynamic { /* a size that must not be fixed */
  Dim size;
  u32 mark; /* Demand.marks */
} RecDynamic;

typedef struct RecWeak { /* a number, and the bool that says whether it is weak */
  ValueId value, flag;
  ValueId position; /* not 0: it is weak as long as this is 0, in the first trip of `loop`, … */
  ValueId before;   /* … and, unless this is 0, what says whether it was before the loop is true */
  struct RecLoop *loop;
} RecWeak;

typedef struct RecFact { /* a bool that is known in a block, and in those inside of it */
  ValueId value;
  BlockId block;
  bool is;
} RecFact;

typedef struct RecLive { /* liveness of a function that the trace runs, solved once */
  const Proto *proto;
  Liveness *live;
} RecLive;

/* What a test asks for (force.h). */
typedef enum ForceKind { FORCE_nothing, FORCE_exits, FORCE_misses, FORCE_checks, FORCE_rollback, FORCE_endless,
                         FORCE_wrong } ForceKind;

typedef struct Force {
  u8 kind; /* ForceKind */
  u32 at;  /* which one, counted from 1; 0: now this, now that */
} Force;

typedef struct Recorder {
  Vm *vm;
  Graph *g;
  Frame *origin; /* the live frame: sources are read through it */
  VEC(AbsVal) avs;      /* entry 0: none */
  VEC(Av) items;
  VEC(Av) source_av;    /* per SourceId: what was read, 0 not yet */
  VEC(SourceId) trail;  /* sources read, in order: undone by rollback */
  VEC(Value) kept;      /* counts held until the end */
  const struct Tracer *tracer;
  VEC(RecFrame) frames;
  VEC(RecCell) cells;
  u64 exit_number; /* exits made so far, counted from 1 */
  VEC(RecStraight) straight;
  RecPrior *priors;     /* loops that were lifted, whether or not that was rolled back */
  VEC(RecMask) masks;
  VEC(RecLive) live;    /* of all functions met so far: rollback keeps it */
  VEC(RecWeak) weaks;
  VEC(RecFact) facts;
  bool options;         /* there are values that may be nil */
  VEC(RecAnchor) anchored;
  VEC(RecPosition) positions;
  VEC(RecDynamic) dynamic;
  RecLoop *loop;        /* innermost loop being lifted */
  u32 safe_exit;        /* where failed checks of the current block go; UINT32_MAX: not made yet */
  bool updated;         /* an array was updated since safe_exit: going back there would keep its old version */
  NodeId written;       /* the last update, until the next instruction begins */
  u32 ins_depth;        /* frames when the instruction in progress began */
  u64 effects, ins_effects; /* cells written, now and when it began */
  u32 no_exits;         /* > 0: inside the body of an explicit construct: cold exits are not allowed */
  bool tokens;          /* cell 0 holds the effect token */
  bool wants_tokens;    /* an effect was met without: the trace begins anew */
  Dim unanchored[8];    /* sizes of what a host function gave, until a check may stand behind it */
  u32 unanchored_count;
  Av settled;           /* the token as it was when safe_exit was made */
  u32 prints;           /* > 0: output may be an effect node: inside a construct that is recorded as it runs */
  Av ret;
  ValueId cond;
  u16 reason;           /* reasons.def, of OUT_STUCK */
  char why[160];
  Span why_span;
  u32 steps;
  u32 nest;             /* C recursion */
  bool pulls;           /* a pullback was recorded: it cannot leave the trace */
  bool no_pulls;        /* so vjp is a break */
  u32 repeats;          /* > 0: inside the body of a construct that runs it again and again */
  bool lanes;           /* some scan of the graph is over lanes (GraphNode.lanes) */
  u32 differentiating;  /* > 0: inside a function whose derivative is recorded */
  u32 lane_deep;        /* > 0: inside a function that is recorded for one lane */
  bool abstract;        /* for types alone: output is passed over, tracked values count as what they stand for */
  bool stop_after_loop; /* the region is a loop: it ends behind it */
  u32 root_extent;
  bool noted_types;     /* a carried type changed: the loop is tried again behind its first trip */
  bool back_edge;       /* the last step was a `loop` */
  bool arm_is_cold;     /* of the branch that was recorded last */
  bool by_sizes;        /* the same: it is decided by a guard on sizes instead */
  RecLoop *widens;      /* a loop in which more sizes change than `free` says: tried again */
  RecLoop *lacks;       /* a loop that has to carry `lacks_cell` as well */
  RecCellPath lacks_cell;
  bool lacks_return;    /* not a cell, but what it returns */
  ValueId powers;       /* of ten, if it is still there (repr_digits.c) */
  RecLoc *lacks_rows;   /* of `lacks`: what has to lie in columns there */
  u32 lifted_loops, lifted_ifs, cold_exits;
  u32 batched; /* calls of a vmapped function, each of which the interpreter makes lane by lane */
  /* a cold arm in a loop, before which none is complete, is taken so often that the loop is left on its first trips */
  bool left_early;
  /* of 16 times that the program came to a cold arm's branch of late, the times it took the arm; the most of all
   * arms */
  u32 left_often;
  Force force;
  struct RecRecur *recur; /* the function whose body is recorded once, for all its calls of itself */
  RecLists stack;
  VEC(Code *) no_recur;   /* for which that did not work out; rollback keeps it */
  const Code *force_code; /* where the trace is made to end, NULL: not met yet */
  u32 force_pc, trials;
  bool failed;
} Recorder;

static inline RecFrame *rec_top(Recorder *r) { return &r->frames.data[r->frames.count - 1]; }

/* Where the instruction stands that is being recorded. */
static inline Span rec_here(const Recorder *r) {
  const RecFrame *f = &r->frames.data[r->frames.count - 1];
  return f->code->proto->spans[f->pc];
}

/* What a step ends with: *out is a; 0: memory was refused. */
/* Stuck, where it is a value of too many parts. Asked before the instruction that makes it has written anything. */
Outcome rec_fits(Recorder *r, Av a);
static inline Outcome rec_made(const Recorder *r, Av a, Av *out) {
  *out = a;
  return a && !r->failed ? OUT_GO : OUT_FAIL;
}
static inline u32 rec_depth(const Recorder *r) { return r->frames.count - 1; }
static inline AbsVal *av_at(const Recorder *r, Av a) { return &r->avs.data[a]; }
static inline Av av_item(const Recorder *r, Av a, u32 i) { return r->items.data[av_at(r, a)->first + i]; }
typedef VEC(ValueId) ValueVec;
typedef VEC(Av) AvVec;

/* ---- speculation ---- */
typedef struct RecMark {
  GraphMark graph;
  u32 avs, items, sources, trail, cells, straight, frames, masks, anchored, positions, weaks, dynamic, facts;
  u32 safe_exit;
  Av settled;
  u32 lifted_loops, lifted_ifs, cold_exits, left_often, batched;
  bool left_early;
  NodeId written;
  RecLoop *loop;
} RecMark;

typedef struct RecState { /* registers of the top frame and all cells */
  u32 depth, pc, tail_calls, nregs, ncells, safe_exit;
  bool updated;
  Av settled;
  Av *regs;
  RecCell *cells;
} RecState;

enum { HOST_random_key, HOST_random_counter }; /* ids of `host` sources */

/* The body of a construct: find what it is known to write, save, carry rec_cells_with(tree), enter with the
 * parameters, run, grow (then undo and try again), carry on rec_cells_with(result); take from the results behind
 * it. What rec_cells_with gives is a list marked BESIDE_CELLS: its first item is a tree of the program, the others
 * are carried as loops carry variables. */
enum { BESIDE_CELLS = 1 }; /* AbsVal.op of a list */

/* ---- constructs (hop/) ---- */
typedef Outcome (*ConstructFn)(Recorder *r, u32 op, const Av *params, Av *out);
typedef Outcome (*TraceTransformFn)(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out);

/* ---- whole traces ---- */
/* Records from `frame` as it stands (pc 0: entry; else a loop head or continuation). The graph is owned by the
 * caller. NULL: nothing worth having (rec->why says why, in `why`). */
typedef struct RecordResult {
  Graph *graph;
  bool broke;      /* ends in a graph break */
  u16 reason;
  Span span;       /* of the break */
  char why[160];
  bool failed;     /* memory or budget */
  bool raised;     /* an error stands in the VM */
  u32 lifted_loops, cold_exits, left_often;
  bool left_early; /* as a break does, on the first trips of its first loop */
} RecordResult;

typedef enum RecordStart { RECORD_ENTRY, RECORD_LOOP, RECORD_RESUME } RecordStart;

/* ---- calls on types alone (abstract.c) ---- */
typedef struct AbstractCall {
  bool known;    /* result says what f gives */
  Value result;  /* owned: the tree, zeros in its leaves; a hole when not known */
  char why[160]; /* not known: why */
} AbstractCall;

#endif
