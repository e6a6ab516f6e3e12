# SPDX-License-Identifier: Apache-2.0
#
# What the scripts of this folder begin with: a folder of their own, and words to run the tool ($1) and to look at what it says.
# Sourced, not run.

set -u
tool=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RFT_CACHE_DIR=$work/cache
unset RFT_MAX_ISA RFT_STRICT RFT_VERBOSE OPENBLAS_CORETYPE
failures=0
quick=(--time 0.01 --rounds 2)
limit=${RFT_TEST_SECONDS:-120} # of one command: what takes longer hangs, or counts its lines on a busy machine

fail() {
    echo "FAIL: $1" >&2
    sed 's/^/    /' "$work/out" "$work/err" >&2
    failures=$((failures + 1))
}

# run CODE ARGS...: output in $work/out, messages in $work/err.
run() {
    local want=$1 got
    shift
    timeout "$limit" "$tool" "$@" >"$work/out" 2>"$work/err"
    got=$?
    if [ "$got" != "$want" ]; then fail "exit code $got, not $want: rooftile $*"; fi
}

says() { # in the output
    if ! grep -qE -- "$1" "$work/out"; then fail "the output should match: $1"; fi
}

complains() { # in the messages
    if ! grep -qE -- "$1" "$work/err"; then fail "the messages should match: $1"; fi
}
