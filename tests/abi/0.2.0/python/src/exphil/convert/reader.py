"""Bytes that are read from front to back, no further than there are."""
from __future__ import annotations

import struct
import zlib
from typing import Union

from .refusal import MOST_RATIO, MOST_VALUES, Damaged

Bytes = Union[bytes, memoryview]
_COPIED_MOST = 1024


class Reader:
    """A place in a file. Every take is checked against what is left; values are counted, as they cost memory."""

    __slots__ = ("data", "at", "end", "what", "values")

    def __init__(self, data: Bytes, what: str) -> None:
        self.data = memoryview(data)
        self.at = 0
        self.end = len(self.data)
        self.what = what
        self.values = 0

    def fail(self, why: str) -> Damaged:
        """An error to raise; the byte is that of the place."""
        return Damaged(f"{self.what}: byte {self.at}: {why}")

    def left(self) -> int:
        """Bytes from here to the end."""
        return self.end - self.at

    def take(self, count: int) -> memoryview:
        """The next bytes, not copied."""
        if count < 0 or count > self.end - self.at:
            raise self.fail(f"{count} bytes are said to follow, {self.left()} do")
        start = self.at
        self.at += count
        return self.data[start : self.at]

    def binary(self, count: int) -> Bytes:
        """The next bytes; a copy where they are short, as a view is larger, and no key of a map."""
        raw = self.take(count)
        return bytes(raw) if count <= _COPIED_MOST else raw

    def number(self, form: str) -> int:
        """One number of struct's form, as ">I"."""
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def real(self, form: str) -> float:
        """One floating-point number of struct's form."""
        return float(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def byte(self) -> int:
        """One byte."""
        return self.take(1)[0]

    def count(self, values: int = 1) -> None:
        """More values are made of this file."""
        self.values += values
        if self.values > MOST_VALUES:
            raise self.fail(f"it has more than {MOST_VALUES} values")


def inflate(data: Bytes, size: int, window: int, what: str) -> bytes:
    """Exactly size bytes out of deflated ones; never more, whatever the data say. window as in zlib."""
    if size > len(data) * MOST_RATIO + 4096:
        raise Damaged(f"{what}: {len(data)} bytes are said to hold {size}; more than {MOST_RATIO} for one is refused")
    unpacker = zlib.decompressobj(window)
    try:
        made = unpacker.decompress(data, size + 1)
    except zlib.error as reason:
        raise Damaged(f"{what}: cannot be decompressed ({reason})") from None
    if len(made) != size or not unpacker.eof or unpacker.unused_data:
        raise Damaged(f"{what}: its compressed bytes are not exactly {size}")
    return made


def inflate_all(data: Bytes, what: str) -> bytes:
    """A zlib stream whose size nobody says, up to the limit of every compressed part."""
    most = len(data) * MOST_RATIO + 4096
    unpacker = zlib.decompressobj()
    try:
        made = unpacker.decompress(data, most + 1)
    except zlib.error as reason:
        raise Damaged(f"{what}: cannot be decompressed ({reason})") from None
    if len(made) > most:
        raise Damaged(f"{what}: its {len(data)} bytes grow to more than {most}")
    if not unpacker.eof or unpacker.unused_data:
        raise Damaged(f"{what}: its compressed bytes do not end where the file does")
    return made
