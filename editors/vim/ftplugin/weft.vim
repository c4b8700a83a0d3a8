" weft.vim — comments and widths of Weft.
if exists('b:did_ftplugin') | finish | endif
let b:did_ftplugin = 1
setlocal comments=:##,:# commentstring=#\ %s formatoptions-=t
setlocal expandtab shiftwidth=2 softtabstop=2
if executable('weft') | setlocal formatprg=weft\ fmt\ - | endif
let b:undo_ftplugin = 'setlocal comments< commentstring< formatoptions< expandtab< shiftwidth< softtabstop< formatprg<'
