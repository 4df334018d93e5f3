"""exphil.torch reads and writes the library's weights files: the same bytes both ways, and nothing that is damaged."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (package python3-torch): exphil.torch is untested")

from torch_case import ALL, BARE, IDS, OTHERS, SIZES, SPEC, TOLD, apart, draw_rows, library, make, shake  # noqa: E402

import exphil  # noqa: E402
import exphil.torch  # noqa: E402
from exphil.torch.checksum import xxh64  # noqa: E402

MUTATIONS = int(os.environ.get("EXPHIL_MUTATIONS", "1500"))

KINDS = {
    "mamba": dict(blocks="mamba", seed=(1 << 64) - 1),
    "all": dict(blocks=ALL, delay_frames=2, heads="autoregressive", neutral_start=True, value="shared"),
    "told": dict(blocks="gru \t( mlp * 2 )", mode="window", no_previous_action=True, value="detached", **TOLD),
    "double": dict(spec=BARE, blocks="attention", type="f64"),
    "others": dict(blocks=OTHERS),
    "layers": dict(blocks="mlp", head_layers=4, head_units=9, head_last=True, head_activation="relu", norm_epsilon=1e-6, **TOLD),
    "bare": dict(blocks="norm", head_layers=1, no_head_past=True, no_head_trunk=True, no_final_norm=True, value="shared"),
    "usual": dict(spec=exphil.Spec("l!", "c#", 3, BARE.heads, layout_hash=77), hidden=24, head_width=0),
}


@pytest.mark.parametrize("name", KINDS)
def test_same_bytes_both_ways(name, tmp_path):
    """Saved here and there, loaded there and here: one file, to the byte."""
    words = dict(dict(blocks=None), **KINDS[name])
    spec, sizes = words.pop("spec", SPEC), {} if name == "usual" else SIZES
    model = exphil.Model(spec, **dict(sizes, **words))
    model.notes = '{"train": "a\ttab,\n a \\ and \u00fc"}'
    model.save(tmp_path / "here")
    policy = exphil.torch.load(tmp_path / "here")
    policy.save(tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert policy.config == exphil.torch.Policy(spec, **dict(sizes, **words)).config
    shake(policy)
    policy.trained_updates, policy.trained_frames = 12, (1 << 64) - 1
    policy.save(tmp_path / "there")
    exphil.Model.load(tmp_path / "there").save(tmp_path / "here")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    again = exphil.torch.load(str(tmp_path / "here"))
    assert all(torch.equal(again.state_dict()[key], value) for key, value in policy.state_dict().items())
    assert (again.notes, again.trained_updates, again.trained_frames) == (model.notes, 12, (1 << 64) - 1)
    assert sorted(os.listdir(tmp_path)) == ["here", "there"]


def test_strict_loading_both_ways(tmp_path):
    """Names, shapes and types are those of the library; nothing is renamed."""
    policy = make(**KINDS["all"])
    model = library(policy, tmp_path)
    there = {info.name: tuple(info.shape) for info in model.tensors()}
    assert there == {name: tuple(value.shape) for name, value in policy.state_dict().items()}
    fresh = exphil.torch.Policy(policy.config)
    fresh.load_state_dict({name: torch.from_numpy(model.tensor_get(name)) for name in there}, strict=True)
    for name, value in fresh.state_dict().items():
        model.tensor_set(name, value + 1)
        assert np.array_equal(model.tensor_get(name), (value + 1).numpy())
    with pytest.raises(RuntimeError, match="Unexpected key"):
        fresh.load_state_dict(dict(policy.state_dict(), more=torch.zeros(1)))


def plays(policy, model, conditions=()):
    """A few frames as a session plays them."""
    session = exphil.Session(model, deterministic=True, conditions=conditions or None)
    state, (floats, ids) = policy.initial_state(), draw_rows(model.spec, 5, 1)
    for t in range(5):
        with torch.no_grad():
            done = policy.step(
                state, torch.from_numpy(floats[t]), torch.from_numpy(ids[t]), deterministic=True,
                conditions=torch.tensor([conditions]) if conditions else None)
        state = done.state
        session.step_row(floats[t], ids[t])
        assert apart(done.logits, session.logits) < 1e-5


LAYERS = dict(head_layers=2, head_last=True, heads="autoregressive")


def test_names_of_modules_are_names_too(tmp_path):
    """An id may have any name: that of a method, of a tensor, of a part of another one."""
    names = ["type", "own.character", "own", "own.weight", "weight", "a.b.c", "a.b", "children", "forward", "ids", "_apply"]
    spec = exphil.Spec("names", "one", 1, SPEC.heads[:2], tuple(exphil.IdSpec(name, 3, 2) for name in names))
    heads = [exphil.HeadSpec(name, "categorical", 3) for name in ("trunk", "past", "codec", "each", "forward", "a", "a.0")]
    for more in (dict(), dict(no_head_trunk=True, no_head_past=True)):
        layered = make(exphil.Spec("names", "two", 1, tuple(heads)), blocks="mlp", **dict(LAYERS, **more))
        there = library(layered, tmp_path)
        assert {info.name for info in there.tensors()} == set(layered.state_dict())
        there.save(tmp_path / "here")
        layered.save(tmp_path / "there")
        assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()
        plays(layered, there)
    conditions = [exphil.Condition("parameters", 2), exphil.Condition("train", 1, 3)]
    policy = make(spec, blocks="mlp", conditions=conditions)
    model = library(policy, tmp_path)
    assert [name for name in policy.state_dict() if ".own" in name] == ["ids.own.weight", "ids.own.character.weight",
                                                                        "ids.own.weight.weight"]
    assert len(list(policy.parameters())) == len(model.tensors())
    policy.double().float().train()
    plays(policy, model, [2, 1])


@pytest.mark.parametrize("type, blocks, more", [
    ("bf16", "attention ffn mlp mamba", {}), ("i8", "lstm mlp mamba", {}), ("i8", ALL, {}), ("i8", OTHERS, {}),
    ("bf16", OTHERS, {}), ("i8", "mlp", LAYERS), ("bf16", "mlp", LAYERS)])
def test_weights_of_fewer_bits(type, blocks, more, tmp_path):
    """They keep their bytes, and round what they multiply: an input between two levels may fall to either side."""
    model = library(make(blocks=blocks, delay_frames=1, value="shared", **more), tmp_path).quantize(type)
    model.save(tmp_path / "here")
    policy = exphil.torch.load(tmp_path / "here")
    policy.save(tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()
    assert not any(parameter.requires_grad for parameter in policy.parameters())
    for info in model.tensors():
        assert np.array_equal(policy.state_dict()[info.name].numpy(), model.tensor_get(info.name)), info.name
    session, state = exphil.Session(model, deterministic=True), policy.initial_state()
    floats, ids = draw_rows(SPEC, 24, 1)
    off = []
    for t in range(24):
        with torch.no_grad():
            done = policy.step(state, torch.from_numpy(floats[t]), torch.from_numpy(ids[t]), deterministic=True)
        state = done.state
        session.step_row(floats[t], ids[t])
        off.append(apart(done.logits, session.logits))
    assert np.mean(np.array(off) < 1e-5) > 0.5 and max(off) < 2e-3
    plain = exphil.torch.load(tmp_path / "here", dequantize=True)
    assert plain.config.weights is None and all(parameter.requires_grad for parameter in plain.parameters())
    assert all(torch.equal(plain.state_dict()[name], value) for name, value in policy.state_dict().items())
    assert library(plain, tmp_path).info.weights_hash != model.info.weights_hash
    # Rounded inputs are what makes the difference.
    with torch.no_grad():
        row = torch.from_numpy(floats[0]), torch.from_numpy(ids[0])
        both = [one.step(one.initial_state(), *row, deterministic=True).logits for one in (policy, plain)]
    assert apart(both[0], both[1]) > 1e-5


def test_rounding_is_the_librarys(tmp_path):
    """A policy in float with `weights` set is written as exphil.Model.quantize rounds it; rows of zeros and tiny ones too."""
    for type in ("bf16", "i8"):
        policy = make(blocks="mlp")
        with torch.no_grad():
            policy.blocks[0].up.weight[0] = 0
            policy.blocks[0].up.weight[1] *= 1e-36
            policy.blocks[0].up.weight[2] *= 2.0**-52
        library(policy, tmp_path).quantize(type).save(tmp_path / "here")
        rounded = exphil.torch.load(tmp_path / "here")
        rounded.load_state_dict(policy.state_dict())
        rounded.save(tmp_path / "there")
        assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


# ---- hostile files -------------------------------------------------------------------------------------------


def built(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def taken_apart(path):
    """Header and data of a file."""
    raw = path.read_bytes()
    length, = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def refused(path, raw, message):
    path.write_bytes(raw)
    with pytest.raises(exphil.torch.FormatError, match=message):
        exphil.torch.load(path)


def without_sums(header):
    for key in [key for key in header["__metadata__"] if key.endswith("xxh64")]:
        del header["__metadata__"][key]
    return header


CONFIGS = {
    "hidden": (8193, "hidden is 8193, must be a whole number from 1 to 8192"),
    "mamba_taps": (True, "mamba_taps is True"), "window_frames": (0, "window_frames is 0"),
    "blocks": ("lstm resnet", 'blocks, column 6: "resnet" is no block'), "mode": ("both", "mode is 'both'"),
    "value": ("none", "value is 'none'"), "neutral_start": (0, "neutral_start is there, but says nothing"),
    "seed": ("12", "seed is no text of 16 digits"), "layout_hash": ("0" * 16, "layout_hash is 0"),
    "layout": ("a b", "layout is 'a b'"), "ids": ([{"name": "x", "entries": 1}], "ids is no array of objects"),
    "heads": ([], "number of heads is 0"), "delay_frames": (65, "delay_frames is 65"), "conditions": ([], "conditions is there"),
    "delays": ([2, 1], "delays do not ascend"), "weights": ("I4", "weights is 'I4'"), "more": (1, "a member 'more' is unknown"),
    "head_layers": (5, "head_layers is 5"), "head_units": (3, "head_units is given, which needs head_layers"),
    "head_last": (1, "head_last is given, which needs"), "head_activation": ("tanh", "head_activation is 'tanh'"),
    "norm_epsilon": (0.2, "norm_epsilon is 0.2"), "no_final_norm": (2, "no_final_norm is 2"),
    "type": ("F16", "type is 'F16'"), "float_count": (-1, "float_count is -1"),
}


OFTEN_ABSENT = (
    "value", "neutral_start", "conditions", "delays", "weights", "head_layers", "head_units", "head_last", "head_activation",
    "norm_epsilon", "no_final_norm")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "small.safetensors"
    make(blocks="mlp", hidden=4, head_width=4, no_previous_action=True).save(path)
    return path


@pytest.mark.parametrize("name", CONFIGS)
def test_wrong_configurations(name, small, tmp_path):
    header, data = taken_apart(small)
    members = json.loads(header["__metadata__"]["exphil.model"])
    members[name], message = CONFIGS[name]
    without_sums(header)["__metadata__"]["exphil.model"] = json.dumps(members)
    refused(tmp_path / "wrong", built(header, data), f"wrong: exphil.model: {message}")
    if name != "more":
        del members[name]
        header["__metadata__"]["exphil.model"] = json.dumps(members)
        if name in OFTEN_ABSENT:
            return
        refused(tmp_path / "wrong", built(header, data), f"a member {name} is missing")


def test_wrong_files(small, tmp_path):
    path, raw = tmp_path / "wrong", small.read_bytes()
    for text, message in (
        (b"", "0 bytes are no weights file"), (b"\xff" * 8 + b"{}", "no safetensors file"),
        (b"PK\x03\x04" + bytes(60), "this is no safetensors file"),
        (b"{U\x03raw[$U#l" + bytes(60), "this is no safetensors file"), (raw[:100], "the header would have"),
        (built(b"[" * 100000), "deeper than 16"), (built(b"{" + b'"a":{' * 30 + b"}" * 31), "deeper than 16"),
        (built(b"[" + b"1," * 70000 + b"1]"), "more than 65536 values"), (built(b'{"a":NaN}'), "NaN is no JSON"),
        (built(b'{"a":1,"a":2}'), '"a" stands twice'), (built(b'{"a":' + b"9" * 5000 + b"}"), "more than 20 digits"),
        (built(b"\xff\xfe"), "utf-8"), (built(b"[]"), "the header is no object"),
        (built({"__metadata__": {"a": 1}}), "no object of texts"),
        (built({}), "exphil.format is missing"), (built({"\x01": 1}), "printable ASCII"),
        (built({"a": 1}), 'tensor "a" is not made of'),
        (built({str(i): 1 for i in range(5000)}), "5000 tensors, at most 4096"),
        (built({"a": {"dtype": "F4", "shape": [], "data_offsets": [0, 0]}}), "unknown dtype"),
        (built({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]}}), "no shape"),
        (built({"a": {"dtype": "F32", "shape": [1] * 5, "data_offsets": [0, 4]}}, b"1234"), "no shape"),
        (built({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, b"12345678"), "behind a hole from byte 0"),
        (built({"a": {"dtype": "F32", "shape": [1 << 60, 64], "data_offsets": [0, 4]}}, b"1234"), "its shape needs"),
        (built({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}}, b"1234"), "does not lie in the 4 bytes"),
        (raw + b"1234", "the tensors end at byte"), (raw[:-4], "does not lie in"),
        (raw[:-1] + b"1", "damaged: exphil.data_xxh64"),
        (raw.replace(b'\\"small\\"', b'\\"smell\\"'), "damaged: exphil.model_xxh64"),
        (raw.replace(b'"exphil.format":"1"', b'"exphil.format":"2"'), 'exphil.format is \'2\', this package reads "1"'),
        (raw.replace(b'updates":"0"', b'updates":"x"'), "trained_updates is no number of 64 bits"),
    ):
        refused(path, text, message)
    os.mkfifo(tmp_path / "pipe")
    for special in ("/dev/zero", tmp_path, tmp_path / "pipe"):
        with pytest.raises(exphil.torch.FormatError, match="no regular file"):
            exphil.torch.load(special)
    with pytest.raises(FileNotFoundError):
        exphil.torch.load(tmp_path / "nothing")


def test_wrong_tensors(small, tmp_path):
    path, (header, data) = tmp_path / "wrong", taken_apart(small)
    header = without_sums(header)
    for name in ("norm.weight", "heads.logits.bias"):
        renamed = {("other" if key == name else key): value for key, value in header.items()}
        refused(path, built(renamed, data), f'tensor "{name}" is missing')
        at = header[name]["data_offsets"][0]
        bad = data[:at] + struct.pack("<f", float("nan")) + data[at + 4 :]
        refused(path, built(header, bad), f'tensor "{name}" is not finite at element 0')
        shaped = dict(header, **{name: dict(header[name], shape=[1, *header[name]["shape"]])})
        refused(path, built(shaped, data), rf'tensor "{name}" is F32 \[1, \d+\], not F32')
    more = dict(header, more={"dtype": "F32", "shape": [0], "data_offsets": [len(data)] * 2})
    refused(path, built(more, data), 'tensor "more" is not one of')
    # No memory for what the configuration only claims.
    members = json.loads(header["__metadata__"]["exphil.model"])
    members.update(hidden=8192, head_width=8192, blocks="ffn*64", ffn_expand=16)
    claimed = dict(header, __metadata__=dict(header["__metadata__"], **{"exphil.model": json.dumps(members)}))
    refused(path, built(claimed, data), r"is F32 \[\d+.*\], not F32")


def test_wrong_numbers_of_fewer_bits(tmp_path):
    path, found = tmp_path / "wrong", tmp_path / "found"
    for type, name, at, value, message in (
        ("bf16", "input.weight", 0, b"\x80\x7f", "not finite at element 0"), ("bf16", "input.weight", 2, b"\x01\x00", "below 2"),
        ("i8", "blocks.0.up.weight", 1, b"\x80", "-128 at element 1"),
        ("i8", "blocks.0.up.weight.scale", 4, struct.pack("<I", 0x3C000001), "of more than 16 significant bits at element 1"),
        ("i8", "blocks.0.up.weight.scale", 0, struct.pack("<f", -1), "not from 2"),
        ("i8", "blocks.0.up.weight.scale", 0, struct.pack("<f", np.inf), "not finite"),
        ("i8", "blocks.0.up.weight", 0, b"\0" * 4, "no scale of its row"),
    ):
        library(make(blocks="mlp", hidden=4), tmp_path).quantize(type).save(found)
        header, data = taken_apart(found)
        begin = header[name]["data_offsets"][0] + at
        changed = data[:begin] + value + data[begin + len(value) :]
        refused(path, built(without_sums(header), changed), f"wrong: tensor .* is {message}")


def test_mutations(small, tmp_path):
    """Bytes changed, cut and doubled: what loads is what the library loads, and has the numbers of the file."""
    path, draw, loaded = tmp_path / "changed", np.random.default_rng(5), 0
    header, data = taken_apart(small)
    raw = built(without_sums(header), data)
    head = len(raw) - len(data)
    for _ in range(MUTATIONS):
        changed = bytearray(raw)
        for _ in range(draw.integers(1, 4)):
            at = int(draw.integers(0, head if draw.random() < 0.5 else len(raw)))
            how = draw.integers(0, 3)
            if how == 0:
                changed[at : at + 1] = bytes([draw.integers(0, 256)])
            elif how == 1:
                del changed[at : at + int(draw.integers(1, 9))]
            else:
                changed[at:at] = changed[at : at + int(draw.integers(1, 9))]
        path.write_bytes(changed)
        try:
            policy = exphil.torch.load(path)
        except exphil.torch.FormatError:
            # What is refused here may be read there only where the library is less strict: nowhere.
            with pytest.raises(exphil.ExphilError):
                exphil.Model.load(path)
            continue
        loaded += 1
        model = exphil.Model.load(path)
        assert all(np.array_equal(model.tensor_get(name), value.numpy()) for name, value in policy.state_dict().items())
    assert loaded > MUTATIONS // 100


def test_saving_keeps_the_old_file(small, tmp_path):
    path = tmp_path / "kept"
    shutil.copy(small, path)
    policy = exphil.torch.load(path)
    with torch.no_grad():
        policy.norm.weight[1] = float("inf")
    with pytest.raises(ValueError, match='tensor "norm.weight" is not finite'):
        policy.save(path)
    policy.start()
    policy.notes = "x" * 65537
    with pytest.raises(ValueError, match="notes have 65537 bytes"):
        policy.save(path)
    policy.notes, policy.trained_updates = None, -1
    with pytest.raises(ValueError, match="trained_updates is -1"):
        policy.save(path)
    policy.trained_updates = 0
    with pytest.raises(OSError):
        policy.save(tmp_path / "nowhere" / "file")
    assert path.read_bytes() == small.read_bytes() and os.listdir(tmp_path) == ["kept"]


def test_types_and_places(tmp_path):
    """The file's type is that of the configuration; BF16 parameters of mixed training are widened."""
    policy = make(blocks="mlp").to(torch.bfloat16)
    model = library(policy, tmp_path)
    assert model.info.type == exphil.DataType.F32
    assert np.array_equal(model.tensor_get("norm.bias"), policy.norm.bias.detach().float().numpy())
    assert exphil.torch.load(tmp_path / "given.safetensors", device="cpu").norm.bias.dtype == torch.float32


def test_every_block_of_the_library():
    with pytest.raises(exphil.InvalidError) as refused:
        exphil.Model(SPEC, blocks="none")
    words = re.search(r"\((.*)\)", str(refused.value))[1].split(", ")
    assert words == list(exphil.torch.BLOCKS)
    with pytest.raises(exphil.torch.ConfigError) as ours:
        exphil.torch.Policy(SPEC, blocks="none")
    assert str(ours.value) in str(refused.value)


PATTERNS = [
    "", "  ", "lstm*", "lstm*0", "lstm*65", "lstm*99999999999", "(lstm", "lstm)", "()", "lstm**2", "lstm, gru",
    "(" * 17 + "gru" + ")" * 17, "(" * 16 + "gru" + ")" * 16, "mlp " * 64, "mlp " * 65, "((mlp*8)*8) gru", "mlp" + " " * 300,
    " gru\t* 3( mlp )*02", "LSTM", "gru\n", "*2", "mlp(gru)mlp",
]


@pytest.mark.parametrize("text", PATTERNS)
def test_patterns(text):
    """What the library refuses, with its words; and what it takes."""
    refused = []
    for kind in (exphil.Model, exphil.torch.Policy):
        try:
            kind(SPEC, blocks=text, hidden=1, head_width=1)
            refused.append("")
        except ValueError as wrong:
            refused.append(str(wrong))
    assert refused[1] in refused[0] and bool(refused[0]) == bool(refused[1]), refused


def test_checksums():
    """XXH64 of its specification's own examples and of every length around its 32-byte steps, by the library's files."""
    assert xxh64(b"") == 0xEF46DB3751D8E999 and xxh64(b"abc") == 0x44BC2CF5AD770999
    for length in range(1, 70):
        name = "a" * min(length, 31)
        ids = (exphil.IdSpec("b" * (length - 31), 2),) if 31 < length <= 62 else IDS
        spec = exphil.Spec(name, "one", 1, BARE.heads, ids)
        assert exphil.torch.Policy(spec, blocks="mlp", hidden=1, head_width=1).config.layout_hash == exphil.Model(
            spec, blocks="mlp", hidden=1, head_width=1).spec.layout_hash


def test_the_folder_alone(small, tmp_path):
    """Copied under another name it runs with torch alone, without the library."""
    source = os.path.dirname(exphil.torch.__file__)
    shutil.copytree(source, tmp_path / "policies", ignore=shutil.ignore_patterns("__pycache__"))
    program = (
        "import sys, policies; policy = policies.load(sys.argv[1]); policy.save(sys.argv[2]);"
        "print([name for name in sys.modules if name.split('.')[0] in ('exphil', 'cffi')])")
    done = subprocess.run(
        [sys.executable, "-c", program, small, tmp_path / "out"], cwd=tmp_path, capture_output=True, text=True,
        env=dict(os.environ, PYTHONPATH=str(tmp_path)))
    assert done.stdout == "[]\n", done.stderr
    assert (tmp_path / "out").read_bytes() == small.read_bytes()
