#!/bin/sh
# The package of the web, built here: what it plays and trains has the bits of the installed library, in Node and in a headless
# chromium, with both modules; wrong uses are refused by name; the examples of its README run as printed; TypeScript's declarations
# name what there is; and two builds of the package are the same bytes.
set -eu
fail() { echo "web_play: $*" >&2; exit 1; }
command -v node >/dev/null 2>&1 || { echo "SKIPPED: no node"; exit 77; }
[ -e "$EXPHIL_SOURCE/build/zig/bin/python3" ] || { echo "SKIPPED: no zig; tools/deps systems installs it"; exit 77; }
web=$EXPHIL_SOURCE/tests/hosts/web
node="node"
! node --experimental-wasm-relaxed-simd -e 0 2>/dev/null || node="node --experimental-wasm-relaxed-simd"

"$EXPHIL_SOURCE/bindings/web/build.sh" --out made
tar -xzf made/exphil-play-*.tgz
mkdir -p node_modules page
mv package node_modules/exphil-play
# The same of a copy, elsewhere, by somebody with other rights and at another time.
mkdir -p "another folder/bindings" "another folder/include"
cp -R "$EXPHIL_SOURCE/bindings/web" "another folder/bindings/web"
cp -R "$EXPHIL_SOURCE/include/exphil" "another folder/include/exphil"
cp "$EXPHIL_SOURCE/LICENSE" "another folder/LICENSE"
epoch=$(git -C "$EXPHIL_SOURCE" log -1 --format=%ct 2>/dev/null || echo 315532800)
(umask 077 && touch "another folder/bindings/web/"* &&
  SOURCE_DATE_EPOCH=$epoch "another folder/bindings/web/build.sh" --out "another folder/made" --modules node_modules/exphil-play >/dev/null)
cmp made/*.tgz "another folder/made/"*.tgz || fail "another build of the package has other bytes"
for module in node_modules/exphil-play/*.wasm; do
  ! grep -qF "$EXPHIL_SOURCE" "$module" || fail "$module knows where it was built"
done

# shellcheck disable=SC2046
cc -std=c11 -O2 -Wall -Wextra -Werror "$web/bits.c" -o bits $(pkg-config --cflags --libs exphil)
./bits . >native.txt
$node "$web/node.mjs" "$PWD/node_modules/exphil-play" "$PWD"

# The examples of README.md, word for word.
awk '/^```js$/ { on = 1; next } /^```/ { on = 0 } on' "$EXPHIL_SOURCE/bindings/web/README.md" >readme.mjs
grep -q "from 'exphil-play'" readme.mjs || fail "README.md has no example"
$node readme.mjs >log 2>&1 || { cat log >&2; fail "the example of README.md failed"; }
grep -qx "5 of 5" log || { cat log >&2; fail "the example of README.md did not learn"; }
exphil info readme.safetensors >log 2>&1 || { cat log >&2; fail "the weights of README.md's example do not load natively"; }
# Every class and method stands in the declarations, and nothing else does.
node - <<'END'
const { readFileSync } = require('fs');
const types = readFileSync('node_modules/exphil-play/exphil_play.d.ts', 'utf8');
import(process.cwd() + '/node_modules/exphil-play/exphil_play.js').then((lib) => {
  let wrong = 0;
  for (const name of ['Play', 'Model', 'Session', 'Trainer', 'Learner', 'World']) {
    const body = types.split(`export class ${name} `)[1]?.split('\n}')[0] ?? '';
    const declared = new Set([...body.matchAll(/^  (?:readonly |get )?(\w+)[(<?:]/gm)].map(([, word]) => word));
    const there = Object.getOwnPropertyNames(lib[name].prototype).filter((word) => word !== 'constructor');
    for (const word of there) if (!declared.has(word)) wrong = 1, console.error(`FAILED: ${name}.${word} is not declared`);
  }
  process.exit(wrong);
});
END

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "SKIPPED: no chromium, in which the package runs, too; tools/deps hosts installs it"; exit 0; }
cp -R node_modules/exphil-play page/exphil-play
cp "$web/bits.mjs" "$web/misuse.mjs" policy.safetensors native.txt page/
node "$web/browser_bits.mjs" "$browser" "$PWD/page"
