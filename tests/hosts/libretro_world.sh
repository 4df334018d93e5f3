#!/bin/sh
# Games of stock emulators as worlds to learn in: by their functions (world_check.c), and by `exphil learn` and `exphil match`. The
# same seed gives the same weights, with any number of threads, and after a stop; wrong arguments are told.
set -eu
if [ "${1:-}" = bench ]; then
  echo "SKIPPED: exphil learn tells its frames a second; bench/learn/emulator.py holds them against the bare emulator"
  exit 0
fi
source=${EXPHIL_SOURCE:?} prefix=${EXPHIL_PREFIX:?}
here=$PWD

fail() { echo "libretro_world: $*" >&2; exit 1; }
skip() { echo "SKIPPED: $*"; exit 0; }
echo '#include <libretro-common/libretro.h>' | ${CC:-cc} -E - >/dev/null 2>&1 || skip "no libretro.h (retroarch-dev)"
for tool in cc65 sdcc cmake; do
  command -v $tool >/dev/null 2>&1 || skip "no $tool"
done
core_of() {
  for folder in /usr/lib/*/libretro /usr/lib/libretro; do
    if [ -e "$folder/$1_libretro.so" ]; then echo "$folder/$1_libretro.so"; return; fi
  done
}
gambatte=$(core_of gambatte)
[ -n "$(core_of nestopia)" ] || skip "no libretro-nestopia"
[ -n "$gambatte" ] || skip "no libretro-gambatte"

# As a user would: the folder and the Pong beside it, against the installed library.
mkdir -p tree
cp -R "$source/examples/libretro" "$source/examples/pong" tree/
cmake -S tree/libretro -B built -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="-Wall -Wextra -Wpedantic -Wconversion -Werror" \
  >cmake.log 2>&1 || fail "$(cat cmake.log)"
cmake --build built >>cmake.log 2>&1 || fail "$(cat cmake.log)"
exphil=$prefix/bin/exphil
unset EXPHIL_WORLDS
library=$here/built/exphil_world_libretro.so

# shellcheck disable=SC2046
${CC:-cc} -std=c11 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror -o world_check "$source/tests/hosts/world_check.c" \
  $(pkg-config --cflags --libs exphil) -ldl
for console in gambatte:gb:gameboy/pong_gb nestopia:nes:nes/pong_nes; do
  core=${console%%:*} map=tree/pong/${console##*:}_left.exphil rom=${console#*:}
  cp "$map" "$core.exphil"
  { cat "$map"; echo 'reward points 1'; } >"$core.own.exphil"
  { cat "$map"; echo 'reward against 1'; } >"$core.against.exphil"
  sed 's/^frames .*/frames 300/' "$map" >"$core.short.exphil"
  ./world_check "$library" "core=$core,rom=built/pong21.${rom%%:*}" "$core.exphil" "$core.own.exphil" "$core.against.exphil" \
    "$core.short.exphil" >"$core.out" 2>"$core.log" || fail "$core: $(cat "$core.log")"
  [ ! -s "$core.out" ] || fail "$core: a core writes where results go: $(cat "$core.out")"
done

# From the command line. A name is looked for in EXPHIL_WORLDS.
game=core=gambatte,rom=built/pong21.gb,map=gambatte.exphil
learn() { # name, world, then options
  name=$1 world=$2
  shift 2
  "$exphil" learn --world "$world" --lanes 4 --time 32 --scores 2 --episodes 1 --seed 5 --no-previous-action --json --quiet --force \
    --out "$name.safetensors" "$@" >"$name.json" 2>"$name.log" || fail "$name: $(cat "$name.log")"
}
hash_of() { "$exphil" info --json "$1.safetensors" | sed -n 's/.*"weights_hash":"\([0-9a-f]*\)".*/\1/p'; }
same() { [ -n "$(hash_of "$1")" ] && [ "$(hash_of "$1")" = "$(hash_of "$2")" ]; }
short=core=gambatte,rom=built/pong21.gb,map=gambatte.short.exphil
learn one "$library:$short,threads=1" --frames 2560
export EXPHIL_WORLDS="$here/built"
learn three "libretro:$short,threads=3" --frames 2560 --threads 1
same one three || fail "threads change what is learnt"
# Killed after some chunks, wherever it is, and gone on with.
"$exphil" learn --world "libretro:$short" --lanes 4 --time 32 --scores 2 --episodes 1 --seed 5 --no-previous-action --quiet \
  --frames 2560 --save-minutes 0.0001 --log killed.jsonl --out killed.safetensors >killed.json 2>killed.err &
run=$!
lines_of() { if [ -e "$1" ]; then wc -l <"$1"; else echo 0; fi; }
while kill -0 $run 2>/dev/null && [ "$(lines_of killed.jsonl)" -lt 6 ]; do sleep 0.02; done
kill -KILL $run 2>/dev/null || true
wait $run || true
[ -e killed.safetensors.optimizer ] || fail "six chunks, and no checkpoint: $(cat killed.err)"
learn killed "libretro:$short" --frames 2560 --resume --log killed.jsonl
same killed one || fail "a run that was killed learns something else"
learn held "libretro:$short" --frames 1280 --repeat 3
same held one && fail "held actions learn the same"

# Both seats: self-play, and a match of what came of it.
right=tree/pong/gameboy/pong_gb_right.exphil
sed 's/^frames .*/frames 300/' $right >right.short.exphil
learn two "libretro:$short,map=right.short.exphil" --opponent self --frames 1280
"$exphil" match one.safetensors two.safetensors --world "libretro:$game,map=$right" --games 2 --points 1 --json >match.json \
  2>match.log || fail "$(cat match.log)"
grep -q '"games":2' match.json || fail "a match: $(cat match.json)"

# Where a game begins: a core's own state, and RetroArch's file around it.
wrong() { # what is said, then the world
  if "$exphil" learn --world "$2" --lanes 2 --time 8 --frames 16 --out x.safetensors --json >wrong.out 2>wrong.log; then
    fail "$2 is played"
  fi
  grep -qF -- "$1" wrong.log || fail "$2: expected '$1', got: $(cat wrong.log)"
  [ ! -e x.safetensors ] || fail "$2 leaves weights"
}
printf 'RASTATE\001MEM \377\377\000\000short' >torn.state
printf 'nothing of a game' >other.state
wrong "torn.state, which is cut off" "libretro:$game,state=torn.state"
wrong "the core refuses other.state" "libretro:$game,state=other.state"
wrong 'cannot read none.state' "libretro:$game,state=none.state"

# What is wrong is told.
wrong 'exphil_world_other.so' "other:$game"
wrong 'no function exphil_world_open' "$gambatte:$game"
wrong 'no core; core=FILE|NAME,rom=FILE,map=FILE' 'libretro:'
wrong "no rom; " 'libretro:core=gambatte'
wrong "no map; " 'libretro:core=gambatte,rom=built/pong21.gb'
wrong "what is 'game'?" "libretro:$game,game=2"
wrong 'rom is given twice' "libretro:$game,rom=x"
wrong "threads '0' is no number from 1 to 256" "libretro:$game,threads=0"
wrong 'there is no none_libretro.so' 'libretro:core=none,rom=x,map=gambatte.exphil'
wrong 'cannot read none.gb' 'libretro:core=gambatte,rom=none.gb,map=gambatte.exphil'
wrong 'none.exphil: No such file' 'libretro:core=gambatte,rom=built/pong21.gb,map=none.exphil'
sed '/^score/d' gambatte.exphil >scoreless.exphil
wrong "no line 'score' nor 'reward': nothing to learn" 'libretro:core=gambatte,rom=built/pong21.gb,map=scoreless.exphil'
sed 's/"PONG"/"GOLF"/' gambatte.exphil >golf.exphil
wrong "are not \"GOLF\"" 'libretro:core=gambatte,rom=built/pong21.gb,map=golf.exphil'
for line in 'over points' 'over nothing = 3' 'reward points' 'reward points much' 'frames -1' 'idle 5000' 'chance random 9 3' \
  'chance ball_x 0 256' 'chance speed_x 0 9'; do
  sed "/^${line%% *} /d" gambatte.exphil >line.exphil
  echo "$line" >>line.exphil
  wrong "line.exphil:$(wc -l <line.exphil): " 'libretro:core=gambatte,rom=built/pong21.gb,map=line.exphil'
done
sed 's/^float own /float mine /' $right >mine.exphil
if "$exphil" match one.safetensors two.safetensors --world "libretro:$game,map=mine.exphil" --games 2 >wrong.out 2>wrong.log; then
  fail "seats of two forms are played"
fi
grep -q 'make rows of different form' wrong.log || fail "$(cat wrong.log)"
if "$exphil" match one.safetensors two.safetensors --world "libretro:$game" --games 2 >wrong.out 2>wrong.log; then
  fail "two seats by one map"
fi
grep -q '2 seats want as many maps, there are 1' wrong.log || fail "$(cat wrong.log)"
echo "libretro_world: lanes, threads, seeds, states, rewards as they should be on Gambatte and Nestopia"
