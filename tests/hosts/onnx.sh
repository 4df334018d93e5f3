#!/bin/sh
# Policies of every kind, exported by the installed library and played in ONNX Runtime by doc/onnx.md alone: the same logits,
# values and actions. EXPHIL_ONNX_FRAMES (200) frames of three streams, EXPHIL_ONNX_LEVELS (all) of optimization.
set -eu
python=${EXPHIL_ONNX_PYTHON:-$EXPHIL_SOURCE/build/onnx/bin/python3}
"$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null ||
  { echo "SKIPPED: $python has no onnx and onnxruntime (tools/deps hosts brings them from PyPI)"; exit 0; }
export PYTHONDONTWRITEBYTECODE=1
check=$EXPHIL_SOURCE/tests/hosts/onnx_check.py
mkdir files wrong
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror -O2 "$EXPHIL_SOURCE/tests/hosts/onnx_policies.c" -o onnx_policies \
  $(pkg-config --cflags --libs exphil) -lm
./onnx_policies files "${EXPHIL_ONNX_FRAMES:-200}"
# shellcheck disable=SC2086
"$python" "$check" files ${EXPHIL_ONNX_LEVELS:-all}
# Another policy's file must be found out.
cp files/mlp.play wrong
cp files/ffn.onnx wrong/mlp.onnx
if "$python" "$check" wrong >wrong.log 2>&1 || ! grep -q WRONG wrong.log; then
  echo "another policy passed"
  cat wrong.log
  exit 1
fi
