"""XXH64 with seed 0, the checksum of weights files (the specification of xxHash), in Python alone."""
from __future__ import annotations

_LOW = 0xFFFFFFFFFFFFFFFF
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
)  # fmt: skip


def _turned(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _LOW


def _lanes(words: memoryview) -> int:
    """Four sums, each over every fourth word, joined to one."""
    sums = [(_P1 + _P2) & _LOW, _P2, 0, -_P1 & _LOW]
    for lane in range(4):
        total = sums[lane]
        for word in words[lane::4]:
            total = (total + word * _P2) & _LOW
            total = ((total << 31 | total >> 33) & _LOW) * _P1 & _LOW
        sums[lane] = total
    hash = sum(_turned(total, by) for total, by in zip(sums, (1, 7, 12, 18))) & _LOW
    for total in sums:
        hash = ((hash ^ _turned(total * _P2 & _LOW, 31) * _P1 & _LOW) * _P1 + _P4) & _LOW
    return hash


def _tail(hash: int, rest: memoryview) -> int:
    at = 0
    while len(rest) - at >= 8:
        word = int.from_bytes(rest[at : at + 8], "little")
        hash = (_turned(hash ^ _turned(word * _P2 & _LOW, 31) * _P1 & _LOW, 27) * _P1 + _P4) & _LOW
        at += 8
    if len(rest) - at >= 4:
        hash = (_turned(hash ^ int.from_bytes(rest[at : at + 4], "little") * _P1 & _LOW, 23) * _P2 + _P3) & _LOW
        at += 4
    for byte in rest[at:]:
        hash = _turned(hash ^ byte * _P5 & _LOW, 11) * _P1 & _LOW
    return hash


def xxh64(data: "bytes | bytearray | memoryview") -> int:
    """The checksum of some bytes; a tenth of a second for a million weights."""
    view = memoryview(data).cast("B")
    whole = len(view) // 32 * 32
    hash = _lanes(view[:whole].cast("Q")) if whole else _P5
    hash = _tail((hash + len(view)) & _LOW, view[whole:])
    hash = (hash ^ hash >> 33) * _P2 & _LOW
    hash = (hash ^ hash >> 29) * _P3 & _LOW
    return hash ^ hash >> 32


def hexadecimal(value: int) -> str:
    """As files write it: 16 digits."""
    return f"{value:016x}"
