"""Numbers and names of the library's enumerations, as they are asked for."""
from __future__ import annotations

from enum import IntEnum
from typing import Type, Union

from .arrays import number

Code = Union[int, str]


def code(kind: Type[IntEnum], value: Code, name: str) -> int:
    """The number of a name ("cosine") or of a member, given as name. Unknown numbers pass: the library refuses them by
    itself."""
    if not isinstance(value, str):
        return number(value, name, "int32_t")
    member = kind.__members__.get(value.upper())
    if member is None:
        names = ", ".join(f'"{one.lower()}"' for one in kind.__members__)
        raise ValueError(f'{name}: "{value}" is no {kind.__name__}, must be one of {names}')
    return int(member)
