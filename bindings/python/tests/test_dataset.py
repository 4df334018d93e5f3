"""Datasets and prefetchers."""
import numpy as np
import pytest
from conftest import rows

import exphil


def test_rows_come_back(spec):
    dataset = exphil.Dataset(spec)
    floats, ids, actions = rows(50)
    dataset.add_rows(floats, ids, actions, game=7)
    dataset.add_rows(floats.astype(np.float64)[::-1], ids.astype(np.int64).tolist(), actions.astype(np.uint8))
    info = dataset.info
    assert (info.frames, info.episodes, info.games) == (len(dataset), 2, 2) == (100, 2, 2)
    for index in (0, 49):
        for have, want in zip(dataset.frame(index), (floats[index], ids[index], actions[index])):
            assert np.array_equal(have, want)
    assert np.array_equal(dataset.frame(50)[0], floats[-1])
    assert [episode.game for episode in dataset.episodes()] == [7, 0]
    assert dataset.spec == exphil.Dataset(dataset.spec).spec


def test_wrong_rows(spec):
    dataset = exphil.Dataset(spec)
    floats, ids, actions = rows(10)
    for wrong in ((floats[:9], ids, actions), (floats[:, :5], ids, actions), (floats, ids[:, :0], actions),
                  (floats, ids, actions[:, :1]), (floats[0], ids, actions), (None, ids, actions)):
        with pytest.raises(ValueError, match="shape"):
            dataset.add_rows(*wrong)
    with pytest.raises(ValueError, match=r"floats has shape \(10, 6\), ids \(10, 1\), actions \(9, 2\)"):
        dataset.add_rows(floats, ids, actions[:9])
    with pytest.raises(TypeError, match="ids"):
        dataset.add_rows(floats, ids + 0.5, actions)
    with pytest.raises(ValueError, match="fit"):
        dataset.add_rows(floats, ids.astype(np.int64) + 2**32, actions)
    with pytest.raises(exphil.InvalidError):
        dataset.add_rows(floats, ids + 4, actions)
    with pytest.raises(exphil.InvalidError):
        dataset.add_rows(floats, ids, actions - 1)
    floats[3, 2] = np.inf
    with pytest.raises(exphil.ExphilError, match="3"):
        dataset.add_rows(floats, ids, actions)
    with pytest.raises(exphil.InvalidError):
        dataset.add_rows(floats[:0], ids[:0], actions[:0])
    with pytest.raises(OverflowError):
        dataset.add_rows(*rows(10), game=-1)
    assert len(dataset) == 0


@pytest.mark.parametrize("index", [-1, 1600, 2**62])
def test_indices_outside(dataset, index):
    with pytest.raises(exphil.InvalidError):
        dataset.frame(index)
    with pytest.raises(exphil.InvalidError):
        dataset.episode(index)
    with pytest.raises(OverflowError):
        dataset.frame(2**64)


def test_corpus_files(dataset, tmp_path):
    path = tmp_path / "corpus"
    dataset.save(path)
    again = exphil.Dataset.open(path)
    again.verify()
    assert again.info.content_hash == dataset.info.content_hash
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(exphil.FormatError):
        exphil.Dataset.open(path).verify()


def test_split(dataset):
    kept, held_out = dataset.split(0.25, seed=1)
    assert len(kept) + len(held_out) == len(dataset) and len(held_out) == 400
    kept, held_out = dataset.split(0.1, by="time")
    assert held_out.info.episodes == 8
    with pytest.raises(exphil.InvalidError):
        dataset.split(1.5)


def test_lanes_of_ranks(dataset):
    def batches(**lanes):
        prefetcher = exphil.Prefetcher(dataset, batch=7, time=20, seed=5, delay_frames=1, action_slots=2, **lanes)
        return [batch.copy() for batch in prefetcher]

    parts = [exphil.rank_lanes(7, rank, 3) for rank in range(3)]
    assert parts == [(0, 2), (2, 2), (4, 3)]
    own = [batches(first_lane=first, lane_count=count) for first, count in parts]
    together = batches()
    assert len(together) > 3 and all(len(rank) == len(together) for rank in own)
    for all_lanes, *ranks in zip(together, *own):
        for name in ("floats", "ids", "past", "actions", "mask", "reset", "rows"):
            assert np.array_equal(np.concatenate([getattr(rank, name) for rank in ranks]), getattr(all_lanes, name)), name
    with pytest.raises(exphil.InvalidError, match="ranks is 8"):
        exphil.rank_lanes(7, 0, 8)
    with pytest.raises(exphil.InvalidError, match="lane_count"):
        batches(first_lane=5, lane_count=3)


def test_batches(dataset, spec):
    model = exphil.Model(spec, blocks="gru", hidden=8, head_width=8, delay_frames=2)
    prefetcher = exphil.Prefetcher(dataset, model, batch=4, time=20, seed=5)
    frames = 0
    for batch in prefetcher:
        assert batch.floats.shape == (4, 20, 6) and batch.ids.shape == (4, 20, 1)
        assert batch.past.shape == (4, 20, 3, 2) and batch.actions.shape == (4, 20, 2)
        assert batch.mask.shape == batch.reset.shape == (4, 20)
        assert not batch.floats.flags.writeable and batch.epoch == 0
        frames += batch.frames
    info = prefetcher.info
    assert frames == info.frames_per_epoch and info.delivered == info.batches_per_epoch
    prefetcher.seek(0, 1)
    again = prefetcher.next().copy()
    assert (again.epoch, again.index) == (0, 1)
    assert again.floats.flags.owndata
    with pytest.raises(exphil.InvalidError):
        prefetcher.seek(0, 10**9)


def test_a_batch_outlives_its_prefetcher(dataset):
    prefetcher = exphil.Prefetcher(dataset, batch=2, time=10, in_order=True)
    batch = prefetcher.next()
    kept = batch.copy()
    prefetcher.close()
    dataset.close()
    assert np.array_equal(batch.floats, kept.floats) and np.array_equal(batch.past, kept.past)
    with pytest.raises(exphil.ClosedError):
        prefetcher.next()


def test_without_a_model_all_settings_count(dataset):
    batch = exphil.Prefetcher(dataset, batch=3, time=8, mode="window", delay_frames=1, action_slots=2, in_order=True).next()
    assert batch.past.shape == (3, 8, 2, 2)
    assert np.array_equal(batch.actions[0, 0], dataset.frame(1)[2])
    with pytest.raises(exphil.InvalidError, match="batch"):
        exphil.Prefetcher(dataset, batch=-1)
    with pytest.raises(exphil.InvalidError):
        exphil.Prefetcher(dataset, delay_frames=99)


def test_weights_stand_in_the_masks():
    data = exphil.Dataset(exphil.Spec("w", "w", 1, (exphil.HeadSpec("button", "categorical", 2),)))
    number = np.arange(100, dtype=np.float32)[:, None]
    data.add_rows(number, None, (number % 10 == 0).astype(np.int32), game=7)
    data.weight(7, 0.0, first_frame=50)
    data.weight(7, 2.0, first_frame=60, last_frame=69)
    for balance in 0.0, 1.0:
        with exphil.Prefetcher(data, batch=1, time=200, mode="carry", balance_action=balance) as batches:
            batch = batches.next()
            frame, mask = batch.floats.reshape(-1), batch.mask.reshape(-1)
            if balance:
                rare = batch.actions.reshape(-1) == 1
                assert mask[rare].sum() == pytest.approx(mask[~rare].sum(), rel=1e-5)
                continue
            assert batches.info.effective_share == pytest.approx(70**2 / (100 * 90))
            weights = np.where(frame < 50, 1, np.where((frame >= 60) & (frame < 70), 2, 0))
            seen = np.flatnonzero(mask)
            assert len(seen) == 60 and np.array_equal(mask[seen], weights[seen])
    with pytest.raises(exphil.InvalidError, match="weight is -1"):
        data.weight(7, -1.0)
