/* prompt.c — a prompt of the host's own, in a window say: what was entered, commands, completion, output and input
 * through hooks. Here the lines come from a table, and what the window shows is collected.
 * Build it with: cc prompt.c $(pkg-config --cflags --libs weft) -o prompt */
#include <stdio.h>
#include <string.h>

#include <weft.h>

static char window[4000];
static const char *const lines[] = {"fn area(r) {", "  3.0 * r * r", "}",      "area(2.0)", "area(read_line())",
                                    "?sinc",        ":vars",         ":nowhere", "quit",      NULL};

static void show(void *context, const char *text, size_t length) {
  (void)context;
  strncat(window, text, length < sizeof window - strlen(window) ? length : sizeof window - strlen(window) - 1);
}

/* What the user enters when the program asks: one line, then no more. */
static ptrdiff_t ask(void *context, char *to, size_t room) {
  const char **answer = context;
  size_t length = strlen(*answer) < room ? strlen(*answer) : room;
  memcpy(to, *answer, length);
  *answer += length;
  return (ptrdiff_t)length;
}

static void show_text(const char *text) { show(NULL, text, strlen(text)); }

static void run(WeftVM *vm, const char *text, int declares) {
  WeftValue *value = NULL;
  if (weft_eval_line(vm, text, "<window>", &value) != WEFT_OK) show_text(weft_error_text(vm));
  else if (!declares) show_text(weft_display(vm, value));
  weft_release(vm, value);
}

/* 0: the user wants to leave. */
static int enter(WeftVM *vm, char *input, size_t room, const char *line) {
  const char *text = "";
  snprintf(input + strlen(input), room - strlen(input), "%s\n", line);
  switch (weft_input(vm, input)) {
    case WEFT_INPUT_UNFINISHED: return 1; /* another line is wanted */
    case WEFT_INPUT_DECLARES: run(vm, input, 1); break;
    case WEFT_INPUT_WHOLE: run(vm, input, 0); break;
    case WEFT_INPUT_COMMAND:
      switch (weft_command(vm, input, &text)) {
        case WEFT_COMMAND_QUIT: return 0;
        case WEFT_COMMAND_FAILED: show_text(weft_error_text(vm)); break;
        default: show_text(text);
      }
  }
  *input = 0;
  return 1;
}

static int failed;

static void expect(int ok, const char *what) {
  printf("%s %s\n", ok ? "ok" : "not ok", what);
  failed += !ok;
}

int main(void) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  const char *answer = "seven\n";
  char input[400] = "", why[200];
  WeftVM *vm = NULL;
  size_t at = 0;

  options.cpu = "z80";
  expect(weft_open(&options, &vm, why, sizeof why) == WEFT_MISUSE && strncmp(why, "cpu is unknown", 14) == 0,
         "embed/prompt-why-not");
  options.cpu = NULL;
  options.output = show;
  options.input = ask;
  options.input_context = &answer;
  if (weft_open(&options, &vm, why, sizeof why) != WEFT_OK) return fprintf(stderr, "%s\n", why), 1;

  while (lines[at] && enter(vm, input, sizeof input, lines[at])) at++;
  expect(lines[at] && strcmp(lines[at], "quit") == 0, "embed/prompt-quit");
  expect(strncmp(window, "12.0\n", 5) == 0, "embed/prompt-value");
  expect(strstr(window, "<window>:1") != NULL, "embed/prompt-error"); /* a text times a number */
  expect(strstr(window, "sinc(") != NULL, "embed/prompt-help");
  expect(strstr(window, "  area             fn\n") != NULL, "embed/prompt-variables");
  expect(strstr(window, ":nowhere: no such command") != NULL, "embed/prompt-no-command");

  WeftCompletion tab = {.size = sizeof tab};
  weft_complete(vm, "1 + ar", 6, &tab);
  expect(tab.from == 4 && tab.count > 1 && strcmp(tab.words[0], "arange") == 0, "embed/prompt-completion");
  weft_free(vm);
  return failed != 0;
}
