/* lsp.c — the language server (`weft lsp`): messages by JSON-RPC 2.0 over standard input and output, and what they ask
 * for. No program is run but by the command weft.run. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "repl/lsp.h"

enum { BODY_MOST = 1 << 26, HEADER_MOST = 1 << 13 };

/* ---- answers ------------------------------------------------------------------------------------- */

void lsp_send(const Out *body) {
  Out all = {0};
  put_format(&all, "Content-Length: %zu\r\n\r\n", body->len);
  put_bytes(&all, body->text, body->len);
  for (size_t at = 0; at < all.len;) {
    ssize_t n = write(STDOUT_FILENO, all.text + at, all.len - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) exit(1); /* the client has gone */
    at += (size_t)n;
  }
  out_free(&all);
}

void lsp_answer(const char *id, const char *result) {
  Out o = {0};
  put_format(&o, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}", id, result);
  lsp_send(&o);
  out_free(&o);
}

void lsp_refuse(const char *id, int code, const char *message) {
  Out o = {0};
  put_format(&o, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,\"message\":", id, code);
  put_json_text(&o, message);
  put_text(&o, "}}");
  lsp_send(&o);
  out_free(&o);
}

void lsp_log(int type, const char *message) {
  Out o = {0};
  put_format(&o, "{\"jsonrpc\":\"2.0\",\"method\":\"window/logMessage\",\"params\":{\"type\":%d,\"message\":", type);
  put_json_text(&o, message);
  put_text(&o, "}}");
  lsp_send(&o);
  out_free(&o);
}

void reply_error(Reply *r, int code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(r->message, sizeof r->message, fmt, ap);
  va_end(ap);
  r->code = code;
}

static void publish(Lsp *s, Doc *d) {
  Out o = {0};
  doc_read(s, d);
  put_text(&o, "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/publishDiagnostics\",\"params\":{\"uri\":");
  put_json_text(&o, d->uri);
  if (d->open) put_format(&o, ",\"version\":%lld", d->version);
  put_text(&o, ",\"diagnostics\":[");
  for (size_t i = 0; d->open && i < d->problem_count; i++) {
    const WeftProblem *p = &d->problems[i];
    put_text(&o, i ? ",{\"range\":" : "{\"range\":");
    put_range(s, d, &o, p->at, p->at + p->length);
    put_text(&o, ",\"severity\":1,\"source\":\"weft\",\"code\":");
    put_json_text(&o, p->kind);
    put_text(&o, ",\"message\":");
    put_json_text(&o, p->message);
    put_text(&o, "}");
  }
  put_text(&o, "]}}");
  lsp_send(&o);
  out_free(&o);
  d->told = true;
}

/* ---- parameters ---------------------------------------------------------------------------------- */

/* The document that a request is about; NULL: the reply says what is wrong. */
static Doc *asked_doc(Lsp *s, WeftValue *params, Reply *r) {
  const char *uri = json_text(s, json_get(s, json_get(s, params, "textDocument"), "uri"), NULL);
  if (!uri) return reply_error(r, LSP_INVALID_PARAMS, "textDocument.uri is missing"), NULL;
  Doc *d = doc_find(s, uri);
  if (!d || !d->open) return reply_error(r, LSP_INVALID_PARAMS, "this document is not open: %.300s", uri), NULL;
  doc_read(s, d);
  return d;
}

static bool read_position(Lsp *s, const Doc *d, WeftValue *position, size_t *at) {
  int64_t line, character;
  if (!json_int(s, json_get(s, position, "line"), &line) || line < 0) return false;
  if (!json_int(s, json_get(s, position, "character"), &character) || character < 0) return false;
  *at = doc_offset(s, d, (size_t)line, (size_t)character);
  return true;
}

/* ---- requests ------------------------------------------------------------------------------------ */

static void initialize(Lsp *s, WeftValue *params, Reply *r) {
  if (s->started) return reply_error(r, LSP_INVALID_REQUEST, "initialize was asked for already");
  WeftValue *can = json_get(s, params, "capabilities"), *document = json_get(s, can, "textDocument");
  WeftValue *encodings = json_get(s, json_get(s, can, "general"), "positionEncodings");
  const char *root = json_text(s, json_get(s, params, "rootUri"), NULL);
  const char *folder = json_text(s, json_get(s, json_at(s, json_get(s, params, "workspaceFolders"), 0), "uri"), NULL);
  const char *encoding;
  for (size_t i = 0; (encoding = json_text(s, json_at(s, encodings, i), NULL)); i++)
    if (strcmp(encoding, "utf-8") == 0) s->utf8 = true;
  s->tree = json_true(s, json_get(s, json_get(s, document, "documentSymbol"), "hierarchicalDocumentSymbolSupport"));
  s->sources = json_true(s, json_get(s, json_get(s, params, "initializationOptions"), "sources"));
  if (folder || root) s->root = path_of_uri(folder ? folder : root);
  s->started = true;
  put_format(&r->result,
             "{\"capabilities\":{\"positionEncoding\":\"%s\",\"textDocumentSync\":{\"openClose\":true,\"change\":2},"
             "\"hoverProvider\":true,\"completionProvider\":{\"triggerCharacters\":[\".\"]},"
             "\"signatureHelpProvider\":{\"triggerCharacters\":[\"(\",\",\"]},\"definitionProvider\":true,"
             "\"referencesProvider\":true,\"documentHighlightProvider\":true,\"documentSymbolProvider\":true,"
             "\"renameProvider\":{\"prepareProvider\":true},\"documentFormattingProvider\":true,"
             "\"foldingRangeProvider\":true,"
             "\"executeCommandProvider\":{\"commands\":[\"weft.run\",\"weft.source\"]}},"
             "\"serverInfo\":{\"name\":\"weft\",\"version\":\"%s\"}}",
             s->utf8 ? "utf-8" : "utf-16", weft_version());
}

static void format(Lsp *s, Doc *d, Reply *r) {
  const char *text;
  if (weft_format(s->vm, d->text, d->len, d->path ? d->path : d->uri, &text) != WEFT_OK)
    return reply_error(r, LSP_FAILED, "this program cannot be laid out: %s", weft_error_message(s->vm));
  size_t len = strlen(text);
  if (len == d->len && memcmp(text, d->text, len) == 0) return put_text(&r->result, "[]");
  put_text(&r->result, "[{\"range\":");
  put_range(s, d, &r->result, 0, d->len);
  put_text(&r->result, ",\"newText\":");
  put_json(&r->result, text, len);
  put_text(&r->result, "}]");
}

/* True: the answer comes later. */
static bool execute(Lsp *s, WeftValue *params, const char *id, Reply *r) {
  const char *command = json_text(s, json_get(s, params, "command"), NULL);
  const char *argument = json_text(s, json_at(s, json_get(s, params, "arguments"), 0), NULL);
  Out text = {0};
  if (!command) return reply_error(r, LSP_INVALID_PARAMS, "command is missing"), false;
  bool run = strcmp(command, "weft.run") == 0, source = strcmp(command, "weft.source") == 0;
  if (!run && !source) return reply_error(r, LSP_INVALID_PARAMS, "there is no command %.100s", command), false;
  if (!argument)
    return reply_error(r, LSP_INVALID_PARAMS, run ? "weft.run needs the URI of a document" :
                                                    "weft.source needs the name of a function"), false;
  Doc *d = run ? doc_find(s, argument) : NULL;
  if (run && (!d || !d->open))
    return reply_error(r, LSP_INVALID_PARAMS, "this document is not open: %.300s", argument), false;
  if (run) return lsp_run(s, d, id), true;
  const WeftBuiltin *b = builtin_named(s, argument, strlen(argument));
  if (!b || b->kind != WEFT_BUILTIN_FUNCTION)
    reply_error(r, LSP_INVALID_PARAMS, "there is no function %.100s in the language", argument);
  else if (!builtin_source(s, argument, &text)) reply_error(r, LSP_FAILED, "%s is not written in Weft", b->name);
  else put_json(&r->result, text.text, text.len);
  out_free(&text);
  return false;
}

typedef void AtPlace(Lsp *s, Doc *d, size_t at, Reply *r);
typedef void OfDocument(Lsp *s, Doc *d, Reply *r);
static const struct {
  const char *method;
  AtPlace *at;
  OfDocument *of;
} methods[] = {
    {"textDocument/hover", lsp_hover, NULL},
    {"textDocument/completion", lsp_complete, NULL},
    {"textDocument/signatureHelp", lsp_signature, NULL},
    {"textDocument/definition", lsp_definition, NULL},
    {"textDocument/documentHighlight", lsp_highlight, NULL},
    {"textDocument/prepareRename", lsp_prepare_rename, NULL},
    {"textDocument/documentSymbol", NULL, lsp_symbols},
    {"textDocument/foldingRange", NULL, lsp_folds},
    {"textDocument/formatting", NULL, format},
};

/* True: the answer comes later. */
static bool request(Lsp *s, const char *method, WeftValue *params, const char *id, Reply *r) {
  size_t at = 0, i = 0;
  if (strcmp(method, "initialize") == 0) return initialize(s, params, r), false;
  if (!s->started) return reply_error(r, LSP_NOT_STARTED, "initialize comes first"), false;
  if (s->stopped) return reply_error(r, LSP_INVALID_REQUEST, "the server was shut down"), false;
  if (strcmp(method, "shutdown") == 0) return s->stopped = true, put_text(&r->result, "null"), false;
  if (strcmp(method, "workspace/executeCommand") == 0) return execute(s, params, id, r);
  while (i < sizeof methods / sizeof *methods && strcmp(methods[i].method, method) != 0) i++;
  bool listed = i < sizeof methods / sizeof *methods, rename = strcmp(method, "textDocument/rename") == 0;
  bool references = strcmp(method, "textDocument/references") == 0;
  if (!listed && !rename && !references)
    return reply_error(r, LSP_NO_METHOD, "not supported: %.200s", method), false;
  Doc *d = asked_doc(s, params, r);
  if (!d) return false;
  if (listed && methods[i].of) return methods[i].of(s, d, r), false;
  if (!read_position(s, d, json_get(s, params, "position"), &at))
    return reply_error(r, LSP_INVALID_PARAMS, "position needs line and character, whole numbers from 0"), false;
  if (listed) return methods[i].at(s, d, at, r), false;
  if (references) {
    bool declaration = json_true(s, json_get(s, json_get(s, params, "context"), "includeDeclaration"));
    return lsp_references(s, d, at, declaration, r), false;
  }
  const char *name = json_text(s, json_get(s, params, "newName"), NULL);
  if (!name) reply_error(r, LSP_INVALID_PARAMS, "newName is missing");
  else lsp_rename(s, d, at, name, r);
  return false;
}

/* ---- notifications ------------------------------------------------------------------------------- */

static void opened(Lsp *s, WeftValue *params) {
  WeftValue *doc = json_get(s, params, "textDocument");
  size_t len = 0;
  const char *uri = json_text(s, json_get(s, doc, "uri"), NULL), *text = json_text(s, json_get(s, doc, "text"), &len);
  int64_t version = 0;
  if (!uri || !text) return lsp_log(2, "textDocument/didOpen needs the uri and the text of a document");
  (void)json_int(s, json_get(s, doc, "version"), &version);
  Doc *d = doc_find(s, uri);
  if (!d) d = doc_new(s, uri);
  d->open = true;
  d->version = version;
  doc_set(s, d, text, len);
}

static bool change(Lsp *s, Doc *d, WeftValue *one) {
  size_t len = 0, from = 0, to = 0;
  WeftValue *range = json_get(s, one, "range");
  const char *text = json_text(s, json_get(s, one, "text"), &len);
  if (!text) return false;
  if (!range || json_is(s, range, "nil")) return doc_set(s, d, text, len), true;
  if (!read_position(s, d, json_get(s, range, "start"), &from) || !read_position(s, d, json_get(s, range, "end"), &to))
    return false;
  if (to < from) return false;
  doc_splice(d, from, to, text, len);
  return true;
}

static void changed(Lsp *s, WeftValue *params) {
  WeftValue *of = json_get(s, params, "textDocument"), *changes = json_get(s, params, "contentChanges"), *one;
  const char *uri = json_text(s, json_get(s, of, "uri"), NULL);
  int64_t version = 0;
  Doc *d = uri ? doc_find(s, uri) : NULL;
  if (!d || !d->open) return lsp_log(2, "textDocument/didChange: the document is not open");
  if (!json_is(s, changes, "list")) return lsp_log(2, "textDocument/didChange: contentChanges is missing");
  if (json_int(s, json_get(s, of, "version"), &version)) d->version = version;
  bool good = true;
  for (size_t i = 0; good && (one = json_at(s, changes, i)); i++) good = change(s, d, one);
  if (!good) lsp_log(2, "textDocument/didChange: a change has no text, or a range that is none; it was left out");
  char *text = copy_bytes(d->text, d->len); /* its outline is due */
  doc_set(s, d, text, d->len);
  free(text);
}

static void closed(Lsp *s, WeftValue *params) {
  const char *uri = json_text(s, json_get(s, json_get(s, params, "textDocument"), "uri"), NULL);
  Doc *d = uri ? doc_find(s, uri) : NULL;
  if (!d || !d->open) return lsp_log(2, "textDocument/didClose: the document is not open");
  d->open = false;
  publish(s, d);
  doc_close(s, d);
}

static void notification(Lsp *s, const char *method, WeftValue *params) {
  if (strcmp(method, "exit") == 0) s->ended = true;
  if (!s->started || s->stopped) return;
  if (strcmp(method, "textDocument/didOpen") == 0) opened(s, params);
  if (strcmp(method, "textDocument/didChange") == 0) changed(s, params);
  if (strcmp(method, "textDocument/didClose") == 0) closed(s, params);
}

/* ---- messages ------------------------------------------------------------------------------------ */

/* The id as JSON, to be freed; NULL: there is none. *valid: it is a number, a text or null. */
static char *id_of(Lsp *s, WeftValue *message, bool *valid) {
  WeftValue *id = json_get(s, message, "id");
  size_t len = 0;
  const char *text = json_text(s, id, &len);
  int64_t number;
  Out o = {0};
  *valid = true;
  if (!id) return NULL;
  if (text) put_json(&o, text, len);
  else if (json_int(s, id, &number)) put_format(&o, "%lld", (long long)number);
  else {
    *valid = json_is(s, id, "nil");
    put_text(&o, "null");
  }
  return o.text;
}

static void handle(Lsp *s, Message *m) {
  if (!m->value) return lsp_refuse("null", LSP_PARSE_ERROR, m->why);
  bool valid;
  char *id = id_of(s, m->value, &valid);
  const char *method = json_text(s, json_get(s, m->value, "method"), NULL);
  const char *version = json_text(s, json_get(s, m->value, "jsonrpc"), NULL);
  WeftValue *params = json_get(s, m->value, "params");
  Reply r = {0};
  bool later = false, answers = json_get(s, m->value, "result") || json_get(s, m->value, "error");
  if (!json_is(s, m->value, "record")) lsp_refuse("null", LSP_INVALID_REQUEST, "a message is an object");
  else if (!method && answers) {} /* the server asks nothing; what answers it is passed over */
  else if (!valid || !method || !version || strcmp(version, "2.0") != 0)
    lsp_refuse(id ? id : "null", LSP_INVALID_REQUEST,
               !valid ? "the id is a number or a text" : !method ? "the method is missing" : "jsonrpc is not \"2.0\"");
  else if (!id) notification(s, method, params);
  else if (m->cancelled) lsp_refuse(id, LSP_CANCELLED, "the request was cancelled");
  else {
    later = request(s, method, params, id, &r);
    if (r.code) lsp_refuse(id, r.code, r.message);
    else if (!later) lsp_answer(id, r.result.text ? r.result.text : "null");
  }
  out_free(&r.result);
  free(id);
}

/* A request that waits, or the program that runs, need not be answered any more. */
static void cancel(Lsp *s, WeftValue *message) {
  bool valid;
  char *id = id_of(s, json_get(s, message, "params"), &valid);
  for (size_t i = 0; id && i < s->queue_count; i++) {
    if (!s->queue[i].value) continue;
    char *other = id_of(s, s->queue[i].value, &valid);
    if (other && strcmp(id, other) == 0) s->queue[i].cancelled = true;
    free(other);
  }
  if (id && s->run.process && strcmp(id, s->run.id) == 0) lsp_run_stop(s);
  free(id);
}

static void enqueue(Lsp *s, WeftValue *value, const char *why) {
  s->queue = grow(s->queue, sizeof *s->queue * (s->queue_count + 1));
  s->queue[s->queue_count++] = (Message){.value = value, .why = value ? NULL : copy_bytes(why, strlen(why))};
}

static void take_body(Lsp *s, const char *body, size_t len) {
  WeftValue *value = json_read(s, body, len);
  Out why = {0};
  if (!value) put_format(&why, "the message is no JSON: %s", weft_error_message(s->vm));
  const char *method = value ? json_text(s, json_get(s, value, "method"), NULL) : NULL;
  if (method && strcmp(method, "$/cancelRequest") == 0) {
    cancel(s, value);
    weft_release(s->vm, value);
  } else {
    enqueue(s, value, why.text);
  }
  out_free(&why);
}

/* Where the header ends; 0: not yet. *body: what it says of the body; -1: nothing that is a number. */
static size_t read_header(const char *text, size_t len, long long *body) {
  static const char name[] = "content-length:";
  size_t line = 0;
  *body = -1;
  for (size_t i = 0; i < len; i++) {
    if (text[i] != '\n') continue;
    size_t n = i - line;
    while (n && text[line + n - 1] == '\r') n--;
    if (!n) return i + 1;
    char value[24] = "", *end = value;
    size_t word = sizeof name - 1;
    if (n > word && n - word < sizeof value && strncasecmp(text + line, name, word) == 0) {
      memcpy(value, text + line + word, n - word);
      char *digits = value + strspn(value, " \t");
      *body = *digits >= '0' && *digits <= '9' ? strtoll(digits, &end, 10) : -1;
      if (end[strspn(end, " \t")]) *body = -1;
    }
    line = i + 1;
  }
  return 0;
}

static void drop_input(Lsp *s, size_t n) {
  if (!n) return;
  memmove(s->input.text, s->input.text + n, s->input.len - n);
  s->input.len -= n;
}

/* Whole messages of what was read go into the queue. */
static void split_input(Lsp *s) {
  size_t at = 0;
  for (;;) {
    size_t gone = s->skip < s->input.len - at ? s->skip : s->input.len - at;
    s->skip -= gone;
    at += gone;
    long long body;
    size_t head = s->skip ? 0 : read_header(s->input.text + at, s->input.len - at, &body);
    if (!head && !s->skip && s->input.len - at > HEADER_MOST) {
      enqueue(s, NULL, "a header is longer than 8 KiB; all that was read is passed over");
      at = s->input.len;
    }
    if (!head) break;
    if (body < 0) {
      enqueue(s, NULL, "the header has no Content-Length that is a number");
      at += head;
    } else if (body > BODY_MOST) {
      enqueue(s, NULL, "the message is larger than 64 MiB; it is passed over");
      at += head;
      s->skip = (size_t)body;
    } else if (s->input.len - at - head < (size_t)body) {
      break;
    } else {
      take_body(s, s->input.text + at + head, (size_t)body);
      at += head + (size_t)body;
    }
  }
  drop_input(s, at);
}

/* Reads what is there; `wait`: until something is. */
static void read_input(Lsp *s, bool wait) {
  char buffer[1 << 16];
  struct pollfd from[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = s->run.process ? s->run.pipe : -1, .events = POLLIN}};
  int ready = poll(from, 2, wait ? -1 : 0);
  if (ready <= 0) return;
  if (from[1].revents) lsp_run_read(s);
  if (!from[0].revents) return;
  ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) s->eof = true;
  else put_bytes(&s->input, buffer, (size_t)n), split_input(s);
}

/* ---- the server ------------------------------------------------------------------------------------ */

/* Standard output is for messages alone. */
static void no_output(void *context, const char *text, size_t len) { (void)context, (void)text, (void)len; }

static bool start(Lsp *s) {
  WeftOptions o = WEFT_OPTIONS_INIT;
  WeftBuiltin b = {.size = sizeof b};
  size_t cap = 0;
  o.output = no_output;
  s->vm = weft_new(&o);
  if (!s->vm || weft_eval(s->vm, "json.parse", "<lsp>", &s->parse) != WEFT_OK) return false;
  for (; weft_builtin(s->builtin_count, &b); s->builtins[s->builtin_count++] = b)
    if (s->builtin_count == cap) s->builtins = grow(s->builtins, sizeof b * (cap = 2 * cap + 64));
  return true;
}

static void work(Lsp *s) {
  while (!s->ended) {
    bool more = !s->eof;
    while (more && !s->eof) { /* all that is there, so that cancelled requests are known */
      size_t had = s->input.len + s->queue_count + s->skip;
      read_input(s, false);
      more = s->input.len + s->queue_count + s->skip != had;
    }
    json_release(s);
    for (size_t i = 0; !s->queue_count && i < s->doc_count; i++)
      if (s->docs[i]->open && !s->docs[i]->told) publish(s, s->docs[i]);
    if (!s->queue_count && s->eof) return;
    if (!s->queue_count) {
      read_input(s, true);
      continue;
    }
    Message m = s->queue[0];
    memmove(s->queue, s->queue + 1, sizeof m * --s->queue_count);
    handle(s, &m);
    json_release(s);
    weft_release(s->vm, m.value);
    free(m.why);
    doc_drop_unused(s);
  }
}

static void end(Lsp *s) {
  lsp_run_stop(s);
  for (size_t i = 0; i < s->queue_count; i++) {
    weft_release(s->vm, s->queue[i].value);
    free(s->queue[i].why);
  }
  while (s->doc_count) doc_close(s, s->docs[s->doc_count - 1]);
  json_release(s);
  weft_release(s->vm, s->parse);
  weft_free(s->vm);
  free(s->held);
  free(s->docs);
  free(s->queue);
  free(s->builtins);
  free(s->root);
  out_free(&s->input);
}

int lsp_main(int argc, char **argv) {
  Lsp s = {0};
  for (int i = 0; i < argc; i++) {
    if (strcmp(argv[i], "--stdio") == 0) continue; /* what editors say; there is no other way */
    fprintf(stderr, "weft lsp: unknown option: %s\ntry: weft --help\n", argv[i]);
    return 2;
  }
  if (isatty(STDIN_FILENO)) fputs("weft lsp: an editor starts this program and talks to it; Ctrl-D ends it\n", stderr);
  signal(SIGPIPE, SIG_IGN);
  if (!start(&s)) return fprintf(stderr, "weft lsp: out of memory\n"), 1;
  work(&s);
  end(&s);
  return s.ended && s.stopped ? 0 : 1;
}
