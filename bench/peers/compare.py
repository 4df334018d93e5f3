#!/usr/bin/env python3
"""Times libexphil beside its peers: each builds the same network from the same weights, must give the same result, and then
runs in turn with the others, on the same core and with the same priority.

Usage: compare.py --exphil PROGRAM --peers FOLDER [--out FILE] [--effort X] [--core N] [--quick] [WORD]...
Only cases whose name holds a WORD run. FOLDER is where setup.sh put the peers. Ends with 1 when a peer's result differs.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TICK = 16000000  # ns between the steps of a game


# ---- what is compared -----------------------------------------------------------------------------------------


class Wanted:
    """A case: what serve is told, who takes part, how often, and the bars: (at most, of whose median)."""

    def __init__(self, name, serve, result, peers, calls, rounds, bars=(), pause=0, threads=1, tolerance=1e-4, what=""):
        self.name, self.serve, self.result, self.peers = name, serve, result, peers
        self.calls, self.rounds, self.bars, self.pause = calls, rounds, bars, pause
        self.threads, self.tolerance, self.what = threads, tolerance, what


def cells():
    best = "best of onednn and torch"
    for name, kind, hidden in (("lstm 288->256", "lstm", 256), ("lstm 288->512", "lstm", 512), ("gru 288->256", "gru", 256),
                               ("gru 288->512", "gru", 512), ("mlp 288-512-512", "mlp", 512)):
        words = ["cell", kind, "288", str(hidden)]
        yield Wanted("cell %s f32" % name, words + ["f32"], "y", ["onnxruntime", "onednn", "torch"], 1000, 7,
                     [(0.75, "onnxruntime"), (0.95, best)])
        yield Wanted("cell %s bf16" % name, words + ["bf16"], "y", ["onednn"], 1000, 7,
                     [(0.77, "onednn")] if kind == "lstm" else [], tolerance=2e-2)
        if kind == "mlp":
            yield Wanted("cell %s int8" % name, words + ["int8"], "y", ["onnxruntime"], 2000, 7, [(0.6, "onnxruntime")],
                         tolerance=5e-2)
    for kind, hidden in (("lstm", 256), ("gru", 256), ("mlp", 512)):
        yield Wanted("cell %s %d f32 at 60 Hz" % (kind, hidden), ["cell", kind, "288", str(hidden), "f32"], "y",
                     ["onnxruntime", "onednn"], 60, 3, [], pause=TICK)


def decisions():
    for blocks, hidden in (("mamba*2", 256), ("(lstm ffn)*3", 512)):
        for kind, tolerance in (("f32", 1e-4), ("int8", 5e-2)):
            words = ["decision", blocks, str(hidden), kind]
            yield Wanted("decision %s %d %s" % (blocks, hidden, kind), words, "logits", ["onnxruntime"], 200, 5, [],
                         tolerance=tolerance)
            bars = [(0.4, "onnxruntime")] if blocks == "mamba*2" else []
            yield Wanted("decision %s %d %s at 60 Hz" % (blocks, hidden, kind), words, "logits", ["onnxruntime"], 60, 3,
                         bars, pause=TICK, tolerance=tolerance)


def updates():
    for name, ratio in (("lstm 256", 1.4), ("gru 256", 1.4), ("attention 4 x 64", 1.4), ("mlp 288-512-512", 1.4),
                        ("mamba 256", 5.0)):
        for threads in (1, 2):
            bars = [(1 / ratio, "torch")] if threads == 2 or ratio == 5.0 else []
            slow = name.startswith("mamba")
            yield Wanted("update %s, %d thread%s" % (name, threads, "s" if threads > 1 else ""),
                         ["update", name, str(threads)], "losses", ["torch"], 1 if slow else 5, 3 if slow else 5, bars,
                         threads=threads, tolerance=1e-3)


def operations():
    for count, bars in ((560000, [(0.5, "torch")]), (8400000, [(0.5, "torch")])):
        yield Wanted("AdamW %.2f M parameters" % (count * 1e-6), ["adam", str(count)], "p_after", ["torch"], 40, 5, bars,
                     tolerance=1e-5)
    yield Wanted("norm+SiLU 15360 x 256", ["norm", "15360", "256"], "y", ["torch"], 20, 5, [], tolerance=1e-4)


def everything():
    return [*cells(), *decisions(), *updates(), *operations()]


# ---- processes --------------------------------------------------------------------------------------------------


class Party:
    """One process that answers rounds."""

    def __init__(self, name, command, environment, log):
        self.name, self.samples = name, []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                        env=dict(os.environ, **environment))

    def ready(self):
        line = self.process.stdout.readline()
        if line.strip() != "ready":
            self.process.wait()
            raise RuntimeError("%s did not start (%r)" % (self.name, line))

    def round(self, calls, pause):
        self.process.stdin.write("round %d %d\n" % (calls, pause))
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("%s ended during a round" % self.name)
        self.samples += json.loads(line)["ns"]

    def end(self):
        try:
            self.process.communicate("quit\n", timeout=20)
        except (BrokenPipeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()


class Setting:
    """Where the programs are and how they are started."""

    def __init__(self, options):
        self.options, self.peers = options, options.peers
        self.python = os.path.join(self.peers, "bin", "python")
        found = glob.glob(os.path.join(self.peers, "lib", "python3*", "site-packages", "onnxruntime", "capi",
                                       "libonnxruntime.so.*"))
        self.onnxruntime = found[0] if found else None
        self.fifo = bool(shutil.which("chrt")) and subprocess.run(
            ["chrt", "-f", "50", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0

    def start(self, command, threads):
        begin = ["chrt", "-f", "50"] if self.fifo else []
        if threads == 1 and shutil.which("taskset"):
            begin += ["taskset", "-c", str(self.options.core)]
        return begin + command

    def has(self, peer):
        if peer == "onnxruntime":
            return self.onnxruntime and os.path.exists(os.path.join(self.peers, "bin", "ort_peer"))
        if peer == "onednn":
            return os.path.exists(os.path.join(self.peers, "bin", "onednn_peer"))
        return subprocess.run([self.python, "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode == 0

    def command(self, peer, wanted, folder, log):
        if peer == "torch":
            return [self.python, os.path.join(HERE, "torch_peer.py"), folder, str(wanted.threads)]
        if peer == "onednn":
            return [os.path.join(self.peers, "bin", "onednn_peer"), folder] + wanted.serve[1:]
        graph = os.path.join(folder, "graph.onnx")
        command = [self.python, os.path.join(HERE, "onnx_graph.py"), folder, graph] + (["int8"] if "int8" in wanted.serve else [])
        made = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, check=True)
        return [os.path.join(self.peers, "bin", "ort_peer"), self.onnxruntime, graph, folder] + made.stdout.split()


# ---- one case ---------------------------------------------------------------------------------------------------


def check(wanted, peer, folder):
    """Largest difference as a share of the largest number; raises when it is more than allowed."""
    ours = np.fromfile(os.path.join(folder, wanted.result + ".bin"), np.float32)
    theirs = np.fromfile(os.path.join(folder, "%s.%s.bin" % (peer, wanted.result)), np.float32)
    if ours.shape != theirs.shape:
        raise RuntimeError("%s: %s gives %d numbers, not %d" % (wanted.name, peer, theirs.size, ours.size))
    off = float(np.abs(ours - theirs).max() / np.abs(ours).max())
    if not off <= wanted.tolerance:
        raise RuntimeError("%s: %s gives another result: off by %.2g, allowed %.2g" % (wanted.name, peer, off, wanted.tolerance))
    return off


def statistics(name, samples, off):
    v = np.sort(np.array(samples))
    at = lambda q: float(np.round(v[int(q * (len(v) - 1) + 0.5)], 1))
    return {"who": name, "samples": len(v), "p25_ns": at(0.25), "p50_ns": at(0.5), "p75_ns": at(0.75), "p99_ns": at(0.99),
            "p999_ns": at(0.999), "difference": off}


def judge(wanted, parties):
    """The bars: ours as a share of a peer's median."""
    median = {p["who"]: p["p50_ns"] for p in parties}
    out = []
    for most, whose in wanted.bars:
        if whose.startswith("best of"):
            known = [median[w] for w in ("onednn", "torch") if w in median]
        else:
            known = [median[whose]] if whose in median else []
        if known:
            ratio = median["exphil"] / min(known)
            out.append({"at_most": round(most, 4), "of": whose, "ratio": round(ratio, 4), "met": ratio <= most})
    return out


def run_case(setting, wanted, missing):
    options, folder = setting.options, tempfile.mkdtemp(prefix="exphil-peers-")
    calls = max(1, int(wanted.calls * options.effort)) if not options.quick else 2
    rounds = 1 if options.quick else wanted.rounds
    threads = {"OMP_NUM_THREADS": str(wanted.threads), "DNNL_NUM_THREADS": str(wanted.threads)}
    log = open(os.path.join(folder, "log"), "w+")
    parties, off = [], {"exphil": 0.0}
    try:
        serve = [options.exphil, "bench", "--folder", folder, "serve"] + wanted.serve
        parties.append(Party("exphil", setting.start(serve, wanted.threads), threads, log))
        parties[0].ready()
        for peer in wanted.peers:
            if peer in missing:
                continue
            command = setting.command(peer, wanted, folder, log)
            parties.append(Party(peer, setting.start(command, wanted.threads), threads, log))
            parties[-1].ready()
            off[peer] = check(wanted, peer, folder)
        for _ in range(rounds):
            for party in parties:
                party.round(calls, wanted.pause)
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        log.seek(0)
        raise RuntimeError("%s\n%s" % (error, log.read()[-2000:])) from None
    finally:
        for party in parties:
            party.end()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)
    rows = [statistics(p.name, p.samples, off[p.name]) for p in parties]
    return {"case": wanted.name, "threads": wanted.threads, "paced": bool(wanted.pause), "parties": rows,
            "bars": judge(wanted, rows)}


def show(row):
    unit, name = (1e3, "us") if row["parties"][0]["p50_ns"] < 1e6 else (1e6, "ms")
    print(row["case"])
    for p in row["parties"]:
        share = row["parties"][0]["p50_ns"] / p["p50_ns"]
        print("  %-12s p50 %9.2f  [%9.2f .. %9.2f]  p99 %9.2f  p99.9 %9.2f %s   ours / theirs %.3f   off by %.1e" % (
            p["who"], p["p50_ns"] / unit, p["p25_ns"] / unit, p["p75_ns"] / unit, p["p99_ns"] / unit,
            p["p999_ns"] / unit, name, share, p["difference"]))
    for bar in row["bars"]:
        print("  bar: <= %.3g x %s: %.3f, %s" % (bar["at_most"], bar["of"], bar["ratio"], "met" if bar["met"] else "MISSED"))
    sys.stdout.flush()


# ---- all ---------------------------------------------------------------------------------------------------------


def versions(setting):
    script = ("import importlib.metadata as m\n"
              "for n in ('torch','onnxruntime','onnx','onednn-cpu-gomp','onednn-devel-cpu-gomp','numpy'):\n"
              "    try: print(n, m.version(n))\n"
              "    except m.PackageNotFoundError: pass\n")
    out = subprocess.run([setting.python, "-c", script], stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(line.split() for line in out.splitlines())


def machine(setting):
    out = subprocess.run([setting.options.exphil, "bench", "--quick", "--plain", "--json", "floors"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=True)
    found = json.loads(out.stdout)["machine"]
    found["fifo"], found["pinned"] = setting.fifo, True
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exphil", required=True)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--out")
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="check that results agree, hardly time")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    setting = Setting(options)
    missing = [p for p in ("onnxruntime", "onednn", "torch") if not setting.has(p)]
    for peer in missing:
        print("SKIPPED: %s is not installed in %s" % (peer, options.peers))
    report = {"bench": "peers", "format": 1, "machine": machine(setting), "versions": versions(setting), "missing": missing,
              "rows": []}
    failed = False
    for wanted in everything():
        if options.words and not any(word in wanted.name for word in options.words):
            continue
        try:
            report["rows"].append(run_case(setting, wanted, missing))
            show(report["rows"][-1])
        except RuntimeError as error:
            print("FAILED: %s" % error)
            failed = True
    if options.out:
        with open(options.out, "w") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
    bars = [bar for row in report["rows"] for bar in row["bars"]]
    print("%d of %d bars met" % (sum(bar["met"] for bar in bars), len(bars)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
