"""What a check does, in the order of what one would lose most; with about how long it takes on an H100, so that it can be
left where time is short."""
import collections
import math
import os
import subprocess

from . import built as programs, machine

STAGES = ["tests", "reference", "peers", "operations", "sanitizer", "counters", "repeat"]
FIRST_SECONDS = 360  # what the stage tests may take before the others have their turn; the rest of it comes last
TYPES = ["f32", "tf32", "bf16"]
COUNTERS = ["gpu__time_duration.sum", "smsp__inst_executed.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
            "sm__throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
            "sm__warps_active.avg.pct_of_peak_sustained_active", "smsp__issue_active.avg.pct_of_peak_sustained_active",
            "launch__registers_per_thread", "l1tex__data_bank_conflicts_pipe_lsu.sum"]

# seconds: about; limit: it is ended then, and has failed (none in a rehearsal). products: "cublaslt" or "own" must be what the log
# says was taken; None: it opens no device. reader: of readers.py. why: it is left out.
Task = collections.namedtuple("Task", "name stage command seconds limit products reader why env",
                              defaults=(None, "lines", None, {}))


class Planner:
    def __init__(self, options, built, library):
        self.options, self.built = options, built
        self.small = options.quick or options.rehearse
        self.smoke = ["--smoke"] if self.small else []
        self.products = "cublaslt" if library else "own"

    def program(self, name):
        return self.built.programs.get(name, name)

    def runs(self, *words):
        return [self.program("card_run_test"), *words, *(["--updates", "2"] if self.small else [])]

    def told(self, name, word):
        return subprocess.run([self.program(name), word], env=self.built.environment(), stdout=subprocess.PIPE, text=True,
                              check=True).stdout.splitlines()

    def patterns(self):
        return self.told("card_run_test", "--patterns")

    def profiled(self, name, stage, metrics, launches, command):
        tool = machine.ncu()
        words = [tool or "ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--metrics",
                 ",".join(metrics), "--launch-count", str(launches)]
        return Task(name, stage, words + command, 30, 200, self.products, "ncu", None if tool else "there is no ncu")

    # ---- stages ----

    def tests(self):
        own = {"EXPHIL_CUBLASLT": "none"}
        for blocks in self.patterns():
            losses = self.runs("--case", "losses_are_those_of_the_cpu", "--blocks", blocks)
            equal = self.runs("--case", "every_run_gives_the_same_bits", "--blocks", blocks, "--runs", "2")
            yield Task(f"losses of {blocks}", "tests", losses, 5, 90, self.products)
            yield Task(f"2 equal runs of {blocks}", "tests", equal, 5, 90, self.products)
        wide = self.runs("--case", "wide_nets_too", "--blocks", "mamba")
        yield Task("losses of a wide mamba", "tests", wide, 8, 120, self.products)
        for name in self.built.tests():
            yield Task(name, "tests", [self.program(name)], 8, 120)
        yield Task("memory is used again", "tests", self.runs("--case", "memory_is_used_again"), 6, 60, self.products)
        overlap = self.runs("--case", "overlap_changes_no_bits")
        yield Task("kernels that overlap", "tests", overlap, 15, 120, self.products)
        if self.products == "own":
            return
        for blocks in self.patterns():
            losses = self.runs("--case", "losses_are_those_of_the_cpu", "--blocks", blocks)
            yield Task(f"losses of {blocks} by own products", "tests", losses, 5, 90, "own", env=own)
        yield Task("losses of a wide mamba by own products", "tests", wide, 8, 120, "own", env=own)
        equal = self.runs("--case", "every_run_gives_the_same_bits", "--blocks", "mamba", "--runs", "2")
        yield Task("2 equal runs of mamba by own products", "tests", equal, 5, 90, "own", env=own)

    def reference(self):
        policy = [self.program("cuda_policy"), "--json", *self.smoke]
        for kind in TYPES:
            yield Task(f"update in {kind}", "reference", [*policy, kind], 10, 90, self.products)
        yield Task("steps", "reference", [*policy, "ticks"], 8, 90, self.products)
        bench = [self.program("exphil"), "bench", "--device", "cuda:0", "--roofline", "--plain", "--json",
                 *(["--quick"] if self.small else [])]
        for kind in TYPES:
            yield Task(f"operations of an update in {kind}", "reference", [*bench, "--precision", kind, "train", "mamba"], 15,
                       120, self.products, "bench")
        for case in self.told("cuda_times", "--cases"):
            yield Task(f"launches of {case}", "reference", [self.program("cuda_times"), "--json", *self.smoke, case], 5, 60,
                       self.products)
        for kind in TYPES:
            yield self.profiled(f"kernels that ran in an update in {kind}", "reference", COUNTERS[:1], 250, [*policy, kind])
        yield Task("update in f16", "reference", [*policy, "f16"], 10, 90, self.products)

    def peers(self):
        why = None if machine.torch_of(self.options.python) else f"{self.options.python} has no PyTorch"
        script = os.path.join(programs.TOP, "bench", "peers", "cuda_peers.py")
        for subject, cap, seconds in (("step", 60, 90), ("scan", 45, 60), ("attention", 30, 60), ("lstm", 30, 15), ("gru", 30, 15)):
            for kind in TYPES if subject != "scan" else ("f32", "bf16"):
                command = [self.options.python, script, "--json", *self.smoke, "--only", subject, "--type", kind, "--cap", str(cap)]
                yield Task(f"PyTorch's {subject} in {kind}", "peers", command, seconds, 6 * cap, why=why)

    def operations(self):
        program = self.program("cuda_kernels")
        names = " ".join(self.told("cuda_kernels", "--subjects")).split()
        for name in sorted(set(names), key=names.index):
            yield Task(f"times of {name}", "operations", [program, "--json", *self.smoke, name], 4, 90, self.products)

    def sanitizer(self):
        tool = machine.sanitizer()
        why = None if tool else "there is no compute-sanitizer"
        kernels = [self.program("cuda_kernels"), "--smoke"]
        policy = [self.program("cuda_policy"), "--smoke"]
        tests = ["cuda_norm_test", "cuda_conv_test", "cuda_embed_test", "cuda_loss_test"]
        cases = [("memcheck", "every operation", kernels), ("racecheck", "every operation", kernels),
                 ("synccheck", "every operation", kernels), ("memcheck", "a policy", policy), ("racecheck", "a policy", policy)]
        cases += [("memcheck", name, [self.program(name)]) for name in tests]
        for kind, what, command in cases + [("initcheck", "every operation", kernels)]:
            strict = [tool or "compute-sanitizer", "--tool", kind, "--error-exitcode", "1", "--print-limit", "20", *command]
            products = None if what.startswith("cuda_") else self.products
            yield Task(f"{kind} over {what}", "sanitizer", strict, 40, 300, products, "sanitizer", why)

    def counters(self):
        for name in ("scan_grad", "heads", "heads_grad"):
            command = [self.program("cuda_kernels"), *self.smoke, name]
            yield self.profiled(f"counters of {name}", "counters", COUNTERS, 8, command)

    def repeat(self):
        runs = "3" if self.small else str(self.options.runs)
        for blocks in self.patterns():
            command = self.runs("--case", "every_run_gives_the_same_bits", "--blocks", blocks, "--runs", runs)
            yield Task(f"{runs} equal runs of {blocks}", "repeat", command, 40, 400, self.products)


def plan(options, built, library):
    planner = Planner(options, built, library)
    tasks = [task for stage in STAGES if stage in (options.stages or STAGES) for task in getattr(planner, stage)()]
    if options.rehearse:  # how fast the emulated GPU is says nothing
        tasks = [task._replace(limit=math.inf) for task in tasks]
    return [task for task in tasks if not options.only or options.only.search(task.name)]
