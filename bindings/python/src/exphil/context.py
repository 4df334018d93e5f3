"""The context: device, threads and log of everything that is made on it."""
from __future__ import annotations

import logging
import os
from typing import Dict, List, Optional

from ._native import ffi, lib
from .codes import Code, code
from .constants import LogLevel
from .errors import call
from .handle import Config, Core, Handle, Path, expect, path_bytes
from .records import DeviceInfo, MemoryInfo
from .structs import empty, read


def devices() -> List[DeviceInfo]:
    """Devices that a context of this process could run on, the CPU first. Starts no driver."""
    found = []
    for index in range(lib.exphil_device_count()):
        info = empty(DeviceInfo)
        call(lib.exphil_device_get, index, info)
        found.append(read(DeviceInfo, info))
    return found


def context_config(
    *,
    device: Optional[str] = None,
    cpu_isa: Optional[str] = None,
    backend_path: Optional[Path] = None,
    memory_limit_bytes: int = 0,
    threads: int = 0,
) -> Config:
    """A native exphil_context_config without hooks."""
    return Config("exphil_context_config").set(
        device=device,
        cpu_isa=cpu_isa,
        backend_path=None if backend_path is None else path_bytes(backend_path),
        memory_limit_bytes=memory_limit_bytes,
        threads=threads,
    )


class Context(Handle):
    """Where models live and compute. May be shared by threads.

    device is "cpu" (None), "cuda", "cuda:0" or "auto". cpu_isa caps the instruction set ("ref", "avx2", "avx512", "neon").
    threads is the size of the pool: 0 one per core, 1 the calling thread only. Log lines go to logger (None: the one
    called "exphil") when the call that made them returns.

    Long calls on the main thread end with KeyboardInterrupt when Ctrl-C is pressed. Any thread may set cancelled to end
    those of this context with CancelledError.
    """

    __slots__ = ()

    def __init__(
        self,
        device: Optional[str] = None,
        *,
        cpu_isa: Optional[str] = None,
        backend_path: Optional[Path] = None,
        memory_limit_bytes: int = 0,
        threads: int = 0,
        log_level: Code = 0,
        logger: Optional[logging.Logger] = None,
    ) -> None:
        self._core = Core(logger if logger is not None else logging.getLogger("exphil"))
        config = context_config(
            device=device,
            cpu_isa=cpu_isa,
            backend_path=backend_path,
            memory_limit_bytes=memory_limit_bytes,
            threads=threads,
        ).set(
            log_level=code(LogLevel, log_level, "log_level"),
            log=lib.exphil_py_log,
            log_user=self._core.hooks,
            cancel=ffi.addressof(lib, "exphil_py_cancelled"),
            cancel_user=self._core.hooks,
        )
        self._handle = self._core.create(lib.exphil_context_create, config)

    def _about(self) -> str:
        device = self.device
        return f"{device.id}, {device.name}"

    @property
    def device(self) -> DeviceInfo:
        """The device that this context runs on."""
        info = empty(DeviceInfo)
        self._core.call(lib.exphil_context_device, self._handle, info)
        return read(DeviceInfo, info)

    @property
    def memory(self) -> MemoryInfo:
        """Memory used now and at the peak."""
        info = empty(MemoryInfo)
        self._core.call(lib.exphil_context_memory, self._handle, info)
        return read(MemoryInfo, info)

    @property
    def cancelled(self) -> bool:
        """While this is set, long calls of every thread end with CancelledError, their objects as before the call."""
        self._handle
        return bool(self._core.hooks.cancelled)

    @cancelled.setter
    def cancelled(self, value: bool) -> None:
        self._handle
        lib.exphil_py_cancel(self._core.hooks, int(bool(value)))


_default: Dict[int, Context] = {}


def default_context() -> Context:
    """The context of everything made without one: the CPU, all defaults. Each process has its own, after fork() too."""
    found = _default.get(os.getpid())
    if found is None or found.closed:
        _default.clear()
        found = _default.setdefault(os.getpid(), Context())
    return found


def context_or_default(context: Optional[Context]) -> Context:
    """The given context, or the default one."""
    if context is None:
        return default_context()
    expect(context, Context, "context")
    return context


__all__ = ["Context", "default_context", "devices"]
