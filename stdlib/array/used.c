/* used.c — the columns of a table that a function looks at (table.used), read off its code. */
#include "stdlib/array/make.h"

#include <string.h>

static bool takes_first(const InsUse *u) {
  for (u32 i = 0; i < u->nreads; i++)
    if (!u->reads[i]) return true;
  for (u32 i = 0; i < u->ncaptures; i++)
    if (u->captures[i].kind == CAP_REGISTER && !u->captures[i].index) return true;
  return u->run_count && !u->run;
}

/* A field of t, by its number. */
static bool mark(const Record *t, Name name, bool *used) {
  for (u32 k = 0; k < t->shape->count; k++)
    if (t->shape->keys[k] == name) return used[k] = true;
  return false; /* the error names what there is */
}

/* Marks what the function takes of its first parameter, in register 0, by fields alone. False: it does more with it. */
static bool mark_used(Vm *vm, const Proto *p, const Record *t, bool *used) {
  if (!p->npositional) return false;
  for (u32 pc = 0; pc < p->ncode; pc++) {
    const Ins ins = p->code[pc];
    const u32 op = ins_op(ins), c = ins_c(ins);
    InsUse u;
    Name name;
    ins_uses(p, pc, &u);
    if (!takes_first(&u)) continue;
    if (op == BC_field && !ins_b(ins)) {
      if (!mark(t, p->descs[c].name, used)) return false;
    } else if (op == BC_index && !ins_b(ins) && c & INS_CONST) {
      const Const *k = &p->consts[c & ~(u32)INS_CONST];
      if (k->kind != CK_TEXT || !name_known(&vm->names, k->text, k->len, &name) || !mark(t, name, used)) return false;
    } else if (op == BC_unpackrec && !p->descs[c].has_rest) {
      for (u32 i = 0; i < p->descs[c].name_count; i++)
        if (!mark(t, p->descs[c].names[i], used)) return false;
    } else {
      return false;
    }
  }
  return true;
}

WeftStatus eager_table_used(Vm *vm, Value *args, Value *out) {
  if (args[0].kind != V_FN) return args_error(vm, OP_table_used, 0, args[0], "a function");
  if (args[1].kind != V_RECORD) return args_error(vm, OP_table_used, 1, args[1], "a record of columns");
  const Record *t = args[1].record;
  const Fn *f = args[0].fn;
  const u32 count = t->shape->count;
  bool *used = mem_alloc_zero(&vm->alloc, count + 1);
  if (!used) return vm_error_memory(vm);
  const bool some = f->kind == FN_CLOSURE && mark_used(vm, f->code->proto, t, used);
  WeftStatus status = list_new(vm, count, out) ? WEFT_OK : WEFT_ERROR;
  for (u32 k = 0; k < count && status == WEFT_OK; k++) {
    const char *name = name_text(&vm->names, t->shape->keys[k]);
    Value text;
    if (some && !used[k]) continue;
    if (text_new(vm, name, strlen(name), &text)) {
      status = list_add(vm, out, text);
    } else {
      value_drop(vm, *out);
      status = WEFT_ERROR;
    }
  }
  mem_free(&vm->alloc, used, count + 1);
  return status;
}
