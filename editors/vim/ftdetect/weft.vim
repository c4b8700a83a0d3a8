" weft.vim — which files are Weft: those that end in .weft, and scripts that begin with `#!…weft`.
autocmd BufNewFile,BufRead *.weft set filetype=weft
autocmd BufNewFile,BufRead * if getline(1) =~# '^#!.*\<weft\>' | setfiletype weft | endif
