"""Policies of other systems as files of this library: python -m exphil.convert.

Nothing in a foreign file is executed; what is read of it is bounded by its size. doc/convert.md says which policies can be
converted, what they compute, and why others are refused."""
from __future__ import annotations

import hashlib
import os
from typing import Any, Dict, Optional

from .. import library
from ..errors import ExphilError
from ..model import Model
from . import exphil_policies, output, safetensors, slippi_policies
from .policy import Policy
from .refusal import Damaged, Refused
from .sources import Source, read_bytes, read_source, settings_of

__all__ = ["Damaged", "Refused", "convert"]


def _digest(path: str) -> str:
    """SHA-256 of a file; of a folder, of its files' digests in the order of their names."""
    if not os.path.isdir(path):
        return hashlib.sha256(read_bytes(path)).hexdigest()
    lines = (f"{name} {hashlib.sha256(read_bytes(os.path.join(path, name))).hexdigest()}\n"
             for name in sorted(os.listdir(path)) if os.path.isfile(os.path.join(path, name)))  # fmt: skip
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _policy(source: Source, what: str, config: Optional[str], mode: str, player: Optional[str]) -> Policy:
    if source.form == "pickle":
        if config or mode == "window":
            raise Refused(f"{what}: a checkpoint of slippi-ai has its own configuration, and its state is carried on")
        return slippi_policies.convert(source.state, what, player)
    if player is not None:
        raise Refused(f"{what}: a policy of ExPhil knows no players")
    settings = settings_of(config) if config else source.settings
    if settings is None:
        raise Refused(f"{what}: it has weights alone: give its configuration (--config: metadata.json of ExPhil's export_numpy.exs,"
                      " or an object with backbone, embed_size, window_size, axis_buckets, shoulder_buckets,"
                      " use_prev_action)")  # fmt: skip
    return exphil_policies.convert(source.tensors, settings, mode)


def convert(
    path: "str | os.PathLike[str]",
    out: "str | os.PathLike[str]",
    *,
    layout: Optional[str] = None,
    codec: Optional[str] = None,
    config: "str | os.PathLike[str] | None" = None,
    mode: str = "",
    player: Optional[str] = None,
) -> Dict[str, Any]:
    """Writes the policy of a foreign file as one of this library, and tells what it is.

    layout, codec: refused unless the policy was trained on them. config: the configuration of a file that has none. mode: "window"
    or "carry" of a policy of ExPhil's. player: the name, as its checkpoint knows it, that a policy of slippi-ai is to play as; it
    is not written. The file is loaded before it takes its name; what stood there stays if anything fails. Damaged and Refused say
    what is wrong with a file, an OSError which file cannot be read or written."""
    source_path, out_path = os.fspath(path), os.fspath(out)
    config_path = os.fspath(config) if config is not None else None
    what = os.path.basename(os.path.normpath(source_path))
    if mode not in ("", "window", "carry"):
        raise ValueError(f"mode is {mode!r}: window, carry or nothing")
    output.check(out_path, [source_path] if config_path is None else [source_path, config_path])
    try:
        policy = _policy(read_source(source_path), what, config_path, mode, player)
        return _written(policy, what, source_path, out_path, layout, codec)
    except MemoryError:
        raise Refused(f"{what}: there is not enough memory for it") from None


def _written(policy: Policy, what: str, path: str, out: str, layout: Optional[str], codec: Optional[str]) -> Dict[str, Any]:
    """The policy as a file, and what convert() tells of it."""
    for name, asked, found in (("layout", layout, policy.layout), ("codec", codec, policy.codec)):
        if asked is not None and asked != found:
            raise Refused(f"{what}: it was trained on the {name} {found}, not on {asked}")
    notes = {"source_sha256": _digest(path), "version": library.library_version().split()[0], **policy.told}
    temporary = output.write_temporary(out, safetensors.encoded(policy.tensors, policy.metadata(notes)))
    try:
        with Model.load(temporary) as model:
            blocks = model.info.blocks
        os.replace(temporary, out)
    except ExphilError as reason:
        os.unlink(temporary)
        raise Refused(f"{what}: this library does not take the policy: {str(reason).replace(temporary, 'the new file')}") from None
    except BaseException:
        os.unlink(temporary)
        raise
    return {**notes, "layout": policy.layout, "codec": policy.codec, "blocks": blocks, "parameters": policy.parameters(),
            "mode": policy.config.get("mode", "carry"), "delay_frames": policy.config.get("delay_frames", 0),
            "bytes": os.path.getsize(out)}  # fmt: skip
