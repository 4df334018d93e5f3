#!/usr/bin/env python3
"""Holds tests/data/rebuild.py, and with it doc/model.md, against what the library made.

usage: rebuild_check.py PAGE FOLDER

PAGE is doc/model.md, FOLDER what tests/data/policies.c wrote. For every policy: each tensor of the file stands in a table of
the page with its shape, its type, whether it decays and what it starts as; logits, drawn actions and losses are those of the
library. At the end every row of the tables must have been of use.
"""
import math
import os
import re
import sys
import types

import numpy as np
import torch
from rebuild import Policy, past_in_data, past_in_play, read, session_noise, to_bf16

RESET_FRAME, OVERRIDE_FRAME, SEED = 9, 5, 0x123456789abcdef0  # of tests/data/policies.c
worst, failures = {}, []


def check(good, *words):
    if not good:
        failures.append(" ".join(str(word) for word in words))


def remember(name, error):
    worst[name] = max(worst.get(name, 0.0), float(error))


# ---- against the library ----


def episodes(rows):
    """(stream, frames): stream 1 was reset in between."""
    time = len(rows["floats"])
    return [(0, slice(0, time)), (1, slice(0, RESET_FRAME)), (1, slice(RESET_FRAME, time))]


def check_rounding(folder, name, policy):
    """That the numbers of a quantised file are those of the weights it was made of, rounded as the page says."""
    plain = read(os.path.join(folder, name + ".plain.safetensors"))[1]
    for tensor, (kind, array) in policy.file.items():
        if tensor not in plain:
            continue
        wanted = plain[tensor][1]
        if kind == "BF16":
            wanted = to_bf16(wanted)
        elif kind == "I8":
            scale = np.abs(wanted).max(axis=1) / np.float32(127)
            scale = (scale.view(np.uint32) + 0xff & 0xffffff00).astype(np.uint32).view(np.float32)
            check(np.array_equal(scale, policy.file[tensor + ".scale"][1]), name, tensor, "has other scales")
            wanted = np.rint(wanted / scale[:, None])
        check(np.array_equal(array, wanted), name, tensor, "is rounded otherwise")


def compare_logits(name, policy, found, wanted):
    error = (found - wanted).abs().amax(dim=-1) / wanted.abs().max()
    if policy.c.weights:
        # An input that lies between two levels may fall to either side, and is then off by a level: rarely, and by little.
        check((error < 1e-5).double().mean() > 0.5, name, "most frames differ:", error)
        check(error.max() < 2e-3, name, "logits differ by", float(error.max()))
        remember(policy.c.weights + " (share of frames beyond 1e-5)", (error >= 1e-5).double().mean())
        remember(policy.c.weights, error.max())
    else:
        check(error.max() < 1e-5, name, "logits differ by", float(error.max()))
        remember(policy.c.type, error.max())


def check_play(name, policy, rows, which, how, noise_of):
    c, logits, kept = policy.c, rows[which + ".logits"], rows[which].copy()
    kept[OVERRIDE_FRAME, 0] = rows["given"]
    for stream, part in episodes(rows):
        drawn, decided = rows[which][part, stream], kept[part, stream]
        found = policy.play(rows["floats"][part, stream], rows["ids"][part, stream], past_in_play(c, decided), drawn)
        wanted = torch.tensor(logits[part, stream].astype(np.float64))
        compare_logits("%s, %s:" % (name, which), policy, found, wanted)
        if c.value and c.mode == "carry":
            error = (policy.values - torch.tensor(rows[which + ".values"][part, stream, 0].astype(np.float64))).abs().max()
            check(error < (2e-3 if c.weights else 1e-5), name, which, "values differ by", float(error))
        for t in range(len(drawn)):
            before = decided[t - 1] if t else c.neutral
            action = policy.draw(wanted[t] if c.weights else found[t], noise_of(part.start + t, stream), how, before)
            where = "%s, %s: stream %d, frame %d" % (name, which, stream, part.start + t)
            check(action == list(drawn[t]), where, "draws", action, "not", drawn[t])
    return kept


def check_due(name, policy, rows, kept):
    c, d = policy.c, policy.c.delay
    for stream, part in episodes(rows):
        decided, due = kept[part, stream], rows["due"][part, stream]
        for t in range(len(due)):
            wanted = rows["drawn"][part, stream][t] if d == 0 else decided[t - d] if t >= d else c.neutral
            check(list(due[t]) == list(wanted), name, "due in frame", part.start + t, "is", due[t], "not", wanted)


def check_losses(name, policy, rows):
    c, settings, positive = policy.c, rows["losses"].reshape(-1, 3), torch.tensor(rows["positive"])
    sums, count = [0, 0], 0
    for stream in range(rows["floats"].shape[1]):
        recorded = rows["recorded"][:, stream]
        past = past_in_data(c, recorded)
        time = len(past)
        target = recorded[c.delay:c.delay + time]
        logits = policy.play(rows["floats"][:time, stream], rows["ids"][:time, stream], past, target)
        for t in range(c.window_frames - 1 if c.mode == "window" else 0, time):  # of windows only whole ones are scored
            sums = [a + b for a, b in zip(sums, policy.loss(logits[t], target[t], settings, positive))]
            count += 1
    loss, nll = sums[0] / count, sums[1] / count
    weight = torch.tensor([1.0 if w == 0 else max(w, 0.0) for w in settings[:, 0]])
    found = torch.cat([loss, nll, (weight * loss).sum().reshape(1)])
    error = ((found - torch.tensor(rows["report"])).abs() / found.abs()).max()
    kind = c.weights or c.type
    check(error < {"F64": 1e-12, "F32": 1e-6}.get(kind, 1e-3), name, "losses differ by", float(error))
    remember(kind + " (losses)", error)


def check_policy(folder, name):
    policy = Policy(os.path.join(folder, name + ".safetensors"))
    rows = {key: array for key, (_, array) in read(os.path.join(folder, name + ".rows"))[1].items()}
    policy.tell(rows["told"], int(rows["told"][2]))
    c, how = policy.c, rows["how"].astype(np.float64).reshape(-1, 3)
    kept = check_play(name, policy, rows, "drawn", how, lambda t, b: rows["noise"][t, b])
    check_play(name, policy, rows, "own", how, lambda t, b: session_noise(SEED, b, t * c.L, c.L))
    check_play(name, policy, rows, "still", how, lambda t, b: None)
    check_due(name, policy, rows, kept)
    check_losses(name, policy, rows)
    if c.weights:
        check_rounding(folder, name, policy)
    return policy


# ---- the tables of the page ----


class Page:
    """Letters, and rows of the tables of tensors: (kinds of blocks or None, pattern, cells)."""

    def __init__(self, path):
        self.letters, self.tensors, part, kinds, columns = {}, [], None, None, None
        for line in open(path, encoding="utf-8"):
            if line.startswith("## "):
                part, kinds = line[3:].strip(), None
            elif line.startswith("### "):  # of the part on blocks: their words
                kinds = line[4:].strip().split(", ") if part == "Blocks" else None
            cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
            if not line.startswith("|"):
                columns = None
            elif columns is None:
                columns = cells
            elif columns[0] == "letter" and set(cells[0]) != {"-"}:
                self.letters[cells[0]] = cells[1]
            elif columns[0] == "tensor" and set(cells[0]) != {"-"}:
                pattern = re.escape(cells[0]).replace("<i>", r"(?P<i>\d+)")
                for word in ("id", "condition", "head"):
                    pattern = pattern.replace("<%s>" % word, r"(?P<%s>[a-z0-9_.]+)" % word)
                pattern = pattern.replace("<k>", r"(?P<k>[1-9])")
                self.tensors.append((kinds, re.compile(pattern + "$"), dict(zip(columns, cells))))
        self.used = set()
        check(self.letters and any(kinds for kinds, _, _ in self.tensors), "no tables in", path)

    def find(self, config, name):
        """The only row for a tensor, and what its expressions may name."""
        found = []
        for kinds, pattern, row in self.tensors:
            match = pattern.match(name)
            if not match:
                continue
            block, one = match.groupdict().get("i"), match.groupdict().get("id")
            kind = config.kinds[int(block)] if block else None
            if kinds is None or kind in kinds:
                names = self.values(config, kind, int(block or 0))
                told = match.groupdict().get("condition")
                names["condition"] = next(
                    (types.SimpleNamespace(**i) for i in config.conditions if i["name"] == told), None)
                names["head"] = next((types.SimpleNamespace(first=config.first[h], **one) for h, one in enumerate(config.heads)
                                      if one["name"] == match.groupdict().get("head")), None)
                names["k"] = int(match.groupdict().get("k") or 0)
                names["id"] = next((types.SimpleNamespace(**i) for i in config.ids if i["name"] == one), None)
                found.append((row, names))
        check(len(found) == 1, name, "stands in", len(found), "rows of the page")
        return found[0] if found else (None, None)

    def values(self, config, kind, block):
        def bernoulli(logit):
            return config.heads[max(h for h, first in enumerate(config.first) if first <= logit)]["kind"] == "bernoulli"

        names = dict(vars(config), sum=sum, sqrt=math.sqrt, log=math.log, kind=kind, bernoulli=bernoulli)
        names.update(count=lambda _: len(config.kinds), len=len, block=block, width_before=config.width_before)
        for several in ("heads", "ids", "conditions"):
            keys = ("count", "width")
            names[several] = types.SimpleNamespace(**{k: [one.get(k, 0) for one in getattr(config, several)] for k in keys})
        for letter, text in self.letters.items():
            names[letter] = evaluate(text, names)
        return names


def evaluate(text, names):
    return eval(text, {"__builtins__": {}}, dict(names))  # the page is ours


def check_start(name, row, names, values):
    text = row["starts as"]
    if text.startswith("+-"):
        most = evaluate(text[2:], names)
        check(np.abs(values).max() <= most * (1 + 1e-6), name, "starts beyond", text)
        check(np.abs(values).max() >= most * 0.5 ** (40 / values.size), name, "starts within less than", text)
        return
    if text == "dt":
        steps = np.log1p(np.exp(values.astype(np.float64)))
        good = 0.001 * (1 - 1e-5) <= steps.min() and steps.max() <= 0.1 * (1 + 1e-5)
        check(good, name, "steps from", steps.min(), "to", steps.max())
        check(steps.max() / steps.min() > 5, name, "steps are all alike")
        return
    wanted = [[evaluate(text, dict(names, i=i, n=n)) for n in range(values.shape[1] if values.ndim > 1 else 1)]
              for i in range(len(values))]
    check(np.allclose(values.reshape(len(values), -1), wanted, rtol=1e-6, atol=0), name, "does not start as", text)


def check_tables(page, folder, name, policy):
    """Names, shapes and types of the policy; where it decays and what it started as, from the files beside it."""
    c, plain = policy.c, None
    if not c.weights:
        plain = [read(os.path.join(folder, "%s.%s.safetensors" % (name, word)))[1] for word in ("fresh", "decayed")]
        check(all(set(file) == set(policy.file) for file in plain), name, "files have other tensors")
    for tensor, (kind, array) in policy.file.items():
        if tensor.endswith(".scale") and tensor[:-6] in policy.file:
            matrix = policy.file[tensor[:-6]]
            check(matrix[0] == "I8" and kind == "F32" and array.shape == matrix[1].shape[:1], name, tensor, "is no scale")
            continue
        row, names = page.find(c, tensor)
        if not row:
            continue
        page.used.add(id(row))
        shape = evaluate(row["shape"], names)
        check(list(array.shape) == shape, name, tensor, "has shape", array.shape, "the page says", shape)
        text = row["rounded"]
        if " if " in text:
            text = evaluate(text, dict(names, BF16="BF16", no="no"))
        rounded = {"no": None, "BF16": c.weights and "BF16", "I8": c.weights}[text]
        check(kind == (rounded or c.type), name, tensor, "is", kind, "the page says", rounded or c.type)
        if plain:
            fresh, decayed = (file[tensor][1] for file in plain)
            half = 0.5 if row["decays"] == "yes" else 1.0
            check(np.array_equal(decayed, fresh * half), name, tensor, "decays otherwise than the page says:", row["decays"])
            check_start(name + " " + tensor, row, names, fresh)
    for tensor, (kind, _) in policy.file.items():
        check(kind != "I8" or tensor + ".scale" in policy.file, name, tensor, "has no scales")


def main():
    page, folder = Page(sys.argv[1]), sys.argv[2]
    names = sorted(file[:-5] for file in os.listdir(folder) if file.endswith(".rows"))
    check(names, "no policies in", folder)
    for name in names:
        check_tables(page, folder, name, check_policy(folder, name))
    for _, _, row in page.tensors:
        check(id(row) in page.used, "no policy has", row["tensor"])
    for name, error in sorted(worst.items()):
        print("%-40s %.2g" % (name, error))
    print("%d policies, %d rows of tables" % (len(names), len(page.tensors)))
    for line in failures:
        print("FAILED:", line)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
