"""Writes what exphil eval --json may print of a policy, with every part that a report shows: examined.py FILE."""
import json
import math
import sys

heads = ["buttons", "main_x", "main_y", "c_x", "c_y", "trigger"]
steps = [round(-1 + i / 8, 3) for i in range(17)]
near = [[round(1000 * math.exp(-abs(i - k))) * (i != 3) for k in range(17)] for i in range(17)]
words = ["none", "A", "B", "X or Y", "L", "Z", "a long name of a button"]
head = {"loss": 0.5, "nll": 1.5e-06, "accuracy": 0.75, "top3": 1.0, "change_accuracy": 0.5, "copy_accuracy": 0.625}
examined = {
    "frames": 5400, "nll": 1.02, "exact_accuracy": 0.641, "exact_copy": 0.555, "alone_accuracy": 0.31, "beats_baselines": True,
    "verdict": [{"name": "copies its past", "figure": "right on 64.1 % of the frames & alone on 31.0 %",
                 "advice": "try <b>less</b>"}],
    "heads": {name: head for name in heads},
    "buttons": [{"button": name, "recorded": 0.01 * i, "policy": 0.002 * i * i, "expected": 0.01 * i}
                for i, name in enumerate(words)],
    "entropy": {name: 0.25 * i for i, name in enumerate(heads)},
    "calibration": [{"confidence": (i + 0.5) / 10, "accuracy": (i / 10) ** 1.5, "frames": 100 * i} for i in range(10)],
    "confusion": {"main_x": {"labels": steps, "counts": near},
                  "buttons": {"labels": words, "counts": [[i * k + 1 for k in range(7)] for i in range(7)]}},
    "characters": [{"character": "fox", "frames": 5000, "exact_accuracy": 0.65},
                   {"character": "captain_falcon", "frames": 400, "exact_accuracy": 0.5}],
    "stages": [{"stage": "final destination", "frames": 5400, "exact_accuracy": 0.641}],
    "phases": [{"phase": "first stock", "frames": 2000, "exact_accuracy": 0.7}],
    "mistakes": [{"file": "replays/Game_20240531T120000" + "x" * 60 + " & <friends>.slp", "frame": 37 * i, "nll": 9.5 - i / 7,
                  "recorded": {"buttons": ["B", "A"], "main_x": -1, "main_y": 0.2}, "policy": {"buttons": [], "main_x": 1}}
                 for i in range(20)],
    "novelty": [{"of": "a later version", "share": 0.5}],
}
with open(sys.argv[1], "w") as file:
    json.dump(examined, file)
