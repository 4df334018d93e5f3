"""Reads event files with TensorBoard's own reader and compares them with a training log.

events_check.py probe | FOLDER LOG [killed]
Every number of the log, of its last line for each kind and update, is a scalar of its kind and name at its update, to single
precision, and there are no others. Of a run that was killed one line more may be among the events, which are written first.
"""
import json
import math
import struct
import sys


def numbers(tag, value):
    if isinstance(value, dict):
        for name, member in value.items():
            if name != "update":
                yield from numbers(f"{tag}/{name}", member)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield tag, struct.unpack("<f", struct.pack("<f", value))[0]


def logged(path):
    """{tag: {update: value}}, where a resumed run has made updates again of the later lines only."""
    wanted, last, trained = {}, -1, -1
    for text in open(path):
        line = json.loads(text)
        kind, update = line.get("kind"), line.get("update")
        if kind not in ("train", "held_out", "held_out_all", "train_set"):
            continue
        if update < last or (kind == "train" and update <= trained):
            for steps in wanted.values():
                for step in [step for step in steps if step >= update]:
                    del steps[step]
        last = update
        trained = update if kind == "train" else trained
        for tag, value in numbers(kind, line):
            wanted.setdefault(tag, {})[update] = value
    return {tag: steps for tag, steps in wanted.items() if steps}


def main():
    from tensorboard.backend.event_processing import event_accumulator

    if sys.argv[1] == "probe":
        return
    reader = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={event_accumulator.SCALARS: 0})
    reader.Reload()
    wanted = logged(sys.argv[2])
    found = {}
    for tag in reader.Tags()["scalars"]:
        scalars = reader.Scalars(tag)
        steps = [scalar.step for scalar in scalars]
        assert steps == sorted(steps), f"{tag}: steps {steps}"
        if tag.startswith("train/"):
            assert len(set(steps)) == len(steps), f"{tag}: steps twice: {steps}"
        assert all(scalar.wall_time > 0 for scalar in scalars), f"{tag}: no time"
        if scalars:
            found[tag] = {scalar.step: scalar.value for scalar in scalars}
    if sys.argv[3:] == ["killed"]:
        last = max(max(steps) for steps in wanted.values())
        found = {tag: {step: value for step, value in steps.items() if step <= last} for tag, steps in found.items()}
        for tag in [tag for tag in found if not tag.startswith("train/")]:  # of the same update as the last line
            found[tag] = {step: value for step, value in found[tag].items() if step in wanted.get(tag, {})}
        found = {tag: steps for tag, steps in found.items() if steps}
    assert found.keys() == wanted.keys(), sorted(found.keys() ^ wanted.keys())
    for tag, steps in wanted.items():
        assert found[tag].keys() == steps.keys(), f"{tag}: updates {sorted(found[tag].keys() ^ steps.keys())[:9]}"
        for step, value in steps.items():  # the log has 12 digits: the last bit of single precision may be another
            assert math.isclose(found[tag][step], value, rel_tol=2.0**-23), f"{tag} {step}: {found[tag][step]}, not {value}"
    print(len(found), "scalars,", sum(map(len, found.values())), "values")


main()
