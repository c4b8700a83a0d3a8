/* code_memory.h — inside jit/: the memory that a VM's machine code lies in.
 *
 * A few large mappings; pieces are taken and given back in any order. A mapping is writable or executable, never
 * both: while the memory is open its pieces may be written and none may run, so one pair of system calls serves all
 * that is compiled together. Mappings are private: the child of a fork has its own copy. */
#ifndef WEFT_JIT_CODE_MEMORY_H
#define WEFT_JIT_CODE_MEMORY_H

#include "parser/base.h"

typedef struct CodeMemory CodeMemory;

CodeMemory *code_memory_new(Allocator *alloc); /* NULL: refused */
void code_memory_free(CodeMemory *m);          /* with all that lies in it; NULL is nothing */

/* They nest. What is open at last becomes executable; false: the system refused that, and what was taken must be given
 * back. */
void code_memory_open(CodeMemory *m);
bool code_memory_close(CodeMemory *m) MUST_USE;

/* A piece, aligned to 64 bytes, writable until the memory is closed; NULL: refused. The memory must be open. */
u8 *code_memory_take(CodeMemory *m, size_t bytes) MUST_USE;
/* The end of a piece that was taken larger than needed goes back. */
void code_memory_trim(CodeMemory *m, u8 *piece, size_t bytes, size_t needed);
void code_memory_give(CodeMemory *m, u8 *piece, size_t bytes); /* NULL is nothing */

#endif
