#!/bin/sh
# The LuaJIT module from a copy in the current folder: tests, trace, example. `luajit.sh bench` times a step. LUAJIT chooses another one.
set -eu
lua=${LUAJIT:-luajit}
command -v "$lua" >/dev/null 2>&1 || { echo "SKIPPED: no $lua"; exit 0; }
fail() { echo "luajit: $*" >&2; exit 1; }

rm -rf luajit
cp -R "$EXPHIL_SOURCE/bindings/luajit" luajit
export LUA_PATH="$PWD/luajit/?.lua" EXPHIL_LIBRARY=
unset EXPHIL_LIBRARY

if [ "${1:-}" = bench ]; then exec "$lua" luajit/exphil_trace.lua bench "$EXPHIL_TRACE/small.safetensors"; fi

replays=
[ ! -d "${EXPHIL_REPLAYS:-/nowhere}/training" ] || replays=$EXPHIL_REPLAYS
"$lua" luajit/exphil_test.lua "$EXPHIL_TRACE" ${replays:+"$replays"}
"$lua" -joff luajit/exphil_test.lua "$EXPHIL_TRACE" || fail "without the compiler"
for folder in $EXPHIL_TRACES; do
  "$lua" luajit/exphil_trace.lua check "$folder/policy.safetensors" "$folder/frames.trace"
done

# The examples of README.md, word for word.
for number in 1 2 3; do
  awk -v want=$number '/^```lua$/ { at++; on = at == want; next } /^```/ { on = 0 } on' luajit/README.md >readme$number.lua
done
actions=$("$lua" readme1.lua "$EXPHIL_TRACE/policy.safetensors")
case $actions in *[!0-9\ ]*) fail "the example of README.md printed: $actions" ;; [0-9]*" "[0-9]*" "[0-9]*) ;;
*) fail "the example of README.md printed: $actions" ;; esac
# The policy to play with is made as README.md says.
rm -f drill.slp policy.safetensors policy.safetensors.optimizer
sed -n 's/^    \(exphil .*\)/\1/p' luajit/README.md >policy.sh
[ "$(grep -c . policy.sh)" -eq 2 ] || fail "README.md does not say how to make a policy"
sh -e policy.sh >log 2>&1 || { cat log >&2; fail "the policy of README.md is not made"; }
"$lua" readme1.lua >log 2>&1 || { cat log >&2; fail "the example of README.md does not play the policy of README.md"; }
"$lua" readme2.lua >log 2>&1 || { cat log >&2; fail "the Melee example of README.md failed"; }
[ "$(grep -c '^ *[0-9]*  A [a-z]*  main -*[01]\.[0-9]* -*[01]\.[0-9]*$' log)" -eq 60 ] ||
  { cat log >&2; fail "the Melee example of README.md said something else"; }
"$lua" readme3.lua >log 2>&1 || { cat log >&2; fail "the third example of README.md failed"; }
[ "$(tail -n 1 log)" = "move	2" ] || { cat log >&2; fail "the third example of README.md did not learn"; }

# An older library is refused, another patch and a later one are not: a library that says so, and is the real one in
# all else. All in a folder with a space in its name.
space="$PWD/with space"
rm -rf "$space"
mkdir "$space"
cp luajit/exphil.lua luajit/exphil_cdef.lua readme1.lua "$EXPHIL_TRACE/policy.safetensors" "$space"
find "$EXPHIL_PREFIX" -name 'libexphil.so.0*' -exec cp -P {} "$space" \;
cat >version.c <<'END'
unsigned exphil_version(void) { return VERSION; }
const char *exphil_version_string(void) { return "of another version"; }
END
own=$(sed -n 's/.*version = { \([0-9]*\), \([0-9]*\), .*/\1 * 10000 + \2 * 100/p' luajit/exphil_cdef.lua)
plays() { # plays LIBRARY, of the folder with a space
  LUA_PATH="$space/?.lua" LD_LIBRARY_PATH="$space" EXPHIL_LIBRARY="$space/$1" "$lua" "$space/readme1.lua" "$space/policy.safetensors"
}
[ "$(plays libexphil.so.0)" = "$actions" ] || fail "does not run in a folder with a space in its name"
for version in "$own + 99" "$own + 100" "$own + 10000" "$own - 1"; do
  ${CC:-cc} -shared -fPIC -DVERSION="$version" version.c -o "$space/libversion.so" -Wl,--no-as-needed "$space/libexphil.so.0"
  if [ "$version" != "$own - 1" ]; then
    [ "$(plays libversion.so)" = "$actions" ] || fail "a library of version $version is refused"
  else
    if plays libversion.so >log 2>&1; then fail "took a library of version $version"; fi
    grep -q "EXPHIL_E_VERSION: libexphil of another version is loaded, this module was written for" log ||
      { cat log >&2; fail "another version is not explained"; }
  fi
done

if EXPHIL_LIBRARY=libexphil.so.x "$lua" readme1.lua >log 2>&1; then fail "loaded a library that is not there"; fi
grep -q "LD_LIBRARY_PATH" log || { cat log >&2; fail "a missing library is not explained"; }
[ -n "$replays" ] || echo "SKIPPED: no replays in \$EXPHIL_REPLAYS"
