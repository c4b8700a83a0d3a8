// extension.js — starts `weft lsp`, runs programs by it, and shows functions of the library that are written in Weft.
'use strict'

const vscode = require('vscode')

let client // of vscode-languageclient; undefined: the server does not run

function load() {
  try {
    return require('vscode-languageclient/node').LanguageClient
  } catch (error) {
    const why = 'Weft: the language server is not started, since vscode-languageclient is missing'
    void vscode.window.showErrorMessage(why + ': run "npm install" in ' + __dirname)
    return undefined
  }
}

// What a command of the server answers; throws what it refuses.
function ask(command, argument, token) {
  return client.sendRequest('workspace/executeCommand', { command, arguments: [argument] }, token)
}

async function run(output) {
  const editor = vscode.window.activeTextEditor
  if (!client || !editor || editor.document.languageId !== 'weft') {
    void vscode.window.showErrorMessage('Weft: there is no program to run')
    return
  }
  const title = 'Running ' + vscode.workspace.asRelativePath(editor.document.uri)
  const where = vscode.ProgressLocation.Notification
  output.clear()
  output.show(true)
  try {
    const result = await vscode.window.withProgress({ location: where, title, cancellable: true },
      (progress, token) => ask('weft.run', editor.document.uri.toString(), token))
    output.append(result.output)
    if (result.error !== null) output.append(result.error)
  } catch (error) {
    output.appendLine(error.message)
  }
}

async function activate(context) {
  const output = vscode.window.createOutputChannel('Weft')
  const sources = { provideTextDocumentContent: uri => ask('weft.source', uri.path.slice(1).replace(/\.weft$/, '')) }
  context.subscriptions.push(output, vscode.commands.registerCommand('weft.runFile', () => run(output)),
    vscode.workspace.registerTextDocumentContentProvider('weft', sources))
  const LanguageClient = load()
  if (!LanguageClient) return
  const command = vscode.workspace.getConfiguration('weft').get('server.path', 'weft')
  client = new LanguageClient('weft', 'Weft', { command, args: ['lsp'] }, {
    documentSelector: [{ language: 'weft' }],
    initializationOptions: { sources: true }
  })
  await client.start()
}

function deactivate() {
  return client ? client.stop() : undefined
}

module.exports = { activate, deactivate }
