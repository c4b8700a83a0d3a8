/* inner.h — what the files of api/ share: a WeftVM and a WeftValue from inside. */
#ifndef WEFT_API_INNER_H
#define WEFT_API_INNER_H

#include <pthread.h>

#include "api/api.h"

typedef struct HostMemory {
  Allocator base; /* first: &memory.base is the allocator of the VM */
  void *(*resize)(void *context, void *p, size_t old_size, size_t new_size);
  void *context;
} HostMemory;

/* api/blocks.c: freed blocks, by their size in steps of 16 bytes. */
enum { BLOCK_CLASSES = 129 };
typedef struct Blocks {
  void *free[BLOCK_CLASSES];
  size_t bytes;
} Blocks;
void *blocks_resize(void *context, void *p, size_t old_size, size_t new_size); /* of a Blocks */
/* what is kept goes back; blocks in use stay */
void blocks_free(Blocks *b);
/* malloc and free; frees what blocks_resize gave as well */
void *system_resize(void *context, void *p, size_t old_size, size_t new_size);
/* the same, of a VM with a limit: large blocks are mappings */
void *mapped_resize(void *context, void *p, size_t old_size, size_t new_size);

static inline bool is_name_byte(char c) { /* of a name, or of a character in one */
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (u8)c >= 0x80;
}
bool api_is_name(const char *name); /* can a program write it as the name of a variable? NULL: no */

struct WeftValue {
  Value value;
  u64 element; /* of a number, as it lies in memory: what weft_array_view shows */
  u32 count;
  WeftVM *vm; /* NULL: it was released, as long as nothing else lies there */
  WeftValue *prev, *next; /* all that the host holds */
};

/* What weft_complete gave last. */
typedef struct Words {
  Buf text; /* each ends in a NUL */
  VEC(u32) starts;
  const char **sorted; /* then as many notes */
  u32 room; /* of sorted */
} Words;
void words_free(WeftVM *w);

enum { HOST_BACKENDS = 8 };

struct WeftVM {
  HostMemory memory;
  Blocks blocks; /* unless the host gives memory or limits it */
  Vm *vm;
  struct Module *main;
  void (*output)(void *context, const char *text, size_t length);
  void *output_context;
  ptrdiff_t (*input)(void *context, char *to, size_t room);
  void *input_context;
  WeftValue *values;
  Buf text; /* the last text handed out */
  int digits, rows; /* of what weft_display gives; 0: as usual */
  Value answer;     /* what weft_remember kept last */
  Words words;
  VEC(struct Module *) modules; /* the host's, in use or given back (modules.c) */
  struct HostBackend *backends[HOST_BACKENDS];
  u32 backend_count;
  WeftHook hook; /* of debug.c */
  void *hook_context;
  u32 compiling; /* compile hooks running: programs must not */
  u32 commands;  /* weft_command is at work: its programs cannot wait */
  bool suspended; /* a program waits (suspend.c) */
  bool in_file;   /* it came from a file; then the main module had these two before */
  u8 state_before;
  const char *path_before;
  struct Exported *dropped; /* by their consumers, in any thread; atomic (dlpack.c) */
  pthread_mutex_t export_lock; /* of the next two */
  u32 exported;  /* that were not dropped yet, or not looked at since */
  bool orphan;   /* weft_free came first: who drops the last one frees the VM */
  size_t stack;  /* bytes of C stack that the host leaves; 0: as the system says */
};

/* Of every function that may run a program or walk values: where the C stack ends. */
static inline void leave_stack(CStack *before) { cstack_leave(*before); }
#define ON_STACK_OF(w) CStack stack_before __attribute__((cleanup(leave_stack), unused)) = cstack_enter((w)->stack)

/* What a program comes as. */
typedef enum SourceForm { FORM_TEXT, FORM_LINE /* of a prompt */, FORM_COMPILED } SourceForm;
/* What weft.h does in the main module, in any. */
WeftStatus evaluate_in(WeftVM *w, struct Module *m, const char *text, size_t len, const char *name, SourceForm form,
                       WeftValue **out) MUST_USE;
/* The module behind a value; NULL: it is none of the host's, or was given back. */
struct Module *module_of_host(WeftVM *w, const WeftValue *value);
WeftStatus get_in(WeftVM *w, struct Module *m, const char *name, WeftValue **out) MUST_USE;
WeftStatus set_in(WeftVM *w, struct Module *m, const char *name, WeftValue *value) MUST_USE;
WeftStatus define_in(WeftVM *w, struct Module *m, const char *name, WeftHostFunction function, void *context,
                     void (*release)(void *context), Value rule) MUST_USE;
bool files_whole(const WeftFiles *files); /* files.c: has it all that weft.h asks for? */
/* described.c: weft_define_described in any module. */
WeftStatus describe_in(WeftVM *w, struct Module *m, const char *signature, const char *doc, WeftHostFunction function,
                       void *context, void (*release)(void *context)) MUST_USE;
/* A function of the host, without a release; with one from here on. */
WeftStatus host_function_new(WeftVM *w, const char *name, WeftHostFunction function, void *context,
                             Value *out) MUST_USE;
void host_function_release(Value fn, void (*release)(void *context));
void host_function_suspends(Value fn); /* it may give WEFT_SUSPENDED */
/* Before the host has something run, between programs or inside of a host function: an interrupt is heeded. */
WeftStatus host_may_run(WeftVM *w) MUST_USE;
/* May a program begin: not in a compile hook, nor while another one waits. */
bool refuse_begin(WeftVM *w); /* suspend.c: false; that a program waits is said */
static inline bool may_begin(WeftVM *w) { return LIKELY(!w->compiling && !w->suspended) || refuse_begin(w); }
/* What the host gets of a run that ended so: behind it an interrupt is heeded. */
WeftStatus run_ended(WeftVM *w, WeftStatus status) MUST_USE;
bool name_ok(const char *name); /* of a source text: NULL, or UTF-8 */
void modules_forget(WeftVM *w);

/* Fills a struct that the host made and that begins with its `size`, as weft.h says: no more than that many bytes, and
 * zeros behind what this version has. `full` is of `bytes` bytes, `least` are those of the struct when it was new.
 * False: the size was not set, and nothing was written. */
bool struct_give(void *to, const void *full, size_t bytes, size_t least) MUST_USE;
bool struct_sized(const void *to, size_t least) MUST_USE; /* was it? */
/* From `size` to the end of the field. */
#define BYTES_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* May the host call: not from a callback by which it takes something back? */
static inline bool usable(const WeftVM *w) { return w && !w->vm->releasing; }
/* Before the host takes memory for a value of any size: what is dead and waits is no reason to refuse it. */
static inline void make_room(WeftVM *w) {
  if (UNLIKELY(w->vm->dead) && !w->vm->frame_count) values_settle(w->vm);
}
/* A value that the host gives: one of this VM that it still holds. If not, an error that says so stands, and
 * WEFT_MISUSE is due. NULL is none. */
bool value_refuse(WeftVM *w, const WeftValue *value); /* of one that is not: says so; false */
static inline bool value_ok(WeftVM *w, const WeftValue *value) {
  return LIKELY(value && value->vm == w) || value_refuse(w, value);
}
static inline bool values_ok(WeftVM *w, WeftValue *const *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!value_ok(w, values[i])) return false;
  return true;
}
WeftStatus value_hand_over(WeftVM *w, Value v, WeftValue **out) MUST_USE; /* consumes v */
/* An error of kind "type": the host needs something else than v. */
WeftStatus value_wrong(WeftVM *w, const char *needs, Value v);
/* exchange.c: is such an array possible; are there arrays of that dtype (if not, an error stands)? */
bool geometry_ok(WeftDType dtype, int rank, const int64_t *shape, const void *data) MUST_USE;
bool has_dtype(WeftVM *w, WeftDType dtype) MUST_USE;
/* dlpack.c: gives back what consumers have dropped. */
void exports_collect(WeftVM *w);
static inline void exports_look(WeftVM *w) {
  if (UNLIKELY(__atomic_load_n(&w->dropped, __ATOMIC_RELAXED) != NULL)) exports_collect(w);
}
/* The VM has ended (vm_end): true: nothing of it is in use elsewhere. False: it is freed when that is so. */
bool exports_end(WeftVM *w) MUST_USE;
void weft_free_memory(WeftVM *w); /* of a VM that has ended */
void weft_release_all(WeftVM *w, WeftValue *value);                      /* whatever its count */
const char *text_hold(WeftVM *w, const char *s, size_t len);             /* copied into w->text */

#endif
