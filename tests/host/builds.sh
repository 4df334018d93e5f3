#!/bin/sh
# The same bits from every build: gcc -O2 and -O3, with all instruction sets, numbers of threads and of streams that
# tests/train/same_bits_test.c goes through. Each program compares its digests with the kept ones. clang -O2 is what the preset
# asan builds, which has the same test, clang -O3 what zig builds for other systems (tests/systems/bits.py). That of gcc -O2 has
# CFLAGS of somebody who wants speed: they change no bits, and the program begins in the usual floating-point mode.
#   builds.sh <source folder> <folder for the builds> <jobs> [<same_bits_test of gcc -O3, unless that ran already>]
set -eu
source=$1 work=$2 jobs=$3 built=${4:-}
mkdir -p "$work"

# build COMPILER LEVEL [FLAG...]
build() {
  build=$work/$1-$2 compiler=$1 level=$2
  shift 2
  cmake -G Ninja -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$compiler" \
    -DCMAKE_C_FLAGS="$*" -DCMAKE_C_FLAGS_RELEASE="-$level -DNDEBUG" -DEXPHIL_SHARED=OFF -DEXPHIL_TOOLS=OFF >"$work/said" 2>&1 &&
    cmake --build "$build" --parallel "$jobs" --target same_bits_test >>"$work/said" 2>&1 ||
    { tail -n 30 "$work/said"; echo "FAILED: $compiler -$level $* does not build"; exit 1; }
  ! nm "$build/tests/same_bits_test" | grep -q set_fast_math || { echo "FAILED: $compiler -$level $* links crtfastmath.o"; exit 1; }
}

# digests NAME PROGRAM
digests() {
  "$2" >"$work/$1.said" 2>&1 && grep '^bits: ' "$work/$1.said" >"$work/$1.bits" ||
    { tail -n 30 "$work/$1.said"; echo "FAILED: $1 has other bits than the kept ones"; return 1; }
}

rm -f "$work"/*.bits
[ -z "$built" ] || digests gcc-O3 "$built" &
build gcc O2 -march=native -ffast-math
wait $! || exit 1
digests gcc-O2 "$work/gcc-O2/tests/same_bits_test"
cat "$work/gcc-O2.bits"
echo "$(find "$work" -maxdepth 1 -name '*.bits' | wc -l) builds, the kept bits"
