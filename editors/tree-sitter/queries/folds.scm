; folds.scm — what an editor can fold.

[
  (block)
  (record)
  (record_pattern)
  (list)
  (array)
  (arguments)
  (parameters)
  (string)
  (format_string)
  (comment)+
] @fold
