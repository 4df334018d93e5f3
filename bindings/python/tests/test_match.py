"""Matches, and worlds in which policies play the other seat."""
import gc

import numpy as np
import pytest
from test_learn import SMALL, Parts, catch

import exphil

PONG = exphil.World("pong-two").spec


class Duel:
    """Two players; who says the larger number has a point. Five frames."""

    spec = exphil.Spec("duel", "duel", 1, (exphil.HeadSpec("number", "categorical", 4),), (exphil.IdSpec("seat", 2),))

    def __init__(self, lanes, fails=-1):
        self.frames, self.fails = np.zeros(lanes, int), fails

    def reset(self, lane, seed, floats, ids):
        self.frames[lane] = 0
        floats[:], ids[:, 0] = seed % 7 / 7, (0, 1)

    def step(self, first, count, actions, floats, ids, reward, end):
        self.fails -= 1
        if self.fails == -1:
            raise ConnectionError("the cable")
        self.frames[first : first + count] += 1
        said = actions.reshape(count, 2)
        reward.reshape(count, 2)[:] = np.stack([said[:, 0] > said[:, 1], said[:, 1] > said[:, 0]], 1)
        end[:] = np.where(self.frames[first : first + count] >= 5, exphil.End.OVER, exphil.End.GOES_ON)


def player(number, sure=9):
    """Says this number mostly."""
    model = exphil.Model(Duel.spec, seed=1, **SMALL)
    model.tensor_set("heads.logits.bias", sure * np.eye(4)[number])
    return model


def duels(lanes=6, **more):
    return exphil.World(Duel(lanes, **more), lanes, spec=Duel.spec, seats=2)


def test_a_match_against_itself_is_even():
    model = exphil.Model(PONG, seed=3, **SMALL)
    result = exphil.match(model, model, exphil.World("pong-two", lanes=8), games=20, points=1)
    assert (result.games, result.score, result.low, result.high) == (20, 0.5, 0.5, 0.5)
    assert result.won == result.lost and result.points == result.points_against and result.frames > 0
    assert exphil.match(player(2), player(2), duels(), games=10).score == 0.5


def test_the_better_one_wins():
    good, bad = player(3, sure=3), player(0, sure=3)
    result = exphil.match(good, bad, duels(), games=50, points=-1, seed=2)
    assert result.score > 0.9 and result.low > 0.8 and result.high <= 1 and result.points > 2 * result.points_against
    other = exphil.match(bad, good, duels(), games=50, points=-1, seed=2)
    assert (other.won, other.lost, other.drawn) == (result.lost, result.won, result.drawn)
    assert exphil.match(good, bad, duels(1), games=50, points=-1, seed=2) == result
    assert exphil.match(good, bad, duels(), games=50, points=-1, seed=3) != result
    sure = exphil.match(good, bad, duels(), games=2, points=3, deterministic=True)
    assert (sure.won, sure.points, sure.points_against, sure.frames) == (2, 6, 0, 6)
    assert exphil.match(good, bad, duels(), games=2, most_frames=1, deterministic=True).frames == 2


def test_matches_that_are_refused():
    model = player(1)
    for make, error, word in [
        (lambda: exphil.match(model, model, duels(), games=3), exphil.InvalidError, "games"),
        (lambda: exphil.match(model, model, catch(2)), exphil.InvalidError, "seats"),
        (lambda: exphil.match(model, model, exphil.World("pong-two")), exphil.MismatchError, "rows"),
        (lambda: exphil.match(model, exphil.Model(PONG, **SMALL), duels()), exphil.MismatchError, "model b"),
        (lambda: exphil.match(model, duels(), model), TypeError, "b must be an exphil.Model"),
        (lambda: exphil.match(model, model, model), TypeError, "world must be an exphil.World"),
        (lambda: exphil.match(model, model, duels(fails=3)), ConnectionError, "the cable"),
    ]:
        with pytest.raises(error, match=word):
            make()
    assert exphil.handle._raised == {}
    world = duels()
    world.close()
    with pytest.raises(exphil.ClosedError):
        exphil.match(model, model, world)


def test_what_a_match_shows_stays():
    """The memory of a match is gone with it: a game that keeps its arrays has copies."""
    class Keeps(Duel):
        kept = []

        def step(self, *arguments):
            Duel.step(self, *arguments)
            self.kept.append(arguments[2:])

    world = exphil.World(Keeps(64), 64, spec=Duel.spec, seats=2)
    exphil.match(player(1), player(2), world, games=64, points=-1)
    gc.collect()
    assert all(np.isfinite(array).all() for arrays in Keeps.kept for array in arrays)
    assert len(Keeps.kept) == 5 and Keeps.kept[0][3].max() == 1.0


# ---- opponents ----


def test_opponents_play_the_other_seat():
    good, bad = player(3), player(0)
    world = duels(4)
    against = world.against([good, bad], seed=5)
    assert (against.lanes, against.seats, against.spec, against.state_bytes) == (4, 1, Duel.spec, 0)
    rows = [against.reset(lane)[1][0, 0] for lane in range(4)]
    assert rows == [0, 0, 1, 1]
    for _ in range(5):
        floats, ids, reward, end = against.step([[2]] * 4)
    assert ids[:, 0].tolist() == rows and end.tolist() == [exphil.End.OVER] * 4
    records = [against.opponent(index) for index in range(2)]
    assert [(one.episodes, one.won) for one in records] == [(2, 0), (2, 2)]
    assert against.opponent(0) == exphil.Record(0, 0, 0)
    # Another in its place; the games go on.
    assert against.opponent(0, bad) == exphil.Record(0, 0, 0)
    parts = Parts(against, time=40, half_life_frames=1)
    told = parts.chunks(12)
    assert against.opponent(1).episodes > 0 and told[-1].reward > told[0].reward
    for index, model, error in [
        (2, None, exphil.InvalidError), (-1, None, exphil.InvalidError), (0, good.with_value("detached"), exphil.MismatchError),
        (0, exphil.Model(PONG, **SMALL), exphil.MismatchError),
    ]:
        with pytest.raises(error):
            against.opponent(index, model)
    with pytest.raises(TypeError, match="model"):
        against.opponent(0, 3)
    with pytest.raises(exphil.InvalidError, match="against"):
        world.opponent(0)


def test_opponents_that_are_refused():
    model, elsewhere = player(1), exphil.Model(Duel.spec, context=exphil.Context(), **SMALL)
    for make, error in [
        (lambda: duels().against([]), exphil.InvalidError), (lambda: duels(1).against([model] * 2), exphil.InvalidError),
        (lambda: catch(2).against(model), exphil.InvalidError), (lambda: duels().against([model, 3]), TypeError),
        (lambda: duels().against(exphil.Model(PONG, **SMALL)), exphil.MismatchError),
        (lambda: duels().against(model, seed=-1), OverflowError), (lambda: duels().against(3), TypeError),
        (lambda: duels().against(elsewhere), exphil.MismatchError),
    ]:
        with pytest.raises(error):
            make()


def test_what_the_world_beneath_raises_comes_out():
    parts = Parts(duels(fails=20).against(player(1)), time=64)
    with pytest.raises(ConnectionError, match="the cable"):
        parts.rollout.run(parts.world)
    with pytest.raises(exphil.StateError):
        parts.rollout.run(parts.world)
    assert exphil.handle._raised == {}


def test_the_world_beneath_lives_as_long():
    world, model = duels(), player(1)
    against = world.against(model)
    world.close()
    model.close()
    del world, model
    gc.collect()
    parts = Parts(against, time=16)
    assert parts.chunks(2)[-1].rows == 96
    against.close()
    with pytest.raises(exphil.ClosedError):
        against.opponent(0)
