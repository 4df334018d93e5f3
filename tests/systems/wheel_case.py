"""What somebody does first with an installed wheel: learns from a replay, plays, keeps replays small. Prints what came of it, which
is the same on every system.

usage: wheel_case.py REPLAY FOLDER
"""
import hashlib
import os
import sys

import numpy as np

import exphil

replay, folder = sys.argv[1:3]


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def told(name):
    with open(os.path.join(folder, name), "rb") as file:
        data = file.read()
    return f"{len(data)} {digest(data)}"


package = os.path.dirname(os.path.abspath(exphil.__file__))
assert os.path.dirname(os.path.abspath(exphil.library_path())) == package, exphil.library_path()
# The manual and the ready policies.
assert os.path.isfile(os.path.join(package, "include", "exphil", "exphil.h"))
for name in ("drill", "pong", "cartpole"):
    assert exphil.ready(name) == os.path.join(package, "policies", f"{name}.safetensors"), exphil.ready(name)
    exphil.Model.load(exphil.ready(name)).close()
data = exphil.Dataset()
print("frames", data.add_replay(replay, port=1).frames)
model = exphil.Model(blocks="gru", hidden=64, no_previous_action=True, seed=1)
trainer = exphil.Trainer(model, data, rate=1e-2, batch=8)
losses = [metrics.loss for metrics in trainer.train(updates=100)]
assert losses[-1] < losses[0] / 2, losses
print("loss", losses[-1].hex())
trainer.save(os.path.join(folder, "case.safetensors"))
print("weights", told("case.safetensors"))

session = exphil.Session(exphil.Model.load(os.path.join(folder, "case.safetensors")), seed=1)
rows = data.rows(0, 300)
logits, actions = hashlib.sha256(), []
for t in range(300):
    session.floats[:], session.ids[:] = rows.floats[t], rows.ids[t]
    actions.append(session.step_row().copy())
    logits.update(session.logits.tobytes())
print("actions", digest(np.concatenate(actions).tobytes()), "logits", logits.hexdigest()[:16])

# Compressed, by what is in the wheel.
with exphil.GamesWriter(os.path.join(folder, "case.games")) as writer:
    writer.add_replays(replay)
small = os.path.getsize(os.path.join(folder, "case.games"))
assert small < os.path.getsize(replay) / 4, small
games = exphil.Games(os.path.join(folder, "case.games"))
back = exphil.Dataset()
back.add_games(games, port=1)
assert np.array_equal(back.rows(0, 300).floats, rows.floats)
print("games", told("case.games"))
