"""What an import says when the compiled part of the package, or the library behind it, is not there."""
from __future__ import annotations

import os


def explain(error: ImportError) -> ImportError:
    """The same error with what to do about it; other errors (cffi is missing) speak for themselves."""
    if error.name == f"{__package__}._native":
        folder = os.path.dirname(os.path.abspath(__file__))
        return ImportError(
            f"{folder} is the source of exphil, without its compiled part: build the wheel and install it as its README.md "
            "says, and take this folder out of the module path (PYTHONPATH, sys.path)"
        )
    if "libexphil" in str(error):
        return ImportError(
            f"{error} (exphil looks for the library where it was when the wheel was built, then where the system looks: "
            "install libexphil, set LD_LIBRARY_PATH to the folder of libexphil.so.0, or build the wheel again)"
        )
    return error
