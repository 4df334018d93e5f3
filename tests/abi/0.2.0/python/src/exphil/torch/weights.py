"""Weights files: load and save policies. Names and shapes are those of the library, without renaming."""
from __future__ import annotations

import os
import re
import sys
from typing import Any, Dict, Iterator, Mapping, Tuple

import torch
from torch import Tensor

from .checksum import hexadecimal, xxh64
from .config import Config
from .container import Array, Header, PathLike, check_sum, open_file, read_data, read_header, replace, to_bytes
from .errors import FormatError
from .policy import Policy

FORMAT_KEY, MODEL_KEY, SUM_KEY = "exphil.format", "exphil.model", "exphil.model_xxh64"
UPDATES_KEY, FRAMES_KEY, NOTES_KEY, NOTES_SUM = (
    "exphil.trained_updates", "exphil.trained_frames", "exphil.notes", "exphil.notes_xxh64"
)  # fmt: skip
NOTES_MOST = 65536
SCALE_LEAST, SCALE_MOST = 2.0**-100, 2.0**120

# The matrices that a quantised model rounds, and whether those are I8 there.
_ROUNDED = re.compile(
    r"(?P<half>(input|heads\.trunk|value\.trunk)\.weight)"
    r"|blocks\.\d+\.((in_proj|x_proj|dt_proj|out_proj|qkv|up|down)\.weight|weight_ih|weight_hh|weight)"
)


def stored_type(c: Config, name: str) -> str:
    """The type of a tensor in a file."""
    layer = re.fullmatch(r"heads\..+\.(\d+)\.weight", name) if c.weights and c.head_layers else None
    if layer is not None:
        return "BF16" if int(layer[1]) < c.head_layers else c.type
    found = _ROUNDED.fullmatch(name) if c.weights else None
    if found is None:
        return c.type
    return "BF16" if found["half"] or c.weights == "BF16" else "I8"


def stored(c: Config, shapes: Mapping[str, Tuple[int, ...]]) -> Iterator[Tuple[str, str, Tuple[int, ...]]]:
    """Name, type and shape of all that a file of this configuration holds."""
    for name, shape in shapes.items():
        dtype = stored_type(c, name)
        yield name, dtype, shape
        if dtype == "I8":
            yield name + ".scale", "F32", shape[:1]


# ---- reading -------------------------------------------------------------------------------------------------


def _counter(metadata: Mapping[str, str], key: str, label: str) -> int:
    text = metadata.get(key, "0")
    if not re.fullmatch("0|[1-9][0-9]{0,19}", text) or int(text) >= 1 << 64:
        raise FormatError(f"{label}: __metadata__.{key} is no number of 64 bits")
    return int(text)


def _config(header: Header, label: str) -> Config:
    for key in (FORMAT_KEY, MODEL_KEY):
        if key not in header.metadata:
            raise FormatError(f"{label}: __metadata__.{key} is missing: these are no weights of libexphil")
    if header.metadata[FORMAT_KEY] != "1":
        raise FormatError(f'{label}: {FORMAT_KEY} is {header.metadata[FORMAT_KEY][:20]!r}, this package reads "1"')
    text = header.metadata[MODEL_KEY]
    check_sum(header.metadata, SUM_KEY, text.encode("utf-8", "surrogatepass"), f"{label}: {MODEL_KEY}")
    return Config.from_text(text, f"{label}: {MODEL_KEY}")


def _check_tensors(c: Config, header: Header, label: str) -> None:
    """The file's tensors are those of the configuration: known before there is memory for weights."""
    shapes = {name: tuple(one.shape) for name, one in Policy(c, device="meta").state_dict().items()}
    wanted = {name: (dtype, shape) for name, dtype, shape in stored(c, shapes)}
    for name, (dtype, shape) in wanted.items():
        found = header.tensors.get(name)
        if found is None:
            raise FormatError(f'{label}: tensor "{name}" is missing')
        if (found.dtype, found.shape) != (dtype, shape):
            raise FormatError(f'{label}: tensor "{name}" is {found.dtype} {list(found.shape)}, not {dtype} {list(shape)}')
    for name in header.tensors:
        if name not in wanted:
            raise FormatError(f'{label}: tensor "{name}" is not one of the policy\'s')


_TORCH = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.int16, "I8": torch.int8}


def _values(array: Array) -> Tensor:
    """The numbers of a tensor; of BF16 the bits."""
    if array.count == 0:
        return torch.empty(array.shape, dtype=_TORCH[array.dtype])
    return torch.frombuffer(array.data, dtype=_TORCH[array.dtype]).reshape(array.shape)


def _refuse_where(bad: Tensor, label: str, name: str, what: str) -> None:
    if bool(bad.any()):
        element = int(bad.reshape(-1).to(torch.uint8).argmax())
        raise FormatError(f'{label}: tensor "{name}" is {what} at element {element}')


def _read_bf16(name: str, array: Array, label: str) -> Tensor:
    value = (_values(array).to(torch.int32) << 16).view(torch.float32)
    _refuse_where(~torch.isfinite(value), label, name, "not finite")
    odd = (value.abs() < 2.0**-50) & (_values(array) != 0)
    _refuse_where(odd, label, name, "below 2^-50, but not 0")
    return value


def _read_i8(name: str, array: Array, scales: Array, label: str) -> Tensor:
    matrix, scale = _values(array), _values(scales)
    _refuse_where(matrix == -128, label, name, "-128")
    of_scale = name + ".scale"
    _refuse_where(~torch.isfinite(scale), label, of_scale, "not finite")
    _refuse_where(~((scale >= SCALE_LEAST) & (scale <= SCALE_MOST)), label, of_scale, "not from 2^-100 to 2^120")
    _refuse_where(scale.view(torch.int32) & 0xFF != 0, label, of_scale, "of more than 16 significant bits")
    largest = matrix.to(torch.int32).abs().amax(1)
    fits = torch.where(largest == 0, scale == 1, (largest == 127) | (scale == SCALE_LEAST))
    _refuse_where(~fits, label, of_scale, "no scale of its row, whose largest is not 127,")
    return matrix.to(torch.float32) * scale.unsqueeze(1)


def _read(name: str, tensors: Mapping[str, Array], label: str) -> Tensor:
    array = tensors[name]
    if array.dtype == "BF16":
        return _read_bf16(name, array, label)
    if array.dtype == "I8":
        return _read_i8(name, array, tensors[name + ".scale"], label)
    value = _values(array)
    _refuse_where(~torch.isfinite(value), label, name, "not finite")
    return value


def load(path: PathLike, *, device: Any = None, dequantize: bool = False) -> Policy:
    """Reads a weights file of the library, or of save; FormatError says what is wrong with another one.

    A quantised policy has its weights as floats, exactly, and rounds the inputs of the rounded matrices as doc/model.md says;
    it trains no more. dequantize=True makes a policy in float of these weights, which does not round and may be trained.
    """
    label = os.path.basename(os.fsdecode(path))
    if sys.byteorder != "little":
        raise NotImplementedError("weights files are read on little-endian machines")
    with open_file(path, label) as file:
        header = read_header(file, label)
        config = _config(header, label)
        _check_tensors(config, header, label)
        tensors = read_data(file, header, label)
    found = {name: _read(name, tensors, label) for name in tensors if not name.endswith(".scale") or name[:-6] not in tensors}
    policy = Policy(config.without_rounding() if dequantize else config, device=device)
    policy.load_state_dict(found, strict=True)
    policy.trained_updates = _counter(header.metadata, UPDATES_KEY, label)
    policy.trained_frames = _counter(header.metadata, FRAMES_KEY, label)
    policy.notes = header.metadata.get(NOTES_KEY)
    if policy.notes is not None:
        check_sum(header.metadata, NOTES_SUM, policy.notes.encode("utf-8", "surrogatepass"), f"{label}: {NOTES_KEY}")
    return policy


# ---- writing -------------------------------------------------------------------------------------------------


def _bytes(value: Tensor) -> bytes:
    """The numbers as they lie in memory, without NumPy."""
    flat = value.contiguous().reshape(-1)
    raw = bytearray(flat.numel() * flat.element_size())
    if raw:
        torch.frombuffer(raw, dtype=flat.dtype).copy_(flat)
    return bytes(raw)


def _scale(most: Tensor) -> Tensor:
    """most / 127, rounded up to 16 significant bits."""
    bits = (most / 127.0).view(torch.int32)
    return ((bits + 0xFF) & ~0xFF).view(torch.float32).clamp(min=SCALE_LEAST)


def _write(name: str, value: Tensor, dtype: str) -> Dict[str, Array]:
    """One tensor as a file has it; of I8 the scales, too."""
    shape = tuple(value.shape)
    if dtype in ("F32", "F64"):
        return {name: Array(dtype, shape, _bytes(value.to(_TORCH[dtype])))}
    value = value.to(torch.float32)
    if dtype == "BF16":
        near = torch.where(value.abs() < 2.0**-50, torch.zeros_like(value), value.to(torch.bfloat16).to(torch.float32))
        return {name: Array(dtype, shape, _bytes((near.view(torch.int32) >> 16).to(torch.int16)))}
    scale = _scale(value.abs().amax(1))
    matrix = torch.round(value / scale.unsqueeze(1)).to(torch.int8)
    scale = torch.where((matrix == 0).all(1), torch.ones_like(scale), scale)  # that of a row of zeros
    return {name: Array("I8", shape, _bytes(matrix)), name + ".scale": Array("F32", shape[:1], _bytes(scale))}


def _metadata(policy: Policy) -> Dict[str, str]:
    text = policy.config.to_text()
    made = {FORMAT_KEY: "1", MODEL_KEY: text, SUM_KEY: hexadecimal(xxh64(text.encode()))}
    for key, count in ((UPDATES_KEY, policy.trained_updates), (FRAMES_KEY, policy.trained_frames)):
        if type(count) is not int or not 0 <= count < 1 << 64:
            raise ValueError(f"{key.split('.')[1]} is {count!r}, must be a whole number of 64 bits")
        made[key] = str(count)
    if policy.notes is not None:
        notes = policy.notes.encode()
        if len(notes) > NOTES_MOST:
            raise ValueError(f"notes have {len(notes)} bytes, at most {NOTES_MOST} are allowed")
        made.update({NOTES_KEY: policy.notes, NOTES_SUM: hexadecimal(xxh64(notes))})
    return made


def save(policy: Policy, path: PathLike) -> None:
    """Writes a weights file, to the byte as the library writes it: the old file or the new one, never half.

    Its type is that of the configuration, whatever the parameters were turned into meanwhile. Weights that are not finite are
    refused. notes, trained_updates and trained_frames go along; the calibration of a quantised policy does not.
    """
    tensors: Dict[str, Array] = {}
    for name, value in policy.state_dict().items():
        value = value.detach().cpu()
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f'tensor "{name}" is not finite')
        tensors.update(_write(name, value, stored_type(policy.config, name)))
    replace(path, to_bytes(tensors, _metadata(policy)))
