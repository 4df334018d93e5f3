#!/usr/bin/env python3
"""Does a policy become better than the one it began as? Pong, in the library's own world: a scripted player is recorded, a policy
imitates it (the clone), then learns against the clone by PPO near the clone, and plays it on starts that neither has seen. The
control learns from rewards that are shuffled among lanes.

  bench/learn/better.py [--exphil EXPHIL] [--record PONG_RECORD] [--frames 3000000] [--seeds 3]

Ends with status 1 where a bar is missed: against the clone at least 0.85 of 200 games with mirrored seats, the interval by start
from 0.75 on, drawn and likeliest; the clone against itself 0.5 +- 0.1; the control at least 0.2 below.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

NET = ["--blocks", "mlp", "--hidden", 64, "--head-width", 64, "--no-previous-action"]


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"better.py: {' '.join(map(str, words))} ended with {done.returncode}")
    return done.stdout


def match(exphil, a, b, *how):
    return json.loads(run(exphil, "match", "--world", "pong", "--games", 200, "--seed", 1000, *how, "--json", a, b))["matches"][0]


def say(who, m):
    thousand = m["frames"] / 1000
    print(f"  {who:34} {m['score']:.3f} ({m['low']:.3f} to {m['high']:.3f}), points in 1,000 frames {m['points'] / thousand:.2f} "
          f"to {m['points_against'] / thousand:.2f}", flush=True)  # fmt: skip


def seed_of(asked, folder, seed):
    """Whether all bars are met."""
    exphil, corpus, clone = asked.exphil, folder / f"{seed}.corpus", folder / f"clone{seed}.safetensors"
    print(f"seed {seed}: {run(asked.record, corpus, 60000, seed).split(': ')[1].strip()}", flush=True)
    run(exphil, "train", "--quiet", "--json", *NET, "--rate", 0.003, "--epochs", 16, "--seed", seed, "--out", clone, corpus)
    made = {}
    for name, more in (("learnt", []), ("shuffled rewards", ["--shuffled-rewards"])):
        made[name] = folder / f"{name.split()[0]}{seed}.safetensors"
        found = json.loads(run(exphil, "learn", "--world", "pong", "--opponent", "frozen", "--init", clone, "--teacher", clone,
                               "--to-teacher", asked.to_teacher, "--frames", asked.frames, "--seed", seed, "--json", "--out",
                               made[name], *more))  # fmt: skip
        print(f"  {name}: {found['frames']} frames, {found['frames_per_second']:.0f} a second, entropy {found['entropy']:.3f}")
    drawn, likeliest = (match(exphil, made["learnt"], clone, *how) for how in ([], ["--likeliest"]))
    same, control = match(exphil, clone, clone), match(exphil, made["shuffled rewards"], clone)
    for who, m in (("against the clone, drawn", drawn), ("against the clone, likeliest", likeliest),
                   ("the clone against itself", same), ("with shuffled rewards, drawn", control)):  # fmt: skip
        say(who, m)
    return (all(m["score"] >= 0.85 and m["low"] >= 0.75 for m in (drawn, likeliest)) and abs(same["score"] - 0.5) <= 0.1
            and control["score"] <= drawn["score"] - 0.2)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exphil", default="build/release/bin/exphil", help="the program (default: %(default)s)")
    parser.add_argument("--record", default="build/release/bin/pong_record", help="what records (default: %(default)s)")
    parser.add_argument("--frames", type=int, default=3000000, help="to learn from (default: %(default)s)")
    parser.add_argument("--to-teacher", type=float, default=0.01, help="weight of the KL to the clone (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="(default: %(default)s)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        fine = [seed_of(asked, Path(name), seed) for seed in range(1, asked.seeds + 1)]
    print(f"{sum(fine)} of {len(fine)} seeds meet the bars")
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
