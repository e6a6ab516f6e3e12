/* SPDX-License-Identifier: Apache-2.0
 *
 * peak.c - the tables of peak.h. A level that brings no faster arithmetic or wider loads has no row.
 */
#include "cpu/peak.h"

static const rft__peak peaks[] = {
    {"ref", "fma_f32", RFT_F32, rft__peak_fma_f32_ref},
#if defined(__x86_64__)
    {"avx2", "fma_f32", RFT_F32, rft__peak_fma_f32_avx2},
    {"avx2", "madd_i8", RFT_I8, rft__peak_madd_i8_avx2},
    {"avx2vnni", "dot_i8", RFT_I8, rft__peak_dot_i8_avx2vnni},
    {"avx512", "fma_f32", RFT_F32, rft__peak_fma_f32_avx512},
    {"avx512", "dot_i8", RFT_I8, rft__peak_dot_i8_avx512},
    {"avx512bf16", "dot_bf16", RFT_BF16, rft__peak_dot_bf16_avx512bf16},
    {"amx", "tile_bf16", RFT_BF16, rft__peak_tile_bf16_amx},
    {"amx", "tile_i8", RFT_I8, rft__peak_tile_i8_amx},
#endif
};

static const rft__stream streams[] = {
    {"ref", rft__stream_read_ref, rft__stream_copy_ref},
#if defined(__x86_64__)
    {"avx2", rft__stream_read_avx2, rft__stream_copy_avx2},
    {"avx512", rft__stream_read_avx512, rft__stream_copy_avx512},
#endif
};

const rft__peak *rft__peak_row(int i) { return i < (int)(sizeof peaks / sizeof *peaks) ? &peaks[i] : NULL; }

const rft__stream *rft__stream_row(int i) { return i < (int)(sizeof streams / sizeof *streams) ? &streams[i] : NULL; }
