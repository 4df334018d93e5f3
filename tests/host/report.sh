#!/bin/sh
# Pages of exphil report: everything that there is of a run stands there, what there is not is left out, and a page needs
# nothing but itself. How pages look is hosts.browser.
#   report.sh <exphil> <source>
set -u
exphil=$(realpath "$1")
source=$(realpath "$2")
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
        if tag not in ("meta",) and not (tag in ("line", "rect", "circle", "polyline")):
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
has run/policy "updates 6" "of planned 6" "data a.slp" "blocks gru" "parameters 82594"
has Curves loss nll exact_accuracy exact_change_accuracy gradient_norm rate frames_per_second "majority" "copy" "held out"
has "Held out, at the end" "main x" "exact accuracy" "beats baselines"
has "On the training data, at the end" buttons
has Options "rate 0.01" "hidden 8" "held-out 0.3" "condition-mask 0.1" "all that were not asked for"
lacks Verdict Examination Calibration Characters "Frames that cost most"
# the figures are those of the log
python3 - <<'END' || complain "figures of the page are not those of the log"
import json
line = [line for line in map(json.loads, open("run/log.jsonl")) if line["kind"] == "held_out"][-1]
held = next(text for text in open("told") if text.startswith("Held out, at the end:"))
assert f"nll {line['nll']:.4g} " in held and f"exact accuracy {100 * line['exact_accuracy']:.1f} %" in held, held
assert f"main y {line['heads']['main_y']['loss']:.4g}" in held, held
END
grep -c '<svg' page.html >count
[ "$(cat count)" -eq 7 ] || complain "$(cat count) figures"

# by any of what a run leaves; a log alone; what there is not is left out
for run in run/policy run/policy.run.json; do
  expect 0 other.html report --html other.html $run
  cmp -s page.html other.html || complain "the page of $run is another"
done
cp run/log.jsonl alone.jsonl
expect 0 alone.html report --html alone.html alone.jsonl
page alone.html
has alone.jsonl "updates 6"
lacks Options run/policy
echo '{"kind":"train","update":1,"loss":1}' >short.jsonl
expect 0 short.html report --html short.html short.jsonl
page short.html
lacks "Held out, at the end" "On the training data, at the end" Options
expect 0 '{"html":"short.html"}' report --html short.html short.jsonl --json

# an examination, as it is printed now and with all that may come
"$exphil" eval --json --port 1 run/policy a.slp >eval.json 2>err
expect 0 page.html report --html page.html --eval eval.json run/log.jsonl
page page.html
has Examination "frames 600" "exact accuracy"
has Heads "main x"
python3 "$source/tests/support/examined.py" all.json
expect 0 page.html report --html page.html --eval all.json run/log.jsonl
page page.html
has Verdict "copies its past" "right on 64.1 % of the frames & alone on 31.0 %" "try <b>less</b>"
has "How often buttons are pressed" "X or Y 3.0 % 1.8 %"
has "How sure the policy is" "c y 1"
has Calibration "how sure the policy was"
has main_x "-1" "what was recorded"
has buttons "none"
has Characters "captain_falcon 400 50.0 %"
has Stages "final destination"
has "Phases of a game" "first stock 2000 70.0 %"
has "Frames that cost most" " & <friends>.slp" "main x -1" "B, A"
has novelty "a later version 50.0 %"
[ "$(grep -c '<svg' page.html)" -eq 10 ] || complain "$(grep -c '<svg' page.html) figures"
# figures that are no figures are tables, or nothing, and never break the page
for odd in '{"calibration":[{"confidence":"x"}]}' '{"confusion":{"counts":[[1,2],[3]]}}' '{"confusion":{"main_x":{"counts":[[1]]}}}' \
  '{"calibration":{"buttons":[{"a":1}]},"verdict":"fine","heads":[],"entropy":3,"x":[[1]],"y":{"a":{}}}' '{"verdict":[]}' '{}'; do
  echo "$odd" >odd.json
  expect 0 page.html report --html page.html --eval odd.json run/log.jsonl
  page page.html
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
expect 1 "alone.jsonl" report --html new.html alone.jsonl
[ ! -e new.html ] || complain "a page of a damaged log"

echo "$checks runs of the program"
exit $failed
