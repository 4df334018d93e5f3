"""The parts that blocks are made of: products with weights of fewer bits, and what training and a first start know of tensors."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SMALLEST_BF16, SMALLEST_ROW = 2.0**-50, 2.0**-100

# Fills a tensor with what it is before training.
Start = Callable[[Tensor, Optional[torch.Generator]], None]


@dataclass(frozen=True)
class Uniform:
    """Between -most and most. Classes, not closures: modules are pickled with their rules."""

    most: float

    def __call__(self, tensor: Tensor, generator: Optional[torch.Generator]) -> None:
        tensor.uniform_(-self.most, self.most, generator=generator)


@dataclass(frozen=True)
class Constant:
    """The same number everywhere."""

    value: float

    def __call__(self, tensor: Tensor, generator: Optional[torch.Generator]) -> None:
        tensor.fill_(self.value)


class Part(nn.Module):
    """A module whose own parameters each have a rule: what it starts as, and whether it decays."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: Dict[str, Tuple[Start, bool]] = {}

    def declare(self, name: str, shape: Tuple[int, ...], start: Start, decays: bool, **where: Any) -> nn.Parameter:
        """A parameter of this module."""
        made = nn.Parameter(torch.empty(shape, **where))
        self.register_parameter(name, made)
        self.rules[name] = start, decays
        return made


class Linear(nn.Linear):
    """y = x weight^T + bias; with `rounding` x is first rounded as a file of such weights asks for."""

    def __init__(
        self, inputs: int, outputs: int, *, bias: bool = True, rounding: Optional[str] = None, scale: float = 1.0, **where: Any
    ) -> None:
        super().__init__(inputs, outputs, bias, **where)
        self.rounding = rounding
        self.rules = {"weight": (Uniform(scale / math.sqrt(inputs)), True), "bias": (Constant(0.0), False)}

    def forward(self, x: Tensor) -> Tensor:
        return product(x, self.weight, self.bias, self.rounding)


class Norm(nn.LayerNorm):
    """LayerNorm over the last axis."""

    def __init__(self, width: int, epsilon: float, **where: Any) -> None:
        super().__init__(width, eps=epsilon, **where)
        self.rules = {"weight": (Constant(1.0), False), "bias": (Constant(0.0), False)}


class Table(Part):
    """A row of numbers for each value."""

    def __init__(self, entries: int, width: int, most: float, **where: Any) -> None:
        super().__init__()
        self.weight = self.declare("weight", (entries, width), Uniform(most), True, **where)

    def forward(self, values: Tensor) -> Tensor:
        return F.embedding(values, self.weight)


class Tree(nn.Module):
    """Modules by names that may have dots: "own.character" is the module `character` in `own`, so that parameters have the
    names of the file. A name may be that of a method of modules ("type"): entries go past attributes."""

    def put(self, name: str, module: nn.Module) -> nn.Module:
        """Hangs a module in."""
        return Tree.hang(self, name, module)

    @staticmethod
    def hang(above: nn.Module, name: str, module: nn.Module) -> nn.Module:
        """Hangs a module below another one. Where one is already, they become one: that with parameters keeps its place."""
        first, _, rest = name.partition(".")
        below = above._modules.get(first)
        if not rest:
            if below is not None and (below._parameters or below._buffers):
                below._modules.update(module._modules)
                below._parameters.update(module._parameters)
                below.rules = dict(getattr(below, "rules", {}), **getattr(module, "rules", {}))  # type: ignore[assignment]
                return module
            if below is not None:
                module._modules.update(below._modules)
            above._modules[first] = module
            return module
        if below is None:
            below = above._modules[first] = Tree()
        return Tree.hang(below, rest, module)


def product(x: Tensor, weight: Tensor, bias: Optional[Tensor], rounding: Optional[str]) -> Tensor:
    """x weight^T + bias, with x rounded as the weights are. Those of I8 are scale * matrix here, so what is multiplied are
    the levels of x, and the sum is multiplied by the width of a level."""
    if rounding is None:
        return F.linear(x, weight, bias)
    if rounding == "BF16":
        near = x.to(torch.bfloat16).to(x.dtype)
        return F.linear(torch.where(x.abs() < SMALLEST_BF16, torch.zeros_like(x), near), weight, bias)
    most = x.abs().amax(dim=-1, keepdim=True)
    sound = most >= SMALLEST_ROW
    levels = torch.round(x * (127.0 / torch.where(sound, most, torch.ones_like(most))))
    sums = F.linear(torch.where(sound, levels, torch.zeros_like(x)), weight) * (most / 127.0)
    return sums if bias is None else sums + bias


def declared(module: nn.Module, prefix: str = "") -> Iterator[Tuple[str, nn.Parameter, Start, bool]]:
    """Every parameter below a module: its name, what it starts as, whether it decays."""
    rules = getattr(module, "rules", {})
    for name, parameter in module._parameters.items():
        if parameter is not None:
            start, decays = rules[name]
            yield prefix + name, parameter, start, decays
    for name, below in module._modules.items():
        if below is not None:
            yield from declared(below, f"{prefix}{name}.")
