/* SPDX-License-Identifier: Apache-2.0
 *
 * avx2vnni_level.c - the level avx2vnni as a program without AVX-VNNI can have it: the level's own loops over the stand-in, built
 * with its flags. With avx2vnni_cpuid.c, linked ahead of the static library (rft_add_avx2vnni_tests of cmake/testing.cmake).
 */
#include "avxvnni_standin.h"

#include "cpu/avx2vnni/codes8_avx2vnni.c"
#include "cpu/avx2vnni/isa_avx2vnni.c"
