#!/bin/sh
# exphil launch: how ranks find their place, how they meet, what each end and each signal leads to, what becomes of their
# output, and that nothing of them is left. Ranks are shell scripts.
#   launch.sh <exphil>
# shellcheck disable=SC2016
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
unset CUDA_VISIBLE_DEVICES

# ends STATUS ARGUMENT...: as expect, whatever it says
ends() {
  wanted=$1
  shift
  checks=$((checks + 1))
  "$exphil" "$@" >out 2>err </dev/null
  got=$?
  [ "$got" -eq "$wanted" ] || { complain "$* ended with $got, not $wanted"; head -n 5 out err; }
}
# ranks STATUS TEXT OPTIONS SCRIPT: launch with these options runs this script in each rank
ranks() {
  # shellcheck disable=SC2086
  if [ -n "$2" ]; then expect "$1" "$2" launch $3 -- sh -c "$4"; else ends "$1" launch $3 -- sh -c "$4"; fi
}
# are FILE TEXT: these are its lines, in any order
are() { [ "$(sort "$1")" = "$(printf '%s\n' "$2" | sort)" ] || { complain "$1 has"; head -n 20 "$1"; }; }
# until COMMAND: it comes true; nothing here depends on how long that takes
until_true() { while ! eval "$1"; do sleep 0.01; done; }
gone() { ! kill -0 "$1" 2>/dev/null; }
state() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null; }

# ---- the command line
expect 0 "usage: exphil launch [OPTIONS] -- COMMAND" launch --help
expect 2 "launch wants --ranks N or --gpus LIST" launch -- true
expect 2 "launch wants -- and COMMAND" launch -n 2
expect 2 "launch wants -- and COMMAND" launch -n 2 --
expect 2 "launch wants COMMAND behind --" launch -n 2 true -- true
for number in 0 257 -1; do expect 2 "--ranks wants 1 to 256, not $number" launch -n $number -- true; done
expect 2 "--grace wants 0 to" launch -n 1 --grace -1 -- true
expect 2 "--max-restarts wants" launch -n 1 --max-restarts -1 -- true

# ---- where a rank is
ranks 0 "" "-n 3" 'echo "$EXPHIL_RANK/$EXPHIL_RANKS $EXPHIL_LOCAL_RANK/$EXPHIL_LOCAL_RANKS $RANK/$WORLD_SIZE" \
  "$LOCAL_RANK/$LOCAL_WORLD_SIZE $EXPHIL_RESTART $MASTER_ADDR"'
are out "0/3 0/3 0/3 0/3 0 127.0.0.1
[1] 1/3 1/3 1/3 1/3 0 127.0.0.1
[2] 2/3 2/3 2/3 2/3 0 127.0.0.1"
ranks 0 "" "-n 4" 'echo port "$MASTER_PORT" >&2'
[ "$(sed 's/\[.\] //' err | sort -u | wc -l)" -eq 1 ] && grep -qE '^port [1-9][0-9]{3,4}$' err || complain "MASTER_PORT: $(cat err)"
# those of what launch itself runs in are not those of its ranks
PMI_RANK=7 OMPI_COMM_WORLD_RANK=7 MPI_LOCALRANKID=7 RANK=7 EXPHIL_ID_IN=7 EXPHIL_PROGRESS_OUT=9 \
  "$exphil" launch -n 2 -- sh -c 'echo "${PMI_RANK-no} ${OMPI_COMM_WORLD_RANK-no} ${MPI_LOCALRANKID-no} $RANK"
  [ $RANK = 0 ] && echo "${EXPHIL_ID_IN-no}" || echo "${EXPHIL_PROGRESS_OUT-no}"' >out
are out "no no no 0
no
[1] no no no 1
[1] no"
OMP_NUM_THREADS=5 "$exphil" launch -n 1 -- sh -c 'echo "$OMP_NUM_THREADS"' >out
are out 5

# ---- one GPU a rank
fake() { mkdir -p smi; printf '#!/bin/sh\n%s\n' "$1" >smi/nvidia-smi; chmod +x smi/nvidia-smi; }
shown='echo "$RANK ${CUDA_VISIBLE_DEVICES-unset}"'
gpus() { # CUDA_VISIBLE_DEVICES STATUS TEXT OPTIONS
  before=$exphil exphil=seen visible=$1
  seen() { PATH=$work/smi:$PATH; export PATH; [ "$visible" = - ] || export CUDA_VISIBLE_DEVICES="$visible"; "$before" "$@"; }
  checks=$((checks + 1))
  # shellcheck disable=SC2086
  (seen launch $4 -- sh -c "$shown") >out 2>err </dev/null
  [ $? -eq "$2" ] || { complain "--gpus ($4) does not end with $2"; cat out err; }
  cat out err | grep -qF -- "$3" || { complain "--gpus ($4) does not say $3"; cat out err; }
  exphil=$before
}
fake 'echo "GPU 0: A card (UUID: GPU-1)"; echo "  MIG 1g Device 0: (UUID: MIG-1)"; echo "GPU 1: A card (UUID: GPU-2)"'
gpus - 0 "" "-n 2 --gpus 3,GPU-8a1b"
are out "0 3
[1] 1 GPU-8a1b"
gpus 4 0 "" "-n 2"
are out "0 4
[1] 1 4"
gpus - 0 "" "--gpus all"
are out "0 0
[1] 1 1"
gpus 6,7,5 0 "" "--gpus all"
are out "0 6
[1] 1 7
[2] 2 5"
gpus 6,-1,5 0 "0 6" "--gpus all"
gpus 6,7 2 "--ranks 3: --gpus has 2" "-n 3 --gpus all"
gpus - 2 "--ranks 2: --gpus has 1" "-n 2 --gpus 0"
gpus - 2 '1 is named twice' "-n 2 --gpus 1,1"
for list in "0," x "" -1 "0,GPU"; do gpus - 2 'is no GPU' "-n 1 --gpus=$list"; done
gpus "" 1 '--gpus all: CUDA_VISIBLE_DEVICES is "": that shows none' "--gpus all"
fake 'echo "no devices"'
gpus - 1 "neither nvidia-smi -L nor /proc/driver/nvidia/gpus shows one" "--gpus all"

# ---- streams and descriptors
ranks 0 "" "-n 2" 'cat; echo done'
are out "done
[1] done"
"$exphil" launch -n 1 -- sh -c 'cat; echo done' <&- >out || complain "without standard input"
are out "done"
if [ -d /proc/self/fd ]; then
  # shellcheck disable=SC2012,SC2217
  here=$(ls /proc/self/fd </dev/null | wc -l)
  ranks 0 "" "-n 3" 'echo "$(ls /proc/self/fd | wc -l)"'
  # the pipe of $( ) takes the place of standard output
  are out "$((here + 2))
[1] $((here + 1))
[2] $((here + 1))"
fi

# ---- how they meet
head -c 128 /dev/urandom >id
meet='if [ $RANK = 0 ]; then cat id >/dev/fd/$EXPHIL_ID_OUT; else cat /dev/fd/$EXPHIL_ID_IN >got.$RANK; fi'
ranks 0 "" "-n 4" "$meet"
for rank in 1 2 3; do cmp -s id got.$rank || complain "rank $rank got another id"; done
# though rank 0 still has the descriptor
ranks 0 "" "-n 2" 'rm -f met; [ $RANK = 1 ] || { cat id >/dev/fd/$EXPHIL_ID_OUT; while [ ! -e met ]; do sleep 0.01; done; exit 0; }
cat /dev/fd/$EXPHIL_ID_IN >got.1; touch met'
cmp -s id got.1 || complain "rank 1 got another id"
ranks 0 "[2] nothing" "-n 3" '[ $RANK = 0 ] || { cat /dev/fd/$EXPHIL_ID_IN >none.$RANK; [ -s none.$RANK ] || echo nothing; }'
head -c 5000 /dev/urandom >id
ranks 0 "rank 0 wrote more than 4096 bytes to EXPHIL_ID_OUT: the others get no id" "-n 2" "$meet"
[ -s got.1 ] && complain "rank 1 got a part of an id"
head -c 4096 /dev/urandom >id
ranks 0 "" "-n 3" "$meet"
cmp -s id got.2 || complain "an id of 4096 bytes does not arrive"
ranks 0 "rank 0 wrote again to EXPHIL_ID_OUT: the others get only what it wrote first" "-n 2" \
  'if [ $RANK = 0 ]; then printf one >/dev/fd/$EXPHIL_ID_OUT; while [ ! -e read ]; do sleep 0.01; done; printf two >/dev/fd/$EXPHIL_ID_OUT
  else cat /dev/fd/$EXPHIL_ID_IN; echo; touch read; fi'
are out "[1] one"

# ---- ends
ranks 0 "" "-n 3" 'exit 0'
[ -s err ] && complain "good ends are told: $(cat err)"
wait_for_end='trap "echo asked >>asked; exit 0" TERM; touch ready.$RANK; while :; do sleep 0.01; done'
for status in 1 2 3 127 143; do
  rm -f asked ready.* starts
  ranks $status "rank 1 ended with status $status" "-n 3" "echo \$EXPHIL_RESTART >>starts
    if [ \$RANK = 1 ]; then while [ ! -e ready.0 ] || [ ! -e ready.2 ]; do sleep 0.01; done; exit $status; fi; $wait_for_end"
  are asked "asked
asked"
  are starts "0
0
0"
done
ranks 75 "launch: start 3, at most 3, with 1 rank" "-n 1" 'echo $EXPHIL_RESTART; exit 75'
are out "0
1
2
3"
ranks 137 "rank 0 was ended by signal 9" "-n 1 --max-restarts 1" 'echo $EXPHIL_RESTART; kill -9 $$'
are out "0
1"
grep -q "it was started again 1 times, and is not any more" err || complain "the last start is not told: $(cat err)"
ranks 139 "rank 0 ended with status 139" "-n 1 --max-restarts 1" 'echo $EXPHIL_RESTART; sh -c "kill -SEGV \$\$"; exit $?'
are out "0
1"
ranks 75 "" "-n 1 --max-restarts 0" 'echo $EXPHIL_RESTART; exit 75'
are out 0
ranks 0 "launch: start 1, at most 3, with 2 ranks" "-n 2" '[ $EXPHIL_RESTART = 1 ] || exit 75'
# all are started again, whoever had ended well
ranks 0 "" "-n 2" 'echo "$RANK $EXPHIL_RESTART"; touch whole.$RANK; [ $RANK = 0 ] && exit 0
  while [ ! -e whole.0 ]; do sleep 0.01; done; [ $EXPHIL_RESTART = 1 ] || exit 75'
are out "0 0
0 1
[1] 1 0
[1] 1 1"
# who does not hear, or is stopped
ranks 3 "SIGTERM did not end rank 0: SIGKILL" "-n 2 --grace 0.05" \
  'if [ $RANK = 1 ]; then while [ ! -e deaf ]; do sleep 0.01; done; exit 3; fi; trap "" TERM; touch deaf; while :; do sleep 0.01; done'
ranks 3 "rank 1 ended with status 3" "-n 2 --grace 86400" \
  'if [ $RANK = 1 ]; then while [ ! -e stops ]; do sleep 0.01; done; exit 3; fi; touch stops; kill -STOP $$; sleep 1000'
if [ -d /proc/self ]; then
  ranks 0 "[1] went on" "-n 2" 'if [ $RANK = 1 ]; then echo $$ >pid; kill -STOP $$; echo went on; exit 0; fi
    until [ -s pid ] && [ "$(sed "s/.*) \(.\).*/\1/" /proc/$(cat pid)/stat)" = T ]; do sleep 0.01; done; kill -CONT $(cat pid)'
fi
# nothing is left of them
ranks 0 "" "-n 2" 'sleep 1000 & echo $! >left.$RANK'
for rank in 0 1; do gone "$(cat left.$rank)" || complain "what rank $rank left is there still"; done
ranks 75 "" "-n 2 --max-restarts 0 --grace 0.05" '(trap "" TERM; while :; do sleep 0.01; done) & echo $! >left.$RANK
  while [ ! -s left.0 ] || [ ! -s left.1 ]; do sleep 0.01; done; exit 75'
for rank in 0 1; do gone "$(cat left.$rank)" || complain "what rank $rank left is there still"; done
# what cannot be run
touch no_program
expect 127 "launch: nosuch: No such file or directory" launch -n 3 -- nosuch
expect 126 "launch: ./no_program: Permission denied" launch -n 3 -- ./no_program
grep -q "at most" err && complain "what cannot be run is started again"

# ---- one that fails twice
twice='echo "$EXPHIL_RESTART $RANK/$WORLD_SIZE" >>starts; [ $RANK = 1 ] && exit 75; sleep 1000'
rm -f starts
ranks 75 "rank 1 failed twice without a checkpoint between and is left out: there is one rank fewer" "-n 3" "$twice"
grep -q "start 2, at most 3, with 2 ranks" err || complain "one rank fewer: $(cat err)"
rm -f starts
ranks 75 "start 3, at most 3, with 2 ranks" "-n 2 --keep-ranks" "$twice"
ranks 75 "start 2, at most 3, with 2 ranks" "-n 2" "[ \$RANK = 1 ] || printf x >/dev/fd/\$EXPHIL_PROGRESS_OUT
  touch saved.\$EXPHIL_RESTART.\$RANK; while [ ! -e saved.\$EXPHIL_RESTART.0 ]; do sleep 0.01; done; $twice"
grep -q "left out" err && complain "a checkpoint between does not count: $(cat err)"
rm -f order
ranks 75 "start 3, at most 3, with 2 ranks" "-n 2" '[ $RANK = 0 ] && touch ready.$EXPHIL_RESTART.0
  while [ ! -e ready.$EXPHIL_RESTART.0 ]; do sleep 0.01; done
  [ $RANK = $((EXPHIL_RESTART % 2)) ] && exit 75; sleep 1000'
grep -q "left out" err && complain "ranks that take turns are left out: $(cat err)"
rm -f starts
ranks 75 "rank 1 (GPU 5) failed twice without a checkpoint between and is left out: another GPU takes its place" \
  "-n 2 --gpus 4,5,6 --max-restarts 2" 'echo "$EXPHIL_RESTART $RANK $CUDA_VISIBLE_DEVICES" >>starts; touch began.$EXPHIL_RESTART.$RANK
  while [ ! -e began.$EXPHIL_RESTART.0 ]; do sleep 0.01; done; [ $RANK = 1 ] && exit 75; sleep 1000'
are starts "0 0 4
0 1 5
1 0 4
1 1 5
2 0 4
2 1 6"

# ---- what goes on with what
expect 75 "0: a b" launch -n 1 --max-restarts 1 --restart-arg=--again --restart-arg "c d" -- \
  sh -c 'echo "$EXPHIL_RESTART: $*"; exit 75' sh a b
are out "0: a b
1: a b --again c d"
mkdir bin
printf '#!/bin/sh\necho "$@"\nexit 75\n' >bin/exphil
chmod +x bin/exphil
for words in "train|--out x -- y" "learn|--out x" "train|--resume x" "eval|x"; do
  # shellcheck disable=SC2086
  ends 75 launch -n 1 --max-restarts 1 -- bin/exphil ${words%|*} ${words#*|}
  again=" --resume"
  case $words in *--resume* | eval*) again= ;; esac
  are out "${words%|*} ${words#*|}
${words%|*}$again ${words#*|}"
done
expect 75 "train --again" launch -n 1 --max-restarts 1 --restart-arg=--again -- bin/exphil train
grep -q -- --resume out && complain "--restart-arg does not take the place of --resume"
# so that a run which breaks off half way ends with the bits of one that did not
expect 0 "300 frames of play after a countdown of 123" drill --out a.slp --frames 300
run="train --port 1 --blocks gru --hidden 8 --schedule constant --quiet"
cat >bin/exphil <<END
#!/bin/sh
[ "\$EXPHIL_RESTART" -gt 0 ] && exec "$exphil" "\$@"
"$exphil" "\$@" --updates 10
kill -9 \$\$
END
# shellcheck disable=SC2086
expect 0 "launch: start 1, at most 3, with 1 rank" launch -n 1 -- bin/exphil $run --updates 20 --out broken a.slp
# shellcheck disable=SC2086
ends 0 $run --updates 20 --out straight a.slp
cmp -s straight broken || complain "a run that broke off ends with other weights"

# ---- signals
# begin OPTIONS SCRIPT: launch in the background; its ranks are there when ready.0 and ready.1 are
begin() {
  rm -f ready.* heard.*
  # shellcheck disable=SC2086
  "$exphil" launch -n 2 $1 -- sh -c "$2" >out 2>err </dev/null &
  launch=$!
  until_true '[ -e ready.0 ] && [ -e ready.1 ]'
}
end() { # STATUS WHAT
  checks=$((checks + 1))
  wait $launch
  got=$?
  [ $got -eq "$1" ] || { complain "$2 ends with $got, not $1"; cat out err; }
}
hears='for s in INT TERM HUP; do trap "echo $s >>heard.$RANK; touch end.$RANK" $s; done
  rm -f end.$RANK; touch ready.$RANK; while [ ! -e end.$RANK ]; do sleep 0.01; done'
for signal in INT:130 TERM:143 HUP:129; do
  begin "" "$hears; exit ${signal#*:}"
  kill -"${signal%:*}" $launch
  end "${signal#*:}" "SIG${signal%:*}"
  for rank in 0 1; do [ "$(cat heard.$rank)" = "${signal%:*}" ] || complain "rank $rank heard $(cat heard.$rank)"; done
  grep -q exphil err && complain "an end that was asked for is told: $(cat err)"
done
begin "" "$hears; exit 0"
kill -TERM $launch
end 0 "SIGTERM, and all end well,"
# whatever comes of it, nothing is started again
begin "" "$hears; [ \$RANK = 1 ] && exit 75; exit 143"
kill -TERM $launch
end 75 "SIGTERM, and a rank fails,"
grep -q "at most" err && complain "started again after a signal: $(cat err)"
# by a rank that a shell began, too, which ends before it
rm -f saved.*
begin "" "sh -c 'trap \"sleep 0.1; touch saved.\$RANK; exit 143\" TERM
  touch ready.\$RANK; while :; do sleep 0.01; done'; exit 3"
kill -TERM $launch
end 143 "SIGTERM behind shells"
[ -e saved.0 ] && [ -e saved.1 ] || complain "launch did not wait for what its ranks began"
# a second one
begin "" 'trap "touch heard.$RANK" TERM; trap "" INT; echo $$ >pid.$RANK; touch ready.$RANK; while :; do sleep 0.01; done'
kill -TERM $launch
until_true '[ -e heard.0 ] && [ -e heard.1 ]'
kill -INT $launch
end 143 "a second signal"
for rank in 0 1; do gone "$(cat pid.$rank)" || complain "rank $rank outlived a second signal"; done
# nobody outlives launch, whatever it does with SIGTERM, or whoever began it
begin "--grace 0.05" 'echo $$ >pid.$RANK
  sh -c "trap \"\" TERM; echo \$\$ >inner.\$RANK; touch ready.\$RANK; while :; do sleep 0.01; done"; exit 0'
kill -KILL $launch
wait $launch 2>/dev/null
for file in pid.0 pid.1 inner.0 inner.1; do until_true "gone $(cat $file)"; done
checks=$((checks + 1))
# Ctrl-Z and fg
if [ -d /proc/self ]; then
  begin "" 'echo $$ >pid.$RANK; touch ready.$RANK; while [ ! -e goes_on ]; do sleep 0.01; done'
  kill -TSTP $launch
  # a shell that has just begun a process waits for that one, which is stopped: D
  until_true 'echo "$(state $launch)$(state $(cat pid.0))$(state $(cat pid.1))" | grep -q "^T[TD][TD]$"'
  touch goes_on
  kill -CONT $launch
  end 0 "SIGTSTP and SIGCONT"
fi

# ---- output
space=" "
ranks 0 "" "-n 2" 'printf "one\n\ntwo"; printf "three" >&2'
are out "one

two
[1] one
[1]$space
[1] two"
are err "three
[1] three"
# lines stay whole, whatever the ranks write at the same time, and however
cat >lines.py <<'END'
import os, sys
rank = int(os.environ["RANK"])
for i in range(300):
    for part in ("%d:" % rank, chr(97 + rank) * (rank * 700 % 5000), ":%d\n" % i):
        os.write(1 + i % 2, part.encode())
END
"$exphil" launch -n 8 -- python3 lines.py >both 2>&1 || complain "8 ranks that write"
python3 - <<'END' || complain "lines of 8 ranks are mixed"
import re
seen = {}
for line in open("both").read().split("\n")[:-1]:
    found = re.fullmatch(r"(?:\[(\d+)\] )?(\d+):([a-z]*):(\d+)", line)
    assert found, line[:100]
    rank = int(found[2])
    assert int(found[1] or 0) == rank and found[3] == chr(97 + rank) * (rank * 700 % 5000), line[:100]
    seen.setdefault((rank, int(found[4]) % 2), []).append(int(found[4]))
assert len(seen) == 16 and all(numbers == list(range(odd, 300, 2)) for (rank, odd), numbers in seen.items())
END
# a very long one comes in pieces, and all of it
ranks 0 "" "-n 2" 'head -c 1000000 /dev/zero | tr "\\0" x'
for begin in "" "\[1\] "; do
  # shellcheck disable=SC2016
  [ "$(grep "^${begin}x" out | sed "s/^$begin//" | tr -d '\n' | wc -c)" -eq 1000000 ] || complain "a long line is not whole"
done
[ "$(wc -L <out)" -le 300000 ] && [ "$(wc -l <out)" -le 8 ] || complain "a long line is in $(wc -l <out) pieces"
# who floods, who is silent and who closes keep nobody waiting
ranks 3 "" "-n 4" 'case $RANK in 0) yes ;; 1) exec >&- 2>&-; touch closed; sleep 1000 ;; 2) exec sleep 1000 ;; esac
  while [ ! -e closed ]; do sleep 0.01; done; exit 3'
ranks 0 "" "-n 2" 'exec >&- 2>&-; exit 0'
# nor does a reader who does not read: ranks are ended, and launch waits with what it has to say, until a signal
mkfifo stuck
rm -f pid.*
# shellcheck disable=SC2217
sleep 1000 <stuck &
reader=$!
"$exphil" launch -n 2 --grace 0.05 --max-restarts 0 --log-dir stuck_logs -- sh -c 'echo $$ >pid.$RANK
  [ $RANK = 0 ] && exec yes; while [ "$(wc -c <stuck_logs/rank-0.log)" -lt 200000 ]; do sleep 0.01; done; exit 75' >stuck 2>err &
launch=$!
until_true '[ -s pid.0 ] && [ -s pid.1 ] && gone $(cat pid.0) && gone $(cat pid.1)'
# a first one may come before launch knows that all have ended, then it is that of the ranks
until_true '! kill -TERM $launch 2>/dev/null || [ "$(state $launch)" = Z ]'
end 75 "a reader who does not read"
kill $reader
# nor one that has gone: ranks go on to their end
rm -f whole
(
  "$exphil" launch -n 1 -- sh -c 'i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i + 1)); done; touch whole'
  echo $? >status
) 2>err | head -n 1 >out
[ "$(cat status)" = 1 ] && [ -e whole ] || complain "a reader that has gone: status $(cat status)"
grep -q "the output could not be written in full" err || complain "that output is lost is not told"

# ---- logs
ranks 75 "" "-n 2 --log-dir logs --max-restarts 1" 'echo out $RANK; printf err >&2
  [ $RANK = 1 ] && exit 0; until grep -qs out logs/rank-1.log; do sleep 0.01; done; exit 75'
are logs/rank-0.log "exphil launch: start 0, rank 0 of 2
out 0
err
exphil launch: start 1, rank 0 of 2
out 0
err"
grep -q "^out 1$" logs/rank-1.log || complain "rank-1.log: $(cat logs/rank-1.log)"
ranks 0 "" "-n 1 --log-dir logs" 'echo more'
[ "$(tail -n 2 logs/rank-0.log)" = "exphil launch: start 0, rank 0 of 1
more" ] && [ "$(grep -c out logs/rank-0.log)" -eq 2 ] || complain "a log that was there: $(cat logs/rank-0.log)"
expect 1 "--log-dir id: that is no folder" launch -n 1 --log-dir id -- true
expect 1 "--log-dir none/x: No such file or directory" launch -n 1 --log-dir none/x -- true
mkdir -p other/rank-1.log
expect 1 "--log-dir: other/rank-1.log: " launch -n 2 --log-dir other -- sleep 1000
if [ -e /dev/full ]; then
  mkdir full
  ln -s /dev/full full/rank-0.log
  expect 1 "--log-dir: full/rank-0.log: that is no regular file" launch -n 1 --log-dir full -- true
fi

# ---- many
ranks 0 "" "-n 256 --log-dir many" 'echo $RANK; echo $RANK >&2'
[ "$(sed 's/.* //' out | sort -n | uniq | wc -l)" -eq 256 ] && [ "$(wc -l <err)" -eq 256 ] || complain "256 ranks: $(wc -l <out) lines"
[ "$(wc -l <many/rank-255.log)" -eq 3 ] || complain "rank-255.log: $(cat many/rank-255.log)"
ranks 5 "rank 200 ended with status 5" "-n 256" '[ $RANK = 200 ] && exit 5; sleep 1000'
expect_few() { # LIMIT STATUS TEXT OPTIONS
  checks=$((checks + 1))
  # shellcheck disable=SC2086,SC3045
  (ulimit -S -n 60; ulimit -H -n "$1"; "$exphil" launch $4 -- sh -c 'ulimit -n') >out 2>err
  [ $? -eq "$2" ] && cat out err | grep -q "$3" || complain "with $1 files: $(head -n 3 out err)"
}
# a sanitizer has files of its own
expect_few 400 1 "256 ranks need [0-9]* open files, and 400 are allowed" "-n 256"
expect_few 400 0 "^60$" "-n 80"

echo "$checks checks"
exit $failed
