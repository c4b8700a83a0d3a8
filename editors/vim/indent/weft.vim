" weft.vim — a block is indented by two blanks more than the line that opens it.
if exists('b:did_indent') | finish | endif
let b:did_indent = 1
setlocal indentexpr=WeftIndent(v:lnum) indentkeys=0},0),0],!^F,o,O
let b:undo_indent = 'setlocal indentexpr< indentkeys<'

if exists('*WeftIndent') | finish | endif
function WeftIndent(line)
  let above = prevnonblank(a:line - 1)
  if above == 0 | return 0 | endif
  let indent = indent(above)
  if getline(above) =~# '[{(\[]\s*\(#.*\)\?$' | let indent += shiftwidth() | endif
  if getline(a:line) =~# '^\s*[})\]]' | let indent -= shiftwidth() | endif
  return indent
endfunction
