"""exphil.torch: policies of libexphil as PyTorch modules, what doc/model.md says in code that torch can train, compile and export.

    import exphil.torch

    policy = exphil.torch.load("fox.safetensors")           # a torch.nn.Module
    out = policy(floats, ids, past)                          # chunks [B,T,...]: logits, value, carried state
    policy.loss(out.logits, actions).objective.backward()
    policy.save("tuned.safetensors")                         # exphil.Model.load reads it

It needs torch (1.13 or later) and nothing else; no call enters the library. This folder runs on its own, under another name and
without libexphil, where it is copied.
"""
from __future__ import annotations

from .blocks import BLOCKS
from .config import Condition, Config, Head, Id
from .errors import ConfigError, FormatError
from .heads import HeadPlay
from .losses import HeadLoss, Loss
from .noise import session_noise
from .policy import Output, Player, Policy, Step, detached, tensors
from .weights import load, save

__all__ = [
    "BLOCKS",
    "Condition",
    "Config",
    "ConfigError",
    "FormatError",
    "Head",
    "HeadLoss",
    "HeadPlay",
    "Id",
    "Loss",
    "Output",
    "Player",
    "Policy",
    "Step",
    "detached",
    "load",
    "save",
    "session_noise",
    "tensors",
]
