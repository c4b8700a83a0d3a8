# Drives `weft lsp` through session.txt and bytes.txt and compares each answer, whole; then breaks messages at random.
#   python3 tests/lsp/session.py [PROGRAM]            the session, then 300 broken messages
#   python3 tests/lsp/session.py --write [PROGRAM]    writes the answers that it gets into these, to be read
#   python3 tests/lsp/session.py --fuzz N [PROGRAM]   N broken messages
import json
import os
import random
import re
import select
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WAIT = 60  # seconds for one answer, on a machine that is busy


class Server:
    def __init__(self, program):
        env = dict(os.environ)  # sanitizers end a program that is broken with a status of their own
        for name in ('ASAN_OPTIONS', 'UBSAN_OPTIONS'):
            env[name] = ':'.join(part for part in (env.get(name, ''), 'exitcode=99') if part)
        self.process = subprocess.Popen([program, 'lsp'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.buffer = b''

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        body = json.dumps(message, ensure_ascii=False).encode()
        self.write(b'Content-Length: %d\r\n\r\n' % len(body) + body)

    def read(self, wait=WAIT):
        """The next message; None when there is none in that time, or ever."""
        while True:
            head = re.match(rb'Content-Length: (\d+)\r\n\r\n', self.buffer)
            if head and len(self.buffer) >= head.end() + int(head[1]):
                body = self.buffer[head.end():head.end() + int(head[1])]
                self.buffer = self.buffer[head.end() + int(head[1]):]
                return json.loads(body)
            if not select.select([self.process.stdout], [], [], wait)[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return None
            self.buffer += more

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        return self.process.wait(WAIT)


# ---- the session ------------------------------------------------------------------------------------------

REQUESTS = {'hover': 'hover', 'complete': 'completion', 'signature': 'signatureHelp', 'definition': 'definition',
            'references': 'references', 'highlight': 'documentHighlight', 'prepare': 'prepareRename',
            'rename': 'rename', 'symbols': 'documentSymbol', 'folds': 'foldingRange', 'format': 'formatting'}


def place(text):
    line, character = text.split(':')
    return {'line': int(line), 'character': int(character)}


class Session:
    """Commands of session.txt; what each means is said at its top."""

    def __init__(self, program, folder):
        self.server = Server(program)
        self.folder = folder
        self.count = 0

    def uri(self, name):
        return 'file://' + os.path.join(self.folder, name)

    def request(self, method, params):
        self.count += 1
        self.server.send({'jsonrpc': '2.0', 'id': self.count, 'method': method, 'params': params})

    def notify(self, method, params):
        self.server.send({'jsonrpc': '2.0', 'method': method, 'params': params})

    def run(self, command, text):
        word, *rest = command.split(' ')
        if word == 'file':
            with open(os.path.join(self.folder, rest[0]), 'w', encoding='utf-8') as f:
                f.write(text)
        elif word == 'open':
            self.notify('textDocument/didOpen', {'textDocument': {
                'uri': self.uri(rest[0]), 'languageId': 'weft', 'version': 1, 'text': text}})
        elif word == 'close':
            self.notify('textDocument/didClose', {'textDocument': {'uri': self.uri(rest[0])}})
        elif word == 'change':
            changes = json.loads(' '.join(rest[2:]))
            self.notify('textDocument/didChange', {'textDocument': {'uri': self.uri(rest[0]), 'version': int(rest[1])},
                                                   'contentChanges': changes})
        elif word == 'request':
            params = ' '.join(rest[1:]).replace('$D', 'file://' + self.folder)
            self.request(rest[0], json.loads(params) if params else None)
        elif word == 'send':
            self.server.send(json.loads(' '.join(rest).replace('$D', 'file://' + self.folder)))
        elif word == 'bytes':
            self.server.write(json.loads(' '.join(rest)).encode())
        elif word == 'large':  # a message of so many bytes
            self.server.write(b'Content-Length: %d\r\n\r\n' % int(rest[0]) + b' ' * int(rest[0]))
        elif word == 'huge':  # a document of so many
            self.notify('textDocument/didOpen', {'textDocument': {
                'uri': self.uri(rest[0]), 'languageId': 'weft', 'version': 1, 'text': '#' * int(rest[1])}})
        elif word in REQUESTS:
            params = {'textDocument': {'uri': self.uri(rest[0])}}
            if len(rest) > 1:
                params['position'] = place(rest[1])
            if word == 'rename':
                params['newName'] = rest[2]
            if word == 'references':
                params['context'] = {'includeDeclaration': len(rest) > 2}
            if word == 'format':
                params['options'] = {'tabSize': 2, 'insertSpaces': True}
            self.request('textDocument/' + REQUESTS[word], params)
        elif word != 'end':
            raise ValueError('session.txt: unknown command: ' + command)

    def answer(self):
        got = self.server.read()
        if got is None:
            return 'nothing'
        text = json.dumps(got, ensure_ascii=False).replace('file://' + self.folder, '$D').replace(self.folder, '$P')
        return shown(json.loads(text))


def shown(message):
    """An answer on one line, without what is the same in all of them."""
    message.pop('jsonrpc', None)
    if 'method' in message:
        return '! %s %s' % (message['method'], json.dumps(message['params'], ensure_ascii=False))
    if 'error' in message:
        return '- %s %d %s' % (json.dumps(message['id']), message['error']['code'], message['error']['message'])
    return '= %s %s' % (json.dumps(message['id']), json.dumps(message['result'], ensure_ascii=False))


def read_steps(path):
    """(line number, command, its text, answers)"""
    steps, lines = [], open(path, encoding='utf-8').read().split('\n')
    for number, line in enumerate(lines, 1):
        if not line or line.startswith('#'):
            continue
        if line.startswith('+ '):  # the line before goes on
            if steps[-1][3]:
                steps[-1][3][-1] += line[2:]
            else:
                steps[-1][1] += line[2:]
        elif line.startswith('| '):
            steps[-1][2] += line[2:] + '\n'
        elif line == '|':
            steps[-1][2] += '\n'
        elif line[:2] in ('= ', '- ', '! ') or line == 'nothing':
            steps[-1][3].append(line)
        else:
            steps.append([number, line, '', []])
    return steps


def session(program, name, write):
    path = os.path.join(HERE, name + '.txt')
    steps = read_steps(path)
    folder = os.path.realpath(tempfile.mkdtemp())
    run = Session(program, folder)
    bad, asked, got_by_line = 0, 0, {}
    for number, command, text, wanted in steps:
        run.run(command, text)
        got = []
        if write:
            silent = command.split(' ')[0] in ('file', 'end') or command.startswith('send {"jsonrpc": "2.0", "method"')
            wait = 0.05 if silent else 5
            answer = run.server.read(wait)
            while answer is not None:
                got.append(shown(json.loads(json.dumps(answer, ensure_ascii=False).replace(
                    'file://' + folder, '$D').replace(folder, '$P'))))
                answer = run.server.read(0.1)
        else:
            got = [run.answer() for _ in wanted]
        got_by_line[number] = got
        asked += bool(wanted)
        if not write and got != wanted:
            bad += 1
            print('not ok lsp/%s-line-%d: %s gave\n#   %s\n# instead of\n#   %s' % (
                name, number, command, '\n#   '.join(got), '\n#   '.join(wanted)))
    extra = run.server.read(0.2)
    code = run.server.end()
    shutil.rmtree(folder)
    if write:
        return rewrite(path, got_by_line)
    if extra is not None:
        print('not ok lsp/%s-end: one more message: %s' % (name, json.dumps(extra)))
    elif code != 0:
        print('not ok lsp/%s-end: exit status %d' % (name, code))
    elif not bad:
        print('ok lsp/' + name)
        print('# %d commands with an answer' % asked)
    return bad or extra is not None or code != 0


def folded(text):
    """Lines of at most 114 characters; all but the first begin with `+ `."""
    parts = []
    while text:
        cut = 112
        while cut < len(text) and text[cut - 1] == ' ':  # no blank ends a line
            cut -= 1
        parts.append(('+ ' if parts else '') + text[:cut])
        text = text[cut:]
    return parts


def rewrite(path, got_by_line):
    out, pending, answer = [], [], False
    for number, line in enumerate(open(path, encoding='utf-8').read().split('\n'), 1):
        if line[:2] in ('= ', '- ', '! ') or line == 'nothing':
            answer = True
            continue
        if line.startswith('+ ') and answer:
            continue
        answer = False
        if pending and not line.startswith(('|', '+ ')):
            out += [part for text in pending for part in folded(text)]
            pending = []
        out.append(line)
        if number in got_by_line:
            pending = got_by_line[number]
    out += [part for text in pending for part in folded(text)]
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(out).rstrip('\n') + '\n')


# ---- broken messages -------------------------------------------------------------------------------------------

PROGRAM = 'import "b.weft" as b\n## Adds.\nfn add(x: f64[n], y=2) { let z = x + y; z }\nadd(1, y=b.k).\n'


def messages(rng):
    uri = 'file:///nowhere/a.weft'
    method = rng.choice(list(REQUESTS.values()) + ['didChange', 'didOpen', 'didClose', 'nothing'])
    params = {'textDocument': {'uri': uri, 'version': 2, 'text': PROGRAM}, 'newName': rng.choice(['q', '', 'fn']),
              'position': {'line': rng.randrange(6), 'character': rng.randrange(40)},
              'contentChanges': [{'range': {'start': {'line': rng.randrange(5), 'character': rng.randrange(9)},
                                            'end': {'line': rng.randrange(5), 'character': rng.randrange(40)}},
                                  'text': rng.choice(['', 'é😀', '(', '"', '}\n', 'fn '])}]}
    return {'jsonrpc': '2.0', 'id': 7, 'method': 'textDocument/' + method, 'params': params}


def damage(rng, message):
    """The message as bytes: cut, with bytes changed, with a value of another type, or with a wrong length."""
    kind = rng.randrange(5)
    if kind == 0:  # a value of another type
        at = message
        while True:
            key = rng.choice(list(at.keys() if isinstance(at, dict) else range(len(at))))
            if isinstance(at[key], (dict, list)) and at[key] and rng.random() < 0.7:
                at = at[key]
                continue
            at[key] = rng.choice([None, True, -1, 1.5, 10 ** 15, '', 'x', [], {}, [1], {'a': 1}])
            break
    body = json.dumps(message, ensure_ascii=False).encode()
    if kind == 1:
        body = body[:rng.randrange(len(body))]
    if kind == 2:
        body = bytearray(body)
        for _ in range(rng.randrange(1, 4)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        body = bytes(body)
    head = b'Content-Length: %d\r\n\r\n' % len(body)
    if kind == 3:
        head = rng.choice([b'Content-Length: x\r\n\r\n', b'Content-Length: -5\r\n\r\n', b'\r\n\r\n', b'Hello\r\n\r\n',
                           b'content-length:%d\n\n' % len(body), b'Content-Length: 99999999999999999999\r\n\r\n'])
        body = body if rng.random() < 0.5 else b''
    return head + body


def fuzz(program, count):
    rng = random.Random(1)
    for round_ in range(0, count, 20):
        server = Server(program)
        server.send({'jsonrpc': '2.0', 'id': 0, 'method': 'initialize', 'params': {'capabilities': {}}})
        server.send({'jsonrpc': '2.0', 'method': 'textDocument/didOpen', 'params': {'textDocument': {
            'uri': 'file:///nowhere/a.weft', 'version': 1, 'text': PROGRAM}}})
        try:
            for _ in range(20):
                server.write(damage(rng, messages(rng)))
                while select.select([server.process.stdout], [], [], 0)[0]:  # it must not wait for who reads
                    if not os.read(server.process.stdout.fileno(), 65536):
                        break
        except BrokenPipeError:
            pass
        server.process.stdin.close()
        out = server.process.stdout.fileno()
        while select.select([out], [], [], WAIT)[0] and os.read(out, 65536):
            pass
        code = server.process.wait(WAIT)
        if code not in (0, 1):
            print('not ok lsp/fuzz: exit status %d behind message %d' % (code, round_))
            return True
    print('ok lsp/fuzz')
    return False


def main():
    args = sys.argv[1:]
    write = '--write' in args
    args = [a for a in args if a != '--write']
    count = 300
    if '--fuzz' in args:
        at = args.index('--fuzz')
        count = int(args[at + 1])
        del args[at:at + 2]
        program = args[0] if args else os.environ.get('WEFT', 'build/weft')
        sys.exit(fuzz(program, count))
    program = args[0] if args else os.environ.get('WEFT', 'build/weft')
    failed = False
    for name in ('session', 'bytes'):
        failed = session(program, name, write) or failed
    if not write:
        failed = fuzz(program, count) or failed
    sys.exit(bool(failed))


if __name__ == '__main__':
    main()
