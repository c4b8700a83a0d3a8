; indents.scm — indentation as Helix reads it: a line inside of brackets is indented.

[
  (block)
  (record)
  (record_pattern)
  (list)
  (list_pattern)
  (array)
  (index)
  (arguments)
  (parameters)
  (parenthesized_expression)
] @indent

["}" ")" "]"] @outdent
