"""Chunks of other processes: what is learnt from their blocks is what one process learns; what is no block is refused."""
import multiprocessing

import numpy as np
import pytest
from test_learn import Catch, Parts, catch

import exphil


def play(pipe, streams):
    """A player: it knows the game, and what comes through the pipe."""
    with exphil.World(Catch(streams), streams, spec=Catch.spec) as world:
        rollout = None
        for weights in iter(pipe.recv, None):
            with exphil.Model.load_memory(weights) as model:
                rollout = rollout or exphil.Rollout(model, streams=streams, time=16, seed=1)
                rollout.adopt(model)
            rollout.run(world)
            pipe.send(rollout.block_save())
        rollout.close()


def test_two_processes_learn_what_one_does():
    alone, learner = Parts(catch(), time=16, chunks=4), Parts(catch(), time=16, chunks=4)
    told = alone.chunks(4)
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    player = multiprocessing.get_context("spawn").Process(target=play, args=(theirs, learner.world.streams))
    player.start()
    for metrics in told:
        with learner.trainer.model() as model:
            ours.send(model.to_bytes())
        assert ours.poll(120)
        block = ours.recv()
        assert learner.rollout.block_take(block) is True
        assert learner.learner.update(learner.rollout) == metrics
    ours.send(None)
    player.join(120)
    assert player.exitcode == 0
    assert learner.hash == alone.hash


def test_streams_of_several_players():
    # Long enough for rewards, without which an update leaves the weights as they are: a ball falls for 20 frames.
    parts, players = Parts(catch(), time=64), [Parts(catch(4), seed=seed, time=64) for seed in (1, 2)]
    blocks = []
    for one in players:
        with parts.trainer.model() as model:
            one.rollout.adopt(model)
        one.rollout.run(one.world)
        blocks.append(one.rollout.block_save())
    assert parts.rollout.block_take(blocks[1], 4) is False
    with pytest.raises(exphil.StateError, match="4 of 8 streams"):
        parts.learner.update(parts.rollout)
    with pytest.raises(exphil.StateError, match="came as blocks"):
        parts.rollout.run(parts.world)
    with pytest.raises(exphil.StateError, match="stream 4 of this chunk is there already"):
        parts.rollout.block_take(blocks[0], 4)
    assert parts.rollout.block_take(memoryview(blocks[0])) is True
    metrics = parts.learner.update(parts.rollout)
    assert metrics.recomputed == 0 and metrics.reward > 0
    with pytest.raises(exphil.MismatchError, match="played by weights"):
        parts.rollout.block_take(blocks[0])
    assert parts.rollout.block_take(blocks[0], weights=exphil.BlockWeights.ANY) is False
    assert parts.rollout.block_take(blocks[1], 4, weights="any") is True
    assert parts.learner.update(parts.rollout).recomputed > 0


def test_a_block_says_what_it_is():
    parts = Parts(catch(4), time=8)
    with pytest.raises(exphil.StateError, match="0 of 8 rows"):
        parts.rollout.block_save()
    parts.rollout.run(parts.world)
    block = parts.rollout.block_save()
    info = exphil.block_info(bytearray(block))
    assert (info.streams, info.time, info.delay_frames) == (4, 8, 0)
    assert info.weights_hash == parts.model.info.weights_hash
    assert info.spec_hash == parts.model.info.spec_hash
    parts.rollout.adopt()
    assert parts.rollout.block_take(np.frombuffer(block, np.uint8)) is True
    assert parts.rollout.block_save() == block


def test_what_is_wrong_is_refused():
    parts, other = Parts(catch(4), time=64), Parts(catch(4), time=64, model=dict(hidden=24))
    for one in (parts, other):
        one.rollout.run(one.world)
    block, before = parts.rollout.block_save(), parts.hash
    parts.rollout.adopt()
    with pytest.raises(exphil.FormatError, match="damaged"):
        parts.rollout.block_take(block[:-1] + bytes([block[-1] ^ 1]))
    with pytest.raises(exphil.FormatError):
        parts.rollout.block_take(b"")
    with pytest.raises(exphil.FormatError):
        exphil.block_info(block[:-1])
    with pytest.raises(exphil.MismatchError, match="another configuration"):
        parts.rollout.block_take(other.rollout.block_save())
    with pytest.raises(exphil.MismatchError):
        parts.rollout.adopt(other.model)
    with pytest.raises(exphil.InvalidError, match="first_stream"):
        parts.rollout.block_take(block, 4)
    with pytest.raises(exphil.InvalidError, match="weights"):
        parts.rollout.block_take(block, weights=7)
    with pytest.raises(ValueError, match="some"):
        parts.rollout.block_take(block, weights="some")
    with pytest.raises(TypeError):
        parts.rollout.block_take("text")
    with pytest.raises(TypeError):
        parts.rollout.adopt("model")
    assert parts.rollout.block_take(block) is True
    metrics = parts.learner.update(parts.rollout)
    assert metrics.recomputed == 0 and metrics.reward > 0
    assert parts.hash != before
    parts.rollout.close()
    for call in (parts.rollout.block_save, parts.rollout.adopt, lambda: parts.rollout.block_take(block)):
        with pytest.raises(exphil.ClosedError):
            call()
