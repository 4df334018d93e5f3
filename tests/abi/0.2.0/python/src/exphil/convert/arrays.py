"""Tensors out of raw bytes: type and shape must account for every byte, before NumPy is told of them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Sequence

import numpy as np

from .reader import Bytes
from .refusal import MOST_RANK, Damaged, Refused, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
else:
    Floats = Any

_SIDE_MOST = 1 << 31
# Types of tensors by their NumPy letters; "bf16" is widened here.
_WIDTHS: Dict[str, int] = {"f2": 2, "f4": 4, "f8": 8, "bf16": 2, "b1": 1,
                           "i1": 1, "i2": 2, "i4": 4, "i8": 8, "u1": 1, "u2": 2, "u4": 4, "u8": 8}  # fmt: skip
FLOATING = ("f2", "f4", "f8", "bf16")


def element_bytes(kind: str, what: str) -> int:
    """Width of a type; others have no numbers."""
    if kind not in _WIDTHS:
        raise Refused(f"{what}: elements of type {kind} are not read")
    return _WIDTHS[kind]


def element_count(shape: Sequence[int], what: str) -> int:
    """How many elements a shape has, if it can be one."""
    if len(shape) > MOST_RANK:
        raise Damaged(f"{what}: {len(shape)} dimensions; {MOST_RANK} at most")
    count = 1
    for side in shape:
        if type(side) is not int or side < 0 or side > _SIDE_MOST:
            raise Damaged(f"{what}: a dimension is {shown(side)}")
        count *= side
    return count


def tensor(data: Bytes, kind: str, shape: Sequence[int], what: str, *, big: bool = False, columns_first: bool = False) -> Any:
    """An array over the bytes, which must be exactly as many as the shape has; no copy, but of bf16."""
    count, width = element_count(shape, what), element_bytes(kind, what)
    if count * width != len(data):
        raise Damaged(f"{what}: {list(shape)} of {width} bytes each are {count * width} bytes, there are {len(data)}")
    if count == 0:
        raise Damaged(f"{what}: {list(shape)} has no elements")
    order = ">" if big else "<"
    if kind == "bf16":
        halves = np.frombuffer(data, dtype=order + "u2").astype(np.uint32) << 16
        flat: Any = halves.astype(np.uint32).view(np.float32)
    else:
        flat = np.frombuffer(data, dtype=order + kind)
    return flat.reshape(tuple(shape), order="F" if columns_first else "C")


def floats(array: Any, what: str) -> Floats:
    """As 32-bit floats, all finite."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
        raise Refused(f"{what}: not a tensor of floating-point numbers")
    made = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(made).all():
        raise Damaged(f"{what}: has a number that is not finite")
    return made.reshape(array.shape)
