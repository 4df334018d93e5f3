#!/usr/bin/env python3
"""A bot that plays `exphil drill --pipe` with an exported policy: numpy, ONNX Runtime and the .onnx file, nothing else.

    mkfifo pads
    exphil drill --seed 2 --pipe <pads | python3 drill_bot.py fox.onnx >pads

What a frame becomes and what an action presses is read from the file (doc/onnx.md): Policy knows no game, Row and Pad know
what the file says of Melee, and `numbers` is all that this bot knows of the drill.
"""
import argparse
import json
import math
import sys

import numpy as np
import onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
EDGE = 85.5656967163086  # x of the right edge of Final Destination, the drill's stage


class Policy:
    """The step of one stream, whatever the policy is: states are the inputs that come out again as NAME_out."""

    def __init__(self, path, temperature=1.0, seed=0, delay=None, play_as=""):
        open(path, "rb").close()  # says better than ONNX Runtime that there is none
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # a step is too small to share
        try:
            self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its exceptions have no class in common
            raise ValueError("%s: ONNX Runtime does not take it: %s" % (path, str(error).splitlines()[0])) from None
        found = self.session.get_modelmeta().custom_metadata_map
        if "exphil.model" not in found:
            raise ValueError("%s: this is not what exphil export --onnx writes" % path)
        self.meta = {name: json.loads(text) for name, text in found.items() if name.startswith("exphil.")}
        self.outputs = [value.name for value in self.session.get_outputs()]
        self.zero = {value.name: np.zeros([1 if n == "N" else n for n in value.shape], TYPES[value.type])
                     for value in self.session.get_inputs()}
        self.random = np.random.default_rng(seed)
        self.settings = {"temperature": temperature, "press": 0.5, "release": 0.5,
                         "delay": self.delay(delay), "conditions": self.conditions(play_as)}
        self.reset()

    def delay(self, asked):
        model = self.meta["exphil.model"]
        delays = model.get("delays", [model["delay_frames"]])
        if asked is None and len(delays) == 1:
            return delays[0]
        if asked not in delays:
            raise ValueError("this policy wants --delay %s%s" % (" or ".join(map(str, delays)),
                                                                 "" if asked is None else ", not %d" % asked))
        return asked

    def conditions(self, play_as):
        known = self.meta["exphil.model"].get("conditions", [])
        told = {one["name"]: 0 for one in known}
        most = {one["name"]: str(one["values"]) for one in known}
        for word in filter(None, play_as.split(",")):
            name, _, value = word.partition("=")
            if name not in told or not value.isdecimal() or int(value) > int(most[name]):
                wanted = ", ".join("%s=0..%s" % one for one in most.items())
                raise ValueError("--play-as wants %s, not %s" % (wanted or "nothing: this policy has no conditions", word))
            told[name] = int(value)
        return list(told.values())

    def reset(self):
        """An episode begins."""
        self.inputs = {name: array.copy() for name, array in self.zero.items()}
        for name, value in self.settings.items():
            if name in self.inputs:
                self.inputs[name][:] = value
        if "past" in self.inputs:
            self.inputs["past"][:] = [head["neutral"] for head in self.meta["exphil.model"]["heads"]]

    def step(self, floats, ids):
        """The action that acts in this frame, a value for each head."""
        for name, values in (("floats", floats), ("ids", ids)):
            if name in self.inputs:
                self.inputs[name][0] = values
        self.inputs["noise"][:] = np.clip(self.random.random(self.inputs["noise"].shape), 2.0 ** -24, 1 - 2.0 ** -24)
        out = dict(zip(self.outputs, self.session.run(None, self.inputs)))
        self.inputs.update({name: out[name + "_out"] for name in self.inputs if name + "_out" in out})
        return out["actions"][0]


class Row:
    """Numbers by the names of columns become a row, by the table of the layout. What has no number is absent: 0.

    rules: of each column that has a `rule`, by its name, a function of all numbers that gives its number by that rule.
    """

    def __init__(self, layout, model, rules=None):
        self.columns = layout["columns"]
        self.size = model["float_count"], len(model["ids"])
        self.rules = {} if rules is None else rules
        self.places = {}
        for column in self.columns:
            if "rule" in column and column["name"] not in self.rules:
                raise ValueError("layout %s: %s is not as it is recorded, but: %s; give Row a function for it"
                                 % (layout["name"], column["name"], column["rule"]))
            if "values" in column:
                self.places[column["name"]] = {number: place for place, value in enumerate(column["values"])
                                               for number in (value if isinstance(value, list) else [value])}

    def make(self, number):
        floats, ids = np.zeros(self.size[0], np.float32), np.zeros(self.size[1], np.int64)
        for column in self.columns:
            name, at, low, high = column["name"], column["offset"], column["low"], column["high"]
            value = number.get(name, 0)
            if not math.isfinite(value):
                raise ValueError("%s is not finite" % name)
            if column["of"] == "ids":
                ids[at] = min(max(int(value), low), high)
            elif "values" in column:
                if name in number:
                    value = self.rules[name](number) if "rule" in column else value
                    place = self.places[name].get(value, self.places[name].get("other"))
                    if place is not None:
                        floats[at + place] = 1
            elif column["scale"]:
                floats[at] = min(max(value * column["scale"], low), high)
            elif high:
                floats[at] = 1 if value else 0
        return floats, ids


class Pad:
    """Values of the heads become a controller, by the table of the codec."""

    def __init__(self, codec):
        self.heads = codec["heads"]

    def make(self, action):
        pad = {"buttons": 0}
        for head, value in zip(self.heads, action.tolist()):
            if head["moves"] == "buttons":
                pad["buttons"] += sum(mask for bit, mask in enumerate(head["values"]) if value >> bit & 1)
            else:
                pad[head["moves"]] = head["values"][value]
        return pad


def numbers(frame):
    """What the drill shows, by the names of melee2's columns."""
    by_port = {player["port"]: player for player in frame["players"]}
    own, opponent = by_port[frame["own_port"]], by_port[frame["opponent_port"]]
    number = {"time.clock": frame["frame"], "time.playable": frame["frame"] >= -39, "stage": frame["stage"], "stage.edge": EDGE}
    for who, body in (("own", own), ("opponent", opponent)):
        number.update({"%s.%s" % (who, name): value for name, value in body.items()})
        number.update({"%s.known_%s" % (who, what): 1 for what in ("age", "flags", "hurtbox", "speed", "hitlag")})
        side = -1 if body["facing"] < 0 else 1
        number.update({who + ".present": 1, who + ".age": int(body["state_age"]) + 2, who + ".hurtbox": 0,
                       who + ".edge": EDGE - abs(body["x"]), who + ".edge_ahead": EDGE - body["x"] * side})
    dx, dy = opponent["x"] - own["x"], opponent["y"] - own["y"]
    number.update({"pair.dx": dx, "pair.dy": dy, "pair.distance": (dx * dx + dy * dy) ** 0.5,
                   "pair.ahead": dx * (-1 if own["facing"] < 0 else 1)})
    return number


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("policy", help="what exphil export --onnx wrote")
    options.add_argument("--temperature", type=float, default=0.0, help="0 (default): always the most likely; 1: as it learnt")
    options.add_argument("--seed", type=int, default=0, help="of what is drawn")
    options.add_argument("--delay", type=int, help="of a policy with several: play this one (no default)")
    options.add_argument("--play-as", default="", help="tell the policy who it is, as player=3,rank=2 (default: nothing)")
    asked = options.parse_args()
    try:
        policy = Policy(asked.policy, asked.temperature, asked.seed, asked.delay, asked.play_as)
        if policy.meta.get("exphil.layout", {}).get("name") != "melee2":
            raise ValueError("%s: this bot has the numbers of layout melee2, and the policy wants %s"
                             % (asked.policy, policy.meta["exphil.model"]["layout"]))
        row, pad = Row(policy.meta["exphil.layout"], policy.meta["exphil.model"]), Pad(policy.meta["exphil.codec"])
    except (OSError, ValueError) as error:
        options.exit(2, "drill_bot.py: %s\n" % error)
    for line in sys.stdin:
        frame = json.loads(line)
        if "hits" in frame:
            print("%(hits)d hits in %(frames)d frames, the teacher %(teacher_hits)d" % frame, file=sys.stderr)
            break
        print(json.dumps(pad.make(policy.step(*row.make(numbers(frame))))), flush=True)


if __name__ == "__main__":
    main()
