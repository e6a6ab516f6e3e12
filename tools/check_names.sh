#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The grammar of names, and the length of functions:
#   public rft_noun_verb, across files rft__x, static in a .c file without prefix, no type of ours in _t
#   kernels <op>_<x>_<w>_<acc>_<MR>x<NR>_<isa>, one row of kernels_<isa>.def each
#   functions of at most 60 lines, kernels of at most 150
# Functions and types are found by universal-ctags; without it that part is skipped and says so.

set -euo pipefail
cd "$(dirname "$0")/.."

MAX_FUNCTION=60
MAX_KERNEL=150

# Rows are NAME(op, x, w, acc, MR, NR, ...); the ISA is the folder.
check_kernel_rows() {
    local def isa
    for def in src/cpu/*/kernels_*.def; do
        [ -e "$def" ] || continue
        isa=$(basename "$(dirname "$def")")
        if [ "$(basename "$def")" != "kernels_$isa.def" ]; then echo "$def: should be called kernels_$isa.def"; fi
        grep -nE '^[A-Z_]+\(' "$def" | sed -E 's/:[A-Z_]+\(/ /; s/[,)]/ /g' | awk -v def="$def" -v isa="$isa" '{
            name = $2 "_" $3 "_" $4 "_" $5 "_" $6 "x" $7 "_" isa
            if (name !~ /^(gemm|gemv)(_(f32|f16|bf16|i8|u8|e4m3|e5m2|i32|q[0-9a-z]+))(_(f32|f16|bf16|i8|u8|e4m3|e5m2|i32|q[0-9a-z]+))_(f32|i32)_[1-9][0-9]*x[1-9][0-9]*_[a-z0-9]+$/)
                print def ":" $1 ": \"" name "\" is not <op>_<x>_<w>_<acc>_<MR>x<NR>_<isa>"
            else if (name in seen) print def ":" $1 ": " name " has a row already"
            seen[name] = 1
        }'
    done
}

# Macros that stand for `static ...` would hide it from ctags.
static_macros() {
    grep -rhoE '^#[ ]*define [A-Z_]+ static( inline)?' src model 2>/dev/null |
        sed -E 's/^#[ ]*define ([A-Z_]+) (static.*)$/-D\1=\2/' | sort -u
}

# One line a definition: file line end name scope kind, where scope is "file" for a static one.
definitions() {
    local macros folder folders=()
    mapfile -t macros < <(static_macros)
    for folder in include src model cli examples tests; do
        if [ -d "$folder" ]; then folders+=("$folder"); fi
    done
    find "${folders[@]}" -name '*.[ch]' | sort | ctags "${macros[@]}" -L - -f - --languages=C,C++ --langmap=C:.c.h \
        --kinds-C=fstug -x --sort=no --_xformat='%F %n %{end} %N %f %K'
}

check_definitions() {
    definitions | awk -v max_function="$MAX_FUNCTION" -v max_kernel="$MAX_KERNEL" '
        function say(text) { printf "%s:%d: %s\n", $1, $2, text }
        { file = $1; begin = $2; end = $3; name = $4; scope = $5; kind = $6
          library = file ~ /^(include|src|model)\//; header = file ~ /\.h$/ }
        name ~ /^[A-Z0-9_]+$/ { next } # a macro call that looks like a definition
        kind != "function" {
            if (name ~ /_t$/ && name !~ /^__anon/) say("type " name " ends in _t, which belongs to libc")
            next
        }
        # The macro of a table pastes rft__decode_<format>; one that no header needs may be static.
        library && !header && scope == "file" && name ~ /^rft_/ && name !~ /^rft__decode_/ { say(name " is static here, so it needs no prefix") }
        library && scope != "file" && name !~ /^rft_[a-z0-9_]+$/ { say(name " is visible to other files, so it begins with rft_ or rft__") }
        library && header && scope == "file" && name !~ /^rft_[a-z0-9_]+$/ { say(name " is shared by a header, so it begins with rft_ or rft__") }
        end != "" && end - begin + 1 > (limit = file ~ /^src\/cpu\/[^\/]+\// ? max_kernel : max_function) {
            say(name " has " end - begin + 1 " lines, at most " limit " are allowed")
        }'
}

found=$(
    check_kernel_rows
    if ctags --version 2>/dev/null | grep -q Universal; then
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
