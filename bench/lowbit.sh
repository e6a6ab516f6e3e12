#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Low-bit weights on the CPU beside other libraries, as Markdown: in 8 bits, x rounded or given, beside ggml and oneDNN, and exact
# beside oneDNN's weight decompression. Memory of the same rounds is a contender (read); peaks come from a profile that is measured first.
#   GGML=/path/libggml-cpu.so ONEDNN=/path/libdnnl.so.3 bench/lowbit.sh build/rooftile > tables.md
# A peer without a path is left out. Five minutes on two cores that have nothing else to do; THREADS is 2 where it is not given.

set -u
tool=$(realpath "${1:?usage: bench/lowbit.sh ROOFTILE}")
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RFT_CACHE_DIR=$work/cache OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
threads=${THREADS:-2}
ggml=${GGML:+,ggml=$GGML}
onednn=${ONEDNN:+,onednn=$ONEDNN}
onednn_both=${ONEDNN:+,onednn=$ONEDNN,onednn-u8=$ONEDNN}

# row THREADS PEERS ARGS...: a result above its roof ends with 1, which a stale profile can cause; its message is shown.
row() {
    local count=$1 peers=$2
    shift 2
    "$tool" bench --threads "$count" --vs "read$peers" --time 0.06 --rounds 5 --json "$@" >>"$work/rows" || [ $? = 1 ] || exit 1
}

shapes=(--shapes "$root/bench/shapes/lowbit_llama.txt")
small=(-m 1,4,16,64,512 -n 4096 -k 4096)

"$tool" roofline --threads "$threads" --seconds 6 >"$work/roofs" || exit 1
for w in q4_0 q4_1 q4_k q8_0 q6_k mxfp4 iq4_nl; do
    row "$threads" "$ggml" "${shapes[@]}" --w "$w" --compute i8
done
row "$threads" "$onednn_both" "${shapes[@]}" --w i8 --compute i8
row "$threads" "$onednn_both" "${shapes[@]}" --w i8 --x i8
row "$threads" "$onednn_both" "${shapes[@]}" --w i4:g128 --compute i8
row "$threads" "$onednn" "${shapes[@]}" --w i4:g128
row "$threads" "$onednn" "${shapes[@]}" --w i8
row "$threads" "" "${small[@]}" --w q4_0
row "$threads" "" "${small[@]}"
for w in q4_0 q8_0; do
    row 1 "$ggml" "${small[@]}" --w "$w" --compute i8
done
row 1 "$onednn_both" "${small[@]}" --w i8 --compute i8
row 1 "$onednn_both" "${small[@]}" --w i8 --x i8
row 1 "$onednn" "${small[@]}" --w i4:g128

sed 's/^./    &/' "$work/roofs"
echo
"$root/bench/compare.py" "$work/rows"
