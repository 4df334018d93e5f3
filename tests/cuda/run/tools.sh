#!/bin/sh
# The program on the emulated GPU: training with every precision, an evaluation's figures beside the CPU's, and the table of
# operations. Arguments: the program, the folder of the plugin.
set -eu
program=$1
EXPHIL_BACKEND_DIR=$2
export EXPHIL_BACKEND_DIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" bench --quick --plain --device cuda:0 --precision tf32 --roofline train attention >"$work/roofline" 2>&1 || {
  cat "$work/roofline"
  exit 1
}
for word in 'attention backward' 'linear backward' 'norm backward' loss adam 'gradient norm' 'a copy on the device moves' \
  'a large product does'; do
  grep -q "$word" "$work/roofline" || {
    echo "FAILED: the table of operations has no line with: $word"
    cat "$work/roofline"
    exit 1
  }
done
if "$program" bench --quick --plain --roofline train >"$work/refused" 2>&1; then
  echo "FAILED: --roofline without --device was not refused"
  exit 1
fi
grep -q 'roofline wants --device' "$work/refused"
if "$program" bench --quick --plain --device cuda:0 --precision f8 train >"$work/refused" 2>&1; then
  echo "FAILED: --precision f8 was not refused"
  exit 1
fi
grep -q 'precision wants f32' "$work/refused"
if "$program" bench --quick --plain --device cuda:7 train mamba >"$work/refused" 2>&1; then
  echo "FAILED: cuda:7 was not refused"
  exit 1
fi
grep -q 'there is 1 CUDA device$' "$work/refused"
grep -q 'leave --device out' "$work/refused"
"$program" drill --frames 300 --out "$work/drill.slp" >/dev/null
if "$program" train --quiet --device cuda:0 --blocks gru --hidden 8 --head-width 1025 --updates 1 --out "$work/wide" \
  "$work/drill.slp" >"$work/refused" 2>&1; then
  echo "FAILED: heads of 1025 on a GPU were not refused"
  exit 1
fi
grep -q 'heads of head_width 1025: at most 1024 here' "$work/refused"
"$program" train --quiet --device cuda:0 --blocks gru --hidden 8 --head-width 1024 \
  --updates 1 --out "$work/wide" "$work/drill.slp" >/dev/null
# it learns by playing in the precisions of learn
for precision in f32 bf16; do
  "$program" learn --quiet --device cuda:0 --precision $precision --world cartpole --blocks gru --hidden 16 --lanes 2 --time 8 \
    --frames 32 --scores 0 --episodes 1 --epochs 1 --batches 1 --memory-limit 64MiB --out "$work/$precision" >/dev/null
done
weights() { "$program" info --json "$work/$1" | sed -n 's/.*"weights_hash":"\([0-9a-f]*\)".*/\1/p'; }
[ -n "$(weights f32)" ]
if [ "$(weights f32)" = "$(weights bf16)" ]; then echo "FAILED: learn --precision bf16 learns as f32 does"; exit 1; fi
"$program" info "$work/bf16" | grep -q -- '--precision bf16'
echo "the table of operations has $(grep -c ' x, ' "$work/roofline") lines"
