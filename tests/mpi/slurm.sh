#!/bin/sh
# `exphil train --mpi` under SLURM, by hand, on a machine of its own: a SLURM of one node is started here and ended again.
#
#   slurm.sh EXPHIL SOURCE      needs root and Debian's slurmctld, slurmd, slurm-client, munge, libopenmpi-dev, libmpich-dev
#
# Two ranks by srun leave the weights of two by mpirun, with Open MPI (--mpi=pmix) and MPICH (--mpi=pmi2). A job ends with 143 by
# scancel --signal=TERM and with a checkpoint by scancel alone; with 137 where a rank is killed; with 75 where one hangs. What
# requeues itself on 75 and 137 (as doc/scale.md has it) comes back and goes on.
set -eu
[ $# -eq 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
exphil=$(realpath "$1") source=$(realpath "$2")
skip() { echo "SKIPPED: $*: SLURM is untested"; exit 0; }
fail() { echo "slurm: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || skip "not root"
for tool in munged slurmctld slurmd srun sbatch scancel scontrol pkg-config; do
    command -v "$tool" >/dev/null || skip "no $tool"
done

work=$(mktemp -d)
chmod 755 "$work"
clean() {
    for daemon in slurmd slurmctld munged; do
        [ ! -s "$work/$daemon.pid" ] || kill "$(cat "$work/$daemon.pid")" 2>/dev/null || true
    done
    sleep 2
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

# ---- a SLURM of one node ---------------------------------------------------------------------------------

dd if=/dev/urandom of="$work/key" bs=128 count=1 2>/dev/null
chmod 600 "$work/key"
munged --force --key-file="$work/key" --socket="$work/munge" --pid-file="$work/munged.pid" --log-file="$work/munged.log" \
    --seed-file="$work/seed"
host=$(hostname -s)
export SLURM_CONF="$work/slurm.conf"
cat >"$SLURM_CONF" <<END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthInfo=socket=$work/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
KillWait=20
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
mkdir "$work/state" "$work/spool"
slurmctld
slurmd
tries=0
until sinfo -h -o %t 2>/dev/null | grep -q idle; do
    tries=$((tries + 1))
    [ $tries -lt 60 ] || fail "SLURM does not come up: $(tail -n 3 "$work/slurmctld.log" "$work/slurmd.log")"
    sleep 1
done

# ---- runs -------------------------------------------------------------------------------------------------

for module in ompi-c mpich; do
    # shellcheck disable=SC2046
    "${CC:-cc}" -std=c11 -O1 -fPIC -shared -fvisibility=hidden -ffp-contract=off -I "$source/include" "$source/mpi/exphil_mpi.c" \
        -o "$work/$module.so" $(pkg-config --cflags --libs $module)
done
"$exphil" drill --frames 400 --out "$work/drill.slp" >/dev/null
train="$exphil train --mpi --port 1 --blocks gru --hidden 8 --head-width 8 --time 20 --batch 6 --rate 0.01 --schedule constant
    --alone 0 --quiet --out p.st --log log --resume $work/drill.slp"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# here NAME: an empty folder
here() { mkdir "$work/$1" && cd "$work/$1"; }
here mpirun
# shellcheck disable=SC2086
EXPHIL_MPI_LIBRARY=$work/ompi-c.so mpirun.openmpi --oversubscribe -n 2 $train --updates 20 >said 2>&1 || fail "mpirun: $(cat said)"
for each in "ompi-c pmix" "mpich pmi2"; do
    # shellcheck disable=SC2086
    set -- $each
    here "$1"
    # shellcheck disable=SC2086
    EXPHIL_MPI_LIBRARY=$work/$1.so timeout 120 srun -n 2 --mpi="$2" $train --updates 20 >said 2>&1 || fail "srun --mpi=$2: $(cat said)"
    cmp p.st ../mpirun/p.st || fail "srun --mpi=$2 leaves other weights than mpirun"
    echo "srun --mpi=$2, $1: the bits of mpirun"
done

# submit NAME SRUN_STATUS_THAT_REQUEUES...: a job that does not end by itself; its number is in $job
submit() {
    here "$1"
    shift
    cat >job.sh <<END
#!/bin/sh
#SBATCH -n 2 --open-mode=append --requeue --output=out
export EXPHIL_MPI_LIBRARY=$work/ompi-c.so
srun --mpi=pmix $(echo "$train" | tr '\n' ' ') --updates 100000000 --save-every 20 --save-minutes 0 --ranks-timeout 5
status=\$?
echo "status \$status"
case " $* " in *" \$status "*) scontrol requeue \$SLURM_JOB_ID ;; esac
exit \$status
END
    job=$(sbatch --parsable job.sh)
    wait_for "a checkpoint" test -s p.st.optimizer
}
# wait_for WHAT COMMAND...
wait_for() {
    what=$1 tries=0
    shift
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 1500 ] || fail "$what does not come: $(cat out)"
        sleep 0.2
    done
}
lines() { grep -c '"kind":"train"' log; }
# that the last line of the log is of the update that the weights are of
saved() {
    [ "$("$exphil" info p.st | sed -n 's/^trained \([0-9]*\) updates.*/\1/p')" = "$(lines)" ] || fail "$1 was not saved: $(cat out)"
}
rank() { pgrep -n -x -f "$exphil train --mpi .*" || fail "no rank is there"; }

submit term
scancel --signal=TERM "$job"
wait_for "an end" grep -q "^status 143" out
saved "scancel --signal=TERM"
echo "scancel --signal=TERM: 143, and all is saved"

submit cancelled
scancel "$job"
wait_for "an end" grep -q "stopped by SIGTERM" out
saved scancel
echo "scancel: all is saved"

submit hangs
kill -STOP "$(rank)"
wait_for "an end" grep -q "^status 75" out
echo "a rank that hangs: 75"

submit killed 75 137
kill -KILL "$(rank)"
wait_for "an end" grep -q "^status 137" out
before=$(lines)
echo "a rank that is killed: 137; the job waits for its next turn, two minutes"
goes_on() { [ "$(lines)" -gt $((before + 100)) ]; }
wait_for "the next turn" goes_on
scancel "$job"
wait_for "an end" grep -q "stopped by SIGTERM" out
[ "$(lines)" = "$(tail -n 1 log | sed 's/.*"update":\([0-9]*\).*/\1/')" ] || fail "updates are missing in the log, or there twice"
echo "it came back and went on to update $(lines)"
