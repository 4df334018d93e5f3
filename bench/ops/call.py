#!/usr/bin/env python3
"""What a call of the kernels costs over C: the median of --calls scans of a tiny shape ([1,4,1] with 2 states), each timed alone,
one thread, in rounds; the lowest median of the rounds counts, because a processor changes its speed within seconds.

    bench/ops/call.py          with the interpreter that has exphil, and torch or JAX or both; else those rows are missing

bench/ops/call.c, built with cc and pkg-config, measures C in the same rounds. Calls inside of one jit cannot be timed alone: a
function of 101 calls, each of which takes what the one before gave, is called --calls / 100 times, so that --calls more calls are
counted than in as many of a function of one call; the difference of the two medians, by 100, is one more call."""
import argparse
import importlib.util
import os
import subprocess
import tempfile
import time

import numpy as np

import exphil
import exphil.ops as ops

ROUNDS = 3
MORE = 100


def median_ns(function, count):
    took, clock = [0] * count, time.perf_counter_ns
    for i in range(count):
        began = clock()
        function()
        took[i] = clock() - began
    return sorted(took)[count // 2]


def build(folder):
    asked = ["pkg-config", "--cflags", "--libs", "exphil"]
    flags = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    program = os.path.join(folder, "call")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "call.c")
    subprocess.run(["cc", "-O2", source, *flags, "-o", program], check=True)
    return program


def arrays():
    draw = np.random.default_rng(0)
    shapes = ((1, 4, 1), (1, 4, 1), (4, 2), (1, 2, 1), (1, 2, 1))
    made = [draw.standard_normal(shape).astype(np.float32) for shape in shapes]
    made[2] = -np.abs(made[2])
    return made


def torch_rows(given):
    import torch

    from exphil import ops_torch

    torch.set_num_threads(1)
    tensors = [torch.from_numpy(one) for one in given]
    if ops_torch.REGISTERED:
        plain = torch.ops.exphil.scan_plain.default
        yield f"torch {torch.__version__}, registered operator", lambda: plain(*tensors, None, None, None, None, None, 1, 0)
    yield f"torch {torch.__version__}, exphil.ops.selective_scan", lambda: ops.selective_scan(*tensors)


def jax_rows(given, count):
    """Compiled once, and then measured in every round."""
    import jax
    import jax.numpy as jnp

    import exphil.jax  # noqa: F401

    on_jax = [jnp.asarray(one) for one in given]

    def chain(length):
        def calls(u, *rest):
            for _ in range(length):
                u = ops.selective_scan(u, *rest)
            return u

        made = jax.jit(calls)
        made(*on_jax).block_until_ready()
        return lambda: made(*on_jax).block_until_ready()

    one, many, name = chain(1), chain(1 + MORE), f"jax {jax.__version__}"

    def rows():
        alone = median_ns(one, count)
        yield f"{name}, one more call inside one jit", (median_ns(many, max(count // MORE, 1)) - alone) / MORE
        yield f"{name}, a jit of one call", alone

    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100000)
    count = parser.parse_args().calls
    ops.use(exphil.Context(threads=1))
    given, best, c = arrays(), {}, [10**9, 10**9]
    bound = ops.bind(ops.selective_scan, *given)
    rows = [("cffi: a bound call", bound), ("NumPy, exphil.ops.selective_scan", lambda: ops.selective_scan(*given))]
    if importlib.util.find_spec("torch"):
        rows += torch_rows(given)
    in_jax = jax_rows(given, count) if importlib.util.find_spec("jax") else None
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        for _ in range(ROUNDS):
            told = [int(word) for word in subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()]
            c = [min(c[0], told[0] - told[2]), min(c[1], told[1] - told[2])]
            clock = median_ns(lambda: None, count)
            for name, function in rows:
                best[name] = min(best.get(name, 10**9), median_ns(function, count) - clock)
            for name, took in in_jax() if in_jax else ():
                best[name] = min(best.get(name, 10**9), took)
    print(f"C: {c[0]} ns a call, {c[1]} ns with a query before it\n\n| call | us | over C, us |\n| --- | --- | --- |")
    for name, took in best.items():
        print(f"| {name} | {took / 1000:.2f} | {(took - c[0]) / 1000:.2f} |")


if __name__ == "__main__":
    main()
