#!/bin/sh
# The policies of the tree, made anew by the commands of their page: the same bytes.
# The environment is that of every host suite.
set -eu
mkdir made
EXPHIL=$EXPHIL_PREFIX/bin/exphil "$EXPHIL_SOURCE/policies/make" made
for file in "$EXPHIL_SOURCE"/policies/*.safetensors; do
  cmp "$file" "made/$(basename "$file")" || { echo "FAILED: policies/make makes another $(basename "$file")"; exit 1; }
done
ls -l made
