# SPDX-License-Identifier: Apache-2.0
#
# torch.py - PyTorch's door, imported on demand: Linear stands where torch.nn.Linear stood, over the operation rooftile::linear,
# which torch.compile, CUDA graphs and FlopCounterMode know. Tensors are used where they lie, on PyTorch's current stream, and y
# and workspaces come from its allocator, which knows streams and captures.
import atexit
import functools
import glob
import itertools
import math
import os
import weakref

import torch
from torch.utils.flop_counter import register_flop_formula

from . import _abi, _objects
from ._tensor import Tensor

_T = _abi.Type
_TYPES = {torch.float32: _T.F32, torch.float16: _T.F16, torch.bfloat16: _T.BF16, torch.uint8: _T.U8}
_DTYPES = {type: dtype for dtype, type in _TYPES.items()}


def _tensor(t, what):
    if t.dtype not in _TYPES:
        raise TypeError(f"{what} is {t.dtype}; a layer takes float32, float16 and bfloat16")
    return Tensor(t, t.data_ptr(), tuple(t.shape), t.stride(), _TYPES[t.dtype], str(t.device), True)


def _use_nvrtc_of_torch():
    """The NVRTC among PyTorch's wheels compiles kernels, unless RFT_NVRTC names another or there is none."""
    wheels = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia", "*", "lib", "libnvrtc.so.1[23]")
    found = sorted(glob.glob(wheels))
    if found:
        os.environ.setdefault("RFT_NVRTC", found[-1])


@functools.lru_cache(maxsize=None)
def shared_context(device):
    """The context of layers that are given none, one a device ("cpu" or "cuda:N"), open until the program ends. On the CPU it has
    as many threads as PyTorch when it is made."""
    if device == "cpu":
        made = _objects.Context(device, threads=torch.get_num_threads())
    else:
        _use_nvrtc_of_torch()
        made = _objects.Context(device)
    atexit.register(_close, made)
    return made


def _close(context):
    if context.device != "cpu":
        torch.cuda.synchronize(context.device)
    context.close()


_layers, _numbers = weakref.WeakValueDictionary(), itertools.count(1)


class _Layer(_objects.Linear):
    """What a number names in rooftile::linear: packed, never changed, and shared by copies of its module."""

    def __init__(self, weight, bias, context, m_max, y, **options):
        self.device = weight.device
        bias = None if bias is None else _tensor(bias.detach().clone(), "bias")
        if weight.is_cuda:
            torch.cuda.current_stream(weight.device).synchronize()  # packing reads W on a stream of its own
        super().__init__(context, _tensor(weight.detach(), "weight"), bias, m_max=m_max, y=_TYPES[y or weight.dtype], **options)
        if len(self.plan.operands) > len(self.bias):
            self.close()
            raise ValueError("an operation of tail reads an operand, which a module has no place for")
        self.k, self.columns = self.weight.k, self.plan.columns
        self.x_dtype, self.y_dtype = _DTYPES[self.plan.x], _DTYPES[self.plan.y]
        self.number = next(_numbers)
        _layers[self.number] = self

    def __deepcopy__(self, _):
        return self

    def __del__(self):
        if self.device.type == "cuda" and self.weight.handle:  # plans are freed behind their runs alone
            torch.cuda.synchronize(self.device)

    def check(self, x):
        if x.dtype != self.x_dtype:
            raise TypeError(f"x is {x.dtype}, and the layer takes {self.x_dtype}")
        if x.device != self.device and x.device.type != "meta":
            raise ValueError(f"x lies on {x.device}, and the layer on {self.device}")
        if x.ndim == 0 or x.shape[-1] != self.k:
            raise ValueError(f"x has the shape {tuple(x.shape)}, and the layer needs (..., {self.k})")

    def empty(self, x):
        return x.new_empty((*x.shape[:-1], self.columns), dtype=self.y_dtype)

    def forward(self, x):
        """Any number of rows, m_max at a time."""
        self.check(x)
        y = self.empty(x)
        m = math.prod(x.shape[:-1])
        rows_x, rows_y = _rows(x.reshape(m, self.k)), y.view(m, self.columns)
        for first in range(0, m, self.plan.m_max):
            part = slice(first, first + self.plan.m_max)
            self._enqueue(rows_x[part], rows_y[part])
        return y

    def _enqueue(self, x, y):
        if self.device.type == "cpu":
            return self(_tensor(x, "x"), _tensor(y, "y"))
        stream = torch.cuda.current_stream(self.device).cuda_stream
        workspace = x.new_empty(self.plan.workspace_bytes, dtype=torch.uint8)
        return self(_tensor(x, "x"), _tensor(y, "y"), stream=stream, workspace=_tensor(workspace, "workspace"))


def _rows(x):
    """x[m][k], copied only where its rows overlap, a row is not contiguous, or a GPU's fast kernels want 16 bytes' alignment."""
    (m, k), size = x.shape, x.element_size()
    fits = (k <= 1 or x.stride(1) == 1) and (m <= 1 or x.stride(0) >= k)
    if fits and x.is_cuda and k * size % 16 == 0:  # else a copy has odd rows too
        fits = x.data_ptr() % 16 == 0 and (m <= 1 or x.stride(0) * size % 16 == 0)
    return x if fits else x.clone(memory_format=torch.contiguous_format)


def _layer(number):
    layer = _layers.get(number)
    if layer is None:
        raise RuntimeError(f"rooftile::linear: layer {number} is not in this process, or its module has gone")
    return layer


@torch.library.custom_op("rooftile::linear", mutates_args=())
def linear(x: torch.Tensor, layer: int) -> torch.Tensor:
    """epilogue(x W^T) by the layer of that number, Linear.number."""
    return _layer(layer).forward(x)


@linear.register_fake
def _(x, layer):
    packed = _layer(layer)
    packed.check(x)
    return packed.empty(x)


@register_flop_formula(torch.ops.rooftile.linear)
def _linear_flops(x_shape, layer, *_, **__):
    return 2 * math.prod(x_shape) * _layer(layer).weight.n


class Linear(torch.nn.Module):
    """act(x W^T + bias) without gradients, with weight and bias as they are now: later changes of those tensors are not seen.
    tail: operations behind the bias that read no operand, such as [op(Epi.GELU)]; y: dtype of the result, else the weight's;
    m_max: rows of one run, more are taken in turn. Other options are those of rooftile.Linear."""

    def __init__(self, weight, bias=None, context=None, m_max=2048, y=None, tail=(), **options):
        super().__init__()
        layer = _Layer(weight, bias, context or shared_context(str(weight.device)), m_max, y, tail=tail, **options)
        self._layer, self.number = layer, layer.number
        self.in_features, self.out_features = layer.k, layer.columns

    @classmethod
    def from_torch(cls, module, **options):
        return cls(module.weight, module.bias, **options)

    def forward(self, x):
        if x.requires_grad and torch.is_grad_enabled():
            raise RuntimeError("x requires a gradient, and rooftile.torch.Linear has none: call it under torch.no_grad()")
        return linear(x, self.number)

    def explain(self, m):
        """Why each kernel was taken or refused at this m."""
        return self._layer.plan.explain(m)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bool(self._layer.bias)}"
