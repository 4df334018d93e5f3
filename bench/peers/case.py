"""The files of a case that `exphil bench serve` wrote: see bench/serve.h."""
import json
import os

import numpy as np


class Case:
    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "case.json")) as file:
            self.facts = json.load(file)

    def array(self, name):
        """As it was written, [rows, columns]; single rows as vectors."""
        fact = self.facts["arrays"][name]
        kind = np.int32 if fact["type"] == "i32" else np.float32
        data = np.fromfile(os.path.join(self.folder, name + ".bin"), kind).reshape(fact["shape"])
        return data[0] if data.shape[0] == 1 else data

    def weights(self):
        """Tensors of the model by name."""
        from safetensors.numpy import load_file

        return load_file(os.path.join(self.folder, "model.safetensors"))

    def blocks(self):
        """"(lstm ffn)*3" as ["lstm", "ffn", "lstm", ...]."""
        return unroll(self.facts["blocks"])


def unroll(pattern):
    """Names, groups in brackets, and *n behind either."""
    words, place = _sequence(pattern.replace("(", " ( ").replace(")", " ) ").replace("*", " * ").split(), 0)
    assert place == len(pattern.replace("(", " ( ").replace(")", " ) ").replace("*", " * ").split()), pattern
    return words


def _sequence(tokens, at):
    out = []
    while at < len(tokens) and tokens[at] != ")":
        if tokens[at] == "(":
            part, at = _sequence(tokens, at + 1)
            at += 1
        else:
            part, at = [tokens[at]], at + 1
        if at < len(tokens) and tokens[at] == "*":
            part, at = part * int(tokens[at + 1]), at + 2
        out += part
    return out, at
