#!/bin/sh
# exphil bench from outside: every subject runs through, small and untimed, and prints one JSON object with the machine, the
# floors and rows that are whole; tables, pictures and files come out; wrong words end with 2; the kept tables are those
# that bench/record.py makes of the kept reports. No figure is judged here.
#   bench.sh <exphil> <source folder>
set -u
exphil=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
complain() { echo "FAILED: $*"; failed=1; }

run() {
  "$exphil" bench --quick --plain "$@" >out 2>err </dev/null || complain "bench $* ended with $?: $(head -n 3 err)"
}
# whole LEAST SUBJECT: out is a report with at least so many rows
whole() {
  python3 -c '
import json, sys
report = json.load(open("out"))
least, subject = int(sys.argv[1]), sys.argv[2]
assert report["bench"] == subject and report["format"] == 1
for name in ("processor", "isa", "caches", "kernel", "compiler", "library", "date", "cores"):
    assert report["machine"][name], "machine." + name
assert report["floors"]["fma_gflops"] > 0 and len(report["floors"]["read"]) >= 8
assert len(report["rows"]) >= least, "only %d rows" % len(report["rows"])
for row in report["rows"]:
    assert row["subject"] and row["samples"] >= 1, row
    times = [row[k] for k in ("least_ns", "p25_ns", "p50_ns", "p75_ns", "p99_ns", "p999_ns", "most_ns")]
    assert 0 < times[0] and times == sorted(times), row
    assert not ("bar_ns" in row) or row["met"] == (row["p50_ns"] <= row["bar_ns"]), row
' "$@" 2>why || complain "$2: $(tail -n 1 why): $(head -c 200 out)"
}

run --json floors
whole 0 floors
run --json step
whole 20 step
run --json host
whole 3 host
run --json train mlp
whole 1 train
run --json data
whole 2 data
grep -q 'SKIPPED: replays to rows' err || complain "data without replays does not say what it left out"
"$exphil" drill --out drill.slp --frames 600 >/dev/null
mkdir replays && mv drill.slp replays
run --json --replays replays data
whole 3 data
run --json --plot shares.svg --out report.json kernels
whole 60 kernels
python3 -c '
import json
a, b = json.load(open("out")), json.load(open("report.json"))
assert a["machine"] == b["machine"] and len(a["rows"]) == len(b["rows"])' || complain "--out and --json differ"
grep -q '</svg>' shares.svg || complain "no picture"
run --candidates kernels linear
grep -q 'linear' out || complain "no table"
for isa in ref avx2; do
  run --json --isa $isa kernels AdamW
  whole 2 kernels
done

# serve: weights, inputs and results as files, then rounds on demand
mkdir case
printf 'round 3 0\nrun 2\nquit\n' | "$exphil" bench --plain --folder case serve cell gru 16 32 f32 >out 2>err ||
  complain "serve: $(cat err)"
[ "$(sed -n 1p out)" = ready ] || complain "serve is not ready: $(cat out)"
sed -n 2p out | python3 -c 'import json, sys; assert len(json.load(sys.stdin)["ns"]) == 3' || complain "serve: $(cat out)"
sed -n 3p out | grep -q '"ran":2' || complain "serve: $(cat out)"
for file in case.json w_in.bin x.bin y.bin; do [ -s case/$file ] || complain "serve wrote no $file"; done

for wrong in "" nonsense "--effort 0 step" "--threads -1 train" "serve" "--folder case serve nonsense"; do
  # shellcheck disable=SC2086
  "$exphil" bench $wrong >out 2>err </dev/null
  [ $? -eq 2 ] || complain "bench $wrong is no mistake"
  [ -s err ] || complain "bench $wrong: no complaint on stderr"
done
"$exphil" bench nonsense 2>&1 | grep -q "^exphil: nonsense is no subject of bench" || complain "bench nonsense is not named"

for kept in "$source"/bench/results/*.json; do
  name=$(basename "$kept" .json)
  rm -rf reports results
  mkdir reports
  python3 -c '
import json, sys
for subject, report in json.load(open(sys.argv[1])).items():
    json.dump(report, open("reports/%s.json" % subject, "w"))' "$kept"
  for picture in "${kept%.json}"-*.svg; do cp "$picture" "reports/${picture##*-}"; done
  python3 "$source/bench/record.py" reports results >out || complain "$name is not recorded: $(cat out)"
  for file in results/*; do cmp "$file" "$source/bench/$file" || complain "$file is not as record.py writes it"; done
done

[ "$failed" -eq 0 ] && echo "every subject runs"
exit "$failed"
