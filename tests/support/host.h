/* host.h — a host of Weft as the tests need it: runs one program in a fresh VM and keeps all that came of it. */
#ifndef WEFT_TESTS_HOST_H
#define WEFT_TESTS_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lang/stats.h"

struct WeftVM;
typedef struct HostSetup {
  const char *backend;  /* as in WEFT_BACKEND; NULL: the default */
  int hot;              /* executions until something is hot, as WEFT_HOT; -1: the default */
  const char *force;    /* as in WeftOptions; NULL: nothing */
  bool files;           /* may read and write files, and read the environment */
  const char *cpu;      /* as in WEFT_CPU; NULL: the default */
  const char *driver;   /* of CUDA; NULL: the GPU is not to be used, "": the system's */
  uint64_t fuel;        /* 0: no limit */
  uint64_t memory;      /* bytes, 0: no limit */
  double deadline;      /* seconds, 0: none */
  void (*made)(void *context, struct WeftVM *vm); /* called with the VM before the program runs; NULL: not */
  void *context;
  long refuse_at;       /* the allocation to refuse, counted from 1; 0: none */
  bool bytes;           /* the program runs as weft_compile gives it */
  bool own_memory;      /* the library's own memory: nothing is counted, nothing refused */
} HostSetup;

typedef enum HostEnd {
  HOST_VALUE,
  HOST_ERROR,
  HOST_NO_VM, /* the VM could not be made */
} HostEnd;

enum { HOST_COUNTERS = STAT_COUNT };
typedef struct HostRun {
  HostEnd end;
  char *value;   /* as the REPL shows it */
  char *type;    /* its type; for arrays dtype and shape too */
  char *printed; /* all that was printed, "" when nothing */
  char *kind, *message; /* of the error */
  int line, column;     /* of the error, 1-based; 0 unknown */
  int exit_code;        /* given to exit(n); -1: none */
  const char *counter_names[HOST_COUNTERS];
  double counters[HOST_COUNTERS];
  int counter_count;
  long allocations;     /* how often the VM asked for memory */
  long made_after;      /* of these, until weft_new returned */
  long printed_after; /* allocations made when the program printed first; 0: it did not */
  size_t leaked;        /* bytes the VM had not given back at its end */
  bool refused;         /* the allocation named by refuse_at was reached */
} HostRun;

/* `name` is the source's name in messages. */
HostRun host_run(const HostSetup *setup, const char *name, const char *program);
void host_run_free(HostRun *r);
/* False when there is no such counter. */
bool host_counter(const HostRun *r, const char *name, size_t length, double *out);

#endif
