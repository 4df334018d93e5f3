#!/bin/sh
# Our own GameCube Pong in stock Dolphin, without a display: the scripted player is recorded, a policy learns from it, and both play
# a minute at a console's speed. It must return what the script returns. Whether it saw every frame once and answered before the
# next one is told, not judged: it is the machine's affair, too. About four and a half minutes; nothing else should run meanwhile.
# The environment is that of every host suite.
set -eu
here=$EXPHIL_SOURCE
map=$here/examples/pong/gamecube/pong_gamecube_left.exphil

fail() { echo "dolphin: $*" >&2; exit 1; }

[ -x "${DOLPHIN:-/usr/games/dolphin-emu-nogui}" ] || command -v dolphin-emu-nogui >/dev/null ||
  { echo "SKIPPED: no dolphin-emu-nogui"; exit 0; }
command -v powerpc-linux-gnu-gcc >/dev/null || { echo "SKIPPED: no powerpc-linux-gnu-gcc"; exit 0; }
echo '#include <libretro-common/libretro.h>' | ${CC:-cc} -E - >/dev/null 2>&1 || { echo "SKIPPED: no libretro.h (retroarch-dev)"; exit 0; }
[ "$(uname -s)" = Linux ] || { echo "SKIPPED: not Linux"; exit 0; }

# All that Dolphin writes stays here.
mkdir -p tmp
TMPDIR=$PWD/tmp
export TMPDIR
CFLAGS="-O2 -Wall -Wextra -Wpedantic -Wconversion -Werror" sh "$here/examples/dolphin/make-bot" .
sh "$here/examples/pong/gamecube/make-dol" .

# What goes wrong is said in words, and leaves nothing behind.
# refuse STATUS PATTERN COMMAND...
refuse()
{
    want=$1 pattern=$2 status=0
    shift 2
    "$@" >refuse.log 2>&1 || status=$?
    [ $status = "$want" ] || { cat refuse.log; fail "$* ended with $status, not $want"; }
    grep -q "$pattern" refuse.log || { cat refuse.log; fail "$* does not say: $pattern"; }
}
# Standing in for Dolphin: one that ends at once, one that never maps a memory, one that is deaf to TERM.
printf '#!/bin/sh\necho cannot run this; exit 7\n' >dies
printf '#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 1; done\n' >hangs
chmod +x dies hangs
refuse 3 "there is no Dolphin: ./none" env DOLPHIN=./none ./dolphin_bot teach "$map" pong.dol
refuse 1 "ended by itself with status 7; it said last: cannot run this" env DOLPHIN=./dies ./dolphin_bot teach "$map" pong.dol
refuse 1 "shows no memory .* within 2 s" env DOLPHIN=./hangs ./dolphin_bot teach -w 2 "$map" pong.dol
refuse 1 "none.dol: No such file" ./dolphin_bot teach "$map" none.dol
refuse 1 "EXPHIL_E_IO" ./dolphin_bot play "$map" pong.dol none.safetensors
sed 's/"PONG"/"GONE"/' "$map" >other.map
refuse 1 "the scripted player plays only Pong" ./dolphin_bot teach other.map pong.dol
sed 's/^raw *frame .*//' "$map" >blind.map
refuse 1 "the map needs: raw frame" ./dolphin_bot teach blind.map pong.dol
sed 's/0x8030000D/0x8FFFFFFF/' "$map" >far.map
refuse 1 "other at 0x8FFFFFFF is not in a GameCube's memory" ./dolphin_bot teach far.map pong.dol
# A process that may not be looked into: its program cannot be read. To root nothing is forbidden, so somebody else starts it.
echo 'int sleep(unsigned); int main(void) { return sleep(60); }' >secret.c
${CC:-cc} -o secret secret.c -Wno-conversion
chmod 111 secret
mkdir -p tmp/open
chmod 777 tmp/open
as=
[ "$(id -u)" != 0 ] || as="setpriv --reuid=65534 --regid=65534 --clear-groups"
status=0
$as ./dolphin_bot >refuse.log 2>&1 || status=$?
if [ $status = 2 ] && $as test -r "$map"; then
    # shellcheck disable=SC2086
    refuse 1 "the right to trace it (ptrace)" $as env TMPDIR="$TMPDIR/open" DOLPHIN=./secret ./dolphin_bot teach "$map" pong.dol
fi
rmdir tmp/open
# await_child PID: until it has started one; a minute ends what would hang.
await_child()
{
    for _ in $(seq 600); do
        [ -z "$(cat "/proc/$1/task/$1/children" 2>/dev/null)" ] || return 0
        sleep 0.1
    done
    fail "no Dolphin was started"
}
# TERM in the middle of a game: Dolphin goes too. (A Dolphin that is killed is told from one that was asked.)
./dolphin_bot teach -n 100000 "$map" pong.dol >term.log 2>&1 &
bot=$!
await_child $bot
sleep 4
kill -TERM $bot
status=0
wait $bot || status=$?
[ "$status: $(tail -n 1 term.log)" = "1: dolphin_bot: interrupted" ] || { cat term.log; fail "TERM ended with $status"; }
./dolphin_bot teach -n 100000 "$map" pong.dol >died.log 2>&1 &
bot=$!
await_child $bot
sleep 4
kill -KILL "$(cat /proc/$bot/task/$bot/children)"
status=0
wait $bot || status=$?
grep -q 'Dolphin died of signal 9' died.log || { cat died.log; fail "a killed Dolphin is not told: status $status"; }
[ -z "$(ls tmp)" ] || fail "left behind: $(ls tmp)"

# Before all other processes, where that is allowed: else a busy machine makes the bot miss a frame or two in a minute.
first=
! chrt -f 1 true 2>/dev/null || first="chrt -f 1"
# Eight times a console's speed; a frame that was missed ends an episode, so all rows are sure.
$first ./dolphin_bot teach -b -x 8 -g 20 -n 2000 "$map" pong.dol pong.corpus >record.log
./dolphin_bot train "$map" pong.corpus pong.safetensors >train.log
tail -n 1 train.log
$first ./dolphin_bot teach "$map" pong.dol >teach.log
$first ./dolphin_bot play "$map" pong.dol pong.safetensors >play.log
$first ./dolphin_bot play -x 4 -g 4 -n 1500 "$map" pong.dol pong.safetensors >more.log
head -n 1 play.log
{
    echo "record $(tail -n 1 record.log)"
    echo "teach $(tail -n 1 teach.log)"
    echo "play $(tail -n 1 play.log)"
    echo "more $(tail -n 1 more.log)"
} >table
sed 's/^[a-z]* //' table
[ -z "$(ls tmp)" ] || fail "left behind: $(ls tmp)"

# Columns: run player frames rate missed late untaken mean / max p50 p99 max returned balls percent score
awk '
    { frames[$1] = $3; rate[$1] = $4; missed[$1] = $5; late[$1] = $6; untaken[$1] = $7
      latency[$1] = $10; returned[$1] = $14; balls[$1] = $15 }
    function demand(holds, what) { if (!holds) { print "dolphin: " what > "/dev/stderr"; failed = 1 } }
    END {
        printf "%d frames at %.1f a second, %d missed, %d decisions late, %d not taken in the next frame, input takes up to %d\n",
            frames["play"], rate["play"], missed["play"], late["play"], untaken["play"], latency["play"]
        if (missed["play"] + late["play"] + untaken["play"] > 0) {
            print "SKIPPED: the machine did not keep pace, so what the policy returns is not judged"
            exit
        }
        demand(balls["teach"] >= 20 && balls["play"] >= 20, "too few balls")
        script = returned["teach"] / balls["teach"]
        policy = (returned["play"] + returned["more"]) / (balls["play"] + balls["more"])
        printf "script returns %.1f %%, policy %.1f %% of %d balls\n", 100 * script, 100 * policy, balls["play"] + balls["more"]
        demand(policy >= 0.95 * script, "the policy returns less than 95 % of what the script returns")
        exit failed
    }' table
