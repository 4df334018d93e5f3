"""The rehearsal: a whole check on the emulated GPU, killed again and again, which must lose nothing that was finished.

Children are checks of the same programs with --kills 0. Their whole process group is killed after so many ended tasks, told
lines, or bytes of the results file, never after some time; how many is drawn from a seed, and nothing that must hold depends on
where it falls. After each kill, and after a cut into the last line as a machine that loses its power leaves it:
  - every result that was told stands in the results, as it was told;
  - what stood there before stands there unchanged, and the new check went on behind it;
  - nothing was done twice that was finished.
"""
import glob
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile

from . import journal, machine, program

HERE = os.path.dirname(os.path.abspath(__file__))
STAND_INS = os.path.join(HERE, "stand_ins")
TOLD_ROW = re.compile(r"(.+?) \[(\d+)\] (\{.*\})$")
TOLD_END = re.compile(r"(passed|FAILED|SKIPPED): (.+?) \(\d+\.\d s\)")
RECENT = (2, 3)  # of PyTorch: what bench/peers/cuda_peers.py wants


class Lost(Exception):
    pass


def prepare(options):
    """Stand-ins go before the real ones, which would look for a card; PyTorch is taken where there is one."""
    os.environ["PATH"] = STAND_INS + os.pathsep + os.environ.get("PATH", "")
    found = re.match(r"(\d+)\.(\d+)", machine.torch_of(options.python))
    if not found or (int(found[1]), int(found[2])) < RECENT:
        options.python = os.path.join(STAND_INS, "python-with-torch")


# ---- one check that is killed ----


class Blow:
    """When a check is killed: at so many ended tasks, told lines, or bytes; none: never. tasks: about how many of them it may
    finish until then, so that the blows are spread over all. The first is at
    the end of a task, and of two or more not of the last."""

    KINDS = (("ended tasks", 1), ("lines", 8), ("bytes", 1500))  # with about how many a task has

    def __init__(self, random_=None, number=0, tasks=0.0):
        self.kind, each = self.KINDS[number % 3]
        self.at = random_.randint(1, max(1, int(each * tasks))) if random_ else None

    def due(self, lines, grown):
        if self.at is None:
            return False
        ended = sum(bool(TOLD_END.match(line)) for line in lines)
        return {"ended tasks": ended, "lines": len(lines), "bytes": grown}[self.kind] >= self.at

    def __str__(self):
        return f"{self.at} {self.kind}"


def size_of(folder):
    return sum(os.path.getsize(path) for path in glob.glob(os.path.join(folder, "*.jsonl")))


def play(command, folder, blow):
    """(told lines, exit status; None when it was killed)."""
    before, lines, rest = size_of(folder), [], b""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, preexec_fn=program.die_with_parent)
    killed = False
    while True:
        if not killed and blow.due(lines, size_of(folder) - before):
            killed = True
            os.killpg(child.pid, signal.SIGKILL)
        if not select.select([child.stdout], [], [], 0.005)[0]:
            continue
        data = os.read(child.stdout.fileno(), 1 << 16)
        if not data:
            break
        *whole, rest = (rest + data).split(b"\n")
        lines += [line.decode() for line in whole]
    status = child.wait()
    return lines, None if killed and status == -signal.SIGKILL else status


# ---- what must hold ----


class Series:
    """Checks with the same --out, each going on where the last was killed."""

    def __init__(self, folder):
        self.folder, self.rows, self.ends, self.before = folder, {}, set(), b""
        os.makedirs(folder)

    def file(self):
        found = glob.glob(os.path.join(self.folder, "*.jsonl"))
        if len(found) != 1:
            raise Lost(f"{self.folder} has {len(found)} results files, must have 1")
        return found[0]

    def hear(self, lines):
        for line in lines:
            if found := TOLD_ROW.match(line):
                self.rows[found[1], int(found[2])] = json.loads(found[3])
            elif found := TOLD_END.match(line):
                self.ends.add(found[2])

    def look(self):
        if not self.rows and not self.ends and not glob.glob(os.path.join(self.folder, "*.jsonl")):
            return
        path = self.file()
        with open(path, "rb") as file:
            data = file.read()
        rows, whole = journal.parse(data, path)
        if not data.startswith(self.before):
            raise Lost("what stood in the results before has changed")
        self.before = data[:whole]
        self.compare(rows)

    def compare(self, rows):
        there, ended = {}, []
        for row in rows:
            if row["kind"] == "row":
                key = row["task"], row["n"]
                if key in there:
                    raise Lost(f"{key[0]} [{key[1]}] stands there twice")
                there[key] = {k: v for k, v in row.items() if k not in ("kind", "task", "n")}
            elif row["kind"] == "said" and row["said"] in journal.FINISHED:
                ended.append(row["task"])
        for key, row in self.rows.items():
            if there.get(key) != row:
                raise Lost(f"{key[0]} [{key[1]}] was told and is not in the results")
        if twice := {task for task in ended if ended.count(task) > 1}:
            raise Lost(f"done again though finished: {', '.join(sorted(twice))}")
        if gone := self.ends - set(ended):
            raise Lost(f"told as finished and not in the results: {', '.join(sorted(gone))}")
        if rows and not rows[0]["rehearsal"]:
            raise Lost("results of a rehearsal do not say so")

    def cut(self, random_):
        """The last line loses its end, as when the power goes; what it told is no longer wanted."""
        whole = self.before.rfind(b"\n", 0, len(self.before) - 1) + 1
        if whole == 0:
            return
        row = json.loads(self.before[whole:])
        self.rows.pop((row.get("task"), row.get("n")), None)
        self.ends.discard(row.get("task") if row["kind"] == "said" else None)
        os.truncate(self.file(), random_.randint(whole, len(self.before) - 1))
        self.before = self.before[:whole]


def summary_of(command, series):
    """Made at any time of what there is."""
    if not series.before:
        return
    subprocess.run([*command, "--summary"], check=True, stdout=subprocess.DEVNULL)
    with open(series.file().removesuffix(".jsonl") + ".md") as file:
        if not file.readline().startswith("# REHEARSAL"):
            raise Lost("the summary of a rehearsal does not say so")


def finish(command, series, wanted):
    """To the end, and once more, which must find nothing to do."""
    lines, status = play(command, series.folder, Blow())
    series.hear(lines)
    series.look()
    rows = journal.read(series.file())
    said = journal.said_of(rows)
    if missing := [task for task in wanted if said.get(task, {}).get("said") not in journal.FINISHED]:
        raise Lost(f"never came to an end: {', '.join(missing)}")
    for task, row in said.items():
        if row["said"] == "failed":
            print(f"FAILED: {task}: {row['why']}\n{row.get('tail', '')}")
    again = play(command, series.folder, Blow())[1]
    with open(series.file(), "rb") as file:
        if file.read() != series.before:
            raise Lost("a check that had nothing to do wrote results")
    return status or again


def rehearse(options, command):
    """command: this check, without --out; ends with 1 when something was lost or failed."""
    random_ = random.Random(options.seed)
    wanted = subprocess.run([*command, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    with tempfile.TemporaryDirectory(prefix="exphil-rehearsal-") as work:
        os.environ["TMPDIR"] = work  # what killed programs leave goes with it
        status, kills, series, number, blows, middle = 0, 0, None, 0, 0, 0
        try:
            while kills < options.kills or series:
                if series is None:
                    number += 1
                    series = Series(os.path.join(work, str(number)))
                whole = [*command, "--out", series.folder]
                if kills == options.kills:
                    status |= finish(whole, series, wanted)
                    break
                blow = Blow(random_, blows, len(wanted) / (options.kills + 1))
                blows += 1
                lines, ended = play(whole, series.folder, blow)
                series.hear(lines)
                series.look()
                if ended is not None:
                    status |= ended | finish(whole, series, wanted)
                    series = None
                    continue
                kills += 1
                middle += 0 < len(series.ends) < len(wanted)
                kept = f"{len(series.rows)} rows and {len(series.ends)} of {len(wanted)} tasks kept"
                print(f"kill {kills}, after {blow}: {kept}", flush=True)
                if random_.random() < 0.4:
                    series.cut(random_)
                summary_of(whole, series)
        except (Lost, journal.Broken) as lost:
            print(f"FAILED: {lost}")
            return 1
    print(f"{kills} kills, {middle} of them between the first and the last end of a task; {number} checks, {len(wanted)} tasks: "
          "nothing that was finished was lost")
    return 1 if status else 0


def command_of(options, tool, built):
    """A check like this one, of the same programs, that nobody kills."""
    words = [sys.executable, tool, "--rehearse", "--kills", "0", "--python", options.python, *built, *options.stages]
    return words + (["--only", options.only.pattern] if options.only else [])
