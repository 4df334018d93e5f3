#!/bin/sh
# The C# binding from a copy in the current folder, compiled by mcs and run by mono: layout of its structures, tests, trace,
# example. `csharp.sh bench` times a step.
set -eu
command -v mcs >/dev/null 2>&1 || { echo "SKIPPED: no mcs (Debian: mono-mcs)"; exit 0; }
command -v mono >/dev/null 2>&1 || { echo "SKIPPED: no mono (Debian: mono-runtime)"; exit 0; }
fail() { echo "csharp: $*" >&2; exit 1; }
compile() { mcs -langversion:7.2 -optimize+ -warnaserror "$@" >log 2>&1 || { cat log >&2; fail "$* does not compile"; }; }

rm -rf csharp
cp -R "$EXPHIL_SOURCE/bindings/csharp" csharp
compile -unsafe -target:library -out:Exphil.dll csharp/Native.cs csharp/Exphil.cs csharp/Training.cs
compile -r:Exphil.dll -out:ExphilTrace.exe csharp/ExphilTrace.cs
if [ "${1:-}" = bench ]; then exec mono ExphilTrace.exe bench "$EXPHIL_TRACE/small.safetensors"; fi

# Structures and version are those of the header, which the C compiler says.
compile -r:Exphil.dll -out:ExphilTest.exe csharp/ExphilTest.cs
mono ExphilTest.exe layout Exphil.dll >layout.c
[ "$(grep -c offsetof layout.c)" -gt 100 ] || fail "the structures cannot be told"
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -fsyntax-only $(pkg-config --cflags exphil) layout.c || fail "a structure is not that of the header"
version=$(sed -n 's/.*_Static_assert(EXPHIL_VERSION == \([0-9]*\).*/\1/p' layout.c)
grep -q "<Version>$((version / 10000)).$((version / 100 % 100)).$((version % 100))</Version>" csharp/Exphil.csproj ||
  fail "Exphil.csproj is of another version than the header"

replays=
[ ! -d "${EXPHIL_REPLAYS:-/nowhere}/training" ] || replays=$EXPHIL_REPLAYS
mono ExphilTest.exe "$EXPHIL_TRACE" ${replays:+"$replays"}
for folder in $EXPHIL_TRACES; do
  mono ExphilTrace.exe check "$folder/policy.safetensors" "$folder/frames.trace"
done

# The examples of README.md, word for word.
for number in 1 2; do
  awk -v want=$number '/^```csharp$/ { at++; on = at == want; next } /^```/ { on = 0 } on' csharp/README.md >Program$number.cs
  compile -r:Exphil.dll Program$number.cs
done
policy=$EXPHIL_TRACE/policy.safetensors
actions=$(mono Program1.exe "$policy")
case $actions in *[!0-9\ ]*) fail "the example of README.md printed: $actions" ;; [0-9]*" "[0-9]*" "[0-9]*) ;;
*) fail "the example of README.md printed: $actions" ;; esac
mono Program2.exe >log 2>&1 || { cat log >&2; fail "the second example of README.md failed"; }
[ "$(tail -n 1 log)" = "move 2" ] || { cat log >&2; fail "the second example of README.md did not learn"; }

# The name without a version is for compilers: players need not have it. Where the library is missing, that is said.
rm -rf player
mkdir player
cp -P "$(pkg-config --variable=libdir exphil)"/libexphil.so.0* player
[ "$(LD_LIBRARY_PATH=$PWD/player mono Program1.exe "$policy")" = "$actions" ] || fail "does not run with libexphil.so.0 alone"
cp Program1.exe player
LC_ALL=C sed 's/libexphil\.so\.0/libexphil.so.x/' Exphil.dll >player/Exphil.dll
if mono player/Program1.exe "$policy" >log 2>&1; then fail "loaded a library that is not there"; fi
grep -q "libexphil.so.0 cannot be loaded: .*LD_LIBRARY_PATH" log || { cat log >&2; fail "a missing library is not explained"; }
[ -n "$replays" ] || echo "SKIPPED: no replays in \$EXPHIL_REPLAYS"
