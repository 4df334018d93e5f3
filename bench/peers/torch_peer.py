#!/usr/bin/env python3
"""PyTorch as a peer: reads a case, leaves its own result in FOLDER/torch.NAME.bin, then answers rounds.

Usage: torch_peer.py FOLDER THREADS
"""
import json
import sys
import time

import numpy as np
import torch

import torch_net
from case import Case

LOOP = 50  # frames in one call of a scripted loop: what Python costs is shared by so many


def save(folder, name, value):
    np.ascontiguousarray(value, np.float32).tofile("%s/torch.%s.bin" % (folder, name))


def cell(case, folder):
    x, kind = torch_net.tensor(case.array("x"))[None], case.facts["kind"]
    if kind == "mlp":
        net = torch.jit.freeze(torch.jit.trace(torch_net.CellMlp(case).eval(), x))
        net = torch.jit.optimize_for_inference(net)
        save(folder, "y", net(x).numpy())
        return (lambda: net(x)), 1
    weights = torch_net.cell_weights(case)
    state = [s[None] for s in torch_net.tensor(case.array("state")).split(weights[1].shape[1])]
    if kind == "gru":
        save(folder, "y", torch_net.gru_loop(x, state[0], *weights, 1).numpy())
        return (lambda: torch_net.gru_loop(x, state[0], *weights, LOOP)), LOOP
    save(folder, "y", torch_net.lstm_loop(x, state[0], state[1], *weights, 1)[0].numpy())
    return (lambda: torch_net.lstm_loop(x, state[0], state[1], *weights, LOOP)), LOOP


def update(case, folder):
    """The optimizer as libexphil has it: decay on matrices only, gradients clipped to norm 1."""
    torch.set_grad_enabled(True)
    net = torch_net.Policy(case)
    facts = case.facts
    floats = torch_net.tensor(case.array("floats")).view(facts["batch"], facts["time"], -1)
    if facts["time"] == 1:
        floats = floats[:, 0]
    wanted = torch_net.targets(torch_net.tensor(case.array("actions")))
    named = list(net.named_parameters())
    plain = [p for n, p in named if p.dim() < 2 or "a_log" in n or "bias" in n]
    decayed = [p for n, p in named if not any(p is q for q in plain)]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
                                  lr=1e-4, eps=1e-8, fused=True)

    def one():
        optimizer.zero_grad(set_to_none=True)
        loss = torch_net.loss_of(net(floats), wanted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    save(folder, "losses", [one().item() for _ in range(len(case.array("losses")))])
    return one, 1


def adam(case, folder):
    p = torch.nn.Parameter(torch_net.tensor(case.array("p")))
    p.grad = torch_net.tensor(case.array("grad"))
    optimizer = torch.optim.AdamW([p], lr=1e-3, eps=1e-8, weight_decay=0.01, fused=True)
    optimizer.step()
    save(folder, "p_after", p.detach().numpy())
    return optimizer.step, 1


def norm(case, folder):
    x, gain, shift = (torch_net.tensor(case.array(n)) for n in ("x", "gain", "shift"))
    with torch.no_grad():
        run = lambda: torch.nn.functional.silu(torch.nn.functional.layer_norm(x, gain.shape, gain, shift, 1e-5))
        save(folder, "y", run().numpy())
    return run, 1


def rounds(run, calls, pause):
    ns, began = [], time.perf_counter_ns()
    run()
    for _ in range(calls):
        if pause:
            time.sleep(pause * 1e-9)
        elif time.perf_counter_ns() - began > 40e6:
            time.sleep((time.perf_counter_ns() - began) * 1e-10)
            run()
            began = time.perf_counter_ns()
        before = time.perf_counter_ns()
        run()
        ns.append(time.perf_counter_ns() - before)
    return ns


def main():
    folder = sys.argv[1]
    torch.set_num_threads(int(sys.argv[2]))
    torch.set_num_interop_threads(1)
    torch.set_grad_enabled(False)
    case = Case(folder)
    run, share = {"cell": cell, "update": update, "adam": adam, "norm": norm}[case.facts["case"]](case, folder)
    for _ in range(3):
        run()
    print("version " + torch.__version__, file=sys.stderr, flush=True)
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "quit":
            break
        times = rounds(run, max(1, int(words[1]) // share), int(words[2]))
        print(json.dumps({"ns": [t / share for t in times]}), flush=True)


if __name__ == "__main__":
    main()
