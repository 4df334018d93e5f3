#!/bin/sh
# The built library has the interface of tests/abi/libexphil.abi, and lib/released.c holds what the newest kept headers say.
#   baseline.sh <source folder> <libexphil.so, with debug information>
set -eu
source=$1 library=$2
newest=$(cd "$source/tests/abi" && ls -d [0-9]*.[0-9]*.[0-9]* | sort -V | tail -n 1)
named=$(sed -n 's/.*The interface of release \([0-9.]*\),.*/\1/p' "$source/lib/released.c")
[ "$named" = "$newest" ] || { echo "lib/released.c is of release $named, tests/abi has $newest"; exit 1; }
command -v abidiff >/dev/null || { echo "SKIPPED: no abidiff (Debian: abigail-tools)"; exit 0; }
"$source/tools/abi" check "$library"
