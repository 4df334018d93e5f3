"""The losses of doc/model.md, head by head."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from .config import Head
from .heads import bits_of


@dataclass(frozen=True)
class HeadLoss:
    """Loss of one head, as exphil.HeadLoss: weight 0 stands for 1, a negative one leaves the head untrained; smoothing is for
    classes; focal_gamma scales by (1 - p) ** gamma; positive_weight has one number for each bit."""

    weight: float = 0.0
    smoothing: float = 0.0
    focal_gamma: float = 0.0
    positive_weight: Optional[Sequence[float]] = None


class Loss(NamedTuple):
    """objective: what is minimised; heads [A] and nll [A]: loss of each head, and the plain one, over the rows that count."""

    objective: Tensor
    heads: Tensor
    nll: Tensor


def _focal(p: Tensor, loss: Tensor, gamma: float) -> Tensor:
    return loss if gamma == 0 else (1.0 - p) ** gamma * loss


def _bits(x: Tensor, target: Tensor, how: Any) -> Tuple[Tensor, Tensor]:
    y = bits_of(target, x.shape[-1])
    z = torch.where(y == 1, x, -x)
    surprise = -F.logsigmoid(z)
    loss = _focal(torch.sigmoid(z), surprise, how.focal_gamma)
    if how.positive_weight is not None:
        weight = torch.as_tensor(how.positive_weight, dtype=x.dtype, device=x.device)
        loss = torch.where(y == 1, loss * weight, loss)
    return loss.mean(-1), surprise.sum(-1)


def _classes(x: Tensor, target: Tensor, how: Any) -> Tuple[Tensor, Tensor]:
    log_p = torch.log_softmax(x, -1)
    plain = -log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    if how.smoothing == 0:
        return _focal(torch.exp(-plain), plain, how.focal_gamma), plain
    share = how.smoothing / x.shape[-1]
    loss = (1.0 - how.smoothing) * plain - share * log_p.sum(-1)
    p = (1.0 - how.smoothing) * torch.exp(-plain) + share
    return _focal(p, loss, how.focal_gamma), plain


def loss(
    heads: Sequence[Head], logits: Tensor, actions: Tensor, mask: Optional[Tensor] = None, losses: Optional[Sequence[Any]] = None
) -> Loss:
    """Losses of logits [...,L] for the targets actions [...,A]; mask [...]: what a row counts (None: 1 each)."""
    how = [HeadLoss()] * len(heads) if losses is None else list(losses)
    if len(how) != len(heads):
        raise ValueError(f"losses has {len(how)} entries, the policy has {len(heads)} heads")
    lead, counts = tuple(logits.shape[:-1]), [head.count for head in heads]
    if logits.shape[-1] != sum(counts):
        raise ValueError(f"logits are of shape {list(logits.shape)}, the policy has {sum(counts)} of them")
    if tuple(actions.shape) != (*lead, len(heads)):
        raise ValueError(f"actions are of shape {list(actions.shape)}, must be {[*lead, len(heads)]} for these logits")
    if mask is not None and tuple(mask.shape) != lead:
        raise ValueError(f"mask is of shape {list(mask.shape)}, must be {list(lead)} for these logits")
    found: List[Tuple[Tensor, Tensor]] = []
    parts = logits.split(counts, -1)
    for h, (head, part) in enumerate(zip(heads, parts)):
        found.append((_bits if head.bits else _classes)(part, actions[..., h].to(torch.int64), how[h]))
    counted = torch.ones_like(found[0][0]) if mask is None else mask.to(logits.dtype)
    total = counted.sum()
    of_heads, nll = (torch.stack([(counted * pair[i]).sum() for pair in found]) / total for i in (0, 1))
    weights = of_heads.new_tensor([1.0 if one.weight == 0 else max(float(one.weight), 0.0) for one in how])
    return Loss((weights * of_heads).sum(), of_heads, nll)
