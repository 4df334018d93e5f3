"""Plays exported policies in ONNX Runtime, by what doc/onnx.md says alone, beside what the library played (onnx_policies.c).

Usage: onnx_check.py FOLDER [LEVEL]...     optimization levels: all (default), extended, basic, none
Logits of f32 policies must agree to 1e-5 of the largest, and all actions; of int8 and bfloat16, which may round a tie to the
other side, to 0.05, in half of the frames to 5e-4, and all actions but 1 in 200.
"""
import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime as ort

LEVELS = {"all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL, "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
          "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC, "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL}
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
WEIGHTS = {0: "f32", 2: "bf16", 3: "int8"}


class Play:
    """What onnx_policies.c wrote."""

    def __init__(self, path):
        head, data = path.read_bytes().split(b"\n", 1)
        self.facts = facts = json.loads(head)
        at, rows = 0, (facts["frames"], facts["streams"])
        for name, width, kind in (("floats", facts["floats"], "f4"), ("ids", facts["ids"], "i4"),
                                  ("noise", facts["logits"], "f4"), ("logits", facts["logits"], "f4"), ("value", 1, "f4"),
                                  ("actions", facts["heads"], "i4"), ("given", facts["heads"], "i4"), ("reset", 1, "u1")):
            array = np.frombuffer(data, kind, rows[0] * rows[1] * width, at).reshape(*rows, width)
            at += array.nbytes
            setattr(self, name, array)
        assert at == len(data), (path, at, len(data))


class Policy:
    """A policy from its file: states are the inputs that come out again as NAME_out."""

    def __init__(self, path, streams, level):
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = ort.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        self.outputs = [value.name for value in self.session.get_outputs()]
        self.inputs = {value.name: value for value in self.session.get_inputs()}
        self.start = {}
        model = json.loads(self.session.get_modelmeta().custom_metadata_map["exphil.model"])
        for name, value in self.inputs.items():
            if name + "_out" in self.outputs:
                shape = [streams if n == "N" else n for n in value.shape]
                self.start[name] = np.zeros(shape, TYPES[value.type])
        if "past" in self.start:
            self.start["past"][:] = [head["neutral"] for head in model["heads"]]
        self.state = {name: array.copy() for name, array in self.start.items()}

    def reset(self, stream):
        for name, array in self.state.items():
            array[stream] = self.start[name][stream]

    def override(self, stream, action):
        if "past" in self.state:
            self.state["past"][stream, 0] = action

    def step(self, **inputs):
        out = dict(zip(self.outputs, self.session.run(None, {**inputs, **self.state})))
        self.state = {name: out.pop(name + "_out") for name in self.state}
        return out


def check_file(path):
    """What the checker, shape inference and a reader of names demand."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert (model.ir_version, [(o.domain, o.version) for o in model.opset_import]) == (8, [("", 17)])
    names = [out for node in model.graph.node for out in node.output]
    names += [tensor.name for tensor in model.graph.initializer]
    assert len(names) == len(set(names)), path
    assert all(node.name for node in model.graph.node)
    return len(model.graph.node)


def play(folder, name, level):
    """What was played, the largest and the median error of logits and value, the largest logit, rows whose actions differ."""
    p = Play(folder / (name + ".play"))
    facts = p.facts
    policy = Policy(folder / (name + ".onnx"), facts["streams"], level)
    fixed = {name: np.tile(np.array(setting, np.float32), (facts["streams"], 1))
             for name, setting in zip(("temperature", "press", "release"), zip(*facts["how"])) if name in policy.inputs}
    if facts["told"]:
        fixed["conditions"] = np.tile(np.array(facts["conditions"], np.int64), (facts["streams"], 1))
        fixed["delay"] = np.full(facts["streams"], facts["delay"], np.int64)
    errors, differ = np.zeros((facts["frames"], 1)), 0
    for t in range(facts["frames"]):
        for b in np.flatnonzero(p.reset[t]):
            policy.reset(b)
        row = {"floats": p.floats[t], "ids": p.ids[t].astype(np.int64), "noise": p.noise[t]}
        row = {key: array for key, array in row.items() if key in policy.inputs}
        out = policy.step(**row, **fixed)
        errors[t] = np.abs(out["logits"] - p.logits[t]).max()
        if facts["value"]:
            errors[t] = max(errors[t], np.abs(out["value"] - p.value[t]).max())
        differ += int((out["actions"] != p.actions[t]).any(axis=1).sum())
        for b in np.flatnonzero(p.given[t, :, 0] >= 0):
            policy.override(b, p.given[t, b])
    return facts, errors.max(), np.median(errors), np.abs(p.logits).max(), differ


def main():
    folder = pathlib.Path(sys.argv[1])
    bad = 0
    for path in sorted(folder.glob("*.play")):
        name = path.name[:-5]
        nodes = check_file(folder / (name + ".onnx"))
        for word in sys.argv[2:] or ["all"]:
            facts, error, usual, most, differ = play(folder, name, LEVELS[word])
            rows = facts["frames"] * facts["streams"]
            if facts["weights"]:
                fine = error <= 0.05 and usual <= 5e-4 and differ <= rows / 200
            else:
                fine = error <= 1e-5 * most and not differ
            bad += not fine
            print("%-15s %-5s %4d nodes  %-8s error at most %.1e, usually %.1e, of %4.1f  %d of %d rows differ  %s%s"
                  % (name, WEIGHTS[facts["weights"]], nodes, word, error, usual, most, differ, rows, facts["blocks"],
                     "" if fine else "  WRONG"), flush=True)
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
