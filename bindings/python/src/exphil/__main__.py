"""python -m exphil: the program exphil, where the package carries it, as wheels of libexphil do."""
from __future__ import annotations

import importlib
import os
import sys


def main() -> int:
    """What exphil_program runs; 2 where there is no program."""
    if os.path.isdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")):
        return int(importlib.import_module("exphil_program").main() or 0)
    print(
        "python -m exphil: this package carries no program, which is libexphil's own: install libexphil, and call exphil",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
