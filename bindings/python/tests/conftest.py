"""What the tests share: small models and datasets, a recorded drill, the folder of the common trace."""
import gc
import os
import shutil
import subprocess

import numpy as np
import pytest

import exphil


def pytest_collection_finish():
    """Tests that collect garbage often look at what tests made, not at all the modules (torch among them) each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def spec():
    """A small game: floats, one id, bits and classes."""
    heads = (exphil.HeadSpec("buttons", "bernoulli", 3), exphil.HeadSpec("stick", "categorical", 5, neutral=2))
    return exphil.Spec("tiny", "tiny", 6, heads, (exphil.IdSpec("stage", 4),))


def rows(count, seed=0):
    """A learnable episode: the stick follows the first float, the buttons the id."""
    draw = np.random.default_rng(seed)
    floats = draw.standard_normal((count, 6)).astype(np.float32)
    ids = draw.integers(0, 4, (count, 1), dtype=np.int32)
    actions = np.stack([ids[:, 0] % 2, np.clip(floats[:, 0] + 2, 0, 4).astype(np.int32)], 1).astype(np.int32)
    return floats, ids, actions


@pytest.fixture
def dataset(spec):
    """Eight episodes of 200 frames."""
    made = exphil.Dataset(spec)
    for game in range(8):
        made.add_rows(*rows(200, game), game=game)
    return made


@pytest.fixture
def model(spec):
    """A policy small enough to step in microseconds."""
    return exphil.Model(spec, blocks="gru", hidden=16, head_width=16, seed=3)


@pytest.fixture(scope="session")
def trace_folder():
    """Folder with policy.safetensors, frames.trace and small.safetensors."""
    folder = os.environ.get("EXPHIL_TRACE")
    if not folder:
        pytest.skip("EXPHIL_TRACE is not set")
    return folder


@pytest.fixture(scope="session")
def drill(tmp_path_factory):
    """A replay of the scripted drill, half a minute."""
    program = shutil.which("exphil") or os.path.join(os.environ.get("EXPHIL_PREFIX", ""), "bin", "exphil")
    if not os.path.exists(program):
        pytest.skip("the program exphil is not installed: set EXPHIL_PREFIX")
    path = str(tmp_path_factory.mktemp("drill") / "drill.slp")
    subprocess.run([program, "drill", "--frames", "1800", "--out", path], check=True, stdout=subprocess.DEVNULL)
    return path
