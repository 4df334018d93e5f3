#!/usr/bin/env python3
"""The selective scan beside what people run without kernels of their own, forward and forward with backward, one thread, in turns;
the median of the rounds, and of forward the lowest one, too: what runs beside it lengthens long calls more than short ones.

    bench/ops/scan.py --shape 4,512,16,60       batch, channels, states, frames; with the interpreter that has exphil and peers

Peers, as they are installed: a loop in torch, the same formula with exponentials of all frames made at once by einsum, as the
reference implementation of mamba_ssm has it (written anew from the paper's formula), and jax.lax.scan under jit. Each is first
compared with the library's result."""
import argparse
import importlib.util
import os
import statistics
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import numpy as np  # noqa: E402

import exphil  # noqa: E402
import exphil.ops as ops  # noqa: E402


def arrays(batch, width, states, frames):
    draw = np.random.default_rng(0)

    def some(*shape):
        return draw.standard_normal(shape).astype(np.float32)

    wide = [np.ascontiguousarray(some(batch, frames, width)).swapaxes(1, 2) for _ in range(3)]
    narrow = [np.ascontiguousarray(some(batch, frames, states)).swapaxes(1, 2) for _ in range(2)]
    return [wide[0], wide[1] - 2, -np.exp(some(width, states)), *narrow, some(width), wide[2], some(width)]


def torch_loop(torch):
    """A frame at a time, nothing made before."""

    def scan(u, delta, A, B, C, D, z, bias):
        step = torch.nn.functional.softplus(delta + bias[:, None])
        state, out = torch.zeros(u.shape[0], *A.shape), []
        for t in range(u.shape[2]):
            state = torch.exp(step[:, :, t, None] * A) * state + (step[:, :, t] * u[:, :, t])[..., None] * B[:, None, :, t]
            out.append((state * C[:, None, :, t]).sum(-1))
        return (torch.stack(out, 2) + u * D[:, None]) * torch.nn.functional.silu(z)

    return scan


def torch_reference(torch):
    """Decays and drives of all frames first, then the recurrence."""

    def scan(u, delta, A, B, C, D, z, bias):
        step = torch.nn.functional.softplus(delta + bias[..., None])
        decay = torch.exp(torch.einsum("bdl,dn->bdln", step, A))
        drive = torch.einsum("bdl,bnl,bdl->bdln", step, B, u)
        state, out = torch.zeros(u.shape[0], *A.shape), []
        for t in range(u.shape[2]):
            state = decay[:, :, t] * state + drive[:, :, t]
            out.append(torch.einsum("bdn,bn->bd", state, C[:, :, t]))
        return (torch.stack(out, 2) + u * D[:, None]) * torch.nn.functional.silu(z)

    return scan


def lax_scan(jax):
    jnp = jax.numpy

    def scan(u, delta, A, B, C, D, z, bias):
        step = jax.nn.softplus(delta + bias[:, None])

        def frame(state, now):
            u, step, B, C = now
            state = jnp.exp(step[..., None] * A) * state + (step * u)[..., None] * B[:, None]
            return state, (state * C[:, None]).sum(-1)

        frames = [jnp.moveaxis(one, 2, 0) for one in (u, step, B, C)]
        _, out = jax.lax.scan(frame, jnp.zeros((u.shape[0], *A.shape)), frames)
        return (jnp.moveaxis(out, 0, 2) + u * D[:, None]) * jax.nn.silu(z)

    return scan


def torch_rows(given):
    import torch

    torch.set_num_threads(1)
    tensors = [torch.from_numpy(one.copy(order="K")).requires_grad_() for one in given]
    scans = {"exphil": lambda *a: ops.selective_scan(*a, delta_softplus=True), "torch's loop": torch_loop(torch),
             "einsum, as mamba_ssm's reference": torch_reference(torch)}

    def forward(scan):
        with torch.no_grad():
            return scan(*tensors)

    for name, scan in scans.items():
        yield (f"torch {torch.__version__}: {name}", lambda scan=scan: forward(scan).numpy(),
               lambda scan=scan: torch.autograd.grad(scan(*tensors).sum(), tensors))


def jax_rows(given):
    import jax

    # JAX's arrays have no strides: rows, [B,L,D], become [B,D,L] inside of the jit, and what comes out becomes rows again, as in
    # a model. XLA joins that with the turns of either side, so that none is left of ours.
    turn = [one.ndim == 3 for one in given]
    on_jax = [jax.numpy.asarray(one.swapaxes(1, 2) if turned else one) for one, turned in zip(given, turn)]

    def of_rows(scan):
        return lambda *a: scan(*[one.swapaxes(1, 2) if turned else one for one, turned in zip(a, turn)]).swapaxes(1, 2)

    scans = {"exphil": lambda *a: ops.selective_scan(*a, delta_softplus=True), "lax.scan": lax_scan(jax)}
    for name, scan in scans.items():
        scan = of_rows(scan)
        forward = jax.jit(scan)
        both = jax.jit(jax.grad(lambda *a, scan=scan: scan(*a).sum(), argnums=tuple(range(8))))
        yield (f"jax {jax.__version__}: {name}", lambda forward=forward: np.asarray(forward(*on_jax)).swapaxes(1, 2),
               lambda both=both: jax.block_until_ready(both(*on_jax)))


def numpy_rows(given):
    dout = np.ones_like(given[0])
    yield ("NumPy: exphil", lambda: ops.selective_scan(*given, delta_softplus=True),
           lambda: ops.gradients(ops.selective_scan, dout, *given, delta_softplus=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="4,512,16,60")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    ops.use(exphil.Context(threads=1))
    given = arrays(*map(int, options.shape.split(",")))
    rows = list(numpy_rows(given))
    for module, more in (("torch", torch_rows), ("jax", jax_rows)):
        rows += more(given) if importlib.util.find_spec(module) else []
    want = ops.selective_scan(*given, delta_softplus=True)
    for name, forward, both in rows:
        away = np.abs(np.asarray(forward()) - want).max() / np.abs(want).max()
        assert away < 1e-4, (name, away)
        both()
    took = {name: ([], []) for name, _, _ in rows}
    for _ in range(options.rounds):
        for name, *functions in rows:
            for times, function in zip(took[name], functions):
                began = time.perf_counter()
                function()
                times.append(time.perf_counter() - began)
    print(f"[batch, channels, states, frames] = [{options.shape}]\n")
    print("| scan | forward, us | to exphil's | lowest | to exphil's | with backward, us | backward, us | to exphil's |")
    print("| --- " * 8 + "|")
    ours = {}
    for name, times in took.items():
        forward, both = (statistics.median(one) * 1e6 for one in times)
        these = forward, min(times[0]) * 1e6, both - forward
        median, lowest, back = (one / own for one, own in zip(these, ours.setdefault(name.split(":")[0], these)))
        row = f"{name} | {forward:.0f} | {median:.1f} | {these[1]:.0f} | {lowest:.1f} | {both:.0f} | {these[2]:.0f} | {back:.1f}"
        print(f"| {row} |")


if __name__ == "__main__":
    main()
