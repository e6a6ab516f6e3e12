#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Which lines and branches the tests run: builds with gcc's counters in build/coverage, runs the tests that need no GPU, and
# writes summary.txt (by folder) and index.html (by line) there. docs/coverage.md says what is left out, and why.
#   tools/coverage.sh            all of them but those that compile kernels, or run them under the emulator, for minutes
#   tools/coverage.sh -L unit    only what ctest takes by these options

set -euo pipefail
cd "$(dirname "$0")/.."

export PATH=$PWD/build/tools/cmake/cmake/data/bin:$PATH # where tools/setup.sh puts a newer cmake
nvrtc=$(compgen -G "$PWD/build/tools/nvrtc/nvidia/*/lib/libnvrtc.so.1[23]" | head -n 1 || true)
if [ -n "$nvrtc" ]; then export RFT_NVRTC=${RFT_NVRTC:-$nvrtc}; fi
export PYTHONPATH=$PWD/build/tools/python RFT_TEST_SECONDS=600 # a command takes longer where its lines are counted
OUT=build/coverage
[ $# -gt 0 ] || set -- -L 'unit|api|check|cli|python' -LE 'nvrtc|emulated'

cmake -S . -B "$OUT" -G Ninja -DCMAKE_BUILD_TYPE=None "-DCMAKE_C_FLAGS=-O1 -g" -DRFT_COVERAGE=ON -DRFT_EXAMPLES=OFF >"$OUT.log"
cmake --build "$OUT" >>"$OUT.log" || { tail -n 40 "$OUT.log"; exit 1; }
find "$OUT" -name '*.gcda' -delete
ctest --test-dir "$OUT" --output-on-failure -j "$(nproc)" "$@" || echo "some tests failed: what they would have run is not counted"
python3 -m gcovr --root . --object-directory "$OUT" --filter 'src/' --filter 'model/' --filter 'cli/' --filter 'cblas/' \
    --merge-mode-functions merge-use-line-min --gcov-ignore-errors all --gcov-ignore-parse-errors all -j "$(nproc)" \
    --json "$OUT/lines.json" --html-nested "$OUT/index.html" >>"$OUT.log" 2>&1 || { tail -n 20 "$OUT.log"; exit 1; }
python3 - "$OUT/lines.json" <<'SUM' | tee "$OUT/summary.txt"
import collections, json, os, sys
folders = collections.defaultdict(lambda: [0, 0, 0, 0])
for f in json.load(open(sys.argv[1]))["files"]:
    for key in (os.path.dirname(f["file"]), "all"):
        row = folders[key]
        for line in f["lines"]:
            if line.get("gcovr/noncode"):
                continue
            branches = line.get("branches", [])
            row[0] += 1
            row[1] += line["count"] > 0
            row[2] += len(branches)
            row[3] += sum(b["count"] > 0 for b in branches)
print("| folder | lines | run | branches | taken |\n|---|---:|---:|---:|---:|")
for name, (lines, run, branches, taken) in sorted(folders.items(), key=lambda x: (x[0] == "all", x[0])):
    print(f"| {name} | {lines} | {100 * run / max(lines, 1):.1f} % | {branches} | {100 * taken / max(branches, 1):.1f} % |")
SUM
