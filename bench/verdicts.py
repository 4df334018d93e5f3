#!/usr/bin/env python3
"""Runs whose outcome is known by how they were made, and what `exphil train` says of each.

  bench/verdicts.py EXPHIL                      the prepared runs, on the drill: seconds, the same bits on any machine
  bench/verdicts.py EXPHIL --others FOLDER      twelve that the rules of cli/verdict.c were not made on: other seeds, blocks, data
                                                and delays; FOLDER has replays/ and games/ (minutes)

One line a run: what is expected, what is said, and the figure. Exit status 1 when a prepared run is not told as it was
prepared, when fewer than eleven of twelve others are, or when a good run of these is told to be bad.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

BASE = "--threads 1 --quiet --force --alone 4000 --score-frames 40000 --held-out 0.2 --blocks gru --hidden 32 --head-width 32"
DRILL = "d1.slp d2.slp d3.slp d4.slp d5.slp --port 1"
BLIND = "--no-previous-action"

PREPARED = [
    ("good", f"{DRILL} {BLIND} --rate 0.01 --updates 300 --eval-every 30"),
    ("too short", f"{DRILL} {BLIND} --rate 0.01 --updates 20 --eval-every 4"),
    ("too short", f"{DRILL} {BLIND} --updates 3 --batch 4"),
    ("overfitted", f"d6.slp d7.slp --port 1 {BLIND} --hidden 96 --held-out 0.5 --rate 0.01 --updates 500"
     f" --eval-every 20 --schedule constant"),
    ("diverged", f"{DRILL} {BLIND} --rate 0.5 --clip -1 --warmup 180 --updates 200 --eval-every 20"),
    ("diverged", f"{DRILL} {BLIND} --rate 1 --clip -1 --updates 60 --eval-every 20"),
    ("copies its past", f"{DRILL} --rate 0.005 --updates 400 --delay 18 --eval-every 50"),
    ("never presses a button", f"{DRILL} {BLIND} --rate 0.01 --updates 300 --eval-every 30 --button-weight 0.01"),
    ("one class only", f"{DRILL} {BLIND} --rate 0.02 --decay 40 --updates 300 --eval-every 60 --schedule constant"),
    ("data too few", f"tiny1.slp tiny2.slp --port 1 {BLIND} --held-out 0.5 --rate 0.01 --updates 200 --eval-every 20"),
]

OTHERS = [
    ("good", f"e1.slp e2.slp e3.slp e4.slp --port 1 {BLIND} --blocks mamba --rate 0.005 --updates 350 --eval-every 50 --seed 71"),
    ("good", f"f1.slp f2.slp f3.slp f4.slp --port 1 {BLIND} --blocks lstm --hidden 48 --rate 0.006 --updates 300"
     f" --eval-every 60 --seed 72"),
    ("good", f"replays/training/fox_ms_teacher_2min.slp replays/training/fox_multishine_closed.slp --port 1 {BLIND} --split time "
             "--blocks mamba --rate 0.003 --updates 350 --eval-every 50 --seed 73"),
    ("too short", f"e1.slp e2.slp e3.slp e4.slp --port 1 {BLIND} --blocks lstm --rate 0.005 --updates 35"
     f" --eval-every 7 --seed 74"),
    ("too short", f"games/ {BLIND} --blocks gru --hidden 48 --rate 0.0015 --updates 70 --eval-every 14 --seed 75"),
    ("overfitted", "games/3-7-0-singles-online-summit10.slp games/3-9-0-singles-irl-summit12.slp "
     "games/2-0-1-singles-irl-genesis.slp "
                   "games/2-0-1-singles-irl-summit8.slp --split time --blocks gru --hidden 96 --rate 0.004 --updates 1100 "
                   "--eval-every 50 --schedule constant --seed 76"),
    ("diverged", f"e1.slp e2.slp e3.slp e4.slp --port 1 {BLIND} --blocks gru --rate 1.2 --clip -1 --updates 90"
     f" --eval-every 30 --seed 77"),
    ("diverged", f"games/ {BLIND} --blocks lstm --rate 4 --clip -1 --updates 90 --eval-every 30 --seed 78"),
    ("copies its past", "games/ --blocks mamba --rate 0.004 --updates 450 --eval-every 90 --seed 79"),
    ("never presses a button", f"f1.slp f2.slp f3.slp f4.slp --port 1 {BLIND} --blocks mamba --rate 0.008"
     f" --updates 350 --eval-every 50 "
                               "--button-weight 0.004 --seed 80"),
    ("one class only", f"f1.slp f2.slp f3.slp f4.slp --port 1 {BLIND} --blocks lstm --rate 0.03 --decay 33"
     f" --updates 300 --eval-every 60 "
                       "--schedule constant --seed 81"),
    ("data too few", f"games/3-9-1-singles-net.slp games/3-12-0-singles-net.slp {BLIND} --last 1800 --held-out 0.3 --split time "
                     "--blocks lstm --hidden 64 --rate 0.005 --updates 400 --eval-every 40 --seed 82"),
]


def drills(exphil, work):
    for name, seed, frames in ([(f"d{i}", i, 3600) for i in range(1, 6)] + [(f"d{i}", i, 4200) for i in (6, 7)]
                               + [(f"e{i}", 20 + i, 3000) for i in range(1, 5)] + [(f"f{i}", 30 + i, 3000) for i in range(1, 5)]
                               + [(f"tiny{i}", 40 + i, 300) for i in (1, 2)]):
        subprocess.run([exphil, "drill", "--frames", str(frames), "--seed", str(seed), "--out", work / f"{name}.slp"], check=True,
                       stdout=subprocess.DEVNULL)


def run(exphil, work, words, folder):
    arguments = [str(pathlib.Path(folder, word)) if folder and word.startswith(("replays/", "games/")) else word
                 for word in words.split()]
    done = subprocess.run([exphil, "train", *BASE.split(), *arguments, "--json", "--out", "w.safetensors"], cwd=work,
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{words}\n{done.stderr}")
    told = json.loads(done.stdout)["verdict"]
    info = json.loads(subprocess.run([exphil, "info", "--json", "w.safetensors"], cwd=work, capture_output=True, text=True,
                                     check=True).stdout)["notes"]["train"]
    assert info["verdict"] == told, "info tells another verdict than the run"
    return told, info["measured"]


def main():
    exphil = str(pathlib.Path(sys.argv[1]).resolve())
    folder = pathlib.Path(sys.argv[3]).resolve() if sys.argv[2:3] == ["--others"] else None
    right = alarms = 0
    cases = OTHERS if folder else PREPARED
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        drills(exphil, work)
        for want, words in cases:
            told, measured = run(exphil, work, words, folder)
            said = told["name"]
            right += said == want
            alarms += want == "good" and said != "good"
            print(f"{'ok  ' if said == want else 'WRONG'} {want:24}{said:24}{told['figure']}", flush=True)
            if said != want:
                print("     ", words, "\n     ", " ".join(f"{key}={value:.4g}" for key, value in measured.items()), flush=True)
    print(f"{right} of {len(cases)} as they were made, {alarms} alarms on good ones")
    sys.exit(alarms > 0 or right < len(cases) - (1 if folder else 0))


main()
