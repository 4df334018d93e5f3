#!/bin/sh
# Memory of `exphil train`: the batch of --batch auto, what is said when memory is short, and the line of the first updates.
# No time is looked at.
#   plan.sh <exphil>
set -u
exphil=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
complain() { echo "FAILED: $*"; failed=1; }

# train STATUS OPTION...: ends with this status; what it says goes to out and err
train() {
  wanted=$1
  shift
  "$exphil" train --port 1 --blocks gru --hidden 48 --updates 8 --alone 60 --force --out p.safetensors "$@" drill.slp >out 2>err </dev/null
  got=$?
  [ "$got" -eq "$wanted" ] || { complain "train $* ended with $got, not $wanted"; head -n 5 err; }
}
says() { grep -qE -- "$1" err || { complain "nothing says: $1"; cat err; }; }
silent() { if grep -qE -- "$1" err; then complain "something says: $1"; cat err; fi; }

"$exphil" drill --frames 1200 --out drill.slp >out 2>err || complain "no drill: $(cat err)"

train 0
says '^about [0-9]+ s at [0-9,]+ frames/s; [0-9.]+ MB$'
[ "$(grep -c '^about' err)" -eq 1 ] || complain "more than one estimate"
train 0 --quiet
silent .
train 0 --json
silent about

train 0 --batch auto # 1,200 frames are 20 sequences of 60
says '^batch 20: as many as the data fill; it takes [0-9.]+ MB$'
says '20 sequences at a time'
train 0 --batch auto --time 10
says '^batch 64: more would learn less from the same passes'

# In little memory: the batch that is named fits, twice it does not.
train 0 --batch auto --memory-limit 6MiB --time 10
says '^batch [0-9]+: the largest that fits in memory'
batch=$(sed -n 's/^batch \([0-9]*\):.*/\1/p' err)
[ "${batch:-0}" -ge 1 ] && [ "$batch" -lt 64 ] || complain "batch ${batch:-none} of little memory"
train 0 --batch "$batch" --memory-limit 6MiB --time 10
silent warning
train 1 --batch 4096 --memory-limit 6MiB --time 10
says "warning: this run takes [0-9.]+ [MG]B, which is more than the [0-9.]+ MB that --memory-limit leaves it"
says "leaves it, scores and checkpoints included; --batch $batch fits"
says "^exphil: --batch $batch is the largest that fits"
train 1 --memory-limit 1MiB
says 'not even one sequence at a time fits, its scores and checkpoints included: take a smaller --hidden'
# What is said to be missing is: with so much more it fits, with a little less it does not.
train 1 --batch "$((4 * batch))" --memory-limit 6000000 --time 10
more() { sed -n "s/.*this run takes \([0-9.]*\) MB, which is more than the \([0-9.]*\) MB that.*/\1 \2/p" err; }
takes=$(more)
limit() { awk "BEGIN { printf \"%d\", 6000000 + 1000000 * (${takes% *} - ${takes#* } + $1) }"; }
enough=$(limit 0.2) short=$(limit -0.2)
[ "$enough" -gt 6200000 ] || complain "what is missing is not told: $(cat err)"
train 0 --batch "$((4 * batch))" --memory-limit "$enough" --time 10
silent warning
train 1 --batch "$((4 * batch))" --memory-limit "$short" --time 10
says 'warning: this run takes'
train 2 --batch many
says '--batch wants a whole number or auto, not many'
train 2 --batch 0
says '--batch wants 1 to 4096, not 0'
exit $failed
