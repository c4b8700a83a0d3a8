/* driver.c — a stand-in for the CUDA driver on machines without a card: memory is the host's, kernels are run by the
 * interpreter of machine.h.
 *
 * Its addresses are none of the host's (FAR): whoever reads an array of the device as memory of the processor ends the
 * process. It is strict about how it is used: no context that is current, memory that was not taken, an address given
 * back twice, a name it has not, an interface of another version are errors; what is still held when the context is
 * released is told on standard error, and the process ends. WEFT_MOCK_MEMORY=BYTES limits the memory;
 * WEFT_MOCK_CAPABILITY=75 makes it an older card; WEFT_MOCK_FAIL=NAME makes that function fail, NAME@N its N-th call
 * alone, which takes the setting out of the environment; lost@N: behind the N-th launch nothing works in this context;
 * WEFT_MOCK_SPILLS=BYTES: what functions are said to spill; WEFT_MOCK_STEPS=N: a launch of more instructions does not
 * end. WEFT_MOCK_COUNT=FILE gets a line for each text that is compiled and for each piece of code that is loaded (code
 * is the text, behind a head that names the card and WEFT_MOCK_BUILD=N, and runs where both are the same).
 *
 * WEFT_MOCK_MODEL=FILE makes it a model of a card, WEFT_MOCK_CARD=NAME (H200): of each kernel a sample of warps runs
 * and is counted, and a line with the time that the card would take goes to the file; what kernels compute is not
 * whole. WEFT_MOCK_PTXAS names the assembler that tells registers. WEFT_MOCK_PLANT plants a fault that the model must
 * see: `one-block` launches every kernel in one block, `scalar` takes accesses of several elements apart,
 * `unpadded` takes the padding out of tiles in shared memory. Five more are for runs that compute: `no-meeting`,
 * `silent`, `tie`, `fragment` and `forget` (machine.h). */
#include "tests/support/cuda/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_BINARY = 209, INVALID_PTX = 218, INVALID_CONTEXT = 201,
       NOT_FOUND = 500, LAUNCH_FAILED = 719 };
enum { RED_ZONE = 64, FRESH = 0xA5 /* memory is never clean */ };
/* Between an address of the device and where its bytes lie: no processor that the tests run on gives such addresses to
 * programs. */
#define FAR ((uint64_t)1 << 50)

typedef struct Block {
  char *at;
  size_t bytes;
} Block;

static struct {
  Block *blocks;
  size_t count, cap, bytes;
  int retained, current, modules, links;
  struct {
    Machine **at;
    size_t count, cap;
  } loaded; /* modules that are not unloaded: a context that is lost takes them along */
  unsigned launches;
  long asked;      /* calls of what is to fail … */
  char wanted[64]; /* … which is this */
  bool lost;
  char said[512]; /* what the last failure was */
  FILE *model;
  const Card *card;
} mock;

static int planted(const char *fault) {
  const char *wanted = getenv("WEFT_MOCK_PLANT");
  return wanted && strcmp(wanted, fault) == 0;
}

static int fails(const char *name) {
  const char *wanted = getenv("WEFT_MOCK_FAIL");
  size_t length = strlen(name);
  if (!wanted || strncmp(wanted, name, length) != 0 || (wanted[length] && wanted[length] != '@')) return 0;
  if (wanted[length]) {
    if (strcmp(wanted, mock.wanted) != 0) mock.asked = 0;
    snprintf(mock.wanted, sizeof mock.wanted, "%s", wanted);
    if (++mock.asked != atol(wanted + length + 1)) return 0;
    mock.wanted[0] = 0;
    unsetenv("WEFT_MOCK_FAIL");
  }
  snprintf(mock.said, sizeof mock.said, "%s was told to fail", name);
  return 1;
}

static int capability(void) {
  const char *old = getenv("WEFT_MOCK_CAPABILITY");
  return old ? atoi(old) : 90;
}

/* OK, or the error of a call that needs a context. */
static int context_error(const char *name) {
  if (mock.lost) snprintf(mock.said, sizeof mock.said, "%s: the context is lost", name);
  else if (mock.current > 0) return OK;
  else snprintf(mock.said, sizeof mock.said, "%s: no context is current", name);
  return mock.lost ? LAUNCH_FAILED : INVALID_CONTEXT;
}
#define IN_CONTEXT(name)                  \
  do {                                    \
    int error_ = context_error(name);     \
    if (error_) return error_;            \
  } while (0)

static Block *block_of(uint64_t at, size_t bytes) {
  for (size_t i = mock.count; i-- > 0;) {
    Block *b = &mock.blocks[i];
    uint64_t from = FAR + (uint64_t)(uintptr_t)b->at;
    if (at >= from && at + bytes <= from + b->bytes) return b;
  }
  return NULL;
}

static void *bytes_at(uint64_t at) { return (void *)(uintptr_t)(at - FAR); }
static void *live(uint64_t at, size_t bytes) { return block_of(at, bytes) ? bytes_at(at) : NULL; }

static int cu_Init(unsigned flags) {
  const char *model = getenv("WEFT_MOCK_MODEL"), *card = getenv("WEFT_MOCK_CARD");
  if (flags || fails("cuInit")) return INVALID_VALUE;
  if (!model || mock.model) return OK;
  mock.card = card_find(card ? card : "H200");
  mock.model = mock.card ? fopen(model, "w") : NULL;
  if (mock.model) return OK;
  snprintf(mock.said, sizeof mock.said, mock.card ? "%.200s cannot be written" : "no card is called %.200s",
           mock.card ? model : card);
  return INVALID_VALUE;
}
static int cu_DeviceGetCount(int *n) { *n = fails("cuDeviceGetCount") ? 0 : 1; return OK; }
static int cu_DeviceGet(int *device, int n) { *device = 7; return n ? INVALID_VALUE : OK; }
static int cu_DeviceGetName(char *name, int length, int device) {
  snprintf(name, (size_t)length, "interpreter of PTX");
  return device == 7 ? OK : INVALID_VALUE;
}
static int cu_DeviceGetAttribute(int *value, int attribute, int device) {
  int sms = mock.card ? (int)mock.card->sms : 2;
  *value = attribute == 16 ? sms : attribute == 75 ? capability() / 10 : attribute == 76 ? capability() % 10 : -1;
  return device == 7 && *value >= 0 ? OK : INVALID_VALUE;
}
static int cu_GetErrorString(int error, const char **text) {
  *text = *mock.said ? mock.said : error == OUT_OF_MEMORY ? "out of memory" : "invalid use";
  return OK;
}
static int cu_DevicePrimaryCtxRetain(void **context, int device) {
  if (device != 7) return INVALID_VALUE;
  mock.retained++;
  *context = &mock;
  return OK;
}
static int cu_DevicePrimaryCtxRelease(int device) {
  if (device != 7 || mock.retained-- <= 0) return INVALID_VALUE;
  if (mock.retained) return OK;
  if (mock.lost) { /* all that was made in it goes with it */
    while (mock.count) free(mock.blocks[--mock.count].at);
    mock.bytes = 0;
    while (mock.loaded.count) machine_free(mock.loaded.at[--mock.loaded.count]);
    mock.modules = mock.links = 0;
    mock.lost = false;
  }
  if (!mock.count && !mock.modules && !mock.links && !mock.current) {
    free(mock.blocks);
    mock.blocks = NULL;
    mock.cap = 0;
    free(mock.loaded.at);
    mock.loaded.at = NULL;
    mock.loaded.count = mock.loaded.cap = 0;
    return OK;
  }
  fprintf(stderr, "mock driver: %zu blocks of memory, %d modules, %d links, %d contexts are still held\n",
          mock.count, mock.modules, mock.links, mock.current);
  abort();
}
static int cu_CtxPushCurrent(void *context) {
  if (fails("cuCtxPushCurrent")) return INVALID_CONTEXT;
  if (context != &mock || !mock.retained) return INVALID_CONTEXT;
  mock.current++;
  return OK;
}
static int cu_CtxPopCurrent(void **context) {
  if (!mock.current) return INVALID_CONTEXT;
  mock.current--;
  *context = &mock;
  return OK;
}
static int cu_CtxSynchronize(void) { return context_error("cuCtxSynchronize"); }

static int cu_MemGetInfo(size_t *left, size_t *total) {
  const char *limit = getenv("WEFT_MOCK_MEMORY");
  *total = limit ? strtoull(limit, NULL, 10) : (size_t)(mock.model ? 8 : 1) << 30;
  *left = *total - mock.bytes;
  return OK;
}
static int cu_MemAlloc(unsigned long long *out, size_t bytes) {
  size_t left, total;
  IN_CONTEXT("cuMemAlloc");
  if (!bytes) return INVALID_VALUE;
  cu_MemGetInfo(&left, &total);
  mock.said[0] = 0;
  if (bytes > left || fails("cuMemAlloc")) return OUT_OF_MEMORY;
  char *at = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
  if (!at) return OUT_OF_MEMORY;
  if (!mock.model) memset(at, FRESH, bytes);
  if (mock.count == mock.cap)
    mock.blocks = realloc(mock.blocks, (mock.cap = mock.cap ? mock.cap * 2 : 64) * sizeof *mock.blocks);
  if (!mock.blocks) abort();
  mock.blocks[mock.count++] = (Block){at, bytes};
  mock.bytes += bytes;
  *out = FAR + (unsigned long long)(uintptr_t)at;
  return OK;
}
static int cu_MemFree(unsigned long long at) {
  IN_CONTEXT("cuMemFree");
  Block *b = block_of(at, 1);
  if (!b || b->at != bytes_at(at)) {
    snprintf(mock.said, sizeof mock.said, "cuMemFree: this memory was not taken");
    return INVALID_VALUE;
  }
  mock.bytes -= b->bytes;
  free(b->at);
  *b = mock.blocks[--mock.count];
  return OK;
}
static int copy(const char *name, unsigned long long device, size_t bytes) {
  IN_CONTEXT(name);
  if (fails(name)) return LAUNCH_FAILED;
  if (block_of(device, bytes)) return OK;
  snprintf(mock.said, sizeof mock.said, "%s: %zu bytes at %llx lie in no memory of the device", name, bytes, device);
  return INVALID_VALUE;
}
static int cu_MemcpyHtoD(unsigned long long to, const void *from, size_t bytes) {
  int error = copy("cuMemcpyHtoD", to, bytes);
  if (mock.model) fprintf(mock.model, "write %zu\n", bytes);
  if (!error) memcpy(bytes_at(to), from, bytes);
  return error;
}
static int cu_MemcpyDtoH(void *to, unsigned long long from, size_t bytes) {
  int error = copy("cuMemcpyDtoH", from, bytes);
  if (mock.model) fprintf(mock.model, "read %zu\n", bytes);
  if (!error) memcpy(to, bytes_at(from), bytes);
  return error;
}

/* Of the model: a launch that writes, and waits for nothing. */
static int cu_MemsetD8(unsigned long long to, unsigned char value, size_t bytes) {
  int error = copy("cuMemsetD8", to, bytes);
  if (mock.model)
    fprintf(mock.model, "launch cuMemsetD8 us=%.2f bound=memory bytes=%zu\n", (double)bytes / mock.card->copy / 1e3,
            bytes);
  if (!error) memset(bytes_at(to), value, bytes);
  return error;
}

/* What a link gives: as code for a card, it begins as an ELF file does. */
typedef struct Code {
  char magic[8];
  int capability, build;
  char text[];
} Code;
static const char code_magic[8] = "\177ELF.ptx";

static int build(void) {
  const char *said = getenv("WEFT_MOCK_BUILD");
  return said ? atoi(said) : 0;
}

static void tell(const char *what) {
  const char *name = getenv("WEFT_MOCK_COUNT");
  FILE *f = name ? fopen(name, "a") : NULL;
  if (!f) return;
  fprintf(f, "%s\n", what);
  fclose(f);
}

static int cu_DriverGetVersion(int *version) {
  *version = 12000;
  return OK;
}
static int cu_LinkCreate(unsigned count, int *options, void **values, void **link) {
  (void)options;
  (void)values;
  IN_CONTEXT("cuLinkCreate");
  if (count || fails("cuLinkCreate")) return INVALID_VALUE;
  *link = calloc(1, sizeof(Code *));
  mock.links++;
  return *link ? OK : OUT_OF_MEMORY;
}
static int cu_LinkAddData(void *link, int kind, void *data, size_t bytes, const char *name, unsigned options,
                          int *names, void **values) {
  char why[400] = "";
  (void)name;
  (void)names;
  (void)values;
  IN_CONTEXT("cuLinkAddData");
  if (fails("cuLinkAddData")) return INVALID_PTX;
  if (kind != 1 || options || !bytes || ((char *)data)[bytes - 1]) return INVALID_VALUE;
  Machine *m = machine_load(data, PLANT_NONE, why, sizeof why);
  if (!m) return INVALID_PTX;
  machine_free(m);
  Code *code = malloc(sizeof *code + bytes);
  if (!code) return OUT_OF_MEMORY;
  memcpy(code->magic, code_magic, sizeof code_magic);
  code->capability = capability();
  code->build = build();
  memcpy(code->text, data, bytes);
  *(Code **)link = code;
  tell("compiled");
  return OK;
}
static int cu_LinkComplete(void *link, void **code, size_t *bytes) {
  IN_CONTEXT("cuLinkComplete");
  if (fails("cuLinkComplete")) return INVALID_PTX;
  Code *made = *(Code **)link;
  if (!made) return INVALID_VALUE;
  *code = made;
  *bytes = sizeof *made + strlen(made->text) + 1;
  return OK;
}
static int cu_LinkDestroy(void *link) {
  IN_CONTEXT("cuLinkDestroy");
  free(*(Code **)link);
  free(link);
  mock.links--;
  return OK;
}

static int cu_ModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  char why[400] = "";
  IN_CONTEXT("cuModuleLoadDataEx");
  if (fails("cuModuleLoadDataEx")) return INVALID_PTX;
  static const char *const plants[] = {[PLANT_SCALAR] = "scalar", [PLANT_UNPADDED] = "unpadded",
                                       [PLANT_NO_MEETING] = "no-meeting", [PLANT_SILENT] = "silent",
                                       [PLANT_TIE] = "tie", [PLANT_FRAGMENT] = "fragment",
                                       [PLANT_FORGET] = "forget"};
  MachinePlant plant = PLANT_NONE;
  for (unsigned i = PLANT_SCALAR; i < sizeof plants / sizeof *plants; i++)
    if (planted(plants[i])) plant = (MachinePlant)i;
  const Code *code = image;
  bool made = memcmp(image, code_magic, 4) == 0; /* an ELF file */
  if (made && (memcmp(image, code_magic, sizeof code_magic) != 0 || code->capability != capability() ||
               code->build != build()))
    return NO_BINARY;
  tell(made ? "loaded" : "compiled");
  if (made) image = code->text;
  Machine *m = machine_load(image, plant, why, sizeof why);
  if (!m) {
    for (unsigned i = 0; i + 1 < count; i++)
      if (options[i] == 5 && options[i + 1] == 6) snprintf(values[i], (size_t)(uintptr_t)values[i + 1], "%s", why);
    snprintf(mock.said, sizeof mock.said, "a PTX JIT compilation failed");
    return INVALID_PTX;
  }
  const char *ptxas = getenv("WEFT_MOCK_PTXAS");
  if (mock.model && ptxas && *ptxas) model_read_registers(ptxas, mock.card, image);
  mock.modules++;
  if (mock.loaded.count == mock.loaded.cap) {
    mock.loaded.cap = mock.loaded.cap ? mock.loaded.cap * 2 : 64;
    mock.loaded.at = realloc(mock.loaded.at, mock.loaded.cap * sizeof *mock.loaded.at);
    if (!mock.loaded.at) abort();
  }
  mock.loaded.at[mock.loaded.count++] = m;
  *module = m;
  return OK;
}
static int cu_ModuleUnload(void *module) {
  IN_CONTEXT("cuModuleUnload");
  if (!module) return INVALID_VALUE;
  for (size_t i = 0; i < mock.loaded.count; i++)
    if (mock.loaded.at[i] == module) mock.loaded.at[i--] = mock.loaded.at[--mock.loaded.count];
  machine_free(module);
  mock.modules--;
  return OK;
}
static int cu_ModuleGetFunction(void **f, void *module, const char *name) {
  IN_CONTEXT("cuModuleGetFunction");
  if (fails("cuModuleGetFunction")) return NOT_FOUND;
  *f = (void *)(uintptr_t)machine_find(module, name);
  return *f ? OK : NOT_FOUND;
}
/* A launch of the model: its line, in front of what failed. */
static bool launch_counted(const MachineFn *f, unsigned blocks, unsigned threads, unsigned shared,
                           const uint64_t *words) {
  Tally *t = tally_new((TallyLatency){mock.card->from_memory, mock.card->from_cache, mock.card->from_shared});
  if (planted("one-block")) blocks = 1;
  bool ok = machine_count(f, blocks, threads, shared, words, live, mock.card->sms, t, mock.said, sizeof mock.said);
  model_print(mock.model, mock.card, f, blocks, threads, shared, tally_sums(t));
  fflush(mock.model);
  tally_free(t);
  return ok;
}

/* Bytes that it spills: as WEFT_MOCK_SPILLS says. */
static int cu_FuncGetAttribute(int *value, int attribute, void *f) {
  const char *spills = getenv("WEFT_MOCK_SPILLS");
  IN_CONTEXT("cuFuncGetAttribute");
  if (!f || attribute != 3) return INVALID_VALUE;
  *value = spills ? atoi(spills) : 0;
  return OK;
}

/* The most bytes of shared memory that a function may be given: as every card of compute capability 8.0 and up has. */
static int cu_FuncSetAttribute(void *f, int attribute, int value) {
  IN_CONTEXT("cuFuncSetAttribute");
  if (fails("cuFuncSetAttribute")) return INVALID_VALUE;
  if (!f || attribute != 8 || value < 0 || value > 99 * 1024) return INVALID_VALUE;
  machine_allow(f, (unsigned)value);
  return OK;
}

static int cu_LaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                           unsigned shared, void *stream, void **params, void **extra) {
  uint64_t words[600];
  IN_CONTEXT("cuLaunchKernel");
  if (fails("cuLaunchKernel")) return LAUNCH_FAILED;
  if (fails("lost")) mock.lost = true;
  IN_CONTEXT("cuLaunchKernel");
  if (!gx || gy != 1 || gz != 1 || !bx || bx > 1024 || bx % 32 || by != 1 || bz != 1 || stream || extra ||
      shared > machine_allowed(f) || machine_params(f) > 600)
    return INVALID_VALUE;
  for (unsigned i = 0; i < machine_params(f); i++) memcpy(&words[i], params[i], 8);
  if (mock.model) return launch_counted(f, gx, bx, shared, words) ? OK : LAUNCH_FAILED;
  return machine_run(f, gx, bx, shared, words, live, mock.launches++, mock.said, sizeof mock.said) ? OK : LAUNCH_FAILED;
}

__attribute__((visibility("default"))) int cuGetProcAddress_v2(const char *name, void **function, int version,
                                                               unsigned long long flags, int *found) {
#define F(n) {"cu" #n, (void (*)(void))cu_##n}
  static const struct { const char *name; void (*fn)(void); } all[] = {
    F(Init), F(DeviceGetCount), F(DeviceGet), F(DeviceGetName), F(DeviceGetAttribute), F(GetErrorString),
    F(DevicePrimaryCtxRetain),
    F(DevicePrimaryCtxRelease), F(CtxPushCurrent), F(CtxPopCurrent), F(CtxSynchronize), F(MemGetInfo),
    F(MemAlloc), F(MemFree),
    F(MemcpyHtoD), F(MemcpyDtoH), F(MemsetD8), F(DriverGetVersion), F(LinkCreate),
    F(LinkAddData), F(LinkComplete), F(LinkDestroy), F(ModuleLoadDataEx), F(ModuleUnload), F(ModuleGetFunction),
    F(FuncGetAttribute), F(FuncSetAttribute), F(LaunchKernel)};
  (void)found;
  if (version != 12000 || flags) return INVALID_VALUE;
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(all[i].name, name) == 0) {
      memcpy(function, &all[i].fn, sizeof *function);
      return OK;
    }
  return NOT_FOUND;
}
