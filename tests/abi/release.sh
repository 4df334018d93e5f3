#!/bin/sh
# tools/release lets a whole release pass and refuses, by name, one that lacks a part.
#   release.sh <source folder>
set -eu
source=$(cd "$1" && pwd)
git -C "$source" rev-parse --git-dir >/dev/null 2>&1 || { echo "SKIPPED: no history here to release from"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_AUTHOR_NAME=tests GIT_AUTHOR_EMAIL=tests@localhost GIT_COMMITTER_NAME=tests GIT_COMMITTER_EMAIL=tests@localhost
git clone -q --no-local --no-tags "$source" "$work/tree" 2>"$work/said" || { cat "$work/said"; exit 1; }
cd "$work/tree"
cp "$source/tools/release" tools/release # as it is, committed or not
# The newest release that is kept, as it was when it was made.
version=$(basename "$(printf '%s\n' tests/abi/*.*.* | sort -V | tail -n 1)")
rm include/exphil/*.h && cp tests/abi/"$version"/exphil/*.h include/exphil/
tools/abi sizes
awk '/^## .*not released/ {skip = 1; next} /^## / {skip = 0} !skip' CHANGELOG.md >"$work/changes" && cp "$work/changes" CHANGELOG.md
git add -A && git commit -q --allow-empty -m "the release"
failed=0

# refused WORD: tools/release must fail and name it.
refused() {
  if tools/release >"$work/out" 2>&1; then echo "FAILED: $1: nothing noticed"; failed=1; return; fi
  grep -q "^MISSING .*$1" "$work/out" || { echo "FAILED: refused without a word of $1:"; cat "$work/out"; failed=1; }
}

tools/release >"$work/out" || { cat "$work/out"; echo "FAILED: a whole release is refused"; exit 1; }
echo x >left-over && refused uncommitted && rm left-over
sed -i "s/^## $version/## $version (not released)/" CHANGELOG.md && refused CHANGELOG && git checkout -q -- CHANGELOG.md
echo '/* */' >>include/exphil/slp.h && refused 'holds the headers' && git checkout -q -- include
rm tests/data/kept/"$version"/results.txt && refused 'kept_test' && git checkout -q -- tests
tools/release --tag >/dev/null
git tag -n9 -l "v$version" | grep -q "$version" || { echo "FAILED: no tag was made"; failed=1; }
refused "no tag v$version"
[ "$failed" -eq 0 ] && echo "$version: a whole release passes, five incomplete ones do not"
exit "$failed"
