#!/bin/sh
# The exphil program from outside: help for every command, wrong usage ends with 2, bad files with 1, and with --json
# each command prints exactly one JSON object. Works on a drill that the program writes itself.
#   program.sh <exphil>
set -u
exphil=$1
folder=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
checks=0
complain() { echo "FAILED: $*"; failed=1; }

# expect STATUS COMMAND...: what it prints goes to out and err
expect() {
  wanted=$1
  shift
  checks=$((checks + 1))
  "$@" >out 2>err </dev/null
  got=$?
  [ "$got" -eq "$wanted" ] || { complain "$* ended with $got, not $wanted"; head -n 5 out err; }
}
# object FIELD... : out is one JSON object that has these fields
object() {
  python3 -c '
import json, sys
value = json.load(open("out"))
assert type(value) is dict, "not an object"
missing = [name for name in sys.argv[1:] if name not in value]
assert not missing, "without " + ", ".join(missing)' "$@" 2>why || complain "JSON: $(tail -n 1 why): $(head -c 300 out)"
}
json() {
  expect 0 "$exphil" "$@" --json
  object
}

commands=$("$exphil" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
[ "$(echo "$commands" | wc -w)" -ge 8 ] || complain "--help names only: $commands"
expect 0 "$exphil" --version
grep -qE '^exphil [0-9]+\.[0-9]+\.[0-9]+' out || complain "--version says $(cat out)"
here=$(sed -n 's/.*, here \([a-z0-9]*\)$/\1/p' out)
[ -n "$here" ] || complain "--version does not tell the instruction set in use: $(cat out)"
expect 0 env EXPHIL_CPU_ISA=ref "$exphil" --version
grep -q ', here ref$' out || complain "--version says $(cat out)"
for command in train eval play quantize; do
  expect 0 "$exphil" $command --help
  for isa in ref avx2 avx2vnni avx512 avx512vnni avx512bf16 neon neondot; do
    grep -q "$isa" out || complain "$command --help lacks $isa"
  done
done
expect 0 "$exphil" --help
for word in EXPHIL_CPU_ISA EXPHIL_BACKEND_DIR EXPHIL_CUBLASLT EXPHIL_CUBLASLT_CHOICES EXPHIL_CUDA_JOIN EXPHIL_CUDA_OVERLAP \
  EXPHIL_CUDNN EXPHIL_NCCL EXPHIL_MPI_LIBRARY EXPHIL_WORLDS TMPDIR CUDA_VISIBLE_DEVICES \
  "0 done" "1 failed" "2 wrong usage" "130 stopped"; do
  grep -q "$word\([^A-Z_]\|$\)" out || complain "--help does not tell $word"
done
expect 2 "$exphil"
expect 2 "$exphil" nonsense
[ "$(cat err)" = "exphil: unknown command nonsense; exphil --help lists them" ] || complain "nonsense: $(cat err)"
expect 2 "$exphil"
tail -n 1 err | grep -qx "exphil: .* exphil --help lists them" || complain "no command: $(cat err)"
[ "$(wc -l <err)" -le 2 ] || complain "without a command the error is lost in a long text"
for command in $commands; do
  expect 0 "$exphil" "$command" --help
  grep -q '^usage: exphil' out || complain "$command --help shows no usage"
  expect 2 "$exphil" "$command" --nonsense
  if [ -s out ] || [ ! -s err ]; then complain "$command --nonsense: complaints belong to stderr"; fi
  [ "$command" = devices ] || expect 2 "$exphil" "$command"
  expect 0 "$exphil" "$command" --help
  cp out direct
  expect 0 "$exphil" help "$command"
  cmp -s out direct || complain "help $command is not what $command --help says"
done
expect 2 "$exphil" help nonsense
# The manual page has every option, and fits a terminal of 80 columns.
manual=$(dirname "$folder")/../tools/manual
expect 0 "$manual" "$exphil"
cp out exphil.1
for command in $commands; do "$exphil" "$command" --help; done | grep -c '^  --' >options
grep -c '^\\fB\\-\\-' exphil.1 >documented
[ "$(cat documented)" -eq $(($(cat options) + 1)) ] || complain "the manual has $(cat documented) options, --help $(cat options)"
grep -qx '\.nf' exphil.1 && complain "the manual has lines that do not fit their terminal"
if MANWIDTH=80 man -l exphil.1 2>/dev/null | col -bx >page && grep -q '^EXPHIL TRAIN' page; then
  awk 'length > 80' page >wide
  [ ! -s wide ] || complain "wider than 80 columns in the manual: $(head -n 3 wide)"
fi
expect 2 "$exphil" train --epochs many drill.slp
expect 2 "$exphil" train --out
expect 2 "$exphil" drill --frames 0 --out none.slp

json drill --out drill.slp --frames 600 --seed 3
expect 0 "$exphil" slp info drill.slp --json
object version stage
json corpus --rows --out drill.corpus --port 1 drill.slp
json train --quiet --port 1 --blocks gru --hidden 16 --epochs 1 --time 30 --batch 4 --log log.jsonl --out policy.safetensors drill.corpus
json info policy.safetensors
# Which kernels do a step, on the instructions that every processor has; with fewer bits they are others.
expect 0 env EXPHIL_CPU_ISA=ref "$exphil" info --plan --json policy.safetensors
python3 -c '
import json
plan = json.load(open("out"))
assert [plan[name] for name in ("kind", "device", "isa", "batch", "time", "train")] == ["plan", "cpu", "ref", 1, 1, False], plan
found = [[one[name] for name in ("part", "operation", "kernel", "bytes", "scratch_bytes")] for one in plan["operations"]]
wanted = [
    ["blocks", "embed", "embed_f32_ref", 3476, 0],
    ["blocks", "linear", "linear_f32_ref", 38620, 0],
    ["blocks", "norm", "norm_f32_ref", 128, 0],
    ["blocks", "rnn", "rnn_f32_ref", 6656, 384],
    ["blocks", "axpby", "axpby_f32_ref", 192, 0],
    ["draw", "norm", "norm_f32_ref", 128, 0],
    ["draw", "linear", "linear_f32_ref", 8768, 0],
    ["draw", "linear", "linear_f32_ref", 26892, 0],
    ["draw", "sample", "sample_f32_ref", 42956, 896],
]
assert found == wanted, found
assert plan["operations"][3]["shape"] == {"batch": 1, "time": 1, "hidden": 16, "in": 16}, plan["operations"][3]
assert plan["bytes"] == sum(row[3] for row in wanted) and plan["memory_bytes"] == 4608 and plan["prepared_bytes"] == 203008, plan
' 2>why || complain "info --plan: $(tail -n 1 why)"
expect 0 env EXPHIL_CPU_ISA=ref "$exphil" info --plan --train --batch 2 --time 5 policy.safetensors
[ "$(grep -cE '^backward  (heads|linear|norm|rnn|embed)_grad ' out)" -eq 9 ] || complain "info --plan --train: $(cat out)"
grep -qE '^backward  rnn_grad +rnn_grad_f32_ref .* batch 2, time 5, hidden 16$' out || complain "info --plan --train: $(cat out)"
for option in --batch=2 --time=2 --train --device=cpu; do expect 2 "$exphil" info "$option" policy.safetensors; done
expect 1 "$exphil" info --plan drill.slp
json quantize --type int8 --out int8.safetensors policy.safetensors --port 1 drill.slp
object weights type bytes bytes_before calibration
json quantize --type bf16 --out bf16.safetensors policy.safetensors
json export --onnx policy.onnx policy.safetensors
object onnx blocks weights bytes
grep -q '"weights":"f32"' out || complain "export says $(cat out)"
json export --int8 --onnx one.onnx policy.safetensors
expect 0 "$exphil" export --onnx two.onnx int8.safetensors
grep -qE '^two.onnx: a step of gru, weights in int8, [0-9]+ bytes$' out || complain "export says $(cat out)"
cmp -s one.onnx two.onnx || complain "export --int8 is not export of what quantize wrote"
[ "$(wc -c <one.onnx)" -lt "$(wc -c <policy.onnx)" ] || complain "int8 is not smaller"
for file in int8.safetensors bf16.safetensors; do
  json info $file
  object weights tensors parameters
  expect 1 "$exphil" info --plan --train $file
  json eval $file --port 1 drill.corpus
  json play $file drill.slp --port 1
done
expect 0 env EXPHIL_CPU_ISA=ref "$exphil" info --plan --json int8.safetensors
for part in '"kernel":"rnn_f32_ref","shape":{"batch":1,"time":1,"hidden":16,"in":16},"bytes":2048,' \
  '"kernel":"linear_bf16_f32_ref","shape":{"rows":1,"in":16,"out":128},"bytes":4672,'; do
  grep -qF "$part" out || complain "info --plan int8.safetensors lacks $part: $(cat out)"
done
[ "$(wc -c <int8.safetensors)" -lt "$(wc -c <policy.safetensors)" ] || complain "int8 weights are not smaller"
json train --quiet --port 1 --init policy.safetensors --fake-quantize int8 --updates 2 --out tuned.safetensors drill.corpus
json info drill.corpus
json info drill.slp
json eval policy.safetensors --port 1 drill.slp
json play policy.safetensors drill.slp --port 1
json play policy.safetensors drill.slp --port 1 --show 2
python3 -c '
import json
shown = json.load(open("out"))["shown"]
assert [row["frame"] for row in shown] == [0, 1], shown
for row in shown:
    assert set(row["policy"]) == set(row["pressed"]) == {"buttons", "main_x", "main_y", "c_x", "c_y", "trigger"}, row
' 2>why || complain "play --json --show 2: $(tail -n 1 why)"
expect 0 "$exphil" play policy.safetensors drill.slp --port 1 --show 2
[ "$(grep -c '^ *[01]  policy \[' out)" -eq 2 ] || complain "play --show 2 does not show two frames"
json train --quiet --port 1 --init policy.safetensors --value detached --value-only --half-life 0.5 \
  --updates 2 --out valued.safetensors drill.slp
json review --weights valued.safetensors drill.slp
object value reward swings unexplained
# What cannot be one object is refused; what JSON cannot hold is null; a log does not go among the results.
expect 2 "$exphil" plot --text --json log.jsonl
expect 2 "$exphil" plot --text --out text.svg log.jsonl
expect 2 "$exphil" slp dump drill.slp --what input --slot P1 --json
expect 2 "$exphil" slp verify drill.slp --json
json drill --frames 60 --out "$(printf 'caf\351.slp')"
object replay frames
train_two() { "$exphil" train --quiet --port 1 --blocks gru --hidden 16 --updates 2 --json --force --out two.safetensors "$@" drill.slp; }
expect 1 train_two --log /dev/stdout
expect 1 train_two --log -
json devices
json plot log.jsonl
json runs .
json report --html page.html log.jsonl
[ -s log.jsonl.svg ] || complain "plot drew nothing"
json drill policy.safetensors --frames 300
expect 0 "$exphil" slp dump drill.slp --what state --slot P1 --out state
[ -s state ] || complain "dump wrote nothing"

echo "no replay" >broken.slp
echo "no weights" >broken.safetensors
for file in broken.slp broken.safetensors none.slp; do expect 1 "$exphil" info "$file"; done
expect 1 "$exphil" slp info broken.slp
expect 1 "$exphil" train --out x.safetensors broken.slp
expect 1 "$exphil" eval broken.safetensors drill.slp
expect 1 "$exphil" play broken.safetensors drill.slp
expect 1 "$exphil" plot none.jsonl

[ "$failed" -eq 0 ] && echo "$checks runs of the program"
exit "$failed"
