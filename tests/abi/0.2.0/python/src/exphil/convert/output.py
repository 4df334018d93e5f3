"""The new file: where it may stand, and how it comes there: whole, under a name of its own until then."""
from __future__ import annotations

import errno
import os
from typing import List, Optional

_SUFFIX = ".exphil-tmp"  # as everywhere in this library, so that what a killed run leaves is known, and replaced by the next


def _refusal(path: str) -> Optional[str]:
    """Why no file can be replaced or made here; that of the folder shows when it is tried."""
    if os.path.islink(path):
        return "that is a link; name the file that it leads to"
    if os.path.isdir(path):
        return "that is a folder; name a file in it"
    return "that is no regular file" if os.path.exists(path) and not os.path.isfile(path) else None


def _same(path: str, kept: str) -> bool:
    """Is it this file, or in this folder?"""
    if os.path.isdir(kept):
        path = os.path.dirname(os.path.abspath(path))
    return os.path.exists(path) and os.path.exists(kept) and os.path.samefile(path, kept)


def check(path: str, needed: List[str]) -> None:
    """An OSError if the new file cannot take this place, or would write over one that is read."""
    if not path:
        raise OSError(errno.ENOENT, "the name is empty", path)
    why = _refusal(path)
    if why:
        raise OSError(errno.EINVAL, why, path)
    for kept in needed:
        if _same(path, kept):
            raise OSError(errno.EINVAL, f"that would write over {kept}, which is needed; name another file", path)


def write_temporary(path: str, parts: List[bytes]) -> str:
    """Writes what is to be a file, beside it, synced, and gives its path: rename it, or remove it."""
    temporary = path + _SUFFIX
    try:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as reason:
        raise OSError(reason.errno, reason.strerror, path) from None
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
    except OSError as reason:
        os.unlink(temporary)
        raise OSError(reason.errno, reason.strerror, path) from None
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary
