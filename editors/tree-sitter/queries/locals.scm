; locals.scm — where names are declared, and how far they reach.

[
  (program)
  (block)
  (lambda)
  (function_expression)
  (function_definition)
  (for_expression)
  (try_expression)
] @local.scope

(let_statement pattern: (identifier) @local.definition)
(for_expression pattern: (identifier) @local.definition)
(try_expression pattern: (identifier) @local.definition)
(list_pattern (identifier) @local.definition)
(record_pattern (identifier) @local.definition)
(field_pattern pattern: (identifier) @local.definition)
(rest_pattern (identifier) @local.definition)
(parameters (identifier) @local.definition)
(parameter name: (identifier) @local.definition)
(lambda parameters: (identifier) @local.definition)
(function_definition name: (identifier) @local.definition)
(import_statement name: (identifier) @local.definition)
(import_statement module: (identifier) @local.definition)

(identifier) @local.reference
