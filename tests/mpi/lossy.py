#!/usr/bin/env python3
"""`exphil train --mpi` goes on without ranks that are lost, whichever it is and wherever it was.

  lossy.py EXPHIL SOURCE         SOURCE: this tree, of which a libexphil_mpi without MPI is compiled (tests/mpi/lossy.c)
  lossy.py EXPHIL SOURCE all     by hand: at every sum of the run, not at some

This program makes the sums of the ranks, so it says at which of them one is lost: either when it has done all that comes before the
sum, or when it has the sum before and has done nothing with it. The policy has no state that a rank could take with it: what is
left must be the run that lost nobody, but for rounding, and with shards to the bit.
"""
import array
import itertools
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXPHIL, SOURCE = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()
EVERY = len(sys.argv) > 3
HANGS_S = 300
UPDATES, LOST = 12, 75
SMALL = ["--port", "1", "--blocks", "mlp", "--hidden", "8", "--head-width", "8", "--time", "10", "--batch", "4", "--rate", "0.001",
         "--schedule", "constant", "--alone", "0", "--threads", "1", "--save-minutes", "0", "--out", "p.st", "--log", "log"]
PLAN = ["--updates", str(UPDATES), "--save-every", "3", "--held-out", "0.4", "--eval-every", "4", "--keep", "2"]
GAMES = ["../1.slp", "../2.slp", "../3.slp"]
BEFORE, AFTER = "has done all before it", "has done nothing since the one before"
failed = []


def check(fine, text):
    if not fine:
        failed.append(text)
        print("FAILED:", text, flush=True)
    return fine


class Hub:
    """Makes the sums of a run. kills: {number of the sum: (rank as it was numbered at first, BEFORE or AFTER)}; late: the sum that
    all ranks are told to have timed out. apart: each rank above 0 has a folder of its own."""

    def __init__(self, folder, ranks, options, kills=(), late=None, apart=False):
        self.folder, self.kills, self.late = folder, dict(kills), late
        self.sums, self.shrunk, self.ended, self.first_logged = 0, 0, False, None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind(str(folder / "door"))
            door.listen(ranks)
            places = [folder / str(k) if apart and k else folder for k in range(ranks)]
            for place in places:
                place.mkdir(exist_ok=True)
            games = [str(work / Path(game).name) for game in GAMES]
            self.process = [subprocess.Popen([EXPHIL, "train", "--mpi", *SMALL, *options, *games], cwd=places[k],
                                             stdin=subprocess.DEVNULL, stdout=open(folder / f"out{k}", "w"),
                                             stderr=open(folder / f"err{k}", "w"), start_new_session=True,
                                             env={**os.environ, "LOSSY_SOCKET": str(folder / "door"), "LOSSY_RANK": str(k),
                                                  "LOSSY_RANKS": str(ranks)}) for k in range(ranks)]
            timer = threading.Timer(HANGS_S, self.hang)
            timer.start()
            self.rank = {}
            for _ in range(ranks):
                end = door.accept()[0]
                self.rank[struct.unpack("q", self.read(end, 8))[0]] = end
        os.unlink(folder / "door")
        self.rank = dict(sorted(self.rank.items()))
        self.serve()
        self.status = [process.wait() for process in self.process]
        timer.cancel()

    def hang(self):
        check(False, f"{self.folder.name} hangs")
        for process in self.process:
            process.kill()

    @staticmethod
    def read(end, count):
        data = bytearray()
        while len(data) < count:
            more = end.recv(count - len(data))
            if not more:
                raise ConnectionResetError
            data += more
        return bytes(data)

    def kill(self, k):
        self.process[k].send_signal(signal.SIGKILL)
        self.process[k].wait()
        self.rank.pop(k).close()

    def ask(self):
        """The next request of all ranks that are there, and whether one is gone."""
        asked, gone = {}, False
        for k, end in list(self.rank.items()):
            try:
                what, each, count = struct.unpack("3q", self.read(end, 24))
                asked[k] = (what, each, count, self.read(end, each * count))
            except ConnectionResetError:
                self.rank.pop(k)
                gone = True
        return asked, gone

    def answer(self, data, code=0, places=None):
        for k, end in list(self.rank.items()):
            try:
                end.sendall(struct.pack("3q", code, *(places or {}).get(k, (0, 0))) + (b"" if code else data))
            except OSError:
                pass  # it is gone, which the next request tells

    def serve(self):
        broken = False
        while self.rank:
            asked, gone = self.ask()
            if not asked:
                return
            what, each, count, _ = next(iter(asked.values()))
            if any(one[:3] != (what, each, count) for one in asked.values()):
                check(gone, f"{self.folder.name}: ranks ask for different things at sum {self.sums}")
            which, how = self.kills.get(self.sums, (None, None)) if what == ord("s") else (None, None)
            if what == ord("s"):
                if self.first_logged is None and (self.folder / "log").exists() and (self.folder / "log").stat().st_size:
                    self.first_logged = self.sums
                self.sums += 1
            if how == BEFORE and which in self.rank:
                self.kill(which)
                asked.pop(which)
                gone = True
            broken = broken or gone
            if what == ord("h"):
                broken, self.shrunk = False, self.shrunk + 1
                self.answer(b"", places={k: (i, len(self.rank)) for i, k in enumerate(self.rank)})
            elif broken or self.sums - 1 == self.late:
                self.answer(b"", code=-1 if self.sums - 1 == self.late else -2)
            else:
                self.ended = self.ended or what == ord("e")
                # A rank that is lost at the next sum is gone before it has this one, which the others have.
                which, how = self.kills.get(self.sums, (None, None)) if what == ord("s") else (None, None)
                if how == AFTER and which in self.rank:
                    self.kill(which)
                    broken = True
                self.answer(self.sum(each, [one[3] for one in asked.values()]))

    @staticmethod
    def sum(each, parts):
        if not each or len(parts) == 1:
            return parts[0]
        kind = "d" if each == 8 else "f"
        sums = [array.array(kind, part) for part in parts]
        while len(sums) > 1:  # by a tree, as shards want it
            sums = [array.array(kind, map(float.__add__, *sums[i:i + 2])) if i + 1 < len(sums) else sums[i]
                    for i in range(0, len(sums), 2)]
        return sums[0].tobytes()

    def said(self, what):
        return [(self.folder / f"{what}{k}").read_text() for k in range(len(self.process))]


def run(name, ranks, options, **more):
    folder = work / name
    folder.mkdir()
    return Hub(folder, ranks, options, **more)


def weights(path):
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    return struct.unpack(f"<{(len(data) - 8 - size) // 4}f", data[8 + size:])


def distance(one, other):
    a, b = weights(one), weights(other)
    return (sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b)) ** 0.5


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(("out", "err")))


def lines(folder, kind):
    return [line for line in map(json.loads, (folder / "log").read_text().split("\n")[:-1]) if line["kind"] == kind]


def whole(hub, reference, exact=False):
    """The run is that of the reference."""
    folder, text = hub.folder, hub.folder.name
    lost = [k for k, status in enumerate(hub.status) if status == -signal.SIGKILL]
    if not check(all(status == 0 for k, status in enumerate(hub.status) if k not in lost),
                 f"{text}: status {hub.status}: {hub.said('err')}"):
        return
    check(names(folder) == names(reference), f"{text}: files {names(folder)}, not {names(reference)}")
    updates = [[line["update"] for line in lines(folder, kind)] for kind in ("train", "held_out")]
    expected = [[line["update"] for line in lines(reference, kind)] for kind in ("train", "held_out")]
    check(updates == expected, f"{text}: the log has {updates}, not {expected}")
    check(sum(line["lost"] for line in lines(folder, "ranks")) == len(lost), f"{text}: {lost} lost: {lines(folder, 'ranks')}")
    told = hub.said("out")
    check(sum("p.st: mlp" in one for one in told) == 1, f"{text}: the end is not told once: {told}")
    for name in names(reference):
        if name.endswith((".st", ".safetensors")):
            apart = distance(folder / name, reference / name)
            check(apart == 0.0 if exact else apart < 1e-4, f"{text}: {name} is {apart} apart")
    scores = [[(one["update"], round(one["nll"], 3)) for one in lines(place, "held_out")] for place in (folder, reference)]
    check(scores[0] == scores[1], f"{text}: scores {scores}")


def alone(name, *options):
    (work / name).mkdir()
    subprocess.run([EXPHIL, "train", *SMALL, *PLAN, *options, *GAMES], cwd=work / name, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return work / name


def one_loss(sums, first, reference):
    """Ranks 0 and 2 of 3, at each of the sums; before the first update the run ends, and may be tried again."""
    def lose(number, which, how):
        hub = run(f"{number}-{which}-{'before' if how == BEFORE else 'after'}", 3, PLAN, kills={number: (which, how)})
        if number > first:
            check(hub.shrunk == 1, f"{hub.folder.name}: joined {hub.shrunk} times")
            whole(hub, reference)
        else:
            check(all(status in (LOST, -signal.SIGKILL) for status in hub.status) or all(
                status in (0, -signal.SIGKILL) for status in hub.status), f"{hub.folder.name}: {hub.status}: {hub.said('err')}")
        shutil.rmtree(hub.folder)
    step = 1 if EVERY else max(1, (sums - first) // 16)
    chosen = [*range(1, first, 1 if EVERY else max(1, first // 3)), *range(first + 1, sums, step)]
    cases = [(number, which, how) for number in chosen for which, how in itertools.product((0, 2), (BEFORE, AFTER))]
    if not EVERY:
        cases = [case for i, case in enumerate(cases) if case[1] == 0 or i % 3 == 0]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda case: lose(*case), cases))
    return len(cases)


def several(sums, first, reference):
    middle = (first + sums) // 2
    whole(run("two", 4, PLAN, kills={middle: (0, BEFORE), middle + 9: (1, AFTER)}), reference)
    whole(run("at once", 4, PLAN, kills={middle: (0, AFTER), middle + 1: (1, BEFORE)}), reference)
    # one more while the others join anew: some of the sums of that
    for more in (2, 3, 5):
        whole(run(f"joining{more}", 4, PLAN, kills={middle: (0, BEFORE), middle + more - 1: (2, BEFORE)}), reference)
    whole(run("last", 3, PLAN, kills={middle: (2, BEFORE), middle + 11: (0, BEFORE)}), reference)


def bound(sums, first):
    """Where shards bind ranks to each other."""
    reference = alone("shards", "--shards", "2")
    whole(run("shards2", 2, [*PLAN, "--shards", "2"], kills={first + 9: (0, BEFORE)}), reference, exact=True)
    hub = run("shards4", 4, [*PLAN, "--shards", "4"], kills={first + 9: (3, BEFORE)})
    check(hub.status == [LOST, LOST, LOST, -signal.SIGKILL] and "3 ranks do not divide 4 shards" in hub.said("err")[0],
          f"shards4: {hub.status}: {hub.said('err')}")
    hub = run("apart", 3, PLAN, kills={first + 9: (0, BEFORE)}, apart=True)
    check(hub.status == [-signal.SIGKILL, LOST, LOST] and "p.st.lock: No such file" in "".join(hub.said("err")),
          f"apart: {hub.status}: {hub.said('err')}")
    check(not list((hub.folder / "1").iterdir()), "a rank that does not see OUT writes files")
    hub = run("late", 3, PLAN, late=first + 9)
    check(hub.status == [LOST] * 3 and not hub.shrunk, f"late: {hub.status}, joined {hub.shrunk} times: {hub.said('err')}")


def goes_on(sums, first):
    """What a rank that became the first has written, a run alone goes on from; a log that only the record names goes on too."""
    end = ["--updates", "6", *PLAN[2:]]
    hub = run("again", 2, end, kills={first + 9: (0, BEFORE)})
    folder = hub.folder
    check(hub.status == [-signal.SIGKILL, 0], f"again: {hub.status}: {hub.said('err')}")
    unnamed = [word for word in SMALL if word not in ("--log", "log")]
    subprocess.run([EXPHIL, "train", *unnamed, *PLAN, "--resume", *GAMES], cwd=folder, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    made = [line["update"] for line in lines(folder, "train")]
    check(made == list(range(1, UPDATES + 1)), f"again: the log has updates {made}")


with tempfile.TemporaryDirectory() as made:
    work = Path(made).resolve()
    library = work / "liblossy.so"
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-I", SOURCE / "include",
                    "-I", SOURCE / "mpi", SOURCE / "tests/mpi/lossy.c", "-o", library], check=True)
    os.environ["EXPHIL_MPI_LIBRARY"] = str(library)
    for seed in (1, 2, 3):
        subprocess.run([EXPHIL, "drill", "--frames", "300", "--seed", str(seed), "--out", work / f"{seed}.slp"], check=True,
                       stdout=subprocess.DEVNULL)
    reference = alone("alone")
    never = run("never", 3, PLAN)
    check(never.ended and never.shrunk == 0 and never.first_logged, f"never: {never.status}: {never.said('err')}")
    whole(never, reference)
    sums, first = never.sums, never.first_logged
    count = one_loss(sums, first, reference)
    several(sums, first, reference)
    bound(sums, first)
    goes_on(sums, first)
    print(f"{'FAILED' if failed else 'fine'}: {sums} sums, the first update after {first}; {count} runs that lost one rank")
sys.exit(1 if failed else 0)
