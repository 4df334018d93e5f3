#!/usr/bin/env python3
"""`exphil train --mpi` where ranks outlive one that is killed, many times: the others go on to the end.

  survivors.py [--times N] [--first SEED] EXPHIL LIBRARY MPIRUN [WORD]...

By hand: MPIRUN with its words starts four ranks of a fault-tolerant MPI (mpirun --with-ft ulfm --map-by :OVERSUBSCRIBE -n 4),
LIBRARY is libexphil_mpi for it. Of the four first one, then another is killed, at moments that no one chose, any rank, rank 0 too.
When the second is lost the library compares the weights of those that are left. The policy has no state that a lost rank takes
with it: so the run leaves the weights of one that lost nobody, but for rounding, and its log has each update once.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

HANGS_S = 300
RANKS, UPDATES = 4, 400
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--times", type=int, default=20)
parser.add_argument("--first", type=int, default=1)
parser.add_argument("exphil")
parser.add_argument("library")
parser.add_argument("mpirun", nargs=argparse.REMAINDER)
given = parser.parse_args()
exphil = os.path.abspath(given.exphil)
os.environ["EXPHIL_MPI_LIBRARY"] = os.path.abspath(given.library)
OPTIONS = ["--port", "1", "--blocks", "mlp", "--hidden", "8", "--head-width", "8", "--time", "10", "--batch", "8",
           "--rate", "0.001", "--alone", "0", "--updates", str(UPDATES), "--save-every", "8", "--held-out", "0.4",
           "--eval-every", "20", "--keep", "2", "--out", "p.st", "--log", "log", "../1.slp", "../2.slp", "../3.slp"]


def ranks(folder):
    found = {}
    for place in pathlib.Path("/proc").iterdir():
        try:
            if place.name.isdigit() and os.readlink(place / "cwd") == str(folder) and os.readlink(place / "exe") == exphil:
                own = dict(one.partition("=")[::2] for one in (place / "environ").read_text().split("\0"))
                found[int(own.get("OMPI_COMM_WORLD_RANK", -1))] = int(place.name)
        except OSError:
            pass
    return found


def lines(folder):
    return (folder / "log").read_text().split("\n")[:-1] if (folder / "log").exists() else []


def weights(folder):
    data = (folder / "p.st").read_bytes()
    size, = struct.unpack("<Q", data[:8])
    return struct.unpack(f"<{(len(data) - 8 - size) // 4}f", data[8 + size:])


def kill(process, folder, draw, after):
    """One rank, once the log has so many lines; returns which, and the seconds until the log goes on or the run has ended."""
    while len(lines(folder)) < after and process.poll() is None:
        time.sleep(0.005)
    time.sleep(draw.random() * 0.02)
    there = ranks(folder)
    if process.poll() is not None or len(there) < 2:
        return None, 0.0
    number, began = draw.choice(sorted(there)), time.monotonic()
    os.kill(there[number], signal.SIGKILL)
    seen = len(lines(folder))
    # More than the line that may have been on its way.
    while len(lines(folder)) < seen + 3 and process.poll() is None and time.monotonic() - began < HANGS_S:
        time.sleep(0.005)
    return number, time.monotonic() - began


def once(work, seed):
    draw, folder = random.Random(seed), work / str(seed)
    folder.mkdir()
    with open(folder / "said", "w") as said:
        process = subprocess.Popen([*given.mpirun, exphil, "train", "--mpi", "--ranks-timeout", "2", *OPTIONS], cwd=folder,
                                   stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
        first = draw.randrange(2, UPDATES // 2)
        both = [kill(process, folder, draw, first), kill(process, folder, draw, first + draw.randrange(5, UPDATES // 3))]
        killed, pause = [number for number, _ in both], max(seconds for _, seconds in both)
        try:
            status = process.wait(HANGS_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            sys.exit(f"FAILED: seed {seed} hangs: {(folder / 'said').read_text()}")
    text = (folder / "said").read_text()
    told = [json.loads(line) for line in lines(folder)]
    updates = [line["update"] for line in told if line["kind"] == "train"]
    lost = sum(line["lost"] for line in told if line["kind"] == "ranks")
    scored = [line["update"] for line in told if line["kind"] == "held_out"]
    wrong = (f"status {status}" if status else
             f"{lost} lost" if lost != sum(number is not None for number in killed) else
             "updates are missing in the log, or there twice" if updates != list(range(1, UPDATES + 1)) else
             f"scores of {scored}" if scored != list(range(20, UPDATES + 1, 20)) else
             f"ranks are left: {ranks(folder)}" if ranks(folder) else None)
    if wrong:
        sys.exit(f"FAILED: seed {seed}, killed {killed}: {wrong}: {text}")
    return killed, pause, folder


with tempfile.TemporaryDirectory() as made:
    work = pathlib.Path(made).resolve()
    for seed in (1, 2, 3):
        subprocess.run([exphil, "drill", "--frames", "400", "--seed", str(seed), "--out", work / f"{seed}.slp"], check=True,
                       stdout=subprocess.DEVNULL)
    (work / "alone").mkdir()
    subprocess.run([exphil, "train", *OPTIONS], cwd=work / "alone", check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    expected = weights(work / "alone")
    names = sorted(path.name for path in (work / "alone").iterdir())
    for seed in range(given.first, given.first + given.times):
        killed, pause, folder = once(work, seed)
        left = sorted(path.name for path in folder.iterdir() if path.name != "said")
        own = weights(folder)
        apart = (sum((x - y) ** 2 for x, y in zip(own, expected)) / sum(y * y for y in expected)) ** 0.5
        if left != names or apart > 1e-3:
            sys.exit(f"FAILED: seed {seed}, killed {killed}: weights {apart:.2g} apart; files {left}, not {names}")
        print(f"seed {seed}: killed {killed}; the log stood still for {pause:.2f} s; {apart:.1g} from a run that lost nobody",
              flush=True)
