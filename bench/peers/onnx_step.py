#!/usr/bin/env python3
"""Times a decision of policies in a session and, exported, in ONNX Runtime: both with one thread, in turn, on one core.

Usage: onnx_step.py --peers FOLDER [--build FOLDER] [--rounds N] [--out FILE.md] [--core N]
FOLDER is where setup.sh put ONNX Runtime, --build (build/release) where libexphil.so is. ONNX Runtime runs by its C interface,
its state fed back without a copy, and from Python by session.run. A round is 200 decisions; the table has medians of all.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnxruntime

TOP = pathlib.Path(__file__).resolve().parents[2]
CASES = [("mamba*2", 256), ("lstm", 256), ("gru", 256), ("attention", 256), ("mlp", 256), ("(lstm ffn)*3", 512)]
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
CALLS = 200


def session_of(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def arrays_of(session):
    """Inputs of a stream: noise one half, temperature 1, ids and states 0."""
    arrays = {}
    for value in session.get_inputs():
        shape = [1 if n == "N" else n for n in value.shape]
        start = {"noise": 0.5, "temperature": 1.0, "press": 0.5, "release": 0.5, "floats": 0.3}.get(value.name, 0)
        arrays[value.name] = np.full(shape, start, TYPES[value.type])
    return arrays


def words_of(session, arrays, folder):
    """Tensors as ort_peer takes them, and their files."""
    def dims(array):
        return "x".join(map(str, array.shape)) + ("i" if array.dtype == np.int64 else "")
    words = []
    for name, array in arrays.items():
        array.tofile(os.path.join(folder, name + ".bin"))
        words.append("in:%s:%s" % (name, dims(array)))
    shapes = session.run(None, arrays)
    for value, array in zip(session.get_outputs(), shapes):
        feeds = value.name[:-4] if value.name.endswith("_out") else None
        words.append("out:%s:%s%s" % (value.name, dims(array), ":" + feeds if feeds else ""))
    return words


class Peer:
    """A program that runs rounds when it is told to."""

    def __init__(self, words):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout.readline() == "ready\n", words

    def round(self):
        self.process.stdin.write("round %d 0\n" % CALLS)
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["ns"]

    def end(self):
        self.process.communicate("quit\n")


def python_round(session, arrays):
    times, carried = [], [(i, v.name[:-4]) for i, v in enumerate(session.get_outputs()) if v.name.endswith("_out")]
    for _ in range(CALLS):
        began = time.perf_counter_ns()
        out = session.run(None, arrays)
        arrays.update((name, out[i]) for i, name in carried)
        times.append(time.perf_counter_ns() - began)
    return times


def measure(program, asked, blocks, hidden, kind, folder):
    graph = os.path.join(folder, "step.onnx")
    library = next(pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so*"))
    own = Peer([program, blocks, str(hidden), kind, graph])
    session = session_of(graph)
    arrays = arrays_of(session)
    other = Peer([os.path.join(asked.peers, "bin", "ort_peer"), str(library), graph, folder] + words_of(session, arrays, folder))
    times = [[], [], []]
    for _ in range(asked.rounds):
        times[0] += own.round()
        times[1] += other.round()
        times[2] += python_round(session, arrays)
    own.end()
    other.end()
    return [statistics.median(ns) * 1e-3 for ns in times], os.path.getsize(graph)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--peers", required=True)
    options.add_argument("--build", default=str(TOP / "build" / "release"))
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--core", type=int, default=0)
    options.add_argument("--out")
    asked = options.parse_args()
    os.sched_setaffinity(0, {asked.core})
    cpu = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    lines = ["# A decision in a session and in ONNX Runtime", "",
             "`bench/peers/onnx_step.py`, %s, on one core of an %s; onnxruntime %s. Melee's spec, autoregressive heads, one thread,"
             % (datetime.date.today(), cpu, onnxruntime.__version__),
             "medians of %d decisions each, in turns of %d. Other work ran on the machine." % (asked.rounds * CALLS, CALLS), "",
             "| policy | weights | session, us | ONNX Runtime from C, us | times | from Python, us | file, KB |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "onnx_step")
        subprocess.check_call(["cc", "-O2", "-o", program, str(TOP / "bench/peers/onnx_step.c"), "-I%s" % (TOP / "include"),
                               "-L" + asked.build, "-Wl,-rpath," + os.path.abspath(asked.build), "-lexphil"])
        for blocks, hidden in CASES:
            for kind in ("f32", "bf16", "int8") if blocks == "mamba*2" else ("f32", "int8"):
                (own, c, python), size = measure(program, asked, blocks, hidden, kind, folder)
                lines.append("| %s %d | %s | %.1f | %.1f | %.1f | %.1f | %d |"
                             % (blocks, hidden, kind, own, c, c / own, python, size // 1000))
                print(lines[-1], flush=True)
    if asked.out:
        pathlib.Path(asked.out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
