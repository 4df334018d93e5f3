#!/bin/sh
# Configurations of exphil train: what a run writes of itself repeats it, the command line wins, and whatever is wrong in
# such a file is told with its name and line.
#   config.sh <exphil>
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
# refuse TEXT JSON: a configuration with this content is refused in these words, before data are looked for
refuse() {
  printf '%b' "$2" >bad.json
  expect 2 "$1" train --config bad.json --out none/x none.slp
}
same() { cmp -s "$1" "$2" || complain "$1 and $2 differ"; }

expect 0 "frames" drill --frames 300 --out a.slp
expect 0 "frames" drill --frames 300 --seed 2 --out b.slp

# what a run writes repeats it to the last bit, with its files; nothing of how it was started
expect 0 "3 updates" train --port 1 --blocks gru --hidden 8 --rate 0.1 --decay 0.012345678901234567 --ema 0.5 --mode window \
  --window 7 --exclude 'x*' --exclude y --memory-limit 3GiB --drop-past 0.25 --updates 3 --out first --force a.slp b.slp
expect 0 "3 updates" train --config first.run.json --out second
same first second
same first.optimizer second.optimizer
for name in config force mpi ranks-timeout preset resume; do
  grep -q "\"$name\"" first.run.json && complain "$name is of the start, not of the run"
done
[ "$(value first.run.json files)" = '["a.slp", "b.slp"]' ] || complain "files: $(value first.run.json files)"
[ "$(value first.run.json decay)" = 0.012345678901234567 ] || complain "decay: $(value first.run.json decay)"
[ "$(value first.run.json exclude)" = '["x*", "y"]' ] || complain "exclude: $(value first.run.json exclude)"
[ "$(value first.run.json memory-limit)" = 3221225472 ] || complain "limit: $(value first.run.json memory-limit)"
[ "$(value first.run.json chosen updates)" = 3 ] || complain "chosen: $(value first.run.json chosen)"
"$exphil" --version | grep -qF "$(value first.run.json version | tr -d '"')" || complain "version: $(value first.run.json version)"
value second.run.json >second.values
python3 - <<'END' || complain "first and second differ in more than where they went"
import json
first, second = json.load(open("first.run.json")), json.load(open("second.run.json"))
differ = {name for name in first if first[name] != second.get(name)}
assert differ <= {"out", "started"} and first.keys() == second.keys(), differ
END

# every option of the help is there, once, by its name
"$exphil" train --help | sed -n 's/^  --\([a-z0-9-]*\).*/\1/p' |
  grep -vxE 'help|config|preset|resume|force|mpi|ranks-timeout' | sort >helped
python3 -c '
import json
run = json.load(open("first.run.json"))
facts = {"version", "started", "files", "defaults", "chosen"}
print("\n".join(sorted(list(run["defaults"]) + [name for name in run if name not in facts])))' >written
diff helped written >difference || complain "help and run.json differ: $(cat difference)"

# so does that of a network which is not the usual one, and exphil info tells in which ways; where it is usual, nothing of them
network="--head-layers 2 --head-units 12 --head-activation gelu_tanh --head-last --no-head-trunk --no-head-past --no-final-norm \
  --norm-epsilon 1e-6 --input-width 24"
# shellcheck disable=SC2086
expect 0 "1 update" train --port 1 --blocks "norm lstm_only ffn_gelu" --hidden 8 --updates 1 --batch 4 $network --out headed a.slp
expect 0 "1 update" train --config headed.run.json --out again
same headed again
python3 - <<'END' || complain "the network of headed.run.json"
import json
run = json.load(open("headed.run.json"))
wanted = {"head-layers": 2, "head-units": 12, "head-activation": "gelu_tanh", "head-last": True, "no-head-trunk": True,
          "no-head-past": True, "no-final-norm": True, "norm-epsilon": 1e-6, "input-width": 24}
assert {name: run.get(name) for name in wanted} == wanted, run
END
expect 0 "every head has 2 layers of 12, gelu_tanh, without a trunk, which see what it chose last" info again
for text in "input width 24" "LayerNorms add 1e-06" "no LayerNorm behind the blocks" "past actions are no term of the logits"; do
  grep -qF "$text" out || complain "info does not say: $text"
done
expect 0 '"head_layers"' info --json again
python3 - <<'END' || complain "the network of info --json"
import json
info = json.load(open("out"))
wanted = {"head_layers": 2, "head_units": 12, "head_activation": "gelu_tanh", "head_last": 1, "no_head_trunk": 1, "no_head_past": 1,
          "no_final_norm": 1, "norm_epsilon": 1e-6, "input_width": 24}
assert {name: info.get(name) for name in wanted} == wanted, info
END
expect 0 "policy of" info first
grep -qE "every head|LayerNorms|no LayerNorm|input width|no term" out && complain "info tells the usual"
expect 0 '"weights"' info --json first
grep -qE "head_|norm_epsilon|no_final|input_width" out && complain "info --json tells the usual"
expect 2 "--head-layers and --init: the weights say that already" train --port 1 --init again --head-layers 3 --out other a.slp

# it goes on by its configuration too; the command line wins, also over what says the same in other words
cp first third; cp first.optimizer third.optimizer
expect 0 "first: gru" train --config first.run.json --resume
same first third
expect 0 "1 update" train --config first.run.json --updates 1 --window 5 --out other b.slp
[ "$(value other.run.json files)" = '["b.slp"]' ] || complain "files of the command line: $(value other.run.json files)"
[ "$(value other.run.json window)" = 5 ] || complain "window: $(value other.run.json window)"
expect 0 "passes over" train --config first.run.json --epochs 1 --out epochs
[ "$(value epochs.run.json defaults updates)" = null ] || complain "--epochs did not take the place of updates"
printf 'a.slp\n' >list
expect 0 "1 update" train --port 1 --blocks gru --hidden 8 --updates 1 --batch 4 --out listed --files-from list
cp list list.kept
echo none.slp >list
expect 0 "2 updates" train --config listed.run.json --updates 2 --out unlisted b.slp
[ "$(value unlisted.run.json defaults files-from)" = null ] || complain "a list was read beside the files named"
# a mark that some programs of Windows begin UTF-8 with is no part of a path or a configuration
printf '\357\273\277a.slp\r\n' >list
(printf '\357\273\277' && cat listed.run.json) >marked.json
expect 0 "2 updates" train --config marked.json --updates 2 --out marked
printf '\357\273\277{"rate": 1,\n"hidden": ""}' >bad.json
expect 2 'bad.json line 2: "hidden"' train --config bad.json --out none/x none.slp
# UTF-16 is told by its name
iconv -f UTF-8 -t UTF-16 listed.run.json >wide.json
expect 2 "wide.json: it is UTF-16" train --config wide.json --out none/x none.slp
iconv -f UTF-8 -t UTF-16 list >wide
expect 1 "--files-from wide: it is UTF-16" corpus --stored --out wide.games --files-from wide
expect 1 "wide: it is UTF-16" train --frame-weights wide --out wide.st a.slp
expect 1 "wide.json: it is UTF-16" report --html wide.html --eval wide.json first.run.json

# by hand: few names, in any form that the command line has
cat >hand.json <<'END'
{
  "files": ["a.slp"],
  "port": 1, "blocks": "gru", "hidden": 8, "delay": 2, "memory-limit": "3GiB", "exclude": "x*",
  "updates": 2, "rate": 1, "no-previous-action": false, "log": null, "out": "hand", "held-out": 0.5, "split": "time"
}
END
expect 0 "held out" train --config hand.json
# another seed holds out other games, which is told; not where it is the same, or the end of each is held out
expect 0 "held out" train --config hand.json --seed 2 --out ends
grep -q "other games" err && complain "a warning of --split time: $(cat err)"
expect 0 "held out" train --config hand.json --split game --held-out 0.5 --seed 1 --out games a.slp b.slp
grep -q "warning: with another --seed than that of hand.json other games" err || complain "no warning: $(cat err)"
expect 0 "held out" train --config games.run.json --seed 1 --out same_seed
grep -q "other games" err && complain "a warning of the same seed: $(cat err)"
expect 0 "held out" train --config games.run.json --seed 4 --out other_seed
grep -q "of games.run.json other games are held out; --split time" err || complain "no warning: $(cat err)"
[ "$(value hand.run.json delay)" = '"2"' ] || complain "delay: $(value hand.run.json delay)"

# what is wrong is told with its name and line, before anything is read
refuse 'bad.json line 2: "hiden" is no option of this command' '{\n"hiden": 3}'
refuse 'bad.json line 3: "hidden" wants a whole number' '{"blocks": "gru",\n\n"hidden": "3"}'
refuse 'bad.json line 1: "hidden" wants a whole number' '{"hidden": 3.0}'
refuse 'bad.json line 1: "hidden" wants 1 to 8192, not 0' '{"hidden": 0}'
refuse 'bad.json line 1: "hidden" wants 1 to 8192, not 4294967297' '{"hidden": 4294967297}'
refuse 'bad.json line 2: "rate" wants a number' '{\n"rate": "fast"}'
refuse 'bad.json line 1: "rate" wants 1e-12' '{"rate": -1}'
refuse 'bad.json line 1: "quiet" wants true or false' '{"quiet": 1}'
refuse 'bad.json line 1: "blocks" wants a string' '{"blocks": ["gru"]}'
refuse 'bad.json line 1: "blocks" wants a string' '{"blocks": true}'
refuse 'bad.json line 1: "memory-limit" wants a number of bytes, as 2000000000, 512MiB or 8GiB, not 3GB: units' '{"memory-limit": "3GB"}'
refuse 'bad.json line 1: "exclude" wants a string or an array of strings' '{"exclude": ["a", 2]}'
refuse 'bad.json line 1: "files" wants an array of strings' '{"files": ["a", 2]}'
refuse 'bad.json line 1: "files" wants an array' '{"files": "a"}'
refuse 'bad.json line 1: "config" cannot stand in a configuration' '{"config": "other.json"}'
refuse 'bad.json line 4: "rate" wants a number' '{"hidden": 3,\n"defaults": {\n"decay": 0,\n"rate": "fast"}}'
refuse 'bad.json line 2: "nonsense" is no option' '{"rate": 1, "defaults":\n{"nonsense": 1}}'
refuse 'bad.json line 1: "defaults" wants an object' '{"defaults": []}'
refuse 'bad.json line 2: duplicate object key' '{"rate": 1,\n"rate": 2}'
refuse 'bad.json line 3: "rate" wants a number' '{"out": "\\"rate\\": [{",\n"chosen": {"rate": 2},\n"rate": ""}'
refuse 'bad.json line 3: ' '{"rate": 1,\n"hidden": 3\n"time": 2}'
refuse 'this wants one JSON object' '[1]'
head -c 1048577 /dev/zero | tr '\0' ' ' >large.json
expect 2 "larger than 1 MiB" train --config large.json a.slp
expect 2 "none.json: No such file" train --config none.json a.slp
expect 2 "this is a replay" train --config a.slp
expect 2 "give one of them" train --config hand.json --epochs 2 --updates 1
echo '{}' >bad.json
expect 2 "train wants files" train --config bad.json
expect 2 "--warmup wants fewer" train --config hand.json --warmup 5

# a configuration is no output, but for the record of the run that it repeats
expect 1 "would write over hand.json" train --config hand.json --out hand.json --force
expect 1 "would write over hand.json" train --config hand.json --out h --log hand.json --force
expect 1 "would write over h.run.json" train --config hand.json --out h --log h.run.json
mkdir r.run.json
expect 1 "r.run.json: that is a folder" train --config hand.json --out r
expect 0 "2 updates" train --config hand.run.json --force
[ ! -e hand.run.json.exphil-tmp ] || complain "a temporary stays"

# names that JSON cannot hold are told
name=$(printf 'caf\351.slp')
cp a.slp "$name"
expect 0 "is not UTF-8, which JSON wants; it is left out" train --port 1 --blocks gru --hidden 8 --updates 1 --batch 4 --out utf "$name"
[ "$(value utf.run.json files)" = '[null]' ] || complain "files: $(value utf.run.json files)"

echo "$checks checks"
exit $failed
