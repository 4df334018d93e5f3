#!/bin/sh
# Every test that doc/testing.md names exists, and every test program is named there.
# usage: testing.sh source-dir
set -eu
cd "$1"
status=0
named=$(grep -o '`[a-z0-9_]*_\(test\|fuzz\)`' doc/testing.md | tr -d '`' | sort -u)
there=$(ls tests/*/*_test.c tests/fuzz/*_fuzz.c | grep -v '^tests/support/' | sed 's|.*/||; s|\.c$||' | sort -u)
for name in $named; do
  echo "$there" | grep -qx "$name" || { echo "doc/testing.md names $name, which is not there"; status=1; }
done
for name in $there; do
  echo "$named" | grep -qx "$name" || { echo "doc/testing.md does not name $name"; status=1; }
done
for tool in $(grep -o '`tools/[a-z-]*' doc/testing.md | tr -d '`' | sort -u); do
  [ -x "$tool" ] || { echo "doc/testing.md names $tool, which is not there"; status=1; }
done
exit $status
