"""Reads a weights file with the safetensors package and writes it again in its own way.

usage: safetensors_check.py probe | safetensors_check.py IN OUT

The second form prints the number of tensors, the sum of all bytes and the metadata keys, then writes OUT with the
same tensors and the same metadata but the checksum, which is about bytes in an order that the package chooses itself.
numpy has no bfloat16: files with such tensors are taken apart by the package and put together here.
"""
import json
import struct
import sys

import numpy
from safetensors import deserialize, safe_open
from safetensors.numpy import save_file


def raw(metadata):
    """What the package reads of IN, put together again by hand in the order of the names."""
    with open(sys.argv[1], "rb") as file:
        tensors = dict(deserialize(file.read()))
    total = sum(int(numpy.frombuffer(t["data"], dtype=numpy.uint8).sum()) for t in tensors.values())
    print(len(tensors), total, " ".join(sorted(metadata)))
    metadata.pop("exphil.data_xxh64", None)
    header, data = {"__metadata__": metadata}, b""
    for name in sorted(tensors):
        t = tensors[name]
        header[name] = {"dtype": t["dtype"], "shape": t["shape"], "data_offsets": [len(data), len(data) + len(t["data"])]}
        data += bytes(t["data"])
    text = json.dumps(header).encode()
    with open(sys.argv[2], "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    with open(sys.argv[2], "rb") as file:
        again = dict(deserialize(file.read()))
    assert all(bytes(again[name]["data"]) == bytes(tensors[name]["data"]) for name in tensors)


def main():
    if sys.argv[1:] == ["probe"]:
        return
    tensors = {}
    with safe_open(sys.argv[1], framework="numpy") as file:
        metadata = dict(file.metadata() or {})
        halves = any(file.get_slice(name).get_dtype() == "BF16" for name in file.keys())
        if halves:
            raw(metadata)
            return
        for name in file.keys():
            tensors[name] = file.get_tensor(name)
    total = sum(int(numpy.frombuffer(t.tobytes(), dtype=numpy.uint8).sum()) for t in tensors.values())
    print(len(tensors), total, " ".join(sorted(metadata)))
    metadata.pop("exphil.data_xxh64", None)
    save_file(tensors, sys.argv[2], metadata=metadata)


main()
