#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small checkpoint of random weights: config.json and safetensors files, with the standard library alone.

    make_checkpoint.py FOLDER [--dtype F32|F16|BF16] [--hidden N] [--layers N] [--files N] [--model-type NAME]

Weights of the products have deviation 0.02; every seventh row has one that is twenty times larger.
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
    o = parser.parse_args()
    rng = random.Random(7)
    o.folder.mkdir(parents=True, exist_ok=True)
    made = [(name, shape, o.dtype, data(rng, shape, o.dtype)) for name, shape in tensors(o)]
    names = ["model.safetensors"]
    if o.files > 1:
        names = [f"model-{i + 1:05}-of-{o.files:05}.safetensors" for i in range(o.files)]
        places = {t[0]: names[i % o.files] for i, t in enumerate(made)}
        (o.folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    for i, name in enumerate(names):
        write_file(o.folder / name, made[i::o.files])
    (o.folder / "config.json").write_text(json.dumps({
        "model_type": o.model_type, "hidden_size": o.hidden, "intermediate_size": 2 * o.hidden, "num_hidden_layers": o.layers,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu"}))


if __name__ == "__main__":
    main()
