"""The drill with other characters: notes_replays.py DRILL OUT CHARACTER1 TYPE1 CHARACTER2 TYPE2 (external ids; type 0: human)."""
import pathlib
import sys

START = 0x26  # of the game start event, behind the sizes of events

data = bytearray(pathlib.Path(sys.argv[1]).read_bytes())
assert data[START] == 0x36
for port in range(2):
    data[START + 0x65 + 0x24 * port], data[START + 0x66 + 0x24 * port] = map(int, sys.argv[3 + 2 * port:5 + 2 * port])
pathlib.Path(sys.argv[2]).write_bytes(data)
