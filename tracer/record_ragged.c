/* record_ragged.c — lists of lists of any length that a loop reads: adjacency lists, tables with rows of their own lengths.
 *
 * Such an AV_ROWS has in place of columns two AV_ROWS: where each list begins (and behind them where the next one would), and the items of
 * all of them. It comes from outside and is not changed. One of the lists is an AV_ROW, which is what it was when the region is left. */
#include "tracer/record.h"

Outcome rec_row_of(Recorder *r, Av rows, ValueId at, Av *out) {
  Av starts = av_item(r, av_item(r, rows, 0), 0), parts[4] = {rows, 0, 0, 0}, next, stop;
  Outcome o = rec_made(r, av_num(r, graph_convert(r->g, at, DT_i64)), &parts[1]);
  if (o == OUT_GO) o = rec_binary(r, BC_add, parts[1], av_const(r, value_weak_i64(1)), &next);
  if (o == OUT_GO) o = rec_rows_item(r, starts, parts[1], &parts[2]);
  if (o == OUT_GO) o = rec_rows_item(r, starts, next, &stop);
  if (o == OUT_GO) o = rec_binary(r, BC_sub, stop, parts[2], &parts[3]);
  return o == OUT_GO ? rec_made(r, av_items(r, AV_ROW, parts, 4), out) : o;
}

Outcome rec_row_item(Recorder *r, Av row, Av at, Av *out) {
  Av flat = av_item(r, av_item(r, av_item(r, row, 0), 0), 1), moved;
  Outcome o = rec_binary(r, BC_add, av_item(r, row, 2), at, &moved);
  return o == OUT_GO ? rec_rows_item(r, flat, moved, out) : o;
}

Outcome rec_row_get(Recorder *r, Av row, Av at, Av *out) {
  ValueId i;
  Outcome o = rec_rows_position(r, row, av_item(r, row, 3), at, &i);
  return o == OUT_GO ? rec_row_item(r, row, av_num(r, graph_convert(r->g, i, DT_i64)), out) : o;
}
