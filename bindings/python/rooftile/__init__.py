# SPDX-License-Identifier: Apache-2.0
#
# rooftile - linear layers of language models from Python, on numpy and DLPack arrays without a copy; ctypes over librooftile.so.
from ._abi import FLAGS, Compute, Epi, Order, Status, Type
from ._library import (ArgumentError, CompileError, DeviceError, FileError, LayoutError, NoMemoryError, RooftileError,
                       UnsupportedError)
from ._objects import Context, Linear, Plan, Weight, op

__all__ = ["ArgumentError", "CompileError", "Compute", "Context", "DeviceError", "Epi", "FLAGS", "FileError", "LayoutError",
           "Linear", "NoMemoryError", "Order", "Plan", "RooftileError", "Status", "Type", "UnsupportedError", "Weight", "op"]
