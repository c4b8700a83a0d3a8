" weft.vim — a line is indented by the bracket it is in: behind one that ends its line by two blanks more than that
" line, else below what follows the bracket. A line that goes on with the one above has two blanks more.
if exists('b:did_indent') | finish | endif
let b:did_indent = 1
setlocal indentexpr=WeftIndent(v:lnum) indentkeys=0},0),0],!^F,o,O
let b:undo_indent = 'setlocal indentexpr< indentkeys<'

if exists('*WeftIndent') | finish | endif
function s:Is(line, column, names)
  return synIDattr(synID(a:line, a:column, 1), 'name') =~# '^weft\(' . a:names . '\)$'
endfunction

" A line without its comment and the blanks at its end.
function s:Code(line)
  let text = getline(a:line)
  let at = match(text, '#')
  while at >= 0 && !s:Is(a:line, at + 1, 'Comment\|Doc\|Result\|Todo')
    let at = match(text, '#', at + 1)
  endwhile
  return substitute(at < 0 ? text : strpart(text, 0, at), '\s\+$', '', '')
endfunction

" Where the innermost bracket begins that is open in front of the line; [0, 0] for none. The lines above are laid out
" already: none is looked for in front of one that begins with a word in the first column.
function s:Open(line)
  call cursor(a:line, 1)
  let from = search('^\a', 'bnW')
  let skip = 's:Is(line("."), col("."), "Text\\|Long\\|Escape\\|Brace\\|Edge\\|Format\\|Comment\\|Doc\\|Result\\|Todo")'
  return searchpairpos('[([{]', '', '[)\]}]', 'bnW', skip, from, 1000)
endfunction

function WeftIndent(line)
  let above = prevnonblank(a:line - 1)
  if above == 0 | return 0 | endif
  " What stands in a text of several lines is the text's.
  let last = col([a:line - 1, '$']) - 1
  if s:Is(a:line, 1, 'Long\|Escape\|Brace') && (last < 1 || s:Is(a:line - 1, last, 'Long\|Escape\|Brace'))
    return -1
  endif
  let text = getline(a:line)
  let [row, column] = s:Open(a:line)
  let indent = 0
  if row > 0
    if text =~# '^\s*[})\]]' | return indent(row) | endif
    let behind = matchstr(strpart(s:Code(row), column), '\S.*')
    if behind !=# ''
      return virtcol([row, column]) + match(strpart(getline(row), column), '\S')
    endif
    let indent = indent(row) + shiftwidth()
  endif
  let goes_on = text =~# '^\s*\(|>\|\.\a\|else\>\)'
  if above > row
    let goes_on = goes_on || s:Code(above) =~# '\([-+*/%@&|^<>=]\|\<\(and\|or\|not\|in\|by\)\)$'
  endif
  return goes_on ? indent + shiftwidth() : indent
endfunction
