/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_rows.h - turns a kernels_<isa>.def into the level's table. Include it with RFT_ISA and RFT_KERNELS set; it declares
 * the families, defines the rows and names them by the grammar <op>_<x>_<w>_<acc>_<MR>x<NR>_<isa>. The op says how W is read.
 * With RFT_TILES set its rows are those of tile registers.
 */
#include "cpu/cpu_kernel.h"

#define RFT_TYPE_f32 RFT_F32
#define RFT_TYPE_f16 RFT_F16
#define RFT_TYPE_bf16 RFT_BF16
#if defined(RFT_TILES)
#define RFT_FORM_gemm RFT__FORM_TILES
#define RFT_MEMBER_gemm tiles
#define RFT_FAMILY_gemm rft__tiles
#define RFT_CODES_FAMILY_i8 rft__tiles
#define RFT_CODES_MEMBER_i8 tiles
#define RFT_BYTES_FAMILY(symbol) rft__tiles symbol
#define RFT_BYTES_MEMBER(symbol) .tiles = &symbol
#else
#define RFT_FORM_gemm RFT__FORM_PANELS
#define RFT_MEMBER_gemm family
#define RFT_FAMILY_gemm rft__family
#define RFT_CODES_FAMILY_i8 rft__codes8_family
#define RFT_CODES_MEMBER_i8 codes8
#define RFT_BYTES_FAMILY(symbol) rft__codes8_family symbol[]
#define RFT_BYTES_MEMBER(symbol) .codes8 = symbol
#endif
#define RFT_FORM_gemv RFT__FORM_PANELS
#define RFT_FORM_dot RFT__FORM_ROWS
#define RFT_FORM_axpy RFT__FORM_COLUMNS
#define RFT_MEMBER_gemv family
#define RFT_MEMBER_dot direct
#define RFT_MEMBER_axpy direct
#define RFT_FAMILY_gemv rft__family
#define RFT_FAMILY_dot rft__direct_family
#define RFT_FAMILY_axpy rft__direct_family
/* Codes: a format that has them, and what they are. */
#define RFT_GGUF(number)  ((rft_type)(256 + (number)))
#define RFT_TYPE_i8       RFT_I8
#define RFT_TYPE_q2m      RFT_GGUF(10)
#define RFT_TYPE_q3       RFT_GGUF(11)
#define RFT_TYPE_q4       RFT_GGUF_Q4_0
#define RFT_TYPE_q4m      RFT_GGUF(3)
#define RFT_TYPE_q4z      RFT_U4
#define RFT_TYPE_q5       RFT_GGUF(6)
#define RFT_TYPE_q5m      RFT_GGUF(7)
#define RFT_TYPE_q6       RFT_GGUF(14)
#define RFT_TYPE_q8       RFT_GGUF(8)
#define RFT_TYPE_q8z      RFT_U8
#define RFT_TYPE_f8       RFT_E4M3
#define RFT_CODES_q2m     2, RFT__OFFSET_MINIMUM
#define RFT_CODES_q3      3, RFT__OFFSET_NONE
#define RFT_CODES_q4      4, RFT__OFFSET_NONE
#define RFT_CODES_q4m     4, RFT__OFFSET_MINIMUM
#define RFT_CODES_q4z     4, RFT__OFFSET_ZERO
#define RFT_CODES_q5      5, RFT__OFFSET_NONE
#define RFT_CODES_q5m     5, RFT__OFFSET_MINIMUM
#define RFT_CODES_q6      6, RFT__OFFSET_NONE
#define RFT_CODES_q8      8, RFT__OFFSET_NONE
#define RFT_CODES_q8z     8, RFT__OFFSET_ZERO
#define RFT_CODES_f8      8, RFT__OFFSET_FLOAT
/* Sums of groups, or one chain. */
#define RFT_SUMS_gemm false
#define RFT_SUMS_gemv false
#define RFT_SUMS_sums true
#define RFT_CODES_FAMILY_f32 rft__codes_family
#define RFT_CODES_MEMBER_f32 codes
#define RFT_TEXT_(a) #a
#define RFT_TEXT(a) RFT_TEXT_(a)

#define KERNEL(op, x, w, mr, nr, kr, symbol, gamma, eta) extern const RFT_FAMILY_##op symbol;
#define CODES(op, x, w, mr, nr, kr, symbol, gamma, eta)  extern const RFT_CODES_FAMILY_##x symbol;
#define BYTES(op, x, w, mr, nr, kr, symbol, gamma, eta)  extern const RFT_BYTES_FAMILY(symbol);
#include RFT_KERNELS
#undef KERNEL
#undef CODES
#undef BYTES

static const rft__cpu_kernel kernels[] = {
#define KERNEL(op, rx, rw, rows, columns, granule, symbol, c, eta)                                        \
    {.name = #op "_" #rx "_" #rw "_f32_" #rows "x" #columns "_" RFT_TEXT(RFT_ISA), .isa = RFT_TEXT(RFT_ISA), \
     .x = RFT_TYPE_##rx, .w = RFT_TYPE_##rw, .acc = RFT_F32, .mr = rows, .nr = columns, .kr = granule,       \
     .gamma = c, .eta_lane = eta, .form = RFT_FORM_##op, .RFT_MEMBER_##op = &symbol},
#define CODES(op, rx, rw, rows, columns, granule, symbol, c, eta)                                          \
    {.name = #op "_" #rx "_" #rw "_f32_" #rows "x" #columns "_" RFT_TEXT(RFT_ISA), .isa = RFT_TEXT(RFT_ISA), \
     .x = RFT_TYPE_##rx, .w = RFT_TYPE_##rw, .acc = RFT_F32, .mr = rows, .nr = columns, .kr = granule,       \
     .gamma = c, .eta_lane = eta, .form = RFT__FORM_CODES, .kind = {RFT_CODES_##rw}, .sums = RFT_SUMS_##op, \
     .RFT_CODES_MEMBER_##rx = &symbol},
#define BYTES(op, rx, rw, rows, columns, granule, symbol, c, eta)                                          \
    {.name = #op "_" #rx "_" #rw "_f32_" #rows "x" #columns "_" RFT_TEXT(RFT_ISA), .isa = RFT_TEXT(RFT_ISA), \
     .x = RFT_TYPE_##rx, .w = RFT_U8, .acc = RFT_F32, .mr = rows, .nr = columns, .kr = granule,              \
     .gamma = c, .eta_lane = eta, .form = RFT__FORM_BYTES, RFT_BYTES_MEMBER(symbol)},
#include RFT_KERNELS
#undef KERNEL
#undef CODES
#undef BYTES
};
