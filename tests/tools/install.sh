#!/bin/bash
# Tests `make install`: a C host and a C++ one, built with pkg-config alone, against the shared and the static library.
set -u
cd "$(dirname "$0")/../.." || exit 1
d=$PWD/build/check/install
rm -rf "$d"
mkdir -p "$d"
test() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$d/out" 2>&1; then echo "ok install/$name"; else echo "not ok install/$name: $(tail -n 1 "$d/out")"; fi
}
cat >"$d/host.c" <<'EOF'
#include <weft.h>
#include <stdio.h>
int main(void) {
  WeftVM *vm = weft_new(NULL);
  if (!vm) return 1;
  WeftStatus status = weft_eval(vm, "sum(arange(10)) == 45", "host", NULL);
  weft_free(vm);
  return status == WEFT_OK ? 0 : 1;
}
EOF
cp "$d/host.c" "$d/host.cc"
# A host whose own functions and variables have names that the library uses inside, with other signatures.
names="put check call buf_init buf_free buf_printf array_new list_new record_new text_new arena_init arena_free
  args_free args_int boxed control fail_at fail_memory expr lambda tail patch lexer_next parse_program ast_print
  scope_declare vm_return vm_call graph_new graph_node graph_free node_print log_at map_set map_init map_free
  names_free stack_free items_resize size_max size_add new_vec text_concat place_cut pool_run keep_trim
  code_free emit_jump bind_pattern let_statement read_quoted module_run builtin_find driver_open MIR_gen
  MIR_link _MIR_init asm_mov tape_sum"
inside=$(nm --defined-only build/libweft-internal.a 2>/dev/null | awk 'NF == 3 {print $3}' | sort -u)
used=0
{
  echo '#include <weft.h>'
  echo '#include <stdio.h>'
  i=0
  for name in $names; do
    grep -qx "$name" <<<"$inside" && used=$((used + 1))
    # every fifth is a variable
    if [ $((i % 5)) = 4 ]; then
      echo "int $name = 7;"
    else
      echo "double $name(double x, const char *why);"
      echo "double $name(double x, const char *why) { puts(why); return x + $i; }"
    fi
    i=$((i + 1))
  done
  cat <<'EOF2'
int main(void) {
  WeftVM *vm = weft_new(NULL);
  if (!vm) return 1;
  WeftStatus status = weft_eval(vm, "fn f(x) { let s = 0.0; for v in x { s += v * v }; s }; let t = 0.0\n"
    "for i in 0..400 { t += f(arange(100) + 0.5) + sum(map(v => v + 1, arange(50.0))) }\n"
    "t + len(split(\"a,b\", \",\"))", "host", NULL);
  weft_free(vm);
  return status == WEFT_OK && buf_init(1, "the host's own") == 4 && boxed == 7 ? 0 : 1;
}
EOF2
} >"$d/names.c"
prefix=$d/dest/usr
make -s install PREFIX=/usr DESTDIR="$d/dest" >"$d/out" 2>&1 && echo "ok install/files" ||
  echo "not ok install/files: $(tail -n 1 "$d/out")"
example() { # an example runs where it is installed
  local doc=$prefix/share/doc/weft
  [ -e "$doc/LICENSE" ] && [ -e "$doc/docs/guide/start.md" ] && [ -e "$doc/examples/embed/host.c" ] &&
    [ "$("$prefix/bin/weft" "$doc/examples/hello.weft" you)" = "hello, you" ]
}
test example-runs example
# As pkg-config would give it once the files are in place.
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$d/dest
flags() { pkg-config --cflags --libs "$@" weft; }
test pkg-config pkg-config --exists weft
# shellcheck disable=SC2046
test c-shared gcc -Wall -Wextra -Werror -pedantic -std=c11 "$d/host.c" $(flags) -o "$d/shared"
test runs-shared env LD_LIBRARY_PATH="$prefix/lib" "$d/shared"
# weft.h as every compiler at hand reads it, and as the standard alone has it.
for cc in gcc clang; do
  if ! command -v $cc >/dev/null; then
    echo "skip install/header-$cc: not installed"
    continue
  fi
  for std in c11 c17; do
    # shellcheck disable=SC2046
    test header-$cc-$std $cc -Wall -Wextra -Wconversion -Werror -pedantic -std=$std -fsyntax-only "$d/host.c" \
      $(pkg-config --cflags weft)
  done
done
# the examples of hosts say for themselves what they found
for source in examples/embed/*.c; do
  name=$(basename "$source" .c)
  # shellcheck disable=SC2046
  if gcc -Wall -Wextra -Werror -std=c11 "$source" $(flags) -o "$d/embed-$name" >"$d/out" 2>&1; then
    LD_LIBRARY_PATH=$prefix/lib "$d/embed-$name" || echo "not ok embed/$name-exit: status $?"
  else echo "not ok embed/$name-builds: $(tail -n 1 "$d/out")"; fi
done
if command -v g++ >/dev/null; then
  for std in c++17 c++20; do
    # shellcheck disable=SC2046
    test cxx-header-$std g++ -Wall -Wextra -Wconversion -Wold-style-cast -Werror -pedantic -std=$std \
      examples/embed/host.cpp $(flags) -o "$d/embed-$std"
  done
  LD_LIBRARY_PATH=$prefix/lib "$d/embed-c++17" || echo "not ok cxx/exit: status $?"
fi
# The manual page: it has each option and variable that the program knows, and no other.
words() { grep -oE -e '(--[a-z][a-z-]*|WEFT_[A-Z_]+)' | sort -u; }
manual() {
  diff <("$prefix/bin/weft" --help | words) <(sed 's/\\-/-/g' "$prefix/share/man/man1/weft.1" | words) &&
    grep -q "\"weft $("$prefix/bin/weft" --version | sed -n '1s/weft \([0-9.]*\).*/\1/p')\"" \
      "$prefix/share/man/man1/weft.1"
}
test manual-options manual
if command -v groff >/dev/null; then
  formatted() { [ -z "$(groff -man -Tutf8 -ww -z "$prefix/share/man/man1/weft.1" 2>&1)" ]; }
  test manual-formats formatted
fi
# Documents: what they point to inside of the tree is installed as well, but for the sources.
docs=$prefix/share/doc/weft
documents() {
  for f in README.md LICENSE docs/language.md docs/embedding.md examples/embed/filters.c examples/digits.weft; do
    cmp "$f" "$docs/$f" || return 1
  done
}
test documents documents
# pkg-config alone: with the archive in place of the shared library, and with no shared library at all.
# shellcheck disable=SC2046
test c-static gcc -Wall -Wextra -Werror -pedantic -std=c11 "$d/host.c" $(pkg-config --cflags weft) \
  "$prefix/lib/libweft.a" \
  $(pkg-config --static --libs-only-l weft | sed 's/-lweft//') -o "$d/static"
test runs-static "$d/static"
# shellcheck disable=SC2046
test c-fully-static gcc -static "$d/host.c" $(flags --static) -o "$d/full"
test runs-fully-static "$d/full"
# shellcheck disable=SC2046
test names-static gcc -Wall -Wextra -Werror -std=c11 "$d/names.c" $(pkg-config --cflags weft) "$prefix/lib/libweft.a" \
  -lm -ldl -pthread -o "$d/names-static"
if [ "$("$d/names-static" 2>&1)" = "the host's own" ] && "$d/names-static" >"$d/out"; then
  echo "ok install/names-run-static"
else echo "not ok install/names-run-static"; fi
# shellcheck disable=SC2046
test names-shared gcc -Wall -Wextra -Werror -std=c11 "$d/names.c" $(flags) -rdynamic -o "$d/names-shared"
test names-run-shared env LD_LIBRARY_PATH="$prefix/lib" "$d/names-shared"
if [ "$used" -ge 50 ]; then
  echo "ok install/names-are-used-inside"
else
  echo "not ok install/names-are-used-inside: $used of them"
fi
if command -v g++ >/dev/null; then
  # shellcheck disable=SC2046
  test cxx g++ -Wall -Wextra -Werror -pedantic -std=c++11 "$d/host.cc" $(flags) -o "$d/cxx"
else
  echo "skip install/cxx: no C++ compiler"
fi
only_ours() { [ -z "$(nm -D --defined-only "$prefix/lib/libweft.so" | awk '{print $3}' | grep -v '^weft_')" ]; }
test only-weft-symbols only_ours
# What is global in the archive is what weft.h declares, and so it is in the shared library.
archive_names() { nm --defined-only --extern-only "$prefix/lib/libweft.a" | awk 'NF == 3 {print $3}' | sort; }
only_ours_static() { [ -z "$(archive_names | grep -v '^weft_')" ]; }
test only-weft-symbols-static only_ours_static
same_names() { cmp <(archive_names) <(nm -D --defined-only "$prefix/lib/libweft.so" | awk '{print $3}' | sort); }
test same-symbols same_names
declared() {
  cmp <(archive_names) <(grep -o '^WEFT_API.*' api/weft.h | grep -o 'weft_[a-z0-9_]*(' | tr -d '(' | sort -u)
}
test all-of-weft.h declared
# The folder that it was built in is no part of it: the same source gives the same bytes anywhere.
no_paths() {
  ! grep -qaF -e "$PWD" -e "${CARGO_HOME:-${HOME:-/nowhere}/.cargo}" "$prefix/lib/libweft.a" "$prefix/lib/libweft.so" \
    "$prefix/bin/weft"
}
test no-paths-inside no_paths
small() {
  [ "$(stat -Lc %s "$prefix/lib/libweft.so")" -gt 0 ] && strip -o "$d/stripped" "$prefix/lib/libweft.so" &&
    [ "$(stat -c %s "$d/stripped")" -le 6291456 ]
}
if small; then echo "ok install/shared-below-6MiB"
else echo "not ok install/shared-below-6MiB: $(stat -c %s "$d/stripped") bytes stripped"; fi
test program "$prefix/bin/weft" --version
# Another install from the same build says where it is itself, and DESTDIR is no part of that.
make -s install PREFIX=/opt/weft LIBDIR=/opt/weft/lib64 DESTDIR="$d/dest2" >"$d/out" 2>&1
pc=$d/dest2/opt/weft/lib64/pkgconfig/weft.pc
second() {
  [ "$(sed -n 's/^prefix=//p' "$pc")" = /opt/weft ] &&
    [ "$(PKG_CONFIG_SYSROOT_DIR='' PKG_CONFIG_PATH=${pc%/*} pkg-config --variable=libdir weft)" = /opt/weft/lib64 ]
}
test second-prefix second
elsewhere() {
  make -s install PREFIX=/opt/weft LIBDIR=/srv/lib DESTDIR="$d/dest3" &&
    grep -qx 'libdir=/srv/lib' "$d/dest3/srv/lib/pkgconfig/weft.pc"
}
test libdir-elsewhere elsewhere
first() { [ "$(sed -n 's/^prefix=//p' "$prefix/lib/pkgconfig/weft.pc")" = /usr ]; }
test first-prefix first
nothing_more() {
  [ "$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --static --libs-only-l weft | tr -s ' ' | sed 's/ $//')" = \
    "-lweft -lm -ldl" ]
}
test static-libraries nothing_more
gone() {
  make -s uninstall PREFIX=/opt/weft LIBDIR=/opt/weft/lib64 DESTDIR="$d/dest2" && [ -z "$(find "$d/dest2" ! -type d)" ]
}
test uninstall gone
