"""The trainer, with the optimizer and the prefetcher that belong to it."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from ._native import ffi, lib
from .arrays import Array, number, pointer, take, view
from .codes import Code, code
from .constants import DataType, Precision, Reduction, Schedule, Weights
from .dataset import Dataset, dataset_pointer
from .errors import UnsupportedError
from .handle import Config, Handle, Path, c_text, counted, expect, keep_raised, path_bytes
from .losses import HeadLoss, losses_pointer
from .model import Model
from .prefetcher import Batch, batch_config, prefetcher_info, rank_lanes, sampling_config
from .progress import Progress
from .ranks import Ranks
from .records import Metrics, OptimizerInfo, OutcomeMetrics, PrefetcherInfo, Report
from .structs import empty, read
from .told import Condition, told_columns
from .watch import Watch

# Any errno would do: it stops the update, and the exception says the rest.
_REFUSED = 5
_BATCH = 16  # lanes, where nobody says how many


@dataclass(frozen=True)
class Communicator:
    """Several processes train one model. all_reduce gets an array and replaces its values by the sums over all ranks,
    added in the order of the ranks so that every rank has the same bits. With reduction "sums" of a Trainer the update is that of
    the joint batch: every rank has the same dataset and batch, and takes its lanes of it; making the trainer, step, save, resume
    and agree are then calls that all ranks make, in the same order."""

    rank: int
    ranks: int
    all_reduce: Callable[[Array], None]


@ffi.def_extern(error=_REFUSED, onerror=keep_raised)  # type: ignore[misc]
def exphil_py_all_reduce(user: Any, data: Any, count: int, kind: int) -> int:
    """Gives the library's memory to the communicator as an array, for this call only."""
    dtype = np.dtype(np.float64 if kind == lib.EXPHIL_TYPE_F64 else np.float32)
    array = np.frombuffer(ffi.buffer(data, count * dtype.itemsize), dtype)
    communicator: Communicator = ffi.from_handle(user)
    communicator.all_reduce(array)
    return 0


def _communicator(communicator: Optional[Communicator], config: Config) -> Any:
    if communicator is None:
        return None
    user = config.keep(ffi.new_handle(communicator))
    native = Config("exphil_communicator").set(
        user=user, all_reduce=lib.exphil_py_all_reduce, rank=communicator.rank, ranks=communicator.ranks
    )
    return config.keep(native).struct


@dataclass(frozen=True)
class Forward:
    """What Trainer.forward gives: logits [B*T,L], values [B*T] (None: the model has no value head). They are the trainer's own
    memory, good until backward or abandon."""

    logits: Array
    values: Optional[Array]


@dataclass(frozen=True)
class Score:
    """Where training stands: metrics of the last update, and how well the weights predict what was held out."""

    metrics: Metrics
    report: Report


class Trainer(Handle):
    """Trains a copy of a model's weights on a dataset; the model itself stays as it is and may be played meanwhile.

    dataset None is for step_batch, forward and learners. The settings are those of the C structs exphil_optimizer_config (rate to
    resume_new_total), exphil_sampling (batch to buffers, shuffle_frames to mirror, balance_*, first_lane, lane_count; mode,
    delays, slots, neutral_start and conditions are the model's) and exphil_trainer_config (losses to device_communicator), by
    name; 0 and None stand for the library's defaults. One thread at a time.
    """

    __slots__ = ("_optimizer", "_prefetcher", "_kept", "_heads", "_sizes", "_type", "_half", "_dataset", "_sampling")

    def __init__(
        self,
        model: Model,
        dataset: Optional[Dataset] = None,
        *,
        rate: float = 0.0,
        beta1: float = 0.0,
        beta2: float = 0.0,
        epsilon: float = 0.0,
        decay: float = 0.0,
        clip_norm: float = 0.0,
        ema_decay: float = 0.0,
        low_ratio: float = 0.0,
        restart_factor: float = 0.0,
        warmup_updates: int = 0,
        total_updates: int = 0,
        restart_updates: int = 0,
        schedule: Code = Schedule.CONSTANT,
        resume_new_total: bool = False,
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
        losses: Optional[Sequence[HeadLoss]] = None,
        communicator: Optional[Communicator] = None,
        loss_scale: float = 0.0,
        accumulate: int = 0,
        precision: Code = Precision.F32,
        activations: Code = DataType.F32,
        fake_quantize: Code = 0,
        checkpoint_blocks: int = 0,
        own_past: float = 0.0,
        own_past_ramp_updates: int = 0,
        own_past_seed: int = 0,
        saved_weights: Code = Weights.NOW,
        as_played: bool = False,
        reduction: Code = Reduction.MEANS,
        shards: int = 0,
        device_communicator: Optional[Ranks] = None,
    ) -> None:
        expect(model, Model, "model")
        if dataset is not None:
            expect(dataset, Dataset, "dataset")
        self._core, info, self._heads = model._core, model.info, model.spec.heads
        self._sizes = info.float_count, info.id_count, info.head_count, info.action_slots, told_columns(info)
        self._type = np.float64 if info.type == DataType.F64 else np.float32
        optimizer = Config("exphil_optimizer_config").set(
            rate=rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            decay=decay,
            clip_norm=clip_norm,
            ema_decay=ema_decay,
            low_ratio=low_ratio,
            restart_factor=restart_factor,
            warmup_updates=warmup_updates,
            total_updates=total_updates,
            restart_updates=restart_updates,
            schedule=code(Schedule, schedule, "schedule"),
            resume_new_total=resume_new_total,
        )
        joint = code(Reduction, reduction, "reduction") == Reduction.SUMS and not lane_count
        group = device_communicator if communicator is None else communicator
        if group is not None and dataset is not None and joint:
            first_lane, lane_count = rank_lanes(batch or _BATCH, group.rank, group.ranks)
        sampling = sampling_config(
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
        config = Config("exphil_trainer_config")
        config.set(
            losses=losses_pointer(losses, self._heads, config.kept),
            communicator=_communicator(communicator, config),
            loss_scale=loss_scale,
            accumulate=accumulate,
            precision=code(Precision, precision, "precision"),
            activations=code(DataType, activations, "activations"),
            fake_quantize=code(DataType, fake_quantize, "fake_quantize"),
            checkpoint_blocks=checkpoint_blocks,
            own_past=own_past,
            own_past_ramp_updates=own_past_ramp_updates,
            own_past_seed=own_past_seed,
            saved_weights=code(Weights, saved_weights, "saved_weights"),
            as_played=as_played,
            reduction=code(Reduction, reduction, "reduction"),
            shards=shards,
            device_communicator=None if device_communicator is None else config.keep(device_communicator)._lend(config),
        )
        self._open(model, dataset, optimizer, sampling, config)

    def _open(
        self, model: Model, dataset: Optional[Dataset], optimizer: Config, sampling: Config, config: Config
    ) -> None:
        core = self._core
        # Between forward and backward: the batch, and the shape of its gradients.
        self._half: Optional[Tuple[Config, Tuple[int, int]]] = None
        self._prefetcher: Any = ffi.NULL
        if dataset is not None:
            self._prefetcher = core.create(lib.exphil_prefetcher_create, dataset._handle, sampling)
        self._dataset, self._sampling = dataset, sampling
        self._optimizer: Any = core.create(lib.exphil_optimizer_create, model._handle, optimizer)
        # The communicator is called as long as the native trainer lives: its handle goes with this object.
        self._kept: List[Any] = [config]
        self._handle = core.create(
            lib.exphil_trainer_create, model._handle, self._optimizer, self._prefetcher, config
        )

    def _about(self) -> str:
        data = "no dataset" if self._dataset is None else repr(self._dataset)
        return f"{counted(self.optimizer.updates, 'update')}, {data}"

    # ---- ranks ----

    def agree(self, *numbers: float) -> List[float]:
        """A call of all ranks with reduction "sums": each number becomes the largest that a rank gives. What a clock or a signal
        says on one rank so becomes what all do."""
        given = ffi.new("double[]", numbers)
        self._core.call(lib.exphil_trainer_agree, self._handle, given, len(numbers))
        return list(given)

    def _writes(self) -> bool:
        """Of ranks that train together, the first."""
        how = self._kept[0].struct
        others = how.reduction == Reduction.SUMS and (how.communicator, how.device_communicator)
        return not any(one and one.rank for one in others or ())

    def set_communicator(self, communicator: Union[Communicator, Ranks, None]) -> None:
        """Other ranks, with reduction "sums" and a dataset: a call of all ranks of the new communicator, of either kind. None: this
        one alone. This rank takes its new lanes; carried state goes with its lanes, that of lanes which no rank has starts from
        zero."""
        if self._dataset is None:
            raise UnsupportedError("a trainer without a dataset: save, and resume with the other ranks")
        config, sampling = Config("exphil_trainer_config"), self._sampling
        before = sampling.struct.first_lane, sampling.struct.lane_count
        batch = sampling.struct.batch or _BATCH
        rank, ranks = (communicator.rank, communicator.ranks) if communicator is not None else (0, 1)
        sampling.set(**dict(zip(("first_lane", "lane_count"), rank_lanes(batch, rank, ranks))))
        by_host, by_device = ffi.NULL, ffi.NULL
        try:
            prefetcher = self._core.create(lib.exphil_prefetcher_create, self._dataset._handle, sampling)
            self._kept.append(config)  # used from then on even after an error, where there was no memory for the new shape
            if isinstance(communicator, Ranks):
                by_device = config.keep(communicator)._lend(config)
                self._core.call(lib.exphil_trainer_set_device_communicator, self._handle, by_device, prefetcher)
            else:
                by_host = _communicator(communicator, config) or ffi.NULL
                self._core.call(lib.exphil_trainer_set_communicator, self._handle, by_host, prefetcher)
        except BaseException:
            sampling.struct.first_lane, sampling.struct.lane_count = before
            raise
        how = self._kept[0].struct
        self._prefetcher, how.communicator, how.device_communicator = prefetcher, by_host, by_device

    # ---- training ----

    def _metrics(self, function: Any, *arguments: Any) -> Metrics:
        metrics = empty(Metrics)
        self._core.call(function, self._handle, *arguments, metrics)
        return read(Metrics, metrics, len(self._heads))

    def step(self) -> Metrics:
        """One update from the dataset; a new epoch begins by itself.

        NumericError names what is not finite: weights stay as before, and the batch is passed over.
        """
        return self._metrics(lib.exphil_trainer_step)

    def step_batch(self, batch: Batch) -> Metrics:
        """One update from a batch of your own, every value checked. All batches of a trainer have one shape."""
        return self._metrics(lib.exphil_trainer_step_batch, batch_config(batch, self._sizes))

    def wait(self) -> Metrics:
        """Waits for the update that a GPU still works on, and gives its metrics; where none is under way, those of the last one."""
        return self._metrics(lib.exphil_trainer_wait)

    def forward(self, batch: Batch, states: Any = None) -> Forward:
        """The first half of an update whose loss is yours: the weights as they are over one batch, which must stay as it is until
        backward or abandon; one of them must follow. mask only counts frames.

        states: where each lane begins, what state_save gave of B sessions or streams, one after the other or as a list. None: the
        carried state.
        """
        given = batch_config(batch, self._sizes)
        if isinstance(states, (list, tuple)):
            states = b"".join(states)
        blocks = ffi.NULL if states is None else ffi.from_buffer(states)
        told = Config("exphil_forward")
        handle, forward = self._handle, told.struct
        self._core.call(lib.exphil_trainer_forward, handle, given, blocks, 0 if states is None else len(blocks), told)
        self._half = given, (forward.rows, forward.logit_count)
        return Forward(
            view(handle, forward.logits, (forward.rows, forward.logit_count), self._type),
            None if forward.values == ffi.NULL else view(handle, forward.values, (forward.rows,), self._type),
        )

    def backward(self, dlogits: Any, dvalues: Any = None, loss: float = 0.0) -> Metrics:
        """The second half: gradients of your loss by what forward gave, dlogits [B*T,L] and dvalues [B*T] (None: 0), not divided
        by anything; then clipping and AdamW. loss is what metrics tell.

        NumericError: a number is not finite, also in the gradient of the weights, which are then as before.
        """
        handle, half = self._handle, self._half
        gradients = [ffi.NULL, ffi.NULL]
        if half is not None:
            for i, (value, shape) in enumerate(((dlogits, half[1]), (dvalues, half[1][:1]))):
                if i == 0 or value is not None:
                    gradients[i] = pointer("char", take(value, self._type, shape, "dvalues" if i else "dlogits"))
        metrics = empty(Metrics)
        self._core.call(lib.exphil_trainer_backward, handle, *gradients, loss, metrics)
        self._half = None
        return read(Metrics, metrics, len(self._heads))

    def abandon(self) -> None:
        """No update after forward: weights and moments are as before it, and the carried state is where the batch began."""
        self._core.call(lib.exphil_trainer_abandon, self._handle)
        self._half = None

    def step_outcome(
        self,
        *,
        imitation: float = 0.0,
        value: float = 0.0,
        beta: float = 0.0,
        cap: float = 0.0,
        warm_up: int = 0,
        seed: int = 0,
        shuffle: bool = False,
    ) -> OutcomeMetrics:
        """One update from the dataset in which rows count by how much better than expected they went, and the value is learnt
        beside (exphil_trainer_step_outcome in exphil/learn.h has the loss). Dataset.set_rewards says what came of them."""
        config = Config("exphil_outcome_config").set(
            imitation=imitation, value=value, beta=beta, cap=cap, warm_up=warm_up, seed=seed, shuffle=shuffle
        )
        metrics = empty(OutcomeMetrics)
        self._core.call(lib.exphil_trainer_step_outcome, self._handle, config, metrics)
        return read(OutcomeMetrics, metrics)

    def train(self, updates: int, *, progress: Optional[bool] = None) -> Iterator[Metrics]:
        """Updates as an iterator: for metrics in trainer.train(updates=1000).

        progress shows a tqdm bar, or lines where tqdm is missing; None shows it when standard error is a terminal.
        """
        updates = number(updates, "updates")
        shown = Progress(updates, progress)
        try:
            for _ in range(updates):
                metrics = self.step()
                shown.show(f"loss {metrics.loss:.4f}, epoch {metrics.epoch}")
                yield metrics
        finally:
            shown.close()

    def fit(
        self,
        updates: int,
        held_out: Dataset,
        *,
        every: int = 0,
        callback: Optional[Callable[[Score], Any]] = None,
        which: Code = Weights.NOW,
        frequencies: Optional[Dataset] = None,
        alone_most_frames: int = 0,
        progress: Optional[bool] = None,
        by: str = "nll",
        best: Optional[Path] = None,
        patience: int = 0,
        least_gain: float = 0.0,
    ) -> List[Score]:
        """Trains, and scores the weights on a held-out dataset after every so many updates (0: a tenth of them, rounded up)
        and after the last. All scores are given back, and each to the callback as it comes; where that returns True,
        training ends.

        best names a file for the weights of the best score: the lowest nll, loss, alone_nll or unexplained of the report (by),
        or the highest exact_accuracy, exact_change_accuracy, alone_accuracy or alone_change_accuracy. Of equal ones the first
        is kept. With patience training ends after so many scores without a gain of more than the share least_gain.

        Scoring changes no weight. It takes as long as evaluate does, whose settings these are: hold out little, or score
        seldom. Updates are counted from this call on.
        """
        self._handle
        expect(held_out, Dataset, "held_out")
        updates, every = number(updates, "updates"), number(every, "every")
        if every < 0:
            raise ValueError(f"every is {every}, must not be negative")
        every = every or max(1, -(-updates // 10))
        watch = Watch(by, patience, least_gain)
        scores: List[Score] = []
        for done, metrics in enumerate(self.train(updates, progress=progress), 1):
            if done % every and done != updates:
                continue
            report = self.evaluate(
                held_out, which=which, frequencies=frequencies, alone_most_frames=alone_most_frames
            )
            scores.append(Score(metrics, report))
            if watch.is_best(report) and best is not None and self._writes():
                with self.model(which) as model:
                    model.save(best)
            stop = callback(scores[-1]) if callback is not None else False
            if watch.over or (isinstance(stop, (bool, np.bool_)) and stop):
                break
        return scores

    # ---- what came of it ----

    def model(self, which: Code = Weights.NOW) -> Model:
        """A new model with the weights as they are now, or with their running average ("averaged")."""
        made = Model.__new__(Model)
        made._core = self._core
        made._handle = self._core.create(lib.exphil_trainer_model, self._handle, code(Weights, which, "which"))
        return made

    def set_notes(self, text: str) -> None:
        """From now on the weights that this trainer writes or gives carry this text (Model.notes)."""
        self._core.call(lib.exphil_trainer_notes_set, self._handle, c_text(text, "notes"))

    def save(self, path: Path) -> None:
        """Writes the weights to path, and to path + ".optimizer" all that resume needs."""
        self._core.call(lib.exphil_trainer_save, self._handle, path_bytes(path))

    def resume(self, path: Path) -> None:
        """Goes on where save was called, to the last bit. Model, data and settings must be the same."""
        self._core.call(lib.exphil_trainer_resume, self._handle, path_bytes(path))

    def evaluate(
        self,
        dataset: Dataset,
        *,
        which: Code = Weights.NOW,
        frequencies: Optional[Dataset] = None,
        alone_most_frames: int = 0,
    ) -> Report:
        """How well the weights predict a dataset, with this trainer's losses; alone_most_frames as in Model.evaluate."""
        expect(dataset, Dataset, "dataset")
        result = empty(Report)
        result.alone_most_frames = number(alone_most_frames, "alone_most_frames")
        self._core.call(
            lib.exphil_trainer_evaluate,
            self._handle,
            code(Weights, which, "which"),
            dataset._handle,
            dataset_pointer(frequencies, "frequencies"),
            result,
        )
        return read(Report, result)

    @property
    def optimizer(self) -> OptimizerInfo:
        """Updates done and the rate of the next. Any thread may ask, also during an update."""
        self._handle
        info = empty(OptimizerInfo)
        self._core.call(lib.exphil_optimizer_query, self._optimizer, info)
        return read(OptimizerInfo, info)

    @property
    def prefetcher(self) -> Optional[PrefetcherInfo]:
        """Batches and frames of an epoch, and who waited for whom; None without a dataset."""
        self._handle
        return None if self._prefetcher == ffi.NULL else prefetcher_info(self._core, self._prefetcher)

    def close(self) -> None:
        """Gives the trainer, its optimizer and its prefetcher up."""
        super().close()
        self._prefetcher, self._optimizer, self._half = ffi.NULL, None, None

    @property
    def sizes(self) -> Tuple[int, int, int, int]:
        """F, K, A and past actions of a batch for step_batch."""
        return self._sizes[:4]


class TrainerSettings(Trainer):
    """A trainer's settings, read and checked as Trainer reads them, of which nothing is made."""

    __slots__ = ("optimizer_config", "sampling", "config")

    def _open(
        self, model: Model, dataset: Optional[Dataset], optimizer: Config, sampling: Config, config: Config
    ) -> None:
        self.optimizer_config, self.sampling, self.config = optimizer, sampling, config
