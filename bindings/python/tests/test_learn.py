"""Learning from play: values, losses of one's own, new weights in play, rollouts, the learner, and what it keeps."""
import contextlib
import gc
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import rows
from test_life import in_child, until_interrupted

import exphil

SMALL = dict(blocks="mlp", hidden=16, head_width=16, no_previous_action=True, neutral_start=True, value="shared")


class Catch:
    """A ball falls for 20 frames; who stands under it then has a point. Twenty lines, as a user would write them."""

    spec = exphil.Spec("catch", "catch", 3, (exphil.HeadSpec("move", "categorical", 3, neutral=1),))

    def __init__(self, lanes):
        self.games = np.zeros((lanes, 3), np.float32)  # where the ball is, where the player is, how far it has fallen

    def reset(self, lane, seed, floats, ids):
        self.games[lane] = *np.random.default_rng(seed).uniform(-1, 1, 2), 0
        floats[0] = self.games[lane]

    def step(self, first, count, actions, floats, ids, reward, end):
        games = self.games[first : first + count]
        games[:, 1] = np.clip(games[:, 1] + 0.1 * (actions[:, 0] - 1), -1, 1)
        games[:, 2] += 0.05
        end[:] = games[:, 2] > 0.99
        reward[:] = end & (abs(games[:, 0] - games[:, 1]) < 0.15)
        floats[:] = games

    def save(self, lane):
        return self.games[lane].tobytes()

    def load(self, lane, state):
        self.games[lane] = np.frombuffer(state, np.float32)


class Parts:
    """All that a run is made of."""

    def __init__(self, world, seed=1, time=64, chunks=80, teacher=None, model=None, session=None, **settings):
        self.world = world
        self.model = exphil.Model(world.spec, seed=seed, **{**SMALL, **(model or {})})
        self.trainer = exphil.Trainer(
            self.model, rate=1e-3, schedule="cosine", total_updates=chunks * 16, clip_norm=0.5, as_played=True)
        self.rollout = exphil.Rollout(self.model, streams=world.streams, time=time, seed=seed, **(session or {}))
        self.learner = exphil.Learner(self.trainer, teacher, seed=seed, **settings)

    def chunks(self, count):
        return list(self.learner.train(self.rollout, self.world, count))

    @property
    def hash(self):
        with self.trainer.model() as model:
            return model.info.weights_hash


def catch(lanes=8, **more):
    return exphil.World(Catch(lanes), lanes, spec=Catch.spec, **more)


def mean_return(told):
    """Of all episodes of some chunks."""
    episodes = sum(metrics.episodes for metrics in told)
    return sum(metrics.episode_return * metrics.episodes for metrics in told) / episodes


# ---- learning ----


def test_cartpole_is_learnt():
    """80,000 frames from nothing; 500 is the most."""
    parts = Parts(exphil.World("cartpole", lanes=16), chunks=79, model=dict(hidden=64, head_width=64), half_life_frames=69,
                  reward_scale=0.1)
    told = parts.chunks(79)
    assert [metrics.chunks for metrics in told] == list(range(1, 80)) and told[-1].updates == 79 * 16
    assert mean_return(told[:3]) < 50 and mean_return(told[-20:]) > 475
    assert {metrics.recomputed for metrics in told} == {0.0} and told[0].rows == 16 * 64
    assert 0 < told[-1].entropy < told[0].entropy


def test_a_game_of_ones_own_is_learnt():
    told = Parts(catch(16), half_life_frames=30, chunks=60).chunks(60)
    assert mean_return(told[:2]) < 0.6 and mean_return(told[-5:]) > 0.95


def test_equal_seeds_give_equal_weights():
    def hashes(make, **settings):
        parts = Parts(make(), time=16, **settings)
        return [parts.hash for _ in parts.learner.train(parts.rollout, parts.world, 4)]

    for make in (catch, lambda: exphil.World("cartpole", lanes=8)):
        assert hashes(make) == hashes(make)
        assert len({hashes(make)[-1], hashes(make, seed=2)[-1], hashes(make, session=dict(episode_seed=9))[-1]}) == 3


def test_a_world_through_python_has_the_bits_of_the_world():
    class Through:
        def __init__(self):
            self.world = exphil.World("cartpole", lanes=4)

        def reset(self, lane, seed, floats, ids):
            floats[:], ids[:] = self.world.reset(lane, seed)

        def step(self, first, count, actions, floats, ids, reward, end):
            assert (first, count) == (0, 4)
            floats[:], ids[:], reward[:], end[:] = self.world.step(actions)

    worlds = [exphil.World("cartpole", lanes=4), exphil.World(Through(), 4, spec=exphil.World("cartpole").spec)]
    runs = [Parts(world, time=100) for world in worlds]
    assert runs[0].chunks(3) == runs[1].chunks(3) and runs[0].hash == runs[1].hash


@pytest.mark.parametrize("delay_frames", [0, 2])
def test_a_host_that_plays_by_itself(delay_frames):
    """What run does, by hand; and the next chunk."""
    delay = dict(model=dict(delay_frames=delay_frames))
    played, hosted = Parts(exphil.World("cartpole", lanes=2), time=32, **delay), Parts(catch(1), time=16, **delay)
    world = exphil.World("cartpole", lanes=2)
    rollout = exphil.Rollout(exphil.Model(world.spec, seed=1, **{**SMALL, **delay["model"]}), streams=2, time=32, seed=1)
    played.rollout.run(played.world)
    for lane in range(2):
        world.reset(lane, seed=lane)
    frames = 0
    while True:
        frames += 1
        floats, ids, reward, end = world.step(rollout.step(world.floats, world.ids))
        full = rollout.reward(reward, end, floats, ids)
        for lane in np.flatnonzero(end):
            world.reset(int(lane), seed=int(lane) + frames)
        if full:
            break
    assert frames == 32 + delay_frames
    with pytest.raises(exphil.StateError, match="full"):
        rollout.step(floats, ids)
    metrics = played.learner.update(rollout)
    assert metrics.rows <= 64 and metrics.recomputed == 0 and metrics.reward == 1.0
    with pytest.raises(exphil.MismatchError, match="plays weights"):  # the learner has others by now
        played.learner.update(played.rollout)
    # One stream: numbers do.
    floats, _ = hosted.world.reset(0)
    assert hosted.rollout.step(floats[0]).shape == (1, 1)
    assert hosted.rollout.reward(0.5, True, floats[0]) is False
    hosted.rollout.step(floats)
    assert hosted.rollout.reward([0.5], [exphil.End.CUT_OFF], floats) is False


def test_rewards_that_are_none():
    parts = Parts(catch(2), time=4)
    rollout, floats = parts.rollout, np.zeros((2, 3))
    with pytest.raises(exphil.StateError, match="reward already"):
        rollout.reward([0, 0], [0, 0], floats)
    rollout.step(floats)
    for reward, end, error, word in [
        ([np.nan, 0], [0, 0], exphil.NumericError, "reward"), ([0, 0], [0, 3], exphil.InvalidError, "end"),
        ([0], [0, 0], ValueError, "reward"), ([0, 0], [0, 0, 0], ValueError, "end"), ([0, 0], [0, -1], ValueError, "end"),
        (["x", 0], [0, 0], TypeError, "reward"), ([0, 0], [0.5, 0], TypeError, "end"), (None, [0, 0], ValueError, "reward"),
        ([0, 0], [0, 2], exphil.InvalidError, "floats is NULL"),
    ]:
        with pytest.raises(error, match=word):
            rollout.reward(reward, end)
    with pytest.raises(ValueError, match="floats"):
        rollout.reward([0, 0], [0, 0], np.zeros((3, 2)))
    with pytest.raises(exphil.StateError, match="no reward yet"):
        rollout.step(floats)
    assert rollout.reward([0, 1], [0, 1], floats) is False
    with pytest.raises(exphil.StateError, match="2 of 4|1 of 4"):
        parts.learner.update(rollout)


def test_the_rollout_s_session():
    parts = Parts(catch(4), time=8)
    session = parts.rollout.session
    parts.rollout.run(parts.world)
    assert session.value.shape == (4,) and session.logits.shape == (4, 3) and session.info.steps == 8
    for call in (session.step_row, session.reset, lambda: session.state_restore(session.state_save()),
                 lambda: session.adopt(parts.model)):
        with pytest.raises(exphil.StateError):
            call()
    assert session.clone().step_row(np.zeros((4, 3))).shape == (4, 1)
    session.close()
    assert parts.rollout.session.info.steps == 8
    session = parts.rollout.session
    parts.rollout.close()
    with pytest.raises(exphil.ClosedError):
        session.logits
    # What was overridden is imitated, if at all.
    found = []
    for imitation in (0.0, 2.0):
        parts = Parts(catch(1), time=8, imitation=imitation, epochs=1)
        floats, _ = parts.world.reset(0)
        for t in range(8):
            actions = parts.rollout.step(floats)
            if t == 3:
                parts.rollout.session.override((actions[0] + 1) % 3)
            parts.rollout.reward([1], [0], floats)
        found.append(parts.learner.update(parts.rollout))
        assert found[-1].rows == 7 and found[-1].imitated == 1 and found[-1].nll > 0
    assert found[1].loss == pytest.approx(found[0].loss + 2.0 * found[0].nll)


def test_a_teacher_is_kept_near():
    def after(**settings):
        parts = Parts(catch(), time=32, **settings)
        return parts.chunks(6)[-1]

    teacher = exphil.Model(Catch.spec, seed=1, **SMALL)
    near = after(teacher=teacher, to_teacher=10.0, from_teacher=1.0)
    far = after(teacher=teacher)
    assert near.kl_to_teacher < 0.2 * far.kl_to_teacher and near.kl_from_teacher < 0.2 * far.kl_from_teacher
    with pytest.raises(exphil.InvalidError, match="teacher"):
        after(to_teacher=1.0)
    with pytest.raises(exphil.MismatchError, match="spec"):
        after(teacher=exphil.Model(exphil.World("cartpole").spec, **SMALL))


def test_updates_that_went_too_far_are_taken_back():
    parts = Parts(exphil.World("cartpole", lanes=8), time=32, most_kl=1e-12)
    before = parts.hash
    metrics = parts.chunks(1)[0]
    assert metrics.taken_back == 1 and parts.hash == before and metrics.updates == 0


# ---- keeping ----


def learners(name):
    """Runs that can be kept; each call makes one anew."""
    if name == "cartpole":
        return Parts(exphil.World("cartpole", lanes=4), time=20, model=dict(blocks="gru", delay_frames=2))
    if name == "teacher":
        return Parts(exphil.World("cartpole", lanes=4), time=20,
                     teacher=exphil.Model(exphil.World("cartpole").spec, seed=5, blocks="gru", hidden=8, **{
                         key: SMALL[key] for key in ("no_previous_action", "neutral_start")}), to_teacher=0.5)
    if name == "python":
        return Parts(catch(4, state_bytes=64), time=20)
    world = exphil.World("pong-two", lanes=4)
    return Parts(world.against([exphil.Model(world.spec, seed=2, **SMALL)], seed=3), time=20)


@pytest.mark.parametrize("name", ["cartpole", "teacher", "python", "against"])
def test_save_and_resume_to_the_last_bit(name, tmp_path):
    whole = learners(name)
    want = whole.chunks(7)
    half = learners(name)
    assert half.chunks(3) == want[:3]
    half.learner.save(tmp_path / "half", half.rollout, half.world)
    again = learners(name)
    again.learner.resume(tmp_path / "half", again.rollout, again.world)
    assert again.chunks(4) == want[3:] == half.chunks(4)
    assert again.hash == whole.hash
    assert exphil.Model.load(tmp_path / "half").info.trained_updates == want[2].updates


def test_what_cannot_be_kept(tmp_path):
    parts = Parts(catch(4), time=16)
    parts.chunks(1)
    with pytest.raises(exphil.UnsupportedError, match="cannot be saved"):
        parts.learner.save(tmp_path / "x", parts.rollout, parts.world)
    parts.learner.save(tmp_path / "x", parts.rollout)
    other = Parts(catch(4), time=17)
    with pytest.raises(exphil.MismatchError, match="time"):
        other.learner.resume(tmp_path / "x", other.rollout)
    with pytest.raises(OSError):
        other.learner.resume(tmp_path / "none", other.rollout)
    parts.rollout.run(parts.world)
    with pytest.raises(exphil.StateError):
        parts.learner.save(tmp_path / "x", parts.rollout)

    class Broken(Catch):
        saved = b"x" * 9

        def save(self, lane):
            return self.saved

        def load(self, lane, state):
            raise EOFError("damaged")

    game = Broken(1)
    parts = Parts(exphil.World(game, spec=Catch.spec, state_bytes=8), time=16)
    parts.chunks(1)
    with pytest.raises(ValueError, match="save gave 9 bytes, state_bytes is 8"):
        parts.learner.save(tmp_path / "y", parts.rollout, parts.world)
    game.saved = 3
    with pytest.raises(TypeError):
        parts.learner.save(tmp_path / "y", parts.rollout, parts.world)
    game.saved = b"x" * 8
    parts.learner.save(tmp_path / "y", parts.rollout, parts.world)
    again = Parts(parts.world, time=16)
    with pytest.raises(EOFError, match="damaged"):
        again.learner.resume(tmp_path / "y", again.rollout, again.world)


# ---- values, and losses of one's own ----


def test_values():
    world = exphil.World("cartpole", lanes=3)
    plain = exphil.Model(world.spec, blocks="gru", hidden=16, seed=3)
    with pytest.raises(exphil.StateError, match="value head"):
        exphil.Session(plain).value
    with pytest.raises(exphil.InvalidError, match="value head"):
        exphil.Rollout(plain)
    valued = plain.with_value("shared", seed=7)
    assert valued.info.value == exphil.Value.SHARED and plain.with_value().info.value == exphil.Value.DETACHED
    sessions = [exphil.Session(model, streams=3, seed=1) for model in (plain, valued)]
    rows = np.random.default_rng(0).standard_normal((20, 3, 4)).astype(np.float32)
    for row in rows:
        assert sessions[0].step_row(row).tolist() == sessions[1].step_row(row).tolist()
    assert sessions[0].logits.tolist() == sessions[1].logits.tolist()
    assert sessions[1].value.tolist() == [0, 0, 0] and sessions[1].value.dtype == np.float32
    with pytest.raises(exphil.UnsupportedError):
        plain.quantize().with_value("shared")
    with pytest.raises(ValueError, match="value"):
        plain.with_value("all")


def softmax(logits):
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def test_a_loss_of_ones_own(spec, dataset):
    """Cross entropy by hand is the library's update."""
    model = exphil.Model(spec, blocks="gru", hidden=16, head_width=16, seed=3)
    theirs, mine = exphil.Trainer(model, rate=1e-2), exphil.Trainer(model, rate=1e-2)
    prefetcher = exphil.Prefetcher(dataset, model, batch=4, time=20)
    for update in range(1, 4):
        batch = prefetcher.next().copy()
        want = theirs.step_batch(batch)
        forward = mine.forward(batch)
        assert forward.logits.shape == (80, 8) and forward.values is None and not forward.logits.flags.writeable
        buttons, stick = batch.actions.reshape(80, 2).T
        bits, classes = buttons[:, None] >> np.arange(3) & 1, np.eye(5)[stick]
        pressed, chosen = 1 / (1 + np.exp(-forward.logits[:, :3])), softmax(forward.logits[:, 3:])
        dlogits = np.concatenate([(pressed - bits) / 3, chosen - classes], 1) / 80
        entropy = -np.log(np.where(bits, pressed, 1 - pressed)).sum() / 3 - np.log((chosen * classes).sum(1)).sum()
        told = mine.backward(dlogits, loss=entropy / 80)
        assert told.update == update and told.loss == pytest.approx(want.loss, rel=1e-5) and told.frames == want.frames
        assert told.gradient_norm == pytest.approx(want.gradient_norm, rel=1e-4)
    for name in ("input.weight", "input.bias"):
        np.testing.assert_allclose(mine.model().tensor_get(name), theirs.model().tensor_get(name), atol=1e-5)


def test_halves_of_an_update(spec, dataset):
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8, value="detached")
    trainer = exphil.Trainer(model)
    batch = exphil.Prefetcher(dataset, model, batch=2, time=10).next().copy()
    for call in (trainer.abandon, lambda: trainer.backward(np.zeros((20, 8)))):
        with pytest.raises(exphil.StateError, match="forward"):
            call()
    before = trainer.model().info.weights_hash
    forward = trainer.forward(batch)
    assert forward.values.shape == (20,)
    for call in (trainer.model, lambda: trainer.forward(batch), lambda: trainer.step_batch(batch)):
        with pytest.raises(exphil.StateError, match="between"):
            call()
    trainer.abandon()
    assert trainer.model().info.weights_hash == before
    forward = trainer.forward(batch)
    for dlogits, dvalues, word in [(np.zeros((19, 8)), None, "dlogits"), (np.zeros((20, 8)), np.zeros(19), "dvalues"),
                                   ("x", None, "dlogits"), (None, None, "dlogits")]:
        with pytest.raises((ValueError, TypeError), match=word):
            trainer.backward(dlogits, dvalues)
    with pytest.raises(exphil.NumericError):
        trainer.backward(np.full((20, 8), np.nan))
    trainer.forward(batch)
    assert trainer.backward(np.zeros((20, 8)), np.ones(20), 2.5).loss == 2.5
    changed = trainer.model()
    assert changed.tensor_get("input.weight").tolist() == model.tensor_get("input.weight").tolist()
    assert changed.info.weights_hash != before
    kept = trainer.forward(batch).logits
    trainer.close()
    gc.collect()
    assert np.isfinite(kept).all()
    with pytest.raises(exphil.ClosedError):
        trainer.backward(np.zeros((20, 8)))


def test_forward_from_the_states_of_sessions():
    """To the last bit what was played."""
    model = exphil.Model(Catch.spec, seed=4, **{**SMALL, "blocks": "gru mamba"})
    session = exphil.Session(model, streams=2, seed=1)
    rows = np.random.default_rng(0).standard_normal((30, 2, 3)).astype(np.float32)
    for row in rows[:10]:
        session.step_row(row)
    states = [session.state_save(0), session.state_save(1)]
    actions, logits, values = [], [], []
    for row in rows[10:]:
        actions.append(session.step_row(row).copy())
        logits.append(session.logits.copy())
        values.append(session.value.copy())
    shape = (2, 20)
    batch = exphil.Batch(
        rows[10:].swapaxes(0, 1), np.zeros((*shape, 0), int), np.zeros((*shape, 0, 1), int), np.swapaxes(actions, 0, 1),
        np.ones(shape), np.zeros(shape, np.uint8))
    trainer = exphil.Trainer(model, as_played=True)
    for given in (states, b"".join(states), np.frombuffer(b"".join(states), np.uint8)):
        forward = trainer.forward(batch, given)
        assert forward.logits.reshape(2, 20, 3).tolist() == np.swapaxes(logits, 0, 1).tolist()
        assert forward.values.reshape(shape).tolist() == np.swapaxes(values, 0, 1).tolist()
        trainer.abandon()
    for wrong in (states[:1], [states[0], b"x"], b"x" * len(b"".join(states))):
        with pytest.raises(exphil.ExphilError):
            trainer.forward(batch, wrong)
    with pytest.raises(TypeError):
        trainer.forward(batch, [1, 2])
    trainer.forward(batch)
    trainer.abandon()


# ---- new weights in play ----


def test_sessions_adopt_new_weights():
    models = [exphil.Model(Catch.spec, seed=seed, **{**SMALL, "blocks": "gru"}) for seed in range(3)]
    session, twin = (exphil.Session(models[0], seed=1, adoptable=True) for _ in range(2))
    row = np.ones((1, 3), np.float32)
    session.step_row(row)
    state = session.state_save()
    with pytest.raises(exphil.StateError, match="not prepared"):
        session.adopt(models[1])
    for model in models[1:]:
        model.prepare()
        model.prepare()
    assert session.adopt(models[1]) is None
    session.step_row(row)
    played = session.logits.tolist()
    before = session.adopt(models[2])
    assert isinstance(before, exphil.Model) and before.info.weights_hash == models[0].info.weights_hash
    assert session.info.adoptions == 2 and session.info.weights_hash == models[2].info.weights_hash
    before.close()
    assert models[0].info.hidden == 16
    # A state of the first weights, which are gone, goes on with the newest; the same two steps have other bits.
    session.state_restore(state)
    session.step_row(row)
    assert session.logits.tolist() != played
    twin.step_row(row)
    twin.adopt(models[1])
    twin.step_row(row)
    assert twin.logits.tolist() == played
    with pytest.raises(exphil.MismatchError):
        session.adopt(prepared(exphil.Model(Catch.spec, **{**SMALL, "hidden": 8})))
    with pytest.raises(exphil.StateError, match="not adoptable"):
        exphil.Session(models[0]).adopt(models[1])
    with pytest.raises(TypeError, match="model"):
        session.adopt(session)
    del models, before
    gc.collect()
    session.step_row(row)


def prepared(model):
    model.prepare()
    return model


# ---- what a world raises ----


class Failing(Catch):
    """Raises at the frame or reset of this number."""

    def __init__(self, lanes, error, frame=-1, reset=-1):
        super().__init__(lanes)
        self.error, self.left = error, {"frame": frame, "reset": reset}

    def count(self, what):
        self.left[what] -= 1
        if self.left[what] == -1:
            raise self.error

    def reset(self, *arguments):
        self.count("reset")
        super().reset(*arguments)

    def step(self, *arguments):
        self.count("frame")
        super().step(*arguments)


@pytest.mark.parametrize("when", [dict(frame=0), dict(frame=30), dict(reset=0), dict(reset=3), dict(reset=7)])
def test_what_a_world_raises_comes_out(when):
    for error in (LookupError("lost"), KeyboardInterrupt(), SystemExit(3), exphil.NumericError("mine"), StopIteration()):
        parts = Parts(exphil.World(Failing(4, error, **when), 4, spec=Catch.spec), time=64)
        with pytest.raises(type(error)) as raised:
            parts.chunks(2) if not isinstance(error, StopIteration) else parts.rollout.run(parts.world)
        assert raised.value is error
        with pytest.raises(exphil.StateError, match="failed before"):
            parts.rollout.run(parts.world)
        assert exphil.handle._raised == {}
    # The trainer goes on with a rollout of its weights.
    parts.rollout = exphil.Rollout(parts.trainer.model(), streams=4, time=64)
    parts.world = catch(4)
    assert parts.chunks(1)[0].rows == 256


@pytest.mark.parametrize("wrong, error, word", [
    (lambda f, i, r, e: r.fill(np.nan), exphil.NumericError, "reward"),
    (lambda f, i, r, e: e.fill(9), exphil.InvalidError, "end"),
    (lambda f, i, r, e: f.fill(np.inf), exphil.NumericError, "not finite"),
    (lambda f, i, r, e: f.__setitem__(0, np.zeros(7)), ValueError, "broadcast"),
    (lambda f, i, r, e: i[9], IndexError, "bounds"),
])
def test_worlds_that_lie(wrong, error, word):
    class Lies(Catch):
        def step(self, first, count, actions, *told):
            super().step(first, count, actions, *told)
            wrong(*told)

    parts = Parts(exphil.World(Lies(4), 4, spec=Catch.spec), time=64)
    with pytest.raises(error, match=word):
        parts.rollout.run(parts.world)


def test_what_a_world_is_shown_stays():
    """Arrays that a game keeps are sound for ever; actions are not the game's to change."""
    class Keeps(Catch):
        kept = []

        def step(self, *arguments):
            self.kept.append(arguments[2:])
            assert not arguments[2].flags.writeable
            super().step(*arguments)

    parts = Parts(exphil.World(Keeps(4), 4, spec=Catch.spec), time=16)
    parts.chunks(2)
    assert len({id(arrays[1]) for arrays in Keeps.kept}) == 2  # not made anew for each frame
    del parts
    gc.collect()
    assert np.isfinite([arrays[1].sum() for arrays in Keeps.kept]).all()


def test_worlds_that_do_not_fit():
    model = exphil.Model(Catch.spec, **SMALL)
    with pytest.raises(exphil.MismatchError, match="lanes"):
        exphil.Rollout(model, streams=4).run(catch(5))
    with pytest.raises(exphil.MismatchError, match="rows"):
        exphil.Rollout(model, streams=4).run(exphil.World("cartpole", lanes=4))
    with pytest.raises(TypeError, match="world must be an exphil.World, not Catch"):
        exphil.Rollout(model).run(Catch(1))
    for settings in (dict(deterministic=True), dict(heads=[exphil.HeadPlay(deterministic=True)])):
        with pytest.raises(exphil.UnsupportedError):
            exphil.Rollout(model, **settings)
    with pytest.raises(exphil.InvalidError, match="prefetcher"):
        data = exphil.Dataset(Catch.spec)
        data.add_rows(np.zeros((50, 3)), None, np.zeros((50, 1), int))
        exphil.Learner(exphil.Trainer(model, data))


# ---- life ----


def test_every_order_of_closing():
    names = ["world", "model", "trainer", "rollout", "learner"]
    for order in itertools.permutations(names):
        parts = Parts(catch(2), time=4, model=dict(hidden=8))
        for name in order:
            with contextlib.suppress(exphil.ClosedError):
                parts.chunks(1)
            getattr(parts, name).close()
            getattr(parts, name).close()
            assert getattr(parts, name).closed
        for use in (lambda: parts.rollout.run(parts.world), lambda: parts.learner.update(parts.rollout),
                    lambda: parts.rollout.session, lambda: parts.world.reset(0), lambda: parts.world.spec,
                    lambda: parts.world.lanes, lambda: parts.world.step([[0], [0]]), lambda: parts.world.save(0),
                    lambda: parts.rollout.step(), lambda: parts.rollout.reward([0, 0], [0, 0]),
                    lambda: parts.learner.save("x", parts.rollout),
                    lambda: next(parts.learner.train(parts.rollout, parts.world, 1))):
            with pytest.raises(exphil.ClosedError):
                use()
                pytest.fail("a closed object was used")


def test_every_order_of_forgetting():
    for order in itertools.permutations(["world", "model", "trainer", "rollout", "learner"]):
        parts = Parts(catch(2), time=4, model=dict(hidden=8))
        parts.chunks(1)
        for name in order:
            delattr(parts, name)
            gc.collect(0)


def test_memory_goes_back():
    context = exphil.Context(threads=1)

    def used():
        gc.collect()
        return context.memory.host_used_bytes

    before = used()
    for _ in range(2):
        game = Catch(4)
        game.world = exphil.World(game, 4, spec=Catch.spec, context=context)  # a cycle
        model = exphil.Model(Catch.spec, context=context, **SMALL)
        rollout = exphil.Rollout(model, streams=4, time=8)
        learner = exphil.Learner(exphil.Trainer(model))
        list(learner.train(rollout, game.world, 2))
        against = exphil.World("pong-two", lanes=2, context=context).against(
            exphil.Model(exphil.World("pong-two").spec, context=context, **SMALL))
        against.reset(0)
        assert used() > before
        rollout.close()
        del game, model, rollout, learner, against
        assert used() == before


def test_a_world_is_played_by_one_at_a_time():
    """Also by way of another that stands on it, and from inside."""
    world = exphil.World("pong-two", lanes=2)
    against = world.against(exphil.Model(world.spec, **SMALL))
    parts = Parts(against, time=4096)
    told = []

    def until_told(*calls):
        while not told:
            try:
                for call in calls:
                    call()
            except exphil.BusyError as error:
                told.append(str(error))

    worker = threading.Thread(target=until_told, args=(lambda: world.save(0), lambda: against.opponent(0)))
    worker.start()
    until_told(lambda: parts.chunks(1))
    worker.join()
    assert told[0] == "the world is in use"

    class Inside(Catch):
        def step(self, *arguments):
            self.world.reset(0)

    game = Inside(1)
    game.world = exphil.World(game, spec=Catch.spec)
    with pytest.raises(exphil.BusyError):
        Parts(game.world).rollout.run(game.world)


def test_ctrl_c_between_two_frames_changes_nothing():
    """Nor between two updates: the run goes on to the bits of one that was never interrupted."""
    def make():
        return Parts(exphil.World("cartpole", lanes=64), time=512)

    def chunk(parts):
        with contextlib.suppress(exphil.StateError):  # full already
            parts.rollout.run(parts.world)
        return parts.learner.update(parts.rollout)

    stopped = make()
    for _ in range(3):
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        until_interrupted(lambda: chunk(stopped))
        timer.join()
    last, whole = chunk(stopped), make()
    assert whole.chunks(last.chunks)[-1] == last and whole.hash == stopped.hash


def test_other_threads_run_while_a_world_is_played():
    """Were the interpreter lock held, the counter could not move."""
    parts, count, stop = Parts(exphil.World("cartpole", lanes=64), time=4096), [0], threading.Event()

    def work():
        while not stop.is_set():
            count[0] += 1
            time.sleep(0)

    # No switch by the clock: the worker runs only when the lock is given up.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    worker = threading.Thread(target=work)
    try:
        worker.start()
        before = count[0]
        parts.rollout.run(parts.world)
        moved = count[0] - before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        worker.join()
    assert moved > 100


def test_rollouts_do_not_cross_fork():
    parts = Parts(catch(2), time=8)
    parts.chunks(1)

    def work():
        for call in (lambda: parts.rollout.run(parts.world), lambda: parts.learner.update(parts.rollout)):
            with pytest.raises(exphil.StateError, match="fork"):
                call()
        del parts.world, parts.rollout, parts.learner
        gc.collect()
        return Parts(catch(2), time=8).chunks(1)[0].rows == 16

    assert in_child(work) == 0
    parts.chunks(1)


def test_the_interpreter_ends_quietly():
    code = """
from test_learn import Parts, catch
parts = Parts(catch(2), time=8); parts.chunks(1)
parts.world._game.game.all = parts
session = parts.rollout.session
half = parts.trainer
"""
    path = os.pathsep.join([os.path.dirname(os.path.dirname(exphil.__file__)), os.path.dirname(os.path.abspath(__file__))])
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "ignore", "-c", code], env=dict(os.environ, PYTHONPATH=path),
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(exphil.progress, "LINE_EVERY_S", 0)
    parts = Parts(catch(2), time=4)
    list(parts.learner.train(parts.rollout, parts.world, 2, progress=True))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["1/2", "2/2"] and "reward" in lines[0]


def test_the_example_of_the_readme(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "README.md"), encoding="utf-8") as file:
        example = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)[3]
    assert len(example.splitlines()) < 25
    exec(compile(example, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[-1]) > 475


def test_outcomes_weigh_rows(spec):
    dataset = exphil.Dataset(spec)
    for game in range(1, 5):
        floats, ids, actions = rows(200)
        dataset.add_rows(floats, ids, actions, game=game)
        dataset.set_rewards(game, np.random.default_rng(game).normal(size=200), half_life_frames=20.0)
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8, value="detached")
    with exphil.Prefetcher(dataset, model=model, batch=2, time=16) as batches:
        batch = next(iter(batches))
        assert batch.returns is not None and batch.returns.shape == batch.mask.shape
        assert np.isnan(batch.returns[batch.mask == 0]).all() and not np.isnan(batch.returns[batch.mask > 0]).any()
    trainer = exphil.Trainer(model, dataset, batch=2, time=16)
    plain = trainer.step_outcome()
    weighted = trainer.step_outcome(beta=0.5, cap=3.0)
    assert plain.effective == 1.0 and 0.0 < weighted.effective < 1.0
    assert weighted.update == 2 and weighted.known > 0 and weighted.value_loss > 0.0
    with pytest.raises(exphil.InvalidError, match="beta"):
        trainer.step_outcome(beta=-1.0)
    with pytest.raises(exphil.NumericError, match="rewards"):
        dataset.set_rewards(1, [0.0, float("nan")])


def test_a_frame_of_melee_is_worth_something():
    before, now = np.zeros(1, exphil.melee.FRAME), np.zeros(1, exphil.melee.FRAME)
    for frame, at in ((before, 10), (now, 11)):
        exphil.melee.begin(frame)
        frame["frame"], frame["stage"], frame["own_port"], frame["opponent_port"] = at, 32, 1, 2
        frame["player"]["present"][0, :2], frame["player"]["action_state"][0, :2] = 1, 14
    now["player"]["percent"][0, 1] = 12.0
    assert exphil.melee.reward(before, now) == pytest.approx(0.12)
    assert exphil.melee.reward(before, now, damage=-1.0) == 0.0
    now["player"]["action_state"][0, 0] = 3
    assert exphil.melee.reward(before, now) == pytest.approx(-0.88)
