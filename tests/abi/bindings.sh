#!/bin/sh
# The bindings repeat the headers as `tools/abi bindings` writes it, and one run of it brings a new field to every language.
#   bindings.sh <source folder>
set -eu
source=$1
"$source/tools/abi" bindings --check
languages="elixir node luajit python csharp web"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tools"
cp -r "$source/include" "$source/bindings" "$work"
cp "$source/tools/abi" "$source"/tools/abi_*.py "$work/tools"
sed -i 's/^} exphil_model_info;/    int64_t zz_planted;\n&/' "$work/include/exphil/exphil.h"
! cmp -s "$source/include/exphil/exphil.h" "$work/include/exphil/exphil.h" ||
  { echo "FAILED: the header has no exphil_model_info"; exit 1; }
if "$work/tools/abi" bindings --check >"$work/out" 2>&1; then echo "FAILED: a new field went unnoticed"; exit 1; fi
for language in $languages; do
  grep -q "^bindings/$language/" "$work/out" || { echo "FAILED: $language lacks the new field, unnoticed:"; cat "$work/out"; exit 1; }
done
"$work/tools/abi" bindings
"$work/tools/abi" bindings --check
for language in $languages; do
  grep -rqiE "zz_?planted" "$work/bindings/$language" || { echo "FAILED: the new field did not reach $language"; exit 1; }
done
