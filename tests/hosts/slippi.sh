#!/bin/sh
# examples/slippi against the installed library: live frames against file frames, a bot's pipe against a session, lost
# connections, hostile peers, messages changed at random, and its CMake build. The environment is that of every host suite.
set -eu
here=$EXPHIL_SOURCE/examples/slippi
exphil=$EXPHIL_PREFIX/bin/exphil
rounds=${EXPHIL_SLIPPI_ROUNDS:-150000}

fail() { echo "slippi: $*" >&2; exit 1; }

if [ "${1:-}" = bench ]; then echo "SKIPPED: slippi is a user of the C interface, which c.sh measures"; exit 0; fi
pkg-config --exists libenet jansson || { echo "SKIPPED: no libenet or jansson"; exit 0; }

# ---- build: plain cc, with sanitizers, with CMake ------------------------------------------------------------------

cp -r "$here" slippi
cd slippi
flags="-std=c11 -O2 -Wall -Wextra -Wpedantic -Wconversion -Werror -I. $(pkg-config --cflags exphil libenet jansson)"
libs="$(pkg-config --libs exphil libenet jansson) -pthread -lm"
parts="spectator spectator_message controller player pipe_posix system_posix"
for part in $parts slippi_bot serve_slp; do
    # shellcheck disable=SC2086
    ${CC:-cc} $flags -c -o $part.o $part.c
done
# shellcheck disable=SC2046,SC2086
{
    ar rc libexphil_slippi.a $(printf '%s.o ' $parts)
    for program in slippi_bot serve_slp; do ${CC:-cc} -o $program $program.o libexphil_slippi.a $libs; done
    for check in live_check hostile_check player_check; do
        ${CC:-cc} $flags -o $check tests/$check.c libexphil_slippi.a $libs
    done
    for check in pipe_check controller_check pipe_copy; do
        ${CC:-cc} $flags -o $check tests/$check.c tests/peer_posix.c libexphil_slippi.a $libs
    done
    # The emulator's side is cut out of README.md as it stands there.
    awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >exi_policy.c
    ${CC:-cc} $flags -DEXI_POLICY='"exi_policy.c"' -o exi_check tests/exi_check.c libexphil_slippi.a $libs
}

"$exphil" drill --out drill.slp --frames 1200 >/dev/null
"$exphil" drill --out small.slp --frames 120 --seed 3 >/dev/null
"$exphil" train --quiet --hidden 32 --head-width 32 --updates 60 --out w0.safetensors drill.slp >/dev/null
"$exphil" train --quiet --hidden 32 --head-width 32 --updates 60 --delay 3 --out w3.safetensors drill.slp >/dev/null

# Every timeout here ends what would hang: nothing depends on how long it is.

# ---- helpers -------------------------------------------------------------------------------------------------------

# serve [OPTIONS] GAME: sets port and server.
serve()
{
    : >server.log
    timeout 600 ./serve_slp --port "${fixed_port:-0}" "$@" >server.log 2>server.err &
    server=$!
    for _ in $(seq 6000); do
        port=$(sed -n 's/^port //p' server.log)
        [ -n "$port" ] && return
        sleep 0.02
    done
    cat server.err; fail "serve_slp $* does not start"
}

leave() { kill "$server" 2>/dev/null || :; wait "$server" 2>/dev/null || :; }

# live GAME SERVER_OPTIONS... -- CHECK_OPTIONS...
live()
{
    game=$1 options=
    shift
    while [ "$1" != -- ]; do options="$options $1"; shift; done
    shift
    # shellcheck disable=SC2086
    serve --fast --once $options "$game"
    timeout 600 ./live_check "$port" "$game" "$@" || { leave; fail "live_check $game $options"; }
    leave
}

# played GAME PLAYER FRAMES GAME_DELAY WEIGHTS SERVER_OPTIONS...
played()
{
    game=$1 player=$2 frames=$3 delay=$4 weights=$5
    shift 5
    serve --fast --once "$@" "$game"
    timeout 600 ./pipe_check bot.pipe "$weights" "$game" "$player" "$frames" "$delay" ./slippi_bot --flush --quiet --seed 7 \
        --port "$port" --player "$player" --frames "$frames" --game-delay "$delay" >played.log ||
        { cat played.log; leave; fail "the pipe of $game"; }
    leave
    grep '^pipe:' played.log
}

# refused LINE COMMAND...: the command fails at once and says that one line.
refused()
{
    line=$1
    shift
    timeout 600 "$@" >refused.log 2>&1 && fail "$* is taken"
    grep -qx "$line" refused.log && [ "$(wc -l <refused.log)" -eq 1 ] || { cat refused.log; fail "$* does not say: $line"; }
}

# await LINE FILE: two minutes end what would never come.
await()
{
    for _ in $(seq 6000); do
        grep -q "$1" "$2" && return
        sleep 0.02
    done
    cat "$2"; fail "never said: $1"
}

# told LINE FILE
told() { grep -q "$1" "$2" || { cat "$2"; fail "not told: $1"; }; }

# ---- the parts -----------------------------------------------------------------------------------------------------

./controller_check check.pipe
./hostile_check small.slp
./exi_check w0.safetensors drill.slp
./player_check w0.safetensors drill.slp other.safetensors
./player_check w3.safetensors drill.slp other.safetensors

# ---- live against file, and end to end --------------------------------------------------------------------------------

live drill.slp -- menu
live drill.slp --inject 20 -- again
live drill.slp --cut 400 -- lost
live drill.slp --inject 9 --cut 700 -- again lost
played drill.slp 1 1000 0 w0.safetensors
played drill.slp 2 300 0 w0.safetensors --cut 200
played drill.slp 1 300 0 w3.safetensors
played drill.slp 1 300 2 w3.safetensors

real=${EXPHIL_REPLAYS:-}/formats
if [ -f "$real/duplicate_game_end.slp" ] && [ -f "$real/v0.1.slp" ] && [ -f "$real/v2.0.slp" ] && [ -f "$real/v3.18.slp" ]; then
    live "$real/v0.1.slp" --
    live "$real/v2.0.slp" --cut 5000 -- lost
    live "$real/v3.18.slp" --inject 15 -- again
    live "$real/duplicate_game_end.slp" -- again
    live "$real/duplicate_game_end.slp" --cut 3000 -- again lost
    played "$real/duplicate_game_end.slp" 1 500 0 w0.safetensors
    played "$real/duplicate_game_end.slp" 2 300 2 w3.safetensors --cut 333
else
    echo "SKIPPED: no real replays"
fi

# ---- the programs --------------------------------------------------------------------------------------------------

# Garbage from more clients than it has places; then a good one is served. Its options are checked.
serve --fast small.slp
./hostile_check client "$port" || { leave; fail "hostile_check client"; }
timeout 600 ./live_check "$port" small.slp >/dev/null || { leave; fail "serve_slp after garbage"; }
leave
head -c 300 small.slp >cut.slp
head -c 60000 drill.slp >damaged.slp
serve damaged.slp
refused "serve_slp: UDP port $port: .* in use" ./serve_slp --port "$port" small.slp
leave
told '^serve_slp: damaged.slp: damaged, events end after 5[0-9]* of [0-9]* bytes; [0-9]* frames are served$' server.err
refused 'serve_slp: nothing.slp: No such file or directory' ./serve_slp --port 0 nothing.slp
refused 'serve_slp: w0.safetensors: does not begin as a .slp does' ./serve_slp --port 0 w0.safetensors
refused 'serve_slp: cut.slp: has no complete frame: damaged, or no game' ./serve_slp --port 0 cut.slp
[ ! -f "$real/corrupt.slp" ] || refused 'serve_slp: .*: has no complete frame.*' ./serve_slp --port 0 "$real/corrupt.slp"
refused 'serve_slp: --playr: no such option; .*' ./serve_slp --playr 3 small.slp
refused 'serve_slp: --port wants a whole number from 0 to 65535' ./serve_slp --port x small.slp
refused 'serve_slp: --cut wants a whole number from 0 to .*' ./serve_slp --cut 2.5 small.slp
refused 'serve_slp: --speed wants a number from .*' ./serve_slp --speed
refused 'serve_slp: GAME.slp: one, .*' ./serve_slp small.slp drill.slp

# Nobody answers: after ten seconds it is told what may be wrong. Looked at below.
timeout 600 ./slippi_bot --port 2 w0.safetensors hint.pipe >hint.log 2>&1 &
hinted=$!

# A bot without a game and without a reader; the game comes, ends, and another one comes from another server.
serve --fast small.slp && leave
fixed_port=$port
timeout 600 ./slippi_bot --port "$port" --games 2 w0.safetensors lonely.pipe >bot.log 2>&1 &
bot=$!
for game in small.slp drill.slp; do
    serve --fast --once $game
    wait "$server" || fail "serve_slp failed"
done
wait "$bot" || { cat bot.log; fail "slippi_bot failed"; }
fixed_port=
grep -q '^2 games, 1566 frames received, 1322 played, 0 corrected' bot.log || { cat bot.log; fail "the bot did not play both games"; }
grep -q "^waiting for the game: 127.0.0.1:$port\$" bot.log || { cat bot.log; fail "the bot does not say what it waits for"; }
grep -q ' 0 frames written' bot.log || { cat bot.log; fail "a pipe without a reader was written"; }

# A game without the player or the opponent that was asked for is told, not played.
left_out()
{
    game=$1 words=$2 there=$3
    serve --fast --once "$game"
    # shellcheck disable=SC2086
    timeout 600 ./slippi_bot --quiet --port "$port" --games 1 $words w0.safetensors lonely.pipe >bot.log 2>&1 &&
        fail "slippi_bot $words says that it played $game"
    leave
    told "^slippi_bot: ${words#--} is not in this game; there are $there\$" bot.log
    told '^1 games, [0-9]* frames received, 0 played' bot.log
}
left_out small.slp "--player 3" "1 and 2"
left_out small.slp "--opponent 4" "1 and 2"
teams=$real/teams_p1p2_blueVSp4_green_winner_green.slp
[ ! -f "$teams" ] || left_out "$teams" "--player 3" "1, 2 and 4"

# At the game's own speed, times ten; ended by a signal, it still tells its figures.
serve --speed 10 small.slp
timeout 600 ./slippi_bot --port "$port" w0.safetensors lonely.pipe >bot.log 2>&1 &
bot=$!
await '^the game is over' bot.log
kill -TERM "$bot"
wait "$bot" || fail "slippi_bot does not end well"
leave
grep -q '^step: p50 < ' bot.log || fail "slippi_bot does not tell its figures"

# Started without standard streams, as by a service: its words must not go where the controller goes.
mkfifo closed.pipe
timeout 600 cat closed.pipe >closed.got &
reader=$!
serve --fast --once small.slp
timeout 600 ./slippi_bot --port "$port" --games 1 w0.safetensors closed.pipe <&- >&- 2>&- || fail "slippi_bot without standard streams"
wait "$server" || fail "serve_slp failed"
wait "$reader"
grep -q '^SET MAIN' closed.got || fail "nothing was pressed without standard streams"
if grep -vE '^(SET|PRESS|RELEASE|FLUSH)' closed.got; then fail "slippi_bot talks into the controller's pipe"; fi

# A second bot at a pipe goes at once, names the pipe, and leaves the first one alone.
mkfifo taken.pipe
exec 9<>taken.pipe
timeout 600 ./slippi_bot --port "$port" w0.safetensors taken.pipe >first.log 2>&1 &
bot=$!
await '^waiting for the game' first.log
refused 'slippi_bot: taken.pipe: another bot writes to this pipe; each wants one of its own' \
    ./slippi_bot --port "$port" w0.safetensors taken.pipe
kill -TERM "$bot"
wait "$bot" || fail "a second bot ends the first one"
exec 9>&-

# Wrong words, wrong files: a line that names them, and an exit status.
refused 'slippi_bot: WEIGHTS PIPE: these two, .*' ./slippi_bot
refused 'slippi_bot: WEIGHTS PIPE: these two, .*' ./slippi_bot w0.safetensors
refused 'slippi_bot: WEIGHTS PIPE: these two, .*' ./slippi_bot w0.safetensors p --player 2
refused 'slippi_bot: --playr: no such option; .*' ./slippi_bot --playr 2 w0.safetensors p
refused 'slippi_bot: --port wants a number from 1 to 65535' ./slippi_bot --port 0 w0.safetensors p
refused 'slippi_bot: --port wants a number from 1 to 65535' ./slippi_bot --port x w0.safetensors p
refused 'slippi_bot: --player wants a number from 1 to 4' ./slippi_bot --player 5 w0.safetensors p
refused 'slippi_bot: --host wants a name' ./slippi_bot --host
refused 'slippi_bot: --opponent: the same as --player; .*' ./slippi_bot --opponent 2 --player 2 w0.safetensors p
refused 'slippi_bot: --opponent: the same as --player; .*' ./slippi_bot --opponent 1 w0.safetensors p
refused 'slippi_bot: w0.safetensors: the game delays by 1 frames, .*' ./slippi_bot --game-delay 1 w0.safetensors p
refused 'slippi_bot: EXPHIL_E_IO: .*nothing.safetensors.*' ./slippi_bot nothing.safetensors p
refused 'slippi_bot: drill.slp: not a FIFO; .*' ./slippi_bot w0.safetensors drill.slp
refused 'slippi_bot: taken.pipe: a pipe; WEIGHTS come first, .*' ./slippi_bot taken.pipe w0.safetensors
refused 'slippi_bot: other.safetensors: plays falling/hand, not Melee' ./slippi_bot other.safetensors never.pipe
for program in slippi_bot serve_slp; do
    timeout 600 ./$program --help >help.log && grep -q '^  --port N ' help.log || fail "$program --help"
done
[ ! -e never.pipe ] || fail "slippi_bot makes a pipe for a policy that it does not play"

await '^nothing yet' hint.log
kill -TERM "$hinted"
wait "$hinted" || fail "a bot that waits does not end well"
told '^nothing yet from 127.0.0.1:2: is the spectator stream on? (--port is its UDP port, --player the controller)$' hint.log

# ---- sanitizers ----------------------------------------------------------------------------------------------------

if command -v clang >/dev/null; then
    sanitize="-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all"
    # shellcheck disable=SC2086
    {
        clang $flags $sanitize -o message_mutations tests/message_mutations.c spectator_message.c $libs
        clang $flags $sanitize -o hostile_sanitized tests/hostile_check.c spectator.c spectator_message.c system_posix.c $libs
        clang $flags $sanitize -o controller_sanitized tests/controller_check.c tests/peer_posix.c controller.c pipe_posix.c \
            system_posix.c $libs
        ./message_mutations "$rounds"
        ./hostile_sanitized small.slp >/dev/null
        ./controller_sanitized check.pipe >/dev/null
    }
else
    echo "SKIPPED: no clang"
fi

# ---- CMake: alone, and as a part of something --------------------------------------------------------------------------

if command -v cmake >/dev/null; then
    rm -rf build whole && mkdir whole
    cat >whole/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(whole LANGUAGES C)
find_package(exphil REQUIRED)
add_subdirectory(../ slippi)
if(TARGET live_check)
  message(FATAL_ERROR "checks are built where nobody asked for them")
endif()
END
    {
        cmake -S . -B build -DCMAKE_PREFIX_PATH="$EXPHIL_PREFIX" && cmake --build build && (cd build && ctest) &&
            cmake -S whole -B whole/build -DCMAKE_PREFIX_PATH="$EXPHIL_PREFIX" && cmake --build whole/build --target slippi_bot
    } >cmake.log 2>&1 || { cat cmake.log; fail "the CMake build"; }
    # "Try it" of README.md as it stands there, but on a port that is free, and without waiting for the clock.
    {
        echo "set -e"
        sed -n '/^## Try it/,/^## Set up/{/^```sh$/,/^```$/{/^```/d;p}}' README.md
        echo wait
    } | sed "s/serve_slp --once/serve_slp --fast --once --port $port/; s/slippi_bot/slippi_bot --port $port/" >try.sh
    timeout 600 sh try.sh >try.log 2>&1 || { cat try.log; fail "what README.md tells to try"; }
    grep -q '^1 games' try.log && grep -q '^SET MAIN' build/lines.txt || { cat try.log; fail "README.md's bot does not play"; }
else
    echo "SKIPPED: no cmake"
fi
