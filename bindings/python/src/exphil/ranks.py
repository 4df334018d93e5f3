"""Ranks with a GPU each, whose gradients are added up on the GPUs."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ._native import ffi, lib
from .arrays import Array
from .codes import Code, code
from .constants import Sums
from .context import Context, context_or_default
from .errors import make_error
from .handle import Config, Handle


def ranks_id(context: Optional[Context] = None) -> bytes:
    """Names a new group of ranks: made by one of them, given to all others by a pipe, a file or a message, used once.
    UnsupportedError where the context's device has no NCCL."""
    owner = context_or_default(context)
    made = ffi.new("uint8_t[]", int(lib.EXPHIL_RANKS_ID_BYTES))
    owner._core.call(lib.exphil_ranks_id, owner._handle, made)
    return bytes(made)


class Ranks(Handle):
    """One rank of a group that adds up by NCCL: Trainer(..., device_communicator=ranks, reduction="sums"). Made by all ranks at
    once; each has a context of a GPU of its own, the trainer's. Close the trainer first, also where something was raised (with
    statements do it): the end of a group whose trainer is there waits.

    sums: "ordered" as on the CPU, "tree" for shards, "plain" as NCCL is fastest. piece_bytes: longer sums go in pieces, which
    change no bits (0: 64 MiB). start_ms: how long the other ranks are waited for here (0: ten minutes); timeout_ms: how long in an
    update (0: 30000).
    """

    __slots__ = ("_rank", "_ranks")

    def __init__(
        self, id: bytes, rank: int, ranks: int, *, context: Optional[Context] = None, sums: Code = Sums.ORDERED,
        piece_bytes: int = 0, start_ms: int = 0, timeout_ms: int = 0,
    ) -> None:
        owner = context_or_default(context)
        if not isinstance(id, bytes) or len(id) != lib.EXPHIL_RANKS_ID_BYTES:
            raise TypeError(f"id must be {int(lib.EXPHIL_RANKS_ID_BYTES)} bytes of ranks_id")
        config = Config("exphil_ranks_config")
        config.set(
            id=config.keep(ffi.from_buffer("uint8_t[]", id)), context=owner._handle, rank=rank,
            ranks=ranks, sums=code(Sums, sums, "sums"), piece_bytes=piece_bytes, start_ms=start_ms, timeout_ms=timeout_ms,
        )
        self._core, self._rank, self._ranks = owner._core, rank, ranks
        self._handle = self._core.create(lib.exphil_ranks_open, config)

    def _about(self) -> str:
        return f"rank {self._rank} of {self._ranks}"

    @property
    def rank(self) -> int:
        """Which one this is, from 0."""
        return self._rank

    @property
    def ranks(self) -> int:
        """How many there are."""
        return self._ranks

    def all_reduce(self, array: Array) -> None:
        """Replaces the values of a float32 or float64 array, which is contiguous and may be written, by the sums over all ranks:
        for what a program asks its ranks before it has a trainer, and between the calls of one, after Trainer.wait(). A call of
        all ranks. OSError: a rank did not come within timeout_ms, or is gone; the group is then of no use."""
        kinds = {np.dtype(np.float32): lib.EXPHIL_TYPE_F32, np.dtype(np.float64): lib.EXPHIL_TYPE_F64}
        if not isinstance(array, np.ndarray) or array.dtype not in kinds or not array.flags.c_contiguous:
            raise TypeError("array must be a contiguous float32 or float64 array of NumPy")
        if not array.flags.writeable:
            raise ValueError("array may not be written")
        with_ranks = Config("exphil_communicator")
        self._core.call(lib.exphil_ranks_host_communicator, self._handle, with_ranks.struct)
        asked = with_ranks.struct
        status = asked.all_reduce(asked.user, ffi.cast("void *", ffi.from_buffer(array)), array.size, kinds[array.dtype])
        if status:
            raise make_error(status, f"rank {self._rank} of {self._ranks}: the ranks did not all add up")

    def _lend(self, config: Config) -> Any:
        """What a trainer's configuration points to."""
        native = config.keep(Config("exphil_device_communicator"))
        self._core.call(lib.exphil_ranks_communicator, self._handle, native.struct)
        return native.struct


__all__ = ["Ranks", "ranks_id"]
