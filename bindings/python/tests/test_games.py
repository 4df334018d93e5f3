"""Corpora of games: what goes in comes out, once; files, folders, copies, damage."""
import datetime

import pytest

import exphil


def make(path, *replays, **settings):
    with exphil.GamesWriter(path, stored=1, **settings) as writer:
        return [writer.add(replay) for replay in replays]


def test_round_trip(drill, tmp_path):
    path = tmp_path / "one.games"
    added, again = make(path, drill, drill)
    assert added.duplicate == 0 and again.duplicate == 1 and again.content_hash == 0
    with exphil.Replay(drill) as replay, exphil.Games(path) as games:
        assert len(games) == games.info.games == 1
        assert games.info.frames == added.frames == len(replay)
        game = games.game(0)
        assert [one.info for one in games] == [game.info]
        assert game.info.content_hash == added.content_hash and game.info.source_hash == added.source_hash
        assert game.stage == "final_destination"
        assert game.characters[0] == "fox" and game.characters[2:] == (None, None)
        assert game.settings.frame_count == len(replay) and len(game.info.player) == 4
        assert game.info.player[0].end_stocks == replay.slots()[0].records["stocks"][-1]
        back = games.read(0)
        for slot in range(len(replay.slots())):
            for kind in ("state", "input", "aux"):
                assert back.dump(kind, slot) == replay.dump(kind, slot)
        assert back.dump("items") == replay.dump("items")
        games.verify()
    assert len(back) == added.frames  # it lives on without the corpus


def test_folder_and_copy(drill, tmp_path):
    folder, merged = tmp_path / "many", tmp_path / "merged.games"
    folder.mkdir()
    make(folder, drill, shard_bytes=1)
    assert [one.duplicate for one in make(folder, drill)] == [1]
    names = [one.name for one in folder.iterdir()]
    assert len(names) == 1 and names[0].endswith(".games")
    with exphil.Games(folder) as games:
        writer = exphil.GamesWriter(merged, stored=1)
        assert writer.copy(games, 0).duplicate == 0
        assert writer.copy(games, 0).duplicate == 1
        info = writer.finish()
        assert writer.closed and info.games == 1 and info.hash == games.info.hash
        with pytest.raises(exphil.InvalidError, match="index is 1"):
            games.read(1)
        with pytest.raises(TypeError, match="exphil.Games"):
            exphil.GamesWriter(tmp_path / "x", stored=1).copy(folder, 0)


def test_rows(drill, tmp_path):
    """Rows of a corpus are those of its replays; what a selection refuses is told by its reason."""
    path = tmp_path / "one.games"
    make(path, drill)
    plain, made, none = exphil.Dataset(), exphil.Dataset(), exphil.Dataset()
    plain.add_replay(drill)
    with exphil.Games(path) as games:
        report = made.add_games(games)
        assert (report.games, report.taken, report.frames) == (1, plain.info.episodes, len(plain)) and len(made) == len(plain)
        report = none.add_games(games, stages="battlefield", teams="without", result="any")
        assert report.taken == 0 and report.refused[exphil.Refused.STAGE] == report.players > 0
        assert exphil.refused_name("stage") == "stage" and exphil.refused_name(1000) is None
        for name, value in (("stages", "moon"), ("port", 5), ("least_input", 2.0), ("first_day", -1)):
            with pytest.raises(exphil.InvalidError, match=name):
                none.add_games(games, **{name: value})
        with pytest.raises(ValueError, match="result"):
            none.add_games(games, result="drawn")
    for index in (0, len(made) - 1):
        for one, other in zip(made.frame(index), plain.frame(index)):
            assert (one == other).all()
    with exphil.Replay(drill) as replay:
        end = replay.end
        assert exphil.SlpResult(end.reason).name and len(end.stocks) == 4 and end.winners.bit_length() <= 4


def test_unfinished(drill, tmp_path):
    path = tmp_path / "none.games"
    with pytest.raises(RuntimeError), exphil.GamesWriter(path, stored=1) as writer:
        writer.add(drill)
        raise RuntimeError
    assert not path.exists()
    with exphil.GamesWriter(path, stored=1) as writer:
        with pytest.raises(exphil.FormatError):
            writer.add_memory(b"no replay")
        with open(drill, "rb") as file:
            assert writer.add_memory(file.read()).duplicate == 0
    assert len(exphil.Games(path)) == 1


def test_damage(drill, tmp_path):
    path = tmp_path / "damaged.games"
    make(path, drill)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with exphil.Games(path) as games, pytest.raises(exphil.FormatError, match="byte"):
        games.verify()
    with pytest.raises(exphil.FormatError):
        exphil.Games(drill)


def test_days():
    fields = exphil.GameInfo.__dataclass_fields__
    info = exphil.GameInfo(**{name: 0 for name in fields if name != "player"}, player=())
    assert info.date is None
    assert exphil.GameInfo(**{**vars(info), "day": 20641}).date == datetime.date(2026, 7, 7)
