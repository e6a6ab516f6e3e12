#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the build and the checks need, through apt, and only what is missing.
# Called by `make check` and `make demo`; takes milliseconds on a machine that has everything.
#   tools/setup.sh nvrtc    also fetches NVRTC, with which the checks compile CUDA kernels without a GPU
#   tools/setup.sh python   also fetches the Python packages that the checks compare files with
#   tools/setup.sh coverage also fetches gcovr, which sums up what gcov counts
#   tools/setup.sh aarch64  also installs a cross compiler and an emulator, and fetches libraries for aarch64

set -euo pipefail
cd "$(dirname "$0")/.."

CMAKE_LEAST=3.25
GCC_LEAST=12
CMAKE_DIR=build/tools/cmake
NVRTC_DIR=build/tools/nvrtc
PYTHON_DIR=build/tools/python
AARCH64_DIR=build/tools/aarch64 # cmake/aarch64.cmake looks there

die() { echo "setup: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }
has_header() { echo "#include <$1>" | cc -E - >/dev/null 2>&1; }

has_recent_gcc() {
    has gcc && at_least "$(gcc -dumpversion)" "$GCC_LEAST" || has "gcc-$GCC_LEAST" && has "g++-$GCC_LEAST"
}
has_recent_cmake() {
    local cmake
    for cmake in cmake "$CMAKE_DIR/cmake/data/bin/cmake"; do
        if has "$cmake" && at_least "$("$cmake" --version | awk 'NR == 1 { print $3 }')" "$CMAKE_LEAST"; then return 0; fi
    done
    return 1
}
has_fuzzer() {
    has clang && echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -x c -fsanitize=fuzzer,address -o /dev/null - >/dev/null 2>&1
}
has_nvrtc() {
    [ -n "${RFT_NVRTC:-}" ] || ldconfig -p 2>/dev/null | grep -E 'libnvrtc\.so\.1[23]' >/dev/null ||
        compgen -G '/usr/local/cuda/lib64/libnvrtc.so.1[23]' >/dev/null ||
        compgen -G "$NVRTC_DIR/nvidia/*/lib/libnvrtc.so.1[23]" >/dev/null
}

has_python_packages() { PYTHONPATH=$PYTHON_DIR python3 -c 'import gguf, ml_dtypes, numpy, onnx, safetensors, setuptools, wheel' >/dev/null 2>&1; }

has_aarch64() {
    has aarch64-linux-gnu-gcc && has qemu-aarch64 && [ -e "$AARCH64_DIR/usr/include/cmocka.h" ] &&
        [ -e "$AARCH64_DIR/usr/include/jansson.h" ]
}

# One line a package that is missing: the command or header that shows it, then its Debian name.
missing_packages() {
    local tool package
    while read -r tool package; do
        has "$tool" || echo "$package"
    done <<'LIST'
cc build-essential
c++ build-essential
make build-essential
cmake cmake
ninja ninja-build
clang clang
pkg-config pkg-config
git git
python3 python3
pip3 python3-pip
unzip unzip
file file
objdump binutils
LIST
    has_header hwloc.h || echo libhwloc-dev
    has_header jansson.h || echo libjansson-dev
    has_header sqlite3.h || echo libsqlite3-dev
    { echo '#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>' | cc -E - >/dev/null 2>&1; } || echo libcmocka-dev
}

apt_run() {
    if [ "$(id -u)" -eq 0 ]; then
        DEBIAN_FRONTEND=noninteractive apt-get "$@"
    elif has sudo; then
        sudo env DEBIAN_FRONTEND=noninteractive apt-get "$@"
    else
        die "these packages are missing and need root or sudo to install: $PACKAGES"
    fi
}
apt_install() {
    PACKAGES="$*"
    has apt-get || die "apt-get not found; install what these Debian packages hold by hand: $PACKAGES"
    echo "setup: installing $PACKAGES"
    apt_run update -qq || echo "setup: apt-get update failed, going on with the known package lists" >&2
    apt_run install -y -qq --no-install-recommends "$@" || die "apt-get could not install: $PACKAGES"
}

# Releases put clang's run-time libraries into packages of different names.
install_fuzzer() {
    local major package
    major=$(clang -dumpversion | cut -d. -f1)
    for package in "libclang-rt-$major-dev" libclang-rt-dev "libclang-common-$major-dev"; do
        if apt-cache show "$package" >/dev/null 2>&1; then apt_install "$package"; fi
        if has_fuzzer; then return 0; fi
    done
    die "clang cannot link -fsanitize=fuzzer,address; install the compiler-rt package of clang $major"
}
install_cmake() {
    echo "setup: cmake is older than $CMAKE_LEAST; installing a newer one into $CMAKE_DIR"
    python3 -m pip install --quiet --target "$CMAKE_DIR" "cmake>=$CMAKE_LEAST,<4" ||
        die "cmake >= $CMAKE_LEAST is needed and pip could not fetch it"
}
# Tests that compile CUDA kernels are skipped without it, with a reason, so no network is no failure.
install_nvrtc() {
    echo "setup: fetching NVRTC into $NVRTC_DIR"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --retries 1 --timeout 20 \
        --target "$NVRTC_DIR" "nvidia-cuda-nvrtc>=13,<14" ||
        echo "setup: going on without NVRTC; tests that compile CUDA kernels will be skipped" >&2
}

# So are those of the Python package, and those that read our files with other packages.
install_python_packages() {
    echo "setup: fetching Python packages into $PYTHON_DIR"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --retries 1 --timeout 20 --target "$PYTHON_DIR" \
        "gguf>=0.19,<1" "ml_dtypes>=0.5,<1" numpy "onnx>=1.17,<2" "safetensors>=0.4,<1" "setuptools>=70" wheel ||
        echo "setup: going on without them; tests that compare with Python packages will be skipped" >&2
}

# Libraries are unpacked beside the build, so that the system learns of no second architecture.
fetch_aarch64_libraries() {
    local apt=$PWD/$AARCH64_DIR/apt package
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" && cd "$apt" || return
    local options=(-qq -o Dir::State::Lists="$apt/lists" -o Dir::State::Status=/dev/null -o Dir::Cache="$apt/cache"
        -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)")
    apt-get "${options[@]}" update || true # sources without arm64 fail
    apt-get "${options[@]}" download libjansson4 libjansson-dev libcmocka0 libcmocka-dev || return
    for package in *.deb; do dpkg-deb -x "$package" .. || return; done
    rm -r "$apt"
}
install_coverage() {
    echo "setup: fetching gcovr into $PYTHON_DIR"
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --retries 1 --timeout 20 --target "$PYTHON_DIR" "gcovr>=7,<9" ||
        die "gcovr is needed to sum up coverage, and pip could not fetch it"
}
install_aarch64() {
    local missing=()
    has aarch64-linux-gnu-gcc || missing+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
    has qemu-aarch64 || missing+=(qemu-user)
    if { [ "${#missing[@]}" -eq 0 ] || (apt_install "${missing[@]}"); } && (fetch_aarch64_libraries); then return 0; fi
    echo "setup: going on without them; the stage aarch64 of the checks will be skipped" >&2
}

mapfile -t wanted < <(missing_packages | sort -u)
if [ "${#wanted[@]}" -gt 0 ]; then
    apt_install "${wanted[@]}"
    hash -r
    mapfile -t wanted < <(missing_packages | sort -u)
    [ "${#wanted[@]}" -eq 0 ] || die "installed, but still not usable: ${wanted[*]}"
fi
has_recent_gcc || apt_install "gcc-$GCC_LEAST" "g++-$GCC_LEAST"
has_recent_cmake || install_cmake
has_fuzzer || install_fuzzer
if ! has ctags && has apt-get && [ "$(id -u)" -eq 0 ]; then
    (apt_install universal-ctags) || echo "setup: going on without ctags; tools/check_names.sh will skip functions" >&2
fi
for extra; do
    case $extra in
    nvrtc) has_nvrtc || install_nvrtc ;;
    python) has_python_packages || install_python_packages ;;
    coverage) PYTHONPATH=$PYTHON_DIR python3 -c 'import gcovr' >/dev/null 2>&1 || install_coverage ;;
    aarch64) has_aarch64 || install_aarch64 ;;
    *) die "'$extra' is none of nvrtc, python, coverage and aarch64" ;;
    esac
done
