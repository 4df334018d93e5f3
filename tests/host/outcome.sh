#!/bin/sh
# exphil train with outcomes: the same from replays and from corpora of games, gone on with and repeated to the last bit, the policy
# as it was where the value alone is learnt, figures wherever a run tells of itself, and what does not go together.
#   outcome.sh <exphil> <source>
# shellcheck disable=SC2086
set -u
exphil=$(realpath "$1")
source=$(realpath "$2")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
same() { cmp -s "$1" "$2" || complain "$1 and $2 differ"; }
# lines LOG: without what a clock says, and without what names the data
lines() { sed 's/"frames_per_second":[^,]*,//; s/"trainer_bytes":[^,]*,//' "$1"; }
# told LOG FIELD: of the lines of training, in a list
told() { python3 -c '
import json, sys
print([line.get(sys.argv[2]) for line in map(json.loads, open(sys.argv[1])) if line["kind"] == "train"])' "$1" "$2"; }

expect 0 "frames" drill --frames 3600 --out drill.slp
expect 0 "frames" drill --frames 1800 --seed 2 --out other.slp
replays="$source/tests/host/outcome_replays.py"
python3 "$replays" drill.slp a.slp 2 2:700 1:1100 2:1500 2:2400 2:3580 || complain "no replay was made"
python3 "$replays" other.slp b.slp 2 2:300 2:700 1:900 2:1200 2:1780
python3 "$replays" other.slp cut.slp 7 2:300
small="--quiet --port 1 --no-previous-action --blocks gru --hidden 16 --head-width 8 --time 30 --batch 4 --alone 0 --schedule constant"
weighed="--value detached --half-life 2 --outcome-beta 0.5 --outcome-cap 3 --value-warmup 4 --seed 3"

# nothing of it asked for, nothing of it done
expect 0 "4 updates" train $small --updates 4 --out plain.st --log plain.log a.slp
expect 0 "4 updates" train $small --updates 4 --value none --rewards none --out none.st a.slp
python3 - <<'END' || complain "--value none is something"
import json, struct
def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    return {name: data[8 + size:][slice(*of["data_offsets"])] for name, of in head.items() if name != "__metadata__"}
assert read("plain.st") == read("none.st")
assert not any("value" in name for name in read("plain.st"))
for line in map(json.loads, open("plain.log")):
    assert not {"value_loss", "unexplained", "effective_share", "value_frames"} & line.keys(), line
END

# of replays one by one, of replays that are selected from, and of a corpus of games: the same updates
expect 0 "1 game" corpus --out a.games a.slp
expect 0 "12 updates" train $small $weighed --updates 12 --out one.st --log one.log a.slp
expect 0 "12 updates" train $small $weighed --updates 12 --out two.st --log two.log --characters fox a.slp
expect 0 "12 updates" train $small $weighed --updates 12 --out three.st --log three.log a.games
for log in two three; do
  lines one.log | grep '"train"' >left
  lines $log.log | grep '"train"' >right
  same left right
done
# one that is compressed too
gzip -k a.slp
expect 0 "12 updates" train $small $weighed --updates 12 --out four.st --log four.log a.slp.gz
lines four.log | grep '"train"' >right
same left right

# every update tells its figures; all rows weigh the same while the value warms up
python3 - "$(told one.log effective_share)" "$(told one.log clipped_share)" "$(told one.log unexplained)" "$(told one.log known)" <<'END' \
  || complain "figures of updates"
import ast, sys
effective, clipped, unexplained, known = map(ast.literal_eval, sys.argv[1:])
assert len(effective) == 12 and all(value is not None for of in (effective, clipped, unexplained, known) for value in of)
assert effective[:4] == [1.0] * 4 and clipped[:4] == [0.0] * 4, effective
assert all(0 < share < 0.999 for share in effective[4:]), effective
assert all(value > 0 for value in unexplained) and known == [120] * 12, known
END

# half now and half later, and once more by its own record: the same weights, checkpoint and log
expect 0 "3 updates" train $small $weighed --updates 3 --out part.st --log part.log a.slp b.slp
expect 0 "12 updates" train $small $weighed --updates 12 --out part.st --resume a.slp b.slp
expect 0 "12 updates" train $small $weighed --updates 12 --out whole.st --log whole.log a.slp b.slp
same part.st whole.st
same part.st.optimizer whole.st.optimizer
lines part.log | grep '"train"' >left
lines whole.log | grep '"train"' >right
same left right
expect 0 "12 updates" train --config whole.st.run.json --out again.st --log again.log
same again.st whole.st
expect 0 "12 updates" train $small $weighed --shuffled-weights --updates 12 --out shuffled.st --log shuffled.log a.slp b.slp
lines shuffled.log | grep '"train"' | head -n 4 >left
lines whole.log | grep '"train"' | head -n 4 >right
same left right
[ "$(told shuffled.log loss)" != "$(told whole.log loss)" ] || complain "shuffled weights are the own ones"

# another loss is another run; nothing has changed
cp part.st kept
cp part.st.optimizer kept.optimizer
more="--updates 20 --out part.st --resume"
expect 1 "--outcome-beta: the checkpoint was made with 0.5, this run has 0.4" train $small $weighed --outcome-beta 0.4 $more a.slp b.slp
expect 1 "--half-life: the checkpoint was made with 2, this run has 3" train $small $weighed --half-life 3 $more a.slp b.slp
expect 1 "--shuffled-weights: the checkpoint was made with off, this run has on" train $small $weighed --shuffled-weights $more a.slp b.slp
expect 1 "--reward-damage: the checkpoint was made with 0.01, this run has 0" train $small $weighed --reward-damage 0 $more a.slp b.slp
expect 1 "--rewards: the checkpoint was made with melee, this run has none" train $small --seed 3 --value detached \
  --rewards none $more a.slp b.slp
expect 1 "--value: the checkpoint was made with detached, this run has shared" train $small $weighed --value shared $more a.slp b.slp
expect 1 "--value: the checkpoint was made with detached, this run has none" train $small --seed 3 $more a.slp b.slp
same part.st kept
same part.st.optimizer kept.optimizer

# what is held out is told too, and in all that a run leaves
expect 0 "value, unexplained" train $small --value shared --half-life 2 --rate 0.01 --updates 60 --held-out 0.3 --split time \
  --eval-every 20 \
  --log held.log --tensorboard events --out held.st --threads 1 a.slp b.slp
python3 - <<'END' || complain "what was held out"
import json
lines = [json.loads(line) for line in open("held.log")]
held = [line["unexplained"] for line in lines if line["kind"] == "held_out"]
assert len(held) == 3 and held[-1] < held[0], held
train = lines[-1]
assert train["kind"] == "train_set" and train["unexplained"] > 0 and train["value_frames"] == train["frames"], train
scores = json.load(open("held.st.scores"))["scores"]
assert [round(score["unexplained"], 9) for score in scores] == [round(value, 9) for value in held], scores
END
expect 0 "value unexplained" info held.st
expect 0 '"unexplained"' info --json held.st
expect 0 "held.html" report --html held.html held.log
for text in "Unexplained is the part of the variance" "Variance that the value leaves unexplained" \
  "Squared error of the value" "value, unexplained"; do
  grep -qF "$text" held.html || complain "the page lacks: $text"
done
expect 0 "plotted.svg" plot --field unexplained --out plotted.svg held.log
# three scores, and their key
[ "$(grep -c 'class="d0"' plotted.svg)" -eq 4 ] || complain "the picture has not three scores"
expect 0 "unexplained" train $small --value detached --half-life 2 --updates 6 --held-out 0.3 --split time --best unexplained --json \
  --out best.st a.slp b.slp
[ "$(value out best by)" = '"unexplained"' ] || complain "best by $(value out best by)"
# a run that is only scored again says the same
cp held.log held.before
expect 0 "value, unexplained" train $small --value shared --half-life 2 --rate 0.01 --updates 60 --held-out 0.3 --split time \
  --eval-every 20 \
  --log held.log --out held.st --resume --threads 1 a.slp b.slp
lines held.before >left
lines held.log >right
same left right

# the value alone: every tensor of the policy stays as it was
expect 0 "40 updates" train --quiet --port 1 --time 30 --batch 4 --alone 0 --init plain.st --value detached --value-only \
  --half-life 2 --rate 0.01 \
  --updates 40 --out valued.st --log valued.log a.slp b.slp
expect 0 "3 updates" train --quiet --port 1 --time 30 --batch 4 --alone 0 --init valued.st --value-only --half-life 2 --updates 3 \
  --out more.st a.slp
python3 - <<'END' || complain "the policy has changed"
import json, struct
def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    return {name: data[8 + size:][slice(*of["data_offsets"])] for name, of in head.items() if name != "__metadata__"}
before, after, more = read("plain.st"), read("valued.st"), read("more.st")
new = after.keys() - before.keys()
assert new and all("value" in name for name in new), new
assert all(after[name] == before[name] and more[name] == before[name] for name in before)
assert any(after[name] != more[name] for name in new)
losses = [line["value_loss"] for line in map(json.loads, open("valued.log")) if line["kind"] == "train"]
assert sum(losses[-10:]) < 0.5 * sum(losses[:10]), losses
END

again="--quiet --port 1 --time 30 --batch 4 --alone 0 --init plain.st --value-only --half-life 2 --rate 0.01 --updates 40 --out valued.st"
expect 1 "--value: the checkpoint was made with detached, this run has shared" train $again --value shared --resume a.slp b.slp
expect 0 "40 updates" train $again --value detached --resume a.slp b.slp

# a game that was cut off is not known towards its end; one that is nothing else teaches nothing
expect 0 "6 updates" train --port 1 --no-previous-action --blocks gru --hidden 8 --alone 0 --value detached --half-life 1 --updates 6 \
  --out cut.st cut.slp
grep -q "1 of games that were cut off: what came in their last 6 s is not known" err || complain "cut off: $(cat err)"
expect 1 "all of these games were cut off in their last 60 s" train $small --value detached --half-life 10 --updates 6 --out no.st cut.slp

# what does not go together, before data are looked for
refuse() {
  text=$1
  shift
  expect 2 "$text" train $small "$@" --out none/x none.slp
  grep -q "none.slp" err && complain "the data were looked at before: $*"
}
refuse "--value wants none, detached or shared, not own" --value own
refuse "--rewards wants melee or none, not pong" --value shared --rewards pong
for option in "--half-life 3" "--outcome-beta 1" "--reward-stock 2" "--value-only" "--rewards melee" "--value-weight 1"; do
  refuse "${option%% *} wants --value detached or --value shared" $option
done
refuse "--half-life and --rewards none: there is nothing to learn from" --value shared --rewards none --half-life 3
refuse "--reward-stock 0, and all others 0" --value shared --reward-stock 0 --reward-damage 0
refuse "--half-life wants 0.01 or more seconds" --value shared --half-life 0
refuse "--outcome-cap is for --outcome-beta X" --value shared --outcome-cap 3
refuse "--value-warmup is for --outcome-beta X" --value shared --value-warmup 3
refuse "--shuffled-weights is for --outcome-beta X" --value shared --shuffled-weights
refuse "--value-only and --outcome-beta" --value shared --value-only --outcome-beta 1
refuse "--best unexplained wants --value" --held-out 0.1 --best unexplained
for option in "--own-past 0.5 --delay 2" "--accumulate 2" "--shards 2" "--precision f16" "--smoothing 0.1" "--focal 1" \
  "--button-weight 2"; do
  refuse "and --value: updates that learn from what came do not go with that" --value shared $option
done
for option in "--half-life x" "--outcome-beta -1" "--outcome-cap 0" "--value-weight 0" "--value-warmup -1" \
  "--reward-stock -1" "--reward-ledge nan"; do
  refuse "${option% *} wants " --value shared $option
done
expect 1 "these weights have no value head; --value detached gives them one" train --init plain.st --value-only --out no.st none.slp
expect 0 "rows" corpus --rows --port 1 --out rows.corpus a.slp
expect 1 "a corpus of rows does not tell what came of its frames" train $small --value detached --out no.st rows.corpus
[ ! -e no.st ] || complain "what was refused left a file"

# real games, where they are
games=${EXPHIL_GAMES:-$source/../shared/games}
if [ -e "$games/game.slp" ]; then
  expect 0 "value, unexplained" train --quiet --no-previous-action --blocks gru --hidden 8 --updates 4 --alone 0 --value shared \
    --outcome-beta 0.5 \
    --out real.st "$games/game.slp"
else
  echo "SKIPPED: no real games at $games; EXPHIL_GAMES names a folder with game.slp"
fi

echo "$checks checks"
exit $failed
