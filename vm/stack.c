/* stack.c — segments of registers and the vector of frames (see stack.h). */
#include "vm/stack.h"

enum { SEGMENT_VALUES = 8 * 1024, FIRST_FRAMES = 64 };

static void use_segment(Vm *vm, Segment *s) {
  vm->stack_segments = s;
  vm->stack = s->values;
  vm->stack_end = s->values + s->count;
}

static Segment *new_segment(Vm *vm, size_t count) {
  Segment *s = mem_alloc(&vm->alloc, sizeof *s + sizeof(Value) * count);
  if (s) *s = (Segment){.count = count};
  return s;
}

static void free_segment(Vm *vm, Segment *s) { mem_free(&vm->alloc, s, sizeof *s + sizeof(Value) * s->count); }

bool stack_init(Vm *vm) {
  Segment *s = new_segment(vm, SEGMENT_VALUES);
  if (!s) return false;
  use_segment(vm, s);
  vm->stack_top = s->values;
  vm->frame_cap = FIRST_FRAMES;
  vm->frames = mem_alloc(&vm->alloc, sizeof *vm->frames * vm->frame_cap);
  return vm->frames != NULL;
}

void stack_free(Vm *vm) {
  Segment *s = vm->stack_segments;
  if (s && s->next) free_segment(vm, s->next);
  while (s) {
    Segment *prev = s->prev;
    free_segment(vm, s);
    s = prev;
  }
  vm->stack_segments = NULL;
  mem_free(&vm->alloc, vm->frames, sizeof *vm->frames * vm->frame_cap);
  vm->frames = NULL;
}

Value *stack_enter_segment(Vm *vm, u32 n) {
  Segment *now = vm->stack_segments, *s = now->next;
  if (s && s->count < n) {
    free_segment(vm, s);
    s = now->next = NULL;
  }
  if (!s) {
    s = new_segment(vm, n > SEGMENT_VALUES ? n : SEGMENT_VALUES);
    if (!s) {
      (void)vm_error_memory(vm);
      return NULL;
    }
    s->prev = now;
    now->next = s;
  }
  s->saved_top = vm->stack_top;
  use_segment(vm, s);
  vm->stack_top = s->values + n;
  return s->values;
}

/* The segment left stays as a spare, so that a call at a boundary does not allocate each time. */
void stack_leave_segment(Vm *vm) {
  Segment *s = vm->stack_segments;
  if (!s->prev) return;
  if (s->next) {
    free_segment(vm, s->next);
    s->next = NULL;
  }
  use_segment(vm, s->prev);
  vm->stack_top = s->saved_top;
}

bool frames_grow(Vm *vm) {
  if (vm->frame_count + vm->native_depth >= vm->limits.depth)
    return (void)vm_limit(vm, LIMIT_depth, "too deep a recursion: %u calls stand inside each other", vm->limits.depth),
        false;
  if (vm->frame_count < vm->frame_cap) return true;
  u32 cap = vm->frame_cap * 2;
  Frame *frames = mem_resize(&vm->alloc, vm->frames, sizeof *frames * vm->frame_cap, sizeof *frames * cap);
  if (!frames) return (void)vm_error_memory(vm), false;
  vm->frames = frames;
  vm->frame_cap = cap;
  return true;
}
