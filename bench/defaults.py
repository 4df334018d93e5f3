#!/usr/bin/env python3
"""Which settings of `exphil train` learn most in a given time: held-out loss after so many minutes of one processor, on real
games of several amounts. The defaults against others, each with the same seeds, which draw the same held-out games.

  bench/defaults.py --exphil EXPHIL --replays FOLDER... [--games 6 18 0] [--minutes 0.25 0.5 5] [--passes 8 16] [--results FILE]

An update costs the same at any place of a run. So the processor time of some is measured, each run gets as many updates as go
into its minutes, and its schedule ends there: the same numbers of updates give the same bits anywhere. The lowest held-out loss
of sixteen looks counts, as it does for the weights that are kept; looks are not part of the time. With --passes the defaults
run again, over the data so many times. FILE keeps costs and losses, and what is in it is not run again.
"""
import argparse
import concurrent.futures
import hashlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

DEFAULTS = {"blocks": "mamba*2", "batch": 16, "time": 60, "rate": 0.001, "hidden": 256, "mirror": 0.5}
GRU = {"blocks": "gru", "batch": 32}
OTHERS = [
    {"batch": 32},
    {"rate": 0.0003},
    {"rate": 0.003},
    {"time": 120},
    {"hidden": 128},
    {"mirror": 0},
    {"blocks": "lstm"},
    {"blocks": "gru"},
    GRU,
    {**GRU, "batch": 64},
    {**GRU, "batch": 128},
    {**GRU, "rate": 0.003},
]
LOOKS = 16
HELD_OUT = 0.2
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}  # two-sided, by degrees of freedom


def as_words(options):
    return [word for name, value in options.items() for word in (f"--{name}", value)]


class Measure:
    """The program, and what is known already."""

    def __init__(self, asked, folder):
        self.exphil = folder / "exphil"
        shutil.copy2(asked.exphil, self.exphil)  # a build under way changes nothing
        self.folder = folder
        self.kept = Path(asked.results) if asked.results else None
        self.known = json.loads(self.kept.read_text()) if self.kept and self.kept.exists() else {}
        self.lock = threading.Lock()
        self.count = 0

    def keep(self, key, value):
        with self.lock:
            self.known[key] = value
            if self.kept:
                beside = self.kept.with_suffix(".new")
                beside.write_text(json.dumps(self.known, indent=1, sort_keys=True) + "\n")
                beside.replace(self.kept)

    def run(self, *words):
        """Standard output, and the seconds of processor that it took."""
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen([str(self.exphil), *map(str, words)], stdout=out)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = status
            if status:
                raise SystemExit(f"defaults.py: exphil {' '.join(map(str, words))} failed: {status}")
            out.seek(0)
            return out.read(), used.ru_utime + used.ru_stime

    def train(self, corpus, setting, updates, seed, looks):
        """The nll of each look, the seconds of processor, and the passes over the data."""
        with self.lock:
            self.count += 1
            folder = self.folder / f"run{self.count}"
        folder.mkdir()
        log = folder / "log.jsonl"
        _, seconds = self.run("train", "--quiet", "--updates", updates, "--held-out", HELD_OUT, "--seed", seed,
                              "--threads", 1, "--alone", 0, "--log", log, "--log-every", 10**9,
                              "--eval-every", math.ceil(updates / looks) if looks else 0,
                              "--score-frames", 100000 if looks else 1, "--json", "--out", folder / "policy",
                              *as_words(setting), corpus)  # fmt: skip
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        notes = json.loads(self.run("info", "--json", folder / "policy")[0])["notes"]["train"]
        shutil.rmtree(folder)
        return [line["nll"] for line in lines if line["kind"] == "held_out"], seconds, notes["passes"]

    def cost(self, corpus, setting, minutes):
        """Seconds of processor that one update takes; the rate is no matter."""
        key = "cost " + json.dumps({n: v for n, v in setting.items() if n != "rate"}, sort_keys=True)
        few = 8
        while key not in self.known:
            less, more = (self.train(corpus, setting, count, 1, 0)[1] for count in (few, 3 * few))
            if more - less > minutes / 4:
                self.keep(key, (more - less) / (2 * few))
            few *= 2
        return self.known[key]

    def losses(self, corpus, setting, updates, seed):
        key = f"{corpus.name} {updates} {seed} {json.dumps(setting, sort_keys=True)}"
        if key not in self.known:
            self.keep(key, self.train(corpus, setting, updates, seed, LOOKS)[0])
        return self.known[key]

    def updates_of_a_pass(self, corpus, seed):
        """What is held out differs from seed to seed."""
        return 8 / self.train(corpus, DEFAULTS, 8, seed, 0)[2]

    def amounts(self, asked):
        files = sorted((f for where in asked.replays for f in Path(where).rglob("*.slp")),
                       key=lambda f: hashlib.sha256(f.name.encode()).digest())  # fmt: skip
        for games, minutes in zip(asked.games, asked.minutes):
            listed = self.folder / "list"
            listed.write_text("".join(f"{f}\n" for f in (files[:games] if games else files)))
            corpus = self.folder / f"{games or len(files)}.games"
            self.run("corpus", "--quiet", "--out", corpus, "--files-from", listed)
            yield corpus, minutes, json.loads(self.run("info", "--json", corpus)[0])

    def check_defaults(self, corpus):
        """The program's own are those that others are compared with."""
        policy = self.folder / "defaults"
        self.run("train", "--updates", 1, "--quiet", "--force", "--json", "--score-frames", 1, "--alone", 0, "--out", policy,
                 corpus)  # fmt: skip
        record = json.loads(Path(f"{policy}.run.json").read_text())
        values = {**record["defaults"], **{n: v for n, v in record["chosen"].items() if v is not None}}
        for name, value in DEFAULTS.items():
            if values.get(name) not in (value, None):
                print(f"note: the program's default of --{name} is {values.get(name)}, not {value}", flush=True)


def words(setting):
    changed = [f"--{n} {setting[n]}" for n in setting if setting[n] != DEFAULTS.get(n)]
    return " ".join(changed) or "the defaults"


def compare(base, other):
    """Percent that the other's best losses differ from the base's, and half of a 95 % interval of the mean."""
    each = [100 * (min(b) / min(a) - 1) for a, b in zip(base, other)]
    half = T95[len(each) - 1] * statistics.stdev(each) / math.sqrt(len(each)) if len(each) > 1 else math.nan
    return statistics.mean(each), half


def measure_passes(measure, corpus, asked):
    """The defaults, as long as they take."""
    for passes in asked.passes:
        runs = []
        for seed in range(1, asked.seeds + 1):
            runs.append((math.ceil(passes * measure.updates_of_a_pass(corpus, seed)), seed))
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            losses = list(pool.map(lambda run: measure.losses(corpus, DEFAULTS, *run), runs))
        best, end = ([f(held) for held in losses] for f in (min, lambda held: held[-1]))
        print(f"{passes:3} passes   {statistics.mean(best):.4f} (at the end {statistics.mean(end):.4f}); by seed "
              f"{', '.join(f'{loss:.4f}' for loss in best)}", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exphil", default="build/release/bin/exphil", help="the program (default: %(default)s)")
    parser.add_argument("--replays", required=True, nargs="+", metavar="FOLDER", help="of replays")
    parser.add_argument("--games", type=int, nargs="+", default=[6, 18, 0], help="amounts, in files; 0: all")
    parser.add_argument("--minutes", type=float, nargs="+", default=[0.25, 0.5, 5], help="of one processor for a run, by amount")
    parser.add_argument("--passes", type=int, nargs="+", default=[], metavar="N", help="the defaults again, N times over the data")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each setting (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; costs are measured alone (default: %(default)s)")
    parser.add_argument("--results", metavar="FILE", help="keep costs and losses there")
    asked = parser.parse_args()
    settings = [DEFAULTS, *({**DEFAULTS, **change} for change in OTHERS)]
    better = 0
    with tempfile.TemporaryDirectory() as name:
        measure = Measure(asked, Path(name))
        for corpus, minutes, info in measure.amounts(asked):
            measure.check_defaults(corpus)
            print(f"{info['games']} games, {info['frames']} frames; {minutes:g} processor-minutes a run", flush=True)
            counts = [int(minutes * 60 / measure.cost(corpus, setting, minutes)) for setting in settings]
            # The first seed of all settings comes first.
            tasks = [(i, seed) for seed in range(1, asked.seeds + 1) for i in range(len(settings))]
            with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
                done = dict(zip(tasks, pool.map(lambda t: measure.losses(corpus, settings[t[0]], counts[t[0]], t[1]), tasks)))
            runs = [[done[i, seed] for seed in range(1, asked.seeds + 1)] for i in range(len(settings))]
            for setting, updates, losses in zip(settings, counts, runs):
                mean, half = compare(runs[0], losses)
                better += mean < -1 and mean + half < 0
                best, end = (statistics.mean(f(held) for held in losses) for f in (min, lambda held: held[-1]))
                print(f"{words(setting):38} {updates:6} updates   {best:.4f} (at the end {end:.4f})"
                      f"  {mean:+6.2f} % +- {half:.2f}", flush=True)  # fmt: skip
            measure_passes(measure, corpus, asked)
    sys.exit(f"{better} settings are better than the defaults by more than 1 %" if better else 0)


if __name__ == "__main__":
    main()
