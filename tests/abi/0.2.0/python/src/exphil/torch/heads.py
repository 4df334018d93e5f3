"""From z, what the trunk of the heads gives, to logits and values of the heads."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .config import Config, Head
from .layers import Constant, Linear, Part, Tree, Uniform

# Gives the values [...] of a head by its index and its logits [...,count].
Choose = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True)
class HeadPlay:
    """How one head decides, as exphil.HeadPlay: by chance at this temperature (0: 1), or deterministically its most likely
    value. Deterministic bits go on above press, off below release (0: 0.5)."""

    temperature: float = 0.0
    deterministic: bool = False
    press: float = 0.0
    release: float = 0.0


class Codec(nn.Module):
    """Values of heads [...,A] as numbers [...,L]: bits as 0 or 1, classes one-hot; and what is "do nothing"."""

    def __init__(self, heads: Sequence[Head], **where: Any) -> None:
        super().__init__()
        device = where.get("device")
        self.heads = tuple(heads)
        self.first = [sum(head.count for head in heads[:h]) for h in range(len(heads))]
        of = [h for h, head in enumerate(heads) for _ in range(head.count)]
        place = [i for head in heads for i in range(head.count)]

        def keep(name: str, values: Sequence[int], dtype: torch.dtype = torch.int64) -> None:
            self.register_buffer(name, torch.tensor(values, dtype=dtype, device=device), persistent=False)

        keep("of", of)
        keep("place", place)
        keep("bits", [heads[h].bits for h in of], torch.bool)
        keep("neutral", [head.neutral for head in heads])

    of: Tensor
    place: Tensor
    bits: Tensor
    neutral: Tensor

    def numbers(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """Values [...,A] as numbers [...,L]."""
        each = values.to(torch.int64)[..., self.of]
        on = torch.bitwise_and(torch.bitwise_right_shift(each, self.place), 1) == 1
        return torch.where(self.bits, on, each == self.place).to(dtype)

    def numbers_of(self, h: int, values: Tensor, dtype: torch.dtype) -> Tensor:
        """Values [...] of one head as numbers [...,count]."""
        values, count = values.to(torch.int64), self.heads[h].count
        if self.heads[h].bits:
            return bits_of(values, count).to(dtype)
        return (values.unsqueeze(-1) == torch.arange(count, device=values.device)).to(dtype)

    def part(self, h: int) -> slice:
        """The logits of a head among all."""
        return slice(self.first[h], self.first[h] + self.heads[h].count)

    def split(self, logits: Tensor) -> List[Tensor]:
        """Logits [...,L] by heads."""
        return [logits[..., self.part(h)] for h in range(len(self.heads))]


class Heads(Part):
    """What all have: `trunk`, and `past` where past actions reach the logits directly."""

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__()
        self.codec = Codec(c.heads, **where)
        self.follows = c.head_order == "autoregressive"
        self.trunk = None
        if not c.no_head_trunk:
            self.trunk = Linear(c.hidden, c.head_width, rounding="BF16" if c.weights else None, **where)
        self.past = None
        if c.slots and not c.no_head_past:
            self.past = Linear(c.slots * c.logits, c.logits, bias=False, **where)
            self.past.rules["weight"] = _start_repeat, False

    def decide(self, u: Tensor, past: Optional[Tensor], choose: Choose) -> Tuple[Tensor, Tensor]:
        """Logits [...,L] and values [...,A] of u [...,H], the network's last LayerNorm; past [...,S*L]: the past actions."""
        z = u if self.trunk is None else self.trunk(u)
        direct = None if self.past is None else self.past(past)
        return self.follow(z, past, direct, choose)

    def follow(self, z: Tensor, past: Optional[Tensor], direct: Optional[Tensor], choose: Choose) -> Tuple[Tensor, Tensor]:
        """The same of z; direct [...,L] is what past actions give to the logits."""
        raise NotImplementedError


class SharedHeads(Heads):
    """One linear `logits` for all heads, and `embed` where heads see the ones before."""

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__(c, **where)
        self.logits = Linear(c.head_width, c.logits, **where)
        self.embed = self.declare("embed", (c.logits, c.head_width), Uniform(0.1), True, **where) if self.follows else None
        if self.past is not None:
            self.logits.rules["bias"] = self._start_bits, False

    def _start_bits(self, tensor: Tensor, generator: Optional[torch.Generator]) -> None:
        tensor.copy_(torch.where(self.codec.bits, torch.full_like(tensor, -2.0), torch.zeros_like(tensor)))

    def follow(self, z: Tensor, past: Optional[Tensor], direct: Optional[Tensor], choose: Choose) -> Tuple[Tensor, Tensor]:
        if self.embed is None:
            logits = self.logits(F.silu(z)) if direct is None else self.logits(F.silu(z)) + direct
            parts = self.codec.split(logits)
            return logits, torch.stack([choose(h, part) for h, part in enumerate(parts)], -1)
        parts, values = [], []
        for h in range(len(self.codec.heads)):
            rows = self.codec.part(h)
            part = F.linear(F.silu(z), self.logits.weight[rows], self.logits.bias[rows])
            parts.append(part if direct is None else part + direct[..., rows])
            values.append(choose(h, parts[h]))
            if h + 1 < len(self.codec.heads):
                z = z + self.rows_of(h, values[h])
        return torch.cat(parts, -1), torch.stack(values, -1)

    def rows_of(self, h: int, values: Tensor) -> Tensor:
        """The sum of the rows of embed that values [...] of a head take."""
        assert self.embed is not None
        rows, values = self.embed[self.codec.part(h)], values.to(torch.int64)
        if not self.codec.heads[h].bits:
            return F.embedding(values, rows)
        return torch.matmul(bits_of(values, rows.shape[0]).to(rows.dtype), rows)


class OneHead(Part):
    """A head with layers of its own: linears `0` to head_layers, the last of which gives the logits; `before` and `last`."""

    def __init__(self, c: Config, h: int, **where: Any) -> None:
        super().__init__()
        head, half = c.heads[h], "BF16" if c.weights else None
        widths = [c.hidden if c.no_head_trunk else c.head_width] + [c.head_units] * c.head_layers + [head.count]
        self.layers = []
        for k in range(c.head_layers + 1):
            made = Linear(widths[k], widths[k + 1], rounding=half if k < c.head_layers else None, **where)
            self._modules[str(k)] = made
            self.layers.append(made)
        if head.bits and c.slots and not c.no_head_past:
            made.rules["bias"] = Constant(-2.0), False
        first, start = sum(one.count for one in c.heads[:h]), Uniform(0.1)
        follows = first > 0 and c.head_order == "autoregressive"
        self.before = self.declare("before", (first, c.head_units), start, True, **where) if follows else None
        self.last = self.declare("last", (head.count, c.head_units), start, True, **where) if c.head_last else None
        self.activation = c.head_activation or "silu"

    def forward(self, z: Tensor, codes: Sequence[Tensor], own: Optional[Tensor]) -> Tensor:
        """Logits [...,count]. codes: values of the heads before as numbers; own: that of this one in the newest past action."""
        s = self.layers[0](z)
        if self.before is not None:
            s = s + torch.matmul(torch.cat(list(codes), -1), self.before)
        if self.last is not None:
            assert own is not None
            s = s + torch.matmul(own, self.last)
        for layer in self.layers[1:]:
            s = layer(self.active(s))
        return s

    def active(self, s: Tensor) -> Tensor:
        """What stands behind a hidden layer."""
        if self.activation == "gelu_tanh":
            return F.gelu(s, approximate="tanh")
        return F.silu(s) if self.activation == "silu" else torch.relu(s)


class LayeredHeads(Heads):
    """Heads with layers of their own, each below its name."""

    def __init__(self, c: Config, **where: Any) -> None:
        super().__init__(c, **where)
        # Like ids, heads may be called as a method of modules is, or as one of the parts above.
        self.each = tuple(OneHead(c, h, **where) for h in range(len(c.heads)))
        for head, made in zip(c.heads, self.each):
            Tree.hang(self, head.name, made)

    def follow(self, z: Tensor, past: Optional[Tensor], direct: Optional[Tensor], choose: Choose) -> Tuple[Tensor, Tensor]:
        parts: List[Tensor] = []
        values: List[Tensor] = []
        codes: List[Tensor] = []
        for h, head in enumerate(self.each):
            rows = self.codec.part(h)
            part = head(z, codes, None if past is None else past[..., rows])
            parts.append(part if direct is None else part + direct[..., rows])
            values.append(choose(h, parts[h]))
            if self.follows:
                codes.append(self.codec.numbers_of(h, values[h], z.dtype))
        return torch.cat(parts, -1), torch.stack(values, -1)


def make_heads(c: Config, **where: Any) -> Heads:
    """The heads of a policy."""
    return (LayeredHeads if c.head_layers else SharedHeads)(c, **where)


def _start_repeat(tensor: Tensor, generator: Optional[torch.Generator]) -> None:
    tensor.zero_()
    tensor.diagonal().fill_(4.0)


def bits_of(values: Tensor, count: int) -> Tensor:
    """[...,count], 0 or 1."""
    places = torch.arange(count, device=values.device)
    return torch.bitwise_and(torch.bitwise_right_shift(values.unsqueeze(-1), places), 1)


# ---- from logits to an action --------------------------------------------------------------------------------


def _draw_bits(x: Tensor, noise: Optional[Tensor], before: Tensor, how: HeadPlay) -> Tensor:
    if how.deterministic:
        held = bits_of(before, x.shape[-1]) == 1
        on = torch.sigmoid(x) > torch.where(held, float(how.release or 0.5), float(how.press or 0.5))
    else:
        assert noise is not None
        on = torch.sigmoid(x / (how.temperature or 1.0)) > noise
    places = torch.arange(x.shape[-1], device=x.device)
    return torch.bitwise_left_shift(on.to(torch.int64), places).sum(-1)


def draw(head: Head, logits: Tensor, noise: Optional[Tensor], before: Tensor, how: HeadPlay) -> Tensor:
    """Values [...] of one head for its logits [...,count]. noise [...,count] in (0, 1), not needed where it is deterministic;
    before [...]: its value in the newest decided action."""
    if noise is None and not how.deterministic:
        raise ValueError(f"head {head.name} draws its value: give noise, or let it be deterministic")
    if head.bits:
        return _draw_bits(logits, noise, before, how)
    if not how.deterministic:
        assert noise is not None
        logits = logits / (how.temperature or 1.0) - torch.log(-torch.log(noise))
    return logits.argmax(-1)


def how_of(heads: Sequence[Head], plays: Optional[Sequence[Any]], deterministic: bool) -> Tuple[HeadPlay, ...]:
    """One setting for each head, checked."""
    if plays is None:
        return (HeadPlay(deterministic=deterministic),) * len(heads)
    if len(plays) != len(heads):
        raise ValueError(f"heads has {len(plays)} entries, the policy has {len(heads)} heads")
    made = []
    for one, head in zip(plays, heads):
        how = HeadPlay(float(one.temperature), bool(one.deterministic) or deterministic, float(one.press), float(one.release))
        if not 0 <= how.temperature < math.inf or not 0 <= how.press < 1 or not 0 <= how.release < 1:
            raise ValueError(f"head {head.name}: {how} is out of range")
        made.append(how)
    return tuple(made)
