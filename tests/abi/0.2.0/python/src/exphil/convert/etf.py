"""Erlang's external term format, version 131: data only. Functions, processes, ports and references are refused by name; nothing
is ever called. The format: erlang.org/doc/apps/erts/erl_ext_dist.html."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from .reader import Bytes, Reader, inflate
from .refusal import MOST_DEPTH, Refused

VERSION = 131
_COMPRESSED = 80
_BIG_MOST = 64  # bytes of an integer
_ATOM_MOST = 1024  # bytes

# What a file of data has no use for.
_REFUSED = {
    70 + 12: "a reference to an atom cache", 88: "a process", 103: "a process", 89: "a port", 102: "a port", 120: "a port",
    90: "a reference", 101: "a reference", 114: "a reference", 112: "a function", 113: "a function", 117: "a function",
    77: "a bit string", 121: "a term of one node", 99: "a float as text",
}  # fmt: skip


class Atom(str):
    """An atom's name; true, false and nil are True, False and None."""

    __slots__ = ()


_WORDS: Dict[str, Any] = {"true": True, "false": False, "nil": None}


class _Terms:
    """One reading of terms."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.atoms: Dict[bytes, Any] = {}
        self.depth = 0
        read = reader.number
        self.parts: Dict[int, Callable[[], Any]] = {
            70: lambda: reader.real(">d"),
            97: reader.byte,
            98: lambda: read(">i"),
            100: lambda: self.atom(read(">H"), "latin-1"),
            115: lambda: self.atom(reader.byte(), "latin-1"),
            118: lambda: self.atom(read(">H"), "utf-8"),
            119: lambda: self.atom(reader.byte(), "utf-8"),
            104: lambda: self.tuple(reader.byte()),
            105: lambda: self.tuple(read(">I")),
            106: lambda: (),
            107: lambda: self.small_numbers(read(">H")),
            108: lambda: self.list(read(">I")),
            109: lambda: reader.binary(read(">I")),
            110: lambda: self.big(reader.byte()),
            111: lambda: self.big(read(">I")),
            116: lambda: self.map(read(">I")),
        }

    def term(self) -> Any:
        """The next term."""
        reader = self.reader
        reader.count()
        tag = reader.byte()
        part = self.parts.get(tag)
        if part is None:
            if tag in _REFUSED:
                raise Refused(f"{reader.what}: byte {reader.at - 1}: {_REFUSED[tag]} in a term; only data are read")
            raise reader.fail(f"tag {tag} is none of a term")
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise reader.fail(f"terms are nested deeper than {MOST_DEPTH}")
        made = part()
        self.depth -= 1
        return made

    def many(self, count: int) -> List[Any]:
        """As many terms as are said to follow, each of at least one byte."""
        if count > self.reader.left():
            raise self.reader.fail(f"{count} terms are said to follow in {self.reader.left()} bytes")
        return [self.term() for _ in range(count)]

    def atom(self, size: int, encoding: str) -> Any:
        """Each name is kept once."""
        if size > _ATOM_MOST:
            raise self.reader.fail(f"an atom of {size} bytes")
        raw = bytes(self.reader.take(size))
        if raw not in self.atoms:
            try:
                name = raw.decode(encoding)
            except UnicodeDecodeError:
                raise self.reader.fail("an atom is not text") from None
            self.atoms[raw] = _WORDS.get(name, Atom(name))
        return self.atoms[raw]

    def tuple(self, count: int) -> Tuple[Any, ...]:
        """A tuple; of none, the empty one that all share."""
        return tuple(self.many(count))

    def small_numbers(self, count: int) -> List[int]:
        """A list of numbers 0 to 255, written as a string."""
        self.reader.count(count)
        return list(self.reader.take(count))

    def list(self, count: int) -> List[Any]:
        """A proper list."""
        made = self.many(count)
        if self.term() != ():
            raise self.reader.fail("a list does not end with one")
        return made

    def big(self, size: int) -> int:
        """An integer in bytes, the lowest first, behind its sign."""
        if size > _BIG_MOST:
            raise self.reader.fail(f"an integer of {size} bytes")
        sign = self.reader.byte()
        if sign > 1:
            raise self.reader.fail(f"the sign of an integer is {sign}")
        value = int.from_bytes(self.reader.take(size), "little")
        return -value if sign else value

    def map(self, count: int) -> Dict[Any, Any]:
        """A map; keys are atoms, texts or numbers, each once."""
        if count * 2 > self.reader.left():
            raise self.reader.fail(f"a map of {count} pairs is said to follow in {self.reader.left()} bytes")
        made: Dict[Any, Any] = {}
        for _ in range(count):
            key = self.term()
            if key is not None and not isinstance(key, (str, bytes, bool)) and not (type(key) is int and abs(key) < 1 << 60):
                raise self.reader.fail("a key of a map is no atom, text or number")
            if key in made:
                raise self.reader.fail("a key of a map comes twice")
            made[key] = self.term()
        return made


def read_term(data: Bytes, what: str) -> Any:
    """The one term of these bytes: atoms are Atom (a str), binaries bytes or memoryview, an empty list is ()."""
    reader = Reader(data, what)
    if reader.byte() != VERSION:
        raise reader.fail("not an Erlang term: its first byte is not 131")
    if reader.left() and reader.data[reader.at] == _COMPRESSED:
        reader.take(1)
        size = reader.number(">I")
        reader = Reader(inflate(reader.take(reader.left()), size, 15, what), what + ", decompressed")
    made = _Terms(reader).term()
    if reader.left():
        raise reader.fail(f"{reader.left()} bytes behind the term")
    return made
