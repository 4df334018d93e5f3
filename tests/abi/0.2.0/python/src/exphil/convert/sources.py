"""Which file is it? What each of them holds, as tensors and settings; files of other systems are recognised and refused with what
they would need."""
from __future__ import annotations

import errno
import os
from typing import Any, Dict, NamedTuple, Optional

from . import arrays, etf, npz, nx, pickles, safetensors
from .exphil_policies import config_settings
from .reader import Bytes, Reader, inflate_all
from .refusal import MOST_TENSORS, Damaged, Refused, shown, tensor_name
from .weights import Settings

_FILE_MOST = 16 << 30
_METADATA_MOST = 1 << 20
_BEYOND = {
    "Faynt": "rotary attention with normalised queries and keys, RMSNorm, SwiGLU, an output gate, its joint table of"
    " characters and actions, and a codec of 728 and 85 classes",
    "MIMIC": "attention with relative positions on vectors, heads of LayerNorm and GELU, its own layout and codec",
    "HAL": "a decoder that plans 28 frames, its own layout and codec",
}


class Source(NamedTuple):
    """A file of a policy: form is "npz", "safetensors", "folder", "term", "manifest" or "pickle"."""

    form: str
    tensors: Dict[str, Any]
    settings: Optional[Settings]
    state: Any


def read_bytes(path: str) -> bytes:
    """A whole file, of at most 16 GiB. A pipe or device is refused: it might never end, or wait for ever."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, "this is neither a regular file nor a folder", path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > _FILE_MOST:
            raise Refused(f"{os.path.basename(path)}: {size} bytes; {_FILE_MOST} at most")
        data = file.read(size + 1)  # Python makes room for as much as it is asked for
    if len(data) != size:
        raise Damaged(f"{os.path.basename(path)}: it changes while it is read")
    return data


def settings_of(path: str) -> Settings:
    """A configuration as JSON: an object, or the metadata.json of ExPhil's exporter, whose member config it is."""
    what = os.path.basename(path)
    data = read_bytes(path)
    if len(data) > _METADATA_MOST:
        raise Damaged(f"{what}: {len(data)} bytes of JSON")
    made = safetensors.read_json(data, what)
    if isinstance(made, dict) and isinstance(made.get("config"), dict):
        made = made["config"]
    return config_settings(made, what)


def _export(term: Any, what: str) -> Source:
    """A term of ExPhil: %{params, config}, or a checkpoint's %{policy_params, config, ...}."""
    if not isinstance(term, dict):
        raise Damaged(f"{what}: the term is no map")
    params = term.get("params", term.get("policy_params"))
    if params is None:
        raise Refused(f"{what}: the term has neither params nor policy_params")
    return Source("term", nx.term_tensors(params, what), config_settings(term.get("config"), what), None)


def _manifest(data: bytes, what: str) -> Source:
    """<<flag, bytes of metadata:32, metadata as a term, what Nx.serialize wrote>>; flag 1: the last part by zlib."""
    reader = Reader(data, what)
    flag, size = reader.byte(), reader.number(">I")
    told = etf.read_term(reader.take(size), f"{what}: metadata") if size else {}
    rest: Bytes = reader.take(reader.left())
    if flag:
        rest = inflate_all(rest, what)
    config = told.get("config") if isinstance(told, dict) else None
    return Source("manifest", nx.read_serialized(rest, what), config_settings(config, what) if config else None, None)


def _archive(data: bytes, what: str) -> Source:
    """NumPy's archive, or a torch file, which is a zip too."""
    members = npz.directory(data, what)
    system = None
    pickle = next((name for name in members if name == "data.pkl" or name.endswith("/data.pkl")), None)
    if {"manifest.json", "backend.json", "checkpoint.pt"} <= set(members):
        system = "HAL"
    elif pickle:
        said = bytes(npz.content(data, members[pickle], what))
        if b"melee_policy.bc_checkpoint" in said or b"resolved_config" in said:
            system = "Faynt"
        elif b"model_state_dict" in said:
            system = "MIMIC"
        else:
            raise Refused(f"{what}: a torch file of no system that is known: needs its network, layout and codec here")
    if system:
        raise Refused(f"{what}: a policy of {system}: needs {_BEYOND[system]}")
    return Source("npz", npz.read_npz(data, what), None, None)


def _folder(path: str, what: str) -> Source:
    """What ExPhil's scripts/export_numpy.exs writes: metadata.json, and each tensor's numbers in a file of its own."""
    metadata = os.path.join(path, "metadata.json")
    if not os.path.isfile(metadata):
        raise Refused(f"{what}: a folder without metadata.json")
    raw = read_bytes(metadata)
    if len(raw) > _METADATA_MOST:
        raise Damaged(f"{what}: metadata.json has {len(raw)} bytes")
    told = safetensors.read_json(raw, f"{what}: metadata.json")
    layers = told.get("layers") if isinstance(told, dict) else None
    if not isinstance(layers, list) or len(layers) > MOST_TENSORS:
        raise Damaged(f"{what}: metadata.json has no list of layers")
    found: Dict[str, Any] = {}
    for layer in layers:
        name, file, shape = (layer.get(key) if isinstance(layer, dict) else None for key in ("name", "file", "shape"))
        if not isinstance(name, str) or not isinstance(file, str) or not isinstance(shape, list) or name in found:
            raise Damaged(f"{what}: a layer of metadata.json is none, or is there twice")
        if os.path.basename(file) != file or file in ("", ".", ".."):
            raise Damaged(f"{what}: metadata.json names {shown(file)}, which is not in the folder")
        at = f"{what}: {tensor_name(name, what)}"
        expected = 4 * arrays.element_count(shape, at)
        place = os.path.join(path, file)
        if os.path.islink(place) or not os.path.isfile(place) or os.path.getsize(place) != expected:
            raise Damaged(f"{at}: {shown(file)} is no file of {expected} bytes")
        found[name] = arrays.tensor(read_bytes(place), "f4", shape, at)
    return Source("folder", found, config_settings(told.get("config"), what), None)


def _plain_safetensors(data: bytes, what: str) -> Source:
    tensors, notes = safetensors.read_safetensors(data, what)
    if "exphil.model" in notes:
        raise Refused(f"{what}: a policy of this library already")
    return Source("safetensors", tensors, None, None)


def read_source(path: str) -> Source:
    """A file, or a folder of ExPhil's exporter, by what it begins with; its name says nothing."""
    what = os.path.basename(os.path.normpath(path)) or path
    if os.path.isdir(path):
        return _folder(path, what)
    data = read_bytes(path)
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _archive(data, what)
    if data[:1] == b"\x83":
        return _export(etf.read_term(data, what), what)
    if data[:1] == b"\x80" and len(data) > 2 and data[1] < 8:
        return Source("pickle", {}, None, pickles.read_pickle(data, what))
    if len(data) > 8 and data[8:9] == b"{":
        return _plain_safetensors(data, what)
    if data[:1] in (b"\x00", b"\x01"):
        return _manifest(data, what)
    raise Refused(f"{what}: none of the files that are read: .npz, safetensors, an Erlang term, ExPhil's _policy.bin, a pickle of"
                  " slippi-ai, a folder of ExPhil's export_numpy.exs")  # fmt: skip
