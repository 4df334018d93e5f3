"""Worlds: games that can be stepped, many at once. The library has some; any Python object may be one."""
from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from ._native import ffi, lib
from .arrays import Array, Floats, Ints, number, room, take, view
from .constants import HeadKind
from .context import Context, context_or_default
from .envs import Envs
from .errors import make_error
from .handle import Config, Handle, c_text, counted, expect, keep_raised
from .model import Model
from .records import Record
from .spec import Spec, read_spec, spec_pointer
from .structs import empty, read

if TYPE_CHECKING:
    from .env import Env

Result = TypeVar("Result")

# Any number but 0 ends the library's call; the exception says the rest.
_FAILED = 5
_LANES_MOST, _SEATS_MOST = 4096, 8
# In front of what save gave, in the library's block: how many bytes that is.
_LENGTH_BYTES = 8


class _Game:
    """What the library's calls reach: a Python object, and arrays over the memory that it is shown.

    owner keeps that memory alive, so that an array may be kept longer than the call; None: it is gone after the call, and
    the object is shown copies.
    """

    __slots__ = ("game", "seats", "sizes", "most", "owner", "seen")

    def __init__(self, game: Any, seats: int, spec: Spec, most: int) -> None:
        self.game, self.seats, self.most = game, seats, most
        self.sizes = spec.float_count, len(spec.ids), len(spec.heads)
        self.forget()

    def forget(self) -> None:
        """Lets the memory of the last play go."""
        self.owner: Any = None
        self.seen: Optional[Tuple[Any, Tuple[Array, ...]]] = None

    def rows(self, count: int, floats: Any, ids: Any) -> Tuple[Array, ...]:
        """What a game writes its rows to."""
        return (view(self.owner, floats, (count, self.sizes[0]), np.float32, True),
                view(self.owner, ids, (count, self.sizes[1]), np.int32, True))

    def frame(self, count: int, actions: Any, floats: Any, ids: Any, reward: Any, end: Any) -> Tuple[Array, ...]:
        """What a frame of so many lanes is made with."""
        streams = count * self.seats
        return (view(self.owner, actions, (streams, self.sizes[2]), np.int32), *self.rows(streams, floats, ids),
                view(self.owner, reward, (streams,), np.float32, True), view(self.owner, end, (count,), np.uint8, True))

    def show(self, call: Callable[..., Any], place: Tuple[int, ...], arrays: Tuple[Array, ...]) -> int:
        """Calls the game with arrays, or with copies whose values then go where they belong."""
        if self.owner is not None:
            call(*place, *arrays)
            return 0
        copies = [array.copy() for array in arrays]
        call(*place, *copies)
        for to, copy in zip(arrays, copies):
            if to.flags.writeable:
                to[...] = copy
        return 0


@ffi.def_extern(error=_FAILED, onerror=keep_raised)  # type: ignore[misc]
def exphil_py_world_reset(user: Any, lane: int, seed: int, floats: Any, ids: Any) -> int:
    """A new episode."""
    game: _Game = ffi.from_handle(user)
    return game.show(game.game.reset, (lane, seed), game.rows(game.seats, floats, ids))


@ffi.def_extern(error=_FAILED, onerror=keep_raised)  # type: ignore[misc]
def exphil_py_world_step(user: Any, first: int, count: int, *pointers: Any) -> int:
    """A frame of some lanes. It is the same memory each time: the arrays are made once."""
    game: _Game = ffi.from_handle(user)
    seen, key = game.seen, (count, *pointers)
    if seen is None or seen[0] != key:
        seen = game.seen = key, game.frame(*key)
    return game.show(game.game.step, (first, count), seen[1])


@ffi.def_extern(error=_FAILED, onerror=keep_raised)  # type: ignore[misc]
def exphil_py_world_save(user: Any, lane: int, state: Any) -> int:
    """A lane's game as bytes, behind their number."""
    game: _Game = ffi.from_handle(user)
    saved = bytes(memoryview(game.game.save(lane)))
    if len(saved) > game.most:
        raise ValueError(f"save gave {len(saved)} bytes, state_bytes is {game.most}")
    block = len(saved).to_bytes(_LENGTH_BYTES, "little") + saved + bytes(game.most - len(saved))
    ffi.memmove(state, block, len(block))
    return 0


@ffi.def_extern(error=_FAILED, onerror=keep_raised)  # type: ignore[misc]
def exphil_py_world_load(user: Any, lane: int, state: Any) -> int:
    """What save gave."""
    game: _Game = ffi.from_handle(user)
    block = bytes(ffi.buffer(state, _LENGTH_BYTES + game.most))
    length = int.from_bytes(block[:_LENGTH_BYTES], "little")
    if length > game.most:
        raise ValueError(f"the saved game has {length} bytes, state_bytes is {game.most}")
    game.game.load(lane, block[_LENGTH_BYTES : _LENGTH_BYTES + length])
    return 0


def _expect_methods(thing: Any, must: str, *names: str) -> None:
    for name in names:
        if not callable(getattr(thing, name, None)):
            raise TypeError(f"{must} have {name}: {type(thing).__name__} has not")


def _end(destroy: Any, kept: Any, world: Any) -> None:
    """Ends a native world; kept is what it needed. When the interpreter ends, there are no other names left."""
    destroy(world)


def _own(world: Any, *kept: Any) -> Any:
    """A handle that ends its world in the end, and keeps what that needs."""
    return ffi.gc(world, partial(_end, lib.exphil_world_destroy, kept))


class World(Handle):
    """A game that can be stepped, in lanes: so many games at once, each with seats players. A stream is one player: lane l, seat s
    is stream l * seats + s.

    game is the name of one of the library's ("cartpole", "cartpole-blind", "pong", "pong-two": exphil/learn.h), or an object with

        reset(lane, seed, floats, ids)                              a new episode, which follows from seed alone
        step(first, count, actions, floats, ids, reward, end)       a frame of lanes first .. first + count - 1

    that writes into the arrays that it is given: floats [players,F] and ids [players,K] (the rows of spec), reward [players], end
    [lanes] (exphil.End), of these lanes alone; actions [players,A] are to be read. They are the library's own memory, and the
    next call has other values in them. An object that also has save(lane) -> bytes, at most state_bytes of them, and
    load(lane, bytes) can be saved with a learner. What a call raises comes out of whatever played the world.

    lanes is 1 to 4096, seats 1 to 8. One thread at a time.
    """

    __slots__ = ("_context", "_lock", "_game", "_spec", "_arrays", "_limits")

    def __init__(
        self,
        game: Any,
        lanes: int = 1,
        *,
        spec: Optional[Spec] = None,
        seats: int = 1,
        state_bytes: int = 0,
        context: Optional[Context] = None,
    ) -> None:
        lanes, seats, most = number(lanes, "lanes"), number(seats, "seats"), number(state_bytes, "state_bytes")
        parent = context_or_default(context)
        self._core = parent._core
        if isinstance(game, str):
            if spec is not None or seats != 1 or most:
                raise TypeError("a world of the library has its own spec, seats and state_bytes")
            made = ffi.new("exphil_world *")
            self._core.call(lib.exphil_world_create, parent._handle, c_text(game, "game"), lanes, made)
            self._open(parent._handle, _own(made), None, threading.Lock())
            return
        _expect_methods(game, "game must be the name of a world, or", "reset", "step", *(("save", "load") if most else ()))
        for name, value, limit in (("lanes", lanes, _LANES_MOST), ("seats", seats, _SEATS_MOST)):
            if not 1 <= value <= limit:
                raise ValueError(f"{name} is {value}, must be 1..{limit}")
        if not 0 <= most < 1 << 30:
            raise ValueError(f"state_bytes is {most}, must be 0..{(1 << 30) - 1}")
        self._make(parent, game, lanes, spec, seats, most)

    def _make(self, parent: Context, game: Any, lanes: int, spec: Optional[Spec], seats: int, most: int) -> None:
        """A world whose calls reach a Python object."""
        config = Config("exphil_world")
        native = spec_pointer(config, spec)
        if spec is None:
            raise TypeError("spec is missing: an exphil.Spec says what a row and an action of the game are")
        dataset = Config("exphil_dataset_config").set(spec=native)
        self._core.create(lib.exphil_dataset_create, parent._handle, dataset)  # which says what is wrong with a spec
        shown = _Game(game, seats, spec, most)
        config.set(
            user=config.keep(ffi.new_handle(shown)),
            spec=native,
            lanes=lanes,
            seats=seats,
            state_bytes=_LENGTH_BYTES + most if most else 0,
            reset=lib.exphil_py_world_reset,
            step=lib.exphil_py_world_step,
            save=lib.exphil_py_world_save if most else None,
            load=lib.exphil_py_world_load if most else None,
        )
        self._open(parent._handle, _own(config.struct, config), shown, threading.Lock())

    def _open(self, context: Any, handle: Any, game: Optional[_Game], lock: Any) -> None:
        self._context, self._handle, self._game, self._lock = context, handle, game, lock
        self._spec = read_spec(handle.spec)
        self._arrays: Optional[Dict[str, Tuple[Any, Array]]] = None
        # Values of a head: classes, or bits together.
        self._limits = [1 << head.count if head.kind == HeadKind.BERNOULLI else head.count for head in self._spec.heads]

    def _about(self) -> str:
        return f"{self._spec.layout}, {counted(self.lanes, 'lane')}, {counted(self.seats, 'seat')}"

    @classmethod
    def of(
        cls, envs: Sequence[Any], *, name: Optional[str] = None, state_bytes: int = 0, context: Optional[Context] = None
    ) -> "World":
        """A world whose lanes are environments of Gymnasium's interface: reset(seed=) -> (observation, info), step(action) ->
        (observation, reward, terminated, truncated, info), observation_space and action_space.

        Observations may be Box, MultiBinary (floats, as they are: bring them near 1), Discrete, MultiDiscrete (ids), and Dict and
        Tuple of these. Actions may be Discrete, MultiDiscrete (a head for each number) or MultiBinary. name is that of the
        layout (None: the environment's own). With state_bytes the environments have save() -> bytes and load(bytes).
        """
        lanes = Envs(envs, name)
        for env in lanes.envs if state_bytes else ():
            _expect_methods(env, "an environment must", "save", "load")
        return cls(lanes, len(lanes.envs), spec=lanes.spec, state_bytes=state_bytes, context=context)

    def against(self, opponents: Union[Model, Sequence[Model]], seed: int = 0) -> "World":
        """The same lanes with one seat: the other of two is played by policies that do not learn. Lane l is played against
        opponents[l % n], in the first seat where l // n is even and in the second elsewhere. seed: of their draws.

        This world keeps the games, and is played by nobody else as long as the other lives.
        """
        models = [opponents] if isinstance(opponents, Model) else list(opponents)
        for model in models:
            expect(model, Model, "each of opponents")
        native = ffi.new("exphil_model *[]", [model._handle for model in models])
        handle, made = self._handle, ffi.new("exphil_world *")
        drawn = number(seed, "seed", "uint64_t")
        self._core.call(lib.exphil_world_against, self._context, handle, native, len(models), drawn, made)
        against = World.__new__(World)
        against._core = self._core
        against._open(self._context, _own(made, handle), self._game, self._lock)
        return against

    def opponent(self, index: int = 0, model: Optional[Model] = None) -> Record:
        """What came of the episodes against an opponent since the last call, in a world that against() made. model takes its place,
        between two frames, and goes on with the state that there is."""
        if model is not None:
            expect(model, Model, "model")
        record = empty(Record)
        self._play(None, self._core.call, lib.exphil_world_opponent, self._handle, number(index, "index"),
                   ffi.NULL if model is None else model._handle, record)
        return read(Record, record)

    def env(self) -> "Env":
        """This world, of one lane and one seat, as an environment of Gymnasium's interface; one of gymnasium.Env's class where that
        is installed."""
        from .env import Env

        return Env(self)

    # ---- playing it ----

    def _play(self, owner: Any, call: Callable[..., Result], *arguments: Any) -> Result:
        """Makes a call that plays this world, which nobody else does meanwhile. owner keeps the memory that its rows are in; None:
        that is gone after the call."""
        self._handle
        if not self._lock.acquire(blocking=False):
            raise make_error(lib.EXPHIL_E_BUSY, "the world is in use")
        game = self._game
        try:
            if game is not None:
                game.owner = owner
            return call(*arguments)
        finally:
            if game is not None:
                game.forget()
            self._lock.release()

    def _own_arrays(self) -> Dict[str, Tuple[Any, Array]]:
        """Where reset and step write, made when they are first wanted."""
        if self._arrays is None:
            floats, ids, heads = self._spec.float_count, len(self._spec.ids), len(self._spec.heads)
            self._arrays = {
                "floats": room("float", (self.streams, floats), np.float32),
                "ids": room("int32_t", (self.streams, ids), np.int32),
                "actions": room("int32_t", (self.streams, heads), np.int32),
                "reward": room("float", (self.streams,), np.float32),
                "end": room("uint8_t", (self.lanes,), np.uint8),
            }
        return self._arrays

    def _ask(self, owner: Any, what: str, *arguments: Any) -> None:
        """Calls one of the world's own functions."""
        world = self._handle
        code = self._play(owner, getattr(world, what), world.user, *arguments)
        self._core.after(0, None)
        if code:
            raise make_error(lib.EXPHIL_E_IO, f"the world's {what} failed with {code}")

    def _lane(self, lane: int) -> int:
        lane, lanes = number(lane, "lane"), self.lanes
        if not 0 <= lane < lanes:
            raise ValueError(f"lane is {lane}, must be 0..{lanes - 1}")
        return lane

    def reset(self, lane: int, seed: int = 0) -> Tuple[Floats, Ints]:
        """A new episode, for a host that plays by itself: floats [seats,F] and ids [seats,K] of its first row, parts of this
        world's arrays."""
        first, arrays = self._lane(lane) * self.seats, self._own_arrays()
        (p_floats, floats), (p_ids, ids) = arrays["floats"], arrays["ids"]
        self._ask((p_floats, p_ids, self._handle), "reset", lane, number(seed, "seed", "uint64_t"),
                  p_floats + first * floats.shape[1], p_ids + first * ids.shape[1])
        return floats[first : first + self.seats], ids[first : first + self.seats]

    def step(self, actions: Any) -> Tuple[Floats, Ints, Floats, Array]:
        """A frame of all lanes: actions [streams,A] in; floats [streams,F], ids [streams,K], reward [streams] and end [lanes] out,
        this world's own arrays, overwritten by the next step. A lane that has ended is reset before it is stepped again."""
        arrays = self._own_arrays()
        given, to = take(actions, np.int32, (self.streams, len(self._limits)), "actions"), arrays["actions"][1]
        if (given < 0).any() or (given >= self._limits).any():
            raise ValueError("actions has a value that its head does not have")
        to[...] = given
        pointers = [arrays[name][0] for name in ("actions", "floats", "ids", "reward", "end")]
        self._ask((pointers, self._handle), "step", 0, self.lanes, *pointers)
        return arrays["floats"][1], arrays["ids"][1], arrays["reward"][1], arrays["end"][1]

    def save(self, lane: int) -> bytes:
        """The game of a lane; UnsupportedError where it cannot be saved."""
        lane, size = self._lane(lane), self._saved_bytes()
        state = bytearray(size)
        self._ask(None, "save", lane, ffi.from_buffer(state, require_writable=True))
        return bytes(state)

    def load(self, lane: int, state: Any) -> None:
        """Sets the game of a lane to one that save gave, of any lane."""
        lane, size = self._lane(lane), self._saved_bytes()
        data = ffi.from_buffer(state)
        if len(data) != size:
            raise ValueError(f"state has {len(data)} bytes, must have {size}")
        self._ask(None, "load", lane, data)

    def _saved_bytes(self) -> int:
        if not self.state_bytes:
            raise make_error(lib.EXPHIL_E_UNSUPPORTED, "the world cannot be saved: it has no state_bytes")
        return self.state_bytes

    # ---- what it is ----

    @property
    def floats(self) -> Floats:
        """[streams,F], rows that reset and step have written, for a host that plays by itself."""
        self._handle
        return self._own_arrays()["floats"][1]

    @property
    def ids(self) -> Ints:
        """[streams,K], likewise."""
        self._handle
        return self._own_arrays()["ids"][1]

    @property
    def spec(self) -> Spec:
        """What a row and an action are."""
        self._handle
        return self._spec

    @property
    def lanes(self) -> int:
        """Games at once."""
        return int(self._handle.lanes)

    @property
    def seats(self) -> int:
        """Players of a game."""
        return int(self._handle.seats)

    @property
    def streams(self) -> int:
        """Players of all games: what Rollout(streams=) is given."""
        return self.lanes * self.seats

    @property
    def state_bytes(self) -> int:
        """Bytes of a saved game; 0: it cannot be saved."""
        return int(self._handle.state_bytes)

    def close(self) -> None:
        """Gives the world up, and what it plays with."""
        super().close()
        self._game = self._arrays = self._context = None


__all__ = ["World"]
