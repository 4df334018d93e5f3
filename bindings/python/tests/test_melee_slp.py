"""Melee frames and pads, replays and the live stream, on the drill and on real replays where there are some."""
import glob
import os
import threading

import numpy as np
import pytest

import exphil
from exphil import melee, slp


def quiet_frame():
    """Two characters who stand on Final Destination."""
    frame = melee.frames()[0]
    frame["stage"], frame["own_port"] = 32, 1
    frame["player"]["present"][:2] = 1
    frame["player"]["x"][1] = 30
    return frame


def test_spec_and_fields():
    spec = melee.spec()
    assert (spec.layout, spec.codec) == ("melee2", "exphil81")
    assert exphil.Model(hidden=8, head_width=8, blocks="mlp").spec == spec
    fields = melee.fields()
    assert sum(field.count for field in fields if not field.is_id) == spec.float_count
    assert sum(field.is_id for field in fields) == len(spec.ids)
    assert melee.fields("exphil288") and melee.spec("exphil288", "exphil81-floor").codec == "exphil81-floor"
    with pytest.raises(exphil.InvalidError, match="melee9"):
        melee.fields("melee9")
    with pytest.raises(exphil.InvalidError, match="melee9"):
        melee.spec("melee9")


def test_names():
    assert melee.character_name(2) == "fox" and melee.stage_name(31) == "battlefield"
    assert melee.character_name(-1) is None and melee.stage_name(9999) is None


def test_encode():
    frame = quiet_frame()
    floats, ids = melee.encode(frame)
    field = next(one for one in melee.fields() if one.name == "opponent.x")
    assert floats[field.offset] == pytest.approx(30 * field.scale)
    frame["player"]["x"][0] = np.nan
    with pytest.raises(exphil.NumericError, match="x"):
        melee.encode(frame)
    frame["player"]["x"][0] = 0
    frame["own_port"] = 5
    with pytest.raises(exphil.InvalidError, match="own_port"):
        melee.encode(frame)
    frame["own_port"], frame["item_count"] = 1, 16
    with pytest.raises(exphil.InvalidError, match="item_count"):
        melee.encode(frame)
    with pytest.raises(TypeError, match="melee.FRAME"):
        melee.encode(np.zeros(3))
    with pytest.raises(ValueError, match="shape"):
        melee.encode(melee.frames(2))


def test_new_frames_are_those_of_a_game_that_begins(drill):
    """What they hold before a host says anything: the header's words, and what the first frame of a replay says."""
    model = exphil.Model(blocks="mlp", hidden=8, head_width=8)
    first = exphil.Replay(drill).melee_frame(0, 1)
    for frame in (melee.frames(2)[1], exphil.Session(model, streams=2).frames[1]):
        assert (frame["platform_left"], frame["platform_right"]) == (20, 28)
        assert (frame["item"]["owner"] == -1).all() and frame["item_count"] == 0
        assert not frame["player"]["present"].any() and not frame["follower"]["present"].any()
        for field in ("platform_left", "platform_right", "wind", "stadium_kind", "stadium_event", "item_count"):
            assert frame[field] == first[field], field
        assert (frame["player"]["known"] == first["player"]["known"][0]).all()
        assert (frame["follower"]["known"] == exphil.Known.ALL).all()
    column = next(one for one in melee.fields() if one.name == "stage.platform_left")
    quiet = quiet_frame()
    quiet["stage"] = first["stage"] = 2  # Fountain of Dreams; elsewhere the columns are zero
    assert melee.encode(quiet)[0][column.offset] == melee.encode(first)[0][column.offset] == 1


def test_records_cut_as_numpy_does():
    """As README says; this package itself never does."""
    frame = melee.frames()[0]
    frame["own_port"] = 1.7
    assert frame["own_port"] == 1
    with pytest.raises(TypeError, match="external"):
        melee.character_name(1.7)


def test_pads_come_back():
    pad = melee.pad(exphil.Button.A | exphil.Button.Z, main_x=-1.0, trigger=0.0)
    again = melee.pad_decode(melee.pad_encode(pad))
    assert again["buttons"] == pad["buttons"] and again["main_x"] == -1
    with pytest.raises(TypeError):
        melee.pad_encode([1, 2])
    with pytest.raises(ValueError, match="action"):
        melee.pad_decode([1])
    with pytest.raises(exphil.InvalidError):
        melee.pad_decode(np.full(len(melee.spec().heads), 10**6))


def test_session_plays_melee():
    model = exphil.Model(blocks="mlp", hidden=16, head_width=16)
    session = exphil.Session(model, seed=1)
    pads = session.step(quiet_frame())
    assert pads.dtype == melee.PAD and pads.shape == (1,) and pads is session.pads
    row = exphil.Session(model, seed=1)
    row.step_row(*melee.encode(quiet_frame()))
    assert np.array_equal(session.logits, row.logits)
    assert melee.pad_decode(row.actions[0]) == pads[0]
    session.frames[0] = quiet_frame()
    session.step()
    two = exphil.Session(model, streams=2)
    frames = melee.frames(2)
    frames[:] = quiet_frame()
    assert two.step(frames).shape == (2,)
    with pytest.raises(ValueError, match="shape"):
        two.step(quiet_frame())
    frames["own_port"][1] = 4
    with pytest.raises(exphil.InvalidError, match="own_port"):
        two.step(frames)


def test_replay(drill):
    replay = exphil.Replay(drill)
    info = replay.info
    assert len(replay) == info.frame_count == len(replay.frames) >= 1800
    assert info.stop == exphil.Stop.COMPLETE and info.ports[0].character == 2
    assert info.fields & exphil.SlpHas.VELOCITY
    frames = replay.frames
    assert frames["frame"][0] == slp.FIRST_FRAME == info.first_frame and not frames.flags.writeable
    position = replay.position(0)
    assert frames["frame"][position] == 0
    slots = replay.slots()
    assert [slot.port for slot in slots] == [0, 1] and len(slots[0].records) == len(replay)
    assert replay.player(position, 0)["x"] == slots[0].records["x"][position]
    assert replay.player(position, 3) is None
    assert len(replay.items(position)) == frames["item_count"][position]
    pad, frame = replay.melee_pad(position, 1), replay.melee_frame(position, 1)
    assert pad["main_x"] == slots[0].records["joy_x"][position]
    assert frame["player"]["x"][0] == slots[0].records["x"][position] and frame["frame"] == 0
    assert len(replay.dump("state")) == 24 * len(replay) == len(replay.dump("input")) * 24 // 30
    with open(drill, "rb") as file:
        again = exphil.Replay.read(file.read(), rollback="all")
    assert np.array_equal(again.slots()[1].records, slots[1].records)
    replay.close()
    assert slots[0].records["x"].sum() == again.slots()[0].records["x"].sum()


def test_replay_misuse(drill):
    replay = exphil.Replay(drill)
    with pytest.raises(KeyError):
        replay.position(10**6)
    with pytest.raises(IndexError):
        replay.items(len(replay))
    with pytest.raises(IndexError):
        replay.items(-1)
    for port in (0, 3, 5):
        with pytest.raises(exphil.InvalidError):
            replay.melee_pad(10, port)
    with pytest.raises(exphil.InvalidError):
        replay.melee_frame(len(replay), 1)
    with pytest.raises(exphil.InvalidError):
        replay.dump("state", 9)
    with pytest.raises(exphil.InvalidError):
        exphil.Replay(drill, rollback=5)
    with pytest.raises(exphil.ExphilError):
        exphil.Replay(drill, limit_bytes=100)
    with pytest.raises(exphil.FormatError, match="offset|byte"):
        exphil.Replay.read(b"not a replay at all")


def test_stream_gives_what_the_replay_holds(drill):
    with open(drill, "rb") as file:
        data = file.read()
    replay = exphil.Replay.read(data)
    stream = exphil.Stream()
    with pytest.raises(exphil.StateError):
        stream.info
    seen = 0
    for start in range(0, len(data), 1000):
        for frame in stream.push(data[start:start + 1000]):
            assert frame["frame"] == replay.frames["frame"][seen]
            assert stream.player(0)["x"] == replay.player(seen, 0)["x"] and stream.player(3) is None
            if seen % 100 == 0:
                assert stream.melee_frame(1) == replay.melee_frame(seen, 1)
            assert len(stream.items()) == frame["item_count"]
            seen += 1
    assert seen == len(replay) and stream.over and stream.info.frame_count == seen
    assert list(stream.push(b"more")) == []
    stream.reset()
    assert not stream.over and stream.player(0) is None and len(stream.items()) == 0
    assert sum(1 for _ in stream.push(data)) == seen


def test_a_stream_in_two_threads_does_not_crash(drill):
    """It may refuse, or mix up what it is given."""
    with open(drill, "rb") as file:
        data = file.read()
    stream, unexpected = exphil.Stream(), []

    def work():
        for _ in range(5):
            try:
                stream.reset()
                for _ in stream.push(data):
                    stream.player(0)
                    stream.items()
            except exphil.ExphilError:
                pass
            except Exception as error:
                unexpected.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert unexpected == []


def test_stream_of_garbage():
    stream = exphil.Stream()
    for _ in range(2):
        with pytest.raises(exphil.FormatError):
            list(stream.push(bytes(range(256)) * 8))
    stream.reset()
    assert list(stream.push(b"")) == []


def test_dataset_of_a_replay(drill):
    dataset = exphil.Dataset()
    result = dataset.add_replay(drill, port=1)
    assert result.frames == len(dataset) > 1700 and result.episodes == 1
    with open(drill, "rb") as file:
        result = dataset.add_replay_memory(file.read(), character="fox", port=1, first_frame=100, last_frame=199)
    assert (result.frames, dataset.episode(1).first_game_frame) == (100, 100)
    with pytest.raises(exphil.InvalidError, match="fox"):
        dataset.add_replay(drill, character="mewtwo")
    with pytest.raises(exphil.InvalidError):
        dataset.add_replay(drill, port=9)


def test_real_replays():
    paths = sorted(glob.glob(os.path.join(os.environ.get("EXPHIL_REPLAYS", ""), "**", "*.slp"), recursive=True))
    if not os.environ.get("EXPHIL_REPLAYS") or not paths:
        pytest.skip("EXPHIL_REPLAYS names no folder with replays")
    for path in paths:
        replay = exphil.Replay(path)
        assert len(replay.frames) == replay.info.frame_count
        for slot in replay.slots():
            assert slot.records["frame"][0] == slot.first_frame and (slot.records["port"] == slot.port).all()
        for position in range(0, len(replay), 500):
            assert len(replay.items(position)) == replay.frames["item_count"][position]
