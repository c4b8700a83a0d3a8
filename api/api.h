/* api.h — facade: what the program of this project needs besides weft.h: the VM behind a WeftVM. */
#ifndef WEFT_API_API_H
#define WEFT_API_API_H

#include "api/weft.h"
#include "vm/vm.h"

Vm *weft_vm_of(WeftVM *vm);
struct Module *weft_main_of(WeftVM *vm);
Value weft_value_of(const WeftValue *value); /* borrowed */

/* What weft_load_file does with the text of a file, for who has read it already: imports are looked for beside
 * `path`. */
WeftStatus weft_run_text(WeftVM *vm, const char *text, size_t len, const char *path, WeftValue **out);

#endif
