/* vm.h — facade of the virtual machine: its state, errors, calls, safepoints and the hook tables through
 * which rooms above are called. All state of one VM is this struct; nothing is global.
 *
 * Reading order: value.h (value list record text), array.h (array strided), alloc, state (stack code module eval), then
 * interp (the loop; make field sequence literal for its instructions), operate and scalar (operators), compare, call,
 * index and update, error, safepoint, ref (the cycle collector). */
#ifndef WEFT_VM_VM_H
#define WEFT_VM_VM_H

#include "lang/stats.h"
#include "lang/switches.h"
#include "lang/tunables.h"
#include "vm/array.h"
#include "vm/value.h"

/* ---- code on the VM's side -------------------------------------------------------------------- */

typedef struct SiteState {
  /* times passed, saturating; a loop whose trips are much work counts them for more. Below 0: the tier is not asked for
   * so long */
  i32 count;
  u16 taken;    /* branch sites: recent outcomes, newest in bit 0, below the highest bit that is set; at first 1 */
  u16 flags;    /* SITE_* */
  u32 work;     /* low half of vm->work at the last back-edge or call */
  void *entry;  /* tracer: its place here, or NULL */
} SiteState;
enum { TAKEN_SEEN = 16, TAKEN_FULL = 1 << 15 }; /* outcomes that are kept, the mark included; fifteen are known */
enum {
  SITE_COLD = 1,     /* never ask the tier again (demoted) */
  SITE_WAS_COLD = 2, /* asked all the same, for one run */
  SITE_STARTS = 4,   /* a loop that is compiled: the tier is asked before the first trip too */
  SITE_AWAITED = 8,  /* a call: the tier is asked when it returns */
};

/* A prototype made runnable in one VM: constants as values, side arrays for counters and trace entries. */
typedef struct Code {
  Obj head;
  Proto *proto;       /* counted */
  struct Module *module; /* borrowed: the VM keeps modules until it ends */
  Value *consts;
  SiteState *sites;   /* parallel to proto->sites */
  struct Code **protos; /* runnable children, made when first needed */
  /* pc -> site index + 1, 0 none (the entry is site 0 and not in here); that of a `for` loop's forprep is the loop's */
  u32 *site_of_pc;
  Shape **shapes;     /* parallel to proto->descs: the interned shape of a KEYS descriptor, made when first needed */
  Liveness *live;     /* made when a handler is first entered */
  /* of its group: first made; counts of the whole group stand in its head. A lone code leads itself */
  struct Code *leader;
  struct Code **members; /* of the leader of a group: group_size codes; else NULL */
  struct Code *next, *before; /* all codes of the VM */
  u64 id;
  u32 awaited;        /* sites marked SITE_AWAITED */
} Code;

typedef struct Frame {
  Code *code;
  Fn *fn;          /* borrowed from the caller's register or kept by the VM; NULL for a module body */
  Value *base;     /* registers */
  u32 pc;          /* next instruction; of a caller: the call instruction itself */
  u16 result;      /* register of the caller that takes the result */
  u16 flags;       /* FRAME_* */
  u32 tail_calls;  /* tail calls elided above this frame */
  Value self;      /* owns the function that runs (tail calls replace it) */
} Frame;
enum {
  FRAME_NATIVE_CALL = 1, /* the caller is C (vm_call): return leaves the loop */
  FRAME_MODULE = 2,      /* a module's body */
  FRAME_EAGER = 4,       /* runs under eager(f): the tier is not asked */
  FRAME_RESUME = 8,      /* when a call returns into it, the tier is asked to go on */
  FRAME_WATCHED = 16,    /* the tier is told when it returns */
  FRAME_PROBED = 32,     /* the tier measures a loop of it */
  /* the tier is asked at each call that returns into it: its code has sites marked SITE_AWAITED */
  FRAME_AWAITS = 64,
};

/* ---- errors ----------------------------------------------------------------------------------- */

typedef struct TraceLine {
  Name function; /* 0: lambda or module body */
  Span span;     /* of the call; of a function of the library where it failed */
  u32 tail_calls;
  bool library;
} TraceLine;

/* Which limit of the host an error comes from: weft.h's WeftLimit. A program cannot make one that has it. */
typedef enum LimitKind { LIMIT_none, LIMIT_memory, LIMIT_fuel, LIMIT_deadline, LIMIT_interrupt, LIMIT_exit, LIMIT_depth,
                         LIMIT_stack, LIMIT_output, LIMIT_files, LIMIT_env, LIMIT_imports, LIMIT_gpu,
                         LIMIT_input } LimitKind;

typedef struct ErrorState {
  bool raised;
  u8 kind; /* ErrorKind */
  Span span;
  Value message; /* text */
  /* memory was refused: 1 by the host, 2 by the limit. Without a message a fixed text stands for it */
  u8 out_of_memory;
  VEC(TraceLine) trace;
  u8 limit;      /* LimitKind */
  bool final;    /* `try` does not catch it: fuel, deadline, interrupt, exit, a defect */
  bool told;     /* to the hook */
} ErrorState;

/* ---- operations ------------------------------------------------------------------------------- */

/* The standard library's functions that are written in Weft: what the build makes of stdlib/modules/. */
typedef struct LibraryModule {
  const char *path, *text; /* its source, as errors show it */
  size_t text_len;
  const char *code;        /* proto_save */
  size_t code_len;
} LibraryModule;
typedef struct Library {
  const LibraryModule *modules;
  const u8 *module_of; /* by OpId: 1 + its module, 0 where the operation is no function in Weft */
} Library;

/* An eager kernel. args: one value per parameter of the signature, V_HOLE when not given; owned by the
 * caller, but the kernel may take args[i] (leaving V_HOLE) when it is the last holder, to reuse memory.
 * *out is owned by the caller on success; on failure args are as they were. */
typedef WeftStatus (*EagerFn)(Vm *vm, Value *args, Value *out);
typedef struct OpHook {
  EagerFn eager; /* NULL: "not supported" */
  u8 plain;      /* its parameters take arguments as they stand: 1 yes, 2 no, 0 not looked at yet */
} OpHook;

/* Two arrays that stay as they are, of an operation whose row of kernels is its own: a + b of few elements, as most
 * are. */
typedef enum PairWent { PAIR_OTHER, PAIR_DONE, PAIR_FAILED } PairWent; /* PAIR_OTHER: nothing was done */
typedef PairWent (*PairFn)(Vm *vm, u32 op, const Array *a, const Array *b, Value *out);

/* ---- hook tables (filled by api/ when a VM is made); a NULL table means: off -------------------- */

typedef enum TierResult {
  TIER_STAY,   /* nothing happened: interpret on */
  TIER_RAN,    /* frames were changed (advanced, popped or pushed): reload from vm->frame and go on */
  TIER_RAISED, /* an error stands in the VM at the current frame's pc: look for a handler */
} TierResult;

typedef struct TierHooks {
  /* Called at function entry and at a loop head when the site is hot or has an entry. */
  TierResult (*site)(Vm *vm, Frame *frame, u32 site);
  /* A `for` loop marked SITE_STARTS is about to begin. */
  TierResult (*start)(Vm *vm, Frame *frame, u32 site);
  /* A call returned into a frame marked FRAME_RESUME or FRAME_AWAITS, whose pc stands behind the call. */
  TierResult (*resume)(Vm *vm, Frame *frame);
  /* Eager operations made vm->large_left units of elements since this was asked last, or map is about to walk a
   * long range; the frame stands behind the last one. */
  TierResult (*large)(Vm *vm, Frame *frame);
  /* The top frame, marked FRAME_WATCHED, is about to return. */
  void (*returns)(Vm *vm);
  void (*code_freed)(Vm *vm, Code *code);
  void (*point)(Vm *vm); /* calls sources_point for each text that a log points into */
  void (*vm_freed)(Vm *vm);
} TierHooks;

/* Who is told of steps of programs while they run (vm/hook.c): weft.h's WeftHook. */
enum { HOOK_CALL = 1, HOOK_RETURN = 2, HOOK_LINE = 4, HOOK_ERROR = 8, HOOK_ALL = 15 };
typedef struct Hook {
  WeftStatus (*call)(void *ctx, u32 event); /* NULL: nobody. WEFT_ERROR: an error stands */
  void *ctx;
  u32 mask;           /* HOOK_* that it is told of */
  bool busy;          /* it runs: what it has run is told to nobody */
  /* the last instruction that was looked at: depth of its frame (0: none), pc, line */
  u32 depth, pc, line, file;
  const Value *result; /* while it is told of a return */
  TierHooks resting;  /* what `tier` of the VM points to meanwhile: nothing is compiled, or entered */
  const TierHooks *tier; /* and what it pointed to before */
} Hook;

typedef struct TapeHooks {
  /* An operation is about to run while a tape is active and some argument is tracked. */
  WeftStatus (*op)(Vm *vm, u32 op, Value *args, Value *out);
  WeftStatus (*index)(Vm *vm, Value obj, const Desc *d, const Value *items, Value *out);
  WeftStatus (*update)(Vm *vm, Value *root, const Desc *d, u32 first_step, const Value *keys, Value value);
  void (*destroy)(Vm *vm, void *tracked);
} TapeHooks;

typedef struct DeviceHooks {
  WeftStatus (*alloc)(Vm *vm, size_t bytes, void **out);
  void (*free)(Vm *vm, void *data, size_t bytes);
  WeftStatus (*to_host)(Vm *vm, const void *device, void *host, size_t bytes);
  WeftStatus (*from_host)(Vm *vm, const void *host, void *device, size_t bytes);
  /* An operation on elements, with an argument on this device. */
  WeftStatus (*op)(Vm *vm, u32 op, Value *args, Value *out);
} DeviceHooks;

/* Files of the host in place of the system's: the WeftFiles of weft.h, which says what each does. */
typedef struct VmFiles {
  size_t size;
  void *context;
  int (*open)(void *context, const char *path, void **file);
  ptrdiff_t (*read)(void *context, void *file, u64 at, char *to, size_t room);
  void (*close)(void *context, void *file);
  int (*write)(void *context, const char *path, const char *data, size_t bytes, bool append);
  int (*about)(void *context, const char *path, u64 *bytes, bool *folder);
  int (*list)(void *context, const char *path, void (*give)(void *to, const char *name), void *to);
  int (*make_folder)(void *context, const char *path);
  int (*remove)(void *context, const char *path);
} VmFiles;

/* A host function: arguments borrowed, *out owned by the caller. */
typedef struct HostFn {
  const char *name;
  WeftStatus (*call)(Vm *vm, void *ctx, const Value *args, u32 nargs, Value *out);
  void *ctx;
  void (*release)(void *ctx);
  Value rule; /* nil, or the function that a trace calls in its place; borrowed, lives as long as the host function */
  bool catches_up; /* looks at the program, or changes it, behind vm_catch_up only: then compiled code may call it */
  bool suspends;   /* may give WEFT_SUSPENDED; called by the interpreter alone, where the program can wait */
  u64 gives;       /* what it gave: host_word, 0 nothing yet, HOST_GIVES_VARIES now this, now that */
} HostFn;
#define HOST_GIVES_VARIES UINT64_MAX
u64 host_word(Value v); /* vm/call.c: kind, dtype, weakness, rank and device of a result */

/* A host function that compiled code calls. While it runs the frames and variables are as they were when the region was
 * entered; `leave` makes them what they are at the call. */
typedef struct Pending {
  struct Pending *outer;
  WeftStatus (*leave)(struct Pending *p);
  bool left, failed; /* that was done; it failed */
} Pending;

/* How such a call ended when the region must be left for it. */
typedef struct Hosted {
  bool returned, raised;
  bool left;   /* the frames stand already */
  bool failed; /* or could not be made */
  bool misfit; /* the result is none that was relied on */
  Value value; /* returned; owned */
} Hosted;

/* Calls a FN_TRANSFORM value. args borrowed; names[i] 0 = positional, NULL = all positional. */
typedef WeftStatus (*TransformFn)(Vm *vm, Fn *fn, Value *args, const Name *names, u32 nargs, Value *out);

/* Text of a value by a format spec (an f-string's part behind the colon). */
typedef WeftStatus (*FormatFn)(Vm *vm, Value v, const char *spec, size_t len, Value *out);

enum { DEVICE_MAX = 4 };

/* Names the VM itself looks for. */
#define KNOWN_NAMES(K) \
  K(value) K(shape) K(dtype) K(ndim) K(size) K(T) K(device) K(message) K(kind) K(trace) K(cpu) K(gpu) K(axis)
enum {
#define K(n) KN_##n,
  KNOWN_NAMES(K)
#undef K
  KN_COUNT
};

enum { SMALL_STEP = 32, SMALL_CLASSES = 29 }; /* vm/alloc.h: objects of up to 896 bytes */

enum {
  AMBIENT_TAPE = 0xff,  /* number of active gradient tapes */
  AMBIENT_DEVICE = 8    /* from this bit on, 8 of them: the default device */
};

/* ---- the VM ----------------------------------------------------------------------------------- */

typedef struct VmLimits {
  u64 bytes;       /* 0: no limit */
  u64 fuel;        /* units left; UINT64_MAX: no limit */
  f64 deadline;    /* monotonic seconds; 0: none */
  u32 depth;       /* frames and nested native calls */
  u64 output;      /* bytes of output left; UINT64_MAX: no limit */
  bool allow_files, allow_env, allow_imports, allow_gpu;
} VmLimits;

typedef struct VmStats { /* rows of stats.def are read through trace.stats; these are the VM's own */
  u64 array_allocs, array_copies, instructions_sampled, calls;
  u64 bytes_now, bytes_peak;
} VmStats;

enum { KEEP_BLOCKS = 32 };
typedef struct KeptBlock {
  void *data;
  size_t bytes;
  u64 since; /* Kept.now when it was freed */
} KeptBlock;
typedef struct TextPlaces { /* bytes at which every 64th code point of a text begins, as far as they were asked for */
  const Text *text; /* NULL: none; forgotten when the text goes */
  u32 *at, count, cap;
} TextPlaces;

enum { POINTS_KEPT = 4, POINTS_LEAST = 64 };
typedef struct TextPoints { /* the code points of a long text, packed for a region (guards/rows.c) */
  const Text *text; /* NULL: none; forgotten when the text goes */
  bool packed;      /* once before */
  Value column;     /* nil: not kept yet */
} TextPoints;

typedef struct Kept { /* large freed storage (vm/keep.c); blocks[0] was freed first */
  u64 bytes, most; /* kept, and at most */
  u64 now;         /* requests for large storage so far */
  u32 count;
  KeptBlock blocks[KEEP_BLOCKS];
} Kept;

struct Vm {
  Allocator alloc; /* first member: &vm->alloc is the allocator of everything; counts and limits */
  Allocator *host_alloc;
  Names names;
  Sources sources;
  Value *stack, *stack_end;
  Frame *frames;      /* frames[0 … frame_count-1] */
  u32 frame_count, frame_cap;
  u32 native_depth;   /* nested C calls */
  ErrorState error;
  VmLimits limits;
  VmStats stats;
  Toil toil;          /* of the compilation in progress */
  bool suspends;      /* a host function lets the program wait: frames stay, the interpreter returns */
  volatile int interrupted; /* set by weft_interrupt: a signal handler or another thread may */
  u32 poll_countdown;
  /* the interpreter does again what compiled code did (tracer/report/rehearse.c): no host is called */
  bool rehearses;
  bool taped;         /* there was a gradient tape: what it tracked may have gone anywhere */
  /* AMBIENT_*; one word: tape level, eager mode, default device, transform stack; guards compare it */
  u64 ambient;
  OpHook ops[OP_COUNT];
  const TierHooks *tier;
  void *tier_state;   /* tracer's, per VM */
  Hook hook;
  const TapeHooks *tape;
  void *tape_state;
  const DeviceHooks *devices[DEVICE_MAX];
  void *device_state[DEVICE_MAX];
  const char *device_names[DEVICE_MAX]; /* borrowed; NULL behind the last */
  u64 random_key, random_counter; /* the global random stream: its seed, and the number of the next draw */
  void *stdlib_state; /* library handles … */
  void (*closers[8])(Vm *vm); /* called by vm_free, last first, before anything is freed */
  u32 closer_count;
  struct Module **modules;
  u32 module_count, module_cap;
  Shape **shapes;     /* intern table */
  u32 shape_slots, shape_count;
  Ref *refs;
  Code *codes;
  void *small_free[SMALL_CLASSES]; /* free lists of small objects, by size / SMALL_STEP */
  void *slabs;
  /* a slab for errors, so that one can be made and caught when memory is refused; NULL: it is in use */
  void *reserve;
  u64 overdraft;      /* bytes beyond limits.bytes that may be taken: while an error is made */
  size_t array_room; /* bytes behind the elements of arrays that are made now: for a library that reads too far */
  Kept kept;
  TextPlaces text_places; /* of the long text that is not ASCII alone and was indexed last */
  TextPoints text_points[POINTS_KEPT]; /* of those packed last, the newest first */
  bool pooled; /* counted among the users of the pool */
  char *slab_at, *slab_end;
  bool refused_by_limit; /* the last refusal came from limits.bytes */
  u64 refusals;       /* how often memory was refused */
  Name known[KN_COUNT];
  Name *op_params;       /* OP_COUNT rows of OP_MAX_PARAMS names, made when a keyword is first given to a built-in */
  Value builtins[OP_COUNT]; /* the function value of each operation, nil until first asked for */
  Value letters[128];       /* the text of each ASCII character, nil until one is first made */
  Value types[V_HOLE];      /* what type() says of each kind, nil until first asked for */
  TransformFn transforms[TF_COUNT]; /* NULL: "not supported" (TF_eager is the VM's own) */
  FormatFn format;
  void (*on_copy)(Vm *vm); /* told of every copy made because a value was shared; may be NULL */
  Tunables tunables;   /* hot_calls, hot_trips: from when on the tier is asked */
  Stats counters;      /* rows of stats.def that the rooms above count */
  u32 walked;          /* nodes of trees, for vm_walk */
  u64 dead;            /* objects that are to be destroyed, linked (value.c); 0: none */
  bool ending;         /* in vm_end: nothing waits there any more */
  u32 poll_batch;      /* units of fuel that poll_countdown stood for */
  u32 poll_most;       /* units of a batch, where there is so much fuel */
  f64 polled;          /* when the clock was looked at last; 0: there is no deadline */
  u64 work;            /* units that kernels used up so far */
  /* units of 1024 elements that eager operations may make until the tier is asked; below 0: it is to be */
  i64 large_left;
  /* the cycle collector runs when ref_count reaches the threshold, or bytes_now ref_bytes */
  u64 ref_count, ref_threshold, ref_bytes;
  Value caught;        /* the record of the error caught last, so that error(e) keeps its place */
  Span caught_span;
  VEC(TraceLine) caught_trace;
  i32 exit_code;       /* what the program ended itself with; an error that is final carries it out */
  bool exiting;
  /* NULL: standard output. Nothing to write asks to show what was written */
  WeftStatus (*output)(void *ctx, const char *text, size_t len);
  Pending *pending;   /* the innermost host function called by compiled code */
  u64 host_epoch;     /* how often the host may have changed its objects (handle.c) */
  /* calls the object's hook; set with the first object that has one */
  WeftStatus (*flatten)(void *ctx, const Handle *h, Value *out);
  void *flatten_ctx;
  u32 releasing;      /* callbacks that run by which the host takes back what it gave: they must not use the VM */
  u32 flattening;     /* hooks that run: they may make values, not run the program */
  Hosted hosted;      /* set by a region that is left for such a call, until its frames stand */
  u64 printed;        /* calls of print by the region that runs, since its last safe point */
  u64 unseen;         /* that many calls of print give nothing: a region made them before what is now done again */
  void *output_ctx;
  /* what the host has for read_line: bytes into `to`, no further than a line's end; 0: the input is over, -1: standard
   * input is read. NULL: it has nothing */
  i64 (*input)(void *ctx, char *to, size_t room);
  void *input_ctx;
  /* what is told to who watches (vm_tell); NULL: standard error */
  void (*tell)(void *ctx, const char *text, size_t len);
  void *tell_ctx;
  /* a record of columns of the same length as lines of text (api/display.c); NULL: there is none */
  void (*lay_out)(Vm *vm, Record *table, i64 rows, u32 shown, u32 width, Buf *out);
  bool draws; /* the host lets the library draw on standard error, which is a terminal (progress) */
  char *(*resolve_module)(void *ctx, const char *path); /* NULL: files */
  const VmFiles *files; /* what programs read and write; NULL: the system's */
  void *resolver_ctx;
  int argc;
  char **argv;
  u32 log;            /* VM_LOG_* */
  Switches switches;  /* mechanisms taken out; none but in a build for that */
  u64 code_ids;
  void *stack_segments; /* all segments of registers; stack … stack_end is the newest */
  Value *stack_top;     /* first free register of the newest segment */
  Value native_result;  /* what a frame called from C returned through vm_return */
  const OpInfo *op_table; /* op_info(0): rows by OpId */
  const Library *library; /* functions written in Weft; NULL: none */
  PairFn pair;
  /* two matrices, for loops over small products: *out is a hole, or an array that nobody else holds, which is written
   * over if it fits */
  PairFn product;
  bool hands_on; /* of the operation at work on a device: a kernel takes the result next, and nothing else does */
};

/* vm/state.c */
typedef struct VmOptions {
  Allocator *alloc; /* NULL: the C library's */
  VmLimits limits;
  u64 keep; /* bytes of freed arrays kept for the next ones; 0: a part of the machine's memory */
} VmOptions;
u64 vm_maps(const Value *base, Ins call); /* items of the range that this instruction calls map with; else 0 */
Vm *vm_new(const VmOptions *options); /* NULL when memory was refused; hooks are empty, ops unsupported */
void vm_free(Vm *vm);
/* vm/keep.c: gives freed storage back to the host until that many bytes are kept at most; false: there was nothing to
 * give. */
bool keep_trim(Vm *vm, u64 most);
u64 vm_stat(const Vm *vm, u32 stat); /* a row of stats.def, whoever counts it */
bool vm_at_free(Vm *vm, void (*closer)(Vm *vm)) MUST_USE; /* false when there are too many */

/* WEFT_LOG: `ast` and `bytecode` of what vm_eval compiles, `copies` of shared values, to standard error; other words
 * are not for here. */
enum { VM_LOG_AST = 1, VM_LOG_BYTECODE = 2,
       VM_LOG_PROFILE = 4 /* compiled code counts what its kernels move and compute */ };
void vm_log(Vm *vm, const char *words);

enum { SOURCE_MOST = 1 << 30 }; /* bytes of a source text */
/* Makes source text runnable and runs it as (part of) module `m`. *out: value of the last statement, owned. */
WeftStatus vm_eval(Vm *vm, struct Module *m, const char *path, const char *text, size_t len, bool repl,
                   Value *out) MUST_USE;
/* vm/compiled.c: programs as bytes. Appends `text`, compiled where the names that module `m` declares now are there;
 * nothing runs and `m` stays as it is. `strip`: without the text; messages tell lines and do not show them. */
WeftStatus vm_compile(Vm *vm, struct Module *m, const char *path, const char *text, size_t len, bool strip,
                      Buf *out) MUST_USE;
bool vm_is_compiled(const char *bytes, size_t len); /* do they begin as such a program does? No source text does */
/* Proves such bytes and runs them as (part of) module `m`, as vm_eval its text. Errors name `path`, of the program
 * the path that was compiled. Kinds: `unsupported`, made by another version; `name`, what was declared where it was
 * compiled is not declared in `m`; `syntax`, all else that is wrong with the bytes. */
WeftStatus vm_run_compiled(Vm *vm, struct Module *m, const char *path, const char *bytes, size_t len,
                           Value *out) MUST_USE;
/* Appends the source text in the layout of parser_format. Errors: of syntax. */
WeftStatus vm_layout(Vm *vm, const char *path, const char *text, size_t len, Buf *out) MUST_USE;
struct Module *module_new(Vm *vm, const char *name, const char *path); /* owned by the VM; NULL when refused */
Value *module_var(Vm *vm, struct Module *m, Name name); /* NULL when not declared or not assigned */
/* Loads what a variable of a standard module stands for, when it is a function written in Weft that nobody named
 * yet. */
WeftStatus module_ready(Vm *vm, struct Module *m, u32 slot) MUST_USE;
WeftStatus module_set(Vm *vm, struct Module *m, Name name, Value v) MUST_USE; /* consumes v; declares */
/* The code of a function of so many parameters that calls what it captured with them, those that have a name (NULL,
 * or 0 for none) by name: what is no function of the program's own gets a frame by it, where the tier is asked.
 * Hidden (Proto.hidden). Owned; NULL when refused (error raised). */
Code *vm_caller(Vm *vm, struct Module *m, const Name *names, u32 nargs);
/* The code of a prototype in this VM (kept by the VM until its last function goes). NULL when refused. */
Code *code_of(Vm *vm, Proto *p, struct Module *m);
static inline Code *code_keep(Code *c) {
  c->leader->head.refs++;
  return c;
}
void code_drop(Vm *vm, Code *c);              /* consumes one count of its group */
Code *code_child(Vm *vm, Code *c, u32 index); /* borrowed from c; NULL when refused (error raised) */
Code *code_sibling(Code *c, u32 index);       /* member `index` of its group; borrowed */

/* vm/call.c: calls a function value from C. args are consumed; *out owned. Counts one level of depth. */
WeftStatus vm_call(Vm *vm, Value fn, Value *args, u32 nargs, Value *out) MUST_USE;
/* What a `call` instruction does with a function that is no closure: fn borrowed, args consumed. */
WeftStatus vm_call_native(Vm *vm, Value fn, Value *args, u32 nargs, Value *out) MUST_USE;
/* The call at which the top frame stands has given v (consumed): as the interpreter goes on. True: the frame
 * returned. */
bool vm_call_done(Vm *vm, Value v);
WeftStatus vm_call_named(Vm *vm, Value fn, Value *args, const Name *names, u32 nargs, Value *out) MUST_USE;
/* The same with borrowed arguments. */
WeftStatus vm_call_kept(Vm *vm, Value fn, const Value *args, const Name *names, u32 nargs, Value *out) MUST_USE;
/* Behind a run of the interpreter from outside that left vm->suspends, which is cleared: goes on with v (consumed) as
 * the result of the host function, or, when an error stands, with that raised there. */
WeftStatus vm_resume(Vm *vm, Value v, Value *out) MUST_USE;
void vm_cancel(Vm *vm); /* drops all frames of it */
/* Runs an operation on normalised arguments: tape, device or eager kernel. Borrows or takes args as EagerFn. */
WeftStatus vm_op(Vm *vm, u32 op, Value *args, Value *out) MUST_USE;
/* What a node of a graph, or a rule of a derivative, asks for: a device that it gives stands as its number. */
WeftStatus op_of_graph(Vm *vm, u32 op, Value *args, Value *out) MUST_USE;
/* A value with its arrays brought to the processor, or taken to the device (numbers stay). *out owned. */
WeftStatus value_moved(Vm *vm, Value v, u32 device, Value *out) MUST_USE;
/* the text of v by a format spec; spec nil: as str gives it */
WeftStatus vm_text(Vm *vm, Value v, Value spec, Value *out) MUST_USE;
/* Binary and unary operators by BcOp, with scalars inline; consumes nothing. */
WeftStatus vm_binary(Vm *vm, u32 bc, Value a, Value b, Value *out) MUST_USE;
/* Interprets the top frame until the frame count falls to `floor`; the result of that frame in *out. */
WeftStatus vm_run(Vm *vm, u32 floor, Value *out) MUST_USE;
/* One instruction of the top frame, without asking the tier: a call leaves its frame pushed, a return goes through
 * vm_return. An error is not unwound: the frame stands at the instruction. */
WeftStatus vm_step(Vm *vm) MUST_USE;
bool frame_push(Vm *vm, Value fn_kept, Code *code, u16 result, u16 flags) MUST_USE; /* consumes fn_kept */
void frame_pop(Vm *vm); /* drops its registers */
/* Returns v (consumed) from the top frame as `ret` does: pops it, then either the caller's result register takes v
 * and its pc stands behind the call, or, when C called, v waits in vm->native_result. */
void vm_return(Vm *vm, Value v);

/* vm/index.c */
WeftStatus vm_index(Vm *vm, Value obj, const u8 *items, u32 item_count, const Value *regs, Value *out) MUST_USE;
WeftStatus bools_count(Vm *vm, const u8 *p, i64 n, i64 *count) MUST_USE; /* how many of n bools are true */
/* step * the index of each of the first `most` of `size` that are true */
WeftStatus bools_places(Vm *vm, const u8 *p, i64 size, i64 most, i64 step, i64 *places) MUST_USE;
/* consumes value */
WeftStatus vm_update(Vm *vm, Value *root, const Desc *path, const Value *keys, Value value) MUST_USE;
WeftStatus vm_field(Vm *vm, Value obj, Name name, Value *out) MUST_USE;

/* vm/sequence.c: what `for` walks over: arrays (leading axis), lists, ranges, text, records. */
WeftStatus vm_seq_open(Vm *vm, Value seq, u64 *count) MUST_USE; /* error when it cannot be walked over */
/* The item at *pos, which then moves on. Positions in text are byte offsets and count is its bytes. */
WeftStatus vm_seq_next(Vm *vm, Value seq, u64 *pos, Value *out) MUST_USE;

/* vm/literal.c: array of n items (borrowed) that stack without broadcasting; [] is f64 of shape (0,). */
WeftStatus vm_array_literal(Vm *vm, const Value *items, u32 n, Value *out) MUST_USE;

Span vm_span(const Vm *vm); /* of the current instruction; nowhere when nothing runs */

/* vm/error.c: all return WEFT_ERROR. The span is that of the current instruction unless given. */
WeftStatus vm_error(Vm *vm, ErrorKind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
WeftStatus vm_limit(Vm *vm, LimitKind limit, const char *fmt, ...) PRINTF_LIKE(3, 4); /* kind limit */
WeftStatus vm_error_at(Vm *vm, ErrorKind kind, Span at, const char *fmt, ...) PRINTF_LIKE(4, 5);
WeftStatus vm_error_rule(Vm *vm, u32 op, const RuleError *e); /* "matmul: …" */
/* While a function of the library runs that is written in Weft: the operation that the program called; else 0. */
u32 library_op(const Vm *vm);
/* Its parameter that argument `param` of `op` came from, which is about to run; -1: none. */
i32 library_param(const Vm *vm, u32 op, u32 param);
WeftStatus vm_error_memory(Vm *vm);
WeftStatus vm_error_stack(Vm *vm); /* the C stack is used up (parser/base.h: cstack_has) */
void vm_error_clear(Vm *vm);
/* Drops an error of work that the program did not ask for. An interrupt that it told of is still to be told. */
void vm_error_forget(Vm *vm);
bool vm_error_catchable(const Vm *vm);           /* not fuel, deadline, interrupt, exit */
bool vm_error_own(const Vm *vm);                 /* the program's: not these, nor memory that was refused */
/* Memory for an array of these sizes was refused: an error of kind limit that tells them. */
WeftStatus vm_error_array(Vm *vm, u32 dtype, u32 rank, const i64 *dims);
/* the error that stands arose in this operation: its message begins with the name */
void vm_error_name_op(Vm *vm, u32 op);
bool vm_error_record(Vm *vm, Value *out) MUST_USE; /* {message, kind, trace}; clears the error */
void vm_error_text(Vm *vm, Buf *out);            /* the whole message as language.md section 6 shows it */
const char *vm_error_message(const Vm *vm, size_t *len); /* its first line, without "error: "; never NULL */
/* For what has to be built before the program can go on: a little more than the limit may be taken, and what is
 * small from a reserve. Calls nest: what begin gives goes to end. */
u64 overdraft_begin(Vm *vm);
void overdraft_end(Vm *vm, u64 before);
/* The error appends the call of the top frame to its trace (the frame is about to be popped). */
void vm_error_leave_frame(Vm *vm);
WeftStatus vm_raise(Vm *vm, ErrorKind kind, Value message); /* consumes a text */
WeftStatus vm_raise_again(Vm *vm, Value record); /* borrows what `catch` gave, or any {message, kind} */
WeftStatus vm_exit(Vm *vm, i32 code);            /* ends the program: an error that nothing catches */

/* vm/safepoint.c: fuel, deadline, interrupt. Cheap; `units` of fuel are used up. */
WeftStatus vm_poll(Vm *vm, u64 units) MUST_USE;
WeftStatus vm_heed(Vm *vm) MUST_USE; /* an interrupt alone */
/* That and the deadline, without fuel: behind what may take long by itself, the host's functions and the library's. */
WeftStatus vm_look(Vm *vm) MUST_USE;
/* One node of a tree that is walked without fuel: what is shared has more paths than anybody waits for. */
static inline WeftStatus vm_walk(Vm *vm) { return LIKELY(++vm->walked % 1024) ? WEFT_OK : vm_look(vm); }
/* Item `i` of many that are gone through without fuel. False: an error was raised. */
static inline bool vm_item(Vm *vm, u64 i) { return LIKELY((i + 1) % 16384) || vm_look(vm) == WEFT_OK; }
/* Elements at any places, and bools in order, between two such looks. */
enum { PART_PLACES = 1 << 18, PART_BOOLS = 1 << 23 };
static inline i64 part_end(i64 lo, i64 n, i64 part) { return n - lo < part ? n : lo + part; }
bool vm_ends(const Vm *vm); /* would that raise? Nothing is raised, and an interrupt stays where it is */
/* Text of the program's in the making, however long: it fails where the program is to end. */
void vm_buf_init(Vm *vm, Buf *b);
void vm_toil_begin(Vm *vm, Toil *t); /* work on a source text, which ends where the program is to end */
WeftStatus vm_error_buf(Vm *vm); /* why such a text failed: an interrupt, the deadline, or memory that was refused */
f64 vm_clock(void); /* monotonic seconds */
/* The text has no name any more: it is freed, or changes. */
static inline void text_unname(Vm *vm, Text *t) {
  if (!t->head.flags) return;
  name_drop(&vm->names, t->head.flags);
  t->head.flags = 0;
}
void *vm_small_alloc(Vm *vm, size_t n) MUST_USE; /* vm/alloc.h's objects, for other folders; NULL when refused */
void vm_small_free(Vm *vm, void *p, size_t n);
void vm_poll_reset(Vm *vm); /* after limits were changed */
void vm_poll_soon(Vm *vm);  /* the next safepoint looks at the clock */
enum { WORK_SEEN = 1 << 15 }; /* elements, or words of new memory, behind which the clock is looked at */
/* Something that costs no fuel by its size went through so many elements. */
static inline void vm_worked(Vm *vm, u64 elements) {
  if (UNLIKELY(elements >= WORK_SEEN) && vm->limits.deadline > 0) vm_poll_soon(vm);
}
static inline WeftStatus vm_safepoint(Vm *vm) { /* one unit of fuel */
  if (LIKELY(--vm->poll_countdown && !vm->interrupted)) return WEFT_OK;
  return vm_poll(vm, 0);
}

/* vm/hook.c. NULL: nobody is told from here on. A program that runs goes on interpreted behind the instruction that led
 * here; frames must be up to date (vm_catch_up). */
void vm_set_hook(Vm *vm, WeftStatus (*call)(void *ctx, u32 event), void *ctx, u32 mask);
/* Is somebody told of what runs now? */
static inline bool hook_on(const Vm *vm) { return UNLIKELY(vm->hook.call != NULL) && !vm->hook.busy; }
/* Frames of the program's own functions and module bodies; number `index` from the innermost on, NULL behind the
 * last. */
u32 hook_frames(const Vm *vm);
const Frame *hook_frame(const Vm *vm, u32 index);
Span hook_span(const Frame *f); /* where it stands */

/* vm/ref.c: frees cells that only reach each other; gives how many. */
u64 ref_collect(Vm *vm);

/* vm/pool.c: threads that share the parts of one long loop. */
typedef void (*PoolFn)(void *ctx, i64 part); /* touches no VM */
u32 pool_threads(Vm *vm);                    /* that the VM may use, its own among them; at least 1 */
/* fn(ctx, part) once for each part in 0 … parts-1, in any order. The VM's own thread polls between its parts unless
 * they are one whole; WEFT_ERROR: a poll raised, and parts are missing. */
WeftStatus pool_run(Vm *vm, i64 parts, bool whole, PoolFn fn, void *ctx) MUST_USE;
/* Of so many units in order, those of a part: a quarter of what is shared at least, and not so few that threads
 * reach into each other's memory by what they prefetch too often (docs/notes/069). */
i64 pool_part(const Vm *vm, i64 units);
void pool_leave(Vm *vm); /* the VM ends */

/* Before a host function looks at the program or changes it. */
WeftStatus vm_catch_up(Vm *vm) MUST_USE;

/* vm/file.c: output through the hook, within the output limit; vm_flush: what was written is to be seen, before input
 * is waited for. */
WeftStatus vm_write(Vm *vm, const char *text, size_t len) MUST_USE;
WeftStatus vm_flush(Vm *vm) MUST_USE;
void vm_tell(Vm *vm, const char *fmt, ...) PRINTF_LIKE(2, 3); /* to who watches (WEFT_LOG): no part of the output */
void vm_tell_text(Vm *vm, const char *text, size_t len);
/* All of a file, a pipe or a device, which is opened once: data[len] is 0, cap bytes of the VM's allocator. Else
 * why not: -1, the error stands in the VM (a limit, an interrupt), or an errno (ENOMEM: memory was refused; EFBIG:
 * more than `most` bytes). */
int vm_wait_data(Vm *vm, int fd) MUST_USE; /* until there is something to read, or its end; 0, or why not, likewise */
int vm_read_file(Vm *vm, const char *path, u64 most, char **data, size_t *len, size_t *cap) MUST_USE;
/* The same for a program: from the files that it may see. */
int vm_read_visible(Vm *vm, const char *path, u64 most, char **data, size_t *len, size_t *cap) MUST_USE;
/* Of what a function of Vm.files gave: 0, an errno, or -1: the host raised an error. */
int vm_files_code(const Vm *vm, int code) MUST_USE;
/* Bytes of an open file from `at` on, at most `room`; 0: it ends there. Below 0: why not is in *code, likewise. */
ptrdiff_t vm_files_read(Vm *vm, void *file, u64 at, char *to, size_t room, int *code) MUST_USE;

/* Truth of a condition; error that says to use any/all. */
WeftStatus vm_truth(Vm *vm, Value v, bool *out) MUST_USE;

#include "vm/elsewhere.h"
#include "vm/packed.h"
#include "vm/stream.h"
#include "vm/strided.h"

#endif
