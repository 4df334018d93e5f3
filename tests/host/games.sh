#!/bin/sh
# Corpora of games by the program: folders, lists, archives, merging, duplicates, refusals by their reasons, a second run,
# Ctrl-C, damage, rows of them as data; and a reader that was written from doc/file-format.md alone reads what the library
# wrote, bit for bit.
#   games.sh <exphil> <source folder>
# $stored and $small are words
# shellcheck disable=SC2086
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
expect 0 "19 games, 59 frames" corpus --stored --quiet --out small.games small
same small.games
for seed in 1 2; do expect 0 "frames" drill --frames 600 --seed $seed --out drill$seed.slp; done
expect 0 "1 game, 723 frames" corpus --stored --out drill.games drill1.slp
same drill.games drill1.slp
replays=${EXPHIL_REPLAYS:-$source/../shared/replays}
found=0
for replay in "$replays"/formats/*.slp; do
  [ -e "$replay" ] && [ "$(wc -c <"$replay")" -lt 1000000 ] && [ $found -lt 3 ] || continue
  "$exphil" corpus --stored --force --quiet --out real.games "$replay" >out 2>err || continue
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
if "$exphil" corpus --quiet --out packed.games small drill1.slp >out 2>err; then
  stored=
  [ "$(wc -c <packed.games)" -lt "$(wc -c <drill.games)" ] || complain "compression makes larger"
  expect 0 "20 games, 782 frames" corpus verify packed.games
  expect 2 "--level wants 1 to 19, not 20" corpus --level 20 --out x.games small
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
expect 0 "all/: 3 games" corpus $stored --out all/ --report report.tsv many
row "files read" 6
row "games added" 3
row "  end early" 1
row "duplicates" 1
row "refused" 2
[ "$(cut -f1 report.tsv | sort | uniq -c | tr -s ' \n' ' ')" = " 3 added 1 duplicate 2 refused 1 result " ] || complain "$(cat report.tsv)"
grep -q "^refused	0	many/broken.slp		" report.tsv || complain "no reason in $(cat report.tsv)"
grep -q "^duplicate	0	many/copy.slp		the same file was added" report.tsv || complain "no reason in $(cat report.tsv)"
names all >before
expect 0 "all: 3 games" corpus $stored --out all many
row "games added" 0
row "duplicates" 4
names all | cmp -s - before || complain "a second run changed files"
expect 0 "frames" drill --frames 60 --out many/new.slp
expect 0 "all: 4 games" corpus $stored --out all many
row "games added" 1
[ "$(whole all)" -eq 2 ] || complain "a second file was to come: $(names all)"
expect 0 "pieces: 4 games" corpus $stored --shard-size 1 --out pieces many
[ "$(whole pieces)" -eq 4 ] || complain "a file for each game was to come: $(names pieces)"
for name in pieces/*; do echo "$name" | grep -qE '^pieces/[0-9a-f]{16}\.games$' || complain "a file is called $name"; done
# folders among what is read are the same games; the corpus itself, in what is searched, is passed over
expect 0 "merged.games: 4 games" corpus $stored --out merged.games pieces all
row "duplicates" 4
mkdir -p many/inside
expect 0 "many/inside: 4 games" corpus $stored --out many/inside many
expect 0 "many/inside: 4 games" corpus $stored --out many/inside many
row "files read" 7
rm -r many/inside
mkdir own && cp drill1.slp own
expect 0 "own: 1 game" corpus $stored --out own own
expect 0 "own: 1 game" corpus $stored --out own own
row "files read" 1
row "duplicates" 1
one=$("$exphil" info --json merged.games | sed 's/.*"content_hash":"\([0-9a-f]*\)".*/\1/')
two=$("$exphil" info --json pieces | sed 's/.*"content_hash":"\([0-9a-f]*\)".*/\1/')
[ -n "$one" ] && [ "$one" = "$two" ] || complain "the same games, another content: $one $two"
expect 0 "whole, 4 games" corpus verify pieces

# ---- what is said ----

expect 0 '"stopped":false' corpus $stored --force --json --out merged.games pieces many
python3 -c '
import json
made = json.load(open("out"))
assert [made[name] for name in ("games", "duplicates", "refused", "files")] == [4, 5, 2, 8], made
assert made["total"]["games"] == 4 and sum(made["reasons"].values()) == 2, made' || complain "--json says $(cat out)"
expect 0 "corpus of 4 games" info merged.games
expect 0 "1 file: 4 games" slp info merged.games
[ "$(grep -c "final destination .*merged.games game [0-3]$" out)" -eq 4 ] || complain "not a line a game: $(cat out)"
expect 1 "12 files: 13 games" slp info many merged.games pieces/*
expect 0 '"content_hash"' slp info --json pieces
[ "$(wc -l <out)" -eq 4 ] || complain "not an object a game: $(cat out)"
[ "$(grep -c '"container":"games"' out)" -eq 4 ] || complain "not an object a game: $(cat out)"
expect 0 "merged.games game 2" slp info merged.games --game 2
# a game says of itself what its replay does
expect 0 "drill.games game 0" slp info drill.games --game 0
sed 1d out >page
expect 0 "drill1.slp" slp info drill1.slp
sed 1d out | cmp -s - page || complain "a game and its replay differ: $(cat page out)"
expect 2 "--game goes with one corpus of games" slp info merged.games drill.games --game 2
expect 2 "--game goes with one corpus of games" slp info drill1.slp --game 0
expect 2 "--game goes with a corpus of games" slp dump drill1.slp --what items --game 0
piece=$(find pieces -name '*.games' | head -n 1)
expect 1 "would be one of the files of pieces" slp dump pieces --game 0 --what items --force --out "$piece"
expect 1 "would be one of the files of pieces" train --force --out "$piece" pieces
expect 1 "index is 4; there are 4 games" slp info merged.games --game 4
expect 2 "--game wants a whole number" slp info merged.games --game x
expect 2 "dump wants --game N" slp dump merged.games --what items
expect 2 "keeps the last simulation" slp dump merged.games --game 0 --what items --rollback all
expect 0 "1 game" corpus --rows --port 1 --out rows.corpus drill1.slp
expect 0 "whole, 1 episode" corpus verify rows.corpus
expect 1 "this is a corpus of rows, not of games" corpus --out x.games rows.corpus
expect 1 "this is a corpus of games" play merged.games drill1.slp
expect 1 "corpus verify wants corpora" corpus verify drill1.slp
expect 2 "corpus verify wants a corpus" corpus verify
expect 1 "no file whose name ends in .games" corpus verify empty
expect 1 "no .slp and no .games in empty" corpus $stored --out x.games empty
expect 1 "no game was found in what was given; nothing was written" corpus $stored --out x.games many/junk.slp
[ -e x.games ] && complain "a corpus without games was written"
expect 1 "2 games" corpus $stored --out some.games many/a.slp many/b.slp many/junk.slp
row "refused" 1
expect 1 "some.games is there already: --force replaces it" corpus $stored --out some.games many
expect 1 "would write over some.games" corpus $stored --force --out some.games some.games
expect 1 "File exists" corpus $stored --out some.games/ many
expect 1 "No such file or directory" corpus $stored --out no/such/ many
for option in "--layout melee2" "--codec exphil81" "--character fox" "--port 1" "--first 5" "--least-frames 9" --humans; do
  expect 2 "${option% *} chooses rows: it goes with --rows" corpus $option --out x.games many
done
for option in --stored "--level 3" "--shard-size 1MiB" "--report x"; do
  expect 2 "${option% *} is of corpora of games, and goes without --rows" corpus --rows $option --out x.corpus many
done

# ---- files and lists: one walk for all commands ----

mkdir -p walk/deep walk/odd
cp drill1.slp walk/a.slp
cp drill2.slp walk/deep/b.slp
cp merged.games walk/deep/
cp drill1.slp "walk/odd/line
end.slp"
ln -s nowhere walk/gone.slp
mkfifo walk/pipe.games
expect 0 "walk.games: 4 games" corpus $stored --out walk.games --report walk.tsv walk walk/a.slp ./walk/deep
row "files read" 6
row "games added" 4
row "duplicates" 3
row "refused" 2
row "named twice" 2
for line in "added	723	walk/a.slp		" "refused	0	walk/gone.slp		No such file or directory" \
  "refused	0	walk/pipe.games		this is no regular file" "duplicate	0	walk/deep/b.slp		the same file was added" \
  'duplicate	0	walk/odd/line\nend.slp		the same file was added'; do
  cut -f1-5 walk.tsv | grep -qxF "$line" || complain "no line $line in $(cat walk.tsv)"
done
[ "$(grep -c "	walk/deep	[0-3]	" walk.tsv)" -eq 4 ] || complain "games of a corpus are not told: $(cat walk.tsv)"
find walk -name '*.slp' -print0 | sort -rz >paths0
"$exphil" corpus $stored --out list.games --files-from - --null --exclude 'b*' --json <paths0 >out 2>err ||
  complain "a list: $(cat err)"
python3 -c '
import json
made = json.load(open("out"))
assert [made[name] for name in ("files", "games", "duplicates", "refused", "left_out")] == [3, 1, 1, 1, 1], made
assert made["reasons"] == {"No such file or directory": 1}, made' || complain "a list says $(cat out)"
expect 1 "nothing is left of what was named" corpus $stored --out x.games --exclude '*' walk

# Parts that several processes make: every file is of one of them, wherever it lies, and together they are all.
mkdir shares shares/else
for seed in 1 2 3 4 5 6 7; do "$exphil" drill --frames 30 --seed "$seed" --out "shares/$seed.slp" >/dev/null; done
mv shares/7.slp shares/else
total=0
for part in 0 1 2; do
  expect 0 "of other shares" corpus $stored --out "part$part.games" --share "$part/3" shares
  added=$(sed -n 's/^games added *\([0-9]*\) .*/\1/p' out)
  row "of other shares" $((7 - added))
  total=$((total + added))
done
[ "$total" -eq 7 ] || complain "the parts have $total games of 7"
expect 0 "joined.games: 7 games" corpus $stored --out joined.games part0.games part1.games part2.games
row duplicates 0
for share in 3/3 -1/3 x/3 1 1/ 1/3x 0/65537 ""; do
  expect 2 "--share wants R/P" corpus --out x.games --share "$share" shares
done
expect 2 "--share is of corpora of games, and goes without --rows" corpus --rows --share 0/2 --out x.corpus shares
python3 -c '
import gzip, zipfile
one, two = open("drill1.slp", "rb").read(), open("drill2.slp", "rb").read()
open("one.slp.gz", "wb").write(gzip.compress(one))
with zipfile.ZipFile("z.zip", "w") as z:
    z.writestr("d/one.slp", one)
    z.writestr("two.slp", two)
    z.writestr("bad.slp", b"nothing")
    z.writestr("note.txt", b"nothing")'
if "$exphil" slp info one.slp.gz >out 2>err; then
  expect 0 "zip.games: 2 games" corpus $stored --out zip.games --report zip.tsv z.zip one.slp.gz
  row "files read" 4
  row "duplicates" 1
  grep -q "^refused	0	z.zip:bad.slp		not a replay" zip.tsv || complain "no reason in $(cat zip.tsv)"
  expect 0 "entry.games: 1 game" corpus $stored --out entry.games z.zip:two.slp
  expect 0 "plain.games: 1 game" corpus $stored --out plain.games drill2.slp
  one=$("$exphil" info --json entry.games) two=$("$exphil" info --json plain.games)
  [ "$one" = "$two" ] || complain "a replay out of an archive is another: $one $two"
else
  echo "SKIPPED: archives, since there is no libarchive"
fi

# ---- data ----

small="--blocks gru --hidden 8 --updates 3 --seed 1"
mkdir data && cp drill1.slp drill2.slp data
expect 0 "data.games: 2 games" corpus $stored --out data.games data
expect 0 "data.games: 2400 frames in 4 episodes: 4 of 4 players in 2 games" train $small --out w data.games
# rows are the same, whatever their order: figures of one policy are equal
expect 0 '"frames":2400' eval --json w data.games
cp out on_games
expect 0 '"frames":2400' eval --json w data
python3 -c '
import json, math
def same(a, b, where):
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a: same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b)): same(x, y, f"{where}[{i}]")
    elif isinstance(a, float):
        assert math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-9), (where, a, b)
    else:
        assert a == b, (where, a, b)
same(json.load(open("on_games")), json.load(open("out")), "eval")' || complain "eval of games and of replays differ"
# shards are one corpus; the same batches whatever the number of workers and the memory
expect 0 "2 games" corpus $stored --shard-size 1 --quiet --out shards/ data
expect 0 "shards: 2400 frames in 4 episodes: 4 of 4 players in 2 games" train $small --workers 3 --memory 1GiB --out v shards
cmp -s v w || complain "workers, memory or files change the weights"
expect 1 "memory_bytes" train $small --memory 1KiB --out u data.games
expect 2 "--workers wants 1 to 64, not 65" train $small --workers 65 --out u data.games
expect 1 "4  players not taken: " eval --character marth w data.games
expect 0 "frames 400" eval --first 0 --last 99 w data.games
expect 0 "1 corpus of games" quantize --out q w data.games drill1.slp
expect 0 "exphil: warning: 1 game came more than once" quantize --force --out q w data.games drill1.slp
expect 0 "altogether 4800 frames in 8 episodes of 2 replays and 1 corpus of games" eval w data data.games
# corpora in a folder come beside its replays; who does not want them says so
cp data.games data
expect 0 "exphil: warning: 2 games came more than once" eval w data
expect 0 "altogether 2400 frames in 4 episodes of 2 replays" eval --exclude '*.games' w data
rm data/data.games
# rows of games are rows
expect 0 "rows.games2: 2400 frames, 4 episodes, 2 games" corpus --rows --out rows.games2 data.games
expect 0 "frames 2400" eval w rows.games2
echo data.games >list
expect 0 "data.games: 2400 frames" eval --files-from list w
expect 1 "would write over data.games" corpus --force --out data.games data.games
expect 1 "byte" train $small --out u damaged.games
expect 1 "this is a corpus of games; play wants" play w data.games

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
start corpus $stored --shard-size 1 --threads 1 --out stopped lots
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
expect 0 "stopped: 12 games" corpus $stored --shard-size 1 --out stopped lots
row "duplicates" "$games"
# a selection that was stopped, by SIGTERM this time, leaves nothing
start corpus select $stored --threads 1 --character fox --out selected.games lots
until find "/proc/$run/fd" -lname '*/exphil-* (deleted)' 2>/dev/null | grep -q . || ! kill -0 $run 2>/dev/null; do :; done
kill -TERM $run 2>/dev/null
wait $run
got=$?
[ "$got" -eq 143 ] || [ "$got" -eq 0 ] || complain "a selection after SIGTERM ended with $got: $(cat err)"
[ "$got" -eq 143 ] && [ -n "$(find . -maxdepth 1 -name 'selected.games*')" ] && complain "a stopped selection wrote a corpus"
[ "$got" -eq 143 ] && ! grep -qx "exphil: stopped; nothing was written" err && complain "a stopped selection says $(cat err)"

[ "$failed" -eq 0 ] && echo "$checks runs of the program"
exit "$failed"
