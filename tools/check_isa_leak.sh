#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# No instruction of a newer CPU outside its folder: every object of a static library is disassembled.
#   tools/check_isa_leak.sh LIBRARY.a
# Objects outside src/cpu/<isa>/ (and src/cpu/ref/) hold the baseline of x86-64; avx2 has neither zmm, mask nor the
# upper registers, and avx2vnni above it only the VEX form of vpdpbusd; avx512 has no BF16 instruction; none but amx has tile registers. An object is found in the tree by its file name, which is unique.

set -euo pipefail

if [ $# -ne 1 ]; then
    echo "usage: $0 LIBRARY.a" >&2
    exit 2
fi
ARCHIVE=$(realpath "$1")
cd "$(dirname "$0")/.."

# grep reads to the end: one that quits early kills its writer, and pipefail calls that a failure.
if ! objdump -f "$ARCHIVE" | grep 'architecture: i386:x86-64' >/dev/null; then
    echo "isa: skipped, $(basename "$ARCHIVE") is not for x86-64"
    exit 0
fi

levels() { find src/cpu -mindepth 2 -name '*.c' | awk -F/ '{ print $4 ".o", $3 }'; }

objdump -d --no-show-raw-insn "$ARCHIVE" | awk -v archive="$(basename "$ARCHIVE")" '
    function leak(what) {
        if (shown[object, what]++) return
        printf "%s(%s): %s in %s, which is built for %s:\n    %s\n", archive, object, what, place, level, $0
        bad = 1
    }
    FILENAME != "-" { level_of[$1] = $2; next }
    / file format / { object = $1; sub(/:$/, "", object); objects++
                      level = object in level_of ? level_of[object] : "ref"; next }
    /^[0-9a-f]+ </ { place = $2; sub(/:$/, "", place); next }
    !/^ +[0-9a-f]+:\t/ { next }
    { op = $2 }
    level == "ref" {
        if (/%[yz]mm/ || op ~ /^v[a-z]/ || /%k[0-7]/) leak("AVX instruction")
        else if (op ~ /^(andn|bextr|bls[irm]|bls(msk)|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|[lt]zcnt|popcnt|movbe|crc32)[lqwb]?$/) leak("BMI instruction")
    }
    /\{vex\}/ && level != "avx2vnni" { leak("AVX-VNNI instruction") }
    level ~ /^avx2/ && op ~ /^vpdp/ { leak("AVX-512 VNNI instruction") }
    level ~ /^avx2/ && (/%zmm/ || /%k[0-7]/ || /%[xy]mm(1[6-9]|2[0-9]|3[01])/) { leak("AVX-512 instruction") }
    (level ~ /^avx2/ || level == "avx512") && op ~ /^v(dpbf16ps|cvtne)/ { leak("AVX512-BF16 instruction") }
    level != "amx" && op ~ /^(ldtilecfg|sttilecfg|tile(load|store|zero|release)|tdp)/ { leak("AMX instruction") }
    END { if (!bad) printf "isa: %d objects of %s keep to their folder'"'"'s instructions\n", objects, archive; exit bad }
' <(levels) -
