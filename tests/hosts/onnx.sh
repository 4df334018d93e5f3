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

# Rows of the example by the layout in the file, in every layout: those of the library.
mkdir rows
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror -O2 "$EXPHIL_SOURCE/tests/hosts/onnx_rows.c" -o onnx_rows \
  $(pkg-config --cflags --libs exphil) -lm
./onnx_rows rows 2000
"$python" "$EXPHIL_SOURCE/tests/hosts/onnx_rows.py" "$EXPHIL_SOURCE/examples/onnx" rows

# The bot of examples/onnx, as its README says, twice in one folder: as many hits as the same policy in the library.
example=$EXPHIL_SOURCE/examples/onnx
mkdir -p examples/onnx
ln -s examples/onnx bot
cp "$example/drill_bot.py" bot
printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >python3
chmod +x python3
sed -n '/^```sh$/,/^```$/p' "$example/README.md" | sed '/^```/d' >lines
[ "$(wc -l <lines)" -ge 5 ] || { echo "the README has no lines to run"; exit 1; }
for run in first second; do
  PATH=$PWD:$PATH sh -e lines >bot.log 2>&1 || { echo "the $run time:"; cat bot.log; exit 1; }
done
[ ! -e bot/pads ] || { echo "the README's lines leave pads behind"; exit 1; }
mkfifo bot/pads
# hits_of FRAMES: what the bot said; the_same WEIGHTS FRAMES OFF OPTION...: what the library lands, or so many off
hits_of() { sed -n "s/^\([0-9]*\) hits in $1 frames.*/\1/p" bot.log; }
the_same() {
  weights=$1 frames=$2 off=$3
  shift 3
  wanted=$(exphil drill --seed 2 --frames "$frames" --json "$@" "$weights" | sed 's/.*"hits":\([0-9]*\).*/\1/')
  echo "$weights: the bot landed $(hits_of "$frames") hits in $frames frames, the library $wanted"
  [ $(($(hits_of "$frames") - wanted)) -le "$off" ] && [ $((wanted - $(hits_of "$frames"))) -le "$off" ] &&
    [ "$wanted" -gt $((frames / 100)) ] || { cat bot.log; exit 1; }
}
the_same bot/fox.safetensors 3600 0
exphil quantize --out bot/fox8.safetensors bot/fox.safetensors >quantize.log
exphil export --int8 --onnx bot/fox8.onnx bot/fox.safetensors >export.log
# shellcheck disable=SC2094 # a pipe is no file
exphil drill --seed 2 --frames 600 --pipe <bot/pads 2>drill.log | "$python" bot/drill_bot.py bot/fox8.onnx 2>bot.log >bot/pads
the_same bot/fox8.safetensors 600 5 # a level that is rounded the other way may change an action

# What the bot cannot play it says in a line.
# says TEXT ARGUMENT...: of the bot, at once and with status 2
says() {
  text=$1 status=0
  shift
  "$python" bot/drill_bot.py "$@" </dev/null >said 2>&1 || status=$?
  [ "$status" -eq 2 ] && [ "$(wc -l <said)" -eq 1 ] && grep -qF -- "$text" said ||
    { echo "drill_bot.py $* ended with $status:"; cat said; exit 1; }
}
says "No such file" none.onnx
says "ONNX Runtime does not take it" bot/drill.slp
says "this policy wants --delay 0, not 2" --delay 2 bot/fox.onnx
says "--play-as wants nothing" --play-as player=1 bot/fox.onnx
says "layout melee2, and the policy wants slippi" files/slippi_like.onnx --delay 3

# A policy of several delays with conditions, told which: what the library plays.
cat >table.csv <<EOF
file,port,player
drill.slp,1,2
EOF
exphil train --port 1 --no-previous-action --blocks gru --hidden 64 --rate 0.01 --updates 400 --delay 0,2 --conditions table.csv \
  --out bot/told.safetensors bot/drill.slp >train.log 2>&1
exphil export --onnx bot/told.onnx bot/told.safetensors >export.log
says "this policy wants --delay 0 or 2" bot/told.onnx
says "this policy wants --delay 0 or 2, not 1" --delay 1 bot/told.onnx
says "--play-as wants player=0..2, not player=3" --delay 2 --play-as player=3 bot/told.onnx
# shellcheck disable=SC2094 # a pipe is no file
exphil drill --seed 2 --frames 900 --pipe <bot/pads 2>drill.log |
  "$python" bot/drill_bot.py --delay 2 --play-as player=2 bot/told.onnx 2>bot.log >bot/pads
the_same bot/told.safetensors 900 0 --delay 2 --play-as player=2

# A policy whose heads have layers, and each button a head of its own.
exphil train --port 1 --init files/untrained.safetensors --rate 0.01 --updates 400 --out bot/layers.safetensors \
  bot/drill.slp >train.log 2>&1
exphil export --onnx bot/layers.onnx bot/layers.safetensors >export.log
# shellcheck disable=SC2094 # a pipe is no file
exphil drill --seed 2 --frames 1200 --pipe <bot/pads 2>drill.log | "$python" bot/drill_bot.py bot/layers.onnx 2>bot.log >bot/pads
the_same bot/layers.safetensors 1200 0
