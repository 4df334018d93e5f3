"""A policy as this library's file has it: configuration and tensors (doc/file-format.md, doc/model.md)."""
from __future__ import annotations

import json
from typing import Any, Dict, Tuple

import numpy as np

from .. import melee
from ..spec import Spec
from .arrays import Floats

_KINDS = ("bernoulli", "categorical")


class Policy:
    """What the file will say. Members of the configuration that are not given have the library's defaults."""

    def __init__(self, layout: str, codec: str) -> None:
        self.layout, self.codec = layout, codec
        self.spec: Spec = melee.spec(layout, codec)
        self.tensors: Dict[str, Floats] = {}
        self.config: Dict[str, Any] = {}
        self.told: Dict[str, Any] = {}  # for the summary and the notes

    def put(self, name: str, tensor: Floats) -> None:
        """A tensor, under the name that it has here."""
        assert name not in self.tensors, name
        self.tensors[name] = np.ascontiguousarray(tensor, dtype=np.float32)

    def linear(self, name: str, layer: Tuple[Floats, Floats]) -> None:
        """weight and bias of a layer."""
        self.put(name + ".weight", layer[0])
        self.put(name + ".bias", layer[1])

    def members(self) -> Dict[str, Any]:
        """The object exphil.model."""
        spec, hidden = self.spec, self.config["hidden"]
        made: Dict[str, Any] = {
            "layout": self.layout,
            "codec": self.codec,
            "layout_hash": f"{spec.layout_hash:016x}",
            "float_count": spec.float_count,
            "ids": [],
            "heads": [
                {"name": head.name, "kind": _KINDS[int(head.kind)], "count": head.count, "neutral": head.neutral}
                for head in spec.heads
            ],
            "blocks": "",
            "seed": "0" * 16,
            "hidden": hidden,
            "head_width": 128,
            "mamba_states": 16,
            "mamba_expand": 2,
            "mamba_taps": 4,
            "mamba_rank": max(hidden // 16, 1),
            "attention_heads": 4,
            "attention_dim": 64,
            "attention_window_frames": 60,
            "ffn_expand": 2,
            "window_frames": 60,
            "delay_frames": 0,
            "no_previous_action": 0,
            "mode": "carry",
            "head_order": "independent",
            "type": "F32",
        }
        made.update(self.config)
        return made

    def metadata(self, notes: Dict[str, Any]) -> Dict[str, str]:
        """Texts of the file's header."""
        return {
            "exphil.format": "1",
            "exphil.model": json.dumps(self.members(), separators=(",", ":")),
            "exphil.notes": json.dumps({"convert": notes}, separators=(",", ":"), sort_keys=True),
        }

    def parameters(self) -> int:
        """Numbers in all tensors."""
        return sum(tensor.size for tensor in self.tensors.values())
