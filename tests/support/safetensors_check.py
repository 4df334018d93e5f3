"""Reads a weights file with the safetensors package and writes it again in its own way.

usage: safetensors_check.py probe | safetensors_check.py IN OUT

The second form prints the number of tensors, the sum of all bytes and the metadata keys, then writes OUT with the
same tensors and the same metadata but the checksum, which is about bytes in an order that the package chooses itself.
"""
import sys

import numpy
from safetensors import safe_open
from safetensors.numpy import save_file


def main():
    if sys.argv[1:] == ["probe"]:
        return
    tensors = {}
    with safe_open(sys.argv[1], framework="numpy") as file:
        metadata = dict(file.metadata() or {})
        for name in file.keys():
            tensors[name] = file.get_tensor(name)
    total = sum(int(numpy.frombuffer(t.tobytes(), dtype=numpy.uint8).sum()) for t in tensors.values())
    print(len(tensors), total, " ".join(sorted(metadata)))
    metadata.pop("exphil.data_xxh64", None)
    save_file(tensors, sys.argv[2], metadata=metadata)


main()
