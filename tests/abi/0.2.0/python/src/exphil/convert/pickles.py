"""Pickles of checkpoints, read by an interpreter of its own. A pickle is a program; here its instructions can only make numbers,
texts, lists, tuples, dictionaries and NumPy's arrays. Names of Python are never looked up: those of NumPy's three constructors are
known, classes of slippi-ai and libmelee become inert Objects, all others are refused by name. Opcodes: pickletools of CPython;
what arrays are made of: ndarray.__reduce__."""
from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from . import arrays
from .reader import Bytes, Reader
from .refusal import MOST_RANK, Damaged, Refused, shown

_CORES = ("numpy.core", "numpy._core")
# Modules whose classes a checkpoint has beside its weights: settings, characters.
_INERT = ("slippi_ai.", "melee.")
_TEXT_MOST = 1 << 16
_ARRAY_VALUES = 16  # an array without its numbers takes as much as so many values


class Name(NamedTuple):
    """A name of Python that the pickle mentions."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Object:
    """What would be an object of a class; it has what the class would have been called with, and nothing of the class."""

    __slots__ = ("name", "values")

    def __init__(self, name: Name, values: Any) -> None:
        self.name = name
        self.values = values

    def __repr__(self) -> str:
        return f"<{self.name}>"


class _Kind:
    """A NumPy type: letters, and once its state is known whether it is big-endian."""

    __slots__ = ("letters", "big")

    def __init__(self, letters: str) -> None:
        self.letters = letters
        self.big = False


class _Array:
    """An ndarray before its state: the pickle then gives version, shape, type, order and bytes."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        self.made: Any = None


_MARK = object()


def _is_numpy(name: Name, module: str, what: str) -> bool:
    return name.name == what and any(name.module == f"{core}.{module}" for core in _CORES)


class _Machine:
    """One pickle: a stack, a memo, and instructions that are counted and checked."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.stack: List[Any] = []
        self.memo: List[Any] = []
        self.names: Dict[Tuple[str, str], Name] = {}
        read, push = reader.number, self.stack.append
        self.steps: Dict[int, Callable[[], Any]] = {
            0x80: self.protocol,
            0x95: lambda: self.frame(read("<Q")),
            ord("N"): lambda: push(None),
            0x88: lambda: push(True),
            0x89: lambda: push(False),
            ord("J"): lambda: push(read("<i")),
            ord("K"): lambda: push(reader.byte()),
            ord("M"): lambda: push(read("<H")),
            0x8A: lambda: push(self.whole(reader.byte())),
            ord("G"): lambda: push(reader.real(">d")),
            0x8C: lambda: push(self.text(reader.byte())),
            ord("X"): lambda: push(self.text(read("<I"))),
            0x8D: lambda: push(self.text(read("<Q"))),
            ord("C"): lambda: push(reader.binary(reader.byte())),
            ord("B"): lambda: push(reader.binary(read("<I"))),
            0x8E: lambda: push(reader.binary(read("<Q"))),
            0x96: lambda: push(reader.binary(read("<Q"))),
            ord("}"): lambda: push({}),
            ord("]"): lambda: push([]),
            ord(")"): lambda: push(()),
            ord("("): lambda: push(_MARK),
            ord("0"): self.pop,
            ord("1"): self.marked,
            ord("2"): lambda: push(self.top()),
            ord("t"): lambda: push(tuple(self.marked())),
            0x85: lambda: self.tuple(1),
            0x86: lambda: self.tuple(2),
            0x87: lambda: self.tuple(3),
            ord("l"): lambda: push(self.marked()),
            ord("d"): lambda: push(self.pairs({}, self.marked())),
            ord("a"): lambda: self.extend([self.pop()]),
            ord("e"): lambda: self.extend(self.marked()),
            ord("s"): lambda: self.set([self.pop(), self.pop()][::-1]),
            ord("u"): lambda: self.set(self.marked()),
            0x94: lambda: self.remember(len(self.memo)),
            ord("q"): lambda: self.remember(reader.byte()),
            ord("r"): lambda: self.remember(read("<I")),
            ord("h"): lambda: self.recall(reader.byte()),
            ord("j"): lambda: self.recall(read("<I")),
            ord("c"): lambda: push(self.named(self.line(), self.line())),
            0x93: self.stack_global,
            ord("R"): self.reduce,
            0x81: self.reduce,
            ord("b"): self.build,
        }

    def run(self) -> Any:
        """The value that is left when the pickle stops."""
        while True:
            code = self.reader.byte()
            if code == ord("."):
                break
            step = self.steps.get(code)
            if step is None:
                self.reader.at -= 1
                raise self.reader.fail(f"instruction {code:#04x} is none that a checkpoint needs")
            self.reader.count()
            step()
        if len(self.stack) != 1 or self.stack[0] is _MARK:
            raise self.reader.fail(f"it stops with {len(self.stack)} values")
        return self.stack[0]

    # ---- the stack

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise self.reader.fail("a value is taken where there is none")
        return self.stack.pop()

    def top(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise self.reader.fail("a value is used where there is none")
        return self.stack[-1]

    def marked(self) -> List[Any]:
        """What lies above the last mark."""
        at = len(self.stack) - 1
        while at >= 0 and self.stack[at] is not _MARK:
            at -= 1
        if at < 0:
            raise self.reader.fail("a mark is used where there is none")
        self.reader.count(len(self.stack) - at)
        above = self.stack[at + 1 :]
        del self.stack[at:]
        return above

    def tuple(self, count: int) -> None:
        values = [self.pop() for _ in range(count)]
        self.stack.append(tuple(values[::-1]))

    def extend(self, values: List[Any]) -> None:
        to = self.top()
        if not isinstance(to, list):
            raise self.reader.fail("something is appended to what is no list")
        to.extend(values)

    def set(self, values: List[Any]) -> None:
        to = self.top()
        if not isinstance(to, dict):
            raise self.reader.fail("a pair is put into what is no dictionary")
        self.pairs(to, values)

    def pairs(self, to: Dict[Any, Any], values: List[Any]) -> Dict[Any, Any]:
        if len(values) % 2:
            raise self.reader.fail("a key without a value")
        for key, value in zip(values[::2], values[1::2]):
            fits = key is None or isinstance(key, (str, bool, Object)) or (type(key) is int and abs(key) < 1 << 60)
            if not fits:
                raise self.reader.fail("a key of a dictionary is no text or number")
            to[key] = value
        return to

    # ---- the memo, whose numbers Python's pickler gives in ascending order: a list is a fifth of a dictionary

    def remember(self, at: int) -> None:
        if at > len(self.memo):
            raise self.reader.fail(f"the memo has {len(self.memo)} values, and the next is said to be {at}")
        self.memo[at : at + 1] = [self.top()]

    def recall(self, at: int) -> None:
        if at >= len(self.memo):
            raise self.reader.fail(f"value {at} of the memo is used before it is there")
        self.stack.append(self.memo[at])

    # ---- plain values

    def protocol(self) -> None:
        version = self.reader.byte()
        if not 3 <= version <= 5:
            raise Refused(f"{self.reader.what}: a pickle of protocol {version}; 3 to 5 are read")

    def frame(self, size: int) -> None:
        if size > self.reader.left():
            raise self.reader.fail(f"a frame of {size} bytes in {self.reader.left()}")

    def whole(self, size: int) -> int:
        return int.from_bytes(self.reader.take(size), "little", signed=True)

    def text(self, size: int) -> str:
        if size > _TEXT_MOST:
            raise self.reader.fail(f"a text of {size} bytes")
        try:
            return str(self.reader.take(size), "utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise self.reader.fail("a text is none") from None

    def line(self) -> str:
        """A text up to the line's end, of at most 255 characters."""
        reader = self.reader
        found = bytes(reader.data[reader.at : min(reader.end, reader.at + 256)]).find(b"\n")
        if found < 0:
            raise reader.fail("a name does not end")
        try:
            return bytes(reader.take(found + 1))[:-1].decode("utf-8")
        except UnicodeDecodeError:
            raise reader.fail("a name is no text") from None

    # ---- names, and what would be calls

    def named(self, module: str, name: str) -> Name:
        made = Name(module[:256], name[:256])
        known = _is_numpy(made, "multiarray", "_reconstruct") or _is_numpy(made, "multiarray", "scalar")
        known = known or _is_numpy(made, "numeric", "_frombuffer") or made in (("numpy", "ndarray"), ("numpy", "dtype"))
        if not known and not made.module.startswith(_INERT):
            raise Refused(f"{self.reader.what}: byte {self.reader.at}: it wants {made}; a pickle may name NumPy's arrays and"
                          " classes of slippi-ai and libmelee, and nothing is called")  # fmt: skip
        return self.names.setdefault(made, made)

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise self.reader.fail("a name is no text")
        self.stack.append(self.named(module, name))

    def reduce(self) -> None:
        """A call, of which only the result's form is made."""
        values, name = self.pop(), self.pop()
        if not isinstance(name, Name) or not isinstance(values, tuple):
            raise self.reader.fail("a call of what is no name")
        what = f"{self.reader.what}: byte {self.reader.at}"
        if name == ("numpy", "dtype"):
            self.stack.append(_kind_of(values, what))
        elif name.name == "_reconstruct" and not name.module.startswith(_INERT):
            self.stack.append(_Array())
        elif name.name == "scalar" and not name.module.startswith(_INERT):
            self.reader.count(_ARRAY_VALUES)
            self.stack.append(_scalar(values, what))
        elif name.name == "_frombuffer" and not name.module.startswith(_INERT):
            self.reader.count(_ARRAY_VALUES)
            self.stack.append(_from_buffer(values, what))
        elif name == ("numpy", "ndarray"):
            raise self.reader.fail("an array is made by a call of its class")
        else:
            self.stack.append(Object(name, values))

    def build(self) -> None:
        """State for what was made last."""
        state, to = self.pop(), self.top()
        what = f"{self.reader.what}: byte {self.reader.at}"
        if isinstance(to, _Kind):
            if not isinstance(state, tuple) or len(state) < 2 or not _is_one_of(state[1], "<>|="):
                raise Damaged(f"{what}: the state of a type is none")
            to.big = state[1] == ">"
        elif isinstance(to, _Array):
            if to.made is not None:
                raise Damaged(f"{what}: an array has two states")
            self.reader.count(_ARRAY_VALUES)
            to.made = _array_of(state, what)
        elif isinstance(to, Object):
            to.values = (to.values, state)
        else:
            raise Damaged(f"{what}: a state for what has none")


def _is_one_of(value: Any, letters: str) -> bool:
    """Is a value of the pickle one of these letters? Whatever else it is must not be compared: arrays are by their elements."""
    return isinstance(value, str) and len(value) == 1 and value in letters


def _kind_of(values: Tuple[Any, ...], what: str) -> _Kind:
    """numpy.dtype('f4', False, True)"""
    if not values or not isinstance(values[0], str) or not 0 < len(values[0]) <= 4:
        raise Damaged(f"{what}: a type is none")
    letters = values[0].lstrip("<>|=")
    if letters[:1] in ("O", "V", "S", "U", "M", "m", ""):
        raise Refused(f"{what}: an array of type {shown(values[0])}: objects and texts are not read")
    if letters == "bf16":  # widened in a copy, for each array over the same bytes anew; NumPy has no such type
        raise Refused(f"{what}: an array of type {shown(values[0])}: NumPy has none")
    made = _Kind(letters)
    made.big = values[0][0] == ">"
    return made


def _array_of(state: Any, what: str) -> Any:
    """ndarray.__setstate__((version, shape, type, is Fortran's order, bytes))"""
    if not isinstance(state, tuple) or len(state) != 5:
        raise Damaged(f"{what}: the state of an array is none")
    _, shape, kind, columns, raw = state
    if not isinstance(shape, tuple) or not isinstance(kind, _Kind) or not isinstance(raw, (bytes, memoryview)):
        raise Damaged(f"{what}: the state of an array is none")
    return _tensor(raw, kind, shape, what, columns is True)


def _from_buffer(values: Tuple[Any, ...], what: str) -> Any:
    """numpy.core.numeric._frombuffer(buffer, type, shape, order)"""
    if len(values) != 4 or not isinstance(values[0], (bytes, memoryview)) or not isinstance(values[1], _Kind):
        raise Damaged(f"{what}: the buffer of an array is none")
    if not isinstance(values[2], tuple) or not _is_one_of(values[3], "CF"):
        raise Damaged(f"{what}: the shape of an array is none")
    return _tensor(values[0], values[1], values[2], what, values[3] == "F")


def _tensor(raw: Bytes, kind: _Kind, shape: Tuple[Any, ...], what: str, columns: bool) -> Any:
    if len(raw) == 0 and len(shape) <= MOST_RANK and any(type(side) is int and side == 0 for side in shape):
        return Object(Name("numpy", "ndarray"), shape)  # without elements: nothing of a network
    return arrays.tensor(raw, kind.letters, shape, what, big=kind.big, columns_first=columns)


def _scalar(values: Tuple[Any, ...], what: str) -> Any:
    """numpy.core.multiarray.scalar(type, bytes)"""
    if len(values) != 2 or not isinstance(values[0], _Kind) or not isinstance(values[1], (bytes, memoryview)):
        raise Damaged(f"{what}: a scalar is none")
    return _tensor(values[1], values[0], (), what, False).item()


def settled(value: Any) -> Any:
    """A value of what read_pickle gave: an array that the pickle made in two steps stands for its second."""
    return value.made if isinstance(value, _Array) else value


def read_pickle(data: Bytes, what: str) -> Any:
    """What a pickle stands for, of protocol 3 to 5: plain values, other objects as Object, arrays as settled() gives them. Values
    may be shared, and contain themselves: whoever goes through them must count."""
    reader = Reader(data, what)
    try:
        made = _Machine(reader).run()
    except struct.error as reason:
        raise reader.fail(str(reason)) from None
    if reader.left():
        raise reader.fail(f"{reader.left()} bytes behind the pickle")
    return made
