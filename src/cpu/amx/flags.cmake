# SPDX-License-Identifier: Apache-2.0
set(RFT_ISA_FLAGS -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mamx-tile -mamx-bf16 -mamx-int8)
