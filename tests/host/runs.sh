#!/bin/sh
# Logs of training runs as tables and pictures: exphil runs finds them by what they left and tells in which options they
# differ; exphil plot draws several beside their baselines, and joins what a resumed run has written.
#   runs.sh <exphil>
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
# check WHAT PROGRAM: Python asserts about out
check() { python3 -c "import json; out = json.load(open('out'))
$2" 2>why || complain "$1: $(tail -n 1 why)"; }

# ---- a table of runs

set -- --quiet --port 1 --blocks gru --time 30 --held-out 0.3 --split time --eval-every 2 --alone 0
expect 0 "frames" drill --frames 600 --out a.slp
mkdir -p all/deep all/logs elsewhere
expect 0 "4 updates" train "$@" --hidden 8 --updates 4 --log all/one.jsonl --out all/one a.slp
expect 0 "6 updates" train "$@" --hidden 8 --updates 6 --rate 0.1 --log all/deep/two.jsonl --out all/deep/two a.slp
expect 0 "2 updates" train "$@" --hidden 16 --updates 2 --log all/logs/three.jsonl --out all/three a.slp
expect 0 "1 update" train "$@" --hidden 8 --updates 1 --out all/silent a.slp
expect 0 "best and last: held-out nll" runs all
[ "$(wc -l <out)" -eq 6 ] || complain "runs: $(cat out)"
head -n 2 out | tail -n 1 | grep -qE '^ *started \(UTC\) +updates +frames/s +best +at +last +hidden +rate +run$' ||
  complain "columns: $(head -n 2 out)"
grep -q "seed" out && complain "an option in which no run differs has a column"
expect 0 all/one runs all --json
cp out first
check "runs --json" '
import math
def held(path):
    scores = [line for line in map(json.loads, open(path)) if line["kind"] == "held_out"]
    best = min(scores, key=lambda line: line["nll"])
    return best["nll"], best["update"], scores[-1]["nll"]
runs = {run["run"]: run for run in out["runs"]}
assert set(runs) == {"all/one", "all/deep/two", "all/three", "all/silent"}, set(runs)
for name, log, updates in (("all/one", "all/one.jsonl", 4), ("all/deep/two", "all/deep/two.jsonl", 6),
                           ("all/three", "all/logs/three.jsonl", 2)):
    run = runs[name]
    assert run["log"] == log and run["updates"] == run["planned"] == updates, run
    for is_, wanted in zip((run["best"], run["best_update"], run["last"]), held(log)):
        assert math.isclose(is_, wanted, rel_tol=1e-9), run
assert runs["all/silent"]["best"] is runs["all/silent"]["log"] is None, runs["all/silent"]
order = [run["best"] for run in out["runs"]]
assert order[-1] is None and order[:-1] == sorted(order[:-1]), order
assert set(out["differ"]) == {"hidden", "rate"}, out["differ"]
assert runs["all/deep/two"]["options"] == {"hidden": 8, "rate": 0.1}, runs["all/deep/two"]'
expect 0 "held-out exact_accuracy" runs all --by exact_accuracy
expect 0 all/one runs all --by exact_accuracy --json
check "runs --by" '
order = [run["best"] for run in out["runs"]][:-1]
assert order == sorted(order, reverse=True), order'
# folders that were moved keep their runs; logs alone are runs too; other files are none
mv all/deep elsewhere/deep
expect 0 elsewhere/deep/two runs elsewhere --json
check "a moved folder" 'assert out["runs"][0]["log"] == "elsewhere/deep/two.jsonl" and not out["differ"], out'
rm elsewhere/deep/two.run.json
cp a.slp elsewhere/deep/b.slp
echo '{"kind": nothing' >elsewhere/deep/other
expect 0 elsewhere/deep/two.jsonl runs all elsewhere --json
check "a log alone" 'run = next(run for run in out["runs"] if run["run"] == "elsewhere/deep/two.jsonl")
assert run["updates"] == 6 and run["planned"] is None and run["options"] is None and len(out["runs"]) == 4, out'
expect 0 all/one runs all/one.run.json
# whatever the first line says first
grep held_out all/one.jsonl >scores.jsonl
expect 0 scores.jsonl runs scores.jsonl
expect 2 "runs wants folders" runs
expect 1 "none: No such file" runs none
mkdir empty
expect 1 "no run in empty" runs empty
echo '{"a": 1}' >all/bad.run.json
echo '{' >all/worse.run.json
expect 0 "all/bad.run.json: this is no record of a run; it is left out" runs all
expect 0 "all/worse.run.json: string or '}' expected" runs all
cp all/one.run.json all/torn.run.json
sed -i 's/one\.jsonl/torn.jsonl/' all/torn.run.json
{ cat all/one.jsonl; echo nonsense; } >all/torn.jsonl
expect 0 "all/torn.jsonl line 9 is not a JSON object; such lines are passed over" runs all

# ---- narrow, and by what was asked for

mkdir by east west
for folder in east west; do cp a.slp $folder; done
set -- --quiet --port 1 --blocks gru --hidden 8 --held-out 0.3 --split time --updates 2
expect 0 "2 updates" train "$@" --best alone --alone 50 --out by/one --log by/one.jsonl a.slp
expect 0 "2 updates" train "$@" --best alone --alone 50 --out by/two --log by/two.jsonl --rate 0.01 east/a.slp west a.slp
expect 0 "best and last: held-out alone_nll" runs by
grep -qE '^[^[]* a\.slp .*by/one$' out && grep -qE '^[^[]* a\.slp \+2 .*by/two$' out || complain "files: $(cat out)"
expect 0 '"files":["east/a.slp","west","a.slp"]' runs by --json
check "runs by alone_nll" 'log = [json.loads(line) for line in open("by/two.jsonl")]
assert out["by"] == "alone_nll" and {run["run"]: run["last"] for run in out["runs"]}["by/two"] == \
    [line["alone_nll"] for line in log if line["kind"] == "held_out"][-1], out'
expect 0 "best and last: held-out loss" runs by --by loss
# another metric, or a log that does not say, and it is the one that all have
expect 0 "2 updates" train "$@" --best exact --out by/three --log by/three.jsonl a.slp
expect 0 "held-out exact_accuracy" runs by/three.run.json
expect 0 "held-out nll" runs by
# long values give way, to 120 columns, and the end of a path stays
python3 - <<'END'
import json
for i in range(3):
    record = json.load(open("by/one.run.json"))
    record["defaults"].update({"device": "devices/of/a/machine/far/away/gpu%d" % i, "blocks": "gru*%d " % i + "ffn*2 " * 6,
                               "conditions": "tables/of/many/players/told%d.csv" % i, "rate": i})
    for name in "device", "blocks", "conditions", "rate": record.pop(name, None)
    record.pop("log", None)
    json.dump(record, open("by/long%d.run.json" % i, "w"))
END
expect 0 "by/long2" runs by/long0.run.json by/long1.run.json by/long2.run.json
[ "$(wc -L <out)" -le 120 ] && grep -qE '\.\.\.[a-z/]*/gpu2 ' out && grep -q 'gru\*2 [a-z*0-9 ]*\.\.\. ' out ||
  complain "a wide table: $(wc -L <out): $(cat out)"

# ---- a resumed run is one run

train() { echo "{\"kind\":\"train\",\"update\":$1,\"loss\":$2}"; }
buttons='{"buttons":{"loss":1,"accuracy":0.75,"majority_accuracy":0.7,"copy_accuracy":0.625}}'
held() {
  echo "{\"kind\":\"held_out\",\"update\":$1,\"loss\":$2,\"exact_accuracy\":$3,\"exact_majority\":0.25,\"exact_copy\":0.5," \
    "\"nll\":2,\"frequency_nll\":4,\"heads\":$buttons}"
}
{ train 1 5; train 2 4; held 2 4 0.5; train 3 9; train 4 9; held 4 9 0.5; train 5 9
  train 3 3; train 4 2; held 4 2 0.75; held 4 1 1; train 5 1; printf '{"kind":"tra'; } >resumed
{ train 1 5; train 2 4; held 2 4 0.5; train 3 3; train 4 2; held 4 1 1; train 5 1; } >straight
for field in loss exact_accuracy; do
  for log in resumed straight; do expect 0 $log.svg plot $log --out $log.svg --field $field --linear; done
  sed 's/resumed/straight/' resumed.svg | cmp -s - straight.svg || complain "$field of a resumed run is drawn otherwise"
done
expect 0 5 runs resumed --by loss --json
check "a resumed run" 'run = out["runs"][0]
assert (run["updates"], run["best"], run["best_update"], run["last"]) == (5, 1, 4, 1), run'
{ train 1 5; echo nonsense; train 2 4; } >damaged
expect 0 "damaged line 2 is not a JSON object; such lines are passed over" plot damaged

# ---- pictures: baselines by what is drawn, each where it belongs

# heights NAME COUNT: the labels of the vertical axis
heights() { sed -n 's/^<text class="y"[^>]*>\([^<]*\)<.*/\1/p' "$1" | tr '\n' ','; }
keys() { sed -n 's/^<text class="key"[^>]*>\([^<]*\)<.*/\1/p' "$1" | tr '\n' ','; }
drawn() { expect 0 p.svg plot straight --out p.svg --field "$1"; [ "$(keys p.svg)" = "$2" ] || complain "$1: keys $(keys p.svg)"; }
drawn exact_accuracy "held out,majority 25.0 %,copy 50.0 %,"
[ "$(heights p.svg)" = "0 %,20 %,40 %,60 %,80 %,100 %," ] || complain "shares: labels $(heights p.svg)"
grep -q '<line class="base0".* y1="341.0" y2="341.0"' p.svg || complain "majority: $(grep base0 p.svg)"
grep -q '<line class="base1".* y1="246.0" y2="246.0"' p.svg || complain "copy: $(grep base1 p.svg)"
drawn nll "held out,frequencies 4,"
drawn heads/buttons/accuracy "held out,majority 70.0 %,copy 62.5 %,"
drawn heads/buttons ""
# a key looks as what is drawn: in the ink of the one run, and training fainter beside scores; of one curve there is none
drawn loss "training,held out,"
grep -q '<line class="r0".* stroke="#1f6fb4" stroke-width="1.2" stroke-opacity="0.55"' p.svg || complain "the key of training"
grep -q '<polyline class="r0".* stroke="#1f6fb4" stroke-width="1.2" stroke-opacity="0.55"' p.svg || complain "training itself"
grep -q 'class="name"' p.svg && complain "the name of one run has a swatch"
grep -q '<tspan dx="12">straight</tspan>' p.svg || complain "a picture of one run does not name it"
# of several runs: one line where it is the same of all, else each in the run's ink; names below each other, above the curves
sed 's/"exact_copy":0.5/"exact_copy":0.25/' straight >"other & <more>"
expect 0 p.svg plot straight "other & <more>" --out p.svg --field exact_accuracy
[ "$(keys p.svg)" = "held out,majority 25.0 %,copy," ] || complain "two runs: keys $(keys p.svg)"
[ "$(grep -c '<line class="base' p.svg)" -eq 1 ] || complain "two runs: shared lines"
grep -q '<line class="r1".*stroke="#d1495b"' p.svg || complain "two runs: the second has no line of its own"
python3 - p.svg <<'END' || complain "the legend stands among the curves"
import sys, xml.etree.ElementTree as tree
space = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
texts = [one for one in root.iter(space + "text") if one.get("class") in ("key", "name", "title")]
lowest = max(float(one.get("y")) for one in texts)
points = [float(pair.split(",")[1]) for line in root.iter(space + "polyline") for pair in line.get("points").split()]
assert points and lowest + 4 < min(points), (lowest, min(points))
rows = [float(one.get("y")) for one in texts if one.get("class") == "name"]
assert rows == sorted(set(rows)) and rows[1] - rows[0] >= 16, rows
assert any(one.text == "other & <more>" for one in texts), [one.text for one in texts]
END
name=$(printf 'caf\351\001')
cp straight "$name"
expect 0 p.svg plot "$name" --out p.svg
python3 -c 'import xml.etree.ElementTree as tree; tree.parse("p.svg")' || complain "a name that is no UTF-8 breaks the picture"

# labels are round numbers, whatever is drawn
# labelled LOW HIGH HOW LABELS
labelled() {
  { train 1 "$1"; train 2 "$2"; } >range
  # shellcheck disable=SC2086
  expect 0 p.svg plot range --out p.svg --smooth 0 $3
  [ "$(heights p.svg)" = "$4" ] || complain "$1 to $2 $3: $(heights p.svg)"
}
labelled 0 1 --linear "0,0.2,0.4,0.6,0.8,1.0,"
labelled 0.9 1.45 --linear "0.9,1.0,1.1,1.2,1.3,1.4,1.5,"
labelled -3 17 --linear "-5,0,5,10,15,20,"
labelled 26000 52000 --linear "25 k,30 k,35 k,40 k,45 k,50 k,55 k,"
labelled 2e6 7e6 --linear "0,1 M,2 M,3 M,4 M,5 M,6 M,7 M,8 M,"
labelled 1.001 1.002 --linear "1.0010,1.0012,1.0014,1.0016,1.0018,1.0020,"
labelled 0.03 12 "" "0.03,0.1,0.3,1,3,10,"
labelled 0.23 12 "" "0.2,0.5,1,2,5,10,"
labelled 0.3 2.9 "" "0.2,0.5,1,2,"
labelled 1.04 1.46 "" "1.0,1.1,1.2,1.3,1.4,"
labelled 1 1.5 "" "1.0,1.1,1.2,1.3,1.4,1.5,"
labelled 1e-9 1e9 "" "1e-10,1e-05,1,100 k,"

echo "$checks runs of the program"
exit $failed
