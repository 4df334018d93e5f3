"""Ready policies: where the files are that a wheel carries, and an installed libexphil has beside its documents."""
from __future__ import annotations

import os
from typing import Iterator

from .library import library_path

_SUFFIX = ".safetensors"


def _folders() -> Iterator[str]:
    """Where they may be: in the package, and beside the documents of the library that runs, at PREFIX/share/doc/exphil."""
    yield os.path.join(os.path.dirname(os.path.abspath(__file__)), "policies")
    above = os.path.realpath(library_path())
    for _ in range(4):
        above = os.path.dirname(above)
        yield os.path.join(above, "share", "doc", "exphil", "policies")


def ready(name: str) -> str:
    """Path of a ready policy: "drill", "pong" or "cartpole"; their README.md says what each plays. Wheels carry them, a package
    built from source finds those of an installed libexphil. ValueError: there is none of this name, and the error has those
    that there are. FileNotFoundError: there are none at all."""
    if not isinstance(name, str):
        raise TypeError(f"name must be text, not {type(name).__name__}")
    for folder in _folders():
        files = os.listdir(folder) if os.path.isdir(folder) else []
        names = sorted(file[: -len(_SUFFIX)] for file in files if file.endswith(_SUFFIX))
        if name in names:
            return os.path.join(folder, name + _SUFFIX)
        if names:
            raise ValueError(f'"{name}" is no ready policy; there are {", ".join(names)}')
    raise FileNotFoundError(
        f'no ready policy "{name}": neither the package nor {library_path()} has any. Wheels of libexphil carry them, libexphil '
        "installs them as policies beside its documents (share/doc/exphil), and its source tree has them in the folder policies"
    )
