#!/usr/bin/env python3
"""PyTorch on a card, at the shapes of bench/cuda and of training: what tools/gpu-check holds libexphil's figures against.

Usage: cuda_peers.py [--json] [--only SUBJECT]... [--type TYPE]... [--cap SECONDS] [--smoke]

--json: each row as a line of JSON when it is known. --cap: a way that takes longer, compiling included, is given up and listed
so. --smoke: small, once, also without a card.

Subjects: step (one update of the ExPhil-shaped policy), scan, attention, lstm, gru. Each in every way of running that PyTorch
has for it (eager, torch.compile, CUDA graphs, SDPA's backends); the best counts. A way that does not run here is listed with
its reason. Times are medians over rounds of several calls between CUDA events.
"""
import argparse
import json
import signal
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

SMOKE = False
DEVICE = "cuda"


# ---- the policy: 288 -> 256, blocks x + Mamba(LayerNorm(x)), six heads ----


class Mamba(nn.Module):
    """S6 with plain operations: the scan as a loop over frames that unbind has cut."""

    def __init__(self, width, inner, states=16, taps=4, rank=16):
        super().__init__()
        self.inside, self.out = nn.Linear(width, 2 * inner), nn.Linear(inner, width)
        self.conv = nn.Conv1d(inner, inner, taps, groups=inner)
        self.low, self.dt = nn.Linear(inner, rank + 2 * states, bias=False), nn.Linear(rank, inner)
        self.a_log = nn.Parameter(torch.log(torch.arange(1.0, states + 1)).repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))
        self.sizes, self.taps = [rank, states, states], taps

    def forward(self, u):
        x, z = self.inside(u).chunk(2, dim=-1)
        x = F.silu(self.conv(F.pad(x.transpose(1, 2), (self.taps - 1, 0)))).transpose(1, 2)
        rank, b, c = self.low(x).split(self.sizes, dim=-1)
        return self.out(scan(x, self.dt(rank), self.a_log, b, c, self.skip, z))


def scan(x, dt, a_log, b, c, skip, z):
    """The state stays float whatever the rows are."""
    kind = x.dtype
    x, dt, b, c = x.float(), dt.float(), b.float(), c.float()
    delta = F.softplus(dt)
    decay = torch.exp(delta[..., None] * -torch.exp(a_log))
    fresh = (delta * x)[..., None] * b[:, :, None, :]
    h, rows = torch.zeros_like(fresh[:, 0]), []
    for decay_t, fresh_t, c_t in zip(decay.unbind(1), fresh.unbind(1), c.unbind(1)):
        h = decay_t * h + fresh_t
        rows.append((h @ c_t[..., None])[..., 0])
    return ((torch.stack(rows, 1) + skip * x) * F.silu(z.float())).to(kind)


class Policy(nn.Module):
    HEADS = [8, 17, 17, 17, 17, 5]  # eight buttons, then classes

    def __init__(self, width=256, inner=512, blocks=2):
        super().__init__()
        self.input = nn.Linear(288, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(blocks))
        self.blocks = nn.ModuleList(Mamba(width, inner) for _ in range(blocks))
        self.norm, self.trunk, self.logits = nn.LayerNorm(width), nn.Linear(width, 128), nn.Linear(128, sum(self.HEADS))

    def forward(self, x):
        x = self.input(x)
        for norm, block in zip(self.norms, self.blocks):
            x = x + block(norm(x))
        return self.logits(F.silu(self.trunk(self.norm(x))))


def loss_of(logits, bits, classes):
    parts = logits.float().reshape(-1, logits.shape[-1]).split(Policy.HEADS, dim=-1)
    losses = [F.binary_cross_entropy_with_logits(parts[0], bits)]
    return sum(losses + [F.cross_entropy(part, want) for part, want in zip(parts[1:], classes)])


# ---- timing ----


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds_of(run):
    """The median over rounds, each long enough for events to see."""
    for _ in range(1 if SMOKE else 5):
        run()
    wait()
    begin = time.perf_counter()
    run()
    wait()
    once = max(time.perf_counter() - begin, 1e-6)
    calls, rounds = (1, 1) if SMOKE else (max(1, min(200, int(5e-3 / once))), 15 if once < 0.2 else 5)
    samples = []
    for _ in range(rounds):
        if DEVICE == "cuda":
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
            for _ in range(calls):
                run()
            last.record()
            last.synchronize()
            samples.append(first.elapsed_time(last) * 1e-3 / calls)
        else:
            begin = time.perf_counter()
            for _ in range(calls):
                run()
            samples.append((time.perf_counter() - begin) / calls)
    return statistics.median(samples)


def graphed(run):
    """run recorded as a CUDA graph, after it has run on the side as PyTorch wants it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


class Table:
    def __init__(self, asked):
        self.asked, self.broken = asked, False

    def add(self, subject, shape, kind, how, make):
        if self.asked.type and kind not in self.asked.type:
            return
        row = {"subject": subject, "shape": shape, "type": kind, "how": how}
        try:
            signal.alarm(self.asked.cap)
            row["us"] = seconds_of(make()) * 1e6
        except Exception as error:  # a way that this PyTorch, or this card, does not have
            row["failed"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
        finally:
            signal.alarm(0)
            if DEVICE == "cuda":
                torch.cuda.empty_cache()
            if hasattr(torch, "compiler"):
                torch.compiler.reset()
        self.broken |= SMOKE and "failed" in row
        if self.asked.json:
            print(json.dumps(row), flush=True)
            return
        figure = f"{row['us']:12.1f} us" if "us" in row else row["failed"]
        print(f"{subject:16} {shape:28} {kind:5} {how:22} {figure}", flush=True)


def too_long(_signal, _frame):
    raise TimeoutError("given up at the cap")


def tf32(on):
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


# ---- subjects ----


def step_maker(kind, how, batch, frames):
    """forward, backward, clipping, AdamW: as libexphil's update. Weights stay float in bf16 (autocast)."""

    def make():
        torch.manual_seed(1)
        tf32(kind == "tf32")
        net = Policy().to(DEVICE)
        forward = torch.compile(net) if how.startswith("compile") else net
        on_card = {"fused": DEVICE == "cuda", "capturable": "graph" in how}
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01, **on_card)
        x = torch.randn(batch, frames, 288, device=DEVICE)
        bits = torch.randint(0, 2, (batch * frames, 8), device=DEVICE).float()
        classes = [torch.randint(0, n, (batch * frames,), device=DEVICE) for n in Policy.HEADS[1:]]

        def one():
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(DEVICE, torch.bfloat16, enabled=kind == "bf16"):
                logits = forward(x)
            loss_of(logits, bits, classes).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
            optimizer.step()

        return graphed(one) if "graph" in how else one

    return make


def step(table):
    batch, frames = (2, 5) if SMOKE else (256, 60)
    ways = ["eager"] if SMOKE else ["eager", "graphs", "compile", "compile+graphs"]
    for kind in ("f32", "tf32", "bf16"):
        for how in ways:
            table.add("step", f"B={batch} T={frames}", kind, how, step_maker(kind, how, batch, frames))


def scans(table):
    shapes = [(2, 5, 32, 16)] if SMOKE else [(256, 60, 512, 16), (256, 1024, 1536, 16)]
    for b, t, d, n in shapes:
        for kind in ("f32", "bf16"):
            dtype = torch.float32 if kind == "f32" else torch.bfloat16

            def tensors(grad):
                make = lambda *size: torch.randn(*size, device=DEVICE, dtype=dtype).requires_grad_(grad)
                rates = torch.log(torch.arange(1.0, n + 1, device=DEVICE)).repeat(d, 1).requires_grad_(grad)
                return [make(b, t, d), make(b, t, d), rates, make(b, t, n), make(b, t, n),
                        torch.ones(d, device=DEVICE).requires_grad_(grad), make(b, t, d)]

            def maker(how, grad):
                def make():
                    given = tensors(grad)
                    f = torch.compile(scan) if how == "compile" else scan
                    dy = torch.randn(b, t, d, device=DEVICE, dtype=dtype)
                    run = (lambda: torch.autograd.grad(f(*given), given, dy)) if grad else (lambda: f(*given))
                    return graphed(run) if how == "graphs" else run

                return make

            # Unrolled over 1024 frames it would compile for an hour.
            ways = ["eager"] if SMOKE else ["eager", "graphs"] + (["compile"] if t < 100 else [])
            for how in ways:
                table.add("scan", f"{b} x {t} x {d} x {n}", kind, how, maker(how, False))
                table.add("scan both", f"{b} x {t} x {d} x {n}", kind, how, maker(how, True))


def attention(table):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
    if hasattr(SDPBackend, "CUDNN_ATTENTION"):
        backends["cudnn"] = SDPBackend.CUDNN_ATTENTION
    shapes = [(2, 6, 4)] if SMOKE else [(256, 60, 60), (256, 1024, 128)]
    for b, t, window in shapes:
        for kind, dtype in (("f32", torch.float32), ("tf32", torch.float32), ("bf16", torch.bfloat16)):
            for name, backend in list(backends.items()) + [("flex", None)]:

                def runs(grad, backend=backend):
                    tf32(kind == "tf32")
                    q, k, v = (torch.randn(b, 4, t, 64, device=DEVICE, dtype=dtype).requires_grad_(grad) for _ in range(3))
                    if backend is None:
                        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

                        inside = lambda _b, _h, i, j: (i >= j) & (i - j < window)
                        mask = create_block_mask(inside, None, None, t, t, device=DEVICE)
                        flex = torch.compile(flex_attention)
                        return (lambda: flex(q, k, v, block_mask=mask)), (q, k, v)
                    far = torch.arange(t, device=DEVICE)
                    far = far[:, None] - far[None, :]
                    hidden = (far < 0) | (far >= window)
                    zeros = torch.zeros(t, t, device=DEVICE, dtype=dtype)
                    mask = None if window >= t else zeros.masked_fill(hidden, float("-inf"))

                    def run():
                        with sdpa_kernel(backend):
                            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)

                    return run, (q, k, v)

                def both():
                    run, given = runs(True)
                    dy = torch.randn(b, 4, t, 64, device=DEVICE, dtype=dtype)
                    return lambda: torch.autograd.grad(run(), given, dy)

                if SMOKE and name != "math":
                    continue
                shape = f"{b} x {t} x 4 x 64, window {window}"
                table.add("attention", shape, kind, name, lambda: runs(False)[0])
                table.add("attention both", shape, kind, name, both)


def recurrent(table, name, layer, layers):
    b, t, h = (2, 3, 16) if SMOKE else (256, 60, 256)
    for kind, dtype in (("f32", torch.float32), ("tf32", torch.float32), ("bf16", torch.bfloat16)):

        def build(grad):
            tf32(kind == "tf32")
            net = layer(h, h, layers, batch_first=True).to(DEVICE, dtype)
            return net, torch.randn(b, t, h, device=DEVICE, dtype=dtype).requires_grad_(grad)

        def forward():
            net, x = build(False)
            net.requires_grad_(False)
            return lambda: net(x)[0]

        def both():
            net, x = build(True)
            given = [x] + list(net.parameters())
            dy = torch.randn(b, t, h, device=DEVICE, dtype=dtype)
            return lambda: torch.autograd.grad(net(x)[0], given, dy)

        shape = f"B={b} T={t} H={h} x {layers}"
        table.add(name, shape, kind, "cudnn", forward)
        table.add(f"{name} both", shape, kind, "cudnn", both)
        if not SMOKE:
            table.add(name, shape, kind, "cudnn+graphs", lambda: graphed(forward()))
            table.add(f"{name} both", shape, kind, "cudnn+graphs", lambda: graphed(both()))


def main():
    global SMOKE, DEVICE
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append")
    parser.add_argument("--type", action="append")
    parser.add_argument("--cap", type=int, default=120)
    for word in ("--json", "--smoke"):
        parser.add_argument(word, action="store_true")
    asked = parser.parse_args()
    SMOKE = asked.smoke
    if not torch.cuda.is_available():
        if not SMOKE:
            print("SKIPPED: PyTorch sees no CUDA device")
            return 77
        DEVICE = "cpu"
    signal.signal(signal.SIGALRM, too_long)
    table = Table(asked)
    subjects = {"step": step, "scan": scans, "attention": attention,
                "lstm": lambda t: recurrent(t, "lstm", nn.LSTM, 2), "gru": lambda t: recurrent(t, "gru", nn.GRU, 1)}
    for name, run in subjects.items():
        if not asked.only or name in asked.only:
            run(table)
    return 1 if table.broken else 0


if __name__ == "__main__":
    sys.exit(main())
