"""Ranks of an MPI: each case runs in processes of its own, started by mpirun."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
pytestmark = pytest.mark.skipif(
    not MPIRUN or importlib.util.find_spec("mpi4py") is None, reason="no mpi4py with an mpirun: exphil.mpi is untested"
)


@pytest.mark.parametrize("case, ranks", [("sums", 1), ("sums", 3), ("train", 2), ("late", 3), ("unequal", 2)])
def test_ranks(case, ranks):
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    program = pathlib.Path(__file__).with_name("mpi_case.py")
    done = subprocess.run([MPIRUN, "-n", str(ranks), sys.executable, str(program), case], env={**os.environ, **allowed},
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [case]
