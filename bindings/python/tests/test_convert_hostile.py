"""exphil.convert and files that are made to do harm: nothing is executed, nothing but Damaged or Refused comes out, and memory
follows the file. EXPHIL_CONVERT_MUTATIONS says how many changed files are read (600 by default)."""
import io
import os
import pickle
import random
import resource
import struct
import sys
import tracemalloc
import zlib

import convert_files as files
import numpy as np
import pytest

from exphil.convert import Damaged, Refused, exphil_policies, refusal, slippi_policies, sources

_ERRORS = (Damaged, Refused)
# Of what Python does when a file gets hold of it.
_CALLS = ("os.", "subprocess.", "exec", "compile", "import", "pickle.find_class", "marshal.", "ctypes.", "socket.", "code.")
_LISTEN = {"on": False, "heard": []}


def _listen(event, arguments):
    if _LISTEN["on"] and event.startswith(_CALLS) and not event.startswith(("os.listdir", "os.scandir")):
        _LISTEN["heard"].append((event, arguments))


sys.addaudithook(_listen)


def read(path):
    """All that the converter does with a file before it writes one."""
    source = sources.read_source(path)
    if source.form == "pickle":
        return slippi_policies.convert(source.state, "file", None)
    settings = source.settings or exphil_policies.config_settings(files.exphil_config("mlp"), "file")
    return exphil_policies.convert(source.tensors, settings, "")


def attempt(path):
    """The text with which a file is turned down, or None. Fails if the file made Python do anything."""
    _LISTEN["heard"].clear()
    _LISTEN["on"] = True
    try:
        read(path)
        return None
    except _ERRORS as reason:
        return str(reason)
    finally:
        _LISTEN["on"] = False
        assert not _LISTEN["heard"], _LISTEN["heard"][:3]


class Runs:
    """What a pickle runs on load."""

    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


def _array(shape, raw, kind=b"\x8c\x02f4", columns=b"\x89"):
    """Instructions that make a NumPy array of any shape over any bytes."""
    new = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
    dtype = b"cnumpy\ndtype\n" + kind + b"\x89\x88\x87R(K\x03\x8c\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    sides = b"(" + b"".join(b"\x8a\x09" + side.to_bytes(9, "little", signed=True) for side in shape) + b"t"
    return new + b"(K\x01" + sides + dtype + columns + b"B" + struct.pack("<I", len(raw)) + raw + b"tb"


_TYPE = b"cnumpy\ndtype\n\x8c\x02f4\x89\x88\x87R"


def _flat(shape, size=4, order=b"\x8c\x01C", kind=b"\x8c\x02f4"):
    """Instructions that make an array in one step."""
    return (b"cnumpy.core.numeric\n_frombuffer\n(C" + bytes([size]) + bytes(size) + _TYPE.replace(b"\x8c\x02f4", kind) + shape
            + order + b"tR")  # fmt: skip


def _state(shape):
    """Instructions that make one number in two steps."""
    new = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
    return new + b"(K\x01" + shape + _TYPE + b"\x89B\x04\x00\x00\x00" + bytes(4) + b"tb"


def _checkpoint(weights, scale=None):
    """Instructions of a checkpoint with these weights, whose settings are right, but for the scale of positions."""
    config = files.slippi_config(hidden=1, layers=1, depth=0, residual=1)
    if scale is not None:
        config["embed"]["player"].pop("xy_scale")
    rest = b"".join(_without_memo(config))
    if scale is not None:
        rest = rest.replace(b"\x8c\x0cshield_scale", b"\x8c\x08xy_scale" + scale + b"\x8c\x0cshield_scale")
    return b"\x80\x04}(\x8c\x05state}\x8c\x06policy" + weights + b"s\x8c\x06config" + rest + b"u."


def _without_memo(value):
    """Instructions for plain values."""
    if isinstance(value, dict):
        yield b"}("
        for key, one in value.items():
            yield from _without_memo(key)
            yield from _without_memo(one)
        yield b"u"
    elif isinstance(value, str):
        yield b"\x8c" + bytes([len(value)]) + value.encode()
    elif isinstance(value, bool):
        yield b"\x88" if value else b"\x89"
    elif isinstance(value, int):
        yield b"J" + struct.pack("<i", value)
    elif isinstance(value, float):
        yield b"G" + struct.pack(">d", value)
    else:
        yield b"cslippi_ai.jax.embed\nItemsType\n\x8c\x04skip\x85R"


def _pickles():
    """Programs, deep and wide ones, and sizes that are not there."""
    head, stop = b"\x80\x04", b"."
    laughs = b")\x940" + b"".join(b"h" + bytes([i]) + b"h" + bytes([i]) + b"\x86\x940" for i in range(30)) + b"h\x1e"
    yield "os.system", pickle.dumps(Runs(os.system, "touch pwned"), 4), "system"
    yield "eval", pickle.dumps({"state": Runs(eval, "open('pwned', 'w')")}, 4), "eval"
    yield "exec by text", head + b"cbuiltins\nexec\n(\x8c\x0fopen('pwned','w')tR" + stop, "exec"
    yield "getattr", head + b"cbuiltins\ngetattr\n(cnumpy\ndtype\n\x8c\x08__init__tR" + stop, "getattr"
    yield "numpy's own loader", head + b"cnumpy\nload\n(\x8c\x05pwnedtR" + stop, "numpy.load"
    yield "a name like ours", head + b"cslippi_ai\nsystem\n)R" + stop, "slippi_ai"
    yield "codecs", pickle.dumps(b"x" * 300, 2), "protocol 2"
    yield "an instance", head + b"(ios\nsystem\n" + stop, "instruction 0x69"
    yield "an object", head + b"(cos\nsystem\no" + stop, "os.system"
    yield "an extension", head + b"\x82\x01" + stop, "instruction 0x82"
    yield "a persistent one", head + b"\x8c\x01xQ" + stop, "instruction 0x51"
    yield "depth", head + b"]" * 20000 + b"a" * 19999 + stop, "not a checkpoint"
    yield "depth of tuples", head + b")" + b"\x85" * 20000 + stop, "not a checkpoint"
    yield "width", head + b"(" + b"}" * 300_000 + b"l" + stop, "values"
    yield "marks", head + b"(" * 300_000 + stop, "values"
    yield "memo far out", head + b"]r\xff\xff\xff\xff" + stop, "the memo has 0 values"
    yield "memo that is not there", head + b"j\x00\x00\x00\x7f" + stop, "memo"
    yield "memo of copies", head + b"]\x94" + b"(" + b"h\x00" * 300000 + b"l" + stop, "values"
    yield "laughs", head + laughs + stop, "not a checkpoint"
    yield "laughs as weights", _checkpoint(b"}\x940" + b"".join(b"}\x940h%c(\x8c\x01ah%c\x8c\x01bh%cu0" % (i + 1, i, i)
                                                              for i in range(30)) + b"h\x1e"), "its weights"  # fmt: skip
    yield "weights in themselves", _checkpoint(b"}\x94\x8c\x01ah\x00s"), "its weights"
    yield "laughs as a setting", _checkpoint(b"}", laughs), "embed.player.xy_scale is a tuple"
    yield "laughs as a key", head + b"}" + laughs + b"Ns" + stop, "a key"
    yield "itself", head + b"]\x94h\x00a" + stop, "not a checkpoint"
    yield "itself in a dictionary", head + b"}\x94\x8c\x01ah\x00s" + stop, "not a checkpoint"
    yield "bytes that are not there", head + b"\x8e" + struct.pack("<Q", 1 << 60) + stop, "bytes are said to follow"
    yield "text that is not there", head + b"\x8d" + struct.pack("<Q", 1 << 61) + stop, "a text of"
    yield "bytearray that is not there", head + b"\x96" + struct.pack("<Q", (1 << 64) - 1) + stop, "bytes are said to follow"
    yield "a long number", head + b"\x8b" + struct.pack("<i", 1 << 30) + stop, "instruction 0x8b"
    yield "a frame", head + b"\x95" + struct.pack("<Q", 1 << 62) + stop, "frame"
    yield "a huge array", head + _array([1 << 31, 1 << 31], b"1234") + stop, "bytes each"
    yield "an array beyond all numbers", head + _array([1 << 60, 1 << 60, 0], b"") + stop, "not a checkpoint"
    yield "a negative array", head + _array([-1, -4], b"1234") + stop, "a dimension is -1"
    yield "an array of objects", head + _array([1], b"12345678", b"\x8c\x02O8") + stop, "objects"
    yield "an array of 40 dimensions", head + _array([1] * 40, b"1234") + stop, "dimensions"
    yield "a key that takes long", head + b")" + b"\x94" + b"h\x00h\x00\x86\x94" * 1 + b"}h\x01Ns" + stop, "a key"
    small = _flat(b"K\x04\x85", 16)
    yield "laughs as a shape", head + _flat(laughs) + stop, "a dimension is a tuple"
    yield "laughs as a shape of a state", head + _state(b"(" + laughs + b"t") + stop, "a dimension is a tuple"
    yield "depth as a shape", head + _state(b"(" + b")" + b"\x85" * 100_000 + b"t") + stop, "a dimension is a tuple"
    yield "an array as a side", head + _flat(b"(" + small + b"t") + stop, "a dimension is a ndarray"
    yield "an array as an order", head + _flat(b"K\x01\x85", order=small) + stop, "the shape of an array"
    yield "an array as a type's order", head + _TYPE + b"(K\x03" + small + b"tb" + stop, "the state of a type"
    yield "an array as a platform", _checkpoint(b"}").replace(b"\x8c\x03jax", small), "platform is a ndarray"
    yield "an array as a setting", _checkpoint(b"}", small), "xy_scale is a ndarray"
    yield "a setting of 2000 bits", _checkpoint(b"}", b"\x8a\xff" + b"\x7f" * 255), "xy_scale is a number of 2039 bits"
    yield "a name for a terminal", _checkpoint(b"}\x8c\x0a\x1b[31mRED\n!\x8c\x01ss"), r"'\x1b[31mRED\n!' is no name"
    yield "a name that is no text", _checkpoint(b"}\x8c\x03\xed\xa0\x80K\x01s"), r"'\ud800' is no name"
    yield "a long name", _checkpoint(b"}\x8c\xff" + b"x" * 255 + b"}K\x01Nss"), "is no name"
    yield "copies of a type that is widened", head + _flat(b"K\x01\x85", 2, kind=b"\x8c\x04bf16") + stop, "NumPy has none"
    yield "no stop", head + b"]", "bytes are said to follow"
    yield "nothing on the stack", head + b"a" + stop, "there is none"
    yield "more behind it", pickle.dumps({}, 4) + b"x", "behind the pickle"
    yield "protocol 0 text", b"\x80\x07(dp0\n.", "protocol 7"


def _terms():
    """The same of Erlang's terms."""
    version = b"\x83"
    zeros = zlib.compress(b"m" + struct.pack(">I", 5_000_000) + bytes(5_000_000), 9)
    yield "a list of four thousand million", version + b"l\xff\xff\xff\xff" + b"j" * 50, "terms are said to follow"
    yield "a tuple of as many", version + b"i\xff\xff\xff\xff" + b"j" * 50, "terms are said to follow"
    yield "a map of as many", version + b"t\xff\xff\xff\xff" + b"j" * 50, "pairs"
    yield "a binary of as many", version + b"m\xff\xff\xff\xffxx", "bytes are said to follow"
    yield "an integer of as many", version + b"o\x7f\xff\xff\xff\x00", "an integer of"
    yield "an atom of 60000", version + b"d\xea\x60" + b"x" * 60000, "an atom of"
    yield "depth", version + b"h\x01" * 20000 + b"j", "nested deeper"
    yield "depth of lists", version + b"l\x00\x00\x00\x01" * 20000 + b"j" * 20001, "nested deeper"
    yield "width", version + b"l\x00\x04\x93\xe0" + b"j" * 300_001, "values"
    yield "width of strings", version + b"l\x00\x00\x00\xff" + (b"k\xff\xff" + b"x" * 65535) * 5 + b"j", "values"
    yield "small maps", version + b"l\x00\x04\x93\xe0" + b"t\x00\x00\x00\x00" * 300_000 + b"j", "values"
    yield "a compressed bomb", version + b"P" + struct.pack(">I", 5_000_005) + zeros, "is refused"
    yield "a bomb that hides its size", version + b"P" + struct.pack(">I", 1000) + zeros, "are not exactly"
    yield "compressed twice", version + b"P\x00\x00\x00\x06" + zlib.compress(version + b"Pabcd"), "tag 131"
    yield "less than it says", version + b"P\x00\x00\x10\x00" + zlib.compress(b"j"), "are not exactly"
    yield "a function", version + b"p" + struct.pack(">I", 40) + bytes(40), "a function"
    yield "an old function", version + b"u" + bytes(40), "a function"
    yield "an exported function", version + b"qw\x02osw\x03cmda\x01", "a function"
    yield "a process", version + b"Xw\x01n" + bytes(12), "a process"
    yield "a port", version + b"Yw\x01n" + bytes(8), "a port"
    yield "a reference", version + b"Z\x00\x01w\x01n" + bytes(8), "a reference"
    yield "a bit string", version + b"M\x00\x00\x00\x01\x03\xe0", "a bit string"
    yield "a cached atom", version + b"R\x00", "atom cache"
    yield "a key twice", version + b"t\x00\x00\x00\x02a\x01ja\x01j", "comes twice"
    yield "a tuple as key", version + b"t\x00\x00\x00\x01h\x00j", "a key of a map"
    yield "an improper list", version + b"l\x00\x00\x00\x01ja\x01", "does not end with one"
    yield "more behind it", files.term({}) + b"x", "behind the term"
    yield "no term", version + b"\xff", "tag 255"
    yield "an atom that is no text", version + b"w\x01\xff", "not text"
    yield "a tensor elsewhere", files.term({files.Atom("params"): {"a": {
        files.Atom("__struct__"): files.Atom("Elixir.Nx.Tensor"), files.Atom("data"): {
            files.Atom("__struct__"): files.Atom("Elixir.EXLA.Backend")}}}}), "BinaryBackend"  # fmt: skip
    yield "a struct", files.term({files.Atom("params"): {files.Atom("__struct__"): files.Atom("Elixir.System")}}), "Elixir.System"


def _serialized(term, buffers=b"", version=1, order=0):
    data = files.term(term)
    return bytes(5) + b"nx" + bytes([version, order]) + struct.pack(">Q", len(data)) + data + buffers


def _places():
    """Nx.serialize: tensors that lie elsewhere."""
    t, f, module = files.Atom("t"), (files.Atom("f"), 32), files.Atom("Elixir.Nx.Container.Map")

    def tensor(shape, offset, size):
        return (t, shape, f, [], [], offset, size)

    yield "behind the end", _serialized((module, [("a", tensor((4,), 8, 16))], 0), bytes(16)), "bytes 8 to 24"
    yield "before the beginning", _serialized((module, [("a", tensor((4,), -8, 16))], 0), bytes(16)), "bytes -8"
    yield "a huge shape", _serialized((module, [("a", tensor((2**31, 2**31), 0, 16))], 0), bytes(16)), "bytes each"
    yield "bytes for two", _serialized((module, [(n, tensor((4,), 0, 16)) for n in "abc"], 0), bytes(16)), "share bytes"
    yield "pairs that are none", _serialized((module, 5, 0)), "the pairs of the parameters are 5"
    yield "pairs that are nothing", _serialized((module, None, 0)), "the pairs of the parameters are None"
    yield "a key that is no text", _serialized((module, [(b"\xff" * 3, 1)], 0)), "not text"
    yield "a key for a terminal", _serialized((module, [("\x1b[2J", 1)], 0)), r"'\x1b[2J' is no name"
    yield "bytes as a side", _serialized((module, [("a", (t, (b"x" * 2000,), f, [], [], 0, 4))], 0), bytes(4)), "a dimension is a"
    yield "another container", _serialized((files.Atom("Elixir.Kernel"), [], 0)), "Elixir.Kernel"
    yield "another version", _serialized({}, version=9), "version 9"
    yield "another order", _serialized({}, order=7), "byte order 7"
    yield "a length beyond", bytes(5) + b"nx\x01\x00" + struct.pack(">Q", 1 << 63), "bytes are said to follow"
    yield "metadata beyond", b"\x00\xff\xff\xff\xff", "bytes are said to follow"
    yield "a deflated bomb", b"\x01\x00\x00\x00\x00" + zlib.compress(bytes(5_000_000), 9), "grow to more"
    node = tensor((1,), 0, 4)
    for _ in range(60):
        node = (module, [("a", node)], 0)
    yield "depth", _serialized(node, bytes(4)), "nested deeper"


def _entry(name, raw, method=0, size=None, stored=None, crc=None, flags=0):
    packed = raw
    if method == 8:
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = deflate.compress(raw) + deflate.flush()
    return (name.encode(), packed, method, len(raw) if size is None else size, len(packed) if stored is None else stored,
            zlib.crc32(raw) if crc is None else crc, flags)  # fmt: skip


def _zip(entries, at=None, comment=b""):
    """A zip archive of such entries, which may say anything. at: where all entries are said to begin."""
    body, directory = b"", b""
    for name, packed, method, size, stored, crc, flags in entries:
        place = len(body) if at is None else at
        body += b"PK\x03\x04" + struct.pack("<HHHIIIIHH", 20, flags, method, 0, crc, stored, size, len(name), 0) + name + packed
        directory += b"PK\x01\x02" + struct.pack("<HHHHIIIIHHHHHII", 20, 20, flags, method, 0, crc, stored, size, len(name), 0, 0,
                                                 0, 0, 0, place) + name  # fmt: skip
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(body), len(comment))
    return body + directory + b"PK\x05\x06" + end + comment


def _npy(header, data=b"", version=b"\x01\x00"):
    raw = header.encode("latin-1")
    return b"\x93NUMPY" + version + struct.pack("<H", len(raw)) + raw + data


def _zips():
    """Archives that grow, overlap or lie, and .npy files that do."""
    zeros, good = bytes(5_000_000), _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", bytes(4))
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }"
    yield "a bomb", _zip([_entry("a.npy", zeros, 8)]), "is refused|times as much"
    yield "a bomb of many", _zip([_entry(f"{i}.npy", zeros[:2_000_000], 8) for i in range(40)]), "times as much"
    yield "a bomb that hides its size", _zip([_entry("a.npy", zeros, 8, size=1000)]), "are not exactly"
    yield "members in one another", _zip([_entry("a.npy", good), _entry("b.npy", good)], at=0), "lies in another"
    yield "a stored size that grows", _zip([_entry("a.npy", good, size=1 << 20)]), "in another size|times as much"
    yield "a member behind the end", _zip([_entry("a.npy", good, stored=1 << 20, size=1 << 20)]), "ends behind|times as much"
    yield "zip64", _zip([_entry("a.npy", good, size=0xFFFFFFFF)]), "zip64"
    yield "encrypted", _zip([_entry("a.npy", good, flags=1)]), "encrypted"
    yield "another method", _zip([(b"a.npy", good, 14, len(good), len(good), 0, 0)]), "method 14"
    yield "a wrong sum", _zip([_entry("a.npy", good, crc=1)]), "sum"
    yield "a member twice", _zip([_entry("a.npy", good), _entry("a.npy", good)]), "comes twice"
    yield "no end", _zip([_entry("a.npy", good)])[:-1], "no end record"
    yield "no array", _zip([_entry("a.txt", good)]), "is no .npy file"
    yield "an empty one", _zip([]), "without backbone_dense_0"
    yield "objects", _zip([_entry("a.npy", _npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"x" * 8))]), "objects"
    code = "{'descr': __import__('os').system('touch pwned'), 'shape': ()}"
    yield "code", _zip([_entry("a.npy", _npy(code))]), "numpy.save writes"
    yield "a record", _zip([_entry("a.npy", _npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"))]), "save"
    yield "a huge shape", _zip([_entry("a.npy", _npy(header % "4294967295, 4294967295", bytes(4)))]), "a dimension"
    yield "a wrong shape", _zip([_entry("a.npy", _npy(header % "2147483647, 2147483647", bytes(4)))]), "bytes each"
    yield "numbers beyond", _zip([_entry("a.npy", _npy(header % ("9" * 4000 + ",")))]), "header"
    yield "many sides", _zip([_entry("a.npy", _npy(header % ("1, " * 500 + "1")))]), "is none"
    yield "no elements", _zip([_entry("a.npy", _npy(header % "0,"))]), "has no elements"
    yield "a long header", _zip([_entry("a.npy", _npy(" " * 60000))]), "a header of"
    yield "another version", _zip([_entry("a.npy", _npy("", version=b"\x09\x00"))]), "version 9"
    yield "a comment like an end", _zip([_entry("a.npy", good)], comment=b"PK\x05\x06" + bytes(18)), "members"


def _jsons():
    """safetensors whose header lies."""

    def tensors(header, data=b""):
        raw = header.encode()
        return struct.pack("<Q", len(raw)) + raw + data

    one = '"%s":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}'
    yield "a header beyond", struct.pack("<Q", 1 << 62) + b"{}", "a header of"
    yield "depth", tensors('{"a":' + "[" * 20000 + "]" * 20000 + "}"), "nested deeper"
    yield "a long number", tensors('{"a":{"dtype":"F32","shape":[' + "9" * 5000 + '],"data_offsets":[0,4]}}', bytes(4)), "digits"
    yield "a name twice", tensors("{" + one % ("a", 0, 4) + "," + one % ("a", 4, 8) + "}", bytes(8)), "comes twice"
    yield "tensors in one another", tensors("{" + one % ("a", 0, 4) + "," + one % ("b", 0, 4) + "}", bytes(4)), "does not begin"
    yield "a hole", tensors("{" + one % ("a", 4, 8) + "}", bytes(8)), "does not begin"
    yield "bytes left", tensors("{" + one % ("a", 0, 4) + "}", bytes(8)), "bytes behind"
    yield "less than it says", tensors("{" + one % ("a", 0, 4) + "}", bytes(2)), "ends behind"
    yield "a shape beyond", tensors('{"a":{"dtype":"F32","shape":[200000000,200000000],"data_offsets":[0,4]}}', bytes(4)), "bytes"
    yield "a negative place", tensors('{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}', bytes(4)), "place"
    yield "a type", tensors('{"a":{"dtype":{},"shape":[1],"data_offsets":[0,4]}}', bytes(4)), "is of type"
    yield "a float as side", tensors('{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}', bytes(4)), "a dimension"
    yield "a text as side", tensors('{"a":{"dtype":"F32","shape":["' + "x" * 1000 + '"],"data_offsets":[0,4]}}', bytes(4)), "..."
    yield "a name for a terminal", tensors("{" + one % (r"\u001b[2J", 0, 4) + "}", bytes(4)), r"'\x1b[2J' is no name"
    yield "a long name", tensors("{" + one % ("x" * 9999, 0, 4) + "}", bytes(4)), "is no name"
    yield "not JSON", tensors("{" + "x" * 50), "not JSON"
    yield "a policy of ours", files.safetensors({}, {"exphil.model": "{}"}), "a policy of this library already"
    yield "nothing that is known", b"GGUF" + bytes(20), "none of the files"
    yield "nothing at all", b"", "none of the files"


_BOMBS = [(f"{kind.__name__[1:]}: {name}", data, why)
          for kind in (_pickles, _terms, _places, _zips, _jsons) for name, data, why in kind()]  # fmt: skip


@pytest.mark.parametrize("name,data,why", _BOMBS, ids=[name for name, _, _ in _BOMBS])
def test_bombs(name, data, why, tmp_path, monkeypatch):
    """Each is turned down for what it is, in memory that its size bounds, and nothing runs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "file"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        said = attempt(str(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert said is not None, "it was taken"
    assert any(part in said for part in why.split("|")), said
    assert len(said) <= 3000 and said.isprintable()
    assert peak <= 80 * len(data) + (1 << 20), f"{peak} bytes for a file of {len(data)}"
    assert os.listdir(tmp_path) == ["file"], "something was executed"


def _dense():
    """What makes most of its bytes: those of the file, and how many they are once decompressed."""
    head, stop = b"\x80\x04", b"."
    maps = files.term({files.Atom("params"): {}})[:1] + b"l\x00\x01\xd4\xc0" + b"t\x00\x00\x00\x00" * 120_000 + b"j"
    packed = zlib.compress(maps[1:], 1)
    plain = b"C\x04" + bytes(4) + b"\x940" + _TYPE + b"\x940K\x01\x85\x940\x8c\x01C\x940(h\x00h\x01h\x02h\x03t\x940"
    for name, data in (
        ("views", head + b"C\x00" * 131_000 + stop),
        ("short bytes", head + b"C\x01x" * 131_000 + stop),
        ("dictionaries in the memo", head + b"}\x94" * 65_500 + stop),
        ("dictionaries in the memo, more than there may be", head + b"(" + b"}\x94" * 87_382 + b"l" + stop),
        ("views, more than there may be", head + b"C\x00" * 262_000 + stop),
        ("dictionaries", head + b"}" * 131_000 + stop),
        ("dictionaries in a tuple", head + b"(" + b"}" * 65_000 + b"t" + stop),
        ("dictionaries of one", head + b"}NNs" * 43_000 + stop),
        ("arrays", head + plain + b"cnumpy.core.numeric\n_frombuffer\n\x940" + b"h\x05h\x04R" * 25_000 + stop),
    ):
        yield name, data, len(data)
    yield "maps", maps, len(maps)
    # Stored as it is: what is compressed better is refused for that.
    yield "compressed maps", b"\x83P" + struct.pack(">I", len(maps) - 1) + packed, len(maps)


_DENSE = list(_dense())


@pytest.mark.parametrize("name,data,size", _DENSE, ids=[name for name, _, _ in _DENSE])
def test_memory(name, data, size, tmp_path):
    """The bound of doc/convert.md, by files that are nothing but values."""
    path = tmp_path / "file"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        assert attempt(str(path)) is not None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 80 * size + (1 << 20), f"{peak} bytes for {size}, {peak / size:.1f} times"


def test_no_padding_without_end(tmp_path):
    """Widths of 1 and 16384 in turn would make a matrix of a GiB each: refused before there is memory for one."""
    sizes = [1, 16384, 1, 1, 1, 1]
    flat = files.exphil_weights("mlp", sizes=sizes)
    path = tmp_path / "file"
    path.write_bytes(files.exphil_term(flat, files.exphil_config("mlp")))
    tracemalloc.start()
    try:
        assert "more than" in attempt(str(path)) and "parameters" in attempt(str(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 80 * path.stat().st_size + (1 << 20), peak


def test_messages_end():
    """A text of a message is one line of bounded length, and a value in it is what it is or its kind."""
    deep = ()
    for _ in range(200):
        deep = (deep, deep)
    assert [refusal.shown(one) for one in (None, True, 7, -7, 0.5, 1 << 5000, "a\n" * 99, deep, {}, b"")] == [
        "None", "True", "7", "-7", "0.5", "a number of 5001 bits", repr("a\n" * 30) + "...", "a tuple", "a dict", "a bytes",
    ]  # fmt: skip
    for kind in _ERRORS:
        assert str(kind("a\x1b[2J\r\n\u202e\ud800" + "x" * 9000)) == "a\\x1b[2J\\r\\n\\u202e\\ud800" + "x" * 488 + "..."


def small_files():
    """A small whole file of every form, of which each is taken."""
    flat, config = files.exphil_weights("mlp", sizes=(3,)), files.exphil_config("mlp")
    flat = {name: value for name, value in flat.items()}
    slippi = files.slippi_config(hidden=1, layers=1, depth=0, residual=1)
    yield files.exphil_term(flat, config)
    yield files.exphil_term(flat, config, compressed=True)
    yield files.exphil_manifest(flat, config)
    yield files.exphil_manifest(flat, config, compressed=True)
    yield files.npz(flat)
    yield files.npz(flat, compressed=True)
    yield files.safetensors(flat)
    yield files.slippi_checkpoint(slippi, files.slippi_weights(slippi))


_INTERESTING = (b"\x00" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00" * 8, b"\xff" * 8, b"\x80\x04", b"\x83",
                b"l\xff\xff\xff\xff", b"R", b"b", b"(", b"}", b"]", b"h\x00", b"\x93", b"cos\nsystem\n", b"PK\x01\x02", b"t\x00",
                b"[", b"1999919999")  # fmt: skip


def mutate(data, draw):
    """A few changes, of places that are more often near the front, where the structure is."""
    made = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        at = min(int(len(made) * draw.random() ** draw.choice((1, 3))), max(len(made) - 1, 0))
        what = draw.randrange(6)
        if what == 0 and made:
            made[at] ^= 1 << draw.randrange(8)
        elif what == 1 and made:
            made[at] = draw.randrange(256)
        elif what == 2:
            piece = draw.choice(_INTERESTING)
            made[at : at + len(piece)] = piece
        elif what == 3:
            made[at:at] = draw.choice(_INTERESTING)
        elif what == 4:
            del made[at : at + draw.choice((1, 2, 4, 8, 64))]
        else:
            start = draw.randrange(len(made) + 1)
            made[at:at] = made[start : start + draw.choice((1, 8, 64, 512))]
    if draw.random() < 0.05:
        del made[draw.randrange(len(made) + 1) :]
    return bytes(made)


def test_small_files_are_taken(tmp_path):
    """Else the mutations would show nothing."""
    for i, data in enumerate(small_files()):
        path = tmp_path / str(i)
        path.write_bytes(data)
        assert attempt(str(path)) is None


def test_mutations(tmp_path, monkeypatch):
    """Changed files are taken or turned down. In a child with 256 MiB more than it has: a MemoryError is a failure too."""
    monkeypatch.chdir(tmp_path)
    count = int(os.environ.get("EXPHIL_CONVERT_MUTATIONS", "600"))
    bases, draw = list(small_files()), random.Random(int(os.environ.get("EXPHIL_CONVERT_SEED", "1")))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with open("/proc/self/statm", encoding="ascii") as file:
                now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20), now + (256 << 20)))
            taken = 0
            for i in range(count):
                data = mutate(bases[i % len(bases)], draw)
                with open("file", "wb") as file:
                    file.write(data)
                try:
                    taken += attempt("file") is None
                except BaseException:
                    with open("found", "wb") as file:
                        file.write(data)
                    raise
            with open("taken", "w", encoding="ascii") as file:
                file.write(str(taken))
            status = 0
        finally:
            import traceback

            if status:
                traceback.print_exc()
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 if hasattr(os, "waitstatus_to_exitcode") else True
    taken = int((tmp_path / "taken").read_text())
    assert 0 < taken < count, "some changes do no harm, most do"


def test_numpy_is_not_asked_for_objects():
    """The readers do not lean on NumPy's own refusal."""
    made = io.BytesIO()
    np.save(made, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    from exphil.convert import npz

    with pytest.raises(Refused, match="objects"):
        npz.read_npy(made.getvalue(), "file")
