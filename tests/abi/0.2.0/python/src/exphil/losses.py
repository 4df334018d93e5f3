"""Losses of heads, for training and evaluation."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Sequence

from ._native import ffi
from .arrays import pointer, take
from .handle import expect, put
from .spec import HeadSpec


@dataclass(frozen=True)
class HeadLoss:
    """Loss of one head. weight 0 stands for 1, a negative one leaves the head untrained.

    smoothing is for classes only; focal_gamma scales by (1 - p) ** gamma; positive_weight has one number for each bit.
    """

    weight: float = 0.0
    smoothing: float = 0.0
    focal_gamma: float = 0.0
    positive_weight: Optional[Sequence[float]] = None


def losses_pointer(losses: Optional[Sequence[HeadLoss]], heads: Sequence[HeadSpec], kept: List[Any]) -> Any:
    """Native losses, held by kept. There must be one for each head: the library reads as many."""
    if losses is None:
        return ffi.NULL
    if len(losses) != len(heads):
        raise ValueError(f"losses has {len(losses)} entries, the model has {len(heads)} heads")
    made = ffi.new("exphil_head_loss[]", len(losses))
    kept.append(made)
    for to, loss, head in zip(made, losses, heads):
        expect(loss, HeadLoss, "each of losses")
        for name in ("weight", "smoothing", "focal_gamma"):
            put(to, "exphil_head_loss", name, getattr(loss, name))
        if loss.positive_weight is not None:
            weights = take(loss.positive_weight, "float32", (head.count,), f"positive_weight of {head.name}")
            kept.append(pointer("float", weights))
            to.positive_weight = kept[-1]
    return made
