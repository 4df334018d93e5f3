"""The operations of exphil.ops on JAX's arrays: inside of jax.jit, with jax.grad and jax.vmap, as custom calls of XLA.

    import exphil.jax
    y = jax.jit(exphil.jax.selective_scan, static_argnames="delta_softplus")(u, delta, A, B, C, delta_softplus=True)

The functions and their arguments are those of exphil.ops, which comes here by itself when it is given JAX's arrays. Options must be
static. Gradients are the library's own operations (jax.custom_vjp); second derivatives and forward mode are not available. Under
jax.vmap the library is called once for each element; a batch axis is faster. On several devices jax.shard_map divides the work, and
so do Explicit axes of a mesh; under jax.jit with Auto axes each device computes the whole batch. jax.export needs constant
dimensions, and disabled_checks=[jax.export.DisabledSafetyCheck.custom_call(name) for name in TARGETS].

On the CPU the library works in the caller's thread and its own ones while XLA waits. The handlers for NVIDIA GPUs put their work on
XLA's stream; they are compiled, but have not yet run on a card. Needs XLA's FFI 0.3: jax 0.10 has it, 0.7 not.
"""
from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
from importlib import import_module
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import ops
from ._native import ffi, lib
from .errors import ExphilError, check, make_error, new_error, text
from .jax_mesh import axes_of, by_batch, explicit, varying
from .jax_refuse import no_second
from .ops_call import Call, Numbers
from .ops_table import OPS, Field, Op, Sizes, in_rows, shape_of, sizes_of

# Type checkers know it or not, as it is installed or not.
jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")

# Any address that is not NULL: the library is asked what it needs before there are arrays.
_SOMEWHERE = 4096
# XLA_MINOR of xla_abi.h.
MINOR = 3
_CODES = {"float32": 0, "float64": 1, "bool": 2, "uint8": 2}


def _minor() -> int:
    """Version of XLA's interface, by its header. One that is too old takes no handler, and then JAX has no CPU at all."""
    if not hasattr(jax, "ffi"):
        return 0
    path = os.path.join(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    with open(path, encoding="utf-8") as file:
        found = re.search(r"XLA_FFI_API_MINOR (\d+)", file.read())
    return int(found.group(1)) if found else 0


def _load() -> ctypes.CDLL:
    """The shared object with the handlers, known to XLA from here on."""
    minor = _minor()
    if minor < MINOR:
        raise ImportError(f"exphil.jax needs a JAX whose XLA has version 0.{MINOR} or later of its FFI, as that of "
                          f"jax 0.10 is; jax {jax.__version__} has 0.{minor}")
    found = importlib.util.find_spec(f"{__package__}._xla")
    if found is None or found.origin is None:
        raise ImportError("exphil was built without its handlers for XLA: build the wheel again")
    handlers = ctypes.CDLL(found.origin)
    for op in OPS.values():
        for name in (op.name, f"{op.name}_backward"):
            for suffix, platform in (("", "cpu"), ("_cuda", "CUDA")):
                handler = jax.ffi.pycapsule(getattr(handlers, f"exphil_xla_{name}{suffix}"))
                jax.ffi.register_ffi_target(f"exphil_{name}", handler, platform=platform)
    return handlers


_HANDLERS = _load()
TARGETS = tuple(f"exphil_{name}{which}" for name in OPS for which in ("", "_backward"))


def use(place: int, address: int) -> None:
    """Kernels for the handlers of a device; exphil.ops.use calls it."""
    _HANDLERS.exphil_xla_ops_set(ctypes.c_int32(place), ctypes.c_void_p(address))


for _place, _ops in ops.in_use().items():
    use(_place, int(ffi.cast("uintptr_t", _ops)))


class _What(NamedTuple):
    """What a custom call is, apart from shapes: it is compiled once for each."""

    name: str
    backward: bool
    present: int
    numbers: Numbers
    wanted: int
    keep: bool


class _Need(NamedTuple):
    """What a call needs beside its arrays, in bytes."""

    saved: int
    workspace: int


def _devices() -> Sequence[int]:
    """Devices whose workspace must fit: the CPU, and the first GPU where JAX runs on one."""
    return (-1, 0) if jax.default_backend() == "gpu" else (-1,)


def _describe(native: Any, field: Field, shape: Sequence[int], code: int) -> None:
    """An array in rows, which XLA has not made yet."""
    native.data, native.type, native.rank = ffi.cast("void *", _SOMEWHERE), code, len(shape)
    order = in_rows(field)
    if len(shape) != len(order):
        native.sizes = tuple(shape[:4])
        return
    stride = 1
    for at in reversed(range(len(order))):
        native.sizes[order[at]], native.strides[order[at]] = shape[at], stride
        stride *= max(shape[at], 1)


def _ask(what: _What, arrays: Sequence[Any], saved: bool) -> _Need:
    """Refuses by name what does not fit, and says what else is needed. arrays: of all fields, in rows, None where missing."""
    op = OPS[what.name]
    call, error = ffi.new("exphil_py_call *"), new_error()
    fields = op.takes[what.backward]
    room = ffi.new("exphil_py_array[]", len(fields))
    for native, field, one in zip(room, fields, arrays):
        native.rank = -1
        if one is not None:
            _describe(native, field, one.shape, _CODES.get(str(one.dtype), -1))
    numbers = ffi.new("exphil_py_numbers *", what.numbers)
    if lib.exphil_py_begin(call, op.native, int(what.backward), room, numbers):
        raise make_error(lib.EXPHIL_E_INVALID, text(call.message))
    for i, field in enumerate(op.gives[what.backward]):
        if what.wanted >> i & 1:
            lib.exphil_py_put(call, field.native, ffi.cast("void *", _SOMEWHERE))
    if saved:
        lib.exphil_py_put_saved(call, ffi.cast("void *", _SOMEWHERE), 2**62)
    info = ffi.new("exphil_op_info *")
    info.struct_size = ffi.sizeof("exphil_op_info")
    need = _Need(0, 1)
    for device in _devices():
        kernels = lib.exphil_py_ops(device, error)
        if kernels == ffi.NULL:
            check(error.status, error)
        check(lib.exphil_ops_query(kernels, ffi.addressof(call, "args"), info, error), error)
        need = _Need(max(need.saved, info.saved_bytes), max(need.workspace, info.workspace_bytes))
    return need


def _spread(op: Op, what: _What, present: Sequence[Any]) -> List[Any]:
    """Arrays of all fields that are taken, None for those that are missing."""
    rest = list(present)
    return [rest.pop(0) if what.present >> i & 1 else None for i in range(len(op.takes[what.backward]))]


def _in_rows(field: Field, shape: Sequence[int]) -> Tuple[int, ...]:
    return tuple(shape[axis] for axis in in_rows(field))


def _call(what: _What, present: Sequence[Any], saved: Any = None) -> Tuple[List[Any], Any]:
    """One custom call: what it gives, in rows, and what it keeps."""
    op = OPS[what.name]
    arrays = _spread(op, what, present)
    need = _ask(what, arrays, what.keep or saved is not None)
    sizes = _sizes(op, arrays, what.numbers)
    kind = arrays[0].dtype
    given = [field for i, field in enumerate(op.gives[what.backward]) if what.wanted >> i & 1]
    results = [jax.ShapeDtypeStruct(_in_rows(field, shape_of(field, sizes)), kind) for field in given]
    if what.keep:
        results.append(jax.ShapeDtypeStruct((need.saved,), np.uint8))
    results.append(jax.ShapeDtypeStruct((need.workspace,), np.uint8))
    target = f"exphil_{what.name}{'_backward' if what.backward else ''}"

    @jax.custom_jvp
    def call(*arrays: Any) -> Any:
        return varying(jax.ffi.ffi_call(target, results, vmap_method="sequential")(
            *arrays, present=np.int64(what.present), wanted=np.int64(what.wanted), keep=np.int64(what.keep),
            first=np.int64(what.numbers.first), second=np.int64(what.numbers.second), real=np.float64(what.numbers.real),
        ), axes_of(arrays))

    call.defjvp(no_second(what.name))
    every = (*present, *(() if saved is None else (saved,)))
    made = call(*varying(every, axes_of(every)))
    return list(made[: len(given)]), made[len(given)] if what.keep else None


def _sizes(op: Op, arrays: Sequence[Any], numbers: Numbers) -> Sizes:
    shapes: List[Optional[Tuple[int, ...]]] = []
    for field, one in zip(op.inputs, arrays):
        order = in_rows(field)
        shapes.append(None if one is None else tuple(one.shape[order.index(axis)] for axis in range(len(order))))
    return sizes_of(op, shapes, numbers.first)


def _back(what: _What, kept: Any, grads: Sequence[Any]) -> Tuple[Any, ...]:
    """Gradients of the inputs that are present, None where there is none."""
    op = OPS[what.name]
    inputs, outs, saved = kept
    arrays = [*_spread(op, what, inputs), *outs]
    dfields = [field for field in op.takes[1] if field.kind == lib.EXPHIL_PY_DOUTPUT]
    arrays += [*grads[: len(dfields)], *[None] * (len(dfields) - len(grads))]
    wanted, present = 0, 0
    for i, field in enumerate(op.gives[1]):
        wanted |= (what.present >> field.of_input & 1) << i
    for i, one in enumerate(arrays):
        present |= int(one is not None) << i
    made, _ = _call(what._replace(backward=True, present=present, wanted=wanted, keep=False),
                    [one for one in arrays if one is not None], saved)
    by_input = {field.of_input: made.pop(0) for i, field in enumerate(op.gives[1]) if wanted >> i & 1}
    return tuple(by_input.get(i) for i in range(len(op.inputs)) if what.present >> i & 1)


@functools.lru_cache(maxsize=None)
def _function(name: str, present: int, numbers: Numbers, states: bool) -> Callable[..., Any]:
    """An operation on the arrays that are present, in the shapes of its public arguments, with its gradient."""
    op = OPS[name]
    wanted = sum(1 << i for i, field in enumerate(op.gives[0]) if states or not field.optional)
    what = _What(name, False, present, numbers, wanted, False)
    inputs = [field for i, field in enumerate(op.inputs) if present >> i & 1]
    outputs = [field for i, field in enumerate(op.gives[0]) if wanted >> i & 1]

    rows = jax.custom_vjp(lambda *arrays: tuple(_call(what, arrays)[0]))

    def forward(*arrays: Any) -> Any:
        made, saved = _call(what._replace(keep=op.saves), arrays)
        read = [one for field, one in zip(outputs, made) if field.read_back]
        return tuple(made), (arrays, read, saved)

    rows.defvjp(forward, lambda kept, grads: _back(what, kept, grads))

    def local(*arrays: Any) -> Any:
        arrays = varying(arrays, axes_of(arrays))  # here, so that JAX sums gradients of what does not vary
        made = rows(*[_transpose(one, in_rows(field)) for field, one in zip(inputs, arrays)])
        return tuple(_transpose(one, np.argsort(in_rows(field))) for field, one in zip(outputs, made))

    def public(*arrays: Any) -> Any:
        takes, gives = ([field.axes[0] == "B" for field in some] for some in (inputs, outputs))
        mesh, batch = explicit(arrays, takes)
        if mesh is None or any(one.ndim != len(field.axes) for field, one in zip(inputs, arrays)):
            return local(*arrays)
        _ask(what, _spread(op, what, [jax.ShapeDtypeStruct(_in_rows(field, one.shape), one.dtype)
                                      for field, one in zip(inputs, arrays)]), False)
        return by_batch(local, mesh, batch, takes, gives)(*arrays)

    made: Callable[..., Any] = jax.jit(public, inline=True)
    return made


def _transpose(array: Any, order: Any) -> Any:
    """Nothing where nothing changes, and where the rank is wrong, which is refused later."""
    wanted = tuple(int(axis) for axis in order)
    if array.ndim != len(wanted) or wanted == tuple(range(len(wanted))):
        return array
    return jnp.transpose(array, wanted)


def compute(call: Call) -> List[Any]:
    """What forward gives."""
    arrays = [None if one is None else jnp.asarray(one) for one in call.arrays]
    present = sum(1 << i for i, one in enumerate(arrays) if one is not None)
    for field, one in zip(call.op.inputs, arrays):
        if one is None and not field.optional:
            raise TypeError(f"{call.op.name}: {field.name} is missing")
    there = [one for one in arrays if one is not None]
    try:
        made = list(_function(call.op.name, present, call.numbers, call.states)(*there))
    except ValueError as error:
        if isinstance(error, ExphilError) or explicit(there, [False] * len(there))[0] is None:
            raise
        raise ValueError(f"{call.op.name}: on a mesh with Explicit axes the batch of the arrays may be divided, but nothing that "
                         "jax.vmap goes over: put jax.shard_map around jax.vmap, or make the mesh with axis_types Auto") from error
    if call.op.name == "attention" and call.states:
        made[1] = jax.lax.stop_gradient(made[1])
    return made


def _of_jax(operation: Any) -> Any:
    """The same function for JAX alone: what it is given becomes an array of JAX."""

    @functools.wraps(operation)
    def function(*args: Any, **kwargs: Any) -> Any:
        args = tuple(jnp.asarray(one) if isinstance(one, np.ndarray) else one for one in args)
        kwargs = {name: jnp.asarray(one) if isinstance(one, np.ndarray) else one for name, one in kwargs.items()}
        return operation(*args, **kwargs)

    return function


_FUNCTIONS: Dict[str, Any] = {
    one.__name__: _of_jax(one)
    for one in (ops.selective_scan, ops.attention, ops.lstm, ops.gru, ops.layer_norm_silu, ops.causal_conv1d)
}
selective_scan = _FUNCTIONS["selective_scan"]
attention = _FUNCTIONS["attention"]
lstm = _FUNCTIONS["lstm"]
gru = _FUNCTIONS["gru"]
layer_norm_silu = _FUNCTIONS["layer_norm_silu"]
causal_conv1d = _FUNCTIONS["causal_conv1d"]

__all__ = ["TARGETS", "attention", "causal_conv1d", "gru", "layer_norm_silu", "lstm", "selective_scan"]
