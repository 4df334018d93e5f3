#!/bin/sh
# The LuaJIT module from a copy in the current folder: drift of its declarations, tests, trace, example. `luajit.sh bench` times a
# step. LUAJIT chooses another one.
set -eu
lua=${LUAJIT:-luajit}
command -v "$lua" >/dev/null 2>&1 || { echo "SKIPPED: no $lua"; exit 0; }
fail() { echo "luajit: $*" >&2; exit 1; }

rm -rf luajit
cp -R "$EXPHIL_SOURCE/bindings/luajit" luajit
export LUA_PATH="$PWD/luajit/?.lua" EXPHIL_LIBRARY=
unset EXPHIL_LIBRARY

if [ "${1:-}" = bench ]; then exec "$lua" luajit/exphil_trace.lua bench "$EXPHIL_TRACE/small.safetensors"; fi

"$lua" luajit/generate.lua "$EXPHIL_PREFIX/include" >again.lua
cmp -s again.lua luajit/exphil_cdef.lua || fail "exphil_cdef.lua is not what the header says: run generate.lua"

replays=
[ ! -d "${EXPHIL_REPLAYS:-/nowhere}/training" ] || replays=$EXPHIL_REPLAYS
"$lua" luajit/exphil_test.lua "$EXPHIL_TRACE" ${replays:+"$replays"}
"$lua" -joff luajit/exphil_test.lua "$EXPHIL_TRACE" || fail "without the compiler"
for folder in $EXPHIL_TRACES; do
  "$lua" luajit/exphil_trace.lua check "$folder/policy.safetensors" "$folder/frames.trace"
done

# The examples of README.md, word for word.
for number in 1 2; do
  awk -v want=$number '/^```lua$/ { at++; on = at == want; next } /^```/ { on = 0 } on' luajit/README.md >readme$number.lua
done
actions=$("$lua" readme1.lua "$EXPHIL_TRACE/policy.safetensors")
case $actions in *[!0-9\ ]*) fail "the example of README.md printed: $actions" ;; [0-9]*" "[0-9]*" "[0-9]*) ;;
*) fail "the example of README.md printed: $actions" ;; esac
"$lua" readme2.lua >log 2>&1 || { cat log >&2; fail "the second example of README.md failed"; }
[ "$(tail -n 1 log)" = "move	2" ] || { cat log >&2; fail "the second example of README.md did not learn"; }

if EXPHIL_LIBRARY=libexphil.so.x "$lua" readme1.lua >log 2>&1; then fail "loaded a library that is not there"; fi
grep -q "LD_LIBRARY_PATH" log || { cat log >&2; fail "a missing library is not explained"; }
[ -n "$replays" ] || echo "SKIPPED: no replays in \$EXPHIL_REPLAYS"
