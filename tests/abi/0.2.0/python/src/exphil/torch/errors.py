"""What this package raises."""
from __future__ import annotations


class FormatError(ValueError):
    """The content of a file is damaged, of an unknown version, or not what its metadata says."""


class ConfigError(ValueError):
    """A setting of a policy is wrong; the text names the field, its value and its range."""
