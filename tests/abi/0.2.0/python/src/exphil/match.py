"""Matches: which of two policies is better."""
from __future__ import annotations

from ._native import lib
from .handle import Config, expect
from .model import Model
from .records import MatchResult
from .structs import empty, read
from .world import World


def match(
    a: Model,
    b: Model,
    world: World,
    *,
    games: int = 0,
    most_frames: int = 0,
    points: float = 0.0,
    seed: int = 0,
    deterministic: bool = False,
) -> MatchResult:
    """Plays a against b in a world of two seats, whose games are lost, with an interval for the score of a.

    games (0: 200) is even: each start is played twice, with seats exchanged and the same chance, which follows from seed. A game
    is won by whoever has points (0: 11) first, by the sum of rewards above 0 (negative: the world's end decides), or leads
    after most_frames (0: 20000). deterministic: both take the likeliest actions.
    """
    for value, kind, name in ((a, Model, "a"), (b, Model, "b"), (world, World, "world")):
        expect(value, kind, name)
    config = Config("exphil_match_config").set(
        games=games, most_frames=most_frames, points=points, seed=seed, deterministic=deterministic
    )
    result = empty(MatchResult)
    world._play(None, a._core.call, lib.exphil_match, a._handle, b._handle, world._handle, config, result)
    return read(MatchResult, result)
