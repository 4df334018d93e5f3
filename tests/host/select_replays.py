"""Replays of all kinds out of recordings of the drill, for tests of selections: select_replays.py OUT DRILL...

A drill is a game of two people who play Fox on Final Destination; its start and end events are changed here. expected.json
in OUT says of each file stage, frames and characters.
"""
import gzip
import json
import pathlib
import sys

START = 0x26  # of the game start event, behind the sizes of events
END = bytes([0x39, 7, 255, 255, 255, 255, 255])
FOX, FALCO, MARTH = 2, 20, 9
FINAL_DESTINATION, BATTLEFIELD = 32, 31


def change(data, seed, stage=FINAL_DESTINATION, characters=(FOX, FOX), types=(0, 0), teams=None, items=False, version=None,
           day=None, won=None, cut=0):
    data = bytearray(data)
    assert data[START] == 0x36 and data.count(END) == 1
    data[START + 0x13D:START + 0x141] = seed.to_bytes(4, "big")
    data[START + 0x13:START + 0x15] = stage.to_bytes(2, "big")
    data[START + 0x10] = 2 if items else 255
    data[START + 0xD] = teams is not None
    for port in range(2):
        data[START + 0x65 + 0x24 * port] = characters[port]
        data[START + 0x66 + 0x24 * port] = types[port]
        data[START + 0x6E + 0x24 * port] = teams[port] if teams else 0
    if version:
        data[START + 1:START + 4] = bytes(version)
    if won:
        at = data.index(END)
        data[at:at + len(END)] = bytes([0x39, 2, 255, won - 1, 2 - won, 255, 255])
    if day:
        date = f"{day}T10:00:00Z".encode()
        data = data.replace(b"metadata{}", b"metadata{U\x07startAtSU" + bytes([len(date)]) + date + b"}")
    return bytes(data[:len(data) - cut] if cut else data)


def main(out, *drills):
    out = pathlib.Path(out)
    short, long = (pathlib.Path(drill).read_bytes() for drill in drills)
    kinds = {
        "01": dict(data=long, characters=(FOX, FALCO), day="2024-02-29", won=1),
        "02": dict(data=long, characters=(FALCO, FOX), day="2024-03-01", won=2, stage=BATTLEFIELD),
        "03": dict(data=long, characters=(MARTH, FALCO), day="2025-12-31", won=2),
        "04": dict(data=long, characters=(FOX, MARTH), types=(0, 1), day="2025-12-31"),
        "05": dict(data=long, teams=(0, 1), items=True),
        "06": dict(data=long, version=(3, 9, 0), stage=BATTLEFIELD),
        "07": dict(data=short),
        "08": dict(data=short, characters=(FALCO, FALCO), won=1),
        "09": dict(data=long, cut=60000),
        "10": dict(data=long, types=(0, 3)),
    }
    expected = {}
    for i, (name, kind) in enumerate(kinds.items()):
        data = kind.pop("data")
        expected[name] = {"stage": kind.get("stage", FINAL_DESTINATION), "characters": kind.get("characters", (FOX, FOX)),
                          "types": kind.get("types", (0, 0)), "long": data is long and not kind.get("cut")}
        (out / f"{name}.slp").write_bytes(change(data, seed=1000 + i, **kind))
    # the same file again; the same match by another recorder, which stopped early; what is no replay
    (out / "copy.slp").write_bytes((out / "01.slp").read_bytes())
    (out / "packed.slp.gz").write_bytes(gzip.compress((out / "02.slp").read_bytes()))
    (out / "stopped.slp").write_bytes((out / "03.slp").read_bytes()[:-2000])
    (out / "noise.slp").write_bytes(bytes(range(256)) * 40)
    (out / "words.slp").write_text("no replay")
    (out / "none.slp").write_bytes(b"")
    (out / "../expected.json").write_text(json.dumps(expected))


main(*sys.argv[1:])
