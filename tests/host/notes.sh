#!/bin/sh
# What a policy says of its training: exphil train writes it, info prints it, quantize keeps it, play takes the port of the
# character by it; no name of a file or folder is in it.
#   notes.sh <exphil> <source folder>
# $small is words
# shellcheck disable=SC2086
set -u
small='--blocks gru --hidden 8 --head-width 8'
exphil=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
checks=0
complain() { echo "FAILED: $*"; failed=1; }

# expect STATUS TEXT ARGUMENT...: the program ends with this status and says this text; its output goes to out and err
expect() {
  wanted=$1 text=$2
  shift 2
  checks=$((checks + 1))
  "$exphil" "$@" >out 2>err </dev/null
  got=$?
  [ "$got" -eq "$wanted" ] || { complain "$* ended with $got, not $wanted"; head -n 5 out err; }
  cat out err | grep -qF -- "$text" || { complain "$* does not say: $text"; head -n 5 out err; }
}
# notes PROGRAM: Python on `train` of the notes of policy
notes() {
  checks=$((checks + 1))
  "$exphil" info --json "$policy" >out 2>err || complain "info --json: $(cat err)"
  python3 -c "import json
notes = json.load(open('out')).get('notes', {})
train = notes.get('train', {})
$1" 2>why || complain "$policy: $(tail -n 1 why): $(head -c 400 out)"
}

mkdir "secret folder"
expect 0 "1800 frames of play" drill --frames 1800 --out "secret folder/mine.slp"
expect 0 "600 frames of play" drill --frames 600 --seed 2 --out other.slp
python3 "$source/tests/host/notes_replays.py" "secret folder/mine.slp" "secret folder/falco.slp" 20 0 2 0
python3 "$source/tests/host/notes_replays.py" other.slp pair.slp 20 0 9 0   # falco, marth
python3 "$source/tests/host/notes_replays.py" other.slp second.slp 9 0 20 0 # marth, falco
python3 "$source/tests/host/notes_replays.py" other.slp ditto.slp 20 1 20 0 # falco (a computer), falco
python3 "$source/tests/host/notes_replays.py" other.slp none.slp 9 0 2 0    # marth, fox

# quick NAME OPTION...: a small run
quick() {
  out=$1
  shift
  expect 0 "" train --quiet --alone 200 --threads 1 --out "$out" "$@"
}
policy="secret folder/policy.safetensors"
echo "secret folder/falco.slp" >list
quick "$policy" $small --updates 6 --eval-every 2 --held-out 0.25 --split time --character falco --rate 0.002 --button-weight 2 \
  --files-from list --exclude 'unknown*' --log "secret folder/log.jsonl"
notes "
assert train['layout'] == 'melee2' and train['codec'] == 'exphil81' and train['version'].count('.') == 2
assert [c['character'] for c in train['characters']] == ['falco'] and [c['character'] for c in train['opponents']] == ['fox']
assert train['characters'][0]['ports'] == {'1': train['data']['frames']} and train['characters'][0]['sides'] == 1
assert train['data']['games'] == 1 and len(train['data']['hash']) == 16 and train['held_out']['split'] == 'time'
assert train['data']['frames'] + train['held_out']['frames'] == 1800 and train['held_out']['share'] == 0.25
assert train['options']['rate'] == 0.002 and train['options']['character'] == 'falco' and train['options']['updates'] == 6
assert not {'quiet', 'log', 'out', 'threads'} & set(train['options'])
assert train['options']['files-from'] is True and train['options']['exclude'] is True and 'seed' not in train['options']
scores = train['held_out_scores']
assert [point[0] for point in scores['curve']] == [2, 4, 6] and scores['last']['update'] == 6
assert scores['best']['loss'] == min(point[1] for point in scores['curve'])
assert train['updates'] == train['planned_updates'] == 6 and 'alone_nll' in scores['last']"
for word in secret mine unknown log.jsonl "$work"; do
  if grep -qF "$word" out; then complain "notes contain $word: $(cat out)"; fi
done
cp out whole.json
expect 0 "imitates falco (1350 frames, 1 side, port 1)" info "$policy"
expect 0 "learnt from 1350 frames of 1 game as melee2/exphil81, data " info "$policy"
expect 0 "held out: 450 frames of 1 game" info "$policy"
expect 0 "--rate 0.002" info "$policy"
expect 0 "held-out score: nll" info "$policy"
[ "$(grep -cE '^(imitates|learnt|options|held-out score|the best was|verdict)' out)" -le 7 ] || complain "more than a few lines: $(cat out)"

# the log has the same scores
python3 - <<'PYTHON' || complain "notes and log differ"
import json
lines = [json.loads(line) for line in open("secret folder/log.jsonl")]
logged = {line["update"]: line["loss"] for line in lines if line["kind"] == "held_out"}
curve = json.load(open("whole.json"))["notes"]["train"]["held_out_scores"]["curve"]
assert all(abs(logged[point[0]] - point[1]) < 1e-8 for point in curve) and len(logged) == len(curve)
PYTHON

# the port of the character
for case in "pair 1 the character that the policy was trained on" "second 2 the character that the policy was trained on" \
  "ditto 2 of several characters that it was trained on" "none 1 nobody has a character"; do
  name=${case%% *} rest=${case#* }
  expect 0 "${rest#* }" play "$policy" "$name.slp"
  grep -q "in the place of P${rest%% *}" err || complain "$name: $(cat err)"
  expect 0 "\"port\":${rest%% *}," play --json "$policy" "$name.slp"
  [ -s err ] && complain "play --json says: $(cat err)"
done
expect 0 "in the place of P1" play --port 1 "$policy" second.slp
grep -q "trained on" err && complain "--port is explained: $(cat err)"

# they go through rounding, and another run has its own
expect 0 "" quantize --type bf16 --out small.safetensors "$policy" pair.slp
expect 0 "imitates falco" info small.safetensors
quick next.safetensors --updates 3 --init "$policy" "secret folder/mine.slp"
policy=next.safetensors
notes "
assert [c['character'] for c in train['characters']] == ['fox'] and train['options']['init'] is True
assert len(train['characters'][0]['ports']) == 2 and train['characters'][0]['sides'] == 2 and 'held_out_scores' not in train"

# a run that goes on knows its earlier scores
policy=on.safetensors
quick $policy $small --updates 4 --schedule constant --eval-every 2 --held-out 0.25 --split time pair.slp
quick $policy $small --updates 8 --schedule constant --eval-every 2 --held-out 0.25 --split time --resume pair.slp
notes "assert [point[0] for point in train['held_out_scores']['curve']] == [2, 4, 6, 8], train['held_out_scores']"

# somebody else's notes are shown, and lead to nothing
python3 - <<'PYTHON' || complain "a file could not be changed"
import json, struct
data = open("on.safetensors", "rb").read()
(length,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + length])
del header["__metadata__"]["exphil.notes_xxh64"]
for name, text in {"words": "just words\n\x1b[2J", "list": "[1]",
                   "wrong": json.dumps({"train": {"characters": 3, "data": [], "options": 1}}),
                   "other": '{"mine": 1}', "deep": json.dumps({"train": {"characters": [{"character": 5, "frames": "x"}, 7]}})}.items():
    header["__metadata__"]["exphil.notes"] = text
    packed = json.dumps(header).encode()
    packed += b" " * (-len(packed) % 64)
    open(name + ".safetensors", "wb").write(struct.pack("<Q", len(packed)) + packed + data[8 + length:])
PYTHON
expect 0 "notes: just words??[2J" info words.safetensors
expect 0 "notes: [1]" info list.safetensors
expect 0 "--json shows it" info other.safetensors
for name in words list wrong other deep; do
  expect 0 "in the place of P1" play $name.safetensors second.slp
  expect 0 '"notes":' info --json $name.safetensors
done

echo "$checks checks"
exit $failed
