#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The rules of the tree, file by file:
#   - an #include "..." reaches only the layers that tools/layers.txt names
#   - a file name occurs once in the whole tree
#   - a source file has at most 600 lines and opens with the SPDX line
#   - a line of a source file has at most 130 columns; no tab, no space at a line's end, a newline at the file's end, a function's brace on the line of its name
# Prints one line a violation, as file:line: text.

set -euo pipefail
cd "$(dirname "$0")/.."

MAX_LINES=600
MAX_COLUMNS=130

tree() { find . \( -path ./build -o -path ./.git -o -path ./.cache \) -prune -o -type f -print | sed 's|^\./||' | sort; }
sources() { tree | grep -E '^(src|model|cblas|cli|tests|examples|include)/.*\.(c|h|cpp|def|cu|cuh)$' || true; }

check_includes() {
    # shellcheck disable=SC2046  # file names in the tree have no spaces
    awk '
        function folder(path, parts, n) { # the layer of a path: its line in layers.txt
            n = split(path, parts, "/")
            if (parts[1] == "src") return parts[2]
            if (parts[1] == "tests") return parts[1] "/" parts[2]
            return parts[1]
        }
        function subfolder(path) { # "cpu/avx2" of src/cpu/avx2/x.c, "" where the layer has no subfolder
            sub(/^src\//, "", path)
            return match(path, /^[^\/]+\/[^\/]+\//) ? substr(path, 1, RLENGTH - 1) : ""
        }
        function say(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; bad = 1 }
        function lies_in(dir, name,   rc, line) { rc = (getline line < (dir "/" name)); close(dir "/" name); return rc >= 0 }

        FILENAME == "tools/layers.txt" {
            sub(/#.*/, "")
            if (split($0, half, ":") < 2) next
            layer = half[1]; known[layer] = 1; order[layer] = ++count
            n = split(half[2], names, " ")
            for (i = 1; i <= n; i++) {
                if (names[i] != "*" && !(names[i] in known)) say("layer " names[i] " must stand above " layer)
                allowed[layer, names[i]] = 1
            }
            next
        }
        FNR == 1 {
            here = folder(FILENAME); inner = subfolder(FILENAME)
            dir = FILENAME; sub(/\/[^\/]*$/, "", dir)
            if (here != "include" && !(here in known)) say("folder " here " has no line in tools/layers.txt")
            if (inner ~ /^cpu\// && !(inner in known)) say("ISA level " inner " has no line in tools/layers.txt")
        }
        match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]+"/) {
            target = $0; sub(/^[^"]*"/, "", target); sub(/".*/, "", target)
            if (target ~ /\.\./) { say("include \"" target "\" climbs out of its folder; name it from the source root"); next }
            if (here == "cli" && lies_in("cli", target)) next
            if (target !~ /\//) {
                if (lies_in("include", target) || target == "rft_build_info.h") next
                if (inner == "cuda/kernels" && target == "config.h") next # made for each kernel, see src/cuda/jit.h
                if (here !~ /^(model|cblas|cli|examples|tests\/)/ && here != "include" && !lies_in(dir, target)) say("\"" target "\" is neither public nor beside this file")
                else if (here ~ /^(cblas|cli|examples|tests\/api|tests\/check)$/ && !lies_in(dir, target)) say(here " may include public headers and its own only, not \"" target "\"")
                next
            }
            there = folder(target ~ /^(model|cli|tests)\// ? target : "src/" target)
            if (there != here && !((here, there) in allowed) && !((here, "*") in allowed))
                say(here " may not include " there ": \"" target "\"")
            other = subfolder("src/" target)
            if (other ~ /^cpu\// && inner ~ /^cpu\// && other != inner && !((inner, other) in allowed))
                say(inner " may not include " other ": \"" target "\"")
        }
        END { exit bad }
    ' tools/layers.txt $(sources)
}

# Data, results and corpora are named by what they hold, and some names are the habit of a tool.
check_unique_names() {
    tree | grep -vE '^(tests/data|tests/fuzz/corpus|bench/results)/' | awk -F/ '
        $NF ~ /^(CMakeLists\.txt|README\.md|flags\.cmake)$/ { next }
        $NF in first { printf "%s: the name is taken by %s\n", $0, first[$NF]; bad = 1; next }
        { first[$NF] = $0 }
        END { exit bad }'
}

check_lengths() {
    local file lines bad=0
    while read -r file; do
        lines=$(wc -l <"$file")
        if [ "$lines" -gt "$MAX_LINES" ]; then
            echo "$file: $lines lines, at most $MAX_LINES are allowed"
            bad=1
        fi
    done < <(tree | grep -E '\.(c|h|cpp|cu|cuh|sh|cmake|py)$')
    return "$bad"
}

check_heads() {
    local file bad=0
    while read -r file; do
        if ! head -n 2 "$file" | grep 'SPDX-License-Identifier: Apache-2.0' >/dev/null; then
            echo "$file:1: the SPDX line is missing"
            bad=1
        fi
    done < <(tree | grep -E '\.(c|h|cpp|cu|cuh|def|sh|cmake|py)$')
    return "$bad"
}

check_form() {
    local file bad=0
    while read -r file; do
        if grep -nHP '\t|[ \t]+$' "$file"; then
            echo "$file: tabs or spaces at the end of the lines above"
            bad=1
        fi
        if [ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ]; then
            echo "$file: no newline at the end"
            bad=1
        fi
        if [[ $file =~ \.(c|h|cpp|cu|cuh|def)$ ]] && grep -nHE "^.{$((MAX_COLUMNS + 1)),}" "$file"; then
            echo "$file: lines of at most $MAX_COLUMNS columns are allowed"
            bad=1
        fi
        if [[ $file == *.[ch] ]] && grep -nHB 1 '^{$' "$file"; then
            echo "$file: a function's brace stands on the line of its name"
            bad=1
        fi
    done < <(tree | grep -E '\.(c|h|cpp|cu|cuh|def|sh|cmake|py|md)$')
    return "$bad"
}

failed=0
for check in check_includes check_unique_names check_lengths check_heads check_form; do
    "$check" || failed=1
done
[ "$failed" -eq 0 ] && echo "layers: $(sources | wc -l) sources keep the rules"
exit "$failed"
