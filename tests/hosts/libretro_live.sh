#!/bin/sh
# A person takes over in a game of a stock emulator, and the policy learns: the person is a script at the frontend's pad
# (pong_person.c), who presses the button. What was learnt loses fewer points than the clone did; it is saved, gone on with, and
# left alone where it cannot be; wrong settings are told, and the game goes on.
set -eu
if [ "${1:-}" = bench ]; then
  echo "SKIPPED: bench/learn/corrections.py measures what it is worth, and with --late what it costs"
  exit 0
fi
source=${EXPHIL_SOURCE:?} prefix=${EXPHIL_PREFIX:?}
here=$PWD

fail() { echo "libretro_live: $*" >&2; exit 1; }
skip() { echo "SKIPPED: $*"; exit 0; }
echo '#include <libretro-common/libretro.h>' | ${CC:-cc} -E - >/dev/null 2>&1 || skip "no libretro.h (retroarch-dev)"
for tool in sdcc cmake; do
  command -v $tool >/dev/null 2>&1 || skip "no $tool"
done
gambatte=
for folder in /usr/lib/*/libretro /usr/lib/libretro; do
  [ ! -e "$folder/gambatte_libretro.so" ] || gambatte=$folder/gambatte_libretro.so
done
[ -n "$gambatte" ] || skip "no libretro-gambatte"

mkdir -p tree
cp -R "$source/examples/libretro" "$source/examples/pong" tree/
cmake -S tree/libretro -B built -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="-Wall -Wextra -Wpedantic -Wconversion -Werror" \
  >cmake.log 2>&1 || fail "$(cat cmake.log)"
cmake --build built >>cmake.log 2>&1 || fail "$(cat cmake.log)"
exphil=$prefix/bin/exphil
unset EXPHIL_MODEL EXPHIL_MODE EXPHIL_PORT EXPHIL_RECORD EXPHIL_TEACHER EXPHIL_DISTURB EXPHIL_CHOICE EXPHIL_LEARNED EXPHIL_TAKE_OVER \
  EXPHIL_LEARN_PACED EXPHIL_SEED
export EXPHIL_CORE="$gambatte" EXPHIL_MAP="$here/tree/pong/gameboy/pong_gb_left.exphil"

plugin() { # frames, then options of the runner
  frames=$1
  shift
  built/exphil-libretro-run --core built/exphil_libretro.so --rom game.gb --frames "$frames" --verbose "$@" >run.out 2>run.log ||
    fail "$(cat run.out run.log)"
}
said() { grep -q "$1" run.log || fail "'$1' is not said: $(cat run.log)"; }
unsaid() { if grep -q "$1" run.log; then fail "'$1' is said: $(cat run.log)"; fi; }
lost() { # by these weights, in 3000 frames
  EXPHIL_MODE=play EXPHIL_CHOICE=likeliest EXPHIL_MODEL=$1 plugin 3000 --score "$EXPHIL_MAP"
  sed -n 's/^score [0-9]*://p' run.out
}
person="--seat $EXPHIL_MAP $here/built/pong_person.so"

# Beside the game lie a recording of three quarters of a minute, and the clone that it made.
cp built/pong.gb game.gb
EXPHIL_MODE=record EXPHIL_TEACHER=$here/built/pong_teacher.so plugin 2700
"$exphil" train game.corpus --blocks 'mlp*2' --hidden 64 --no-previous-action --epochs 60 --rate 0.003 --quiet \
  --out game.safetensors >train.log 2>&1 || fail "$(cat train.log)"

# Nobody takes over: it plays, and nothing is learnt or written.
EXPHIL_MODE=learn plugin 600
said 'game.safetensors plays port 1, sampled actions, and learns when you take over'
said 'nobody took over: nothing was learnt'
[ ! -e game.learned.safetensors ] || fail "nothing was learnt, and there is a file"

# Two minutes with the person. Weights beside the game are those that it began with; what was learnt lies beside them. The game
# runs faster than the thread learns: paced, it waits now and then, and a run is the same each time.
before=$(lost game.safetensors)
export EXPHIL_LEARN_PACED=1
# shellcheck disable=SC2086
EXPHIL_MODE=learn plugin 7200 $person
said 'game.corpus is learnt from, too: [0-9]* frames'
said 'on screen: you play, the policy learns'
said 'on screen: the policy plays'
said 'learnt from [0-9]* frames of the person, [0-9]* updates: game.learned.safetensors'
"$exphil" info game.learned.safetensors >info.out 2>&1 || fail "$(cat info.out)"
# shellcheck disable=SC2086
EXPHIL_MODE=learn EXPHIL_LEARNED=again plugin 7200 $person
cmp again game.learned.safetensors || fail "equal presses give other weights"
after=$(lost game.learned.safetensors)
echo "libretro_live: in 3000 frames the clone loses $before points, after two minutes with a person $after"
[ "$((2 * after))" -le "$before" ] || fail "what was learnt loses $after points, the clone lost $before"

# It goes on from there; where it cannot, it says so, plays, and leaves the file.
# shellcheck disable=SC2086
EXPHIL_MODE=learn plugin 1200 $person
said 'game.learned.safetensors goes on: [0-9]* frames learnt from'
[ "$(sed -n 's/.*learnt from \([0-9]*\) frames of the person.*/\1/p' run.log)" -gt \
  "$(sed -n 's/.*goes on: \([0-9]*\) frames learnt from.*/\1/p' run.log)" ] || fail "nothing new was learnt: $(cat run.log)"
cp game.learned.safetensors.optimizer kept
mv game.corpus other.corpus
broken() { # what is said, then settings
  wanted=$1
  shift
  # shellcheck disable=SC2086
  if env "$@" built/exphil-libretro-run --core built/exphil_libretro.so --rom game.gb --frames 300 --verbose $person >run.out \
    2>run.log; then fail "$*: the runner ends well: $(cat run.log)"; fi
  said "$wanted"
  cmp kept game.learned.safetensors.optimizer || fail "$*: what was learnt has changed"
}
broken 'cannot be gone on with: checkpoint was made with a dataset, this is without' EXPHIL_MODE=learn
said 'game.safetensors plays port 1, sampled actions$'
mv other.corpus game.corpus
# More of a recording is learnt from, too.
EXPHIL_MODE=record EXPHIL_TEACHER=$here/built/pong_teacher.so plugin 600
# shellcheck disable=SC2086
EXPHIL_MODE=learn plugin 900 $person
said 'game.learned.safetensors goes on'
head -c 4000 kept >game.learned.safetensors.optimizer
cp game.learned.safetensors.optimizer kept
broken 'cannot be gone on with: ' EXPHIL_MODE=learn
rm -f game.learned.safetensors*
cp game.corpus kept
cp game.corpus game.learned.safetensors.optimizer
broken "button 'dance' to take over is none of select" EXPHIL_MODE=learn EXPHIL_TAKE_OVER=dance
broken 'nothing is learnt: the teacher is not to be had as asked' EXPHIL_MODE=learn EXPHIL_TEACHER=none.so
rm -f game.learned.safetensors*

# A folder that cannot be written to is told when it is known, and the game goes on.
mkdir -p closed
# shellcheck disable=SC2086
if EXPHIL_MODE=learn EXPHIL_LEARNED=closed/no/such built/exphil-libretro-run --core built/exphil_libretro.so --rom game.gb \
  --frames 2400 --verbose $person >run.out 2>run.log; then fail "it ends well where nothing can be saved: $(cat run.log)"; fi
said 'what was learnt is lost but for what closed/no/such has'

# Without data beside it, with another button, and with a teacher who decides by itself when to play.
mv game.corpus other.corpus
EXPHIL_MODE=learn EXPHIL_TAKE_OVER=l2 EXPHIL_TEACHER=$here/built/pong_teacher.so plugin 600
unsaid 'is learnt from, too'
said 'learnt from 5[0-9][0-9] frames of the person'
