#!/bin/sh
# Presets of exphil train and exphil learn: they set what nobody gave, they say what, and what a run writes of itself has it in full.
#   preset.sh <exphil>
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
# has FILE OPTION VALUE: the run was made with it, as if it had been given
has() { [ "$(value "$1" "$2")" = "$3" ] || complain "$1: $2 is $(value "$1" "$2"), not $3"; }
same() { cmp -s "$1" "$2" || complain "$1 and $2 differ"; }
small="--port 1 --blocks gru --hidden 8 --head-width 8 --time 20"

for seed in 1 2 3 4 5 6; do expect 0 "frames" drill --frames 300 --seed $seed --out $seed.slp; done

# what it stands for, in the help, in a line and in what is written
first=$("$exphil" train --help | sed -n 's/.*first policy of new data, \(--.*\); or standard.*/\1/p')
[ -n "$first" ] || complain "the help does not say what --preset first stands for"
# shellcheck disable=SC2086
expect 0 "--preset first: $first" train --preset first $small --epochs 1 --out a [1-6].slp
has a.run.json held-out 0.1; has a.run.json no-previous-action true
has a.run.json patience 5; has a.run.json preset null
[ "$(value a.run.json chosen preset)" = '"first"' ] || complain "chosen: $(value a.run.json chosen)"

# that repeats the run without the name
expect 0 "passes" train --config a.run.json --out b
same a b
[ "$(value b.run.json chosen preset)" = null ] || complain "a configuration became a preset"

# a configuration may name one
cat >c.json <<'END'
{"preset": "first", "port": 1, "blocks": "gru", "hidden": 8, "head-width": 8, "time": 20, "epochs": 1, "quiet": true}
END
expect 0 "c: gru" train --config c.json --out c [1-6].slp
same a c

# what is given wins, also where it only does not go with the preset
# shellcheck disable=SC2086
expect 0 "--preset first: --patience 5" train --preset first $small --held-out 0.4 --drop-past 0.2 --updates 2 \
  --out d [1-6].slp
has d.run.json held-out 0.4; has d.run.json drop-past 0.2; has d.run.json most-updates null
expect 0 "--preset first: --held-out 0.1 --patience 5 --most-updates" train --preset first --init a --time 20 \
  --epochs 1 --out e --port 1 [1-6].slp
# shellcheck disable=SC2086
expect 0 "2 updates" train --preset standard $small --epochs 1 --most-updates 2 --batch 4 --out f [1-6].slp
has f.run.json best '"alone"'; has f.run.json most-updates 2

expect 2 "--preset wants first or standard, not second" train --preset second 1.slp
expect 2 "--most-updates and --updates: give one of them" train --most-updates 2 --updates 2 1.slp

# of learning by playing
world="--world pong --lanes 4 --frames 2000 --scores 0 --episodes 1"
# shellcheck disable=SC2086
set -- $world
expect 0 "frames of pong" learn "$@" --hidden 8 --out clone
near=$("$exphil" learn --help | tr -s ' \n' ' ' | sed -n 's/.*beside --teacher, \(--to-teacher [^;]*\); or self-play.*/\1/p')
own=$("$exphil" learn --help | tr -s ' \n' ' ' | sed -n 's/.*beside --teacher, \(--opponent self [^;]*\); what is given.*/\1/p')
[ -n "$near" ] && [ -n "$own" ] || complain "the help does not say what the presets of learn stand for"
expect 0 "--preset near-teacher: $near" learn "$@" --preset near-teacher --init clone --teacher clone --out near
# shellcheck disable=SC2086
expect 0 "frames of pong" learn "$@" $near --init clone --teacher clone --quiet --out far
same near far
expect 0 "--preset self-play: $own" learn "$@" --preset self-play --init clone --teacher clone --out own
expect 0 "--preset near-teacher: --to-teacher 0.003 --rate" learn "$@" --preset near-teacher --time 32 --init clone \
  --teacher clone --force --out near
grep -q "time" err && complain "--time 32 was given: $(cat err)"
expect 2 "--teacher FILE with --to-teacher" learn "$@" --preset near-teacher --init clone --out none
expect 2 "--preset wants near-teacher or self-play, not first" learn "$@" --preset first --out none
echo "$checks checks"
exit $failed
