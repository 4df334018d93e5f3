#!/usr/bin/env python3
"""`exphil train --mpi`: the run of several ranks is that of one, whatever ends it.

  train.py EXPHIL SOURCE     SOURCE: this tree, of which libexphil_mpi is compiled with each MPI that is here
  train.py EXPHIL SOURCE N   by hand: N times each a rank is killed, stopped, and cut off from the others, at a random moment;
                             says how long the others went on at most; 1, 2 or 3 ranks go on with the data of a run that never
                             failed, 3 with its bits. Cut off: the cable between two network name spaces (root, iproute2, Open MPI)

A moment is a number of lines of the log after which a signal is sent; where the run then really is, is the scheduler's business,
and no assertion depends on it. Time limits only end what hangs.
"""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXPHIL, SOURCE = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()
MPIS = [("ompi-c", "mpirun.openmpi"), ("mpich", "mpirun.mpich")]  # a module of pkg-config, and what starts its ranks
HANGS_S = 300
SMALL = ["--port", "1", "--blocks", "gru", "--hidden", "8", "--head-width", "8", "--time", "20", "--batch", "6", "--rate", "0.01",
         "--schedule", "constant", "--alone", "0", "--quiet"]
GAMES = ["../1.slp", "../2.slp", "../3.slp"]
ENDLESS = ["--updates", "1000000", "--save-every", "4", "--save-minutes", "0.001"]
FEW = 10  # updates
failed = []


def check(fine, text):
    if not fine:
        failed.append(text)
        print("FAILED:", text)


def apart():
    """An environment for one launch of Open MPI, whose daemons share a folder: what is left of one takes it from the next."""
    return {**os.environ, "OMPI_MCA_orte_tmpdir_base": tempfile.mkdtemp(dir=work)}


class Launch:
    """Ranks in a folder; options that differ from rank to rank are a list for each of them."""

    def __init__(self, folder, ranks, *options, each=None, watcher=None, starter=None):
        self.folder = work / folder
        self.folder.mkdir(exist_ok=True)
        parts = each or [[*options, *GAMES]]
        words = [*(watcher or []), *(starter or [mpirun])]
        for i, part in enumerate(parts):
            words += [":"] * (i > 0) + ["-n", str(1 if each else ranks), EXPHIL, "train", "--mpi", *SMALL, "--out", "p.st", "--log",
                                        "log", *part]
        self.process = subprocess.Popen(words, cwd=self.folder, env=apart(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True)

    def wait_for_lines(self, count):
        began = time.monotonic()
        while len(log(self.folder)) < count and self.process.poll() is None and time.monotonic() - began < HANGS_S:
            time.sleep(0.01)

    def ranks(self):
        """The process of each rank that is there."""
        found = {}
        for place in Path("/proc").iterdir():
            try:
                if place.name.isdigit() and os.readlink(place / "cwd") == str(self.folder) and \
                        os.readlink(place / "exe") == os.path.realpath(EXPHIL):
                    own = dict(one.partition("=")[::2] for one in (place / "environ").read_text().split("\0"))
                    found[int(own.get("OMPI_COMM_WORLD_RANK", own.get("PMI_RANK", -1)))] = int(place.name)
            except OSError:  # it has ended, or is not ours
                pass
        return found

    def rank(self, number):
        """The process of a rank; None: the launch has ended, as it may where ranks wait for each other for so short a time."""
        process = self.ranks().get(number)
        if process:
            return process
        if self.process.poll() is None:
            sys.exit(f"FAILED: no process is rank {number}")
        return None

    def end(self):
        """Status and what was said."""
        try:
            out, err = self.process.communicate(timeout=HANGS_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            sys.exit(f"FAILED: {self.folder.name} hangs")
        return self.process.returncode, out + err


def lines(folder, name="log"):
    path = work / folder / name
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def log(folder):
    return [line for line in lines(folder) if line["kind"] == "train"]


def train(folder, ranks, *options, status=0, says="", each=None):
    got, said = Launch(folder, ranks, *options, each=each).end()
    check(got == status, f"{folder}: {ranks} ranks, {' '.join(options)}: ended with {got}, not {status}: {said}")
    check(says in said, f"{folder}: {ranks} ranks, {' '.join(options)}: does not say {says!r}: {said}")
    return said


def alone(folder, *options):
    (work / folder).mkdir(exist_ok=True)
    subprocess.run([EXPHIL, "train", *SMALL, "--out", "p.st", "--log", "log", *options, *GAMES], cwd=work / folder, check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def files(folder):
    """What a run leaves that no clock has made."""
    left = {path.name: path.read_bytes() for path in (work / folder).iterdir()}
    return {name: data for name, data in left.items() if name not in ("log", "log.1", "p.st.run.json", "p.st.lock")}


def same(one, other):
    check(files(one) == files(other), f"{one} and {other} leave different files: " +
          str([name for name in {**files(one), **files(other)} if files(one).get(name) != files(other).get(name)]))


def weights(folder):
    data = (work / folder / "p.st").read_bytes()
    size, = struct.unpack("<Q", data[:8])
    return struct.unpack(f"<{(len(data) - 8 - size) // 4}f", data[8 + size:])


def distance(one, other):
    a, b = weights(one), weights(other)
    return (sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b)) ** 0.5


CLOCKS = ("frames_per_second", "waited_ns")


def same_logs(one, other):
    """To the last bit, but for what a clock has made."""
    both = [[{key: value for key, value in line.items() if key not in CLOCKS} for line in log(folder)] for folder in (one, other)]
    check(both[0] == both[1], f"the logs of {one} and {other} differ")


def close(one, other, first=1, last=1000000):
    """The same updates of the same data; the losses of these, where states were the same, differ by rounding."""
    exact = [[(line["update"], line["epoch"], line["frames"], line["rate"]) for line in log(folder)] for folder in (one, other)]
    check(exact[0] == exact[1], f"the logs of {one} and {other} tell of different updates")
    for a, b in zip(log(one), log(other)):
        if first <= a["update"] <= last and abs(a["loss"] - b["loss"]) > 1e-4 * abs(b["loss"]):
            return check(False, f"loss of {one} and {other} in update {a['update']}: {a['loss']} and {b['loss']}")


def together(calls, **options):
    """Several at a time: a launch mostly waits."""
    with ThreadPoolExecutor(3) as pool:
        return [call.result() for call in [pool.submit(call[0], *call[1:], **options) for call in calls]]


# ---- runs that end by themselves ------------------------------------------------------------------------------------------

def ranks_are_one():
    plan = ["--updates", str(FEW), "--held-out", "0.4", "--eval-every", "4", "--keep", "2", "--save-every", "5"]
    alone("alone", *plan)
    runs = {"of1": 1, "of2": 2, "of3": 3, "again": 3}
    together([(train, name, ranks, *plan) for name, ranks in runs.items()], says="p.st: gru")
    for name in runs:
        close(name, "alone")
        found = distance(name, "alone")
        check(found < 1e-4, f"weights of {name} and a run alone are {found:.2g} apart")
        check(sorted(files(name)) == sorted(files("alone")), f"{name} leaves {sorted(files(name))}")
    same("of1", "alone")
    same_logs("of1", "alone")
    same("again", "of3")
    same_logs("again", "of3")
    held = [[(line["update"], round(line["nll"], 3)) for line in lines(folder) if line["kind"] == "held_out"]
            for folder in ("of3", "alone")]
    check(held[0] == held[1] and held[0], f"held-out scores differ: {held}")
    # With shards the number of ranks changes no bit, with none of them too.
    alone("shards0", *plan, "--shards", "2")
    together([(train, f"shards{ranks}", ranks, *plan, "--shards", "2") for ranks in (1, 2)])
    for ranks in (1, 2):
        same(f"shards{ranks}", "shards0")
        same_logs(f"shards{ranks}", "shards0")
    check(files("shards0")["p.st"] != files("alone")["p.st"], "shards add up in the order of a batch at once")
    train("shards3", 3, *plan, "--shards", "2", status=1, says="3 ranks do not divide 2 shards")
    record = json.loads((work / "of3/p.st.run.json").read_text())
    check("mpi" not in record and "mpi" not in record["defaults"], "the record has the ranks")
    # What the clock of one rank says, all do.
    train("clock", 2, each=[[*plan, "--save-minutes", minutes, *GAMES] for minutes in ("0", "0.00001")])
    # All that is to be said is said once.
    options = [word for word in SMALL if word != "--quiet"]
    said = subprocess.run([mpirun, "-n", "3", EXPHIL, "train", "--mpi", *options, "--updates", "3", "--out", "p.st", *GAMES],
                          cwd=work / "said", env=apart(), capture_output=True, text=True, stdin=subprocess.DEVNULL).stderr
    check(said.count("sequences at a time on 3 ranks") == 1 and "  3 ranks  " in said, f"progress: {said}")


# ---- what is refused ------------------------------------------------------------------------------------------------------

def differ(folder, says, *each):
    said = train(folder, 2, status=1, says=says, each=each)
    check(said.count(says) == 1, f"said by more ranks than one: {said}")


def refused():
    plan = ["--updates", "3"]
    here = [*plan, GAMES[0]]
    unequal = {"data": ("rank 1 has other rows of data", [*plan, GAMES[1]]),
               "wide": ("rank 1 has another --hidden than rank 0", [*here, "--hidden", "16"]),
               "often": ("rank 1 has another --eval-every than rank 0", [*here, "--eval-every", "2"]),
               "kept": ("rank 1 has another --keep than rank 0", [*here, "--keep", "2"]),
               "scored": ("rank 1 has another --score-frames than rank 0", [*here, "--score-frames", "5"]),
               "none": ("exphil: rank 1: none.slp", [*plan, "none.slp"])}
    together([(differ, folder, says, here, other) for folder, (says, other) in unequal.items()])
    train("few", 3, *plan, "--batch", "2", status=1, says="--batch 3 is the least")
    for folder in unequal:
        check("p.st" not in files(folder) and not lines(folder), f"a run that was refused leaves {list(files(folder))}")
    before = files("of3")
    said = train("of3", 3, *plan, status=1, says="p.st is there already")
    check(said.count("is there already") == 1, f"said by more ranks than one: {said}")
    check(files("of3") == before, "a run that was refused changed files")
    train("of3", 2, "--resume", "--updates", "12", "--hidden", "16", "--held-out", "0.4", "--keep", "2", status=1,
          says="exphil: --hidden: the")

    train("asked", 2, status=1, says="--mpi: rank 0 has none and rank 1 has --resume", each=[here, [*here, "--resume"]])
    shutil.copytree(work / "of2", work / "seen")
    (work / "seen/other").mkdir()
    train("seen", 2, status=1, says="--mpi: rank 0 has a run in --out p.st and rank 1 has none there",
          each=[[*plan, "--resume", *GAMES], [*plan, "--resume", "--out", "other/p.st", *GAMES]])

    def one(words, status, says, **variables):
        done = subprocess.run([EXPHIL, *words], cwd=work, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**os.environ, **variables})
        check(done.returncode == status and says in done.stderr, f"{words}: {done}")

    one(["train", "--mpi", "1.slp", "--out", "x.st"], 1, "exphil: --mpi: /none.so", EXPHIL_MPI_LIBRARY="/none.so")
    one(["train", "--mpi", "1.slp", "--out", "x.st"], 1, "has no exphil_mpi_open_world", EXPHIL_MPI_LIBRARY="libm.so.6")
    one(["train", "--mpi", "1.slp", "--out", "x.st"], 1, "MPICH has started 2 processes, and MPI sees this one alone", PMI_SIZE="2",
        PMI_RANK="0", MPI_LOCALRANKID="0", MPI_LOCALNRANKS="2")
    one(["train", "1.slp", "--out", "x.st"], 1, "exphil launch has started 2 processes, and each would be a run of its own",
        EXPHIL_RANK="0", EXPHIL_RANKS="2", EXPHIL_LOCAL_RANK="0", EXPHIL_LOCAL_RANKS="2")
    one(["train", "--mpi", "--value", "detached", "1.slp", "--out", "x.st"], 2, "--mpi and --value")
    one(["train", "--ranks-timeout", "5", "1.slp", "--out", "x.st"], 2, "--ranks-timeout is for several processes")
    for command in ("eval", "learn", "play"):
        one([command, "--mpi"], 2, "unknown option --mpi")


def bench(*words, ranks=2, status=0):
    """What exphil bench says; a hang ends the test."""
    got = subprocess.run([mpirun, "-n", str(ranks), EXPHIL, "bench", *words], cwd=work, env=apart(), stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=HANGS_S)
    check(got.returncode == status, f"bench {' '.join(words)}: ended with {got.returncode}, not {status}: {got.stderr}")
    return got


def measured():
    """exphil bench ranks: whole rows of all ways, and of what is reduced; no figure is judged."""
    def report(*words):
        return json.loads(bench("ranks", "--mpi", "--quick", "--json", *words).stdout)
    of_two = report("--batch", "2", "--time", "4")
    alone("learnt", "--updates", "2", "--save-minutes", "0")
    of_file = report("--batch", "3", "--time", "4", "--weights", "learnt/p.st")
    for found, names in ((of_two, ("mamba*2 256", "lstm*2 256")), (of_file, ("weights",))):
        ways = [(row["what"].partition(",")[0], row["how"]) for row in found["rows"] if row["subject"] == "update, 2 ranks"]
        check(ways == [(name, way) for name in names for way in ("alone", "side by side", "weak", "strong")], f"rows: {ways}")
        reduced = [row["what"] for row in found["rows"] if row["subject"] == "reduction, 2 ranks"]
        check(reduced == ["meeting", "sum", "sum", *names], f"rows of reductions: {reduced}")
        check(all(row["p50_ns"] > 0 and row["items"] > 0 for row in found["rows"]), "a time is not positive")
        check(len(found["facts"]) == 2 + 8 * len(names), f"facts: {found['facts'].keys()}")
        check(all(one["value"] > 0 for one in found["facts"].values()), f"facts: {found['facts']}")
        for name in names:
            check(found["facts"][f"{name}: calls of all_reduce in an update"]["value"] == 3, "an update reduces three times")
    data = (work / "learnt/p.st").read_bytes()
    size, = struct.unpack("<Q", data[:8])
    floats = of_file["facts"]["weights: floats that an update adds up"]["value"]
    check(floats >= (len(data) - 8 - size) // 4, f"an update adds up {floats} floats, and the policy has more weights")
    strong = [row["what"] for row in of_file["rows"] if row["how"] == "strong"]
    check(strong == ["weights, B=1 T=4"], f"the first of two ranks has one of three lanes: {strong}")
    bench("ranks", "--mpi", ranks=1, status=2)
    bench("ranks", ranks=1, status=2)
    bench("floors", "--mpi", ranks=1, status=2)
    bench("ranks", "--mpi", "--plot", "x.svg", ranks=1, status=2)
    (work / "there.json").write_text("")
    bench("ranks", "--mpi", "--quick", "--out", "there.json", "nothing", status=1)


# ---- runs that are ended --------------------------------------------------------------------------------------------------

def ended(folder, number, which, status, says, *options):
    """Sends a signal to a rank, or to what started them; returns the last update."""
    launch = Launch(folder, 3, *ENDLESS, *options)
    launch.wait_for_lines(8)
    process = launch.process.pid if number is None else launch.rank(number)
    if process:
        os.kill(process, which)
    got, said = launch.end()
    check(got == status if status else got != 0, f"{folder}: ended with {got}, not {status}: {said}")
    check(says in said, f"{folder}: does not say {says!r}: {said}")
    return max([line["update"] for line in log(folder)], default=0)


def launcher_ended():
    """What comes of SIGTERM to mpirun is its own business; a checkpoint is whole."""
    done = ended("launcher", None, signal.SIGTERM, None, "")
    train("launcher", 2, "--updates", str(done + 3), "--resume")
    check([line["update"] for line in log("launcher")] == [*range(1, done + 4)], "updates are missing in the log")
    return 0


def watched():
    """exphil launch starts the ranks again, twice."""
    plan = ["--updates", "200", "--save-every", "8"]
    launch = Launch("watched", 2, *plan, "--resume", watcher=[EXPHIL, "launch", "-n", "1", "--keep-ranks", "--"])
    for count in (20, 60):
        launch.wait_for_lines(count)
        process = launch.ranks().get(1)
        if process:
            os.kill(process, signal.SIGKILL)
    got, said = launch.end()
    check(got == 0, f"watched: ended with {got}: {said}")
    train("unwatched", 2, *plan)
    same("watched", "unwatched")


def go_on():
    done = together([(ended, "term", 2, signal.SIGTERM, 143, "exphil: stopped by SIGTERM after update"),
                     (ended, "kill", 0, signal.SIGKILL, None, ""),
                     (ended, "stop", 1, signal.SIGSTOP, 75, "--mpi: rank ", "--ranks-timeout", "2"),
                     (launcher_ended,)])
    last = ["--updates", str(max(done) + 5), "--save-every", "4"]
    shutil.copytree(work / "term", work / "two")
    shutil.copytree(work / "term", work / "one")
    again = [(train, folder, 3, *last, "--resume") for folder in ("term", "kill", "stop")]
    # Another number of ranks, none of them by MPI.
    together([(train, "never", 3, *last), *again, (train, "two", 2, *last, "--resume"), (alone, "one", *last, "--resume")])
    for folder in ("term", "kill", "stop"):
        same(folder, "never")
        same_logs(folder, "never")
    for folder in ("two", "one"):
        close(folder, "never", done[0] + 1, done[0] + 3)


# ---- at random moments ----------------------------------------------------------------------------------------------------

LAST = ["--updates", "60", "--save-every", "4"]


def fault(which, folder, draw):
    """Seconds from the signal until all ranks and what started them are gone. At any moment: before the first update, too."""
    launch = Launch(folder, 3, *LAST, "--ranks-timeout", "2")
    launch.wait_for_lines(draw.randrange(0, 50))
    time.sleep(draw.random() * 0.02)
    names = [number for number in range(3) if number in launch.ranks()]
    if not names:
        launch.end()  # it has come to its end, or has not begun
        return 0.0
    number, began = draw.choice(names), time.monotonic()
    process = launch.rank(number)
    if process:
        os.kill(process, which)
    launch.end()
    while launch.ranks() and time.monotonic() - began < HANGS_S:  # what mpirun has killed may outlive it by a moment
        time.sleep(0.01)
    check(not launch.ranks(), f"{folder}: ranks are left")
    return time.monotonic() - began


class Cable:
    """Two network name spaces that only a cable joins: ranks 0 and 1 on the first, rank 2 on the second."""
    NETWORK = "10.213.78"  # of these two name spaces alone

    def __init__(self):
        self.hosts = [f"exphil-{side}-{os.getpid()}" for side in "ab"]
        for host in self.hosts:
            self.run("netns", "add", host)
        self.run("-n", self.hosts[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", self.hosts[1])
        for i, host in enumerate(self.hosts):
            self.run("-n", host, "address", "add", f"{self.NETWORK}.{i + 1}/24", "dev", "cable")
            self.run("-n", host, "link", "set", "lo", "up")
        self.join(True)
        self.enter = work / "enter"  # what stands in the place of ssh: HOST COMMAND...
        self.enter.write_text(f"#!/bin/sh\nshift\nexec ip netns exec {self.hosts[1]} unshare --uts sh -c "
                              "'hostname exphil-b; exec sh -c \"$*\"' sh \"$@\"\n")
        self.enter.chmod(0o755)

    @staticmethod
    def run(*words):
        subprocess.run(["ip", *words], check=True)

    def join(self, joined):
        for host in self.hosts:
            self.run("-n", host, "link", "set", "cable", "up" if joined else "down")

    def mpirun(self):
        a, b = (f"{self.NETWORK}.{i}" for i in (1, 2))
        return ["ip", "netns", "exec", self.hosts[0], "unshare", "--uts", "sh", "-c", 'hostname exphil-a; exec "$@"', "sh", mpirun,
                "--mca", "plm_rsh_agent", str(self.enter), "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "cable",
                "--mca", "oob_tcp_if_include", "cable", "--host", f"{a}:2,{b}", "--bind-to", "none", "-x", "EXPHIL_MPI_LIBRARY",
                "--wdir"]  # and a folder

    def close(self):
        for host in self.hosts:
            self.run("netns", "delete", host)


def cut_off(cable, folder, draw):
    """Seconds from the cut until all ranks are gone, on both sides. Open MPI 4's mpirun does not end by itself."""
    launch = Launch(folder, 3, *LAST, "--mpi-timeout", "2", starter=[*cable.mpirun(), str(work / folder)])
    launch.wait_for_lines(draw.randrange(0, 50))
    time.sleep(draw.random() * 0.02)
    there, began = launch.ranks(), time.monotonic()
    cable.join(False)
    while launch.ranks() and time.monotonic() - began < HANGS_S:
        time.sleep(0.01)
    took = time.monotonic() - began
    check(not launch.ranks(), f"{folder}: ranks are left")
    for host in cable.hosts:  # mpirun, and what it started on the other side
        found = subprocess.run(["ip", "netns", "pids", host], check=True, capture_output=True, text=True).stdout.split()
        subprocess.run(["kill", "-KILL", *found], check=False, stderr=subprocess.DEVNULL)
    launch.end()
    cable.join(True)
    return took if there else 0.0


def goes_on(folder, ranks):
    """A run that came to its end before the signal has nothing left to do."""
    if ranks == 1:
        alone(folder, *LAST, "--resume")
    else:
        train(folder, ranks, *LAST, "--resume")
    if ranks == 3:
        same(folder, "never")
    exact = [[(line["update"], line["epoch"], line["frames"]) for line in log(one)] for one in (folder, "never")]
    check(exact[0] == exact[1], f"{folder}: other data than those of the run that never failed")


def faults(times):
    train("never", 3, *LAST)
    cable = Cable() if os.getuid() == 0 and shutil.which("ip") and mpirun == "mpirun.openmpi" else None
    ways = {"killed": lambda *words: fault(signal.SIGKILL, *words), "stopped": lambda *words: fault(signal.SIGSTOP, *words)}
    if cable:
        ways["cut off"] = lambda *words: cut_off(cable, *words)
    else:
        print("SKIPPED: cut off: not root, no ip, or another MPI")
    try:
        for name, way in ways.items():
            draw, longest, seen = random.Random(times), 0.0, 0
            for i in range(times):
                took = way(f"{name[:3]}{i}", draw)
                longest, seen = max(longest, took), seen + (took > 0.0)
                goes_on(f"{name[:3]}{i}", 1 + i % 3)
            print(f"{name}: {seen} of {times} times; all had ended after {longest:.1f} s at most; "
                  f"{'FAILED' if failed else 'all went on'}", flush=True)
    finally:
        if cable:
            cable.close()


def library(module):
    """libexphil_mpi of this tree; None: that MPI is not here."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", module], capture_output=True, text=True)
    if flags.returncode != 0:
        return None
    made = work / f"libexphil_mpi.{module}.so"
    words = ["-std=c11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-I", SOURCE / "include"]
    subprocess.run([os.environ.get("CC", "cc"), *words, SOURCE / "mpi/exphil_mpi.c", "-o", made, *flags.stdout.split()], check=True)
    return str(made)


# One process a core is MPI's habit; here there are more, and it may be root.
os.environ.update(OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_mpi_yield_when_idle="1")
ran = None
for module, mpirun in MPIS:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        made = library(module) if shutil.which("pkg-config") and shutil.which(mpirun) else None
        if not made:
            print(f"SKIPPED: no {module} with {mpirun}: exphil train --mpi is untested with it")
            continue
        os.environ["EXPHIL_MPI_LIBRARY"] = made
        for seed in (1, 2, 3):
            subprocess.run([EXPHIL, "drill", "--frames", "400", "--seed", str(seed), "--out", work / f"{seed}.slp"], check=True,
                           stdout=subprocess.DEVNULL)
        (work / "said").mkdir()
        began = time.monotonic()
        if len(sys.argv) > 3:
            faults(int(sys.argv[3]))
            break
        ranks_are_one()
        if not ran:
            refused()
            measured()
            go_on()
            watched()
        ran = module
        print(f"{module}: {'FAILED' if failed else 'fine'} ({time.monotonic() - began:.1f} s)")
sys.exit(1 if failed else 0 if ran or len(sys.argv) > 3 else 77)
