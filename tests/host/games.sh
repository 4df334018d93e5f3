#!/bin/sh
# Corpora of games by the program: folders, merging, duplicates, refusals by their reasons, a second run, Ctrl-C, damage; and
# a reader that was written from doc/file-format.md alone reads what the library wrote, bit for bit.
#   games.sh <exphil> <source folder>
set -u
exphil=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
checks=0
complain() { echo "FAILED: $*"; failed=1; }
names() { find "$1" -mindepth 1 -printf '%f\n' | LC_ALL=C sort; }
whole() { find "$1" -name '*.games' | wc -l; } # files that got their names

# expect STATUS TEXT ARGUMENT...: the program ends with this status and says this text; its output goes to out and err
expect() {
  wanted=$1 text=$2
  shift 2
  checks=$((checks + 1))
  "$exphil" "$@" >out 2>err </dev/null
  got=$?
  [ "$got" -eq "$wanted" ] || { complain "$* ended with $got, not $wanted"; head -n 5 out err; }
  cat out err | grep -qF -- "$text" || { complain "$* does not say: $text"; head -n 5 out err; }
}
# row WORDS COUNT: a line of the table that was printed
row() { grep -qE "^$1 +$2( |\$)" out || complain "no line \"$1 $2\" in: $(cat out)"; }

# ---- a reader of its own ----

reader() { python3 "$source/tests/support/games_reader.py" "$1" >dumps 2>&1 || complain "the reader does not read $1: $(tail -n 1 dumps)"; }
dump() { "$exphil" slp dump "$@" | sha256sum | cut -d' ' -f1; }
# same CORPUS: the library's dumps of all games are the reader's; of the only game those of REPLAY, too
same() {
  reader "$1"
  [ "$(wc -l <dumps)" -ge 4 ] || complain "the reader found next to nothing in $1"
  while read -r game what slot digest; do
    set -- "$1" "${2:-}" --what "$what"
    [ "$slot" = - ] || set -- "$@" --slot "$slot"
    from=$1 replay=$2
    shift 2
    checks=$((checks + 1))
    [ "$(dump "$from" --game "$game" "$@")" = "$digest" ] || complain "$from: game $game $* is read in two ways"
    [ -z "$replay" ] || [ "$(dump "$replay" "$@")" = "$digest" ] || complain "$replay $* is not what went in"
    set -- "$from" "$replay"
  done <dumps
}
cp -r "$source/tests/fuzz/corpus/slp" small
expect 0 "19 games, 59 frames" corpus --games --stored --quiet --out small.games small
same small.games
for seed in 1 2; do expect 0 "frames" drill --frames 600 --seed $seed --out drill$seed.slp; done
expect 0 "1 game, 723 frames" corpus --games --stored --out drill.games drill1.slp
same drill.games drill1.slp
replays=${EXPHIL_REPLAYS:-$source/../shared/replays}
found=0
for replay in "$replays"/formats/*.slp; do
  [ -e "$replay" ] && [ "$(wc -c <"$replay")" -lt 1000000 ] && [ $found -lt 3 ] || continue
  "$exphil" corpus --games --stored --force --quiet --out real.games "$replay" >out 2>err || continue
  same real.games "$replay"
  found=$((found + 1))
done
[ $found -gt 0 ] || echo "SKIPPED: real replays, since there are none"
# it sees damage
cp drill.games damaged.games
printf 'x' | dd of=damaged.games bs=1 seek=3000 conv=notrunc status=none
python3 "$source/tests/support/games_reader.py" damaged.games >dumps 2>&1 && complain "the reader does not see damage"
expect 1 "byte" corpus verify damaged.games
expect 1 "byte" corpus verify drill.games damaged.games
grep -q "^drill.games: whole, 1 game, 723 frames" out || complain "a whole corpus is not told: $(cat out)"

# ---- compressed, where libzstd is ----

stored=--stored
if "$exphil" corpus --games --quiet --out packed.games small drill1.slp >out 2>err; then
  stored=
  [ "$(wc -c <packed.games)" -lt "$(wc -c <drill.games)" ] || complain "compression makes larger"
  expect 0 "20 games, 782 frames" corpus verify packed.games
  expect 2 "--level wants 1 to 19, not 20" corpus --games --level 20 --out x.games small
else
  grep -q "libzstd.so.1" err && grep -q -- "--stored writes without it" err || complain "no libzstd: $(cat err)"
  echo "SKIPPED: compression, since there is no libzstd.so.1"
fi

# ---- folders ----

mkdir many empty
cp drill1.slp many/a.slp
cp drill2.slp many/b.slp
cp drill1.slp many/copy.slp
head -c 20000 drill2.slp >many/cut.slp
echo "no replay" >many/broken.slp
echo "no replay either, byte 7" >many/junk.slp
expect 0 "all/: 3 games" corpus --games $stored --out all/ --report report.tsv many
row "files read" 6
row "games added" 3
row "  end early" 1
row "duplicates" 1
row "refused" 2
[ "$(cut -f1 report.tsv | sort | uniq -c | tr -s ' \n' ' ')" = " 3 added 1 duplicate 2 refused 1 result " ] || complain "$(cat report.tsv)"
grep -q "^refused	0	many/broken.slp		" report.tsv || complain "no reason in $(cat report.tsv)"
grep -q "^duplicate	0	many/copy.slp		the same file was added" report.tsv || complain "no reason in $(cat report.tsv)"
names all >before
expect 0 "all: 3 games" corpus --games $stored --out all many
row "games added" 0
row "duplicates" 4
names all | cmp -s - before || complain "a second run changed files"
expect 0 "frames" drill --frames 60 --out many/new.slp
expect 0 "all: 4 games" corpus --games $stored --out all many
row "games added" 1
[ "$(whole all)" -eq 2 ] || complain "a second file was to come: $(names all)"
expect 0 "pieces: 4 games" corpus --games $stored --shard-size 1 --out pieces many
[ "$(whole pieces)" -eq 4 ] || complain "a file for each game was to come: $(names pieces)"
for name in pieces/*; do echo "$name" | grep -qE '^pieces/[0-9a-f]{16}\.games$' || complain "a file is called $name"; done
# folders among what is read are the same games; the corpus itself, in what is searched, is passed over
expect 0 "merged.games: 4 games" corpus --games $stored --out merged.games pieces all
row "duplicates" 4
mkdir -p many/inside
expect 0 "many/inside: 4 games" corpus --games $stored --out many/inside many
expect 0 "many/inside: 4 games" corpus --games $stored --out many/inside many
row "files read" 7
rm -r many/inside
mkdir own && cp drill1.slp own
expect 0 "own: 1 game" corpus --games $stored --out own own
expect 0 "own: 1 game" corpus --games $stored --out own own
row "files read" 1
row "duplicates" 1
one=$("$exphil" info --json merged.games | sed 's/.*"content_hash":"\([0-9a-f]*\)".*/\1/')
two=$("$exphil" info --json pieces | sed 's/.*"content_hash":"\([0-9a-f]*\)".*/\1/')
[ -n "$one" ] && [ "$one" = "$two" ] || complain "the same games, another content: $one $two"
expect 0 "whole, 4 games" corpus verify pieces

# ---- what is said ----

expect 0 '"stopped":false' corpus --games $stored --force --json --out merged.games pieces many
python3 -c '
import json
made = json.load(open("out"))
assert [made[name] for name in ("games", "duplicates", "refused", "files")] == [4, 5, 2, 11], made
assert made["total"]["games"] == 4 and sum(made["reasons"].values()) == 2, made' || complain "--json says $(cat out)"
expect 0 "corpus of 4 games" info merged.games
expect 0 "final_destination" slp info merged.games
[ "$(wc -l <out)" -eq 5 ] || complain "not a line a game: $(cat out)"
expect 0 '"content_hash"' slp info --json pieces
[ "$(wc -l <out)" -eq 4 ] || complain "not an object a game: $(cat out)"
expect 0 "merged.games game 2" slp info merged.games --game 2
expect 1 "index is 4; there are 4 games" slp info merged.games --game 4
expect 2 "--game must be a whole number" slp info merged.games --game x
expect 2 "dump wants --game N" slp dump merged.games --what items
expect 2 "keeps the last simulation" slp dump merged.games --game 0 --what items --rollback all
expect 1 "rows of one are not made yet" train --out p merged.games
expect 1 "rows of one are not made yet" train --out p pieces
expect 1 "rows of one are not made yet" corpus --out rows merged.games
mkdir mixed && cp merged.games drill1.slp mixed
expect 0 "600 frames in 1 episode" train --port 1 --blocks gru --hidden 8 --updates 1 --out p mixed
expect 0 "1 game" corpus --port 1 --out rows.corpus drill1.slp
expect 0 "whole, 1 episode" corpus verify rows.corpus
expect 1 "this is a corpus; a corpus of games is made of" corpus --games --out x.games rows.corpus
expect 1 "this is a corpus of games" play merged.games drill1.slp
expect 1 "corpus verify wants corpora" corpus verify drill1.slp
expect 2 "corpus verify wants a corpus" corpus verify
expect 1 "no file whose name ends in .games" corpus verify empty
expect 1 "no .slp and no .games in empty" corpus --games $stored --out x.games empty
expect 1 "no game was found in what was given; nothing was written" corpus --games $stored --out x.games many/junk.slp
[ -e x.games ] && complain "a corpus without games was written"
expect 1 "2 games" corpus --games $stored --out some.games many/a.slp many/b.slp many/junk.slp
row "refused" 1
expect 1 "some.games is there already: --force replaces it" corpus --games $stored --out some.games many
expect 1 "would write over some.games" corpus --games $stored --force --out some.games some.games
expect 1 "File exists" corpus --games $stored --out some.games/ many
expect 1 "No such file or directory" corpus --games $stored --out no/such/ many
expect 2 "--port goes without --games" corpus --games --port 1 --out x.games many
expect 2 "--stored goes with --games" corpus --stored --out x.games many

# ---- Ctrl-C: thousands of games, of which some are whole when the first file has got its name ----

i=0
mkdir lots
while [ $i -lt 12 ]; do
  expect 0 frames drill --frames 20000 --seed $i --out lots/$i.slp
  i=$((i + 1))
done
# a shell starts what runs beside it deaf to Ctrl-C
start() {
  python3 -c '
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])' "$exphil" "$@" >out 2>err </dev/null &
  run=$!
}
start corpus --games $stored --shard-size 1 --threads 1 --out stopped lots
until [ "$(whole stopped 2>err2)" -gt 0 ] || ! kill -0 $run 2>/dev/null; do :; done
kill -INT $run 2>/dev/null
wait $run
got=$?
games=$(whole stopped)
if [ "$got" -eq 0 ]; then
  echo "SKIPPED: Ctrl-C, since the program was done before it came"
else
  [ "$got" -eq 130 ] || { complain "Ctrl-C ended with $got"; cat err; }
  grep -q "^exphil: stopped after [0-9]* of 12 files; stopped holds whole games" err || complain "Ctrl-C says $(cat err)"
  [ "$games" -lt 12 ] || complain "nothing was left to do"
  [ "$(names stopped | wc -l)" -eq "$games" ] || complain "a temporary stayed: $(names stopped)"
fi
expect 0 "whole, $games game" corpus verify stopped
expect 0 "stopped: 12 games" corpus --games $stored --shard-size 1 --out stopped lots
row "duplicates" "$games"

[ "$failed" -eq 0 ] && echo "$checks runs of the program"
exit "$failed"
