"""The model: making, loading, saving, its tensors, rounding it to fewer bits, and how well it predicts a dataset."""
from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ._native import ffi, lib
from .arrays import Array, number, pointer as address_of, take
from .codes import Code, code
from .constants import Activation, DataType, Heads, Mode, Value
from .context import Context, context_or_default
from .dataset import Dataset, dataset_pointer
from .handle import Config, Handle, Path, c_text, expect, keep_raised, path_bytes
from .losses import HeadLoss, losses_pointer
from .records import Comparison, ModelInfo, Report, TensorInfo
from .spec import Spec, empty_spec, read_spec, spec_pointer
from .structs import empty, read, write
from .tensor import Tensor, capsule_tensor
from .told import Condition, integers, read_told, told

_DTYPES: Dict[int, "np.dtype[Any]"] = {int(DataType.F32): np.dtype(np.float32), int(DataType.F64): np.dtype(np.float64)}


@dataclass(frozen=True)
class Examined:
    """A frame of a dataset and what a model says to it; its arrays are its own. recorded, before and likely are values of the
    heads: what was to be predicted, what was recorded a frame before it, what is most likely."""

    frame: int
    episode: int
    row: int
    delay_frames: int
    floats: Array
    ids: Array
    recorded: Array
    before: Array
    likely: Array
    log_probability: Array
    logits: Array


@ffi.def_extern(error=1, onerror=keep_raised)  # type: ignore[misc]
def exphil_py_examine(user: Any, frame: Any) -> int:
    """Gives one frame to the host."""
    see, (floats, ids, heads, logits) = ffi.from_handle(user)

    def copy(pointer: Any, count: int, dtype: Any) -> Array:
        return np.frombuffer(ffi.buffer(pointer, count * np.dtype(dtype).itemsize), dtype).copy() if count else np.empty(0, dtype)

    see(Examined(
        frame.frame, frame.episode, frame.row, frame.delay_frames, copy(frame.floats, floats, np.float32),
        copy(frame.ids, ids, np.int32), copy(frame.recorded, heads, np.int32), copy(frame.before, heads, np.int32),
        copy(frame.likely, heads, np.int32), copy(frame.log_probability, heads, np.float64),
        copy(frame.logits, logits, np.float64)))
    return 0


class Model(Handle):
    """A policy. Model(...) makes one with random weights, Model.load reads one. May be shared by threads.

    spec says what it sees and does (None: Melee). blocks is a pattern of the words that exphil.h has at exphil_model_config:
    "mamba*2", "(lstm ffn)*3". hidden is the width, seed that of the first weights. An action decided on frame t acts on
    frame t + delay_frames; with delays it is one policy for several, which is told which of them holds, as it is told the
    values of its conditions. 0 and None stand for the library's defaults throughout.
    """

    __slots__ = ()

    def __init__(
        self,
        spec: Optional[Spec] = None,
        *,
        context: Optional[Context] = None,
        blocks: Optional[str] = None,
        seed: int = 0,
        hidden: int = 0,
        head_width: int = 0,
        mamba_states: int = 0,
        mamba_expand: int = 0,
        mamba_taps: int = 0,
        mamba_rank: int = 0,
        attention_heads: int = 0,
        attention_dim: int = 0,
        attention_window_frames: int = 0,
        ffn_expand: int = 0,
        window_frames: int = 0,
        delay_frames: int = 0,
        no_previous_action: bool = False,
        mode: Code = Mode.CARRY,
        heads: Code = Heads.INDEPENDENT,
        type: Code = DataType.F32,
        neutral_start: bool = False,
        conditions: Optional[Sequence[Condition]] = None,
        delays: Optional[Sequence[int]] = None,
        value: Code = Value.NONE,
        norm_epsilon: float = 0.0,
        head_units: int = 0,
        no_final_norm: bool = False,
        head_layers: int = 0,
        head_activation: Code = Activation.SILU,
        head_last: bool = False,
        no_head_past: bool = False,
        no_head_trunk: bool = False,
        input_width: int = 0,
    ) -> None:
        config = Config("exphil_model_config").set(
            blocks=blocks,
            seed=seed,
            hidden=hidden,
            head_width=head_width,
            mamba_states=mamba_states,
            mamba_expand=mamba_expand,
            mamba_taps=mamba_taps,
            mamba_rank=mamba_rank,
            attention_heads=attention_heads,
            attention_dim=attention_dim,
            attention_window_frames=attention_window_frames,
            ffn_expand=ffn_expand,
            window_frames=window_frames,
            delay_frames=delay_frames,
            no_previous_action=no_previous_action,
            mode=code(Mode, mode, "mode"),
            heads=code(Heads, heads, "heads"),
            type=code(DataType, type, "type"),
            neutral_start=neutral_start,
            value=code(Value, value, "value"),
            norm_epsilon=norm_epsilon,
            head_units=head_units,
            no_final_norm=no_final_norm,
            head_layers=head_layers,
            head_activation=code(Activation, head_activation, "head_activation"),
            head_last=head_last,
            no_head_past=no_head_past,
            no_head_trunk=no_head_trunk,
            input_width=input_width,
        )
        told(config, conditions, delays).set(spec=spec_pointer(config, spec))
        self._make(context, lib.exphil_model_create, config)

    def _make(self, context: Optional[Context], function: Any, *arguments: Any) -> None:
        parent = context_or_default(context)
        self._core = parent._core
        self._handle = self._core.create(function, parent._handle, *arguments)

    @classmethod
    def load(cls, path: Path, context: Optional[Context] = None) -> "Model":
        """Reads a weights file (safetensors); every byte is checked before anything is built."""
        made = cls.__new__(cls)
        made._make(context, lib.exphil_model_load, path_bytes(path))
        return made

    @classmethod
    def load_memory(cls, data: Any, context: Optional[Context] = None) -> "Model":
        """The same from bytes, such as to_bytes gave."""
        made = cls.__new__(cls)
        buffer = ffi.from_buffer(data)
        made._make(context, lib.exphil_model_load_memory, buffer, len(buffer))
        return made

    def _child(self, handle: Any) -> "Model":
        made = Model.__new__(Model)
        made._core, made._handle = self._core, handle
        return made

    def save(self, path: Path) -> None:
        """Writes the weights as safetensors; the old file or the new one, never half."""
        self._core.call(lib.exphil_model_save, self._handle, path_bytes(path))

    def to_bytes(self) -> bytes:
        """The weights file as bytes."""
        with tempfile.TemporaryDirectory(prefix="exphil") as folder:
            path = os.path.join(folder, "model.safetensors")
            self.save(path)
            with open(path, "rb") as file:
                return file.read()

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickles the weights; where they are unpickled they go onto the default context."""
        return Model.load_memory, (self.to_bytes(),)

    def _about(self) -> str:
        info = self.info
        return f"{info.blocks}, hidden {info.hidden}, {info.parameter_count} parameters, {info.layout}"

    @property
    def info(self) -> ModelInfo:
        """Sizes, hashes and settings."""
        info = empty(ModelInfo)
        self._core.call(lib.exphil_model_query, self._handle, info)
        return read(ModelInfo, info)

    @property
    def spec(self) -> Spec:
        """What the model sees and does."""
        spec = empty_spec()
        self._core.call(lib.exphil_model_spec, self._handle, spec)
        return read_spec(spec)

    # ---- tensors ----

    def tensors(self) -> List[TensorInfo]:
        """All tensors in the order of the file."""
        found = []
        for index in range(self.info.tensor_count):
            info = empty(TensorInfo)
            self._core.call(lib.exphil_model_tensor_info, self._handle, index, info)
            found.append(read(TensorInfo, info))
        return found

    def _tensor_info(self, name: str) -> TensorInfo:
        c_text(name, "name")
        for info in self.tensors():
            if info.name == name:
                return info
        raise KeyError(f'the model has no tensor "{name}"')

    def tensor(self, name: str) -> Tensor:
        """A tensor without a copy, for DLPack and NumPy. While one is in use, tensor_set is refused."""
        return Tensor(self, self._tensor_info(name))

    def tensor_get(self, name: str) -> Array:
        """A copy of a tensor. Quantised ones come as float32, exactly as they were rounded."""
        info = self._tensor_info(name)
        array: Array = np.empty(info.shape, _DTYPES[info.type])
        target = ffi.from_buffer("char[]", array.reshape(-1).view(np.uint8), require_writable=True)
        self._core.call(lib.exphil_model_tensor_get, self._handle, c_text(name, "name"), target, array.nbytes)
        return array

    def tensor_set(self, name: str, value: Any) -> None:
        """Copies a tensor in, from anything that speaks DLPack or that NumPy takes. The model must not be in use."""
        if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
            capsule = value.__dlpack__()
            source = capsule_tensor(capsule)
            self._core.call(lib.exphil_model_tensor_from_dlpack, self._handle, c_text(name, "name"), source)
            return
        info = self._tensor_info(name)
        array = take(value, _DTYPES[info.type], info.shape, name)
        data = address_of("char", array)
        self._core.call(lib.exphil_model_tensor_set, self._handle, c_text(name, "name"), data, array.nbytes)

    # ---- what it becomes ----

    def with_value(self, value: Code = Value.DETACHED, seed: int = 0) -> "Model":
        """A copy with a new value head, "detached" or "shared", in the place of one that there may be: it decides as this model
        does, and its value is 0. The weights below the value are drawn from seed."""
        return self._child(self._core.create(
            lib.exphil_model_with_value, self._handle, code(Value, value, "value"), number(seed, "seed", "uint64_t")))

    def prepare(self) -> None:
        """Makes what a session wants of a model beside its weights, so that Session.adopt finds it there. Once for a model, from
        any thread."""
        self._core.call(lib.exphil_model_prepare, self._handle)

    def quantize(self, type: Code = DataType.I8) -> "Model":
        """A new model that computes with "i8" or "bf16" weights. It plays, saves and loads, but trains no more."""
        return self._child(self._core.create(lib.exphil_model_quantize, self._handle, code(DataType, type, "type")))

    def compare(self, reference: "Model", dataset: Dataset, batch: int = 0) -> Comparison:
        """How far this model's decisions are from the reference's over every frame of a dataset."""
        expect(reference, Model, "reference")
        expect(dataset, Dataset, "dataset")
        result = empty(Comparison)
        self._core.call(
            lib.exphil_model_compare, reference._handle, self._handle, dataset._handle, number(batch, "batch"), result
        )
        return read(Comparison, result)

    def calibration_set(self, comparison: Comparison) -> None:
        """Keeps a comparison with a quantised model; save writes it to the file."""
        self._core.call(lib.exphil_model_calibration_set, self._handle, write(comparison))

    def calibration_get(self) -> Comparison:
        """The comparison that is kept; StateError where there is none."""
        result = empty(Comparison)
        self._core.call(lib.exphil_model_calibration_get, self._handle, result)
        return read(Comparison, result)

    @property
    def notes(self) -> str:
        """The text that the weights carry with them, by convention JSON: what they were trained on; "" where there is none.
        May be set while nothing else uses the model."""
        text = ffi.new("const char **")
        self._core.call(lib.exphil_model_notes, self._handle, text)
        return str(ffi.string(text[0]).decode("utf-8"))

    @notes.setter
    def notes(self, text: str) -> None:
        self._core.call(lib.exphil_model_notes_set, self._handle, c_text(text, "notes"))

    # ---- predicting, exporting ----

    def evaluate(
        self,
        dataset: Dataset,
        frequencies: Optional[Dataset] = None,
        losses: Optional[Sequence[HeadLoss]] = None,
        batch: int = 0,
        alone_most_frames: int = 0,
        conditions: Optional[Sequence[int]] = None,
        delay_frames: Optional[int] = None,
    ) -> Report:
        """How well the model predicts a dataset. The baselines are those of frequencies (None: of dataset).

        alone_most_frames: measure on at least so many frames what it does with its own decisions as past actions.
        conditions: values for all episodes, in the place of the dataset's. delay_frames: this one of several delays.
        """
        expect(dataset, Dataset, "dataset")
        result = empty(Report)
        result.alone_most_frames = number(alone_most_frames, "alone_most_frames")
        if conditions is None and delay_frames is None:
            kept: List[Any] = []
            self._core.call(
                lib.exphil_evaluate,
                self._handle,
                dataset._handle,
                dataset_pointer(frequencies, "frequencies"),
                losses_pointer(losses, self.spec.heads, kept),
                number(batch, "batch"),
                result,
            )
            return read(Report, result)
        how = Config("exphil_evaluation")
        if conditions is not None:
            how.set(conditions=integers(how, conditions, "conditions"), condition_count=len(conditions))
        if delay_frames is not None:
            how.set(delay_frames=integers(how, [delay_frames], "delay_frames"))
        how.set(
            frequencies=dataset_pointer(frequencies, "frequencies"),
            losses=losses_pointer(losses, self.spec.heads, how.kept),
            batch=batch,
        )
        self._core.call(lib.exphil_evaluate_as, self._handle, dataset._handle, how, result)
        return read(Report, result)

    def examine(
        self,
        dataset: Dataset,
        see: Callable[[Examined], None],
        *,
        batch: int = 0,
        alone_most_frames: int = 0,
        conditions: Optional[Sequence[int]] = None,
        delay_frames: Optional[int] = None,
    ) -> None:
        """Shows see every frame of a dataset with what the model says to it: teacher-forced, or alone on at least
        alone_most_frames frames. Within an episode in the order of time, episodes side by side. What see raises ends it."""
        expect(dataset, Dataset, "dataset")
        spec = self.spec
        sizes = (spec.float_count, len(spec.ids), len(spec.heads), sum(head.count for head in spec.heads))
        how = Config("exphil_examination")
        user = how.keep(ffi.new_handle((see, sizes)))
        if conditions is not None:
            how.set(conditions=integers(how, conditions, "conditions"), condition_count=len(conditions))
        if delay_frames is not None:
            how.set(delay_frames=integers(how, [delay_frames], "delay_frames"))
        how.set(batch=batch, alone_most_frames=alone_most_frames)
        how.struct.see, how.struct.user = lib.exphil_py_examine, user
        self._core.call(lib.exphil_examine, self._handle, dataset._handle, how)

    def sampling(self) -> Dict[str, Any]:
        """Settings that a Prefetcher needs to feed a trainer of this model: mode, window, delays, slots, conditions."""
        config = Config("exphil_sampling")
        self._core.call(lib.exphil_model_sampling, self._handle, config)
        found = {name: getattr(config.struct, name) for name in SAMPLING}
        found["conditions"], found["delays"] = read_told(config.struct)
        return found

    def export_onnx(self, path: Path) -> None:
        """Writes the one-frame step as ONNX (doc/onnx.md); UnsupportedError names what has no form there."""
        self._core.call(lib.exphil_model_export_onnx, self._handle, path_bytes(path))


_TOLD = ("struct_size", "conditions", "delays", "condition_count", "delay_count")
SAMPLING = tuple(name for name, _ in ffi.typeof("exphil_sampling").fields if name not in _TOLD)

__all__ = ["Model"]
