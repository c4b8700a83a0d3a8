/* field.h — names behind a dot: record fields, module variables, properties; annotations of parameters. */
#ifndef WEFT_VM_FIELD_H
#define WEFT_VM_FIELD_H

#include "vm/vm.h"

/* The nearest key of a record to `name`, for "did you mean"; 0 when none is near. */
Name record_nearest(const Vm *vm, const Record *r, Name name);
WeftStatus field_missing(Vm *vm, const Record *r, Name name); /* raises the key error */
WeftStatus field_no_method(Vm *vm, Value obj, Name name);      /* raises: neither a field nor a function */

/* BC_method: is there a field that hides the function? Then *found and *out (owned). */
WeftStatus field_method(Vm *vm, Value obj, Name name, bool *found, Value *out) MUST_USE;

/* BC_checkarg: v against d. Sizes that are bound first go to bound[0 …]; the others are compared with regs. */
WeftStatus annot_check(Vm *vm, Name fn, const Desc *d, Value v, const Value *regs, Value *bound) MUST_USE;

#endif
