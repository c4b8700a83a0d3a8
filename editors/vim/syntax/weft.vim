" weft.vim — colours of Weft.
if exists('b:current_syntax') | finish | endif

syntax keyword weftDeclare let fn
syntax keyword weftControl if else for while in by break continue return try catch import
syntax keyword weftWord and or not
syntax keyword weftConstant true false nil pi inf nan
syntax keyword weftType bool u8 i32 u32 i64 u64 f16 bf16 f32 f64 c64 c128
syntax keyword weftModule linalg nn random optim trace regex json date table stats signal ode integrate fft plot

syntax match weftFunction /\(\<fn\s\+\)\@<=\k\+/
syntax match weftNumber /\<\d[0-9_]*\(\.\d[0-9_]*\)\?\([eE][+-]\?\d[0-9_]*\)\?j\?\>/
syntax match weftNumber /\<0[xX][0-9A-Fa-f_]\+\>/
syntax match weftNumber /\<0[bB][01_]\+\>/
syntax match weftOperator /[-+*\/%@&|^~<>=!]\|\.\.\+/

syntax match weftEscape /\\\(u{[0-9A-Fa-f]*}\|x[0-9A-Fa-f]\{2}\|.\)/ contained
syntax region weftText start=/"/ end=/"/ oneline contains=weftEscape
syntax region weftLong start=/"""/ end=/"""/ contains=weftEscape
syntax match weftBrace /{{\|}}/ contained
syntax region weftText start=/\<f"/ end=/"/ contains=weftEscape,weftBrace,weftInside
syntax region weftLong start=/\<f"""/ end=/"""/ contains=weftEscape,weftBrace,weftInside
syntax region weftInside matchgroup=weftEdge start=/{/ end=/}/ contained contains=@weftCode,weftNested,weftFormat
syntax region weftFormat matchgroup=weftEdge start=/:/ end=/}/me=s-1 contained contains=weftEscape,weftInside
" A colon inside of further brackets begins no format.
syntax region weftNested start=/(/ end=/)/ contained transparent contains=@weftCode,weftNested
syntax region weftNested start=/\[/ end=/\]/ contained transparent contains=@weftCode,weftNested
syntax region weftNested start=/{/ end=/}/ contained transparent contains=@weftCode,weftNested

syntax cluster weftCode contains=weftDeclare,weftControl,weftWord,weftConstant,weftType,weftModule,weftFunction
syntax cluster weftCode add=weftNumber,weftOperator,weftText,weftLong,weftComment,weftDoc,weftResult

syntax match weftComment /#.*/ contains=weftTodo,@Spell
syntax match weftDoc /^\s*##.*/ contains=@Spell
syntax match weftResult /#[=~>!] .*/

highlight default link weftDeclare Keyword
highlight default link weftControl Statement
highlight default link weftWord Operator
highlight default link weftConstant Constant
highlight default link weftType Type
highlight default link weftModule Include
highlight default link weftFunction Function
highlight default link weftNumber Number
highlight default link weftOperator Operator
highlight default link weftText String
highlight default link weftLong String
highlight default link weftEscape SpecialChar
highlight default link weftBrace SpecialChar
highlight default link weftEdge Delimiter
highlight default link weftFormat SpecialChar
highlight default link weftComment Comment
highlight default link weftDoc SpecialComment
highlight default link weftResult Special

" Texts and brackets go over lines: colours are found from so many lines above what is shown.
syntax sync minlines=300

let b:current_syntax = 'weft'
