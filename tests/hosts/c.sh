#!/bin/sh
# The plain C host: the examples and the trace are compiled as a user would, against the installed library by pkg-config,
# shared and static, and as C++; then replays are made, trained on and played. The environment is that of every host suite.
#   c.sh | c.sh bench
set -eu
here=$EXPHIL_SOURCE
exphil=$EXPHIL_PREFIX/bin/exphil
strict="-O2 -Wall -Wextra -Werror"

fail() { echo "c: $*" >&2; exit 1; }

# compile NAME shared|static SOURCE [MORE...]
compile()
{
    name=$1 how=$2 source=$3
    shift 3
    if [ "$how" = static ]; then
        # Only the library itself: the C library stays shared.
        libs=$(pkg-config --static --libs exphil | sed 's/-lexphil/-l:libexphil.a/')
    else
        libs=$(pkg-config --libs exphil)
    fi
    # shellcheck disable=SC2046,SC2086
    ${CC:-cc} -std=c11 $strict $(pkg-config --cflags exphil) -o "$name" "$source" "$@" $libs
}

if [ "${1:-}" = bench ]; then
    compile trace_bench shared "$here/tests/hosts/trace.c"
    exec ./trace_bench bench "$EXPHIL_TRACE/small.safetensors"
fi

for how in shared static; do
    for program in minimal bot train rows learn apart ops; do compile "${program}_$how" "$how" "$here/examples/$program.c"; done
    compile "trace_$how" "$how" "$here/tests/hosts/trace.c"
done
if command -v readelf >/dev/null && readelf -d bot_static | grep -q libexphil; then fail "bot_static needs libexphil.so"; fi

# The library's headers as C++: a host's own classes, the library's structs in them.
if command -v c++ >/dev/null; then
    cat >host.cpp <<'END'
#include <cstdio>
#include <exphil/exphil.h>
#include <exphil/slp.h>
#include <stdexcept>

class Policy {
  public:
    explicit Policy(const char *path)
    {
        exphil_error error = EXPHIL_ERROR_INIT;
        if (exphil_context_create(nullptr, &context, &error) < 0 || exphil_model_load(context, path, &model, &error) < 0 ||
            exphil_session_create(model, nullptr, &session, &error) < 0)
            throw std::runtime_error(error.message);
    }
    ~Policy()
    {
        exphil_context_destroy(context);             // in any order
        exphil_model_destroy(model);
        exphil_session_destroy(session);
    }
    exphil_pad step(const exphil_melee_frame &frame)
    {
        exphil_pad pad{};
        if (exphil_session_step(session, &frame, &pad) < 0) throw std::runtime_error("step");
        return pad;
    }

  private:
    exphil_context *context = nullptr;
    exphil_model *model = nullptr;
    exphil_session *session = nullptr;
};

int main(int, char **argv)
{
    try {
        Policy("no such file");
        return 2;
    } catch (const std::exception &e) {
        std::printf("%s\n", e.what());
    }
    Policy policy(argv[1]);
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    exphil_slp_info info = EXPHIL_SLP_INFO_INIT;
    frame.own_port = 1;
    frame.player[0].present = 1;
    return policy.step(frame).trigger > 1 || info.struct_size != sizeof info;
}
END
    # shellcheck disable=SC2046,SC2086
    c++ -std=c++11 $strict $(pkg-config --cflags exphil) -o host_cpp host.cpp $(pkg-config --libs exphil)
else
    echo "SKIPPED: no C++ compiler"
fi

# A game of its own: the policy plays nearly as well as the rule that it learned from, and chance does not.
./rows_shared >rows.log || fail "rows"
awk '{ score[$1] = $3 + 0 } END { exit !(score["rule:"] > 100 && score["policy:"] > 0.9 * score["rule:"] && score["chance:"] < 20) }' \
    rows.log || { cat rows.log; fail "the policy of rows does not play as its rule"; }
[ "$(wc -l <"$here/examples/rows.c")" -lt 100 ] || fail "rows.c is not short any more"

# From nothing, by playing: it beats the game's own player, and the same frames give the same weights.
./learn_shared -n 1000000 learnt.safetensors >learn.log || fail "learn"
./learn_static -n 1000000 again.safetensors >/dev/null || fail "learn, linked statically"
cmp learnt.safetensors again.safetensors || fail "the same games gave other weights"
awk '/points a game/ { exit !($2 > 5 && $NF < -10) }' learn.log || { cat learn.log; fail "learn does not beat the game's own player"; }
./learn_shared --help >help.log 2>&1 && fail "learn --help is no mistake"
grep -q '^usage: learn' help.log || fail "learn --help"
[ ! -e --help ] || fail "learn --help writes a file of that name"
[ "$(wc -l <"$here/examples/learn.c")" -lt 150 ] || fail "learn.c is not short any more"

# Player and learner in two processes: what one process learns, to the last bit, and it balances the pole.
./apart_shared 100000 apart.safetensors >apart.log || fail "apart"
./apart_static 100000 together.safetensors together >together.log || fail "apart, together"
cmp apart.safetensors together.safetensors || fail "two processes learnt other weights than one"
cmp apart.log together.log || fail "two processes played other episodes than one"
awk 'END { exit !($3 > 475) }' apart.log || { cat apart.log; fail "apart does not balance its pole"; }
if ./apart_shared 3000 no/such/folder/weights 2>apart.log; then fail "apart without a file"; fi
grep -q 'EXPHIL_E_IO' apart.log || { cat apart.log; fail "apart does not say why"; }
[ "$(wc -l <"$here/examples/apart.c")" -lt 150 ] || fail "apart.c is not short any more"

# The kernels on arrays of one's own: the gradient is the difference.
for how in shared static; do ./ops_$how >ops.log || { cat ops.log; fail "ops, $how"; }; done
[ "$(wc -l <"$here/examples/ops.c")" -lt 100 ] || fail "ops.c is not short any more"

# A game in a library of its own: from nothing to more than its script catches.
# shellcheck disable=SC2046
"${CC:-cc}" -O2 -Wall -Wextra -Werror -shared -fPIC "$here/examples/game.c" $(pkg-config --cflags exphil) -o game.so || fail "game.so"
# shellcheck disable=SC2046
"${CC:-cc}" -O2 -Wall -Wextra -Werror -DTEACHER "$here/examples/game.c" $(pkg-config --cflags exphil) -lm -o teacher || fail "teacher"
script=$(./teacher | sed -n 's/.*mean return \([0-9.]*\), .*/\1/p')
"$exphil" learn --world ./game.so --no-previous-action --frames 1000000 --scores 2 --json --quiet --out catcher.safetensors \
  >game.json || fail "learn of game.c"
caught=$(sed -n 's/.*"score":\([-0-9.]*\),.*/\1/p' game.json)
awk -v script="$script" -v caught="$caught" 'BEGIN { exit !(script > 5 && caught > script + 5) }' ||
  fail "the script catches $script, who learns $caught"
echo "c: of 20 balls, missed ones taken off, the script of game.c catches $script, the policy $caught"

# One that cannot be saved is learnt all the same, without a checkpoint; one that refuses says why, or that it does not.
sed '/\.state_bytes = /d; /\.save = /d; /\.load = /d; /^static int32_t save/,/^}/d; /^static int32_t load/,/^}/d' \
  "$here/examples/game.c" >unsaved.c
sed 's/if (error) error->status/if (0) error->status/' "$here/examples/game.c" >silent.c
# One whose episodes never end is scored until somebody asks for an end; one of a struct that is longer than there is room is refused.
sed 's/g->balls == 20/g->balls < 0/' "$here/examples/game.c" >endless.c
sed 's/{\.struct_size = sizeof \*world,/{.struct_size = sizeof *world + 4096,/' "$here/examples/game.c" >longer.c
for name in unsaved silent endless longer; do
  # shellcheck disable=SC2046
  "${CC:-cc}" -O2 -Wall -Wextra -Werror -shared -fPIC $name.c $(pkg-config --cflags exphil) -o $name.so || fail "$name.so"
done
"$exphil" learn --world ./unsaved.so --no-previous-action --frames 8192 --episodes 1 --out unsaved >unsaved.log 2>&1 ||
  fail "$(cat unsaved.log)"
grep -q 'this world cannot be saved' unsaved.log || fail "that a world cannot be saved is not said: $(cat unsaved.log)"
"$exphil" info unsaved >info.log 2>&1 || fail "no weights of a world that cannot be saved: $(cat info.log)"
[ ! -e unsaved.optimizer ] || fail "a checkpoint of a world that cannot be saved"
if "$exphil" learn --world ./unsaved.so --frames 8192 --resume --out unsaved >unsaved.log 2>&1; then fail "it goes on"; fi
grep -q -- '--resume: ' unsaved.log || fail "--resume without a checkpoint: $(cat unsaved.log)"
if "$exphil" learn --world ./longer.so --frames 64 --out none >longer.log 2>&1; then fail "longer.so plays"; fi
grep -q 'longer.so made a world with a longer struct' longer.log || fail "longer.so: $(cat longer.log)"
"$exphil" learn --world ./endless.so --no-previous-action --blocks mlp --hidden 8 --time 64 --frames 640 --out endless \
  >endless.log 2>&1 &
learning=$!
until grep -q 'frames' endless.log; do sleep 0.1; done # a chunk is learnt, and its score begins
kill -TERM $learning
status=0
wait $learning || status=$?
[ $status -eq 143 ] || fail "the score of endless.so ends with $status: $(cat endless.log)"
"$exphil" info endless >info.log 2>&1 || fail "no weights of a world that never ends: $(cat info.log)"
for name in game silent; do
  if "$exphil" learn --world ./$name.so --opponent self --frames 64 --out none >$name.log 2>&1; then fail "$name: two seats"; fi
done
grep -q 'catch has one seat' game.log || fail "game.so does not say why: $(cat game.log)"
grep -q 'silent.so refuses .* EXPHIL_E_UNSUPPORTED, and does not say why' silent.log || fail "silent.so: $(cat silent.log)"

# Replays of the drill in a folder and beside it, one of them damaged: training goes on without it.
mkdir -p drills
for seed in 1 2 3; do "$exphil" drill --force --seed $seed --frames 1200 --out drills/$seed.slp >/dev/null; done
"$exphil" drill --force --seed 4 --frames 600 --out fourth.slp >/dev/null
head -c 100 drills/1.slp >drills/cut.slp
./train_shared -n 120 policy.safetensors drills fourth.slp >train.log 2>train.err
./train_static -n 120 again.safetensors drills fourth.slp >again.log 2>/dev/null
grep -q '^wrote policy.safetensors$' train.log || fail "train did not write"
grep -q 'cut.slp: EXPHIL_E_FORMAT' train.err || fail "train does not tell of the damaged replay"
cmp policy.safetensors again.safetensors || fail "the same replays gave other weights"
./train_shared -n 1 none.safetensors drills/cut.slp >/dev/null 2>none.err && fail "train made weights of nothing"
grep -q 'no replay could be used' none.err || fail "train does not say that there is nothing to train on"
for out in nowhere/x.safetensors drills; do
    ./train_shared -n 1 $out fourth.slp >unwritten.log 2>unwritten.err && fail "train wrote $out"
    grep -q "^train: $out cannot be written: " unwritten.err || fail "train does not say that $out cannot be written"
    [ ! -s unwritten.log ] || fail "train works for an output that cannot be written"
done
[ ! -e policy.safetensors.trying ] || fail "train leaves its trial behind"
[ ! -e none.safetensors ] || fail "train wrote weights of nothing"

for how in shared static; do
    [ "$(./minimal_$how policy.safetensors | wc -l)" = 60 ] || fail "minimal_$how did not play 60 frames"
    for game in "" fourth.slp; do
        # shellcheck disable=SC2086
        {
            ./bot_$how --fast -n 1830 policy.safetensors $game >late.log || fail "bot_$how $game"
            ./bot_$how --fast -n 1830 --straight policy.safetensors $game >straight.log || fail "bot_$how $game --straight"
        }
        [ "$(cut -d' ' -f2 late.log | head -1)" = "$(cut -d' ' -f2 straight.log | head -1)" ] ||
            fail "bot_$how $game: rollback gives other actions than a straight run"
    done
done
./bot_shared -n 90 policy.safetensors >paced.log || fail "bot at 60 Hz"
./bot_shared nothing.safetensors 2>bot.err && fail "bot played a file that is not there"
grep -q 'EXPHIL_E_IO: .*nothing.safetensors' bot.err || fail "bot does not say what is missing"
[ ! -e host_cpp ] || ./host_cpp policy.safetensors >/dev/null || fail "the C++ host"

# Independent of the library's own counter: ten times the frames, the same number of allocations in the whole process.
cat >count.c <<'END'
#include <stdio.h>
#include <stdlib.h>
static _Atomic unsigned long count;
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_aligned_alloc(size_t, size_t);
int __real_posix_memalign(void **, size_t, size_t);
void *__wrap_malloc(size_t n) { return count++, __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t m) { return count++, __real_calloc(n, m); }
void *__wrap_realloc(void *p, size_t n) { return count++, __real_realloc(p, n); }
void *__wrap_aligned_alloc(size_t a, size_t n) { return count++, __real_aligned_alloc(a, n); }
int __wrap_posix_memalign(void **p, size_t a, size_t n) { return count++, __real_posix_memalign(p, a, n); }
__attribute__((destructor)) static void tell(void) { fprintf(stderr, "allocations %lu\n", count); }
END
strict="-O2 -w"
compile bot_count static "$here/examples/bot.c" count.c -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
    -Wl,--wrap=aligned_alloc,--wrap=posix_memalign
./bot_count --fast -n 300 policy.safetensors 2>few.log >/dev/null
./bot_count --fast -n 3000 policy.safetensors 2>many.log >/dev/null
grep -q 'allocations [1-9]' few.log || fail "allocations are not counted"
cmp few.log many.log || fail "the loop of bot allocates"

for how in shared static; do
    for folder in $EXPHIL_TRACES; do ./trace_$how check "$folder/policy.safetensors" "$folder/frames.trace"; done
done

# What eight threads at 60 Hz wait for, with the library and without: told, not judged. A second shows that it works.
compile pauses shared "$here/tests/hosts/pauses.c" -lpthread
seconds=1
[ "${EXPHIL_LONG:-}" != 1 ] || seconds=60
./pauses $seconds >pauses.log || { cat pauses.log; fail "pauses"; }
[ $seconds = 1 ] || cat pauses.log
