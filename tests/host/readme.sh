#!/bin/sh
# The example in README.md is examples/minimal.c, has the promised size, compiles as it stands and runs on the policy that
# README's lines train. That policy plays: what it hits is the same number on every machine. Every command and option that it names is one.
# Whoever types all of its lines from top to bottom gets through (here each learns for less long).
# usage: readme.sh source-dir build-dir compiler
set -eu
source=$1 build=$2 cc=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '1d;$d' >"$folder/readme.c"
cmp "$folder/readme.c" "$source/examples/minimal.c"
lines=$(sed -n '/^int main/,$p' "$folder/readme.c" | grep -vc '^[{}]$')
[ "$lines" -le 25 ] || { echo "the example has $lines lines"; exit 1; }
"$cc" -std=c11 -Wall -Wextra -Werror -I"$source/include" "$folder/readme.c" -L"$build" -lexphil -Wl,-rpath,"$build" -o "$folder/minimal"
sed -n '/^    exphil drill /,/^    cc /s/^    //p' "$source/README.md" >"$folder/lines"
[ "$(grep -c '^exphil ' "$folder/lines")" -eq 3 ] || { echo "README has other lines than drill, train, drill"; exit 1; }
weights=$(sed -n 's/^cc .* \([^ ]*\)$/\1/p' "$folder/lines")
(cd "$folder" && grep '^exphil ' lines >lines.sh && PATH="$build/bin:$PATH" sh -eu lines.sh >lines.out 2>lines.err) || {
  cat "$folder/lines.err"
  echo "README's lines do not run"
  exit 1
}
# The advice of its verdict can be taken as it is written.
advice=$(tr '\n' ' ' <"$folder/lines.out" | sed -n 's/.*Hold some out (\([^)]*\)).*/\1/p')
[ -n "$advice" ] || { echo "README's policy is not good, or no advice comes with it"; cat "$folder/lines.out"; exit 1; }
(cd "$folder" && PATH="$build/bin:$PATH" sh -eu -c "$(sed -n '/^exphil train /s/[^ ]*\.safetensors/advised.safetensors/p' lines) \
  --updates 2 $advice" >advised.out 2>&1) || { cat "$folder/advised.out"; echo "the advice cannot be taken: $advice"; exit 1; }
grep -q ' hits (the teacher: ' "$folder/lines.out" || { echo "README's lines do not show how the policy plays"; exit 1; }
for seed in 1 2 3 4; do
  "$build/bin/exphil" drill --seed $seed --json "$folder/$weights" >"$folder/played"
  python3 - "$folder/played" <<'END'
import json, sys
played = json.load(open(sys.argv[1]))
if played["teacher_hits"] < 200 or 10 * played["hits"] < 9 * played["teacher_hits"]:
    sys.exit("README's policy hits {hits} times, its teacher {teacher_hits}".format(**played))
END
done
"$folder/minimal" "$folder/$weights" >"$folder/out"
[ "$(grep -c buttons "$folder/out")" -eq 60 ]
"$folder/minimal" "$folder/none.safetensors" 2>"$folder/error" && exit 1
grep -q EXPHIL_E_IO "$folder/error"
# From top to bottom in one folder, with replays of a scripted Fox; without what measures, wants a GPU or an MPI, or is a place for
# a command of one's own.
(
  cd "$folder"
  PATH="$build/bin:$PATH"
  mkdir replays unseen
  for seed in 1 2 3; do exphil drill --frames 1900 --seed $seed --out replays/$seed.slp >/dev/null; done
  exphil drill --frames 1900 --seed 9 --out game.slp >/dev/null
  cp game.slp unseen
  "$cc" -O2 -shared -fPIC -I"$source/include" "$source/examples/game.c" -o game.so
  sed -n '/^## Better/,$s/^    \(exphil .*\)/\1/p' "$source/README.md" | sed 's/  .*//' |
    grep -vE ' (bench|devices|launch) | --device cuda' >typed
  sed -e '/ train /s/ --updates 4000//' -e '/ train .*--config .*--resume/s/$/ --updates 4/' \
    -e '/ train /{/ --updates /!s/$/ --updates 2/}' \
    -e '/ learn /s/$/ --frames 9000 --scores 1 --episodes 2/' -e '/ match /s/$/ --games 2/' typed >shorter
  [ "$(wc -l <shorter)" -ge 30 ] || { cat shorter; echo "README has fewer lines than it had"; exit 1; }
  while read -r line; do
    sh -c "$line" >typed.out 2>typed.err </dev/null || { cat typed.err; echo "README, typed from top to bottom: $line"; exit 1; }
  done <shorter
)
# Lines and spans that begin with a command of the program: "exphil train --out ...", `quantize --type bf16`.
commands=$("$build/bin/exphil" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' | paste -sd '|')
{
  grep -E '^    exphil ' "$source/README.md" | sed 's/^ *exphil //; s/   .*//'
  sed '/^```/,/^```/d' "$source/README.md" | tr '\n' ' ' | grep -oE '`[^`]+`' | tr -d '`' | sed 's/^exphil //' | grep -E "^($commands) "
} >"$folder/named"
[ "$(wc -l <"$folder/named")" -ge 10 ]
while read -r command rest; do
  "$build/bin/exphil" "$command" --help >"$folder/help"
  for word in $rest; do
    case $word in --*) grep -q -- " $word\b" "$folder/help" || { echo "README: exphil $command has no $word"; exit 1; } ;; esac
  done
done <"$folder/named"
echo "the README's example: $lines lines, runs"
