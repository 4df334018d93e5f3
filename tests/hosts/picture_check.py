"""Reads the runner's moving picture back, by the format's own document (W3C, GIF89a) and not by the writer.

  picture_check.py FILE.gif WIDTH HEIGHT OWN OTHER FIRST LAST

The game's part of the first picture is no single colour. Below it stands OWN at the left end, OTHER at the right end, and in the
middle the points: FIRST in the first picture, LAST in the last one.
"""
import struct
import sys

CAPTION = 11
# Those letters that the test asks for, drawn here once more.
LETTERS = {
    "0": ".###. #...# #..## #.#.# ##..# #...# .###.", "1": "..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###.",
    "2": ".###. #...# ....# ..##. .#... #.... #####", "3": "####. ....# ....# .###. ....# ....# ####.",
    "H": "#...# #...# #...# ##### #...# #...# #...#", "I": ".###. ..#.. ..#.. ..#.. ..#.. ..#.. .###.",
    "O": ".###. #...# #...# #...# #...# #...# .###.", ":": "..... .##.. .##.. ..... .##.. .##.. .....",
}


def codes(data, least):
    """The codes of a compressed image, as their width grows, and the points that they stand for."""
    clear, end = 1 << least, (1 << least) + 1
    table, width, bits, count, before, points = [], 0, 0, 0, None, bytearray()
    for byte in data:
        bits |= byte << count
        count += 8
        while count >= (width or least + 1):
            width = width or least + 1
            code = bits & ((1 << width) - 1)
            bits >>= width
            count -= width
            if code == clear:
                table = [bytes([i]) for i in range(clear)] + [b"", b""]
                width, before = least + 1, None
                continue
            if code == end:
                return points
            entry = table[code] if code < len(table) else before + before[:1]
            if before is not None and len(table) < 4096:
                table.append(before + entry[:1])
            if len(table) == 1 << width and width < 12:
                width += 1
            points += entry
            before = entry
    raise SystemExit("a picture has no end")


def pictures(data):
    """Width, height and each picture whole: [height][width] numbers of colours."""
    assert data[:6] == b"GIF89a", "no GIF89a"
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    at, screen, shown = 13 + 3 * (2 << (flags & 7)), None, []
    while data[at] != 0x3B:
        if data[at] == 0x21:
            at += 2
            while data[at]:
                at += 1 + data[at]
            at += 1
            continue
        assert data[at] == 0x2C, f"byte {at} begins nothing"
        x, y, w, h = struct.unpack_from("<HHHH", data, at + 1)
        least, at, packed = data[at + 10], at + 11, b""
        while data[at]:
            packed += data[at + 1:at + 1 + data[at]]
            at += 1 + data[at]
        at += 1
        points = codes(packed, least)
        assert len(points) == w * h, f"{len(points)} points for {w} x {h}"
        screen = screen or [bytearray(width) for _ in range(height)]
        for row in range(h):
            screen[y + row][x:x + w] = points[row * w:(row + 1) * w]
        shown.append([bytes(line) for line in screen])
    assert at + 1 == len(data), "bytes after the end"
    return width, height, shown


def caption(text, width, at):
    """The rows of a caption that has each text at its place."""
    rows = [[False] * width for _ in range(CAPTION)]
    for word, x in zip(text, at):
        for i, name in enumerate(word):
            for y, line in enumerate(LETTERS[name].split()):
                for bit, point in enumerate(line):
                    rows[2 + y][x + 6 * i + bit] = point == "#"
    return rows


def main(path, width, height, own, other, first, last):
    """Says what is wrong with the picture and exits, or says what it holds."""
    with open(path, "rb") as file:
        real_width, real_height, shown = pictures(file.read())
    assert (real_width, real_height) == (width, height + CAPTION), f"{real_width} x {real_height} points"
    assert len({point for row in shown[0][:height] for point in row}) > 1, "the first picture is blank"
    for picture, score in ((shown[0], first), (shown[-1], last)):
        middle = 2 + (width - 4 - 6 * len(score)) // 2
        wanted = caption((own, score, other), width, (2, middle, width - 2 - 6 * len(other)))
        seen = [[point != 0 for point in row] for row in picture[height:]]
        if seen != wanted:
            for row in seen:
                print("".join(".#"[point] for point in row), file=sys.stderr)
            raise SystemExit(f"{path}: this is not {own} {score} {other}")
    print(f"{len(shown)} pictures of {real_width} x {real_height}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
