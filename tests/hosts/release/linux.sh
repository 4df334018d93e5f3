#!/bin/sh
# The archives for Linux (tools/packages linux), unpacked into a folder of another name: they ask for glibc 2.17 and nothing else, and
# name no folder of their build. The program learns and plays with the bits of this machine, that for 64-bit ARM under qemu; a program
# that gcc links by exphil.pc, with the library or its static twin, and one that CMake finds it for, train and play.
#   linux.sh [FOLDER]      what release/twice made, or the packages there
set -eu
fail() { echo "linux: $*" >&2; exit 1; }
out=$(realpath "${1:-$EXPHIL_BUILD/hosts/release.packages}")
learn() { # PROGRAM...: in the folder
  "$@" drill --frames 1200 --out drill.slp
  "$@" train --quiet --port 1 --no-previous-action --blocks gru --hidden 16 --rate 0.01 --updates 20 --threads 1 \
    --out drill.safetensors drill.slp
  "$@" drill --seed 2 drill.safetensors | sed -n 's/^.* \([0-9]* hits\).*/\1/p' >score
  [ -s score ]
}
mkdir here
(cd here && learn "$EXPHIL_PREFIX/bin/exphil") >log 2>&1 || { cat log; fail "here"; }
for machine in x86_64 aarch64; do
  tar -xzf "$out"/exphil-*-linux-$machine.tar.gz
  mv exphil-*-linux-$machine "a $machine"
  top="$PWD/a $machine"
  for file in bin/exphil lib/libexphil.so.0 lib/libexphil.so lib/libexphil.a lib/pkgconfig/exphil.pc include/exphil/exphil.h \
    LICENSE.txt LICENSE.zstd.txt LICENSE.jansson.txt; do
    [ -s "$top/$file" ] || fail "$machine: there is no $file"
  done
  "$EXPHIL_SOURCE/tools/symbols" "$top/lib/libexphil.so.0" || fail "$machine: the library exports something else"
  for file in bin/exphil lib/libexphil.so.0; do
    readelf -dW "$top/$file" | sed -n 's/^.*(NEEDED).*\[\(.*\)\]/\1/p' >needs
    if grep -vE '^(lib(c|m|dl|pthread|rt)[.]so[.][0-9]|ld-linux[a-z0-9_-]*[.]so[.][0-9]|libexphil[.]so[.]0)$' needs; then
      fail "$machine: $file needs what not every system has"
    fi
    newest=$(readelf -VW "$top/$file" | grep -oE 'GLIBC_2[.][0-9]+' | sort -V | tail -n 1)
    [ "$(printf '%s\n' GLIBC_2.17 "$newest" | sort -V | tail -n 1)" = GLIBC_2.17 ] || fail "$machine: $file wants $newest"
  done
  if grep -rlaF -e "$EXPHIL_SOURCE" "$top"; then fail "$machine: these name a folder of the build"; fi
  run=
  [ $machine = "$(uname -m)" ] || run="$EXPHIL_SOURCE/tools/systems run $machine-manylinux"
  case $machine in
    aarch64) [ -z "$run" ] || command -v qemu-aarch64-static >/dev/null || { echo "SKIPPED in part: no qemu for ARM"; continue; } ;;
    *) [ -z "$run" ] || continue ;;
  esac
  mkdir $machine
  # shellcheck disable=SC2086
  (cd $machine && learn $run "$top/bin/exphil") >log 2>&1 || { cat log; fail "the program for $machine"; }
  for file in drill.slp drill.safetensors score; do cmp here/$file $machine/$file || fail "$machine: another $file"; done
done
[ "$(uname -m)" = x86_64 ] || exit 0
top="$PWD/a x86_64"
unset PKG_CONFIG_PATH LD_LIBRARY_PATH
export PKG_CONFIG_LIBDIR="$top/lib/pkgconfig"
pkg-config --cflags --libs exphil | xargs gcc -O2 -o rows "$EXPHIL_SOURCE/examples/rows.c" || fail "gcc does not link"
LD_LIBRARY_PATH="$top/lib" ./rows >rows.said || fail "the program does not run"
gcc -O2 "$EXPHIL_SOURCE/examples/rows.c" -I"$top/include" "$top/lib/libexphil.a" -lm -pthread -ldl -o static ||
  fail "gcc does not link the static library"
./static >static.said || fail "the program with the static library does not run"
mkdir project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(host C)
find_package(exphil 0.2 REQUIRED)
add_executable(host ${ROWS})
target_link_libraries(host PRIVATE exphil::exphil)
END
cmake -S project -B project/build -DCMAKE_PREFIX_PATH="$top" -DROWS="$EXPHIL_SOURCE/examples/rows.c" >log 2>&1 &&
  cmake --build project/build >>log 2>&1 || { cat log; fail "CMake does not find it"; }
project/build/host >host.said || fail "the program that CMake built does not run"
for said in static.said host.said; do cmp rows.said $said || fail "two programs learn different things"; done
grep -q '^policy: *score *[1-9]' rows.said || { cat rows.said; fail "it has not learnt"; }
echo "linux: programs of both archives learn and play as here"
