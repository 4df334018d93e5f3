#!/bin/sh
# libexphil_mpi as a user builds it: alone, against the installed library, with each MPI that is here; then its promises on 1 to 4
# ranks, ranks that go wrong, and the example. The environment is that of every host suite.
set -eu
tests=$EXPHIL_SOURCE/tests/mpi
strict="-std=c11 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE"

fail() { echo "mpi: $*" >&2; exit 1; }

# One process a core is MPI's habit; here there are more, and it may be root.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1

# build MODULE: the library in a prefix of its own, by pkg-config's module, and the tests by exphil_mpi.pc.
build() {
    cmake -S "$EXPHIL_SOURCE/mpi" -B "$1/build" -DEXPHIL_MPI="$1" -DCMAKE_PREFIX_PATH="$EXPHIL_PREFIX" \
        -DCMAKE_INSTALL_LIBDIR=lib -DEXPHIL_WERROR=ON -DEXPHIL_DEBUG_INFO=ON >"$1.log" 2>&1 &&
        cmake --build "$1/build" >>"$1.log" 2>&1 && cmake --install "$1/build" --prefix "$PWD/$1" >>"$1.log" 2>&1 ||
        { cat "$1.log" >&2; fail "libexphil_mpi is not built with $1"; }
    for program in ranks faulty; do
        # shellcheck disable=SC2046,SC2086
        PKG_CONFIG_PATH=$PWD/$1/lib/pkgconfig:$PKG_CONFIG_PATH "${CC:-cc}" $strict "$tests/$program.c" -o "$1/$program" \
            $(PKG_CONFIG_PATH=$PWD/$1/lib/pkgconfig:$PKG_CONFIG_PATH pkg-config --cflags --libs exphil_mpi) -lpthread \
            -Wl,-rpath,"$PWD/$1/lib"
    done
    # shellcheck disable=SC2046
    PKG_CONFIG_PATH=$PWD/$1/lib/pkgconfig:$PKG_CONFIG_PATH "${CC:-cc}" -O2 -Wall -Wextra -Werror "$EXPHIL_SOURCE/examples/ranks.c" \
        -o "$1/example" $(PKG_CONFIG_PATH=$PWD/$1/lib/pkgconfig:$PKG_CONFIG_PATH pkg-config --cflags --libs exphil_mpi) \
        -Wl,-rpath,"$PWD/$1/lib"
    # shellcheck disable=SC2046,SC2086
    "${CC:-cc}" $strict "$tests/world.c" -I"$PWD/$1/include" $(pkg-config --cflags exphil) -o "$1/world" -ldl
}

# What every MPI must give: the same sums, the same weights.
check() {
    module=$1 mpirun=$2
    for ranks in 1 2 3 4; do "$mpirun" -n $ranks "$module/ranks" sums; done >"$module/same" 2>"$module/errors" ||
        { cat "$module/errors" >&2; fail "$module: sums"; }
    for ranks in 2 3 4; do "$mpirun" -n $ranks "$module/ranks" train; done >>"$module/same" 2>"$module/errors" ||
        { cat "$module/errors" >&2; fail "$module: training"; }
    "$mpirun" -n 2 "$module/ranks" misuse || fail "$module: misuse"
    "$mpirun" -n 1 "$module/ranks" single || fail "$module: MPI_THREAD_SINGLE"
    [ "$("$mpirun" -n 2 "$module/world" "$PWD/$module/lib/libexphil_mpi.so.0")" = "2 ranks, rank 0 of 2 on this node" ] ||
        fail "$module: a program that finds the library when it runs"
    status=0
    "$mpirun" -n 2 "$module/world" "$PWD/$module/lib/libexphil_mpi.so.0" abort 7 >"$module/abort.log" 2>&1 || status=$?
    # 14, 142: the alarm of exphil_mpi_abort, on a machine that is slow.
    case $status in
        7 | 14 | 142) ;;
        *) cat "$module/abort.log" >&2; fail "$module: exphil_mpi_abort(7) ends with $status" ;;
    esac
    "$mpirun" -n 2 "$module/example" "$module/pursuer.safetensors" >"$module/example.log" || fail "$module: the example"
    grep -q '^2 ranks: loss 0\.0' "$module/example.log" || { cat "$module/example.log" >&2; fail "$module: the example does not learn"; }
    python3 "$tests/faults.py" "$module/faulty" "$mpirun" -n 3 || fail "$module: ranks that go wrong"
}

# The interface is the recorded one. MPI's own types differ: it is recorded with Open MPI.
interface() {
    command -v abidiff >/dev/null || { echo "SKIPPED: no abidiff (Debian: abigail-tools)"; return 0; }
    "$EXPHIL_SOURCE/tools/abi" check "$1/build/libexphil_mpi.so" || fail "the interface is not the recorded one"
}

# Ranks that wait for one that went wrong take time, but nothing else: all MPIs at once.
modules=
for pair in ompi-c:mpirun.openmpi mpich:mpirun.mpich; do
    module=${pair%%:*} mpirun=${pair#*:}
    if ! pkg-config --exists "$module" || ! command -v "$mpirun" >/dev/null; then
        echo "SKIPPED: no $module with $mpirun (tools/deps hosts installs it): libexphil_mpi is untested with it"
        continue
    fi
    mkdir "$module"
    build "$module"
    (check "$module" "$mpirun") >"$module/check.log" 2>&1 &
    echo $! >"$module/pid"
    modules="$modules $module"
done
wrong=
for module in $modules; do
    wait "$(cat "$module/pid")" || wrong="$wrong $module"
    cat "$module/check.log"
done
[ -z "$wrong" ] || fail "wrong with$wrong"

first=${modules# }
first=${first%% *}
for module in $modules; do
    [ "$module" != ompi-c ] || interface "$module"
    for file in same pursuer.safetensors; do
        cmp "$first/$file" "$module/$file" || fail "$first and $module compute different bits"
    done
done
[ -z "$first" ] || cat "$first/same"

# Ranks whose only way to each other is a network; and what measures them still runs.
case " $modules " in
    *" ompi-c "*)
        sh "$tests/two_hosts.sh" "$PWD/ompi-c"
        bench=$EXPHIL_SOURCE/bench/mpi
        for program in ranks reduce; do
            # shellcheck disable=SC2046,SC2086
            PKG_CONFIG_PATH=$PWD/ompi-c/lib/pkgconfig:$PKG_CONFIG_PATH "${CC:-cc}" $strict "$bench/$program.c" \
                -o "ompi-c/bench_$program" \
                $(PKG_CONFIG_PATH=$PWD/ompi-c/lib/pkgconfig:$PKG_CONFIG_PATH pkg-config --cflags --libs exphil_mpi) \
                -Wl,-rpath,"$PWD/ompi-c/lib"
        done
        mpirun.openmpi -n 2 ompi-c/bench_ranks 8 1 1 >ompi-c/bench.log || fail "bench/mpi/ranks.c"
        grep -c "^| strong | 32 |" ompi-c/bench.log | grep -qx 2 || fail "bench/mpi/ranks.c prints no table of two policies"
        ;;
esac
