/* csv.h — what a field of a table holds; tables of plain numbers, read block by block. */
#ifndef WEFT_STDLIB_CSV_H
#define WEFT_STDLIB_CSV_H

#include "stdlib/files/files.h"

typedef enum FieldKind { FIELD_EMPTY, FIELD_INT, FIELD_FLOAT, FIELD_BOOL, FIELD_TEXT } FieldKind;

typedef union FieldValue {
  i64 i;
  f64 f;
  bool b;
} FieldValue;

/* Of an unquoted field, without the blanks around it; `decimal` stands before a fraction. */
FieldKind csv_kind(const char *s, size_t n, char decimal, FieldValue *out);

/* Reads the rows of an open regular file from byte `begin` on: `columns` new arrays in out, i64 where all fields are
 * integers that fit, else f64, nan for an empty field. *done false: some row is of another length or holds something
 * else than unquoted numbers (or the file cannot be read); nothing was made then. Errors: memory, limits. */
WeftStatus csv_number_columns(Vm *vm, int fd, u64 begin, char sep, u32 columns, Value *out, bool *done) MUST_USE;

#endif
