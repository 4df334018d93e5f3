"""A drill in which stocks are lost: outcome_replays.py DRILL OUT METHOD PORT:FRAME... Each PORT, 1 or 2, dies in that frame, is
away for a second and comes back with 0 percent. METHOD: how the game ends, 2 as the game decides, 7 broken off.

rewards(path, port) reads such a file anew: what each frame from the first on is worth to a port, a stock 1 and a percent 0.01."""

import pathlib
import struct
import sys

START = 0x26 + 761  # the first frame, behind sizes and game start
FRAME, POST, EACH = 322, 13 + 130, 85  # bytes of a frame; where its post-frame events begin, and of each
FIRST, AWAY = -123, 60


def post(frame, port):
    return START + (frame - FIRST) * FRAME + POST + EACH * (port - 1)


def state(data, frame, port):
    """Action state, percent and stocks."""
    at = post(frame, port)
    assert data[at] == 0x38 and data[at + 5] == port - 1
    return struct.unpack_from(">H", data, at + 8)[0], struct.unpack_from(">f", data, at + 0x16)[0], data[at + 0x21]


def frames_of(data):
    count = 0
    while data[START + count * FRAME] == 0x3A:
        count += 1
    return count


def die(data, port, frame, last):
    lost = state(data, frame - 1, port)[1]
    for f in range(frame, last + 1):
        action, percent, stocks = state(data, f, port)
        away = f < frame + AWAY
        struct.pack_into(">H", data, post(f, port) + 8, 0 if away else action)
        struct.pack_into(">f", data, post(f, port) + 0x16, lost if away else max(0.0, percent - lost))
        data[post(f, port) + 0x21] = stocks - 1


def rewards(path, port):
    data = pathlib.Path(path).read_bytes()
    found = [0.0]
    for f in range(FIRST + 1, FIRST + frames_of(data)):
        lost = []
        for who in port, 3 - port:
            (was, before, _), (action, percent, _) = state(data, f - 1, who), state(data, f, who)
            lost.append((action <= 10 < was) + 0.01 * max(0.0, percent - before))
        found.append(lost[1] - lost[0])
    return found


def main(drill, out, method, *deaths):
    data = bytearray(pathlib.Path(drill).read_bytes())
    count = frames_of(data)
    for port, frame in sorted((tuple(map(int, death.split(":"))) for death in deaths), key=lambda death: death[1]):
        die(data, port, frame, FIRST + count - 1)
    end = START + count * FRAME
    assert data[end] == 0x39
    data[end + 1] = int(method)
    pathlib.Path(out).write_bytes(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
