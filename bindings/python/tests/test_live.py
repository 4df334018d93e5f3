"""A policy that learns behind its game: from a person, from rewards; paced runs are one, saved ones go on; wrong calls."""
import gc
import os
import re
import signal
import sys
import threading
import time

import numpy as np
import pytest
from test_life import in_child

import exphil

SPEC = exphil.Spec(
    "follow", "follow", 2, (exphil.HeadSpec("move", "categorical", 3, neutral=1), exphil.HeadSpec("press", "bernoulli", 2)),
    (exphil.IdSpec("place", 4),))
USUAL = dict(piece_frames=50, updates=20, seed=7, session=dict(seed=3), trainer=dict(rate=1e-2, batch=4, time=20),
             context=dict(threads=1))


def policy(**settings):
    return exphil.Model(SPEC, **{"blocks": "gru", "hidden": 16, "head_width": 16, "no_previous_action": True, "neutral_start": True,
                                 "value": "shared", "seed": 1, **settings})


class Person:
    """Plays by a rule: moves to where the first float is, presses by the id; and the game that shows these."""

    def __init__(self, seed=0):
        self.draw = np.random.default_rng(seed)

    def look(self):
        floats, ids = self.draw.uniform(-1, 1, 2).astype(np.float32), self.draw.integers(0, 4, 1, dtype=np.int32)
        return floats, ids, np.array([1 + (floats[0] > 0.3) - (floats[0] < -0.3), ids[0]], np.int32)


def play(live, person, frames, plays=lambda t: t % 100 < 60, settle=0, episode=400):
    """What was pressed, frame by frame."""
    pressed = []
    for t in range(frames):
        floats, ids, action = person.look()
        actions = live.step_row(floats, ids, action if plays(t) else None)
        assert not plays(t) or actions.tolist() == action.tolist()
        pressed.append(actions.tolist())
        if (t + 1) % episode == 0:
            live.reward(0, exphil.End.OVER)
        if settle and (t + 1) % settle == 0:
            live.settle()
    return pressed


def agreement(model, frames=500):
    """Share of the frames in which a policy alone does what another person of the same rule does."""
    person, session, right = Person(99), exphil.Session(model, deterministic=True), 0
    for _ in range(frames):
        floats, ids, action = person.look()
        right += session.step_row(floats, ids)[0].tolist() == action.tolist()
    return right / frames


def weights(live):
    with live.model() as model:
        return model.info.weights_hash


# ---- a person ----


def test_what_a_person_does_is_learnt():
    model = policy()
    with exphil.Live(model, **USUAL) as live:
        play(live, Person(), 1200)
        live.settle()
        info = live.info
        assert agreement(model) < 0.4 and agreement(live.model()) > 0.9
        assert (info.frames, info.person, info.learnt, info.dropped) == (1200, 720, 720, 0)
        # A piece is 50 frames: of every hundred the person has all of the first and ten of the second.
        assert (info.pieces, info.updates) == (24, 24 * 20)
        assert info.adopted >= 1 and (info.failed, info.message) == (0, "") and 0 < info.loss < 1
        # The session plays what was learnt, the model that it was made of is as it was.
        before = policy().info.weights_hash
        assert model.info.weights_hash == before != weights(live)
        person, right = Person(98), 0
        for _ in range(200):
            floats, ids, action = person.look()
            live.step_row(floats, ids)
            right += live.session.logits[0, :3].argmax() == action[0]
        assert right > 180


def test_new_weights_enter_between_two_frames():
    """Not paced, they come by themselves."""
    with exphil.Live(policy(), **USUAL) as live:
        person = Person()
        while live.info.adopted < 2:
            play(live, person, 1)
        assert live.info.frames >= 100


def test_paced_weights_enter_where_it_settles():
    """They are there, and wait."""
    model = policy()
    with exphil.Live(model, paced=True, **USUAL) as live:
        person = Person()
        while weights(live) == model.info.weights_hash:
            play(live, person, 1)
        play(live, person, 50)
        assert live.info.adopted == 0
        live.settle()
        assert live.info.adopted == 1


def test_what_was_taught_before_keeps_its_share():
    """The data say left, the person says right: more follows whose share is larger."""
    floats, ids = np.zeros((400, 2)), np.zeros((400, 1), int)
    data = exphil.Dataset(SPEC)
    data.add_rows(floats, ids, np.tile([0, 0], (400, 1)))

    def right(share):
        with exphil.Live(policy(), data, share=share, paced=True, **{**USUAL, "updates": 60}) as live:
            for _ in range(100):
                live.step_row(floats[0], ids[0], [2, 0])
            live.settle()
            live.step_row(floats[0], ids[0])
            odds = np.exp(live.session.logits[0, :3])
            return odds[2] / odds.sum()

    assert right(0.1) < 0.35 < 0.65 < right(0.9)


def test_what_is_let_pass_counts_where_it_is_approved():
    def learnt_from(**settings):
        with exphil.Live(policy(), paced=True, **USUAL, **settings) as live:
            play(live, Person(), 100, plays=lambda t: False)
            live.settle()
            return live.info.updates, live.info.learnt

    assert learnt_from() == (0, 0)
    assert learnt_from(approved=0.5) == (40, 0)


def test_two_paced_runs_are_one():
    def run(seed=7, settle=130):
        with exphil.Live(policy(), paced=True, **{**USUAL, "seed": seed}) as live:
            return play(live, Person(), 600, settle=settle), live.settle(), weights(live), live.info.loss

    first = run()
    assert run() == first
    assert run(seed=8)[2] != first[2] and run(settle=70)[0] != first[0]


def test_saved_runs_go_on(tmp_path):
    def more(live, person):
        pressed = play(live, person, 400, settle=90)
        live.settle()
        return pressed, weights(live)

    path, settings = tmp_path / "kept", dict(paced=True, rollback_frames=1, **USUAL)
    live, person = exphil.Live(policy(), **settings), Person()
    play(live, person, 500, settle=90, episode=1000)
    live.save(path)
    again, same = exphil.Live(policy(), **settings), Person()
    for _ in range(500):
        same.look()
    again.resume(path)
    assert weights(again) == weights(live)
    assert (again.info.learnt, again.info.updates, again.info.pieces) == (live.info.learnt, live.info.updates, live.info.pieces)
    # The session's state is the host's: an episode ends in one, and the other begins with its draws.
    live.reward(0, exphil.End.OVER)
    again.session.state_restore(live.session.state_save())
    assert more(again, same) == more(live, person)
    with exphil.Model.load(path) as saved:
        assert agreement(saved) > 0.5
    with pytest.raises(exphil.StateError, match="frames were played"):
        again.resume(path)
    with exphil.Live(policy(), **{**settings, "updates": 21}) as other:
        with pytest.raises(exphil.MismatchError, match="updates 20, this is 21"):
            other.resume(path)
        with pytest.raises(exphil.IoError):
            other.resume(tmp_path / "nothing")
        assert weights(other) == policy().info.weights_hash


def test_the_thread_saves_by_itself(tmp_path):
    path = tmp_path / "kept"
    with exphil.Live(policy(), path=path, save_pieces=2, **USUAL) as live:
        play(live, Person(), 250, plays=lambda t: True)
        live.settle()
        assert (live.info.pieces, live.info.saved, live.info.unsaved) == (5, 2, 0)
    with exphil.Live(policy(), **USUAL) as live:
        live.resume(path)
        assert (live.info.pieces, live.info.learnt) == (4, 200)
    with exphil.Live(policy(), path=tmp_path / "no" / "folder", save_pieces=1, **USUAL) as live:
        play(live, Person(), 100)
        live.settle()
        told = live.info
        assert (told.saved, told.failed) == (0, 0) and told.unsaved < 0 and "folder" in told.message


def test_frames_that_are_taken_back_are_not_learnt():
    def run(back):
        with exphil.Live(policy(), paced=True, rollback_frames=8, **USUAL) as live:
            person, pressed = Person(), []
            for t in range(300):
                if back and t % 37 == 36:
                    kept, never = live.session.state_save(), Person(5)
                    play(live, never, t % 8 + 1, plays=lambda t: t % 2 == 0)
                    live.session.state_restore(kept)
                pressed += play(live, person, 1, plays=lambda _, t=t: t % 5 > 0)
                if t % 110 == 109:
                    live.settle()
            live.settle()
            assert live.info.taken_back == (sum(t % 8 + 1 for t in range(36, 300, 37)) if back else 0)
            return pressed, weights(live)

    assert run(True) == run(False)


def test_melee():
    """The person's pad comes back as it is, and the policy learns to hold it."""
    model = exphil.Model(blocks="mlp", hidden=16, head_width=16, no_previous_action=True, seed=1)
    frame = exphil.melee.frames()[0]
    frame["stage"], frame["own_port"] = 32, 1
    frame["player"]["present"][:2] = 1
    held = exphil.melee.pad(exphil.Button.A, main_x=0.123)
    with exphil.Live(model, **{**USUAL, "session": dict(deterministic=True)}) as live:
        for _ in range(100):
            assert live.step(frame, held) == held
        live.settle()
        pad = live.step(frame)
        assert pad.shape == () and pad["buttons"] == exphil.Button.A and abs(pad["main_x"] - 0.123) < 0.1
        live.session.frames[0] = frame
        assert live.step() == pad
        with pytest.raises(TypeError, match="person"):
            live.step(frame, 3)
        frame["player"]["x"][0] = np.nan
        with pytest.raises(exphil.NumericError, match="x"):
            live.step(frame, held)
        assert live.info.frames == 102
    with exphil.Live(policy(), **USUAL) as live, pytest.raises(exphil.StateError, match="use step_row"):
        live.step(frame)


def test_the_example_of_the_readme(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "README.md"), encoding="utf-8") as file:
        example = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)[4]
    assert len(example.splitlines()) < 25
    exec(compile(example, "README.md", "exec"), {})
    helped = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert len(helped) == 6 and helped[0] > 3 and max(helped[3:]) < 0.5
    assert exphil.Model.load("caught.safetensors").info.hidden == 32


# ---- rewards ----


def test_reinforcement_is_that_of_a_learner():
    """A chunk is settled before the next: then the weights are those of Rollout and Learner, to the last bit."""
    world = exphil.World("cartpole")
    model = exphil.Model(world.spec, blocks="gru", hidden=16, head_width=16, neutral_start=True, value="shared", seed=1)
    settings = dict(half_life_frames=69, reward_scale=0.1, to_teacher=0.01)
    trainer = exphil.Trainer(model, rate=1e-3, as_played=True)
    rollout = exphil.Rollout(model, time=24, seed=5)
    learner = exphil.Learner(trainer, model, **settings)
    with exphil.Live(model, way="reinforce", teacher=model, time=24, paced=True, session=dict(seed=5), trainer=dict(rate=1e-3),
                     learner=settings) as live:
        floats, ids = world.reset(0, 3)
        for chunk in range(1, 4):
            full = False
            while not full:
                actions = live.step_row(floats, ids)
                assert actions.tolist() == rollout.step(floats, ids)[0].tolist()
                floats, ids, reward, end = (one.copy() for one in world.step(actions[None]))
                live.reward(reward, end, floats, ids)
                full = rollout.reward(reward, end, floats, ids)
                if end[0]:
                    floats, ids = world.reset(0, chunk)
            metrics = learner.update(rollout)
            live.settle()
            with trainer.model() as now:
                assert weights(live) == now.info.weights_hash
            info = live.info
            assert (info.pieces, info.adopted, info.learnt, info.dropped) == (chunk, chunk, 24 * chunk, 0)
            assert (info.updates, info.loss, info.reward) == (metrics.updates, metrics.loss, metrics.reward)


def test_a_full_ring_drops_chunks():
    world = exphil.World("cartpole")
    model = exphil.Model(world.spec, blocks="mlp", hidden=8, head_width=8, value="shared", seed=1)
    with exphil.Live(model, way=exphil.LiveWay.REINFORCE, time=8, ring_frames=1) as live:
        floats, ids = (one.copy() for one in world.reset(0, 3))
        for _ in range(400):
            live.step_row(floats, ids)
            live.reward(1.0, 0, floats[0], ids[0])
        live.settle()
        assert live.info.pieces + live.info.dropped // 8 == 50 and live.info.failed == 0


# ---- what is refused ----


def test_a_person_out_of_range():
    with exphil.Live(policy(), **USUAL) as live:
        row = Person().look()[:2]
        for action, error in [([3, 0], exphil.InvalidError), ([-1, 0], exphil.InvalidError), ([0, 4], exphil.InvalidError),
                              ([0], ValueError), ([[0, 0], [0, 0]], ValueError), ([0.5, 0], TypeError), (1, ValueError),
                              ("up", ValueError), ([2**40, 0], ValueError)]:
            with pytest.raises(error, match="person"):
                live.step_row(*row, action)
        with pytest.raises(ValueError, match="ids are missing"):
            live.step_row(row[0])
        with pytest.raises(exphil.NumericError):
            live.step_row([np.nan, 0], row[1])
        for end in (3, -1, 0.5, [0, 0]):
            with pytest.raises((exphil.InvalidError, ValueError, TypeError), match="end"):
                live.reward(0, end)
        assert live.info.frames == 0
        assert live.step_row(row[0][None], row[1][None], [[2, 3]]).tolist() == [2, 3]


def test_the_session_is_stepped_by_the_live_policy_alone():
    model = policy()
    with exphil.Live(model, **USUAL) as live:
        play(live, Person(), 3)
        session = live.session
        for call in (session.step_row, session.reset, lambda: session.adopt(model),
                     lambda: session.state_restore(session.state_save())):
            with pytest.raises(exphil.StateError):
                call()
        assert session.info.steps == 3 and session.value.shape == (1,)
        session.close()
        play(live, Person(), 1)
        assert live.session.info.steps == 4
        session = live.session
    for call in (lambda: session.logits, live.step_row, live.settle):
        with pytest.raises(exphil.ClosedError):
            call()


@pytest.mark.parametrize("settings, error, words", [
    (dict(way="guess"), ValueError, "guess"),
    (dict(way=2), exphil.InvalidError, "way is 2"),
    (dict(time=8), exphil.InvalidError, "time is for EXPHIL_LIVE_REINFORCE"),
    (dict(learner={}), exphil.InvalidError, "learner is for EXPHIL_LIVE_REINFORCE"),
    (dict(way="reinforce", trainer=dict(batch=2)), exphil.InvalidError, "sampling is for EXPHIL_LIVE_IMITATE"),
    (dict(way="reinforce", piece_frames=2), exphil.InvalidError, "piece_frames is for"),
    (dict(share=1.0), exphil.InvalidError, "share"),
    (dict(approved=-0.5), exphil.InvalidError, "approved"),
    (dict(session=dict(streams=2)), exphil.InvalidError, "streams is 2"),
    (dict(session=dict(deliver="decided")), exphil.UnsupportedError, "deliver"),
    (dict(session=dict(stream=1)), TypeError, "stream"),
    (dict(session=[1]), TypeError, "session must be a dictionary"),
    (dict(trainer=dict(seed=1)), ValueError, "seed"),
    (dict(trainer=dict(dataset=None)), ValueError, "dataset"),
    (dict(trainer=dict(communicator=None)), ValueError, "communicator"),
    (dict(trainer=dict(rates=1)), TypeError, "rates"),
    (dict(trainer=dict(rate=-1.0)), exphil.InvalidError, "rate"),
    (dict(way="reinforce", learner=dict(teacher=None)), ValueError, "teacher"),
    (dict(way="reinforce", learner=dict(clip="x")), TypeError, "clip"),
    (dict(context=dict(logger=None)), TypeError, "logger"),
    (dict(context=dict(device="abacus")), exphil.ExphilError, "abacus"),
    (dict(path=""), exphil.InvalidError, "path is empty"),
    (dict(path="a\0b"), ValueError, "null"),
    (dict(teacher=3), TypeError, "teacher"),
    (dict(dataset=3), TypeError, "dataset"),
])
def test_wrong_settings(settings, error, words):
    with pytest.raises(error, match=words):
        exphil.Live(policy(), **settings)


def test_what_does_not_belong_together():
    other = exphil.Dataset(exphil.Spec("other", "other", 1, (exphil.HeadSpec("a", "categorical", 2),)))
    with pytest.raises(exphil.MismatchError):
        exphil.Live(policy(), other)
    with pytest.raises(exphil.UnsupportedError, match="quantised"):
        exphil.Live(policy().quantize("bf16"))
    with pytest.raises(exphil.UnsupportedError, match="conditions"):
        exphil.Live(policy(delays=[0, 2]))
    with pytest.raises(exphil.ExphilError, match="value"):
        exphil.Live(policy(value="none"), way="reinforce")
    with pytest.raises(TypeError, match="model"):
        exphil.Live(other)


# ---- threads ----


def test_other_threads_run_while_it_settles():
    """Were the interpreter lock held, the counter could not move between the start and the end of a call."""
    live, person, count, stop = exphil.Live(policy(), **{**USUAL, "updates": 400}), Person(), [0], threading.Event()

    def work():
        while not stop.is_set():
            count[0] += 1
            assert live.info.failed == 0 and live.model().info.hidden == 16

    # No switch by the clock: the worker runs only when the lock is given up.
    interval, moved = sys.getswitchinterval(), 0
    sys.setswitchinterval(1000)
    worker = threading.Thread(target=work)
    try:
        worker.start()
        while moved < 10:
            play(live, person, 50, plays=lambda t: True)
            first = count[0]
            live.settle()
            moved += count[0] - first
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        worker.join()
    assert moved >= 10


def test_a_second_thread_is_told_busy():
    live, told = exphil.Live(policy(), **{**USUAL, "updates": 2000}), []

    def until_told(call):
        while not told:
            try:
                call()
            except exphil.BusyError as error:
                told.append(str(error))

    def learn():
        live.step_row(None, None, [0, 0])
        live.settle()

    worker = threading.Thread(target=until_told, args=(learn,))
    worker.start()
    until_told(live.step_row)
    worker.join()
    assert all("live" in text for text in told)


def test_a_forked_child_may_end_it():
    """Its thread and whoever has its lock are the parent's: nobody is waited for."""
    live = exphil.Live(policy(), **USUAL)
    play(live, Person(), 60)
    live.settle()
    time.sleep(0.05)  # so that the thread rests as it mostly does

    def work():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        for call in (live.step_row, live.settle, live.model):
            with pytest.raises(exphil.StateError, match="fork"):
                call()
        live.close()
        gc.collect()
        return True

    assert in_child(work) == 0
    play(live, Person(), 60)
    live.settle()
