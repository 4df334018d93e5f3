"""The operations on torch's tensors, with gradients.

From torch 2.9 on they are operators of torch, registered from C (torch_op.c): this module gives torch what it cannot ask C, the
shapes of what comes out and the formula of the gradient, which calls another such operator. Each has a twin without a gradient,
_plain. With older versions, down to 1.10, they are a torch.autograd.Function that calls the library as for any other array.
"""
from __future__ import annotations

from importlib import import_module
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._native import ffi, lib
from .errors import InvalidError, make_error
from .ops_call import Call, Numbers, Ready
from .ops_table import OPS, Op, kept_bytes, shape_of, sizes_of, strides_of

# Type checkers know it or not, as it is installed or not.
torch: Any = import_module("torch")
_forward_ad: Any = import_module("torch.autograd.forward_ad")
_CODES: Dict[Any, int] = {torch.float32: 0, torch.float64: 1, torch.bool: 2, torch.uint8: 2}
_TYPES = (torch.float32, torch.float64)
_HALVES = (torch.bfloat16, torch.float16)
_VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def describe(value: Any, to: Any) -> Any:
    """Writes an exphil_py_array, and gives the tensor that keeps its memory alive: another one where a bit stands for a sign."""
    if value.is_neg():
        value = value.resolve_neg()
    to.data = ffi.cast("void *", value.data_ptr())
    to.type = _CODES.get(value.dtype, -1)
    to.rank = value.dim()
    to.sizes = tuple(value.shape[:4])
    to.strides = value.stride()[:4]
    return value


class TorchKind:
    """Tensors of one device."""

    def __init__(self, device: Any) -> None:
        self.torch_device = device
        self.device = -1 if device.type == "cpu" else device.index
        if device.type not in ("cpu", "cuda"):
            raise TypeError(f"tensors on {device} cannot be computed on; cpu and cuda are possible")

    @property
    def stream(self) -> int:
        """The stream on which torch works."""
        return 0 if self.device < 0 else int(torch.cuda.current_stream(self.torch_device).cuda_stream)

    def copy(self, value: Any) -> Any:
        """The same without gaps."""
        made = torch.empty(value.shape, dtype=value.dtype, device=value.device)
        return made.copy_(value)

    def new(self, shape: Sequence[int], strides: Sequence[int], code: int, like: Any) -> Tuple[Any, int]:
        """A tensor with these strides, and its address."""
        made = torch.empty_strided(tuple(shape), tuple(strides), dtype=_TYPES[code], device=self.torch_device)
        return made, made.data_ptr()

    def room(self, bytes: int, like: Any) -> Tuple[Any, int]:
        """Memory without a meaning."""
        made = torch.empty(max(bytes, 1), dtype=torch.uint8, device=self.torch_device)
        return made, made.data_ptr()

    def take(self, value: Any, to: Any) -> Any:
        """As describe."""
        return describe(value, to)


class _Ready(Ready):
    def take(self, field: Any, value: Any, to: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{self.op.title}: {field.name} must be a torch.Tensor, not {type(value).__name__}")
        if value.device != self.kind.torch_device:
            raise ValueError(f"{self.op.title}: {field.name} is on another device than {self.op.inputs[0].name}")
        kept = describe(value, to)
        if kept.numel() and not kept.data_ptr():
            raise ValueError(f"{self.op.title}: {field.name} has elements but no memory")
        return kept


def _run(op: Op, backward: bool, arrays: Sequence[Any], saved: Any, numbers: Numbers, wanted: int) -> Tuple[Any, ...]:
    """What the registered operators do, in Python: for older versions of torch."""
    ready = _Ready(op, backward, [None if one is None else one.detach() for one in arrays], numbers, TorchKind(arrays[0].device))
    made = []
    for i, field in enumerate(op.gives[backward]):
        is_wanted = wanted >> i & 1 if backward else not field.optional or wanted & 1
        made.append(ready.put(field) if is_wanted else arrays[0].new_empty(0))
    if op.saves and backward:
        ready.saved(saved.numel(), (saved, saved.data_ptr()))
    info = ready.ask()
    if op.saves and not backward:
        made.append(torch.empty(int(info.saved_bytes) if wanted & 2 else 0, dtype=torch.uint8, device=arrays[0].device))
        if wanted & 2:
            ready.saved(int(info.saved_bytes), (made[-1], made[-1].data_ptr()))
    ready.finish(info)
    ready.run()
    return tuple(made)


def _as_tuple(made: Any) -> Tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


def _first(made: Any) -> Any:
    return made[0] if isinstance(made, tuple) else made


def _numbers(op: Op, numbers: Numbers) -> Tuple[Any, ...]:
    """As an operator takes them."""
    if op.name in ("scan", "attention"):
        return (numbers.first, numbers.second)
    return (numbers.first, numbers.real) if op.name == "norm" else ()


def _apart(op: Op, backward: bool, args: Sequence[Any]) -> Tuple[Sequence[Any], Any, Numbers, int]:
    """Arguments of an operator: arrays, saved, numbers, what is wanted."""
    count = len(op.takes[backward])
    arrays, rest = args[:count], list(args[count:])
    saved = rest.pop(0) if op.saves and backward else None
    wanted = rest.pop()
    if op.name == "norm":
        return arrays, saved, Numbers(rest[0], 0, rest[1]), wanted
    return arrays, saved, Numbers(*rest), wanted


def _fit_ranks(op: Op, backward: bool, arrays: Sequence[Any]) -> None:
    """Refuses what the kernel would refuse of each array alone."""
    first = arrays[0]
    for field, one in zip(op.takes[backward], arrays):
        if one is None:
            continue
        said, rank = f"exphil: {op.name}: {field.name} ", len(field.axes)
        types = (torch.bool, torch.uint8) if field.bytes else (first.dtype,) if first.dtype in _TYPES else _TYPES
        torch._check(one.dim() == rank, lambda: f"{said}has {one.dim()} dimensions, must have {rank}")
        torch._check(one.dtype in types, lambda: f"{said}must have elements of type {' or '.join(map(str, types))}")
        torch._check(one.device == first.device, lambda: f"{said}is on another device than {op.inputs[0].name}")


def _fit_shapes(op: Op, backward: bool, arrays: Sequence[Any], sizes: Dict[str, Any]) -> None:
    """Refuses sizes that do not fit together."""
    if op.gates:
        sizes["G"] = op.gates * sizes["U"]
    for field, one in zip(op.takes[backward], arrays):
        for axis, wanted in enumerate(shape_of(field, sizes) if one is not None else ()):
            torch._check(one.shape[axis] == wanted, lambda: f"exphil: {op.name}: {field.name} has {one.shape[axis]} elements"
                                                            f" along axis {axis}, must have {wanted}")


def _fake(op: Op, backward: bool) -> Any:
    """Shapes of what an operator gives, without computing it."""

    def fake(*args: Any) -> Any:
        arrays, saved, numbers, wanted = _apart(op, backward, args)
        _fit_ranks(op, backward, arrays)
        sizes = sizes_of(op, [None if one is None else one.shape for one in arrays[: len(op.inputs)]], numbers.first)
        _fit_shapes(op, backward, arrays, sizes)
        if saved is not None:
            fits = saved.dim() == 1 and saved.dtype == torch.uint8
            torch._check(fits, lambda: f"exphil: {op.name}: saved must be a vector of uint8")
        made = []
        for i, field in enumerate(op.gives[backward]):
            is_wanted = wanted >> i & 1 if backward else not field.optional or wanted & 1
            made.append(torch.empty_strided(shape_of(field, sizes), strides_of(field, sizes), dtype=arrays[0].dtype,
                                            device=arrays[0].device) if is_wanted else arrays[0].new_empty(0))
        if op.saves and not backward:
            size = kept_bytes(op, sizes, arrays[0].element_size()) if wanted & 2 else 0
            made.append(arrays[0].new_empty(size, dtype=torch.uint8))
        return made[0] if len(made) == 1 else tuple(made)

    return fake


def _keep(ctx: Any, op: Op, args: Sequence[Any], outputs: Tuple[Any, ...]) -> None:
    """Notes in ctx what the gradient needs."""
    arrays, _, ctx.numbers, _ = _apart(op, False, args)
    more = [outputs[i] for i, field in enumerate(op.gives[0]) if field.read_back]
    if op.saves:
        more.append(outputs[-1])
    ctx.there = [one is not None for one in arrays]
    ctx.save_for_backward(*[one for one in arrays if one is not None], *more)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, op: Op, grads: Sequence[Any], needed: Sequence[bool], call: Any) -> List[Optional[Any]]:
    """Gradients of the inputs, in their order. call: the operator that computes them."""
    kept = list(ctx.saved_tensors)
    arrays: List[Any] = [kept.pop(0) if there else None for there in ctx.there]
    saved = kept.pop() if op.saves else None
    douts = list(grads[: len(op.gives[0])])
    if all(one is None for one in douts):
        return [None] * len(op.inputs)
    if douts[0] is None:
        douts[0] = torch.zeros(_out_shape(op, arrays), dtype=arrays[0].dtype, device=arrays[0].device)
    count = sum(field.kind == lib.EXPHIL_PY_DOUTPUT for field in op.takes[1])
    states = [one if one is not None and one.numel() else None for one in douts[1:count]]
    wanted = 0
    for i, field in enumerate(op.gives[1]):
        if ctx.there[field.of_input] and needed[field.of_input]:
            wanted |= 1 << i
    inputs = [*arrays, *kept, douts[0], *states, *[None] * (count - 1 - len(states))]
    with torch.no_grad():
        made = call(op, inputs, saved, ctx.numbers, wanted)
    if torch.is_grad_enabled():  # somebody may ask for gradients of these
        made = _Last.apply(torch.zeros((), requires_grad=True), *made)
    back: List[Optional[Any]] = [None] * len(op.inputs)
    for i, (field, one) in enumerate(zip(op.gives[1], made)):
        if wanted >> i & 1:
            back[field.of_input] = one
    return back


class _Last(torch.autograd.Function):  # type: ignore[misc]
    """What it gives hangs in the graph, and has no gradient."""

    @staticmethod
    def forward(ctx: Any, start: Any, *made: Any) -> Any:
        return tuple(one.detach() for one in made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("exphil: no gradients of gradients")


def _out_shape(op: Op, arrays: Sequence[Any]) -> Tuple[int, ...]:
    sizes = sizes_of(op, [None if one is None else one.shape for one in arrays], 1)
    return shape_of(op.gives[0][0], sizes)


# ---- any torch from 1.10 on ----


def _gradient(ctx: Any, *grads: Any) -> Any:
    back = _backward(ctx, ctx.op, grads, ctx.needs_input_grad[1:], lambda op, *rest: _run(op, True, *rest))
    return (None, *back, *[None] * (len(_numbers(ctx.op, ctx.numbers)) + 1))


class Function(torch.autograd.Function):  # type: ignore[misc]
    """An operation with its gradient; the name is the first argument, then what an operator takes."""

    @staticmethod
    def forward(ctx: Any, name: str, *args: Any) -> Any:
        op = OPS[name]
        arrays, _, numbers, wanted = _apart(op, False, args)
        made = _run(op, False, arrays, None, numbers, wanted)
        _keep(ctx, op, args, made)
        ctx.op = op
        ctx.mark_non_differentiable(*[one for one in made if one.dtype == torch.uint8 or not one.numel() and one is not made[0]])
        return made[0] if len(made) == 1 else made

    backward = staticmethod(_gradient)


# ---- torch 2.9 and later ----


def _call_registered(op: Op, arrays: Sequence[Any], saved: Any, numbers: Numbers, wanted: int) -> Tuple[Any, ...]:
    kept = () if saved is None else (saved,)
    return _as_tuple(_OPERATORS[op.name][1](*arrays, *kept, *_numbers(op, numbers), wanted))


def _register(op: Op) -> None:
    """Shapes of both operators, and the gradient of the first."""

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        _keep(ctx, op, inputs, _as_tuple(output))

    def back(ctx: Any, *grads: Any) -> Any:
        made = _backward(ctx, op, grads, ctx.needs_input_grad, _call_registered)
        return (*made, *[None] * (len(_numbers(op, ctx.numbers)) + 1))

    torch.library.register_fake(f"exphil::{op.name}")(_fake(op, False))
    torch.library.register_fake(f"exphil::{op.name}_backward")(_fake(op, True))
    torch.library.register_fake(f"exphil::{op.name}_plain")(lambda *args: _first(_fake(op, False)(*args, 0)))
    torch.library.register_autograd(f"exphil::{op.name}", back, setup_context=setup)


def _operators() -> Dict[str, Tuple[Any, Any, Any]]:
    """The registered operators by name, none where torch is too old for them."""
    if _VERSION < (2, 9) or lib.exphil_py_torch_register() != ffi.NULL:
        return {}
    found = {}
    for op in OPS.values():
        _register(op)
        forward, backward, plain = (getattr(torch.ops.exphil, op.name + which).default for which in ("", "_backward", "_plain"))
        found[op.name] = (forward, backward, plain)
    return found


_OPERATORS = _operators()
REGISTERED = bool(_OPERATORS)


def is_dense(value: Any) -> bool:
    """Whether a tensor's strides say where its elements lie."""
    return value.layout == torch.strided and not value.is_quantized and not getattr(value, "is_nested", False)


def look_in_place(value: Any, name: str, written: bool) -> None:
    """Refuses a tensor whose memory is not all that it is."""
    if not is_dense(value):
        raise TypeError(f"{name} must be a dense tensor, not a sparse, quantized or nested one")
    if value.device.type not in ("cpu", "cuda"):
        raise TypeError(f"{name} is on {value.device}; cpu and cuda are possible")
    if value.is_neg():
        raise ValueError(f"{name} has the negative bit: its memory holds other signs than it has; resolve_neg() gives one without")
    if value.numel() and not value.data_ptr():
        raise ValueError(f"{name} has elements but no memory")
    if written and value.requires_grad and torch.is_grad_enabled():
        raise RuntimeError(f"{name} requires grad and is written in place: call adamw under torch.no_grad()")


def _look(op: Op, arrays: Sequence[Any]) -> None:
    """Refuses what torch would refuse by names of its own, or not at all."""
    for field, one in zip(op.inputs, arrays):
        if one is None:
            if not field.optional:
                raise ValueError(f"{op.title}: {field.name} is missing")
            continue
        if not isinstance(one, torch.Tensor):
            raise TypeError(f"{op.title}: {field.name} must be a torch.Tensor, not {type(one).__name__}")
        if not is_dense(one):
            raise TypeError(f"{op.title}: {field.name} must be a dense tensor, not a sparse, quantized or nested one")
        if _forward_ad._current_level >= 0 and _forward_ad.unpack_dual(one).tangent is not None:
            raise NotImplementedError(f"{op.title}: {field.name} has a tangent, but there are no forward-mode gradients")


def _told(wrong: Exception, tensors: Sequence[Any]) -> Exception:
    """What a refusal is to the caller, which way it may have come."""
    if isinstance(wrong, RuntimeError):
        if not str(wrong).startswith("exphil: ") or not lib.exphil_py_torch_status():
            return wrong
        wrong = make_error(lib.exphil_py_torch_status(), str(wrong)[len("exphil: ") :])
    if isinstance(wrong, InvalidError) and any(one.dtype in _HALVES for one in tensors):
        wrong = make_error(wrong.status, f"{wrong}: give tensor.float()")
    return wrong


def _casts(tensor: Any) -> bool:
    """Is this under torch.autocast?"""
    if _VERSION >= (2, 4):
        return bool(torch.is_autocast_enabled(tensor.device.type))
    return bool(torch.is_autocast_cpu_enabled() if tensor.device.type == "cpu" else torch.is_autocast_enabled())


def _compute(call: Call, keep: bool) -> Tuple[Any, ...]:
    op = call.op
    if REGISTERED and not keep and not call.states:
        return (_OPERATORS[op.name][2](*call.arrays, *_numbers(op, call.numbers)),)
    args = (*call.arrays, *_numbers(op, call.numbers), int(call.states) | 2 * int(keep))
    if REGISTERED:
        return _as_tuple(_OPERATORS[op.name][0](*args))
    if keep:
        return _as_tuple(Function.apply(op.name, *args))
    return _run(op, False, call.arrays, None, call.numbers, int(call.states))


def compute(call: Call) -> List[Any]:
    """What forward gives, with a gradient where one is asked for. Under torch.autocast halves are computed as float32."""
    op = call.op
    _look(op, call.arrays)
    tensors = [one for one in call.arrays if one is not None]
    if any([one.dtype in _HALVES for one in tensors]) and _casts(tensors[0]):
        return compute(call._replace(arrays=tuple([
            one.float() if one is not None and one.dtype in _HALVES else one for one in call.arrays])))
    keep = torch.is_grad_enabled() and any([one.requires_grad for one in tensors])
    try:
        made = _compute(call, keep)
    except (RuntimeError, InvalidError) as wrong:
        raise _told(wrong, tensors) from None
    back = list(made[: len(op.gives[0]) if call.states else 1])
    if op.name == "attention" and call.states:
        back[1] = back[1].detach()
    return back
