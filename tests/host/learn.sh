#!/bin/sh
# exphil learn: from nothing to a balanced pole, the same weights with any number of threads, from given weights and near a
# teacher, ended by a signal, and what is refused.
#   learn.sh <exphil>
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"

expect 0 '"world":"cartpole"' learn --world cartpole --frames 80000 --seed 3 --threads 1 --json --out one
[ "$(value out score)" = 500.0 ] || complain "80,000 frames bring $(value out score)"
[ "$(value out recomputed)" = 0.0 ] || complain "what was played is recomputed with $(value out recomputed)"
expect 0 "frames of cartpole" learn --world cartpole --frames 80000 --seed 3 --threads 2 --quiet --out two
cmp -s one two || complain "two threads learn otherwise than one"
expect 0 "frames of cartpole" learn --world cartpole --frames 80000 --seed 4 --threads 2 --quiet --out three
cmp -s one three && complain "another seed learns the same"
expect 0 "blocks" info one

small="--world cartpole-blind --frames 4000 --quiet"
# shellcheck disable=SC2086
set -- $small
expect 0 "4096 frames" learn "$@" --blocks gru --hidden 16 --out small
expect 2 "--teacher FILE with --to-teacher" learn "$@" --to-teacher 1 --out other
expect 2 "no --blocks" learn "$@" --init small --blocks gru --out other
expect 1 "small" learn "$@" --out small
expect 0 "4096 frames" learn "$@" --init small --out tuned
expect 0 "4096 frames" learn "$@" --init small --teacher small --to-teacher 0.1 --most-kl 0.01 --out near
expect 1 "would write over" learn "$@" --init small --out small --force
expect 1 "the teacher's spec" learn --world cartpole --frames 100 --teacher small --to-teacher 1 --out other
expect 2 "--to-teacher X with --teacher" learn "$@" --teacher small --out other
expect 1 "made for cartpole-blind" learn --world cartpole --frames 100 --init small --out other
expect 1 "there is no world" learn --world chess --out other
expect 2 "learn wants --world" learn --out other
expect 2 "learn wants no files" learn --world cartpole game.slp
expect 2 "--frames wants" learn --world cartpole --frames 0
expect 2 "--lanes wants" learn --world cartpole --lanes 5000
expect 0 "usage: exphil learn" learn --help
[ ! -e other ] || complain "what was refused left a file"

expect 0 "frames of pong" learn --world pong --frames 20000 --lanes 4 --quiet --out pong
expect 0 "frames of pong-two" learn --world pong-two --frames 20000 --lanes 4 --quiet --out two-sides --force

# ended early: the weights are there, and go on
"$exphil" learn --world cartpole --frames 100000000 --out long >out 2>err &
run=$!
while kill -0 $run 2>/dev/null && ! grep -q "frames  return" err; do sleep 0.05; done
kill -TERM $run
wait $run
[ $? -eq 143 ] || complain "SIGTERM ends with another status"
grep -q "stopped by SIGTERM" err || complain "nothing is said of SIGTERM"
expect 0 "2048 frames" learn --world cartpole --frames 2000 --init long --quiet --out after

echo "$checks checks"
exit $failed
