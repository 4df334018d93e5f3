"""What the Python package of an earlier release gets from a library: one line a result, the same from every library.
old.py REPLAY"""
import dataclasses
import hashlib
import logging
import math
import sys
import tempfile

import numpy as np

import exphil

SPEC = exphil.Spec(
    layout="old", codec="old", float_count=2, ids=(exphil.IdSpec("kind", 4),),
    heads=(exphil.HeadSpec("move", "categorical", 3, neutral=1), exphil.HeadSpec("button", "bernoulli", 2)),
)
# What differs from run to run: times, and memory, which is also what the library's own structs take.
UNSURE = {"time_ns", "waited_ns", "worked_ns", "waits", "last_ns", "max_ns", "p50_ns", "p99_ns", "missed", "latency",
          "host_used_bytes", "host_peak_bytes", "host_allocations", "delivered"}


def plain(value):
    """A result as text or bytes, without what is unsure."""
    assert not callable(value), value
    if dataclasses.is_dataclass(value):
        return repr({name: one for name, one in dataclasses.asdict(value).items() if name not in UNSURE}).encode()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    return value if isinstance(value, bytes) else repr(value).encode()


def say(what, *values):
    """One line of results."""
    sum_of_all = hashlib.sha256(b"|".join(plain(value) for value in values)).hexdigest()
    print(f"{what:12} {sum_of_all[:16]}", flush=True)


def rows(game):
    """A ball and the paddle that follows it."""
    floats, ids, actions, paddle = [], [], [], 0.0
    for t in range(100):
        ball = math.sin(0.1 * t + game)
        move = 0 if ball < paddle - 0.05 else 2 if ball > paddle + 0.05 else 1
        floats.append((ball, paddle))
        ids.append((game % 4,))
        actions.append((move, t & 3))
        paddle += 0.1 * (move - 1)
    return floats, ids, actions


def any_game(context):
    """Rows, training, evaluation, fewer bits, play and rollback."""
    data = exphil.Dataset(SPEC, context=context)
    for game in range(8):
        data.add_rows(*rows(game), game=game)
    kept, held_out = data.split(0.25, seed=3)
    say("dataset", data.info, data.spec, kept.info, held_out.info, *data.episodes())
    model = exphil.Model(SPEC, context=context, blocks="gru", hidden=16, head_width=16, seed=1)
    prefetcher = exphil.Prefetcher(kept, model, batch=4, time=20)
    by_hand = exphil.Trainer(model, rate=1e-2)
    batch = prefetcher.next()
    say("by hand", batch.floats, batch.actions, batch.mask, by_hand.step_batch(batch), prefetcher.info)
    seen = []
    alone = exphil.Communicator(rank=0, ranks=1, all_reduce=lambda array: seen.append(array.copy()))
    trainer = exphil.Trainer(model, kept, rate=1e-2, batch=4, time=20, losses=(exphil.HeadLoss(smoothing=0.1), exphil.HeadLoss()),
                             communicator=alone)
    say("metrics", *[trainer.step() for _ in range(30)])
    say("trained", trainer.evaluate(held_out, frequencies=kept), trainer.optimizer, *seen)
    trained = trainer.model()
    say("weights", trained.info, trained.spec, *trained.tensors(), *[trained.tensor_get(one.name) for one in trained.tensors()])
    small = trained.quantize("i8")
    comparison = small.compare(trained, held_out)
    small.calibration_set(comparison)
    say("quantised", comparison, exphil.Model.load_memory(small.to_bytes(), context).calibration_get(), trained.evaluate(held_out))
    session = exphil.Session(trained, spec=SPEC, seed=5, streams=2, delay_frames=0, mode="carry",
                             heads=(exphil.HeadPlay(temperature=0.5), exphil.HeadPlay(deterministic=True)))
    state = session.state_save(1)
    floats, ids, _ = rows(9)
    played = [session.step_row([row, row[::-1]], [one, one]).copy() for row, one in zip(floats, ids)]
    say("played", *played, session.logits, session.info, state, session.state_save(1))
    try:
        exphil.Model.load("nowhere.safetensors", context)
    except exphil.IoError as error:
        say("refused", str(error))


def melee(context, path):
    """The layout, a replay whole and as a stream, rows of it, and play."""
    say("layout", exphil.melee.spec(), *exphil.melee.fields())
    replay = exphil.slp.Replay(path, rollback="first", context=context)
    frames = [replay.melee_frame(at, 1) for at in range(0, len(replay), 7)]
    say("replay", replay.info, replay.frames["frame"], replay.frames["seed"], *frames, *exphil.melee.encode(frames[9]))
    stream = exphil.slp.Stream(context=context)
    with open(path, "rb") as file:
        seen = [stream.melee_frame(1) for _ in stream.push(file.read())]
    say("stream", stream.info, *seen)
    data = exphil.Dataset(context=context)
    say("imported", data.add_replay(path, port=1), data.info, data.episode(0))
    model = exphil.Model(context=context, blocks="mlp", hidden=8, head_width=8)
    session = exphil.Session(model, streams=2, deterministic=True)
    two = exphil.melee.frames(2)
    pads = []
    for frame in frames[9:20]:
        two[:] = frame
        two["struct_size"] = exphil.melee.FRAME.itemsize
        two["player"]["x"][1] += 20
        pads.append(session.step(two).copy())
    say("pads", *pads)


# ---- since 0.2: a package of 0.1 has none of it ----

class Catch:
    """A ball and a player; where they meet is a point. Twelve frames."""

    def __init__(self, lanes):
        self.games = np.zeros((lanes, 3), np.float32)

    def reset(self, lane, seed, floats, ids):
        self.games[lane] = seed % 17 / 8 - 1, seed % 13 / 6 - 1, 0
        floats[0] = self.games[lane]

    def step(self, first, count, actions, floats, ids, reward, end):
        games = self.games[first : first + count]
        games[:, 1] += 0.125 * (actions[:, 0] - 1)
        games[:, 2] += 1
        reward[:] = abs(games[:, 0] - games[:, 1]) < 0.25
        end[:] = games[:, 2] >= 12
        floats[:] = games

    def save(self, lane):
        return self.games[lane].tobytes()

    def load(self, lane, state):
        self.games[lane] = np.frombuffer(state, np.float32)


def learnable(spec, context, **more):
    """A small policy that can learn by play."""
    return exphil.Model(spec, context=context, **{"blocks": "gru", "hidden": 8, "head_width": 8, "no_previous_action": True,
                                                  "neutral_start": True, "value": "shared", "seed": 1, **more})


def weights(trainer):
    """The hash of what it has learnt."""
    with trainer.model() as model:
        return model.info.weights_hash


def told(context):
    """Conditions and several delays: rows, training, evaluation, every frame, play, notes."""
    data = exphil.Dataset(SPEC, context=context)
    for game in range(4):
        data.add_rows(*rows(game), game=game)
        data.condition("rank", game, game % 4)
    data.condition_episodes("style", 1, 2, 2)
    conditions = [exphil.Condition("rank", 3, mask=0.25), exphil.Condition("style", 2)]
    model = exphil.Model(SPEC, context=context, blocks="gru", hidden=8, head_width=8, neutral_start=True, seed=2,
                         conditions=conditions, delays=[0, 2])
    trainer = exphil.Trainer(model, data, rate=1e-2, batch=4, time=20, drop_past=0.25, own_past=0.5)
    metrics = [trainer.step() for _ in range(8)]
    trainer.set_notes('{"old": 1}')
    trained = trainer.model()
    assert trained.notes == '{"old": 1}'
    say("told", *metrics, trainer.wait(), trained.info, trained.notes)
    say("told eval", trained.evaluate(data, conditions=[3, 1], delay_frames=2, alone_most_frames=50), trained.evaluate(data))
    seen = []
    trained.examine(data, lambda frame: seen.append((frame.frame, frame.likely.tobytes(), frame.logits.tobytes())), delay_frames=0)
    assert len(seen) == len(data) - 4 * 2  # targets are two frames later at most
    say("examined", *seen)
    session = exphil.Session(trained, seed=5, delay_frames=2, conditions=[1, 0])
    played = []
    for t, (row, one) in enumerate(zip(*rows(9)[:2])):
        if t == 50:
            session.conditions_set([0, 2])
        played.append(session.step_row([row], [one]).copy())
    say("told play", *played)


def outcome(context):
    """Rewards, outcome-weighted imitation, a loss of one's own, new weights at play."""
    data = exphil.Dataset(SPEC, context=context)
    for game in range(4):
        floats, ids, actions = rows(game)
        data.add_rows(floats, ids, actions, game=game)
        data.set_rewards(game, [move - 1.0 for move, _ in actions], half_life_frames=10)
    model = learnable(SPEC, context)
    trainer = exphil.Trainer(model, data, rate=1e-2, batch=4, time=20)
    metrics = [trainer.step_outcome(beta=0.5, warm_up=2) for _ in range(6)]
    assert metrics[-1].known > 0 and metrics[-1].effective < 1
    say("outcome", *metrics, trainer.evaluate(data), weights(trainer))
    own = exphil.Trainer(model, rate=1e-2)
    batch, told = exphil.Prefetcher(data, model, batch=4, time=20).next(), []
    for _ in range(4):
        half = own.forward(batch)
        logits, values = half.logits.copy(), half.values.copy()
        told += [logits, values, own.backward(logits, values - 1, loss=float(len(told)))]
    say("own loss", *told, weights(own))
    then = own.model()
    then.prepare()
    session, played = exphil.Session(model, adoptable=True, seed=3), []
    for t, (row, one) in enumerate(zip(*rows(9)[:2])):
        if t == 50:
            session.adopt(then)
        played += [session.step_row([row], [one]).copy(), session.value.copy()]
    assert session.info.adoptions == 1 and session.info.weights_hash == then.info.weights_hash
    say("adopted", *played)


def learn(context, folder):
    """Worlds, a learner and its checkpoint, blocks, matches, a world with opponents."""
    spec = exphil.Spec("catch", "catch", 3, (exphil.HeadSpec("move", "categorical", 3, neutral=1),))

    def parts():
        world = exphil.World(Catch(4), 4, spec=spec, state_bytes=12, context=context)
        model = learnable(spec, context)
        trainer = exphil.Trainer(model, rate=1e-2, as_played=True)
        rollout = exphil.Rollout(model, streams=4, time=24, seed=6)
        return world, rollout, exphil.Learner(trainer, model, to_teacher=0.05, epochs=2, half_life_frames=8), trainer

    world, rollout, learner, trainer = parts()
    metrics = list(learner.train(rollout, world, chunks=2, progress=False))
    learner.save(f"{folder}/old.learnt", rollout, world)
    metrics += learner.train(rollout, world, chunks=2, progress=False)
    assert metrics[-1].chunks == 4 and metrics[-1].recomputed == 0
    say("learnt", *metrics, weights(trainer))
    world, rollout, learner, again = parts()
    learner.resume(f"{folder}/old.learnt", rollout, world)
    assert list(learner.train(rollout, world, chunks=2, progress=False)) == metrics[2:] and weights(again) == weights(trainer)
    player = exphil.Rollout(again.model(), streams=4, time=24, seed=7)
    player.run(exphil.World(Catch(4), 4, spec=spec, context=context))
    block = player.block_save()
    assert rollout.block_take(block)
    say("blocks", exphil.block_info(block), learner.update(rollout), weights(again))
    pong = exphil.World("pong-two", lanes=4, context=context)
    players = [learnable(pong.spec, context, blocks="mlp", seed=seed) for seed in (1, 2)]
    say("match", exphil.match(*players, pong, games=4, points=1, most_frames=400, seed=8))
    against = pong.against(players, seed=9)
    rollout = exphil.Rollout(players[0], streams=4, time=64, seed=1)
    rollout.run(against)
    say("against", rollout.block_save(), against.opponent(0), against.opponent(1, players[0]))


def live(context):
    """A person takes over, and is learnt from behind the game; new weights enter where it settles."""
    settings = dict(session=dict(seed=3), trainer=dict(rate=1e-2, batch=4, time=20), context=dict(threads=1))
    played = []
    with exphil.Live(learnable(SPEC, context), piece_frames=40, updates=4, seed=7, paced=True, **settings) as pupil:
        floats, ids, actions = rows(5)
        for t in range(100):
            played.append(pupil.step_row(floats[t], ids[t], actions[t] if t % 40 < 20 else None).copy())
            if t % 50 == 49:
                pupil.settle()
        info = pupil.info
        assert info.person == 60 and info.updates > 0 and info.dropped == 0
        say("live", *played, info, weights(pupil))


def games(context, path, folder):
    """A corpus of games: written, read, rows of it; who won, what a frame is worth."""
    corpus = f"{folder}/old.games"
    with exphil.GamesWriter(corpus, stored=1, context=context) as writer:
        added = writer.add(path)
    with exphil.Games(corpus, context=context) as opened:
        data = exphil.Dataset(context=context)
        report = data.add_games(opened, port=1)
        assert report.taken == 1
        game = opened.game(0)
        back = opened.read(0)
        say("games", added, opened.info, game.info, game.settings, back.frames["frame"], report, data.info)
    replay = exphil.Replay(path, context=context)
    frames = [replay.melee_frame(at, 1, 2) for at in range(200, 240)]
    worth = [exphil.melee.reward(before, now, approach=0.1) for before, now in zip(frames, frames[1:])]
    say("worth", replay.info, replay.end, *replay.rows(1), *worth)


def ops(context):
    """Kernels alone, forward and backward."""
    draw = np.random.default_rng(4)

    def array(*shape):
        return draw.uniform(-1, 1, shape).astype(np.float32)

    exphil.ops.use(context)
    for name, operation, arrays in (
        ("scan", exphil.ops.selective_scan, dict(u=array(2, 4, 6), delta=array(2, 4, 6), A=-abs(array(4, 3)), B=array(2, 3, 6),
                                                 C=array(2, 3, 6))),
        ("attention", exphil.ops.attention, dict(q=array(2, 6, 2, 4), k=array(2, 6, 2, 4), v=array(2, 6, 2, 4),
                                                 bias=array(2, 3))),
        ("lstm", exphil.ops.lstm, dict(gates=array(2, 6, 20), weight=array(20, 5), bias=array(20))),
        ("gru", exphil.ops.gru, dict(gates=array(2, 6, 15), weight=array(15, 5), bias=array(15))),
        ("norm", exphil.ops.layer_norm_silu, dict(x=array(2, 6, 4), weight=array(4), bias=array(4))),
        ("conv", exphil.ops.causal_conv1d, dict(x=array(2, 4, 6), weight=array(4, 3), bias=array(4), activation="silu")),
    ):
        out = operation(**arrays)
        made = exphil.ops.gradients(operation, np.ones_like(out), **arrays)
        say(name, out, *[made[key] for key in sorted(made)])


def since_0_2(context, path):
    """What the packages of 0.2 added."""
    with tempfile.TemporaryDirectory() as folder:
        told(context)
        outcome(context)
        learn(context, folder)
        live(context)
        games(context, path, folder)
        ops(context)


def main(path):
    """Everything once, on a context with a log and a cancel hook."""
    context = exphil.Context(threads=1, log_level="debug", logger=logging.getLogger("old"))
    say("device", context.device, context.memory, context.cancelled)
    any_game(context)
    melee(context, path)
    if tuple(map(int, exphil.__version__.split(".")[:2])) >= (0, 2):
        since_0_2(context, path)
    print(f"exphil {exphil.__version__} on {exphil.library_version()}", file=sys.stderr)


main(sys.argv[1])
