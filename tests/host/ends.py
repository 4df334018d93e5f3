#!/usr/bin/env python3
"""Runs of `exphil train` that need no watching: ended by signals and kills at random moments, extended, ended early.

  ends.py EXPHIL [ROUNDS]      ROUNDS: ends of each kind (SIGTERM, SIGHUP, SIGKILL), default 200

A moment is a number of lines of the log, drawn at random, after which the signal is sent; where the run then really is, is the
scheduler's business, and no assertion depends on it. Several runs go on at a time.
"""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXPHIL = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
UPDATES = 24
SMALL = ["--port", "1", "--blocks", "gru", "--hidden", "2", "--head-width", "1", "--time", "10", "--batch", "2", "--rate",
         "0.02", "--held-out", "0.3", "--split", "time", "--alone", "0", "--threads", "1", "--quiet"]
failed = []


def complain(text):
    failed.append(text)
    print("FAILED:", text)


def check(fine, text):
    if not fine:
        complain(text)


def run(folder, *options, wait=True):
    command = [EXPHIL, "train", *SMALL, "--out", "p.safetensors", "--log", "log", *options, "../a.slp"]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not wait:
        return process
    out, err = process.communicate()
    return process.returncode, out.decode(), err.decode()


def train(folder, *options, status=0, says=""):
    got, out, err = run(folder, *options)
    check(got == status, f"train {' '.join(options)} ended with {got}, not {status}: {err}")
    check(says in out + err, f"train {' '.join(options)} does not say {says!r}: {out} {err}")
    return out, err


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if Path(path).exists() else None


def files(folder):
    """What a run leaves, but for its log, whose times differ, and for the numbers of checkpoints that are gone already."""
    left = {name: digest(folder / name) for name in ("p.safetensors", "p.safetensors.optimizer", "p.best.safetensors")}
    scores = folder / "p.safetensors.scores"
    left["scores"] = {**json.loads(scores.read_text()), "checkpoints": []} if scores.exists() else None
    return left


def lines(folder):
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def log_of(folder):
    """The log without what a clock has made."""
    clocks = ("frames_per_second", "waited_ns")
    return [{key: value for key, value in line.items() if key not in clocks} for line in lines(folder)]


def new_folder(name):
    folder = work / name
    folder.mkdir()
    return folder


# ---- ends at random moments -----------------------------------------------------------------------------------------------

PLAN = ["--updates", str(UPDATES), "--eval-every", "6", "--save-every", "4", "--save-minutes", "0", "--keep", "1"]


def whole_lines(folder):
    try:
        return (folder / "log").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def end_at(folder, number, moment, *options):
    """Starts a run and ends it when its log has this many lines; returns status and messages."""
    process = run(folder, *PLAN, *options, wait=False)
    while process.poll() is None and whole_lines(folder) < moment:
        time.sleep(0.001)
    if process.poll() is None:
        process.send_signal(number)
    _, err = process.communicate()
    return process.returncode, err.decode()


def one_end(kind, index):
    """Ended up to three times, then left to its end: as if it had never been ended. --resume is given from the first start."""
    rng = random.Random(f"{kind} {index}")
    number = getattr(signal, kind)
    folder = new_folder(f"{kind}-{index}")
    name = f"{kind} {index}"
    before = 0
    for _ in range(rng.choice([1, 1, 1, 2])):
        moment = rng.randrange(before, UPDATES + 10)
        status, err = end_at(folder, number, moment, "--resume")
        expected = (-number,) if kind == "SIGKILL" else (128 + number, -number)
        check(status in (0, *expected), f"{name}: ended with {status}: {err}")
        if status == 128 + number:
            check(f"stopped by {kind}" in err, f"{name}: does not say so: {err}")
        if status == 128 + number and "--resume goes on" in err:
            stood = int(err.split("after update ")[1].split()[0])
            left = [line["update"] for line in lines(folder) if line["kind"] == "train"]
            check(left == list(range(1, stood + 1)), f"{name}: stopped after {stood}, the log has {left}")
        before = max(0, min(whole_lines(folder), UPDATES) - 3)
    status, _, err = run(folder, *PLAN, "--resume")
    check(status == 0, f"{name}: going on ended with {status}: {err}")
    check(files(folder) == wanted, f"{name}: the end is another than that of a run that was never ended")
    check(log_of(folder) == wanted_log, f"{name}: the log is another than that of a run that was never ended")
    kept = sorted(path.name for path in folder.glob("p.[0-9]*"))
    check(kept == wanted_kept, f"{name}: {kept} are kept, not {wanted_kept}")
    shutil.rmtree(folder)


def ends():
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for kind in ("SIGTERM", "SIGHUP", "SIGKILL"):
            for done in [pool.submit(one_end, kind, index) for index in range(ROUNDS)]:
                done.result()


# ---- other stops ----------------------------------------------------------------------------------------------------------

def by_the_clock():
    """A checkpoint after every update, by a clock that is always ahead, changes nothing."""
    folder = new_folder("clock")
    train(folder, *PLAN, "--save-minutes", "1e-9")
    check(files(folder) == wanted and log_of(folder) == wanted_log, "checkpoints by the clock make another run")


def nohup():
    """A SIGHUP that nohup ignores ends nothing."""
    folder = new_folder("nohup")
    process = subprocess.Popen(["nohup", EXPHIL, "train", *SMALL, "--out", "p.safetensors", "--log", "log", *PLAN, "../a.slp"],
                               cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and whole_lines(folder) < 3:
        time.sleep(0.001)
    if process.poll() is None:
        process.send_signal(signal.SIGHUP)
    check(process.wait() == 0, "SIGHUP ends a run under nohup")
    check(files(folder) == wanted, "nohup: another run")


def full_disk(limit):
    """Files may grow to this many KiB: the run ends with 1 and says what is whole; with space it goes on to the last bit."""
    folder = new_folder(f"full-{limit}")
    command = ["sh", "-c", f"ulimit -f {limit}; exec \"$0\" \"$@\"", EXPHIL, "train", *SMALL, "--out", "p.safetensors", *PLAN,
               "../a.slp"]
    process = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    err = process.stderr.decode()
    check(process.returncode in (0, 1), f"full disk at {limit}: ended with {process.returncode}: {err}")
    if process.returncode == 1:
        check("File too large" in err, f"full disk at {limit}: does not say so: {err}")
        check(not list(folder.glob("*.exphil-tmp")), f"full disk at {limit}: half a file stays")
    there = (folder / "p.safetensors.optimizer").exists()
    check(not there or process.returncode == 0 or "--resume goes on" in err, f"full disk at {limit}: no way on: {err}")
    shutil.rmtree(folder / "none", ignore_errors=True)
    status, _, err = run(folder, *PLAN, *(["--resume"] if there else []))
    check(status == 0 and files(folder) == wanted, f"full disk at {limit}: going on ended with {status}: {err}")
    return process.returncode


def full_disks():
    # in blocks of 512 bytes, as dash counts them
    size = (work / "straight" / "p.safetensors.optimizer").stat().st_size // 512
    got = {limit: full_disk(limit) for limit in (0, 1, 8, size // 4, size // 2, size - 1, size + 8)}
    check(set(list(got.values())[:-1]) == {1} and got[size + 8] == 0, f"full disks end with {got}")


# ---- the log --------------------------------------------------------------------------------------------------------------

def logs():
    folder = new_folder("logs")
    train(folder, "--updates", "3", status=0)
    for path in folder.glob("p.*"):
        path.unlink()
    finished = (folder / "log").read_bytes()
    train(folder, "--updates", "3", status=1, says="log is there already")  # a run that ended: its weights are elsewhere
    check((folder / "log").read_bytes() == finished, "the log of a finished run was touched")
    died = finished.splitlines(keepends=True)[:2]
    for number, rest in ((1, b'{"kind":"tr'), (2, b"")):
        (folder / "log").write_bytes(b"".join(died) + rest)
        train(folder, "--updates", "3", says=f"log is of a run that did not come to its end; it is log.{number} now")
        check((folder / f"log.{number}").read_bytes() == b"".join(died) + rest, "the log that was moved is another")
        made = [line["update"] for line in lines(folder) if line["kind"] == "train"]
        check(made == [1, 2, 3], "the new log is not that of the new run")
        for path in folder.glob("p.*"):
            path.unlink()
    (folder / "log").write_text("no log\n")
    train(folder, "--updates", "3", status=1, says="log is there already")
    (folder / "log").write_text("")
    train(folder, "--updates", "3")
    check(not (folder / "log.3").exists(), "an empty log is moved away")


# ---- --resume -------------------------------------------------------------------------------------------------------------

def as_typed(folder, *options):
    """Not quiet, and without a log that is not asked for."""
    process = subprocess.run([EXPHIL, "train", *[option for option in SMALL if option != "--quiet"], "--out", "p.safetensors",
                              *options, "../a.slp"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return process.returncode, process.stderr.decode()


def nothing_to_go_on_from():
    """A start that died before its first checkpoint: --resume begins, with what that one had."""
    says = "--resume: there is no checkpoint yet; it begins from the start"
    folder = new_folder("begins")
    train(folder, *PLAN, "--resume", says=says)
    check(files(folder) == wanted and log_of(folder) == wanted_log, "--resume without a checkpoint makes another run")
    record = json.loads((folder / "p.safetensors.run.json").read_text())
    died = (folder / "log").read_bytes().splitlines(keepends=True)[:2]
    for path in folder.glob("p.*"):
        if path.name != "p.safetensors.run.json":
            path.unlink()
    (folder / "log").write_bytes(b"".join(died))
    status, err = as_typed(folder, *PLAN, "--resume")
    check(status == 0 and says in err and "--log log, as before" in err and "it is log.1 now" in err, f"it died early: {err}")
    check(files(folder) == wanted and log_of(folder) == wanted_log, "a start behind one that died makes another run")
    check(json.loads((folder / "p.safetensors.run.json").read_text())["log"] == record["log"], "its log is not in the record")
    # a run whose weights were moved away has nothing to do with this one
    for path in folder.glob("p.*"):
        if path.name != "p.safetensors.run.json":
            path.unlink()
    finished = (folder / "log").read_bytes()
    status, err = as_typed(folder, *PLAN, "--resume")
    check(status == 0 and says in err and "as before" not in err, f"a new run: {err}")
    check((folder / "log").read_bytes() == finished, "the log of a run that was moved away was touched")
    # half of what is needed is neither
    (folder / "p.safetensors.optimizer").unlink()
    train(folder, *PLAN, "--resume", status=1, says="there is no checkpoint p.safetensors.optimizer beside p.safetensors: move")
    (folder / "p.safetensors").unlink()
    train(folder, *PLAN, "--resume", status=1, says="there is no checkpoint p.safetensors.optimizer beside p.best.safetensors")


def as_before():
    """The log and the events of the run go on without being asked for; a run that has ended keeps its record."""
    folder = new_folder("as-before")
    record = folder / "p.safetensors.run.json"
    status, err = as_typed(folder, "--updates", "10", "--log", "log", "--tensorboard", "events")
    check(status == 0 and "as before" not in err and "goes on from" not in err, f"a first start: {err}")
    kept = record.read_bytes()
    status, err = as_typed(folder, "--updates", "10", "--resume", "--threads", "2")
    check(status == 0 and "the run has ended" in err and "goes on from" not in err, f"a run that has ended: {err}")
    check(record.read_bytes() == kept, "a run that has ended lost its record")
    before = (folder / "p.safetensors.optimizer").stat().st_mtime
    status, err = as_typed(folder, "--updates", "20", "--resume")
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(before))
    for says in ("--log log, as before", "--tensorboard events, as before", f"goes on from update 10, a checkpoint of {made}"):
        check(status == 0 and says in err, f"going on does not say {says!r}: {err}")
    updates = [line["update"] for line in lines(folder) if line["kind"] == "train"]
    check(updates == list(range(1, 21)), f"the log of a run that went on without --log has {updates}")
    asked = json.loads(record.read_text())
    check(asked["log"] == "log" and asked["tensorboard"] == "events" and asked["updates"] == 20, f"the record: {asked}")
    check(len(list((folder / "events").iterdir())) == 3, "the events did not go on")
    # of a copy it is that of the copy; what is given wins, and is not said
    copy = work / "as-before-copy"
    shutil.copytree(folder, copy)
    kept = (folder / "log").read_bytes()
    process = subprocess.run([EXPHIL, "train", *SMALL, "--out", copy / "p.safetensors", "--updates", "24", "--resume", "../a.slp"],
                             cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    check(process.returncode == 0 and (folder / "log").read_bytes() == kept, "a copy writes on in the log of its original")
    check([line["update"] for line in lines(copy) if line["kind"] == "train"] == list(range(1, 25)), "the copy's log stands still")
    status, err = as_typed(folder, "--updates", "22", "--resume", "--log", "other")
    check(status == 0 and "--log other, as before" not in err and (folder / "log").read_bytes() == kept, f"another log: {err}")


# ---- longer runs ----------------------------------------------------------------------------------------------------------

def longer():
    folder = new_folder("longer")
    train(folder, "--updates", "20")
    _, err = train(folder, "--updates", "20", "--resume", says="the run has ended: 20 of 20 updates are made")
    before = files(folder)
    log = log_of(folder)
    train(folder, "--updates", "20", "--resume")
    check(files(folder) == before and log_of(folder) == log, "scoring a run that has ended changes it")
    kinds = [line["kind"] for line in log]
    check(kinds[-2:] == ["examination", "train_set"] and kinds.count("examination") == 1, f"the log ends with {kinds[-4:]}")
    status, _, err = run(folder, "--updates", "60", "--resume")
    check(status == 0, f"a longer run ended with {status}: {err}")
    rates = [line["rate"] for line in lines(folder) if line["kind"] == "train"]
    check(len(rates) == 60 and rates[19] < 0.001 < 0.01 < rates[20] and rates[59] < 0.001, f"rates of a longer run: {rates}")
    # a part of what is held out is scored while it runs, all of it in the end
    seen = [(line["kind"], line["update"], line["kind"] == "train" or line.get("frames")) for line in lines(folder)]
    check(len(seen) == len(set(seen)), "a longer run has updates twice in its log")
    train(folder, "--updates", "50", "--resume", status=1, says="fewer than the 60")
    folder = new_folder("said")
    noisy = [option for option in SMALL if option != "--quiet"]
    for updates, says in (("20", "20 updates"), ("30", "goes on to update 30, not 20: its cosine schedule ends there now")):
        resumed = ["--resume"] if updates == "30" else []
        process = subprocess.run([EXPHIL, "train", *noisy, "--updates", updates, "--out", "p.safetensors", *resumed, "../a.slp"],
                                 cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        check(process.returncode == 0 and says in process.stderr.decode(), f"{updates} updates: {process.stderr.decode()}")
    # an end that stays is nothing to tell
    folder = new_folder("stays")
    words = [EXPHIL, "train", *noisy, "--updates", "3000", "--out", "p.safetensors", "--log", "log"]
    for resumed in ([], ["--resume"]):
        process = subprocess.Popen([*words, *resumed, "../a.slp"], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        while process.poll() is None and whole_lines(folder) < (1000 if resumed else 20):
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        err = process.communicate()[1].decode()
        check("the run goes on to" not in err and "schedule" not in err, f"an end that stays is told: {err}")
    check("goes on from update" in err, f"does not go on: {err}")


# ---- the best weights -----------------------------------------------------------------------------------------------------

def tensors(path):
    """All that is in a safetensors file but its header."""
    data = Path(path).read_bytes()
    return hashlib.sha256(data[8 + int.from_bytes(data[:8], "little"):]).hexdigest()


def expected(scores, patience, gain):
    """From the definition: the update of the best score, ties the earlier, and that of the last."""
    best, gained, without = None, None, 0
    for update, value in scores:
        if best is None or value < best[1]:
            best = update, value
        if gained is None or value < gained - gain * abs(gained):
            gained, without = value, 0
        else:
            without += 1
        if patience and without >= patience:
            return best[0], update, True
    return best[0], scores[-1][0], False


# Overfits: the rate stays high, and what is held out is little. One thing is measured by another name each time.
FIT = ["--rate", "0.1", "--schedule", "constant", "--eval-every", "4", "--alone", "100"]
FIELDS = {"nll": ("nll", 1), "loss": ("loss", 1), "exact": ("exact_accuracy", -1), "change": ("exact_change_accuracy", -1),
          "alone": ("alone_nll", 1)}


def best(name, options, patience, gain, metric, updates=160):
    folder = new_folder(f"best-{name}")
    ask = [*FIT, *options, "--updates", str(updates), "--best", metric]
    ask += ["--patience", str(patience)] if patience else []
    ask += ["--least-gain", str(gain)] if gain else []
    out, err = train(folder, *ask, "--json")
    said = json.loads(out)["best"]
    field, sign = FIELDS[metric]
    scores = [(line["update"], sign * line[field]) for line in lines(folder) if line["kind"] == "held_out"]
    best_update, last, early = expected(scores, patience, gain)
    done = max(line["update"] for line in lines(folder) if line["kind"] == "train")
    check(said["update"] == best_update and said["by"] == metric, f"{name}: best is {said}, not {best_update}")
    check(done == last and said["stopped_early"] == early, f"{name}: ended at {done}, not {last}: {said}")
    check(early == ("ended by --patience" in err), f"{name}: {err}")
    other = new_folder(f"best-{name}-exactly")
    train(other, *FIT, *options, "--updates", str(best_update), "--best", metric)
    check(tensors(folder / "p.best.safetensors") == tensors(other / "p.safetensors"), f"{name}: the best weights are others")
    check(best_update == done or digest(folder / "p.safetensors") != digest(folder / "p.best.safetensors"),
          f"{name}: last and best are the same")
    return folder, ask, best_update, done


def best_weights():
    folder, ask, update, done = best("nll", [], 3, 0, "nll")
    check(update < done < 160, f"the run that overfits ended at {done}, its best is {update}")
    # going on with a run that --patience has ended wants more of it
    train(folder, *ask, "--resume", says="--patience is over")
    ask[ask.index("--patience") + 1] = "5"
    train(folder, *ask, "--resume", says="ended by --patience")
    more = max(line["update"] for line in lines(folder) if line["kind"] == "train")
    check(more == done + 8, f"with two more scores it ended at {more}, not {done + 8}")
    train(folder, *ask, "--best", "loss", "--resume", status=1, says="by nll so far, this one would by loss")
    best("all", [], 0, 0, "nll", 80)
    best("gain", [], 2, 0.2, "nll")
    best("average", ["--ema", "0.8"], 2, 0, "nll")
    for metric in ("loss", "exact", "change", "alone"):
        best(metric, [], 0, 0, metric, 60)
    folder = new_folder("refused")
    train(folder, "--held-out", "0", "--patience", "3", status=2, says="--patience wants --held-out")
    train(folder, "--held-out", "0", "--best", "loss", status=2, says="--best wants --held-out")
    train(folder, "--best", "kills", status=2, says="--best wants nll, loss, exact, change, alone or unexplained, not kills")
    train(folder, "--best", "alone", status=2, says="--best alone and --alone 0")
    (folder / "p.best.safetensors").write_text("weights of another run")
    train(folder, "--updates", "3", status=1, says="p.best.safetensors is there already")
    train(folder, "--updates", "3", "--force")


def seldom_or_often():
    """Where the options do not say: at most 20 scores, the same every time, and one after the last update."""
    folder = new_folder("often")
    train(folder, "--updates", "600")
    updates = [line["update"] for line in lines(folder) if line["kind"] == "held_out"]
    check(10 <= len(updates) <= 20 and updates[-1] == 600, f"scores of 600 updates: {updates}")
    train(folder, "--updates", "3", "--eval-every", "0", "--force")
    check([line["update"] for line in lines(folder) if line["kind"] == "held_out"] == [3], "--eval-every 0 is not the end alone")


def earlier_checkpoints():
    folder = new_folder("kept")
    (folder / "p.7.safetensors").write_text("not of this run")
    train(folder, *PLAN, status=1, says="p.7.safetensors is there already, of another run")
    (folder / "p.7.safetensors").rename(folder / "q.7.safetensors")
    train(folder, *PLAN)
    check(sorted(path.name for path in folder.glob("p.[0-9]*")) == wanted_kept, "other checkpoints are kept")
    # each is a run of its own that can be gone on with
    name = wanted_kept[0]
    status = subprocess.run([EXPHIL, "train", *SMALL, *PLAN[:-2], "--out", name, "--resume", "../a.slp"], cwd=folder,
                            stdin=subprocess.DEVNULL, capture_output=True, check=False)
    check(status.returncode == 0 and tensors(folder / name) == tensors(folder / "p.safetensors"), f"{name}: {status.stderr}")


with tempfile.TemporaryDirectory() as made:
    work = Path(made)
    subprocess.run([EXPHIL, "drill", "--out", work / "a.slp", "--frames", "200", "--seed", "3"], check=True,
                   stdout=subprocess.DEVNULL)
    straight = new_folder("straight")
    train(straight, *PLAN)
    wanted, wanted_log = files(straight), log_of(straight)
    wanted_kept = sorted(path.name for path in straight.glob("p.[0-9]*"))
    check(len(wanted_kept) == 2 and None not in wanted.values(), f"a run leaves {wanted}, {wanted_kept}")
    by_the_clock()
    nohup()
    logs()
    nothing_to_go_on_from()
    as_before()
    longer()
    best_weights()
    seldom_or_often()
    earlier_checkpoints()
    full_disks()
    ends()
print(f"{ROUNDS} runs ended by each of SIGTERM, SIGHUP, SIGKILL" if not failed else f"{len(failed)} FAILED")
sys.exit(bool(failed))
