"""Describes the extension module exphil._native to cffi: the library's declarations, DLPack's and our own hooks."""
import os
import re
import sys

import cffi

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
import cut_header  # noqa: E402


def hooks():
    """Text of python_hooks.cdef (read by cffi too) and of python_hooks.c."""
    texts = []
    for name in ("python_hooks.cdef", "python_hooks.c"):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            texts.append(file.read())
    return texts


def plain(name):
    """Declarations of a header of this folder, for cffi."""
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return re.sub(r"^#.*$", "", cut_header.COMMENT.sub(" ", file.read()), flags=re.M)


def describe():
    """The builder that setup.py hands to cffi."""
    declared, code = hooks()
    made = cffi.FFI()
    made.cdef(cut_header.all_declarations())
    made.cdef(declared)
    for name in ("op_call.h", "torch_op.h"):
        made.cdef(plain(name))
    folders = [word[2:] for word in cut_header.pkg_config("--libs-only-L")]
    made.set_source(
        "exphil._native",
        "".join(f"#include <exphil/{name}>\n" for name in cut_header.HEADERS)
        + '#include "torch_op.h"\n' + declared.replace('extern "Python"', "static") + code,
        sources=["op_call.c", "torch_op.c"],
        include_dirs=[FOLDER, *(word[2:] for word in cut_header.pkg_config("--cflags-only-I"))],
        libraries=["exphil"],
        library_dirs=folders,
        # Installed elsewhere than the system looks, the library is found again where it was linked.
        runtime_library_dirs=[os.path.realpath(folder) for folder in folders],
        define_macros=[("_GNU_SOURCE", "1")],
        # Debug information would tell the folder of this build, and half of the module would be that. What a kernel of torch
        # throws passes through our functions.
        extra_compile_args=["-g0", "-fexceptions"],
        py_limited_api=True,
    )
    return made


def handlers():
    """No module of Python: handlers for XLA, which exphil.jax loads, and which need libexphil alone."""
    folders = [word[2:] for word in cut_header.pkg_config("--libs-only-L")]
    return "exphil._xla", {
        "sources": ["xla_op.c", "op_call.c"],
        "include_dirs": [word[2:] for word in cut_header.pkg_config("--cflags-only-I")],
        "libraries": ["exphil", "pthread"],
        "library_dirs": folders,
        "runtime_library_dirs": [os.path.realpath(folder) for folder in folders],
        "extra_compile_args": ["-g0", "-std=c11", "-fvisibility=hidden"],
        "py_limited_api": True,
    }


builder = describe()

if __name__ == "__main__":
    builder.compile(verbose=True)
