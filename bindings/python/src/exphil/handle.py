"""What all objects share: the native handle, the context's hooks, and how a call is made.

A handle is a cffi object that destroys the native one when nobody refers to it any more. close() only drops the
reference: a call that runs on another thread, or a NumPy view, has one too, so nothing is destroyed while it is used.
The library itself keeps the parents of every object alive.
"""
from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import deque
from functools import lru_cache
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Deque, Dict, List, Optional, Tuple, TypeVar, Union

from ._native import ffi, lib
from .arrays import number
from .errors import check, closed_error, new_error

Path = Union[str, "os.PathLike[str]", bytes]
Self = TypeVar("Self", bound="Handle")

_LEVELS = {
    lib.EXPHIL_LOG_ERROR: logging.ERROR,
    lib.EXPHIL_LOG_WARNING: logging.WARNING,
    lib.EXPHIL_LOG_INFO: logging.INFO,
    lib.EXPHIL_LOG_DEBUG: logging.DEBUG,
}


# What a hook raised, by thread, until the call that it interrupted is over.
_raised: Dict[int, BaseException] = {}


class Core:
    """Hooks of one context, shared by all objects made on it.

    The library may call them until the last native object is gone, which can be after the last Python object (another
    library may hold a tensor). So the native part is never freed, but used again by a later context.
    """

    _spare: List[Any] = []
    _by_serial: "weakref.WeakValueDictionary[int, Core]" = weakref.WeakValueDictionary()
    _next_serial = 1
    _lock = threading.Lock()

    def __init__(self, logger: logging.Logger) -> None:
        self.logger = logger
        self.lines: Deque[Tuple[int, str]] = deque()
        with Core._lock:
            self.hooks = Core._spare.pop() if Core._spare else ffi.new("exphil_py_hooks *")
            serial = Core._next_serial
            Core._next_serial += 1
        self.hooks.serial = serial
        self.hooks.look_ns = 0
        self.hooks.main_thread = threading.main_thread().ident or 0
        lib.exphil_py_cancel(self.hooks, 0)
        Core._by_serial[serial] = self
        weakref.finalize(self, Core._spare.append, self.hooks).atexit = False

    @staticmethod
    def of(user: Any) -> Optional["Core"]:
        """The core behind the pointer that a hook is given; None when it is gone."""
        return Core._by_serial.get(ffi.cast("exphil_py_hooks *", user).serial)

    def deliver(self) -> None:
        """Gives waiting log lines to Python's logging; the library is not on the stack here."""
        while self.lines:
            try:
                level, line = self.lines.popleft()
            except IndexError:
                return
            self.logger.log(_LEVELS.get(level, logging.ERROR), "%s", line)

    def after(self, status: int, error: Any) -> int:
        """What follows every call: log lines, then what a hook raised on this thread, then the call's own failure."""
        if self.lines:
            self.deliver()
        if _raised:
            raised = _raised.pop(threading.get_ident(), None)
            if raised is not None:
                raise raised
        return check(status, error)

    def call(self, function: Any, *arguments: Any) -> int:
        """Calls a function of the library that ends with an exphil_error."""
        error = new_error()
        return self.after(function(*_native(arguments), error), error)

    def create(self, function: Any, *arguments: Any) -> Any:
        """Calls a function whose last result is a new object, and gives its handle."""
        error = new_error()
        kind = _OUTPUT[function]
        made = ffi.new(f"{kind} **")
        status = function(*_native(arguments), made, error)
        handle = own(kind, made[0]) if status >= 0 else None
        self.after(status, error)
        return handle


_OUTPUT = {
    lib.exphil_context_create: "exphil_context",
    lib.exphil_model_create: "exphil_model",
    lib.exphil_model_load: "exphil_model",
    lib.exphil_model_load_memory: "exphil_model",
    lib.exphil_model_quantize: "exphil_model",
    lib.exphil_model_with_value: "exphil_model",
    lib.exphil_trainer_model: "exphil_model",
    lib.exphil_dataset_create: "exphil_dataset",
    lib.exphil_dataset_open: "exphil_dataset",
    lib.exphil_prefetcher_create: "exphil_prefetcher",
    lib.exphil_optimizer_create: "exphil_optimizer",
    lib.exphil_trainer_create: "exphil_trainer",
    lib.exphil_session_create: "exphil_session",
    lib.exphil_session_clone: "exphil_session",
    lib.exphil_slp_open: "exphil_slp",
    lib.exphil_slp_read: "exphil_slp",
    lib.exphil_slp_stream_create: "exphil_slp_stream",
    lib.exphil_games_open: "exphil_games",
    lib.exphil_games_read: "exphil_slp",
    lib.exphil_games_create: "exphil_games_writer",
    lib.exphil_rollout_create: "exphil_rollout",
    lib.exphil_learner_create: "exphil_learner",
    lib.exphil_live_create: "exphil_live",
    lib.exphil_live_model: "exphil_model",
    lib.exphil_ops_create: "exphil_ops",
    lib.exphil_ranks_open: "exphil_ranks",
}


def own(kind: str, pointer: Any) -> Any:
    """A handle that destroys its object in the end."""
    return ffi.gc(pointer, getattr(lib, f"{kind}_destroy"))


@ffi.def_extern()  # type: ignore[misc]
def exphil_py_log(user: Any, level: int, message: Any) -> None:
    """Keeps a line until the call that made it is over."""
    core = Core.of(user)
    if core is not None:
        core.lines.append((level, ffi.string(message).decode("utf-8", "replace")))


def keep_raised(kind: Any, raised: BaseException, traceback: Any) -> None:
    """Takes what a hook raised: it may not pass through C."""
    _raised[threading.get_ident()] = raised


@ffi.def_extern(error=1, onerror=keep_raised)  # type: ignore[misc]
def exphil_py_look(user: Any) -> int:
    """Runs on the main thread in the middle of a long call, so that Python handles the signals that came."""
    core = Core.of(user)
    if core is not None:
        core.deliver()
    return 0


class Slots:
    """Base of all objects that use the library. What is in no slot was taken away by close(), or never made: __init__ was
    not called."""

    __slots__ = ()

    # Reached only when an attribute is missing, so that an open object pays nothing for the check. Type checkers would
    # take it for a promise that every attribute is there.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if isinstance(getattr(type(self), name, None), MemberDescriptorType):
                raise closed_error(type(self).__name__)
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


class Handle(Slots):
    """Base of all objects with a native part. Works as a context manager; close() may be called again."""

    __slots__ = ("_handle", "_core", "__weakref__")
    _handle: Any
    _core: Core

    def close(self) -> None:
        """Gives the native object up. Using this one afterwards raises ClosedError; closing it again does nothing."""
        try:
            del self._handle
        except AttributeError:
            return
        self._core.deliver()

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        try:
            object.__getattribute__(self, "_handle")
        except AttributeError:
            return True
        return False

    def __repr__(self) -> str:
        """What it is made of, in a few words. It never raises: of what another thread is using it tells the name alone."""
        name = f"exphil.{type(self).__name__}"
        if self.closed:
            return f"<{name}, closed>"
        try:
            return f"<{name} {self._about()}>"
        except Exception:
            return f"<{name}>"

    def _about(self) -> str:
        """The words of repr(); counts come with commas between them."""
        raise NotImplementedError

    def __enter__(self: Self) -> Self:
        self._handle
        return self

    def __exit__(self, *raised: Any) -> None:
        self.close()

    def __reduce__(self) -> Tuple[Any, ...]:
        raise TypeError(f"an exphil.{type(self).__name__} cannot be pickled or copied")


def counted(count: int, one: str) -> str:
    """"1 lane", "2 lanes"."""
    return f"{count} {one}{'' if count == 1 else 's'}"


def expect(value: Any, kind: type, name: str) -> None:
    """Refuses an argument of another class, such as two that changed places."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be an exphil.{kind.__name__}, not {type(value).__name__}")


def path_bytes(path: Path) -> bytes:
    """A path as the library takes it."""
    return c_text(os.fsencode(path), "path")


def c_text(value: Union[str, bytes], name: str) -> bytes:
    """Text as C takes it; a zero inside would cut it short."""
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be text, not {type(value).__name__}")
    data = value.encode("utf-8") if isinstance(value, str) else value
    if b"\0" in data:
        raise ValueError(f"{name} contains a null character")
    return data


def _native(arguments: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """Arguments with their structs; the caller's tuple keeps what those point to until the call is over."""
    return tuple(one.struct if isinstance(one, Config) else one for one in arguments)


@lru_cache(maxsize=None)
def _integers(kind: str) -> Dict[str, str]:
    """Integer fields of a struct, and their types."""
    fields = ((name, field.type) for name, field in ffi.typeof(kind).fields)
    return {name: one.cname for name, one in fields
            if one.kind == "primitive" and one.cname not in ("float", "double")}


def put(struct: Any, kind: str, name: str, value: Any) -> None:
    """Sets a field of a struct of this kind; what does not fit is refused by name."""
    integer = _integers(kind).get(name)
    try:
        setattr(struct, name, value if integer is None else number(value, name, integer))
    except (TypeError, OverflowError) as wrong:
        said = str(wrong)
        raise type(wrong)(said if said.startswith(name) else f"{name}: {said}") from None


class Config:
    """A configuration struct and the memory that it points to. Calls are given the object, so that it lives as long."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.kept: List[Any] = []
        self.struct = ffi.new(f"{kind} *")
        self.struct.struct_size = ffi.sizeof(kind)

    def keep(self, value: Any) -> Any:
        """Holds value as long as the struct."""
        self.kept.append(value)
        return value

    def set(self, **fields: Any) -> "Config":
        """Sets fields by name; None leaves the default."""
        for name, value in fields.items():
            if value is None:
                continue
            if isinstance(value, (str, bytes)) and name not in _integers(self.kind):
                value = self.keep(ffi.new("char[]", c_text(value, name)))
            put(self.struct, self.kind, name, value)
        return self


def replay_config(character: Optional[str], *numbers: int) -> Config:
    """Which player and frames of a replay: port, opponent_port, first_frame, last_frame."""
    config = Config("exphil_replay_config").set(character=character)
    return config.set(**dict(zip(("port", "opponent_port", "first_frame", "last_frame"), numbers)))
