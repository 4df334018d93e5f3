#!/bin/sh
# Two ranks on two hosts leave the bits of two ranks on one, and where the cable is cut all ends. The hosts are two network name
# spaces with names of their own, joined by one cable (a veth pair); ranks have no way to each other but TCP over it. Needs root,
# iproute2 and Debian's Open MPI.
#
#   two_hosts.sh PREFIX        where libexphil_mpi of Open MPI is installed, and libexphil and its program, or they are found
set -eu
[ $# -eq 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
source=$(cd "$(dirname "$0")/../.." && pwd)
prefix=$(cd "$1" && pwd)
a=exphil-a-$$ b=exphil-b-$$
network=10.213.77 # of these two name spaces alone

skip() { echo "SKIPPED: $*: ranks on two hosts are untested"; exit 0; }
fail() { echo "two_hosts: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || skip "not root"
for tool in ip unshare hostname pkg-config mpirun.openmpi; do
    command -v "$tool" >/dev/null || skip "no $tool"
done
pc=$(find "$prefix" -path '*/pkgconfig/exphil_mpi.pc' | head -n 1)
[ -n "$pc" ] || fail "no exphil_mpi.pc in $prefix: it is installed with -DEXPHIL_MPI=ompi-c"
libraries=$(dirname "$(dirname "$pc")")
program=$prefix/bin/exphil
[ -x "$program" ] || program=exphil

work=$(mktemp -d)
clean() {
    rm -rf "$work"
    ip netns delete "$a" 2>/dev/null || true
    ip netns delete "$b" 2>/dev/null || true
}
trap clean EXIT
trap 'exit 1' HUP INT TERM
ip netns add "$a" 2>/dev/null && ip netns add "$b" 2>/dev/null || skip "name spaces of networks are not allowed here"
ip -n "$a" link add cable type veth peer name cable netns "$b" 2>/dev/null || skip "the kernel has no veth"
for host in "$a 1" "$b 2"; do
    # shellcheck disable=SC2086
    set -- $host
    ip -n "$1" address add "$network.$2/24" dev cable
    ip -n "$1" link set cable up
    ip -n "$1" link set lo up
done

# What stands in the place of ssh: HOST COMMAND...
cat >"$work/enter" <<END
#!/bin/sh
[ "\$1" = $network.2 ] || { echo "enter: no host \$1" >&2; exit 1; }
shift
exec ip netns exec $b unshare --uts sh -c 'hostname exphil-b; exec sh -c "\$*"' sh "\$@"
END
chmod +x "$work/enter"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" EXPHIL_MPI_LIBRARY="$libraries/libexphil_mpi.so.0"

# On host a, whose mpirun starts one rank on each host.
on_two() {
    # shellcheck disable=SC2086
    ip netns exec "$a" unshare --uts sh -c 'hostname exphil-a; exec "$@"' sh timeout 120 mpirun.openmpi ${notice-} \
        --mca plm_rsh_agent "$work/enter" --mca btl tcp,self --mca btl_tcp_if_include cable --mca oob_tcp_if_include cable \
        --host "$network.1,$network.2" -n 2 --bind-to none -x LD_LIBRARY_PATH -x EXPHIL_MPI_LIBRARY "$@"
}
on_one() { timeout 120 mpirun.openmpi -n 2 "$@"; }

# Bytes that have come over the cable to host b.
came() { ip netns exec "$b" cat /sys/class/net/cable/statistics/rx_bytes; }

# same NAME COMMAND... FILE: what the command leaves in FILE.
same() {
    name=$1
    shift
    rm -f "$work"/one* "$work"/two*
    on_one "$@" "$work/one" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$name: on one host"; }
    before=$(came)
    on_two "$@" "$work/two" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$name: on two hosts"; }
    over=$(($(came) - before))
    [ "$over" -gt $(($(stat -c %s "$work/two") * 2)) ] || fail "$name: $over bytes came over the cable: not the gradients"
    cmp "$work/one" "$work/two" || fail "$name: two hosts leave other weights than one"
    echo "$name: the bits of two ranks on one host; $over bytes came over the cable"
}

# mpirun notices that a host is gone, before its ranks have told it, and ends all on both hosts; what was saved is gone on with.
cut_off() {
    set -- train --port 1 --blocks gru --hidden 8 --head-width 8 --time 20 --batch 6 --alone 0 --quiet --schedule constant \
        --log "$work/cut.log" --out "$work/cut.st" --save-minutes 0 --save-every 5 "$work/drill.slp"
    notice="--mca oob_tcp_keepalive_time 4 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 3"
    (
        on_two "$program" "$@" --mpi --ranks-timeout 100 --updates 1000000 >"$work/said" 2>&1 && status=0 || status=$?
        echo "$status" >"$work/status"
    ) &
    while [ ! -s "$work/cut.st.optimizer" ] && [ ! -e "$work/status" ]; do sleep 0.1; done
    ip -n "$a" link set cable down
    wait
    [ "$(cat "$work/status")" = 205 ] || { cat "$work/said" >&2; fail "the cable was cut, and mpirun ended with $(cat "$work/status")"; }
    [ -z "$(ip netns pids "$a")" ] || fail "ranks are left on the host that mpirun is on"
    updates=$(($(grep -c '"kind":"train"' "$work/cut.log") + 5))
    "$program" "$@" --resume --updates "$updates" >/dev/null || fail "the run that was cut off does not go on"
    [ "$(grep -c '"kind":"train"' "$work/cut.log")" = "$updates" ] || fail "updates are missing behind a cut"
    echo "the cable was cut: mpirun ended, and the run goes on"
}

# shellcheck disable=SC2046
"${CC:-cc}" -O2 "$source/examples/ranks.c" -o "$work/ranks" \
    $(PKG_CONFIG_PATH=$libraries/pkgconfig:${PKG_CONFIG_PATH:-} pkg-config --cflags --libs exphil_mpi)
hosts=$(on_two sh -c hostname 2>/dev/null | sort | tr '\n' ' ')
[ "$hosts" = "exphil-a exphil-b " ] || fail "ranks are on $hosts"
same "examples/ranks.c" "$work/ranks"

if "$program" train --help | grep -q -- '--mpi '; then
    "$program" drill --frames 400 --out "$work/drill.slp" >/dev/null
    same "exphil train --mpi" "$program" train --mpi --port 1 --blocks gru --hidden 8 --head-width 8 --time 20 --batch 6 \
        --updates 20 --alone 0 --quiet "$work/drill.slp" --out
    cut_off
else
    echo "this exphil has no train --mpi"
fi
