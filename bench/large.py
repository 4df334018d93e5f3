#!/usr/bin/env python3
"""Training on a corpus of games far larger than the memory that it may use, against training on a small one: frames a second
in turns, and the most memory that the training ever holds, looked at from outside.

The large corpus is made once of the small one (--frames of it, each game many times with other seeds) and takes about 26
bytes a frame of disk. Only Linux tells what another process holds (/proc)."""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def call(words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"large.py: {' '.join(map(str, words))} ended with status {done.returncode}")
    return done.stdout


def watched(words):
    """What a program printed, and the most bytes that it held, by looks every 20 ms and by the kernel's own mark."""
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE)
    most = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        held = [int(line.split()[1]) for line in status.splitlines() if line.startswith(("VmRSS", "VmHWM"))]
        most = max([most, *held])
        time.sleep(0.02)
    out = process.stdout.read()
    if process.wait():
        sys.exit(f"large.py: {' '.join(map(str, words))} ended with status {process.returncode}")
    return out, 1024 * most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exphil", default="build/release/bin/exphil", help="the program (default: %(default)s)")
    parser.add_argument("--replays", required=True, metavar="FOLDER", help="of replays, for the small corpus")
    parser.add_argument("--large", metavar="FILE", help="the large corpus: read if it is there, else made and kept")
    parser.add_argument("--frames", type=float, default=1e8, help="of the large corpus (default: %(default)g)")
    parser.add_argument("--memory", type=int, default=512, metavar="MIB", help="for training (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of both in turns (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=150, help="of one training (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of training (default: %(default)s)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = folder / "small.games", Path(asked.large or folder / "large.games")
        call([asked.exphil, "corpus", asked.replays, "--quiet", "--out", small])
        if not large.exists():
            call([asked.exphil, "bench", "data", "games", "--quick", "--plain", "--replays", asked.replays, "--large", large,
                  "--large-frames", int(asked.frames)])  # fmt: skip
        for mode, more in (("carry", []), ("window", ["--mode", "window", "--window", 60, "--shuffle-frames", 65536])):
            rates, most = {small: [], large: []}, {small: 0, large: 0}
            for _ in range(asked.rounds):
                for corpus in rates:
                    words = [asked.exphil, "train", "--blocks", "gru", "--hidden", 64, "--batch", 64, "--threads", asked.threads,
                             "--updates", asked.updates, "--memory", f"{asked.memory}MiB", "--score-frames", 1, "--alone", 0,
                             "--json", "--quiet", "--force", "--out", folder / "policy", *more, corpus]  # fmt: skip
                    out, held = watched(words)
                    rates[corpus].append(json.loads(out)["frames_per_second"])
                    most[corpus] = max(most[corpus], held)
            a, b = (statistics.median(rates[corpus]) for corpus in (small, large))
            print(f"{mode}: small {a:.0f} frames/s, large {b:.0f} frames/s: {b / a:.3f} of it; most memory "
                  f"{most[small] / 2**20:.0f} and {most[large] / 2**20:.0f} MiB, {asked.memory} allowed", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
