"""Ranks that go wrong (tests/mpi/faulty.c), many times: every other rank gets an error, and the launch ends.

  faults.py [--times N] [--within SECONDS] [--tolerant] [--first SEED] FAULTY MPIRUN [WORD]...

MPIRUN with its words starts three ranks: mpirun -n 3. --times: of each kind, each with a seed of its own (default 1). --within:
none may take longer, which no test asks for, because it depends on the machine. --tolerant: the MPI is launched so that ranks
outlive one that is killed (mpirun --with-ft ulfm), and they must go on without it.
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HANGS_S = 300  # nothing takes so long, on any machine
KINDS = ("early", "absent", "stopped", "killed")
RANKS = 3
ENDED = (3, 14, 142)  # by exphil_mpi_abort(3), or by the alarm that it sets, on a machine that is slow


def launch(command, folder):
    """Status and seconds; None: it hangs. What is left of one launch of Open MPI takes folders from under the next."""
    began = time.monotonic()
    environment = {**os.environ, "OMPI_MCA_orte_tmpdir_base": folder}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        said = process.communicate(timeout=HANGS_S)[0]
        return process.returncode, time.monotonic() - began, said.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, time.monotonic() - began, ""


def wrong(kind, status, told, tolerant):
    """What a launch did that it must not do; None when nothing."""
    if status is None:
        return "it hangs"
    codes = {rank: int(text.split()[0]) for rank, text in told.items()}
    if any(code == 0 for code in codes.values()):
        return "a rank has no error"
    if kind == "killed" and not tolerant:
        # mpirun ends all when it learns that one is killed: they may not come to tell.
        return None if status != 0 else "a rank was killed, and the launch ended well"
    if len(codes) != RANKS - 1:
        return f"only ranks {sorted(codes)} got an error"
    if kind == "killed":
        return None if status == 0 else f"the ranks that were left ended with {status}"
    return None if status in ENDED else f"it ended with {status}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--within", type=float, default=HANGS_S)
    parser.add_argument("--tolerant", action="store_true")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("faulty", type=pathlib.Path)
    parser.add_argument("mpirun", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    for kind in KINDS:
        longest, reported = 0.0, 0
        for seed in range(given.first, given.first + given.times):
            with tempfile.TemporaryDirectory() as folder:
                status, seconds, said = launch([*given.mpirun, str(given.faulty), kind, str(seed), folder], folder)
                told = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir() if path.name.isdigit()}
            why = wrong(kind, status, told, given.tolerant)
            if not why and seconds > given.within:
                why = f"it took {seconds:.1f} s"
            if why:
                sys.exit(f"{said}{told}\nFAILED: {kind}, seed {seed}: {why}")
            longest, reported = max(longest, seconds), reported + len(told)
        print(f"{kind}: {given.times} launches, {reported} errors told, at most {longest:.1f} s", flush=True)


main()
