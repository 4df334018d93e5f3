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

# The bot of examples/onnx, as its README says: as many hits as the same policy in the library.
example=$EXPHIL_SOURCE/examples/onnx
mkdir bot
cp "$example/drill_bot.py" bot
printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >python3
chmod +x python3
sed -n '/^```sh$/,/^```$/p' "$example/README.md" | sed '/^```/d' >bot/lines
[ "$(wc -l <bot/lines)" -ge 5 ] || { echo "the README has no lines to run"; exit 1; }
(cd bot && PATH=$PWD/..:$PATH sh -e lines >../bot.log 2>&1) || { cat bot.log; exit 1; }
# hits_of FRAMES: what the bot said; the_same WEIGHTS FRAMES OFF: that is what the library lands, or so many off
hits_of() { sed -n "s/^\([0-9]*\) hits in $1 frames.*/\1/p" bot.log; }
the_same() {
  wanted=$(exphil drill --seed 2 --frames "$2" --json "$1" | sed 's/.*"hits":\([0-9]*\).*/\1/')
  echo "$1: the bot landed $(hits_of "$2") hits in $2 frames, the library $wanted"
  [ $(($(hits_of "$2") - wanted)) -le "$3" ] && [ $((wanted - $(hits_of "$2"))) -le "$3" ] && [ "$wanted" -gt $(($2 / 30)) ] ||
    { cat bot.log; exit 1; }
}
the_same bot/fox.safetensors 3600 0
exphil quantize --out bot/fox8.safetensors bot/fox.safetensors >quantize.log
exphil export --int8 --onnx bot/fox8.onnx bot/fox.safetensors >export.log
# shellcheck disable=SC2094 # a pipe is no file
exphil drill --seed 2 --frames 600 --pipe <bot/pads 2>drill.log | "$python" bot/drill_bot.py bot/fox8.onnx 2>bot.log >bot/pads
the_same bot/fox8.safetensors 600 5 # a level that is rounded the other way may change an action

# A policy whose heads have layers, and each button a head of its own.
exphil train --port 1 --init files/untrained.safetensors --rate 0.01 --updates 400 --out bot/layers.safetensors \
  bot/drill.slp >train.log 2>&1
exphil export --onnx bot/layers.onnx bot/layers.safetensors >export.log
# shellcheck disable=SC2094 # a pipe is no file
exphil drill --seed 2 --frames 1200 --pipe <bot/pads 2>drill.log | "$python" bot/drill_bot.py bot/layers.onnx 2>bot.log >bot/pads
the_same bot/layers.safetensors 1200 0
