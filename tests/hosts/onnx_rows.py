"""Rows that the bot of examples/onnx makes by the layout in the .onnx file, beside those of the library's encoder (onnx_rows.c).

Usage: onnx_rows.py EXAMPLE FOLDER     every layout, every frame: floats and ids must be equal.
What is here of Melee is what a host reads in the game, by the columns' `source`.
"""
import json
import math
import pathlib
import sys

import numpy as np
import onnx

LAYOUTS = ("melee2", "exphil288", "slippi", "slippi-nana")
EDGES = {2: 63.3475494385, 3: 87.75, 8: 56.0, 28: 77.2713012695, 31: 68.4000015259, 32: 85.5656967163}
SPEEDS = ("speed_air_x", "speed_ground_x", "speed_y", "speed_attack_x", "speed_attack_y")
BITS = {"absorbing": (0, 0x02), "reflecting_owner": (0, 0x08), "reflecting": (0, 0x10), "intangible": (1, 0x04),
        "fast_falling": (1, 0x08), "in_hitlag_hit": (1, 0x10), "in_hitlag": (1, 0x20), "holding": (2, 0x04),
        "in_shield": (2, 0x80), "shield_touched": (3, 0x04), "powershield": (3, 0x20), "cloaked": (4, 0x02),
        "inactive": (4, 0x10), "dead": (4, 0x40), "offscreen": (4, 0x80), "in_hitstun": (3, 0x02)}
AGE, FLAGS, HURTBOX, SPEED, HITLAG = 1, 2, 4, 8, 16


def recorded(c):
    """What only later recorders know."""
    number = {"known_" + name: c["known"] >> bit & 1 for bit, name in enumerate(("age", "flags", "hurtbox", "speed", "hitlag"))}
    number.update(on_ground=1, jumps=0)
    if c["known"] & AGE:
        age = c["state_age"]
        number.update(state_age=age, action_frame=max(0, math.floor(age + 0.5)), age=int(min(max(age, -2), 61)) + 2)
    if c["known"] & FLAGS:
        number.update({name: int(c["flags"][byte] & mask != 0) for name, (byte, mask) in BITS.items()})
        number.update(jumps=c["jumps"], airborne=c["airborne"], on_ground=not c["airborne"], l_cancel=c["l_cancel"])
        number.update(hitstun=max(0, c["misc"]) if number["in_hitstun"] else 0)
    if c["known"] & HURTBOX:
        number.update(hurtbox=c["hurtbox"])
    if c["known"] & SPEED:
        number.update({name: c[name] for name in SPEEDS})
    if c["known"] & HITLAG:
        number.update(hitlag=c["hitlag"])
    return number


def body(layout, c, edge):
    """Numbers of a character, or of none."""
    if not c["present"]:
        nobody = {"exists": 0, "action": 0, "character": 0, "jumps": 0, "ledge_distance": 85}
        return {} if layout == "melee2" else dict(nobody, facing=-1 if layout.startswith("slippi") else 0)
    side = -1 if c["facing"] < 0 else 1
    number = {name: c[name] for name in ("x", "y", "facing", "percent", "shield", "stocks", "combo", "last_attack", "character",
                                         "state")}
    number.update(recorded(c), present=1, exists=1, action=c["state"], stock=c["stocks"], ledge_distance=85 - abs(c["x"]))
    if edge:
        number.update(edge=edge - abs(c["x"]), edge_ahead=edge - c["x"] * side)
    if layout == "exphil288":
        number.update(facing=side, hitstun=number.get("hitlag", 0),
                      invulnerable=c["known"] & FLAGS and c["flags"][0] & 0x14)
    if layout.startswith("slippi"):
        number.update(facing=1 if c["facing"] > 0 else -1, percent=int(max(0, c["percent"])),
                      invulnerable=number.get("hurtbox", 0) > 0)
    return number


def stage(frame):
    """Numbers of the stage, each on its own stage alone."""
    number = {"stage": frame["stage"] if frame["stage"] >= 0 else 65535}
    if frame["stage"] == 2:
        for side in ("left", "right"):
            number["stage.platform_" + side] = number["platform." + side] = frame["platform_" + side]
    if frame["stage"] == 3:
        number.update({"stage.stadium_kind": frame["stadium_kind"], "stage.stadium_event": frame["stadium_event"]})
    if frame["stage"] == 8:
        phase = frame["frame"] % 1200
        number.update({"stage.cloud": phase, "randall.x": -101.850006103516 + 0.35484 * (125 + phase) + 11.9 / 2,
                       "randall.y": -33.2489})
    if frame["stage"] == 28:
        number["stage.wind"] = frame["wind"]
    return number


def items(frame, own):
    """The nearest five."""
    def distance(item):
        return (item["x"] - own["x"]) ** 2 + (item["y"] - own["y"]) ** 2, item["spawn"]

    number = {}
    for slot, item in enumerate(sorted(frame["items"], key=distance)[:5]):
        made = {name: item[name] for name in ("x", "y", "facing", "speed_x", "speed_y", "timer", "damage", "state")}
        made.update(present=1, own=item["owner"] == frame["own_port"] - 1, nobody=item["owner"] < 0, type=item["type"] + 1,
                    opponent=item["owner"] == frame["opponent_port"] - 1, dx=item["x"] - own["x"], dy=item["y"] - own["y"])
        number.update({"item%d.%s" % (slot, name): value for name, value in made.items()})
    return number


def numbers(layout, frame):
    edge = float(np.float32(EDGES.get(frame["stage"], 0)))
    port, other = frame["own_port"] - 1, frame["opponent_port"] - 1
    own, opponent = frame["player"][port], frame["player"][other]
    number = {"time.clock": frame["frame"], "frame": frame["frame"], "time.playable": frame["frame"] >= -39, "name": 0,
              "stage.edge": edge, "items.count": len(frame["items"]), **stage(frame), **items(frame, own)}
    for who, c in (("own", own), ("opponent", opponent), ("own.nana", frame["follower"][port]),
                   ("opponent.nana", frame["follower"][other])):
        number.update({"%s.%s" % (who, name): value for name, value in body(layout, c, edge).items()})
    if opponent["present"]:
        dx, dy = opponent["x"] - own["x"], opponent["y"] - own["y"]
        number.update({"pair.dx": dx, "pair.dy": dy, "pair.distance": math.sqrt(dx * dx + dy * dy), "dx": dx, "dy": dy,
                       "pair.ahead": -dx if own["facing"] < 0 else dx, "distance": math.sqrt(dx * dx + dy * dy)})
    return number


def masked(number):
    """The rule of opponent.action."""
    state = number["opponent.action"]
    rolls = state in (200, 201) and number.get("opponent.known_age") and number["opponent.state_age"] < 7
    return 199 if rolls else state


def named(layout, of, at):
    return next(c["name"] for c in layout["columns"] if c["of"] == of and c["offset"] <= at < c["offset"] + c["count"])


def check(bot, folder, name, frames):
    """How many columns of how many frames differ; the first is printed."""
    meta = {one.key: one.value for one in onnx.load(folder / (name + ".onnx")).metadata_props}
    layout, model = json.loads(meta["exphil.layout"]), json.loads(meta["exphil.model"])
    rules = {column["name"]: masked for column in layout["columns"] if "rule" in column}
    assert bool(rules) == name.startswith("slippi")
    if rules:
        try:
            bot.Row(layout, model)
            raise SystemExit(name + ": Row takes a column that has a rule, without one")
        except ValueError as error:
            assert "opponent.action" in str(error) and "199 in place of 200" in str(error), error
    row, differ = bot.Row(layout, model, rules), 0
    width, ids = model["float_count"], len(model["ids"])
    wanted = np.frombuffer((folder / (name + ".rows")).read_bytes(), "i4").reshape(len(frames), width + ids)
    seen = np.zeros(width, bool)
    for t, frame in enumerate(frames):
        made = row.make(numbers(name, frame))
        seen |= made[0] != 0
        for of, got, is_one in (("floats", made[0], wanted[t, :width].view("f4")), ("ids", made[1], wanted[t, width:])):
            wrong = np.flatnonzero(got != is_one)
            if len(wrong) and not differ:
                at = wrong[0]
                print("%s frame %d: %s is %r, must be %r" % (name, t, named(layout, of, at), got[at], is_one[at]))
            differ += len(wrong)
    hot = [c["offset"] + i for c in layout["columns"] for i, value in enumerate(c.get("values", []))
           if value != [] and c["name"] != "name"]
    print("%-11s %d frames, %d columns differ; %d of %d columns of one-hots were set"
          % (name, len(frames), differ, seen[hot].sum(), len(hot)))
    return differ or seen[hot].mean() < 0.8


def main():
    sys.path.insert(0, sys.argv[1])
    import drill_bot
    folder = pathlib.Path(sys.argv[2])
    frames = [json.loads(line) for line in (folder / "frames").read_text().splitlines()]
    return any([check(drill_bot, folder, name, frames) for name in LAYOUTS])


if __name__ == "__main__":
    sys.exit(main())
