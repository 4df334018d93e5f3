#!/bin/sh
# The same bits from every build: gcc and clang, -O2 and -O3, each with all instruction sets, numbers of threads and of
# streams that tests/train/same_bits_test.c goes through.
#   builds.sh <source folder> <folder for the builds> <same_bits_test of gcc -O3> [jobs]
set -eu
source=$1 work=$2 built=$3 jobs=${4:-2}
mkdir -p "$work"

# build COMPILER LEVEL
build() {
  build=$work/$1-$2
  cmake -G Ninja -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$1" \
    -DCMAKE_C_FLAGS_RELEASE="-$2 -DNDEBUG" -DEXPHIL_SHARED=OFF -DEXPHIL_TOOLS=OFF >"$work/said" 2>&1 &&
    cmake --build "$build" --parallel "$jobs" --target same_bits_test >>"$work/said" 2>&1 ||
    { tail -n 30 "$work/said"; echo "FAILED: $1 -$2 does not build"; exit 1; }
}

# digests NAME PROGRAM: into NAME.bits
digests() {
  "$2" >"$work/$1.said" 2>&1 && grep '^bits: ' "$work/$1.said" >"$work/$1.bits" ||
    { tail -n 30 "$work/$1.said"; echo "FAILED: $1 gives no digests"; return 1; }
}

rm -f "$work"/*.bits
digests gcc-O3 "$built" &
for other in "gcc O2" "clang O2" "clang O3"; do
  # shellcheck disable=SC2086
  build $other
  wait $! || exit 1
  name=$(echo "$other" | tr ' ' -)
  digests "$name" "$work/$name/tests/same_bits_test" &
done
wait $! || exit 1
for other in gcc-O2 clang-O2 clang-O3; do
  diff "$work/gcc-O3.bits" "$work/$other.bits" || { echo "FAILED: other bits from $other than from gcc-O3"; exit 1; }
done
cat "$work/gcc-O3.bits"
echo "4 builds, the same bits"
