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

SMALL = "--alone 4000 --score-frames 40000 --held-out 0.2 --blocks gru --hidden 32 --head-width 32 --batch 16"
DRILL = "d1.slp d2.slp d3.slp d4.slp d5.slp --port 1"
BLIND = "--no-previous-action"

PREPARED = [
    ("good", f"{DRILL} {BLIND} --rate 0.01 --updates 300 --eval-every 30"),
    ("too short", f"{DRILL} {BLIND} --rate 0.01 --updates 20 --eval-every 4"),
    ("too short", f"{DRILL} {BLIND} --updates 3 --batch 4"),
    ("overfitted", f"d6.slp d7.slp --port 1 {BLIND} --hidden 96 --held-out 0.5 --rate 0.01 --updates 500"
     f" --eval-every 20 --schedule constant --mirror 0"),
    ("diverged", f"{DRILL} {BLIND} --rate 0.5 --clip -1 --warmup 180 --updates 200 --eval-every 20"),
    ("diverged", f"{DRILL} {BLIND} --rate 1 --clip -1 --updates 60 --eval-every 20"),
    ("copies its past", f"{DRILL} --rate 0.005 --updates 400 --delay 18 --eval-every 50"),
    ("never presses a button", f"{DRILL} {BLIND} --rate 0.01 --updates 300 --eval-every 30 --button-weight 0.01"),
    ("one class only", f"{DRILL} {BLIND} --rate 0.02 --decay 40 --updates 300 --eval-every 60 --schedule constant"),
    ("data too few", f"tiny1.slp tiny2.slp --port 1 {BLIND} --held-out 0.5 --rate 0.01 --updates 200 --eval-every 20"
     f" --mirror 0"),
]

OTHERS = [
    ("good",
     "--port 1 --blocks gru --hidden 48 --held-out 0.25 --updates 400 --rate 0.005 "
     "--no-previous-action --seed 11 f1.slp f2.slp f3.slp f4.slp"),
    ("good",
     "--port 1 --blocks mamba --hidden 64 --delay 2 --split time --last 6200 --held-out 0.2 --updates "
     "500 --rate 0.002 --seed 5 --batch 8 replays/training/fox_ms_teacher_2min.slp"),
    ("good",
     "--port 1 --blocks mlp --hidden 128 --no-previous-action --held-out 0.3 --updates 800 --rate "
     "0.004 --seed 22 --batch 10 f2.slp f3.slp f4.slp f5.slp f7.slp"),
    ("good",
     "--port 1 --blocks lstm --hidden 64 --drop-past 0.5 --own-past 0.5 --held-out 0.3 --updates 600 "
     "--rate 0.004 --delay 2 --seed 8 f3.slp f4.slp f5.slp f7.slp f8.slp"),
    ("too short",
     "--port 1 --blocks lstm --hidden 40 --held-out 0.3 --updates 110 --rate 0.0015 --schedule "
     "constant --batch 12 --seed 16 --no-previous-action f1.slp f3.slp f4.slp f8.slp"),
    ("too short",
     "--character marth --blocks attention --hidden 64 --held-out 0.3 --updates 60 --rate 0.0003 "
     "--schedule constant --seed 17 --no-previous-action games/2-0-1-singles-irl-genesis.slp "
     "games/2-0-1-singles-irl-summit11.slp games/3-7-0-singles-online-summit10.slp "
     "games/3-9-0-singles-irl-summit12.slp games/nintendont.slp games/old_ver_thegang.slp"),
    ("overfitted",
     "--port 1 --last 1500 --blocks lstm --hidden 128 --no-previous-action --split time --held-out 0.4 "
     "--updates 500 --rate 0.005 --schedule constant --seed 41 f8.slp"),
    ("diverged",
     "--port 1 --blocks gru --hidden 64 --held-out 0.25 --updates 300 --rate 1 --clip -1 --schedule "
     "constant --warmup 250 --no-previous-action --seed 14 f1.slp f3.slp f4.slp f5.slp"),
    ("copies its past",
     "--character marth --blocks gru --hidden 96 --held-out 0.25 --updates 500 --rate 0.002 --seed 5 "
     "games/2-0-1-singles-irl-genesis.slp games/2-0-1-singles-irl-summit11.slp "
     "games/3-7-0-singles-online-summit10.slp games/3-9-0-singles-irl-summit12.slp "
     "games/nintendont.slp games/old_ver_thegang.slp"),
    ("never presses a button",
     "--port 1 --blocks mamba --hidden 56 --button-weight 0.001 --no-previous-action --held-out 0.25 "
     "--updates 500 --rate 0.003 --seed 15 f1.slp f3.slp f4.slp f5.slp f8.slp"),
    ("data too few",
     "--port 1 --first 2500 --last 2900 --blocks gru --hidden 32 --no-previous-action --split time "
     "--held-out 0.5 --updates 80 --rate 0.001 --seed 5 games/FodPlatforms.slp"),
    ("one class only",
     "--port 2 --blocks attention --hidden 40 --delay 1 --held-out 0.2 --split time --updates 200 "
     "--rate 0.002 --seed 18 replays/training/fox_ms_teacher_2min.slp"),
]

DRILLS = [("f1", 31, 2400), ("f2", 47, 3000), ("f3", 58, 4800), ("f4", 63, 3600), ("f5", 72, 6000), ("f7", 95, 2000),
          ("f8", 104, 3600)]


def drills(exphil, work):
    for name, seed, frames in ([(f"d{i}", i, 3600) for i in range(1, 6)] + [(f"d{i}", i, 4200) for i in (6, 7)]
                               + [(f"tiny{i}", 40 + i, 300) for i in (1, 2)] + DRILLS):
        subprocess.run([exphil, "drill", "--frames", str(frames), "--seed", str(seed), "--out", work / f"{name}.slp"], check=True,
                       stdout=subprocess.DEVNULL)


def run(exphil, work, words, folder):
    arguments = [str(pathlib.Path(folder, word)) if folder and word.startswith(("replays/", "games/")) else word
                 for word in words.split()]
    done = subprocess.run([exphil, "train", "--threads", "1", "--quiet", "--force", *arguments, "--json", "--out",
                           "w.safetensors"], cwd=work, capture_output=True, text=True)
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
            told, measured = run(exphil, work, words if folder else f"{SMALL} {words}", folder)
            said = told["name"]
            right += said == want
            alarms += want == "good" and said != "good"
            print(f"{'ok  ' if said == want else 'WRONG'} {want:24}{said:24}{told['figure']}", flush=True)
            if said != want:
                print("     ", words, "\n     ", " ".join(f"{key}={value:.4g}" for key, value in measured.items()), flush=True)
    print(f"{right} of {len(cases)} as they were made, {alarms} alarms on good ones")
    sys.exit(alarms > 0 or right < len(cases) - (1 if folder else 0))


main()
