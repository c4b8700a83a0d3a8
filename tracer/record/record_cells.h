/* record_cells.h — what a trace writes beside registers: module variables, contents of refs, the random state. */
#ifndef WEFT_TRACER_RECORD_CELLS_H
#define WEFT_TRACER_RECORD_CELLS_H

#include "tracer/record/record.h"

Outcome rec_cell_global(Recorder *r, struct Module *m, u32 slot, u32 *cell);
/* cells of the tables of refs (repr_ref.c) */
Outcome rec_ref_field(Recorder *r, Av a, Name name, Av *out, bool *found);
Outcome rec_ref_put(Recorder *r, Av a, Name name, Av item, Av *out);
Outcome rec_cell_ref(Recorder *r, Av ref, u32 *cell);
void rec_cell_path(Recorder *r, u32 cell, RecCellPath *path);
Outcome rec_cell_again(Recorder *r, const RecCellPath *path, u32 *cell);
bool random_state_read(Vm *vm, u32 id, Value *out);
void random_state_write(Vm *vm, u32 id, Value v);
Outcome rec_random(Recorder *r, u32 op, const Av *params, Av *out);
Outcome rec_cells_find(Recorder *r, RecCellSet *set);
bool rec_cells_save(Recorder *r, RecCellSet *set);
void rec_cells_undo(Recorder *r, const RecCellSet *set);
void rec_cells_free(Recorder *r, RecCellSet *set);
Outcome rec_cells_grow(Recorder *r, RecCellSet *set, bool *grown);
/* stuck when something was written since the save */
Outcome rec_cells_none(Recorder *r, const RecCellSet *set, const char *who);
Av rec_cells_with(Recorder *r, const RecCellSet *set, Av tree);
bool rec_cell_leaves(Recorder *r, u32 cell, AvVec *out); /* the numbers that are carried for it, in order */
Av rec_cells_enter(Recorder *r, const RecCellSet *set, Av both);
Outcome rec_cells_take(Recorder *r, const RecCellSet *set, Av both, Av *state);
Av rec_cell_clean(Recorder *r, u32 cell); /* what was in it on entry; 0: not known any more */

#endif
