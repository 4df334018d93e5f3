#!/usr/bin/env python3
"""`exphil launch -- exphil train --device cuda`: the run of several ranks with an emulated GPU each, whose gradients the stand-in
for NCCL adds up, is that of one, whatever ends it.

  ranks.py EXPHIL PLUGINS     PLUGINS: the folder of the emulated GPU's plugin and of the stand-in
  ranks.py EXPHIL PLUGINS N   by hand: N times each a rank is killed, stopped, and cut off from the others, at a random moment; says
                              how long the others went on at most; 1, 2 or 3 ranks go on with the data of a run that never failed,
                              3 with its bits

A moment is a number of lines of the log after which something is done; where the run then really is, is the scheduler's business,
and no assertion depends on it. Time limits only end what hangs.
"""
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXPHIL, PLUGINS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
HANGS_S = 300
SMALL = ["--port", "1", "--blocks", "mlp", "--hidden", "4", "--head-width", "4", "--layout", "slippi", "--codec", "slippi",
         "--time", "5", "--batch", "4", "--rate", "0.01", "--schedule", "constant", "--alone", "0", "--score-frames", "50",
         "--quiet", "--out", "p.st", "--log", "log"]
GAME = "../1.slp"
failed = []


def check(fine, text):
    if not fine:
        failed.append(text)
        print("FAILED:", text)


class Launch:
    """exphil launch in a folder, with its own options, and exphil train."""

    def __init__(self, folder, how, *options, device="cuda", **variables):
        self.folder = work / folder
        self.folder.mkdir(exist_ok=True)
        launch = [EXPHIL, "launch", *how, "--"] if how else []
        words = [*launch, EXPHIL, "train", *SMALL, "--device", device, *options, GAME]
        self.process = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, **variables})

    def wait_for_lines(self, count):
        began = time.monotonic()
        while len(log(self.folder)) < count and self.process.poll() is None and time.monotonic() - began < HANGS_S:
            time.sleep(0.005)

    def ranks(self):
        """The process of each rank that is there."""
        found = {}
        for place in Path("/proc").iterdir():
            try:
                if place.name.isdigit() and os.readlink(place / "cwd") == str(self.folder) and \
                        os.readlink(place / "exe") == os.path.realpath(EXPHIL):
                    own = dict(one.partition("=")[::2] for one in (place / "environ").read_text().split("\0"))
                    if "EXPHIL_RANK" in own:
                        found[int(own["EXPHIL_RANK"])] = int(place.name)
            except OSError:  # it has ended, or is not ours
                pass
        return found

    def end(self):
        """Status and what was said."""
        try:
            out, err = self.process.communicate(timeout=HANGS_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGTERM)
            sys.exit(f"FAILED: {self.folder.name} hangs")
        check("a mistake" not in err, f"{self.folder.name}: NCCL was used wrongly: {err}")
        return self.process.returncode, out + err


def log(folder):
    path = work / folder / "log"
    text = path.read_text() if path.exists() else ""
    return [one for one in (json.loads(line) for line in text.split("\n")[:-1]) if one["kind"] == "train"]


def train(folder, how, *options, status=0, says="", **variables):
    """how: options of launch; none: the program alone."""
    got, said = Launch(folder, how, *options, **variables).end()
    check(got == status, f"{folder}: {how} {' '.join(options)}: ended with {got}, not {status}: {said}")
    check(says in said, f"{folder}: {how} {' '.join(options)}: does not say {says!r}: {said}")
    return said


def files(folder):
    """What a run leaves that no clock has made."""
    left = {path.name: path.read_bytes() for path in (work / folder).iterdir()}
    return {name: data for name, data in left.items() if name not in ("log", "log.1", "p.st.run.json", "p.st.lock")}


def same(one, other):
    """Files to the last bit, and logs but for what a clock has made."""
    a, b = files(one), files(other)
    differ = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    check(not differ and "p.st" in a, f"{one} and {other} leave different files: {differ}")
    both = [[{key: value for key, value in line.items() if key not in ("frames_per_second", "waited_ns")} for line in log(folder)]
            for folder in (one, other)]
    check(both[0] == both[1], f"the logs of {one} and {other} differ")


def distance(one, other):
    def weights(folder):
        data = (work / folder / "p.st").read_bytes()
        size, = struct.unpack("<Q", data[:8])
        return struct.unpack(f"<{(len(data) - 8 - size) // 4}f", data[8 + size:])

    a, b = weights(one), weights(other)
    return (sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b)) ** 0.5


def same_data(one, other):
    exact = [[(line["update"], line["epoch"], line["frames"], line["rate"]) for line in log(folder)] for folder in (one, other)]
    check(exact[0] == exact[1], f"the logs of {one} and {other} tell of other updates")


def together(*calls):
    with ThreadPoolExecutor(2) as pool:
        return [call.result() for call in [pool.submit(call) for call in calls]]


# ---- in continuous integration --------------------------------------------------------------------------------------------

PLAN = ["--updates", "16", "--save-every", "3", "--held-out", "0.5", "--split", "time", "--eval-every", "7"]


def ranks_are_one():
    two = ["--gpus", "0,1"]
    together(lambda: train("alone", None, *PLAN), lambda: train("two", two, *PLAN, says="p.st: mlp"),
             lambda: train("again", ["-n", "2", "--gpus", "2,0"], *PLAN), lambda: train("three", ["-n", "3"], *PLAN),
             lambda: train("shards", None, *PLAN, "--shards", "4"),
             lambda: train("shards2", ["-n", "2"], *PLAN, "--shards", "4"),
             lambda: train("shards4", ["-n", "4"], *PLAN, "--shards", "4"))
    same("again", "two")
    same("shards2", "shards")
    same("shards4", "shards")
    for name in ("two", "three"):
        same_data(name, "alone")
        found = distance(name, "alone")
        check(0 < found < 1e-4, f"weights of {name} and a run alone are {found:.2g} apart")
    check([line["update"] for line in log("two")] == [*range(1, 17)], "updates are told more or less often than once")
    train("two", two, *PLAN, "--resume", says="the run has ended: 16 of 16 updates are made")
    check(files("shards")["p.st"] != files("alone")["p.st"], "shards add up in the order of a batch at once")


def failed_twice():
    """One that failed twice is left out, but for checkpoints between; those are told to launch."""
    launch = Launch("twice", ["-n", "2", "--max-restarts", "3"], *PLAN)
    for count in (5, 11):
        launch.wait_for_lines(count)
        process = launch.ranks().get(1)
        if process:
            os.kill(process, signal.SIGKILL)
    got, said = launch.end()
    check(got == 0 and said.count("rank 1 was ended by signal 9") == 2, f"twice: ended with {got}: {said}")
    same("twice", "two")
    print("exphil launch with a rank that fails twice: restarted, ends with the bits of the run that never failed")


def stopped():
    """By a signal to launch: one checkpoint, and the run goes on with other numbers of ranks, with one too."""
    launch = Launch("term", ["-n", "2"], *PLAN, "--save-every", "1000")
    launch.wait_for_lines(5)
    os.kill(launch.process.pid, signal.SIGTERM)
    got, said = launch.end()
    check(got == 143 and "stopped by SIGTERM after update" in said, f"term: ended with {got}: {said}")
    for folder in ("on1", "on3"):
        (work / folder).mkdir()
        for name in (work / "term").iterdir():
            (work / folder / name.name).write_bytes(name.read_bytes())
    together(lambda: train("term", ["-n", "2"], *PLAN, "--resume"), lambda: train("on1", None, *PLAN, "--resume"),
             lambda: train("on3", ["-n", "3"], *PLAN, "--resume"))
    same("term", "two")
    for folder in ("on1", "on3"):
        same_data(folder, "two")


def refused():
    def one(says, how, *options, status=1, **variables):
        train("no", how, "--updates", "2", *options, status=status, says=says, **variables)
        check(not files("no"), f"a run that was refused leaves {sorted(files('no'))}")

    (work / "no").mkdir()
    n2 = ["-n", "2", "--max-restarts", "0"]
    as_torchrun = dict(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="2")
    one("with --device cuda they are one, each with a GPU; on processors mpirun -n 2 exphil train --mpi makes them one", n2,
        device="cpu")
    one("no GPU is here", n2, EXPHIL_EMULATED_GPUS="0")
    one("torchrun has started 2 processes, and each would be a run of its own: mpirun -n 2 exphil train --mpi", None, **as_torchrun)
    one("EXPHIL_E_UNSUPPORTED: cuda: no sums over ranks: EXPHIL_NCCL is \"none\"", n2, EXPHIL_NCCL="none")
    one("Duplicate GPU detected", n2, EXPHIL_EMULATED_GPUS="1")
    one("exphil launch and --value", n2, "--value", "detached", status=2)
    one("--ranks-timeout is for several processes", None, "--ranks-timeout", "5", status=2)
    one("--batch 3 is the least", ["-n", "3", "--max-restarts", "0"], "--batch", "2")


# ---- at random moments ----------------------------------------------------------------------------------------------------

LAST = ["--updates", "30", "--save-every", "3", "--ranks-timeout", "2"]
HOW = ["-n", "3", "--max-restarts", "0", "--grace", "2"]


def fault(folder, what, draw):
    """Seconds from the fault until all ranks and launch are gone; 0: it had ended, or not begun. At any moment: before the first
    update, too."""
    cut = work / folder / "cut"
    launch = Launch(folder, HOW, *LAST, EXPHIL_FAKE_NCCL_CUT=str(cut))
    launch.wait_for_lines(draw.randrange(0, 28))
    time.sleep(draw.random() * 0.05)
    there = launch.ranks()
    if not there:
        launch.end()
        return 0.0
    number, began = draw.choice(sorted(there)), time.monotonic()
    if what == "cut":
        Path(f"{cut}-{number}").touch()
    else:
        try:
            os.kill(there[number], what)
        except ProcessLookupError:
            pass
    got, said = launch.end()
    took = time.monotonic() - began
    check(got in (0, 75, 137), f"{folder}: ended with {got}: {said}")
    check(not launch.ranks(), f"{folder}: ranks are left")
    for rank in range(3):
        Path(f"{cut}-{rank}").unlink(missing_ok=True)
    return took if got else 0.0


def goes_on(folder, ranks):
    train(folder, None if ranks == 1 else ["-n", str(ranks)], *(LAST if ranks > 1 else LAST[:-2]), "--resume")
    if ranks == 3:
        same(folder, "never")
    same_data(folder, "never")


def faults(times):
    train("never", HOW, *LAST[:-2])
    for what, name in ((signal.SIGKILL, "killed"), (signal.SIGSTOP, "stopped"), ("cut", "cut off")):
        draw, longest, seen = random.Random(times), 0.0, 0
        for i in range(times):
            folder = f"{name.split()[0]}{i}"
            took = fault(folder, what, draw)
            longest, seen = max(longest, took), seen + (took > 0.0)
            goes_on(folder, 1 + i % 3)
        print(f"{name}: {seen} of {times} times; all had ended after {longest:.1f} s at most; "
              f"{'FAILED' if failed else 'all went on'}", flush=True)


os.environ.update(EXPHIL_BACKEND_DIR=PLUGINS, EXPHIL_NCCL=PLUGINS + "/libfake_nccl.so", EXPHIL_CUBLASLT="none",
                  EXPHIL_EMULATED_GPUS="4")
os.environ.pop("CUDA_VISIBLE_DEVICES", None)
with tempfile.TemporaryDirectory() as made:
    work = Path(made).resolve()
    subprocess.run([EXPHIL, "drill", "--frames", "400", "--seed", "1", "--out", work / "1.slp"], check=True,
                   stdout=subprocess.DEVNULL)
    if len(sys.argv) > 3:
        faults(int(sys.argv[3]))
    else:
        for part in (ranks_are_one, failed_twice, stopped, refused):
            began = time.monotonic()
            part()
            print(f"{part.__name__}: {'FAILED' if failed else 'fine'} ({time.monotonic() - began:.1f} s)", flush=True)
sys.exit(1 if failed else 0)
