"""Builds the package; everything that does not change is in pyproject.toml.

The version is that of the installed header, so that no number stands here; the description is README.md, its links in words.
The extension uses the limited API of Python 3.8: one wheel serves every later Python.
"""
import os
import sys
from importlib import metadata

from setuptools import Extension, setup

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
import cut_header  # noqa: E402

if not os.access(FOLDER, os.W_OK):
    raise SystemExit(f"exphil: {FOLDER} cannot be written to: copy the folder first, and build the copy")
try:
    # setuptools leaves cffi_modules out, without a word, where cffi is not installed or has no metadata.
    import cffi  # noqa: F401

    metadata.version("cffi")
except ImportError as reason:
    raise SystemExit(
        f"exphil: the native part cannot be built without cffi ({reason}): install python3-cffi (apt), or pip install cffi,"
        f" for {sys.executable}"
    ) from None

import build_native  # noqa: E402

NAME, HOW = build_native.handlers()

setup(
    version=cut_header.version(cut_header.read("exphil.h")),
    long_description=cut_header.description(),
    long_description_content_type="text/markdown",
    cffi_modules=["build_native.py:builder"],
    ext_modules=[Extension(NAME, **HOW)],
    # setuptools would take an older build of the extension for another library: it only compares times of sources.
    options={"bdist_wheel": {"py_limited_api": "cp38"}, "build_ext": {"force": True}},
)
