#!/bin/sh
# The Elixir binding against the installed library: its tests, the trace, its example and the ten lines of its README.
#   elixir.sh [bench | check MODEL TRACE]
# tests/hosts says what is in the environment. Everything is built below the current folder, in one whose name has a space,
# without a network.
set -eu

for tool in mix elixir make cc pkg-config; do
    if ! command -v "$tool" >/dev/null; then
        echo "SKIPPED: no $tool"
        exit 0
    fi
done
if ! [ -f "$(erl -noshell -eval 'io:put_chars(code:root_dir()), halt().')/usr/include/erl_nif.h" ]; then
    echo "SKIPPED: no erl_nif.h"
    exit 0
fi

# As many schedulers wherever it runs: with a single dirty one the tests could not call while a long call is under way.
export MIX_HOME="$PWD/.mix" MIX_ENV=test LC_ALL=C.UTF-8 ERL_FLAGS="+S 4:4 +SDcpu 4:4"
if ! [ -d "with space" ]; then
    mkdir "with space"
    for part in mix.exs .formatter.exs Makefile README.md c_src lib test bench examples; do
        cp -R "$EXPHIL_SOURCE/bindings/elixir/$part" "with space/"
    done
fi
cd "with space"
quietly() { "$@" >log 2>&1 || { cat log; exit 1; }; }
quietly mix compile --warnings-as-errors

case "${1:-}" in
bench)
    mix run --no-compile bench/step.exs "$EXPHIL_TRACE/small.safetensors"
    exit
    ;;
check)
    mix run --no-compile bench/trace.exs "$2" "$3"
    exit
    ;;
esac

quietly mix format --check-formatted
mix test >log 2>&1 || { cat log; exit 1; }
grep -o 'elixir: .*' log || true
for folder in $EXPHIL_TRACES; do
  mix run --no-compile bench/trace.exs "$folder/policy.safetensors" "$folder/frames.trace"
done
sed -n '/^## Ten lines/,/^## Training/{/^```elixir$/,/^```$/{/^```/d;p}}' README.md >ten_lines.exs
test "$(wc -l <ten_lines.exs)" -ge 10
quietly elixir -pa _build/test/lib/libexphil/ebin ten_lines.exs
test "$(wc -l <log)" -eq 60
quietly mix run --no-compile examples/agent.exs

# README's training starts, and tells that one of its replays was cut.
mkdir replays
"$EXPHIL_PREFIX/bin/exphil" drill --frames 1200 --out replays/whole.slp >/dev/null
head -c 200000 replays/whole.slp >replays/cut.slp
{
    echo 'context = LibExphil.Context.create!()'
    sed -n '/^## Training/,/^## Any game/{/^```elixir$/,/^```$/{/^```/d;p}}' README.md
    echo 'receive do {:libexphil_training, tag, {:progress, _}} when tag == training.tag -> IO.puts("learns") end'
    echo 'LibExphil.Training.cancel(training)'
    echo '{:cancelled, _} = LibExphil.Training.await(training)'
} >training.exs
quietly elixir -pa _build/test/lib/libexphil/ebin training.exs
grep -q '^replays/cut.slp ends early, it adds [1-9]' log && grep -qx learns log || { cat log; exit 1; }

# The game of one's own in README.md: what was learned plays nearly as the rule, which misses nothing.
sed -n '/^## Any game/,/^## Play/{/^```elixir$/,/^```$/{/^```/d;p}}' README.md >any_game.exs
quietly elixir -pa _build/test/lib/libexphil/ebin any_game.exs
awk '/^caught/ { fine = $4 > 40 && $2 > 0.9 * $4 } END { exit !fine }' log || { cat log; exit 1; }

# README's policy learns to keep the pole upright.
sed -n '/^## Better by playing/,/^## Learn while it plays/{/^```elixir$/,/^```$/{/^```/d;p}}' README.md >better.exs
quietly elixir -pa _build/test/lib/libexphil/ebin better.exs
awk '$1 == "return" { last = $2 } END { exit !(NR == 3 && last > 400) }' log && [ -s balance.safetensors ] || { cat log; exit 1; }

# README's policy learns from the person who takes over, and so needs nobody in the end.
sed -n '/^## Learn while it plays/,/^## Data in bulk/{/^```elixir$/,/^```$/{/^```/d;p}}' README.md >live.exs
quietly elixir -pa _build/test/lib/libexphil/ebin live.exs
awk 'NR == 1 { first = $NF } { last = $NF } END { exit !(NR == 6 && first > 3 && last < 0.5) }' log &&
    [ -s caught.safetensors ] || { cat log; exit 1; }

# Built again only where pkg-config answers otherwise, and then all of it, against a library below a folder with a space too;
# without libexphil, one line that says so.
nif=_build/test/lib/libexphil/priv/libexphil_nif.so
touch marker
quietly mix compile
[ -z "$(find $nif -newer marker)" ] || { echo "elixir: the NIF is built again for nothing"; exit 1; }
mkdir elsewhere
ln -s "$(pkg-config --variable=libdir exphil)" elsewhere/lib
ln -s "$(pkg-config --variable=includedir exphil)" elsewhere/include
sed 's|^prefix=.*|prefix=${pcfiledir}|; s|^libdir=.*|libdir=${prefix}/lib|; s|^includedir=.*|includedir=${prefix}/include|' \
    "$(pkg-config --variable=pcfiledir exphil)/exphil.pc" >elsewhere/exphil.pc
quietly env PKG_CONFIG_PATH="$PWD/elsewhere" mix compile
grep -q "$PWD/elsewhere/lib" $nif || { echo "elixir: the NIF is still that of another libexphil"; exit 1; }
quietly env -u LD_LIBRARY_PATH elixir -pa _build/test/lib/libexphil/ebin ten_lines.exs
if PKG_CONFIG_LIBDIR=/nowhere PKG_CONFIG_PATH=/nowhere mix compile >log 2>&1; then echo "elixir: builds without libexphil"; exit 1; fi
grep -q 'libexphil is not installed, or PKG_CONFIG_PATH does not name' log || { cat log; exit 1; }
! grep -q 'fatal error' log || { cat log; exit 1; }
