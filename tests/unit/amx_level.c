/* SPDX-License-Identifier: Apache-2.0
 *
 * amx_level.c - the level amx as a program without AMX can have it: the level's own loops over the stand-in. A program that links
 * this file and then the static library takes the level and its detection from here, and all else from the library; it
 * still needs the level below. For unit.test_amx and the programs of rft_add_amx_tests (cmake/testing.cmake).
 */
#include "amx_standin.h"

#include "cpu/amx/gemm_amx.c"
#include "cpu/amx/gemm_i8_amx.c"
#include "cpu/amx/isa_amx.c"
#include "cpu/amx/shape_amx.c"
#include "cpu/cpuid.h"

const char *rft__amx_missing(void) { return NULL; }
