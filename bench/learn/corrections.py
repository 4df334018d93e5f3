#!/usr/bin/env python3
"""A person takes over where the policy plays badly, and the policy learns: points lost in Pong in Gambatte, from 100 starts.

  bench/learn/corrections.py --libretro FOLDER [--exphil EXPHIL] [--starts STARTS] [--seeds 1 2 3] [--jobs 2] [--late]

FOLDER: where examples/libretro was built. Arms: a clone of a minute of a scripted player; that clone after two minutes at the
plugin, in which the same script (pong_person.c) takes over by the button when a ball would be missed; and a clone of three
minutes, the same amount without anybody taking over. The game waits for what learns every two seconds (EXPHIL_LEARN_PACED), so
that the figures do not depend on the machine. Intervals: 95 % by bootstrap over starts. Seeds are those of the weights and the
draws; the recording is the same. --late: instead, frames that come late in so many seconds of real time, in turns with the learner
and without.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PONG = Path(__file__).resolve().parents[2] / "examples/pong"
MINUTE = 3600


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libretro", type=Path, required=True, help="where examples/libretro was built")
    parser.add_argument("--exphil", default="build/release/bin/exphil", help="(default: %(default)s)")
    parser.add_argument("--starter", default="build/release/bin/starts", help="(default: %(default)s)")
    parser.add_argument("--core", type=Path, default=Path("/usr/lib/x86_64-linux-gnu/libretro/gambatte_libretro.so"),
                        help="(default: %(default)s)")  # fmt: skip
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="(default: %(default)s)")
    for name, usual in ("starts", 100), ("frames", 2000), ("jobs", 2), ("rounds", 3), ("seconds", 120):
        parser.add_argument(f"--{name}", type=int, default=usual, help="(default: %(default)s)")
    parser.add_argument("--late", action="store_true")
    asked = parser.parse_args()
    asked.libretro = asked.libretro.resolve()
    asked.map = PONG / "gameboy/pong_gb_left.exphil"
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        if asked.late:
            return late(asked, Path(name))
        ended = [pool.submit(one_seed, asked, Path(name), seed) for seed in asked.seeds]
        return 0 if all([show(seed, done.result()) for seed, done in zip(asked.seeds, ended, strict=True)]) else 1


def call(words, **settings):
    done = subprocess.run([str(word) for word in words], env=os.environ | {k: str(v) for k, v in settings.items()},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    if done.returncode:
        sys.exit(f"{words[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def play(asked, frames, *options, **settings):
    return call([asked.libretro / "exphil-libretro-run", "--core", asked.libretro / "exphil_libretro.so", "--rom",
                 asked.libretro / "pong.gb", "--frames", frames, *options],
                EXPHIL_CORE=asked.core, EXPHIL_MAP=asked.map, **settings)  # fmt: skip


def record(asked, frames, corpus):
    play(asked, frames, EXPHIL_MODE="record", EXPHIL_RECORD=corpus, EXPHIL_TEACHER=asked.libretro / "pong_teacher.so")


def clone(asked, corpus, seed, weights):
    call([asked.exphil, "train", corpus, "--blocks", "mlp*2", "--hidden", 64, "--no-previous-action", "--epochs", 60,
          "--rate", 0.003, "--seed", seed, "--quiet", "--out", weights])  # fmt: skip


def learn(asked, weights, corpus, seed, learned):
    return play(asked, 2 * MINUTE, "--seat", asked.map, asked.libretro / "pong_person.so", EXPHIL_MODE="learn",
                EXPHIL_LEARN_PACED=1, EXPHIL_MODEL=weights, EXPHIL_RECORD=corpus, EXPHIL_LEARNED=learned,
                EXPHIL_SEED=seed)  # fmt: skip


def points(asked, weights, choice):
    world = f"core={asked.core},rom={asked.libretro}/pong21.gb,map={asked.map},threads=1"
    return json.loads(call([asked.starter, asked.libretro / "exphil_world_libretro.so", world, weights, asked.starts, asked.frames,
                            1000, choice]))  # fmt: skip


def one_seed(asked, folder, seed):
    folder = folder / str(seed)
    folder.mkdir()
    record(asked, MINUTE, folder / "minute.corpus")
    record(asked, 3 * MINUTE, folder / "minutes.corpus")
    arms = {"clone": folder / "clone", "clone of the same amount": folder / "plain", "corrected": folder / "corrected"}
    clone(asked, folder / "minute.corpus", seed, arms["clone"])
    clone(asked, folder / "minutes.corpus", seed, arms["clone of the same amount"])
    learn(asked, arms["clone"], folder / "minute.corpus", seed, arms["corrected"])
    return {(arm, choice): points(asked, weights, choice) for choice in ("drawn", "likeliest") for arm, weights in arms.items()} | {
        "frames": asked.frames
    }


def interval(values, scale):
    draw = random.Random(1)
    means = sorted(sum(draw.choices(values, k=len(values))) * scale for _ in range(10000))
    return sum(values) * scale, means[250], means[9749]


def show(seed, found):
    fine = True
    for choice in "drawn", "likeliest":
        lost = {}
        for (arm, chosen), game in [(key, value) for key, value in found.items() if key != "frames"]:
            if chosen != choice:
                continue
            scale = 1000 / found["frames"] / len(game["lost"])
            lost[arm] = interval(game["lost"], scale)
            print(f"seed {seed}, {choice:9}: {arm:25} loses {lost[arm][0]:5.2f} points in 1,000 frames ({lost[arm][1]:.2f} to "
                  f"{lost[arm][2]:.2f}), makes {sum(game['won']) * scale:.2f}")  # fmt: skip
        fine = fine and all(lost["corrected"][2] < lost[arm][1] for arm in lost if arm != "corrected")
    print(f"seed {seed}: corrected loses fewer than both, intervals apart: {'yes' if fine else 'NO'}", flush=True)
    return fine


def late(asked, folder):
    record(asked, MINUTE, folder / "minute.corpus")
    clone(asked, folder / "minute.corpus", 1, folder / "clone")
    fine = True
    for i in range(asked.rounds):
        told = {}
        for way in ("with", "without") if i % 2 else ("without", "with"):
            mode = {"EXPHIL_MODE": "learn", "EXPHIL_RECORD": folder / "minute.corpus", "EXPHIL_LEARNED": folder / f"learned{i}"}
            settings = mode if way == "with" else {"EXPHIL_MODE": "play"}
            said = play(asked, 60 * asked.seconds, "--realtime", "--seat", asked.map, asked.libretro / "pong_person.so",
                        EXPHIL_MODEL=folder / "clone", **settings)  # fmt: skip
            told[way] = int(re.search(r"^late (\d+)", said, re.M)[1])
            worst = re.search(r"^decision .*max ([0-9.]+) us", said, re.M)[1]
            print(f"round {i + 1}, {way:7} the learner: {told[way]} of {60 * asked.seconds} frames late, "
                  f"slowest decision {worst} us", flush=True)  # fmt: skip
        fine = fine and told["with"] <= told["without"]
    print(f"no more late frames with it in each round: {'yes' if fine else 'NO'}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
