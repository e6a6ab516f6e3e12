#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rooftile quantize, and rooftile model over checkpoints, as their users meet them: messages, exit codes, files, signals.
# Called by ctest with the path of the tool.

. "$(dirname "$0")/common.sh"

test_usage() {
    run 2 quantize
    complains 'an input and an output file are needed'
    run 2 quantize a b
    complains '--to is missing'
    run 2 quantize a b --to q9
    complains "'q9' is none of f32, f16, bf16, q4_0"
    run 2 quantize a b c --to q8_0
    for part in 0 ' 4' +4 4x 1025 ''; do
        run 2 quantize a b --to q8_0 --threads "$part"
        complains "--threads: '${part/+/[+]}' is not a whole number in 1\\.\\.1024"
    done
    for part in ' 64' 64x 96 31 256; do
        run 2 quantize a b --to i4 --group "$part"
        complains "--group: '$part' is none of 32, 64 and 128"
    done
    run 4 quantize "$work/none.gguf" "$work/out.gguf" --to q8_0
    run 4 quantize "$work/model" "$work/model" --to q8_0
    complains 'directory'
    run 0 quantize --help
    says 'Usage: rooftile quantize'
}

test_checkpoint() {
    run 0 model "$work/model"
    says 'ffn_down +1 +1 +256 +512 +bf16 '
    run 0 model "$work/model/model.safetensors"
    says 'lm_head'
    run 0 model "$work/sharded/model.safetensors.index.json" --run "${quick[@]}" --json
    says '"layer":"lm_head"'
    says '"w":"f32"'
    run 3 model "$work/sharded/model-00001-of-00003.safetensors"
    complains "tensor 'model.layers.*is missing"
}

test_types() {
    local type
    for type in f16 mxfp4 q4_k; do
        run 0 quantize "$work/model" "$work/new.gguf" --to "$type" --json
        says "\"tensor\":\"blk.0.ffn_up.weight\",\"from\":\"bf16\",\"to\":\"$type\""
        says '"output":.*"rel_rms":[0-9]'
        run 0 model "$work/new.gguf"
        says "attn_k +1 +1 +128 +256 +$type"
    done
    run 0 model "$work/new.gguf" --run "${quick[@]}"
    says 'measured'
    run 0 quantize "$work/model" "$work/new.gguf" --to q4_0 --keep '*attn_*' --keep output.weight
    says 'blk.0.ffn_up.weight .*bf16→q4_0'
    if grep -q 'attn_q' "$work/out"; then fail 'what is kept does not change'; fi
    run 0 quantize "$work/model" "$work/new.gguf" --to q4_0 --keep '*attn_q*' --all --embeddings
    says 'attn_q.weight .*bf16→bf16 .*a pattern keeps it'
    says 'token_embd.weight .*bf16→q4_0'
    run 3 quantize "$work/new.gguf" "$work/again.gguf" --to q5_0
    complains 'is q4_0 already'
    run 0 quantize "$work/new.gguf" "$work/new.gguf" --to q5_0 --requantize
    says 'q4_0→q5_0'
    if compgen -G "$work/*.tmp" >/dev/null; then fail 'a temporary file is left'; fi
}

# Checkpoints that are quantised already: their weights run in the form that they are stored in, and become GGUF on request.
test_quantised_checkpoints() {
    local method scheme kernel bytes
    for method in gptq act awq fp8 e5m2 mxfp4 nvfp4 modelopt nf4 fp4; do
        case $method in
        gptq) scheme='gptq 4-bit g64' kernel=q4 bytes=69632 ;;
        act) scheme='gptq 4-bit g64 act' kernel=q4z bytes=75776 ;;
        awq) scheme='awq 4-bit g64' kernel=q4 bytes=69632 ;;
        fp8) scheme='fp8 128x128' kernel=f8 bytes=135168 ;;
        e5m2) scheme='fp8 a row' kernel=f8 bytes=133120 ;;
        mxfp4) scheme='mxfp4' kernel=q4 bytes=69632 ;;
        nvfp4 | modelopt) scheme='nvfp4' kernel=q4 bytes=75776 ;;
        nf4 | fp4) scheme="$method 64" kernel=q4 bytes=73728 ;;
        esac
        python3 "$here/make_checkpoint.py" "$work/$method" --layers 1 --method "$method"
        run 0 model "$work/$method"
        says "ffn_down +1 +1 +256 +512 +$scheme +add"
        says "ffn_down .*f32_${kernel}_f32"
        says 'lm_head .* bf16 '
        run 0 model "$work/$method" --json
        says "\"packed_bytes\":$((bytes + 128)),.*\"layer\":\"ffn_down\""
    done
    run 0 model "$work/nf4" --compute i8
    says 'ffn_down .*f32_q4_f32'
    run 0 model "$work/act" --run --compute i8 "${quick[@]}"
    says 'ffn_down .*i8_q4z_f32'
    says 'measured'
    run 3 quantize "$work/gptq" "$work/new.gguf" --to q8_0
    complains "is gptq 4-bit g64 already"
    run 0 quantize "$work/gptq" "$work/new.gguf" --to q4_1 --requantize
    says 'attn_q.weight .*gptq 4-bit g64→q4_1'
    run 0 model "$work/new.gguf"
    python3 -c 'import json, sys; p = sys.argv[1]; c = json.load(open(p)); c["quantization_config"]["quant_method"] = "x"
json.dump(c, open(p, "w"))' "$work/awq/config.json"
    run 3 model "$work/awq"
    complains "method 'x'"
}

# Checkpoints in the layout of compressed-tensors.
test_packed() {
    local type scheme
    for type in i4 i8 e4m3; do
        case $type in
        i4) scheme='int 4-bit g128' ;;
        i8) scheme='int 8-bit a row' ;;
        e4m3) scheme='fp8 a row' ;;
        esac
        run 0 quantize "$work/model" "$work/packed-$type/" --to "$type"
        says "mlp.down_proj.weight .*bf16→$type"
        run 0 model "$work/packed-$type"
        says "ffn_down +1 +1 +256 +512 +$scheme +add"
        run 4 quantize "$work/model" "$work/packed-$type" --to "$type"
        complains 'File exists'
    done
    run 0 quantize "$work/packed-i8" "$work/packed-again" --to i4 --group 32 --requantize
    run 3 quantize "$work/packed-i8" "$work/packed-none" --to i4
    run 2 quantize "$work/model" "$work/packed-none" --to i4 --group 7
    run 3 quantize "$work/new.gguf" "$work/packed-none" --to i4
    complains 'from a checkpoint only'
    if [ "$(find "$work" -maxdepth 1 -name 'packed*' | wc -l)" != 4 ]; then fail 'something is left of failures'; fi
}

# A signal in the midst: the old file stays, nothing else is left, and the tool ends by the signal.
test_signal() {
    local pid code
    python3 "$here/make_checkpoint.py" "$work/large" --hidden 512
    mkdir "$work/target"
    echo old >"$work/target/out.gguf"
    "$tool" quantize "$work/large" "$work/target/out.gguf" --to q6_k --threads 1 >"$work/out" 2>"$work/err" &
    pid=$!
    sleep 0.3
    kill -TERM "$pid"
    wait "$pid"
    code=$?
    if [ "$code" != 143 ] && [ "$code" != 0 ]; then fail "exit code $code after SIGTERM"; fi
    if [ "$code" = 143 ] && [ "$(cat "$work/target/out.gguf")" != old ]; then fail 'the old file is gone'; fi
    if [ "$(find "$work/target" -type f | wc -l)" != 1 ]; then fail 'something is left beside it'; fi
}

python3 "$here/make_checkpoint.py" "$work/model" --layers 1
python3 "$here/make_checkpoint.py" "$work/sharded" --layers 1 --files 3 --dtype F32
for part in usage checkpoint types quantised_checkpoints packed signal; do
    "test_$part"
done
if [ "$failures" != 0 ]; then
    echo "$failures failed"
    exit 1
fi
echo "all passed"
