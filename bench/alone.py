#!/usr/bin/env python3
"""What training does against copying: policies that are trained plainly, with dropped past actions, with their own
decisions as past, with both, and not told past actions at all, each scored on held-out frames teacher-forced and alone.

The drill is written by the program itself; --replays adds rows for real games."""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SETTINGS = (("plain", []), ("--drop-past 0.5", ["--drop-past", "0.5"]), ("--own-past 0.5", ["--own-past", "0.5"]),
            ("both", ["--drop-past", "0.5", "--own-past", "0.5"]), ("not told", ["--no-previous-action"]))  # fmt: skip


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"alone.py: {program} {words[0]} ended with status {done.returncode}")
    return done.stdout


def table(program, title, data, options, folder):
    print(f"{title}: exphil train {' '.join(map(str, options))}")
    print(f"{'':18} {'forced':>9} {'changes':>9} {'alone':>9} {'changes':>9} {'nll':>8} {'alone':>8} {'frames/s':>9}")
    for name, more in SETTINGS:
        out = folder / "policy.safetensors"
        words = ["train", "--mirror", 0, *options, *more, "--out", out, "--force", "--quiet", "--json", "--alone", 20000, *data]
        result = json.loads(run(program, *words))
        held = result["held_out"]
        shares = [held[k] for k in ("exact_accuracy", "exact_change_accuracy", "alone_accuracy",
                                    "alone_change_accuracy")]  # fmt: skip
        print(f"{name:18} " + " ".join(f"{100 * s:8.2f}%" for s in shares) +
              f" {held['nll']:8.4f} {held['alone_nll']:8.4f} {result['frames_per_second']:9.0f}", flush=True)  # fmt: skip
    print(f"held out: {held['frames']} frames, {held['change_frames']} of which change the input; "
          f"alone on {held['alone_frames']}\n")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exphil", default="build/release/bin/exphil", help="the program (default: %(default)s)")
    parser.add_argument("--replays", nargs="+", metavar="FILE", help="replays, folders of them, or one corpus")
    parser.add_argument("--updates", type=int, default=1500, help="for the replays (default: %(default)s)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        drill = folder / "drill.slp"
        run(asked.exphil, "drill", "--frames", 7200, "--out", drill)
        small = ["--blocks", "gru", "--hidden", 64, "--rate", 0.01]
        table(asked.exphil, "drill", [drill],
              ["--port", 1, *small, "--updates", 400, "--held-out", 0.2, "--split", "time"], folder)  # fmt: skip
        if not asked.replays:
            print("alone.py: NO REPLAYS: give --replays FILE for rows of real games", file=sys.stderr)
            return
        options = ["--blocks", "gru", "--hidden", 128, "--rate", 0.002, "--updates", asked.updates, "--held-out", 0.2]
        table(asked.exphil, "replays", asked.replays, options, folder)


if __name__ == "__main__":
    main()
