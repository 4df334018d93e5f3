"""Weights of a foreign policy while they are taken over: every tensor once, in the shape that the network demands."""
from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Sequence, Tuple

import numpy as np

from . import arrays
from .arrays import Floats
from .refusal import MOST_RATIO, Damaged, Refused, shown

_SIDE_MOST = 16384  # of a matrix of a policy
_TOTAL_MOST = 1 << 30  # parameters
_SPARE = 1 << 20  # parameters of a new file, whatever the foreign one has


class Weights:
    """Named tensors. What is not taken in the end is refused by name: the network would be another one."""

    def __init__(self, tensors: Mapping[str, Any], what: str) -> None:
        self.tensors = dict(tensors)
        self.what = what
        self.parameters = 0
        # Many names can stand for the same bytes.
        sizes = {one.__array_interface__["data"][0]: one.nbytes for one in tensors.values() if isinstance(one, np.ndarray)}
        self.most = min(_TOTAL_MOST, MOST_RATIO * sum(sizes.values()) // 4 + _SPARE)

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def shape(self, name: str) -> Tuple[int, ...]:
        """Shape of a tensor that must be there."""
        if name not in self.tensors:
            raise Refused(f"{self.what}: there is no {name}")
        return tuple(getattr(self.tensors[name], "shape", ()))

    def sides(self, name: str, count: int) -> Tuple[int, ...]:
        """Shape of a tensor of so many dimensions, each of a size that a policy can have."""
        shape = self.shape(name)
        if len(shape) != count or any(not 0 < side <= _SIDE_MOST for side in shape):
            raise Refused(f"{self.what}: {name} is {list(shape)}; {count} dimensions of 1 to {_SIDE_MOST} are expected")
        return shape

    def take(self, name: str, *shape: int) -> Floats:
        """A tensor of this shape, as floats. It is not there any more afterwards."""
        found = self.shape(name)
        if found != shape:
            raise Refused(f"{self.what}: {name} is {list(found)}, {list(shape)} is expected")
        made = arrays.floats(self.tensors.pop(name), f"{self.what}: {name}")
        self.count(made.size)
        return made

    def count(self, parameters: int) -> None:
        """More parameters for the new file, before there is memory for them."""
        self.parameters += parameters
        if self.parameters > self.most:
            raise Refused(f"{self.what}: it would have more than {self.most} parameters here, which is {MOST_RATIO} times what it"
                          f" has and {_SPARE} ({_TOTAL_MOST} at most)")  # fmt: skip

    def zeros(self, *shape: int) -> Floats:
        """A new matrix, to be filled in part."""
        self.count(math.prod(shape))
        return np.zeros(shape, np.float32)

    def padded(self, matrix: Floats, *shape: int) -> Floats:
        """The same values, and zeros behind them."""
        made = self.zeros(*shape)
        made[tuple(slice(0, side) for side in matrix.shape)] = matrix
        return made

    def linear(self, name: str, inputs: int, outputs: int) -> Tuple[Floats, Floats]:
        """kernel [in,out] and bias [out] of a layer, as weight [out,in] and bias."""
        return self.take(f"{name}.kernel", inputs, outputs).T, self.take(f"{name}.bias", outputs)

    def done(self) -> None:
        """Everything was taken."""
        if self.tensors:
            names = sorted(self.tensors)
            more = f" and {len(names) - 6} more" if len(names) > 6 else ""
            raise Refused(f"{self.what}: no part of this network: {', '.join(names[:6])}{more}")


class Settings:
    """Settings of a foreign file: a tree of names. A setting that is not there, or of another kind, is refused by its name."""

    def __init__(self, values: Any, what: str, path: str = "") -> None:
        if not isinstance(values, dict):
            raise Refused(f"{what}: {path or 'its configuration'} is missing")
        self.values: Dict[str, Any] = {key: value for key, value in values.items() if isinstance(key, str)}
        self.what = what
        self.path = path

    def name(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def below(self, key: str) -> "Settings":
        return Settings(self.values.get(key), self.what, self.name(key))

    def get(self, key: str, kind: type, *usual: Any) -> Any:
        """A setting of this kind; without a usual value it must be there."""
        value = self.values.get(key, usual[0] if usual else None)
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if kind is float and isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 64:
            return float(value)
        if not fits:
            if value is None:
                raise Refused(f"{self.what}: {self.name(key)} is missing; without it nobody knows what the network sees or does")
            raise Damaged(f"{self.what}: {self.name(key)} is {shown(value)}")
        return value

    def demand(self, key: str, value: Any, need: str, *usual: Any) -> None:
        """A setting that must have this value; else it would need something."""
        found = self.get(key, type(value), *usual)
        if found != value:
            raise Refused(f"{self.what}: {self.name(key)} is {shown(found)}: needs {need}")

    def choose(self, key: str, choices: Sequence[Any], need: str, *usual: Any) -> Any:
        """A setting that must be one of these."""
        found = self.get(key, type(choices[0]), *usual)
        if found not in choices:
            raise Refused(f"{self.what}: {self.name(key)} is {shown(found)}: needs {need}")
        return found
