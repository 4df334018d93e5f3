"""The rollout: a session that plays, and keeps what it plays for a learner."""
from __future__ import annotations

from functools import partial
from typing import Any, List, NoReturn, Optional, Sequence, Tuple

import numpy as np

from ._native import ffi, lib
from .arrays import Array, Ints, number, pointer, room, take
from .codes import Code, code
from .constants import BlockWeights, Deliver
from .errors import call, make_error
from .handle import Config, Handle, expect
from .model import Model
from .records import BlockInfo
from .session import HeadPlay, Session, session_config
from .spec import Spec
from .structs import empty, read
from .world import World

_NULL = ffi.NULL
_step = lib.exphil_rollout_step
_reward = lib.exphil_rollout_reward


def each_of(value: Any, dtype: Any, count: Tuple[int, ...], name: str) -> Array:
    """One number for each stream; that of one stream may come as a number."""
    return take([value] if count == (1,) and np.ndim(value) == 0 else value, dtype, count, name)


def shown(played: Session, count: Tuple[int, ...], floats: Any, ids: Any) -> List[Any]:
    """Rows that show what came of a step, [B,F] and [B,K], of one stream also [F] and [K], as the library takes them."""
    rows = [_NULL, _NULL]
    for i, (value, kind, dtype) in enumerate(((floats, "float", np.float32), (ids, "int32_t", np.int32))):
        if value is not None:
            size = played._sizes[i]
            shape = (size,) if count == (1,) and np.ndim(value) == 1 else (*count, size)
            rows[i] = pointer(kind, take(value, dtype, shape, "ids" if i else "floats"))
    return rows


def _belongs(rollout: Any, session: Any) -> None:
    """A rollout's session ends with it, and keeps it until then."""


class Rollout(Handle):
    """A session that records what it does, in chunks of time rows (0: 64) for each of its streams. Its model has a value head.

    The other settings are those of Session; actions must be drawn, so that deterministic ones are refused, as conditions are.
    seed is that of the actions, episode_seed (None: the same) that of the episodes of a world. One thread at a time.
    """

    __slots__ = ("_played", "_p_reward", "_p_end", "_rewards", "_ends")

    def __init__(
        self,
        model: Model,
        *,
        time: int = 0,
        episode_seed: Optional[int] = None,
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
        session = session_config(
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
        config = Config("exphil_rollout_config").set(
            time=time, seed=session.struct.seed if episode_seed is None else number(episode_seed, "episode_seed", "uint64_t")
        )
        self._core = model._core
        self._handle = self._core.create(lib.exphil_rollout_create, model._handle, session, config)
        self._played = self._session()
        streams = self._played._streams
        self._p_reward, self._rewards = room("float", (streams,), np.float32)
        self._p_end, self._ends = room("uint8_t", (streams,), np.uint8)

    def _about(self) -> str:
        return self._played._about()

    def _session(self) -> Session:
        handle = self._handle
        made = Session.__new__(Session)
        made._core = self._core
        made._open(ffi.gc(lib.exphil_rollout_session(handle), partial(_belongs, handle)))
        return made

    @property
    def session(self) -> Session:
        """The session that plays, for its arrays, logits, values and latency, and to override actions. It is stepped, reset and
        restored by the rollout alone."""
        self._handle
        if self._played.closed:
            self._played = self._session()
        return self._played

    def _fail(self, status: int) -> NoReturn:
        if status == lib.EXPHIL_E_BUSY:
            raise make_error(status, "the rollout is in use on another thread")
        self.session._fail(status)

    def step(self, floats: Any = None, ids: Any = None) -> Ints:
        """Session.step_row, recorded. StateError: the chunk is full, or the frame before has no reward yet."""
        handle, played = self._handle, self._played
        if floats is not None or ids is not None:
            played._fill(floats, ids)
        status = _step(handle, played._p_floats, played._p_ids, played._p_actions)
        if status < 0:
            self._fail(status)
        return played._actions

    def reward(self, reward: Any, end: Any, floats: Any = None, ids: Any = None) -> bool:
        """What came of the last step: reward [B] and end [B] (End), of one stream also as numbers. True: the chunk is full.

        floats [B,F] and ids [B,K] are the rows that show what came of it, also of a stream that was cut off. They are wanted
        without a delay, where a stream is cut off or the chunk becomes full. After an end the next row is another episode's.
        """
        handle, count = self._handle, self._rewards.shape
        self._rewards[...] = each_of(reward, np.float32, count, "reward")
        self._ends[...] = each_of(end, np.uint8, count, "end")
        status = _reward(handle, self._p_reward, self._p_end, *shown(self._played, count, floats, ids))
        if status < 0:
            self._fail(status)
        return bool(status == lib.EXPHIL_END)

    def run(self, world: World) -> None:
        """Plays a world until the chunk is full; its streams are this rollout's. The first call starts its episodes, which go on
        from chunk to chunk. What a world raises comes out here, and the rollout is then to be closed."""
        expect(world, World, "world")
        handle, played = self._handle, world._handle
        world._play((handle, played), self._core.call, lib.exphil_rollout_run, handle, played)

    # ---- chunks of other processes ----

    def block_save(self) -> bytes:
        """A full chunk as bytes, for the learner of another process: Rollout.block_take. adopt begins the next chunk.
        StateError: it is not full."""
        block = bytearray(int(lib.exphil_rollout_block_size(self._handle)))
        target = ffi.from_buffer(block, require_writable=True)
        self._core.call(lib.exphil_rollout_block_save, self._handle, target, len(block))
        return bytes(block)

    def block_take(self, block: Any, first_stream: int = 0, *, weights: Code = BlockWeights.CURRENT) -> bool:
        """The streams of another process's block become streams of this chunk, from first_stream on, instead of playing. True: the
        chunk is full, for Learner.update.

        block: bytes from anybody; all of it is checked before anything counts. FormatError: it is damaged, or a number is out
        of range. MismatchError: another layout, model, delay, time or temperature, or other weights than those that this
        rollout has, unless weights is BlockWeights.ANY.
        """
        source = ffi.from_buffer(block)
        which = code(BlockWeights, weights, "weights")
        first = number(first_stream, "first_stream")
        status = self._core.call(lib.exphil_rollout_block_take, self._handle, first, which, source, len(source))
        return bool(status == lib.EXPHIL_END)

    def adopt(self, model: Optional[Model] = None) -> None:
        """Between two chunks: drops the one that is there, plays these weights from here on (None: those that it has), and begins
        the next. Learner.update does so by itself."""
        if model is not None:
            expect(model, Model, "model")
        self._core.call(lib.exphil_rollout_adopt, self._handle, ffi.NULL if model is None else model._handle)

    def close(self) -> None:
        """Gives the rollout and its session up."""
        if not self.closed:
            self._played.close()
        super().close()


def block_info(block: Any) -> BlockInfo:
    """What a block of Rollout.block_save says of itself. FormatError: it is none, or damaged."""
    source = ffi.from_buffer(block)
    info = empty(BlockInfo)
    call(lib.exphil_block_query, source, len(source), info)
    return read(BlockInfo, info)


__all__ = ["Rollout", "block_info"]
