# Builds Weft: libweft (static and shared), the program `weft`, its tests. `make help` lists the targets.
# Everything made lies under build/; build/asan holds the same tree under AddressSanitizer and UBSan.

B        ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
MIR_PREFIX ?=
VERSION  := 0.1.0
SOVERSION := 0

ifeq ($(origin CC),default)
CC       := gcc
endif
AR       ?= ar
WERROR   ?=
OPT      ?= -O2 -g
WARN     := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
CFLAGS   ?=
ALL_CFLAGS = -std=gnu11 $(OPT) $(WARN) $(WERROR) -ffp-contract=off -fno-math-errno -fvisibility=hidden -fPIC \
             -pthread -I. -I$(GEN_DIR) $(CFLAGS)
LDFLAGS  ?=
V        ?= 0
Q        := $(if $(filter 1,$(V)),,@)

ROOMS    := parser lang vm guards tracer hop jit gpu stdlib api
GEN_DIR  := build/gen
MIR_DIR  := build/mir

# A file named *_template.c is included by others and not compiled by itself.
LIB_SRC  := $(filter-out %_template.c,$(wildcard $(addsuffix /*.c,$(ROOMS))))
REPL_SRC := $(wildcard repl/*.c)
UNIT_SRC := $(wildcard tests/unit/test_*.c)

# ---- goals that only hand on to another make, so that set-up can come before the build ------------

OUTER    := check check-all run bench clean help setup lint cuda-tools asan gpu-check
INNER    := $(filter-out $(OUTER),$(or $(MAKECMDGOALS),all))

.DEFAULT_GOAL := all
.PHONY: all quick lib test install $(OUTER) check-built check-all-built asan-build
.DELETE_ON_ERROR:
.SUFFIXES:

# ---- generated sources ----------------------------------------------------------------------------

# lang/math.loops → build/gen/math_*.c, by a host tool made of the loop IR alone. The list of what it wrote is
# itself a makefile, so make reads it again once it is made.
GEN_SRC  :=
ifneq ($(wildcard jit/host/gen_math.c),)
ifneq ($(INNER),)
include $(GEN_DIR)/math.mk
endif
HOST_SRC := jit/host/gen_math.c $(wildcard parser/base.c jit/loops_*.c jit/loops.c)
HOST_OBJ := $(HOST_SRC:%.c=build/host/%.o)

build/host/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O1 -g $(WARN) $(WERROR) -ffp-contract=off -fno-math-errno -I. -MMD -MP -c $< -o $@

build/host/gen_math: $(HOST_OBJ)
	$(Q)$(CC) $(HOST_OBJ) -lm -o $@

$(GEN_DIR)/math.mk: build/host/gen_math lang/math.loops
	@mkdir -p $(GEN_DIR)
	$(Q)rm -f $(GEN_DIR)/math_*
	$(Q)build/host/gen_math lang/math.loops $(GEN_DIR)
	@cd $(GEN_DIR) && echo "GEN_SRC += $$(ls math_*.c | sed 's|^|$(GEN_DIR)/|' | tr '\n' ' ')" >math.mk
$(GEN_DIR)/math_%.c: $(GEN_DIR)/math.mk ;
-include $(HOST_OBJ:.o=.d)
endif

# ---- objects --------------------------------------------------------------------------------------

LIB_OBJ  := $(LIB_SRC:%.c=$(B)/obj/%.o) $(GEN_SRC:build/gen/%.c=$(B)/obj/gen/%.o)
REPL_OBJ := $(REPL_SRC:%.c=$(B)/obj/%.o)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(B)/tests/%)

# Only these files include mir.h, whose structs hold a long double that MIR builds with 64 bits.
MIR_USERS := $(strip $(filter jit/mir_%.c,$(LIB_SRC)) $(wildcard tests/unit/test_mir*.c))
MIR_LIB  := $(if $(MIR_USERS),$(MIR_DIR)/libmir.a)
MIR_OBJ  := $(MIR_USERS:%.c=$(B)/obj/%.o)
$(MIR_OBJ): FILE_CFLAGS += -mlong-double-64 -isystem $(MIR_DIR)/include
$(MIR_OBJ): | $(MIR_DIR)/libmir.a

# Kernels: compiled for vectorisation; trapping is never used. One build per instruction set by file name.
$(B)/obj/stdlib/kernel%.o: FILE_CFLAGS += -O3 -fno-trapping-math
$(B)/obj/gen/%.o: FILE_CFLAGS += -O3 -fno-trapping-math
$(B)/obj/%_avx2.o: FILE_CFLAGS += -mavx2 -mfma
$(B)/obj/%_avx512.o: FILE_CFLAGS += -mavx2 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512

$(B)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(FILE_CFLAGS) -MMD -MP -c $< -o $@

$(B)/obj/gen/%.o: build/gen/%.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(FILE_CFLAGS) -MMD -MP -c $< -o $@

-include $(LIB_OBJ:.o=.d) $(REPL_OBJ:.o=.d) $(wildcard $(B)/obj/tests/*.d $(B)/obj/tests/*/*.d)

# ---- library, program, unit tests -----------------------------------------------------------------

ZYDIS    := $(if $(wildcard /usr/include/Zydis/Zydis.h /usr/local/include/Zydis/Zydis.h),-lZydis)
LIBS     := -Wl,--as-needed $(ZYDIS) -lz -lm -ldl -pthread
SO_NAME  := libweft.so.$(SOVERSION)
SO_FILE  := libweft.so.$(VERSION)

all: lib $(if $(REPL_SRC),$(B)/weft)
lib: $(B)/libweft.a $(if $(wildcard api/weft.h),$(B)/$(SO_FILE))
quick: WERROR := -Werror
quick: all $(UNIT_BIN)

# The archive holds MIR's objects too: a host links one file.
$(B)/libweft.a: $(LIB_OBJ) $(MIR_LIB) $(B)/members
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) qcs $@ $(LIB_OBJ) $(if $(MIR_LIB),$(MIR_DIR)/obj/*.o)

# A source that went away must leave the archive too.
LIST     := $(strip $(LIB_OBJ) $(MIR_LIB))
ifneq ($(INNER),)
ifneq ($(LIST),$(strip $(file <$(B)/members)))
$(shell mkdir -p $(B))
$(file >$(B)/members,$(LIST))
endif
endif
$(B)/members: ;

$(B)/libweft.map: Makefile
	@mkdir -p $(@D)
	@echo '{ global: weft_*; local: *; };' >$@

$(B)/$(SO_FILE): $(LIB_OBJ) $(MIR_LIB) $(B)/libweft.map $(B)/members
	$(Q)$(CC) -shared -Wl,-soname,$(SO_NAME) -Wl,--version-script,$(B)/libweft.map -Wl,--no-undefined $(LDFLAGS) \
	  $(LIB_OBJ) $(MIR_LIB) $(LIBS) -o $@
	@ln -sf $(SO_FILE) $(B)/$(SO_NAME)
	@ln -sf $(SO_NAME) $(B)/libweft.so

$(B)/weft: $(REPL_OBJ) $(B)/libweft.a
	$(Q)$(CC) $(LDFLAGS) $(REPL_OBJ) $(B)/libweft.a $(LIBS) -lreadline -o $@

$(B)/tests/test_%: $(B)/obj/tests/unit/test_%.o $(B)/libweft.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $< $(B)/libweft.a $(LIBS) -lcmocka -o $@
.PRECIOUS: $(B)/obj/%.o

$(MIR_DIR)/libmir.a: jit/mir/build.sh jit/mir/Cargo.toml
	$(Q)CC="$(CC)" jit/mir/build.sh $(MIR_DIR) $(MIR_PREFIX)

asan-build asan: export ASAN_OPTIONS ?= detect_leaks=1
asan:
	$(Q)$(MAKE) --no-print-directory B=build/asan OPT="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined" \
	  LDFLAGS="-fsanitize=address,undefined" WERROR=$(WERROR) quick

# ---- the rest -------------------------------------------------------------------------------------

clean:
	rm -rf build

help:
	@grep -hE '^## ' $(MAKEFILE_LIST) | sed 's/^## /  /'

## make            the library and the program, in build/
## make quick      the same with the unit tests, warnings are errors; runs nothing
## make clean      removes build/
