#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The grammar of names, and the length of functions:
#   public rft_noun_verb, across files rft__x, static in a .c file without prefix, no type of ours in _t
#   kernels <op>_<x>_<w>_<acc>_<MR>x<NR>_<isa>, one row of kernels_<isa>.def each; op is gemm, gemv, dot, axpy or sums
#   functions of at most 60 lines, kernels of at most 150
# Functions and types are found by universal-ctags; without it that part is skipped and says so.

set -euo pipefail
cd "$(dirname "$0")/.."

MAX_FUNCTION=60
MAX_KERNEL=150

# Rows are KERNEL(op, x, w, MR, NR, KR, family, ...), and CODES with bits and offset in place of w; sums are f32, the ISA is
# the folder, and ends the family's name.
check_kernel_rows() {
    local def
    for def in src/cpu/*/kernels_*.def; do
        if [ -e "$def" ]; then tr ',()' '   ' <"$def" | awk -v def="$def" '
            BEGIN { n = split(def, parts, "/"); isa = parts[n - 1]; type = "^(f32|f16|bf16)$"
                    if (parts[n] != "kernels_" isa ".def") print def ": should be called kernels_" isa ".def" }
            $1 != "KERNEL" && $1 != "CODES" { next }
            {
                x = $1 == "CODES" ? "^(f32|i8)$" : type; w = $1 == "CODES" ? "^(q[2-8][mz]?|f8)$" : type
                name = $2 "_" $3 "_" $4 "_f32_" $5 "x" $6 "_" isa
                at = def ":" NR ": "
                if ($2 !~ /^(gemm|gemv|dot|axpy|sums)$/ || $3 !~ x || $4 !~ w || $5 $6 !~ /^[0-9]+$/)
                    print at name " is not <op>_<x>_<w>_<acc>_<MR>x<NR>_<isa>"
                if (name in first) print at name " has a row already, line " first[name]
                if ($8 !~ "^rft__[a-z0-9_]+_" isa "$") print at "the family " $8 " should be called rft__..._" isa
                first[name] = NR
            }'; fi
    done
}

# Macros that stand for `static ...` would hide it from ctags.
static_macros() {
    grep -rhoE '^#[ ]*define [A-Z_]+ static( inline)?' src model cblas 2>/dev/null |
        sed -E 's/^#[ ]*define ([A-Z_]+) (static.*)$/-D\1=\2/' | sort -u
}

# One line a definition, file|line|end|name|scope|kind, where scope is "file" for a static one.
definitions() {
    local macros folder folders=()
    mapfile -t macros < <(static_macros)
    for folder in include src model cblas cli examples tests; do
        if [ -d "$folder" ]; then folders+=("$folder"); fi
    done
    find "${folders[@]}" -name '*.[ch]' | sort | ctags "${macros[@]}" -L - -f - --languages=C,C++ --langmap=C:.c.h \
        --kinds-C=fstug -x --sort=no --_xformat='%F|%n|%{end}|%N|%f|%K'
}

check_definitions() {
    definitions | awk -F '|' -v max_function="$MAX_FUNCTION" -v max_kernel="$MAX_KERNEL" '
        function say(text) { printf "%s:%d: %s\n", $1, $2, text }
        { file = $1; begin = $2; end = $3; name = $4; scope = $5; kind = $6
          library = file ~ /^(include|src|model|cblas)\//; header = file ~ /\.h$/ }
        name ~ /^[A-Z0-9_]+$/ { next } # a macro call that looks like a definition
        kind != "function" {
            if (name ~ /_t$/ && name !~ /^__anon/) say("type " name " ends in _t, which belongs to libc")
            next
        }
        file ~ /_body\.h$/ { library = 0 } # text that a .c file instantiates: its functions are static there
        # The macro of a table pastes rft__decode_<format>; one that no header needs may be static.
        library && !header && scope == "file" && name ~ /^rft_/ && name !~ /^rft__decode_/ { say(name " is static here, so it needs no prefix") }
        library && scope != "file" && name !~ /^rft_[a-z0-9_]+$/ && !(name ~ /^cblas_[a-z]+/ && file ~ /^(include\/rooftile_cblas\.h$|cblas\/)/) {
            say(name " is visible to other files, so it begins with rft_ or rft__") }
        library && header && scope == "file" && name !~ /^rft_[a-z0-9_]+$/ { say(name " is shared by a header, so it begins with rft_ or rft__") }
        end != "" && end - begin + 1 > (limit = file ~ /^src\/cpu\/[^\/]+\// ? max_kernel : max_function) {
            say(name " has " end - begin + 1 " lines, at most " limit " are allowed")
        }'
}

found=$(
    check_kernel_rows
    if ctags --version 2>/dev/null | grep Universal >/dev/null; then
        check_definitions
    else
        echo "names: functions and types are not checked, because universal-ctags is not installed" >&2
    fi
)
if [ -n "$found" ]; then
    echo "$found"
    exit 1
fi
echo "names: kernel rows, functions and types keep the grammar"
