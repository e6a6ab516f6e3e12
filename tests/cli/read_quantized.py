#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what `rooftile quantize` writes with the package gguf, and compares it with the checkpoint read by safetensors.

    read_quantized.py TOOL CHECKPOINT FOLDER

Names, shapes, the order of rows and the keys must be those of a converted model, and of a compressed-tensors checkpoint; the errors that the tool prints must be those of
the values that gguf decodes; and those values must be the ones that the tool itself decodes, bit for bit.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy
from gguf import GGUFReader, quants
from safetensors import safe_open

TYPES = "f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs mxfp4".split()
PARTS = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
WHOLES = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
          "lm_head.weight": "output.weight"}


def as_f32(slices):
    """bf16 is not a type of numpy: its bits are the upper half of f32's."""
    return (slices.astype(numpy.uint32) << 16).view(numpy.float32)


def read_checkpoint(folder, permuted):
    """GGUF name -> f32 values with the rows where the converter puts them."""
    config = json.loads((folder / "config.json").read_text())
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    out = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "np") as file:
            names = list(file.keys())
        for name, raw in raw_tensors(path, names):
            match = re.fullmatch(r"model\.layers\.(\d+)\.(.+)\.weight", name)
            part = PARTS[match[2]] if match else None
            if permuted and part in heads:
                raw = raw.reshape(heads[part], 2, raw.shape[0] // heads[part] // 2, raw.shape[1]).swapaxes(1, 2).reshape(raw.shape)
            out[f"blk.{match[1]}.{part}.weight" if match else WHOLES[name]] = raw
    return out


def raw_tensors(path, names):
    blob = path.read_bytes()
    length = int.from_bytes(blob[:8], "little")
    header = json.loads(blob[8:8 + length])
    assert set(names) == set(header) - {"__metadata__"}
    for name in names:
        begin, end = header[name]["data_offsets"]
        words = numpy.frombuffer(blob[8 + length + begin:8 + length + end], "<u2")
        yield name, as_f32(words).reshape(header[name]["shape"])


def quantize(tool, *args):
    done = subprocess.run([tool, "quantize", *map(str, args), "--json", "--all"], check=True, capture_output=True, text=True)
    return {row["tensor"]: row for row in map(json.loads, done.stdout.splitlines()) if "tensor" in row}


def values(reader):
    return {t.name: quants.dequantize(t.data, t.tensor_type).astype(numpy.float32) for t in reader.tensors}


def check_errors(row, old, new):
    e = new.astype(numpy.float64) - old
    rms = float(numpy.sqrt((e**2).sum() / (old.astype(numpy.float64)**2).sum()))
    assert abs(rms - row["rel_rms"]) <= 1e-6 + 1e-4 * rms, (row, rms)
    assert abs(float(numpy.abs(e).max()) - row["max_error"]) <= 1e-5 * row["max_error"] + 1e-12, row


def check_type(tool, checkpoint, folder, kind, want):
    path, plain = folder / f"{kind}.gguf", folder / "plain.gguf"
    rows = quantize(tool, checkpoint, path, "--to", kind)
    reader = GGUFReader(path)
    got = values(reader)
    assert set(got) == set(want), set(got) ^ set(want)
    for name, old in want.items():
        assert got[name].shape == old.shape, name
        check_errors(rows[name], old, got[name])
        if rows[name]["to"] in ("f32", "bf16") and rows[name]["from"] == "bf16":
            assert (got[name] == old).all(), name
    quantize(tool, path, plain, "--to", "f32", "--requantize")
    for name, ours in values(GGUFReader(plain)).items():
        assert (ours == got[name]).all(), f"{kind} {name}: the package decodes other values"
    return reader


PACKED = {"i4": 4, "i8": 8, "e4m3": 0}


def e4m3(codes):
    sign, exponent, fraction = codes >> 7, (codes >> 3 & 15).astype(int), codes & 7
    value = numpy.where(exponent == 0, fraction / 512.0, numpy.ldexp(1 + fraction / 8.0, exponent - 7))
    return numpy.where(sign == 1, -value, value)


def unpack(words, bits, k):
    """Codes along k, lowest bits first; half the range was added to each."""
    shifts = numpy.arange(0, 32, bits, dtype=numpy.uint32)
    codes = words.view(numpy.uint32)[:, :, None] >> shifts & ((1 << bits) - 1)
    return codes.reshape(words.shape[0], -1)[:, :k].astype(numpy.float64) - (1 << (bits - 1))


def check_packed(tool, checkpoint, folder, kind, want):
    out = folder / kind
    rows = quantize(tool, checkpoint, out, "--to", kind, *(["--group", "64"] if kind == "i4" else []))
    config = json.loads((out / "config.json").read_text())["quantization_config"]
    assert config["quant_method"] == "compressed-tensors" and config["config_groups"]["group_0"]["targets"] == ["Linear"]
    with safe_open(out / "model.safetensors", "np") as file:
        names = set(file.keys())
    raw = dict(raw_parts(out / "model.safetensors"))
    assert names == set(raw)
    for name, old in want.items():
        base = name.removesuffix(".weight")
        if "_proj." not in name:
            assert (as_f32(raw[name].view("<u2")).reshape(old.shape) == old).all(), name
            assert "norm" in name or name == "model.embed_tokens.weight" or base in config["ignore"], name
            continue
        scales = as_f32(raw[name + "_scale"].view("<u2")).reshape(old.shape[0], -1).astype(numpy.float64)
        if kind == "e4m3":
            codes = e4m3(raw[name].reshape(old.shape))
        else:
            codes = unpack(raw[name + "_packed"].view("<i4").reshape(old.shape[0], -1), PACKED[kind], old.shape[1])
            assert raw[name + "_shape"].view("<i8").tolist() == list(old.shape)
        new = codes * numpy.repeat(scales, old.shape[1] // scales.shape[1], axis=1)
        check_errors(rows[name], old, new)


def raw_parts(path):
    """name -> bytes."""
    blob = path.read_bytes()
    length = int.from_bytes(blob[:8], "little")
    for name, entry in json.loads(blob[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, numpy.frombuffer(blob[8 + length + begin:8 + length + end], numpy.uint8)


def read_plain(folder):
    """Checkpoint name -> f32 values."""
    out = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "np") as file:
            out |= dict(raw_tensors(path, list(file.keys())))
    return out


def check_keys(reader, config, arch):
    keys = {name: field.contents() for name, field in reader.fields.items()}
    assert keys["general.architecture"] == arch
    assert keys[f"{arch}.block_count"] == config["num_hidden_layers"]
    assert keys[f"{arch}.attention.head_count_kv"] == config["num_key_value_heads"]
    assert keys[f"{arch}.rope.freq_base"] == config["rope_theta"]
    assert abs(keys[f"{arch}.attention.layer_norm_rms_epsilon"] - config["rms_norm_eps"]) < 1e-9
    assert keys["general.quantization_version"] == 2


def main():
    tool, checkpoint, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    config = json.loads((checkpoint / "config.json").read_text())
    want = read_checkpoint(checkpoint, config["model_type"] == "llama")
    for kind in TYPES:
        check_keys(check_type(tool, checkpoint, folder, kind, want), config, config["model_type"])
    plain = read_plain(checkpoint)
    for kind in PACKED:
        check_packed(tool, checkpoint, folder / config["model_type"], kind, plain)
    print(f"{config['model_type']}: {len(TYPES) + len(PACKED)} types of {len(want)} tensors agree")


if __name__ == "__main__":
    main()
