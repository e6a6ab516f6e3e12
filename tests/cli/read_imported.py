#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decodes the quantised weights of a checkpoint from make_checkpoint.py with numpy and ml_dtypes, and compares them bit for bit with
the f32 values that the tool writes and the package gguf reads.

    read_imported.py TOOL CHECKPOINT FOLDER METHOD
"""
import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy
from gguf import GGUFReader, quants

PARTS = {"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "self_attn.o_proj": "attn_output",
         "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v"}
TYPES = {"I32": "<i4", "F16": "<f2", "F32": "<f4", "U8": "u1", "F8_E4M3": ml_dtypes.float8_e4m3fn,
         "F8_E5M2": ml_dtypes.float8_e5m2, "BF16": ml_dtypes.bfloat16}


def read(path):
    blob = path.read_bytes()
    length = int.from_bytes(blob[:8], "little")
    out = {}
    for name, entry in json.loads(blob[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            part = numpy.frombuffer(blob[8 + length + begin:8 + length + end], TYPES[entry["dtype"]])
            out[name] = part.reshape(entry["shape"])
    return out


def f32(a):
    return a.astype(numpy.float32)


def nibbles(words, places):
    """Four-bit codes of each word, row by row."""
    codes = words.view(numpy.uint32)[..., None] >> (4 * numpy.array(places, numpy.uint32)) & 15
    return codes.reshape(words.shape[0], -1).astype(int)


def e2m1(packed):
    pair = numpy.stack([packed & 15, packed >> 4], -1).reshape(packed.shape[0], -1)
    return f32(pair.view(ml_dtypes.float4_e2m1fn))


def gptq(t, base):
    codes = nibbles(numpy.ascontiguousarray(t[base + ".qweight"].T), range(8))
    zeros = (nibbles(t[base + ".qzeros"], range(8)) + 1) % 16
    group = t[base + ".g_idx"]
    return f32(codes - zeros[group].T) * f32(t[base + ".scales"][group].T)


def awq(t, base):
    order = [0, 4, 1, 5, 2, 6, 3, 7]  # where a word holds its columns
    codes, zeros = nibbles(t[base + ".qweight"], order), nibbles(t[base + ".qzeros"], order)
    each = codes.shape[0] // zeros.shape[0]
    return (f32(codes - numpy.repeat(zeros, each, 0)) * f32(numpy.repeat(t[base + ".scales"], each, 0))).T


def bitsandbytes(t, name, method):
    state = json.loads(bytes(t[f"{name}.quant_state.bitsandbytes__{method}"]))
    codes = numpy.stack([t[name] >> 4, t[name] & 15], -1).reshape(state["shape"])
    return t[name + ".quant_map"][codes] * numpy.repeat(t[name + ".absmax"], state["blocksize"]).reshape(state["shape"])


def decode(t, base, method):
    name = base + ".weight"
    if method in ("gptq", "act"):
        return gptq(t, base)
    if method == "awq":
        return awq(t, base)
    if method == "fp8":
        n, k = t[name].shape
        return f32(t[name]) * numpy.repeat(numpy.repeat(t[name + "_scale_inv"], 128, 0), 128, 1)[:n, :k]
    if method == "e5m2":
        return f32(t[name]) * t[name + "_scale"]
    if method == "mxfp4":
        return e2m1(t[name + "_packed"]) * numpy.repeat(f32(t[name + "_scale"].view(ml_dtypes.float8_e8m0fnu)), 32, 1)
    if method == "nvfp4":
        return e2m1(t[name + "_packed"]) * numpy.repeat(f32(t[name + "_scale"]) / t[name + "_global_scale"], 16, 1)
    if method == "modelopt":
        return e2m1(t[name]) * numpy.repeat(f32(t[name + "_scale"]) * t[name + "_scale_2"], 16, 1)
    return bitsandbytes(t, name, method)


def main():
    tool, checkpoint, folder, method = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    plain = folder / "plain.gguf"
    subprocess.run([tool, "quantize", checkpoint, plain, "--to", "f32", "--requantize"], check=True, capture_output=True)
    got = {t.name: quants.dequantize(t.data, t.tensor_type) for t in GGUFReader(plain).tensors}
    stored = read(checkpoint / "model.safetensors")
    for part, ours in PARTS.items():
        want = decode(stored, f"model.layers.0.{part}", method)
        assert want.dtype == numpy.float32 and (got[f"blk.0.{ours}.weight"] == want).all(), (method, part)
    print(f"{method}: {len(PARTS)} weights agree")


if __name__ == "__main__":
    main()
