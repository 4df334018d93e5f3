"""What a policy is made of: the member exphil.model of a weights file (doc/file-format.md), checked as the library checks it."""
from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .checksum import hexadecimal, xxh64
from .container import parse, quoted
from .errors import ConfigError, FormatError
from .pattern import read_pattern

# The words of all blocks. blocks.py has a class for each.
WORDS = (
    "mamba", "lstm", "gru", "attention", "mlp", "ffn", "lstm_bare", "gru_bare", "ffn_gelu", "mamba_exphil", "lstm_only", "gru_only",
    "dense", "norm", "relu",
)  # fmt: skip
DELAY_WIDTH = 8

# Of a count: what 0 stands for, and its range. 0 in the place of the first: a sixteenth of hidden.
_COUNTS: Dict[str, Tuple[int, int, int]] = {
    "hidden": (256, 1, 8192),
    "head_width": (128, 1, 8192),
    "mamba_states": (16, 1, 256),
    "mamba_expand": (2, 1, 8),
    "mamba_taps": (4, 2, 16),
    "mamba_rank": (0, 1, 1024),
    "attention_heads": (4, 1, 128),
    "attention_dim": (64, 1, 512),
    "attention_window_frames": (60, 1, 4096),
    "ffn_expand": (2, 1, 16),
    "window_frames": (60, 1, 4096),
}
_SWITCHES = ("no_previous_action", "neutral_start", "no_final_norm", "head_last", "no_head_past", "no_head_trunk")
EPSILON = 1e-5  # of LayerNorms, where nothing else is said
_OF_LAYERS = ("head_units", "head_activation", "head_last", "no_head_trunk")  # of heads with layers alone
_CHOICES: Dict[str, Tuple[Optional[str], ...]] = {
    "mode": ("carry", "window"),
    "head_order": ("independent", "autoregressive"),
    "type": ("F32", "F64"),
    "value": (None, "detached", "shared"),
    "head_activation": (None, "relu", "gelu_tanh"),
    "weights": (None, "BF16", "I8"),
}
_KINDS = ("bernoulli", "categorical")


def _check(name: str, value: Any, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ConfigError(f"{name} is {value!r}, must be a whole number from {low} to {high}")


def _check_name(what: str, name: Any, pattern: str = "[a-z0-9_.]{1,31}") -> None:
    if not isinstance(name, str) or not re.fullmatch(pattern, name):
        raise ConfigError(f"{what} is {str(name)[:40]!r}, must be 1 to 31 of {pattern[:-6]}")


@dataclass(frozen=True)
class Id:
    """An id of a frame: a number from 0 to entries - 1, which picks a row of a table of this width."""

    name: str
    entries: int
    width: int

    def check(self) -> None:
        """Raises where a member is out of range."""
        _check_name("name of an id", self.name)
        _check(f"entries of id {self.name}", self.entries, 1, 65536)
        _check(f"width of id {self.name}", self.width, 1, 256)


@dataclass(frozen=True)
class Head:
    """A head of an action: count bits (bernoulli) or one of count classes (categorical); neutral is "do nothing"."""

    name: str
    kind: str
    count: int
    neutral: int

    @property
    def bits(self) -> bool:
        """Is it a head of bits?"""
        return self.kind == "bernoulli"

    def check(self) -> None:
        """Raises where a member is out of range."""
        _check_name("name of a head", self.name)
        if self.kind not in _KINDS:
            raise ConfigError(f"kind of head {self.name} is {self.kind!r}, must be bernoulli or categorical")
        _check(f"count of head {self.name}", self.count, 1 if self.bits else 2, 31 if self.bits else 1024)
        _check(f"neutral of head {self.name}", self.neutral, 0, ((1 << self.count) if self.bits else self.count) - 1)


@dataclass(frozen=True)
class Condition:
    """Something that a policy is told of an episode: 1 to values, 0 where it is not known. mask is of training alone."""

    name: str
    values: int
    width: int
    mask: float

    def check(self) -> None:
        """Raises where a member is out of range."""
        _check_name("name of a condition", self.name)
        _check(f"values of condition {self.name}", self.values, 1, 65535)
        _check(f"width of condition {self.name}", self.width, 1, 256)
        if type(self.mask) not in (int, float) or not 0 <= self.mask <= 1:
            raise ConfigError(f"mask of condition {self.name} is {self.mask!r}, must be from 0 to 1")


@dataclass(frozen=True)
class Config:
    """The members of exphil.model by name, defaults written out. A wrong one is a ConfigError when it is made."""

    layout: str
    codec: str
    layout_hash: int
    float_count: int
    ids: Tuple[Id, ...]
    heads: Tuple[Head, ...]
    blocks: str = "mamba*2"
    seed: int = 0
    hidden: int = 256
    head_width: int = 128
    mamba_states: int = 16
    mamba_expand: int = 2
    mamba_taps: int = 4
    mamba_rank: int = 16
    attention_heads: int = 4
    attention_dim: int = 64
    attention_window_frames: int = 60
    ffn_expand: int = 2
    window_frames: int = 60
    delay_frames: int = 0
    no_previous_action: int = 0
    mode: str = "carry"
    head_order: str = "independent"
    type: str = "F32"
    neutral_start: int = 0
    conditions: Tuple[Condition, ...] = ()
    delays: Tuple[int, ...] = ()
    value: Optional[str] = None
    norm_epsilon: float = EPSILON
    no_final_norm: int = 0
    head_layers: int = 0
    head_units: int = 0
    head_last: int = 0
    no_head_past: int = 0
    no_head_trunk: int = 0
    head_activation: Optional[str] = None
    weights: Optional[str] = None
    kinds: Tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_spec()
        for name, (_, low, high) in _COUNTS.items():
            _check(name, getattr(self, name), low, high)
        for name in _SWITCHES:
            _check(name, getattr(self, name), 0, 1)
        for name, words in _CHOICES.items():
            if getattr(self, name) not in words:
                raise ConfigError(f"{name} is {getattr(self, name)!r}, must be one of {', '.join(map(str, words))}")
        _check("seed", self.seed, 0, (1 << 64) - 1)
        _check("delay_frames", self.delay_frames, 0, 64)
        self._check_told()
        self._check_heads()
        if self.weights and self.type != "F32":
            raise ConfigError(f"weights is {self.weights}, which needs type F32")
        if not isinstance(self.blocks, str):
            raise ConfigError(f"blocks is {self.blocks!r}, must be a text")
        object.__setattr__(self, "kinds", tuple(read_pattern(self.blocks, WORDS)))

    def _check_spec(self) -> None:
        _check_name("layout", self.layout, "[!-~]{1,31}")
        _check_name("codec", self.codec, "[!-~]{1,31}")
        _check("layout_hash", self.layout_hash, 1, (1 << 64) - 1)
        _check("float_count", self.float_count, 0, 4096)
        _check("number of ids", len(self.ids), 0, 64)
        _check("number of heads", len(self.heads), 1, 16)
        if self.float_count + len(self.ids) == 0:
            raise ConfigError("there are neither floats nor ids")
        for what, several in (("ids", self.ids), ("heads", self.heads)):
            self._check_several(what, several)

    @staticmethod
    def _check_several(what: str, several: Sequence[Any]) -> None:
        for one in several:
            one.check()
        names = [one.name for one in several]
        if len(set(names)) != len(names):
            raise ConfigError(f"two {what} have one name")

    def _check_told(self) -> None:
        _check("number of conditions", len(self.conditions), 0, 8)
        _check("number of delays", len(self.delays), 0, 16)
        self._check_several("conditions", self.conditions)
        for delay in self.delays:
            _check("a delay of delays", delay, 0, 64)
        if list(self.delays) != sorted(set(self.delays)):
            raise ConfigError("delays do not ascend")
        if self.delays and self.delays[-1] != self.delay_frames:
            raise ConfigError(f"delay_frames is {self.delay_frames}, must be {self.delays[-1]}, the longest of delays")
        tables = len(self.ids) + len(self.conditions) + bool(self.delays)
        _check("number of ids, conditions and delays", tables, 0, 64)

    def _check_heads(self) -> None:
        if type(self.norm_epsilon) not in (int, float) or not 1e-12 <= self.norm_epsilon <= 0.1:
            raise ConfigError(f"norm_epsilon is {self.norm_epsilon!r}, must be from 1e-12 to 0.1")
        _check("head_layers", self.head_layers, 0, 4)
        if self.head_layers:
            _check("head_units", self.head_units, 1, 8192)
        for name in _OF_LAYERS:
            if getattr(self, name) and not self.head_layers:
                raise ConfigError(f"{name} is given, which needs head_layers")
        if self.head_last and not self.slots:
            raise ConfigError("head_last needs a past action as input: without delay, and with no_previous_action, there is none")

    # ---- what follows ----

    @property
    def logits(self) -> int:
        """L, the logits of all heads."""
        return sum(head.count for head in self.heads)

    @property
    def slots(self) -> int:
        """S, the past actions that are inputs."""
        return self.delay_frames + 1 - self.no_previous_action

    @property
    def inputs(self) -> int:
        """I, the width of a row."""
        tables = sum(one.width for one in self.ids) + sum(one.width for one in self.conditions)
        return self.float_count + tables + (DELAY_WIDTH if self.delays else 0) + self.slots * self.logits

    @property
    def inner(self) -> int:
        """D, the inner width of a mamba block."""
        return self.mamba_expand * self.hidden

    @property
    def told(self) -> int:
        """Columns of what is told: conditions, and one for the delay where there are several."""
        return len(self.conditions) + bool(self.delays)

    def without_rounding(self) -> "Config":
        """The same with all weights in float."""
        return replace(self, weights=None)

    # ---- text ----

    def to_text(self) -> str:
        """The JSON of a weights file, as the library writes it."""
        return _written(self._members())

    def _members(self) -> Dict[str, Any]:
        """In the order of the file; what is absent by default is left out."""
        made: Dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "kinds" or one.name in _ABSENT and value in (one.default, ()):
                continue
            if one.name in ("layout_hash", "seed"):
                value = hexadecimal(value)
            made[one.name] = value
        return made

    @classmethod
    def from_text(cls, text: str, label: str = "exphil.model") -> "Config":
        """Reads that JSON: exactly its members, each in its range; else FormatError."""
        found = parse(text, label)
        try:
            return cls(**_read(found))
        except ConfigError as wrong:
            raise FormatError(f"{label}: {wrong}") from None


_ABSENT = (
    "neutral_start", "conditions", "delays", "value", "norm_epsilon", "no_final_norm", "head_layers", "head_units", "head_last",
    "no_head_past", "no_head_trunk", "head_activation", "weights",
)  # fmt: skip
_NEEDED = tuple(one.name for one in fields(Config) if one.name != "kinds" and one.name not in _ABSENT)


def _double(value: float) -> str:
    """The fewest digits that give the number back."""
    return next(text for text in (f"{value:.{digits}g}" for digits in range(1, 18)) if float(text) == value)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(name)}:{_written(one)}" for name, one in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, (Id, Head, Condition)):
        return _written({one.name: getattr(value, one.name) for one in fields(value)})
    if isinstance(value, str):
        return quoted(value)
    return _double(value) if isinstance(value, float) else str(value)


def _members_of(kind: Any, found: Any, what: str) -> Tuple[Any, ...]:
    """An array of objects with the members of a dataclass."""
    names = {one.name for one in fields(kind)}
    if not isinstance(found, list) or not all(isinstance(one, dict) and set(one) == names for one in found):
        raise ConfigError(f"{what} is no array of objects with the members {', '.join(sorted(names))}")
    return tuple(kind(**one) for one in found)


def _hexadecimal(name: str, text: Any) -> int:
    if not isinstance(text, str) or not re.fullmatch("[0-9a-f]{16}", text):
        raise ConfigError(f"{name} is no text of 16 digits 0-9a-f")
    return int(text, 16)


def _read(found: Any) -> Dict[str, Any]:
    if not isinstance(found, dict):
        raise ConfigError("this is no object")
    missing = [name for name in _NEEDED if name not in found]
    unknown = [name for name in found if name not in _NEEDED and name not in _ABSENT]
    if missing or unknown:
        raise ConfigError(f"a member {missing[0]} is missing" if missing else f"a member {unknown[0]!r} is unknown")
    for name in _ABSENT:
        if name in found and not found[name]:
            raise ConfigError(f"{name} is there, but says nothing")
    made = dict(found)
    for name, kind in (("ids", Id), ("heads", Head), ("conditions", Condition)):
        made[name] = _members_of(kind, found.get(name, []), name)
    delays = found.get("delays", [])
    if not isinstance(delays, list):
        raise ConfigError("delays is no array")
    made.update(delays=tuple(delays), seed=_hexadecimal("seed", found["seed"]))
    made.update(layout_hash=_hexadecimal("layout_hash", found["layout_hash"]))
    return made


# ---- made by words -------------------------------------------------------------------------------------------


def layout_hash(layout: str, float_count: int, ids: Sequence[Id]) -> int:
    """What stands for the meaning of the fields where nobody says it: a hash of names and sizes."""
    def number(value: int) -> bytes:
        return value.to_bytes(8, "little")

    def text(value: str) -> bytes:
        return number(len(value)) + value.encode()

    parts = [text(layout), number(float_count), number(len(ids))]
    parts += [text(one.name) + number(one.entries) + number(one.width) for one in ids]
    return xxh64(b"".join(parts)) or 1


def _word(words: Sequence[Any], value: Any) -> Any:
    """A word of a choice; its number, as the library's enumerations have, stands for it."""
    return words[int(value)] if isinstance(value, int) and 0 <= value < len(words) else value


def make(spec: Any, words: Mapping[str, Any]) -> Config:
    """A Config of a spec (exphil.Spec, or anything with its fields) and the keywords of exphil.Model."""
    given = {name: value for name, value in words.items() if value is not None}
    if "heads" in given:
        given["head_order"] = given.pop("heads")  # exphil.Model's word for it
    known = {one.name for one in fields(Config)} - {"layout", "codec", "layout_hash", "float_count", "ids", "kinds"}
    unknown = sorted(set(given) - known)
    if unknown:
        raise TypeError(f"a policy has no setting {unknown[0]!r}")
    ids = tuple(Id(one.name, int(one.entries), int(one.width) or 8) for one in spec.ids)
    heads = tuple(Head(one.name, _word(_KINDS, one.kind), int(one.count), int(one.neutral)) for one in spec.heads)
    for name, (usual, _, _) in _COUNTS.items():
        given[name] = int(given.get(name, 0)) or usual or max(1, given["hidden"] // 16)
    for name in _SWITCHES:
        given[name] = int(given.get(name, 0))
    for name in ("mode", "head_order", "value", "type", "head_activation"):
        if name in given:
            given[name] = _word(_CHOICES[name], given[name])
    given["value"] = None if given.get("value") == "none" else given.get("value")
    given["head_activation"] = None if given.get("head_activation") == "silu" else given.get("head_activation")
    given["norm_epsilon"] = float(given.get("norm_epsilon", 0)) or EPSILON
    if given.get("head_layers") and not given.get("head_units"):
        given["head_units"] = given["head_width"]
    given["type"] = given.get("type", "F32").upper()
    given["conditions"] = tuple(
        Condition(one.name, int(one.values), int(one.width) or 8, float(one.mask)) for one in given.get("conditions", ())
    )
    given["delays"] = tuple(int(delay) for delay in given.get("delays", ()))
    if given["delays"] and not given.get("delay_frames"):
        given["delay_frames"] = given["delays"][-1]
    hash = int(getattr(spec, "layout_hash", 0)) or layout_hash(spec.layout, int(spec.float_count), ids)
    return Config(
        layout=spec.layout, codec=spec.codec, layout_hash=hash, float_count=int(spec.float_count), ids=ids, heads=heads, **given
    )


__all__: List[str] = ["Condition", "Config", "Head", "Id"]
