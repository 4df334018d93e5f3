#!/bin/sh
# exphil review: values, rewards and swings against the replay's bytes and the training's own figure, in text, JSON and as a
# picture; with a delay; and what is refused.
#   review.sh <exphil> <source>
set -u
exphil=$(realpath "$1")
source=$(realpath "$2")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
replays="$source/tests/host/outcome_replays.py"
export PYTHONPATH="$source/tests/host" PYTHONDONTWRITEBYTECODE=1

expect 0 "frames" drill --frames 3600 --out drill.slp
python3 "$replays" drill.slp a.slp 2 2:700 1:1100 2:1500 2:2400 2:3580 || complain "no replay was made"
python3 "$replays" drill.slp cut.slp 7 2:700
train() {
  expect 0 "value, unexplained" train --quiet --port 1 --blocks gru --hidden 24 --head-width 16 --time 30 --batch 8 --rate 0.01 --alone 0 \
    --mirror 0 --value shared --threads 1 "$@" a.slp
}
train --no-previous-action --half-life 2 --updates 150 --log a.log --out a.st
train --delay 3 --half-life 3 --reward-stock 2 --updates 20 --log late.log --out late.st

# check FILE LOG HALF_LIFE STOCK DELAY: rewards by the bytes of the replay; what the value leaves unexplained is what the training
# said; swings are what they are made of, none is larger, none nearer to another than two seconds
cat >check.py <<'END'
import json, pathlib, sys
import outcome_replays
file, log, half_life, stock, delay = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
told, clock, replay = json.load(open(file)), 480, pathlib.Path("a.slp").read_bytes()
port = told["port"]
rewards = [round(reward) * (stock - 1) + reward for reward in outcome_replays.rewards("a.slp", port)][outcome_replays.FIRST * -1:]
assert told["first_frame"] == 0 and told["frames"] == 3600 == len(told["value"]) == len(told["reward"]), told["frames"]
assert told["delay_frames"] == delay and told["over"] and told["worth_told"] and told["worth"]["half-life"] == half_life
near = lambda a, b: abs(a - b) <= 1e-5 * (1 + abs(b))
assert all(map(near, told["reward"], rewards)), max(abs(a - b) for a, b in zip(told["reward"], rewards))
assert sum(reward > 0.9 * stock for reward in rewards) == 4 and sum(reward < -0.9 * stock for reward in rewards) == 1
value, gamma, later, returns = told["value"], 0.5 ** (1 / (60 * half_life)), 0.0, []
assert [at for at in range(3600) if value[at] is None] == list(range(delay))
for reward in reversed(rewards):
    later = reward + gamma * later
    returns.append(later)
returns.reverse()
pairs = [(v, g) for v, g in zip(value, returns) if v is not None]
mean = sum(g for _, g in pairs) / len(pairs)
unexplained = sum((v - g) ** 2 for v, g in pairs) / sum((g - mean) ** 2 for _, g in pairs)
assert near(told["unexplained"], unexplained) and told["known_returns"] == len(pairs), (told["unexplained"], unexplained)
trained = [line for line in map(json.loads, open(log)) if line["kind"] == "train_set"][-1]
assert near(trained["unexplained"], unexplained) and trained["value_frames"] == len(pairs), (trained["unexplained"], unexplained)
dead = (2, 700), (1, 1100), (2, 1500), (2, 2400), (2, 3580)
def expected(first):  # the mean of half a second in which nobody dies
    inside = range(first, first + 30)
    if first < delay or first + 30 > 3600 or any(frame in inside for _, frame in dead): return None
    return sum(value[at] for at in inside) / 30
def swing(at):
    came = sum(gamma ** i * rewards[at + i] for i in range(120))
    before, after = expected(at - 30), expected(at + 120) if at + 120 < 3600 else 0.0
    if before is None or after is None: return None
    return before, came, gamma ** 120 * after, came + gamma ** 120 * after - before
all_of = {at: swing(at)[3] for at in range(delay, 3481) if swing(at)}
assert 3480 in all_of and 2950 < len(all_of) < 3440, len(all_of)
taken = []
for one in told["swings"]:
    before, came, after, size = swing(one["frame"])
    assert near(one["came"], came) and near(one["after"], after) and near(one["swing"], size), one
    assert near(one["before"], before), one
    free = [abs(all_of[at]) for at in all_of if all(abs(at - other) >= 120 for other in taken)]
    assert near(abs(size), max(free)), one
    taken.append(one["frame"])
    assert one["time"] == f"{one['frame'] // 3600}:{one['frame'] // 60 % 60:02d}"
    left = (60 * clock - one["frame"]) // 60
    assert one["clock"] == f"{left // 60}:{left % 60:02d}", one["clock"]
    inside = range(one["frame"], one["frame"] + 120)
    for event in one["events"]:
        if event["kind"] != "death": continue
        of = [outcome_replays.state(replay, frame, event["port"]) for frame in range(event["frame"] - 300, event["frame"] + 1)]
        hits = [at for at in range(1, 301) if of[at][1] > of[at - 1][1] and of[at][2] == of[at - 1][2]]
        assert event.get("hit_frame") == (event["frame"] - 300 + hits[-1] if hits else None), event
    first = min([event.get("hit_frame", event["frame"]) - 90 for event in one["events"]], default=one["frame"])
    first = max(0, min(first, 3480))
    assert [row["frame"] for row in one["inputs"]] == [at for at in range(first, first + 120) if at >= delay], one["inputs"][0]
    deaths = [(event["port"], event["frame"]) for event in one["events"] if event["kind"] == "death"]
    wanted = [death for death in dead if death[1] in inside]
    assert sorted(deaths) == sorted(wanted), (deaths, wanted)
    assert all(("P%d fox dies at" % who) in one["what"] for who, _ in wanted) and ("dies" in one["what"]) == bool(wanted), one["what"]
assert len(taken) == 5, taken
END
expect 0 '"swings"' review --weights a.st --port 1 --json a.slp
cp out one.json
python3 check.py one.json a.log 2 1 0 || complain "the review of a.slp"
expect 0 '"swings"' review --weights late.st --port 1 --json a.slp
cp out late.json
python3 check.py late.json late.log 3 2 3 || complain "the review with a delay"
# what was pressed is what the replay has, and what the policy would press is what exphil play says of these frames
expect 0 '"shown"' play --port 1 --show 3600 --json late.st a.slp
python3 - <<'END' || complain "inputs are not those of exphil play"
import json
shown = {row["frame"]: row for row in json.load(open("out"))["shown"]}
rows = [row for swing in json.load(open("late.json"))["swings"] for row in swing["inputs"]]
assert len(rows) == 600 and all(shown[row["frame"]][who] == row[who] for row in rows for who in ("pressed", "policy"))
END
# seen by the other player the rewards change their sign
expect 0 '"port":2' review --weights a.st --port 2 --json a.slp
python3 - <<'END' || complain "the other side"
import json
one, other = json.load(open("one.json")), json.load(open("out"))
assert [-reward for reward in one["reward"]] == other["reward"] and one["value"] != other["value"]
END

# for people: the game, how good the value is, curve, swings with times, frames, what happened, and both inputs
expect 0 "P1 fox against P2 fox on final destination, 1:00" review --weights a.st --port 1 --swings 3 --svg a.svg a.slp
for text in "winner: P1 fox (nobody else has stocks left)" "A stock is 1, a percent 0.01; what comes 2 s later counts half" "it foresaw" \
  "The 3 largest swings" "dies |" "x P1, o P2" "expected" "then expects" "pressed" "policy" "clock 7:"; do
  tr '\n' ' ' <out | grep -qF "$text" || complain "the text lacks: $text"
done
time='[0-9]:[0-9][0-9]'
[ "$(grep -cE "^ [1-3]\\.  $time, clock $time \\(frame [0-9]+\\)" out)" -eq 3 ] || complain "not three swings: $(cat out)"
[ "$(grep -cE '^     (pressed|policy) ' out)" -eq 6 ] || complain "not six lines of inputs"
[ "$(grep -oE '^ *dies \|.{72}' out | tr -cd 'xo')" = oxooo ] || complain "deaths: $(grep dies out)"
awk 'length > 100 { exit 1 }' out || complain "a line is wider than a page"
python3 - <<'END' || complain "the picture"
import xml.etree.ElementTree as tree
root = tree.parse("a.svg").getroot()
name = "{http://www.w3.org/2000/svg}"
lines, rects = root.findall(name + "line"), root.findall(name + "rect")
points = sum(len(line.get("points").split()) for line in root.findall(name + "polyline"))
assert points == 3600 and len(rects) == 1 + 3, (points, len(rects))
assert sorted(line.get("stroke") for line in lines if line.get("stroke-dasharray")) == ["#2e8b57"] * 4 + ["#d1495b"]
END
expect 0 "a.svg" review --weights a.st --swings 1 --svg a.svg a.slp
grep -q "The largest swing, within two seconds" out || complain "one swing: $(cat out)"
expect 0 "P1 fox" review --weights a.st --swings 0 a.slp
expect 0 "winner: not known" review --weights a.st cut.slp
expect 0 '"over":false' review --weights a.st --json cut.slp
gzip -k a.slp
expect 0 '"swings"' review --weights a.st --port 1 --json a.slp.gz
sed 's/a.slp.gz/a.slp/' out | cmp -s - one.json || complain "a compressed replay is another game"

# what is refused
expect 0 "frames" train --quiet --port 1 --blocks gru --hidden 8 --updates 1 --alone 0 --out plain.st a.slp
expect 1 "plain.st: these weights have no value head; exphil train --init plain.st --value detached --value-only" review \
  --weights plain.st a.slp
expect 2 "review wants --weights FILE" review a.slp
expect 2 "review wants one REPLAY" review --weights a.st
expect 2 "review wants one REPLAY" review --weights a.st a.slp cut.slp
expect 2 "--swings wants 0 to 1000, not 1001" review --weights a.st --swings 1001 a.slp
expect 2 "--port" review --weights a.st --port 5 a.slp
expect 1 "no player at --port 3; there is P1 fox human, P2 fox human" review --weights a.st --port 3 a.slp
expect 1 "no player at --opponent 4" review --weights a.st --opponent 4 a.slp
expect 1 "none.slp" review --weights a.st none.slp
expect 1 "a.slp: " review --weights a.slp a.slp
expect 1 "a.st: " review --weights a.st a.st
head -c 5000 /dev/zero >broken.slp
expect 1 "broken.slp" review --weights a.st broken.slp
head -c 900 a.slp >short.slp
expect 1 "short.slp" review --weights a.st short.slp
head -c 100000 a.slp >early.slp
expect 0 "the recording ends before the game does" review --weights a.st early.slp
cp a.slp kept
expect 1 "would write over a.slp" review --weights a.st --svg a.slp a.slp
expect 1 "kept" review --weights a.st --svg kept a.slp
cmp -s a.slp kept || complain "a file was written over"
expect 1 "none/x.svg" review --weights a.st --svg none/x.svg a.slp

# real games, where they are: each is told, or said why not
games=${EXPHIL_GAMES:-$source/../shared/games}
if [ -e "$games/game.slp" ]; then
  for game in game test rollbackFrameTest; do expect 0 "largest swings" review --weights a.st "$games/$game.slp"; done
else
  echo "SKIPPED: no real games at $games; EXPHIL_GAMES names a folder with game.slp"
fi

echo "$checks checks"
exit $failed
