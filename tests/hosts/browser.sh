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
python3 "$EXPHIL_SOURCE/tests/support/examined.py" all.json
exphil report --html full.html --eval all.json one.jsonl
exphil report --html bare.html two.jsonl
long="a log whose name is so long that there is no room for all of it in any picture, however much is tried to make some.jsonl"
cp two.jsonl "$long"
exphil plot --out many.svg one.jsonl two.jsonl "$long" --field exact_accuracy
exphil plot --out loss.svg one.jsonl two.jsonl
exphil plot --out rate.svg one.jsonl --field rate
python3 "$EXPHIL_SOURCE/tests/hosts/browser_check.py" "$browser" full.html bare.html many.svg loss.svg rate.svg
