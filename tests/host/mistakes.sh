#!/bin/sh
# What a new user gets wrong with the exphil program: each mistake is named before time or files are lost. Also what is
# hard to see from outside: weights to start from, the two agreements of play, flat curves, Ctrl-C.
#   mistakes.sh <exphil>
# shellcheck disable=SC2086
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
small="--port 1 --blocks gru --hidden 8"

expect 0 "300 frames of play after a countdown of 123" drill --out a.slp --frames 300
expect 0 "300 frames of play after a countdown of 123" drill --out b.slp --frames 300 --seed 2
expect 0 "behind a countdown of 123" drill --help
mkdir both empty
cp a.slp b.slp both

# the output is looked at before the data
expect 1 "No such file or directory" train $small --out none/x a.slp
expect 1 "that is a folder" train $small --out both a.slp
touch p
expect 1 "there is no checkpoint p.optimizer beside p: move p away" train $small --resume --out p a.slp
rm p
grep -q "frames in" err && complain "the data were read before the output was looked at"

# nor after the run: names that no file can have, and folders that take none
long=$(printf '%0245d' 0)
takes_none=
[ -e /proc/self ] && takes_none=/proc/x
for out in "" $long none/x $takes_none; do
  for command in "train $small" corpus "quantize p"; do
    case $command in quantize*) data=; touch p ;; *) data=a.slp ;; esac
    checks=$((checks + 1))
    # shellcheck disable=SC2094 # $out is an argument and not the file out
    "$exphil" $command --out "$out" $data >out 2>err </dev/null
    [ $? -eq 1 ] && grep -q "^exphil: --out ${out:-\"\"}: " err || complain "$command --out '$out': $(cat err)"
    grep -q "frames in" err && complain "$command: the data were read before --out '$out' was looked at"
  done
done
rm p
expect 1 '--out "": the name is empty' drill --out ""
expect 1 '--log "": the name is empty' train $small --log "" --out p a.slp
expect 1 "--log $long$long: no file can be made" train $small --log $long$long --out p a.slp
expect 0 "60 frames of play" drill --out "$long" --frames 60
rm "$long"

# nor are data read for what no model or trainer can be
for option in "--blocks foo" "--blocks gru*" "--precision bf16" "--mirror 0.5 --codec exphil81-floor"; do
  "$exphil" train --port 1 $option --out p a.slp >out 2>err && complain "train $option ended well"
  grep -q "frames in" err && complain "the data were read before $option was looked at"
done
expect 1 'blocks, column 1: "foo" is no block' train --blocks foo --out p a.slp
expect 1 "precision bf16 is for CUDA devices" train --precision bf16 --out p a.slp
expect 1 "codec exphil81-floor has no mirror" train --mirror 0.5 --codec exphil81-floor --out p a.slp

# a network that there cannot be is told by the options that do not go together, in a configuration, too
for option in "--head-units 4" "--head-activation relu" "--head-last" "--no-head-trunk"; do
  expect 2 "${option% *} is for --head-layers N" train $small $option --updates 1 --out none/x none.slp
done
expect 2 "--head-activation wants silu, relu or gelu_tanh, not tanh" train $small --head-layers 1 --head-activation tanh --out v a.slp
expect 2 "--no-previous-action and --head-last: there are no past actions" \
  train $small --head-layers 1 --head-last --no-previous-action --out v a.slp
expect 2 "--head-layers wants 1 to 4, not 5" train $small --head-layers 5 --out v a.slp
expect 2 "--norm-epsilon wants 1e-12 to 0.1, not 0" train $small --norm-epsilon 0 --out v a.slp
expect 1 "--input-width is 9 and hidden 8: block 0, gru, needs hidden" train $small --input-width 9 --out v a.slp
expect 2 "--head-last is for --head-layers N" learn --world cartpole --head-last --out v
expect 2 "--no-final-norm and --init: the weights say that already" learn --world cartpole --init v --no-final-norm --out w
expect 1 "--input-width is 9 and hidden 64: none of" learn --world cartpole --blocks norm --input-width 9 --out v

# words that are no choice are refused before anything is looked at, as usage
for option in "--activations fp8" "--fake-quantize int4" "--mode x" "--heads x" "--schedule x" "--split x"; do
  expect 2 "not ${option#* }" train $small $option --updates 1 --out none/x none.slp
done
expect 2 "--fake-quantize wants int8 or bf16, not int4" train $small --fake-quantize int4 --out v a.slp
expect 2 "--schedule wants constant, cosine or restarts" train $small --schedule x --out v a.slp
expect 2 "--shards wants a power of two, not 3" train $small --shards 3 --out v a.slp
expect 2 "--shards 4 does not divide --batch 6" train $small --shards 4 --batch 6 --out v a.slp
expect 2 "--shards and --accumulate" train $small --shards 2 --accumulate 2 --out v a.slp

# numbers out of range too, all of them: none is cut to 32 bits
for option in "--rate nan" "--rate 0" "--batch 4097" "--batch 0" "--segment -5" "--log-every -1" "--eval-every -1" \
  "--save-every -1" "--delay 4294967297" "--delay -4294967295" "--threads 4294967297" "--hidden 4294967297" \
  "--port 4294967297" "--opponent 5" "--first 4294967297" "--last -4294967295" "--time 65537" "--held-out 1" \
  "--ema nan" "--decay nan" "--clip inf" "--smoothing 1" "--focal -1" "--low-ratio 2" "--button-weight 0" \
  "--checkpoint-blocks 1001" "--accumulate 1000001" "--shards 1025" "--updates 0" "--epochs 0" "--stride 0" "--warmup -1" \
  "--shuffle-frames 1023" "--shuffle-frames 4294967296" "--mirror 1.5" "--mirror -0.5" "--mirror nan" \
  "--restart 0" "--window 0" "--head-width 0" "--attention-window 0"; do
  expect 2 "${option% *} wants " train $option --out none/x none.slp
  grep -q " wants -*[0-9].*, not ${option#* }$" err || complain "train $option: the range is not told: $(cat err)"
done
for number in ten "" 1.5 0x; do expect 2 "--updates wants a whole number, not $number" train --updates "$number" none.slp; done
for number in x "" 1,5; do expect 2 "--rate wants a number, not $number" train --rate "$number" none.slp; done
expect 2 "--updates wants a whole number" train --updates
expect 2 "--updates wants 1 to 1000000000, not -99999999999999999999" train --updates -99999999999999999999 none.slp
expect 2 "--seed wants -9.223372037e+18 to" train --seed 9223372036854775808 none.slp
for command in quantize eval; do
  expect 2 "--threads wants 0 to 1024, not 4294967297" $command --threads 4294967297 --out none/x none
done
expect 2 "--batch wants 1 to 4096, not 4097" eval --batch 4097 none none.slp
expect 2 "--port wants 1 to 4, not 4294967297" play --port 4294967297 none none.slp
expect 2 "--opponent wants 1 to 4, not -1" play --opponent -1 none none.slp
expect 2 "--smooth wants 0 to 1000000, not -5" plot --smooth -5 none
expect 2 "--rate times --decay is above 1" train --rate 2 --decay 1 --out none/x none.slp
expect 2 "--own-past-ramp wants --own-past P" train --own-past-ramp 5 --out none/x none.slp
expect 2 "there are no past actions" train --no-previous-action --drop-past 0.5 --out none/x none.slp
expect 2 "--drop-past wants 0 to 1, not 1.5" train --drop-past 1.5 --out none/x none.slp
expect 2 "--clip wants a norm above 0" train --clip 0 --out none/x none.slp
expect 2 "--warmup wants fewer" train --updates 5 --warmup 5 --out none/x none.slp
for option in "--stride 2" "--shuffle-frames 65536" --last-only "--window 9"; do
  expect 2 "${option% *} is for --mode window" train $option --out none/x none.slp
done
for option in "--segment 60" "--time 9"; do
  expect 2 "${option% *} is for --mode carry" train --mode window $option --out none/x none.slp
done
expect 2 "wants --restart N" train --schedule restarts --out none/x none.slp

# little data: at least 300 updates, as many lanes as the data fill
expect 0 "300 updates, 300.0 passes over 300 frames, 5 sequences" train $small --out p --log log a.slp
expect 0 "do not fill a batch" train $small --updates 1 --batch 16 --out q a.slp
expect 0 "it knows less than how frequent actions are" eval q --port 1 a.slp
grep -q "copies its past" out && complain "one update is said to copy"
grep -q "trained on port" out err && complain "eval --port 1 tells of other ports"
expect 0 "trained on port 1; these scores are of ports 1 and 2: --port 1" eval q a.slp
expect 0 '"frames"' eval q --json a.slp
grep -q "trained on port" out err && complain "eval --json tells of ports"
expect 0 "1 update" train --blocks gru --hidden 8 --updates 1 --batch 16 --out sides a.slp
expect 0 "exact" eval sides a.slp
grep -q "trained on port" out err && complain "a policy of both ports is told of others"
expect 0 "it knows less than how frequent actions are" eval q --port 1 --alone 0 a.slp
expect 0 "1 update" train $small --no-previous-action --updates 1 --batch 16 --out blind a.slp
grep -q "with its own decisions" out && complain "a policy without past actions is scored alone"
expect 0 "Verdict: one class only" eval q --port 2 a.slp
grep -qE '^c_x +[0-9.]+% +[0-9.]+% +- ' out || complain "change accuracy of a head that never changes is a number"

# what is there stays there
cp p before
expect 1 "--force replaces it" train $small --updates 1 --out p a.slp
grep -q -- --resume err || complain "--resume is not named"
cmp -s p before || complain "weights were replaced unasked"
expect 0 ", 1 update" train $small --updates 1 --force --out q a.slp
cp log before
expect 1 "log is there already" train $small --updates 1 --out r --log log a.slp
expect 1 "a.slp is there already: --force replaces it" drill --out a.slp --frames 300
expect 1 "p is there already: --force replaces it" corpus --rows --port 1 --out p a.slp
expect 1 "p is there already: --force replaces it" plot log --out p
expect 1 "p is there already: --force replaces it" slp dump a.slp --what state --slot P1 --out p
cmp -s log before || complain "a log was replaced unasked"
cp a.slp there.slp
expect 0 "300 frames of play after a countdown of 123" drill --force --out there.slp --frames 300 --seed 7
cmp -s a.slp there.slp && complain "drill --force replaced nothing"
expect 0 "300 frames, 1 episode, 1 game;" corpus --rows --force --port 1 --out there.slp a.slp
expect 0 "corpus of 300 frames, 1 episode, 1 game" info there.slp
cp there.slp ./-dashed
expect 0 "corpus of 300 frames" info -- -dashed
"$exphil" slp dump a.slp --what state --slot P1 --out there.slp --force || complain "slp dump --force failed"
expect 0 "there.svg" plot log --out there.svg
expect 0 "there.svg" plot log --out there.svg

# nothing that is read is written over, by whatever name it goes, nor one output over the other: force is no excuse
expect 0 "300 frames" corpus --rows --port 1 --out needed a.slp
mkdir needs
cp a.slp needs/1.slp
cp p weights.optimizer
ln -s needed soft
ln needed hard
cp needed before
expect 1 "--out soft: that is a link" train $small --updates 1 --force --out soft a.slp
for name in needed ./needed soft hard; do
  [ $name = soft ] || expect 1 "would write over needed" train $small --updates 1 --force --out $name needed
  expect 1 "would write over needed" train $small --updates 1 --force --log $name --out v needed
  [ $name = soft ] || expect 1 "would write over needed" quantize --force --out $name p needed
done
cmp -s needed before || complain "a corpus that was read was written over"
for rows in --rows ""; do
  expect 1 "would write over a.slp" corpus $rows --force --out a.slp a.slp
  expect 1 "would write over needs/1.slp" corpus $rows --force --out ./needs/1.slp needs
done
expect 1 "would write over a.slp" corpus select --force --out a.slp a.slp
expect 1 "would write over a.slp" slp dump a.slp --what state --slot P1 --force --out ./a.slp
expect 1 "would write over log" plot --force --out log log
expect 1 "would write over p" train --init p --updates 1 --force --out p a.slp
expect 1 "would write over p" train --init p --updates 1 --force --log p --out v a.slp
expect 1 "would write over weights.optimizer" train --init weights.optimizer --updates 1 --force --out weights a.slp
expect 1 "would write over v" train $small --updates 1 --log ./v --out v a.slp
expect 1 "would write over v.optimizer" train $small --updates 1 --log v.optimizer --out v a.slp
[ -e v ] && complain "a refused command wrote a file"
"$exphil" drill --out there.slp --frames 300 --force >out
cmp -s a.slp there.slp && cmp -s a.slp needs/1.slp || complain "a replay that was read was written over"

# pipes and devices are refused, and never waited for
mkfifo pipe
for file in pipe /dev/null; do
  for command in "info $file" "eval $file a.slp" "eval p $file" "play $file a.slp" "play p $file" "plot $file" \
    "train --out v $file" "train --init $file --out v a.slp" "corpus --out v $file" "drill $file" \
    "quantize --out v $file" "quantize --out v p $file" "slp verify $file"; do
    expect 1 "neither a regular file nor a folder" $command
  done
  expect 1 "could not size up" slp info $file
  expect 1 "no regular file" train --out $file a.slp
  expect 1 "no regular file" plot log --out $file
done

# what does not arrive is no success
if [ -e /dev/full ]; then
  for command in --version --help "info p" "slp info a.slp" "quantize --json --out full p" "eval p a.slp" "play p a.slp" \
    "plot log --text" "drill p --frames 60" "train $small --updates 1 --quiet --out full --force a.slp"; do
    checks=$((checks + 1))
    "$exphil" $command >/dev/full 2>err </dev/null
    got=$?
    [ "$got" -eq 1 ] || complain "$command with a full stdout ended with $got"
    grep -q "the output could not be written in full" err || complain "$command with a full stdout says: $(cat err)"
  done
  "$exphil" info p --nonsense >/dev/full 2>err
  [ $? -eq 2 ] || complain "a full stdout changes the status of wrong usage"
  "$exphil" train $small --updates 1 --quiet --out full --force --log /dev/stderr a.slp >out 2>/dev/full
  [ $? -eq 1 ] || complain "a full log goes unnoticed"
fi

# nor is what goes nowhere; and the results do not go into a file that took the place of a closed stdout
checks=$((checks + 1))
"$exphil" train $small --updates 1 --quiet --out full --force --log closed a.slp >&- 2>err
[ $? -eq 1 ] || complain "a closed stdout goes unnoticed"
grep -qv '^{.*}$' closed && complain "results went into the log: $(grep -v '^{' closed)"

# what a checkpoint does not allow is said in the words of the options, with a way on
expect 0 "the trainer took" train $small --updates 4 --out run a.slp
expect 1 "--init run --out OTHER" train $small --resume --out run a.slp
expect 1 "--updates: the checkpoint was made with 4, this run has 300" train $small --resume --out run a.slp
expect 1 "--updates: 3 updates are fewer than the 4 that the run has made" train $small --updates 3 --resume --out run a.slp
expect 0 "the run has ended: 4 of 4 updates are made" train $small --updates 4 --resume --out run a.slp
expect 1 "--schedule: the checkpoint was made with cosine, this run has constant" \
  train $small --updates 4 --schedule constant --resume --out run a.slp
# all that differs is named at once, and nothing that follows from it; where the message is too short, without values
expect 1 "--rate: the checkpoint was made with 0.001, this run has 0.01" \
  train $small --updates 4 --rate 0.01 --seed 4 --focal 1 --resume --out run a.slp
grep -q "^exphil: --seed: the checkpoint was made with 0, this run has 4$" err || complain "--seed is not named: $(cat err)"
grep -q "another choice of --smoothing" err || complain "--focal is not named: $(cat err)"
[ "$(grep -c "^exphil:" err)" -eq 4 ] || complain "a checkpoint with three differences says: $(cat err)"
expect 1 "--hidden: the checkpoint was made with 8, this run has 9" train --port 1 --blocks gru --hidden 9 --updates 6 \
  --rate 0.01 --batch 2 --focal 1 --delay 2 --seed 3 --clip 2 --ema 0.5 --decay 0.3 --resume --out run a.slp
for option in rate batch delay seed clip ema decay; do
  grep -q -- "^exphil: --$option: the checkpoint was made with " err || complain "--$option is not named: $(cat err)"
done
grep -qE "more settings|differs too" err && complain "not all is named: $(cat err)"
expect 1 "made with another choice of --smoothing, --focal or --button-weight" \
  train $small --updates 4 --focal 1 --resume --out run a.slp
expect 1 "made with another choice of --blocks, --heads, --attention-window or another option of the model" \
  train $small --updates 4 --head-layers 1 --resume --out run a.slp
expect 1 "made with another choice of --blocks, --heads, --attention-window or another option of the model" \
  train $small --updates 4 --norm-epsilon 1e-6 --resume --out run a.slp
for option in "--rate 0.01" "--warmup 2" "--accumulate 2" "--batch 2" "--clip 3" "--ema 0.5" "--seed 4" "--segment 50" \
  "--low-ratio 0.5" "--decay 0.5" "--delay 3" "--hidden 9" "--mirror 0.25"; do
  checks=$((checks + 1))
  "$exphil" train $small --updates 4 $option --resume --out run a.slp >out 2>err
  [ $? -eq 1 ] || complain "a checkpoint is gone on with $option"
  grep -qE -- "^exphil: ${option% *}: the checkpoint was made with [0-9.]+, this run has ${option#* }\$" err ||
    complain "$option is not named: $(tail -n 2 err)"
done
expect 1 "--fake-quantize: the checkpoint was made with off, this run has int8" \
  train $small --updates 4 --fake-quantize int8 --resume --out run a.slp
expect 1 "--activations: the checkpoint was made with f32, this run has bf16" \
  train $small --updates 4 --activations bf16 --resume --out run a.slp
expect 0 "mirrored: gru" train $small --updates 4 --mirror 1 --layout exphil288 --out mirrored a.slp b.slp
expect 1 "--mirror: the checkpoint was made with 1, this run has 0.5" \
  train $small --updates 4 --layout exphil288 --resume --out mirrored a.slp b.slp
# half of the games are, where nobody says and they can be
expect 0 ", 0.5 of the games mirrored" train $small --updates 1 --force --out chosen a.slp
grep -q '"mirror": 0.5' chosen.run.json || complain "not mirrored: $(cat chosen.run.json)"
expect 0 "sequences at a time" train $small --updates 1 --force --codec exphil81-floor --out chosen a.slp
grep -q mirrored err && complain "mirrored without a mirror: $(cat err)"
grep -q '"mirror": 0.0' chosen.run.json || complain "mirrored: $(cat chosen.run.json)"
expect 0 "on: gru" train --port 1 --init run --updates 2 --out on a.slp
expect 0 '"trainer_bytes":' train --port 1 --init run --updates 2 --force --json --out on a.slp

# the fewer blocks at a time, the less memory; as many as there are save nothing
took() {
  "$exphil" train --port 1 --blocks "gru*4" --hidden 8 --updates 1 --force --json --quiet --checkpoint-blocks $1 --out took a.slp |
    sed 's/.*"trainer_bytes":\([0-9]*\).*/\1/'
}
all=$(took 0) one=$(took 1) two=$(took 2) four=$(took 4)
[ "$one" -lt "$two" ] && [ "$two" -lt "$all" ] && [ "$four" -eq "$all" ] ||
  complain "--checkpoint-blocks 1, 2, 4 and none took $one, $two, $four, $all bytes"

# tables of conditions: the line and the column that are wrong
table() { # <status> <words> <the table, with \n>
  # shellcheck disable=SC2059
  printf "$3" >table.csv
  expect "$1" "$2" train $small --conditions table.csv --updates 1 --force --out told a.slp
}
table 1 "table.csv has no lines" ""
table 1 "table.csv:1: the first line must be file,port,NAME" "file,player\na.slp,1\n"
table 1 "table.csv:1: names of conditions are" "file,port,Player\na.slp,1,1\n"
table 1 "table.csv:1: two columns have the same name" "file,port,a,a\na.slp,1,1,1\n"
table 1 "table.csv:3: column 2 (port): must be 1 to 4, or 0 for all ports" "file,port,a\na.slp,1,1\nb.slp,5,1\n"
table 1 "table.csv:2: column 3 (a): must be a whole number from 0 to 65535, or empty" "file,port,a\na.slp,1,65536\n"
table 1 "table.csv:2: it has not as many columns as the first line" "file,port,a\na.slp,1\n"
table 1 "table.csv:2: column 1 (file): it is empty" "file,port,a\n,1,1\n"
table 1 "table.csv:2: a quote is not closed" "file,port,a\n\"a.slp,1,1\n"
table 1 "table.csv: lines 2 and 4 are of the same file and port" "file,port,a\na.slp,1,1\nb.slp,1,1\na.slp,1,2\n"
table 1 "column 3 (a) has no value above 0" "file,port,a\na.slp,1,0\n"
table 1 "no line of table.csv is of a replay that was taken" "file,port,a\nz.slp,1,1\n"
table 0 "1 of 2 lines are of replays that were not given or taken" "file,port,a,b\r\n\"a.slp\",0,3,\r\nz.slp,1,,2\r\n"
expect 1 "none.csv: No such file" train $small --conditions none.csv --updates 1 --out fresh a.slp
expect 1 "--out table.csv would write over table.csv" train $small --conditions table.csv --force --out table.csv a.slp
expect 2 "--condition-mask is for --conditions" train --condition-mask 0.5 --out none/x none.slp
expect 2 "--delay wants 0 to 64, or up to 16 such numbers that ascend, as 0,2,4, not 2,2" train --delay 2,2 --out none/x none.slp
expect 0 "is told a=0..3, b=0..2" info told
expect 2 "--play-as wants a=0..3, b=0..2, not a=4" play --play-as a=4 told a.slp
expect 2 "--play-as wants a=0..3, b=0..2, not b=1,c=1" eval --play-as b=1,c=1 told a.slp
expect 2 "--conditions and --play-as" eval --conditions table.csv --play-as a=1 told a.slp
expect 2 "--play-as: this policy has no conditions" eval --play-as a=1 run a.slp
expect 0 "frames" eval --port 1 --conditions table.csv told a.slp
expect 1 "has a, which the weights of --init do not know" train --init run --conditions table.csv --updates 1 --out other a.slp
expect 1 "the dataset has no values of condition a" train --init told --port 1 --updates 1 --out other a.slp
expect 0 "lags" train $small --delay 0,2 --updates 1 --out lags a.slp
expect 0 "one policy for the delays 0, 2" info lags
for command in "play lags a.slp" "drill lags"; do
  expect 2 "this policy wants --delay 0 or 2" $command
done
for command in "play --delay 1 lags a.slp" "drill --delay 1 lags" "eval --delay 1 lags a.slp"; do
  expect 2 "this policy wants --delay 0 or 2, not 1" $command
done

# scoring some games of many
for seed in 3 4 5; do expect 0 "300 frames of play after a countdown of 123" drill --out both/$seed.slp --frames 300 --seed $seed; done
expect 0 "the training data: 2 of 5 games, 600 frames, are scored" \
  train $small --updates 1 --score-frames 600 --force --out few both
expect 0 "what is held out: 1 of 3 games" train $small --updates 1 --held-out 0.6 --score-frames 1 --force --out few both
expect 0 '"frames":1500' train $small --updates 1 --score-frames 0 --force --json --out few both
rm both/[345].slp

# tables of weights: the line and the column that are wrong
weights() { # <status> <words> <the lines, with \n> [<option>]...
  wanted=$1 words=$2
  # shellcheck disable=SC2059
  printf "$3" >table.csv
  shift 3
  expect "$wanted" "$words" train $small --frame-weights table.csv "$@" --updates 1 --force --out weighed a.slp
}
head="file,port,first,last,weight\n"
weights 1 "table.csv has no lines" ""
weights 1 "table.csv has no lines" "$head"
weights 1 "table.csv:1: the first line must be file,port,first,last,weight" "file,port,weight\na.slp,1,1\n"
weights 1 "table.csv:3: column 2 (port): must be 1 to 4, or 0 for all ports" "${head}a.slp,1,,,1\nb.slp,5,,,1\n"
weights 1 "table.csv:2: column 3 (first): must be a game frame" "${head}a.slp,1,1.5,,1\n"
weights 1 "table.csv:2: column 4 (last): must be a game frame" "${head}a.slp,1,,4294967296,1\n"
weights 1 "table.csv:2: column 4 (last): it is before the first" "${head}a.slp,1,9,8,1\n"
weights 1 "table.csv:2: column 5 (weight): must be 0, or a number from 0.000001 to 1000" "${head}a.slp,1,,,1001\n"
weights 1 "table.csv:2: column 5 (weight): must be 0, or" "${head}a.slp,1,,,nan\n"
weights 1 "table.csv:2: column 1 (file): it is empty" "${head},1,,,1\n"
weights 1 "table.csv:2: it has not as many columns as the first line" "${head}a.slp,1,,1\n"
weights 1 "table.csv:2: a quote is not closed" "${head}\"a.slp,1,,,1\n"
weights 1 "no line of table.csv is of a replay that was taken" "${head}z.slp,0,,,1\n"
weights 1 "none of the 300 rows with a target weighs more than 0" "${head}a.slp,1,,,0\n"
weights 0 "1 of 3 lines are of replays that were not given or taken" "${head}\"a.slp\",1,,99,0\r\n\r\nz.slp,0,,,1\r\na.slp,0,0,49,1\r\n"
grep -q "tell as much as 83.3 % of them" err || complain "50 frames of 300 weigh nothing: $(cat err)"
weights 0 '"effective_share":0.8333' "${head}a.slp,1,,49,0\n" --json
weights 0 '"effective_share":0.8333' "${head}a.slp,1,,49,0\na.slp,4,,,9\n" --json
# a replay by the hash of its bytes (XXH64, from the algorithm's description), which works for corpora too
hash=$(python3 -c '
import sys
P = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)
M = 2**64 - 1
data = open(sys.argv[1], "rb").read()
word = lambda at, size: int.from_bytes(data[at : at + size], "little")
turn = lambda x, by: (x << by | x >> 64 - by) & M
mix = lambda lane, x: turn(lane + x * P[1] & M, 31) * P[0] & M
lanes, at = [P[0] + P[1] & M, P[1], 0, -P[0] & M], 0
while len(data) - at >= 32:
    lanes = [mix(lane, word(at + 8 * i, 8)) for i, lane in enumerate(lanes)]
    at += 32
h = sum(turn(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18))) & M
for lane in lanes:
    h = (h ^ mix(0, lane)) * P[0] + P[3] & M
h = h + len(data) & M
while len(data) - at >= 8:
    h, at = turn(h ^ mix(0, word(at, 8)), 27) * P[0] + P[3] & M, at + 8
if len(data) - at >= 4:
    h, at = turn(h ^ word(at, 4) * P[0] & M, 23) * P[1] + P[2] & M, at + 4
while at < len(data):
    h, at = turn(h ^ data[at] * P[4] & M, 11) * P[0] & M, at + 1
h = (h ^ h >> 33) * P[1] & M
h = (h ^ h >> 29) * P[2] & M
print("%016x" % (h ^ h >> 32))
' a.slp)
weights 0 '"effective_share":0.8333' "$head$hash,1,,49,0\n" --json
weights 0 '"effective_share":0.8333' "$head$hash,1,,49,1\na.slp,1,,49,0\n$hash,1,20,20,0\n" --json
weights 1 "no line of table.csv is of a replay that was taken" "${head}0123456789abcdef,1,,49,0\n"
expect 0 "300 frames" corpus --rows --port 1 --force --out weighed.corpus a.slp
{ printf '%s' "$head" | sed 's/\\n/\n/'; echo "$hash,1,,49,0"; } >table.csv
expect 0 '"effective_share":0.8333' \
  train --blocks gru --hidden 8 --frame-weights table.csv --updates 1 --force --json --out weighed weighed.corpus
expect 1 "none.csv: No such file" train $small --frame-weights none.csv --updates 1 --out fresh a.slp
expect 1 "--out table.csv would write over table.csv" train $small --frame-weights table.csv --force --out table.csv a.slp
expect 2 "--balance-action wants 0 to 1, not 1.5" train --balance-action 1.5 --out none/x none.slp
{ printf '%s' "$head" | sed 's/\\n/\n/'; echo "a.slp,1,,49,0"; } >table.csv
expect 0 "the trainer took" train $small --frame-weights table.csv --balance-change 0.5 --updates 2 --force --out weighed a.slp
expect 0 "weighed: gru" train $small --frame-weights table.csv --balance-change 0.5 --updates 2 --resume --out weighed a.slp
expect 1 "the checkpoint was made with another choice of --frame-weights" \
  train $small --balance-change 0.5 --updates 2 --resume --out weighed a.slp
expect 1 "--balance-change: the checkpoint was made with 0.5, this run has 0" \
  train $small --frame-weights table.csv --updates 2 --resume --out weighed a.slp

# weights to start from say what the model and the data are
for option in "--hidden 8" "--blocks gru" "--heads independent" "--delay 0" "--mode carry" "--window 60" \
  "--head-width 8" "--attention-window 9" --no-previous-action "--layout melee2" "--codec exphil81"; do
  expect 2 "${option%% *} and --init" train --init p $option --out r a.slp
done
expect 1 "--out p would write over p" train --init p --resume --out p a.slp
expect 0 "s" train $small --layout exphil288 --codec exphil81-floor --updates 2 --out s a.slp
expect 0 "t" train --init s --port 1 --updates 2 --out t a.slp
expect 0 "observes exphil288, acts in exphil81-floor" info t

# files are known by what is in them
expect 0 "600 frames" corpus --rows --port 1 --out packed both
cp p weights.slp
cp a.slp replay.corpus
echo nothing >nothing.slp
expect 0 "600 frames in 2 episodes" eval weights.slp packed
expect 0 "600 frames in 2 episodes" train --blocks gru --hidden 8 --updates 1 --out u packed
expect 0 "kind" info packed --json
expect 0 "policy of" info weights.slp
expect 0 "final destination" info replay.corpus
expect 1 "this is a replay; eval wants WEIGHTS first" eval a.slp p
expect 1 "this is a replay; WEIGHTS comes first" play a.slp p
expect 1 "this is a corpus" play p packed
expect 1 "these are weights" train --out v p
expect 1 "neither weights, corpus nor replay" train --out v nothing.slp
expect 1 "neither weights, corpus nor replay" info nothing.slp
expect 1 "the weights are p" info p.optimizer
mkdir mixed
cp a.slp mixed/1.slp
cp a.slp mixed/3.slp
echo nothing >mixed/2.slp
expect 0 "altogether 600 frames in 2 episodes of 2 replays; 1 left out" train $small --updates 1 --out mix mixed
grep -qE '^ +1  replay left out: not a replay \(mixed/2.slp\)$' err || complain "who is left out, and why?"
expect 1 "2  replays left out: no human player on port N (mixed/1.slp, mixed/3.slp)" train --port 3 --out v mixed
grep -q EXPHIL_E err && complain "what is left out looks like an error"
expect 0 "Verdict: " train $small --updates 1 --quiet --force --out mix mixed
[ "$(cat err)" = "       1  replay left out: not a replay (mixed/2.slp)
altogether 600 frames in 2 episodes of 2 replays; 1 left out
exphil: warning: 1 replay may show a match that another one shows, and counts again; --duplicates drop takes each match once" ] ||
  complain "--quiet says: $(cat err)"
expect 0 "Verdict: " train $small --updates 1 --quiet --force --out mix both
[ -s err ] && complain "--quiet says: $(cat err)"
expect 1 "3 files: 2 games, 0:10 on the clock, 846 frames" slp info mixed
expect 1 '"readable":false' slp info mixed --json
expect 1 "no .slp and no .games in empty" train --out v empty
expect 1 "no human player plays marth; P1 fox human" train --character marth --out v a.slp
# who is there is said, of replays and of a corpus of them; somebody on another port is no reason to say that nobody is
expect 1 "nobody plays pichu in what was given; people play fox (4)" train --character pichu --out v both
expect 1 "nobody plays pichu in what was given; people play fox (4)" train --character pichu --complete --out v both
expect 1 "no frames were found" train --character fox --port 3 --out v both
grep -q "nobody plays" err && complain "nobody is said to play fox: $(cat err)"
# a file without frames is broken, whoever was to play
mkdir cut
cp a.slp cut
head -c $((0x26 + 1 + 0x2f8)) a.slp >cut/none.slp # up to the end of the game start event
for who in "0 --port 1" "0 --character fox" "1 --character marth"; do
  expect ${who%% *} "left out: the replay has no frames (cut/none.slp)" train ${who#* } --blocks gru --hidden 8 --updates 1 --quiet \
    --force --out from_cut cut
done
expect 2 "unknown option -out: options begin with two dashes" drill -out x
expect 2 "captain_falcon" train --character foxx --out v a.slp
expect 1 "--split time holds out its end" train --held-out 0.2 --port 1 --out v a.slp

# quantise: once, into another file, and only what is good enough
expect 2 "--type wants int8 or bf16, not int4" quantize --type int4 --out q8 p
expect 2 "--out FILE" quantize p
expect 1 "would write over p" quantize --force --out p p
expect 1 "--force replaces it" quantize --out t p
expect 1 "that is a folder; name a file in it" quantize --out both p
expect 2 "0 to 1" quantize --least 99.5 --out q8 p packed
expect 2 "no replays or corpus" quantize --least 0.5 --out q8 p
expect 2 "--batch" quantize --batch -1 --out q8 p packed
expect 0 "not calibrated" quantize --out q8 p
expect 0 "matrices in int8, not compared" info q8
expect 0 "agreement" quantize --force --out q8 p packed
expect 0 "against weights" info q8
expect 0 '"calibration":{"reference"' info q8 --json
expect 0 '"weights":"f32"' info p --json
expect 1 "quantise the model it was made of" quantize --out q88 q8
expect 1 "train the model it was made of" train --init q8 --port 1 --updates 1 --out v a.slp
expect 1 "this is a replay; quantize wants WEIGHTS first" quantize --out v a.slp p
expect 1 "these are weights; WEIGHTS comes first" quantize --out v p p
expect 1 "neither weights, corpus nor replay" quantize --out v nothing.slp
[ -e v ] && complain "a refused quantize wrote a file"

# export: once, into another file, and only what has a form there
expect 2 "--onnx FILE" export p
expect 2 "WEIGHTS, one file" export --onnx v
expect 2 "WEIGHTS, one file" export --onnx v p p
expect 1 "would write over p" export --force --onnx p p
expect 1 "--force replaces it" export --onnx t p
expect 0 "" export --onnx fox.onnx p
for command in "info" "drill" "quantize --out v"; do
  expect 1 "this is an ONNX file of exphil export, for other runtimes; give the weights" $command fox.onnx
done
expect 1 "that is a folder; name a file in it" export --onnx both p
expect 1 "this is a replay; export wants WEIGHTS" export --onnx v a.slp
expect 1 "quantise the model it was made of" export --int8 --onnx v q8
"$exphil" train --port 1 --mode window --blocks gru --hidden 8 --updates 1 --quiet --out windowed a.slp >/dev/null 2>&1
expect 1 "mode window, which has no step of one frame" export --onnx v windowed
[ -e v ] && complain "a refused export wrote a file"

# the drill over a pipe: answers that are none
expect 2 "one of them" drill --pipe p
expect 2 "one of them" drill --pipe --out v.slp
expect 1 "answer to frame -1 did not come" drill --pipe
for answer in "{" "[]" '{"x":1}' '{"buttons":1.5}' '{"main_x":true}' '{"buttons":1,"buttons":2}' '{"main_x":1e999}'; do
  checks=$((checks + 1))
  echo "$answer" | "$exphil" drill --pipe >out 2>err
  [ $? -eq 1 ] && grep -q "answer to frame -1 is no JSON object of buttons" err || complain "$answer: $(cat err)"
done
for answer in '{"buttons":65536}' '{"buttons":-1}'; do
  echo "$answer" | "$exphil" drill --pipe >out 2>err
  grep -q "answer to frame -1 has buttons outside" err || complain "$answer: $(cat err)"
done
for answer in '{"main_x":1.01}' '{"c_y":-1.5}' '{"trigger":-0.1}'; do
  echo "$answer" | "$exphil" drill --pipe >out 2>err
  grep -q "answer to frame -1 has a stick outside" err || complain "$answer: $(cat err)"
done
printf '{}' | "$exphil" drill --pipe >out 2>err
grep -q "is no whole line" err || complain "half a line: $(cat err)"
yes '{}' | "$exphil" drill --pipe --frames 60 >out 2>err
[ "$(grep -c '"frame":' out)" -eq 60 ] && tail -n 1 out | grep -q '^{"frames":60,"hits":0,' || complain "drill --pipe: $(tail -n 1 out)"
grep -q "60 frames alone" err || complain "drill --pipe says $(cat err)"

# play: who is there, and both agreements
expect 1 "there is P1 fox human, P2 fox human" play p a.slp --port 3
expect 1 "no player at --opponent 4" play p a.slp --opponent 4
expect 0 "past actions its own" play p a.slp
grep -q "^in the place of P1 fox, against P2 fox, on final destination$" err || complain "play does not say whom: $(cat err)"
grep -q "past actions as recorded" out || complain "play does not tell the teacher-forced agreement"
expect 0 '"alone_exact_agreement":' play p a.slp --json
expect 0 "latency of a step: p50 <= " play p a.slp
expect 0 "latency of a step: p50 <= " drill p --frames 60

# a policy that repeats its past actions is told from one that decides: three updates teach the first, if anything
expect 0 "" train --port 1 --blocks "attention*2" --hidden 64 --updates 3 --out copies a.slp
expect 0 "copies its past" play copies a.slp
expect 0 "" train --port 1 --blocks "attention*2" --hidden 64 --updates 3 --no-previous-action --out decides a.slp
expect 0 "deadlines missed" play decides a.slp
grep -q "no-previous-action" out && complain "a policy without past actions is said to repeat them"

# what a stream takes: the state is part of a snapshot, and in window mode there is none
expect 0 "of which recurrent state 32" info p
expect 0 '"snapshot_bytes":' info p --json
expect 0 "" train --port 1 --blocks attention --hidden 8 --mode window --window 9 --updates 1 --out windows a.slp
expect 0 "never kept" info windows

# plot: flat curves, shares, unknown fields
for i in 1 2 3; do echo "{\"kind\":\"held_out\",\"update\":$i,\"exact_accuracy\":1,\"loss\":2.5,\"nought\":0}"; done >flat
for field in exact_accuracy loss nought; do
  expect 0 "o   " plot flat --text --field $field
  expect 0 "flat.svg" plot flat --field $field
  grep -q 'points="[0-9]' flat.svg || complain "no line for $field"
  grep -qE 'nan|inf' flat.svg && complain "$field: no numbers in the picture"
done
expect 0 " 1 |o" plot flat --text --field exact_accuracy
expect 0 "exact_accuracy" plot log --text --field exact_accuracy
grep -q '\*' out || complain "the score on the training data is not drawn"
expect 0 "loss (logarithmic, smoothed)" plot log --text
expect 1 "gradient_norm" plot log --text --field nonsense

# plot: labels stand at whole updates, each once
labels() { sed -n 's/^<text class="x" x="\([0-9.]*\)" [^>]*>\([0-9]*\)<.*/\2@\1/p' "$1" | tr '\n' ' '; }
for last in 3 10 300; do
  i=0
  while [ $((i += 1)) -le $last ]; do echo "{\"kind\":\"train\",\"update\":$i,\"loss\":$i}"; done >short
  expect 0 short.svg plot short
  case $last in
    3) places="1@84.0 2@480.0 3@876.0 " ;;
    10) places="2@172.0 4@348.0 6@524.0 8@700.0 10@876.0 " ;;
    300) places="50@213.8 100@346.2 150@478.7 200@611.1 250@743.6 300@876.0 " ;;
  esac
  [ "$(labels short.svg)" = "$places" ] || complain "plot of $last updates: labels at $(labels short.svg)"
done

# plot: what no axis can hold, and what a logarithm cannot show, is left out and said; all else is drawn
point() { echo "{\"kind\":\"train\",\"update\":$1,\"loss\":$2}"; }
{ point 1 2; point 2 -1.7e308; point 3 1.7e308; point 4 3; point 1e300 2; } >far
for how in --linear "--linear --smooth 1" ""; do
  expect 0 "left out: 3 points with numbers beyond 1e+150" plot far --text $how
  expect 0 "left out: 3 points with numbers beyond 1e+150" plot far $how
  grep -qE 'nan|inf' far.svg && complain "plot $how: no numbers in the picture"
done
{ point 1 1e-140; point 2 0; point 3 1e140; point 4 1e-300; } >low
expect 0 "left out: 2 points below 1e-150: the height is logarithmic; see --linear" plot low --smooth 0
grep -qE 'nan|inf' low.svg && complain "plot: no numbers in the picture of a wide logarithm"
grep -q 'points="84.0,418.0 876.0,38.0 "' low.svg || complain "plot: a wide logarithm has other corners"
expect 0 low.svg plot low --linear
grep -q "left out" out err && complain "plot --linear leaves zeros out"
{ point 1 -3; point 2 0; point 3 5; } >signed
expect 0 "loss" plot signed --text --smooth 0
grep -q "logarithmic" out err && complain "plot: a logarithm of what falls below 0"
[ "$(grep -o '\*' out | wc -l)" -eq 3 ] || complain "plot: a point below 0 is not drawn"
point 1e18 2 >far
expect 0 far.svg plot far
grep -qE 'nan|inf' far.svg && complain "plot: no numbers in the picture of one late update"
point 1 1e300 >far
expect 1 "left out: 1 point with numbers beyond" plot far

# Ctrl-C saves, ends with 130 and scores nothing; --resume goes on from there
long="$small --updates 100000 --schedule constant --out w --log w.log"
for more in "" --resume; do
  checks=$((checks + 1))
  # shellcheck disable=SC2002 # it may not be there yet
  before=$(cat w.log 2>/dev/null | wc -l)
  "$exphil" train $long $more a.slp >out 2>err </dev/null &
  run=$!
  tries=0
  # shellcheck disable=SC2002
  while [ "$(cat w.log 2>/dev/null | wc -l)" -le "$before" ] && [ $tries -lt 3000 ]; do sleep 0.1; tries=$((tries + 1)); done
  kill -INT $run
  wait $run
  got=$?
  [ "$got" -eq 130 ] || { complain "Ctrl-C ended with $got"; head -n 5 out err; }
  grep -q "the checkpoint is w.optimizer" err || complain "nobody knows where the checkpoint is"
  [ ! -s out ] && [ -s w ] && [ -s w.optimizer ] || complain "Ctrl-C: a score, or no checkpoint"
done
expect 0 "gru" info w

[ "$failed" -eq 0 ] && echo "$checks runs of the program"
exit "$failed"
