/* value.h — hand-off format: what a value is (16 bytes), and the heap objects that are not arrays.
 * Described in docs/formats/values.md.
 *
 * Ownership: a Value that is stored anywhere owns one count of its object. Functions say whether they
 * borrow or consume their arguments; results are owned by the caller. Counts are not atomic, except those of
 * storage marked shared (array.h). Objects carry no kind: the Value that points to them does. */
#ifndef WEFT_VM_VALUE_H
#define WEFT_VM_VALUE_H

#include "lang/bytecode.h"
#include "lang/dtypes.h"
#include "lang/ops.h"
#include "parser/base.h"

typedef struct Vm Vm;

typedef enum ValueKind {
  V_NIL = 0,
  V_NUM,     /* rank-0 array on the CPU, unboxed: dtype and payload (every dtype but c128) */
  V_ARRAY,   /* Array *: any rank, also rank 0 on a device or of dtype c128 */
  V_TEXT,    /* Text * */
  V_LIST,    /* List * */
  V_RECORD,  /* Record * */
  V_RANGE,   /* Range * */
  V_FN,      /* Fn * */
  V_REF,     /* Ref * */
  V_MODULE,  /* Module * */
  V_DTYPE,   /* the dtype itself, in `dtype` */
  V_HANDLE,  /* Handle *: an object of the host */
  V_TRACKED, /* Tracked *: a value on a gradient tape; never seen by programs */
  V_HOLE,    /* internal: an argument that was not given; never seen by programs */
} ValueKind;

enum { VF_WEAK = 1, VF_COUNTED = 2 };

typedef struct Obj { /* the head of every counted object */
  u32 refs;
  u32 flags;
} Obj;

typedef struct Value {
  u8 kind;   /* ValueKind */
  u8 dtype;  /* V_NUM, V_DTYPE; also V_ARRAY, a copy of the array's */
  u8 flags;  /* VF_WEAK (V_NUM, and c128 of rank 0), VF_COUNTED (payload points to an Obj) */
  u8 zero;   /* always 0, so that the first word compares as a type tag */
  u32 aux;   /* 0, so that the first word compares as a type tag */
  union {
    i64 i; /* bool, u8, i32, i64: sign- or zero-extended to 64 bits */
    u64 u; /* u32, u64 */
    f64 f; /* f64 */
    f32 s; /* f32, and what computes in it: f16, bf16; the upper half is 0 */
    f32 z[2]; /* c64: real and imaginary part */
    u64 bits;
    void *p;
    Obj *obj;
    struct Array *array;
    struct Text *text;
    struct List *list;
    struct Record *record;
    struct Range *range;
    struct Fn *fn;
    struct Ref *ref;
    struct Module *module;
    struct Handle *handle;
  };
} Value;
_Static_assert(sizeof(Value) == 16, "values are 16 bytes");

/* The first word: kind, dtype, flags. Equal words mean equal type for V_NUM. */
static inline u64 value_tag(Value v) {
  u64 w;
  __builtin_memcpy(&w, &v, 8);
  return w;
}

/* ---- making scalars ------------------------------------------------------------------------- */

static inline Value value_nil(void) { return (Value){.kind = V_NIL}; }
static inline Value value_hole(void) { return (Value){.kind = V_HOLE}; }
static inline Value value_bool(bool b) { return (Value){.kind = V_NUM, .dtype = DT_bool, .i = b}; }
static inline Value value_i64(i64 i) { return (Value){.kind = V_NUM, .dtype = DT_i64, .i = i}; }
static inline Value value_f64(f64 f) { return (Value){.kind = V_NUM, .dtype = DT_f64, .f = f}; }
static inline Value value_f32(f32 f) {
  Value v = {.kind = V_NUM, .dtype = DT_f32};
  v.s = f;
  return v;
}
static inline Value value_weak_i64(i64 i) { return (Value){.kind = V_NUM, .dtype = DT_i64, .flags = VF_WEAK, .i = i}; }
static inline Value value_weak_f64(f64 f) { return (Value){.kind = V_NUM, .dtype = DT_f64, .flags = VF_WEAK, .f = f}; }
static inline Value value_weak_bool(bool b) {
  return (Value){.kind = V_NUM, .dtype = DT_bool, .flags = VF_WEAK, .i = b};
}
static inline Value value_dtype(u32 d) { return (Value){.kind = V_DTYPE, .dtype = (u8)d}; }
static inline Value value_obj(ValueKind kind, void *obj) { /* consumes one count of obj */
  return (Value){.kind = (u8)kind, .flags = VF_COUNTED, .obj = obj};
}

static inline bool value_is_num(Value v) { return v.kind == V_NUM; }
static inline bool value_is_numeric(Value v) { return v.kind == V_NUM || v.kind == V_ARRAY; }
static inline bool value_is_weak(Value v) { return v.flags & VF_WEAK; }

/* ---- counts --------------------------------------------------------------------------------- */

void value_destroy(Vm *vm, Value v); /* the count fell to 0; iterative, never recursive over user data */

static inline Value value_keep(Value v) { /* result owned */
  if (v.flags & VF_COUNTED) v.obj->refs++;
  return v;
}
static inline void value_drop(Vm *vm, Value v) { /* consumes v */
  if ((v.flags & VF_COUNTED) && --v.obj->refs == 0) value_destroy(vm, v);
}
static inline bool value_unique(Value v) { return (v.flags & VF_COUNTED) && v.obj->refs == 1; }

/* ---- heap objects --------------------------------------------------------------------------- */

typedef struct Text { /* immutable UTF-8 */
  Obj head;  /* flags: its name, once it was asked for, which it counts; or 0 */
  u32 len;   /* bytes */
  u32 count; /* code points; len == count means ASCII: indexing is direct */
  char data[]; /* NUL-terminated */
} Text;

typedef struct List {
  Obj head;
  u32 count, cap;
  Value *items;
  struct Packed *packed; /* not NULL: the items lie there; `items` is NULL, or has them as well, boxed (packed.h) */
} List;

/* The keys of a record. Interned shapes are shared by all records with these keys in this order;
 * a record that grows beyond SHAPE_SHARED_MAX keys has its own (dictionary mode), changed in place. */
enum { SHAPE_SHARED_MAX = 24 };
typedef struct Shape {
  Obj head;
  u32 count, cap;
  Name *keys;
  u32 *slots; /* hash index: the number of a key, +1; NULL while count <= 8 */
  u32 slot_count;
  /* Own shapes: room in front of `keys` (cap counts from keys on); the number of the next key. Keys are numbered as
   * they come, 0 …; a key's place is its number less the keys before it that are gone: sums in a Fenwick tree of
   * slot_count, NULL: none. */
  u32 front, next_number, *gone;
  bool shared;       /* interned, immutable */
  u64 hash;          /* of the keys in order; shared shapes only */
  struct Shape *next; /* intern table chain */
} Shape;

typedef struct Record {
  Obj head;
  u32 cap, front; /* room for items from `items` on, and in front of it */
  Shape *shape;
  Value *items; /* parallel to shape->keys */
} Record;

typedef struct Range { /* start, start+step, … before stop; step is never 0 */
  Obj head;
  i64 start, stop, step;
} Range;

typedef struct Ref { /* the only value with identity that programs make */
  Obj head;
  Value value;
  struct Ref *prev, *next; /* all refs of the VM, for the cycle collector */
} Ref;

/* Values captured by a closure, or the one environment of a group of functions. */
typedef struct Env {
  Obj head;
  u32 count;
  Value slots[];
} Env;

typedef enum FnKind { FN_CLOSURE, FN_BUILTIN, FN_HOST, FN_TRANSFORM } FnKind;

typedef struct Fn {
  Obj head;
  u8 kind;  /* FnKind */
  u8 transform; /* FN_TRANSFORM: TransformKind (ops.h: grad, vmap, jit …) */
  u16 op;   /* FN_BUILTIN: OpId */
  struct Code *code; /* FN_CLOSURE: counted */
  Env *env;          /* FN_CLOSURE: counted, may be NULL. Identity of a closure = (code, env) */
  Value inner;       /* FN_TRANSFORM: the function */
  Value settings;    /* FN_TRANSFORM: a list or record of settings */
  struct HostFn *host; /* FN_HOST */
} Fn;

typedef struct ModuleSlot {
  Value value; /* V_HOLE: not yet assigned */
  u32 version; /* rises when the slot is rebound and its old or new value is a function or a module */
} ModuleSlot;

enum { MODULE_NEW, MODULE_RUNNING, MODULE_DONE, MODULE_FAILED };

typedef struct Module {
  Obj head;
  Name name;         /* shown to users */
  const char *path;  /* canonical path, or "" */
  ModuleScope scope; /* names to slots (lang/bytecode.h) */
  ModuleSlot *slots;
  u32 slot_cap;
  u8 state; /* MODULE_… */
} Module;

typedef struct HandlePromise { /* the WeftPromise of weft.h */
  int dtype; /* 0: nil */
  int rank;
  int64_t shape[16]; /* -1: any size */
} HandlePromise;

struct WeftVM; /* api/weft.h */
struct WeftValue;
typedef struct HandleType { /* the WeftHandleType of weft.h */
  size_t size;
  const char *name;
  void (*release)(void *object);
  /* NULL, or names of fields that compiled code takes for constants, NULL at the end */
  const char *const *tags;
  uint64_t (*guard)(void *object); /* NULL, or a word that compiled code relies on once it has read a field */
  /* NULL, or what a host function gives for it */
  bool (*abstract)(void *object, const char *function, HandlePromise *out);
  /* NULL, or gives the record of its fields */
  WeftStatus (*flatten)(struct WeftVM *vm, void *object, struct WeftValue **fields);
} HandleType;

/* What a handle of the library's own gives to `for`, item by item (the lines of a file). */
typedef struct Stream {
  /* *count: positions below it have an item; a number of that kind, not how many there are */
  WeftStatus (*open)(Vm *vm, struct Handle *h, u64 *count);
  /* The item at *pos, and the position behind it: `count` or more where it was the last. */
  WeftStatus (*next)(Vm *vm, struct Handle *h, u64 *pos, Value *out);
} Stream;

typedef struct Handle {
  Obj head;
  const HandleType *type;
  void *object;
  Value fields; /* a record, or nil */
  u64 epoch;    /* of a type with `flatten`: the Vm.host_epoch that `fields` are of */
  const Stream *stream; /* NULL: no sequence */
} Handle;

/* A value on a gradient tape: the rooms above append their own fields and free it (TapeHooks.destroy). */
typedef struct Tracked {
  Obj head;
  Value value; /* what it stands for: V_NUM or V_ARRAY, or tracked at a lower level */
} Tracked;

static inline Value value_untracked(Value v) { /* borrowed */
  while (v.kind == V_TRACKED) v = ((Tracked *)v.p)->value;
  return v;
}

/* ---- making and reading (vm/value.c, handle.c, list.c, record.c, text.c) --------------------------------
 * Makers return false when memory was refused (the error then stands in the VM); *out is owned. */
bool text_new(Vm *vm, const char *s, size_t len, Value *out) MUST_USE; /* must be valid UTF-8 */
bool text_valid(const char *s, size_t len); /* well-formed UTF-8 */
void text_points(const Text *t, i64 *out); /* the code points, t->count of them */
bool text_of_point(Vm *vm, u32 point, Value *out) MUST_USE; /* the text of one code point */
bool text_of_points(Vm *vm, const i64 *points, u32 count, Value *out) MUST_USE;
u32 text_offset(const Text *t, u32 index);  /* byte offset of code point `index` (<= count) */
u32 text_behind(const Text *t, u32 at, u32 index); /* that of the one `index` behind the one at byte `at`, or the end */
/* That of code point `index`, in constant time when the text is asked again. False: the program is to end. */
bool text_place(Vm *vm, const Text *t, u32 index, u32 *out) MUST_USE;
u32 text_count(const char *s, size_t len);  /* of code points */
/* For texts of the program's, however long; error: the program is to end. */
enum { TEXT_PART = 1 << 21 }; /* bytes between two looks at the clock */
WeftStatus text_count_long(Vm *vm, const char *s, size_t len, u32 *count) MUST_USE; /* added to *count */
WeftStatus text_compare(Vm *vm, const char *a, const char *b, size_t len, int *out) MUST_USE; /* as memcmp */
void text_forget(Vm *vm, const Text *t);          /* before its memory goes */
bool text_of_program(Vm *vm, const char *s, size_t len, Value *out) MUST_USE; /* text_new, which its end may stop */
bool text_concat(Vm *vm, const Value *parts, u32 count, Value *out) MUST_USE; /* texts, borrowed */
/* Where `part` of m bytes begins in n bytes; *hit NULL: nowhere. Error: the program is to end. */
WeftStatus text_find(Vm *vm, const char *s, size_t n, const char *part, size_t m, const char **hit) MUST_USE;
bool text_repeat(Vm *vm, const Text *t, u64 n, Value *out) MUST_USE; /* n times, one behind the other */
/* *text is replaced; in place when large and unique */
bool text_append(Vm *vm, Value *text, const Text *more) MUST_USE;
enum { NUMBER_DIGITS = 21 };
u32 number_digits(Value v, char *out); /* of an integer, into out[NUMBER_DIGITS]; how many */
bool text_printf(Vm *vm, Value *out, const char *fmt, ...) PRINTF_LIKE(3, 4) MUST_USE;
/* code points, clamped by caller */
bool text_slice(Vm *vm, Value text, i64 start, i64 stop, i64 step, Value *out) MUST_USE;
bool list_new(Vm *vm, u32 cap, Value *out) MUST_USE; /* empty, with room for cap items */
bool list_from(Vm *vm, const Value *items, u32 count, Value *out) MUST_USE; /* borrows items */
bool list_extend(Vm *vm, Value *list, const Value *items, u32 count) MUST_USE; /* borrows items */
bool list_push(Vm *vm, Value *list, Value item) MUST_USE; /* consumes item; copies the list first when shared */
bool list_unique(Vm *vm, Value *list) MUST_USE;           /* afterwards *list has one count */
void list_shorten(Vm *vm, List *l, u32 start, u32 count);  /* to some of its items; it has one count */
bool record_new(Vm *vm, Value *out) MUST_USE;
bool record_new_shape(Vm *vm, Shape *shape, Value *out) MUST_USE; /* items are nil; borrows shape */
bool record_new_keys(Vm *vm, const Name *keys, u32 count, Value *out) MUST_USE; /* the same; keys: different ones */
bool record_set(Vm *vm, Value *rec, Name key, Value item) MUST_USE; /* consumes item; makes *rec unique */
bool record_unique(Vm *vm, Value *rec) MUST_USE;
bool record_remove(Vm *vm, Value *rec, Name key, bool *found) MUST_USE;
Value *record_find(const Record *r, Name key); /* NULL when absent; borrowed */
Value *record_at(Vm *vm, const Record *r, Text *key); /* the same for a text that need be nobody's name yet */
/* the name that it is, as long as the text is there; made where it was none */
bool text_name_of(Vm *vm, Text *t, Name *out) MUST_USE;
/* Of different keys: shared, or, of more than SHAPE_SHARED_MAX, a new one. Owned; NULL: memory was refused (error
 * raised). */
Shape *shape_of_keys(Vm *vm, const Name *keys, u32 count);
i64 shape_find(const Shape *s, Name key); /* position, -1 when absent */
void shape_drop(Vm *vm, Shape *s);
void env_drop(Vm *vm, Env *e);
/* What is dead and waits (Vm.dead) is destroyed: unless the program is to end; whatever comes. */
void values_go_on(Vm *vm);
void values_settle(Vm *vm);
bool range_new(Vm *vm, i64 start, i64 stop, i64 step, Value *out) MUST_USE;
u64 range_count(const Range *r);
bool ref_new(Vm *vm, Value inner, Value *out) MUST_USE; /* consumes inner */
bool fn_builtin(Vm *vm, u32 op, Value *out) MUST_USE; /* one that is written in Weft is loaded */
bool fn_named(Vm *vm, u32 op, Value *out) MUST_USE;   /* the operation by its number alone, nothing is loaded */
bool fn_closure(Vm *vm, struct Code *code, Env *env, Value *out) MUST_USE; /* counts code, consumes env (may be NULL) */
/* copies *host; its release runs when the value goes */
bool fn_host(Vm *vm, const struct HostFn *host, Value *out) MUST_USE;
Env *env_new(Vm *vm, u32 count); /* slots nil; NULL when refused (error raised) */
bool handle_new(Vm *vm, const HandleType *type, void *object, Value fields, Value *out) MUST_USE; /* consumes fields */
Value *value_field(Value v, Name key); /* of a record, or of a handle that has fields; NULL when absent; borrowed */
/* Has the object say its fields again when the host ran since (nothing for a type without `flatten`). What was read
 * from the fields before loses its count: not while a region runs. On an error they stay as they were. */
WeftStatus handle_refresh(Vm *vm, Handle *h) MUST_USE;
WeftStatus handle_flatten(Vm *vm, const Handle *h, Value *out) MUST_USE; /* the record that it says now, owned */
bool fn_transform(Vm *vm, u32 transform, Value inner, Value settings, Value *out) MUST_USE; /* consumes both */

const char *value_type_name(Value v); /* "array", "text" … as type() says */
const char *value_type_phrase(Value v); /* "an array", "a number" (of rank 0), "a text", "nil" … in a sentence */
/* Structural equality as `==` on anything but two arrays; arrays inside compare elementwise-all. */
WeftStatus value_equal(Vm *vm, Value a, Value b, bool *out) MUST_USE;

#endif
