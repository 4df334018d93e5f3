#!/bin/sh
# The page of examples/web in a headless chromium: few frames in lockstep come to the same as in Node, the page fits a desk and a
# phone in light and dark, keys, buttons and files do what they say. `web_page.sh 7200` is the two minutes in which the policy
# learns to beat its visitor.
set -eu
fail() { echo "web_page: $*" >&2; exit 1; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "SKIPPED: no chromium, in which the page runs; tools/deps hosts installs it"; exit 77; }
command -v node >/dev/null 2>&1 || { echo "SKIPPED: no node"; exit 77; }
[ -e "$EXPHIL_SOURCE/build/zig/bin/python3" ] || { echo "SKIPPED: no zig; tools/deps systems installs it"; exit 77; }
node="node"
! node --experimental-wasm-relaxed-simd -e 0 2>/dev/null || node="node --experimental-wasm-relaxed-simd"

"$EXPHIL_SOURCE/examples/web/make-page" --out page --exphil exphil
# shellcheck disable=SC2086
$node "$EXPHIL_SOURCE/tests/hosts/web/page.mjs" "$browser" "$PWD/page" ${1:-}
# What was learnt there plays here.
exphil match --world pong-two --games 2 page/learnt.safetensors page/pong.safetensors >log 2>&1 ||
  { cat log >&2; fail "the weights that the page gave do not play natively"; }
