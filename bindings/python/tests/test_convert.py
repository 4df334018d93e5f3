"""exphil.convert: policies of ExPhil and slippi-ai, made here with random weights, play as their own formulas in NumPy say
(convert_nets.py, written from doc/convert.md), 600 frames with resets; and what cannot be converted is refused by name."""
import contextlib
import io
import json
import os
import signal
import subprocess
import sys

import convert_files as files
import convert_nets as nets
import numpy as np
import pytest

import exphil
from exphil.convert import Damaged, Refused, convert, safetensors
from exphil.convert.__main__ import main
from exphil.convert.policy import Policy

FRAMES, RESETS = 600, (0, 97, 300)
EXPHIL = [
    ("mlp", {"sizes": (48, 40, 40)}),
    ("mlp", {"sizes": (32, 32, 32), "normed": True}),
    ("lstm", {"hidden": 288, "layers": 1}),
    ("gru", {"hidden": 288, "layers": 2}),
    ("lstm", {}),
    ("gru", {"layers": 3, "hidden": 20}),
    ("mamba", {}),
    ("mamba", {"layers": 1, "hidden": 24, "states": 4, "taps": 3}),
]


def written(tmp_path, data, name="policy.bin"):
    """A file with these bytes."""
    path = tmp_path / name
    path.write_bytes(data)
    return path


def exphil_file(tmp_path, backbone, weights=None, **settings):
    """A policy of ExPhil in its newer form."""
    flat = files.exphil_weights(backbone, **(weights or {}))
    return written(tmp_path, files.exphil_manifest(flat, files.exphil_config(backbone, **settings))), flat


def rows_288(draw):
    """Rows as exphil288 has them: its last column is zero, two are ids."""
    rows = draw.standard_normal((FRAMES, 288)).astype(np.float32)
    rows[:, 283:285] = draw.integers(0, 399, (FRAMES, 2))
    rows[:, 287] = 0
    return rows


def played(path, rows, resets=RESETS, **settings):
    """Logits of a session over rows."""
    session = exphil.Session(exphil.Model.load(path), seed=1, **settings)
    made = []
    for t, row in enumerate(rows):
        if t in resets:
            session.reset()
        session.step_row(row)
        made.append(session.logits[0].copy())
    return np.array(made)


@pytest.mark.parametrize("backbone,weights", EXPHIL, ids=[f"{name}-{i}" for i, (name, _) in enumerate(EXPHIL)])
def test_exphil_plays_alike(backbone, weights, tmp_path):
    """The state carried on: a session against the formulas, every frame."""
    path, flat = exphil_file(tmp_path, backbone, weights)
    told = convert(path, tmp_path / "out.safetensors", mode="" if backbone == "mlp" else "carry")
    assert (told["source"], told["layout"], told["codec"]) == ("exphil", "exphil288", "exphil81-floor")
    rows, net, wanted = rows_288(np.random.default_rng(7)), nets.ExPhil(backbone, flat), []
    for t, row in enumerate(rows):
        if t in RESETS:
            net.reset()
        wanted.append(net.step(row))
    found, wanted = played(tmp_path / "out.safetensors", rows), np.array(wanted)
    assert 0.5 < np.abs(wanted).max() < 100 and wanted.std(0).min() > 1e-3, "a network that is dead shows nothing"
    assert np.abs(found - wanted).max() <= 1e-5 * max(1, np.abs(wanted).max())


@pytest.mark.parametrize("backbone,hidden", [("lstm", 288), ("gru", 288), ("gru", 16), ("mamba", 16)])
def test_exphil_plays_windows(backbone, hidden, tmp_path):
    """As it was trained, which is the default: each frame from the last 16 rows alone."""
    path, flat = exphil_file(tmp_path, backbone, {"hidden": hidden, "layers": 1}, window_size=16)
    convert(path, tmp_path / "out.safetensors")
    model = exphil.Model.load(tmp_path / "out.safetensors")
    assert model.info.window_frames == 16
    rows, net = rows_288(np.random.default_rng(8))[:120], nets.ExPhil(backbone, flat)
    found = played(tmp_path / "out.safetensors", rows, (0, 50))
    for t in range(len(rows)):
        net.reset()
        for row in rows[max(t - 15, 50 if t >= 50 else 0) : t + 1]:
            logits = net.step(row)
        assert np.abs(found[t] - logits).max() <= 1e-5 * max(1, np.abs(logits).max())


def test_all_forms_give_one_file(tmp_path):
    """A term, with and without compression and Axon's struct, the manifest, big-endian and compressed, NumPy's archives,
    safetensors and the exporter's folder hold the same policy."""
    flat, config = files.exphil_weights("mamba"), files.exphil_config("mamba")
    settings = written(tmp_path, json.dumps(config).encode(), "config.json")
    forms = [files.exphil_term(flat, config), files.exphil_term(flat, config, compressed=True, state=False),
             files.exphil_manifest(flat, config), files.exphil_manifest(flat, config, compressed=True, big=True),
             files.npz(flat), files.npz(flat, compressed=True), files.safetensors(flat)]  # fmt: skip
    files.exphil_folder(tmp_path / "folder", flat, config)
    made = set()
    for i in range(len(forms) + 1):
        path = written(tmp_path, forms[i], f"{i}") if i < len(forms) else tmp_path / "folder"
        told = convert(path, tmp_path / "out.safetensors", config=settings if 4 <= i < 7 else None)
        tensors, notes = safetensors.read_safetensors((tmp_path / "out.safetensors").read_bytes(), "out")
        assert json.loads(notes["exphil.notes"])["convert"]["source_sha256"] == told["source_sha256"]
        made.add((notes["exphil.model"], tuple((name, array.tobytes()) for name, array in sorted(tensors.items()))))
    assert len(made) == 1


SLIPPI = [
    {"depth": 2},
    {"depth": 0, "delay": 0},
    {"depth": 1, "delay": 5, "layers": 1, "expand": 4, "names": 1},
    {"depth": 2, "nana": True, "spacing": (32, 10)},
    {"depth": 3, "residual": 24, "six_jumps": True},
    {"depth": 2, "old": True},
    {"depth": 1, "layers": 1, "quiet": True},
    {"depth": 2, "cell": "gru"},
    {"depth": 1, "cell": "gru", "delay": 0, "layers": 3},
]


def slippi_case(settings):
    """A configuration, its weights, and for each column of the layout the input of its network or -1."""
    given = dict(settings)
    six, old, quiet = (given.pop(name, False) for name in ("six_jumps", "old", "quiet"))
    config = files.slippi_config(**given)
    config["embed"]["player"]["legacy_jumps_left"] = six
    if old:  # before the moving platforms were inputs
        config["embed"].update(with_randall=False, with_fod=False)
    character = [i for i in range(446) if not (six and i == 443)]
    nana = [*character, 446]
    columns, at = [], 0
    for _ in range(2):
        for part, width in ((character, 446), (nana, 447))[: 2 if config["embed"]["player"]["with_nana"] else 1]:
            columns += [at + i for i in part]
            at += width
    columns += list(range(at, at + (64 if old else 68)))
    flat = files.slippi_weights(config)
    if quiet:  # what a LayerNorm gets is so small that its epsilon decides
        for name in flat:
            if name.startswith("network._network._layers.0."):
                flat[name] *= np.float32(1e-4)
            elif name.endswith("_core.ho.bias"):
                flat[name] -= np.float32(12)
    return config, flat, columns, at + 68


def codes_of(heads, action):
    """What a component is to a network of slippi-ai: a bit, or a one-hot."""
    return [np.array([float(value)]) if head.count == 1 else np.eye(head.count)[value] for head, value in zip(heads, action)]


@pytest.mark.parametrize("settings", SLIPPI, ids=[str(i) for i in range(len(SLIPPI))])
@pytest.mark.parametrize("fixed", [False, True])
def test_slippi_plays_alike(settings, fixed, tmp_path):
    """A session that draws against the formulas that are told what it drew: the residual grows there, and is folded in here."""
    config, flat, columns, width = slippi_case(settings)
    path = written(tmp_path, files.slippi_checkpoint(config, flat, names={"Somebody": 0}))
    told = convert(path, tmp_path / "out.safetensors", player="Somebody" if fixed else None)
    model = exphil.Model.load(tmp_path / "out.safetensors")
    assert model.spec.float_count == width and told["delay_frames"] == config["policy"]["delay"] == model.info.delay_frames
    draw, net = np.random.default_rng(11), nets.Slippi(config, flat)
    rows = (draw.standard_normal((FRAMES, width)) * (draw.random((FRAMES, width)) < 0.05)).astype(np.float32)
    conditions = {} if fixed else {"conditions": [1]}
    session = exphil.Session(model, seed=5, deliver="decided", **conditions)
    neutral, heads, worst, most, seen = [head.neutral for head in model.spec.heads], model.spec.heads, 0.0, 0.0, []
    for t, row in enumerate(rows):
        if t in RESETS:
            session.reset()
            net.reset()
            before = codes_of(heads, neutral)
        action = session.step_row(row)[0].tolist()
        taken = codes_of(heads, action)
        wanted = net.step(row.astype(np.float64)[columns], before, taken, 0)
        worst, most = max(worst, float(np.abs(session.logits[0] - wanted).max())), max(most, float(np.abs(wanted).max()))
        before = taken
        seen.append(action)
    assert 1 < most < 200 and len({tuple(action) for action in seen}) > 100, "a network that is dead shows nothing"
    assert worst <= 1e-5 * max(1, most)


def test_slippi_is_told_a_player(tmp_path):
    """Every number of a player is a row of its table; 0, not known, is the name that slippi-ai does not know either."""
    config, flat, columns, width = slippi_case({"delay": 0, "names": 3})
    convert(written(tmp_path, files.slippi_checkpoint(config, flat)), tmp_path / "out.safetensors")
    model, net = exphil.Model.load(tmp_path / "out.safetensors"), nets.Slippi(config, flat)
    row = np.random.default_rng(1).standard_normal(width).astype(np.float32)
    for player in range(4):
        session = exphil.Session(model, seed=2, conditions=[player])
        taken = codes_of(model.spec.heads, session.step_row(row)[0])
        net.reset()
        neutral = codes_of(model.spec.heads, [head.neutral for head in model.spec.heads])
        wanted = net.step(row.astype(np.float64)[columns], neutral, taken, player - 1 if player else None)
        assert np.abs(session.logits[0] - wanted).max() <= 1e-5 * max(1, np.abs(wanted).max())


def refusal(tmp_path, data, **settings):
    """The text with which a whole file is refused."""
    with pytest.raises(Refused) as caught:
        convert(written(tmp_path, data), tmp_path / "out.safetensors", **settings)
    assert not (tmp_path / "out.safetensors").exists() and len(os.listdir(tmp_path)) == 1
    return str(caught.value)


@pytest.mark.parametrize("settings,names", [
    ({"use_prev_action": True}, ("use_prev_action", "previous controller")),
    ({"queue_depth": 4}, ("queue_depth", "queue")),
    ({"with_delay_id": True}, ("with_delay_id",)),
    ({"axis_buckets": 20}, ("axis_buckets", "codec")),
    ({"shoulder_buckets": 10}, ("shoulder_buckets", "codec")),
    ({"embed_size": 1208}, ("embed_size is 1208", "layout")),
    ({"backbone": "jamba"}, ("backbone jamba", "attention")),
    ({"backbone": "sliding_window"}, ("sliding_window", "positions")),
    ({"backbone": "hyena"}, ("backbone hyena", "block")),
    ({"window_size": 100000}, ("window_size",)),
    ({"backbone": None}, ("config.backbone is missing",)),
    ({"embed_size": None}, ("config.embed_size is missing",)),
])  # fmt: skip
def test_exphil_refusals(settings, names, tmp_path):
    """A policy that saw or did something else is refused, by the name of the setting."""
    config = {**files.exphil_config("mamba"), **settings}
    text = refusal(tmp_path, files.exphil_manifest(files.exphil_weights("mamba"), config))
    assert all(name in text for name in names), text


def _without(flat, name):
    return {key: value for key, value in flat.items() if key != name}


def test_exphil_weights_are_all_used(tmp_path):
    """A tensor too many, too few, or of another shape is refused by its name."""
    flat, config = files.exphil_weights("lstm", hidden=288), files.exphil_config("lstm")
    cases = [
        ({**flat, "lstm_3_ln.gamma": np.ones(288, np.float32)}, "no part of this network: lstm_3_ln.gamma"),
        ({**flat, "embedding.kernel": np.ones((3, 3), np.float32)}, "no part of this network: embedding.kernel"),
        (_without(flat, "c_x_logits.bias"), "there is no c_x_logits.bias"),
        (_without(flat, "input_ln.beta"), "there is no input_ln.beta"),
        ({**flat, "lstm_2_ln.gamma": np.ones(31, np.float32)}, "lstm_2_ln.gamma is [31], [288] is expected"),
        ({**flat, "main_x_logits.kernel": np.ones((64, 21), np.float32)}, "main_x_logits.kernel is [64, 21]"),
        ({**flat, "main_x_logits.kernel": np.ones((64, 17), np.int32)}, "not a tensor of floating-point numbers"),
    ]
    for weights, text in cases:
        assert text in refusal(tmp_path, files.exphil_manifest(weights, config))
    axon = {name.replace("_fused_scan.lstm_1_recurrent", ".hidden"): value for name, value in flat.items()}
    assert "whose first state is drawn at random" in refusal(tmp_path, files.exphil_manifest(axon, config))
    ragged = files.exphil_weights("mlp", sizes=(48, 40), normed=True)
    assert "with LayerNorm" in refusal(tmp_path, files.exphil_manifest(ragged, files.exphil_config("mlp")))
    skip = {**files.exphil_weights("mlp"), "backbone_proj_0.kernel": np.ones((288, 48), np.float32)}
    assert "a residual mlp" in refusal(tmp_path, files.exphil_manifest(skip, files.exphil_config("mlp")))
    wrong = dict(flat)
    wrong["c_y_hidden.bias"] = np.full(64, np.nan, np.float32)
    with pytest.raises(Damaged, match="c_y_hidden.bias: has a number that is not finite"):
        convert(written(tmp_path, files.exphil_manifest(wrong, config)), tmp_path / "out")


def _changed(config, path, value):
    node = config
    *above, last = path.split(".")
    for part in above:
        node = node[part]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return config


@pytest.mark.parametrize("path,value,names", [
    ("platform", "tf", ("TensorFlow",)),
    ("platform", None, ("TensorFlow",)),
    ("network.name", "frame_tx", ("network.name is 'frame_tx'", "blocks")),
    ("network.tx_like.recurrent_layer", "rnn", ("recurrent_layer is 'rnn'", "blocks")),
    ("network.tx_like.activation", "relu", ("activation",)),
    ("network.tx_like.gelu_approximate", False, ("exact GELU",)),
    ("network.tx_like.layer_norm", "tensorflow", ("TensorFlow's LayerNorm",)),
    ("network.embed.name", "enhanced", ("'enhanced'", "learned tables")),
    ("embed.player.with_speeds", True, ("with_speeds", "layout")),
    ("embed.player.xy_scale", 0.1, ("xy_scale is 0.1", "layout")),
    ("embed.player", None, ("embed.player is missing",)),
    ("embed", None, ("embed is missing",)),
    ("embed.items.type", "flat", ("embed.items.type is flat", "layout")),
    ("embed.controller.type", "custom_v1", ("custom_v1", "codec")),
    ("embed.controller.default.axis_spacing", 8, ("8 and 4 steps", "codec")),
    ("embed.controller.default", None, ("embed.controller.default is missing",)),
    ("observation", None, ("observation is missing",)),
    ("observation.animation.mask", False, ("animation.mask", "layout")),
    ("observation.frame_skip.skip", 3, ("frame_skip",)),
    ("controller_head.name", "independent", ("'independent'",)),
    ("policy.delay", 99, ("policy.delay is 99",)),
    ("max_names", 5000, ("max_names is 5000",)),
    ("version", 3, ("version is 3",)),
])  # fmt: skip
def test_slippi_refusals(path, value, names, tmp_path):
    """The same of slippi-ai."""
    config = files.slippi_config(hidden=4, layers=1)
    flat = files.slippi_weights(config)
    text = refusal(tmp_path, files.slippi_checkpoint(_changed(config, path, value), flat))
    assert all(name in text for name in names), text


def test_slippi_weights_are_all_used(tmp_path):
    config = files.slippi_config(hidden=4, layers=1)
    flat = files.slippi_weights(config)
    more = {**flat, "network._network._layers.3._net._core.hi.bias": np.zeros(4, np.float32)}
    assert "no part of this network: network._network._layers.3" in refusal(tmp_path, files.slippi_checkpoint(config, more))
    less = _without(flat, "_controller_head.res_blocks.12.decoder.bias")
    assert "there is no _controller_head.res_blocks.12.decoder.bias" in refusal(tmp_path, files.slippi_checkpoint(config, less))
    assert "no player of that name" in refusal(tmp_path, files.slippi_checkpoint(config, flat), player="Nobody")
    renamed = {name.replace("_controller_head", "controller_head"): value for name, value in flat.items()}
    convert(written(tmp_path, files.slippi_checkpoint(config, renamed, protocol=5)), tmp_path / "out.safetensors")


def test_files_of_others(tmp_path):
    """Torch files are recognised, by the names in their zip and pickle, and refused with what they would need."""
    import zipfile

    def archive(members):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as file:
            for name, data in members.items():
                file.writestr(name, data)
        return made.getvalue()

    cases = [
        ({"x/data.pkl": b"\x80\x02melee_policy.bc_checkpoint.v1"}, "a policy of Faynt: needs rotary attention"),
        ({"x/data.pkl": b"\x80\x02model_state_dict"}, "a policy of MIMIC: needs attention with relative positions"),
        ({"manifest.json": b"{}", "backend.json": b"{}", "checkpoint.pt": b""}, "a policy of HAL: needs a decoder that plans"),
        ({"x/data.pkl": b"\x80\x02"}, "a torch file of no system that is known"),
    ]
    for members, text in cases:
        assert text in refusal(tmp_path, archive(members))


def test_asked_for(tmp_path):
    """What the caller says must be what the file is; a file without settings is refused without them."""
    flat, config = files.exphil_weights("mamba"), files.exphil_config("mamba")
    whole = files.exphil_manifest(flat, config)
    assert "the layout exphil288, not on melee2" in refusal(tmp_path, whole, layout="melee2")
    assert "the codec exphil81-floor, not on exphil81" in refusal(tmp_path, whole, codec="exphil81")
    assert "knows no players" in refusal(tmp_path, whole, player="Somebody")
    assert "--config" in refusal(tmp_path, files.safetensors(flat))
    assert "--config" in refusal(tmp_path, files.npz(flat))
    mlp = files.exphil_manifest(files.exphil_weights("mlp"), files.exphil_config("mlp"))
    assert "has no window" in refusal(tmp_path, mlp, mode="window")
    convert(written(tmp_path, whole), tmp_path / "out.safetensors", layout="exphil288", codec="exphil81-floor")


def run(*arguments):
    """Status and texts of the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    return status, out.getvalue(), err.getvalue()


def test_command(tmp_path):
    """Exit statuses, one JSON object, and a file that is kept when anything fails."""
    path, _ = exphil_file(tmp_path, "mamba")
    out = tmp_path / "out.safetensors"
    status, text, _ = run(path, "-o", out, "--json")
    told = json.loads(text)
    assert status == 0 and told["blocks"] == "mamba_exphil*2" and told["mode"] == "window" and told["bytes"] == out.stat().st_size
    before = out.read_bytes()
    assert run(path, "-o", out)[1].startswith("exphil policy: mamba_exphil*2, ") and "assumed: scan" in run(path, "-o", out)[1]
    status, _, text = run(path, "-o", out, "--b-mean-dt")
    assert status == 3 and "mean of the steps" in text
    (tmp_path / "cut").write_bytes(path.read_bytes()[:-1])
    status, _, text = run(tmp_path / "cut", "-o", out)
    assert status == 1 and "mean" not in text
    assert run(tmp_path / "nothing", "-o", out)[0] == 1
    assert run(path, "-o", tmp_path / "no" / "folder")[0] == 1
    assert run(path, "-o", out, "--layout", "slippi")[0] == 3
    with pytest.raises(SystemExit) as wrong, contextlib.redirect_stderr(io.StringIO()):
        main([str(path)])
    assert wrong.value.code == 2
    assert out.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["cut", "out.safetensors", "policy.bin"]
    command = [sys.executable, "-m", "exphil.convert", str(path), "-o", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout) == told


def _places_of(folder, path, exports):
    """Names that no new file may have, and why."""
    out = folder / "out.safetensors"
    (folder / "link").symlink_to(out)
    (folder / "dangling").symlink_to(folder / "nothing")
    os.link(path, folder / "other")
    os.mkfifo(folder / "pipe")
    (folder / "config.json").write_text("{}")
    yield path, path, "would write over"
    yield path, folder / "other", "would write over"
    yield path, folder / "config.json", "would write over"
    yield exports, exports / "new.safetensors", "would write over"
    yield path, folder / "link", "that is a link; name the file that it leads to"
    yield path, folder / "dangling", "that is a link"
    yield path, exports, "that is a folder; name a file in it"
    yield path, "", "the name is empty"
    yield path, folder / "pipe", "that is no regular file"
    yield path, folder / "no" / "where", f"{folder / 'no' / 'where'}: No such file or directory"
    yield folder / "pipe", out, f"{folder / 'pipe'}: this is neither a regular file nor a folder"


def test_places(tmp_path):
    """Where no file is replaced, and what is no input: told by name, and nothing is changed."""
    path, _ = exphil_file(tmp_path, "mlp")
    exports = tmp_path / "exports"
    exports.mkdir()
    cases = list(_places_of(tmp_path, path, exports))
    before = sorted(os.listdir(tmp_path)), path.read_bytes()
    for source, out, why in cases:
        config = ["--config", out] if out == tmp_path / "config.json" else []
        status, _, text = run(source, "-o", out, *config)
        assert status == 1 and why in text and ".exphil-tmp" not in text, (out, text)
    assert (sorted(os.listdir(tmp_path)), path.read_bytes()) == before and not os.listdir(exports)


def test_what_a_killed_run_leaves(tmp_path):
    """The temporary has one name: the next run replaces it. A run that is told to end removes it."""
    path, _ = exphil_file(tmp_path, "mlp")
    out, left = tmp_path / "out.safetensors", tmp_path / "out.safetensors.exphil-tmp"
    left.write_bytes(b"half")
    assert run(path, "-o", out)[0] == 0 and not left.exists()
    left.symlink_to(path)
    whole = path.read_bytes()
    assert run(path, "-o", out)[0] == 0 and not left.exists() and path.read_bytes() == whole
    # The signal comes when the temporary is there: Model.load is the next that happens.
    program = """import os, runpy, signal, sys
from exphil import Model
def load(path):
    assert os.path.exists(path) and path.endswith(".exphil-tmp")
    os.kill(os.getpid(), signal.SIGTERM)
    while True:
        signal.pause()
Model.load = load
sys.argv[0] = "convert"
runpy.run_module("exphil.convert", run_name="__main__", alter_sys=True)
"""
    before = sorted(os.listdir(tmp_path)), out.read_bytes()
    done = subprocess.run([sys.executable, "-c", program, str(path), "-o", str(out)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "")
    assert (sorted(os.listdir(tmp_path)), out.read_bytes()) == before


@pytest.mark.parametrize("error,status,text", [
    (RecursionError("deep"), 1, "it cannot be read (RecursionError)"),
    (MemoryError(), 3, "there is not enough memory for it"),
])  # fmt: skip
def test_unforeseen(error, status, text, tmp_path, monkeypatch):
    """The command has a text that names the file for whatever a reader throws, and a file's name does nothing to a terminal."""

    def fails(_):
        raise error

    path = written(tmp_path, b"x", "a\x1b[2J\nb")
    monkeypatch.setattr(exphil.convert, "read_source", fails)
    found, _, said = run(path, "-o", tmp_path / "out.safetensors")
    assert found == status and text in said and "a\\x1b[2J\\nb" in said and said.strip().isprintable()
    assert "a\\x1b[2J" in run(tmp_path / "a\x1b[2J", "-o", tmp_path / "out.safetensors")[2]
    assert os.listdir(tmp_path) == ["a\x1b[2J\nb"]


def test_nobody_is_named(tmp_path):
    """The new file has no player's name and no file's."""
    config = files.slippi_config(hidden=4, layers=1)
    path = written(tmp_path, files.slippi_checkpoint(config, files.slippi_weights(config)), "secret-name.pkl")
    convert(path, tmp_path / "out.safetensors", player="Another")
    data = (tmp_path / "out.safetensors").read_bytes()
    assert not any(word in data for word in (b"Another", b"Somebody", b"secret-name", os.fsencode(str(tmp_path))))


def test_what_the_library_does_not_take(tmp_path, monkeypatch):
    """The new file is tried before it takes its name; then nothing of it is left, and the old one stays."""
    path, _ = exphil_file(tmp_path, "mamba")
    out = tmp_path / "out.safetensors"
    out.write_bytes(b"as it was")
    members = Policy.members
    monkeypatch.setattr(Policy, "members", lambda policy: {**members(policy), "unheard_of": 1})
    with pytest.raises(Refused, match="this library does not take the policy"):
        convert(path, out)
    monkeypatch.setattr(Policy, "members", lambda policy: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        convert(path, out)
    assert out.read_bytes() == b"as it was" and sorted(os.listdir(tmp_path)) == ["out.safetensors", "policy.bin"]
