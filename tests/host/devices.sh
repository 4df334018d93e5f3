#!/bin/sh
# `exphil devices` lists what there is and what auto takes: with a stand-in plugin of two GPUs, and with none that is asked
# for. --memory-limit holds on the CPU and on the emulated GPU, in every command that computes, and changes no bit.
#   devices.sh <exphil> <folder of the stand-in plugin> [<folder of the emulated one>]
set -u
exphil=$1 stand_in=$2 emulated=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
complain() { echo "FAILED: $*"; failed=1; }

# expect STATUS COMMAND...: what it prints goes to out and err
expect() {
  wanted=$1
  shift
  "$@" >out 2>err </dev/null
  got=$?
  [ "$got" -eq "$wanted" ] || { complain "$* ended with $got, not $wanted"; head -n 5 out err; }
}
# holds EXPRESSION: true of the object "told" in out
holds() {
  python3 -c '
import json, sys
told = json.load(open("out"))
ids = [device["id"] for device in told["devices"]]
cpu = told["devices"][0]
if not eval(sys.argv[1]): sys.exit(1)' "$1" 2>why || complain "devices --json: not $1: $(cat why out)"
}

# ---- the list ----
expect 0 env EXPHIL_BACKEND_DIR="$stand_in" "$exphil" devices --json
holds 'ids == ["cpu", "cuda:0", "cuda:1"] and told["auto"] == "cuda:0"'
holds 'told["devices"][2] == {"id": "cuda:1", "name": "fake device", "isa": "sm_0", "workers": 0, "memory_bytes": None}'
holds 'cpu["workers"] >= 1 and cpu["memory_bytes"] > 2**20 and cpu["name"]'
expect 0 env EXPHIL_BACKEND_DIR="$stand_in" "$exphil" devices
grep -q '^cuda:1 *sm_0 *- *-  fake device$' out || complain "the table lacks the second GPU: $(cat out)"
grep -q '^--device auto takes cuda:0$' out || complain "the table does not tell what auto takes: $(cat out)"
expect 0 env EXPHIL_CPU_ISA=ref "$exphil" devices --json
holds 'cpu["isa"] == "ref" and told["auto"] in ids and (told["auto"] != "cpu" or "running on the CPU" in told["auto_warning"])'
expect 2 "$exphil" devices cuda:0
# Without a plugin it says so in a line; where it looked, and why one that is there could not be opened, is asked for or matters.
mkdir none broken
echo "no library" | tee broken/libexphil_cuda.so >broken/libexphil_cuda.dylib
plain='no CUDA plugin is installed, which --device cuda wants (doc/cuda.md)'
expect 0 env EXPHIL_BACKEND_DIR="$work/none" "$exphil" devices
cp out short
expect 0 env EXPHIL_BACKEND_DIR="$work/none" "$exphil" devices --verbose
case $(grep -o '[^ ]*: running on the CPU: .*' out | tr ';' '\n' | grep -v ': not there$') in
  '')
    if grep -q '^--device auto takes cpu$' out; then
      grep -qF "$plain" short || complain "no plugin, and it does not say so: $(cat short)"
      grep -q 'not there' short && complain "long reasons, which nobody asked for: $(cat short)"
      grep -q "^warning: .*$work/none/libexphil_cuda[^ ]*: not there" out || complain "--verbose: $(cat out)"
    fi
    ;;
esac
expect 0 env EXPHIL_BACKEND_DIR="$work/broken" "$exphil" devices
if grep -q '^--device auto takes cpu$' out; then
  grep -qF "$plain" out && complain "a plugin that cannot be opened is called none: $(cat out)"
  grep -q "^warning: .*$work/broken/" out || complain "why the plugin cannot be opened: $(cat out)"
fi

# ---- the limit ----
"$exphil" drill --out drill.slp --frames 60 >/dev/null || complain "no drill"
train() { "$exphil" train --quiet --port 1 --blocks gru --hidden 8 --head-width 8 --time 15 --batch 1 --updates 1 --threads 1 \
  --force "$@" drill.slp; }
# refused WHAT COMMAND...: ends with 1 and tells of the limit
refused() {
  what=$1
  shift
  expect 1 "$@"
  grep -q 'EXPHIL_E_MEMORY' err && grep -q "memory limit of $what bytes: [0-9]* are in use" err ||
    complain "$* does not tell of the limit: $(cat err)"
  grep -q -- "^exphil: --memory-limit allows $what bytes" err || complain "$* does not name --memory-limit: $(cat err)"
}
limits() { # DEVICE
  expect 0 train --device "$1" --out free.safetensors
  refused 262144 train --device "$1" --memory-limit 256KiB --out none.safetensors
  [ ! -e none.safetensors ] || complain "--memory-limit on $1 wrote weights all the same"
  expect 0 train --device "$1" --memory-limit 512MiB --out held.safetensors
  cmp free.safetensors held.safetensors || complain "on $1 a limit changes what is trained"
  refused 200000 "$exphil" eval --device "$1" --memory-limit=200000 free.safetensors drill.slp
  refused 200000 "$exphil" play --device "$1" --memory-limit 200000 free.safetensors drill.slp
  refused 204800 "$exphil" quantize --device "$1" --memory-limit 200KiB --out none.safetensors free.safetensors
  expect 0 "$exphil" eval --device "$1" --memory-limit 1TiB free.safetensors drill.slp
}
limits cpu
[ -z "$emulated" ] || { export EXPHIL_BACKEND_DIR="$emulated" && limits cuda; }
while IFS=/ read -r wrong why; do
  expect 2 train --memory-limit "$wrong" --out none.safetensors
  grep -qxF "exphil: --memory-limit wants a number of bytes, as 2000000000, 512MiB or 8GiB, not $wrong: $why" err ||
    complain "--memory-limit '$wrong': $(cat err)"
done <<'WRONG'
0/nothing can be done in it; without a limit, leave the option out
0MiB/nothing can be done in it; without a limit, leave the option out
-1/it cannot be negative
1.5GiB/it must be whole; take the next smaller unit
12MB/units are KiB, MiB, GiB and TiB
1G/units are KiB, MiB, GiB and TiB
1gib/units are KiB, MiB, GiB and TiB
 1/it begins with a digit
/it begins with a digit
9999999999GiB/that is more than 63 bits hold
8388608TiB/that is more than 63 bits hold
99999999999999999999/that is more than 63 bits hold
99999999999999999999GiB/that is more than 63 bits hold
WRONG
if "$exphil" bench --help >out 2>/dev/null; then
  expect 2 "$exphil" bench step --memory-limit 1GiB
  expect 1 "$exphil" bench train --quick --plain --memory-limit 4KiB mlp
  grep -q 'could not get' err || complain "bench train takes no notice of a limit: $(cat err)"
fi
[ "$failed" -eq 0 ] && echo "devices are listed, limits are kept${emulated:+, on the emulated GPU too}"
exit "$failed"
