#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# torch_layer.py - a rooftile layer between PyTorch's own operations, on PyTorch's tensors, stream and context, inside a CUDA
# graph and outside, compared with PyTorch. No compiler and no extension module: ctypes over librooftile.so.
#     python3 examples/torch_layer.py [build/librooftile.so]
# Exit status 0: all agree; 1: something does not; 77: there is no PyTorch or no GPU here, and it says which.
import ctypes as c
import glob
import os
import sys

BF16, BIAS, GELU = 3, 2, 4  # rft_type, rft_epi_kind
N, K, ROWS = 4096, 2048, (1, 7, 16, 200, 1024)
i32, u32, i64, ptr, size, text = c.c_int32, c.c_uint32, c.c_int64, c.c_void_p, c.c_size_t, c.c_char_p


# ---- rooftile.h: each struct that begins with its size may be shorter than the library's ----

class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("native", i32), ("message", c.c_char * 240)]


class Sized(c.Structure):
    def __init__(self, **values):
        super().__init__(struct_size=c.sizeof(self), **values)


class EpiOp(c.Structure):
    _fields_ = [("kind", c.c_int), ("type", c.c_int), ("operand", u32), ("alpha", c.c_float), ("beta", c.c_float)]


class Operand(c.Structure):
    _fields_ = [("ptr", ptr), ("ld", i64), ("batch_stride", i64)]


class WeightDesc(Sized):
    _fields_ = [("struct_size", u32), ("elem", c.c_int), ("n", i64), ("k", i64), ("ld", i64), ("batch", i64),
                ("batch_stride", i64), ("order", c.c_int), ("scale", c.c_int), ("zero", c.c_int), ("group_n", i64),
                ("group_k", i64), ("flags", u32)]


class WeightSrc(Sized):
    _fields_ = [("struct_size", u32), ("q", ptr), ("scale", ptr), ("zero", ptr), ("global_scale", ptr), ("g_idx", ptr)]


class LinearDesc(Sized):
    _fields_ = [("struct_size", u32), ("x", c.c_int), ("y", c.c_int), ("w", WeightDesc), ("x_order", c.c_int), ("m_min", i64),
                ("m_max", i64), ("batch", i64), ("n_group", i64), ("compute", c.c_int), ("x_group_k", i64),
                ("epi", c.POINTER(EpiOp)), ("n_epi", u32), ("flags", u32), ("alpha", c.c_float)]


class PlanInfo(Sized):
    _fields_ = [("struct_size", u32), ("kernel", text), ("weight_layout", c.c_uint64), ("workspace", size),
                ("workspace_align", size), ("flops", c.c_double), ("bytes", c.c_double), ("bound_seconds", c.c_double),
                ("error_c", c.c_double), ("error_eta", c.c_double), ("bound", text), ("threads", i32)]


class LinearArgs(Sized):
    _fields_ = [("struct_size", u32), ("n_operand", u32), ("m", i64), ("ldx", i64), ("ldy", i64), ("x_batch_stride", i64),
                ("y_batch_stride", i64), ("x", ptr), ("x_scale", ptr), ("weight", ptr), ("w", ptr), ("ldw", i64),
                ("w_batch_stride", i64), ("y", ptr), ("operand", c.POINTER(Operand)), ("m_device", ptr), ("group_offset", ptr),
                ("row_index", ptr), ("workspace", ptr), ("workspace_bytes", size), ("stream", ptr)]


class Rooftile:
    """The library and one context."""

    def __init__(self, path, device):
        self.lib = c.CDLL(path)
        self.lib.rft_status_name.restype = text
        self.ctx = ptr()
        self.call("rft_ctx_create", device.encode(), None, c.byref(self.ctx))

    def call(self, name, *args):
        error = Error()
        status = getattr(self.lib, name)(*args, c.byref(error))
        if status != 0:
            raise RuntimeError(f"{name}: {error.message.decode()} ({self.lib.rft_status_name(status).decode()})")

    def close(self):
        self.lib.rft_ctx_free(self.ctx)


class Layer:
    """gelu(x W^T + bias) in bf16, for 1 to m_max rows. alloc(bytes) gives memory of the device, and keeps it."""

    def __init__(self, rooftile, n, k, m_max, w, bias, alloc):
        self.rooftile, self.alloc = rooftile, alloc
        weight = WeightDesc(elem=BF16, n=n, k=k)
        ops = (EpiOp * 2)(EpiOp(BIAS, BF16, 0, 0, 0), EpiOp(GELU, 0, 0, 0, 0))
        desc = LinearDesc(x=BF16, y=BF16, w=weight, m_min=1, m_max=m_max, epi=ops, n_epi=2)
        self.plan, self.weight, self.operand = ptr(), ptr(), Operand(bias, 0, 0)
        rooftile.call("rft_plan_create", rooftile.ctx, c.byref(desc), c.byref(self.plan))
        count = size()
        rooftile.call("rft_weight_bytes", rooftile.ctx, c.byref(weight), c.byref(count))
        rooftile.call("rft_weight_pack", rooftile.ctx, c.byref(weight), c.byref(WeightSrc(q=w)), ptr(alloc(count.value)), None,
                      c.byref(self.weight))
        self.workspace = self.info(m_max).workspace
        self.room = alloc(self.workspace) if self.workspace else 0

    def info(self, m):
        info = PlanInfo()
        self.rooftile.lib.rft_plan_get_info(self.plan, i64(m), c.byref(info))
        return info

    def run(self, m, x, y, stream):
        """Enqueues on the stream and returns; x and y are addresses."""
        args = LinearArgs(n_operand=1, m=m, x=x, weight=self.weight, y=y, operand=c.pointer(self.operand), workspace=self.room,
                          workspace_bytes=self.workspace, stream=stream)
        self.rooftile.call("rft_linear_run", self.plan, c.byref(args))

    def close(self):
        self.rooftile.lib.rft_plan_free(self.plan)
        self.rooftile.lib.rft_weight_free(self.weight)


# ---- with PyTorch ----

def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def find_torch():
    try:
        import torch
    except ImportError as missing:
        skip(f"no PyTorch: {missing}")
    if not torch.cuda.is_available():
        skip(f"PyTorch {torch.__version__} finds no GPU")
    return torch


def use_torch_nvrtc(torch):
    """Kernels are compiled by the NVRTC among PyTorch's wheels, unless RFT_NVRTC names another or there is none."""
    wheels = os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia", "*", "lib", "libnvrtc.so.1[23]")
    found = sorted(glob.glob(wheels))
    if found and "RFT_NVRTC" not in os.environ:
        os.environ["RFT_NVRTC"] = found[0]


def current_context():
    context = ptr()
    assert c.CDLL("libcuda.so.1").cuCtxGetCurrent(c.byref(context)) == 0
    return context.value


class TorchLayer:
    def __init__(self, torch, rooftile, w, bias):
        self.torch, self.kept = torch, [w, bias]
        torch.cuda.synchronize()  # packing reads W on a stream of its own
        self.layer = Layer(rooftile, w.shape[0], w.shape[1], max(ROWS), w.data_ptr(), bias.data_ptr(), self.alloc)

    def alloc(self, count):
        self.kept.append(self.torch.empty(count, dtype=self.torch.uint8, device="cuda"))
        return self.kept[-1].data_ptr()

    def __call__(self, x):
        y = self.torch.empty(x.shape[0], N, dtype=x.dtype, device=x.device)
        self.layer.run(x.shape[0], x.data_ptr(), y.data_ptr(), self.torch.cuda.current_stream().cuda_stream)
        return y


def between(layer, x):
    """PyTorch's kernel, ours, PyTorch's: nothing waits but the stream."""
    return layer(x * 2).float() - 1


def expected(torch, x, w, bias):
    product = torch.nn.functional.linear((x * 2).double(), w.double(), bias.double())
    return torch.nn.functional.gelu(product).float() - 1


def compare(torch, what, m, got, want):
    """Half an ulp of bf16 of the value before 1 was taken off, and what f32 sums lose."""
    error = (got - want).abs() - (2.0**-8 * (want + 1).abs() + 1e-3)
    good = bool((error <= 0).all())
    print(f"m = {m:4d}  {what:26s} largest difference {(got - want).abs().max().item():.2e}  {'ok' if good else 'WRONG'}")
    return good


def outside_graph(torch, layer, x, want):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        side = between(layer, x)
    torch.cuda.current_stream().wait_stream(stream)
    same = between(layer, x)
    good = compare(torch, "on the current stream", x.shape[0], same, want)
    return compare(torch, "on a stream of its own", x.shape[0], side, want) and bool(torch.equal(side, same)) and good, same


def inside_graph(torch, layer, x, want, eager):
    graph, still = torch.cuda.CUDAGraph(), torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        out = between(layer, still)
    still.copy_(x)
    graph.replay()
    torch.cuda.synchronize()
    good = compare(torch, "in a graph", x.shape[0], out, want)
    if not torch.equal(out, eager):
        print("         the graph gives other bits than the same calls outside of it")
        return False
    return good


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "build", "librooftile.so")
    torch = find_torch()
    use_torch_nvrtc(torch)
    torch.manual_seed(1)
    w = torch.randn(N, K, dtype=torch.bfloat16, device="cuda") / K**0.5
    bias = torch.randn(N, dtype=torch.bfloat16, device="cuda")
    context = current_context()  # the primary one, which PyTorch has just made
    rooftile = Rooftile(path, f"cuda:{torch.cuda.current_device()}")
    layer = TorchLayer(torch, rooftile, w, bias)
    good = current_context() == context
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}; "
          f"the context of the thread is {'as it was' if good else 'ANOTHER NOW'}")
    for m in ROWS:
        x = torch.randn(m, K, dtype=torch.bfloat16, device="cuda")
        want = expected(torch, x, w, bias)
        print(f"m = {m:4d}  {layer.layer.info(m).kernel.decode()}")
        right, eager = outside_graph(torch, layer, x, want)
        good = right and inside_graph(torch, layer, x, want, eager) and good
    torch.cuda.synchronize()
    layer.layer.close()
    rooftile.close()
    still_works = torch.ones(8, device="cuda").sum().item() == 8  # the context is PyTorch's still
    print("all agree" if good and still_works else "FAILED")
    sys.exit(0 if good and still_works else 1)


if __name__ == "__main__":
    main()
