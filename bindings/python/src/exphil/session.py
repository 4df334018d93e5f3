"""The session: a model plays, one frame at a time. step_row and step are the calls of a 60 Hz loop."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Optional, Sequence

import numpy as np

from . import melee
from ._native import ffi, lib
from .arrays import Array, Floats, Ints, number, room, take
from .codes import Code, code
from .constants import Deliver, Mode
from .errors import make_error, new_error, text
from .handle import Config, Handle, counted, expect, own, put
from .model import Model
from .records import SessionInfo
from .spec import HeadSpec, Spec, spec_pointer
from .structs import empty, read
from .told import integers

_NULL = ffi.NULL
_step_row = lib.exphil_session_step_row
_step = lib.exphil_session_step


@dataclass(frozen=True)
class HeadPlay:
    """How one head decides: by chance at this temperature (0: 1), or deterministically its most likely value.

    Deterministic bits go on above press and off below release (0: 0.5).
    """

    temperature: float = 0.0
    deterministic: bool = False
    press: float = 0.0
    release: float = 0.0


def _heads_pointer(heads: Optional[Sequence[HeadPlay]], specs: Sequence[HeadSpec], config: Config) -> Any:
    if heads is None:
        return _NULL
    if len(heads) != len(specs):
        raise ValueError(f"heads has {len(heads)} entries, the model has {len(specs)} heads")
    made = config.keep(ffi.new("exphil_head_play[]", len(heads)))
    for to, head in zip(made, heads):
        expect(head, HeadPlay, "each of heads")
        for name, value in vars(head).items():
            put(to, "exphil_head_play", name, value)
    return made


def session_config(
    model: Model,
    heads: Optional[Sequence[HeadPlay]],
    spec: Optional[Spec],
    delay_frames: Optional[int],
    mode: Optional[Code],
    deliver: Code,
    conditions: Optional[Sequence[int]],
    **rest: Any,
) -> Config:
    """A native exphil_session_config; what is None comes from the model."""
    expect(model, Model, "model")
    config = Config("exphil_session_config")
    config.set(
        heads=_heads_pointer(heads, model.spec.heads, config),
        spec=spec_pointer(config, spec),
        delay_frames=None if delay_frames is None else config.keep(
            ffi.new("int32_t *", number(delay_frames, "delay_frames", "int32_t"))),
        mode=None if mode is None else config.keep(ffi.new("int32_t *", code(Mode, mode, "mode"))),
        deliver=code(Deliver, deliver, "deliver"),
        **rest,
    )
    if conditions is not None:
        config.set(conditions=integers(config, conditions, "conditions"), condition_count=len(conditions))
    return config


class Session(Handle):
    """Plays streams players at once (0: 1). spec, delay_frames and mode say what the host will run with; None takes the
    model's, anything else is checked against it; of a model with several delays it chooses one. conditions: what it plays as, one
    value for each condition of the model (None: nothing is known). seed is that of the sampling noise, deterministic serves
    all heads. One that is adoptable takes new weights between two steps.

    The arrays floats [B,F], ids [B,K], actions [B,A] (and frames [B], pads [B] for Melee) belong to the session: write
    inputs there, call step_row() or step(), read the answer. Neither makes anything new. One thread at a time.
    """

    __slots__ = (
        "_p_floats", "_p_ids", "_p_actions", "_p_logits", "_p_value", "_p_frames", "_p_pads", "_frames", "_pads",
        "_floats", "_ids", "_actions", "_logits", "_value", "_streams", "_sizes",
    )  # fmt: skip

    def __init__(
        self,
        model: Model,
        *,
        heads: Optional[Sequence[HeadPlay]] = None,
        spec: Optional[Spec] = None,
        delay_frames: Optional[int] = None,
        mode: Optional[Code] = None,
        seed: int = 0,
        streams: int = 0,
        deadline_ns: int = 0,
        deterministic: bool = False,
        deliver: Code = Deliver.DUE,
        conditions: Optional[Sequence[int]] = None,
        adoptable: bool = False,
    ) -> None:
        config = session_config(
            model,
            heads,
            spec,
            delay_frames,
            mode,
            deliver,
            conditions,
            seed=seed,
            streams=streams,
            deadline_ns=deadline_ns,
            deterministic=deterministic,
            adoptable=adoptable,
        )
        self._make(model, config)

    def _make(self, model: Model, config: Config) -> None:
        self._core = model._core
        self._open(self._core.create(lib.exphil_session_create, model._handle, config))

    def _open(self, handle: Any) -> None:
        self._handle = handle
        info = self.info
        streams = self._streams = info.streams
        self._sizes = info.float_count, info.id_count, info.head_count, info.logit_count
        self._p_floats, self._floats = room("float", (streams, info.float_count), np.float32)
        self._p_ids, self._ids = room("int32_t", (streams, info.id_count), np.int32)
        self._p_actions, self._actions = room("int32_t", (streams, info.head_count), np.int32)
        self._p_logits, self._logits = room("float", (streams, info.logit_count), np.float32)
        self._p_value, self._value = room("float", (streams,), np.float32)
        self._frames: Optional[Array] = None
        self._pads: Optional[Array] = None

    def _about(self) -> str:
        floats, ids, heads, _ = self._sizes
        return (f"{counted(self._streams, 'stream')}, {counted(floats, 'float')}, {counted(ids, 'id')}, "
                f"{counted(heads, 'head')}")

    def clone(self) -> "Session":
        """A second session with the same model, settings and state."""
        made = Session.__new__(Session)
        made._core = self._core
        made._open(self._core.create(lib.exphil_session_clone, self._handle))
        return made

    # ---- playing ----

    def step_row(self, floats: Any = None, ids: Any = None, noise: Any = None) -> Ints:
        """One frame of any game: actions [B,A], the session's own array, overwritten by the next step.

        floats [B,F] and ids [B,K] are copied into the session's arrays, both of them (ids of a model without any may be
        left out): what an earlier frame left there must not slip into this one. Without arguments: what stands in the
        arrays. With one stream the first dimension may be left out. noise, uniform in (0,1), [B,L] for L logits,
        replaces the session's own.
        """
        if floats is not None or ids is not None:
            self._fill(floats, ids)
        status = _step_row(
            self._handle, self._p_floats, self._p_ids, _NULL if noise is None else self._noise(noise), self._p_actions
        )
        if status < 0:
            self._fail(status)
        return self._actions

    def _fill(self, floats: Any, ids: Any) -> None:
        if floats is not None:
            if ids is None and self._sizes[1]:
                raise self._half("ids", self._sizes[1])
            self._put(self._floats, floats, "floats")
        if ids is not None:
            if floats is None and self._sizes[0]:
                raise self._half("floats", self._sizes[0])
            self._put(self._ids, ids, "ids")

    def _half(self, name: str, count: int) -> ValueError:
        return ValueError(
            f"{name} are missing, the model has {count}: give floats and ids, or fill the session's own arrays and give none"
        )

    def step(self, frames: Any = None) -> Array:
        """One frame of Melee: pads [B], the session's own array of melee.PAD.

        frames [B] of melee.FRAME are copied in; None: what stands in the session's frames.
        """
        if frames is not None:
            melee.copy_frames(self.frames, frames)
        elif self._frames is None:
            self._open_melee()
        status = _step(self._handle, self._p_frames, self._p_pads)
        if status < 0:
            self._fail(status)
        return self.pads

    def _open_melee(self) -> None:
        self._handle
        self._p_frames, self._frames = room("exphil_melee_frame", (self._streams,), melee.FRAME)
        self._p_pads, self._pads = room("exphil_pad", (self._streams,), melee.PAD)
        melee.begin(self._frames)

    def _put(self, target: Array, value: Any, name: str) -> None:
        """Copies a row in. The quick way is for arrays of the right type; all else is looked at closely."""
        if type(value) is not np.ndarray or value.dtype != target.dtype:
            shape = target.shape[1:] if self._streams == 1 and np.ndim(value) == 1 else target.shape
            value = take(value, target.dtype, shape, name)
        if value.shape != target.shape and not (self._streams == 1 and value.shape == target.shape[1:]):
            raise ValueError(f"{name} has shape {value.shape}, must be {target.shape}")
        target[...] = value

    def _noise(self, noise: Any) -> Any:
        shape = self._logits.shape[1:] if self._streams == 1 and np.ndim(noise) == 1 else self._logits.shape
        return ffi.from_buffer("float[]", take(noise, np.float32, shape, "noise"))

    def _fail(self, status: int) -> NoReturn:
        """The session keeps the text of its last failure; a busy one cannot be asked."""
        error = new_error()
        told = lib.exphil_session_error(self._handle, error)
        if told == status and error.status == status:
            # The library names its own function.
            message = text(error.message)
            for name in ("exphil_session_step_row", "exphil_live_step_row"):
                message = message.replace(name, "step_row")
            raise make_error(status, message, error.native_code)
        raise make_error(
            status,
            "the session is in use on another thread" if status == lib.EXPHIL_E_BUSY
            else text(lib.exphil_status_name(status)),
        )

    def _check(self, status: int) -> None:
        if status < 0:
            self._fail(status)

    def reset(self, stream: int = -1) -> None:
        """A stream (-1: all of them) starts an episode: zero state, neutral queue; the noise goes on."""
        self._check(lib.exphil_session_reset(self._handle, number(stream, "stream")))

    def conditions_set(self, values: Sequence[int], stream: int = -1) -> None:
        """What a stream (-1: all of them) plays as from the next step on, one value for each condition of the model."""
        config = Config("exphil_session_config")
        self._check(
            lib.exphil_session_conditions_set(
                self._handle, number(stream, "stream"), integers(config, values, "values"), len(values)
            )
        )

    def override(self, action: Any, stream: int = 0) -> None:
        """Replaces the newest decided action [A] by what was really done."""
        values = take(action, np.int32, (self._sizes[2],), "action")
        self._check(lib.exphil_session_override(self._handle, number(stream, "stream"), ffi.from_buffer("int32_t[]", values)))

    def adopt(self, model: Model) -> Optional[Model]:
        """The next steps play the weights of this model (Model.prepare), with state, queue and random streams as they are: what
        is restored from before plays the weights of its frame, and meets these where it met them first. Gives the model whose
        place they have taken, if there is one. StateError: the session was not made adoptable."""
        expect(model, Model, "model")
        before = ffi.new("exphil_model **")
        self._check(lib.exphil_session_adopt(self._handle, model._handle, before))
        return None if before[0] == _NULL else model._child(own("exphil_model", before[0]))

    # ---- its arrays ----

    @property
    def floats(self) -> Floats:
        """[B,F], what the next step_row reads."""
        return self._floats

    @property
    def ids(self) -> Ints:
        """[B,K], what the next step_row reads."""
        return self._ids

    @property
    def actions(self) -> Ints:
        """[B,A], what the last step_row answered."""
        return self._actions

    @property
    def logits(self) -> Floats:
        """[B,L], logits of the last step, heads in order; fetched when asked for."""
        count = self._sizes[3]
        for stream in range(self._streams):
            at = self._p_logits + stream * count
            self._check(lib.exphil_session_logits(self._handle, stream, at, count))
        return self._logits

    @property
    def value(self) -> Floats:
        """[B], what the value head said in the last step; fetched when asked for. StateError: the model has none."""
        for stream in range(self._streams):
            self._check(lib.exphil_session_value(self._handle, stream, self._p_value + stream))
        return self._value

    @property
    def frames(self) -> Array:
        """[B] of melee.FRAME, what the next step reads."""
        if self._frames is None:
            self._open_melee()
        assert self._frames is not None
        return self._frames

    @property
    def pads(self) -> Array:
        """[B] of melee.PAD, what the last step answered."""
        if self._pads is None:
            self._open_melee()
        assert self._pads is not None
        return self._pads

    # ---- state ----

    @property
    def state_size(self) -> int:
        """Bytes of the state of one stream."""
        return int(lib.exphil_session_state_size(self._handle))

    def state_save(self, stream: int = 0) -> bytes:
        """All that a step of a stream depends on. Good for any session on the same weights and settings."""
        state = bytearray(self.state_size)
        target = ffi.from_buffer(state, require_writable=True)
        self._check(lib.exphil_session_state_save(self._handle, number(stream, "stream"), target, len(state)))
        return bytes(state)

    def state_restore(self, state: Any, stream: int = 0) -> None:
        """Sets the state of a stream; MismatchError when it is not of these weights and settings."""
        source = ffi.from_buffer(state)
        self._check(lib.exphil_session_state_restore(self._handle, number(stream, "stream"), source, len(source)))

    @property
    def info(self) -> SessionInfo:
        """Steps, their latency, and sizes."""
        info = empty(SessionInfo)
        self._core.call(lib.exphil_session_query, self._handle, info)
        return read(SessionInfo, info)
