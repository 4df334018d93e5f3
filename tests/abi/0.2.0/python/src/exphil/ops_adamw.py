"""A step of AdamW on arrays of others, in place."""
from __future__ import annotations

from typing import Any, Dict, List

from ._native import ffi, lib
from .errors import check, new_error
from .ops_arrays import kind_of

# As the caller calls them.
_NAMES = {"p": "param", "grad": "grad", "m": "exp_avg", "v": "exp_avg_sq", "average": "average"}


def _describe(value: Any, name: str) -> Any:
    """An array without gaps, or a refusal; its description."""
    made = ffi.new("exphil_py_array *")
    module = type(value).__module__.split(".")[0]
    if module in ("jax", "jaxlib"):
        raise TypeError(f"{name} is an array of JAX, which cannot be written in place")
    if module == "torch" or hasattr(value, "data_ptr"):
        from . import ops_torch

        ops_torch.look_in_place(value, name, name != "grad")
        kept, device, stream = ops_torch.describe(value, made), -1 if value.device.type == "cpu" else value.device.index, 0
    else:
        kind = kind_of(value, name)
        kept, device, stream = kind.take(value, made), kind.device, kind.stream
    if made.type not in (lib.EXPHIL_OPS_F32, lib.EXPHIL_OPS_F64):
        raise TypeError(f"{name} must have elements of type float32 or float64")
    expected = 1
    for size, stride in reversed(list(zip(value.shape, [made.strides[i] for i in range(min(made.rank, 4))]))):
        if size > 1 and stride != expected:
            raise ValueError(f"{name} must lie in memory without gaps")
        expected *= size
    if kept is not value:
        raise ValueError(f"{name} must lie in memory without gaps")
    if name != "grad" and not getattr(getattr(value, "flags", None), "writeable", True):
        raise ValueError(f"{name} is read-only")
    return made, device, stream, expected


def step(arrays: Dict[str, Any], numbers: Dict[str, Any]) -> None:
    """Runs it."""
    args = ffi.new("exphil_adamw_args *")
    args.struct_size = ffi.sizeof("exphil_adamw_args")
    args.op = lib.EXPHIL_OP_ADAMW
    first: Any = None
    written: List[Any] = []  # of torch
    for field, value in arrays.items():
        name = _NAMES[field]
        if value is None and field == "average":
            continue
        made, device, stream, elements = _describe(value, name)
        if first is None:
            first = (tuple(value.shape), made.type, device, stream)
            args.type, args.count = made.type, elements
        if tuple(value.shape) != first[0]:
            raise ValueError(f"{name} has shape {tuple(value.shape)}, must have that of param, {first[0]}")
        if made.type != first[1] or device != first[2]:
            raise ValueError(f"{name} must have the type and device of param")
        getattr(args, field).data = made.data
        written += [value] * (name != "grad" and hasattr(value, "data_ptr"))
    for name, one in numbers.items():
        setattr(args, name, one)
    error = new_error()
    ops = lib.exphil_py_ops(first[2], error)
    if ops == ffi.NULL:
        check(error.status, error)
    for value in written:
        # Autograd hears of it: the version is one for a tensor and all views of it, those without elements, too.
        value.detach().as_strided((0,), (1,)).zero_()
    check(lib.exphil_ops_run(ops, args, ffi.NULL, 0, ffi.cast("void *", first[3]), error), error)
