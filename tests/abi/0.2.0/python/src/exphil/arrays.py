"""NumPy in and out: whole numbers, views of the library's memory, arrays that the library reads, dtypes of its plain records."""
from __future__ import annotations

from operator import index
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np
import numpy.typing as npt

from ._native import ffi

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

_FORMATS = {"float": "<f4", "double": "<f8"}


def number(value: Any, name: str, kind: str = "int64_t") -> int:
    """value as an integer that fits into a C type: Python's, NumPy's, or a boolean. Nothing is cut: cffi would drop the
    fraction of a number that is no Python float."""
    try:
        whole = int(value) if isinstance(value, np.bool_) else index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if int(ffi.cast(kind, whole)) != whole:
        raise OverflowError(f"{name} does not fit into {kind}")
    return whole


class _Memory:
    """What NumPy asks for a view; NumPy keeps this object, and it keeps the owner of the memory."""

    def __init__(self, owner: Any, interface: Dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def view(owner: Any, pointer: Any, shape: Sequence[int], dtype: Any, writable: bool = False) -> Array:
    """An array over memory that lives as long as owner; read-only unless it is asked for."""
    kind = np.dtype(dtype)
    if pointer == ffi.NULL or 0 in shape:
        return np.empty(tuple(shape), kind)
    flat = np.dtype((np.void, kind.itemsize)) if kind.names else kind
    interface = {
        "version": 3,
        "data": (int(ffi.cast("uintptr_t", pointer)), not writable),
        "shape": tuple(int(n) for n in shape),
        "typestr": flat.str,
    }
    array = np.asarray(_Memory(owner, interface))
    return array.view(kind) if kind.names else array


def room(kind: str, shape: Sequence[int], dtype: Any) -> Tuple[Any, Array]:
    """New zeroed memory that both sides see: a pointer and a writable array. Neither side can move it."""
    count = int(np.prod(shape, dtype=np.int64))
    memory = ffi.new(f"{kind}[]", max(count, 1))
    array = np.frombuffer(ffi.buffer(memory), dtype, max(count, 1))[:count].reshape(tuple(shape))
    return memory, array


def take(value: Any, dtype: Any, shape: Sequence[Optional[int]], name: str) -> Array:
    """value as an array of this type and shape (None: any length), as C has it: contiguous, aligned, in the machine's byte
    order. Copied only when it must be.

    Integers may come in any width if their values fit; numbers with a fraction are no integers.
    """
    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        value = np.from_dlpack(value)
    array = np.asarray(value)
    kind = np.dtype(dtype)
    if array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape)):
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} has shape {array.shape}, must be ({wanted})")
    if array.dtype != kind:
        if array.size and array.dtype.kind not in ("iub" if kind.kind in "iu" else "fiub"):
            raise TypeError(f"{name} has type {array.dtype}, must be {kind} or convert to it")
        if kind.kind in "iu" and array.size and array.dtype.itemsize >= kind.itemsize:
            limits = np.iinfo(kind)
            if int(array.min()) < limits.min or int(array.max()) > limits.max:
                raise ValueError(f"{name} has a value that does not fit into {kind}")
    with np.errstate(over="ignore"):  # too large becomes infinite, which the library refuses
        return np.require(array, kind, ("C_CONTIGUOUS", "ALIGNED"))


def pointer(kind: str, array: Array) -> Any:
    """Address of a contiguous array's data; the result keeps the array."""
    return ffi.from_buffer(f"{kind}[]", array.reshape(-1).view(np.uint8) if array.size else b"\0" * 16)


def out(kind: str, array: Array) -> Any:
    """The same for an array that the library fills; NULL for one without elements."""
    return ffi.from_buffer(f"{kind}[]", array.reshape(-1), require_writable=True) if array.size else ffi.NULL


def _format(kind: Any) -> Any:
    """dtype of a C type."""
    if kind.kind == "array":
        if kind.item.cname == "char":
            return f"S{kind.length}"
        return (_format(kind.item), (kind.length,))
    if kind.kind == "struct":
        return record(kind.cname)
    size = ffi.sizeof(kind)
    if kind.cname in _FORMATS:
        return _FORMATS[kind.cname]
    return f"<{'i' if int(ffi.cast(kind, -1)) < 0 else 'u'}{size}"


def record(kind: str) -> np.dtype[Any]:
    """Structured dtype of a record, laid out as the C compiler did. Pointers and reserved fields are left out."""
    names, formats, offsets = [], [], []
    for name, field in ffi.typeof(kind).fields:
        if name == "reserved" or field.type.kind == "pointer":
            continue
        names.append(name)
        formats.append(_format(field.type))
        offsets.append(field.offset)
    layout = {"names": names, "formats": formats, "offsets": offsets, "itemsize": ffi.sizeof(kind)}
    return np.dtype(layout)  # type: ignore[call-overload,no-any-return]
