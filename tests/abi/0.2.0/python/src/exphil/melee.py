"""Melee: what a frame and a controller look like, and the one encoder that replays and live play both go through.

Frames and pads are NumPy records: frame["player"][0]["x"] = 3. Ports count from 1, so player[0] is port 1.
"""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from ._native import ffi, lib
from .arrays import Array, Floats, Ints, number, record, room, take
from .constants import Known
from .errors import call, text
from .handle import Config, c_text, put
from .records import MeleeField
from .spec import Spec, empty_spec, read_spec
from .structs import empty, read

CHARACTER = record("exphil_melee_character")
ITEM = record("exphil_melee_item")
FRAME = record("exphil_melee_frame")
PAD = record("exphil_pad")


def begin(frames: Array) -> Array:
    """Makes zeroed frames those of a game that has just begun: where zero would say something else than a replay's first
    frame, its value."""
    frames["struct_size"] = FRAME.itemsize
    frames["platform_left"], frames["platform_right"] = 20, 28
    frames["item"]["owner"] = -1
    for who in ("player", "follower"):
        frames[who]["known"] = Known.ALL
    return frames


def frames(count: int = 1) -> Array:
    """New frames with nobody in them: set stage, own_port, and of each player present. All else is zero, but for what a
    game begins with: Fountain of Dreams' platforms at 20 and 28, items of nobody (owner -1), all fields known."""
    return begin(np.zeros(number(count, "count"), FRAME))


def copy_frames(target: Array, source: Any) -> None:
    """Copies as many frames as target has; a single one may come without its array."""
    given = np.asarray(source)
    if given.dtype != FRAME:
        raise TypeError(f"frames must have the type melee.FRAME, not {given.dtype}")
    if given.shape != target.shape and not (given.shape == () and target.shape == (1,)):
        raise ValueError(f"frames has shape {given.shape}, must be {target.shape}")
    target[...] = given
    target["struct_size"] = FRAME.itemsize


def name_or_null(value: Optional[str], name: str) -> Any:
    """The name of a layout or codec; NULL for None, the default."""
    return ffi.NULL if value is None else c_text(value, name)


def spec(layout: Optional[str] = None, codec: Optional[str] = None) -> Spec:
    """A preset: layout "melee2" (None), "exphil288", "slippi" or "slippi-nana", codec "exphil81" (None), "exphil81-floor",
    "slippi" or "slippi-fine"."""
    made = empty_spec()
    call(lib.exphil_melee_spec, name_or_null(layout, "layout"), name_or_null(codec, "codec"), made)
    return read_spec(made)


def fields(layout: Optional[str] = None) -> List[MeleeField]:
    """Every column of a layout: which number stands where and how it was scaled."""
    spec(layout)
    name = name_or_null(layout, "layout")
    found = []
    for index in range(lib.exphil_melee_field_count(name)):
        field = empty(MeleeField)
        call(lib.exphil_melee_field_get, name, index, field)
        found.append(read(MeleeField, field))
    return found


def character_name(external: int) -> Optional[str]:
    """Name of an external character id, "fox"; None when unknown."""
    return text(lib.exphil_melee_character_name(number(external, "external", "int32_t"))) or None


def stage_name(external: int) -> Optional[str]:
    """Name of an external stage id, "battlefield"; None when unknown."""
    return text(lib.exphil_melee_stage_name(number(external, "external", "int32_t"))) or None


def encode(frame: Any, layout: Optional[str] = None) -> Tuple[Floats, Ints]:
    """The row that a policy sees: floats [F], ids [K]. NumericError names a field that is not finite."""
    sizes = spec(layout)
    native, own = room("exphil_melee_frame", (1,), FRAME)
    copy_frames(own, frame)
    p_floats, floats = room("float", (sizes.float_count,), np.float32)
    p_ids, ids = room("int32_t", (len(sizes.ids),), np.int32)
    call(lib.exphil_melee_encode, name_or_null(layout, "layout"), native, p_floats, p_ids)
    return floats, ids


def reward(
    before: Any,
    now: Any,
    *,
    stock: float = 0.0,
    damage: float = 0.0,
    follower: float = 0.0,
    ledge: float = 0.0,
    stalling: float = 0.0,
    stalling_distance: float = 0.0,
    approach: float = 0.0,
) -> float:
    """What the frame between two was worth to the player who sees them, zero sum (exphil_melee_reward in exphil/learn.h)."""
    frames = []
    for frame in (before, now):
        native, own = room("exphil_melee_frame", (1,), FRAME)
        copy_frames(own, frame)
        frames.append((native, own))
    config = Config("exphil_melee_reward_config").set(
        stock=stock, damage=damage, follower=follower, ledge=ledge, stalling=stalling, stalling_distance=stalling_distance,
        approach=approach)  # fmt: skip
    value = ffi.new("float *")
    call(lib.exphil_melee_reward, config.struct, frames[0][0], frames[1][0], value)
    return float(value[0])


def pad(
    buttons: int = 0,
    main_x: float = 0.0,
    main_y: float = 0.0,
    c_x: float = 0.0,
    c_y: float = 0.0,
    trigger: float = 0.0,
) -> Array:
    """A controller: pad(buttons=Button.A, main_x=-1.0). Sticks are -1..1, the trigger 0..1."""
    native, made = room("exphil_pad", (1,), PAD)
    for name, value in zip(PAD.names or (), (buttons, main_x, main_y, c_x, c_y, trigger)):
        put(native[0], "exphil_pad", name, value)
    return made.reshape(())


def pad_encode(pad: Any, codec: Optional[str] = None) -> Ints:
    """Head values [A] of a controller."""
    sizes = spec(None, codec)
    given = np.asarray(pad)
    if given.dtype != PAD or given.size != 1:
        raise TypeError("pad must be one record of the type melee.PAD")
    native, own = room("exphil_pad", (1,), PAD)
    own[0] = given.reshape(1)[0]
    p_action, action = room("int32_t", (len(sizes.heads),), np.int32)
    call(lib.exphil_melee_pad_encode, name_or_null(codec, "codec"), native, p_action)
    return action


def pad_decode(action: Any, codec: Optional[str] = None) -> Array:
    """The controller that head values [A] stand for."""
    values = take(action, np.int32, (len(spec(None, codec).heads),), "action")
    native, own = room("exphil_pad", (1,), PAD)
    call(lib.exphil_melee_pad_decode, name_or_null(codec, "codec"), ffi.from_buffer("int32_t[]", values), native)
    return own.reshape(())
