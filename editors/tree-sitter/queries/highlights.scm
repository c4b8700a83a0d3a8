; highlights.scm — colours of Weft. Of two patterns for one node the later one holds.

(identifier) @variable

((identifier) @variable.builtin
  (#eq? @variable.builtin "_"))

((identifier) @constant
  (#any-of? @constant "pi" "inf" "nan"))

((identifier) @type.builtin
  (#any-of? @type.builtin
    "bool" "u8" "i32" "u32" "i64" "u64" "f16" "bf16" "f32" "f64" "c64" "c128"))

(member name: (identifier) @property)
(entry key: (identifier) @property)
(field_pattern key: (identifier) @property)
(named_argument name: (identifier) @variable.parameter)

(parameters (identifier) @variable.parameter)
(parameters (rest_pattern (identifier) @variable.parameter))
(parameter name: (identifier) @variable.parameter)
(lambda parameters: (identifier) @variable.parameter)

(call function: (identifier) @function.call)
(call function: (member name: (identifier) @function.call))
(pipe_expression right: (identifier) @function.call)
(function_definition name: (identifier) @function)
(let_statement
  pattern: (identifier) @function
  value: [(lambda) (function_expression)])

(member
  value: (identifier) @module
  (#any-of? @module
    "linalg" "nn" "random" "optim" "trace" "regex" "json" "date" "table" "stats" "signal" "ode"
    "integrate" "fft" "plot"))
(import_statement (identifier) @module)

(type name: (identifier) @type)

["let" "fn"] @keyword.function
["if" "else"] @keyword.conditional
["for" "while" "by"] @keyword.repeat
(break_statement) @keyword.repeat
(continue_statement) @keyword.repeat
"in" @keyword.operator
(for_expression "in" @keyword.repeat)
"return" @keyword.return
["try" "catch"] @keyword.exception
"import" @keyword.import
"as" @keyword.import.as
["and" "or" "not"] @keyword.operator

[(true) (false)] @boolean
(nil) @constant.builtin
(type name: "nil" @constant.builtin)

(integer) @number
(float) @number.float

(string) @string
(format_string) @string
(format) @string.special
(interpolation) @embedded
(escape_sequence) @string.escape
(brace) @string.escape
(interpolation ["{" ":" "}"] @punctuation.special)

(comment) @comment
((comment) @comment.documentation
  (#match? @comment.documentation "^##([^#]|$)"))

[
  "=" "+=" "-=" "*=" "/=" "//=" "%=" "@=" "**=" "&=" "|=" "^=" "<<=" ">>="
  "+" "-" "*" "/" "//" "%" "@" "**" "~" "&" "|" "^" "<<" ">>"
  "==" "!=" "<" "<=" ">" ">=" ".." "|>" "=>" "..."
] @operator
(ellipsis) @operator

["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";" "." ":"] @punctuation.delimiter
