# shellcheck shell=sh disable=SC2034,SC2154
# What tests of the program share; $exphil is the program. They run in an empty folder, which is removed at the end.
# A Python that may have packages of its own (tools/deps test installs them); what needs them says when it has not.
python=${EXPHIL_PYTHON:-$(dirname "$(realpath "$0")")/../../build/python/bin/python3}
[ -x "$(command -v "$python")" ] || python=python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
checks=0
# slow A B: A, or of an instrumented program, which takes ten times as long, B
slow() { [ -z "${EXPHIL_SLOW:-}" ] && echo "$1" || echo "$2"; }
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
# value FILE NAME...: a member of a JSON file
value() { python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
for name in sys.argv[2:]: value = value.get(name)
print(json.dumps(value))' "$@"; }
