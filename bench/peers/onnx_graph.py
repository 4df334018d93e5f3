#!/usr/bin/env python3
"""Writes a case as an ONNX graph of one frame, state in and out, and prints its tensors as ort_peer takes them.

Usage: onnx_graph.py FOLDER GRAPH [int8]      int8: weights of all products quantised by ONNX Runtime's own tool
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from case import Case

EPSILON = 1e-5


class Graph:
    """Nodes, constants, inputs and outputs; every tensor is [1, width] unless said."""

    def __init__(self):
        self.nodes, self.constants, self.inputs, self.outputs, self.tensors = [], [], [], [], []
        self.count = 0

    def name(self, hint):
        self.count += 1
        return "%s_%d" % (hint, self.count)

    def constant(self, value, hint="c"):
        name = self.name(hint)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, op, inputs, outputs=1, out=None, **attributes):
        names = out or [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names if len(names) > 1 else names[0]

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.tensors.append("in:%s:%s" % (name, "x".join(map(str, shape))))
        return name

    def output(self, tensor, name, shape, feeds=None):
        self.add("Identity", [tensor], out=[name])
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.tensors.append("out:%s:%s%s" % (name, "x".join(map(str, shape)), ":" + feeds if feeds else ""))

    def linear(self, x, weight, bias=None):
        y = self.add("MatMul", [x, self.constant(weight.T, "w")])
        return y if bias is None else self.add("Add", [y, self.constant(bias.reshape(1, -1), "b")])

    def norm(self, x, gain, shift):
        return self.add("LayerNormalization", [x, self.constant(gain), self.constant(shift)], axis=-1, epsilon=EPSILON)

    def silu(self, x):
        return self.add("Mul", [x, self.add("Sigmoid", [x])])

    def save(self, path):
        graph = helper.make_graph(self.nodes, "step", self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="exphil-bench")
        model.ir_version = 8
        onnx.checker.check_model(model)
        onnx.save(model, path)


def reordered(w, order):
    """Gates of torch's order into ONNX' order."""
    parts = np.split(w, len(order))
    return np.concatenate([parts[i] for i in order])


def recurrent(g, kind, x, width, w_ih, w_hh, b_ih, b_hh, state):
    """torch: i f g o and r z n; ONNX: i o f c and z r h. Returns y and the new states."""
    order = [0, 3, 1, 2] if kind == "lstm" else [1, 0, 2]
    hidden = w_hh.shape[1]
    w, r = (g.constant(reordered(m, order)[None]) for m in (w_ih, w_hh))
    b = g.constant(np.concatenate([reordered(b_ih, order), reordered(b_hh, order)])[None])
    x = g.add("Reshape", [x, g.constant(np.array([1, 1, width], np.int64))])
    inputs = [x, w, r, b, ""] + state
    if kind == "lstm":
        _, h, c = g.add("LSTM", inputs, 3, hidden_size=hidden)
        return g.add("Reshape", [h, g.constant(np.array([1, hidden], np.int64))]), [h, c]
    _, h = g.add("GRU", inputs, 2, hidden_size=hidden, linear_before_reset=1)
    return g.add("Reshape", [h, g.constant(np.array([1, hidden], np.int64))]), [h]


def cell(g, case, kind):
    a = case.array
    in_width, hidden = a("w_in").shape[1], a("w_out").shape[1]
    x = g.input("x", [1, in_width])
    if kind == "mlp":
        y = g.silu(g.norm(g.linear(x, a("w_in"), a("b_in")), a("gain"), a("shift")))
        g.output(g.linear(y, a("w_out"), a("b_out")), "y", [1, hidden])
        return {}
    parts = ["h", "c"] if kind == "lstm" else ["h"]
    state = [g.input(part, [1, 1, hidden]) for part in parts]
    y, after = recurrent(g, kind, x, in_width, a("w_in"), a("w_out"), a("b_in"), a("b_out"), state)
    g.output(y, "y", [1, hidden])
    for part, new in zip(parts, after):
        g.output(new, part + "_out", [1, 1, hidden], part)
    return dict(zip(parts, np.split(a("state"), len(parts))))


def mamba(g, w, name, x, states):
    a_log, taps = w[name + "A_log"], w[name + "conv.weight"].shape[1]
    width, n = a_log.shape
    rank = w[name + "dt_proj.weight"].shape[1]
    conv, h = g.input(name + "conv", [taps - 1, width]), g.input(name + "h", [width, n])
    states.update({name + "conv": np.zeros((taps - 1, width)), name + "h": np.zeros((width, n))})
    split = g.constant(np.array([width, width], np.int64))
    xs, z = g.add("Split", [g.linear(x, w[name + "in_proj.weight"], w[name + "in_proj.bias"]), split], 2, axis=1)
    window = g.add("Concat", [conv, xs], axis=0)
    summed = g.add("ReduceSum", [g.add("Mul", [window, g.constant(w[name + "conv.weight"].T)]),
                                 g.constant(np.array([0], np.int64))], keepdims=1)
    xc = g.silu(g.add("Add", [summed, g.constant(w[name + "conv.bias"][None])]))
    kept = g.add("Slice", [window, g.constant(np.array([1], np.int64)), g.constant(np.array([taps], np.int64)),
                           g.constant(np.array([0], np.int64))])
    parts = g.constant(np.array([rank, n, n], np.int64))
    low, b, c = g.add("Split", [g.linear(xc, w[name + "x_proj.weight"]), parts], 3, axis=1)
    delta = g.add("Softplus", [g.linear(low, w[name + "dt_proj.weight"], w[name + "dt_proj.bias"])])
    column = g.constant(np.array([width, 1], np.int64))
    dt_column = g.add("Reshape", [delta, column])
    decay = g.add("Exp", [g.add("Mul", [dt_column, g.constant(-np.exp(a_log))])])
    fresh = g.add("Mul", [g.add("Reshape", [g.add("Mul", [delta, xc]), column]), b])
    after = g.add("Add", [g.add("Mul", [decay, h]), fresh])
    read = g.add("MatMul", [after, g.add("Reshape", [c, g.constant(np.array([n, 1], np.int64))])])
    read = g.add("Reshape", [read, g.constant(np.array([1, width], np.int64))])
    y = g.add("Add", [read, g.add("Mul", [xc, g.constant(w[name + "D"][None])])])
    g.output(kept, name + "conv_out", [taps - 1, width], name + "conv")
    g.output(after, name + "h_out", [width, n], name + "h")
    return g.linear(g.add("Mul", [y, g.silu(z)]), w[name + "out_proj.weight"], w[name + "out_proj.bias"])


def rnn_block(g, w, name, kind, x, states):
    hidden = w[name + "weight_hh"].shape[1]
    parts = [name + "h", name + "c"] if kind == "lstm" else [name + "h"]
    state = [g.input(part, [1, 1, hidden]) for part in parts]
    y, after = recurrent(g, kind, x, w[name + "weight_ih"].shape[1], w[name + "weight_ih"], w[name + "weight_hh"],
                         w[name + "bias_ih"], w[name + "bias_hh"], state)
    for part, new in zip(parts, after):
        g.output(new, part + "_out", [1, 1, hidden], part)
        states[part] = np.zeros(hidden)
    return y


def feedforward(g, w, name, x):
    y = g.linear(x, w[name + "up.weight"], w[name + "up.bias"])
    y = g.silu(g.norm(y, w[name + "up_norm.weight"], w[name + "up_norm.bias"]))
    return g.linear(y, w[name + "down.weight"], w[name + "down.bias"])


def decision(g, case):
    """From the encoded row to the logits; the row's end is the past action, which the heads see too."""
    w, states = case.weights(), {}
    row = g.input("row", [1, w["input.weight"].shape[1]])
    x = g.linear(row, w["input.weight"], w["input.bias"])
    for i, kind in enumerate(case.blocks()):
        name = "blocks.%d." % i
        u = g.norm(x, w[name + "norm.weight"], w[name + "norm.bias"])
        f = (mamba(g, w, name, u, states) if kind == "mamba" else
             rnn_block(g, w, name, kind, u, states) if kind in ("lstm", "gru") else feedforward(g, w, name, u))
        x = g.add("Add", [x, f])
    z = g.linear(g.norm(x, w["norm.weight"], w["norm.bias"]), w["heads.trunk.weight"], w["heads.trunk.bias"])
    logits = g.linear(g.silu(z), w["heads.logits.weight"], w["heads.logits.bias"])
    past = w["heads.past.weight"].shape[1]
    ends = [np.array([w["input.weight"].shape[1] - past], np.int64), np.array([w["input.weight"].shape[1]], np.int64),
            np.array([1], np.int64)]
    tail = g.add("Slice", [row] + [g.constant(e) for e in ends])
    logits = g.add("Add", [logits, g.linear(tail, w["heads.past.weight"])])
    g.output(logits, "logits", [1, w["heads.logits.weight"].shape[0]])
    return states


def quantise(path):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(path, path, weight_type=QuantType.QInt8, per_channel=True,
                     extra_options={"MatMulConstBOnly": True})


def main():
    folder, path = sys.argv[1:3]
    case, g = Case(folder), Graph()
    states = decision(g, case) if case.facts["case"] == "decision" else cell(g, case, case.facts["kind"])
    for name, value in states.items():
        value.astype(np.float32).tofile("%s/%s.bin" % (folder, name))
    g.save(path)
    if sys.argv[3:] == ["int8"]:
        quantise(path)
    print(" ".join(g.tensors))


if __name__ == "__main__":
    main()
