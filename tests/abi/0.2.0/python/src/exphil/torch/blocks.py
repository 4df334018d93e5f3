"""Blocks: each is x + f(LayerNorm(x)) over chunks of frames, with what it carries from frame to frame given and returned; some
have no LayerNorm, some take the place of x.

x is [B,T,H]. `rows` says which frames belong together. A state is a dictionary of tensors that begin with [B], all zero at the
start of an episode; its names and shapes stand at each class. BLOCKS has the class of each word of a pattern.
"""
from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .config import Config
from .layers import Constant, Linear, Norm, Part, Start, Uniform, product

State = Dict[str, Tensor]
Shapes = Dict[str, Tuple[int, ...]]


class Rows:
    """Where episodes begin within a chunk. Without a single reset in it there is nothing to mask: both are None.

    keep [B,T]: 0 in the first row of an episode, else 1. episode [B,T]: how many have begun, 0 for that of the state given.
    """

    def __init__(self, reset: Optional[Tensor], time: int, dtype: torch.dtype) -> None:
        self.time = time
        self.keep = None if reset is None else (~reset).to(dtype)
        self.episode = None if reset is None else reset.to(torch.int64).cumsum(1)

    def before(self, count: int) -> Optional[Tensor]:
        """[B,count+T], the episodes with those of so many carried rows in front."""
        return None if self.episode is None else F.pad(self.episode, (count, 0))


class Block(Part):
    """What all have. forward gives x behind the block, and the state behind the last row. normed: u is LayerNorm(x), else x;
    adds: x + f(u), else f(u)."""

    normed, adds = True, True

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__()
        if self.normed:
            self.norm = Norm(c.hidden, c.norm_epsilon, **where)

    @classmethod
    def carries(cls, c: Config) -> Shapes:
        """Names and shapes of the state, without the batch in front."""
        return {}

    def forward(self, x: Tensor, state: State, rows: Rows) -> Tuple[Tensor, State]:
        f, after = self.inside(self.norm(x) if self.normed else x, state, rows)
        return x + f if self.adds else f, after

    def inside(self, u: Tensor, state: State, rows: Rows) -> Tuple[Tensor, State]:
        """f of u [B,T,H], and the state behind it."""
        raise NotImplementedError


def _residual(c: Config) -> float:
    """On what a block adds to its input."""
    return 1.0 / math.sqrt(len(c.kinds))


# ---- mamba ---------------------------------------------------------------------------------------------------


def _start_steps(tensor: Tensor, generator: Optional[torch.Generator]) -> None:
    """Such that softplus of it is log-uniform between 0.001 and 0.1: x = dt + log(1 - e^-dt)."""
    steps = torch.exp(torch.empty_like(tensor).uniform_(math.log(0.001), math.log(0.1), generator=generator))
    tensor.copy_(steps + torch.log(-torch.expm1(-steps)))


def _start_rates(tensor: Tensor, generator: Optional[torch.Generator]) -> None:
    tensor.copy_(torch.log(torch.arange(1, tensor.shape[1] + 1, dtype=tensor.dtype, device=tensor.device)).expand_as(tensor))


class Convolution(Part):
    """weight [D,C], the oldest frame first; bias [D]."""

    def __init__(self, width: int, taps: int, **where: Any) -> None:
        super().__init__()
        start: Start = Uniform(1.0 / math.sqrt(taps))
        self.weight = self.declare("weight", (width, taps), start, True, **where)
        self.bias = self.declare("bias", (width,), start, False, **where)

    def forward(self, x: Tensor, carried: Tensor, rows: Rows) -> Tuple[Tensor, Tensor]:
        """Causal and depthwise over x [B,T,D] behind carried [B,C-1,D]; and what is carried on."""
        taps = self.weight.shape[1]
        whole, episode = torch.cat([carried, x], 1), rows.before(taps - 1)
        y = self.bias + whole[:, taps - 1 :] * self.weight[:, taps - 1]
        for k in range(taps - 1):
            seen = whole[:, k : k + rows.time] * self.weight[:, k]
            if episode is not None:
                same = episode[:, k : k + rows.time] == episode[:, taps - 1 :]
                seen = torch.where(same.unsqueeze(2), seen, torch.zeros_like(seen))
            y = y + seen
        after = whole[:, rows.time :]
        if episode is not None:
            after = after * (episode[:, rows.time :] == episode[:, -1:]).unsqueeze(2).to(after.dtype)
        return y, after


def scan(decay: Tensor, given: Tensor, c: Tensor, h: Tensor) -> Tuple[Tensor, Tensor]:
    """h = decay[t] h + given[t], y[t] = h c[t], for decay and given [B,T,D,N], c [B,T,N], h [B,D,N]: y [B,T,D], and the last h."""
    found: List[Tensor] = []
    for a, x, seen in zip(decay.unbind(1), given.unbind(1), c.unsqueeze(3).unbind(1)):
        h = a * h + x
        found.append(torch.matmul(h, seen).squeeze(2))
    return torch.stack(found, 1), h


class Scanned(Block):
    """What both forms of mamba have. State: x [C-1,D], what the convolution saw; h [D,N]."""

    biased = False  # the second projection

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__(c, **where)
        self.cut = [c.mamba_rank, c.mamba_states, c.mamba_states]
        self.in_proj = Linear(c.hidden, 2 * c.inner, rounding=c.weights, **where)
        self.conv = Convolution(c.inner, c.mamba_taps, **where)
        self.x_proj = Linear(c.inner, sum(self.cut), bias=self.biased, rounding=c.weights, **where)
        self.dt_proj = Linear(c.mamba_rank, c.inner, rounding=c.weights, **where)
        self.dt_proj.rules["bias"] = _start_steps, False
        self.out_proj = Linear(c.inner, c.hidden, rounding=c.weights, scale=_residual(c), **where)

    @classmethod
    def carries(cls, c: Config) -> Shapes:
        return {"x": (c.mamba_taps - 1, c.inner), "h": (c.inner, c.mamba_states)}

    def inside(self, u: Tensor, state: State, rows: Rows) -> Tuple[Tensor, State]:
        x, z = self.in_proj(u).chunk(2, dim=2)
        v, carried = self.conv(x, state["x"], rows)
        v = F.silu(v)
        r, b, c = self.x_proj(v).split(self.cut, dim=2)
        delta = self.limited(F.softplus(self.dt_proj(r)))
        decay = torch.exp(delta.unsqueeze(3) * -self.rates())
        if rows.keep is not None:
            decay = decay * rows.keep[:, :, None, None]
        y, h = scan(decay, (delta * v).unsqueeze(3) * b.unsqueeze(2), c, state["h"])
        return self.out_proj(self.skipped(y, v) * F.silu(z)), {"x": carried, "h": h}

    def limited(self, delta: Tensor) -> Tensor:
        """The step, within what is allowed."""
        return delta

    def rates(self) -> Tensor:
        """[D,N] or [N], how fast states decay."""
        raise NotImplementedError

    def skipped(self, y: Tensor, v: Tensor) -> Tensor:
        """y with what goes past the scan."""
        return y


class Mamba(Scanned):
    """The scan of Mamba, with learned rates and a skip."""

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__(c, **where)
        self.A_log = self.declare("A_log", (c.inner, c.mamba_states), _start_rates, False, **where)
        self.D = self.declare("D", (c.inner,), Constant(1.0), False, **where)

    def rates(self) -> Tensor:
        return torch.exp(self.A_log)

    def skipped(self, y: Tensor, v: Tensor) -> Tensor:
        return y + self.D * v


class MambaExphil(Scanned):
    """ExPhil's form: fixed rates, steps within limits, nothing skips the scan."""

    biased = True

    def limited(self, delta: Tensor) -> Tensor:
        return delta.clamp(0.001, 0.1)

    def rates(self) -> Tensor:
        kept = self.out_proj.weight
        return torch.arange(1, self.cut[1] + 1, dtype=kept.dtype, device=kept.device)


# ---- recurrent -----------------------------------------------------------------------------------------------


class Recurrent(Block):
    """An LSTM or GRU layer with the gates and tensors of torch.nn."""

    gates = 0

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__(c, **where)
        self.rounding = c.weights
        rows, start = self.gates * c.hidden, Uniform(1.0 / math.sqrt(c.hidden))
        self.weight_ih = self.declare("weight_ih", (rows, c.hidden), start, True, **where)
        self.weight_hh = self.declare("weight_hh", (rows, c.hidden), start, True, **where)
        self.bias_ih = self.declare("bias_ih", (rows,), start, False, **where)
        self.bias_hh = self.declare("bias_hh", (rows,), start, False, **where)

    def cell(self, p: Tensor, h: Tensor, state: State) -> State:
        """The state behind a frame. p [B,G*H]: what its input gives to the gates; h: state["h"]."""
        raise NotImplementedError

    def inside(self, u: Tensor, state: State, rows: Rows) -> Tuple[Tensor, State]:
        given = product(u, self.weight_ih, self.bias_ih, self.rounding)
        kept: Sequence[Optional[Tensor]] = [None] * rows.time
        if rows.keep is not None:
            kept = rows.keep.unsqueeze(2).unbind(1)
        found: List[Tensor] = []
        for p, keep in zip(given.unbind(1), kept):
            if keep is not None:
                state = {name: value * keep for name, value in state.items()}
            state = self.cell(p, state["h"], state)
            found.append(state["h"])
        return torch.stack(found, 1), state

    def gate(self, h: Tensor) -> Tensor:
        """What the state gives to the gates."""
        return product(h, self.weight_hh, self.bias_hh, self.rounding)


class Lstm(Recurrent):
    """State: h [H], c [H]."""

    gates = 4

    @classmethod
    def carries(cls, c: Config) -> Shapes:
        return {"h": (c.hidden,), "c": (c.hidden,)}

    def cell(self, p: Tensor, h: Tensor, state: State) -> State:
        i, f, g, o = (p + self.gate(h)).chunk(4, dim=1)
        c = torch.sigmoid(f) * state["c"] + torch.sigmoid(i) * torch.tanh(g)
        return {"h": torch.sigmoid(o) * torch.tanh(c), "c": c}


class LstmBare(Lstm):
    """x + lstm(x)."""

    normed = False


class LstmOnly(LstmBare):
    """lstm(x)."""

    adds = False


class Gru(Recurrent):
    """State: h [H]."""

    gates = 3

    @classmethod
    def carries(cls, c: Config) -> Shapes:
        return {"h": (c.hidden,)}

    def cell(self, p: Tensor, h: Tensor, state: State) -> State:
        (p_r, p_z, p_n), (q_r, q_z, q_n) = p.chunk(3, dim=1), self.gate(h).chunk(3, dim=1)
        n = torch.tanh(p_n + torch.sigmoid(p_r + q_r) * q_n)
        z = torch.sigmoid(p_z + q_z)
        return {"h": (1.0 - z) * n + z * h}


class GruBare(Gru):
    """x + gru(x)."""

    normed = False


class GruOnly(GruBare):
    """gru(x)."""

    adds = False


# ---- attention -----------------------------------------------------------------------------------------------


class Attention(Block):
    """State, of the W-1 frames before: k [Q,W-1,E], v [Q,W-1,E]; seen [W-1], 1 where such a frame is of this episode."""

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__(c, **where)
        self.heads, self.dim, self.window = c.attention_heads, c.attention_dim, c.attention_window_frames
        width = self.heads * self.dim
        self.qkv = Linear(c.hidden, 3 * width, rounding=c.weights, **where)
        self.relative_bias = self.declare("relative_bias", (self.heads, self.window), Constant(0.0), False, **where)
        self.out_proj = Linear(width, c.hidden, rounding=c.weights, scale=_residual(c), **where)

    @classmethod
    def carries(cls, c: Config) -> Shapes:
        before = c.attention_window_frames - 1
        kept = (c.attention_heads, before, c.attention_dim)
        return {"k": kept, "v": kept, "seen": (before,)}

    def inside(self, u: Tensor, state: State, rows: Rows) -> Tuple[Tensor, State]:
        q, k, v = self.qkv(u).unflatten(2, (3, self.heads, self.dim)).permute(2, 0, 3, 1, 4).unbind(0)
        k, v = torch.cat([state["k"], k], 2), torch.cat([state["v"], v], 2)
        seen = F.pad(state["seen"], (0, rows.time), value=1.0)
        score = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.dim) + self.bias(rows.time)
        blind = self.blind(seen, rows)
        score = score.masked_fill(blind.unsqueeze(1), -math.inf)
        y = torch.matmul(torch.softmax(score, dim=3), v).transpose(1, 2).flatten(2)
        if rows.episode is not None:
            episode = F.pad(rows.episode, (self.window - 1, 0))
            seen = seen * (episode == episode[:, -1:]).to(seen.dtype)
        after = {"k": k[:, :, rows.time :], "v": v[:, :, rows.time :], "seen": seen[:, rows.time :]}
        return self.out_proj(y), after

    def distance(self, time: int) -> Tensor:
        """[T,W-1+T], how many frames lie between a row and what it may look at."""
        now = torch.arange(time, device=self.relative_bias.device)
        return now.unsqueeze(1) + (self.window - 1) - torch.arange(self.window - 1 + time, device=now.device)

    def bias(self, time: int) -> Tensor:
        """[Q,T,W-1+T]."""
        return self.relative_bias[:, self.distance(time).clamp(0, self.window - 1)]

    def blind(self, seen: Tensor, rows: Rows) -> Tensor:
        """[B,T,W-1+T], what a row must not look at: other episodes, what is too far away, what comes later."""
        distance, episode = self.distance(rows.time), rows.before(self.window - 1)
        blind = ((distance < 0) | (distance >= self.window)).unsqueeze(0) | (seen == 0).unsqueeze(1)
        if episode is not None:
            blind = blind | (episode.unsqueeze(1) != episode[:, self.window - 1 :].unsqueeze(2))
        return blind


# ---- without state -------------------------------------------------------------------------------------------


class Mlp(Block):
    """Nothing is carried."""

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__(c, **where)
        inner = self.width(c)
        self.up = Linear(c.hidden, inner, rounding=c.weights, **where)
        self.up_norm = Norm(inner, c.norm_epsilon, **where)
        self.down = Linear(inner, c.hidden, rounding=c.weights, scale=_residual(c), **where)

    @staticmethod
    def width(c: Config) -> int:
        """M, the inner width."""
        return c.hidden

    def inside(self, u: Tensor, state: State, rows: Rows) -> Tuple[Tensor, State]:
        return self.down(F.silu(self.up_norm(self.up(u)))), {}


class Ffn(Mlp):
    """An mlp with a wider inside."""

    @staticmethod
    def width(c: Config) -> int:
        return c.ffn_expand * c.hidden


class FfnGelu(Block):
    """down(gelu(up(u)))."""

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__(c, **where)
        inner = c.ffn_expand * c.hidden
        self.up = Linear(c.hidden, inner, rounding=c.weights, **where)
        self.down = Linear(inner, c.hidden, rounding=c.weights, scale=_residual(c), **where)

    def inside(self, u: Tensor, state: State, rows: Rows) -> Tuple[Tensor, State]:
        return self.down(F.gelu(self.up(u), approximate="tanh")), {}


class Dense(Block):
    """A linear in the place of x."""

    normed, adds = False, False

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__(c, **where)
        self.rounding = c.weights
        self.weight = self.declare("weight", (c.hidden, c.hidden), Uniform(1.0 / math.sqrt(c.hidden)), True, **where)
        self.bias = self.declare("bias", (c.hidden,), Constant(0.0), False, **where)

    def inside(self, u: Tensor, state: State, rows: Rows) -> Tuple[Tensor, State]:
        return product(u, self.weight, self.bias, self.rounding), {}


class Normed(Block):
    """LayerNorm in the place of x."""

    adds = False

    def inside(self, u: Tensor, state: State, rows: Rows) -> Tuple[Tensor, State]:
        return u, {}


class Relu(Block):
    """max(x, 0) in the place of x."""

    normed, adds = False, False

    def inside(self, u: Tensor, state: State, rows: Rows) -> Tuple[Tensor, State]:
        return torch.relu(u), {}


BLOCKS: Dict[str, Type[Block]] = {
    "mamba": Mamba,
    "lstm": Lstm,
    "gru": Gru,
    "attention": Attention,
    "mlp": Mlp,
    "ffn": Ffn,
    "lstm_bare": LstmBare,
    "gru_bare": GruBare,
    "ffn_gelu": FfnGelu,
    "mamba_exphil": MambaExphil,
    "lstm_only": LstmOnly,
    "gru_only": GruOnly,
    "dense": Dense,
    "norm": Normed,
    "relu": Relu,
}


def make_blocks(c: Config, **where: Any) -> nn.ModuleList:
    """The blocks of a policy, first to last."""
    return nn.ModuleList(BLOCKS[kind](c, **where) for kind in c.kinds)
