"""Structs of the library: room for them, as their dataclasses, and dataclasses as structs."""
from __future__ import annotations

from dataclasses import fields
from typing import Any, Dict, Type, TypeVar

from ._native import ffi
from .errors import text
from .handle import put
from .records import STRUCTS

Record = TypeVar("Record")

_NAMES = {record: name for name, record in STRUCTS.items()}
_PER_HEAD = ("head", "head_loss")


def empty(record: type) -> Any:
    """Room for the library to fill."""
    name = _NAMES[record]
    made = ffi.new(f"{name} *")
    made.struct_size = ffi.sizeof(name)
    return made


def _value(kind: Any, value: Any) -> Any:
    if kind.kind == "array":
        return text(value) if kind.item.cname == "char" else tuple(_value(kind.item, one) for one in value)
    return read(STRUCTS[kind.cname.replace("struct ", "")], value) if kind.kind == "struct" else value


def read(record: Type[Record], struct: Any, heads: int = -1) -> Record:
    """A struct as its dataclass; arrays with a place for every possible head are cut to the heads there are."""
    kinds = dict(ffi.typeof(_NAMES[record]).fields)
    values: Dict[str, Any] = {}
    for field in fields(record):
        value = _value(kinds[field.name].type, getattr(struct, field.name))
        if field.name in _PER_HEAD:
            value = value[: values["heads"] if "heads" in values else heads]
        values[field.name] = value
    return record(**values)


def write(value: Any) -> Any:
    """A dataclass as its struct, for what the library takes back."""
    struct = empty(type(value))
    for field in fields(value):
        one = getattr(value, field.name)
        if field.name != "head":
            put(struct, _NAMES[type(value)], field.name, one)
            continue
        if len(one) > len(struct.head):
            raise ValueError(f"head has {len(one)} entries, at most {len(struct.head)} are possible")
        for i, head in enumerate(one):
            for part in fields(head):
                put(struct.head[i], _NAMES[type(head)], part.name, getattr(head, part.name))
    return struct
