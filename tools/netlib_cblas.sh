#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs netlib's testers of CBLAS, levels 2 and 3, on sgemv and sgemm of librooftile_cblas:
#   tools/netlib_cblas.sh LAPACK [BUILD]
# LAPACK is a checkout of https://github.com/Reference-LAPACK/lapack, BUILD the folder with the library (build). Needs gfortran;
# all is compiled in a temporary folder. The functions that the testers only link come from that checkout. Their cblas_xerbla turns
# numbers of row-major calls round, as the reference's Fortran counts its own arguments; ours are final, so it is told not to.

set -euo pipefail

if [ $# -lt 1 ] || [ ! -d "$1/CBLAS/testing" ]; then
    echo "usage: $0 LAPACK [BUILD], LAPACK with the folders CBLAS and BLAS" >&2
    exit 2
fi
lapack=$(cd "$1" && pwd)
library=$(cd "${2:-build}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cp "$lapack/CBLAS/include/cblas_mangling_with_flags.h.in" cblas_mangling.h
c() { "${CC:-cc}" -O1 -w -DADD_ -DHAS_ATTRIBUTE_WEAK_SUPPORT -I"$lapack/CBLAS/include" -I. "$@"; }

mkdir reference
for source in "$lapack"/BLAS/SRC/{s*,lsame,isamax}.f* "$lapack"/CBLAS/src/{s*,i*}sub.f; do
    (cd reference && gfortran -O1 -w -c "$source")
done
for source in "$lapack"/CBLAS/src/{cblas_s*,cblas_isamax,cblas_globals,cblas_xerbla,xerbla}.c; do
    c -c "$source" -o "reference/$(basename "$source" .c)_c.o"
done
ar cr libreference.a reference/*.o
echo 'int numbers_are_final = 0;' >final.c

# Widest sizes that the testers have room for; other functions are switched off.
run() { # LEVEL FUNCTION
    local tests=$lapack/CBLAS/testing name objects=()
    for name in "c_sblas$1" "c_s${1}chke" auxiliary; do
        c -c "$tests/$name.c"
        objects+=("$name.o")
    done
    c -DRowMajorStrg=numbers_are_final -c "$tests/c_xerbla.c"
    c -c final.c
    gfortran -O1 -w -c "$tests/c_sblat$1.f"
    gfortran "${objects[@]}" c_xerbla.o final.o "c_sblat$1.o" -L"$library" -lrooftile_cblas libreference.a \
        -Wl,-rpath,"$library" -o "level$1"
    sed -E -e "/^cblas_/{/^$2 /!s/ T / F /}" -e 's/^6 +NUMBER OF VALUES OF N/9 NUMBER OF VALUES OF N/' \
        -e 's/^0 1 2 3 5 9 .*/0 1 2 3 5 9 17 33 65/' "$tests/sin$1" >"input$1"
    "./level$1" <"input$1" | tee "output$1" | grep -E "$2 .*RUN" || true
    if grep -E 'FAIL|FATAL|ABANDON|\*\*\*\*\*' "output$1" | grep -qvE ' 0 FAILED' || ! grep -q 'END OF TESTS' "output$1"; then
        cat "output$1"
        exit 1
    fi
}

run 2 cblas_sgemv
run 3 cblas_sgemm
