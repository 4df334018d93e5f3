#!/bin/sh
# The addon of Node from a copy in the current folder: built by the C compiler, tests, trace, examples; installed by npm, where
# there is one; and built below a folder with a space in its name. `node.sh bench` times a step. NODE_INCLUDE names another
# folder of headers.
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

# What C makes of Melee's frames, for the tests to compare with.
mkdir -p melee
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror node_modules/exphil/melee_rows.c \
  -o melee/rows $(pkg-config --cflags --libs exphil)
melee/rows melee/model.safetensors >melee/rows.json
# Another addon's objects, which no test can make by itself: both lie before memory that looks like a model.
cat >foreign.c <<'EOF'
#include <node_api.h>
static long long memory[64] = {1, 16, 16};
NAPI_MODULE_INIT()
{
    napi_value external, wrapped;
    napi_create_external(env, memory, 0, 0, &external);
    napi_create_object(env, &wrapped);
    napi_wrap(env, wrapped, memory, 0, 0, 0);
    napi_set_named_property(env, exports, "external", external);
    napi_set_named_property(env, exports, "wrapped", wrapped);
    return exports;
}
EOF
for include in "${NODE_INCLUDE:-}" "$beside" /usr/include/node; do
  [ ! -e "$include/node_api.h" ] || break
done
cc -std=c11 -fPIC -shared -isystem "$include" foreign.c -o foreign.node
(cd node_modules/exphil && EXPHIL_FOREIGN=$PWD/../../foreign.node EXPHIL_MELEE=../../melee \
  timeout 900 node --test exphil.test.js exphil_melee.test.js >../../log 2>&1) ||
  { cat log >&2; fail "tests failed"; }
for folder in $EXPHIL_TRACES; do
  node node_modules/exphil/exphil_trace.js check "$folder/policy.safetensors" "$folder/frames.trace"
done

# The examples and commands of README.md, word for word.
sed -n 's/^    \(exphil .*\)/\1/p' node_modules/exphil/README.md >commands.sh
PATH="$EXPHIL_PREFIX/bin:$PATH" sh -eu commands.sh >log 2>&1 || { cat log >&2; fail "the commands of README.md failed"; }
for number in 1 2 3; do
  awk -v want=$number '/^```js$/ { at++; on = at == want; next } /^```/ { on = 0 } on' node_modules/exphil/README.md >readme$number.js
done
actions=$(node readme1.js "$EXPHIL_TRACE/policy.safetensors")
case $actions in *[!0-9\ ]*) fail "the example of README.md printed: $actions" ;; [0-9]*" "[0-9]*" "[0-9]*) ;;
*) fail "the example of README.md printed: $actions" ;; esac
node readme1.js policy.safetensors | grep -Eqx "([0-9]+ ){5}[0-9]+" || fail "the policy of README.md does not play"
node readme2.js melee/model.safetensors >log 2>&1 || { cat log >&2; fail "the second example of README.md failed"; }
grep -q "^pad .*buttons: " log && grep -Eqx "[0-9]+ [0-9]+ ([0-9]+,){5}[0-9]+" log ||
  { cat log >&2; fail "the second example of README.md gave no pad"; }
node readme3.js >log 2>&1 || { cat log >&2; fail "the third example of README.md failed"; }
[ "$(tail -n 1 log)" = "move 2" ] || { cat log >&2; fail "the third example of README.md did not learn"; }

# An older library, as it would answer: the addon does not load.
cat >other.c <<EOF
unsigned exphil_version(void) { return $(number MAJOR) * 10000 + $(number MINOR) * 100 - 1; }
const char *exphil_version_string(void) { return "older none"; }
EOF
cc -shared -fPIC other.c -o other.so
if LD_PRELOAD=$PWD/other.so node readme1.js "$EXPHIL_TRACE/policy.safetensors" >log 2>&1; then fail "an older library was taken"; fi
grep -q "libexphil older none is loaded, this addon was built for $(number MAJOR).$(number MINOR)" log && grep -q EXPHIL_E_VERSION log ||
  { cat log >&2; fail "an older library is not told"; }

# As README.md has it, by hand and by npm, with spaces in every path, and without LD_LIBRARY_PATH: the addon knows where its
# library lies. Debian's nodejs comes without npm, and is not asked for it.
mkdir -p "with space/program/node_modules"
ln -sfn "$EXPHIL_PREFIX" "with space/prefix"
echo '{ "private": true }' >"with space/program/package.json"
cp -R "$EXPHIL_SOURCE/bindings/node" "with space/program/exphil"
cat >spaces.sh <<'EOF'
set -eu
cd "with space/program"
PKG_CONFIG_PATH=$(dirname "$(find "$PWD/../prefix/" -name exphil.pc)")
export PKG_CONFIG_PATH npm_config_cache="$PWD/../npm" npm_config_update_notifier=false
unset LD_LIBRARY_PATH
cp ../../readme1.js . # require() looks from the program's folder
cp -R exphil node_modules/exphil
sh "$PWD/node_modules/exphil/build_addon.sh"
node readme1.js "$EXPHIL_TRACE/policy.safetensors" >by_hand
rm -r node_modules
if command -v npm >/dev/null 2>&1; then
  npm install ./exphil --offline --no-audit --no-fund
  node readme1.js "$EXPHIL_TRACE/policy.safetensors" >by_npm
fi
EOF
sh spaces.sh >log 2>&1 || { cat log >&2; fail "not installed below a folder with a space in its name"; }
[ "$(cat "with space/program/by_"* | sort -u)" = "$actions" ] ||
  fail "installed below a folder with a space in its name, it plays otherwise"

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
