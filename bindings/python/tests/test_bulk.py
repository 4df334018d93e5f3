"""Many at once: rows as arrays, folders and lists of replays, training with scores of what is held out."""
import io
import os
import shutil

import numpy as np
import pytest
from conftest import rows

import exphil

# ---- rows ----


def test_rows_are_the_frames(spec):
    dataset = exphil.Dataset(spec)
    lengths = (1, 300, 2, 700)
    for game, count in enumerate(lengths):
        dataset.add_rows(*rows(count, game), game=game)
    whole = dataset.rows()
    assert [array.shape for array in whole] == [(1003, 6), (1003, 1), (1003, 2), (1003,)]
    assert whole.episodes.tolist() == np.repeat(range(4), lengths).tolist()
    for first, end in ((0, 1), (0, 1003), (299, 304), (1002, 1003), (5, 5), (1003, 1003), (303, None)):
        part = dataset.rows(first, end)
        for have, want in zip(part, whole):
            assert have.dtype == want.dtype and np.array_equal(have, want[first:end])
    for index in (0, 1, 300, 301, 303, 1002):
        for have, want in zip(dataset.frame(index), whole):
            assert np.array_equal(have, want[index])
    for have, want in zip(whole, map(np.concatenate, zip(*(rows(count, game) for game, count in enumerate(lengths))))):
        assert np.array_equal(have, want)
    whole.floats[:] = 0  # they are the caller's own
    assert np.array_equal(dataset.rows(0, 1).floats, rows(1, 0)[0])


@pytest.mark.parametrize("first, end, says", [
    (-1, 3, "first is -1"), (0, 1601, "count is 1601"), (5, 4, "count is -1"), (1601, None, "first is 1601"),
    (2**62, 2**62 + 1, "first is"),
])
def test_ranges_outside(dataset, first, end, says):
    with pytest.raises(exphil.InvalidError, match=says):
        dataset.rows(first, end)
    with pytest.raises(TypeError, match="first"):
        dataset.rows(0.5)


def test_rows_without_columns(spec):
    bare = exphil.Dataset(exphil.Spec("bare", "tiny", 0, spec.heads, spec.ids))
    bare.add_rows(None, *rows(10)[1:])
    made = bare.rows(2, 5)
    assert made.floats.shape == (3, 0) and np.array_equal(made.ids, rows(10)[1][2:5])


def test_rows_of_files_and_games(drill, tmp_path):
    plain = exphil.Dataset()
    plain.add_replay(drill)
    plain.save(tmp_path / "rows")
    with exphil.GamesWriter(tmp_path / "one.games", stored=1) as writer:
        writer.add(drill)
    made = exphil.Dataset()
    made.add_games(exphil.Games(tmp_path / "one.games"))
    for other in (exphil.Dataset.open(tmp_path / "rows"), made):
        for have, want in zip(other.rows(), plain.rows()):
            assert np.array_equal(have, want)
    data = bytearray((tmp_path / "rows").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "rows").write_bytes(data)
    with pytest.raises(exphil.FormatError, match="damaged"):
        exphil.Dataset.open(tmp_path / "rows").rows()


def test_rows_of_a_replay(drill, tmp_path):
    with exphil.Replay(drill) as replay:
        for layout, settings in ((None, {}), ("exphil288", {"first_frame": -123, "last_frame": 500, "opponent_port": 2})):
            dataset = exphil.Dataset(exphil.melee.spec(layout))
            dataset.add_replay(drill, port=1, **settings)
            made, want = replay.rows(1, layout=layout, **settings), dataset.rows()
            assert len(made.frames) == len(want.episodes) > 500
            for have, other in zip(made[:3], want[:3]):
                assert np.array_equal(have, other)
            assert made.frames[0] == dataset.episode(0).first_game_frame and (np.diff(made.frames) == 1).all()
        at = replay.position(int(made.frames[7]))
        codec = exphil.melee.pad_encode(replay.melee_pad(at, 1))
        assert np.array_equal(codec, made.actions[7])
        floats, ids = exphil.melee.encode(replay.melee_frame(at - 1, 1, 2), "exphil288")
        assert np.array_equal(floats, made.floats[7]) and np.array_equal(ids, made.ids[7])
        for settings, says in (({"port": 0}, "port is 0"), ({"port": 4}, "no human player on port 4"), ({"port": 7}, "port is 7"),
                               ({"port": 1, "character": "foxy"}, "foxy"), ({"port": 1, "layout": "pong"}, "pong")):
            with pytest.raises(exphil.InvalidError, match=says):
                replay.rows(**settings)
        with pytest.raises(TypeError, match="port"):
            replay.rows("1")
    with pytest.raises(exphil.ClosedError):
        replay.rows(1)


# ---- folders and lists ----


@pytest.fixture
def many(drill, tmp_path):
    """A folder: a/one.slp, a/two.slp (cut), a/b/three.slp, bad.slp, .hidden.slp, notes.txt, empty/."""
    folder = tmp_path / "many"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "empty").mkdir()
    data = open(drill, "rb").read()
    for number, name in enumerate(("a/one.slp", "a/two.slp", "a/b/three.slp", ".hidden.slp")):
        (folder / name).write_bytes(data[:len(data) // (number + 1)])
    (folder / "bad.slp").write_bytes(b"not a replay")
    (folder / "notes.txt").write_text("not one either")
    return folder


def names(added, folder):
    return [os.path.relpath(path, folder) for path, _ in added.taken]


def test_a_folder(many):
    dataset = exphil.Dataset()
    added = dataset.add_replays(many, port=1)
    assert names(added, many) == ["a/b/three.slp", "a/one.slp", "a/two.slp"]
    assert [result.truncated for _, result in added.taken] == [1, 0, 1]
    assert sum(result.frames for _, result in added.taken) == len(dataset) > 0
    (refusal,) = added.refused
    assert refusal.path == str(many / "bad.slp") and isinstance(refusal.error, exphil.FormatError)
    assert refusal.reason and "bad.slp" not in refusal.reason and list(added.reasons().values()) == [1]
    assert added.excluded == added.repeated == 0
    by_hand = exphil.Dataset()
    for name in ("a/b/three.slp", "a/one.slp", "a/two.slp"):
        by_hand.add_replay(many / name, port=1)
    assert by_hand.info.content_hash == dataset.info.content_hash


def test_patterns(many):
    added = exphil.Dataset().add_replays([many], exclude=("*/a/b*", "bad*", "two.slp"))
    assert names(added, many) == ["a/one.slp"] and not added.refused and added.excluded == 3
    added = exphil.Dataset().add_replays([many], exclude="*")
    assert not added.taken and not added.refused and added.excluded == 1
    with pytest.raises(TypeError, match="exclude"):
        exphil.Dataset().add_replays([many], exclude=[b"a"])


def test_each_comes_once(many):
    os.link(many / "a" / "one.slp", many / "again.slp")
    os.symlink(many, many / "a" / "round")  # a circle
    one = many / "a" / "one.slp"
    added = exphil.Dataset().add_replays([one, os.fsencode(str(one)), many, str(many / "a")])
    assert names(added, many) == ["a/one.slp", "a/b/three.slp", "a/two.slp"]
    assert added.repeated == 5  # by name, in the folder, the link, the circle, the folder a


def test_lists(many, tmp_path):
    lines = [many / "a" / "two.slp", many / "none.slp", many / "a" / "one.slp", many / "empty"]
    text = "".join(f"{line}\r\n\n" for line in lines)
    (tmp_path / "list").write_text(text)
    null_ended = io.BytesIO(b"".join(os.fsencode(str(line)) + b"\0" for line in lines))
    for source in (tmp_path / "list", str(tmp_path / "list"), io.StringIO(text.replace("\r", "")), null_ended):
        added = exphil.Dataset().add_replays(files_from=source)
        assert names(added, many) == ["a/one.slp", "a/two.slp"]
        assert [(os.path.basename(one.path), one.reason) for one in added.refused] == [
            ("empty", "no .slp in this folder"), ("none.slp", "No such file or directory")]
    added = exphil.Dataset().add_replays(many / "bad.slp", files_from=tmp_path / "list")
    assert [os.path.basename(one.path) for one in added.refused] == ["bad.slp", "empty", "none.slp"]
    with pytest.raises(ValueError, match="files_from names no file"):
        exphil.Dataset().add_replays(files_from=io.StringIO("\n"))
    with pytest.raises(ValueError, match="paths names no file"):
        exphil.Dataset().add_replays([])
    with pytest.raises(FileNotFoundError):
        exphil.Dataset().add_replays(files_from=tmp_path / "none")


def test_settings_are_nobody_s_fault(many, spec):
    backwards = {"first_frame": 5, "last_frame": 4}
    for settings, says in (({"character": "foxy"}, "foxy"), ({"port": 5}, "port is 5"), (backwards, "last")):
        with pytest.raises(exphil.InvalidError, match=says):
            exphil.Dataset().add_replays(many, **settings)
    with pytest.raises(exphil.InvalidError, match="tiny"):
        exphil.Dataset(spec).add_replays(many)
    added = exphil.Dataset().add_replays(many, character="marth")  # nobody plays it: that is the replays'
    assert not added.taken and len(added.refused) == 4 and added.reasons()["no human player plays marth"] == 3


def test_a_corpus_of_a_folder(many, tmp_path):
    with exphil.GamesWriter(tmp_path / "all.games", stored=1) as writer:
        added = writer.add_replays(many, exclude="b")
        assert names(added, many) == ["a/one.slp", "a/two.slp"] and len(added.refused) == 1
        shutil.copy(many / "a" / "one.slp", many / "copy.slp")
        again = writer.add_replays(many / "copy.slp")
        assert [result.duplicate for _, result in again.taken] == [1]
    assert len(exphil.Games(tmp_path / "all.games")) == 2


def test_what_is_no_file_s_fault_ends_it(many, tmp_path):
    writer = exphil.GamesWriter(tmp_path / "x.games", stored=1)
    writer.close()
    with pytest.raises(exphil.ClosedError):
        writer.add_replays(many)


# ---- scores ----


def trainer(dataset, spec):
    model = exphil.Model(spec, blocks="gru", hidden=16, head_width=16, seed=3)
    return exphil.Trainer(model, dataset, rate=1e-2, batch=4, time=25, seed=1)


def test_fit_scores_and_changes_nothing(dataset, spec):
    kept, held_out = dataset.split(0.25, seed=1)
    plain, scored, told = trainer(kept, spec), trainer(kept, spec), []
    before = plain.evaluate(held_out)
    for metrics in plain.train(updates=25):
        if metrics.update == 20:
            after_20 = plain.evaluate(held_out)
    scores = scored.fit(25, held_out, every=10, callback=told.append)
    assert told == scores and [score.metrics.update for score in scores] == [10, 20, 25]
    assert scores[1].report == after_20 and scores[2].report == plain.evaluate(held_out)
    assert scores[2].metrics.loss == metrics.loss
    assert scores[2].report.loss < before.loss
    assert scored.model().info.weights_hash == plain.model().info.weights_hash
    assert len(scored.fit(25, held_out)) == 9 and len(scored.fit(3, held_out)) == 3 and scored.fit(0, held_out) == []
    (score,) = scored.fit(1, held_out, which="now", frequencies=kept, alone_most_frames=50)
    assert score.metrics.update == 54 and score.report.alone_frames > 0


def test_fit_stops(dataset, spec):
    kept, held_out = dataset.split(0.25, seed=1)
    for stop in (True, np.bool_(True)):
        scores = trainer(kept, spec).fit(50, held_out, every=2, callback=lambda score: stop if score.metrics.update == 6 else 1)
        assert [score.metrics.update for score in scores] == [2, 4, 6]

    def fails(score):
        raise KeyError("told")

    made = trainer(kept, spec)
    with pytest.raises(KeyError, match="told"):
        made.fit(50, held_out, every=3, callback=fails)
    assert made.optimizer.updates == 3
    with pytest.raises(ValueError, match="every is -1"):
        made.fit(50, held_out, every=-1)
    with pytest.raises(TypeError, match="held_out"):
        made.fit(50, None)
    assert made.optimizer.updates == 3


def test_fit_keeps_the_best_and_ends_early(dataset, spec, tmp_path):
    kept, held_out = dataset.split(0.25, seed=1)
    for by, sign in (("nll", 1), ("exact_accuracy", -1)):
        scores = trainer(kept, spec).fit(60, held_out, every=2, best=tmp_path / "best", by=by, patience=4, least_gain=0.05)
        values = [sign * getattr(score.report, by) for score in scores]
        best = scores[values.index(min(values))].metrics.update
        other = trainer(kept, spec)
        for _ in other.train(updates=best):
            pass
        assert exphil.Model.load(tmp_path / "best").info.weights_hash == other.model().info.weights_hash
        gained, without = values[0], 0
        for i, value in enumerate(values):
            assert i == 0 or without < 4
            better = i == 0 or value < gained - 0.05 * abs(gained)
            gained, without = (value, 0) if better else (gained, without + 1)
        assert without == 4 or len(scores) == 30
    assert len(trainer(kept, spec).fit(60, held_out, every=2, patience=1, least_gain=0.99)) == 2
    for wrong in ({"by": "kills"}, {"patience": -1}, {"least_gain": 1.0}, {"least_gain": float("nan")}):
        made = trainer(kept, spec)
        with pytest.raises(ValueError, match=next(iter(wrong))):
            made.fit(5, held_out, **wrong)
        assert made.optimizer.updates == 0


def test_fit_shows_progress(dataset, spec, capsys, monkeypatch):
    monkeypatch.setattr("exphil.progress.LINE_EVERY_S", -1.0)
    monkeypatch.setitem(__import__("sys").modules, "tqdm", None)
    kept, held_out = dataset.split(0.25, seed=1)
    trainer(kept, spec).fit(4, held_out, progress=True)
    assert capsys.readouterr().err.count("/4") == 4
