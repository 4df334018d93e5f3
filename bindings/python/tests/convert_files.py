"""Files of other systems, made from nothing: writers of Erlang's terms, of Nx.serialize, of ExPhil's policies in every form, and of
slippi-ai's checkpoints, with random weights; and what can go wrong with them."""
import io
import json
import os
import pickle
import struct
import sys
import types
import zlib

import numpy as np

# ---- Erlang's external term format ------------------------------------------------------------------------


class Atom(str):
    """To be written as an atom; other texts are binaries, as in Elixir."""


def term_body(value):
    """A term without the version in front of it."""
    if value is True or value is False or value is None:
        value = Atom({True: "true", False: "false", None: "nil"}[value])
    if isinstance(value, Atom):
        return b"w" + bytes([len(value)]) + value.encode()
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bytes, bytearray)):
        return b"m" + struct.pack(">I", len(value)) + bytes(value)
    if isinstance(value, int):
        if 0 <= value < 256:
            return b"a" + bytes([value])
        if -(2**31) <= value < 2**31:
            return b"b" + struct.pack(">i", value)
        raw = abs(value).to_bytes((abs(value).bit_length() + 7) // 8, "little")
        return b"n" + bytes([len(raw), value < 0]) + raw
    if isinstance(value, float):
        return b"F" + struct.pack(">d", value)
    if isinstance(value, tuple):
        head = b"h" + bytes([len(value)]) if len(value) < 256 else b"i" + struct.pack(">I", len(value))
        return head + b"".join(map(term_body, value))
    if isinstance(value, list):
        if not value:
            return b"j"
        return b"l" + struct.pack(">I", len(value)) + b"".join(map(term_body, value)) + b"j"
    assert isinstance(value, dict), value
    return b"t" + struct.pack(">I", len(value)) + b"".join(term_body(k) + term_body(v) for k, v in value.items())


def term(value, compressed=False):
    """As :erlang.term_to_binary writes it."""
    body = term_body(value)
    if compressed:
        return b"\x83P" + struct.pack(">I", len(body)) + zlib.compress(body)
    return b"\x83" + body


def nx_kind(array):
    """{:f, 32}"""
    return (Atom({"f": "f", "i": "s", "u": "u"}[array.dtype.kind]), 8 * array.dtype.itemsize)


def nx_tensor(array):
    """A tensor in Nx.BinaryBackend, as a struct."""
    backend = {Atom("__struct__"): Atom("Elixir.Nx.BinaryBackend"), Atom("state"): array.tobytes()}
    return {Atom("__struct__"): Atom("Elixir.Nx.Tensor"), Atom("data"): backend, Atom("names"): [None] * array.ndim,
            Atom("shape"): array.shape, Atom("type"): nx_kind(array), Atom("vectorized_axes"): []}  # fmt: skip


def nx_serialize(tree, big=False):
    """Nx.serialize of maps of tensors."""
    buffers = []

    def write(node):
        if isinstance(node, dict):
            return (Atom("Elixir.Nx.Container.Map"), [(key, write(value)) for key, value in node.items()], Atom("ok"))
        raw = node.astype(node.dtype.newbyteorder(">" if big else "<")).tobytes()
        place = sum(map(len, buffers))
        buffers.append(raw)
        return (Atom("t"), node.shape, nx_kind(node), [None] * node.ndim, [], place, len(raw))

    data = term(write(tree))
    return b"nx\x01" + bytes([big]) + struct.pack(">Q", len(data)) + data + b"".join(buffers)


# ---- ExPhil -----------------------------------------------------------------------------------------------


def nested(flat):
    """{"a.b": x} as {"a": {"b": x}}."""
    tree = {}
    for path, value in flat.items():
        *above, last = path.split(".")
        node = tree
        for part in above:
            node = node.setdefault(part, {})
        node[last] = value
    return tree


def exphil_config(backbone, **settings):
    """What ExPhil's export_policy writes beside the weights."""
    made = dict(axis_buckets=16, shoulder_buckets=4, embed_size=288, hidden_sizes=[512, 512], dropout=0.1,
                temporal=backbone != "mlp", backbone=backbone, window_size=60, num_heads=4, head_dim=64, hidden_size=32,
                num_layers=2, state_size=16, expand_factor=2, conv_size=4, use_prev_action=False, queue_depth=1,
                with_delay_id=False)  # fmt: skip
    made.update(settings)
    return made


class Draw:
    """Random weights of a size that keeps a network alive."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.flat = {}

    def dense(self, name, inputs, outputs, spread=1.0):
        self.flat[name + ".kernel"] = (spread * self.rng.standard_normal((inputs, outputs)) / inputs**0.5).astype(np.float32)
        self.flat[name + ".bias"] = (0.1 * self.rng.standard_normal(outputs)).astype(np.float32)

    def norm(self, name, width):
        self.flat[name + ".gamma"] = (1 + 0.2 * self.rng.standard_normal(width)).astype(np.float32)
        self.flat[name + ".beta"] = (0.1 * self.rng.standard_normal(width)).astype(np.float32)

    def plain(self, name, *shape):
        self.flat[name] = (self.rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)

    def heads(self, hidden):
        for name, count, units in (("buttons", 8, 64), ("main_x", 17, 64), ("main_y", 17, 64), ("c_x", 17, 64), ("c_y", 17, 64),
                                   ("shoulder", 5, 32)):  # fmt: skip
            self.dense(name + "_hidden", hidden, units)
            self.dense(name + "_logits", units, count)
        return self.flat


def exphil_weights(backbone, seed=1, hidden=32, layers=2, sizes=(48, 40), normed=False, states=8, taps=4):
    """Parameters by dotted paths, as Axon names them."""
    draw = Draw(seed)
    if backbone == "mlp":
        inputs = 288
        for i, size in enumerate(sizes):
            draw.dense(f"backbone_dense_{i}", inputs, size)
            if normed:
                draw.norm(f"backbone_ln_{i}", size)
            inputs = size
        return draw.heads(sizes[-1])
    if backbone in ("lstm", "gru"):
        gates = 4 if backbone == "lstm" else 3
        draw.norm("input_ln", 288)
        for layer in range(1, layers + 1):
            name = f"{backbone}_{layer}"
            draw.dense(name + "_input_proj", 288 if layer == 1 else hidden, gates * hidden)
            draw.plain(f"{name}_fused_scan.{name}_recurrent_kernel", hidden, gates * hidden)
            draw.norm(name + "_ln", hidden)
        return draw.heads(hidden)
    inner, rank = 2 * hidden, max(hidden // 16, 1)
    draw.dense("input_projection", 288, hidden)
    for layer in range(1, layers + 1):
        name = f"mamba_block_{layer}"
        draw.norm(name + "_norm", hidden)
        draw.dense(name + "_in_proj", hidden, 2 * inner)
        draw.plain(name + "_conv_dw_conv.kernel", taps, 1, inner)
        draw.plain(name + "_conv_dw_conv.bias", inner)
        draw.dense(name + "_ssm_bc_proj", inner, 2 * states)
        draw.dense(name + "_ssm_dt_rank", inner, rank, 4.0)
        draw.dense(name + "_ssm_dt_proj", rank, inner)
        # Steps below, within and above the clamp of 0.001 to 0.1.
        draw.flat[name + "_ssm_dt_proj.bias"] = draw.rng.uniform(-8, 0, inner).astype(np.float32)
        draw.dense(name + "_out_proj", inner, hidden)
    return draw.heads(hidden)


def exphil_term(flat, config, compressed=False, state=True):
    """The older _policy.bin: a term of parameters and configuration."""

    def tensors(node):
        return nx_tensor(node) if isinstance(node, np.ndarray) else {key: tensors(value) for key, value in node.items()}

    params = tensors(nested(flat))
    if state:
        params = {Atom("__struct__"): Atom("Elixir.Axon.ModelState"), Atom("data"): params, Atom("parameters"): {},
                  Atom("state"): {}, Atom("frozen_parameters"): {}}  # fmt: skip
    return term({Atom("params"): params, Atom("config"): config_term(config)}, compressed)


def config_term(config):
    """Keys are atoms, and so is the backbone."""
    return {Atom(key): Atom(value) if key == "backbone" and value else value for key, value in config.items()}


def exphil_manifest(flat, config, compressed=False, big=False):
    """The newer _policy.bin: flag, metadata, what Nx.serialize wrote."""
    told = term({Atom("config"): config_term(config), "__edifice_spec__": {"arch": "exphil_policy", "build_opts": []}})
    raw = nx_serialize(nested(flat), big)
    return bytes([compressed]) + struct.pack(">I", len(told)) + told + (zlib.compress(raw) if compressed else raw)


def npz(flat, compressed=False):
    """numpy.savez of dotted paths."""
    made = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(made, **flat)
    return made.getvalue()


def safetensors(flat, metadata=None):
    """A safetensors file with dotted keys."""
    header, parts, at = {}, [], 0
    if metadata:
        header["__metadata__"] = metadata
    for name, array in flat.items():
        raw = array.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def exphil_folder(folder, flat, config):
    """What scripts/export_numpy.exs writes."""
    os.mkdir(folder)
    layers = []
    for name, array in flat.items():
        file = name.replace(".", "_") + ".bin"
        with open(os.path.join(folder, file), "wb") as out:
            out.write(array.astype("<f4").tobytes())
        layers.append({"name": name, "shape": list(array.shape), "dtype": "{:f, 32}", "file": file})
    with open(os.path.join(folder, "metadata.json"), "w", encoding="utf-8") as out:
        json.dump({"config": config, "layers": layers}, out)


# ---- slippi-ai --------------------------------------------------------------------------------------------


def _fake_class(module, name):
    """A class that a pickle will name, as an enumeration of slippi-ai's does: called with its value."""
    made = type(name, (), {"__init__": lambda self, value: setattr(self, "value", value)})
    made.__module__ = module
    made.__reduce__ = lambda self: (made, (self.value,))
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
    setattr(sys.modules[module], name, made)
    return made


def slippi_config(hidden=32, layers=2, expand=2, depth=2, residual=16, delay=2, nana=False, spacing=(16, 4), names=5, cell="lstm"):
    """What decides the network in a checkpoint's config, and some of what does not."""
    items = _fake_class("slippi_ai.jax.embed", "ItemsType")("skip")
    network = {"activation": "gelu", "ffw_multiplier": expand, "gelu_approximate": True, "hidden_size": hidden, "layer_norm": "nnx",
               "num_layers": layers, "recurrent_layer": cell}  # fmt: skip
    player = {"legacy_jumps_left": False, "shield_scale": 0.01, "speed_scale": 0.5, "with_controller": False, "with_nana": nana,
              "with_speeds": False, "xy_scale": 0.05}  # fmt: skip
    return {
        "controller_head": {
            "autoregressive": {"component_depth": depth, "remat": False, "residual_size": residual},
            "independent": {},
            "name": "autoregressive",
        },
        "embed": {
            "controller": {"custom_v1": {}, "default": {"axis_spacing": spacing[0], "shoulder_spacing": spacing[1]},
                           "type": "default"},
            "items": {"type": items}, "player": player, "with_fod": True, "with_randall": True,
        },
        "learner": {"learning_rate": 1e-4, "bf16": False},
        "max_names": names,
        "network": {"embed": {"enhanced": {}, "name": "simple", "simple": {}}, "name": "tx_like", "tx_like": network},
        "observation": {"animation": {"mask": True}, "frame_skip": {"skip": 0}},
        "platform": "jax",
        "policy": {"delay": delay},
        "version": 2,
    }  # fmt: skip


def slippi_counts(config):
    """Values of each component: eight buttons, four axes, a trigger."""
    default = config["embed"]["controller"]["default"]
    return [1] * 8 + [default["axis_spacing"] + 1] * 4 + [default["shoulder_spacing"] + 1]


def slippi_inputs(config):
    """Inputs of a frame, without controller and name."""
    embed = config["embed"]
    jumps = 6 if embed["player"]["legacy_jumps_left"] else 7
    player = 4 + 399 + 33 + 1 + jumps + 2
    nana = player + 1 if embed["player"]["with_nana"] else 0
    return 2 * (player + nana) + 64 + 2 * embed["with_randall"] + 2 * embed["with_fod"]


def slippi_cell(draw, cell, name, hidden):
    """Gates of Flax's LSTM have names of their own; those of its GRU, r, z and n, lie side by side."""
    if cell == "gru":
        draw.dense(f"{name}.dense_i", hidden, 3 * hidden)
        draw.plain(f"{name}.dense_h.kernel", hidden, 3 * hidden)
        return
    for gate in ("i", "f", "g", "o"):
        draw.dense(f"{name}.h{gate}", hidden, hidden)
        draw.plain(f"{name}.{'if_' if gate == 'f' else 'i' + gate}.kernel", hidden, hidden)


def slippi_weights(config, seed=3):
    """state.policy: dictionaries as Flax names them."""
    draw = Draw(seed)
    tx, head = config["network"]["tx_like"], config["controller_head"]["autoregressive"]
    hidden, inner = tx["hidden_size"], tx["hidden_size"] * tx["ffw_multiplier"]
    width, depth = head["residual_size"], head["component_depth"]
    counts, core = slippi_counts(config), "network._network._layers"
    draw.dense(f"{core}.0._module", slippi_inputs(config) + sum(counts) + config["max_names"], hidden, 6.0)
    for layer in range(tx["num_layers"]):
        slippi_cell(draw, tx["recurrent_layer"], f"{core}.{2 * layer + 1}._net._core", hidden)
        at = f"{core}.{2 * layer + 2}._module"
        draw.norm(f"{at}.layernorm", hidden)
        draw.flat[f"{at}.layernorm.scale"] = draw.flat.pop(f"{at}.layernorm.gamma")
        draw.flat[f"{at}.layernorm.bias"] = draw.flat.pop(f"{at}.layernorm.beta")
        draw.dense(f"{at}.linear1", hidden, inner)
        draw.dense(f"{at}.linear2", inner, hidden)
    draw.dense("_controller_head.to_residual", hidden, width)
    for i, count in enumerate(counts):
        at = f"_controller_head.res_blocks.{i}"
        for j in range(depth + 1):
            draw.dense(f"{at}._encoder.layers.{2 * j}", width + count if j == 0 else width, count if j == depth else width)
        draw.dense(f"{at}.decoder", count, width)
    return draw.flat


def slippi_checkpoint(config, flat, protocol=4, names=None):
    """The pickle. Lists of Flax are dictionaries with numbers as keys."""

    def numbered(node):
        if not isinstance(node, dict):
            return node
        return {int(key) if key.isdigit() else key: numbered(value) for key, value in node.items()}

    character = _fake_class("melee.enums", "Character")(16)
    state = {"policy": numbered(nested(flat)), "policy_optimizer": {"step": np.zeros((), np.uint32), "count": np.int64(7)}}
    return pickle.dumps({"state": state, "step": 12, "config": config, "name_map": names or {"Somebody": 0, "Another": 3},
                         "counters": {"best_eval_loss": np.float32(1.5), "total_frames": 7, "train_time": float("inf")},
                         "dataset_metrics": {"characters": {character: 1}}}, protocol=protocol)  # fmt: skip
