"""Training: settings, batches, resuming, the drill from replay to play, progress, several ranks."""
import sys
import threading

import numpy as np
import pytest
from conftest import rows

import exphil
from exphil import progress

SMALL = dict(blocks="gru", hidden=16, head_width=16, seed=3)


def losses(trainer, updates):
    return [metrics.loss for metrics in trainer.train(updates=updates)]


def test_training_learns(model, dataset):
    before = model.evaluate(dataset)
    trainer = exphil.Trainer(model, dataset, rate=1e-2, batch=8, time=25, ema_decay=0.9)
    told = list(trainer.train(updates=60))
    assert [metrics.update for metrics in told] == list(range(1, 61))
    assert told[-1].loss < 0.7 * told[0].loss and len(told[0].head_loss) == 2 and told[-1].frames == 60 * 200
    after = trainer.evaluate(dataset)
    assert after.nll < 0.8 * before.nll
    assert trainer.evaluate(dataset, which="averaged", frequencies=dataset).nll != after.nll
    assert model.evaluate(dataset) == before
    assert trainer.model().evaluate(dataset).nll == pytest.approx(after.nll)
    assert trainer.model("averaged").info.weights_hash != trainer.model().info.weights_hash
    assert trainer.model().info.trained_updates == 60
    assert trainer.optimizer.updates == 60 and trainer.prefetcher.delivered >= 60


def test_settings_are_used(model, dataset):
    trainer = exphil.Trainer(model, dataset, rate=0.5, schedule="cosine", total_updates=10, warmup_updates=5,
                             low_ratio=0.1, batch=4, time=10, accumulate=2)
    rates = [metrics.rate for metrics in trainer.train(updates=10)]
    assert rates[0] == pytest.approx(0.1) and rates[4] == pytest.approx(0.5) and 0.05 <= rates[9] < 0.15
    assert trainer.prefetcher.delivered >= 20


@pytest.mark.parametrize("settings, word", [
    ({"schedule": "cosine"}, "total_updates"), ({"rate": -1.0}, "rate"), ({"batch": -1}, "batch"),
    ({"checkpoint_blocks": -1}, "checkpoint_blocks"), ({"fake_quantize": "f64"}, "fake_quantize"),
    ({"accumulate": -2}, "accumulate"),
])
def test_wrong_settings(model, dataset, settings, word):
    with pytest.raises(exphil.ExphilError, match=word):
        exphil.Trainer(model, dataset, **settings)


def test_mismatches(model, dataset):
    with pytest.raises(exphil.MismatchError):
        other = exphil.Dataset(exphil.Spec("other", "tiny", 6, model.spec.heads, model.spec.ids))
        other.add_rows(*rows(50))
        exphil.Trainer(model, other)
    with pytest.raises(exphil.MismatchError):
        exphil.Trainer(model, dataset, delay_frames=3)
    with pytest.raises(exphil.UnsupportedError):
        exphil.Trainer(model.quantize(), dataset)
    with pytest.raises(ValueError, match="losses"):
        exphil.Trainer(model, dataset, losses=[exphil.HeadLoss()])
    with pytest.raises(exphil.StateError):
        exphil.Trainer(model).step()


def test_losses_and_precision(model, dataset):
    plain = losses(exphil.Trainer(model, dataset, batch=4), 2)
    weighed = [exphil.HeadLoss(weight=2, positive_weight=np.array([1, 2, 3])), exphil.HeadLoss(weight=-1)]
    trainer = exphil.Trainer(model, dataset, batch=4, losses=weighed, activations="bf16", fake_quantize="i8",
                             checkpoint_blocks=1)
    assert losses(trainer, 2) != plain


def test_save_and_resume_to_the_last_bit(spec, dataset, tmp_path):
    def fresh():
        return exphil.Trainer(exphil.Model(spec, **SMALL), dataset, batch=4, time=20, seed=2)

    whole = fresh()
    want = losses(whole, 12)
    half = fresh()
    assert losses(half, 7) == want[:7]
    half.save(tmp_path / "half")
    again = fresh()
    again.resume(tmp_path / "half")
    assert losses(again, 5) == want[7:]
    assert again.model().info.weights_hash == whole.model().info.weights_hash
    assert exphil.Model.load(tmp_path / "half").info.trained_updates == 7
    other = exphil.Trainer(exphil.Model(spec, **SMALL), dataset, batch=5, time=20, seed=2)
    with pytest.raises(exphil.MismatchError):
        other.resume(tmp_path / "half")
    with pytest.raises(OSError):
        again.resume(tmp_path / "none")


def test_batches_of_ones_own(model, dataset):
    prefetcher = exphil.Prefetcher(dataset, model, batch=4, time=20, seed=2)
    fed, own = exphil.Trainer(model, dataset, batch=4, time=20, seed=2), exphil.Trainer(model)
    for _ in range(5):
        assert own.step_batch(prefetcher.next()).loss == fed.step().loss
    assert own.prefetcher is None and own.sizes == (6, 1, 2, 1)
    good = prefetcher.next().copy()
    values = dict(vars(good))
    for name in ("floats", "ids", "past", "actions", "mask", "reset"):
        for wrong in (values[name][:3], values[name][..., None], np.zeros(3, int)):
            with pytest.raises(ValueError, match=name if name != "mask" else "shape"):
                own.step_batch(exphil.Batch(**{**values, name: wrong}))
    with pytest.raises(exphil.ExphilError):
        own.step_batch(exphil.Batch(**{**values, "ids": values["ids"] + 9}))
    with pytest.raises(exphil.ExphilError):
        own.step_batch(exphil.Batch(**{**values, "floats": values["floats"] * np.nan}))
    own.step_batch(exphil.Batch(**{**values, "reset": values["reset"].astype(int), "mask": values["mask"] > 0}))


def test_the_drill_from_replay_to_play(drill, tmp_path):
    dataset = exphil.Dataset()
    dataset.add_replay(drill, port=1)
    kept, held_out = dataset.split(0.2, by="time")
    model = exphil.Model(blocks="gru", hidden=32, head_width=32, seed=1)
    trainer = exphil.Trainer(model, kept, rate=3e-3, batch=8, time=40)
    told = losses(trainer, 80)
    assert np.mean(told[-5:]) < 0.5 * told[0]
    report = trainer.evaluate(held_out, frequencies=kept)
    assert report.exact_accuracy > report.exact_majority and report.nll < report.frequency_nll
    trainer.save(tmp_path / "fox.safetensors")
    session = exphil.Session(exphil.Model.load(tmp_path / "fox.safetensors"), deterministic=True)
    replay = exphil.Replay(drill)
    for position in range(200, 260):
        session.step(replay.melee_frame(position, 1))
    assert session.info.steps == 60


# ---- progress ----


def test_a_bar_where_tqdm_is(model, dataset, capsys):
    pytest.importorskip("tqdm", reason="tqdm is not installed (python3-tqdm)")
    list(exphil.Trainer(model, dataset, batch=2).train(updates=3, progress=True))
    assert "3/3" in capsys.readouterr().err


def test_lines_where_it_is_not(model, dataset, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0)
    list(exphil.Trainer(model, dataset, batch=2).train(updates=2, progress=True))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["1/2", "2/2"] and "loss" in lines[0]


def test_silence(model, dataset, capsys):
    trainer = exphil.Trainer(model, dataset, batch=2)
    list(trainer.train(updates=2))
    assert next(trainer.train(updates=5, progress=False)).update == 3
    assert trainer.step().update == 4
    assert capsys.readouterr() == ("", "")


# ---- several ranks ----


def test_two_ranks_in_two_threads(spec):
    weights = exphil.Model(spec, **SMALL).to_bytes()
    ranks, barrier, parts, found = 2, threading.Barrier(2, timeout=60), [None, None], {}

    def all_reduce(rank):
        def add(array):
            parts[rank] = array.copy()
            barrier.wait()
            array[:] = parts[0] + parts[1]
            barrier.wait()

        return add

    def work(rank):
        context = exphil.Context(threads=1)
        mine = exphil.Model.load_memory(weights, context)
        data = exphil.Dataset(spec, context=context)
        for game in range(rank, 8, ranks):
            data.add_rows(*rows(200, game), game=game)
        trainer = exphil.Trainer(mine, data, batch=4, communicator=exphil.Communicator(rank, ranks, all_reduce(rank)))
        list(trainer.train(updates=4))
        found[rank] = trainer.model().info.weights_hash

    workers = [threading.Thread(target=work, args=(rank,)) for rank in range(ranks)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert found[0] == found[1]


def ranks_of(count, work):
    """Runs work(rank, communicator) on threads whose communicator adds in the order of the ranks."""
    barrier, parts, failed = threading.Barrier(count), [None] * count, []

    def all_reduce(rank):
        def add(array):
            parts[rank] = array.copy()
            barrier.wait(60)
            total = parts[0].copy()
            for part in parts[1:]:
                total += part
            barrier.wait(60)
            array[:] = total

        return add

    def run(rank):
        try:
            work(rank, exphil.Communicator(rank, count, all_reduce(rank)))
        except BaseException as wrong:
            failed.append(wrong)
            barrier.abort()

    workers = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    if failed:
        raise failed[0]


def test_ranks_train_one_joint_batch(spec, tmp_path):
    weights = exphil.Model(spec, blocks="gru", hidden=8).to_bytes()
    found = {}

    def make(communicator=None, batch=5):
        context = exphil.Context(threads=1)
        data = exphil.Dataset(spec, context=context)
        for game in range(4):
            data.add_rows(*rows(90, game), game=game)
        return exphil.Trainer(exphil.Model.load_memory(weights, context), data, batch=batch, time=20,
                              communicator=communicator, reduction="sums")

    def tensors(trainer):
        model = trainer.model()
        return np.concatenate([model.tensor_get(one.name).ravel() for one in model.tensors()])

    def work(rank, communicator):
        trainer = make(communicator)
        assert trainer.agree(rank, -rank) == [2, 0]
        steps = [trainer.step() for _ in range(5)]
        trainer.save(tmp_path / "joint" if rank == 0 else tmp_path / "nobody")
        found[rank] = tensors(trainer), steps[-1].loss, steps[-1].frames

    ranks_of(3, work)
    alone = make()
    steps = [alone.step() for _ in range(5)]
    for rank in range(3):
        assert (found[rank][0] == found[0][0]).all() and found[rank][1:] == found[0][1:]
    assert np.abs(found[0][0] - tensors(alone)).max() < 1e-3
    assert found[0][2] == steps[-1].frames and not list(tmp_path.glob("nobody*"))
    alone.resume(tmp_path / "joint")
    assert (tensors(alone) == found[0][0]).all()

    def other(rank, communicator):
        make(communicator, batch=5 + rank)

    with pytest.raises(exphil.MismatchError, match="rank 1 has sampling.batch 6, rank 0 has 5"):
        ranks_of(2, other)


def test_the_best_weights_are_written_by_the_first_rank(spec, tmp_path):
    def work(rank, communicator):
        context = exphil.Context(threads=1)
        data = exphil.Dataset(spec, context=context)
        data.add_rows(*rows(90, 0))
        trainer = exphil.Trainer(exphil.Model(spec, blocks="gru", hidden=8, context=context), data, batch=4, time=20,
                                 communicator=communicator, reduction="sums")
        assert len(trainer.fit(4, data, every=1, best=tmp_path / "best")) == 4
        assert trainer._writes() == (rank == 0)

    ranks_of(2, work)
    assert [path.name for path in tmp_path.iterdir()] == ["best"]


def test_a_trainer_goes_on_with_other_ranks(spec):
    data = exphil.Dataset(spec)
    data.add_rows(*rows(90, 0))

    def one(array):
        pass

    trainer = exphil.Trainer(exphil.Model(spec, blocks="gru", hidden=8), data, batch=4, time=20,
                             communicator=exphil.Communicator(0, 1, one), reduction="sums")
    trainer.step()
    trainer.set_communicator(exphil.Communicator(0, 1, one))
    assert trainer.step().update == 2
    with pytest.raises(exphil.InvalidError, match="rank"):
        trainer.set_communicator(exphil.Communicator(1, 1, one))
    assert trainer.step().update == 3
    trainer.set_communicator(None)
    assert trainer.step().update == 4
    assert trainer._writes()
    trainer.set_communicator(exphil.Communicator(0, 1, one))
    assert trainer.step().update == 5
    alone = exphil.Trainer(exphil.Model(spec, blocks="gru", hidden=8))
    with pytest.raises(exphil.UnsupportedError, match="without a dataset"):
        alone.set_communicator(exphil.Communicator(0, 1, one))


def test_ranks_of_gpus_want_a_gpu():
    with pytest.raises(exphil.UnsupportedError, match="device cpu adds up nothing over ranks"):
        exphil.ranks_id()
    with pytest.raises(exphil.UnsupportedError, match="device cpu adds up nothing over ranks"):
        exphil.Ranks(bytes(128), 0, 2, sums="tree")
    with pytest.raises(exphil.InvalidError, match="rank 2 of 2 ranks"):
        exphil.Ranks(bytes(128), 2, 2)
    with pytest.raises(TypeError, match="id must be 128 bytes"):
        exphil.Ranks(b"short", 0, 2)


def test_what_all_reduce_raises_comes_through(model, dataset):
    def broken(array):
        raise LookupError("the network is down")

    trainer = exphil.Trainer(model, dataset, batch=2, communicator=exphil.Communicator(0, 2, broken))
    with pytest.raises(LookupError, match="network"):
        trainer.step()
    with pytest.raises(exphil.InvalidError, match="rank"):
        exphil.Trainer(model, dataset, communicator=exphil.Communicator(2, 2, broken))


def test_arguments_of_another_class(model, dataset):
    for make in (lambda: exphil.Trainer(dataset, model), lambda: exphil.Session(dataset),
                 lambda: exphil.Prefetcher(dataset, dataset)):
        with pytest.raises(TypeError, match="model must be an exphil.Model, not Dataset"):
            make()
    for make in (lambda: exphil.Trainer(model, model), lambda: exphil.Prefetcher(model, model),
                 lambda: exphil.Trainer(model).evaluate(model), lambda: model.evaluate(model), lambda: model.compare(model, model)):
        with pytest.raises(TypeError, match="dataset must be an exphil.Dataset, not Model"):
            make()
    head = exphil.HeadSpec("stick", "categorical", 3)
    for heads in (head, (3,), "stick", None):
        with pytest.raises(TypeError, match="heads must be a tuple of exphil.HeadSpec"):
            exphil.Spec("a", "b", 1, heads)
    with pytest.raises(TypeError, match="ids must be a tuple of exphil.IdSpec"):
        exphil.Spec("a", "b", 1, (head,), (head,))
    assert exphil.Spec("a", "b", 1, [head]) == exphil.Spec("a", "b", 1, (head,))


def test_a_plan_is_what_a_trainer_takes(spec):
    settings = {"batch": 4, "time": 20, "rate": 0.01}
    with exphil.Context() as context:
        here = exphil.Model(spec, blocks="gru", hidden=16, head_width=16, context=context)
        dataset = exphil.Dataset(spec, context=context)
        for game in range(4):
            dataset.add_rows(*rows(200, game), game=game)
        planned = exphil.plan(here, dataset, no_checkpoint=True, **settings)
        before = context.memory.host_used_bytes
        trainer = exphil.Trainer(here, dataset, **settings)
        trainer.step()
        taken = context.memory.host_used_bytes - before
        assert planned.fits and (planned.batch, planned.time) == (4, 20)
        assert abs(planned.host_steady_bytes - taken) < 0.1 * taken
        assert sum(planned.host_bytes[: exphil.PlanPurpose.SAVING]) == planned.host_steady_bytes
        tight = exphil.plan(here, dataset, host_limit_bytes=planned.host_peak_bytes, no_checkpoint=True, **settings)
        assert tight.fits and tight.largest_batch == 4
        short = exphil.plan(here, dataset, host_limit_bytes=planned.host_peak_bytes // 2, no_checkpoint=True, **settings)
        assert not short.fits and short.largest_batch < 4
        with pytest.raises(exphil.InvalidError, match="batch"):
            exphil.plan(here, dataset, batch=-1)
        del trainer


def test_every_frame_is_examined(model, dataset):
    seen = []
    model.examine(dataset, lambda frame: seen.append((frame.episode, frame.frame)))
    assert sorted(seen) == sorted(set(seen)) and len(seen) == dataset.info.frames

    def stop(frame):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        model.examine(dataset, stop)
