#!/bin/sh
# The command that began a run goes on with it, whatever it was; what a run writes of itself has every option; files that are
# nobody's are left alone; what stands in somebody's file is no command to a terminal.
#   resume.sh <exphil>
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
same() { cmp -s "$1" "$2" || complain "$1 and $2 differ"; }

for seed in 1 2 3; do expect 0 "frames" drill --frames 400 --seed $seed --out $seed.slp; done
small="--quiet --port 1 --blocks gru --hidden 8 --head-width 8 --time 20 --alone 0"
# begin OPTION...: a run of 6 updates in one, and one that is asked again after 3 with the same options
# shellcheck disable=SC2086
both() {
  expect 0 "6 updates" train $small "$@" --updates 6 --out whole.st --force 1.slp 2.slp 3.slp
  expect 0 "3 updates" train $small "$@" --schedule constant --updates 3 --out part.st --force 1.slp 2.slp 3.slp
  expect 0 "6 updates" train $small "$@" --schedule constant --updates 6 --out part.st --force --resume 1.slp 2.slp 3.slp
  expect 0 "6 updates" train $small "$@" --schedule constant --updates 6 --out whole.st --force 1.slp 2.slp 3.slp
  same whole.st part.st
}
both --batch 3
both --batch auto
[ "$(value part.st.run.json batch)" = '"auto"' ] || complain "batch: $(value part.st.run.json batch)"

# --batch stands in what a run writes of itself, wherever that lies
long=$(printf 'a%.0s' $(seq 200))
mkdir "$long"
# shellcheck disable=SC2086
expect 0 "3 updates" train $small --batch 3 --updates 3 --out "$long/p.st" 1.slp 2.slp
[ "$(value "$long/p.st.run.json" batch)" = 3 ] || complain "batch: $(value "$long/p.st.run.json" batch)"
expect 0 "3 updates" train --config "$long/p.st.run.json" --out again.st
same "$long/p.st" again.st
expect 0 "5 updates" train --config "$long/p.st.run.json" --updates 5 --resume

# a run from weights goes on from its own
cp whole.st first.st
fine="--quiet --port 1 --time 20 --alone 0 --init first.st --schedule constant"
# shellcheck disable=SC2086
{
  expect 0 "6 updates" train $fine --updates 6 --out whole.st --force 1.slp
  expect 0 "3 updates" train $fine --updates 3 --out part.st --force 1.slp
  expect 0 "6 updates" train $fine --updates 6 --out part.st --resume 1.slp
}
same whole.st part.st

# a log is added to where it is one
for file in 1.slp whole.st; do
  cp $file kept
  # shellcheck disable=SC2086
  expect 1 "this is no log of exphil" train $fine --updates 7 --out part.st --resume --log kept 1.slp
  same $file kept
done
# torn lines, as after a loss of power, block no new run and are passed over by those who read logs
# shellcheck disable=SC2086
expect 0 "6 updates" train $fine --updates 6 --out logged.st --log torn.jsonl 1.slp
head -c 700 torn.jsonl >cut.jsonl
printf '\n\0\0\0\0\n' >>cut.jsonl
expect 0 "such lines are passed over" plot --text cut.jsonl
# shellcheck disable=SC2086
expect 0 "did not come to its end" train $fine --updates 2 --out other.st --log cut.jsonl 1.slp

# one run at a time writes OUT
python3 - "$exphil" <<'END' || complain "two runs may write into one OUT"
import fcntl, subprocess, sys
lock = open("held.st.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
words = [sys.argv[1], "train", "--quiet", "--port", "1", "--blocks", "gru", "--hidden", "8", "--updates", "2", "--out", "held.st", "1.slp"]
done = subprocess.run(words, capture_output=True, text=True)
assert done.returncode == 1 and "another run writes it at this moment" in done.stderr, done
fcntl.flock(lock, fcntl.LOCK_UN)
assert subprocess.run(words, capture_output=True).returncode == 0
END
[ ! -e held.st.lock ] || complain "a run that has ended left its lock"
# a file of somebody's that has a lock's name stays
echo mine >mine.st.lock
# shellcheck disable=SC2086
expect 1 "mine.st.lock is no lock of a run" train $fine --updates 2 --out mine.st 1.slp
[ "$(cat mine.st.lock)" = mine ] || complain "a run removes a file that is not its own"

# controls and marks of direction in a file's words
printf '{"\\u001b[31mred\\u009b\\u202e": 1}' >bad.json
expect 2 'bad.json: "?[31mred??" is no option' train --config bad.json --out none/x none.slp
mkdir foreign
python3 - <<'END'
import json
record = json.load(open("whole.st.run.json"))
json.dump(record, open("foreign/b.run.json", "w"))
record["files"], record["blocks"] = ["\x1b[31mred\x9b"], "\u202egru"
json.dump(record, open("foreign/a.run.json", "w"))
END
expect 0 "?[31mred?" runs foreign
python3 - <<'END' || complain "a record moves the cursor: $(cat out)"
text = open("out", encoding="utf-8").read()
assert not set(text) & set("\x1b\x9b\u202e"), ascii(text)
END
echo "$checks checks"
exit $failed
