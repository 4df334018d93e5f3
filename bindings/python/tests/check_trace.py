"""check_trace.py MODEL TRACE: replays a trace through the package and demands the same actions and the same bits of
logits in every frame. The format is that of tests/hosts/trace.h."""
import struct
import sys

import numpy as np

import exphil

HEADER = struct.Struct("<8s6iQq")


def read_trace(path):
    """Header fields and the frames as one structured array."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < HEADER.size or data[:8] != b"exphtrc1":
        raise SystemExit(f"{path} is no trace")
    _, floats, ids, heads, logits, deterministic, _, seed, count = HEADER.unpack_from(data)
    row = np.dtype([("reset", "<i4"), ("floats", "<f4", floats), ("ids", "<i4", ids), ("actions", "<i4", heads),
                    ("logits", "<f4", logits)])
    if len(data) != HEADER.size + count * row.itemsize:
        raise SystemExit(f"{path} ends within a frame")
    return (floats, ids, heads, logits), seed, deterministic, np.frombuffer(data, row, offset=HEADER.size)


def main(model_path, trace_path):
    """Steps through the trace."""
    sizes, seed, deterministic, frames = read_trace(trace_path)
    with exphil.Model.load(model_path) as model:
        session = exphil.Session(model, seed=seed, deterministic=bool(deterministic))
    info = session.info
    if sizes != (info.float_count, info.id_count, info.head_count, info.logit_count):
        raise SystemExit(f"{trace_path} is of another model")
    for number, frame in enumerate(frames):
        if frame["reset"]:
            session.reset()
        actions = session.step_row(frame["floats"], frame["ids"])
        same = actions.tobytes() == frame["actions"].tobytes()
        if not same or session.logits.tobytes() != frame["logits"].tobytes():
            raise SystemExit(f"frame {number} differs")
    print(f"python: {len(frames)} frames identical")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("check_trace.py MODEL TRACE")
    main(*sys.argv[1:])
