#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a library shows to the linker:
#   tools/check_symbols.sh LIBRARY.a LIBRARY.so
# The archive defines rft_ and rft__ symbols only, that of the CBLAS functions also cblas_; the shared library exports exactly
# what its public headers declare with RFT_API (librooftile_model: rooftile_model.h; librooftile_cblas: rooftile_cblas.h;
# librooftile: all other headers).

set -euo pipefail

if [ $# -ne 2 ]; then
    echo "usage: $0 LIBRARY.a LIBRARY.so" >&2
    exit 2
fi
ARCHIVE=$1
SHARED=$2
INCLUDE=$(dirname "$0")/../include

prefix='rft_'
case $(basename "$SHARED") in librooftile_cblas.*) prefix='(rft__|cblas_)' ;; esac

headers() {
    case $(basename "$SHARED") in
    librooftile_cblas.*) echo "$INCLUDE/rooftile_cblas.h" ;;
    librooftile_model.*) echo "$INCLUDE/rooftile_model.h" ;;
    *) find "$INCLUDE" -name '*.h' ! -name rooftile_model.h ! -name rooftile_cblas.h ;;
    esac
}

# The declarations of the named headers themselves; the preprocessor's line marks tell whose text it is.
declared() {
    local header
    for header in $(headers); do
        "${CC:-cc}" -E -DRFT_API=RFT_EXPORTED -I "$INCLUDE" "$header" | awk -v own="$header" '
            /^# [0-9]+ "/ { mine = index($0, "\"" own "\"") > 0; next }
            mine'
    done | tr '\n' ' ' | grep -oE 'RFT_EXPORTED[^][;({=]*' | grep -oE '(rft|cblas)_[a-z0-9_]+ *$' | tr -d ' ' | sort -u
}

foreign=$(nm -g --defined-only "$ARCHIVE" | awk -v own="^$prefix" 'NF == 3 && $3 !~ own { print $3 }' | sort -u)
exported=$(nm -D --defined-only "$SHARED" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u)
expected=$(declared)

bad=0
report() { # TEXT NAMES
    if [ -n "$2" ]; then
        printf '%s:\n' "$1"
        printf '    %s\n' $2
        bad=1
    fi
}
report "$ARCHIVE defines global symbols without the prefix $prefix" "$foreign"
report "$SHARED does not export what its headers declare" "$(comm -13 <(echo "$exported") <(echo "$expected"))"
report "$SHARED exports what no public header declares" "$(comm -23 <(echo "$exported") <(echo "$expected"))"
[ "$bad" -eq 0 ] && echo "symbols: $(basename "$SHARED") exports the $(echo "$expected" | wc -w) functions of its headers"
exit "$bad"
