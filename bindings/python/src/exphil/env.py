"""A world as an environment of Gymnasium's interface, with that package's classes where it is installed."""
from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any, Dict, Optional, Tuple

import numpy as np

from .arrays import number
from .constants import End, HeadKind
from .handle import expect
from .world import World

# What World.of looks for, and no more.
_PLAIN_SPACES = SimpleNamespace(
    Box=lambda low, high, shape, dtype: SimpleNamespace(low=low, high=high, shape=shape, dtype=np.dtype(dtype)),
    Discrete=lambda n: SimpleNamespace(n=n, start=0, shape=(), dtype=np.dtype(np.int64)),
    MultiDiscrete=lambda nvec: SimpleNamespace(nvec=np.array(nvec), shape=(len(nvec),), dtype=np.dtype(np.int64)),
    MultiBinary=lambda n: SimpleNamespace(n=n, shape=(n,), dtype=np.dtype(np.int8)),
    Tuple=lambda inner: SimpleNamespace(spaces=tuple(inner), shape=None),
)


def _classes() -> Tuple[Any, Any]:
    """The class of environments, and spaces."""
    try:
        gymnasium = import_module("gymnasium")
    except ImportError:
        return object, _PLAIN_SPACES
    return gymnasium.Env, gymnasium.spaces


_Base: Any
_spaces: Any
_Base, _spaces = _classes()


def _action_space(heads: Any) -> Any:
    if len(heads) == 1 and heads[0].kind == HeadKind.BERNOULLI:
        return _spaces.MultiBinary(heads[0].count)
    if any(head.kind == HeadKind.BERNOULLI for head in heads):
        raise TypeError("bits beside other heads have no space of Gymnasium's")
    return _spaces.Discrete(heads[0].count) if len(heads) == 1 else _spaces.MultiDiscrete([head.count for head in heads])


class Env(_Base):  # type: ignore[misc]
    """A world of one lane and one seat: reset(seed=) -> (observation, info), step(action) -> (observation, reward, terminated,
    truncated, info). An observation is a Box of floats, or a tuple of one and of the ids."""

    metadata: Dict[str, Any] = {"render_modes": []}
    render_mode = None
    spec = None

    def __init__(self, world: World) -> None:
        expect(world, World, "world")
        if world.streams != 1:
            raise ValueError(f"an environment is a world of one lane and one seat, this one has {world.lanes} and {world.seats}")
        self.world = world
        spec = world.spec
        floats = _spaces.Box(-np.inf, np.inf, (spec.float_count,), np.float32)
        ids = _spaces.MultiDiscrete([one.entries for one in spec.ids]) if spec.ids else None
        self.observation_space = floats if ids is None else ids if not spec.float_count else _spaces.Tuple((floats, ids))
        self.action_space = _action_space(spec.heads)
        self._seeds = np.random.default_rng()

    def __repr__(self) -> str:
        return f"<exphil.env.Env of {self.world!r}>"

    __str__ = __repr__  # that of gymnasium.Env tells nothing of the world

    @property
    def unwrapped(self) -> "Env":
        """Itself."""
        return self

    def _observation(self, floats: Any, ids: Any) -> Any:
        floats, ids = floats[0].copy(), ids[0].astype(np.int64)
        return floats if not ids.size else ids if not floats.size else (floats, ids)

    def reset(self, *, seed: Optional[int] = None, options: Optional[Dict[str, Any]] = None) -> Tuple[Any, Dict[str, Any]]:
        """A new episode: that of seed, or one that follows from the seed that was given last."""
        if seed is not None:
            seed = number(seed, "seed", "uint64_t")
            self._seeds = np.random.default_rng(seed)
        if _Base is not object:
            super().reset(seed=seed)
        return self._observation(*self.world.reset(0, int(self._seeds.integers(1 << 63)) if seed is None else seed)), {}

    def step(self, action: Any) -> Tuple[Any, float, bool, bool, Dict[str, Any]]:
        """One frame."""
        heads = self.world.spec.heads
        if heads[0].kind == HeadKind.BERNOULLI:
            values = np.array([int(np.dot(np.asarray(action, np.int64), 1 << np.arange(heads[0].count)))])
        else:
            values = np.array([number(action, "action", "int32_t")]) if len(heads) == 1 else np.asarray(action)
        floats, ids, reward, end = self.world.step(values[None])
        return self._observation(floats, ids), float(reward[0]), bool(end[0] == End.OVER), bool(end[0] == End.CUT_OFF), {}

    def render(self) -> None:
        """There is nothing to see."""

    def close(self) -> None:
        """Closes the world."""
        self.world.close()
