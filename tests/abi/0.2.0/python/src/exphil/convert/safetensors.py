"""safetensors, to read others' and to write ours (doc/file-format.md). The format: u64 header bytes, JSON, data."""
from __future__ import annotations

import json
import struct
from typing import Any, Dict, List, Mapping, Tuple

from . import arrays
from .arrays import Floats
from .reader import Bytes, Reader
from .refusal import MOST_DEPTH, MOST_TENSORS, Damaged, Refused, shown, tensor_name

_HEADER_MOST = 1 << 20
_DIGITS_MOST = 18
_KINDS = {"F64": "f8", "F32": "f4", "F16": "f2", "BF16": "bf16", "BOOL": "b1", "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8",
          "U8": "u1", "U16": "u2", "U32": "u4", "U64": "u8"}  # fmt: skip


def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Damaged("a name comes twice")
    return made


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS_MOST:
        raise Damaged(f"a number of {len(digits)} digits")
    return int(digits)


def read_json(data: Bytes, what: str) -> Any:
    """JSON out of bytes that may be anything."""
    raw = bytes(data)
    depth = 0
    for byte in raw:  # brackets in texts count too: the limit is far from what is written
        depth += (byte in b"[{") - (byte in b"]}")
        if depth > MOST_DEPTH:
            raise Damaged(f"{what}: nested deeper than {MOST_DEPTH}")
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_once, parse_int=_whole)
    except Damaged as reason:
        raise Damaged(f"{what}: {reason}") from None
    except (ValueError, RecursionError) as reason:
        raise Damaged(f"{what}: not JSON ({reason})") from None


def _place(name: str, told: Any, what: str) -> Tuple[str, List[int], int, int]:
    tensor_name(name, what)
    if not isinstance(told, dict) or set(told) != {"dtype", "shape", "data_offsets"}:
        raise Damaged(f"{what}: {name} has other members than dtype, shape and data_offsets")
    shape, offsets = told["shape"], told["data_offsets"]
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        raise Damaged(f"{what}: the shape or the place of {name} is none")
    if any(type(one) is not int or one < 0 for one in offsets):
        raise Damaged(f"{what}: the place of {name} is none")
    if not isinstance(told["dtype"], str) or told["dtype"] not in _KINDS:
        raise Refused(f"{what}: {name} is of type {shown(told['dtype'])}")
    return _KINDS[told["dtype"]], shape, offsets[0], offsets[1]


def read_safetensors(data: Bytes, what: str) -> Tuple[Dict[str, Any], Dict[str, str]]:
    """Tensors by name, and the texts of the metadata."""
    reader = Reader(data, what)
    size = reader.number("<Q")
    if size > _HEADER_MOST:
        raise reader.fail(f"a header of {size} bytes")
    header = read_json(reader.take(size), f"{what}: header")
    if not isinstance(header, dict):
        raise Damaged(f"{what}: the header is no object")
    notes = header.pop("__metadata__", {})
    if not isinstance(notes, dict) or any(not isinstance(text, str) for text in notes.values()):
        raise Damaged(f"{what}: __metadata__ is no object of texts")
    if len(header) > MOST_TENSORS:
        raise Damaged(f"{what}: {len(header)} tensors")
    places = sorted(((*_place(name, told, what), name) for name, told in header.items()), key=lambda one: one[2:])
    content, found, end = reader.take(reader.left()), {}, 0
    for kind, shape, first, last, name in places:
        if first != end or last < first:
            raise Damaged(f"{what}: {name} does not begin where the tensor before it ends")
        end = last
        if end > len(content):
            raise Damaged(f"{what}: {name} ends behind the file")
        found[name] = arrays.tensor(content[first:last], kind, shape, f"{what}: {name}")
    if end != len(content):
        raise Damaged(f"{what}: {len(content) - end} bytes behind the tensors")
    return found, notes


def encoded(tensors: Mapping[str, Floats], metadata: Mapping[str, str]) -> List[bytes]:
    """The parts of a file: tensors in ascending order of names behind the header, which is padded to 64 bytes."""
    header: Dict[str, Any] = {"__metadata__": {key: metadata[key] for key in sorted(metadata)}}
    parts, at = [b""], 0
    for name in sorted(tensors):
        raw = tensors[name].astype("<f4", copy=False).tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-(len(text) + 8) % 64)
    parts[0] = struct.pack("<Q", len(text)) + text
    return parts
