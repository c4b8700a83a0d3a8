# Builds Weft: libweft (static and shared), the program `weft`, its tests. `make help` lists the targets.
# Everything made lies under build/; build/asan holds the same tree under AddressSanitizer and UBSan.

B        ?= build
PREFIX   ?= /usr/local
VERSION  := 0.1.0
SOVERSION := 0

ifeq ($(origin CC),default)
CC       := gcc
endif
AR       ?= ar
OBJCOPY  ?= objcopy
OPT      ?= -O2 -g
WARN     := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
# clang alone knows these: arrays of flexible size inside of structs are meant, and a loop that is not unrolled is no
# fault.
WARN     += -Wno-gnu-variable-sized-type-not-at-end -Wno-pass-failed
VISIBLE  := hidden
# No path of the machine that builds gets into what is built: the same source gives the same bytes in every folder.
WHERE    := -ffile-prefix-map=$(CURDIR)=.
ALL_CFLAGS = -std=gnu11 $(OPT) $(WARN) $(WERROR) -ffp-contract=off -fno-math-errno -fvisibility=$(VISIBLE) -fPIC \
             $(WHERE) -ffunction-sections -fdata-sections -pthread -I. -I$(GEN_DIR) $(CFLAGS)
Q        := $(if $(filter 1,$(V)),,@)

ROOMS    := parser lang vm guards tracer hop jit gpu stdlib api
GEN_DIR  := build/gen
MIR_DIR  := build/mir

# A file named *_template.c is included by others and not compiled by itself.
LIB_SRC  := $(filter-out %_template.c jit/host/%,$(wildcard $(addsuffix /*.c,$(ROOMS)) $(addsuffix /*/*.c,$(ROOMS))))
REPL_SRC := $(wildcard repl/*.c)
UNIT_SRC := $(wildcard tests/unit/test_*.c)

# ---- goals that only hand on to another make, so that set-up can come before the build ------------

OUTER    := check check-all run bench bench-quick bench-examples bench-peers clean help setup lint cuda-tools asan \
            tsan fuzz mutation gpu-check mechanisms mechanisms-mutate dist
INNER    := $(filter-out $(OUTER),$(or $(MAKECMDGOALS),all))

.DEFAULT_GOAL := all
.PHONY: all quick lib test tests sanitized-tests install uninstall $(OUTER)
.DELETE_ON_ERROR:
.SUFFIXES:

# ---- generated sources ----------------------------------------------------------------------------

# Tools that the build makes for itself: jit/host/TOOL.c and the parts of the library that each one needs.
MATH_OBJ := $(patsubst %.c,build/host/%.o,jit/host/gen_math.c parser/base.c $(wildcard jit/loops/loops*.c))
OPS_OBJ  := build/host/jit/host/gen_ops.o
WEFT_OBJ := $(patsubst %.c,build/host/%.o,jit/host/gen_modules.c $(wildcard parser/*.c lang/*.c))
build/host/gen_math: $(MATH_OBJ)
build/host/gen_ops: $(OPS_OBJ)
build/host/gen_modules: $(WEFT_OBJ)
$(addprefix build/host/gen_,math ops modules):
	$(Q)$(CC) $^ -lm -o $@
build/host/%.o: %.c Makefile
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -O1 $(WARN) $(WERROR) -ffp-contract=off -fno-math-errno -I. -I$(GEN_DIR) \
	  -MMD -MP -c $< -o $@
-include $(sort $(patsubst %.o,%.d,$(MATH_OBJ) $(OPS_OBJ) $(WEFT_OBJ)))

# lang/math.loops → build/gen/math_*.c. The list of what was written is itself a makefile, so make reads it again once
# it is made.
GEN_SRC  := $(GEN_DIR)/modules.c
ifneq ($(INNER),)
include $(GEN_DIR)/math.mk
endif
$(GEN_DIR)/math.mk: build/host/gen_math lang/math.loops
	$(Q)mkdir -p $(GEN_DIR) && rm -f $(GEN_DIR)/math_*
	$(Q)build/host/gen_math lang/math.loops $(GEN_DIR)
	@cd $(GEN_DIR) && echo "GEN_SRC += $$(ls math_*.c | sed 's|^|$(GEN_DIR)/|' | tr '\n' ' ')" >math.mk
$(GEN_DIR)/math_%.c: $(GEN_DIR)/math.mk ;

# Names and signatures of lang/ops.def → build/gen/op_params.h, for lang/ops.c.
$(GEN_DIR)/op_params.h: build/host/gen_ops
	$(Q)mkdir -p $(@D) && build/host/gen_ops $@
$(WEFT_OBJ): | $(GEN_DIR)/op_params.h

# stdlib/modules/*.weft → build/gen/modules.c: the library's functions written in Weft, as bytecode.
MODULES  := $(sort $(wildcard stdlib/modules/*.weft))
$(GEN_DIR)/modules.c: build/host/gen_modules $(MODULES)
	$(Q)build/host/gen_modules $@ $(MODULES)

# ---- objects --------------------------------------------------------------------------------------

LIB_OBJ  := $(LIB_SRC:%.c=$(B)/obj/%.o) $(GEN_SRC:build/gen/%.c=$(B)/obj/gen/%.o)
REPL_OBJ := $(REPL_SRC:%.c=$(B)/obj/%.o)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(B)/tests/%)

$(B)/obj/lang/ops.o: | $(GEN_DIR)/op_params.h

# Only these files include mir.h, whose structs hold a long double that MIR builds with 64 bits.
MIR_USERS := $(strip $(filter jit/scalar/mir_%.c,$(LIB_SRC)) $(wildcard tests/unit/test_mir*.c))
MIR_LIB  := $(MIR_DIR)/libmir.a
MIR_OBJ  := $(MIR_USERS:%.c=$(B)/obj/%.o)
$(MIR_OBJ): FILE_CFLAGS += -mlong-double-64 -isystem $(MIR_DIR)/include
$(MIR_OBJ): | $(MIR_DIR)/libmir.a

# Flags go by the kind of a file. What is not a kernel is built with $(OPT).
# $(call known,FLAGS) gives those of FLAGS that this compiler takes: clang lacks some of gcc's.
known     = $(foreach f,$(1),$(if $(shell $(CC) -Werror $(f) -xc -fsyntax-only /dev/null 2>&1),,$(f)))

# Kernels of the eager tier and the functions of lang/math.loops: loops over elements, compiled for vectorisation.
# No floating-point operation traps. The elements that remain behind the last whole vector go through a short scalar
# loop, and no loop gets a second version for a stride of 1: neither gains time, and both double the code.
KERNEL   := -O3 -fno-trapping-math -fno-unroll-loops $(call known,--param=vect-epilogues-nomask=0)
ROLLED   := $(call known,-fno-peel-loops --param=max-completely-peel-times=0 -fno-version-loops-for-strides)
$(B)/obj/stdlib/kernels/kernel%.o: FILE_CFLAGS += $(KERNEL) $(ROLLED)
# Selects stay selects: partial redundancy elimination and jump threading would make branches of them, which gcc does
# not vectorise.
SELECTS  := $(call known,-fno-tree-pre -fno-thread-jumps)
$(B)/obj/gen/math_%.o $(B)/obj/jit/vector/vector_runtime.o: FILE_CFLAGS += $(KERNEL) $(SELECTS)

# One build of a kernel for each instruction set, by the end of its name.
$(B)/obj/%_avx2.o: FILE_CFLAGS += -mavx2 -mfma
$(B)/obj/%_avx512.o: FILE_CFLAGS += -mavx2 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512

# Next to what a driver does with it, the time to write a kernel of a GPU is nothing: this code is small instead.
$(B)/obj/gpu/%.o: FILE_CFLAGS += -Os

# Code that runs once for a program, not once for an element: a build may ask for less optimisation there.
SELDOM   := $(addprefix $(B)/obj/,tracer/% hop/% guards/% gpu/% repl/% parser/% api/%) \
  $(addprefix $(B)/obj/jit/,lower/% loops/% plan/%)
$(filter $(SELDOM),$(LIB_OBJ) $(REPL_OBJ)): FILE_CFLAGS += $(SELDOM_OPT)

# The edges of what reads texts and files count themselves, so that fuzzers see what an input reaches. (In all of the
# library that makes every sanitized test a sixth longer.) What an edge calls does nothing, but in the fuzzers.
COVERED  := $(addprefix $(B)/obj/,parser/% lang/% api/% stdlib/files/% stdlib/text/%)
$(filter $(COVERED),$(LIB_OBJ)): FILE_CFLAGS += $(COVER)
ifneq ($(COVER),)
LIB_OBJ  += $(B)/obj/tests/support/cover/none.o
endif

$(B)/obj/%.o: %.c Makefile
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(FILE_CFLAGS) -MMD -MP -c $< -o $@

$(B)/obj/gen/%.o: build/gen/%.c Makefile
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_CFLAGS) $(FILE_CFLAGS) -MMD -MP -c $< -o $@

-include $(LIB_OBJ:.o=.d) $(REPL_OBJ:.o=.d) $(wildcard $(B)/obj/tests/*/*.d $(B)/obj/tests/support/*/*.d)

# ---- library, program, unit tests -----------------------------------------------------------------

LIBS     := -Wl,--as-needed -lm -ldl -pthread
SO_NAME  := libweft.so.$(SOVERSION)
SO_FILE  := libweft.so.$(VERSION)

all: lib $(B)/weft ; @: ## the library and the program, in build/; quiet, without a warning
lib: $(B)/libweft.a $(INSIDE) $(B)/$(SO_FILE)
quick: WERROR := -Werror
quick: all $(UNIT_BIN) ; @: ## the library, the program and the unit tests; warnings are errors; runs nothing

# For what looks inside (the tests): every object by itself, MIR's among them. Under sanitizers it is a shared library,
# all of whose names are visible: seventy programs of 100 MB each take longer to link than to run.
INSIDE   := $(B)/libweft-internal.a
$(B)/libweft-internal.a: $(LIB_OBJ) $(MIR_LIB) $(B)/members
	@mkdir -p $(@D) && rm -f $@
	$(Q)$(AR) qcs $@ $(LIB_OBJ) $(MIR_DIR)/obj/*.o
$(B)/libweft-internal.so: $(LIB_OBJ) $(MIR_LIB) $(B)/members
	$(Q)$(CC) -shared $(LDFLAGS) $(LIB_OBJ) $(MIR_DIR)/obj/*.o $(LIBS) -o $@

# For hosts: one object in which nothing but weft_* is global, so that any other name is the host's. Sections stay apart
# (--unique: also those of static functions of one name), and --gc-sections works as with many objects.
$(B)/libweft.a: $(LIB_OBJ) $(MIR_LIB) $(B)/members
	@mkdir -p $(@D) && rm -f $@
	$(Q)$(CC) -r -nostdlib -Wl,--unique $(LIB_OBJ) $(MIR_DIR)/obj/*.o -o $(B)/libweft.o
	$(Q)$(OBJCOPY) --localize-hidden --wildcard --keep-global-symbol='weft_*' $(B)/libweft.o
	$(Q)$(AR) qcs $@ $(B)/libweft.o
	@rm -f $(B)/libweft.o

# A source that went away must leave the archive too.
LIST     := $(strip $(LIB_OBJ) $(MIR_LIB))
ifneq ($(INNER),)
ifneq ($(LIST),$(strip $(file <$(B)/members)))
$(shell mkdir -p $(B))
$(file >$(B)/members,$(LIST))
endif
endif
$(B)/members: ;

# With clang the names of a sanitizer are in the program alone, so the library of such a tree may leave them open.
DEFINED  := -Wl,--no-undefined
$(B)/$(SO_FILE): $(LIB_OBJ) $(MIR_LIB) api/libweft.map $(B)/members
	$(Q)$(CC) -shared -Wl,-soname,$(SO_NAME) -Wl,--version-script,api/libweft.map $(DEFINED) \
	  -Wl,--gc-sections $(LDFLAGS) $(LIB_OBJ) $(MIR_LIB) $(LIBS) -o $@
	@ln -sf $(SO_FILE) $(B)/$(SO_NAME)
	@ln -sf $(SO_NAME) $(B)/libweft.so

$(B)/weft: $(REPL_OBJ) $(B)/libweft.a
	$(Q)$(CC) -Wl,--gc-sections $(LDFLAGS) $(REPL_OBJ) $(B)/libweft.a $(LIBS) -lreadline -o $@

# Unit tests compile in half the time so (sanitized ones in a third), and none of them measures its own speed.
UNIT_OPT ?= -O1
$(B)/obj/tests/unit/%.o: FILE_CFLAGS += $(UNIT_OPT)
$(B)/tests/test_%: $(B)/obj/tests/unit/test_%.o $(INSIDE)
	$(Q)mkdir -p $(@D) && $(CC) $(LDFLAGS) $(filter %.o,$^) $(INSIDE) $(LIBS) -lcmocka -o $@
$(B)/tests/test_files: $(B)/obj/tests/support/host.o
# Its reference is a disassembler, where one is installed.
ZYDIS_H  := $(wildcard /usr/include/Zydis/Zydis.h /usr/local/include/Zydis/Zydis.h)
$(B)/tests/test_vector_asm: LIBS += $(if $(ZYDIS_H),-lZydis)
# Its reference has 113 bits; other compilers find the library of gcc where gcc has it.
ifneq ($(shell echo '\#include <quadmath.h>' | $(CC) -fsyntax-only -xc - 2>&1),)
$(B)/obj/tests/unit/test_math.o: FILE_CFLAGS += -idirafter $(dir $(shell gcc -print-file-name=include/quadmath.h))
$(B)/tests/test_math: LIBS += -L$(dir $(shell gcc -print-file-name=libquadmath.so))
endif
$(B)/tests/test_math: LIBS += -lquadmath
.PRECIOUS: $(B)/obj/%.o

$(MIR_DIR)/libmir.a: jit/mir/build.sh jit/mir/quick.sed jit/mir/Cargo.toml
	$(Q)CC="$(CC)" AR="$(AR)" OBJCOPY="$(OBJCOPY)" jit/mir/build.sh $(MIR_DIR) $(MIR_PREFIX)

# tests/NAME/*.c, with what tests/support/ has, is the program build/tests/NAME.
SUITE_C  := $(filter-out tests/unit/% tests/support/%,$(wildcard tests/*/*.c))
SUITES   := $(sort $(patsubst tests/%/,%,$(dir $(SUITE_C))))
SUPPORT  := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/support/*.c))
define suite
$(B)/tests/$(1): $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/$(1)/*.c)) $(SUPPORT) $(INSIDE)
	$$(Q)mkdir -p $$(@D) && $$(CC) $$(LDFLAGS) $$(filter %.o,$$^) $(INSIDE) $$(LIBS) -o $$@
endef
$(foreach s,$(SUITES),$(eval $(call suite,$(s))))
$(B)/tests/prompt: LIBS += -lutil
# The reference of its f64 half, where it is installed.
$(B)/tests/math: LIBS += $(if $(wildcard /usr/include/mpfr.h /usr/local/include/mpfr.h),-lmpfr -lgmp)
tests: $(SUITES:%=$(B)/tests/%) build/cases/ops.weft $(B)/tests/libcuda.so ; @:

# A stand-in for the CUDA driver: what runs on a GPU is tested without one (WEFT_CUDA_DRIVER=build/tests/libcuda.so).
# It checks each address itself, so that the sanitized tree has it at full speed.
$(B)/obj/tests/support/cuda/%.o: FILE_CFLAGS += -O2 $(call known,-fno-sanitize=all)
$(B)/tests/libcuda.so: $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/support/cuda/*.c))
	$(Q)mkdir -p $(@D) && $(CC) -shared $(LDFLAGS) $^ -lm -o $@
$(B)/tests/test_gpu_faults: | $(B)/tests/libcuda.so

# The example in each row of the table of operations is a case too.
build/cases/ops.weft: lang/ops.def tests/tools/op-examples.awk
	$(Q)mkdir -p $(@D) && awk -f tests/tools/op-examples.awk lang/ops.def >$@

# ---- the same tree with sanitizers, and with the counters that guide the fuzzers -------------------

# One tree for both. Instrumented code makes gcc warn of conversions that are not in the source: the plain build does.
# clang refuses NULL + 0, which C2y defines and empty arrays have, and does not tell the source of the sanitizer.
ASAN_LINES ?= -g1 -gdwarf-4
SANITIZE := -fsanitize=address,undefined \
  $(if $(findstring clang,$(CC)),-fno-sanitize=pointer-overflow -D__SANITIZE_ADDRESS__ -Wno-pass-failed)
CALM     := -Wall -Wextra -Wno-unknown-warning-option -Wno-maybe-uninitialized -Wno-gnu-variable-sized-type-not-at-end
GOLD     := $(if $(shell command -v ld.gold),-fuse-ld=gold) # half the time for programs of 40 MB; no DWARF 5
asan:                      ## the same tree under AddressSanitizer and UBSan, in build/asan
fuzz:                      ## the fuzzers alone, in build/asan
asan fuzz:
	$(Q)$(MAKE) --no-print-directory B=build/asan VISIBLE=default INSIDE=build/asan/libweft-internal.so \
	  SELDOM_OPT=-Og OPT="-O1 $(ASAN_LINES) -fno-omit-frame-pointer $(SANITIZE) -fno-sanitize-recover=undefined" \
	  LDFLAGS="$(SANITIZE) $(GOLD) -Wl,-rpath,$(CURDIR)/build/asan" DEFINED= COVER=-fsanitize-coverage=trace-pc \
	  KERNEL= UNIT_OPT=-O0 WARN="$(CALM)" WERROR= $(if $(filter fuzz,$@),build/asan/tests/fuzz,quick sanitized-tests)
sanitized-tests: $(addprefix $(B)/tests/,cases fuzz hostile limits prompt libcuda.so) build/cases/ops.weft ; @:

# What threads share, under ThreadSanitizer: the tests of the pool.
tsan:                      ## the tests of the thread pool under ThreadSanitizer, in build/tsan
	$(Q)$(MAKE) --no-print-directory B=build/tsan OPT="-O1 -g -fsanitize=thread" LDFLAGS=-fsanitize=thread DEFINED= \
	  WARN="$(CALM)" WERROR= build/tsan/libweft.so.$(VERSION) build/tsan/tests/test_threads

# ---- the same tree with switches that take mechanisms out (lang/mechanisms.def) ---------------------

mutation:                  ## the same tree with switches that take mechanisms out, in build/mutate
	$(Q)$(MAKE) --no-print-directory B=build/mutate CFLAGS="$(CFLAGS) -DWEFT_MUTATION" quick tests

# ---- goals: `make help` shows what stands behind each ----------------------------------------------

# These build or fetch first, which another make does, so that set-up comes before it.
AGAIN    := $(MAKE) --no-print-directory

run: setup                 ## the main example: set-up, build, examples/digits.weft
	@$(AGAIN) all && build/weft examples/digits.weft
check: setup cuda-tools    ## set-up, build, lint and every test that fits ten minutes; one line adds them up
	@.ci/check
check-all: setup cuda-tools ## the same with longer fuzzing and more generated programs
	@.ci/check all
test: quick tests          ## the tests without set-up, without the sanitizers
	@CHECK_JOBS=2 .ci/check test
bench: setup               ## measures every claim about speed beside its peers; bench/run --save keeps it
	@$(AGAIN) all && bench/run
bench-quick: setup         ## the same in two minutes
	@$(AGAIN) all && bench/run --quick
bench-examples: setup      ## examples/programs beside the same in Python: what they print, and their times
	@$(AGAIN) all && bench/peers/programs/run
bench-peers:               ## installs the peers: NumPy, numexpr, Numba, JAX, LuaJIT; BENCH_TORCH=1: torch
	@bench/peers/install
gpu-check:                 ## the GPU tests, on a machine that has a card
	@$(AGAIN) all tests && tests/tools/gpu-check.sh
mechanisms:                ## the rows of docs/mechanisms.md with the tests named after them, and how they ended
	@$(AGAIN) quick tests && .ci/mechanisms
mechanisms-mutate: mutation ## takes one mechanism out after the other and sees the tests of its row fail
	@.ci/mechanisms-mutate
setup:                     ## installs what is missing (Debian, as root), else prints it
	@.ci/setup
cuda-tools:                ## ptxas for the tests of generated GPU code
	@.ci/cuda-tools
lint:                      ## proves layers, first lines, widths; says what is wrong and where
	@.ci/lint
clean:                     ## removes build/
	rm -rf build
help:                      ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1|/p' Makefile api/install.mk docs/docs.mk | awk -F'|' \
	  '{ printf "  make %-18s %s\n", $$1, $$2 }'
	@echo "  Variables: CC, MIR_PREFIX=DIR (an installed MIR), PREFIX, LIBDIR (PREFIX/lib), DESTDIR, V=1 (show commands)"

include api/install.mk docs/docs.mk
