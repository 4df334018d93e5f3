"""Results as they become known: a file of JSON lines that is only ever added to, each line whole and on the disk before the
next thing is done. Its first line says of which machine and which programs they are; `row` lines are what was found, `said`
lines how a task ended. Whatever ends a check, the lines stay, and a later check of the same goes on behind them."""
import fcntl
import json
import os

# A task that ended so is not done again.
FINISHED = ("passed", "failed", "left out")


class Broken(Exception):
    pass


def parse(data, path):
    """(rows, bytes of whole lines). A last line without its end is what a cut leaves, and does not count."""
    rows, whole = [], data.rfind(b"\n") + 1
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise Broken(f"{path}, line {number}: {error}") from None
        if not isinstance(row, dict) or "kind" not in row or (number == 1) != (row["kind"] == "machine"):
            raise Broken(f"{path}, line {number}: no line of a check")
        rows.append(row)
    return rows, whole


def read(path):
    with open(path, "rb") as file:
        return parse(file.read(), path)[0]


def said_of(rows):
    """{task: its last line of how it ended}"""
    return {row["task"]: row for row in rows if row["kind"] == "said"}


def counts(ends):
    return ", ".join(f"{ends.count(how)} {how}" for how in (*FINISHED, "skipped", "cut"))


class Journal:
    def __init__(self, path, machine, earlier=None):
        """Opens path, or begins it; earlier: rows of the same machine and programs that it begins with."""
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Broken(f"{path}: another check writes it") from None
        with os.fdopen(os.dup(self.fd), "rb") as file:
            self.rows, whole = parse(file.read(), path)
        os.ftruncate(self.fd, whole)
        os.lseek(self.fd, whole, os.SEEK_SET)
        for row in () if self.rows else earlier or [machine]:
            self.add(row)

    def add(self, row):
        line = (json.dumps(row) + "\n").encode()
        while line:
            line = line[os.write(self.fd, line):]
        os.fsync(self.fd)
        self.rows.append(row)

    def finished(self):
        return {task for task, row in said_of(self.rows).items() if row["said"] in FINISHED}

    def known(self, task):
        """How many rows of a task there are: one that was cut off goes on behind them."""
        return sum(row["kind"] == "row" and row["task"] == task for row in self.rows)


def same(a, b):
    return all(a.get(key) == b.get(key) for key in ("identity", "card", "rehearsal"))


def find(folder, name, date, machine):
    """The file to go on with: <name>-<day>.jsonl of the same machine and programs, else one that is not there yet."""
    for file in sorted(os.listdir(folder), reverse=True):
        path = os.path.join(folder, file)
        if file.startswith(name + "-") and file.endswith(".jsonl"):
            rows = read(path)
            if not rows or same(rows[0], machine):
                return path
    tries = [f"{name}-{date}.jsonl"] + [f"{name}-{date}-{n}.jsonl" for n in range(2, 100)]
    return next(path for path in (os.path.join(folder, file) for file in tries) if not os.path.exists(path))
