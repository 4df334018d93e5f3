"""What test_ranks.py runs by exphil launch: a rank with a GPU of its own. Each prints a hash of its weights."""
import os

import numpy as np

import exphil

RANK, RANKS = int(os.environ["EXPHIL_RANK"]), int(os.environ["EXPHIL_RANKS"])
UPDATES, LANES, FRAMES = 4, 2, 5


def group(context):
    """The id goes through the descriptors of launch."""
    if RANK == 0:
        name = exphil.ranks_id(context)
        os.write(int(os.environ["EXPHIL_ID_OUT"]), name)
    else:
        name = os.read(int(os.environ["EXPHIL_ID_IN"]), 4096)
    made = exphil.Ranks(name, RANK, RANKS, context=context)
    assert (made.rank, made.ranks) == (RANK, RANKS)
    return made


def batch(made, lanes):
    return exphil.Batch(
        made.standard_normal((lanes, FRAMES, 3)).astype(np.float32), np.zeros((lanes, FRAMES, 0), np.int32),
        np.zeros((lanes, FRAMES, 1, 1), np.int32), made.integers(0, 3, (lanes, FRAMES, 1)).astype(np.int32),
        np.ones((lanes, FRAMES), np.float32), np.zeros((lanes, FRAMES), np.uint8))


spec = exphil.Spec("ranks", "ranks", 3, (exphil.HeadSpec("way", "categorical", 3),))
context = exphil.Context(f"cuda:{RANK}")
model = exphil.Model(spec, context=context, blocks="gru", hidden=4, head_width=4)
ranks = group(context)
numbers = np.array([RANK, 2.0 * RANK, -1.5])
ranks.all_reduce(numbers)
whole = RANKS * (RANKS - 1) / 2
assert numbers.tolist() == [whole, 2.0 * whole, -1.5 * RANKS]
floats = np.full((2, 3), RANK, np.float32)
ranks.all_reduce(floats)
assert (floats == whole).all()
for wrong in (numbers[::2], numbers.astype(np.int64), numbers.tolist()):
    try:
        ranks.all_reduce(wrong)
        raise SystemExit("a mistake: taken")
    except TypeError:
        pass
trainer = exphil.Trainer(model, device_communicator=ranks, reduction="sums")
with_what = np.random.default_rng(RANK)
for _ in range(UPDATES):
    metrics = trainer.step_batch(batch(with_what, LANES))
waited = trainer.wait()
assert (waited.update, waited.loss) == (metrics.update, metrics.loss) and waited.update == UPDATES
ranks.all_reduce(floats)
assert (floats == RANKS * whole).all()
found = trainer.model().info.weights_hash
assert found != model.info.weights_hash
print(found)
trainer.close()
ranks.close()
