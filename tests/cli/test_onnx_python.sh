#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What rooftile model lists of ONNX files that the package onnx wrote, and that each row runs right on the file's weights. Called by
# ctest with the path of the tool; skipped with the reason where it is missing (tools/setup.sh python fetches it).

set -u
tool=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RFT_CACHE_DIR=$work/cache
if ! python3 -c 'import ml_dtypes, numpy, onnx' 2>"$work/err"; then
    echo "skipped: $(tail -n 1 "$work/err"); tools/setup.sh python fetches ml_dtypes, numpy and onnx"
    exit 77
fi
python3 "$here/make_onnx.py" "$work" >"$work/list" || exit 1
failures=0
while IFS=$'\t' read -r file row count n k stored layout epilogue bytes; do
    "$tool" model "$work/$file.onnx" --run --time 0.01 --rounds 1 --json >"$work/out" 2>"$work/err" || {
        echo "FAIL: $file"; cat "$work/out" "$work/err"; failures=$((failures + 1)); continue
    }
    want="\"n\":$n,\"k\":$k,.*\"layout\":\"$layout\",\"epi\":\"$epilogue\".*\"us\":[0-9.]+.*\"layer\":\"${row//\*/\\*}\",\"pass\":\"forward\",\"count\":$count,\"stored\":\"$stored\",\"weight_bytes\":$bytes,"
    grep -qE -- "$want" "$work/out" || { echo "FAIL: $file should have $want"; cat "$work/out"; failures=$((failures + 1)); }
done <"$work/list"
echo "$(wc -l <"$work/list") rows, $failures failed"
[ "$failures" = 0 ]
