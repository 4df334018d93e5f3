"""Ranks of an MPI as the communicator of a Trainer, by mpi4py: exphil.mpi.communicator(MPI.COMM_WORLD)."""
from __future__ import annotations

import time
from typing import Any, Callable, List

import numpy as np

from .arrays import Array
from .trainer import Communicator

_PIECE = 1 << 22  # numbers that are reduced at a time: MPI counts in 32 bits
_YIELD_S, _NAP_S = 0.02, 0.0001  # so long a rank asks again at once; then it sleeps in between

# What MPI may still write to after a failure: kept for ever.
_left: List[Any] = []


class _Ranks:
    """A communicator of its own, and what a reduction needs."""

    def __init__(self, comm: Any, timeout_s: float, start_s: float) -> None:
        self.timeout_s, self.start_s = timeout_s, start_s
        self.calls = 0
        self.why = ""
        if comm.Is_inter():
            raise ValueError("comm is an intercommunicator")
        self._limit(start_s)
        self.comm, request = comm.Idup()
        self.awaited = [request]
        self._guarded(lambda: self._wait(request))
        self.rank, self.ranks = self.comm.Get_rank(), self.comm.Get_size()

    def _limit(self, seconds: float) -> None:
        self.limit_s = seconds
        self.deadline = time.monotonic() + seconds

    def _wait(self, request: Any) -> None:
        began = time.monotonic()
        while not request.Test():
            now = time.monotonic()
            if now > self.deadline:
                raise TimeoutError(f"not all ranks have come within {self.limit_s:g} s")
            time.sleep(_NAP_S if now - began > _YIELD_S else 0)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Whatever ends the work before its time leaves messages under way: no call after it can be trusted."""
        try:
            work()
        except BaseException as error:
            self.why = str(error) or type(error).__name__
            _left.append(self)
            raise

    def _await(self, *awaited: Any) -> None:
        """A request, with the memory that belongs to it."""
        self.awaited = list(awaited)
        self._wait(awaited[0])

    def _same(self, array: Array) -> None:
        own = np.array([self.calls, array.size, array.itemsize], np.int64)
        all_ranks = np.empty((self.ranks, own.size), np.int64)
        self._await(self.comm.Iallgather(own, all_ranks), own, all_ranks)
        for rank, other in enumerate(all_ranks):
            if (other != own).any():
                raise RuntimeError(
                    f"rank {rank} is at reduction {other[0]}, of {other[1]} numbers of {other[2]} bytes; "
                    f"rank {self.rank} at {own[0]}, of {own[1]} of {own[2]}"
                )

    def _piece(self, data: Array) -> None:
        """Each rank gets a slice of all ranks, adds it up in their order, and gives the sum to all."""
        counts = [len(part) for part in np.array_split(data, self.ranks)]
        slices = counts, [sum(counts[:rank]) for rank in range(self.ranks)]
        own = counts[self.rank]
        mine, parts, sums = data.copy(), np.empty((self.ranks, own), data.dtype), np.empty_like(data)
        places = [own] * self.ranks, [own * rank for rank in range(self.ranks)]
        self._await(self.comm.Ialltoallv([mine, slices], [parts, places]), mine, parts)
        total = parts[0]
        for part in parts[1:]:
            total += part
        self._await(self.comm.Iallgatherv(total, [sums, slices]), total, sums)
        data[:] = sums

    def _reduce(self, array: Array) -> None:
        self._limit(self.timeout_s if self.calls else self.start_s)
        self._same(array)
        for at in range(0, array.size, _PIECE):
            self._piece(array[at : at + _PIECE])
        self.calls += 1

    def all_reduce(self, array: Array) -> None:
        if self.why:
            raise RuntimeError(f"the ranks are out of step since: {self.why}")
        self._guarded(lambda: self._reduce(array))


def communicator(comm: Any, *, timeout_s: float = 30.0, start_s: float = 600.0) -> Communicator:
    """The communicator that Trainer takes, of an intracommunicator of mpi4py, which is duplicated: all ranks call this.

    Sums are added in the order of the ranks, with the bits of libexphil_mpi (exphil_mpi.h). timeout_s is for a reduction from its
    call; start_s for this call, and for the first reduction, before which ranks may read data for long. TimeoutError: a rank has
    not come; RuntimeError: ranks reduce unequal numbers. After an error each later reduction is a RuntimeError.
    """
    for name, value in (("timeout_s", timeout_s), ("start_s", start_s)):
        if not value > 0:
            raise ValueError(f"{name} is {value}, must be positive")
    ranks = _Ranks(comm, timeout_s, start_s)
    return Communicator(ranks.rank, ranks.ranks, ranks.all_reduce)
