#!/bin/sh
# The policies of the tree are those of their page: they play as it says, and have the sizes that it says.
#   policies.sh <exphil> <source folder>
set -u
exphil=$(realpath "$1")
policies=$(realpath "$2")/policies
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"

# of the page: of a file, how it goes on behind its bytes
row() { grep "^| \`$1.safetensors\`" "$policies/README.md"; }
number() { row "$1" | sed -n "s/.*[| ]$2.*/\1/p" | tr -d ,; }

grep -o '^| `[a-z0-9_]*\.safetensors`' "$policies/README.md" | tr -d '|` ' | sort >listed
(cd "$policies" && ls ./*.safetensors) | sed 's|^\./||' | sort >there
cmp -s listed there || complain "the page lists other files than the folder has: $(diff listed there)"
for name in drill pong cartpole; do
  bytes=$(wc -c <"$policies/$name.safetensors")
  row $name | sed 's/,//g' | grep -q "| $bytes |" || complain "$name.safetensors has $bytes bytes; the page: $(row $name)"
done

expect 0 '"hits"' drill --seed 2 --json "$policies/drill.safetensors"
[ "$(value out hits)" = "$(number drill '\([0-9]*\) hits')" ] || complain "$(value out hits) hits; the page: $(row drill)"

# With the value alone the policy stays as it is: the score at the end is its own.
score() { # NAME WORLD EPISODES
  expect 0 '"score"' learn --world "$2" --init "$policies/$1.safetensors" --value-only 1 --frames 1 --scores 0 --episodes "$3" \
    --json --force --out same.safetensors
}
score cartpole cartpole 100
[ "$(value out drawn mean)" = 500.0 ] || complain "cartpole: $(value out drawn mean)"
score pong pong 100
python3 -c 'import sys; sys.exit(f"{float(sys.argv[1]):.1f}" != sys.argv[2])' "$(value out drawn mean)" \
  "$(number pong '\([0-9.]*\) points')" || complain "pong: $(value out drawn mean); the page: $(row pong)"
score drill drill 8
python3 -c 'import sys; sys.exit(not float(sys.argv[1]) > 400)' "$(value out drawn mean)" || complain "drill: $(value out drawn mean)"

echo "$checks checks"
exit $failed
