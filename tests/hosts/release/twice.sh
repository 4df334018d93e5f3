#!/bin/sh
# Every package has the same bytes when it is made of two clones in different folders, once without a compiler cache; Debian's
# packages are without errors for lintian. A package in which one byte differs is found out. What is made stays for the tests after this
# one: $EXPHIL_BUILD/hosts/release.packages.
#   twice.sh [NAME...]      these packages of tools/packages alone
set -eu
fail() { echo "twice: $*" >&2; exit 1; }
out=$EXPHIL_BUILD/hosts/release.packages
rm -rf "$out"
"$EXPHIL_SOURCE/tools/packages" --twice "$@" || fail "packages of two folders differ, or cannot be made"
cp -R "$EXPHIL_SOURCE/build/packages/twice/a/out" "$out"
cd "$out"
sha256sum --check --quiet SHA256SUMS
printf 'x' >>"$(ls ./*-source.tar.gz)"
if sha256sum --check --quiet SHA256SUMS 2>/dev/null; then fail "a file with a byte more has the sum of SHA256SUMS"; fi
cp "$EXPHIL_SOURCE"/build/packages/twice/a/out/*-source.tar.gz .
# What is in the source archive is what git has, and it is enough to configure.
tar -xzf ./*-source.tar.gz -C "$EXPHIL_BUILD/hosts/release/twice"
cd "$EXPHIL_BUILD/hosts/release/twice"
git -C "$EXPHIL_SOURCE" ls-tree -r --name-only HEAD | sort >tracked
(cd exphil-*/ && find . -type f -o -type l) | sed 's,^\./,,' | sort >archived
diff tracked archived || fail "the source archive is not what git has"
cmake -S exphil-*/ -B configured -DEXPHIL_TESTS=OFF -DEXPHIL_TOOLS=OFF >log 2>&1 || { cat log >&2; fail "the source does not configure"; }
# Where no git is, nobody can say that all is committed.
for tree in exphil-*/; do
  if (cd "$tree" && GIT_CEILING_DIRECTORIES=$EXPHIL_BUILD/hosts/release/twice tools/release) >log 2>&1; then
    fail "a tree without git is released"
  fi
done
grep -q '^MISSING  nothing uncommitted' log || { cat log >&2; fail "tools/release does not say what is missing without git"; }
if command -v lintian >/dev/null && ls "$out"/*.deb >/dev/null 2>&1; then
  lintian --fail-on error --tag-display-limit 0 "$out"/*.deb >lintian.log 2>&1 || { cat lintian.log; fail "lintian"; }
  echo "lintian: no errors in $(find "$out" -name '*.deb' | wc -l) packages, $(grep -c '^W:' lintian.log || true) warnings"
else
  echo "SKIPPED in part: no lintian, or no Debian packages"
fi
echo "twice: $(grep -c . "$out/SHA256SUMS") files are the same"
