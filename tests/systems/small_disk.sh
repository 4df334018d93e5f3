#!/bin/sh
# A full disk, once really: the test of Windows' files in a file system of a few hundred kilobytes, which root can make.
#   small_disk.sh TARGET PROGRAM      PROGRAM: files_windows_test.exe
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
small=$(mktemp -d)
if ! mount -t tmpfs -o size=400k small "$small" 2>/dev/null; then
  rmdir "$small"
  echo "SKIPPED: no small disk can be made here (mount -t tmpfs)"
  exit 0
fi
trap 'umount "$small"; rmdir "$small"' EXIT
EXPHIL_SMALL_FOLDER=$small "$root/tools/systems" run "$1" "$2" >"$small.said" 2>&1 || { cat "$small.said"; rm "$small.said"; exit 1; }
grep -a 'files fitted' "$small.said" || { cat "$small.said"; rm "$small.said"; echo "FAILED: no disk was filled"; exit 1; }
rm "$small.said"
