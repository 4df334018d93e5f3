"""Which score is the best, and whether nothing was gained for long."""
from __future__ import annotations

import math
from typing import Optional

from .arrays import number
from .records import Report

_LESS = ("nll", "loss", "alone_nll", "unexplained")
_MORE = ("exact_accuracy", "exact_change_accuracy", "alone_accuracy", "alone_change_accuracy")


class Watch:
    """Follows one figure of the reports of a run."""

    def __init__(self, by: str, patience: int, least_gain: float) -> None:
        if by not in _LESS + _MORE:
            raise ValueError(f"by is {by!r}, must be one of {', '.join(_LESS + _MORE)}")
        self._by, self._patience = by, number(patience, "patience")
        if self._patience < 0:
            raise ValueError(f"patience is {patience}, must not be negative")
        if not 0.0 <= least_gain < 1.0:
            raise ValueError(f"least_gain is {least_gain}, must be at least 0 and below 1")
        self._least_gain = least_gain
        self._best: Optional[float] = None
        self._gained: Optional[float] = None
        self._without = 0

    def _better(self, value: float, than: Optional[float], share: float) -> bool:
        if than is None:
            return True
        if not math.isfinite(value) or not math.isfinite(than):
            return math.isfinite(value) and not math.isfinite(than)
        margin = share * abs(than)
        return value < than - margin if self._by in _LESS else value > than + margin

    def is_best(self, report: Report) -> bool:
        """Takes the next report: is it better than all before?"""
        value = getattr(report, self._by)
        if self._better(value, self._gained, self._least_gain):
            self._gained, self._without = value, 0
        else:
            self._without += 1
        if not self._better(value, self._best, 0.0):
            return False
        self._best = value
        return True

    @property
    def over(self) -> bool:
        """Were there as many scores without a gain as patience allows?"""
        return 0 < self._patience <= self._without
