"""What the Python package of an earlier release gets from a library: one line a result, the same from every library.
old.py REPLAY"""
import dataclasses
import hashlib
import logging
import math
import sys

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


def main(path):
    """Everything once, on a context with a log and a cancel hook."""
    context = exphil.Context(threads=1, log_level="debug", logger=logging.getLogger("old"))
    say("device", context.device, context.memory, context.cancelled)
    any_game(context)
    melee(context, path)
    print(f"exphil {exphil.__version__} on {exphil.library_version()}", file=sys.stderr)


main(sys.argv[1])
