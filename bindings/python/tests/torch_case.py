"""What the tests of exphil.torch share: policies of every kind, their weights shaken so that nothing is 0 or 1 any more."""
import math

import numpy as np
import torch

import exphil
import exphil.torch

HEADS = (
    exphil.HeadSpec("buttons", "bernoulli", 3, neutral=2),
    exphil.HeadSpec("stick", "categorical", 5, neutral=3),
    exphil.HeadSpec("trigger", "categorical", 2, neutral=1),
    exphil.HeadSpec("taps", "bernoulli", 2),
)
IDS = (exphil.IdSpec("stage", 5, 3), exphil.IdSpec("item0.type", 7))
SPEC = exphil.Spec("small", "four", 6, HEADS, IDS)
BARE = exphil.Spec("bare", "one", 4, HEADS[1:2])
ONLY_IDS = exphil.Spec("ids", "one", 0, HEADS[:1], IDS)
SIZES = dict(
    hidden=20, head_width=18, mamba_states=5, mamba_taps=3, mamba_rank=4, attention_heads=3, attention_dim=6,
    attention_window_frames=5, ffn_expand=3, window_frames=7)
TOLD = dict(
    conditions=(exphil.Condition("player", 3, 4, 0.1), exphil.Condition("rank", 2, 0, 0.5)), delays=(0, 2, 5))
ALL = "(mamba attention)*2 gru ffn lstm mlp"
OTHERS = "lstm_bare mamba_exphil gru_bare ffn_gelu norm gru_only relu dense lstm_only mamba_exphil norm"  # the words after 0.1's


def shake(policy, seed=1):
    """Adds something to every weight, small enough for all sums to stay as those of a trained policy; past actions are repeated
    less than in the beginning."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        if policy.heads.past is not None:
            policy.heads.past.weight *= 0.25
        for parameter in policy.parameters():
            most = 0.7 / math.sqrt(parameter.shape[1]) if parameter.dim() == 2 else 0.3
            parameter += most * (2 * torch.rand(parameter.shape, generator=draw, dtype=parameter.dtype) - 1)
    return policy


def make(spec=SPEC, **words):
    """A shaken policy in torch."""
    return shake(exphil.torch.Policy(spec, **dict(SIZES, **words)))


def library(policy, folder):
    """The same policy in the library, by way of a file."""
    path = folder / "given.safetensors"
    policy.save(path)
    return exphil.Model.load(path)


def draw_rows(spec, frames, streams, seed=0):
    """floats [T,B,F], ids [T,B,K] of some game."""
    draw = np.random.default_rng(seed)
    floats = draw.standard_normal((frames, streams, spec.float_count)).astype(np.float32)
    ids = [draw.integers(0, one.entries, (frames, streams, 1), dtype=np.int32) for one in spec.ids]
    return floats, np.concatenate(ids, 2) if ids else np.zeros((frames, streams, 0), np.int32)


def draw_actions(spec, shape, seed=0):
    """Values of all heads [*shape,A]."""
    draw = np.random.default_rng(seed)
    most = [1 << one.count if one.kind == exphil.HeadKind.BERNOULLI else one.count for one in spec.heads]
    return np.stack([draw.integers(0, m, shape, dtype=np.int32) for m in most], -1)


def apart(found, wanted):
    """The largest difference, relative to the largest number."""
    wanted = np.asarray(wanted, np.float64)
    return float(np.abs(np.asarray(found, np.float64) - wanted).max() / np.abs(wanted).max())
