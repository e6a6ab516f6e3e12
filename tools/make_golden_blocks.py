#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/golden_blocks.bin: random GGUF blocks of every decoded type with their f32 values.

The values come from the `gguf` package (pip install gguf numpy), an implementation that shares nothing with ours.
File, little-endian: records of {u32 type number, u32 blocks, u32 block bytes, u32 block elements, blocks, f32 values}.
Scales are drawn so that every value is finite. Run from the repository root; the seed is fixed.
"""
import struct

import numpy
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T, quants

# type -> byte offsets of its f16 scales
F16_SCALES = {
    T.BF16: [], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82], T.Q3_K: [108],
    T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0], T.MXFP4: [], T.NVFP4: [],
}


def make_blocks(rng, kind, count, size):
    blocks = rng.integers(0, 256, (count, size), dtype=numpy.uint8)
    for at in F16_SCALES[kind]:
        scale = rng.normal(0, 0.1, count).astype("<f2")
        blocks[:, at:at + 2] = scale.view(numpy.uint8).reshape(count, 2)
    if kind == T.BF16:
        blocks = rng.normal(0, 1, count).astype("<f4").view(numpy.uint8).reshape(count, 4)[:, 2:]
    if kind == T.MXFP4:
        blocks[:, 0] = rng.integers(1, 250, count)
    if kind == T.NVFP4:
        blocks[:, :4] = rng.integers(0, 127, (count, 4))
    return numpy.ascontiguousarray(blocks)


def main():
    rng = numpy.random.default_rng(20250101)
    with open("tests/data/golden_blocks.bin", "wb") as out:
        for kind in F16_SCALES:
            elements, size = GGML_QUANT_SIZES[kind]
            count = max(2, 512 // elements)
            blocks = make_blocks(rng, kind, count, size)
            values = quants.dequantize(blocks.reshape(-1), kind).astype("<f4")
            assert numpy.isfinite(values).all(), kind
            out.write(struct.pack("<4I", int(kind), count, size, elements) + blocks.tobytes() + values.tobytes())


if __name__ == "__main__":
    main()
