"""Which libexphil this process runs, and whether it fits the header that the package was built with."""
from __future__ import annotations

from ._native import ffi, lib


def written(version: int) -> str:
    """0.1.0 for 100."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def library_path() -> str:
    """Path of the loaded library."""
    return str(ffi.string(lib.exphil_py_library_path()).decode("utf-8", "replace"))


def library_version() -> str:
    """Version of the loaded library and what it was built with, "0.1.0 cpu:ref,avx2,avx512"."""
    return str(ffi.string(lib.exphil_version_string()).decode())


def check_version(built: int, loaded: int, path: str) -> None:
    """Releases before 1.0 fit when major and minor number are the same, later ones when the library is as new and of
    the same major number."""
    fits = built // 100 == loaded // 100 if built < 10000 else built // 10000 == loaded // 10000 and loaded >= built
    if not fits:
        raise ImportError(
            f"exphil was built for libexphil {written(built)}, but version {written(loaded)} is loaded from {path}"
        )
