"""The memory that a training will take, before any of it is taken."""
from __future__ import annotations

from typing import Any, Optional

from ._native import ffi, lib
from .arrays import number
from .dataset import Dataset, dataset_pointer
from .handle import Config
from .model import Model
from .records import Plan
from .structs import empty, read
from .trainer import TrainerSettings


def plan(
    model: Model,
    dataset: Optional[Dataset] = None,
    *,
    scored: Optional[Dataset] = None,
    frequencies: Optional[Dataset] = None,
    alone_most_frames: int = 0,
    most_batch: int = 0,
    host_limit_bytes: int = 0,
    device_limit_bytes: int = 0,
    by_hand: bool = False,
    no_checkpoint: bool = False,
    **settings: Any,
) -> Plan:
    """What Trainer(model, dataset, **settings) will take of memory, by purpose, and the largest batch that fits.

    scored and frequencies are what evaluate will be given (None: it is not called), alone_most_frames likewise; limits are
    bytes beside what is taken now (0: what is free). by_hand is for step_batch alone; no_checkpoint: save is not called.
    Without a dataset the rows are taken to be in memory. The header plan.h says more.
    """
    planned = TrainerSettings(model, dataset, **settings)
    config = Config("exphil_plan_config").set(
        model=model._handle,
        dataset=dataset_pointer(dataset, "dataset"),
        scored=dataset_pointer(scored, "scored"),
        frequencies=dataset_pointer(frequencies, "frequencies"),
        alone_most_frames=number(alone_most_frames, "alone_most_frames"),
        most_batch=number(most_batch, "most_batch"),
        host_limit_bytes=number(host_limit_bytes, "host_limit_bytes"),
        device_limit_bytes=number(device_limit_bytes, "device_limit_bytes"),
        by_hand=by_hand,
        no_checkpoint=no_checkpoint,
    )
    config.set(
        optimizer=config.keep(planned.optimizer_config).struct,
        sampling=config.keep(planned.sampling).struct,
        trainer=config.keep(planned.config).struct,
    )
    result = empty(Plan)
    model._core.call(lib.exphil_trainer_plan, ffi.NULL, config, result)
    return read(Plan, result)
