"""The prefetcher: batches of a dataset, filled ahead by a thread of the library."""
from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Iterator, Optional, Sequence, Tuple

import numpy as np

from ._native import ffi, lib
from .arrays import Array, number, pointer, take, view
from .codes import Code, code
from .constants import Mode
from .dataset import Dataset
from .errors import call
from .handle import Config, Handle, counted, expect
from .model import Model
from .records import PrefetcherInfo
from .structs import empty, read
from .told import Condition, told, told_columns


@dataclass(frozen=True)
class Batch:
    """B lanes of T frames. floats [B,T,F], ids [B,T,K], past [B,T,slots,A], actions [B,T,A] (the targets), mask [B,T]
    (0 is padding), reset [B,T] (1 where an episode, segment or window starts). conditions [B,T,C]: values of the conditions,
    and with several delays one column more, 1 + the index of the row's; None where a model is told neither.
    rows [B,T]: frame of the dataset that each row shows, -1 in padding. returns [B,T]: discounted rewards to come, NaN where they
    are not known; None where the dataset has no rewards.

    From a prefetcher the arrays are views of its memory: they are overwritten after the next batch is taken. copy()
    makes a batch that stays.
    """

    floats: Array
    ids: Array
    past: Array
    actions: Array
    mask: Array
    reset: Array
    epoch: int = 0
    index: int = 0
    frames: int = 0
    conditions: Optional[Array] = None
    rows: Optional[Array] = None
    returns: Optional[Array] = None

    def __repr__(self) -> str:
        lanes, time = self.mask.shape
        return (f"Batch({counted(lanes, 'lane')} of {counted(time, 'frame')}, {self.frames} that count, epoch={self.epoch}, "
                f"index={self.index})")

    def copy(self) -> "Batch":
        """The same with arrays of its own."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Batch(**{name: np.array(value) if isinstance(value, np.ndarray) else value
                        for name, value in values.items()})


def sampling_config(
    model: Optional[Model],
    mode: Optional[Code],
    delay_frames: Optional[int],
    action_slots: Optional[int],
    conditions: Optional[Sequence[Condition]],
    delays: Optional[Sequence[int]],
    mirror: float = 0.0,
    drop_past: float = 0.0,
    balance_character: float = 0.0,
    balance_action: float = 0.0,
    balance_change: float = 0.0,
    **rest: int,
) -> Config:
    """A native exphil_sampling; what is None comes from the model, or is the library's default without one."""
    config = Config("exphil_sampling")
    if model is not None:
        model._core.call(lib.exphil_model_sampling, model._handle, config)
    # A window's length comes from the model too: 0 may not overwrite it.
    given = {name: number(value, name) for name, value in rest.items()}
    told(config, conditions, delays).set(**{name: value for name, value in given.items() if value})
    return config.set(
        mode=None if mode is None else code(Mode, mode, "mode"), delay_frames=delay_frames, action_slots=action_slots,
        mirror=mirror, drop_past=drop_past,
        balance_character=balance_character, balance_action=balance_action, balance_change=balance_change,
    )


def rank_lanes(batch: int, rank: int, ranks: int) -> Tuple[int, int]:
    """first_lane and lane_count of one of several ranks, numbered from 0, which train on one joint batch together."""
    first, count = ffi.new("int64_t *"), ffi.new("int64_t *")
    call(lib.exphil_rank_lanes, number(batch, "batch"), number(rank, "rank"), number(ranks, "ranks"), first, count)
    return first[0], count[0]


class Prefetcher(Handle):
    """Batches of a dataset. With a model they are what a trainer of it needs; without one, the settings are all yours.

    batch is the number of lanes (0: 16), time the frames of a chunk (0: 60, or the model's window), buffers the batches
    filled ahead (0: 2). mirror is the share of the games that an epoch shows with left and right exchanged (Melee).
    balance_character, balance_action and balance_change are the shares of the weight, 0 to 1, that classes of rows get
    evenly. The order is a function of seed and epoch. Of several ranks each fills its own lanes alone: first_lane and
    lane_count, which rank_lanes tells (0: all); batch stays that of all ranks together. One thread at a time.
    """

    __slots__ = ("_shape",)

    def __init__(
        self,
        dataset: Dataset,
        model: Optional[Model] = None,
        *,
        batch: int = 0,
        time: int = 0,
        stride: int = 0,
        segment_frames: int = 0,
        seed: int = 0,
        mode: Optional[Code] = None,
        delay_frames: Optional[int] = None,
        action_slots: Optional[int] = None,
        in_order: bool = False,
        last_only: bool = False,
        buffers: int = 0,
        neutral_start: bool = False,
        shuffle_frames: int = 0,
        memory_bytes: int = 0,
        workers: int = 0,
        drop_past: float = 0.0,
        mirror: float = 0.0,
        conditions: Optional[Sequence[Condition]] = None,
        delays: Optional[Sequence[int]] = None,
        balance_character: float = 0.0,
        balance_action: float = 0.0,
        balance_change: float = 0.0,
        first_lane: int = 0, lane_count: int = 0,
    ) -> None:
        expect(dataset, Dataset, "dataset")
        if model is not None:
            expect(model, Model, "model")
        config = sampling_config(
            model,
            mode,
            delay_frames,
            action_slots,
            conditions,
            delays,
            batch=batch,
            time=time,
            stride=stride,
            segment_frames=segment_frames,
            seed=seed,
            in_order=in_order,
            last_only=last_only,
            buffers=buffers,
            neutral_start=neutral_start,
            shuffle_frames=shuffle_frames,
            memory_bytes=memory_bytes,
            workers=workers,
            drop_past=drop_past,
            mirror=mirror,
            balance_character=balance_character, balance_action=balance_action, balance_change=balance_change,
            first_lane=first_lane, lane_count=lane_count,
        )
        self._core = dataset._core
        self._handle = self._core.create(lib.exphil_prefetcher_create, dataset._handle, config)
        self._shape: Tuple[int, ...] = (*dataset._sizes, config.struct.action_slots, told_columns(config.struct))

    def _about(self) -> str:
        info = self.info
        return f"{info.batches_per_epoch} batches of {counted(info.frames_per_epoch, 'frame')} an epoch, {info.delivered} delivered"

    def next(self) -> Optional[Batch]:
        """Waits for the next batch. None after the last of an epoch; the call after that begins the next epoch."""
        handle = self._handle
        config = Config("exphil_batch")
        if self._core.call(lib.exphil_prefetcher_next, handle, config) == lib.EXPHIL_END:
            return None
        batch = config.struct
        floats, ids, heads, slots, columns = self._shape
        rows = (batch.batch, batch.time)
        return Batch(
            view(handle, batch.floats, (*rows, floats), np.float32),
            view(handle, batch.ids, (*rows, ids), np.int32),
            view(handle, batch.past, (*rows, slots, heads), np.int32),
            view(handle, batch.actions, (*rows, heads), np.int32),
            view(handle, batch.mask, rows, np.float32),
            view(handle, batch.reset, rows, np.uint8),
            batch.epoch,
            batch.index,
            batch.frames,
            view(handle, batch.conditions, (*rows, columns), np.int32) if columns else None,
            view(handle, batch.rows, rows, np.int64),
            None if batch.returns == ffi.NULL else view(handle, batch.returns, rows, np.float32),
        )

    def __iter__(self) -> Iterator[Batch]:
        """The batches up to the end of the epoch."""
        while True:
            batch = self.next()
            if batch is None:
                return
            yield batch

    def seek(self, epoch: int, index: int) -> None:
        """The next batch will be this one."""
        self._core.call(lib.exphil_prefetcher_seek, self._handle, number(epoch, "epoch"), number(index, "index"))

    @property
    def info(self) -> PrefetcherInfo:
        """Batches and frames of an epoch, and how long who waited."""
        return prefetcher_info(self._core, self._handle)


def prefetcher_info(core: Any, handle: Any) -> PrefetcherInfo:
    """What a native prefetcher tells."""
    info = empty(PrefetcherInfo)
    core.call(lib.exphil_prefetcher_query, handle, info)
    return read(PrefetcherInfo, info)


def batch_config(batch: Batch, sizes: Tuple[int, int, int, int, int]) -> Config:
    """A native batch from arrays, each checked: the library trusts their lengths."""
    floats, ids, heads, slots, columns = sizes
    lanes, time = np.shape(batch.mask) if np.ndim(batch.mask) == 2 else (-1, -1)
    if lanes < 0:
        raise ValueError(f"mask has shape {np.shape(batch.mask)}, must be (lanes, frames)")
    config = Config("exphil_batch").set(batch=lanes, time=time, epoch=batch.epoch, index=batch.index)
    wanted = [
        ("floats", "float", np.float32, (lanes, time, floats)),
        ("ids", "int32_t", np.int32, (lanes, time, ids)),
        ("past", "int32_t", np.int32, (lanes, time, slots, heads)),
        ("actions", "int32_t", np.int32, (lanes, time, heads)),
        ("mask", "float", np.float32, (lanes, time)),
        ("reset", "uint8_t", np.uint8, (lanes, time)),
    ]
    if columns:
        wanted.append(("conditions", "int32_t", np.int32, (lanes, time, columns)))
    for name, kind, dtype, shape in wanted:
        array = take(getattr(batch, name), dtype, shape, name)
        setattr(config.struct, name, config.keep(pointer(kind, array)))
    config.struct.frames = int(np.count_nonzero(np.asarray(batch.mask) > 0))
    return config


__all__ = ["Batch", "Prefetcher", "rank_lanes"]
