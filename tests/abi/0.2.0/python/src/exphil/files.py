"""Which replays are meant: files, folders and lists of them; and what became of each."""
from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass
from typing import IO, Any, Callable, Dict, Generic, Iterable, Iterator, List, Optional, Set, Tuple, TypeVar, Union

from .errors import ExphilError, FormatError, InvalidError, IoError, NumericError, UnsupportedError
from .handle import Path

Paths = Union[Path, Iterable[Path]]
ListOfFiles = Union[Path, IO[Any]]
Result = TypeVar("Result")

# What a single replay can be at fault for; anything else ends the whole call.
_OF_A_FILE = (FormatError, InvalidError, IoError, NumericError, UnsupportedError)


@dataclass(frozen=True)
class Refusal:
    """A file or folder of which nothing was taken. reason is the library's or the system's own text, without the path."""

    path: str
    reason: str
    error: Exception


@dataclass(frozen=True)
class Added(Generic[Result]):
    """What became of many replays, in their order: taken has (path, result) of each that was added, refused the others.

    excluded counts what a pattern left out, repeated what was named or found again.
    """

    taken: Tuple[Tuple[str, Result], ...]
    refused: Tuple[Refusal, ...]
    excluded: int
    repeated: int

    def reasons(self) -> Dict[str, int]:
        """How many were refused for each reason, the commonest first. What follows a semicolon, as who plays in a replay, is
        left out."""
        counts: Dict[str, int] = {}
        for refusal in self.refused:
            reason = refusal.reason.split(";")[0]
            counts[reason] = counts.get(reason, 0) + 1
        return dict(sorted(counts.items(), key=lambda one: -one[1]))


def _listed(source: ListOfFiles) -> List[bytes]:
    """Paths of a list, in ascending order: each ends with a line end, or with a NUL if the list has one (find -print0)."""
    if hasattr(source, "read"):
        text = source.read()
        data = text if isinstance(text, bytes) else os.fsencode(text)
    else:
        with open(source, "rb") as file:
            data = file.read()
    found = data.split(b"\0") if b"\0" in data else [line[:-1] if line[-1:] == b"\r" else line for line in data.split(b"\n")]
    found = sorted(path for path in found if path)
    if not found:
        raise ValueError("files_from names no file")
    return found


class _Search:
    """Goes through what was named; each file and each folder comes once."""

    def __init__(self, exclude: Union[str, Iterable[str]]) -> None:
        patterns = [exclude] if isinstance(exclude, str) else list(exclude)
        if not all(isinstance(pattern, str) for pattern in patterns):
            raise TypeError("exclude must be patterns, text")
        self.patterns = [os.fsencode(pattern) for pattern in patterns]
        self.known: Set[Tuple[int, int]] = set()
        self.excluded = self.repeated = 0

    def left_out(self, path: bytes) -> bool:
        """Does a pattern match the path or the name?"""
        while path[:2] == b"./":
            path = path[2:]
        names = path, os.path.basename(path)
        found = any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns for name in names)
        self.excluded += found
        return found

    def again(self, path: bytes) -> bool:
        """Was this file or folder there already, under this name or another? OSError: it is not there."""
        facts = os.stat(path)
        key = facts.st_dev, facts.st_ino
        found = facts.st_ino != 0 and key in self.known
        self.known.add(key)
        self.repeated += found
        return found

    def named(self, path: bytes) -> Iterator[Tuple[bytes, Optional[OSError]]]:
        """A path that somebody named: a file, whatever it is called, or a folder."""
        if self.left_out(path):
            return
        try:
            if self.again(path):
                return
        except OSError as error:
            yield path, error
            return
        if not os.path.isdir(path):
            yield path, None
            return
        before = self.excluded, self.repeated
        empty = True
        for found in self.folder(path):
            empty = False
            yield found
        if empty and before == (self.excluded, self.repeated):
            yield path, FileNotFoundError(2, "no .slp in this folder")

    def folder(self, path: bytes) -> Iterator[Tuple[bytes, Optional[OSError]]]:
        """Replays of a folder and of those in it, by name; links are followed, hidden files are not."""
        try:
            names = sorted(os.listdir(path))
        except OSError as error:
            yield path, error
            return
        for name in names:
            inner = os.path.join(path, name)
            is_folder = os.path.isdir(inner)
            if name[:1] == b"." or not (is_folder or name.endswith(b".slp")) or self.left_out(inner):
                continue
            try:
                if self.again(inner):
                    continue
            except OSError as error:
                yield inner, error
                continue
            if is_folder:
                yield from self.folder(inner)
            else:
                yield inner, None


def _all_paths(paths: Paths, files_from: Optional[ListOfFiles]) -> List[bytes]:
    if isinstance(paths, (str, bytes, os.PathLike)):
        paths = (paths,)
    given = [os.fsencode(path) for path in paths] + (_listed(files_from) if files_from is not None else [])
    if not given:
        raise ValueError("paths names no file")
    return given


def _reason(error: Exception, path: bytes) -> str:
    """What is wrong, without the path that messages begin with."""
    if isinstance(error, OSError) and not isinstance(error, ExphilError):
        return error.strerror or str(error)
    said, begins = str(error), f'"{os.fsdecode(path)}": '
    return said[len(begins):] if said.startswith(begins) else said


def _can_be_read(path: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return len(file.read(1)) >= 0
    except OSError:
        return False


def add_all(
    paths: Paths,
    files_from: Optional[ListOfFiles],
    exclude: Union[str, Iterable[str]],
    add: Callable[[bytes], Result],
) -> Added[Result]:
    """Calls add for every replay that is meant. What a file is at fault for is told, other exceptions end it."""
    search = _Search(exclude)
    taken: List[Tuple[str, Result]] = []
    refused: List[Refusal] = []
    for given in _all_paths(paths, files_from):
        for path, missing in search.named(given):
            error: Optional[Exception] = missing
            try:
                if missing is None:
                    taken.append((os.fsdecode(path), add(path)))
            except _OF_A_FILE as wrong:
                if isinstance(wrong, IoError) and _can_be_read(path):
                    raise  # of what is written
                error = wrong
            if error is not None:
                refused.append(Refusal(os.fsdecode(path), _reason(error, path), error))
    return Added(tuple(taken), tuple(refused), search.excluded, search.repeated)
