#!/bin/sh
# Event files of exphil train --tensorboard and exphil plot --tensorboard as TensorBoard's own reader sees them: the values of
# the log, no step twice after --resume, readable to the last line of a run that was killed.
#   events.sh <exphil> <source>
set -u
exphil=$(realpath "$1")
source=$(realpath "$2")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
reader=yes
"$python" "$source/tests/host/events_check.py" probe 2>/dev/null || reader=
[ "$reader" ] || echo "SKIPPED: $python has no tensorboard package, which reads event files; tools/deps test installs it"
# read FOLDER LOG: they say the same
compare() {
  [ ! "$reader" ] || "$python" "$source/tests/host/events_check.py" "$1" "$2" >said 2>&1 || complain "$1: $(tail -n 1 said)"
}
files() { find "$1" -name '*tfevents*' | wc -l; }

expect 0 "frames" drill --frames 600 --out a.slp
small="--quiet --port 1 --blocks gru --hidden 8 --time 30 --held-out 0.3 --split time --eval-every 2"
# shellcheck disable=SC2086
set -- $small
expect 0 "5 updates" train "$@" --updates 5 --log one.jsonl --tensorboard events/deep/one --out one a.slp
compare events/deep/one one.jsonl
[ "$(files events)" -eq 1 ] || complain "$(files events) files"
# without a log they are the same: nothing of them depends on it
expect 0 "5 updates" train "$@" --updates 5 --tensorboard events/two --out two a.slp
[ ! "$reader" ] || "$python" - events/deep/one events/two <<'END' || complain "events without a log differ"
import sys
from tensorboard.backend.event_processing import event_accumulator
runs = [event_accumulator.EventAccumulator(path).Reload() for path in sys.argv[1:]]
tags = [sorted(run.Tags()["scalars"]) for run in runs]
assert tags[0] == tags[1] and "train/heads/buttons" in tags[0] and "held_out/heads/main_x/nll" in tags[0], tags
for tag in "train/loss", "held_out/exact_accuracy":
    values = [[(one.step, one.value) for one in run.Scalars(tag)] for run in runs]
    assert values[0] == values[1] and values[0], values
END

for other in "--out same" "--log same" "--keep-bad-batch same"; do
  # shellcheck disable=SC2086
  expect 1 "would write over same" train "$@" --updates 1 --out other $other --tensorboard same a.slp
done
[ ! -e same ] || complain "a run that is refused leaves a folder"
expect 1 "the events of an earlier run are there" train "$@" --updates 5 --tensorboard events/two --out other a.slp
expect 0 "5 updates" train "$@" --updates 5 --rate 0.1 --log two.jsonl --tensorboard events/two --out two --force a.slp
compare events/two two.jsonl
[ "$(files events/two)" -eq 1 ] || complain "--force keeps the events of the run that it replaces"

# killed at some moment: all up to the last line is there; gone on with, no step is there twice
updates=$(slow 1500 300)
"$exphil" train "$@" --updates "$updates" --save-every 10 --alone 0 --log long.jsonl --tensorboard events/long --out long a.slp >out 2>err &
run=$!
lines() { if [ -e long.jsonl ]; then wc -l <long.jsonl; else echo 0; fi; }
while kill -0 $run 2>/dev/null && [ "$(lines)" -lt 25 ]; do sleep 0.02; done
kill -9 $run 2>/dev/null
wait $run 2>/dev/null
compare events/long long.jsonl killed
cp -r events/long killed
expect 0 "$updates updates" train "$@" --updates "$updates" --save-every 10 --alone 0 --log long.jsonl \
  --tensorboard events/long --out long --resume a.slp
[ "$(files events/long)" -eq 2 ] || complain "$(files events/long) files after --resume"
compare events/long long.jsonl

# a record that was cut ends the file, and takes nothing with it
cp -r events/deep/one cut
file=$(find cut -type f)
truncate -s -3 "$file"
tail -n 1 one.jsonl | grep -q train_set || complain "the last line is another: $(tail -n 1 one.jsonl | cut -c 1-60)"
[ ! "$reader" ] || "$python" - cut events/deep/one <<'END' || complain "what stands before a record that was cut is not read"
import sys
from tensorboard.backend.event_processing import event_accumulator
run = event_accumulator.EventAccumulator(sys.argv[1]).Reload()
assert [one.step for one in run.Scalars("train/loss")] == [1, 2, 3, 4, 5]
assert [one.step for one in run.Scalars("held_out/nll")] == [2, 4, 5], run.Scalars("held_out/nll")
whole = event_accumulator.EventAccumulator(sys.argv[2]).Reload()
for tag in whole.Tags()["scalars"]:
    there = tag in run.Tags()["scalars"] and len(run.Scalars(tag))
    assert there == (0 if tag.startswith("train_set/") else len(whole.Scalars(tag))), tag
END

# logs that are there become events too
expect 0 from/one plot --tensorboard from one.jsonl two.jsonl
compare from/one one.jsonl
compare from/two two.jsonl
expect 0 resumed plot --tensorboard resumed long.jsonl
compare resumed long.jsonl
expect 1 "the events of an earlier run are there" plot --tensorboard resumed long.jsonl
expect 0 resumed plot --tensorboard resumed --force one.jsonl
compare resumed one.jsonl
mkdir other
cp one.jsonl other/one.log
expect 1 "would both go into again/one" plot --tensorboard again one.jsonl other/one.log
expect 1 "this is no log of exphil train" plot --tensorboard again a.slp
expect 2 "--tensorboard and --text" plot --tensorboard again --text one.jsonl
[ ! -e again ] || complain "refused, and made a folder"

takes_none=
[ -e /proc/self ] && takes_none=/proc/x
# what no folder of events can be is told before data are read
for folder in "" a.slp a.slp/x $takes_none; do
  expect 1 "--tensorboard " train "$@" --updates 1 --tensorboard "$folder" --out v none.slp
done
expect 1 "a.slp: that is no folder" train "$@" --updates 1 --tensorboard a.slp --out v none.slp

echo "$checks checks"
exit $failed
