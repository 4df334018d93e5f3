#!/bin/sh
# What exphil eval tells of single frames: its parts add up to the report beside them, the frames that cost most are spread over
# games and are in order, text is a page.
#   examine.sh <exphil> <source folder>
set -u
exphil=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
checks=0
complain() { echo "FAILED: $*"; failed=1; }
run() {
  checks=$((checks + 1))
  "$exphil" "$@" >out 2>err </dev/null || { complain "$* failed"; head -n 5 out err; }
}

run drill --frames 3600 --out teacher.slp
for seed in 2 3 4; do run drill --frames 1200 --seed $seed --out $seed.slp; done
python3 "$source/tests/host/notes_replays.py" 3.slp other.slp 20 0 9 0 # falco, marth
run train --quiet --port 1 --no-previous-action --blocks gru --hidden 24 --head-width 16 --rate 0.01 --updates 60 --threads 1 \
  --out policy.safetensors teacher.slp

run eval --json --mistakes 7 policy.safetensors 2.slp other.slp 4.slp
cp out whole.json
run eval --json --mistakes 7 --threads 3 policy.safetensors 2.slp other.slp 4.slp
cmp -s out whole.json || complain "threads change the examination"
python3 - <<'PYTHON' || complain "the parts do not add up"
import json
report = json.load(open("whole.json"))
exam = report["examination"]
near = lambda a, b: abs(a - b) <= 1e-9 * (1 + abs(b))
assert exam["frames"] == report["frames"]
for kind in "characters", "opponents", "stages", "phases":
    groups = exam[kind].values()
    assert sum(g["frames"] for g in groups) == report["frames"], kind
    assert sum(g["change_frames"] for g in groups) == report["change_frames"], kind
    assert near(sum(g["nll"] * g["frames"] for g in groups) / report["frames"], report["nll"]), kind
    assert near(sum(g["exact_accuracy"] * g["frames"] for g in groups) / report["frames"], report["exact_accuracy"]), kind
    assert all(("exact_change_accuracy" in g) == (g["change_frames"] > 0) for g in groups), kind
assert set(exam["characters"]) == set(exam["opponents"]) == {"fox", "falco", "marth"} and set(exam["stages"]) == {"final_destination"}
assert exam["phases"]["first 10 s"]["frames"] == 6 * 600 and set(exam["phases"]) == {"first 10 s", "middle"}
for name, head in exam["heads"].items():
    frames = report["frames"] * (8 if name == "buttons" else 1)
    bins = head["bins"]
    assert len(bins) == 10 and sum(b["count"] for b in bins) == frames
    error = sum(b["count"] * abs(b["accuracy"] - b["confidence"]) for b in bins) / frames
    assert near(error, head["calibration_error"]), name
    assert all(i / 10 - 1e-9 <= b["confidence"] <= (i + 1) / 10 + 1e-9 for i, b in enumerate(bins) if b["count"])
    if name != "buttons":
        assert near(sum(b["count"] * b["accuracy"] for b in bins) / frames, report["heads"][name]["accuracy"]), name
bits = exam["heads"]["buttons"]["bits"]
assert list(bits) == ["A", "B", "X", "Y", "Z", "L", "R", "D-pad up"]
assert bits["B"]["recorded"] > 0.02 and bits["Z"]["recorded"] == 0 and all(0 <= v <= 1 for b in bits.values() for v in b.values())
stick = exam["main_stick"]
assert sum(map(sum, stick["recorded_decided"])) == report["frames"] and len(stick["sectors"]) == 9
down, left, right = (stick["sectors"].index(name) for name in ("down", "left", "right"))
assert sum(stick["recorded_decided"][down]) > 0 < sum(stick["recorded_decided"][left]) and sum(stick["recorded_decided"][right]) > 0
mistakes = report["mistakes"]
assert len(mistakes) == 7 and [m["nll"] for m in mistakes] == sorted((m["nll"] for m in mistakes), reverse=True)
games = [m["game"] for m in mistakes]
assert len(set(games)) == 3 and max(map(games.count, games)) <= 3
for a in mistakes:
    assert not any(a is not b and a["episode"] == b["episode"] and abs(a["frame"] - b["frame"]) < 60 for b in mistakes)
    assert " against " in a["match"] and " on final_destination" in a["match"] and "; opponent" in a["situation"], a
    assert a["recorded"]["text"] and len(a["likely"]["heads"]) == 6 and a["recorded"] != a["likely"]
PYTHON
run eval policy.safetensors 2.slp other.slp 4.slp
[ "$(wc -l <out)" -le 60 ] || complain "more than a page: $(wc -l <out) lines"
for words in "policy's decisions" "calibration error" "main stick" "as         f" "phase"; do
  grep -qF "$words" out || complain "no \"$words\" in: $(cat out)"
done
run eval --mistakes 3 policy.safetensors 2.slp other.slp 4.slp
[ "$(grep -c '^    likeliest ' out)" = 3 ] || complain "not three: $(cat out)"
[ "$(grep -o 'game [0-9a-f]*$' out | sort -u | wc -l)" = 3 ] || complain "not of three games: $(cat out)"

echo "$checks checks"
exit $failed
