#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tool as its users meet it: exit codes, messages, tables and JSON. Called by ctest with the path of the tool.
# Each case prints what was expected when it fails; the sizes are small, since speed is not the matter here.

. "$(dirname "$0")/common.sh"

has_keys() { # every line of the output is an object with these keys
    local key
    for key in "$@"; do
        if [ "$(grep -c "\"$key\":" "$work/out")" != "$(wc -l <"$work/out")" ]; then fail "a line lacks the key $key"; fi
    done
}

test_usage() {
    run 2
    complains 'Usage: rooftile'
    run 2 nonsense
    complains "'nonsense' is no command"
    run 0 --version
    says '^rooftile [0-9]+\.[0-9]+\.[0-9]+'
    run 2 bench --nonsense
    run 2 bench -n 16
    complains '-k is missing'
    run 2 bench
    complains 'no shape'
    run 2 bench -n 16 -k 16 --compute f64
    complains "--compute: 'f64' is none of auto, f32, tf32, 16"
    run 2 bench -m 1..x -n 16 -k 16
    complains "-m: '1\.\.x'"
    run 2 bench -m 4..1 -n 16 -k 16
    run 2 bench -n 16 -k -16
    complains "-k: '-16'"
    run 2 bench -n 16 -k 16 --x f33
    complains "--x: 'f33'"
    run 2 bench -n 16 -k 16 --w q4_0:g32
    complains "--w: 'q4_0:g32': q4_0 has no scales apart"
    for part in frob gx g8x g-8 g ''; do
        run 2 bench -n 16 -k 16 --w "i4:$part"
        complains "--w: '$part' is neither the type of scales nor g<k>"
    done
    for part in g8:g16 f16:f32 zero:zero act:act; do
        run 2 bench -n 16 -k 16 --w "i4:$part"
        complains "--w: '${part#*:}' comes after another"
    done
    run 2 bench -n 16 -k 16 --w e2m1:zero
    complains '--w: e2m1 has no zero points'
    run 3 bench -m 1 -n 16 -k 16 --w i4:g12
    complains 'group_k = 12'
    run 3 bench -m 1 -n 0 -k 4611686018427387904 --w i4:act
    complains 'k = 4611686018427387904 is above 2\^31 - 1'
    run 3 bench -m 1 -n 1 -k 2147483648 --w i4:act # before 9 GB of data are made
    complains 'work: desc.w.k = 2147483648 is above 2\^31 - 1'
    run 3 bench -m 1 -n 8388608 -k 8388608
    complains 'no memory for a buffer of 281474976710656 bytes'
    run 3 bench -m 8388608 -n 16 -k 8388608
    complains 'no memory for the operands'
    run 2 bench -n 16 -k 16 --layout nx
    complains "--layout: 'nx'"
    run 2 bench -n 16 -k 16 --epi bias:frob
    complains "--epi: 'frob'"
    run 2 bench -n 16 -k 16 --epi :bias
    run 2 bench -n 16 -k 16 --epi clamp=-1/
    run 2 bench -n 16 -k 16 --threads 1025
    run 2 bench -n 16 -k 16 --threads 0
    complains "--threads: '0'"
    run 2 bench -n 16 -k 16 --dynamic --view
    run 2 bench -m 1 -n 16 -k 16 --vs frobblas
    complains 'frobblas'
    run 3 bench -m 1 -n 16 -k 16 --isa frob
    complains 'frob'
    run 3 bench -m 1 -n 16 -k 16 --kernel frob
    complains 'frob'
}

test_help() {
    local command width
    for command in info roofline model quantize bench explain jit check; do
        run 0 "$command" --help
        says "Usage: rooftile $command"
        width=$(awk '{ if (length($0) > w) w = length($0) } END { print w }' "$work/out")
        if [ "$width" -gt 80 ]; then fail "the help of $command is $width columns wide"; fi
    done
    run 0 --help
    says 'Exit codes'
}

test_info() {
    run 0 info
    says 'kernels +[0-9]+'
    run 0 info --json
    has_keys version commit isa_here isa_missing threads kernels
    RFT_MAX_ISA=ref run 0 info
    if [ "$(uname -m)" = x86_64 ]; then says 'not used +avx2: '; fi
    run 0 info --kernels
    says 'gemm_f32_f32_f32_[0-9]+x[0-9]+_ref'
    run 0 info --kernels --json
    has_keys kernel isa x w acc mr nr kr available
    run 0 info --env
    says 'RFT_NUM_THREADS'
}

test_explain() {
    run 0 explain -m 1,17 -n 33 -k 65
    says 'taken +g'
    run 0 explain -m 1,17 -n 33 -k 65 --json
    has_keys kernel m n k x w y layout epi flops min_bytes intensity explain
    if [ "$(wc -l <"$work/out")" != 2 ]; then fail 'two rows of m make two lines'; fi
    run 0 explain -m 4 -n 33 -k 65 --isa ref
    says 'taken +g[a-z0-9_]*_ref'
    run 0 explain -m 4 -n 33 -k 64 --x i8 --w q4_0 --y i8 --epi quantize_rows
    says 'taken .*x of i8 as given; y waits as f32'
}

test_bench() {
    local keys=(device kernel m n k x w y layout epi phase flops min_bytes intensity us us_min spread call_us tflops gbps bound
        bound_us pct_roof err err_limit cold threads peer)
    run 0 bench -m 1,5 -n 48 -k 64 "${quick[@]}" --json
    has_keys "${keys[@]}"
    says '"cold":true'
    run 0 bench -m 5 -n 48 -k 64 --x bf16 --y bf16 --epi bias:gelu_tanh "${quick[@]}"
    says 'GFLOP/s'
    says 'epilogue bias:gelu_tanh'
    if grep -q $'\033' "$work/out" "$work/err"; then fail 'colours belong to a terminal'; fi
    run 0 bench -m 5 -n 48 -k 64 --epi swiglu --unfused --warm "${quick[@]}" --json
    says '"name":"unfused"'
    says '"cold":false'
    for list in scale=0.5:bias@bf16:relu:silu:mul:add=0.5@bf16:clamp=-1/1 row_scale:col_scale:gelu gelu_tanh geglu geglu_tanh; do
        run 0 bench -m 5 -n 48 -k 64 --x bf16 --y bf16 --epi "$list" --unfused "${quick[@]}" --json
        says '"name":"unfused"' # which is left out where its numbers differ
    done
    run 0 bench -m 5 -n 48 -k 64 --epi mask:dropout=0.5 "${quick[@]}" --json
    run 0 bench -m 3 -n 48 -k 64 --layout tn --dynamic --batch 2 "${quick[@]}" --json
    says '"layout":"tn"'
    run 0 bench -m 3 -n 48 -k 64 --view --threads 1 "${quick[@]}" --json
    says '"threads":1'
    run 0 bench -m 1 -n 512 -k 64 --w q4_0 --vs read "${quick[@]}" --json
    says '"name":"read","version":"of packed W alone","us":[0-9.]+,"ratio":[0-9.]+'
    run 0 bench -m 3 -n 48 -k 64 --vs "onednn=$work/none.so" "${quick[@]}" --json
    complains 'cannot open'
}

# Codes with scales that lie apart, the last odd in k; the names of the table and of JSON say what --w said.
test_codes() {
    local w
    run 0 bench -m 1,5 -n 49 -k 96 --w i4:g32:f16 "${quick[@]}"
    says ' w i4:g32:f16 '
    says 'W MB +read % +peak %'
    for w in i8 u4:g64:zero e2m1:g32:e8m0 i4:g3x40:bf16; do
        run 0 bench -m 5 -n 49 -k 97 --w "$w" "${quick[@]}" --json
        says "\"w\":\"$w\""
        has_keys packed_bytes pct_read pct_peak
        run 0 check -m 5 -n 49 -k 97 --w "$w"
    done
    for w in i4:g32:act e2m1:g16:e4m3:over; do
        run 0 bench -m 5 -n 49 -k 96 --w "$w" "${quick[@]}" --json
        says "\"w\":\"$w\""
    done
    run 0 bench -m 5 -n 49 -k 96 --w i4:g32 --compute i8 "${quick[@]}" --json
    says '"kernel":"g[a-z]+_i8_q4_'
    run 0 bench -m 3 -n 48 -k 64 "${quick[@]}"
    if grep -q 'W MB' "$work/out"; then fail 'a W of floats has no columns of codes'; fi
    printf 'w u4:g32:zero\nm 2\n16 64\n' >"$work/shapes"
    run 0 explain --shapes "$work/shapes" --json
    says '"w":"u4:g32:zero"'
}

# x and y in 8 bits with their scales: beside codes and floats, groups that do not divide k, every way to the scales of y.
test_activations() {
    local x
    for x in i8 e4m3:g32 i8:g128; do
        run 0 bench -m 1,5 -n 48 -k 160 --x "$x" --w q4_0 "${quick[@]}" --json
        says "\"x\":\"$x\",\"w\":\"q4_0\",\"y\":\"f32\""
        run 0 bench -m 3 -n 48 -k 97 --x "$x" --w bf16 --batch 2 "${quick[@]}" --json
        run 0 explain -m 3 -n 48 -k 97 --x "$x" --w f32 --json
        says "\"x\":\"$x\""
    done
    run 0 bench -m 5 -n 48 -k 96 --x i8:g32 "${quick[@]}"
    says ' x i8:g32  w i8  y f32 '
    says 'g[a-z]+_i8_q8_'
    run 0 bench -m 5 -n 48 -k 64 --y i8 --epi silu:quantize "${quick[@]}" --json
    says '"err":0\.0' # in units of y, not of codes
    run 0 bench -m 0,5 -n 48 -k 64 --y e4m3 --epi swiglu:quantize "${quick[@]}" --json
    run 0 bench -m 5 -n 48 -k 64 --x i8 --w i4:g32 --y i8 --epi bias:quantize_rows=32 --batch 3 "${quick[@]}" --json
    says '"y":"i8".*"epi":"bias:quantize_rows=32"'
    run 0 bench -m 5 -n 48 -k 64 --x i8 --epi silu --unfused --vs read "${quick[@]}" --json
    says '"name":"unfused".*"name":"read"'
    run 0 bench -m 5 -n 48 -k 64 --y i8 --epi quantize --unfused "${quick[@]}"
    complains '--unfused: output in f16 or 8 bits'
    printf 'x i8:g64\nw q4_0\nm 2\n16 64\n' >"$work/shapes"
    run 0 bench --shapes "$work/shapes" "${quick[@]}" --json
    says '"x":"i8:g64","w":"q4_0"'
    run 2 bench -m 1 -n 8 -k 64 --x i8:g48
    complains "--x: 'g48' is not g<k> with a multiple of 32, or g0"
    run 2 bench -m 1 -n 8 -k 64 --x i8:32
    complains "--x: '32' is not g<k>"
    run 2 bench -m 1 -n 8 -k 64 --x bf16:g32
    complains "--x: 'bf16:g32': bf16 has no scales"
    run 2 bench -m 1 -n 48 -k 64 --x bf16:g0 --w i8
    complains '--x bf16:g0: floats are rounded by one scale a row with --compute i8 alone'
    run 0 bench -m 3 -n 48 -k 64 --x bf16:g0 --w i8 --compute i8 "${quick[@]}" --json
    says '"x":"bf16:g0","w":"i8"'
    run 2 bench -m 1 -n 8 -k 64 --x i8 --layout tn
    complains '--x i8 --layout tn: an x in 8 bits is K-contiguous'
    run 2 bench -m 1 -n 8 -k 64 --x e4m3 --device cuda:0
    complains '--x e4m3 --device cuda:0: activations in 8 bits run on the CPU alone'
    run 2 bench -m 1 -n 8 -k 64 --y i8 --epi bias
    complains '--y i8 --epi bias: a y in 8 bits needs a list that ends in quantize or quantize_rows'
    run 2 bench -m 1 -n 8 -k 64 --epi quantize
    complains '--y f32 --epi quantize: what that makes is a y of i8 or e4m3'
}

test_shapes() {
    printf '# two\nx bf16\nm 1,2\n16 32\n 32 16 3..4 # own rows\n' >"$work/shapes"
    run 0 explain --shapes "$work/shapes" --json
    if [ "$(wc -l <"$work/out")" != 4 ]; then fail 'the file holds four products'; fi
    says '"x":"bf16","w":"bf16"'
    run 0 explain --shapes "$work/shapes" --json --x f16
    says '"x":"f16"'
    run 0 explain --shapes "$work/shapes" -m 7 --json
    if [ "$(wc -l <"$work/out")" != 2 ]; then fail '-m overrides the rows of the file'; fi
    printf '16 32\n16\n' >"$work/shapes"
    run 2 explain --shapes "$work/shapes"
    complains 'shapes:2:'
    printf '# nothing\n' >"$work/shapes"
    run 2 explain --shapes "$work/shapes"
    run 4 explain --shapes "$work/missing"
    complains 'missing'
    run 4 explain --shapes "$work"
    complains 'directory'
    run 2 explain --shapes "$work/shapes" -n 3 -k 3
}

test_check() {
    run 0 check -m 1,13 -n 17 -k 3 --x bf16 --epi bias:gelu --seed 7
    says ' 0 failed'
    run 0 check --random 100 --json
    has_keys what problems refused failed worst
    run 0 check --isa ref --thin 40
    says 'chosen under ref'
    run 0 check --copies --jobs 3 --thin 60 --json
    has_keys what problems failed
    run 0 check --copies -m 3 -n 20 -k 9 --epi mask:swiglu:add=0:dropout=0.5 --batch 2 --view
    run 0 check -m 1,9 -n 40 -k 64 --x i8 --w q4_0 --y i8 --epi bias:quantize_rows=32
    says '2 problems, 0 failed'
    run 0 check -m 3 -n 20 -k 33 --x e4m3 --w f32 --y e4m3 --epi quantize --copies --batch 2
    run 0 check --random 100000 --seconds 0.3
    complains 'the time was up'
    run 0 check --random 50 --isa ref --threads 2
    run 0 check --random 50 --kernel gemm_f32_f32_f32_4x32_ref
    run 0 check -m 1,9 -n 40 -k 64 --x i8:g0 --w q4_0 --y e4m3 --epi quantize_rows
    run 2 check -m 1,9 -n 40 -k 64 --w q4_0 --y e4m3
    complains "--y e4m3 --epi none: a y in 8 bits needs a list that ends in quantize"
    run 2 check -m 1 -n 8 -k 33 --w q4_0
    complains "-m 1 -n 8 -k 33: desc.w: k = 33"
    run 2 check -m 1 -n 7 -k 8 --epi swiglu
    complains "desc.w.n = 7 is odd"
    run 3 check -m 1 -n 8388608 -k 8388608 # more than an address space holds proves nothing of a kernel
    complains "-m 1 -n 8388608 -k 8388608: x, w and y take more than the memory of this machine"
    run 1 check -m 1 -n 8 -k 32 --w q4_0 --dynamic
    complains "1 refused, the first: rft_plan_create: desc.flags has RFT_W_DYNAMIC, and desc.w.elem = q4_0 must be packed"
    for x in i8:g40 i8:g032 'i8:g 32' i8:g; do
        run 2 check -m 1 -n 8 -k 8 --x "$x"
        complains "--x: '${x#i8:}' is not g<k> with a multiple of 32"
    done
    run 2 check -m ' 1' -n 8 -k 8
    run 2 check -m 1 -n 8 -k 8 --epi 'scale= 2'
    run 2 check -m 1 -n 8 -k 8 --epi scale=nan
    run 2 check -m 1 -n 8 -k 8 --epi scale=1e39
    run 2 check --machine h100
    complains '--machine h100: nothing runs on a machine that is not here'
    run 3 check --device nope --random 5
    complains 'device = "nope" is neither'
    run 3 check -m 1 -n 16 -k 4294967297
    complains 'more than the memory of this machine'
    run 2 check --jobs 0
    complains '--jobs'
    run 2 check --kernel no_such_kernel
    complains '--kernel: no kernel is named "no_such_kernel"'
    run 2 check --isa frob
    complains '--isa: "frob"'
    run 2 check --random 0
    complains "--random: '0'"
}

test_roofline() {
    run 0 roofline --seconds 0.3
    says 'DRAM'
    says "saved to $RFT_CACHE_DIR/machine-cpu.json"
    run 0 info
    says 'profile +.*measured'
    run 0 roofline --show "$RFT_CACHE_DIR/machine-cpu.json" --json
    run 0 roofline --seconds 0.3 --threads 1 --output "$work/one.json" --json
    run 0 explain -m 1 -n 64 -k 64 --profile "$work/one.json"
    says 'bound'
    run 0 explain -m 1 -n 64 -k 64 --profile "$work/one.json" --json
    says '"kernel":"g'
    run 2 explain -m 1 -n 64 -k 64 --profile "$work/one.json" --isa ref
    complains '--isa'
    printf '{"rooftile_profile": 1' >"$work/damaged.json"
    run 4 explain -m 1 -n 64 -k 64 --profile "$work/damaged.json"
    run 4 roofline --show "$work/missing.json"
    rm -r "$RFT_CACHE_DIR"
}

test_model() {
    cat >"$work/config.json" <<'JSON'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
 "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
 "tie_word_embeddings": true, "torch_dtype": "bfloat16", "hidden_act": "silu"}
JSON
    run 0 model "$work/config.json"
    says 'lm_head +1 +1 +100 +64'
    says 'ffn_gate .*silu,mul'
    run 0 model "$work/config.json" --phase prefill:2x8 --json
    says '"layer":"attn_q"'
    says '"m":16'
    says '"totals"'
    cp "$work/config.json" "$work/"$'\377.json'
    run 0 model "$work/"$'\377.json' --json
    says '"totals":.*\?\.json'
    run 0 model "$work/config.json" --run "${quick[@]}"
    says 'measured'
    says 'random ones were run'
    run 0 model "$work/config.json" --run --x i8:g32 "${quick[@]}" --json
    says '"layer":"attn_q"'
    says '"x":"i8:g32"'
    run 0 model "$root/bench/models/mixtral-8x7b.json" --phase decode:8
    says 'expert_up +230.4 of 256 +3 +14336 +4096'
    says 'routing +[0-9.]+ GB of them read as expected, 25.50 GB to'
    run 0 model "$root/bench/models/mixtral-8x7b.json" --json
    says '"layer":"expert_up".*"experts":8,"experts_used":2,"runs":64.0'
    says '"active_parameters":12879925248'
    cat >"$work/turned.json" <<'JSON'
{"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 101, "n_positions": 32}
JSON
    run 0 model "$work/turned.json" --phase verify:2x8 --run "${quick[@]}"
    says 'attn_qkv: joins q\+k\+v, stored \[in, out\]'
    says 'lm_head +1 +16 +101 +64'
    run 0 model "$work/turned.json" --phase train:2x8 --run "${quick[@]}" --json
    says '"layout":"tn","epi":"add","phase":"train:2x8".*"layer":"lm_head","pass":"wgrad"'
    says '"layout":"nt".*"layer":"attn_qkv","pass":"dgrad"'
    run 0 model "$root/tests/fuzz/corpus/gguf/q4_0.gguf" --phase train:1x8 --run "${quick[@]}"
    says '^attn_q dgrad +1 +8 +32 +32  q4_0→bf16 '
    says '^attn_q wgrad +1 +32 +32 +8  bf16 +add '
    run 2 model "$work/turned.json" --phase train:1x8 --view
    complains '--phase train:1x8: not with --view'
    run 0 model "$work/turned.json" --phase train:1x8 --tp 2 --run "${quick[@]}"
    says '^attn_qkv dgrad +N +2 +8 +64 +96 .*all-reduce +2\.048 kB'
    says '^ffn_down +K +2 +8 +64 +128 .*all-reduce +2\.048 kB'
    says '^ffn_up wgrad +N +2 +64 +128 +8 '
    says '^each of 2 ranks holds [0-9.]+ kB of W, and sends [0-9.]+ kB in a step'
    run 0 model "$root/bench/models/whisper-large-v3.json" --phase decode:5
    says '^encoder: 32 layers on 1500 positions'
    says '^cross_attn_k +0 of 32 +7500 '
    says '^context 448;'
    cat >"$work/whisper.json" <<'END'
{"model_type": "whisper", "d_model": 64, "encoder_layers": 1, "encoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_layers": 1,
 "decoder_attention_heads": 4, "decoder_ffn_dim": 96, "num_mel_bins": 8, "max_source_positions": 50, "max_target_positions": 20,
 "vocab_size": 101}
END
    run 0 model "$work/whisper.json" --run "${quick[@]}"
    says '^enc_attn_q +- '
    says '^  measured ' # what does not run has no part in it
    run 0 model "$root/bench/models/gemma-3-1b.json"
    says '^a token sees the last 512 positions in 22 of the layers'
    run 0 model "$work/turned.json" --phase offline:3x8
    says 'lm_head +1 +24 +101 +64'
    run 0 model "$root/bench/models/deepseek-v3.json" --phase decode:32 --context 65536
    says 'kv_cache +- +147.4 GB'
    says 'context 65536'
    run 0 model "$work/config.json" --json
    says '"part":"attn_scores","phase":"decode:1","context":128'
    says '"totals":.*"step_bytes"'
    run 0 model "$root/bench/models/bert-base.json"
    says 'context 0;'
    run 2 model "$work/config.json" --phase offline:1x8 --context 1
    complains 'phase offline has no cache'
    run 2 model "$work/config.json" --context -1
    complains '--context'
    run 0 model "$root/bench/models/qwen2.5-7b.json" --tp 8
    says 'attn_q +N +28 +1 +512 +3584 .*28 heads do not divide by 8'
    says 'ffn_down +K +28 +1 +3584 +2368 +16974 .*all-reduce'
    says 'each of 8 ranks holds 1.870 GB'
    run 0 model "$root/tests/fuzz/corpus/gguf/q4_0.gguf" --tp 2 --json
    says '"layer":"ffn_down".*"divides":false,"note":"K = 16 is no multiple of blocks of 32"'
    says '"totals":.*"ranks":2,"tp":2,"ep":0,"rank_weight_bytes"'
    run 2 model "$work/config.json" --tp 0
    complains '--tp'
    LC_ALL=C sed 's/llama/mamba/g' "$root/tests/fuzz/corpus/gguf/q4_0.gguf" >"$work/unknown.gguf"
    run 0 model "$work/unknown.gguf" --run "${quick[@]}"
    says "architecture 'mamba' is not known: each matrix"
    says 'blk\.\*\.attn_q\.weight .*role unknown'
    run 0 model "$root/tests/fuzz/corpus/onnx/layers.onnx" --run "${quick[@]}"
    says '^an ONNX graph: the products by constant matrices'
    says '^/model/layers\.\*/up/MatMul +3 +1 +2 +32  f32  bias '
    run 0 model "$root/tests/fuzz/corpus/onnx/nbits.onnx" --run "${quick[@]}" --json
    says '"w":"nbits int4".*"layer":"a.weight"'
    run 4 model "$root/tests/fuzz/corpus/onnx/external.onnx"
    complains 'external.bin'
    run 3 model "$root/tests/fuzz/corpus/onnx/layers.onnx" --tp 2
    run 2 model "$work/unknown.gguf" --context 5
    complains "'mamba' is not known"
    run 0 model "$work/unknown.gguf" --json
    says '"layer":"token_embd.weight".*"role_unknown":true'
    sed 's/llama/mamba/' "$work/config.json" >"$work/unknown.json"
    run 3 model "$work/unknown.json"
    complains "config.json alone has no weights to list"
    run 2 model "$work/config.json" --phase decode
    complains '--phase'
    run 2 model
    run 2 model "$work/config.json" -n 16 -k 16
    run 4 model "$work/missing.gguf"
    printf 'GGUF\003\000\000\000' >"$work/short.gguf"
    run 3 model "$work/short.gguf"
}

# Experts dealt out: of 512 tokens 8 on a rank, 32 in a group; 58 blocks of 7168 values, 8 copies of each token.
test_experts() {
    local v3=$root/bench/models/deepseek-v3.json
    run 0 model "$v3" --phase decode:512 --ep 64 --tp 4 --machine h100
    says '^dispatch +-.* all-to-all +52\.38 MB +26\.61 MB to 53\.22 MB by routing'
    says '^expert_up +experts +232 of 232 +17 +2048 +7168 +29360 +8\.'
    says '^combine +-.* all-to-all +52\.38 MB +0 to 1\.676 GB by routing'
    says '^shared_down +K +58 +32 +7168 +512 .*all-reduce +39\.91 MB'
    says '^decode:512 is the step of all 64 ranks: each group of 4 has 32 of 512 sequences'
    says '^each of 64 ranks holds 30\.07 GB of W and 6\.25 % of the cache, reads 30\.07 GB of it as expected \(9\.640 GB'
    says '^its products take [0-9.]+ ms at their bound'
    run 0 model "$v3" --phase decode:512 --ep 64 --dispatch e4m3:g128 --machine h100 --json
    says '"exchange":"dispatch","phase":"decode:512","collective":"all-to-all","bytes":1.756103e9,"sent_bytes":2.701037e7'
    says '"layer":"expert_up".*"rank":.*"split":"experts","count":232,'
    says '"totals":.*"ranks":64,"tp":1,"ep":64,"rank_weight_bytes".*"rank_sent_bytes_max"'
    run 0 model "$root/bench/models/qwen1.5-moe-a2.7b.json" --ep 8 --phase decode:9
    says 'expert_up .*60 experts do not divide by 8'
    says 'each has at most 2 of 9 sequences'
    cat >"$work/mixtral.json" <<'JSON'
{"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
 "intermediate_size": 96, "vocab_size": 128, "num_local_experts": 4, "num_experts_per_tok": 2, "torch_dtype": "bfloat16"}
JSON
    run 0 model "$work/mixtral.json" --phase decode:8 --ep 4 --tp 2 --run "${quick[@]}"
    says '^expert_down +[0-9.]+ +[0-9.]+ % '
    says '^its products take [0-9.]+ ms'
    run 0 model "$work/mixtral.json" --phase decode:8 --ep 4 --tp 2 --run "${quick[@]}" --json
    says '"m":8,.*"us":null.*"layer":"attn_q".*"rank":.*"m":4,"n":32,"k":64,.*"us":[0-9]'
    run 0 why "$v3" expert_down --phase decode:512 --ep 64 --tp 4 --machine h100
    says '^a rank +has 232 of them, dealt out whole; dispatch sends 52\.38 MB'
    says '^M, N, K +17 x 7168 x 2048, 232 times'
    run 0 why "$v3" shared_down --phase decode:512 --ep 64 --tp 4 --machine h100 --json
    says '"m":32,"n":7168,"k":512,.*"rank":.*"collective":"all-reduce"'
    says '"exchange":"combine"'
    run 3 why "$root/tests/fuzz/corpus/gguf/q4_0.gguf" ffn_down --tp 2
    complains 'K = 16 is no multiple of blocks of 32'
    run 2 model "$work/mixtral.json" --ep 4 --tp 3
    complains '4 ranks are no whole groups of 3'
    run 2 model "$work/mixtral.json" --ep 0
    run 2 model "$work/mixtral.json" --dispatch e4m3
    complains 'without --ep'
    run 2 model "$work/mixtral.json" --ep 4 --dispatch nothing
    run 2 model "$work/mixtral.json" --ep 4 --dispatch q4_0
    complains "--dispatch: 'q4_0' is none of f32"
    run 2 model "$work/mixtral.json" --ep 4 --dispatch bf16:g0
    complains "--dispatch: 'bf16:g0': bf16 has no scales"
    run 0 model "$work/mixtral.json" --ep 4 --phase train:8x8
    says '^expert_up dgrad +experts +2 of 2 +32 +64 +96 '
    says 'sum of the gradients of W is not shown'
    run 3 model "$root/bench/models/llama-3.1-8b.json" --ep 4
    complains 'llama has no experts to deal out'
}

# What can be said of GPUs where there may be none.
test_gpu() {
    local machines=$root/bench/machines
    for gpu in h200 h100 a100 l40s rtx4090; do
        run 0 roofline --show "$machines/$gpu.json"
        says 'ffma_f32'
        run 0 explain --profile "$machines/$gpu.json" -m 1,16,512 -n 4096 -k 4096 --x bf16 --json
        has_keys kernel bound_us explain
        if grep -qE '"kernel":"(gemm_simt|)"' "$work/out"; then fail "a tensor core or GEMV kernel is taken on the $gpu"; fi
        run 0 explain --profile "$machines/$gpu.json" -m 7 -n 33 -k 65 --x f16 --w f32 --layout tn --epi bias:gelu
        says '^taken'
    done
    run 0 bench -n 16 -k 16 -m 1 --vs cublaslt "${quick[@]}"
    complains 'cublaslt: left out: it runs on GPUs'
    run 0 info
    if grep -q '^gpu *none' "$work/out"; then
        run 3 bench --device cuda:0 -n 16 -k 16
        complains 'RFT_E_DEVICE|RFT_E_JIT'
        run 3 check --device cuda:0
        complains 'context: '
    fi
}

# Data sheets by name, for machines that are not here.
test_machines() {
    local name
    for name in h200 h100 a100 l40s rtx4090 epyc-9654 xeon-8480; do
        run 0 roofline --show "$name"
        says '· spec '
        run 0 explain --machine "$name" -m 1,512 -n 4096 -k 4096 --x bf16 --json
        has_keys kernel bound_us explain
    done
    run 0 explain --machine xeon-8480 -m 512 -n 4096 -k 4096 --x bf16
    says '^taken +gemm_bf16_bf16_f32_32x32_amx'
    says 'on 56 threads .*spec profile of Intel'
    run 0 model "$root/bench/models/llama-3.1-8b.json" --machine rtx4090 --phase decode:1 --phase prefill:1x64
    says 'phase decode:1 · NVIDIA GeForce RTX 4090, 128 SMs \(spec\)'
    says 'phase prefill:1x64 · '
    says 'lm_head +gemv_bf16_bf16_f32'
    run 0 model "$root/tests/fuzz/corpus/gguf/q4_0.gguf" --machine "$root/bench/machines/h100.json" --json
    says '"device":"cuda".*"w":"q4_0→bf16".*"packed_bytes":null'
    RFT_VERBOSE=hint run 0 explain --machine h100 -m 4096 -n 2048 -k 1 --x bf16
    says '^taken +gemm_simt_'
    says '^slower +gemm_sm90_'
    if grep -q fallback "$work/err"; then fail 'a kernel that is chosen for its speed is no fallback'; fi
    run 3 explain --machine h100 -m 1 -n 64 -k 64 --w q4_0
    complains 'no kernel serves: gemv_f32_f32_f32_8x8 reads x of f32 and w of f32; they are f32 and q4_0'
    run 2 explain --machine frob -n 16 -k 16
    complains "no machine is named 'frob'; there are: a100, epyc-9654, h100, h200, l40s, rtx4090, xeon-8480"
    run 2 explain --machine ../machines/h100 -n 16 -k 16 --profile x.json
    complains 'one of them says which machine is meant'
    run 4 explain --machine "$work/none.json" -n 16 -k 16
    run 2 explain --machine h100 -n 16 -k 16 --isa ref
    complains '--isa: with --machine the choice is that machine'
    run 2 bench --machine h100 -n 16 -k 16
    complains '--machine h100: nothing runs on a machine that is not here'
    run 2 jit --machine epyc-9654 -n 16 -k 16
    complains 'kernels are compiled for GPUs'
    run 2 model "$root/bench/models/gpt2.json" --machine h100 --run
    complains '--machine h100 --run: nothing runs'
}

# Percent of a data sheet, and plots; no name ever becomes a command.
test_plots() {
    local measured=$root/bench/results/h200/machine-cuda.json
    run 0 roofline --show "$measured"
    says '^sm_90 +wgmma_bf16 +bf16 +964000 +210 +97\.4'
    says 'spec: data sheet of NVIDIA H200'
    run 0 roofline --show "$root/bench/results/emerald-rapids-16t/machine-cpu.json" --spec xeon-8480 --json
    says '"level":"DRAM".*"spec_gbps":307\.2,"pct_spec":29\.4'
    says '"op":"madd_i8".*"spec_gflops":null,"pct_spec":null'
    run 2 roofline --show "$measured" --plot picture.jpg
    complains "--plot: 'picture.jpg' is neither"
    PATH=$work/nowhere "$tool" roofline --show "$measured" --plot "$work/none.svg" >"$work/out" 2>"$work/err"
    if [ $? != 4 ]; then fail 'without gnuplot a plot is an error of 4'; fi
    complains 'gnuplot, which draws the plots, is not installed'
    if ! command -v gnuplot >/dev/null; then
        echo 'plots: there is no gnuplot, so none was drawn'
        return
    fi
    sed "s|NVIDIA H200|a'; system 'touch pwned'; \`touch pwned\`|; s|\"HBM\"|\"@x'\`y\`\"|" "$measured" >"$work/bad.json"
    cd "$work" || exit 1
    run 0 roofline --show "$work/bad.json" --plot "$work/it's \`a\` plot.svg"
    cd "$root" || exit 1
    if [ -e "$work/pwned" ]; then fail 'a name of a profile became a command'; fi
    if ! grep -q '</svg>' "$work/it's \`a\` plot.svg"; then fail 'no whole SVG was written'; fi
    run 0 roofline --show "$root/bench/results/zen4-2t/machine-cpu.json" --plot "$work/plot.png"
    if [ "$(head -c 4 "$work/plot.png" | tail -c 3)" != PNG ]; then fail 'no PNG was written'; fi
    run 0 roofline --show "$root/bench/results/zen4-2t/machine-cpu.json" --plot -
    says 'Bandwidth by threads'
    says 'FLOP/byte'
    run 4 roofline --show "$measured" --plot "$work/none/plot.svg"
}

test_jit() {
    run 2 jit
    complains 'nothing to compile'
    run 2 jit -n 16 -k 16
    complains 'compiled for GPUs'
    run 2 jit -n 16 -k 16 --profile "$root/bench/results/zen4-2t/machine-cpu.json"
    complains 'describes a "cpu" device'
    run 4 jit --prebuild "$work/none.gguf" --profile "$root/bench/machines/h200.json"
    timeout "$limit" "$tool" jit --prebuild "$root/tests/fuzz/corpus/gguf/q4_0.gguf" --machine h100 >"$work/out" 2>"$work/err"
    if grep -q 'no kernel serves' "$work/err"; then fail 'W of a type that a GPU has no kernel for is decoded, as by model'; fi
    timeout "$limit" "$tool" jit -n 64 -k 64 -m 1 --x f16 --profile "$root/bench/machines/a100.json" >"$work/out" 2>"$work/err"
    if grep -qi 'nvrtc' "$work/err"; then
        echo "jit: no NVRTC here, so nothing was compiled"
        return
    fi
    says '1 product,'
    run 0 jit -n 64 -k 64 -m 1 --x f16 --profile "$root/bench/machines/a100.json" --json
    has_keys m_min n k seconds
}

for part in usage help info explain bench codes activations shapes check roofline model experts gpu machines plots jit; do
    "test_$part"
done
if [ "$failures" != 0 ]; then
    echo "$failures failed"
    exit 1
fi
echo "all passed"
