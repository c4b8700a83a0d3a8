/* sequence.c — what `for`, spreads and patterns walk over. */
#include <string.h>

#include "vm/vm.h"

static const u8 one_item[] = {IX_VALUE};

WeftStatus vm_seq_open(Vm *vm, Value seq, u64 *count) {
  seq = value_untracked(seq);
  switch (seq.kind) {
    case V_LIST: *count = seq.list->count; return WEFT_OK;
    case V_RANGE: *count = range_count(seq.range); return WEFT_OK;
    case V_TEXT: *count = seq.text->len; return WEFT_OK;
    case V_RECORD: *count = seq.record->shape->count; return WEFT_OK;
    case V_ARRAY:
      if (array_rank(seq.array)) {
        *count = (u64)array_dims(seq.array)[0];
        return WEFT_OK;
      }
      /* fall through */
    case V_NUM: return vm_error(vm, EK_type, "cannot walk over a number; 0..n is the range of n integers");
    case V_HANDLE:
      if (seq.handle->stream) return seq.handle->stream->open(vm, seq.handle, count);
      /* fall through */
    default: return vm_error(vm, EK_type, "cannot walk over %s", value_type_name(seq));
  }
}

static WeftStatus array_item(Vm *vm, Array *a, i64 i, Value *out) {
  u32 rank = array_rank(a);
  if (rank == 1 && array_device(a) == DEV_CPU && array_dtype(a) != DT_c128) {
    *out = array_load(a, i * array_strides(a)[0]);
    return WEFT_OK;
  }
  Value item;
  if (array_view(vm, a, i * array_strides(a)[0], rank - 1, array_dims(a) + 1, array_strides(a) + 1, &item) != WEFT_OK)
    return WEFT_ERROR;
  return array_settle(vm, item, out);
}

WeftStatus vm_seq_next(Vm *vm, Value seq, u64 *pos, Value *out) {
  u64 i = (*pos)++;
  switch (seq.kind) {
    case V_LIST:
      if (list_is_packed(seq.list)) return packed_item(vm, seq.list, (u32)i, out) ? WEFT_OK : WEFT_ERROR;
      *out = value_keep(seq.list->items[i]);
      return WEFT_OK;
    case V_RANGE: *out = value_weak_i64((i64)((u64)seq.range->start + i * (u64)seq.range->step)); return WEFT_OK;
    case V_ARRAY: return array_item(vm, seq.array, (i64)i, out);
    case V_TEXT: {
      const Text *t = seq.text;
      u64 end = i + 1;
      while (end < t->len && ((u8)t->data[end] & 0xC0) == 0x80) end++;
      *pos = end;
      return text_new(vm, t->data + i, end - i, out) ? WEFT_OK : WEFT_ERROR;
    }
    case V_RECORD: {
      const Record *r = seq.record;
      Name key = r->shape->keys[i];
      Value pair[2] = {value_nil(), r->items[i]};
      if (!text_new(vm, name_text(&vm->names, key), name_len(&vm->names, key), &pair[0])) return WEFT_ERROR;
      bool ok = list_from(vm, pair, 2, out);
      value_drop(vm, pair[0]);
      return ok ? WEFT_OK : WEFT_ERROR;
    }
    case V_HANDLE:
      *pos = i;
      return seq.handle->stream->next(vm, seq.handle, pos, out);
    default: { /* an array on a tape */
      Value index = value_weak_i64((i64)i);
      return vm_index(vm, seq, one_item, 1, &index, out);
    }
  }
}
