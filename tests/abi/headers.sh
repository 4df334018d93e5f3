#!/bin/sh
# Each public header compiles alone, in every language that hosts use, without a warning and without padding that the
# compiler chose (a zero-tail check over padding would not be sound).
#   headers.sh <include folder>
set -u
include=$1
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
    printf '#include <exphil/%s>\nextern int exphil_header_alone;\n' "$name" >"$file"
    tried=$((tried + 1))
    "$compiler" -std="$language" -I"$include" -fsyntax-only -Wall -Wextra -Wpedantic -Wpadded -Werror "$@" "$file" ||
      { echo "FAILED: $name as $language with $compiler"; failed=1; }
  done
}

for compiler in gcc clang; do
  check $compiler c99 -Wconversion -Wsign-conversion -Wstrict-prototypes
  check $compiler c11 -Wconversion -Wsign-conversion -Wstrict-prototypes
done
for compiler in g++ clang++; do
  check $compiler c++11 -Wconversion
  check $compiler c++17 -Wconversion -Wold-style-cast
done
[ "$tried" -gt 0 ] || { echo "no compiler found"; exit 1; }
[ "$failed" -eq 0 ] && echo "$tried compilations"
exit "$failed"
