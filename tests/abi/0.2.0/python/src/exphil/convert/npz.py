"""NumPy's archives: a zip whose members are .npy files. Members may be stored or deflated; nothing else of zip is read. An array of
objects would be a pickle, and is refused. Formats: APPNOTE.TXT of zip 6.3, numpy.lib.format."""
from __future__ import annotations

import re
import zlib
from typing import Any, Dict, List, NamedTuple, Tuple

from . import arrays
from .reader import Bytes, Reader, inflate
from .refusal import MOST_RANK, MOST_RATIO, MOST_TENSORS, Damaged, Refused, tensor_name

_END, _CENTRAL, _LOCAL = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"
_END_BYTES, _COMMENT_MOST = 22, 65535
_HEADER_MOST = 4096  # bytes of a .npy header; NumPy's own are below 256
# What numpy.save writes, and nothing else that Python would take for a dictionary.
_SIDES = r"\((?P<shape>(?:\d{1,10}, ?)*\d{0,10},?)\)"
_HEADER = re.compile(
    r"\{'descr': '(?P<descr>[<>|=]?[a-zA-Z]\d{0,3})', 'fortran_order': (?P<order>True|False), 'shape': " + _SIDES + r",? ?\} *\n?"
)


class Member(NamedTuple):
    """A file of an archive, as its directory says."""

    name: str
    method: int
    crc: int
    stored: int
    size: int
    at: int


def _find_end(reader: Reader) -> int:
    """The last record of an archive, which may have a comment behind it that fills the file."""
    data, first = reader.data, max(0, reader.end - _END_BYTES - _COMMENT_MOST)
    tail = bytes(data[first:])
    at = tail.rfind(_END)
    while at >= 0:
        if at + _END_BYTES <= len(tail) and at + _END_BYTES + int.from_bytes(tail[at + 20 : at + 22], "little") == len(tail):
            return first + at
        at = tail.rfind(_END, 0, at)
    raise Damaged(f"{reader.what}: not a zip archive: it has no end record")


def _one(reader: Reader) -> Member:
    """The next entry of the directory."""
    if bytes(reader.take(4)) != _CENTRAL:
        raise reader.fail("not an entry of the directory")
    reader.take(4)
    flags, method = reader.number("<H"), reader.number("<H")
    reader.take(4)
    crc, stored, size = reader.number("<I"), reader.number("<I"), reader.number("<I")
    name_bytes, extra, comment = reader.number("<H"), reader.number("<H"), reader.number("<H")
    disk = reader.number("<H")
    reader.take(6)
    at = reader.number("<I")
    raw = bytes(reader.take(name_bytes))
    reader.take(extra + comment)
    try:
        name = raw.decode("utf-8" if flags & 0x800 else "ascii")
    except UnicodeDecodeError:
        raise reader.fail("a name is not text") from None
    tensor_name(name, reader.what)
    if flags & 0x2041 or disk:
        raise Refused(f"{reader.what}: {name} is encrypted or on another disk")
    if method not in (0, 8):
        raise Refused(f"{reader.what}: {name} is compressed by method {method}; 0 (stored) and 8 (deflate) are read")
    if 0xFFFFFFFF in (stored, size, at):
        raise Refused(f"{reader.what}: {name} needs zip64: more than 4 GiB")
    return Member(name, method, crc, stored, size, at)


def _check_sizes(members: List[Member], total: int, what: str) -> None:
    """What all members together may take, and that none lies in another."""
    if sum(member.size for member in members) > total * MOST_RATIO + 65536:
        raise Damaged(f"{what}: {total} bytes are said to hold more than {MOST_RATIO} times as much")
    end = 0
    for member in sorted(members, key=lambda one: one.at):
        if member.at < end:
            raise Damaged(f"{what}: {member.name} lies in another member")
        if member.method == 0 and member.stored != member.size:
            raise Damaged(f"{what}: {member.name} is stored, in another size")
        end = member.at + 30 + len(member.name.encode()) + member.stored
        if end > total:
            raise Damaged(f"{what}: {member.name} ends behind the file")


def directory(data: Bytes, what: str) -> Dict[str, Member]:
    """Members of an archive by name."""
    reader = Reader(data, what)
    end = _find_end(reader)
    reader.at = end + 4
    disks, here, count = reader.number("<I"), reader.number("<H"), reader.number("<H")
    size, at = reader.number("<I"), reader.number("<I")
    if disks or here != count:
        raise Refused(f"{what}: an archive of several disks")
    if count > MOST_TENSORS or at + size != end:
        raise Damaged(f"{what}: a directory of {count} members in {size} bytes at {at}")
    reader.at, reader.end = at, end
    members = [_one(reader) for _ in range(count)]
    if reader.left():
        raise reader.fail("bytes behind the directory")
    _check_sizes(members, at, what)
    found = {member.name: member for member in members}
    if len(found) != count:
        raise Damaged(f"{what}: a member comes twice")
    return found


def content(data: Bytes, member: Member, what: str) -> Bytes:
    """The bytes of a member, checked against its size and sum."""
    reader = Reader(data, f"{what}: {member.name}")
    reader.at = member.at
    if bytes(reader.take(4)) != _LOCAL:
        raise reader.fail("no member begins here")
    reader.take(22)
    name_bytes, extra = reader.number("<H"), reader.number("<H")
    if bytes(reader.take(name_bytes)) != member.name.encode():
        raise reader.fail("another name than in the directory")
    reader.take(extra)
    raw: Bytes = reader.take(member.stored)
    if member.method == 8:
        raw = inflate(raw, member.size, -15, reader.what)
    if zlib.crc32(raw) != member.crc:
        raise Damaged(f"{reader.what}: its sum is not that of the directory")
    return raw


def _shape(written: str, what: str) -> Tuple[int, ...]:
    sides = [side.strip() for side in written.split(",")]
    if sides[-1] == "":
        sides.pop()
    if "" in sides or len(sides) > MOST_RANK or (len(sides) == 1 and "," not in written):
        raise Damaged(f"{what}: the shape ({written[:80]}) is none")
    return tuple(int(side) for side in sides)


def read_npy(data: Bytes, what: str) -> Any:
    """The array of a .npy file of version 1, 2 or 3."""
    reader = Reader(data, what)
    if bytes(reader.take(6)) != b"\x93NUMPY":
        raise reader.fail("not a .npy file")
    major, minor = reader.byte(), reader.byte()
    if major not in (1, 2, 3) or minor:
        raise Refused(f"{what}: version {major}.{minor} of the .npy format")
    size = reader.number("<H" if major == 1 else "<I")
    if size > _HEADER_MOST:
        raise reader.fail(f"a header of {size} bytes")
    header = bytes(reader.take(size))
    told = _HEADER.fullmatch(header.decode("latin-1"))
    if not told:
        raise reader.fail("the header is not one that numpy.save writes")
    letters = told["descr"].lstrip("<>|=")
    if letters[0] in "OVSUMm":
        raise Refused(f"{what}: an array of type {told['descr']}: objects and texts are not read")
    return arrays.tensor(
        reader.take(reader.left()),
        letters,
        _shape(told["shape"], what),
        what,
        big=told["descr"][0] == ">",
        columns_first=told["order"] == "True",
    )


def read_npz(data: Bytes, what: str) -> Dict[str, Any]:
    """Arrays of an archive by their names, without .npy."""
    found: Dict[str, Any] = {}
    for name, member in directory(data, what).items():
        if not name.endswith(".npy"):
            raise Refused(f"{what}: {name} is no .npy file")
        found[name[:-4]] = read_npy(content(data, member, what), f"{what}: {name}")
    return found
