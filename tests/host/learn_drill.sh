#!/bin/sh
# The drill as a game that can be learnt: it counts the hits that exphil drill counts, a clone keeps its score when it goes on by
# itself, from nothing a policy learns to hit, and a run that is killed goes on to the last bit.
#   learn_drill.sh <exphil>
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"

# a clone, as the README makes it
expect 0 "drill.slp" drill --frames 7200 --out drill.slp
expect 0 "fox" train --port 1 --no-previous-action --blocks gru --hidden 64 --rate 0.01 --updates 400 --quiet --out fox \
  drill.slp

# the same policy in both: with the value alone it stays as it is, and the first episode of a score has seed 0x5C0E
expect 0 '"world":"drill"' learn --world drill --init fox --value-only 1 --frames 1 --lanes 1 --time 8 --scores 0 \
  --episodes 1 --json --out same
likeliest=$(value out likeliest mean)
expect 0 '"hits"' drill --seed 23566 --json fox
[ "$likeliest" = "$(value out hits).0" ] || complain "the world counts $likeliest hits, the drill $(value out hits)"
[ "$(value out hits)" -gt 200 ] || complain "the clone makes $(value out hits) hits a minute"

# it goes on near itself
kept='import json, sys; a, b = (json.load(open(name))["score"] for name in sys.argv[1:]); sys.exit(not a >= 0.98 * b)'
near="--world drill --init fox --lanes 16 --scores 0 --episodes 8 --threads 2"
# shellcheck disable=SC2086
set -- $near
expect 0 '"score"' learn "$@" --value-only 1 --frames 2048 --json --out still
cp out still.json
expect 0 '"score"' learn "$@" --teacher fox --to-teacher 0.1 --rate 0.0003 --frames 40000 --json --out better
cp out better.json
[ "$(value better.json recomputed)" = 0.0 ] || complain "what was played is recomputed with $(value better.json recomputed)"
python3 -c "$kept" better.json still.json || complain "from $(value still.json score) hits it came to $(value better.json score)"

# info tells of playing; of the imitation before it only whom it imitated
expect 0 "learnt by playing drill, opponent game: 40960 frames played, 4 passes over each" info better
expect 0 "began as a policy that imitates fox (" info better
grep -qE "^(imitates|learnt from|held-out score|verdict)" out && complain "info tells the imitation's story: $(cat out)"

# from nothing, with any number of threads, and killed again and again
new="--world drill --no-previous-action --hidden 32 --frames 100000 --scores 0 --episodes 8 --seed 1"
# shellcheck disable=SC2086
set -- $new
expect 0 '"score"' learn "$@" --threads 1 --json --out new --log new.log
cp out new.json
python3 -c 'import json, sys; sys.exit(not json.load(open("new.json"))["score"] > 20)' ||
  complain "from nothing it comes to $(value new.json score) hits a minute"
lines() { if [ -f again.log ]; then wc -l <again.log; else echo 0; fi; }
kills=0
while :; do
  "$exphil" learn "$@" --threads 2 --quiet --out again --log again.log --resume --save-minutes 0.0001 >out 2>err &
  run=$!
  before=$(lines)
  while kill -0 $run 2>/dev/null && [ "$(lines)" -lt $((before + 9)) ]; do sleep 0.02; done
  [ $kills -lt 3 ] && kill -KILL $run 2>/dev/null
  wait $run 2>/dev/null
  status=$?
  kills=$((kills + 1))
  [ $status -eq 0 ] && break
  [ $status -gt 128 ] || { complain "after $kills signals status $status: $(cat err)"; break; }
done
[ $kills -gt 1 ] || complain "it was never stopped"
for end in "" .optimizer; do cmp -s new$end again$end || complain "new$end and again$end differ"; done

expect 1 "drill has one seat" learn --world drill --opponent self --out other
expect 1 "two seats" match --world drill new again
expect 0 "drill, that of exphil drill" learn --help
[ ! -e other ] || complain "what was refused left a file"

echo "$checks checks"
exit $failed
