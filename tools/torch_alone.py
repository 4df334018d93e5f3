#!/usr/bin/env python3
"""Lets the torch of this interpreter's environment be imported without CUDA: PyPI's is linked with CUDA's libraries, gigabytes
that nothing on the CPU calls. In the place of those that are missing comes one library, beside torch's own, with every function
that torch asks them for; each only says that it failed. Does nothing to a torch that needs none, or has them."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

NVIDIA = r"(?:cu|nccl|nv)"
STAND_IN = "libno_cuda.so"
FAILED = 100  # cudaErrorNoDevice; an error in the numbers of the other libraries, too


def read_elf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True).stdout


def missing_libraries(folder, libraries):
    """That libraries of the folder are linked with; not the driver's, which is opened later or never."""
    wanted = {name for one in libraries for name in re.findall(rf"NEEDED.*\[(lib{NVIDIA}.*)\]", read_elf(one, "-d"))}
    site = os.path.dirname(os.path.dirname(folder))
    there = {name for _, _, names in os.walk(os.path.join(site, "nvidia")) for name in names} | set(os.listdir(folder))
    return sorted(wanted - there - {"libcuda.so.1"})


def functions(libraries):
    """Names that are asked for, by the version that they must have."""
    found = {}
    for one in libraries:
        for name, version in re.findall(rf" UND (_*{NVIDIA}\w*)(?:@(\S+))?", read_elf(one, "--dyn-syms")):
            found.setdefault(version, set()).add(name)
    return found


def build(path, by_version):
    names = sorted(set().union(*by_version.values()))
    versions = [f"{version} {{ global: {'; '.join(sorted(some))}; }};\n" for version, some in by_version.items() if version]
    with tempfile.TemporaryDirectory() as folder:
        source, script = os.path.join(folder, "stand_in.c"), os.path.join(folder, "versions")
        with open(source, "w", encoding="ascii") as file:
            file.writelines(f"int {name}(void) {{ return {FAILED}; }}\n" for name in names)
        with open(script, "w", encoding="ascii") as file:
            file.writelines(versions)
        flags = ["-shared", "-fPIC", "-fno-builtin", f"-Wl,--version-script={script}", f"-Wl,-soname,{STAND_IN}"]
        subprocess.run(["cc", *flags, source, "-o", path], check=True)


def main():
    torch = importlib.util.find_spec("torch")
    if torch is None:
        sys.exit("there is no torch")
    folder = os.path.join(os.path.dirname(torch.origin), "lib")
    libraries = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.startswith("lib") and ".so" in name]
    missing = missing_libraries(folder, libraries)
    if not missing:
        return
    build(os.path.join(folder, STAND_IN), functions(libraries))
    for name in missing:
        os.symlink(STAND_IN, os.path.join(folder, name))


if __name__ == "__main__":
    main()
