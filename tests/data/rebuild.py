"""Policies of libexphil in PyTorch, rebuilt from doc/model.md alone: what that page says, line by line, in double.

    policy = Policy("fox.safetensors")
    logits = policy.play(floats, ids, past, taken)    # [T, L] of one episode: floats [T, F], ids [T, K], past [T, S, A]

Its parameters have the names of the file. taken [T, A] is what is done in each frame: only autoregressive heads look at it.
tests/data/rebuild_check.py holds all of it against the library. Needs torch and numpy, no package for safetensors.
"""
import json
import math
import re
import struct

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.set_default_dtype(torch.float64)


# ---- files ----


def read(path):
    """Metadata, and tensors by name: (type, array). The bits of a bfloat16 are the upper half of a float."""
    with open(path, "rb") as file:
        data = file.read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata, tensors = header.pop("__metadata__", {}), {}
    kinds = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I8": "i1", "BF16": "<u2"}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        array = np.frombuffer(data[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = entry["dtype"], array
    return metadata, tensors


def weights_of(tensors):
    """Numbers by name; a matrix of bytes times the scales beside it."""
    found = {}
    for name, (kind, array) in tensors.items():
        value = array.astype(np.float64)
        if kind == "I8":
            value = value * tensors[name + ".scale"][1].astype(np.float64)[:, None]
        if not name.endswith(".scale"):
            found[name] = torch.tensor(value)
    return found


class Config:
    """What exphil.model says, with the letters of the page."""

    def __init__(self, metadata):
        self.__dict__.update(json.loads(metadata["exphil.model"]))
        self.kinds = self.pattern(self.blocks)
        self.counts = [head["count"] for head in self.heads]
        self.first = [sum(self.counts[:h]) for h in range(len(self.counts))]
        self.L = sum(self.counts)
        self.S = self.delay_frames + 1 - self.no_previous_action
        self.neutral = [head["neutral"] for head in self.heads]
        self.weights = getattr(self, "weights", None)
        self.value = getattr(self, "value", None)
        self.neutral_start = getattr(self, "neutral_start", 0)
        self.conditions = getattr(self, "conditions", [])
        self.delays = getattr(self, "delays", [])
        self.norm_epsilon = getattr(self, "norm_epsilon", 1e-5)
        for name in ("no_final_norm", "head_layers", "head_units", "head_last", "no_head_past", "no_head_trunk", "input_width"):
            setattr(self, name, getattr(self, name, 0))
        self.activation = {"relu": F.relu, "gelu_tanh": gelu}.get(getattr(self, "head_activation", None), F.silu)
        self.delay, self.seen = self.delay_frames, self.S

    def width_before(self, block):
        changed = any(kind in ("lstm_only", "gru_only", "dense") for kind in self.kinds[:block])
        return self.hidden if changed else self.input_width or self.hidden

    @staticmethod
    def pattern(text):
        stack = [[]]
        last = []
        for word in re.findall(r"[a-z_]+|\(|\)|\* *\d+", text):
            if word == "(":
                stack.append([])
            elif word[0] == "*":
                stack[-1] += last * (int(word[1:]) - 1)
            else:
                last = stack.pop() if word == ")" else [word]
                stack[-1] += last
        return stack[0]


# ---- products with weights of fewer bits ----


def to_bf16(single):
    bits = np.ascontiguousarray(single).view(np.uint32)
    near = ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)
    return np.where(np.abs(single) < 2.0 ** -50, np.float32(0), near)


def product(x, weight, rounded):
    """x weight^T, with x rounded as the weights are."""
    if rounded == "BF16":
        x = torch.tensor(to_bf16(x.numpy().astype(np.float32)).astype(np.float64))
    elif rounded == "I8":
        single = x.float()
        most = single.abs().amax(dim=-1, keepdim=True)
        levels = torch.round(single * (127 / most)).double()
        x = torch.where(most >= 2.0 ** -100, levels * (most / 127).double(), torch.zeros_like(x))
    return x @ weight.t()


class Linear(nn.Module):
    def __init__(self, inputs, outputs, rounded=None, bias=True):
        super().__init__()
        self.rounded = rounded
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None

    def forward(self, x):
        y = product(x, self.weight, self.rounded)
        return y if self.bias is None else y + self.bias


# ---- blocks: forward takes u of all frames of an episode so far, [T, H], and gives f ----


def gelu(x):
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


class Mamba(nn.Module):
    of_exphil = False

    def rates(self):
        return -torch.exp(self.A_log), self.D

    def steps(self, r):
        return F.softplus(self.dt_proj(r), threshold=1e9)

    def __init__(self, c):
        super().__init__()
        inner = c.mamba_expand * c.hidden
        self.cut = [c.mamba_rank, c.mamba_states, c.mamba_states]
        self.in_proj = Linear(c.hidden, 2 * inner, c.weights)
        self.conv = nn.Module()
        self.conv.weight = nn.Parameter(torch.empty(inner, c.mamba_taps))
        self.conv.bias = nn.Parameter(torch.empty(inner))
        self.x_proj = Linear(inner, sum(self.cut), c.weights, bias=self.of_exphil)
        self.dt_proj = Linear(c.mamba_rank, inner, c.weights)
        if not self.of_exphil:
            self.A_log = nn.Parameter(torch.empty(inner, c.mamba_states))
            self.D = nn.Parameter(torch.empty(inner))
        self.out_proj = Linear(inner, c.hidden, c.weights)

    def forward(self, u):
        x, z = self.in_proj(u).chunk(2, dim=-1)
        width, taps = self.conv.weight.shape
        whole = torch.cat([torch.zeros(taps - 1, width), x]).t().unsqueeze(0)
        v = F.silu(F.conv1d(whole, self.conv.weight.unsqueeze(1), self.conv.bias, groups=width)[0].t())
        r, b, c = self.x_proj(v).split(self.cut, dim=-1)
        delta, (a, skip), rows = self.steps(r), self.rates(), []
        h = torch.zeros_like(a)
        for t in range(u.shape[0]):
            h = torch.exp(delta[t][:, None] * a) * h + (delta[t] * v[t])[:, None] * b[t]
            rows.append(h @ c[t] + skip * v[t])
        return self.out_proj(torch.stack(rows) * F.silu(z))


class MambaExphil(Mamba):
    of_exphil = True

    def rates(self):
        return -torch.arange(1.0, self.cut[1] + 1).repeat(self.conv.weight.shape[0], 1), 0.0

    def steps(self, r):
        return super().steps(r).clamp(0.001, 0.1)


class Recurrent(nn.Module):
    def __init__(self, c, gates, width):
        super().__init__()
        self.rounded, self.hidden, self.gates = c.weights, c.hidden, gates
        self.weight_ih = nn.Parameter(torch.empty(gates * c.hidden, width))
        self.weight_hh = nn.Parameter(torch.empty(gates * c.hidden, c.hidden))
        self.bias_ih = nn.Parameter(torch.empty(gates * c.hidden))
        self.bias_hh = nn.Parameter(torch.empty(gates * c.hidden))

    def forward(self, u):
        h, rows = [torch.zeros(self.hidden)] * (2 if self.gates == 4 else 1), []
        for p in product(u, self.weight_ih, self.rounded) + self.bias_ih:
            q = product(h[0].unsqueeze(0), self.weight_hh, self.rounded)[0] + self.bias_hh
            h = self.cell(p.chunk(self.gates), q.chunk(self.gates), *h)
            rows.append(h[0])
        return torch.stack(rows)


class Lstm(Recurrent):
    def __init__(self, c, width):
        super().__init__(c, 4, width)

    @staticmethod
    def cell(p, q, h, c):
        i, f, g, o = (a + b for a, b in zip(p, q))
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return [torch.sigmoid(o) * torch.tanh(c), c]


class Gru(Recurrent):
    def __init__(self, c, width):
        super().__init__(c, 3, width)

    @staticmethod
    def cell(p, q, h):
        r, z = torch.sigmoid(p[0] + q[0]), torch.sigmoid(p[1] + q[1])
        n = torch.tanh(p[2] + r * q[2])
        return [(1 - z) * n + z * h]


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.dim, self.window = c.attention_heads, c.attention_dim, c.attention_window_frames
        self.qkv = Linear(c.hidden, 3 * self.heads * self.dim, c.weights)
        self.relative_bias = nn.Parameter(torch.empty(self.heads, self.window))
        self.out_proj = Linear(self.heads * self.dim, c.hidden, c.weights)

    def forward(self, u):
        time = u.shape[0]
        q, k, v = (part.view(time, self.heads, self.dim).transpose(0, 1) for part in self.qkv(u).chunk(3, dim=-1))
        distance = torch.arange(time)[:, None] - torch.arange(time)[None, :]
        bias = self.relative_bias[:, distance.clamp(0, self.window - 1)]
        score = q @ k.transpose(1, 2) / math.sqrt(self.dim) + bias
        score = score.masked_fill((distance < 0) | (distance >= self.window), -math.inf)
        return self.out_proj((torch.softmax(score, dim=-1) @ v).transpose(0, 1).reshape(time, -1))


class FeedForward(nn.Module):
    def __init__(self, c, inner):
        super().__init__()
        self.up = Linear(c.hidden, inner, c.weights)
        self.up_norm = nn.LayerNorm(inner, eps=c.norm_epsilon)
        self.down = Linear(inner, c.hidden, c.weights)

    def forward(self, u):
        return self.down(F.silu(self.up_norm(self.up(u))))


class FeedForwardGelu(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up = Linear(c.hidden, c.ffn_expand * c.hidden, c.weights)
        self.down = Linear(c.ffn_expand * c.hidden, c.hidden, c.weights)

    def forward(self, u):
        return self.down(gelu(self.up(u)))


class Norm(nn.Module):
    def __init__(self, c, width):
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=c.norm_epsilon)

    def forward(self, x):
        return self.norm(x)


class Block(nn.Module):
    """f, and what is done with it; its tensors have the names of f's."""

    KINDS = {"mamba": lambda c, x: Mamba(c), "mamba_exphil": lambda c, x: MambaExphil(c), "lstm": Lstm, "gru": Gru,
             "attention": lambda c, x: Attention(c), "ffn": lambda c, x: FeedForward(c, c.ffn_expand * c.hidden),
             "mlp": lambda c, x: FeedForward(c, c.hidden), "ffn_gelu": lambda c, x: FeedForwardGelu(c), "norm": Norm,
             "relu": lambda c, x: nn.ReLU(), "dense": lambda c, x: Linear(x, c.hidden, c.weights)}

    def __init__(self, kind, c, width):
        super().__init__()
        self.alone = kind.endswith("_only") or kind in ("dense", "norm", "relu")
        self.bare = self.alone or kind.endswith("_bare")
        self.f = self.KINDS[kind.replace("_bare", "").replace("_only", "")](c, width)
        if not self.bare:
            self.f.norm = nn.LayerNorm(c.hidden, eps=c.norm_epsilon)

    def forward(self, x):
        f = self.f(x if self.bare else self.f.norm(x))
        return f if self.alone else x + f


# ---- heads with layers ----


class Head(nn.Module):
    """Its layers have their numbers as names."""

    def __init__(self, c, h):
        super().__init__()
        z = c.hidden if c.no_head_trunk else c.head_width
        for k in range(c.head_layers + 1):
            last = k == c.head_layers
            rounded = "BF16" if c.weights and not last else None
            self.add_module(str(k), Linear(c.head_units if k else z, c.counts[h] if last else c.head_units, rounded))
        if c.head_order == "autoregressive" and h:
            self.before = nn.Parameter(torch.empty(c.first[h], c.head_units))
        if c.head_last:
            self.last = nn.Parameter(torch.empty(c.counts[h], c.head_units))
        self.c = c

    def forward(self, z, before, last):
        s = getattr(self, "0")(z)
        if hasattr(self, "before"):
            s = s + before @ self.before
        if hasattr(self, "last"):
            s = s + last @ self.last
        for k in range(1, self.c.head_layers + 1):
            s = getattr(self, str(k))(self.c.activation(s))
        return s


# ---- the policy ----


class Policy(nn.Module):
    """Its parameters have the names of the file; the id tables, whose names may have dots, lie in a list."""

    def __init__(self, path):
        super().__init__()
        metadata, self.file = read(path)
        self.c = c = Config(metadata)
        half = "BF16" if c.weights else None
        width = c.float_count + sum(one["width"] for one in c.ids + c.conditions) + 8 * bool(c.delays) + c.S * c.L
        self.input = Linear(width, c.width_before(0), half)
        self.blocks = nn.ModuleList(Block(kind, c, c.width_before(i)) for i, kind in enumerate(c.kinds))
        if not c.no_final_norm:
            self.norm = nn.LayerNorm(c.hidden, eps=c.norm_epsilon)
        self.heads = nn.Module()
        if not c.no_head_trunk:
            self.heads.trunk = Linear(c.hidden, c.head_width, half)
        if not c.head_layers:
            self.heads.logits = Linear(c.head_width, c.L)
        if c.S and not c.no_head_past:
            self.heads.past = Linear(c.S * c.L, c.L, bias=False)
        self.layered = nn.ModuleList(Head(c, h) for h in range(len(c.heads))) if c.head_layers else None
        if c.head_order == "autoregressive" and not c.head_layers:
            self.heads.embed = nn.Parameter(torch.empty(c.L, c.head_width))
        if c.value:
            self.value = nn.Module()
            self.value.trunk = Linear(c.hidden, c.head_width, half)
            self.value.out = Linear(c.head_width, 1)
        weights = weights_of(self.file)
        self.tables = [weights.pop("ids.%s.weight" % one["name"]) for one in c.ids]
        self.tables += [weights.pop("conditions.%s.weight" % one["name"]) for one in c.conditions]
        self.tables += [weights.pop("delay.weight")] if c.delays else []
        self.told = [0] * len(c.conditions) + [len(c.delays)] * bool(c.delays)
        for h, head in enumerate(c.heads if c.head_layers else []):  # names of heads may have dots
            for name in [name for name in weights if re.match(re.escape("heads.%s." % head["name"]) + r"(\d|before$|last$)", name)]:
                weights["layered.%d.%s" % (h, name[len("heads.%s." % head["name"]):])] = weights.pop(name)
        self.load_state_dict({re.sub(r"^(blocks\.\d+\.)", r"\1f.", name): value for name, value in weights.items()})
        self.requires_grad_(False)

    def tell(self, values, delay):
        """Values of the conditions, and which of the delays holds."""
        c = self.c
        self.told = [int(value) for value in values[:len(c.conditions)]]
        if c.delays:
            self.told.append(1 + c.delays.index(delay))
            c.delay, c.seen = delay, delay + 1 - c.no_previous_action

    def numbers(self, h, value):
        """A value of head h as bits or one-hot."""
        if self.c.heads[h]["kind"] == "bernoulli":
            return torch.tensor([float(value >> i & 1) for i in range(self.c.counts[h])])
        return torch.eye(self.c.counts[h])[value]

    def action_numbers(self, actions):
        return torch.cat([self.numbers(h, int(value)) for h, value in enumerate(actions)])

    def forward(self, floats, ids, past, taken):
        """Logits [T, L] of the frames of one episode: floats [T, F], ids [T, K], past [T, S, A], taken [T, A]."""
        rows, slots = [], []
        for t in range(len(floats)):
            slots.append(torch.cat([torch.zeros(0)] + [self.action_numbers(one) for one in past[t]]))
            picked = [table[int(i)] for table, i in zip(self.tables, list(ids[t]) + self.told)]
            rows.append(torch.cat([torch.tensor(floats[t].astype(np.float64))] + picked + [slots[-1]]))
        x = self.input(torch.stack(rows))
        for block in self.blocks:
            x = block(x)
        u = x if self.c.no_final_norm else self.norm(x)
        s = u if self.c.no_head_trunk else self.heads.trunk(u)
        if self.c.value:
            self.values = self.value.out(F.silu(self.value.trunk(u)))[:, 0]
        direct = self.heads.past(torch.stack(slots)) if self.c.S and not self.c.no_head_past else 0
        if self.layered is not None:
            taken_all = torch.stack([self.action_numbers(a) for a in taken])
            newest = torch.stack([slot[:self.c.L] for slot in slots])
            parts = [slice(first, first + count) for first, count in zip(self.c.first, self.c.counts)]
            return direct + torch.cat([head(s, taken_all[:, :part.start], newest[:, part] if self.c.head_last else None)
                                       for head, part in zip(self.layered, parts)], dim=-1)
        logits = torch.zeros(len(rows), self.c.L)
        for h, (first, count) in enumerate(zip(self.c.first, self.c.counts)):
            part = slice(first, first + count)
            logits[:, part] = F.silu(s) @ self.heads.logits.weight[part].t() + self.heads.logits.bias[part]
            if self.c.head_order == "autoregressive":
                s = s + torch.stack([self.numbers(h, int(a[h])) for a in taken]) @ self.heads.embed[part]
        return logits + direct

    def play(self, floats, ids, past, taken):
        """The same as play computes it: in window mode every frame is the last one of its window."""
        if self.c.mode == "carry":
            return self(floats, ids, past, taken)
        last = []
        for t in range(len(floats)):
            seen = slice(max(0, t + 1 - self.c.window_frames), t + 1)
            last.append(self(floats[seen], ids[seen], past[seen], taken[seen])[-1])
        return torch.stack(last)

    def draw(self, logits, noise, how, before):
        """The action for the logits of a frame. how: temperature, press, release of each head; noise None: deterministic."""
        action = []
        for h, (first, count) in enumerate(zip(self.c.first, self.c.counts)):
            x, (temperature, press, release) = logits[first:first + count].numpy(), how[h]
            u = None if noise is None else noise[first:first + count].astype(np.float64)
            if self.c.heads[h]["kind"] == "bernoulli":
                held = np.array([before[h] >> i & 1 for i in range(count)])
                on = (1 / (1 + np.exp(-x)) > np.where(held, release, press) if u is None
                      else 1 / (1 + np.exp(-x / temperature)) > u)
                action.append(sum(int(bit) << i for i, bit in enumerate(on)))
            else:
                action.append(int(np.argmax(x if u is None else x / temperature - np.log(-np.log(u)))))
        return action

    def loss(self, logits, target, settings, positive):
        """Loss and nll of each head for one row."""
        losses, plain = [], []
        for h, (first, count) in enumerate(zip(self.c.first, self.c.counts)):
            x, (_, smoothing, gamma) = logits[first:first + count], settings[h]
            y = self.numbers(h, int(target[h]))
            if self.c.heads[h]["kind"] == "bernoulli":
                z = x * (2 * y - 1)
                surprise = F.softplus(-z, threshold=1e9)
                weight = torch.where(y > 0, positive[:count], torch.ones(count))
                losses.append(((1 - torch.sigmoid(z)) ** gamma * surprise * weight).mean())
                plain.append(surprise.sum())
            else:
                q, log_p = (1 - smoothing) * y + smoothing / count, torch.log_softmax(x, dim=-1)
                losses.append((1 - (q * log_p.exp()).sum()) ** gamma * -(q * log_p).sum())
                plain.append(-(y * log_p).sum())
        return torch.stack(losses), torch.stack(plain)


def session_noise(seed, stream, first, count):
    """Numbers first .. first + count - 1 of a stream of a session (Philox4x32-10)."""
    found, low = [], 0xffffffff
    for n in range(first, first + count):
        block, lane = n // 4, 3 + 256 * stream
        c, k = [block & low, block >> 32, lane & low, lane >> 32], [seed & low, seed >> 32]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [q >> 32 ^ c[1] ^ k[0], q & low, p >> 32 ^ c[3] ^ k[1], p & low]
            k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
        found.append((2 * (c[n % 4] >> 9) + 1) * 2.0 ** -24)
    return np.array(found)


# ---- past actions ----


def past_in_play(c, decided):
    """Slots of every frame of an episode whose decided actions are known: [T, S, A]."""
    return [[decided[t - 1 - s] if t - 1 - s >= 0 and s < c.seen else c.neutral for s in range(c.S)]
            for t in range(len(decided))]


def past_in_data(c, recorded):
    """The same for rows of data, of which the last have no target, as many as the longest delay."""
    first = c.delay if c.neutral_start else 0
    return [[recorded[t + c.delay - 1 - s] if t + c.delay - 1 - s >= first and s < c.seen else c.neutral for s in range(c.S)]
            for t in range(len(recorded) - c.delay_frames)]
