/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_rows.h - turns a kernels_<isa>.def into the level's table. Include it with RFT_ISA and RFT_KERNELS set; it declares
 * the families, defines the rows and names them by the grammar <op>_<x>_<w>_<acc>_<MR>x<NR>_<isa>.
 */
#include "cpu/cpu_kernel.h"

#define RFT_TYPE_f32 RFT_F32
#define RFT_TYPE_f16 RFT_F16
#define RFT_TYPE_bf16 RFT_BF16
#define RFT_TEXT_(a) #a
#define RFT_TEXT(a) RFT_TEXT_(a)

#define KERNEL(op, x, w, mr, nr, kr, symbol, gamma, eta) extern const rft__family symbol;
#include RFT_KERNELS
#undef KERNEL

static const rft__cpu_kernel kernels[] = {
#define KERNEL(op, x, w, mr, nr, kr, symbol, gamma, eta)             \
    {#op "_" #x "_" #w "_f32_" #mr "x" #nr "_" RFT_TEXT(RFT_ISA),    \
     RFT_TEXT(RFT_ISA),                                              \
     RFT_TYPE_##x,                                                   \
     RFT_TYPE_##w,                                                   \
     RFT_F32,                                                        \
     mr, nr, kr, gamma, eta, &symbol},
#include RFT_KERNELS
#undef KERNEL
};
