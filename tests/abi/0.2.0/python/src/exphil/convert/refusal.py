"""How a file is turned down, and what limits all readers have in common."""
from __future__ import annotations

from typing import Any

# What the readers make of a file may take so many times its bytes, and so many values; files of policies have some
# thousands of values, and weights shrink by little.
MOST_RATIO = 16
MOST_VALUES = 1 << 17
MOST_DEPTH = 48
# A tree of weights: deeper or larger ones are no policy's.
MOST_TENSORS = 4096
MOST_RANK = 8
MOST_NAME = 255  # characters of a tensor's name, with its path
_LINE_MOST = 500
_SHOWN_MOST = 60


def line(text: str) -> str:
    """One line for a terminal: what cannot be printed is escaped, and what is too long is cut."""
    cut = text if len(text) <= _LINE_MOST else text[: _LINE_MOST - 3] + "..."
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in cut)


def shown(value: Any) -> str:
    """A value of a file for a message: a number or a short text, and of all else what it is. Values may be shared and nested so
    that their repr has no end."""
    if value is None or isinstance(value, (bool, float)):
        return repr(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() < 64 else f"a number of {value.bit_length()} bits"
    if isinstance(value, str):
        return repr(str(value[:_SHOWN_MOST])) + ("..." if len(value) > _SHOWN_MOST else "")
    return f"a {type(value).__name__.lstrip('_')}"


class _Turned(ValueError):
    """A text that can be printed, whatever of the file is in it."""

    def __init__(self, text: str) -> None:
        super().__init__(line(text))


class Damaged(_Turned):
    """The file is not what it says it is: damaged, cut, or made to do harm. The text has the byte or the name."""


class Refused(_Turned):
    """The file is whole, but cannot be converted. The text names what is missing, or what it would need."""


def tensor_name(name: str, what: str) -> str:
    """The name of a tensor, if it can be one."""
    if not 0 < len(name) <= MOST_NAME or not name.isprintable():
        raise Damaged(f"{what}: {shown(name)} is no name of a tensor")
    return name
