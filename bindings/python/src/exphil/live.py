"""The live policy: it plays, and a thread of the library learns behind the game, from a person or from rewards."""
from __future__ import annotations

from functools import partial
from typing import Any, Mapping, NoReturn, Optional, cast

import numpy as np

from . import melee
from ._native import ffi, lib
from .arrays import Array, Ints, room, take
from .codes import Code, code
from .constants import LiveWay
from .context import context_config
from .dataset import Dataset, dataset_pointer
from .errors import make_error
from .handle import Config, Handle, Path, counted, expect, path_bytes
from .learner import Learner
from .model import Model
from .records import LiveInfo
from .rollout import each_of, shown
from .session import Session
from .structs import empty, read
from .trainer import TrainerSettings

_NULL = ffi.NULL
_step_row = lib.exphil_live_step_row
_step = lib.exphil_live_step
_reward = lib.exphil_live_reward

Settings = Mapping[str, Any]


def _belongs(live: Any, session: Any) -> None:
    """A live policy's session ends with it, and keeps it until then."""


class _SessionSettings(Session):
    """A session's settings, read as Session reads them, of which nothing is made."""

    __slots__ = ("config",)

    def _make(self, model: Model, config: Config) -> None:
        self.config = config


class _LearnerSettings(Learner):
    """The same of a learner."""

    __slots__ = ("config",)

    def _open(self, trainer: Any, teacher: Optional[Model], config: Config) -> None:
        self.config = config


def _settings(name: str, settings: Optional[Settings], *refused: str) -> Settings:
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise TypeError(f"{name} must be a dictionary of settings, not {type(settings).__name__}")
    for one in refused:
        if one in settings:
            raise ValueError(f"{name}: {one} is no setting of a live policy")
    return settings


def _trainer(config: Config, model: Model, way: int, settings: Settings) -> None:
    """Optimizer, trainer and sampling. Reinforcement has no sampling: the library refuses one that is given."""
    read = TrainerSettings(model, **settings)
    config.set(optimizer=config.keep(read.optimizer_config).struct, trainer=config.keep(read.config).struct)
    sampled = {name for name, _ in ffi.typeof("exphil_sampling").fields}
    if way == LiveWay.IMITATE or sampled & set(settings):
        config.set(sampling=config.keep(read.sampling).struct)


class Live(Handle):
    """One stream that is played while a thread of the library's own learns behind it; the game never waits.

    way "imitate": from what a person does who takes over, beside dataset, what the policy was taught by before. way
    "reinforce": from rewards, by PPO, near teacher if there is one; the model has a value head. Groups of settings are
    dictionaries: session has keywords of Session, trainer those of Trainer (optimizer, batches and losses; not seed, which is
    Live's, and no communicator), learner those of Learner, context device, cpu_isa, backend_path, memory_limit_bytes and
    threads of what learns (None: the CPU, one thread). All else is exphil_live_config (exphil/live.h), 0 and None being the
    library's defaults.

    step_row, step, reward, settle, save and resume are for one thread at a time; any thread may ask for info and model.
    """

    __slots__ = ("_played", "_actions", "_p_person", "_person", "_p_pad", "_pad")

    def __init__(
        self,
        model: Model,
        dataset: Optional[Dataset] = None,
        *,
        way: Code = LiveWay.IMITATE,
        teacher: Optional[Model] = None,
        share: float = 0.0,
        approved: float = 0.0,
        piece_frames: int = 0,
        updates: int = 0,
        time: int = 0,
        ring_frames: int = 0,
        rollback_frames: int = 0,
        path: Optional[Path] = None,
        save_pieces: int = 0,
        seed: int = 0,
        paced: bool = False,
        session: Optional[Settings] = None,
        trainer: Optional[Settings] = None,
        learner: Optional[Settings] = None,
        context: Optional[Settings] = None,
    ) -> None:
        expect(model, Model, "model")
        if teacher is not None:
            expect(teacher, Model, "teacher")
        config = Config("exphil_live_config").set(
            way=code(LiveWay, way, "way"),
            dataset=dataset_pointer(dataset, "dataset"),
            teacher=None if teacher is None else teacher._handle,
            share=share,
            approved=approved,
            piece_frames=piece_frames,
            updates=updates,
            time=time,
            ring_frames=ring_frames,
            rollback_frames=rollback_frames,
            path=None if path is None else path_bytes(path),
            save_pieces=save_pieces,
            seed=seed,
            paced=paced,
        )
        config.set(session=config.keep(_SessionSettings(model, **_settings("session", session)).config).struct)
        _trainer(config, model, config.struct.way, _settings("trainer", trainer, "dataset", "seed", "communicator"))
        if learner is not None:
            read = _LearnerSettings(cast(Any, None), **_settings("learner", learner, "trainer", "teacher"))
            config.set(learner=config.keep(read.config).struct)
        if context is not None:
            config.set(context=config.keep(context_config(**_settings("context", context))).struct)
        self._core = model._core
        self._handle = self._core.create(lib.exphil_live_create, model._handle, config)
        heads = self._open_session()._sizes[2]
        self._p_person, self._person = room("int32_t", (heads,), np.int32)
        self._p_pad, self._pad = room("exphil_pad", (1,), melee.PAD)

    def _about(self) -> str:
        info = self.info
        return f"{counted(info.frames, 'frame')}, {counted(info.updates, 'update')}{', learning ended' * bool(info.failed)}"

    def _open_session(self) -> Session:
        handle = self._handle
        made = Session.__new__(Session)
        made._core = self._core
        made._open(ffi.gc(lib.exphil_live_session(handle), partial(_belongs, handle)))
        self._played = made
        self._actions: Ints = made._actions[0]
        return made

    @property
    def session(self) -> Session:
        """The session that plays, for its arrays, logits, values and latency, with rollback_frames also for states to be saved
        and restored. It is stepped, reset and given weights by this object alone."""
        self._handle
        return self._open_session() if self._played.closed else self._played

    def _fail(self, status: int) -> NoReturn:
        if status == lib.EXPHIL_E_BUSY:
            raise make_error(status, "the live policy is in use on another thread")
        self.session._fail(status)

    # ---- a frame ----

    def step_row(self, floats: Any = None, ids: Any = None, person: Any = None) -> Ints:
        """One frame of any game: actions [A], what is to be pressed, an array that the next step overwrites. floats [F] and ids
        [K] as in Session.step_row.

        person None: the policy plays. Else [A], what a person presses: that acts, and is given back. InvalidError: a value
        is out of range; nothing has moved.
        """
        handle, played = self._handle, self._played
        if floats is not None or ids is not None:
            played._fill(floats, ids)
        presses = _NULL
        if person is not None:
            shape = self._person.shape
            self._person[...] = take(person, np.int32, (1, *shape) if np.ndim(person) == 2 else shape, "person")
            presses = self._p_person
        status = _step_row(handle, played._p_floats, played._p_ids, presses, played._p_actions)
        if status < 0:
            self._fail(status)
        return self._actions

    def step(self, frame: Any = None, person: Any = None) -> Array:
        """One frame of Melee: the pad for it, one record of melee.PAD that the next step overwrites. frame is a record of
        melee.FRAME (None: what stands in session.frames), person None or a record of melee.PAD, what a person presses: it is
        learnt from as the codec expresses it, and given back as it is."""
        handle, played = self._handle, self.session
        pads = played.pads
        if frame is not None:
            melee.copy_frames(played.frames, frame)
        presses = _NULL
        if person is not None:
            given = np.asarray(person)
            if given.dtype != melee.PAD or given.size != 1:
                raise TypeError("person must be one record of the type melee.PAD")
            self._pad[...] = given.reshape(1)
            presses = self._p_pad
        status = _step(handle, played._p_frames, presses, played._p_pads)
        if status < 0:
            self._fail(status)
        return pads.reshape(())

    def reward(self, reward: Any, end: Any, floats: Any = None, ids: Any = None) -> None:
        """What came of the last step: a reward, and End.GOES_ON or how the episode ended; the next row is then another's.

        Imitation: to be called where an episode ends; only end counts. Reinforcement: after every step, with the row that
        shows what came of it, as in Rollout.reward. A full chunk goes to the thread, and the next one begins.
        """
        handle = self._handle
        value, ended = each_of(reward, np.float32, (1,), "reward")[0], each_of(end, np.uint8, (1,), "end")[0]
        status = _reward(handle, float(value), int(ended), *shown(self._played, (1,), floats, ids))
        if status < 0:
            self._fail(status)

    # ---- what came of it ----

    @property
    def info(self) -> LiveInfo:
        """What was played and learnt so far. What ended learning is in failed and message: the game goes on without."""
        info = empty(LiveInfo)
        self._core.call(lib.exphil_live_query, self._handle, info)
        return read(LiveInfo, info)

    def settle(self) -> None:
        """Waits until all that was given is learnt from, and plays the newest weights. It raises what ended learning. With paced
        this is where new weights enter, and nowhere else. Ctrl-C is heard when it is done, here and in save and resume."""
        self._core.call(lib.exphil_live_settle, self._handle)

    def model(self) -> Model:
        """A model of the newest weights; it may be saved, played, and learnt with."""
        made = Model.__new__(Model)
        made._core = self._core
        made._handle = self._core.create(lib.exphil_live_model, self._handle)
        return made

    def save(self, path: Path) -> None:
        """Settles; then writes the weights to path, and to path + ".optimizer" all that resume needs, the person's frames among
        it. The dataset, the game, and the state of the session are yours to keep."""
        self._core.call(lib.exphil_live_save, self._handle, path_bytes(path))

    def resume(self, path: Path) -> None:
        """Before the first step: goes on where save was called, with the same settings, model and dataset. After a failure
        nothing has changed."""
        self._core.call(lib.exphil_live_resume, self._handle, path_bytes(path))

    def close(self) -> None:
        """Ends learning, within an update, and gives the session up. What was not saved is lost."""
        if not self.closed:
            self._played.close()
        super().close()


__all__ = ["Live"]
