"""Ranks with a GPU each: on emulated ones, with a stand-in for NCCL, where the library was built with them."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PLUGINS = pathlib.Path(os.environ.get("EXPHIL_BUILD", "/nowhere"), "tests", "plugin-emulated")
PROGRAM = shutil.which("exphil")
pytestmark = pytest.mark.skipif(
    not PROGRAM or not (PLUGINS / "libfake_nccl.so").exists(), reason="no emulated GPU: exphil.Ranks is untested"
)


def test_ranks_of_gpus():
    emulated = {"EXPHIL_BACKEND_DIR": str(PLUGINS), "EXPHIL_NCCL": str(PLUGINS / "libfake_nccl.so"), "EXPHIL_CUBLASLT": "none",
                "EXPHIL_EMULATED_GPUS": "3"}
    program = pathlib.Path(__file__).with_name("ranks_case.py")
    done = subprocess.run([PROGRAM, "launch", "-n", "3", "--max-restarts", "0", "--", sys.executable, str(program)],
                          env={**os.environ, **emulated}, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    found = [line.rpartition(" ")[2] for line in done.stdout.splitlines()]
    assert len(found) == 3 and len(set(found)) == 1, done.stdout
    assert "a mistake" not in done.stderr, done.stderr
