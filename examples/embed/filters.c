/* filters.c — an image program that runs filters written by strangers: limits, nothing allowed, images not copied.
 * Build it with: cc filters.c $(pkg-config --cflags --libs weft) -o filters */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft.h>

enum { HEIGHT = 128, WIDTH = 192 };

typedef struct Image {
  float *pixels; /* HEIGHT rows of WIDTH */
  int lent;      /* how many arrays stand for it at present */
} Image;

static int failed;

static void expect(int ok, const char *what) {
  printf("%s filters/%s\n", ok ? "ok" : "not ok", what);
  failed += !ok;
}

static void given_back(void *context, void *data) {
  (void)data;
  ((Image *)context)->lent--;
}

/* What plugins print goes to the host's log, never to its terminal. */
static char said[256];
static void note(void *context, const char *text, size_t length) {
  (void)context;
  size_t used = strlen(said), room = sizeof said - 1 - used;
  memcpy(said + used, text, length < room ? length : room);
  said[used + (length < room ? length : room)] = 0;
}

/* One VM for each plugin: none sees what another has declared. Nothing is allowed; all that grows has an end. */
static WeftVM *open_plugin(void) {
  WeftOptions options = WEFT_OPTIONS_INIT;
  options.memory = 64 << 20;
  options.output_limit = 64 << 10;
  options.depth = 1000;
  options.output = note;
  char why[128];
  WeftVM *vm = NULL;
  if (weft_open(&options, &vm, why, sizeof why) != WEFT_OK) fprintf(stderr, "%s\n", why);
  return vm;
}

/* Before each run: what a filter may take is not what is left of the one before. */
static void limits_for_a_run(WeftVM *vm) { weft_set_limits(vm, 64 << 20, 20 * 1000 * 1000, 2.0); }

/* Loads a plugin: its text declares fn filter(image, strength). NULL: `why` says why not. */
static WeftValue *load(WeftVM *vm, const char *text, size_t length, const char *name, const char **why) {
  WeftValue *filter = NULL;
  limits_for_a_run(vm);
  if (weft_eval_length(vm, text, length, name, NULL) != WEFT_OK || weft_get_global(vm, "filter", &filter) != WEFT_OK)
    *why = weft_error_message(vm);
  return filter;
}

/* Runs it on an image, into `out`. False: the image is as it was, and `why` says why. */
static bool run(WeftVM *vm, WeftValue *filter, Image *image, double strength, float *out, const char **why) {
  const int64_t shape[2] = {HEIGHT, WIDTH};
  WeftValue *args[2] = {NULL, NULL}, *result = NULL;
  WeftArray a;
  bool done = false;
  *why = "";
  limits_for_a_run(vm);
  /* the plugin may keep the array: the pixels are not written until given_back was called for it */
  if (weft_array_lend(vm, WEFT_F32, 2, shape, image->pixels, given_back, image, &args[0]) == WEFT_OK) image->lent++;
  if (!args[0] || weft_float(vm, strength, &args[1]) != WEFT_OK || weft_call(vm, filter, args, 2, &result) != WEFT_OK)
    *why = weft_error_message(vm);
  else if (weft_array_view(vm, result, &a) != WEFT_OK)
    *why = weft_error_message(vm);
  else if (a.rank != 2 || a.shape[0] != HEIGHT || a.shape[1] != WIDTH || (a.dtype != WEFT_F32 && a.dtype != WEFT_F64))
    *why = "a filter gives an image of the same size, of f32 or f64";
  else {
    done = true; /* strides are any: broadcast, reversed, a column of something larger */
    for (int64_t i = 0; i < HEIGHT; i++)
      for (int64_t j = 0; j < WIDTH; j++) {
        const int64_t at = i * a.strides[0] + j * a.strides[1];
        const double pixel = a.dtype == WEFT_F32 ? ((const float *)a.data)[at] : ((const double *)a.data)[at];
        out[i * WIDTH + j] = (float)(pixel < 0 ? 0 : pixel > 1 ? 1 : pixel);
      }
  }
  weft_release(vm, result);
  weft_release(vm, args[0]);
  weft_release(vm, args[1]);
  return done;
}

static const struct {
  const char *name, *text;
  WeftLimit limit; /* that it runs into; none: it works, unless `error` tells what is said of it */
  const char *error;
} plugins[] = {
    {"negative", "fn filter(image, strength) = 1 - image", WEFT_LIMIT_NONE, NULL},
    {"gamma", "fn filter(image, strength) = image ** strength", WEFT_LIMIT_NONE, NULL},
    {"blur", "fn filter(image, strength) {\n"
     "  let p = pad(image, 1, mode=\"edge\")\n"
     "  let (h, w) = image.shape\n"
     "  let sum = zeros((h, w), dtype=f32)\n"
     "  for i in 0..3 { for j in 0..3 { sum += p[i:i + h, j:j + w] } }\n"
     "  (1 - strength) * image + strength * sum / 9\n}", WEFT_LIMIT_NONE, NULL},
    {"mirror", "fn filter(image, strength) = image[:, ::-1]", WEFT_LIMIT_NONE, NULL},
    {"flat", "fn filter(image, strength) = broadcast_to(mean(image), image.shape)", WEFT_LIMIT_NONE, NULL},
    {"keeps-the-image", "let kept = nil\nfn filter(image, strength) { kept = image; image }", WEFT_LIMIT_NONE, NULL},
    {"endless", "fn filter(image, strength) { while true { } }", WEFT_LIMIT_FUEL, NULL},
    {"long-operations", "fn filter(image, strength) { while true { linalg.svd(image) } }", WEFT_LIMIT_DEADLINE,
     NULL},
    {"hungry", "fn filter(image, strength) { let x = image; while true { x = concat((x, x)) }; x }",
     WEFT_LIMIT_MEMORY, NULL},
    {"deep", "fn f(n) = 1 + f(n + 1)\nfn filter(image, strength) = image * f(0)", WEFT_LIMIT_DEPTH, NULL},
    {"talks", "fn filter(image, strength) { while true { print(\"hello\") } }", WEFT_LIMIT_OUTPUT, NULL},
    {"reads-files", "fn filter(image, strength) { read_text(\"/etc/passwd\"); image }", WEFT_LIMIT_FILES, NULL},
    {"ends-itself", "fn filter(image, strength) { exit(3) }", WEFT_LIMIT_EXIT, NULL},
    {"wrong-size", "fn filter(image, strength) = image[1:]", WEFT_LIMIT_NONE, "same size"},
    {"no-image", "fn filter(image, strength) = \"done\"", WEFT_LIMIT_NONE, "array"},
    {"no-filter", "let x = 1", WEFT_LIMIT_NONE, "filter is not declared"},
    {"no-program", "fn filter(image, strength) = (", WEFT_LIMIT_NONE, "end"},
};

int main(void) {
  Image image = {.pixels = malloc(sizeof(float) * HEIGHT * WIDTH)};
  float *before = malloc(sizeof(float) * HEIGHT * WIDTH), *out = malloc(sizeof(float) * HEIGHT * WIDTH);
  if (!image.pixels || !before || !out) return 1;
  for (int i = 0; i < HEIGHT * WIDTH; i++) image.pixels[i] = (float)(i * 37 % 256) / 255;
  memcpy(before, image.pixels, sizeof(float) * HEIGHT * WIDTH);

  for (size_t i = 0; i < sizeof plugins / sizeof plugins[0]; i++) {
    const char *why = "";
    WeftVM *vm = open_plugin();
    if (!vm) return 1;
    WeftValue *filter = load(vm, plugins[i].text, strlen(plugins[i].text), plugins[i].name, &why);
    bool done = filter && run(vm, filter, &image, 0.5, out, &why);
    bool right = plugins[i].limit ? !done && weft_error_limit(vm) == plugins[i].limit
                                  : plugins[i].error ? !done && strstr(why, plugins[i].error) : done;
    if (!right) printf("# %s: %s\n", plugins[i].name, why);
    /* whatever it did, the VM goes on */
    WeftValue *v = NULL;
    int64_t n = 0;
    limits_for_a_run(vm);
    right = right && weft_eval(vm, "40 + 2", "host", &v) == WEFT_OK && weft_as_int(vm, v, &n) == WEFT_OK && n == 42;
    expect(right, plugins[i].name);
    weft_release(vm, v);
    weft_release(vm, filter);
    weft_free(vm); /* with all that the plugin kept */
    if (done && strcmp(plugins[i].name, "negative") == 0)
      expect(out[100] == 1 - before[100] && out[0] == 1, "negative-pixels");
    if (done && strcmp(plugins[i].name, "mirror") == 0)
      expect(out[0] == before[WIDTH - 1] && out[WIDTH] == before[2 * WIDTH - 1], "mirror-pixels");
  }
  expect(image.lent == 0, "all-images-came-back");
  expect(memcmp(before, image.pixels, sizeof(float) * HEIGHT * WIDTH) == 0, "the-image-is-unchanged");
  expect(strncmp(said, "hello\nhello\n", 12) == 0, "what-they-printed-was-caught");
  free(image.pixels);
  free(before);
  free(out);
  return failed != 0;
}
