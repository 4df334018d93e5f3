"""Corpora of games: replays in large numbers, kept small, in a file or a folder of files."""
from __future__ import annotations

import os
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Tuple, Union

from . import melee
from ._native import ffi, lib
from .arrays import number
from .codes import Code, code
from .constants import Refused
from .context import Context, context_or_default
from .errors import text
from .files import Added, ListOfFiles, Paths, add_all
from .handle import Config, Handle, Path, counted, expect, path_bytes
from .records import GameInfo, GamesAdded, GamesInfo, SlpInfo
from .slp import Replay
from .structs import empty, read


def refused_name(reason: Code) -> Optional[str]:
    """Why players were not taken, in words: "too short"; None when there is no such reason."""
    return text(lib.exphil_refused_name(code(Refused, reason, "reason"))) or None


class Game(NamedTuple):
    """A game of a corpus: what its index says, and the settings that exphil.Replay.info would tell."""

    info: GameInfo
    settings: SlpInfo

    @property
    def stage(self) -> Optional[str]:
        """Name of the stage; None: it has none here."""
        return melee.stage_name(self.settings.stage)

    @property
    def characters(self) -> Tuple[Optional[str], ...]:
        """Names of the characters by port index; None where nobody plays."""
        return tuple(None if port.type == 3 else melee.character_name(port.character) for port in self.settings.ports)


class Games(Handle):
    """An open corpus of games, a file or a folder. Its files stay open; only their index is read. May be shared by threads."""

    __slots__ = ()

    def __init__(self, path: Path, *, context: Optional[Context] = None) -> None:
        parent = context_or_default(context)
        self._core = parent._core
        self._handle = self._core.create(lib.exphil_games_open, parent._handle, path_bytes(path))

    def _about(self) -> str:
        info = self.info
        return f"{counted(info.games, 'game')}, {counted(info.frames, 'frame')}"

    @property
    def info(self) -> GamesInfo:
        """Counts, bytes and hash."""
        info = empty(GamesInfo)
        self._core.call(lib.exphil_games_query, self._handle, info)
        return read(GamesInfo, info)

    def __len__(self) -> int:
        """Games."""
        return self.info.games

    def game(self, index: int) -> Game:
        """One game, from 0, without its frames."""
        info, settings = empty(GameInfo), empty(SlpInfo)
        self._core.call(lib.exphil_games_game, self._handle, number(index, "index"), info, settings)
        return Game(read(GameInfo, info), read(SlpInfo, settings))

    def __iter__(self) -> Iterator[Game]:
        """All games in order, without their frames."""
        for index in range(len(self)):
            yield self.game(index)

    def read(self, index: int) -> Replay:
        """A game with its frames. What a corpus does not keep is absent, as in a replay that does not record it."""
        made = Replay.__new__(Replay)
        made._core = self._core
        made._handle = self._core.create(lib.exphil_games_read, self._handle, number(index, "index"))
        return made

    def verify(self) -> None:
        """Reads and checks everything; FormatError names the first damaged game."""
        self._core.call(lib.exphil_games_verify, self._handle)


class GamesWriter(Handle):
    """Writes a corpus of games: a file, or new files in a folder that exists. One thread at a time.

    As a context manager it finishes the corpus in the end, and leaves it unfinished when something was raised: then a file
    is not written, and of a folder what was whole stays.
    """

    __slots__ = ("_path",)

    def __init__(
        self, path: Path, *, context: Optional[Context] = None, shard_bytes: int = 0, level: int = 0, stored: int = 0
    ) -> None:
        parent = context_or_default(context)
        config = Config("exphil_games_config").set(shard_bytes=shard_bytes, level=level, stored=stored)
        self._core = parent._core
        self._handle = self._core.create(lib.exphil_games_create, parent._handle, path_bytes(path), config)
        self._path = os.fspath(path)

    def _about(self) -> str:
        return f"to {self._path!r}"

    def add(self, path: Path) -> GamesAdded:
        """Adds a replay file. What cannot be added raises, and the writer goes on."""
        return self._add(lib.exphil_games_add, path_bytes(path))

    def add_memory(self, data: Any) -> GamesAdded:
        """The same from the bytes of a replay."""
        source = ffi.from_buffer(data)
        return self._add(lib.exphil_games_add_memory, source, len(source))

    def add_replays(
        self, paths: Paths = (), *, files_from: Optional[ListOfFiles] = None, exclude: Union[str, Iterable[str]] = ()
    ) -> Added[GamesAdded]:
        """Adds many replays: files, folders with all .slp below them, and what a list names; as Dataset.add_replays.

        No replay ends it: those that were not added, and why, are in the result; games that were there already are taken with
        duplicate 1.
        """
        self._handle
        return add_all(paths, files_from, exclude, self.add)

    def copy(self, games: Games, index: int) -> GamesAdded:
        """Adds a game of another corpus as it is packed there, after a check."""
        expect(games, Games, "games")
        return self._add(lib.exphil_games_copy, games._handle, number(index, "index"))

    def _add(self, function: Any, *source: Any) -> GamesAdded:
        added = empty(GamesAdded)
        self._core.call(function, self._handle, *source, added)
        return read(GamesAdded, added)

    def finish(self) -> GamesInfo:
        """Ends the corpus, tells what this writer wrote, and closes."""
        info = empty(GamesInfo)
        self._core.call(lib.exphil_games_finish, self._handle, info)
        self.close()
        return read(GamesInfo, info)

    def __exit__(self, *raised: Any) -> None:
        if not self.closed and raised[0] is None:
            self.finish()
        self.close()
