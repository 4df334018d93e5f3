"""The check itself: one task after the other, each result written down before it is told."""
import datetime
import json
import os
import re
import time

from . import journal, program, readers, report
from .plan import FIRST_SECONDS, Task

ASIDE = 77
RESERVE = 3.0  # seconds of the budget for what comes after the last task


class Log:
    """All that was said. A check goes on without it where it cannot be written: what counts stands in the results."""

    def __init__(self, path):
        self.path, self.file = path, None
        try:
            self.file = open(path, "ab", buffering=0)
        except OSError as error:
            self.end(error)

    def write(self, line):
        if self.file:
            try:
                self.file.write((line + "\n").encode(errors="replace"))
            except OSError as error:
                self.end(error)

    def end(self, error):
        print(f"{self.path}: {error.strerror}; the check goes on without its log", flush=True)
        if self.file:
            self.file.close()
        self.file = None


class Check:
    def __init__(self, machine, folder, built, library, budget=None, earlier=None):
        name = re.sub(r"[^a-z0-9]+", "-", machine["card"].lower()).strip("-")
        os.makedirs(folder, exist_ok=True)
        path = journal.find(folder, name, machine["date"], machine)
        self.journal = journal.Journal(path, machine, earlier)
        self.stem = path.removesuffix(".jsonl")
        self.log = Log(self.stem + ".log")
        self.env = built.environment() | {"EXPHIL_CUBLASLT": library or "none"}
        self.end = time.monotonic() + budget if budget is not None else float("inf")

    def tell(self, text):
        print(text, flush=True)
        self.log.write(text)

    def left(self):
        return self.end - time.monotonic() - RESERVE

    # ---- one task ----

    def run(self, task):
        log, reader = readers.Log(), readers.AT_ONCE[task.reader]
        known, count, text = self.journal.known(task.name), 0, []

        def found(row):
            nonlocal count
            count += 1
            if count > known:
                self.journal.add({"kind": "row", "task": task.name, "n": count, **row})
                self.tell(f"{task.name} [{count}] {json.dumps(row)}")

        def out(line):
            text.append(line)
            self.log.write(line)
            for read in reader:
                if row := read(line):
                    found(row)
                    break

        def err(line):
            text.append(line)
            self.log.write(line)
            refused = log.take(line)
            if refused and not any(row.get("text") == refused["text"] for row in self.of(task, "log")):
                self.journal.add({"kind": "log", "task": task.name, **refused})
                self.tell(f"{task.name}: {refused['text']}")

        own = task.limit <= self.left()
        status, seconds = program.run(task.command, self.env | task.env, min(task.limit, self.left()), out, err)
        for row in readers.AT_THE_END[task.reader]("\n".join(text)) if status == 0 and task.reader in readers.AT_THE_END else ():
            found(row)
        self.end_of(task, status, seconds, text, log, own)

    def of(self, task, kind):
        return [row for row in self.journal.rows if row["kind"] == kind and row["task"] == task.name]

    def end_of(self, task, status, seconds, text, log, own):
        aside = next((line for line in text if "SKIPPED" in line), "")
        tail = "\n".join(text[-30:])
        more = {"seconds": round(seconds, 2), "products": log.taken}
        if status is None and not own:
            self.said(task, "cut", f"the budget ended after {seconds:.0f} s", **more)
        elif status is None:
            self.said(task, "failed", f"ended after {task.limit} s, its limit", tail=tail, **more)
        elif status == ASIDE or status == 0 and aside:
            self.said(task, "left out", aside.replace("SKIPPED:", "").strip(), **more)
        elif status:
            self.said(task, "failed", f"ended with {status}", tail=tail, **more)
        elif wrong := wrong_products(task, log.taken):
            self.said(task, "failed", wrong, **more)
        else:
            self.said(task, "passed", None, **more)

    def said(self, task, how, why, **more):
        self.journal.add({"kind": "said", "task": task.name, "stage": task.stage, "said": how, "why": why, **more})
        told = {"failed": "FAILED", "left out": "SKIPPED"}.get(how, how)
        seconds = f" ({more['seconds']:.1f} s)" if "seconds" in more else ""
        self.tell(f"{told}: {task.name}{seconds}" + (f": {why}" if why else ""))
        if how == "failed" and more.get("tail"):
            print(more["tail"], flush=True)
        self.summary()

    # ---- all of them ----

    def lacks_cublaslt(self):
        task = Task("cuBLASLt is found", "tests", [], 0, 0)
        if task.name not in self.journal.finished():
            self.said(task, "failed", "there is none; --without-cublaslt measures own products alone")

    def consider(self, task):
        if task.why:
            self.said(task, "left out", task.why)
        elif task.seconds > self.left():
            self.said(task, "skipped", f"takes about {task.seconds} s, of the budget {max(0, self.left()):.0f} s are left")
        else:
            self.run(task)

    def go(self, tasks):
        done = self.journal.finished()
        waiting = [task for task in tasks if task.name not in done]
        if len(waiting) < len(tasks):
            self.tell(f"kept: {len(tasks) - len(waiting)} results of before")
        first, begin, late = True, time.monotonic(), []
        for task in waiting:
            first = first and task.stage == "tests"
            if first and time.monotonic() - begin > FIRST_SECONDS:
                late.append(task)
            else:
                self.consider(task)
        for task in late:
            self.consider(task)
        self.summary()

    def summary(self):
        """Not worth ending a check for: --summary makes it of the results at any time."""
        try:
            report.write(self.stem + ".md", self.journal.rows)
        except (OSError, journal.Broken) as error:
            self.tell(f"no summary now: {error}")


def wrong_products(task, taken):
    if task.products is None:
        return None
    if taken is None:
        return "the log does not say whose products were taken"
    if task.products == "cublaslt" and taken == "own":
        return "own kernels were taken, cuBLASLt was wanted"
    return None if taken.startswith(task.products) else f"products of {taken}, {task.products} was wanted"


def machine_row(card, built, options, library, cuda):
    """The first line of the results: what they are of."""
    date = datetime.date.today().isoformat()
    facts = {key: value for key, value in card.items() if key not in ("name", "arch")}
    choice = f"{'quick ' if options.quick or options.rehearse else ''}{'cublaslt' if library else 'own'}"
    return {"kind": "machine", "card": card["name"], "date": date, "rehearsal": bool(options.rehearse), **facts, "cuda": cuda,
            "cublaslt": library and os.path.basename(library), "quick": bool(options.quick or options.rehearse),
            "identity": f"{built.identity()} {choice}"}
