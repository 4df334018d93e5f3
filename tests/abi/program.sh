#!/bin/sh
# A program of an earlier release uses every struct that grows, runs to the end on the library of today and on one whose structs
# have grown, and gets the same bits from both.
#   program.sh <source folder> <release> <program> <libexphil.so> <grown libexphil.so>
set -eu
source=$1 release=$2 program=$3 today=$4 grown=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$source/tools/abi" used "$source/tests/abi/$release" "$source"/tests/abi/old/*.c

run() {
  LD_LIBRARY_PATH=$(dirname "$1") "$program" >"$work/$2" 2>"$work/$2.said" ||
    { cat "$work/$2" "$work/$2.said"; echo "FAILED: a program of $release on $1"; exit 1; }
  tail -n 1 "$work/$2.said"
}
run "$today" today
run "$grown" grown
if cmp -s "$work/today.said" "$work/grown.said"; then echo "FAILED: $grown has not grown"; exit 1; fi
if ! diff "$work/today" "$work/grown"; then echo "FAILED: other bits from $grown"; exit 1; fi
echo "$(wc -l <"$work/today") digests agree"
