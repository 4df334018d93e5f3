"""Rewards of a replay by its own reading and arithmetic: what exphil_melee_reward is compared with.

    reward_reference.py READER LIST

READER is the path of slp_reference.py, which is no part of this repository. LIST has a line "PATH own_port opponent_port" for each
game and player. Prints for each a line of stocks that were lost by either, then a line of rewards, one a frame from the second on,
as bits of floats: with the usual terms, and with all of them.
"""
import importlib.util
import math
import struct
import sys

EDGES = {2: 63.3475494385, 3: 87.75, 8: 56.0, 28: 77.2713012695, 31: 68.4000015259, 32: 85.5656967163}
USUAL = {"stock": 1.0, "damage": 0.01, "nana": 0.5, "ledge": 0.0, "stall": 0.0, "far": 20.0, "approach": 0.0}
ALL = {"stock": 2.0, "damage": 0.02, "nana": 0.25, "ledge": 0.3, "stall": 0.6, "far": 12.0, "approach": 0.001}


def load(path):
    spec = importlib.util.spec_from_file_location("slp_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Seen:
    """A character at the end of a frame."""

    def __init__(self, reader, event):
        get = lambda name: reader.field(event, reader.POST_FIELDS, name)
        self.x, self.y, self.percent, self.state, self.stocks = (get(n) for n in ("x", "y", "percent", "action_state", "stocks"))
        self.hurtbox = get("hurtbox") or 0


def hurt(weights, before, now):
    if before is None or now is None:
        return 0.0
    died = weights["stock"] if now.state <= 10 < before.state else 0.0
    return died + weights["damage"] * max(0.0, now.percent - before.percent)


def quality(weights, edge, was, now, port, other):
    a, b = was.get((port, 0)), now.get((port, 0))
    foe_was, foe = was.get((other, 0)), now.get((other, 0))
    if a is None or b is None:
        return 0.0
    q = -hurt(weights, a, b)
    q -= weights["nana"] * hurt(weights, was.get((port, 1)), now.get((port, 1)))
    if weights["ledge"] and b.state == 252 != a.state and foe is not None and not foe.hurtbox and abs(foe.x) < abs(b.x):
        q -= weights["ledge"]
    if weights["stall"] and edge:
        beside, under = max(abs(b.x) - edge, 0.0), max(-b.y, b.y - 60.0, 0.0)
        if math.sqrt(beside * beside + under * under) > weights["far"]:
            q -= weights["stall"] / 60.0
    if weights["approach"] and foe_was is not None and a.state > 13 and b.state > 13:
        dx, dy = foe_was.x - a.x, foe_was.y - a.y
        far = math.sqrt(dx * dx + dy * dy)
        if far:
            q += weights["approach"] * (((b.x - a.x) * dx + (b.y - a.y) * dy) / far)
    return q


def show(reader, path, own, other):
    with open(path, "rb") as file:
        replay = reader.Replay(file.read())
    edge = single(EDGES.get(replay.settings()["stage"], 0.0))
    frames = [(i.frame, {slot: Seen(reader, post) for slot, post in i.post.items()}) for i in replay.frames]
    lost = {port: 0 for port in (own, other)}
    for port in lost:
        seen = [f[(port, 0)].stocks for _, f in frames if (port, 0) in f]
        lost[port] = sum(max(0, a - b) for a, b in zip(seen, seen[1:]))
    print(lost[own], lost[other])
    for weights in (USUAL, ALL):
        bits = []
        for (f, was), (g, now) in zip(frames, frames[1:]):
            value = 0.0
            if g == f + 1:
                value = quality(weights, edge, was, now, own, other) - quality(weights, edge, was, now, other, own)
            bits.append(struct.unpack("<I", struct.pack("<f", value))[0])
        print(" ".join(map(str, bits)))


def main():
    reader = load(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        for line in file:
            path, own, other = line.rstrip("\n").rsplit(" ", 2)
            show(reader, path, int(own) - 1, int(other) - 1)


if __name__ == "__main__":
    main()
