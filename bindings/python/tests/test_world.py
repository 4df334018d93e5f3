"""Worlds: the library's, a user's own, environments of Gymnasium's interface, and worlds as such environments."""
from types import SimpleNamespace

import numpy as np
import pytest
from test_learn import SMALL, Catch, Parts, catch, mean_return

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
    for wrong, error in [(("chess",), exphil.InvalidError), (("pong", 0), exphil.InvalidError),
                         (("pong", 4097), exphil.InvalidError), (("a\0b",), ValueError)]:
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
        (Catch(1), dict(spec=Catch.spec, lanes=0), ValueError, "lanes"),
        (Catch(1), dict(spec=Catch.spec, lanes=4097), ValueError, "lanes"),
        (Catch(1), dict(spec=Catch.spec, seats=9), ValueError, "seats"),
        (Catch(1), dict(spec=Catch.spec, state_bytes=-1), ValueError, "state"),
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


# ---- environments of Gymnasium's interface ----


def box(low, high, shape, dtype=np.float32):
    return SimpleNamespace(low=np.full(shape, low), high=np.full(shape, high), shape=shape, dtype=np.dtype(dtype))


def discrete(n, start=0):
    return SimpleNamespace(n=np.int64(n), start=start, shape=())


def multi_discrete(nvec):
    return SimpleNamespace(nvec=np.array(nvec), shape=np.shape(nvec), dtype=np.dtype(np.int64))


def multi_binary(*shape):
    return SimpleNamespace(n=shape[0] if len(shape) == 1 else shape, shape=shape)


def spaces(inner):
    return SimpleNamespace(spaces=inner, shape=None)


class Guess:
    """The right answer is shown; it is cut off after ten frames, and over with the first mistake."""

    observation_space, action_space = box(-1, 1, (3,)), discrete(3, start=5)

    def __init__(self):
        self.seeds = []

    def look(self):
        self.right = self.draw.integers(3)
        return np.eye(3, dtype=np.float64)[self.right]

    def reset(self, *, seed=None, options=None):
        self.seeds.append(seed)
        self.draw, self.frames = np.random.default_rng(seed), 0
        return self.look(), {}

    def step(self, action):
        assert type(action) is int and 5 <= action <= 7
        self.frames += 1
        wrong = action != 5 + self.right
        return self.look(), 1.0 - wrong, wrong, self.frames >= 10, {"ignored": 1}


def test_environments_are_learnt():
    envs = [Guess() for _ in range(8)]
    parts = Parts(exphil.World.of(envs), time=32, half_life_frames=5)
    assert parts.world.spec == exphil.Spec("Guess", "Guess", 3, (exphil.HeadSpec("action", "categorical", 3),))
    told = parts.chunks(40)
    assert mean_return(told[:1]) < 2 and mean_return(told[-5:]) > 9.5
    assert all(0 <= seed < 2**31 for env in envs for seed in env.seeds) and len({env.seeds[0] for env in envs}) == 8
    # Both at once is over.
    world = exphil.World.of([Guess()])
    world.reset(0, seed=1)
    for frame in range(1, 11):
        end = world.step([[int(np.argmax(world.floats[0])) if frame < 10 else (int(np.argmax(world.floats[0])) + 1) % 3]])[3]
        assert end[0] == (exphil.End.OVER if frame == 10 else exphil.End.GOES_ON)


class Echo:
    """Any spaces: shows what it is given, and keeps what it is told."""

    def __init__(self, observations, actions, shown):
        self.observation_space, self.action_space, self.shown = observations, actions, shown

    def reset(self, seed=None):
        return self.shown, {}

    def step(self, action):
        self.action = action
        return self.shown, 0.0, False, True, {}


SPACES = [
    (box(0, 255, (2, 3), np.uint8), np.arange(6, dtype=np.uint8).reshape(2, 3), [0, 1, 2, 3, 4, 5], []),
    (discrete(5, start=-2), -1, [], [1]),
    (multi_discrete([[3, 4], [5, 6]]), np.array([[0, 3], [2, 5]]), [], [0, 3, 2, 5]),
    (multi_binary(3), np.array([1, 0, 1], np.int8), [1, 0, 1], []),
    (spaces({"a": discrete(4), "b": spaces((box(0, 1, ()), multi_discrete([2, 9])))}),
     {"b": (0.5, [1, 7]), "a": 3}, [0.5], [3, 1, 7]),
]


@pytest.mark.parametrize("space, shown, floats, ids", SPACES)
def test_observations_of_every_kind(space, shown, floats, ids):
    world = exphil.World.of([Echo(space, discrete(2), shown)], name="echo")
    rows, numbers = world.reset(0)
    assert rows.tolist() == [floats] and numbers.tolist() == [ids] and world.spec.layout == "echo"
    assert len(world.spec.ids) == len(ids) and all(value < one.entries for value, one in zip(ids, world.spec.ids))
    parts = Parts(world, time=4)
    assert parts.chunks(1)[0].rows == 4


@pytest.mark.parametrize("space, values, action", [
    (discrete(4, start=3), [2], 5), (multi_discrete([2, 3]), [1, 2], [1, 2]),
    (multi_discrete([[2, 3], [4, 5]]), [1, 2, 3, 4], [[1, 2], [3, 4]]),
    (multi_binary(3), [0b110], [0, 1, 1]), (multi_binary(2, 2), [0b0110], [[0, 1], [1, 0]]),
    (multi_binary(33), [1 << 30, 0b10], [0] * 30 + [1, 0, 1]),
])
def test_actions_of_every_kind(space, values, action):
    env = Echo(box(0, 1, (1,)), space, [0.0])
    world = exphil.World.of([env])
    assert len(world.spec.heads) == len(values)
    world.reset(0)
    world.step([values])
    assert np.shape(env.action) == np.shape(action) and np.array_equal(env.action, action)


def test_environments_that_are_refused():
    good = (box(0, 1, (2,)), discrete(2), [0, 0])
    for envs, error, word in [
        ([Echo(good[0], box(0, 1, (2,)), 0)], TypeError, "actions of SimpleNamespace"),
        ([Echo(SimpleNamespace(shape=()), good[1], 0)], TypeError, "observations of SimpleNamespace"),
        ([], ValueError, "empty"), (3, TypeError, "iterable"), ([object()], AttributeError, "observation_space"),
        ([Echo(*good), Echo(box(0, 1, (3,)), good[1], 0)], ValueError, r"envs\[1\]"),
        ([Echo(good[0], multi_discrete([2] * 17), 0)], exphil.InvalidError, "head_count"),
        ([Echo(good[0], discrete(1), 0)], exphil.InvalidError, "count"),
        ([Echo(box(0, 1, (4097,)), good[1], 0)], exphil.InvalidError, "float_count"),
    ]:
        with pytest.raises(error, match=word):
            exphil.World.of(envs)
    with pytest.raises(TypeError, match="have save"):
        exphil.World.of([Echo(*good)], state_bytes=8).save(0)
    for shown, error in [([0], ValueError), ([0, 0, 0], ValueError), (None, (ValueError, TypeError)), (["a", "b"], ValueError),
                         ([np.nan, 0], exphil.NumericError)]:
        parts = Parts(exphil.World.of([Echo(*good[:2], shown)]), time=4)
        with pytest.raises(error):
            parts.rollout.run(parts.world)


def test_environments_that_can_be_saved(tmp_path):
    class Saved(Guess):
        def save(self):
            return bytes([self.frames, self.right]) + repr(self.draw.bit_generator.state).encode()

        def load(self, state):
            self.frames, self.right = state[0], state[1]
            self.draw = np.random.default_rng()
            self.draw.bit_generator.state = eval(state[2:].decode())

    def make():
        return Parts(exphil.World.of([Saved() for _ in range(2)], state_bytes=1000), time=7)

    whole, half, again = make(), make(), make()
    want = whole.chunks(5)
    half.chunks(2)
    half.learner.save(tmp_path / "half", half.rollout, half.world)
    again.learner.resume(tmp_path / "half", again.rollout, again.world)
    assert again.chunks(3) == want[2:] and again.hash == whole.hash


# ---- and the other way round ----


def test_a_world_as_an_environment():
    env, world = exphil.World("cartpole").env(), exphil.World("cartpole")
    observation, told = env.reset(seed=5)
    assert told == {} and observation.dtype == np.float32 and observation.tolist() == world.reset(0, 5)[0][0].tolist()
    frames, over = 0, False
    while not over:
        observation, reward, over, cut_off, _ = env.step(frames % 2)
        assert observation.tolist() == world.step([[frames % 2]])[0][0].tolist() and reward == 1.0 and cut_off is False
        frames += 1
    assert 8 < frames < 100
    first = [env.reset(seed=6)[0].tolist()] + [env.reset()[0].tolist() for _ in range(3)]
    assert first == [env.reset(seed=6)[0].tolist()] + [env.reset()[0].tolist() for _ in range(3)] and len(set(map(str, first))) == 4
    assert env.observation_space.shape == (4,) and env.action_space.n == 2 and env.unwrapped is env
    for wrong in (2, -1, 0.5, "x", None):
        with pytest.raises((ValueError, TypeError)):
            env.step(wrong)
    again = exphil.World.of([exphil.World("cartpole").env()], name="cartpole")
    assert Parts(again, time=8).chunks(1)[0].rows == 8
    env.close()
    with pytest.raises(exphil.ClosedError):
        env.reset()
    for world in (exphil.World("cartpole", lanes=2), exphil.World("pong-two")):
        with pytest.raises(ValueError, match="one lane and one seat"):
            world.env()


@pytest.mark.parametrize("space, shown, floats, ids", SPACES)
def test_worlds_of_every_kind_as_environments(space, shown, floats, ids):
    for actions, action in [(multi_discrete([2, 3]), np.array([1, 2])), (multi_binary(3), np.array([1, 0, 1]))]:
        inner = Echo(space, actions, shown)
        world = exphil.World.of([exphil.World.of([inner]).env()])
        rows, numbers = world.reset(0)
        assert rows.tolist() == [floats] and numbers.tolist() == [ids]
        world._game.game.envs[0].step(action)
        assert np.array_equal(inner.action, action)
    with pytest.raises(TypeError, match="no space"):
        exphil.World(Catch(1), spec=exphil.Spec("a", "b", 1, (
            exphil.HeadSpec("a", "bernoulli", 1), exphil.HeadSpec("b", "categorical", 2)))).env()


def test_with_gymnasium_itself():
    gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed (PyPI): only what looks like it is tested")
    from gymnasium.utils.env_checker import check_env

    env = exphil.World("cartpole").env()
    assert isinstance(env, gymnasium.Env)
    check_env(env, skip_render_check=True)
    parts = Parts(exphil.World.of([gymnasium.make("CartPole-v1") for _ in range(8)]), chunks=60, half_life_frames=69,
                  reward_scale=0.1, model=dict(hidden=64, head_width=64))
    assert parts.world.spec.layout == "CartPole-v1"
    told = parts.chunks(60)
    assert mean_return(told[:5]) < 60 and mean_return(told[-10:]) > 300
    with pytest.raises(TypeError, match="actions of Box"):
        exphil.World.of([gymnasium.make("Pendulum-v1")])
