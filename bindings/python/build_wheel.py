#!/usr/bin/env python3
"""Makes a wheel that carries libexphil, for whatever system the compiler is for. tools/wheels calls it.

  build_wheel.py --tag manylinux_2_17_x86_64 --prefix INSTALLED --cc CC --compiled OUTPUT-FOLDER
  build_wheel.py --tag win_amd64 --prefix INSTALLED --cc x86_64-w64-mingw32-gcc OUTPUT-FOLDER

INSTALLED is where libexphil for that system was installed (cmake --install BUILD --prefix INSTALLED). The first is
cp38-abi3-PLATFORM: the modules of setup.py, compiled for Python 3.8 and later by the headers of the Python that runs this. The
second is py3-none-PLATFORM, which opens libexphil by cffi's ABI mode and needs no headers of Python: a call costs more
(cffi calls through libffi), and torch's operators and JAX are not in it. Equal inputs give an equal wheel; files in it have the
time SOURCE_DATE_EPOCH.
"""
import argparse
import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile

import cffi

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
import cut_header  # noqa: E402

# As in pyproject.toml, which a Python older than 3.11 cannot read without help.
FIELDS = {"name": "Name", "description": "Summary", "requires-python": "Requires-Python"}
LISTS = {"keywords": "Keywords", "classifiers": "Classifier", "dependencies": "Requires-Dist"}

PROGRAM = "exphil/bin/"  # where the program lies


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
    for field, name in LISTS.items():
        values = re.findall(r'"(.*?)"', re.search(rf"^{field} = \[(.*?)\]$", project, re.M | re.S).group(1))
        lines += [f"{name}: {','.join(values)}"] if name == "Keywords" else [f"{name}: {value}" for value in values]
    lines += ["Provides-Extra: progress", 'Requires-Dist: tqdm; extra == "progress"', "Description-Content-Type: text/markdown", ""]
    return "\n".join(lines) + "\n" + cut_header.description()


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
    raise SystemExit(f"build_wheel: {prefix} has no {name}")


def compile_shared(arguments, path, sources, include_dirs=(), define_macros=(), extra_compile_args=(), **_):
    """A shared library or module that needs libexphil, which lies beside it."""
    # zig knows no libNAME.dll.a by the name alone.
    linked = [os.path.join(arguments.prefix, "lib", "libexphil.dll.a")] if arguments.tag.startswith("win") else [
        f"-L{os.path.dirname(arguments.library)}", "-lexphil"]
    command = [arguments.cc, "-shared", "-O2", "-DNDEBUG", "-g0", *arguments.flags.split(), *extra_compile_args,
               *(f"-I{folder}" for folder in include_dirs), *(f"-D{name}={value}" for name, value in define_macros),
               "-o", path, *sources, *linked]
    if arguments.tag.startswith("win"):
        command += ["-static-libgcc"]
    else:
        command += ["-fPIC", "-pthread"]
        command += ["-Wl,-rpath,@loader_path", f"-Wl,-install_name,@rpath/{os.path.basename(path)}"] if (
            arguments.tag.startswith("macosx")) else [
            # The old tag is heeded before LD_LIBRARY_PATH, where another libexphil may be.
            "-Wl,-rpath,$ORIGIN", "-Wl,--disable-new-dtags", "-Wl,-z,relro", "-Wl,-z,now"]
    subprocess.run(command, check=True)


def in_folder(names):
    return [os.path.join(FOLDER, name) for name in names]


def headers(folder):
    """Those of this Python, with the one pyconfig.h that it uses: systems that keep several choose by the compiler's processor.
    In the limited API those of all 64-bit Linuxes say the same."""
    made = shutil.copytree(sysconfig.get_path("include"), os.path.join(folder, "include"))
    shutil.copy(sysconfig.get_config_h_filename(), os.path.join(made, "pyconfig.h"))
    return made


def compiled(arguments, include, folder):
    """The modules of setup.py: names, and where they are."""
    os.environ.update(PKG_CONFIG_LIBDIR=os.path.join(os.path.dirname(arguments.library), "pkgconfig"), PKG_CONFIG_PATH="")
    import build_native  # asks pkg-config when it is imported

    made, python = build_native.builder, headers(folder)
    source = os.path.join(folder, "_native.c")
    made.emit_c_code(source)
    name, _, _, how = made._assigned_source
    modules = {name: {**how, "sources": [source, *in_folder(how["sources"])]}}
    name, how = build_native.handlers()
    modules[name] = {**how, "sources": in_folder(how["sources"])}
    files = {}
    for name, how in modules.items():
        file = name.rpartition(".")[2] + ".abi3.so"
        files[f"exphil/{file}"] = os.path.join(folder, file)
        compile_shared(arguments, files[f"exphil/{file}"], **{**how, "include_dirs": [include, FOLDER, python]})
    return files


def opened(arguments, include, folder, library_name, helper_name):
    """What takes the place of those modules in ABI mode."""
    made = cffi.FFI()
    made.cdef(declarations(include))
    made.set_source("exphil._declared", None)
    files = {f"exphil/{name}": os.path.join(folder, name) for name in ("_declared.py", "_wheel.py", helper_name)}
    made.emit_python_code(files["exphil/_declared.py"])
    with open(files["exphil/_wheel.py"], "w", encoding="utf-8") as file:
        file.write(f'"""What this wheel carries."""\nLIBRARY, HELPER = "{library_name}", "{helper_name}"\n')
    compile_shared(arguments, files[f"exphil/{helper_name}"], in_folder(("abi_hooks.c", "op_call.c")), [include, FOLDER],
                   [("_GNU_SOURCE", "1")], ["-std=gnu11"])
    return {**files, "exphil/_native.py": os.path.join(FOLDER, "abi_native.py")}


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
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)  # archives begin in 1980
    entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
    entry.create_system = 3  # Unix, wherever it is made: the modes are
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100755 if name.startswith(PROGRAM) else 0o100644) << 16
    wheel.writestr(entry, data)


def tags(arguments):
    """Of the file's name; a file of the wheel has each alone."""
    python = "cp38-abi3" if arguments.compiled else "py3-none"
    return python, arguments.tag.split(".")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", required=True, help="win_amd64, manylinux_2_17_x86_64, ...; several with dots between them")
    parser.add_argument("--prefix", required=True, help="where libexphil for that system is installed")
    parser.add_argument("--cc", required=True, help="a C compiler for that system")
    parser.add_argument("--flags", default="", help="more words for it")
    parser.add_argument("--compiled", action="store_true", help="modules in C for the limited API of Python 3.8")
    parser.add_argument("--program", help="the program exphil for that system, which needs nothing else")
    parser.add_argument("--policies", help="a folder whose .safetensors go along")
    parser.add_argument("--licence", action="append", default=[], metavar="NAME=FILE", help="of what is inside")
    parser.add_argument("--abi", default="0", help="the number in the library's file name")
    parser.add_argument("output", help="folder for the wheel")
    arguments = parser.parse_args()
    include = os.path.join(arguments.prefix, "include")
    version = cut_header.version(header(include, "exphil.h"))
    info = f"exphil-{version}.dist-info"
    folders, library_name, helper_name = names(arguments.tag, arguments.abi)
    arguments.library = find(arguments.prefix, folders, library_name)
    python, platforms = tags(arguments)
    sources = os.path.join(FOLDER, "src")
    paths = {f"exphil/{library_name}": arguments.library}
    for pattern in ("exphil/*.py", "exphil/*.pyi", "exphil/py.typed", "exphil/*/*.py"):
        for path in glob.glob(os.path.join(glob.escape(sources), pattern)):
            paths[os.path.relpath(path, sources).replace(os.sep, "/")] = path
    if arguments.program:
        paths[PROGRAM + os.path.basename(arguments.program)] = arguments.program
        paths["exphil_program.py"] = os.path.join(FOLDER, "exphil_program.py")
    for path in glob.glob(os.path.join(glob.escape(include), "exphil", "*.h")):  # the manual
        paths[f"exphil/include/exphil/{os.path.basename(path)}"] = path
    for path in glob.glob(os.path.join(glob.escape(arguments.policies or os.devnull), "*.safetensors")):
        paths[f"exphil/policies/{os.path.basename(path)}"] = path
    for word in arguments.licence:
        name, _, path = word.partition("=")
        paths[f"{info}/licenses/{name}"] = path
    files = {
        f"{info}/METADATA": metadata(version).encode(),
        f"{info}/WHEEL": "".join([
            "Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: false\n",
            *(f"Tag: {python}-{platform}\n" for platform in platforms)]).encode(),
        f"{info}/top_level.txt": b"exphil\nexphil_program\n" if arguments.program else b"exphil\n",
    }
    if arguments.program:
        files[f"{info}/entry_points.txt"] = b"[console_scripts]\nexphil = exphil_program:main\n"
    with tempfile.TemporaryDirectory() as folder:
        paths.update(compiled(arguments, include, folder) if arguments.compiled else
                     opened(arguments, include, folder, library_name, helper_name))
        for name, path in paths.items():
            with open(path, "rb") as file:
                files[name] = file.read()
    os.makedirs(arguments.output, exist_ok=True)
    path = os.path.join(arguments.output, f"exphil-{version}-{python}-{'.'.join(platforms)}.whl")
    write(path, info, files)
    print(path)


if __name__ == "__main__":
    main()
