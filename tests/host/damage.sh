#!/bin/sh
# Damaged corpora of games by the program: every damaged game is told, the others are kept, by corpus, by select and by train,
# whose updates before the damage are not lost.
#   damage.sh <exphil>
# $small is words
# shellcheck disable=SC2086
set -u
exphil=$1
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
# says FILE TEXT: this is a line of it
says() { grep -qxF -- "$2" "$1" || complain "no line \"$2\" in: $(cat "$1")"; }
# row WORDS COUNT: a line of the table that was printed
row() { grep -qE "^$1 +$2( |\$)" out || complain "no line \"$1 $2\" in: $(cat out)"; }
# flip TO PLACE...: whole.games with a bit changed in the head (hN) or the last block (bN) of game N, the index (i) or the
# trailer (t); prints the byte at which each game is damaged
flip() {
  python3 - "$@" <<'END'
import struct, sys
data = bytearray(open("whole.games", "rb").read())
games, = struct.unpack_from("<Q", data, len(data) - 64 + 8)
index, = struct.unpack_from("<Q", data, len(data) - 64 + 32)
for place in sys.argv[2:]:
    if place[0] in "hb":
        at, = struct.unpack_from("<Q", data, index + 192 * int(place[1:]))
        size, frames = struct.unpack_from("<II", data, index + 192 * int(place[1:]) + 24)
        runs, = struct.unpack_from("<I", data, index + 192 * int(place[1:]) + 80)
        blocks = (frames + 255) // 256
        table = at + 192 + 160 + 16 * runs + 8
        last, = struct.unpack_from("<I", data, table + 16 * (blocks - 2))
        print(at if place[0] == "h" else table + 16 * blocks + 8 + last)
        data[at + 200 if place[0] == "h" else at + size - 3] ^= 0x10
    else:
        data[index + 192 if place == "i" else len(data) - 20] ^= 0x10
open(sys.argv[1], "wb").write(data)
END
}

seed=0
while [ $seed -lt 24 ]; do
  expect 0 frames drill --frames 400 --seed $seed --out "$(printf drill%02d.slp $seed)"
  seed=$((seed + 1))
done
expect 0 "24 games" corpus --stored --quiet --out whole.games .

# ---- all of it is told ----

flip two.games b20 h3 >where
block=$(head -n 1 where) head=$(tail -n 1 where)
expect 1 "exphil: two.games: 2 of 24 games are damaged; exphil corpus --out whole.games two.games keeps what is whole" \
  corpus verify two.games
says out "two.games: damaged"
says out "  game 3, byte $head: the head of this game is damaged"
says out "  game 20, byte $block: this block is damaged"
[ "$(wc -l <out)" -eq 3 ] || complain "verify says $(cat out)"
flip many.games b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 b10 b11 b12 b13 b14 b15 b16 b17 b18 b19 b20 b21 >where
expect 1 "exphil: many.games: 22 of 24 games are damaged" corpus verify whole.games many.games
says out "  and 2 more"
[ "$(wc -l <out)" -eq 23 ] || complain "verify says $(cat out)"
flip one.games b5 >where
expect 1 "exphil: one.games: 1 of 24 games is damaged" corpus verify one.games
mkdir folder && cp whole.games folder/a.games && cp one.games folder/b.games
expect 1 "  \"folder/b.games\" game 29, byte $(cat where): this block is damaged" corpus verify folder
# what is wrong is counted in words that fit any of them, whatever the corpus is called
expect 1 "69 games" slp info two.games folder
says out "cannot be read: 3 (--verbose names them)"
says out "       2  a block is damaged"
says out "       1  the head of a game is damaged"
expect 1 "folder game 29: \"folder/b.games\" game 29, byte $(cat where): this block is damaged" slp info --verbose folder
# index and trailer are not needed
for place in i t; do
  flip end.games $place
  expect 1 "exphil: end.games: the end of a file is missing or damaged; 24 games before it" corpus verify end.games
  grep -q '^exphil: warning: "end.games" byte [0-9]*: [a-z ]*; all 24 games are found without it$' err ||
    complain "a damaged end is not told: $(cat err)"
  expect 0 "24 games" corpus --stored --quiet --force --out mended.games end.games
  cmp -s mended.games whole.games || complain "a corpus with a damaged end is not mended"
done

# a folder of which a file cannot be opened gives the others
mkdir shards && cp whole.games shards/a.games
head -c 20 whole.games >shards/b.games
expect 1 "shards/b.games" corpus verify shards
expect 0 "of-shards.games: 24 games" corpus --stored --out of-shards.games shards
says out "           1  no corpus: it is too short (shards/b.games)"

# ---- the others are kept ----

expect 0 "kept.games: 22 games" corpus --stored --out kept.games two.games
expect 0 "whole, 22 games" corpus verify kept.games
expect 0 "selected.games: 22 games" corpus select --stored --character fox --report report.tsv --out selected.games two.games
row "refused" 2
row "games taken" 22
says out "           1  a block is damaged (two.games)"
says report.tsv "1	files	refused	the head of a game is damaged"
cmp -s selected.games kept.games || complain "select keeps other games than corpus"
expect 0 "23 games" corpus select --stored --character fox --out into/ one.games
expect 0 '"refused":1' corpus select --stored --character fox --json --force --out selected.games one.games

# ---- training ----

small="--threads 1 --seed 1 --blocks gru --hidden 8 --batch 2 --updates 150 --quiet"
expect 0 "150 updates" train $small --out never whole.games
expect 1 "exphil: update: EXPHIL_E_FORMAT: \"one.games\" game 5, byte $(cat where): this block is damaged" \
  train $small --out late one.games
reached=$(sed -n 's/^exphil: stopped after update \([0-9]*\) of 150; the weights are in late, the checkpoint is late.optimizer$/\1/p' err)
[ "${reached:-0}" -gt 0 ] || complain "no update was reached: $(cat err)"
grep -qF "exphil corpus --out whole.games FILE... keeps what is whole" err || complain "no remedy in $(cat err)"
grep -qF -- "--init late" err || complain "no remedy in $(cat err)"
expect 0 "$reached updates" info late
cp late late.optimizer "$work/folder"
# it is the state before the update that failed: with a sound copy of the data the run ends as if nothing had been
expect 0 "150 updates" train $small --resume --out late whole.games
cmp -s late never || complain "the checkpoint before damage is another"
# and the remedy goes through
expect 0 "23 games" corpus --stored --out rest.games one.games
expect 0 "2 updates" train --threads 1 --batch 2 --updates 2 --init folder/late --out next rest.games
# too early to keep anything, and too late to lose anything
expect 1 "exphil: that was the first update; nothing was written" train $small --out none many.games
[ -e none ] && complain "weights of no update were written"
expect 1 "exphil: only the scores are missing: the weights, after update 1, are in scored" \
  train --threads 1 --seed 1 --blocks gru --hidden 8 --batch 2 --updates 1 --out scored one.games
expect 0 "1 update" info scored
# rows, too
expect 0 "episodes" corpus --rows --out rows.corpus whole.games
python3 -c '
data = bytearray(open("rows.corpus", "rb").read())
data[len(data) // 2] ^= 16
open("rows.corpus", "wb").write(data)'
expect 1 "exphil: make the corpus of rows anew from its replays; a new run on that with --init" \
  train $small --out ofrows rows.corpus

[ "$failed" -eq 0 ] && echo "$checks runs of the program"
exit "$failed"
