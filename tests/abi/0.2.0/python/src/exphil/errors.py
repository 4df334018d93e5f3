"""Exceptions: one class for each status of the library, each also of the built-in class that fits it best."""
from __future__ import annotations

from typing import Any, Dict, Tuple, Type

from ._native import ffi, lib


class ExphilError(Exception):
    """A call into libexphil failed; the text is the library's own.

    status is the number (negative), status_name its name, native_code the code of the system or driver (errno,
    cudaError_t), 0 when there is none.
    """

    status: int = 0
    native_code: int = 0

    @property
    def status_name(self) -> str:
        """Name of the status, "EXPHIL_E_FORMAT"."""
        return str(ffi.string(lib.exphil_status_name(self.status)).decode())

    def __reduce__(self) -> Tuple[Any, ...]:
        return make_error, (self.status, str(self), self.native_code)


class InvalidError(ExphilError, ValueError):
    """An argument or a setting is wrong."""


class OutOfMemoryError(ExphilError, MemoryError):
    """Memory of the host or of the device could not be had."""


class IoError(ExphilError, OSError):
    """The operating system refused a file operation; errno says why."""


class FormatError(ExphilError, ValueError):
    """The content of a file is damaged or of an unknown version."""


class UnsupportedError(ExphilError, NotImplementedError):
    """A right request, but not on this device, type or shape."""


class DeviceError(ExphilError, RuntimeError):
    """The device or its driver failed; the context's device is lost."""


class StateError(ExphilError, RuntimeError):
    """A call in the wrong order, or on an object made before fork()."""


class ClosedError(StateError, ValueError):
    """The object was closed."""


class BusyError(ExphilError, RuntimeError):
    """Another thread is using the object."""


class VersionError(ExphilError, ImportError):
    """This package, the library or its plugin are too far apart."""


class CancelledError(ExphilError, RuntimeError):
    """The call was cancelled; its object is as it was before."""


class NumericError(ExphilError, ArithmeticError):
    """A NaN or an infinity in an input, a gradient or a result."""


class MismatchError(ExphilError, ValueError):
    """Two objects do not belong together: layout, codec, delay or mode differ."""


class InternalError(ExphilError, RuntimeError):
    """A bug in libexphil; please report it."""


_CLASSES: Dict[int, Type[ExphilError]] = {
    lib.EXPHIL_E_INVALID: InvalidError,
    lib.EXPHIL_E_MEMORY: OutOfMemoryError,
    lib.EXPHIL_E_IO: IoError,
    lib.EXPHIL_E_FORMAT: FormatError,
    lib.EXPHIL_E_UNSUPPORTED: UnsupportedError,
    lib.EXPHIL_E_DEVICE: DeviceError,
    lib.EXPHIL_E_STATE: StateError,
    lib.EXPHIL_E_BUSY: BusyError,
    lib.EXPHIL_E_VERSION: VersionError,
    lib.EXPHIL_E_CANCELLED: CancelledError,
    lib.EXPHIL_E_NUMERIC: NumericError,
    lib.EXPHIL_E_MISMATCH: MismatchError,
    lib.EXPHIL_E_INTERNAL: InternalError,
}


def make_error(status: int, message: str, native_code: int = 0) -> ExphilError:
    """The exception for a status."""
    error = _CLASSES.get(status, ExphilError)(message)
    error.status = status
    error.native_code = native_code
    if isinstance(error, OSError):
        error.errno = native_code
    return error


def closed_error(kind: str) -> ClosedError:
    """What an object says after its close()."""
    error = ClosedError(f"this {kind} is closed")
    error.status = lib.EXPHIL_E_STATE
    return error


def new_error() -> Any:
    """Room for the library's text, one for each call."""
    error = ffi.new("exphil_error *")
    error.struct_size = ffi.sizeof("exphil_error")
    return error


def text(field: Any) -> str:
    """A char array or string of the library."""
    return "" if field == ffi.NULL else str(ffi.string(field).decode("utf-8", "replace"))


def check(status: int, error: Any) -> int:
    """Raises when a call failed, else gives its status."""
    if status < 0:
        message = text(error.message) if error.status == status else ""
        code = error.native_code if message else 0
        raise make_error(status, message or text(lib.exphil_status_name(status)), code)
    return status


def call(function: Any, *arguments: Any) -> int:
    """Calls a function that ends with an exphil_error, for what belongs to no context."""
    error = new_error()
    return check(function(*arguments, error), error)
