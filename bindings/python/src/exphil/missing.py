"""What an import says when the compiled part of the package, or the library behind it, is not there."""
from __future__ import annotations

import os


def explain(error: ImportError) -> ImportError:
    """The same error with what to do about it; other errors (cffi is missing) speak for themselves."""
    folder = os.path.dirname(os.path.abspath(__file__))
    ours = error.name == f"{__package__}._native"
    if (ours or folder in str(error)) and not os.path.isdir(folder):
        return ImportError(
            f"exphil cannot run from an archive, as {os.path.dirname(folder)} is: the system loads the library inside from a file "
            "of its own only. Install the wheel (pip install), or unpack the archive, and put the folder in the module path"
        )
    if ours:
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
