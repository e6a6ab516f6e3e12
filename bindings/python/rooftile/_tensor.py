# SPDX-License-Identifier: Apache-2.0
#
# _tensor.py - any array as address, shape, strides, type and device, without a copy: numpy by its interface, all else (PyTorch, CuPy,
# JAX) by DLPack. What the library could not take is refused here with the array's name.
import ctypes as c

from . import _abi

_T = _abi.Type
_NUMPY = {"float32": _T.F32, "float16": _T.F16, "bfloat16": _T.BF16, "int8": _T.I8, "uint8": _T.U8, "float8_e4m3fn": _T.E4M3,
          "float8_e5m2": _T.E5M2, "float8_e8m0fnu": _T.E8M0, "int32": _T.I32}
# DLPack's code (0 int, 1 uint, 2 float, 4 bfloat, 10 and up: floats of 8 bits) and bits.
_DLPACK = {(2, 32): _T.F32, (2, 16): _T.F16, (4, 16): _T.BF16, (0, 8): _T.I8, (1, 8): _T.U8, (0, 32): _T.I32, (10, 8): _T.E4M3,
           (12, 8): _T.E5M2, (14, 8): _T.E8M0}
_CPU, _CUDA, _CUDA_HOST = 1, 2, 3


class _DLTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int), ("device_id", c.c_int), ("ndim", c.c_int), ("code", c.c_uint8),
                ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
                ("byte_offset", c.c_uint64)]


_pointer = c.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]


class Tensor:
    """address, shape, strides (in elements), type, device ("cpu" or "cuda:N") and whether it may be written. `owner` keeps it."""

    def __init__(self, owner, address, shape, strides, type, device, writable):
        self.owner, self.address, self.shape, self.strides = owner, address, shape, strides
        self.type, self.device, self.writable = type, device, writable


def _of_numpy(a, what):
    name = a.dtype.name
    if name not in _NUMPY or not a.dtype.isnative:
        raise TypeError(f"{what} is of {a.dtype}, which rooftile has no type for")
    if any(s % a.itemsize for s in a.strides):
        raise ValueError(f"{what} has strides of {a.strides} bytes, which are no whole elements of {a.itemsize}")
    strides = tuple(s // a.itemsize for s in a.strides)
    return Tensor(a, a.ctypes.data, a.shape, strides, _NUMPY[name], "cpu", a.flags.writeable)


def _compact(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _of_dlpack(a, what, stream):
    kind, index = a.__dlpack_device__()
    if kind not in (_CPU, _CUDA, _CUDA_HOST):
        raise ValueError(f"{what} lies on a device of DLPack's kind {kind}; rooftile takes host memory and CUDA's")
    # The producer lets our stream wait for its own; 1 is CUDA's default stream.
    capsule = a.__dlpack__(stream=stream or 1) if kind == _CUDA else a.__dlpack__()
    # An unversioned capsule; it stays unconsumed, so that the producer's own destructor frees it with `owner`.
    t = _DLTensor.from_address(_pointer(capsule, b"dltensor"))
    if t.lanes != 1 or (t.code, t.bits) not in _DLPACK:
        raise TypeError(f"{what} is of DLPack's type (code {t.code}, {t.bits} bits, {t.lanes} lanes), which rooftile has no type for")
    shape = tuple(t.shape[:t.ndim])
    strides = tuple(t.strides[:t.ndim]) if t.strides else _compact(shape)
    device = f"cuda:{index}" if kind == _CUDA else "cpu"
    return Tensor((a, capsule), (t.data or 0) + t.byte_offset, shape, strides, _DLPACK[t.code, t.bits], device, True)


def tensor(a, what, stream=None):
    if isinstance(a, Tensor):
        return a
    if type(a).__module__ == "numpy" and hasattr(a, "__array_interface__"):
        return _of_numpy(a, what)
    if hasattr(a, "__dlpack__"):
        return _of_dlpack(a, what, stream)
    raise TypeError(f"{what} is {type(a).__name__}: neither a numpy array nor one with __dlpack__")


def rows(t, what, columns):
    """The leading dimension of [m][columns]; the last index must be contiguous."""
    if len(t.shape) != 2 or t.shape[1] != columns:
        raise ValueError(f"{what} has the shape {t.shape}, and (m, {columns}) is needed")
    if t.shape[0] > 0 and t.shape[1] > 1 and t.strides[1] != 1:  # numpy's strides of nothing are 0
        raise ValueError(f"{what} has strides {t.strides}; its last index must be contiguous")
    if t.shape[0] > 1 and t.strides[0] < max(columns, 1):
        raise ValueError(f"{what} has strides {t.strides}: its rows overlap or run backwards")
    return t.strides[0] if t.shape[0] > 1 else 0


def matrices(t, what, columns, batch):
    """The leading dimension and the batch stride of [batch][m][columns]; one batch may be [m][columns]."""
    if batch == 1 and len(t.shape) != 3:
        return rows(t, what, columns), 0
    if len(t.shape) != 3 or t.shape[0] != batch:
        raise ValueError(f"{what} has the shape {t.shape}, and ({batch}, m, {columns}) is needed")
    if batch > 1 and t.strides[0] <= 0 and t.shape[1] > 0 and columns > 0:  # 0 would mean dense
        raise ValueError(f"{what} has strides {t.strides}: its batches overlap or run backwards")
    one = Tensor(t.owner, t.address, t.shape[1:], t.strides[1:], t.type, t.device, t.writable)
    return rows(one, what, columns), t.strides[0] if batch > 1 else 0


def need_type(t, what, type):
    if t.type != type:
        raise TypeError(f"{what} is {t.type.name.lower()}, and the plan takes {_abi.Type(type).name.lower()}")


def need_device(t, what, device):
    if t.device != device:
        raise ValueError(f"{what} lies on {t.device}, and the context is {device}")
