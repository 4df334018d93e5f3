"""The table of operations that the compiled part has, and what follows from it: shapes, strides, sizes of what is kept."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ._native import ffi, lib
from .errors import text

INPUT, OUTPUT = lib.EXPHIL_PY_INPUT, lib.EXPHIL_PY_OUTPUT
DOUTPUT, DINPUT = lib.EXPHIL_PY_DOUTPUT, lib.EXPHIL_PY_DINPUT
# Numbers of a row that forward keeps for backward, of a head or a channel.
_KEPT = {"attention": "H", "lstm": "UUUUU", "gru": "UUUU", "norm": "11"}
_SLOTS = "bfmc"


class Field(NamedTuple):
    """An array of an operation. axes: the letter of each dimension; slots: where it lies in the struct, b, f, m or c."""

    name: str
    axes: str
    slots: str
    kind: int
    optional: bool
    of_input: int
    bytes: bool
    read_back: bool
    native: Any


class Op(NamedTuple):
    """An operation: its fields, and those of them that forward (0) and backward (1) take and give.
    title: the name of its function."""

    name: str
    title: str
    number: int
    native: Any
    saves: bool
    gates: int
    takes: Tuple[Tuple[Field, ...], Tuple[Field, ...]]
    gives: Tuple[Tuple[Field, ...], Tuple[Field, ...]]

    @property
    def inputs(self) -> Tuple[Field, ...]:
        """What forward takes."""
        return self.takes[0]


# No dimension, so that its size is given: what a number stands for is one element.
Sizes = Dict[str, Any]


def _fields(native: Any) -> List[Field]:
    made = []
    for i in range(native.fields):
        one = native.field[i]
        axes = text(one.axes)
        made.append(Field(text(one.name), axes[::2], axes[1::2], one.kind, bool(one.optional), one.of_input,
                          bool(one.bytes), bool(one.read_back), ffi.addressof(native.field[i])))
    return made


def _read() -> Dict[str, Op]:
    found: Dict[str, Op] = {}
    table = lib.exphil_py_op_table()
    while table[len(found)].name != ffi.NULL:
        native = ffi.addressof(table[len(found)])
        fields = _fields(native)
        takes, gives = (tuple(tuple(field for field in fields if choose(field.native, backward)) for backward in (0, 1))
                        for choose in (lib.exphil_py_takes, lib.exphil_py_gives))
        name = text(native.name)
        found[name] = Op(
            name, text(native.title), len(found), native, bool(native.saves), native.gates, takes, gives)  # type: ignore[arg-type]
    return found


OPS = _read()


def sizes_of(op: Op, shapes: Sequence[Optional[Sequence[Any]]], first: int) -> Sizes:
    """Dimensions of an operation by their letters; shapes are those of its inputs. first: a window."""
    sizes: Sizes = {"1": 1}
    if op.name == "attention":
        sizes["W"] = first
    for field, shape in zip(op.inputs, shapes):
        if shape is not None:
            for letter, size in zip(field.axes, shape):
                sizes.setdefault(letter, size)
    if op.name == "attention":
        sizes["R"] = 2 * sizes["W"] * sizes["H"] * sizes["E"] + 2
    if op.name == "conv":
        sizes["J"] = sizes["K"] - 1
    return sizes


def shape_of(field: Field, sizes: Sizes) -> Tuple[Any, ...]:
    """Shape of a field."""
    return tuple(sizes[letter] for letter in field.axes)


def strides_of(field: Field, sizes: Sizes) -> Tuple[Any, ...]:
    """Strides that the kernel writes without a copy: rows of columns, frames, batches."""
    stride: Any = 1
    made: Dict[int, Any] = {}
    for slot in reversed(_SLOTS):
        for i, (letter, here) in enumerate(zip(field.axes, field.slots)):
            if here == slot:
                made[i] = stride
                stride = stride * sizes[letter]
    return tuple(made[i] for i in range(len(field.axes)))


def in_rows(field: Field) -> Tuple[int, ...]:
    """Axes in the order in which they lie in rows: batch, frame, head, column."""
    return tuple(i for slot in _SLOTS for i, here in enumerate(field.slots) if here == slot)


def kept_bytes(op: Op, sizes: Sizes, element: int) -> Any:
    """Bytes that forward keeps for backward."""
    if not op.saves:
        return 0
    letters = _KEPT[op.name]
    return sizes["B"] * sizes["T"] * (sizes[letters[0]] * len(letters)) * element
