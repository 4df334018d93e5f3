#!/usr/bin/env python3
"""Frames learnt a second in Pong, beside PyTorch: the same games, network, loss, passes and batches, in turns, medians.

  bench/learn/speed.py --python PYTHON [--exphil EXPHIL] [--library LIBEXPHIL] [--frames 1000000] [--rounds 3] [--threads 2]

PYTHON: an interpreter that has torch and numpy, as bench/peers/setup.sh makes it.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="that has torch (default: this one)")
    parser.add_argument("--exphil", default="build/release/bin/exphil", help="(default: %(default)s)")
    parser.add_argument("--library", default="build/release/libexphil.so", help="(default: %(default)s)")
    parser.add_argument("--frames", type=int, default=1000000, help="of a run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    asked = parser.parse_args()
    ways = [(f"torch, {'traced, ' * traced}{threads} thread{'s' * (threads > 1)}", traced, threads)
            for traced in (False, True) for threads in sorted({1, asked.threads})]  # fmt: skip
    found = {"exphil": [], **{way[0]: [] for way in ways}}
    with tempfile.TemporaryDirectory() as name:
        for _ in range(asked.rounds):
            own = run(asked.exphil, "learn", "--world", "pong", "--no-previous-action", "--frames", asked.frames, "--threads",
                      asked.threads, "--scores", 0, "--save-minutes", 0, "--json", "--force",
                      "--out", Path(name, "policy"))  # fmt: skip
            found["exphil"].append(own["frames_per_second"])
            for which, traced, threads in ways:
                peer = run(asked.python, Path(__file__).with_name("torch_ppo.py"), Path(asked.library).resolve(), "--threads",
                           threads, "--frames", asked.frames // 8, *["--traced"] * traced)  # fmt: skip
                found[which].append(peer["frames_per_second"])
    median = {who: statistics.median(speeds) for who, speeds in found.items()}
    best = max(median[way[0]] for way in ways)
    for who, speed in median.items():
        print(f"{who:26} {speed:9.0f} frames/s  ({', '.join(f'{s:.0f}' for s in found[who])})")
    print(f"{median['exphil'] / best:.2f} times the best of torch {peer['torch']}; {asked.threads} threads")


if __name__ == "__main__":
    main()
