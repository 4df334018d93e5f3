#!/bin/sh
# Pages of exphil report and pictures of exphil plot in a browser: nothing is wider than its window, no label stands on another
# or is cut, in light and in dark. Screenshots stay in the folder, to be looked at.
set -eu
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
  echo "SKIPPED: no chromium, in which pages are looked at; tools/deps hosts installs it"
  exit 0
fi
small="--quiet --port 1 --blocks gru --time 30 --updates 40 --held-out 0.3 --split time --eval-every 5"
exphil drill --frames 600 --out a.slp >/dev/null 2>&1
# shellcheck disable=SC2086
exphil train $small --hidden 8 --rate 0.01 --log one.jsonl --out one a.slp >/dev/null
# shellcheck disable=SC2086
exphil train $small --hidden 16 --log two.jsonl --out two a.slp >/dev/null
# other characters, all that an examination can show, and names and numbers without measure
python3 "$EXPHIL_SOURCE/tests/host/notes_replays.py" a.slp other.slp 0 0 25 0
exphil eval --json --mistakes 20 --port 1 one a.slp other.slp >all.json 2>err
python3 - <<'END'
import json
def stretched(value, name=""):
    if isinstance(value, dict):
        return {(key + "_of_a_long_name" * 3 if name in ("heads", "bits", "characters", "stages") else key): stretched(member, key)
                for key, member in value.items()}
    if isinstance(value, list): return [stretched(member) for member in value]
    return value + " that goes on" * 9 if isinstance(value, str) and name else value * 10**9 if isinstance(value, int) else value
json.dump(stretched(json.load(open("all.json"))), open("long.json", "w"))
END
exphil report --html run.html one.jsonl
exphil report --html full.html --eval all.json one.jsonl
cp one.jsonl long.jsonl
exphil report --html long.html --eval long.json long.jsonl
grep -v '"examination"' two.jsonl >bare.jsonl
exphil report --html bare.html bare.jsonl
long="a log whose name is so long that there is no room for all of it in any picture, however much is tried to make some.jsonl"
cp two.jsonl "$long"
exphil plot --out many.svg one.jsonl two.jsonl "$long" --field exact_accuracy
exphil plot --out loss.svg one.jsonl two.jsonl
exphil plot --out rate.svg one.jsonl --field rate
python3 "$EXPHIL_SOURCE/tests/hosts/browser_check.py" "$browser" run.html full.html long.html bare.html many.svg loss.svg rate.svg
