#!/bin/sh
# The addon of Node from a copy in the current folder: built by the C compiler, tests, trace, example. `node.sh bench` times a
# step. NODE_INCLUDE names another folder of headers.
set -eu
command -v node >/dev/null 2>&1 || { echo "SKIPPED: no node"; exit 0; }
fail() { echo "node: $*" >&2; exit 1; }
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || { echo "SKIPPED: node is older than 18"; exit 0; }
beside=$(node -p 'require("path").resolve(process.execPath, "../../include/node")')
[ -e "${NODE_INCLUDE:-$beside}/node_api.h" ] || [ -e /usr/include/node/node_api.h ] ||
  { echo "SKIPPED: no node_api.h (Debian: libnode-dev)"; exit 0; }

mkdir -p node_modules
rm -rf node_modules/exphil
cp -R "$EXPHIL_SOURCE/bindings/node" node_modules/exphil
CFLAGS="-Werror" sh node_modules/exphil/build_addon.sh

if [ "${1:-}" = bench ]; then exec node node_modules/exphil/exphil_trace.js bench "$EXPHIL_TRACE/small.safetensors"; fi

# The header's version is the one source.
number() { sed -n "s/^#define EXPHIL_VERSION_$1 \([0-9]*\)$/\1/p" "$EXPHIL_PREFIX/include/exphil/exphil.h"; }
grep -q "\"version\": \"$(number MAJOR).$(number MINOR).$(number PATCH)\"" node_modules/exphil/package.json ||
  fail "package.json is of another version than the header"

(cd node_modules/exphil && timeout 100 node --test exphil.test.js >../../log 2>&1) || { cat log >&2; fail "tests failed"; }
for folder in $EXPHIL_TRACES; do
  node node_modules/exphil/exphil_trace.js check "$folder/policy.safetensors" "$folder/frames.trace"
done

# The examples of README.md, word for word.
for number in 1 2; do
  awk -v want=$number '/^```js$/ { at++; on = at == want; next } /^```/ { on = 0 } on' node_modules/exphil/README.md >readme$number.js
done
actions=$(node readme1.js "$EXPHIL_TRACE/policy.safetensors")
case $actions in *[!0-9\ ]*) fail "the example of README.md printed: $actions" ;; [0-9]*" "[0-9]*" "[0-9]*) ;;
*) fail "the example of README.md printed: $actions" ;; esac
node readme2.js >log 2>&1 || { cat log >&2; fail "the second example of README.md failed"; }
[ "$(tail -n 1 log)" = "move 2" ] || { cat log >&2; fail "the second example of README.md did not learn"; }

# Where it cannot be written to (root always can), the build says so.
chmod a-w node_modules/exphil
if [ ! -w node_modules/exphil ]; then
  if sh node_modules/exphil/build_addon.sh >log 2>&1; then fail "built in a folder that cannot be written to"; fi
  grep -q "copy the folder first" log || { cat log >&2; fail "a read-only folder is not explained"; }
fi
chmod u+w node_modules/exphil

# Without the library, one sentence and no compiler's errors.
if PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=/nowhere sh node_modules/exphil/build_addon.sh >log 2>&1; then fail "built without a library"; fi
grep -q "^build_addon.sh: libexphil is not found: .*PKG_CONFIG_PATH" log && ! grep -q "node_api\|fatal" log ||
  { cat log >&2; fail "build_addon.sh does not say what is missing"; }
[ -d "${EXPHIL_REPLAYS:-/nowhere}/training" ] || echo "SKIPPED: no replays in \$EXPHIL_REPLAYS"
