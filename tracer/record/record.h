/* record.h — the recorder: runs bytecode on abstract values and leaves a graph. Executes nothing, so it can
 * speculate and roll back. What hop/ needs to record the bodies of constructs stands here too.
 *
 *   tier.c: a site is hot ─▶ record_start ─▶ rec_run (record.c: one step per instruction)
 *        operators, array operations  record_ops.c, record_parts.c    comparisons of trees, texts  record_compare.c
 *        fields, indices, unpacking   record_data.c                   ranges                       record_range.c
 *        if                           record_branch.c                 while, for                   record_flow.c, record_carry.c
 *        calls, inlined               record_call.c                   functions that recur         record_recur.c
 *        return out of a loop         record_return.c                 numbers weak on one way      record_weak.c
 *        lists that grow, texts       record_rows.c, record_rows_use.c   texts as numbers             record_names.c
 *        records by character         record_keyed.c                  parts of texts               record_slice.c
 *        nil, or a value              record_option.c                 what is written              record_cells.c, record_effects.c
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
  u32 first, count; /* leaves in RecLoop.types */
  u8 rows;          /* 1: a list that is AV_ROWS in the loop; 2: it was tried, its items are not of one kind */
  bool option;      /* nil or a value in the loop (record_option.c) */
  bool queue;       /* it is cut off at its head in the loop (record_queue.c) */
  bool names;       /* its texts are numbers in the loop (record_names.c) */
  bool kind_known;
  u16 entered;      /* what stood there when it came to the loop's variables: AvKind, and ValueKind */
  u8 depth, path[3]; /* of a list inside of it (record_inner.c): the items on the way */
  Value kind;       /* of its items, kept by the recorder */
} RecLoc;

/* What a loop returns from the function: one number, or a list or record of numbers, or a constant. */
typedef struct RecReturn {
  bool asked; /* the loop returns */
  u8 kind;    /* AV_NUM, AV_LIST, AV_RECORD, AV_CONST */
  u32 count;
  ArrayType types[8];
  u32 loc[8], leaf[8]; /* an array that the loop carries anyhow: RecLoop.locs + 1, and which leaf of it; 0: it is carried besides, … */
  u32 besides;         /* … and stays so: returns did not agree */
  struct Shape *shape;
  Value konst; /* held by r->kept */
} RecReturn;

/* How a cell is found again once it was rolled back: the steps of its source, innermost first; none: made by the trace. */
typedef struct RecCellStep {
  u8 kind; /* SourceKind */
  u32 index;
  struct Module *module; /* global */
} RecCellStep;
typedef struct RecCellPath {
  u32 cell, count;
  RecCellStep steps[8];
} RecCellPath;

enum { CELL_SET_MAX = 8 };
/* Cells that the body of a construct writes: carried beside its state. */
typedef struct RecCellSet {
  u32 count;
  u32 cells[CELL_SET_MAX];
  RecCellPath paths[CELL_SET_MAX];
  Av *before; /* contents of all cells before the body, heap */
  u32 before_count;
} RecCellSet;

/* How a loop carries a number: as its type says; strong, with a flag that says whether it is weak; strong, and weak in the first trip
 * alone, which its position tells; as its type says, for that was tried. */
enum { CARRY_plain, CARRY_flag, CARRY_first, CARRY_not_first };

typedef struct RecLoop {
  struct RecLoop *outer;
  u32 depth, extent;
  u32 els, end;   /* pcs of its back-edge and behind it */
  u32 made_before; /* cells that stood before its body */
  VEC(RecLoc) locs;
  RecLoc inner[8];   /* lists inside of these that are AV_ROWS */
  u32 inner_count;
  VEC(TypeId) types; /* of the carried leaves */
  BlockId body;
  u32 sizes_before;  /* size expressions that stood before the loop */
  RecReturn ret;
  u32 ret_at;        /* in types: the flag, behind it what is returned */
  VEC(u8) weak;      /* for each: CARRY_*; the flags of numbers that may be weak or strong stand … */
  u32 flag_at;       /* … from here on in types */
  VEC(ValueId) was;  /* for each that is weak in the first trip alone: whether it is, when that is not certain; else 0 */
  VEC(u32) free;     /* for each, the axes whose sizes change from trip to trip */
  bool peeled;       /* the first trip stands before it */
  u32 few;           /* 1 + its trips, where they are few and known: it can be recorded trip by trip instead; else 0 */
  bool test_inside;  /* its condition writes: it stands in the body, which breaks */
  bool endless;      /* its condition is the constant true, and nothing breaks: it ends by returning from the function */
  u32 look;          /* steps of its body until rec_look_ahead; 0: it was, or is not to be */
  VEC(u8) entry;     /* for each, its dtype, whether it is an array, and whether it may be weak, when it was tried first */
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

typedef struct RecAnchor { /* an unbacked symbol, and the block where it was first spoken of: what is said of it holds there */
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
typedef enum ForceKind { FORCE_nothing, FORCE_exits, FORCE_misses, FORCE_checks, FORCE_rollback, FORCE_endless, FORCE_wrong } ForceKind;
typedef struct Force {
  u8 kind; /* ForceKind */
  u32 at;  /* which one, counted from 1; 0: now this, now that */
} Force;

typedef struct Recorder {
  Vm *vm;
  Graph *g;
  Frame *origin; /* the live frame: sources are read through it */
  VEC(AbsVal) avs;      /* entry 0: AV_NONE */
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
  u32 steps, step_limit;
  u32 nest;             /* C recursion */
  bool pulls;           /* a pullback was recorded: it cannot leave the trace */
  bool no_pulls;        /* so vjp is a break */
  u32 repeats;          /* > 0: inside the body of a construct that runs it again and again */
  bool lanes;           /* some scan of the graph is over lanes (GraphNode.lanes) */
  u32 differentiating;  /* > 0: inside a function whose derivative is recorded */
  bool abstract;        /* for types alone: output is passed over, tracked values count as what they stand for */
  bool stop_after_loop; /* the region is a loop: it ends behind it */
  u32 root_extent;
  bool noted_types;     /* a carried type changed: the loop is tried again behind its first trip */
  bool back_edge;       /* the last step was a `loop` */
  bool arm_is_cold;     /* of the branch that was recorded last */
  RecLoop *widens;      /* a loop in which more sizes change than `free` says: tried again */
  RecLoop *lacks;       /* a loop that has to carry `lacks_cell` as well */
  RecCellPath lacks_cell;
  bool lacks_return;    /* not a cell, but what it returns */
  ValueId powers;       /* of ten, if it is still there (record_digits.c) */
  RecLoc *lacks_rows;   /* of `lacks`: what has to be AV_ROWS there */
  u32 lifted_loops, lifted_ifs, cold_exits;
  bool left_early;      /* a cold arm in a loop, before which none is complete, is taken so often that the loop is left on its first trips */
  u32 left_often;       /* of 16 times that the program came to a cold arm's branch of late, the times it took the arm; the most of all arms */
  Force force;
  struct RecRecur *recur; /* the function whose body is recorded once, for all its calls of itself */
  VEC(Code *) no_recur;   /* for which that did not work out; rollback keeps it */
  const Code *force_code; /* where the trace is made to end, NULL: not met yet */
  u32 force_pc, trials;
  bool failed;
} Recorder;

/* ---- outcome helpers ---- */
Outcome rec_stuck(Recorder *r, u32 reason, const char *fmt, ...) PRINTF_LIKE(3, 4);
static inline RecFrame *rec_top(Recorder *r) { return &r->frames.data[r->frames.count - 1]; }
/* Where the instruction stands that is being recorded. */
static inline Span rec_here(const Recorder *r) {
  const RecFrame *f = &r->frames.data[r->frames.count - 1];
  return f->code->proto->spans[f->pc];
}
/* What a step ends with: *out is a; 0: memory was refused. */
static inline Outcome rec_made(const Recorder *r, Av a, Av *out) {
  *out = a;
  return a && !r->failed ? OUT_GO : OUT_FAIL;
}
static inline u32 rec_depth(const Recorder *r) { return r->frames.count - 1; }
static inline AbsVal *av_at(const Recorder *r, Av a) { return &r->avs.data[a]; }

/* ---- abstract values (absval.c). 0 and r->failed when memory was refused ---- */
Av av_new(Recorder *r, AbsVal v);
Av av_const(Recorder *r, Value v);                 /* keeps v */
Av av_num(Recorder *r, ValueId v);
Av av_items(Recorder *r, AvKind kind, const Av *items, u32 count);
Av *rec_avs(Recorder *r, u32 n);                   /* room for n of them, zeros, as long as the graph lives. NULL: memory was refused */
Av av_record(Recorder *r, const Name *keys, const Av *items, u32 count);
Av av_lazy(Recorder *r, SourceId s, Value now);
Av av_force(Recorder *r, Av a);                    /* reads a LAZY one; else a itself */
bool rec_is_late(Recorder *r);                     /* its time is used up: it fails */
static inline Av av_item(const Recorder *r, Av a, u32 i) { return r->items.data[av_at(r, a)->first + i]; }
bool av_is_number(Recorder *r, Av a);              /* forced: AV_NUM or a constant number */
Av av_length(Recorder *r, SourceId list, i64 now);   /* the length of the list that a source names, as a size */
Av av_total(Recorder *r, SourceId list, i64 now);    /* of the lists in it, all together */
ValueId av_value(Recorder *r, Av a);               /* graph value of a number; 0 when it is none */
bool av_dim(Recorder *r, Av a, Dim *out);          /* integer number as a size; makes an unbacked symbol if need be */
bool av_value_dim(Recorder *r, ValueId v, Dim *out); /* of a number that is there */
bool av_sum_dim(Recorder *r, ValueId v, Dim *out); /* the same as a sum of what v was added up from, as far as that cannot wrap */
bool av_known_int(Recorder *r, Av a, i64 *out);    /* integer known while tracing */
bool av_const_value(Recorder *r, Av a, Value *out);/* constant number, text, nil …; borrowed */
const char *av_kind_text(Recorder *r, Av a);
i32 av_field(const Recorder *r, Av record, Name key); /* index of the item, -1 */

typedef VEC(ValueId) ValueVec;
typedef VEC(Av) AvVec;
u32 av_parts(const Recorder *r, Av a, u32 most); /* how many parts it has, nothing being read for that; `most` is enough */

/* ---- trees of the program (record_tree.c) ----
 * Lists and records of numbers, with static parts in between: what tree functions walk over, and what the operands and results of
 * constructs are. Lists in columns, queues, texts and the like hold numbers of the graph as well, which no program ever sees: these
 * are not leaves. A tree is opened first; then it has lists and records that are known item by item, numbers, and static parts. */
bool av_is_opaque(const Recorder *r, Av a);           /* a list or record from outside that was not taken apart */
Outcome av_take_apart(Recorder *r, Av a, Av *out);    /* one of these: what it holds is guarded. Stuck: it is too large, or another one too often */
Outcome rec_open_list(Recorder *r, Av a, Av *out);    /* a list of any kind as one known item by item; its items stay as they are */
Outcome rec_tree(Recorder *r, Av a, Av *out);         /* opened all through. Stuck: it has a list of no known length, or a value that may be nil */
Outcome rec_tree_leaves(Recorder *r, Av tree, AvVec *out);           /* of an opened tree, in order */
Av rec_tree_rebuild(Recorder *r, Av tree, const Av *leaves, u32 *next); /* the same tree with its leaves replaced in order */
bool rec_tree_same(Recorder *r, Av a, Av b);          /* of two opened trees: equal but for the values of leaves */

/* ---- speculation ---- */
typedef struct RecMark {
  GraphMark graph;
  u32 avs, items, sources, trail, cells, straight, frames, masks, anchored, positions, weaks, dynamic, facts;
  u32 safe_exit;
  Av settled;
  u32 lifted_loops, lifted_ifs, cold_exits, left_often;
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
RecMark rec_mark(Recorder *r);
void rec_rollback(Recorder *r, const RecMark *m);
bool rec_save(Recorder *r, RecState *s);
void rec_restore(Recorder *r, const RecState *s); /* frames above are dropped */
void rec_end_try(Recorder *r, const RecMark *m, RecState *s, Outcome o); /* undoes what got stuck, keeps its reason; frees s */
void rec_state_free(Recorder *r, RecState *s);

/* ---- driving ---- */
Outcome rec_run(Recorder *r, const Scope *s);
/* Records the call of a function value to its end, into the current block. *out: its result. */
Outcome rec_call(Recorder *r, Av fn, const Av *args, const Name *names, u32 nargs, Av *out);
Av rec_capture(Recorder *r, Av fn, u32 i); /* captured value i of a closure (0: of the root frame's function) */
bool rec_push(Recorder *r, Code *code, Av fn, u16 result); /* registers dead */
void recorder_free(Recorder *r); /* all but the graph */
void rec_pop(Recorder *r);

/* ---- instructions by room ---- */
Outcome rec_binary(Recorder *r, u32 bc, Av a, Av b, Av *out);
Outcome rec_unary(Recorder *r, u32 bc, Av a, Av *out);
Outcome rec_equal(Recorder *r, Av a, Av b, Av *out); /* structural, as `==` is of anything but two arrays */
Outcome rec_text_order(Recorder *r, u32 bc, Av a, Av b, Av *out);
Outcome rec_member(Recorder *r, Av a, Av b, Av *out);
Outcome rec_op(Recorder *r, u32 op, const Av *params, Av *out); /* params by signature; 0 or AV_HOLE: not given */
/* Parameters that are never operands: they say how, not on what. */
bool rec_is_setting(u32 op, u32 param);
Av rec_listed(Recorder *r, Av a); /* an array that was just stacked of integers as the list of them; 0: out of memory */
Outcome rec_parts(Recorder *r, u32 op, const Av *params, Av *out); /* those that give a list of arrays (record_parts.c) */
Outcome rec_truth(Recorder *r, Av a, Av *out);                  /* a constant bool or a bool[] number */
Outcome rec_index(Recorder *r, Av obj, const u8 *items, u32 count, const Av *regs, Av *out);
Outcome rec_field(Recorder *r, Av obj, Name name, Av *out, bool *found); /* found NULL: a miss is stuck */
Outcome rec_path(Recorder *r, const Desc *d, Av root, const Av *regs, Av *out);
/* An integer where a rule needs a literal: known while tracing, or a size whose present value a guard then pins. */
bool rec_literal(Recorder *r, Av a, const char *what, i64 *out);
bool rec_pin(Recorder *r, Dim d, const char *what, i64 *out); /* the same of a size */
Outcome rec_text(Recorder *r, Av v, Av spec, Av *out); /* spec: text or nil */
Outcome rec_join(Recorder *r, const Av *parts, u32 count, Av *out); /* of texts */
Av rec_text_part(Recorder *r, Av a); /* read, but a text that another trip changes is not looked at */
Outcome rec_unpack(Recorder *r, Av v, const Desc *d, Av *out);
Outcome rec_begin_call(Recorder *r, Av fn, const Av *args, const Name *names, u32 nargs, u16 result, bool tail, Av *out, bool *pushed);
Outcome rec_branch(Recorder *r, const Scope *s, Av cond, u32 fall, u32 jump, u32 join);
Outcome rec_flow(Recorder *r, const Scope *s); /* OUT_END: no loop begins or ends at this pc */
Outcome rec_begin_for(Recorder *r, Av seq, u32 a); /* registers a …: what it walks over, its position, how many items */
Outcome rec_next_item(Recorder *r, u32 a);     /* the item at that position, into a + 3, and the position moved on */
u32 rec_loop_extent(const Proto *p, u32 head); /* the loop whose head this is, 0: none */
Outcome rec_cell_write(Recorder *r, u32 cell, Av value);
Outcome rec_do_return(Recorder *r, const Scope *s, Av v);
Outcome rec_check(Recorder *r, CheckKind kind, const ValueId *operands, u32 count); /* leaves by the safe exit */
/* A weak integer that takes a strong integer dtype: checked that it fits, and converted. Others stay. */
Outcome rec_fit_weak(Recorder *r, ValueId *v, u32 dtype);

/* ---- effects (record_effects.c) ---- */
bool rec_tokens_begin(Recorder *r);
Outcome rec_past_effects(Recorder *r); /* where something was done since safe_exit: a new one, behind it */
Outcome rec_print(Recorder *r, const Av *params, Av *out);
Outcome rec_host(Recorder *r, Av fn, const Av *args, const Name *names, u32 nargs, Av *out);
/* ---- returning out of a loop that is lifted (record_return.c) ---- */
Outcome rec_return_ask(Recorder *r, RecLoop *l, Av ret);           /* OUT_GO: the loop carries it */
Outcome rec_return_carry(Recorder *r, RecLoop *l, ValueVec *init); /* flag and zeros, as the last of l->types */
/* The flag and what is returned, at the end of a block of the loop. ret 0: nothing is returned here. */
Outcome rec_return_values(Recorder *r, const RecLoop *l, Av ret, ValueVec *out);
Av rec_return_result(Recorder *r, const RecLoop *l, NodeId loop, ValueId *flag);
/* ---- sizes known at run time only (record_sizes.c) ---- */
/* The DimCtx of the instruction that is recorded: what it asks of sizes becomes guards, of unbacked ones checks. */
void rec_dims_init(Recorder *r, GuardDims *d, const char *what);
/* What to do when a rule said no: out of memory, not known, or an error of the program. */
Outcome rec_dims_no(Recorder *r, const GuardDims *d, const char *what, const RuleError *err);
void rec_carry(Recorder *r, Dim d, ValueId carrier, u32 axis);
Outcome rec_anchor(Recorder *r, Dim d); /* marks where checks of an unbacked symbol will stand */
bool rec_spoken_of(const Recorder *r, u32 sym); /* where what checks say of it holds: what is made in an arm is another symbol beside the arm */
/* DIM_FRESH among the dimensions of an operation's results becomes one new size, *d (0: there was none). The anchor comes when the
 * node stands: rec_freshen, graph_node, rec_settle. */
Outcome rec_freshen(Recorder *r, ArrayType *results, u32 count, Dim *d);
Outcome rec_settle(Recorder *r, NodeId node, Dim d);
/* A result of a construct: sizes of the axes in `free`, and those made inside it, become ones that the result carries. */
Outcome rec_escape(Recorder *r, ValueId result, u32 free);
bool rec_inner_size(Recorder *r, ValueId v); /* its type speaks of a size that is made inside a block that the cursor is not in */
/* The places where a mask is true, one array for each of its axes; asked again, the same ones. */
Outcome rec_mask_places(Recorder *r, ValueId mask, ValueId *places);
/* What is known of a rank-0 integer. */
SizeRange rec_range(Recorder *r, ValueId v);
/* An end of a slice with a positive step over an axis of size n, as a size that is negative for certain or never. */
/* Guards: the integers of the program in d are like sizes, neither negative nor huge, if they are now. False: memory was refused. */
bool rec_like_sizes(Recorder *r, Dim d);
/* An end that moves with a loop stays within an axis if it does in the last trip: proved, or by a guard that holds now. False: memory was refused. */
bool rec_in_axis(Recorder *r, Dim end, Dim axis);
Outcome rec_bound(Recorder *r, Av a, Dim n, Dim *out);
/* An integer where a size is asked for: checked to be none below 0. */
Outcome rec_size_from(Recorder *r, Av a, i64 least, Dim *out); /* guarded to be no less */
Outcome rec_size(Recorder *r, Av a, Dim *out);

/* ---- numbers that are weak on one way only (record_weak.c) ---- */
ValueId rec_weak_flag(const Recorder *r, ValueId v); /* 0: it is what its type says */
bool rec_weak_note(Recorder *r, ValueId v, ValueId flag);
/* Weak in the loop's first trip alone, when `before` is true (0: always): as long as `position` is 0. */
bool rec_weak_first(Recorder *r, RecLoop *l, ValueId v, ValueId position, ValueId before);
/* What says so stands in the way: the loop has its first trip before it, then. False: nothing of the kind. */
bool rec_weak_peel(Recorder *r, ValueId flag);
RecipeId rec_weak_recipe(Recorder *r, ValueId v); /* for an exit */
Outcome rec_strong(Recorder *r, ValueId v); /* leaves here when v is weak */
/* Before an operation: *flag says whether what it gives is weak (0: as its type says). */
Outcome rec_weak_operands(Recorder *r, u32 op, const ValueId *operands, u32 n, ValueId *flag);

/* ---- values that are nil on one way only (record_option.c) ---- */
bool rec_has_option(Recorder *r, Av a);                  /* it, or a part of it */
void rec_note_truth(Recorder *r, ValueId cond, bool is); /* known from here on in the block that the cursor is in */
Av rec_sure(Recorder *r, Av a);                          /* forced; of one that is known to be there the value, known not to be nil */
Outcome rec_there(Recorder *r, Av *a);                   /* the value: checked to be there where that is not known. Others stay */
Outcome rec_there_by_element(Recorder *r, Av *a, Av *b); /* of two numbers that are compared, one of them an array */
bool rec_option_equal(Recorder *r, Av a, Av b, Av *out, Outcome *o); /* false: neither may be nil and something else */
bool rec_option_meet(Recorder *r, Av *a, Av *b);         /* what two ways leave, alike but for nil: these become one kind in both */
bool rec_want_option(Recorder *r, RecLoop *l, RecLoc *loc, Av now); /* the loop is lifted again with such a value there */
Outcome rec_make_option(Recorder *r, const RecLoc *loc, Av *at);
Outcome rec_into_option(Recorder *r, Av before, Av *now); /* where the loop has one */

/* ---- module variables and refs ---- */
void rec_priors_free(Recorder *r);
Outcome rec_cell_global(Recorder *r, struct Module *m, u32 slot, u32 *cell);
Outcome rec_cell_ref(Recorder *r, Av ref, u32 *cell);
void rec_cell_path(Recorder *r, u32 cell, RecCellPath *path);
Outcome rec_cell_again(Recorder *r, const RecCellPath *path, u32 *cell);
enum { HOST_random_key, HOST_random_counter }; /* ids of `host` sources */
bool random_state_read(Vm *vm, u32 id, Value *out);
void random_state_write(Vm *vm, u32 id, Value v);
Outcome rec_random(Recorder *r, u32 op, const Av *params, Av *out);
/* The body of a construct: find what it is known to write, save, carry rec_cells_with(tree), enter with the parameters, run,
 * grow (then undo and try again), carry on rec_cells_with(result); take from the results behind it. What rec_cells_with gives is a
 * list marked BESIDE_CELLS: its first item is a tree of the program, the others are carried as loops carry variables. */
enum { BESIDE_CELLS = 1 }; /* AbsVal.op of an AV_LIST */
Outcome rec_cells_find(Recorder *r, RecCellSet *set);
bool rec_cells_save(Recorder *r, RecCellSet *set);
void rec_cells_undo(Recorder *r, const RecCellSet *set);
void rec_cells_free(Recorder *r, RecCellSet *set);
Outcome rec_cells_grow(Recorder *r, RecCellSet *set, bool *grown);
Outcome rec_cells_none(Recorder *r, const RecCellSet *set, const char *who); /* stuck when something was written since the save */
Av rec_cells_with(Recorder *r, const RecCellSet *set, Av tree);
bool rec_cell_leaves(Recorder *r, u32 cell, AvVec *out); /* the numbers that are carried for it, in order */
Av rec_cells_enter(Recorder *r, const RecCellSet *set, Av both);
Outcome rec_cells_take(Recorder *r, const RecCellSet *set, Av both, Av *state);
Av rec_cell_clean(Recorder *r, u32 cell); /* what was in it on entry; 0: not known any more */

/* ---- ranges (record_range.c) ---- */
Outcome rec_make_range(Recorder *r, Av start, Av stop, Av by, Av *out);
Outcome rec_range_count(Recorder *r, Av range, Av *out); /* how many items it has */
Outcome rec_range_item(Recorder *r, Av range, Av pos, Av *out);
Outcome rec_range_slice(Recorder *r, Av range, Av *parts); /* the slice that selects the same of an axis: start, stop, step */

/* ---- lists and texts in loops (record_rows.c, record_rows_use.c) ---- */
Av rec_new_rows(Recorder *r, Av columns, Av count, Value kind); /* kind: kept by the recorder */
bool rec_is_text(Recorder *r, Av a);
bool rec_leaves_few(Value kind); /* of what items look like: numbers and short texts all through, not too many */
Av rec_columns_new(Recorder *r, Value kind, Dim room); /* zeros */
bool rec_kind_of(Recorder *r, Av a, Value *out); /* what a value looks like, kept by the recorder; false: not so */
bool rec_is_column(Value kind);  /* a leaf of what items look like: a number, array or text */
ArrayType rec_column_type(Value kind, Dim room);
bool rec_item_fits(Recorder *r, Av a, Value kind); /* not of a text */
/* The code points of a text of known parts, characters among them: numbers into `out` from *count on (each may be NULL), at most 64 in all.
 * False: not such a text. */
bool rec_points(Recorder *r, Av text, Av *out, u32 *count);
/* A text from outside in a loop, which is indexed by code points that the region gets packed. */
bool rec_text_has(const Recorder *r, Av a);
Outcome rec_text_get(Recorder *r, Av text, Av at, Av *out);
Av rec_with_parts(Recorder *r, Av tree, const Av *parts, u32 n); /* the same tree over other parts; 0: refused */
Outcome rec_rows_of_text(Recorder *r, SourceId s, Value text, Av *out);
Outcome rec_text_stacked(Recorder *r, Av text, Av *out);
Outcome rec_text_same(Recorder *r, Av rows, Av text, Av *out); /* rows of a text and one of known parts */
/* A list or text as AV_ROWS; `want` (may be NULL): what its items look like. */
/* Short texts as numbers (record_names.c). */
bool rec_is_name(Value kind);                  /* in a tree of what items look like: a text */
Av rec_name(Recorder *r, ValueId number);      /* the text of that number */
Av rec_name_of(Recorder *r, Av a);             /* the number of a text, or 0 */
bool rec_has_name(Recorder *r, Av a);
bool rec_names_meet(Recorder *r, Av *a, Av *b); /* two trees alike but for texts: these become numbers in both */
Av rec_names_open(Recorder *r, Av a, u32 depth);
bool rec_on_character(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o); /* find, codes, text; false: not so */
bool rec_key_computed(Recorder *r, Av record, Av key);
Outcome rec_key_get(Recorder *r, Av record, Av key, Av *out);
Outcome rec_key_set(Recorder *r, Av record, Av key, Av got, Av item, Av *out); /* got: what rec_key_get gave, or 0 */
Outcome rec_rows_of(Recorder *r, Av list, const Value *want, Av *out);
/* record_listed.c */
bool rec_is_listed(const Recorder *r, Av a); /* a list in columns, or from outside */
Outcome rec_rows_array(Recorder *r, Av list, Av *out);
Outcome rec_rows_joined(Recorder *r, u32 op, const Av *params, Av *out); /* stack and concat */
Outcome rec_rows_sorted(Recorder *r, const Av *params, u32 count, Av *out);
Outcome rec_rows_part(Recorder *r, Av rows, const Av *parts, Av *out); /* any slice */
/* The list that `loc` held at the head of loop l is another one now: l is lifted again with rows there. False: no rows. */
bool rec_want_names(Recorder *r, RecLoop *l, RecLoc *loc); /* other texts stand there from trip to trip: lifted again */
bool rec_item_mixed(Recorder *r, Av a, Value kind);                      /* an item that fits, but for a number in it that may be weak */
bool rec_rows_meet(Recorder *r, Av a, Av b, Value *kind);                /* two lists of different kinds: of one that both can have */
bool rec_want_wider(Recorder *r, Av *rows, Av item); /* an item goes in that is weak where others are not, or the other way round; *rows: with a column for that, else its loop is lifted again */
bool rec_look_into(Recorder *r, List *l); /* a list that is packed is boxed; false: memory was refused */
bool rec_want_rows(Recorder *r, RecLoop *l, RecLoc *loc, Av now);
bool rec_merge_rows(Recorder *r, Av base, Av a, Av b); /* two arms made two lists of base */
bool rec_text_grows(Recorder *r, Av a); /* a text from outside that a loop carries: that is lifted again with rows there */
bool rec_rows_suit(const Recorder *r, Av list);
bool rec_lists_suit(const Recorder *r, Av list); /* a list of lists from outside */
Outcome rec_rows_here(Recorder *r, Av list, Av *out);  /* for a computed position; stuck when its loop is to be lifted again */
bool rec_is_carried(Recorder *r, Av list); /* by a loop around */
bool rec_is_in_columns(const Recorder *r, Av list);
Outcome rec_list_slice(Recorder *r, Av list, const Av *parts, Av *out);
Outcome rec_rows_concat(Recorder *r, Av a, Av b, Av *out); /* a + b */
RecLoc *rec_inner_of(Recorder *r, Av list, RecLoop **loop); /* of a list inside of a variable of a loop (record_inner.c) */
Outcome rec_make_rows(Recorder *r, RecLoop *l);         /* those that it was found to need, before it */
Outcome rec_rows_walk(Recorder *r, Av seq, Av *out);
Av *rec_loc_at(Recorder *r, const RecLoc *l);
Outcome rec_rows_get(Recorder *r, Av rows, Av at, Av *out);
Outcome rec_rows_item(Recorder *r, Av rows, Av at, Av *out); /* `at` is in bounds */
/* An item into its place in each column; `old` (may be 0): what was read there, of which leaves that are the same stay. */
Outcome rec_rows_put(Recorder *r, Av columns, Value kind, ValueId at, Av item, Av old, Av *out);
Outcome rec_rows_set(Recorder *r, Av rows, Av at, Av old, Av item, Av *out);
Outcome rec_rows_join(Recorder *r, Av rows, Av more, Av *out); /* more: AV_LIST, or a text */
Outcome rec_rows_append(Recorder *r, Av *rows, Av *start, Av more); /* start: where they begin, 0: with their first; items in front of that may go */
Outcome rec_rows_position(Recorder *r, Av rows, Av n, Av at, ValueId *out); /* checked to be one of n, counted from 0 */
/* Lists of any length (record_ragged.c). */
Outcome rec_row_of(Recorder *r, Av rows, ValueId at, Av asked, Av *out); /* `at` is in bounds, and what the program has asked for */
Outcome rec_row_item(Recorder *r, Av row, Av at, Av *out);     /* likewise */
Outcome rec_row_get(Recorder *r, Av row, Av at, Av *out);
Outcome rec_row_place(Recorder *r, Av row, Av at, ValueId *place, Av *item); /* checked: where among the items of all lists, and what is there */
Outcome rec_row_put(Recorder *r, Av rows, ValueId place, Av old, Av item, Av *out);
Outcome rec_row_swap(Recorder *r, Av rows, Av at, Av item, Av *out); /* a list takes another one's place */
/* Texts that are read and not made (record_slice.c). */
bool rec_is_read(Recorder *r, Av a);
bool rec_is_of_digits(Recorder *r, Av a); /* of which all is the text of an integer, so ASCII */
Outcome rec_text_slice(Recorder *r, Av rows, const Av *parts, Av *out); /* parts: start, stop, step */
Outcome rec_read_count(Recorder *r, Av text, Av *out);
Outcome rec_read_at(Recorder *r, Av text, Av at, Av *out); /* in bounds */
Outcome rec_read_get(Recorder *r, Av text, Av at, Av *out);
Outcome rec_read_same(Recorder *r, Av a, Av b, Av *out); /* one of them is such a text */
Outcome rec_read_has(Recorder *r, Av text, Av point, Av *out);
bool rec_text_parts(Recorder *r, Av text); /* can it be put into a column, and counted? Short ones alone: of digits, of known characters, and joined of such */
Outcome rec_text_count(Recorder *r, Av text, Av *out);
Outcome rec_text_put(Recorder *r, Av text, Av *column, Av *at); /* from *at on, which is moved behind it; there is room */
Outcome rec_text_move(Recorder *r, Av count, Av by, Av *column); /* so many of its characters, further back */
Outcome rec_text_join(Recorder *r, Av rows, Av more, bool front, Av *out);
/* The text of an integer (record_digits.c). */
bool rec_is_digits(Recorder *r, Av a);
ValueId rec_digits_number(Recorder *r, Av text);
Outcome rec_digits_of(Recorder *r, Av text, Av *out); /* with what is computed once for all its digits */
Outcome rec_digits_count(Recorder *r, Av text, Av *out);
Outcome rec_digits_at(Recorder *r, Av text, Av place, Av *out);
Outcome rec_digits_same(Recorder *r, Av text, Av other, Av *out);
bool rec_number_of_text(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o); /* parse_int, parse_float of a slice or a character; false: not so */
/* record_known.c */
bool rec_of_known(Recorder *r, u32 op, const Av *params, Av *out, Outcome *o); /* texts and records known while tracing; false: not so */
Outcome rec_without(Recorder *r, Av record, const Name *names, u32 count, Av *out); /* the record without these fields */
/* Records of numbers by character (record_keyed.c). */
bool rec_is_keyed(const Recorder *r, Av a);
Outcome rec_keyed_of(Recorder *r, Av record, Value kind, Av *out);
Outcome rec_keyed_store(Recorder *r, Av record, Av key, Av value); /* stuck: its loop is to be lifted again with such a record; value: a new one, or 0 */
Outcome rec_keyed_read(Recorder *r, Av record, Av key, Av *out);   /* likewise; *out: the record as such, or 0 */
Outcome rec_keyed_in(Recorder *r, Av key, Av rows, Av *out);
Outcome rec_keyed_get(Recorder *r, Av rows, Av key, Av *out);
Outcome rec_keyed_set(Recorder *r, Av rows, Av key, Av item, bool known, Av *out); /* known: the key is there */
Outcome rec_keyed_item(Recorder *r, Av rows, ValueId at, Av *out);
RecipeId rec_keyed_recipe(Recorder *r, Av rows);
bool rec_rows_ask(Recorder *r, Av now, const Value *kind); /* what stands there in a loop is to be rows of that kind, NULL: none; false: in no loop, or it was tried */
Outcome rec_rows_zip(Recorder *r, const Av *seqs, u32 n, bool numbered, Av *out); /* lists of an item of each, and its number */
Outcome rec_rows_slice(Recorder *r, Av rows, const Av *parts, Av *out);
/* `now`, a short list or text (empty: nothing but an empty one), in the columns of `rows`. OUT_STUCK, without a reason: it does not fit. */
Outcome rec_rows_like(Recorder *r, Av rows, Av now, bool empty, Av *out);

/* ---- record_slice.c ---- */
/* What is done at each place below `count`: the states, numbers and columns, are changed. A number alone is a bool: whether to go on. */
enum { RECORD_STATES = 4 };
typedef Outcome (*RecStep)(Recorder *r, const Av *with, Av at, Av *state);
Outcome rec_each(Recorder *r, Av count, const Av *with, Av *state, u32 n, RecStep step);

/* ---- record_queue.c ---- */
bool rec_is_queue(const Recorder *r, Av a);
Av rec_queue_count(const Recorder *r, Av queue);
Outcome rec_queue_rows(Recorder *r, Av queue, Av *out); /* in columns of its own */
Outcome rec_queue_get(Recorder *r, Av queue, Av at, Av *out);
bool rec_queue_asks(Recorder *r, const Av *parts); /* list[k:], k known */
bool rec_queue_cuts(Recorder *r, Av list, const Av *parts); /* does that slice make a queue? */
Outcome rec_queue_cut(Recorder *r, Av list, const Av *parts, Av *out);
Outcome rec_queue_join(Recorder *r, Av queue, Av more, Av *out);
/* How many items in front of `start` go so that k more have room, and the others moved there; *gone 0: never any. */
Outcome rec_queue_gone(Recorder *r, Av columns, Av n, Av start, u32 k, Av *gone);
Outcome rec_queue_move(Recorder *r, Av *columns, Av *n, Av *start, Av gone);
RecipeId rec_queue_recipe(Recorder *r, Av queue);

/* ---- functions that call themselves (record_recur.c) ---- */
/* A call of `code`, of which frames stand already; params: one for each parameter, bound. *done: it is a node of the graph, *out what it gives;
 * otherwise nothing has changed. */
Outcome rec_recur(Recorder *r, Av fn, Code *code, const Av *params, Av *out, bool *done);
Outcome rec_recur_whole(Recorder *r, bool *done); /* the same for all that is recorded, the function of a RECORD_ENTRY; done: r->ret is what it gives */

/* ---- exits (record_exit.c) ---- */
RecipeId rec_recipe(Recorder *r, Av a);
/* An exit at the top frame's pc with everything that is live. UINT32_MAX: memory refused or not expressible. */
u32 rec_exit(Recorder *r, ExitKind kind, u32 reason, Span span);
u32 rec_exit_return(Recorder *r, Av value);
u32 rec_safe_exit(Recorder *r);
void rec_behind_update(Recorder *r);
void rec_was_written(Recorder *r, NodeId cond);
u32 rec_present_exit(Recorder *r); /* where a check that fails here leaves; UINT32_MAX: nowhere */
/* Registers live before pc, as proto_live gives them. False: memory was refused. */
bool rec_live(Recorder *r, const Proto *p, u32 pc, u64 *bits);

/* ---- constructs (hop/) ---- */
typedef Outcome (*ConstructFn)(Recorder *r, u32 op, const Av *params, Av *out);
typedef Outcome (*TraceTransformFn)(Recorder *r, Av transform, const Av *args, u32 nargs, Av *out);

/* ---- whole traces ---- */
enum { TRACE_STEPS = 40000 };
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
WeftStatus record_trace(Vm *vm, Frame *frame, RecordStart start, const char *name, RecordResult *out) MUST_USE;

/* ---- calls on types alone (abstract.c) ---- */
typedef struct AbstractCall {
  bool known;    /* result says what f gives */
  Value result;  /* owned: the tree, zeros in its leaves; a hole when not known */
  char why[160]; /* not known: why */
} AbstractCall;
/* What f gives on values like args (borrowed), without running it. Error: memory. */
WeftStatus record_abstract(Vm *vm, Value f, const Value *args, u32 nargs, AbstractCall *out) MUST_USE;

#endif
