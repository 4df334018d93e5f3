"""One call of an operation on arrays that are neither torch's nor JAX's, and a call that is made ready once."""
from __future__ import annotations

from operator import index
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ._native import ffi, lib
from .errors import check, make_error, new_error, text
from .ops_arrays import kind_of
from .ops_table import DOUTPUT, Field, Op

_MOST = 2**44


class Numbers(NamedTuple):
    """What an operation is told beside arrays; which they are op_call.h says."""

    first: int = 0
    second: int = 0
    real: float = 0.0


class OpInfo(NamedTuple):
    """What a call needs, and how it is done."""

    workspace_bytes: int
    saved_bytes: int
    copies: int
    kernel: str


class Call(NamedTuple):
    """An operation with its arguments: one array or None for each of its inputs, and whether states are wanted."""

    op: Op
    arrays: Tuple[Any, ...]
    numbers: Numbers
    states: bool
    # Of what comes out, the caller gets this: a norm of rows of any shape, say.
    finish: Any = None


def _family(value: Any) -> str:
    """Whose gradients an array has: those of torch and of JAX are not seen by others."""
    root = type(value).__module__.split(".")[0]
    return "jax" if root == "jaxlib" else root if root in ("torch", "jax") else ""


def _kind_name(value: Any) -> str:
    return f"of {type(value).__module__.split('.')[0]}'s type {type(value).__name__}"


class Ready:
    """A native call: struct, arrays, workspace."""

    def __init__(self, op: Op, backward: bool, arrays: Sequence[Any], numbers: Numbers, kind: Any, fixed: bool = False) -> None:
        self.op, self.backward, self.kind = op, int(backward), kind
        self.native = ffi.new("exphil_py_call *")
        self.args = ffi.addressof(self.native, "args")
        self.error = new_error()
        self.ops = lib.exphil_py_ops(kind.device, self.error)
        if self.ops == ffi.NULL:
            check(self.error.status, self.error)
        self.kept: List[Any] = []
        self.begin(arrays, ffi.new("exphil_py_numbers *", numbers), fixed)

    def begin(self, arrays: Sequence[Any], numbers: Any, fixed: bool) -> None:
        """Inputs into the struct; what no strides can say is copied, or with fixed refused."""
        fields, self.first = self.op.takes[self.backward], arrays[0]
        room = ffi.new("exphil_py_array[]", len(fields))
        for i, (field, value) in enumerate(zip(fields, arrays)):
            room[i].rank = -1
            if value is not None:
                self.kept.append(self.take(field, value, room[i]))
                if fixed and not self.kind.lends(value, self.kept[-1]):
                    raise ValueError(f"{self.op.name}: {field.name} would have to be copied first, and cannot be bound")
            else:
                self.kept.append(None)
        while True:
            status = lib.exphil_py_begin(self.native, self.op.native, self.backward, room, numbers)
            if status == 0:
                break
            at = self.native.failed
            if status < 0 or fixed:
                raise self.refusal()
            try:
                self.kept[at] = self.kind.copy(self.kept[at])
            except (MemoryError, RuntimeError):  # torch says it by the second
                said = f"{self.op.title}: {fields[at].name} must be copied, and there is no memory for that"
                raise make_error(lib.EXPHIL_E_MEMORY, said) from None
            self.kind.take(self.kept[at], room[at])
        self.type = int(room[0].type)
        self.like = arrays[0]

    def take(self, field: Field, value: Any, to: Any) -> Any:
        """One array, of the kind of the first one."""
        if _family(value) != _family(self.first):
            kinds = f"{_kind_name(value)}, {self.op.inputs[0].name} is {_kind_name(self.first)}"
            raise TypeError(f"{self.op.title}: {field.name} is {kinds}: all arrays must be of one kind")
        other = kind_of(value, field.name)
        if other.device != self.kind.device:
            raise ValueError(f"{self.op.title}: {field.name} is on another device than {self.op.inputs[0].name}")
        return other.take(value, to)

    def refusal(self) -> Exception:
        """Why the struct could not be filled."""
        return make_error(lib.EXPHIL_E_INVALID, text(self.native.message))

    def put(self, field: Field) -> Any:
        """Room for one output."""
        shape = ffi.new("exphil_py_array *")
        lib.exphil_py_shape(self.native, field.native, shape)
        sizes = [shape.sizes[i] for i in range(shape.rank)]
        made, address = self.kind.new(sizes, [shape.strides[i] for i in range(shape.rank)], self.type, self.like)
        lib.exphil_py_put(self.native, field.native, ffi.cast("void *", address))
        self.kept.append(made)
        return made

    def put_own(self, field: Field, value: Any) -> None:
        """One output of the caller's own."""
        shape = ffi.new("exphil_py_array *")
        kept = kind_of(value, field.name).take(value, shape)
        if kept is not value:
            raise ValueError(f"{self.op.title}: {field.name} does not lie in memory as it must to be written in place")
        if not getattr(getattr(value, "flags", None), "writeable", True):
            raise ValueError(f"{self.op.title}: {field.name} is read-only")
        if lib.exphil_py_put_array(self.native, field.native, shape):
            raise self.refusal()
        self.kept.append(value)

    def ask(self) -> Any:
        """What the call needs."""
        info = ffi.new("exphil_op_info *")
        info.struct_size = ffi.sizeof("exphil_op_info")
        check(lib.exphil_ops_query(self.ops, self.args, info, self.error), self.error)
        return info

    def finish(self, info: Any) -> None:
        """The workspace, and the stream."""
        self.bytes = int(info.workspace_bytes)
        room, address = self.kind.room(self.bytes, self.like)
        self.workspace = ffi.cast("void *", address)
        self.kept.append(room)
        self.stream = ffi.cast("void *", self.kind.stream)

    def run(self) -> None:
        """Computes."""
        check(lib.exphil_ops_run(self.ops, self.args, self.workspace, self.bytes, self.stream, self.error), self.error)

    def saved(self, bytes: int, room: Any = None) -> Any:
        """Room for what backward needs, or the room that forward has written."""
        made = self.kind.room(bytes, self.like) if room is None else room
        lib.exphil_py_put_saved(self.native, ffi.cast("void *", made[1]), bytes)
        self.kept.append(made)
        return made


def forward(call: Call, keep: bool = False) -> Tuple[List[Any], Any, Any]:
    """Outputs, states behind them if they are wanted; what backward needs; the kind of the arrays."""
    kind = kind_of(call.arrays[0], call.op.inputs[0].name)
    ready = Ready(call.op, False, call.arrays, call.numbers, kind)
    outputs = [ready.put(field) for field in call.op.gives[0] if call.states or not field.optional]
    info = ready.ask()
    saved = (ready.saved(int(info.saved_bytes)), int(info.saved_bytes)) if keep and call.op.saves else None
    ready.finish(info)
    ready.run()
    return outputs, saved, kind


def look(call: Call) -> OpInfo:
    """What forward needs."""
    ready = Ready(call.op, False, call.arrays, call.numbers, kind_of(call.arrays[0], call.op.inputs[0].name))
    for field in call.op.gives[0]:
        if call.states or not field.optional:
            ready.put(field)
    info = ready.ask()
    return OpInfo(int(info.workspace_bytes), int(info.saved_bytes), int(info.copies), text(info.kernel))


def compute(call: Call) -> List[Any]:
    """What forward gives, as the caller's kind of array."""
    outputs, _, kind = forward(call)
    return [kind.given(one, call.arrays[0]) for one in outputs]


def backward(call: Call, douts: Sequence[Any]) -> List[Optional[Any]]:
    """Gradients of the inputs; None for those that are missing or have none. Forward is computed again where it is needed."""
    op = call.op
    arrays = [*call.arrays]
    kind = kind_of(call.arrays[0], op.inputs[0].name)
    saved: Any = None
    names = [field.name for field in op.takes[1] if field.kind == DOUTPUT]
    if not 1 <= len(douts) <= len(names):
        raise ValueError(f"dout has {len(douts)} arrays, must have 1..{len(names)}: {', '.join(names)}")
    if op.saves:
        outputs, saved, _ = forward(call._replace(states=False), True)
        arrays += [outputs[0]] * any(field.read_back for field in op.takes[1])
    arrays += [*douts, *[None] * (len(op.takes[1]) - len(arrays) - len(douts))]
    ready = Ready(op, True, arrays, call.numbers, kind)
    if saved is not None:
        ready.saved(saved[1], saved[0])
    gradients: List[Optional[Any]] = [None] * len(op.inputs)
    for field in op.gives[1]:
        if call.arrays[field.of_input] is not None:
            gradients[field.of_input] = ready.put(field)
    ready.finish(ready.ask())
    ready.run()
    return [None if one is None else kind.given(one, call.arrays[0]) for one in gradients]


class Bound:
    """An operation on arrays that stay: each call computes it again from what is in them, into the same outputs. On the CPU.

    outputs are the arrays that it writes. A call takes nothing, gives nothing and allocates nothing. One thread at a time.
    """

    __slots__ = ("outputs", "_ready", "_arguments")

    def __init__(self, call: Call, out: Optional[Sequence[Any]]) -> None:
        kind = kind_of(call.arrays[0], call.op.inputs[0].name)
        ready = Ready(call.op, False, call.arrays, call.numbers, kind, fixed=True)
        fields = [field for field in call.op.gives[0] if call.states or not field.optional]
        if out is not None and len(out) != len(fields):
            raise ValueError(f"out has {len(out)} arrays, must have {len(fields)}: {', '.join(one.name for one in fields)}")
        if out is None:
            self.outputs = tuple(ready.put(field) for field in fields)
        else:
            for field, value in zip(fields, out):
                ready.put_own(field, value)
            self.outputs = tuple(out)
        ready.finish(ready.ask())
        self._ready = ready
        self._arguments = (ready.ops, ready.args, ready.workspace, ready.bytes, ready.stream, ready.error)
        self()

    def __repr__(self) -> str:
        return f"<exphil.ops.Bound {self._ready.op.title}>"

    def __call__(self) -> None:
        if lib.exphil_ops_run(*self._arguments) < 0:
            check(self._ready.error.status, self._ready.error)


def option(words: Dict[str, int], value: Any, name: str) -> int:
    """Number of a word among those that are allowed."""
    if value not in words:
        raise ValueError(f"{name} is {value!r}, must be one of {', '.join(map(repr, words))}")
    return words[value]


def count(value: Any, name: str) -> int:
    """A dimension that is given as a number. Without calls that torch.compile cannot follow."""
    made = index(value)
    if not 1 <= made <= _MOST:
        raise ValueError(f"{name} is {made}, must be 1..2^44")
    return made
