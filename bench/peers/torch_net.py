"""A case as a PyTorch module: bare cells, whole policies of one frame, whole policies in training."""
import torch
import torch.nn.functional as F
from torch import nn


def tensor(array):
    return torch.from_numpy(array.copy())


def linear(weight, bias=None):
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None)
    layer.weight.data = tensor(weight)
    if bias is not None:
        layer.bias.data = tensor(bias)
    return layer


def norm(gain, shift):
    layer = nn.LayerNorm(gain.shape[0], eps=1e-5)
    layer.weight.data, layer.bias.data = tensor(gain), tensor(shift)
    return layer


# ---- one frame ----


class CellMlp(nn.Module):
    def __init__(self, case):
        super().__init__()
        a = case.array
        self.up, self.norm = linear(a("w_in"), a("b_in")), norm(a("gain"), a("shift"))
        self.down = linear(a("w_out"), a("b_out"))

    def forward(self, x):
        return self.down(F.silu(self.norm(self.up(x))))


def cell_weights(case):
    a = case.array
    return [tensor(a(name)) for name in ("w_in", "w_out", "b_in", "b_out")]


@torch.jit.script
def lstm_loop(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, b1: torch.Tensor,
              b2: torch.Tensor, frames: int):
    for _ in range(frames):
        h, c = torch.lstm_cell(x, [h, c], w1, w2, b1, b2)
    return h, c


@torch.jit.script
def gru_loop(x: torch.Tensor, h: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, b1: torch.Tensor, b2: torch.Tensor,
             frames: int):
    for _ in range(frames):
        h = torch.gru_cell(x, h, w1, w2, b1, b2)
    return h


# ---- training ----


class Recurrent(nn.Module):
    def __init__(self, w, name, kind):
        super().__init__()
        hidden, inputs = w[name + "weight_hh"].shape[1], w[name + "weight_ih"].shape[1]
        self.net = (nn.LSTM if kind == "lstm" else nn.GRU)(inputs, hidden, batch_first=True)
        for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(self.net, part + "_l0").data = tensor(w[name + part])
        self.net.flatten_parameters()

    def forward(self, x):
        return self.net(x)[0]


class FeedForward(nn.Module):
    def __init__(self, w, name):
        super().__init__()
        self.up = linear(w[name + "up.weight"], w[name + "up.bias"])
        self.norm = norm(w[name + "up_norm.weight"], w[name + "up_norm.bias"])
        self.down = linear(w[name + "down.weight"], w[name + "down.bias"])

    def forward(self, x):
        return self.down(F.silu(self.norm(self.up(x))))


class Attention(nn.Module):
    def __init__(self, w, name, time):
        super().__init__()
        self.qkv = linear(w[name + "qkv.weight"], w[name + "qkv.bias"])
        self.out = linear(w[name + "out_proj.weight"], w[name + "out_proj.bias"])
        self.bias = nn.Parameter(tensor(w[name + "relative_bias"]))
        self.heads, window = self.bias.shape
        distance = torch.arange(time)[:, None] - torch.arange(time)[None, :]
        self.register_buffer("distance", distance.clamp(0, window - 1))
        hidden = (distance < 0) | (distance >= window)
        self.register_buffer("mask", torch.zeros(time, time).masked_fill(hidden, float("-inf")))

    def forward(self, x):
        batch, time, _ = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = self.bias[:, self.distance] + self.mask
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.out(y.transpose(1, 2).reshape(batch, time, -1))


class Mamba(nn.Module):
    """The scan as a loop over frames that unbind has cut: of the forms that plain operations allow the fastest, since the
    gradient of a slice a[:, t] would fill a whole tensor each time."""

    def __init__(self, w, name):
        super().__init__()
        self.inside = linear(w[name + "in_proj.weight"], w[name + "in_proj.bias"])
        width, self.taps = w[name + "conv.weight"].shape
        self.conv = nn.Conv1d(width, width, self.taps, groups=width)
        self.conv.weight.data, self.conv.bias.data = tensor(w[name + "conv.weight"])[:, None], tensor(w[name + "conv.bias"])
        self.x_proj = linear(w[name + "x_proj.weight"])
        self.dt = linear(w[name + "dt_proj.weight"], w[name + "dt_proj.bias"])
        self.a_log, self.skip = nn.Parameter(tensor(w[name + "A_log"])), nn.Parameter(tensor(w[name + "D"]))
        self.out = linear(w[name + "out_proj.weight"], w[name + "out_proj.bias"])

    def forward(self, u):
        x, z = self.inside(u).chunk(2, dim=-1)
        x = F.silu(self.conv(F.pad(x.transpose(1, 2), (self.taps - 1, 0)))).transpose(1, 2)
        n = self.a_log.shape[1]
        low, b, c = self.x_proj(x).split([self.dt.in_features, n, n], dim=-1)
        delta = F.softplus(self.dt(low))
        decay = torch.exp(delta[..., None] * -torch.exp(self.a_log))
        fresh = (delta * x)[..., None] * b[:, :, None, :]
        h, rows = torch.zeros_like(fresh[:, 0]), []
        for decay_t, fresh_t, c_t in zip(decay.unbind(1), fresh.unbind(1), c.unbind(1)):
            h = decay_t * h + fresh_t
            rows.append((h @ c_t[..., None])[..., 0])
        return self.out((torch.stack(rows, 1) + self.skip * x) * F.silu(z))


def block(w, name, kind, time):
    if kind == "mamba":
        return Mamba(w, name)
    if kind == "attention":
        return Attention(w, name, time)
    return Recurrent(w, name, kind) if kind in ("lstm", "gru") else FeedForward(w, name)


class Policy(nn.Module):
    """Input layer, blocks x + f(LayerNorm(x)), LayerNorm, trunk, one matrix for all heads."""

    def __init__(self, case):
        super().__init__()
        w = case.weights()
        self.input = linear(w["input.weight"], w["input.bias"])
        kinds = case.blocks()
        names = ["blocks.%d." % i for i in range(len(kinds))]
        self.norms = nn.ModuleList(norm(w[n + "norm.weight"], w[n + "norm.bias"]) for n in names)
        self.blocks = nn.ModuleList(block(w, n, kind, case.facts["time"]) for n, kind in zip(names, kinds))
        self.norm = norm(w["norm.weight"], w["norm.bias"])
        self.trunk = linear(w["heads.trunk.weight"], w["heads.trunk.bias"])
        self.logits = linear(w["heads.logits.weight"], w["heads.logits.bias"])

    def forward(self, x):
        x = self.input(x)
        for n, f in zip(self.norms, self.blocks):
            x = x + f(n(x))
        return self.logits(F.silu(self.trunk(self.norm(x))))


# Heads of the Melee preset: eight buttons, then classes.
HEADS = [("bits", 8), ("class", 17), ("class", 17), ("class", 17), ("class", 17), ("class", 5)]


def targets(actions):
    bits = torch.stack([(actions[:, 0] >> i & 1).float() for i in range(HEADS[0][1])], dim=-1)
    return [bits] + [actions[:, i].long() for i in range(1, len(HEADS))]


def loss_of(logits, wanted):
    parts = logits.reshape(-1, logits.shape[-1]).split([count for _, count in HEADS], dim=-1)
    losses = [F.binary_cross_entropy_with_logits(parts[0], wanted[0])]
    losses += [F.cross_entropy(part, want) for part, want in zip(parts[1:], wanted[1:])]
    return sum(losses)
