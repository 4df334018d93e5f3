#!/usr/bin/env python3
"""Frames learnt a second in a stock emulator, and what playing and recording cost beside the bare emulation, in turns, medians.

  bench/learn/emulator.py --libretro FOLDER [--emulator EMULATOR] [--core gambatte] [--lanes 64] [--threads 2] [--rounds 3]

FOLDER: where examples/libretro was built. Bare: as many processes of exphil-libretro-run as threads, each with one game, without
picture and sound.
"""
import argparse
import json
import re
import statistics
import subprocess
from pathlib import Path

GAMES = {"gambatte": ("pong21.gb", "gameboy/pong_gb_left.exphil"), "nestopia": ("pong21.nes", "nes/pong_nes_left.exphil")}
PONG = Path(__file__).resolve().parents[2] / "examples/pong"


def bare(folder, core, rom, frames, processes):
    command = [folder / "exphil-libretro-run", "--core", core, "--rom", rom, "--frames", frames, "--blind"]
    running = [subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
               for _ in range(processes)]  # fmt: skip
    return sum(float(re.search(r"frames, (\d+) a second", process.communicate()[0])[1]) for process in running)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libretro", type=Path, required=True, help="where examples/libretro was built")
    parser.add_argument("--emulator", default="build/release/bin/emulator", help="(default: %(default)s)")
    parser.add_argument("--core", default="gambatte", choices=GAMES, help="(default: %(default)s)")
    parser.add_argument("--cores", type=Path, default=Path("/usr/lib/x86_64-linux-gnu/libretro"), help="(default: %(default)s)")
    for name, usual in ("lanes", 64), ("threads", 2), ("rounds", 3), ("chunks", 20):
        parser.add_argument(f"--{name}", type=int, default=usual, help="(default: %(default)s)")
    asked = parser.parse_args()
    rom, game_map = asked.libretro / GAMES[asked.core][0], PONG / GAMES[asked.core][1]
    core = asked.cores / f"{asked.core}_libretro.so"
    found = {"bare": [], "stepped": [], "recorded": [], "learnt": []}
    for _ in range(asked.rounds):
        found["bare"].append(bare(asked.libretro, core, rom, asked.chunks * 128 * asked.lanes // asked.threads, asked.threads))
        arguments = f"core={core},rom={rom},map={game_map},threads={asked.threads}"
        done = subprocess.run([asked.emulator, asked.libretro / "exphil_world_libretro.so", arguments, str(asked.lanes),
                               str(asked.threads), str(asked.chunks)], stdout=subprocess.PIPE, check=True)  # fmt: skip
        for name, speed in json.loads(done.stdout).items():
            found[name].append(speed)
    median = {name: statistics.median(speeds) for name, speeds in found.items()}
    for name, speed in median.items():
        print(f"{name:9} {speed:8.0f} frames/s  {median['bare'] / speed - 1:+6.1%}  ({', '.join(f'{s:.0f}' for s in found[name])})")


if __name__ == "__main__":
    main()
