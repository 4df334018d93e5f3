"""What an update and a step ask of a GPU: the list that build/tests/cuda_launches writes on the emulated GPU."""
import collections
import os
import re
import subprocess

from .build import plain_names

TIMED = ["update-f32", "update-tf32", "update-bf16", "learn-tf32", "learn-bf16", "melee2-tf32", "melee2-bf16", "lstm-f32",
         "lstm-tf32", "lstm-bf16", "step-1", "step-16", "step-256", "melee2-step-1"]
CASES = [*TIMED, "update-tf32-transposed"]

Launch = collections.namedtuple("Launch", "stream kernel grid block cluster shared arguments")
Product = collections.namedtuple("Product", "stream m n k type result compute bias adds transposed a b c d")
Copy = collections.namedtuple("Copy", "stream to source bytes kind at")
Set = collections.namedtuple("Set", "stream to bytes")
FLOAT, HALF, BFLOAT = 0, 2, 14  # cudaDataType_t


class Listing:
    """Operations in order, each with whether it belongs to the update or step that is counted. candidates: those that the update
    or step calls for its operations of table A, in order; places: which of these calls an operation that is counted belongs to,
    None: to none."""

    def __init__(self, path):
        self.path, self.operations, self.candidates, self.places = path, [], [], []
        with open(path) as file:
            lines = file.read().splitlines()
        counted, inside, names = False, False, {}
        for line in lines:
            word, *words = line.split()
            if word == "plugin":
                names = symbols_of(words[0])
            elif word in ("begin", "end"):
                counted = word == "begin"
            elif word in ("run", "ran"):
                inside = word == "run"
                self.candidates += [] if inside or words[0] == "-" else words
            else:
                self.places += [len(self.candidates) if inside else None] if counted else []
                self.operations.append((counted, operation_of(word, words, names)))

    def counted(self):
        return [operation for counted, operation in self.operations if counted]


def operation_of(word, words, names):
    if word == "launch":
        stream, kernel, *numbers, arguments = words[:11]
        n = list(map(int, numbers))
        name = names.get(int(kernel, 16)) or f"unknown kernel {' '.join(words[11:])}"
        return Launch(stream, name, tuple(n[:3]), tuple(n[3:6]), n[6], n[7], arguments)
    if word == "product":
        n = list(map(int, words[1:11]))
        return Product(words[0], *n[:8], (n[8], n[9]), *(int(a, 16) for a in words[11:]))
    if word == "copy":
        return Copy(words[0], int(words[1], 16), int(words[2], 16), int(words[3]), words[4], int(words[5]))
    if word == "set":
        return Set(words[0], int(words[1], 16), int(words[2]))
    raise SystemExit(f"no operation of a GPU: {word}")


def symbols_of(plugin):
    """{address: kernel}"""
    text = subprocess.run(["nm", plugin], capture_output=True, text=True, check=True).stdout
    places = {}
    for line in text.splitlines():
        if found := re.fullmatch(r"([0-9a-f]+) [tTwW] (\S+)", line):
            places[int(found[1], 16)] = found[2]
    names = plain_names(list(places.values()))
    return {at: names[raw] for at, raw in places.items()}


def program_of(build):
    return os.path.join(build, "tests", "cuda_launches")


def listing(build, folder, case, *small):
    """None where there is no emulated GPU. small: the word, for small sizes."""
    program, path = program_of(build), os.path.join(folder, f"launches-{case}")
    if not os.path.exists(program):
        return None
    done = subprocess.run([program, case, path, *small], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"cuda_launches {case}: {done.stderr.strip()}")
    return Listing(path)
