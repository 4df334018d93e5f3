#!/bin/sh
# exphil learn: from nothing to a balanced pole, the same weights with any number of threads, from given weights and near a
# teacher, ended by a signal, and what is refused.
#   learn.sh <exphil>
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"

frames=$(slow 80000 8000)
expect 0 '"world":"cartpole"' learn --world cartpole --frames "$frames" --episodes 20 --seed 3 --threads 1 --json --out one
[ "$(value out score)" = 500.0 ] || [ "$frames" -lt 80000 ] || complain "$frames frames bring $(value out score)"
[ "$(value out recomputed)" = 0.0 ] || complain "what was played is recomputed with $(value out recomputed)"
expect 0 "frames of cartpole" learn --world cartpole --frames "$frames" --episodes 20 --seed 3 --threads 2 --quiet --out two
cmp -s one two || complain "two threads learn otherwise than one"
expect 0 "frames of cartpole" learn --world cartpole --frames "$frames" --episodes 20 --seed 4 --threads 2 --quiet --out three
cmp -s one three && complain "another seed learns the same"
expect 0 "blocks" info one

small="--world cartpole-blind --frames 4000 --quiet"
# shellcheck disable=SC2086
set -- $small
expect 0 "4096 frames" learn "$@" --blocks gru --hidden 16 --out small
expect 2 "--teacher FILE with --to-teacher" learn "$@" --to-teacher 1 --out other
expect 2 "--blocks and --init: the weights say that already" learn "$@" --init small --blocks gru --out other
expect 1 "small is there already" learn "$@" --out small
expect 0 "4096 frames" learn "$@" --init small --out tuned
expect 0 "4096 frames" learn "$@" --blocks "gru_only dense relu" --hidden 12 --head-layers 1 --head-activation relu --no-head-trunk \
  --input-width 20 --norm-epsilon 0.001 --no-final-norm --no-head-past --head-last --head-units 7 --out headed
expect 0 "every head has 1 layer of 7, relu, without a trunk, which see what it chose last" info headed
grep -q "input width 20" out && grep -q "LayerNorms add 0.001" out || complain "info of headed: $(cat out)"
expect 0 "4096 frames" learn "$@" --init small --teacher small --to-teacher 0.1 --most-kl 0.01 --out near
# what made it, not what made the policy it began with
expect 0 "learnt by playing cartpole-blind, opponent game: 4096 frames played, 4 passes over each, 64 updates" info small
expect 0 "mean return " info small
grep -q "^began\|^stayed" out && complain "small began with nothing: $(cat out)"
expect 0 "--world cartpole-blind" info small
expect 0 "weights" info --json small
hash=$(value out weights_hash | tr -d '"')
expect 0 "began with the weights $hash" info near
expect 0 "stayed near a teacher, the weights $hash: 0.1 of the divergence" info near
expect 0 "each counted in every pass" info near
expect 1 "would write over" learn "$@" --init small --out small --force
expect 1 "the teacher's spec" learn --world cartpole --frames 100 --teacher small --to-teacher 1 --out other
expect 2 "--to-teacher X with --teacher" learn "$@" --teacher small --out other
expect 1 "made for cartpole-blind" learn --world cartpole --frames 100 --init small --out other
expect 1 "there is no world" learn --world chess --out other
expect 2 "learn wants --world" learn --out other
expect 2 "learn wants no files" learn --world cartpole game.slp
expect 2 "--frames wants" learn --world cartpole --frames 0
expect 2 "--lanes wants" learn --world cartpole --lanes 5000
expect 2 "--precision wants f32, tf32, bf16 or f16, not f8" learn --world cartpole --precision f8 --out other
expect 2 "learn wants f32, tf32 or bf16 as --precision" learn --world cartpole --precision f16 --out other
expect 1 "precision bf16 is for CUDA devices" learn --world cartpole --precision bf16 --out other
expect 1 "--memory-limit allows 100000 bytes" learn --world cartpole --memory-limit 100000 --out other
expect 0 "usage: exphil learn" learn --help
[ ! -e other ] || complain "what was refused left a file"

short="--frames $(slow 20000 5000) --lanes 4 --scores 1 --episodes 2 --quiet"
# shellcheck disable=SC2086
expect 0 "frames of pong" learn --world pong $short --out pong
# shellcheck disable=SC2086
expect 0 "frames of pong-two" learn --world pong-two $short --out two-sides --force

# the world has no such seat or player
expect 1 "cartpole has one seat" learn --world cartpole --opponent self --out other
expect 1 "pong-two has no player of its own" learn --world pong-two --opponent game --out other
expect 1 "--opponent wants game" learn --world pong --opponent nobody --out other
expect 1 "at least 4 --lanes" learn --world pong --opponent league --lanes 2 --out other

# killed again and again it ends with the bits of a run that was not: weights, best weights, checkpoint, log
straight() { # <name> <options>
  new=$1; shift
  expect 0 "frames of" learn "$@" --quiet --out "$new" --log "$new.log"
}
same_log() { # without what a clock says
  sed 's/"frames_per_second":[^,]*,//' "$1" >one.lines
  sed 's/"frames_per_second":[^,]*,//' "$2" >two.lines
  cmp -s one.lines two.lines || complain "$1 and $2 differ"
}
broken() { # <name> <signal> <options>
  again=$1 by=$2 kills=0; shift 2
  while :; do
    "$exphil" learn "$@" --quiet --out "$again" --log "$again.log" --resume --save-minutes 0.0001 >out 2>err &
    run=$!
    lines=$(wc -l 2>/dev/null <"$again.log" || echo 0)
    while kill -0 $run 2>/dev/null && [ "$(wc -l 2>/dev/null <"$again.log" || echo 0)" -lt $((lines + 9)) ]; do sleep 0.02; done
    [ $kills -lt 4 ] && kill -"$by" $run 2>/dev/null
    wait $run
    status=$?
    kills=$((kills + 1))
    [ $status -eq 0 ] && break
    [ $status -gt 128 ] || { complain "after $kills signals status $status: $(cat err)"; break; }
  done
  [ $kills -gt 1 ] || complain "$again was never stopped"
}
league="--world pong --opponent league --frames 60000 --lanes 8 --time 32 --scores 4 --episodes 2 --seed 2"
blind="--world cartpole-blind --blocks gru --hidden 16 --time 16 --delay 4 --repeat 2 --teacher kept --to-teacher 0.1"
expect 0 "frames" learn --world cartpole-blind --blocks gru --hidden 16 --frames 4000 --delay 4 --repeat 2 --quiet --out kept
# games of pong are long: an instrumented program does not learn against its past here
for of in $(slow "league blind" blind); do
  name=$of
  # shellcheck disable=SC2086
  if [ "$of" = league ]; then signal=KILL; set -- $league; else signal=TERM; set -- $blind --frames "$(slow 40000 10000)"; fi
  straight "$name" "$@"
  broken "$name.again" $signal "$@"
  for end in "" .best .optimizer; do cmp -s "$name$end" "$name.again$end" || complain "$name$end and $name.again$end differ"; done
  same_log "$name.log" "$name.again.log"
done

# longer, or only scored again
if [ "$(slow all some)" = all ]; then
  # shellcheck disable=SC2086
  set -- $league
  expect 0 "60160 frames of pong" learn "$@" --quiet --resume --out league --log league.log
  same_log league.log league.again.log
  expect 1 "learner.clip" learn "$@" --ratio-clip 0.3 --quiet --resume --out league
  expect 1 "this run has" learn --world cartpole --frames 60000 --quiet --resume --out league
  expect 0 "plotted.svg" plot league.log --field episode_return --out plotted.svg
  expect 1 "is there already" learn "$@" --quiet --out league
fi

cp two-sides one-more
# who is better, with seats exchanged
expect 0 "score against" match --world pong pong two-sides one-more --games "$(slow 20 2)" --quiet
expect 0 '"score":0.5' match --world pong pong pong --games "$(slow 20 2)" --json
expect 2 "an even number" match --world pong pong pong --games 3
expect 1 "two seats" match --world cartpole pong pong
expect 2 "2 to 16 weights" match --world pong pong
expect 1 "made for cartpole-blind" match --world pong pong kept

# ended early: the weights are there, and go on
"$exphil" learn --world cartpole --frames 100000000 --out long >out 2>err &
run=$!
while kill -0 $run 2>/dev/null && ! grep -q "frames  return" err; do sleep 0.05; done
kill -TERM $run
wait $run
[ $? -eq 143 ] || complain "SIGTERM ends with another status"
grep -q "stopped by SIGTERM" err || complain "nothing is said of SIGTERM"
grep -q "with --resume goes on" err || complain "nothing is said of --resume"
expect 0 "2048 frames" learn --world cartpole --frames 2000 --init long --quiet --out after

echo "$checks checks"
exit $failed
