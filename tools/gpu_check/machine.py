"""The machine: its card, the toolkit, and the programs and libraries that a check uses where they are there."""
import glob
import os
import re
import shutil
import subprocess

CUDA = "/usr/local/cuda"
FIELDS = ["name", "compute", "driver", "memory", "sm_clock", "memory_clock"]
QUERY = "name,compute_cap,driver_version,memory.total,clocks.max.sm,clocks.max.mem"

# Where pip puts it: nvidia/cu13/lib (CUDA 13), nvidia/cublas/lib (12), torch/lib (PyTorch with all of it inside).
IN_PYTHON = """
import glob, os, sys
for folder in sys.path:
    for part in ("nvidia/*/lib", "torch/lib"):
        for path in sorted(glob.glob(os.path.join(folder, part, "libcublasLt.so*"))):
            print(path)
"""


def output(*command):
    """What a program says; "" where there is none, or it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def find(program, *folders):
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), *folders]))


def card():
    """{name, compute, ...} of the first card, or {}."""
    line = output("nvidia-smi", "--query-gpu=" + QUERY, "--format=csv,noheader").splitlines()[:1]
    values = [value.strip() for value in line[0].split(",")] if line else []
    if len(values) != len(FIELDS):
        return {}
    facts = dict(zip(FIELDS, values))
    return facts | {"arch": facts["compute"].replace(".", "")}


def nvcc():
    """(path, release), or (None, None)."""
    path = find("nvcc", CUDA + "/bin")
    release = re.search(r"release (\S+),", output(path, "--version")) if path else None
    return path, release[1] if release else None


def sanitizer():
    return find("compute-sanitizer", CUDA + "/bin", CUDA + "/compute-sanitizer")


def ncu():
    return find("ncu", CUDA + "/bin", *sorted(glob.glob("/opt/nvidia/nsight-compute/*"), reverse=True))


def torch_of(python):
    return output(python, "-c", "import torch; print(torch.__version__)").strip()


def newest(paths):
    """libcublasLt.so.13 before .12 before one without a number: the plugin takes either."""
    def number(path):
        found = re.search(r"\.so\.(\d+)", path)
        return int(found[1]) if found else 0

    return max(paths, key=number, default=None)


def cublaslt_of(python):
    return newest(output(python, "-c", IN_PYTHON).split())


def cublaslt(python):
    """Path of cuBLASLt: as EXPHIL_CUBLASLT says, as the loader knows it, in the toolkit, or in python's PyTorch; or None."""
    asked = os.environ.get("EXPHIL_CUBLASLT")
    if asked and asked != "none":
        return asked
    known = re.findall(r"=> (\S*/libcublasLt\.so\S*)", output("ldconfig", "-p") or output("/sbin/ldconfig", "-p"))
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":") + [CUDA + "/lib64", CUDA + "/targets/x86_64-linux/lib"]
    given = [path for folder in folders if folder for path in glob.glob(os.path.join(folder, "libcublasLt.so*"))]
    return newest(known + given) or cublaslt_of(python)
