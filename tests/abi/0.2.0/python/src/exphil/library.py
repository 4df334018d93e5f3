"""Which libexphil this process runs, and whether it fits the header that the package was built with."""
from __future__ import annotations

from ._native import ffi, lib


def written(version: int) -> str:
    """0.2.0 for 200."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def library_path() -> str:
    """Path of the loaded library."""
    return str(ffi.string(lib.exphil_py_library_path()).decode("utf-8", "replace"))


def library_version() -> str:
    """Version of the loaded library and what it was built with, "0.2.0 cpu:ref,avx2,avx512"."""
    return str(ffi.string(lib.exphil_version_string()).decode())


def check_version(built: int, loaded: int, path: str) -> None:
    """Later releases of one binary interface fit, and that interface is in the library's file name; earlier ones lack
    functions. Patches add none."""
    if loaded // 100 < built // 100:
        raise ImportError(
            f"exphil was built for libexphil {written(built)}, but version {written(loaded)} is loaded from {path}"
        )
