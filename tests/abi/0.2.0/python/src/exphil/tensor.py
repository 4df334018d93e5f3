"""Tensors of a model for other libraries in the same process: DLPack, without a copy."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Optional, Tuple

import numpy as np

from ._native import ffi, lib
from .arrays import Array, view
from .handle import Slots, c_text
from .records import TensorInfo

if TYPE_CHECKING:
    from .model import Model

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

# A capsule keeps the pointer to its name: these live as long as the module.
_PLAIN = ctypes.c_char_p(b"dltensor")
_VERSIONED = ctypes.c_char_p(b"dltensor_versioned")
_TYPES = {64: np.dtype(np.float64), 32: np.dtype(np.float32)}


class Tensor(Slots):
    """One tensor of a model, as the model holds it: treat it as read-only. Keeps the model's memory alive.

    torch.from_dlpack and numpy.from_dlpack take it, and so does numpy.asarray on the CPU.
    """

    __slots__ = ("info", "_model", "_core")

    def __init__(self, model: "Model", info: TensorInfo) -> None:
        self.info = info
        self._model = model._handle
        self._core = model._core

    @property
    def name(self) -> str:
        """Name in the weights file."""
        return self.info.name

    @property
    def shape(self) -> Tuple[int, ...]:
        """Dimensions, row-major."""
        return self.info.shape

    def __repr__(self) -> str:
        return f"Tensor({self.name!r}, shape={self.shape})"

    def _export(self, versioned: bool) -> Any:
        """A native tensor that its deleter ends."""
        kind = "struct DLManagedTensorVersioned *" if versioned else "struct DLManagedTensor *"
        export = lib.exphil_model_tensor_to_dlpack_versioned if versioned else lib.exphil_model_tensor_to_dlpack
        made = ffi.new(f"{kind} *")
        self._core.call(export, self._model, c_text(self.name, "name"), made)
        return made[0]

    def _owned(self) -> Any:
        """The same, ended when nobody refers to it."""
        made = self._export(False)
        return ffi.gc(made, made.deleter)

    def __dlpack_device__(self) -> Tuple[int, int]:
        """DLPack's device type (1 the CPU, 2 CUDA) and its number."""
        owner = self._owned()
        return int(owner.tensor.device_type), int(owner.tensor.device_id)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """A capsule with the tensor. Consumers that ask for version 1 get a versioned one, marked read-only.

        The weights stand still, so that stream needs no waiting. No copy to another device is made.
        """
        device = self.__dlpack_device__()
        if dl_device is not None and tuple(dl_device) != device:
            raise BufferError(f"the tensor is on device {device} and cannot be given for {tuple(dl_device)}")
        if copy:
            if device[0] != 1:
                raise BufferError("a copy can be made on the CPU only")
            duplicate = np.array(self)
            return duplicate.__dlpack__()
        versioned = max_version is not None and tuple(max_version) >= (1, 0)
        address = int(ffi.cast("uintptr_t", self._export(versioned)))
        end = int(lib.exphil_py_capsule_end(int(versioned)))
        return _api.PyCapsule_New(address, _VERSIONED if versioned else _PLAIN, end)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        owner = self._owned()
        tensor = owner.tensor
        if tensor.device_type != 1:
            raise TypeError("the tensor is not on the CPU; Model.tensor_get copies it")
        start = ffi.cast("char *", tensor.data) + tensor.offset_bytes
        array = view(owner, start, self.shape, _TYPES[tensor.type_bits])
        wanted = np.dtype(array.dtype if dtype is None else dtype)
        if wanted == array.dtype:
            return array.copy() if copy else array
        return array.astype(wanted)


def capsule_tensor(capsule: Any) -> Any:
    """The native tensor inside a capsule that nobody has taken; it belongs to the capsule."""
    return ffi.cast("struct DLManagedTensor *", _api.PyCapsule_GetPointer(capsule, _PLAIN))
