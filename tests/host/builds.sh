#!/bin/sh
# The same bits from every build: gcc and clang, -O2 and -O3, each with all instruction sets, numbers of threads and of
# streams that tests/train/same_bits_test.c goes through.
#   builds.sh <source folder> <folder for the builds> [jobs]
set -eu
source=$1 work=$2 jobs=${3:-2}
mkdir -p "$work"
for compiler in gcc clang; do
  for level in O2 O3; do
    build=$work/$compiler-$level
    cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=$compiler \
      -DCMAKE_C_FLAGS_RELEASE="-$level -DNDEBUG" -DEXPHIL_SHARED=OFF -DEXPHIL_TOOLS=OFF >"$work/said" 2>&1 &&
      cmake --build "$build" --parallel "$jobs" --target same_bits_test >>"$work/said" 2>&1 ||
      { tail -n 30 "$work/said"; echo "FAILED: $compiler -$level does not build"; exit 1; }
    "$build/tests/same_bits_test" >"$work/said" 2>&1 || { tail -n 30 "$work/said"; echo "FAILED: $compiler -$level"; exit 1; }
    grep '^bits: ' "$work/said" >"$work/$compiler-$level.bits"
  done
done
[ -s "$work/gcc-O3.bits" ] || { echo "FAILED: no digests"; exit 1; }
for other in gcc-O2 clang-O2 clang-O3; do
  diff "$work/gcc-O3.bits" "$work/$other.bits" || { echo "FAILED: other bits from $other than from gcc-O3"; exit 1; }
done
cat "$work/gcc-O3.bits"
echo "4 builds, the same bits"
