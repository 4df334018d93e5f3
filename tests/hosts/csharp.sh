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
build=$(sed -n 's/^    mcs \(-unsafe .*\)/\1/p' csharp/README.md)
# shellcheck disable=SC2046
compile $(echo "$build" | sed 's,bindings/,,g')
compile -r:Exphil.dll -out:ExphilTrace.exe csharp/ExphilTrace.cs
if [ "${1:-}" = bench ]; then exec mono ExphilTrace.exe bench "$EXPHIL_TRACE/small.safetensors"; fi

# Structures and version are those of the header, which the C compiler says.
compile -r:Exphil.dll -out:ExphilTest.exe csharp/ExphilTest.cs
mono ExphilTest.exe layout Exphil.dll >layout.c
[ "$(grep -c offsetof layout.c)" -gt 100 ] || fail "the structures cannot be told"
eval "${CC:-cc} -std=c11 -fsyntax-only $(pkg-config --cflags exphil) layout.c" || fail "a structure is not that of the header"
version=$(sed -n 's/.*_Static_assert(EXPHIL_VERSION == \([0-9]*\).*/\1/p' layout.c)
# shellcheck disable=SC2086
grep -qF "Include=\"$(printf '%s\n' $build | sed -n 's,bindings/csharp/,,p' | paste -sd ';')\"" csharp/Exphil.csproj ||
  fail "Exphil.csproj has other files than README.md"
grep -q "<Version>$((version / 10000)).$((version / 100 % 100)).$((version % 100))</Version>" csharp/Exphil.csproj ||
  fail "Exphil.csproj is of another version than the header"

replays=
[ ! -d "${EXPHIL_REPLAYS:-/nowhere}/training" ] || replays=$EXPHIL_REPLAYS
mono ExphilTest.exe "$EXPHIL_TRACE" ${replays:+"$replays"}
for folder in $EXPHIL_TRACES; do
  mono ExphilTrace.exe check "$folder/policy.safetensors" "$folder/frames.trace"
done

# Melee: frames drawn here and in C become the same rows, pads and actions.
compile -r:Exphil.dll -out:ExphilMelee.exe csharp/ExphilMelee.cs
eval "${CC:-cc} -std=c11 csharp/melee_check.c -o melee_check $(pkg-config --cflags --libs exphil)"
mono ExphilMelee.exe make melee.safetensors
./melee_check melee.safetensors 1000 >melee.c.txt
mono ExphilMelee.exe play melee.safetensors 1000 >melee.csharp.txt
[ "$(grep -c '^one ' melee.c.txt)" -eq 1000 ] || fail "melee_check played no frames"
cmp melee.c.txt melee.csharp.txt || fail "Melee is not what C makes of it"

# The examples of README.md, word for word.
for number in 1 2 3; do
  awk -v want=$number '/^```csharp$/ { at++; on = at == want; next } /^```/ { on = 0 } on' csharp/README.md >Program$number.cs
  compile -r:Exphil.dll Program$number.cs
done
policy=$EXPHIL_TRACE/policy.safetensors
actions=$(mono Program1.exe "$policy")
case $actions in *[!0-9\ ]*) fail "the example of README.md printed: $actions" ;; [0-9]*" "[0-9]*" "[0-9]*) ;;
*) fail "the example of README.md printed: $actions" ;; esac
mono Program2.exe >log 2>&1 || { cat log >&2; fail "the second example of README.md failed"; }
[ "$(tail -n 1 log)" = "move 2" ] || { cat log >&2; fail "the second example of README.md did not learn"; }
# The policy to play with is made as README.md says.
rm -f drill.slp policy.safetensors policy.safetensors.optimizer
sed -n 's/^    \(exphil .*\)/\1/p' csharp/README.md >policy.sh
[ "$(grep -c . policy.sh)" -eq 2 ] || fail "README.md does not say how to make a policy"
sh -e policy.sh >log 2>&1 || { cat log >&2; fail "the policy of README.md is not made"; }
mono Program1.exe >log 2>&1 || { cat log >&2; fail "the example of README.md does not play the policy of README.md"; }
mono Program3.exe >log 2>&1 || { cat log >&2; fail "the third example of README.md failed"; }
[ "$(grep -c '^[A-Z].* main .* c .* trigger \|^none main .* c .* trigger ' log)" -eq 60 ] ||
  { cat log >&2; fail "the third example of README.md said something else"; }

# The name without a version is for compilers: players need not have it. Where the library is missing, that is said. All in a
# folder with a space in its name.
space="$PWD/with space"
rm -rf "$space"
mkdir "$space"
find "$EXPHIL_PREFIX" -name 'libexphil.so.0*' -exec cp -P {} "$space" \;
cp Program1.exe Exphil.dll "$policy" "$space"
plays() { LD_LIBRARY_PATH="$space" mono "$space/Program1.exe" "$space/policy.safetensors"; }
[ "$(plays)" = "$actions" ] || fail "does not run with libexphil.so.0 alone, in a folder with a space in its name"
LC_ALL=C sed 's/libexphil\.so\.0/libexphil.so.x/' Exphil.dll >"$space/Exphil.dll"
if plays >log 2>&1; then fail "loaded a library that is not there"; fi
grep -q "libexphil.so.0 cannot be loaded: .*LD_LIBRARY_PATH" log || { cat log >&2; fail "a missing library is not explained"; }

# An older library is refused, another patch and a later one are not: in its place stands a library that says so, and is the real
# one in all else.
cat >version.c <<'END'
unsigned exphil_version(void) { return VERSION; }
const char *exphil_version_string(void) { return "of another version"; }
END
for other in $((version + 99 - version % 100)) $((version + 100)) $((version + 10000)) $((version - version % 100 - 1)); do
  ${CC:-cc} -shared -fPIC -DVERSION="$other" version.c -o "$space/libexphil.so.x" -Wl,--no-as-needed "$space/libexphil.so.0"
  if [ $((other / 100)) -ge $((version / 100)) ]; then
    [ "$(plays)" = "$actions" ] || fail "a library of version $other is refused"
  else
    if plays >log 2>&1; then fail "took a library of version $other"; fi
    grep -q "ExphilException: libexphil of another version is loaded, this assembly was written for" log ||
      { cat log >&2; fail "another version is not explained"; }
  fi
done
[ -n "$replays" ] || echo "SKIPPED: no replays in \$EXPHIL_REPLAYS"
