"""ExPhil's policies (Elixir, Axon) as policies of this library: mlp, lstm and gru in their fused layout, mamba.

What they compute, and how Axon names their parameters, is in doc/convert.md."""
from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np

from .arrays import Floats
from .policy import Policy
from .refusal import Refused
from .weights import Settings, Weights

LAYOUT, CODEC = "exphil288", "exphil81-floor"
_FLOATS = 288
_HEADS = (("buttons", 8, 64), ("main_x", 17, 64), ("main_y", 17, 64), ("c_x", 17, 64), ("c_y", 17, 64), ("shoulder", 5, 32))
_UNITS = 64
_NORM_EPSILON = 1e-6  # of the LayerNorms of lstm and gru; the others have 1e-5
# What other backbones would need here.
_NEEDS = {
    "sliding_window": "a block of windowed attention with positions, no output projection and post-norm",
    "attention": "a block of windowed attention with positions, no output projection and post-norm",
    "mamba_ssd": "a block for its chunked scan",
    "mamba_2": "a block for its chunked scan",
    "gated_ssm": "a block for its gated average",
    "jamba": "blocks for gated averages and attention with normalised queries and keys",
}


def config_settings(config: Any, what: str) -> Settings:
    """The configuration of a policy: atoms and texts alike."""
    if isinstance(config, dict):
        config = {
            key: value.decode("utf-8", "replace") if isinstance(value, bytes) else value for key, value in config.items()
        }
    return Settings(config, what, "config")


def _check_row(settings: Settings) -> None:
    """The policy must have seen rows of exphil288 and answered with heads of exphil81-floor."""
    need = "a layout for the channel of its previous controller; exphil288 has zeros there"
    settings.demand("use_prev_action", False, need)
    settings.demand("queue_depth", 1, "a layout with its queue of actions", 1)
    settings.demand("with_delay_id", False, "a layout with its number of the delay", False)
    settings.demand("axis_buckets", 16, "a codec with so many classes of an axis; exphil81-floor has 17")
    settings.demand("shoulder_buckets", 4, "a codec with so many classes of the trigger; exphil81-floor has 5")
    width = settings.get("embed_size", int)
    if width not in (_FLOATS - 1, _FLOATS):
        raise Refused(f"{settings.what}: config.embed_size is {width}: needs a layout of {width} inputs; exphil288 has {_FLOATS}")


def _input(weights: Weights, name: str, hidden: int) -> Tuple[Floats, Floats]:
    """A first layer. Rows of 287 inputs are those of 288 without the zero at the end."""
    rows = weights.sides(f"{name}.kernel", 2)[0]
    if rows not in (_FLOATS - 1, _FLOATS):
        raise Refused(f"{weights.what}: {name}.kernel takes {rows} inputs: needs a layout of as many; exphil288 has {_FLOATS}")
    weight, bias = weights.linear(name, rows, hidden)
    return weights.padded(weight, hidden, _FLOATS), bias


def _identity(policy: Policy) -> None:
    """The row as it is, where the network has no first layer."""
    policy.linear("input", (np.eye(_FLOATS, dtype=np.float32), np.zeros(_FLOATS, np.float32)))


def _norm(policy: Policy, weights: Weights, to: str, name: str, width: int) -> None:
    policy.put(to + ".weight", weights.take(f"{name}.gamma", width))
    policy.put(to + ".bias", weights.take(f"{name}.beta", width))


def _mlp(policy: Policy, weights: Weights) -> int:
    """n x [dense, (LayerNorm), ReLU]. Layers of different widths are filled up with zeros to the widest, which ReLU keeps."""
    sizes: List[int] = []
    while f"backbone_dense_{len(sizes)}.kernel" in weights:
        sizes.append(weights.sides(f"backbone_dense_{len(sizes)}.kernel", 2)[1])
    if not sizes:
        raise Refused(f"{weights.what}: backbone mlp without backbone_dense_0")
    if any(name.startswith("backbone_proj_") for name in weights.tensors):
        raise Refused(f"{weights.what}: a residual mlp: needs a dense block with a skip")
    hidden, normed = max(sizes), "backbone_ln_0.gamma" in weights
    if normed and len(set(sizes)) > 1:
        raise Refused(f"{weights.what}: layers of {min(sizes)} to {hidden} with LayerNorm: needs dense blocks of different widths")
    words: List[str] = []
    for i, size in enumerate(sizes):
        name = f"backbone_dense_{i}"
        if i == 0:
            weight, bias = _input(weights, name, size)
            policy.linear("input", (weights.padded(weight, hidden, _FLOATS), weights.padded(bias, hidden)))
        else:
            weight, bias = weights.linear(name, sizes[i - 1], size)
            policy.linear(f"blocks.{len(words)}", (weights.padded(weight, hidden, hidden), weights.padded(bias, hidden)))
            words.append("dense")
        if normed:
            _norm(policy, weights, f"blocks.{len(words)}.norm", f"backbone_ln_{i}", hidden)
            words.append("norm")
        words.append("relu")
    policy.config.update(blocks=" ".join(words), hidden=hidden)
    policy.told["assumed"] = ["activation relu: the file does not say"]
    return sizes[-1]


def _recurrent(policy: Policy, weights: Weights, cell: str) -> int:
    """LayerNorm of the row, then layers of [lstm or gru, LayerNorm], in the layout of the fused kernels."""
    gates = 4 if cell == "lstm" else 3
    if f"{cell}_1.bias" in weights or any(name.startswith(f"{cell}_1.") for name in weights.tensors):
        raise Refused(f"{weights.what}: {cell} in Axon's own layout, whose first state is drawn at random: needs the fused"
                      f" layout ({cell}_1_input_proj, {cell}_1_fused_scan)")  # fmt: skip
    recurrent = f"{cell}_1_fused_scan.{cell}_1_recurrent_kernel"
    hidden = weights.sides(recurrent, 2)[0]
    if hidden != _FLOATS:
        policy.config["input_width"] = _FLOATS
    _identity(policy)
    _norm(policy, weights, "blocks.0.norm", "input_ln", _FLOATS)
    words, layer, inputs = ["norm"], 1, _FLOATS
    while f"{cell}_{layer}_input_proj.kernel" in weights:
        name, to = f"{cell}_{layer}", f"blocks.{len(words)}"
        weight, bias = weights.linear(f"{name}_input_proj", inputs, gates * hidden)
        policy.put(to + ".weight_ih", weight)
        policy.put(to + ".bias_ih", bias)
        policy.put(to + ".weight_hh", weights.take(f"{name}_fused_scan.{name}_recurrent_kernel", hidden, gates * hidden).T)
        policy.put(to + ".bias_hh", np.zeros(gates * hidden, np.float32))
        _norm(policy, weights, f"blocks.{len(words) + 1}.norm", f"{name}_ln", hidden)
        words += [f"{cell}_only", "norm"]
        layer, inputs = layer + 1, hidden
    policy.config.update(blocks=" ".join(words), hidden=hidden, norm_epsilon=_NORM_EPSILON)
    return hidden


def _mamba(policy: Policy, weights: Weights) -> int:
    """ExPhil's variant of Mamba. Its scan has two forms, of which mamba_exphil is the one of the paper and the CUDA kernel."""
    first = "mamba_block_1"
    hidden, doubled = weights.sides(f"{first}_in_proj.kernel", 2)
    taps = weights.sides(f"{first}_conv_dw_conv.kernel", 3)[0]
    states = weights.sides(f"{first}_ssm_bc_proj.kernel", 2)[1] // 2
    inner, rank = doubled // 2, weights.sides(f"{first}_ssm_dt_rank.kernel", 2)[1]
    if doubled % 2 or inner % hidden or not 1 <= inner // hidden <= 8:
        raise Refused(f"{weights.what}: an inner width of {inner} for {hidden}: needs a whole multiple")
    if "input_projection.kernel" in weights:
        policy.linear("input", _input(weights, "input_projection", hidden))
    elif hidden == _FLOATS:
        _identity(policy)
    else:
        raise Refused(f"{weights.what}: there is no input_projection.kernel")
    layers = 0
    while f"mamba_block_{layers + 1}_in_proj.kernel" in weights:
        _mamba_block(policy, weights, layers, (hidden, inner, taps, states, rank))
        layers += 1
    policy.config.update(blocks=f"mamba_exphil*{layers}", hidden=hidden, mamba_states=states, mamba_expand=inner // hidden,
                         mamba_taps=taps, mamba_rank=rank)  # fmt: skip
    policy.told["assumed"] = ["scan with each channel's own step, as ExPhil's CUDA kernel; its CPU path takes their mean"]
    return hidden


def _mamba_block(policy: Policy, weights: Weights, index: int, sizes: Tuple[int, int, int, int, int]) -> None:
    hidden, inner, taps, states, rank = sizes
    name, to = f"mamba_block_{index + 1}", f"blocks.{index}"
    _norm(policy, weights, to + ".norm", f"{name}_norm", hidden)
    policy.linear(to + ".in_proj", weights.linear(f"{name}_in_proj", hidden, 2 * inner))
    policy.put(to + ".conv.weight", weights.take(f"{name}_conv_dw_conv.kernel", taps, 1, inner)[:, 0, :].T)
    policy.put(to + ".conv.bias", weights.take(f"{name}_conv_dw_conv.bias", inner))
    step, step_bias = weights.linear(f"{name}_ssm_dt_rank", inner, rank)
    both, both_bias = weights.linear(f"{name}_ssm_bc_proj", inner, 2 * states)
    policy.linear(to + ".x_proj", (np.concatenate([step, both]), np.concatenate([step_bias, both_bias])))
    policy.linear(to + ".dt_proj", weights.linear(f"{name}_ssm_dt_proj", rank, inner))
    policy.linear(to + ".out_proj", weights.linear(f"{name}_out_proj", inner, hidden))


def _heads(policy: Policy, weights: Weights, width: int) -> None:
    """Six independent heads: dense, ReLU, dense. The trigger's 32 units are filled up with zeros."""
    hidden = policy.config["hidden"]
    for name, count, units in _HEADS:
        weight, bias = weights.linear(f"{name}_hidden", width, units)
        policy.linear(f"heads.{name}.0", (weights.padded(weight, _UNITS, hidden), weights.padded(bias, _UNITS)))
        weight, bias = weights.linear(f"{name}_logits", units, count)
        policy.linear(f"heads.{name}.1", (weights.padded(weight, count, _UNITS), bias))
    policy.config.update(head_layers=1, head_units=_UNITS, head_activation="relu", no_head_trunk=1, no_final_norm=1)


_BACKBONES: Dict[str, Any] = {
    "mlp": _mlp,
    "lstm": lambda policy, weights: _recurrent(policy, weights, "lstm"),
    "gru": lambda policy, weights: _recurrent(policy, weights, "gru"),
    "mamba": _mamba,
}


def convert(tensors: Dict[str, Any], settings: Settings, mode: str) -> Policy:
    """The policy that these parameters (by dotted paths) are with this configuration. mode: "window" as ExPhil trains and plays,
    "carry" with the state carried on, or "" for the usual one."""
    _check_row(settings)
    backbone = settings.get("backbone", str)
    if backbone not in _BACKBONES:
        raise Refused(f"{settings.what}: backbone {backbone[:60]}: needs {_NEEDS.get(backbone, 'a block of that kind')}")
    policy, weights = Policy(LAYOUT, CODEC), Weights(tensors, settings.what)
    width = _BACKBONES[backbone](policy, weights)
    _heads(policy, weights, width)
    weights.done()
    temporal = backbone != "mlp"
    if mode == "window" and not temporal:
        raise Refused(f"{settings.what}: an mlp sees one frame: it has no window")
    policy.config.update(no_previous_action=1, mode=mode or ("window" if temporal else "carry"))
    if temporal:
        frames = settings.get("window_size", int)
        if not 1 <= frames <= 4096:
            raise Refused(f"{settings.what}: config.window_size is {frames}: needs a window of 1 to 4096 frames")
        policy.config["window_frames"] = frames
    policy.told.update(source="exphil", backbone=backbone)
    return policy
