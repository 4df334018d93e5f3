"""How a file is turned down, and what limits all readers have in common."""
from __future__ import annotations

# What the readers make of a file may take so many times its bytes, and so many values; files of policies have some
# thousands of values, and weights shrink by little.
MOST_RATIO = 16
MOST_VALUES = 1 << 18
MOST_DEPTH = 48
# A tree of weights: deeper or larger ones are no policy's.
MOST_TENSORS = 4096
MOST_RANK = 8


class Damaged(ValueError):
    """The file is not what it says it is: damaged, cut, or made to do harm. The text has the byte or the name."""


class Refused(ValueError):
    """The file is whole, but cannot be converted. The text names what is missing, or what it would need."""
