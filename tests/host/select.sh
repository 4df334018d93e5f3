#!/bin/sh
# Selections by the program: which players and games are taken is what exphil_dataset_add_games reports, of a corpus, of the
# replays that it was made of, and of both in train and eval; games come whole; one table, never a line a file.
#   select.sh <exphil> <select_count> <source folder>
# $stored, $small and options are words
# shellcheck disable=SC2086
set -u
exphil=$1
count=$2
source=$3
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
row() { grep -qE "^$1 +$2( |\$)" out || complain "no line \"$1 $2\" in: $(cat out)"; }

mkdir many tmp
export TMPDIR="$work/tmp"
expect 0 "600 frames of play" drill --frames 600 --out short.slp
expect 0 "1800 frames of play" drill --frames 1800 --seed 2 --out long.slp
python3 "$source/tests/host/select_replays.py" many short.slp long.slp || complain "no replays were made"
stored=
"$exphil" corpus --out all.games many >out 2>err || stored=--stored
[ -z "$stored" ] || grep -q "libzstd.so.1" err || complain "no corpus: $(cat err)"
gz=0 # without libarchive what is compressed is refused
if "$exphil" slp info many/packed.slp.gz >out 2>err; then gz=1; else echo "SKIPPED: a compressed replay, since there is no libarchive"; fi

# ---- the table of reading ----

expect 0 "all.games: 11 games" corpus $stored --force --out all.games many
row "files read" 16
row "games added" 11
row "  end early" 2
row "duplicates" $((1 + gz))
row "refused" $((4 - gz))
grep -qE '^ +2  not a replay \(many/noise.slp, many/words.slp\)$' out || complain "no reason with its files: $(cat out)"
[ "$(wc -l <out)" -le 10 ] || complain "more than a table: $(cat out)"
mkdir more
i=0
while [ $((i += 1)) -le 9 ]; do echo "no replay" >more/$i.slp; done
expect 0 "refused" corpus $stored --out more.games more short.slp
grep -qE '^ +9  not a replay \(more/1.slp, more/2.slp, more/3.slp and 6 more\)$' out || complain "not the first of many: $(cat out)"

# ---- who is taken: the library's report, whatever the way ----

small="--blocks gru --hidden 8 --updates 2 --seed 1"
expect 0 "frames" train $small --out w --character fox all.games
players() { cut -f1,3,4 | sed 's/\t$//' | LC_ALL=C sort; }
# compare OPTIONS FIELDS: of exphil_selection; prints nothing
compared=0
compare() {
  options=$1 fields=$2
  compared=$((compared + 1))
  [ $((compared % $(slow 1 6))) -eq 0 ] || return 0
  checks=$((checks + 1))
  "$count" all.games $fields >counted 2>err || complain "select_count $fields: $(cat err)"
  players <counted >wanted
  cut -f4 counted >>reasons
  for from in many all.games; do
    rm -f taken.games
    "$exphil" corpus select $stored --quiet --force --report table.tsv --out taken.games $options $from >out 2>err
    [ $? -le 1 ] || complain "select $options $from: $(cat err)"
    grep '	players	' table.tsv | players | cmp -s - wanted || complain "select $options $from: $(cat table.tsv) instead of $(cat wanted)"
    [ $from = all.games ] || cp out printed
    [ ! -e taken.games ] || mv taken.games "of_$from"
  done
  # the printed table has the same numbers
  while IFS='	' read -r number _ result reason; do
    case $result in
      taken) grep -qE "^  taken +$number\$" printed || complain "$options: taken $number is not in $(cat printed)" ;;
      *) grep -qE "^ +$number  $reason\$" printed || complain "$options: $number $reason is not in $(cat printed)" ;;
    esac
  done <counted
  # train and eval say the same of replays and of the corpus, and have the same rows
  for from in many all.games; do
    "$exphil" eval --json $options w $from >eval_$from 2>err
    got=$?
    [ $got -le 1 ] || complain "eval $options $from ended with $got"
    sed -n 's/^ *\([0-9]*\)  players* not taken: \(.*\)$/\1\trefused\t\2/p' err | LC_ALL=C sort >said
    grep refused wanted | cmp -s - said || complain "eval $options $from says $(cat said) instead of $(cat wanted)"
  done
  cmp -s eval_many eval_all.games || complain "eval $options differs for replays and their corpus"
}
day() { python3 -c 'import datetime, sys; print((datetime.date.fromisoformat(sys.argv[1]) - datetime.date(1970, 1, 1)).days)' "$1"; }

compare "--characters fox" "characters=fox"
compare "--characters Falco,marth --duplicates keep" "characters=falco,marth duplicates=1"
compare "--duplicates drop" ""
compare "--duplicates keep" "duplicates=1"
compare "--stages battlefield" "stages=battlefield"
compare "--stages yoshis_story,8" "stages=8"
compare "--least-frames 1800" "least_frames=1800"
compare "--most-frames 800" "most_frames=800"
compare "--since 2024-03-01" "first_day=$(day 2024-03-01)"
compare "--until 2024-02-29" "last_day=$(day 2024-02-29)"
compare "--since 2024-02-29 --until 2024-12-31" "first_day=$(day 2024-02-29) last_day=$(day 2024-12-31)"
compare "--least-version 3.10" "least_version=0x030A00"
compare "--least-version 3.9.1" "least_version=0x030901"
compare "--teams with" "teams=2"
compare "--teams without" "teams=1"
compare "--items with" "items=2"
compare "--items without" "items=1"
compare "--players 2" "players=2"
compare "--complete" "complete=1"
compare "--humans" "humans=1"
compare "--result won" "result=1"
compare "--result lost --character falco" "result=2 characters=falco"
compare "--least-damage 100" "least_damage=100"
compare "--least-stocks 1" "least_stocks=1"
compare "--self-destructs-below 1" "self_destructs_below=1"
compare "--least-input 0.05" "least_input=0.05"
compare "--opponents marth,falco" "opponents=marth,falco"
compare "--opponent 2 --humans" "opponent_port=2 humans=1"
compare "--port 1 --opponent 2 --duplicates drop" "port=1 opponent_port=2"
compare "--character fox --least-frames 1800 --complete" "characters=fox least_frames=1800 complete=1"
for reason in stage "too short" "too long" "too early" "too late" "recorder version" teams items players incomplete \
  "computer plays" "no human" character port result damage stocks input opponent "opponent port" duplicate unknown; do
  [ "$(slow every some)" = some ] || grep -qx "$reason" reasons || complain "nobody was refused for: $reason"
done
[ -z "$(ls tmp)" ] || complain "temporary files stay: $(ls tmp)"

# ---- which games ----

expect 0 "fox.games: 6 games" corpus select $stored --force --out fox.games --character fox --least-frames 1800 many
row "games read" 11
row "  taken" 8
expect 0 "stage" slp info --json fox.games
python3 -c '
import json
wanted = [(one["stage"], one["characters"]) for one in json.load(open("expected.json")).values() if one["long"] and
          any(c == 2 and t == 0 for c, t in zip(one["characters"], one["types"]))]
games = [json.loads(line) for line in open("out")]
found = [(one["stage"], [p["character"] for p in one["players"]]) for one in games]
for stage, characters in wanted:
    match = [f for f in found if f[0] == stage and f[1] == characters[:len(f[1])]]
    assert match, (stage, characters, found)
    found.remove(match[0])
assert not found and all(one["frames"] == 1923 for one in games), found' || complain "other games were taken: $(cat out)"
# both players of a game are there, and what is learnt from is asked again
expect 0 "fox.games: " eval --character fox w fox.games
grep -qE '^fox.games: [0-9]+ frames in [0-9]+ episodes: 8 of 11 players in 6 games' err || complain "not whole games: $(cat err)"
expect 0 "whole, 6 games" corpus verify fox.games
# several corpora and replays are compared with each other; a folder grows; what is there is not added again
expect 0 "two.games: 6 games" corpus select $stored --out two.games --character fox --least-frames 1800 fox.games all.games many
row "duplicates" $((6 + 11 + 1 + gz))
expect 0 "grown/: 6 games" corpus select $stored --out grown/ --character fox --least-frames 1800 all.games
expect 0 "grown: 6 games" corpus select $stored --out grown --character fox --least-frames 1800 many
row "  there already" 6
expect 0 "grown: 11 games" corpus select $stored --out grown --duplicates keep all.games
expect 0 '"selected":{"players":21,"taken":' corpus select $stored --json --force --out one.games --character fox all.games
python3 -c '
import json
made = json.load(open("out"))
chosen = made["selected"]
assert chosen["taken"] + chosen["refused"] == chosen["players"] and sum(chosen["reasons"].values()) == chosen["refused"], made
assert made["total"]["games"] == chosen["games"] and made["games"] == 11, made' || complain "--json says $(cat out)"

# ---- refusals ----

expect 1 "no game fits; nothing was written" corpus select $stored --out nothing.games --character peach many
[ -e nothing.games ] && complain "a corpus without games was written"
row "  taken" 0
expect 1 "--out grown holds grown, which is read: name another folder" corpus select --out grown --character fox grown
expect 1 "would write over all.games" corpus select --force --out all.games --character fox all.games
expect 2 "corpus select wants --out OUT" corpus select --character fox all.games
expect 2 "corpus select wants replays or corpora of games" corpus select --out x.games
expect 2 "unknown option --first" corpus select --first 5 --out x.games many
TMPDIR=nowhere
expect 1 "no temporary file can be made in nowhere: No such file or directory; TMPDIR names another folder" eval --humans w many
TMPDIR="$work/tmp"
# a disk that is full
for command in "eval w" "corpus select $stored --out full.games"; do
  checks=$((checks + 1))
  (trap '' XFSZ; ulimit -f 4; "$exphil" $command --humans many >out 2>err </dev/null)
  [ $? -eq 1 ] || complain "$command without room for the temporary file ended well"
  grep -qxF "exphil: the temporary file in $work/tmp: File too large" err || complain "$command without room: $(cat err)"
  [ ! -e full.games ] && [ ! -e full.games.exphil-tmp ] || complain "$command without room wrote $(ls full.games*)"
done
# the same options of all, by the same reader
printf '%s\n' "train --out none/x" "eval w" "quantize --out none/x w" "corpus --rows --out none/x" \
  "corpus select --out none/x" | head -n "$(slow 5 1)" >commands
while read -r command; do
  expect 2 "--characters foxx is unknown; known are captain_falcon, donkey_kong" $command --characters foxx many
  expect 2 "--opponents foxx is unknown; known are captain_falcon" $command --opponents fox,foxx many
  expect 2 "--character foxx is unknown; known are captain_falcon" $command --character foxx many
  expect 2 "--stages moon is unknown; known are fountain_of_dreams, pokemon_stadium" $command --stages battlefield,moon many
  expect 2 "--character and --characters: give one of them" $command --character fox --characters falco many
  expect 2 "--port and --opponent are both 1" $command --port 1 --opponent 1 many
  expect 2 "--most-frames 5 is less than --least-frames 6" $command --most-frames 5 --least-frames 6 many
  expect 2 "--until 2024-01-01 is before --since 2024-01-02" $command --since 2024-01-02 --until 2024-01-01 many
  for date in 2023-02-29 2024-13-01 24-01-01 today 1969-12-31 2024-1-1; do
    expect 2 "--since wants a day after 1970-01-01, as 2024-05-31, not $date" $command --since $date many
  done
  for version in 3 3.256 x 3.1.2.3 -1.0; do
    expect 2 "--least-version wants two or three numbers of 0 to 255, as 3.14 or 3.14.0, not $version" \
      $command --least-version $version many
  done
  for word in teams items; do expect 2 "--$word wants without or with, not x" $command --$word x many; done
  expect 2 "--result wants won or lost, not drawn" $command --result drawn many
  expect 2 "--duplicates wants keep or drop, not 1" $command --duplicates 1 many
  for option in "--least-frames -1" "--most-frames 0" "--players 5" "--least-damage -1" "--least-stocks x" \
    "--self-destructs-below 0" "--least-input 1.5"; do
    expect 2 "${option% *} wants " $command $option many
  done
done <commands
expect 2 '--characters names nobody' eval w --characters " , " many
long=$(printf '%0300d' 0)
expect 2 "is unknown" eval w --stages "$long" many
# rows were chosen when they were made
expect 0 "rows.corpus: " corpus --rows --least-frames 1800 --out rows.corpus many
expect 0 "--least-frames does nothing here" eval --least-frames 5 w rows.corpus

# ---- what training says: one table, each reason once, the first files of it ----

expect 0 "altogether" train $small --force --out v --character fox --least-frames 1800 many
again="       1  replay left out: the same game came before (many/copy.slp)"
[ $gz = 0 ] || again="       2  replays left out: the same game came before (many/copy.slp, many/packed.slp.gz)"
for line in "replays: 14400 frames in 8 episodes: 8 of 21 players in 11 games" \
  "       2  replays left out: not a replay (many/noise.slp, many/words.slp)" \
  "$again" \
  "altogether 14400 frames in 8 episodes of 11 replays (2 end early); 5 left out"; do
  grep -qxF "$line" err || complain "no line $line in $(cat err)"
done
[ "$(grep -c "many/" err)" -eq $((4 - gz)) ] || complain "a line a file: $(cat err)"
# a named file must be readable, with filters too; what is told of files is told of those that were taken
expect 1 "neither weights, corpus nor replay" eval --humans w many/01.slp many/words.slp
head -c 20 short.slp >many/head.slp
expect 1 "many/head.slp" eval --humans w many/01.slp many/head.slp
rm many/head.slp
printf 'file,port,rank\n01.slp,1,2\n02.slp,2,1\n07.slp,1,1\n' >table.csv
expect 0 "told" train $small --conditions table.csv --character fox --least-frames 1800 --out told many
grep -qx "table.csv: 1 of 3 lines are of replays that were not given or taken" err ||
  complain "conditions of replays that were selected: $(cat err)"
expect 1 "no line of table.csv is of a replay that was taken" \
  train $small --force --conditions table.csv --humans --out told many/05.slp

# the same weights from the same frames, however the table names the game and whatever it comes from
hash=$("$exphil" slp info --json all.games | python3 -c '
import json, sys
print(next(one["game"]["source_hash"] for one in map(json.loads, sys.stdin) if one["game"]["index"] == 0))')
printf 'file,port,first,last,weight\n01.slp,1,0,899,3\n' >named.csv
printf 'file,port,first,last,weight\n%s,1,0,899,3\n' "$hash" >hashed.csv
fox="--character fox --least-frames 1800"
expect 0 "these frames tell as much as" train $small $fox --frame-weights named.csv --out named many
expect 0 "these frames tell as much as" train $small $fox --frame-weights hashed.csv --out hashed all.games
cmp -s named hashed || complain "weights of frames are others for replays and their corpus"
expect 0 "frames" train $small $fox --out even many
cmp -s named even && complain "weights of frames change nothing"

# ---- without a filter nothing is selected: rows and their order are those of the replays one by one ----

expect 0 "plain.corpus: " corpus --rows --character fox --out plain.corpus many/01.slp many/02.slp many/copy.slp
grep -qE '3 episodes, 2 games' out || complain "a replay that came twice counts once without a filter: $(cat out)"
expect 0 "once.corpus: " corpus --rows --character fox --duplicates drop --out once.corpus many/01.slp many/02.slp many/copy.slp
grep -qE '2 episodes, 2 games' out || complain "--duplicates drop keeps them: $(cat out)"

[ -z "$(ls tmp)" ] || complain "temporary files stay: $(ls tmp)"
[ "$failed" -eq 0 ] && echo "$checks runs of the program"
exit "$failed"
