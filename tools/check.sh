#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that a change must pass, stage by stage; called by `make check` and by continuous integration.
#   tools/check.sh             all stages
#   tools/check.sh gcc tools   only these
# Each stage builds in build/check/<stage>. The last line sums up all tests, builds and scripts.

set -uo pipefail
cd "$(dirname "$0")/.." || exit

export PATH=$PWD/build/tools/cmake/cmake/data/bin:$PATH # where tools/setup.sh puts a newer cmake
nvrtc=$(compgen -G "$PWD/build/tools/nvrtc/nvidia/*/lib/libnvrtc.so.1[23]" | head -n 1) # where it puts NVRTC
if [ -n "$nvrtc" ]; then export RFT_NVRTC=${RFT_NVRTC:-$nvrtc}; fi
export PYTHONPATH=$PWD/build/tools/python${PYTHONPATH:+:$PYTHONPATH} # where it puts Python packages
ROOT=build/check
JOBS=$(nproc)
RFT_FUZZ_SECONDS=${RFT_FUZZ_SECONDS:-60}
STAGES=(tools gcc clang aarch64 asan tsan fuzz)
GCC=gcc GXX=g++
if [ "$(gcc -dumpversion | cut -d. -f1)" -lt 12 ]; then GCC=gcc-12 GXX=g++-12; fi

passed=0 failed=0
summary=()
runner=() # a command that ctest runs under

count() { passed=$((passed + $1)) failed=$((failed + $2)); }

# build NAME CMAKE_OPTIONS...: silent unless it fails.
build() {
    local dir=$ROOT/$1 log=$ROOT/$1.log
    shift
    if cmake -S . -B "$dir" -G Ninja "$@" >"$log" 2>&1 && cmake --build "$dir" -j "$JOBS" >>"$log" 2>&1; then
        count 1 0
        return 0
    fi
    grep -E -A 12 'error|warning|FAILED' "$log" | head -n 80
    echo "build failed, the whole log is $log"
    count 0 1
    return 1
}

# run_tests NAME CTEST_OPTIONS...: shows ctest's own lines and adds its totals.
run_tests() {
    local dir=$ROOT/$1 log=$ROOT/$1.ctest.log total bad skipped
    shift
    "${runner[@]}" ctest --test-dir "$dir" --output-on-failure -j "$JOBS" "$@" 2>&1 | tee "$log"
    read -r bad total < <(sed -nE 's/^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+)$/\1 \2/p' "$log")
    skipped=$(grep -cE '^[[:space:]]+[0-9]+ - .* \(Skipped\)$' "$log")
    if [ -z "${total:-}" ]; then
        echo "no tests ran"
        count 0 1
    else
        count $((total - bad - skipped)) "$bad"
    fi
}

script() {
    if "$@"; then
        count 1 0
    else
        echo "failed: $*"
        count 0 1
    fi
}

stage_tools() {
    script tools/check_layers.sh
    script tools/check_names.sh
}
stage_gcc() {
    build gcc -DCMAKE_C_COMPILER=$GCC -DCMAKE_CXX_COMPILER=$GXX -DCMAKE_BUILD_TYPE=Release -DRFT_WERROR=ON || return
    local lib=$ROOT/gcc/librooftile model=$ROOT/gcc/librooftile_model cblas=$ROOT/gcc/librooftile_cblas
    script tools/check_symbols.sh $lib.a $lib.so
    script tools/check_symbols.sh ${model}.a ${model}.so
    script tools/check_symbols.sh ${cblas}.a ${cblas}.so
    script tools/check_isa_leak.sh $lib.a
    script tools/check_isa_leak.sh $model.a
    script tools/check_isa_leak.sh $cblas.a
    run_tests gcc
}
stage_clang() {
    build clang -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DRFT_WERROR=ON && run_tests clang -LE 'nvrtc|emulated'
}
# The level ref on another architecture. Left out: device code, and what starts or measures processes, which qemu-user cannot.
stage_aarch64() {
    if ! aarch64-linux-gnu-gcc --version >/dev/null 2>&1 || [ ! -e build/tools/aarch64/usr/include/cmocka.h ]; then
        echo "skipped: tools/setup.sh aarch64 found no cross compiler and libraries"
        return
    fi
    build aarch64 --toolchain cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=Release -DRFT_WERROR=ON -DRFT_EXAMPLES=OFF || return
    RFT_TEST_EMULATED=1 run_tests aarch64 -L 'unit|api' -E 'cuda|jit|driver|fork|growth'
    script qemu-aarch64 -L /usr/aarch64-linux-gnu $ROOT/aarch64/rooftile check --random 200
}
stage_asan() {
    build asan -DCMAKE_C_COMPILER=$GCC -DCMAKE_CXX_COMPILER=$GXX -DRFT_SANITIZE=address,undefined || return
    run_tests asan -L 'unit|api|check|cli' -LE 'nvrtc|emulated'
}
stage_tsan() {
    build tsan -DCMAKE_C_COMPILER=$GCC -DCMAKE_CXX_COMPILER=$GXX -DRFT_SANITIZE=thread -DRFT_EXAMPLES=OFF || return
    # Some kernels place memory where this TSan does not expect it, unless randomisation is off.
    if setarch "$(uname -m)" -R true 2>/dev/null; then runner=(setarch "$(uname -m)" -R); fi
    run_tests tsan -L tsan
    runner=()
}
stage_fuzz() {
    build fuzz -DCMAKE_C_COMPILER=clang -DRFT_FUZZ=ON -DRFT_TESTS=OFF -DRFT_EXAMPLES=OFF \
        "-DRFT_FUZZ_SECONDS=$RFT_FUZZ_SECONDS" && run_tests fuzz -L fuzz
}

run_stage() {
    local begin=$SECONDS failed_before=$failed
    printf '\n==== %s, started at %s\n' "$1" "$(date +%H:%M:%S)"
    "stage_$1"
    summary+=("$(printf '%-7s %5d s  %s' "$1" $((SECONDS - begin)) \
        "$([ "$failed" -eq "$failed_before" ] && echo ok || echo FAILED)")")
}

mkdir -p "$ROOT"
[ $# -gt 0 ] || set -- "${STAGES[@]}"
for stage; do run_stage "$stage"; done
printf '\n==== all stages, %d s\n' "$SECONDS"
printf '%s\n' "${summary[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
