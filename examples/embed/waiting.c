/* waiting.c — a host with an event loop: two programs wait for timers, each in a VM of its own; none stops the other.
 * Build it with: cc waiting.c $(pkg-config --cflags --libs weft) -o waiting */
#include <stdio.h>
#include <string.h>

#include <weft.h>

static int failed;

static void expect(int ok, const char *what) {
  printf("%s waiting/%s\n", ok ? "ok" : "not ok", what);
  failed += !ok;
}

/* ---- the loop: who is to be woken, and when. Its clock goes on from one event to the next ---------------------- */

enum { PROGRAMS = 2 };
typedef struct Program {
  const char *name;
  WeftVM *vm;
  int wakes; /* at this time; -1: it does not wait */
} Program;
typedef struct Loop {
  Program programs[PROGRAMS];
  int now;
  char told[400];
} Loop;
static Loop loop = {.programs = {{.name = "a", .wakes = -1}, {.name = "b", .wakes = -1}}};

/* sleep(n): gives the time at which the program goes on. */
static WeftStatus sleep_for(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  Program *p = context;
  int64_t ticks;
  (void)result;
  if (count != 1 || weft_as_int(vm, args[0], &ticks) != WEFT_OK || ticks < 0)
    return weft_fail(vm, "type", "sleep(ticks) takes a whole number from 0");
  p->wakes = loop.now + (int)ticks;
  return WEFT_SUSPENDED;
}

/* tell(x): what the programs did, in the order in which they did it. */
static WeftStatus tell(WeftVM *vm, void *context, WeftValue *const *args, size_t count, WeftValue **result) {
  const Program *p = context;
  const size_t used = strlen(loop.told);
  if (count == 1) snprintf(loop.told + used, sizeof loop.told - used, "%s%s ", p->name, weft_show(vm, args[0]));
  return weft_nil(vm, result);
}

static Program *next_to_wake(void) {
  Program *next = NULL;
  for (int i = 0; i < PROGRAMS; i++) {
    Program *p = &loop.programs[i];
    if (p->wakes >= 0 && (!next || p->wakes < next->wakes)) next = p;
  }
  return next;
}

static void ended(const Program *p, WeftStatus status) {
  if (status == WEFT_ERROR) printf("%s: %s\n", p->name, weft_error_message(p->vm));
}

static void run_loop(void) {
  for (Program *p; (p = next_to_wake());) {
    WeftValue *time;
    loop.now = p->wakes;
    p->wakes = -1;
    if (weft_int(p->vm, loop.now, &time) != WEFT_OK) return;
    ended(p, weft_resume(p->vm, time, NULL));
    weft_release(p->vm, time);
  }
}

int main(void) {
  static const char *const texts[PROGRAMS] = {
      "fn twice(n) { sleep(n); sleep(n) }\n"
      "tell(0)\n"
      "for i in 1..4 { tell(twice(2 * i)) }\n",
      "for i in 0..3 { tell(try { if i == 1 { sleep(\"x\") } else { sleep(5) } } catch e { e.kind }) }\n"};
  for (int i = 0; i < PROGRAMS; i++) {
    Program *p = &loop.programs[i];
    p->vm = weft_new(NULL);
    if (!p->vm || weft_define_suspending(p->vm, NULL, "sleep", sleep_for, p, NULL) != WEFT_OK ||
        weft_define(p->vm, "tell", tell, p, NULL) != WEFT_OK)
      return 1;
    ended(p, weft_eval(p->vm, texts[i], p->name, NULL));
    expect(weft_is_suspended(p->vm), "begun");
  }
  run_loop();
  printf("%s\n", loop.told);
  expect(strcmp(loop.told, "a0 a4 b5 b\"type\" b10 a12 a24 ") == 0, "in turns");
  /* one that waits is ended with its VM, or before */
  Program *p = &loop.programs[0];
  WeftValue *v = NULL;
  expect(weft_eval(p->vm, "sleep(1)", "a", &v) == WEFT_SUSPENDED, "waits");
  expect(weft_eval(p->vm, "1 + 1", "a", &v) == WEFT_MISUSE, "nothing else runs meanwhile");
  expect(weft_cancel(p->vm) == WEFT_OK && weft_eval(p->vm, "1 + 1", "a", &v) == WEFT_OK, "ended");
  weft_release(p->vm, v);
  expect(weft_eval(p->vm, "map(sleep, (1, 2))", "a", &v) == WEFT_ERROR, "not inside of map");
  for (int i = 0; i < PROGRAMS; i++) weft_free(loop.programs[i].vm);
  return failed != 0;
}
