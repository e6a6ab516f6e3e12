#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small checkpoint of random weights: config.json and safetensors files, with the standard library alone.

    make_checkpoint.py FOLDER [--dtype F32|F16|BF16] [--hidden N] [--layers N] [--files N] [--model-type NAME]
                       [--method gptq|act|awq|fp8|e5m2|mxfp4|nvfp4|modelopt|nf4|fp4]

With a method the products of the blocks are random codes with scales, as such checkpoints store them. Else weights of the products have deviation 0.02; every seventh row has one that is twenty times larger.
"""
import argparse
import json
import random
import struct
from pathlib import Path


def tensors(o):
    head = o.hidden // 4
    ffn = 2 * o.hidden
    for i in range(o.layers):
        block = f"model.layers.{i}."
        yield block + "self_attn.q_proj.weight", [4 * head, o.hidden]
        yield block + "self_attn.k_proj.weight", [2 * head, o.hidden]
        yield block + "self_attn.v_proj.weight", [2 * head, o.hidden]
        yield block + "self_attn.o_proj.weight", [o.hidden, 4 * head]
        yield block + "mlp.gate_proj.weight", [ffn, o.hidden]
        yield block + "mlp.up_proj.weight", [ffn, o.hidden]
        yield block + "mlp.down_proj.weight", [o.hidden, ffn]
        yield block + "input_layernorm.weight", [o.hidden]
        yield block + "post_attention_layernorm.weight", [o.hidden]
    yield "model.embed_tokens.weight", [300, o.hidden]
    yield "model.norm.weight", [o.hidden]
    yield "lm_head.weight", [300, o.hidden]


def pack(dtype, values):
    if dtype == "BF16":
        words = struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))
        return struct.pack(f"<{len(values)}H", *((w + 0x7fff + (w >> 16 & 1)) >> 16 for w in words))
    return struct.pack(f"<{len(values)}{'e' if dtype == 'F16' else 'f'}", *values)


def data(rng, shape, dtype):
    if len(shape) == 1:
        return pack(dtype, [1 + rng.gauss(0, 0.1) for _ in range(shape[0])])
    pool = [rng.gauss(0, 0.02) for _ in range(4099)]  # drawn once: the shape of the values matters, not each of them
    values = [pool[(i * 31 + i // 4099) % 4099] for i in range(shape[0] * shape[1])]
    for row in range(0, shape[0], 7):
        values[row * shape[1] + row % shape[1]] *= 20
    return pack(dtype, values)


NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]
FP4 = [x / 12 for x in (0, 0.0625, 8, 12, 4, 6, 2, 3, -0.0, -0.0625, -8, -12, -4, -6, -2, -3)]


def f16(value, count):
    return struct.pack("<e", value) * count


def f32(draw, count):
    """Scales that differ, round 2^-6."""
    return struct.pack(f"<{count}f", *(0.01 + b / 16384 for b in draw(count)))


def codes(name, shape, method):
    """The tensors that stand for a weight of [n, k]; groups of 64."""
    n, k = shape
    base = name.removesuffix(".weight")
    draw = random.Random(name).randbytes
    if method in ("gptq", "act"):
        groups = [i // 64 for i in range(k)]
        if method == "act":
            random.Random(name + "g").shuffle(groups)
        yield base + ".qweight", [k // 8, n], "I32", draw(n * k // 2)
        yield base + ".qzeros", [k // 64, n // 8], "I32", (b"\x77" if method == "gptq" else b"\x35") * (k // 64 * n // 2)
        yield base + ".scales", [k // 64, n], "F16", b"".join(f16(0.002 + 0.0001 * b, 1) for b in draw(k // 64 * n))
        yield base + ".g_idx", [k], "I32", struct.pack(f"<{k}i", *groups)
    elif method == "awq":
        yield base + ".qweight", [k, n // 8], "I32", draw(n * k // 2)
        yield base + ".qzeros", [k // 64, n // 8], "I32", b"\x88" * (k // 64 * n // 2)
        yield base + ".scales", [k // 64, n], "F16", f16(0.004, k // 64 * n)
    elif method == "fp8":
        blocks = [-(-n // 128), -(-k // 128)]
        yield name, shape, "F8_E4M3", bytes(b & 0xbf for b in draw(n * k))
        yield name + "_scale_inv", blocks, "F32", f32(draw, blocks[0] * blocks[1])
    elif method == "e5m2":
        yield name, shape, "F8_E5M2", bytes(b & 0xbb for b in draw(n * k))
        yield name + "_scale", [n, 1], "F32", f32(draw, n)
    elif method == "mxfp4":
        yield base + ".weight_packed", [n, k // 2], "U8", draw(n * k // 2)
        yield base + ".weight_scale", [n, k // 32], "U8", bytes(118 + b % 8 for b in draw(n * k // 32))
    elif method in ("nvfp4", "modelopt"):
        packed, whole = (".weight_packed", ".weight_global_scale") if method == "nvfp4" else (".weight", ".weight_scale_2")
        yield base + packed, [n, k // 2], "U8", draw(n * k // 2)
        yield base + ".weight_scale", [n, k // 16], "F8_E4M3", bytes(8 + b % 112 for b in draw(n * k // 16))
        yield base + whole, [1], "F32", struct.pack("<f", 1234.5 if method == "nvfp4" else 0.00081)
    elif method in ("nf4", "fp4"):
        state = json.dumps({"quant_type": method, "blocksize": 64, "shape": shape}).encode()
        yield name, [n * k // 2, 1], "U8", draw(n * k // 2)
        yield name + ".absmax", [n * k // 64], "F32", f32(draw, n * k // 64)
        yield name + ".quant_map", [16], "F32", struct.pack("<16f", *(NF4 if method == "nf4" else FP4))
        yield name + ".quant_state.bitsandbytes__" + method, [len(state)], "U8", state


CONFIGS = {
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": True, "desc_act": False},
    "act": {"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": False, "desc_act": True},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm", "zero_point": True},
    "fp8": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "activation_scheme": "dynamic"},
    "e5m2": {"quant_method": "compressed-tensors", "format": "float-quantized"},
    "mxfp4": {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"},
    "nvfp4": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
    "modelopt": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    "nf4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
    "fp4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "fp4"},
}


def stored(o, rng):
    for name, shape in tensors(o):
        if o.method and "_proj." in name:
            yield from codes(name, shape, o.method)
        else:
            yield name, shape, o.dtype, data(rng, shape, o.dtype)


def write_file(path, named):
    header, blob = {"__metadata__": {"format": "pt"}}, b""
    for name, shape, dtype, content in named:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(content)]}
        blob += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dtype", default="BF16", choices=["F32", "F16", "BF16"])
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--model-type", default="llama")
    parser.add_argument("--method", choices=sorted(CONFIGS))
    o = parser.parse_args()
    rng = random.Random(7)
    o.folder.mkdir(parents=True, exist_ok=True)
    made = list(stored(o, rng))
    names = ["model.safetensors"]
    if o.files > 1:
        names = [f"model-{i + 1:05}-of-{o.files:05}.safetensors" for i in range(o.files)]
        places = {t[0]: names[i % o.files] for i, t in enumerate(made)}
        (o.folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    for i, name in enumerate(names):
        write_file(o.folder / name, made[i::o.files])
    quantised = {"quantization_config": CONFIGS[o.method]} if o.method else {}
    (o.folder / "config.json").write_text(json.dumps(quantised | {
        "model_type": o.model_type, "hidden_size": o.hidden, "intermediate_size": 2 * o.hidden, "num_hidden_layers": o.layers,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu"}))


if __name__ == "__main__":
    main()
