#!/bin/sh
# Installs into an empty folder and builds a program outside the tree against what is there: with find_package and
# with pkg-config, shared and static, in C and (header only) C++.
#   install.sh <build folder> <consumer folder> <C compiler> [flags for compiler and linker]
set -eu
build=$1
consumer=$2
cc=$3
flags=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

cmake --install "$build" --prefix "$prefix" >"$work/install.log"
libdir=$(dirname "$(find "$prefix" -name 'libexphil.so' | head -n 1)")
# What was found must not be the build's own.
cp -r "$consumer" "$work/consumer"

echo "== find_package"
if command -v ninja >/dev/null; then CMAKE_GENERATOR=Ninja; else CMAKE_GENERATOR="Unix Makefiles"; fi
export CMAKE_GENERATOR
cmake -S "$work/consumer" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
  -DCMAKE_C_FLAGS="$flags" >"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
cmake --build "$work/cmake" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
"$work/cmake/with_shared"
"$work/cmake/with_static"

echo "== pkg-config"
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
config() { pkg-config "$@" exphil; }
# shellcheck disable=SC2046,SC2086
$cc $flags $(config --cflags) "$work/consumer/consumer.c" -o "$work/shared" $(config --libs) -Wl,-rpath,"$libdir"
"$work/shared"
readelf -d "$work/shared" | grep -q 'NEEDED.*libexphil\.so\.[0-9]' || { echo "not linked to the soname"; exit 1; }
# shellcheck disable=SC2046,SC2086
$cc $flags $(config --cflags) "$work/consumer/consumer.c" -o "$work/static" \
  $(config --static --libs | sed "s|-lexphil|$libdir/libexphil.a|")
"$work/static"
if readelf -d "$work/static" | grep -q libexphil; then echo "the static program needs the shared library"; exit 1; fi

echo "== files"
(cd "$prefix" && find . -type f -o -type l | sort) | tee "$work/files"
for file in include/exphil/exphil.h include/exphil/slp.h include/exphil/games.h \
  include/exphil/notes.h include/exphil/examine.h include/exphil/learn.h '*/LICENSE.zstd' '*/libexphil.a' \
  '*/libexphil.so' '*/libexphil.so.[0-9]*' \
  '*/pkgconfig/exphil.pc' '*/cmake/exphil/exphilConfig.cmake' '*/cmake/exphil/exphilConfigVersion.cmake' '*/LICENSE'; do
  find "$prefix" -path "$prefix/$file" | grep -q . || { echo "$file is not installed"; exit 1; }
done
if [ -e "$build/libexphil_cuda.so" ]; then
  [ -e "$libdir/libexphil_cuda.so" ] || { echo "the plugin is not installed beside the library"; exit 1; }
fi
# Links of what is installed as documentation hold, to headers too, also after it was installed again.
cmake --install "$build" --prefix "$prefix" >"$work/install.log"
share=$(dirname "$(find "$prefix" -path '*/doc/exphil/README.md')")
find "$share" -name '*.md' >"$work/pages"
links=0 headers=0
while read -r file; do
  sed -n 's/](/\n](/gp' "$file" | sed -n 's/^](\([^)#]*\).*/\1/p' | grep -vE '^(https?:|mailto:|$)' >"$work/links" || true
  while read -r link; do
    [ -e "$(dirname "$file")/$link" ] || { echo "$file: $link is not installed"; exit 1; }
    links=$((links + 1))
    case $link in *include/*) headers=$((headers + 1)) ;; esac
  done <"$work/links"
done <"$work/pages"
[ "$headers" -ge 20 ] || { echo "of $links links only $headers lead to headers"; exit 1; }
echo "$links links hold, $headers to headers"
[ -e "$share/examples/minimal.c" ] || { echo "the example is not installed"; exit 1; }
if [ -e "$build/bin/exphil" ]; then
  "$prefix/bin/exphil" --version
  "$prefix/bin/exphil" slp --help >"$work/help"
  # The program finds the plugin of its own prefix, also by a link; EXPHIL_BACKEND_DIR goes before.
  unset EXPHIL_BACKEND_DIR
  cp "$build/tests/plugin-good/libexphil_cuda.so" "$libdir/libexphil_cuda.so"
  ln -s "$prefix/bin/exphil" "$work/link"
  for program in "$prefix/bin/exphil" "$work/link"; do
    "$program" devices >"$work/devices"
    grep -q '^cuda:1 .* fake device$' "$work/devices" || { cat "$work/devices"; echo "$program does not find its plugin"; exit 1; }
  done
  EXPHIL_BACKEND_DIR=$work "$prefix/bin/exphil" devices >"$work/devices"
  if grep -q 'fake device' "$work/devices"; then echo "EXPHIL_BACKEND_DIR does not go before the prefix"; exit 1; fi
  grep -qF "(EXPHIL_BACKEND_DIR names its folder): $work/libexphil_cuda.so: not there" "$work/devices" ||
    { cat "$work/devices"; echo "the failure does not name EXPHIL_BACKEND_DIR"; exit 1; }
fi
