#!/usr/bin/env python3
"""The same bits on every system: tests/systems/bits.c, built for several, each with every instruction set that it can run.

    bits.py [--work FOLDER] [--keep] TARGET=PROGRAM...

TARGET is one of tools/systems, which runs the program. What is trained, played and written from the beginning has to be the
same everywhere, and what tests/data/kept/systems.txt has. Then every system goes on from the files of every other one, with
the same lines. --keep writes that file anew, from the first target's last set.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parents[2]
KEPT = root / "tests/data/kept/systems.txt"
LAST_FRAME = "220"


class Failed(Exception):
    pass


def run(target, program, *arguments, work):
    """The lines that a program prints, without remarks."""
    command = [root / "tools/systems", "run", target, program, *arguments]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, errors="replace", timeout=500, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, arguments))}: ends with {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    lines = [line.strip() for line in done.stdout.splitlines()]
    return [line for line in lines if line and not line.startswith("#")], [line for line in lines if line.startswith("# no ")]


def by_stage(lines):
    stages = {}
    for line in lines:
        model, stage, value = line.split()
        if (model, stage) in stages:
            raise Failed(f"{model} {stage} is there twice")
        stages[model, stage] = value
    return stages


def first_difference(lines, expected, left_out):
    """What differs first; None: nothing."""
    stages = by_stage(lines)
    for (model, stage), value in stages.items():
        if (model, stage) not in expected:
            return f"{model} {stage}: not among what is expected"
        if value != expected[model, stage]:
            return f"{model} {stage}: {value}, expected {expected[model, stage]}"
    for model, stage in expected:
        if (model, stage) not in stages and (model, stage) not in left_out:
            return f"{model} {stage}: missing"
    return None


def going_on(expected):
    """What a run prints that goes on from the files of another: not what was there before it."""
    before = ("file.", "comparison.", "rows", "pads", "batches", "play.")
    stages = {}
    for (model, stage), value in expected.items():
        number = stage.rpartition(".")[2]
        again = stage in ("file.end", "file.end.optimizer") or stage.startswith("play.") and number == LAST_FRAME
        first_half = stage.startswith(("update.", "chunk.")) and int(number) <= {"u": 3, "c": 2}[stage[0]]
        if again or not first_half and not stage.startswith(before):
            stages[model, stage] = value
    return stages


class Run:
    """One system with one instruction set."""

    def __init__(self, target, program, isa, threads="1"):
        self.target, self.program, self.isa, self.threads = target, program, isa, threads
        self.name = f"{target}-{isa}-{threads}"
        self.lines, self.remarks, self.failure, self.seconds = [], [], None, 0.0
        self.others = {}  # by name of a run: what differs going on from its files, or None

    def write(self, work):
        (work / self.name).mkdir()
        begun = time.monotonic()
        try:
            self.lines, self.remarks = run(self.target, self.program, "write", self.name, self.isa, self.threads, work=work)
        except (Failed, subprocess.TimeoutExpired) as failure:
            self.failure = str(failure)
        self.seconds = time.monotonic() - begun

    def go_on(self, other, expected, work):
        to = f"{self.name}-from-{other.name}"
        (work / to).mkdir()
        try:
            lines, _ = run(self.target, self.program, "go-on", other.name, to, self.isa, self.threads, work=work)
            self.others[other.name] = first_difference(lines, going_on(expected), ())
        except (Failed, subprocess.TimeoutExpired) as failure:
            self.others[other.name] = str(failure)


def runs_of(targets, work):
    runs = []
    for word in targets:
        target, _, program = word.partition("=")
        if not pathlib.Path(program).exists():
            sys.exit(f"FAILED: {target}: there is no {program}")
        program = pathlib.Path(program).resolve()
        sets, _ = run(target, program, "sets", work=work)
        if "ref" not in sets:
            sys.exit(f"FAILED: {target}: no kernels of ref")
        runs += [Run(target, program, isa) for isa in sets]
        if not target.startswith("wasm32-"):  # they have no threads
            runs.append(Run(target, program, sets[-1], "3"))
    # Emulated, a processor has all; what runs on this one has what this one has.
    have = {target: {r.isa for r in runs if r.target == target} for target in {r.target for r in runs}}
    need = {"aarch64-linux": {"ref", "neon", "neondot"}, "wasm32-wasi": {"ref", "simd128"}}
    need.update({target: have["native"] for target in have if target.startswith("x86_64") and "native" in have})
    for target in need.keys() & have.keys():
        if missing := need[target] - have[target]:
            sys.exit(f"FAILED: {target}: no kernels of {', '.join(sorted(missing))}")
    return runs


def everywhere(function, items):
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for done in [pool.submit(function, *item) for item in items]:
            done.result()


def table(runs):
    print(f"{'system':24} {'set':12} {'threads':>7} {'seconds':>7} {'lines':>5}  from the beginning")
    for r in runs:
        print(f"{r.target:24} {r.isa:12} {r.threads:>7} {r.seconds:7.1f} {len(r.lines):5}  {r.failure or 'the same'}")
        for remark in r.remarks:
            print(f"{'':61}{remark.removeprefix('# ')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, help="an empty folder for the files, which stay; else a temporary one")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("targets", nargs="+", metavar="TARGET=PROGRAM")
    given = parser.parse_args()
    work = given.work or pathlib.Path(tempfile.mkdtemp(prefix="bits-"))
    work.mkdir(parents=True, exist_ok=True)
    try:
        return compare(given, work.resolve())
    finally:
        if not given.work:
            shutil.rmtree(work)


def compare(given, work):
    runs = runs_of(given.targets, work)
    everywhere(Run.write, [(r, work) for r in runs])
    if given.keep:
        last = [r for r in runs if r.target == runs[0].target][-1]
        if last.failure:
            sys.exit(f"FAILED: {last.name}: {last.failure}; nothing is kept")
        KEPT.write_text("".join(line + "\n" for line in last.lines))
    expected = by_stage(KEPT.read_text().splitlines())
    for r in runs:
        # A system without threads says so; only batches of prefetchers are missed then.
        left_out = {("rows", "batches")} if r.target == "wasm32-wasi" and r.remarks else ()
        if not r.failure and (difference := first_difference(r.lines, expected, left_out)):
            r.failure = difference
    table(runs)

    # The best set of each system goes on from the files of all others, and all sets from those of the first system.
    best = {r.target: r for r in runs}
    pairs = [(r, other) for r in best.values() for other in best.values() if not other.failure]
    pairs += [(r, best[runs[0].target]) for r in runs if r not in best.values() and not runs[0].failure]
    everywhere(Run.go_on, [(r, other, expected, work) for r, other in pairs])
    failed = [f"{r.name}: {r.failure}" for r in runs if r.failure]
    for r, other in pairs:
        if r.others[other.name]:
            failed.append(f"{r.name} going on from the files of {other.name}: {r.others[other.name]}")
    for line in failed:
        print(f"FAILED: {line}")
    if not failed:
        print(f"{len(runs)} runs, {len(expected)} lines; {len(pairs)} went on from files of others: the same bits")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
