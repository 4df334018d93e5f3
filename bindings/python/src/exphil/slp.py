"""Slippi replays (.slp) and the live event stream.

Records hold the file's port index 0..3; melee_frame and melee_pad take the port that players say, 1..4.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from . import melee
from ._native import ffi, lib
from .arrays import Array, Floats, Ints, number, out, record, room, view
from .codes import Code, code
from .constants import Dump, Rollback
from .context import Context, context_or_default
from .errors import make_error
from .handle import Config, Handle, Path, counted, path_bytes, replay_config
from .records import GameEnd, SlpInfo
from .structs import empty, read

FIRST_FRAME = int(lib.EXPHIL_SLP_FIRST_FRAME)
FIRST_PLAYABLE = int(lib.EXPHIL_SLP_FIRST_PLAYABLE)

FRAME = record("exphil_slp_frame")
PLAYER = record("exphil_slp_player")
ITEM = record("exphil_slp_item")


@dataclass(frozen=True)
class Slot:
    """All records of one character, frames ascending; records is an array of PLAYER."""

    port: int
    follower: int
    first_frame: int
    last_frame: int
    records: Array


class ReplayRows(NamedTuple):
    """Rows of one player: floats [T,F], ids [T,K], actions [T,A], and frames [T], the game frame that each action acts in."""

    floats: Floats
    ids: Ints
    actions: Ints
    frames: Ints


def _who(port_index: int, follower: int) -> Tuple[int, int]:
    return number(port_index, "port_index", "int32_t"), number(follower, "follower", "int32_t")


def _ports(own_port: int, opponent_port: int) -> Tuple[int, int]:
    return number(own_port, "own_port", "int32_t"), number(opponent_port, "opponent_port", "int32_t")


class Replay(Handle):
    """A replay that was read whole. Damaged ones give the complete frames before the damage; info says where and why.

    Arrays are views of its memory, which lives as long as any of them. May be shared by threads.
    """

    __slots__ = ()

    def __init__(
        self, path: Path, *, context: Optional[Context] = None, rollback: Code = Rollback.LAST, limit_bytes: int = 0
    ) -> None:
        self._make(context, lib.exphil_slp_open, (path_bytes(path),), rollback, limit_bytes)

    @classmethod
    def read(
        cls, data: Any, *, context: Optional[Context] = None, rollback: Code = Rollback.LAST, limit_bytes: int = 0
    ) -> "Replay":
        """The same from bytes, which are not needed afterwards."""
        made = cls.__new__(cls)
        source = ffi.from_buffer(data)
        made._make(context, lib.exphil_slp_read, (source, len(source)), rollback, limit_bytes)
        return made

    def _make(self, context: Optional[Context], function: Any, source: Any, rollback: Code, limit_bytes: int) -> None:
        parent = context_or_default(context)
        config = Config("exphil_slp_config").set(rollback=code(Rollback, rollback, "rollback"), limit_bytes=limit_bytes)
        self._core = parent._core
        self._handle = self._core.create(function, parent._handle, *source, config)

    def _about(self) -> str:
        info = self.info
        who = [melee.character_name(port.character) or "somebody" for port in info.ports if port.type != 3]
        where = melee.stage_name(info.stage) or f"stage {info.stage}"
        return f"{counted(len(self), 'frame')}, {', '.join(who)} on {where}{', ends early' * bool(info.truncated)}"

    @property
    def info(self) -> SlpInfo:
        """What the replay holds, and the settings of the game."""
        info = empty(SlpInfo)
        self._core.call(lib.exphil_slp_query, self._handle, info)
        return read(SlpInfo, info)

    @property
    def end(self) -> GameEnd:
        """How the game ended, and who won."""
        end = empty(GameEnd)
        self._core.call(lib.exphil_slp_result_get, self._handle, end)
        return read(GameEnd, end)

    def __len__(self) -> int:
        """Frames."""
        return int(lib.exphil_slp_frame_count(self._handle))

    @property
    def frames(self) -> Array:
        """All frames as one array of FRAME, game frames ascending."""
        handle = self._handle
        return view(handle, lib.exphil_slp_frame_at(handle, 0), (len(self),), FRAME)

    def position(self, frame: int) -> int:
        """Where in frames a game frame (-123, ...) is; KeyError when the replay lacks it."""
        found = int(lib.exphil_slp_position(self._handle, number(frame, "frame", "int32_t")))
        if found < 0:
            raise KeyError(f"the replay has no frame {frame}")
        return found

    def items(self, position: int) -> Array:
        """Items of the frame at a position, an array of ITEM."""
        frame = lib.exphil_slp_frame_at(self._handle, number(position, "position"))
        if frame == ffi.NULL:
            raise IndexError(f"position {position} is outside of the {len(self)} frames")
        return view(self._handle, frame.items, (frame.item_count,), ITEM)

    def slots(self) -> List[Slot]:
        """Characters with at least one record, ordered by port and follower."""
        handle = self._handle
        found = []
        for index in range(lib.exphil_slp_slot_count(handle)):
            slot = lib.exphil_slp_slot_at(handle, index)
            records = view(handle, slot.records, (slot.record_count,), PLAYER)
            found.append(Slot(slot.port, slot.follower, slot.first_frame, slot.last_frame, records))
        return found

    def player(self, position: int, port_index: int, follower: int = 0) -> Any:
        """One character at a position, a record of PLAYER; None when it is not there."""
        handle = self._handle
        found = lib.exphil_slp_player_at(handle, number(position, "position"), *_who(port_index, follower))
        return None if found == ffi.NULL else view(handle, found, (1,), PLAYER)[0]

    def dump(self, kind: Code, slot: int = 0) -> bytes:
        """Canonical bytes of a slot's frames ("state", "input", "aux") or of all items ("items")."""
        what, slot = code(Dump, kind, "kind"), number(slot, "slot", "int32_t")
        data = bytearray(lib.exphil_slp_dump_bytes(self._handle, what, slot))
        target = ffi.from_buffer(data, require_writable=True)
        self._core.call(lib.exphil_slp_dump, self._handle, what, slot, target, len(data))
        return bytes(data)

    def melee_frame(self, position: int, own_port: int, opponent_port: int = 0) -> Array:
        """What a policy of own_port (1..4) knows after the frame at a position: one record of melee.FRAME."""
        native, frame = room("exphil_melee_frame", (1,), melee.FRAME)
        frame["struct_size"] = melee.FRAME.itemsize
        ports = _ports(own_port, opponent_port)
        self._core.call(lib.exphil_slp_melee_frame, self._handle, number(position, "position"), *ports, native)
        return frame.reshape(())

    def melee_pad(self, position: int, port: int) -> Array:
        """What the player of a port (1..4) did on the frame at a position: one record of melee.PAD."""
        native, pad = room("exphil_pad", (1,), melee.PAD)
        where = number(position, "position"), number(port, "port", "int32_t")
        self._core.call(lib.exphil_slp_melee_pad, self._handle, *where, native)
        return pad.reshape(())


    def rows(
        self,
        port: int,
        *,
        layout: Optional[str] = None,
        codec: Optional[str] = None,
        character: Optional[str] = None,
        opponent_port: int = 0,
        first_frame: int = 0,
        last_frame: int = 0,
    ) -> ReplayRows:
        """All that a policy learns of a port (1..4) in one call: what Dataset.add_replay would add with these settings.

        What it leaves out has no row: an absent character, a missing frame. layout and codec as in melee.spec; melee.fields
        names the columns. For what a character's records hold, see slots.
        """
        sizes, most = melee.spec(layout, codec), len(self)
        made = ReplayRows(
            np.empty((most, sizes.float_count), np.float32),
            np.empty((most, len(sizes.ids)), np.int32),
            np.empty((most, len(sizes.heads)), np.int32),
            np.empty(most, np.int32),
        )
        count = ffi.new("int64_t *")
        self._core.call(
            lib.exphil_slp_melee_rows,
            self._handle,
            melee.name_or_null(layout, "layout"),
            melee.name_or_null(codec, "codec"),
            replay_config(character, port, opponent_port, first_frame, last_frame),
            most,
            out("int32_t", made.frames),
            out("float", made.floats),
            out("int32_t", made.ids),
            out("int32_t", made.actions),
            count,
        )
        rows = int(count[0])
        return ReplayRows(made.floats[:rows], made.ids[:rows], made.actions[:rows], made.frames[:rows])


class Stream(Handle):
    """Takes the bytes of one game as they come and gives each frame as soon as it is complete. A frame index that comes
    again replaces what was known. One thread at a time."""

    __slots__ = ("over",)
    over: bool

    def __init__(self, *, context: Optional[Context] = None) -> None:
        parent = context_or_default(context)
        self.over = False
        self._core = parent._core
        self._handle = self._core.create(lib.exphil_slp_stream_create, parent._handle)

    def _about(self) -> str:
        return "of a game that is over" if self.over else "of a game that is not over"

    def push(self, data: Any) -> Iterator[Array]:
        """Each frame that these bytes complete, one record of FRAME. While it is looked at, player and melee_frame
        speak of it. All bytes are taken when the iteration ends; over is set when the game has ended."""
        source = ffi.from_buffer(data)
        used = ffi.new("size_t *")
        at = 0
        while not self.over:
            used[0] = 0
            status = self._core.call(lib.exphil_slp_stream_push, self._handle, source + at, len(source) - at, used)
            at += used[0]
            self.over = status == lib.EXPHIL_END
            if status != lib.EXPHIL_OK:
                return
            yield self._frame()

    def _frame(self) -> Array:
        frame = lib.exphil_slp_stream_frame(self._handle)
        if frame == ffi.NULL:
            raise make_error(lib.EXPHIL_E_BUSY, "the stream is in use on another thread")
        return np.frombuffer(bytes(ffi.buffer(frame, FRAME.itemsize)), FRAME).reshape(())

    def items(self) -> Array:
        """Items of the frame that is ready, copied."""
        frame = lib.exphil_slp_stream_frame(self._handle)
        if frame == ffi.NULL or not frame.item_count:
            return np.empty(0, ITEM)
        return np.frombuffer(bytes(ffi.buffer(frame.items, frame.item_count * ITEM.itemsize)), ITEM)

    def player(self, port_index: int, follower: int = 0) -> Any:
        """One character of the frame that is ready, a record of PLAYER, copied; None when it is not there."""
        found = lib.exphil_slp_stream_player(self._handle, *_who(port_index, follower))
        if found == ffi.NULL:
            return None
        return np.frombuffer(bytes(ffi.buffer(found, PLAYER.itemsize)), PLAYER)[0]

    def melee_frame(self, own_port: int, opponent_port: int = 0) -> Array:
        """The observation after the frame that is ready: the bits that the finished replay will give."""
        native, frame = room("exphil_melee_frame", (1,), melee.FRAME)
        frame["struct_size"] = melee.FRAME.itemsize
        self._core.call(lib.exphil_slp_stream_melee_frame, self._handle, *_ports(own_port, opponent_port), native)
        return frame.reshape(())

    @property
    def info(self) -> SlpInfo:
        """What is known so far; StateError before the game has started."""
        info = empty(SlpInfo)
        self._core.call(lib.exphil_slp_stream_query, self._handle, info)
        return read(SlpInfo, info)

    def reset(self) -> None:
        """Forgets the game; the next bytes are the start of another one."""
        self._core.call(lib.exphil_slp_stream_reset, self._handle)
        self.over = False
