#!/bin/sh
# Hosts on Windows, under wine: the examples, Slippi's chain and the libretro plugin are built by CMake as a user would, against
# the installed DLL and static library, and run in a folder with spaces and letters of other alphabets. What comes out is what
# the same sources give on this machine, byte for byte.
#   hosts.sh SOURCE NATIVE-PROGRAM [TARGET]      NATIVE-PROGRAM: exphil of this machine; TARGET: x86_64-windows
# Left out, for they are of POSIX alone: examples/apart.c (fork, a socket pair), examples/dolphin (a process' memory in /proc or
# /dev/shm), tests/hosts/guest_plugin.c (fork, small stacks of pthread). wine is not Windows: nothing here tells of NTFS, of the
# pipes of its kernel, or of Slippi's Dolphin and RetroArch.
set -eu
export LC_ALL=C.UTF-8 # of paths on their way into wine
source=$1 exphil=$2 target=${3:-x86_64-windows}
systems=$source/tools/systems
built=$("$systems" folder "$target")
place=$built/hosts
libraries=$built/libraries
strict="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wvla -Werror"

fail() { echo "hosts: $*" >&2; exit 1; }
skip() { echo "SKIPPED: $*"; exit 0; }
run() { timeout 600 "$systems" run "$target" "$@"; }
# A path as Windows' programs have it.
plain() { tr -d '\r' <"$1"; }
same() { cmp "$1" "$2" || fail "$3"; }

echo '#include <libretro-common/libretro.h>' | ${CC:-cc} -E - >/dev/null 2>&1 || skip "no libretro.h (retroarch-dev)"
pkg-config --exists libenet jansson || skip "no libenet or jansson"

# ---- build -----------------------------------------------------------------------------------------------------------

rm -rf "$place"
mkdir -p "$place/logs" "$place/include" "$place/native"
cp -R "$(echo '#include <libretro-common/libretro.h>' | ${CC:-cc} -E -M - | tr ' ' '\n' | sed -n 's,/libretro\.h$,,p' | head -n 1)" \
  "$place/include/libretro-common"
logged() { # name command...
  log=$place/logs/$1
  shift
  "$@" >"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "$*"; }
}
logged build "$systems" build "$target" exphil exphil_static exphil_program example_minimal example_bot example_train
logged enet "$systems" libraries "$target" enet
logged install cmake --install "$built" --prefix "$place/prefix"
config=$(find "$place/prefix" -name exphilConfig.cmake -printf '%h\n' | head -n 1)
[ -n "$config" ] || fail "nothing is installed"

for part in slippi libretro; do
  export PKG_CONFIG_LIBDIR="$libraries/lib/pkgconfig"
  logged "$part.configure" cmake -G Ninja -S "$source/examples/$part" -B "$place/$part" -Dexphil_DIR="$config" \
    -DCMAKE_TOOLCHAIN_FILE="$source/cmake/systems/$target.cmake" -DEXPHIL_WRAPPERS="$built/../bin" -DCMAKE_BUILD_TYPE=Release \
    -DEXPHIL_SLIPPI_TESTS=ON -DLIBRETRO_INCLUDE="$place/include" -DCMAKE_C_FLAGS="$strict -fno-sanitize=undefined"
  logged "$part.build" cmake --build "$place/$part"
  unset PKG_CONFIG_LIBDIR
done
compiler=$(sed -n 's/^set(CMAKE_C_COMPILER "\(.*\)").*/\1/p' "$place"/slippi/CMakeFiles/*/CMakeCCompiler.cmake)
# With other options, or from a folder of another depth, zig would make its run-time anew, which takes minutes.
cd "$place/slippi"
logged core "$compiler" -std=c11 -O3 -DNDEBUG -g0 -fno-sanitize=undefined -shared -isystem "$place/include" -o "$place/fake_libretro.dll" \
  "$source/tests/hosts/libretro_core.c"

# The same of this machine: its library is the static one that the native program was built with.
static=$(dirname "$exphil")/../libexphil.a
[ -e "$static" ] || fail "no libexphil.a beside $exphil"
native() { # name source...
  name=$1
  shift
  # shellcheck disable=SC2046
  logged "native.$name" "${CC:-cc}" -std=c11 -O1 -I"$source/include" -I"$source/examples/slippi" $(pkg-config --cflags libenet jansson) \
    -o "$place/native/$name" "$@" "$static" $(pkg-config --libs libenet jansson) -lm -pthread -ldl
}
slippi=$source/examples/slippi libretro=$source/examples/libretro
parts="$slippi/spectator.c $slippi/spectator_message.c $slippi/controller.c $slippi/player.c $slippi/pipe_posix.c $slippi/system_posix.c"
cores="$libretro/game_map.c $libretro/game_map_parse.c $libretro/core_library.c $libretro/core_memory.c $libretro/system_posix.c"
native bot "$source/examples/bot.c"
native train "$source/examples/train.c"
native minimal "$source/examples/minimal.c"
# shellcheck disable=SC2086
{
  native slippi_bot $slippi/slippi_bot.c $parts
  native serve_slp $slippi/serve_slp.c $parts
  native pipe_copy $slippi/tests/pipe_copy.c $slippi/tests/peer_posix.c $parts
  native run $libretro/run*.c $libretro/core_host.c $cores
  native plugin.so -fPIC -shared -fvisibility=hidden -Wl,--exclude-libs,ALL $libretro/plugin*.c $cores
}
logged native.core "${CC:-cc}" -std=c11 -O1 -fPIC -shared -o "$place/native/fake_libretro.so" "$source/tests/hosts/libretro_core.c"

# ---- a folder as people have them ------------------------------------------------------------------------------------

work="$place/Übungen und ゲーム"
mkdir -p "$work/Spiele ü"
cd "$work"
cp "$built"/*.dll "$built"/examples/*.exe "$place"/slippi/*.exe "$place"/libretro/*.exe "$place"/libretro/*.dll .
for seed in 1 2 3; do "$exphil" drill --force --seed $seed --frames 600 --out "Spiele ü/Übung $seed.slp" >/dev/null; done
head -c 100 "Spiele ü/Übung 1.slp" >"Spiele ü/Rest ゲ.slp"
"$exphil" drill --force --frames 1200 --out game.slp >/dev/null
"$exphil" drill --force --frames 120 --seed 3 --out small.slp >/dev/null

# ---- C ---------------------------------------------------------------------------------------------------------------

# Weights of a folder of replays, a damaged one among them: the same file.
"$place/native/train" -n 40 'Politik ポ.native' "Spiele ü" >train.native 2>/dev/null
run ./train.exe -n 40 'Politik ポ.safetensors' "Spiele ü" >train.log 2>train.err || fail "train: $(cat train.err)"
same 'Politik ポ.native' 'Politik ポ.safetensors' "train gives other weights than on this machine"
grep -q 'Rest ゲ.slp: EXPHIL_E_FORMAT' train.err || fail "train does not tell of the damaged replay: $(cat train.err)"
run ./train.exe -n 1 'Spiele ü' game.slp >refused.log 2>&1 && fail "train wrote a folder"
grep -q "^train: Spiele ü cannot be written: " refused.log || fail "train: $(cat refused.log)"

# Rollback and a straight run press the same, which is what is pressed here.
for game in "" "Spiele ü/Übung 2.slp"; do
  "$place/native/bot" --fast -n 1830 'Politik ポ.safetensors' ${game:+"$game"} | cut -d' ' -f2 >bot.native
  head -n 1 bot.native >bot.wanted
  for how in --fast --straight; do
    run ./bot.exe --fast $how -n 1830 'Politik ポ.safetensors' ${game:+"$game"} >bot.log || fail "bot $how: $(cat bot.log)"
    plain bot.log | head -n 1 | cut -d' ' -f2 >bot.got
    same bot.wanted bot.got "bot $how presses otherwise than on this machine"
  done
done
run ./bot.exe -n 90 'Politik ポ.safetensors' >paced.log || fail "bot at 60 Hz: $(cat paced.log)"
run ./bot.exe 'nichts ゲ.safetensors' >/dev/null 2>bot.err && fail "bot played a file that is not there"
grep -q 'EXPHIL_E_IO: .*nichts ゲ.safetensors' bot.err || fail "bot does not say what is missing: $(cat bot.err)"
# README's program takes its argument as the code page of the machine has it: a plain name.
cp 'Politik ポ.safetensors' plain.safetensors
run ./minimal.exe plain.safetensors >minimal.log || fail "minimal: $(cat minimal.log)"
"$place/native/minimal" plain.safetensors >minimal.native
plain minimal.log | cmp - minimal.native || fail "README's program presses otherwise than on this machine"
echo "hosts: bot, train and minimal as on this machine: weights, actions $(cat bot.wanted)"

# ---- Slippi: replay, spectator stream, bot, pipe ---------------------------------------------------------------------

"$exphil" train --force --quiet --no-previous-action --blocks gru --hidden 32 --head-width 32 --rate 0.01 --updates 200 \
  --out 'Füchse ゲ.safetensors' game.slp >/dev/null 2>&1
check() { # words of its last line, then the command
  words=$1
  shift
  run "$@" >check.log 2>&1 || fail "$*: $(cat check.log)"
  plain check.log | tail -n 1 | grep -q "$words" || fail "$*: $(cat check.log)"
}
check '^controller: fine$' ./controller_check.exe '\\.\pipe\exphil_check'
check '^controller: fine$' ./controller_check.exe '\\.\pipe\exphil Prüfung ゲ'
check '^hostile: ' ./hostile_check.exe small.slp
check '^messages: ' ./message_mutations.exe 5000
check '^player: ' ./player_check.exe 'Füchse ゲ.safetensors' game.slp none.safetensors

# await LINE FILE: two minutes end what would never come.
await() {
  for _ in $(seq 6000); do
    grep -q "$1" "$2" 2>/dev/null && return
    sleep 0.02
  done
  fail "never said: $1: $(cat "$2")"
}

# chain SERVER BOT COPY PIPE FILE [OPTIONS OF THE SERVER]: what the game would have read of a bot that sees a served game.
chain() {
  serve=$1 bot=$2 copy=$3 pipe=$4 file=$5
  shift 5
  : >copy.log
  : >serve.log
  # shellcheck disable=SC2086
  $copy "$pipe" "$file" >copy.log 2>&1 &
  copying=$!
  await '^reading' copy.log # one after the other: wine's own server starts with the first
  # shellcheck disable=SC2086
  $serve --port 0 --fast --once "$@" game.slp >serve.log 2>&1 &
  serving=$!
  await '^port ' serve.log
  port=$(plain serve.log | sed -n 's/^port //p')
  # shellcheck disable=SC2086
  $bot --flush --quiet --seed 7 --games 1 --port "$port" 'Füchse ゲ.safetensors' "$pipe" >bot.log 2>&1 ||
    fail "slippi_bot: $(cat bot.log)"
  grep -q ', 0 not read' bot.log || { kill $copying; fail "frames are lost on their way into $pipe: $(cat bot.log)"; }
  wait $copying || fail "pipe_copy: $(cat copy.log)"
  wait $serving || fail "serve_slp: $(cat serve.log)"
}
windows="timeout 600 $systems run $target"
own=$place/native
chain "$own/serve_slp" "$own/slippi_bot" "$own/pipe_copy" pad here.txt
[ "$(grep -c '^FLUSH$' here.txt)" -gt 1000 ] && grep -q '^PRESS' here.txt || fail "nothing is pressed: nothing is compared"
chain "$windows ./serve_slp.exe" "$windows ./slippi_bot.exe" "$windows ./pipe_copy.exe" '\\.\pipe\slippibot1' windows.txt
same here.txt windows.txt "the pipe says otherwise than on this machine"
chain "$own/serve_slp" "$windows ./slippi_bot.exe" "$windows ./pipe_copy.exe" '\\.\pipe\slippibot4' mixed.txt
same here.txt mixed.txt "the pipe says otherwise, of a game that this machine serves"
chain "$own/serve_slp --inject 9" "$own/slippi_bot" "$own/pipe_copy" pad here_rollback.txt
chain "$windows ./serve_slp.exe --inject 9" "$windows ./slippi_bot.exe" "$windows ./pipe_copy.exe" \
  '\\.\pipe\slippibot2' windows_rollback.txt
same here_rollback.txt windows_rollback.txt "after rollbacks the pipe says otherwise"
# What a session in the same process decides, frame by frame, and over a lost connection: the reference is Windows' own program.
: >serve.log
run ./serve_slp.exe --port 0 --fast --once --cut 200 game.slp >serve.log 2>&1 &
serving=$!
await '^port ' serve.log
port=$(plain serve.log | sed -n 's/^port //p')
check '^pipe: [1-9][0-9]* frames as the session' ./pipe_check.exe '\\.\pipe\slippibot3' 'Füchse ゲ.safetensors' game.slp 1 500 0 \
  ./slippi_bot.exe --flush --quiet --seed 7 --port "$port" --player 1 --frames 500 --game-delay 0
kill $serving 2>/dev/null || :
wait $serving 2>/dev/null || :
# Nobody has made the pipe: the game is played, and it is told. A name that is none is refused.
: >serve.log
"$own/serve_slp" --port 0 --fast --once small.slp >serve.log 2>&1 &
serving=$!
await '^port ' serve.log
port=$(sed -n 's/^port //p' serve.log)
run ./slippi_bot.exe --games 1 --port "$port" 'Füchse ゲ.safetensors' '\\.\pipe\slippibot1' >lonely.log 2>&1 ||
  fail "a bot without a reader: $(cat lonely.log)"
wait $serving
grep -q ' 0 frames written' lonely.log || fail "a pipe that nobody made was written: $(cat lonely.log)"
for words in "'Füchse ゲ.safetensors' slippibot1:slippibot1: no pipe; Dolphin's are named" \
  "'\\\\.\\pipe\\slippibot1' 'Füchse ゲ.safetensors':a pipe; WEIGHTS come first"; do
  eval "run ./slippi_bot.exe ${words%%:*}" >refused.log 2>&1 && fail "slippi_bot ${words%%:*} is taken"
  plain refused.log | grep -qF "${words#*:}" || fail "slippi_bot does not say ${words#*:}: $(cat refused.log)"
done
echo "hosts: Slippi's pipe as on this machine: $(wc -c <here.txt) bytes, $(wc -c <here_rollback.txt) with rollbacks"

# ---- libretro --------------------------------------------------------------------------------------------------------

cp "$place/fake_libretro.dll" 'Kern ゲ_libretro.dll'
cat >'Karte ü.exphil' <<'END'
exphil-map 1
layout fake
codec  fake
memory system
magic 0 "FAKE"
state 0 32
float big 4 u16be scale 1/100
float wave 12 f32le
id low 11 u8 mask 0x0C entries 4 width 3
raw round 16 u8
episode round
score round round
head keys bits 3
press keys 0 a
press keys 1 b l
press keys 2 start
head stick classes 5 neutral 0
press stick 1 lx=-1
press stick 2 lx=1 ly=0.5
press stick 3 up
press stick 4 ry=-0.25
END
printf 'rom' >'Spiel ü.rom'
content() { "$exphil" info "$1" | sed -n 's/.*content //p'; }
# libretro WHERE FRAMES SAVES [SETTINGS]: the plugin around the core, then so many save states.
libretro() {
  where=$1 frames=$2 saves=$3
  shift 3
  case $where in
    here) env EXPHIL_CORE="$place/native/fake_libretro.so" EXPHIL_MAP='Karte ü.exphil' "$@" "$own/run" --core "$own/plugin.so" \
      --rom 'Spiel ü.rom' --frames "$frames" --score 'Karte ü.exphil' --drill "$saves" >"$where.out" 2>"$where.err" ;;
    windows) env EXPHIL_CORE='Kern ゲ_libretro.dll' EXPHIL_MAP='Karte ü.exphil' "$@" "$systems" run "$target" \
      ./exphil-libretro-run.exe --core ./exphil_libretro.dll --rom 'Spiel ü.rom' --frames "$frames" --score 'Karte ü.exphil' \
      --drill "$saves" >"$where.out" 2>"$where.err" ;;
  esac || fail "libretro $where: $(cat "$where.out" "$where.err")"
  plain "$where.out" | grep -E '^(score|memory|save states)' >"$where.result" || :
}
# A teacher is recorded, a policy learns it, it plays: rows, presses and save states as here.
rm -f 'Aufnahme ü'.*
libretro here 900 0 EXPHIL_MODE=record EXPHIL_RECORD='Aufnahme ü.native' EXPHIL_TEACHER="$place/native/fake_libretro.so"
libretro windows 900 0 EXPHIL_MODE=record EXPHIL_RECORD='Aufnahme ü.corpus' EXPHIL_TEACHER='Kern ゲ_libretro.dll'
[ "$(content 'Aufnahme ü.corpus')" = "$(content 'Aufnahme ü.native')" ] || fail "the plugin records otherwise than on this machine"
[ ! -e 'Aufnahme ü.corpus.exphil-lock' ] || fail "the lock of a recording stays"
"$exphil" train 'Aufnahme ü.corpus' --out 'Kern ゲ.safetensors' --force --quiet --blocks mlp --hidden 16 --head-width 16 \
  --no-previous-action --updates 30 >/dev/null 2>&1 || fail "the recording cannot be learnt from"
for choice in sampled likeliest; do
  for where in here windows; do
    libretro $where 600 10 EXPHIL_MODE=play EXPHIL_MODEL='Kern ゲ.safetensors' EXPHIL_CHOICE=$choice EXPHIL_TRACE_FILE="Spur ü.$where"
  done
  same here.result windows.result "the policy plays otherwise than on this machine: $(cat here.result windows.result)"
  same 'Spur ü.here' 'Spur ü.windows' "rows or logits are others than on this machine"
done
grep -q '^save states: 10 of 10 the same' windows.result || fail "save states: $(cat windows.result)"
# Found by their names: a copy of the plugin beside the core, map and weights beside the game.
cp exphil_libretro.dll 'exphil_Kern ゲ_libretro.dll'
cp 'Karte ü.exphil' 'Spiel ü.exphil'
cp 'Kern ゲ.safetensors' 'Spiel ü.safetensors'
run ./exphil-libretro-run.exe --core './exphil_Kern ゲ_libretro.dll' --rom 'Spiel ü.rom' --frames 600 --verbose >named.out 2>named.err ||
  fail "by name: $(cat named.out named.err)"
grep -q '^exphil: [1-9][0-9]* decisions' named.err || fail "by name nothing is decided: $(cat named.err)"
# What is not there is told in Windows' words, with its name.
for core in 'fehlt ゲ_libretro.dll' 'Karte ü.exphil'; do
  EXPHIL_CORE=$core run ./exphil-libretro-run.exe --core ./exphil_libretro.dll --rom 'Spiel ü.rom' --frames 1 >refused.log 2>&1 || :
  grep -q "$core: .*Windows error [0-9]" refused.log || fail "a core that is none: $(cat refused.log)"
done
echo "hosts: the libretro plugin as on this machine: $(tr '\n' ' ' <windows.result)"
