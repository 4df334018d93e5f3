#!/bin/sh
# Two builds of the program, by different compilers, give the same bits: the same replay, the same weights after training,
# the same play, although they use another instruction set and another number of threads.
#   bits.sh <exphil> <other exphil>
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run EXPHIL FOLDER OPTION...: all that it computes lies in FOLDER
run() {
  exphil=$1 folder=$work/$2
  shift 2
  mkdir "$folder"
  "$exphil" drill --out "$folder/drill.slp" --frames 400 --seed 5 >/dev/null
  for blocks in "mamba attention" "lstm gru mlp ffn"; do
    name=$(echo "$blocks" | tr ' ' -)
    "$exphil" train --quiet --port 1 --blocks "$blocks" --hidden 24 --updates 8 --batch 4 --time 40 "$@" \
      --out "$folder/$name.safetensors" "$folder/drill.slp" >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
    "$exphil" drill "$folder/$name.safetensors" --frames 300 --seed 6 | grep -v latency >"$folder/$name.play"
    "$exphil" play "$folder/$name.safetensors" "$folder/drill.slp" --sample --show 200 |
      grep -v latency >"$folder/$name.free"
  done
}
run "$1" one
run "$2" two --threads 1 --isa avx2
run "$2" three --threads 3 --isa ref
for other in two three; do
  # the record of a run names its files, threads and instruction set
  diff -r --exclude='*.run.json' "$work/one" "$work/$other" || { echo "FAILED: other bits in '$other'"; exit 1; }
done
echo "$(find "$work/one" -type f ! -name '*.run.json' | wc -l) files, the same bits"
