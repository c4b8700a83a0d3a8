/* graph.h — hand-off format: what the recorder makes and everything below rewrites and lowers.
 * Described in docs/formats/graph.md.
 *
 * A Graph owns nodes, values, blocks, types, symbolic sizes, sources, guards and exits, all named by u32 ids
 * (0 = none) in arrays of the graph; ids never move, so ids may be kept, pointers into the graph may not
 * (any builder call may move the arrays).
 *
 *  - A value has a type: an array type (ops.h ArrayType, sizes as Dim) or the effect token. It is the result
 *    of a node, the parameter of a block, a constant of rank 0, or a size expression used as a number. The
 *    last two belong to no block and may be used everywhere.
 *  - A block is a list of nodes in program order and a terminator. Its parameters are its captures, then its
 *    own parameters (carried values, items). Operands must belong to the block: builder calls lift free
 *    variables by themselves, through every block in between, each once per block (graph_lift).
 *    Block 1 is the root; its parameters are the inputs, each with a source.
 *  - Control nodes hold blocks. Operands: see graph.def; captures come last, in the order of the blocks'
 *    capture parameters. The blocks of one node have the same captures (shared, then those of the first
 *    block alone, then of the second …): the builder merges them.
 *  - Nodes are immutable to everybody but the functions below. Passes edit in place: unlink, replace uses,
 *    set the cursor before a node and build there. What is unlinked stays as garbage until graph_free.
 *
 * Binding of parameters (kind `op`): attributes name a parameter of the signature; the parameters without an
 * attribute take the operands in order; when these are used up the rest was not given. A `list` attribute
 * takes its n operands as one list (concat, stack, ...rest). GraphArgs gives this view.
 *
 * Failure: builder calls return 0 (or false) when memory was refused, and `failed` stays set; callers may
 * check once at the end. Text form: graph_print, graph_parse. */
#ifndef WEFT_TRACER_GRAPH_H
#define WEFT_TRACER_GRAPH_H

#include "guards/guards.h"
#include "tracer/graph/exits.h"

typedef u32 ValueId;
typedef u32 NodeId;
typedef u32 BlockId;
typedef u32 TypeId;
typedef u32 OriginId;

typedef enum NodeKind {
#define NODE(name, subs, meaning) NODE_##name,
#include "tracer/graph/graph.def"
  NODE_COUNT
} NodeKind;
typedef enum TermKind {
#define TERM(name, meaning) TERM_##name,
#include "tracer/graph/graph.def"
  TERM_COUNT
} TermKind;
typedef enum AttrKind {
#define ATTR(name, meaning) ATTR_##name,
#include "tracer/graph/graph.def"
  ATTR_COUNT
} AttrKind;

/* ---- values --------------------------------------------------------------------------------------- */

typedef enum ValueOrigin { GV_none, GV_result, GV_param, GV_const, GV_size } ValueOrigin;

typedef struct GraphValue {
  u8 origin;  /* ValueOrigin */
  TypeId type;
  union {
    struct {
      u32 def;   /* result: NodeId; param: BlockId */
      u32 index; /* among the results; among captures and parameters as they are now: do not rely on it */
    };
    u64 bits; /* const: payload as in Value */
    Dim dim;  /* size */
  };
} GraphValue;

enum { TYPE_NONE = 0, TYPE_TOKEN = 1 };
enum { GRAPH_MAX_DEPTH = 64 }; /* nesting of blocks: recursion over it is safe */

/* ---- attributes ----------------------------------------------------------------------------------- */

/* One item of an index. Integers and slice parts are absent, a size expression, or an operand. */
typedef enum IndexKind { INDEX_int, INDEX_slice, INDEX_newaxis, INDEX_ellipsis, INDEX_array, INDEX_mask } IndexKind;
typedef enum PartKind { PART_none, PART_dim, PART_operand } PartKind;
typedef struct IndexItem {
  u8 kind;     /* IndexKind */
  u8 part[3];  /* PartKind; int, array, mask: part[0]; slice: start, stop, step */
  i64 at[3];   /* dim: the Dim; operand: its number among the node's operands */
} IndexItem;

typedef struct GraphAttr {
  u8 kind;  /* AttrKind */
  u8 param; /* parameter of the signature; 0 for control nodes */
  u16 pairs; /* ints: 1 when they are pairs */
  u32 count; /* text: bytes; ints, dims: number; list: operands; index: items */
  union {
    i64 i; /* bool, int, dtype */
    f64 f;
    Dim dim;
    const char *text;      /* the pointers lie in the graph's arena */
    const i64 *ints;       /* ints, dims */
    const IndexItem *items;
  };
} GraphAttr;

/* ---- nodes ---------------------------------------------------------------------------------------- */

typedef struct GraphNode {
  u8 kind;    /* NodeKind */
  bool reverse; /* scan, ascan: from the end */
  /* op `where`: its second operand is a cotangent that is there only where the first is true (hop/walk.h); cond: its
   * first arm is always taken, and it stays a branch, so that its derivative computes the arm anew (hop/custom.c) */
  bool mask;
  bool total; /* op `max`: of no elements it is -inf, and no error */
  bool lanes; /* scan: over the lanes of a vmap, which do not depend on each other but for sums (hop/record_lanes.c) */
  bool index; /* scan: the body has one more parameter, the trip number as i64[] (last) */
  u16 op;     /* op: OpId; update: OpId that combines, or OP_none; check: CheckKind */
  BlockId block; /* 0 once unlinked */
  NodeId prev, next;
  u32 operand_first, operand_count; /* Graph.operands */
  ValueId result_first;
  u32 result_count;
  u32 attr_first, attr_count; /* Graph.attrs */
  BlockId sub[3];
  u32 carried; /* while, scan: number of initial values */
  u32 xs;      /* scan, ascan, custom, checkpoint, recur: number of xs */
  Dim length;  /* scan: trips (a Dim; of the xs, or given) */
  /* check: where it leaves. while, scan: where a poll at the back-edge leaves; its recipes see the body's parameters at
   * the head. host: the state before a call, for its errors and for results that are not what was promised; of `settle`
   * where the region leaves from then on. update, cond: in a loop, where what comes behind it leaves. NO_EXIT: none */
  u32 exit;
  u32 host;    /* host, hook: Graph.hosts */
  OriginId origin;
} GraphNode;

/* Where a node comes from. Frame 0 is the region's own function. */
typedef struct GraphOrigin {
  Span span;
  u32 frame; /* Graph.frames */
  u32 pc;
} GraphOrigin;

/* A function whose code the region runs: itself (0), then the inlined calls. */
typedef struct GraphFrame {
  struct Code *code;  /* borrowed; NULL after parsing text */
  const char *name;   /* for dumps */
  OriginId call;      /* the call in the outer frame; 0 for frame 0 */
} GraphFrame;

/* What a host node does. `settle`: what was done so far stays done; behind it the region leaves by the node's exit.
 * Between two of them output is all that may be done, and an exit that is taken has it done once more, unseen
 * (plan.h). */
typedef enum HostKind { HOST_function, HOST_print, HOST_settle } HostKind;

/* What a host node or a hook calls. */
typedef struct GraphHost {
  const char *name;
  RecipeId fn;   /* the function value, as a recipe (source or constant) */
  u8 kind;       /* HostKind */
  /* the list of its arguments, of operands (RCP_arg), constants and sources; 0: the operands as they are */
  RecipeId args;
  bool is_nil;   /* function, without a result in the graph: it must give nil; else nobody asks what it gives */
} GraphHost;

/* ---- blocks --------------------------------------------------------------------------------------- */

typedef struct GraphCapture {
  ValueId outer; /* belongs to the block around; once the block has its node, the node's operand says it instead */
  ValueId inner;
} GraphCapture;

typedef struct GraphBlock {
  BlockId parent; /* the block around; 0 for the root and for shared blocks */
  NodeId node;    /* that holds it; 0 while open, for the root, and for shared blocks */
  u8 term;        /* TermKind */
  bool shared;    /* of `call`: printed as `fn @name` */
  const char *name; /* shared: for dumps */
  NodeId first, last;
  VEC(GraphCapture) captures;
  VEC(ValueId) params;
  u32 term_first, term_count; /* Graph.operands */
  u32 exit;                   /* TERM_exit */
  u32 closed;                 /* counts up with each graph_close; 0: open */
  BlockId back;               /* cursor to return to at graph_close */
  NodeId back_before;
  u32 depth;
  OriginId origin;
} GraphBlock;

typedef struct GraphInput {
  ValueId value;
  u32 input; /* GuardSet.inputs; UINT32_MAX for the token and for parsed inputs without source */
  bool explicit_arg; /* an argument, for export */
} GraphInput;

/* What an operation by element gave for operands of these types, all of one shape or numbers: the same again. */
enum { INFERRED_OPERANDS = 3, INFERRED_PLACES = 32 };
typedef struct Inferred {
  u16 op; /* 0: nothing */
  u8 count, shaped; /* which operand has the result's shape; count: none */
  u8 dtype, device;
  bool weak;
  TypeId types[INFERRED_OPERANDS];
} Inferred;

struct Graph {
  Allocator *alloc;
  Arena arena; /* attributes, types, names */
  Toil *toil;   /* borrowed: of the compilation that it is made for; may be NULL */
  Names *names; /* borrowed: field names in recipes; may be NULL */
  const char *name; /* "pick#3" */
  u32 file;
  u64 ambient;
  SizePool sizes;
  GuardSet guards;
  ExitTable exits;
  VEC(const ArrayType *) types; /* 0 none, 1 token (NULL) */
  VEC(GraphValue) values;
  VEC(GraphNode) nodes;
  VEC(GraphBlock) blocks;
  VEC(u32) operands;
  VEC(GraphAttr) attrs;
  VEC(GraphOrigin) origins;
  VEC(GraphFrame) frames;
  VEC(GraphHost) hosts;
  VEC(GraphInput) inputs;
  VEC(u32) consts;   /* ValueIds of constants and sizes, for sharing */
  Inferred inferred[INFERRED_PLACES]; /* by a hash of operation and types */
  BlockId at;        /* cursor: builder calls append here … */
  NodeId before;     /* … or insert before this node of it */
  OriginId origin;   /* given to new nodes */
  u32 closes;        /* graph_close so far */
  u32 entry_exit;    /* an exit that undoes the region: registers as they were at entry; NO_EXIT: none */
  bool failed;       /* memory was refused */
  bool simple;       /* graph_simplify left it as it is */
  bool batched;      /* operations stand for calls of a mapped function, which the interpreter makes lane by lane */
  const char *defect; /* what the verifier found between passes; in the arena */
};

Graph *graph_new(Allocator *alloc, const char *name); /* root open, cursor at its end; NULL when refused */
void graph_free(Graph *g);

/* ---- speculation: recorder only (passes must not have edited since the mark) --------------------- */

typedef struct GraphMark {
  u32 types, values, nodes, blocks, operands, attrs, origins, frames, hosts, inputs, consts, closes;
  NodeId last; /* of the cursor's block */
  SizeMark sizes;
  GuardMark guards;
  ExitMark exits;
  BlockId at;
  OriginId origin;
} GraphMark;
GraphMark graph_mark(const Graph *g);
/* Undoes everything since the mark: nodes, nested blocks, captures lifted into blocks that were open then,
 * inputs, guards, sizes, exits. Dumps before and after are the same. Terminators set since are reopened. */
void graph_rollback(Graph *g, GraphMark m);

/* ---- types and values ---------------------------------------------------------------------------- */

TypeId graph_type(Graph *g, const ArrayType *t); /* interned; sizes are resolved first */
bool type_same(Graph *g, TypeId a, TypeId b);    /* sizes proved equal, all else the same */
bool type_fits(Graph *g, TypeId a, TypeId b);    /* the same but for weakness */
static inline const ArrayType *type_of(const Graph *g, TypeId t) { return g->types.data[t]; }
static inline const ArrayType *value_type(const Graph *g, ValueId v) { return g->types.data[g->values.data[v].type]; }
static inline bool value_is_token(const Graph *g, ValueId v) { return g->values.data[v].type == TYPE_TOKEN; }
ArrayType type_scalar(u32 dtype, bool weak);
TypeId graph_scalar_type(Graph *g, u32 dtype, bool weak);

ValueId graph_const(Graph *g, Value num);  /* V_NUM; shared by bits and type */
ValueId graph_const_f64(Graph *g, u32 dtype, f64 x); /* strong, converted to dtype */
ValueId graph_size(Graph *g, Dim d);       /* a weak i64; a non-negative constant becomes a const */
ValueId graph_size_typed(Graph *g, Dim d, u32 dtype, bool weak);
/* The number behind a value, if it is a constant or a constant size. */
bool value_const(const Graph *g, ValueId v, Value *out);
/* The size expression behind an integer value: of GV_size and integer constants. */
bool value_dim(Graph *g, ValueId v, Dim *out);

ValueId graph_input(Graph *g, TypeId type, u32 input /* GuardSet.inputs, or UINT32_MAX */);

/* ---- blocks -------------------------------------------------------------------------------------- */

/* Opens a block inside the cursor's block and moves the cursor into it. 0: memory was refused, or blocks are
 * nested deeper than GRAPH_MAX_DEPTH (then `failed` is not set). */
BlockId graph_open(Graph *g);
BlockId graph_open_shared(Graph *g, const char *name); /* closed over nothing: for `call` */
ValueId graph_param(Graph *g, BlockId b, TypeId type);
/* Ends the cursor's block. Values are lifted. The cursor goes back to where it was at graph_open. `exit` belongs to
 * TERM_exit, which has no values: an exit's recipes name what it needs, and may name values of the blocks around
 * directly, without captures. The root ends by TERM_exit. */
bool graph_close(Graph *g, TermKind term, const ValueId *values, u32 count, u32 exit);
/* The value as the cursor's block (or b) may use it. 0 when memory was refused, or v is out of scope. */
ValueId graph_lift(Graph *g, BlockId b, ValueId v);
/* The block a value belongs to; 0 for constants and sizes. */
BlockId value_block(const Graph *g, ValueId v);
/* Moves the cursor: to the end of b, or before n. */
void graph_at_end(Graph *g, BlockId b);
void graph_at(Graph *g, NodeId before);

/* ---- making nodes at the cursor; operands are lifted --------------------------------------------- */

OriginId graph_origin(Graph *g, Span span, u32 frame, u32 pc); /* and makes it current */
u32 graph_frame(Graph *g, struct Code *code, const char *name, OriginId call);

/* The general operation node, types given. Returns the node; results are node->result_first …. */
NodeId graph_node(Graph *g, NodeKind kind, u32 op, const ValueId *operands, u32 count, const GraphAttr *attrs,
                  u32 nattrs, const TypeId *results, u32 nresults);
/* An operation with its result types inferred by the rules of lang/ops (graph_infer). One result: returned.
 * 0: memory was refused or the rule said no (then *err is filled if given). */
ValueId graph_op(Graph *g, u32 op, const ValueId *operands, u32 count, const GraphAttr *attrs, u32 nattrs,
                 RuleError *err);
/* Short forms for rewrites. */
ValueId graph_op1(Graph *g, u32 op, ValueId a);
ValueId graph_op2(Graph *g, u32 op, ValueId a, ValueId b);
ValueId graph_op3(Graph *g, u32 op, ValueId a, ValueId b, ValueId c);
ValueId graph_reduce(Graph *g, u32 op, ValueId x, u32 axes_mask, bool keepdims);
ValueId graph_reshape(Graph *g, ValueId x, u32 rank, const Dim *dims);
ValueId graph_broadcast(Graph *g, ValueId x, u32 rank, const Dim *dims);
ValueId graph_transpose(Graph *g, ValueId x, const u32 *perm);
ValueId graph_convert(Graph *g, ValueId x, u32 dtype); /* x itself when it has that dtype, strong */
ValueId graph_weaken(Graph *g, ValueId x); /* the number as a weak one */
ValueId graph_full(Graph *g, u32 dtype, u32 rank, const Dim *dims, f64 fill);
/* An array of that type, with all elements the same. */
ValueId graph_moved(Graph *g, ValueId v, u32 device); /* v itself when it lies there, or has no axes */
ValueId graph_full_as(Graph *g, const ArrayType *t, f64 fill);
ValueId graph_index(Graph *g, ValueId x, const ValueId *operands, u32 count, const IndexItem *items, u32 nitems,
                    TypeId result);
/* x with v stored at items, or combined with what is there. Of a number x, which has no place, it is v as such. */
ValueId graph_update(Graph *g, u32 combine, ValueId x, const ValueId *operands, u32 count, const IndexItem *items,
                     u32 nitems, ValueId v);
/* Holds for every element of its operands: index (i, n): -n <= i < n · zero_div (y): y != 0 · neg_power (y): y >= 0 ·
 * nonneg (x): x >= 0 · cast_range (x, any value of the target dtype): x truncated fits it · size (a, b): a == b ·
 * empty (n): n > 0 · assertion (p), truth (p): p is not zero. */
NodeId graph_check(Graph *g, CheckKind kind, const ValueId *operands, u32 count, u32 exit);

/* Control nodes: the blocks were made by graph_open … graph_close inside the cursor's block. Captures are
 * merged and become the last operands. Result types come from the blocks: those of the yields (cond, call,
 * checkpoint, custom) or of the carried parameters, then stacked items (while, scan). */
NodeId graph_cond(Graph *g, ValueId p, BlockId then, BlockId els);
NodeId graph_while(Graph *g, const ValueId *init, u32 count, BlockId cond, BlockId body);
NodeId graph_scan(Graph *g, const ValueId *init, u32 count, const ValueId *xs, u32 nxs, Dim length, bool reverse,
                  bool index, BlockId body);
NodeId graph_ascan(Graph *g, const ValueId *xs, u32 nxs, bool reverse, BlockId body);
NodeId graph_call(Graph *g, BlockId shared, const ValueId *args, u32 count);
/* A pure function of numbers that calls itself: its body holds `self` nodes, made by graph_node, whose results are
 * of the types that it yields. */
NodeId graph_recur(Graph *g, const ValueId *xs, u32 count, BlockId body);
NodeId node_recur_around(const Graph *g, NodeId self); /* the one that a `self` calls; 0: none */
NodeId graph_custom(Graph *g, const ValueId *xs, u32 count, BlockId f, BlockId fwd, BlockId bwd);
NodeId graph_checkpoint(Graph *g, const ValueId *xs, u32 count, BlockId body);
/* Takes the token (operand 0) and gives the next (result 0). */
NodeId graph_host(Graph *g, u32 host, ValueId token, const ValueId *args, u32 count, const TypeId *results,
                  u32 nresults);
u32 graph_host_add(Graph *g, HostKind kind, const char *name, RecipeId fn, RecipeId args);

GraphAttr attr_hole(u32 param);
GraphAttr attr_nil(u32 param);
GraphAttr attr_bool(u32 param, bool b);
GraphAttr attr_int(u32 param, i64 i);
GraphAttr attr_float(u32 param, f64 f);
GraphAttr attr_dtype(u32 param, u32 dtype);
GraphAttr attr_dim(u32 param, Dim d);
GraphAttr attr_list(u32 param, u32 count);
/* These copy into the graph's arena; kind ATTR_hole and g->failed when memory was refused. */
GraphAttr attr_text(Graph *g, u32 param, const char *s, u32 len);
GraphAttr attr_ints(Graph *g, u32 param, const i64 *v, u32 count, bool pairs);
GraphAttr attr_dims(Graph *g, u32 param, const Dim *v, u32 count);
GraphAttr attr_items(Graph *g, const IndexItem *items, u32 count);
u32 op_param(u32 op, const char *name); /* index of a parameter; UINT32_MAX when there is none */

/* ---- reading ------------------------------------------------------------------------------------- */

static inline const GraphNode *graph_node_at(const Graph *g, NodeId n) { return &g->nodes.data[n]; }
static inline ValueId node_operand(const Graph *g, NodeId n, u32 i) {
  return g->operands.data[g->nodes.data[n].operand_first + i];
}
static inline ValueId node_result(const Graph *g, NodeId n, u32 i) { return g->nodes.data[n].result_first + i; }
static inline const GraphAttr *node_attr(const Graph *g, NodeId n, u32 i) {
  return &g->attrs.data[g->nodes.data[n].attr_first + i];
}
static inline NodeId block_first(const Graph *g, BlockId b) { return g->blocks.data[b].first; }
static inline NodeId node_next(const Graph *g, NodeId n) { return g->nodes.data[n].next; }
static inline NodeId value_node(const Graph *g, ValueId v) {
  return g->values.data[v].origin == GV_result ? g->values.data[v].def : 0;
}
static inline ValueId block_result(const Graph *g, BlockId b, u32 i) {
  return g->operands.data[g->blocks.data[b].term_first + i];
}
extern const u8 node_kind_subs[NODE_COUNT];
/* number of blocks it holds */
static inline u32 node_subs(const Graph *g, NodeId n) { return node_kind_subs[g->nodes.data[n].kind]; }
u32 node_captures(const Graph *g, NodeId n, u32 *first); /* number of capture operands and the first of them */
bool node_is_effect(const Graph *g, NodeId n); /* takes the token: never dropped, never moved across another */

/* How the parameters of an `op` node are bound. */
typedef struct GraphArg {
  u8 kind;  /* ARG_* */
  ValueId value;         /* ARG_value */
  const ValueId *values; /* ARG_list: into Graph.operands */
  u32 count;
  const GraphAttr *attr; /* ARG_attr */
} GraphArg;
enum { ARG_hole /* 0: bind_args clears */, ARG_value, ARG_list, ARG_attr };
void node_args(const Graph *g, NodeId n, GraphArg out[OP_MAX_PARAMS]);
/* Operands stand in the order of the parameters: so many of them are of this one. */
static inline u32 arg_operands(const GraphArg *a) {
  return a->kind == ARG_value ? 1 : a->kind == ARG_list ? a->count : 0;
}
void bind_args(u32 op, const ValueId *operands, u32 count, const GraphAttr *attrs, u32 nattrs,
               GraphArg out[OP_MAX_PARAMS]);
/* axis, axes: the attribute or parameter default as a mask over rank (nil: all); false when not constant. */
bool arg_axes(const GraphArg *a, u32 rank, u32 *mask);
bool arg_int(const GraphArg *a, i64 fallback, i64 *out);
bool arg_bool(const GraphArg *a, bool fallback);
u32 arg_dtype(const GraphArg *a); /* DT_NONE when not given */

/* Every node in `root` and the blocks inside, in program order, a control node before what it holds. Iterative.
 * `walk_next` may be called after the node it gave was unlinked. */
typedef struct GraphWalk {
  const Graph *g;
  NodeId node; /* current */
  BlockId root, block;
  u32 sub;
  NodeId upcoming;
} GraphWalk;
GraphWalk walk_begin(const Graph *g, BlockId root);
bool walk_next(GraphWalk *w); /* false at the end; else w->node, w->block */
/* Blocks reachable from the root, outer before inner, shared ones once; ids into `out` (caller frees). */
bool graph_blocks(const Graph *g, Allocator *a, u32 **out, u32 *count) MUST_USE;

/* How often nodes, blocks' terminators and exits that can be taken use each value, by name or by speaking of an
 * unbacked size that it carries. A snapshot. */
typedef struct GraphUses {
  Allocator *alloc;
  u32 *count; /* per value */
  u32 values;
} GraphUses;
/* Every value that an exit needs, those that carry its unbacked sizes too. `each` may see one twice. */
void graph_exit_values(const Graph *g, u32 exit, void (*each)(void *ctx, u32 value), void *ctx);
/* Every value that carries an unbacked size of the node. */
void node_size_values(const Graph *g, NodeId n, void (*each)(void *ctx, u32 value), void *ctx);
/* Marks the exits that the graph can take: one byte per exit. */
bool graph_used_exits(const Graph *g, u8 *used) MUST_USE;
bool graph_uses(const Graph *g, Allocator *alloc, GraphUses *out) MUST_USE;
void graph_uses_free(GraphUses *u);
static inline u32 use_count(const GraphUses *u, ValueId v) { return u->count[v]; }

/* ---- editing: passes only ------------------------------------------------------------------------ */

void graph_unlink(Graph *g, NodeId n); /* results must be unused */
/* Every use of map[v] != 0 anywhere reachable, exits included, becomes map[v] (followed to its end). The
 * replacement must belong to the same block as v or be a constant or size. */
bool graph_replace(Graph *g, const ValueId *map, u32 count) MUST_USE;
void graph_replace_one(Graph *g, ValueId from, ValueId to);
void graph_set_operand(Graph *g, NodeId n, u32 i, ValueId v); /* v belongs to the node's block */
/* Others instead of all results, which the caller then replaces; instead of all operands; of what a block gives. */
bool graph_renew_results(Graph *g, NodeId n, const TypeId *types, u32 count) MUST_USE;
bool graph_renew_operands(Graph *g, NodeId n, const ValueId *values, u32 count) MUST_USE;
bool graph_renew_terminator(Graph *g, BlockId b, const ValueId *values, u32 count) MUST_USE;
/* Removes capture i of all blocks of a control node, with its operand (its parameters must be unused). */
void graph_drop_capture(Graph *g, NodeId n, u32 i);

/* Copies the nodes of block `from` to the cursor. map (values at entry, grown by the caller to hold every
 * value of the graph: use ValueMap) says what parameters and outer values become; values that are not mapped
 * stay. Nested blocks are cloned too. The terminator is not copied: map its values. */
typedef struct ValueMap {
  Allocator *alloc;
  ValueId *to;
  u32 count;
  VEC(u32) syms; /* unbacked symbols that the cloned values carry, and the sizes that stand for them */
  VEC(Dim) sizes;
} ValueMap;
void map_init(ValueMap *m, Allocator *alloc);
void map_free(ValueMap *m);
bool map_set(ValueMap *m, ValueId from, ValueId to) MUST_USE;
/* What a block of node n captures is what the node's operands are in the copy. */
bool map_captures(Graph *g, ValueMap *m, NodeId n, BlockId b) MUST_USE;
/* Unbacked sizes that `from` carries are new ones in the copy, carried by `to`; for callers that map parameters to
 * results. */
bool map_carried(Graph *g, ValueMap *m, ValueId from, ValueId to) MUST_USE;
TypeId map_type(Graph *g, const ValueMap *m, TypeId t);
static inline ValueId map_get(const ValueMap *m, ValueId v) { return v < m->count && m->to[v] ? m->to[v] : v; }
bool graph_inline(Graph *g, BlockId from, ValueMap *map) MUST_USE;
/* Of them those that `keeps` says yes to. */
bool graph_inline_some(Graph *g, BlockId from, ValueMap *map, bool (*keeps)(const Graph *g, NodeId n, const u8 *live),
                       const u8 *live) MUST_USE;
/* One node with everything in it, operands through the map, results entered into it. 0 when refused. */
NodeId graph_clone_node(Graph *g, NodeId n, ValueMap *map);
/* A copy of a whole block as a new open-and-closed block inside the cursor's block, with fresh parameters. */
BlockId graph_clone_block(Graph *g, BlockId from, ValueMap *map);

/* ---- rules --------------------------------------------------------------------------------------- */

/* Forgets what was inferred: types are gone, or each is to be looked at. */
void graph_infer_anew(Graph *g);
/* Result types of an operation node from its operands and attributes, by the rules of lang/ops. `dims`
 * decides what is not proved. False: the rule said no (err filled) or memory was refused (g->failed). */
bool graph_infer(Graph *g, DimCtx *dims, u32 op, const ValueId *operands, u32 count, const GraphAttr *attrs, u32 nattrs,
                 ArrayType *results, u32 *nresults, RuleError *err);
bool graph_has_rule(u32 op);   /* is it a node of a graph? */
bool graph_has_parts(u32 op); /* is it a list of views there? */
bool graph_infer_index(Graph *g, DimCtx *dims, ValueId x, const ValueId *operands, u32 count, const IndexItem *items,
                       u32 nitems, ArrayType *result, RuleError *err);

/* ---- text, verifier, interpreter, passes --------------------------------------------------------- */

/* The text form, by example (everything graph_print writes, graph_parse reads back to the same text):
 *
 *   graph pick#3  file 1  ambient 0
 *   frame 0 pick
 *   sym n = size(arg0, 0) in [0, 2^62)            ; unbacked ones: sym u1 = %7 in [0, 1000], sym u2 = size(%8, 1) in …
 *   in %1: f64[n] = arg0
 *   in !2                                         ; the token
 *   %3 = multiply %1 0.5 : f64[n]  @13:11         ; weak constants; strong ones say their type: 0.5:f64
 *   %4 = sum %3 {axis=[0], keepdims=true} : f64[1]
 *   %5 = concat %3 %1 {xs=*2} : f64[<2*n>]        ; symbols stand alone, other size expressions in <>
 *   %6 = index %1[0, n:<2*n>:1, nil, ..., @%7, ?%8] : f64[n]     ; @ array, ? mask
 *   %7 = update %1[%2] add %3 : f64[n]            ; or `set`
 *   check index %2 n -> 1
 *   !8 %9 = host "emit" !2 %3 -> 2 : ! f64[]
 *   %10 = cond %9 (%3) {
 *     then (%11: f64[n]) {
 *       yield %11
 *     }
 *     else (%12: f64[n]) {
 *       exit 3
 *     }
 *   } : f64[n]
 *   %13 %14 = while (%4 0) (%3) {
 *     cond (%15: f64[n], %16: f64[], %17: i64[]) { … yield %18 }
 *     body (…) { … next %19 %20 }
 *   } -> 4 : f64[] i64[]
 *   %21 %22 = scan (%4) (%3) (%1) length n reverse index { body (…) { … next %23 %24 } } : …
 *   out %13 %14 -> 0
 *   exit 0 return { pick: ret = list(%13, %14) }
 *   exit 1 check index { pick pc 7: r0 = %1, r1 = =arg1 | square/1 pc 2 -> r5: r0 = <n + 1> } write [=global "k": %3]
 *
 * Values are numbered in the order of the text. `sources` NULL: no spans (but those that came from text). */
void graph_print(const Graph *g, const Sources *sources, Buf *out);
/* The numbers graph_print gives, by ValueId (0: not printed); g->values.count of them, freed by the caller. */
bool graph_numbers(const Graph *g, Allocator *a, u32 **out) MUST_USE;
const char *node_kind_name(u32 kind); /* "op", "cond" … */
void node_print(const Graph *g, NodeId n, Buf *out); /* one line by ids, without its blocks */
void type_print(const Graph *g, TypeId t, Buf *out);
void value_print(const Graph *g, ValueId v, Buf *out); /* %3, 0.5, n + 1 */
/* NULL: a syntax error (err says what and where, if given) or memory was refused (err empty). */
Graph *graph_parse(Allocator *alloc, Names *names, const char *text, size_t len, char *err, size_t err_cap);

/* The rules a graph obeys, checked apart from the builder: scopes, types, terminators, tokens, exits. False:
 * `out` names every violation, one per line. */
bool graph_verify(Graph *g, Buf *out) MUST_USE; /* may add size expressions, nothing else */

/* Unbacked symbols: SizeSym.source is the value that carries the number: an integer of rank 0, or an array whose axis
 * SizeSym.axis has that size. What asks that two of them be equal is a check `size` of two size expressions, and the
 * sizes count as equal everywhere; so the check must stand before everything that speaks of the symbol that is known
 * last. The recorder marks where that is by an anchor, a check `nonneg` of the symbol alone, and the pass `asserts`
 * moves size checks there. */

/* The reference interpreter: runs a graph through the VM's eager kernels, one value per ValueId. */
typedef struct GraphRun {
  Vm *vm;
  const Graph *graph;
  Value *values;  /* by ValueId, owned; V_HOLE: not computed. Tokens are nil */
  i64 *syms;      /* by symbol */
  u8 *known;      /* by symbol: its number is there */
  u32 count;
  u32 limit_exit; /* the latest exit that is whole */
  bool silent;    /* prints nothing: the compiled code beside it does */
  Region *region; /* that it runs, and its slots: host functions can be called. NULL: they cannot */
  u64 *slots;
  u32 exit;       /* taken, while it runs */
  BlockId term;   /* whose terminator ended the last block */
  u32 calls;      /* of functions by themselves, that stand inside each other … */
  bool too_deep;  /* … more than it takes: it left for the interpreter */
} GraphRun;
WeftStatus run_init(GraphRun *r, Vm *vm, const Graph *g) MUST_USE;
void run_free(GraphRun *r);
/* Inputs from the slots of a region (borrowed: the values get counts of their own). */
void run_inputs(GraphRun *r, const u64 *slots);
/* A value as a slot holds it, and back (owned both ways). */
u64 slot_of_value(Value v);
Value value_of_slot(const Graph *g, ValueId v, u64 slot);
/* Runs the root. WEFT_OK: *exit is taken (an operation that raises counts as a failed check: the latest exit that is
 * whole). WEFT_ERROR: an error that `try` does not catch stands in the VM, *exit is the state to restore; or
 * the graph is wrong. */
WeftStatus run_root(GraphRun *r, u32 *exit) MUST_USE;
/* Value v, computed from values that are there (inputs, what was set) when it is missing: for exits whose values were
 * fused away. Goes back through nodes without effects, in the block of v and those around it. *out borrowed. */
WeftStatus run_value(GraphRun *r, ValueId v, Value *out) MUST_USE;
void run_fill_exit(const GraphRun *r, u32 exit); /* the slots that the exit binds */
void run_set(GraphRun *r, ValueId v, Value value); /* consumes value */
WeftStatus run_size(GraphRun *r, Dim d, i64 *out) MUST_USE; /* error: out of range, or of an unknown symbol */

/* ---- what the graph interpreter shares with other runners of graphs ---- */

/* Where attributes get sizes and index operands from. `position`: of the size within the attribute (dims: its number;
 * index: 3 * item + part; dim: 0). Operands are borrowed, numbered as in IndexItem.at. */
typedef struct AttrSource {
  Vm *vm;
  WeftStatus (*size)(void *ctx, Dim d, u32 position, i64 *out);
  WeftStatus (*operand)(void *ctx, u32 number, Value *out);
  void *ctx;
} AttrSource;
/* An attribute as an eager kernel takes it. *out owned. */
WeftStatus attr_value(const AttrSource *s, const GraphAttr *a, Value *out) MUST_USE;
/* An index as vm_index takes it: kinds of items, registers (borrowed values and numbers). */
enum { INDEX_MAX_ITEMS = 2 * TYPE_MAX_RANK, INDEX_MAX_REGS = 3 * INDEX_MAX_ITEMS };
WeftStatus attr_index(const AttrSource *s, const GraphAttr *a, u8 items[INDEX_MAX_ITEMS],
                      Value regs[INDEX_MAX_REGS]) MUST_USE;
/* x[items] = v or x[items] op= v on a value: consumes x and v; *out owned. x is updated in place when nobody else
 * holds it. On error x is given back in *out. */
WeftStatus attr_update(Vm *vm, u32 combine, Value x, const u8 *items, u32 count, const Value *regs, Value v,
                       Value *out) MUST_USE;
bool check_holds(u32 check, Value a, Value b); /* one element; b of another dtype for cast_range */
/* Calls a host function for the node n of a region that runs. HOST_CALL_KEPT: *out is what was relied on (owned).
 * Else the region leaves by the node's exit, and vm->hosted says how the call ended; `p->leave` brings the frames
 * to that exit. */
typedef enum HostCallEnd { HOST_CALL_KEPT, HOST_CALL_LEAVES } HostCallEnd;
HostCallEnd host_call_in(Vm *vm, Region *region, NodeId n, Pending *p, const Value *args, u32 nargs,
                         Value *out) MUST_USE;
/* What `p->leave` ends with, once the slots that the exit binds are filled: the frames of the region's exit. */
WeftStatus region_leave_early(Vm *vm, Region *region, u32 exit, u64 *slots) MUST_USE;
bool graph_calls_host(const Graph *g);

/* Does what a host node does. Borrows args, its operands behind the token; *out owned. */
WeftStatus host_call(Vm *vm, const Graph *g, u32 host, const Value *args, u32 nargs, Value *out) MUST_USE;

/* A value or size that an exit needs, wherever the backend left it: a bound slot, an input, or computed by run_value
 * from those. *out owned. */
WeftStatus region_value(Vm *vm, Region *r, u32 exit, const u64 *slots, u32 value, Value *out) MUST_USE;
WeftStatus region_size(Vm *vm, Region *r, u32 exit, const u64 *slots, Dim d, i64 *out) MUST_USE;

/* The backend `interp`: a region that runs its graph. */
extern const Backend backend_interp;
extern const Backend backend_verify; /* mir beside the graph's interpreter */

/* Passes that need no lowering (list and order: graph_passes.c), repeated until nothing changes, within a bound. They
 * keep what exits see, effects, checks, and the bits of every result. False: memory was refused (the graph is
 * still whole), or, in debug builds, the verifier found a defect (`defect` says which). */
bool graph_simplify(Graph *g) MUST_USE;
/* One of its passes (graph_hoist.c): what stays the same in loops moves before them. blocks: of graph_blocks. */
bool graph_hoist(Graph *g, const u32 *blocks, u32 count, bool *changed) MUST_USE;
/* Does an unbacked size come from `v`? Such a value stays where it is (graph_passes.c). */
bool graph_carries_size(const Graph *g, ValueId v);
bool graph_asserts(Graph *g, const u32 *blocks, u32 count, bool *changed) MUST_USE;
/* Once a graph is recorded: blocks end at a check of sizes that cannot hold (graph_cut.c). False: memory was refused,
 * or there are no steps left. */
bool graph_cut(Graph *g) MUST_USE;
/* Simplifies, then takes inputs that nothing uses out of the graph and out of GuardSet.inputs, which renumbers both:
 * before guard_compile. Their guards stay. */
bool graph_prune(Graph *g) MUST_USE;
u32 graph_node_count(const Graph *g); /* reachable nodes */

#endif
