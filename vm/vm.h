/* vm.h — facade of the virtual machine: its state, errors, calls, safepoints and the hook tables through
 * which rooms above are called. All state of one VM is this struct; nothing is global. */
#ifndef WEFT_VM_VM_H
#define WEFT_VM_VM_H

#include "vm/array.h"
#include "vm/value.h"

/* ---- code on the VM's side -------------------------------------------------------------------- */

typedef struct SiteState {
  u32 count;    /* times passed, saturating */
  u16 taken;    /* branch sites: recent outcomes, newest in bit 0 */
  u16 flags;    /* SITE_* */
  void *entry;  /* tracer: cache of compiled entries here, or NULL */
} SiteState;
enum { SITE_COLD = 1 /* never ask the tier again (demoted) */ };

/* A prototype made runnable in one VM: constants as values, side arrays for counters and trace entries. */
typedef struct Code {
  Obj head;
  Proto *proto;       /* counted */
  struct Module *module; /* borrowed: the VM keeps modules until it ends */
  Value *consts;
  SiteState *sites;   /* parallel to proto->sites */
  struct Code **protos; /* runnable children, made when first needed */
  u32 *site_of_pc;    /* pc -> site index + 1, 0 none */
  struct Code *next;  /* all codes of the VM */
  u64 id;
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
};

/* ---- errors ----------------------------------------------------------------------------------- */

typedef struct TraceLine {
  Name function; /* 0: lambda or module body */
  Span span;     /* of the call */
  u32 tail_calls;
} TraceLine;

typedef struct ErrorState {
  bool raised;
  u8 kind; /* ErrorKind */
  Span span;
  Value message; /* text */
  bool out_of_memory; /* message could not be made: fixed text is used */
  VEC(TraceLine) trace;
  Value payload; /* the record given to error(e) again, or nil */
} ErrorState;

/* ---- operations ------------------------------------------------------------------------------- */

/* An eager kernel. args: one value per parameter of the signature, V_HOLE when not given; owned by the
 * caller, but the kernel may take args[i] (leaving V_HOLE) when it is the last holder, to reuse memory.
 * *out is owned by the caller on success; on failure args are as they were. */
typedef WeftStatus (*EagerFn)(Vm *vm, Value *args, Value *out);
typedef struct OpHook {
  EagerFn eager; /* NULL: "not supported" */
} OpHook;

/* ---- hook tables (filled by api/ when a VM is made); a NULL table means: off -------------------- */

typedef enum TierResult {
  TIER_STAY,   /* nothing happened: interpret on */
  TIER_RAN,    /* frames were changed (advanced, popped or pushed): reload from vm->frame and go on */
  TIER_RAISED, /* an error stands in the VM at the current frame's pc: look for a handler */
} TierResult;

typedef struct TierHooks {
  /* Called at function entry and at a loop head when the site is hot or has an entry. */
  TierResult (*site)(Vm *vm, Frame *frame, u32 site);
  void (*code_freed)(Vm *vm, Code *code);
  void (*vm_freed)(Vm *vm);
} TierHooks;

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
  /* An operation with an argument on this device. */
  WeftStatus (*op)(Vm *vm, u32 op, Value *args, Value *out);
} DeviceHooks;

/* A host function: arguments borrowed, *out owned by the caller. */
typedef struct HostFn {
  const char *name;
  WeftStatus (*call)(Vm *vm, void *ctx, const Value *args, u32 nargs, Value *out);
  void *ctx;
  void (*release)(void *ctx);
} HostFn;

enum { DEVICE_MAX = 4 };

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
  volatile int interrupted; /* set by weft_interrupt: a signal handler or another thread may */
  u32 poll_countdown;
  u64 ambient;        /* one word: tape level, eager mode, default device, transform stack; guards compare it */
  OpHook ops[OP_COUNT];
  const TierHooks *tier;
  void *tier_state;   /* tracer's, per VM */
  const TapeHooks *tape;
  void *tape_state;
  const DeviceHooks *devices[DEVICE_MAX];
  void *device_state[DEVICE_MAX];
  void *stdlib_state; /* random stream, library handles … */
  struct Module **modules;
  u32 module_count, module_cap;
  Shape **shapes;     /* intern table */
  u32 shape_slots, shape_count;
  Ref *refs;
  Code *codes;
  void *size_classes; /* free lists of small objects */
  WeftStatus (*output)(void *ctx, const char *text, size_t len); /* NULL: standard output */
  void *output_ctx;
  char *(*resolve_module)(void *ctx, const char *path); /* NULL: files */
  void *resolver_ctx;
  int argc;
  char **argv;
  u64 code_ids;
  bool fp_saved;
};

/* vm/state.c */
typedef struct VmOptions {
  Allocator *alloc; /* NULL: the C library's */
  VmLimits limits;
} VmOptions;
Vm *vm_new(const VmOptions *options); /* NULL when memory was refused; hooks are empty, ops unsupported */
void vm_free(Vm *vm);

/* Makes source text runnable and runs it as (part of) module `m`. *out: value of the last statement, owned. */
WeftStatus vm_eval(Vm *vm, struct Module *m, const char *path, const char *text, size_t len, bool repl, Value *out) MUST_USE;
struct Module *module_new(Vm *vm, const char *name, const char *path); /* owned by the VM; NULL when refused */
Value *module_var(Vm *vm, struct Module *m, Name name); /* NULL when not declared or not assigned */
WeftStatus module_set(Vm *vm, struct Module *m, Name name, Value v) MUST_USE; /* consumes v; declares */
/* The code of a prototype in this VM (kept by the VM until its last function goes). NULL when refused. */
Code *code_of(Vm *vm, Proto *p, struct Module *m);

/* vm/call.c: calls a function value from C. args are consumed; *out owned. Counts one level of depth. */
WeftStatus vm_call(Vm *vm, Value fn, Value *args, u32 nargs, Value *out) MUST_USE;
WeftStatus vm_call_named(Vm *vm, Value fn, Value *args, const Name *names, u32 nargs, Value *out) MUST_USE;
/* Runs an operation on normalised arguments: tape, device or eager kernel. Borrows or takes args as EagerFn. */
WeftStatus vm_op(Vm *vm, u32 op, Value *args, Value *out) MUST_USE;
/* Binary and unary operators by BcOp, with scalars inline; consumes nothing. */
WeftStatus vm_binary(Vm *vm, u32 bc, Value a, Value b, Value *out) MUST_USE;
/* Interprets the top frame until the frame count falls to `floor`; the result of that frame in *out. */
WeftStatus vm_run(Vm *vm, u32 floor, Value *out) MUST_USE;
bool frame_push(Vm *vm, Value fn_kept, Code *code, u16 result, u16 flags) MUST_USE; /* consumes fn_kept */
void frame_pop(Vm *vm); /* drops its registers */

/* vm/index.c */
WeftStatus vm_index(Vm *vm, Value obj, const u8 *items, u32 item_count, const Value *regs, Value *out) MUST_USE;
WeftStatus vm_update(Vm *vm, Value *root, const Desc *path, const Value *keys, Value value) MUST_USE; /* consumes value */
WeftStatus vm_field(Vm *vm, Value obj, Name name, Value *out) MUST_USE;

/* vm/error.c: all return WEFT_ERROR. The span is that of the current instruction unless given. */
WeftStatus vm_error(Vm *vm, ErrorKind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
WeftStatus vm_error_at(Vm *vm, ErrorKind kind, Span at, const char *fmt, ...) PRINTF_LIKE(4, 5);
WeftStatus vm_error_rule(Vm *vm, u32 op, const RuleError *e); /* "matmul: …" */
WeftStatus vm_error_memory(Vm *vm);
void vm_error_clear(Vm *vm);
bool vm_error_catchable(const Vm *vm);           /* not fuel, deadline, interrupt, memory of the VM itself */
bool vm_error_record(Vm *vm, Value *out) MUST_USE; /* {message, kind, trace}; clears the error */
void vm_error_text(Vm *vm, Buf *out);            /* the whole message as language.md section 6 shows it */

/* vm/safepoint.c: fuel, deadline, interrupt. Cheap; `units` of fuel are used up. */
WeftStatus vm_poll(Vm *vm, u64 units) MUST_USE;
f64 vm_clock(void); /* monotonic seconds */

/* Output through the hook, within the output limit. */
WeftStatus vm_write(Vm *vm, const char *text, size_t len) MUST_USE;

/* Truth of a condition; error that says to use any/all. */
WeftStatus vm_truth(Vm *vm, Value v, bool *out) MUST_USE;

#endif
