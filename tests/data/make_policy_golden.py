#!/usr/bin/env python3
"""Writes tests/data/policy/golden.txt: losses of reinforcement and their gradients by the logits, as PyTorch's distributions and
its autograd have them in double. One number a line, in hexadecimal; learn.policy_test reads them in this order.

  tests/data/make_policy_golden.py FILE
"""
import sys

import torch
from torch.distributions import Bernoulli, Categorical, kl_divergence

HEADS = [("bernoulli", 3), ("categorical", 5), ("categorical", 4)]
CASES = 40


def distributions(logits, temperature):
    at, found = 0, []
    for (kind, count), t in zip(HEADS, temperature):
        part = logits[at:at + count] / t
        found.append(Bernoulli(logits=part) if kind == "bernoulli" else Categorical(logits=part))
        at += count
    return found


def log_probability(policy, actions):
    total = 0.0
    for one, (kind, count), action in zip(policy, HEADS, actions):
        if kind == "bernoulli":
            total = total + one.log_prob(torch.tensor([float(action >> i & 1) for i in range(count)])).sum()
        else:
            total = total + one.log_prob(torch.tensor(action))
    return total


def divergence(a, b):
    return sum(kl_divergence(x, y).sum() for x, y in zip(a, b))


def main():
    torch.manual_seed(11)
    torch.set_default_dtype(torch.float64)
    width = sum(count for _, count in HEADS)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        def put(*numbers):
            for number in numbers:
                out.write(float(number).hex() + "\n")

        for _ in range(CASES):
            logits = (4 * torch.rand(width) - 2).requires_grad_()
            old, teacher = 4 * torch.rand(width) - 2, 4 * torch.rand(width) - 2
            temperature = (0.5 + torch.rand(len(HEADS))).tolist()
            actions = [int(torch.randint(0, 2**count if kind == "bernoulli" else count, ())) for kind, count in HEADS]
            surrogate, clip, to_old, to_teacher, from_teacher, entropy = (0.1 + torch.rand(6)).tolist()
            advantage = float(2 * torch.randn(()))
            new = distributions(logits, temperature)
            taught, before = distributions(teacher, temperature), distributions(old, temperature)
            recorded = float(log_probability(new, actions)) + float(torch.rand(()) - 0.5)
            ratio = torch.exp(log_probability(new, actions) - recorded)
            loss = (-surrogate * torch.minimum(ratio * advantage, torch.clamp(ratio, 1 - clip, 1 + clip) * advantage)
                    + to_old * divergence(before, new) + to_teacher * divergence(new, taught)
                    + from_teacher * divergence(taught, new) - entropy * sum(one.entropy().sum() for one in new))
            loss.backward()
            put(*logits.tolist(), *old.tolist(), *teacher.tolist(), *temperature, *actions)
            put(surrogate, clip, to_old, to_teacher, from_teacher, entropy, advantage, recorded, loss.item())
            put(*logits.grad.tolist())


main()
