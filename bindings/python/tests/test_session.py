"""Sessions: rows of any game, state, noise, misuse."""
import gc
import tracemalloc

import numpy as np
import pytest

import exphil


def drive(session, count, seed=0):
    """Actions and logits of some frames of noise."""
    draw = np.random.default_rng(seed)
    told = []
    for _ in range(count):
        session.floats[:] = draw.standard_normal(session.floats.shape)
        session.ids[:] = draw.integers(0, 4, session.ids.shape)
        told.append((session.step_row().copy(), session.logits.copy()))
    return told


def same(one, other):
    return all(np.array_equal(a, b) for x, y in zip(one, other) for a, b in zip(x, y))


def test_arrays_and_arguments_say_the_same(model):
    one, other = exphil.Session(model, seed=4), exphil.Session(model, seed=4)
    floats, ids = np.linspace(-1, 1, 6, dtype=np.float32), np.array([3], np.int32)
    one.floats[:], one.ids[:] = floats, ids
    first = one.step_row().copy()
    assert first.shape == (1, 2) and first.dtype == np.int32 and one.logits.shape == (1, 8)
    for arguments in ((floats, ids), (floats[None], ids[None]), (floats.tolist(), [3]), (floats.astype(float), np.int64([3]))):
        other = exphil.Session(model, seed=4)
        assert np.array_equal(other.step_row(*arguments), first)
        assert np.array_equal(other.logits, one.logits)
    assert other.step_row() is other.actions


def test_streams_are_players_of_their_own(model):
    many = exphil.Session(model, seed=2, streams=3, deterministic=True)
    assert many.floats.shape == (3, 6) and many.actions.shape == (3, 2)
    many.floats[:] = np.arange(18).reshape(3, 6) / 10
    many.step_row()
    one = exphil.Session(model, seed=9, deterministic=True)
    one.step_row(many.floats[1], many.ids[1])
    assert np.array_equal(one.logits[0], many.logits[1])
    for wrong in (many.floats[0], many.floats[:2], many.floats[None], 1.0):
        with pytest.raises(ValueError, match="shape"):
            many.step_row(wrong, many.ids)


def test_wrong_rows(model):
    session = exphil.Session(model)
    fine = [0] * 6
    for floats, ids in ((np.zeros(7), [0]), (np.zeros((2, 6)), [0]), ([], [0]), (fine, np.zeros((1, 2), np.int32))):
        with pytest.raises(ValueError, match="shape"):
            session.step_row(floats, ids)
    with pytest.raises(TypeError, match="ids"):
        session.step_row(fine, [1.5])
    with pytest.raises(TypeError):
        session.step_row(["x"] * 6, [0])
    with pytest.raises(ValueError, match="fit"):
        session.step_row(fine, [2**32 + 1])
    with pytest.raises(exphil.InvalidError, match="ids"):
        session.step_row(fine, [4])
    with pytest.raises(ValueError, match="ids are missing, the model has 1"):
        session.step_row(fine)
    with pytest.raises(ValueError, match="floats are missing, the model has 6"):
        session.step_row(None, [0])
    session.ids[:] = 0
    with pytest.raises(exphil.NumericError, match="float"):
        session.step_row([np.nan] * 6, [0])
    session.floats[:] = 0
    with pytest.raises(ValueError, match="noise"):
        session.step_row(noise=np.zeros(3))
    with pytest.raises(exphil.ExphilError, match="noise"):
        session.step_row(noise=np.full(8, 2.0))
    session.step_row()
    assert session.info.steps == 1


def test_noise_replaces_chance(model):
    one, other = exphil.Session(model, seed=1), exphil.Session(model, seed=2)
    noise = np.random.default_rng(0).uniform(0.1, 0.9, (50, 8)).astype(np.float32)
    for row in noise:
        assert np.array_equal(one.step_row(noise=row), other.step_row(noise=row[None].tolist()))


def test_arrays_cannot_be_moved_or_replaced(model):
    session = exphil.Session(model)
    with pytest.raises(ValueError):
        session.floats.resize((4, 6), refcheck=False)
    with pytest.raises(AttributeError):
        session.floats = np.zeros((1, 6))
    floats = session.floats
    session.close()
    del session
    gc.collect()
    floats[:] = 1
    assert floats.sum() == 6


def test_state_is_saved_restored_and_cloned(model):
    session = exphil.Session(model, seed=8)
    drive(session, 5)
    state = session.state_save()
    assert len(state) == session.state_size == session.info.state_bytes
    clone = session.clone()
    want = drive(session, 20, seed=1)
    assert same(drive(clone, 20, seed=1), want)
    session.state_restore(state)
    assert same(drive(session, 20, seed=1), want)
    other = exphil.Session(exphil.Model.load_memory(model.to_bytes()), seed=8)
    other.state_restore(bytearray(state))
    assert same(drive(other, 20, seed=1), want)
    for wrong in (b"", state[:-1], state + b"x"):
        with pytest.raises(exphil.InvalidError):
            session.state_restore(wrong)
    with pytest.raises(exphil.MismatchError):
        exphil.Session(exphil.Model(model.spec, blocks="gru", hidden=16, head_width=16, seed=4)).state_restore(state)
    with pytest.raises(exphil.ExphilError):
        session.state_restore(bytes(len(state)))
    with pytest.raises(TypeError):
        session.state_restore("text")


def test_reset_starts_anew(model):
    session = exphil.Session(model, deterministic=True)
    want = drive(session, 6)
    session.reset()
    assert same(drive(session, 6), want)
    session.reset(0)
    for stream in (1, -2, 2**31 + 5):
        with pytest.raises(exphil.InvalidError, match="stream"):
            session.reset(stream)
        with pytest.raises(exphil.InvalidError, match="stream"):
            session.state_save(stream)
    with pytest.raises(OverflowError):
        session.reset(2**70)


def test_override(spec):
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8)
    one, other = (exphil.Session(model, deterministic=True) for _ in range(2))
    one.step_row()
    other.step_row()
    other.override([7, 4] if one.actions[0, 0] != 7 else [0, 0])
    one.step_row()
    other.step_row()
    assert not np.array_equal(one.logits, other.logits)
    with pytest.raises(ValueError, match="action"):
        one.override([1])
    with pytest.raises(exphil.InvalidError):
        one.override([1, 99])


def test_delays_and_deliver(spec):
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8, delay_frames=2)
    due, decided = exphil.Session(model, seed=1), exphil.Session(model, seed=1, deliver="decided")
    first, second = [step[0] for step in drive(due, 10)], [step[0] for step in drive(decided, 10)]
    assert [list(action[0]) for action in first[:2]] == [[0, 2], [0, 2]]
    assert all(np.array_equal(a, b) for a, b in zip(first[2:], second))
    exphil.Session(model, spec=spec, delay_frames=2, mode="carry")
    with pytest.raises(exphil.MismatchError):
        exphil.Session(model, delay_frames=1)
    with pytest.raises(exphil.MismatchError):
        exphil.Session(model, mode="window")
    with pytest.raises(exphil.MismatchError):
        exphil.Session(model, spec=exphil.melee.spec())


def test_heads_play_as_told(model):
    sure = [exphil.HeadPlay(deterministic=True), exphil.HeadPlay(deterministic=True)]
    one, other = exphil.Session(model, heads=sure, seed=1), exphil.Session(model, deterministic=True, seed=2)
    assert same(drive(one, 20), drive(other, 20))
    with pytest.raises(ValueError, match="heads"):
        exphil.Session(model, heads=sure[:1])
    with pytest.raises(exphil.InvalidError, match="temperature"):
        exphil.Session(model, heads=[exphil.HeadPlay(temperature=-1.0), exphil.HeadPlay()])
    for streams in (-1, 4097):
        with pytest.raises(exphil.InvalidError, match="streams"):
            exphil.Session(model, streams=streams)


def test_info_and_histogram(model):
    session = exphil.Session(model, deadline_ns=1)
    drive(session, 30)
    info = session.info
    assert (info.steps, info.streams) == (30, 1)
    assert sum(info.latency) == 30 == sum(steps for _, steps in info.histogram())
    assert 30 - info.latency[0] <= info.missed <= 30  # a coarse clock may see a step of 0 ns, in the first bucket
    assert 0 <= info.last_ns <= info.max_ns and info.p50_ns <= info.p99_ns


def test_a_step_keeps_nothing(model):
    """Nor does it make anything large: what the interpreter itself takes for a call is less than a kilobyte."""
    session = exphil.Session(model)
    floats, ids = np.zeros((1, 6), np.float32), np.zeros((1, 1), np.int32)
    for arguments in ((), (floats, ids)):
        for _ in range(10):
            session.step_row(*arguments)
        tracemalloc.start()
        for _ in range(1000):
            session.step_row(*arguments)
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert now < 1024 and peak < 2048


def test_numbers_of_numpy_are_settings(model):
    session = exphil.Session(model, seed=np.uint64(2**64 - 1), streams=np.int64(2), deterministic=np.bool_(True))
    assert session.info.streams == 2
    for number in (1.5, np.float32(1.5), "1"):
        with pytest.raises(TypeError, match="streams"):
            exphil.Session(model, streams=number)
    with pytest.raises(OverflowError, match="seed"):
        exphil.Session(model, seed=2**64)


def test_melee_needs_a_melee_model(model):
    with pytest.raises(exphil.ExphilError, match=r"use step_row\b"):
        exphil.Session(model).step(exphil.melee.frames())


def test_window_and_floats_only():
    spec = exphil.Spec("plain", "plain", 3, (exphil.HeadSpec("stick", "categorical", 3),))
    session = exphil.Session(exphil.Model(spec, blocks="attention", hidden=8, head_width=8, mode="window", window_frames=4))
    assert session.ids.shape == (1, 0)
    assert session.step_row([1, 2, 3]).shape == (1, 1)
    session.step_row([1.0, 2, 3], np.empty((1, 0), np.int32))
