; indents.scm — indentation as Neovim reads it: a line inside of brackets is indented.

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
] @indent.begin

["}" ")" "]"] @indent.branch @indent.end

[(string) (format_string)] @indent.ignore
