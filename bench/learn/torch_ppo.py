#!/usr/bin/env python3
"""The run of `exphil learn --world pong --no-previous-action` in PyTorch: the same games (the library's world, stepped in C), the
same network, the same loss, passes and batches. Prints one JSON object.

  bench/learn/torch_ppo.py LIBEXPHIL.so [--frames N] [--threads 2] [--lanes 64] [--time 128] [--seed 1] [--traced]

--traced: the network that plays is a frozen trace, which costs PyTorch less a step.
"""
import argparse
import ctypes
import json
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FLOATS, ACTIONS, HIDDEN, EPOCHS, BATCHES, GAMMA, LAMBDA = 7, 3, 64, 4, 4, 0.5 ** (1 / 240), 0.95


class WorldStruct(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("user", ctypes.c_void_p), ("spec", ctypes.c_void_p), ("lanes", ctypes.c_int64),
                ("seats", ctypes.c_int64), ("state_bytes", ctypes.c_size_t), ("reset", ctypes.c_void_p), ("step", ctypes.c_void_p),
                ("save", ctypes.c_void_p), ("load", ctypes.c_void_p), ("destroy", ctypes.c_void_p)]  # fmt: skip


class World:
    """The library's Pong, in arrays of NumPy."""

    def __init__(self, path, lanes, seed):
        lib = ctypes.CDLL(path)
        context, self.world = ctypes.c_void_p(), WorldStruct()
        assert lib.exphil_context_create(None, ctypes.byref(context), None) == 0
        lib.exphil_world_create.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
        assert lib.exphil_world_create(context, b"pong", lanes, ctypes.byref(self.world), None) == 0
        pointer = ctypes.c_void_p
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, ctypes.c_int64, ctypes.c_uint64, pointer, pointer)
        self.do_reset = kind(self.world.reset)
        self.do_step = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, ctypes.c_int64, ctypes.c_int64, *[pointer] * 5)(self.world.step)
        self.rows, self.ids = np.zeros((lanes, FLOATS), np.float32), np.zeros(1, np.int32)
        self.reward, self.end, self.lanes, self.seed = np.zeros(lanes, np.float32), np.zeros(lanes, np.uint8), lanes, seed << 32
        for lane in range(lanes):
            self.reset(lane)

    def reset(self, lane):
        self.seed += 1
        self.do_reset(self.world.user, lane, self.seed, self.rows[lane].ctypes.data, self.ids.ctypes.data)

    def step(self, actions):
        self.do_step(self.world.user, 0, self.lanes, actions.ctypes.data, self.rows.ctypes.data, self.ids.ctypes.data,
                     self.reward.ctypes.data, self.end.ctypes.data)  # fmt: skip
        for lane in np.flatnonzero(self.end):
            self.reset(lane)


class Policy(nn.Module):
    """doc/model.md: input, one mlp block, norm, trunks of heads and value."""

    def __init__(self):
        super().__init__()
        self.input = nn.Linear(FLOATS, HIDDEN)
        self.before, self.up, self.inner = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.LayerNorm(HIDDEN)
        self.down, self.norm = nn.Linear(HIDDEN, HIDDEN), nn.LayerNorm(HIDDEN)
        self.trunk, self.heads = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, ACTIONS)
        self.value_trunk, self.value = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 1)
        nn.init.zeros_(self.value.weight)

    def forward(self, rows):
        x = self.input(rows)
        x = x + self.down(F.silu(self.inner(self.up(self.before(x)))))
        u = self.norm(x)
        return self.heads(F.silu(self.trunk(u))), self.value(F.silu(self.value_trunk(u))).squeeze(-1)


class Learner:
    def __init__(self, asked):
        self.asked, self.net = asked, Policy()
        self.world = World(asked.library, asked.lanes, asked.seed)
        self.adam = torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=True)
        shape = (asked.time, asked.lanes)
        self.rows, self.actions = torch.zeros(*shape, FLOATS), torch.zeros(*shape, dtype=torch.int64)
        self.logs, self.values, self.rewards, self.ends = (torch.zeros(*shape) for _ in range(4))
        self.last, self.sums, self.done = torch.zeros(asked.lanes), np.zeros(asked.lanes), []

    def playing(self):
        if not self.asked.traced:
            return self.net
        net = torch.jit.trace(self.net, torch.zeros(self.asked.lanes, FLOATS))
        return torch.jit.optimize_for_inference(torch.jit.freeze(net.eval()))

    @torch.inference_mode()
    def play(self):
        net, world = self.playing(), self.world
        for t in range(self.asked.time):
            self.rows[t] = torch.from_numpy(world.rows)
            logits, self.values[t] = net(self.rows[t])
            logs = F.log_softmax(logits, -1)
            noise = torch.empty_like(logs).exponential_()
            self.actions[t] = (logs.exp() / noise).argmax(-1)
            self.logs[t] = logs.gather(-1, self.actions[t, :, None]).squeeze(-1)
            world.step(self.actions[t].to(torch.int32).numpy())
            self.rewards[t], self.ends[t] = torch.from_numpy(world.reward), torch.from_numpy((world.end > 0).astype(np.float32))
            self.sums += world.reward
            for lane in np.flatnonzero(world.end):
                self.done.append(self.sums[lane])
                self.sums[lane] = 0.0
        self.last = net(torch.from_numpy(world.rows))[1]

    @torch.inference_mode()
    def advantages(self):
        gain, later = torch.zeros_like(self.values), torch.zeros(self.asked.lanes)
        for t in reversed(range(self.asked.time)):
            goes_on = 1 - self.ends[t]
            following = self.values[t + 1] if t + 1 < self.asked.time else self.last
            later = self.rewards[t] + GAMMA * following * goes_on - self.values[t] + GAMMA * LAMBDA * goes_on * later
            gain[t] = later
        return (gain - gain.mean()) / gain.std(), gain + self.values

    def update(self):
        gain, target = self.advantages()
        each = self.asked.lanes // BATCHES
        for _ in range(EPOCHS):
            for lanes in torch.randperm(self.asked.lanes).split(each):
                logits, values = self.net(self.rows[:, lanes])
                logs = F.log_softmax(logits, -1)
                ratio = (logs.gather(-1, self.actions[:, lanes, None]).squeeze(-1) - self.logs[:, lanes]).exp()
                held = torch.minimum(ratio * gain[:, lanes], ratio.clamp(0.8, 1.2) * gain[:, lanes])
                entropy = -(logs.exp() * logs).sum(-1)
                loss = -held.mean() + 0.5 * (values - target[:, lanes]).square().mean() - 0.003 * entropy.mean()
                self.adam.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
                self.adam.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--frames", type=int, default=500000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lanes", type=int, default=64)
    parser.add_argument("--time", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--traced", action="store_true")
    asked = parser.parse_args()
    torch.manual_seed(asked.seed)
    torch.set_num_threads(asked.threads)
    learner, played = Learner(asked), 0
    learner.play()  # what is compiled and allocated once is not timed
    learner.update()
    began, inside = time.perf_counter(), 0.0
    while played < asked.frames:
        before = time.perf_counter()
        learner.play()
        inside += time.perf_counter() - before
        learner.update()
        played += asked.lanes * asked.time
    seconds = time.perf_counter() - began
    print(json.dumps({"frames": played, "frames_per_second": played / seconds, "share_of_play": inside / seconds,
                      "recent_return": float(np.mean(learner.done[-20:] or [0.0])), "torch": torch.__version__}))  # fmt: skip


if __name__ == "__main__":
    main()
