"""exphil._native without a compiled module: libexphil and a helper in C, both beside this file, opened by cffi's ABI mode."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Optional

from ._declared import ffi as _ffi
from ._wheel import HELPER, LIBRARY

FOLDER = os.path.dirname(os.path.abspath(__file__))


def _open(name: str) -> Any:
    path = os.path.join(FOLDER, name)
    try:
        return _ffi.dlopen(path)
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error} (it is a part of this wheel: install that again)") from None


class _Lib:
    """Functions and constants of both, as a compiled module would have them."""

    def __init__(self, library: str, helper: str) -> None:
        self._path = os.path.join(FOLDER, library)
        self._library = _open(library)
        self._helper = _open(helper)  # finds the library, which is open by its name

    def __getattr__(self, name: str) -> Any:
        # Names are known to both: the helper has what begins with exphil_py_, the library the rest.
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._helper if name.startswith("exphil_py_") else self._library, name)
        setattr(self, name, found)  # found at once the next time
        return found

    def exphil_py_library_path(self) -> Any:
        return _ffi.new("char[]", self._path.encode("utf-8"))

    # Operators of torch and handlers of XLA are C of their own, which these wheels have not.
    def exphil_py_torch_register(self) -> Any:
        return _ffi.new("char[]", b"this wheel has no operators for torch")

    def exphil_py_torch_status(self) -> int:
        return 0


class _Ffi:
    """cffi's, with def_extern by callbacks, which live as long as the process."""

    def __init__(self) -> None:
        for name in dir(_ffi):
            if not name.startswith("_") and name not in ("def_extern", "addressof"):
                setattr(self, name, getattr(_ffi, name))

    def def_extern(self, name: Optional[str] = None, **how: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            called = name or function.__name__
            made = _ffi.callback(f"{called}_type *", function, **how)
            setattr(lib, called, made)
            if called == "exphil_py_look":
                _hand_over(made)
            return function

        return keep

    def addressof(self, thing: Any, *fields: Any) -> Any:
        return getattr(thing, fields[0]) if thing is lib else _ffi.addressof(thing, *fields)


def _hand_over(look: Any) -> None:
    """Gives the helper the functions of this interpreter."""
    api = ctypes.pythonapi
    names = ("PyCapsule_IsValid", "PyCapsule_GetPointer", "PyErr_Fetch", "PyErr_Restore", "PyThread_get_thread_ident")
    addresses = [ctypes.cast(getattr(api, name), ctypes.c_void_p).value for name in names]
    functions = [_ffi.cast("void *", address) for address in (*addresses, _ffi.cast("uintptr_t", look))]
    lib.exphil_py_python_set(_ffi.new("void *[]", functions))


lib = _Lib(LIBRARY, HELPER)
ffi = _Ffi()
