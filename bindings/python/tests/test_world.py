"""Worlds: the library's, and a user's own."""
from types import SimpleNamespace

import numpy as np
import pytest
from test_learn import SMALL, Catch, catch

import exphil


def test_worlds_of_the_library():
    for name, floats, seats in [("cartpole", 4, 1), ("cartpole-blind", 2, 1), ("pong", 7, 1), ("pong-two", 7, 2)]:
        world = exphil.World(name, lanes=3)
        assert (world.lanes, world.seats, world.streams) == (3, seats, 3 * seats)
        assert world.spec.float_count == floats and world.spec.ids == () and world.state_bytes > 0
        for lane in range(3):
            rows, ids = world.reset(lane, seed=7)
            assert rows.shape == (seats, floats) and ids.shape == (seats, 0)
        told = world.step(np.zeros((3 * seats, 1), int))
        assert [array.shape for array in told] == [(3 * seats, floats), (3 * seats, 0), (3 * seats,), (3,)]
        assert told[0] is world.floats and told[1] is world.ids and not told[3].any()
        assert world.floats[:seats].tolist() == world.floats[-seats:].tolist()
    for wrong, error in [(("chess",), exphil.InvalidError), (("pong", 0), exphil.InvalidError), (("pong", 4097), exphil.InvalidError),
                         (("a\0b",), ValueError)]:
        with pytest.raises(error):
            exphil.World(*wrong)
    with pytest.raises(TypeError, match="own spec"):
        exphil.World("pong", spec=Catch.spec)


def test_games_are_saved_and_loaded():
    for world in (exphil.World("cartpole", lanes=2), catch(2, state_bytes=12), catch(2, state_bytes=99)):
        world.reset(0, seed=3)
        world.reset(1, seed=4)
        state = world.save(0)
        assert len(state) == world.state_bytes
        world.load(1, state)
        world.step([[1], [1]])
        assert world.floats[0].tolist() == world.floats[1].tolist()
        for wrong in (state[:-1], b"", state + b"x"):
            with pytest.raises(ValueError, match="must have"):
                world.load(0, wrong)
    with pytest.raises(ValueError, match="saved game has"):
        world.load(0, b"\xff" * world.state_bytes)
    for call in (lambda: catch(1).save(0), lambda: catch(1).load(0, b"")):
        with pytest.raises(exphil.UnsupportedError, match="cannot be saved"):
            call()


def test_steps_that_are_refused():
    world = exphil.World("pong-two", lanes=2)
    for actions in ([[0]] * 3, [[3]] * 4, [[-1]] * 4, [[0.5]] * 4, "x", None):
        with pytest.raises((ValueError, TypeError), match="actions"):
            world.step(actions)
    for lane in (-1, 2, 1.5, "x"):
        with pytest.raises((ValueError, TypeError), match="lane"):
            world.reset(lane)
    with pytest.raises(OverflowError, match="seed"):
        world.reset(0, seed=-1)


def test_objects_that_are_no_games():
    for game, settings, error, word in [
        (Catch(1), {}, TypeError, "spec is missing"), (Catch(1), dict(spec=3), TypeError, "spec"),
        (object(), {}, TypeError, "object has not"), (SimpleNamespace(reset=len), {}, TypeError, "have step"),
        (SimpleNamespace(reset=len, step=len), dict(state_bytes=4), TypeError, "have save"),
        (Catch(1), dict(spec=Catch.spec, lanes=0), ValueError, "lanes"), (Catch(1), dict(spec=Catch.spec, lanes=4097), ValueError, "lanes"),
        (Catch(1), dict(spec=Catch.spec, seats=9), ValueError, "seats"), (Catch(1), dict(spec=Catch.spec, state_bytes=-1), ValueError, "state"),
        (Catch(1), dict(spec=exphil.Spec("a b", "c", 1, Catch.spec.heads)), exphil.InvalidError, "layout"),
        (Catch(1), dict(spec=exphil.Spec("a", "c", 1, ())), exphil.InvalidError, "head_count"),
    ]:
        with pytest.raises(error, match=word):
            exphil.World(game, **settings)


def test_what_a_step_of_ones_own_raises():
    class Fails(Catch):
        def reset(self, *arguments):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        exphil.World(Fails(1), spec=Catch.spec).reset(0)
    world = exphil.World("pong-two", lanes=2)
    against = world.against(exphil.Model(world.spec, **SMALL))
    assert against.reset(1, 5)[0].shape == (1, 7) and against.step([[0], [1]])[2].shape == (2,)
