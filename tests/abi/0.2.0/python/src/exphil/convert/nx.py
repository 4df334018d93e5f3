"""Tensors of Nx: as its terms hold them, and as Nx.serialize writes them."""
from __future__ import annotations

from typing import Any, Dict, List, Tuple

from . import arrays
from .etf import Atom, read_term
from .reader import Bytes, Reader
from .refusal import MOST_DEPTH, MOST_TENSORS, Damaged, Refused, shown, tensor_name

Tensors = Dict[str, Any]
_KINDS = {"f": "f", "s": "i", "u": "u"}


def text(key: Any, what: str) -> str:
    """A key of a map as text."""
    if isinstance(key, bytes):
        try:
            key = key.decode()
        except UnicodeDecodeError:
            raise Damaged(f"{what}: a name is not text") from None
    if isinstance(key, bool) or key is None or not isinstance(key, (str, int)):
        raise Damaged(f"{what}: {shown(key)} is no name")
    return tensor_name(str(key), what)


def _kind(given: Any, what: str) -> str:
    """{:f, 32} as f4."""
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and type(given[1]) is int:
        letter, bits = given
        if letter == "bf" and bits == 16:
            return "bf16"
        if letter in _KINDS and bits in (8, 16, 32, 64):
            return f"{_KINDS[letter]}{bits // 8}"
        raise Refused(f"{what}: tensors of type {shown(letter)}, {shown(bits)} are not read")
    raise Refused(f"{what}: tensors of type {shown(given)} are not read")


class _Tree:
    """Collects the tensors of a nested map under dotted paths."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.found: Tensors = {}
        self.used = 0

    def add(self, path: List[str], value: Any) -> None:
        name = ".".join(path)
        if name in self.found:
            raise Damaged(f"{self.what}: {name} comes twice")
        if len(self.found) >= MOST_TENSORS:
            raise Damaged(f"{self.what}: more than {MOST_TENSORS} tensors")
        self.found[name] = value

    def below(self, path: List[str], key: Any) -> List[str]:
        if len(path) >= MOST_DEPTH:
            raise Damaged(f"{self.what}: nested deeper than {MOST_DEPTH}")
        made = path + [text(key, self.what)]
        tensor_name(".".join(made), self.what)
        return made

    def term(self, node: Any, path: List[str]) -> None:
        """Maps, and the structs that Elixir makes of them."""
        if not isinstance(node, dict):
            raise Damaged(f"{self.what}: {'.'.join(path) or 'the parameters'} is no map and no tensor")
        kind = node.get("__struct__")
        if kind == "Elixir.Axon.ModelState":
            self.term(node.get("data"), path)
        elif kind == "Elixir.Nx.Tensor":
            self.add(path, _binary_tensor(node, f"{self.what}: {'.'.join(path)}"))
        elif kind is not None:
            raise Refused(f"{self.what}: {'.'.join(path) or 'the parameters'} is {shown(kind)}")
        else:
            for key, value in node.items():
                self.term(value, self.below(path, key))

    def written(self, node: Any, path: List[str], buffers: memoryview, big: bool) -> None:
        """The tree of Nx.serialize: {:t, ...} or {module, pairs, meta}."""
        if isinstance(node, tuple) and len(node) == 7 and node[0] == "t":
            self.used += node[6] if type(node[6]) is int and node[6] > 0 else 0
            if self.used > len(buffers):
                raise Damaged(f"{self.what}: tensors share bytes")
            self.add(path, _placed_tensor(node, buffers, big, f"{self.what}: {'.'.join(path)}"))
            return
        if not isinstance(node, tuple) or len(node) != 3 or not isinstance(node[0], Atom):
            raise Damaged(f"{self.what}: {'.'.join(path) or 'the parameters'} is neither a tensor nor a container")
        module, pairs, _ = node
        if module != "Elixir.Nx.Container.Map":
            raise Refused(f"{self.what}: {'.'.join(path) or 'the parameters'} is a container of {shown(module)}, no map")
        if not isinstance(pairs, (list, tuple)):
            raise Damaged(f"{self.what}: the pairs of {'.'.join(path) or 'the parameters'} are {shown(pairs)}")
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise Damaged(f"{self.what}: a pair of {'.'.join(path) or 'the parameters'} is none")
            self.written(pair[1], self.below(path, pair[0]), buffers, big)


def _binary_tensor(node: Dict[Any, Any], what: str) -> Any:
    """An Nx.Tensor in Nx.BinaryBackend, which keeps its numbers in one binary of this machine's order: little-endian."""
    backend = node.get("data")
    if not isinstance(backend, dict) or backend.get("__struct__") != "Elixir.Nx.BinaryBackend":
        raise Refused(f"{what}: its numbers are not in Nx.BinaryBackend; copy it there before it is written")
    raw, shape = backend.get("state"), node.get("shape")
    if not isinstance(raw, (bytes, memoryview)) or not isinstance(shape, tuple):
        raise Damaged(f"{what}: a tensor without numbers or shape")
    if node.get("vectorized_axes", ()) not in ((), []):
        raise Refused(f"{what}: a vectorized tensor")
    return arrays.tensor(raw, _kind(node.get("type"), what), shape, what)


def _placed_tensor(node: Tuple[Any, ...], buffers: memoryview, big: bool, what: str) -> Any:
    """{:t, shape, type, names, vectorized axes, offset, size}."""
    _, shape, kind, _, vectorized, offset, size = node
    if not isinstance(shape, tuple) or type(offset) is not int or type(size) is not int:
        raise Damaged(f"{what}: a tensor without shape or place")
    if vectorized not in ((), []):
        raise Refused(f"{what}: a vectorized tensor")
    if offset < 0 or size < 0 or offset > len(buffers) or size > len(buffers) - offset:
        raise Damaged(f"{what}: bytes {offset} to {offset + size} of {len(buffers)}")
    return arrays.tensor(buffers[offset : offset + size], _kind(kind, what), shape, what, big=big)


def term_tensors(node: Any, what: str) -> Tensors:
    """Tensors of a map of maps out of a term, by dotted paths."""
    tree = _Tree(what)
    tree.term(node, [])
    return tree.found


def read_serialized(data: Bytes, what: str) -> Tensors:
    """Tensors of what Nx.serialize wrote (version 1 of its format), by dotted paths."""
    reader = Reader(data, what)
    if bytes(reader.take(2)) != b"nx":
        if reader.data[0] == 131:
            raise Refused(f"{what}: written by Nx 0.5 or earlier; write it anew with a later one")
        raise Damaged(f"{what}: not what Nx.serialize writes")
    version, order = reader.byte(), reader.byte()
    if version != 1 or order > 1:
        raise Refused(f"{what}: version {version}, byte order {order} of Nx.serialize; 1 and 0 or 1 are read")
    term = read_term(reader.take(reader.number(">Q")), what)
    tree, buffers = _Tree(what), reader.take(reader.left())
    tree.written(term, [], buffers, bool(order))
    return tree.found
