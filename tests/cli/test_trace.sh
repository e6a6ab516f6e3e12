#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rooftile trace, replay, why and regret as their users meet them, over the recorded runs of tests/data and damaged ones.
# Called by ctest with the path of the tool.

. "$(dirname "$0")/common.sh"
data=$root/tests/data
cpu=$root/bench/results/zen4-2t/machine-cpu.json
gpu=$root/bench/results/h200/machine-cuda.json

is_json() { if ! python3 -c 'import json, sys; [json.loads(l) for l in sys.stdin]' <"$work/out" 2>/dev/null; then fail "no JSON"; fi; }

test_usage() {
    local command
    for command in trace replay why regret; do
        run 2 "$command"
        run 0 "$command" --help
        says "Usage: rooftile $command"
        if [ "$(awk '{ n = length($0) > n ? length($0) : n } END { print n }' "$work/out")" -gt 80 ]; then fail "$command --help is wider than 80"; fi
    done
    run 2 trace a b
    complains "'b': one file at a time"
    run 2 trace a --top x
    complains "--top: 'x'"
    run 2 trace a --threads 0
    run 4 trace "$work/none"
    complains 'cannot read'
    run 4 trace "$work"
    complains 'no plain file'
    mkfifo "$work/pipe"
    run 4 trace "$work/pipe"
    complains 'no plain file'
    run 2 replay "$data/trace_own.log" --machine h100
    complains 'nothing runs on a machine that is not here'
    run 2 replay "$data/trace_own.log" -n 5
    complains 'come from the recorded run'
    run 2 why "$root/bench/models/gpt2.json"
    complains 'no layer'
    run 2 regret "$root/bench/models/gpt2.json" --vs mkl
    complains 'one of onednn and cublaslt'
}

test_torch() {
    run 0 trace "$data/trace_torch_cpu.json" --machine "$cpu"
    says '^bounds of .*2 threads'
    says '^GEMM +136\.[0-9] +49\.'
    says '^decode +1 +192 +64 +1 +f32·f32→f32 +nt +none +1 '
    says '^backward +64 +160 +48 .* - +none '
    says '^attention +decode +1 '
    says 'at their bounds the run would be [0-9.]+ % shorter'
    run 0 trace "$data/trace_torch_gpu.json" --machine "$gpu"
    says 'recorded on NVIDIA H200'
    says '^bounds of NVIDIA H200, 132 multiprocessors'
    says '^prefill +512 +14336 +4096 +1 +bf16·bf16→bf16 +nt +bias@bf16 +1 +100\.0 .*compute +1\.[0-9]'
    says '^collective +- +1 +50\.00'
    run 0 trace "$data/trace_torch_gpu.json" --machine "$cpu"
    complains 'the run was on a GPU and this machine is none'
    run 0 trace "$data/trace_torch_gpu.json" --machine "$gpu" --json
    is_json
    says '"group":"GEMM","name":"aten::linear".*"m":512,"n":14336,"k":4096.*"gap":1\.'
    run 4 trace "$data/trace_torch_gpu.json" --machine "$work/none.json"
    run 0 trace "$data/trace_torch_gpu.json" --machine h200
    says '^bounds of NVIDIA H200, 132 multiprocessors'
    run 2 trace "$data/trace_torch_gpu.json" --machine frob
    complains "--machine: no machine is named 'frob'"
    run 0 trace "$data/trace_torch_cpu.json"
    complains 'no profile of a CPU here'
    run 0 trace "$data/trace_torch_cpu.json" --top 1
    says '5 more rows; --top 0 shows all'
}

test_logs() {
    run 0 trace "$data/trace_onednn.log" --machine "$cpu"
    says '2 threads'
    says '^decode\? +16 +512 +256 +1 +f32·f32→f32 +nt packed +bias:silu +1 '
    run 0 trace "$data/trace_own.log" --machine "$cpu" --json
    is_json
    says '"w":"i4:g32:zero"'
    RFT_VERBOSE=exec RFT_LOG_FILE=$work/log timeout "$limit" "$tool" bench -n 48 -k 64 -m 1,5 --epi bias:gelu --threads 1 "${quick[@]}" \
        >/dev/null 2>&1
    run 0 trace "$work/log" --machine "$cpu"
    says '^decode\? +5 +48 +64 +1 +f32·f32→f32 +nt +bias:gelu '
    run 0 replay "$work/log"
    says '^rooftile bench -n 48 -k 64 --x f32 --w f32 --y f32 --epi bias:gelu -m 1,5  # m=1: [0-9]+ calls'
}

# Names, types and devices of any length and any alphabet: tables cut no character in two.
test_characters() {
    local pad
    for pad in 0 1 2; do
        python3 - "$pad" >"$work/names.json" <<'END'
import json, sys
name = "x" * int(sys.argv[1]) + "\u2192" * 70
op = lambda at, name, **args: {"ph": "X", "cat": "cpu_op", "name": name, "ts": at, "dur": 2, "args": args}
print(json.dumps({"deviceProperties": [{"name": name}], "traceEvents": [
    op(1, "gemm" + name), op(5, "norm" + name),
    op(9, "aten::mm", **{"Input Dims": [[2, 3], [3, 4]], "Input type": [name[:12]] * 2})]}))
END
        run 0 trace "$work/names.json"
        says ' gemmx{0,2}→{30,40}$'
        says '^other +- .* normx{0,2}→{30,}$'
        if ! python3 -c 'import sys; sys.stdin.buffer.read().decode()' <"$work/out"; then fail 'a table holds parts of characters'; fi
    done
}

test_nsight() {
    if ! python3 -c 'import sqlite3' 2>/dev/null; then return; fi
    local kind
    python3 "$here/make_nsight.py" "$work/nsight.sqlite"
    timeout 20 "$tool" trace "$work/nsight.sqlite" --machine "$gpu" >"$work/out" 2>"$work/err"
    if grep -q 'was built without it' "$work/err"; then return; fi
    run 0 trace "$work/nsight.sqlite" --machine "$gpu" --x bf16
    says 'Nsight Systems export · recorded on NVIDIA H200'
    says '^decode +1 +4096 +4096 +1 +- +- +bias +4 +9\.000 .* memory +1\.[0-9]+ +aten::addmm'
    says '^decode +8 +512 +4096 +1 '
    says '^attention +decode +4 +3\.000'
    says '^norm +- +4 +2\.000'
    says '^collective +- +4 +12\.00'
    says '^other +- +1 +5\.000 .*memcpy'
    says '^other +- +1 +7\.000 .*CUDA graph'
    says '^1 events or lines are not as the format has them' # a table of another version
    run 1 replay "$work/nsight.sqlite"
    complains '5 calls .* left out: the trace does not tell its types; --x TYPE'
    run 0 replay "$work/nsight.sqlite" --x bf16
    says '^rooftile bench -n 4096 -k 4096 --x bf16 --w bf16 --y bf16 --epi bias -m 1  # m=1: 4 calls, 36\.00 us'
    for kind in view columns empty; do
        python3 "$here/make_nsight.py" "$work/$kind.sqlite" "$kind"
        run 4 trace "$work/$kind.sqlite"
    done
    run 4 trace "$work/empty.sqlite"
    complains 'no kernel in it'
    run 4 trace "$work/view.sqlite"
    complains 'without the table CUPTI_ACTIVITY_KIND_KERNEL'
    head -c 5000 "$work/nsight.sqlite" >"$work/cut.sqlite"
    run 4 trace "$work/cut.sqlite"
    printf 'SQLite format 3\0%4096s' '' >"$work/other.sqlite"
    run 4 trace "$work/other.sqlite"
    complains 'SQLite: file is not a database'
}

# Whatever the bytes, the answer is an exit code and a sentence.
test_hostile() {
    local file cut size
    for file in "$data"/trace_*; do
        size=$(wc -c <"$file")
        for cut in 1 100 $((size / 2)) $((size - 3)); do
            head -c "$cut" "$file" >"$work/cut"
            timeout 20 "$tool" trace "$work/cut" >"$work/out" 2>"$work/err"
            if [ $? -gt 4 ]; then fail "trace of $cut bytes of $file"; fi
        done
    done
    head -c 20000 /dev/urandom >"$work/noise"
    run 4 trace "$work/noise"
    : >"$work/empty"
    run 4 trace "$work/empty"
    # shellcheck disable=SC2016  # what a shell would run is the point
    printf 'onednn_verbose,v1,primitive,exec,cpu,matmul,$(touch %s/bad);`x`,undef,src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 dst:f32::blocked:ab::f0,attr-post-ops:$(touch %s/bad),,4x8:8x16,1\n' \
        "$work" "$work" >"$work/shell"
    run 1 replay "$work/shell"
    complains 'left out'
    if grep -q 'touch' "$work/out"; then fail "a line for the shell has a file's own words"; fi
}

test_replay() {
    local line
    run 0 replay "$data/trace_onednn.log" --run --threads 1 "${quick[@]}"
    says '^ *48 +192 +64 +--x bf16 --w bf16 --y bf16 +1 '
    says '^recorded .* us, here .* us: '
    run 0 replay "$data/trace_onednn.log" --run --threads 1 --top 1 --json "${quick[@]}"
    is_json
    says '"recorded_us":'
    run 0 replay "$data/trace_own.log"
    says '^rooftile bench -n 256 -k 256 --x i8:g128 --w i8 --y i8 --epi scale.* --compute i8 -m 4 '
    if [ -s "$work/err" ]; then fail 'nothing was to be left out'; fi
    line=$(sed -n "s|^rooftile|'$tool'|; s|  #.*| --time 0.01 --rounds 2|; 1p" "$work/out")
    if ! sh -c "$line" >"$work/out" 2>"$work/err"; then fail "its first line does not run: $line"; fi
    says 'GFLOP/s'
    run 0 replay "$data/trace_own.log" --device cuda:0 # a GPU multiplies floats alone
    complains '^rooftile: 4 calls \([0-9.e+]+ us\) left out: --x i8 --device cuda:0: activations in 8 bits run on the CPU alone'
    says '^rooftile bench .* --w bf16 .* --device cuda:0 -m 4 '
    if grep -qE -- '--w i[48]|--x i8' "$work/out"; then fail 'bench refuses a line of replay'; fi
    run 2 bench -m 1 -n 64 -k 64 --w q4_0 --device cuda:0
    complains '--w q4_0 --device cuda:0: low-bit weights run on the CPU alone'
}

test_why() {
    local model=$root/bench/models/gpt2.json
    run 0 why "$model" ffn_up --phase prefill:1x16 --profile "$cpu"
    says '^phase +prefill:1x16: .* 16 rows of X meet each W'
    says '^M, N, K +16 x 3072 x 768, 12 times'
    says '^layout +W stored \[in, out\]'
    says '^type +X f32, W f32'
    says '^fused +bias,gelu_tanh, within'
    says '^hot spot +[0-9.]+ % of the linear layers. bound time, place [0-9] of 5'
    says '^to do '
    run 0 why "$model" attn_output --run --threads 1 "${quick[@]}"
    says '^measured +[0-9.]+ us'
    run 0 why "$model" ffn_down --json --profile "$cpu"
    is_json
    says '"layer":"ffn_down".*"turn_m":[0-9]+.*"to_do":\['
    python3 - "$work/odd.gguf" <<'END'
import struct, sys
text = lambda b: struct.pack("<Q", len(b)) + b
head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text(b"general.architecture") + struct.pack("<I", 8) + text(b"odd")
head += text(b"odd\xff.weight") + struct.pack("<IQQIQ", 2, 64, 32, 0, 0)
open(sys.argv[1], "wb").write(head + b"\0" * (-len(head) % 32 + 4 * 64 * 32))
END
    run 0 why "$work/odd.gguf" $'odd\xff.weight' --json --profile "$cpu" # a name that is no UTF-8 takes no key away
    is_json
    says '"layer":"odd\?\.weight","count":1,'
    run 2 why "$model" ffn_side
    complains "'ffn_side' is no layer of .*; it has attn_qkv attn_output ffn_up ffn_down lm_head"
    run 2 why "$model" ffn_up --phase sleep
    complains '--phase'
    run 2 why "$model" ffn_up --phase train:1x8
    complains 'lists the products of a step of training'
    run 2 why "$model" ffn_up --epi bias
    complains '--epi: .* come from the model file'
    run 4 why "$work/none.json" ffn_up
    run 0 why "$root/bench/models/whisper-large-v3.json" lm_head --json
    says '"context":448,'
    run 0 why "$model" ffn_up --machine h100 --x bf16
    says '^ffn_up of .* · NVIDIA H100 80GB HBM3 · 132 SMs \(spec\)'
    says '^kernel +gem[mv]_'
    if grep -qE -- '--run|rooftile roofline' "$work/out"; then fail 'advice that cannot be followed there'; fi
    run 0 why "$root/tests/fuzz/corpus/gguf/q4_0.gguf" ffn_up --machine h100 --json
    is_json
    says '"device":"cuda".*"w":"q4_0→bf16"'
    run 0 why "$model" ffn_up --machine epyc-9654
    says ' · 96 threads \(spec\)'
    run 2 why "$model" ffn_up --machine h100 --run
    complains '--machine h100 --run: nothing runs'
    run 2 why "$model" ffn_up --machine frob
    run 0 why "$model" ffn_up
    says 'not known without a profile of the machine'
}

test_regret() {
    run 3 regret "$root/bench/models/gpt2.json" --vs "onednn=$work/none.so"
    complains 'without the library there is nothing to compare with'
    run 2 regret "$root/bench/models/gpt2.json" --vs onednn,openblas
    run 4 regret "$work/none.json"
    run 2 regret "$root/bench/models/gpt2.json" --machine h100
    complains '--machine h100: every figure here is measured, and nothing runs'
    if timeout "$limit" "$tool" regret "$root/bench/models/gpt2.json" --x f32 --vs onednn --threads 1 "${quick[@]}" \
        >"$work/out" 2>"$work/err"; then
        says '^attn_qkv +12 +1 +2304 +768 '
        says '^a pass through 5 of 5 layers: default '
    fi
}

for part in usage torch logs characters nsight hostile replay why regret; do
    "test_$part"
done
if [ "$failures" != 0 ]; then
    echo "$failures failed"
    exit 1
fi
echo "all passed"
