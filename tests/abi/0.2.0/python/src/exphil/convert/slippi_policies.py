"""slippi-ai's JAX policies as policies of this library: tx_like networks with LSTM or GRU, the autoregressive controller head.

What they compute, and what their checkpoints are called, is in doc/convert.md."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from .arrays import Floats
from .pickles import Object, settled
from .policy import Policy
from .refusal import MOST_DEPTH, MOST_TENSORS, Damaged, Refused, shown, tensor_name
from .weights import Settings, Weights

_NORM_EPSILON = 1e-6
_CODECS = {(16, 4): "slippi", (32, 10): "slippi-fine"}
_PLAYER, _NANA, _NAMES_MOST = 446, 447, 256


def tensors_of(tree: Any, what: str) -> Dict[str, Any]:
    """Arrays of a dictionary of dictionaries, by dotted paths. A pickle can put one dictionary into many places, or into itself, so
    those that are gone through are counted, too."""
    found: Dict[str, Any] = {}
    seen = 0

    def add(node: Any, path: List[str]) -> None:
        nonlocal seen
        seen += 1
        if seen > 4 * MOST_TENSORS or len(path) > MOST_DEPTH:
            raise Damaged(f"{what}: its weights are more than {MOST_TENSORS}, or nested deeper than {MOST_DEPTH}")
        if isinstance(node, dict):
            for key, value in node.items():
                if isinstance(key, bool) or not isinstance(key, (str, int)):
                    raise Damaged(f"{what}: its weights have a key that is no name")
                below = [*path, str(key)]
                tensor_name(".".join(below), what)
                add(value, below)
            return
        name = ".".join(path)
        if len(found) >= MOST_TENSORS or name in found:
            raise Damaged(f"{what}: more than {MOST_TENSORS} weights, or one of them twice")
        found[name] = settled(node)

    add(tree, [])
    return found


def _text_of(value: Any) -> str:
    """The word of an enumeration: what its class would have been called with."""
    if isinstance(value, Object) and isinstance(value.values, tuple) and len(value.values) == 1:
        value = value.values[0]
    return value if isinstance(value, str) and len(value) < 32 else shown(value)


def _layout(settings: Settings) -> Tuple[str, Settings]:
    """The layout that the policy was trained on."""
    embed = settings.below("embed")
    network = settings.below("network")
    if "embed" in network.values:
        network.below("embed").demand("name", "simple", "an input with learned tables of characters and actions and a sum over"
                                      " items")  # fmt: skip
    player = embed.below("player")
    player.demand("xy_scale", 0.05, "a layout with this scale")
    player.demand("shield_scale", 0.01, "a layout with this scale")
    player.demand("with_speeds", False, "a layout with speeds", False)
    player.demand("with_controller", False, "a layout with the opponent's controller", False)
    items = _text_of(embed.below("items").values.get("type"))
    if items != "skip":
        raise Refused(f"{settings.what}: embed.items.type is {items}: needs a layout with 15 items of 254 inputs, more than the"
                      " 4096 inputs that a row may have")  # fmt: skip
    need = "a layout that shows the other player's techs at once"
    if "observation" not in settings.values:
        raise Refused(f"{settings.what}: observation is missing, as in early checkpoints: needs {need}")
    observation = settings.below("observation")
    observation.below("animation").demand("mask", True, need)
    if observation.below("frame_skip").get("skip", int, 0) > 1:
        raise Refused(f"{settings.what}: observation.frame_skip.skip is above 1: needs a layout that holds frames")
    return ("slippi-nana" if player.get("with_nana", bool) else "slippi"), embed


def _codec(embed: Settings) -> str:
    """The codec of its controller."""
    controller = embed.below("controller")
    controller.demand("type", "default", "a codec of merged buttons and a polar stick")
    default = controller.below("default")
    spacing = default.get("axis_spacing", int), default.get("shoulder_spacing", int)
    if spacing not in _CODECS:
        raise Refused(f"{embed.what}: embed.controller.default has {spacing[0]} and {spacing[1]} steps of an axis and of the"
                      " trigger: needs a codec with as many; there are 16 and 4 (slippi), 32 and 10 (slippi-fine)")  # fmt: skip
    return _CODECS[spacing]


def _places(embed: Settings, layout: str) -> List[int]:
    """For each input of its embedding of a frame the column of the layout; other columns get no weight."""
    player = embed.below("player")
    six_jumps = player.get("legacy_jumps_left", bool, False)
    places: List[int] = []

    def character(at: int, size: int) -> int:
        # Six jumps: the seventh column of the layout, where slippi-ai of then had no input, gets no weight.
        places.extend(at + i for i in range(size) if not (six_jumps and i == 443))
        return at + size

    at = 0
    for _ in range(2):
        at = character(at, _PLAYER)
        if layout == "slippi-nana":
            at = character(at, _NANA)
    places.extend(range(at, at + 64))
    if embed.get("with_randall", bool):
        places.extend((at + 64, at + 65))
    if embed.get("with_fod", bool):
        places.extend((at + 66, at + 67))
    return places


class _Names:
    """The player's name, which its network gets as a one-hot: a condition, or one name for good."""

    def __init__(self, settings: Settings, name_map: Any, fixed: Optional[str]) -> None:
        self.count = settings.get("max_names", int)
        if not 1 <= self.count <= _NAMES_MOST:
            raise Refused(f"{settings.what}: max_names is {self.count}: needs a condition as wide; {_NAMES_MOST} at most")
        self.fixed: Optional[int] = None
        self.known = 0
        if isinstance(name_map, dict):
            self.known = len(name_map)
        if fixed is not None:
            code = name_map.get(fixed) if isinstance(name_map, dict) else None
            if type(code) is not int or not 0 <= code < self.count:
                raise Refused(f"{settings.what}: it knows no player of that name")
            self.fixed = code

    def columns(self) -> int:
        return 0 if self.fixed is not None else self.count


def _input(policy: Policy, weights: Weights, names: _Names, places: List[int], hidden: int) -> None:
    """Its encoder sees frame, previous controller, name; here: frame, condition, slots of past actions."""
    floats, logits = policy.spec.float_count, sum(head.count for head in policy.spec.heads)
    frame = len(places)
    kernel = weights.take("network._network._layers.0._module.kernel", frame + logits + names.count, hidden)
    bias = weights.take("network._network._layers.0._module.bias", hidden)
    slots = policy.config["delay_frames"] + 1 - policy.config["no_previous_action"]
    weight = weights.zeros(hidden, floats + names.columns() + slots * logits)
    weight[:, places] = kernel[:frame].T
    first = floats + names.columns()
    weight[:, first : first + logits] = kernel[frame : frame + logits].T
    if names.fixed is None:
        weight[:, floats:first] = kernel[frame + logits :].T
        table = np.concatenate([np.zeros((1, names.count), np.float32), np.eye(names.count, dtype=np.float32)])
        policy.put("conditions.player.weight", table)
        policy.config["conditions"] = [{"name": "player", "values": names.count, "width": names.count, "mask": 0}]
    else:
        bias = (bias.astype(np.float64) + kernel[frame + logits + names.fixed]).astype(np.float32)
    policy.linear("input", (weight, bias))


def _lstm(policy: Policy, weights: Weights, to: str, core: str, hidden: int) -> None:
    gates = "ifgo"
    policy.put(to + ".weight_ih", np.concatenate([weights.take(f"{core}.{_gate(g)}.kernel", hidden, hidden).T for g in gates]))
    policy.put(to + ".weight_hh", np.concatenate([weights.take(f"{core}.h{g}.kernel", hidden, hidden).T for g in gates]))
    policy.put(to + ".bias_ih", np.zeros(4 * hidden, np.float32))
    policy.put(to + ".bias_hh", np.concatenate([weights.take(f"{core}.h{g}.bias", hidden) for g in gates]))


def _gru(policy: Policy, weights: Weights, to: str, core: str, hidden: int) -> None:
    """Flax's cell has its three gates, r, z and n, side by side; r multiplies what h gives of n, which has no bias."""
    kernel, bias = weights.linear(f"{core}.dense_i", hidden, 3 * hidden)
    policy.put(to + ".weight_ih", kernel)
    policy.put(to + ".weight_hh", weights.take(f"{core}.dense_h.kernel", hidden, 3 * hidden).T)
    policy.put(to + ".bias_ih", bias)
    policy.put(to + ".bias_hh", np.zeros(3 * hidden, np.float32))


_CELLS = {"lstm": _lstm, "gru": _gru}


def _gate(letter: str) -> str:
    """Flax's name of the input's part of a gate; if is a word of Python."""
    return "if_" if letter == "f" else "i" + letter


def _network(policy: Policy, weights: Weights, tx: Settings) -> int:
    """Encoder (done), then layers of x + cell(x), x + W2 gelu(W1 LN(x))."""
    hidden: int = tx.get("hidden_size", int)
    cell = tx.choose("recurrent_layer", tuple(_CELLS), "blocks with that recurrent layer")
    layers, expand = tx.get("num_layers", int), tx.get("ffw_multiplier", int)
    if not 1 <= layers <= 32 or not 1 <= hidden <= 8192 or not 1 <= expand <= 16:
        raise Refused(f"{tx.what}: {layers} layers of {hidden}, {expand} times as wide inside: needs 1 to 32, 1 to 8192, 1 to 16")
    for layer in range(layers):
        at = f"network._network._layers.{2 * layer + 1}._net._core"
        _CELLS[cell](policy, weights, f"blocks.{2 * layer}", at, hidden)
        to, name = f"blocks.{2 * layer + 1}", f"network._network._layers.{2 * layer + 2}._module"
        policy.put(to + ".norm.weight", weights.take(f"{name}.layernorm.scale", hidden))
        policy.put(to + ".norm.bias", weights.take(f"{name}.layernorm.bias", hidden))
        policy.linear(to + ".up", weights.linear(f"{name}.linear1", hidden, expand * hidden))
        policy.linear(to + ".down", weights.linear(f"{name}.linear2", expand * hidden, hidden))
    policy.config.update(blocks=f"({cell}_bare ffn_gelu)*{layers}", ffn_expand=expand, norm_epsilon=_NORM_EPSILON,
                         no_final_norm=1)  # fmt: skip
    return hidden


class _Head:
    """The controller head. Its residual r = to_residual(y) grows by decoder(value) after each component; here that growth is
    folded into the first layer of each later component: W (r + sum D e) = W r + sum (W D) e, in double, rounded once."""

    def __init__(self, policy: Policy, weights: Weights, settings: Settings) -> None:
        self.policy, self.weights = policy, weights
        self.width, self.depth = settings.get("residual_size", int), settings.get("component_depth", int)
        if not 0 <= self.depth <= 4 or not 1 <= self.width <= 8192:
            raise Refused(f"{settings.what}: a head of {self.depth} layers of {self.width}: needs 0 to 4 of 1 to 8192")
        most = max(head.count for head in policy.spec.heads)
        # Without hidden layers a component is linear: v = relu(v) - relu(-v), with both halves as units.
        self.units = self.width if self.depth else 2 * most

    def run(self) -> None:
        policy, weights = self.policy, self.weights
        codes: List[Any] = []  # decoders of the components before, [count, width] each
        shift = np.zeros(self.width)
        hidden = policy.config["hidden"]
        policy.linear("heads.trunk", weights.linear("_controller_head.to_residual", hidden, self.width))
        for index, head in enumerate(policy.spec.heads):
            at = f"_controller_head.res_blocks.{index}"
            self.component(head.name, head.count, at, codes, shift)
            decoder = weights.take(f"{at}.decoder.kernel", head.count, self.width)
            codes.append(decoder.astype(np.float64))
            shift = shift + weights.take(f"{at}.decoder.bias", self.width)
        policy.config.update(head_width=self.width, head_layers=max(self.depth, 1), head_units=self.units,
                             head_activation="relu", head_last=1, no_head_past=1, head_order="autoregressive")  # fmt: skip

    def component(self, name: str, count: int, at: str, codes: List[Any], shift: Any) -> None:
        policy, units = self.policy, self.units
        outputs = self.width if self.depth else count
        first, bias = self.layer(at, 0, self.width + count, outputs)
        kernel = first.T.astype(np.float64)  # [width + count, outputs]
        z, last = kernel[: self.width], kernel[self.width :]
        before = np.concatenate([code @ z for code in codes]) if codes else None
        start = bias + shift @ z
        if not self.depth:
            z, last, start = _both(z, units), _both(last, units), _both(start, units)
            before = _both(before, units) if before is not None else None
        policy.linear(f"heads.{name}.0", (_rounded(z.T), _rounded(start)))
        policy.put(f"heads.{name}.last", _rounded(last))
        if before is not None:
            policy.put(f"heads.{name}.before", _rounded(before))
        for layer in range(1, self.depth):
            policy.linear(f"heads.{name}.{layer}", self.layer(at, 2 * layer, self.width, self.width))
        if self.depth:
            policy.linear(f"heads.{name}.{self.depth}", self.layer(at, 2 * self.depth, self.width, count))
        else:
            eye = np.zeros((count, units), np.float32)
            eye[np.arange(count), np.arange(count)] = 1
            eye[np.arange(count), units // 2 + np.arange(count)] = -1
            policy.linear(f"heads.{name}.1", (eye, np.zeros(count, np.float32)))

    def layer(self, at: str, index: int, inputs: int, outputs: int) -> Tuple[Floats, Floats]:
        return self.weights.linear(f"{at}._encoder.layers.{index}", inputs, outputs)


def _rounded(values: Any) -> Floats:
    made: Floats = np.asarray(values).astype(np.float32)
    return made


def _both(values: Any, units: int) -> Any:
    """[v, -v] along the last axis, each filled up to half of the units."""
    made = np.zeros((*values.shape[:-1], units))
    made[..., : values.shape[-1]] = values
    made[..., units // 2 : units // 2 + values.shape[-1]] = -values
    return made


def convert(state: Any, what: str, name: Optional[str]) -> Policy:
    """The policy of a checkpoint {state, config, name_map, ...}. name: the player it is to be for good."""
    if not isinstance(state, dict) or not isinstance(state.get("state"), dict):
        raise Refused(f"{what}: not a checkpoint of slippi-ai: it has no state")
    settings = Settings(state.get("config"), what)
    tree = state["state"].get("policy")
    if isinstance(tree, (list, tuple)) or settings.get("platform", str, "tf") == "tf":
        raise Refused(f"{what}: a checkpoint of slippi-ai's TensorFlow networks: its weights have no names; needs slippi-ai's own"
                      " convert_tf_checkpoint_to_jax.py first, and a block with the exact GELU")  # fmt: skip
    if not isinstance(tree, dict):
        raise Refused(f"{what}: it has no weights of a policy (state.policy)")
    settings.choose("version", (1, 2), "a reader of that version")
    network = settings.below("network")
    network.demand("name", "tx_like", "blocks of that network")
    tx = network.below("tx_like")
    tx.demand("activation", "gelu", "a block with that activation")
    tx.demand("gelu_approximate", True, "a block with the exact GELU", True)
    tx.demand("layer_norm", "nnx", "a block with TensorFlow's LayerNorm", "nnx")
    layout, embed = _layout(settings)
    policy = Policy(layout, _codec(embed))
    _take(policy, settings, tree, tx, embed, _Names(settings, state.get("name_map"), name))
    return policy


def _take(policy: Policy, settings: Settings, tree: Any, tx: Settings, embed: Settings, names: _Names) -> None:
    """All weights, each to its place."""
    weights = Weights(tensors_of(tree, settings.what), settings.what)
    for name in [name for name in weights.tensors if name.startswith("controller_head.")]:
        weights.tensors["_" + name] = weights.tensors.pop(name)  # as earlier versions called it
    delay = settings.below("policy").get("delay", int)
    if not 0 <= delay <= 64:
        raise Refused(f"{settings.what}: policy.delay is {delay}: needs a delay of 0 to 64 frames")
    policy.config.update(hidden=tx.get("hidden_size", int), delay_frames=delay, no_previous_action=int(delay > 0))
    if delay:
        policy.config["neutral_start"] = 1
    hidden = _network(policy, weights, tx)
    _input(policy, weights, names, _places(embed, policy.layout), hidden)
    head = settings.below("controller_head")
    head.demand("name", "autoregressive", "a head whose logits are linear in the network's output")
    _Head(policy, weights, head.below("autoregressive")).run()
    weights.done()
    policy.told.update(source="slippi-ai", delay=delay, players=names.known, player="fixed" if names.fixed is not None else "told")
