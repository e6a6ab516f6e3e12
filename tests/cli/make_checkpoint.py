#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small checkpoint of random weights: config.json and safetensors files, with the standard library alone.

    make_checkpoint.py FOLDER [--dtype F32|F16|BF16] [--hidden N] [--layers N] [--files N] [--model-type NAME]
                       [--method gptq|awq|fp8|nf4]

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


def f16(value, count):
    return struct.pack("<e", value) * count


def codes(name, shape, method):
    """The tensors that stand for a weight of [n, k]; groups of 64."""
    n, k = shape
    base = name.removesuffix(".weight")
    draw = random.Random(name).randbytes
    if method == "gptq":
        yield base + ".qweight", [k // 8, n], "I32", draw(n * k // 2)
        yield base + ".qzeros", [k // 64, n // 8], "I32", b"\x77" * (k // 64 * n // 2)
        yield base + ".scales", [k // 64, n], "F16", f16(0.004, k // 64 * n)
        yield base + ".g_idx", [k], "I32", struct.pack(f"<{k}i", *(i // 64 for i in range(k)))
    elif method == "awq":
        yield base + ".qweight", [k, n // 8], "I32", draw(n * k // 2)
        yield base + ".qzeros", [k // 64, n // 8], "I32", b"\x88" * (k // 64 * n // 2)
        yield base + ".scales", [k // 64, n], "F16", f16(0.004, k // 64 * n)
    elif method == "fp8":
        blocks = [-(-n // 128), -(-k // 128)]
        yield name, shape, "F8_E4M3", bytes(b & 0xbf for b in draw(n * k))
        yield name + "_scale_inv", blocks, "F32", struct.pack("<f", 0.02) * (blocks[0] * blocks[1])
    elif method == "nf4":
        state = json.dumps({"quant_type": "nf4", "blocksize": 64, "shape": shape}).encode()
        yield name, [n * k // 2, 1], "U8", draw(n * k // 2)
        yield name + ".absmax", [n * k // 64], "F32", struct.pack("<f", 0.05) * (n * k // 64)
        yield name + ".quant_map", [16], "F32", struct.pack("<16f", *(i / 7.5 - 1 for i in range(16)))
        yield name + ".quant_state.bitsandbytes__nf4", [len(state)], "U8", state


CONFIGS = {
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": True, "desc_act": False},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm", "zero_point": True},
    "fp8": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "activation_scheme": "dynamic"},
    "nf4": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
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
