#!/bin/sh
# Writes tests/fuzz/corpus/games anew, out of the small replays of tests/fuzz/corpus/slp: after a change of the format.
#   games_seeds.sh EXPHIL
set -eu
exphil=$(realpath "$1")
cd "$(dirname "$0")/corpus"
rm -rf games && mkdir games
make() { # NAME OPTION... SAMPLE...
  name=$1
  shift
  "$exphil" corpus --quiet --out "games/$name" "$@" >/dev/null
}
make stored --stored slp/sample-15.slp
make stored-two --stored slp/sample-00.slp slp/sample-21.slp
"$exphil" drill --frames 300 --out games/drill.slp >/dev/null
make zstd games/drill.slp
rm games/drill.slp
make zstd-two --level 19 slp/sample-15.slp slp/sample-17.slp
head -c -64 games/stored-two >games/no-trailer
{ cat games/stored && head -c 500 /dev/zero; } >games/zeros
head -c 64 games/stored >games/no-game
# patch NAME OFFSET BYTES: of the one game, whose entry begins at byte 64
patch() {
  cp games/stored "games/$1"
  printf '%b' "$3" | dd of="games/$1" bs=1 seek="$2" conv=notrunc status=none
}
patch frames-many 92 '\0377\0377\0006\0000'
patch items-many 140 '\0000\0000\0020\0000'
patch raw-most 132 '\0000\0000\0020\0000'
patch runs-many 144 '\0000\0000\0001\0000'
