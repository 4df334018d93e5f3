#!/bin/sh
# The built library has the interface of tests/abi/libexphil.abi; the headers still have all that the newest kept ones had, in
# the same words, and lib/abi/assertions.c is made of those.
#   baseline.sh <source folder> <libexphil.so, with debug information>
set -eu
source=$1 library=$2
"$source/tools/abi" kept
command -v abidiff >/dev/null || { echo "SKIPPED: no abidiff (Debian: abigail-tools)"; exit 0; }
"$source/tools/abi" check "$library"
