"""Every number among the settings: what is no such number, or does not fit, is refused by name; NumPy's numbers are numbers."""
import gc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from conftest import rows

import exphil
from exphil import _native

NO_INTEGERS = [1.5, 2.0, np.float32(2.5), np.float64(2.0), float("nan"), float("inf"), Decimal("2.5"), Decimal(2), Fraction(5, 2),
               3j, "3", b"3", object(), [1], np.array([1, 2]), np.array(1.5)]
TOO_LARGE = [2**64, -(2**63) - 1, 10**5000, np.float64(1e300)]
NO_FLOATS = ["1", b"1", object(), 3j, [1.0], np.array([1.0, 2.0]), 10**400, float("nan"),
             np.float32("nan"), float("inf"), -float("inf")]
# Numbers below zero that mean something; of a pad the nearest is taken.
NEGATIVE = {"clip_norm", "weight", "first_frame", "main_x", "main_y", "c_x", "c_y", "trigger", "surrogate", "normalise", "points"}
# Lists and their lengths are no numbers.
NOT_NUMBERS = {
    "struct_size", "reserved", "reserved_2", "reserved_3", "flags", "conditions", "condition_count", "delays", "delay_count"}


def makers(model, dataset, drill):
    """What has settings, with the structs that they come from and all else that it needs."""
    spec, plain = model.spec, exphil.HeadSpec("a", "categorical", 4)
    duel = exphil.World("pong-two", lanes=2)
    valued, fighter = model.with_value(), exphil.Model(duel.spec, blocks="mlp", hidden=8, head_width=8)
    trainer = exphil.Trainer(valued)

    def one_head(**settings):
        head = exphil.HeadSpec(**{"name": "s", "kind": 1, "count": 4, **settings})
        return exphil.Model(exphil.Spec("l", "c", 1, (head,)), blocks="gru", hidden=8)

    def one_id(**settings):
        one = exphil.IdSpec(**{"name": "s", "entries": 4, **settings})
        return exphil.Model(exphil.Spec("l", "c", 1, (plain,), (one,)), blocks="gru", hidden=8)

    return {
        "exphil_context_config": lambda **settings: exphil.Context(**settings),
        "exphil_model_config": lambda **settings: exphil.Model(
            spec, **{"blocks": "mamba attention ffn", "hidden": 8, "head_width": 8, **settings}),
        "exphil_optimizer_config": lambda **settings: exphil.Trainer(model, dataset, **settings),
        "exphil_trainer_config": lambda **settings: exphil.Trainer(model, dataset, **settings),
        "exphil_sampling": lambda **settings: exphil.Prefetcher(dataset, **settings),
        "exphil_session_config": lambda **settings: exphil.Session(model, **settings),
        "exphil_rollout_config": lambda **settings: exphil.Rollout(valued, **settings),
        "exphil_learner_config": lambda **settings: exphil.Learner(
            trainer, model, **{name + "_" * (name == "lambda"): value for name, value in settings.items()}),
        "exphil_live_config": lambda **settings: exphil.Live(
            valued, way=settings.pop("way", "reinforce" if "time" in settings else "imitate"), **settings),
        "exphil_match_config": lambda **settings: exphil.match(
            fighter, fighter, duel, **{"games": 2, "points": 1, "most_frames": 5, **settings}),
        "exphil_replay_config": lambda **settings: exphil.Dataset().add_replay(drill, **settings),
        "exphil_split_config": lambda **settings: dataset.split(**{"held_out": 0.5, **settings}),
        "exphil_slp_config": lambda **settings: exphil.Replay(drill, **settings),
        "exphil_head_loss": lambda **settings: exphil.Trainer(
            model, losses=[exphil.HeadLoss(), exphil.HeadLoss(**settings)]),
        "exphil_head_play": lambda **settings: exphil.Session(
            model, heads=[exphil.HeadPlay(**settings), exphil.HeadPlay()]),
        "exphil_head_spec": one_head,
        "exphil_id_spec": one_id,
        "exphil_spec": lambda **settings: exphil.Model(
            exphil.Spec(**{"layout": "l", "codec": "c", "float_count": 1, "heads": (plain,), **settings}), blocks="gru", hidden=8),
        "exphil_pad": lambda **settings: exphil.melee.pad_encode(exphil.melee.pad(**settings)),
    }


def numbers(kind):
    """Names of the numbers of a struct, and whether they are integers."""
    for name, field in _native.ffi.typeof(kind).fields:
        integer = field.type.cname.rstrip(" *").endswith("_t")
        is_count = kind == "exphil_spec" and name in ("id_count", "head_count")
        if name not in NOT_NUMBERS and not is_count and (integer or field.type.cname in ("float", "double")):
            yield name, integer


def refused(make, name, value):
    with pytest.raises((TypeError, ValueError, OverflowError, exphil.ExphilError)) as raised:
        make(**{name: value})
        pytest.fail(f"{name} took {value!r:.60}")
    assert name in str(raised.value), (name, raised.value)


def test_what_is_no_such_number_is_refused_by_name(model, dataset, drill):
    count = 0
    for kind, make in makers(model, dataset, drill).items():
        for name, integer in numbers(kind):
            for value in NO_INTEGERS + TOO_LARGE if integer else NO_FLOATS:
                refused(make, name, value)
            for value in (-1, np.int64(-(2**31)), -(2**63)) if integer else (-1, np.float32(-2.0)):
                if name not in NEGATIVE:
                    refused(make, name, value)
            count += 1
            gc.collect()
    assert count > 90, count


def test_numbers_of_numpy_are_numbers(model, dataset, drill):
    count = 0
    for kind, make in makers(model, dataset, drill).items():
        for name, integer in numbers(kind):
            integers = [np.int8(2), np.uint64(2), np.array(2)]
            for value in integers if integer else [np.float16(0.5), np.float32(0.5), np.array(0.5), Decimal("0.5")]:
                plain, theirs = (outcome(make, name, one) for one in (value.item() if hasattr(value, "item") else 0.5, value))
                assert plain == theirs, (name, value)
                count += 1
    assert count > 200, count
    for value in (True, np.True_, 1, np.int8(1)):
        assert exphil.Model(model.spec, blocks="gru", hidden=8, delay_frames=value, no_previous_action=value).info.action_slots == 1


def outcome(make, name, value):
    """What comes of a setting: the kind of object, or the refusal."""
    try:
        return type(make(**{name: value}))
    except exphil.ExphilError as error:
        return str(error)


def test_settings_arrive_whole(spec):
    """The largest numbers that fit, and small ones by NumPy."""
    made = exphil.Model(spec, blocks="attention", hidden=np.int16(16), head_width=np.uint8(16), attention_window_frames=np.array(7),
                        seed=np.uint64(2**64 - 1))
    assert made.info.hidden == 16 and made.info.weights_hash == exphil.Model(
        spec, blocks="attention", hidden=16, head_width=16, attention_window_frames=7, seed=2**64 - 1).info.weights_hash


@pytest.mark.parametrize("value", [1.5, np.float32(1.5), float("nan"), "1", 2**70, Decimal(1)])
def test_numbers_of_calls(model, dataset, drill, value):
    """Numbers that are no settings: positions, streams, ports, counts."""
    session, replay, trainer = exphil.Session(model), exphil.Replay(drill), exphil.Trainer(model, dataset, batch=2, time=10)
    prefetcher, stream, state = exphil.Prefetcher(dataset), exphil.Stream(), session.state_save()
    world, rollout = exphil.World("pong-two"), exphil.Rollout(model.with_value())
    learner, against = exphil.Learner(exphil.Trainer(model.with_value())), world.against(exphil.Model(world.spec, hidden=8))
    given = rows(3)
    for name, call in [
        ("index", dataset.frame), ("index", dataset.episode), ("game", lambda n: dataset.add_rows(*given, game=n)),
        ("batch", lambda n: model.evaluate(dataset, batch=n)), ("batch", lambda n: model.compare(model, dataset, n)),
        ("epoch", lambda n: prefetcher.seek(n, 0)), ("index", lambda n: prefetcher.seek(0, n)),
        ("stream", session.reset), ("stream", lambda n: session.override([0, 0], n)), ("stream", session.state_save),
        ("stream", lambda n: session.state_restore(state, n)), ("updates", lambda n: next(trainer.train(n))),
        ("frame", replay.position), ("position", replay.items), ("position", lambda n: replay.player(n, 0)),
        ("port_index", lambda n: replay.player(0, n)), ("follower", lambda n: replay.player(0, 0, n)),
        ("slot", lambda n: replay.dump("state", n)), ("position", lambda n: replay.melee_frame(n, 1)),
        ("own_port", lambda n: replay.melee_frame(0, n)), ("opponent_port", lambda n: replay.melee_frame(0, 1, n)),
        ("position", lambda n: replay.melee_pad(n, 1)), ("port", lambda n: replay.melee_pad(0, n)),
        ("own_port", stream.melee_frame), ("opponent_port", lambda n: stream.melee_frame(1, n)), ("port_index", stream.player),
        ("follower", lambda n: stream.player(0, n)), ("count", exphil.melee.frames),
        ("external", exphil.melee.character_name), ("external", exphil.melee.stage_name),
        ("which", trainer.model), ("type", model.quantize), ("kind", replay.dump), ("lanes", lambda n: exphil.World("pong", n)),
        ("seats", lambda n: exphil.World(world, seats=n)), ("state_bytes", lambda n: exphil.World(world, state_bytes=n)),
        ("lane", world.reset), ("seed", lambda n: world.reset(0, n)), ("lane", world.save), ("lane", lambda n: world.load(n, b"")),
        ("seed", lambda n: world.against(model, n)), ("index", against.opponent), ("seed", lambda n: model.with_value(seed=n)),
        ("chunks", lambda n: next(learner.train(rollout, world, n))),
        ("episode_seed", lambda n: exphil.Rollout(model, episode_seed=n)),
    ]:
        with pytest.raises((TypeError, ValueError, OverflowError), match=name):
            call(value)
            pytest.fail(f"{name} took {value!r}")


@pytest.mark.parametrize("value", [5, "text", object()])
def test_objects_are_asked_for_by_name(model, dataset, value):
    for name, call in [("context", lambda n: exphil.Model(context=n)), ("spec", exphil.Model), ("spec", exphil.Dataset),
                       ("frequencies", lambda n: model.evaluate(dataset, n)),
                       ("heads", lambda n: exphil.Session(model, heads=[n, n])),
                       ("losses", lambda n: exphil.Trainer(model, losses=[n, n]))]:
        with pytest.raises(TypeError, match=name):
            call(value)
