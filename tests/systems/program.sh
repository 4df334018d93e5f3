#!/bin/bash
# The program on another system does what it does here: the same command lines in two folders, here and there, leave the same
# files and say the same, byte for byte, but for dates and speeds. Paths have blanks and letters of other alphabets, and on
# Windows '\' between their parts. A run that Ctrl-C ends goes on to the same bits, files of either go on with the other.
#   program.sh TARGET PROGRAM NATIVE [INTERRUPT]    NATIVE: the program of this machine; INTERRUPT: interrupt.exe, on Windows
set -u
export LC_ALL=C.UTF-8
target=$1 program=$(realpath "$2") native=$(realpath "$3") interrupt=${4:+$(realpath "$4")}
systems=$(cd "$(dirname "$0")/../.." && pwd)/tools/systems
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder="$work/Spiel ä 日本"
mkdir -p "$folder/here" "$folder/there" "$folder/shared"
failed=0 compared=0

case $target in x86_64-windows*) windows=1 ;; *) windows= ;; esac
complain() { echo "FAILED: $*"; failed=1; }
# Where this runs: in here the native program, in there the other one.
run() {
  if [ "$(basename "$PWD")" = here ]; then timeout 500 "$native" "$@"; else timeout 500 "$systems" run "$target" "$program" "$@"; fi
}
# say FILE ARGUMENT...: what it says on stdout goes to FILE; it must end well
say() {
  to=$1
  shift
  run "$@" >"$to" 2>err </dev/null || { complain "$PWD: $*: status $?"; head -n 5 err; }
}
# A path as people write it on the system.
path() { if [ "$windows" ] && [ "$(basename "$PWD")" = there ]; then printf '%s' "$1" | tr / '\134'; else printf '%s' "$1"; fi; }
# Without what the clock says.
timeless() {
  LC_ALL=C sed -E 's/"(frames_per_second|waited_ns|p50_ns|p99_ns|missed_deadlines|seconds)": ?[^,}]*,?//g
    s/"started": "[^"]*"//; /latency of a step/d' "$1"
}
same() { # FILE...: equal here and there
  for name in "$@"; do
    compared=$((compared + 1))
    cmp -s <(timeless "here/$name") <(timeless "there/$name") || complain "$name differs"
  done
}
both() {
  for place in here there; do (cd "$folder/$place" && "$1"); [ -e "$folder/$place/failed" ] && failed=1; done
  cd "$folder" || exit 1
}
slow=
[ "$target" = aarch64-linux ] && slow=1 # qemu
updates=${slow:+20}
updates=${updates:-400}
# shellcheck disable=SC2054
small=(--quiet --port 1 --blocks gru --hidden 8 --head-width 8 --time 20 --batch 3 --alone 0 --schedule constant)

# ---- the drill, as README has it ---------------------------------------------------------------------------------------

drill() {
  deep="Träume/$(printf 'a%.0s' $(seq 120))/$(printf 'b%.0s' $(seq 120))" # with the folder more than 260 letters
  say drill.txt drill --frames 7200 --out drill.slp
  say unseen.txt drill --frames 1200 --seed 7 --out "$(path ./unseen.slp)"
  say train.txt train --quiet --port 1 --no-previous-action --blocks gru --hidden 64 --rate 0.01 --updates "$updates" \
    --log "$(path "../$(basename "$PWD")/log.jsonl")" --tensorboard "$(path "$deep")" --out drill.safetensors drill.slp
  say played.txt drill --seed 2 --json drill.safetensors
  ls "$deep"/events* >/dev/null || complain "no events in $deep"
  cat "$deep"/events* | tail -c +43 | wc -c >events.bytes # the first record has the time
  [ "$failed" = 0 ] || touch failed
}
both drill
same drill.txt unseen.txt played.txt drill.slp unseen.slp drill.safetensors drill.safetensors.optimizer log.jsonl events.bytes
grep -q '"log": "../here/log.jsonl"' here/drill.safetensors.run.json || complain "no log in the record here"
grep -q '"log": "../there/log.jsonl"' there/drill.safetensors.run.json || complain "the record there has another log"
[ "$slow" ] || python3 - here/played.txt <<'P' || complain "the policy lands less than nine of ten hits"
import json, sys
played = json.load(open(sys.argv[1]))
sys.exit(played["hits"] < 0.9 * played["teacher_hits"])
P
grep -c $'\r' there/log.jsonl there/drill.safetensors.run.json there/played.txt | grep -v ':0$' && complain "lines end with CR there"

# ---- what is made of it ------------------------------------------------------------------------------------------------

cp here/log.jsonl here/drill.safetensors here/drill.safetensors.run.json here/drill.slp here/unseen.slp shared/
touch -d '2026-01-02 03:04:05 UTC' shared/*
printf 'file,port,first,last,weight\n../shared/unseen.slp,1,0,600,2\n' >shared/weights.csv
# As a list of Windows has it; here the same with '/'.
printf '../shared/drill.slp\r\n../shared/unseen.slp\r\n' >here/list.txt
if [ "$windows" ]; then printf '..\\shared\\drill.slp\r\n..\\shared\\unseen.slp\r\n' >there/list.txt; else cp here/list.txt there/; fi
derived() {
  slp=$(path ../shared/unseen.slp) weights=$(path ../shared/drill.safetensors) log=$(path ../shared/log.jsonl)
  say info.json info --json "$weights"
  say info.txt info "$weights"
  say slp.json slp info --json "$slp"
  say slp.txt slp info --files-from list.txt
  say excluded.txt slp info --files-from list.txt --exclude "$(path '*/un*.slp')"
  say dump.bin slp dump --what state --slot P1 "$slp"
  say eval.json eval --json --port 1 --mistakes 3 "$weights" "$slp"
  say eval.txt eval --port 1 "$weights" "$slp"
  say play.txt play --port 1 "$weights" "$slp"
  say quantize.json quantize --json --port 1 --out small.safetensors "$weights" "$slp"
  say export.json export --json --onnx policy.onnx "$weights"
  say corpus.json corpus --json --stored --out corpus.games --report corpus.tsv --files-from list.txt
  say select.json corpus select --json --stored --least-frames 2000 --out selected.games corpus.games
  say plot.txt plot --out curve.svg "$log"
  say events.txt plot --tensorboard events "$log"
  tail -c +43 events/events* >events.bin
  say report.txt report --html page.html "$log"
  say runs.txt runs ../shared
  say judge.txt train "${small[@]}" --value detached --updates 4 --out judge.safetensors corpus.games
  say review.txt review --weights judge.safetensors --port 1 --svg review.svg "$slp"
  say weighed.txt train "${small[@]}" --frame-weights ../shared/weights.csv --updates 3 --out weighed.safetensors "$slp"
  say again.txt train --quiet --config judge.safetensors.run.json --updates 3 --out again.safetensors
  say pong.txt learn --quiet --world pong --lanes 4 --frames 4096 --seed 3 --scores 0 --episodes 2 --out pong.safetensors
  say match.json match --json --world pong --games 4 pong.safetensors pong.safetensors
  say devices.txt devices
  [ "$failed" = 0 ] || touch failed
}
both derived
same info.json info.txt slp.json slp.txt excluded.txt dump.bin eval.json eval.txt play.txt quantize.json small.safetensors \
  export.json policy.onnx corpus.json corpus.tsv corpus.games select.json selected.games curve.svg events.bin page.html runs.txt \
  judge.safetensors review.txt review.svg weighed.safetensors again.safetensors again.safetensors.run.json pong.safetensors \
  match.json

# ---- stopped and gone on with ------------------------------------------------------------------------------------------

# A run as long as it takes, which a second one must not disturb; Ctrl-C ends it.
cd there || exit 1
begin=(train "${small[@]}" --updates 100000000 --log long.jsonl --out long.safetensors drill.slp)
if [ "$windows" ]; then
  "$systems" run "$target" "$interrupt" go c -- "$program" "${begin[@]}" >status 2>err </dev/null &
else
  "$systems" run "$target" "$program" "${begin[@]}" >out 2>err </dev/null &
fi
running=$!
while kill -0 $running 2>/dev/null && ! [ -s long.jsonl ]; do sleep 0.1; done
run train "${small[@]}" --updates 1 --force --out long.safetensors drill.slp >out 2>second </dev/null && complain "two runs write one file"
grep -q "another run writes it" second || { complain "the second run says something else"; head -n 3 second; }
if [ "$windows" ]; then touch go; else kill -INT $running; fi
wait $running
ended=$?
[ "$windows" ] || echo "status $ended" >status
grep -q "status 130" status || { complain "Ctrl-C: $(cat status)"; head -n 5 err; }
grep -q "stopped by Ctrl-C" err || complain "Ctrl-C: it does not say so"
[ -e long.safetensors.lock ] && complain "the lock stays"
done=$(sed -nE 's/.*"update":([0-9]+).*/\1/p' long.jsonl | tail -n 1)
say out train "${small[@]}" --updates $((done + 5)) --resume --out long.safetensors drill.slp
cd ../here || exit 1
say out train "${small[@]}" --updates $((done + 5)) --log long.jsonl --out long.safetensors drill.slp
cd .. && same long.safetensors long.safetensors.optimizer long.jsonl

# Begun with one, gone on with by the other.
part() { say out train "${small[@]}" --held-out 0.2 --split time --eval-every 2 --updates 4 --out part.safetensors drill.slp; }
go_on() { say out train "${small[@]}" --held-out 0.2 --split time --eval-every 2 --updates 8 --resume --out part.safetensors drill.slp; }
both part
mkdir crossed
mv here/part.* crossed/ && mv there/part.* here/ && mv crossed/part.* there/
both go_on
same part.safetensors part.safetensors.optimizer part.safetensors.scores part.best.safetensors

# ---- refused -----------------------------------------------------------------------------------------------------------

if [ "$windows" ]; then
  cd there || exit 1
  refused() { # TEXT ARGUMENT...
    text=$1
    shift
    run "$@" >out 2>err </dev/null && complain "$* is done"
    grep -qF "$text" err || { complain "$* does not say: $text"; head -n 3 err; }
  }
  refused "no file can have this name" train "${small[@]}" --updates 1 --out dot.safetensors. drill.slp
  refused "no file can have this name" train "${small[@]}" --updates 1 --out 'blank ' drill.slp
  refused "no file can have this name" train "${small[@]}" --updates 1 --log 'dot.jsonl.' --out dot.safetensors drill.slp
  ls -d dot* blank* 2>/dev/null && complain "what was refused left files"
  echo mine >mine.lock
  refused "mine.lock is no lock of a run" train "${small[@]}" --updates 1 --out mine drill.slp
  [ "$(cat mine.lock)" = mine ] || complain "a run removes a file that is not its own"
  cp drill.slp locked && chmod 444 locked
  refused "it is read-only" train "${small[@]}" --updates 1 --force --out locked drill.slp
  refused "launch is not for Windows" launch -n 2 -- exphil info
  refused "ranks need Linux" train --mpi --out mpi.safetensors drill.slp
  refused "no cuda backend" info --plan --device cuda drill.safetensors
  refused "libarchive-13.dll" slp info "$(printf 'PK\003\004' >a.zip; echo a.zip)"
  cd ..
fi

echo "$compared files compared"
[ "$failed" = 0 ] && echo "all equal"
exit $failed
