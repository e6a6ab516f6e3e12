#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# numpy_layer.py - one layer with bias and SiLU on numpy arrays, W in f32 and in 8 bits with a scale a row, compared with numpy.
#     PYTHONPATH=bindings/python RFT_LIBRARY=build/librooftile.so python3 examples/numpy_layer.py
# Exit status 0: both agree; 1: one does not; 77: there is no numpy here.
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)

import rooftile as rt
from rooftile import Epi, Type, op

M, N, K = 4, 1000, 512


def compare(what, plan, x, w, bias):
    product = x @ w.T + bias
    got = plan.run(x, np.empty((M, N), np.float32), [bias])
    error = np.abs(got - product / (1 + np.exp(-product))).max()
    print(f"{what:4s} {plan.info(M).kernel.decode():36s} {plan.weight.bytes:8d} bytes of W, largest difference {error:.1e}")
    return error < 1e-3


def main():
    random = np.random.default_rng(1)
    w = random.standard_normal((N, K), np.float32) / K**0.5
    x, bias = random.standard_normal((M, K), np.float32), random.standard_normal(N, np.float32)
    scale = np.abs(w).max(axis=1) / 127
    codes = np.rint(w / scale[:, None]).astype(np.int8)
    tail = [op(Epi.BIAS, Type.F32), op(Epi.SILU)]
    with rt.Context("cpu") as ctx:
        floats = ctx.plan(ctx.weight(w), M, epilogue=tail)
        whole = ctx.plan(ctx.weight(codes, type=Type.I8, shape=(N, K), scale=scale), M, epilogue=tail)
        good = compare("f32", floats, x, w, bias), compare("int8", whole, x, codes * scale[:, None], bias)
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
