"""Safetensors files (huggingface/safetensors: u64 little-endian N, N bytes of JSON, data), read as hostile input and written
as doc/file-format.md says, to the byte as the library writes them. Numbers stay bytes here."""
from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import Any, BinaryIO, Dict, List, Mapping, Sequence, Tuple, Union

from .checksum import hexadecimal, xxh64
from .errors import FormatError

HEADER_MOST, FILE_MOST, TENSORS_MOST, RANK_MOST, VALUES_MOST, DEPTH_MOST, NAME_MOST = 1 << 20, 1 << 34, 4096, 4, 65536, 16, 127
ALIGN = 64
SUM_KEY = "exphil.data_xxh64"
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1}

PathLike = Union[str, bytes, "os.PathLike[str]"]


@dataclass(frozen=True)
class Array:
    """A tensor as it lies in a file: type, shape, and its bytes, row-major and little-endian."""

    dtype: str
    shape: Tuple[int, ...]
    data: "bytes | bytearray | memoryview" = b""

    @property
    def count(self) -> int:
        """Elements."""
        total = 1
        for size in self.shape:
            total *= size
        return total


@dataclass(frozen=True)
class Header:
    """What stands in front: metadata, tensors without data, and where each of them begins behind the header."""

    metadata: Dict[str, str]
    tensors: Dict[str, Array]
    begins: Dict[str, int]
    data_at: int
    data_bytes: int


# ---- JSON ----------------------------------------------------------------------------------------------------


def _no_constant(word: str) -> Any:
    raise FormatError(f"{word} is no JSON")


def _integer(text: str) -> int:
    if len(text) > 20:
        raise FormatError("a number has more than 20 digits")
    return int(text)


def _object(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise FormatError(f'"{twice}" stands twice in one object')
    return made


def _weigh(value: Any, depth: int) -> int:
    """How many values there are; not too deep."""
    if depth > DEPTH_MOST:
        raise FormatError(f"values lie deeper than {DEPTH_MOST} in each other")
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_weigh(one, depth + 1) for one in inside)


def parse(text: "bytes | str", label: str) -> Any:
    """JSON without repetitions, of at most 16 levels and 65536 values."""
    try:
        made = json.loads(
            text.decode("utf-8") if isinstance(text, bytes) else text,
            object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_integer,
        )  # fmt: skip
        if _weigh(made, 0) > VALUES_MOST:
            raise FormatError(f"more than {VALUES_MOST} values")
    except RecursionError:
        raise FormatError(f"{label}: values lie deeper than {DEPTH_MOST} in each other") from None
    except ValueError as wrong:  # JSONDecodeError, UnicodeDecodeError and FormatError are
        raise FormatError(f"{label}: {wrong}") from None
    return made


def quoted(text: str) -> str:
    """A text in JSON, escaped as the library does."""
    safe = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\u{ord(c):04x}" if c < " " else c for c in safe) + '"'


# ---- reading -------------------------------------------------------------------------------------------------


def _good_name(name: str) -> bool:
    return 1 <= len(name) <= NAME_MOST and all(" " <= c <= "~" for c in name)


def _whole(values: Any) -> bool:
    """Is this an array of numbers from 0 on?"""
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _tensor(name: str, entry: Any, data_bytes: int) -> Tuple[Array, int]:
    if not _good_name(name):
        raise FormatError("a tensor is not named with 1 to 127 printable ASCII characters")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f'tensor "{name}" is not made of dtype, shape and data_offsets')
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BYTES:
        raise FormatError(f'tensor "{name}" has an unknown dtype')
    if not _whole(shape) or len(shape) > RANK_MOST:
        raise FormatError(f'tensor "{name}" has no shape of at most {RANK_MOST} dimensions')
    if not _whole(offsets) or len(offsets) != 2 or not offsets[0] <= offsets[1] <= data_bytes:
        raise FormatError(f'tensor "{name}" does not lie in the {data_bytes} bytes of data')
    array = Array(dtype, tuple(shape))
    needed = array.count * BYTES[dtype]
    if offsets[1] - offsets[0] != needed:
        raise FormatError(f'tensor "{name}" has {offsets[1] - offsets[0]} bytes of data, its shape needs {needed}')
    return array, offsets[0]


def _check_cover(tensors: Mapping[str, Array], begins: Mapping[str, int], data_bytes: int) -> None:
    """No hole, no overlap, nothing behind."""
    at = 0
    for name in sorted(tensors, key=lambda one: (begins[one], tensors[one].count, one)):
        if begins[name] != at:
            where = "inside the one that ends at" if begins[name] < at else "behind a hole from"
            raise FormatError(f'tensor "{name}" begins at byte {begins[name]} of the data, {where} byte {at}')
        at += tensors[name].count * BYTES[tensors[name].dtype]
    if at != data_bytes:
        raise FormatError(f"the tensors end at byte {at} of the data, the file at byte {data_bytes}")


def _header(text: bytes, size: int, label: str) -> Header:
    parsed = parse(text, f"{label}: header")
    data_at = 8 + len(text)
    if not isinstance(parsed, dict):
        raise FormatError(f"{label}: the header is no object")
    metadata = parsed.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise FormatError(f"{label}: __metadata__ is no object of texts")
    if len(parsed) > TENSORS_MOST:
        raise FormatError(f"{label}: {len(parsed)} tensors, at most {TENSORS_MOST} are allowed")
    try:
        found = {name: _tensor(name, entry, size - data_at) for name, entry in parsed.items()}
        tensors = {name: array for name, (array, _) in found.items()}
        begins = {name: begin for name, (_, begin) in found.items()}
        _check_cover(tensors, begins, size - data_at)
    except FormatError as wrong:
        raise FormatError(f"{label}: {wrong}") from None
    return Header(metadata, tensors, begins, data_at, size - data_at)


def open_file(path: PathLike, label: str) -> BinaryIO:
    """Opens a regular file; of others none is waited for."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise FormatError(f"{label}: this is no regular file")
    return open(path, "rb")


def read_header(file: BinaryIO, label: str) -> Header:
    """Reads what stands in front of the data, and nothing of the data."""
    size = os.fstat(file.fileno()).st_size
    if size < 8 or size > FILE_MOST:
        raise FormatError(f"{label}: {size} bytes are no weights file (8 bytes to 16 GiB)")
    length = int.from_bytes(file.read(8), "little")
    if length > HEADER_MOST:
        raise FormatError(f"{label}: this is no safetensors file: the header would have {length} bytes, {HEADER_MOST} are allowed")
    if length > size - 8:
        raise FormatError(f"{label}: the header would have {length} bytes, of {size - 8} that follow and {HEADER_MOST} allowed")
    text = file.read(length)
    if len(text) != length:
        raise FormatError(f"{label}: the file has become shorter")
    return _header(text, size, label)


def read_data(file: BinaryIO, header: Header, label: str) -> Dict[str, Array]:
    """The tensors with their data, whose checksum must fit where there is one."""
    data = bytearray(header.data_bytes)
    file.seek(header.data_at)
    if file.readinto(data) != header.data_bytes:  # type: ignore[attr-defined]
        raise FormatError(f"{label}: the file has become shorter")
    check_sum(header.metadata, SUM_KEY, data, label)
    view, made = memoryview(data), {}
    for name, array in header.tensors.items():
        begin = header.begins[name]
        made[name] = Array(array.dtype, array.shape, view[begin : begin + array.count * BYTES[array.dtype]])
    return made


def check_sum(metadata: Mapping[str, str], key: str, data: "bytes | bytearray", label: str) -> None:
    """A checksum that is there must fit."""
    expected = metadata.get(key)
    if expected is None:
        return
    found = hexadecimal(xxh64(data))
    if found != expected:
        raise FormatError(f"{label}: damaged: {key} is {expected[:16]!r}, the data's is {found}")


# ---- writing -------------------------------------------------------------------------------------------------


def _alignment(size: int) -> int:
    align = ALIGN
    while size % align:
        align //= 2
    return align


def _described(name: str, array: Array, begin: int) -> str:
    shape = ",".join(str(size) for size in array.shape)
    end = begin + len(array.data)
    return f'{quoted(name)}:{{"dtype":"{array.dtype}","shape":[{shape}],"data_offsets":[{begin},{end}]}}'


def to_bytes(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> List["bytes | bytearray | memoryview"]:
    """The parts of a file: metadata first, tensors by the largest power of two in their size, then by name."""
    order = sorted(tensors, key=lambda name: (-_alignment(len(tensors[name].data)), name.encode()))
    data = b"".join(bytes(tensors[name].data) for name in order)
    texts = dict(metadata, **{SUM_KEY: hexadecimal(xxh64(data))})
    pairs = ",".join(f"{quoted(key)}:{quoted(texts[key])}" for key in sorted(texts, key=str.encode))
    entries, at = [f'"__metadata__":{{{pairs}}}'], 0
    for name in order:
        entries.append(_described(name, tensors[name], at))
        at += len(tensors[name].data)
    header = ("{" + ",".join(entries) + "}").encode()
    header += b" " * (-(8 + len(header)) % ALIGN)
    if len(header) > HEADER_MOST:
        raise FormatError(f"the header would have {len(header)} bytes, at most {HEADER_MOST} are allowed")
    return [len(header).to_bytes(8, "little"), header, data]


def replace(path: PathLike, parts: Sequence["bytes | bytearray | memoryview"]) -> None:
    """Writes a temporary beside the target, syncs and renames it: the target is the old file or the new one."""
    target = os.fsdecode(path)
    beside = f"{target}.{os.getpid()}.exphil-tmp"
    try:
        with open(beside, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise
