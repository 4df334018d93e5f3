#!/bin/sh
# The libretro plugin in stock emulators: a scripted teacher is recorded, a policy learns from it and plays against it, on
# Nestopia (NES) and Gambatte (Game Boy), then within RetroArch. Demands: the clone concedes at most one point more than the
# teacher, three runs give the same score and memory, and 100 save states bring back the same 120 frames; what decision and
# step cost is told. Then the trace, wrong input of every kind, and two plugins in one process.
#   EXPHIL_TRACE_OUT=FOLDER   takes policy.safetensors and frames.trace of the plugin, for other hosts to replay
set -eu
if [ "${1:-}" = bench ]; then
  echo "SKIPPED: the plugin tells what its decisions cost in every run; there is no call of its own to time"
  exit 0
fi
source=${EXPHIL_SOURCE:?} prefix=${EXPHIL_PREFIX:?}
here=$PWD

fail() { echo "libretro: $*" >&2; exit 1; }
skip() { echo "SKIPPED: $*"; exit 0; }
core_of() {
  for folder in /usr/lib/*/libretro /usr/lib/libretro; do
    if [ -e "$folder/$1_libretro.so" ]; then echo "$folder/$1_libretro.so"; return; fi
  done
}
echo '#include <libretro-common/libretro.h>' | ${CC:-cc} -E - >/dev/null 2>&1 || skip "no libretro.h (retroarch-dev)"
nestopia=$(core_of nestopia)
gambatte=$(core_of gambatte)
[ -n "$nestopia" ] || skip "no libretro-nestopia"
[ -n "$gambatte" ] || skip "no libretro-gambatte"
for tool in cc65 sdcc cmake retroarch; do
  command -v $tool >/dev/null 2>&1 || skip "no $tool"
done

# The demonstration's picture: from the beginning of the game on, with who plays and the points under it.
take_picture() { # name core game left-map right-map width height
  "$run" --core "$2" --rom "$3" --frames 300 --score "$4" --seat "$4" random --seat "$5" "$teacher" --names hi ho \
    --picture "$1.gif" >"$1.picture" 2>"$1.log" || fail "$1: $(cat "$1.log")"
  [ "$(value "$1.picture" 'score ')" != 0:0 ] || fail "$1: nobody makes a point for the picture"
  python3 "$source/tests/hosts/picture_check.py" "$1.gif" "$6" "$7" HI HO 0:0 "$(value "$1.picture" 'score ')" >"$1.checked" 2>&1 ||
    fail "$1: $(cat "$1.checked")"
}

# As a user would: the folder and the Pong beside it, against the installed library.
mkdir -p tree
cp -R "$source/examples/libretro" "$source/examples/pong" tree/
chmod -x tree/pong/make-roms # some packagings install scripts without it
cmake -S tree/libretro -B built -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="-Wall -Wextra -Wpedantic -Wconversion -Werror" \
  >cmake.log 2>&1 || fail "$(cat cmake.log)"
cmake --build built >>cmake.log 2>&1 || fail "$(cat cmake.log)"
run=$here/built/exphil-libretro-run plugin=$here/built/exphil_libretro.so teacher=$here/built/pong_teacher.so
exphil=$prefix/bin/exphil
unset EXPHIL_CORE EXPHIL_MAP EXPHIL_MODEL EXPHIL_MODE EXPHIL_PORT EXPHIL_RECORD EXPHIL_TEACHER EXPHIL_DISTURB EXPHIL_CHOICE

value() { sed -n "s/^$2//p" "$1" | head -n 1; }
conceded() { value "$1" 'score [0-9]*:'; }
# The line that tells what it cost in microseconds, printed: how much that is, is the machine's affair.
cost() {
  grep "^$2 *p50 [0-9]" "$1" || fail "$3: the cost of $2 is not told"
}

learn_and_play() { # name core game left-map right-map
  name=$1 game=$3 left=$4 right=$5
  export EXPHIL_CORE="$2" EXPHIL_MAP="$left"
  env EXPHIL_MODE=record EXPHIL_RECORD="$here/$name.corpus" EXPHIL_TEACHER="$teacher" EXPHIL_DISTURB=50 "$run" --core "$plugin" \
    --rom "$game" --frames 7200 --seat "$right" "$teacher" >"$name.record" 2>"$name.log" || fail "$name: $(cat "$name.log")"
  "$exphil" train "$name.corpus" --out "$name.safetensors" --force --quiet --blocks 'mlp*2' --hidden 64 --head-width 64 \
    --no-previous-action --epochs 100 --rate 0.003 --seed 1 >"$name.train" 2>&1 || fail "$name: $(cat "$name.train")"

  "$run" --core "$2" --rom "$game" --score "$left" --frames 6000 --seat "$left" "$teacher" --seat "$right" "$teacher" \
    >"$name.teacher" 2>"$name.log" || fail "$name: $(cat "$name.log")"
  export EXPHIL_MODEL="$here/$name.safetensors"
  for i in 1 2 3; do
    env EXPHIL_CHOICE=likeliest "$run" --core "$plugin" --rom "$game" --score "$left" --frames 6000 \
      --seat "$right" "$teacher" >"$name.play$i" 2>"$name.log" || fail "$name: $(cat "$name.log")"
    grep -E '^(score|memory)' "$name.play$i" >"$name.result$i"
    cmp -s "$name.result1" "$name.result$i" || fail "$name: run $i differs: $(cat "$name.result1" "$name.result$i")"
  done
  most=$(($(conceded "$name.teacher") + 1))
  [ "$(conceded "$name.play1")" -le $most ] || fail "$name: the clone concedes $(conceded "$name.play1"), allowed are $most"
  [ "$(value "$name.teacher" 'memory ')" != "$(value "$name.play1" 'memory ')" ] || fail "$name: the policy does not play"
  cost "$name.play1" decision "$name"
  cost "$name.play1" 'of it step' "$name"
  "$run" --core "$plugin" --rom "$game" --frames 600 --drill 100 --seat "$right" "$teacher" >"$name.drill" 2>"$name.log" ||
    fail "$name: $(cat "$name.drill" "$name.log")"
  echo "libretro: $name: in 6000 frames teacher $(value "$name.teacher" 'score '), clone $(value "$name.play1" 'score ')" \
    "against the teacher; $(grep 'save states' "$name.drill")"
  echo "libretro: $name: decision $(value "$name.play1" 'decision *')"
}

pong=$here/tree/pong
learn_and_play nestopia "$nestopia" "$here/built/pong.nes" "$pong/nes/pong_nes_left.exphil" "$pong/nes/pong_nes_right.exphil"
learn_and_play gambatte "$gambatte" "$here/built/pong.gb" "$pong/gameboy/pong_gb_left.exphil" \
  "$pong/gameboy/pong_gb_right.exphil"
take_picture nestopia "$nestopia" "$here/built/pong.nes" "$pong/nes/pong_nes_left.exphil" "$pong/nes/pong_nes_right.exphil" 256 240
take_picture gambatte "$gambatte" "$here/built/pong.gb" "$pong/gameboy/pong_gb_left.exphil" "$pong/gameboy/pong_gb_right.exphil" \
  160 144
"$run" --core "$nestopia" --rom "$here/built/pong.nes" --names hi ho >named.out 2>&1 && fail "--names without points is taken"
grep -q -- '--names wants --score and --picture' named.out || fail "--names without points: $(cat named.out)"

# The trace of a game, sampled, replayed by the library alone. The settings are those of Gambatte from here on.
game=$here/built/pong.gb right=$pong/gameboy/pong_gb_right.exphil
env EXPHIL_TRACE_FILE="$here/frames.trace" EXPHIL_TRACE_FRAMES=10000 "$run" --core "$plugin" --rom "$game" --frames 10010 \
  --seat "$right" "$teacher" >trace.log 2>&1 || fail "$(cat trace.log)"
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -O2 -o trace "$source/tests/hosts/trace.c" $(pkg-config --cflags --libs exphil)
./trace check gambatte.safetensors frames.trace >trace.out || fail "the trace differs"
sed 's/^c:/libretro:/' trace.out
# Closed streams: what the plugin says must not go into a file that got the number of one.
trace_100() {
  env EXPHIL_TRACE_FILE="$1" EXPHIL_TRACE_FRAMES=100 "$run" --core "$plugin" --rom "$game" --frames 200 --verbose \
    --seat "$right" "$teacher" >streams.out
}
trace_100 open.trace 2>streams.log || fail "$(cat streams.log)"
trace_100 closed.trace 2>&- || fail "with its errors closed the runner fails"
cmp open.trace closed.trace || fail "with its errors closed the runner writes them into a file"
if [ -n "${EXPHIL_TRACE_OUT:-}" ]; then
  mkdir -p "$EXPHIL_TRACE_OUT"
  cp gambatte.safetensors "$EXPHIL_TRACE_OUT/policy.safetensors"
  cp frames.trace "$EXPHIL_TRACE_OUT/frames.trace"
fi

# A person at the pad is recorded as the teacher is: here the person is the teacher, at the frontend's pad. The second
# recording of the teacher adds to the first.
content() { "$exphil" info "$1" | sed -n 's/.*content //p'; }
env EXPHIL_MODEL= EXPHIL_MODE=record EXPHIL_RECORD="$here/person.corpus" "$run" --core "$plugin" --rom "$game" --frames 900 \
  --seat "$EXPHIL_MAP" "$teacher" >record.log 2>&1 || fail "$(cat record.log)"
env EXPHIL_MODEL= EXPHIL_MODE=record EXPHIL_RECORD="$here/script.corpus" EXPHIL_TEACHER="$teacher" "$run" --core "$plugin" \
  --rom "$game" --frames 900 >record.log 2>&1 || fail "$(cat record.log)"
[ "$(content person.corpus)" = "$(content script.corpus)" ] ||
  fail "a person is recorded otherwise than the teacher"
frames() { "$exphil" info "$1" | sed -n 's/.*corpus of \([0-9]*\) frames.*/\1/p'; }
once=$(frames script.corpus)
[ "$once" -gt 800 ] || fail "of 900 frames only $once were recorded"
env EXPHIL_MODEL= EXPHIL_MODE=record EXPHIL_RECORD="$here/script.corpus" EXPHIL_TEACHER="$teacher" "$run" --core "$plugin" \
  --rom "$game" --frames 900 >record.log 2>&1 || fail "$(cat record.log)"
[ "$(frames script.corpus)" -eq $((2 * once)) ] || fail "the second recording was not added to the first"

# What is wrong is said, and the game goes on: the same memory as without the plugin. Of an error the runner's end tells, too;
# what may yet come right, or was not asked for, is a warning.
length=120
"$run" --core "$gambatte" --rom "$game" --frames $length >plain.out 2>/dev/null
told() { # the runner's end, what is said; then settings. Reads plain.out of as many frames
  wanted=$1 said=$2
  shift 2
  ended=0
  env "$@" "$run" --core "$plugin" --rom "$game" --frames "$length" >told.out 2>told.log || ended=$?
  [ -z "$said" ] || grep -qF "$said" told.log || fail "$*: expected '$said', got: $(cat told.log)"
  [ "$ended" = "$wanted" ] || fail "$*: the runner ends with $ended: $(cat told.log)"
  [ "$(value told.out 'memory ')" = "$(value plain.out 'memory ')" ] || fail "$*: the game went another way"
}
refuse() { told 1 "$@"; }
unsaid() { # what must not be said of the last settings
  if grep -qF "$1" told.log; then fail "'$1' is said: $(cat told.log)"; fi
}
changed() { sed "$1" "$EXPHIL_MAP" >"$2.exphil"; }
head -c 5000 gambatte.safetensors >torn.safetensors
changed 's/^float own /float mine /' other
changed '/^float pause/d' fewer
changed 's/classes 3/classes 4/' longer
changed 's/^layout .*/layout golf/' golf
changed 's/u8 scale/u9 scale/' broken
changed 's/^memory .*/memory rtc/' absent
changed 's/^memory .*/memory system/' outside
changed 's/"PONG"/"GOLF"/' game
changed 's/^episode/when match > 100\nepisode/' never
changed '/^state/d' stateless
changed 's/^state .*/state 0x1FFF0000 22/' far
changed 's/^float ball_x\(.*\) scale.*/id ball_x\1 entries 1/' narrow
refuse 'torn.safetensors' EXPHIL_MODEL=torn.safetensors
refuse 'torn.safetensors' EXPHIL_MODEL=torn.safetensors EXPHIL_MODE=play
unsaid 'no policy to play'
refuse 'nothing.safetensors' EXPHIL_MODEL=nothing.safetensors
refuse 'gambatte.safetensors: the floats of the map have other names' EXPHIL_MAP=other.exphil EXPHIL_MODE=play
unsaid 'no policy to play'
refuse 'the map has 6 floats, the weights 7' EXPHIL_MAP=fewer.exphil
refuse "the map has head 'move' of 4 classes, neutral 0, the weights 'move' of 3 classes, neutral 0" EXPHIL_MAP=longer.exphil
refuse 'the map is of layout golf and codec updown, the weights of pong and updown' EXPHIL_MAP=golf.exphil
refuse "broken.exphil:13: type 'u9'" EXPHIL_MAP=broken.exphil
refuse 'none.exphil: No such file' EXPHIL_MAP=none.exphil
refuse "absent.exphil:13: address 0xC008 of 'ball_x': this core shows no memory 'rtc'" EXPHIL_MAP=absent.exphil
refuse "outside.exphil:13: address 0xC008 of 'ball_x': 'system' has 0x2000 bytes" EXPHIL_MAP=outside.exphil
refuse "mode 'dance'" EXPHIL_MODE=dance
refuse 'no policy to play: ' EXPHIL_MODE=play EXPHIL_MODEL=
told 0 'pong.safetensors is not there: no policy plays (EXPHIL_MODE=record makes a recording)' EXPHIL_MODEL=
told 0 '' EXPHIL_MODE=off EXPHIL_MODEL=
unsaid 'no policy'
refuse 'person.corpus: the file was recorded with another map' EXPHIL_MODE=record EXPHIL_RECORD=person.corpus EXPHIL_MAP=other.exphil
refuse 'torn.safetensors' EXPHIL_MODE=record EXPHIL_RECORD=torn.safetensors
refuse "EXPHIL_RECORD_FRAMES 'abc' is no whole number" EXPHIL_MODE=record EXPHIL_RECORD=x.corpus EXPHIL_RECORD_FRAMES=abc
refuse "EXPHIL_RECORD_FRAMES '0' is no whole number" EXPHIL_MODE=record EXPHIL_RECORD=x.corpus EXPHIL_RECORD_FRAMES=0
refuse "EXPHIL_SEED '7up' is no whole number" EXPHIL_SEED=7up
refuse "EXPHIL_TRACE_FRAMES '-1' is no whole number" EXPHIL_TRACE_FILE=x.trace EXPHIL_TRACE_FRAMES=-1 EXPHIL_MODE=off
refuse "EXPHIL_DISTURB 'half' is no whole number" EXPHIL_MODE=off EXPHIL_TEACHER="$teacher" EXPHIL_DISTURB=half
refuse "port '2x' is not 1 to 16" EXPHIL_MODE=off EXPHIL_PORT=2x
if "$run" --core "$gambatte" --rom "$game" --frames many >told.out 2>told.log; then fail "--frames many is taken"; fi
grep -qF -- "--frames wants a whole number, not 'many'" told.log || fail "--frames many: $(cat told.log)"

# A recording with a teacher, or disturbed, is that or none: no file comes, and one that is there stays as it is.
cp script.corpus before.corpus
for corpus in x.corpus script.corpus; do
  record="EXPHIL_MODEL= EXPHIL_MODE=record EXPHIL_RECORD=$corpus" why='nothing is recorded: its teacher'
  # shellcheck disable=SC2086
  for said in 'no teacher: broken.exphil' "$why"; do refuse "$said" $record EXPHIL_TEACHER=broken.exphil; done
  # shellcheck disable=SC2086
  for said in exphil_teacher "$why"; do refuse "$said" $record EXPHIL_TEACHER="$plugin"; done
  # shellcheck disable=SC2086
  {
    refuse "stateless.exphil has no line 'state" $record EXPHIL_MAP=stateless.exphil EXPHIL_TEACHER="$teacher"
    refuse "far.exphil:8: the teacher's 22 bytes at 0x1FFF0000 are not there" $record EXPHIL_MAP=far.exphil EXPHIL_TEACHER="$teacher"
    refuse "EXPHIL_DISTURB '500' is no whole number" $record EXPHIL_TEACHER="$teacher" EXPHIL_DISTURB=500
    refuse 'EXPHIL_DISTURB is of a teacher' $record EXPHIL_DISTURB=50
  }
done
[ ! -e x.corpus ] || fail "there is a recording without its teacher"
cmp before.corpus script.corpus || fail "a recording without its teacher was added to a good one"

# A game that never begins, and a recording of nothing, are said, and why.
nothing() { # the reason, then settings
  said=$1
  shift
  refuse "nothing was recorded: $said" EXPHIL_MODEL= EXPHIL_MODE=record EXPHIL_RECORD=x.corpus "$@"
  [ ! -e x.corpus ] || fail "$*: nothing was recorded into a file"
}
nothing 'game.exphil:7: the bytes at 0xC000 are not "GOLF": another game, or another '"'memory'?" EXPHIL_MAP=game.exphil
nothing "never.exphil:23: 'when match > 100' does not hold" EXPHIL_MAP=never.exphil
nothing 'the map does not fit, as is said above' EXPHIL_MAP=narrow.exphil
grep -q "narrow.exphil:13: id 'ball_x' is [0-9]*, its entries are 0 to 0; such frames are neither" told.log ||
  fail "an id beyond its entries: $(cat told.log)"
plain() { # so many frames from here on
  length=$1
  "$run" --core "$gambatte" --rom "$game" --frames "$length" >plain.out 2>/dev/null
}
plain 20
nothing 'no episode lasted 30 frames' EXPHIL_MAP="$EXPHIL_MAP"
plain 620
told 0 'in 600 frames the game has not begun: game.exphil:7: the bytes' EXPHIL_MAP=game.exphil
[ "$(grep -c '^exphil: in 600 frames' told.log)" = 1 ] || fail "a game that never begins: $(cat told.log)"
told 0 "has not begun: never.exphil:23: 'when match > 100' does not hold" EXPHIL_MAP=never.exphil
told 0 '' EXPHIL_MAP=game.exphil EXPHIL_MODE=off
unsaid 'in 600 frames'
plain 720
told 0 'the core has not asked for the pad of port 9' EXPHIL_PORT=9
seat() { # the runner's end, what is said, then its options
  wanted=$1 said=$2
  shift 2
  ended=0
  "$run" --core "$gambatte" --rom "$game" --frames 60 "$@" >told.out 2>told.log || ended=$?
  [ $ended = "$wanted" ] || fail "$*: the runner ends with $ended"
  grep -qF "$said" told.log || fail "$*: expected '$said', got: $(cat told.log)"
}
seat 1 'the game has not begun: game.exphil:7: the bytes' --seat game.exphil random
seat 1 "never.exphil:23: 'when match > 100'" --score never.exphil
changed '/^score/d' scoreless
seat 2 "scoreless.exphil has no line 'score" --score scoreless.exphil
# What plays is said, of what plays alone.
env "$run" --core "$plugin" --rom "$game" --frames 10 --verbose >told.out 2>told.log
grep -qF 'gambatte.safetensors plays port 1, sampled actions' told.log || fail "who plays: $(cat told.log)"
env EXPHIL_MODE=record EXPHIL_RECORD=x.corpus "$run" --core "$plugin" --rom "$game" --frames 10 --verbose >told.out 2>told.log ||
  true
grep -qF 'recording port 1 to x.corpus' told.log || fail "what records: $(cat told.log)"
unsaid 'plays port'
no_core() {
  said=$1
  shift
  if env "$@" "$run" --core "$plugin" --rom "$game" >told.out 2>told.log; then fail "$*: there is a core"; fi
  grep -qF "$said" told.log || fail "$*: expected '$said', got: $(cat told.log)"
}
no_core 'nowhere.so' EXPHIL_CORE=nowhere.so
no_core 'broken.exphil' EXPHIL_CORE="$here/broken.exphil"
no_core 'no libretro core' EXPHIL_CORE="$teacher"
no_core 'is this plugin, not a core' EXPHIL_CORE="$plugin"
no_core 'which core?' EXPHIL_CORE=
# Under sanitizers: maps, pads, states, two plugins in one process, and a core that shows no memory.
sanitize='-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all'
echo 'int main(void) { return 0; }' >empty.c
# shellcheck disable=SC2086
if ! ${CC:-cc} $sanitize empty.c -o empty 2>/dev/null; then
  sanitize=
  echo "libretro: no sanitizers in this compiler: the attacks run without"
fi
build() { # output, then sources and options
  output=$1
  shift
  # shellcheck disable=SC2046,SC2086
  ${CC:-cc} -std=c11 -g -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror $sanitize -Itree/libretro $(pkg-config --cflags exphil) \
    -o "$output" "$@" "$(pkg-config --variable=libdir exphil)/libexphil.a" -lm -pthread -ldl
}
tree=tree/libretro
build checked.so -fPIC -shared -fvisibility=hidden -Wl,--exclude-libs,ALL $tree/plugin*.c $tree/game_map*.c $tree/core_*.c \
  $tree/system_posix.c
build libretro_check "$source/tests/hosts/libretro_check.c" $tree/game_map*.c $tree/core_*.c $tree/system_posix.c
${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -fPIC -shared -o fake_core.so "$source/tests/hosts/libretro_core.c"
cp checked.so checked_copy.so
export ASAN_OPTIONS=detect_leaks=0 # of cores
mkdir -p maps
./libretro_check maps maps || fail "maps"
./libretro_check bus || fail "the bus"
sed 's/^memory system/memory bus/' maps/tried.exphil | while read -r word name address rest; do
  case "$word" in
    float|id|raw) echo "$word $name $((0xA000 + address)) $rest" ;;
    magic|state) echo "$word $((0xA000 + name)) $address $rest" ;;
    *) echo "$word $name $address $rest" ;;
  esac
done >maps/bus.exphil
fake() { env EXPHIL_CORE="$here/fake_core.so" EXPHIL_TEACHER="$here/fake_core.so" EXPHIL_MODEL= EXPHIL_MODE=record "$@"; }
fake EXPHIL_MAP=maps/tried.exphil EXPHIL_RECORD=system.corpus ./libretro_check pads ./checked.so 2>pads.log || fail "$(cat pads.log)"
fake FAKE_MEMORY=bus EXPHIL_MAP=maps/bus.exphil EXPHIL_RECORD=bus.corpus ./libretro_check pads ./checked.so 2>pads.log ||
  fail "$(cat pads.log)"
[ "$(content system.corpus)" = "$(content bus.corpus)" ] || fail "bus and system memory give other rows"
for map in tried bus; do
  if fake FAKE_MEMORY=none EXPHIL_MAP=maps/$map.exphil EXPHIL_RECORD=none.corpus "$run" --core "$plugin" --rom ./empty.c \
    --frames 10 >none.out 2>none.log; then fail "a core without memory is recorded"; fi
  case $map in bus) why="0xA004 of 'big': the core shows no memory of its 'bus' there" ;; *)
    why="0x0004 of 'big': this core shows no memory 'system'" ;; esac
  grep -qF "maps/$map.exphil:7: address $why" none.log ||
    fail "a core without memory is not told: $(cat none.log)"
done
# A bus that points nowhere is one without memory.
for kind in null hollow; do
  fake FAKE_MEMORY=$kind EXPHIL_MAP=maps/bus.exphil EXPHIL_RECORD=none.corpus "$run" --core "$plugin" --rom ./empty.c \
    --frames 10 >none.out 2>none.log || true
  grep -qF "the core shows no memory of its 'bus' there, nor anywhere" none.log || fail "a $kind bus: $(cat none.log)"
done
# A teacher that says what cannot be ends the recording; what it said before is kept.
if fake FAKE_TEACHER=wild EXPHIL_MAP=maps/tried.exphil EXPHIL_RECORD=wild.corpus "$run" --core "$plugin" --rom ./empty.c \
  --frames 300 >wild.out 2>wild.log; then fail "a wild teacher is recorded"; fi
grep -q "^exphil: the teacher's action 99 is none of head 'keys'" wild.log || fail "a wild teacher: $(cat wild.log)"
grep -q '^exphil: recording stops; 199 frames are saved' wild.log || fail "a wild teacher: $(cat wild.log)"
[ "$(frames wild.corpus)" = 199 ] || fail "of 199 frames before a wild action $(frames wild.corpus) are recorded"
# Weights of another id.
"$exphil" train system.corpus --out fake.safetensors --force --quiet --blocks mlp --hidden 8 --head-width 8 --no-previous-action \
  --updates 1 >fake.train 2>&1 || fail "$(cat fake.train)"
sed 's/entries 4/entries 5/' maps/tried.exphil >maps/wider.exphil
fake EXPHIL_MODEL=fake.safetensors EXPHIL_MODE=play EXPHIL_MAP=maps/wider.exphil "$run" --core "$plugin" --rom ./empty.c \
  --frames 1 >wider.out 2>wider.log || true
grep -q "the map has id 'low' entries 5 width 3, the weights 'low' entries 4 width 3" wider.log || fail "$(cat wider.log)"
# A score of no number does not count.
sed 's/^float wave/raw wave/; s/^score .*/score wave wave/' maps/tried.exphil >maps/wild.exphil
fake EXPHIL_MODE=off EXPHIL_MAP=maps/wild.exphil ./libretro_check wild ./checked.so 2>wild.log || fail "$(cat wild.log)"
grep -q 'exphil: 300 frames, score 300:300' wild.log || fail "a wild score: $(cat wild.log)"
# A folder that is missing is told as the game is loaded, and one that is there is left as it is.
mkdir -p tidy
for recorded in tidy/x nowhere/x /proc/x; do
  fake EXPHIL_MAP=maps/tried.exphil EXPHIL_RECORD=$recorded.corpus "$run" --core "$plugin" --rom ./empty.c --frames 1 \
    >begin.out 2>begin.log || true # of one frame there is no episode
  said=$(grep -c "^exphil: $recorded.corpus cannot be written: No such file or directory; mend that" begin.log || true)
  case $recorded in tidy/*) wanted=0 ;; *) wanted=1 ;; esac
  [ "$said" = $wanted ] || fail "recording to $recorded: $(cat begin.log)"
done
[ -z "$(ls -A tidy)" ] || fail "a recording leaves $(ls -A tidy)"
# A recording that cannot be saved says so once, and is saved when it can be at the end.
fake EXPHIL_MAP=maps/tried.exphil EXPHIL_RECORD=late/x.corpus ./libretro_check late ./checked.so 7600 late 2>late.log ||
  fail "$(cat late.log)"
[ "$(grep -c '^exphil: recording stops' late.log)" = 1 ] || fail "a save that fails: $(cat late.log)"
grep -q 'frames are kept until the game ends' late.log || fail "a save that fails: $(cat late.log)"
[ "$(frames late/x.corpus)" -ge 7200 ] || fail "rows are lost: $(cat late.log)"
sed '/^episode/d' maps/tried.exphil >maps/long.exphil
fake EXPHIL_MAP=maps/long.exphil EXPHIL_RECORD=never/x.corpus ./libretro_check late ./checked.so 7600 elsewhere 2>never.log ||
  fail "$(cat never.log)"
[ "$(grep -c '^exphil: 7[0-9]* recorded frames are lost: never/x.corpus: ' never.log)" = 1 ] ||
  fail "a recording that is lost: $(cat never.log)"
# Of two that record to one file the second is refused when its game is loaded; where the folder comes later, when it saves.
rivals() { # folder, the frames in the file, what the other is told
  fake EXPHIL_MAP=maps/tried.exphil EXPHIL_RECORD="$1/x.corpus" ./libretro_check rivals ./checked.so ./checked_copy.so "$1" \
    2>rivals.log || fail "$(cat rivals.log)"
  [ "$(frames "$1/x.corpus")" = "$2" ] || fail "two recorders: $(frames "$1/x.corpus") frames: $(cat rivals.log)"
  grep -q "^exphil: $3" rivals.log || fail "two recorders: $(cat rivals.log)"
}
mkdir rival
rivals rival 299 'recording stops: rival/x.corpus: somebody else is recording to it'
rivals rival 598 'recording stops: rival/x.corpus: somebody else is recording to it'
rivals rival_late 299 '299 recorded frames are lost: rival_late/x.corpus: it was written by somebody else meanwhile'
[ "$(ls rival rival_late)" = "$(printf 'rival:\nx.corpus\n\nrival_late:\nx.corpus')" ] || fail "$(ls rival rival_late) is left"
# What the library would not write in the end is refused at the start.
unwritable() { # file, why
  fake EXPHIL_MAP=maps/tried.exphil EXPHIL_RECORD="$1" "$run" --core "$plugin" --rom ./empty.c --frames 1 >begin.out 2>begin.log &&
    fail "$1 is recorded to"
  grep -qF "exphil: recording stops: $1: $2" begin.log || fail "recording to $1: $(cat begin.log)"
}
ln -s x.corpus tidy/link.corpus
mkfifo tidy/pipe
unwritable tidy/link.corpus 'not a regular file'
unwritable tidy/pipe 'not a regular file'
unwritable "tidy/$(printf '%0245d' 0)" 'File name too long'
rm tidy/link.corpus
# A pipe for a map or a trace would keep the game waiting.
fake EXPHIL_MAP=tidy/pipe EXPHIL_RECORD=pipe.corpus timeout 600 "$run" --core "$plugin" --rom ./empty.c --frames 1 >pipe.out \
  2>pipe.log || true
grep -q '^exphil: tidy/pipe: not a regular file' pipe.log || fail "a map that is a pipe: $(cat pipe.log)"
env EXPHIL_TRACE_FILE=tidy/pipe timeout 600 "$run" --core "$plugin" --rom "$game" --frames 1 >pipe.out 2>pipe.log || true
grep -q '^exphil: tidy/pipe: not a regular file: no trace' pipe.log || fail "a trace into a pipe: $(cat pipe.log)"
# The second plugin needs a copy of the core, and cannot have it.
if TMPDIR=$here/nowhere ./libretro_check twice ./checked.so ./checked_copy.so "$game" >twice.log 2>&1; then
  fail "a copy in no folder"
fi
grep -q 'no copy of it can be made in .*nowhere: No such file' twice.log || fail "no copy: $(cat twice.log)"
./libretro_check states ./checked.so "$game" >states.log 2>&1 || fail "$(cat states.log)"
grep -q 'no whole part of this plugin: the policy starts anew' states.log || fail "foreign states are not told"
./libretro_check twice ./checked.so ./checked_copy.so "$game" >twice.log 2>&1 || fail "$(cat twice.log)"

# Stock RetroArch without a screen: the plugin finds core, map and weights by their names; then with run-ahead, which loads a
# state in every frame. The score must be the runner's.
unset EXPHIL_CORE EXPHIL_MAP EXPHIL_MODEL
mkdir -p frontend/home frontend/info
cd frontend
cp "$plugin" exphil_nestopia_libretro.so
cp ../built/pong.nes pong.nes
cp "$pong/nes/pong_nes_left.exphil" pong.exphil
cp ../nestopia.safetensors pong.safetensors
cat >info/exphil_nestopia_libretro.info <<END
display_name = "Nestopia with a policy"
supported_extensions = "nes"
savestate = "true"
savestate_features = "deterministic"
END
for driver in video audio input input_joypad menu camera location; do echo "${driver}_driver = \"null\""; done >plain.cfg
cat >>plain.cfg <<END
fastforward_ratio = "0.0"
config_save_on_exit = "false"
libretro_directory = "$PWD"
libretro_info_path = "$PWD/info"
system_directory = "$PWD/home"
savefile_directory = "$PWD/home"
savestate_directory = "$PWD/home"
END
{ cat plain.cfg && echo 'run_ahead_enabled = "true"' && echo 'run_ahead_frames = "2"'; } >ahead.cfg
echo 'run_ahead_secondary_instance = "false"' >>ahead.cfg
{ cat plain.cfg && echo 'run_ahead_enabled = "true"' && echo 'run_ahead_frames = "2"'; } >second.cfg
echo 'run_ahead_secondary_instance = "true"' >>second.cfg
"$run" --core ./exphil_nestopia_libretro.so --rom pong.nes --frames 600 --score pong.exphil >runner.out 2>/dev/null
for config in plain ahead second; do
  env HOME="$PWD/home" XDG_CONFIG_HOME="$PWD/home" XDG_RUNTIME_DIR="$PWD/home" timeout 600 retroarch --verbose \
    --config $config.cfg -L "$PWD/exphil_nestopia_libretro.so" "$PWD/pong.nes" --max-frames=600 >$config.log 2>&1 ||
    fail "RetroArch ($config): $(tail -n 20 $config.log)"
  grep -q "exphil: 600 frames, score $(value runner.out 'score ')" $config.log ||
    fail "RetroArch ($config) does not say 'score $(value runner.out 'score ')': $(grep exphil: $config.log)"
done
grep -q 'exphil: 1[0-9][0-9][0-9] decisions' ahead.log || fail "RetroArch did not run ahead: $(grep exphil: ahead.log)"
cd ..
echo "libretro: RetroArch: 600 frames, score $(value frontend/runner.out 'score '), the same with run-ahead"
