#!/bin/bash
# Loads the files of editors/ where the editors are installed, and asks what colour a word has, how a line is indented.
set -u
cd "$(dirname "$0")/../.." || exit 1
d=$PWD/build/check/editors
rm -rf "$d"
mkdir -p "$d"
cat >"$d/a.weft" <<'EOF'
fn f(x) {
let y = f"a {x:.2f} b" # why
if y {
1.5
}
}
let t = """a "quoted" text
 kept
"""
let z = g(x => {
1
}, 2) +
t
print(g(z, (1,
2)))
EOF
# The text keeps its lines; the others go by the brackets they are in.
columns="0 2 2 4 2 0 0 1 0 0 2 0 2 0 12"

if command -v vim >/dev/null; then
  cat >"$d/ask.vim" <<'EOV'
set nocompatible runtimepath^=editors/vim
filetype plugin indent on
syntax on
execute 'edit ' . $ASK
function Name(line, column)
  return synIDattr(synID(a:line, a:column, 1), 'name')
endfunction
let said = [&filetype, Name(1, 1), Name(1, 4), Name(2, 9), Name(2, 13), Name(2, 16), Name(2, 24), Name(4, 1)]
normal gg=G
let said += map(range(1, line('$')), 'indent(v:val)')
call writefile([join(said)], $ASK . '.said')
qall!
EOV
  ASK=$d/a.weft timeout 20 vim -es -u "$d/ask.vim" >"$d/out" 2>&1 </dev/null
  said=$(cat "$d/a.weft.said" 2>/dev/null)
  wanted="weft weftDeclare weftFunction weftText weftEdge weftFormat weftComment weftNumber $columns"
  if [ "$said" = "$wanted" ]; then echo "ok editors/vim"; else echo "not ok editors/vim: $said instead of $wanted"; fi
else echo "skip editors/vim: it is not installed"; fi

if command -v emacs >/dev/null; then
  cat >"$d/ask.el" <<'EOE'
(add-to-list 'load-path "editors/emacs")
(require 'weft-mode)
(find-file (getenv "ASK"))
(font-lock-ensure)
(defun face-of (text) (goto-char (point-min)) (search-forward text) (get-text-property (match-beginning 0) 'face))
(princ (format "%s %s %s %s %s %s" major-mode (face-of "fn") (face-of "f(x)") (face-of "a {") (face-of "why")
               (face-of "quoted")))
(indent-region (point-min) (point-max))
(goto-char (point-min))
(dotimes (_ 15) (princ (format " %d" (current-indentation))) (forward-line))
EOE
  said=$(ASK=$d/a.weft timeout 60 emacs -Q --batch -l "$d/ask.el" 2>"$d/out")
  wanted="weft-mode font-lock-keyword-face font-lock-function-name-face font-lock-string-face"
  wanted="$wanted font-lock-comment-face font-lock-string-face $columns"
  if [ "$said" = "$wanted" ]; then echo "ok editors/emacs"
  else echo "not ok editors/emacs: $said $(head -c 200 "$d/out") instead of $wanted"; fi
else echo "skip editors/emacs: it is not installed"; fi

if command -v emacs >/dev/null; then
  mkdir -p "$d/elisp"
  echo "(defvar eglot-server-programs nil) (provide 'eglot)" >"$d/elisp/eglot.el" # a stand-in
  said=$(timeout 60 emacs -Q --batch -L editors/emacs -l weft-mode -L "$d/elisp" -l "$d/elisp/eglot.el" \
    --eval '(princ (format "%S" eglot-server-programs))' 2>"$d/out")
  if [ "$said" = '((weft-mode "weft" "lsp"))' ]; then echo "ok editors/emacs-eglot"
  else echo "not ok editors/emacs-eglot: $said $(head -c 200 "$d/out")"; fi
else echo "skip editors/emacs-eglot: it is not installed"; fi

# The extension, with stand-ins for what VS Code gives: what it starts, and what its command sends and shows.
if command -v node >/dev/null; then
  mkdir -p "$d/node/vscode" "$d/node/vscode-languageclient"
  cat >"$d/node/vscode/index.js" <<'EOJ'
// index.js — a stand-in for VS Code
const said = []
const document = { languageId: 'weft', uri: { toString: () => 'file:///a.weft' } }
module.exports = {
  said,
  ProgressLocation: { Notification: 15 },
  window: {
    activeTextEditor: { document },
    createOutputChannel: () => ({ clear() {}, show() {}, append: t => said.push(t), appendLine: t => said.push(t) }),
    showErrorMessage: t => said.push(t),
    withProgress: (options, task) => task({}, {})
  },
  commands: { registerCommand: (name, run) => { module.exports[name] = run; return {} } },
  workspace: {
    asRelativePath: uri => uri.toString(),
    getConfiguration: () => ({ get: (name, usual) => usual }),
    registerTextDocumentContentProvider: (scheme, provider) => { module.exports[scheme] = provider; return {} }
  }
}
EOJ
  cat >"$d/node/vscode-languageclient/node.js" <<'EOJ'
// node.js — a stand-in for the client: notes what it is told
const { said } = require('vscode')
exports.LanguageClient = class {
  constructor(id, name, server, client) {
    said.push(server.command, ...server.args, client.initializationOptions.sources)
  }
  async start() { said.push('start') }
  async stop() { said.push('stop') }
  async sendRequest(method, params) {
    said.push(method, params.command, params.arguments[0])
    return params.command === 'weft.run' ? { output: 'out', error: 'err' } : 'fn f(x) = x'
  }
}
EOJ
  cat >"$d/ask.js" <<'EOJ'
// ask.js — does what a user does
const vscode = require('vscode')
const extension = require(process.cwd() + '/editors/vscode/extension.js')
extension.activate({ subscriptions: [] })
  .then(() => vscode['weft.runFile']())
  .then(() => vscode.weft.provideTextDocumentContent({ path: '/linalg.expm.weft' }))
  .then(text => vscode.said.push(text))
  .then(() => extension.deactivate())
  .then(() => console.log(vscode.said.join(' ')))
EOJ
  said=$(NODE_PATH=$d/node node "$d/ask.js" 2>&1)
  wanted="weft lsp true start workspace/executeCommand weft.run file:///a.weft out err"
  wanted="$wanted workspace/executeCommand weft.source linalg.expm fn f(x) = x stop"
  if [ "$said" = "$wanted" ]; then echo "ok editors/vscode"; else echo "not ok editors/vscode: $said"; fi
  rm -r "$d/node/vscode-languageclient"
  said=$(NODE_PATH=$d/node node -e "const vscode = require('vscode')
    require('$PWD/editors/vscode/extension.js').activate({ subscriptions: [] })
      .then(() => console.log(vscode.said[0]))" 2>&1)
  case $said in
    *'vscode-languageclient is missing'*'npm install'*) echo "ok editors/vscode-without-client" ;;
    *) echo "not ok editors/vscode-without-client: $said" ;;
  esac
else echo "skip editors/vscode: there is no node"; fi

if command -v node >/dev/null; then
  for f in editors/vscode/*.json editors/vscode/syntaxes/*.json; do
    if node -e 'JSON.parse(require("fs").readFileSync(process.argv[1]))' "$f" 2>"$d/out"; then echo "ok $f"
    else echo "not ok $f: $(tail -n 1 "$d/out")"; fi
  done
else echo "skip editors/json: there is no node"; fi
