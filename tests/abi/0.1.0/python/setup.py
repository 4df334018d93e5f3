"""Builds the package; everything that does not change is in pyproject.toml.

The version is that of the installed header, so that no number stands here. The extension uses the limited API of
Python 3.8: one wheel serves every later Python.
"""
import os
import sys

from setuptools import setup

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
import cut_header  # noqa: E402

if not os.access(FOLDER, os.W_OK):
    raise SystemExit(f"exphil: {FOLDER} cannot be written to: copy the folder first, and build the copy")

setup(
    version=cut_header.version(cut_header.read("exphil.h")),
    cffi_modules=["build_native.py:builder"],
    # setuptools would take an older build of the extension for another library: it only compares times of sources.
    options={"bdist_wheel": {"py_limited_api": "cp38"}, "build_ext": {"force": True}},
)
