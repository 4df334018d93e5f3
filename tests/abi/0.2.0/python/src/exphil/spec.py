"""What a frame of a game looks like: floats and ids in, heads of an action out."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Tuple

from ._native import ffi, lib
from .codes import Code, code
from .constants import HeadKind
from .errors import text
from .handle import Config, c_text, expect, put


@dataclass(frozen=True)
class IdSpec:
    """An id of an observation: an integer in [0, entries), looked up in a table of rows of this width (0: 8)."""

    name: str
    entries: int
    width: int = 0


@dataclass(frozen=True)
class HeadSpec:
    """A head of an action: count bits (HeadKind.BERNOULLI) or one of count classes (HeadKind.CATEGORICAL).

    neutral is the value of "do nothing"; it stands before an episode and primes the queue of a delayed policy.
    """

    name: str
    kind: Code
    count: int
    neutral: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", code(HeadKind, self.kind, "kind"))


@dataclass(frozen=True)
class Spec:
    """Observation layout and action codec of any game. Objects whose specs have different hashes refuse each other.

    layout and codec are names of your own; float_count is the number of floats of a row. layout_hash may stand for the
    meaning of every field; 0 makes one from the names and sizes.
    """

    layout: str
    codec: str
    float_count: int
    heads: Tuple[HeadSpec, ...]
    ids: Tuple[IdSpec, ...] = ()
    layout_hash: int = 0

    def __post_init__(self) -> None:
        for name, kind in (("heads", HeadSpec), ("ids", IdSpec)):
            value = getattr(self, name)
            if not isinstance(value, (tuple, list)) or not all(isinstance(one, kind) for one in value):
                raise TypeError(f"{name} must be a tuple of exphil.{kind.__name__}, such as ({kind.__name__}(...),)")
            object.__setattr__(self, name, tuple(value))

    @property
    def hash(self) -> int:
        """Equal if and only if rows and actions mean the same; 0 for an invalid spec."""
        config = self._config()
        return int(lib.exphil_spec_hash(config.struct))

    @property
    def logit_count(self) -> int:
        """Logits of one decision: bits and classes of all heads."""
        return sum(head.count for head in self.heads)

    def _config(self) -> Config:
        config = Config("exphil_spec")
        ids = config.keep(ffi.new("exphil_id_spec[]", max(len(self.ids), 1)))
        for to, one in zip(ids, self.ids):
            to.name = config.keep(ffi.new("char[]", c_text(one.name, "name of an id")))
            put(to, "exphil_id_spec", "entries", one.entries)
            put(to, "exphil_id_spec", "width", one.width)
        heads = config.keep(ffi.new("exphil_head_spec[]", max(len(self.heads), 1)))
        for to, head in zip(heads, self.heads):
            to.name = config.keep(ffi.new("char[]", c_text(head.name, "name of a head")))
            for name in ("kind", "count", "neutral"):
                put(to, "exphil_head_spec", name, getattr(head, name))
        return config.set(
            layout=self.layout,
            codec=self.codec,
            float_count=self.float_count,
            id_count=len(self.ids),
            ids=ids,
            head_count=len(self.heads),
            heads=heads,
            layout_hash=self.layout_hash,
        )


def spec_pointer(config: Config, spec: "Spec | None") -> Any:
    """A native spec that lives as long as config; NULL for None."""
    if spec is None:
        return ffi.NULL
    expect(spec, Spec, "spec")
    return config.keep(spec._config()).struct


def read_spec(struct: Any) -> Spec:
    """A Spec from the library's, copied."""
    ids = tuple(IdSpec(text(one.name), one.entries, one.width) for one in struct.ids[0 : struct.id_count])
    heads = tuple(
        HeadSpec(text(one.name), one.kind, one.count, one.neutral)
        for one in struct.heads[0 : struct.head_count]
    )
    return Spec(text(struct.layout), text(struct.codec), struct.float_count, heads, ids, struct.layout_hash)


def empty_spec() -> Any:
    """Room for the library's spec."""
    return Config("exphil_spec").struct
