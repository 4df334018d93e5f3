"""Arguments of every wrong kind, in every place: a result or an exception, and the objects still work. A crash ends the
whole run."""
import inspect
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import rows

import exphil

NASTY = [
    None, True, -1, 0, 1, 3, 2**31, 2**63, 2**64, -(2**63), -(2**70), 1.5, float("nan"), float("inf"), "", "x", "a\0b", "\udc80",
    "x" * 5000, b"", b"x" * 100, bytearray(8), [], [1], [[1, 2], [3]], (), {}, {"a": 1}, object(), int, lambda: 1, range(3),
    np.zeros(0), np.zeros((2, 2)), np.zeros((1, 6), np.float32), np.zeros((1, 1), np.int32), np.array("text"),
    np.array([object()]), np.broadcast_to(np.int64(0), (1000, 10**5)), np.broadcast_to(np.float32(0), (10**5, 6)),
    np.array(["2020"], "M8[Y]"), np.zeros((), exphil.melee.PAD), exphil.melee.frames(2), np.float32(2), np.int64(-5),
    memoryview(b"abc"), exphil.HeadLoss(weight=float("nan")), exphil.Spec("l", "c", 1, ()), exphil.Button.A,
]  # fmt: skip


def objects(spec, drill):
    """One of each, with data."""
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8)
    dataset = exphil.Dataset(spec)
    dataset.add_rows(*rows(100))
    valued = model.with_value()
    world = exphil.World("pong-two", lanes=2)
    against = world.against(exphil.Model(world.spec, blocks="mlp", hidden=8))
    return [model, dataset, exphil.Prefetcher(dataset, model, batch=2, time=10),
            exphil.Trainer(model, dataset, batch=2, time=10), exphil.Session(model), exphil.Session(exphil.Model(hidden=8)),
            exphil.Replay(drill), exphil.Stream(), model.tensor("input.weight"), exphil.Rollout(valued, time=3), world, against,
            exphil.Learner(exphil.Trainer(valued)), exphil.World("cartpole").env()]


def methods(thing):
    """Bound public methods with the names of what they take."""
    for name, value in inspect.getmembers(type(thing)):
        if callable(value) and (not name.startswith("_") or name in ("__dlpack__", "__array__")) and name != "close":
            yield getattr(thing, name), list(inspect.signature(getattr(thing, name)).parameters)


def attempt(call, *positional, **named):
    """Whatever comes, it comes as Python."""
    try:
        made = call(*positional, **named)
        if inspect.isgenerator(made):
            next(made, None)
    except Exception as error:
        assert str(error) or type(error) is not exphil.ExphilError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files that are written by chance are written here."""
    monkeypatch.chdir(tmp_path)


def test_methods(spec, drill, folder):
    for thing in objects(spec, drill):
        for method, names in methods(thing):
            for value in NASTY:
                attempt(method, value)
                attempt(method, *[value] * len(names))
                for name in names:
                    attempt(method, **{name: value})
    for thing in objects(spec, drill)[4:6]:
        assert len(thing.step_row()) == 1
    played, world = objects(spec, drill)[9:11]
    assert len(played.step(*rows(1)[:2])) == 1 and len(world.step([[0]] * 4)) == 4


def test_constructors_and_functions(spec, drill, folder):
    model, dataset = objects(spec, drill)[:2]
    world, valued = exphil.World("pong-two", lanes=2), model.with_value()
    fighter, game = exphil.Model(world.spec, blocks="mlp", hidden=8), SimpleNamespace(reset=len, step=len, save=len, load=len)
    makers = [
        (exphil.Context, ()), (partial(exphil.Model, spec, hidden=8, head_width=8, blocks="mamba attention"), ()),
        (partial(exphil.Model, hidden=8, head_width=8), ()), (exphil.Dataset, ()), (exphil.Session, (model,)),
        (exphil.Trainer, (model, dataset)), (exphil.Trainer, (model,)), (exphil.Prefetcher, (dataset,)),
        (exphil.Prefetcher, (dataset, model)), (exphil.Replay, (drill,)), (exphil.Replay.read, ()), (exphil.Stream, ()),
        (exphil.Model.load, ()), (exphil.Model.load_memory, ()), (exphil.Dataset.open, ()),
        (exphil.Rollout, (valued,)), (exphil.Learner, (exphil.Trainer(valued),)), (exphil.World, ("pong",)), (exphil.World, ()),
        (partial(exphil.World, game, spec=spec), ()), (exphil.World.of, ()), (exphil.match, (fighter, fighter)), (exphil.match, ()),
        (partial(exphil.match, fighter, fighter, world, games=2, points=1, most_frames=9), ()),
        (exphil.Communicator, ()), (exphil.HeadLoss, ()), (exphil.HeadPlay, ()), (exphil.Spec, ("l", "c")),
    ]  # fmt: skip
    # frames takes as much memory as it is told to.
    makers += [(value, ()) for name, value in vars(exphil.melee).items()
               if inspect.isfunction(value) and value.__module__ == "exphil.melee" and name != "frames"]
    for make, given in makers:
        names = list(inspect.signature(make).parameters)[len(given):]
        for value in NASTY:
            attempt(make, *given, value)
            for name in names:
                attempt(make, *given, **{name: value})


def test_specs_and_batches(spec):
    dataset = exphil.Dataset(spec)
    dataset.add_rows(*rows(100))
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8)
    trainer = exphil.Trainer(model)
    batch = vars(exphil.Prefetcher(dataset, model, batch=2, time=10).next().copy())
    for value in NASTY:
        for name in batch:
            attempt(trainer.step_batch, exphil.Batch(**{**batch, name: value}))
        for name in ("layout", "codec", "float_count", "heads", "ids", "layout_hash"):
            attempt(lambda changed: exphil.Model(exphil.Spec(**{**vars(spec), **changed})), {name: value})
        for name in ("name", "kind", "count", "neutral"):
            attempt(lambda changed: exphil.Model(
                exphil.Spec("l", "c", 1, (exphil.HeadSpec(**{**vars(spec.heads[1]), **changed}),))),
                    {name: value})
    assert trainer.step_batch(exphil.Batch(**batch)).update >= 1
