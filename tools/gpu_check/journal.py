"""Results as they become known: a file of JSON lines that is only ever added to. Each line is written whole and synced before the
next thing is done, the folder once the file was begun. The first line says of which machine and which programs they are; `row`
lines are what was found, `log` lines what the library refused, `said` lines how a task ended. The lines survive a kill, and a
later check of the same goes on behind them."""
import errno
import fcntl
import itertools
import json
import os

# A task that ended so is not done again.
FINISHED = ("passed", "failed", "left out")

# What every line of a kind has, whatever else it has; NAMES are texts.
FIELDS = {"machine": ("card", "date", "rehearsal", "quick", "identity"), "row": ("task", "n", "subject"),
          "log": ("task", "subject", "text", "shape", "status"), "said": ("task", "stage", "said", "why")}
NAMES = ("card", "date", "task", "subject", "text", "stage", "said")


class Broken(Exception):
    pass


def wrong(row, number):
    """What a line lacks to be one of a check; None."""
    kind = row.get("kind") if isinstance(row, dict) else None
    if not isinstance(kind, str) or kind not in FIELDS or (number == 1) != (kind == "machine"):
        return "no line of a check"
    for name in FIELDS[kind]:
        if name not in row:
            return f"a {kind} line lacks {name}"
        if name in NAMES and not isinstance(row[name], str):
            return f"{name} is no text"
    return None


def parse(data, path):
    """(rows, bytes of whole lines). A last line without its end is what a cut leaves, and does not count."""
    rows, whole = [], data.rfind(b"\n") + 1
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise Broken(f"{path}, line {number}: {error}") from None
        if why := wrong(row, number):
            raise Broken(f"{path}, line {number}: {why}")
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
        if not self.rows:
            for row in earlier or [machine]:
                self.add(row)
            sync_folder(os.path.dirname(path) or ".")

    def add(self, row):
        line = (json.dumps(row) + "\n").encode()
        try:
            while line:
                line = line[os.write(self.fd, line):]
            os.fsync(self.fd)
        except OSError as error:
            raise Broken(f"{self.path}: {error.strerror}; what stands there is kept") from None
        self.rows.append(row)

    def finished(self):
        return {task for task, row in said_of(self.rows).items() if row["said"] in FINISHED}

    def known(self, task):
        """How many rows of a task there are: one that was cut off goes on behind them."""
        return sum(row["kind"] == "row" and row["task"] == task for row in self.rows)


def sync_folder(path):
    """The name of a new file is its folder's."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # what a file system says whose folders cannot be synced
            raise
    finally:
        os.close(fd)


def same(a, b):
    return all(a.get(key) == b.get(key) for key in ("identity", "card", "rehearsal"))


def find(folder, name, date, machine):
    """The file to go on with: <name>-<day>.jsonl of the same machine and programs, else one that is not there yet. Broken ones are
    told and left as they are."""
    for file in sorted(os.listdir(folder), reverse=True):
        path = os.path.join(folder, file)
        if file.startswith(name + "-") and file.endswith(".jsonl"):
            try:
                rows = read(path)
            except (Broken, OSError) as error:
                print(f"not continued: {error}", flush=True)
                continue
            if not rows or same(rows[0], machine):
                return path
    tries = itertools.chain([f"{name}-{date}.jsonl"], (f"{name}-{date}-{n}.jsonl" for n in itertools.count(2)))
    return next(path for path in (os.path.join(folder, file) for file in tries) if not os.path.lexists(path))
