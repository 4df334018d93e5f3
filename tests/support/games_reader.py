"""Reads corpora of games (doc/file-format.md, version 3) with the standard library alone; with the package zstandard compressed
ones, too. Written from that page, to show that it is enough: nothing of the library is used.

    games_reader.py CORPUS...    a line for each canonical dump (slp.h, section 5): game, what, slot, SHA-256
"""

import hashlib
import os
import struct
import sys

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
FRAME = [("step", 4), ("slots", 1), ("left", 4), ("right", 4), ("whispy", 1), ("event", 2), ("kind", 2), ("items", 2)]
CHARACTER = (
    [
        (name, 4)
        for name in "joy_x joy_y c_x c_y trigger buttons physical_l physical_r x y facing percent shield state_age misc "
        "vel_air_x vel_y vel_kb_x vel_kb_y vel_ground_x hitlag animation".split()
    ]
    + [(name, 2) for name in "physical_buttons action_state ground_id instance_hit_by instance_id".split()]
    + [
        (name, 1)
        for name in "raw_joy_x raw_joy_y raw_c_x raw_c_y character last_attack combo last_hit_by stocks flags0 flags1 "
        "flags2 flags3 flags4 airborne jumps l_cancel hurtbox".split()
    ]
)
ITEM = [
    ("spawn_id", 4),
    ("type", 2),
    ("state", 1),
    ("facing", 4),
    ("vel_x", 4),
    ("vel_y", 4),
    ("x", 4),
    ("y", 4),
    ("damage", 2),
    ("timer", 4),
    ("misc", 4),
    ("owner", 1),
    ("instance_id", 2),
]


class Damaged(Exception):
    """The corpus is not what the format says."""


def must(good, byte, what):
    if not good:
        raise Damaged(f"byte {byte}: {what}")


# ---- XXH64, seed 0 ----


def rotate(value, bits):
    return (value << bits | value >> (64 - bits)) & MASK


def mix(lane, word):
    return rotate((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    at, length = 0, len(data)
    value = P5
    if length >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= length:
            lanes = [mix(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at))]
            at += 32
        value = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            value = ((value ^ mix(0, lane)) * P1 + P4) & MASK
    value = (value + length) & MASK
    while at + 8 <= length:
        value = (rotate(value ^ mix(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= length:
        value = (rotate(value ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        value = rotate(value ^ byte * P5 & MASK, 11) * P1 & MASK
    value = (value ^ value >> 33) * P2 & MASK
    value = (value ^ value >> 29) * P3 & MASK
    return value ^ value >> 32


# ---- columns ----


def column(raw, at, width, bases):
    """The values of one field, and where the next one begins."""
    count = len(bases)
    planes = [raw[at + plane * count : at + (plane + 1) * count] for plane in range(width)]
    values = []
    for i, base in enumerate(bases):
        value = 0
        for plane in range(width):
            value |= planes[plane][i] << 8 * plane
        values.append(value ^ (values[base] if base >= 0 else 0))
    return values, at + width * count


def by_place(counts):
    """The base of each item: the one at the same place of the frame before."""
    bases, before, last = [], 0, 0
    for count in counts:
        bases += [before + i if i < last else -1 for i in range(count)]
        before, last = before + last, count
    return bases


def by_id(counts, ids):
    """The base of each item: the first one of the frame before that has its spawn id."""
    bases, before, last, at = [], 0, 0, 0
    for count in counts:
        former = ids[before : before + last]
        for spawn_id in ids[at : at + count]:
            bases.append(before + former.index(spawn_id) if spawn_id in former else -1)
        before, last, at = before + last, count, at + count
    return bases


def unpack(raw, first_frame, frames, slots, items, byte):
    """One block: frames with their items, and the records of each slot by frame number."""
    one_before = list(range(-1, frames - 1))
    at, of_frame, of_slot, of_item = 0, {}, {}, {}
    for name, width in FRAME:
        of_frame[name], at = column(raw, at, width, one_before)
    for slot in [slot for slot in range(8) if slots >> slot & 1]:
        of_slot[slot] = {}
        for name, width in CHARACTER:
            of_slot[slot][name], at = column(raw, at, width, one_before)
    counts = of_frame["items"]
    must(sum(counts) == items, byte, "other items than the block's header says")
    bases = by_place(counts)
    for name, width in ITEM:
        of_item[name], at = column(raw, at, width, bases)
        if name == "spawn_id":
            bases = by_id(counts, of_item[name])
    must(at == len(raw), byte, "other bytes than columns")
    numbers, number = [], first_frame
    for t in range(frames):
        number += of_frame["step"][t] + 1 if t else 0
        numbers.append(number)
    return numbers, of_frame, of_slot, of_item


# ---- files ----


def decompress(stored, raw_bytes):
    import zstandard  # of PyPI; who has it not reads corpora that are stored

    return zstandard.ZstdDecompressor().decompress(stored, max_output_size=raw_bytes)


class Game:
    """A game of a file, at the byte where its entry begins."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.entry = data[at : at + 192]
        offset, self.content_hash, self.source_hash, self.bytes, self.frames = struct.unpack_from("<3Q2I", data, at)
        must(offset == at, at, "no game begins here")
        (self.runs_count,) = struct.unpack_from("<I", data, at + 80)
        head = 192 + 160 + 16 * self.runs_count
        must(xxh64(data[at : at + head]) == struct.unpack_from("<Q", data, at + head)[0], at, "the head is damaged")
        self.records = struct.unpack_from("<8I", data, at + 192 + 16)
        table, blocks = at + head + 8, (self.frames + 255) // 256
        places = data[table : table + 16 * blocks]
        must(xxh64(places) == struct.unpack_from("<Q", data, table + 16 * blocks)[0], table, "the table is damaged")
        self.places = list(struct.iter_unpack("<2IQ", places))
        self.first_block = table + 16 * blocks + 8
        content = b"game\0\0\0\0" + self.entry[44:48] + self.entry[52:56] + self.entry[88:90] + self.entry[96:98]
        content += b"".join(self.entry[112 + 20 * port : 119 + 20 * port] for port in range(4))
        content += data[at + 192 + 48 : at + 192 + 160] + b"".join(struct.pack("<Q", raw) for _, _, raw in self.places)
        must(xxh64(content) == self.content_hash, at, "the hash of the content is another")
        must(self.first_block + self.places[-1][0] == at + self.bytes, at, "blocks end elsewhere")

    def block(self, k):
        at = self.first_block + (self.places[k - 1][0] if k else 0)
        magic, position, first, frames, slots, codec, items, raw_bytes, stored_bytes, check, stored_hash = struct.unpack_from(
            "<4sIiHBBIIIIQ", self.data, at
        )
        must(magic == b"gblk" and position == 256 * k, at, "no block begins here")
        must(xxh64(self.data[at : at + 28]) & 0xFFFFFFFF == check, at, "the header of a block is damaged")
        stored = self.data[at + 40 : at + 40 + stored_bytes]
        must(xxh64(stored) == stored_hash, at, "a block is damaged")
        raw = stored if codec == 0 else decompress(stored, raw_bytes)
        must(len(raw) == raw_bytes and xxh64(raw) == self.places[k][2], at, "a block holds other frames")
        return unpack(raw, first, frames, slots, items, at)

    def dumps(self):
        """{(what, slot): bytes}: the canonical dumps."""
        parts = {("items", ""): []}
        for k in range(len(self.places)):
            numbers, of_frame, of_slot, of_item = self.block(k)
            dump_records(parts, numbers, of_frame, of_slot)
            dump_items(parts, numbers, of_frame, of_item)
        return {key: b"".join(value) for key, value in parts.items()}


def dump_records(parts, numbers, of_frame, of_slot):
    kinds = {
        "state": ("<i5I", "x y percent shield facing"),
        "input": ("<i6IH", "joy_x joy_y c_x c_y trigger buttons physical_buttons"),
        "aux": (
            "<iH14B8I2B",
            "action_state character stocks last_attack combo last_hit_by airborne jumps l_cancel hurtbox flags0 flags1 flags2 "
            "flags3 flags4 state_age misc vel_air_x vel_y vel_kb_x vel_kb_y vel_ground_x hitlag raw_joy_x raw_joy_y",
        ),
    }
    for slot, fields in of_slot.items():
        name = f"P{slot // 2 + 1}{'n' if slot % 2 else ''}"
        for what, (layout, words) in kinds.items():
            lines = zip(*(fields[word] for word in words.split()))
            for number, present, values in zip(numbers, of_frame["slots"], lines):
                if present >> slot & 1:
                    parts.setdefault((what, name), []).append(struct.pack(layout, number, *values))


def dump_items(parts, numbers, of_frame, of_item):
    order = "type state facing vel_x vel_y x y damage timer spawn_id owner".split()
    lines = zip(*(of_item[word] for word in order))
    for number, count in zip(numbers, of_frame["items"]):
        parts["items", ""].append(struct.pack("<iH", number, count))
        for _ in range(count):
            parts["items", ""].append(struct.pack("<HB5IHIIB", *next(lines)))


def read_file(path):
    """The games of one file, whose end is there."""
    with open(path, "rb") as file:
        data = file.read()
    magic, version = struct.unpack_from("<8sI", data)
    must(magic == b"exphilco" and version == 3, 0, "no corpus of games")
    must(struct.unpack_from("<4I4H", data, 8) == (3, 0, 192, 160, 20, 116, 40, 1), 8, "of a later version")
    must(xxh64(data[:56]) == struct.unpack_from("<Q", data, 56)[0], 0, "the header is damaged")
    end = len(data) - 64
    magic, count, frames, _, index, index_hash, content, check = struct.unpack_from("<8s7Q", data, end)
    must(magic == b"endgames" and xxh64(data[end : end + 56]) == check, end, "the end is missing or damaged")
    must(index + 192 * count == end and xxh64(data[index:end]) == index_hash, index, "the index is damaged")
    games, at = [], 64
    for i in range(count):
        must(data[at : at + 192] == data[index + 192 * i : index + 192 * (i + 1)], at, "another game than in the index")
        games.append(Game(data, at))
        at += games[-1].bytes
    must(at == index, at, "bytes that belong to no game")
    must(sum(game.frames for game in games) == frames, end, "other frames than counted")
    shares = sum(xxh64(struct.pack("<Q", game.content_hash)) for game in games) & MASK
    must(shares == content, end, "another content hash")
    return games


def read(path):
    """The games of a corpus, a file or a folder."""
    if not os.path.isdir(path):
        return read_file(path)
    names = sorted(name for name in os.listdir(os.fsencode(path)) if name.endswith(b".games"))
    return [game for name in names for game in read_file(os.path.join(os.fsencode(path), name))]


def main():
    for path in sys.argv[1:]:
        for number, game in enumerate(read(path)):
            for (what, slot), data in sorted(game.dumps().items()):
                print(number, what, slot or "-", hashlib.sha256(data).hexdigest())


if __name__ == "__main__":
    main()
