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

    def extra_repr(self) -> str:
        return "{}, {}".format(*self.weight.shape)


# Casts of a whole policy. Torch reaches its parts in another way: a module of such a name may take the method's place.
_CASTS = ("type", "half", "float", "double", "bfloat16", "cpu", "cuda")
_KEYS = "_Keys"  # the attribute of a module that has them; no id and no head is called so


class Tree(nn.Module):
    """Modules by names that may have dots: "own.character" is the module `character` in `own`, so that parameters have the
    names of the file. Where the module above has something of this name already ("type"), torch finds the one below with "_"
    behind ("type_"); in a state_dict it has its name."""

    def put(self, name: str, module: nn.Module) -> nn.Module:
        """Hangs a module in."""
        return Tree.hang(self, name, module)

    @staticmethod
    def hang(above: nn.Module, name: str, module: nn.Module) -> nn.Module:
        """Hangs a module below another one. Where one is already, they become one: that with parameters keeps its place."""
        first, _, rest = name.partition(".")
        below = above._modules.get(_key(above, first))
        if rest:
            return Tree.hang(_place(above, first, Tree()) if below is None else below, rest, module)
        if below is None:
            return _place(above, first, module)
        if below._parameters or below._buffers:
            below._parameters.update(module._parameters)
            module._parameters = below._parameters  # who replaces one there, replaces it here
            below.rules = dict(getattr(below, "rules", {}), **getattr(module, "rules", {}))  # type: ignore[assignment]
            _move(module, below)
            return module
        _move(below, module)
        return _place(above, first, module)


def _key(above: nn.Module, name: str) -> str:
    """Under which key the module of a name hangs, or would."""
    keys: Dict[str, str] = above.__dict__.get(_KEYS, {})
    if name in keys or name in above._modules and name not in keys.values():
        return keys.get(name, name)
    key = name
    while hasattr(above, key):
        key += "_"
    return key


def _place(above: nn.Module, name: str, module: nn.Module) -> nn.Module:
    """Hangs a module directly below another one, in the place of what is there."""
    key = _key(above, name)
    above._modules[key] = module
    if key != name:
        if name in _CASTS:
            above.__dict__[name] = module  # whoever has the name from a file finds it, too
        if _KEYS not in above.__dict__:
            above.__dict__[_KEYS] = {}
            above._register_state_dict_hook(_to_names)
            above._register_load_state_dict_pre_hook(_to_keys, with_module=True)
        above.__dict__[_KEYS][name] = key
    return module


def _move(source: nn.Module, to: nn.Module) -> None:
    """What hangs below a module hangs below another one then."""
    names = {key: name for name, key in source.__dict__.get(_KEYS, {}).items()}
    for key, module in source._modules.items():
        if module is not None:
            _place(to, names.get(key, key), module)


def _rename(state: Dict[str, Any], prefix: str, names: Dict[str, str]) -> None:
    """Entries of a state_dict below prefix under other names, which are given by the present ones."""
    found = [name for name in state if name.startswith(prefix) and name[len(prefix) :].partition(".")[0] in names]
    entries = [(name, state.pop(name)) for name in found]
    for name, value in entries:
        first, dot, rest = name[len(prefix) :].partition(".")
        state[prefix + names[first] + dot + rest] = value


def _to_names(module: nn.Module, state: Dict[str, Any], prefix: str, *_: Any) -> None:
    _rename(state, prefix, {key: name for name, key in module.__dict__[_KEYS].items()})


def _to_keys(module: nn.Module, state: Dict[str, Any], prefix: str, *_: Any) -> None:
    _rename(state, prefix, module.__dict__[_KEYS])


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
