"""Arrays of others: where their elements lie, and new ones of the same kind.

What is asked of an array is its address, shape, strides, type and device: of NumPy by the array interface, of torch by its
methods, of CuPy and others on a GPU by the CUDA array interface, of all else on the CPU through NumPy by DLPack.
"""
from __future__ import annotations

import sys
from typing import Any, Dict, Sequence, Tuple

import numpy as np

from ._native import ffi

CPU = -1
_CODES = {"f": 0, "d": 1, "?": 2, "B": 2}
_TYPES = (np.dtype(np.float32), np.dtype(np.float64))


def _put(to: Any, address: int, code: int, shape: Sequence[int], strides: Sequence[int]) -> None:
    """Writes an exphil_py_array; strides in elements. An array of too many dimensions is refused by its rank alone."""
    to.data = ffi.cast("void *", address)
    to.type = code
    to.rank = len(shape)
    to.sizes = shape[:4]
    to.strides = strides[:4]


class NumpyKind:
    """NumPy's arrays."""

    device = CPU
    stream = 0

    def take(self, value: Any, to: Any) -> Any:
        """Describes value in an exphil_py_array, and gives what must live as long as that is used."""
        if not isinstance(value, np.ndarray):
            value = np.asarray(value)
        kind = value.dtype
        code = _CODES.get(kind.char, -1)
        if code >= 0 and not kind.isnative:
            value = value.astype(kind.newbyteorder("="))
        width = kind.itemsize or 1
        if any(step % width for step in value.strides):
            value = np.ascontiguousarray(value)
        _put(to, value.__array_interface__["data"][0], code, value.shape, [step // width for step in value.strides])
        return value

    def lends(self, value: Any, kept: Any) -> bool:
        """Whether what take gave is in the caller's own memory, and no copy of it."""
        return kept is value

    def copy(self, value: Any) -> Any:
        """The same without gaps, aligned."""
        return np.require(value, requirements=("C_CONTIGUOUS", "ALIGNED")).copy()

    def new(self, shape: Sequence[int], strides: Sequence[int], code: int, like: Any) -> Tuple[Any, int]:
        """An array with these strides, which leave no gaps, and its address."""
        order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
        made = np.empty([shape[axis] for axis in order], _TYPES[code])
        address: int = made.__array_interface__["data"][0]
        return made.transpose(np.argsort(order)), address

    def room(self, bytes: int, like: Any) -> Tuple[Any, int]:
        """Memory without a meaning."""
        made = np.empty(max(bytes, 1), np.uint8)
        address: int = made.__array_interface__["data"][0]
        return made, address

    def given(self, made: Any, like: Any) -> Any:
        """What the caller gets."""
        return made


class OtherKind(NumpyKind):
    """Anything on the CPU with __dlpack__: seen through NumPy, given back by its own from_dlpack."""

    def take(self, value: Any, to: Any) -> Any:
        if not hasattr(value, "__array__"):
            value = np.from_dlpack(value)
        return super().take(value, to)

    def lends(self, value: Any, kept: Any) -> bool:
        try:
            seen = np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError):
            return False
        return bool(seen.__array_interface__["data"] == kept.__array_interface__["data"])

    def given(self, made: Any, like: Any) -> Any:
        return _namespace(like).from_dlpack(made)


class CudaKind:
    """Arrays on a GPU with __cuda_array_interface__, such as CuPy's. Written, but not yet run on one."""

    def __init__(self, device: int) -> None:
        self.device = device

    @property
    def stream(self) -> int:
        """The stream on which CuPy works; that of others is the default one."""
        cupy = sys.modules.get("cupy")
        return int(cupy.cuda.get_current_stream().ptr) if cupy is not None else 0

    def take(self, value: Any, to: Any) -> Any:
        seen = value.__cuda_array_interface__
        kind = np.dtype(seen["typestr"])
        strides = seen.get("strides") or np.empty(seen["shape"], np.dtype([])).strides
        if not seen.get("strides"):
            strides, step = [], 1
            for size in reversed(seen["shape"]):
                strides.insert(0, step * kind.itemsize)
                step *= size
        _put(to, seen["data"][0], _CODES.get(kind.char, -1), seen["shape"], [step // (kind.itemsize or 1) for step in strides])
        return value

    def lends(self, value: Any, kept: Any) -> bool:
        """As in NumpyKind."""
        return True

    def copy(self, value: Any) -> Any:
        return _namespace(value).ascontiguousarray(value)

    def new(self, shape: Sequence[int], strides: Sequence[int], code: int, like: Any) -> Tuple[Any, int]:
        order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
        made = _namespace(like).empty([shape[axis] for axis in order], dtype=_TYPES[code])
        return made.transpose([int(axis) for axis in np.argsort(order)]), int(made.__cuda_array_interface__["data"][0])

    def room(self, bytes: int, like: Any) -> Tuple[Any, int]:
        made = _namespace(like).empty(max(bytes, 1), dtype=np.uint8)
        return made, int(made.__cuda_array_interface__["data"][0])

    def given(self, made: Any, like: Any) -> Any:
        return made


def _namespace(value: Any) -> Any:
    """The library that an array is of."""
    if hasattr(value, "__array_namespace__"):
        return value.__array_namespace__()
    return sys.modules[type(value).__module__.split(".")[0]]


_NUMPY = NumpyKind()
_OTHER = OtherKind()
_CUDA: Dict[int, CudaKind] = {}


def kind_of(value: Any, name: str) -> Any:
    """How to handle arrays like this one, which is no torch tensor and no JAX array."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, and no kernel knows masks: filled() gives one without")
    if isinstance(value, np.ndarray):
        return _NUMPY
    if hasattr(value, "__dlpack_device__"):
        try:
            device, number = value.__dlpack_device__()
        except (TypeError, ValueError):
            raise TypeError(f"{name}: its __dlpack_device__ must give a type and a number") from None
        if device == 1:
            return _OTHER
        if device == 2 and hasattr(value, "__cuda_array_interface__"):
            return _CUDA.setdefault(number, CudaKind(number))
        raise TypeError(f"{name} is on a device of DLPack's type {device}; NumPy, torch, JAX and CuPy are known")
    raise TypeError(f"{name} must be an array with __dlpack__, not {type(value).__name__}")
