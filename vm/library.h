/* library.h — functions of the standard library that are written in Weft, loaded when they are first named. */
#ifndef WEFT_VM_LIBRARY_H
#define WEFT_VM_LIBRARY_H

#include "vm/vm.h"

static inline bool library_has(const Vm *vm, u32 op) { return vm->library && vm->library->module_of[op]; }
/* Loads the module that has `op`: vm->builtins gets its functions. */
WeftStatus library_load(Vm *vm, u32 op) MUST_USE;

/* How an error is said by that function: `sum: axis 3 …` becomes `nn.rms_norm: axis 3 …`, and where `sum` speaks of an
 * argument, the parameter is named that it came from. Where it came from none, the operation's own name stays too. */
typedef struct LibrarySaid {
  u32 op;            /* the text is its name, a colon, `param` and `rest` */
  const char *param; /* or "" */
  u32 param_len;
  const char *rest;
  char made[160]; /* `rest`, where it is no part of the text s */
} LibrarySaid;
/* False: the text s of an error stays as it is. */
bool library_said(const Vm *vm, ErrorKind kind, const char *s, LibrarySaid *out);

#endif
