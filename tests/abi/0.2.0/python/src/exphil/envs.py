"""Environments of Gymnasium's interface, as the lanes of a world. Spaces are known by what they have, not by their class."""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from .arrays import Array
from .constants import End, HeadKind
from .spec import HeadSpec, IdSpec, Spec

# Bits of one head: they are one int32.
_BITS_MOST = 31
_NAME_MOST = 31
# Environments take seeds of this many bits, all of them.
_SEED = (1 << 31) - 1


def _count(space: Any) -> int:
    return int(np.prod(space.shape, dtype=np.int64)) if space.shape is not None else -1


class _Rows:
    """How an observation becomes floats and ids: its parts in order, each with its path in dicts and tuples."""

    def __init__(self, space: Any) -> None:
        self.floats = 0
        self.ids: List[IdSpec] = []
        # Path, numbers, where they begin; of ids, what the least of them is.
        self._parts: List[Tuple[Tuple[Any, ...], int, int, Any]] = []
        self._add(space, ())

    def _add(self, space: Any, path: Tuple[Any, ...]) -> None:
        inner = getattr(space, "spaces", None)
        if inner is not None:
            for key, one in inner.items() if hasattr(inner, "items") else enumerate(inner):
                self._add(one, (*path, key))
        elif hasattr(space, "nvec") or (hasattr(space, "n") and not space.shape):
            entries = np.ravel(space.nvec if hasattr(space, "nvec") else space.n)
            self._parts.append((path, entries.size, len(self.ids), np.ravel(getattr(space, "start", 0))))
            self.ids += [IdSpec(f"id{len(self.ids) + i}", int(n)) for i, n in enumerate(entries)]
        elif hasattr(space, "n") or (hasattr(space, "low") and hasattr(space, "high")):
            self._parts.append((path, _count(space), self.floats, None))
            self.floats += _count(space)
        else:
            raise TypeError(f"observations of {type(space).__name__} cannot be rows of a world: they must be Box, Discrete, "
                            "MultiDiscrete, MultiBinary, or Dict or Tuple of these")

    def write(self, observation: Any, floats: Array, ids: Array) -> None:
        """Copies an observation into its row."""
        for path, size, at, start in self._parts:
            value = observation
            for key in path:
                value = value[key]
            flat = np.asarray(value).reshape(-1)
            if flat.size != size:
                raise ValueError(f"an observation has {flat.size} numbers, its space has {size}")
            if start is None:
                floats[at : at + size] = flat
            else:
                ids[at : at + size] = flat - start


def _actions(space: Any) -> Tuple[List[HeadSpec], Callable[[Array], Any]]:
    """Heads of a space of actions, and how their values become an action."""
    if hasattr(space, "nvec"):
        shape, start = np.shape(space.nvec), np.ravel(getattr(space, "start", 0))
        kind = getattr(space, "dtype", None) or np.int64
        heads = [HeadSpec(f"action{i}", HeadKind.CATEGORICAL, int(n)) for i, n in enumerate(np.ravel(space.nvec))]
        return heads, lambda values: (values + start).astype(kind).reshape(shape)
    if hasattr(space, "n") and not space.shape:
        least = int(getattr(space, "start", 0))
        return [HeadSpec("action", HeadKind.CATEGORICAL, int(space.n))], lambda values: int(values[0]) + least
    if hasattr(space, "n"):
        left, shape = _count(space), space.shape
        counts = [min(_BITS_MOST, left - at) for at in range(0, left, _BITS_MOST)]
        heads = [HeadSpec(f"action{i}", HeadKind.BERNOULLI, count) for i, count in enumerate(counts)]

        def bits(values: Array) -> Array:
            each: Array = np.concatenate([value >> np.arange(count) & 1 for value, count in zip(values, counts)])
            return each.astype(np.int8).reshape(shape)

        return heads, bits
    raise TypeError(f"actions of {type(space).__name__} cannot be those of a policy: they must be Discrete, MultiDiscrete or "
                    "MultiBinary")


def _name(env: Any, name: Optional[str]) -> str:
    """Of a layout: what the environment is registered as, or its class."""
    if name is None:
        inner = getattr(env, "unwrapped", env)
        name = str(getattr(getattr(env, "spec", None), "id", None) or type(inner).__name__)
        name = "".join(one if "!" <= one <= "~" else "_" for one in name)[-_NAME_MOST:]
    return name


class Envs:
    """Environments that a world steps one after the other."""

    def __init__(self, envs: Sequence[Any], name: Optional[str]) -> None:
        self.envs = list(envs)
        if not self.envs:
            raise ValueError("envs is empty")
        self._rows: List[_Rows] = []
        self._acts: List[Callable[[Array], Any]] = []
        specs = [self._add(env, name) for env in self.envs]
        for lane, spec in enumerate(specs):
            if spec != specs[0]:
                raise ValueError(f"envs[{lane}] has other spaces than envs[0]")
        self.spec = specs[0]

    def _add(self, env: Any, name: Optional[str]) -> Spec:
        rows = _Rows(env.observation_space)
        heads, act = _actions(env.action_space)
        self._rows.append(rows)
        self._acts.append(act)
        named = _name(env, name)
        return Spec(named, named, rows.floats, tuple(heads), tuple(rows.ids))

    def reset(self, lane: int, seed: int, floats: Array, ids: Array) -> None:
        """An episode of one environment."""
        observation, _ = self.envs[lane].reset(seed=seed & _SEED)
        self._rows[lane].write(observation, floats[0], ids[0])

    def step(self, first: int, count: int, actions: Array, floats: Array, ids: Array, reward: Array, end: Array) -> None:
        """A frame of some environments."""
        for i in range(count):
            lane = first + i
            observation, reward[i], over, cut_off, _ = self.envs[lane].step(self._acts[lane](actions[i]))
            end[i] = End.OVER if over else End.CUT_OFF if cut_off else End.GOES_ON
            self._rows[lane].write(observation, floats[i], ids[i])

    def save(self, lane: int) -> Any:
        """The game of an environment that can be saved."""
        return self.envs[lane].save()

    def load(self, lane: int, state: bytes) -> None:
        """What save gave."""
        self.envs[lane].load(state)
