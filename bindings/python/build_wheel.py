#!/usr/bin/env python3
"""Makes a wheel without a module that is compiled for an interpreter: py3-none-PLATFORM, for every Python 3.8 or later of that
system. libexphil is inside, and opened by cffi's ABI mode. For Windows it is made on Linux, with mingw:

  build_abi.py --tag win_amd64 --prefix INSTALLED --cc x86_64-w64-mingw32-gcc OUTPUT-FOLDER
  build_abi.py --tag manylinux_2_36_x86_64 --prefix INSTALLED --cc cc OUTPUT-FOLDER

INSTALLED is where libexphil for that system was installed (cmake --install BUILD --prefix INSTALLED). A call costs more than in the
wheel that setup.py makes (cffi calls through libffi), and torch's operators and JAX are not in it.
"""
import argparse
import base64
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

import cffi

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
import cut_header  # noqa: E402

# As in pyproject.toml, which a Python older than 3.11 cannot read without help.
FIELDS = {"name": "Name", "description": "Summary", "requires-python": "Requires-Python"}


def header(include, name):
    with open(os.path.join(include, "exphil", name), encoding="utf-8") as file:
        return file.read()


def constants(text):
    """Constants with their values: no compiler tells them when the library is opened."""
    known = {name: int(value, 0) for name, value in re.findall(r"^#define (EXPHIL_\w+) (\d+|0x[0-9A-Fa-f]+)$", text, re.M)}
    values = {}
    for name, value in re.findall(r"^[ ]*#\s*define\s+(EXPHIL_\w+)[ \t]+(.+?)\s*(?:/\*.*)?$", text, re.M):
        if cut_header.EXPRESSION.fullmatch(value):
            sum_of = re.sub(r"EXPHIL_\w+", lambda found: str(known[found.group()]), value)
            values[name] = known[name] = eval(sum_of, {"__builtins__": {}})  # numbers and operators alone (EXPRESSION)
    return values


def declarations(include):
    """All that cffi must know: the headers, our hooks with a type for each function that Python is called by, the operations."""
    texts = [header(include, name) for name in cut_header.HEADERS]
    values = constants("".join(texts))
    out = "".join(cut_header.declarations(text) for text in texts)
    out = re.sub(r"^#define (\w+) \.\.\.$", lambda found: f"#define {found.group(1)} {values[found.group(1)]}", out, flags=re.M)
    with open(os.path.join(FOLDER, "python_hooks.cdef"), encoding="utf-8") as file:
        hooks = file.read()
    out += re.sub(r'extern "Python" (\w+) (\w+)\(', r"typedef \1 \2_type(", hooks)
    with open(os.path.join(FOLDER, "op_call.h"), encoding="utf-8") as file:
        out += re.sub(r"^#.*$", "", cut_header.COMMENT.sub(" ", file.read()), flags=re.M)
    return out + "void exphil_py_python_set(void *const *functions);\n"


def metadata(version):
    with open(os.path.join(FOLDER, "pyproject.toml"), encoding="utf-8") as file:
        project = file.read()
    lines = ["Metadata-Version: 2.1"]
    for field, name in FIELDS.items():
        lines.append(f'{name}: {re.search(rf"^{field} = .(.*).$", project, re.M).group(1)}')
    lines.insert(2, f"Version: {version}")
    lines.append("License: MIT")
    needs = re.search(r"^dependencies = \[(.*)\]", project, re.M).group(1)
    lines += [f"Requires-Dist: {need}" for need in re.findall(r'"(.*?)"', needs)]
    lines += ["Provides-Extra: progress", 'Requires-Dist: tqdm; extra == "progress"', "Description-Content-Type: text/markdown", ""]
    with open(os.path.join(FOLDER, "README.md"), encoding="utf-8") as file:
        return "\n".join(lines) + "\n" + file.read()


def names(tag, abi):
    """Where the library is in its prefix, and what it and the helper are called."""
    if tag.startswith("win"):
        return ("bin",), f"exphil-{abi}.dll", "exphil_python.dll"
    if tag.startswith("macosx"):
        return ("lib",), f"libexphil.{abi}.dylib", "libexphil_python.dylib"
    return ("lib", "lib/*-linux-*", "lib64"), f"libexphil.so.{abi}", "libexphil_python.so"


def find(prefix, folders, name):
    for folder in folders:
        for path in glob.glob(os.path.join(glob.escape(prefix), folder, name)):
            return path
    raise SystemExit(f"build_abi: {prefix} has no {name}")


def helper(arguments, include, library, path):
    """Compiles the part in C, which needs libexphil and nothing else."""
    folder = os.path.join(arguments.prefix, "lib") if arguments.tag.startswith("win") else os.path.dirname(library)
    words = ["-static-libgcc"] if arguments.tag.startswith("win") else ["-fPIC"]
    sources = [os.path.join(FOLDER, name) for name in ("abi_hooks.c", "op_call.c")]
    command = [arguments.cc, "-std=gnu11", "-O2", "-g0", "-shared", "-D_GNU_SOURCE", *words, f"-I{include}", f"-I{FOLDER}",
               "-o", path, *sources, f"-L{folder}", "-lexphil"]
    if not arguments.tag.startswith(("win", "macosx")):
        command += ["-pthread", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(command, check=True)


def write(path, info, files):
    """The archive: equal files give an equal one."""
    record = f"{info}/RECORD"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        lines = []
        for name in sorted(files):
            digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(files[name])}\n")
            add(wheel, name, files[name])
        add(wheel, record, "".join([*lines, f"{record},,\n"]).encode())


def add(wheel, name, data):
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o100644 << 16
    wheel.writestr(entry, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", required=True, help="win_amd64, manylinux_2_36_x86_64, ...")
    parser.add_argument("--prefix", required=True, help="where libexphil for that system is installed")
    parser.add_argument("--cc", required=True, help="a C compiler for that system")
    parser.add_argument("--abi", default="0", help="the number in the library's file name")
    parser.add_argument("output", help="folder for the wheel")
    arguments = parser.parse_args()
    include = os.path.join(arguments.prefix, "include")
    version = cut_header.version(header(include, "exphil.h"))
    folders, library_name, helper_name = names(arguments.tag, arguments.abi)
    library = find(arguments.prefix, folders, library_name)
    files = {}

    def take(name, path):
        with open(path, "rb") as file:
            files[name] = file.read()

    sources = os.path.join(FOLDER, "src")
    for pattern in ("exphil/*.py", "exphil/*.pyi", "exphil/py.typed", "exphil/*/*.py"):
        for path in glob.glob(os.path.join(glob.escape(sources), pattern)):
            take(os.path.relpath(path, sources).replace(os.sep, "/"), path)
    take(f"exphil/{library_name}", library)
    take("exphil/_native.py", os.path.join(FOLDER, "abi_native.py"))
    files["exphil/_wheel.py"] = f'"""What this wheel carries."""\nLIBRARY, HELPER = "{library_name}", "{helper_name}"\n'.encode()
    with tempfile.TemporaryDirectory() as folder:
        made = cffi.FFI()
        made.cdef(declarations(include))
        made.set_source("exphil._declared", None)
        declared = os.path.join(folder, "_declared.py")
        made.emit_python_code(declared)
        take("exphil/_declared.py", declared)
        helper(arguments, include, library, os.path.join(folder, helper_name))
        take(f"exphil/{helper_name}", os.path.join(folder, helper_name))
    info = f"exphil-{version}.dist-info"
    tag = f"py3-none-{arguments.tag}"
    files[f"{info}/METADATA"] = metadata(version).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: build_abi.py\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/top_level.txt"] = b"exphil\n"
    os.makedirs(arguments.output, exist_ok=True)
    path = os.path.join(arguments.output, f"exphil-{version}-{tag}.whl")
    write(path, info, files)
    print(path)


if __name__ == "__main__":
    main()
