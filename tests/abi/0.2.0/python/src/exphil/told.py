"""What a policy is told beside the frame: conditions, and which of several delays holds."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Sequence

from ._native import ffi
from .arrays import number
from .errors import text
from .handle import Config, c_text, expect, put


@dataclass(frozen=True)
class Condition:
    """A small enumerated input that is no part of the frame, as player or rank: 1..values, or 0 where it is not known.

    width is that of its learned table (0: 8). mask is the share of episodes that training shows with 0.
    """

    name: str
    values: int
    width: int = 0
    mask: float = 0.0


def told(config: Config, conditions: Optional[Sequence[Condition]], delays: Optional[Sequence[int]]) -> Config:
    """Sets conditions and delays of a native struct; None leaves what it has."""
    if conditions is not None:
        made = config.keep(ffi.new("exphil_condition_spec[]", max(len(conditions), 1)))
        for to, one in zip(made, conditions):
            expect(one, Condition, "each of conditions")
            to.name = config.keep(ffi.new("char[]", c_text(one.name, "name of a condition")))
            for field in ("values", "width", "mask"):
                put(to, "exphil_condition_spec", field, getattr(one, field))
        config.set(conditions=made, condition_count=len(conditions))
    if delays is not None:
        made = integers(config, delays, "delays")
        config.set(delays=made, delay_count=len(delays))
    return config


def integers(config: Config, values: Sequence[int], name: str) -> Any:
    """A native array of values that lives as long as config."""
    try:
        numbers = [number(value, name, "int32_t") for value in iter(values)]
    except TypeError as wrong:
        said = str(wrong)
        raise TypeError(said if said.startswith(name) else f"{name} must be whole numbers, one after the other: {said}") from None
    return config.keep(ffi.new("int32_t[]", numbers or 1))


def told_columns(struct: Any) -> int:
    """Columns of exphil_batch.conditions, from a native exphil_sampling or exphil_model_info."""
    return int(struct.condition_count) + int(struct.delay_count > 0)


def read_told(struct: Any) -> "tuple[list[Condition], list[int]]":
    """Conditions and delays of a native exphil_sampling, copied."""
    conditions = [
        Condition(text(one.name), one.values, one.width, one.mask)
        for one in struct.conditions[0 : struct.condition_count]
    ]
    return conditions, list(struct.delays[0 : struct.delay_count])


__all__ = ["Condition"]
