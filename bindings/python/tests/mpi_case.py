"""What test_mpi.py runs on several ranks: mpi_case.py CASE. Rank 0 prints what came of it."""
import sys
import traceback

import numpy as np
from mpi4py import MPI

import exphil
import exphil.mpi

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.Get_rank(), WORLD.Get_size()


def values(rank, count, dtype):
    """Of very different sizes, so that the order of a sum shows."""
    made = np.random.default_rng(rank + 1)
    return (made.standard_normal(count) * 2.0 ** made.integers(-10, 10, count)).astype(dtype)


def sums():
    with_ranks = exphil.mpi.communicator(WORLD)
    assert (with_ranks.rank, with_ranks.ranks) == (RANK, RANKS)
    turned = 0
    for dtype in (np.float32, np.float64):
        for count in (0, 1, 7, 4096, (1 << 22) + 3):
            data, expected = values(RANK, count, dtype), values(0, count, dtype)
            for rank in range(1, RANKS):
                expected += values(rank, count, dtype)
            with_ranks.all_reduce(data)
            assert data.tobytes() == expected.tobytes()
            backwards = values(RANKS - 1, count, dtype)
            for rank in reversed(range(RANKS - 1)):
                backwards += values(rank, count, dtype)
            turned += int((backwards != expected).sum())
    assert RANKS < 3 or turned > 0
    return "sums"


def train():
    spec = exphil.Spec("ranks", "ranks", 3, (exphil.HeadSpec("way", "categorical", 3),))
    model = exphil.Model(spec, context=exphil.Context(threads=1), blocks="gru", hidden=16, head_width=16)
    trainer = exphil.Trainer(model, communicator=exphil.mpi.communicator(WORLD))
    made, shape = np.random.default_rng(RANK), (2, 5)
    for _ in range(4):
        trainer.step_batch(exphil.Batch(
            made.standard_normal((*shape, 3)).astype(np.float32), np.zeros((*shape, 0), np.int32),
            np.zeros((*shape, 1, 1), np.int32), made.integers(0, 3, (*shape, 1)).astype(np.int32), np.ones(shape, np.float32),
            np.zeros(shape, np.uint8)))
    found = WORLD.allgather(trainer.model().info.weights_hash)
    assert found.count(found[0]) == RANKS and found[0] != model.info.weights_hash
    return "train"


def refused(work, kind, word):
    try:
        work()
    except kind as error:
        assert word in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


def late():
    """The last rank does not come to the second reduction: the others get an error, and then at once."""
    with_ranks = exphil.mpi.communicator(WORLD, timeout_s=0.2)
    with_ranks.all_reduce(np.zeros(10))
    if RANK < RANKS - 1:
        refused(lambda: with_ranks.all_reduce(np.zeros(10)), TimeoutError, "within 0.2 s")
        refused(lambda: with_ranks.all_reduce(np.zeros(10)), RuntimeError, "out of step")
    WORLD.Barrier()
    return "late"


def unequal():
    for make in (lambda: np.zeros(10 + RANK), lambda: np.zeros(10, np.float32 if RANK else np.float64)):
        with_ranks = exphil.mpi.communicator(WORLD)
        refused(lambda: with_ranks.all_reduce(make()), RuntimeError, "at reduction 0")
        refused(lambda: with_ranks.all_reduce(np.zeros(10)), RuntimeError, "out of step")
    refused(lambda: exphil.mpi.communicator(WORLD, timeout_s=0), ValueError, "timeout_s")
    between = MPI.COMM_SELF.Create_intercomm(0, WORLD, 1 - RANK)
    refused(lambda: exphil.mpi.communicator(between), ValueError, "intercommunicator")
    return "unequal"


try:
    done = {"sums": sums, "train": train, "late": late, "unequal": unequal}[sys.argv[1]]()
    if RANK == 0:
        print(done, flush=True)
except BaseException:
    traceback.print_exc()
    sys.stderr.flush()
    WORLD.Abort(1)
