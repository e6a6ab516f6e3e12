# SPDX-License-Identifier: Apache-2.0
#
# _library.py - finds and loads librooftile.so once, and turns a failed call into an exception with the library's own sentence.
import ctypes as c
import functools
import os

from . import _abi


class RooftileError(RuntimeError):
    """A call that failed: status is a rooftile.Status, native the code of the layer below."""

    def __init__(self, message, status, native=0):
        super().__init__(message)
        self.status, self.native = status, native


class ArgumentError(RooftileError, ValueError):
    pass


class UnsupportedError(RooftileError, NotImplementedError):
    pass


class NoMemoryError(RooftileError, MemoryError):
    pass


class LayoutError(RooftileError):
    pass


class DeviceError(RooftileError):
    pass


class CompileError(RooftileError):
    pass


class FileError(RooftileError, OSError):
    pass


_S = _abi.Status
_ERRORS = {_S.E_ARG: ArgumentError, _S.E_UNSUPPORTED: UnsupportedError, _S.E_NOMEM: NoMemoryError, _S.E_LAYOUT: LayoutError,
           _S.E_DEVICE: DeviceError, _S.E_JIT: CompileError, _S.E_IO: FileError}


@functools.lru_cache(maxsize=None)
def library():
    """The file that RFT_LIBRARY names, else the one that the loader finds."""
    path = os.environ.get("RFT_LIBRARY") or "librooftile.so.0"
    try:
        lib = c.CDLL(path)
    except OSError as why:
        raise ImportError(f"librooftile cannot be loaded ({why}); RFT_LIBRARY may name its file") from why
    for name, (result, arguments) in _abi.PROTOTYPES.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    if lib.rft_version() // 10000 != 0:
        raise ImportError(f"{path} is of version {lib.rft_version()}, and this package needs 0.x")
    return lib


def call(name, *args):
    error = _abi.Error()
    status = getattr(library(), name)(*args, c.byref(error))
    if status != _S.OK:
        kind = _ERRORS.get(status, RooftileError)
        raise kind(error.message.decode("utf-8", "replace"), _S(status), error.native)
