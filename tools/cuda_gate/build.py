"""Kernels compiled for a processor, and what the assembler says of them; kept by what went into them."""
import concurrent.futures
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = ["-std=c++17", "-O3", "-fmad=false"]
COUNTED_FOR = 90
NVDISASM = "nvidia-cuda-nvdisasm==13.2.78"
FORMAT = 4  # of what is kept


def find_nvcc():
    folders = [os.path.join(os.environ[v], "bin") for v in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(v)]
    return os.environ.get("NVCC") or shutil.which("nvcc") or shutil.which("nvcc", path=":".join(folders + ["/usr/local/cuda/bin"]))


def release_of(nvcc):
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"\bV(\d+\.\d+\.\d+)", text)[1]
    return version.rpartition(".")[0], version


def targets_of(release):
    number = tuple(map(int, release.split(".")))
    return [80, 86, 89, 90] + ([100, 120] if number >= (12, 8) else [])


def find_nvdisasm(nvcc, folder):
    """None where there is none: then nothing is counted."""
    beside = os.path.join(os.path.dirname(os.path.realpath(nvcc)), "nvdisasm")
    found = shutil.which("nvdisasm") or (beside if os.path.exists(beside) else None)
    venv = os.path.join(folder, "python")
    own = glob.glob(os.path.join(venv, "lib", "python*", "site-packages", "nvidia", "*", "bin", "nvdisasm"))
    if found or own:
        return found or own[0]
    try:
        subprocess.run([sys.executable, "-m", "venv", venv], check=True, capture_output=True)
        pip = [os.path.join(venv, "bin", "python"), "-m", "pip", "--disable-pip-version-check", "-q", "install", NVDISASM]
        subprocess.run(pip, check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError):
        return None
    own = glob.glob(os.path.join(venv, "lib", "python*", "site-packages", "nvidia", "*", "bin", "nvdisasm"))
    return own[0] if own else None


# ---- names ----


def plain_names(mangled):
    """scan_frames<float, 16, 1>: without the unnamed namespace, whose name holds a path, result and arguments."""
    text = "\n".join(mangled)
    shown = subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    return {raw: plain(name) for raw, name in zip(mangled, shown)}


def plain(name):
    name = name.replace("(anonymous namespace)::", "")
    depth = end = 0
    for end, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:
            name = name[:end]
            break
    return re.sub(r"^void ", "", name)


# ---- one file, one target ----


def inputs_of(source):
    """The source and all of ours that it includes."""
    found, waiting = [], [source]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.append(path)
        with open(path) as file:
            names = re.findall(r'^# *include +["<]([^">]+)[">]', file.read(), re.M)
        for name in names:
            places = [os.path.join(TOP, place, name) for place in ("cuda", "lib", "include")]
            waiting += [place for place in places if os.path.exists(place)]
    return sorted(found)


def key_of(source, target, version):
    digest = hashlib.sha256(repr((FORMAT, target, version, FLAGS)).encode())
    for path in inputs_of(source):
        with open(path, "rb") as file:
            digest.update(file.read() + b"\0")
    return f"{os.path.basename(source)}.sm_{target}.{digest.hexdigest()[:20]}"


def report_of(text):
    """The assembler's words as {kernel: {registers, shared, spill}}."""
    kernels, name = {}, None
    for line in text.splitlines():
        if found := re.search(r"Function properties for (\S+)", line):
            name = found[1]
        elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            kernels[name] = {"spill": int(found[2]) + int(found[3]), "stack": int(found[1])}
        elif found := re.search(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?", line):
            kernels[name].update(registers=int(found[1]), shared=int(found[2] or 0))
    return {name: facts for name, facts in kernels.items() if "registers" in facts}


def compile_one(nvcc, source, target, folder, key):
    cubin = os.path.join(folder, key + ".cubin")
    command = [nvcc, *FLAGS, f"-arch=sm_{target}", "-Xptxas", "-v", "-cubin", "-o", cubin, source]
    command += [f"-I{os.path.join(TOP, place)}" for place in ("cuda", "lib", "include")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{os.path.basename(source)} for sm_{target} does not compile:\n{done.stderr}")
    kernels = report_of(done.stdout + done.stderr)
    names = plain_names(list(kernels))
    return {names[raw]: facts for raw, facts in kernels.items()}


def kept(folder, key):
    try:
        with open(os.path.join(folder, key + ".json")) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def keep(folder, key, value):
    with open(os.path.join(folder, key + ".new"), "w") as file:
        json.dump(value, file)
    os.replace(os.path.join(folder, key + ".new"), os.path.join(folder, key + ".json"))


def compile_all(nvcc, version, targets, asked, folder):
    """{target: {kernel: facts}} of the targets asked for and of those kept whole from before; {key: kernels} for sm_90."""
    sources = sorted(glob.glob(os.path.join(TOP, "cuda", "*.cu")))
    keys = {(s, t): key_of(s, t, version) for s in sources for t in targets}
    known = {pair: kept(folder, key) for pair, key in keys.items()}
    # The largest first, so that none is left alone at the end.
    missing = sorted((p for p in keys if p[1] in asked and known[p] is None), key=lambda p: -os.path.getsize(p[0]))
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("EXPHIL_JOBS") or os.cpu_count() or 1)) as pool:
        for pair, facts in zip(missing, pool.map(lambda p: compile_one(nvcc, *p, folder, keys[p]), missing)):
            known[pair] = facts
            keep(folder, keys[pair], facts)
    found = {}
    for target in targets:
        if all(known[s, target] is not None for s in sources):
            found[target] = {kernel: facts for s in sources for kernel, facts in known[s, target].items()}
    current = set(keys.values())
    for path in glob.glob(os.path.join(folder, "*.sm_*")):
        if re.sub(r"\.(json|cubin|count|new)$", "", os.path.basename(path)) not in current:
            os.remove(path)
    return found, {keys[s, COUNTED_FOR]: list(known[s, COUNTED_FOR]) for s in sources}
