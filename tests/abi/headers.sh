#!/bin/sh
# Each public header compiles alone, in every language that hosts use, without a warning and without padding that the
# compiler chose (a zero-tail check over padding would not be sound). What was released, lib/abi/assertions.c, holds on other systems.
#   headers.sh <include folder> <lib folder>
set -u
include=$1 lib=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
tried=0

check() {
  compiler=$1
  language=$2
  shift 2
  command -v "$compiler" >/dev/null || { echo "SKIPPED: no $compiler"; return; }
  for header in "$include"/exphil/*.h; do
    name=${header##*/}
    case $language in c++*) file=$work/alone.cc ;; *) file=$work/alone.c ;; esac
    # clang lays a struct out, and so finds its padding, when its size is requested.
    {
      printf '#include <exphil/%s>\nextern int exphil_header_alone;\n' "$name"
      sed -nE 's/^typedef struct ([a-z_0-9]+) \{.*/extern char size_of_\1[sizeof(\1)];/p' "$header"
    } >"$file"
    tried=$((tried + 1))
    "$compiler" -std="$language" -I"$include" -fsyntax-only -Wall -Wextra -Wpedantic -Wpadded -Werror "$@" "$file" ||
      { echo "FAILED: $name as $language with $compiler"; failed=1; }
    found_padding
  done
}

# The same file with a byte at the end of each struct, which is followed by padding then, must not compile.
found_padding() {
  [ -e "$work/padded/exphil/$name" ] || {
    mkdir -p "$work/padded/exphil"
    sed -E 's/^\} (exphil_[a-z_0-9]+);/    char planted;\n} \1;/' "$header" >"$work/padded/exphil/$name"
  }
  "$compiler" -std="$language" -I"$work/padded" -I"$include" -fsyntax-only -Wpadded "$file" 2>"$work/warnings"
  structs=$(grep -c '^typedef struct [a-z_0-9]* {' "$header")
  warned=$(grep -c "/exphil/$name:.*Wpadded" "$work/warnings")
  [ "$warned" -ge "$structs" ] ||
    { echo "FAILED: $compiler found $warned paddings in $structs structs of $name as $language"; failed=1; }
}

for compiler in gcc clang; do
  check "$compiler" c99 -Wconversion -Wsign-conversion -Wstrict-prototypes
  check "$compiler" c11 -Wconversion -Wsign-conversion -Wstrict-prototypes
done
for compiler in g++ clang++; do
  check "$compiler" c++11 -Wconversion
  check "$compiler" c++17 -Wconversion -Wold-style-cast
done
# Windows has another long, and enums of another kind; where pointers have 4 bytes nothing is asserted.
if command -v clang >/dev/null; then
  for target in x86_64-pc-windows-msvc x86_64-pc-windows-gnu aarch64-linux-gnu arm64-apple-macosx i686-linux-gnu; do
    tried=$((tried + 1))
    clang --target=$target -std=c11 -ffreestanding -I"$include" -I"$lib" -fsyntax-only -Wall -Wextra -Werror "$lib/abi/assertions.c" ||
      { echo "FAILED: lib/abi/assertions.c on $target"; failed=1; }
  done
fi
[ "$tried" -gt 0 ] || { echo "no compiler found"; exit 1; }
[ "$failed" -eq 0 ] && echo "$tried compilations"
exit "$failed"
