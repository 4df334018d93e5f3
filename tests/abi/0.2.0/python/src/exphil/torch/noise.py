"""The noise of a session that is given none: Philox4x32-10 (Salmon et al. 2011) with the counters of doc/model.md."""
from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import Tensor

_LOW = 0xFFFFFFFF
_M0, _M1, _W0, _W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85


def _multiply(a: int, b: Tensor) -> Tuple[Tensor, Tensor]:
    """Upper and lower 32 bits of a product of words. It wraps at 64 bits, and the sign is shifted in: the mask takes it off."""
    product = b * a
    return torch.bitwise_and(torch.bitwise_right_shift(product, 32), _LOW), torch.bitwise_and(product, _LOW)


def session_noise(seed: int, first: int, streams: int, count: int, device: Any = None) -> Tensor:
    """[streams,count], numbers first, first + 1, ... of each stream of a session with this seed: float32 in (0, 1). A step whose
    heads are not all deterministic draws L of them."""
    n = torch.arange(first, first + count, device=device)
    block = (n // 4).expand(streams, count)
    lane = (3 + 256 * torch.arange(streams, device=device)).unsqueeze(1).expand(streams, count)
    c = [block & _LOW, block >> 32, lane & _LOW, lane >> 32]
    k0, k1 = seed & _LOW, seed >> 32 & _LOW
    for _ in range(10):
        (p_high, p_low), (q_high, q_low) = _multiply(_M0, c[0]), _multiply(_M1, c[2])
        c = [q_high ^ c[1] ^ k0, q_low, p_high ^ c[3] ^ k1, p_low]
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    word = torch.stack(c, -1).gather(-1, (n % 4).expand(streams, count).unsqueeze(-1)).squeeze(-1)
    return ((2 * (word >> 9) + 1).to(torch.float64) * 2.0**-24).to(torch.float32)
