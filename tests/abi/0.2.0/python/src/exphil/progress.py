"""Progress of training: a tqdm bar where tqdm is installed, else a line on standard error now and then."""
from __future__ import annotations

import sys
import time
from typing import Any, Optional

LINE_EVERY_S = 5.0


class _Lines:
    """What is shown without tqdm."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.next_s = time.monotonic() + LINE_EVERY_S
        self.note = ""

    def set_postfix_str(self, note: str, refresh: bool = True) -> None:
        self.note = note

    def update(self, count: int) -> None:
        self.done += count
        now_s = time.monotonic()
        if now_s >= self.next_s or self.done == self.total:
            self.next_s = now_s + LINE_EVERY_S
            print(f"{self.done}/{self.total}  {self.note}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class Progress:
    """Shows updates as they come. enabled None: only when standard error is a terminal."""

    def __init__(self, total: int, enabled: Optional[bool], unit: str = "update") -> None:
        if enabled is None:
            enabled = sys.stderr is not None and sys.stderr.isatty()
        self._bar: Any = self._open(total, unit) if enabled else None

    @staticmethod
    def _open(total: int, unit: str) -> Any:
        try:
            from tqdm import tqdm  # type: ignore[import]
        except ImportError:
            return _Lines(total)
        return tqdm(total=total, unit=unit, dynamic_ncols=True)

    def show(self, note: str) -> None:
        """One more is done."""
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(1)

    def close(self) -> None:
        """Leaves the bar as it is."""
        if self._bar is not None:
            self._bar.close()
