/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_rows.h - turns a kernels_<isa>.def into the level's table. Include it with RFT_ISA and RFT_KERNELS set; it declares
 * the families, defines the rows and names them by the grammar <op>_<x>_<w>_<acc>_<MR>x<NR>_<isa>. The op says how W is read.
 * With RFT_TILES set a gemm is one of tile registers.
 */
#include "cpu/cpu_kernel.h"

#define RFT_TYPE_f32 RFT_F32
#define RFT_TYPE_f16 RFT_F16
#define RFT_TYPE_bf16 RFT_BF16
#if defined(RFT_TILES)
#define RFT_FORM_gemm RFT__FORM_TILES
#define RFT_MEMBER_gemm tiles
#define RFT_FAMILY_gemm rft__tiles
#else
#define RFT_FORM_gemm RFT__FORM_PANELS
#define RFT_MEMBER_gemm family
#define RFT_FAMILY_gemm rft__family
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
#define RFT_TEXT_(a) #a
#define RFT_TEXT(a) RFT_TEXT_(a)

#define KERNEL(op, x, w, mr, nr, kr, symbol, gamma, eta) extern const RFT_FAMILY_##op symbol;
#include RFT_KERNELS
#undef KERNEL

static const rft__cpu_kernel kernels[] = {
#define KERNEL(op, rx, rw, rows, columns, granule, symbol, c, eta)                                        \
    {.name = #op "_" #rx "_" #rw "_f32_" #rows "x" #columns "_" RFT_TEXT(RFT_ISA), .isa = RFT_TEXT(RFT_ISA), \
     .x = RFT_TYPE_##rx, .w = RFT_TYPE_##rw, .acc = RFT_F32, .mr = rows, .nr = columns, .kr = granule,       \
     .gamma = c, .eta_lane = eta, .form = RFT_FORM_##op, .RFT_MEMBER_##op = &symbol},
#include RFT_KERNELS
#undef KERNEL
};
