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
prefix=$d/dest/usr
make -s install PREFIX=/usr DESTDIR="$d/dest" >"$d/out" 2>&1 && echo "ok install/files" || echo "not ok install/files: $(tail -n 1 "$d/out")"
# As pkg-config would give it once the files are in place.
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$d/dest
flags() { pkg-config --cflags --libs "$@" weft; }
test pkg-config pkg-config --exists weft
# shellcheck disable=SC2046
test c-shared gcc -Wall -Wextra -Werror -pedantic -std=c11 "$d/host.c" $(flags) -o "$d/shared"
test runs-shared env LD_LIBRARY_PATH="$prefix/lib" "$d/shared"
# the examples of hosts say for themselves what they found
for source in examples/embed/*.c; do
  name=$(basename "$source" .c)
  # shellcheck disable=SC2046
  if gcc -Wall -Wextra -Werror -std=c11 "$source" $(flags) -o "$d/embed-$name" >"$d/out" 2>&1; then
    LD_LIBRARY_PATH=$prefix/lib "$d/embed-$name" || echo "not ok embed/$name-exit: status $?"
  else echo "not ok embed/$name-builds: $(tail -n 1 "$d/out")"; fi
done
# shellcheck disable=SC2046
test c-static gcc -Wall -Wextra -Werror -pedantic -std=c11 "$d/host.c" $(pkg-config --cflags weft) "$prefix/lib/libweft.a" \
  $(pkg-config --static --libs-only-l weft | sed 's/-lweft//') -o "$d/static"
test runs-static "$d/static"
if command -v g++ >/dev/null; then
  # shellcheck disable=SC2046
  test cxx g++ -Wall -Wextra -Werror -pedantic -std=c++11 "$d/host.cc" $(flags) -o "$d/cxx"
else
  echo "skip install/cxx: no C++ compiler"
fi
only_ours() { [ -z "$(nm -D --defined-only "$prefix/lib/libweft.so" | awk '{print $3}' | grep -v '^weft_')" ]; }
test only-weft-symbols only_ours
small() { [ "$(stat -Lc %s "$prefix/lib/libweft.so")" -gt 0 ] && strip -o "$d/stripped" "$prefix/lib/libweft.so" && [ "$(stat -c %s "$d/stripped")" -le 6291456 ]; }
if small; then echo "ok install/shared-below-6MiB"
else echo "not ok install/shared-below-6MiB: $(stat -c %s "$d/stripped") bytes stripped"; fi
test program "$prefix/bin/weft" --version
