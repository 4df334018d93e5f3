"""tools/gpu-check without a card: its parts alone, then an archive of the emulated GPU's programs that is packed, unpacked,
rehearsed with three kills, cut short by a budget and taken up again.

usage: gpu_check.py SOURCE BUILD
"""
import json
import os
import random
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import types

source, build = map(os.path.abspath, sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(source, "tools"))
from cuda_gate import costs  # noqa: E402
from gpu_check import built, check, journal, machine, plan, readers, rehearse, report  # noqa: E402

# Of every stage something that takes little.
SHORT = ("^(losses of gru|2 equal runs of gru|kernels that overlap|cuda_(arena|conv)_test|update in f32|"
         "operations of an update in f32|"
         "PyTorch.s step in f32|launches of step-16|times of (conv|linear)|memcheck over cuda_conv_test|"
         "counters of scan_grad|3 equal runs of gru)$")
MACHINE = {"kind": "machine", "card": "none", "date": "2000-01-01", "rehearsal": True, "quick": True, "identity": "x"}


def must(so, what):
    if not so:
        sys.exit(f"FAILED: {what}")


def refused(call, word):
    try:
        call()
    except journal.Broken as broken:
        must(word in str(broken), f"'{broken}' has no '{word}'")
        return
    must(False, f"nothing was refused for {word}")


def path_in(folder, name, data=b""):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def line(kind, **more):
    return {"kind": kind, **{name: "x" for name in journal.FIELDS[kind]}, **more}


def text_of(row):
    return json.dumps(row).encode() + b"\n"


def at_most(size, call):
    """As on a full disk: no file grows beyond size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        return call()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# ---- parts ----


def results_are_whole_after_any_cut(folder):
    path = os.path.join(folder, "cut.jsonl")
    written = journal.Journal(path, MACHINE)
    for n in (1, 2):
        written.add(line("row", task="a", n=n))
    written.add(line("said", task="a", said="passed"))
    os.close(written.fd)
    with open(path, "rb") as file:
        whole = file.read()
    for length in range(len(whole) + 1):
        again = journal.Journal(path_in(folder, "cut.jsonl", whole[:length]), MACHINE)
        again.add(line("row", task="b"))
        os.close(again.fd)
        rows, kept = journal.read(path), max(whole[:length].count(b"\n"), 1)
        must(len(rows) == kept + 1 and rows[-1]["task"] == "b", f"cut at byte {length}: {len(rows)} rows, must be {kept + 1}")


def broken_results_are_refused(folder):
    refused(lambda: journal.read(path_in(folder, "b.jsonl", text_of(MACHINE) + b"x\n" + text_of(line("row")))), "line 2")
    refused(lambda: journal.read(path_in(folder, "b.jsonl", text_of(line("row")))), "line 1")
    for kind, names in journal.FIELDS.items():
        for name in names:
            row = line(kind)
            del row[name]
            lines = [row] if kind == "machine" else [line("machine"), row]
            path = path_in(folder, "b.jsonl", b"".join(map(text_of, lines)))
            refused(lambda: journal.read(path), f"line {len(lines)}: a {kind} line lacks {name}")
    refused(lambda: journal.read(path_in(folder, "b.jsonl", text_of(line("machine", date=1)))), "no text")
    held = journal.Journal(os.path.join(folder, "held.jsonl"), MACHINE)
    refused(lambda: journal.Journal(held.path, MACHINE), "another check")


def broken_results_block_no_check(folder):
    """Neither what is no results nor a folder of that name; what is good is taken up though it is older."""
    folder = os.path.join(folder, "find")
    path_in(folder, "none-2000-01-02.jsonl", b"x\n")
    os.mkdir(os.path.join(folder, "none-2000-01-01.jsonl"))
    found = journal.find(folder, "none", "2000-01-02", MACHINE)
    must(found.endswith("none-2000-01-02-2.jsonl"), f"beside broken results {found} is begun")
    old = path_in(folder, "none-1999-01-01.jsonl", text_of(MACHINE))
    must(journal.find(folder, "none", "2000-01-02", MACHINE) == old, "good results behind broken ones are taken up")


def lines_and_folder_are_synced(folder):
    """Each line when it is whole and before it counts, the folder once its file was begun."""
    synced, sync = [], os.fsync

    def note(fd):
        synced.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else os.fstat(fd).st_size)
        sync(fd)

    os.fsync = note
    try:
        written = journal.Journal(os.path.join(folder, "synced.jsonl"), MACHINE)
        begun = os.path.getsize(written.path)
        written.add(line("row"))
        must(synced == [begun, "folder", os.path.getsize(written.path)], f"synced: {synced}")
    finally:
        os.fsync = sync


def what_cannot_be_written_is_told(folder):
    """Results end a check with a sentence; the log and the summary do not end it."""
    written = journal.Journal(os.path.join(folder, "full.jsonl"), MACHINE)
    size = os.path.getsize(written.path)
    refused(lambda: at_most(size + 5, lambda: written.add(line("row"))), "full.jsonl: ")
    must(len(written.rows) == 1, "a line that was not written counts")
    os.close(written.fd)
    must(len(journal.Journal(written.path, MACHINE).rows) == 1, "what stood in the results of a full disk is lost")
    log = check.Log(os.path.join(folder, "full.log"))
    at_most(5, lambda: (log.write("a long line"), log.write("another")))
    must(log.file is None, "a log that is full is written")
    check.Log(folder).write("its name is a folder's")
    it = check.Check.__new__(check.Check)
    it.journal, it.stem, it.log = types.SimpleNamespace(rows=[MACHINE]), os.path.join(folder, "summary"), log
    at_most(5, it.summary)
    must(not os.path.exists(it.stem + ".md") and not os.path.exists(it.stem + ".md.part"), "half a summary")
    refused(lambda: report.write(it.stem + ".md", [MACHINE, line("row", subject="tick")]), "streams")


def the_first_kill_falls_between_two_tasks(folder):
    """Whatever the seed, and however fast the machine: the check that is played waits after the end of a task for ever."""
    for seed in range(10):
        for tasks in range(2, 12):
            for kills in range(1, 21):
                blow = rehearse.Blow(random.Random(seed), 0, tasks / (kills + 1))
                between = blow.kind == "ended tasks" and 1 <= blow.at < tasks
                must(between, f"of {tasks} tasks, {kills} kills: the first after {blow}")
    stub = "import signal; print('card: x\\npassed: a (1.0 s)', flush=True); signal.pause()"
    lines, status = rehearse.play([sys.executable, "-c", stub], folder, rehearse.Blow(random.Random(1), 0, 1))
    must(lines[1:] == ["passed: a (1.0 s)"] and status is None, f"told until the kill: {lines}, ended with {status}")


def the_log_is_understood():
    log = readers.Log()
    must(log.take("x: cuda: products by cuBLASLt 130100") is None and log.taken == "cublaslt 130100", "taken")
    line = "x: cuda:0: cuBLASLt refuses y of 15360 rows, 256 to 1024 (bf16): status 15 (NOT_SUPPORTED) when it was to run"
    row = log.take(line)
    must(row and row["shape"] == "y: 15360 x 256 x 1024" and row["status"] == "15 (NOT_SUPPORTED)", f"a refusal is {row}")
    must(log.take(line) is None, "a refusal counts once")
    row = log.take("cuda: cuBLASLt cannot do it, in other words")
    must(row and row["shape"] is row["status"] is None, "a refusal in other words is one")
    must(log.take("y of 3 rows, 4 to 5") is None, "a line that is none of the library's")
    log.take("cuda: no cuBLASLt, products by own kernels: not found")
    must(log.taken == "own", "own")
    for wanted, taken, good in (("cublaslt", "cublaslt 1", True), ("cublaslt", "own", False), ("cublaslt", None, False),
                                ("own", "own", True), ("own", "cublaslt 1", False), (None, None, True)):
        task = types.SimpleNamespace(products=wanted)
        must((check.wrong_products(task, taken) is None) == good, f"{wanted} wanted, {taken} taken")


def tables_are_understood():
    wide = '==PROF== x\n"ID","Kernel Name","gpu__time_duration.sum"\n"","","us"\n"0","scan<float>","1,234.5"\n"1","b","2"\n'
    must([(r["kernel"], r["metrics"]) for r in readers.ncu_rows(wide)] ==
         [("scan<float>", {"gpu__time_duration.sum": "1,234.5"}), ("b", {"gpu__time_duration.sum": "2"})], "ncu, raw")
    long = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","a","m__x.sum","us","1"\n"0","a","m__y.sum","","2"\n'
    must([r["metrics"] for r in readers.ncu_rows(long)] == [{"m__x.sum": "1", "m__y.sum": "2"}], "ncu, details")
    must(readers.sanitizer_row("========= ERROR SUMMARY: 3 errors")["found"] == 3, "memcheck")
    row = readers.sanitizer_row("========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)")
    must(row["found"] == 2, "racecheck")
    must(readers.case_row("[  FAILED  ] forward")["said"] == "failed" and not readers.case_row("[ RUN      ] forward"), "cmocka")
    must(readers.json_row("{") is None and readers.json_row("[1]") is None and not readers.json_row('{"a": 1}'), "no rows")
    must(readers.json_row('{"subject": "a"}') == {"subject": "a"}, "lines")


def archives_are_packed_and_unpacked(folder):
    """With gzip or xz, by the name; what repeats far apart takes room once in the latter; one that is cut is refused."""
    random_, kernels = random.Random(1), 3 << 20
    repeated = random_.randbytes(kernels)
    for name in ("a", "b", "c"):
        path_in(folder, f"laid/{name}", name.encode() + repeated)
    for kind in ("gz", "xz"):
        archive = os.path.join(folder, f"small.tar.{kind}")
        built.add_all(os.path.join(folder, "laid"), archive)
        to = built.unpack(archive)
        must(sorted(os.listdir(to)) == ["a", "b", "c"], f"{archive} holds {os.listdir(to)}")
        with open(os.path.join(to, "c"), "rb") as file:
            must(file.read() == b"c" + repeated, f"{archive} gives back other bytes")
        shutil.rmtree(os.path.dirname(to))
        with open(archive, "rb") as file:
            data = file.read()
        must((len(data) < 2 * kernels) == (kind == "xz"), f"{archive} takes {len(data)} bytes")
        for part in (data[:len(data) // 2], b"", data[:10] + b"x" * 1000):
            try:
                built.unpack(path_in(folder, "cut.tar", part))
            except SystemExit as why:
                must(str(why).startswith("gpu-check: --built "), f"a cut archive: {why}")
            else:
                must(False, "a cut archive is unpacked")


def cublaslt_is_found_beside_pytorch(folder):
    for name in ("nvidia/cublas/lib/libcublasLt.so.12", "nvidia/cu13/lib/libcublasLt.so.13", "nvidia/cu13/lib/libcublas.so.13"):
        path_in(folder, "site/" + name)
    os.environ["PYTHONPATH"] = os.path.join(folder, "site")
    found = machine.cublaslt_of(sys.executable)
    del os.environ["PYTHONPATH"]
    must(found and found.endswith("site/nvidia/cu13/lib/libcublasLt.so.13"), f"cuBLASLt beside PyTorch is {found}")


def first_things_first():
    emulated = built.of_emulator(build)
    options = types.SimpleNamespace(quick=False, rehearse=False, python="python3", runs=20, stages=[], only=None)
    tasks = plan.plan(options, emulated, "/a/library")
    seconds = sum(task.seconds for task in tasks if task.stage == "tests")
    must(seconds <= plan.FIRST_SECONDS, f"the stage tests takes about {seconds} s")
    stages = [task.stage for task in tasks]
    must(stages == sorted(stages, key=plan.STAGES.index), "stages stand in their order")
    must(len({task.name for task in tasks}) == len(tasks), "two tasks have the same name")
    must(not any(re.search(r" \(\d| \[", task.name) for task in tasks), "a name that the rehearsal would misread")
    without = {task.products for task in plan.plan(options, emulated, None)}
    must(without == {None, "own"}, f"without cuBLASLt {without} are wanted")


def late_tests_come_last():
    """What of the stage tests has not had its turn when its minutes are over waits for the others."""
    order = []
    it = check.Check.__new__(check.Check)
    it.journal = types.SimpleNamespace(finished=lambda: {"done"})
    it.consider, it.tell, it.summary = lambda task: order.append(task.name), lambda text: None, lambda: None
    tasks = [plan.Task(name, stage, [], 0, 0) for name, stage in (("done", "tests"), ("a", "tests"), ("b", "reference"))]
    it.go(tasks)
    check.FIRST_SECONDS = -1
    it.go(tasks)
    must(order == ["a", "b", "b", "a"], f"the order is {order}")


# ---- the whole ----


def run(tool, *words, want, before=None):
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", "TMPDIR": tempfile.gettempdir()}
    done = subprocess.run([sys.executable, tool, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, preexec_fn=before)
    if done.returncode != want:
        print("\n".join(done.stdout.splitlines()[-40:]))
        must(False, f"gpu-check {' '.join(words)} ended with {done.returncode}, must be {want}")
    must("Traceback" not in done.stdout, done.stdout)
    return done.stdout


def results_in(folder):
    found = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
    must(len(found) == 1, f"{folder} has {found}")
    return os.path.join(folder, found[0])


def a_budget_is_kept(tool, folder):
    """Nothing fits into a second; then all of it is done, behind what was said; another folder goes on from there."""
    out, further = os.path.join(folder, "budget"), os.path.join(folder, "further")
    words = ["--rehearse", "--kills", "0", "--only", "^(cuda_arena_test|times of conv)$", "--out"]
    run(tool, *words, out, "--budget", "1", want=3)
    rows = journal.read(results_in(out))
    must([row["said"] for row in rows[1:]] == ["skipped", "skipped"], "a budget of a second leaves all out")
    told = run(tool, *words, out, want=0)
    must("times of conv [" in told and "kept" not in told, "what did not fit is done the next time")
    os.makedirs(further)
    told = run(tool, *words, further, "--from", results_in(out), want=0)
    must("kept: 2 results" in told and len(journal.read(results_in(further))) == len(journal.read(results_in(out))), "--from")
    run(tool, *words, os.path.join(folder, "other"), "--from", path_in(folder, "other.jsonl", text_of(line("machine"))), want=1)


def failures_are_sentences(tool, folder):
    words = ["--rehearse", "--kills", "0", "--only", "^cuda_arena_test$", "--out"]
    file = path_in(folder, "a-file")
    must("is no folder" in run(tool, *words, file, want=2), "--out of a file")
    told = run(tool, *words, os.path.join(file, "below"), want=1)
    must(told.startswith("gpu-check: "), f"--out below a file: {told}")
    told = run(tool, *words, os.path.join(folder, "full"), want=1,
               before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50)))
    must(re.search(r"^gpu-check: .*\.jsonl: ", told, re.M), f"a full disk: {told}")
    told = run(tool, "--rehearse", "--summary", "--out", os.path.dirname(path_in(folder, "broken/a.jsonl", b"x\n")), want=1)
    must("a.jsonl, line 1" in told, f"a summary of broken results: {told}")


def own_products_are_a_failure(tool, folder):
    """Where cuBLASLt is wanted and the plugin cannot open it."""
    archive = os.path.dirname(os.path.dirname(tool))
    library = os.path.join(archive, built.STAND_IN)
    os.rename(library, library + ".away")
    words = ["--rehearse", "--kills", "0", "--only", "^update in f32$", "--out", os.path.join(folder, "own")]
    told = run(tool, *words, want=1)
    os.rename(library + ".away", library)
    must("FAILED: update in f32" in told and "own kernels were taken" in told, "own kernels are no failure")
    run(tool, *words, "--without-cublaslt", want=0)


def refusals_are_reported(tool, folder):
    """The stand-in refuses every product, and the library says so once for each shape."""
    out = os.path.join(folder, "refused")
    run(tool, "--rehearse", "--kills", "0", "--only", "^update in tf32$", "--out", out, want=0)
    found = [row for row in journal.read(results_in(out)) if row["kind"] == "log"]
    must(found and all(row["shape"] and row["status"] for row in found), f"refusals are {found}")
    with open(results_in(out).removesuffix(".jsonl") + ".md") as file:
        summary = file.read()
    must(all(row["text"] in summary for row in found), "the summary lacks refusals")


def launches_are_timed(tool, folder):
    """A row for each operation of an update or step, in order, as tools/cuda-gate takes them; and in the summary."""
    out = os.path.join(folder, "launches")
    run(tool, "--rehearse", "--kills", "0", "--only", "^launches of (update-tf32|step-16)$", "--out", out, want=0)
    for case, least in (("update-tf32", 11), ("step-16", 1)):
        found = [row for row in journal.read(results_in(out)) if row.get("subject") == "launch" and row["case"] == case]
        must(len(found) >= least and [row["launch"] for row in found] == list(range(len(found))), f"{case}: {found}")
        must(all(row["us"] >= 0 and row["kernel"] and row["task"] == f"launches of {case}" for row in found), f"{case}: {found}")
    must(not costs.rows_of(results_in(out)), "times of a rehearsal are taken for a card's")
    with open(results_in(out).removesuffix(".jsonl") + ".md") as file:
        must(re.search(r"^\| step-16 \| joined_step \| 1 \| ", file.read(), re.M), "the summary lacks launches")


def main():
    with tempfile.TemporaryDirectory() as folder:
        results_are_whole_after_any_cut(folder)
        broken_results_are_refused(folder)
        broken_results_block_no_check(folder)
        lines_and_folder_are_synced(folder)
        what_cannot_be_written_is_told(folder)
        the_first_kill_falls_between_two_tasks(folder)
        the_log_is_understood()
        tables_are_understood()
        archives_are_packed_and_unpacked(folder)
        cublaslt_is_found_beside_pytorch(folder)
        first_things_first()
        late_tests_come_last()
        archive = os.path.join(folder, "emulated.tar.xz")
        run(os.path.join(source, "tools", "gpu-check"), "--rehearse", "--build", build, "--pack", archive, want=0)
        shutil.unpack_archive(archive, folder, "xztar")
        tool = os.path.join(folder, built.NAME, "tools", "gpu-check")
        told = run(tool, "--list", want=77)
        must("--rehearse needs none" in told, "without a card the way to go is named")
        failures_are_sentences(tool, folder)
        a_budget_is_kept(tool, folder)
        own_products_are_a_failure(tool, folder)
        refusals_are_reported(tool, folder)
        launches_are_timed(tool, folder)
        print(run(tool, "--rehearse", "--kills", "3", "--only", SHORT, want=0), end="")


main()
