#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The installed package as its users meet it: files, SONAME and symbol versions, man pages, completions, examples/installed built
# by pkg-config and by CMake, as C and as C++, shared and static, and the Debian package. Called by ctest with the build folder.

set -u
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
unset LD_LIBRARY_PATH PKG_CONFIG_PATH DESTDIR
failures=0

fail() {
    echo "FAIL: $1" >&2
    if [ -f "$work/log" ]; then tail -n 20 "$work/log" | sed 's/^/    /' >&2; fi
    failures=$((failures + 1))
}
quietly() { "$@" >"$work/log" 2>&1; }
has_file() { # PREFIX NAMES...: one of them, as LIBDIR differs between systems
    local where=$1 name
    shift
    for name; do [ -n "$(find "$where" -path "*/$name" | head -n 1)" ] || fail "$where lacks $name"; done
}

installed=(bin/rooftile include/rooftile.h include/rooftile_analysis.h include/rooftile_model.h include/rooftile_cblas.h
    librooftile.a librooftile.so librooftile.so.0 librooftile_model.a librooftile_model.so librooftile_model.so.0
    librooftile_cblas.a librooftile_cblas.so librooftile_cblas.so.0
    pkgconfig/rooftile.pc pkgconfig/rooftile_model.pc pkgconfig/rooftile_cblas.pc cmake/rooftile/rooftileConfig.cmake
    cmake/rooftile/rooftileConfigVersion.cmake cmake/rooftile/rooftileTargets.cmake
    man1/rooftile.1 man3/rooftile.h.3 man3/rooftile_analysis.h.3 man3/rooftile_cblas.h.3 man7/rooftile-formats.7
    share/rooftile/machines/h100.json share/rooftile/machines/epyc-9654.json
    bash-completion/completions/rooftile zsh/site-functions/_rooftile fish/vendor_completions.d/rooftile.fish)

test_install() {
    quietly cmake --install "$build" --prefix "$prefix" || { fail "cmake --install --prefix"; exit 1; }
    has_file "$prefix" "${installed[@]}"
    DESTDIR=$work/stage quietly cmake --install "$build" --prefix /opt/rooftile || fail "cmake --install below DESTDIR"
    has_file "$work/stage/opt/rooftile" "${installed[@]}"
    quietly env -C / "$prefix/bin/rooftile" --version || fail "the installed tool does not start"
    quietly env -C / "$prefix/bin/rooftile" explain --machine h100 -m 1 -n 64 -k 64 || fail "the installed tool finds no data sheets"
    if grep -rlF -e "$build" -e "$root" "$prefix" --include='*.pc' --include='*.cmake' >"$work/log"; then
        fail "installed files name the build's folders"
    fi
}

test_shared_libraries() {
    local name lib version
    for name in rooftile rooftile_model rooftile_cblas; do
        version=ROOFTILE_0.1
        if [ "$name" = rooftile_cblas ]; then version=ROOFTILE_CBLAS_0.1; fi
        lib=$(find "$prefix" -name "lib$name.so")
        objdump -p "$lib" >"$work/log"
        grep -qE "SONAME +lib$name\.so\.0$" "$work/log" || fail "$lib: SONAME is not lib$name.so.0"
        grep -qE "${version//./\\.}\$" "$work/log" || fail "$lib defines no symbol version $version"
        objdump -T "$lib" | awk -v version="$version" '/ (rft|cblas)_/ && !index($0, version) && !/\*UND\*/' >"$work/log"
        if [ -s "$work/log" ]; then fail "$lib exports symbols without a version"; fi
    done
}

test_man_pages() {
    command -v groff >/dev/null || { echo "skipped: man pages are not formatted, since there is no groff"; return; }
    local page
    for page in "$prefix"/share/man/man?/*; do
        if groff -man -Tutf8 -ww "$page" 2>"$work/log" >/dev/null && [ ! -s "$work/log" ]; then continue; fi
        fail "groff complains about $page"
    done
}

# What completes is what the tool's help lists, in each shell's file.
test_completions() {
    local command option share=$prefix/share bash_file
    bash_file=$share/bash-completion/completions/rooftile
    bash -n "$bash_file" 2>"$work/log" || fail "bash cannot read its completions"
    for command in $("$prefix/bin/rooftile" --help | awk '/^  [a-z]+ / && $1 != "rooftile" { print $1 }'); do
        grep -q "seen_subcommand_from $command'" "$share/fish/vendor_completions.d/rooftile.fish" ||
            fail "fish does not complete $command"
        for option in $("$prefix/bin/rooftile" "$command" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
            completes "$bash_file" "$command" "$option" || fail "bash does not complete rooftile $command $option"
            grep -qE "^    $command\).* $option( |;)" "$share/zsh/site-functions/_rooftile" ||
                fail "zsh does not complete rooftile $command $option"
        done
    done
    if command -v zsh >/dev/null; then quietly zsh -n "$share/zsh/site-functions/_rooftile" || fail "zsh -n"; fi
    if command -v fish >/dev/null; then quietly fish -n "$share/fish/vendor_completions.d/rooftile.fish" || fail "fish -n"; fi
}
completes() { # FILE COMMAND OPTION, by the function itself
    # shellcheck disable=SC2016  # the inner shell expands
    bash -c '. "$1"; COMP_WORDS=(rooftile "$2" "$3") COMP_CWORD=2; _rooftile; [[ " ${COMPREPLY[*]} " == *" $3 "* ]]' \
        - "$@" 2>"$work/log"
}

runs() { # PROGRAM WHAT
    LD_LIBRARY_PATH=$libdir quietly "$1" || fail "$2 does not run"
}

by_pkg_config() { # PACKAGE FILES COMPILER FLAGS...: as C or C++, shared and static
    local package=$1 compiler=$3 kind static libs sources
    mapfile -t sources < <(printf "$root/examples/installed/%s\n" $2)
    shift 3
    sources=("$@" "${sources[@]}" -x none)
    for kind in shared static; do
        static=()
        if [ "$kind" = static ]; then static=(--static); fi
        libs=$(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config "${static[@]}" --cflags --libs "$package") ||
            { fail "pkg-config ${static[*]}"; continue; }
        if [ "$kind" = static ]; then # the archives, where the linker would take the shared libraries beside them
            libs=$(sed -E 's/-l(rooftile(_model|_cblas)?)( |$)/-l:lib\1.a /g' <<<"$libs")
        fi
        # shellcheck disable=SC2086  # words of pkg-config
        quietly "$compiler" -D_POSIX_C_SOURCE=200112L -Wall -Wextra -Werror "${sources[@]}" $libs -o "$work/consumer_$kind" ||
            { fail "$compiler $kind, $package by pkg-config"; continue; }
        runs "$work/consumer_$kind" "$compiler $kind, $package by pkg-config,"
    done
    if ldd "$work/consumer_static" 2>/dev/null | grep -q librooftile; then fail "the static program loads librooftile.so"; fi
}

by_cmake() { # LANGUAGE
    local static dir
    for static in OFF ON; do
        dir=$work/cmake_$1_$static
        if quietly cmake -S "$root/examples/installed" -B "$dir" "-DCMAKE_PREFIX_PATH=$prefix" "-DCONSUMER_LANGUAGE=$1" \
            "-DCONSUMER_STATIC=$static" && quietly cmake --build "$dir"; then
            runs "$dir/consumer" "$1, static $static, by CMake,"
            runs "$dir/consumer_cblas" "$1, static $static, rooftile::cblas by CMake,"
        else
            fail "$1, static $static, by CMake"
        fi
    done
}

test_consumers() {
    libdir=$(dirname "$(find "$prefix" -name librooftile.so)")
    local files="consumer.c consumer_layer.c"
    by_pkg_config rooftile_model "$files" "${CC:-cc}" -x c -std=c11
    by_pkg_config rooftile_cblas consumer_cblas.c "${CC:-cc}" -x c -std=c11
    by_cmake C
    if [ -z "${CXX:-}" ]; then
        echo "skipped: nothing is built as C++, since there is no C++ compiler"
        return
    fi
    by_pkg_config rooftile_model "$files" "$CXX" -x c++ -std=c++17
    by_pkg_config rooftile_cblas consumer_cblas.c "$CXX" -x c++ -std=c++17
    by_cmake CXX
}

test_debian_package() {
    command -v dpkg-deb >/dev/null || { echo "skipped: no Debian package is made, since there is no dpkg-deb"; return; }
    quietly cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/deb" || { fail "cpack -G DEB"; return; }
    local deb name
    deb=$(find "$work/deb" -maxdepth 1 -name 'rooftile_*.deb')
    dpkg-deb --info "$deb" >"$work/log" || fail "dpkg-deb --info"
    for name in 'Package: rooftile' 'Version: 0\.1\.0' 'Depends: .*libjansson4' 'triggers'; do
        grep -qE "$name" "$work/log" || fail "the package's control data lacks: $name"
    done
    name=$(sed -n 's/^RFT_MAINTAINER:STRING=//p' "$build/CMakeCache.txt")
    grep -qF " Maintainer: $name" "$work/log" || fail "the package's maintainer is not RFT_MAINTAINER = $name"
    for name in 'me@here' 'me <me>'; do
        if quietly cmake -S "$root" -B "$work/maintainer" -DRFT_TESTS=OFF -DRFT_EXAMPLES=OFF "-DRFT_MAINTAINER=$name"; then
            fail "RFT_MAINTAINER = $name is no name with an address"
        fi
    done
    dpkg-deb --contents "$deb" >"$work/log" || fail "dpkg-deb --contents"
    for name in "${installed[@]}"; do grep -qE "\./usr/.*${name//./\\.}( |$)" "$work/log" || fail "the package lacks $name"; done
    if grep -vE '\./(usr/.*)?$|\./usr/' "$work/log"; then fail "the package writes outside of /usr"; fi
}

test_install
test_shared_libraries
test_man_pages
test_completions
test_consumers
test_debian_package
rm -f "$work/log"
[ "$failures" -eq 0 ] && echo "the installed package is whole"
exit "$((failures > 0))"
