"""Leaves out the custom sections of a module (names of functions, who made it): strip.py FROM TO."""
import pathlib
import sys


def number(data, at):
    """LEB128: the value, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def main():
    data = pathlib.Path(sys.argv[1]).read_bytes()
    assert data[:8] == b"\0asm\1\0\0\0", f"{sys.argv[1]} is no module"
    kept, at = bytearray(data[:8]), 8
    while at < len(data):
        size, body = number(data, at + 1)
        if data[at] != 0:
            kept += data[at:body + size]
        at = body + size
    pathlib.Path(sys.argv[2]).write_bytes(kept)


main()
