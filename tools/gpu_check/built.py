"""The programs of a check: built here for a card, packed for another machine, unpacked there, or those of the emulated GPU."""
import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from . import machine

try:
    import lzma
except ImportError:  # a python3 that was built without it
    lzma = None

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAME = "exphil-gpu-check"  # the folder in an archive
PLUGIN = "libexphil_cuda.so"
STAND_IN = "librefusing_cublasLt.so"  # a cuBLASLt that refuses every product, for rehearsals
PROGRAMS = ["cuda_kernels", "cuda_policy", "cuda_times", "exphil"]
TARGETS = ["exphil_cuda", "card_tests", "cuda_kernels", "cuda_policy", "cuda_times", "exphil_program"]
# What the emulated GPU's tests say of the emulator itself and of stand-ins, and whole runs, of which card_run_test makes those that
# a card can.
OF_THE_EMULATOR = re.compile(r"cuda_(blaslt|cancel|choices|conv_parts|cudnn|cudnn_train|device|faults|graph|joined|joined_plan|"
                             r"learn|learn_loss|limit|memory|odd_files|ops|plan|play|ranks|ranks_\w+|refusal|rnn_room|"
                             r"runtime|scale|threads|training|transposed|tune|ucontext|units)_test$")
# What every machine with a driver has; all else must be in the archive.
EVERYWHERE = re.compile(r"(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so\.\d+|ld-linux.*|libcuda\.so\.1)$")
# Every test of kernels has all of them inside, 6 MB: what repeats lies further back than the fast way of xz looks by itself.
DICTIONARY = 16 << 20
CARRIED = re.compile(r"lib(jansson|cmocka)\b")


class Built:
    """kind "card" or "emulated"; programs by name; folders of the plugin and of libraries that were carried, or None."""

    def __init__(self, kind, programs, plugin, libraries=None):
        self.kind, self.plugin, self.libraries = kind, plugin, libraries
        self.programs = {os.path.basename(path): path for path in programs if os.path.isfile(path)}

    def tests(self):
        return sorted(name for name in self.programs if name.startswith("cuda_") and name.endswith("_test"))

    def files(self):
        return [*self.programs.values(), *glob.glob(os.path.join(self.plugin, "*.so"))]

    def missing(self):
        wanted = [*PROGRAMS, "card_run_test"]
        lacks = [name for name in wanted if name not in self.programs]
        return lacks + ([] if os.path.isfile(os.path.join(self.plugin, PLUGIN)) else [PLUGIN])

    def identity(self):
        """Of all that runs: results of other programs are no results of these."""
        total = hashlib.sha256()
        for path in sorted(self.files(), key=os.path.basename):
            with open(path, "rb") as file:
                total.update(os.path.basename(path).encode() + hashlib.sha256(file.read()).digest())
        return total.hexdigest()[:16]

    def environment(self):
        env = dict(os.environ, EXPHIL_BACKEND_DIR=self.plugin)
        if self.libraries:
            env["LD_LIBRARY_PATH"] = ":".join(filter(None, [self.libraries, env.get("LD_LIBRARY_PATH")]))
        return env


def of_card(folder):
    return Built("card", glob.glob(f"{folder}/bin/*") + glob.glob(f"{folder}/card/*_test"), folder)


def of_emulator(folder):
    tests = [path for path in glob.glob(f"{folder}/tests/cuda_*_test") if not OF_THE_EMULATOR.search(path)]
    return Built("emulated", glob.glob(f"{folder}/bin/*") + glob.glob(f"{folder}/card/*_test") + tests,
                 f"{folder}/tests/plugin-emulated")


def manifest_of(folder):
    path = os.path.join(folder, "manifest.json")
    if not os.path.isfile(path):
        return None
    with open(path) as file:
        return json.load(file)


def of_archive(folder):
    """An unpacked archive; exits where it cannot run here."""
    told = manifest_of(folder)
    if not told:
        sys.exit(f"gpu-check: {folder} is no unpacked archive of --pack")
    here = os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
    if version(here) < version(told["glibc"]):
        sys.exit(f"gpu-check: the archive wants glibc {told['glibc']}, here is {here}: pack it on an older system")
    built = Built(told["kind"], glob.glob(f"{folder}/bin/*") + glob.glob(f"{folder}/card/*_test"), folder, f"{folder}/lib")
    return built


def version(text):
    return [int(part) for part in text.split(".")]


def unpack(archive):
    """The folder of what --pack made; the caller removes the one above it."""
    to = tempfile.mkdtemp(prefix="exphil-gpu-")
    broken = (OSError, EOFError, tarfile.TarError, gzip.BadGzipFile, *([lzma.LZMAError] if lzma else []))
    try:
        with tarfile.open(archive, "r:*") as tar:
            tar.extractall(to, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    except broken as error:
        shutil.rmtree(to, ignore_errors=True)
        sys.exit(f"gpu-check: --built {archive}: {error}")
    return os.path.join(to, NAME)


# ---- building ----


def build(folder, arch):
    """Says what fails; the programs, or None."""
    nvcc, _ = machine.nvcc()
    if not nvcc:
        print("SKIPPED: there is no nvcc, and without it no plugin for a card (--rehearse needs none)")
        return None
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    configure = ["cmake", "-S", TOP, "-B", folder, *generator, "-DEXPHIL_CUDA=PLUGIN", f"-DEXPHIL_CUDA_ARCHITECTURES={arch}",
                 f"-DEXPHIL_NVCC={nvcc}", "-DCMAKE_BUILD_TYPE=Release", "-DEXPHIL_CUDA_EMU=OFF",
                 "-DCMAKE_BUILD_RPATH=$ORIGIN/../lib"]
    make = ["cmake", "--build", folder, "--parallel", str(os.cpu_count()), "--target", *TARGETS]
    for command in (configure, make):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            print("\n".join(done.stdout.splitlines()[-30:]))
            print(f"FAILED: {' '.join(command[:4])} ended with {done.returncode}")
            return None
    return of_card(folder)


# ---- packing ----


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", machine.output("readelf", "-d", path))


def carry(path, to):
    """The libraries of a program that other machines may not have."""
    for line in machine.output("ldd", path).splitlines():
        found = re.search(r"(\S+) => (/\S+)", line)
        if found and CARRIED.match(found[1]):
            shutil.copy(found[2], os.path.join(to, found[1]))


def lay_out(built, to):
    for folder in ("bin", "card", "lib", "tools/gpu_check", "bench/peers"):
        os.makedirs(os.path.join(to, folder))
    for name, path in built.programs.items():
        if name in PROGRAMS or name.endswith("_test"):
            shutil.copy2(path, os.path.join(to, "card" if name.endswith("_test") else "bin"))
            carry(path, os.path.join(to, "lib"))
    for name in (PLUGIN, STAND_IN):
        if os.path.isfile(os.path.join(built.plugin, name)):
            shutil.copy2(os.path.join(built.plugin, name), to)
    shutil.copy2(os.path.join(TOP, "tools", "gpu-check"), os.path.join(to, "tools"))
    shutil.copytree(os.path.join(TOP, "tools", "gpu_check"), os.path.join(to, "tools", "gpu_check"), dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(os.path.join(TOP, "bench", "peers", "cuda_peers.py"), os.path.join(to, "bench", "peers"))
    binaries = [path for part in ("bin/*", "card/*", "*.so") for path in glob.glob(os.path.join(to, part))]
    subprocess.run(["strip", "--strip-unneeded", *binaries], check=True)
    return binaries


def lacking(binaries, to):
    """What the archive wants from outside and a machine with a driver may not have."""
    carried = set(os.listdir(os.path.join(to, "lib")))
    wants = {name for path in binaries + glob.glob(os.path.join(to, "lib", "*")) for name in needed(path)}
    return sorted(name for name in wants if name not in carried and not EVERYWHERE.match(name))


def glibc_of(binaries):
    found = re.findall(r"GLIBC_(\d+(?:\.\d+)+)", machine.output("readelf", "-V", *binaries))
    return max(found, key=version)


def add_all(folder, file):
    """By the name's end; much smaller as .xz."""
    if file.endswith(".xz") and not lzma:
        sys.exit(f"gpu-check: --pack {file}: this python3 knows no xz; a name with .tar.gz asks for gzip")
    if not file.endswith(".xz"):
        with tarfile.open(file, "w:gz", compresslevel=6) as tar:
            tar.add(folder, NAME)
        return
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": DICTIONARY}]
    with lzma.open(file, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        tar.add(folder, NAME)


def pack(built, file, arch):
    """False with a message where the archive would not run elsewhere."""
    with tempfile.TemporaryDirectory() as work:
        to = os.path.join(work, NAME)
        binaries = lay_out(built, to)
        if lacks := lacking(binaries, to):
            print(f"FAILED: {file}: its programs want {' '.join(lacks)}, which another machine may not have")
            return False
        told = {"kind": built.kind, "arch": arch, "cuda": machine.nvcc()[1] if built.kind == "card" else None,
                "glibc": glibc_of(binaries), "commit": machine.output("git", "-C", TOP, "rev-parse", "--short", "HEAD").strip()}
        with open(os.path.join(to, "manifest.json"), "w") as manifest:
            json.dump(told, manifest, indent=1)
        add_all(to, file)
    more = "" if built.kind == "card" else "; it lacks the card's plugin and is good for --rehearse alone"
    print(f"{file}: {os.path.getsize(file) / 2**20:.1f} MiB, glibc {told['glibc']} or newer{more}")
    return True
