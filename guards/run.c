/* run.c — running compiled guards (see guards.h).
 *
 * Most walks read an argument and check its type, read a size and compare it, time and again. Such pairs are one
 * step of the program that runs, which also fills the slot of the input that the read feeds; what is rarer is a step
 * that does one of the walk. Steps check the guards in the walk's order. */
#include "lang/mechanisms.h"
#include "guards/guards_inner.h"

#include <string.h>

/* ---- from walk to steps --------------------------------------------------------------------------- */

static bool reads_root(const Walk *w) { return w->op == WALK_READ && w->kind <= SRC_reg; }
static bool reads_size(const Walk *w) { return w->op == WALK_READ && w->kind == SRC_size; }

static u32 value_at(u32 place) { return place * (u32)sizeof(Value); }
static u32 run_word_at(u32 word) { return word * (u32)sizeof(u64); }

/* The step for what stands at `at` of the walk. Returns how much of the walk it does. */
static u32 fuse(const GuardProg *p, u32 at, GuardStep *s) {
  const Walk *w = &p->walk[at], *next = at + 1 < p->nwalk ? w + 1 : NULL;
  *s = (GuardStep){.op = RUN_walk, .guard = w->guard, .from = at, .slot = NO_SLOT, .word = w->word, .mask = w->mask};
  if (reads_root(w)) {
    s->op = RUN_root;
    s->from = value_at(w->index);
    s->to = value_at(w->to);
    if (!next || next->from != w->to || (next->op != WALK_TAG_ARRAY && next->op != WALK_TAG)) return 1;
    s->op = next->op == WALK_TAG ? RUN_root_value : RUN_root_array;
    s->guard = next->guard;
    s->word = next->word;
    s->mask = next->mask;
    return 2;
  }
  if (reads_size(w)) {
    u32 word = 2 * w->to + 1;
    s->op = RUN_size;
    s->axis = (u8)w->index;
    s->from = value_at(w->from);
    s->to = value_at(w->to);
    if (!next || next->op != WALK_SIZE || next->kind != REL_eq || (next->from == word) == (next->second == word))
      return 1;
    s->op = RUN_size_same;
    s->second = run_word_at(next->from == word ? next->second : next->from);
    s->guard = next->guard;
    return 2;
  }
  if (w->op == WALK_READ && w->kind == SRC_item) {
    s->op = RUN_item;
    s->second = w->index;
    s->from = value_at(w->from);
    s->to = value_at(w->to);
    if (!next || next->from != w->to || (next->op != WALK_TAG && next->op != WALK_CONST)) return 1;
    s->op = next->op == WALK_TAG ? RUN_item_value : RUN_item_const;
    s->guard = next->guard;
    s->word = next->word;
    s->mask = next->mask;
    return 2;
  }
  if (w->op == WALK_LEN && w->kind == REL_eq) {
    s->op = RUN_length;
    s->from = value_at(w->from);
  } else if (w->op == WALK_SIZE || w->op == WALK_SIZE_CONST) {
    s->op = w->op == WALK_SIZE ? RUN_relation : RUN_relation_const;
    s->kind = w->kind;
    s->from = run_word_at(w->from);
    s->second = run_word_at(w->second);
  } else if (w->op == WALK_AMBIENT) {
    s->op = RUN_ambient;
  }
  return 1;
}

bool guard_fuse(GuardProg *p, Arena *temp) {
  enum { NONE = UINT32_MAX };
  u32 *filler = arena_alloc(temp, sizeof *filler * (p->scratch + 1)); /* place -> the step that fills it */
  p->steps = arena_alloc(&p->arena, sizeof *p->steps * (p->nwalk + 1));
  p->late = arena_alloc(&p->arena, sizeof *p->late * (p->nfills + 1));
  p->donated = arena_alloc(&p->arena, sizeof *p->donated * (p->ndonated + 1));
  if (!filler || !p->steps || !p->late || !p->donated) return false;
  memset(filler, 0xff, sizeof *filler * (p->scratch + 1));
  for (u32 at = 0; at < p->nwalk;) {
    GuardStep *s = &p->steps[p->nsteps];
    if (p->walk[at].op == WALK_READ) filler[p->walk[at].to] = p->nsteps;
    at += fuse(p, at, s);
    p->nsteps++;
  }
  p->steps[p->nsteps] = (GuardStep){.op = RUN_end};
  p->ndonated = 0;
  for (u32 i = 0; i < p->nfills; i++) {
    const Fill *f = &p->fills[i];
    GuardStep *s = filler[f->from] == NONE ? NULL : &p->steps[filler[f->from]];
    if (s && s->op != RUN_walk && s->slot == NO_SLOT) s->slot = i;
    else p->late[p->nlate++] = i;
    if (f->donate) p->donated[p->ndonated++] = (Donated){i, value_at(f->reg)};
  }
  return true;
}

/* ---- checks --------------------------------------------------------------------------------------- */

bool keys_in_order(const Shape *s, const Name *keys, u32 count) {
  return s->count == count && (count == 0 || memcmp(s->keys, keys, sizeof *keys * count) == 0);
}

static bool code_is(const Fn *fn, u8 kind, u64 word, const void *pointer) {
  if (fn->kind != kind) return false;
  switch (kind) {
    case FN_CLOSURE: return fn->code->id == word;
    case FN_BUILTIN: return fn->op == word;
    case FN_TRANSFORM: return fn->transform == word;
    default: return fn->host == pointer;
  }
}

/* An object of the host whose fields are about to be read. When it cannot say them nothing is found: the
 * interpreter that reads them then raises. */
static bool fresh(Vm *vm, Value v) {
  if (v.kind != V_HANDLE || !v.handle->type->flatten || !MECHANISM(vm, flattened_anew) ||
      handle_refresh(vm, v.handle) == WEFT_OK)
    return true;
  vm_error_clear(vm);
  return false;
}

/* The guards that guard_run does not check itself. */
static __attribute__((noinline)) bool passes(Vm *vm, const GuardProg *p, const Walk *w, const Value *scratch) {
  const u64 *words = (const u64 *)(const void *)scratch;
  Value v = w->op <= WALK_KEY || w->op == WALK_IDENT || w->op == WALK_HOST ? scratch[w->from] : value_nil();
  switch (w->op) {
    case WALK_TAG_ARRAY: return v.kind == V_ARRAY && (v.array->tag & w->mask) == w->word;
    case WALK_TAG: return value_tag(v) == w->word;
    case WALK_CONST: return value_tag(v) == w->mask && v.bits == w->word;
    case WALK_TEXT: {
      const Guard *x = &p->set.guards.data[w->guard - 1];
      return v.kind == V_TEXT && v.text->len == x->text_len && memcmp(v.text->data, w->pointer, x->text_len) == 0;
    }
    case WALK_CODE: return v.kind == V_FN && code_is(v.fn, w->kind, w->word, w->pointer);
    case WALK_LEN: return v.kind == V_LIST && (w->kind == REL_eq ? v.list->count == w->word : v.list->count >= w->word);
    case WALK_ROWS: {
      const Guard *x = &p->set.guards.data[w->guard - 1];
      if (x->value_kind == V_TEXT) return v.kind == V_TEXT && v.text->len == v.text->count;
      if (x->value_kind == V_RECORD) {
        Value kind = {0};
        memcpy(&kind, &w->word, sizeof w->word);
        return v.kind == V_RECORD && rows_keyed_fit(vm, v.record, kind);
      }
      if (v.kind != V_LIST || v.list->count > ROWS_MOST ||
          (x->text && x->word == ROW_RAGGED && !looked_into(vm, v.list)))
        return false;
      const Packed *packed = rows_known(vm, v.list, x->text && x->word == ROW_RAGGED);
      return rows_fit(packed ? &packed->kind : v.list->items, packed ? 1 : v.list->count,
                      x->text ? (const void *)x->text : &w->word);
    }
    case WALK_SHAPE: {
      if (v.kind != V_RECORD) return false;
      if (w->word && v.record->shape == (const Shape *)(uintptr_t)w->word) return true;
      const Guard *x = &p->set.guards.data[w->guard - 1];
      return keys_in_order(v.record->shape, x->keys, x->key_count);
    }
    case WALK_KEY: return fresh(vm, v) && value_field(v, w->index) != NULL;
    case WALK_CELL: {
      const Module *m = w->pointer;
      return m && w->index < m->slot_cap && m->slots[w->index].version == w->word;
    }
    case WALK_AMBIENT: return vm->ambient == w->word;
    case WALK_IDENT: {
      Value o = scratch[w->second];
      return (v.kind == o.kind && v.obj == o.obj) == (w->kind == REL_eq);
    }
    case WALK_SIZE: return rel_holds(w->kind, (i64)words[w->from], (i64)words[w->second]);
    case WALK_SIZE_CONST: return rel_holds(w->kind, (i64)words[w->from], (i64)w->word);
    case WALK_SIZE_CODE: {
      i64 a, b;
      return size_run(&p->codes[w->word], words, &a) && size_run(&p->codes[w->word + 1], words, &b) &&
             rel_holds(w->kind, a, b);
    }
    default: {
      const Guard *x = &p->set.guards.data[w->guard - 1];
      return x->host(x->host_ctx, v, x->word);
    }
  }
}

/* A read never fails behind its guards, except of what may be missing: captures, globals, host values. */
bool walk_read(Vm *vm, const GuardProg *p, const Frame *f, const Walk *w, Value *scratch) {
  Value *to = &scratch[w->to];
  switch (w->kind) {
    case SRC_arg:
    case SRC_reg: *to = f->base[w->index]; return true;
    case SRC_global: {
      const Module *m = w->pointer;
      if (!m || w->index >= m->slot_cap) return false;
      *to = m->slots[w->index].value;
      return true;
    }
    case SRC_size: *to = value_weak_i64(scratch[w->from].array->geometry[w->index]); return true;
    case SRC_capture0:
    case SRC_ambient:
    case SRC_host: {
      Source s = {.kind = w->kind, .index = w->index};
      return root_read(vm, &p->set, &s, f, to);
    }
    default: return fresh(vm, scratch[w->from]) && part_read(vm, (SourceKind)w->kind, w->index, scratch[w->from], to);
  }
}

/* The first guard that follows a read: what a read that finds nothing is charged to. */
static __attribute__((noinline)) u32 guard_behind(const GuardProg *p, u32 at) {
  for (u32 i = at; i < p->nwalk; i++)
    if (p->walk[i].guard) return p->walk[i].guard;
  for (u32 i = at; i-- > 0;)
    if (p->walk[i].guard) return p->walk[i].guard;
  return 1;
}

_Static_assert(SRC_arg == 1 && SRC_reg == 2, "guard_run reads roots up to SRC_reg from the frame's registers");
_Static_assert(sizeof(Value) == 2 * sizeof(u64) && offsetof(Value, kind) == 0 && offsetof(Value, bits) == sizeof(u64),
               "guard_run takes Values as two words");

static inline u64 *words_in(void *values, u32 at) { return (u64 *)(void *)((char *)values + at); }

/* All fills that no step does, then what is given away. False: memory was refused. */
static inline bool fill(Vm *vm, Frame *f, const GuardProg *p, u64 *slots, const Value *scratch) {
  for (const u32 *i = p->late, *end = i + p->nlate; i < end; i++) slots[*i] = scratch[p->fills[*i].from].bits;
  if (UNLIKELY(p->nrows) && !rows_fill(vm, p, scratch, slots)) return false;
  for (const Donated *d = p->donated, *end = d + p->ndonated; d < end; d++)
    *(Value *)words_in(f->base, d->reg) = value_hole();
  return true;
}

u32 guard_run(Vm *vm, Frame *f, const GuardProg *p, u64 *slots, Value *scratch) {
  Value *base = f->base;
  const u64 weak_i64 = value_tag(value_weak_i64(0));
  for (const GuardStep *s = p->steps;; s++) {
    u64 head, bits, *at;
    switch ((RunOp)s->op) {
      case RUN_root_array:
        at = words_in(base, s->from);
        head = at[0];
        bits = at[1];
        if (UNLIKELY((u8)head != V_ARRAY) || UNLIKELY((((const Array *)(uintptr_t)bits)->tag & s->mask) != s->word))
          return s->guard;
        break;
      case RUN_root_value:
        at = words_in(base, s->from);
        head = at[0];
        bits = at[1];
        if (UNLIKELY(head != s->word)) return s->guard;
        break;
      case RUN_root:
        at = words_in(base, s->from);
        head = at[0];
        bits = at[1];
        break;
      case RUN_size:
        head = weak_i64;
        bits = (u64)((const Array *)(uintptr_t)words_in(scratch, s->from)[1])->geometry[s->axis];
        break;
      case RUN_size_same:
        head = weak_i64;
        bits = (u64)((const Array *)(uintptr_t)words_in(scratch, s->from)[1])->geometry[s->axis];
        if (UNLIKELY(bits != *words_in(scratch, s->second))) return s->guard;
        break;
      case RUN_relation:
        if (UNLIKELY(!rel_holds(s->kind, (i64)*words_in(scratch, s->from), (i64)*words_in(scratch, s->second))))
          return s->guard;
        continue;
      case RUN_relation_const:
        if (UNLIKELY(!rel_holds(s->kind, (i64)*words_in(scratch, s->from), (i64)s->word))) return s->guard;
        continue;
      case RUN_ambient:
        if (UNLIKELY(vm->ambient != s->word)) return s->guard;
        continue;
      case RUN_item:
      case RUN_item_value:
      case RUN_item_const: {
        Value *of = (Value *)words_in(scratch, s->from);
        if (UNLIKELY(list_is_packed(of->list)) && !looked_into(vm, of->list)) return guard_behind(p, 0);
        at = (u64 *)(void *)&of->list->items[s->second];
        head = at[0];
        bits = at[1];
        if (s->op == RUN_item) break;
        if (UNLIKELY(head != (s->op == RUN_item_value ? s->word : s->mask)) ||
            UNLIKELY(s->op == RUN_item_const && bits != s->word))
          return s->guard;
        break;
      }
      case RUN_length: {
        const Value *of = (const Value *)words_in(scratch, s->from);
        if (UNLIKELY(of->kind != V_LIST) || UNLIKELY(of->list->count != s->word)) return s->guard;
        continue;
      }
      case RUN_walk: {
        const Walk *w = &p->walk[s->from];
        if (w->op == WALK_READ) {
          if (UNLIKELY(!walk_read(vm, p, f, w, scratch))) return guard_behind(p, s->from);
        } else if (UNLIKELY(!passes(vm, p, w, scratch))) {
          return s->guard;
        }
        continue;
      }
      case RUN_end: return LIKELY(fill(vm, f, p, slots, scratch)) ? GUARD_PASS : guard_behind(p, 0);
      default: __builtin_unreachable();
    }
    at = words_in(scratch, s->to);
    at[0] = head;
    at[1] = bits;
    if (s->slot != NO_SLOT) slots[s->slot] = bits;
  }
}

void guard_undonate(Frame *f, const GuardProg *p, u64 *slots) {
  for (u32 i = 0; p->nrows && i < p->nfills; i++)
    if (p->fills[i].rows) rows_give_back(p->vm, &slots[i]);
  for (const Donated *d = p->donated, *end = d + p->ndonated; d < end; d++) {
    Array *a = (Array *)(uintptr_t)slots[d->slot];
    if (!a) continue;
    Value v = value_obj(V_ARRAY, a);
    v.dtype = (u8)array_dtype(a);
    *(Value *)words_in(f->base, d->reg) = v;
    slots[d->slot] = 0;
  }
}
