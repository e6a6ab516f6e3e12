#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What rooftile quantize writes, read by the packages gguf and safetensors, and what it reads, decoded with ml_dtypes. Called by ctest with the path of the tool; skipped with
# the reason where they are missing (tools/setup.sh python fetches them).

set -u
tool=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! python3 -c 'import gguf, ml_dtypes, numpy, safetensors' 2>"$work/err"; then
    echo "skipped: $(tail -n 1 "$work/err"); tools/setup.sh python fetches gguf, ml_dtypes, numpy and safetensors"
    exit 77
fi
for arch in llama qwen3; do
    python3 "$here/make_checkpoint.py" "$work/$arch" --model-type "$arch" --layers 1 --files 2 || exit 1
    python3 "$here/read_quantized.py" "$tool" "$work/$arch" "$work" || exit 1
done
for method in gptq act awq fp8 e5m2 mxfp4 nvfp4 modelopt nf4 fp4; do
    python3 "$here/make_checkpoint.py" "$work/$method" --model-type qwen3 --layers 1 --method "$method" || exit 1
    python3 "$here/read_imported.py" "$tool" "$work/$method" "$work" "$method" || exit 1
done
