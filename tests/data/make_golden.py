#!/usr/bin/env python3
"""Writes tests/data/golden/*.safetensors: small models computed in float64 by PyTorch, apart from libexphil's own code.

Every file holds one chunk of frames, the weights, what the model makes of them, the loss and all gradients (by autograd).
tests/ops/golden_test.c demands the same of libexphil. Inputs and weights are numbers that single precision holds exactly.
Written with torch 1.13 and numpy 1.24; any later version gives the same to about 1e-14.

Usage: make_golden.py [folder]
"""
import json
import os
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)

FLOATS = 13
IDS = [("stage", 5, 3), ("own.character", 7, 8)]  # name, entries, width
HEADS = [("bits", 3), ("class", 5), ("class", 4)]  # kind, count
NAMES = ["buttons", "stick", "trigger"]
LOGITS = sum(count for _, count in HEADS)
FIRST = [0, 3, 8]

BASE = dict(hidden=12, head_width=10, mamba_states=5, mamba_expand=2, mamba_taps=4, mamba_rank=3, attention_heads=2,
            attention_dim=6, attention_window_frames=5, ffn_expand=2, delay_frames=1, heads=0, state=1)

CASES = {
    "mamba": dict(blocks="mamba"),
    "lstm": dict(blocks="lstm"),
    "gru": dict(blocks="gru"),
    "attention": dict(blocks="attention"),
    "mlp": dict(blocks="mlp"),
    "ffn": dict(blocks="ffn"),
    "network": dict(blocks="mamba attention gru ffn lstm mlp", heads=1, delay_frames=2, state=0, hidden=10),
    "carried": dict(blocks="attention mamba lstm", heads=1, delay_frames=0, hidden=9, mamba_taps=3),
    "lstm_bare": dict(blocks="lstm_bare"),
    "gru_bare": dict(blocks="gru_bare"),
    "ffn_gelu": dict(blocks="ffn_gelu"),
    "mamba_exphil": dict(blocks="mamba_exphil"),
    "lstm_only": dict(blocks="lstm_only"),
    "gru_only": dict(blocks="gru_only"),
    "dense": dict(blocks="dense"),
    "norm": dict(blocks="norm"),
    "relu": dict(blocks="relu"),
    "series": dict(blocks="norm gru_only relu dense lstm_bare ffn_gelu lstm_only norm", heads=1, hidden=11),
    "no_final_norm": dict(blocks="mamba lstm", no_final_norm=1, no_head_past=1, norm_epsilon=1e-3),
    "heads_of_exphil": dict(blocks="mlp", head_layers=1, head_units=8, head_activation=1, no_head_trunk=1, no_final_norm=1),
    "heads_of_slippi": dict(blocks="lstm_bare ffn_gelu", heads=1, delay_frames=2, head_layers=2, head_units=9, head_activation=1,
                            head_last=1, no_head_past=1, no_final_norm=1, norm_epsilon=1e-6),
    "heads_layers": dict(blocks="gru", heads=1, head_layers=4, head_activation=2, head_last=1, norm_epsilon=0.01),
    "heads_silu": dict(blocks="mlp", heads=1, head_layers=1, head_units=17, no_head_trunk=1),
    "input_wider": dict(blocks="norm gru_only norm lstm_only norm", input_width=17, hidden=11, norm_epsilon=1e-6, no_final_norm=1),
    "input_narrower": dict(blocks="relu dense relu mlp dense relu", input_width=7, heads=1),
}
BATCH, TIME = 2, 7
RESETS = [(0, 3), (1, 0), (1, 5)]  # stream, frame


class Maker:
    """Draws inputs and weights; keeps the weights by name, in the order libexphil has them."""

    def __init__(self, config, seed):
        self.c = config
        self.random = np.random.RandomState(seed)
        self.weights = {}

    def draw(self, *shape, scale=1.0):
        return self.random.uniform(-scale, scale, shape).astype(np.float32)

    def tensor(self, name, *shape, scale=None, middle=0.0):
        if scale is None:
            scale = 1.0 / np.sqrt(shape[-1])
        value = torch.tensor((middle + self.draw(*shape, scale=scale)).astype(np.float32).astype(np.float64))
        self.weights[name] = value.requires_grad_(True)
        return self.weights[name]

    def linear(self, name, inputs, outputs):
        return self.tensor(name + ".weight", outputs, inputs), self.tensor(name + ".bias", outputs, scale=0.3)

    def norm(self, name, width):
        weight, bias = self.tensor(name + ".weight", width, scale=0.4, middle=1.0), self.tensor(name + ".bias", width, scale=0.3)
        return weight, bias, self.c.get("norm_epsilon", 1e-5)


def normalize(x, pair):
    return F.layer_norm(x, (x.shape[-1],), pair[0], pair[1], eps=pair[2])


# ---- blocks: (u [T,H] and the state of a stream, reset [T]) -> (f [T,H], new state) ----


class Mamba:
    def __init__(self, m, name):
        c = m.c
        self.c, hidden, self.width = c, c["hidden"], c["hidden"] * c["mamba_expand"]
        width, states, rank, taps = self.width, c["mamba_states"], c["mamba_rank"], c["mamba_taps"]
        self.inside = m.linear(name + "in_proj", hidden, 2 * width)
        self.conv = m.tensor(name + "conv.weight", width, taps), m.tensor(name + "conv.bias", width, scale=0.5)
        self.x_proj = [m.tensor(name + "x_proj.weight", rank + 2 * states, width)]
        self.declare_steps(m, name)
        self.out = m.linear(name + "out_proj", width, hidden)
        self.state = (taps - 1) * width + width * states

    def declare_steps(self, m, name):
        self.dt = m.linear(name + "dt_proj", m.c["mamba_rank"], self.width)
        a_log = m.tensor(name + "A_log", self.width, m.c["mamba_states"], scale=0.8, middle=0.5)
        self.rates = lambda: -torch.exp(a_log)
        self.skip = m.tensor(name + "D", self.width, scale=0.5, middle=1.0)

    def steps(self, dt):
        return F.softplus(dt, threshold=1e9)

    def start(self, m):
        return m.draw(self.state, scale=0.8).astype(np.float64)

    def convolve(self, x, before):
        """x [T,D] after the inputs `before` [taps-1,D], with torch's own convolution."""
        whole = torch.cat([before, x]).t().unsqueeze(0)
        y = F.conv1d(whole, self.conv[0].unsqueeze(1), self.conv[1], groups=self.width)
        return F.silu(y[0].t())

    def stream(self, u, state, reset):
        c, taps, time = self.c, self.c["mamba_taps"], u.shape[0]
        kept = (taps - 1) * self.width
        before, h = state[:kept].view(taps - 1, self.width), state[kept:].view(self.width, c["mamba_states"])
        x, z = F.linear(u, *self.inside).chunk(2, dim=-1)
        pieces, start = [], 0
        for end in [t for t in range(1, time) if reset[t]] + [time]:
            if reset[start]:
                before = torch.zeros_like(before)
            pieces.append(self.convolve(x[start:end], before))
            before = torch.cat([before, x[start:end]])[-(taps - 1):]
            start = end
        xc = torch.cat(pieces)
        low, b, cc = F.linear(xc, *self.x_proj).split([c["mamba_rank"], c["mamba_states"], c["mamba_states"]], dim=-1)
        delta = self.steps(F.linear(low, *self.dt))
        a, rows = self.rates(), []
        for t in range(time):
            if reset[t]:
                h = torch.zeros_like(h)
            h = torch.exp(delta[t][:, None] * a) * h + (delta[t] * xc[t])[:, None] * b[t][None, :]
            rows.append(h @ cc[t] + self.skip * xc[t])
        y = torch.stack(rows) * F.silu(z)
        return F.linear(y, *self.out), torch.cat([before.reshape(-1), h.reshape(-1)])


class MambaExphil(Mamba):
    """Rates 1..N, no skip, a bias of x_proj, steps within limits: some below, some between, some above."""

    def declare_steps(self, m, name):
        states, rank = m.c["mamba_states"], m.c["mamba_rank"]
        self.x_proj.append(m.tensor(name + "x_proj.bias", rank + 2 * states, scale=0.3))
        self.dt = [m.tensor(name + "dt_proj.weight", self.width, rank),
                   m.tensor(name + "dt_proj.bias", self.width, scale=3.5, middle=-4.5)]
        self.rates = lambda: -torch.arange(1.0, states + 1).expand(self.width, states)
        self.skip = torch.zeros(self.width)

    def steps(self, dt):
        return F.softplus(dt, threshold=1e9).clamp(0.001, 0.1)


class Recurrent:
    """torch's own cells, frame by frame."""

    def __init__(self, m, name, kind, width):
        hidden, gates = m.c["hidden"], 4 if kind == "lstm" else 3
        self.kind, self.hidden = kind, hidden
        self.state = hidden * (2 if kind == "lstm" else 1)
        self.w = [m.tensor(name + "weight_ih", gates * hidden, width), m.tensor(name + "weight_hh", gates * hidden, hidden),
                  m.tensor(name + "bias_ih", gates * hidden, scale=0.3), m.tensor(name + "bias_hh", gates * hidden, scale=0.3)]

    def start(self, m):
        return m.draw(self.state, scale=0.8).astype(np.float64)

    def stream(self, u, state, reset):
        parts, rows = [p.unsqueeze(0) for p in state.split(self.hidden)], []
        for t in range(u.shape[0]):
            if reset[t]:
                parts = [torch.zeros_like(p) for p in parts]
            if self.kind == "lstm":
                parts = list(torch._VF.lstm_cell(u[t:t + 1], parts, *self.w))
            else:
                parts = [torch._VF.gru_cell(u[t:t + 1], parts[0], *self.w)]
            rows.append(parts[0][0])
        return torch.stack(rows), torch.cat([p[0] for p in parts])


class Attention:
    def __init__(self, m, name):
        c = m.c
        self.heads, self.dim, self.window = c["attention_heads"], c["attention_dim"], c["attention_window_frames"]
        self.span = self.heads * self.dim
        self.qkv = m.linear(name + "qkv", c["hidden"], 3 * self.span)
        self.relative = m.tensor(name + "relative_bias", self.heads, self.window, scale=0.7)
        self.out = m.linear(name + "out_proj", self.span, c["hidden"])
        self.state = 2 * self.window * self.span + 2

    def start(self, m):
        """A ring that holds fewer frames than it could and begins in its middle."""
        ring = m.draw(self.state, scale=0.8).astype(np.float64)
        ring[-2:] = [2, self.window - 2]
        return ring

    def stream(self, u, state, reset):
        time, size = u.shape[0], self.window * self.span
        ring_k, ring_v = state[:size].view(self.window, -1), state[size:2 * size].view(self.window, -1)
        place, filled = int(state[-2]), int(state[-1])
        old = [(place - 1 - i) % self.window for i in reversed(range(filled))]
        q, k, v = F.linear(u, *self.qkv).split(self.span, dim=-1)
        keys, values = torch.cat([ring_k[old], k]), torch.cat([ring_v[old], v])
        episode = np.cumsum(np.asarray(reset, dtype=int))
        of_key = np.concatenate([np.zeros(filled, int), episode])
        distance = (np.arange(time) + filled)[:, None] - np.arange(time + filled)[None, :]
        seen = torch.tensor((distance >= 0) & (distance < self.window) & (episode[:, None] == of_key[None, :]))
        rows = []
        for a in range(self.heads):
            part = slice(a * self.dim, (a + 1) * self.dim)
            bias = self.relative[a][torch.tensor(distance.clip(0, self.window - 1))]
            score = q[:, part] @ keys[:, part].t() / np.sqrt(self.dim) + bias
            rows.append(torch.softmax(score.masked_fill(~seen, -np.inf), dim=-1) @ values[:, part])
        ring_k, ring_v = ring_k.clone(), ring_v.clone()
        for t in range(time):
            ring_k[place], ring_v[place] = k[t], v[t]
            place, filled = (place + 1) % self.window, min(self.window, (0 if reset[t] else filled) + 1)
        counters = torch.tensor([place, filled], dtype=torch.float64)
        return F.linear(torch.cat(rows, dim=-1), *self.out), torch.cat([ring_k.reshape(-1), ring_v.reshape(-1), counters])


class Stateless:
    state = 0

    def start(self, m):
        return np.zeros(0)

    def stream(self, u, state, reset):
        return self.of(u), state


class FeedForward(Stateless):
    def __init__(self, m, name, inner, gelu=False):
        self.up = m.linear(name + "up", m.c["hidden"], inner)
        self.norm = None if gelu else m.norm(name + "up_norm", inner)
        self.down = m.linear(name + "down", inner, m.c["hidden"])

    def of(self, u):
        inner = F.linear(u, *self.up)
        return F.linear(F.silu(normalize(inner, self.norm)) if self.norm else gelu_tanh(inner), *self.down)


class Dense(Stateless):
    def __init__(self, m, name, width):
        self.linear = m.tensor(name + "weight", m.c["hidden"], width), m.tensor(name + "bias", m.c["hidden"], scale=0.3)

    def of(self, u):
        return F.linear(u, *self.linear)


class Norm(Stateless):
    def __init__(self, m, name, width):
        self.norm = m.norm(name + "norm", width)

    def of(self, u):
        return normalize(u, self.norm)


class Relu(Stateless):
    def __init__(self, m, name, width):
        pass

    def of(self, u):
        return F.relu(u)


def gelu_tanh(x):
    return 0.5 * x * (1 + torch.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


SERIES = ("lstm_only", "gru_only", "dense", "norm", "relu")


def width_before(c, index):
    """Of x in front of a block."""
    changed = any(kind in ("lstm_only", "gru_only", "dense") for kind in c["blocks"].split()[:index])
    return c["hidden"] if changed else c.get("input_width", c["hidden"])


def make_block(m, index, kind):
    """The LayerNorm in front of it or None, and the block."""
    name = "blocks.%d." % index
    if kind in ("dense", "norm", "relu"):
        return None, {"dense": Dense, "norm": Norm, "relu": Relu}[kind](m, name, width_before(m.c, index))
    if kind[:4] in ("lstm", "gru_") and "_" in kind:
        return None, Recurrent(m, name, kind.split("_")[0], width_before(m.c, index))
    norm = m.norm(name + "norm", m.c["hidden"])
    if kind in ("mamba", "mamba_exphil"):
        return norm, (Mamba if kind == "mamba" else MambaExphil)(m, name)
    if kind == "attention":
        return norm, Attention(m, name)
    if kind in ("lstm", "gru"):
        return norm, Recurrent(m, name, kind, m.c["hidden"])
    return norm, FeedForward(m, name, m.c["hidden"] * (1 if kind == "mlp" else m.c["ffn_expand"]), kind == "ffn_gelu")


# ---- the whole model ----


def taken(kind, count, value):
    """Bits or the class of an action as numbers [count]."""
    if kind == "bits":
        return torch.tensor([float(value >> i & 1) for i in range(count)])
    return torch.eye(count)[value]


def rows_of(floats, ids, past, tables):
    rows = []
    for t in range(floats.shape[0]):
        parts = [torch.tensor(floats[t].astype(np.float64))]
        parts += [table[ids[t][i]] for i, table in enumerate(tables)]
        for slot in past[t]:
            parts += [taken(*head, int(value)) for head, value in zip(HEADS, slot)]
        rows.append(torch.cat(parts))
    return torch.stack(rows)


def logits_of(z, base, actions, v, bias, e):
    out = []
    for t in range(z.shape[0]):
        s, row = z[t], []
        for i, (kind, count) in enumerate(HEADS):
            part = slice(FIRST[i], FIRST[i] + count)
            row.append(base[t, part] + F.linear(F.silu(s), v[part], bias[part]))
            if e is not None:
                s = s + taken(kind, count, int(actions[t][i])) @ e[part]
        out.append(torch.cat(row))
    return torch.stack(out)


class Head:
    """One with hidden layers of its own."""

    def __init__(self, m, index, seen):
        c, name = m.c, "heads.%s." % NAMES[index]
        self.layers, units = [], c.get("head_units", c["head_width"])
        for layer in range(c["head_layers"] + 1):
            logits = layer == c["head_layers"]
            self.layers.append(m.linear("%s%d" % (name, layer), units if layer else seen, HEADS[index][1] if logits else units))
        self.before = m.tensor(name + "before", FIRST[index], units, scale=0.6) if c["heads"] and index else None
        self.last = m.tensor(name + "last", HEADS[index][1], units, scale=0.6) if c.get("head_last") else None
        self.index, self.act = index, [F.silu, F.relu, gelu_tanh][c.get("head_activation", 0)]

    def logits(self, z, action, past):
        x = F.linear(z, *self.layers[0])
        if self.before is not None:
            x = x + torch.cat([taken(*head, int(value)) for head, value in zip(HEADS[:self.index], action)]) @ self.before
        if self.last is not None:
            x = x + taken(*HEADS[self.index], int(past[0][self.index])) @ self.last
        for layer in self.layers[1:]:
            x = F.linear(self.act(x), *layer)
        return x


def head_loss(logits, kind, count, action, gamma, smoothing, positive):
    if kind == "bits":
        y = taken(kind, count, action)
        p = torch.sigmoid(logits)
        p_true = y * p + (1 - y) * (1 - p)
        bce = F.binary_cross_entropy_with_logits(logits, y, reduction="none", pos_weight=torch.tensor(positive))
        return ((1 - p_true) ** gamma * bce).mean()
    target = (1 - smoothing) * taken(kind, count, action) + smoothing / count
    log_p = torch.log_softmax(logits, dim=-1)
    return (1 - (log_p.exp() * target).sum()) ** gamma * -(target * log_p).sum()


def build(m):
    c = m.c
    slots = c["delay_frames"] + 1
    row = FLOATS + sum(width for _, _, width in IDS) + slots * LOGITS
    model = {"input": m.linear("input", row, width_before(c, 0))}
    model["tables"] = [m.tensor("ids.%s.weight" % name, entries, width, scale=0.7) for name, entries, width in IDS]
    model["kinds"] = c["blocks"].split()
    model["blocks"] = [make_block(m, i, kind) for i, kind in enumerate(model["kinds"])]
    if not c.get("no_final_norm"):
        model["norm"] = m.norm("norm", c["hidden"])
    if not c.get("no_head_trunk"):
        model["trunk"] = m.linear("heads.trunk", c["hidden"], c["head_width"])
    if c.get("head_layers"):
        if not c.get("no_head_past"):
            model["past"] = m.tensor("heads.past.weight", LOGITS, slots * LOGITS, scale=0.4)
        model["heads"] = [Head(m, i, c["hidden" if c.get("no_head_trunk") else "head_width"]) for i in range(len(HEADS))]
        return model
    model["v"] = m.tensor("heads.logits.weight", LOGITS, c["head_width"], scale=0.8)
    model["bias"] = m.tensor("heads.logits.bias", LOGITS, scale=0.4)
    if not c.get("no_head_past"):
        model["past"] = m.tensor("heads.past.weight", LOGITS, slots * LOGITS, scale=0.4)
    model["e"] = m.tensor("heads.embed", LOGITS, c["head_width"], scale=0.5) if c["heads"] else None
    return model


def draw_actions(m, *shape):
    limits = [1 << count if kind == "bits" else count for kind, count in HEADS]
    return np.stack([m.random.randint(0, limit, shape) for limit in limits], axis=-1).astype(np.int32)


def draw_inputs(m, model):
    slots = m.c["delay_frames"] + 1
    reset = np.zeros((BATCH, TIME), np.uint8)
    for stream, frame in RESETS:
        reset[stream, frame] = 1
    data = {"floats": m.draw(BATCH, TIME, FLOATS, scale=1.5), "reset": reset,
            "ids": np.stack([m.random.randint(0, entries, (BATCH, TIME)) for _, entries, _ in IDS], -1).astype(np.int32),
            "past": draw_actions(m, BATCH, TIME, slots), "actions": draw_actions(m, BATCH, TIME),
            "mask": (m.random.uniform(size=(BATCH, TIME)) < 0.8).astype(np.float32) * np.float32(0.75)}
    sizes = [block.state for _, block in model["blocks"]]
    data["state_in"] = np.zeros((BATCH, sum(sizes)))
    if m.c["state"]:
        data["state_in"] = np.stack([np.concatenate([b.start(m) for _, b in model["blocks"]]) for _ in range(BATCH)])
    data["loss.weight"] = np.array([1.0, 0.5, 2.0])
    data["loss.smoothing"] = np.array([0.0, 0.1, 0.0])
    data["loss.gamma"] = np.array([2.0, 0.0, 1.5])
    data["loss.positive"] = np.array([1.0, 2.5, 0.5], np.float32)
    data["loss.scale"] = np.array([0.125])
    return data


def forward_stream(model, data, b):
    rows = rows_of(data["floats"][b], data["ids"][b], data["past"][b], model["tables"])
    x = F.linear(rows, *model["input"])
    state, at, after = torch.tensor(data["state_in"][b]), 0, []
    for kind, (norm, block) in zip(model["kinds"], model["blocks"]):
        f, new = block.stream(normalize(x, norm) if norm else x, state[at:at + block.state], data["reset"][b])
        x, at = f if kind in SERIES else x + f, at + block.state
        after.append(new)
    z = normalize(x, model["norm"]) if "norm" in model else x
    if "trunk" in model:
        z = F.linear(z, *model["trunk"])
    base = torch.zeros(len(z), LOGITS)
    if "past" in model:
        base = F.linear(rows[:, rows.shape[1] - model["past"].shape[1]:], model["past"])
    if "heads" in model:
        logits = [torch.cat([head.logits(z[t], data["actions"][b][t], data["past"][b][t]) for head in model["heads"]])
                  for t in range(len(z))]
        return base + torch.stack(logits), torch.cat(after)
    return logits_of(z, base, data["actions"][b], model["v"], model["bias"], model["e"]), torch.cat(after)


def loss_of(data, logits):
    """Sum over frames of each head, unweighted by head; and the whole that is differentiated."""
    sums, total = [torch.zeros(()) for _ in HEADS], torch.zeros(())
    for b in range(BATCH):
        for t in range(TIME):
            for i, (kind, count) in enumerate(HEADS):
                part = logits[b, t, FIRST[i]:FIRST[i] + count]
                loss = float(data["mask"][b, t]) * head_loss(
                    part, kind, count, int(data["actions"][b, t, i]), data["loss.gamma"][i], data["loss.smoothing"][i],
                    data["loss.positive"].astype(np.float64))
                sums[i] = sums[i] + loss
                total = total + loss * data["loss.weight"][i] * data["loss.scale"][0]
    return torch.stack(sums), total


def compute(config, seed):
    m = Maker(config, seed)
    model = build(m)
    data = draw_inputs(m, model)
    pairs = [forward_stream(model, data, b) for b in range(BATCH)]
    logits = torch.stack([pair[0] for pair in pairs])
    logits.retain_grad()
    sums, total = loss_of(data, logits)
    total.backward()
    data["state_out"] = torch.stack([pair[1] for pair in pairs]).detach().numpy()
    data["logits"] = logits.detach().numpy()
    data["sums"] = sums.detach().numpy()
    data["dlogits"] = logits.grad.numpy()
    for name, value in m.weights.items():
        data["weight:" + name] = value.detach().numpy().astype(np.float32)
        data["gradient:" + name] = value.grad.numpy()
    return data


def write(path, data, metadata):
    types = {"float64": "F64", "float32": "F32", "int32": "I32", "uint8": "U8"}
    header, blob = {"__metadata__": metadata}, b""
    for name in sorted(data, key=lambda n: (-data[n].itemsize, n)):
        raw = np.ascontiguousarray(data[name]).tobytes()
        header[name] = {"dtype": types[str(data[name].dtype)], "shape": list(data[name].shape),
                        "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % 64)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
    os.makedirs(folder, exist_ok=True)
    for seed, (name, case) in enumerate(CASES.items()):
        config = dict(BASE, **case)
        path = os.path.join(folder, name + ".safetensors")
        write(path, compute(config, seed + 1), {key: str(value) for key, value in config.items()})
        print(path, os.path.getsize(path))


if __name__ == "__main__":
    main()
