#!/bin/sh
# One policy for several delays against one policy for each, in the drill: hits in courses that none of them has seen.
#   bench/delays.sh EXPHIL            the table of doc/performance.md; half a minute on one core
#   bench/delays.sh EXPHIL --short    less of it, for the tests; fails unless the one is as good as the three
# The one policy gets as many updates for each delay as a policy of that delay alone. All is done on one thread by fixed
# seeds: the same numbers on every machine. A wrong delay: the game holds the controller back longer than the policy is told.
set -eu
exphil=${1:?bench/delays.sh wants the program}
case $exphil in /*) ;; *) exphil=$PWD/$exphil ;; esac
short=${2:-}
if [ "$short" ]; then hidden=32 updates=250 courses="11 12 13"; else hidden=64 updates=600 courses="11 12 13 14 15 16 17 18 19 20"; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

for seed in 1 2 3; do "$exphil" drill --out $seed.slp --seed $seed --frames 7200 >/dev/null; done

learn() { # <name> <delays> <updates>
  "$exphil" train --quiet --json --threads 1 --port 1 --mirror 0 --no-previous-action --blocks gru --hidden $hidden --rate 0.01 \
    --updates "$3" --delay "$2" --out "$1" 1.slp 2.slp 3.slp >/dev/null
}

score() { # <policy> <delay> <lag>: hits in per mille of the teacher's
  hits=0 most=0
  for seed in $courses; do
    line=$("$exphil" drill --json --seed "$seed" --delay "$2" --lag "$3" "$1")
    hits=$((hits + $(echo "$line" | sed 's/.*"hits": *\([0-9]*\).*/\1/')))
    most=$((most + $(echo "$line" | sed 's/.*"teacher_hits": *\([0-9]*\).*/\1/')))
  done
  echo $((1000 * hits / most))
}

learn all 0,2,4 $((3 * updates))
for delay in 0 2 4; do learn alone$delay $delay $updates; done
echo "hits in per mille of the teacher's; the teacher itself has no delay"
echo "delay of the game   alone   one of three   told 0   told 2"
status=0
for delay in 0 2 4; do
  alone=$(score alone$delay $delay 0) one=$(score all $delay 0) line=
  for told in 0 2; do
    [ $told -lt $delay ] || { line="$line        -"; continue; }
    wrong=$(score all $told $((delay - told)))
    line="$line $(printf %8d "$wrong")"
    [ $((10 * wrong)) -lt $((9 * one)) ] || status=1
  done
  printf '%17d %7d %14d%s\n' $delay "$alone" "$one" "$line"
  [ $((100 * one)) -ge $((99 * alone)) ] || status=1
done
[ $status -eq 0 ] || echo "one policy is worse than the three by more than a hundredth, or a wrong delay does no harm"
exit $status
