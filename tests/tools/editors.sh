#!/bin/bash
# Loads the files of editors/ where the editors are installed, and asks what colour a word has, how a line is indented.
set -u
cd "$(dirname "$0")/../.." || exit 1
d=$PWD/build/check/editors
rm -rf "$d"
mkdir -p "$d"
printf 'fn f(x) {\nlet y = f"a {x:.2f} b" # why\nif y {\n1.5\n}\n}\n' >"$d/a.weft"

if command -v vim >/dev/null; then
  cat >"$d/ask.vim" <<'EOV'
set nocompatible runtimepath^=editors/vim
filetype plugin indent on
syntax on
execute 'edit ' . $ASK
function Name(line, column)
  return synIDattr(synID(a:line, a:column, 1), 'name')
endfunction
let said = [&filetype, Name(1, 1), Name(1, 4), Name(2, 9), Name(2, 13), Name(2, 24), Name(4, 1)]
normal gg=G
let said += map(range(1, 6), 'indent(v:val)')
call writefile([join(said)], $ASK . '.said')
qall!
EOV
  ASK=$d/a.weft timeout 20 vim -es -u "$d/ask.vim" >"$d/out" 2>&1 </dev/null
  said=$(cat "$d/a.weft.said" 2>/dev/null)
  wanted="weft weftDeclare weftFunction weftText weftEdge weftComment weftNumber 0 2 2 4 2 0"
  if [ "$said" = "$wanted" ]; then echo "ok editors/vim"; else echo "not ok editors/vim: $said instead of $wanted"; fi
else echo "skip editors/vim: it is not installed"; fi

if command -v emacs >/dev/null; then
  cat >"$d/ask.el" <<'EOE'
(add-to-list 'load-path "editors/emacs")
(require 'weft-mode)
(find-file (getenv "ASK"))
(font-lock-ensure)
(defun face-of (text) (goto-char (point-min)) (search-forward text) (get-text-property (match-beginning 0) 'face))
(princ (format "%s %s %s %s %s" major-mode (face-of "fn") (face-of "f(x)") (face-of "a {") (face-of "why")))
(indent-region (point-min) (point-max))
(goto-char (point-min))
(dotimes (_ 6) (princ (format " %d" (current-indentation))) (forward-line))
EOE
  said=$(ASK=$d/a.weft timeout 60 emacs -Q --batch -l "$d/ask.el" 2>"$d/out")
  wanted="weft-mode font-lock-keyword-face font-lock-function-name-face font-lock-string-face"
  wanted="$wanted font-lock-comment-face 0 2 2 4 2 0"
  if [ "$said" = "$wanted" ]; then echo "ok editors/emacs"
  else echo "not ok editors/emacs: $said $(head -c 200 "$d/out") instead of $wanted"; fi
else echo "skip editors/emacs: it is not installed"; fi

if command -v node >/dev/null; then
  for f in editors/vscode/*.json editors/vscode/syntaxes/*.json; do
    if node -e 'JSON.parse(require("fs").readFileSync(process.argv[1]))' "$f" 2>"$d/out"; then echo "ok $f"
    else echo "not ok $f: $(tail -n 1 "$d/out")"; fi
  done
else echo "skip editors/json: there is no node"; fi
