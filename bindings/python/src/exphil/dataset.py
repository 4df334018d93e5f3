"""Datasets: frames in memory or in a corpus file, grouped in episodes."""
from __future__ import annotations

from typing import Any, Iterable, Iterator, NamedTuple, Optional, Tuple, Union

import numpy as np

from ._native import ffi, lib
from .arrays import Floats, Ints, Longs, number, out, pointer, take
from .codes import Code, code
from .constants import GameResult, Presence, Split
from .context import Context, context_or_default
from .errors import FormatError
from .files import Added, ListOfFiles, Paths, add_all
from .games import Games
from .handle import Config, Handle, Path, c_text, counted, expect, own, path_bytes, replay_config
from .records import DatasetInfo, EpisodeInfo, ReplayResult, SelectionReport
from .spec import Spec, empty_spec, read_spec, spec_pointer
from .structs import empty, read


class Rows(NamedTuple):
    """Frames as arrays of their own: floats [T,F], ids [T,K], actions [T,A], and episodes [T], the index of each one's
    episode."""

    floats: Floats
    ids: Ints
    actions: Ints
    episodes: Longs


class Dataset(Handle):
    """Frames to learn from. Row t holds what is known before the action of frame t acts, and that action: with a delay
    too, the library shifts. spec None is Melee, whose replays add_replay reads. One thread at a time."""

    __slots__ = ("_sizes",)
    _sizes: Tuple[int, int, int]

    def __init__(self, spec: Optional[Spec] = None, *, context: Optional[Context] = None) -> None:
        config = Config("exphil_dataset_config")
        config.set(spec=spec_pointer(config, spec))
        self._make(context, lib.exphil_dataset_create, config)

    def _make(self, context: Optional[Context], function: Any, *arguments: Any) -> None:
        parent = context_or_default(context)
        self._core = parent._core
        self._adopt(self._core.create(function, parent._handle, *arguments))

    def _adopt(self, handle: Any) -> None:
        self._handle = handle
        info = self.info
        self._sizes = info.float_count, info.id_count, info.head_count

    def _about(self) -> str:
        info = self.info
        return f"{counted(info.frames, 'frame')}, {counted(info.episodes, 'episode')}, {info.layout}"

    @classmethod
    def open(cls, path: Path, context: Optional[Context] = None) -> "Dataset":
        """Opens a corpus that save wrote. It stays open, and its rows are read when they are needed."""
        made = cls.__new__(cls)
        made._make(context, lib.exphil_dataset_open, path_bytes(path))
        return made

    def save(self, path: Path) -> None:
        """Writes a corpus file."""
        self._core.call(lib.exphil_dataset_save, self._handle, path_bytes(path))

    def verify(self) -> None:
        """Checks all rows now; FormatError names the first damaged place."""
        self._core.call(lib.exphil_dataset_verify, self._handle)

    # ---- adding ----

    def add_replay(
        self,
        path: Path,
        *,
        character: Optional[str] = None,
        port: int = 0,
        opponent_port: int = 0,
        first_frame: int = 0,
        last_frame: int = 0,
    ) -> ReplayResult:
        """Adds the play of a Slippi replay: of one port (1..4) or of all humans (0) that play this character."""
        return self._add_replay(
            lib.exphil_dataset_add_replay, (path_bytes(path),), character, port, opponent_port, first_frame, last_frame
        )

    def add_replay_memory(
        self,
        data: Any,
        *,
        character: Optional[str] = None,
        port: int = 0,
        opponent_port: int = 0,
        first_frame: int = 0,
        last_frame: int = 0,
    ) -> ReplayResult:
        """The same from the bytes of a replay."""
        source = ffi.from_buffer(data)
        return self._add_replay(
            lib.exphil_dataset_add_replay_memory,
            (source, len(source)),
            character,
            port,
            opponent_port,
            first_frame,
            last_frame,
        )

    def add_replays(
        self,
        paths: Paths = (),
        *,
        files_from: Optional[ListOfFiles] = None,
        exclude: Union[str, Iterable[str]] = (),
        character: Optional[str] = None,
        port: int = 0,
        opponent_port: int = 0,
        first_frame: int = 0,
        last_frame: int = 0,
    ) -> Added[ReplayResult]:
        """Adds many replays: files, folders with all .slp below them, and what a list names, one path a line (or each with a
        NUL, as find -print0 writes). exclude: patterns of what is left out, by path or by name: "*/old/*", "test*".

        No replay ends it: those of which nothing was taken, and why, are in the result. Wrong settings are raised as by
        add_replay. Named files come in their order, then the list and the files of each folder by name; each comes once.
        """
        numbers = (port, opponent_port, first_frame, last_frame)
        try:  # what is wrong with the settings is no file's fault
            self._add_replay(lib.exphil_dataset_add_replay_memory, (b"no replay", 9), character, *numbers)
        except FormatError:
            pass
        return add_all(
            paths, files_from, exclude,
            lambda path: self._add_replay(lib.exphil_dataset_add_replay, (path_bytes(path),), character, *numbers),
        )

    def _add_replay(
        self, function: Any, source: Tuple[Any, ...], character: Optional[str], *numbers: int
    ) -> ReplayResult:
        config = replay_config(character, *numbers)
        result = empty(ReplayResult)
        self._core.call(function, self._handle, *source, config, result)
        return read(ReplayResult, result)

    def add_games(
        self,
        games: Games,
        *,
        stages: Optional[str] = None,
        least_frames: int = 0,
        most_frames: int = 0,
        first_day: int = 0,
        last_day: int = 0,
        least_version: int = 0,
        teams: Code = Presence.WITH_OR_WITHOUT,
        items: Code = Presence.WITH_OR_WITHOUT,
        players: int = 0,
        complete: bool = False,
        humans: bool = False,
        characters: Optional[str] = None,
        port: int = 0,
        result: Code = GameResult.ANY,
        least_damage: int = 0,
        least_stocks: int = 0,
        self_destructs_below: int = 0,
        least_input: float = 0.0,
        opponents: Optional[str] = None,
        opponent_port: int = 0,
        first_frame: int = 0,
        last_frame: int = 0,
        duplicates: bool = False,
    ) -> SelectionReport:
        """Adds rows of a corpus of games, which are made when they are needed: of every human player, or of those that pass.

        Lists are names or numbers with spaces or commas between them: characters="fox falco". games.h says what each filter
        asks. The report has what was taken, and by Refused why players were not.
        """
        expect(games, Games, "games")
        config = Config("exphil_selection").set(stages=stages, characters=characters, opponents=opponents)
        config.set(least_frames=least_frames, most_frames=most_frames, first_day=first_day, last_day=last_day)
        config.set(teams=code(Presence, teams, "teams"), items=code(Presence, items, "items"))
        config.set(least_version=least_version, players=players, complete=complete, humans=humans, port=port)
        config.set(result=code(GameResult, result, "result"), least_damage=least_damage, least_stocks=least_stocks)
        config.set(self_destructs_below=self_destructs_below, least_input=least_input, opponent_port=opponent_port)
        config.set(first_frame=first_frame, last_frame=last_frame, duplicates=duplicates)
        report = empty(SelectionReport)
        self._core.call(lib.exphil_dataset_add_games, self._handle, games._handle, config, report)
        return read(SelectionReport, report)

    def set_rewards(
        self, game: int, rewards: Any, *, port: int = 0, first_frame: int = 0, over: bool = True, half_life_frames: float = 240.0
    ) -> None:
        """What came of each frame for one player of one game (EpisodeInfo has game and port): rewards of the frames from
        first_frame on. over False: the game was cut off. Batches of prefetchers made afterwards have the discounted returns."""
        values = take(rewards, np.float32, (None,), "rewards")
        self._core.call(
            lib.exphil_dataset_rewards_set,
            self._handle,
            number(game, "game", "uint64_t"),
            number(port, "port", "int32_t"),
            number(first_frame, "first_frame", "int32_t"),
            pointer("float", values),
            len(values),
            1 if over else 0,
            half_life_frames,
        )

    def add_rows(self, floats: Any, ids: Any, actions: Any, *, game: int = 0) -> None:
        """Adds one episode of any game: floats [T,F], ids [T,K] (None where K is 0), actions [T,A]; copied.

        game groups episodes that a split must keep together.
        """
        float_count, id_count, head_count = self._sizes
        action_rows = take(actions, np.int32, (None, head_count), "actions")
        count = len(action_rows)
        no_floats, no_ids = np.empty((count, 0), np.float32), np.empty((count, 0), np.int32)
        float_rows = take(no_floats if floats is None else floats, np.float32, (None, float_count), "floats")
        id_rows = take(no_ids if ids is None else ids, np.int32, (None, id_count), "ids")
        if not len(float_rows) == len(id_rows) == count:
            raise ValueError(
                f"floats has shape {float_rows.shape}, ids {id_rows.shape}, actions {action_rows.shape}: each must have one row "
                "for every frame"
            )
        self._core.call(
            lib.exphil_dataset_add_rows,
            self._handle,
            number(game, "game", "uint64_t"),
            count,
            pointer("float", float_rows),
            pointer("int32_t", id_rows),
            pointer("int32_t", action_rows),
        )

    # ---- conditions ----

    def condition(self, name: str, game: int, value: int, *, port: int = 0) -> None:
        """Gives a condition a value in all episodes of a game (EpisodeInfo.game) that are of one port (0: of those that have
        no value of their own), whether they are there or come later."""
        self._core.call(
            lib.exphil_dataset_condition,
            self._handle,
            c_text(name, "name"),
            number(game, "game", "uint64_t"),
            number(port, "port", "int32_t"),
            number(value, "value", "int32_t"),
        )

    def condition_episodes(self, name: str, first: int, count: int, value: int) -> None:
        """The same for the episodes first, first + 1, ..., whatever their game. It goes before condition()."""
        self._core.call(
            lib.exphil_dataset_condition_episodes,
            self._handle,
            c_text(name, "name"),
            number(first, "first"),
            number(count, "count"),
            number(value, "value", "int32_t"),
        )

    # ---- weights ----

    def weight(
        self, game: int, weight: float, *, port: int = 0, first_frame: Optional[int] = None, last_frame: Optional[int] = None
    ) -> None:
        """How much frames of a game count in training: 0, or 1e-6 to 1000, in the place of 1.

        port 0 is all ports; without first_frame from the beginning, without last_frame to the end. A later call replaces
        earlier ones where both hold. EpisodeInfo.game names the game.
        """
        self._core.call(
            lib.exphil_dataset_weight,
            self._handle,
            number(game, "game", "uint64_t"),
            number(port, "port"),
            -(2**31) if first_frame is None else number(first_frame, "first_frame"),
            2**31 - 1 if last_frame is None else number(last_frame, "last_frame"),
            weight,
        )

    # ---- looking ----

    @property
    def info(self) -> DatasetInfo:
        """Sizes, hashes and layout."""
        info = empty(DatasetInfo)
        self._core.call(lib.exphil_dataset_query, self._handle, info)
        return read(DatasetInfo, info)

    @property
    def spec(self) -> Spec:
        """What its frames look like."""
        spec = empty_spec()
        self._core.call(lib.exphil_dataset_spec, self._handle, spec)
        return read_spec(spec)

    def __len__(self) -> int:
        """Frames."""
        return self.info.frames

    def episode(self, index: int) -> EpisodeInfo:
        """One episode, from 0."""
        info = empty(EpisodeInfo)
        self._core.call(lib.exphil_dataset_episode, self._handle, number(index, "index"), info)
        return read(EpisodeInfo, info)

    def episodes(self) -> Iterator[EpisodeInfo]:
        """All episodes in order."""
        for index in range(self.info.episodes):
            yield self.episode(index)

    def frame(self, index: int) -> Tuple[Floats, Ints, Ints]:
        """One frame in constant time: floats [F], ids [K], action [A]."""
        float_count, id_count, head_count = self._sizes
        floats = np.empty(float_count, np.float32)
        ids, action = np.empty(id_count, np.int32), np.empty(head_count, np.int32)
        self._core.call(
            lib.exphil_dataset_frame,
            self._handle,
            number(index, "index"),
            out("float", floats),
            out("int32_t", ids),
            out("int32_t", action),
        )
        return floats, ids, action

    def rows(self, first: int = 0, end: Optional[int] = None) -> Rows:
        """Frames [first, end) in one call, across episodes; end None: to the last. InvalidError where there are no such
        frames. dataset.rows(episode.first, episode.first + episode.frames) is an episode."""
        float_count, id_count, head_count = self._sizes
        frames, start = len(self), number(first, "first")
        count = (frames if end is None else number(end, "end")) - start
        room = count if 0 <= start and 0 <= count <= frames - start else 0  # else the library refuses it
        made = Rows(
            np.empty((room, float_count), np.float32),
            np.empty((room, id_count), np.int32),
            np.empty((room, head_count), np.int32),
            np.empty(room, np.int64),
        )
        self._core.call(
            lib.exphil_dataset_rows,
            self._handle,
            start,
            number(count, "end"),
            out("float", made.floats),
            out("int32_t", made.ids),
            out("int32_t", made.actions),
            out("int64_t", made.episodes),
        )
        return made

    def split(self, held_out: float, *, seed: int = 0, by: Code = Split.GAME) -> Tuple["Dataset", "Dataset"]:
        """Two datasets that share the rows: what is kept, and the share that is held out."""
        config = Config("exphil_split_config").set(held_out=held_out, seed=seed, by=code(Split, by, "by"))
        kept, rest = ffi.new("exphil_dataset **"), ffi.new("exphil_dataset **")
        self._core.call(lib.exphil_dataset_split, self._handle, config, kept, rest)
        return self._child(kept[0]), self._child(rest[0])

    def _child(self, native: Any) -> "Dataset":
        made = Dataset.__new__(Dataset)
        made._core = self._core
        made._adopt(own("exphil_dataset", native))
        return made


def dataset_pointer(dataset: Optional[Dataset], name: str) -> Any:
    """The native dataset; NULL for None."""
    if dataset is None:
        return ffi.NULL
    expect(dataset, Dataset, name)
    return dataset._handle
