#!/bin/sh
# Pages of exphil report: everything that there is of a run stands there, what there is not is left out, and a page needs
# nothing but itself. How pages look is hosts.browser.
#   report.sh <exphil>
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
# page FILE: headings and what is below them, one a line: "Heading: text"; fails where it is no whole page of its own
page() {
  python3 - "$1" >told 2>why <<'END' || complain "$1: $(tail -n 1 why)"
import html.parser, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
assert text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n"), "cut"
outside = [found for found in re.findall(r'\b(?:(?:src|href|action)\s*=|url\(|@import)\s*\S*', text)]
assert not outside and "<script" not in text and not re.search(r"<[^>]*\son[a-z]+=", text), outside
assert [found for found in re.findall(r"https?://[^\"' <]*", text) if found != "http://www.w3.org/2000/svg"] == [], "addresses"
class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.parts, self.level = [], [["", ""]], None
    def handle_starttag(self, tag, _):
        if tag not in ("meta", "br", "line", "rect", "circle", "polyline"):
            self.open.append(tag)
        if tag in ("h1", "h2", "h3"): self.parts.append(["", ""])
    def handle_startendtag(self, tag, _): pass
    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"{tag} is not what is open"
    def handle_data(self, data):
        if "style" not in self.open: self.parts[-1][not self.open or self.open[-1] not in ("h1", "h2", "h3")] += " " + data.strip()
reader = Reader()
reader.feed(text)
assert not reader.open, reader.open
for heading, below in reader.parts: print(heading.strip() + ":", " ".join(below.split()))
END
}
# has HEADING TEXT...
has() {
  heading=$1
  shift
  for text in "$@"; do grep -- "^$heading:" told | grep -qF -- "$text" || complain "$heading has not: $text"; done
}
lacks() { for heading in "$@"; do grep -q "^$heading:" told && complain "$heading: there is nothing to say of it"; done; }

expect 0 "frames" drill --frames 600 --out a.slp
mkdir run
expect 0 "6 updates" train --quiet --port 1 --blocks gru --hidden 8 --time 30 --updates 6 --held-out 0.3 --split time --eval-every 2 \
  --rate 0.01 --log run/log.jsonl --out run/policy a.slp
expect 0 page.html report --html page.html run/log.jsonl
page page.html
grep -qE '^run/policy:.* ended ' told && complain "a run that came to its end ended early"
has run/policy "updates 6" "of planned 6" "best weights run/policy.best.safetensors" "data a.slp" "blocks gru" "parameters 82594"
has Curves "Loss, nats" "nll, nats" "Right on all parts" "Right where the input changes" "Size of the gradient" "Learning rate" \
  "Frames a second" majority copy "held out"
has "Scores on what was held out" "main x" "all parts right" "better than both baselines"
has "Scores on the training data" buttons
has Options "rate 0.01" "hidden 8" "held-out 0.3" "condition-mask 0.1" "all that were not asked for"
lacks "Scores on other data"
# the figures are those of the log
python3 - <<'END' || complain "figures of the page are not those of the log"
import json
line = [line for line in map(json.loads, open("run/log.jsonl")) if line["kind"] == "held_out"][-1]
held = next(text for text in open("told") if text.startswith("Scores on what was held out:"))
exact = [line[name] for name in ("exact_accuracy", "alone_accuracy", "exact_majority", "exact_copy")]
assert f"nll, nats a frame {line['nll']:.4g} " in held, held
assert "all parts right " + " ".join(f"{100 * share:.1f} %" for share in exact) in held, held
assert f"main y {100 * line['heads']['main_y']['accuracy']:.1f} %" in held, held
END

# by any of what a run leaves; a log alone; what there is not is left out
cp run/policy run/policy.4.safetensors
for run in run/policy run/policy.run.json run/policy.best.safetensors run/policy.4.safetensors; do
  expect 0 other.html report --html other.html $run
  cmp -s page.html other.html || complain "the page of $run is another"
done
cp run/log.jsonl alone.jsonl
expect 0 alone.html report --html alone.html alone.jsonl
page alone.html
has alone.jsonl "updates 6"
lacks Options run/policy
# why a run ended before its planned updates; names with a suffix
mkdir early
expect 0 "by --patience" train --quiet --port 1 --blocks gru --hidden 8 --time 30 --updates 200 --held-out 0.3 --split time \
  --eval-every 1 --patience 1 --rate 1 --schedule constant --alone 0 --log early/p.jsonl --out early/p.safetensors a.slp
for weights in p p.best; do
  expect 0 early.html report --html early.html early/$weights.safetensors
  page early.html
  has early/p.safetensors "ended by --patience 1: so many scores without a gain" "best weights early/p.best.safetensors"
done
grep -v train_set early/p.jsonl >cut.jsonl
mv cut.jsonl early/p.jsonl
expect 0 early.html report --html early.html early/p.safetensors
page early.html
has early/p.safetensors "ended not yet, or it was stopped"
cp early/p.safetensors early/q.best.safetensors
expect 1 "q.best.safetensors.run.json: No such file" report --html early.html early/q.best.safetensors
echo '{"kind":"train","update":1,"loss":1}' >short.jsonl
expect 0 short.html report --html short.html short.jsonl
page short.html
lacks Verdict "Scores on what was held out" "Scores on the training data" Examination "How often buttons are down" Options
expect 0 '{"html":"short.html"}' report --html short.html short.jsonl --json

# an examination: that of the log, or that of other data
# examined FILE: what the page must have of its last examination
examined() {
  python3 - "$1" >why 2>&1 <<'END' || complain "the page does not show the examination of $1: $(tail -n 1 why)"
import json, sys
said = [line for line in map(json.loads, open(sys.argv[1])) if "examination" in line][-1]
told = dict(line.rstrip("\n").split(":", 1) for line in open("told"))
seen = said["examination"]
def has(heading, *texts):
    for text in texts: assert f" {text} " in told[heading] + " ", (heading, text, told[heading])
has("Examination", f"{seen['frames']} frames")
for name, bit in seen["heads"]["buttons"]["bits"].items():
    has("How often buttons are down", " ".join([name, *(f"{100 * bit[key]:.2f} %" for key in ("recorded", "probability", "decided"))]))
for name, head in seen["heads"].items():
    has("How sure the policy is", f"{name.replace('_', ' ')} {head['entropy']:.4f} {100 * head['calibration_error']:.2f} %")
for name, row in zip(seen["main_stick"]["sectors"], seen["main_stick"]["recorded_decided"]):
    cells = [f"{100 * cell / sum(row):.0f}" if cell >= 0.005 * sum(row) else "<1" for cell in row if cell]
    has("Where the main stick goes", " ".join([str(sum(row)), *cells, name]))
for heading, groups in (("By its character", "characters"), ("By the opponent's character", "opponents"), ("By stage", "stages"),
                        ("By phase of the game", "phases")):
    assert seen[groups]
    for name, group in seen[groups].items():
        change = f"{100 * group['exact_change_accuracy']:.1f} %" if group["change_frames"] else "-"
        has(heading, f"{name.replace('_', ' ')} {group['frames']} {100 * group['exact_accuracy']:.1f} % {change} {group['nll']:.4f}")
assert len(said["mistakes"]) == told["Frames that cost most"].count(" recorded: ") >= 2, len(said["mistakes"])
for one in said["mistakes"]:
    at, chance = one["frame"], 100 * one["probability"]
    chance = f"{chance:.3g}" if chance >= 0.001 else "below 0.001"
    has("Frames that cost most", f"{at // 3600}:{at // 60 % 60:02} , frame {at}: {one['match'].replace('_', ' ')} recorded: "
        f"{one['recorded']['text']} , probability {chance} % likeliest: {one['likely']['text']} {one['situation']} game {one['game']}")
if "verdict" in said:
    has("Verdict", f"{said['verdict']['name']}. {said['verdict']['figure']} {said['verdict']['advice']}".strip())
END
}
page page.html
has Examination "of what was held out"
examined run/log.jsonl
# options stay whole; curves share the width of the page; the key of the run is in its ink
grep -q '<span class="o">--smoothing,</span>' page.html || complain "an option may break at its dashes"
grep -q '<div class="figures curves">' page.html || complain "curves do not share the width"
grep -q '<circle class="d0" cx="76" .* r="3" fill="#1f6fb4" stroke="#1f6fb4"/>' page.html ||
  complain "the key of held-out scores has another ink"
[ "$(grep -c '<svg' page.html)" -eq 14 ] || complain "$(grep -c '<svg' page.html) figures"
"$exphil" eval --json --mistakes 4 --port 1 run/policy a.slp >eval.json 2>err
expect 0 page.html report --html page.html --eval eval.json run/log.jsonl
page page.html
has Examination "600 frames of what exphil eval was given"
has "Scores on other data" "frames 600" "main x"
examined eval.json
# without mistakes there are none: those of the log are of other data
"$exphil" eval --json --port 1 run/policy a.slp >plain.json 2>err
expect 0 page.html report --html page.html --eval plain.json run/log.jsonl
page page.html
has Examination "600 frames"
lacks "Frames that cost most"
# of a run without anything held out it is that of the training data
expect 0 "2 updates" train --quiet --port 1 --blocks gru --hidden 8 --time 30 --updates 2 --log all.jsonl --out all a.slp
expect 0 page.html report --html page.html all.jsonl
page page.html
has Examination "600 frames of the training data"
lacks "Scores on what was held out"
# whatever stands in the place of a member, at any depth, what is left is a page
python3 - <<'END'
import json
def changed(value, depth, odd, names):
    if depth == 0: return odd
    if isinstance(value, dict):
        return {("<b>&\x01\"" + "long_" * 9 + name if names else name): changed(member, depth - 1, odd, names)
                for name, member in value.items()}
    return [changed(member, depth - 1, odd, names) for member in value] if isinstance(value, list) else value
whole = json.load(open("eval.json"))
odds = [None, True, -1, 2**62, 1e300, -0.5, "<b>&\x01 \u00e9" + "long " * 40, [], {}, [[1, [2]], {}], {"a": {"a": {"frames": "x"}}}]
made = [changed(whole, depth, odd, False) for depth in range(1, 7) for odd in odds]
for part in "heads", "characters", "main_stick":
    one = json.loads(json.dumps(whole))
    one["examination"][part] = changed(one["examination"][part], 4, 1, True)
    made.append(one)
for i, one in enumerate([{}, *made]): json.dump(one, open(f"odd{i}.json", "w"))
END
for odd in odd*.json; do
  expect 0 page.html report --html page.html --eval "$odd" run/log.jsonl
  page page.html
  has "Scores on what was held out" "main x"
done
# a log may be odd too
for odd in '"verdict":"fine"' '"verdict":{"name":["x"]}' '"verdict":{"name":"<i>","figure":3}' '"examination":[],"mistakes":{}' '"of":3'; do
  { grep -v '"examination"' run/log.jsonl; echo "{\"kind\":\"examination\",$odd}"; } >odd.jsonl
  expect 0 odd.html report --html odd.html odd.jsonl
  page odd.html
done

# mistakes are told, and nothing is written over
expect 2 "report wants --html FILE" report run/log.jsonl
expect 2 "report wants one RUN" report --html page.html
expect 1 "none: No such file" report --html page.html none
expect 0 other.html report --html other.html run
mkdir two
cp short.jsonl two/a.jsonl; cp short.jsonl two/b.jsonl
expect 1 "report wants one run" report --html page.html two
expect 1 "report wants one run" report --html page.html a.slp
expect 1 "policy.optimizer.run.json: No such file" report --html page.html run/policy.optimizer
expect 1 "none.json: No such file" report --html page.html --eval none.json run/log.jsonl
echo '[]' >list.json
expect 1 "this wants what exphil eval --json prints: one object" report --html page.html --eval list.json run/log.jsonl
expect 1 "--eval a.slp line" report --html page.html --eval a.slp run/log.jsonl
expect 1 "would write over run/log.jsonl" report --html run/log.jsonl run/log.jsonl --force
expect 1 "would write over run/log.jsonl" report --html run/log.jsonl run/policy --force
expect 1 "would write over eval.json" report --html eval.json --eval eval.json run/log.jsonl --force
expect 1 "a.slp is there already: --force replaces it" report --html a.slp run/log.jsonl
echo nonsense >>alone.jsonl
expect 0 "such lines are passed over" report --html new.html alone.jsonl
[ "$(grep -c 'passed over' err)" = 1 ] || complain "a torn line is told of $(grep -c 'passed over' err) times"

echo "$checks runs of the program"
exit $failed
